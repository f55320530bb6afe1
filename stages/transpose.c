/* transpose.c - the axes in another order, as numpy.transpose. */
#include "axes.h"
#include "strided.h"

struct opts { gp_ints axes; };

/* Axis k of the output is axis from[k] of the input. */
static void order_of(const struct opts *o, int ndim, int from[GP_MAXDIM])
{
    for (int k = 0; k < ndim; k++)
        from[k] = o->axes.n ? gp_axis(o->axes.v[k], ndim) : ndim - 1 - k;
}

static bool shape(gp_shape *s)
{
    const struct opts *o = s->opts;
    const gp_type *in = &s->in[0];
    int from[GP_MAXDIM];
    char text[128];

    if (!gp_axes_of(s, "axes", &o->axes, in, from))
        return false;
    if (o->axes.n && o->axes.n != in->ndim)
        return gp_shape_fail(s, "axes", "'axes' has %d axes, and %s has %d: name each once", o->axes.n,
                             gp_type_text(in, text), in->ndim);
    order_of(o, in->ndim, from);
    s->by_place = from[0] != 0;
    s->out[0] = *in;
    for (int k = 0; k < in->ndim; k++)
        s->out[0].dim[k] = in->dim[from[k]];
    s->batched = true;
    return true;
}

static bool record(gp_dcall *c)
{
    gp_strided s = gp_strided_of(&c->in->type, &c->out->type);
    int from[GP_MAXDIM];
    order_of(c->opts, s.axes, from);
    for (int k = 0; k < s.axes; k++)
        s.axis[k].from = gp_strided_step(&c->in->type, from[k]);
    return gp_strided_record(c, c->in, 0, c->out, 0, s);
}

static const gp_port in[] = { { "in", GP_ACCEPT_ANY, .help = "any array" }, { 0 } };
static const gp_port out[] = { { "out", GP_ACCEPT_ANY, .help = "its axes in the order of `axes`" }, { 0 } };

static const gp_opt options[] = {
    { GP_INTS(struct opts, axes), GP_AXIS_RANGE,
      .help = "axes of the input in their new order, each once: [2, 0, 1] makes (C, H, W) of (H, W, C); all turned "
              "round when "
      "left out" },
    { 0 }
};

const gp_kind gp_kind_transpose = {
    GP_KIND("transpose"), .field = "arrays",
    .help = "axes in another order",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .any_shape = true, .by_place = true, .shape = shape, .record = record,
};
