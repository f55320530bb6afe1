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

enum { FEW = 8, WARP = 32, EACH = 8, APART = 32 };     /* rows; elements of a load; between rows in shared memory */
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

/* A row that a warp brings to mean 0 and deviation 1. A thread has PART numbers of it, in x, and of a longer row those of
 * one part after the other. */
struct normal_row {
    enum { PART = 3 * EACH, STEP = WARP * PART };
    const gp_half *src;
    unsigned k;
    float x[PART];

    __device__ __forceinline__ unsigned at(unsigned part, int i) const
    {
        return part + (i / EACH * WARP + threadIdx.x % WARP) * EACH;
    }
    __device__ __forceinline__ void read(unsigned part)
    {
#pragma unroll
        for (int i = 0; i < PART; i += EACH) {
            const vector v = load(src, at(part, i), k);
            for (int e = 0; e < EACH; e += 2)
                gp_from_halves(x + i + e, v.pair[e / 2]);
        }
    }
    /* f(x) of all that this thread has, added up; all of the warp get the sum. */
    template <class F> __device__ __forceinline__ float sum(F f)
    {
        float a[4] = { 0 };
        for (unsigned part = 0; part < k; part += STEP) {
            if (part || k > STEP)
                read(part);
#pragma unroll
            for (int i = 0; i < PART; i++)
                if (at(part, i) < k)
                    a[i % 4] += f(x[i]);
        }
        return all_of_warp(a[0] + a[1] + (a[2] + a[3]));
    }
    __device__ __forceinline__ void write(gp_half *to, float mean, float factor)
    {
        for (unsigned part = 0; part < k; part += STEP) {
            if (part || k > STEP)
                read(part);
#pragma unroll
            for (int i = 0; i < PART; i += EACH) {
                vector v;
                for (int e = 0; e < EACH; e += 2)
                    v.pair[e / 2] = gp_to_halves((x[i + e] - mean) * factor, (x[i + e + 1] - mean) * factor);
                if (at(part, i) < k)
                    *(vector *)(to + at(part, i)) = v;
            }
        }
    }
};

static __device__ __forceinline__ void normalize_row(gp_half *dst, const gp_half *src, unsigned k, float epsilon)
{
    normal_row r = { src, k };
    r.read(0);
    const float mean = r.sum([](float x) { return x; }) / k;
    const float squares = r.sum([=](float x) { return (x - mean) * (x - mean); });
    r.write(dst, mean, rsqrtf(squares / k + epsilon));
}

/* What a frame's product is made of, and what becomes of one of its sums. */
struct few {
    gp_half *dst;
    const gp_half *src, *weights, *bias, *more;
    unsigned rows, n, k;
    int activation;

    __device__ __forceinline__ const gp_half *weights_of(unsigned row) const
    {
        return weights + (row < n ? row : n - 1) * (size_t)k;
    }
    __device__ __forceinline__ float bias_of(unsigned column) const
    {
        return bias && column < n ? convert<float>(bias[column]) : 0;
    }
    __device__ __forceinline__ float more_of(unsigned row, unsigned column) const
    {
        return more && row < rows && column < n ? convert<float>(more[row * (size_t)n + column]) : 0;
    }
    __device__ __forceinline__ void put(unsigned row, unsigned column, float sum, float of_bias, float of_more) const
    {
        if (row >= rows || column >= n)
            return;
        sum = activated(bias ? sum + of_bias : sum, activation);
        dst[row * (size_t)n + column] = convert<gp_half>(more ? sum + of_more : sum);
    }
};

/* All rows of src, normalized where epsilon is above 0, to shared memory; a warp brings each. */
static __device__ __forceinline__ void bring_rows(gp_half *to, const few &f, float epsilon)
{
    for (unsigned row = threadIdx.x / WARP; row < f.rows; row += blockDim.x / WARP) {
        gp_half *at = to + row * (f.k + APART);
        const gp_half *from = f.src + row * (size_t)f.k;
        if (epsilon > 0)
            normalize_row(at, from, f.k, epsilon);
        else
            for (unsigned i = threadIdx.x % WARP * EACH; i < f.k; i += WARP * EACH)
                *(vector *)(at + i) = *(const vector *)(from + i);
    }
    __syncthreads();
}

/* HIGH of n rows of weights are a block's, in turns: its warps share their columns, AHEAD loads of each at a time, and
 * their sums are added in order. */
template <int HIGH, int AHEAD> static __device__ __forceinline__ void few_by_block(const few &f, float epsilon)
{
    GP_SHARED(float, part);                /* [warps][HIGH][FEW]; behind it what is normalized */
    const unsigned warps = blockDim.x / WARP, warp = threadIdx.x / WARP, group = threadIdx.x % WARP / 4, n = f.n, k = f.k;
    const unsigned at = (warp * 4 + threadIdx.x % 4) * EACH, next = warps * 4 * EACH, row = threadIdx.x / HIGH;
    const gp_half *x = f.src + (group < f.rows ? group : 0) * (size_t)k;
    const gp_half *w[HIGH / 8];            /* the row of weights of a low row, and of a high one */
    vector a[HIGH / 8][AHEAD], b[AHEAD];
    auto begin = [&](unsigned first) {
        for (int h = 0; h < HIGH / 8; h++)
            w[h] = f.weights_of(first + group + 8 * h);
    };
    auto load_weights = [&](unsigned i) {
#pragma unroll
        for (int j = 0; j < AHEAD; j++)
            for (int h = 0; h < HIGH / 8; h++)
                a[h][j] = load(w[h], i + j * next, k);
    };
    begin(blockIdx.x * HIGH);
    load_weights(at);
    float of_bias = f.bias_of(blockIdx.x * HIGH + threadIdx.x % HIGH);
    gp_grid_wait();
    if (epsilon > 0) {
        gp_half *even = (gp_half *)(part + warps * HIGH * FEW);
        bring_rows(even, f, epsilon);
        x = even + (group < f.rows ? group : 0) * (k + APART);
    }
    for (unsigned first = blockIdx.x * HIGH; first < n; first += gridDim.x * HIGH) {
        const unsigned column = first + threadIdx.x % HIGH;
        const float of_more = f.more_of(row, column);
        float c[4] = { 0 };
        for (unsigned i = at; i - at < k; ) {
#pragma unroll
            for (int j = 0; j < AHEAD; j++)
                b[j] = load(x, i + j * next, k);
#pragma unroll
            for (int j = 0; j < AHEAD; j++)
                for (int e = 0; e < EACH / 2; e++)
                    multiply(c, a[0][j].pair[e], HIGH > 8 ? a[HIGH / 8 - 1][j].pair[e] : 0, b[j].pair[e]);
            i += AHEAD * next;
            if (i - at < k) {
                load_weights(i);
            } else if (first + gridDim.x * HIGH < n) {
                begin(first + gridDim.x * HIGH);
                load_weights(at);
            }
        }
        float *to = part + (warp * HIGH + group) * FEW + threadIdx.x % 4 * 2;
        for (int i = 0; i < HIGH / 4; i++)
            to[i / 2 * 8 * FEW + i % 2] = c[i];
        __syncthreads();
        float sum = 0;
        for (unsigned i = 0; i < warps && row < FEW; i++)
            sum += part[(i * HIGH + threadIdx.x % HIGH) * FEW + row];
        f.put(row, column, sum, of_bias, of_more);
        of_bias = f.bias_of(column + gridDim.x * HIGH);
        __syncthreads();
    }
}

/* Each warp has 8 of n rows of weights for itself, in turns: the next loads are under way while it multiplies. */
static __device__ __forceinline__ void few_by_warp(const few &f, float epsilon)
{
    enum { AHEAD = 8, NEXT = 4 * EACH };
    GP_SHARED(gp_half, x);                 /* src */
    const unsigned group = threadIdx.x % WARP / 4, lane = threadIdx.x % 4, at = lane * EACH, k = f.k;
    const unsigned step = gridDim.x * (blockDim.x / WARP) * 8;
    unsigned first = (blockIdx.x * (blockDim.x / WARP) + threadIdx.x / WARP) * 8, i = at;
    const gp_half *mine = x + (group < f.rows ? group : 0) * (k + APART);
    vector a[AHEAD], now[AHEAD];
    auto load_weights = [&](unsigned of, unsigned from) {
        const gp_half *w = f.weights_of(of + group);
#pragma unroll
        for (int j = 0; j < AHEAD; j++)
            a[j] = load(w, from + j * NEXT, k);
    };
    load_weights(first, i);
    gp_grid_wait();
    bring_rows(x, f, epsilon);
    float c[4] = { 0 };
    while (first < f.n) {
        const bool last = i + AHEAD * NEXT - at >= k;
        const unsigned next_first = last ? first + step : first, next_i = last ? at : i + AHEAD * NEXT;
#pragma unroll
        for (int j = 0; j < AHEAD; j++)
            now[j] = a[j];
        if (next_first < f.n)
            load_weights(next_first, next_i);
#pragma unroll
        for (int j = 0; j < AHEAD; j++) {
            const vector b = load(mine, i + j * NEXT, k);
            for (int e = 0; e < EACH / 2; e++)
                multiply(c, now[j].pair[e], 0, b.pair[e]);
        }
        for (int r = 0; r < 2 && last; r++) {
            f.put(2 * lane + r, first + group, c[r], f.bias_of(first + group), f.more_of(2 * lane + r, first + group));
            c[r] = 0;
        }
        first = next_first, i = next_i;
    }
}

/* dst = activation(src weights^T + bias) + more, of `rows` rows of k elements, at most FEW, and n weights' rows of as many; k
 * is a multiple of EACH. With an epsilon above 0 each row of src is normalized before. So few rows take as long as their
 * weights take to be read, which each are once: 4 threads have 32 elements of a row of weights and of a row of src. Which of
 * them are multiplied at once is of no matter to a sum, if it is the same in both. `fixed`: weights and bias are constants,
 * and are read while the kernels before are at work. */
#define FEW_ROWS(name, threads, blocks, ...)                                                                               \
    extern "C" __global__ void __launch_bounds__(threads, blocks)                                                          \
    linear_few_##name##_f16(gp_half *dst, size_t dst_step, const gp_half *src, size_t src_step, const gp_half *weights,    \
                            size_t weights_step, const gp_half *bias, size_t bias_step, const gp_half *more,               \
                            size_t more_step, unsigned rows, unsigned n, unsigned k, int activation, float epsilon,        \
                            int fixed)                                                                                     \
    {                                                                                                                      \
        const unsigned z = blockIdx.z;                                                                                     \
        gp_grid_next();                                                                                                    \
        if (!fixed)                                                                                                        \
            gp_grid_wait();                                                                                                \
        const few f = { dst + z * dst_step, src + z * src_step, weights + z * weights_step,                                \
                        bias ? bias + z * bias_step : bias, more ? more + z * more_step : more, rows, n, k, activation };  \
        __VA_ARGS__(f, epsilon);                                                                                           \
    }
FEW_ROWS(8, 256, 4, few_by_block<8, 3>) FEW_ROWS(8_long, 512, 1, few_by_block<8, 6>)
FEW_ROWS(16, 512, 1, few_by_block<16, 3>) FEW_ROWS(wide, 256, 2, few_by_warp)
GP_EARLY(linear_few_8_f16)
GP_EARLY(linear_few_8_long_f16)
GP_EARLY(linear_few_16_f16)
GP_EARLY(linear_few_wide_f16)
#endif

GP_KERNELS(GP_K(linear_f16_f16) GP_K(linear_f32_f16) GP_K(linear_f32_f32) GP_K(linear_f64_f64))
