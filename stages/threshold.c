/* threshold.c - one of two values: x > level ? above : below. */
#include <math.h>
#include "base/half.h"
#include "base/num.h"
#include "device.h"
#include "number.h"

struct opts { gp_num level, below, above; };

/* The largest f16 that is not above a level, which is an f32, as where `expr` compares f16. */
static double half_below(float level)
{
    uint16_t h = gp_half_from_double(level);
    if (gp_half_to_float(h) > level)
        h = (uint16_t)(h & 0x8000 ? h + 1 : h - 1);
    return gp_half_to_float(h);
}

/* As an element of type t: of integers x > 2.5 is x > 2, and of f16 x > 2049.5 is x > 2048. */
static gp_num level_of(const struct opts *o, gp_dtype t)
{
    gp_num level = o->level;
    if (!level.is_int && t < GP_F16)
        level.f = floor(level.f);
    else if (t == GP_F16)
        level = (gp_num){ .f = half_below((float)level.f) };
    return level;
}

static bool shape(gp_shape *s)
{
    const struct opts *o = s->opts;
    gp_dtype t = s->in[0].dtype;
    gp_num level = level_of(o, t);

    s->out[0] = s->in[0];
    s->batched = true;
    if (t == GP_F32 || gp_dtype_size(t) == 1 || t == GP_U16 || t == GP_I16)
        s->expr = "in > level ? above : below";    /* f32 holds all of these */
    return ((t == GP_F16 && isfinite(o->level.f)) || gp_num_fits(&level, t) || gp_number_fits(s, "level", &o->level, t))
        && gp_number_fits(s, "below", &o->below, t) && gp_number_fits(s, "above", &o->above, t);
}

static bool record(gp_dcall *c)
{
    const struct opts *o = c->opts;
    const gp_view *x = c->in, *y = c->out;
    gp_dtype t = x->type.dtype;
    size_t n = (size_t)gp_count(&x->type), xs = gp_stride(x), ys = gp_stride(y);
    gp_num exact = level_of(o, t);
    uint64_t level = gp_number_bits(&exact, t), below = gp_number_bits(&o->below, t);
    uint64_t above = gp_number_bits(&o->above, t);

    return gp_launch_typed(c, "threshold", t, (int64_t)n,
                           GP_ARGS((void *)&y->data, &ys, (void *)&x->data, &xs, &n,
                                   &level, &below, &above));
}

static const gp_port in[] = { { "in", GP_ACCEPT_REAL, .help = "numbers" }, { 0 } };
static const gp_port out[] = {
    { "out", GP_ACCEPT_REAL, .help = "`above` or `below`, the same type" }, { 0 }
};

static const gp_opt options[] = {
    { GP_NUM(struct opts, level), .required = true,
      .help = "what is greater gives `above`, all else and NaN `below`; for f32 and f16 it is the nearest f32, as in "
              "`expr`" },
    { GP_NUM(struct opts, below), .def = "0", .help = "the value up to the level" },
    { GP_NUM(struct opts, above), .def = "1", .help = "the value above the level" },
    { 0 }
};

const gp_kind gp_kind_threshold = {
    GP_KIND("threshold"), .field = "pictures",
    .help = "one value above a level, another up to it",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .any_shape = true, .elementwise = true, .shape = shape, .record = record,
};
