/* passes.h - the passes of complex.c, for V numbers at a time: it is included for a float, and for a vector of four.
 * WITH_V(name) is the name of a function of these.
 *
 * y[j] is w[j] times the sum of x[k] exp(-2 pi i j k / r), of numbers that are s m apart in x, and s in y; w[0] is 1.
 * */

#define AT(p, i) (*(V *)((p) + (i)))
#define EACH_Q for (size_t q = 0; q < s; q += sizeof(V) / sizeof(float))

INLINE void WITH_V(put)(gp_fft_parts y, size_t at, V re, V im, float wr, float wi)
{
    AT(y.re, at) = re * wr - im * wi;
    AT(y.im, at) = re * wi + im * wr;
}

INLINE void WITH_V(two)(size_t m, size_t s, gp_fft_parts x, gp_fft_parts y, const float *w)
{
    for (size_t p = 0; p < m; p++, w += 2)
        EACH_Q {
            size_t a = s * p + q, b = a + s * m, to = 2 * s * p + q;
            V ar = AT(x.re, a), ai = AT(x.im, a), br = AT(x.re, b), bi = AT(x.im, b);
            AT(y.re, to) = ar + br, AT(y.im, to) = ai + bi;
            WITH_V(put)(y, to + s, ar - br, ai - bi, w[0], w[1]);
        }
}

INLINE void WITH_V(four)(size_t m, size_t s, gp_fft_parts x, gp_fft_parts y, const float *w)
{
    for (size_t p = 0; p < m; p++, w += 6)
        EACH_Q {
            size_t a = s * p + q, b = a + s * m, c = b + s * m, d = c + s * m, to = 4 * s * p + q;
            V sr = AT(x.re, a) + AT(x.re, c), si = AT(x.im, a) + AT(x.im, c);
            V tr = AT(x.re, b) + AT(x.re, d), ti = AT(x.im, b) + AT(x.im, d);
            V ur = AT(x.re, a) - AT(x.re, c), ui = AT(x.im, a) - AT(x.im, c);
            V vr = AT(x.re, b) - AT(x.re, d), vi = AT(x.im, b) - AT(x.im, d);
            AT(y.re, to) = sr + tr, AT(y.im, to) = si + ti;
            WITH_V(put)(y, to + s, ur + vi, ui - vr, w[0], w[1]);
            WITH_V(put)(y, to + 2 * s, sr - tr, si - ti, w[2], w[3]);
            WITH_V(put)(y, to + 3 * s, ur - vi, ui + vr, w[4], w[5]);
        }
}

/* An odd prime: element k and r - k have one cosine, and sines of two signs. */
INLINE void WITH_V(odd)(int r, size_t m, size_t s, gp_fft_parts x, gp_fft_parts y, const float *w, const float *cosine,
                        const float *sine)
{
    enum { MOST = 6 };
    int half = (r - 1) / 2;
    for (size_t p = 0; p < m; p++, w += 2 * (r - 1))
        EACH_Q {
            size_t a = s * p + q, to = (size_t)r * s * p + q;
            V sr[MOST], si[MOST], dr[MOST], di[MOST], ar = AT(x.re, a), ai = AT(x.im, a), re = ar, im = ai;
            for (int k = 0; k < half; k++) {
                size_t b = a + (size_t)(k + 1) * s * m, c = a + (size_t)(r - k - 1) * s * m;
                sr[k] = AT(x.re, b) + AT(x.re, c), si[k] = AT(x.im, b) + AT(x.im, c);
                dr[k] = AT(x.re, b) - AT(x.re, c), di[k] = AT(x.im, b) - AT(x.im, c);
                re += sr[k], im += si[k];
            }
            AT(y.re, to) = re, AT(y.im, to) = im;
            for (int j = 1; j <= half; j++) {
                const float *u = w + 2 * (j - 1), *v = w + 2 * (r - j - 1);
                V cr = ar, ci = ai, tr = { 0 }, ti = { 0 };
                for (int k = 0; k < half; k++) {
                    int at = j * (k + 1) % r;
                    cr += cosine[at] * sr[k], ci += cosine[at] * si[k];
                    tr += sine[at] * di[k], ti += sine[at] * dr[k];
                }
                WITH_V(put)(y, to + (size_t)j * s, cr + tr, ci - ti, u[0], u[1]);
                WITH_V(put)(y, to + (size_t)(r - j) * s, cr - tr, ci + ti, v[0], v[1]);
            }
        }
}

static void WITH_V(pass)(int r, size_t m, size_t s, gp_fft_parts x, gp_fft_parts y, const float *w, const float *cosine,
                         const float *sine)
{
    switch (r) {
    case 2: WITH_V(two)(m, s, x, y, w); break;
    case 4: WITH_V(four)(m, s, x, y, w); break;
    case 3: WITH_V(odd)(3, m, s, x, y, w, cosine, sine); break;
    case 5: WITH_V(odd)(5, m, s, x, y, w, cosine, sine); break;
    case 7: WITH_V(odd)(7, m, s, x, y, w, cosine, sine); break;
    case 11: WITH_V(odd)(11, m, s, x, y, w, cosine, sine); break;
    default: WITH_V(odd)(13, m, s, x, y, w, cosine, sine); break;
    }
}

#undef EACH_Q
#undef AT
