/* number.h - numbers of options as elements. */
#pragma once

#include "gpipe/stage.h"

/* Does type `t` hold v, as gp_num_fits() says? Where not, false, with an error at option `opt`. */
bool gp_number_fits(gp_shape *s, const char *opt, const gp_num *v, gp_dtype t);
/* v as an element of type t lies in memory, in the first bytes; of c64 its real part. */
uint64_t gp_number_bits(const gp_num *v, gp_dtype t);

/* Are both ends of the option `range`, and their difference, finite? Else false, with an error. */
bool gp_number_finite(gp_shape *s, const double range[2]);
/* Is the option `range`, where it is said, [low, high], and low the lesser? Else false, with an error. */
bool gp_number_range(gp_shape *s, const gp_floats *range);
