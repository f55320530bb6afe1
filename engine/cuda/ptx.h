/* ptx.h - refuses kernels that change a variable which overlapping launches share, as their PTX shows. */
#ifndef GP_PTX_H
#define GP_PTX_H

#include "device/source.h"

/* False, with an error, if the kernel may change a variable of its own though launches overlap (gp_source.overlaps), or
 * waits for all blocks of the grid though it is not cooperative: cooperative groups read %envreg1 and %envreg2, where
 * the grid's barrier is. */
bool gp_ptx_check(const gp_source *src, const char *ptx, gp_errs *errs);

#endif
