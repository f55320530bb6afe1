/* conv2d.cu - each pixel's neighbors times weights: with the place of the middle weight at (0, 0),
 *
 *   dst[y][x] = sum over j of (sum over i of weight[i][j] src[y + i][x + j]),
 *
 * or, `flip`, src[y - i][x - j]. Sums begin at the neighbors with the least y and x, so that their order depends on
 * nothing else. A thread does R rows of a column; on a CPU also N columns, where all neighbors are in the image. */
#include "edge.h"
#include "map.h"
#include "slide.h"

#ifdef GP_CPU
enum { R = 4, N = 16 };
#else
enum { R = 4, N = 1 };
#endif

struct conv2d_how { int rows, cols, channels, high, wide, flip, edge; };       /* as in stages/conv2d.c */

/* A column of the weights, from the one that is for the least y on. */
template <class W> struct conv2d_column {
    const W *at;
    int step;
    __device__ __forceinline__ float operator[](size_t i) const { return (float)at[(int)i * step]; }
};

/* The same bits for any NaN. */
static __device__ __forceinline__ float one_nan(float x) { return x == x ? x : __int_as_float(0x7fffffff); }

/* Rows y to y + R - 1 of column x. */
template <class T, class W>
static __device__ __forceinline__ void one_column(T *dst, const T *src, const conv2d_how &h,
                                                  conv2d_column<W> weight, int top, int left, int y, int x)
{
    const int width = h.cols * h.channels, pixel = x / h.channels, c = x - pixel * h.channels;
    const bool inside = y >= top && (int64_t)y - top + h.high + R - 2 < h.rows;
    float sum[R];
    for (int r = 0; r < R; r++)
        sum[r] = 0;
    for (int j = 0; j < h.wide; j++, weight.at += h.flip ? -1 : 1) {
        const int column = (int)gp_beyond(pixel + j - left, h.cols, h.edge);
        if (column < 0)
            continue;
        const T *from = src + (size_t)column * h.channels + c;
        float part[R];
        if (inside) {
            from += (size_t)(y - top) * width;
            slide(part, weight, (size_t)h.high, [&from, width] {
                float v = convert<float>(*from);
                from += width;
                return v;
            });
        } else {
            int at = y - top, rows = h.rows, edge = h.edge;
            slide(part, weight, (size_t)h.high, [&at, from, width, rows, edge] {
                int row = (int)gp_beyond(at++, rows, edge);
                return row < 0 ? 0.0f : convert<float>(from[(size_t)row * width]);
            });
        }
        for (int r = 0; r < R; r++)
            sum[r] += part[r];
    }
    for (int r = 0; r < R && y + r < h.rows; r++)
        dst[(size_t)(y + r) * width + x] = convert<T>(one_nan(sum[r]));
}

/* Columns x to x + N - 1 of a row; `src`: the neighbor with the least y and x of column x. */
template <class T, class W>
static __device__ __forceinline__ void one_row(T *dst, const T *src, const conv2d_how &h,
                                               conv2d_column<W> weight)
{
    const size_t width = (size_t)h.cols * h.channels;
    float sum[N];
    for (int k = 0; k < N; k++)
        sum[k] = 0;
    for (int j = 0; j < h.wide; j++, weight.at += h.flip ? -1 : 1) {
        const T *from = src + (size_t)j * h.channels;
        float part[N];
        for (int k = 0; k < N; k++)
            part[k] = 0;
        for (int i = 0; i < h.high; i++, from += width) {
            const float w = weight[i];
            for (int k = 0; k < N; k++)
                part[k] += w * convert<float>(from[k]);
        }
        for (int k = 0; k < N; k++)
            sum[k] += part[k];
    }
    for (int k = 0; k < N; k++)
        dst[k] = convert<T>(one_nan(sum[k]));
}

template <class T, class W>
static __device__ __forceinline__ void conv2d(T *dst, const T *src, const conv2d_how &h, const W *weights)
{
    const int top = (h.flip ? h.high - 1 : h.high) / 2, left = (h.flip ? h.wide - 1 : h.wide) / 2;
    const int width = h.cols * h.channels, groups = (h.rows + R - 1) / R;
    const int64_t before = (int64_t)left * h.channels, after = (int64_t)(h.wide - 1 - left) * h.channels;
    const conv2d_column<W> weight = { weights + (h.flip ? h.high * h.wide - 1 : 0), h.flip ? -h.wide : h.wide };
    for (int g = blockIdx.y * blockDim.y + threadIdx.y; g < groups; g += gridDim.y * blockDim.y)
        for (int64_t p = blockIdx.x * blockDim.x + threadIdx.x; p * N < width; p += gridDim.x * blockDim.x) {
            const int y = g * R, x = (int)p * N;
            if (N > 1 && x >= before && x + N - 1 + after < width && y >= top
                && (int64_t)y - top + h.high + R - 2 < h.rows)
                for (int r = 0; r < R; r++)
                    one_row(dst + (size_t)(y + r) * width + x, src + (size_t)(y + r - top) * width + x - before, h,
                            weight);
            else
                for (int k = x; k < x + N && k < width; k++)
                    one_column(dst, src, h, weight, top, left, y, k);
        }
}

/* For each type of weights. */
#define CONV2D(name, T) EACH(name##_f32, T, float) EACH(name##_f64, T, double)
#define EACH(name, T, W)                                                                                            \
    extern "C" __global__ void conv2d_##name(T *dst, size_t dst_stride, const T *src, size_t src_stride,              \
                                             const W *weight, size_t weight_stride, conv2d_how h)                   \
    {                                                                                                               \
        conv2d(dst + blockIdx.z * dst_stride, src + blockIdx.z * src_stride, h, weight + blockIdx.z * weight_stride); \
    }
GP_PIXELS(CONV2D)

#define ENTRY(name, T) GP_K(conv2d_##name##_f32) GP_K(conv2d_##name##_f64)
GP_KERNELS(GP_PIXELS(ENTRY))
