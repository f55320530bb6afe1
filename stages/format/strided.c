/* strided.c - see strided.h. Axes that lie in a row in both arrays become one; what lies side by side in both is a run.
 * Long runs are copied as such. Of short ones, and of single elements, those are copied in tiles that lie side by side
 * along one axis in the source and along another in what is made, so that both are read and written in lines. */
#include <stdio.h>
#include <stdlib.h>
#include "device.h"
#include "strided.h"

enum { MOST = (1u << 31) - 1, BLOCK = 256, BLOCKS = 1 << 14, LONG = 32, NEAR = 32 };

int64_t gp_strided_step(const gp_type *t, int axis)
{
    int64_t step = (int64_t)gp_dtype_size(t->dtype);
    for (int k = t->ndim - 1; k > axis; k--)
        step *= t->dim[k];
    return step;
}

gp_strided gp_strided_of(const gp_type *in, const gp_type *made)
{
    gp_strided s = { .axes = made->ndim, .each = gp_dtype_size(in->dtype) };
    for (int k = 0; k < made->ndim; k++) {
        s.axis[k].n = made->dim[k], s.axis[k].to = gp_strided_step(made, k);
        s.axis[k].from = k < in->ndim ? gp_strided_step(in, k) : 0;
    }
    return s;
}

gp_divisor gp_divisor_of(int64_t d)
{
    unsigned shift = 0;
    while ((int64_t)1 << shift < d)
        shift++;
    return (gp_divisor){ (unsigned)d,
                         (unsigned)((((uint64_t)1 << 32) * (((uint64_t)1 << shift) - (uint64_t)d)) / (uint64_t)d + 1),
                         shift };
}

/* ---- fewer axes ------------------------------------------------------------ */

static void drop(gp_strided *s, int k)
{
    for (s->axes--; k < s->axes; k++)
        s->axis[k] = s->axis[k + 1];
}

static void simplify(gp_strided *s)
{
    for (int k = s->axes - 1; k >= 0; k--)
        if (s->axis[k].n == 1)
            drop(s, k);
    for (int k = s->axes - 2; k >= 0; k--)
        if (s->axis[k].from == s->axis[k + 1].from * s->axis[k + 1].n
            && s->axis[k].to == s->axis[k + 1].to * s->axis[k + 1].n) {
            s->axis[k + 1].n *= s->axis[k].n;
            drop(s, k);
        }
    int last = s->axes - 1;
    if (last >= 0 && s->axis[last].from == (int64_t)s->each && s->axis[last].to == (int64_t)s->each)
        s->each *= (size_t)s->axis[last].n, s->axes--;
}

/* The largest word that all that is copied is a multiple of. */
static unsigned word_of(const gp_strided *s, uintptr_t from, uintptr_t to, size_t most)
{
    uintptr_t all = from | to | s->each | most;
    for (int k = 0; k < s->axes; k++)
        all |= (uintptr_t)s->axis[k].from | (uintptr_t)s->axis[k].to;
    return (unsigned)(all & -all);
}

/* ---- launches --------------------------------------------------------------- */

static bool launch(gp_dcall *c, const char *name, unsigned word, gp_dim3 grid, gp_dim3 block, size_t shared,
                   gp_layout *copy)
{
    char kernel[32];
    snprintf(kernel, sizeof kernel, "copy_%s_%u", name, word);
    grid.z = (unsigned)c->n;
    return gp_launch(c, kernel, grid, block, shared, GP_ARGS(copy));
}

static gp_layout_axis axis_of(const gp_strided *s, int k)
{
    return (gp_layout_axis){ s->axis[k].from, s->axis[k].to, gp_divisor_of(s->axis[k].n) };
}

static void put_axes(gp_layout *copy, const gp_strided *s)
{
    for (int k = 0; k < s->axes; k++)
        copy->axis[copy->axes++] = axis_of(s, k);
}

static bool runs(gp_dcall *c, gp_layout *copy, const gp_strided *s, int64_t all)
{
    enum { WORDS = 4, PART = 1 << 16, ROWS = 1 << 15 };
    unsigned word = word_of(s, (uintptr_t)copy->from, (uintptr_t)copy->to, 16), x = 1;
    int64_t unit = word >= 4 ? word : s->each >= GP_COPY_LONG ? 16 : 4, words = (int64_t)s->each / unit + (word < 4 ? 2 : 0);
    put_axes(copy, s);
    copy->run = s->each, copy->all = (unsigned)all;
    while (x < BLOCK && x < words)
        x *= 2;
    if (gp_rec_on_cpu(c))
        return launch(c, "runs", 1, (gp_dim3){ gp_blocks((int64_t)s->each, PART, ROWS), gp_blocks(all, 1, ROWS), 1 },
                      (gp_dim3){ 1, 1, 1 }, 0, copy);
    return launch(c, "runs", word < 4 ? 1 : word,
                  (gp_dim3){ gp_blocks((words + WORDS * x / 2) / (WORDS * x), 1, BLOCKS),
                             gp_blocks(all * x, BLOCK, ROWS), 1 },
                  (gp_dim3){ x, BLOCK / x, 1 }, 0, copy);
}

/* The last axis, in pieces of as many words as have 4 bytes. */
static bool each(gp_dcall *c, gp_layout *copy, gp_strided *s, int64_t all)
{
    unsigned word = (unsigned)s->each, chunk = word < 4 ? 4 / word : 1;
    if (!s->axes)
        s->axis[s->axes++].n = 1;
    int64_t n = s->axis[s->axes - 1].n, chunks = (n + chunk - 1) / chunk;
    copy->p = axis_of(s, --s->axes);
    put_axes(copy, s);
    copy->chunk = chunk, copy->chunks = gp_divisor_of(chunks), copy->all = (unsigned)(all / n * chunks);
    return launch(c, "each", word, (gp_dim3){ gp_blocks(copy->all, BLOCK, BLOCKS), 1, 1 },
                  (gp_dim3){ gp_rec_on_cpu(c) ? 1 : BLOCK, 1, 1 }, 0, copy);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The last axis is p, axis `q` the other. */
static bool tiles(gp_dcall *c, gp_layout *copy, gp_strided *s, int q, unsigned word)
{
    int64_t side = s->each <= 2 ? 64 : s->each <= 12 ? 32 : 16, np = s->axis[s->axes - 1].n, nq = s->axis[q].n;
    int64_t tile_p = least(np, side), tile_q = least(nq, side);
    if (tile_q < side)
        tile_p = least(np, side * side / tile_q);
    if (tile_p < side)
        tile_q = least(nq, side * side / tile_p);
    unsigned wide = (unsigned)s->each / word, unit = word < 4 ? 4 : word;
    unsigned line = ((unsigned)tile_p * (unsigned)s->each + unit - 1) / unit;
    copy->p = axis_of(s, s->axes - 1), copy->q = axis_of(s, q);
    copy->tile_p = (unsigned)tile_p, copy->tile_q = (unsigned)tile_q, copy->wide = wide;
    copy->pitch = (line | 1) * unit;           /* odd, so that a column lies in all banks */
    copy->words_p = gp_divisor_of(tile_p * wide), copy->words_q = gp_divisor_of(tile_q * wide);
    copy->words = gp_divisor_of(wide);
    copy->tiles_p = gp_divisor_of((np + tile_p - 1) / tile_p), copy->tiles_q = gp_divisor_of((nq + tile_q - 1) / tile_q);
    s->axes--;
    drop(s, q);
    put_axes(copy, s);
    copy->all = copy->tiles_p.d * copy->tiles_q.d;
    for (int k = 0; k < s->axes; k++)
        copy->all *= (unsigned)s->axis[k].n;
    return launch(c, "tile", word, (gp_dim3){ gp_blocks(copy->all, 1, BLOCKS), 1, 1 },
                  (gp_dim3){ gp_rec_on_cpu(c) ? 1 : BLOCK, 1, 1 },
                  (size_t)tile_q * copy->pitch, copy);
}

/* Fewer than 2^31 elements, or runs. */
static bool part(gp_dcall *c, gp_layout copy, gp_strided s, int64_t all)
{
    unsigned word;
    if (s.each >= LONG || !s.axes)
        return runs(c, &copy, &s, all);
    word = word_of(&s, (uintptr_t)copy.from, (uintptr_t)copy.to, 16);
    int p = s.axes - 1, q = p;
    for (int k = 0; k < p; k++)
        if (llabs(s.axis[k].from) < llabs(s.axis[q].from))
            q = k;
    if (q != p && llabs(s.axis[q].from) <= NEAR)
        return tiles(c, &copy, &s, q, word);
    if (s.each > word) {
        all *= (int64_t)(s.each / word);
        s.axis[s.axes].n = (int64_t)(s.each / word), s.axis[s.axes].from = s.axis[s.axes].to = word;
        s.axes++, s.each = word;
    }
    return each(c, &copy, &s, all);
}

/* An array that has more is copied in parts along its longest axis. */
static bool all_of(gp_dcall *c, gp_layout copy, gp_strided s)
{
    int64_t all = 1;
    int longest = 0;
    for (int k = 0; k < s.axes; k++) {
        all *= s.axis[k].n;
        longest = s.axis[k].n > s.axis[longest].n ? k : longest;
    }
    if (all * (s.each < LONG ? (int64_t)s.each : 1) <= MOST)
        return part(c, copy, s, all);
    gp_strided half = s;
    half.axis[longest].n /= 2;
    s.axis[longest].n -= half.axis[longest].n;
    if (!all_of(c, copy, half))
        return false;
    copy.from += half.axis[longest].n * s.axis[longest].from, copy.to += half.axis[longest].n * s.axis[longest].to;
    return all_of(c, copy, s);
}

bool gp_strided_record(gp_dcall *c, const gp_view *in, int64_t from, const gp_view *out, int64_t to, gp_strided s)
{
    gp_layout copy = { .to = (char *)out->data + to, .to_next = out->stride, .from = (const char *)in->data + from,
                     .from_next = in->stride };
    simplify(&s);
    return all_of(c, copy, s);
}
