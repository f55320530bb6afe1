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
