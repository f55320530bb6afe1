/* map.h - what the built-in kernels share: walking over a frame's elements four
 * at a time, and the one rule by which numbers change type.
 *
 * A frame starts at a multiple of 256 bytes, so its quads are aligned. */
#ifndef GP_MAP_H
#define GP_MAP_H

#include <stdint.h>
#include "kernel.h"

#define GP_REALS(X)                                                                  \
    X(u8, uint8_t) X(i8, int8_t) X(u16, uint16_t) X(i16, int16_t) X(u32, uint32_t)   \
    X(i32, int32_t) X(u64, uint64_t) X(i64, int64_t) X(f16, gp_half) X(f32, float)   \
    X(f64, double)

/* Types of pixels, whose values f32 holds. */
#define GP_PIXELS(X)                                                                 \
    X(u8, uint8_t) X(i8, int8_t) X(u16, uint16_t) X(i16, int16_t) X(f16, gp_half) X(f32, float)

/* ---- walking --------------------------------------------------------- */

template <class T> struct alignas(4 * sizeof(T)) quad { T v[4]; };

/* A thread's first element, and how far it is to its next: grids may be smaller
 * than the work. */
static __device__ __forceinline__ size_t first_x()
{
    return blockIdx.x * (size_t)blockDim.x + threadIdx.x;
}

static __device__ __forceinline__ size_t step_x()
{
    return gridDim.x * (size_t)blockDim.x;
}

/* dst[i] = f(src[i]), i < n. Wants n / 4 threads, at least 4. */
template <class Out, class In, class F>
static __device__ __forceinline__ void map(Out *dst, const In *src, size_t n, F f)
{
    for (size_t i = first_x(); i < n / 4; i += step_x()) {
        quad<In> x = ((const quad<In> *)src)[i];
        quad<Out> y;
        for (int k = 0; k < 4; k++)
            y.v[k] = f(x.v[k]);
        ((quad<Out> *)dst)[i] = y;
    }
    size_t i = n / 4 * 4 + first_x();
    if (i < n)
        dst[i] = f(src[i]);
}

/* ---- types ----------------------------------------------------------- */

template <class T> struct real {
    static constexpr bool integer = true, half = false, is_signed = T(-1) < T(0);
    static constexpr int bits = 8 * sizeof(T) - is_signed;
    static constexpr T max = T(~uint64_t(0) >> (64 - bits)), min = T(is_signed ? -max - 1 : 0);
};
struct not_integer { static constexpr bool integer = false, half = false; };
template <> struct real<float> : not_integer {
    static __device__ __forceinline__ float nan() { return __uint_as_float(0x7fffffff); }
};
template <> struct real<double> : not_integer {
    static __device__ __forceinline__ double nan() { return __longlong_as_double(0x7fffffffffffffffll); }
};
template <> struct real<gp_half> { static constexpr bool integer = false, half = true; };

static __device__ __forceinline__ gp_half to_half(float x) { return gp_to_half(x); }

/* Rounded once: f32 rounded to odd on the way keeps what the rounding to f16
 * must know (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums:
 * proved algorithms using rounding to odd", 2008). */
static __device__ __forceinline__ gp_half to_half(double x)
{
    unsigned u = __float_as_uint((float)x);
    if (fabs((double)__uint_as_float(u)) > fabs(x))
        u--;
    if (x == x && (double)__uint_as_float(u) != x)
        u |= 1;
    return gp_to_half(__uint_as_float(u));
}

/* 2^17 and up is infinite in f16, and below it f32 is exact. */
template <class T> static __device__ __forceinline__ gp_half to_half(T x)
{
    if constexpr (sizeof(T) > 2) {
        const T most = T(1) << 17;
        if (x > most)
            x = most;
        if (real<T>::is_signed && x < T(0) - most)
            x = T(0) - most;
    }
    return gp_to_half((float)x);
}

/* Rounds to nearest even and saturates; NaN gives 0. */
template <class To, class F> static __device__ __forceinline__ To round_to(F x)
{
    const F end = 2 * (F)(uint64_t(1) << (real<To>::bits - 1));
    x = rint(x);
    return x != x ? To(0) : x >= end ? real<To>::max : x <= (F)real<To>::min ? real<To>::min : (To)x;
}

template <class To, class From> static __device__ __forceinline__ To saturate(From x)
{
    if (real<From>::is_signed && x < From(0))
        return int64_t(x) < int64_t(real<To>::min) ? real<To>::min : To(x);
    return uint64_t(x) > uint64_t(real<To>::max) ? real<To>::max : To(x);
}

/* A number as another type: to integers the nearest, ties to even, saturating,
 * NaN as 0; to floats the nearest, ties to even. */
template <class To, class From> static __device__ __forceinline__ To convert(From x)
{
    if constexpr (real<From>::half)
        return convert<To>(gp_from_half(x));
    else if constexpr (real<To>::half)
        return to_half(x);
    else if constexpr (!real<To>::integer)
        return (To)x;
    else if constexpr (real<From>::integer)
        return saturate<To>(x);
    else
        return round_to<To>(x);
}

/* The same, and where a float gets another width, a NaN becomes one that is the same on all devices. */
template <class To, class From> static __device__ __forceinline__ To cast_to(From x)
{
    if constexpr (real<From>::half)
        return cast_to<To>(gp_from_half(x));
    else if constexpr (!real<From>::integer && !real<To>::integer && !real<To>::half && sizeof(To) != sizeof(From))
        return x == x ? (To)x : real<To>::nan();
    else
        return convert<To>(x);
}

#endif
