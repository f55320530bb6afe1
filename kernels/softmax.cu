/* softmax.cu - exp(x - most) / sum, along lines (lanes.h). f16 is computed in f32.
 *
 * exp is made of basic operations, so that all devices have the same bits: of x = k log 2 + r, 2^k times the
 * approximations to exp(r) of S. Moshier's Cephes library (expf, exp). Off by less than 2 of the last place. */
#include "join.h"
#include "lanes.h"

/* 2^k, for k from -1022. */
static __device__ __forceinline__ float power(float, int k) { return __int_as_float((k + 127) << 23); }
static __device__ __forceinline__ double power(double, int k)
{
    return __longlong_as_double((long long)(k + 1023) << 52);
}

static __device__ __forceinline__ float exp_rest(float r)
{
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f, p = p * r + 8.3334519073e-3f, p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f, p = p * r + 5.0000001201e-1f;
    return p * (r * r) + r + 1;
}

static __device__ __forceinline__ double exp_rest(double r)
{
    const double z = r * r, p = r * ((1.26177193074810590878e-4 * z + 3.02994407707441961300e-2) * z + 1.0);
    const double q = ((3.00198505138664455042e-6 * z + 2.52448340349684104192e-3) * z + 2.27265548208155028766e-1) * z + 2;
    return 1 + 2 * (p / (q - p));
}

/* The exponential of x <= 0, or of NaN. */
template <class F> static __device__ __forceinline__ F exp_of(F x)
{
    constexpr bool wide = sizeof(F) == 8;
    if (x < (wide ? F(-746) : F(-104)))
        return 0;
    const F k = rint(x * F(1.44269504088896340736));
    const F r = wide ? (x - k * F(6.93145751953125e-1)) - k * F(1.42860682030941723212e-6)
                     : (x - k * F(0.693359375)) - k * F(-2.12194440e-4);
    const int n = x == x ? (int)k : 0, half = n / 2;
    return exp_rest(r) * power(x, half) * power(x, n - half);
}

template <class T> struct computed { typedef float type; };
template <> struct computed<double> { typedef double type; };

template <class T> static __device__ __forceinline__ void softmax(T *dst, const T *src, gp_lanes n)
{
    typedef typename computed<T>::type F;
    gp_each_line<F>(n, [=](const gp_lane<F> &l) {
        const F top = l.template reduce<most>([=](size_t i) { return convert<F>(src[i]); });
        const F all = l.template reduce<sum>([=](size_t i) { return exp_of(convert<F>(src[i]) - top); });
        l.each([=](size_t i) { dst[i] = gp_total<T>(exp_of(convert<F>(src[i]) - top) / all); });
    });
}

#define SOFTMAX(name, T)                                                                            \
    extern "C" __global__ void softmax_##name(T *dst, size_t dst_stride, const T *src, size_t src_stride, \
                                              gp_lanes n)                                           \
    {                                                                                               \
        softmax(dst + blockIdx.z * dst_stride, src + blockIdx.z * src_stride, n);                   \
    }
SOFTMAX(f16, gp_half) SOFTMAX(f32, float) SOFTMAX(f64, double)

GP_KERNELS(GP_K(softmax_f16) GP_K(softmax_f32) GP_K(softmax_f64))
