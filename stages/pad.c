/* pad.c - more elements around a frame. The frame is copied to its place, then what lies around it is made. */
#include <stdio.h>
#include "device.h"
#include "number.h"
#include "pad.h"
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

/* ---- around the frame -------------------------------------------------------- */

/* One axis of the copy; the innermost that nothing is added to are one. */
struct axis { int64_t n, before, after, from, to; };

static int axes_of(const gp_dcall *c, struct axis *axis)
{
    const struct opts *o = c->opts;
    const gp_type *in = &c->in->type, *made = &c->out->type;
    int64_t size = (int64_t)gp_dtype_size(in->dtype);
    int n = 0;
    for (int k = 0; k < in->ndim; k++) {
        struct axis a = { in->dim[k], width(&o->before, k), width(&o->after, k), gp_strided_step(in, k) / size,
                          gp_strided_step(made, k) / size };
        struct axis *last = n ? &axis[n - 1] : NULL;
        if (last && !a.before && !a.after && !last->before && !last->after)
            last->n *= a.n, last->from = a.from, last->to = a.to;
        else
            axis[n++] = a;
    }
    return n;
}

static int64_t around(const struct axis *a)
{
    return a->before + a->after;
}

/* Elements first[k] to first[k] + n[k] of the slabs; where they are too many for one launch, halves of them. */
static bool queue(gp_dcall *c, gp_pad *p, const int64_t *n)
{
    enum { MOST = (1u << 31) - 1 };
    int64_t all = 1, half[GP_MAXDIM];
    int longest = 0;
    char kernel[16];
    for (int k = 0; k < p->axes; k++) {
        half[k] = n[k];
        longest = n[k] > n[longest] ? k : longest;
        all = n[k] > MOST || all > MOST ? (int64_t)MOST + 1 : all * n[k];
    }
    if (all == 0)
        return true;
    if (all > MOST) {
        gp_pad second = *p;
        half[longest] = n[longest] / 2;
        if (!queue(c, p, half))
            return false;
        second.axis[longest].first += half[longest];
        half[longest] = n[longest] - half[longest];
        return queue(c, &second, half);
    }
    for (int k = 0; k < p->axes; k++)
        p->axis[k].slab = gp_divisor_of(n[k]);
    p->all = (unsigned)all;
    snprintf(kernel, sizeof kernel, "pad_%zu", gp_dtype_size(c->in->type.dtype));
    return gp_launch_map(c, kernel, all, GP_ARGS(p));
}

static bool record(gp_dcall *c)
{
    const struct opts *o = c->opts;
    const gp_type *in = &c->in->type, *made = &c->out->type;
    struct axis axis[GP_MAXDIM];
    gp_pad p = { .to = c->out->data, .to_next = c->out->stride, .from = c->in->data, .from_next = c->in->stride,
                 .axes = axes_of(c, axis), .edge = o->edge, .value = gp_number_bits(&o->value, in->dtype) };
    gp_strided inside = gp_strided_of(in, made);
    int64_t to = 0;
    for (int k = 0; k < in->ndim; k++)
        inside.axis[k].n = in->dim[k], to += width(&o->before, k) * inside.axis[k].to;
    if (!gp_strided_record(c, c->in, 0, c->out, to, inside))
        return false;
    for (p.along = 0; p.along < p.axes; p.along++) {
        int64_t n[GP_MAXDIM];
        gp_pad slabs = p;
        for (int k = 0; k < p.axes; k++) {
            const struct axis *a = &axis[k];
            slabs.axis[k] = (gp_pad_axis){ .n = a->n, .before = a->before, .first = k < p.along ? a->before : 0,
                                           .from = a->from, .to = a->to };
            n[k] = k < p.along ? a->n : k == p.along ? around(a) : a->n + around(a);
        }
        if (!queue(c, &slabs, n))
            return false;
    }
    return true;
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
