/* threshold.c - one of two values: x > level ? above : below. */
#include <math.h>
#include "device.h"

struct opts { double level, below, above; };

/* The integers of type t; doubles hold the ends nearly enough: what is not less
 * than `end` does not fit. False for floats. */
static bool integer_range(gp_dtype t, double *min, double *end)
{
    int bits = (int)(8 * gp_dtype_size(t));
    bool is_signed = t == GP_I8 || t == GP_I16 || t == GP_I32 || t == GP_I64;
    if (t == GP_F16 || t == GP_F32 || t == GP_F64)
        return false;
    *min = is_signed ? -ldexp(1, bits - 1) : 0;
    *end = ldexp(1, is_signed ? bits - 1 : bits);
    return true;
}

static bool shape(gp_shape *s)
{
    const struct opts *o = s->opts;
    gp_dtype t = s->in[0].dtype;
    double min, end;
    const struct { const char *name; double v; bool whole; } v[] = {
        { "level", o->level, false }, { "below", o->below, true }, { "above", o->above, true },
    };

    s->out[0] = s->in[0];
    s->batched = true;
    if (t == GP_F32 || gp_dtype_size(t) == 1 || t == GP_U16 || t == GP_I16)
        s->expr = "in > level ? above : below";    /* f32 holds all of these */
    for (int i = 0; i < 3 && integer_range(t, &min, &end); i++)
        if (v[i].v < min || v[i].v >= end || (v[i].whole && v[i].v != floor(v[i].v)))
            return gp_shape_fail(s, v[i].name, "'%s' is %g, which '%s' does not hold; give "
                                 "another, or put a 'cast' before this stage",
                                 v[i].name, v[i].v, gp_dtype_name(t));
    return true;
}

static bool record(gp_dcall *c)
{
    const struct opts *o = c->opts;
    const gp_view *x = c->in, *y = c->out;
    size_t n = (size_t)gp_count(&x->type), xs = gp_stride(x), ys = gp_stride(y);
    double min, end, level = o->level, below = o->below, above = o->above;

    if (integer_range(x->type.dtype, &min, &end))
        level = floor(level);           /* x > 2.5 is x > 2 */
    return gp_launch_typed(c, "threshold", x->type.dtype, (int64_t)n,
                           GP_ARGS((void *)&y->data, &ys, (void *)&x->data, &xs, &n,
                                   &level, &below, &above));
}

static const gp_port in[] = { { "in", GP_ACCEPT_REAL, .help = "numbers" }, { 0 } };
static const gp_port out[] = {
    { "out", GP_ACCEPT_REAL, .help = "`above` or `below`, the same type" }, { 0 }
};

static const gp_opt options[] = {
    { GP_FLOAT(struct opts, level), .required = true,
      .help = "what is greater gives `above`, all else and NaN `below`" },
    { GP_FLOAT(struct opts, below), .def = "0", .help = "the value up to the level" },
    { GP_FLOAT(struct opts, above), .def = "1", .help = "the value above the level" },
    { 0 }
};

const gp_kind gp_kind_threshold = {
    GP_KIND("threshold"), .field = "pictures",
    .help = "one value above a level, another up to it",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .any_shape = true, .elementwise = true, .shape = shape, .record = record,
};
