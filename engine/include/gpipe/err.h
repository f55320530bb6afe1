/* err.h - how gpipe says what went wrong, and where.
 *
 * Every function that can fail takes a `gp_errs *` and returns false (or
 * NULL) on failure, having added at least one error. The struct is plain
 * memory owned by the caller: adding an error never allocates, so "out of
 * memory" can always be reported. Not thread-safe: one gp_errs per thread. */
#ifndef GP_ERR_H
#define GP_ERR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/* name, exit code of the command, what it means */
#define GP_CODES(X)                                               \
    X(OK,       0, "ok")                                          \
    X(WARN,     0, "a warning: the run goes on")                  \
    X(NOTE,     0, "a line more of the error before it")          \
    X(RUN,      1, "failed at run time")                          \
    X(USAGE,    2, "the command line is not valid")               \
    X(SPEC,     3, "the pipeline is not valid")                   \
    X(RESOURCE, 4, "not enough memory or open files, or no such device")        \
    X(STALL,    5, "nothing moves any more")                      \
    X(MISMATCH, 6, "the data differ from what was expected")      \
    X(BUG,      1, "this is a bug in gpipe")                      \
    X(CLOSED,   1, "nobody reads the standard output any more")

typedef enum gp_code {
#define X(name, exit, text) GP_E_##name,
    GP_CODES(X)
#undef X
} gp_code;

/* A place in the user's file. Lines and columns count from 1 (columns in
 * bytes); line 0 means "the file as a whole", file NULL "nowhere". `file` is
 * borrowed and outlives the error. `len` is how many bytes to underline. */
typedef struct gp_loc {
    const char *file;
    int line, col, len;
} gp_loc;

typedef struct gp_err {
    gp_code code;
    gp_loc at;             /* where in the user's pipeline, Lua or .cu file */
    const char *c_file;    /* where in gpipe it was noticed, for bug reports */
    int c_line;
    char msg[600];         /* lower case, no full stop: "no stage 'blurr'"; of a longer
                              one the middle is left out */
} gp_err;

enum { GP_ERRS_MAX = 24 };

typedef struct gp_errs {
    gp_err e[GP_ERRS_MAX]; /* in the order found; only the first `n` are set */
    int n;
    int dropped;           /* messages that the full table has no room for, without their notes */
    int failed;            /* those that are not warnings, dropped ones too */
    gp_loc at;             /* the current place: of errors that name none themselves */
} gp_errs;

/* Sets the current place; returns the one before, to be put back into errs->at. */
static inline gp_loc gp_errs_place(gp_errs *errs, gp_loc at)
{
    gp_loc was = errs->at;
    errs->at = at;
    return was;
}

/* Adds an error; with GP_E_WARN a warning, with GP_E_NOTE a line to the last one, which
 * has a text and whose place is not shown. A full table gives up warnings for errors. What
 * the machine is short of (memory, open files) is GP_E_RESOURCE. What is wrong with several copies of a line ('repeat')
 * is kept of the first. Always returns false:
 * `return gp_fail(errs, GP_E_SPEC, at, "no stage '%s'", s);` */
#define gp_fail(errs, code, at, ...) \
    gp_fail_((errs), (code), (at), __FILE__, __LINE__, __VA_ARGS__)

bool gp_fail_(gp_errs *errs, gp_code code, gp_loc at, const char *c_file,
              int c_line, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));

/* For what returns a pointer: `return GP_NULL(gp_fail(...));` */
#define GP_NULL(failed) ((void)(failed), (void *)0)

/* Adds all of `from` to `to`. */
void gp_errs_add(gp_errs *to, const gp_errs *from);

/* The exit code of the command: that of the first error that is no warning, 0
 * without one. */
int gp_errs_exit(const gp_errs *errs);

/* Writes "FILE:LINE:COL: error: MSG", and, where `text` (the whole of the file
 * named `file`) holds the line, that line with a caret below the place. */
void gp_err_print(FILE *to, const gp_err *e, const char *file,
                  const char *text, size_t len, bool color);

/* Line number `line` of a text, `*n` bytes without the newline; NULL: there is none. */
const char *gp_text_line(const char *text, size_t len, int line, int *n);

/* "; did you mean 'X'?" with the candidate nearest to `word`, or "" when none
 * is near. Call gp_near_try for each candidate, then gp_near_text once. */
typedef struct gp_near {
    const char *word, *best;
    int distance;
    char text[120];
} gp_near;

#define GP_NEAR(w) { .word = (w), .distance = 1 << 20 }
void gp_near_try(gp_near *near, const char *candidate);
const char *gp_near_text(gp_near *near);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif
