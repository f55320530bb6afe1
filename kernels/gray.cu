/* gray.cu - luma of interleaved pixels: (r R + g G) + b B, in f32. Four pixels a
 * thread: they are 3 or 4 quads. */
#include "map.h"

template <int C, class T>
static __device__ __forceinline__ void luma(float *dst, const T *src, size_t n,
                                            float r, float g, float b)
{
    for (size_t i = first_x(); i < n / 4; i += step_x()) {
        quad<T> x[C];
        for (int k = 0; k < C; k++)
            x[k] = ((const quad<T> *)src)[i * C + k];
        const T *p = x[0].v;
        quad<float> y;
        for (int k = 0; k < 4; k++)
            y.v[k] = r * (float)p[k * C] + g * (float)p[k * C + 1] + b * (float)p[k * C + 2];
        ((quad<float> *)dst)[i] = y;
    }
    size_t i = n / 4 * 4 + first_x();
    if (i < n)
        dst[i] = r * (float)src[i * C] + g * (float)src[i * C + 1] + b * (float)src[i * C + 2];
}

/* n pixels of `channels` values, 3 or 4. */
#define GRAY(name, T)                                                               \
    extern "C" __global__ void gray_##name(float *dst, size_t dst_stride, const T *src, \
                                           size_t src_stride, size_t n, int channels, \
                                           float r, float g, float b)               \
    {                                                                               \
        dst += blockIdx.z * dst_stride, src += blockIdx.z * src_stride;             \
        if (channels == 3)                                                          \
            luma<3>(dst, src, n, r, g, b);                                          \
        else                                                                        \
            luma<4>(dst, src, n, r, g, b);                                          \
    }

GRAY(u8, uint8_t) GRAY(u16, uint16_t) GRAY(f32, float)

GP_KERNELS(GP_K(gray_u8) GP_K(gray_u16) GP_K(gray_f32))
