/* exchange.c - a strip of rows with those beside it, which the ranks before and after have: rank r has the rows that
 * come after those of rank r - 1. */
#include <string.h>
#include "collective.h"

enum { ZERO, HOLD, WRAP };
struct opts { gp_collective_opts any; int64_t rows; int edge; };

/* A rank sends the first rows that it gives away before the last ones. */
static size_t halo_bytes(const struct opts *o, const gp_type *t)
{
    return gp_bytes(t) / (size_t)t->dim[0] * (size_t)o->rows;
}

static bool shape(gp_shape *s)
{
    const struct opts *o = s->opts;
    const gp_type *x = &s->in[0];
    s->serial = true;
    s->out[0] = *x;
    s->out[0].dim[0] += 2 * o->rows;
    if (x->dim[0] < o->rows)
        return gp_shape_fail(s, "rows", "a strip of %lld rows has no %lld to give to its neighbors", (long long)x->dim[0],
                             (long long)o->rows);
    const gp_traffic traffic = { 2 * halo_bytes(o, x), (double)halo_bytes(o, x), 1 };
    return gp_collective_shape(s, NULL, &traffic);
}

static int64_t rows(const void *opts)
{
    const struct opts *o = opts;
    return o->rows;
}

/* ---- by MPI ---------------------------------------------------------- */

static const void *mine(const void *opts, gp_rounds *r, const gp_view *x, size_t *n)
{
    size_t halo = halo_bytes(opts, &x->type);
    const char *strip = x->data;
    memcpy(r->mine, strip, halo);
    memcpy(r->mine + halo, strip + gp_bytes(&x->type) - halo, halo);
    *n = 2 * halo;
    return r->mine;
}

/* The rows beyond an edge, of `row` bytes each: `held` is the row at the edge, `wrapped` are those of the other end. */
static void fill_edge(const struct opts *o, char *to, size_t row, const char *held, const char *wrapped)
{
    for (int64_t i = 0; i < o->rows; i++, to += row)
        if (o->edge == ZERO)
            memset(to, 0, row);
        else
            memcpy(to, o->edge == HOLD ? held : wrapped + (size_t)i * row, row);
}

static void make(const void *opts, const gp_rounds *r, const gp_view *x, const char *all, size_t n, gp_view *y)
{
    const struct opts *o = opts;
    size_t halo = n / 2, row = halo / (size_t)o->rows, bytes = gp_bytes(&x->type);
    size_t me = (size_t)r->rank, last = (size_t)r->ranks - 1;
    const char *strip = x->data;
    char *to = y->data, *end = to + halo + bytes;
    memcpy(to + halo, strip, bytes);
    if (me > 0)
        memcpy(to, all + (me - 1) * n + halo, halo);
    else
        fill_edge(o, to, row, strip, all + last * n + halo);
    if (me < last)
        memcpy(end, all + (me + 1) * n, halo);
    else
        fill_edge(o, end, row, strip + bytes - row, all);
}

/* ---- on the device --------------------------------------------------- */

/* The rank before this one (-1) or after it (1); -1: there is none. */
static int neighbor(const struct opts *o, const gp_rounds *r, int way)
{
    int at = r->rank + way;
    return at >= 0 && at < r->ranks ? at : o->edge == WRAP ? (at + r->ranks) % r->ranks : -1;
}

/* The same as fill_edge(). */
static bool queue_edge(gp_dcall *d, const struct opts *o, char *to, size_t row, const char *held, const char *wrapped)
{
    if (o->edge != HOLD)
        return o->edge == ZERO ? gp_fill(d, to, 0, (size_t)o->rows * row) : gp_copy(d, to, wrapped, (size_t)o->rows * row);
    for (int64_t i = 0; i < o->rows; i++, to += row)
        if (!gp_copy(d, to, held, row))
            return false;
    return true;
}

/* The strip itself, and edges that no other rank has. */
static bool before(gp_dcall *d, const void *opts, const gp_rounds *r, const gp_view *x, const gp_view *y)
{
    const struct opts *o = opts;
    size_t halo = halo_bytes(o, &x->type), row = halo / (size_t)o->rows, bytes = gp_bytes(&x->type);
    const char *strip = x->data, *last = strip + bytes;
    char *to = y->data, *end = to + halo + bytes;
    bool first_here = r->ranks == 1 || neighbor(o, r, -1) < 0, last_here = r->ranks == 1 || neighbor(o, r, 1) < 0;
    return gp_copy(d, to + halo, strip, bytes)
        && (!first_here || queue_edge(d, o, to, row, strip, last - halo))
        && (!last_here || queue_edge(d, o, end, row, last - row, strip));
}

/* Each of two ranks is on both sides of the other where edges wrap: so the first rows are sent before the last ones,
 * and received in that order, as rows after a strip before rows before it. */
static int queue(const void *opts, const gp_rounds *r, const gp_view *x, const gp_view *y, void *comm, void *stream)
{
    const struct opts *o = opts;
    size_t halo = halo_bytes(o, &x->type), bytes = gp_bytes(&x->type);
    int up = neighbor(o, r, -1), down = neighbor(o, r, 1);
    const char *strip = x->data;
    char *to = y->data;
    int status = 0;
    if (up >= 0)
        status = gp_gpu.ranks.send(strip, halo, GP_GPU_U8, up, comm, stream);
    if (!status && down >= 0)
        status = gp_gpu.ranks.send(strip + bytes - halo, halo, GP_GPU_U8, down, comm, stream);
    if (!status && down >= 0)
        status = gp_gpu.ranks.recv(to + halo + bytes, halo, GP_GPU_U8, down, comm, stream);
    if (!status && up >= 0)
        status = gp_gpu.ranks.recv(to, halo, GP_GPU_U8, up, comm, stream);
    return status;
}

static size_t most(const void *opts, const gp_type *x)
{
    return 2 * halo_bytes(opts, x);
}

static const gp_collective how = {
    .mine = mine, .most = most, .rows = rows, .make = make, .queue = queue, .before = before,
};

static const gp_port in[] = { { "in", GP_ACCEPT_ANY, .help = "the rows of this rank" }, { 0 } };
static const gp_port out[] = { { "out", GP_ACCEPT_ANY, .help = "those with `rows` more before and after them" }, { 0 } };

static const gp_opt options[] = {
    { GP_INT(struct opts, rows), .def = "1", .min = 1, .max = 1 << 20, .unit = "rows", .help = "how many of each neighbor" },
    { GP_ENUM(struct opts, edge), .def = "zero", .choices = "zero|hold|wrap",
      .help = "before the first rank and after the last: zeros, the row at the edge again, or the rows of the other end" },
    GP_COLLECTIVE_BY,
    { 0 }
};

const gp_kind gp_kind_exchange = {
    GP_KIND("exchange"), .field = "ranks", .also = "halo ghost",
    .help = "the rows of this rank, between those of its neighbors: strips",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts), .shape = shape,
    GP_COLLECTIVE(how),
};
