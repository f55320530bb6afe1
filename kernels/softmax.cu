/* softmax.cu - exp(x - most) / sum, along the middle axis of (outer, rows, inner). LANES threads have a line: lane l
 * takes rows l, l + LANES, ... in order, then halves are joined to halves. f16 is computed in f32.
 *
 * exp is made of basic operations, so that all devices have the same bits: of x = k log 2 + r, 2^k times the
 * approximations to exp(r) of S. Moshier's Cephes library (expf, exp). Off by less than 2 of the last place. */
#include "join.h"

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

/* Joins the lanes of each line; `step`: from a lane to the next. */
template <class Op, class F> static __device__ __forceinline__ F all_lanes(F *part, unsigned me, unsigned lane,
                                                                           unsigned lanes,
                                                                           unsigned step, F mine)
{
    part[me] = mine;
    for (unsigned half = lanes / 2; half; half /= 2) {
        __syncthreads();
        if (lane < half)
            part[me] = Op::join(part[me], part[me + half * step]);
    }
    __syncthreads();
    const F a = part[me - lane * step];
    __syncthreads();
    return a;
}

template <class T> static __device__ __forceinline__ void softmax(T *dst, const T *src, size_t outer, size_t rows,
                                                                  size_t inner,
                                                                  unsigned lanes)
{
    typedef typename computed<T>::type F;
#ifdef GP_CPU
    F part[256];                           /* one thread has all lanes */
    if (threadIdx.x)
        return;
    for (size_t r = blockIdx.x; r < outer * inner; r += gridDim.x) {
        const size_t first = r / inner * rows * inner + r % inner;
        F top = convert<F>(src[first]), all = 0;
        for (size_t k = 1; k < rows; k++)
            top = most::join(top, convert<F>(src[first + k * inner]));
        for (unsigned l = 0; l < lanes; l++) {
            part[l] = 0;
            for (size_t k = l; k < rows; k += lanes)
                part[l] += exp_of(convert<F>(src[first + k * inner]) - top);
        }
        for (unsigned half = lanes / 2; half; half /= 2)
            for (unsigned l = 0; l < half; l++)
                part[l] += part[l + half];
        all = part[0];
        for (size_t k = 0; k < rows; k++)
            dst[first + k * inner] = gp_total<T>(exp_of(convert<F>(src[first + k * inner]) - top) / all);
    }
#else
    GP_SHARED(F, part);
    const unsigned me = threadIdx.x, beside = blockDim.x / lanes;      /* lines of a block */
    const unsigned lane = inner == 1 ? me % lanes : me / beside, line = inner == 1 ? me / lanes : me % beside;
    const unsigned step = inner == 1 ? 1 : beside;
    for (size_t begin = blockIdx.x * (size_t)beside; begin < outer * inner; begin += gridDim.x * (size_t)beside) {
        const bool is = begin + line < outer * inner;
        const size_t r = is ? begin + line : 0, first = r / inner * rows * inner + r % inner;
        F top = convert<F>(src[first + lane * inner]), all = 0;
        for (size_t k = lane; k < rows; k += lanes)
            top = most::join(top, convert<F>(src[first + k * inner]));
        top = all_lanes<most>(part, me, lane, lanes, step, top);
        for (size_t k = lane; k < rows; k += lanes)
            all += exp_of(convert<F>(src[first + k * inner]) - top);
        all = all_lanes<sum>(part, me, lane, lanes, step, all);
        for (size_t k = lane; is && k < rows; k += lanes)
            dst[first + k * inner] = gp_total<T>(exp_of(convert<F>(src[first + k * inner]) - top) / all);
    }
#endif
}

#define SOFTMAX(name, T)                                                                            \
    extern "C" __global__ void softmax_##name(T *dst, size_t dst_stride, const T *src, size_t src_stride, \
                                              size_t outer, size_t rows, size_t inner, unsigned lanes) \
    {                                                                                               \
        softmax(dst + blockIdx.z * dst_stride, src + blockIdx.z * src_stride, outer, rows, inner, lanes); \
    }
SOFTMAX(f16, gp_half) SOFTMAX(f32, float) SOFTMAX(f64, double)

GP_KERNELS(GP_K(softmax_f16) GP_K(softmax_f32) GP_K(softmax_f64))
