/* space.c - shapes: what the inputs of an expression broadcast to, by NumPy's rule, and where their elements lie. */
#include <stdio.h>
#include <string.h>
#include "base/table.h"
#include "program.h"

/* ---- inputs -------------------------------------------------------------------- */

static bool is_same(const gp_ew_input *a, const gp_ew_input *b)
{
    if (a->port != b->port || a->placed != b->placed || a->fixed != b->fixed)
        return false;
    for (int k = 0; k < GP_MAXDIM; k++)
        if (a->at[k] != b->at[k] && (!(a->fixed >> k & 1) || (a->known && b->known)))
            return false;
    return true;
}

int gp_ew_add_input(gp_ew_space *o, const gp_ew_input *in)
{
    int i = 0;
    while (i < o->nin && !is_same(&o->in[i], in))
        i++;
    if (i < o->nin) {
        if (in->known)
            o->in[i] = *in;
        return i;
    }
    if (i == GP_EW_PORTS)
        return -1;
    o->in[o->nin++] = *in;
    gp_ew_input like = *in;
    like.known = false;
    for (int k = 0; k < i; k++)        /* the same part but for its place has the same shape */
        if (is_same(&o->in[k], &like)) {
            memcpy(o->axis[i], o->axis[k], sizeof o->axis[i]);
            o->repeated[i] = o->repeated[k];
        }
    return i;
}

/* This is known of an operand before its value is. */
typedef struct operand {
    bool plain;                        /* made of numbers and vars; */
    int axis;                          /* ... or of them and of the index along this axis; -1: of others */
} operand;

typedef struct finder {
    gp_shape *s;
    gp_ew_space placed;
    gp_table names;                    /* what was assigned, */
    operand *named;                    /* ... and of each */
    unsigned whole;                    /* a set of ports that are named without indices */
} finder;

static operand name_of(finder *f, const gp_expr_node *e)
{
    gp_num n;
    int i = gp_table_index(&f->names, e->name), port = i < 0 ? gp_ew_port_of(f->s, e->name) : -1;
    if (i >= 0)
        return f->named[i];
    if (port >= 0)
        f->whole |= 1u << port;
    bool plain = port < 0 && gp_shape_var(f->s, e->name, &n, NULL);
    return (operand){ plain, port >= 0 || plain ? -1 : gp_ew_axis_of(e->name) };
}

bool gp_ew_place_input(const gp_shape *s, const bool *known, const int *axis, int n, gp_ew_input *in)
{
    int last = -1;
    bool any = false, ok = n == s->in[in->port].ndim;
    in->placed = true;
    for (int k = 0; k < n && ok; k++) {
        if (known[k]) {
            in->fixed |= 1u << k;
            continue;
        }
        ok = axis[k] > last && axis[k] < GP_MAXDIM;
        in->at[k] = -1 - axis[k], last = axis[k], any = true;
    }
    if (!ok || !any)
        *in = (gp_ew_input){ .port = in->port, .known = true };
    return ok && any;
}

static void find_input(finder *f, const gp_expr_node *e, const operand *at)
{
    gp_ew_input in = { .port = gp_ew_port_of(f->s, e->name) };
    bool known[GP_MAXDIM];
    int axis[GP_MAXDIM];
    for (int k = 0; k < e->axis && k < GP_MAXDIM; k++)
        known[k] = at[k].plain, axis[k] = at[k].axis;
    if (in.port < 0)
        return;
    if (!gp_ew_place_input(f->s, known, axis, e->axis, &in))
        f->whole |= 1u << in.port, f->placed.refused = true;
    else if (gp_ew_add_input(&f->placed, &in) < 0)
        f->whole |= 1u << in.port;
}

static operand make_of(finder *f, const gp_expr_node *e, const operand *of)
{
    operand o = { .plain = e->op != GP_EXPR_PORT && e->op != GP_EXPR_FRAME && e->op != GP_EXPR_AT, .axis = -1 };
    if (e->op == GP_EXPR_VAR)
        return name_of(f, e);
    if (e->op == GP_EXPR_AT)
        find_input(f, e, of);
    for (int k = 0; k < gp_ew_takes(e) && e->op != GP_EXPR_AT; k++) {
        o.plain &= of[k].plain;
        o.axis = of[k].axis >= 0 ? of[k].axis : o.axis;
    }
    return o;
}

static void walk(finder *f, const gp_expr *tree, operand *top)
{
    for (const gp_expr_node *e = tree->node; e < tree->node + tree->n; e++) {
        top -= gp_ew_takes(e);
        operand o = make_of(f, e, top);
        if (e->op != GP_EXPR_ASSIGN) {
            *top++ = o;
            continue;
        }
        int i = gp_table_index(&f->names, e->name);
        if (i < 0)
            gp_table_put(&f->names, e->name, i = (int)(e - tree->node));
        f->named[i] = o;
    }
}

void gp_ew_find_inputs(gp_shape *s, const gp_expr *tree, gp_ew_space *o)
{
    size_t n = (size_t)tree->n + 1;
    finder f = { .s = s, .named = gp_shape_alloc(s, n * sizeof *f.named) };
    unsigned placed = 0;
    int ndim = 0;
    walk(&f, tree, gp_shape_alloc(s, (n + 2) * sizeof(operand)));
    gp_table_free(&f.names);
    for (int i = 0; i < f.placed.nin; i++)
        placed |= 1u << f.placed.in[i].port;
    for (int p = 0; p < s->nin; p++)
        if ((f.whole | ~placed) >> p & 1 && ndim < s->in[p].ndim)
            ndim = s->in[p].ndim;
    for (int i = 0; i < f.placed.nin; i++)
        for (int k = 0; k < s->in[f.placed.in[i].port].ndim; k++)
            if (ndim < -f.placed.in[i].at[k])
                ndim = (int)-f.placed.in[i].at[k];
    o->nin = 0, o->ndim = ndim, o->refused = f.placed.refused;
    for (int i = 0; i < f.placed.nin; i++)
        if (gp_ew_is_whole(s, ndim, &f.placed.in[i]))
            f.whole |= 1u << f.placed.in[i].port;
    for (int p = 0; p < s->nin; p++)
        if ((f.whole | ~placed) >> p & 1)
            o->in[o->nin++] = (gp_ew_input){ .port = p, .known = true };
    for (int i = 0; i < f.placed.nin; i++)
        if (!gp_ew_is_whole(s, ndim, &f.placed.in[i]))
            gp_ew_add_input(o, &f.placed.in[i]);
}

bool gp_ew_is_whole(const gp_shape *s, int ndim, const gp_ew_input *in)
{
    int n = s->in[in->port].ndim;
    for (int k = 0; k < n && in->placed; k++)
        if (in->fixed >> k & 1 || -1 - in->at[k] != k + ndim - n)
            return false;
    return true;
}

/* ---- the frame ------------------------------------------------------------------- */

/* Where the program names input p first; NULL: nowhere. */
static const gp_expr_node *first_use(gp_shape *s, const gp_expr *tree, int p)
{
    for (const gp_expr_node *e = tree ? tree->node : NULL; tree && e < tree->node + tree->n; e++)
        if ((e->op == GP_EXPR_VAR || e->op == GP_EXPR_AT) && gp_ew_port_of(s, e->name) == p)
            return e;
    return NULL;
}

/* "x", or of a part "x[:, k]". */
static const char *label(gp_shape *s, const gp_ew_input *in)
{
    enum { MOST = GP_EXPR_NAME + 4 * GP_MAXDIM };
    char *text = gp_shape_alloc(s, MOST);
    int n = snprintf(text, MOST, "%s", s->in_name[in->port]);
    for (int k = 0; k < s->in[in->port].ndim && in->fixed; k++)
        n += snprintf(text + n, (size_t)(MOST - n), "%s%s", k ? ", " : "[", in->fixed >> k & 1 ? "k" : ":");
    if (in->fixed)
        snprintf(text + n, (size_t)(MOST - n), "]");
    return text;
}

static bool differ(gp_shape *s, const gp_node *text, const gp_expr *tree, const gp_ew_space *o, int i, int j, int k)
{
    int p = o->in[i].port, q = o->in[j].port;
    const gp_expr_node *e = first_use(s, tree, p);
    gp_loc at = e ? gp_node_part(text, e->from, e->len) : gp_shape_loc(s, "in");
    char a[GP_BOUNDS_TEXT], b[GP_BOUNDS_TEXT];
    return gp_shape_fail_at(s, at, "input '%s' is %s and '%s' is %s: they do not broadcast, as axis %d from the end is "
                            "%lld and %lld", label(s, &o->in[i]), gp_bounds_text(&s->in[p], s->in_varies[p], a),
                            label(s, &o->in[j]), gp_bounds_text(&s->in[q], s->in_varies[q], b), o->ndim - k,
                            (long long)s->in[p].dim[o->axis[i][k]], (long long)s->in[q].dim[o->axis[j][k]]);
}

/* Fills in axis[i]. */
static void find_axes(gp_ew_space *o, int i, const gp_type *t)
{
    const gp_ew_input *in = &o->in[i];
    for (int k = 0; k < GP_MAXDIM; k++)
        o->axis[i][k] = -1;
    for (int own = 0; own < t->ndim; own++)
        if (!(in->fixed >> own & 1))
            o->axis[i][in->placed ? -1 - in->at[own] : own + o->ndim - t->ndim] = own;
}

bool gp_ew_broadcast(gp_shape *s, const gp_node *text, const gp_expr *tree, gp_ew_space *o, gp_type *frame)
{
    *frame = (gp_type){ .ndim = o->ndim };
    o->varies = 0;
    for (int i = 0; i < o->nin; i++)
        find_axes(o, i, &s->in[o->in[i].port]);
    for (int k = 0; k < o->ndim; k++) {
        int by = -1;                   /* the input that says how long the axis is */
        for (int i = 0; i < o->nin; i++) {
            const gp_type *t = &s->in[o->in[i].port];
            if (o->axis[i][k] < 0)
                continue;
            int64_t n = t->dim[o->axis[i][k]];
            if (by >= 0 && n != 1 && frame->dim[k] != 1 && n != frame->dim[k] && !o->refused)
                return differ(s, text, tree, o, i, by, k);
            if (by < 0 || frame->dim[k] == 1)
                frame->dim[k] = n, by = i;
            if (s->in_varies && s->in_varies[o->in[i].port] >> o->axis[i][k] & 1)
                o->varies |= 1u << k;
        }
        if (by < 0)
            return gp_shape_fail_at(s, text->at, "no input lies along axis %d of the frame, and 'i%d' is used", k, o->ndim - 1);
    }
    for (int i = 0; i < o->nin; i++) {
        o->repeated[i] = 0;
        for (int k = 0; k < o->ndim; k++)
            if (o->axis[i][k] < 0 || (s->in[o->in[i].port].dim[o->axis[i][k]] == 1 && frame->dim[k] != 1))
                o->repeated[i] |= 1u << k;
    }
    return true;
}

static bool do_not_fit(gp_shape *s, int p, int q)
{
    char a[128], b[128];
    return gp_shape_fail(s, NULL, "'%s' is %s and '%s' is %s in one frame: what is shorter there than declared does not "
                         "broadcast", s->in_name[p], gp_type_text(&s->in[p], a), s->in_name[q], gp_type_text(&s->in[q], b));
}

/* How long the frame is along axis k: frames say it first, then constants that may be longer than these. False: port *p
 * does not fit to port *by. */
static bool axis_of(const gp_ew_space *o, const gp_type *in, unsigned consts, int k, int64_t *dim, int *by, int *p)
{
    int from = -1;                     /* the frame that says it */
    *dim = 1, *by = -1;
    for (int i = 0; i < 2 * o->nin; i++) {
        int q = i % o->nin;
        *p = o->in[q].port;
        bool cut = consts >> *p & 1 && !(o->varies >> k & 1);
        if (o->repeated[q] >> k & 1 || cut != (i >= o->nin))
            continue;
        int64_t n = in[*p].dim[o->axis[q][k]];
        if (*by >= 0 && (cut ? from >= 0 && n < *dim : n != *dim))
            return false;
        if (*by < 0 || n < *dim)
            *dim = n, *by = *p;
        if (!cut)
            from = *p;
    }
    return true;
}

/* Is the part there that input i is? */
static bool has_part(gp_shape *s, const gp_ew_space *o, int i)
{
    const gp_ew_input *x = &o->in[i];
    const gp_type *t = &s->in[x->port];
    char text[128];
    for (int k = 0; k < t->ndim; k++)
        if (x->fixed >> k & 1 && x->at[k] >= t->dim[k])
            return gp_shape_fail_at(s, x->where, "'%s' is %s in one frame, and has no element %lld along axis %d",
                                    s->in_name[x->port], gp_type_text(t, text), (long long)x->at[k], k);
    return true;
}

bool gp_ew_smaller(gp_shape *s, const gp_ew_space *o, gp_type *frame)
{
    unsigned consts = 0;
    int by, p;
    for (p = 0; p < s->nin; p++)
        consts |= (unsigned)gp_shape_is_const(s, p) << p;
    for (int i = 0; i < o->nin; i++)
        if (!has_part(s, o, i))
            return false;
    frame->ndim = o->ndim;
    for (int k = 0; k < o->ndim; k++)
        if (!axis_of(o, s->in, consts, k, &frame->dim[k], &by, &p))
            return do_not_fit(s, by, p);
    return true;
}

void gp_ew_frame(const gp_ew_space *o, const gp_type *in, unsigned consts, gp_type *frame)
{
    int by, p;
    frame->ndim = o->ndim;
    for (int k = 0; k < o->ndim; k++)
        axis_of(o, in, consts, k, &frame->dim[k], &by, &p);
}

/* ---- places ------------------------------------------------------------------------ */

int64_t gp_ew_begins(const gp_ew_space *o, int i, const gp_type *in)
{
    int64_t stride = 1, from = 0;
    for (int k = in->ndim - 1; k >= 0; stride *= in->dim[k--])
        from += o->in[i].fixed >> k & 1 ? o->in[i].at[k] * stride : 0;
    return from;
}

static void set_strides(const gp_ew_space *o, const gp_type *in, int i, gp_ew_call *c)
{
    int64_t stride[GP_MAXDIM], n = 1;
    for (int own = in->ndim - 1; own >= 0; n *= in->dim[own--])
        stride[own] = n;
    for (int k = 0; k < o->ndim; k++)
        c->stride[i][k] = o->repeated[i] >> k & 1 ? 0 : stride[o->axis[i][k]];
}

/* Is each element of input p where that of the frame is? (Of a part it may not be as well aligned.) */
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

void gp_ew_lay_out(const gp_ew_space *o, const gp_type *in, const gp_type *frame, bool merge, gp_ew_call *c)
{
    c->axes = o->ndim, c->linear = 0, c->elements = gp_count(frame);
    memcpy(c->dim, frame->dim, sizeof c->dim);
    for (int i = 0; i < o->nin; i++) {
        set_strides(o, &in[o->in[i].port], i, c);
        c->linear |= (unsigned)(!o->in[i].placed && is_linear(c, i, o->ndim)) << i;
    }
    if (merge && c->elements)
        merge_axes(c, o->nin);
}
