/* blur.cu - a filter of 2 radius + 1 weights along one axis of an image:
 * blur_x_f32 along the rows, blur_y_f32 down the columns. A thread does four
 * neighbors along that axis. */
#include "kernel.h"
#include "slide.h"

enum { REFLECT, NEAREST, ZERO };           /* as in stages/blur.c */
enum { R = 4 };

/* Place i of 0 .. n - 1 where i is outside; -1: there is 0. */
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

/* Places i .. i + R - 1 of a line of n values that are `step` apart. */
static __device__ __forceinline__ void filter(float *dst, const float *src, int i, int n,
                                              size_t step, const float *weight, int radius,
                                              int edge)
{
    float y[R];
    if (i >= radius && i + R - 1 + radius < n) {
        const float *x = src + (size_t)(i - radius) * step;
        slide(y, weight, 2 * radius + 1, [&x, step] {
            float v = *x;
            x += step;
            return v;
        });
    } else {
        int at = i - radius;
        slide(y, weight, 2 * radius + 1, [&at, src, n, step, edge] {
            int k = at < 0 || at >= n ? outside(at, n, edge) : at;
            at++;
            return k < 0 ? 0.0f : src[k * step];
        });
    }
    for (int j = 0; j < R; j++)
        if (i + j < n)
            dst[(i + j) * step] = y[j];
}

/* An image of `rows` rows of `cols` pixels of `channels` values. */
extern "C" __global__ void blur_x_f32(float *dst, size_t dst_stride, const float *src,
                                      size_t src_stride, int rows, int cols, int channels,
                                      const float *weight, int radius, int edge)
{
    int width = cols * channels, groups = (cols + R - 1) / R * channels;
    dst += blockIdx.z * dst_stride, src += blockIdx.z * src_stride;
    for (int y = blockIdx.y * blockDim.y + threadIdx.y; y < rows; y += gridDim.y * blockDim.y)
        for (int g = blockIdx.x * blockDim.x + threadIdx.x; g < groups; g += gridDim.x * blockDim.x) {
            size_t line = (size_t)y * width + g % channels;
            filter(dst + line, src + line, g / channels * R, cols, channels, weight, radius, edge);
        }
}

extern "C" __global__ void blur_y_f32(float *dst, size_t dst_stride, const float *src,
                                      size_t src_stride, int rows, int cols, int channels,
                                      const float *weight, int radius, int edge)
{
    int width = cols * channels, groups = (rows + R - 1) / R;
    dst += blockIdx.z * dst_stride, src += blockIdx.z * src_stride;
    for (int g = blockIdx.y * blockDim.y + threadIdx.y; g < groups; g += gridDim.y * blockDim.y)
        for (int x = blockIdx.x * blockDim.x + threadIdx.x; x < width; x += gridDim.x * blockDim.x)
            filter(dst + x, src + x, g * R, rows, width, weight, radius, edge);
}

GP_KERNELS(GP_K(blur_x_f32) GP_K(blur_y_f32))
