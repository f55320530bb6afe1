/* harness.h - one device stage alone on a back end: arrays in, arrays out.
 *
 * A trial compiles the stage as a pipeline would (options, shape, scratch, table) and calls its record() for frames in
 * memory of its own, which is filled with a pattern before each use. Functions that cannot fail in a right program use
 * ck_assert. */
#pragma once

#include "device/backend.h"
#include "suite.h"

typedef struct array {
    gp_type type;
    void *data;                /* malloc'd, row-major */
} array;

array array_new(gp_dtype dtype, int ndim, const int64_t *dim);      /* zeroed */
array array_load(const char *path);                /* a .npy */
void array_free(array *a);
/* Rows [first, first + n) as an array of their own. */
array array_rows(const array *a, int64_t first, int64_t n);

/* "" when `a` is `b` (any NaN is equal to any), else what differs, in a static
 * text. `tolerance` is of the largest finite magnitude in b; 0: the same bits. */
const char *array_differs(const array *a, const array *b, double tolerance);

typedef struct trial trial;

/* A device to run trials on, one at a time. */
gp_dev *trial_device(const gp_backend *b);

/* A stage of kind `kind` with options as in a YAML flow map without the braces ("a: 2, b: 1"), for `nin` inputs like
 * `in`, at most `n` frames a launch. NULL with errors when such a pipeline makes no sense. */
trial *trial_open(gp_dev *dev, const char *kind, const char *options, const array *in, int nin, int n, gp_errs *errs);
/* The same for the stage `it` of a whole pipeline, in which the test's kinds `give` and `take` stand around it. */
trial *trial_open_text(gp_dev *dev, const char *yaml, int n, gp_errs *errs);
bool trial_batched(const trial *t);
int trial_outputs(const trial *t);
const void *trial_options(const trial *t);     /* as shape() left them */
/* One launch of n frames: frame i reads in[i * nin ...] and its outputs are put into out[i * outputs ...], to be freed.
 * The first input of each may have fewer rows than the type, then n is 1. State goes on from launch to launch. */
void trial_run(trial *t, const array *in, int n, array *out);
void trial_close(trial *t);

/* All three, for one frame. */
array trial_once(gp_dev *dev, const char *kind, const char *options, const array *in, int nin);

/* Fails the test where `a` is not `b`, with a text by printf in front. */
#define SAME(a, b, tolerance, ...)                                     \
    do {                                                               \
        const char *differs_ = array_differs(&(a), &(b), (tolerance)); \
        if (*differs_)                                                 \
            ck_abort_msg("%s: %s", format(__VA_ARGS__), differs_);     \
    } while (0)
