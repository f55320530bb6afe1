/* median.c - the median of each pixel's neighbors, see kernels/median.cu. */
#include <stdio.h>
#include "device.h"

struct opts { int64_t size; int edge; };

static bool check(gp_shape *s)
{
    const struct opts *o = s->opts;
    return o->size % 2
        || gp_shape_fail(s, "size", "'size' is %lld, which has no middle pixel: give 3, 5 or 7",
                         (long long)o->size);
}

static bool shape(gp_shape *s)
{
    const gp_type *in = &s->in[0];
    if (!gp_shape_image(s, true))
        return false;
    s->out[0] = *in;
    s->batched = true, s->by_place = 1;
    return true;
}

static bool record(gp_dcall *c)
{
    const struct opts *o = c->opts;
    const gp_view *x = c->in, *y = c->out;
    size_t xs = gp_stride(x), ys = gp_stride(y);
    int rows = (int)x->type.dim[0], cols = (int)x->type.dim[1], channels = x->type.ndim == 3 ? (int)x->type.dim[2] : 1;
    int size = (int)o->size, nearest = o->edge;
    char kernel[32];
    snprintf(kernel, sizeof kernel, "median_%s", gp_dtype_name(x->type.dtype));
    return gp_launch_image(c, kernel, rows, (int64_t)cols * channels,
                           GP_ARGS((void *)&y->data, &ys, (void *)&x->data, &xs, &rows, &cols, &channels, &size,
                                   &nearest));
}

#define ACCEPT (GP_ACCEPT(GP_U8) | GP_ACCEPT(GP_U16) | GP_ACCEPT(GP_I16) | GP_ACCEPT(GP_F32))
static const gp_port in[] = { { "in", ACCEPT, .help = "an image (H, W) or (H, W, C)" }, { 0 } };
static const gp_port out[] = {
    { "out", ACCEPT, .help = "the image, each channel filtered; NaN where a NaN is near" }, { 0 }
};

static const gp_opt options[] = {
    { GP_INT(struct opts, size), .def = "3", .min = 3, .max = 7, .unit = "px", .help = "of the square: 3, 5 or 7" },
    { GP_ENUM(struct opts, edge), .def = "reflect", .choices = "reflect|nearest",
      .help = "beyond the border: mirrored (cba|abc), or the border pixel" },
    { 0 }
};

const gp_kind gp_kind_median = {
    GP_KIND("median"), .field = "pictures",
    .also = "median_filter medfilt",
    .help = "the median of each pixel's neighbors: removes specks",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .any_shape = true, .by_place = true, .check = check, .shape = shape, .record = record,
};
