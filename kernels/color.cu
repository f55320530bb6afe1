/* color.cu - pictures as planes of luma and chroma, as red, green and blue, and gray: each to each, in f32. A thread
 * does a square of four pixels, whose mean is a chroma value of 4:2:0. Sums and products stand in the order in which
 * they are computed. */
#include "map.h"

enum { YUV420, YUV422, YUV444, RGB, BGR, GRAY };           /* as in stages/color.c */

/* As in stages/color.c. */
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
    int height = half ? rows / 2 : rows, width = pairs ? cols / 2 : cols;
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
        const T *cb = src + n, *cr = cb + (h.from == YUV420 ? n / 4 : h.from == YUV422 ? n / 2 : n);
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
    store_chroma(plane + (h.to == YUV420 ? n / 4 : h.to == YUV422 ? n / 2 : n), rows, cols, y, x, cr, h);
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

GP_KERNELS(GP_K(color_u8_u8) GP_K(color_u8_u16) GP_K(color_u16_u8) GP_K(color_u16_u16))
