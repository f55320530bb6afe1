/* color_how.h - how luma and chroma become red, green and blue, gray, and back: what the kernels of `color` are told,
 * which `read` calls on the host for video. */
#pragma once

#include <stdbool.h>

enum { GP_YUV420, GP_YUV422, GP_YUV444, GP_RGB, GP_BGR, GP_GRAY };     /* as in kernels/color.cu */
bool gp_is_colored(int format);        /* GP_RGB, GP_BGR */
enum { GP_BT601, GP_BT709, GP_BT2020 };
enum { GP_LIMITED, GP_FULL };

/* As in kernels/color.cu. */
typedef struct gp_color_how {
    int from, to, smooth_x, smooth_y;
    float y0_in, y_in, c0_in, c_in, rgb_in, rgb_out, y0_out, y_out, c0_out, c_out, top;
    float kr, kg, kb, ub, vr, rv, gu, gv, bu;
} gp_color_how;

/* `smooth`: chroma of a finer picture is bilinear. So many bits of a number are used on either side. */
gp_color_how gp_color_how_of(int from, int to, int matrix, int range, bool smooth, int bits_in, int bits_out);

/* A picture on the calling thread, with the bits of the kernel (kernels/color.cu): u16 -> u16 where it is `wide`, else
 * u8 -> u8. Where rows or columns are odd a plane of chroma has one more than half of them. */
void gp_color_host(const gp_color_how *how, bool wide, void *to, const void *from, int rows, int cols);
