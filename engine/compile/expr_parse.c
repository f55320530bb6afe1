/* expr_parse.c - the text of an expression becomes a tree, see expr.h. Recursive descent. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "compile/expr.h"

enum { NAME = 64, FEW = 16 };

struct parser {
    gp_arena *arena;
    const gp_node *scalar;
    const char *s;                     /* what is left to read */
    gp_errs *errs;
    gp_expr_node *node; int n, cap;
    int depth, rounding;               /* how deep, and how deep in ceil, floor */
    bool named;                        /* see gp_expr */
};

/* ---- units ----------------------------------------------------------- */

static const gp_unit units[] = {
    { "ns", true, 1 }, { "us", true, 1000 }, { "ms", true, 1000000 },
    { "s", true, 1000000000 }, { "min", true, 60000000000 }, { "h", true, 3600000000000 },
    { "B", false, 1 }, { "KB", false, 1000 }, { "MB", false, 1000000 },
    { "GB", false, 1000000000 }, { "KiB", false, 1 << 10 }, { "MiB", false, 1 << 20 },
    { "GiB", false, 1 << 30 }, { "TiB", false, (int64_t)1 << 40 },
    { "Hz", false, 1 }, { "kHz", false, 1000 }, { "MHz", false, 1000000 },
    { "GHz", false, 1000000000 },
};
enum { NUNITS = sizeof units / sizeof *units };

/* ---- errors ---------------------------------------------------------- */

/* An error at `at`, `bytes` long. */
#define FAIL(p, at, bytes, ...)                                              \
    ((p)->errs && gp_fail((p)->errs, GP_E_SPEC, gp_node_part((p)->scalar,    \
                          (size_t)((at) - (p)->scalar->text), (bytes)), __VA_ARGS__))

static char peek(struct parser *p)
{
    while (*p->s && strchr(" \t\n", *p->s))
        p->s++;
    return *p->s;
}

static size_t name_len(const char *s)
{
    size_t n = 0;
    while (isalnum((unsigned char)s[n]) || s[n] == '_')
        n++;
    return n;
}

static bool unexpected(struct parser *p, const char *wanted)
{
    char c = peek(p);
    if (c == '$' && p->s[1] == '{') {
        const char *from = p->s + 2;
        size_t n = strcspn(from, ":}");
        return FAIL(p, p->s, n + 3, "'${' is for text; in an expression write the bare name: "
                    "'%.*s'", (int)n, from);
    }
    if (c == '$' && name_len(p->s + 1))
        return FAIL(p, p->s, name_len(p->s + 1) + 1, "write the bare name: '%.*s'", (int)name_len(p->s + 1), p->s + 1);
    if (!c)
        return FAIL(p, p->s, 1, "expected %s at the end", wanted);
    bool list = c == ',' || (isdigit((unsigned char)c) && p->s > p->scalar->text && p->s[-1] == ' ');
    return FAIL(p, p->s, 1, "expected %s, not '%c'%s", wanted, c, list ? "; a list is written [1, 2]" : "");
}

static bool want(struct parser *p, char c, const char *as)
{
    if (peek(p) != c)
        return unexpected(p, as);
    p->s++;
    return true;
}

/* ---- nodes ----------------------------------------------------------- */

static gp_expr_node *put(struct parser *p, gp_expr_op op, const char *at, size_t len)
{
    gp_expr_node *n = GP_PUSH(p->arena, p->node, p->n, p->cap);
    *n = (gp_expr_node){ .op = op, .from = (size_t)(at - p->scalar->text), .len = len };
    return n;
}

static bool sum(struct parser *p);

/* The unit `name` of a number. */
static bool unit(struct parser *p, const char *name, size_t len, const gp_unit **out)
{
    char word[NAME] = "";
    if (len < NAME)
        memcpy(word, name, len);
    gp_near near = GP_NEAR(word);
    for (int i = 0; i < NUNITS; i++) {
        if (!strcmp(units[i].name, word)) {
            *out = &units[i];
            return p->named = true;
        }
        gp_near_try(&near, units[i].name);
    }
    return FAIL(p, name, len, "no unit '%.*s'%s", (int)len, name, gp_near_text(&near));
}

/* Digits, with a fraction, an exponent and a unit if there are. A fraction of a
 * unit that is a whole number (1.5ms) is an integer. */
static bool number(struct parser *p)
{
    const char *from = p->s, *s = from;
    const gp_unit *u = NULL;
    int64_t digits = 0, scale = 1, i;
    bool exact = true, is_float = false;
    for (; isdigit((unsigned char)*s) || (*s == '.' && !is_float); s++) {
        if (*s == '.') {
            is_float = true;
            continue;
        }
        if (__builtin_mul_overflow(digits, 10, &digits)
            || __builtin_add_overflow(digits, *s - '0', &digits)
            || (is_float && __builtin_mul_overflow(scale, 10, &scale)))
            exact = false;
    }
    if ((*s == 'e' || *s == 'E')
        && isdigit((unsigned char)s[1 + (s[1] == '-' || s[1] == '+')])) {
        for (s += 2; isdigit((unsigned char)*s); s++)
            ;
        is_float = true, exact = false;
    }
    size_t unit_len = name_len(s), len = (size_t)(s - from);
    p->s = s + unit_len;
    if (unit_len && !unit(p, s, unit_len, &u))
        return false;
    int64_t factor = u ? u->factor : 1;
    gp_expr_node *n = put(p, GP_EXPR_NUMBER, from, len + unit_len);
    n->unit = u;
    if (exact && (!is_float || u) && !__builtin_mul_overflow(digits, factor, &i)
        && i % scale == 0) {
        n->value = (gp_num){ true, i / scale, (double)(i / scale) };
        return true;
    }
    n->value.f = strtod(from, NULL) * (double)factor;
    if (!is_float)
        return FAIL(p, from, len, "the number does not fit in 64 bits");
    return isfinite(n->value.f) || FAIL(p, from, len, "the number is too large");
}

/* ceil(a), floor(a), min(a, b, ...), max(a, b, ...); p->s is at the '('. */
static bool call(struct parser *p, const char *at, size_t len, const char *name)
{
    static const struct { const char *name; gp_expr_op op; bool rounds; } functions[] = {
        { "ceil", GP_EXPR_CEIL, true }, { "floor", GP_EXPR_FLOOR, true },
        { "min", GP_EXPR_MIN, false }, { "max", GP_EXPR_MAX, false },
    };
    enum { NONE = sizeof functions / sizeof *functions };
    int f = 0;
    gp_near near = GP_NEAR(name);
    for (; f < NONE && strcmp(functions[f].name, name); f++)
        gp_near_try(&near, functions[f].name);
    if (f == NONE)
        return FAIL(p, at, len, "no function '%s'%s", name, gp_near_text(&near));
    bool rounds = functions[f].rounds;
    p->s++;
    p->rounding += rounds;
    if (!sum(p))
        return false;
    while (!rounds && peek(p) == ',') {
        p->s++;
        if (!sum(p))
            return false;
        put(p, functions[f].op, at, len);
    }
    p->rounding -= rounds;
    if (rounds)
        put(p, functions[f].op, at, len);
    return want(p, ')', rounds ? "')'" : "',' or ')'");
}

/* PORT.shape[k], PORT.size; p->s is at the '.'. */
static bool port(struct parser *p, const char *at, const char *name)
{
    int k = -1;
    const char *what = ++p->s;
    size_t what_len = name_len(what);
    p->s += what_len;
    if (what_len == 5 && !strncmp(what, "shape", 5)) {
        if (!want(p, '[', "'[' and the number of an axis"))
            return false;
        if (!isdigit((unsigned char)peek(p)))
            return unexpected(p, "the number of an axis, counted from 0");
        char *end;
        unsigned long axis = strtoul(p->s, &end, 10);
        p->s = end;
        k = axis < 1000 ? (int)axis : 1000;
        if (!want(p, ']', "']'"))
            return false;
    } else if (what_len != 4 || strncmp(what, "size", 4)) {
        return FAIL(p, what, what_len, "a port has '%s.shape[k]' and '%s.size', no '%.*s'", name,
                    name, (int)what_len, what);
    }
    gp_expr_node *n = put(p, GP_EXPR_PORT, at, (size_t)(p->s - at));
    n->name = name, n->axis = k;
    return true;
}

static bool name(struct parser *p)
{
    const char *at = p->s;
    size_t len = name_len(at);
    p->s += len;
    p->named = true;
    if (len >= NAME)
        return FAIL(p, at, len, "a name in an expression has at most %d letters", NAME - 1);
    const char *word = gp_strndup(p->arena, at, len);
    if (*p->s == '.')
        return port(p, at, word);
    if (peek(p) == '(')
        return call(p, at, len, word);
    put(p, GP_EXPR_VAR, at, len)->name = word;
    return true;
}

static bool atom(struct parser *p)
{
    char c = peek(p);
    const char *at = p->s;
    if (p->depth > GP_EXPR_DEEPEST)
        return FAIL(p, at, 1, "nested more than %d deep", GP_EXPR_DEEPEST);
    p->depth++;
    bool ok;
    if (c == '-' || c == '+') {
        p->s++;
        ok = atom(p);
        if (ok && c == '-')
            put(p, GP_EXPR_NEGATE, at, 1);
    } else if (c == '(') {
        p->s++;
        ok = sum(p) && want(p, ')', "')'");
    } else if (isdigit((unsigned char)c) || (c == '.' && isdigit((unsigned char)p->s[1]))) {
        ok = number(p);
    } else if (isalpha((unsigned char)c) || c == '_') {
        ok = name(p);
    } else {
        ok = unexpected(p, "a number or a name");
    }
    p->depth--;
    return ok;
}

static bool product(struct parser *p)
{
    if (!atom(p))
        return false;
    while (peek(p) && strchr("*/%", *p->s)) {
        const char *at = p->s++;
        if (!atom(p))
            return false;
        put(p, *at == '*' ? GP_EXPR_MULTIPLY : *at == '%' ? GP_EXPR_REMAINDER
            : p->rounding ? GP_EXPR_QUOTIENT : GP_EXPR_DIVIDE, at, 1);
    }
    return true;
}

static bool sum(struct parser *p)
{
    if (!product(p))
        return false;
    while (peek(p) == '+' || *p->s == '-') {
        const char *at = p->s++;
        if (!product(p))
            return false;
        put(p, *at == '+' ? GP_EXPR_ADD : GP_EXPR_SUBTRACT, at, 1);
    }
    return true;
}

const gp_expr *gp_expr_parse(gp_arena *a, const gp_node *scalar, gp_errs *errs)
{
    gp_expr_node few[FEW];             /* most have no more, and take no more memory */
    struct parser p = { .arena = a, .scalar = scalar, .s = scalar->text, .errs = errs,
                        .node = few, .cap = FEW };
    if (!sum(&p) || (peek(&p) && !unexpected(&p, "an operator or the end")))
        return NULL;
    size_t bytes = sizeof *p.node * (size_t)p.n;
    gp_expr *e = gp_alloc(a, sizeof *e + bytes);
    e->text = scalar->text, e->named = p.named, e->n = p.n;
    memcpy(e->node, p.node, bytes);
    return e;
}

const gp_expr *gp_expr_keep(gp_arena *a, const gp_node *scalar)
{
    if (!gp_expr_kept(scalar))
        ((gp_node *)scalar)->expr = gp_expr_parse(a, scalar, NULL);
    return scalar->expr;
}
