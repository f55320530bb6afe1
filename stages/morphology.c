/* morphology.c - erosion and dilation by a rectangle, as two passes each: down the columns, along the rows. */
#include <stdio.h>
#include "device.h"

enum { ERODE, DILATE, OPEN, CLOSE };

struct opts { int op; gp_ints size; };

static int64_t side(const struct opts *o, int axis)
{
    return o->size.v[o->size.n == 2 ? axis : 0];
}

static bool check(gp_shape *s)
{
    const struct opts *o = s->opts;
    if (o->size.n > 2)
        return gp_shape_fail(s, "size", "'size' is a list of %d; give [H, W], or one number for both", o->size.n);
    for (int k = 0; k < o->size.n; k++)
        if (o->size.v[k] % 2 == 0)
            return gp_shape_fail(s, "size", "'size' is %lld, which has no middle pixel: give odd sizes",
                                 (long long)o->size.v[k]);
    return true;
}

static bool twice(const struct opts *o)
{
    return o->op == OPEN || o->op == CLOSE;
}

static bool shape(gp_shape *s)
{
    const struct opts *o = s->opts;
    const gp_type *in = &s->in[0];
    if (!gp_shape_image(s, true))
        return false;
    s->out[0] = *in;
    s->scratch = (1 + twice(o)) * ((gp_bytes(in) + 255) / 256 * 256);
    s->batched = true, s->by_place = side(o, 0) > 1;
    return true;
}

/* From src to dst by way of `between`, of each the first frame's. */
static bool queue(gp_dcall *c, const char *op, void *dst, size_t ds, void *between, size_t bs, const void *src,
                  size_t ss)
{
    const struct opts *o = c->opts;
    const gp_type *t = &c->in->type;
    int rows = (int)t->dim[0], channels = t->ndim == 3 ? (int)t->dim[2] : 1, width = (int)t->dim[1] * channels;
    int y = (int)(side(o, 0) / 2), x = (int)(side(o, 1) / 2);
    char down[40], across[40];
    snprintf(down, sizeof down, "morphology_y_%s_%s", op, gp_dtype_name(t->dtype));
    snprintf(across, sizeof across, "morphology_x_%s_%s", op, gp_dtype_name(t->dtype));
    return gp_launch_image(c, down, rows, width, GP_ARGS(&between, &bs, &src, &ss, &rows, &width, &y))
        && gp_launch_image(c, across, rows, width, GP_ARGS(&dst, &ds, &between, &bs, &rows, &width, &channels, &x));
}

static bool record(gp_dcall *c)
{
    const struct opts *o = c->opts;
    const gp_view *x = c->in, *y = c->out;
    size_t xs = gp_stride(x), ys = gp_stride(y), bs = c->scratch_stride / gp_dtype_size(x->type.dtype);
    void *second = (char *)c->scratch + (gp_bytes(&x->type) + 255) / 256 * 256;
    const char *first = o->op == ERODE || o->op == OPEN ? "min" : "max", *then = o->op == OPEN ? "max" : "min";
    if (!twice(o))
        return queue(c, first, y->data, ys, c->scratch, bs, x->data, xs);
    return queue(c, first, second, bs, c->scratch, bs, x->data, xs)
        && queue(c, then, y->data, ys, c->scratch, bs, second, bs);
}

static const gp_port in[] = { { "in", GP_ACCEPT_REAL, .help = "an image (H, W) or (H, W, C)" }, { 0 } };
static const gp_port out[] = {
    { "out", GP_ACCEPT_REAL, .help = "the image, each channel filtered; NaN where a NaN is near" }, { 0 }
};

static const gp_opt options[] = {
    { GP_ENUM(struct opts, op), .required = true, .choices = "erode|dilate|open|close",
      .help = "the least of each pixel's neighbors; the most; erode, then dilate: removes bright specks; dilate, "
              "then erode" },
    { GP_INTS(struct opts, size), .def = "3", .min = 1, .max = 1023, .unit = "px",
      .help = "of the rectangle, [H, W], odd; one number is for both; what is beyond the border does not count" },
    { 0 }
};

const gp_kind gp_kind_morphology = {
    GP_KIND("morphology"), .field = "pictures",
    .help = "erode, dilate, open, close, by a rectangle",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .any_shape = true, .by_place = true, .check = check, .shape = shape, .record = record,
};
