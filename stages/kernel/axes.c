/* axes.c - which axes of the grid and of the block a kernel asks for. */
#include <string.h>
#include "code.h"

/* Assembly that reads an index by itself. */
static bool reads_index(const gp_tok *t)
{
    for (int i = 0; i + 4 < t->len; i++)
        if (t->p[i] == '%' && (!memcmp(t->p + i + 1, "tid", 3) || !memcmp(t->p + i + 1, "ctaid", 5)
                               || !memcmp(t->p + i + 1, "ntid", 4)
                               || !memcmp(t->p + i + 1, "nctaid", 6)))
            return true;
    return false;
}

static void note(gp_axes *a, const gp_toks *in, int i, const char *why)
{
    if (!a->odd)
        a->odd = &in->v[i], a->why = why;
}

static void look_at(gp_axes *a, const gp_toks *in, int from, int to)
{
    for (int i = from; i < to; i++) {
        const gp_tok *v = &in->v[i];
        unsigned *axes = gp_tok_is(v, "blockIdx") ? &a->block : gp_tok_is(v, "threadIdx") ? &a->thread
            : gp_tok_is(v, "blockDim") ? &a->dim : gp_tok_is(v, "gridDim") ? &a->grid : NULL;
        if (v->kind == GP_TOK_TEXT && reads_index(v))
            note(a, in, i, "is an index in assembly");
        if (gp_tok_is(v, "this_grid"))
            note(a, in, i, "has an index of its own");
        if (!axes)
            continue;
        const gp_tok *axis = &in->v[i + 1 < to && gp_tok_is(&in->v[i + 1], ".") ? i + 2 : i];
        if (axis != v && axis->len == 1 && *axis->p >= 'x' && *axis->p <= 'z')
            *axes |= 1u << (*axis->p - 'x');
        else
            note(a, in, i, "is used as a whole");
    }
}

const gp_tok *gp_cu_uses(const gp_cu *c, const char *word)
{
    for (int i = 0; i < c->ndefs; i++)
        for (int k = c->def[i].from; c->def[i].reached && k < c->def[i].to; k++)
            if (gp_tok_is(&c->def[i].in->v[k], word))
                return &c->def[i].in->v[k];
    return NULL;
}

gp_axes gp_cu_axes(const gp_cu *c)
{
    gp_axes a = { .odd = c->odd, .why = c->why };
    for (int i = 0; i < c->ndefs; i++)
        if (c->def[i].reached)
            look_at(&a, c->def[i].in, c->def[i].from, c->def[i].to);
    /* A macro that puts words together may make an index of any axis. */
    for (int i = 0; i < c->ndefs; i++)
        for (int k = c->def[i].from; c->def[i].reached && c->def[i].what == GP_DEF_MACRO
                                     && k < c->def[i].to; k++)
            if (gp_tok_is(&c->def[i].in->v[k], "##"))
                note(&a, c->def[i].in, k, "puts words together");
    return a;
}
