/* rotate90.c - quarter turns, as numpy.rot90. */
#include "strided.h"

struct opts { int64_t times; };

static int turns(const struct opts *o)
{
    return (int)(o->times & 3);
}

static bool shape(gp_shape *s)
{
    const gp_type *in = &s->in[0];
    char text[128];
    if (in->ndim < 2)
        return gp_shape_fail(s, NULL, "turns axes 0 and 1, and %s has one axis", gp_type_text(in, text));
    bool odd = turns(s->opts) & 1;
    s->out[0] = *in;
    s->out[0].dim[0] = in->dim[odd], s->out[0].dim[1] = in->dim[!odd];
    s->by_place = turns(s->opts) != 0;
    s->batched = true;
    return true;
}

static bool record(gp_dcall *c)
{
    const gp_type *in = &c->in->type;
    gp_strided s = gp_strided_of(in, &c->out->type);
    int n = turns(c->opts);
    int64_t y = gp_strided_step(in, 0), x = gp_strided_step(in, 1), from = 0;
    s.axis[0].from = n == 0 ? y : n == 1 ? -x : n == 2 ? -y : x;
    s.axis[1].from = n == 0 ? x : n == 1 ? y : n == 2 ? -x : -y;
    for (int k = 0; k < 2; k++)
        if (s.axis[k].from < 0)
            from -= s.axis[k].from * (s.axis[k].n - 1);
    return gp_strided_record(c, c->in, from, c->out, 0, s);
}

static const gp_port in[] = { { "in", GP_ACCEPT_ANY, .help = "a picture (H, W), (H, W, C), or any array of two axes "
                                                             "or more" }, { 0 } };
static const gp_port out[] = { { "out", GP_ACCEPT_ANY, .help = "the same turned: (W, H), (W, H, C) after an odd "
                                                               "number of times" }, { 0 } };

static const gp_opt options[] = {
    { GP_INT(struct opts, times), .def = "1", .min = -3, .max = 3,
      .help = "quarter turns counterclockwise, from axis 0 towards axis 1; negative: clockwise" },
    { 0 }
};

const gp_kind gp_kind_rotate90 = {
    GP_KIND("rotate90"), .field = "pictures",
    .also = "rot90 rotate",
    .help = "quarter turns",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .any_shape = true, .by_place = true, .shape = shape, .record = record,
};
