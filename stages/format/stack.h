/* stack.h - what stages share that make one frame of several. */
#ifndef GP_STACK_H
#define GP_STACK_H

#include "gpipe/stage.h"

/* The output is `frames` frames of the input, as an axis in front. False with an error: it has too many axes. */
bool gp_shape_stack(gp_shape *s, int64_t frames);

#endif
