/* fir.cu - y[i] = sum over k of taps[k] x[i - k], k = 0, 1, ... in this order,
 * along the rows of (n, channels). What comes before the frame is in `past`: the
 * last ntaps - 1 rows. A thread does four rows of one channel. */
#include "kernel.h"
#include "slide.h"

enum { R = 4 };

template <class Tap>
static __device__ __forceinline__ void fir(float *dst, const float *src, size_t n,
                                           size_t channels, const float *past,
                                           const Tap *taps, size_t ntaps)
{
    size_t groups = (n + R - 1) / R * channels, step = gridDim.x * (size_t)blockDim.x;

    for (size_t g = blockIdx.x * (size_t)blockDim.x + threadIdx.x; g < groups; g += step) {
        size_t c = g % channels, row = g / channels * R, last = row + R - 1;
        float y[R];                        /* of the rows last, last - 1, ... */
        if (last < n && row + 1 >= ntaps) {
            const float *x = src + last * channels + c;
            slide(y, taps, ntaps, [&x, channels] {
                float v = *x;
                x -= channels;
                return v;
            });
        } else {
            size_t at = last + ntaps;      /* counted from the first row of past, + 1 */
            slide(y, taps, ntaps, [=]() mutable {
                at--;
                return at + 1 < ntaps ? past[at * channels + c]
                     : at + 1 - ntaps < n ? src[(at + 1 - ntaps) * channels + c] : 0.0f;
            });
        }
        for (int j = 0; j < R; j++)
            if (last - j < n)
                dst[(last - j) * channels + c] = y[j];
    }
}

#define FIR(name, Tap)                                                              \
    extern "C" __global__ void fir_##name(float *dst, const float *src, size_t n,   \
                                          size_t channels, const float *past,       \
                                          const Tap *taps, size_t ntaps)            \
    {                                                                               \
        fir(dst, src, n, channels, past, taps, ntaps);                              \
    }

FIR(f32, float) FIR(f64, double)           /* the type of the taps */

GP_KERNELS(GP_K(fir_f32) GP_K(fir_f64))
