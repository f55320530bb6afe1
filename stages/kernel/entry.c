/* entry.c - where the kernels of a source stand, and which of them is the entry. */
#include <string.h>
#include "code.h"

/* extern "C" before the token at i, or around it. */
static bool is_c(const gp_toks *t, int i)
{
    int up = t->v[i].up;
    if (i > 1 && gp_tok_is(&t->v[i - 1], "\"C\"") && gp_tok_is(&t->v[i - 2], "extern"))
        return up < 0;
    return up > 1 && t->v[up].up < 0 && gp_tok_is(&t->v[up], "{") && gp_tok_is(&t->v[up - 1], "\"C\"")
        && gp_tok_is(&t->v[up - 2], "extern");
}

/* The kernel that begins with the __global__ at i; false: it has no body. */
static bool read_kernel(const gp_toks *t, int i, gp_region *r)
{
    r->from = i;
    while (i < t->n && !gp_tok_is(&t->v[i], "(") && !gp_tok_is(&t->v[i], ";")
           && !gp_tok_is(&t->v[i], "{") && (i == r->from || !gp_tok_is(&t->v[i], "__global__"))) {
        i++;
        if (gp_tok_is(&t->v[i], "(") && gp_tok_is(&t->v[i - 1], "__launch_bounds__"))
            i = gp_tok_close(t, i, t->n) + 1;
    }
    int close = gp_tok_close(t, i, t->n);
    r->name = i - 1;
    r->to = gp_tok_close(t, close + 1, t->n) + 1;
    return gp_tok_is(&t->v[i], "(") && gp_tok_is(&t->v[close + 1], "{") && r->to <= t->n;
}

/* extern "C" __global__ void NAME(, or with void first, and __launch_bounds__(...) anywhere. */
static bool is_entry(const gp_cu *c, const gp_region *r)
{
    const gp_toks *t = &c->main;
    int first = r->from, voids = 0;
    if (gp_tok_is(&t->v[first - 1], "void"))
        first--;
    for (int i = first; i <= r->name; i++) {
        if (gp_tok_is_macro(c, &t->v[i]) || t->v[i].chosen || t->v[i].file)
            return false;
        if (gp_tok_is(&t->v[i], "__launch_bounds__"))
            i = gp_tok_close(t, i + 1, r->name);
        else if (gp_tok_is(&t->v[i], "void"))
            voids++;
        else if (i != r->from && i != r->name)
            return false;
    }
    return voids == 1 && is_c(t, first);
}

void gp_cu_kernels(gp_cu *c)
{
    gp_kernels *k = &c->kernels;
    int cap = 0;
    bool twice = false;        /* or declared in another way */
    k->odd = c->main.v;
    for (int i = 1; i < c->main.n; i++) {
        gp_region r;
        if (!gp_tok_is(&c->main.v[i], "__global__") || !read_kernel(&c->main, i, &r))
            continue;
        const gp_tok *name = &c->main.v[r.name];
        if (!c->entry && name->kind == GP_TOK_WORD)
            c->entry = memcpy(gp_shape_alloc(c->s, (size_t)name->len + 1), name->p, (size_t)name->len);
        if (!c->entry || !gp_tok_is(name, c->entry)) {
            k->other = gp_cu_room(c, k->other, k->nothers, &cap, sizeof *k->other);
            k->other[k->nothers++] = r;
            for (int t = r.from; t < r.to; t++)
                c->main.v[t].other = true;
        } else if (k->entry.to || !is_entry(c, &r)) {
            k->odd = name, twice = true;
        } else {
            k->entry = r;
            if (!twice)
                k->odd = NULL;
        }
        i = r.to - 1;
    }
}

const gp_tok *gp_cu_uses(const gp_cu *c, const char *word)
{
    for (int k = 0; k < 2; k++)
        for (const gp_tok *t = k ? c->text.v : c->main.v; t->kind; t++)
            if (!t->other && gp_tok_is(t, word))
                return t;
    return NULL;
}
