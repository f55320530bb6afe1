/* quantiles.h - quantiles over some axes, see kernels/quantile.cu. */
#pragma once

#include "gpipe/stage.h"

/* Bytes of scratch a frame of type `in`, for `count` quantiles over the set `axes`. */
size_t gp_quantile_scratch(const gp_type *in, unsigned axes, int count);
/* Queues them: those of each line of the axes that are left lie side by side in the output. `q`: in device memory. */
bool gp_quantile_record(gp_dcall *c, unsigned axes, int count, const double *q);
