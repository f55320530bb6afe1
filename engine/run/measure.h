/* measure.h - what a timed run notes of its actors while it goes, for report.c, and
 * of a traced one also when each thing was done (trace.h). Only for the executor.
 * Without gp_run_options.timed each call is a test of a flag. */
#pragma once

#include "run/overheads.h"
#include "run/run.h"

/* A wait of t, t->blocked, from begin to end. What its actor lacks is looked at when it begins. Begun again it goes on,
 * and an end without a begin is none. */
void gp_pause_begin(gp_threadrt *t, uint64_t frame);
void gp_pause_end(gp_threadrt *t, uint64_t frame);

/* The time, in a timed run; else 0. */
static inline int64_t gp_measure_now(const gp_run *run)
{
    return run->options.timed ? gp_now_ns() : 0;
}

/* `cpu`: of that, when it was sampled, the CPU time of the thread; else 0. */
typedef struct gp_interval { int64_t start, end, cpu; } gp_interval;

/* The CPU time of the calling thread, which does the work of t, if it is to be sampled this time; else 0. */
int64_t gp_measure_cpu(gp_threadrt *t);
/* ... and how much that is since `since`, which is one of these. */
int64_t gp_measure_cpu_since(int64_t since);

/* Frames [first, first + n) were worked on by a host stage; n may be 0. */
void gp_measure_work(gp_threadrt *t, gp_interval span, uint64_t first, int n);
/* In that time a source waited, from `since` on, for what it reads, or for its time; of a stage on loan: the program had
 * no frame and asked for none. */
void gp_measure_idle(gp_threadrt *t, int64_t since);
/* A launch of frames [first, first + n) was queued; calling the device took since `since`. */
void gp_measure_launch(gp_threadrt *t, int64_t since, uint64_t first, int n);
/* Frames [first, first + n) of actor p move on: outputs published, inputs given back. */
void gp_measure_move_(gp_actorrt *p, uint64_t first, int n);
static inline void gp_measure_move(gp_actorrt *p, uint64_t first, int n)
{
    if (p->run->options.timed)
        gp_measure_move_(p, first, n);
}
/* Actor p takes no frame from `end` on, nor anything else. */
void gp_measure_end(gp_actorrt *p, uint64_t end);
/* For how long reader `l` had frames up to `now`, each for itself; up to its end, if that
 * was before. */
int64_t gp_measure_held(const gp_run *run, const gp_ring_end *l, int64_t now);
