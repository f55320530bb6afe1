/* scatter_ranks.c - the frames of one rank, cut along their first axis: each rank has one part. */
#include <string.h>
#include "collective.h"

struct opts { gp_collective_opts any; int64_t from; };

/* One part of a frame. */
static gp_type part_of(const gp_type *x)
{
    gp_type y = { .dtype = x->dtype, .ndim = x->ndim - 1 };
    memcpy(y.dim, x->dim + 1, (size_t)y.ndim * sizeof *y.dim);
    return y;
}

static bool shape(gp_shape *s)
{
    const struct opts *o = s->opts;
    const gp_type *x = &s->in[0];
    char text[128];
    s->serial = true;
    s->from_rank = s->ranks > 1 ? (int)o->from + 1 : 0;
    if (x->ndim < 2)
        return gp_shape_fail(s, NULL, "the parts of %s have no axis: 'reshape' it before, to [%d, 1]", gp_type_text(x, text),
                             s->ranks);
    if (x->dim[0] != s->ranks)
        return gp_shape_fail(s, NULL, "%s has %lld parts along its first axis, and there %s %d rank%s",
                             gp_type_text(x, text), (long long)x->dim[0], s->ranks == 1 ? "is" : "are", s->ranks,
                             s->ranks == 1 ? "" : "s");
    s->out[0] = part_of(x);
    const gp_traffic traffic = { gp_bytes(x), (double)gp_bytes(&s->out[0]) * (s->ranks - 1), 1 };
    return s->partial || (gp_rounds_has(s, "from", o->from) && gp_collective_shape(s, NULL, &traffic));
}

static void make(const void *opts, const gp_rounds *r, const gp_view *x, const char *all, size_t n, gp_view *y)
{
    const struct opts *o = opts;
    size_t from = r->ranks > 1 ? (size_t)o->from : 0;
    y->type = part_of(&r->alike);
    memcpy(y->data, all + from * n + (size_t)r->rank * gp_bytes(&y->type), gp_bytes(&y->type));
}

static bool is_source(const struct opts *o, const gp_rounds *r)
{
    return r->ranks == 1 || r->rank == o->from;
}

/* The part of rank `from` itself. */
static bool before(gp_dcall *d, const void *opts, const gp_rounds *r, const gp_view *x, const gp_view *y)
{
    if (!is_source(opts, r))
        return true;
    size_t bytes = gp_bytes(&x->type) / (size_t)r->ranks;
    return gp_copy(d, y->data, (const char *)x->data + (size_t)r->rank * bytes, bytes);
}

static int queue(const void *opts, const gp_rounds *r, const gp_view *x, const gp_view *y, void *comm, void *stream)
{
    const struct opts *o = opts;
    size_t bytes = gp_bytes(&r->alike) / (size_t)r->ranks;
    int status = 0;
    if (!is_source(o, r))
        status = gp_gpu.ranks.recv(y->data, bytes, GP_GPU_U8, (int)o->from, comm, stream);
    for (int q = 0; is_source(o, r) && !status && q < r->ranks; q++)
        if (q != r->rank)
            status = gp_gpu.ranks.send((const char *)x->data + (size_t)q * bytes, bytes, GP_GPU_U8, q, comm, stream);
    return status;
}

static const gp_collective how = { .make = make, .makes = part_of, .before = before, .queue = queue };

static const gp_port in[] = { { "in", GP_ACCEPT_ANY, .help = "[ranks, ...], of one shape on all ranks that have any" }, { 0 } };
static const gp_port out[] = { { "out", GP_ACCEPT_ANY, .help = "part r of that of rank `from`, on rank r" }, { 0 } };

static const gp_opt options[] = {
    { GP_INT(struct opts, from), .def = "0", .min = 0, .max = 1 << 20,
      .help = "the rank; a process that runs alone keeps its own" },
    GP_COLLECTIVE_BY,
    { 0 }
};

const gp_kind gp_kind_scatter_ranks = {
    GP_KIND("scatter_ranks"), .field = "ranks", .also = "scatter mpi_scatter",
    .help = "frame k of one rank, of which each has one part",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts), .shape = shape,
    GP_COLLECTIVE(how), .one_rank = true,
};
