/* resample.cu - y[m] = sum over k of taps[phase + k up] x[first - k], k = 0, 1, ... in this order, along the rows of
 * (n, channels), where m down = first up + phase. What comes before the frame is in `past`, of npast rows. */
#include "map.h"

template <class Tap>
static __device__ __forceinline__ void resample(float *dst, const float *src, size_t n, size_t channels,
                                                const float *past, size_t npast, const Tap *taps, size_t ntaps,
                                                size_t up, size_t down)
{
    for (size_t i = first_x(); i < n * channels; i += step_x()) {
        const size_t m = i / channels, c = i % channels, first = m * down / up;
        size_t k = m * down % up, row = first + 1;
        float y = 0;
        for (; k < ntaps && row > 0; k += up)
            y += (float)taps[k] * src[--row * channels + c];
        for (row = npast; k < ntaps; k += up)
            y += (float)taps[k] * past[--row * channels + c];
        dst[i] = y;
    }
}

#define RESAMPLE(name, Tap)                                                                                        \
    extern "C" __global__ void resample_##name(float *dst, const float *src, size_t n, size_t channels,            \
                                               const float *past, size_t npast, const Tap *taps, size_t ntaps,     \
                                               size_t up, size_t down)                                             \
    {                                                                                                              \
        resample(dst, src, n, channels, past, npast, taps, ntaps, up, down);                                       \
    }
RESAMPLE(f32, float) RESAMPLE(f64, double)             /* the type of the taps */

GP_KERNELS(GP_K(resample_f32) GP_K(resample_f64))
