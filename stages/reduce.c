/* reduce.c - sums, means, extremes and others over some axes, see format/reduction.h. */
#include "reduction.h"

struct opts {
    int op;
    gp_ints axes;
    bool keep;
};

/* The axes to reduce as a set of bits; 0 when they are not valid. */
static unsigned axes_of(const struct opts *o, int ndim)
{
    unsigned set = o->axes.n ? 0 : (1u << ndim) - 1;
    for (int i = 0; i < o->axes.n; i++) {
        int64_t axis = o->axes.v[i] < 0 ? o->axes.v[i] + ndim : o->axes.v[i];
        if (axis < 0 || axis >= ndim || set >> axis & 1)
            return 0;
        set |= 1u << axis;
    }
    return set;
}

static gp_reduction reduction(const struct opts *o, int ndim)
{
    return (gp_reduction){ (gp_reducing)(GP_SUM + o->op), axes_of(o, ndim), o->keep };
}

static bool shape(gp_shape *s)
{
    const struct opts *o = s->opts;
    const gp_type *in = &s->in[0];
    gp_reduction r = reduction(s->opts, in->ndim);
    char text[128];

    if (!r.axes)
        return gp_shape_fail(s, "axes", "'axes' must be different axes of %s: 0 to %d, or -1 to -%d "
                             "counted from the last", gp_type_text(in, text), in->ndim - 1, in->ndim);
    bool says_place = o->op == GP_ARGMIN - GP_SUM || o->op == GP_ARGMAX - GP_SUM;
    if (says_place && o->axes.n > 1)
        return gp_shape_fail(s, "axes", "'argmin' and 'argmax' say a place along one axis, or in all of a frame: "
                             "give one axis, or leave 'axes' out");
    gp_reduction_type(&r, in, &s->out[0]);
    s->scratch = gp_reduction_scratch(&r, in), s->scratch_zero = gp_reduction_zero(&r, in);
    s->none[0] = (unsigned char)gp_reduction_none(&r, in->dtype);
    s->by_place = says_place && r.axes & 1;
    s->batched = true;
    bool all = r.axes == (1u << in->ndim) - 1;         /* that is one number, whatever the frame's size */
    for (int k = 0, to = 0; s->in_varies && k < in->ndim; k++) {
        bool gone = r.axes >> k & 1;
        s->fixed |= all || (gone ? o->keep : !(s->in_varies[0] >> k & 1)) ? 1u << to : 0;
        to += !gone || o->keep;
    }
    if (r.op <= GP_MAX)
        s->reduction = r;
    return true;
}

static bool record(gp_dcall *c)
{
    gp_reduction r = reduction(c->opts, c->in->type.ndim);
    return gp_reduction_record(c, &r, c->in, c->out, NULL, NULL);
}

static const gp_port in[] = { { "in", GP_ACCEPT_REAL, .help = "numbers" }, { 0 } };
static const gp_port out[] = {
    { "out", GP_ACCEPT_REAL, .help = "the axes that are left, or [1]; floats and min, max keep "
      "their type, sums of integers are i64 (u64 of u64), their means and std f32; argmin, argmax i64; any, all u8, "
      "0 or 1" },
    { 0 }
};

static const gp_opt options[] = {
    { GP_ENUM(struct opts, op), .required = true, .choices = "sum|mean|min|max|std|argmin|argmax|any|all",
      .help = "floats, and i64 and u64 for a mean, are summed in f64, other integers in 64 bits; min, max, argmin and "
              "argmax find a NaN; std divides by the count; "
      "argmin and argmax say the first place, along one axis or in all; any and all say what is not 0" },
    { GP_INTS(struct opts, axes), .min = -GP_MAXDIM, .max = GP_MAXDIM - 1,
      .help = "the axes to reduce, negative from the last; all when left out" },
    { GP_BOOL(struct opts, keep), .def = "false", .help = "keep reduced axes, with size 1" },
    { 0 }
};

const gp_kind gp_kind_reduce = {
    GP_KIND("reduce"), .field = "arrays",
    .also = "average avg",
    .help = "over axes: sum, mean, std, min, max, where they are, any, all",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .any_shape = true, .by_place = true, .of_none = true, .reduces = true, .shape = shape, .record = record,
};
