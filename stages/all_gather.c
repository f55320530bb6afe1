/* all_gather.c - the frames of all ranks, one behind the other, in each of them. */
#include "axes.h"
#include "collective.h"

static bool shape(gp_shape *s)
{
    const gp_type *x = &s->in[0];
    s->serial = true;
    if (!gp_shape_stack(s, s->ranks))
        return false;
    const gp_traffic traffic = { gp_bytes(x), (double)gp_bytes(x) * (s->ranks - 1), s->ranks - 1 };
    return gp_collective_shape(s, NULL, &traffic);
}

static int queue(const void *opts, const gp_rounds *r, const gp_view *x, const gp_view *y, void *comm, void *stream)
{
    return gp_gpu.ranks.all_gather(x->data, y->data, gp_bytes(&x->type), GP_GPU_U8, comm, stream);
}

static const gp_collective how = { .make = gp_collective_all, .queue = queue };

static const gp_port in[] = { { "in", GP_ACCEPT_ANY, .help = "frames, alike on all ranks" }, { 0 } };
static const gp_port out[] = { { "out", GP_ACCEPT_ANY, .help = "[ranks, ...], the same on all ranks" }, { 0 } };

static const gp_opt options[] = { GP_COLLECTIVE_BY, { 0 } };

const gp_kind gp_kind_all_gather = {
    GP_KIND("all_gather"), .field = "ranks", .also = "allgather",
    .help = "frame k of all ranks, along a new first axis",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(gp_collective_opts), .shape = shape,
    GP_COLLECTIVE(how),
};
