/* broadcast.c - the frames of one rank, in each of them. */
#include <string.h>
#include "rounds.h"

struct opts { int64_t from; };

static bool shape(gp_shape *s)
{
    const struct opts *o = s->opts;
    s->serial = true;
    s->from_rank = s->ranks > 1 ? (int)o->from + 1 : 0;
    s->out[0] = s->in[0];
    return s->partial || gp_rounds_has(s, "from", o->from);
}

static bool open_stage(const gp_open *o, void **state)
{
    *state = gp_rounds_open(o, gp_bytes(&o->in[0]), false);
    return *state != NULL;
}

static bool run(gp_call *c, gp_frame *f, int n)
{
    (void)n;
    const struct opts *o = c->opts;
    const gp_rounds *r = c->state;
    const gp_view *x = &f->in[0];
    size_t from = r->ranks > 1 ? (size_t)o->from : 0;
    const char *all;
    f->status = gp_round(c, c->state, f, &x->type, x->data, gp_bytes(&x->type), &all);
    if (f->status == GP_OK) {
        size_t bytes = gp_bytes(&r->alike);
        f->out[0].type = r->alike;
        memcpy(f->out[0].data, all + from * bytes, bytes);
    }
    return true;
}

static const gp_port in[] = { { "in", GP_ACCEPT_ANY, .help = "frames, of one shape on all ranks" }, { 0 } };
static const gp_port out[] = { { "out", GP_ACCEPT_ANY, .help = "that of rank `from`" }, { 0 } };

static const gp_opt options[] = {
    { GP_INT(struct opts, from), .def = "0", .min = 0, .max = 1 << 20,
      .help = "the rank; a process that runs alone keeps its own" },
    { 0 }
};

const gp_kind gp_kind_broadcast = {
    GP_KIND("broadcast"), .field = "ranks", .also = "bcast",
    .help = "frame k of one rank, on all of them",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts), .collective = true,
    .one_rank = true,
    .shape = shape, .open = open_stage, .close = gp_rounds_close, .run = run, .finish = gp_rounds_finish,
};
