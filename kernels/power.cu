/* power.cu - |x|^2: products are rounded, then their sum. */
#include "map.h"

#define POWER(name, Out, In, expr)                                                                        \
    extern "C" __global__ void power_##name(Out *dst, size_t dst_stride, const In *src, size_t src_stride, size_t n) \
    {                                                                                                     \
        map(dst + blockIdx.z * dst_stride, src + blockIdx.z * src_stride, n, [](In x) -> Out { return expr; }); \
    }

POWER(f32, float, float, x * x)
POWER(f64, double, double, x * x)
POWER(c64, float, gp_c64, x.re * x.re + x.im * x.im)

GP_KERNELS(GP_K(power_f32) GP_K(power_f64) GP_K(power_c64))
