/* cast.cu - every real type to every other: cast_SRC_DST. c64 from pairs is the
 * cast to f32 of twice as many elements. */
#include "map.h"

#define CAST(S, T, s, t)                                                            \
    extern "C" __global__ void cast_##s##_##t(T *dst, size_t dst_stride,            \
                                              const S *src, size_t src_stride, size_t n) \
    {                                                                               \
        map(dst + blockIdx.z * dst_stride, src + blockIdx.z * src_stride, n,        \
            [](S x) { return cast_to<T>(x); });                                     \
    }

/* One source type at a time, to all: a macro cannot expand inside itself. */
#define TO_ALL(M, s, S)                                                             \
    M(s, S, u8, uint8_t) M(s, S, i8, int8_t) M(s, S, u16, uint16_t) M(s, S, i16, int16_t) \
    M(s, S, u32, uint32_t) M(s, S, i32, int32_t) M(s, S, u64, uint64_t)             \
    M(s, S, i64, int64_t) M(s, S, f16, gp_half) M(s, S, f32, float) M(s, S, f64, double)

#define DEFINE(s, S, t, T) CAST(S, T, s, t)
#define FROM(s, S) TO_ALL(DEFINE, s, S)
GP_REALS(FROM)

#define ENTRY(s, S, t, T) GP_K(cast_##s##_##t)
#define LIST(s, S) TO_ALL(ENTRY, s, S)
GP_KERNELS(GP_REALS(LIST))
