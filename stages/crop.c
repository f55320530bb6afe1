/* crop.c - a part of a given size: the middle, or that at a place. What has as many rows and columns as there are left,
 * `slice` takes. */
#include "strided.h"

struct opts { gp_ints size, at; };

/* The first of `size` elements of an axis of n. */
static int64_t first_of(const struct opts *o, int axis, int64_t n)
{
    return o->at.n ? o->at.v[axis] : (n - o->size.v[axis]) / 2;
}

static bool check(gp_shape *s)
{
    const struct opts *o = s->opts;
    return !o->at.n || o->at.n == o->size.n
        || gp_shape_fail(s, "at", "'at' is a list of %d, and 'size' of %d: give one number for each axis",
                         o->at.n, o->size.n);
}

static bool shape(gp_shape *s)
{
    const struct opts *o = s->opts;
    const gp_type *in = &s->in[0];
    char text[128];

    if (o->size.n > in->ndim)
        return gp_shape_fail(s, "size", "'size' is a list of %d, and %s has %d ax%cs", o->size.n,
                             gp_type_text(in, text), in->ndim, in->ndim == 1 ? 'i' : 'e');
    s->out[0] = *in;
    for (int k = 0; k < o->size.n; k++) {
        int64_t n = o->size.v[k], first = first_of(o, k, in->dim[k]);
        if (n > in->dim[k])
            return gp_shape_fail(s, "size", "'size' is %lld in axis %d, which is larger than the frame, %s",
                                 (long long)n, k,
                                 gp_type_text(in, text));
        if (first + n > in->dim[k])
            return gp_shape_fail(s, "at", "elements %lld to %lld of axis %d are not all inside %s", (long long)first,
                                 (long long)(first + n - 1), k, gp_type_text(in, text));
        s->out[0].dim[k] = n;
        s->by_place |= k == 0 && n < in->dim[k];
    }
    for (int k = 0; k < in->ndim; k++)
        s->fixed |= k < o->size.n || (s->in_varies && !(s->in_varies[0] >> k & 1)) ? 1u << k : 0;
    s->batched = true;
    return true;
}

static bool record(gp_dcall *c)
{
    const struct opts *o = c->opts;
    int64_t from = 0;
    for (int k = 0; k < o->size.n; k++)
        from += first_of(o, k, c->in->type.dim[k]) * gp_strided_step(&c->in->type, k);
    return gp_strided_record(c, c->in, from, c->out, 0, gp_strided_of(&c->in->type, &c->out->type));
}

static const gp_port in[] = { { "in", GP_ACCEPT_ANY, .help = "a picture (H, W), (H, W, C), or any array" }, { 0 } };
static const gp_port out[] = { { "out", GP_ACCEPT_ANY, .help = "its part, of `size` in the first axes" }, { 0 } };

enum { SIDE = 1 << 30 };

static const gp_opt options[] = {
    { GP_INTS(struct opts, size), .required = true, .min = 1, .max = SIDE,
      .help = "of the part, [H, W], in the first axes" },
    { GP_INTS(struct opts, at), .min = 0, .max = SIDE,
      .help = "where it begins, [y, x]; the middle of each frame when left out, rounded down" },
    { 0 }
};

const gp_kind gp_kind_crop = {
    GP_KIND("crop"), .field = "arrays",
    .help = "a part of a given size: the middle, or that at a place",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .any_shape = true, .by_place = true, .check = check, .shape = shape, .record = record,
};
