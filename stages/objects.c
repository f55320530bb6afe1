/* objects.c - a table of the objects in an image of labels, a row each: how many pixels, the box around them, their
 * mean place. Row k is of label k + 1, as in scipy.ndimage.find_objects and center_of_mass; of a label that no pixel
 * has all is 0, and the mean place NaN. Sums are exact below 2^53. */
#include <string.h>
#include "device.h"

struct opts {
    int64_t max_objects;
    gp_loc at;                 /* of that; found by check() */
};

enum { AREA, X0, Y0, X1, Y1, X, Y, COLUMNS };      /* X, Y are sums at first */
enum { PIXELS_A_US = 500 };

static bool check(gp_shape *s)
{
    ((struct opts *)s->opts)->at = gp_shape_loc(s, "max_objects");
    return true;
}

static bool shape(gp_shape *s)
{
    const struct opts *o = s->opts;
    if (!gp_shape_image(s, false))
        return false;
    s->out[0] = (gp_type){ GP_F64, 2, { o->max_objects, COLUMNS } };
    s->by_place = 1;
    s->busy_ns = gp_count(&s->in[0]) * 1000 / PIXELS_A_US;
    return true;
}

/* Adds `n` pixels from (x, y) on to the right. */
static void add(double *row, int64_t x, int64_t y, int64_t n)
{
    bool empty = !row[AREA];
    row[X0] = empty || (double)x < row[X0] ? (double)x : row[X0];
    row[Y0] = empty ? (double)y : row[Y0];
    row[X1] = (double)(x + n) > row[X1] ? (double)(x + n) : row[X1];
    row[Y1] = (double)(y + 1);
    row[AREA] += (double)n;
    row[X] += (double)(n * x + n * (n - 1) / 2);
    row[Y] += (double)(n * y);
}

typedef double table[COLUMNS];

/* Makes room for labels up to `label`; *most: the largest so far. */
static void grow(table *rows, int64_t max, int64_t label, int64_t *most)
{
    int64_t from = *most < max ? *most : max, to = label < max ? label : max;
    memset(rows + from, 0, sizeof *rows * (size_t)(to - from));
    *most = label;
}

/* Adds all pixels, run by run of one label, but those of labels above `max`. Returns the largest label. */
#define SUM(name, T)                                                                                \
    static int64_t sum_##name(table *rows, int64_t max, const T *p, int64_t h, int64_t w)           \
    {                                                                                               \
        int64_t most = 0;                                                                           \
        for (int64_t y = 0; y < h; y++, p += w)                                                     \
            for (int64_t x = 0, end; x < w; x = end) {                                              \
                const int64_t label = p[x];                                                         \
                for (end = x + 1; end < w && p[end] == p[x]; end++)                                 \
                    ;                                                                               \
                if (label > most)                                                                   \
                    grow(rows, max, label, &most);                                                  \
                if (label > 0 && label <= max)                                                      \
                    add(rows[label - 1], x, y, end - x);                                            \
            }                                                                                       \
        return most;                                                                                \
    }
SUM(u8, uint8_t)
SUM(u16, uint16_t)
SUM(i32, int32_t)

static bool run(gp_call *c, gp_frame *f, int n)
{
    const struct opts *o = c->opts;
    const gp_view *in = f->in;
    table *rows = f->out->data;
    int64_t h = in->type.dim[0], w = in->type.dim[1], max = o->max_objects;
    int64_t most = in->type.dtype == GP_U8 ? sum_u8(rows, max, in->data, h, w)
                 : in->type.dtype == GP_U16 ? sum_u16(rows, max, in->data, h, w) : sum_i32(rows, max, in->data, h, w);
    if (most > max) {
        gp_fail(c->errs, GP_E_RUN, o->at, "stage '%s': frame %llu has labels up to %lld, and 'max_objects' is %lld",
                c->name, (unsigned long long)f->index, (long long)most, (long long)max);
        f->status = GP_FAILED;
        return true;
    }
    for (int64_t k = 0; k < most; k++)
        rows[k][X] /= rows[k][AREA], rows[k][Y] /= rows[k][AREA];
    f->out->type.dim[0] = most;
    return true;
}

static const gp_port in[] = {
    { "in", GP_ACCEPT(GP_U8) | GP_ACCEPT(GP_U16) | GP_ACCEPT(GP_I32),
      .help = "labels (H, W), as of 'label': 1, 2, ...; what is not above 0 is in no object" }, { 0 }
};
static const gp_port out[] = {
    { "out", GP_ACCEPT(GP_F64), .help = "(max_objects, 7), f64, as many rows as objects: area, x0, y0, x1, y1, x, y: "
      "pixels x0 to x1 - 1 and y0 to y1 - 1 are in its box, and x, y is the mean of its pixels' places" }, { 0 }
};

static const gp_opt options[] = {
    { GP_INT(struct opts, max_objects), .def = "4096", .min = 1, .max = 0x7fffffff,
      .help = "in a frame; one with more fails" },
    { 0 }
};

const gp_kind gp_kind_objects = {
    GP_KIND("objects"), .field = "pictures",
    .help = "a table of the objects in an image of labels: area, box, center",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .any_shape = true, .by_place = true, .check = check, .shape = shape, .run = run,
};
