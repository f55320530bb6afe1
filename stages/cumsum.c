/* cumsum.c - sums of all elements up to each, along an axis, as numpy.cumsum; see kernels/cumsum.cu. */
#include <stdio.h>
#include "axes.h"
#include "device.h"
#include "sums.h"

struct opts { int64_t axis; };

enum { PART = 64, LEVELS = 8 };            /* PART as in kernels/cumsum.cu; PART^LEVELS rows */

/* The lines along the axis, and how many sums of chunks each level has along it. */
struct work { gp_lanes line; size_t parts[LEVELS]; int levels; };

static struct work work_of(const gp_type *t, int axis)
{
    struct work w = { .line = gp_lanes_of(t, axis, axis) };
    for (size_t n = w.line.rows; n > PART; w.parts[w.levels++] = n)
        n = (n + PART - 1) / PART;
    return w;
}

static size_t bytes_of(const struct work *w, int level)
{
    return (w->line.outer * w->parts[level] * w->line.inner * sizeof(double) + 255) / 256 * 256;
}

static bool shape(gp_shape *s)
{
    const struct opts *o = s->opts;
    const gp_type *in = &s->in[0];
    int axis;
    if (!gp_axis_of(s, "axis", o->axis, in, &axis))
        return false;
    struct work w = work_of(in, axis);
    s->out[0] = *in;
    s->out[0].dtype = gp_sum_made(in->dtype, false);
    for (int l = 0; l < w.levels; l++)
        s->scratch += bytes_of(&w, l);
    s->batched = true;
    return true;
}

static bool launch(gp_dcall *c, const char *kernel, gp_dtype t, const struct work *w, size_t parts,
                   void *const *args, int n)
{
    char name[32];
    snprintf(name, sizeof name, "%s_%s", kernel, gp_dtype_name(t));
    return gp_launch_map(c, name, (int64_t)(w->line.outer * parts * w->line.inner), args, n);
}

/* Level 0 has the sums of chunks of the frame, the next those of chunks of level 0, ... */
static bool record(gp_dcall *c)
{
    const struct opts *o = c->opts;
    const gp_view *x = c->in, *y = c->out;
    struct work w = work_of(&x->type, gp_axis(o->axis, x->type.ndim));
    gp_dtype t = x->type.dtype, kept = gp_sum_kept(t, false);
    char *sums[LEVELS + 1] = { c->scratch };
    size_t stride = c->scratch_stride / sizeof(double), from = gp_stride(x), to = gp_stride(y);

    for (int l = 0; l < w.levels; l++) {
        sums[l + 1] = sums[l] + bytes_of(&w, l);
        if (!launch(c, "cumsum_parts", l ? kept : t, &w, w.parts[l],
                    GP_ARGS(&sums[l], &stride, l ? (void *)&sums[l - 1] : (void *)&x->data, l ? &stride : &from,
                            &w.line.outer, l ? &w.parts[l - 1] : &w.line.rows, &w.line.inner)))
            return false;
    }
    for (int l = w.levels - 1; l >= 0; l--)
        if (!launch(c, "cumsum", kept, &w, (w.parts[l] + PART - 1) / PART,
                    GP_ARGS(&sums[l], &stride, &sums[l], &stride, l + 1 < w.levels ? &sums[l + 1] : &sums[l],
                            &stride, &w.line.outer, &w.parts[l], &w.line.inner)))
            return false;
    return launch(c, "cumsum", t, &w, w.levels ? w.parts[0] : 1,
                  GP_ARGS((void *)&y->data, &to, (void *)&x->data, &from, &sums[0], &stride, &w.line.outer, &w.line.rows,
                          &w.line.inner));
}

static const gp_port in[] = { { "in", GP_ACCEPT_REAL, .help = "numbers" }, { 0 } };
static const gp_port out[] = {
    { "out", GP_ACCEPT_REAL, .help = "as many; floats keep their type, integers become i64 (u64 of u64)" }, { 0 }
};

static const gp_opt options[] = {
    { GP_INT(struct opts, axis), .def = "0", GP_AXIS_RANGE,
      .help = "the axis to sum along, negative from the last; floats are summed in f64, integers in 64 bits" },
    { 0 }
};

const gp_kind gp_kind_cumsum = {
    GP_KIND("cumsum"), .field = "arrays",
    .help = "sums of all elements up to each, along an axis",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .any_shape = true, .shape = shape, .record = record,
};
