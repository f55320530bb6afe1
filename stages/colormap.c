/* colormap.c - a picture of one channel in colors.
 *
 * stages/format/colormaps.bin has the tables of Matplotlib: red, green and blue of 256 levels, map after map.
 * viridis, magma: Nathaniel Smith and Stefan van der Walt, https://bids.github.io/colormap, CC0 (public domain).
 * turbo: Copyright 2019 Google LLC, Anton Mikhailov, SPDX-License-Identifier: Apache-2.0. */
#include <string.h>
#include "base/embed.h"
#include "device.h"
#include "number.h"

enum { LEVELS = 256, GRAY = 3 };       /* the choice behind those of the file */

struct opts { int map; gp_floats range; };

static bool check(gp_shape *s)
{
    return gp_number_range(s, &((const struct opts *)s->opts)->range);
}

static bool shape(gp_shape *s)
{
    const struct opts *o = s->opts;
    const gp_type *in = &s->in[0];
    char text[128];
    if (in->ndim >= GP_MAXDIM)
        return gp_shape_fail(s, NULL, "adds an axis for red, green and blue, and %s has %d already",
                             gp_type_text(in, text), in->ndim);
    if (!o->range.n && in->dtype != GP_U8)
        return gp_shape_fail(s, NULL, "needs a 'range' of %s, from the first color to the last: range: [0, 1]",
                             gp_dtype_name(in->dtype));
    s->out[0] = *in;
    s->out[0].dtype = GP_U8, s->out[0].dim[s->out[0].ndim++] = 3;
    s->table = 3 * (LEVELS + 1);
    s->batched = true;
    return true;
}

static bool table(const gp_table_call *t)
{
    const struct opts *o = t->opts;
    const gp_blob *maps = gp_blob_find("stages/format/colormaps.bin");
    uint8_t *to = t->data;
    memset(to, 0, t->bytes);
    for (int i = 0; i < 3 * LEVELS; i++)
        to[i] = o->map == GRAY ? (uint8_t)(i / 3) : maps->data[3 * LEVELS * o->map + i];
    return true;
}

static bool record(gp_dcall *c)
{
    const struct opts *o = c->opts;
    const gp_view *x = c->in, *y = c->out;
    size_t n = (size_t)gp_count(&x->type), xs = gp_stride(x), ys = gp_stride(y);
    double low = o->range.n ? o->range.v[0] : 0, high = o->range.n ? o->range.v[1] : LEVELS, scale = LEVELS / (high - low);
    return gp_launch_typed(c, "colormap", x->type.dtype, (int64_t)n,
                           GP_ARGS((void *)&y->data, &ys, (void *)&x->data, &xs, &n, (void *)&c->table, &low, &scale));
}

static const gp_port in[] = { { "in", GP_ACCEPT_REAL, .help = "levels, as a picture (H, W)" }, { 0 } };
static const gp_port out[] = { { "out", GP_ACCEPT(GP_U8), .help = "red, green and blue in one axis more, (H, W, 3); "
                                                                  "black for NaN" }, { 0 } };

static const gp_opt options[] = {
    { GP_ENUM(struct opts, map), .def = "viridis", .choices = "viridis|magma|turbo|gray",
      .help = "the colors, 256 of them" },
    { GP_FLOATS(struct opts, range),
      .help = "[low, high], in 256 equal parts; what is outside has the first color or the last; u8: [0, 256] when "
              "left out" },
    { 0 }
};

const gp_kind gp_kind_colormap = {
    GP_KIND("colormap"), .field = "pictures",
    .help = "a picture of one channel in colors",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .any_shape = true, .check = check, .shape = shape, .record = record, .table = table,
};
