/* dtypes.h - element types by the names that NumPy, C and CUDA give them. */
#pragma once

#include "gpipe/stage.h"

/* What to say after "'NAME' is no type": "; did you mean 'f32'?" for the name of a type that
 * gpipe calls otherwise, ": ..." for one that it does not have, "" else. In `text`. */
enum { GP_DTYPE_HINT = 120 };
const char *gp_dtype_hint(const char *name, char text[GP_DTYPE_HINT]);
