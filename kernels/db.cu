/* db.cu - 10 log10(x / reference), at least `least`; a NaN stays one. log10 is the device's own. A quotient that
 * a float does not hold is scaled by a power of two, whose decibels are added. stages/db.c has the same for fused
 * stages. */
#include "map.h"

#define DB(name, T)                                                                                            \
    extern "C" __global__ void db_##name(T *dst, size_t dst_stride, const T *src, size_t src_stride, size_t n, \
                                         T reference, T least)                                                 \
    {                                                                                                          \
        map(dst + blockIdx.z * dst_stride, src + blockIdx.z * src_stride, n, [=](T x) -> T {                   \
            const T q = x / reference;                                                                         \
            const T y = q > T(1e37) ? 10 * log10(x * T(0x1p-100) / reference) + T(301.029995663981195)         \
                : q < T(1e-37) ? 10 * log10(x * T(0x1p127) / reference) - T(382.308094493256118)               \
                : 10 * log10(q);                                                                               \
            return y < least ? least : y;                                                                      \
        });                                                                                                    \
    }

DB(f32, float) DB(f64, double)

GP_KERNELS(GP_K(db_f32) GP_K(db_f64))
