/* cublaslt_library.h - the part of cuBLASLt that products need, which is opened when a stage asks for it.
 *
 * Its header comes with CUDA's packages for developers and is not needed here: what it declares is said again in our
 * words and, where that header is, compared with it by tests/test_matmul.c. */
#ifndef GP_CUBLASLT_LIBRARY_H
#define GP_CUBLASLT_LIBRARY_H

#include <stddef.h>
#include <stdint.h>
#include "gpipe/err.h"

/* Types of elements; in which it computes. */
enum { GP_CUBLAS_F16 = 2, GP_CUBLAS_F32 = 0, GP_CUBLAS_F64 = 1 };
enum { GP_CUBLAS_IN_F32 = 68, GP_CUBLAS_IN_TF32 = 77, GP_CUBLAS_IN_F64 = 70 };

/* What can be set of an operation, of a layout, of a preference: the alignments of A, B, C and D follow each other. */
enum { GP_CUBLASLT_TURN_A = 3, GP_CUBLASLT_TURN_B = 4, GP_CUBLASLT_EPILOGUE = 7, GP_CUBLASLT_BIAS = 8 };
enum { GP_CUBLASLT_BATCH = 5, GP_CUBLASLT_STEP = 6 };
enum { GP_CUBLASLT_ROOM = 1, GP_CUBLASLT_SUMS = 3, GP_CUBLASLT_ALIGNED = 5 };

/* An epilogue; partial sums are kept as they were computed, and are added in a separate step. */
enum { GP_CUBLASLT_ADDS_BIAS = 4 };
enum { GP_CUBLASLT_SUMS_IN_ORDER = 2 };

/* The library's, which it fills in; none needs to be destroyed. */
typedef struct gp_cublaslt_operation { uint64_t data[32]; } gp_cublaslt_operation;
typedef struct gp_cublaslt_layout { uint64_t data[8]; } gp_cublaslt_layout;
typedef struct gp_cublaslt_preference { uint64_t data[8]; } gp_cublaslt_preference;
typedef struct gp_cublaslt_algorithm { uint64_t data[8]; } gp_cublaslt_algorithm;
typedef struct gp_cublaslt_found {
    gp_cublaslt_algorithm algorithm;
    size_t room;               /* bytes that it needs to work in */
    int status;
    float waves;
    int reserved[4];
} gp_cublaslt_found;

/* Functions return 0, or what status_name() names. Matrices are column-major. A handle is for all threads. */
typedef struct gp_cublaslt {
    size_t (*version)(void);
    const char *(*status_name)(int status);
    int (*create)(void **handle);
    int (*destroy)(void *handle);
    int (*operation)(gp_cublaslt_operation *o, size_t size, int computes, int scale);
    int (*set_operation)(gp_cublaslt_operation *o, int what, const void *value, size_t size);
    int (*layout)(gp_cublaslt_layout *l, size_t size, int type, uint64_t rows, uint64_t columns, int64_t to_next);
    int (*set_layout)(gp_cublaslt_layout *l, int what, const void *value, size_t size);
    int (*preference)(gp_cublaslt_preference *p, size_t size);
    int (*set_preference)(gp_cublaslt_preference *p, int what, const void *value, size_t size);
    int (*find)(void *handle, gp_cublaslt_operation *o, gp_cublaslt_layout *a, gp_cublaslt_layout *b,
                gp_cublaslt_layout *c, gp_cublaslt_layout *d, gp_cublaslt_preference *p, int want,
                gp_cublaslt_found *found, int *n);
    int (*multiply)(void *handle, gp_cublaslt_operation *o, const void *alpha, const void *a, gp_cublaslt_layout *la,
                    const void *b, gp_cublaslt_layout *lb, const void *beta, const void *c, gp_cublaslt_layout *lc,
                    void *d, gp_cublaslt_layout *ld, const gp_cublaslt_algorithm *algorithm, void *work, size_t room,
                    void *stream);
} gp_cublaslt;

/* False after one error at `at`, which names the package; `what` begins it. */
bool gp_cublaslt_open(gp_cublaslt *l, const char *what, gp_loc at, gp_errs *errs);

#endif
