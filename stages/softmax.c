/* softmax.c - exp(x) as a part of its sum along an axis, as scipy.special.softmax; see kernels/softmax.cu. */
#include <stdio.h>
#include "axes.h"
#include "device.h"

struct opts { int64_t axis; };

enum { BLOCK = 256, COLUMNS = 32, BLOCKS = 1 << 14 };

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
    const gp_type *t = &x->type;
    int axis = gp_axis(o->axis, t->ndim);
    size_t outer = 1, rows = (size_t)t->dim[axis], inner = 1, from = gp_stride(x), to = gp_stride(y);
    unsigned lanes = 1;
    char kernel[32];

    for (int k = 0; k < axis; k++)
        outer *= (size_t)t->dim[k];
    for (int k = axis + 1; k < t->ndim; k++)
        inner *= (size_t)t->dim[k];
    while (2 * lanes <= rows && lanes < (inner == 1 ? BLOCK : BLOCK / COLUMNS))
        lanes *= 2;
    size_t blocks = (outer * inner * lanes + BLOCK - 1) / BLOCK;
    bool cpu = gp_rec_on_cpu(c);
    snprintf(kernel, sizeof kernel, "softmax_%s", gp_dtype_name(t->dtype));
    return gp_launch(c, kernel, (gp_dim3){ (unsigned)(blocks < BLOCKS ? blocks : BLOCKS), 1, (unsigned)c->n },
                     (gp_dim3){ cpu ? 1 : BLOCK, 1, 1 }, BLOCK * sizeof(double),
                     GP_ARGS((void *)&y->data, &to, (void *)&x->data, &from, &outer, &rows, &inner, &lanes));
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
