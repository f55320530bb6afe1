/* tap.h - copies of frames for who looks at a run (gpipe.h, gp_tap_begin).
 *
 * The thread that publishes a frame copies it, before others may read it or write it again: so a tap takes no slot from
 * the run, and where none waits a frame costs one load. */
#pragma once

#include "run/run.h"

/* The run's threads are about to start; none of them moves frames any more. */
void gp_taps_begin(gp_run *run);
void gp_taps_end(gp_run *run);
/* A copy of frame f of a ring, in whatever memory that is; with the lock of the pipeline's taps. */
bool gp_taps_fetch(gp_run *run, const gp_ringrt *r, uint64_t f, void *to, size_t bytes, gp_errs *errs);

/* finite.c, of a run with check_finite; of others all is finite. Memory for it; without, to run->arena.oom. */
void gp_finite_make(gp_run *run);
/* Is what a host stage made of a frame, which is to be handed in, finite? `errs`: NULL, or gets the first element that is
 * not. */
bool gp_finite_is(const gp_actorrt *p, const gp_frame *fr, gp_errs *errs);
/* Likewise of the n firings of a launch that is done. False: *n gets how many before the first that is not. */
bool gp_finite_launch(const gp_actorrt *p, uint64_t first, int *n, gp_errs *errs);

/* Actor p is about to publish these firings, of which a tap may want a frame. */
void gp_taps_copy(gp_actorrt *p, uint64_t first, int n);
