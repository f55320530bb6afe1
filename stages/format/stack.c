/* stack.c - see stack.h. */
#include "stack.h"

bool gp_shape_stack(gp_shape *s, int64_t frames)
{
    const gp_type *in = &s->in[0];
    gp_type *out = &s->out[0];
    char text[128];
    if (in->ndim == GP_MAXDIM)
        return gp_shape_fail(s, NULL, "%s already has %d axes, the most that a frame may have", gp_type_text(in, text),
                             GP_MAXDIM);
    *out = (gp_type){ .dtype = in->dtype, .ndim = in->ndim + 1, .dim = { frames } };
    for (int d = 0; d < in->ndim; d++)
        out->dim[d + 1] = in->dim[d];
    return true;
}
