/* deps.h - compiled kernels, found by what the compiler read to make them (deps.c).
 *
 * The invariant: a binary that is found is what the compiler would make now. Its key is made
 * of the unit's (text, options, environment, compiler), of the contents of all files that the
 * compiler said it had read, and of the files that lie under such a file's name in a folder
 * that is searched for headers: one that is new there may be what the compiler would read.
 * Which files were read is kept in the cache, too, under the unit's key. Nothing is kept of a
 * text, or with a header of the user's, that asks for files by __has_include.
 *
 * Not noticed: a new header in a folder that is neither in `folder` nor below one of them, and
 * a new file that only a header in an `include` folder below /usr asks for. */
#pragma once

#include "device/cache.h"

typedef struct gp_deps {
    gp_key unit;
    char **folder; int nfolders;   /* malloc'd */
    char **path; int npaths;       /* malloc'd; what the compiler read */
    bool unknown;                  /* it did not say all: nothing is stored */
    int64_t start;                 /* of the compiler; CLOCK_REALTIME, ns */
} gp_deps;                        /* zeroed before first use */

/* Adds n bytes, as a string. */
void gp_deps_folder(gp_deps *r, const char *path, size_t n);
void gp_deps_path(gp_deps *r, const char *path, size_t n);
/* The text that is compiled: may what comes of it be kept? */
void gp_deps_text(gp_deps *r, const char *text);
void gp_deps_free(gp_deps *r);

/* As gp_cache_find; with `unit` and the folders set. */
bool gp_deps_find(const gp_deps *r, const char *ext, void **data, size_t *bytes, gp_errs *errs);
/* Just before the compiler starts. Waits until the clock of file systems has moved on (a few
 * ms), so that a file that changes from now on is seen to be newer. */
void gp_deps_start(gp_deps *r);
/* Once the paths are set. Stores nothing where a file has changed meanwhile. */
void gp_deps_store(const gp_deps *r, const char *ext, const void *data, size_t bytes,
                    gp_errs *errs);
