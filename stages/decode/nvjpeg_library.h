/* nvjpeg_library.h - the part of nvJPEG that decoding needs, which is opened when a stage asks for it.
 *
 * Its header comes with CUDA's packages for developers and is not needed here: what it declares is said again in our words
 * and, where that header is, compared with it by tests/test_nvjpeg.c. The ABI has been the same since CUDA 11.1. */
#ifndef GP_NVJPEG_LIBRARY_H
#define GP_NVJPEG_LIBRARY_H

#include <stddef.h>
#include "gpipe/err.h"

/* Who decodes: a CPU the codes and the GPU the rest, the GPU all, the GPU's JPEG decoder. */
enum { GP_NVJPEG_HYBRID = 1, GP_NVJPEG_GPU = 2, GP_NVJPEG_HARDWARE = 3 };

/* What comes out: gray; red, green and blue side by side. */
enum { GP_NVJPEG_Y = 2, GP_NVJPEG_RGBI = 5 };

typedef struct gp_nvjpeg_image {
    unsigned char *channel[4];
    size_t pitch[4];           /* bytes from one row to the next */
} gp_nvjpeg_image;

/* Functions return 0, or what gp_nvjpeg_text() names. A handle is for all threads, all else for one at a time. */
typedef struct gp_nvjpeg {
    int major, minor;          /* its version */
    int (*property)(int which, int *value);
    int (*create)(int backend, void *device_allocator, void *host_allocator, unsigned flags, void **handle);
    int (*destroy)(void *handle);
    int (*state_create)(void *handle, void **state);
    int (*state_destroy)(void *state);
    int (*parser_create)(void *handle, void **parser);
    int (*parser_destroy)(void *parser);
    int (*parse)(void *handle, const unsigned char *file, size_t n, void *parser);
    int (*size)(void *parser, unsigned *width, unsigned *height);
    int (*colors)(void *parser, unsigned *n);
    int (*batch_refuses)(void *handle, void *parser, int *refuses);
    int (*batch_begin)(void *handle, void *state, int n, int threads, int format);
    int (*batch)(void *handle, void *state, const unsigned char *const *file, const size_t *n, gp_nvjpeg_image *to,
                 void *stream);
    int (*decode)(void *handle, void *state, const unsigned char *file, size_t n, int format, gp_nvjpeg_image *to,
                  void *stream);
} gp_nvjpeg;

/* False after one error at `at`, which names the package; `what` begins it. */
bool gp_nvjpeg_open(gp_nvjpeg *l, const char *what, gp_loc at, gp_errs *errs);
/* "BAD_JPEG"; of a status that is not known "status 99", in `buf`. */
const char *gp_nvjpeg_text(int status, char buf[24]);

#endif
