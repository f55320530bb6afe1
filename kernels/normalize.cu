/* normalize.cu - (x - zero) times a factor, plus `low`, in f64, rounded once. normalize_ends_T: zero is the frame's
 * least element, and the factor makes `high` of its most; normalize_deviation_T: zero is its mean, and the factor 1 /
 * its standard deviation. Where all elements are the same number, all become `low`, or 0. Numbers are scaled before
 * where an f64 does not hold how far they are apart, or one over that.
 *
 * normalize_lines_ends_T, normalize_lines_deviation_T: the same of each line (lanes.h), where `epsilon` is added to what
 * the standard deviation is the root of. */
#include "join.h"
#include "lanes.h"

template <class To, class T>
static __device__ __forceinline__ void normalize(To *dst, const T *src, size_t n, double scale, double zero, double factor,
                                                 double low, bool constant)
{
    map(dst, src, n, [=](T x) {
        return gp_total<To>(constant ? low : (convert<double>(x) * scale - zero * scale) * factor + low);
    });
}

/* (high - low) / (end - zero) of numbers scaled by *scale. */
static __device__ __forceinline__ double range_factor(double zero, double end, double low, double high, double *scale)
{
    const double apart = end - zero;
    *scale = apart > 0x1p1000 ? 0x1p-100 : apart < 0x1p-900 ? 0x1p600 : 1;
    return (high - low) / (end * *scale - zero * *scale);
}

static __device__ __forceinline__ double one_over(double deviation)
{
    const double factor = 1 / deviation;       /* 0, inf: squares beyond an f64, as NaN says */
    return factor > 0 && factor < 1e300 ? factor : (double)NAN;
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
        double scale;                                                                               \
        const double factor = range_factor(zero, end, low, high, &scale);                           \
        normalize(dst + blockIdx.z * dst_stride, src + blockIdx.z * src_stride, n, scale, zero, factor, low, end - zero == 0); \
    }                                                                                               \
    extern "C" __global__ void normalize_deviation_##name(total<T>::mean *dst, size_t dst_stride, const T *src, \
                                                          size_t src_stride, size_t n, const char *of, size_t next) \
    {                                                                                               \
        const double *spread = (const double *)(of + blockIdx.z * next);                            \
        normalize(dst + blockIdx.z * dst_stride, src + blockIdx.z * src_stride, n, 1, spread[1] + spread[2], \
                  one_over(sqrt(spread[3] / spread[0])), 0, spread[3] == 0 && spread[4] == 0);               \
    }
GP_REALS(NORMALIZE)

#define LINES(name, T)                                                                              \
    extern "C" __global__ void normalize_lines_ends_##name(total<T>::mean *dst, size_t dst_stride, const T *src, \
                                                           size_t src_stride, gp_lanes n, double low, double high) \
    {                                                                                               \
        dst += blockIdx.z * dst_stride, src += blockIdx.z * src_stride;                             \
        gp_each_line<double>(n, [=](const gp_lane<double> &l) {                                     \
            auto of = [=](size_t i) { return convert<double>(src[i]); };                            \
            const double zero = l.template reduce<least>(of), end = l.template reduce<most>(of);    \
            double scale;                                                                           \
            const double factor = range_factor(zero, end, low, high, &scale);                       \
            l.each([=](size_t i) {                                                                  \
                dst[i] = gp_total<total<T>::mean>(end - zero == 0 ? low : (of(i) * scale - zero * scale) * factor + low); \
            });                                                                                     \
        });                                                                                         \
    }                                                                                               \
    extern "C" __global__ void normalize_lines_deviation_##name(total<T>::mean *dst, size_t dst_stride, const T *src, \
                                                                size_t src_stride, gp_lanes n, double epsilon) \
    {                                                                                               \
        dst += blockIdx.z * dst_stride, src += blockIdx.z * src_stride;                             \
        gp_each_line<double>(n, [=](const gp_lane<double> &l) {                                     \
            const double first = convert<double>(src[l.first]), rows = (double)l.rows;              \
            auto of = [=](size_t i) { return convert<double>(src[i]) - first; };                    \
            const double mean = l.template reduce<sum>(of) / rows;                                  \
            const double squares = l.template reduce<sum>([=](size_t i) { return (of(i) - mean) * (of(i) - mean); }); \
            const bool constant = l.template reduce<most>([=](size_t i) { return fabs(of(i)); }) == 0; \
            const double factor = one_over(sqrt(squares / rows + epsilon));                         \
            l.each([=](size_t i) {                                                                  \
                dst[i] = gp_total<total<T>::mean>(constant ? 0 : (of(i) - mean) * factor);          \
            });                                                                                     \
        });                                                                                         \
    }
GP_REALS(LINES)

#define ENTRY(name, T)                                                                              \
    GP_K(normalize_ends_##name) GP_K(normalize_deviation_##name)                                    \
    GP_K(normalize_lines_ends_##name) GP_K(normalize_lines_deviation_##name)
GP_KERNELS(GP_REALS(ENTRY))
