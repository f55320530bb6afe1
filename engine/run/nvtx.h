/* nvtx.h - what tools that listen to NVTX are told: in the domain `gpipe` a range for
 * each call of a host stage and each launch of a segment, named like it, with the
 * number of its first frame as payload; a category for each kind of stage; the names
 * of threads. Without such a tool a range costs the test of one pointer. */
#pragma once

#include "run/run.h"

typedef struct gp_nvtx gp_nvtx;

/* Sets run->nvtx, when a tool is attached: names the categories, registers the
 * actors' names. Without memory goes to run->arena.oom. */
void gp_nvtx_open(gp_run *run);
void gp_nvtx_close(gp_run *run);

/* They name the calling thread, and open and close its ranges. */
void gp_nvtx_name_thread(const gp_threadrt *t);
void gp_nvtx_push_(const gp_actorrt *p, uint64_t frame);
void gp_nvtx_pop_(const gp_actorrt *p);

static inline void gp_nvtx_push(const gp_actorrt *p, uint64_t frame)
{
    if (p->run->nvtx)
        gp_nvtx_push_(p, frame);
}

static inline void gp_nvtx_pop(const gp_actorrt *p)
{
    if (p->run->nvtx)
        gp_nvtx_pop_(p);
}
