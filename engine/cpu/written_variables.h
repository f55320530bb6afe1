/* written_variables.h - what a compiled kernel keeps from one launch to the next. */
#ifndef GP_WRITTEN_VARIABLES_H
#define GP_WRITTEN_VARIABLES_H

#include "gpipe/stage.h"

/* False, with an error, if launches of the source overlap (gp_source.overlaps) and its library has a variable that they
 * could change. */
bool gp_source_writes_no_variable(const gp_source *src, const void *data, size_t bytes, gp_errs *errs);

#endif
