/* db.c - decibels of powers. */
#include "device.h"

struct opts { double reference, floor; };

static bool shape(gp_shape *s)
{
    s->out[0] = s->in[0];
    s->batched = true;
    s->expr = "max(in / reference > 1e37 ? 10 * log10(in * 7.888609052210118e-31 / reference) + 301.029995663981195"
              " : in / reference < 1e-37 ? 10 * log10(in * 1.7014118346046923e38 / reference) - 382.308094493256118"
              " : 10 * log10(in / reference), floor)";
    return true;
}

static bool record(gp_dcall *c)
{
    const struct opts *o = c->opts;
    const gp_view *x = c->in, *y = c->out;
    size_t n = (size_t)gp_count(&x->type), xs = gp_stride(x), ys = gp_stride(y);
    float reference = (float)o->reference, floor = (float)o->floor;
    bool wide = x->type.dtype == GP_F64;
    return gp_launch_typed(c, "db", x->type.dtype, (int64_t)n,
                           GP_ARGS((void *)&y->data, &ys, (void *)&x->data, &xs, &n,
                                   wide ? (void *)&o->reference : &reference, wide ? (void *)&o->floor : &floor));
}

#define FLOATS (GP_ACCEPT(GP_F32) | GP_ACCEPT(GP_F64))
static const gp_port in[] = { { "in", FLOATS, .help = "powers, as `power` makes them" }, { 0 } };
static const gp_port out[] = { { "out", FLOATS, .help = "10 log10(x / reference); NaN of what is below 0" }, { 0 } };

static const gp_opt options[] = {
    { GP_FLOAT(struct opts, reference), .def = "1", .min = 1e-30, .max = 1e30, .help = "the power that is 0 dB" },
    { GP_FLOAT(struct opts, floor), .def = "-200", .min = -1000, .max = 1000, .unit = "dB",
      .help = "what all below it becomes, so that a power of 0 is a number" },
    { 0 }
};

const gp_kind gp_kind_db = {
    GP_KIND("db"), .field = "signals",
    .help = "powers in decibels",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .any_shape = true, .elementwise = true, .shape = shape, .record = record,
};
