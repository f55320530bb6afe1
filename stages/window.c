/* window.c - each frame with those before it, as rows of one. */
#include "axes.h"

enum { KEEP, DROP };

struct opts {
    int64_t frames;
    int partial;
};

static bool shape(gp_shape *s)
{
    const struct opts *o = s->opts;
    s->regroup = (gp_regroup){ .step = 1, .repeat = 1, .take = o->frames, .back = o->frames - 1, .make = 1,
                               .stack = true, .drop_partial = o->partial == DROP };
    return gp_shape_stack(s, o->frames);
}

static const gp_port in[] = { { "in", GP_ACCEPT_ANY, .help = "frames" }, { 0 } };
static const gp_port out[] = {
    { "out", GP_ACCEPT_ANY, .help = "[frames, ...]: the frame itself is the last row, before it those that came "
      "before; fewer rows at the start, and where some were holes, unless `partial` is drop" }, { 0 }
};

static const gp_opt options[] = {
    { GP_INT(struct opts, frames), .required = true, .min = 1, .max = 65536,
      .help = "how many rows: the frame, and `frames` - 1 before it" },
    { GP_ENUM(struct opts, partial), .def = "keep", .choices = "keep|drop",
      .help = "what becomes of a window with fewer rows: a frame with fewer rows, or a hole, so that all have `frames`" },
    { 0 }
};

const gp_kind gp_kind_window = {
    GP_KIND("window"), .field = "regrouping",
    .help = "each frame together with those before it, as rows of one",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .shape = shape,
};
