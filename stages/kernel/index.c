/* index.c - numbers of words, pairs of brackets, macros by name: with them, a source is searched in time
 * that is in proportion to its length. */
#include <stdlib.h>
#include <string.h>
#include "code.h"

/* ---- words --------------------------------------------------------------- */

typedef struct spelled { unsigned hash; gp_tok *t; } spelled;

static unsigned hash(const gp_tok *t)
{
    unsigned h = 2166136261u;
    for (int i = 0; i < t->len; i++)
        h = (h ^ (unsigned char)t->p[i]) * 16777619u;
    return h;
}

static int compare(const void *a, const void *b)
{
    const spelled *x = a, *y = b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    if (x->t->len != y->t->len)
        return x->t->len - y->t->len;
    return memcmp(x->t->p, y->t->p, (size_t)x->t->len);
}

static void number(gp_cu *c)
{
    int n = 0;
    spelled *s = gp_shape_alloc(c->s, sizeof *s * (size_t)(c->main.n + c->text.n));
    for (int k = 0; k < 2; k++) {
        gp_toks *t = k ? &c->text : &c->main;
        for (int i = 0; i < t->n; i++)
            s[n++] = (spelled){ hash(&t->v[i]), &t->v[i] };
    }
    qsort(s, (size_t)n, sizeof *s, compare);
    for (int i = 0; i < n; i++)
        s[i].t->word = c->nwords += !i || compare(&s[i - 1], &s[i]) != 0;
    c->nwords++;               /* from 1 */
}

/* ---- brackets ------------------------------------------------------------ */

static int bracket(const gp_tok *t)
{
    if (t->kind != GP_TOK_OTHER || t->len != 1)
        return 0;
    return strchr("([{", *t->p) ? 1 : strchr(")]}", *t->p) ? -1 : 0;
}

int gp_tok_close(const gp_toks *t, int i, int to)
{
    if (i >= to)
        return to;
    return bracket(&t->v[i]) <= 0 ? i : t->v[i].pair < to ? t->v[i].pair : to;
}

int gp_tok_angle(const gp_toks *t, int i, int to)
{
    return i < to && t->v[i].pair < to ? t->v[i].pair : i;
}

/* Open brackets are a list by `up`, open < one by `pair`. */
static void pair(gp_toks *t)
{
    int round = -1, angle = -1;
    for (int i = 0; i <= t->n; i++) {
        gp_tok *v = &t->v[i];
        int b = bracket(v), close = gp_tok_is(v, ">") ? 1 : gp_tok_is(v, ">>") ? 2 : 0;
        if (b < 0 && round >= 0) {
            v->pair = round, t->v[round].pair = i;
            round = t->v[round].up;
        } else {
            v->pair = b < 0 ? -1 : GP_NO_PAIR;
        }
        v->up = round;
        if (b > 0)
            round = i;
        if (i == t->n || gp_tok_is(v, ";") || gp_tok_is(v, "{") || gp_tok_is(v, "="))
            close = GP_NO_PAIR;
        for (; close && angle >= 0; close--) {
            int before = t->v[angle].pair;
            if (gp_tok_is(v, "=") && angle > 0 && gp_tok_is(&t->v[angle - 1], "template"))
                break;                     /* template <int N = 3> */
            t->v[angle].pair = close > 2 ? GP_NO_PAIR : i;
            if (close <= 2)
                v->pair = angle;           /* of >> the outer one */
            angle = before;
        }
        if (gp_tok_is(v, "<"))
            v->pair = angle, angle = i;
    }
}

/* ---- macros ---------------------------------------------------------------- */

bool gp_tok_is_macro(const gp_cu *c, const gp_tok *t)
{
    return t->kind == GP_TOK_WORD && c->named[t->word] >= 0;
}

void gp_cu_index(gp_cu *c)
{
    number(c);
    pair(&c->main);
    pair(&c->text);
    size_t bytes = sizeof *c->named * (size_t)c->nwords;
    c->named = gp_shape_alloc(c->s, bytes);
    memset(c->named, -1, bytes);
    for (int i = 0; i < c->nmacros; i++) {
        int *named = &c->named[c->text.v[c->macro[i].from].word];
        c->macro[i].next = *named, *named = i;
    }
}
