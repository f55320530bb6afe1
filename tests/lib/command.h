/* command.h - runs the command (the program that $GPIPE names) as a child. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef struct command_result {
    int code;                  /* exit code; 128 + signal */
    bool late;                 /* it did not end in time and was killed */
    double seconds;
    char *out, *err;           /* what it wrote: malloc'd, a NUL behind */
    size_t nout, nerr;
} command_result;

/* Runs it with `args` (ends with NULL) for at most `limit` seconds; its output goes through files in `dir`.
 * `interrupts`: so many SIGINTs, 0.3 s apart, once there is something on stdout. The result is to be freed. */
command_result command_run(const char *dir, const char *const *args, double limit, int interrupts);
void command_free(command_result *r);
