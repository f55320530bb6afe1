/* half.h - cuda_fp16.h for the CPU: what a user's kernel gets by that name, with a toolkit or
 * without. engine/cpu/headers.c puts it where the compiler looks first; gpipe.h is before it.
 *
 * Everything is computed in double and rounded once, to nearest even where its name says nothing
 * else; a NaN is 0x7fff, as on a GPU. Warp functions are those of cpu.h. */
#ifndef __CUDA_FP16_H__
#define __CUDA_FP16_H__
#define __CUDA_FP16_TYPES_EXIST__

/* ---- rounding --------------------------------------------------------- */

/* x + rest, where rest is less than half of the last place of x: a float that keeps in its last
 * bit whether it is exact rounds to what the sum rounds to (Boldo, Melquiond: rounding to odd). */
static inline gp_half gp_round_half(double x, double rest = 0)
{
    float f = (float)x;
    double off = x - (double)f != 0 ? x - (double)f : rest;
    unsigned u = __float_as_uint(f);
    if (f != 0 && x - x == 0 && f - f == 0 && off != 0 && !(u & 1))
        f = __uint_as_float((off > 0) == (f > 0) ? u + 1 : u - 1);
    return gp_to_half(f);
}

enum gp_way { gp_rn, gp_rz, gp_rd, gp_ru };

static inline gp_half gp_round_half_to(double x, gp_way way)
{
    gp_half h = gp_round_half(x);
    double v = gp_from_half(h);
    bool in = way == gp_rn || v != v ? false : v > x ? way == gp_rd || (way == gp_rz && x > 0)
        : v < x ? way == gp_ru || (way == gp_rz && x < 0) : false;
    if (in)
        h.bits = (unsigned short)(h.bits + ((v > x) == !(h.bits >> 15) ? -1 : 1));
    return h;
}

/* Far beyond the largest half all are alike. */
template <class T> static inline double gp_near(T x)
{
    const int far = 1 << 20;
    if (sizeof x < sizeof far)
        return x;
    return x > T(far) ? far : T(-1) < 0 && x < T(-far) ? -far : (double)x;
}

/* ---- types ------------------------------------------------------------ */

struct __nv_bfloat16;
struct __half_raw { unsigned short x; };
struct __half2_raw { unsigned short x, y; };

struct __half {
    unsigned short __x;
    __half() = default;
    __half(gp_half h) : __x(h.bits) {}
    constexpr __half(__half_raw r) : __x(r.x) {}
    __half(float v) : __x(gp_to_half(v).bits) {}
    __half(double v) : __x(gp_round_half(v).bits) {}
    explicit __half(const __nv_bfloat16 v);
#define GP_FROM(T) __half(T v) : __x(gp_round_half(gp_near(v)).bits) {}
    GP_FROM(short) GP_FROM(unsigned short) GP_FROM(int) GP_FROM(unsigned) GP_FROM(long)
    GP_FROM(unsigned long) GP_FROM(long long) GP_FROM(unsigned long long)
#undef GP_FROM
    operator __half_raw() const { return { __x }; }
    operator float() const { return gp_from_half(gp_half{ __x }); }
    operator bool() const { return (__x & 0x7fff) != 0; }
#define GP_TO(T) operator T() const { return gp_to_int<T>(truncf(float(*this))); }
    GP_TO(char) GP_TO(signed char) GP_TO(unsigned char) GP_TO(short) GP_TO(unsigned short)
    GP_TO(int) GP_TO(unsigned) GP_TO(long) GP_TO(unsigned long) GP_TO(long long)
    GP_TO(unsigned long long)
#undef GP_TO
};

struct alignas(4) __half2 {
    __half x, y;
    __half2() = default;
    constexpr __half2(const __half &a, const __half &b) : x(a), y(b) {}
    __half2(__half2_raw r) : x(__half_raw{ r.x }), y(__half_raw{ r.y }) {}
    operator __half2_raw() const { return { x.__x, y.__x }; }
};

typedef __half half, __nv_half, nv_half;
typedef __half2 half2, __nv_half2, nv_half2;
typedef __half_raw __nv_half_raw;
typedef __half2_raw __nv_half2_raw;

/* ---- conversions ------------------------------------------------------ */

#define GP_HALF static inline __half
#define GP_HALF2 static inline __half2

GP_HALF __ushort_as_half(unsigned short v) { return __half_raw{ v }; }
GP_HALF __short_as_half(short v) { return __half_raw{ (unsigned short)v }; }
static inline unsigned short __half_as_ushort(__half h) { return h.__x; }
static inline short __half_as_short(__half h) { return (short)h.__x; }
static inline float __half2float(__half h) { return h; }
GP_HALF __float2half(float v) { return v; }
GP_HALF __double2half(double v) { return v; }
GP_HALF __float2half_rn(float v) { return v; }
GP_HALF __float2half_rz(float v) { return gp_round_half_to(v, gp_rz); }
GP_HALF __float2half_rd(float v) { return gp_round_half_to(v, gp_rd); }
GP_HALF __float2half_ru(float v) { return gp_round_half_to(v, gp_ru); }
#define GP_WAY(T, name, way, rint_)                                                       \
    GP_HALF __##name##2half_##way(T v) { return gp_round_half_to(gp_near(v), gp_##way); } \
    static inline T __half2##name##_##way(__half h) { return gp_to_int<T>(rint_((float)h)); }
#define GP_WAYS(T, name)                                                                  \
    GP_WAY(T, name, rn, rintf) GP_WAY(T, name, rz, truncf) GP_WAY(T, name, rd, floorf)    \
    GP_WAY(T, name, ru, ceilf)
GP_WAYS(short, short)
GP_WAYS(unsigned short, ushort)
GP_WAYS(int, int)
GP_WAYS(unsigned, uint)
GP_WAYS(long long, ll)
GP_WAYS(unsigned long long, ull)
#undef GP_WAYS
#undef GP_WAY
static inline signed char __half2char_rz(__half h) { return h; }
static inline unsigned char __half2uchar_rz(__half h) { return h; }

GP_HALF2 __halves2half2(__half a, __half b) { return { a, b }; }
GP_HALF2 make_half2(__half a, __half b) { return { a, b }; }
GP_HALF2 __half2half2(__half a) { return { a, a }; }
GP_HALF2 __float2half2_rn(float v) { return { v, v }; }
GP_HALF2 __floats2half2_rn(float a, float b) { return { a, b }; }
GP_HALF2 __float22half2_rn(float2 v) { return { v.x, v.y }; }
static inline float2 __half22float2(__half2 h) { return { h.x, h.y }; }
static inline float __low2float(__half2 h) { return h.x; }
static inline float __high2float(__half2 h) { return h.y; }
GP_HALF __low2half(__half2 h) { return h.x; }
GP_HALF __high2half(__half2 h) { return h.y; }
GP_HALF2 __low2half2(__half2 h) { return { h.x, h.x }; }
GP_HALF2 __high2half2(__half2 h) { return { h.y, h.y }; }
GP_HALF2 __lowhigh2highlow(__half2 h) { return { h.y, h.x }; }
GP_HALF2 __lows2half2(__half2 a, __half2 b) { return { a.x, b.x }; }
GP_HALF2 __highs2half2(__half2 a, __half2 b) { return { a.y, b.y }; }

/* ---- arithmetic ------------------------------------------------------- */

#define GP_1(name, x_)                                                                    \
    static inline __half name(__half h)                                                   \
    {                                                                                     \
        double x = (float)h;                                                              \
        return gp_round_half(x_);                                                         \
    }
#define GP_2(name, x_)                                                                    \
    static inline __half name(__half h, __half k)                                         \
    {                                                                                     \
        double x = (float)h, y = (float)k;                                                \
        return gp_round_half(x_);                                                         \
    }
#define GP_PAIR1(name, each) GP_HALF2 name(__half2 a) { return { each(a.x), each(a.y) }; }
#define GP_PAIR2(name, each)                                                              \
    GP_HALF2 name(__half2 a, __half2 b) { return { each(a.x, b.x), each(a.y, b.y) }; }
#define GP_PAIR3(name, each)                                                              \
    GP_HALF2 name(__half2 a, __half2 b, __half2 c)                                        \
    {                                                                                     \
        return { each(a.x, b.x, c.x), each(a.y, b.y, c.y) };                              \
    }

GP_HALF gp_saturate(__half h) { return __saturatef(h); }
GP_HALF gp_relu(__half h) { return (float)h < 0 ? 0.f : (float)h; }

/* The product is exact; the sum leaves a rest (Knuth, TAOCP 4.2.2, theorem B). */
GP_HALF __hfma(__half a, __half b, __half c)
{
    double p = (double)(float)a * (double)(float)b, q = (float)c, s = p + q, r = s - p;
    return gp_round_half(s, (p - (s - r)) + (q - r));
}

GP_2(__hadd, x + y) GP_2(__hsub, x - y) GP_2(__hmul, x * y) GP_2(__hdiv, x / y)
GP_1(__hneg, -x) GP_1(__habs, fabs(x))
#define GP_KINDS(name)                                                                    \
    GP_HALF name##_rn(__half a, __half b) { return name(a, b); }                          \
    GP_HALF name##_sat(__half a, __half b) { return gp_saturate(name(a, b)); }            \
    GP_PAIR2(name##2, name) GP_PAIR2(name##2_rn, name##_rn) GP_PAIR2(name##2_sat, name##_sat)
GP_KINDS(__hadd) GP_KINDS(__hsub) GP_KINDS(__hmul)
#undef GP_KINDS
GP_HALF __hfma_sat(__half a, __half b, __half c) { return gp_saturate(__hfma(a, b, c)); }
GP_HALF __hfma_relu(__half a, __half b, __half c) { return gp_relu(__hfma(a, b, c)); }
GP_PAIR3(__hfma2, __hfma) GP_PAIR3(__hfma2_sat, __hfma_sat) GP_PAIR3(__hfma2_relu, __hfma_relu)
GP_PAIR2(__h2div, __hdiv) GP_PAIR1(__hneg2, __hneg) GP_PAIR1(__habs2, __habs)
GP_HALF2 __hcmadd(__half2 a, __half2 b, __half2 c)     /* of complex numbers */
{
    __half re = __hfma(a.x, b.x, c.x), im = __hfma(a.x, b.y, c.y);
    return { __hfma(__hneg(a.y), b.y, re), __hfma(a.y, b.x, im) };
}

GP_2(__hmax, gp_fmax(x, y)) GP_2(__hmin, gp_fmin(x, y))
GP_2(__hmax_nan, x != x || y != y ? x + y : gp_fmax(x, y))
GP_2(__hmin_nan, x != x || y != y ? x + y : gp_fmin(x, y))
GP_PAIR2(__hmax2, __hmax) GP_PAIR2(__hmin2, __hmin)
GP_PAIR2(__hmax2_nan, __hmax_nan) GP_PAIR2(__hmin2_nan, __hmin_nan)

/* ---- comparisons ------------------------------------------------------ */

static inline bool __hisnan(__half h) { return (h.__x & 0x7fff) > 0x7c00; }
static inline int __hisinf(__half h) { return (h.__x & 0x7fff) == 0x7c00 ? h.__x >> 15 ? -1 : 1 : 0; }
GP_HALF2 __hisnan2(__half2 h) { return { (float)__hisnan(h.x), (float)__hisnan(h.y) }; }

/* With a NaN false, or (..u) true. */
#define GP_COMPARE_(name, op, odd)                                                        \
    static inline bool __h##name(__half a, __half b)                                      \
    {                                                                                     \
        return __hisnan(a) || __hisnan(b) ? odd : (float)a op (float)b;                   \
    }                                                                                     \
    GP_HALF2 __h##name##2(__half2 a, __half2 b)                                           \
    {                                                                                     \
        return { (float)__h##name(a.x, b.x), (float)__h##name(a.y, b.y) };                \
    }                                                                                     \
    static inline bool __hb##name##2(__half2 a, __half2 b)                                \
    {                                                                                     \
        return __h##name(a.x, b.x) && __h##name(a.y, b.y);                                \
    }                                                                                     \
    static inline unsigned __h##name##2_mask(__half2 a, __half2 b)                        \
    {                                                                                     \
        return (__h##name(a.x, b.x) ? 0xffffu : 0) | (__h##name(a.y, b.y) ? 0xffff0000u : 0); \
    }
#define GP_COMPARE(name, op) GP_COMPARE_(name, op, false) GP_COMPARE_(name##u, op, true)
GP_COMPARE(eq, ==) GP_COMPARE(ne, !=) GP_COMPARE(lt, <) GP_COMPARE(le, <=)
GP_COMPARE(gt, >) GP_COMPARE(ge, >=)
#undef GP_COMPARE
#undef GP_COMPARE_

/* ---- functions -------------------------------------------------------- */

#define GP_FUNCTION(name, x_) GP_1(h##name, x_) GP_PAIR1(h2##name, h##name)
GP_FUNCTION(sqrt, sqrt(x)) GP_FUNCTION(rsqrt, 1 / sqrt(x)) GP_FUNCTION(rcp, 1 / x)
GP_FUNCTION(exp, exp(x)) GP_FUNCTION(exp2, exp2(x)) GP_FUNCTION(exp10, pow(10, x))
GP_FUNCTION(log, log(x)) GP_FUNCTION(log2, log2(x)) GP_FUNCTION(log10, log10(x))
GP_FUNCTION(sin, sin(x)) GP_FUNCTION(cos, cos(x)) GP_FUNCTION(tanh, tanh(x))
GP_FUNCTION(tanh_approx, tanh(x)) GP_FUNCTION(floor, floor(x)) GP_FUNCTION(ceil, ceil(x))
GP_FUNCTION(rint, rint(x)) GP_FUNCTION(trunc, trunc(x))
#undef GP_FUNCTION

/* ---- operators -------------------------------------------------------- */

#define GP_OPERATOR(T, op, name)                                                          \
    static inline T operator op(const T &a, const T &b) { return name(a, b); }            \
    static inline T &operator op##=(T &a, const T &b) { return a = name(a, b); }
GP_OPERATOR(__half, +, __hadd) GP_OPERATOR(__half, -, __hsub)
GP_OPERATOR(__half, *, __hmul) GP_OPERATOR(__half, /, __hdiv)
GP_OPERATOR(__half2, +, __hadd2) GP_OPERATOR(__half2, -, __hsub2)
GP_OPERATOR(__half2, *, __hmul2) GP_OPERATOR(__half2, /, __h2div)
#undef GP_OPERATOR
#define GP_OPERATOR(T, op, name)                                                          \
    static inline bool operator op(const T &a, const T &b) { return name(a, b); }
GP_OPERATOR(__half, ==, __heq) GP_OPERATOR(__half, !=, __hneu) GP_OPERATOR(__half, <, __hlt)
GP_OPERATOR(__half, <=, __hle) GP_OPERATOR(__half, >, __hgt) GP_OPERATOR(__half, >=, __hge)
GP_OPERATOR(__half2, ==, __hbeq2) GP_OPERATOR(__half2, !=, __hbneu2) GP_OPERATOR(__half2, <, __hblt2)
GP_OPERATOR(__half2, <=, __hble2) GP_OPERATOR(__half2, >, __hbgt2) GP_OPERATOR(__half2, >=, __hbge2)
#undef GP_OPERATOR
#define GP_STEP(T, op, by)                                                                \
    static inline T &operator op##op(T &a) { return a = a op by; }                        \
    static inline T operator op##op(T &a, int) { T old = a; a = a op by; return old; }
GP_STEP(__half, +, __half(1.f)) GP_STEP(__half, -, __half(1.f))
GP_STEP(__half2, +, __half2(1.f, 1.f)) GP_STEP(__half2, -, __half2(1.f, 1.f))
#undef GP_STEP
GP_HALF operator+(const __half &a) { return a; }
GP_HALF operator-(const __half &a) { return __hneg(a); }
GP_HALF2 operator+(const __half2 &a) { return a; }
GP_HALF2 operator-(const __half2 &a) { return __hneg2(a); }

/* ---- atomics ---------------------------------------------------------- */

static inline __half atomicAdd(__half *p, __half v)
{
    unsigned short old = __atomic_load_n(&p->__x, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&p->__x, &old, (__ushort_as_half(old) + v).__x, true,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
    return __ushort_as_half(old);
}

static inline __half2 atomicAdd(__half2 *p, __half2 v)
{
    return { atomicAdd(&p->x, v.x), atomicAdd(&p->y, v.y) };
}

#undef GP_PAIR3
#undef GP_PAIR2
#undef GP_PAIR1
#undef GP_2
#undef GP_1
#undef GP_HALF2
#undef GP_HALF
#endif
