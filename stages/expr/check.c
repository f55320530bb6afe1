/* check.c - the tree of a program becomes a list of operations, each of one type; engine/cli/topics/expr.md has the
 * table of types.
 *
 * A number that is known now (a var, what the text spells, and what is made of these) has no type until it meets a
 * frame, and then has that one's. Values of 8- and 16-bit integers are computed in i32 and stay `small`: with floats
 * they make f32, as f32 holds them; other integers make f64. c64 takes in what f32 holds. */
#include <math.h>
#include <string.h>
#include "base/table.h"
#include "program.h"

typedef struct value {
    bool known;                /* it is the number `n`, */
    const char *var;           /* ... which this var is; "": which depends on vars; NULL: on none; */
    gp_num n;
    int at;                    /* else the value of operation `at`, */
    gp_dtype dtype;            /* ... which is this when stored, */
    bool small;
    gp_ew_index index;         /* it is that of an axis, moved */
    const gp_expr_node *where; /* ... and stands there, within NAME[...] */
} value;

typedef struct checker {
    gp_shape *s;
    const gp_node *text;
    const gp_expr *tree;
    const gp_type *frame;
    gp_ew_program *p;
    value *named;              /* what was assigned; */
    gp_table names;            /* ... index by name */
    int nnamed;
    int loaded[GP_EW_PORTS], index[GP_MAXDIM], frame_at[2];     /* operations; -1: not yet */
} checker;

#define FAIL(c, e, ...) \
    gp_shape_fail_at((c)->s, gp_node_part((c)->text, (e)->from, (e)->len), __VA_ARGS__)

/* ---- types --------------------------------------------------------------- */

int gp_ew_operands(gp_ew_op op)
{
    static const int operands[GP_EW_NOPS] = {
#define X(NAME, name, n, types) n,
        GP_EW_OPS(X)
#undef X
    };
    return op < GP_EW_NOPS ? operands[op] : op == GP_EW_STORE || op == GP_EW_FOLD || op == GP_EW_CONVERT
                            || op == GP_EW_THROUGH;
}

bool gp_ew_is_truth(gp_ew_op op)
{
    return op == GP_EW_TRUTH || op == GP_EW_NOT || op == GP_EW_ISNAN || (op >= GP_EW_LT && op <= GP_EW_NE);
}

gp_ew_type gp_ew_makes(const gp_ew_ins *x)
{
    bool part = x->op == GP_EW_ABS || x->op == GP_EW_RE || x->op == GP_EW_IM || x->op == GP_EW_ARG;
    return gp_ew_is_truth(x->op) ? GP_EW_I32 : x->op == GP_EW_COMPLEX ? GP_EW_C64
         : part && x->type == GP_EW_C64 ? GP_EW_F32 : x->type;
}

const gp_dtype gp_ew_dtype[GP_EW_NTYPES] = { GP_I32, GP_U32, GP_I64, GP_U64, GP_F32, GP_F64, GP_C64 };

gp_ew_type gp_ew_type_of(gp_dtype t)
{
    static const gp_ew_type type[GP_NDTYPES] = {
        [GP_U32] = GP_EW_U32, [GP_I64] = GP_EW_I64, [GP_U64] = GP_EW_U64, [GP_F16] = GP_EW_F32, [GP_F32] = GP_EW_F32,
        [GP_F64] = GP_EW_F64, [GP_C64] = GP_EW_C64,
    };
    return type[t];                    /* all others are computed in i32 */
}

static bool is_small(gp_dtype t)
{
    return t == GP_U8 || t == GP_I8 || t == GP_U16 || t == GP_I16;
}

static bool is_integer(const value *v)
{
    return v->known ? v->n.is_int : gp_ew_type_of(v->dtype) < GP_EW_F32;
}

static bool is_complex(const value *v)
{
    return !v->known && v->dtype == GP_C64;
}

static bool fits(gp_num n, gp_ew_type t)
{
    return t == GP_EW_I32 ? n.i >= INT32_MIN && n.i <= INT32_MAX : t == GP_EW_U32 ? n.i >= 0 && n.i <= UINT32_MAX
         : t != GP_EW_U64 || n.i >= 0;
}

/* The type in which two are computed together. */
typedef struct common { gp_ew_type type; bool small; } common;

static common of_value(const value *v)
{
    if (!v->known)
        return (common){ gp_ew_type_of(v->dtype), v->small };
    if (!v->n.is_int)
        return (common){ GP_EW_F32, false };
    return fits(v->n, GP_EW_I32) ? (common){ GP_EW_I32, true } : (common){ GP_EW_I64, false };
}

static common of_both(common a, common b)
{
    if (a.type > b.type) {
        common t = a;
        a = b, b = t;
    }
    if (b.type >= GP_EW_F64)
        return b;
    if (b.type == GP_EW_F32)
        return a.type == GP_EW_F32 || a.small ? b : (common){ GP_EW_F64, false };
    if (a.type == b.type)
        return (common){ a.type, a.small && b.small };
    if (b.type == GP_EW_U64)
        return a.type == GP_EW_U32 ? b : (common){ GP_EW_F64, false };
    return (common){ GP_EW_I64, false };
}

/* A known number takes the type of the other, if that can hold it. */
static common of_known(const value *known, const value *other)
{
    common t = of_value(other);
    if (!known->n.is_int)
        return of_both(t, (common){ GP_EW_F32, false });
    if (t.type >= GP_EW_F32 || fits(known->n, t.type))
        return t;
    return of_both(t, (common){ GP_EW_I64, false });
}

static common of_two(const value *a, const value *b)
{
    return a->known == b->known ? of_both(of_value(a), of_value(b)) : a->known ? of_known(a, b) : of_known(b, a);
}

/* The type of sqrt(a) and the like. */
static gp_ew_type float_of(const value *v)
{
    common t = of_value(v);
    if (t.type == GP_EW_C64)
        return GP_EW_C64;
    return t.type == GP_EW_F64 || (t.type < GP_EW_F32 && !t.small && !v->known) ? GP_EW_F64 : GP_EW_F32;
}

static const char *name_of(const value *v)
{
    return v->known ? v->n.is_int ? "an integer" : "a number with a fraction" : gp_dtype_name(v->dtype);
}

/* ---- operations ------------------------------------------------------------ */

static int emit(checker *c, gp_ew_ins ins)
{
    gp_ew_program *p = c->p;
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
    switch (t) {
    case GP_EW_I32: v.i32 = (int32_t)n.i; break;
    case GP_EW_U32: v.u32 = (uint32_t)n.i; break;
    case GP_EW_I64: case GP_EW_U64: v.i64 = n.i; break;
    case GP_EW_F32: case GP_EW_C64: v.c64[0] = n.is_int ? (float)n.i : (float)n.f; break;
    default: v.f64 = n.f;
    }
    return v;
}

/* Is it the same number for any values of the vars? */
static bool is_same(const gp_ew_ins *a, const gp_ew_ins *b)
{
    bool known = a->var ? *a->var && b->var && !strcmp(a->var, b->var) : !b->var && a->value.u64 == b->value.u64;
    return a->op == GP_EW_NUMBER && a->type == b->type && known;
}

/* The same number again is one operation, if it is not long ago. */
static int emit_number(checker *c, const value *v, gp_ew_type t)
{
    enum { NEAR = 64 };
    gp_ew_ins ins = { .op = GP_EW_NUMBER, .type = t, .value = as_type(v->n, t), .var = v->var };
    for (int i = c->p->n - 1; i >= 0 && i >= c->p->n - NEAR; i--)
        if (is_same(&c->p->ins[i], &ins))
            return i;
    return emit(c, ins);
}

static int as(checker *c, const value *v, gp_ew_type t)
{
    if (v->known)
        return emit_number(c, v, t);
    gp_ew_type from = gp_ew_type_of(v->dtype);
    return from == t ? v->at : emit(c, (gp_ew_ins){ .op = GP_EW_CONVERT, .type = t, .from = from, .a = v->at });
}

static value result(int at, gp_ew_type type, bool small)
{
    return (value){ .at = at, .dtype = gp_ew_dtype[type], .small = small };
}

static value truth_at(int at)
{
    return (value){ .at = at, .dtype = GP_U8, .small = true };
}

/* 0 or 1, in i32. */
static int truth_of(checker *c, const value *v)
{
    if (v->known)
        return emit_number(c, &(value){ .n = { true, v->n.f != 0, v->n.f != 0 }, .var = v->var ? "" : NULL },
                           GP_EW_I32);
    bool is = gp_ew_is_truth(c->p->ins[v->at].op);
    return is ? v->at : emit(c, (gp_ew_ins){ .op = GP_EW_TRUTH, .type = gp_ew_type_of(v->dtype), .a = v->at });
}

/* ---- names ----------------------------------------------------------------- */

/* The buffer of the only input or output, which is then called by its name too; NULL: it has none of its own. */
static const char *only_buffer(gp_shape *s, const char *side)
{
    const gp_node *n = gp_shape_node(s, side);
    if (n && n->kind == GP_LIST && n->n == 1)
        n = n->item[0];
    return n && n->kind == GP_SCALAR ? n->text : NULL;
}

static int find_port(const char *const *name, int n, const char *want, const char *only)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(name[i], want))
            return i;
    return n == 1 && only && !strcmp(only, want) ? 0 : -1;
}

int gp_ew_port_of(gp_shape *s, const char *name)
{
    return find_port(s->in_name, s->nin, name, only_buffer(s, "in"));
}

static int find_output(gp_shape *s, const char *name)
{
    return find_port(s->out_name, s->nout, name, only_buffer(s, "out"));
}

int gp_ew_axis_of(const char *name)
{
    return name[0] == 'i' && name[1] >= '0' && name[1] <= '9' && !name[2] ? name[1] - '0' : -1;
}

static const char *near_name(checker *c, const char *word, gp_near *near, bool vars)
{
    gp_num n;
    const char *only = only_buffer(c->s, "in");
    *near = (gp_near)GP_NEAR(word);
    if (vars)
        gp_shape_var(c->s, word, &n, near);
    for (gp_entry *e = NULL; vars && (e = gp_table_next(&c->names, e));)
        gp_near_try(near, e->name);
    for (int i = 0; i < c->s->nin; i++)
        gp_near_try(near, c->s->nin == 1 && only ? only : c->s->in_name[i]);
    return gp_near_text(near);
}

/* Is it assigned further down? */
static bool is_later(const checker *c, const gp_expr_node *e)
{
    for (const gp_expr_node *n = e; n < c->tree->node + c->tree->n; n++)
        if (n->op == GP_EXPR_ASSIGN && !strcmp(n->name, e->name))
            return true;
    return false;
}

static bool unknown(checker *c, const gp_expr_node *e)
{
    gp_near near;
    gp_num n;
    const char *hint = near_name(c, e->name, &near, true);
    gp_node name = *c->text;
    if (is_later(c, e))
        return FAIL(c, e, "'%s' has no value yet: it is assigned here or further down", e->name);
    if (near.distance)
        return FAIL(c, e, "no input, variable or assigned name '%s'%s", e->name, hint);
    name.quoted = false, name.text = e->name, name.len = strlen(e->name), name.expr = NULL, name.line = 0;
    name.at = gp_node_part(c->text, e->from, e->len);
    return gp_shape_eval(c->s, &name, &n);     /* a var, which is no number: says why */
}

/* Input i of the program. */
static value load(checker *c, int i)
{
    gp_dtype t = c->s->in[c->p->space.in[i].port].dtype;
    if (c->loaded[i] < 0)
        c->loaded[i] = emit(c, (gp_ew_ins){ .op = GP_EW_LOAD, .type = gp_ew_type_of(t), .from = t, .a = i });
    return (value){ .at = c->loaded[i], .dtype = t, .small = is_small(t) };
}

/* What counts up to `most`: small, where f32 holds each. */
static value count_up_to(int64_t most, gp_ew_type *type)
{
    bool small = most <= 1 << 24;
    *type = small ? GP_EW_I32 : GP_EW_I64;
    return (value){ .dtype = gp_ew_dtype[*type], .small = small };
}

static bool axis_index(checker *c, const gp_expr_node *e, int axis, value *out)
{
    gp_ew_type type;
    if (axis >= c->frame->ndim)
        return FAIL(c, e, "'%s': frames here have %d ax%cs, and their indices are i0 to i%d", e->name, c->frame->ndim,
                    c->frame->ndim == 1 ? 'i' : 'e', c->frame->ndim - 1);
    *out = count_up_to(c->frame->dim[axis], &type);
    if (c->index[axis] < 0)
        c->index[axis] = emit(c, (gp_ew_ins){ .op = GP_EW_INDEX, .type = type, .a = axis });
    out->index = (gp_ew_index){ .is = true, .to.axis = axis };
    out->at = c->index[axis];
    return true;
}

static bool name(checker *c, const gp_expr_node *e, value *out)
{
    int i = gp_table_index(&c->names, e->name), port = gp_ew_port_of(c->s, e->name), axis = gp_ew_axis_of(e->name);
    *out = (value){ .known = true, .var = e->name };
    if (i >= 0)
        *out = c->named[i];
    else if (port >= 0)
        *out = load(c, gp_ew_add_input(&c->p->space, &(gp_ew_input){ .port = port, .known = true }));
    else if (gp_shape_var(c->s, e->name, &out->n, NULL))
        return true;
    else if (axis >= 0)
        return axis_index(c, e, axis, out);
    else
        return unknown(c, e);
    return true;
}

/* NAME[...] of what is no input. */
static bool no_input(checker *c, const gp_expr_node *e)
{
    gp_near near;
    gp_num n;
    bool made = gp_table_index(&c->names, e->name) >= 0 || find_output(c->s, e->name) >= 0;
    if (made || is_later(c, e))
        return FAIL(c, e, "'%s' is computed here, and only inputs have neighbours: compute it in a stage of its own "
                    "before this one, and name that one's output in 'in'", e->name);
    if (gp_shape_var(c->s, e->name, &n, NULL))
        return FAIL(c, e, "'%s' is a variable, and only inputs have neighbours", e->name);
    return FAIL(c, e, "no input '%s'%s", e->name, near_name(c, e->name, &near, false));
}

static int load_near(checker *c, const gp_ew_ins *ins)
{
    gp_ew_program *p = c->p;
    size_t bytes = sizeof *ins->shift * (size_t)p->space.ndim;
    for (int i = 0; i < p->n; i++)
        if (p->ins[i].op == GP_EW_NEAR && p->ins[i].a == ins->a && !memcmp(p->ins[i].shift, ins->shift, bytes))
            return i;
    return emit(c, *ins);
}

/* NAME[...], whose indices begin at v; the result takes the place of the first. */
static bool neighbour(checker *c, const gp_expr_node *e, value *v)
{
    gp_ew_place at[GP_MAXDIM];
    int port = gp_ew_port_of(c->s, e->name);
    if (port < 0)
        return no_input(c, e);
    for (int k = 0; k < e->axis && k < GP_MAXDIM; k++)
        at[k] = (gp_ew_place){ v[k].known, v[k].n, v[k].index, v[k].where };
    gp_dtype t = c->s->in[port].dtype;
    gp_ew_ins ins = { .op = GP_EW_NEAR, .type = gp_ew_type_of(t), .from = t };
    if (!gp_ew_neighbour(c->s, c->text, e, port, at, c->p, &ins))
        return false;
    *v = ins.shift ? (value){ .at = load_near(c, &ins), .dtype = t, .small = is_small(t) } : load(c, ins.a);
    return true;
}

/* PORT.shape[k], PORT.size: of the frame that is there, so that a smaller one has its own. */
static bool size(checker *c, const gp_expr_node *e, value *out)
{
    gp_ew_program *p = c->p;
    int port = gp_ew_port_of(c->s, e->name), i = 0;
    gp_ew_type type;
    gp_near near;
    if (port < 0)
        return FAIL(c, e, "no input '%s'%s", e->name, near_name(c, e->name, &near, false));
    const gp_type *t = &c->s->in[port];
    if (e->axis >= t->ndim)
        return FAIL(c, e, "'%s' has no axis %d; axes count from 0", e->name, e->axis);
    while (i < p->nsizes && (p->size[i].port != port || p->size[i].axis != e->axis))
        i++;
    if (i == GP_EW_PORTS)
        return FAIL(c, e, "more than %d different sizes", GP_EW_PORTS);
    p->size[i] = (gp_ew_size){ port, e->axis };
    p->nsizes = i < p->nsizes ? p->nsizes : i + 1;
    *out = count_up_to(e->axis < 0 ? gp_count(t) : t->dim[e->axis], &type);
    out->at = emit(c, (gp_ew_ins){ .op = GP_EW_SIZE, .type = type, .a = i });
    return true;
}

static value frame_info(checker *c, bool time)
{
    gp_ew_type type = time ? GP_EW_F64 : GP_EW_I64;
    if (c->frame_at[time] < 0)
        c->frame_at[time] = emit(c, (gp_ew_ins){ .op = GP_EW_FRAME, .type = type, .a = time });
    return result(c->frame_at[time], type, false);
}

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

static bool check_bits(checker *c, const gp_expr_node *e, const value *v)
{
    int n = operators[e->op].n, len = (int)e->len;
    const char *sign = c->text->text + e->from;
    if (n == 1)
        return is_integer(v) || FAIL(c, e, "'%.*s' is for integers, not %s", len, sign, name_of(v));
    if (!is_integer(&v[0]) || !is_integer(&v[1]))
        return FAIL(c, e, "'%.*s' is for integers, not %s and %s", len, sign, name_of(&v[0]), name_of(&v[1]));
    return of_two(&v[0], &v[1]).type < GP_EW_F32
        || FAIL(c, e, "'%.*s' has no type of integers that holds both %s and %s", len, sign, name_of(&v[0]),
                name_of(&v[1]));
}

/* Does f32 hold it? */
static bool is_narrow(const value *v)
{
    common t = of_value(v);
    return v->known || t.small || t.type == GP_EW_F32;
}

static bool check_complex(checker *c, const gp_expr_node *e, const value *v)
{
    const int n = operators[e->op].n, len = (int)e->len;
    const char *sign = c->text->text + e->from;
    const bool choice = operators[e->op].rule == CHOICE;
    if (choice && is_complex(v))
        return FAIL(c, e, "'%.*s' wants a condition that is a real number, not c64: write z != 0", len, sign);
    if (!takes_complex(e->op))
        return FAIL(c, e, "'%.*s' is for real numbers, not %s%s%s: take re(z), im(z) or abs(z); of c64 there are + - * "
                    "/, ==, !=, ? : and arg, conj, exp, isnan", len, sign, name_of(v), n > 1 ? " and " : "",
                    n > 1 ? name_of(&v[1]) : "");
    for (int i = choice; i < n; i++)
        if (!is_complex(&v[i]) && !is_narrow(&v[i]))
            return FAIL(c, e, "'%.*s' has no type that holds both c64 and %s: complex(x, 0) rounds the %s to f32", len,
                        sign, name_of(&v[i]), name_of(&v[i]));
    return true;
}

static gp_ew_type float_type(const value *v, int n)
{
    gp_ew_type a = float_of(&v[0]), b = n > 1 ? float_of(&v[1]) : a;
    return a > b ? a : b;
}

/* Of a real number: that itself, 0, or its angle. */
static void compute_part(checker *c, const gp_expr_node *e, value *v)
{
    const gp_ew_type type = of_value(v).type, to = float_of(v);
    const value zero = { .known = true, .n = { true, 0, 0 } };
    gp_ew_ins ins = { .op = operators[e->op].op, .type = type, .a = v->at };
    if (type == GP_EW_C64)
        *v = result(emit(c, ins), gp_ew_makes(&ins), false);
    else if (e->op == GP_EXPR_IM)
        v->at = as(c, &zero, type);
    if (type == GP_EW_C64 || e->op != GP_EXPR_ARG)
        return;
    ins = (gp_ew_ins){ .op = GP_EW_ATAN2, .type = to, .a = as(c, &zero, to) };
    ins.b = as(c, v, to);
    *v = result(emit(c, ins), to, false);
}

/* Operands that are not all known; the result takes the place of the first. */
static void compute(checker *c, const gp_expr_node *e, value *v)
{
    gp_ew_op op = operators[e->op].op;
    rule r = operators[e->op].rule;
    int n = operators[e->op].n;
    bool swapped = e->op == GP_EXPR_GREATER || e->op == GP_EXPR_GREATER_EQUAL;
    const value *a = r == CHOICE ? v + 1 : v, *b = r == CHOICE ? v + 2 : v + (n > 1);
    common t = of_two(a, b);
    gp_ew_type type = r == FLOAT ? float_type(v, n) : r == TRUTHS ? GP_EW_I32 : r == PARTS ? GP_EW_F32 : t.type;
    if (r == PART) {
        compute_part(c, e, v);
        return;
    }
    if ((r == WHOLE || r == IS_NAN) && type < GP_EW_F32) {       /* an integer is what it is rounded to */
        if (r == IS_NAN)
            *v = truth_at(emit_number(c, &(value){ .n = { true, 0, 0 } }, GP_EW_I32));
        else
            *v = result(v->at, t.type, t.small);
        return;
    }
    gp_ew_ins ins = { .op = op, .type = type };
    if (r == CHOICE) {
        ins.a = truth_of(c, v), ins.b = as(c, a, type), ins.c = as(c, b, type);
    } else if (r == TRUTHS) {
        ins.a = truth_of(c, a), ins.b = truth_of(c, b);
    } else {
        ins.a = as(c, swapped ? b : a, type);
        if (n > 1)
            ins.b = as(c, swapped ? a : b, type);
    }
    int at = emit(c, ins);
    *v = r == COMPARED || r == TRUTHS || r == IS_NAN ? truth_at(at)
       : result(at, gp_ew_makes(&ins), r != FLOAT && r != PARTS && t.small);
}

static bool apply(checker *c, const gp_expr_node *e, value *v)
{
    int n = operators[e->op].n;
    bool known = operators[e->op].rule != PARTS, complex = false;
    const char *var = NULL;
    gp_num num[3], made;
    if (operators[e->op].rule == BITS && !check_bits(c, e, v))
        return false;
    for (int i = 0; i < n; i++)
        known &= v[i].known, complex |= is_complex(&v[i]), var = v[i].var ? "" : var, num[i] = v[i].n;
    if (complex && !check_complex(c, e, v))
        return false;
    if (!known) {
        gp_ew_index index = { .is = false };
        if (v[0].index.is && n == 2 && v[1].known)
            index = gp_ew_moved(e, &v[0].index, v[1].n, var != NULL);
        else if (n == 2 && v[1].index.is && v[0].known && e->op == GP_EXPR_ADD)
            index = gp_ew_moved(e, &v[1].index, v[0].n, var != NULL);
        compute(c, e, v);
        v->index = index;
        return true;
    }
    if (!gp_ew_fold(c->s, gp_node_part(c->text, e->from, e->len), e->op, num, &made))
        return false;
    *v = (value){ .known = true, .var = var, .n = made };
    return true;
}

/* ---- statements --------------------------------------------------------------- */

static bool assign(checker *c, const gp_expr_node *e, const value *v)
{
    gp_num n;
    if (gp_ew_port_of(c->s, e->name) >= 0)
        return FAIL(c, e, "'%s' is an input; give what is assigned another name%s", e->name,
                    find_output(c->s, e->name) < 0 ? "" : ", as in out: {result: BUFFER}");
    if (gp_shape_var(c->s, e->name, &n, NULL))
        return FAIL(c, e, "'%s' is a variable of the pipeline; give what is assigned another name", e->name);
    if (gp_ew_axis_of(e->name) >= 0 && find_output(c->s, e->name) < 0)
        return FAIL(c, e, "'%s' is the index along an axis; give what is assigned another name", e->name);
    if (gp_table_index(&c->names, e->name) >= 0)
        return FAIL(c, e, "'%s' is assigned twice", e->name);
    gp_entry *x = gp_table_put(&c->names, e->name, c->nnamed);
    if (!x)
        return FAIL(c, e, "out of memory");
    c->named[c->nnamed++] = *v;
    return true;
}

/* A known number is rounded once. */
static gp_ew_type stored_from(const value *v, gp_dtype to)
{
    gp_ew_type t = gp_ew_type_of(to);
    if (!v->known || !to)
        return of_value(v).type;
    return t >= GP_EW_F32 || (v->n.is_int && fits(v->n, t)) ? t : v->n.is_int ? GP_EW_I64 : GP_EW_F64;
}

static bool store(checker *c, int port, const value *v)
{
    gp_ew_type t = stored_from(v, c->s->out[port].dtype);
    gp_dtype *dtype = &c->s->out[port].dtype;
    if (is_complex(v) && *dtype && *dtype != GP_C64)
        return gp_shape_fail_at(c->s, c->text->at, "output '%s' is declared as %s, and c64 is what is computed: store "
                                "re(z), im(z) or abs(z)", c->s->out_name[port], gp_dtype_name(*dtype));
    if (!*dtype)
        *dtype = v->known ? gp_ew_dtype[t] : v->dtype;
    c->p->out[port] = *dtype;
    emit(c, (gp_ew_ins){ .op = GP_EW_STORE, .type = t, .from = *dtype, .d = port, .a = as(c, v, t) });
    return true;
}

static bool store_named(checker *c, int port)
{
    gp_shape *s = c->s;
    gp_near near = GP_NEAR(s->out_name[port]);
    const char *only = s->nout == 1 ? only_buffer(s, "out") : NULL;
    int i = gp_table_index(&c->names, s->out_name[port]);
    i = i < 0 && only ? gp_table_index(&c->names, only) : i;
    if (i >= 0)
        return store(c, port, &c->named[i]);
    for (gp_entry *e = NULL; (e = gp_table_next(&c->names, e));)
        if (find_output(s, e->name) < 0)
            gp_near_try(&near, e->name);
    return gp_shape_fail_at(s, c->text->at, "nothing is assigned to output '%s'%s", only ? only : s->out_name[port],
                            gp_near_text(&near));
}

static bool finish(checker *c, const value *last)
{
    bool ok = true;
    if (!last) {
        for (int i = 0; i < c->s->nout; i++)
            ok &= store_named(c, i);
        return ok;
    }
    if (c->s->nout > 1)
        return gp_shape_fail_at(c->s, c->text->at, "one expression for %d outputs: give each a line, as in '%s = ...'",
                                c->s->nout, c->s->out_name[0]);
    return store(c, 0, last);
}

/* ---- the walk --------------------------------------------------------------- */

int gp_ew_takes(const gp_expr_node *e)
{
    return e->op == GP_EXPR_AT ? e->axis : e->op == GP_EXPR_INDEX || e->op == GP_EXPR_ASSIGN ? 1
         : e->op < sizeof operators / sizeof *operators ? operators[e->op].n : 0;
}

static value *step(checker *c, const gp_expr_node *e, value *top)
{
    int n = gp_ew_takes(e);
    switch (e->op) {
    case GP_EXPR_NUMBER:
        *top = (value){ .known = true, .n = e->value };
        return top + 1;
    case GP_EXPR_VAR:
        return name(c, e, top) ? top + 1 : NULL;
    case GP_EXPR_PORT:
        return size(c, e, top) ? top + 1 : NULL;
    case GP_EXPR_FRAME:
        c->p->frame = true;
        *top = frame_info(c, e->axis == 1);
        return top + 1;
    case GP_EXPR_INDEX:
        top[-1].where = e;
        return top;
    case GP_EXPR_AT:
        return neighbour(c, e, top - n) ? top - n + 1 : NULL;
    case GP_EXPR_ASSIGN:
        return assign(c, e, top - 1) ? top - 1 : NULL;
    default:
        return apply(c, e, top - n) ? top - n + 1 : NULL;
    }
}

void gp_ew_mark(gp_ew_program *p)
{
    for (int i = p->n - 1; i >= 0; i--) {
        gp_ew_ins *x = &p->ins[i];
        int n = gp_ew_operands(x->op);
        x->needed |= x->op == GP_EW_STORE || x->op == GP_EW_FOLD;
        p->indices |= x->needed && x->op == GP_EW_INDEX ? 1u << x->a : 0;
        for (int k = 0; x->needed && x->shift && k < p->space.ndim; k++)
            if (x->shift[k] >= 0)
                p->shift[x->shift[k]].needed = true;
        const int operand[] = { x->a, x->b, x->c };
        for (int k = 0; x->needed && k < n; k++)
            p->ins[operand[k]].needed = true;
    }
}

static bool walk(checker *c, value *stack)
{
    const gp_expr *t = c->tree;
    value *top = stack;
    for (int i = 0; i < t->n; i++)
        if (!(top = step(c, &t->node[i], top)))
            return false;
    return finish(c, t->node[t->n - 1].op == GP_EXPR_ASSIGN ? NULL : top - 1);
}

bool gp_ew_check(gp_shape *s, const gp_node *text, const gp_expr *tree, const gp_type *frame, gp_ew_program *p)
{
    size_t n = (size_t)tree->n + 1;
    checker c = { .s = s, .text = text, .tree = tree, .frame = frame, .p = p,
                  .named = gp_shape_alloc(s, n * sizeof *c.named), .frame_at = { -1, -1 } };
    value *stack = gp_shape_alloc(s, (n + 2) * sizeof *stack);
    for (int i = 0; i < GP_EW_PORTS; i++)
        c.loaded[i] = -1;
    for (int i = 0; i < GP_MAXDIM; i++)
        c.index[i] = -1;
    p->nout = s->nout, p->cut = gp_ew_cut(frame);
    bool ok = walk(&c, stack);
    for (int i = 0; i < p->space.nin; i++)
        p->in[i] = s->in[p->space.in[i].port].dtype;
    if (ok && p->space.refused)        /* what find_inputs() refuses, the walk has to refuse too: nothing is computed of it */
        ok = gp_shape_fail_at(s, text->at, "has an index that is neither one of the frame's nor known before the run");
    if (ok)
        gp_ew_mark(p);
    gp_table_free(&c.names);
    return ok;
}
