/* colormap.cu - levels of a picture as colors: level 0 to 255 of x is floor(256 (x - low) / (high - low)), limited. NaN
 * is black. Four pixels a thread. */
#include "map.h"

template <class T> static __device__ __forceinline__ const uint8_t *color_of(const uint8_t *table, T x, double low,
                                                                             double scale)
{
    double v = floor((convert<double>(x) - low) * scale);
    return table + 3 * (v != v ? 256 : v < 0 ? 0 : v > 255 ? 255 : (int)v);
}

/* `table`: 257 colors, the last of which is that of NaN. */
#define COLORMAP(name, T)                                                                           \
    extern "C" __global__ void colormap_##name(uint8_t *dst, size_t dst_stride, const T *src, size_t src_stride, size_t n, \
                                               const uint8_t *table, double low, double scale)      \
    {                                                                                               \
        dst += blockIdx.z * dst_stride, src += blockIdx.z * src_stride;                             \
        for (size_t i = first_x(); i < n / 4; i += step_x()) {                                      \
            const quad<T> x = ((const quad<T> *)src)[i];                                            \
            quad<uint8_t> y[3];                                                                     \
            for (int k = 0; k < 4; k++) {                                                           \
                const uint8_t *c = color_of(table, x.v[k], low, scale);                             \
                for (int j = 0; j < 3; j++)                                                         \
                    y[(3 * k + j) / 4].v[(3 * k + j) % 4] = c[j];                                   \
            }                                                                                       \
            for (int j = 0; j < 3; j++)                                                             \
                ((quad<uint8_t> *)dst)[3 * i + j] = y[j];                                           \
        }                                                                                           \
        size_t i = n / 4 * 4 + first_x();                                                           \
        if (i < n)                                                                                  \
            for (int j = 0; j < 3; j++)                                                             \
                dst[3 * i + j] = color_of(table, src[i], low, scale)[j];                            \
    }
GP_REALS(COLORMAP)

#define ENTRY(name, T) GP_K(colormap_##name)
GP_KERNELS(GP_REALS(ENTRY))
