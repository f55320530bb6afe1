/* png_filter.c - see png_filter.h. The Makefile has this file compiled with -O3, so that loops over a row are
 * vectorized.
 *
 * Filtering sees whole rows: all of their bytes are done alike. Undoing most filters needs the pixel to the left before
 * the next one can be. So two rows of small pixels are done together, the lower one a pixel behind. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "png_filter.h"

#define INLINE static inline __attribute__((always_inline))

/* ---- undoing, one row ------------------------------------------------ */

INLINE int magnitude(int x)
{
    return x < 0 ? -x : x;
}

/* The byte that is nearest to a + b - c; a lies to the left, b above, and c above to the left. */
INLINE int paeth(int a, int b, int c)
{
    int pa = b - c, pb = a - c, pc = magnitude(pa + pb);
    pa = magnitude(pa), pb = magnitude(pb);
    int nearest = a, least = pa;
    nearest = pb < least ? b : nearest;
    least = pb < least ? pb : least;
    return pc < least ? c : nearest;
}

INLINE void undo(int filter, unsigned char *to, const unsigned char *from, const unsigned char *above, size_t n,
                 int bpp)
{
    int a[8] = { 0 }, c[8] = { 0 };
    for (size_t i = 0; i < n; i += (size_t)bpp)
        for (int k = 0; k < bpp; k++) {
            int b = above[i + (size_t)k];
            int predicted = filter == GP_PNG_SUB ? a[k] : filter == GP_PNG_AVERAGE ? (a[k] + b) >> 1
                                                                                  : paeth(a[k], b, c[k]);
            a[k] = to[i + (size_t)k] = (unsigned char)(from[i + (size_t)k] + predicted);
            c[k] = b;
        }
}

INLINE void undo_any(int filter, unsigned char *to, const unsigned char *from, const unsigned char *above, size_t n,
                     int bpp)
{
    if (filter == GP_PNG_SUB)
        undo(GP_PNG_SUB, to, from, above, n, bpp);
    else if (filter == GP_PNG_AVERAGE)
        undo(GP_PNG_AVERAGE, to, from, above, n, bpp);
    else
        undo(GP_PNG_PAETH, to, from, above, n, bpp);
}

static void undo_row(int filter, unsigned char *to, const unsigned char *from, const unsigned char *above, size_t n,
                     int bpp)
{
    if (filter == GP_PNG_NONE) {
        memmove(to, from, n);
        return;
    }
    if (filter == GP_PNG_UP) {
        for (size_t i = 0; i < n; i++)
            to[i] = (unsigned char)(from[i] + above[i]);
        return;
    }
    switch (bpp) {
    case 1: undo_any(filter, to, from, above, n, 1); break;
    case 2: undo_any(filter, to, from, above, n, 2); break;
    case 3: undo_any(filter, to, from, above, n, 3); break;
    case 4: undo_any(filter, to, from, above, n, 4); break;
    case 6: undo_any(filter, to, from, above, n, 6); break;
    default: undo_any(filter, to, from, above, n, 8); break;
    }
}

/* ---- undoing, two rows of pixels of 3 or 4 bytes --------------------- */

/* Four bytes of the upper row, then four of the lower one. */
typedef int16_t lanes __attribute__((vector_size(16)));
typedef uint64_t halves __attribute__((vector_size(16)));
typedef uint8_t bytes __attribute__((vector_size(8)));
typedef union eight { bytes all; unsigned char each[8]; } eight;

/* a and c are as for paeth(); the others are -1 in lanes of this filter. */
typedef struct pair { lanes a, c, is_paeth, is_average; } pair;

INLINE lanes either(lanes which, lanes x, lanes y)
{
    return (x & which) | (y & ~which);
}

INLINE lanes magnitudes(lanes x)
{
    lanes sign = x >> 15;
    return (x ^ sign) - sign;
}

INLINE lanes paeths(lanes a, lanes b, lanes c)
{
    lanes pa = b - c, pb = a - c, pc = magnitudes(pa + pb);
    pa = magnitudes(pa), pb = magnitudes(pb);
    lanes below = pb <= pc;
    return either(pa <= either(below, pb, pc), a, either(below, b, c));
}

/* The next pixel of the upper row, of n bytes at `upper` and `above`, and of the lower row the pixel before that, of n
 * bytes at `lower`: what is above it is what the step before made. */
INLINE eight step(pair *p, bool all_paeth, const unsigned char *upper, const unsigned char *above,
                  const unsigned char *lower, size_t n)
{
    eight x = { { 0 } }, up = { { 0 } };
    memcpy(x.each, upper, n);
    memcpy(x.each + 4, lower, n);
    memcpy(up.each, above, n);
    lanes a = p->a, b = __builtin_convertvector(up.all, lanes);
    b = (lanes)(halves){ ((halves)b)[0], ((halves)a)[0] };
    lanes predicted = paeths(a, b, p->c);
    if (!all_paeth)
        predicted = either(p->is_paeth, predicted, either(p->is_average, (a + b) >> 1, a));
    p->a = (__builtin_convertvector(x.all, lanes) + predicted) & 255;
    p->c = b;
    return (eight){ __builtin_convertvector(p->a, bytes) };
}

/* Ahead of its first pixel the lower row is all 0, and so is what is predicted for it. As long as they are in the row 4
 * bytes are loaded, which is faster than 3. */
INLINE void undo_pair(pair p, bool all_paeth, unsigned char *to, unsigned char *to_lower, const unsigned char *upper,
                      const unsigned char *lower, const unsigned char *above, size_t n, size_t bpp)
{
    static const unsigned char zeros[4];
    eight x = step(&p, all_paeth, upper, above, zeros, bpp);
    memcpy(to, x.each, bpp);
    size_t i = bpp;
    for (; i + 4 <= n; i += bpp) {
        x = step(&p, all_paeth, upper + i, above + i, lower + i - bpp, 4);
        memcpy(to + i, x.each, bpp);
        memcpy(to_lower + i - bpp, x.each + 4, bpp);
    }
    for (; i < n; i += bpp) {
        x = step(&p, all_paeth, upper + i, above + i, lower + i - bpp, bpp);
        memcpy(to + i, x.each, bpp);
        memcpy(to_lower + i - bpp, x.each + 4, bpp);
    }
    x = step(&p, all_paeth, zeros, zeros, lower + n - bpp, bpp);
    memcpy(to_lower + n - bpp, x.each + 4, bpp);
}

static void undo_rows(unsigned char *to, size_t apart, const unsigned char *lines, const unsigned char *above, size_t n,
                      int bpp)
{
    const unsigned char *upper = lines + 1, *lower = upper + n + 1;
    pair p = { 0 };
    for (int k = 0; k < 8; k++) {
        int filter = k < 4 ? lines[0] : lower[-1];
        p.is_paeth[k] = filter == GP_PNG_PAETH ? -1 : 0;
        p.is_average[k] = filter == GP_PNG_AVERAGE ? -1 : 0;
    }
    bool all_paeth = p.is_paeth[0] && p.is_paeth[4];
    if (bpp == 3 && all_paeth)
        undo_pair(p, true, to, to + apart, upper, lower, above, n, 3);
    else if (bpp == 3)
        undo_pair(p, false, to, to + apart, upper, lower, above, n, 3);
    else if (all_paeth)
        undo_pair(p, true, to, to + apart, upper, lower, above, n, 4);
    else
        undo_pair(p, false, to, to + apart, upper, lower, above, n, 4);
}

static bool needs_left(int filter)
{
    return filter != GP_PNG_NONE && filter != GP_PNG_UP;
}

void gp_png_unfilter(unsigned char *to, size_t apart, const unsigned char *lines, size_t count, size_t n, int bpp,
                     const unsigned char *zeros)
{
    const unsigned char *above = zeros;
    for (size_t y = 0; y < count; y++) {
        unsigned char *row = to + y * apart;
        const unsigned char *line = lines + y * (n + 1);
        if ((bpp == 3 || bpp == 4) && y + 1 < count && needs_left(line[0]) && needs_left(line[n + 1])) {
            undo_rows(row, apart, line, above, n, bpp);
            row += apart, y++;
        } else {
            undo_row(line[0], row, line + 1, above, n, bpp);
        }
        above = row;
    }
}

/* ---- filtering ------------------------------------------------------- */

/* As paeth(), in 16 bits, of which a vector has more. */
INLINE int16_t paeth16(int16_t a, int16_t b, int16_t c)
{
    int16_t pa = (int16_t)(b - c), pb = (int16_t)(a - c), pc = (int16_t)(pa + pb);
    pa = (int16_t)(pa < 0 ? -pa : pa), pb = (int16_t)(pb < 0 ? -pb : pb), pc = (int16_t)(pc < 0 ? -pc : pc);
    int16_t other = pb <= pc ? b : c, least = pb <= pc ? pb : pc;
    return pa <= least ? a : other;
}

INLINE unsigned char filtered(int filter, int x, int a, int b, int c)
{
    switch (filter) {
    case GP_PNG_NONE: return (unsigned char)x;
    case GP_PNG_SUB: return (unsigned char)(x - a);
    case GP_PNG_UP: return (unsigned char)(x - b);
    case GP_PNG_AVERAGE: return (unsigned char)(x - ((a + b) >> 1));
    default: return (unsigned char)(x - paeth16((int16_t)a, (int16_t)b, (int16_t)c));
    }
}

INLINE void apply(int filter, unsigned char *restrict to, const unsigned char *restrict row,
                  const unsigned char *restrict above, size_t n, size_t bpp)
{
    for (size_t i = 0; i < bpp; i++)
        to[i] = filtered(filter, row[i], 0, above[i], 0);
    for (size_t i = bpp; i < n; i++)
        to[i] = filtered(filter, row[i], row[i - bpp], above[i], above[i - bpp]);
}

static void filter_row(int filter, unsigned char *to, const unsigned char *row, const unsigned char *above, size_t n,
                       size_t bpp)
{
    switch (filter) {
    case GP_PNG_NONE: memcpy(to, row, n); break;
    case GP_PNG_SUB: apply(GP_PNG_SUB, to, row, above, n, bpp); break;
    case GP_PNG_UP: apply(GP_PNG_UP, to, row, above, n, bpp); break;
    case GP_PNG_AVERAGE: apply(GP_PNG_AVERAGE, to, row, above, n, bpp); break;
    default: apply(GP_PNG_PAETH, to, row, above, n, bpp); break;
    }
}

/* The sum of the differences, which are from -128 to 127. */
static uint64_t differences(const unsigned char *p, size_t n)
{
    uint64_t all = 0;
    for (size_t from = 0; from < n; from += 4096) {
        size_t to = n - from < 4096 ? n : from + 4096;
        unsigned sum = 0;
        for (size_t i = from; i < to; i++) {
            unsigned char minus = (unsigned char)-p[i];
            sum += p[i] < minus ? p[i] : minus;
        }
        all += sum;
    }
    return all;
}

/* Average and Paeth make differences that are smaller, but repeat less: they have to be an eighth better. */
void gp_png_filter(unsigned char *line, const unsigned char *row, const unsigned char *above, size_t n, int bpp,
                   unsigned char *work)
{
    uint64_t least = UINT64_MAX;
    unsigned char *best = line + 1, *next = work;
    for (int filter = 0; filter < GP_PNG_FILTERS; filter++) {
        filter_row(filter, next, row, above, n, (size_t)bpp);
        uint64_t sum = differences(next, n);
        if (filter >= GP_PNG_AVERAGE)
            sum += sum / 8;
        if (sum < least) {
            unsigned char *free_now = best;
            best = next, next = free_now;
            least = sum, line[0] = (unsigned char)filter;
        }
    }
    if (best == work)
        memcpy(line + 1, work, n);
}
