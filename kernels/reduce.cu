/* reduce.cu - sums and extremes over the middle axis of (outer, rows, inner), in
 * two steps whose order depends on these numbers alone.
 *
 *   reduce_fold_OP_T   rows -> partials: in chunks of lanes * steps rows, lane l
 *                      of a chunk takes its rows l, l + lanes, ... in order
 *   reduce_tree_OP_T   partials -> one: threads take partials t, t + threads, ...
 *                      in order, then halves are added to halves
 */
#include "join.h"

/* Before a loop that is not to be unrolled: its body has loads enough to overlap,
 * and there are many of these kernels. */
#ifdef __CUDACC__
#define ROLLED _Pragma("unroll 1")
#else
#define ROLLED
#endif

/* a, then x[step], x[2 step], ... x[n step] in order; eight loads at a time are in
 * flight. */
template <class Op, class A, class T>
static __device__ __forceinline__ A join_all(A a, const T *x, size_t n, size_t step)
{
    ROLLED for (; n >= 8; n -= 8, x += 8 * step) {
        T v[8];
        for (int k = 0; k < 8; k++)
            v[k] = x[(k + 1) * step];
        for (int k = 0; k < 8; k++)
            a = Op::join(a, convert<A>(v[k]));
    }
    ROLLED for (; n; n--)
        a = Op::join(a, convert<A>(*(x += step)));
    return a;
}

/* dst (outer, chunks * lanes, inner). Lanes without a row in the last chunk give
 * 0 (`spare`), or for extremes the last row once more. */
template <class Op, class A, class T>
static __device__ __forceinline__ void fold(A *dst, const T *src, size_t outer, size_t rows,
                                            size_t inner, size_t lanes, size_t steps, bool spare)
{
    size_t chunks = (rows + lanes * steps - 1) / (lanes * steps), wide = lanes * inner;
    size_t n = outer * chunks * wide;

    ROLLED for (size_t i = first_x(); i < n; i += step_x()) {
        size_t q = i % wide, chunk = i / wide % chunks, o = i / wide / chunks;
        size_t row = chunk * lanes * steps + q / inner;
        size_t end = row + lanes * steps < rows ? row + lanes * steps : rows;
        A a = A();
        if (row < rows || spare) {
            if (row >= rows)
                row = rows - 1;
            const T *x = src + (o * rows + row) * inner + q % inner;
            a = join_all<Op>(convert<A>(*x), x, row < end ? (end - row - 1) / lanes : 0, wide);
        }
        dst[i] = a;
    }
}

/* dst (outer, inner) from src (outer, n, inner); blockDim.y results a block, by
 * blockDim.x threads each: a power of two, at most n. */
template <class Op, class A, class F>
static __device__ __forceinline__ void tree(const A *src, size_t outer, size_t n, size_t inner,
                                            F store)
{
    GP_SHARED(A, part);                    /* one a thread */
    size_t result = blockIdx.x * (size_t)blockDim.y + threadIdx.y;
    size_t i = result < outer * inner ? result : 0;
    const A *x = src + (i / inner * n + threadIdx.x) * inner + i % inner;
    A *mine = part + threadIdx.y * blockDim.x + threadIdx.x;

    *mine = join_all<Op>(*x, x, (n - threadIdx.x - 1) / blockDim.x, blockDim.x * inner);
    for (unsigned half = blockDim.x / 2; half; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            *mine = Op::join(mine[0], mine[half]);
    }
    if (threadIdx.x == 0 && result < outer * inner)
        store(result, *mine);
}

#define FOLD(op, Op, A, name, T)                                                    \
    extern "C" __global__ void reduce_fold_##op##_##name(                           \
        A *dst, size_t dst_stride, const T *src, size_t src_stride, size_t outer,   \
        size_t rows, size_t inner, size_t lanes, size_t steps)                      \
    {                                                                               \
        fold<Op>(dst + blockIdx.z * dst_stride, src + blockIdx.z * src_stride,      \
                 outer, rows, inner, lanes, steps, #op[0] == 'm');                  \
    }

/* `count` divides the sum (mean). */
#define TREE(op, Op, A, name, T, expr)                                              \
    extern "C" __global__ void reduce_tree_##op##_##name(                           \
        T *dst, size_t dst_stride, const A *src, size_t src_stride, size_t outer,   \
        size_t n, size_t inner, double count)                                       \
    {                                                                               \
        dst += blockIdx.z * dst_stride;                                             \
        tree<Op>(src + blockIdx.z * src_stride, outer, n, inner,                    \
                 [dst, count](size_t i, A a) { (void)count, dst[i] = expr; });      \
    }

#define DEFINE(name, T)                                                             \
    FOLD(sum, sum, accumulator<T>::type, name, T)                                   \
    FOLD(min, least, T, name, T)                                                    \
    FOLD(max, most, T, name, T)                                                     \
    TREE(min, least, T, name, T, a)                                                 \
    TREE(max, most, T, name, T, a)
GP_REALS(DEFINE)

/* Sums end as floats of some type or as 64-bit integers, named by the result;
 * means by what was summed as well. */
TREE(sum, sum, double, f16, gp_half, convert<gp_half>(a))
TREE(sum, sum, double, f32, float, (float)a)
TREE(sum, sum, double, f64, double, a)
TREE(sum, sum, int64_t, i64, int64_t, a)
TREE(sum, sum, uint64_t, u64, uint64_t, a)
TREE(mean, sum, double, f16, gp_half, convert<gp_half>(a / count))
TREE(mean, sum, double, f32, float, (float)(a / count))
TREE(mean, sum, double, f64, double, a / count)
TREE(mean, sum, int64_t, i64, float, (float)((double)a / count))
TREE(mean, sum, uint64_t, u64, float, (float)((double)a / count))

#define ENTRY(name, T)                                                              \
    GP_K(reduce_fold_sum_##name) GP_K(reduce_fold_min_##name) GP_K(reduce_fold_max_##name) \
    GP_K(reduce_tree_min_##name) GP_K(reduce_tree_max_##name)
GP_KERNELS(GP_REALS(ENTRY)
    GP_K(reduce_tree_sum_f16) GP_K(reduce_tree_sum_f32) GP_K(reduce_tree_sum_f64)
    GP_K(reduce_tree_sum_i64) GP_K(reduce_tree_sum_u64)
    GP_K(reduce_tree_mean_f16) GP_K(reduce_tree_mean_f32) GP_K(reduce_tree_mean_f64)
    GP_K(reduce_tree_mean_i64) GP_K(reduce_tree_mean_u64))
