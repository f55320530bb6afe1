/* gather_ranks.c - the frames of all ranks, one behind the other, in one of them. */
#include <string.h>
#include "collective.h"

struct opts { int64_t to; };

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
    gp_collective_by_mpi(s, gp_bytes(x));
    return s->partial || gp_rounds_has(s, "to", o->to);
}

static bool open_stage(const gp_open *o, void **state)
{
    return gp_collective_open(o, gp_bytes(&o->in[0]), false, GP_BY_MPI, state);
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

static bool run(gp_call *c, gp_frame *f, int n)
{
    static const gp_collective how = { .elsewhere = elsewhere, .make = make };
    return gp_collective_run(c, f, n, &how);
}

static const gp_port in[] = { { "in", GP_ACCEPT_ANY, .help = "frames, alike on all ranks" }, { 0 } };
static const gp_port out[] = { { "out", GP_ACCEPT_ANY, .help = "[ranks, ...], on rank `to` alone" }, { 0 } };

static const gp_opt options[] = {
    { GP_INT(struct opts, to), .def = "0", .min = 0, .max = 1 << 20,
      .help = "the rank; what is behind runs there alone, and writes its files once" },
    { 0 }
};

static void advise(gp_advice *a)
{
    gp_collective_advise(a, GP_BY_AUTO);
}

const gp_kind gp_kind_gather_ranks = {
    GP_KIND("gather_ranks"), .field = "ranks", .also = "mpi_gather",
    .help = "frame k of all ranks, along a new first axis, on one of them",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts), .collective = true, .one_rank = true,
    .max_run = GP_COLLECTIVE_RUN,
    .shape = shape, .open = open_stage, .close = gp_collective_close, .run = run, .skipped = gp_collective_skipped,
    .finish = gp_collective_finish, .advise = advise,
};
