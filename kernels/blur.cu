/* blur.cu - a symmetric filter along one axis of an image: blur_x_f32 along the
 * rows, blur_y_f32 down the columns. weight[0] is the middle, weight[k] stands on
 * both sides at distance k; summed from the middle outwards. */
#include "kernel.h"

enum { REFLECT, NEAREST, ZERO };           /* as in stages/blur.c */

/* Pixel i of 0 .. n - 1 where i is outside; -1: it is 0. */
static __device__ __forceinline__ int outside(int i, int n, int edge)
{
    if (edge == ZERO)
        return -1;
    if (edge == NEAREST)
        return i < 0 ? 0 : n - 1;
    i %= 2 * n;                            /* d c b a | a b c d | d c b a */
    if (i < 0)
        i += 2 * n;
    return i < n ? i : 2 * n - 1 - i;
}

/* The value at place i of n that are `step` elements apart, src the first. */
static __device__ __forceinline__ float at(const float *src, int i, int n, size_t step, int edge)
{
    if (i < 0 || i >= n)
        i = outside(i, n, edge);
    return i < 0 ? 0 : src[i * step];
}

static __device__ __forceinline__ float filter(const float *src, int i, int n, size_t step,
                                               const float *weight, int radius, int edge)
{
    float sum = weight[0] * src[i * step];
    if (i >= radius && i + radius < n) {
        const float *a = src + i * step, *b = a;
        for (int k = 1; k <= radius; k++) {
            a -= step, b += step;
            sum += weight[k] * (*a + *b);
        }
    } else {
        for (int k = 1; k <= radius; k++)
            sum += weight[k] * (at(src, i - k, n, step, edge) + at(src, i + k, n, step, edge));
    }
    return sum;
}

/* An image of `rows` rows of `cols` pixels of `channels` values; x runs over the
 * values of a row, y over rows. */
#define BLUR(name, i, n, step, origin)                                              \
    extern "C" __global__ void name(float *dst, size_t dst_stride, const float *src, \
                                    size_t src_stride, int rows, int cols, int channels, \
                                    const float *weight, int radius, int edge)      \
    {                                                                               \
        int width = cols * channels;                                                \
        dst += blockIdx.z * dst_stride, src += blockIdx.z * src_stride;             \
        for (int y = blockIdx.y * blockDim.y + threadIdx.y; y < rows; y += gridDim.y * blockDim.y) \
            for (int x = blockIdx.x * blockDim.x + threadIdx.x; x < width;          \
                 x += gridDim.x * blockDim.x)                                       \
                dst[(size_t)y * width + x] =                                        \
                    filter(src + (origin), i, n, step, weight, radius, edge);       \
    }

BLUR(blur_x_f32, x / channels, cols, (size_t)channels, (size_t)y * width + x % channels)
BLUR(blur_y_f32, y, rows, (size_t)width, x)

GP_KERNELS(GP_K(blur_x_f32) GP_K(blur_y_f32))
