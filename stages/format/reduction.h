/* reduction.h - sum, mean, min or max over some axes: types, memory and passes, of the kind `reduce` and of `expr` where
 * that has taken one in.
 *
 * Neighbouring axes are reduced together, the last ones first: such a group is the middle axis of (outer, rows, inner).
 * Folds reduce `rows` to at most TREE (reduction.c), a tree then
 * reduces these to 1 (kernels/fold.h, reduce.cu). What is between passes, partials,
 * goes from one half of the scratch to the other. */
#ifndef GP_REDUCTION_H
#define GP_REDUCTION_H

#include "gpipe/stage.h"

/* A pass from rows to partials; `to`, `stride`: of the first frame, and elements to the next. */
typedef struct gp_fold {
    void *to;
    size_t stride, outer, rows, inner, lanes, steps;
} gp_fold;

/* Queues the first pass over frames; `partials`: of each frame. */
typedef bool gp_first_fold(gp_dcall *c, const gp_fold *f, size_t partials, void *arg);

/* The type of partials, for frames of type `t`. */
gp_dtype gp_reduction_kept(const gp_reduction *r, gp_dtype t);
/* What frames of type `in` become; `out` may be `in`. */
void gp_reduction_type(const gp_reduction *r, const gp_type *in, gp_type *out);
/* Bytes of scratch a frame. */
size_t gp_reduction_scratch(const gp_reduction *r, const gp_type *in);
/* Queues all of it. With `first`, which gets `arg`, what is reduced is in no memory: only the type of `in` counts. */
bool gp_reduction_record(gp_dcall *c, const gp_reduction *r, const gp_view *in, const gp_view *out, gp_first_fold *first,
                         void *arg);

#endif
