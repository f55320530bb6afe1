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

/* c += a b, of a 16 x 8 and b 8 x 8, as one warp has them: thread 4 g + t has columns 2 t and 2 t + 1 of row g (a[0]) and of
 * row g + 8 (a[1]), rows 2 t and 2 t + 1 of column g (b), and of c the columns 2 t and 2 t + 1 of row g, then of row g + 8. */
static __device__ __forceinline__ void multiply(float c[4], unsigned a0, unsigned a1, unsigned b)
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a0), "r"(a1), "r"(b));
}

enum { FEW = 8, HIGH = 16, WARP = 32, EACH = 8, AHEAD = 4 };   /* rows; weights' rows of a block; elements of a load; loads */
struct alignas(16) vector { union { gp_half v[EACH]; unsigned pair[EACH / 2]; }; };

static __device__ __forceinline__ float all_of_warp(float x)
{
    for (int half = WARP / 2; half; half /= 2)
        x += __shfl_xor_sync(~0u, x, half);
    return x;
}

static __device__ __forceinline__ vector load(const gp_half *from, unsigned i, unsigned k)
{
    return i < k ? *(const vector *)(from + i) : vector{};
}

/* f(vector, its place) of a row's vectors that this thread has: AHEAD of them at hand, the rest in memory. */
template <class F> static __device__ __forceinline__ void each_vector(vector *kept, const gp_half *src, unsigned k, F f)
{
    const unsigned first = threadIdx.x % WARP * EACH, next = WARP * EACH;
#pragma unroll
    for (unsigned j = 0; j < AHEAD; j++)
        if (first + j * next < k)
            f(kept[j], first + j * next);
    for (unsigned i = first + AHEAD * next; i < k; i += next) {
        vector x = *(const vector *)(src + i);
        f(x, i);
    }
}

/* A warp brings a row to mean 0 and deviation 1. */
static __device__ __forceinline__ void normalize_row(gp_half *dst, const gp_half *src, unsigned k, float epsilon)
{
    vector kept[AHEAD];
    float sum = 0, squares = 0;
#pragma unroll
    for (unsigned j = 0; j < AHEAD; j++)
        kept[j] = load(src, (threadIdx.x % WARP + j * WARP) * EACH, k);
    each_vector(kept, src, k, [&](vector &x, unsigned) {
        for (int e = 0; e < EACH; e++)
            sum += convert<float>(x.v[e]);
    });
    const float mean = all_of_warp(sum) / k;
    each_vector(kept, src, k, [&](vector &x, unsigned) {
        for (int e = 0; e < EACH; e++) {
            const float d = convert<float>(x.v[e]) - mean;
            squares += d * d;
        }
    });
    const float factor = rsqrtf(all_of_warp(squares) / k + epsilon);
    each_vector(kept, src, k, [&](vector &x, unsigned i) {
        for (int e = 0; e < EACH; e++)
            x.v[e] = convert<gp_half>((convert<float>(x.v[e]) - mean) * factor);
        *(vector *)(dst + i) = x;
    });
}

/* dst = activation(src weights^T + bias) + more, of `rows` rows of k elements, at most FEW, and n weights' rows of as many; k
 * is a multiple of EACH. With an epsilon above 0 each row of src is normalized before. So few rows take as long as their
 * weights take to be read, which each are once: by the warps of a block in turns, 4 threads having 32 elements of a row of
 * weights and of a row of src. Which of them are multiplied at once is of no matter to a sum, if it is the same in both. Then
 * the warps' sums are added, in order. */
extern "C" __global__ void linear_few_f16(gp_half *dst, size_t dst_step, const gp_half *src, size_t src_step,
                                          const gp_half *weights, size_t weights_step, const gp_half *bias, size_t bias_step,
                                          const gp_half *more, size_t more_step, unsigned rows, unsigned n, unsigned k,
                                          int activation, float epsilon)
{
    GP_SHARED(float, part);                /* [warps][HIGH][FEW]; behind it what is normalized */
    dst += blockIdx.z * dst_step, src += blockIdx.z * src_step, weights += blockIdx.z * weights_step;
    bias += bias ? blockIdx.z * bias_step : 0, more += more ? blockIdx.z * more_step : 0;
    const unsigned warps = blockDim.x / WARP, warp = threadIdx.x / WARP, group = threadIdx.x % WARP / 4;
    const unsigned at = (warp * 4 + threadIdx.x % 4) * EACH, next = warps * 4 * EACH;
    const gp_half *x = src + (group < rows ? group : 0) * (size_t)k;
    const gp_half *w0, *w1;                /* the row of weights of a low row, and of a high one */
    vector a0[AHEAD], a1[AHEAD];
    auto begin = [&](unsigned first) {
        const unsigned low = first + group, high = low + HIGH / 2;
        w0 = weights + (low < n ? low : n - 1) * (size_t)k, w1 = weights + (high < n ? high : n - 1) * (size_t)k;
    };
    auto load_weights = [&](unsigned i) {
#pragma unroll
        for (unsigned j = 0; j < AHEAD; j++)
            a0[j] = load(w0, i + j * next, k), a1[j] = load(w1, i + j * next, k);
    };
    begin(blockIdx.x * HIGH);
    load_weights(at);
    if (epsilon > 0) {                     /* while weights are on their way */
        gp_half *even = (gp_half *)(part + warps * HIGH * FEW);
        if (warp < rows)
            normalize_row(even + warp * k, src + warp * (size_t)k, k, epsilon);
        x = even + (group < rows ? group : 0) * k;
        __syncthreads();
    }
    for (unsigned first = blockIdx.x * HIGH; first < n; first += gridDim.x * HIGH) {
        float c[4] = { 0 };
        for (unsigned i = at; i - at < k; ) {
#pragma unroll
            for (unsigned j = 0; j < AHEAD; j++) {
                const vector b = load(x, i + j * next, k);
#pragma unroll
                for (int e = 0; e < EACH / 2; e++)
                    multiply(c, a0[j].pair[e], a1[j].pair[e], b.pair[e]);
            }
            i += AHEAD * next;
            if (i - at < k) {
                load_weights(i);
            } else if (first + gridDim.x * HIGH < n) {
                begin(first + gridDim.x * HIGH);
                load_weights(at);
            }
        }
        float *to = part + (warp * HIGH + group) * FEW + threadIdx.x % 4 * 2;
        to[0] = c[0], to[1] = c[1], to[HIGH / 2 * FEW] = c[2], to[HIGH / 2 * FEW + 1] = c[3];
        __syncthreads();
        const unsigned row = threadIdx.x / HIGH, column = first + threadIdx.x % HIGH;
        if (row < rows && column < n) {
            float sum = 0;
            for (unsigned i = 0; i < warps; i++)
                sum += part[(i * HIGH + threadIdx.x % HIGH) * FEW + row];
            sum = activated(bias ? sum + convert<float>(bias[column]) : sum, activation);
            dst[row * (size_t)n + column] = convert<gp_half>(more ? sum + convert<float>(more[row * (size_t)n + column]) : sum);
        }
        __syncthreads();
    }
}
#endif

GP_KERNELS(GP_K(linear_f16_f16) GP_K(linear_f32_f16) GP_K(linear_f32_f32) GP_K(linear_f64_f64))
