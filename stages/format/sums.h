/* sums.h - the types of sums, means and extremes, see kernels/join.h. */
#pragma once

#include "gpipe/stage.h"

static inline bool gp_is_float(gp_dtype t) { return t == GP_F16 || t == GP_F32 || t == GP_F64; }

/* Are integers of type t added in f64? For their mean, where 64 bits may not hold the sum. */
static inline bool gp_is_fsum(gp_dtype t, bool mean) { return mean && (t == GP_I64 || t == GP_U64); }

/* The type that a sum of such numbers is kept in: f64, u64 of u64, i64. */
static inline gp_dtype gp_sum_kept(gp_dtype t, bool mean)
{
    return gp_is_float(t) || gp_is_fsum(t, mean) ? GP_F64 : t == GP_U64 ? GP_U64 : GP_I64;
}

/* The type that it becomes: floats keep theirs; the mean of integers is f32. */
static inline gp_dtype gp_sum_made(gp_dtype t, bool mean)
{
    return gp_is_float(t) ? t : mean ? GP_F32 : gp_sum_kept(t, false);
}
