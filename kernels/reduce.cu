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

#define DEFINE(name, T)                                                             \
    GP_FOLD(sum, sum, accumulator<T>::type, name, T, false, GP_AS_IT_IS(T))         \
    GP_FOLD(min, least, T, name, T, true, GP_AS_IT_IS(T))                           \
    GP_FOLD(max, most, T, name, T, true, GP_AS_IT_IS(T))                            \
    LINES(sum, sum, name, T)                                                        \
    LINES(min, least, name, T)                                                      \
    LINES(max, most, name, T)                                                       \
    GP_TREE(min, least, T, name, T, a)                                              \
    GP_TREE(max, most, T, name, T, a)
GP_REALS(DEFINE)
#define FSUM(name, T) GP_FOLD(fsum, fsum, double, name, T, false, GP_AS_IT_IS(T)) LINES(fsum, fsum, name, T)
FSUM(i64, int64_t) FSUM(u64, uint64_t)

/* Sums end as floats of some type or as 64-bit integers, named by the result;
 * means by what was summed as well. */
GP_TREE(sum, sum, double, f16, gp_half, gp_total<gp_half>(a))
GP_TREE(sum, sum, double, f32, float, gp_total<float>(a))
GP_TREE(sum, sum, double, f64, double, gp_total<double>(a))
GP_TREE(sum, sum, int64_t, i64, int64_t, a)
GP_TREE(sum, sum, uint64_t, u64, uint64_t, a)
GP_TREE(mean, sum, double, f16, gp_half, gp_total<gp_half>(a / count))
GP_TREE(mean, sum, double, f32, float, gp_total<float>(a / count))
GP_TREE(mean, sum, double, f64, double, gp_total<double>(a / count))
GP_TREE(mean, sum, int64_t, i64, float, (float)((double)a / count))

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
