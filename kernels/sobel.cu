/* sobel.cu - the 3 x 3 Sobel operator; beyond an edge the pixels repeat in mirror
 * order, which for one pixel is the edge pixel itself. A thread does four rows of a
 * column. Differences first: they lose nothing where neighbors are alike. */
#include "map.h"

/* sqrt(x^2 + y^2). Only what would leave the range of f32 in between is scaled, so all else keeps its bits. */
static __device__ __forceinline__ float magnitude(float x, float y)
{
    const float a = fabsf(x), b = fabsf(y), most = a > b ? a : b;
    const float by = most > 1e18f ? 0x1p-66f : most < 1e-18f ? 0x1p100f : 1;
    const float back = most > 1e18f ? 0x1p66f : most < 1e-18f ? 0x1p-100f : 1;
    x *= by, y *= by;
    return sqrtf(x * x + y * y) * back;
}

enum { MAGNITUDE, X, Y };                  /* as in stages/sobel.c */
enum { R = 4 };

template <class To, class T>
static __device__ __forceinline__ void sobel(To *dst, const T *src, int rows, int cols, int output)
{
    int groups = (rows + R - 1) / R;
    for (int g = blockIdx.y * blockDim.y + threadIdx.y; g < groups; g += gridDim.y * blockDim.y)
        for (int x = blockIdx.x * blockDim.x + threadIdx.x; x < cols; x += gridDim.x * blockDim.x) {
            int left = x > 0 ? x - 1 : x, right = x + 1 < cols ? x + 1 : x;
            float l[R + 2], m[R + 2], r[R + 2];
            for (int j = 0; j < R + 2; j++) {
                int y = g * R + j - 1;
                const T *line = src + (size_t)(y < 0 ? 0 : y < rows ? y : rows - 1) * cols;
                l[j] = convert<float>(line[left]), m[j] = convert<float>(line[x]), r[j] = convert<float>(line[right]);
            }
            for (int j = 0; j < R && g * R + j < rows; j++) {
                float gx = (r[j] - l[j]) + 2 * (r[j + 1] - l[j + 1]) + (r[j + 2] - l[j + 2]);
                float gy = (l[j + 2] - l[j]) + 2 * (m[j + 2] - m[j]) + (r[j + 2] - r[j]);
                dst[(size_t)(g * R + j) * cols + x] = convert<To>(output == X ? gx : output == Y ? gy : magnitude(gx, gy));
            }
        }
}

/* Of integers, which have no room for it, the gradient is f32. */
template <class T> struct gradient_of { typedef float type; };
template <> struct gradient_of<gp_half> { typedef gp_half type; };

#define SOBEL(name, T)                                                                                              \
    extern "C" __global__ void sobel_##name(gradient_of<T>::type *dst, size_t dst_stride, const T *src,             \
                                            size_t src_stride, int rows, int cols, int output)                      \
    {                                                                                                               \
        sobel(dst + blockIdx.z * dst_stride, src + blockIdx.z * src_stride, rows, cols, output);                    \
    }
GP_PIXELS(SOBEL)

#define ENTRY(name, T) GP_K(sobel_##name)
GP_KERNELS(GP_PIXELS(ENTRY))
