/* label.cu - the connected components of a mask, numbered in the order of their first pixels. What is not 0 is in one.
 *
 * Each pixel of a component gets a parent that comes before it, but for the first, its root. Trees are joined without
 * locks where they touch: the later root gets the earlier one as its parent; J. Jaiganesh and M. Burtscher, "A
 * high-performance connected components implementation for GPUs", HPDC 2018. So the roots do not depend on the order of
 * threads. Which neighbors have to be looked at: K. Wu, E. Otoo and K. Suzuki, "Optimizing two-pass
 * connected-component labeling algorithms", Pattern Analysis and Applications 12, 2009.
 *
 *   label_first_T   the parent of a pixel is a neighbor before it, or itself; -1 outside of all components
 *   label_join      joins trees that touch
 *   label_roots     each parent becomes the root; marks the roots, a bit each, and counts those of each chunk of pixels.
 *                   A thread writes its own pixel's parent alone: one that shortened another's way to the root could
 *                   put an earlier step of it in the place of the root
 *   label_before    of each chunk, how many roots are in those before it
 *   label_number    the labels of the roots
 *   label_spread    the labels of all pixels
 */
#include "map.h"

static constexpr int WORD = 32, CHUNK = 1024;      /* pixels; CHUNK as in stages/label.c */

#define IMAGE(x, y)                                                                                 \
    for (int y = blockIdx.y * blockDim.y + threadIdx.y; y < rows; y += gridDim.y * blockDim.y)      \
        for (int x = blockIdx.x * blockDim.x + threadIdx.x; x < width; x += gridDim.x * blockDim.x)

template <class T> static __device__ __forceinline__ bool is_in(T v)
{
    if constexpr (real<T>::half)
        return v.bits & 0x7fff;
    else
        return v != 0;
}

/* Finds the neighbors before pixel (x, y) that say how it is connected, where on(dx, dy) says whether a pixel near it
 * is in a component: how far back the first of them is, 0 for none, and the second, if that may be in another tree. */
struct links { int first, second; };
template <class F> static __device__ __forceinline__ links neighbors(int x, int y, int width, bool eight, F on)
{
    const bool up = y && on(0, -1), left = x && on(-1, 0), corner = x && y && on(-1, -1);
    if (!eight)
        return up ? links{ width, left && !corner ? 1 : 0 } : links{ left ? 1 : 0, 0 };
    if (up)
        return { width, 0 };
    const int right = y && x < width - 1 && on(1, -1) ? width - 1 : 0, other = corner ? width + 1 : left ? 1 : 0;
    return other ? links{ other, right } : links{ right, 0 };
}

/* The root of pixel i. On the way parents are replaced by their own; other threads may do so at the same time. */
static __device__ __forceinline__ int root_of(int *parent, int i)
{
    int p = parent[i];
    for (int next; p != i && (next = parent[p]) != p; i = p, p = next)
        parent[i] = next;
    return p;
}

/* A root that is none any more, as other threads have joined it, is followed on. */
static __device__ __forceinline__ void join(int *parent, int a, int b)
{
    a = root_of(parent, a), b = root_of(parent, b);
    while (a != b) {
        const int later = a > b ? a : b, earlier = a > b ? b : a;
        a = atomicCAS(&parent[later], later, earlier), b = earlier;
        if (a == later)
            return;
    }
}

/* Strides are in elements. */
#define FIRST(name, T)                                                                              \
    extern "C" __global__ void label_first_##name(int *parent, unsigned *marks, unsigned *counts, size_t stride, \
                                                  const T *src, size_t src_stride, int rows, int width, int eight) \
    {                                                                                               \
        parent += blockIdx.z * stride, marks += blockIdx.z * stride, counts += blockIdx.z * stride; \
        src += blockIdx.z * src_stride;                                                             \
        IMAGE(x, y) {                                                                               \
            const int i = y * width + x;                                                            \
            const T *p = src + i;                                                                   \
            auto on = [=](int dx, int dy) { return is_in(p[dy * (int64_t)width + dx]); };           \
            parent[i] = is_in(*p) ? i - neighbors(x, y, width, eight, on).first : -1;              \
            if (i % WORD == 0)                                                                      \
                marks[i / WORD] = 0;                                                                \
            if (i % CHUNK == 0)                                                                     \
                counts[i / CHUNK] = 0;                                                              \
        }                                                                                           \
    }
GP_REALS(FIRST)

extern "C" __global__ void label_join(int *parent, size_t stride, int rows, int width, int eight)
{
    parent += blockIdx.z * stride;
    IMAGE(x, y) {
        const int i = y * width + x;
        const int *p = parent + i;
        auto on = [=](int dx, int dy) { return p[dy * (int64_t)width + dx] >= 0; };
        const int back = *p < 0 ? 0 : neighbors(x, y, width, eight, on).second;
        if (back)
            join(parent, i, i - back);
    }
}

extern "C" __global__ void label_roots(int *parent, unsigned *marks, unsigned *counts, size_t stride, size_t n)
{
    parent += blockIdx.z * stride, marks += blockIdx.z * stride, counts += blockIdx.z * stride;
    for (size_t i = first_x(); i < n; i += step_x()) {
        if (parent[i] < 0)
            continue;
        int root = parent[i];
        for (int next; (next = parent[root]) != root; )
            root = next;
        if ((size_t)root != i) {
            parent[i] = root;
            continue;
        }
        atomicOr(&marks[i / WORD], 1u << i % WORD);
        atomicAdd(&counts[i / CHUNK], 1u);
    }
}

/* One block; a thread sums up counts that follow each other. */
extern "C" __global__ void label_before(unsigned *counts, size_t stride, size_t chunks)
{
    GP_SHARED(unsigned, sums);
    const unsigned me = threadIdx.x;
    const size_t each = (chunks + blockDim.x - 1) / blockDim.x;
    const size_t begin = each * me < chunks ? each * me : chunks, end = chunks - begin < each ? chunks : begin + each;
    unsigned mine = 0;
    counts += blockIdx.z * stride;
    for (size_t k = begin; k < end; k++)
        mine += counts[k];
    sums[me] = mine;
    for (unsigned step = 1; step < blockDim.x; step *= 2) {
        __syncthreads();
        const unsigned other = me >= step ? sums[me - step] : 0;
        __syncthreads();
        sums[me] += other;
    }
    unsigned before = sums[me] - mine;
    for (size_t k = begin; k < end; k++) {
        const unsigned here = counts[k];
        counts[k] = before;
        before += here;
    }
}

extern "C" __global__ void label_number(int *dst, size_t dst_stride, const unsigned *marks, const unsigned *before,
                                        size_t stride, size_t words)
{
    dst += blockIdx.z * dst_stride, marks += blockIdx.z * stride, before += blockIdx.z * stride;
    for (size_t w = first_x(); w < words; w += step_x()) {
        unsigned left = marks[w];
        if (!left)
            continue;
        int number = (int)before[w * WORD / CHUNK];
        for (size_t k = w * WORD / CHUNK * (CHUNK / WORD); k < w; k++)
            number += __popc(marks[k]);
        for (; left; left &= left - 1)
            dst[w * WORD + (size_t)(__ffs((int)left) - 1)] = ++number;
    }
}

/* Those of roots stay. */
extern "C" __global__ void label_spread(int *dst, size_t dst_stride, const int *parent, size_t stride, size_t n)
{
    dst += blockIdx.z * dst_stride, parent += blockIdx.z * stride;
    for (size_t i = first_x(); i < n; i += step_x()) {
        const int root = parent[i];
        if (root < 0)
            dst[i] = 0;
        else if ((size_t)root != i)
            dst[i] = dst[root];
    }
}

#define ENTRY(name, T) GP_K(label_first_##name)
GP_KERNELS(GP_REALS(ENTRY) GP_K(label_join) GP_K(label_roots) GP_K(label_before) GP_K(label_number) GP_K(label_spread))
