/* png_file.h - what the two halves of the format share: png_file.c (heads, writing) and png_read.c. */
#pragma once

#include "picture_file.h"

enum { GP_PNG_GRAY = 0, GP_PNG_RGB = 2, GP_PNG_PALETTE = 3, GP_PNG_ALPHA = 4 };    /* color types; added: with alpha */
enum { GP_PNG_FIRST = 8 };                                                         /* offset of the first chunk, IHDR */

typedef struct gp_png_header {
    uint32_t width, height;
    int bits, color, channels;         /* in the file; a pixel of a palette is one */
    bool interlaced;
} gp_png_header;

/* False: the file does not begin with a header, or with one that PNG does not know. */
bool gp_png_header_of(const void *file, size_t n, gp_png_header *h, char err[GP_WHY]);

uint32_t gp_png_number(const unsigned char *p);

bool gp_png_metadata(const void *file, size_t n, gp_filemeta *to, char err[GP_WHY]);
bool gp_png_decode(const void *file, size_t n, const gp_picfile_how *how, const gp_type *type, void *frame,
                   char err[GP_WHY]);
