/* image.h - what a compiled kernel keeps from one launch to the next. */
#ifndef GP_IMAGE_H
#define GP_IMAGE_H

#include "gpipe/stage.h"

/* False, with an error, if launches of the source overlap (gp_source.overlaps) and its image, a
 * shared library or a cubin, has a variable that they could change. `cpu`: what is const would not be in memory that can be
 * written, unless it is computed when it is first met. */
bool gp_image_keeps_nothing(const gp_source *src, bool cpu, const void *data, size_t bytes, gp_errs *errs);

#endif
