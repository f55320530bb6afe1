/* normalize.c - each frame brought to a range, or to mean 0 and deviation 1: reductions of it, then a map; or each line
 * along some axes, by one kernel. */
#include <stdio.h>
#include "axes.h"
#include "device.h"
#include "number.h"
#include "reduction.h"
#include "sums.h"

enum { RANGE, DEVIATION };
enum { RESULT = 256 };                     /* bytes for a result */

struct opts { int to; gp_floats range; gp_ints axes; double epsilon; };

static bool check(gp_shape *s)
{
    const struct opts *o = s->opts;
    if (o->to == RANGE && !gp_shape_without(s, "epsilon", "'range'"))
        return false;
    if (o->to == DEVIATION)
        return gp_shape_without(s, "range", "'deviation', which makes mean 0 and deviation 1");
    if (o->range.n != 2)
        return gp_shape_fail(s, "range", "'range' is a list of %d; give [low, high]", o->range.n);
    return gp_number_finite(s, o->range.v);
}

/* How many reductions, and which, see kernels/normalize.cu. */
static int reductions(const struct opts *o, const gp_type *in, gp_reduction r[2])
{
    unsigned all = (1u << in->ndim) - 1;
    r[0] = (gp_reduction){ o->to == RANGE ? GP_MIN : GP_STD, all, false }, r[1] = (gp_reduction){ GP_MAX, all, false };
    return o->to == RANGE ? 2 : 1;
}

/* The axes of a line: neighbors. False: there are none, so that all of a frame is one. */
static bool line_of(const struct opts *o, int ndim, int *first, int *last)
{
    *first = ndim, *last = -1;
    for (int i = 0; i < o->axes.n; i++) {
        int k = gp_axis(o->axes.v[i], ndim);
        *first = k < *first ? k : *first, *last = k > *last ? k : *last;
    }
    return o->axes.n > 0;
}

static bool shape(gp_shape *s)
{
    const struct opts *o = s->opts;
    const gp_type *in = &s->in[0];
    gp_reduction r[2];
    int axis[GP_MAXDIM], first, last;
    s->out[0] = *in;
    s->out[0].dtype = gp_sum_made(in->dtype, true);
    s->batched = true;
    if (line_of(o, in->ndim, &first, &last))
        return gp_axes_of(s, "axes", &o->axes, in, axis)
            && (last - first + 1 == o->axes.n
                || gp_shape_fail(s, "axes", "'axes' are neighbors, such as [-2, -1]; put a 'transpose' before"));
    if (o->epsilon > 0)
        return gp_shape_fail(s, "epsilon", "'epsilon' is for 'axes': write axes: [-1] for each row");
    reductions(o, in, r);                      /* both of a range need as much */
    s->scratch = (gp_reduction_scratch(&r[0], in) + 255) / 256 * 256 + 2 * RESULT;
    s->scratch_zero = gp_reduction_zero(&r[0], in);
    return true;
}

static bool record(gp_dcall *c)
{
    const struct opts *o = c->opts;
    const gp_view *x = c->in, *y = c->out;
    size_t n = (size_t)gp_count(&x->type), xs = gp_stride(x), ys = gp_stride(y), next = c->scratch_stride, most = RESULT;
    char *of, kernel[40];
    gp_reduction r[2];
    int first, last;
    if (line_of(o, x->type.ndim, &first, &last)) {
        gp_lanes l = gp_lanes_of(&x->type, first, last);
        return o->to == RANGE
            ? gp_launch_lines(c, "normalize_lines_ends", &l,
                              GP_ARGS((void *)&y->data, &ys, (void *)&x->data, &xs, &l, (void *)&o->range.v[0],
                                      (void *)&o->range.v[1]))
            : gp_launch_lines(c, "normalize_lines_deviation", &l,
                              GP_ARGS((void *)&y->data, &ys, (void *)&x->data, &xs, &l, (void *)&o->epsilon));
    }
    of = (char *)c->scratch + next - 2 * RESULT;
    for (int i = 0; i < reductions(o, &x->type, r); i++) {
        gp_view result = { .data = of + i * RESULT, .rows = 1, .stride = next };
        if (o->to == RANGE)
            gp_reduction_type(&r[i], &x->type, &result.type);
        if (!gp_reduction_record(c, &r[i], x, &result, NULL, NULL))
            return false;
    }
    snprintf(kernel, sizeof kernel, "normalize_%s", o->to == RANGE ? "ends" : "deviation");
    return o->to == RANGE
        ? gp_launch_typed(c, kernel, x->type.dtype, (int64_t)n,
                          GP_ARGS((void *)&y->data, &ys, (void *)&x->data, &xs, &n, &of, &next, &most,
                                  (void *)&o->range.v[0], (void *)&o->range.v[1]))
        : gp_launch_typed(c, kernel, x->type.dtype, (int64_t)n,
                          GP_ARGS((void *)&y->data, &ys, (void *)&x->data, &xs, &n, &of, &next));
}

static const gp_port in[] = { { "in", GP_ACCEPT_REAL, .help = "numbers" }, { 0 } };
static const gp_port out[] = {
    { "out", GP_ACCEPT_REAL, .help = "floats of their type, f32 of integers; NaN everywhere in a frame with a "
                                     "NaN, and what an infinity leaves undefined" }, { 0 }
};

static const gp_opt options[] = {
    { GP_ENUM(struct opts, to), .def = "range", .choices = "range|deviation",
      .help = "the least element becomes the first of `range`, the most the second; or the mean 0, the standard "
              "deviation 1" },
    { GP_FLOATS(struct opts, range), .def = "[0, 1]", .help = "[low, high]; a frame of one value becomes low, or 0" },
    { GP_INTS(struct opts, axes), .min = -GP_MAXDIM, .max = GP_MAXDIM - 1,
      .help = "each line along these by itself, neighbors, negative from the last; none: all of a frame at once" },
    { GP_FLOAT(struct opts, epsilon), .def = "0", .min = 0, .max = 1e300,
      .help = "with `axes` and `to: deviation`: added to the variance" },
    { 0 }
};

const gp_kind gp_kind_normalize = {
    GP_KIND("normalize"), .field = "pictures",
    .help = "each frame to a range, or to mean 0 and deviation 1",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .any_shape = true, .check = check, .shape = shape, .record = record,
};
