/* resident.h - a kernel that is resident on the GPU and computes frames without launches
 * (launch: persistent). engine/cuda/resident.c puts it before the text of a segment's
 * kernels, which become device functions, and compiles all that with NVRTC.
 *
 * Blocks form teams; a frame is computed by one team, block for block of each
 * kernel's grid, with a barrier of the team between operations. The host submits frames
 * with one word in its memory, and a table of slots. Only the team whose turn it is
 * looks at that word over the bus; it tells the others through the GPU's memory, so
 * they can start at once when many frames come together. */
#ifndef GP_RESIDENT_H
#define GP_RESIDENT_H

#include "kernel.h"

typedef unsigned long long gp_u64;

enum { GP_OP_COPY_IN, GP_OP_COPY, GP_OP_FILL, GP_OP_KERNEL };

/* As in engine/cuda/resident.c. */
struct gp_op {
    int code, kernel;
    char *dst;
    const char *src;
    gp_u64 bytes;              /* of 16 */
    unsigned grid[3], block[3];
    unsigned byte;             /* of a fill */
    unsigned args;             /* where in gp_params.args */
};

struct gp_params {
    const gp_op *op;           /* [slot][ops] */
    const char *args;
    int ops, team, teams;      /* a team has `team` blocks */
    unsigned cap;              /* of slot and done: a power of two */
    const gp_u64 *word;        /* host: frames submitted << 20 | slot of the last; ~0: stop */
    const unsigned *slot;      /* host: of frame k at k mod cap */
    gp_u64 *done;              /* host: k + 1 at k mod cap */
    gp_u64 *known, *turn;      /* frames submitted, as known here; who looks at the word */
    gp_u64 *pass;              /* per team, 2 apart by 16: barrier, frame + 1 and slot */
};

/* The kernels' own: made by the text that follows them. */
static __device__ void gp_dispatch(int kernel, const char *args);

/* This stands for CUDA's variables of these names in the kernels. */
static __shared__ struct gp_where { uint3 block, grid, dim; } gp_here;

static __device__ __forceinline__ uint3 gp_thread()
{
    unsigned i = threadIdx.x, x = gp_here.dim.x, y = gp_here.dim.y;
    if (i < x)
        return make_uint3(i, 0, 0);
    return make_uint3(i % x, i / x % y, i / x / y);
}

/* ---- memory that others write ---------------------------------------- */

static __device__ __forceinline__ gp_u64 gp_look_host(const gp_u64 *p)
{
    gp_u64 v;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
    return v;
}

static __device__ __forceinline__ gp_u64 gp_look(const gp_u64 *p)
{
    gp_u64 v;
    asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
    return v;
}

static __device__ __forceinline__ void gp_tell(gp_u64 *p, gp_u64 v)
{
    asm volatile("st.release.gpu.global.u64 [%0], %1;" : : "l"(p), "l"(v) : "memory");
}

static __device__ __forceinline__ void gp_tell_host(gp_u64 *p, gp_u64 v)
{
    asm volatile("st.release.sys.global.u64 [%0], %1;" : : "l"(p), "l"(v) : "memory");
}

/* ---- a team ---------------------------------------------------------- */

/* All blocks of the team come here before any goes on. `round` counts the calls. */
static __device__ void gp_meet(const gp_params &s, gp_u64 *bar, gp_u64 &round)
{
    __syncthreads();
    round++;
    if (s.team == 1)
        return;
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(bar, 1ull);
        while (gp_look(bar) < round * (gp_u64)s.team)
            ;
        __threadfence();
    }
    __syncthreads();
}

/* Waits for frame k: its slot, or ~0 when there will be none. One thread. */
static __device__ unsigned gp_await(const gp_params &s, gp_u64 k)
{
    for (;;) {
        gp_u64 known = gp_look(s.known);
        if (known == ~0ull)
            return ~0u;
        if (known > k)
            return *(const volatile unsigned *)&s.slot[k & (s.cap - 1)];
        if (gp_look(s.turn) != k) {
            __nanosleep(40);
            continue;
        }
        gp_u64 word = gp_look_host(s.word), submitted = word >> 20;
        if (word == ~0ull) {
            gp_tell(s.known, word);
            return ~0u;
        }
        if (submitted > k) {
            gp_tell(s.known, submitted);
            gp_tell(s.turn, submitted);
            return submitted == k + 1 ? (unsigned)word & 0xfffff
                                      : *(const volatile unsigned *)&s.slot[k & (s.cap - 1)];
        }
    }
}

/* ---- operations ------------------------------------------------------ */

static __device__ void gp_copy(const gp_op &o, unsigned me, unsigned blocks)
{
    const uint4 *src = (const uint4 *)o.src;
    uint4 *dst = (uint4 *)o.dst;
    gp_u64 step = (gp_u64)blocks * blockDim.x;
    for (gp_u64 i = me * (gp_u64)blockDim.x + threadIdx.x; i < o.bytes / 16; i += step)
        dst[i] = o.code == GP_OP_COPY_IN ? __ldcv(src + i) : src[i];
}

static __device__ void gp_fill(const gp_op &o, unsigned me, unsigned blocks)
{
    gp_u64 step = (gp_u64)blocks * blockDim.x;
    for (gp_u64 i = me * (gp_u64)blockDim.x + threadIdx.x; i < o.bytes; i += step)
        o.dst[i] = (char)o.byte;
}

/* This block's part of a grid. */
static __device__ void gp_grid(const gp_params &s, const gp_op &o, unsigned me)
{
    gp_u64 plane = (gp_u64)o.grid[0] * o.grid[1], all = plane * o.grid[2];
    for (gp_u64 b = me; b < all; b += (unsigned)s.team) {
        __syncthreads();
        if (threadIdx.x == 0) {
            gp_here.block = make_uint3((unsigned)(b % o.grid[0]),
                                       (unsigned)(b / o.grid[0] % o.grid[1]),
                                       (unsigned)(b / plane));
            gp_here.grid = make_uint3(o.grid[0], o.grid[1], o.grid[2]);
            gp_here.dim = make_uint3(o.block[0], o.block[1], o.block[2]);
        }
        __syncthreads();
        gp_dispatch(o.kernel, s.args + o.args);
    }
}

extern "C" __global__ void gp_resident(gp_params s)
{
    __shared__ unsigned slot;
    unsigned team = blockIdx.x / (unsigned)s.team, me = blockIdx.x % (unsigned)s.team;
    gp_u64 *pass = s.pass + team * 32, round = 0;

    for (gp_u64 k = team;; k += (unsigned)s.teams) {
        if (threadIdx.x == 0 && me == 0) {
            slot = gp_await(s, k);
            if (s.team > 1)
                gp_tell(pass + 16, (k + 1) << 20 | (slot == ~0u ? 0xfffff : slot));
        } else if (threadIdx.x == 0) {
            gp_u64 told;
            while ((told = gp_look(pass + 16)) >> 20 != k + 1)
                __nanosleep(40);
            slot = (told & 0xfffff) == 0xfffff ? ~0u : (unsigned)told & 0xfffff;
        }
        __syncthreads();
        if (slot == ~0u)
            return;
        const gp_op *op = s.op + (gp_u64)slot * (unsigned)s.ops;
        for (int i = 0; i < s.ops; i++) {
            if (i)
                gp_meet(s, pass, round);
            if (op[i].code == GP_OP_KERNEL)
                gp_grid(s, op[i], me);
            else if (op[i].code == GP_OP_FILL)
                gp_fill(op[i], me, (unsigned)s.team);
            else
                gp_copy(op[i], me, (unsigned)s.team);
        }
        gp_meet(s, pass, round);
        if (threadIdx.x == 0 && me == 0)
            gp_tell_host(&s.done[k & (s.cap - 1)], k + 1);
    }
}

/* ---- calling kernels ------------------------------------------------- */

/* Parameters lie as in a launch: each aligned to its type. */
template <class T> static __device__ __forceinline__ T gp_param(const char *args, unsigned &at)
{
    at = (at + (unsigned)alignof(T) - 1) & ~((unsigned)alignof(T) - 1);
    T v = *(const T *)(args + at);
    at += (unsigned)sizeof(T);
    return v;
}

template <class... A> struct gp_called {
    __device__ __forceinline__ gp_called(void (*f)(A...), A... a) { f(a...); }
};

template <class... A>
static __device__ __forceinline__ void gp_call(void (*f)(A...), const char *args)
{
    unsigned at = 0;
    gp_called<A...>{ f, gp_param<A>(args, at)... };    /* braces: from left to right */
}

/* ---- for the kernels that follow ------------------------------------- */

#undef __global__
#undef __launch_bounds__
#define __global__ __device__
#define __launch_bounds__(...)
#define __ldg(p) (*(p))                /* what it reads does change here */
#define blockIdx gp_here.block
#define gridDim gp_here.grid
#define blockDim gp_here.dim
#define threadIdx gp_thread()

#endif
