/* memfile.h - a stream whose text stays in memory.
 *
 * In place of open_memstream, which may tell nobody that memory ran out. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

typedef struct gp_memfile {
    FILE *f;                   /* to write to, between open and close */
    char *text;
    size_t n, cap;
    bool bad;                  /* something did not fit in memory */
} gp_memfile;

/* One thread. False: no memory. */
bool gp_memfile_open(gp_memfile *m);
/* All that was written, *n bytes with a NUL behind, for free(). NULL: it did not fit in
 * memory, and nothing is left of it. */
char *gp_memfile_close(gp_memfile *m, size_t *n);
