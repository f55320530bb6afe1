/* slips.c - mistakes with which no compiler would accept a source, where its text shows them: a bracket that is
 * not closed, an index that is half written.
 *
 * They are looked for only when the text does not say plainly which kernel it has, or which grid that wants: then
 * such a mistake is the likely reason. All others are left to the compiler. */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include "code.h"

static const char *const indices[] = { "blockIdx", "blockDim", "threadIdx", "gridDim", NULL };
static const char *const sums[] = { "*", "/", "%", "+", "-", NULL };
/* What a value follows, whatever closes behind it; and what one follows in a statement. */
static const char *const before_any[] = { "+", "-", "/", "%", "==", "!=", "<=", ">=", "||", "<<", "+=", "-=", "*=",
                                          "/=", NULL };
static const char *const before_end[] = { "=", "*", "<", "&&", NULL };
static const char *const closes[] = { ")", "]", ",", ";", NULL };
static const char *const joins[] = { "and", "or", "xor", "bitand", "bitor", "not_eq", NULL };

typedef struct slip { const gp_cu *c; const gp_tok *at; char text[200]; } slip;

#define FOUND(x, tok, ...) (snprintf((x)->text, sizeof (x)->text, __VA_ARGS__), (x)->at = (tok), true)

static int width(const gp_tok *t)
{
    return t->len < 40 ? t->len : 40;
}

/* ---- brackets ------------------------------------------------------------ */

static int bracket(const gp_tok *t, const char *kinds)
{
    const char *k = t->kind == GP_TOK_OTHER && t->len == 1 ? strchr(kinds, *t->p) : NULL;
    return k ? (int)(k - kinds) : -1;
}

/* Does a macro have a bracket without its other one? */
static bool macros_open(const gp_cu *c)
{
    for (int i = 0; i < c->nmacros; i++) {
        int open = 0;
        for (int k = c->macro[i].body; k < c->macro[i].to; k++)
            open += (bracket(&c->text.v[k], "([{") >= 0) - (bracket(&c->text.v[k], ")]}") >= 0);
        if (open)
            return true;
    }
    return false;
}

static bool find_bracket(slip *x)
{
    const gp_tok *v = x->c->main.v;
    int n = x->c->main.n, deep = 0, *open = gp_shape_alloc(x->c->s, sizeof *open * (size_t)n);
    if (macros_open(x->c))
        return false;
    for (int i = 1; i < n; i++) {
        int kind = bracket(&v[i], ")]}"), below = deep;
        const gp_tok *top = deep ? &v[open[deep - 1]] : NULL;
        if (bracket(&v[i], "([{") >= 0)
            open[deep++] = i;
        if (kind < 0 && !(top && gp_tok_is(&v[i], ";") && *top->p != '{' && !gp_tok_is(top - 1, "for")))
            continue;
        while (kind >= 0 && below && bracket(&v[open[below - 1]], "([{") != kind)
            below--;
        if (!below)
            return FOUND(x, &v[i], "nothing opens this '%c'", *v[i].p);
        if (below < deep || kind < 0)
            return FOUND(x, top, "this '%c' is never closed", *top->p);
        deep--;
    }
    return deep && FOUND(x, &v[open[deep - 1]], "this '%c' is never closed", *v[open[deep - 1]].p);
}

/* __launch_bounds__, __attribute__ and the like. */
static bool is_attribute(const gp_tok *t)
{
    return t->len > 2 && !memcmp(t->p, "__", 2);
}

/* `__global__ void k(...)` with neither a body nor a `;`. */
static bool find_header(slip *x)
{
    const gp_toks *t = &x->c->main;
    for (int i = 1, open; i < t->n; i++) {
        if (!gp_tok_is(&t->v[i], "__global__"))
            continue;
        for (open = i + 1; open < t->n && bracket(&t->v[open], "({;") < 0
             && !gp_tok_is(&t->v[open], "__global__"); open++)
            if (is_attribute(&t->v[open]) && gp_tok_is(&t->v[open + 1], "("))
                open = gp_tok_close(t, open + 1, t->n);
        int close = gp_tok_close(t, open, t->n);
        const gp_tok *name = &t->v[open - 1], *next = close < t->n ? &t->v[close + 1] : &t->v[t->n];
        bool words = next->kind == GP_TOK_WORD && !is_attribute(next) && !gp_tok_is(next, "noexcept")
            && !gp_tok_is_macro(x->c, next);
        if (gp_tok_is(&t->v[open], "(") && gp_tok_is(&t->v[close], ")")
            && (!next->kind || words || gp_tok_is(next, "}")))
            return FOUND(x, name, "after '%.*s(...)' a '{' is missing", width(name), name->p);
    }
    return false;
}

/* ---- indices ------------------------------------------------------------- */

static bool has_axis(const gp_tok *v)
{
    return gp_tok_is(&v[1], ".") && v[2].len == 1 && *v[2].p >= 'x' && *v[2].p <= 'z';
}

/* blockdim, threadId and the like. */
static bool is_misspelt(const gp_cu *c, const gp_tok *t)
{
    bool like = t->len >= 6 && (!strncasecmp(t->p, "block", 5) || !strncasecmp(t->p, "thread", 6)
                                || !strncasecmp(t->p, "grid", 4));
    return t->kind == GP_TOK_WORD && like && has_axis(t) && !gp_tok_among(t, indices) && !gp_tok_is_macro(c, t);
}

static bool find_index(slip *x)
{
    const gp_cu *c = x->c;
    const gp_tok *v = c->main.v;
    bool *seen = gp_shape_alloc(c->s, (size_t)c->nwords), first;     /* of a word */
    if (gp_cu_uses(c, "operator"))
        return false;
    for (int i = 1; i < c->main.n; i++) {
        const gp_tok *t = &v[i], *next;
        first = !seen[t->word], seen[t->word] = true;
        if (first && is_misspelt(c, t))
            return FOUND(x, t, "nothing declares '%.*s'; CUDA has blockIdx, blockDim, threadIdx and gridDim", width(t),
                         t->p);
        if ((gp_tok_among(t, before_any) && gp_tok_among(&v[i + 1], closes))
            || (gp_tok_among(t, before_end) && gp_tok_is(&v[i + 1], ";")))
            return FOUND(x, t, "after '%.*s' a value is missing", width(t), t->p);
        if (!gp_tok_among(t, indices) || gp_tok_is_macro(c, t))
            continue;
        if (!gp_tok_is(&v[i + 1], ".") && (gp_tok_among(&v[i + 1], sums) || gp_tok_among(&v[i - 1], sums)))
            return FOUND(x, t, "'%.*s' has the parts .x, .y and .z: write %.*s.x", width(t), t->p, width(t), t->p);
        if (has_axis(t) && ((next = &v[i + 3])->kind == GP_TOK_WORD || next->kind == GP_TOK_NUMBER)
            && !gp_tok_is_macro(c, next) && !gp_tok_among(next, joins))
            return FOUND(x, t, "after '%.*s.%c' a ';' or an operator is missing", width(t), t->p, *t[2].p);
    }
    return false;
}

bool gp_cu_slip(const gp_cu *c)
{
    slip x = { .c = c };
    if (c->cut || !(find_header(&x) || find_bracket(&x) || find_index(&x)))
        return false;
    gp_loc at = gp_cu_at(c, x.at);
    if (c->source->line && !x.at->file)    /* in the YAML */
        gp_shape_fail_at(c->s, at, "%s", x.text);
    else if (c->source->text && !x.at->file)
        gp_shape_fail(c->s, "code", "%s (line %d of 'code'); best write 'code: |', so that its lines stay as they are",
                      x.text, at.line);
    else
        gp_shape_fail(c->s, gp_cu_option(c), "%s (%s:%d)", x.text, at.file, at.line);
    return true;
}
