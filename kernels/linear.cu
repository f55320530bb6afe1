/* linear.cu - what a product becomes: dst[i] = activation(src[i] + bias[i % columns]) + more[i], in f32, or f64 of f64;
 * bias and more may be NULL, src may be dst. And products of few rows with all of that, at which a library is slow.
 * Steps are elements from frame to frame. exp, tanh and erfc are the device's own. A NaN stays one. */
#include "map.h"

/* As in stages/matmul/multiply.h. */
enum { NONE, RELU, GELU, SIGMOID, TANH };

template <class T> struct computed { typedef float type; };
template <> struct computed<double> { typedef double type; };

template <class F> static __device__ __forceinline__ F activated(F x, int activation)
{
    switch (activation) {
    case RELU: return x < 0 ? F(0) : x;
    case GELU: return x == F(-INFINITY) ? F(0) : x * F(0.5) * erfc(x * F(-0.70710678118654752440));
    case SIGMOID: return 1 / (1 + exp(-x));
    case TANH: return tanh(x);
    default: return x;
    }
}

template <class To, class From>
static __device__ __forceinline__ void linear(To *dst, size_t dst_step, const From *src, size_t src_step, const To *bias,
                                              size_t bias_step, const To *more, size_t more_step, size_t n,
                                              size_t columns, int activation)
{
    typedef typename computed<To>::type F;
    dst += blockIdx.z * dst_step, src += blockIdx.z * src_step, bias += bias ? blockIdx.z * bias_step : 0;
    more += more ? blockIdx.z * more_step : 0;
    for (size_t i = first_x(); i < n; i += step_x()) {
        F x = convert<F>(src[i]);
        if (bias)
            x += convert<F>(bias[i % columns]);
        x = activated(x, activation);
        dst[i] = convert<To>(more ? x + convert<F>(more[i]) : x);
    }
}

#define LINEAR(name, To, From)                                                                              \
    extern "C" __global__ void linear_##name(To *dst, size_t dst_step, const From *src, size_t src_step,    \
                                             const To *bias, size_t bias_step, const To *more, size_t more_step, \
                                             size_t n, size_t columns, int activation)                      \
    {                                                                                                       \
        linear(dst, dst_step, src, src_step, bias, bias_step, more, more_step, n, columns, activation);     \
    }
LINEAR(f16_f16, gp_half, gp_half) LINEAR(f32_f16, gp_half, float) LINEAR(f32_f32, float, float)
LINEAR(f64_f64, double, double)

#ifndef GP_CPU
/* ---- few rows ------------------------------------------------------------ */

/* dst = activation(src weights^T + bias) + more, of `rows` rows of k elements, at most ROWS, and n weights' rows of as many.
 * `lanes` threads have a row of weights, 16 bytes of it at a time: each weight is read once for all rows. Sums are f32,
 * lane by lane in order, then halves. k elements are a multiple of 16 bytes. */
template <int ROWS, class T>
static __device__ __forceinline__ void linear_few(T *dst, size_t dst_step, const T *src, size_t src_step, const T *weights,
                                                  size_t weights_step, const T *bias, size_t bias_step, const T *more,
                                                  size_t more_step, unsigned rows, unsigned n, unsigned k, unsigned lanes,
                                                  int activation)
{
    enum { EACH = 16 / sizeof(T), WARP = 32 };
    struct alignas(16) vector { T v[EACH]; };
    GP_SHARED(float, part);
    dst += blockIdx.z * dst_step, src += blockIdx.z * src_step, weights += blockIdx.z * weights_step;
    bias += bias ? blockIdx.z * bias_step : 0, more += more ? blockIdx.z * more_step : 0;
    const unsigned beside = blockDim.x / lanes, lane = threadIdx.x % lanes, warps = blockDim.x / WARP;
    for (unsigned first = blockIdx.x * beside; first < n; first += gridDim.x * beside) {
        const unsigned row = first + threadIdx.x / lanes;
        const T *w = weights + (row < n ? row : n - 1) * (size_t)k;
        float sum[ROWS] = { 0 };
#pragma unroll 4
        for (unsigned i = lane * EACH; i < k; i += lanes * EACH) {
            const vector a = *(const vector *)(w + i);
#pragma unroll
            for (unsigned r = 0; r < ROWS; r++) {
                const vector x = *(const vector *)(src + (r < rows ? r : 0) * (size_t)k + i);
#pragma unroll
                for (int e = 0; e < EACH; e++)
                    sum[r] = fmaf(convert<float>(a.v[e]), convert<float>(x.v[e]), sum[r]);
            }
        }
#pragma unroll
        for (unsigned r = 0; r < ROWS; r++)
            for (unsigned half = (lanes < WARP ? lanes : WARP) / 2; half; half /= 2)
                sum[r] += __shfl_down_sync(~0u, sum[r], half);
        if (lanes > WARP) {
            if (threadIdx.x % WARP == 0)
#pragma unroll
                for (unsigned r = 0; r < ROWS; r++)
                    part[r * warps + threadIdx.x / WARP] = sum[r];
            __syncthreads();
            if (lane == 0)
#pragma unroll
                for (unsigned r = 0; r < ROWS; r++)
                    for (unsigned i = 1; i < lanes / WARP; i++)
                        sum[r] += part[r * warps + threadIdx.x / WARP + i];
            __syncthreads();
        }
        if (lane == 0 && row < n)
#pragma unroll
            for (unsigned r = 0; r < ROWS; r++)
                if (r < rows) {
                    const float x = activated(bias ? sum[r] + convert<float>(bias[row]) : sum[r], activation);
                    dst[r * (size_t)n + row] = convert<T>(more ? x + convert<float>(more[r * (size_t)n + row]) : x);
                }
    }
}

#define FEW(rows_, name, T)                                                                                 \
    extern "C" __global__ void linear_few##rows_##_##name(T *dst, size_t dst_step, const T *src, size_t src_step, \
        const T *weights, size_t weights_step, const T *bias, size_t bias_step, const T *more, size_t more_step, \
        unsigned rows, unsigned n, unsigned k, unsigned lanes, int activation)                              \
    {                                                                                                       \
        linear_few<rows_>(dst, dst_step, src, src_step, weights, weights_step, bias, bias_step, more, more_step, rows, \
                          n, k, lanes, activation);                                                         \
    }
FEW(1, f16, gp_half) FEW(2, f16, gp_half) FEW(4, f16, gp_half) FEW(8, f16, gp_half)
FEW(1, f32, float) FEW(2, f32, float) FEW(4, f32, float) FEW(8, f32, float)
#endif

GP_KERNELS(GP_K(linear_f16_f16) GP_K(linear_f32_f16) GP_K(linear_f32_f32) GP_K(linear_f64_f64))
