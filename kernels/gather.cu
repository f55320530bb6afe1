/* gather.cu - dst[o, j, q] = src[o, index[j], q]; src is (outer, n, words), dst (outer, m, words). A word has as many
 * bytes as divide a run of elements. Blocks lie along words in x; of those in y, `across` are along the indices and the
 * others along `outer`. On a CPU one thread does all.
 *
 * scatter is the other way round: dst[o, index[j], q] = src[o, j, q], where dst has n along that axis. Of places that are
 * given several times the last j counts, which scatter_last finds: last[place] = j + 1, of zeros. */
#include "map.h"

enum { CLIP, WRAP, ZERO, CHECKED };        /* as in stages/gather.c; ZERO is `skip` in stages/scatter.c */

struct alignas(16) gather_word { uint64_t v[2]; };

/* Where index i is; -1: nowhere. */
static __device__ __forceinline__ int64_t place_of(int64_t i, int64_t n, int mode)
{
    if (i >= 0 && i < n)
        return i;
    if (mode == CHECKED)                   /* from the last: stages/gather.c knows that there is such a place */
        return i + n;
    if (mode == CLIP)
        return i < 0 ? 0 : n - 1;
    if (mode == WRAP)
        return (i % n + n) % n;
    return -1;
}

template <class T>
static __device__ __forceinline__ void take(T *dst, const T *src, size_t words, bool is)
{
#ifdef GP_CPU
    if (words > 1 && is)
        memcpy(dst, src, words * sizeof(T));
    else
#endif
        for (size_t q = first_x(); q < words; q += step_x())
            dst[q] = is ? src[q] : T();
}

template <class T, class I>
static __device__ __forceinline__ void gather(T *dst, const T *src, const I *index, size_t outer, size_t n, size_t m,
                                              size_t words, unsigned across, int mode)
{
    const size_t step_j = across * (size_t)blockDim.y, step_o = gridDim.y / across * (size_t)blockDim.z;
    const size_t first_j = blockIdx.y % across * (size_t)blockDim.y + threadIdx.y;
    for (size_t o = blockIdx.y / across * (size_t)blockDim.z + threadIdx.z; o < outer; o += step_o)
        for (size_t j = first_j; j < m; j += step_j) {
            const int64_t i = place_of(index[j], (int64_t)n, mode);
            take(dst + (o * m + j) * words, src + (o * n + (i < 0 ? 0 : (size_t)i)) * words, words, i >= 0);
        }
}

template <class T, class I>
static __device__ __forceinline__ void scatter(T *dst, const T *src, const I *index, const unsigned *last, size_t outer,
                                               size_t n, size_t m, size_t words, unsigned across, int mode)
{
    const size_t step_j = across * (size_t)blockDim.y, step_o = gridDim.y / across * (size_t)blockDim.z;
    const size_t first_j = blockIdx.y % across * (size_t)blockDim.y + threadIdx.y;
    for (size_t o = blockIdx.y / across * (size_t)blockDim.z + threadIdx.z; o < outer; o += step_o)
        for (size_t j = first_j; j < m; j += step_j) {
            const int64_t i = place_of(index[j], (int64_t)n, mode);
            if (i >= 0 && (!last || last[i] == (unsigned)j + 1))
                take(dst + (o * n + (size_t)i) * words, src + (o * m + j) * words, words, true);
        }
}

template <class I>
static __device__ __forceinline__ void find_last(unsigned *last, const I *index, size_t n, size_t m, int mode)
{
    for (size_t j = first_x(); j < m; j += step_x()) {
        const int64_t i = place_of(index[j], (int64_t)n, mode);
        if (i >= 0)
            atomicMax(&last[i], (unsigned)j + 1);
    }
}

#define GATHER(bytes, T, name, I)                                                                                      \
    extern "C" __global__ void gather_##bytes##_##name(T *dst, size_t dst_stride, const T *src, size_t src_stride,     \
                                                       const I *index, size_t index_stride, size_t outer, size_t n,    \
                                                       size_t m, size_t words, unsigned across, int mode)              \
    {                                                                                                                  \
        gather(dst + blockIdx.z * dst_stride, src + blockIdx.z * src_stride, index + blockIdx.z * index_stride, outer, \
               n, m, words, across, mode);                                                                             \
    }
#define SCATTER(bytes, T, name, I)                                                                                     \
    extern "C" __global__ void scatter_##bytes##_##name(T *dst, const T *src, const I *index, const unsigned *last,    \
                                                        size_t outer, size_t n, size_t m, size_t words,                \
                                                        unsigned across, int mode)                                     \
    {                                                                                                                  \
        scatter(dst, src, index, last, outer, n, m, words, across, mode);                                              \
    }
#define INDICES(bytes, T)                                                                                              \
    GATHER(bytes, T, i32, int32_t) GATHER(bytes, T, i64, int64_t)                                                      \
    SCATTER(bytes, T, i32, int32_t) SCATTER(bytes, T, i64, int64_t)
INDICES(1, uint8_t) INDICES(2, uint16_t) INDICES(4, uint32_t) INDICES(8, uint64_t) INDICES(16, gather_word)

extern "C" __global__ void scatter_last_i32(unsigned *last, const int32_t *index, size_t n, size_t m, int mode)
{
    find_last(last, index, n, m, mode);
}

extern "C" __global__ void scatter_last_i64(unsigned *last, const int64_t *index, size_t n, size_t m, int mode)
{
    find_last(last, index, n, m, mode);
}

#define ENTRY(bytes) \
    GP_K(gather_##bytes##_i32) GP_K(gather_##bytes##_i64) GP_K(scatter_##bytes##_i32) GP_K(scatter_##bytes##_i64)
GP_KERNELS(ENTRY(1) ENTRY(2) ENTRY(4) ENTRY(8) ENTRY(16) GP_K(scatter_last_i32) GP_K(scatter_last_i64))
