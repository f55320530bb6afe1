/* simulate.h - what the files of 'gpipe simulate' share. */
#ifndef GP_CLI_SIMULATE_H
#define GP_CLI_SIMULATE_H

#include "cli/cli.h"

/* simulate_ranks.c. Would a run in so many ranks (--ranks) start? `first` is the pipeline as rank 0 compiled it; the
 * others are compiled for it here. False: errors are printed, as those ranks would say them, and *status is the exit
 * code. */
bool gp_simulated_ranks_agree(const gp_args *args, const gp_loaded *first, const gp_machine *m,
                              const gp_registry *registry, int *status);

#endif
