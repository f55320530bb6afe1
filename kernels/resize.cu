/* resize.cu - pictures in another size. A pixel of the output is a sum along the row of sums down the columns, each
 * from the first to the last, however the work is shared: resize_weights_A makes the weights, resize_T adds up, or
 * resize_y_T and resize_x_T do. resize_nearest_BYTES copies the pixels that lie nearest. */
#include "map.h"
#include "resize.h"

/* Computed in f32, or what that does not hold in f64. */
template <class T> struct sum_of { typedef float type; };
template <> struct sum_of<uint32_t> { typedef double type; };
template <> struct sum_of<int32_t> { typedef double type; };
template <> struct sum_of<double> { typedef double type; };

/* ---- weights ----------------------------------------------------------- */

/* Pixel k lies from k to k + 1 in its picture; so (2 k + 1) to is the center of one of the input, in a unit in which all
 * but one division of a weight is exact. That of one of the output, and where it begins, in the same unit: */
static __device__ __forceinline__ int64_t begin_of(const resize_axis &a, int64_t i)
{
    return 2 * i * a.from + (int64_t)a.to * a.in - (int64_t)a.from * a.out;
}
static __device__ __forceinline__ int64_t center_of(const resize_axis &a, int64_t i) { return begin_of(a, i) + a.from; }

/* What the filter reaches, to one side. */
static __device__ __forceinline__ int64_t reach(const resize_axis &a)
{
    return (a.method == CUBIC ? 4 : 2) * (int64_t)(a.smooth && a.from > a.to ? a.from : a.to);
}

/* Is each pixel one of the input? */
static __device__ __forceinline__ bool is_copy(const resize_axis &a)
{
    return a.method == NEAREST || (a.from == a.to && (a.in - a.out) % 2 == 0);
}

static __device__ __forceinline__ resize_span span_of(const resize_axis &a, int64_t i)
{
    int64_t pixel = 2 * (int64_t)a.to, first, last;
    if (is_copy(a))
        return { (int)(center_of(a, i) / pixel), 1 };      /* of two that are as near the later one */
    if (a.method == AREA) {
        first = begin_of(a, i) / pixel, last = (begin_of(a, i + 1) - 1) / pixel;
    } else {                               /* only those within, where weights are not 0 */
        int64_t low = center_of(a, i) - reach(a) - a.to, high = center_of(a, i) + reach(a) - a.to;
        first = low < 0 ? 0 : low / pixel + 1;
        last = (high + pixel - 1) / pixel - 1;
        last = last < a.in ? last : a.in - 1;
    }
    return { (int)first, (int)(last - first) + 1 };
}

/* Up to a factor: the part of output pixel i that k covers; a triangle; the cubic convolution of Keys ("Cubic
 * convolution interpolation for digital image processing", 1981) with a = -1/2. */
static __device__ __forceinline__ double weight_of(const resize_axis &a, int64_t i, int64_t k)
{
    if (is_copy(a))
        return 1;
    if (a.method == AREA) {
        int64_t first = 2 * k * a.to, from = begin_of(a, i), to = begin_of(a, i + 1), last = first + 2 * (int64_t)a.to;
        return (double)((last < to ? last : to) - (first > from ? first : from));
    }
    int64_t far = (2 * k + 1) * a.to - center_of(a, i), unit = 2 * (int64_t)(a.smooth && a.from > a.to ? a.from : a.to);
    double t = (double)(far < 0 ? -far : far) / (double)unit;
    if (a.method == BILINEAR)
        return 1 - t;
    return t < 1 ? (1.5 * t - 2.5) * t * t + 1 : (((t - 5) * t + 8) * t - 4) * -0.5;
}

/* With sum 1, `apart` from each other. */
template <class A>
static __device__ __forceinline__ void weigh(const resize_axis &a, int i, resize_span *span, A *weight, size_t apart)
{
    resize_span s = span[i] = span_of(a, i);
    double sum = 0;
    for (int k = 0; k < s.n; k++)
        sum += weight_of(a, i, s.first + k);
    for (int k = 0; k < s.n; k++)
        weight[k * apart] = (A)(weight_of(a, i, s.first + k) / sum);
}

/* Rows, then columns. The weights of a row lie side by side; of columns the first of all do, then the second of all, as
 * threads that make columns read them at once. */
#define WEIGHTS(name, A)                                                                                              \
    extern "C" __global__ void resize_weights_##name(resize_span *span, A *weight, resize_axis y, resize_axis x)      \
    {                                                                                                                 \
        for (size_t i = first_x(); i < (size_t)y.out + (size_t)x.out; i += step_x())                                  \
            if (i < (size_t)y.out)                                                                                    \
                weigh(y, (int)i, span, weight + i * (size_t)y.taps, 1);                                               \
            else                                                                                                      \
                weigh(x, (int)(i - (size_t)y.out), span + y.out, weight + (size_t)y.out * y.taps + (i - (size_t)y.out), \
                      (size_t)x.out);                                                                                 \
    }
WEIGHTS(f32, float) WEIGHTS(f64, double)

/* ---- sums -------------------------------------------------------------- */

template <class A, class T> static __device__ __forceinline__ A get(T x) { return (A)x; }
template <> __device__ __forceinline__ float get<float, gp_half>(gp_half x) { return gp_from_half(x); }

/* As convert(), at less cost: below 2^22 the sum with 1.5 * 2^23 is rounded to a whole number, in its low bits. */
template <class T, class A> static __device__ __forceinline__ T put(A v)
{
    if constexpr (real<T>::integer && sizeof(T) <= 2) {
        const float low = (float)real<T>::min, high = (float)real<T>::max, whole = 12582912.0f;
#ifndef GP_CPU
        if constexpr (!real<T>::is_signed)             /* fmaxf() of a NaN and 0 is 0 */
            return (T)__float_as_uint(fminf(fmaxf(v, low), high) + whole);
#endif
        v = v == v ? v : 0;
        v = v < low ? low : v > high ? high : v;
        return (T)(int)(v + whole - whole);
    } else {
        return convert<T>(v);
    }
}

/* N neighbors as numbers to compute with. */
template <int N, class A, class T> static __device__ __forceinline__ void load(A *v, const T *p)
{
    struct alignas(N == 4 ? 4 * sizeof(T) : alignof(T)) several { T v[N]; };
    several x = *(const several *)p;
    for (int j = 0; j < N; j++)
        v[j] = get<A>(x.v[j]);
}

#ifndef GP_CPU

/* A number of up to 16 bits, in the low bits of a float's fraction: with the exponent of 2^23 it is that much more. */
template <class T> static __device__ __forceinline__ float plus_2_23(uint32_t word, int j)
{
    const uint32_t sign = !real<T>::is_signed ? 0 : sizeof(T) == 1 ? 0x80808080u : 0x80008000u;
    const unsigned bytes = sizeof(T) == 1 ? 0x7440 + j : j ? 0x7432 : 0x7410;
    const float more = 8388608.0f + (!real<T>::is_signed ? 0.0f : sizeof(T) == 1 ? 128.0f : 32768.0f);
    return __uint_as_float(__byte_perm(word ^ sign, 0x4b000000u, bytes)) - more;
}

/* Four neighbors of 1 or 2 bytes, wherever they begin: from the words that they lie in. */
template <class T> static __device__ __forceinline__ void load_any(float *v, const T *p)
{
    enum { WORDS = sizeof(T), EACH = 4 / sizeof(T) };
    const unsigned off = (unsigned)((uintptr_t)p & 3);
    const uint32_t *word = (const uint32_t *)((const char *)p - off);
    uint32_t low = word[0];
    for (int k = 0; k < WORDS; k++) {
        const uint32_t high = off || k + 1 < WORDS ? word[k + 1] : low, x = __funnelshift_r(low, high, 8 * off);
        for (int j = 0; j < EACH; j++)
            if constexpr (real<T>::half)
                v[k * EACH + j] = gp_from_half(gp_half{ (uint16_t)(x >> 16 * j) });
            else
                v[k * EACH + j] = plus_2_23<T>(x, j);
        low = high;
    }
}
template <> __device__ __forceinline__ void load<4, float, uint8_t>(float *v, const uint8_t *p) { load_any(v, p); }
template <> __device__ __forceinline__ void load<4, float, int8_t>(float *v, const int8_t *p) { load_any(v, p); }
template <> __device__ __forceinline__ void load<4, float, uint16_t>(float *v, const uint16_t *p) { load_any(v, p); }
template <> __device__ __forceinline__ void load<4, float, int16_t>(float *v, const int16_t *p) { load_any(v, p); }
template <> __device__ __forceinline__ void load<4, float, gp_half>(float *v, const gp_half *p) { load_any(v, p); }

#endif

/* w[0] p[0] + w[1] p[width] + ..., n rows, of N neighbors. */
template <int N, class A, class T>
static __device__ __forceinline__ void add_rows(A *sum, const T *p, size_t width, const A *w, int n)
{
    A x[N], s[N];
    load<N>(x, p);
    for (int j = 0; j < N; j++)
        s[j] = w[0] * x[j];
#ifndef GP_CPU
#pragma unroll 4
#endif
    for (int k = 1; k < n; k++) {
        load<N>(x, p += width);
        for (int j = 0; j < N; j++)
            s[j] += w[k] * x[j];
    }
    struct alignas(N == 4 ? 4 * sizeof(A) : alignof(A)) sums { A v[N]; } made;
    for (int j = 0; j < N; j++)
        made.v[j] = s[j];
    *(sums *)sum = made;                   /* where it is four, at such a place in shared or scratch memory */
}

/* Columns [from, to) of an output row of sums, by `all` threads of which this is number `me`. */
template <class A, class T>
static __device__ __forceinline__ void add_row(A *sum, const T *rows, int from, int to, int width, const A *w, int n,
                                               int me, int all)
{
#ifdef GP_CPU
    enum { N = 16 };                       /* for its vectors */
    bool whole = true;
#else
    enum { N = 4 };
    /* load_any() does it, or all quads of the frame are aligned; and those of the sums are */
    bool whole = (sizeof(T) <= 2 || width % N == 0) && (uintptr_t)sum % (N * sizeof(A)) == 0;
#endif
    int x = from + N * me;
    for (; whole && x + N <= to; x += N * all)
        add_rows<N>(sum + (x - from), rows + x, width, w, n);
    for (x = (whole ? from + (to - from) / N * N : from) + me; x < to; x += all)
        add_rows<1>(sum + (x - from), rows + x, width, w, n);
}

/* The same along a row, of C channels out of `channels`; weights are `apart` from each other. */
template <int C, class T, class A>
static __device__ __forceinline__ void add_pixels(T *dst, const A *src, int channels, const A *w, size_t apart, int n)
{
    A sum[C];
    for (int c = 0; c < C; c++)
        sum[c] = w[0] * src[c];
    for (int k = 1; k < n; k++) {
        src += channels;
        for (int c = 0; c < C; c++)
            sum[c] += w[k * apart] * src[c];
    }
    for (int c = 0; c < C; c++)
        dst[c] = put<T>(sum[c]);
}

/* Pixels [from, to) of an output row, of sums from column `begin` on. */
template <int C, class T, class A>
static __device__ __forceinline__ void add_columns(T *dst, const A *sum, int begin, const resize_axis &a, int from,
                                                   int to, int channels, const resize_span *span, const A *weight,
                                                   int me, int all)
{
    for (int x = from + me; x < to; x += all) {
        resize_span s = span[x];
        const A *w = weight + x, *p = sum + ((size_t)s.first * channels - begin);
        for (int c = 0; c < channels; c += C)
            add_pixels<C>(dst + (size_t)x * channels + c, p + c, channels, w, (size_t)a.out, s.n);
    }
}

template <class T, class A>
static __device__ __forceinline__ void add_columns(T *dst, const A *sum, int begin, const resize_axis &a, int from,
                                                   int to, int channels, const resize_span *span, const A *weight,
                                                   int me, int all)
{
    if (channels == 3)
        add_columns<3>(dst, sum, begin, a, from, to, channels, span, weight, me, all);
    else if (channels == 4)
        add_columns<4>(dst, sum, begin, a, from, to, channels, span, weight, me, all);
    else
        add_columns<1>(dst, sum, begin, a, from, to, channels, span, weight, me, all);
}

#ifndef GP_CPU

/* Rows that a block makes at a time, and threads that add up rows of the input for one of them, UNIT columns each. */
enum { ROWS = RESIZE_ROWS, WARP = 32, UNIT = 8 };

template <class A, class T> static __device__ __forceinline__ void load_unit(A *v, const T *p, bool aligned)
{
    if (sizeof(T) <= 2 || aligned)
        load<4>(v, p), load<4>(v + 4, p + 4);
    else
        for (int j = 0; j < UNIT; j++)
            v[j] = get<A>(p[j]);
}
template <> __device__ __forceinline__ void load_unit<float, uint8_t>(float *v, const uint8_t *p, bool)
{
    const unsigned off = (unsigned)((uintptr_t)p & 3);
    const uint32_t *word = (const uint32_t *)((const char *)p - off);
    const uint32_t low = word[0], middle = word[1], high = off ? word[2] : 0;
    const uint32_t a = __funnelshift_r(low, middle, 8 * off), b = __funnelshift_r(middle, high, 8 * off);
    for (int j = 0; j < 4; j++)
        v[j] = plus_2_23<uint8_t>(a, j), v[j + 4] = plus_2_23<uint8_t>(b, j);
}

/* As add_rows(), of UNIT columns. Unrolled, it takes so many registers that fewer blocks run at a time. */
template <class A, class T>
static __device__ __forceinline__ void add_unit(A *sum, const T *p, size_t width, bool aligned, const A *w, int n)
{
    struct alignas(4 * sizeof(A)) quad { A v[4]; };
    A s[UNIT], x[UNIT];
    load_unit(x, p, aligned);
    for (int j = 0; j < UNIT; j++)
        s[j] = w[0] * x[j];
#pragma unroll 1
    for (int k = 1; k < n; k++) {
        const A weight = w[k];
        load_unit(x, p += width, aligned);
        for (int j = 0; j < UNIT; j++)
            s[j] += weight * x[j];
    }
    for (int j = 0; j < UNIT; j += 4)
        *(quad *)(sum + j) = quad{ { s[j], s[j + 1], s[j + 2], s[j + 3] } };
}

/* As add_columns(), of ROWS rows: a thread makes one value of each, so that it needs its weights once. */
template <int C, class T, class A>
static __device__ __forceinline__ void add_columns_of_rows(T *dst, int line, const A *sum, int pitch, int begin,
                                                           const resize_axis &a, int from, int to, int channels,
                                                           const resize_span *span, const A *weight, int rows)
{
    const int c = C ? C : channels, n = (to - from) * c;
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        const int j = from * c + i, x = j / c;
        const resize_span s = span[x];
        const A *w = weight + x, *p = sum + (s.first - x) * c + j - begin;
        A v[ROWS];
        for (int r = 0; r < ROWS; r++)
            v[r] = (A)-0.0;                /* changes nothing that is added to it */
#pragma unroll 2
        for (int k = 0; k < s.n; k++, p += c, w += a.out) {
            const A by = *w;
            for (int r = 0; r < ROWS; r++)
                v[r] += by * p[r * pitch];
        }
        T *made = dst + j;
        for (int r = 0; r < ROWS; r++, made += line)
            if (r < rows)
                *made = put<T>(v[r]);
    }
}

/* As resize() below, ROWS rows at a time. */
template <class T, class A>
static __device__ __forceinline__ void resize_rows(T *dst, const T *src, const resize_axis &ay, const resize_axis &ax,
                                                   int line, int channels, int each, const resize_span *span, const A *weight)
{
    GP_SHARED(A, sum);
    const resize_span *xspan = span + ay.out;
    const A *xweight = weight + (size_t)ay.out * ay.taps;
    const int width = ax.in * channels, parts = (ax.out + each - 1) / each;
    const bool aligned = width % 4 == 0;
    for (int y = blockIdx.y * ROWS; y < ay.out; y += gridDim.y * ROWS)
        for (int part = blockIdx.x; part < parts; part += gridDim.x) {
            const int rows = ay.out - y < ROWS ? ay.out - y : ROWS;
            const int from = part * each, to = from + each < ax.out ? from + each : ax.out;
            const int begin = xspan[from].first * channels / 4 * 4;
            const int end = (xspan[to - 1].first + xspan[to - 1].n) * channels;
            const int pitch = (end - begin + UNIT - 1) / UNIT * UNIT;
            for (int r = threadIdx.x / WARP; r < rows; r += blockDim.x / WARP) {
                const resize_span s = span[y + r];
                const T *row = src + (size_t)s.first * width;
                const A *w = weight + (size_t)(y + r) * ay.taps;
                for (int x = begin + UNIT * (threadIdx.x % WARP); x < end; x += UNIT * WARP) {
                    A *to = sum + r * pitch + (x - begin);
                    if (x + UNIT <= width)
                        add_unit(to, row + x, width, aligned, w, s.n);
                    else
                        for (int j = 0; j < width - x; j++)
                            add_rows<1>(to + j, row + x + j, width, w, s.n);
                }
            }
            __syncthreads();
            T *made = dst + (size_t)y * line;
            const A *sums = sum;
            if (channels == 3)
                add_columns_of_rows<3>(made, line, sums, pitch, begin, ax, from, to, channels, xspan, xweight, rows);
            else if (channels == 1)
                add_columns_of_rows<1>(made, line, sums, pitch, begin, ax, from, to, channels, xspan, xweight, rows);
            else
                add_columns_of_rows<0>(made, line, sums, pitch, begin, ax, from, to, channels, xspan, xweight, rows);
            __syncthreads();
        }
}

#endif

/* A block makes `each` pixels of `rows` rows, and then of others: the sums of rows lie in shared memory. On a CPU one
 * thread of a block does all, row by row, as barriers would cost more than the sums. */
template <class T, class A>
static __device__ __forceinline__ void resize(T *dst, const T *src, const resize_axis &ay, const resize_axis &ax,
                                              int line, int channels, int each, int rows, const resize_span *span,
                                              const A *weight)
{
    GP_SHARED(A, sum);
#ifdef GP_CPU
    const int me = 0, all = 1;
    if (threadIdx.x)
        return;
#else
    const int me = threadIdx.x, all = blockDim.x;
    if (rows == ROWS) {
        resize_rows(dst, src, ay, ax, line, channels, each, span, weight);
        return;
    }
#endif
    const resize_span *xspan = span + ay.out;
    const A *xweight = weight + (size_t)ay.out * ay.taps;
    const int width = ax.in * channels, parts = (ax.out + each - 1) / each;
    for (int first = blockIdx.y * rows; first < ay.out; first += gridDim.y * rows)
        for (int part = blockIdx.x; part < parts; part += gridDim.x) {
            int from = part * each, to = from + each < ax.out ? from + each : ax.out;
            int begin = xspan[from].first * channels / 4 * 4, end = (xspan[to - 1].first + xspan[to - 1].n) * channels;
            for (int y = first; y < first + rows && y < ay.out; y++) {
                add_row(sum, src + (size_t)span[y].first * width, begin, end, width, weight + (size_t)y * ay.taps,
                        span[y].n, me, all);
#ifndef GP_CPU
                __syncthreads();
#endif
                add_columns(dst + (size_t)y * line, (const A *)sum, begin, ax, from, to, channels, xspan,
                            xweight, me, all);
#ifndef GP_CPU
                __syncthreads();
#endif
            }
        }
}

/* Six blocks at a time, or three that compute in f64. */
#ifdef GP_CPU
#define BLOCKS(T)
#else
#define BLOCKS(T) __launch_bounds__(256, sizeof(typename sum_of<T>::type) == 4 ? 6 : 3)
#endif

/* In one pass over the frame; or, where a pixel is made of more than shared memory has room for, by sums of rows in
 * scratch memory, and sums of these. The weights are the same for all frames. */
#define RESIZE(name, T)                                                                                               \
    extern "C" __global__ void BLOCKS(T) resize_##name(T *dst, size_t dst_stride, const T *src, size_t src_stride,    \
                                                       resize_axis y, resize_axis x, int line, int channels, int each, \
                                                       int rows, const resize_span *span, const sum_of<T>::type *weight) \
    {                                                                                                                 \
        dst += blockIdx.z * dst_stride, src += blockIdx.z * src_stride;                                               \
        resize(dst, src, y, x, line, channels, each, rows, span, weight);                                                   \
    }                                                                                                                 \
    extern "C" __global__ void resize_y_##name(sum_of<T>::type *sums, size_t sums_stride, const T *src,               \
                                               size_t src_stride, resize_axis a, int width, const resize_span *span,  \
                                               const sum_of<T>::type *weight)                                         \
    {                                                                                                                 \
        int me = (int)first_x(), all = (int)step_x();                                                                 \
        sums += blockIdx.z * sums_stride, src += blockIdx.z * src_stride;                                             \
        for (int y = blockIdx.y * blockDim.y + threadIdx.y; y < a.out; y += gridDim.y * blockDim.y)                   \
            add_row(sums + (size_t)y * width, src + (size_t)span[y].first * width, 0, width, width,                   \
                    weight + (size_t)y * a.taps, span[y].n, me, all);                                                 \
    }                                                                                                                 \
    extern "C" __global__ void resize_x_##name(T *dst, size_t dst_stride, const sum_of<T>::type *sums,                \
                                               size_t sums_stride, resize_axis a, int line, int rows, int channels,   \
                                               const resize_span *span, const sum_of<T>::type *weight)                \
    {                                                                                                                 \
        int me = (int)first_x(), all = (int)step_x();                                                                 \
        dst += blockIdx.z * dst_stride, sums += blockIdx.z * sums_stride;                                             \
        for (int y = blockIdx.y * blockDim.y + threadIdx.y; y < rows; y += gridDim.y * blockDim.y)                    \
            add_columns(dst + (size_t)y * line, sums + (size_t)y * a.in * channels, 0, a, 0, a.out,                   \
                        channels, span, weight, me, all);                                                             \
    }
#define TYPES(X)                                                                                       \
    X(u8, uint8_t) X(i8, int8_t) X(u16, uint16_t) X(i16, int16_t) X(u32, uint32_t) X(i32, int32_t)     \
    X(f16, gp_half) X(f32, float) X(f64, double)
TYPES(RESIZE)

/* ---- the nearest ------------------------------------------------------- */

template <int C, class T>
static __device__ __forceinline__ void pick(T *dst, const T *src, int rows, int cols, int width, int line,
                                            int channels, const resize_span *span)
{
    const resize_span *xspan = span + rows;
    for (int y = blockIdx.y * blockDim.y + threadIdx.y; y < rows; y += gridDim.y * blockDim.y) {
        const T *row = src + (size_t)span[y].first * width;
        T *to = dst + (size_t)y * line;
        for (int x = blockIdx.x * blockDim.x + threadIdx.x; x < cols; x += gridDim.x * blockDim.x)
            for (int c = 0; c < channels; c += C)
                for (int j = 0; j < C; j++)
                    to[(size_t)x * channels + c + j] = row[(size_t)xspan[x].first * channels + c + j];
    }
}

#define PICK(bytes, T)                                                                                                \
    extern "C" __global__ void resize_nearest_##bytes(T *dst, size_t dst_stride, const T *src, size_t src_stride,     \
                                                      int rows, int cols, int width, int line, int channels,          \
                                                      const resize_span *span)                                        \
    {                                                                                                                 \
        dst += blockIdx.z * dst_stride, src += blockIdx.z * src_stride;                                               \
        if (channels == 3)                                                                                            \
            pick<3>(dst, src, rows, cols, width, line, channels, span);                                                     \
        else                                                                                                          \
            pick<1>(dst, src, rows, cols, width, line, channels, span);                                                     \
    }
PICK(1, uint8_t) PICK(2, uint16_t) PICK(4, uint32_t) PICK(8, uint64_t)

#define ENTRY(name, T) GP_K(resize_##name) GP_K(resize_y_##name) GP_K(resize_x_##name)
GP_KERNELS(TYPES(ENTRY) GP_K(resize_weights_f32) GP_K(resize_weights_f64) GP_K(resize_nearest_1) GP_K(resize_nearest_2)
           GP_K(resize_nearest_4) GP_K(resize_nearest_8))
