/* color.c - luma and chroma, red, green and blue, gray: each to each.
 *
 * With the weights kr, kg, kb of a standard (ITU-R BT.601-7 2.5.1, BT.709-6 3.2, BT.2020-2 table 4), r, g and b from 0
 * to 1:
 *
 *   y = kr r + kg g + kb b      cb = (b - y) / (2 (1 - kb))      cr = (r - y) / (2 (1 - kr))
 *
 * and as numbers of n bits (BT.601-7 2.5.3, BT.709-6 3.4, BT.2020-2 table 5; full: ITU-T T.871 and BT.2100-2 table 9):
 *
 *   limited: Y = (219 y + 16) 2^(n - 8), C = (224 c + 128) 2^(n - 8)      full: Y = (2^n - 1) y, C = (2^n - 1) c + 2^(n - 1)
 *
 * Red, green, blue and gray have the full range; gray is y. */
#include <stdio.h>
#include "device.h"

enum { YUV420, YUV422, YUV444, RGB, BGR, GRAY };           /* as in kernels/color.cu */
enum { BT601, BT709, BT2020 };
enum { LIMITED, FULL };
enum { BILINEAR, NEAREST };

struct opts {
    int from, to, matrix, range, chroma;
    int64_t bits;
};

/* As in kernels/color.cu. */
struct color_how {
    int from, to, smooth_x, smooth_y;
    float y0_in, y_in, c0_in, c_in, rgb_in, rgb_out, y0_out, y_out, c0_out, c_out, top;
    float kr, kg, kb, ub, vr, rv, gu, gv, bu;
};

static const char *const names[] = { "yuv420", "yuv422", "yuv444", "rgb", "bgr", "gray" };

static bool is_colored(int format)
{
    return format == RGB || format == BGR;
}

/* Rows and columns of the pictures that such frames are. False: they are none. */
static bool size_of(const gp_type *t, int format, int64_t *rows, int64_t *cols)
{
    bool pairs = format == YUV420 || format == YUV422, colors = is_colored(format);
    int axis = format == YUV444;
    *rows = t->dim[axis], *cols = t->dim[axis + 1];
    if (format == YUV422)
        *rows /= 2;
    if (format == YUV420)
        *rows = *rows / 3 * 2;
    return t->ndim == (pairs || format == GRAY ? 2 : 3) && *rows > 0 && *cols > 0
        && (!pairs || *cols % 2 == 0) && (format != YUV422 || t->dim[0] % 2 == 0)
        && (format != YUV420 || (t->dim[0] % 3 == 0 && *rows % 2 == 0)) && (!colors || t->dim[2] == 3)
        && (format != YUV444 || t->dim[0] == 3);
}

static gp_type type_of(int format, gp_dtype dtype, int64_t rows, int64_t cols)
{
    switch (format) {
    case YUV420:
        return (gp_type){ dtype, 2, { rows / 2 * 3, cols } };
    case YUV422:
        return (gp_type){ dtype, 2, { rows * 2, cols } };
    case YUV444:
        return (gp_type){ dtype, 3, { 3, rows, cols } };
    case GRAY:
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
    if (o->to <= YUV422 && cols % 2)
        return gp_shape_fail(s, "to", "'%s' needs an even width, not %lld", names[o->to], (long long)cols);
    if (o->to == YUV420 && rows % 2)
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

/* The numbers of `bits` bits that stand for 1 of luma, of chroma and of colors, and for 0 of the first two. */
struct scale { double y0, y, c0, c, rgb; };

static struct scale scale_of(int range, int bits)
{
    double unit = 1 << (bits - 8), top = (1 << bits) - 1;
    return range == FULL ? (struct scale){ 0, top, 128 * unit, top, top }
                         : (struct scale){ 16 * unit, 219 * unit, 128 * unit, 224 * unit, top };
}

static struct color_how how_of(const struct opts *o, gp_dtype from, gp_dtype to)
{
    static const double weights[][2] = { { 0.299, 0.114 }, { 0.2126, 0.0722 }, { 0.2627, 0.0593 } };   /* kr, kb */
    struct scale in = scale_of(o->range, bits_of(o, from)), out = scale_of(o->range, bits_of(o, to));
    double kr = weights[o->matrix][0], kb = weights[o->matrix][1], kg = 1 - kr - kb;
    bool smooth = o->chroma == BILINEAR;
    if (is_colored(o->from) == is_colored(o->to)) {    /* as numbers, which stay exact, not as parts of 1 */
        double first = o->from == GRAY ? in.rgb : in.y;
        out.y /= first, out.c /= in.c, out.rgb /= is_colored(o->from) ? in.rgb : first;
        in.y = in.c = in.rgb = 1;
    }
    return (struct color_how){
        .from = o->from, .to = o->to,
        /* chroma that stays as coarse as it is is left alone */
        .smooth_x = smooth && o->to != YUV420 && o->to != YUV422, .smooth_y = smooth && o->to != YUV420,
        .y0_in = (float)in.y0, .y_in = (float)(1 / in.y), .c0_in = (float)in.c0, .c_in = (float)(1 / in.c),
        .rgb_in = (float)(1 / in.rgb), .rgb_out = (float)out.rgb, .y0_out = (float)out.y0, .y_out = (float)out.y,
        .c0_out = (float)out.c0, .c_out = (float)out.c, .top = (float)((1 << bits_of(o, to)) - 1),
        .kr = (float)kr, .kg = (float)kg, .kb = (float)kb,
        .ub = (float)(0.5 / (1 - kb)), .vr = (float)(0.5 / (1 - kr)),
        .rv = (float)(2 * (1 - kr)), .bu = (float)(2 * (1 - kb)),
        .gu = (float)(2 * (1 - kb) * kb / kg), .gv = (float)(2 * (1 - kr) * kr / kg),
    };
}

static bool record(gp_dcall *c)
{
    const struct opts *o = c->opts;
    const gp_view *x = c->in, *y = c->out;
    size_t xs = gp_stride(x), ys = gp_stride(y);
    struct color_how how = how_of(o, x->type.dtype, y->type.dtype);
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
