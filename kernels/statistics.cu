/* statistics.cu - more reductions over axes, by the steps of fold.h; any and all are the most and the least of 0 and 1.
 * Over the last axes argmin and argmax are one kernel, see lines.h:
 *
 *   reduce_lines_OP_T
 *
 *   reduce_fold_OP_T      elements -> partials: OP std, argmin, argmax, any, all
 *   reduce_fold_OP_KEPT   partials -> fewer
 *   reduce_tree_std_KEPT, reduce_tree_std_T, reduce_tree_argmin_KEPT, reduce_tree_argmax_KEPT   partials -> one
 */
#include "fold.h"
#include "lines.h"

/* ---- standard deviations ------------------------------------------------ */

/* So many numbers, the first of them, how far their mean is from that, the sum of the squares of what they differ from
 * their mean, and whether any two differ: squares may be too small for an f64. The mean itself would be rounded where
 * all are large beside how far they are apart. Of one number the squares are 0, but of an infinity and a NaN they are
 * NaN. The size divides what is between frames. Two of these are joined as in Chan, Golub and LeVeque, "Algorithms for
 * computing the sample variance", 1983. */
struct spread { double n, first, mean, squares, differ, unused[3]; };

struct deviation {
    static constexpr bool at_once = true;
    static __device__ __forceinline__ spread join(spread a, spread b)
    {
        const double n = a.n + b.n, part = b.n / n, d = (b.first - a.first) + (b.mean - a.mean);
        if (a.n == 0)
            return b;
        return b.n == 0 ? a : spread{ n, a.first, a.mean + d * part, a.squares + b.squares + d * d * (a.n * part),
                                       double(d != 0 || a.differ != 0 || b.differ != 0), {} };
    }

    template <class T> static __device__ __forceinline__ spread of(const T *x)
    {
        const double first = convert<double>(x[0]);      /* what is the same all along differs by 0 from it */
        double v[8], sum = 0, squares = 0, differ = 0;
        for (int k = 0; k < 8; k++)
            v[k] = convert<double>(x[k]) - first, sum += v[k], differ = v[k] != 0 ? 1 : differ;
        const double mean = sum / 8;
        for (int k = 0; k < 8; k++)
            squares += (v[k] - mean) * (v[k] - mean);
        return { 8, first, mean, squares, differ, {} };
    }

    static __device__ __forceinline__ spread of(const spread *x)
    {
        spread a = x[0];
        for (int k = 1; k < 8; k++)
            a = join(a, x[k]);
        return a;
    }
};

/* ---- where the least is, and the most ------------------------------------- */

/* Of equal ones the first counts, and a NaN before all others. */
template <int SIGN> struct first_best {
    static constexpr bool at_once = false;
    template <class B> static __device__ __forceinline__ B none() { return B{ furthest<decltype(B::v)>(-SIGN), ~(uint64_t)0 }; }
    template <class V> static __device__ __forceinline__ best<V> join(best<V> a, best<V> b)
    {
        const bool odd_a = a.v != a.v, odd_b = b.v != b.v;
        const bool better = odd_a || odd_b ? odd_b && !odd_a : SIGN < 0 ? b.v < a.v : b.v > a.v;
        const bool as_good = odd_a || odd_b ? odd_a && odd_b : a.v == b.v;
        return better || (as_good && b.at < a.at) ? b : a;
    }
};

/* A type that holds all numbers of another. */
template <class T> struct wide { typedef typename accumulator<T>::type type; };

/* ---- kernels ---------------------------------------------------------------- */

#define AS_SPREAD(T) [](T x, size_t) { const double v = convert<double>(x); return spread{ 1, v, 0, v - v, 0, {} }; }
template <class T> static __device__ __forceinline__ best<typename wide<T>::type> as_best(T x, size_t e)
{
    return { convert<typename wide<T>::type>(x), e };
}
#define IS_TRUE(T) [](T x, size_t) { return uint8_t(order(x) != 0); }

#define FOLDS(name, T)                                                              \
    GP_FOLD(std, deviation, spread, name, T, false, AS_SPREAD(T))                   \
    GP_FOLD(argmin, first_best<-1>, best<wide<T>::type>, name, T, true, as_best<T>) \
    GP_FOLD(argmax, first_best<1>, best<wide<T>::type>, name, T, true, as_best<T>)  \
    GP_FOLD(any, most, uint8_t, name, T, true, IS_TRUE(T))                          \
    GP_FOLD(all, least, uint8_t, name, T, true, IS_TRUE(T))
GP_REALS(FOLDS)

GP_FOLD(std, deviation, spread, spread, spread, false, GP_AS_IT_IS(spread))

/* `quads`: each line begins at a multiple of four elements. */
#define LINES(op, SIGN, name, T)                                                    \
    extern "C" __global__ void reduce_lines_##op##_##name(gp_lines r, const T *src, \
                                                          size_t src_stride, int quads) \
    {                                                                               \
        typedef best<wide<T>::type> B;                                              \
        constexpr int Q = sizeof(T) == 8 ? 4 : 8;                                   \
        src += blockIdx.z * src_stride;                                             \
        auto value = [src](size_t e) { return as_best(src[e], e); };                \
        auto values = [](const quad<T> &x, size_t e) {                              \
            return quad<B>{ { as_best(x.v[0], e), as_best(x.v[1], e + 1),           \
                              as_best(x.v[2], e + 2), as_best(x.v[3], e + 3) } };   \
        };                                                                          \
        if (quads)                                                                  \
            gp_reduce_lines<first_best<SIGN>, B, Q>(r, [src](size_t e) { return ((const quad<T> *)src)[e / 4]; }, \
                                                    values, value);                 \
        else                                                                        \
            gp_reduce_lines<first_best<SIGN>, B, Q>(r, [src](size_t e) {            \
                return quad<T>{ { src[e], src[e + 1], src[e + 2], src[e + 3] } };   \
            }, values, value);                                                      \
    }
#define FINDS(name, T) LINES(argmin, -1, name, T) LINES(argmax, 1, name, T)
GP_REALS(FINDS)

#define BEST(name, V)                                                               \
    GP_FOLD(argmin, first_best<-1>, best<V>, best_##name, best<V>, true, GP_AS_IT_IS(best<V>)) \
    GP_FOLD(argmax, first_best<1>, best<V>, best_##name, best<V>, true, GP_AS_IT_IS(best<V>)) \
    GP_TREE(argmin, first_best<-1>, best<V>, best_##name, int64_t, (int64_t)(a.at / inner % (uint64_t)count)) \
    GP_TREE(argmax, first_best<1>, best<V>, best_##name, int64_t, (int64_t)(a.at / inner % (uint64_t)count))
BEST(i64, int64_t) BEST(u64, uint64_t) BEST(f64, double)

GP_TREE(std, deviation, spread, spread, spread, a)
#define STD(name, T) GP_TREE(std, deviation, spread, name, T, gp_total<T>(sqrt(a.squares / a.n)))
STD(f16, gp_half) STD(f32, float) STD(f64, double)

#define ENTRY(name, T)                                                              \
    GP_K(reduce_fold_std_##name) GP_K(reduce_fold_argmin_##name) GP_K(reduce_fold_argmax_##name) \
    GP_K(reduce_fold_any_##name) GP_K(reduce_fold_all_##name)                       \
    GP_K(reduce_lines_argmin_##name) GP_K(reduce_lines_argmax_##name)
#define ENTRY_BEST(name)                                                            \
    GP_K(reduce_fold_argmin_best_##name) GP_K(reduce_fold_argmax_best_##name)       \
    GP_K(reduce_tree_argmin_best_##name) GP_K(reduce_tree_argmax_best_##name)
GP_KERNELS(GP_REALS(ENTRY) GP_K(reduce_fold_std_spread) ENTRY_BEST(i64) ENTRY_BEST(u64) ENTRY_BEST(f64)
           GP_K(reduce_tree_std_spread) GP_K(reduce_tree_std_f16) GP_K(reduce_tree_std_f32) GP_K(reduce_tree_std_f64))
