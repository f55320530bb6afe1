/* source.h - turns a user's source into what a compiler reads (source.c), and what the compiler
 * writes into errors (source_errors.c). For cpu/cc.c and cuda/nvrtc.c. */
#pragma once

#include <stdio.h>
#include "base/cxx.h"
#include "gpipe/stage.h"

/* In what a compiler writes: the name of our own lines, and what a failed check of the entry is marked by. */
#define GP_UNIT_MARK "gpipe-check"

/* What a compiler reads: gpipe's headers, the user's source under its own name
 * and line numbers, then a check that the entry takes exactly what `args` of the
 * stage pass. */
typedef struct gp_unit {
    const gp_source *src;
    const char *name;          /* of the source, in what a compiler writes */
    char *text; size_t len;    /* NUL-terminated */
    char *user;                /* the source as read */
    char *code;                /* the same bytes, comments and strings blanked */
    char *dir;                 /* of the source: quoted includes start here */
} gp_unit;

/* False after errors. gp_unit_free() in any case. */
bool gp_unit_make(gp_unit *u, const gp_source *src, bool cpu, gp_errs *errs);
void gp_unit_free(gp_unit *u);

/* Turns what a compiler wrote into errors at the user's lines; always adds one: source_errors.c. */
void gp_unit_errors(const gp_unit *u, const char *log, gp_errs *errs);

/* Where the user finds a place in the source: by the unit's number of the line (0: all of it), or by the address of
 * `len` bytes at `p` in `code`. */
gp_loc gp_unit_at(const gp_unit *u, int line, int col, int len);
gp_loc gp_unit_place(const gp_unit *u, const char *p, size_t len);

/* Does the text of a source say that the kernel may be launched early: GP_EARLY(entry), see kernels/kernel.h? It has to call gp_grid_wait(). */
bool gp_source_is_early(const char *text, const char *entry);

/* What messages call a source, and where it begins: a file as a whole, or the place of a text. */
const char *gp_source_name(const gp_source *src);
gp_loc gp_source_at(const gp_source *src);
/* The source as it stands, malloc'd. NULL after an error. */
char *gp_source_read(const gp_source *src, gp_errs *errs);
/* Writes the #line that gives the lines of the source, which are to follow, the user's file and
 * numbers; returns the name that it gives. */
const char *gp_source_line(FILE *out, const gp_source *src);

/* Adds the error that launches of several frames would change a variable at the same time, or that the kernel waits for
 * all blocks of a grid that does not run at once; returns false. */
bool gp_source_changes(const gp_source *src, const char *variable, gp_errs *errs);
bool gp_source_waits(const gp_source *src, gp_errs *errs);

/* The folder that a source lies in, malloc'd. NULL: no memory. */
char *gp_source_folder(const char *path);
