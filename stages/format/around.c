/* around.c - see around.h. */
#include <stdio.h>
#include "around.h"
#include "device.h"
#include "strided.h"

/* One axis of the copy; the innermost that nothing is added to are one. */
struct axis { int64_t n, before, after, from, to; };

static int axes_of(const gp_type *in, const gp_type *made, const struct around *p, struct axis *axis)
{
    int64_t size = (int64_t)gp_dtype_size(in->dtype);
    int n = 0;
    for (int k = 0; k < in->ndim; k++) {
        struct axis a = { in->dim[k], p->before[k], p->after[k], gp_strided_step(in, k) / size,
                          gp_strided_step(made, k) / size };
        struct axis *last = n ? &axis[n - 1] : NULL;
        if (last && !a.before && !a.after && !last->before && !last->after)
            last->n *= a.n, last->from = a.from, last->to = a.to;
        else
            axis[n++] = a;
    }
    return n;
}

static int64_t added(const struct axis *a)
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

bool gp_around_record(gp_dcall *c, const gp_type *in, const struct around *around)
{
    struct axis axis[GP_MAXDIM];
    gp_pad p = { .to = c->out->data, .to_next = c->out->stride, .from = c->in->data, .from_next = c->in->stride,
                 .axes = axes_of(in, &c->out->type, around, axis), .edge = around->edge, .value = around->value };
    for (p.along = 0; p.along < p.axes; p.along++) {
        int64_t n[GP_MAXDIM];
        gp_pad slabs = p;
        for (int k = 0; k < p.axes; k++) {
            const struct axis *a = &axis[k];
            slabs.axis[k] = (gp_pad_axis){ .n = a->n, .before = a->before, .first = k < p.along ? a->before : 0,
                                           .from = a->from, .to = a->to };
            n[k] = k < p.along ? a->n : k == p.along ? added(a) : a->n + added(a);
        }
        if (!queue(c, &slabs, n))
            return false;
    }
    return true;
}
