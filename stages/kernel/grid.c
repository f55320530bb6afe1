/* grid.c - the options `block`, and `threads` or `grid`: how many threads a launch has. */
#include <string.h>
#include "base/num.h"
#include "launch_args.h"

enum { MAX_BLOCK = 1024, MAX_BLOCK_Z = 64, MAX_GRID_YZ = 65535 };
enum { COLORS = 4 };           /* an image's last axis of so many is of colors, so x and y are the two before */

/* The option that is given: `threads` or `grid`. */
static const gp_node *size_of(const gp_kgrid *g)
{
    return g->threads ? g->threads : g->grid;
}

static int count_axes(const gp_node *size)
{
    return size->kind == GP_LIST ? size->n : 1;
}

static const gp_node *size_on_axis(const gp_node *size, int axis)
{
    return size->kind == GP_LIST ? size->item[axis] : size;
}

/* Threads, or 1, that one of what the option counts stands for. */
static int64_t unit_of(const gp_kgrid *g, int axis)
{
    const unsigned block[] = { g->block.x, g->block.y, g->block.z };
    return g->threads ? block[axis] : 1;
}

/* The most that the option can say. */
static int64_t most_along(const gp_kgrid *g, int axis)
{
    return (axis ? MAX_GRID_YZ : INT32_MAX) * unit_of(g, axis);
}

/* The blocks that `n` are. False: no grid has so many. */
static bool count_blocks(const gp_kgrid *g, gp_num n, int axis, unsigned *blocks)
{
    int64_t unit = unit_of(g, axis);
    if (!gp_num_whole(&n) || n.i < 1 || n.i > most_along(g, axis))
        return false;
    *blocks = (unsigned)((n.i + unit - 1) / unit);
    return true;
}

static bool read_block(gp_shape *s, const gp_ints *block, int64_t x, int64_t y, gp_kgrid *g)
{
    int64_t d[3] = { x, y, 1 };
    if (block->n > 3)
        return gp_shape_fail(s, "block", "a block has 1 to 3 axes: [x, y, z]");
    if (block->n)
        d[0] = d[1] = 1;
    for (int i = 0; i < block->n; i++)
        d[i] = block->v[i];
    if (d[0] * d[1] * d[2] > MAX_BLOCK)
        return gp_shape_fail(s, "block", "a block of %lld threads; at most %d are possible",
                             (long long)(d[0] * d[1] * d[2]), MAX_BLOCK);
    if (d[2] > MAX_BLOCK_Z)
        return gp_shape_fail(s, "block", "a block has at most %d threads along z", MAX_BLOCK_Z);
    s->block = g->block = (gp_dim3){ (unsigned)d[0], (unsigned)d[1], (unsigned)d[2] };
    return true;
}

/* Nothing but the user tells how many threads a kernel is written for: too few leave a part of the frame as it was,
 * too many count or write twice. */
static bool ask(gp_shape *s)
{
    const char *out = s->out_name[0];
    const gp_type *t = &s->out[0];
    int x = t->ndim - 1 - (t->ndim > 2 && t->dim[t->ndim - 1] <= COLORS), y = x - 1;
    size_t room = 2 * strlen(out) + 100;
    char *two = gp_shape_alloc(s, room);       /* axes, where there are */
    if (x > 0)
        snprintf(two, room, ", 'threads: [\"%s.shape[%d]\", \"%s.shape[%d]\"]' one along x and y", out, x, out, y);
    return gp_shape_fail(s, NULL, "a kernel needs 'threads', the number that runs for a frame: 'threads: %s.size' is one "
                         "for each element of '%s' along x%s; or 'grid', the number of blocks", out, out, two);
}

bool gp_kgrid_read(gp_shape *s, const gp_ints *block, gp_kgrid *g)
{
    const gp_node *size = size_of(g);
    if (!size)
        return ask(s);
    const char *of = g->threads ? "threads" : "a grid";
    int n = count_axes(size), most = g->batched ? 2 : 3;
    unsigned blocks[3] = { 1, 1, 1 };
    bool ok = true;
    if (g->threads && g->grid)
        return gp_shape_fail(s, "grid", "leave out 'grid' or 'threads': blocks are counted, or threads");
    if (size->kind == GP_MAP || n < 1 || n > most)
        return gp_shape_fail_at(s, size->at, "%s %s 1 to %d axes: [x, y%s%s", of, g->threads ? "have" : "has", most,
                                most == 3 ? ", z]" : "]", most == 3 ? "" : "; z is the frame");
    if (g->grid && n > 1 && !block->n)
        return gp_shape_fail_at(s, size->at, "a grid of %d axes needs 'block', too, like block: [32, 8]", n);
    if (!read_block(s, block, n > 1 ? 32 : 256, n > 1 ? 8 : 1, g))
        return false;
    s->known.threads = (int64_t)g->block.x * g->block.y * g->block.z;
    s->known.blocks = 1;
    for (int i = 0; i < n; i++) {
        gp_num v;
        const gp_node *e = size_on_axis(size, i);
        if (!gp_shape_eval(s, e, &v))
            ok = false;
        else if (!count_blocks(g, v, i, &blocks[i]))
            ok = gp_shape_fail_at(s, e->at, "%s%.17g %s along %c; it must be a whole number, without point or exponent, "
                                  "from 1 to %lld", g->threads ? "" : "a grid of ", v.f,
                                  g->threads ? "threads" : "blocks", "xyz"[i], (long long)most_along(g, i));
        s->known.blocks *= blocks[i];          /* at most INT32_MAX * MAX_GRID_YZ^2 < 2^63 */
    }
    for (int i = n; i < block->n && ok && g->threads; i++)
        if (block->v[i] > 1)
            ok = gp_shape_fail(s, "block", "a block of %lld threads along %c, and 'threads' says nothing of %c: give "
                               "both along the same axes", (long long)block->v[i], "xyz"[i], "xyz"[i]);
    s->grid = (gp_dim3){ blocks[0], blocks[1], blocks[2] };
    return ok;
}

bool gp_kgrid_of(const gp_dcall *c, const gp_ports *p, const gp_kgrid *g, gp_dim3 *grid)
{
    unsigned blocks[3] = { 1, 1, 1 };
    const gp_node *size = size_of(g);
    for (int i = 0; i < count_axes(size); i++) {
        gp_num v;
        const gp_node *e = size_on_axis(size, i);
        if (!gp_ports_eval(c, p, e, &v))
            return false;
        if (!count_blocks(g, v, i, &blocks[i]))
            return gp_fail(c->errs, GP_E_RUN, e->at, "stage '%s': %s%.17g %s along %c", c->name,
                           g->threads ? "" : "a grid of ", v.f, g->threads ? "threads" : "blocks", "xyz"[i]);
    }
    *grid = (gp_dim3){ blocks[0], blocks[1], g->batched ? (unsigned)c->n : blocks[2] };
    return true;
}
