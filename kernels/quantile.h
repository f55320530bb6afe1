/* quantile.h - what stages/format/quantiles.c and its kernels say to each other. */
#ifndef GP_QUANTILE_H
#define GP_QUANTILE_H

#include <stddef.h>
#include <stdint.h>

/* Places that a block counts for at a time; elements that it counts. */
enum { QUANTILE_GROUP = 8, QUANTILE_CHUNK = 1 << 14 };

/* A place in the order of a line: the digits that the number there begins with, its place among all that begin so. */
typedef struct quantile_place { uint64_t begins, rest; int same; } quantile_place;

/* `lines` of n elements, `count` quantiles of each. Of scratch memory, behind a flag for each line: where places begin,
 * and what is counted for them. */
typedef struct quantile_work { size_t lines, n, places, bins; int count; unsigned log_size; } quantile_work;

#endif
