/* axes.c - see axes.h. */
#include "axes.h"

bool gp_axis_of(gp_shape *s, const char *opt, int64_t v, const gp_type *t, int *axis)
{
    char text[128];
    *axis = gp_axis(v, t->ndim);
    return (*axis >= 0 && *axis < t->ndim)
        || gp_shape_fail(s, opt, "'%s' is %lld, and %s has the axes 0 to %d, or -1 to -%d counted from the last",
                         opt, (long long)v, gp_type_text(t, text), t->ndim - 1, t->ndim);
}

bool gp_axes_of(gp_shape *s, const char *opt, const gp_ints *v, const gp_type *t, int axis[GP_MAXDIM])
{
    unsigned set = 0;
    for (int i = 0; i < v->n; i++) {
        int a;
        if (!gp_axis_of(s, opt, v->v[i], t, &a))
            return false;
        if (set >> a & 1)
            return gp_shape_fail(s, opt, "'%s' has axis %d twice", opt, a);
        set |= 1u << a, axis[i] = a;
    }
    return true;
}

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
