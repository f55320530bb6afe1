/* scale.c - a x + b. */
#include "device.h"

struct opts { double a, b; };

static bool shape(gp_shape *s)
{
    s->out[0] = s->in[0];
    s->batched = true;
    if (s->in[0].dtype != GP_C64)
        s->expr = "a * in + b";
    return true;
}

static bool record(gp_dcall *c)
{
    const struct opts *o = c->opts;
    const gp_view *x = c->in, *y = c->out;
    size_t n = (size_t)gp_count(&x->type), xs = gp_stride(x), ys = gp_stride(y);
    float a = (float)o->a, b = (float)o->b;
    bool wide = x->type.dtype == GP_F64;
    void *pa = wide ? (void *)&o->a : &a, *pb = wide ? (void *)&o->b : &b;
    return gp_launch_typed(c, "scale", x->type.dtype, (int64_t)n,
                           GP_ARGS((void *)&y->data, &ys, (void *)&x->data, &xs, &n, pa, pb));
}

#define FLOATS (GP_ACCEPT(GP_F16) | GP_ACCEPT(GP_F32) | GP_ACCEPT(GP_F64) | GP_ACCEPT(GP_C64))
static const gp_port in[] = { { "in", FLOATS, .help = "numbers" }, { 0 } };
static const gp_port out[] = { { "out", FLOATS, .help = "a x + b, the same type" }, { 0 } };

static const gp_opt options[] = {
    { GP_FLOAT(struct opts, a), .def = "1", .help = "the factor; f16 is computed in f32" },
    { GP_FLOAT(struct opts, b), .def = "0", .help = "added after; to the real part of c64" },
    { 0 }
};

const gp_kind gp_kind_scale = {
    GP_KIND("scale"), .field = "arrays",
    .help = "multiply by a number and add a number",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .any_shape = true, .elementwise = true, .shape = shape, .record = record,
};
