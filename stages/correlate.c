/* correlate.c - how alike two signals are when one is shifted: the sums of products, lag by lag, of each frame by
 * itself. */
#include <stdio.h>
#include "device.h"

struct opts { int64_t lags; };

enum { PART = 1024 };                      /* as in kernels/correlate.cu */

static size_t places_of(const struct opts *o, const gp_type *t)
{
    return (2 * (size_t)o->lags + 1) * (size_t)(gp_count(t) / t->dim[0]);
}

static size_t sum_bytes(gp_dtype t) { return t == GP_C64 ? 2 * sizeof(double) : sizeof(double); }

static bool shape(gp_shape *s)
{
    const struct opts *o = s->opts;
    const gp_type *a = &s->in[0], *b = &s->in[1];
    char x[128], y[128];
    if (!gp_type_same(a, b))
        return gp_shape_fail(s, NULL, "'a' is %s, and 'b' is %s: both must be alike", gp_type_text(a, x),
                             gp_type_text(b, y));
    s->out[0] = *a;
    s->out[0].dim[0] = 2 * o->lags + 1;
    s->scratch = (size_t)((a->dim[0] + PART - 1) / PART) * places_of(o, a) * sum_bytes(a->dtype);
    s->by_place = 3;
    s->none[0] = GP_NONE_ZERO;
    s->batched = true;
    return true;
}

static bool record(gp_dcall *c)
{
    const struct opts *o = c->opts;
    const gp_view *a = &c->in[0], *b = &c->in[1], *y = c->out;
    gp_dtype t = a->type.dtype;
    size_t n = (size_t)a->type.dim[0], channels = (size_t)gp_count(&a->type) / n, lags = (size_t)o->lags;
    size_t places = places_of(o, &a->type), parts = (n + PART - 1) / PART, next = c->scratch_stride / sum_bytes(t);
    size_t as = gp_stride(a), bs = gp_stride(b), ys = gp_stride(y);
    char of_parts[32], all[32];

    snprintf(of_parts, sizeof of_parts, "correlate_parts_%s", gp_dtype_name(t));
    snprintf(all, sizeof all, "correlate_%s", gp_dtype_name(t));
    return gp_launch_map(c, of_parts, (int64_t)(parts * places),
                         GP_ARGS(&c->scratch, &next, (void *)&a->data, &as, (void *)&b->data, &bs, &n, &channels,
                                 &lags))
        && gp_launch_map(c, all, (int64_t)places,
                         GP_ARGS((void *)&y->data, &ys, &c->scratch, &next, &places, &parts));
}

#define SIGNALS (GP_ACCEPT(GP_F32) | GP_ACCEPT(GP_F64) | GP_ACCEPT(GP_C64))
static const gp_port in[] = {
    { "a", SIGNALS, .help = "a signal: rows in time, all else are channels" },
    { "b", SIGNALS, .help = "another, of the same shape; or the same" }, { 0 }
};
static const gp_port out[] = {
    { "out", SIGNALS, .help = "[2 lags + 1, ...]: row k is the sum of a[i + k - lags] conj(b[i]), so that the middle "
      "one is of no lag; summed in f64" }, { 0 }
};

static const gp_opt options[] = {
    { GP_INT(struct opts, lags), .required = true, .min = 0, .max = 1 << 20, .unit = "samples",
      .help = "how far a is shifted, in either direction; each lag costs a product for each sample" },
    { 0 }
};

const gp_kind gp_kind_correlate = {
    GP_KIND("correlate"), .field = "signals",
    .help = "cross-correlation of two signals by lags, within a frame",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .any_shape = true, .by_place = true, .of_none = true, .shape = shape, .record = record,
};
