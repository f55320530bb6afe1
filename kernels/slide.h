/* slide.h - a filter that slides along an axis. */
#ifndef GP_SLIDE_H
#define GP_SLIDE_H

/* y[j] = sum over k of w[k] x[j + k], in the order k = 0, 1, ..., n - 1, for R
 * neighboring j. next() gives x[0], x[1], ... x[n + R - 2]; so a value and a
 * weight that are loaded serve R sums. W: a pointer, or what has an index as one. */
template <int R, class W, class Next>
static __device__ __forceinline__ void slide(float (&y)[R], W w, size_t n, Next next)
{
    float x[2 * R - 1];
    size_t k = 0;

    for (int j = 0; j < R; j++)
        y[j] = 0;
    for (int j = 0; j < R - 1; j++)
        x[j] = next();
    for (; k + R <= n; k += R) {
        for (int j = 0; j < R; j++)
            x[R - 1 + j] = next();
        for (int i = 0; i < R; i++)
            for (int j = 0; j < R; j++)
                y[j] += (float)w[k + i] * x[j + i];
        for (int j = 0; j < R - 1; j++)
            x[j] = x[R + j];
    }
    for (; k < n; k++) {
        x[R - 1] = next();
        for (int j = 0; j < R; j++)
            y[j] += (float)w[k] * x[j];
        for (int j = 0; j < R - 1; j++)
            x[j] = x[j + 1];
    }
}

#endif
