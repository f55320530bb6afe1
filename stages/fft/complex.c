/* complex.c - see fft_lines.h. Stockham's self-sorting transform: a pass takes one factor r off the length, from x to
 * y, whose elements lie `s` floats apart, lanes and what is done before included; so its innermost loop runs over s
 * floats in a row. A length with a prime factor above 13 is a convolution (Bluestein). */
#include <math.h>
#include <stdlib.h>
#include "fft_lines.h"

struct gp_fft {
    gp_fft_way way;
    float *turn;               /* of each pass, of each p: exp(-2 pi i p k / (r m)) for k = 1 ... r - 1 */
    /* For a convolution: */
    gp_fft *conv;
    float *chirp, *kernel;     /* exp(-pi i k^2 / n), n of them; the transform of its conjugate, scaled */
};

gp_fft_way gp_fft_way_of(int64_t n)
{
    static const int radix[] = { 4, 2, 3, 5, 7, 11, 13 };
    gp_fft_way w = { .n = (int)n, .room = (int)n };
    int left = (int)n;
    for (size_t i = 0; i < sizeof radix / sizeof *radix; i++)
        for (; left % radix[i] == 0; left /= radix[i])
            w.factor[w.factors++] = radix[i];
    if (left > 1) {
        w.factors = 0, w.conv = 1;
        while (w.conv < 2 * n - 1)
            w.conv *= 2;
        w.room = w.conv;
    }
    return w;
}

/* ---- passes ------------------------------------------------------------------ */

#define INLINE static inline __attribute__((always_inline))

#define V float
#define WITH_V(name) name##_1
#include "passes.h"
#undef V
#undef WITH_V

/* As many numbers of one part, which begin anywhere. */
typedef float four_floats __attribute__((vector_size(16), aligned(4), may_alias));
#define V four_floats
#define WITH_V(name) name##_4
#include "passes.h"
#undef V
#undef WITH_V

static void pass(int r, size_t m, size_t s, gp_fft_parts x, gp_fft_parts y, const float *w)
{
    float cosine[13], sine[13];
    for (int k = 0; k < r; k++)
        cosine[k] = (float)cos(2 * M_PI * k / r), sine[k] = (float)sin(2 * M_PI * k / r);
    (s % 4 ? pass_1 : pass_4)(r, m, s, x, y, w, cosine, sine);
}

/* ---- whole transforms ---------------------------------------------------------- */

static void times(const float *by, size_t n, size_t lanes, gp_fft_parts x, gp_fft_parts y)
{
    for (size_t k = 0; k < n; k++, by += 2)
        for (size_t l = k * lanes; l < (k + 1) * lanes; l++) {
            float re = x.re[l], im = x.im[l];
            y.re[l] = re * by[0] - im * by[1], y.im[l] = re * by[1] + im * by[0];
        }
}

static gp_fft_parts convolve(const gp_fft *f, int lanes, gp_fft_parts x, gp_fft_parts y)
{
    size_t n = (size_t)f->way.n, m = (size_t)f->way.conv, wide = (size_t)lanes;
    times(f->chirp, n, wide, x, x);
    for (size_t i = n * wide; i < m * wide; i++)
        x.re[i] = x.im[i] = 0;
    gp_fft_parts a = gp_fft_do(f->conv, lanes, x, y), b = a.re == x.re ? y : x;
    times(f->kernel, m, wide, a, a);
    gp_fft_parts back = gp_fft_do(f->conv, lanes, (gp_fft_parts){ a.im, a.re }, (gp_fft_parts){ b.im, b.re });
    a = (gp_fft_parts){ back.im, back.re };
    times(f->chirp, n, wide, a, a);
    return a;
}

gp_fft_parts gp_fft_do(const gp_fft *f, int lanes, gp_fft_parts x, gp_fft_parts y)
{
    if (f->conv)
        return convolve(f, lanes, x, y);
    const float *w = f->turn;
    size_t m = (size_t)f->way.n, s = (size_t)lanes;
    for (int i = 0; i < f->way.factors; i++) {
        int r = f->way.factor[i];
        m /= (size_t)r;
        pass(r, m, s, x, y, w);
        w += 2 * (size_t)(r - 1) * m, s *= (size_t)r;
        gp_fft_parts swap = x;
        x = y, y = swap;
    }
    return x;
}

/* ---- plans --------------------------------------------------------------------- */

/* exp(-2 pi i k / n) */
static void turn(float *to, int64_t k, int64_t n)
{
    double angle = -2 * M_PI * (double)(k % n) / (double)n;
    to[0] = (float)cos(angle), to[1] = (float)sin(angle);
}

static bool make_turns(gp_fft *f)
{
    size_t all = 0;
    int64_t m = f->way.n;
    for (int i = 0; i < f->way.factors; i++)
        m /= f->way.factor[i], all += 2 * (size_t)(f->way.factor[i] - 1) * (size_t)m;
    float *to = f->turn = malloc((all + 1) * sizeof *f->turn);
    m = f->way.n;
    for (int i = 0; to && i < f->way.factors; i++) {
        int64_t r = f->way.factor[i], n = m;
        m /= r;
        for (int64_t p = 0; p < m; p++)
            for (int64_t k = 1; k < r; k++, to += 2)
                turn(to, p * k, n);
    }
    return to;
}

static bool make_chirp(gp_fft *f)
{
    int64_t n = f->way.n, m = f->way.conv;
    float *work = calloc(4 * (size_t)m, sizeof *work);
    f->conv = gp_fft_create(m);
    f->chirp = malloc(2 * (size_t)n * sizeof *f->chirp), f->kernel = malloc(2 * (size_t)m * sizeof *f->kernel);
    if (work && f->conv && f->chirp && f->kernel) {
        gp_fft_parts x = { work, work + m }, y = { work + 2 * m, work + 3 * m };
        for (int64_t k = 0; k < n; k++) {
            turn(f->chirp + 2 * k, k * k % (2 * n), 2 * n);
            x.re[k] = x.re[(m - k) % m] = f->chirp[2 * k];
            x.im[k] = x.im[(m - k) % m] = -f->chirp[2 * k + 1];
        }
        gp_fft_parts all = gp_fft_do(f->conv, 1, x, y);
        for (int64_t k = 0; k < m; k++)
            f->kernel[2 * k] = all.re[k] / (float)m, f->kernel[2 * k + 1] = all.im[k] / (float)m;
    }
    free(work);
    return work && f->conv && f->chirp && f->kernel;
}

gp_fft *gp_fft_create(int64_t n)
{
    gp_fft *f = calloc(1, sizeof *f);
    if (!f)
        return NULL;
    f->way = gp_fft_way_of(n);
    if (f->way.conv ? make_chirp(f) : make_turns(f))
        return f;
    gp_fft_destroy(f);
    return NULL;
}

void gp_fft_destroy(gp_fft *f)
{
    if (!f)
        return;
    gp_fft_destroy(f->conv);
    free(f->turn), free(f->chirp), free(f->kernel), free(f);
}
