/* device.c - see device.h. */
#include <stdio.h>
#include "device.h"

enum { BLOCK = 256, BLOCKS = 1 << 14, SIDE = 1 << 30 };

size_t gp_stride(const gp_view *v)
{
    return v->stride / gp_dtype_size(v->type.dtype);
}

unsigned gp_blocks(int64_t n, int64_t size, int64_t most)
{
    int64_t b = (n + size - 1) / size;
    return (unsigned)(b < 1 ? 1 : b < most ? b : most);
}

bool gp_launch_map(gp_dcall *c, const char *kernel, int64_t threads,
                   void *const *args, int nargs)
{
    gp_dim3 grid = { gp_blocks(threads, BLOCK, BLOCKS), 1, (unsigned)c->n };
    return gp_launch(c, kernel, grid, (gp_dim3){ BLOCK, 1, 1 }, 0, args, nargs);
}

bool gp_launch_image(gp_dcall *c, const char *kernel, int64_t rows, int64_t cols,
                     void *const *args, int nargs)
{
    gp_dim3 grid = { gp_blocks(cols, 64, BLOCKS), gp_blocks(rows, 4, BLOCKS), (unsigned)c->n };
    return gp_launch(c, kernel, grid, (gp_dim3){ 64, 4, 1 }, 0, args, nargs);
}

bool gp_launch_typed(gp_dcall *c, const char *kind, gp_dtype t, int64_t n,
                     void *const *args, int nargs)
{
    char name[64];
    snprintf(name, sizeof name, "%s_%s", kind, gp_dtype_name(t));
    return gp_launch_map(c, name, (n + 3) / 4, args, nargs);
}

gp_lanes gp_lanes_of(const gp_type *t, int first, int last)
{
    enum { COLUMNS = 32 };                 /* side by side in memory */
    gp_lanes n = { 1, 1, 1, 1 };
    for (int k = 0; k < t->ndim; k++)
        *(k < first ? &n.outer : k > last ? &n.inner : &n.rows) *= (size_t)t->dim[k];
    while (2 * n.lanes <= n.rows && n.lanes < (n.inner == 1 ? GP_LANES_MOST : GP_LANES_MOST / COLUMNS))
        n.lanes *= 2;
    return n;
}

bool gp_launch_lines(gp_dcall *c, const char *kind, const gp_lanes *n, void *const *args, int nargs)
{
    char name[64];
    snprintf(name, sizeof name, "%s_%s", kind, gp_dtype_name(c->in->type.dtype));
    gp_dim3 grid = { gp_blocks((int64_t)(n->outer * n->inner * n->lanes), BLOCK, BLOCKS), 1, (unsigned)c->n };
    return gp_launch(c, name, grid, (gp_dim3){ gp_rec_on_cpu(c) ? 1 : BLOCK, 1, 1 }, BLOCK * sizeof(double), args, nargs);
}

bool gp_shape_image(gp_shape *s, bool channels)
{
    const gp_type *t = &s->in[0];
    char text[128];
    if (t->ndim != 2 && !(channels && t->ndim == 3))
        return gp_shape_fail(s, NULL, "needs an image (H, W)%s, not %s",
                             channels ? " or (H, W, C)" : "", gp_type_text(t, text));
    if (t->dim[0] > SIDE || gp_count(t) / (t->dim[0] ? t->dim[0] : 1) > SIDE)
        return gp_shape_fail(s, NULL, "an image has at most %d rows, and values in a row, not %s",
                             SIDE, gp_type_text(t, text));
    return true;
}
