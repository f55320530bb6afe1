/* bounds.c - does a kernel plainly read out of bounds, where an input is smaller than its grid?
 *
 * One form is understood: i = blockIdx.x * blockDim.x + threadIdx.x is the only index, and in[i]
 * stands behind nothing but declarations, expressions and the guards `if (i < n)` and
 * `if (i >= n) return;`, where n is a number or what `args` passes; and what is done with it needs
 * its value, not only its address. All else is left to --check-kernels: nothing is said that may be
 * untrue. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "launch_args.h"

enum { GUARDS = 8, BRACKETS = 24 };    /* within each other */

/* What may keep a thread from what follows as well, or what follows from being read. */
static const char *const leaves[] = { "else", "for", "default", "&&", "||", "and", "or", "{", "}", "try", "throw",
    "sizeof", "alignof", "decltype", "typeid", "noexcept", "__trap", "__exit", "assert", NULL };
static const char *const sums[] = { "+", "-", "/", "%", NULL };
static const char *const operators[] = { "+", "-", "*", "/", "%", "<", ">", "<=", ">=", "==", "!=", NULL };
/* Their parameters are no references. */
static const char *const functions[] = { "fma", "fmaf", "fmin", "fminf", "fmax", "fmaxf", "fabs", "fabsf", "sqrt",
    "sqrtf", "rsqrtf", "exp", "expf", "log", "logf", "pow", "powf", "sin", "sinf", "cos", "cosf", NULL };

typedef struct search {
    gp_shape *s;
    const gp_kargs *a;
    const gp_cu *c;
    const gp_tok *v, *name;    /* of all tokens; of the index */
    int body, end;             /* of the entry: its brackets */
    const gp_tok *param[GP_MAX_ARGS];      /* the names of its parameters; NULL: none that is plain */
    int kept[GP_MAX_ARGS];     /* before this token nothing changes the parameter */
    int64_t below;             /* the index is, where it is looked at */
    struct { int end; int64_t below; } guard[GUARDS];      /* those that are open */
    int guards;
} search;

static bool same(const gp_tok *a, const gp_tok *b)
{
    return a->kind == GP_TOK_WORD && a->word == b->word;
}

/* Is the number at k only read: [n], n * 2, 1 + n? */
static bool is_read(const gp_tok *k)
{
    return (gp_tok_is(k - 1, "[") && gp_tok_is(k + 1, "]")) || gp_tok_among(k - 1, sums)
        ? !gp_tok_assigns(k + 1) : gp_tok_among(k + 1, sums) || gp_tok_is(k + 1, "*");
}

/* `if (i < n)` or `if (i >= n) return;` */
static bool is_guard(const search *s, int i)
{
    const gp_tok *v = &s->v[i];
    return gp_tok_is(v, "if") && gp_tok_is(v + 1, "(") && same(v + 2, s->name) && gp_tok_is(v + 5, ")")
        && (gp_tok_is(v + 3, "<") || (gp_tok_is(v + 3, ">=") && gp_tok_is(v + 6, "return") && gp_tok_is(v + 7, ";")));
}

/* The number that a guard at i compares with. False: it is not known. */
static bool limit(search *s, int i, int64_t *n)
{
    const gp_tok *t = &s->v[i + 4];
    char *end;
    if (t->kind == GP_TOK_NUMBER) {
        errno = 0, *n = strtoll(t->p, &end, 10);
        return !errno && end == t->p + t->len && *t->p != '0';
    }
    for (int k = 0; k < s->a->n; k++) {
        const gp_tok *name = s->param[k];
        gp_num v;
        if (!name || !same(t, name))
            continue;
        for (int b = s->kept[k]; b < i; b++)
            if (same(&s->v[b], name) && !is_read(&s->v[b]) && !is_guard(s, b - 4))
                return false;
        s->kept[k] = i;
        if (s->a->arg[k].what != GP_VALUE || !gp_shape_eval(s->s, s->a->arg[k].value, &v) || !v.is_int)
            return false;
        *n = v.i;
        return true;
    }
    return false;
}

/* Goes behind the guard at *i, which counts to the end of what it guards. False: it is none. */
static bool enter(search *s, int *i)
{
    int64_t n;
    if (!is_guard(s, *i) || !limit(s, *i, &n))
        return false;
    n = n < s->below ? n : s->below;
    if (gp_tok_is(&s->v[*i + 3], ">=")) {
        s->below = n, *i += 7;
        return !s->guards;
    }
    int from = *i + 6, end = from;
    if (s->guards == GUARDS)
        return false;
    if (gp_tok_is(&s->v[from], "{"))
        end = s->v[from].pair, *i = from;
    else
        for (*i += 5; end < s->end && !gp_tok_is(&s->v[end], ";"); )
            end++;
    s->guard[s->guards].end = end, s->guard[s->guards++].below = s->below;
    s->below = n;
    return true;
}

/* ---- a value -------------------------------------------------------------- */

/* Does the bracket at `close` close a cast, (float)? */
static bool is_cast(const search *s, int close)
{
    int open = gp_tok_is(&s->v[close], ")") ? s->v[close].pair : 0, i = open + 1;
    if (open <= s->body)
        return false;
    while (i < open + BRACKETS && gp_tok_is_value(&s->v[i]))
        i++;
    return i == close && i > open + 1;
}

/* Is what stands in the bracket at `open` cast, or passed by value? */
static bool is_by_value(const search *s, int open)
{
    const gp_tok *v = s->v, *before = &v[open - 1];
    return gp_tok_is(&v[open], "(")
        && (gp_tok_is_value(before) || gp_tok_among(before, functions) || is_cast(s, open - 1)
            || (gp_tok_is(before, ">") && gp_tok_is_value(before - 1) && gp_tok_is(before - 2, "<")
                && gp_tok_is(before - 3, "static_cast")));
}

/* Is the bracket at `open` one of a call, or a cast? */
static bool is_passed(const search *s, int open)
{
    const gp_tok *before = &s->v[open - 1];
    return gp_tok_is(&s->v[open], "(")
        && (before->kind == GP_TOK_WORD || gp_tok_is(before, ")") || gp_tok_is(before, "]") || gp_tok_is(before, ">"));
}

/* Does the = or the like at i need the value behind it: `v = w[i]`, `float v = w[i]`, no reference? */
static bool takes_value(const search *s, int i)
{
    static const char *const before[] = { ";", "{", "}", ".", "->", "auto", NULL };
    const gp_tok *t = &s->v[i - 2];
    bool guarded = gp_tok_is(t, ")") && t->pair > s->body && gp_tok_is(&s->v[t->pair - 1], "if");
    if (!gp_tok_is(&s->v[i], "="))
        return gp_tok_assigns(&s->v[i]);
    return gp_tok_is(&t[1], "]") || guarded || gp_tok_is_value(t) || gp_tok_among(t, before);
}

/* Is the value of the NAME[i] at `from` needed? */
static bool is_needed(const search *s, int from)
{
    static const char *const address[] = { "&", ".", "->", "::", NULL };
    const gp_tok *v = s->v;
    int to = from + 4;
    for (int i = v[from].up, n = 0; i > s->body; i = v[i].up, n++)
        if (n == BRACKETS || (is_passed(s, i) && !is_by_value(s, i)))
            return false;                  /* maybe of a macro, or a sizeof by another name */
    while (gp_tok_is(&v[to], ".") && v[to + 1].kind == GP_TOK_WORD)
        to += 2;
    while (gp_tok_is(&v[from - 1], "(") && v[from - 1].pair == to && !is_passed(s, from - 1))
        from--, to++;
    const gp_tok *before = &v[from - 1], *after = &v[to];
    if (gp_tok_among(before, address) || gp_tok_assigns(after))
        return false;
    return gp_tok_among(before, operators) || gp_tok_among(after, operators) || takes_value(s, from - 1)
        || is_cast(s, from - 1) || (gp_tok_is(before, "[") && gp_tok_is(after, "]"))
        || ((gp_tok_is(before, "(") || gp_tok_is(before, ",")) && (gp_tok_is(after, ")") || gp_tok_is(after, ","))
            && is_by_value(s, v[from].up));
}

/* ---- the kernel ----------------------------------------------------------- */

/* Is the name at t certainly the input, neither declared anew nor changed? `assigned`: behind an =. */
static bool is_input(const gp_tok *t, bool assigned)
{
    static const char *const changed[] = { "++", "--", NULL };
    return assigned && t[-1].kind != GP_TOK_WORD && !gp_tok_among(&t[-1], changed)
        && (gp_tok_is(&t[1], "[") || (gp_tok_is(&t[1], "+") && !gp_tok_is(&t[-1], "&")));
}

/* The first NAME[i] that reads an input of `count` elements beyond its end. NULL: none is certain. */
static const gp_tok *out_of_bounds(search *s, const gp_tok *name, int64_t count)
{
    static const char *const ends[] = { ";", "{", "}", ",", NULL };
    bool known = false;        /* the index */
    bool assigned = false;     /* behind the = of a declaration or statement */
    for (int i = s->body + 1; i < s->end; i++) {
        const gp_tok *t = &s->v[i];
        bool closes = s->guards && i == s->guard[s->guards - 1].end;
        if (t->chosen || gp_tok_is_macro(s->c, t))
            return NULL;
        if (gp_tok_is(&s->v[t->up], "{"))
            assigned = (assigned && !gp_tok_among(t, ends)) || gp_tok_assigns(t);
        if (closes)
            while (s->guards && i == s->guard[s->guards - 1].end)
                s->below = s->guard[--s->guards].below;
        else if (i == s->c->flat.name)
            known = true, i = s->c->flat.to;
        else if (gp_tok_branches(t) || gp_tok_is_asm(t) || gp_tok_among(t, leaves) ? !known || !enter(s, &i)
                 : same(t, s->name) ? !is_read(t) : gp_tok_is(t, "auto") && t[1].kind != GP_TOK_WORD)
            return NULL;
        else if (same(t, name) && !is_input(t, assigned))
            return NULL;
        else if (same(t, name) && known && s->below > count && gp_tok_is(&t[1], "[") && same(&t[2], s->name)
                 && gp_tok_is(&t[3], "]") && is_needed(s, i))
            return t;
    }
    return NULL;
}

/* `int i = ...;` in the kernel's outermost block. */
static bool is_declared(const search *s, const gp_region *flat)
{
    int i = flat->name;
    if (!flat->to || i <= s->body || !gp_tok_is(&s->v[i + 1], "=") || !gp_tok_is(&s->v[flat->to], ";")
        || s->v[i].kind != GP_TOK_WORD || s->v[i].up != s->body)
        return false;
    for (i--; gp_tok_is_integer(&s->v[i]) || gp_tok_is(&s->v[i], "const") || gp_tok_is(&s->v[i], "auto"); )
        i--;
    return i + 1 < flat->name && (i == s->body || gp_tok_is(&s->v[i], ";"));
}

bool gp_kargs_bounds(gp_shape *s, const gp_kargs *a, const gp_cu *c)
{
    search f = { .s = s, .a = a, .c = c, .v = c->main.v, .end = c->kernels.entry.to - 1 };
    if (c->odd || c->kernels.odd || !c->flat.to || gp_cu_uses(c, "operator"))
        return true;
    f.body = f.v[f.end].pair, f.name = &f.v[c->flat.name];
    for (int k = 0; k < a->n; k++)
        f.param[k] = gp_kargs_name(c, k), f.kept[k] = f.body;
    for (int k = 0; k < a->n && is_declared(&f, &c->flat); k++) {
        const gp_tok *name = f.param[k], *at;
        int port = a->arg[k].port;
        int64_t count = a->arg[k].what == GP_INPUT ? gp_count(&s->in[port]) : INT64_MAX;
        f.below = (int64_t)s->grid.x * s->block.x, f.guards = 0;
        if (!name || count >= gp_count(&s->out[0]) || !(at = out_of_bounds(&f, name, count)))
            continue;
        gp_loc where = gp_cu_at(c, at);
        return gp_shape_fail_at(s, a->at[k], "kernel '%s' reads %.*s[%.*s] (%s:%d) for each %.*s below %lld, but "
                                "'%s' has %lld elements", c->entry, name->len, name->p, f.name->len, f.name->p,
                                where.file, where.line, f.name->len, f.name->p, (long long)f.below,
                                s->in_name[port], (long long)count);
    }
    return true;
}
