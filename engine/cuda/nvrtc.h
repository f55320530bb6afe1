/* nvrtc.h - CUDA C++ to a cubin for one GPU, through NVRTC (nvrtc.c). */
#pragma once

#include <stdatomic.h>
#include "device/deps.h"
#include "gpipe/stage.h"

/* Compiles a user's kernel for compute capability `cc` (90 is 9.0), or finds it in the
 * disk cache. The image is in malloc'd memory. False after errors that name the user's
 * file and line, or the stage when there is no NVRTC; or with none, once `*cancel` (or NULL)
 * is not 0. `*early`, if not NULL: gp_source_is_early(). */
bool gp_nvrtc_compile(const gp_source *src, int cc, const atomic_int *cancel, void **image,
                      size_t *bytes, bool *early, gp_errs *errs);

/* Can it be opened? */
bool gp_nvrtc_is_there(void);

/* Comes before the kernels of a text for gp_nvrtc_compile_text: all that built-in kernels
 * include, which then stays out of their namespaces. */
extern const char gp_resident_head[];

/* The same for `text`, which may include the headers of kernels/ and what `source`
 * includes, and holds kernels that each compiled by itself. */
bool gp_nvrtc_compile_text(const char *text, const gp_source *const *source, int nsource, int cc,
                           const atomic_int *cancel, void **image, size_t *bytes, gp_errs *errs);

/* includes.c: adds to `r`, whose folders are set, what `text` includes, and what that includes.
 * The headers of `toolkit`, a folder, are NVIDIA's: what they include is not looked for, as it
 * changes with NVRTC, whose version is in every key. */
void gp_nvrtc_includes(gp_deps *r, const char *text, const char *toolkit);
/* Is it a header that is given to NVRTC from memory? */
bool gp_nvrtc_has_header(const char *name);

/* ptx.c: false, with an error, if the kernel may change a variable of its own though launches overlap
 * (gp_source.overlaps), or waits for all blocks of the grid though it is not cooperative: cooperative groups read
 * %envreg1 and %envreg2, where the grid's barrier is. */
bool gp_ptx_check(const gp_source *src, const char *ptx, gp_errs *errs);

/* resident_text.c: one of the kernels that a resident kernel computes. */
typedef struct gp_member {
    const char *name;          /* of a built-in kernel, else NULL: */
    const char *file;          /* ... "kernels/NAME.fatbin" */
    const gp_source *source;   /* of a user's kernel */
} gp_member;

/* The text for gp_nvrtc_compile_text(): kernel i of n is case i of gp_dispatch() of kernels/resident.h. malloc'd; NULL
 * after an error. */
char *gp_resident_text(const gp_member *k, int n, gp_errs *errs);
