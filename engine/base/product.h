/* product.h - a product of arrays of matrices, as numpy.matmul has it: its sizes, and where each matrix begins.
 *
 * It follows from the types of a frame alone, and so does all that is chosen for it. */
#pragma once

#include "gpipe/stage.h"

/* What steps are of: elements from one matrix to the next. */
enum { GP_LEFT, GP_RIGHT, GP_MADE, GP_FACTORS };

typedef struct gp_product_axis { int64_t n, step[GP_FACTORS]; } gp_product_axis;

/* out = a b for each of `batch` matrices [m, n] of [m, k] by [k, n], and that for all of `axis`, the outermost first.
 * Of a turned factor the memory has its transpose. */
typedef struct gp_product {
    gp_dtype dtype;            /* of all three */
    bool turned[GP_MADE];
    int64_t m, n, k;
    gp_product_axis batch;
    gp_product_axis axis[GP_MAXDIM];
    int axes;
} gp_product;

/* False: the shapes do not fit. A vector on the left is a row, on the right a column, which `made` lacks; of two
 * vectors it is [1]. Axes before the last two are those of batches, and what has
 * one matrix there, or no such axis, is taken for all. */
bool gp_product_of(const gp_type *a, bool turn_a, const gp_type *b, bool turn_b, gp_product *p, gp_type *made);

/* How many batches there are. */
int64_t gp_product_batches(const gp_product *p);
/* Where the factors and the result of batch i begin: elements from the start. Of several frames: batch i of frame f is
 * batch f * gp_product_batches() + i. `bias`: elements from the bias of a frame to the next one's, which is a row for
 * all rows of the product. */
typedef struct gp_product_frames { gp_product_axis axis; int64_t bias; } gp_product_frames;
void gp_product_at_frame(const gp_product *p, const gp_product_frames *frames, int64_t i, int64_t at[GP_FACTORS]);
