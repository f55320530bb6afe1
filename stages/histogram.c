/* histogram.c - how many elements of a frame lie in each part of a range, see kernels/histogram.cu. */
#include <math.h>
#include <stdio.h>
#include "device.h"
#include "number.h"

struct opts { int64_t bins; gp_floats range; };

enum { MOST = 8192, BLOCK = 256, BLOCKS = 1024, EACH = 64 };

struct histogram_range { double low, high, step, scale; int bins; };     /* as in kernels/histogram.cu */

/* Without a `range` that of the type, where that has one: 0 to 256 for u8, so that a bin has one value. */
static struct histogram_range range_of(const struct opts *o, gp_dtype t)
{
    double end = ldexp(1, (int)(8 * gp_dtype_size(t))), low = t == GP_I8 || t == GP_I16 ? -end / 2 : 0;
    double high = low + end;
    if (o->range.n)
        low = o->range.v[0], high = o->range.v[1];
    double bins = (double)o->bins;
    return (struct histogram_range){ low, high, (high - low) / bins, bins / (high - low), (int)o->bins };
}

static bool check(gp_shape *s)
{
    return gp_number_range(s, &((const struct opts *)s->opts)->range);
}

static bool shape(gp_shape *s)
{
    const struct opts *o = s->opts;
    gp_dtype t = s->in[0].dtype;
    if (!o->range.n && (gp_dtype_size(t) > 2 || t == GP_F16))
        return gp_shape_fail(s, NULL, "needs a 'range', as the values of %s have no fixed range: range: [0, 1]",
                             gp_dtype_name(t));
    s->out[0] = (gp_type){ GP_I64, 1, { o->bins } };
    s->fixed = 1;
    s->none[0] = GP_NONE_ZERO;
    s->batched = true;
    return true;
}

static bool record(gp_dcall *c)
{
    const struct opts *o = c->opts;
    const gp_view *x = c->in, *y = c->out;
    size_t n = (size_t)gp_count(&x->type), xs = gp_stride(x), ys = gp_stride(y);
    struct histogram_range r = range_of(o, x->type.dtype);
    bool cpu = gp_rec_on_cpu(c);
    char kernel[32];
    if (!gp_fill_frames(c, y, 0))
        return false;
    snprintf(kernel, sizeof kernel, "histogram_%s", gp_dtype_name(x->type.dtype));
    return gp_launch(c, kernel, (gp_dim3){ cpu ? 1 : gp_blocks((int64_t)n, BLOCK * EACH, BLOCKS), 1, (unsigned)c->n },
                     (gp_dim3){ cpu ? 1 : BLOCK, 1, 1 }, sizeof(unsigned) * (size_t)o->bins,
                     GP_ARGS((void *)&y->data, &ys, (void *)&x->data, &xs, &n, &r));
}

#define ACCEPT (GP_ACCEPT_REAL & ~GP_ACCEPT(GP_U64) & ~GP_ACCEPT(GP_I64))
static const gp_port in[] = { { "in", ACCEPT, .help = "numbers; NaN and what is outside of the range are not "
                                                      "counted" }, { 0 } };
static const gp_port out[] = { { "out", GP_ACCEPT(GP_I64), .help = "(bins): how many, i64" }, { 0 } };

static const gp_opt options[] = {
    { GP_INT(struct opts, bins), .def = "256", .min = 1, .max = MOST, .help = "equal parts of the range" },
    { GP_FLOATS(struct opts, range),
      .help = "[low, high]; high is in the last bin; when left out [0, 256] for u8, that of the type for i8, u16, "
              "i16" },
    { 0 }
};

const gp_kind gp_kind_histogram = {
    GP_KIND("histogram"), .field = "pictures",
    .help = "how many elements lie in each part of a range",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .any_shape = true, .of_none = true, .check = check, .shape = shape, .record = record,
};
