/* concat.c - several arrays behind each other, along an axis, as numpy.concatenate. */
#include "axes.h"
#include "strided.h"

struct opts { int64_t axis; };

static bool shape(gp_shape *s)
{
    const struct opts *o = s->opts;
    const gp_type *first = &s->in[0];
    char a[128], b[128];
    int axis;

    if (s->nin == 0)
        return gp_shape_fail(s, NULL, "needs inputs; name them with 'in', as in: {a: left, b: right}");
    if (!gp_axis_of(s, "axis", o->axis, first, &axis))
        return false;
    s->out[0] = *first;
    for (int i = 1; i < s->nin; i++) {
        const gp_type *t = &s->in[i];
        bool fits = t->dtype == first->dtype && t->ndim == first->ndim;
        for (int k = 0; fits && k < t->ndim; k++)
            fits = k == axis || t->dim[k] == first->dim[k];
        if (!fits)
            return gp_shape_fail(s, NULL, "'%s' is %s, and '%s' is %s: all must be of one type, and differ in axis "
                                          "%d only",
                                 s->in_name[0], gp_type_text(first, a), s->in_name[i], gp_type_text(t, b), axis);
        s->out[0].dim[axis] += t->dim[axis];
    }
    s->by_place = axis == 0 ? ~0u : 0;
    s->batched = true;
    return true;
}

static bool record(gp_dcall *c)
{
    const struct opts *o = c->opts;
    const gp_type *made = &c->out->type;
    int axis = gp_axis(o->axis, made->ndim);
    int64_t to = 0, done = 0;
    for (int i = 0; done < made->dim[axis]; i++) {
        const gp_view *in = &c->in[i];
        gp_strided s = gp_strided_of(&in->type, made);
        s.axis[axis].n = in->type.dim[axis];
        if (!gp_strided_record(c, in, 0, c->out, to, s))
            return false;
        done += s.axis[axis].n, to += s.axis[axis].n * s.axis[axis].to;
    }
    return true;
}

static const gp_port in[] = { { "*", GP_ACCEPT_ANY, .help = "arrays of one type that have one size in all other "
                                                            "axes" }, { 0 } };
static const gp_port out[] = { { "out", GP_ACCEPT_ANY, .help = "all of them, in the order of `in`" }, { 0 } };

static const gp_opt options[] = {
    { GP_INT(struct opts, axis), .def = "0", GP_AXIS_RANGE, .help = "along which they follow each other, negative "
                                                                    "from the last" },
    { 0 }
};

const gp_kind gp_kind_concat = {
    GP_KIND("concat"), .field = "arrays",
    .also = "concatenate stack",
    .help = "several arrays behind each other, along an axis",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .any_shape = true, .by_place = true, .shape = shape, .record = record,
};
