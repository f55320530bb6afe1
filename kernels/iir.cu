/* iir.cu - a cascade of second-order sections along the rows of (rows, channels), in f64. Rows are in chunks, and a
 * thread does one channel of one. `z` has state k of part p of n in z[(k n + p) channels + channel].
 *
 *   iir_rest_T       what a chunk leaves that begins at rest: rows times weights [CHUNK, quads of states]
 *   iir_join_N       what PART parts leave together: after each part z = power z + what it leaves
 *   iir_start_N      what a part leaves becomes what it begins with, of `group` parts that begin with `from`; of chunks
 *                    also what is carried to the next frame
 *   iir_filter_T_N   the rows themselves, from what chunks begin with; if there is but one, its state is carried
 *
 * N is the most sections: their numbers are in registers. Between kernels states are (z0, u) of each section, as
 * stages/iir.c says; those that are carried are SciPy's, (z0, z1). */
#include "map.h"

#ifdef GP_CPU
#define UNROLL
#else
#define UNROLL _Pragma("unroll")
#endif

static constexpr size_t CHUNK_BITS = 6, PART_BITS = 3, CHUNK = 1 << CHUNK_BITS, PART = 1 << PART_BITS, QUAD = 4;
static constexpr int COLUMNS = 6;          /* b0, b1, b2, c, a1, a2 */

/* One section after the other, in transposed direct form II, as SciPy has it: the same order of operations. */
template <int N> struct cascade {
    double z[2 * N];

    __device__ __forceinline__ double operator()(double x, const double *c, int states)
    {
        UNROLL for (int i = 0; i < N; i++)
            if (2 * i < states) {
                const double *s = c + i * COLUMNS, y = s[0] * x + z[2 * i];
                z[2 * i] = s[1] * x - s[4] * y + z[2 * i + 1];
                z[2 * i + 1] = s[2] * x - s[5] * y;
                x = y;
            }
        return x;
    }

    /* (z0, z1) of each section becomes (z0, u = z1 + c z0), and back. Where u is small, its error is, too: z0 times
     * the nearest integer of c is nearly -z1, and the rest is small. */
    __device__ __forceinline__ void turn(const double *sections, int states)
    {
        UNROLL for (int i = 0; i < N; i++)
            if (2 * i < states) {
                const double c = sections[i * COLUMNS + 3], whole = rint(c);
                z[2 * i + 1] = z[2 * i + 1] + whole * z[2 * i] + (c - whole) * z[2 * i];
            }
    }

    __device__ __forceinline__ void turn_back(const double *sections, int states)
    {
        UNROLL for (int i = 0; i < N; i++)
            if (2 * i < states) {
                const double c = sections[i * COLUMNS + 3], whole = rint(c);
                z[2 * i + 1] = z[2 * i + 1] - (c - whole) * z[2 * i] - whole * z[2 * i];
            }
    }

    /* z = power z + left. No section has anything of those behind it. */
    __device__ __forceinline__ void leap(const double *power, int states, const cascade &left)
    {
        double sum[2 * N];
        UNROLL for (int j = 0; j < 2 * N; j++) {
            sum[j] = left.z[j];
            if (j < states) {
                UNROLL for (int k = 0; k < 2 * N; k++)
                    if (k <= (j | 1))
                        sum[j] += power[j * states + k] * z[k];
                sum[j] += power[states * states + j] * z[j];
            }
        }
        UNROLL for (int k = 0; k < 2 * N; k++)
            z[k] = sum[k];
    }

    template <class F> __device__ __forceinline__ void load(int states, F of)
    {
        UNROLL for (int k = 0; k < 2 * N; k++)
            z[k] = k < states ? of(k) : 0;
    }

    template <class F> __device__ __forceinline__ void store(int states, F to)
    {
        UNROLL for (int k = 0; k < 2 * N; k++)
            if (k < states)
                to(k, z[k]);
    }
};

/* The rows of a chunk, four at a time while the next four are on their way, if there are registers for them; of one
 * channel as one access. The sections are read once. */
template <int N, class T>
static __device__ __forceinline__ void rows(cascade<N> &f, T *y, const T *x, size_t n, size_t channels,
                                            const double *sections, int states)
{
    constexpr size_t ahead = N < 16 ? 4 : 0;
    double c[N * COLUMNS];
    UNROLL for (int k = 0; k < N * COLUMNS; k++)
        c[k] = 3 * states > k ? sections[k] : 0;
    size_t r = 0;
    quad<T> v, next = { { 0, 0, 0, 0 } };
    auto read = [&](size_t at) {
        if (channels == 1)
            next = *(const quad<T> *)(x + at);
        else
            UNROLL for (int k = 0; k < 4; k++)
                next.v[k] = x[(at + k) * channels];
    };
    if (ahead && n >= ahead)
        read(0);
    for (; r + 4 <= n; r += 4) {
        if (!ahead)
            read(r);
        v = next;
        if (ahead && r + 4 + ahead <= n)
            read(r + ahead);
        UNROLL for (int k = 0; k < 4; k++)
            v.v[k] = (T)f((double)v.v[k], c, states);
        if (channels == 1)
            *(quad<T> *)(y + r) = v;
        else
            UNROLL for (int k = 0; k < 4; k++)
                y[(r + k) * channels] = v.v[k];
    }
    for (; r < n; r++)
        y[r * channels] = (T)f((double)x[r * channels], c, states);
}

/* The last chunk may have less rows; the last weights are theirs. */
#define FOR(name, T)                                                                                           \
    extern "C" __global__ void iir_rest_##name(double *z, const T *__restrict__ src, size_t n, size_t channels, \
                                               const double *__restrict__ weights, size_t states)              \
    {                                                                                                          \
        const size_t parts = (n + CHUNK - 1) / CHUNK, quads = (states + QUAD - 1) / QUAD;                      \
        for (size_t i = first_x(); i < parts * quads * channels; i += step_x()) {                              \
            const size_t q = i % channels, g = i / channels % quads, p = i / channels / quads;                 \
            const size_t m = p + 1 < parts ? CHUNK : n - p * CHUNK;                                            \
            const quad<double> *w = (const quad<double> *)weights + (CHUNK - m) * quads + g;                   \
            const T *x = src + p * CHUNK * channels + q;                                                       \
            quad<double> sum = { { 0, 0, 0, 0 } };                                                             \
            size_t r = 0;                                                                                      \
            auto add = [&](size_t at, double v) {                                                              \
                const quad<double> by = w[at * quads];                                                         \
                UNROLL for (size_t k = 0; k < QUAD; k++)                                                       \
                    sum.v[k] += by.v[k] * v;                                                                   \
            };                                                                                                 \
            for (; r + 8 <= m; r += 8) {                                                                       \
                double v[8];                                                                                   \
                if (channels == 1)                                                                             \
                    UNROLL for (size_t k = 0; k < 8; k++)                                                      \
                        v[k] = (double)((const quad<T> *)(x + r))[k / 4].v[k % 4];                             \
                else                                                                                           \
                    UNROLL for (size_t k = 0; k < 8; k++)                                                      \
                        v[k] = (double)x[(r + k) * channels];                                                  \
                UNROLL for (size_t k = 0; k < 8; k++)                                                          \
                    add(r + k, v[k]);                                                                          \
            }                                                                                                  \
            for (; r < m; r++)                                                                                 \
                add(r, (double)x[r * channels]);                                                               \
            UNROLL for (size_t k = 0; k < QUAD; k++)                                                           \
                if (g * QUAD + k < states)                                                                     \
                    z[((g * QUAD + k) * parts + p) * channels + q] = sum.v[k];                                 \
        }                                                                                                      \
    }
FOR(f32, float) FOR(f64, double)

#define FILTER(name, T, N)                                                                                     \
    extern "C" __global__ void iir_filter_##name##_##N(T *__restrict__ dst, const T *__restrict__ src, size_t n, \
                                                       size_t channels, size_t chunk, const double *sections,  \
                                                       size_t states, const double *z, double *carried)        \
    {                                                                                                          \
        const size_t parts = (n + chunk - 1) / chunk;                                                          \
        for (size_t i = first_x(); i < parts * channels; i += step_x()) {                                      \
            const size_t p = i / channels, q = i % channels, at = p * chunk * channels + q;                    \
            cascade<N> f;                                                                                      \
            f.load((int)states, [=](int k) { return z[k * parts * channels + i]; });                           \
            if (parts > 1)                                                                                     \
                f.turn_back(sections, (int)states);                                                            \
            rows(f, dst + at, src + at, p + 1 < parts ? chunk : n - p * chunk, channels, sections, (int)states); \
            if (parts == 1)                                                                                    \
                f.store((int)states, [=](int k, double v) { carried[k * channels + q] = v; });                 \
        }                                                                                                      \
    }

/* f over parts from `first` to `to` of those that end at `end`, with before(p) as it comes to part p; what the next one
 * leaves is already on its way, and is returned at the end. */
template <int N, class F>
static __device__ __forceinline__ cascade<N> leaps(cascade<N> &f, const double *z, size_t first, size_t to, size_t end,
                                                   size_t parts, size_t channels, size_t q,
                                                   const double *__restrict__ power, int states, F before)
{
    cascade<N> next;
    auto read = [&](size_t p) { next.load(states, [=](int k) { return z[(k * parts + p) * channels + q]; }); };

    read(first < end ? first : end - 1);
    for (size_t p = first; p < to; p++) {
        const cascade<N> left = next;
        if (p + 1 < end)
            read(p + 1);
        before(p);
        f.leap(power, states, left);
    }
    return next;
}

/* f over the last chunk of a frame, whose `m` rows leave `left`. `power` is A^CHUNK, behind A^1, A^2, A^4 ... */
template <int N>
static __device__ __forceinline__ void last(cascade<N> &f, size_t m, const double *power, int states,
                                            const cascade<N> &left)
{
    cascade<N> none;
    none.load(states, [](int) { return 0.0; });
    for (size_t bit = 0; bit <= CHUNK_BITS; bit++)
        if (m >> bit & 1)
            f.leap(power - (CHUNK_BITS - bit) * (states * (states + 1)), states, none);
    UNROLL for (int k = 0; k < 2 * N; k++)
        f.z[k] += left.z[k];
}

#define LEAPS(N)                                                                                               \
    extern "C" __global__ void iir_join_##N(double *to, const double *z, size_t parts, size_t channels,        \
                                            const double *power, size_t states)                                \
    {                                                                                                          \
        const size_t groups = (parts + PART - 1) / PART;                                                       \
        for (size_t i = first_x(); i < groups * channels; i += step_x()) {                                     \
            const size_t q = i % channels, first = i / channels * PART;                                        \
            const size_t end = first + PART < parts ? first + PART : parts;                                    \
            cascade<N> f;                                                                                      \
            f.load((int)states, [=](int k) { return z[(k * parts + first) * channels + q]; });                 \
            leaps(f, z, first + 1, end, end, parts, channels, q, power, (int)states, [](size_t) { });          \
            f.store((int)states, [=](int k, double v) { to[k * groups * channels + i] = v; });                 \
        }                                                                                                      \
    }                                                                                                          \
    extern "C" __global__ void iir_start_##N(double *z, const double *from, size_t parts, size_t group,        \
                                             size_t channels, const double *power, size_t states,              \
                                             const double *sections, double *carried, size_t rows)             \
    {                                                                                                          \
        const size_t groups = (parts + group - 1) / group;                                                     \
        for (size_t i = first_x(); i < groups * channels; i += step_x()) {                                     \
            const size_t q = i % channels, first = i / channels * group;                                       \
            const size_t end = first + group < parts ? first + group : parts;                                  \
            cascade<N> f;                                                                                      \
            auto begins = [=, &f](size_t p) {                                                                  \
                f.store((int)states, [=](int k, double v) { z[(k * parts + p) * channels + q] = v; });         \
            };                                                                                                 \
            f.load((int)states, [=](int k) { return from[k * groups * channels + i]; });                       \
            if (from == carried)                                                                               \
                f.turn(sections, (int)states);                                                                 \
            const cascade<N> left = leaps(f, z, first, end - 1, end, parts, channels, q, power, (int)states, begins); \
            begins(end - 1);                                                                                   \
            if (rows && end == parts) {                                                                        \
                last(f, rows - (end - 1) * CHUNK, power, (int)states, left);                                   \
                f.turn_back(sections, (int)states);                                                            \
                f.store((int)states, [=](int k, double v) { carried[k * channels + q] = v; });                 \
            }                                                                                                  \
        }                                                                                                      \
    }

#define ALL(N) FILTER(f32, float, N) FILTER(f64, double, N) LEAPS(N)
ALL(2) ALL(4) ALL(8) ALL(16)

#define ENTRIES(N) GP_K(iir_filter_f32_##N) GP_K(iir_filter_f64_##N) GP_K(iir_join_##N) GP_K(iir_start_##N)
GP_KERNELS(GP_K(iir_rest_f32) GP_K(iir_rest_f64) ENTRIES(2) ENTRIES(4) ENTRIES(8) ENTRIES(16))
