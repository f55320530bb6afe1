/* pad.c - more elements around a frame. The frame is copied to its place, then what lies around it is made. */
#include "around.h"
#include "number.h"
#include "strided.h"

struct opts {
    gp_ints before, after;
    int edge;                              /* as in kernels/pad.h */
    gp_num value;
};

static int64_t width(const gp_ints *v, int axis)
{
    return v->n == 0 ? 0 : v->n == 1 ? v->v[0] : axis < v->n ? v->v[axis] : 0;
}

static bool check(gp_shape *s)
{
    const struct opts *o = s->opts;
    if (!o->before.n && !o->after.n)
        return gp_shape_fail(s, NULL, "needs 'before' or 'after', or both: how many elements to add in each axis");
    return o->edge == GP_PAD_CONSTANT || gp_shape_without(s, "value", "an edge that is made of the frame: it is for "
                                                                      "'constant'");
}

static bool shape(gp_shape *s)
{
    const struct opts *o = s->opts;
    const gp_type *in = &s->in[0];
    char text[128];

    for (int i = 0; i < 2; i++) {
        const gp_ints *v = i ? &o->after : &o->before;
        if (v->n > 1 && v->n > in->ndim)
            return gp_shape_fail(s, i ? "after" : "before", "'%s' is a list of %d, and %s has %d ax%cs",
                                 i ? "after" : "before", v->n, gp_type_text(in, text), in->ndim,
                                 in->ndim == 1 ? 'i' : 'e');
    }
    if (!gp_number_fits(s, "value", &o->value, in->dtype))
        return false;
    s->out[0] = *in;
    for (int k = 0; k < in->ndim; k++)
        s->out[0].dim[k] += width(&o->before, k) + width(&o->after, k);
    s->by_place = s->out[0].dim[0] != in->dim[0];
    s->batched = true;
    return true;
}

static bool record(gp_dcall *c)
{
    const struct opts *o = c->opts;
    const gp_type *in = &c->in->type;
    struct around a = { .edge = o->edge, .value = gp_number_bits(&o->value, in->dtype) };
    gp_strided inside = gp_strided_of(in, &c->out->type);
    int64_t to = 0;
    for (int k = 0; k < in->ndim; k++) {
        a.before[k] = width(&o->before, k), a.after[k] = width(&o->after, k);
        inside.axis[k].n = in->dim[k], to += a.before[k] * inside.axis[k].to;
    }
    return gp_strided_record(c, c->in, 0, c->out, to, inside) && gp_around_record(c, in, &a);
}

static const gp_port in[] = { { "in", GP_ACCEPT_ANY, .help = "any array" }, { 0 } };
static const gp_port out[] = { { "out", GP_ACCEPT_ANY, .help = "the same with more around it" }, { 0 } };

static const gp_opt options[] = {
    { GP_INTS(struct opts, before), .min = 0, .max = GP_PAD_MOST,
      .help = "how many to add in front, for each axis; one number is for all, an axis that is not said gets none" },
    { GP_INTS(struct opts, after), .min = 0, .max = GP_PAD_MOST, .help = "how many to add behind; likewise" },
    { GP_ENUM(struct opts, edge), .def = "constant", .choices = "constant|nearest|reflect|mirror|wrap",
      .help = "what is added: `value`, or of the frame abcd its last element (dddd), itself mirrored with (dcba) or "
              "without that "
      "(cba), or once more (abcd)" },
    { GP_NUM(struct opts, value), .def = "0", .help = "of 'edge: constant'; of c64 the real part" },
    { 0 }
};

const gp_kind gp_kind_pad = {
    GP_KIND("pad"), .field = "arrays",
    .help = "more around a frame: a value, or its edge, mirrored, repeated",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .any_shape = true, .by_place = true, .check = check, .shape = shape, .record = record,
};
