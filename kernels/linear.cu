/* linear.cu - dst[i] = activation(src[i] + bias[i % columns]), in f32, or f64 of f64; bias may be NULL, src may be dst.
 * Steps are elements from frame to frame.
 * exp, tanh and erfc are the device's own. A NaN stays one. */
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
                                              size_t bias_step, size_t n, size_t columns, int activation)
{
    typedef typename computed<To>::type F;
    dst += blockIdx.z * dst_step, src += blockIdx.z * src_step, bias += bias ? blockIdx.z * bias_step : 0;
    for (size_t i = first_x(); i < n; i += step_x()) {
        F x = convert<F>(src[i]);
        if (bias)
            x += convert<F>(bias[i % columns]);
        dst[i] = convert<To>(activated(x, activation));
    }
}

#define LINEAR(name, To, From)                                                                              \
    extern "C" __global__ void linear_##name(To *dst, size_t dst_step, const From *src, size_t src_step,    \
                                             const To *bias, size_t bias_step, size_t n, size_t columns,    \
                                             int activation)                                                \
    {                                                                                                       \
        linear(dst, dst_step, src, src_step, bias, bias_step, n, columns, activation);                      \
    }
LINEAR(f16_f16, gp_half, gp_half) LINEAR(f32_f16, gp_half, float) LINEAR(f32_f32, float, float)
LINEAR(f64_f64, double, double)

GP_KERNELS(GP_K(linear_f16_f16) GP_K(linear_f32_f16) GP_K(linear_f32_f32) GP_K(linear_f64_f64))
