/* cblas_library.h - products on a CPU: by a CBLAS that the system has, which is opened when a stage asks for it, or by
 * loops of our own (loops.c). Each call computes on the thread that makes it, alone. */
#pragma once

#include "base/product.h"

typedef struct gp_cblas {
    char name[60];             /* "OpenBLAS 0.3.21"; "own loops, no OpenBLAS" */
    void (*blis_threads)(int64_t n);       /* of BLIS, for products of this thread; */
    void (*openblas_threads)(int n);       /* of OpenBLAS, for all of the process */
    /* NULL: own loops */
    void (*f32)(int order, int turn_a, int turn_b, int m, int n, int k, float alpha, const float *a, int lda,
                const float *b, int ldb, float beta, float *c, int ldc);
    void (*f64)(int order, int turn_a, int turn_b, int m, int n, int k, double alpha, const double *a, int lda,
                const double *b, int ldb, double beta, double *c, int ldc);
} gp_cblas;

/* The first of the libraries that is there; the same in all of a process. Sets nothing in it. */
void gp_cblas_open(gp_cblas *l);
/* Before the first product: from now on OpenBLAS computes each on one thread, for all of the process. */
void gp_cblas_single_thread(const gp_cblas *l);

/* made = a b, of f32 or f64, of each frame. */
void gp_cblas_multiply(const gp_cblas *l, const gp_product *p, const gp_product_frames *frames, const void *a,
                       const void *b, void *made);

/* For one matrix: of a and b, whose element (i, j) is [i * row + j * column]. Sums are in the order of k. */
typedef struct gp_loops_factor { const void *at; int64_t row, column; } gp_loops_factor;
void gp_loops_f32(int64_t m, int64_t n, int64_t k, gp_loops_factor a, gp_loops_factor b, float *c);
void gp_loops_f64(int64_t m, int64_t n, int64_t k, gp_loops_factor a, gp_loops_factor b, double *c);
