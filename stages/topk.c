/* topk.c - the k largest numbers along an axis, or the k smallest, and where they are; see kernels/topk.cu.
 *
 * The order is total: equal numbers stand in the order of their places, and NaN, as in numpy.sort, is above all
 * numbers. So what comes out does not depend on how the work is shared. A GPU cuts lines into chunks, of each of which
 * K stay, K the power of two from k on, then those into chunks, until one is left; where K is a chunk or more, it sorts
 * chunks, and merges two and two. */
#include <stdio.h>
#include <string.h>
#include "base/plural.h"
#include "axes.h"
#include "device.h"
#include "sort.h"

enum { BLOCK = 256, BLOCKS = 1 << 14 };

struct opts {
    int64_t k, axis;
    bool largest;
    int values, indices;                   /* which output they are, or -1: found by shape() */
};

/* As in kernels/topk.cu. */
struct topk_work {
    size_t lines, n, inner, rows, chunks;
    unsigned k, log_run, log_size;
    int largest;
};

static int64_t how_many(const struct opts *o, const gp_type *t, int axis) { return o->k ? o->k : t->dim[axis]; }

static struct topk_work work_of(const struct opts *o, const gp_type *t, int axis)
{
    gp_lanes line = gp_lanes_of(t, axis, axis);
    struct topk_work w = { .lines = line.outer * line.inner, .n = line.rows, .inner = line.inner,
                           .k = (unsigned)how_many(o, t, axis), .largest = o->largest };
    while (w.log_run < LOG_SIZE && 1u << w.log_run < w.k)
        w.log_run++;
    return w;
}

/* The next `rows` of each line, in chunks of 2^log_size. */
static void cut(struct topk_work *w, size_t rows)
{
    w->rows = rows, w->log_size = 0;
    while (w->log_size < LOG_SIZE && (size_t)1 << w->log_size < rows)
        w->log_size++;
    w->chunks = (rows + ((size_t)1 << w->log_size) - 1) >> w->log_size;
}

static size_t entry_bytes(gp_dtype t) { return gp_dtype_size(t) == 8 ? 16 : 8; }

static size_t left(const struct topk_work *w) { return w->chunks << w->log_run; }

static bool merges(const struct topk_work *w) { return w->log_run == LOG_SIZE && w->n > SIZE; }

/* Room for the entries that two passes leave, which take turns; on a CPU for a heap that shared memory has no room for. */
static size_t scratch_of(struct topk_work w, gp_dtype t, bool cpu, size_t *first)
{
    size_t n[2] = { 0 };
    cut(&w, w.n);
    for (int i = 0; i < 2 && w.chunks > 1 && !cpu; i++) {
        n[i] = (w.lines * left(&w) * entry_bytes(t) + 255) / 256 * 256;
        if (!merges(&w))
            cut(&w, left(&w));
    }
    *first = n[0];
    return cpu && w.k > SIZE ? w.k * entry_bytes(t) : n[0] + n[1];
}

static bool find_outputs(gp_shape *s, struct opts *o)
{
    o->values = o->indices = -1;
    for (int i = 0; i < s->nout; i++) {
        if (strcmp(s->out_name[i], "out") && strcmp(s->out_name[i], "indices"))
            return gp_shape_fail(s, NULL, "has the outputs 'out' and 'indices', and no '%s'; write out: {out: BUFFER, "
                                 "indices: BUFFER}, or one of the two", s->out_name[i]);
        *(strcmp(s->out_name[i], "out") ? &o->indices : &o->values) = i;
    }
    return s->nout || gp_shape_fail(s, NULL, "needs an output, 'out' or 'indices'");
}

static bool shape(gp_shape *s)
{
    struct opts *o = (struct opts *)s->opts;           /* its last fields are shape()'s */
    const gp_type *in = &s->in[0];
    bool here;
    char text[128];
    int axis;
    size_t first;

    if (!s->partial && !find_outputs(s, o))
        return false;
    if (!gp_axis_of(s, "axis", o->axis, in, &axis))
        return false;
    if (in->dim[axis] < o->k)
        return gp_shape_fail(s, "k", "'k' is %lld, and axis %d of %s has %lld element%s", (long long)o->k, axis,
                             gp_type_text(in, text), (long long)in->dim[axis], gp_plural(in->dim[axis]));
    if (in->dim[axis] > INT32_MAX)
        return gp_shape_fail(s, "axis", "axis %d of %s has more than 2^31 - 1 elements", axis, gp_type_text(in, text));
    for (int i = 0; i < s->nout; i++) {
        s->out[i] = *in;
        s->out[i].dim[axis] = how_many(o, in, axis);
        if (i == o->indices)
            s->out[i].dtype = GP_I32;
    }
    if (!s->partial)
        s->scratch = scratch_of(work_of(o, in, axis), in->dtype, !gp_shape_gpu(s, &here), &first);
    s->by_place = axis == 0 && o->indices >= 0;
    s->batched = true;
    return true;
}

/* What the kernels of one call have in common. */
struct call {
    gp_dcall *c;
    void *values, *indices, *even, *odd;   /* outputs, or NULL; the halves of the scratch */
    size_t ys, zs, xs, next;               /* strides, the last of entries */
    struct topk_work w;
};

/* Pass i, with the `more` values that its kernel takes behind the others; `last`: into the outputs. */
static bool queue(struct call *k, const char *name, int i, bool last, size_t blocks, size_t more[3])
{
    const gp_view *x = k->c->in;
    bool cpu = gp_rec_on_cpu(k->c);
    void *made = i % 2 ? k->odd : k->even, *had = i == 0 ? NULL : i % 2 ? k->even : k->odd;
    size_t none[3] = { 0 }, *m = more ? more : none;
    char kernel[32];
    if (last && !(cpu && k->w.k > SIZE))               /* which has its heap there */
        made = NULL;
    snprintf(kernel, sizeof kernel, "%s_%s", name, gp_dtype_name(x->type.dtype));
    void *const args[] = { &k->values, &k->ys, &k->indices, &k->zs, (void *)&x->data, &k->xs, &made, &had, &k->next, &k->w,
                           &m[0], &m[1], &m[2] };
    return gp_launch(k->c, kernel, (gp_dim3){ cpu ? 1 : gp_blocks((int64_t)blocks, 1, BLOCKS), 1, (unsigned)k->c->n },
                     (gp_dim3){ cpu ? 1 : BLOCK, 1, 1 }, more ? 0 : SIZE * entry_bytes(x->type.dtype), args, more ? 13 : 10);
}

static bool queue_merges(struct call *k)
{
    size_t m[] = { left(&k->w), SIZE, 0 };             /* entries, in runs of a length, of two of which so many are kept */
    bool ok = true;
    for (int i = 1; ok && m[0] > m[1]; i++) {
        size_t both = 2 * m[1], pairs = (m[0] + both - 1) / both, last = m[0] - (pairs - 1) * both;
        m[2] = both < k->w.k ? both : k->w.k;
        ok = queue(k, "topk_merge", i, pairs == 1, (k->w.lines * m[0] + BLOCK - 1) / BLOCK, m);
        m[0] = (pairs - 1) * m[2] + (last < m[2] ? last : m[2]), m[1] = m[2];
    }
    return ok;
}

static bool record(gp_dcall *c)
{
    const struct opts *o = c->opts;
    const gp_view *x = c->in, *y = o->values < 0 ? NULL : &c->out[o->values];
    const gp_view *z = o->indices < 0 ? NULL : &c->out[o->indices];
    struct call k = { .c = c, .values = y ? y->data : NULL, .indices = z ? z->data : NULL, .even = c->scratch,
                      .ys = y ? gp_stride(y) : 0, .zs = z ? gp_stride(z) : 0, .xs = gp_stride(x),
                      .next = c->scratch_stride / entry_bytes(x->type.dtype),
                      .w = work_of(o, &x->type, gp_axis(o->axis, x->type.ndim)) };
    bool cpu = gp_rec_on_cpu(c), ok = true, more = true, merged = !cpu && merges(&k.w);
    size_t room;

    scratch_of(k.w, x->type.dtype, cpu, &room);
    k.odd = (char *)c->scratch + room;
    for (int i = 0; ok && more; i++) {
        cut(&k.w, i ? left(&k.w) : k.w.n);
        more = !cpu && k.w.chunks > 1;
        ok = queue(&k, "topk", i, !more, (k.w.lines * k.w.chunks + (SIZE >> k.w.log_size) - 1) / (SIZE >> k.w.log_size),
                   NULL);
        if (merged)
            return ok && queue_merges(&k);
    }
    return ok;
}

static const gp_port in[] = { { "in", GP_ACCEPT_REAL, .help = "numbers, such as the scores of classes" }, { 0 } };
static const gp_port out[] = {
    { "*", GP_ACCEPT_ANY, .help = "`out`: the k numbers, the first in order first; `indices`: their places along the "
      "axis, i32; out: {out: BUFFER, indices: BUFFER}, or one of the two. Without, `out` alone" }, { 0 }
};

static const gp_opt options[] = {
    { GP_INT(struct opts, k), .def = "0", .min = 0, .max = INT32_MAX, .help = "how many; 0: all, which sorts them" },
    { GP_INT(struct opts, axis), .def = "-1", GP_AXIS_RANGE, .help = "along which, negative from the last" },
    { GP_BOOL(struct opts, largest), .def = "true",
      .help = "from the largest down, NaN before all numbers; false: from the smallest up, NaN behind all. Equal "
              "numbers, as 0 and -0 are, stand in the order of their places" },
    { 0 }
};

const gp_kind gp_kind_topk = {
    GP_KIND("topk"), .field = "arrays",
    .also = "sort argsort",
    .help = "the k largest or smallest numbers along an axis, or all sorted",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .any_shape = true, .by_place = true, .shape = shape, .record = record,
};
