/* cast.c - another element type. It is cast on the host where that makes what crosses to or from the device smaller
 * (compile/borders.c), with the same bits. */
#include <stdio.h>
#include "base/convert.h"
#include "device.h"

struct opts { gp_dtype dtype; };

enum { HOST_BYTES = 4 };               /* that a core takes in per ns */

static bool shape(gp_shape *s)
{
    const struct opts *o = s->opts;
    const gp_type *in = &s->in[0];
    char text[128];

    s->out[0] = *in;
    s->out[0].dtype = o->dtype;
    s->batched = true;
    s->busy_ns = (int64_t)gp_bytes(in) / HOST_BYTES;
    if (in->dtype != GP_C64 && o->dtype != GP_C64)
        s->expr = "in";
    if (o->dtype == in->dtype)
        return true;
    if (in->dtype == GP_C64)
        return gp_shape_fail(s, "dtype", "c64 cannot become '%s': a number has two parts; take "
                             "the one you want: {use: expr, expr: \"re(in)\"}, or im(in), abs(in)",
                             gp_dtype_name(o->dtype));
    if (o->dtype == GP_C64) {
        if (in->ndim < 2 || in->dim[in->ndim - 1] != 2)
            return gp_shape_fail(s, "dtype", "only a last axis of 2, (re, im), of two axes or "
                                 "more can become 'c64', not %s", gp_type_text(in, text));
        s->out[0].dim[--s->out[0].ndim] = 0;
    }
    return true;
}

static bool record(gp_dcall *c)
{
    const gp_view *x = c->in, *y = c->out;
    gp_dtype from = x->type.dtype, to = y->type.dtype;
    size_t n = (size_t)gp_count(&x->type);
    char name[32];

    if (from == GP_C64)                 /* c64 is two f32 */
        from = GP_F32, n *= 2;
    if (to == GP_C64)
        to = GP_F32;
    size_t xs = x->stride / gp_dtype_size(from), ys = y->stride / gp_dtype_size(to);
    snprintf(name, sizeof name, "cast_%s", gp_dtype_name(from));
    return gp_launch_typed(c, name, to, (int64_t)n,
                           GP_ARGS((void *)&y->data, &ys, (void *)&x->data, &xs, &n));
}

static bool run(gp_call *c, gp_frame *frames, int n)
{
    for (int i = 0; i < n; i++) {
        const gp_view *x = frames[i].in, *y = frames[i].out;
        gp_dtype from = x->type.dtype, to = y->type.dtype;
        size_t parts = from == GP_C64 ? 2 : 1;
        gp_convert(y->data, to == GP_C64 ? GP_F32 : to, x->data, from == GP_C64 ? GP_F32 : from,
                   parts * (size_t)gp_count(&x->type));
    }
    return true;
}

static const gp_port in[] = { { "in", GP_ACCEPT_ANY, .help = "numbers" }, { 0 } };
static const gp_port out[] = { { "out", GP_ACCEPT_ANY, .help = "the same, as `dtype`" }, { 0 } };

static const gp_opt options[] = {
    { GP_DTYPE(struct opts, dtype), .required = true,
      .help = "integers: nearest even, saturating, NaN as 0; c64: from a last axis of 2" },
    { 0 }
};

const gp_kind gp_kind_cast = {
    GP_KIND("cast"), .field = "arrays",
    .also = "convert astype",
    .help = "change the element type",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .any_shape = true, .elementwise = true, .shape = shape, .run = run, .record = record,
};
