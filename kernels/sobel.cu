/* sobel.cu - the 3 x 3 Sobel operator; beyond an edge the pixels repeat in
 * mirror order, which for one pixel is the edge pixel itself. */
#include "kernel.h"

enum { MAGNITUDE, X, Y };                  /* as in stages/sobel.c */

extern "C" __global__ void sobel_f32(float *dst, size_t dst_stride, const float *src,
                                     size_t src_stride, int rows, int cols, int output)
{
    dst += blockIdx.z * dst_stride, src += blockIdx.z * src_stride;
    for (int y = blockIdx.y * blockDim.y + threadIdx.y; y < rows; y += gridDim.y * blockDim.y) {
        const float *b = src + (size_t)y * cols;
        const float *a = y > 0 ? b - cols : b, *c = y + 1 < rows ? b + cols : b;
        for (int x = blockIdx.x * blockDim.x + threadIdx.x; x < cols; x += gridDim.x * blockDim.x) {
            int l = x > 0 ? x - 1 : x, r = x + 1 < cols ? x + 1 : x;
            float gx = (a[r] - a[l]) + 2 * (b[r] - b[l]) + (c[r] - c[l]);
            float gy = (c[l] - a[l]) + 2 * (c[x] - a[x]) + (c[r] - a[r]);
            dst[(size_t)y * cols + x] = output == X ? gx : output == Y ? gy
                                                                       : sqrtf(gx * gx + gy * gy);
        }
    }
}

GP_KERNELS(GP_K(sobel_f32))
