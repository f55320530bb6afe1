/* lines.c - see fft_lines.h. Lines are taken in tiles of a few, which lie side by side while they are transformed. A
 * real line of even length n is one of n / 2 pairs, taken as complex numbers: what that becomes is put together from,
 * or taken apart into, the transforms of its even and odd elements. */
#include <math.h>
#include <stdlib.h>
#include "fft_lines.h"

/* Lines in a tile; of longer ones half as many. Floats between its parts: else their elements fall in the same places
 * of the cache, where a length is a power of 2. */
enum { MOST = 8, LONG = 1 << 14, BETWEEN = 48 };

int64_t gp_fft_length(gp_fft_form form, int64_t n)
{
    return form == GP_FFT_C2C || n % 2 ? n : n / 2;
}

bool gp_fft_axis_make(gp_fft_axis *a, gp_fft_form form, int64_t n, bool inverse)
{
    int64_t half = gp_fft_length(form, n);
    *a = (gp_fft_axis){ .form = form, .n = n, .inverse = inverse, .half = gp_fft_create(half) };
    if (half == n)
        return a->half;
    a->turn = malloc(2 * ((size_t)half + 1) * sizeof *a->turn);
    for (int64_t k = 0; a->turn && k <= half; k++) {
        double angle = -2 * M_PI * (double)k / (double)n;
        a->turn[2 * k] = (float)cos(angle), a->turn[2 * k + 1] = (float)sin(angle);
    }
    return a->half && a->turn;
}

void gp_fft_axis_end(gp_fft_axis *a)
{
    gp_fft_destroy(a->half);
    free(a->turn);
    *a = (gp_fft_axis){ .half = NULL };
}

static int lanes_of(int64_t room, int64_t lines)
{
    return lines < MOST / 2 ? 1 : room > LONG ? MOST / 2 : MOST;
}

size_t gp_fft_axis_work(gp_fft_form form, int64_t n, int64_t lines)
{
    int64_t room = gp_fft_way_of(gp_fft_length(form, n)).room;
    return 4 * ((size_t)room * (size_t)lanes_of(room, lines) + BETWEEN);
}

/* ---- tiles --------------------------------------------------------------------- */

/* Lanes of a tile and where each begins: floats from the start of the array. Those that have no line repeat the last.
 * */
typedef struct tile {
    int lanes;
    int64_t step;              /* numbers from one element of a line to the next */
    int64_t from[MOST], to[MOST];
} tile;

#define EACH_LANE(t) for (int l = 0; l < (t)->lanes; l++)

static void take_complex(const tile *t, int64_t n, const float *from, gp_fft_parts x)
{
    for (int64_t j = 0; j < n; j++)
        EACH_LANE(t) {
            const float *v = from + t->from[l] + 2 * j * t->step;
            x.re[j * t->lanes + l] = v[0], x.im[j * t->lanes + l] = v[1];
        }
}

static void put_complex(const tile *t, int64_t n, gp_fft_parts x, float scale, float *to)
{
    for (int64_t j = 0; j < n; j++)
        EACH_LANE(t) {
            float *v = to + t->to[l] + 2 * j * t->step;
            v[0] = x.re[j * t->lanes + l] * scale, v[1] = x.im[j * t->lanes + l] * scale;
        }
}

/* Pairs of real numbers; or, of an odd number, each alone. */
static void take_real(const tile *t, int64_t n, const float *from, gp_fft_parts x)
{
    bool pairs = n % 2 == 0;
    for (int64_t j = 0; j < (pairs ? n / 2 : n); j++)
        EACH_LANE(t) {
            const float *v = from + t->from[l] + (pairs ? 2 * j : j) * t->step;
            x.re[j * t->lanes + l] = v[0], x.im[j * t->lanes + l] = pairs ? v[t->step] : 0;
        }
}

static void put_real(const tile *t, int64_t n, gp_fft_parts x, float scale, float *to)
{
    bool pairs = n % 2 == 0;
    for (int64_t j = 0; j < (pairs ? n / 2 : n); j++)
        EACH_LANE(t) {
            float *v = to + t->to[l] + (pairs ? 2 * j : j) * t->step;
            v[0] = x.re[j * t->lanes + l] * scale;
            if (pairs)
                v[t->step] = x.im[j * t->lanes + l] * scale;
        }
}

/* The first half of a spectrum of pairs z: the even elements' is (z[k] + z[h - k]*) / 2, the odd ones' -i times half
 * the difference. */
static void put_spectrum(const tile *t, int64_t h, gp_fft_parts z, const float *turn, float scale, float *to)
{
    for (int64_t k = 0; k <= h; k++) {
        const float *zr = z.re + k % h * t->lanes, *zi = z.im + k % h * t->lanes;
        const float *mr = z.re + (h - k) % h * t->lanes, *mi = z.im + (h - k) % h * t->lanes;
        float wr = turn[2 * k], wi = turn[2 * k + 1];
        EACH_LANE(t) {
            float er = 0.5f * (zr[l] + mr[l]), ei = 0.5f * (zi[l] - mi[l]);
            float or = 0.5f * (zi[l] + mi[l]), oi = 0.5f * (mr[l] - zr[l]);
            float *v = to + t->to[l] + 2 * k * t->step;
            v[0] = (er + (or * wr - oi * wi)) * scale, v[1] = (ei + (or * wi + oi * wr)) * scale;
        }
    }
}

/* The other way round. The first number, and that at half the length, are real. */
static void take_spectrum(const tile *t, int64_t h, const float *from, const float *turn, gp_fft_parts z)
{
    for (int64_t k = 0; k < h; k++) {
        float wr = turn[2 * k], wi = turn[2 * k + 1];
        EACH_LANE(t) {
            const float *a = from + t->from[l] + 2 * k * t->step, *b = from + t->from[l] + 2 * (h - k) * t->step;
            float ai = k ? a[1] : 0, bi = k ? b[1] : 0;
            float er = a[0] + b[0], ei = ai - bi, dr = a[0] - b[0], di = ai + bi;
            float or = dr * wr + di * wi, oi = di * wr - dr * wi;
            z.re[k * t->lanes + l] = er - oi, z.im[k * t->lanes + l] = ei + or;
        }
    }
}

/* All of an odd number, of the half of it that there is. */
static void take_mirrored(const tile *t, int64_t n, const float *from, gp_fft_parts x)
{
    for (int64_t k = 0; k <= n / 2; k++)
        EACH_LANE(t) {
            const float *v = from + t->from[l] + 2 * k * t->step;
            float im = k ? v[1] : 0;
            x.re[k * t->lanes + l] = v[0], x.im[k * t->lanes + l] = im;
            if (k)
                x.re[(n - k) * t->lanes + l] = v[0], x.im[(n - k) * t->lanes + l] = -im;
        }
}

/* ---- an axis ------------------------------------------------------------------- */

static gp_fft_parts exchanged(bool yes, gp_fft_parts x)
{
    return yes ? (gp_fft_parts){ x.im, x.re } : x;
}

static void do_tile(const gp_fft_axis *a, const tile *t, const float *from, float *to, float scale, gp_fft_parts x,
                    gp_fft_parts y)
{
    bool pairs = a->turn;
    if (a->form == GP_FFT_R2C)
        take_real(t, a->n, from, x);
    else if (a->form == GP_FFT_C2C)
        take_complex(t, a->n, from, x);
    else if (pairs)
        take_spectrum(t, a->n / 2, from, a->turn, x);
    else
        take_mirrored(t, a->n, from, x);
    gp_fft_parts z = exchanged(a->inverse, gp_fft_do(a->half, t->lanes, exchanged(a->inverse, x), exchanged(a->inverse, y)));
    if (a->form == GP_FFT_C2R)
        put_real(t, a->n, z, scale, to);
    else if (pairs)
        put_spectrum(t, a->n / 2, z, a->turn, scale, to);
    else
        put_complex(t, a->form == GP_FFT_C2C ? a->n : a->n / 2 + 1, z, scale, to);
}

void gp_fft_axis_do(const gp_fft_axis *a, int64_t outer, int64_t inner, const float *from, float *to, float scale,
                    float *work)
{
    int64_t room = gp_fft_way_of(gp_fft_length(a->form, a->n)).room, lines = outer * inner;
    int64_t side = a->n / 2 + 1;
    int64_t in = a->form == GP_FFT_C2C ? 2 * a->n : a->form == GP_FFT_R2C ? a->n : 2 * side;      /* floats of a line */
    int64_t out = a->form == GP_FFT_C2C ? 2 * a->n : a->form == GP_FFT_R2C ? 2 * side : a->n;
    int64_t in_each = a->form == GP_FFT_R2C ? 1 : 2, out_each = a->form == GP_FFT_C2R ? 1 : 2;
    tile t = { .lanes = lanes_of(room, lines), .step = inner };
    size_t part = (size_t)room * (size_t)t.lanes + BETWEEN;
    gp_fft_parts x = { work, work + part }, y = { work + 2 * part, work + 3 * part };
    for (int64_t line = 0; line < lines; line += t.lanes) {
        EACH_LANE(&t) {
            int64_t k = line + l < lines ? line + l : lines - 1;
            t.from[l] = k / inner * inner * in + k % inner * in_each;
            t.to[l] = k / inner * inner * out + k % inner * out_each;
        }
        do_tile(a, &t, from, to, scale, x, y);
    }
}
