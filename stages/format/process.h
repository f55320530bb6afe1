/* process.h - a program that runs beside the pipeline: it writes what a stage reads, or reads what one writes.
 *
 * It is started without a shell, has no open files but its three streams, and ends with this process, however that
 * ends. A `why` goes on after the program's name: "'ffmpeg' cannot be started: ...". */
#pragma once

#include "gpipe/stage.h"
#include "base/outfile.h"

typedef struct gp_process gp_process;
struct iovec;

/* Starts argv[0], looked for in PATH, in `folder`; argv ends with NULL. With `reads` its standard input is our pipe,
 * and its standard output is ours; else its standard output is the pipe, and its input is empty. NULL: `why`. */
gp_process *gp_process_start(const char *const *argv, const char *folder, bool reads, char why[GP_WHY]);

/* For shape(): refuses a `command` without a program, beside a 'path' (`both` says so), and with one of those options,
 * up to a NULL, which have no effect on `what`. *path: its program; *folder: where it is started. False with an
 * error. */
bool gp_process_shape(gp_shape *s, const gp_texts *command, const char *both, const char *const *without,
                      const char *what, const char **path, const char **folder);

/* Our end of the pipe, which belongs to the process. */
int gp_process_fd(const gp_process *p);

/* As gp_write_all, to the pipe; nobody who reads it is an error, never a signal. */
bool gp_process_write(gp_process *p, struct iovec *v, int n, char why[GP_WHY]);

/* Closes our end: what reads it sees the end of its input. */
void gp_process_hang_up(gp_process *p);

/* Once it has ended after that: how many bytes it left unread; negative: -errno, that is not known. */
int gp_process_unread(const gp_process *p);

/* Has it ended? With `wait` this returns when it has. */
bool gp_process_has_ended(gp_process *p, bool wait);

/* True for a process that has ended with exit status 0, else `why`, "ended with exit status 1". */
bool gp_process_is_well(gp_process *p, char why[GP_WHY]);

/* Adds the last lines that it wrote to its standard error to the error that was added last. Only when it has ended, or
 * is not waited for any more. */
void gp_process_tell(gp_process *p, gp_errs *errs);

/* Ends it, where it has not ended: by SIGTERM, and soon after by SIGKILL. NULL: does nothing. */
void gp_process_stop(gp_process *p);
