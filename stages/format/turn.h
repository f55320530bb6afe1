/* turn.h - pictures whose files say which side is up, by EXIF's numbers from 1 (as it is stored) to 8. */
#pragma once

#include <stddef.h>

/* Where pixel (0, 0) of the picture as stored goes, and how far from it those right of it and
 * below it, all in pixels. */
typedef struct gp_turn { ptrdiff_t origin, right, down; } gp_turn;

gp_turn gp_turn_for(int orientation, ptrdiff_t w, ptrdiff_t h);
/* Puts `rows` rows of w pixels of so many bytes, which are those from row y on, where they go: so many beside each
 * other that what is written lies together. */
void gp_turn_rows(gp_turn t, const void *from, ptrdiff_t rows, ptrdiff_t y, ptrdiff_t w, size_t pixel, void *to);

/* The orientation that EXIF data have, else `before`: EXIF 2.32, 4.6.2 and 4.6.4. */
int gp_turn_of_exif(const unsigned char *p, size_t n, int before);
