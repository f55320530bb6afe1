/* resize.c - pictures in another size, see kernels/resize.cu. Weights are made for each launch, in scratch memory, as
 * they follow from the exact size of a frame. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include "around.h"
#include "device.h"
#include "number.h"
#include "resize.h"
#include "strided.h"

enum { SIDE = 1 << 28, ROW = 1 << 30, BLOCK = 256, SHARED = 1 << 15, SLACK = 12 };

struct opts {
    int64_t height, width;
    double scale;
    int fit;
    bool enlarge, antialias;
    gp_num value;
    int method;
};

enum { STRETCH, COVER, CONTAIN, INSIDE };

/* ---- sizes --------------------------------------------------------------- */

static int64_t round_ratio(int64_t n, int64_t times, int64_t by)
{
    int64_t r = (2 * n * times + by) / (2 * by);
    return r > 1 ? r : 1;
}

/* The largest size within `box` that keeps the aspect of a picture of h rows and w columns. */
static void inside(int64_t h, int64_t w, const int64_t box[2], int64_t to[2])
{
    bool tall = w * box[0] <= h * box[1];
    to[0] = tall ? box[0] : round_ratio(h, box[1], w);
    to[1] = tall ? round_ratio(w, box[0], h) : box[1];
}

/* Rows and columns that a picture of h rows and w columns gets. */
static void size_of(const struct opts *o, int64_t h, int64_t w, int64_t to[2])
{
    if (o->fit == INSIDE && h <= o->height && w <= o->width && !o->enlarge) {
        to[0] = h, to[1] = w;
    } else if (o->fit == INSIDE) {
        inside(h, w, (int64_t[]){ o->height, o->width }, to);
    } else if (o->scale > 0) {
        to[0] = (int64_t)fmin(fmax(floor((double)h * o->scale + 0.5), 1), ROW);
        to[1] = (int64_t)fmin(fmax(floor((double)w * o->scale + 0.5), 1), ROW);
    } else {
        to[0] = o->height ? o->height : round_ratio(h, o->width, w);
        to[1] = o->width ? o->width : round_ratio(w, o->height, h);
    }
}

/* Rows or columns of all that is made; 0: that follows from what comes in. */
static int64_t given(const struct opts *o, int axis)
{
    return o->fit == INSIDE ? 0 : axis ? o->width : o->height;
}

/* The largest size in this axis of pictures that differ in size; 0: there is no bound. */
static int64_t bound(const struct opts *o, const gp_type *in, unsigned varies, int axis)
{
    int64_t to[2], box = axis ? o->width : o->height;
    size_of(o, in->dim[0], in->dim[1], to);
    if (o->fit == INSIDE)
        return o->enlarge || box < in->dim[axis] ? box : in->dim[axis];
    return box || o->scale > 0 || !(varies >> (1 - axis) & 1) ? to[axis] : 0;
}

/* ---- what comes out ------------------------------------------------------- */

static bool check(gp_shape *s)
{
    const struct opts *o = s->opts;
    const char *side = o->height ? "height" : "width";
    if (!o->height && !o->width && !(o->scale > 0))
        return gp_shape_fail(s, NULL, "needs a size: 'height' or 'width' or both, or 'scale'");
    if ((o->height || o->width) && o->scale > 0)
        return gp_shape_fail(s, "scale", "'scale' and '%s' both say a size: leave one out", side);
    if (o->fit != STRETCH && !(o->height && o->width))
        return gp_shape_fail(s, "fit", "'fit' needs 'height' and 'width': with one of them, or 'scale', a picture keeps "
                             "its aspect");
    return (o->fit == INSIDE || gp_shape_without(s, "enlarge", "a size that is given: it is for 'fit: inside'"))
        && (o->fit == CONTAIN || gp_shape_without(s, "value", "a picture that fills the size: it is for 'fit: contain'"))
        && (o->method == BILINEAR || o->method == CUBIC
            || gp_shape_without(s, "antialias", o->method == AREA ? "'area', which counts all that a pixel covers"
                                                                  : "'nearest', which takes one pixel"));
}

static bool in_f64(gp_dtype t)
{
    return t == GP_F64 || t == GP_U32 || t == GP_I32;
}

/* What is made has rows and columns [at, at + size) of the picture, each pixel of `from` / `to` of its pixels. */
struct placed { int64_t size[2], at[2], from[2], to[2]; };

static struct placed place(const struct opts *o, const gp_type *in, const gp_type *out)
{
    struct placed p = { .size = { out->dim[0], out->dim[1] } };
    int tight = in->dim[0] * out->dim[1] <= in->dim[1] * out->dim[0] ? 0 : 1;      /* the axis that is not cut */
    if (o->fit == CONTAIN)
        inside(in->dim[0], in->dim[1], out->dim, p.size);
    for (int k = 0; k < 2; k++) {
        p.at[k] = (out->dim[k] - p.size[k]) / 2;
        p.from[k] = in->dim[o->fit == COVER ? tight : k];
        p.to[k] = p.size[o->fit == COVER ? tight : k];
    }
    return p;
}

/* The most input pixels that one of the output is made of. */
static int64_t taps(const struct opts *o, const gp_type *in, const struct placed *p, int k)
{
    int64_t from = p->from[k], to = p->to[k];
    int64_t reach = (o->method == CUBIC ? 4 : 2) * (from > to && o->antialias ? from : to);
    if (o->method == NEAREST || (from == to && (in->dim[k] - p->size[k]) % 2 == 0))
        return 1;
    return o->method == AREA ? (from + to - 1) / to + 1 : (reach + to - 1) / to;
}

static struct resize_axis axis_of(const struct opts *o, const gp_type *in, const struct placed *p, int k)
{
    return (struct resize_axis){ (int)in->dim[k], (int)p->size[k], (int)p->from[k], (int)p->to[k], o->method,
                                 o->antialias, (int)taps(o, in, p, k) };
}

static int channels_of(const gp_type *t)
{
    return t->ndim == 3 ? (int)t->dim[2] : 1;
}

/* The most pixels of each of `rows` rows for whose sums there is room in shared memory, in equal parts of a row; 0: too
 * few. */
static int each_of(const struct resize_axis *a, int channels, size_t size, int rows)
{
    enum { LEAST = 8 };
    int64_t columns = ((int64_t)(SHARED / size) / rows - SLACK) / channels - a->taps - 1;
    int64_t most = columns * a->to / a->from;
    if (most < LEAST * rows && most < a->out)
        return 0;
    int64_t parts = (a->out + most - 1) / most;
    return (int)((a->out + parts - 1) / parts);
}

static size_t up(size_t n)
{
    return (n + 15) / 16 * 16;
}

/* Room for the weights of an axis, whatever sizes up to these it has: as many as taps(), rounded up, for each pixel. */
static size_t room(const struct opts *o, int64_t in, int64_t out)
{
    size_t longer = (size_t)(in > out ? in : out);
    return (o->method == CUBIC ? 4 : 2) * longer + 2 * (size_t)out;
}

/* For spans, weights and, where one pass may not do, sums of rows. */
static size_t scratch_of(const struct opts *o, const gp_type *in, const gp_type *out, bool varies)
{
    struct placed p = place(o, in, out);
    struct resize_axis across = axis_of(o, in, &p, 1);
    size_t size = in_f64(in->dtype) ? 8 : 4, rows = (size_t)out->dim[0], line = (size_t)(gp_count(in) / in->dim[0]);
    size_t weights = room(o, in->dim[0], out->dim[0]) + room(o, in->dim[1], out->dim[1]);
    bool sums = o->method != NEAREST && (varies || !each_of(&across, channels_of(in), size, 1));
    return up(sizeof(struct resize_span) * (rows + (size_t)out->dim[1]))
         + up(size * weights) + (sums ? size * rows * line : 0);
}

static bool shape(gp_shape *s)
{
    const struct opts *o = s->opts;
    const gp_type *in = &s->in[0];
    gp_type *out = &s->out[0];
    gp_type made = *in, said = *out;
    unsigned varies = s->in_varies ? s->in_varies[0] & 3 : 0;
    char text[128];

    if (!gp_shape_image(s, true))
        return false;
    size_of(o, in->dim[0], in->dim[1], made.dim);
    for (int k = 0; varies && k < 2; k++) {
        made.dim[k] = bound(o, in, varies, k);
        if (!made.dim[k] && said.ndim != in->ndim)
            return gp_shape_fail(s, o->height ? "height" : "width", "'%s' alone makes pictures of any %s, as the sizes "
                                 "of those that come in differ: say both and 'fit', or declare the largest under 'buffers', with "
                                 "a shape of [%s%s]",
                                 o->height ? "height" : "width", k ? "width" : "height",
                                 k ? "256, \"<=1024\"" : "\"<=1024\", 256", in->ndim == 3 ? ", 3" : "");
        made.dim[k] = made.dim[k] ? made.dim[k] : said.dim[k];
    }
    *out = made;
    if (made.dim[0] > SIDE || gp_count(&made) / made.dim[0] > ROW)
        return gp_shape_fail(s, NULL, "a picture has at most %d rows, and %d values in a row, not %s", SIDE, ROW,
                             gp_type_text(&made, text));
    struct placed p = place(o, in, &made);
    for (int k = 0; k < 2; k++)
        if (taps(o, in, &p, k) > INT_MAX)
            return gp_shape_fail(s, "method", "makes one pixel of at most %d in each axis, and here of %lld: set "
                                 "'method: area', or 'antialias: false'", INT_MAX,
                                 (long long)taps(o, in, &p, k));
    if (o->fit == CONTAIN && !gp_number_fits(s, "value", &o->value, in->dtype))
        return false;
    s->by_place = given(o, 0) || made.dim[0] != in->dim[0];     /* of fewer rows a height makes as many */
    s->batched = true;
    s->fixed = (given(o, 0) ? 1 : 0) | (given(o, 1) ? 2 : 0) | (s->in_varies && s->in_varies[0] & 4 ? 0 : 4);
    s->scratch = scratch_of(o, in, &made, varies);
    return true;
}

/* ---- work ------------------------------------------------------------------ */

/* The kernels of one call have this in common. */
struct work {
    gp_dcall *c;
    struct resize_axis down, across;
    int channels;
    size_t xs, ys, size;       /* strides; bytes of a sum */
    void *to;                  /* the first pixel that is made of some */
    int line;                  /* values from a row of the output to the next */
    struct resize_span *span;
    char *weight, *sums;       /* of frame 0 */
};

static struct work work_of(gp_dcall *c)
{
    const gp_view *x = c->in, *y = c->out;
    const struct placed p = place(c->opts, &x->type, &y->type);
    struct work w = { .c = c, .down = axis_of(c->opts, &x->type, &p, 0), .across = axis_of(c->opts, &x->type, &p, 1),
                      .channels = channels_of(&x->type), .line = (int)y->type.dim[1] * channels_of(&x->type),
                      .to = (char *)y->data + p.at[0] * gp_strided_step(&y->type, 0)
                                            + p.at[1] * gp_strided_step(&y->type, 1),
                      .xs = gp_stride(x), .ys = gp_stride(y), .size = in_f64(x->type.dtype) ? 8 : 4,
                      .span = c->scratch };
    size_t rows = (size_t)w.down.out, cols = (size_t)w.across.out;
    w.weight = (char *)w.span + up(sizeof *w.span * (rows + cols));
    w.sums = w.weight + up(w.size * (rows * (size_t)w.down.taps + cols * (size_t)w.across.taps));
    return w;
}

static bool queue_nearest(struct work *w)
{
    const gp_view *x = w->c->in;
    char kernel[32];
    int width = w->across.in * w->channels;
    snprintf(kernel, sizeof kernel, "resize_nearest_%zu", gp_dtype_size(x->type.dtype));
    return gp_launch_image(w->c, kernel, w->down.out, w->across.out,
                           GP_ARGS(&w->to, &w->ys, (void *)&x->data, &w->xs, &w->down.out, &w->across.out, &width,
                                   &w->line, &w->channels, &w->span));
}

/* The same for all frames. */
static bool queue_weights(struct work *w)
{
    char kernel[32];
    gp_dim3 grid = { (unsigned)(w->down.out + w->across.out + BLOCK - 1) / BLOCK, 1, 1 };
    snprintf(kernel, sizeof kernel, "resize_weights_f%zu", 8 * w->size);
    return gp_launch(w->c, kernel, grid, (gp_dim3){ BLOCK, 1, 1 }, 0,
                     GP_ARGS(&w->span, &w->weight, &w->down, &w->across));
}

/* The blocks that make `each` pixels of `rows` rows each. */
static gp_dim3 blocks_of(const struct work *w, int each, int rows)
{
    enum { MOST = 1 << 14 };
    int down = (w->down.out + rows - 1) / rows;
    int parts = (w->across.out + each - 1) / each;
    return (gp_dim3){ (unsigned)parts, (unsigned)(down < MOST ? down : MOST), (unsigned)w->c->n };
}

static bool queue_one_pass(struct work *w, int each, int rows)
{
    const gp_view *x = w->c->in;
    char kernel[32];
    snprintf(kernel, sizeof kernel, "resize_%s", gp_dtype_name(x->type.dtype));
    return gp_launch(w->c, kernel, blocks_of(w, each, rows), (gp_dim3){ BLOCK, 1, 1 }, SHARED,
                     GP_ARGS(&w->to, &w->ys, (void *)&x->data, &w->xs, &w->down, &w->across, &w->line, &w->channels,
                             &each, &rows, &w->span, &w->weight));
}

static bool queue_two_passes(struct work *w)
{
    const gp_view *x = w->c->in;
    const char *type = gp_dtype_name(x->type.dtype);
    struct resize_span *xspan = w->span + w->down.out;
    char rows[32], columns[32], *xweight = w->weight + w->size * (size_t)w->down.out * (size_t)w->down.taps;
    int width = w->across.in * w->channels;
    size_t stride = w->c->scratch_stride / w->size;
    snprintf(rows, sizeof rows, "resize_y_%s", type);
    snprintf(columns, sizeof columns, "resize_x_%s", type);
    return gp_launch_image(w->c, rows, w->down.out, (width + 3) / 4,
                           GP_ARGS(&w->sums, &stride, (void *)&x->data, &w->xs, &w->down, &width, &w->span, &w->weight))
        && gp_launch_image(w->c, columns, w->down.out, w->across.out,
                           GP_ARGS(&w->to, &w->ys, &w->sums, &stride, &w->across, &w->line, &w->down.out, &w->channels,
                                   &xspan, &xweight));
}

/* What lies around the picture. */
static bool queue_around(gp_dcall *c)
{
    const struct opts *o = c->opts;
    const gp_type *y = &c->out->type;
    const struct placed p = place(o, &c->in->type, y);
    struct around a = { .edge = GP_PAD_CONSTANT, .value = gp_number_bits(&o->value, y->dtype) };
    gp_type middle = *y;
    for (int k = 0; k < 2; k++) {
        middle.dim[k] = p.size[k];
        a.before[k] = p.at[k], a.after[k] = y->dim[k] - p.size[k] - p.at[k];
    }
    return gp_around_record(c, &middle, &a);
}

static bool record(gp_dcall *c)
{
    enum { FEW = 512 };                /* blocks, with which a large device has too little to do */
    const struct opts *o = c->opts;
    struct work w = work_of(c);
    int rows = RESIZE_ROWS, each = each_of(&w.across, w.channels, w.size, rows);
    gp_dim3 blocks = each ? blocks_of(&w, each, rows) : (gp_dim3){ 0, 0, 0 };
    if (blocks.x * blocks.y * blocks.z < FEW)
        rows = 1, each = each_of(&w.across, w.channels, w.size, rows);
    if (o->fit == CONTAIN && !queue_around(c))
        return false;
    return queue_weights(&w) && (w.down.method == NEAREST ? queue_nearest(&w) : each ? queue_one_pass(&w, each, rows)
                                 : queue_two_passes(&w));
}

#define ACCEPT (GP_ACCEPT_REAL & ~GP_ACCEPT(GP_U64) & ~GP_ACCEPT(GP_I64))

static const gp_port in[] = { { "in", ACCEPT, .help = "a picture (H, W) or (H, W, C)" }, { 0 } };
static const gp_port out[] = { { "out", ACCEPT, .help = "the picture in its new size, of the same type" }, { 0 } };

static const gp_opt options[] = {
    { GP_INT(struct opts, height), .def = "0", .min = 0, .max = SIDE, .unit = "px",
      .help = "rows of the output; 0: as many as keep the aspect, rounded to the nearest, halves up" },
    { GP_INT(struct opts, width), .def = "0", .min = 0, .max = SIDE, .unit = "px", .help = "columns; likewise" },
    { GP_FLOAT(struct opts, scale), .def = "0", .min = 0, .max = 10000,
      .help = "of both, in place of them: 0.5 for half, rounded likewise; 0: not said" },
    { GP_ENUM(struct opts, fit), .def = "stretch", .choices = "stretch|cover|contain|inside",
      .help = "how a picture of another aspect gets height and width: stretched; its middle, so that it covers all; all "
              "of it in the middle, with `value` around it; or as it is in the largest size within them" },
    { GP_NUM(struct opts, value), .def = "0", .help = "with 'fit: contain': what is around the picture" },
    { GP_BOOL(struct opts, enlarge), .def = "false", .help = "with 'fit: inside': a picture that is smaller grows" },
    { GP_ENUM(struct opts, method), .def = "bilinear", .choices = "bilinear|area|cubic|nearest",
      .help = "weights of a triangle; of the part that is covered; cubic (Keys, a = -0.5); the nearest pixel" },
    { GP_BOOL(struct opts, antialias), .def = "true",
      .help = "bilinear, cubic: made smaller, a pixel is made of all that it covers; else of its 2 or 4 neighbors" },
    { 0 }
};

const gp_kind gp_kind_resize = {
    GP_KIND("resize"), .field = "pictures",
    .help = "pictures in another size: thumbnails, antialiased, cut or padded",
    .also = "thumbnail letterbox",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .any_shape = true, .by_place = true, .each_shape = true, .check = check, .shape = shape, .record = record,
};
