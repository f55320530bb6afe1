/* quantile.cu - quantiles of lines that lie one after another: the numbers at places of their order, and between two of
 * them in proportion.
 *
 * quantile_short_T sorts lines of up to SIZE elements, several side by side. In longer ones the number at a place is
 * found digit by digit, from the highest: quantile_count_T counts how many elements that begin as it does have which next
 * digit, quantile_next says from that which one it has; quantile_end_T computes with what was found. Counts are exact, so
 * nothing depends on how the work is shared. */
#include "join.h"
#include "quantile.h"
#include "sort.h"

template <class T> struct key_of { typedef uint32_t type; };
template <> struct key_of<uint64_t> { typedef uint64_t type; };
template <> struct key_of<int64_t> { typedef uint64_t type; };
template <> struct key_of<double> { typedef uint64_t type; };

/* The number that ordered() made `key` of. */
template <class T> static __device__ __forceinline__ double number_of(uint64_t key)
{
    if constexpr (real<T>::integer)
        return sizeof(T) < 8 ? (double)((int64_t)key + (int64_t)real<T>::min)
             : real<T>::is_signed ? (double)(int64_t)(key ^ uint64_t(1) << 63) : (double)key;
    else if constexpr (sizeof(T) == 8)
        return __longlong_as_double((long long)(key >> 63 ? key & ~(uint64_t(1) << 63) : ~key));
    else
        return __uint_as_float((uint32_t)(key >> 31 ? key & 0x7fffffff : ~key));
}

/* What becomes of it: floats keep their type. */
template <class T> struct made_of { typedef float type; };
template <> struct made_of<gp_half> { typedef gp_half type; };
template <> struct made_of<double> { typedef double type; };

/* Between a and b as numpy.quantile has it, so that it is b at t = 1; with one that is infinite as numpy.median. */
static __device__ __forceinline__ double between(double a, double b, double t)
{
    const double d = b - a;
    return a == b || t == 0 ? a : d - d != 0 ? a * (1 - t) + b * t : t < 0.5 ? a + d * t : b - d * (1 - t);
}

static __device__ __forceinline__ size_t place_of(const quantile_work &w, const double *q, int i)
{
    const size_t lower = (size_t)((double)(w.n - 1) * q[i / 2]), upper = lower + (i & 1);
    return upper < w.n ? upper : w.n - 1;
}

/* Of places 2 j and 2 j + 1 of quantile j. */
template <class T>
static __device__ __forceinline__ typename made_of<T>::type quantile_of(const quantile_work &w, double q, uint64_t low,
                                                                        uint64_t high, bool nan)
{
    const double at = (double)(w.n - 1) * q;
    const double v = between(number_of<T>(low), number_of<T>(high), at - floor(at));
    if constexpr (!real<T>::integer)
        if (nan)
            return gp_total<typename made_of<T>::type>((double)real<float>::nan());
    return gp_total<typename made_of<T>::type>(v);
}

/* ---- short lines ------------------------------------------------------- */

template <class T>
static __device__ __forceinline__ void quantile_short(typename made_of<T>::type *dst, const T *src, const double *q,
                                                      const quantile_work &w)
{
    typedef typename key_of<T>::type K;
    GP_SHARED(K, v);
    const unsigned size = 1u << w.log_size, beside = SIZE >> w.log_size;
    for (size_t first = blockIdx.x * (size_t)beside; first < w.lines; first += gridDim.x * (size_t)beside) {
        for (unsigned e = threadIdx.x; e < SIZE; e += blockDim.x) {
            const size_t line = first + (e >> w.log_size), j = e & (size - 1);
            v[e] = line < w.lines && j < w.n ? ordered(src[line * w.n + j]) : ~K(0);       /* behind all others */
        }
        for (unsigned r = 2; r <= size; r *= 2)
            sort_runs(v, r, r, size);
        __syncthreads();
        for (size_t e = threadIdx.x; e < beside * (size_t)w.count; e += blockDim.x) {
            const size_t u = e / w.count;
            const int j = (int)(e % w.count);
            const K *sorted = v + (u << w.log_size);
            if (first + u < w.lines)
                dst[(first + u) * w.count + j] = quantile_of<T>(w, q[j], sorted[place_of(w, q, 2 * j)],
                                                                sorted[place_of(w, q, 2 * j + 1)], sorted[w.n - 1] == ~K(0));
        }
        __syncthreads();
    }
}

/* ---- long lines -------------------------------------------------------- */

enum { BINS = 256 };

/* The places of group `group` of a line. */
struct places { quantile_place *place; unsigned *bins; int n; };

static __device__ __forceinline__ places places_of(const quantile_work &w, char *scratch, size_t line, unsigned group)
{
    const int all = 2 * w.count, first = (int)group * QUANTILE_GROUP;
    const size_t at = line * all + first;
    return { (quantile_place *)(scratch + w.places) + at, (unsigned *)(scratch + w.bins) + at * BINS,
             all - first < QUANTILE_GROUP ? all - first : QUANTILE_GROUP };
}

/* The next digit of each place, from what was counted; with `begin` there is none yet. `same`: the first place of the
 * group that begins as this one does, for which alone is counted. */
extern "C" __global__ void quantile_next(char *scratch, size_t scratch_stride, const double *q, quantile_work w, int begin)
{
    scratch += blockIdx.z * scratch_stride;
    for (size_t line = blockIdx.x; line < w.lines; line += gridDim.x) {
        const places p = places_of(w, scratch, line, blockIdx.y);
        if (begin && !blockIdx.y && !threadIdx.x)
            ((unsigned *)scratch)[line] = 0;
        for (int i = threadIdx.x; i < p.n; i += blockDim.x) {
            quantile_place x = p.place[i];
            if (begin) {
                x.begins = 0, x.rest = place_of(w, q, (int)blockIdx.y * QUANTILE_GROUP + i);
            } else {
                const unsigned *bin = p.bins + x.same * BINS;
                unsigned digit = 0;
                for (; x.rest >= bin[digit]; digit++)
                    x.rest -= bin[digit];
                x.begins = x.begins << 8 | digit;
            }
            p.place[i] = x;
        }
        __syncthreads();
        for (int i = threadIdx.x; i < p.n; i += blockDim.x) {
            int same = 0;
            while (p.place[same].begins != p.place[i].begins)
                same++;
            p.place[i].same = same;
        }
        for (int i = threadIdx.x; i < p.n * BINS; i += blockDim.x)
            p.bins[i] = 0;
        __syncthreads();
    }
}

template <class T>
static __device__ __forceinline__ void quantile_count(const T *src, char *scratch, const quantile_work &w, int shift)
{
    typedef typename key_of<T>::type K;
    GP_SHARED(unsigned, bins);
    const size_t chunks = (w.n + QUANTILE_CHUNK - 1) / QUANTILE_CHUNK;
    for (size_t unit = blockIdx.x; unit < w.lines * chunks; unit += gridDim.x) {
        const size_t line = unit / chunks, from = unit % chunks * QUANTILE_CHUNK;
        const size_t to = w.n - from < QUANTILE_CHUNK ? w.n : from + QUANTILE_CHUNK;
        const places p = places_of(w, scratch, line, blockIdx.y);
        K begins[QUANTILE_GROUP];
        int bin[QUANTILE_GROUP], n = 0;
        for (int i = 0; i < p.n; i++)
            if (p.place[i].same == i)
                begins[n] = (K)p.place[i].begins, bin[n++] = i * BINS;
        for (int i = threadIdx.x; i < p.n * BINS; i += blockDim.x)
            bins[i] = 0;
        __syncthreads();
        bool nan = false;
        for (size_t j = from + threadIdx.x; j < to; j += blockDim.x) {
            const K key = ordered(src[line * w.n + j]), rest = key >> shift;
            nan = nan || key == K(~K(0));
            for (int i = 0; i < n; i++)
                if (rest >> 8 == begins[i])
                    atomicAdd(&bins[bin[i] + (rest & 255)], 1u);
        }
        if (nan && !real<T>::integer)
            ((unsigned *)scratch)[line] = 1;
        __syncthreads();
        for (int i = threadIdx.x; i < p.n * BINS; i += blockDim.x)
            if (bins[i])
                atomicAdd(&p.bins[i], bins[i]);
        __syncthreads();
    }
}

template <class T>
static __device__ __forceinline__ void quantile_end(typename made_of<T>::type *dst, char *scratch, const double *q,
                                                    const quantile_work &w)
{
    const quantile_place *place = (quantile_place *)(scratch + w.places);
    for (size_t i = first_x(); i < w.lines * w.count; i += step_x())
        dst[i] = quantile_of<T>(w, q[i % w.count], place[2 * i].begins, place[2 * i + 1].begins,
                                ((unsigned *)scratch)[i / w.count]);
}

#define QUANTILE(name, T)                                                                                             \
    extern "C" __global__ void quantile_short_##name(made_of<T>::type *dst, size_t dst_stride, const T *src,          \
                                                     size_t src_stride, const double *q, quantile_work w)             \
    {                                                                                                                 \
        quantile_short(dst + blockIdx.z * dst_stride, src + blockIdx.z * src_stride, q, w);                           \
    }                                                                                                                 \
    extern "C" __global__ void quantile_count_##name(const T *src, size_t src_stride, char *scratch,                  \
                                                     size_t scratch_stride, quantile_work w, int shift)               \
    {                                                                                                                 \
        quantile_count(src + blockIdx.z * src_stride, scratch + blockIdx.z * scratch_stride, w, shift);               \
    }                                                                                                                 \
    extern "C" __global__ void quantile_end_##name(made_of<T>::type *dst, size_t dst_stride, char *scratch,           \
                                                   size_t scratch_stride, const double *q, quantile_work w)           \
    {                                                                                                                 \
        quantile_end<T>(dst + blockIdx.z * dst_stride, scratch + blockIdx.z * scratch_stride, q, w);                  \
    }
GP_REALS(QUANTILE)

#define ENTRY(name, T) GP_K(quantile_short_##name) GP_K(quantile_count_##name) GP_K(quantile_end_##name)
GP_KERNELS(GP_REALS(ENTRY) GP_K(quantile_next))
