/* png_filter.h - the filters of PNG, by which each byte of a row is stored as what it differs by
 * from its neighbors (PNG specification, section 9).
 *
 * A row is n bytes, whole pixels of bpp: 1, 2, 3, 4, 6 or 8. What is less than a byte counts as a byte. A line is the
 * number of a filter and a row, filtered. */
#pragma once

#include <stddef.h>

enum { GP_PNG_NONE, GP_PNG_SUB, GP_PNG_UP, GP_PNG_AVERAGE, GP_PNG_PAETH, GP_PNG_FILTERS };

/* `count` lines, whose filters exist, -> rows, `apart` bytes from each other. These may be those in the lines: `to` is
 * lines + 1 and `apart` n + 1. `zeros` is n of them, the row above the first. */
void gp_png_unfilter(unsigned char *to, size_t apart, const unsigned char *lines, size_t count, size_t n, int bpp,
                     const unsigned char *zeros);

/* Row -> line, by the filter whose differences are the least, which compress best. `above` is the row above as it is,
 * zeros for the first; `work` has room for n bytes. */
void gp_png_filter(unsigned char *line, const unsigned char *row, const unsigned char *above, size_t n, int bpp,
                   unsigned char *work);
