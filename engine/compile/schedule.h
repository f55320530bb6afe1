/* schedule.h - what the passes from a lowered plan to a scheduled one share; schedule.c calls them in this order. */
#pragma once

#include "compile/plan.h"

typedef struct gp_scheduling {
    gp_arena *a;
    const gp_graph *g;
    gp_plan *p;
    int *root;                 /* of each segment: its component */
    int *base;                 /* of each component: the least depth that a buffer of it has, */
    int *lanes;                /* ... and on how many devices its frames take turns */
    const bool *late;          /* of each stage */
    bool *twice;               /* of each buffer: it is carried in its slots, see gp_ring.before */
    int *copied;               /* of each ring with counters that a segment copies to another of the kind, or from it: that one,
                                  or -1 */
    int pool_cap;
} gp_scheduling;

/* How many slots there are where the file does not say: many of small frames, 6 or 3, as few as it allows. */
typedef enum gp_slots { GP_SLOTS_MANY, GP_SLOTS_SOME, GP_SLOTS_FEW } gp_slots;

/* depth.c: how deep each ring is and why, and how many slots segments have.
 * False: the rest cannot be scheduled; an error that leaves it possible is in errs alone. */
bool gp_ring_depths(gp_scheduling *w, gp_slots slots, gp_errs *errs);

/* copies.c: which copies are one, and where slots lie in memory: pools and offsets. Tasks get new numbers. */
void gp_merge_copies(gp_scheduling *w);

/* mapped.c: how each copy between host and device is done. */
void gp_set_copying(gp_scheduling *w);

/* launches.c: streams and batches, turns of tasks, and what one frame copies. False: a segment cannot be launched as the file asks. */
bool gp_set_launches(gp_scheduling *w, gp_errs *errs);

/* depth.c: how many frames in a row one device takes, where several take turns. */
void gp_set_runs(gp_scheduling *w);

/* The largest power of two that is not above n, which is 1 at least. */
static inline int gp_power_below(int n)
{
    int m = 1;
    while (m <= n / 2)
        m *= 2;
    return m;
}

/* The ring on the host and the ring on the device of a copy. */
static inline int gp_host_side(const gp_task *t)
{
    return t->op == GP_TASK_COPY_IN ? t->in[0] : t->out[0];
}

static inline int gp_device_side(const gp_task *t)
{
    return t->op == GP_TASK_COPY_IN ? t->out[0] : t->in[0];
}

static inline bool gp_is_copy(const gp_task *t)
{
    return t->op == GP_TASK_COPY_IN || t->op == GP_TASK_COPY_OUT;
}
