/* expr.c - the value of an expression, see node.h and expr.h.
 *
 * A value is an exact quotient of integers of i64 or u64, or a double; a quotient that is not an
 * integer exists only inside ceil() and floor(). One double makes the result a double.
 * Nothing overflows unnoticed. */
#include <math.h>
#include <string.h>
#include "base/num.h"
#include "compile/expr.h"

struct val {
    bool exact;
    gp_int128 num, den;                /* exact: lowest terms, den > 0 */
    double f;                          /* otherwise */
};

struct eval {
    const gp_node *scalar;
    const gp_scope *scope;
    gp_errs *errs;
    bool time;                         /* the result must be a time */
    bool named;                        /* set: see gp_expr */
    gp_num out;                        /* set: the result */
};

/* An error at `bytes` of the text, or at a node of the tree. */
#define FAIL_AT(x, at, bytes, ...)                                           \
    gp_fail((x)->errs, GP_E_SPEC, gp_node_part((x)->scalar, (at), (bytes)), __VA_ARGS__)
#define FAIL(x, e, ...) FAIL_AT(x, (e)->from, (e)->len, __VA_ARGS__)

static bool too_large(struct eval *x, const gp_expr_node *e)
{
    return FAIL_AT(x, e->from, 1, "the result does not fit in 64 bits");
}

/* ---- arithmetic ------------------------------------------------------ */

static double as_double(struct val v)
{
    return v.exact ? (double)v.num / (double)v.den : v.f;
}

static gp_int128 gcd(gp_int128 a, gp_int128 b)
{
    while (b) {
        gp_int128 r = a % b;
        a = b, b = r;
    }
    return a < 0 ? -a : a;
}

/* num / den in lowest terms; false on overflow. den is not 0. */
static bool quotient(gp_int128 num, gp_int128 den, struct val *out)
{
    if (num < -((gp_int128)1 << 126))
        return false;
    gp_int128 g = gcd(num, den);
    if (den < 0)
        g = -g;
    *out = (struct val){ true, num / g, den / g, 0 };
    return gp_int_fits(out->num) && gp_int_fits(out->den);
}

static bool exact_op(gp_expr_op op, struct val a, struct val b, struct val *out)
{
    gp_int128 n, m, d;
    switch (op) {
    case GP_EXPR_MULTIPLY:
        return !__builtin_mul_overflow(a.num, b.num, &n)
            && !__builtin_mul_overflow(a.den, b.den, &d) && quotient(n, d, out);
    case GP_EXPR_DIVIDE:
    case GP_EXPR_QUOTIENT:
        return !__builtin_mul_overflow(a.num, b.den, &n)
            && !__builtin_mul_overflow(a.den, b.num, &d) && quotient(n, d, out);
    default:
        return !__builtin_mul_overflow(a.num, b.den, &n)
            && !__builtin_mul_overflow(b.num, a.den, &m)
            && !(op == GP_EXPR_ADD ? __builtin_add_overflow(n, m, &n)
                                   : __builtin_sub_overflow(n, m, &n))
            && !__builtin_mul_overflow(a.den, b.den, &d) && quotient(n, d, out);
    }
}

static double double_op(gp_expr_op op, double a, double b)
{
    return op == GP_EXPR_ADD ? a + b : op == GP_EXPR_SUBTRACT ? a - b
         : op == GP_EXPR_MULTIPLY ? a * b : a / b;
}

static bool is_int(struct val v)
{
    return v.exact && v.den == 1;
}

static const char *text_of(struct val v, char buf[GP_NUM_TEXT])
{
    return gp_num_text(&(gp_num){ true, v.num, v.f }, buf);
}

/* a op b. */
static bool apply(struct eval *x, const gp_expr_node *e, gp_expr_op op, struct val a, struct val b,
                  struct val *out)
{
    char of_a[GP_NUM_TEXT], of_b[GP_NUM_TEXT];
    if ((op == GP_EXPR_DIVIDE || op == GP_EXPR_QUOTIENT || op == GP_EXPR_REMAINDER)
        && as_double(b) == 0)
        return FAIL(x, e, "division by zero");
    if (op == GP_EXPR_REMAINDER) {
        if (!is_int(a) || !is_int(b))
            return FAIL(x, e, "'%%' is for integers");
        *out = (struct val){ true, b.num == -1 ? 0 : a.num % b.num, 1, 0 };
        return true;
    }
    if (!a.exact || !b.exact) {
        *out = (struct val){ .f = double_op(op, as_double(a), as_double(b)) };
        return isfinite(out->f) || FAIL(x, e, "the result is not a finite number");
    }
    if (!exact_op(op, a, b, out))
        return too_large(x, e);
    if (op == GP_EXPR_DIVIDE && out->den != 1)
        return FAIL(x, e, "%s / %s leaves a remainder; write ceil(a / b) or floor(a / b), or %s.0 for a fraction",
                    text_of(a, of_a), text_of(b, of_b), of_a);
    return true;
}

/* The smaller or the larger one; of two that are equal as doubles, by their exact values. */
static struct val choose(bool smaller, struct val a, struct val b)
{
    double u = as_double(a), v = as_double(b);
    bool mixed = a.exact != b.exact;
    bool second = u == v ? !mixed && a.exact && a.den == b.den
                           && (smaller ? b.num < a.num : b.num > a.num)
                         : smaller ? v < u : v > u;
    struct val out = second ? b : a;
    return mixed ? (struct val){ .f = as_double(out) } : out;
}

/* ceil (up) or floor. */
static bool round_to_int(struct eval *x, const gp_expr_node *e, bool up, struct val *v)
{
    if (v->exact) {
        gp_int128 q = v->num / v->den, r = v->num % v->den;
        *v = (struct val){ true, q + (up ? r > 0 : -(r < 0)), 1, 0 };
        return true;
    }
    double f = up ? ceil(v->f) : floor(v->f);
    if (!(f >= -0x1p63 && f < 0x1p64))
        return too_large(x, e);
    *v = (struct val){ true, (gp_int128)f, 1, 0 };
    return true;
}

/* ---- what has no operands -------------------------------------------- */

static bool from_num(gp_num n, struct val *out)
{
    *out = n.is_int ? (struct val){ true, n.i, 1, 0 } : (struct val){ .f = n.f };
    return true;
}

static bool number(struct eval *x, const gp_expr_node *e, struct val *out)
{
    if (x->time && e->unit && !e->unit->time) {
        size_t len = strlen(e->unit->name);
        return FAIL_AT(x, e->from + e->len - len, len, "'%s' is not a unit of time; use ns, us, ms, "
                       "s, min or h", e->unit->name);
    }
    return from_num(e->value, out);
}

static void try_names(struct eval *x, gp_near *near)
{
    if (x->scope && x->scope->each && x->errs->n < GP_ERRS_MAX)
        x->scope->each(x->scope, near);
}

static bool var(struct eval *x, const gp_expr_node *e, struct val *out)
{
    const gp_scope *sc = x->scope;
    gp_num n;
    if (sc && sc->var && sc->var(sc, e->name, &n))
        return from_num(n, out);
    gp_near near = GP_NEAR(e->name);
    try_names(x, &near);
    return FAIL(x, e, "'%s' is neither a number nor a variable that is a number%s", e->name,
                gp_near_text(&near));
}

static bool port(struct eval *x, const gp_expr_node *e, struct val *out)
{
    const gp_scope *sc = x->scope;
    bool ports = sc && sc->port;
    gp_num n;
    if (ports && sc->port(sc, e->name, e->axis, &n))
        return from_num(n, out);
    if (e->axis >= 0 && ports && sc->port(sc, e->name, -1, &n))
        return FAIL(x, e, "'%s' has no axis %d; axes count from 0", e->name, e->axis);
    gp_near near = GP_NEAR(e->name);
    try_names(x, &near);
    return FAIL(x, e, ports ? "no port '%s' of this stage with a known shape%s"
                : "'%s' has no shape or size here: those of inputs can be used in 'shape' of what a stage makes of them, and in "
                "options that say so%s", e->name, gp_near_text(&near));
}

/* ---- the walk -------------------------------------------------------- */

/* One node; its operands, if it has any, are the last before `top`. The new top, NULL after an
 * error. */
static struct val *step(struct eval *x, const gp_expr_node *e, struct val *top)
{
    switch (e->op) {
    case GP_EXPR_NUMBER:
        return number(x, e, top) ? top + 1 : NULL;
    case GP_EXPR_VAR:
        return var(x, e, top) ? top + 1 : NULL;
    case GP_EXPR_PORT:
        return port(x, e, top) ? top + 1 : NULL;
    case GP_EXPR_NEGATE:
        top[-1].f = -top[-1].f;                /* of 0.0 it is -0.0 */
        return !top[-1].exact || apply(x, e, GP_EXPR_SUBTRACT, (struct val){ true, 0, 1, 0 }, top[-1], &top[-1])
               ? top : NULL;
    case GP_EXPR_CEIL:
    case GP_EXPR_FLOOR:
        return round_to_int(x, e, e->op == GP_EXPR_CEIL, &top[-1]) ? top : NULL;
    case GP_EXPR_MIN:
    case GP_EXPR_MAX:
        top[-2] = choose(e->op == GP_EXPR_MIN, top[-2], top[-1]);
        return top - 1;
    default:
        return apply(x, e, e->op, top[-2], top[-1], &top[-2]) ? top - 1 : NULL;
    }
}

static bool walk(struct eval *x, const gp_expr *tree)
{
    struct val stack[GP_EXPR_STACK], *top = stack;
    for (int i = 0; i < tree->n; i++)
        if (!(top = step(x, &tree->node[i], top)))
            return false;
    x->named = tree->named;
    x->out = (gp_num){ stack->exact, stack->exact ? stack->num : 0, as_double(*stack) };
    return true;
}

/* A text that no pass has parsed. */
static bool parse_and_walk(struct eval *x)
{
    gp_arena a = { 0 };
    volatile bool ok = false;
    GP_IF_OOM(&a) {
        gp_fail(x->errs, GP_E_RESOURCE, x->scalar->at, "out of memory");
    } else {
        const gp_expr *tree = gp_expr_parse(&a, x->scalar, x->errs);
        ok = tree && walk(x, tree);
    }
    gp_arena_free(&a);
    return ok;
}

static bool eval(struct eval *x, const char *what)
{
    const gp_node *n = x->scalar;
    if (n->kind != GP_SCALAR)
        return gp_fail(x->errs, GP_E_SPEC, n->at, "expected %s, not a %s", what,
                       n->kind == GP_LIST ? "list" : "map");
    if (gp_expr_kept(n))
        return walk(x, n->expr);
    if (!n->text[strspn(n->text, " \t\n")])
        return gp_fail(x->errs, GP_E_SPEC, n->at, "expected %s, and there is nothing", what);
    return parse_and_walk(x);
}

bool gp_eval(const gp_node *n, const gp_scope *scope, gp_num *out, gp_errs *errs)
{
    struct eval x = { .scalar = n, .scope = scope, .errs = errs };
    bool ok = eval(&x, "a number");
    if (ok)
        *out = x.out;
    return ok;
}

bool gp_eval_time(const gp_node *n, const gp_scope *scope, int64_t *ns, gp_errs *errs)
{
    struct eval x = { .scalar = n, .scope = scope, .errs = errs, .time = true };
    if (!eval(&x, "a time, like 30s or 1.5ms"))
        return false;
    gp_num v = x.out;
    if (!x.named && v.f != 0)
        return gp_fail(errs, GP_E_SPEC, n->at, "'%.80s' has no unit; write %.80ss, or with ns, us, "
                       "ms, min or h", n->text, n->text);
    if (v.is_int ? v.i > INT64_MAX : !(fabs(v.f) < 9.2e18))
        return gp_fail(errs, GP_E_SPEC, n->at, "the time is too long");
    *ns = v.is_int ? (int64_t)v.i : (int64_t)llround(v.f);
    return true;
}
