/* conv2d.c - each pixel's neighbors times weights, see kernels/conv2d.cu. */
#include <math.h>
#include <stdio.h>
#include "device.h"

enum { MOST = 1023 };

struct opts {
    const gp_node *weights;
    bool flip;
    int edge;                              /* as in kernels/pad.h, where `zero` is the constant */
    int high, wide;                        /* of the option; it and the next are made by check() */
    float *weight;
};

/* As in kernels/conv2d.cu. */
struct conv2d_how { int rows, cols, channels, high, wide, flip, edge; };

static bool read_row(gp_shape *s, struct opts *o, int i)
{
    const gp_node *row = o->weights->item[i];
    if (row->kind != GP_LIST)
        return gp_shape_fail_at(s, row->at, "row %d of 'weights' must be a list of numbers", i);
    if (row->n < 1 || row->n > MOST)
        return gp_shape_fail_at(s, row->at, "row %d of 'weights' has %d numbers, and must have 1 to %d", i, row->n,
                                MOST);
    if (!i) {
        o->wide = row->n;
        o->weight = gp_shape_alloc(s, sizeof *o->weight * (size_t)o->high * (size_t)o->wide);
    }
    if (row->n != o->wide)
        return gp_shape_fail_at(s, row->at, "row %d of 'weights' has %d number%s, and row 0 has %d", i, row->n,
                                row->n == 1 ? "" : "s", o->wide);
    for (int j = 0; j < o->wide; j++) {
        gp_num v;
        if (row->item[j]->kind != GP_SCALAR)
            return gp_shape_fail_at(s, row->item[j]->at, "row %d of 'weights' has a list where a number should be", i);
        if (!gp_shape_eval(s, row->item[j], &v))
            return false;
        o->weight[i * o->wide + j] = (float)v.f;
        if (!isfinite((float)v.f))
            return gp_shape_fail_at(s, row->item[j]->at, "a weight is %g, and must be finite as f32", v.f);
    }
    return true;
}

static bool check(gp_shape *s)
{
    struct opts *o = (struct opts *)s->opts;
    if (!o->weights)
        return true;
    if (o->weights->kind != GP_LIST)
        return gp_shape_fail(s, "weights", "'weights' must be a list of rows, as [[0, 1, 0], [1, -4, 1], [0, 1, 0]]; a "
                             ".npy is declared under 'buffers' as a constant, and connected to the input 'weights'");
    if (o->weights->n < 1 || o->weights->n > MOST)
        return gp_shape_fail(s, "weights", "'weights' has %d rows, and must have 1 to %d", o->weights->n, MOST);
    o->high = o->weights->n;
    for (int i = 0; i < o->high; i++)
        if (!read_row(s, o, i))
            return false;
    return true;
}

static bool has_port(const gp_type *in, int nin) { return nin > 1 && in[1].ndim; }

static bool shape(gp_shape *s)
{
    const struct opts *o = s->opts;
    const gp_type *port = has_port(s->in, s->nin) ? &s->in[1] : NULL;
    char text[128];
    if (port && o->weights)
        return gp_shape_fail(s, "weights", "'weights' is given twice, as an option and as an input; leave one out");
    if (!port && !o->weights)
        return gp_shape_fail(s, NULL, "no weights; give 'weights: [[...], ...]', or connect the input 'weights' to a "
                             "constant");
    if (port && (port->ndim != 2 || port->dim[0] > MOST || port->dim[1] > MOST))
        return gp_shape_fail(s, NULL, "input 'weights' needs two axes of 1 to %d, not %s", MOST,
                             gp_type_text(port, text));
    if (!gp_shape_image(s, true))
        return false;
    s->out[0] = s->in[0];
    s->table = port ? 0 : sizeof *o->weight * (size_t)o->high * (size_t)o->wide;
    s->batched = true, s->by_place = (port ? port->dim[0] : o->high) > 1;
    return true;
}

static bool table(const gp_table_call *t)
{
    const struct opts *o = t->opts;
    float *w = t->data;
    for (int i = 0; i < o->high * o->wide; i++)
        w[i] = o->weight[i];
    return true;
}

static bool record(gp_dcall *c)
{
    const struct opts *o = c->opts;
    const gp_view *x = c->in, *y = c->out, *port = c->in[1].type.ndim ? &c->in[1] : NULL;
    const void *weight = port ? port->data : c->table;
    size_t xs = gp_stride(x), ys = gp_stride(y), ws = port ? gp_stride(port) : 0;
    struct conv2d_how how = {
        .rows = (int)x->type.dim[0], .cols = (int)x->type.dim[1],
        .channels = x->type.ndim == 3 ? (int)x->type.dim[2] : 1,
        .high = port ? (int)port->type.dim[0] : o->high, .wide = port ? (int)port->type.dim[1] : o->wide,
        .flip = o->flip, .edge = o->edge,
    };
    char kernel[32];
    snprintf(kernel, sizeof kernel, "conv2d_%s_%s", gp_dtype_name(x->type.dtype),
             port && port->type.dtype == GP_F64 ? "f64" : "f32");
    return gp_launch_image(c, kernel, (how.rows + 3) / 4,
                           (int64_t)how.cols * how.channels,
                           GP_ARGS((void *)&y->data, &ys, (void *)&x->data, &xs, &weight, &ws, &how));
}

static const gp_port in[] = {
    { "in", GP_ACCEPT_PIXELS, .help = "an image (H, W) or (H, W, C)" },
    { "weights", GP_ACCEPT(GP_F32) | GP_ACCEPT(GP_F64), .optional = true,
      .help = "[h, w], in place of the option; used as f32" },
    { 0 }
};
static const gp_port out[] = {
    { "out", GP_ACCEPT_PIXELS, .help = "the image, each channel filtered; summed in f32 and rounded once, to the nearest "
      "that its type holds" }, { 0 }
};

static const gp_opt options[] = {
    { GP_NODE(struct opts, weights),
      .help = "rows of numbers, [[0, 1, 0], [1, -4, 1], [0, 1, 0]], of any height and width up to 1023; that in row "
              "h // 2 and column w // 2 is for the pixel itself" },
    { GP_BOOL(struct opts, flip),
      .help = "false: weights lie on the image as they are written, as in scipy.ndimage.correlate and cv2.filter2D; "
              "true: turned by half a turn, as in scipy.ndimage.convolve" },
    { GP_ENUM(struct opts, edge), .def = "reflect", .choices = "zero|nearest|reflect|mirror|wrap",
      .help = "beyond the border: 0, the border pixel, or the image mirrored with (cba|abc) or without that (cb|abc), "
              "or once more" },
    { 0 }
};

const gp_kind gp_kind_conv2d = {
    GP_KIND("conv2d"), .field = "pictures",
    .help = "filter an image with given weights",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .any_shape = true, .by_place = true, .check = check, .shape = shape, .record = record, .table = table,
};
