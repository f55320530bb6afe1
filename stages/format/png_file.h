/* png_file.h - pictures: .png to and from frames.
 *
 * A frame is u8 or u16, (H, W) for gray or (H, W, C) with C = 2 gray and alpha,
 * 3 RGB, 4 RGBA; writers also take C = 1. Palettes, tRNS and less than 8 bits
 * are expanded; colour spaces are left alone. Only png_file.c includes png.h.
 * Any thread. */
#ifndef GP_PNG_FILE_H
#define GP_PNG_FILE_H

#include "files.h"

/* The type of the frame in a file that begins with `head`; all that stands
 * before the picture's data has to be there. */
bool gp_png_head(const void *head, size_t n, gp_type *type, char err[GP_WHY]);

/* A whole file of n bytes -> a frame of type `type`, as gp_png_head said. */
bool gp_png_decode(const void *file, size_t n, const gp_type *type, void *frame,
                   char err[GP_WHY]);

/* NULL when a PNG can hold such frames, else why not: "PNG holds u8 or ...". */
const char *gp_png_why_not(const gp_type *type);

/* A frame -> a whole file in `out`. `level`: of zlib, 0 to 9. */
bool gp_png_encode(const void *frame, const gp_type *type, int level, gp_growbuf *out,
                   char err[GP_WHY]);

#endif
