/* child.h - runs a compiler, which is ended when gpipe ends or cancels (child.c). */
#pragma once

#include <stdatomic.h>
#include <stddef.h>

typedef struct gp_child {
    const char *const *argv;           /* ends with NULL; the program is looked for in PATH */
    const char *text; size_t len;      /* its standard input */
    const char *tmp;                   /* its TMPDIR */
    const atomic_int *cancel;          /* not 0: it is killed at once; or NULL */
    char *log; size_t nlog;            /* result: the start of its output, NUL-terminated, malloc'd */
    size_t more;                       /* result: the lines behind that */
} gp_child;

/* The program's exit status; -1: it cannot be started, with errno, or was killed: errno is 0. */
int gp_child_run(gp_child *c);
