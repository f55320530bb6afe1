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
#include "gpipe/err.h"

enum { GP_WHY = 320 };                 /* bytes of every `err` here */

bool gp_why(char err[GP_WHY], const char *fmt, ...)    /* always false; errno stays */
    __attribute__((format(printf, 2, 3)));
/* How a text ends that says that memory ran out; its error is GP_E_RESOURCE (gp_fail). */
#define GP_WHY_MEMORY "does not fit in memory"

/* When a file is put on disk. "At the end": gp_filetable_sync does it. */
typedef enum gp_durable {
    GP_DURABLE_NONE,
    GP_DURABLE_END,                    /* at the end, with all that is in the file system */
    GP_DURABLE_END_ALONE,              /* at the end: this file and its folder */
    GP_DURABLE_FILE,                   /* before it gets its name, which is then put there too */
} gp_durable;

/* A file that appears under its name only when it is whole: until then it is
 * called .NAME.gpipe-PID-N-SUM (stale.c); those of processes that were killed are removed. One that it
 * replaces gives it its mode, and its owner and group where that is permitted. A symbolic
 * link stays: what it leads to is replaced. What exists and is not a regular file
 * (/dev/null, a FIFO) is written in place, as is an open file of this process
 * (/dev/stdout), which goes on where it is. Zeroed before first use; 1 thread. */
typedef struct gp_outfile {
    struct gp_filewriter *by;          /* whose it is, for filetable.h; NULL: nobody's */
    uint64_t frame, number;            /* the caller's, likewise */
    bool keeps;                        /* a file that is there already is not replaced */
    bool is_sole;                      /* that another run writes it at the same time is an
                                          error */
    bool needs_folder;                 /* a folder that is missing is an error; else it is
                                          made */
    gp_durable durable;
    int fd;                            /* valid while `open` */
    bool open, in_place;
    bool lent;                         /* `fd` is the process's own, and stays open */
    bool replaces;                     /* a file is there: when it is opened, then when it gets
                                          its name */
    bool published;                    /* it has its name already */
    bool unread;                       /* opening failed: a FIFO that nobody reads yet */
    char path[PATH_MAX];               /* without symbolic links at its end */
    char tmp[PATH_MAX];
    ino_t made;                        /* the file that was made under that name */
    struct gp_temporary *noted;        /* `tmp`, in the table of `by` */
    int folders_made;                  /* for it, or for one before */
    bool placed;                       /* it had a path, whose folder is this */
    dev_t dev;
    ino_t ino;
} gp_outfile;

/* The first half of gp_outfile_open: finds out what `path` is, claims it for `by`. */
bool gp_outfile_claim(gp_outfile *f, const char *path, char err[GP_WHY]);
bool gp_outfile_open(gp_outfile *f, const char *path, char err[GP_WHY]);
/* The same for an open file of this process, which is not closed. */
bool gp_outfile_lend(gp_outfile *f, int fd, char err[GP_WHY]);
bool gp_outfile_commit(gp_outfile *f, char err[GP_WHY]);
/* Gives the file its name at once: it stays open, and is there whatever comes. After an
 * error it is to be dropped. */
bool gp_outfile_publish(gp_outfile *f, char err[GP_WHY]);
void gp_outfile_drop(gp_outfile *f);                   /* does nothing when not open */
/* Drops the file, but keeps what was written under its name with ".partial" behind, which `by`
 * notes, where that name is free or a file that no other uses. */
void gp_outfile_keep(gp_outfile *f);

/* stale.c: the name of a temporary file for `name`, the n-th that process `pid` tries. */
void gp_temporary_name(char out[NAME_MAX + 1], const char *name, long pid, int n);
/* Removes the temporary files of dead processes from a folder, but what the run reads that
 * `by` belongs to; it may be NULL. */
void gp_remove_stale(const char *folder, struct gp_filewriter *by);
/* Makes this temporary file's process be seen as alive. False: somebody removes it just now. */
bool gp_hold_temporary(int fd);
/* Does another run write what the open file is to replace? Seen where locks are: on a file
 * system of a network perhaps only on this machine. */
bool gp_is_being_written(const gp_outfile *f);

/* sync.c: puts a file on disk (fsync), the names in the folder of `path`, all of a file's
 * file system (syncfs). 0 or errno; where there is no disk behind (a pipe, a device, a
 * read-only file system) nothing is done. */
int gp_sync_file(int fd);
int gp_sync_folder(const char *path);
int gp_sync_all(int fd);

struct iovec;
/* Writes all of it, at the end; changes `v`. */
bool gp_write_all(int fd, struct iovec *v, int n, char err[GP_WHY]);

#endif
