/* outfile.h - files that appear under their names only when they are whole.
 *
 * Functions that return bool put a text into `err` that goes on after the file's name:
 * "'x.npy' cannot be written: ...". */
#ifndef GP_OUTFILE_H
#define GP_OUTFILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { GP_WHY = 320 };                 /* bytes of every `err` here */

bool gp_why(char err[GP_WHY], const char *fmt, ...)    /* always false */
    __attribute__((format(printf, 2, 3)));

/* A file that appears under its name only when it is whole: until then it is
 * called .NAME.tmp-PID. One that it replaces gives it its mode, and its owner and group
 * where that is permitted. A symbolic link stays: what it leads to is replaced. What
 * exists and is not a regular file (/dev/null, a FIFO), or is an open file of a process
 * (/dev/stdout), is written in place. Zeroed before first use; 1 thread. */
typedef struct gp_outfile {
    struct gp_filewriter *by;          /* whose it is, for filetable.h; NULL: nobody's */
    uint64_t frame, number;            /* the caller's, likewise */
    int fd;                            /* valid while `open` */
    bool open, in_place;
    bool unread;                       /* opening failed: a FIFO that nobody reads yet */
    char path[PATH_MAX];               /* without symbolic links at its end */
    char tmp[PATH_MAX];
    bool placed;                       /* it had a path, whose folder is this */
    dev_t dev;
    ino_t ino;
} gp_outfile;

/* The first half of gp_outfile_open: finds out what `path` is, claims it for `by`. */
bool gp_outfile_claim(gp_outfile *f, const char *path, char err[GP_WHY]);
/* Makes missing folders, too. */
bool gp_outfile_open(gp_outfile *f, const char *path, char err[GP_WHY]);
bool gp_outfile_commit(gp_outfile *f, char err[GP_WHY]);
void gp_outfile_drop(gp_outfile *f);                   /* does nothing when not open */

struct iovec;
/* Writes all of it, at the end; changes `v`. */
bool gp_write_all(int fd, struct iovec *v, int n, char err[GP_WHY]);

#endif
