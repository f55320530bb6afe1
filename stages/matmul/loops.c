/* loops.c - a product of matrices without any library, see cblas_library.h: a panel of b is copied, so that it lies in
 * a row and in the cache, and a few rows of a are multiplied by it at a time. */
#include "cblas_library.h"

enum { ROWS = 4, WIDE = 16, DEEP = 256 };

#define MULTIPLY(name, T)                                                                                   \
    static void copy_##name(T to[DEEP][WIDE], gp_loops_factor b, int64_t p, int64_t deep, int64_t j, int64_t wide) \
    {                                                                                                       \
        for (int64_t q = 0; q < deep; q++)                                                                  \
            for (int64_t i = 0; i < WIDE; i++)                                                              \
                to[q][i] = i < wide ? ((const T *)b.at)[(p + q) * b.row + (j + i) * b.column] : 0;          \
    }                                                                                                       \
    static void rows_##name(int64_t rows, int64_t deep, int64_t wide, const T *a, int64_t row, int64_t column, \
                            const T panel[DEEP][WIDE], bool first, T *c, int64_t n)                         \
    {                                                                                                       \
        T sum[ROWS][WIDE] = { { 0 } };                                                                      \
        for (int64_t r = 0; !first && r < rows; r++)                                                        \
            for (int64_t i = 0; i < wide; i++)                                                              \
                sum[r][i] = c[r * n + i];                                                                   \
        for (int64_t q = 0; q < deep; q++)                                                                  \
            for (int r = 0; r < ROWS; r++) {                                                                \
                T x = a[(r < rows ? r : 0) * row + q * column];                                             \
                for (int i = 0; i < WIDE; i++)                                                              \
                    sum[r][i] += x * panel[q][i];                                                           \
            }                                                                                               \
        for (int64_t r = 0; r < rows; r++)                                                                  \
            for (int64_t i = 0; i < wide; i++)                                                              \
                c[r * n + i] = sum[r][i];                                                                   \
    }                                                                                                       \
    void gp_loops_##name(int64_t m, int64_t n, int64_t k, gp_loops_factor a, gp_loops_factor b, T *c)       \
    {                                                                                                       \
        T panel[DEEP][WIDE];                                                                                \
        for (int64_t j = 0; j < n; j += WIDE)                                                               \
            for (int64_t p = 0; p < k; p += DEEP) {                                                         \
                int64_t wide = n - j < WIDE ? n - j : WIDE, deep = k - p < DEEP ? k - p : DEEP;             \
                copy_##name(panel, b, p, deep, j, wide);                                                    \
                for (int64_t i = 0; i < m; i += ROWS)                                                       \
                    rows_##name(m - i < ROWS ? m - i : ROWS, deep, wide,                                    \
                                (const T *)a.at + i * a.row + p * a.column, a.row, a.column,                \
                                (const T (*)[WIDE])panel, !p, c + i * n + j, n);                            \
            }                                                                                               \
    }

MULTIPLY(f32, float)
MULTIPLY(f64, double)
