/* power.c - the square of each sample's magnitude. */
#include "device.h"

static bool shape(gp_shape *s)
{
    bool complex = s->in[0].dtype == GP_C64;
    s->out[0] = s->in[0];
    if (complex)
        s->out[0].dtype = GP_F32;
    s->batched = true;
    s->expr = complex ? "re(in) * re(in) + im(in) * im(in)" : "in * in";
    return true;
}

static bool record(gp_dcall *c)
{
    const gp_view *x = c->in, *y = c->out;
    size_t n = (size_t)gp_count(&x->type), xs = gp_stride(x), ys = gp_stride(y);
    return gp_launch_typed(c, "power", x->type.dtype, (int64_t)n,
                           GP_ARGS((void *)&y->data, &ys, (void *)&x->data, &xs, &n));
}

static const gp_port in[] = {
    { "in", GP_ACCEPT(GP_F32) | GP_ACCEPT(GP_F64) | GP_ACCEPT(GP_C64), .help = "numbers" }, { 0 }
};
static const gp_port out[] = {
    { "out", GP_ACCEPT(GP_F32) | GP_ACCEPT(GP_F64), .help = "|x|^2; f32 of c64, else the same type" }, { 0 }
};

const gp_kind gp_kind_power = {
    GP_KIND("power"), .field = "signals",
    .help = "|x|^2 of each sample",
    .in = in, .out = out,
    .any_shape = true, .elementwise = true, .shape = shape, .record = record,
};
