/* color.cu - pictures as planes of luma and chroma, as red, green and blue, and gray: each to each, in f32. A thread
 * does a square of four pixels, whose mean is a chroma value of 4:2:0. Sums and products stand in the order in which
 * they are computed. */
#include "map.h"

enum { YUV420, YUV422, YUV444, RGB, BGR, GRAY };           /* as in stages/format/color_how.h */

/* As in stages/format/color_how.h. */
struct color_how {
    int from, to;
    int smooth_x, smooth_y;            /* chroma between the values that are there */
    float y0_in, y_in, c0_in, c_in;    /* a number v means (v - y0_in) * y_in */
    float rgb_in, rgb_out;             /* of red, green, blue and gray: v * rgb_in */
    float y0_out, y_out, c0_out, c_out, top;
    float kr, kg, kb, ub, vr;          /* to luma and chroma */
    float rv, gu, gv, bu;              /* back */
};

struct three { float a, b, c; };       /* y, cb, cr, or red, green, blue */

static __device__ __forceinline__ bool is_planar(int format) { return format <= YUV444; }
static __device__ __forceinline__ bool has_pairs(int format) { return format <= YUV422; }

/* Values of a plane of chroma. */
static __device__ __forceinline__ size_t chroma_size(int format, int rows, int cols)
{
    return (size_t)(format == YUV420 ? (rows + 1) / 2 : rows) * (has_pairs(format) ? (cols + 1) / 2 : cols);
}

/* Chroma lies between the pixels that share it: a pixel is a quarter of their distance away from its own value, and
 * three quarters from the next one on its side. */
template <class T>
static __device__ __forceinline__ float along(const T *line, int width, int x, bool halved, bool smooth)
{
    if (!halved)
        return (float)line[x];
    int near = x / 2, far = x % 2 ? near + 1 : near - 1;
    float v = (float)line[near];
    if (!smooth || far < 0 || far >= width)
        return v;
    return 0.75f * v + 0.25f * (float)line[far];
}

template <class T>
static __device__ __forceinline__ float chroma(const T *plane, int rows, int cols, int y, int x, const color_how &h)
{
    bool pairs = has_pairs(h.from), half = h.from == YUV420;
    int height = half ? (rows + 1) / 2 : rows, width = pairs ? (cols + 1) / 2 : cols;
    int near = half ? y / 2 : y, far = y % 2 ? near + 1 : near - 1;
    float v = along(plane + (size_t)near * width, width, x, pairs, h.smooth_x);
    if (!half || !h.smooth_y || far < 0 || far >= height)
        return v;
    return 0.75f * v + 0.25f * along(plane + (size_t)far * width, width, x, pairs, h.smooth_x);
}

/* A pixel as it is stored, each value between 0 and 1, chroma between -0.5 and 0.5. */
template <class T>
static __device__ __forceinline__ three load(const T *src, int rows, int cols, int y, int x, const color_how &h)
{
    size_t n = (size_t)rows * cols, i = (size_t)y * cols + x;
    if (is_planar(h.from)) {
        const T *cb = src + n, *cr = cb + chroma_size(h.from, rows, cols);
        return { ((float)src[i] - h.y0_in) * h.y_in, (chroma(cb, rows, cols, y, x, h) - h.c0_in) * h.c_in,
                 (chroma(cr, rows, cols, y, x, h) - h.c0_in) * h.c_in };
    }
    if (h.from == GRAY)
        return { (float)src[i] * h.rgb_in, 0, 0 };
    float first = (float)src[3 * i] * h.rgb_in, green = (float)src[3 * i + 1] * h.rgb_in,
          third = (float)src[3 * i + 2] * h.rgb_in;
    return { h.from == RGB ? first : third, green, h.from == RGB ? third : first };
}

static __device__ __forceinline__ float luma_of(three v, const color_how &h)
{
    return (h.kr * v.a + h.kg * v.b) + h.kb * v.c;
}

/* The same as the output has it. */
static __device__ __forceinline__ three turn(three v, const color_how &h)
{
    bool rgb = h.from == RGB || h.from == BGR, to_rgb = h.to == RGB || h.to == BGR;
    if (rgb == to_rgb)
        return v;
    if (rgb) {
        float y = luma_of(v, h);
        return { y, (v.c - y) * h.ub, (v.a - y) * h.vr };
    }
    return { v.a + h.rv * v.c, (v.a - h.gu * v.b) - h.gv * v.c, v.a + h.bu * v.b };
}

/* To the nearest, halves to even, and no further than the type goes. */
template <class T> static __device__ __forceinline__ T put(float v, float scale, float zero, float top)
{
    float x = rintf(v * scale + zero);
    return (T)(x < 0 ? 0 : x > top ? top : x);
}

template <class Out>
static __device__ __forceinline__ void store(Out *dst, int cols, int y, int x, three v, const color_how &h)
{
    size_t i = (size_t)y * cols + x;
    if (is_planar(h.to)) {
        dst[i] = put<Out>(v.a, h.y_out, h.y0_out, h.top);
    } else if (h.to == GRAY) {
        dst[i] = put<Out>(v.a, h.rgb_out, 0, h.top);
    } else {
        dst[3 * i] = put<Out>(h.to == RGB ? v.a : v.c, h.rgb_out, 0, h.top);
        dst[3 * i + 1] = put<Out>(v.b, h.rgb_out, 0, h.top);
        dst[3 * i + 2] = put<Out>(h.to == RGB ? v.c : v.a, h.rgb_out, 0, h.top);
    }
}

/* Chroma of four pixels: v[0] v[1] above v[2] v[3], of which those beyond the border are not stored. */
template <class Out>
static __device__ __forceinline__ void store_chroma(Out *plane, int rows, int cols, int y, int x, const float v[4],
                                                    const color_how &h)
{
    if (h.to == YUV420) {
        plane[(size_t)(y / 2) * (cols / 2) + x / 2] =
            put<Out>(((v[0] + v[1]) + (v[2] + v[3])) * 0.25f, h.c_out, h.c0_out, h.top);
        return;
    }
    for (int j = 0; j < 2 && y + j < rows; j++) {
        if (h.to == YUV422) {
            plane[(size_t)(y + j) * (cols / 2) + x / 2] =
                put<Out>((v[2 * j] + v[2 * j + 1]) * 0.5f, h.c_out, h.c0_out, h.top);
            continue;
        }
        for (int k = 0; k < 2 && x + k < cols; k++)
            plane[(size_t)(y + j) * cols + x + k] = put<Out>(v[2 * j + k], h.c_out, h.c0_out, h.top);
    }
}

template <class Out, class In>
static __device__ __forceinline__ void square(Out *dst, const In *src, int rows, int cols, int y, int x, const color_how &h)
{
    float cb[4], cr[4];
    for (int k = 0; k < 4; k++) {
        int r = y + k / 2, c = x + k % 2;
        cb[k] = cr[k] = 0;
        if (r >= rows || c >= cols)
            continue;
        three v = turn(load(src, rows, cols, r, c, h), h);
        store(dst, cols, r, c, v, h);
        cb[k] = v.b, cr[k] = v.c;
    }
    if (!is_planar(h.to))
        return;
    size_t n = (size_t)rows * cols;
    Out *plane = dst + n;
    store_chroma(plane, rows, cols, y, x, cb, h);
    store_chroma(plane + chroma_size(h.to, rows, cols), rows, cols, y, x, cr, h);
}

#define COLOR(from, In, to, Out)                                                                       \
    extern "C" __global__ void color_##from##_##to(Out *dst, size_t dst_stride, const In *src, size_t src_stride, \
                                                   int rows, int cols, color_how h)                    \
    {                                                                                                  \
        dst += blockIdx.z * dst_stride, src += blockIdx.z * src_stride;                                \
        int down = (rows + 1) / 2, across = (cols + 1) / 2;                                            \
        for (int y = blockIdx.y * blockDim.y + threadIdx.y; y < down; y += gridDim.y * blockDim.y)     \
            for (int x = blockIdx.x * blockDim.x + threadIdx.x; x < across; x += gridDim.x * blockDim.x) \
                square(dst, src, rows, cols, 2 * y, 2 * x, h);                                         \
    }

COLOR(u8, uint8_t, u8, uint8_t) COLOR(u8, uint8_t, u16, uint16_t)
COLOR(u16, uint16_t, u8, uint8_t) COLOR(u16, uint16_t, u16, uint16_t)

#ifdef GP_CPU
/* Planes to red, green and blue on the calling thread, part of a line at a time, for its vectors. The bits are those of
 * the kernel: chroma between its values is a whole number of sixteenths, which f32 holds whatever the order of sums, and
 * a number between 0 and `top` is rounded by adding 2^23. */
enum { PART = 256 };

template <class T> static void chroma_part(float *to, const T *near, const T *far, int width, int x, int n, bool halved)
{
    int sum[PART / 2 + 2] = {};
    int first = x / 2 - 1, m = (n + 1) / 2 + 2;
    if (!halved) {
        for (int i = 0; i < n; i++)
            to[i] = (float)near[x + i];
        return;
    }
    int from = first < 0 ? 1 : 0, end = first + m > width ? width - first : m;
    for (int k = from; k < end; k++)
        sum[k] = 3 * near[first + k] + far[first + k];
    if (from)
        sum[0] = sum[1];
    if (end < m)
        sum[end] = sum[end - 1];
    for (int k = 0; k < m - 2; k++) {
        to[2 * k] = (float)(3 * sum[k + 1] + sum[k]) * 0.0625f;
        to[2 * k + 1] = (float)(3 * sum[k + 1] + sum[k + 2]) * 0.0625f;
    }
}

template <class T> static void rounded(T *__restrict to, const float *__restrict v, int n, float scale, float top)
{
    for (int i = 0; i < n; i++) {
        float x = v[i] * scale;
        x = x < 0 ? 0 : x;
        x = x > top ? top : x;
        to[i] = (T)(int)((x + 8388608.0f) - 8388608.0f);
    }
}

template <class T> static void rgb_lines(T *dst, const T *src, int rows, int cols, const color_how how)
{
    color_how h = how;
    const bool pairs = has_pairs(h.from), half = h.from == YUV420;
    const int height = half ? (rows + 1) / 2 : rows, width = pairs ? (cols + 1) / 2 : cols;
    const T *planes[2] = { src + (size_t)rows * cols, src + (size_t)rows * cols + chroma_size(h.from, rows, cols) };
    float c[2][PART], rgb[3][PART];
    T part[3][PART];
    h.from = YUV420, h.to = RGB;       /* which turn() sees as constants */
    for (int y = 0; y < rows; y++) {
        int near = half ? y / 2 : y, far = !half ? near : y % 2 ? near + 1 : near - 1;
        far = far < 0 || far >= height ? near : far;
        for (int x = 0; x < cols; x += PART) {
            const int n = cols - x < PART ? cols - x : PART;
            const T *luma = src + (size_t)y * cols + x;
            T *to = dst + 3 * ((size_t)y * cols + x);
            for (int k = 0; k < 2; k++)
                chroma_part(c[k], planes[k] + (size_t)near * width, planes[k] + (size_t)far * width, width, x, n, pairs);
            for (int i = 0; i < n; i++) {
                three v = turn({ ((float)luma[i] - h.y0_in) * h.y_in, (c[0][i] - h.c0_in) * h.c_in,
                                 (c[1][i] - h.c0_in) * h.c_in }, h);
                rgb[0][i] = v.a, rgb[1][i] = v.b, rgb[2][i] = v.c;
            }
            for (int k = 0; k < 3; k++)
                rounded(part[k], rgb[k], n, h.rgb_out, h.top);
            for (int i = 0; i < n; i++, to += 3)
                to[0] = part[0][i], to[1] = part[1][i], to[2] = part[2][i];
        }
    }
}

template <class T> static void on_host(T *dst, const T *src, int rows, int cols, const color_how &h)
{
    if (is_planar(h.from) && h.to == RGB && h.smooth_x && h.smooth_y) {
        rgb_lines(dst, src, rows, cols, h);
        return;
    }
    for (int y = 0; y < rows; y += 2)
        for (int x = 0; x < cols; x += 2)
            square(dst, src, rows, cols, y, x, h);
}

extern "C" void gp_color_host(const color_how *how, bool wide, void *to, const void *from, int rows, int cols)
{
    if (wide)
        on_host((uint16_t *)to, (const uint16_t *)from, rows, cols, *how);
    else
        on_host((uint8_t *)to, (const uint8_t *)from, rows, cols, *how);
}
#endif

GP_KERNELS(GP_K(color_u8_u8) GP_K(color_u8_u16) GP_K(color_u16_u8) GP_K(color_u16_u16))
