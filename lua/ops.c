/* ops.c - bulk operations of views: whole frames in one call, at the speed of
 * memory, not of Lua.
 *
 * Types: element-wise operations and copies between dtypes round to nearest
 * even, saturate, and turn NaN into 0 when the result is an integer, as `cast`
 * does. Arithmetic computes in the widest type that is exact for its dtype:
 * float for f16 f32, double for f64 and integers to 32 bits, long double for 64
 * bits. Reductions add in a fixed order, so that results are the same anywhere.
 *
 * One function of each job per dtype comes from the tables of X-macros; with
 * loops this plain the compiler vectorizes them. */
#include <string.h>
#include "base/half.h"
#include "view.h"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#endif

/* ---- what an element is ---------------------------------------------- */

/* dtype, C type in memory, type to compute in, type wide enough for any copy */
#define ROWS(X, ...)                                                          \
    X(__VA_ARGS__, U8, uint8_t, double, double)                               \
    X(__VA_ARGS__, I8, int8_t, double, double)                                \
    X(__VA_ARGS__, U16, uint16_t, double, double)                             \
    X(__VA_ARGS__, I16, int16_t, double, double)                              \
    X(__VA_ARGS__, U32, uint32_t, double, double)                             \
    X(__VA_ARGS__, I32, int32_t, double, double)                              \
    X(__VA_ARGS__, U64, uint64_t, long double, long double)                   \
    X(__VA_ARGS__, I64, int64_t, long double, long double)                    \
    X(__VA_ARGS__, F16, uint16_t, float, double)                              \
    X(__VA_ARGS__, F32, float, float, double)                                 \
    X(__VA_ARGS__, F64, double, double, double)

/* Adding and then subtracting 1.5 * 2^52 rounds to nearest even where |v| < 2^51. */
static inline double clamp_round(double v, double lo, double hi)
{
    v = v == v ? v : 0;
    v = v < lo ? lo : v;
    v = v > hi ? hi : v;
    return (v + 0x1.8p52) - 0x1.8p52;
}

/* They round first: what is less than 2^63 may be rounded to it. */
static inline int64_t to_i64(long double v)
{
    v = rintl(v);
    return v != v ? 0 : v >= 0x1p63L ? INT64_MAX : v <= -0x1p63L ? INT64_MIN : (int64_t)v;
}

static inline uint64_t to_u64(long double v)
{
    v = rintl(v);
    return v != v || v <= 0 ? 0 : v >= 0x1p64L ? UINT64_MAX : (uint64_t)v;
}

#define GET_U8(s)  (s)
#define GET_I8(s)  (s)
#define GET_U16(s) (s)
#define GET_I16(s) (s)
#define GET_U32(s) (s)
#define GET_I32(s) (s)
#define GET_U64(s) (s)
#define GET_I64(s) (s)
#define GET_F16(s) gp_half_to_float(s)
#define GET_F32(s) (s)
#define GET_F64(s) (s)
#define PUT_U8(v)  (uint8_t)(int32_t)clamp_round((double)(v), 0, UINT8_MAX)
#define PUT_I8(v)  (int8_t)(int32_t)clamp_round((double)(v), INT8_MIN, INT8_MAX)
#define PUT_U16(v) (uint16_t)(int32_t)clamp_round((double)(v), 0, UINT16_MAX)
#define PUT_I16(v) (int16_t)(int32_t)clamp_round((double)(v), INT16_MIN, INT16_MAX)
#define PUT_U32(v) (uint32_t)clamp_round((double)(v), 0, UINT32_MAX)
#define PUT_I32(v) (int32_t)clamp_round((double)(v), INT32_MIN, INT32_MAX)
#define PUT_U64(v) to_u64((long double)(v))
#define PUT_I64(v) to_i64((long double)(v))
#define PUT_F16(v) gp_half_from_double((double)(v))
#define PUT_F32(v) (float)(v)
#define PUT_F64(v) (double)(v)

_Noreturn static void refuse(lua_State *L, const gp_lua_view *v, const char *what)
{
    gp_lua_fail(L, "'%s' is c64: %s takes real numbers, use parts()", v->name, what);
}

static void want_same(lua_State *L, const gp_lua_view *y, const gp_lua_view *x)
{
    if (x->type.dtype != y->type.dtype)
        gp_lua_fail(L, "'%s' is %s, '%s' is %s: copy() converts", x->name,
                    gp_dtype_name(x->type.dtype), y->name, gp_dtype_name(y->type.dtype));
    if (x->count != y->count)
        gp_lua_fail(L, "'%s' has %" PRId64 " elements, '%s' has %" PRId64
                    ": take slices of one size",
                    x->name, x->count, y->name, y->count);
}

/* ---- copy, fill ------------------------------------------------------ */

#define COPY_CASE(S, from, n, dst, src, D, T, C, W)                           \
    case GP_##D:                                                              \
        for (int64_t i = 0; i < (n); i++)                                     \
            ((T *)(dst))[i] = PUT_##D((from)GET_##S((src)[i]));               \
        break;
#define COPY_FROM(unused, S, T, C, W)                                         \
    static void copy_##S(gp_dtype to, void *dst, const T *src, int64_t n)     \
    {                                                                         \
        switch (to) {                                                         \
        ROWS_TO(COPY_CASE, S, W, n, dst, src)                                 \
        default: break;                                                       \
        }                                                                     \
    }
/* The same rows once more, because a macro does not expand inside itself. */
#define ROWS_TO(X, ...)                                                       \
    X(__VA_ARGS__, U8, uint8_t, , ) X(__VA_ARGS__, I8, int8_t, , )            \
    X(__VA_ARGS__, U16, uint16_t, , ) X(__VA_ARGS__, I16, int16_t, , )        \
    X(__VA_ARGS__, U32, uint32_t, , ) X(__VA_ARGS__, I32, int32_t, , )        \
    X(__VA_ARGS__, U64, uint64_t, , ) X(__VA_ARGS__, I64, int64_t, , )        \
    X(__VA_ARGS__, F16, uint16_t, , ) X(__VA_ARGS__, F32, float, , )          \
    X(__VA_ARGS__, F64, double, , )
ROWS(COPY_FROM, )

static void convert(gp_dtype to, void *dst, gp_dtype from, const void *src, int64_t n)
{
    switch (from) {
#define CASE(unused, S, T, C, W) case GP_##S: copy_##S(to, dst, src, n); break;
    ROWS(CASE, )
#undef CASE
    default: break;
    }
}

/* y:copy(x [, from [, to [, at]]]): elements from .. to of x go to y's elements
 * at, at + 1, ...; by default all of x to the start of y. */
static int op_copy(lua_State *L)
{
    gp_lua_view *y = gp_lua_view_out(L, 1), *x = gp_lua_view_arg(L, 2);
    int64_t from = gp_lua_arg_int(L, 3, 1, 1, x->count + 1, "the first element");
    int64_t to = gp_lua_arg_int(L, 4, x->count, from - 1, x->count, "the last element");
    int64_t at = gp_lua_arg_int(L, 5, 1, 1, y->count + 1, "the place to copy to");
    int64_t n = to - from + 1;
    if (n > y->count - at + 1)
        gp_lua_fail(L, "%" PRId64 " elements of '%s' do not fit '%s', which has %" PRId64
                    " from there on", n, x->name, y->name, y->count - at + 1);
    gp_dtype yt = y->type.dtype, xt = x->type.dtype;
    size_t ys = gp_dtype_size(yt), xs = gp_dtype_size(xt);
    unsigned char *dst = y->u8 + (size_t)(at - 1) * ys;
    const unsigned char *src = x->u8 + (size_t)(from - 1) * xs;
    if (n <= 0)
        return 0;
    if (yt == xt)
        memmove(dst, src, (size_t)n * xs);
    else if (yt == GP_C64 || xt == GP_C64)
        refuse(L, yt == GP_C64 ? y : x, "a copy to or from another dtype");
    else
        convert(yt, dst, xt, src, n);
    return 0;
}

/* y:fill(value): value must fit, as in y[i] = value; c64: fill(re, im). */
static int op_fill(lua_State *L)
{
    gp_lua_view *y = gp_lua_view_out(L, 1);
    size_t size = gp_dtype_size(y->type.dtype), bytes = (size_t)y->count * size;
    if (!y->count)
        return 0;
    gp_lua_set_element(L, y, 0, 2);
    for (size_t done = size; done < bytes; ) {     /* doubling, within the cache */
        size_t n = done < 16384 ? done : 16384;
        n = n < bytes - done ? n : bytes - done;
        memcpy(y->u8 + done, y->data, n);
        done += n;
    }
    return 0;
}

/* ---- arithmetic ------------------------------------------------------ */

enum { ADD, SUB, MUL, DIV, SCALE };

#define EACH(D, C, expr)                                                      \
    for (int64_t i = 0; i < n; i++) {                                         \
        C s = (C)GET_##D(x[i]);                                               \
        y[i] = PUT_##D(expr);                                                 \
    }                                                                         \
    break
#define ARITH(unused, D, T, C, W)                                             \
    static void arith_##D(int op, void *dst, const void *src, const void *other, \
                          long double by, long double plus, int64_t n)        \
    {                                                                         \
        T *y = dst;                                                           \
        const T *x = src, *z = other;                                         \
        C a = (C)by, b = (C)plus;                                             \
        switch (z ? op : op + 8) {                                            \
        case ADD: EACH(D, C, s + (C)GET_##D(z[i]));                           \
        case SUB: EACH(D, C, s - (C)GET_##D(z[i]));                           \
        case MUL: EACH(D, C, s * (C)GET_##D(z[i]));                           \
        case DIV: EACH(D, C, s / (C)GET_##D(z[i]));                           \
        case ADD + 8: EACH(D, C, s + a);                                      \
        case SUB + 8: EACH(D, C, s - a);                                      \
        case MUL + 8: EACH(D, C, s * a);                                      \
        case DIV + 8: EACH(D, C, s / a);                                      \
        case SCALE + 8: EACH(D, C, s * a + b);                                \
        }                                                                     \
    }
ROWS(ARITH, )

static long double exact_number(lua_State *L, int arg)
{
    int64_t i;
    if (gp_lua_toint(L, arg, &i))
        return (long double)i;
    return (long double)luaL_checknumber(L, arg);
}

/* Elements are made from the first to the last: would later ones be made of earlier results? */
static bool is_written_first(const gp_lua_view *y, const void *from)
{
    const char *to = y->data, *at = from;
    return to > at && to < at + (size_t)y->count * gp_dtype_size(y->type.dtype);
}

static int arith(lua_State *L, int op)
{
    static const char *const names[] = { "add", "sub", "mul", "div", "scale" };
    gp_lua_view *y = gp_lua_view_out(L, 1), *x = gp_lua_view_arg(L, 2);
    want_same(L, y, x);
    if (y->type.dtype == GP_C64)
        refuse(L, y, names[op]);
    const void *z = NULL;
    long double a = 0, b = 0;
    if (op != SCALE && lua_isuserdata(L, 3)) {
        gp_lua_view *v = gp_lua_view_arg(L, 3);
        want_same(L, y, v);
        z = v->data;
    } else {
        a = exact_number(L, 3);
        b = op == SCALE ? exact_number(L, 4) : 0;
    }
    if (is_written_first(y, x->data) || (z && is_written_first(y, z)))
        gp_lua_fail(L, "'%s' lies behind what is read, and overlaps it: copy() the rows first", y->name);
    switch (y->type.dtype) {
#define CASE(unused, D, T, C, W) \
    case GP_##D: arith_##D(op, y->data, x->data, z, a, b, y->count); break;
    ROWS(CASE, )
#undef CASE
    default: break;
    }
    return 0;
}

/* y:add(x, a): y = x + a, a a number or a view; sub, mul, div alike. y may be x, or lie before it.
 * y:scale(x, a, b): y = x * a + b. */
static int op_add(lua_State *L) { return arith(L, ADD); }
static int op_sub(lua_State *L) { return arith(L, SUB); }
static int op_mul(lua_State *L) { return arith(L, MUL); }
static int op_div(lua_State *L) { return arith(L, DIV); }
static int op_scale(lua_State *L) { return arith(L, SCALE); }

/* ---- reductions ------------------------------------------------------ */

enum { LANES = 16, BLOCK = 128 };

/* Sums in floats: lane k adds elements k, k + 16, ... in double; then the lanes. */
static double sum_lanes(const double *lane)
{
    double s = 0;
    for (int k = 0; k < LANES; k++)
        s += lane[k];
    return s;
}

#define FLOAT_SUM(D, T)                                                       \
    static double sum_##D(const T *v, int64_t n, int step)                    \
    {                                                                         \
        double lane[LANES] = { 0 };                                           \
        int64_t i = 0;                                                        \
        for (; i + LANES <= n; i += LANES)                                    \
            for (int k = 0; k < LANES; k++)                                   \
                lane[k] += (double)GET_##D(v[(i + k) * step]);                \
        for (; i < n; i++)                                                    \
            lane[i % LANES] += (double)GET_##D(v[i * step]);                  \
        return sum_lanes(lane);                                               \
    }
FLOAT_SUM(F16, uint16_t)
FLOAT_SUM(F32, float)
FLOAT_SUM(F64, double)

#define INT_SUM(D, T, S)                                                      \
    static S sum_##D(const T *v, int64_t n)                                   \
    {                                                                         \
        S s = 0;                                                              \
        for (int64_t i = 0; i < n; i++)                                       \
            s += v[i];                                                        \
        return s;                                                             \
    }
INT_SUM(U8, uint8_t, int64_t)
INT_SUM(I8, int8_t, int64_t)
INT_SUM(U16, uint16_t, int64_t)
INT_SUM(I16, int16_t, int64_t)
INT_SUM(U32, uint32_t, int64_t)
INT_SUM(I32, int32_t, int64_t)
INT_SUM(U64, uint64_t, gp_int128)
INT_SUM(I64, int64_t, gp_int128)

static void push_wide(lua_State *L, const gp_lua_view *v, gp_int128 sum)
{
    if (sum < INT64_MIN || sum > UINT64_MAX)
        gp_lua_fail(L, "the sum of '%s' does not fit in 64 bits: copy() to f64 first", v->name);
    if (sum < 0)
        gp_lua_pushint(L, (int64_t)sum);
    else
        gp_lua_pushuint(L, (uint64_t)sum);
}

/* Pushes the sum: integers stay integers; c64 gives two. */
static int push_sum(lua_State *L, const gp_lua_view *v)
{
    const void *p = v->data;
    int64_t n = v->count;
    switch (v->type.dtype) {
    case GP_U8:  gp_lua_pushint(L, sum_U8(p, n)); break;
    case GP_I8:  gp_lua_pushint(L, sum_I8(p, n)); break;
    case GP_U16: gp_lua_pushint(L, sum_U16(p, n)); break;
    case GP_I16: gp_lua_pushint(L, sum_I16(p, n)); break;
    case GP_U32: gp_lua_pushint(L, sum_U32(p, n)); break;
    case GP_I32: gp_lua_pushint(L, sum_I32(p, n)); break;
    case GP_U64: push_wide(L, v, sum_U64(p, n)); break;
    case GP_I64: push_wide(L, v, sum_I64(p, n)); break;
    case GP_F16: lua_pushnumber(L, sum_F16(p, n, 1)); break;
    case GP_F32: lua_pushnumber(L, sum_F32(p, n, 1)); break;
    case GP_F64: lua_pushnumber(L, sum_F64(p, n, 1)); break;
    case GP_C64:
        lua_pushnumber(L, sum_F32(p, n, 2));
        lua_pushnumber(L, n ? sum_F32((const float *)p + 1, n, 2) : 0);
        return 2;
    case GP_NO_DTYPE: case GP_NDTYPES: lua_pushnil(L);
    }
    return 1;
}

static int op_sum(lua_State *L)
{
    return push_sum(L, gp_lua_view_arg(L, 1));
}

/* v:mean(): a float; nil without elements. */
static int op_mean(lua_State *L)
{
    gp_lua_view *v = gp_lua_view_arg(L, 1);
    if (!v->count)
        return 0;
    int n = 1;
    if (v->type.dtype == GP_I64)               /* 64 bits may not hold the sum */
        lua_pushnumber(L, (double)sum_I64(v->data, v->count));
    else if (v->type.dtype == GP_U64)
        lua_pushnumber(L, (double)sum_U64(v->data, v->count));
    else
        n = push_sum(L, v);
    for (int i = 0; i < n; i++) {
        lua_pushnumber(L, lua_tonumber(L, 2 + i) / (double)v->count);
        lua_replace(L, 2 + i);
    }
    return n;
}

/* Sets i to the place of e, which is there. Blocks are looked at as a whole, without a
 * branch for each element; so they are in SEEK. */
#define WALK_TO(D, e)                                                         \
    for (i = first; i + BLOCK <= n; i += BLOCK) {                             \
        int hit = 0;                                                          \
        for (int64_t k = i; k < i + BLOCK; k++)                               \
            hit |= GET_##D(v[k]) == (e);                                      \
        if (hit)                                                              \
            break;                                                            \
    }                                                                         \
    while (GET_##D(v[i]) != (e))                                              \
        i++

/* The places of the smallest and the largest element, the first of equals;
 * of the first NaN, if there is one and `skip` does not pass it over; -1 when there is
 * nothing. Lanes find the values, then a second pass finds their first places. */
#define EXTREMES(unused, D, T, C, W)                                          \
    static void extremes_##D(const void *p, int64_t n, bool skip, int64_t *at_lo, \
                             int64_t *at_hi)                                  \
    {                                                                         \
        const T *v = p;                                                       \
        int64_t i = 0;                                                        \
        *at_lo = *at_hi = -1;                                                 \
        while (i < n && GET_##D(v[i]) != GET_##D(v[i]))                       \
            i++;                                                              \
        if (i == n) {                                                         \
            *at_lo = *at_hi = n && !skip ? 0 : -1;                            \
            return;                                                           \
        }                                                                     \
        VALUE_##D lo[LANES], hi[LANES], a = GET_##D(v[i]), b = a;             \
        for (int k = 0; k < LANES; k++)                                       \
            lo[k] = hi[k] = a;                                                \
        int64_t first = i;                                                    \
        int odd = i > 0;                                                      \
        for (; i + LANES <= n; i += LANES)                                    \
            for (int k = 0; k < LANES; k++) {                                 \
                VALUE_##D e = GET_##D(v[i + k]);                              \
                odd |= e != e;                                                \
                lo[k] = e < lo[k] ? e : lo[k];                                \
                hi[k] = e > hi[k] ? e : hi[k];                                \
            }                                                                 \
        for (; i < n; i++) {                                                  \
            VALUE_##D e = GET_##D(v[i]);                                      \
            odd |= e != e;                                                    \
            a = e < a ? e : a;                                                \
            b = e > b ? e : b;                                                \
        }                                                                     \
        for (int k = 0; k < LANES; k++) {                                     \
            a = lo[k] < a ? lo[k] : a;                                        \
            b = hi[k] > b ? hi[k] : b;                                        \
        }                                                                     \
        if (odd && !skip) {                                                   \
            for (i = 0; GET_##D(v[i]) == GET_##D(v[i]); i++)                  \
                ;                                                             \
            *at_lo = *at_hi = i;                                              \
            return;                                                           \
        }                                                                     \
        WALK_TO(D, a);                                                        \
        *at_lo = i;                                                           \
        WALK_TO(D, b);                                                        \
        *at_hi = i;                                                           \
    }
#define VALUE_U8 uint8_t
#define VALUE_I8 int8_t
#define VALUE_U16 uint16_t
#define VALUE_I16 int16_t
#define VALUE_U32 uint32_t
#define VALUE_I32 int32_t
#define VALUE_U64 uint64_t
#define VALUE_I64 int64_t
#define VALUE_F16 float
#define VALUE_F32 float
#define VALUE_F64 double
ROWS(EXTREMES, )

enum { LEAST = 1, MOST = 2, PLACE = 4 };

/* v:min(), v:max(): the value; v:minmax(): both; v:argmin(), v:argmax(): the flat index and the value; nil without
 * elements. A NaN is the least and the most, as for `reduce`, but with the argument "skip". */
static int extremes(lua_State *L, int want)
{
    static const char *const nan[] = { "keep", "skip", NULL };
    const gp_lua_view *v = gp_lua_view_arg(L, 1);
    bool skip = luaL_checkoption(L, 2, nan[0], nan);
    int64_t lo, hi;
    int n = 0;
    switch (v->type.dtype) {
#define CASE(unused, D, T, C, W) case GP_##D: extremes_##D(v->data, v->count, skip, &lo, &hi); break;
    ROWS(CASE, )
#undef CASE
    default: refuse(L, v, "the smallest or largest of a view");
    }
    if (lo < 0)
        return 0;
    if (want & PLACE)
        gp_lua_pushint(L, (want & LEAST ? lo : hi) + 1), n++;
    if (want & LEAST)
        n += gp_lua_push_element(L, v, lo);
    if (want & MOST)
        n += gp_lua_push_element(L, v, hi);
    return n;
}

static int op_min(lua_State *L) { return extremes(L, LEAST); }
static int op_max(lua_State *L) { return extremes(L, MOST); }
static int op_minmax(lua_State *L) { return extremes(L, LEAST | MOST); }
static int op_argmin(lua_State *L) { return extremes(L, LEAST | PLACE); }
static int op_argmax(lua_State *L) { return extremes(L, MOST | PLACE); }

/* ---- find ------------------------------------------------------------ */

enum { LT, LE, GT, GE, EQ, NE };

#define SEEK(D, W, cmp)                                                       \
    for (; i < n; i += BLOCK) {                                               \
        int64_t end = n - i < BLOCK ? n : i + BLOCK;                          \
        int hit = 0;                                                          \
        for (int64_t k = i; k < end; k++)                                     \
            hit |= (W)GET_##D(v[k]) cmp level;                                \
        for (; hit; i++)                                                      \
            if ((W)GET_##D(v[i]) cmp level)                                   \
                return i;                                                     \
    }                                                                         \
    return -1
#define FIND(unused, D, T, C, W)                                              \
    static int64_t find_##D(int op, const void *p, int64_t i, int64_t n, W level) \
    {                                                                         \
        const T *v = p;                                                       \
        switch (op) {                                                         \
        case LT: SEEK(D, W, <);                                               \
        case LE: SEEK(D, W, <=);                                              \
        case GT: SEEK(D, W, >);                                               \
        case GE: SEEK(D, W, >=);                                              \
        case EQ: SEEK(D, W, ==);                                              \
        default: SEEK(D, W, !=);                                              \
        }                                                                     \
    }
ROWS(FIND, )

/* v:find(op, level [, start]): the flat index of the first element from `start`
 * on with `element op level`, or nil. op: < <= > >= == ~= */
static int op_find(lua_State *L)
{
    static const char *const names[] = { "<", "<=", ">", ">=", "==", "~=", NULL };
    gp_lua_view *v = gp_lua_view_arg(L, 1);
    int op = luaL_checkoption(L, 2, NULL, names);
    long double level = exact_number(L, 3);
    int64_t start = gp_lua_arg_int(L, 4, 1, 1, v->count + 1, "the start") - 1, at = -1;
    switch (v->type.dtype) {
#define CASE(unused, D, T, C, W) \
    case GP_##D: at = find_##D(op, v->data, start, v->count, (W)level); break;
    ROWS(CASE, )
#undef CASE
    default: refuse(L, v, "find");
    }
    if (at < 0)
        return 0;
    gp_lua_pushint(L, at + 1);
    return 1;
}

const luaL_Reg gp_lua_ops[] = {
    { "copy", op_copy }, { "fill", op_fill },
    { "add", op_add }, { "sub", op_sub }, { "mul", op_mul }, { "div", op_div },
    { "scale", op_scale },
    { "sum", op_sum }, { "mean", op_mean }, { "min", op_min }, { "max", op_max },
    { "minmax", op_minmax }, { "argmin", op_argmin }, { "argmax", op_argmax },
    { "find", op_find },
    {0}
};
