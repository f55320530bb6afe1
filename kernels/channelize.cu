/* channelize.cu - dst[s, a, c] = sum over t of h[t N + c] x[(s + t) N + c, a], t = 0, 1, ... in this order, for N
 * channels. x has `signals` values in a row: first those of `past`, (taps - 1) N rows, then src. */
#include "map.h"

static __device__ __forceinline__ float times(float x, float h) { return x * h; }
static __device__ __forceinline__ gp_c64 times(gp_c64 x, float h) { return { x.re * h, x.im * h }; }
static __device__ __forceinline__ float plus(float a, float b) { return a + b; }
static __device__ __forceinline__ gp_c64 plus(gp_c64 a, gp_c64 b) { return { a.re + b.re, a.im + b.im }; }

template <class T, class H>
static __device__ __forceinline__ void channelize(T *dst, const T *src, const T *past, const H *h, size_t spectra,
                                                  size_t signals, size_t channels, size_t taps)
{
    const size_t npast = taps - 1, step = gridDim.y * (size_t)blockDim.y;      /* in blocks of N rows */
    for (size_t y = blockIdx.y * (size_t)blockDim.y + threadIdx.y; y < spectra * signals; y += step) {
        const size_t s = y / signals, a = y % signals;
        T *to = dst + y * channels;
#ifdef GP_CPU                              /* the channels side by side, for its vectors */
        for (size_t t = 0; t < taps && !threadIdx.x; t++) {
            const T *x = (s + t < npast ? past + (s + t) * channels * signals
                                        : src + (s + t - npast) * channels * signals) + a;
            const H *w = h + t * channels;
            for (size_t c = 0; c < channels; c++)
                to[c] = t ? plus(to[c], times(x[c * signals], (float)w[c])) : times(x[c * signals], (float)w[c]);
        }
#else
        for (size_t c = first_x(); c < channels; c += step_x()) {
            T sum = {};
            for (size_t t = 0; t < taps; t++) {
                const T x = s + t < npast ? past[((s + t) * channels + c) * signals + a]
                                          : src[((s + t - npast) * channels + c) * signals + a];
                const T more = times(x, (float)h[t * channels + c]);
                sum = t ? plus(sum, more) : more;
            }
            to[c] = sum;
        }
#endif
    }
}

#define CHANNELIZE(name, T, tap, H)                                                                                   \
    extern "C" __global__ void channelize_##name##_##tap(T *dst, const T *src, const T *past, const H *h,             \
                                                         size_t spectra, size_t signals, size_t channels, size_t taps) \
    {                                                                                                                 \
        channelize(dst, src, past, h, spectra, signals, channels, taps);                                              \
    }
CHANNELIZE(f32, float, f32, float) CHANNELIZE(f32, float, f64, double)
CHANNELIZE(c64, gp_c64, f32, float) CHANNELIZE(c64, gp_c64, f64, double)

GP_KERNELS(GP_K(channelize_f32_f32) GP_K(channelize_f32_f64) GP_K(channelize_c64_f32) GP_K(channelize_c64_f64))
