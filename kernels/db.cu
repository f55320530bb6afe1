/* db.cu - 10 log10(x / reference), at least `least`; a NaN stays one. log10 is the device's own. */
#include "map.h"

#define DB(name, T)                                                                                            \
    extern "C" __global__ void db_##name(T *dst, size_t dst_stride, const T *src, size_t src_stride, size_t n, \
                                         T reference, T least)                                                 \
    {                                                                                                          \
        map(dst + blockIdx.z * dst_stride, src + blockIdx.z * src_stride, n, [=](T x) -> T {                   \
            const T y = 10 * log10(x / reference);                                                             \
            return y < least ? least : y;                                                                      \
        });                                                                                                    \
    }

DB(f32, float) DB(f64, double)

GP_KERNELS(GP_K(db_f32) GP_K(db_f64))
