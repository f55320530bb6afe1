/* ptx.h - what a kernel's PTX tells of it beyond its image. */
#ifndef GP_PTX_H
#define GP_PTX_H

#include "device/source.h"

/* False, with an error, if the kernel may change a variable of its own. `ptx` is changed, and then as it was. */
bool gp_ptx_keeps_nothing(const gp_source *src, char *ptx, gp_errs *errs);

/* Does a thread of it wait for all blocks of the grid? Cooperative groups find them by these registers. */
bool gp_ptx_waits(const char *ptx);

#endif
