/* reduction.h - sum, mean, min, max and others over some axes: types, memory and passes, of the kind `reduce` and of
 * `expr` where that has taken one in.
 *
 * The last axes are reduced by one kernel (kernels/lines.h). Others are taken in groups of neighboring ones, the last
 * group first, each the middle axis of (outer, rows, inner): folds reduce `rows` to at most TREE (reduction.c), a tree
 * then reduces these to 1 (kernels/fold.h, reduce.cu). What is between passes, partials, goes from one half of the
 * scratch to the other. */
#pragma once

#include "gpipe/stage.h"
#include "lines.h"

/* The first pass: of a gp_reduction_is_lines() all of it; else from rows to partials, the first frame's at `to`, with
 * `stride` elements to the next. */
typedef struct gp_fold {
    gp_lines lines;
    void *to;
    size_t stride, outer, rows, inner, lanes, steps;
    gp_dim3 grid, block; size_t shared;        /* of the launch */
} gp_fold;

/* Queues it. */
typedef bool gp_first_fold(gp_dcall *c, const gp_fold *f, void *arg);

/* Are these the last axes of frames of so many axes? */
bool gp_reduction_is_lines(const gp_reduction *r, int ndim);
/* Are integers of type `t` added in f64, see sums.h? */
bool gp_reduction_is_fsum(const gp_reduction *r, gp_dtype t);
/* The type of partials, for frames of type `t`. */
gp_dtype gp_reduction_kept(const gp_reduction *r, gp_dtype t);
/* The type that frames of type `in` become; `out` may be `in`. */
void gp_reduction_type(const gp_reduction *r, const gp_type *in, gp_type *out);
/* Bytes of scratch a frame; of them from the first, those that have to be zero. */
size_t gp_reduction_scratch(const gp_reduction *r, const gp_type *in);
/* Its result of frames of type t without rows. */
gp_none gp_reduction_none(const gp_reduction *r, gp_dtype t);
size_t gp_reduction_zero(const gp_reduction *r, const gp_type *in);
/* Queues all of it. With `first`, which gets `arg`, what is reduced is in no memory: only the type of `in` counts.
 * Where `out` has no type, a standard deviation leaves what it is made of there: f64 [8], how many elements, the first,
 * how far the mean is from that, the sum of the squares of what they differ from it, whether any two differ, and nothing. */
bool gp_reduction_record(gp_dcall *c, const gp_reduction *r, const gp_view *in, const gp_view *out, gp_first_fold *first,
                         void *arg);
