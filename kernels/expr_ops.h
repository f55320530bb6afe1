/* expr_ops.h - the operations of the kind `expr`, once for both back ends: kernels/expr.cpp calls them for pieces of
 * a frame, and so does the kernel that stages/expr/cuda.c writes, for each element.
 *
 * Integers wrap around, and an operation that C leaves undefined has a value here. Floats are IEEE's, each result
 * rounded once: nothing is contracted. What is not a basic operation (exp, log, sin, pow, ...) is the device's
 * own, and may differ in its last bits.
 *
 * c64 is two f32: its operations are specializations, behind those of real numbers. */
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
template <class A, class B> struct gp_ew_same { static constexpr bool is = false; };
template <class A> struct gp_ew_same<A, A> { static constexpr bool is = true; };
template <class T> struct gp_ew_part { typedef T type; };      /* of abs(a) */
template <> struct gp_ew_part<gp_c64> { typedef float type; };
#define GP_EW_FUNCTION template <class T> static __device__ __forceinline__
#define GP_EW_COMPLEX template <> __device__ __forceinline__
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

/* The smallest integer stays itself. CUDA's compiler makes the instruction `abs` of what it sees through here, and that
 * makes the largest integer of it. */
GP_EW_FUNCTION typename gp_ew_part<T>::type gp_ew_abs(T a)
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

/* ---- c64 ---------------------------------------------------------------------- */

GP_EW_FUNCTION gp_c64 gp_ew_complex(T re, T im) { return { re, im }; }
GP_EW_FUNCTION float gp_ew_re(T a) { return a.re; }
GP_EW_FUNCTION float gp_ew_im(T a) { return a.im; }
GP_EW_FUNCTION T gp_ew_conj(T a) { return { a.re, -a.im }; }
GP_EW_FUNCTION float gp_ew_arg(T a) { return gp_ew_atan2<float>(a.im, a.re); }

GP_EW_COMPLEX gp_c64 gp_ew_neg(gp_c64 a) { return { -a.re, -a.im }; }
GP_EW_COMPLEX float gp_ew_abs(gp_c64 a) { return gp_ew_hypot<float>(a.re, a.im); }
GP_EW_COMPLEX gp_c64 gp_ew_add(gp_c64 a, gp_c64 b) { return { a.re + b.re, a.im + b.im }; }
GP_EW_COMPLEX gp_c64 gp_ew_sub(gp_c64 a, gp_c64 b) { return { a.re - b.re, a.im - b.im }; }
GP_EW_COMPLEX int gp_ew_eq(gp_c64 a, gp_c64 b) { return a.re == b.re && a.im == b.im; }
GP_EW_COMPLEX int gp_ew_ne(gp_c64 a, gp_c64 b) { return a.re != b.re || a.im != b.im; }
GP_EW_COMPLEX int gp_ew_isnan(gp_c64 a) { return a.re != a.re || a.im != a.im; }

GP_EW_COMPLEX gp_c64 gp_ew_mul(gp_c64 a, gp_c64 b)
{
    return { a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re };
}

/* Smith, "Algorithm 116: Complex division", 1962, with a factor in place of the last two divisions, as NumPy has it. */
GP_EW_COMPLEX gp_c64 gp_ew_div(gp_c64 a, gp_c64 b)
{
    const float re = fabs(b.re), im = fabs(b.im);
    if (re == 0 && im == 0)
        return { a.re / re, a.im / re };
    if (re >= im) {
        const float ratio = b.im / b.re, factor = 1 / (b.re + b.im * ratio);
        return { (a.re + a.im * ratio) * factor, (a.im - a.re * ratio) * factor };
    }
    const float ratio = b.re / b.im, factor = 1 / (b.im + b.re * ratio);
    return { (a.re * ratio + a.im) * factor, (a.im * ratio - a.re) * factor };
}

GP_EW_COMPLEX gp_c64 gp_ew_exp(gp_c64 a)
{
    const float r = gp_ew_exp<float>(a.re);
    if (a.im == 0)                     /* so that inf * 0 is none */
        return { r, a.im };
    return { r * gp_ew_cos<float>(a.im), r * gp_ew_sin<float>(a.im) };
}

/* ---- neighbors: index `at` of an axis of n elements, `by` further ---------------- */

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

/* a b c d | a b c d | a b c d */
GP_EW_FUNCTION T gp_ew_periodic(T at, T by, T n)
{
    T i = (at + by) % n;
    return i < 0 ? i + n : i;
}

/* -1: there is 0. */
GP_EW_FUNCTION T gp_ew_zero(T at, T by, T n)
{
    T i = at + by;
    return i >= 0 && i < n ? i : T(-1);
}

/* 0 where the place is below 0. */
GP_EW_FUNCTION T gp_ew_inside(const T *in, long long at) { return at < 0 ? T{} : in[at]; }

/* Is it so for all threads of a warp that come here? On the CPU threads have no warps. */
static __device__ __forceinline__ bool gp_ew_all(bool is)
{
#ifdef GP_CPU
    return is;
#else
    return __all_sync(__activemask(), is);
#endif
}

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

/* A value in another type that is computed in; stored as another type, by the one rule for that. A real number is the
 * real part of a c64. */
template <class To, class From> static __device__ __forceinline__ To gp_ew_change(From a)
{
    if constexpr (gp_ew_same<To, gp_c64>::is)
        return { (float)a, 0 };
    else
        return (To)a;
}

template <class To, class From> static __device__ __forceinline__ To gp_ew_store(From a)
{
    if constexpr (gp_ew_same<From, gp_c64>::is)
        return a;
    else if constexpr (gp_ew_same<To, gp_c64>::is)
        return { cast_to<float>(a), 0 };
    else
        return cast_to<To>(a);
}

/* An element as it is computed with. */
GP_EW_FUNCTION T gp_ew_load(T a) { return a; }
static __device__ __forceinline__ float gp_ew_load(gp_half a) { return gp_from_half(a); }

#endif
