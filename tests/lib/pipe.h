/* pipe.h - runs whole pipelines in the test's process. */
#pragma once

#include "api/forms.h"
#include "device/machine.h"
#include "suite.h"

enum { PIPE_SOURCES = 32 };    /* at most, of a pipeline */

typedef struct pipe_result {
    gp_outcome outcome;        /* GP_ERROR when it did not compile */
    bool compiled;
    gp_errs errs;
    gp_account account[PIPE_SOURCES]; int naccounts;
} pipe_result;

/* A new folder for a test's files, which is removed behind the test (a fixture of suite_make and cases_add), or before. */
const char *pipe_dir(void);
void pipe_dir_remove(const char *dir);
void pipe_dirs_begin(void);
void pipe_dirs_end(void);
/* Writes a file into it. */
void pipe_file(const char *dir, const char *name, const void *data, size_t bytes);
void pipe_text(const char *dir, const char *name, const char *text);
/* Reads one: malloc'd, a NUL behind; NULL if it is not there. */
char *pipe_read(const char *dir, const char *name, size_t *bytes);
/* Reads one that has to be there, and to have so many bytes. */
void *pipe_read_all(const char *dir, const char *name, size_t bytes);
/* What a .npy is, which has to be there and to be whole. */
gp_type pipe_npy_type(const char *dir, const char *name);
/* A float .npy of shape [rows, cols], or [rows] with cols 0; element i is value(i), 0 without one. */
void pipe_npy(const char *dir, const char *name, int64_t rows, int64_t cols, float (*value)(int64_t));

/* The kinds that pipelines have from now on beside those of gpipe; no pipeline is left. */
void pipe_kinds(const gp_kind *more, size_t n);
const gp_registry *pipe_registry(void);        /* with them */
/* Compiles `yaml`, as if it were dir/test.yaml, for `c`, whose registry and environment may be left out. NULL after
 * errors; with pipe_compiled the test fails. */
gp_pipeline *pipe_compile(const char *dir, const char *yaml, gp_config c, gp_errs *errs);
gp_pipeline *pipe_compiled(const char *dir, const char *yaml, gp_config c);
/* `text` with `to` in place of the first `from`. */
char *pipe_edited(const char *text, const char *from, const char *to);
/* Returns once so many frames of its first source came out. */
void pipe_await_out(const gp_pipeline *p, uint64_t frames);
/* How many frames its sources have made. */
unsigned long long pipe_frames_in(const gp_pipeline *p);

/* Compiles `yaml`, as if it were dir/test.yaml, and runs it. `sets` ends with
 * NULL, or is NULL. `device`: "cpu", "cuda". */
pipe_result pipe_run(const char *dir, const char *yaml, const char *device,
                     const char *const *sets, gp_run_options options);
/* The same, with `during` called on another thread once the run has started. */
pipe_result pipe_run_with(const char *dir, const char *yaml, const char *device,
                          const char *const *sets, gp_run_options options,
                          void (*during)(gp_pipeline *p, void *arg), void *arg);
/* The same, with `after` called when it is over, unless it got stuck. */
pipe_result pipe_run_then(const char *dir, const char *yaml, const char *device,
                          const char *const *sets, gp_run_options options,
                          void (*after)(gp_pipeline *p, void *arg), void *arg);

/* Runs p, or goes on under it from `from`, unless NULL; retunes it for `next`, unless NULL, once its sources together
 * have made `at` frames: GP_PAUSED, or how the run ended; GP_ERROR also where it cannot be retuned. */
gp_outcome pipe_run_part(gp_pipeline *p, gp_pipeline *from, gp_pipeline *next, unsigned long long at, gp_run_options o,
                         gp_errs *errs);
/* Runs it in n + 1 parts, each with settings of its own: sets[i], which ends with NULL. Part i < n is retuned when
 * all sources together have made at[i] frames since part 0 began; if it ends first, no part follows. *parts: how
 * many there were. */
pipe_result pipe_run_paused(const char *dir, const char *yaml, const char *device, const char *const *const *sets,
                            const unsigned long long *at, int n, gp_run_options options, int *parts);

/* Fails the test, which says `what` it ran, when there were errors. */
void pipe_no_errors(const pipe_result *r, const char *what);
/* The run came to a good end, or, with `says`, failed with a first error that has this text. */
void pipe_ends(const pipe_result *r, const char *says);
/* pipe_run() to a good end: done, and without errors. */
pipe_result pipe_done(const char *dir, const char *yaml, const char *device,
                      const char *const *sets, gp_run_options options);
/* The first error's text; "no error" without one. */
const char *pipe_said(const gp_errs *errs);
