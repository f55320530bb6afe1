/* types.c - the table of types, see engine/cli/topics/expr.md.
 *
 * A number that is known now (a var, what the text spells, and what is made of these) has no type until it meets a
 * frame, and then has that one's. Values of 8- and 16-bit integers are computed in i32 and stay `small`: with floats
 * they make f32, as f32 holds them; other integers make f64. c64 takes in what f32 holds. */
#include "base/num.h"
#include "checker.h"

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

bool gp_ew_is_small(gp_dtype t)
{
    return t == GP_U8 || t == GP_I8 || t == GP_U16 || t == GP_I16;
}

bool gp_ew_is_integer(const gp_ew_term *v)
{
    return v->known ? v->n.is_int : gp_ew_type_of(v->dtype) < GP_EW_F32;
}

bool gp_ew_is_complex(const gp_ew_term *v)
{
    return !v->known && v->dtype == GP_C64;
}

gp_ew_common gp_ew_common_of(const gp_ew_term *v)
{
    if (!v->known)
        return (gp_ew_common){ gp_ew_type_of(v->dtype), v->small };
    if (!v->n.is_int)
        return (gp_ew_common){ GP_EW_F32, false };
    return gp_num_fits(&v->n, GP_I32) ? (gp_ew_common){ GP_EW_I32, true }
         : (gp_ew_common){ gp_num_fits(&v->n, GP_I64) ? GP_EW_I64 : GP_EW_U64, false };
}

static gp_ew_common of_both(gp_ew_common a, gp_ew_common b)
{
    if (a.type > b.type) {
        gp_ew_common t = a;
        a = b, b = t;
    }
    if (b.type >= GP_EW_F64)
        return b;
    if (b.type == GP_EW_F32)
        return a.type == GP_EW_F32 || a.small ? b : (gp_ew_common){ GP_EW_F64, false };
    if (a.type == b.type)
        return (gp_ew_common){ a.type, a.small && b.small };
    if (b.type == GP_EW_U64)
        return a.type == GP_EW_U32 ? b : (gp_ew_common){ GP_EW_F64, false };
    return (gp_ew_common){ GP_EW_I64, false };
}

/* A known number takes the type of the other, if that can hold it. */
static gp_ew_common of_known(const gp_ew_term *known, const gp_ew_term *other)
{
    gp_ew_common t = gp_ew_common_of(other);
    if (!known->n.is_int)
        return of_both(t, (gp_ew_common){ GP_EW_F32, false });
    if (t.type >= GP_EW_F32 || gp_num_fits(&known->n, gp_ew_dtype[t.type]))
        return t;
    return of_both(t, gp_ew_common_of(known));
}

gp_ew_common gp_ew_common_of_two(const gp_ew_term *a, const gp_ew_term *b)
{
    if (a->known && b->known && a->n.is_int && b->n.is_int && a->n.i >= 0 && b->n.i >= 0)
        return gp_ew_common_of(a->n.i > b->n.i ? a : b);
    return a->known == b->known ? of_both(gp_ew_common_of(a), gp_ew_common_of(b))
         : a->known ? of_known(a, b) : of_known(b, a);
}

/* The type of sqrt(a) and the like. */
gp_ew_type gp_ew_float_of(const gp_ew_term *v)
{
    gp_ew_common t = gp_ew_common_of(v);
    if (t.type == GP_EW_C64)
        return GP_EW_C64;
    return t.type == GP_EW_F64 || (t.type < GP_EW_F32 && !t.small && !v->known) ? GP_EW_F64 : GP_EW_F32;
}

const char *gp_ew_type_name(const gp_ew_term *v)
{
    return v->known ? v->n.is_int ? "an integer" : "a number with a fraction" : gp_dtype_name(v->dtype);
}
