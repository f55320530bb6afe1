/* morphology.cu - the least and the most of rows of pixels: morphology_y_OP_T down the columns, morphology_x_OP_T along
 * the rows. What is beyond the border does not count. A NaN is less and more than all numbers. */
#include "join.h"

/* The best of p[0], p[step], ..., n of them. */
template <class Op, class T> static __device__ __forceinline__ T best_of(const T *p, size_t step, int n)
{
    T a = *p;
    for (int k = 1; k < n; k++)
        a = Op::join(a, *(p += step));
    return a;
}

#define IMAGE(x, y)                                                                                 \
    for (int y = blockIdx.y * blockDim.y + threadIdx.y; y < rows; y += gridDim.y * blockDim.y)      \
        for (int x = blockIdx.x * blockDim.x + threadIdx.x; x < width; x += gridDim.x * blockDim.x)

#define MORPHOLOGY(op, Op, name, T)                                                                 \
    extern "C" __global__ void morphology_y_##op##_##name(T *dst, size_t dst_stride, const T *src, size_t src_stride, \
                                                          int rows, int width, int radius)          \
    {                                                                                               \
        dst += blockIdx.z * dst_stride, src += blockIdx.z * src_stride;                             \
        IMAGE(x, y) {                                                                               \
            const int first = y < radius ? 0 : y - radius, end = rows - y <= radius ? rows : y + radius + 1; \
            dst[(size_t)y * width + x] = best_of<Op>(src + (size_t)first * width + x, width, end - first); \
        }                                                                                           \
    }                                                                                               \
    extern "C" __global__ void morphology_x_##op##_##name(T *dst, size_t dst_stride, const T *src, size_t src_stride, \
                                                          int rows, int width, int channels, int radius) \
    {                                                                                               \
        dst += blockIdx.z * dst_stride, src += blockIdx.z * src_stride;                             \
        const int64_t reach = (int64_t)radius * channels;                                           \
        IMAGE(x, y) {                                                                               \
            const int before = x < reach ? x / channels : radius;                                   \
            const int after = width - 1 - x < reach ? (width - 1 - x) / channels : radius;          \
            dst[(size_t)y * width + x] =                                                            \
                best_of<Op>(src + (size_t)y * width + x - (size_t)before * channels, channels, before + after + 1); \
        }                                                                                           \
    }
#define BOTH(name, T) MORPHOLOGY(min, least, name, T) MORPHOLOGY(max, most, name, T)
GP_REALS(BOTH)

#define ENTRY(name, T)                                                                              \
    GP_K(morphology_y_min_##name) GP_K(morphology_x_min_##name) GP_K(morphology_y_max_##name) GP_K(morphology_x_max_##name)
GP_KERNELS(GP_REALS(ENTRY))
