/* blur.c - Gaussian blur, as two passes of a one-dimensional filter: down the
 * columns into scratch, then along the rows. */
#include <math.h>
#include <stdio.h>
#include "device.h"

struct opts {
    double sigma;
    int64_t radius;
    int edge;                              /* as in kernels/blur.cu */
};

static int64_t radius(const struct opts *o)
{
    return o->radius >= 0 ? o->radius : (int64_t)ceil(3 * o->sigma);
}

static bool shape(gp_shape *s)
{
    if (!gp_shape_image(s, true))
        return false;
    s->out[0] = s->in[0];
    s->batched = true, s->by_place = 1;
    s->scratch = sizeof(float) * (size_t)gp_count(&s->in[0]);
    s->table = sizeof(float) * (size_t)(2 * radius(s->opts) + 1);
    return true;
}

/* exp(-k^2 / (2 sigma^2)), with sum 1. */
static bool table(const gp_table_call *t)
{
    const struct opts *o = t->opts;
    int64_t r = radius(o);
    float *w = t->data;
    double sum = 0;
    for (int64_t k = -r; k <= r; k++)
        sum += exp(-0.5 * (double)(k * k) / (o->sigma * o->sigma));
    for (int64_t k = -r; k <= r; k++)
        w[k + r] = (float)(exp(-0.5 * (double)(k * k) / (o->sigma * o->sigma)) / sum);
    return true;
}

static bool record(gp_dcall *c)
{
    const struct opts *o = c->opts;
    const gp_view *x = c->in, *y = c->out;
    size_t xs = gp_stride(x), ys = gp_stride(y), ts = c->scratch_stride / sizeof(float);
    int rows = (int)x->type.dim[0], cols = (int)x->type.dim[1];
    int channels = x->type.ndim == 3 ? (int)x->type.dim[2] : 1;
    int r = (int)radius(o), edge = o->edge;
    char down[16], along[16];

    snprintf(down, sizeof down, "blur_y_%s", gp_dtype_name(x->type.dtype));
    snprintf(along, sizeof along, "blur_x_%s", gp_dtype_name(x->type.dtype));
    return gp_launch_image(c, down, (rows + 3) / 4, (int64_t)cols * channels,
                           GP_ARGS(&c->scratch, &ts, (void *)&x->data, &xs, &rows, &cols,
                                   &channels, &c->table, &r, &edge))
        && gp_launch_image(c, along, rows, (int64_t)(cols + 3) / 4 * channels,
                           GP_ARGS((void *)&y->data, &ys, &c->scratch, &ts, &rows, &cols,
                                   &channels, &c->table, &r, &edge));
}

static const gp_port in[] = {
    { "in", GP_ACCEPT_PIXELS, .help = "an image (H, W) or (H, W, C)" }, { 0 }
};
static const gp_port out[] = {
    { "out", GP_ACCEPT_PIXELS, .help = "the image, each channel blurred; summed in f32 and rounded once, to the nearest" }, { 0 }
};

static const gp_opt options[] = {
    { GP_FLOAT(struct opts, sigma), .required = true, .min = 0.01, .max = 1000, .unit = "px",
      .help = "standard deviation" },
    { GP_INT(struct opts, radius), .def = "-1", .min = -1, .max = 10000, .unit = "px",
      .help = "how far the filter reaches; -1: 3 sigma, rounded up" },
    { GP_ENUM(struct opts, edge), .def = "reflect", .choices = "reflect|nearest|zero",
      .help = "beyond the border: mirrored (cba|abc), the border pixel, or 0" },
    { 0 }
};

const gp_kind gp_kind_blur = {
    GP_KIND("blur"), .field = "pictures",
    .also = "gaussian gaussian_blur gaussianblur gaussian_filter",
    .help = "Gaussian blur",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .any_shape = true, .by_place = true, .shape = shape, .record = record, .table = table,
};
