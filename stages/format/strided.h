/* strided.h - a copy of arrays whose elements lie anywhere: what stages that only rearrange elements record. */
#pragma once

#include "gpipe/stage.h"
#include "copy.h"

/* The array that is made, axis by axis, the outermost first; steps are in bytes, and may be negative in the source. */
typedef struct gp_strided {
    int axes;
    size_t each;                       /* bytes of an element */
    struct { int64_t n, from, to; } axis[GP_MAXDIM + 1];
} gp_strided;

/* All of `made`, from all of an array of type `in`; then steps may be changed. */
gp_strided gp_strided_of(const gp_type *in, const gp_type *made);
/* Queues it for all frames of the call: the first element is `from` bytes behind the data of `in`, and goes `to` bytes
 * behind those of `out`. */
bool gp_strided_record(gp_dcall *c, const gp_view *in, int64_t from, const gp_view *out, int64_t to, gp_strided s);

/* Bytes from one element of an axis to the next. */
int64_t gp_strided_step(const gp_type *t, int axis);

gp_divisor gp_divisor_of(int64_t d);           /* 1 to 2^31 - 1 */
