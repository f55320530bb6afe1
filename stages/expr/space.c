/* space.c - shapes: what the inputs of an expression broadcast to, by NumPy's rule, and where their elements lie. */
#include <string.h>
#include "program.h"

/* Where the program names input p first; NULL: nowhere. */
static const gp_expr_node *first_use(gp_shape *s, const gp_expr *tree, int p)
{
    for (const gp_expr_node *e = tree ? tree->node : NULL; tree && e < tree->node + tree->n; e++)
        if ((e->op == GP_EXPR_VAR || e->op == GP_EXPR_AT) && gp_ew_input(s, e->name) == p)
            return e;
    return NULL;
}

static bool differ(gp_shape *s, const gp_node *text, const gp_expr *tree, int p, int q, int k)
{
    const gp_expr_node *e = first_use(s, tree, p);
    gp_loc at = e ? gp_node_part(text, e->from, e->len) : gp_shape_loc(s, "in");
    char a[GP_BOUNDS_TEXT], b[GP_BOUNDS_TEXT];
    return gp_shape_fail_at(s, at, "input '%s' is %s and '%s' is %s: they do not broadcast, as axis %d from the end is "
                            "%lld and %lld", s->in_name[p],
                            gp_bounds_text(&s->in[p], s->in_varies[p], a), s->in_name[q],
                            gp_bounds_text(&s->in[q], s->in_varies[q], b), k + 1,
                            (long long)s->in[p].dim[s->in[p].ndim - 1 - k],
                            (long long)s->in[q].dim[s->in[q].ndim - 1 - k]);
}

bool gp_ew_broadcast(gp_shape *s, const gp_node *text, const gp_expr *tree, gp_ew_space *o, gp_type *frame)
{
    int64_t dim[GP_MAXDIM];            /* from the last axis on */
    int by[GP_MAXDIM];                 /* the input that says so */
    o->ndim = 0;
    for (int p = 0; p < s->nin; p++) {
        const gp_type *t = &s->in[p];
        for (; o->ndim < t->ndim; o->ndim++)
            dim[o->ndim] = 1, by[o->ndim] = p;
        for (int k = 0; k < t->ndim; k++) {
            int64_t n = t->dim[t->ndim - 1 - k];
            if (n != 1 && dim[k] != 1 && n != dim[k])
                return differ(s, text, tree, p, by[k], k);
            if (dim[k] == 1)
                dim[k] = n, by[k] = p;
        }
    }
    *frame = (gp_type){ .ndim = o->ndim };
    o->varies = 0;
    for (int k = 0; k < o->ndim; k++)
        frame->dim[k] = dim[o->ndim - 1 - k];
    for (int p = 0; p < s->nin; p++) {
        const gp_type *t = &s->in[p];
        o->axes[p] = t->ndim, o->repeated[p] = 0;
        for (int k = 0; k < t->ndim; k++)
            if (s->in_varies && s->in_varies[p] >> k & 1)
                o->varies |= 1u << (k + o->ndim - t->ndim);
        for (int k = 0; k < o->ndim; k++) {
            int own = k - (o->ndim - t->ndim);
            if (own < 0 || (t->dim[own] == 1 && frame->dim[k] != 1))
                o->repeated[p] |= 1u << k;
        }
    }
    return true;
}

static bool do_not_fit(gp_shape *s, int p, int q)
{
    char a[128], b[128];
    return gp_shape_fail(s, NULL, "'%s' is %s and '%s' is %s in one frame: what is shorter there than declared does not "
                         "broadcast", s->in_name[p], gp_type_text(&s->in[p], a), s->in_name[q], gp_type_text(&s->in[q], b));
}

/* How long the frame is along axis k: frames say it first, then constants that may be longer than these. False: input *p
 * does not fit to input *by. */
static bool axis_of(const gp_ew_space *o, const gp_type *in, int nin, unsigned consts, int k, int64_t *dim, int *by, int *p)
{
    int from = -1;                     /* the frame that says it */
    *dim = 1, *by = -1;
    for (int i = 0; i < 2 * nin; i++) {
        *p = i % nin;
        bool cut = consts >> *p & 1 && !(o->varies >> k & 1);
        if (o->repeated[*p] >> k & 1 || cut != (i >= nin))
            continue;
        int64_t n = in[*p].dim[k - (o->ndim - o->axes[*p])];
        if (*by >= 0 && (cut ? from >= 0 && n < *dim : n != *dim))
            return false;
        if (*by < 0 || n < *dim)
            *dim = n, *by = *p;
        if (!cut)
            from = *p;
    }
    return true;
}

bool gp_ew_smaller(gp_shape *s, const gp_ew_space *o, gp_type *frame)
{
    unsigned consts = 0;
    int by, p;
    for (p = 0; p < s->nin; p++)
        consts |= (unsigned)gp_shape_is_const(s, p) << p;
    frame->ndim = o->ndim;
    for (int k = 0; k < o->ndim; k++)
        if (!axis_of(o, s->in, s->nin, consts, k, &frame->dim[k], &by, &p))
            return do_not_fit(s, by, p);
    return true;
}

void gp_ew_frame(const gp_ew_space *o, const gp_type *in, int nin, unsigned consts, gp_type *frame)
{
    int by, p;
    frame->ndim = o->ndim;
    for (int k = 0; k < o->ndim; k++)
        axis_of(o, in, nin, consts, k, &frame->dim[k], &by, &p);
}

static void set_strides(const gp_ew_space *o, const gp_type *in, int p, gp_ew_call *c)
{
    int64_t stride = 1;
    for (int k = o->ndim - 1; k >= 0; k--) {
        int own = k - (o->ndim - o->axes[p]);
        c->stride[p][k] = o->repeated[p] >> k & 1 ? 0 : stride;
        stride *= own < 0 ? 1 : in->dim[own];
    }
}

/* Is each element of input p where that of the frame is? */
static bool is_linear(const gp_ew_call *c, int p, int ndim)
{
    int64_t stride = 1;
    for (int k = ndim - 1; k >= 0; stride *= c->dim[k--])
        if (c->dim[k] > 1 && c->stride[p][k] != stride)
            return false;
    return true;
}

/* Axes that lie behind each other for all inputs become one, as do those of one element. */
static void merge_axes(gp_ew_call *c, int nin)
{
    int n = c->axes, last = n - 1;     /* `last`: the axis that others become a part of */
    for (int k = n - 2; k >= 0; k--) {
        bool swap = c->dim[last] == 1, into = !swap && c->dim[k] == 1;
        int64_t dim[2] = { c->dim[k], c->dim[last] };
        bool ok = swap || into;
        if (!ok) {
            ok = true;
            for (int p = 0; p < nin; p++)
                ok &= c->stride[p][k] == c->stride[p][last] * dim[1];
        }
        if (!ok) {
            last--;
            c->dim[last] = dim[0];
            for (int p = 0; p < nin; p++)
                c->stride[p][last] = c->stride[p][k];
            continue;
        }
        c->dim[last] = dim[0] * dim[1];
        for (int p = 0; swap && p < nin; p++)
            c->stride[p][last] = c->stride[p][k];
    }
    c->axes = n - last;
    memmove(c->dim, c->dim + last, sizeof *c->dim * (size_t)c->axes);
    for (int p = 0; p < nin; p++)
        memmove(c->stride[p], c->stride[p] + last, sizeof **c->stride * (size_t)c->axes);
}

void gp_ew_place(const gp_ew_space *o, const gp_type *in, int nin, const gp_type *frame, bool merge, gp_ew_call *c)
{
    c->axes = o->ndim, c->linear = 0, c->elements = gp_count(frame);
    memcpy(c->dim, frame->dim, sizeof c->dim);
    for (int p = 0; p < nin; p++) {
        set_strides(o, &in[p], p, c);
        c->linear |= (unsigned)is_linear(c, p, o->ndim) << p;
    }
    if (merge && c->elements)
        merge_axes(c, nin);
}
