/* neighbors.c - a[i0 - 1, i1] and rgb[i0, i1, 2]: which elements of an input an expression may name beside that of its
 * own place. An index is a number that is known beforehand, and then the axis is none of the frame's; or that of the
 * frame's axis on which the input's own one lies, and such a number; where the element is then, is found in the frame
 * that the inputs broadcast to. */
#include <inttypes.h>
#include <string.h>
#include "program.h"

gp_ew_index gp_ew_moved(const gp_expr_node *e, const gp_ew_index *index, gp_num by, bool var)
{
    gp_ew_index to = *index;
    to.is &= by.is_int && (e->op == GP_EXPR_ADD ? !__builtin_add_overflow(to.to.by, by.i, &to.to.by)
                           : e->op == GP_EXPR_SUBTRACT && !__builtin_sub_overflow(to.to.by, by.i, &to.to.by));
    to.var = var || to.var ? e : NULL;
    return to;
}

/* NAME[i0, i1], as it has to be written for input `of` of the program; `moved`: the index that shows how to move one,
 * -1: none. */
static const char *form(gp_shape *s, const gp_ew_space *o, const gp_ew_input *of, const char *name, int moved)
{
    enum { MOST = GP_EXPR_NAME + 8 + 24 * GP_MAXDIM };
    char *text = gp_shape_alloc(s, MOST);
    int n = s->in[of->port].ndim, len = snprintf(text, MOST, "%s[", name);
    for (int k = 0; k < n; k++) {
        bool fixed = of->fixed >> k & 1;
        int64_t at = fixed ? of->at[k] : of->placed ? -1 - of->at[k] : k + o->ndim - n;
        len += snprintf(text + len, (size_t)(MOST - len), "%s%s%" PRId64 "%s", k ? ", " : "", fixed ? "" : "i", at,
                        k == moved ? " - 1" : "");
    }
    snprintf(text + len, (size_t)(MOST - len), "]");
    return text;
}

/* The number of the shift in the program, which it becomes one of. */
static int shift_of(gp_shape *s, gp_ew_program *p, const gp_ew_index *x)
{
    for (int i = 0; i < p->nshifts; i++) {
        const gp_ew_index *y = &p->shift[i];
        if (x->to.axis == y->to.axis && x->to.edge == y->to.edge && x->to.by == y->to.by && x->var == y->var)
            return i;
    }
    if (p->nshifts == p->capshifts) {
        int cap = p->capshifts ? 2 * p->capshifts : 16;
        gp_ew_index *more = gp_shape_alloc(s, sizeof *more * (size_t)cap);
        if (p->nshifts)
            memcpy(more, p->shift, sizeof *more * (size_t)p->nshifts);
        p->shift = more, p->capshifts = cap;
    }
    p->shift[p->nshifts] = *x;
    return p->nshifts++;
}

static bool all(const bool *known, int n)
{
    for (int k = 0; k < n; k++)
        if (!known[k])
            return false;
    return true;
}

/* Which of the program's inputs it is; -1 after an error. */
static int input_of(gp_shape *s, const gp_node *text, const gp_expr_node *e, int port, const gp_ew_place *at, gp_ew_space *o)
{
    gp_ew_input in = { .port = port, .where = gp_node_part(text, e->from, e->len) };
    const gp_type *t = &s->in[port];
    bool known[GP_MAXDIM];
    int axis[GP_MAXDIM];
    for (int k = 0; k < t->ndim; k++)
        known[k] = at[k].known, axis[k] = at[k].index.is ? at[k].index.to.axis : -1;
    if (!gp_ew_place_input(s, known, axis, t->ndim, &in) && all(known, t->ndim)) {
        const gp_ew_input whole = { .port = port };
        gp_shape_fail_at(s, gp_node_part(text, at[0].where->from, at[0].where->len), "all indices of '%s' are numbers, and one "
                         "at least has to be the frame's, as in %s", e->name, form(s, o, &whole, e->name, -1));
        return -1;
    }
    for (int k = 0; k < t->ndim && in.placed; k++) {
        const gp_num *n = &at[k].number;
        if (known[k] && (!n->is_int || n->i < 0 || n->i >= t->dim[k])) {
            gp_shape_fail_at(s, gp_node_part(text, at[k].where->from, at[k].where->len), "index %d of '%s' has to be a whole "
                             "number from 0 to %" PRId64 ", or an index of the frame", k, e->name, t->dim[k] - 1);
            return -1;
        }
        in.at[k] = known[k] ? n->i : in.at[k];
    }
    in.known = true;
    if (gp_ew_is_whole(s, o->ndim, &in))
        in = (gp_ew_input){ .port = port, .known = true };
    int i = gp_ew_add_input(o, &in);
    if (i < 0)
        gp_shape_fail_at(s, gp_node_part(text, e->from, e->len), "more than %d inputs and parts of inputs", GP_EW_PORTS);
    return i;
}

bool gp_ew_neighbor(gp_shape *s, const gp_node *text, const gp_expr_node *e, int port, const gp_ew_place *at,
                     gp_ew_program *p, gp_ew_ins *ins)
{
    gp_ew_space *o = &p->space;
    const gp_ew_input whole = { .port = port };
    int n = s->in[port].ndim, shift[GP_MAXDIM];
    bool moved = false;
    if (e->axis != n)
        return gp_shape_fail_at(s, gp_node_part(text, e->from, e->len), "'%s' has %d ax%cs, not %d: write %s, where each "
                                "index may have a number added or subtracted, or be one", e->name, n, n == 1 ? 'i' : 'e',
                                e->axis, form(s, o, &whole, e->name, -1));
    if ((ins->a = input_of(s, text, e, port, at, o)) < 0)
        return false;
    const gp_ew_input *in = &o->in[ins->a];
    for (int k = 0; k < o->ndim; k++)
        shift[k] = -1;
    for (int own = 0; own < n; own++) {
        gp_ew_index x = at[own].index;
        gp_loc loc = gp_node_part(text, at[own].where->from, at[own].where->len);
        int k = in->placed ? (int)(-1 - in->at[own]) : own + o->ndim - n;
        if (in->fixed >> own & 1)
            continue;
        if (!x.is || x.to.axis != k)
            return gp_shape_fail_at(s, loc, "index %d of '%s' has to be i%d, or i%d plus or minus a whole number that "
                                    "is known before the run, as in %s; other elements are for a stage of kind "
                                    "'kernel'", own, e->name, k, k, form(s, o, in, e->name, own));
        if (x.to.by > GP_EW_FAR || x.to.by < -GP_EW_FAR)
            return gp_shape_fail_at(s, loc, "%" PRId64 " elements away is further than %d", x.to.by, GP_EW_FAR);
        x.to.edge = (int32_t)p->edge;
        if (x.to.by || x.var)
            shift[k] = shift_of(s, p, &x), moved = true;
    }
    ins->shift = moved ? memcpy(gp_shape_alloc(s, sizeof shift), shift, sizeof shift) : NULL;
    return true;
}
