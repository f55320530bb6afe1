/* expr.c - arithmetic in YAML scalars, see node.h.
 *
 * Recursive descent, evaluated while it is read. A value is an exact quotient
 * of 64-bit integers, or a double; a quotient that is not an integer exists only
 * inside ceil() and floor(). One double makes the result a double. Nothing
 * overflows unnoticed. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "gpipe/node.h"

enum { DEEPEST = 64, NAME = 64 };

struct val {
    bool exact;
    int64_t num, den;                  /* exact: lowest terms, den > 0 */
    double f;                          /* otherwise */
};

struct expr {
    const gp_node *node;
    const char *s;                     /* what is left to read */
    const gp_scope *scope;
    gp_errs *errs;
    int depth, rounding;               /* how deep, and how deep in ceil, floor */
    bool time;                         /* the result must be a time */
    bool unit;                         /* a name or a unit has been seen */
};

/* ---- units ----------------------------------------------------------- */

static const struct { const char *name; bool time; int64_t factor; } units[] = {
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

/* An error at `from`, `len` bytes long. */
#define FAIL(x, from, len, ...)                                              \
    gp_fail((x)->errs, GP_E_SPEC,                                            \
            gp_node_part((x)->node, (size_t)((from) - (x)->node->text), (len)), __VA_ARGS__)

static bool too_large(struct expr *x, const char *at)
{
    return FAIL(x, at, 1, "the result does not fit in 64 bits");
}

/* ---- arithmetic ------------------------------------------------------ */

static double as_double(struct val v)
{
    return v.exact ? (double)v.num / (double)v.den : v.f;
}

static int64_t gcd(int64_t a, int64_t b)
{
    while (b) {
        int64_t r = a % b;
        a = b, b = r;
    }
    return a < 0 ? -a : a;
}

/* num / den in lowest terms; false on overflow. den is not 0. */
static bool quotient(int64_t num, int64_t den, struct val *out)
{
    if (num == INT64_MIN || den == INT64_MIN) {
        if (den != 1)                  /* the only case that can be represented */
            return false;
        *out = (struct val){ true, num, 1, 0 };
        return true;
    }
    int64_t g = gcd(num, den);
    if (den < 0)
        g = -g;
    *out = (struct val){ true, num / g, den / g, 0 };
    return true;
}

static bool exact_op(char op, struct val a, struct val b, struct val *out)
{
    int64_t n, m, d;
    switch (op) {
    case '*':
        return !__builtin_mul_overflow(a.num, b.num, &n)
            && !__builtin_mul_overflow(a.den, b.den, &d) && quotient(n, d, out);
    case '/':
        return !__builtin_mul_overflow(a.num, b.den, &n)
            && !__builtin_mul_overflow(a.den, b.num, &d) && quotient(n, d, out);
    default:
        return !__builtin_mul_overflow(a.num, b.den, &n)
            && !__builtin_mul_overflow(b.num, a.den, &m)
            && !(op == '+' ? __builtin_add_overflow(n, m, &n) : __builtin_sub_overflow(n, m, &n))
            && !__builtin_mul_overflow(a.den, b.den, &d) && quotient(n, d, out);
    }
}

static bool is_int(struct val v)
{
    return v.exact && v.den == 1;
}

/* a op b; `at` is the operator. */
static bool apply(struct expr *x, const char *at, struct val a, struct val b, struct val *out)
{
    char op = *at;
    if ((op == '/' || op == '%') && as_double(b) == 0)
        return FAIL(x, at, 1, "division by zero");
    if (op == '%') {
        if (!is_int(a) || !is_int(b))
            return FAIL(x, at, 1, "'%%' is for integers");
        *out = (struct val){ true, b.num == -1 ? 0 : a.num % b.num, 1, 0 };
        return true;
    }
    if (!a.exact || !b.exact) {
        double u = as_double(a), v = as_double(b);
        out->exact = false;
        out->f = op == '+' ? u + v : op == '-' ? u - v : op == '*' ? u * v : u / v;
        return isfinite(out->f) || FAIL(x, at, 1, "the result is not a finite number");
    }
    if (!exact_op(op, a, b, out))
        return too_large(x, at);
    if (out->den != 1 && !x->rounding)
        return FAIL(x, at, 1, "%" PRId64 " / %" PRId64 " leaves a remainder; write ceil(a / b) "
                    "or floor(a / b), or %" PRId64 ".0 for a fraction", a.num, b.num, a.num);
    return true;
}

/* ceil (up) or floor. */
static bool round_to_int(struct expr *x, const char *at, bool up, struct val *v)
{
    if (v->exact) {
        int64_t q = v->num / v->den, r = v->num % v->den;
        *v = (struct val){ true, q + (up ? r > 0 : -(r < 0)), 1, 0 };
        return true;
    }
    double f = up ? ceil(v->f) : floor(v->f);
    if (!(fabs(f) < 9.2e18))
        return too_large(x, at);
    *v = (struct val){ true, (int64_t)f, 1, 0 };
    return true;
}

/* ---- reading --------------------------------------------------------- */

static bool sum(struct expr *x, struct val *out);

static char peek(struct expr *x)
{
    while (*x->s && strchr(" \t\n", *x->s))
        x->s++;
    return *x->s;
}

static size_t name_len(const char *s)
{
    size_t n = 0;
    while (isalnum((unsigned char)s[n]) || s[n] == '_')
        n++;
    return n;
}

static bool unexpected(struct expr *x, const char *wanted)
{
    char c = peek(x);
    if (c == '$' && x->s[1] == '{') {
        const char *from = x->s + 2;
        size_t n = strcspn(from, ":}");
        return FAIL(x, x->s, n + 3, "'${' is for text; in an expression write the bare name: "
                    "'%.*s'", (int)n, from);
    }
    if (!c)
        return FAIL(x, x->s, 1, "expected %s at the end", wanted);
    return FAIL(x, x->s, 1, "expected %s, not '%c'", wanted, c);
}

static bool want(struct expr *x, char c, const char *as)
{
    if (peek(x) != c)
        return unexpected(x, as);
    x->s++;
    return true;
}

/* The unit `name` of a number. */
static bool unit(struct expr *x, const char *name, size_t len, int64_t *factor)
{
    char word[NAME] = "";
    if (len < NAME)
        memcpy(word, name, len);
    gp_near near = GP_NEAR(word);
    for (int i = 0; i < NUNITS; i++) {
        if (!strcmp(units[i].name, word)) {
            x->unit = true;
            *factor = units[i].factor;
            return !x->time || units[i].time
                || FAIL(x, name, len, "'%s' is not a unit of time; use ns, us, ms, s, min or h",
                        word);
        }
        gp_near_try(&near, units[i].name);
    }
    return FAIL(x, name, len, "no unit '%.*s'%s", (int)len, name, gp_near_text(&near));
}

/* Digits, with a fraction, an exponent and a unit if there are. A fraction of a
 * unit that is a whole number (1.5ms) is an integer. */
static bool number(struct expr *x, struct val *out)
{
    const char *from = x->s, *s = from;
    int64_t digits = 0, scale = 1, factor = 1, n;
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
    size_t unit_len = name_len(s);
    x->s = s + unit_len;
    if (unit_len && !unit(x, s, unit_len, &factor))
        return false;
    if (exact && (!is_float || unit_len) && !__builtin_mul_overflow(digits, factor, &n)
        && n % scale == 0) {
        *out = (struct val){ true, n / scale, 1, 0 };
        return true;
    }
    *out = (struct val){ .f = strtod(from, NULL) * (double)factor };
    if (!is_float)
        return FAIL(x, from, (size_t)(s - from), "the number does not fit in 64 bits");
    return isfinite(out->f) || FAIL(x, from, (size_t)(s - from), "the number is too large");
}

/* ceil(a), floor(a), min(a, b, ...), max(a, b, ...); x->s is at the '('. */
static bool call(struct expr *x, const char *name, size_t len, const char *word, struct val *out)
{
    static const char *const functions[] = { "ceil", "floor", "min", "max" };
    enum { CEIL, FLOOR, MIN, MAX, NONE } f = 0;
    gp_near near = GP_NEAR(word);
    for (; f < NONE && strcmp(functions[f], word); f++)
        gp_near_try(&near, functions[f]);
    if (f == NONE)
        return FAIL(x, name, len, "no function '%s'%s", word, gp_near_text(&near));
    bool rounds = f == CEIL || f == FLOOR;
    x->s++;
    x->rounding += rounds;
    bool ok = sum(x, out);
    while (ok && !rounds && peek(x) == ',') {
        struct val b;
        x->s++;
        if (!(ok = sum(x, &b)))
            break;
        bool mixed = out->exact != b.exact;
        if (as_double(b) == as_double(*out) ? !mixed && out->exact && out->den == b.den
                && (f == MIN ? b.num < out->num : b.num > out->num)
            : f == MIN ? as_double(b) < as_double(*out) : as_double(b) > as_double(*out))
            *out = b;
        if (mixed)
            *out = (struct val){ .f = as_double(*out) };
    }
    x->rounding -= rounds;
    return ok && want(x, ')', rounds ? "')'" : "',' or ')'")
        && (!rounds || round_to_int(x, name, f == CEIL, out));
}

static bool from_num(gp_num n, struct val *out)
{
    *out = n.is_int ? (struct val){ true, n.i, 1, 0 } : (struct val){ .f = n.f };
    return true;
}

/* PORT.shape[k], PORT.size; x->s is at the '.'. */
static bool port(struct expr *x, const char *name, const char *word, struct val *out)
{
    const gp_scope *sc = x->scope;
    gp_num n;
    int k = -1;
    const char *what = ++x->s;
    size_t what_len = name_len(what);
    x->s += what_len;
    if (what_len == 5 && !strncmp(what, "shape", 5)) {
        if (!want(x, '[', "'[' and the number of an axis"))
            return false;
        if (!isdigit((unsigned char)peek(x)))
            return unexpected(x, "the number of an axis, counted from 0");
        char *end;
        unsigned long axis = strtoul(x->s, &end, 10);
        x->s = end;
        k = axis < 1000 ? (int)axis : 1000;
        if (!want(x, ']', "']'"))
            return false;
    } else if (what_len != 4 || strncmp(what, "size", 4)) {
        return FAIL(x, what, what_len, "a port has '%s.shape[k]' and '%s.size', no '%.*s'", word,
                    word, (int)what_len, what);
    }
    size_t all = (size_t)(x->s - name);
    if (sc && sc->port && sc->port(sc, word, k, &n))
        return from_num(n, out);
    if (k >= 0 && sc && sc->port && sc->port(sc, word, -1, &n))
        return FAIL(x, name, all, "'%s' has no axis %d; axes count from 0", word, k);
    gp_near near = GP_NEAR(word);
    if (sc && sc->each && x->errs->n < GP_ERRS_MAX)
        sc->each(sc, &near);
    return FAIL(x, name, all, sc && sc->port ? "no port '%s' of this stage with a known shape%s"
                : "'%s' is not a port: shapes are not known here%s", word,
                gp_near_text(&near));
}

static bool name(struct expr *x, struct val *out)
{
    const gp_scope *sc = x->scope;
    const char *from = x->s;
    size_t len = name_len(from);
    char word[NAME] = "";
    gp_num n;
    x->s += len;
    x->unit = true;
    if (len >= NAME)
        return FAIL(x, from, len, "a name in an expression has at most %d letters", NAME - 1);
    memcpy(word, from, len);
    if (*x->s == '.')
        return port(x, from, word, out);
    if (peek(x) == '(')
        return call(x, from, len, word, out);
    if (sc && sc->var && sc->var(sc, word, &n))
        return from_num(n, out);
    gp_near near = GP_NEAR(word);
    if (sc && sc->each && x->errs->n < GP_ERRS_MAX)
        sc->each(sc, &near);
    return FAIL(x, from, len, "'%s' is neither a number nor a variable that is a number%s", word,
                gp_near_text(&near));
}

static bool atom(struct expr *x, struct val *out)
{
    char c = peek(x);
    const char *at = x->s;
    if (x->depth > DEEPEST)
        return FAIL(x, at, 1, "nested more than %d deep", DEEPEST);
    x->depth++;
    bool ok;
    if (c == '-' || c == '+') {
        x->s++;
        ok = atom(x, out);
        if (ok && c == '-')
            ok = apply(x, at, (struct val){ out->exact, 0, 1, 0 }, *out, out);
    } else if (c == '(') {
        x->s++;
        ok = sum(x, out) && want(x, ')', "')'");
    } else if (isdigit((unsigned char)c) || (c == '.' && isdigit((unsigned char)x->s[1]))) {
        ok = number(x, out);
    } else if (isalpha((unsigned char)c) || c == '_') {
        ok = name(x, out);
    } else {
        ok = unexpected(x, "a number or a name");
    }
    x->depth--;
    return ok;
}

static bool product(struct expr *x, struct val *out)
{
    if (!atom(x, out))
        return false;
    while (peek(x) && strchr("*/%", *x->s)) {
        const char *at = x->s++;
        struct val b;
        if (!atom(x, &b) || !apply(x, at, *out, b, out))
            return false;
    }
    return true;
}

static bool sum(struct expr *x, struct val *out)
{
    if (!product(x, out))
        return false;
    while (peek(x) == '+' || *x->s == '-') {
        const char *at = x->s++;
        struct val b;
        if (!product(x, &b) || !apply(x, at, *out, b, out))
            return false;
    }
    return true;
}

static bool eval(struct expr *x, const char *what, gp_num *out)
{
    const gp_node *n = x->node;
    struct val v;
    if (n->kind != GP_SCALAR)
        return gp_fail(x->errs, GP_E_SPEC, n->at, "expected %s, not a %s", what,
                       n->kind == GP_LIST ? "list" : "map");
    x->s = n->text;
    if (!peek(x))
        return gp_fail(x->errs, GP_E_SPEC, n->at, "expected %s, and there is nothing", what);
    if (!sum(x, &v) || (peek(x) && !unexpected(x, "an operator or the end")))
        return false;
    *out = (gp_num){ v.exact, v.exact ? v.num : 0, as_double(v) };
    return true;
}

bool gp_eval(const gp_node *n, const gp_scope *scope, gp_num *out, gp_errs *errs)
{
    struct expr x = { .node = n, .scope = scope, .errs = errs };
    return eval(&x, "a number", out);
}

bool gp_eval_time(const gp_node *n, const gp_scope *scope, int64_t *ns, gp_errs *errs)
{
    struct expr x = { .node = n, .scope = scope, .errs = errs, .time = true };
    gp_num v;
    if (!eval(&x, "a time, like 30s or 1.5ms", &v))
        return false;
    if (!x.unit && v.f != 0)
        return gp_fail(errs, GP_E_SPEC, n->at, "'%.80s' has no unit; write %.80ss, or with ns, us, "
                       "ms, min or h", n->text, n->text);
    if (!v.is_int && !(fabs(v.f) < 9.2e18))
        return gp_fail(errs, GP_E_SPEC, n->at, "the time is too long");
    *ns = v.is_int ? v.i : (int64_t)llround(v.f);
    return true;
}
