/* overheads.h - what hand-overs of frames between threads take, as a timed run measures it. */
#pragma once

#include <gpipe/hist.h>

struct gp_run;
struct gp_actorrt;
struct gp_threadrt;

/* What it takes to wake threads that sleep at an eventcount. All are called with its lock; `w` may be NULL. */
struct gp_wakes;
void gp_wakes_begin(struct gp_wakes *w, int64_t start);        /* a thread wakes the others, at `start` */
void gp_wakes_awake(struct gp_wakes *w);                       /* one of them is awake */
void gp_wakes_forget(struct gp_wakes *w);                      /* threads that sleep from now on were not woken yet */
void gp_wakes_end(struct gp_wakes *w, int64_t start);          /* the thread that woke them at `start` is done with it */
/* For an eventcount; NULL: the run is not timed. */
struct gp_wakes *gp_wakes_new(struct gp_run *run);
/* Over all eventcounts: how long until threads were awake, and what waking them took each time. */
void gp_measured_wakes(const struct gp_run *run, gp_hist *late, gp_hist *calls);

/* A turn of t with n frames took so long, of which t->worked_ns in the kind's code. */
void gp_measure_turn(struct gp_threadrt *t, int64_t ns, int n);
/* What turns of p took beside the kind's code, each and for each frame: ns, < 0: not known; and the frames of those
 * that the kind ended before it had done all, where it ends most: the mean; else 0. */
typedef struct gp_turn_cost { double turn, frame, stop; } gp_turn_cost;
gp_turn_cost gp_measured_turns(const struct gp_actorrt *p);
