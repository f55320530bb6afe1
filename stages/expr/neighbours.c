/* neighbours.c - a[i0 - 1, i1]: which elements of an input an expression may name beside that of its own place. An
 * index is that of the frame's axis on which the input's own one lies, and a number that is known beforehand; where
 * the element is then, is found in the frame that the inputs broadcast to. */
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

/* NAME[i0, i1], as it has to be written; `moved`: the index that shows how to move one, -1: none. */
static const char *form(gp_shape *s, const gp_ew_space *o, int port, const char *name, int moved)
{
    enum { MOST = GP_EXPR_NAME + 8 + 8 * GP_MAXDIM };
    char *text = gp_shape_alloc(s, MOST);
    int before = o->ndim - o->axes[port], n = snprintf(text, MOST, "%s[", name);
    for (int k = 0; k < o->axes[port]; k++)
        n += snprintf(text + n, (size_t)(MOST - n), "%si%d%s", k ? ", " : "", before + k, k == moved ? " - 1" : "");
    snprintf(text + n, (size_t)(MOST - n), "]");
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

bool gp_ew_neighbour(gp_shape *s, const gp_node *text, const gp_expr_node *e, int port, const gp_ew_index *at,
                     const gp_expr_node *const *where, gp_ew_program *p, gp_ew_ins *ins)
{
    const gp_ew_space *o = &p->space;
    int n = o->axes[port], before = o->ndim - n, shift[GP_MAXDIM];
    bool moved = false;
    if (e->axis != n)
        return gp_shape_fail_at(s, gp_node_part(text, e->from, e->len), "'%s' has %d ax%cs, not %d: write %s, where each "
                                "index may have a number added or subtracted", e->name, n, n == 1 ? 'i' : 'e', e->axis,
                                form(s, o, port, e->name, -1));
    for (int k = 0; k < o->ndim; k++)
        shift[k] = -1;
    for (int k = 0; k < n; k++) {
        gp_ew_index x = at[k];
        gp_loc loc = gp_node_part(text, where[k]->from, where[k]->len);
        if (!x.is || x.to.axis != before + k)
            return gp_shape_fail_at(s, loc, "index %d of '%s' has to be i%d, or i%d plus or minus a whole number that "
                                    "is known before the run, as in %s; other elements are for a stage of kind "
                                    "'kernel'", k, e->name, before + k, before + k, form(s, o, port, e->name, k));
        if (x.to.by > GP_EW_FAR || x.to.by < -GP_EW_FAR)
            return gp_shape_fail_at(s, loc, "%" PRId64 " elements away is further than %d", x.to.by, GP_EW_FAR);
        x.to.edge = ((const gp_ew_opts *)s->opts)->edge;
        if (x.to.by || x.var)
            shift[before + k] = shift_of(s, p, &x), moved = true;
    }
    ins->shift = moved ? memcpy(gp_shape_alloc(s, sizeof shift), shift, sizeof shift) : NULL;
    return true;
}
