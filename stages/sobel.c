/* sobel.c - the gradient of an image: its magnitude, or one component. */
#include <stdio.h>
#include "device.h"

struct opts { int output; };               /* as in kernels/sobel.cu */

static bool shape(gp_shape *s)
{
    s->out[0] = s->in[0];
    s->out[0].dtype = s->in[0].dtype == GP_F16 ? GP_F16 : GP_F32;
    s->batched = true, s->by_place = 1;
    return gp_shape_image(s, false);
}

static bool record(gp_dcall *c)
{
    const struct opts *o = c->opts;
    const gp_view *x = c->in, *y = c->out;
    size_t xs = gp_stride(x), ys = gp_stride(y);
    int rows = (int)x->type.dim[0], cols = (int)x->type.dim[1], output = o->output;
    char kernel[16];
    snprintf(kernel, sizeof kernel, "sobel_%s", gp_dtype_name(x->type.dtype));
    return gp_launch_image(c, kernel, (rows + 3) / 4, cols,
                           GP_ARGS((void *)&y->data, &ys, (void *)&x->data, &xs, &rows, &cols,
                                   &output));
}

static const gp_port in[] = { { "in", GP_ACCEPT_PIXELS, .help = "an image (H, W)" }, { 0 } };
static const gp_port out[] = { { "out", GP_ACCEPT(GP_F16) | GP_ACCEPT(GP_F32), .help = "an image (H, W): f16 of f16, else f32" },
                                { 0 } };

static const gp_opt options[] = {
    { GP_ENUM(struct opts, output), .def = "magnitude", .choices = "magnitude|x|y",
      .help = "sqrt(x^2 + y^2), or the change along a row (x) or down a column (y)" },
    { 0 }
};

const gp_kind gp_kind_sobel = {
    GP_KIND("sobel"), .field = "pictures",
    .also = "sobel_filter",
    .help = "edges: the 3 x 3 Sobel operator, mirrored beyond the border",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .any_shape = true, .by_place = true, .shape = shape, .record = record,
};
