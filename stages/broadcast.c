/* broadcast.c - the frames of one rank, in each of them. */
#include <string.h>
#include "collective.h"

struct opts { gp_collective_opts any; int64_t from; };

static bool shape(gp_shape *s)
{
    const struct opts *o = s->opts;
    s->serial = true;
    s->from_rank = s->ranks > 1 ? (int)o->from + 1 : 0;
    s->out[0] = s->in[0];
    const gp_traffic traffic = { gp_bytes(&s->in[0]), (double)gp_bytes(&s->in[0]), s->ranks - 1 };
    return s->partial || (gp_rounds_has(s, "from", o->from) && gp_collective_shape(s, NULL, &traffic));
}

static void make(const void *opts, const gp_rounds *r, const gp_view *x, const char *all, size_t n, gp_view *y)
{
    const struct opts *o = opts;
    y->type = r->alike;
    memcpy(y->data, all + (r->ranks > 1 ? (size_t)o->from : 0) * n, n);
}

static int queue(const void *opts, const gp_rounds *r, const gp_view *x, const gp_view *y, void *comm, void *stream)
{
    const struct opts *o = opts;
    return gp_gpu.ranks.broadcast(x->data, y->data, gp_bytes(&r->alike), GP_GPU_U8, (int)o->from, comm, stream);
}

static const gp_collective how = { .make = make, .queue = queue };

static const gp_port in[] = { { "in", GP_ACCEPT_ANY, .help = "frames, of one shape on all ranks" }, { 0 } };
static const gp_port out[] = { { "out", GP_ACCEPT_ANY, .help = "that of rank `from`" }, { 0 } };

static const gp_opt options[] = {
    { GP_INT(struct opts, from), .def = "0", .min = 0, .max = 1 << 20,
      .help = "the rank; a process that runs alone keeps its own" },
    GP_COLLECTIVE_BY,
    { 0 }
};

const gp_kind gp_kind_broadcast = {
    GP_KIND("broadcast"), .field = "ranks", .also = "bcast",
    .help = "frame k of one rank, on all of them",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts), .shape = shape,
    GP_COLLECTIVE(how), .one_rank = true,
};
