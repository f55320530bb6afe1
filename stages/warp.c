/* warp.c - pictures whose pixels are taken from other places, see kernels/warp.cu: turned, sheared, seen from another
 * side, or put straight by a map. */
#include <math.h>
#include <stdio.h>
#include "device.h"
#include "number.h"
#include "warp.h"

enum { SIDE = 1 << 28, ROW = 1 << 30 };

struct opts {
    gp_floats affine, perspective;
    int64_t height, width;
    int method, edge;                      /* as in `methods`; as in kernels/pad.h */
    gp_num value;
};

static const char *const methods[] = { "nearest", "bilinear", "cubic" };

static bool check_numbers(gp_shape *s, const char *opt, const gp_floats *v, int n)
{
    if (v->n && v->n != n)
        return gp_shape_fail(s, opt, "'%s' is a list of %d, and must have %d numbers", opt, v->n, n);
    for (int i = 0; i < v->n; i++)
        if (!isfinite(v->v[i]))
            return gp_shape_fail(s, opt, "'%s' has %g, and must be finite", opt, v->v[i]);
    return true;
}

static bool check(gp_shape *s)
{
    const struct opts *o = s->opts;
    const double *p = o->perspective.v;
    if (!check_numbers(s, "affine", &o->affine, 6) || !check_numbers(s, "perspective", &o->perspective, 9))
        return false;
    if (o->affine.n && o->perspective.n)
        return gp_shape_fail(s, "perspective", "'perspective' and 'affine' both say where pixels are taken from: leave "
                             "one out");
    return !o->perspective.n || p[6] != 0 || p[7] != 0 || p[8] != 0
        || gp_shape_fail(s, "perspective", "the last three numbers of 'perspective' are 0, and so would be what all is "
                         "divided by");
}

static bool has_map(const gp_type *in, int nin) { return nin > 1 && in[1].ndim; }

static bool shape(gp_shape *s)
{
    const struct opts *o = s->opts;
    const gp_type *in = &s->in[0], *map = has_map(s->in, s->nin) ? &s->in[1] : NULL;
    const char *given = o->affine.n ? "affine" : o->perspective.n ? "perspective" : NULL;
    char text[128];

    if (map && given)
        return gp_shape_fail(s, given, "'%s' and the input 'map' both say where pixels are taken from: leave one out",
                             given);
    if (!map && !given)
        return gp_shape_fail(s, NULL, "needs to know where pixels are taken from: 'affine', 'perspective', or the "
                             "input 'map'");
    if (map && (map->ndim != 3 || map->dim[2] != 2))
        return gp_shape_fail(s, NULL, "input 'map' needs a place [x, y] for each pixel, (H, W, 2), not %s",
                             gp_type_text(map, text));
    if (map && !(gp_shape_without(s, "height", "the input 'map', which has the size of the output")
                 && gp_shape_without(s, "width", "the input 'map', which has the size of the output")))
        return false;
    if (!gp_shape_image(s, true) || !gp_number_fits(s, "value", &o->value, in->dtype))
        return false;
    s->out[0] = *in;
    for (int k = 0; k < 2; k++) {
        int64_t said = k ? o->width : o->height;
        s->out[0].dim[k] = map ? map->dim[k] : said ? said : in->dim[k];
    }
    if (s->out[0].dim[0] > SIDE || gp_count(&s->out[0]) / s->out[0].dim[0] > ROW)
        return gp_shape_fail(s, NULL, "a picture has at most %d rows, and %d values in a row, not %s", SIDE, ROW,
                             gp_type_text(&s->out[0], text));
    s->by_place = 1;
    s->batched = true;
    return true;
}

static bool record(gp_dcall *c)
{
    const struct opts *o = c->opts;
    const gp_view *x = c->in, *y = c->out, *map = c->in[1].type.ndim ? &c->in[1] : NULL;
    const gp_floats *m = o->perspective.n ? &o->perspective : &o->affine;
    size_t xs = gp_stride(x), ys = gp_stride(y), ms = map ? gp_stride(map) : 0;
    const void *places = map ? map->data : NULL;
    struct warp_how how = {
        .rows = (int)x->type.dim[0], .cols = (int)x->type.dim[1],
        .channels = x->type.ndim == 3 ? (int)x->type.dim[2] : 1,
        .high = (int)y->type.dim[0], .wide = (int)y->type.dim[1], .perspective = o->perspective.n > 0, .edge = o->edge,
        .value = (float)o->value.f,
    };
    char kernel[32];
    for (int i = 0; i < m->n; i++)
        how.m[i] = m->v[i];
    snprintf(kernel, sizeof kernel, "warp_%s_%s", methods[o->method], gp_dtype_name(x->type.dtype));
    return gp_launch_image(c, kernel, how.high, how.wide,
                           GP_ARGS((void *)&y->data, &ys, (void *)&x->data, &xs, &places, &ms, &how));
}

#define ACCEPT (GP_ACCEPT(GP_U8) | GP_ACCEPT(GP_U16) | GP_ACCEPT(GP_F32))

static const gp_port in[] = {
    { "in", ACCEPT, .help = "a picture (H, W) or (H, W, C)" },
    { "map", GP_ACCEPT(GP_F32), .optional = true,
      .help = "(h, w, 2): for each pixel of the output the place [x, y] in the input, as in cv2.remap" },
    { 0 }
};
static const gp_port out[] = { { "out", ACCEPT, .help = "the picture, (h, w) or (h, w, C), of the same type" }, { 0 } };

static const gp_opt options[] = {
    { GP_FLOATS(struct opts, affine),
      .help = "[a, b, c, d, e, f]: pixel (x, y) of the output is taken from (a x + b y + c, d x + e y + f) of the "
              "input, as in cv2.warpAffine with WARP_INVERSE_MAP; x goes along a row, and (0, 0) is the center of the "
              "first pixel" },
    { GP_FLOATS(struct opts, perspective),
      .help = "[a, b, c, d, e, f, g, h, i]: likewise, and both are divided by g x + h y + i" },
    { GP_INT(struct opts, height), .def = "0", .min = 0, .max = SIDE, .unit = "px",
      .help = "rows of the output; 0: as many as the input" },
    { GP_INT(struct opts, width), .def = "0", .min = 0, .max = SIDE, .unit = "px", .help = "columns; likewise" },
    { GP_ENUM(struct opts, method), .def = "bilinear", .choices = "nearest|bilinear|cubic",
      .help = "the nearest pixel; of the 2 x 2 pixels around; of 4 x 4 (Keys, a = -0.5)" },
    { GP_ENUM(struct opts, edge), .def = "constant", .choices = "constant|nearest|reflect|mirror|wrap",
      .help = "beyond the border: `value`, the border pixel, or the picture mirrored with (cba|abc) or without that "
              "(cb|abc), or once more" },
    { GP_NUM(struct opts, value), .def = "0",
      .help = "of 'edge: constant', and of pixels whose place is not a number, or 2^30 or more" },
    { 0 }
};

const gp_kind gp_kind_warp = {
    GP_KIND("warp"), .field = "pictures",
    .help = "turn, shear, straighten: pixels from elsewhere, by a matrix or a map",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .any_shape = true, .by_place = true, .check = check, .shape = shape, .record = record,
};
