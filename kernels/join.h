/* join.h - what sums and extremes are made with: floats are summed in f64 and integers modulo 2^64, min and max keep
 * the type and, as in NumPy, a NaN. */
#ifndef GP_JOIN_H
#define GP_JOIN_H

#include "map.h"

template <class T> struct accumulator { typedef double type; };
template <> struct accumulator<uint64_t> { typedef uint64_t type; };
#define SIGNED(T) template <> struct accumulator<T> { typedef int64_t type; };
SIGNED(uint8_t) SIGNED(int8_t) SIGNED(uint16_t) SIGNED(int16_t)
SIGNED(uint32_t) SIGNED(int32_t) SIGNED(int64_t)
#undef SIGNED

/* none<T>(): what changes nothing that it is joined with. at_once: it has an of(x), which makes what is kept of eight
 * elements faster than one after the other. */
struct sum {
    static constexpr bool at_once = false;
    template <class T> static __device__ __forceinline__ T none() { return T(); }
    template <class T> static __device__ __forceinline__ T join(T a, T b)
    {
        if constexpr (real<T>::integer)
            return T(uint64_t(a) + uint64_t(b));
        else
            return a + b;
    }
};

/* In f64 whatever the type: the mean of numbers of 64 bits, whose sum 64 bits may not hold. */
struct fsum : sum {};

/* An addition keeps either of two NaNs, as the compiler likes; so a sum that is NaN gets the same bits everywhere. */
static __device__ __forceinline__ double one_nan(double a)
{
    return a == a ? a : __longlong_as_double(0x7fffffffffffffffll);
}

/* The types that elements of type T become: `sum` and `mean` of them. */
template <class T> struct total { typedef int64_t sum; typedef float mean; };
template <> struct total<uint64_t> { typedef uint64_t sum; typedef float mean; };
template <> struct total<gp_half> { typedef gp_half sum, mean; };
template <> struct total<float> { typedef float sum, mean; };
template <> struct total<double> { typedef double sum, mean; };

template <class To, class A> static __device__ __forceinline__ To gp_total(A a)
{
    if constexpr (real<To>::integer)
        return a;
    else if constexpr (real<To>::half)
        return convert<To>(a);
    else
        return (To)one_nan(a);
}

static __device__ __forceinline__ float order(gp_half x) { return gp_from_half(x); }
template <class T> static __device__ __forceinline__ T order(T x) { return x; }

/* The largest number of a type; with `sign` -1 the least. */
template <class T> static __device__ __forceinline__ T furthest(int sign)
{
    if constexpr (real<T>::integer)
        return sign < 0 ? real<T>::min : real<T>::max;
    else
        return convert<T>(sign * (float)INFINITY);
}

struct least {
    static constexpr bool at_once = false;
    template <class T> static __device__ __forceinline__ T none() { return furthest<T>(1); }
    template <class T> static __device__ __forceinline__ T join(T a, T b)
    {
        return order(b) < order(a) || order(b) != order(b) ? b : a;
    }
};

struct most {
    static constexpr bool at_once = false;
    template <class T> static __device__ __forceinline__ T none() { return furthest<T>(-1); }
    template <class T> static __device__ __forceinline__ T join(T a, T b)
    {
        return order(b) > order(a) || order(b) != order(b) ? b : a;
    }
};

template <class A, class B> struct gp_same { static constexpr bool is = false; };
template <class A> struct gp_same<A, A> { static constexpr bool is = true; };

/* An element as it is kept: as A, which it may be already. */
template <class A, class X> static __device__ __forceinline__ A gp_keep(X x)
{
    if constexpr (gp_same<A, X>::is)
        return x;
    else
        return convert<A>(x);
}

/* A number, and which element of the frame it is. */
template <class V> struct best { V v; uint64_t at; };
template <class A> struct finds { static constexpr bool are = false; };
template <class V> struct finds<best<V>> { static constexpr bool are = true; };

/* Does Op add? What elements of type T are kept as meanwhile. */
template <class Op> struct totals { static constexpr bool are = false; };
template <> struct totals<sum> { static constexpr bool are = true; };
template <> struct totals<fsum> { static constexpr bool are = true; };
template <class Op, class T> struct kept { typedef T type; };
template <class T> struct kept<sum, T> { typedef typename accumulator<T>::type type; };
template <class T> struct kept<fsum, T> { typedef double type; };

#endif
