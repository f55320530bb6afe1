/* writes.c - which of its own variables a kernel may change.
 *
 * An occurrence of a variable is a read unless it stands left of an assignment, at a ++ or
 * --, or its address goes where it may be used for that. What cannot be told is a change:
 * a table that is only read can always be declared const. */
#include <string.h>
#include "code.h"

static const char *const assignments[] = { "=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=",
                                           "<<=", ">>=", "++", "--", NULL };
/* Words after which a name is used, not declared. */
static const char *const verbs[] = { "return", "else", "case", "goto", "sizeof", "new", "delete",
                                     "throw", "do", "operator", "co_return", "not", "and", "or", NULL };
static const char *const type_words[] = {
    "int", "float", "double", "char", "short", "long", "unsigned", "signed", "bool", "void", "const",
    "auto", "size_t", "volatile", "__restrict__", "half", NULL
};
/* Of what they get by its address they only read, or nothing. */
static const char *const readers[] = { "__ldg", "__ldca", "__ldcg", "__ldcs", "__ldlu", "__ldcv",
    "sizeof", "alignof", "decltype", "printf", "assert", "if", "while", "switch", "return", NULL };

static bool starts(const gp_tok *t, const char *with)
{
    return t->len > (int)strlen(with) && !memcmp(t->p, with, strlen(with));
}

static bool is_type(const gp_tok *t)
{
    return t->kind == GP_TOK_WORD
        && (gp_tok_among(t, type_words) || (t->len > 2 && !memcmp(t->p + t->len - 2, "_t", 2)));
}

/* Is there a token in [from, to) that reads so? */
static bool holds(gp_cu *c, const gp_toks *t, int from, int to, const char *text)
{
    for (int i = from; i < to && gp_cu_step(c, &t->v[i]); i++)
        if (gp_tok_is(&t->v[i], text))
            return true;
    return false;
}

/* Has the & or * at i nothing before it that it could combine? */
static bool is_unary(const gp_toks *t, int i)
{
    const gp_tok *before = &t->v[i - 1];
    if (gp_tok_is(before, ")")) {          /* (int *)&x is a cast, (a) & x is not */
        int open = gp_tok_open(t, i - 1, 0);
        return gp_tok_is(&t->v[i - 2], "*") || (open == i - 3 && is_type(&t->v[i - 2]));
    }
    if (before->kind == GP_TOK_WORD)
        return gp_tok_among(before, verbs);
    return before->kind == GP_TOK_OTHER && !gp_tok_is(before, "]");
}

/* The bracket around i, not before `from`, where it is one of `open`; else -1. */
static int around(const gp_toks *t, int i, int from, const char *open)
{
    int k = t->v[i].up;
    return k >= from && strchr(open, *t->v[k].p) ? k : -1;
}

static int statement(gp_cu *c, const gp_toks *t, int i, int from)
{
    while (i > from && !(t->v[i - 1].kind == GP_TOK_OTHER && strchr(";{}(", *t->v[i - 1].p))
           && gp_cu_step(c, &t->v[i]))
        i--;
    return i;
}

/* Which argument stands at s, in the brackets at `open`? */
static int argument(gp_cu *c, const gp_toks *t, int open, int s)
{
    int k = 0;
    for (int i = open + 1; i < s && gp_cu_step(c, &t->v[i]); i++) {
        k += gp_tok_is(&t->v[i], ",");
        i = gp_tok_close(t, i, s);
    }
    return k;
}

/* ---- functions that get a variable ---------------------------------------- */

/* Parameter k of the function or macro d: [*from, *to). */
static bool parameter(gp_cu *c, const gp_def *d, int k, int *from, int *to)
{
    const gp_toks *t = d->in;
    int i = d->from, deep = 0;
    while (i < d->body && &t->v[i] != d->name && gp_cu_step(c, d->name))
        i++;
    if (i + 1 >= d->body || !gp_tok_is(&t->v[i + 1], "("))
        return false;
    int end = gp_tok_close(t, i + 1, d->body);
    for (*from = i += 2; gp_cu_step(c, d->name); i++) {
        deep += gp_tok_is(&t->v[i], "<") - gp_tok_is(&t->v[i], ">");
        if (i >= end || (deep <= 0 && gp_tok_is(&t->v[i], ","))) {
            *to = i;
            if (k-- == 0)
                return i > *from;
            if (i >= end)
                return false;
            *from = i + 1;
        } else {
            i = gp_tok_close(t, i, end);
        }
    }
    return false;
}

/* May a function change what its parameter k is, or points to? */
static bool function_may(gp_cu *c, const gp_def *d, int k, bool pointer)
{
    const gp_toks *t = d->in;
    int from, to;
    if (d->what == GP_DEF_MACRO) {
        for (int i = d->body; i < d->to && gp_cu_step(c, d->name); i++)
            if (gp_tok_among(&t->v[i], assignments) || gp_tok_is(&t->v[i], "&")
                || starts(&t->v[i], "atomic") || gp_tok_is(&t->v[i], "asm"))
                return true;
        return pointer;
    }
    if (d->what != GP_DEF_FUNCTION || !parameter(c, d, k, &from, &to))
        return pointer;
    int at = from;
    while (at < to && !gp_tok_is(&t->v[at], "*") && !gp_tok_is(&t->v[at], "&")
           && !gp_tok_is(&t->v[at], "[") && !gp_tok_is(&t->v[at], "&&"))
        at++;
    return at == to ? pointer : !holds(c, t, from, at, "const");
}

/* The same of whatever has this name. */
static bool call_may(gp_cu *c, const gp_tok *name, int k, bool pointer)
{
    bool known = false, may = false;
    if (gp_tok_among(name, readers))
        return false;
    if (name->kind != GP_TOK_WORD)
        return pointer;
    for (int i = c->named[name->word]; i >= 0 && gp_cu_step(c, name); i = c->def[i].next)
        if (c->def[i].what != GP_DEF_OTHER)
            known = true, may |= function_may(c, &c->def[i], k, pointer);
    return known ? may : pointer || starts(name, "atomic");
}

/* ---- one occurrence -------------------------------------------------------- */

/* [s, e] of `t` is the address of a variable, or an array: does it go where it may be
 * written through? */
static bool address_may(gp_cu *c, const gp_def *d, int s, int e)
{
    const gp_toks *t = d->in;
    if (gp_tok_is(&t->v[s - 1], ")")) {    /* a cast */
        int open = gp_tok_open(t, s - 1, d->from);
        if (gp_tok_is(&t->v[s - 2], "*") || is_type(&t->v[s - 2]))
            s = open;
    }
    const gp_tok *before = &t->v[s - 1], *after = &t->v[e + 1];
    if (gp_tok_is(before, "sizeof"))
        return false;
    if ((gp_tok_is(before, "(") || gp_tok_is(before, ","))
        && (gp_tok_is(after, ")") || gp_tok_is(after, ","))) {
        int open = around(t, s, d->from, "(");
        if (open > d->from)
            return call_may(c, &t->v[open - 1], argument(c, t, open, s), true);
    }
    if (gp_tok_is(before, "="))            /* const float *p = table; */
        return !holds(c, t, statement(c, t, s - 1, d->from), s - 1, "const");
    return true;
}

/* [s, e] is a variable or an element of one: does something get it by reference? */
static bool value_may(gp_cu *c, const gp_def *d, int s, int e)
{
    const gp_toks *t = d->in;
    const gp_tok *before = &t->v[s - 1], *after = &t->v[e + 1];
    if (gp_tok_is(before, "=") || gp_tok_is(before, ":")) {    /* int &r = x; for (auto &r : x) */
        int first = statement(c, t, s - 1, d->from);
        return (holds(c, t, first, s - 1, "&") || holds(c, t, first, s - 1, "&&"))
            && !holds(c, t, first, s - 1, "const") && !holds(c, t, first, s - 1, "?");
    }
    if (gp_tok_is(before, "return")) {
        int i = d->from;
        while (i < d->body && !gp_tok_is(&t->v[i], "(") && gp_cu_step(c, d->name))
            i++;
        return holds(c, t, d->from, i, "&") && !holds(c, t, d->from, i, "const");
    }
    if (!(gp_tok_is(before, "(") || gp_tok_is(before, ",") || gp_tok_is(before, "{"))
        || !(gp_tok_is(after, ")") || gp_tok_is(after, ",") || gp_tok_is(after, "}")))
        return false;
    int open = around(t, s, d->from, "({");
    if (open <= d->from + 1)
        return false;
    if (t->v[open - 1].kind == GP_TOK_WORD && gp_tok_is(&t->v[open - 2], "&")
        && is_type(&t->v[open - 3]))       /* int &r(x) */
        return true;
    return gp_tok_is(&t->v[open], "(") && call_may(c, &t->v[open - 1], argument(c, t, open, s), false);
}

static bool in_assembly(gp_cu *c, const gp_def *d, int i)
{
    const gp_toks *t = d->in;
    for (int open = i; gp_cu_step(c, &t->v[i]) && (open = around(t, open, d->from, "(")) > d->from; )
        for (int k = open - 1; k > d->from && t->v[k].kind == GP_TOK_WORD
                               && gp_cu_step(c, &t->v[i]); k--)
            if (gp_tok_is(&t->v[k], "asm") || gp_tok_is(&t->v[k], "__asm__"))
                return true;
    return false;
}

/* A name of a variable: its own, or of a macro that stands for it or an element of it. */
typedef struct alias {
    const gp_tok *name;
    int dims;
    bool call;                 /* a macro with parameters */
    int before;                /* another of this name; -1: none */
} alias;

/* The expression that the name at *s begins, with subscripts, members and brackets, is
 * [*s, *e]; the number of its subscripts, -1: it calls a member. */
static int expression(gp_cu *c, const gp_def *d, const alias *a, int *s, int *e)
{
    const gp_toks *t = d->in;
    int subscripts = 0;
    while (gp_tok_is(&t->v[*s - 1], "::") && gp_cu_step(c, &t->v[*s]))
        *s -= t->v[*s - 2].kind == GP_TOK_WORD ? 2 : 1;
    if (a->call)
        *e = gp_tok_close(t, *e + 1, d->to);
    while (gp_cu_step(c, &t->v[*s])) {
        const gp_tok *next = &t->v[*e + 1];
        if (*e + 1 < d->to && gp_tok_is(next, "[")) {
            *e = gp_tok_close(t, *e + 1, d->to), subscripts++;
        } else if (*e + 1 < d->to && (gp_tok_is(next, ".") || gp_tok_is(next, "->"))) {
            if (gp_tok_is(&t->v[*e + 3], "("))
                return -1;
            *e += 2, subscripts = a->dims;
        } else if (gp_tok_is(&t->v[*s - 1], "*") && is_unary(t, *s - 1)) {
            --*s, subscripts++;
        } else if (*e + 1 < d->to && gp_tok_is(&t->v[*s - 1], "(") && gp_tok_is(next, ")")
                   && *s - 1 > d->from && (t->v[*s - 2].kind == GP_TOK_OTHER
                                           ? !strchr(")]", *t->v[*s - 2].p)
                                           : gp_tok_among(&t->v[*s - 2], verbs))) {
            --*s, ++*e;
        } else {
            break;
        }
    }
    return subscripts;
}

static bool changes(gp_cu *c, const gp_def *d, const alias *a, int i)
{
    const gp_toks *t = d->in;
    int s = i, e = i;
    if (a->call && !gp_tok_is(&t->v[i + 1], "("))
        return false;
    int subscripts = expression(c, d, a, &s, &e);
    const gp_tok *before = &t->v[s - 1], *after = &t->v[e + 1];
    if (subscripts < 0 || (e + 1 < d->to && gp_tok_among(after, assignments))
        || gp_tok_is(before, "++") || gp_tok_is(before, "--") || in_assembly(c, d, s))
        return true;
    if (gp_tok_is(before, "&") && is_unary(t, s - 1))
        return address_may(c, d, s - 1, e);
    return subscripts < a->dims ? e + 1 < d->to && address_may(c, d, s, e) : value_may(c, d, s, e);
}

/* ---- all of them ------------------------------------------------------------ */

/* Where a word stands in what is reached. */
typedef struct place { int def, i; } place;
/* a ## b in a macro; NULL: one of its parameters. */
typedef struct paste { const gp_tok *macro, *a, *b; } paste;

typedef struct search {
    gp_cu *c;
    place *at; int *first;     /* those of word w: first[w] up to first[w + 1] */
    paste *paste; int npastes, pastes_cap;
    alias *alias; int n, cap;  /* each is gone through once, whichever variable it stands for */
    int *known;                /* of a word: the last alias of this name, counted from 1 */
} search;

static void each_word(search *s, void (*add)(search *, int word, place at))
{
    for (int k = 0; k < s->c->ndefs; k++) {
        const gp_def *d = &s->c->def[k];
        for (int i = d->from; d->reached && i < d->to; i++)
            if (d->in->v[i].kind == GP_TOK_WORD)
                add(s, d->in->v[i].word, (place){ k, i });
    }
}

static void count(search *s, int word, place at)
{
    (void)at;
    s->first[word + 2]++;
}

static void put(search *s, int word, place at)
{
    s->at[s->first[word + 1]++] = at;
}

static bool is_parameter(gp_cu *c, const gp_def *m, const gp_tok *t)
{
    for (int i = m->from + 2; i < m->body; i++)
        if (!gp_cu_step(c, t) || m->in->v[i].word == t->word)
            return true;
    return false;
}

static void find_pastes(search *s)
{
    gp_cu *c = s->c;
    for (int k = 0; k < c->ndefs; k++) {
        const gp_def *m = &c->def[k];
        if (!m->reached || m->what != GP_DEF_MACRO)
            continue;
        for (int i = m->body; i < m->to; i++) {
            const gp_tok *a = &m->in->v[i - 1], *b = &m->in->v[i + 1];
            if (!gp_tok_is(&m->in->v[i], "##"))
                continue;
            s->paste = gp_cu_room(c, s->paste, s->npastes, &s->pastes_cap, sizeof *s->paste);
            s->paste[s->npastes++] = (paste){ m->name, is_parameter(c, m, a) ? NULL : a,
                                              is_parameter(c, m, b) ? NULL : b };
        }
    }
}

/* MACRO(n) with count_ ## n in it may stand for any variable count_... */
static bool may_paste(const paste *p, const gp_tok *name)
{
    const gp_tok *a = p->a, *b = p->b;
    return (!a || (name->len >= a->len && !memcmp(name->p, a->p, (size_t)a->len)))
        && (!b || (name->len >= b->len
                   && !memcmp(name->p + name->len - b->len, b->p, (size_t)b->len)));
}

/* If the name at k of `d` declares a parameter or a variable of a block: where its scope ends;
 * else -1. */
static int local_to(gp_cu *c, const gp_def *d, int k)
{
    const gp_toks *t = d->in;
    const gp_tok *before = &t->v[k - 1];
    if (k == d->from || t->v[k].variable)
        return -1;
    if (before->kind == GP_TOK_WORD ? gp_tok_among(before, verbs)
        : !((gp_tok_is(before, "*") || gp_tok_is(before, "&")) && is_type(&t->v[k - 2])))
        return -1;
    if (k < d->body)
        return d->to;
    int open = around(t, k, d->body, "({");
    if (open < 0)
        return -1;
    int end = gp_tok_close(t, open, d->to);
    if (gp_tok_is(&t->v[open], "(")) {     /* for (int i = 0; ...) and what it repeats */
        end++;
        if (gp_tok_is(&t->v[end], "{"))
            return gp_tok_close(t, end, d->to);
        while (end < d->to && !gp_tok_is(&t->v[end], ";") && gp_cu_step(c, &t->v[k]))
            end++;
    }
    return end;
}

static void add_alias(search *s, alias a)
{
    int *known = &s->known[a.name->word];
    for (int i = *known - 1; i >= 0 && gp_cu_step(s->c, a.name); i = s->alias[i].before)
        if (s->alias[i].dims == a.dims && s->alias[i].call == a.call)
            return;
    a.before = *known - 1;
    s->alias = gp_cu_room(s->c, s->alias, s->n, &s->cap, sizeof *s->alias);
    s->alias[s->n++] = a;
    *known = s->n;
}

/* Does macro `m`, where the name stands at i, stand for it as a whole or for an element of it? */
static void stands_for(search *s, const gp_def *m, const alias *a, int i)
{
    int from = i, to = i, subscripts = expression(s->c, m, a, &from, &to);
    int dims = a->dims > subscripts ? a->dims - subscripts : 0;
    if (i >= m->body && from <= m->body && to + 1 >= m->to && subscripts >= 0)
        add_alias(s, (alias){ m->name, dims, m->body > m->from + 1, -1 });
}

static const gp_tok *changed_as(search *s, alias a)
{
    int in = -1, local = -1;
    for (int k = s->first[a.name->word]; k < s->first[a.name->word + 1]; k++) {
        const gp_def *d = &s->c->def[s->at[k].def];
        const gp_tok *t = &d->in->v[s->at[k].i];
        int i = s->at[k].i;
        if (s->at[k].def != in)
            in = s->at[k].def, local = -1;
        int end = local_to(s->c, d, i);
        local = end > local ? end : local;
        if (d->what == GP_DEF_MACRO)
            stands_for(s, d, &a, i);
        if (!t->variable && !gp_tok_is(t - 1, ".") && !gp_tok_is(t - 1, "->")
            && !(d->what == GP_DEF_MACRO && i == d->from) && i > local
            && changes(s->c, d, &a, i))
            return t;
    }
    return NULL;
}

const gp_var *gp_cu_writes(gp_cu *c, const gp_tok **at)
{
    size_t words = (size_t)c->nwords + 2;
    search s = { .c = c, .first = gp_shape_alloc(c->s, sizeof *s.first * words),
                 .known = gp_shape_alloc(c->s, sizeof *s.known * words) };
    each_word(&s, count);
    for (size_t w = 2; w < words; w++)
        s.first[w] += s.first[w - 1];
    s.at = gp_shape_alloc(c->s, sizeof *s.at * (size_t)(s.first[words - 1] + 1));
    each_word(&s, put);
    find_pastes(&s);
    for (int i = 0, done = 0; i < c->nvars; i++) {
        const gp_var *v = &c->var[i];
        if (v->same)
            continue;
        for (int k = 0; k < s.npastes && gp_cu_step(c, v->name); k++)
            if (may_paste(&s.paste[k], v->name))
                return *at = s.paste[k].macro, v;
        add_alias(&s, (alias){ v->name, v->dims, false, -1 });
        for (; done < s.n; done++)
            if ((*at = changed_as(&s, s.alias[done])))
                return v;
    }
    return NULL;
}
