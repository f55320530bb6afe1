/* sort.h - numbers in order: as unsigned ones of the same order, and sorted in shared memory. */
#ifndef GP_SORT_H
#define GP_SORT_H

enum { LOG_SIZE = 11, SIZE = 1 << LOG_SIZE };          /* what a block sorts */

#ifdef __cplusplus
#include "map.h"

/* ---- order ------------------------------------------------------------- */

/* Unsigned numbers in the order of x; NaN is above all. */
static __device__ __forceinline__ uint32_t ordered(float x)
{
    const uint32_t u = x == 0 ? 0 : __float_as_uint(x);
    return x != x ? ~0u : u >> 31 ? ~u : u | 0x80000000u;
}
static __device__ __forceinline__ uint64_t ordered(double x)
{
    const uint64_t u = x == 0 ? 0 : (uint64_t)__double_as_longlong(x);
    return x != x ? ~uint64_t(0) : u >> 63 ? ~u : u | uint64_t(1) << 63;
}
static __device__ __forceinline__ uint32_t ordered(gp_half x) { return ordered(gp_from_half(x)); }
static __device__ __forceinline__ uint64_t ordered(uint64_t x) { return x; }
static __device__ __forceinline__ uint64_t ordered(int64_t x) { return (uint64_t)x ^ uint64_t(1) << 63; }
template <class T> static __device__ __forceinline__ uint32_t ordered(T x)     /* of integers that i64 holds */
{
    return (uint32_t)((int64_t)x - (int64_t)real<T>::min);
}

static __device__ __forceinline__ bool before(uint32_t a, uint32_t b) { return a < b; }
static __device__ __forceinline__ bool before(uint64_t a, uint64_t b) { return a < b; }

/* ---- runs -------------------------------------------------------------- */

/* The smaller of two to `a`, or with `down` the larger. */
template <class E> static __device__ __forceinline__ void order(E &a, E &b, bool down)
{
    const E x = a, y = b;
    if (before(y, x) != down)
        a = y, b = x;
}

/* The entries of a block, in chunks of `size`: sorts runs of `run`, which lie `apart` and are bitonic, up and down in
 * turns; where there is one in a chunk, up. */
template <class E> static __device__ __forceinline__ void sort_runs(E *v, unsigned run, unsigned apart, unsigned size)
{
    const unsigned all = SIZE / apart * run, spread = apart / run, turn = apart & (size - 1);
    for (unsigned half = run / 2; half; half /= 2) {
        __syncthreads();
        for (unsigned i = threadIdx.x; i < all / 2; i += blockDim.x) {
            const unsigned t = 2 * i - (i & (half - 1)), within = t & (run - 1), a = (t - within) * spread + within;
            order(v[a], v[a + half], a & turn);
        }
    }
}

#endif
#endif
