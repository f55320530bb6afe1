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
static bool holds(const gp_toks *t, int from, int to, const char *text)
{
    for (int i = from; i < to; i++)
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

/* The bracket around i within [from, i); -1: none. */
static int around(const gp_toks *t, int i, int from, const char *open)
{
    for (int k = i - 1; k >= from; k--) {
        if (t->v[k].kind == GP_TOK_OTHER && strchr(")]}", *t->v[k].p))
            k = gp_tok_open(t, k, from);
        else if (t->v[k].kind == GP_TOK_OTHER && t->v[k].len == 1 && strchr("([{", *t->v[k].p))
            return strchr(open, *t->v[k].p) ? k : -1;
    }
    return -1;
}

static int statement(const gp_toks *t, int i, int from)
{
    while (i > from && !(t->v[i - 1].kind == GP_TOK_OTHER && strchr(";{}(", *t->v[i - 1].p)))
        i--;
    return i;
}

/* ---- functions that get a variable ---------------------------------------- */

/* Parameter k of the function or macro d: [*from, *to). */
static bool parameter(const gp_def *d, int k, int *from, int *to)
{
    const gp_toks *t = d->in;
    int i = d->from, deep = 0;
    while (i < d->body && &t->v[i] != d->name)
        i++;
    if (i + 1 >= d->body || !gp_tok_is(&t->v[i + 1], "("))
        return false;
    int end = gp_tok_close(t, i + 1, d->body);
    for (*from = i += 2; ; i++) {
        deep += gp_tok_is(&t->v[i], "<") - gp_tok_is(&t->v[i], ">");
        if (i >= end || (deep <= 0 && gp_tok_is(&t->v[i], ","))) {
            *to = i;
            if (k-- == 0)
                return i > *from;
            if (i >= end)
                return false;
            *from = i + 1;
        } else if (strchr("([{", *t->v[i].p)) {
            i = gp_tok_close(t, i, end);
        }
    }
}

/* May a function change what its parameter k is, or points to? */
static bool function_may(const gp_def *d, int k, bool pointer)
{
    const gp_toks *t = d->in;
    int from, to;
    if (d->what == GP_DEF_MACRO) {
        for (int i = d->body; i < d->to; i++)
            if (gp_tok_among(&t->v[i], assignments) || gp_tok_is(&t->v[i], "&")
                || starts(&t->v[i], "atomic") || gp_tok_is(&t->v[i], "asm"))
                return true;
        return pointer;
    }
    if (d->what != GP_DEF_FUNCTION || !parameter(d, k, &from, &to))
        return pointer;
    int at = from;
    while (at < to && !gp_tok_is(&t->v[at], "*") && !gp_tok_is(&t->v[at], "&")
           && !gp_tok_is(&t->v[at], "[") && !gp_tok_is(&t->v[at], "&&"))
        at++;
    return at == to ? pointer : !holds(t, from, at, "const");
}

/* The same of whatever has this name. */
static bool call_may(const gp_cu *c, const gp_tok *name, int k, bool pointer)
{
    bool known = false, may = false;
    if (gp_tok_among(name, readers))
        return false;
    if (name->kind != GP_TOK_WORD)
        return pointer;
    for (int i = 0; i < c->ndefs; i++)
        if (gp_tok_same(c->def[i].name, name) && c->def[i].what != GP_DEF_OTHER)
            known = true, may |= function_may(&c->def[i], k, pointer);
    return known ? may : pointer || starts(name, "atomic");
}

/* ---- one occurrence -------------------------------------------------------- */

/* [s, e] of `t` is the address of a variable, or an array: does it go where it may be
 * written through? */
static bool address_may(const gp_cu *c, const gp_def *d, int s, int e)
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
        int open = around(t, s, d->from, "("), k = 0;
        for (int i = open + 1; open >= 0 && i < s; i++) {
            k += gp_tok_is(&t->v[i], ",");
            if (strchr("([{", *t->v[i].p))
                i = gp_tok_close(t, i, s);
        }
        if (open > d->from)
            return call_may(c, &t->v[open - 1], k, true);
    }
    if (gp_tok_is(before, "="))            /* const float *p = table; */
        return !holds(t, statement(t, s - 1, d->from), s - 1, "const");
    return true;
}

/* [s, e] is a variable or an element of one: does something get it by reference? */
static bool value_may(const gp_cu *c, const gp_def *d, int s, int e)
{
    const gp_toks *t = d->in;
    const gp_tok *before = &t->v[s - 1], *after = &t->v[e + 1];
    int first = statement(t, s - 1, d->from);
    if (gp_tok_is(before, "=") || gp_tok_is(before, ":"))  /* int &r = x; for (auto &r : x) */
        return (holds(t, first, s - 1, "&") || holds(t, first, s - 1, "&&"))
            && !holds(t, first, s - 1, "const") && !holds(t, first, s - 1, "?");
    if (gp_tok_is(before, "return")) {
        int i = d->from;
        while (i < d->body && !gp_tok_is(&t->v[i], "("))
            i++;
        return holds(t, d->from, i, "&") && !holds(t, d->from, i, "const");
    }
    if (!(gp_tok_is(before, "(") || gp_tok_is(before, ",") || gp_tok_is(before, "{"))
        || !(gp_tok_is(after, ")") || gp_tok_is(after, ",") || gp_tok_is(after, "}")))
        return false;
    int open = around(t, s, d->from, "({"), k = 0;
    if (open <= d->from + 1)
        return false;
    for (int i = open + 1; i < s; i++) {
        k += gp_tok_is(&t->v[i], ",");
        if (strchr("([{", *t->v[i].p))
            i = gp_tok_close(t, i, s);
    }
    if (t->v[open - 1].kind == GP_TOK_WORD && gp_tok_is(&t->v[open - 2], "&")
        && is_type(&t->v[open - 3]))       /* int &r(x) */
        return true;
    return gp_tok_is(&t->v[open], "(") && call_may(c, &t->v[open - 1], k, false);
}

static bool in_assembly(const gp_def *d, int i)
{
    const gp_toks *t = d->in;
    for (int open = i; (open = around(t, open, d->from, "(")) > d->from; )
        for (int k = open - 1; k > d->from && t->v[k].kind == GP_TOK_WORD; k--)
            if (gp_tok_is(&t->v[k], "asm") || gp_tok_is(&t->v[k], "__asm__"))
                return true;
    return false;
}

/* A name of a variable: its own, or of a macro that stands for it or an element of it. */
typedef struct alias {
    const gp_var *var;
    const gp_tok *name;
    int dims;
    bool call;                 /* a macro with parameters */
} alias;

/* The expression that the name at *s begins, with subscripts, members and brackets, is
 * [*s, *e]; the number of its subscripts, -1: it calls a member. */
static int expression(const gp_def *d, const alias *a, int *s, int *e)
{
    const gp_toks *t = d->in;
    int subscripts = 0;
    while (gp_tok_is(&t->v[*s - 1], "::"))
        *s -= t->v[*s - 2].kind == GP_TOK_WORD ? 2 : 1;
    if (a->call)
        *e = gp_tok_close(t, *e + 1, d->to);
    for (;;) {
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
            return subscripts;
        }
    }
}

static bool changes(const gp_cu *c, const gp_def *d, const alias *a, int i)
{
    const gp_toks *t = d->in;
    int s = i, e = i;
    if (a->call && !gp_tok_is(&t->v[i + 1], "("))
        return false;
    int subscripts = expression(d, a, &s, &e);
    const gp_tok *before = &t->v[s - 1], *after = &t->v[e + 1];
    if (subscripts < 0 || (e + 1 < d->to && gp_tok_among(after, assignments))
        || gp_tok_is(before, "++") || gp_tok_is(before, "--") || in_assembly(d, s))
        return true;
    if (gp_tok_is(before, "&") && is_unary(t, s - 1))
        return address_may(c, d, s - 1, e);
    return subscripts < a->dims ? e + 1 < d->to && address_may(c, d, s, e) : value_may(c, d, s, e);
}

/* ---- all of them ------------------------------------------------------------ */

static bool is_var_name(const gp_cu *c, const gp_tok *t)
{
    for (int i = 0; i < c->nvars; i++)
        if (c->var[i].name == t)
            return true;
    return false;
}

/* Does the name at i of `d` belong to a parameter or to a variable of a block? */
static bool is_local(const gp_cu *c, const gp_def *d, int i)
{
    const gp_toks *t = d->in;
    for (int k = d->from + 1; k <= i; k++) {
        if (t->v[k].kind != GP_TOK_WORD || !gp_tok_same(&t->v[k], &t->v[i])
            || is_var_name(c, &t->v[k]))
            continue;
        const gp_tok *before = &t->v[k - 1];
        bool declares = before->kind == GP_TOK_WORD ? !gp_tok_among(before, verbs)
            : (gp_tok_is(before, "*") || gp_tok_is(before, "&")) && is_type(&t->v[k - 2]);
        if (!declares)
            continue;
        if (k < d->body)
            return true;
        int open = around(t, k, d->body, "({"), end;
        if (open < 0)
            continue;
        end = gp_tok_close(t, open, d->to);
        if (gp_tok_is(&t->v[open], "(")) { /* for (int i = 0; ...) and what it repeats */
            end++;
            if (gp_tok_is(&t->v[end], "{"))
                end = gp_tok_close(t, end, d->to);
            else
                while (end < d->to && !gp_tok_is(&t->v[end], ";"))
                    end++;
        }
        if (i <= end)
            return true;
    }
    return false;
}

/* Does macro `m` stand for the variable, as a whole or for an element of it? */
static bool stands_for(const gp_def *m, const alias *a, alias *out)
{
    const gp_toks *t = m->in;
    for (int i = m->body; i < m->to; i++) {
        int s = i, e = i;
        if (t->v[i].kind != GP_TOK_WORD || !gp_tok_same(&t->v[i], a->name))
            continue;
        int subscripts = expression(m, a, &s, &e);
        if (s <= m->body && e + 1 >= m->to && subscripts >= 0) {
            int dims = a->dims - subscripts;
            *out = (alias){ a->var, m->name, dims < 0 ? 0 : dims, m->body > m->from + 1 };
            return true;
        }
    }
    return false;
}

/* MACRO(n) with count_ ## n in it may stand for any variable count_... */
static bool may_paste(const gp_def *m, const gp_var *v)
{
    const gp_toks *t = m->in;
    for (int i = m->body; i < m->to; i++) {
        if (!gp_tok_is(&t->v[i], "##"))
            continue;
        const gp_tok *a = &t->v[i - 1], *b = &t->v[i + 1];
        int k = 0;
        bool first = false, second = false;    /* parameters? */
        for (int p = m->from + 2; p < m->body; p++, k++) {
            first |= gp_tok_same(&t->v[p], a);
            second |= gp_tok_same(&t->v[p], b);
        }
        if ((first || (v->name->len >= a->len && !memcmp(v->name->p, a->p, (size_t)a->len)))
            && (second || (v->name->len >= b->len && !memcmp(v->name->p + v->name->len - b->len,
                                                            b->p, (size_t)b->len))))
            return true;
    }
    return false;
}

static const gp_tok *changed_as(const gp_cu *c, const alias *a, int deep)
{
    alias macro;
    for (int k = 0; k < c->ndefs; k++) {
        const gp_def *d = &c->def[k];
        const gp_tok *at = NULL;
        if (!d->reached)
            continue;
        if (d->what == GP_DEF_MACRO && may_paste(d, a->var))
            return d->name;
        if (d->what == GP_DEF_MACRO && deep < 8 && stands_for(d, a, &macro)
            && (at = changed_as(c, &macro, deep + 1)))
            return at;
        for (int i = d->from; i < d->to; i++) {
            const gp_tok *t = &d->in->v[i];
            if (t->kind == GP_TOK_WORD && gp_tok_same(t, a->name) && t != a->name
                && !is_var_name(c, t) && !gp_tok_is(t - 1, ".") && !gp_tok_is(t - 1, "->")
                && !(d->what == GP_DEF_MACRO && i == d->from) && !is_local(c, d, i)
                && changes(c, d, a, i))
                return t;
        }
    }
    return NULL;
}

const gp_var *gp_cu_writes(const gp_cu *c, const gp_tok **at)
{
    for (int i = 0; i < c->nvars; i++) {
        const gp_var *v = &c->var[i];
        const alias a = { v, v->name, v->dims, false };
        if (!v->same && (*at = changed_as(c, &a, 0)))
            return v;
    }
    return NULL;
}
