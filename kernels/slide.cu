/* slide.cu - windows of a signal: window w has the elements [w hop, w hop + size) of `past`, what came before the
 * frame, with the frame behind it. A sample has `channels` elements, which share a weight.
 *
 *   slide_W    elements of W bytes as they are
 *   taper_T    each times the weight of its place
 */
#include "map.h"

/* each(q)(x) of each element x, where q is its place in the window; a thread does one place of several windows. */
template <class T, class F>
static __device__ __forceinline__ void slide(T *dst, const T *src, const T *past, size_t npast, size_t windows,
                                             size_t size, size_t hop, F each)
{
    for (size_t q = first_x(); q < size; q += step_x()) {
        auto f = each(q);
        const size_t step = gridDim.y * (size_t)blockDim.y;
        for (size_t w = blockIdx.y * (size_t)blockDim.y + threadIdx.y; w < windows; w += step) {
            const size_t i = w * hop + q;
            dst[w * size + q] = f(i < npast ? past[i] : src[i - npast]);
        }
    }
}

template <class T> struct same {
    __device__ __forceinline__ T operator()(T x) const { return x; }
};

template <class T, class W> struct times {
    W w;
    __device__ __forceinline__ T operator()(T x) const { return x * w; }
};
template <class W> struct times<gp_half, W> {
    W w;
    __device__ __forceinline__ gp_half operator()(gp_half x) const { return gp_to_half(gp_from_half(x) * w); }
};
template <class W> struct times<gp_c64, W> {
    W w;
    __device__ __forceinline__ gp_c64 operator()(gp_c64 x) const { return { x.re * w, x.im * w }; }
};

#define SLIDE(name, T)                                                                                       \
    extern "C" __global__ void slide_##name(T *dst, const T *src, const T *past, size_t npast, size_t windows, \
                                            size_t size, size_t hop)                                         \
    {                                                                                                        \
        slide(dst, src, past, npast, windows, size, hop, [](size_t) { return same<T>{}; });                  \
    }
SLIDE(1, uint8_t) SLIDE(2, uint16_t) SLIDE(4, uint32_t) SLIDE(8, uint64_t)

#define TAPER(name, T, W)                                                                                    \
    extern "C" __global__ void taper_##name(T *dst, const T *src, const T *past, size_t npast, size_t windows, \
                                            size_t size, size_t hop, const W *taper, size_t channels)        \
    {                                                                                                        \
        slide(dst, src, past, npast, windows, size, hop,                                                     \
              [=](size_t q) { return times<T, W>{ taper[q / channels] }; });                                 \
    }
TAPER(f16, gp_half, float) TAPER(f32, float, float) TAPER(f64, double, double) TAPER(c64, gp_c64, float)

GP_KERNELS(GP_K(slide_1) GP_K(slide_2) GP_K(slide_4) GP_K(slide_8)
           GP_K(taper_f16) GP_K(taper_f32) GP_K(taper_f64) GP_K(taper_c64))
