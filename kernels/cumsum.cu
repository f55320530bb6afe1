/* cumsum.cu - sums of all elements up to each, along the middle axis of (outer, rows, inner), in an order that depends
 * on these numbers alone: a chunk of PART rows goes on from the sum of those before it, one element after the other.
 *
 *   cumsum_parts_T   the sums of chunks, which are then summed up themselves, by the same kernels
 *   cumsum_T         all sums
 */
#include "join.h"

static constexpr size_t PART = 64;      /* as in stages/cumsum.c */

/* Calls f(o, part, q) of each chunk. */
template <class F> static __device__ __forceinline__ void each_part(size_t outer, size_t rows, size_t inner, F f)
{
    const size_t parts = (rows + PART - 1) / PART, n = outer * parts * inner;
    for (size_t i = first_x(); i < n; i += step_x()) {
        const size_t line = i / inner;
        f(line / parts, line % parts, i % inner);
    }
}

#define CUMSUM(name, T)                                                                             \
    extern "C" __global__ void cumsum_parts_##name(accumulator<T>::type *dst, size_t dst_stride, const T *src, \
                                                   size_t src_stride, size_t outer, size_t rows, size_t inner) \
    {                                                                                               \
        dst += blockIdx.z * dst_stride, src += blockIdx.z * src_stride;                             \
        each_part(outer, rows, inner, [=](size_t o, size_t part, size_t q) {                        \
            const size_t parts = (rows + PART - 1) / PART, end = part + 1 < parts ? PART : rows - part * PART; \
            const T *x = src + (o * rows + part * PART) * inner + q;                                \
            accumulator<T>::type a = 0;                                                             \
            for (size_t k = 0; k < end; k++)                                                        \
                a = sum::join(a, convert<accumulator<T>::type>(x[k * inner]));                      \
            dst[(o * parts + part) * inner + q] = a;                                                \
        });                                                                                         \
    }                                                                                               \
    extern "C" __global__ void cumsum_##name(total<T>::sum *dst, size_t dst_stride, const T *src, size_t src_stride, \
                                             const accumulator<T>::type *before, size_t before_stride,  \
                                             size_t outer, size_t rows, size_t inner)               \
    {                                                                                               \
        dst += blockIdx.z * dst_stride, src += blockIdx.z * src_stride;                             \
        before += blockIdx.z * before_stride;                                                       \
        each_part(outer, rows, inner, [=](size_t o, size_t part, size_t q) {                        \
            const size_t parts = (rows + PART - 1) / PART, end = part + 1 < parts ? PART : rows - part * PART; \
            const size_t first = (o * rows + part * PART) * inner + q;                              \
            accumulator<T>::type a = part ? before[(o * parts + part - 1) * inner + q] : 0;         \
            for (size_t k = 0; k < end; k++) {                                                      \
                a = sum::join(a, convert<accumulator<T>::type>(src[first + k * inner]));            \
                dst[first + k * inner] = gp_total<total<T>::sum>(a);                                \
            }                                                                                       \
        });                                                                                         \
    }
GP_REALS(CUMSUM)

#define ENTRY(name, T) GP_K(cumsum_parts_##name) GP_K(cumsum_##name)
GP_KERNELS(GP_REALS(ENTRY))
