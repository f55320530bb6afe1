/* topk.cu - the k first of each line in an order of numbers, then places; a line is along the middle axis of
 * (outer, n, inner). An element is kept as an entry, an unsigned number that has its order and its place.
 *
 * On a GPU a block sorts entries in shared memory: the SIZE elements of a chunk of a line, or as many of short lines
 * side by side. Runs of K = 2^log_run entries are sorted bitonically, up and down in turns. Of two of them the smaller
 * ones at each place are the K first of both, bitonic again, and are sorted in log K steps; and so on until a run is
 * left (Shanbhag, Pirk and Madden, "Efficient Top-K Query Processing on Massively Parallel Hardware", 2018). Where a
 * line has several chunks, what they leave are entries for the next pass. A run that is as large as a chunk is merged
 * with its neighbor, by topk_merge_T: an entry's place in both is that in its own, and how many of the other are before
 * it. On a CPU one thread has a heap of k entries. */
#include "sort.h"

struct topk_work {                         /* as in stages/topk.c */
    size_t lines, n, inner, rows, chunks;  /* rows: of a line in this pass */
    unsigned k, log_run, log_size;         /* log_size: of a chunk */
    int largest;
};

/* ---- entries ----------------------------------------------------------- */

struct narrow { uint64_t v; };
struct alignas(16) wide { uint64_t key, place; };

static __device__ __forceinline__ bool before(narrow a, narrow b) { return a.v < b.v; }
static __device__ __forceinline__ bool before(wide a, wide b)
{
    return a.key < b.key || (a.key == b.key && a.place < b.place);
}
static __device__ __forceinline__ uint32_t place_of(narrow a) { return (uint32_t)a.v; }
static __device__ __forceinline__ uint32_t place_of(wide a) { return (uint32_t)a.place; }

template <class T> struct kept_as { typedef narrow type; };
template <> struct kept_as<uint64_t> { typedef wide type; };
template <> struct kept_as<int64_t> { typedef wide type; };
template <> struct kept_as<double> { typedef wide type; };

static __device__ __forceinline__ void enter(narrow &e, uint32_t key, uint32_t place)
{
    e.v = (uint64_t)key << 32 | place;
}
static __device__ __forceinline__ void enter(wide &e, uint64_t key, uint32_t place) { e.key = key, e.place = place; }
static __device__ __forceinline__ void enter_none(narrow &e) { e.v = ~uint64_t(0); }       /* behind all others */
static __device__ __forceinline__ void enter_none(wide &e) { e.key = e.place = ~uint64_t(0); }

template <class E, class T> static __device__ __forceinline__ E entry_of(T x, size_t place, int largest)
{
    E e;
    const auto key = ordered(x);
    enter(e, largest ? ~key : key, (uint32_t)place);
    return e;
}

/* ---- lines ------------------------------------------------------------- */

/* Element j of a line that has `n`. */
static __device__ __forceinline__ size_t at(const topk_work &w, size_t line, size_t j, size_t n)
{
    return w.inner == 1 ? line * n + j : (line / w.inner * n + j) * w.inner + line % w.inner;
}

template <class T, class E>
static __device__ __forceinline__ void put(T *dst, int32_t *indices, const T *src, const topk_work &w, size_t line,
                                           unsigned i, const E &e)
{
    const size_t to = at(w, line, i, w.k);
    if (dst)
        dst[to] = src[at(w, line, place_of(e), w.n)];
    if (indices)
        indices[to] = (int32_t)place_of(e);
}

#ifdef GP_CPU

/* Entry `e` to where it belongs in a heap of n whose first place is free: none is behind the one above it. */
template <class E> static inline void sift(E *heap, unsigned n, E e)
{
    unsigned i = 0;
    for (unsigned child; (child = 2 * i + 1) < n; i = child) {
        child += child + 1 < n && before(heap[child], heap[child + 1]);
        if (!before(e, heap[child]))
            break;
        heap[i] = heap[child];
    }
    heap[i] = e;
}

template <class T, class E>
static inline void topk(T *dst, int32_t *indices, const T *src, E *made, const E *, const topk_work &w)
{
    GP_SHARED(E, room);
    E *heap = made ? made : room;
    if (threadIdx.x)
        return;
    for (size_t line = blockIdx.x; line < w.lines; line += gridDim.x) {
        for (unsigned i = 0; i < w.k; i++)
            enter_none(heap[i]);
        for (size_t j = 0; j < w.n; j++) {
            const E e = entry_of<E>(src[at(w, line, j, w.n)], j, w.largest);
            if (before(e, heap[0]))
                sift(heap, w.k, e);
        }
        for (unsigned n = w.k; n-- > 1;) {
            const E last = heap[n];
            heap[n] = heap[0];
            sift(heap, n, last);
        }
        for (unsigned i = 0; i < w.k; i++)
            put(dst, indices, src, w, line, i, heap[i]);
    }
}

#else

template <class T, class E>
static __device__ __forceinline__ void topk(T *dst, int32_t *indices, const T *src, E *made, const E *had,
                                            const topk_work &w)
{
    GP_SHARED(E, v);
    const unsigned size = 1u << w.log_size, run = 1u << w.log_run, beside = SIZE >> w.log_size;    /* chunks */
    const unsigned log_beside = LOG_SIZE - w.log_size;
    const size_t units = w.lines * w.chunks;
    for (size_t first = blockIdx.x * (size_t)beside; first < units; first += gridDim.x * (size_t)beside) {
        const size_t line = first / w.chunks, chunk = first % w.chunks;        /* several beside: a line is one chunk */
        for (unsigned e = threadIdx.x; e < SIZE; e += blockDim.x) {
            const unsigned u = w.inner == 1 ? e >> w.log_size : e & (beside - 1);
            const unsigned c = w.inner == 1 ? e & (size - 1) : e >> log_beside;
            const size_t l = line + u, j = chunk * size + c;
            E x;
            enter_none(x);
            if (l < w.lines && j < w.rows)
                x = had ? had[l * w.rows + j] : entry_of<E>(src[at(w, l, j, w.n)], j, w.largest);
            v[u * size + c] = x;
        }
        for (unsigned r = 2; r <= run; r *= 2)
            sort_runs(v, r, r, size);
        for (unsigned apart = 2 * run; apart <= size; apart *= 2) {
            __syncthreads();
            for (unsigned i = threadIdx.x; i < SIZE / apart * run; i += blockDim.x) {
                const unsigned within = i & (run - 1), a = (i - within) * (apart / run) + within;
                if (before(v[a + apart / 2], v[a]))
                    v[a] = v[a + apart / 2];
            }
            sort_runs(v, run, apart, size);
        }
        __syncthreads();
        for (unsigned e = threadIdx.x; e < beside * run; e += blockDim.x) {
            const unsigned u = w.inner == 1 ? e >> w.log_run : e & (beside - 1);
            const unsigned i = w.inner == 1 ? e & (run - 1) : e >> log_beside;
            const size_t l = line + u;
            if (l < w.lines && made)
                made[((l * w.chunks + chunk) << w.log_run) + i] = v[u * size + i];
            else if (l < w.lines && i < w.k)
                put(dst, indices, src, w, l, i, v[u * size + i]);
        }
        __syncthreads();
    }
}

#endif

/* How many of a run are before e, or `too` at the same place in the order. */
template <class E> static __device__ __forceinline__ size_t count_before(const E *run, size_t n, const E &e, bool too)
{
    size_t low = 0;
    while (low < n) {
        const size_t middle = low + (n - low) / 2;
        if (too ? !before(e, run[middle]) : before(run[middle], e))
            low = middle + 1;
        else
            n = middle;
    }
    return low;
}

/* Each line has `rows` entries, in runs of `length`, of which the last may be shorter: two neighbors become one of its
 * `keep` first. */
template <class T, class E>
static __device__ __forceinline__ void merge(T *dst, int32_t *indices, const T *src, E *made, const E *had,
                                             const topk_work &w, size_t rows, size_t length, size_t keep)
{
    const size_t pairs = (rows + 2 * length - 1) / (2 * length), last = rows - (pairs - 1) * 2 * length;
    const size_t left = (pairs - 1) * keep + (last < keep ? last : keep);
    for (size_t t = first_x(); t < w.lines * rows; t += step_x()) {
        const size_t line = t / rows, run = t % rows / length, from = (run ^ 1) * length;
        const E e = had[t];
        size_t to = t % rows % length;
        if (from < rows)
            to += count_before(had + line * rows + from, rows - from < length ? rows - from : length, e, run & 1);
        if (to < keep && made)
            made[line * left + run / 2 * keep + to] = e;
        else if (to < keep)
            put(dst, indices, src, w, line, (unsigned)to, e);
    }
}

#define TOPK(name, T)                                                                                                 \
    extern "C" __global__ void topk_##name(T *dst, size_t dst_stride, int32_t *indices, size_t indices_stride,        \
                                           const T *src, size_t src_stride, kept_as<T>::type *made,                   \
                                           const kept_as<T>::type *had, size_t entries_stride, topk_work w)           \
    {                                                                                                                 \
        const size_t z = blockIdx.z;                                                                                  \
        topk(dst ? dst + z * dst_stride : dst, indices ? indices + z * indices_stride : indices, src + z * src_stride, \
             made ? made + z * entries_stride : made, had ? had + z * entries_stride : had, w);                       \
    }                                                                                                                 \
    extern "C" __global__ void topk_merge_##name(T *dst, size_t dst_stride, int32_t *indices, size_t indices_stride,  \
                                                 const T *src, size_t src_stride, kept_as<T>::type *made,             \
                                                 const kept_as<T>::type *had, size_t entries_stride, topk_work w,     \
                                                 size_t rows, size_t length, size_t keep)                             \
    {                                                                                                                 \
        const size_t z = blockIdx.z;                                                                                  \
        merge(dst ? dst + z * dst_stride : dst, indices ? indices + z * indices_stride : indices, src + z * src_stride, \
              made ? made + z * entries_stride : made, had + z * entries_stride, w, rows, length, keep);              \
    }
GP_REALS(TOPK)

#define ENTRY(name, T) GP_K(topk_##name) GP_K(topk_merge_##name)
GP_KERNELS(GP_REALS(ENTRY))
