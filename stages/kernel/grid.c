/* grid.c - the options `block` and `grid`, and what stands for a grid that is left out.
 *
 * Without `grid` there is a thread for each element of the first output, along as many axes
 * as the kernel asks for, and one thread for a kernel without any index. Unless its source says
 * so plainly that is an error: never a grid that computes a part. */
#include <string.h>
#include "launch_args.h"

enum { MAX_BLOCK = 1024, MAX_BLOCK_Z = 64, MAX_GRID_YZ = 65535 };
enum { COLORS = 4 };           /* a last axis of so many is of colors, and threads lie along the two before */

static const gp_node *grid_item(const gp_node *grid, int i)
{
    return grid->kind == GP_LIST ? grid->item[i] : grid;
}

static int grid_axes(const gp_node *grid)
{
    return grid->kind == GP_LIST ? grid->n : 1;
}

static bool blocks_fit(gp_num n, int axis)
{
    return n.is_int && n.i >= 1 && n.i <= (axis ? MAX_GRID_YZ : INT32_MAX);
}

/* Threads along axis i of a grid that has one for each element of `t`; without axes it has one. */
static int64_t elements(const gp_type *t, int axes, int i)
{
    return i >= axes ? 1 : axes == 1 ? gp_count(t) : i < t->ndim ? t->dim[t->ndim - 1 - i] : 1;
}

static int64_t default_blocks(const gp_type *t, int axes, int i, unsigned block)
{
    return (elements(t, axes, i) + block - 1) / block;
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

/* ---- a grid that is given ----------------------------------------------- */

static bool check_given(gp_shape *s, const gp_ints *block, const gp_kgrid *g)
{
    const gp_node *grid = g->given;
    int n = grid_axes(grid), most = g->batched ? 2 : 3;
    unsigned blocks[3] = { 1, 1, 1 };
    bool ok = true;
    s->known.threads = (int64_t)g->block.x * g->block.y * g->block.z;
    s->known.blocks = 1;
    if (grid->kind == GP_MAP || n < 1 || n > most)
        return gp_shape_fail_at(s, grid->at, "a grid has 1 to %d axes: [x, y%s%s", most,
                                most == 3 ? ", z]" : "]", most == 3 ? "" : "; z is the frame");
    if (n > 1 && !block->n)
        return gp_shape_fail_at(s, grid->at, "a grid of %d axes needs 'block', too, like block: [32, 8]", n);
    for (int i = 0; i < n; i++) {
        gp_num v;
        const gp_node *e = grid_item(grid, i);
        if (!gp_shape_eval(s, e, &v))
            ok = false;
        else if (!blocks_fit(v, i))
            ok = gp_shape_fail_at(s, e->at, "a grid of %.17g blocks along %c; it must be a whole "
                                  "number from 1 to %d", v.f, "xyz"[i],
                                  i ? MAX_GRID_YZ : INT32_MAX);
        else
            blocks[i] = (unsigned)v.i, s->known.blocks *= v.i; /* at most INT32_MAX * MAX_GRID_YZ^2 < 2^63 */
    }
    s->grid = (gp_dim3){ blocks[0], blocks[1], blocks[2] };
    return ok;
}

/* ---- a grid that is left out --------------------------------------------- */

/* `why` not even the source tells which grid the kernel wants; `other`: a port that it may be for, too, or NULL. */
static bool ask(gp_shape *s, const char *entry, const char *why, const char *other)
{
    const char *out = s->out_name[0];
    const gp_type *t = &s->out[0];
    int x = t->ndim - 1 - (t->ndim > 2 && t->dim[t->ndim - 1] <= COLORS), y = x - 1;
    size_t room = 2 * strlen(out) + 200, more = other ? strlen(other) + strlen(out) + 40 : 1;
    char *two = gp_shape_alloc(s, room);       /* axes, where there are */
    char *same = gp_shape_alloc(s, more);
    if (x > 0)
        snprintf(two, room, "; with .x along axis %d and .y along axis %d, block: [32, 8], grid: "
                 "[\"ceil(%s.shape[%d] / 32)\", \"ceil(%s.shape[%d] / 8)\"]", x, y, out, x, out, y);
    if (other)
        snprintf(same, more, "; for '%s' write %s instead of %s", other, other, out);
    return gp_shape_fail(s, "grid", "kernel '%s' %s, so it is not known which grid it wants: set 'block' "
                         "and 'grid'. With a thread for each element of '%s' along x they are block: 256, "
                         "grid: \"ceil(%s.size / 256)\"%s%s", entry, why, out, out, two, same);
}

static bool ask_entry(gp_shape *s, const gp_cu *code, const gp_tok *at)
{
    size_t room = strlen(code->path[at->file]) + 20;
    char *place = gp_shape_alloc(s, room);
    if (at != code->main.v)
        snprintf(place, room, " (%s:%d)", code->path[at->file], at->line);
    if (at != code->main.v && !gp_cu_uses(code, "extern"))
        return gp_shape_fail(s, gp_cu_option(code), "kernel '%s' is not extern \"C\"%s, so that its name is not found: "
                             "write extern \"C\" __global__ void %s(...)", code->entry, place, code->entry);
    return gp_shape_fail(s, gp_cu_option(code), "kernel '%s' is not plainly declared in '%s'%s: write extern \"C\" "
                         "__global__ void %s(...) { ... } once, in no #if and by no macro, and close all "
                         "brackets; or set 'block' and 'grid'", code->entry, code->path[0], place, code->entry);
}

static bool ask_at(gp_shape *s, const gp_cu *code, const gp_axes *a)
{
    if (!a->why)
        return ask_entry(s, code, a->odd);
    gp_loc at = gp_cu_at(code, a->odd);
    int len = a->odd->len < 40 ? a->odd->len : 40;
    size_t room = strlen(at.file) + strlen(a->why) + 120;
    char *why = gp_shape_alloc(s, room);
    if (a->odd == code->odd && a->odd->kind == GP_TOK_OTHER)
        snprintf(why, room, "stands in a source that %s (%s:%d)", a->why, at.file, at.line);
    else if (a->odd == code->odd)
        snprintf(why, room, "stands in a source that %s: %.*s (%s:%d)", a->why, len, a->odd->p,
                 at.file, at.line);
    else
        snprintf(why, room, "has '%.*s', which %s (%s:%d)", len, a->odd->p, a->why, at.file, at.line);
    return ask(s, code->entry, why, NULL);
}

/* Has the frame an axis for each of the grid's? All of it may lie along x. */
static bool check_frame(gp_shape *s, const char *entry, const gp_kgrid *g)
{
    const gp_type *t = &s->out[0];
    const unsigned block[3] = { g->block.x, g->block.y, g->block.z };
    int64_t blocks[3];
    for (int i = 0; i < 3; i++)
        blocks[i] = default_blocks(t, g->axes, i, block[i]);
    if (g->axes > 1 && t->ndim > g->axes && g->batched)
        return gp_shape_fail(s, "batched", "blockIdx.z is the frame, so that there is no grid "
                             "for three axes; set 'grid' to one of x and y");
    if (g->axes > 1 && t->ndim != g->axes) {
        size_t room = strlen(s->out_name[0]) + 60;
        char *why = gp_shape_alloc(s, room);
        snprintf(why, room, "uses %s, and '%s' has %d ax%s", g->axes == 2 ? "x and y" : "x, y and z",
                 s->out_name[0], t->ndim, t->ndim == 1 ? "is" : "es");
        return ask(s, entry, why, NULL);
    }
    if (blocks[0] > INT32_MAX || blocks[1] > MAX_GRID_YZ || blocks[2] > MAX_GRID_YZ)
        return gp_shape_fail(s, NULL, "no grid has one thread for each element of '%s'; set "
                             "'grid'", s->out_name[0]);
    for (int i = g->axes; i < 3; i++)
        if (block[i] > 1)
            return gp_shape_fail(s, "block", "a block of %u threads along %c, which kernel '%s' "
                                 "does not use (threadIdx.%c): leave them out, or set 'grid'",
                                 block[i], "xyz"[i], entry, "xyz"[i]);
    s->grid = (gp_dim3){ (unsigned)blocks[0], (unsigned)blocks[1], (unsigned)blocks[2] };
    return true;
}

/* A thread may be for each element of another port. */
static bool check_port(gp_shape *s, const char *entry, const gp_kgrid *g, const gp_type *t, const char *name)
{
    const gp_type *first = &s->out[0];
    bool larger = t->dtype && gp_count(t) > gp_count(first), other = t->ndim != first->ndim;
    for (int i = 0; i < t->ndim && !other; i++)
        other = t->dim[i] != first->dim[i];
    if (!larger && (g->axes < 2 || !other || gp_count(t) != gp_count(first)))
        return true;
    size_t room = 2 * strlen(name) + strlen(s->out_name[0]) + 120;
    char *why = gp_shape_alloc(s, room);
    if (larger)
        snprintf(why, room, "has '%s' of %lld elements and '%s' of %lld, and may have a thread for each element of "
                 "'%s'", name, (long long)gp_count(t), s->out_name[0], (long long)gp_count(first), name);
    else
        snprintf(why, room, "has '%s' and '%s' of different shapes, and its x and y may be those of '%s'", name,
                 s->out_name[0], name);
    return ask(s, entry, why, name);
}

static bool check_ports(gp_shape *s, const char *entry, const gp_kgrid *g)
{
    for (int i = 0; i < s->nin; i++)
        if (!check_port(s, entry, g, &s->in[i], s->in_name[i]))
            return false;
    for (int i = 1; i < s->nout; i++)
        if (!check_port(s, entry, g, &s->out[i], s->out_name[i]))
            return false;
    return true;
}

static bool choose(gp_shape *s, const gp_ints *block, gp_cu *code, gp_kgrid *g)
{
    const char *entry = code->entry;
    gp_axes a = gp_cu_axes(code, g->batched);
    bool flat = a.any & 6 && !block->n;
    g->axes = a.any & 4 ? 3 : a.any & 2 ? 2 : a.any ? 1 : 0;
    if (!read_block(s, block, flat ? 32 : g->axes ? 256 : 1, flat ? 8 : 1, g))
        return false;
    if (a.odd)
        return !gp_cu_slip(code) && ask_at(s, code, &a);
    s->grid = (gp_dim3){ 1, 1, 1 };
    if (!g->axes && (int64_t)g->block.x * g->block.y * g->block.z > 1)
        return ask(s, entry, "uses no index, so that all threads of a block would do the same", NULL);
    return !g->axes || (check_ports(s, entry, g) && check_frame(s, entry, g));
}

bool gp_kgrid_read(gp_shape *s, const gp_ints *block, gp_cu *code, gp_kgrid *g)
{
    return g->given ? read_block(s, block, 256, 1, g) && check_given(s, block, g)
                    : choose(s, block, code, g);
}

bool gp_kgrid_of(const gp_dcall *c, const gp_ports *p, const gp_kgrid *g, gp_dim3 *grid)
{
    int64_t n[3] = { 1, 1, 1 };
    const unsigned block[3] = { g->block.x, g->block.y, g->block.z };
    for (int i = 0; i < 3; i++) {
        gp_num v;
        if (!g->given) {
            n[i] = default_blocks(&c->out[0].type, g->axes, i, block[i]);
        } else if (i < grid_axes(g->given)) {
            const gp_node *e = grid_item(g->given, i);
            if (!gp_ports_eval(c, p, e, &v))
                return false;
            if (!blocks_fit(v, i))
                return gp_fail(c->errs, GP_E_RUN, e->at, "stage '%s': a grid of %.17g blocks "
                               "along %c", c->name, v.f, "xyz"[i]);
            n[i] = v.i;
        }
    }
    if (g->batched)
        n[2] = c->n;
    *grid = (gp_dim3){ (unsigned)n[0], (unsigned)n[1], (unsigned)n[2] };
    return true;
}
