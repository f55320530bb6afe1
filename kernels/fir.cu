/* fir.cu - y[i] = sum over k of taps[k] x[i - k], k = 0, 1, ... in this order,
 * along the rows of (n, channels). What comes before the frame is in `past`: the
 * last ntaps - 1 rows. A thread does four rows of one channel, so that each value
 * and each tap it loads serves four sums. */
#include "kernel.h"

template <class Tap>
static __device__ __forceinline__ void fir(float *dst, const float *src, size_t n,
                                           size_t channels, const float *past,
                                           const Tap *taps, size_t ntaps)
{
    size_t groups = (n + 3) / 4 * channels, step = gridDim.x * (size_t)blockDim.x;
    past += (ntaps - 1) * channels;        /* now row -1 is past[-channels + c] */

    for (size_t g = blockIdx.x * (size_t)blockDim.x + threadIdx.x; g < groups; g += step) {
        size_t c = g % channels, row = g / channels * 4, left = n - row;
        const float *x = src + row * channels + c;
        float a = 0, b = 0, d = 0, e = 0;  /* rows row .. row + 3 */
        float xb = left > 1 ? x[channels] : 0, xd = left > 2 ? x[2 * channels] : 0,
              xe = left > 3 ? x[3 * channels] : 0;

        for (size_t k = 0; k < ntaps; k++) {
            float t = (float)taps[k];
            float xa = k <= row ? *(x - k * channels)
                                : *(past + c - (k - row) * channels);
            a += t * xa, b += t * xb, d += t * xd, e += t * xe;
            xe = xd, xd = xb, xb = xa;
        }
        float *y = dst + row * channels + c;
        y[0] = a;
        if (left > 1)
            y[channels] = b;
        if (left > 2)
            y[2 * channels] = d;
        if (left > 3)
            y[3 * channels] = e;
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
