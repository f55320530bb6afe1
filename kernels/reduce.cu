/* reduce.cu - sums and extremes over axes. Over the last ones by one kernel, see lines.h:
 *
 *   reduce_lines_OP_T
 *
 * Over others, the middle axis of (outer, rows, inner), in two steps whose order depends on these numbers alone:
 *
 *   reduce_fold_OP_T   rows -> partials, see fold.h
 *   reduce_tree_OP_T   partials -> one: threads take partials t, t + threads, ...
 *                      in order, then halves are added to halves
 */
#include "lines.h"
#include "fold.h"

/* `quads`: each line begins at a multiple of four elements. */
#define LINES(op, Op, name, T)                                                      \
    extern "C" __global__ void reduce_lines_##op##_##name(gp_lines r, const T *src, \
                                                          size_t src_stride, int quads) \
    {                                                                               \
        constexpr int Q = sizeof(T) == 8 ? 4 : 8;                                   \
        src += blockIdx.z * src_stride;                                             \
        auto value = [src](size_t e) { return src[e]; };                            \
        auto values = [](const quad<T> &x, size_t) { return x; };                   \
        if (quads)                                                                  \
            gp_reduce_lines<Op, T, Q>(r, [src](size_t e) { return ((const quad<T> *)src)[e / 4]; }, \
                                      values, value);                               \
        else                                                                        \
            gp_reduce_lines<Op, T, Q>(r, [src](size_t e) {                          \
                return quad<T>{ { src[e], src[e + 1], src[e + 2], src[e + 3] } };   \
            }, values, value);                                                      \
    }

#define FOLD(op, Op, A, name, T)                                                    \
    extern "C" __global__ void reduce_fold_##op##_##name(                           \
        A *dst, size_t dst_stride, const T *src, size_t src_stride, size_t outer,   \
        size_t rows, size_t inner, size_t lanes, size_t steps)                      \
    {                                                                               \
        src += blockIdx.z * src_stride;                                             \
        gp_fold<Op>(dst + blockIdx.z * dst_stride, outer, rows, inner, lanes,       \
                    steps, #op[0] == 'm', [src](size_t e) { return src[e]; },       \
                    [](T x, size_t) { return x; });                                 \
    }

/* `count` divides the sum (mean). */
#define TREE(op, Op, A, name, T, expr)                                              \
    extern "C" __global__ void reduce_tree_##op##_##name(                           \
        T *dst, size_t dst_stride, const A *src, size_t src_stride, size_t outer,   \
        size_t n, size_t inner, double count)                                       \
    {                                                                               \
        dst += blockIdx.z * dst_stride;                                             \
        gp_tree<Op>(src + blockIdx.z * src_stride, outer, n, inner,                    \
                    [dst, count](size_t i, A a) { (void)count, dst[i] = expr; });      \
    }

#define DEFINE(name, T)                                                             \
    FOLD(sum, sum, accumulator<T>::type, name, T)                                   \
    FOLD(min, least, T, name, T)                                                    \
    FOLD(max, most, T, name, T)                                                     \
    LINES(sum, sum, name, T)                                                        \
    LINES(min, least, name, T)                                                      \
    LINES(max, most, name, T)                                                       \
    TREE(min, least, T, name, T, a)                                                 \
    TREE(max, most, T, name, T, a)
GP_REALS(DEFINE)
#define FSUM(name, T) FOLD(fsum, fsum, double, name, T) LINES(fsum, fsum, name, T)
FSUM(i64, int64_t) FSUM(u64, uint64_t)

/* Sums end as floats of some type or as 64-bit integers, named by the result;
 * means by what was summed as well. */
TREE(sum, sum, double, f16, gp_half, gp_total<gp_half>(a))
TREE(sum, sum, double, f32, float, gp_total<float>(a))
TREE(sum, sum, double, f64, double, gp_total<double>(a))
TREE(sum, sum, int64_t, i64, int64_t, a)
TREE(sum, sum, uint64_t, u64, uint64_t, a)
TREE(mean, sum, double, f16, gp_half, gp_total<gp_half>(a / count))
TREE(mean, sum, double, f32, float, gp_total<float>(a / count))
TREE(mean, sum, double, f64, double, gp_total<double>(a / count))
TREE(mean, sum, int64_t, i64, float, (float)((double)a / count))

#define ENTRY(name, T)                                                              \
    GP_K(reduce_fold_sum_##name) GP_K(reduce_fold_min_##name) GP_K(reduce_fold_max_##name) \
    GP_K(reduce_tree_min_##name) GP_K(reduce_tree_max_##name)                       \
    GP_K(reduce_lines_sum_##name) GP_K(reduce_lines_min_##name) GP_K(reduce_lines_max_##name)
GP_KERNELS(GP_REALS(ENTRY)
    GP_K(reduce_tree_sum_f16) GP_K(reduce_tree_sum_f32) GP_K(reduce_tree_sum_f64)
    GP_K(reduce_tree_sum_i64) GP_K(reduce_tree_sum_u64)
    GP_K(reduce_tree_mean_f16) GP_K(reduce_tree_mean_f32) GP_K(reduce_tree_mean_f64)
    GP_K(reduce_tree_mean_i64) GP_K(reduce_fold_fsum_i64) GP_K(reduce_fold_fsum_u64)
    GP_K(reduce_lines_fsum_i64) GP_K(reduce_lines_fsum_u64))
