/* regroup.cu - frames from slots to rows, and from rows to slots, for stages that regroup them. */
#include "map.h"

template <class T>
static __device__ __forceinline__ void copy_pieces(T *dst, size_t dst_stride, const T *src, size_t src_stride,
                                                   size_t n, size_t pieces)
{
    for (size_t p = blockIdx.y; p < pieces; p += gridDim.y)
        for (size_t i = first_x(); i < n; i += step_x())
            dst[p * dst_stride + i] = src[p * src_stride + i];
}

struct alignas(16) regroup_line { uint64_t v[2]; };

/* `pieces` of n words each, from one that begins `src_stride` words after the one before to where one begins
 * `dst_stride` words after; words of 16, 4 or 1 bytes. */
#define REGROUP(name, T)                                                                           \
    extern "C" __global__ void regroup_##name(T *dst, size_t dst_stride, const T *src, size_t src_stride, \
                                              size_t n, size_t pieces)                             \
    {                                                                                              \
        copy_pieces(dst, dst_stride, src, src_stride, n, pieces);                                  \
    }
REGROUP(16, regroup_line)
REGROUP(4, uint32_t)
REGROUP(1, uint8_t)

GP_KERNELS(GP_K(regroup_16) GP_K(regroup_4) GP_K(regroup_1))
