/* gather_ranks.c - the frames of all ranks, one behind the other, in one of them. */
#include <string.h>
#include "collective.h"

struct opts { gp_collective_opts any; int64_t to; };

static bool shape(gp_shape *s)
{
    const struct opts *o = s->opts;
    const gp_type *x = &s->in[0];
    gp_type *y = &s->out[0];
    s->serial = true;
    s->to_rank = s->ranks > 1 ? (int)o->to + 1 : 0;
    if (x->ndim == GP_MAXDIM)
        return gp_shape_fail(s, NULL, "a frame of %d axes has no room for one of ranks", GP_MAXDIM);
    *y = (gp_type){ .dtype = x->dtype, .ndim = x->ndim + 1, .dim = { s->ranks } };
    memcpy(y->dim + 1, x->dim, (size_t)x->ndim * sizeof *x->dim);
    const gp_traffic traffic = { gp_bytes(x), (double)gp_bytes(x) * (s->ranks - 1), 1 };
    return s->partial || (gp_rounds_has(s, "to", o->to) && gp_collective_shape(s, NULL, &traffic));
}

static bool open_stage(const gp_open *o, void **state)
{
    return gp_collective_open(o, gp_bytes(&o->in[0]), false, state);
}

static bool elsewhere(const void *opts, const gp_rounds *r)
{
    const struct opts *o = opts;
    return r->ranks > 1 && r->rank != o->to;
}

static void make(const void *opts, const gp_rounds *r, const gp_view *x, const char *all, size_t n, gp_view *y)
{
    (void)opts, (void)x;
    memcpy(y->data, all, n * (size_t)r->ranks);
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
    int status = gp_gpu.ranks.group_start();
    if (status)
        return status;
    if (elsewhere(opts, r))
        status = gp_gpu.ranks.send(x->data, bytes, GP_GPU_U8, (int)o->to, comm, stream);
    for (int q = 0; !elsewhere(opts, r) && !status && q < r->ranks; q++)
        if (q != r->rank)
            status = gp_gpu.ranks.recv((char *)y->data + (size_t)q * bytes, bytes, GP_GPU_U8, q, comm, stream);
    int ended = gp_gpu.ranks.group_end();
    return status ? status : ended;
}

static bool run(gp_call *c, gp_frame *f, int n)
{
    static const gp_collective how = { .elsewhere = elsewhere, .make = make, .before = before, .queue = queue };
    return gp_collective_run(c, f, n, &how);
}

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
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts), .shape = shape, .open = open_stage, .run = run,
    GP_COLLECTIVE, .one_rank = true,
};
