/* color_how.c - luma and chroma, see color_how.h.
 *
 * With the weights kr, kg, kb of a standard (ITU-R BT.601-7 2.5.1, BT.709-6 3.2, BT.2020-2 table 4), r, g and b from 0
 * to 1:
 *
 *   y = kr r + kg g + kb b      cb = (b - y) / (2 (1 - kb))      cr = (r - y) / (2 (1 - kr))
 *
 * and as numbers of n bits (BT.601-7 2.5.3, BT.709-6 3.4, BT.2020-2 table 5; full: ITU-T T.871 and BT.2100-2 table 9):
 *
 *   limited: Y = (219 y + 16) 2^(n - 8), C = (224 c + 128) 2^(n - 8)      full: Y = (2^n - 1) y, C = (2^n - 1) c + 2^(n - 1)
 *
 * Red, green, blue and gray have the full range; gray is y. */
#include "color_how.h"

bool gp_is_colored(int format)
{
    return format == GP_RGB || format == GP_BGR;
}

/* The numbers of `bits` bits that stand for 1 of luma, of chroma and of colors, and for 0 of the first two. */
struct scale { double y0, y, c0, c, rgb; };

static struct scale scale_of(int range, int bits)
{
    double unit = 1 << (bits - 8), top = (1 << bits) - 1;
    return range == GP_FULL ? (struct scale){ 0, top, 128 * unit, top, top }
                            : (struct scale){ 16 * unit, 219 * unit, 128 * unit, 224 * unit, top };
}

gp_color_how gp_color_how_of(int from, int to, int matrix, int range, bool smooth, int bits_in, int bits_out)
{
    static const double weights[][2] = { { 0.299, 0.114 }, { 0.2126, 0.0722 }, { 0.2627, 0.0593 } };   /* kr, kb */
    struct scale in = scale_of(range, bits_in), out = scale_of(range, bits_out);
    double kr = weights[matrix][0], kb = weights[matrix][1], kg = 1 - kr - kb;
    if (gp_is_colored(from) == gp_is_colored(to)) {          /* as numbers, which stay exact, not as parts of 1 */
        double first = from == GP_GRAY ? in.rgb : in.y;
        out.y /= first, out.c /= in.c, out.rgb /= gp_is_colored(from) ? in.rgb : first;
        in.y = in.c = in.rgb = 1;
    }
    return (gp_color_how){
        .from = from, .to = to,
        /* chroma that stays as coarse as it is is left alone */
        .smooth_x = smooth && to != GP_YUV420 && to != GP_YUV422, .smooth_y = smooth && to != GP_YUV420,
        .y0_in = (float)in.y0, .y_in = (float)(1 / in.y), .c0_in = (float)in.c0, .c_in = (float)(1 / in.c),
        .rgb_in = (float)(1 / in.rgb), .rgb_out = (float)out.rgb, .y0_out = (float)out.y0, .y_out = (float)out.y,
        .c0_out = (float)out.c0, .c_out = (float)out.c, .top = (float)((1 << bits_out) - 1),
        .kr = (float)kr, .kg = (float)kg, .kb = (float)kb,
        .ub = (float)(0.5 / (1 - kb)), .vr = (float)(0.5 / (1 - kr)),
        .rv = (float)(2 * (1 - kr)), .bu = (float)(2 * (1 - kb)),
        .gu = (float)(2 * (1 - kb) * kb / kg), .gv = (float)(2 * (1 - kr) * kr / kg),
    };
}
