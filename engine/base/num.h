/* num.h - numbers of the pipeline's file, as text and as elements of a type. */
#pragma once

#include "gpipe/stage.h"

static inline bool gp_int_fits(gp_int128 i) { return i >= INT64_MIN && i <= UINT64_MAX; }

/* Does type `t` hold it? Integers have to be exact, in floats too; what has a fraction may be rounded there, but not to
 * infinity. */
bool gp_num_fits(const gp_num *x, gp_dtype t);

/* The element that it is, of c64 the real part, where t holds it; a float is the nearest one in any case. */
void gp_num_store(void *to, const gp_num *x, gp_dtype t);

/* Makes an integer of a float that is whole and below 2^53, as 5.0 and 1e3. False: it is no integer. */
bool gp_num_whole(gp_num *x);

/* With as many digits as tell it from others. */
enum { GP_NUM_TEXT = 32 };
const char *gp_num_text(const gp_num *x, char buf[GP_NUM_TEXT]);
