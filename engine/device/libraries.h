/* libraries.h - libraries that the maker of a GPU has for it: stages open them when they need them, and call them
 * through gp_gpu. The folder of the GPUs' back end fills it in (engine/cuda/libraries.c), and alone knows their names.
 * A build without that back end has this file of it, too: in tests other libraries stand in for them, which work in the
 * memory of the CPU back end.
 *
 * No header of theirs is needed: what they declare is said again here and, where those headers are, compared with them
 * by the tests of the stages. Functions return 0, or a status. Numbers are those of CUDA's libraries. */
#pragma once

#include "base/product.h"

typedef enum gp_gpu_library { GP_GPU_FFT, GP_GPU_PRODUCTS, GP_GPU_JPEG, GP_GPU_RANKS } gp_gpu_library;
enum { GP_GPU_TEXT = 24 };

/* Opens a library, until the process ends; then its part of gp_gpu is set. `name`, which may be NULL, becomes
 * "cuFFT 12.0". False after one error at `at`, which begins with `what` and names the package. Any thread may call it,
 * any number of times. */
bool gp_gpu_open(gp_gpu_library which, char name[GP_GPU_TEXT], const char *what, gp_loc at, gp_errs *errs);
/* The library's name, "cuFFT", whether it is open or not. */
const char *gp_gpu_name(gp_gpu_library which);
/* Adds the error "stage 'STAGE': cuFFT DOES (INVALID_PLAN)HINT", and returns false. */
bool gp_gpu_fail(gp_gpu_library which, int status, gp_errs *errs, gp_code code, gp_loc at, const char *stage,
                 const char *does, const char *hint);
/* A status's name, "INVALID_PLAN"; "status 99", in `buf`, where it is not known. */
const char *gp_gpu_status(gp_gpu_library which, int status, char buf[GP_GPU_TEXT]);

/* Fourier transforms: their types, and their directions. */
enum { GP_GPU_C2C = 0x29, GP_GPU_R2C = 0x2a, GP_GPU_C2R = 0x2c };
enum { GP_GPU_FORWARD = -1, GP_GPU_INVERSE = 1 };

/* A product, and the algorithm for it. `p` is zeroed where nothing has been chosen. */
typedef struct gp_gpu_choice {
    gp_product p;
    bool tf32, bias;           /* adds a bias to each row */
    size_t room;               /* bytes that it may work in */
    uint64_t algorithm[8];     /* the library's */
} gp_gpu_choice;

/* JPEG files are decoded by a CPU, which does the codes, and the GPU; by the GPU alone; or by its JPEG decoder. They
 * become gray, or red, green and blue side by side. The statuses say something of the file, or that the GPU has no
 * decoder. */
enum { GP_GPU_HYBRID = 1, GP_GPU_ALL = 2, GP_GPU_HARDWARE = 3 };
enum { GP_GPU_Y = 2, GP_GPU_RGBI = 5 };
enum { GP_GPU_BAD_JPEG = 3, GP_GPU_JPEG_UNKNOWN = 4, GP_GPU_JPEG_NOT_DONE = 9, GP_GPU_JPEG_CUT = 10 };
enum { GP_GPU_NO_DECODER = 7 };

typedef struct gp_gpu_image {
    unsigned char *channel[4];
    size_t pitch[4];           /* bytes from one row to the next */
} gp_gpu_image;

/* What ranks do together: their common name, how numbers are reduced, and a status. */
typedef struct gp_gpu_id { char bytes[128]; } gp_gpu_id;
enum { GP_GPU_SUM = 0, GP_GPU_MAX = 2, GP_GPU_MIN = 3, GP_GPU_MEAN = 4 };
enum { GP_GPU_U8 = 1, GP_GPU_IN_PROGRESS = 7 };
/* The type of numbers that ranks can reduce; -1: these they cannot. */
int gp_gpu_type(gp_dtype t);
/* Does the library of ranks work on memory of the host, too, as the one that stands in for it in tests does? */
bool gp_gpu_pretends(void);

typedef struct gp_gpu_libraries {
    struct {                                       /* a plan is for one thread at a time */
        int (*create)(int *plan);
        int (*destroy)(int plan);
        int (*own_areas)(int plan, int yes);       /* does it allocate work areas itself? */
        int (*make)(int plan, int rank, long long *n, long long *in, long long in_step, long long in_next,
                    long long *out, long long out_step, long long out_next, int type, long long batch, size_t *work);
        int (*set_stream)(int plan, void *stream);
        int (*set_area)(int plan, void *area);
        int (*complex)(int plan, void *from, void *to, int direction);
        int (*forward)(int plan, void *from, void *to);        /* of real numbers */
        int (*inverse)(int plan, void *from, void *to);        /* to real numbers */
    } fft;
    struct {                                       /* a handle is for all threads */
        int (*create)(void **handle);
        int (*destroy)(void *handle);
        /* Finds the algorithm for c->p, which depends on *c, the device and the library alone. */
        int (*choose)(void *handle, gp_gpu_choice *c);
        /* Queues it for that many frames, each of which has the bits that it would have alone. `bias` is that of c->bias;
         * all begin at multiples of 256 bytes. `work`: c->room bytes for each frame, in a row. */
        int (*multiply)(void *handle, const gp_gpu_choice *c, const gp_product_frames *frames, const void *a, const void *b,
                        const void *bias, void *made, void *work, void *stream);
    } products;
    struct {                                       /* a handle is for all threads, all else for one at a time */
        int (*create)(int who, void *device_allocator, void *host_allocator, unsigned flags, void **handle);
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
        int (*batch)(void *handle, void *state, const unsigned char *const *file, const size_t *n, gp_gpu_image *to,
                     void *stream);
        int (*decode)(void *handle, void *state, const unsigned char *file, size_t n, int format, gp_gpu_image *to,
                      void *stream);
    } jpeg;
    struct {
        int (*unique_id)(gp_gpu_id *id);
        int (*init)(void **comm, int ranks, gp_gpu_id id, int rank);
        int (*destroy)(void *comm);
        int (*abort)(void *comm);
        int (*async_error)(void *comm, int *status);
        int (*all_reduce)(const void *from, void *to, size_t n, int type, int op, void *comm, void *stream);
        int (*all_gather)(const void *from, void *to, size_t n, int type, void *comm, void *stream);
        int (*broadcast)(const void *from, void *to, size_t n, int type, int root, void *comm, void *stream);
        int (*group_start)(void);
        int (*group_end)(void);
        int (*send)(const void *from, size_t n, int type, int peer, void *comm, void *stream);
        int (*recv)(void *to, size_t n, int type, int peer, void *comm, void *stream);
    } ranks;
} gp_gpu_libraries;
extern gp_gpu_libraries gp_gpu;
