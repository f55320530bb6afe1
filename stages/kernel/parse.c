/* parse.c - definitions and variables in a user's source, and what a kernel may reach.
 *
 * No grammar of C++: what stands between two semicolons outside of all braces is a
 * function if a name, brackets and a body follow each other, else it may declare variables. */
#include <string.h>
#include "code.h"

/* What may stand before brackets and is no function. */
static const char *const attributes[] = {
    "__attribute__", "__launch_bounds__", "__align__", "alignas", "decltype", "__declspec",
    "noexcept", "static_assert", "_Static_assert", "sizeof", "__block_size__", "__cluster_dims__",
    "__maxnreg__", "explicit", "requires", NULL
};
static const char *const types[] = { "struct", "class", "union", "enum", NULL };
static const char *const no_variable[] = { "typedef", "using", "static_assert", "_Static_assert",
                                           "friend", NULL };
/* What such a variable has, or a block or thread has for itself, no other frame changes. */
static const char *const own[] = { "constexpr", "__constant__", "__shared__", "thread_local", NULL };

static bool has(const gp_toks *t, int from, int to, const char *const *words)
{
    for (int i = from; i < to; i++)
        if (gp_tok_among(&t->v[i], words))
            return true;
    return false;
}

/* ---- variables --------------------------------------------------------- */

static void add_var(gp_cu *c, gp_tok *name, int dims, bool same)
{
    c->var = gp_cu_room(c, c->var, c->nvars, &c->vars_cap, sizeof *c->var);
    c->var[c->nvars++] = (gp_var){ name, dims, same };
    name->variable = true;
}

/* One declarator and its initial value; where it ends: at a comma or at `to`. */
static int declarator(gp_cu *c, const gp_toks *t, int from, int to, bool konst)
{
    gp_tok *name = NULL;
    int dims = 0, i = from, first = -1;
    bool same = konst;
    for (; i < to; i++) {
        gp_tok *v = &t->v[i];
        if (gp_tok_is(v, ",") || gp_tok_is(v, "="))
            break;
        if (gp_tok_among(v, attributes) && gp_tok_is(&t->v[i + 1], "(")) {
            i = gp_tok_close(t, i + 1, to);
        } else if (gp_tok_is(v, "<")) {
            i = gp_tok_angle(t, i, to);
        } else if (gp_tok_is(v, "[")) {
            if (!gp_tok_is(&t->v[i + 1], "["))             /* no [[attribute]] */
                dims++;
            i = gp_tok_close(t, i, to);
        } else if (gp_tok_is(v, "*") || gp_tok_is(v, "&")) {
            same = false;
        } else if (gp_tok_is(v, "const")) {
            same = true;
        } else if (gp_tok_is(v, "{") || (gp_tok_is(v, "(") && name && !gp_tok_is(&t->v[i + 1], "*")
                                         && !gp_tok_is(&t->v[i + 1], "&"))) {
            first = first < 0 ? i : first;
            i = gp_tok_close(t, i, to);
        } else if (v->kind == GP_TOK_WORD && first < 0) {
            name = v;
        }
    }
    int stop = i;
    while (stop < to && !gp_tok_is(&t->v[stop], ","))
        stop = strchr("([{", *t->v[stop].p) ? gp_tok_close(t, stop, to) + 1 : stop + 1;
    if (name) {
        add_var(c, name, dims, same);
        gp_cu_def(c, (gp_def){ .name = name, .in = t, .from = i, .body = i,
                                 .to = stop < to ? stop : to, .what = GP_DEF_OTHER });
    }
    return stop;
}

void gp_cu_declare(gp_cu *c, const gp_toks *t, int from, int to)
{
    if (has(t, from, to, own) || has(t, from, to, no_variable))
        return;
    /* `const` before the first * or name is of the type, and goes for all. */
    bool konst = false;
    for (int i = from; i < to && !gp_tok_is(&t->v[i], "*") && !gp_tok_is(&t->v[i], ",")
                       && !gp_tok_is(&t->v[i], "="); i++)
        konst |= gp_tok_is(&t->v[i], "const");
    for (int i = from; i < to; )
        i = declarator(c, t, i, to, konst) + 1;
}

/* `static` in a function or a type: a variable, or a function in a type. */
static void find_statics(gp_cu *c, const gp_toks *t, int from, int to)
{
    int start = from;          /* of what i is in */
    for (int i = from; i < to; i++) {
        if (strchr(";{}:)", *t->v[i].p))
            start = i + 1;
        if (!gp_tok_is(&t->v[i], "static"))
            continue;
        int end = i;
        bool function = false;
        while (end < to && !strchr(";)]}", *t->v[end].p) && gp_cu_step(c, &t->v[i])) {
            if (strchr("([{", *t->v[end].p)) {
                bool round = gp_tok_is(&t->v[end], "(");
                bool value = round && gp_tok_among(&t->v[end - 1], attributes);
                end = gp_tok_close(t, end, to);
                const gp_tok *after = &t->v[end + 1];
                function |= round && !value && (gp_tok_is(after, "{") || gp_tok_is(after, "const"));
                if (function)
                    break;
            }
            end++;
        }
        if (!function)
            gp_cu_declare(c, t, start, end), i = end, start = end + 1;
    }
}

/* ---- what stands outside of all braces ---------------------------------- */

/* Adds a definition with the same tokens as definition `first`; without one (-1) this is it. */
static int also(gp_cu *c, int first, gp_def d)
{
    int def = gp_cu_def(c, d);
    c->def[def].text = first < 0 ? def : first;
    return c->def[def].text;
}

/* MACRO(int, calls); may declare whatever is named in its brackets. */
static bool declared_by_macro(gp_cu *c, int from, int open, int close)
{
    const gp_toks *t = &c->main;
    int m = from + 1 == open ? c->named[t->v[from].word] : -1, first = -1;   /* macros come first */
    if (m < 0 || c->def[m].what != GP_DEF_MACRO || c->def[m].body == c->def[m].from + 1)
        return false;
    for (int i = open; i < close; i++)
        if (t->v[i].kind == GP_TOK_WORD) {
            first = also(c, first, (gp_def){ .name = &t->v[i], .in = t, .from = from, .body = close,
                                             .to = close, .what = GP_DEF_OTHER });
            add_var(c, &t->v[i], 0, false);
        }
    return true;
}

/* All names that the statement [from, to) may give: `using T = S`, `typedef struct {} T`. */
static void named(gp_cu *c, int from, int to)
{
    const gp_toks *t = &c->main;
    int first = -1;
    for (int i = from; i < to; i++) {
        if (gp_tok_is(&t->v[i], "{") || gp_tok_is(&t->v[i], "("))
            i = gp_tok_close(t, i, to);
        if (t->v[i].kind == GP_TOK_WORD
            && (i + 1 >= to || gp_tok_is(&t->v[i + 1], "=") || gp_tok_is(&t->v[i + 1], "{")
                || gp_tok_is(&t->v[i + 1], ":") || gp_tok_is(&t->v[i + 1], "[")))
            first = also(c, first, (gp_def){ .name = &t->v[i], .in = t, .from = from, .body = from,
                                             .to = to, .what = GP_DEF_TYPE });
    }
}

/* One declaration from `i`; where the next one starts. */
static int declaration(gp_cu *c, int i)
{
    const gp_toks *t = &c->main;
    int from = i, n = t->n, name = -1, close = -1, type = -1;
    bool value = false;        /* an initial value follows = */
    for (; i < n; i++) {
        const gp_tok *v = &t->v[i];
        if (gp_tok_is(v, ";"))
            break;
        if (gp_tok_is(v, "<") && i > from && t->v[i - 1].kind == GP_TOK_WORD) {
            i = gp_tok_angle(t, i, n);
        } else if (gp_tok_is(v, "=") && !gp_tok_is(&t->v[i - 1], "operator")) {
            value = true;
        } else if (gp_tok_among(v, types) && !gp_tok_is(&t->v[i - 1], "<")) {
            type = i;
        } else if (gp_tok_is(v, "[")) {
            i = gp_tok_close(t, i, n);
        } else if (gp_tok_is(v, "(")) {
            int end = gp_tok_close(t, i, n);
            const gp_tok *before = &t->v[i - 1], *inside = &t->v[i + 1];
            if (i > from && !value && close < 0 && before->kind == GP_TOK_WORD
                && !gp_tok_among(before, attributes) && inside->kind != GP_TOK_NUMBER
                && inside->kind != GP_TOK_TEXT && !gp_tok_is(inside, "*")) {
                name = i - 1, close = end;
                if (declared_by_macro(c, from, i, end) && !gp_tok_is(&t->v[end + 1], "{"))
                    return end + 1 + gp_tok_is(&t->v[end + 1], ";");
            }
            i = end;
        } else if (gp_tok_is(v, "{")) {
            int end = gp_tok_close(t, i, n);
            if (close >= 0 && !value) {                    /* a function's body */
                bool global = false, any = false;
                for (int k = from; k < i; k++) {
                    global |= gp_tok_is(&t->v[k], "__global__");
                    any |= gp_tok_is(&t->v[k], "operator");
                }
                gp_cu_def(c, (gp_def){ .name = &t->v[name], .in = t, .from = from, .body = i,
                                         .to = end, .what = GP_DEF_FUNCTION, .global = global,
                                         .always = any });
                find_statics(c, t, i, end);
                return end + 1;
            }
            if (type >= from && !value)
                find_statics(c, t, i + 1, end);
            i = end;
        } else if (gp_tok_is(v, "}")) {
            return i + 1;      /* of a namespace */
        }
    }
    i = i < n ? i : n;         /* an open bracket ends at n, and i behind it */
    named(c, from, i);
    if (type >= 0) {           /* what follows the body of a type */
        int k = type;
        while (k < i && !gp_tok_is(&t->v[k], "{"))
            k++;
        if (k < i) {
            int end = gp_tok_close(t, k, i);
            if (end + 1 < i && !has(t, from, k, no_variable) && !has(t, from, k, own))
                gp_cu_declare(c, t, end + 1, i);
            return i + 1;
        }
        if (type == from && i == from + 2)                 /* struct s; */
            return i + 1;
    }
    if (close < 0 || value || gp_tok_is(&t->v[close + 1], "["))
        gp_cu_declare(c, t, from, i);
    return i + 1;
}

void gp_cu_parse(gp_cu *c)
{
    const gp_toks *t = &c->main;
    int deep = 0;
    for (int i = 0; i < t->n; i++)
        deep += gp_tok_is(&t->v[i], "{") - gp_tok_is(&t->v[i], "}");
    if (deep)
        gp_cu_odd(c, &t->v[t->n - 1], "has braces that depend on #if");
    for (int i = 0; i < t->n;) {
        const gp_tok *v = &t->v[i];
        int k = i + 1;
        if (gp_tok_is(v, ";") || gp_tok_is(v, "}")) {
            i++;
        } else if (gp_tok_is(v, "template")) {
            i = gp_tok_is(&t->v[k], "<") ? gp_tok_angle(t, k, t->n) + 1 : k;
        } else if (gp_tok_is(v, "extern") && t->v[k].kind == GP_TOK_TEXT) {
            i = k + 1 + gp_tok_is(&t->v[k + 1], "{");
        } else if (gp_tok_is(v, "namespace") || (gp_tok_is(v, "inline")
                                                 && gp_tok_is(&t->v[k], "namespace"))) {
            while (k < t->n && !gp_tok_is(&t->v[k], "{") && !gp_tok_is(&t->v[k], ";"))
                k++;
            i = k + 1;
        } else {
            i = declaration(c, i);
        }
    }
}

/* ---- what a kernel reaches ----------------------------------------------- */

/* Each definition, and each name, is gone through once. */
typedef struct reaching {
    gp_cu *c;
    int *todo, n;              /* definitions that are reached, their tokens not gone through */
    bool *named;               /* words whose definitions are all reached */
} reaching;

static void reach(reaching *r, int def)
{
    int text = r->c->def[def].text;
    if (!r->c->def[text].reached)
        r->c->def[text].reached = true, r->todo[r->n++] = text;
}

static void reach_word(reaching *r, int word)
{
    if (r->named[word])
        return;
    r->named[word] = true;
    for (int k = r->c->named[word]; k >= 0; k = r->c->def[k].next)
        if (!r->c->def[k].global)
            reach(r, k);
}

bool gp_cu_reach(gp_cu *c, const char *entry)
{
    bool found = false;
    reaching r = { .c = c, .todo = gp_shape_alloc(c->s, sizeof *r.todo * (size_t)(c->ndefs + 1)),
                   .named = gp_shape_alloc(c->s, sizeof *r.named * (size_t)c->nwords) };
    for (int i = 0; i < c->ndefs; i++) {
        bool start = !entry || (c->def[i].global && gp_tok_is(c->def[i].name, entry));
        found |= start;
        if (start || c->def[i].always)
            reach(&r, i);
    }
    while (r.n) {
        const gp_def *d = &c->def[r.todo[--r.n]];
        for (int i = d->from; i < d->to; i++)
            if (d->in->v[i].kind == GP_TOK_WORD)
                reach_word(&r, d->in->v[i].word);
    }
    return found;
}
