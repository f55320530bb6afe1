/* normalize.cu - (x - zero) times a factor, plus `low`, in f64, rounded once. normalize_ends_T: zero is the frame's
 * least element, and the factor makes `high` of its most; normalize_deviation_T: zero is its mean, and the factor 1 /
 * its standard deviation. Where all elements are the same number, all become `low`, or 0. Numbers are scaled before
 * where an f64 does not hold how far they are apart, or one over that. */
#include "join.h"

template <class To, class T>
static __device__ __forceinline__ void normalize(To *dst, const T *src, size_t n, double scale, double zero, double factor,
                                                 double low, bool constant)
{
    map(dst, src, n, [=](T x) {
        return gp_total<To>(constant ? low : (convert<double>(x) * scale - zero * scale) * factor + low);
    });
}

/* `of`: of the first frame its least element, `most` bytes on its most; or what stages/format/reduction.h says of a
 * standard deviation. `next`: bytes to those of the next frame. */
#define NORMALIZE(name, T)                                                                          \
    extern "C" __global__ void normalize_ends_##name(total<T>::mean *dst, size_t dst_stride, const T *src, size_t src_stride, \
                                                     size_t n, const char *of, size_t next, size_t most, double low, \
                                                     double high)                                   \
    {                                                                                               \
        of += blockIdx.z * next;                                                                    \
        const double zero = convert<double>(*(const T *)of), end = convert<double>(*(const T *)(of + most)); \
        const double apart = end - zero, scale = apart > 0x1p1000 ? 0x1p-100 : apart < 0x1p-900 ? 0x1p600 : 1; \
        normalize(dst + blockIdx.z * dst_stride, src + blockIdx.z * src_stride, n, scale, zero,     \
                  (high - low) / (end * scale - zero * scale), low, apart == 0);                    \
    }                                                                                               \
    extern "C" __global__ void normalize_deviation_##name(total<T>::mean *dst, size_t dst_stride, const T *src, \
                                                          size_t src_stride, size_t n, const char *of, size_t next) \
    {                                                                                               \
        const double *spread = (const double *)(of + blockIdx.z * next);                            \
        const double factor = 1 / sqrt(spread[3] / spread[0]);  /* 0, inf: squares beyond an f64, as NaN says */ \
        normalize(dst + blockIdx.z * dst_stride, src + blockIdx.z * src_stride, n, 1, spread[1] + spread[2], \
                  factor > 0 && factor < 1e300 ? factor : (double)NAN, 0, spread[3] == 0 && spread[4] == 0);         \
    }
GP_REALS(NORMALIZE)

#define ENTRY(name, T) GP_K(normalize_ends_##name) GP_K(normalize_deviation_##name)
GP_KERNELS(GP_REALS(ENTRY))
