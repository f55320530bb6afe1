/* copy.cu - frames in another layout, see copy.h: copy_runs_W, copy_each_W, copy_tile_W; and pad_W, what lies around
 * one, see pad.h. Nothing is computed: each byte is written once. */
#include "map.h"
#include "copy.h"
#include "edge.h"

struct alignas(16) copy_word { uint64_t v[2]; };

static __device__ __forceinline__ unsigned divided(unsigned i, const gp_divisor &n)
{
    return (__umulhi(i, n.m) + i) >> n.shift;
}

/* i / n; *rest: i % n. */
static __device__ __forceinline__ unsigned divided(unsigned i, const gp_divisor &n, unsigned *rest)
{
    unsigned q = divided(i, n);
    *rest = i - q * n.d;
    return q;
}

struct copy_place { const char *from; char *to; };

static __device__ __forceinline__ copy_place place_of(const gp_layout &c, unsigned i)
{
    copy_place at = { c.from + blockIdx.z * c.from_next, c.to + blockIdx.z * c.to_next };
    for (int k = c.axes - 1; k >= 0; k--) {
        unsigned r;
        i = divided(i, c.axis[k].n, &r);
        at.from += r * c.axis[k].from, at.to += r * c.axis[k].to;
    }
    return at;
}

/* ---- runs --------------------------------------------------------------- */

#ifdef GP_CPU

/* One thread of a block does what it has to do: no barrier, and the compiler's vectors. */
template <class T> static inline void copy_runs(const gp_layout &c)
{
    enum { PART = 1 << 16 };
    if (threadIdx.x || threadIdx.y)
        return;
    for (unsigned r = blockIdx.y; r < c.all; r += gridDim.y)
        for (size_t i = blockIdx.x * (size_t)PART; i < c.run; i += gridDim.x * (size_t)PART) {
            copy_place at = place_of(c, r);
            memcpy(at.to + i, at.from + i, c.run - i < PART ? c.run - i : (size_t)PART);
        }
}

#else

template <class T> static __device__ __forceinline__ void copy_words(T *to, const T *from, size_t n)
{
    size_t i = first_x(), step = step_x();
    for (; i + 3 * step < n; i += 4 * step) {
        T x[4];
#pragma unroll
        for (int k = 0; k < 4; k++)
            x[k] = from[i + k * step];
#pragma unroll
        for (int k = 0; k < 4; k++)
            to[i + k * step] = x[k];
    }
    for (; i < n; i += step)
        to[i] = from[i];
}

/* Word K of 2 Q and those behind it, and of each the bytes from bit `shift` on. */
template <int K, int Q> static __device__ __forceinline__ void shifted(uint32_t *y, const uint32_t *x, unsigned shift)
{
#pragma unroll
    for (int k = 0; k < Q; k++)
        y[k] = __funnelshift_r(x[K + k], x[K + k + 1], shift);
}

/* Units of Q words of what is made lie at multiples of their size; what comes there is in one such unit of the source,
 * or in two, both of which have a byte of the run. Several are loaded before the first is written. */
template <int Q> static __device__ __forceinline__ void copy_units(uint8_t *to, const uint8_t *from, size_t n)
{
    enum { SIZE = 4 * Q, MANY = 4 };
    struct alignas(SIZE) unit { uint32_t v[Q]; };
    const unsigned head = (unsigned)((uintptr_t)to & (SIZE - 1)), off = (unsigned)((uintptr_t)(from - head) & (SIZE - 1));
    const unit *source = (const unit *)((from - head) - off);
    unit *made = (unit *)(to - head);
    const size_t first = head ? 1 : 0, last = (n + head) / SIZE, me = first_x(), step = step_x();      /* whole units */
    auto get = [=](size_t i) {
        uint32_t x[2 * Q];
        unit y, low = source[i], high = off ? source[i + 1] : low;
#pragma unroll
        for (int k = 0; k < Q; k++)
            x[k] = low.v[k], x[Q + k] = high.v[k];
        switch (Q == 1 ? 0 : off / 4) {
        case 0: shifted<0, Q>(y.v, x, 8 * (off & 3)); break;
        case 1: shifted<1 % Q, Q>(y.v, x, 8 * (off & 3)); break;
        case 2: shifted<2 % Q, Q>(y.v, x, 8 * (off & 3)); break;
        default: shifted<3 % Q, Q>(y.v, x, 8 * (off & 3));
        }
        return y;
    };
    size_t i = first + me;
    for (; i + (MANY - 1) * step < last; i += MANY * step) {
        unit x[MANY];
#pragma unroll
        for (int k = 0; k < MANY; k++)
            x[k] = get(i + k * step);
#pragma unroll
        for (int k = 0; k < MANY; k++)
            made[i + k * step] = x[k];
    }
    for (; i < last; i += step)
        made[i] = get(i);
    const size_t before = first * (SIZE - head) < n ? first * (SIZE - head) : n;
    const size_t behind = last > first ? SIZE * last - head : before;
    for (size_t k = me; k < before; k += step)
        to[k] = from[k];
    for (size_t k = behind + me; k < n; k += step)
        to[k] = from[k];
}

static __device__ __forceinline__ void copy_words(uint8_t *to, const uint8_t *from, size_t n)
{
    if (n >= GP_COPY_LONG)
        copy_units<4>(to, from, n);
    else
        copy_units<1>(to, from, n);
}

template <class T> static __device__ __forceinline__ void copy_runs(const gp_layout &c)
{
    for (unsigned r = blockIdx.y * blockDim.y + threadIdx.y; r < c.all; r += gridDim.y * blockDim.y) {
        copy_place at = place_of(c, r);
        copy_words((T *)at.to, (const T *)at.from, c.run / sizeof(T));
    }
}

#endif

/* ---- words ---------------------------------------------------------------- */

template <class T> static __device__ __forceinline__ const T &word_at(const char *p) { return *(const T *)p; }

#ifdef GP_CPU

template <class T> static inline void copy_line(char *to, int64_t to_step, const char *from, int64_t from_step,
                                                unsigned n)
{
    if (to_step == sizeof(T) && from_step == -(int64_t)sizeof(T))
        for (unsigned i = 0; i < n; i++)
            ((T *)to)[i] = ((const T *)from)[-(int64_t)i];
    else if (to_step == sizeof(T))
        for (unsigned i = 0; i < n; i++)
            ((T *)to)[i] = word_at<T>(from + i * from_step);
    else
        for (unsigned i = 0; i < n; i++)
            *(T *)(to + i * to_step) = word_at<T>(from + i * from_step);
}

/* Lines along p; of the last of the other axes many with one place. */
template <class T> static inline void copy_each(const gp_layout &c)
{
    if (threadIdx.x)
        return;
    gp_layout outer = c;
    gp_layout_axis last = { 0, 0, { 1, 0, 0 } };
    unsigned lines = c.all / c.chunks.d;
    if (outer.axes)
        last = outer.axis[--outer.axes], lines /= last.n.d;
    for (unsigned i = blockIdx.x; i < lines; i += gridDim.x) {
        copy_place at = place_of(outer, i);
        for (unsigned k = 0; k < last.n.d; k++) {
            if (c.p.n.d == 3)              /* as colors */
                for (int j = 0; j < 3; j++)
                    *(T *)(at.to + j * c.p.to) = word_at<T>(at.from + j * c.p.from);
            else
                copy_line<T>(at.to, c.p.to, at.from, c.p.from, c.p.n.d);
            at.to += last.to, at.from += last.from;
        }
    }
}

#else

template <class T> static __device__ __forceinline__ void copy_each(const gp_layout &c)
{
    constexpr int C = sizeof(T) < 4 ? 4 / sizeof(T) : 1;       /* c.chunk */
    for (unsigned i = (unsigned)first_x(), step = (unsigned)step_x(); i < c.all; i += step) {
        unsigned k;
        copy_place at = place_of(c, divided(i, c.chunks, &k));
        unsigned first = k * C, left = c.p.n.d - first;
        at.from += first * c.p.from, at.to += first * c.p.to;
        if (C > 1 && left >= C && c.p.to == sizeof(T) && !((uintptr_t)at.to & 3)) {
            struct alignas(C * sizeof(T)) several { T v[C]; } x;
#pragma unroll
            for (int j = 0; j < C; j++)
                x.v[j] = word_at<T>(at.from + j * c.p.from);
            *(several *)at.to = x;
        } else {
#pragma unroll
            for (int j = 0; j < C; j++)
                if ((unsigned)j < left)
                    *(T *)(at.to + j * c.p.to) = word_at<T>(at.from + j * c.p.from);
        }
    }
}

#endif

/* ---- tiles ---------------------------------------------------------------- */

/* The first place of tile t, and what there is of it. */
static __device__ __forceinline__ copy_place tile_of(const gp_layout &c, unsigned t, unsigned *np, unsigned *nq)
{
    unsigned tp, tq;
    t = divided(t, c.tiles_p, &tp), t = divided(t, c.tiles_q, &tq);
    copy_place at = place_of(c, t);
    tp *= c.tile_p, tq *= c.tile_q;
    at.from += tp * c.p.from + tq * c.q.from, at.to += tp * c.p.to + tq * c.q.to;
    *np = c.p.n.d - tp < c.tile_p ? c.p.n.d - tp : c.tile_p;
    *nq = c.q.n.d - tq < c.tile_q ? c.q.n.d - tq : c.tile_q;
    return at;
}

#ifdef GP_CPU

template <class T, int WIDE> static inline void copy_tile(const gp_layout &c)
{
    const unsigned wide = WIDE ? WIDE : c.wide;
    if (threadIdx.x)
        return;
    for (unsigned t = blockIdx.x; t < c.all; t += gridDim.x) {
        unsigned np, nq;
        copy_place at = tile_of(c, t, &np, &nq);
        for (unsigned b = 0; b < nq; b++)
            if (wide == 1)
                copy_line<T>(at.to + b * c.q.to, c.p.to, at.from + b * c.q.from, c.p.from, np);
            else
                for (unsigned a = 0; a < np; a++)
                    for (unsigned e = 0; e < wide; e++)
                        ((T *)(at.to + a * c.p.to + b * c.q.to))[e] = ((const T *)(at.from + a * c.p.from + b * c.q.from))[e];
    }
}

#else

/* WIDE: the words of a place; 0: c.wide. */
template <class T, int WIDE> static __device__ __forceinline__ void copy_tile(const gp_layout &c)
{
    GP_SHARED(char, tile);
    const unsigned wide = WIDE ? WIDE : c.wide;
    for (unsigned t = blockIdx.x; t < c.all; t += gridDim.x) {
        unsigned np, nq;
        copy_place at = tile_of(c, t, &np, &nq);
#pragma unroll 4
        for (unsigned i = threadIdx.x; i < np * c.words_q.d; i += blockDim.x) {
            unsigned r, e = 0, a = divided(i, c.words_q, &r), b = r;
            if (WIDE != 1)
                b = divided(r, c.words, &e);
            if (b < nq)
                *(T *)(tile + b * c.pitch + (a * wide + e) * sizeof(T)) =
                    word_at<T>(at.from + a * c.p.from + b * c.q.from + e * sizeof(T));
        }
        __syncthreads();
#pragma unroll 4
        for (unsigned i = threadIdx.x; i < nq * c.words_p.d; i += blockDim.x) {
            unsigned r, e = 0, b = divided(i, c.words_p, &r), a = r;
            if (WIDE != 1)
                a = divided(r, c.words, &e);
            if (a < np)
                *(T *)(at.to + a * c.p.to + b * c.q.to + e * sizeof(T)) = *(const T *)(tile + b * c.pitch + r * sizeof(T));
        }
        __syncthreads();
    }
}

#endif

#define RUNS(bytes, T) extern "C" __global__ void copy_runs_##bytes(gp_layout c) { copy_runs<T>(c); }
RUNS(16, copy_word) RUNS(8, uint64_t) RUNS(4, uint32_t) RUNS(1, uint8_t)

#define WORDS(X) X(16, copy_word) X(8, uint64_t) X(4, uint32_t) X(2, uint16_t) X(1, uint8_t)
#define EACH(bytes, T)                                                                                  \
    extern "C" __global__ void copy_each_##bytes(gp_layout c) { copy_each<T>(c); }                        \
    extern "C" __global__ void copy_tile_##bytes(gp_layout c)                                             \
    {                                                                                                   \
        if (c.wide == 1)                                                                                \
            copy_tile<T, 1>(c);                                                                         \
        else                                                                                            \
            copy_tile<T, 0>(c);                                                                         \
    }
WORDS(EACH)

/* ---- around a frame ---------------------------------------------------------- */

/* Axis k of an element of the slab: where it is in what is made, *source: where it comes from, -1 nowhere. */
static __device__ __forceinline__ int64_t padded_at(const gp_pad &p, int k, unsigned at, int64_t *source)
{
    const gp_pad_axis &a = p.axis[k];
    int64_t j = a.first + at;
    if (k == p.along && j >= a.before)
        j += a.n;                              /* behind the frame */
    *source = gp_beyond(j - a.before, a.n, p.edge);
    return j;
}

/* Two slabs along axis `along`, before and behind the frame, as wide as the frame in the axes before it and as what is
 * made in those behind it; the slabs of all axes are all that lies around. A thread makes `line` neighbors along the
 * last axis: on a CPU all that there are. */
template <class T> static __device__ __forceinline__ void pad(const gp_pad &p)
{
    const T *from = (const T *)(p.from + blockIdx.z * p.from_next);
    T *to = (T *)(p.to + blockIdx.z * p.to_next), value;
    const gp_pad_axis &last = p.axis[p.axes - 1];
#ifdef GP_CPU
    const unsigned line = last.slab.d;
    if (threadIdx.x)
        return;
    const unsigned first = blockIdx.x, step = gridDim.x, n = p.all / line;
#else
    const unsigned line = 1, first = (unsigned)first_x(), step = (unsigned)step_x(), n = p.all;
#endif
    memcpy(&value, &p.value, sizeof value);
    for (unsigned i = first; i < n; i += step) {
        unsigned rest = i, at = 0, begin = 0;
        int64_t source = 0, made = 0, s;
        bool inside = true;
        if (line == 1)
            rest = divided(rest, last.slab, &begin);
        for (int k = p.axes - 2; k >= 0; k--) {
            rest = divided(rest, p.axis[k].slab, &at);
            made += padded_at(p, k, at, &s) * p.axis[k].to;
            inside = inside && s >= 0;
            source += s * p.axis[k].from;
        }
        for (unsigned e = begin; e < begin + line; e++) {
            int64_t j = padded_at(p, p.axes - 1, e, &s);
            to[made + j * last.to] = inside && s >= 0 ? from[source + s * last.from] : value;
        }
    }
}

#define PAD(bytes, T) extern "C" __global__ void pad_##bytes(gp_pad p) { pad<T>(p); }
PAD(8, uint64_t) PAD(4, uint32_t) PAD(2, uint16_t) PAD(1, uint8_t)

#define ENTRY(bytes, T) GP_K(copy_each_##bytes) GP_K(copy_tile_##bytes)
GP_KERNELS(GP_K(copy_runs_16) GP_K(copy_runs_8) GP_K(copy_runs_4) GP_K(copy_runs_1) WORDS(ENTRY) GP_K(pad_8) GP_K(pad_4)
           GP_K(pad_2) GP_K(pad_1))
