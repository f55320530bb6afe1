/* normalize.cu - (x - zero) times a factor, plus `low`, in f64, rounded once. normalize_ends_T: zero is the frame's least
 * element, and the factor makes `high` of its most; normalize_deviation_T: zero is its mean, and the factor 1 / its standard
 * deviation. Where all elements are the same, all become `low`, or 0. */
#include "join.h"

template <class To, class T>
static __device__ __forceinline__ void normalize(To *dst, const T *src, size_t n, double zero, double factor, double low)
{
    map(dst, src, n, [=](T x) {
        return gp_total<To>(factor == 0 ? low : (convert<double>(x) - zero) * factor + low);
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
        normalize(dst + blockIdx.z * dst_stride, src + blockIdx.z * src_stride, n, zero,            \
                  end == zero ? 0 : (high - low) / (end - zero), low);                              \
    }                                                                                               \
    extern "C" __global__ void normalize_deviation_##name(total<T>::mean *dst, size_t dst_stride, const T *src, \
                                                          size_t src_stride, size_t n, const char *of, size_t next) \
    {                                                                                               \
        const double *spread = (const double *)(of + blockIdx.z * next);                            \
        normalize(dst + blockIdx.z * dst_stride, src + blockIdx.z * src_stride, n, spread[1],       \
                  spread[2] == 0 ? 0 : 1 / sqrt(spread[2] / spread[0]), 0);                         \
    }
GP_REALS(NORMALIZE)

#define ENTRY(name, T) GP_K(normalize_ends_##name) GP_K(normalize_deviation_##name)
GP_KERNELS(GP_REALS(ENTRY))
