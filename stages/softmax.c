/* softmax.c - exp(x) as a part of its sum along an axis, as scipy.special.softmax; see kernels/softmax.cu. */
#include "axes.h"
#include "device.h"

struct opts { int64_t axis; };

static bool shape(gp_shape *s)
{
    const struct opts *o = s->opts;
    int axis;
    if (!gp_axis_of(s, "axis", o->axis, &s->in[0], &axis))
        return false;
    s->out[0] = s->in[0];
    s->batched = true;
    return true;
}

static bool record(gp_dcall *c)
{
    const struct opts *o = c->opts;
    const gp_view *x = c->in, *y = c->out;
    int axis = gp_axis(o->axis, x->type.ndim);
    gp_lanes n = gp_lanes_of(&x->type, axis, axis);
    size_t from = gp_stride(x), to = gp_stride(y);
    return gp_launch_lines(c, "softmax", &n, GP_ARGS((void *)&y->data, &to, (void *)&x->data, &from, &n));
}

#define FLOATS (GP_ACCEPT(GP_F16) | GP_ACCEPT(GP_F32) | GP_ACCEPT(GP_F64))
static const gp_port in[] = { { "in", FLOATS, .help = "numbers, such as the scores of classes" }, { 0 } };
static const gp_port out[] = { { "out", FLOATS, .help = "from 0 to 1, with the sum 1 along the axis; NaN along one "
                                                        "with a NaN" }, { 0 } };

static const gp_opt options[] = {
    { GP_INT(struct opts, axis), .def = "-1", GP_AXIS_RANGE, .help = "along which the sum is 1, negative from the "
                                                                     "last" },
    { 0 }
};

const gp_kind gp_kind_softmax = {
    GP_KIND("softmax"), .field = "arrays",
    .help = "exponentials as parts of their sum along an axis",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .any_shape = true, .shape = shape, .record = record,
};
