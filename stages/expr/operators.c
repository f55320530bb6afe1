/* operators.c - which operations there are for an operator and its operands, and what type they make. */
#include <string.h>
#include "base/num.h"
#include "checker.h"

/* ---- operations ------------------------------------------------------------ */

/* A number, a size, what is known of the frame, or what is made of these alone. */
static bool is_once(const gp_ew_program *p, const gp_ew_ins *x)
{
    const int operand[] = { x->a, x->b, x->c };
    bool reads = x->op == GP_EW_STORE || x->op == GP_EW_FOLD || x->op == GP_EW_NEAR || x->op == GP_EW_THROUGH;
    int n = reads ? 0 : gp_ew_operands(x->op);
    bool once = n > 0 || x->op == GP_EW_NUMBER || x->op == GP_EW_SIZE || x->op == GP_EW_FRAME;
    for (int k = 0; k < n; k++)
        once &= p->ins[operand[k]].once;
    return once;
}

int gp_ew_emit(gp_ew_checker *c, gp_ew_ins ins)
{
    gp_ew_program *p = c->p;
    ins.once = is_once(p, &ins);
    if (p->n == p->cap) {
        int cap = p->cap ? 2 * p->cap : 32;
        gp_ew_ins *more = gp_shape_alloc(c->s, sizeof *more * (size_t)cap);
        if (p->n)
            memcpy(more, p->ins, sizeof *more * (size_t)p->n);
        p->ins = more, p->cap = cap;
    }
    p->ins[p->n] = ins;
    return p->n++;
}

static gp_ew_value as_type(gp_num n, gp_ew_type t)
{
    gp_ew_value v = { .u64 = 0 };
    gp_num_store(&v, &n, gp_ew_dtype[t]);
    return v;
}

/* Is it the same number for any values of the vars? */
static bool is_same(const gp_ew_ins *a, const gp_ew_ins *b)
{
    bool known = a->var ? *a->var && b->var && !strcmp(a->var, b->var) : !b->var && a->value.u64 == b->value.u64;
    return a->op == GP_EW_NUMBER && a->type == b->type && known;
}

/* The same number again is one operation, if it is not long ago. */
static int emit_number(gp_ew_checker *c, const gp_ew_term *v, gp_ew_type t)
{
    enum { NEAR = 64 };
    gp_ew_ins ins = { .op = GP_EW_NUMBER, .type = t, .value = as_type(v->n, t), .var = v->var };
    for (int i = c->p->n - 1; i >= 0 && i >= c->p->n - NEAR; i--)
        if (is_same(&c->p->ins[i], &ins))
            return i;
    return gp_ew_emit(c, ins);
}

int gp_ew_as(gp_ew_checker *c, const gp_ew_term *v, gp_ew_type t)
{
    if (v->known)
        return emit_number(c, v, t);
    gp_ew_type from = gp_ew_type_of(v->dtype);
    return from == t ? v->at : gp_ew_emit(c, (gp_ew_ins){ .op = GP_EW_CONVERT, .type = t, .from = from, .a = v->at });
}

gp_ew_term gp_ew_result(int at, gp_ew_type type, bool small)
{
    return (gp_ew_term){ .at = at, .dtype = gp_ew_dtype[type], .small = small };
}

static gp_ew_term truth_at(int at)
{
    return (gp_ew_term){ .at = at, .dtype = GP_U8, .small = true };
}

/* 0 or 1, in i32. */
static int truth_of(gp_ew_checker *c, const gp_ew_term *v)
{
    if (v->known)
        return emit_number(c, &(gp_ew_term){ .n = { true, v->n.f != 0, v->n.f != 0 }, .var = v->var ? "" : NULL },
                           GP_EW_I32);
    bool is = gp_ew_is_truth(c->p->ins[v->at].op);
    return is ? v->at : gp_ew_emit(c, (gp_ew_ins){ .op = GP_EW_TRUTH, .type = gp_ew_type_of(v->dtype), .a = v->at });
}

/* ---- operators -------------------------------------------------------------- */

/* ---- operators -------------------------------------------------------------- */

/* In which type an operator computes, and what it makes. */
typedef enum rule { COMMON, COMPARED, TRUTHS, BITS, FLOAT, WHOLE, IS_NAN, CHOICE, PART, PARTS } rule;

static const struct { gp_ew_op op; rule rule; int n; } operators[] = {
    [GP_EXPR_NEGATE] = { GP_EW_NEG, COMMON, 1 }, [GP_EXPR_ABS] = { GP_EW_ABS, COMMON, 1 },
    [GP_EXPR_ADD] = { GP_EW_ADD, COMMON, 2 }, [GP_EXPR_SUBTRACT] = { GP_EW_SUB, COMMON, 2 },
    [GP_EXPR_MULTIPLY] = { GP_EW_MUL, COMMON, 2 }, [GP_EXPR_REMAINDER] = { GP_EW_REM, COMMON, 2 },
    [GP_EXPR_MIN] = { GP_EW_MIN, COMMON, 2 }, [GP_EXPR_MAX] = { GP_EW_MAX, COMMON, 2 },
    [GP_EXPR_DIVIDE] = { GP_EW_DIV, FLOAT, 2 }, [GP_EXPR_POW] = { GP_EW_POW, FLOAT, 2 },
    [GP_EXPR_ATAN2] = { GP_EW_ATAN2, FLOAT, 2 }, [GP_EXPR_HYPOT] = { GP_EW_HYPOT, FLOAT, 2 },
    [GP_EXPR_SQRT] = { GP_EW_SQRT, FLOAT, 1 }, [GP_EXPR_RSQRT] = { GP_EW_RSQRT, FLOAT, 1 },
    [GP_EXPR_EXP] = { GP_EW_EXP, FLOAT, 1 }, [GP_EXPR_LOG] = { GP_EW_LOG, FLOAT, 1 },
    [GP_EXPR_LOG2] = { GP_EW_LOG2, FLOAT, 1 }, [GP_EXPR_LOG10] = { GP_EW_LOG10, FLOAT, 1 },
    [GP_EXPR_SIN] = { GP_EW_SIN, FLOAT, 1 }, [GP_EXPR_COS] = { GP_EW_COS, FLOAT, 1 },
    [GP_EXPR_TAN] = { GP_EW_TAN, FLOAT, 1 }, [GP_EXPR_ISNAN] = { GP_EW_ISNAN, IS_NAN, 1 },
    [GP_EXPR_FLOOR] = { GP_EW_FLOOR, WHOLE, 1 }, [GP_EXPR_CEIL] = { GP_EW_CEIL, WHOLE, 1 },
    [GP_EXPR_ROUND] = { GP_EW_ROUND, WHOLE, 1 }, [GP_EXPR_NOT] = { GP_EW_NOT, COMPARED, 1 },
    [GP_EXPR_LESS] = { GP_EW_LT, COMPARED, 2 }, [GP_EXPR_LESS_EQUAL] = { GP_EW_LE, COMPARED, 2 },
    [GP_EXPR_GREATER] = { GP_EW_LT, COMPARED, 2 },
    [GP_EXPR_GREATER_EQUAL] = { GP_EW_LE, COMPARED, 2 },
    [GP_EXPR_EQUAL] = { GP_EW_EQ, COMPARED, 2 }, [GP_EXPR_NOT_EQUAL] = { GP_EW_NE, COMPARED, 2 },
    [GP_EXPR_AND] = { GP_EW_BAND, TRUTHS, 2 }, [GP_EXPR_OR] = { GP_EW_BOR, TRUTHS, 2 },
    [GP_EXPR_INVERT] = { GP_EW_INVERT, BITS, 1 }, [GP_EXPR_BIT_AND] = { GP_EW_BAND, BITS, 2 },
    [GP_EXPR_BIT_OR] = { GP_EW_BOR, BITS, 2 }, [GP_EXPR_BIT_XOR] = { GP_EW_BXOR, BITS, 2 },
    [GP_EXPR_SHIFT_LEFT] = { GP_EW_SHL, BITS, 2 },
    [GP_EXPR_SHIFT_RIGHT] = { GP_EW_SHR, BITS, 2 }, [GP_EXPR_SELECT] = { GP_EW_SELECT, CHOICE, 3 },
    [GP_EXPR_RE] = { GP_EW_RE, PART, 1 }, [GP_EXPR_IM] = { GP_EW_IM, PART, 1 },
    [GP_EXPR_CONJ] = { GP_EW_CONJ, PART, 1 }, [GP_EXPR_ARG] = { GP_EW_ARG, PART, 1 },
    [GP_EXPR_COMPLEX] = { GP_EW_COMPLEX, PARTS, 2 },
};

static bool takes_complex(gp_expr_op op)
{
    static const bool takes[sizeof operators / sizeof *operators] = {
        [GP_EXPR_NEGATE] = true, [GP_EXPR_ADD] = true, [GP_EXPR_SUBTRACT] = true, [GP_EXPR_MULTIPLY] = true,
        [GP_EXPR_DIVIDE] = true, [GP_EXPR_EQUAL] = true, [GP_EXPR_NOT_EQUAL] = true, [GP_EXPR_SELECT] = true,
        [GP_EXPR_ABS] = true, [GP_EXPR_EXP] = true, [GP_EXPR_ISNAN] = true, [GP_EXPR_RE] = true, [GP_EXPR_IM] = true,
        [GP_EXPR_CONJ] = true, [GP_EXPR_ARG] = true,
    };
    return takes[op];
}

static bool check_bits(gp_ew_checker *c, const gp_expr_node *e, const gp_ew_term *v)
{
    int n = operators[e->op].n, len = (int)e->len;
    const char *sign = c->text->text + e->from;
    if (n == 1)
        return gp_ew_is_integer(v) || FAIL(c, e, "'%.*s' is for integers, not %s", len, sign, gp_ew_type_name(v));
    if (!gp_ew_is_integer(&v[0]) || !gp_ew_is_integer(&v[1]))
        return FAIL(c, e, "'%.*s' is for integers, not %s and %s%s", len, sign, gp_ew_type_name(&v[0]),
                    gp_ew_type_name(&v[1]), *sign == '^' ? "; a power is pow(a, b)" : "");
    return (v[0].known && v[1].known) || gp_ew_common_of_two(&v[0], &v[1]).type < GP_EW_F32
        || FAIL(c, e, "'%.*s' has no type of integers that holds both %s and %s", len, sign, gp_ew_type_name(&v[0]),
                gp_ew_type_name(&v[1]));
}

/* Does f32 hold it? */
static bool is_narrow(const gp_ew_term *v)
{
    gp_ew_common t = gp_ew_common_of(v);
    return v->known || t.small || t.type == GP_EW_F32;
}

static bool check_complex(gp_ew_checker *c, const gp_expr_node *e, const gp_ew_term *v)
{
    const int n = operators[e->op].n, len = (int)e->len;
    const char *sign = c->text->text + e->from;
    const bool choice = operators[e->op].rule == CHOICE;
    if (choice && gp_ew_is_complex(v))
        return FAIL(c, e, "'%.*s' wants a condition that is a real number, not c64: write z != 0", len, sign);
    if (!takes_complex(e->op))
        return FAIL(c, e, "'%.*s' is for real numbers, not %s%s%s: take re(z), im(z) or abs(z); of c64 there are + - * "
                    "/, ==, !=, ? : and arg, conj, exp, isnan", len, sign, gp_ew_type_name(v), n > 1 ? " and " : "",
                    n > 1 ? gp_ew_type_name(&v[1]) : "");
    for (int i = choice; i < n; i++)
        if (!gp_ew_is_complex(&v[i]) && !is_narrow(&v[i]))
            return FAIL(c, e, "'%.*s' has no type that holds both c64 and %s: complex(x, 0) rounds the %s to f32", len,
                        sign, gp_ew_type_name(&v[i]), gp_ew_type_name(&v[i]));
    return true;
}

static gp_ew_type float_type(const gp_ew_term *v, int n)
{
    gp_ew_type a = gp_ew_float_of(&v[0]), b = n > 1 ? gp_ew_float_of(&v[1]) : a;
    return a > b ? a : b;
}

/* The part of a real number: that itself, 0, or its angle. */
static void compute_part(gp_ew_checker *c, const gp_expr_node *e, gp_ew_term *v)
{
    const gp_ew_type type = gp_ew_common_of(v).type, to = gp_ew_float_of(v);
    const gp_ew_term zero = { .known = true, .n = { true, 0, 0 } };
    gp_ew_ins ins = { .op = operators[e->op].op, .type = type, .a = v->at };
    if (type == GP_EW_C64)
        *v = gp_ew_result(gp_ew_emit(c, ins), gp_ew_makes(&ins), false);
    else if (e->op == GP_EXPR_IM)
        v->at = gp_ew_as(c, &zero, type);
    if (type == GP_EW_C64 || e->op != GP_EXPR_ARG)
        return;
    ins = (gp_ew_ins){ .op = GP_EW_ATAN2, .type = to, .a = gp_ew_as(c, &zero, to) };
    ins.b = gp_ew_as(c, v, to);
    *v = gp_ew_result(gp_ew_emit(c, ins), to, false);
}

/* Operands that are not all known; the result takes the place of the first. */
static void compute(gp_ew_checker *c, const gp_expr_node *e, gp_ew_term *v)
{
    gp_ew_op op = operators[e->op].op;
    rule r = operators[e->op].rule;
    int n = operators[e->op].n;
    bool swapped = e->op == GP_EXPR_GREATER || e->op == GP_EXPR_GREATER_EQUAL;
    const gp_ew_term *a = r == CHOICE ? v + 1 : v, *b = r == CHOICE ? v + 2 : v + (n > 1);
    gp_ew_common t = gp_ew_common_of_two(a, b);
    gp_ew_type type = r == FLOAT ? float_type(v, n) : r == TRUTHS ? GP_EW_I32 : r == PARTS ? GP_EW_F32 : t.type;
    if (r == PART) {
        compute_part(c, e, v);
        return;
    }
    if ((r == WHOLE || r == IS_NAN) && type < GP_EW_F32) {       /* an integer is what it is rounded to */
        if (r == IS_NAN)
            *v = truth_at(emit_number(c, &(gp_ew_term){ .n = { true, 0, 0 } }, GP_EW_I32));
        else
            *v = gp_ew_result(v->at, t.type, t.small);
        return;
    }
    gp_ew_ins ins = { .op = op, .type = type };
    if (r == CHOICE) {
        ins.a = truth_of(c, v), ins.b = gp_ew_as(c, a, type), ins.c = gp_ew_as(c, b, type);
    } else if (r == TRUTHS) {
        ins.a = truth_of(c, a), ins.b = truth_of(c, b);
    } else {
        ins.a = gp_ew_as(c, swapped ? b : a, type);
        if (n > 1)
            ins.b = gp_ew_as(c, swapped ? a : b, type);
    }
    int at = gp_ew_emit(c, ins);
    *v = r == COMPARED || r == TRUTHS || r == IS_NAN ? truth_at(at)
       : gp_ew_result(at, gp_ew_makes(&ins), r != FLOAT && r != PARTS && t.small);
}

/* An integer that only u64 holds, beside one that may be negative: an f64 would round both. */
static bool check_large(gp_ew_checker *c, const gp_expr_node *e, const gp_ew_term *v)
{
    const rule r = operators[e->op].rule;
    const gp_ew_term *a = v + (r == CHOICE), *b = a + 1;
    if (operators[e->op].n < 2 || r == FLOAT || r == TRUTHS || r == PARTS || !gp_ew_is_integer(a) || !gp_ew_is_integer(b)
        || !((a->known && a->n.i > INT64_MAX) || (b->known && b->n.i > INT64_MAX)))
        return true;
    return gp_ew_common_of_two(a, b).type < GP_EW_F32
        || FAIL(c, e, "'%.*s' has no type of integers that holds both %s and %s: write the large one with a point, as in "
                "9223372036854775808.0, if f64 is enough", (int)e->len, c->text->text + e->from, gp_ew_type_name(a),
                gp_ew_type_name(b));
}

bool gp_ew_apply(gp_ew_checker *c, const gp_expr_node *e, gp_ew_term *v)
{
    int n = operators[e->op].n;
    bool known = operators[e->op].rule != PARTS, complex = false;
    const char *var = NULL;
    gp_num num[3], made;
    if (operators[e->op].rule == BITS && !check_bits(c, e, v))
        return false;
    for (int i = 0; i < n; i++)
        known &= v[i].known, complex |= gp_ew_is_complex(&v[i]), var = v[i].var ? "" : var, num[i] = v[i].n;
    if (complex && !check_complex(c, e, v))
        return false;
    if (!known) {
        gp_ew_index index = { .is = false };
        if (v[0].index.is && n == 2 && v[1].known)
            index = gp_ew_moved(e, &v[0].index, v[1].n, var != NULL);
        else if (n == 2 && v[1].index.is && v[0].known && e->op == GP_EXPR_ADD)
            index = gp_ew_moved(e, &v[1].index, v[0].n, var != NULL);
        if (!check_large(c, e, v))
            return false;
        compute(c, e, v);
        v->index = index;
        return true;
    }
    if (!gp_ew_fold(c->s, gp_node_part(c->text, e->from, e->len), e->op, num, &made))
        return false;
    *v = (gp_ew_term){ .known = true, .var = var, .n = made };
    return true;
}

int gp_ew_takes(const gp_expr_node *e)
{
    return e->op == GP_EXPR_AT ? e->axis : e->op == GP_EXPR_INDEX || e->op == GP_EXPR_ASSIGN ? 1
         : e->op < sizeof operators / sizeof *operators ? operators[e->op].n : 0;
}
