/* reduce.c - sum, mean, min or max over some axes.
 *
 * Neighbouring axes are reduced together, the last ones first: such a group is
 * the middle axis of (outer, rows, inner). Folds make `rows` at most TREE, a tree
 * then makes it 1 (kernels/reduce.cu). What is between passes, partials, goes from
 * one half of the scratch to the other. */
#include <stdio.h>
#include "device.h"
#include "sums.h"

enum { SUM, MEAN, MIN, MAX };
enum { TREE = 4096, PARTIALS = 1 << 16, SHORT = 64, LANES = 32, STEPS = 32, BLOCK = 256 };

struct opts {
    int op;
    gp_ints axes;
    bool keep;
};

/* The axes to reduce as a set of bits; 0 when they are not valid. */
static unsigned axes_of(const struct opts *o, int ndim)
{
    unsigned set = o->axes.n ? 0 : (1u << ndim) - 1;
    for (int i = 0; i < o->axes.n; i++) {
        int64_t axis = o->axes.v[i] < 0 ? o->axes.v[i] + ndim : o->axes.v[i];
        if (axis < 0 || axis >= ndim || set >> axis & 1)
            return 0;
        set |= 1u << axis;
    }
    return set;
}

static bool is_extreme(int op) { return op == MIN || op == MAX; }

static gp_dtype partial_type(int op, gp_dtype t)
{
    return is_extreme(op) ? t : gp_sum_kept(t);
}

static gp_dtype result_type(int op, gp_dtype t)
{
    return is_extreme(op) ? t : gp_sum_made(t, op == MEAN);
}

/* A group of axes. */
struct group { size_t outer, rows, inner; bool last; };

/* Takes the next group from the axes up to *d, of which `set` are reduced; g->inner
 * is what was left after the one before, 1 at first. */
static void next_group(const gp_type *t, unsigned set, int *d, struct group *g)
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

/* Bytes of half the scratch: for the largest number of partials, and never less
 * for a frame with more rows. */
static size_t half_scratch(const gp_type *t, unsigned set, gp_dtype partial)
{
    struct group g = { .inner = 1 };
    size_t most = 0;
    for (int d = t->ndim - 1; !g.last; ) {
        next_group(t, set, &d, &g);
        size_t results = g.outer * g.inner, n = PARTIALS + LANES * results;
        if (n > results * g.rows)
            n = results * g.rows;
        if (n > most)
            most = n;
    }
    return (most * gp_dtype_size(partial) + 255) / 256 * 256;
}

static bool shape(gp_shape *s)
{
    const struct opts *o = s->opts;
    const gp_type *in = &s->in[0];
    gp_type *out = &s->out[0];
    unsigned set = axes_of(o, in->ndim);
    char text[128];

    if (!set)
        return gp_shape_fail(s, "axes", "'axes' must be different axes of %s: 0 to %d, or -1 "
                             "and down from the last", gp_type_text(in, text), in->ndim - 1);
    *out = (gp_type){ .dtype = result_type(o->op, in->dtype) };
    for (int d = 0; d < in->ndim; d++)
        if (!(set >> d & 1) || o->keep)
            out->dim[out->ndim++] = set >> d & 1 ? 1 : in->dim[d];
    if (!out->ndim)
        out->dim[out->ndim++] = 1;
    s->scratch = 2 * half_scratch(in, set, partial_type(o->op, in->dtype));
    s->batched = true;
    return true;
}

/* The data between two passes. */
struct work {
    const void *data;              /* of the first frame */
    size_t stride;                 /* elements */
    gp_dtype dtype;
    void *free, *other;            /* the halves of the scratch */
};

static void written(struct work *w, size_t stride, gp_dtype dtype)
{
    void *data = w->free;
    w->free = w->other, w->other = data;
    w->data = data, w->stride = stride, w->dtype = dtype;
}

static bool fold(gp_dcall *c, struct work *w, struct group *g, const char *op, gp_dtype partial)
{
    size_t results = g->outer * g->inner, lanes = 1, steps = g->rows;
    size_t stride = c->scratch_stride / gp_dtype_size(partial);
    char name[48];

    if (g->rows > SHORT && results < PARTIALS) {
        lanes = g->inner < LANES ? LANES : 1;
        steps = (g->rows * results + PARTIALS - 1) / PARTIALS;
        if (steps < STEPS)
            steps = STEPS;
    }
    size_t partials = (g->rows + lanes * steps - 1) / (lanes * steps) * lanes;
    snprintf(name, sizeof name, "reduce_fold_%s_%s", op, gp_dtype_name(w->dtype));
    if (!gp_launch_map(c, name, (int64_t)(results * partials),
                       GP_ARGS(&w->free, &stride, (void *)&w->data, &w->stride, &g->outer,
                               &g->rows, &g->inner, &lanes, &steps)))
        return false;
    g->rows = partials;
    written(w, stride, partial);
    return true;
}

/* Into `to`, or where that is NULL into partials. */
static bool tree(gp_dcall *c, struct work *w, const struct group *g, const char *op,
                 gp_dtype name_of, const gp_view *to, double count)
{
    unsigned threads = 1;
    while (threads < BLOCK && 2 * threads <= g->rows)
        threads *= 2;
    size_t blocks = (g->outer * g->inner * threads + BLOCK - 1) / BLOCK;
    size_t stride = to ? gp_stride(to) : w->stride;
    void *dst = to ? to->data : w->free;
    size_t rows = g->rows, outer = g->outer, inner = g->inner;
    char name[48];

    snprintf(name, sizeof name, "reduce_tree_%s_%s", op, gp_dtype_name(name_of));
    if (!gp_launch(c, name, (gp_dim3){ (unsigned)blocks, 1, (unsigned)c->n },
                   (gp_dim3){ threads, BLOCK / threads, 1 },
                   BLOCK * gp_dtype_size(w->dtype),
                   GP_ARGS(&dst, &stride, (void *)&w->data, &w->stride, &outer, &rows, &inner,
                           &count)))
        return false;
    written(w, w->stride, w->dtype);
    return true;
}

static bool record(gp_dcall *c)
{
    static const char *const names[] = { "sum", "mean", "min", "max" };
    const struct opts *o = c->opts;
    const gp_view *x = c->in;
    const gp_type *t = &x->type;
    unsigned set = axes_of(o, t->ndim);
    gp_dtype partial = partial_type(o->op, t->dtype);
    const char *op = names[o->op == MEAN ? SUM : o->op];
    struct work w = { x->data, gp_stride(x), t->dtype, c->scratch,
                      (char *)c->scratch + half_scratch(t, set, partial) };
    struct group g = { .inner = 1 };
    double count = 1;

    for (int d = t->ndim - 1; !g.last; ) {
        next_group(t, set, &d, &g);
        count *= (double)g.rows;
        do
            if (!fold(c, &w, &g, op, partial))
                return false;
        while (g.rows > TREE);
        if (!g.last ? !tree(c, &w, &g, op, partial, NULL, 1)
                    : !tree(c, &w, &g, names[o->op], gp_is_float(t->dtype) ? t->dtype : partial,
                            c->out, count))
            return false;
    }
    return true;
}

static const gp_port in[] = { { "in", GP_ACCEPT_REAL, .help = "numbers" }, { 0 } };
static const gp_port out[] = {
    { "out", GP_ACCEPT_REAL, .help = "the axes that are left, or [1]; floats and min, max keep "
      "their type, sums of integers are i64 (u64 of u64), their means f32" },
    { 0 }
};

static const gp_opt options[] = {
    { GP_ENUM(struct opts, op), .required = true, .choices = "sum|mean|min|max",
      .help = "floats are summed in f64, integers in 64 bits; min and max keep a NaN" },
    { GP_INTS(struct opts, axes), .min = -GP_MAXDIM, .max = GP_MAXDIM - 1,
      .help = "the axes to reduce, negative from the last; all when left out" },
    { GP_BOOL(struct opts, keep), .def = "false", .help = "keep reduced axes, with size 1" },
    { 0 }
};

const gp_kind gp_kind_reduce = {
    GP_KIND("reduce"),
    .help = "sum, mean, min or max over axes",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .any_shape = true, .shape = shape, .record = record,
};
