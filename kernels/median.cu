/* median.cu - the median of each pixel's SIZE x SIZE neighbors; beyond the border the nearest pixel, or mirrored
 * (cba|abc).
 *
 * Of N values there are never more at hand than N / 2 + 2: what is the least of them, and the most, cannot be the
 * median, makes room for the next value, until one is left. Which values are compared does not depend on them. */
#include "join.h"

/* Registers have no index; on a CPU the compiler decides. */
#ifdef __CUDACC__
#define UNROLLED _Pragma("unroll")
#else
#define UNROLLED
#endif

template <class T> static __device__ __forceinline__ void sort(T &a, T &b)
{
    const T low = order(b) < order(a) ? b : a, high = order(b) < order(a) ? a : b;
    a = low, b = high;
}

/* Moves the least of v[0 .. M - 1] to v[0] and the most to v[M - 1]. */
template <int M, class T> static __device__ __forceinline__ void ends(T *v)
{
    UNROLLED
    for (int i = 0; i < M / 2; i++)
        sort(v[i], v[M - 1 - i]);
    UNROLLED
    for (int i = 1; i < (M + 1) / 2; i++)
        sort(v[0], v[i]);
    UNROLLED
    for (int i = M / 2; i < M - 1; i++)
        sort(v[i], v[M - 1]);
}

/* M values are at hand of N, and value(N - M + 3), ... value(N - 1) are to come. */
template <int M, int N, class T, class Value> static __device__ __forceinline__ T middle(T *v, Value value)
{
    ends<M>(v);
    if constexpr (M == 3) {
        return v[1];
    } else {
        v[0] = value(N - M + 3);       /* in place of the least; the most is left behind */
        return middle<M - 1, N>(v, value);
    }
}

template <class T> static __device__ __forceinline__ T not_a_number() { return T(); }
template <> __device__ __forceinline__ float not_a_number<float>() { return __int_as_float(0x7fffffff); }

static __device__ __forceinline__ int beyond(int at, int n, bool nearest)
{
    if (at >= 0 && at < n)
        return at;
    if (nearest)
        return at < 0 ? 0 : n - 1;
    at = (at < 0 ? -1 - at : at) % (2 * n);
    return at < n ? at : 2 * n - 1 - at;
}

template <int SIZE, class T>
static __device__ __forceinline__ void median(T *dst, const T *src, int rows, int cols, int channels, bool nearest)
{
    constexpr int R = SIZE / 2, M = SIZE * SIZE / 2 + 2;
    const size_t width = (size_t)cols * channels;
    for (int y = blockIdx.y * blockDim.y + threadIdx.y; y < rows; y += gridDim.y * blockDim.y)
        for (int x = blockIdx.x * blockDim.x + threadIdx.x; x < cols * channels; x += gridDim.x * blockDim.x) {
            const int column = channels == 1 ? x : x / channels, c = x - column * channels;
            size_t row[SIZE];
            int at[SIZE];
            for (int k = 0; k < SIZE; k++)
                row[k] = beyond(y + k - R, rows, nearest) * width,
                at[k] = beyond(column + k - R, cols, nearest) * channels + c;
            T v[M];
            bool odd = false;
            auto value = [&](int i) {
                const T a = src[row[i / SIZE] + at[i % SIZE]];
                odd = odd || a != a;
                return a;
            };
            UNROLLED
            for (int k = 0; k < M; k++)
                v[k] = value(k);
            const T m = middle<M, SIZE * SIZE>(v, value);
            dst[y * width + x] = odd ? not_a_number<T>() : m;
        }
}

#define MEDIAN(name, T)                                                                             \
    extern "C" __global__ void median_##name(T *dst, size_t dst_stride, const T *src, size_t src_stride, int rows, \
                                             int cols, int channels, int size, int nearest)         \
    {                                                                                               \
        dst += blockIdx.z * dst_stride, src += blockIdx.z * src_stride;                             \
        if (size == 3)                                                                              \
            median<3>(dst, src, rows, cols, channels, nearest);                                     \
        else if (size == 5)                                                                         \
            median<5>(dst, src, rows, cols, channels, nearest);                                     \
        else                                                                                        \
            median<7>(dst, src, rows, cols, channels, nearest);                                     \
    }
MEDIAN(u8, uint8_t) MEDIAN(u16, uint16_t) MEDIAN(i16, int16_t) MEDIAN(f32, float)

GP_KERNELS(GP_K(median_u8) GP_K(median_u16) GP_K(median_i16) GP_K(median_f32))
