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

struct sum {
    template <class T> static __device__ __forceinline__ T join(T a, T b)
    {
        if constexpr (real<T>::integer)
            return T(uint64_t(a) + uint64_t(b));
        else
            return a + b;
    }
};

/* Of two NaNs an addition keeps either, as the compiler likes; so a sum that is NaN gets the same bits everywhere. */
static __device__ __forceinline__ double one_nan(double a)
{
    return a == a ? a : __longlong_as_double(0x7fffffffffffffffll);
}

static __device__ __forceinline__ float order(gp_half x) { return gp_from_half(x); }
template <class T> static __device__ __forceinline__ T order(T x) { return x; }

struct least {
    template <class T> static __device__ __forceinline__ T join(T a, T b)
    {
        return order(b) < order(a) || order(b) != order(b) ? b : a;
    }
};

struct most {
    template <class T> static __device__ __forceinline__ T join(T a, T b)
    {
        return order(b) > order(a) || order(b) != order(b) ? b : a;
    }
};

#endif
