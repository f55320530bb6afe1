/* decimate.c - one frame of every few. */
#include "gpipe/stage.h"

struct opts { int64_t frames; };

static bool shape(gp_shape *s)
{
    const struct opts *o = s->opts;
    s->regroup = (gp_regroup){ .step = o->frames, .repeat = 1, .take = 1, .make = 1 };
    s->out[0] = s->in[0];
    return true;
}

static const gp_port in[] = { { "in", GP_ACCEPT_ANY, .help = "frames" }, { 0 } };
static const gp_port out[] = { { "out", GP_ACCEPT_ANY, .help = "frames 0, `frames`, 2 * `frames`, ..." }, { 0 } };

static const gp_opt options[] = {
    { GP_INT(struct opts, frames), .required = true, .min = 1, .max = 1048576, .help = "of how many one is kept" },
    { 0 }
};

const gp_kind gp_kind_decimate = {
    GP_KIND("decimate"), .field = "regrouping",
    .help = "keep the first frame of every few",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .any_shape = true, .shape = shape,
};
