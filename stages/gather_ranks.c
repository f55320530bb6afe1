/* gather_ranks.c - the frames of all ranks, one behind the other, in one of them. */
#include "axes.h"
#include "collective.h"

struct opts { gp_collective_opts any; int64_t to; };

static bool shape(gp_shape *s)
{
    const struct opts *o = s->opts;
    const gp_type *x = &s->in[0];
    s->serial = true;
    s->to_rank = s->ranks > 1 ? (int)o->to + 1 : 0;
    if (!gp_shape_stack(s, s->ranks))
        return false;
    const gp_traffic traffic = { gp_bytes(x), (double)gp_bytes(x) * (s->ranks - 1), 1 };
    return s->partial || (gp_rounds_has(s, "to", o->to) && gp_collective_shape(s, NULL, &traffic));
}

static bool elsewhere(const void *opts, const gp_rounds *r)
{
    const struct opts *o = opts;
    return r->ranks > 1 && r->rank != o->to;
}

/* The one of rank `to` itself. */
static bool before(gp_dcall *d, const void *opts, const gp_rounds *r, const gp_view *x, const gp_view *y)
{
    size_t bytes = gp_bytes(&x->type);
    return elsewhere(opts, r) || gp_copy(d, (char *)y->data + (size_t)r->rank * bytes, x->data, bytes);
}

static int queue(const void *opts, const gp_rounds *r, const gp_view *x, const gp_view *y, void *comm, void *stream)
{
    const struct opts *o = opts;
    size_t bytes = gp_bytes(&x->type);
    int status = 0;
    if (elsewhere(opts, r))
        status = gp_gpu.ranks.send(x->data, bytes, GP_GPU_U8, (int)o->to, comm, stream);
    for (int q = 0; !elsewhere(opts, r) && !status && q < r->ranks; q++)
        if (q != r->rank)
            status = gp_gpu.ranks.recv((char *)y->data + (size_t)q * bytes, bytes, GP_GPU_U8, q, comm, stream);
    return status;
}

static const gp_collective how = {
    .elsewhere = elsewhere, .make = gp_collective_all, .before = before, .queue = queue,
};

static const gp_port in[] = { { "in", GP_ACCEPT_ANY, .help = "frames, alike on all ranks" }, { 0 } };
static const gp_port out[] = { { "out", GP_ACCEPT_ANY, .help = "[ranks, ...], on rank `to` alone" }, { 0 } };

static const gp_opt options[] = {
    { GP_INT(struct opts, to), .def = "0", .min = 0, .max = 1 << 20,
      .help = "the rank; what is behind runs there alone, and writes its files once" },
    GP_COLLECTIVE_BY,
    { 0 }
};

const gp_kind gp_kind_gather_ranks = {
    GP_KIND("gather_ranks"), .field = "ranks", .also = "mpi_gather",
    .help = "frame k of all ranks, along a new first axis, on one of them",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts), .shape = shape,
    GP_COLLECTIVE(how), .one_rank = true,
};
