/* convert.h - real numbers become those of another type, on the host, with the bits that the kind `cast` makes on any
 * device: the rule stands in kernels/map.h, and kernels/convert.cpp applies it. */
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C"
#endif
/* n numbers; `to` and `from`, each a gp_dtype of real numbers, say their types. */
void gp_convert(void *dst, int to, const void *src, int from, size_t n);
