/* cut.h - how a .npy or raw file is cut along axis 0 into frames.
 *
 * A file is rows in a row, after a header; a frame is dim[0] of them, the last
 * one of a file maybe fewer. A file that has one axis more than the frame is
 * cut in the same places. Pure; errors are as in files.h. */
#pragma once

#include "files.h"

typedef struct gp_cut {
    int64_t data;          /* offset of the first row; with skip: of what is skipped */
    int64_t skip;          /* bytes before each frame */
    int64_t rows;          /* in the whole file */
    int64_t frame_rows;
    int64_t row_bytes;
    gp_type columns;       /* of an array that is column-major: its type; else without axes */
    bool swap;             /* its elements are big-endian */
} gp_cut;

/* These must be known of raw data. `ignore_tail`: bytes after the last whole row
 * (of a .npy: after its data) are no error. `whole`: nor is a last frame that has fewer rows, which is left out. */
typedef struct gp_cut_how {
    int64_t offset, skip;
    bool ignore_tail, whole, any_order;           /* .npy: column-major and big-endian arrays are no error */
} gp_cut_how;

/* Frames of type `frame` in a raw file of `size` bytes. */
bool gp_cut_raw(gp_cut *c, int64_t size, const gp_type *frame, const gp_cut_how *how,
                char err[GP_WHY]);

/* Frames of type `frame` in an array of type `whole`, whose data begin at 0. How many rows that has may not be known
 * yet: dim[0] is -1 then. */
bool gp_cut_type(gp_cut *c, const gp_type *whole, const gp_type *frame, char err[GP_WHY]);

/* Frames of type `frame` in a .npy file that begins with `head`. */
bool gp_cut_npy(gp_cut *c, const void *head, size_t n, int64_t size, const gp_type *frame,
                const gp_cut_how *how, char err[GP_WHY]);

/* Fills in what is not declared of a .npy file's frame. `whole`: one file is one
 * frame; else each index of axis 0 is one. `array` is the file's type. */
bool gp_cut_infer(gp_type *frame, const gp_type *array, bool whole, char err[GP_WHY]);

/* Where frame `i` of the file is: its offset and how many rows it has. False
 * past the last. */
bool gp_cut_frame(const gp_cut *c, int64_t i, int64_t *at, int64_t *rows);

static inline int64_t gp_cut_frames(const gp_cut *c) { return (c->rows + c->frame_rows - 1) / c->frame_rows; }

/* Indices [first, first + n) of axis 0 of a column-major array, whose bytes get() reads from `at` on, as a row-major
 * one. */
bool gp_cut_columns(const gp_type *array, int64_t first, int64_t n, void *to,
                    bool (*get)(void *user, int64_t at, void *to, size_t n), void *user);

/* The same, of frames one after the other: rows are put together many at a time, of which the next calls, of any
 * thread, get theirs. NULL: each call reads what it needs. */
typedef struct gp_columns gp_columns;
gp_columns *gp_columns_new(void);                      /* NULL: no memory */
void gp_columns_free(gp_columns *c);                   /* accepts NULL */
bool gp_columns_read(gp_columns *c, const gp_type *array, int64_t first, int64_t n, void *to,
                     bool (*get)(void *user, int64_t at, void *to, size_t n), void *user);

/* Turns big-endian elements into little-endian ones, in place. */
void gp_swap(void *data, const gp_type *t);
