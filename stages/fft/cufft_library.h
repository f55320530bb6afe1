/* cufft_library.h - the part of cuFFT that transforms need, which is opened when a stage asks for it.
 *
 * Its header comes with CUDA's packages for developers and is not needed here: what it declares is said again in our words
 * and, where that header is, compared with it by tests/test_fft.c. The ABI has been the same since CUDA 11. */
#ifndef GP_CUFFT_LIBRARY_H
#define GP_CUFFT_LIBRARY_H

#include <stddef.h>
#include "gpipe/err.h"

enum { GP_CUFFT_C2C = 0x29, GP_CUFFT_R2C = 0x2a, GP_CUFFT_C2R = 0x2c };
enum { GP_CUFFT_FORWARD = -1, GP_CUFFT_INVERSE = 1 };

/* Functions return 0, or what gp_cufft_text() names. A plan is for one thread at a time. */
typedef struct gp_cufft {
    int major, minor;          /* its version */
    int (*property)(int which, int *value);
    int (*create)(int *plan);
    int (*destroy)(int plan);
    int (*own_areas)(int plan, int yes);       /* does it allocate work areas itself? */
    int (*make)(int plan, int rank, long long *n, long long *in, long long in_step, long long in_next, long long *out,
                long long out_step, long long out_next, int type, long long batch, size_t *work);
    int (*set_stream)(int plan, void *stream);
    int (*set_area)(int plan, void *area);
    int (*complex)(int plan, void *from, void *to, int direction);
    int (*forward)(int plan, void *from, void *to);        /* of real numbers */
    int (*inverse)(int plan, void *from, void *to);        /* to real numbers */
} gp_cufft;

/* False after one error at `at`, which names the package; `what` begins it. */
bool gp_cufft_open(gp_cufft *l, const char *what, gp_loc at, gp_errs *errs);
/* "INVALID_PLAN"; of a status that is not known "status 99", in `buf`. */
const char *gp_cufft_text(int status, char buf[24]);

#endif
