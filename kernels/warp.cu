/* warp.cu - pictures whose pixels are taken from other places of a picture, between its pixels too. Places are computed
 * in f64; sums in f32, along the rows first, and rounded once. */
#include "map.h"
#include "edge.h"
#include "warp.h"

struct warp_place { double x, y; };

static __device__ __forceinline__ warp_place place_of(const warp_how &h, const float *map, int x, int y)
{
    if (map) {
        const float *at = map + ((size_t)y * h.wide + x) * 2;
        return { at[0], at[1] };
    }
    const double *m = h.m;
    const warp_place p = { m[0] * x + m[1] * y + m[2], m[3] * x + m[4] * y + m[5] };
    if (!h.perspective)
        return p;
    const double w = m[6] * x + m[7] * y + m[8];
    return { p.x / w, p.y / w };
}

/* The pixels along an axis, N of them from `first` on, that are near a place, and their weights. */
template <int N> struct warp_taps { int first; float weight[N]; };

static __device__ __forceinline__ void near_by(double at, warp_taps<1> &t)
{
    t.first = (int)floor(at + 0.5);        /* of two that are as near the later one */
    t.weight[0] = 1;
}

static __device__ __forceinline__ void near_by(double at, warp_taps<2> &t)
{
    const double low = floor(at);
    t.first = (int)low;
    t.weight[1] = (float)(at - low);
    t.weight[0] = 1 - t.weight[1];
}

/* The cubic convolution of Keys ("Cubic convolution interpolation for digital image processing", 1981) with a = -1/2,
 * of pixels that are nearer than 1, and of those that are nearer than 2. */
static __device__ __forceinline__ float keys_near(float t) { return (1.5f * t - 2.5f) * t * t + 1; }
static __device__ __forceinline__ float keys_far(float t) { return (((t - 5) * t + 8) * t - 4) * -0.5f; }

static __device__ __forceinline__ void near_by(double at, warp_taps<4> &t)
{
    const double low = floor(at);
    const float u = (float)(at - low);
    t.first = (int)low - 1;
    t.weight[0] = keys_far(1 + u);
    t.weight[1] = keys_near(u);
    t.weight[2] = keys_near(1 - u);
    t.weight[3] = keys_far(2 - u);
}

/* A pixel without weight does not count, even if it is not a number. */
template <int N, class T>
static __device__ __forceinline__ void warp_pixel(T *dst, const T *src, const warp_how &h, const warp_taps<N> &across,
                                                  const warp_taps<N> &down)
{
    int64_t row[N];
    int column[N];
    for (int k = 0; k < N; k++) {
        row[k] = gp_beyond(down.first + k, h.rows, h.edge) * h.cols;       /* nowhere: below 0 */
        column[k] = (int)gp_beyond(across.first + k, h.cols, h.edge);
    }
    for (int c = 0; c < h.channels; c++) {
        float sum = 0;
        for (int i = 0; i < N; i++) {
            float part = 0;
            for (int j = 0; j < N; j++) {
                const bool there = row[i] >= 0 && column[j] >= 0;
                const float v = there ? (float)src[(size_t)(row[i] + column[j]) * h.channels + c] : h.value;
                part += across.weight[j] != 0 ? across.weight[j] * v : 0.0f;
            }
            sum += down.weight[i] != 0 ? down.weight[i] * part : 0.0f;
        }
        if constexpr (real<T>::integer)
            dst[c] = convert<T>(sum);
        else
            dst[c] = sum == sum ? sum : real<T>::nan();
    }
}

template <int N, class T>
static __device__ __forceinline__ void warp(T *dst, const T *src, const float *map, const warp_how &h)
{
    const double most = 1 << 30;
    for (int y = blockIdx.y * blockDim.y + threadIdx.y; y < h.high; y += gridDim.y * blockDim.y)
        for (int x = blockIdx.x * blockDim.x + threadIdx.x; x < h.wide; x += gridDim.x * blockDim.x) {
            const warp_place at = place_of(h, map, x, y);
            T *to = dst + ((size_t)y * h.wide + x) * h.channels;
            if (fabs(at.x) < most && fabs(at.y) < most) {
                warp_taps<N> across, down;
                near_by(at.x, across), near_by(at.y, down);
                warp_pixel(to, src, h, across, down);
            } else {                       /* or no number */
                for (int c = 0; c < h.channels; c++)
                    to[c] = convert<T>(h.value);
            }
        }
}

#define WARP(method, N, name, T)                                                                                     \
    extern "C" __global__ void warp_##method##_##name(T *dst, size_t dst_stride, const T *src, size_t src_stride,    \
                                                      const float *map, size_t map_stride, warp_how h)               \
    {                                                                                                                \
        dst += blockIdx.z * dst_stride, src += blockIdx.z * src_stride, map += blockIdx.z * map_stride;              \
        warp<N>(dst, src, map, h);                                                                                   \
    }
#define ALL(name, T) WARP(nearest, 1, name, T) WARP(bilinear, 2, name, T) WARP(cubic, 4, name, T)
ALL(u8, uint8_t) ALL(u16, uint16_t) ALL(f32, float)

#define ENTRY(name) GP_K(warp_nearest_##name) GP_K(warp_bilinear_##name) GP_K(warp_cubic_##name)
GP_KERNELS(ENTRY(u8) ENTRY(u16) ENTRY(f32))
