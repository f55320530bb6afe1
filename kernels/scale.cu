/* scale.cu - a x + b: the product is rounded, then the sum. f16 is computed in
 * f32; b is added to the real part of c64. */
#include "map.h"

#define SCALE(name, T, C, expr)                                                     \
    extern "C" __global__ void scale_##name(T *dst, size_t dst_stride, const T *src, \
                                            size_t src_stride, size_t n, C a, C b)  \
    {                                                                               \
        map(dst + blockIdx.z * dst_stride, src + blockIdx.z * src_stride, n,        \
            [a, b](T x) -> T { return expr; });                                     \
    }

SCALE(f16, gp_half, float, gp_to_half(a * gp_from_half(x) + b))
SCALE(f32, float, float, a * x + b)
SCALE(f64, double, double, a * x + b)
SCALE(c64, gp_c64, float, (gp_c64{ a * x.re + b, a * x.im }))

GP_KERNELS(GP_K(scale_f16) GP_K(scale_f32) GP_K(scale_f64) GP_K(scale_c64))
