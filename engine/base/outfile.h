/* outfile.h - files that appear under their names only when they are whole.
 *
 * Functions that return bool put a text into `err` that goes on after the file's name:
 * "'x.npy' cannot be written: ...". */
#ifndef GP_OUTFILE_H
#define GP_OUTFILE_H

#include <limits.h>
#include <stdbool.h>

enum { GP_WHY = 320 };                 /* bytes of every `err` here */

bool gp_why(char err[GP_WHY], const char *fmt, ...)    /* always false */
    __attribute__((format(printf, 2, 3)));

/* A file that appears under its name only when it is whole: until then it is
 * called .NAME.tmp-PID. What exists and is not a regular file (/dev/null, a FIFO) is
 * written in place. Zeroed before first use; 1 thread. */
typedef struct gp_outfile {
    int fd;                            /* valid while `open` */
    bool open, in_place;
    bool unread;                       /* opening failed: a FIFO that nobody reads yet */
    char path[PATH_MAX], tmp[PATH_MAX];
} gp_outfile;

/* Makes missing folders, too. */
bool gp_outfile_open(gp_outfile *f, const char *path, char err[GP_WHY]);
bool gp_outfile_commit(gp_outfile *f, char err[GP_WHY]);
void gp_outfile_drop(gp_outfile *f);                   /* does nothing when not open */

struct iovec;
/* Writes all of it, at the end; changes `v`. */
bool gp_write_all(int fd, struct iovec *v, int n, char err[GP_WHY]);

#endif
