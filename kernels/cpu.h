/* cpu.h - CUDA C++ on a CPU: what the language has beyond C++17, so that a
 * kernel's one source also compiles for the CPU back end. It is included before
 * the source, by `-include` (built-ins) or as text (a user's .cu).
 *
 * One OS thread runs a grid block after block, and the threads of a block one
 * after another on a fiber (engine/cpu/fiber.c). At __syncthreads() the fiber is
 * parked there and another goes on with the next thread, so kernels without
 * barriers never switch. As one OS thread has one block at a time, shared memory
 * is thread-local. All names below that hold the state of a block are static and
 * their address is never taken: the compiler then keeps them in registers.
 *
 * The invariant: everything here gives the bits that a GPU gives, wherever CUDA
 * promises IEEE rounding. What depends on how a GPU runs its threads (__activemask) does not compile. */
#ifndef GP_CPU_H
#define GP_CPU_H

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include "base/embed.h"
#include "cpu/fiber.h"

#define GP_CPU 1

/* Shared memory has no constructors, so that reaching it needs no call. Clang takes
 * the word only for types whose constructor is constexpr; float2's is not. */
#if !defined(__clang__) && defined(__GNUC__) && __GNUC__ >= 10
#define GP_CONSTINIT __constinit
#else
#define GP_CONSTINIT
#endif

/* Spelled __attribute, since a source may make a macro of __attribute__. */
#define __global__ inline __attribute((__always_inline__))
#define __device__
#define __host__
/* A variable that a kernel cannot write: it lies in memory that the loader makes read-only. Each has a section of its
 * own, as some are const, too. (gcc 12 leaves out the section of a template.) */
#define GP_QUOTE_(n) #n
#define GP_QUOTE(n) GP_QUOTE_(n)
#define __constant__ __attribute((__section__(".data.rel.ro.gp" GP_QUOTE(__COUNTER__))))
#define __shared__ GP_CONSTINIT thread_local
#define __forceinline__ inline __attribute((__always_inline__))
#define __noinline__ __attribute((__noinline__))
#define __align__(n) __attribute((__aligned__(n)))
#define __launch_bounds__(...)
#define __grid_constant__
#ifndef __restrict__
#define __restrict__ __restrict
#endif

/* ---- vector types ---------------------------------------------------- */

#define GP_VECTORS(T, name, a4)                                                     \
    struct name##1 { T x; };                                                        \
    struct alignas(2 * sizeof(T)) name##2 { T x, y; };                              \
    struct name##3 { T x, y, z; };                                                  \
    struct alignas(a4) name##4 { T x, y, z, w; };                                   \
    static inline name##1 make_##name##1(T x) { return { x }; }                     \
    static inline name##2 make_##name##2(T x, T y) { return { x, y }; }             \
    static inline name##3 make_##name##3(T x, T y, T z) { return { x, y, z }; }     \
    static inline name##4 make_##name##4(T x, T y, T z, T w) { return { x, y, z, w }; }
GP_VECTORS(signed char, char, 4)
GP_VECTORS(unsigned char, uchar, 4)
GP_VECTORS(short, short, 8)
GP_VECTORS(unsigned short, ushort, 8)
GP_VECTORS(int, int, 16)
GP_VECTORS(unsigned, uint, 16)
GP_VECTORS(long, long, 16)
GP_VECTORS(unsigned long, ulong, 16)
GP_VECTORS(long long, longlong, 16)
GP_VECTORS(unsigned long long, ulonglong, 16)
GP_VECTORS(float, float, 16)
GP_VECTORS(double, double, 16)
#undef GP_VECTORS

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
};

/* ---- the block and its threads --------------------------------------- */

static thread_local uint3 threadIdx, blockIdx;
static thread_local uint3 blockDim, gridDim;
static thread_local struct gp_cpu_block *gp_block;
static thread_local bool gp_waited;        /* since the trampoline last looked */
static thread_local int gp_votes;
static constexpr int warpSize = 32;

/* The calling thread is about to wait: which one is the next to begin. */
static inline void gp_will_wait(uint3 me)
{
    gp_cpu_dim next = { me.x + 1, me.y, me.z };
    if (next.x == blockDim.x) {
        next.x = 0;
        if (++next.y == blockDim.y)
            next.y = 0, next.z++;
    }
    if (!gp_waited)
        gp_block->next = next;
}

static inline void __syncthreads()
{
    struct gp_cpu_block *b = gp_block;
    uint3 me = threadIdx;
    gp_will_wait(me);
    b->wait(b);
    threadIdx = me;
    gp_waited = true;
}

/* Threads of the block for which p is not 0. */
static inline int __syncthreads_count(int p)
{
    gp_votes += p != 0;
    __syncthreads();
    int n = gp_votes;
    __syncthreads();
    gp_votes -= p != 0;
    return n;
}

static inline int __syncthreads_or(int p) { return __syncthreads_count(p) > 0; }
static inline int __syncthreads_and(int p) { return __syncthreads_count(!p) == 0; }

/* ---- warps: 32 threads in the order of their ranks -------------------- */

static inline unsigned gp_rank() { return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x; }

/* What lane `from` of the warp gives, or what `vote` makes of what all give, once all of `mask` are there. */
static inline gp_cpu_bits gp_exchange(unsigned mask, gp_cpu_bits given, unsigned from, gp_cpu_vote vote)
{
    struct gp_cpu_block *b = gp_block;
    uint3 me = threadIdx;
    gp_will_wait(me);
    gp_cpu_bits got = b->exchange(b, gp_rank(), mask, given, from, vote);
    threadIdx = me;
    gp_waited = true;
    return got;
}

template <class T> static inline gp_cpu_bits gp_give(T v)
{
    static_assert(sizeof v <= sizeof(gp_cpu_bits), "warp functions take values of at most 8 bytes");
    gp_cpu_bits b = 0;
    memcpy(&b, &v, sizeof v);
    return b;
}

template <class T> static inline T gp_shuffle(unsigned mask, T v, unsigned from)
{
    gp_cpu_bits b = gp_exchange(mask, gp_give(v), from, nullptr);
    memcpy(&v, &b, sizeof v);
    return v;
}

/* Warps are split into parts of `width` lanes, a power of two. Who asks for a lane that its part has not keeps its own. */
template <class T> static inline T __shfl_sync(unsigned mask, T v, int lane, int width = 32)
{
    return gp_shuffle(mask, v, (gp_rank() & 31 & ~(width - 1u)) | ((unsigned)lane & (width - 1u)));
}
template <class T> static inline T __shfl_up_sync(unsigned mask, T v, unsigned by, int width = 32)
{
    unsigned me = gp_rank() & 31, in_part = me & (width - 1u);
    return gp_shuffle(mask, v, (by &= 31) <= in_part ? me - by : me);
}
template <class T> static inline T __shfl_down_sync(unsigned mask, T v, unsigned by, int width = 32)
{
    unsigned me = gp_rank() & 31, in_part = me & (width - 1u);
    return gp_shuffle(mask, v, (by &= 31) < width - in_part ? me + by : me);
}
template <class T> static inline T __shfl_xor_sync(unsigned mask, T v, int lanes, int width = 32)
{
    unsigned me = gp_rank() & 31, from = me ^ ((unsigned)lanes & 31);
    return gp_shuffle(mask, v, from <= (me | (width - 1u)) ? from : me);
}

/* The same for each lane; `each` is of those lanes that have come. */
#define GP_VOTE(name, T, A, first, each)                                              \
    static inline gp_cpu_bits gp_vote_##name(const gp_cpu_bits *given, unsigned lanes, unsigned) \
    {                                                                                 \
        A a = first;                                                                  \
        for (unsigned l = 0; l < 32; l++) {                                           \
            T v = (T)given[l];                                                        \
            if (lanes >> l & 1)                                                       \
                a = each;                                                             \
        }                                                                             \
        return (gp_cpu_bits)a;                                                        \
    }
GP_VOTE(ballot, bool, unsigned, 0, a | (unsigned)v << l)
GP_VOTE(all, bool, bool, true, a && v)
GP_VOTE(add, unsigned, unsigned, 0, a + v)
GP_VOTE(min, unsigned, unsigned, ~0u, v < a ? v : a)
GP_VOTE(max, unsigned, unsigned, 0, v > a ? v : a)
GP_VOTE(least, int, int, INT_MAX, v < a ? v : a)
GP_VOTE(most, int, int, INT_MIN, v > a ? v : a)
GP_VOTE(and, unsigned, unsigned, ~0u, a & v)
GP_VOTE(or, unsigned, unsigned, 0, a | v)
GP_VOTE(xor, unsigned, unsigned, 0, a ^ v)
#undef GP_VOTE

/* Lanes that gave the same as this one. */
static inline gp_cpu_bits gp_vote_same(const gp_cpu_bits *given, unsigned lanes, unsigned lane)
{
    unsigned same = 0;
    for (unsigned l = 0; l < 32; l++)
        same |= (lanes >> l & 1 && given[l] == given[lane] ? 1u : 0u) << l;
    return same;
}

static inline gp_cpu_bits gp_vote_all_same(const gp_cpu_bits *given, unsigned lanes, unsigned lane)
{
    return gp_vote_same(given, lanes, lane) == lanes ? lanes : 0;
}

#define GP_BY_VOTE(R, name, T, vote)                                                  \
    static inline R name(unsigned mask, T v) { return (R)gp_exchange(mask, (gp_cpu_bits)v, 0, gp_vote_##vote); }
GP_BY_VOTE(unsigned, gp_ballot, bool, ballot) GP_BY_VOTE(int, gp_all, bool, all)
GP_BY_VOTE(unsigned, __reduce_add_sync, unsigned, add) GP_BY_VOTE(int, __reduce_add_sync, int, add)
GP_BY_VOTE(unsigned, __reduce_min_sync, unsigned, min) GP_BY_VOTE(int, __reduce_min_sync, int, least)
GP_BY_VOTE(unsigned, __reduce_max_sync, unsigned, max) GP_BY_VOTE(int, __reduce_max_sync, int, most)
GP_BY_VOTE(unsigned, __reduce_and_sync, unsigned, and) GP_BY_VOTE(unsigned, __reduce_or_sync, unsigned, or)
GP_BY_VOTE(unsigned, __reduce_xor_sync, unsigned, xor)
#undef GP_BY_VOTE
static inline unsigned __ballot_sync(unsigned mask, int p) { return gp_ballot(mask, p != 0); }
static inline int __any_sync(unsigned mask, int p) { return gp_ballot(mask, p != 0) != 0; }
static inline int __all_sync(unsigned mask, int p) { return gp_all(mask, p != 0); }
static inline void __syncwarp(unsigned mask = ~0u) { gp_ballot(mask, false); }
template <class T> static inline unsigned __match_any_sync(unsigned mask, T v)
{
    return (unsigned)gp_exchange(mask, gp_give(v), 0, gp_vote_same);
}
template <class T> static inline unsigned __match_all_sync(unsigned mask, T v, int *all)
{
    unsigned lanes = (unsigned)gp_exchange(mask, gp_give(v), 0, gp_vote_all_same);
    *all = lanes != 0;
    return lanes;
}

static inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

/* The trampoline: runs the threads of a block from block->next on. A thread that
 * waits lets another fiber call it again for the rest. When such a thread ends, its
 * fiber calls it again, if there are threads that have not begun: the last of a warp
 * function does not let others begin. */
template <auto K> struct gp_trampoline;
template <class... A, void (*K)(A...)> struct gp_trampoline<K> {
    template <size_t... I> struct index {};
    template <size_t N, size_t... I> struct indices : indices<N - 1, N - 1, I...> {};
    template <size_t... I> struct indices<0, I...> { typedef index<I...> type; };

    static inline __attribute__((always_inline)) void run(struct gp_cpu_block *b, A... a)
    {
        uint3 dim = { b->dim.x, b->dim.y, b->dim.z };
        uint3 t = { b->next.x, b->next.y, b->next.z };
        blockIdx = { b->index.x, b->index.y, b->index.z };
        gridDim = { b->grid.x, b->grid.y, b->grid.z };
        blockDim = dim;
        gp_block = b;
        gp_waited = false;
        for (; t.z < dim.z; t.z++, t.y = 0)
            for (; t.y < dim.y; t.y++, t.x = 0)
                for (; t.x < dim.x; t.x++) {
                    threadIdx = t;
                    K(a...);
                    if (gp_waited)
                        return;
                }
        b->next.z = dim.z;
    }

    template <size_t... I>
    static inline __attribute__((always_inline)) void unpack(struct gp_cpu_block *b,
                                                             void *const *args, index<I...>)
    {
        (void)args;
        run(b, *(A *)args[I]...);
    }

    static void threads(struct gp_cpu_block *b, void *const *args)
    {
        unpack(b, args, typename indices<sizeof...(A)>::type());
    }

    static constexpr unsigned short bytes[] = { sizeof(A)..., 0 };

    static constexpr gp_cpu_entry gp_entry_of(const char *name)
    {
        return { name, threads, (int)sizeof...(A), bytes };
    }
};

/* The table of a file's kernels, for the registry of built-ins. */
#define GP_K(name) gp_trampoline<name>::gp_entry_of(#name),
#define GP_TABLE_(file) gp_cpu_entries_##file
#define GP_TABLE(file) GP_TABLE_(file)
#define GP_KERNELS(...)                                              \
    extern "C" {                                                     \
    extern const gp_cpu_entry GP_TABLE(GP_FILE)[];                   \
    const gp_cpu_entry GP_TABLE(GP_FILE)[] = { __VA_ARGS__ {} }; \
    }

/* Dynamic shared memory as an array of T, inside a kernel. A function, as the source may
 * define any name. */
static inline void *gp_block_shared() { return gp_block->shared; }
#define GP_SHARED(T, name) T *name = (T *)gp_block_shared()

/* ---- what needs a GPU ------------------------------------------------ */

/* Deleted, so that the error is at the line that calls it (see engine/cpu/cc.c). */
#define GP_NEEDS_GPU(name) template <class... A> int name(A...) = delete;
GP_NEEDS_GPU(__shfl) GP_NEEDS_GPU(__shfl_up) GP_NEEDS_GPU(__shfl_down) GP_NEEDS_GPU(__shfl_xor)
GP_NEEDS_GPU(__ballot) GP_NEEDS_GPU(__any) GP_NEEDS_GPU(__all) GP_NEEDS_GPU(__activemask)
#undef GP_NEEDS_GPU

/* ---- atomics ---------------------------------------------------------- */

/* Each returns the old value. */
#define GP_ATOMIC(T, name, value)                                                         \
    static inline T name(T *p, T v)                                                       \
    {                                                                                     \
        T old, now;                                                                       \
        __atomic_load(p, &old, __ATOMIC_RELAXED);                                         \
        do                                                                                \
            now = (value);                                                                \
        while (!__atomic_compare_exchange(p, &old, &now, true, __ATOMIC_RELAXED,          \
                                          __ATOMIC_RELAXED));                             \
        return old;                                                                       \
    }
#define GP_ATOMIC_INT(T)                                                                  \
    static inline T atomicAdd(T *p, T v) { return __atomic_fetch_add(p, v, __ATOMIC_RELAXED); } \
    static inline T atomicSub(T *p, T v) { return __atomic_fetch_sub(p, v, __ATOMIC_RELAXED); } \
    static inline T atomicAnd(T *p, T v) { return __atomic_fetch_and(p, v, __ATOMIC_RELAXED); } \
    static inline T atomicOr(T *p, T v) { return __atomic_fetch_or(p, v, __ATOMIC_RELAXED); }   \
    static inline T atomicXor(T *p, T v) { return __atomic_fetch_xor(p, v, __ATOMIC_RELAXED); } \
    static inline T atomicExch(T *p, T v) { return __atomic_exchange_n(p, v, __ATOMIC_RELAXED); } \
    static inline T atomicCAS(T *p, T want, T v)                                          \
    {                                                                                     \
        __atomic_compare_exchange_n(p, &want, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED); \
        return want;                                                                      \
    }                                                                                     \
    GP_ATOMIC(T, atomicMin, v < old ? v : old)                                            \
    GP_ATOMIC(T, atomicMax, v > old ? v : old)
GP_ATOMIC_INT(int)
GP_ATOMIC_INT(unsigned)
GP_ATOMIC_INT(long long)
GP_ATOMIC_INT(unsigned long long)
GP_ATOMIC(unsigned, atomicInc, old >= v ? 0 : old + 1)
GP_ATOMIC(unsigned, atomicDec, old == 0 || old > v ? v : old - 1)
GP_ATOMIC(float, atomicAdd, old + v)
GP_ATOMIC(double, atomicAdd, old + v)
GP_ATOMIC(float, atomicExch, ((void)old, v))
#undef GP_ATOMIC_INT
#undef GP_ATOMIC

/* ---- numbers ----------------------------------------------------------- */

template <class To, class From> static inline To gp_bits(From v)
{
    static_assert(sizeof(To) == sizeof(From), "gp_bits: sizes differ");
    To to;
    memcpy(&to, &v, sizeof to);
    return to;
}

static inline int __float_as_int(float x) { return gp_bits<int>(x); }
static inline unsigned __float_as_uint(float x) { return gp_bits<unsigned>(x); }
static inline float __int_as_float(int x) { return gp_bits<float>(x); }
static inline float __uint_as_float(unsigned x) { return gp_bits<float>(x); }
static inline long long __double_as_longlong(double x) { return gp_bits<long long>(x); }
static inline double __longlong_as_double(long long x) { return gp_bits<double>(x); }

/* As CUDA: the other operand of a NaN, and -0 is less than +0. */
#define GP_FMINMAX(T, min_, max_)                                                         \
    static inline T min_(T a, T b)                                                        \
    {                                                                                     \
        return a < b || b != b || (a == b && __builtin_signbit(a)) ? a : b;               \
    }                                                                                     \
    static inline T max_(T a, T b)                                                        \
    {                                                                                     \
        return a > b || b != b || (a == b && __builtin_signbit(b)) ? a : b;               \
    }
GP_FMINMAX(float, gp_fminf, gp_fmaxf)
GP_FMINMAX(double, gp_fmin, gp_fmax)
#undef GP_FMINMAX
#define fminf gp_fminf
#define fmaxf gp_fmaxf
#define fmin gp_fmin
#define fmax gp_fmax

#define GP_MINMAX(T, A, B)                                                                \
    static inline T min(A a, B b) { return (T)b < (T)a ? (T)b : (T)a; }                   \
    static inline T max(A a, B b) { return (T)b > (T)a ? (T)b : (T)a; }
#define GP_MINMAX_INT(S, U)                                                               \
    GP_MINMAX(S, S, S) GP_MINMAX(U, U, U) GP_MINMAX(U, S, U) GP_MINMAX(U, U, S)
GP_MINMAX_INT(int, unsigned)
GP_MINMAX_INT(long, unsigned long)
GP_MINMAX_INT(long long, unsigned long long)
#undef GP_MINMAX_INT
#undef GP_MINMAX
static inline float min(float a, float b) { return gp_fminf(a, b); }
static inline float max(float a, float b) { return gp_fmaxf(a, b); }
static inline double min(double a, double b) { return gp_fmin(a, b); }
static inline double max(double a, double b) { return gp_fmax(a, b); }
static inline double min(float a, double b) { return gp_fmin(a, b); }
static inline double max(float a, double b) { return gp_fmax(a, b); }
static inline double min(double a, float b) { return gp_fmin(a, b); }
static inline double max(double a, float b) { return gp_fmax(a, b); }

static inline float rsqrtf(float x) { return 1 / sqrtf(x); }
static inline double rsqrt(double x) { return 1 / sqrt(x); }
static inline float rcbrtf(float x) { return 1 / cbrtf(x); }
static inline float __saturatef(float x) { return x > 0 ? x < 1 ? x : 1 : 0; }
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fsub_rn(float a, float b) { return a - b; }
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline float __fdiv_rn(float a, float b) { return a / b; }
static inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
static inline float __frcp_rn(float x) { return 1 / x; }
static inline float __fsqrt_rn(float x) { return sqrtf(x); }
static inline double __dadd_rn(double a, double b) { return a + b; }
static inline double __dsub_rn(double a, double b) { return a - b; }
static inline double __dmul_rn(double a, double b) { return a * b; }
static inline double __ddiv_rn(double a, double b) { return a / b; }
static inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
static inline double __dsqrt_rn(double x) { return sqrt(x); }

/* Fast approximations on a GPU; here the accurate functions. Macros, because glibc has
 * functions of these names. */
#define __expf expf
#define __exp10f exp10f
#define __logf logf
#define __log2f log2f
#define __log10f log10f
#define __powf powf
#define __sinf sinf
#define __cosf cosf
#define __tanf tanf
#define __sincosf sincosf
static inline float __fdividef(float a, float b) { return a / b; }
static inline float sinpif(float x) { return (float)sin(M_PI * (double)x); }
static inline float cospif(float x) { return (float)cos(M_PI * (double)x); }
static inline void sincospif(float x, float *s, float *c) { *s = sinpif(x), *c = cospif(x); }

/* Float to integer: saturates, NaN gives 0. */
template <class To, class From> static inline To gp_to_int(From x)
{
    constexpr bool is_signed = To(-1) < To(0);
    constexpr To hi = To(~0ull >> (64 - 8 * sizeof(To) + is_signed)), lo = To(is_signed ? -hi - 1 : 0);
    return x != x ? 0 : x <= (From)lo ? lo : x >= (From)hi ? hi : (To)x;
}
#define GP_TO_INT(From, from, To, to, rn, rz, rd, ru)                                     \
    static inline To __##from##2##to##_rn(From x) { return gp_to_int<To>(rn(x)); }        \
    static inline To __##from##2##to##_rz(From x) { return gp_to_int<To>(rz(x)); }        \
    static inline To __##from##2##to##_rd(From x) { return gp_to_int<To>(rd(x)); }        \
    static inline To __##from##2##to##_ru(From x) { return gp_to_int<To>(ru(x)); }
#define GP_TO_INTS(From, from, rn, rz, rd, ru)                                            \
    GP_TO_INT(From, from, int, int, rn, rz, rd, ru)                                       \
    GP_TO_INT(From, from, unsigned, uint, rn, rz, rd, ru)                                 \
    GP_TO_INT(From, from, long long, ll, rn, rz, rd, ru)                                  \
    GP_TO_INT(From, from, unsigned long long, ull, rn, rz, rd, ru)
GP_TO_INTS(float, float, rintf, truncf, floorf, ceilf)
GP_TO_INTS(double, double, rint, trunc, floor, ceil)
#undef GP_TO_INTS
#undef GP_TO_INT
static inline float __int2float_rn(int x) { return (float)x; }
static inline float __uint2float_rn(unsigned x) { return (float)x; }
static inline float __ll2float_rn(long long x) { return (float)x; }
static inline float __ull2float_rn(unsigned long long x) { return (float)x; }
static inline float __double2float_rn(double x) { return (float)x; }

static inline unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffff) * (b & 0xffffff); }
static inline int __mul24(int a, int b)
{
    int x = (int)((unsigned)a << 8) >> 8, y = (int)((unsigned)b << 8) >> 8;
    return (int)((unsigned)x * (unsigned)y);
}
static inline int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
static inline unsigned __umulhi(unsigned a, unsigned b)
{
    return (unsigned)((unsigned long long)a * b >> 32);
}
__extension__ typedef unsigned __int128 gp_u128;
__extension__ typedef __int128 gp_i128;
static inline long long __mul64hi(long long a, long long b)
{
    return (long long)((gp_i128)a * b >> 64);
}
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b)
{
    return (unsigned long long)((gp_u128)a * b >> 64);
}
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline unsigned long long __brevll(unsigned long long x)
{
    x = (x >> 1 & 0x5555555555555555u) | (x & 0x5555555555555555u) << 1;
    x = (x >> 2 & 0x3333333333333333u) | (x & 0x3333333333333333u) << 2;
    x = (x >> 4 & 0x0f0f0f0f0f0f0f0fu) | (x & 0x0f0f0f0f0f0f0f0fu) << 4;
    return __builtin_bswap64(x);
}
static inline unsigned __brev(unsigned x) { return (unsigned)(__brevll(x) >> 32); }
static inline unsigned __sad(int a, int b, unsigned c)
{
    return (unsigned)(a > b ? (long long)a - b : (long long)b - a) + c;
}
static inline unsigned __usad(unsigned a, unsigned b, unsigned c)
{
    return (a > b ? a - b : b - a) + c;
}
static inline unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned n)
{
    return (unsigned)((((unsigned long long)hi << 32 | lo) << (n & 31)) >> 32);
}
static inline unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned n)
{
    return (unsigned)(((unsigned long long)hi << 32 | lo) >> (n & 31));
}

template <class T> static inline T __ldg(const T *p) { return *p; }
template <class T> static inline T __ldcg(const T *p) { return *p; }
template <class T> static inline T __ldcs(const T *p) { return *p; }
template <class T> static inline void __stcs(T *p, T v) { *p = v; }

#endif
