/* source.h - turns a user's .cu into what a compiler reads, and what the compiler writes
 * into errors (source.c). For cpu/cc.c and cuda/nvrtc.c. */
#ifndef GP_SOURCE_H
#define GP_SOURCE_H

#include <ctype.h>
#include "gpipe/stage.h"

/* What a compiler reads: gpipe's headers, the user's source under its own name
 * and line numbers, then a check that the entry takes exactly what `args` of the
 * stage pass. */
typedef struct gp_unit {
    const gp_source *src;
    char *text; size_t len;    /* NUL-terminated */
    char *user;                /* the source as read */
    char *code;                /* the same bytes, comments and strings blanked */
    char *dir;                 /* of the source: quoted includes start here */
} gp_unit;

/* False after errors. gp_unit_free() in any case. */
bool gp_unit_make(gp_unit *u, const gp_source *src, bool cpu, gp_errs *errs);
void gp_unit_free(gp_unit *u);

/* Turns what a compiler wrote into errors at the user's lines; always adds one. */
void gp_unit_errors(const gp_unit *u, const char *log, gp_errs *errs);

/* The folder that a source lies in, malloc'd. NULL: no memory. */
char *gp_source_folder(const char *path);

/* A copy with comments, strings and characters blanked, and all newlines kept; malloc'd.
 * NULL: no memory. */
char *gp_code_blank(const char *text);

/* May `c` stand in an identifier? */
static inline bool gp_in_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

#endif
