/* reshape.c - the same elements in the same order, as another shape. A buffer has memory of its own, so they are
 * copied. */
#include "gpipe/stage.h"

struct opts { gp_ints shape; };

static bool check(gp_shape *s)
{
    const struct opts *o = s->opts;
    int open = 0;
    if (o->shape.n > GP_MAXDIM)
        return gp_shape_fail(s, "shape", "'shape' has %d axes; a frame has %d at most", o->shape.n, GP_MAXDIM);
    for (int k = 0; k < o->shape.n; k++) {
        open += o->shape.v[k] == -1;
        if (o->shape.v[k] == 0)
            return gp_shape_fail(s, "shape", "'shape' has an axis of 0 elements, and frames are not empty");
    }
    return open < 2 || gp_shape_fail(s, "shape", "'shape' has %d axes of -1; one can follow from the others", open);
}

static bool shape(gp_shape *s)
{
    const struct opts *o = s->opts;
    const gp_type *in = &s->in[0];
    int64_t all = gp_count(in), given = 1;
    int open = -1;
    char a[128], b[128];

    s->out[0] = (gp_type){ .dtype = in->dtype, .ndim = o->shape.n };
    for (int k = 0; k < o->shape.n; k++) {
        s->out[0].dim[k] = o->shape.v[k];
        if (o->shape.v[k] < 0)
            open = k;
        else if (__builtin_mul_overflow(given, o->shape.v[k], &given))
            given = INT64_MAX;
    }
    if (open < 0 ? given != all : all % given != 0)
        return gp_shape_fail(s, "shape", "%s has %lld elements, and %s needs %s%lld", gp_type_text(in, a),
                             (long long)all,
                             gp_type_text(&s->out[0], b), open < 0 ? "" : "a multiple of ", (long long)given);
    if (open >= 0)
        s->out[0].dim[open] = all / given;
    s->by_place = s->out[0].dim[0] != in->dim[0];
    s->batched = true;
    return true;
}

static bool record(gp_dcall *c)
{
    return gp_copy_frames(c, c->out, c->in);
}

static const gp_port in[] = { { "in", GP_ACCEPT_ANY, .help = "any array" }, { 0 } };
static const gp_port out[] = { { "out", GP_ACCEPT_ANY, .help = "its elements, as `shape`" }, { 0 } };

static const gp_opt options[] = {
    { GP_INTS(struct opts, shape), .required = true, .min = -1, .max = 1e12,
      .help = "the sizes of the axes; one may be -1, and follows from the others" },
    { 0 }
};

const gp_kind gp_kind_reshape = {
    GP_KIND("reshape"), .field = "arrays",
    .help = "the same elements in another shape",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .any_shape = true, .by_place = true, .check = check, .shape = shape, .record = record,
};
