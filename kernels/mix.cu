/* mix.cu - the sum, an extreme or the last of many frames, element by element.
 *
 *   mix_add_OP_T    adds frames to what is kept, in their order; the first of all replaces it
 *   mix_make_OP_T   makes a frame of what is kept */
#include "join.h"

struct last {
    template <class T> static __device__ __forceinline__ T join(T, T b) { return b; }
};

template <class Op, class A, class T>
static __device__ __forceinline__ A add(A kept, const T *x, size_t stride, size_t frames, bool first)
{
    A a = first ? convert<A>(*x) : Op::join(kept, convert<A>(*x));
    for (size_t f = 1; f < frames; f++)
        a = Op::join(a, convert<A>(x[f * stride]));
    return a;
}

/* kept[i] of src[i], src[stride + i], ...; i < n. Four at a time: frames are aligned to 256 bytes. */
template <class Op, class A, class T>
static __device__ __forceinline__ void add_all(A *kept, const T *src, size_t stride, size_t n, size_t frames, bool first)
{
    for (size_t i = first_x(); i < n / 4; i += step_x()) {
        quad<A> k = first ? quad<A>() : ((const quad<A> *)kept)[i];
        for (size_t f = 0; f < frames; f++) {
            quad<T> x = ((const quad<T> *)(src + f * stride))[i];
            for (int j = 0; j < 4; j++)
                k.v[j] = first && !f ? convert<A>(x.v[j]) : Op::join(k.v[j], convert<A>(x.v[j]));
        }
        ((quad<A> *)kept)[i] = k;
    }
    size_t i = n / 4 * 4 + first_x();
    if (i < n)
        kept[i] = add<Op>(kept[i], src + i, stride, frames, first);
}

#define ADD(op, Op, A, name, T)                                                                     \
    extern "C" __global__ void mix_add_##op##_##name(A *kept, const T *src, size_t src_stride, size_t n, \
                                                     size_t frames, unsigned first)                 \
    {                                                                                               \
        add_all<Op>(kept, src, src_stride, n, frames, first);                                       \
    }

/* `count` divides the sum (mean). */
#define MAKE(op, A, name, T, expr)                                                                  \
    extern "C" __global__ void mix_make_##op##_##name(T *dst, const A *kept, size_t n, double count) \
    {                                                                                               \
        map(dst, kept, n, [count](A a) { (void)count; return expr; });                              \
    }

#define DEFINE(name, T)                                                                             \
    ADD(sum, sum, accumulator<T>::type, name, T)                                                    \
    ADD(min, least, T, name, T)                                                                     \
    ADD(max, most, T, name, T)                                                                      \
    ADD(last, last, T, name, T)                                                                     \
    MAKE(same, T, name, T, a)
GP_REALS(DEFINE)
ADD(fsum, fsum, double, i64, int64_t)
ADD(fsum, fsum, double, u64, uint64_t)

/* Sums are named by what they become, means by what was added. */
MAKE(sum, double, f16, gp_half, convert<gp_half>(a))
MAKE(sum, double, f32, float, (float)a)
MAKE(sum, double, f64, double, a)
MAKE(sum, int64_t, i64, int64_t, a)
MAKE(sum, uint64_t, u64, uint64_t, a)
MAKE(mean, double, f16, gp_half, convert<gp_half>(a / count))
MAKE(mean, double, f32, float, (float)(a / count))
MAKE(mean, double, f64, double, a / count)
MAKE(mean, int64_t, i64, float, (float)((double)a / count))

#define ENTRY(name, T)                                                                              \
    GP_K(mix_add_sum_##name) GP_K(mix_add_min_##name) GP_K(mix_add_max_##name) GP_K(mix_add_last_##name) \
    GP_K(mix_make_same_##name)
GP_KERNELS(GP_REALS(ENTRY)
    GP_K(mix_make_sum_f16) GP_K(mix_make_sum_f32) GP_K(mix_make_sum_f64)
    GP_K(mix_make_sum_i64) GP_K(mix_make_sum_u64)
    GP_K(mix_make_mean_f16) GP_K(mix_make_mean_f32) GP_K(mix_make_mean_f64)
    GP_K(mix_make_mean_i64) GP_K(mix_add_fsum_i64) GP_K(mix_add_fsum_u64))
