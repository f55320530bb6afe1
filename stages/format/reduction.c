/* reduction.c - see reduction.h. */
#include <stdio.h>
#include "device.h"
#include "reduction.h"
#include "sums.h"

enum {
    TREE = 4096, PARTIALS = 1 << 16, SHORT = 64, LANES = 32, STEPS = 32, BLOCK = 256, GRID = 1 << 14,
    LINE_BLOCKS = 512, LINE_STEPS = 8, LINE_ROWS = 16,     /* of all chunks; in a chunk at least; a thread */
    WIDEST = 16,                                           /* bytes of a partial */
};

/* In names of kernels: of the first fold, of folds and trees behind it, of the last tree. */
static const struct { const char *first, *join, *last; } names[] = {
    [GP_SUM] = { "sum", "sum", "sum" }, [GP_MEAN] = { "sum", "sum", "mean" }, [GP_MIN] = { "min", "min", "min" },
    [GP_MAX] = { "max", "max", "max" }, [GP_STD] = { "std", "std", "std" }, [GP_ARGMIN] = { "argmin", "argmin", "argmin" },
    [GP_ARGMAX] = { "argmax", "argmax", "argmax" }, [GP_ANY] = { "any", "max", "max" }, [GP_ALL] = { "all", "min", "min" },
};

static bool is_arg(const gp_reduction *r) { return r->op == GP_ARGMIN || r->op == GP_ARGMAX; }
static bool is_truth(const gp_reduction *r) { return r->op == GP_ANY || r->op == GP_ALL; }

/* An item that a kernel reads or writes: how its name says that, and its bytes. */
typedef struct item { const char *name; size_t size; } item;

/* Partials of frames of type t, see kernels/join.h and statistics.cu. */
static item kept_of(const gp_reduction *r, gp_dtype t)
{
    gp_dtype sum = gp_sum_kept(t, false), plain = gp_reduction_kept(r, t);
    if (r->op == GP_STD)
        return (item){ "spread", 8 * sizeof(double) };
    if (is_arg(r))
        return (item){ sum == GP_F64 ? "best_f64" : sum == GP_U64 ? "best_u64" : "best_i64", 2 * sizeof(double) };
    return (item){ gp_dtype_name(plain), gp_dtype_size(plain) };
}

bool gp_reduction_is_fsum(const gp_reduction *r, gp_dtype t) { return gp_is_fsum(t, r->op == GP_MEAN); }

static const char *first_of(const gp_reduction *r, gp_dtype t)
{
    return gp_reduction_is_fsum(r, t) ? "fsum" : names[r->op].first;
}

static bool is_extreme(const gp_reduction *r) { return r->op == GP_MIN || r->op == GP_MAX; }

gp_dtype gp_reduction_kept(const gp_reduction *r, gp_dtype t)
{
    return is_extreme(r) ? t : is_truth(r) ? GP_U8 : gp_sum_kept(t, r->op == GP_MEAN);
}

static gp_dtype made_of(const gp_reduction *r, gp_dtype t)
{
    return is_extreme(r) ? t : is_truth(r) ? GP_U8 : is_arg(r) ? GP_I64
         : gp_sum_made(t, r->op == GP_MEAN || r->op == GP_STD);
}

void gp_reduction_type(const gp_reduction *r, const gp_type *in, gp_type *out)
{
    gp_type t = { .dtype = made_of(r, in->dtype) };
    for (int d = 0; d < in->ndim; d++)
        if (!(r->axes >> d & 1) || r->keep)
            t.dim[t.ndim++] = r->axes >> d & 1 ? 1 : in->dim[d];
    if (!t.ndim)
        t.dim[t.ndim++] = 1;
    *out = t;
}

gp_none gp_reduction_none(const gp_reduction *r, gp_dtype t)
{
    bool fraction = t == GP_F16 || t == GP_F32 || t == GP_F64 || r->op == GP_MEAN || r->op == GP_STD;
    if (!(r->axes & 1) || is_arg(r))
        return GP_NONE_NO_ROWS;
    return r->op == GP_SUM || r->op == GP_ANY ? GP_NONE_ZERO : r->op == GP_ALL ? GP_NONE_ONE
         : fraction ? GP_NONE_NAN : GP_NONE_NO_ROWS;
}

/* ---- lines ------------------------------------------------------------------- */

bool gp_reduction_is_lines(const gp_reduction *r, int ndim)
{
    unsigned set = r->axes, last = 1u << (ndim - 1);
    if (r->op > GP_MAX && !is_arg(r))
        return false;
    for (; last && set & last; last >>= 1)
        set &= ~last;
    return !set;
}

size_t gp_reduction_zero(const gp_reduction *r, const gp_type *in)
{
    return gp_reduction_is_lines(r, in->ndim) ? GP_LINE_TICKETS * sizeof(unsigned) : 0;
}

/* The tickets, then the partials of a GPU, or lanes and partials of a CPU. */
static size_t line_scratch(void)
{
    return GP_LINE_TICKETS * sizeof(unsigned) + (size_t)(4 * GP_LINE_THREADS + GP_LINE_PARTIALS) * WIDEST;
}

/* Chunks are as many as keep a GPU busy, but not short; several of a line only if its threads are a whole block, so
 * there are at most LINE_BLOCKS such lines, and LINE_BLOCKS more partials than lines. */
static gp_lines lines_of(const gp_dcall *c, const gp_reduction *r, const gp_type *t, const gp_view *out)
{
    gp_lines l = { .to = out->data, .to_next = out->stride, .tickets = c->scratch, .scratch_next = c->scratch_stride,
                   .partials = (char *)c->scratch + GP_LINE_TICKETS * sizeof(unsigned),
                   .outer = 1, .rows = 1, .threads = 1 };
    for (int d = 0; d < t->ndim; d++)
        *(r->axes >> d & 1 ? &l.rows : &l.outer) *= (size_t)t->dim[d];
    while (l.threads < GP_LINE_THREADS && l.threads * LINE_ROWS <= l.rows)
        l.threads *= 2;
    size_t lanes = 4 * l.threads, each = (size_t)4 * GP_LINE_THREADS * LINE_BLOCKS;
    l.steps = (l.rows * l.outer + each - 1) / each;
    if (l.steps < LINE_STEPS)
        l.steps = LINE_STEPS;
    l.chunks = (l.rows + lanes * l.steps - 1) / (lanes * l.steps);
    l.count = r->op == GP_MEAN ? (double)l.rows : 0;
    return l;
}

static bool record_lines(gp_dcall *c, const gp_reduction *r, const gp_view *in, const gp_view *out, gp_first_fold *first,
                         void *arg)
{
    gp_fold f = { .lines = lines_of(c, r, &in->type, out) };
    const gp_lines *l = &f.lines;
    const gp_dtype t = in->type.dtype;
    size_t stride = in->stride / gp_dtype_size(t), beside = GP_LINE_THREADS / l->threads;
    size_t blocks = (l->outer * l->chunks + beside - 1) / beside;
    int quads = l->outer == 1 || l->rows % 4 == 0;
    char name[48];

    f.block = (gp_dim3){ l->threads, (unsigned)beside, 1 };
    f.shared = 4 * GP_LINE_THREADS * kept_of(r, t).size;
    if (gp_rec_on_cpu(c)) {
        f.block = (gp_dim3){ 1, 1, 1 };
        blocks = 1;
    }
    f.grid = (gp_dim3){ (unsigned)blocks, 1, (unsigned)c->n };
    if (first)
        return first(c, &f, arg);
    snprintf(name, sizeof name, "reduce_lines_%s_%s", first_of(r, t), gp_dtype_name(t));
    return gp_launch(c, name, f.grid, f.block, f.shared, GP_ARGS(&f.lines, (void *)&in->data, &stride, &quads));
}

/* ---- other axes --------------------------------------------------------------- */

/* A group of axes. */
typedef struct group { size_t outer, rows, inner; bool last; } group;

/* Takes the next group from the axes up to *d, of which `set` are reduced; g->inner is what was left after the one
 * before, 1 at first. */
static void next_group(const gp_type *t, unsigned set, int *d, group *g)
{
    for (; !(set >> *d & 1); --*d)
        g->inner *= (size_t)t->dim[*d];
    for (g->rows = 1; *d >= 0 && set >> *d & 1; --*d)
        g->rows *= (size_t)t->dim[*d];
    g->outer = 1;
    for (int i = 0; i <= *d; i++)
        g->outer *= (size_t)t->dim[i];
    g->last = !(set & ((1u << (*d + 1)) - 1));
}

/* Bytes of half the scratch: for the largest number of partials, and never less for a frame with more rows. */
static size_t half_scratch(const gp_reduction *r, const gp_type *t)
{
    group g = { .inner = 1 };
    size_t most = 0;
    for (int d = t->ndim - 1; !g.last; ) {
        next_group(t, r->axes, &d, &g);
        size_t results = g.outer * g.inner, n = PARTIALS + LANES * results;
        if (n > results * g.rows)
            n = results * g.rows;
        if (n > most)
            most = n;
    }
    return (most * kept_of(r, t->dtype).size + 255) / 256 * 256;
}

size_t gp_reduction_scratch(const gp_reduction *r, const gp_type *in)
{
    return gp_reduction_is_lines(r, in->ndim) ? line_scratch() : 2 * half_scratch(r, in);
}

/* ---- passes ------------------------------------------------------------------ */

typedef struct work {
    const void *data;                  /* what the next pass reads, of the first frame; */
    item what;
    size_t stride;                     /* ... elements to the next */
    item kept;                         /* as partials are, */
    size_t partials;                   /* ... elements from a frame's to the next frame's */
    void *free, *other;                /* the halves of the scratch */
    const char *fold, *join;           /* of the next fold, and of those behind it */
} work;

static void is_written(work *w)
{
    void *data = w->free;
    w->free = w->other, w->other = data;
    w->data = data, w->what = w->kept, w->stride = w->partials;
}

static bool fold(gp_dcall *c, work *w, group *g, gp_first_fold *first, void *arg)
{
    size_t results = g->outer * g->inner;
    gp_fold f = { .to = w->free, .stride = w->partials, .outer = g->outer, .rows = g->rows, .inner = g->inner, .lanes = 1,
                  .steps = g->rows, .block = { BLOCK, 1, 1 } };
    char name[48];

    if (g->rows > SHORT && results < PARTIALS) {
        f.lanes = g->inner < LANES ? LANES : 1;
        f.steps = (g->rows * results + PARTIALS - 1) / PARTIALS;
        if (f.steps < STEPS)
            f.steps = STEPS;
    }
    size_t partials = (g->rows + f.lanes * f.steps - 1) / (f.lanes * f.steps) * f.lanes;
    size_t blocks = (results * partials + BLOCK - 1) / BLOCK;
    f.grid = (gp_dim3){ (unsigned)(blocks < GRID ? blocks : GRID), 1, (unsigned)c->n };
    snprintf(name, sizeof name, "reduce_fold_%s_%s", w->fold, w->what.name);
    if (first ? !first(c, &f, arg)
              : !gp_launch(c, name, f.grid, f.block, 0,
                           GP_ARGS(&f.to, &f.stride, (void *)&w->data, &w->stride, &f.outer, &f.rows, &f.inner,
                                   &f.lanes, &f.steps)))
        return false;
    g->rows = partials;
    w->fold = w->join;
    is_written(w);
    return true;
}

/* Into `to`, or where that is NULL into partials. */
static bool tree(gp_dcall *c, work *w, const group *g, const char *op, const char *named, const gp_view *to, double count)
{
    unsigned threads = 1;
    while (threads < BLOCK && 2 * threads <= g->rows)
        threads *= 2;
    size_t blocks = (g->outer * g->inner * threads + BLOCK - 1) / BLOCK;
    size_t stride = !to ? w->partials : to->type.dtype ? gp_stride(to) : to->stride / w->kept.size;
    void *dst = to ? to->data : w->free;
    size_t rows = g->rows, outer = g->outer, inner = g->inner;
    char name[48];

    snprintf(name, sizeof name, "reduce_tree_%s_%s", op, named);
    if (!gp_launch(c, name, (gp_dim3){ (unsigned)blocks, 1, (unsigned)c->n }, (gp_dim3){ threads, BLOCK / threads, 1 },
                   BLOCK * w->what.size,
                   GP_ARGS(&dst, &stride, (void *)&w->data, &w->stride, &outer, &rows, &inner, &count)))
        return false;
    is_written(w);
    return true;
}

bool gp_reduction_record(gp_dcall *c, const gp_reduction *r, const gp_view *in, const gp_view *out, gp_first_fold *first,
                         void *arg)
{
    const gp_type *t = &in->type;
    if (gp_reduction_is_lines(r, t->ndim))
        return record_lines(c, r, in, out, first, arg);
    item kept = kept_of(r, t->dtype);
    work w = { .data = in->data, .what = { gp_dtype_name(t->dtype), gp_dtype_size(t->dtype) }, .stride = gp_stride(in),
               .kept = kept, .partials = c->scratch_stride / kept.size, .free = c->scratch,
               .other = (char *)c->scratch + half_scratch(r, t), .fold = first_of(r, t->dtype),
               .join = names[r->op].join };
    bool floats = gp_reduction_kept(r, t->dtype) == GP_F64 || gp_is_float(t->dtype), own = !is_arg(r) && !is_truth(r);
    bool as_said = out->type.dtype && own && (floats || r->op == GP_STD);
    const char *made = as_said ? gp_dtype_name(made_of(r, t->dtype)) : kept.name;
    group g = { .inner = 1 };
    double count = 1;

    for (int d = t->ndim - 1; !g.last; ) {
        next_group(t, r->axes, &d, &g);
        count *= (double)g.rows;
        for (bool more = true; more; more = g.rows > TREE, first = NULL)
            if (!fold(c, &w, &g, first, arg))
                return false;
        if (!(g.last ? tree(c, &w, &g, names[r->op].last, made, out, count)
                     : tree(c, &w, &g, names[r->op].join, kept.name, NULL, 1)))
            return false;
    }
    return true;
}
