/* blur.cu - a filter of 2 radius + 1 weights along one axis of an image:
 * blur_y_T down the columns, to sums in f32, then blur_x_T along the rows of these. A thread does four
 * neighbors along that axis. */
#include "map.h"
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
template <class To, class From>
static __device__ __forceinline__ void filter(To *dst, const From *src, int i, int n,
                                              size_t step, const float *weight, int radius,
                                              int edge)
{
    float y[R];
    if (i >= radius && i + R - 1 + radius < n) {
        const From *x = src + (size_t)(i - radius) * step;
        slide(y, weight, 2 * radius + 1, [&x, step] {
            float v = convert<float>(*x);
            x += step;
            return v;
        });
    } else {
        int at = i - radius;
        slide(y, weight, 2 * radius + 1, [&at, src, n, step, edge] {
            int k = at < 0 || at >= n ? outside(at, n, edge) : at;
            at++;
            return k < 0 ? 0.0f : convert<float>(src[k * step]);
        });
    }
    for (int j = 0; j < R; j++)
        if (i + j < n)
            dst[(i + j) * step] = convert<To>(y[j]);
}

/* An image of `rows` rows of `cols` pixels of `channels` values. */
template <class T>
static __device__ __forceinline__ void blur_x(T *dst, const float *src, int rows, int cols, int channels,
                                              const float *weight, int radius, int edge)
{
    int width = cols * channels, groups = (cols + R - 1) / R * channels;
    for (int y = blockIdx.y * blockDim.y + threadIdx.y; y < rows; y += gridDim.y * blockDim.y)
        for (int g = blockIdx.x * blockDim.x + threadIdx.x; g < groups; g += gridDim.x * blockDim.x) {
            size_t line = (size_t)y * width + g % channels;
            filter(dst + line, src + line, g / channels * R, cols, channels, weight, radius, edge);
        }
}

template <class T>
static __device__ __forceinline__ void blur_y(float *dst, const T *src, int rows, int cols, int channels,
                                              const float *weight, int radius, int edge)
{
    int width = cols * channels, groups = (rows + R - 1) / R;
    for (int g = blockIdx.y * blockDim.y + threadIdx.y; g < groups; g += gridDim.y * blockDim.y)
        for (int x = blockIdx.x * blockDim.x + threadIdx.x; x < width; x += gridDim.x * blockDim.x)
            filter(dst + x, src + x, g * R, rows, width, weight, radius, edge);
}

#define BLUR(name, T)                                                                                       \
    extern "C" __global__ void blur_x_##name(T *dst, size_t dst_stride, const float *src, size_t src_stride, \
                                             int rows, int cols, int channels, const float *weight,         \
                                             int radius, int edge)                                          \
    {                                                                                                       \
        blur_x(dst + blockIdx.z * dst_stride, src + blockIdx.z * src_stride, rows, cols, channels, weight,  \
               radius, edge);                                                                               \
    }                                                                                                       \
    extern "C" __global__ void blur_y_##name(float *dst, size_t dst_stride, const T *src, size_t src_stride, \
                                             int rows, int cols, int channels, const float *weight,         \
                                             int radius, int edge)                                          \
    {                                                                                                       \
        blur_y(dst + blockIdx.z * dst_stride, src + blockIdx.z * src_stride, rows, cols, channels, weight,  \
               radius, edge);                                                                               \
    }
GP_PIXELS(BLUR)

#define ENTRY(name, T) GP_K(blur_x_##name) GP_K(blur_y_##name)
GP_KERNELS(GP_PIXELS(ENTRY))
