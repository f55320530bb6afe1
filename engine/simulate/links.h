/* links.h - what goes between ranks, for the files that ask of it. */
#ifndef GP_SIMULATE_LINKS_H
#define GP_SIMULATE_LINKS_H

#include "simulate/simulate.h"

/* A collective stage whose frames go by NCCL, or by MPI; NULL: there is none. */
const gp_stage *gp_collective_of(const gp_graph *g, bool nccl);
/* What a round of it takes, in words. */
const char *gp_round_text(gp_arena *a, const gp_costs *c, const gp_stage *st);
/* The key of the machine without which steps between ranks take no time; NULL: there are none, or it is said. */
const char *gp_step_lacking(const gp_costs *c, const gp_graph *g);

#endif
