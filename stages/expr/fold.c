/* fold.c - operators between numbers that are known when the pipeline is compiled: vars and what the text spells.
 * Integers are those of i64 and u64, and do not overflow unnoticed, all else is f64. What comes out becomes of the type
 * of the frames that it meets (check.c). */
#include <math.h>
#include "base/num.h"
#include "program.h"

static gp_num integer(gp_int128 i) { return (gp_num){ true, i, (double)i }; }
static gp_num real(double f) { return (gp_num){ false, 0, f }; }

/* False: it is none of these. */
static bool compare(gp_expr_op op, gp_num a, gp_num b, bool *out)
{
    bool ints = a.is_int && b.is_int;
    bool less = ints ? a.i < b.i : a.f < b.f, more = ints ? a.i > b.i : a.f > b.f;
    bool same = ints ? a.i == b.i : a.f == b.f;
    switch (op) {
    case GP_EXPR_LESS: *out = less; return true;
    case GP_EXPR_LESS_EQUAL: *out = less || same; return true;
    case GP_EXPR_GREATER: *out = more; return true;
    case GP_EXPR_GREATER_EQUAL: *out = more || same; return true;
    case GP_EXPR_EQUAL: *out = same; return true;
    case GP_EXPR_NOT_EQUAL: *out = !same; return true;
    case GP_EXPR_AND: *out = a.f != 0 && b.f != 0; return true;
    case GP_EXPR_OR: *out = a.f != 0 || b.f != 0; return true;
    default: return false;
    }
}

/* Folds an operation on integers: 1 done, 0 the result does not fit, -1 it is none of these. */
static int integers(gp_expr_op op, gp_int128 a, gp_int128 b, gp_int128 *out)
{
    bool shifts = b >= 0 && b < 64;
    switch (op) {
    case GP_EXPR_ADD: return !__builtin_add_overflow(a, b, out);
    case GP_EXPR_SUBTRACT: return !__builtin_sub_overflow(a, b, out);
    case GP_EXPR_MULTIPLY: return !__builtin_mul_overflow(a, b, out);
    case GP_EXPR_REMAINDER: return *out = b == 0 || b == -1 ? 0 : a % b, 1;
    case GP_EXPR_MIN: return *out = a < b ? a : b, 1;
    case GP_EXPR_MAX: return *out = a > b ? a : b, 1;
    case GP_EXPR_BIT_AND: return *out = a & b, 1;
    case GP_EXPR_BIT_OR: return *out = a | b, 1;
    case GP_EXPR_BIT_XOR: return *out = a ^ b, 1;
    case GP_EXPR_SHIFT_LEFT: return *out = shifts ? a * ((gp_int128)1 << b) : 0, 1;
    case GP_EXPR_SHIFT_RIGHT: return *out = a >> (shifts ? b : 64), 1;
    default: return -1;
    }
}

static double reals(gp_expr_op op, double a, double b)
{
    switch (op) {
    case GP_EXPR_ADD: return a + b;
    case GP_EXPR_SUBTRACT: return a - b;
    case GP_EXPR_MULTIPLY: return a * b;
    case GP_EXPR_DIVIDE: return a / b;
    case GP_EXPR_REMAINDER: return fmod(a, b);
    case GP_EXPR_MIN: return a < b || a != a ? a : b;
    case GP_EXPR_MAX: return a > b || a != a ? a : b;
    case GP_EXPR_POW: return pow(a, b);
    case GP_EXPR_ATAN2: return atan2(a, b);
    case GP_EXPR_HYPOT: return hypot(a, b);
    case GP_EXPR_ABS: return fabs(a);
    case GP_EXPR_NEGATE: return -a;
    case GP_EXPR_FLOOR: return floor(a);
    case GP_EXPR_CEIL: return ceil(a);
    case GP_EXPR_ROUND: return rint(a);
    case GP_EXPR_SQRT: return sqrt(a);
    case GP_EXPR_RSQRT: return 1 / sqrt(a);
    case GP_EXPR_EXP: return exp(a);
    case GP_EXPR_LOG: return log(a);
    case GP_EXPR_LOG2: return log2(a);
    case GP_EXPR_LOG10: return log10(a);
    case GP_EXPR_SIN: return sin(a);
    case GP_EXPR_COS: return cos(a);
    case GP_EXPR_RE: case GP_EXPR_CONJ: return a;
    case GP_EXPR_IM: return 0;
    case GP_EXPR_ARG: return atan2(0, a);
    default: return tan(a);
    }
}

/* Folds an operation on one integer. False: it is none of these. */
static bool one_integer(gp_expr_op op, gp_int128 a, gp_int128 *out)
{
    switch (op) {
    case GP_EXPR_NEGATE: return *out = -a, true;
    case GP_EXPR_ABS: return *out = a < 0 ? -a : a, true;
    case GP_EXPR_INVERT: return *out = ~a, true;
    case GP_EXPR_FLOOR: case GP_EXPR_CEIL: case GP_EXPR_ROUND: case GP_EXPR_RE: case GP_EXPR_CONJ: return *out = a, true;
    case GP_EXPR_IM: return *out = 0, true;
    default: return false;
    }
}

static bool is_one(gp_expr_op op)
{
    return op == GP_EXPR_NEGATE || op == GP_EXPR_CEIL || op == GP_EXPR_FLOOR
        || (op >= GP_EXPR_NOT && op <= GP_EXPR_ISNAN);
}

bool gp_ew_fold(gp_shape *s, gp_loc at, gp_expr_op op, const gp_num *v, gp_num *out)
{
    gp_num a = v[0], b = is_one(op) ? a : v[1];
    bool truth;
    gp_int128 i = 0;
    int done = -1;
    if (op == GP_EXPR_SELECT)
        return *out = a.f != 0 ? v[1] : v[2], out->is_int &= v[1].is_int && v[2].is_int, true;
    if (op == GP_EXPR_NOT || op == GP_EXPR_ISNAN)
        return *out = integer(op == GP_EXPR_NOT ? a.f == 0 : a.f != a.f), true;
    if (compare(op, a, b, &truth))
        return *out = integer(truth), true;
    if (is_one(op) && a.is_int)
        done = one_integer(op, a.i, &i) ? 1 : -1;
    else if (!is_one(op) && a.is_int && b.is_int)
        done = integers(op, a.i, b.i, &i);
    if (!done || !gp_int_fits(i))
        return gp_shape_fail_at(s, at, "the result does not fit in 64 bits");
    *out = done > 0 ? integer(i) : real(reals(op, a.f, b.f));
    return true;
}
