/* reduce.c - sums, means, extremes and others over some axes, see format/reduction.h, and quantiles, see
 * format/quantiles.h. */
#include <string.h>
#include "quantiles.h"
#include "reduction.h"

struct opts {
    int op;
    gp_ints axes;
    bool keep;
    gp_floats q;
};

enum { MEDIAN = GP_ALL - GP_SUM + 1, QUANTILE, MOST = 1024 };

static bool is_quantile(const struct opts *o) { return o->op >= MEDIAN; }
static int count_of(const struct opts *o) { return o->op == QUANTILE ? o->q.n : 1; }

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
    gp_reducing op = is_quantile(o) ? GP_MEAN : (gp_reducing)(GP_SUM + o->op);     /* whose types quantiles have */
    return (gp_reduction){ op, axes_of(o, ndim), o->keep };
}

static bool check(gp_shape *s)
{
    const struct opts *o = s->opts;
    if (o->op == QUANTILE && !o->q.n)
        return gp_shape_fail(s, "op", "'quantile' needs 'q': which, from 0 to 1, as 0.95 or [0.05, 0.95]");
    if (o->q.n > MOST)
        return gp_shape_fail(s, "q", "'q' is a list of %d, and %d is the most", o->q.n, MOST);
    return o->op == QUANTILE || gp_shape_without(s, "q", "this 'op': it is for 'quantile'");
}

/* The output has these quantiles as its last axis. */
static bool add_axis(gp_shape *s, int count, bool all)
{
    gp_type *out = &s->out[0];
    if (all)
        out->dim[out->ndim - 1] = count;
    else if (out->ndim == GP_MAXDIM)
        return gp_shape_fail(s, "q", "a list makes one axis more, and a frame has at most %d: give one number", GP_MAXDIM);
    else
        out->dim[out->ndim++] = count;
    s->fixed |= s->in_varies ? 1u << (out->ndim - 1) : 0;
    return true;
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
    int64_t line = 1;
    for (int k = 0; k < in->ndim; k++)
        line *= r.axes >> k & 1 ? in->dim[k] : 1;
    if (is_quantile(o) && line > UINT32_MAX)
        return gp_shape_fail(s, "op", "a quantile is of 2^32 - 1 elements at most, and here of %lld", (long long)line);
    gp_reduction_type(&r, in, &s->out[0]);
    if (is_quantile(o))
        s->scratch = gp_quantile_scratch(in, r.axes, count_of(o)), s->table = (size_t)count_of(o) * sizeof(double);
    else
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
    if (r.op <= GP_MAX && !is_quantile(o))
        s->reduction = r;
    return count_of(o) == 1 || add_axis(s, count_of(o), all && !o->keep);
}

static bool table(const gp_table_call *t)
{
    static const double half[] = { 0.5 };
    const struct opts *o = t->opts;
    memcpy(t->data, o->op == MEDIAN ? half : o->q.v, t->bytes);
    return true;
}

static bool record(gp_dcall *c)
{
    const struct opts *o = c->opts;
    gp_reduction r = reduction(o, c->in->type.ndim);
    return is_quantile(o) ? gp_quantile_record(c, r.axes, count_of(o), c->table)
                          : gp_reduction_record(c, &r, c->in, c->out, NULL, NULL);
}

static const gp_port in[] = { { "in", GP_ACCEPT_REAL, .help = "numbers" }, { 0 } };
static const gp_port out[] = {
    { "out", GP_ACCEPT_REAL, .help = "the axes that are left, or [1]; floats and min, max keep "
      "their type, sums of integers are i64 (u64 of u64), their means, std, median and quantiles f32; argmin, argmax i64; any, all u8, "
      "0 or 1" },
    { 0 }
};

static const gp_opt options[] = {
    { GP_ENUM(struct opts, op), .required = true, .choices = "sum|mean|min|max|std|argmin|argmax|any|all|median|quantile",
      .help = "floats, and i64 and u64 for a mean, are summed in f64, other integers in 64 bits; min, max, argmin and "
              "argmax find a NaN; std divides by the count; "
      "argmin and argmax say the first place, along one axis or in all; any and all say what is not 0; median and quantile lie between "
              "two numbers in proportion (numpy.quantile, linear), and are NaN where a NaN is" },
    { GP_FLOATS(struct opts, q), .min = 0, .max = 1,
      .help = "quantile: which, 0.95 for the 95th percentile; those of a list become a last axis" },
    { GP_INTS(struct opts, axes), .min = -GP_MAXDIM, .max = GP_MAXDIM - 1,
      .help = "the axes to reduce, negative from the last; all when left out" },
    { GP_BOOL(struct opts, keep), .def = "false", .help = "keep reduced axes, with size 1" },
    { 0 }
};

const gp_kind gp_kind_reduce = {
    GP_KIND("reduce"), .field = "arrays",
    .also = "average avg percentile",
    .help = "over axes: sum, mean, std, min, max and where, any, median, quantiles",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .any_shape = true, .by_place = true, .of_none = true, .reduces = true, .check = check, .shape = shape,
    .table = table, .record = record,
};
