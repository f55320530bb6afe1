/* expr_ops.h - the operations of the kind `expr`, once for both back ends: kernels/expr.cpp calls them for pieces of
 * a frame, and so does the kernel that stages/expr/cuda.c writes, for each element.
 *
 * Integers wrap around, and an operation that C leaves undefined has a value here. Floats are IEEE's, each result
 * rounded once: nothing is contracted. What is not a basic operation (exp, log, sin, pow, ...) is the device's
 * own, and may differ in its last bits. */
#ifndef GP_EXPR_OPS_H
#define GP_EXPR_OPS_H

#include "map.h"

/* As in expr.h. */
struct gp_ew_axes {
    int n, narrow;
    long long dim[8], stride[16][8];
};

struct gp_ew_tiles {
    long long rows, line;
    unsigned magic[8], up[8];
};

template <class T> struct gp_ew_wrap { typedef T type; };
template <> struct gp_ew_wrap<int32_t> { typedef uint32_t type; };
template <> struct gp_ew_wrap<int64_t> { typedef uint64_t type; };
#define GP_EW_FUNCTION template <class T> static __device__ __forceinline__
#define GP_EW_WRAP(a) ((typename gp_ew_wrap<T>::type)(a))

GP_EW_FUNCTION T gp_ew_add(T a, T b) { return (T)(GP_EW_WRAP(a) + GP_EW_WRAP(b)); }
GP_EW_FUNCTION T gp_ew_sub(T a, T b) { return (T)(GP_EW_WRAP(a) - GP_EW_WRAP(b)); }
GP_EW_FUNCTION T gp_ew_mul(T a, T b) { return (T)(GP_EW_WRAP(a) * GP_EW_WRAP(b)); }
GP_EW_FUNCTION T gp_ew_div(T a, T b) { return a / b; }

GP_EW_FUNCTION T gp_ew_neg(T a)
{
    if constexpr (real<T>::integer)
        return gp_ew_sub(T(0), a);
    else
        return -a;
}

/* Of the smallest integer itself. CUDA's compiler makes the instruction `abs` of what it sees through here, and that makes
 * the largest integer of it. */
GP_EW_FUNCTION T gp_ew_abs(T a)
{
    if constexpr (!real<T>::integer) {
        return fabs(a);
    } else if constexpr (real<T>::is_signed) {
        T minus = gp_ew_sub(T(0), a);
#ifdef __CUDA_ARCH__
        if constexpr (sizeof(T) == 4)
            asm("neg.s32 %0, %1;" : "=r"(minus) : "r"(a));
        else
            asm("neg.s64 %0, %1;" : "=l"(minus) : "l"(a));
#endif
        return a < 0 && a != minus ? minus : a;
    } else {
        return a;
    }
}

/* The sign is that of `a`; of integers 0 for b = 0. */
GP_EW_FUNCTION T gp_ew_rem(T a, T b)
{
    if constexpr (!real<T>::integer)
        return fmod(a, b);
    else if constexpr (real<T>::is_signed)
        return b == 0 || b == -1 ? T(0) : a % b;
    else
        return b == 0 ? T(0) : a % b;
}

/* A NaN stays one. */
GP_EW_FUNCTION T gp_ew_min(T a, T b) { return a < b || a != a ? a : b; }
GP_EW_FUNCTION T gp_ew_max(T a, T b) { return a > b || a != a ? a : b; }

GP_EW_FUNCTION int gp_ew_lt(T a, T b) { return a < b; }
GP_EW_FUNCTION int gp_ew_le(T a, T b) { return a <= b; }
GP_EW_FUNCTION int gp_ew_eq(T a, T b) { return a == b; }
GP_EW_FUNCTION int gp_ew_ne(T a, T b) { return a != b; }
GP_EW_FUNCTION int gp_ew_truth(T a) { return a != T(0); }
GP_EW_FUNCTION int gp_ew_not(T a) { return a == T(0); }
GP_EW_FUNCTION int gp_ew_isnan(T a) { return a != a; }
GP_EW_FUNCTION T gp_ew_select(int c, T a, T b) { return c ? a : b; }

GP_EW_FUNCTION T gp_ew_invert(T a) { return ~a; }
GP_EW_FUNCTION T gp_ew_band(T a, T b) { return a & b; }
GP_EW_FUNCTION T gp_ew_bor(T a, T b) { return a | b; }
GP_EW_FUNCTION T gp_ew_bxor(T a, T b) { return a ^ b; }

/* By as many bits as there are, and more: all are shifted out. So they are by a number below 0. */
GP_EW_FUNCTION T gp_ew_shl(T a, T b)
{
    return (uint64_t)b < 8 * sizeof(T) ? (T)(GP_EW_WRAP(a) << b) : T(0);
}

GP_EW_FUNCTION T gp_ew_shr(T a, T b)
{
    return (uint64_t)b < 8 * sizeof(T) ? (T)(a >> b) : a < T(0) ? T(-1) : T(0);
}

GP_EW_FUNCTION T gp_ew_floor(T a) { return floor(a); }
GP_EW_FUNCTION T gp_ew_ceil(T a) { return ceil(a); }
GP_EW_FUNCTION T gp_ew_round(T a) { return rint(a); }
GP_EW_FUNCTION T gp_ew_sqrt(T a) { return sqrt(a); }
GP_EW_FUNCTION T gp_ew_rsqrt(T a) { return T(1) / sqrt(a); }
GP_EW_FUNCTION T gp_ew_exp(T a) { return exp(a); }
GP_EW_FUNCTION T gp_ew_log(T a) { return log(a); }
GP_EW_FUNCTION T gp_ew_log2(T a) { return log2(a); }
GP_EW_FUNCTION T gp_ew_log10(T a) { return log10(a); }
GP_EW_FUNCTION T gp_ew_sin(T a) { return sin(a); }
GP_EW_FUNCTION T gp_ew_cos(T a) { return cos(a); }
GP_EW_FUNCTION T gp_ew_tan(T a) { return tan(a); }
GP_EW_FUNCTION T gp_ew_pow(T a, T b) { return pow(a, b); }
GP_EW_FUNCTION T gp_ew_atan2(T a, T b) { return atan2(a, b); }
GP_EW_FUNCTION T gp_ew_hypot(T a, T b) { return hypot(a, b); }

/* ---- neighbours: index `at` of an axis of n elements, `by` further ---------------- */

GP_EW_FUNCTION T gp_ew_nearest(T at, T by, T n)
{
    T i = at + by;
    return by < 0 ? (i < 0 ? T(0) : i) : i < n ? i : n - 1;
}

/* d c b a | a b c d | d c b a */
GP_EW_FUNCTION T gp_ew_reflect(T at, T by, T n)
{
    T i = at + by;
    if (by < 0 && i < 0)
        i = -1 - i;
    if (i >= n) {
        i %= 2 * n;
        i = i < n ? i : 2 * n - 1 - i;
    }
    return i;
}

/* -1: there is 0. */
GP_EW_FUNCTION T gp_ew_zero(T at, T by, T n)
{
    T i = at + by;
    return i >= 0 && i < n ? i : T(-1);
}

/* 0 where the place is below 0. */
GP_EW_FUNCTION T gp_ew_inside(const T *in, long long at) { return at < 0 ? T{} : in[at]; }

/* The index along axis k of element `rest` of the axes up to it; `rest` becomes that of the axes before. */
static __device__ __forceinline__ int32_t gp_ew_split(int32_t &rest, const gp_ew_axes &axes,
                                                      const gp_ew_tiles &tiles, int k)
{
    int32_t q = (int32_t)((uint64_t)(uint32_t)rest * tiles.magic[k] >> tiles.up[k]);
    int32_t at = rest - q * (int32_t)axes.dim[k];
    rest = q;
    return at;
}

static __device__ __forceinline__ int64_t gp_ew_split(int64_t &rest, const gp_ew_axes &axes, const gp_ew_tiles &,
                                                      int k)
{
    int64_t at = rest % axes.dim[k];
    rest /= axes.dim[k];
    return at;
}

/* An element as it is computed with; the way back is convert(). */
GP_EW_FUNCTION T gp_ew_load(T a) { return a; }
static __device__ __forceinline__ float gp_ew_load(gp_half a) { return gp_from_half(a); }

#endif
