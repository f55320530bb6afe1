/* gray.c - color to luma, in the input's units. The default weights are those of
 * ITU-R BT.601 (2.5.1). */
#include <math.h>
#include <stdio.h>
#include "device.h"

struct opts { gp_floats weights; };

/* As kernels/gray.cu computes it; NULL: weights that no text can spell. A fraction makes f32 of integers. */
static const char *text_of(gp_shape *s, const double *w)
{
    enum { MOST = 200 };
    char *text = gp_shape_alloc(s, MOST);
    int n = 0;
    for (int i = 0; i < 3; i++) {
        if (!isfinite((float)w[i]))
            return NULL;
        n += snprintf(text + n, (size_t)(MOST - n), "%s(%.16e) * in[i0, i1, %d]", i ? " + " : "", (double)(float)w[i], i);
    }
    return text;
}

static bool shape(gp_shape *s)
{
    const struct opts *o = s->opts;
    const gp_type *in = &s->in[0];
    char text[128];

    if (o->weights.n != 3)
        return gp_shape_fail(s, "weights", "'weights' is a list of %d; give 3 numbers, for red, green "
                             "and blue", o->weights.n);
    if (in->ndim != 3 || (in->dim[2] != 3 && in->dim[2] != 4))
        return gp_shape_fail(s, NULL, "needs a color image (H, W, 3) or (H, W, 4), not %s",
                             gp_type_text(in, text));
    s->out[0] = (gp_type){ GP_F32, 2, { in->dim[0], in->dim[1] } };
    s->batched = true;
    if (!s->partial)
        s->expr = text_of(s, o->weights.v), s->beyond = 1;
    return true;
}

static bool record(gp_dcall *c)
{
    const struct opts *o = c->opts;
    const gp_view *x = c->in, *y = c->out;
    size_t n = (size_t)gp_count(&y->type), xs = gp_stride(x), ys = gp_stride(y);
    int channels = (int)x->type.dim[2];
    float w[3];

    for (int i = 0; i < 3; i++)
        w[i] = (float)o->weights.v[i];
    return gp_launch_typed(c, "gray", x->type.dtype, (int64_t)n,
                           GP_ARGS((void *)&y->data, &ys, (void *)&x->data, &xs, &n, &channels,
                                   &w[0], &w[1], &w[2]));
}

static const gp_port in[] = {
    { "in", GP_ACCEPT(GP_U8) | GP_ACCEPT(GP_U16) | GP_ACCEPT(GP_F32),
      .help = "(H, W, 3) or (H, W, 4): red, green, blue, and an alpha that is ignored" },
    { 0 }
};
static const gp_port out[] = {
    { "out", GP_ACCEPT(GP_F32), .help = "(H, W), f32 in the input's units: 0 to 255 for u8" },
    { 0 }
};

static const gp_opt options[] = {
    { GP_FLOATS(struct opts, weights), .def = "[0.299, 0.587, 0.114]",
      .help = "of red, green and blue; the default is ITU-R BT.601" },
    { 0 }
};

const gp_kind gp_kind_gray = {
    GP_KIND("gray"), .field = "pictures",
    .also = "grayscale greyscale grey rgb2gray",
    .help = "color image to brightness",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .any_shape = true, .elementwise = true, .shape = shape, .record = record,
};
