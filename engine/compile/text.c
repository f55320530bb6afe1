/* text.c - ${} in texts: the vars, the environment and the date, see resolve.h.
 *
 * A var's value may hold ${} again. Depth, length and the number of values
 * looked up are bounded, so that no pipeline takes long to be refused. */
#include <string.h>
#include "compile/inside.h"
#include "compile/resolve.h"

enum { DEEPEST = 16, LONGEST = 1 << 20, MOST = 10000 };

int64_t gp_own_var(const gp_env *env, int i, const char **name)
{
    static const char *const names[GP_OWN_VARS] = { "rank", "ranks", "local_rank" };
    *name = names[i];
    return i == 1 ? (env && env->ranks > 1 ? env->ranks : 1) : !env ? 0 : i ? env->local_rank : env->rank;
}

struct text {
    gp_arena *arena;
    const gp_node *node, *vars;        /* the node that errors point at */
    const gp_inside *inside;           /* of the text that is looked at */
    const gp_env *env;
    gp_errs *errs;
    char *out;
    int n, cap;
    int depth, looked_up;
};

static bool put(struct text *t, const char *s, size_t n)
{
    if (n > (size_t)(LONGEST - t->n))
        return gp_fail(t->errs, GP_E_SPEC, t->node->at, "the text is longer than %d bytes",
                       LONGEST);
    for (size_t i = 0; i < n; i++)
        *GP_PUSH(t->arena, t->out, t->n, t->cap) = s[i];
    return true;
}

/* The '}' that ends the ${ before s, over nested ones; NULL: none. */
static const char *closing(const char *s, const char *end)
{
    for (int open = 1; s < end; s++) {
        if (s[0] == '$' && s + 1 < end && (s[1] == '{' || s[1] == '$'))
            open += *++s == '{';
        else if (*s == '}' && !--open)
            return s;
    }
    return NULL;
}

static bool expand(struct text *t, const char *from, const char *end, gp_loc at);

/* Puts the date in [format, end), which `at` is the place of; `own`: as part of the node's
 * text. What depends on more than the date itself is refused. */
static bool put_date(struct text *t, const char *format, const char *end, bool is_own, gp_loc at)
{
    static const char known[] = "aAbBcCdDeFgGhHIjmMNpPrRSTuUVwWxXyYzZ%";
    const struct tm *date = t->env ? t->env->date : NULL;
    if (format == end)
        return gp_fail(t->errs, GP_E_SPEC, at, "'${date:}' names nothing; write "
                       "${date:%%Y%%m%%d-%%H%%M%%S}");
    if (!date)
        return gp_fail(t->errs, GP_E_SPEC, at, "no date is known here");
    for (const char *p = format; p < end;) {
        char conversion[3] = { p[0], p[1], 0 }, made[128];
        if (*p != '%') {
            if (!put(t, p++, 1))
                return false;
            continue;
        }
        size_t n = p + 1 < end ? 2 : 1;
        if (n < 2 || !strchr(known, p[1]))
            return gp_fail(t->errs, GP_E_SPEC, is_own ? gp_node_part(t->node, (size_t)(p - t->node->text), n)
                                                      : at,
                           "'%.*s' is not a part of a date, as in ${date:%%Y%%m%%d-%%H%%M%%S}", (int)n, p);
        size_t len = p[1] == 'N' ? (size_t)snprintf(made, sizeof made, "%09d", t->env->nanoseconds)
                                 : strftime(made, sizeof made, conversion, date);
        if (!put(t, made, len))
            return false;
        p += n;
    }
    return true;
}

/* What stands in ${}: [name, name_end), and the default [def, end) if def. */
static bool look_up(struct text *t, const char *name, const char *name_end, const char *def,
                    const char *end, gp_loc at)
{
    const char *word = gp_strndup(t->arena, name, (size_t)(name_end - name));
    if (++t->looked_up > MOST)
        return gp_fail(t->errs, GP_E_SPEC, at, "more than %d values in one text", MOST);
    if (!strncmp(word, "env:", 4)) {
        const char *value = t->env && t->env->get ? t->env->get(t->env->arg, word + 4) : NULL;
        if (value && (*value || !def))
            return put(t, value, strlen(value));
        return def ? expand(t, def, end, at)
            : gp_fail(t->errs, GP_E_SPEC, at, "the environment has no '%s'; set it, or give a "
                      "default: ${%s:-...}", word + 4, word);
    }
    const char *full = gp_inside_name(t->inside, word);
    const gp_node *v = full ? gp_node_get(t->vars, full) : NULL;
    for (int i = 0; !v && i < GP_OWN_VARS; i++) {
        const char *own, *value = gp_format(t->arena, "%lld", (long long)gp_own_var(t->env, i, &own));
        if (!strcmp(own, word))
            return put(t, value, strlen(value));
    }
    if (def && (!v || (v->kind == GP_SCALAR && (!v->len || gp_is_null(v)))))
        return expand(t, def, end, at);
    if (!v) {
        gp_near near = GP_NEAR(word);
        bool search = t->errs->n < GP_ERRS_MAX && t->vars && t->vars->kind == GP_MAP;
        gp_inside_near(t->inside, &near);
        for (int i = 0; search && i < t->vars->n; i++)
            gp_near_try(&near, t->vars->key[i]->text);
        return gp_fail(t->errs, GP_E_SPEC, at, "no variable '%s' under 'vars'%s", word,
                       gp_near_text(&near));
    }
    if (gp_is_null(v))
        return gp_fail(t->errs, GP_E_SPEC, at, "'%s' has no value; give one with --set vars.%s=...",
                       word, word);
    if (v->kind != GP_SCALAR)
        return gp_fail(t->errs, GP_E_SPEC, at, "'%s' is a %s; only a single value fits in text",
                       word, v->kind == GP_LIST ? "list" : "map");
    const gp_inside *was = t->inside;
    t->inside = v->inside;
    bool ok = expand(t, v->text, v->text + v->len, at);
    t->inside = was;
    return ok;
}

/* Appends [from, end) to t->out. `at`: where errors point, unless [from, end)
 * is part of the node's own text. */
static bool expand(struct text *t, const char *from, const char *end, gp_loc at)
{
    const char *own = t->node->text;
    bool is_own = from >= own && from <= own + t->node->len;
    if (t->depth == DEEPEST)
        return gp_fail(t->errs, GP_E_SPEC, at, "the value refers to itself, or is nested more than "
                       "%d deep", DEEPEST);
    t->depth++;
    for (const char *s = from; s < end;) {
        const char *dollar = memchr(s, '$', (size_t)(end - s));
        if (!put(t, s, (size_t)((dollar ? dollar : end) - s)))
            return false;
        if (!dollar)
            break;
        char c = dollar + 1 < end ? dollar[1] : 0;
        s = dollar + (c == '$' ? 2 : 1);
        if (c != '{') {
            if (!put(t, "$", 1))
                return false;
            continue;
        }
        const char *name = ++s, *close = closing(name, end), *colon;
        if (is_own)
            at = gp_node_part(t->node, (size_t)(dollar - own),
                              (size_t)((close ? close + 1 : end) - dollar));
        if (!close)
            return gp_fail(t->errs, GP_E_SPEC, at, "'${' has no '}'; write '$${' for the "
                           "characters themselves");
        if (!strncmp(name, "date:", 5) && name[5] != '-') {
            if (!put_date(t, name + 5, close, is_own, at))
                return false;
            s = close + 1;
            continue;
        }
        size_t prefix = strncmp(name, "env:", 4) ? 0 : 4;
        const char *def = NULL, *name_end = close;
        if ((colon = memchr(name + prefix, ':', (size_t)(close - name) - prefix))) {
            if (colon[1] != '-')
                return gp_fail(t->errs, GP_E_SPEC, at, "'%.*s' is not understood; a default is "
                               "written ${name:-default}", (int)(close + 1 - dollar), dollar);
            def = colon + 2, name_end = colon;
        }
        if (name_end == name + prefix)
            return gp_fail(t->errs, GP_E_SPEC, at, "'${}' names nothing; write ${name}");
        if (!look_up(t, name, name_end, def, close, at))
            return false;
        s = close + 1;
    }
    t->depth--;
    return true;
}

bool gp_interpolate(gp_arena *a, const gp_node *n, const gp_node *vars, const gp_env *env,
                    const char **out, gp_errs *errs)
{
    struct text t = { .arena = a, .node = n, .vars = vars, .inside = n->inside, .env = env, .errs = errs };
    if (n->kind != GP_SCALAR)
        return gp_fail(errs, GP_E_SPEC, n->at, "expected text, not a %s",
                       n->kind == GP_LIST ? "list" : "map");
    *out = n->text;
    if (!strchr(n->text, '$'))
        return true;
    if (!expand(&t, n->text, n->text + n->len, n->at))
        return false;
    *GP_PUSH(a, t.out, t.n, t.cap) = 0;
    *out = t.out;
    return true;
}
