/* threshold.cu - one of two values. The numbers arrive as elements lie in memory, in the first bytes; f16 compares in
 * f32. */
#include "map.h"

template <class T> static __device__ __forceinline__ bool above_level(T x, T level)
{
    if constexpr (real<T>::half)
        return gp_from_half(x) > gp_from_half(level);
    else
        return x > level;
}

#define THRESHOLD(name, T)                                                          \
    extern "C" __global__ void threshold_##name(T *dst, size_t dst_stride, const T *src, \
                                                size_t src_stride, size_t n,        \
                                                uint64_t level, uint64_t below, uint64_t above) \
    {                                                                               \
        T at, lo, hi;                                                               \
        memcpy(&at, &level, sizeof at), memcpy(&lo, &below, sizeof lo), memcpy(&hi, &above, sizeof hi); \
        map(dst + blockIdx.z * dst_stride, src + blockIdx.z * src_stride, n,        \
            [at, lo, hi](T x) { return above_level(x, at) ? hi : lo; });            \
    }
GP_REALS(THRESHOLD)

#define ENTRY(name, T) GP_K(threshold_##name)
GP_KERNELS(GP_REALS(ENTRY))
