/* fft_lines.h - Fourier transforms on the CPU: complex ones of many lines at once (complex.c), and those of an axis of
 * an array of complex or real numbers (lines.c).
 *
 * What a line becomes depends on its numbers and its length alone, to the bit, and not on the lines beside it. Sums are
 * in f32; tables are computed in f64. A plan is made once and then only read, by any number of threads. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- complex.c --------------------------------------------------------------- */

enum { GP_FFT_FACTORS = 32 };

/* Which lengths the algorithm goes through: n = factor[0] factor[1] ..., or, where n has a large prime factor, a
 * convolution of length `conv` (Bluestein's algorithm); 0: none. `room`: complex numbers that a line needs, twice. */
typedef struct gp_fft_way { int n, room, conv, factors, factor[GP_FFT_FACTORS]; } gp_fft_way;
gp_fft_way gp_fft_way_of(int64_t n);

typedef struct gp_fft gp_fft;
gp_fft *gp_fft_create(int64_t n);          /* NULL: no memory */
void gp_fft_destroy(gp_fft *f);            /* accepts NULL */

/* Real and imaginary parts; element j of line l is at [j * lanes + l]. */
typedef struct gp_fft_parts { float *re, *im; } gp_fft_parts;
/* Forward, not scaled; the inverse is that of exchanged parts. Both x and y are written; returns the one that has the
 * result. */
gp_fft_parts gp_fft_do(const gp_fft *f, int lanes, gp_fft_parts x, gp_fft_parts y);

/* ---- lines.c ----------------------------------------------------------------- */

typedef enum gp_fft_form { GP_FFT_C2C, GP_FFT_R2C, GP_FFT_C2R } gp_fft_form;

/* Transforms of length n along an axis, which has n numbers, or n / 2 + 1 of the complex side of a real transform. */
typedef struct gp_fft_axis {
    gp_fft_form form;
    int64_t n;
    bool inverse;
    gp_fft *half;              /* of length n, or n / 2 where real numbers are taken as pairs */
    float *turn;               /* of such: exp(-2 pi i k / n) */
} gp_fft_axis;

/* The length of the complex transform that it comes to. */
int64_t gp_fft_length(gp_fft_form form, int64_t n);
bool gp_fft_axis_make(gp_fft_axis *a, gp_fft_form form, int64_t n, bool inverse);      /* false: no memory */
void gp_fft_axis_end(gp_fft_axis *a);
/* Floats that gp_fft_axis_do() needs to work with, for so many lines. */
size_t gp_fft_axis_work(gp_fft_form form, int64_t n, int64_t lines);
/* The middle axis of (outer, n, inner); `to` may be `from` where the form is complex. */
void gp_fft_axis_do(const gp_fft_axis *a, int64_t outer, int64_t inner, const float *from, float *to, float scale,
                    float *work);
