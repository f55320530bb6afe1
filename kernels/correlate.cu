/* correlate.cu - dst[lag] = sum over i of a[i + lag - lags] conj(b[i]) along the rows of (n, channels), for lag = 0, 1,
 * ... 2 lags, where there are both. A place q is a lag and a channel.
 *
 *   correlate_parts_T   the sums of chunks of PART rows of b, in f64: sums[part places + q]
 *   correlate_T         their sums, in the order of parts
 */
#include "map.h"

static constexpr size_t PART = 1024;       /* as in stages/correlate.c */

struct pair { double re, im; };
template <class T> struct sums { typedef double type; };
template <> struct sums<gp_c64> { typedef pair type; };

static __device__ __forceinline__ void add(double &s, float a, float b) { s += (double)a * (double)b; }
static __device__ __forceinline__ void add(double &s, double a, double b) { s += a * b; }
static __device__ __forceinline__ void add(pair &s, gp_c64 a, gp_c64 b)
{
    s.re += (double)a.re * (double)b.re + (double)a.im * (double)b.im;
    s.im += (double)a.im * (double)b.re - (double)a.re * (double)b.im;
}
static __device__ __forceinline__ void join(double &s, double a) { s += a; }
static __device__ __forceinline__ void join(pair &s, pair a) { s.re += a.re, s.im += a.im; }
static __device__ __forceinline__ void store(float *y, double s) { *y = (float)s; }
static __device__ __forceinline__ void store(double *y, double s) { *y = s; }
static __device__ __forceinline__ void store(gp_c64 *y, pair s) { *y = { (float)s.re, (float)s.im }; }

#define CORRELATE(name, T)                                                                                     \
    extern "C" __global__ void correlate_parts_##name(sums<T>::type *dst, size_t dst_stride, const T *a,       \
                                                      size_t a_stride, const T *b, size_t b_stride, size_t n,  \
                                                      size_t channels, size_t lags)                            \
    {                                                                                                          \
        const size_t places = (2 * lags + 1) * channels, parts = (n + PART - 1) / PART;                        \
        dst += blockIdx.z * dst_stride, a += blockIdx.z * a_stride, b += blockIdx.z * b_stride;                \
        for (size_t k = first_x(); k < parts * places; k += step_x()) {                                        \
            const size_t part = k / places, q = k % places, lag = q / channels, c = q % channels;              \
            size_t i = part * PART, end = i + PART < n ? i + PART : n;                                         \
            i = i + lag < lags ? lags - lag : i;               /* row i + lag - lags of a is not before it, */ \
            end = end + lag > n + lags ? (n + lags > lag ? n + lags - lag : 0) : end;          /* nor behind it */ \
            sums<T>::type s = {};                                                                              \
            for (; i < end; i++)                                                                               \
                add(s, a[(i + lag - lags) * channels + c], b[i * channels + c]);                               \
            dst[k] = s;                                                                                        \
        }                                                                                                      \
    }                                                                                                          \
    extern "C" __global__ void correlate_##name(T *dst, size_t dst_stride, const sums<T>::type *src,           \
                                                size_t src_stride, size_t places, size_t parts)                \
    {                                                                                                          \
        dst += blockIdx.z * dst_stride, src += blockIdx.z * src_stride;                                        \
        for (size_t q = first_x(); q < places; q += step_x()) {                                                \
            sums<T>::type s = src[q];                                                                          \
            for (size_t part = 1; part < parts; part++)                                                        \
                join(s, src[part * places + q]);                                                               \
            store(dst + q, s);                                                                                 \
        }                                                                                                      \
    }
CORRELATE(f32, float) CORRELATE(f64, double) CORRELATE(c64, gp_c64)

#define ENTRY(name) GP_K(correlate_parts_##name) GP_K(correlate_##name)
GP_KERNELS(ENTRY(f32) ENTRY(f64) ENTRY(c64))
