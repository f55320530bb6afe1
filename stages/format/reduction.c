/* reduction.c - see reduction.h. */
#include <stdio.h>
#include "device.h"
#include "reduction.h"
#include "sums.h"

enum { TREE = 4096, PARTIALS = 1 << 16, SHORT = 64, LANES = 32, STEPS = 32, BLOCK = 256 };

static const char *const names[] = { [GP_SUM] = "sum", [GP_MEAN] = "mean", [GP_MIN] = "min", [GP_MAX] = "max" };

static bool is_extreme(const gp_reduction *r) { return r->op == GP_MIN || r->op == GP_MAX; }

gp_dtype gp_reduction_kept(const gp_reduction *r, gp_dtype t)
{
    return is_extreme(r) ? t : gp_sum_kept(t);
}

void gp_reduction_type(const gp_reduction *r, const gp_type *in, gp_type *out)
{
    gp_type t = { .dtype = is_extreme(r) ? in->dtype : gp_sum_made(in->dtype, r->op == GP_MEAN) };
    for (int d = 0; d < in->ndim; d++)
        if (!(r->axes >> d & 1) || r->keep)
            t.dim[t.ndim++] = r->axes >> d & 1 ? 1 : in->dim[d];
    if (!t.ndim)
        t.dim[t.ndim++] = 1;
    *out = t;
}

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
    return (most * gp_dtype_size(gp_reduction_kept(r, t->dtype)) + 255) / 256 * 256;
}

size_t gp_reduction_scratch(const gp_reduction *r, const gp_type *in)
{
    return 2 * half_scratch(r, in);
}

/* ---- passes ------------------------------------------------------------------ */

typedef struct work {
    const void *data;                  /* what the next pass reads, of the first frame; */
    gp_dtype dtype;
    size_t stride;                     /* ... elements to the next */
    gp_dtype kept;                     /* as partials are, */
    size_t partials;                   /* ... elements from a frame's to the next frame's */
    void *free, *other;                /* the halves of the scratch */
    const char *op;                    /* of folds, and trees that are not the last */
} work;

static void is_written(work *w)
{
    void *data = w->free;
    w->free = w->other, w->other = data;
    w->data = data, w->dtype = w->kept, w->stride = w->partials;
}

static bool fold(gp_dcall *c, work *w, group *g, gp_first_fold *first, void *arg)
{
    size_t results = g->outer * g->inner;
    gp_fold f = { w->free, w->partials, g->outer, g->rows, g->inner, 1, g->rows };
    char name[48];

    if (g->rows > SHORT && results < PARTIALS) {
        f.lanes = g->inner < LANES ? LANES : 1;
        f.steps = (g->rows * results + PARTIALS - 1) / PARTIALS;
        if (f.steps < STEPS)
            f.steps = STEPS;
    }
    size_t partials = (g->rows + f.lanes * f.steps - 1) / (f.lanes * f.steps) * f.lanes;
    snprintf(name, sizeof name, "reduce_fold_%s_%s", w->op, gp_dtype_name(w->dtype));
    if (first ? !first(c, &f, results * partials, arg)
              : !gp_launch_map(c, name, (int64_t)(results * partials),
                               GP_ARGS(&f.to, &f.stride, (void *)&w->data, &w->stride, &f.outer, &f.rows, &f.inner,
                                       &f.lanes, &f.steps)))
        return false;
    g->rows = partials;
    is_written(w);
    return true;
}

/* Into `to`, or where that is NULL into partials. */
static bool tree(gp_dcall *c, work *w, const group *g, const char *op, gp_dtype named, const gp_view *to, double count)
{
    unsigned threads = 1;
    while (threads < BLOCK && 2 * threads <= g->rows)
        threads *= 2;
    size_t blocks = (g->outer * g->inner * threads + BLOCK - 1) / BLOCK;
    size_t stride = to ? gp_stride(to) : w->partials;
    void *dst = to ? to->data : w->free;
    size_t rows = g->rows, outer = g->outer, inner = g->inner;
    char name[48];

    snprintf(name, sizeof name, "reduce_tree_%s_%s", op, gp_dtype_name(named));
    if (!gp_launch(c, name, (gp_dim3){ (unsigned)blocks, 1, (unsigned)c->n }, (gp_dim3){ threads, BLOCK / threads, 1 },
                   BLOCK * gp_dtype_size(w->dtype),
                   GP_ARGS(&dst, &stride, (void *)&w->data, &w->stride, &outer, &rows, &inner, &count)))
        return false;
    is_written(w);
    return true;
}

bool gp_reduction_record(gp_dcall *c, const gp_reduction *r, const gp_view *in, const gp_view *out, gp_first_fold *first,
                         void *arg)
{
    const gp_type *t = &in->type;
    gp_dtype kept = gp_reduction_kept(r, t->dtype);
    work w = { .data = in->data, .dtype = t->dtype, .stride = gp_stride(in), .kept = kept,
               .partials = c->scratch_stride / gp_dtype_size(kept), .free = c->scratch,
               .other = (char *)c->scratch + half_scratch(r, t), .op = names[r->op == GP_MEAN ? GP_SUM : r->op] };
    group g = { .inner = 1 };
    double count = 1;

    for (int d = t->ndim - 1; !g.last; ) {
        next_group(t, r->axes, &d, &g);
        count *= (double)g.rows;
        for (bool more = true; more; more = g.rows > TREE, first = NULL)
            if (!fold(c, &w, &g, first, arg))
                return false;
        if (!(g.last ? tree(c, &w, &g, names[r->op], gp_is_float(t->dtype) ? t->dtype : kept, out, count)
                     : tree(c, &w, &g, w.op, kept, NULL, 1)))
            return false;
    }
    return true;
}
