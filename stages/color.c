/* color.c - luma and chroma, red, green and blue, gray: each to each. Formulas are in format/color_how.c. */
#include <stdio.h>
#include "color_how.h"
#include "device.h"

enum { BILINEAR, NEAREST };

struct opts {
    int from, to, matrix, range, chroma;
    int64_t bits;
};

static const char *const names[] = { "yuv420", "yuv422", "yuv444", "rgb", "bgr", "gray" };

/* Rows and columns of the pictures that such frames are. False: they are none. */
static bool size_of(const gp_type *t, int format, int64_t *rows, int64_t *cols)
{
    bool pairs = format == GP_YUV420 || format == GP_YUV422, colors = gp_is_colored(format);
    int axis = format == GP_YUV444;
    *rows = t->dim[axis], *cols = t->dim[axis + 1];
    if (format == GP_YUV422)
        *rows /= 2;
    if (format == GP_YUV420)
        *rows = *rows / 3 * 2;
    return t->ndim == (pairs || format == GP_GRAY ? 2 : 3) && *rows > 0 && *cols > 0
        && (!pairs || *cols % 2 == 0) && (format != GP_YUV422 || t->dim[0] % 2 == 0)
        && (format != GP_YUV420 || (t->dim[0] % 3 == 0 && *rows % 2 == 0)) && (!colors || t->dim[2] == 3)
        && (format != GP_YUV444 || t->dim[0] == 3);
}

static gp_type type_of(int format, gp_dtype dtype, int64_t rows, int64_t cols)
{
    switch (format) {
    case GP_YUV420:
        return (gp_type){ dtype, 2, { rows / 2 * 3, cols } };
    case GP_YUV422:
        return (gp_type){ dtype, 2, { rows * 2, cols } };
    case GP_YUV444:
        return (gp_type){ dtype, 3, { 3, rows, cols } };
    case GP_GRAY:
        return (gp_type){ dtype, 2, { rows, cols } };
    }
    return (gp_type){ dtype, 3, { rows, cols, 3 } };
}

static bool shape(gp_shape *s)
{
    static const char *const want[] = {
        "(3 H / 2, W), with even H and W", "(2 H, W), with an even W", "(3, H, W)", "(H, W, 3)", "(H, W, 3)", "(H, W)",
    };
    enum { SIDE = 1 << 28 };
    const struct opts *o = s->opts;
    const gp_type *in = &s->in[0];
    gp_dtype dtype = s->out[0].dtype ? s->out[0].dtype : in->dtype;
    int64_t rows, cols;
    char text[128];

    if (!size_of(in, o->from, &rows, &cols))
        return gp_shape_fail(s, "from", "a frame of '%s' is %s, not %s", names[o->from], want[o->from],
                             gp_type_text(in, text));
    if (rows > SIDE || cols > SIDE)
        return gp_shape_fail(s, NULL, "a picture has at most %d rows and columns, not %s", SIDE, gp_type_text(in, text));
    if (o->to <= GP_YUV422 && cols % 2)
        return gp_shape_fail(s, "to", "'%s' needs an even width, not %lld", names[o->to], (long long)cols);
    if (o->to == GP_YUV420 && rows % 2)
        return gp_shape_fail(s, "to", "'%s' needs an even height, not %lld", names[o->to], (long long)rows);
    if (dtype != GP_U8 && dtype != GP_U16)
        return gp_shape_fail(s, NULL, "makes u8 or u16, and 'buffers' declares %s", gp_dtype_name(dtype));
    if (in->dtype == GP_U8 && dtype == GP_U8 && !gp_shape_without(s, "bits", "u8, which has 8"))
        return false;
    s->out[0] = type_of(o->to, dtype, rows, cols);
    s->by_place = s->out[0].dim[0] != in->dim[0];
    s->batched = true;
    return true;
}

static int bits_of(const struct opts *o, gp_dtype t)
{
    return t == GP_U8 ? 8 : (int)o->bits;
}

static bool record(gp_dcall *c)
{
    const struct opts *o = c->opts;
    const gp_view *x = c->in, *y = c->out;
    size_t xs = gp_stride(x), ys = gp_stride(y);
    gp_color_how how = gp_color_how_of(o->from, o->to, o->matrix, o->range, o->chroma == BILINEAR,
                                       bits_of(o, x->type.dtype), bits_of(o, y->type.dtype));
    char kernel[32];
    int64_t high, wide;
    size_of(&x->type, o->from, &high, &wide);
    int rows = (int)high, cols = (int)wide;
    snprintf(kernel, sizeof kernel, "color_%s_%s", gp_dtype_name(x->type.dtype), gp_dtype_name(y->type.dtype));
    return gp_launch_image(c, kernel, (high + 1) / 2, (wide + 1) / 2,
                           GP_ARGS((void *)&y->data, &ys, (void *)&x->data, &xs, &rows, &cols, &how));
}

#define FORMATS "yuv420|yuv422|yuv444|rgb|bgr|gray"

static const gp_port in[] = {
    { "in", GP_ACCEPT(GP_U8) | GP_ACCEPT(GP_U16), .help = "yuv420: (3 H / 2, W); yuv422: (2 H, W); yuv444: (3, H, W): "
      "planes below each other, as of .y4m; rgb, bgr: (H, W, 3); gray: (H, W)" },
    { 0 }
};
static const gp_port out[] = {
    { "out", GP_ACCEPT(GP_U8) | GP_ACCEPT(GP_U16), .help = "the same; of the input's type, unless 'buffers' declares u8 or "
      "u16" },
    { 0 }
};

static const gp_opt options[] = {
    { GP_ENUM(struct opts, from), .required = true, .choices = FORMATS, .help = "what comes in" },
    { GP_ENUM(struct opts, to), .required = true, .choices = FORMATS, .help = "what goes out" },
    { GP_ENUM(struct opts, matrix), .def = "bt601", .choices = "bt601|bt709|bt2020",
      .help = "how luma and chroma are made of colors: bt601 for SD and pictures, bt709 for HD, bt2020 for UHD" },
    { GP_ENUM(struct opts, range), .def = "limited", .choices = "limited|full",
      .help = "of luma and chroma: 16 to 235 and 16 to 240, as in video, or 0 to 255 (of 8 bits); rgb and gray are full" },
    { GP_ENUM(struct opts, chroma), .def = "bilinear", .choices = "bilinear|nearest",
      .help = "between chroma values, which lie between the pixels that share them; the way there is their mean" },
    { GP_INT(struct opts, bits), .def = "16", .min = 8, .max = 16, .help = "of u16, how many are used: 10 for 0 to 1023" },
    { 0 }
};

const gp_kind gp_kind_color = {
    GP_KIND("color"), .field = "pictures",
    .help = "convert frames between YUV planes, RGB, BGR and gray",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .any_shape = true, .by_place = true, .shape = shape, .record = record,
};
