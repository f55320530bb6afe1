/* turn.cu - a picture of bytes with its sides elsewhere: turned, mirrored, or both. Pixel (x, y) of `src`, which has w
 * * h pixels of c values, goes to pixel origin + x * right + y * down of `dst`. */
#include "map.h"

extern "C" __global__ void turn_u8(unsigned char *dst, const unsigned char *src, long long w, long long h, int c,
                                   long long origin, long long right, long long down)
{
    for (long long i = (long long)first_x(); i < w * h; i += (long long)step_x()) {
        unsigned char *to = dst + (origin + i % w * right + i / w * down) * c;
        for (int k = 0; k < c; k++)
            to[k] = src[i * c + k];
    }
}

GP_KERNELS(GP_K(turn_u8))
