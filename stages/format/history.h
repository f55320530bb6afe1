/* history.h - the last rows of a signal, carried from frame to frame in shape.state. */
#pragma once

#include "gpipe/stage.h"

/* Queues c->carried = the last `past` bytes of itself and of the `bytes` at x. Where x is shorter, what is left of it
 * moves up through c->scratch, which has room for `past` bytes. */
bool gp_history(gp_dcall *c, size_t past, const void *x, size_t bytes);
