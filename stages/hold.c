/* hold.c - each frame several times, to stand beside a faster buffer. */
#include "gpipe/stage.h"

struct opts { int64_t frames; };

static bool shape(gp_shape *s)
{
    const struct opts *o = s->opts;
    s->regroup = (gp_regroup){ .step = 1, .repeat = o->frames, .take = 1, .make = 1 };
    s->out[0] = s->in[0];
    return true;
}

static const gp_port in[] = { { "in", GP_ACCEPT_ANY, .help = "frames" }, { 0 } };
static const gp_port out[] = {
    { "out", GP_ACCEPT_ANY, .help = "each frame `frames` times; it ends with the buffer that is read beside it" }, { 0 }
};

static const gp_opt options[] = {
    { GP_INT(struct opts, frames), .required = true, .min = 1, .max = 1048576, .help = "how often each comes" },
    { 0 }
};

const gp_kind gp_kind_hold = {
    GP_KIND("hold"), .field = "regrouping",
    .help = "repeat each frame, to stand beside a faster buffer",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .any_shape = true, .shape = shape,
};
