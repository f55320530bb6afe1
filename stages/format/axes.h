/* axes.h - axes as options name them: from 0, or negative from the last; frames with an axis more. */
#pragma once

#include "gpipe/stage.h"

/* One axis of `t`. False with an error at option `opt`. */
bool gp_axis_of(gp_shape *s, const char *opt, int64_t v, const gp_type *t, int *axis);
/* Different axes of `t`. */
bool gp_axes_of(gp_shape *s, const char *opt, const gp_ints *v, const gp_type *t, int axis[GP_MAXDIM]);

/* Axis v of `ndim`, which is one. */
static inline int gp_axis(int64_t v, int ndim)
{
    return (int)(v < 0 ? v + ndim : v);
}

#define GP_AXIS_RANGE .min = -GP_MAXDIM, .max = GP_MAXDIM - 1

/* The output is `frames` frames of the input, as an axis in front. False with an error: it has too many axes. */
bool gp_shape_stack(gp_shape *s, int64_t frames);
