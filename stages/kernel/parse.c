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

static void add_var(gp_cu *c, const gp_tok *name, int dims, bool same)
{
    if (c->nvars == c->vars_cap) {
        gp_var *more = gp_shape_alloc(c->s, sizeof *more * (size_t)(c->vars_cap = 2 * c->vars_cap + 16));
        if (c->nvars)
            memcpy(more, c->var, sizeof *more * (size_t)c->nvars);
        c->var = more;
    }
    c->var[c->nvars++] = (gp_var){ name, dims, same };
}

/* The > that closes the < at i, where it is a list of template arguments; else i. */
static int angle(const gp_toks *t, int i, int to)
{
    for (int deep = 0, k = i; k < to; k++) {
        const gp_tok *v = &t->v[k];
        deep += gp_tok_is(v, "<") ? 1 : gp_tok_is(v, ">") ? -1 : gp_tok_is(v, ">>") ? -2 : 0;
        if (gp_tok_is(v, ";") || gp_tok_is(v, "{") || gp_tok_is(v, "="))
            return i;
        if (deep <= 0)
            return k;
    }
    return i;
}

/* One declarator and its initial value; where it ends: at a comma or at `to`. */
static int declarator(gp_cu *c, const gp_toks *t, int from, int to, bool konst)
{
    const gp_tok *name = NULL;
    int dims = 0, i = from, first = -1;
    bool same = konst;
    for (; i < to; i++) {
        const gp_tok *v = &t->v[i];
        if (gp_tok_is(v, ",") || gp_tok_is(v, "="))
            break;
        if (gp_tok_among(v, attributes) && gp_tok_is(&t->v[i + 1], "(")) {
            i = gp_tok_close(t, i + 1, to);
        } else if (gp_tok_is(v, "<")) {
            i = angle(t, i, to);
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
    for (int i = from; i < to; i++) {
        if (!gp_tok_is(&t->v[i], "static"))
            continue;
        int end = i, start = i;
        while (start > from && !strchr(";{}:)", *t->v[start - 1].p))
            start--;
        bool function = false;
        while (end < to && !gp_tok_is(&t->v[end], ";")) {
            if (gp_tok_is(&t->v[end], "{") || gp_tok_is(&t->v[end], "(")) {
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
            gp_cu_declare(c, t, start, end);
        i = function ? i : end;
    }
}

/* ---- what stands outside of all braces ---------------------------------- */

static const gp_def *macro_of(const gp_cu *c, const gp_tok *name)
{
    for (int i = 0; i < c->ndefs; i++)
        if (c->def[i].what == GP_DEF_MACRO && gp_tok_same(c->def[i].name, name))
            return &c->def[i];
    return NULL;
}

/* MACRO(int, calls); may declare whatever is named in its brackets. */
static bool declared_by_macro(gp_cu *c, int from, int open, int close)
{
    const gp_toks *t = &c->main;
    const gp_def *m = from + 1 == open ? macro_of(c, &t->v[from]) : NULL;
    if (!m || m->body == m->from + 1)
        return false;
    for (int i = open; i < close; i++)
        if (t->v[i].kind == GP_TOK_WORD) {
            gp_cu_def(c, (gp_def){ .name = &t->v[i], .in = t, .from = from, .body = close,
                                     .to = close, .what = GP_DEF_OTHER });
            add_var(c, &t->v[i], 0, false);
        }
    return true;
}

/* All names that the statement [from, to) may give: `using T = S`, `typedef struct {} T`. */
static void named(gp_cu *c, int from, int to)
{
    const gp_toks *t = &c->main;
    for (int i = from; i < to; i++) {
        if (gp_tok_is(&t->v[i], "{") || gp_tok_is(&t->v[i], "("))
            i = gp_tok_close(t, i, to);
        if (t->v[i].kind == GP_TOK_WORD
            && (i + 1 >= to || gp_tok_is(&t->v[i + 1], "=") || gp_tok_is(&t->v[i + 1], "{")
                || gp_tok_is(&t->v[i + 1], ":") || gp_tok_is(&t->v[i + 1], "[")))
            gp_cu_def(c, (gp_def){ .name = &t->v[i], .in = t, .from = from, .body = from,
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
            i = angle(t, i, n);
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
                                         .reached = any });
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
            i = gp_tok_is(&t->v[k], "<") ? angle(t, k, t->n) + 1 : k;
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

static void reach(gp_cu *c, const gp_def *d)
{
    for (int i = d->from; i < d->to; i++) {
        const gp_tok *v = &d->in->v[i];
        if (v->kind != GP_TOK_WORD)
            continue;
        for (int k = 0; k < c->ndefs; k++)
            if (!c->def[k].reached && !c->def[k].global && gp_tok_same(c->def[k].name, v)) {
                c->def[k].reached = true;
                reach(c, &c->def[k]);
            }
    }
}

bool gp_cu_reach(gp_cu *c, const char *entry)
{
    bool found = false;
    int n = c->ndefs;
    for (int i = 0; i < n; i++)
        if (c->def[i].reached || (c->def[i].global && gp_tok_is(c->def[i].name, entry))) {
            found |= c->def[i].global;
            c->def[i].reached = true;
            reach(c, &c->def[i]);
        }
    return found;
}
