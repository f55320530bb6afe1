/* fold.h - the two steps of a reduction of (outer, rows, inner), in an order that depends on these numbers alone: rows
 * are folded to partials, then a tree joins these. reduce.cu and statistics.cu read the elements from memory; kernels
 * that stages/expr/reduced.c writes compute them. */
#ifndef GP_FOLD_H
#define GP_FOLD_H

#include "join.h"

/* Before a loop that is not to be unrolled: its body has loads enough to overlap,
 * and there are many of these kernels. */
#ifdef __CUDACC__
#define GP_ROLLED _Pragma("unroll 1")
#else
#define GP_ROLLED
#endif

/* a, then elements first + step, first + 2 step, ... of which there are n, in order; eight loads at a time are in
 * flight. load(e): what element e is made of; value(x, e): the element. */
template <class Op, class A, class Load, class Value>
static __device__ __forceinline__ A gp_join_all(A a, size_t first, size_t n, size_t step, Load load, Value value)
{
    typedef decltype(load(first)) X;
    GP_ROLLED for (; n >= 8; n -= 8, first += 8 * step) {
        X x[8];
        for (int k = 0; k < 8; k++)
            x[k] = load(first + (k + 1) * step);
        if constexpr (Op::at_once)
            a = Op::join(a, Op::of(x));
        else
            for (int k = 0; k < 8; k++)
                a = Op::join(a, gp_keep<A>(value(x[k], first + (k + 1) * step)));
    }
    GP_ROLLED for (; n; n--) {
        first += step;
        a = Op::join(a, gp_keep<A>(value(load(first), first)));
    }
    return a;
}

/* dst (outer, chunks * lanes, inner): in chunks of lanes * steps rows, lane l of a chunk takes its rows l, l + lanes,
 * ... in order. A lane without a row in the last chunk gives 0, as sums need it; with `spare`, as extremes need it, it
 * gives the last row once more. */
template <class Op, class A, class Load, class Value>
static __device__ __forceinline__ void gp_fold(A *dst, size_t outer, size_t rows, size_t inner, size_t lanes,
                                               size_t steps, bool spare, Load load, Value value)
{
    size_t chunks = (rows + lanes * steps - 1) / (lanes * steps), wide = lanes * inner;
    size_t n = outer * chunks * wide;

    GP_ROLLED for (size_t i = first_x(); i < n; i += step_x()) {
        size_t q = i % wide, chunk = i / wide % chunks, o = i / wide / chunks;
        size_t row = chunk * lanes * steps + q / inner;
        size_t end = row + lanes * steps < rows ? row + lanes * steps : rows;
        A a = A();
        if (row < rows || spare) {
            if (row >= rows)
                row = rows - 1;
            size_t e = (o * rows + row) * inner + q % inner;
            a = gp_join_all<Op>(gp_keep<A>(value(load(e), e)), e, row < end ? (end - row - 1) / lanes : 0, wide, load,
                                value);
        }
        dst[i] = a;
    }
}

/* dst (outer, inner) from src (outer, n, inner); blockDim.y results a block, by
 * blockDim.x threads each: a power of two, at most n. */
template <class Op, class A, class F>
static __device__ __forceinline__ void gp_tree(const A *src, size_t outer, size_t n, size_t inner, F store)
{
    GP_SHARED(A, part);                    /* one a thread */
    size_t result = blockIdx.x * (size_t)blockDim.y + threadIdx.y;
    size_t i = result < outer * inner ? result : 0;
    size_t first = (i / inner * n + threadIdx.x) * inner + i % inner;
    A *mine = part + threadIdx.y * blockDim.x + threadIdx.x;

    *mine = gp_join_all<Op>(src[first], first, (n - threadIdx.x - 1) / blockDim.x, blockDim.x * inner,
                            [src](size_t e) { return src[e]; }, [](A a, size_t) { return a; });
    for (unsigned half = blockDim.x / 2; half; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            *mine = Op::join(mine[0], mine[half]);
    }
    if (threadIdx.x == 0 && result < outer * inner)
        store(result, *mine);
}

/* ---- kernels ---------------------------------------------------------------- */

/* reduce_fold_OP_NAME, from elements to partials; `spare` as in gp_fold. */
#define GP_FOLD(op, Op, A, name, T, spare, value)                                   \
    extern "C" __global__ void reduce_fold_##op##_##name(                           \
        A *dst, size_t dst_stride, const T *src, size_t src_stride, size_t outer,   \
        size_t rows, size_t inner, size_t lanes, size_t steps)                      \
    {                                                                               \
        src += blockIdx.z * src_stride;                                             \
        gp_fold<Op>(dst + blockIdx.z * dst_stride, outer, rows, inner, lanes, steps, \
                    spare, [src](size_t e) { return src[e]; }, value);              \
    }
#define GP_AS_IT_IS(T) [](T x, size_t) { return x; }

/* reduce_tree_OP_NAME, from partials to one, of which `expr` is made; `count`: elements along the axis. */
#define GP_TREE(op, Op, A, name, To, expr)                                          \
    extern "C" __global__ void reduce_tree_##op##_##name(                           \
        To *dst, size_t dst_stride, const A *src, size_t src_stride, size_t outer,  \
        size_t n, size_t inner, double count)                                       \
    {                                                                               \
        dst += blockIdx.z * dst_stride;                                             \
        gp_tree<Op>(src + blockIdx.z * src_stride, outer, n, inner,                 \
                    [=](size_t i, A a) { (void)count, dst[i] = expr; });            \
    }

#endif
