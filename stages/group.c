/* group.c - several frames become one, with an axis more. */
#include "axes.h"

enum { KEEP, DROP };

struct opts {
    int64_t frames;
    int tail;
};

static bool shape(gp_shape *s)
{
    const struct opts *o = s->opts;
    s->regroup = (gp_regroup){ .step = o->frames, .repeat = 1, .take = o->frames, .make = 1, .stack = true,
                               .drop_tail = o->tail == DROP };
    return gp_shape_stack(s, o->frames);
}

static const gp_port in[] = { { "in", GP_ACCEPT_ANY, .help = "frames" }, { 0 } };
static const gp_port out[] = {
    { "out", GP_ACCEPT_ANY, .help = "[frames, ...]; as many rows as there are frames that are no holes" }, { 0 }
};

static const gp_opt options[] = {
    { GP_INT(struct opts, frames), .required = true, .min = 1, .max = 65536, .help = "how many become one" },
    { GP_ENUM(struct opts, tail), .def = "keep", .choices = "keep|drop",
      .help = "what becomes of the last frames where they are fewer: a frame with fewer rows, or nothing" },
    { 0 }
};

const gp_kind gp_kind_group = {
    GP_KIND("group"), .field = "regrouping",
    .help = "make one frame of several, with an axis more",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .shape = shape,
};
