/* resident_text.h - the CUDA C++ of a resident kernel (resident_text.c). */
#ifndef GP_RESIDENT_TEXT_H
#define GP_RESIDENT_TEXT_H

#include "gpipe/stage.h"

/* One of the kernels that a resident kernel computes. */
typedef struct gp_member {
    const char *name;          /* of a built-in kernel, else NULL: */
    const char *file;          /* ... "kernels/NAME.fatbin" */
    const gp_source *source;   /* of a user's kernel */
} gp_member;

/* The text for gp_nvrtc_compile_text(): kernel i of n is case i of gp_dispatch() of kernels/resident.h. malloc'd; NULL
 * after an error. */
char *gp_resident_text(const gp_member *k, int n, gp_errs *errs);

#endif
