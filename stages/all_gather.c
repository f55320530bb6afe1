/* all_gather.c - the frames of all ranks, one behind the other, in each of them. */
#include <string.h>
#include "collective.h"

static bool shape(gp_shape *s)
{
    const gp_type *x = &s->in[0];
    gp_type *y = &s->out[0];
    s->serial = true;
    if (x->ndim == GP_MAXDIM)
        return gp_shape_fail(s, NULL, "a frame of %d axes has no room for one of ranks", GP_MAXDIM);
    *y = (gp_type){ .dtype = x->dtype, .ndim = x->ndim + 1, .dim = { s->ranks } };
    memcpy(y->dim + 1, x->dim, (size_t)x->ndim * sizeof *x->dim);
    const gp_traffic traffic = { gp_bytes(x), (double)gp_bytes(x) * (s->ranks - 1), s->ranks - 1 };
    return gp_collective_shape(s, NULL, &traffic);
}

static bool open_stage(const gp_open *o, void **state)
{
    return gp_collective_open(o, 0, false, state);
}

static void make(const void *opts, const gp_rounds *r, const gp_view *x, const char *all, size_t n, gp_view *y)
{
    (void)opts, (void)x;
    memcpy(y->data, all, n * (size_t)r->ranks);
}

static int queue(const void *opts, const gp_rounds *r, const gp_view *x, const gp_view *y, void *comm, void *stream)
{
    (void)opts, (void)r;
    return gp_gpu.ranks.all_gather(x->data, y->data, gp_bytes(&x->type), GP_GPU_U8, comm, stream);
}

static bool run(gp_call *c, gp_frame *f, int n)
{
    static const gp_collective how = { .make = make, .queue = queue };
    return gp_collective_run(c, f, n, &how);
}

static const gp_port in[] = { { "in", GP_ACCEPT_ANY, .help = "frames, alike on all ranks" }, { 0 } };
static const gp_port out[] = { { "out", GP_ACCEPT_ANY, .help = "[ranks, ...], the same on all ranks" }, { 0 } };

static const gp_opt options[] = { GP_COLLECTIVE_BY, { 0 } };

const gp_kind gp_kind_all_gather = {
    GP_KIND("all_gather"), .field = "ranks", .also = "allgather",
    .help = "frame k of all ranks, along a new first axis",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(gp_collective_opts), .shape = shape, .open = open_stage,
    .run = run,
    GP_COLLECTIVE,
};
