/* around.h - what lies around a frame that is padded: a value, or what the frame has at its edge. */
#pragma once

#include "gpipe/stage.h"
#include "pad.h"

struct around {
    int64_t before[GP_MAXDIM], after[GP_MAXDIM];       /* elements that each axis gets more */
    int edge;                                          /* as in kernels/pad.h */
    uint64_t value;                                    /* as it lies in memory */
};

/* Queues it for all frames of the call, around frames of type `in` in its output: those of its input, unless a value is
 * around them. */
bool gp_around_record(gp_dcall *c, const gp_type *in, const struct around *around);
