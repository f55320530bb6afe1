/* lines.h - a reduction of rows that lie side by side, (outer, rows), by one kernel, in an order that depends on these
 * numbers alone. reduce.cu reads the elements from memory; kernels that stages/expr/reduced.c writes compute them;
 * expr.cpp has them piece after piece.
 *
 * A result's rows are cut into chunks of lanes * steps rows, lanes = 4 * threads. Lane l of a chunk takes its rows l,
 * l + lanes, ... in order. Then thread t takes lanes t, t + threads, t + 2 threads, t + 3 threads, and halves of the
 * threads are joined to halves: that is the chunk's partial. The partials of a result are joined as the lanes of a
 * chunk are, by as many threads as there are partials, rounded down to a power of two, at most GP_LINE_THREADS.
 *
 * On a GPU a block has GP_LINE_THREADS threads, for one chunk or for chunks side by side. A thread has four lanes next
 * to each other, so that it loads four elements at a time. The first warp joins what all of a block have, without
 * barriers; that of the block that is the last one to have its partial takes all of them: a counter, the ticket, says
 * which that is, and is 0 again behind it. On a CPU one thread does all. */
#ifndef GP_LINES_H
#define GP_LINES_H

#ifndef __CUDACC_RTC__
#include <stddef.h>
#endif

enum { GP_LINE_THREADS = 256, GP_LINE_PARTIALS = 1024, GP_LINE_TICKETS = 512 };

/* Addresses are of the first frame's, NEXT: bytes to the next frame's. */
typedef struct gp_lines {
    void *to; size_t to_next;          /* the results, of the type that join.h says */
    void *partials;                    /* GP_LINE_PARTIALS of them; on a CPU behind the lanes of one chunk */
    unsigned *tickets;                 /* GP_LINE_TICKETS, all 0 */
    size_t scratch_next;               /* ... of both */
    size_t outer, rows, chunks, steps;
    double count;                      /* of a mean: how many elements; else 0 */
    unsigned threads;                  /* of a chunk */
} gp_lines;

#ifdef __cplusplus
#include "join.h"

/* Result `o`, of elements of type T. */
template <class Op, class T, class A>
static __device__ __forceinline__ void gp_line_store(const gp_lines &r, size_t o, A a)
{
    char *to = (char *)r.to + blockIdx.z * r.to_next;
    if constexpr (finds<A>::are)
        ((int64_t *)to)[o] = (int64_t)(a.at % r.rows);
    else if constexpr (!totals<Op>::are)
        ((T *)to)[o] = a;
    else if (r.count)
        ((typename total<T>::mean *)to)[o] = gp_total<typename total<T>::mean>((double)a / r.count);
    else
        ((typename total<T>::sum *)to)[o] = gp_total<typename total<T>::sum>(a);
}

#ifndef GP_CPU

/* Reads what another block wrote: not from this multiprocessor's cache. */
template <class A> static __device__ __forceinline__ A gp_fresh(const A *p)
{
    A a;
    if constexpr (sizeof(A) == 16)
        for (int k = 0; k < 2; k++)
            ((unsigned long long *)&a)[k] = ((const volatile unsigned long long *)p)[k];
    else if constexpr (sizeof(A) == 8)
        *(unsigned long long *)&a = *(const volatile unsigned long long *)p;
    else if constexpr (sizeof(A) == 4)
        *(unsigned *)&a = *(const volatile unsigned *)p;
    else if constexpr (sizeof(A) == 2)
        *(unsigned short *)&a = *(const volatile unsigned short *)p;
    else
        *(unsigned char *)&a = *(const volatile unsigned char *)p;
    return a;
}

/* Halves of p[0] .. p[n - 1], each thread at its own, to p[0]. The last of them are one warp's. */
template <class Op, class A> static __device__ __forceinline__ void gp_line_halves(A *p, unsigned n)
{
    enum { WARP = 32 };
    for (unsigned half = n / 2; half; half /= 2) {
        if (half >= WARP)
            __syncthreads();
        else
            __syncwarp();
        if (threadIdx.x < half)
            p[threadIdx.x] = Op::join(p[threadIdx.x], p[threadIdx.x + half]);
    }
}

/* The value of the thread that is `by` behind this one in the warp. */
template <class A> static __device__ __forceinline__ A gp_line_down(A a, unsigned by)
{
    if constexpr (sizeof(A) == 16) {
        A b;
        for (int k = 0; k < 2; k++)
            ((unsigned long long *)&b)[k] = __shfl_down_sync(~0u, ((unsigned long long *)&a)[k], by);
        return b;
    } else if constexpr (sizeof(A) == 8) {
        const unsigned long long b = __shfl_down_sync(~0u, *(unsigned long long *)&a, by);
        return *(const A *)&b;
    } else {
        unsigned x = 0;
        *(A *)&x = a;
        x = __shfl_down_sync(~0u, x, by);
        return *(A *)&x;
    }
}

/* Halves of the first n threads of a warp, each with its a; thread 0 gets all. */
template <class Op, class A> static __device__ __forceinline__ A gp_line_warp(A a, unsigned n)
{
    for (unsigned half = n / 2; half; half /= 2)
        a = Op::join(a, gp_line_down(a, half));
    return a;
}

/* Halves of 32 n values, n = 1, 2, 4 or 8, of which thread t of a warp has t, t + 32, ... */
template <class Op, class A> static __device__ __forceinline__ A gp_line_warps(A *v, unsigned n)
{
#pragma unroll
    for (unsigned half = 4; half; half /= 2)
#pragma unroll
        for (unsigned j = 0; j < half; j++)
            if (half < n)
                v[j] = Op::join(v[j], v[j + half]);
    return gp_line_warp<Op>(v[0], 32);
}

/* Adds one to a counter below `most`, which is then 0 again. What this thread wrote before it others see behind it,
 * once they have been there. */
static __device__ __forceinline__ unsigned gp_line_ticket(unsigned *counter, unsigned most)
{
    unsigned before;
    asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;" : "=r"(before)
                 : "l"(__cvta_generic_to_global(counter)), "r"(most) : "memory");
    return before;
}

/* A chunk of a whole block, whose lanes are in `shared`: the first warp joins them and, if it is the last one of its
 * result to be there, the partials. */
template <class Op, class T, class A>
static __device__ __forceinline__ void gp_line_block(const gp_lines &r, const A *shared, size_t o, unsigned chunk)
{
    enum { WARPS = GP_LINE_THREADS / 32 };
    const unsigned t = threadIdx.x, chunks = (unsigned)r.chunks;
    A v[WARPS], x[WARPS];
#pragma unroll
    for (int j = 0; j < WARPS; j++) {
        const A *p = shared + t + 32 * j;
        v[j] = Op::join(Op::join(p[0], p[GP_LINE_THREADS]), p[2 * GP_LINE_THREADS]);
        v[j] = Op::join(v[j], p[3 * GP_LINE_THREADS]);
    }
    const A all = gp_line_warps<Op>(v, WARPS);
    A *partials = (A *)((char *)r.partials + blockIdx.z * r.scratch_next) + o * r.chunks;
    unsigned *ticket = (unsigned *)((char *)r.tickets + blockIdx.z * r.scratch_next) + o, before = 0;
    if (chunks == 1) {
        if (t == 0)
            gp_line_store<Op, T>(r, o, all);
        return;
    }
    if (t == 0) {
        partials[chunk] = all;
        before = gp_line_ticket(ticket, chunks - 1);
    }
    if (__shfl_sync(~0u, before, 0) != chunks - 1)
        return;
    __syncwarp();
    unsigned n = 1;
    while (n < GP_LINE_THREADS && 2 * n <= chunks)
        n *= 2;
#pragma unroll
    for (unsigned j = 0; j < WARPS; j++)
        v[j] = t + 32 * j < n ? gp_fresh(&partials[t + 32 * j]) : Op::template none<A>();
    for (unsigned first = n; first < chunks; first += n) {
#pragma unroll
        for (unsigned j = 0; j < WARPS; j++)
            if (t + 32 * j < n && first + t + 32 * j < chunks)
                x[j] = gp_fresh(&partials[first + t + 32 * j]);
#pragma unroll
        for (unsigned j = 0; j < WARPS; j++)
            if (t + 32 * j < n && first + t + 32 * j < chunks)
                v[j] = Op::join(v[j], x[j]);
    }
    const A a = n < 32 ? gp_line_warp<Op>(v[0], n) : gp_line_warps<Op>(v, n / 32);
    if (t == 0)
        gp_line_store<Op, T>(r, o, a);
}

/* load(e): what elements e .. e + 3 are made of; values(x, e): these elements, of type T; value(e): element e. Q loads
 * are in flight at a time. Wants blocks of (r.threads, GP_LINE_THREADS / r.threads) threads, and shared memory of
 * 4 * GP_LINE_THREADS of what elements are kept as. */
template <class Op, class T, int Q, class Load, class Values, class Value>
static __device__ __forceinline__ void gp_reduce_lines(const gp_lines &r, Load load, Values values, Value value)
{
    typedef typename kept<Op, T>::type A;
    GP_SHARED(A, shared);
    const unsigned t = threadIdx.x, threads = blockDim.x, lanes = 4 * threads;
    const size_t all = r.outer * r.chunks, c = blockIdx.x * (size_t)blockDim.y + threadIdx.y;
    const unsigned chunks = (unsigned)r.chunks;      /* several: of few lines, and c is small */
    const unsigned chunk = chunks == 1 ? 0 : (unsigned)c % chunks;
    const size_t o = chunks == 1 ? c : (unsigned)c / chunks, span = r.steps * lanes;
    A a[4], *part = shared + threadIdx.y * lanes;

    for (int k = 0; k < 4; k++)
        a[k] = Op::template none<A>();
    if (c < all) {
        const size_t first = chunk * span, n = r.rows - first < span ? r.rows - first : span;
        size_t e = o * r.rows + first + 4 * t, full = n >> (31 - __clz((int)lanes));   /* n / lanes, a power of two */
        const unsigned rest = (unsigned)n & (lanes - 1);
#pragma unroll 1
        for (; full >= Q; full -= Q, e += (size_t)Q * lanes) {
            decltype(load(e)) x[Q];
            for (int q = 0; q < Q; q++)
                x[q] = load(e + q * (size_t)lanes);
            for (int q = 0; q < Q; q++) {
                const quad<T> y = values(x[q], e + q * (size_t)lanes);
                for (int k = 0; k < 4; k++)
                    a[k] = Op::join(a[k], gp_keep<A>(y.v[k]));
            }
        }
#pragma unroll 1
        for (; full; full--, e += lanes) {
            const quad<T> y = values(load(e), e);
            for (int k = 0; k < 4; k++)
                a[k] = Op::join(a[k], gp_keep<A>(y.v[k]));
        }
#pragma unroll 1
        for (int k = 0; k < 4 && 4 * t + k < rest; k++) {
            const A b = gp_keep<A>(value(e + k));
#pragma unroll
            for (int j = 0; j < 4; j++)             /* registers have no index */
                if (j == k)
                    a[j] = Op::join(a[j], b);
        }
    }
    for (int k = 0; k < 4; k++)
        part[4 * t + k] = a[k];
    __syncthreads();
    if (threads == GP_LINE_THREADS) {
        if (t < 32)
            gp_line_block<Op, T>(r, shared, o, chunk);
        return;
    }
    for (int k = 0; k < 4; k++)
        a[k] = part[t + k * threads];
    __syncthreads();
    part = shared + threadIdx.y * threads;
    part[t] = Op::join(Op::join(Op::join(a[0], a[1]), a[2]), a[3]);
    gp_line_halves<Op>(part, threads);
    if (t == 0 && c < all)
        gp_line_store<Op, T>(r, o, part[0]);
}

#else

/* p[0] .. p[n - 1] to p[0], by so many threads. */
template <class Op, class A> static void gp_line_join(A *p, size_t n, size_t threads)
{
    for (size_t i = threads; i < n; i++)
        p[i % threads] = Op::join(p[i % threads], p[i]);
    for (size_t half = threads / 2; half; half /= 2)
        for (size_t t = 0; t < half; t++)
            p[t] = Op::join(p[t], p[t + half]);
}

enum { GP_LINE_SIDE = 4 };             /* so many elements of a lane are taken with one look at what it has */

/* Elements e, e + 1, ... of which there are n, value(0), value(1), ...: the lanes and partials of a result are in
 * lane[4 * GP_LINE_THREADS] and part[GP_LINE_PARTIALS]. */
template <class Op, class T, class A, class Value>
static inline void gp_line_add(const gp_lines &r, A *__restrict lane, A *__restrict part, size_t e, size_t n,
                               Value value)
{
    const size_t lanes = 4 * r.threads, span = lanes * r.steps;
    for (size_t done = 0, run; done < n; done += run) {
        const size_t row = (e + done) % r.rows, at = row % span, l = at % lanes;
        const size_t end = r.rows - row < span - at ? r.rows - row : span - at;    /* of the chunk */
        run = n - done < end ? n - done : end;
        const size_t side = !l && run >= GP_LINE_SIDE * lanes ? GP_LINE_SIDE : 1;
        run = run < side * lanes - l ? run : side * lanes - l;
        if (at == 0)
            for (size_t i = 0; i < lanes; i++)
                lane[i] = Op::template none<A>();
        for (size_t i = 0; side == 1 && i < run; i++)
            lane[l + i] = Op::join(lane[l + i], gp_keep<A>(value(done + i)));
        for (size_t i = 0; side > 1 && i < lanes; i++) {
            A a = lane[i];
            for (size_t k = 0; k < GP_LINE_SIDE; k++)
                a = Op::join(a, gp_keep<A>(value(done + i + k * lanes)));
            lane[i] = a;
        }
        if (run < end)
            continue;
        gp_line_join<Op>(lane, lanes, r.threads);
        part[row / span] = lane[0];
        if (row + run < r.rows)
            continue;
        size_t threads = 1;
        while (threads < GP_LINE_THREADS && 2 * threads <= r.chunks)
            threads *= 2;
        gp_line_join<Op>(part, r.chunks, threads);
        gp_line_store<Op, T>(r, (e + done) / r.rows, part[0]);
    }
}

/* As on a GPU; each result by one thread. */
template <class Op, class T, int Q, class Load, class Values, class Value>
static inline void gp_reduce_lines(const gp_lines &r, Load, Values, Value value)
{
    typedef typename kept<Op, T>::type A;
    A lane[4 * GP_LINE_THREADS], part[GP_LINE_PARTIALS];
    if (threadIdx.x == 0 && threadIdx.y == 0)
        for (size_t o = blockIdx.x; o < r.outer; o += gridDim.x)
            gp_line_add<Op, T>(r, lane, part, o * r.rows, r.rows, [=](size_t i) { return value(o * r.rows + i); });
}

#endif
#endif
#endif
