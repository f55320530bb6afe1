/* histogram.cu - how many elements lie in each of `bins` equal parts of a range, as numpy.histogram counts them: bin b
 * from its edge low + b step up to the next one, the last bin with the end of the range. NaN and what is outside are in
 * none. A block counts in shared memory, then adds that to the result: sums of integers have no order. */
#include "map.h"

struct histogram_range { double low, high, step, scale; int bins; };     /* as in stages/histogram.c */

static __device__ __forceinline__ double edge_of(const histogram_range &r, int b)
{
    return b == r.bins ? r.high : b * r.step + r.low;
}

static __device__ __forceinline__ int bin_of(const histogram_range &r, double v)
{
    if (!(v >= r.low && v <= r.high))
        return -1;
    int b = (int)((v - r.low) * r.scale);
    b = b < 0 ? 0 : b < r.bins ? b : r.bins - 1;
    while (b > 0 && v < edge_of(r, b))
        b--;
    while (b < r.bins - 1 && v >= edge_of(r, b + 1))
        b++;
    return b;
}

template <class T>
static __device__ __forceinline__ void count(unsigned long long *dst, const T *src, size_t n, const histogram_range &r)
{
    GP_SHARED(unsigned, counts);
#ifdef GP_CPU
    if (threadIdx.x)
        return;
    for (int b = 0; b < r.bins; b++)
        counts[b] = 0;
    for (size_t i = blockIdx.x; i < n; i += gridDim.x) {
        int b = bin_of(r, convert<double>(src[i]));
        if (b >= 0 && ++counts[b] == 0)
            dst[b] += (unsigned long long)1 << 32;
    }
    for (int b = 0; b < r.bins; b++)
        dst[b] += counts[b];
#else
    for (int b = threadIdx.x; b < r.bins; b += blockDim.x)
        counts[b] = 0;
    __syncthreads();
    for (size_t i = first_x(); i < n / 4; i += step_x()) {
        const quad<T> x = ((const quad<T> *)src)[i];
        for (int k = 0; k < 4; k++) {
            int b = bin_of(r, convert<double>(x.v[k]));
            if (b >= 0)
                atomicAdd(&counts[b], 1u);
        }
    }
    if (size_t i = n / 4 * 4 + first_x(); i < n) {
        int b = bin_of(r, convert<double>(src[i]));
        if (b >= 0)
            atomicAdd(&counts[b], 1u);
    }
    __syncthreads();
    for (int b = threadIdx.x; b < r.bins; b += blockDim.x)
        if (counts[b])
            atomicAdd(&dst[b], (unsigned long long)counts[b]);
#endif
}

/* dst: zeros. On a CPU one block has all. */
#define HISTOGRAM(name, T)                                                                          \
    extern "C" __global__ void histogram_##name(unsigned long long *dst, size_t dst_stride, const T *src, \
                                                size_t src_stride, size_t n, histogram_range r)     \
    {                                                                                               \
        count(dst + blockIdx.z * dst_stride, src + blockIdx.z * src_stride, n, r);                  \
    }
#define TYPES(X)                                                                                    \
    X(u8, uint8_t) X(i8, int8_t) X(u16, uint16_t) X(i16, int16_t) X(u32, uint32_t) X(i32, int32_t)  \
    X(f16, gp_half) X(f32, float) X(f64, double)
TYPES(HISTOGRAM)

#define ENTRY(name, T) GP_K(histogram_##name)
GP_KERNELS(TYPES(ENTRY))
