/* tap.h - copies of frames for who looks at a run (gpipe.h, gp_tap_begin).
 *
 * The thread that publishes a frame copies it, before others may read it or write it again: so a tap takes no slot from
 * the run, and where none waits a frame costs one load. */
#pragma once

#include "run/run.h"

/* The run's threads are about to start; none of them moves frames any more. */
void gp_taps_begin(gp_run *run);
void gp_taps_end(gp_run *run);
/* Actor p is about to publish these firings, of which a tap may want a frame. */
void gp_taps_copy(gp_actorrt *p, uint64_t first, int n);
