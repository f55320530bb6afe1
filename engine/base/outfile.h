/* outfile.h - files that appear under their names only when they are whole.
 *
 * Functions that return bool put a text into `err` that goes on after the file's name:
 * "'x.npy' cannot be written: ...". */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/why.h"
#include "gpipe/err.h"

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
    /* NULL: a regular file; else a folder, and whether it may replace the one that is there. `fd` is then for openat(). */
    bool (*folder)(const char *path, char err[GP_WHY]);
    int fd;                            /* valid while `open` */
    bool open, in_place;
    bool lent;                         /* `fd` is the process's own, and stays open */
    bool replaces;                     /* a file is there: when it is opened, then when it gets
                                          its name */
    bool published;                    /* it has its name already */
    int64_t checked;                   /* when it was seen to have its name still, CLOCK_MONOTONIC */
    bool unread;                       /* opening failed: a FIFO that nobody reads yet */
    char path[PATH_MAX];               /* without symbolic links at its end */
    char tmp[PATH_MAX];
    struct gp_temporary *noted;        /* `tmp`, in the table of `by` */
    int folders_made;                  /* for it, or for one before */
    bool own;                          /* all files of `by` belong into one folder, of which no link leads elsewhere */
    bool placed;                       /* it had a path, whose folder is this */
    dev_t dev;
    ino_t ino;
} gp_outfile;

/* The first half of gp_outfile_open: finds out what `path` is, claims it for `by`. */
bool gp_outfile_claim(gp_outfile *f, const char *path, char err[GP_WHY]);
bool gp_outfile_open(gp_outfile *f, const char *path, char err[GP_WHY]);
/* Opens a regular file that is there already, to be added to: it keeps its name, and counts as published. *there: it
 * is; else none is open. What lies behind `cut` bytes is cut off, and so many have to be there; -1: nothing is. */
bool gp_outfile_extend(gp_outfile *f, const char *path, int64_t cut, bool *there, char err[GP_WHY]);
/* Has no other run write files of this pattern, which has numbers and no %n, while `f` is open: as
 * a temporary file for the pattern itself, which gets no name and is to be dropped. False: another
 * run writes it. Where no file can be made none is open, and the first one of the pattern says why. */
bool gp_outfile_hold(gp_outfile *f, const char *pattern, char err[GP_WHY]);
/* The same for an open file of this process, which is not closed. */
bool gp_outfile_lend(gp_outfile *f, int fd, char err[GP_WHY]);
/* Opens the temporary file of another process, `name` with the inode `ino`, that is to become `path`: that process
 * alone names or removes it. */
bool gp_outfile_share(gp_outfile *f, const char *path, const char *name, uint64_t ino, char err[GP_WHY]);
/* After an error it is to be dropped or kept. One that was published must still have its name; if
 * it was moved, `by` notes where it is. */
bool gp_outfile_commit(gp_outfile *f, char err[GP_WHY]);
/* Gives the file its name at once: it stays open, and is there whatever comes. After an
 * error it is to be dropped. */
bool gp_outfile_publish(gp_outfile *f, char err[GP_WHY]);
void gp_outfile_drop(gp_outfile *f);                   /* does nothing when not open */
/* The file has its name, or is gone: nobody has to remove it. */
void gp_outfile_let_go(const gp_outfile *f);
/* Gives the file `tmp` a name that nothing has. 0 or errno. EEXIST: something has it;
 * EOPNOTSUPP: the file system has no call that finds out and names at once. */
int gp_name_anew(const char *tmp, const char *path);

/* moved.c: where the temporary file of an open one is now, should its folder have been moved. False:
 * it is known to be gone, or another's. */
bool gp_outfile_find(const gp_outfile *f, char now[PATH_MAX]);
/* Does the name of one that is published still lead to it? `by` notes where it is if it was moved. */
bool gp_outfile_is_named(const gp_outfile *f, char err[GP_WHY]);
/* The same, looked at once a second, and is the file, be it published or not, as long as the `size` bytes that it was
 * given? 0: that is not known. */
bool gp_outfile_check(gp_outfile *f, size_t size, char err[GP_WHY]);
/* Does the file system of an open file tell what was never written? Others may have holes where zeros are. */
bool gp_shows_holes(int fd);
/* Has the open file all that was written to it, as far as its file system tells? */
bool gp_outfile_has_all(const gp_outfile *f, char err[GP_WHY]);

/* partial.c: drops the file, but keeps what was written under its name with ".partial" behind, or ".partial.2",
 * ".partial.3", ...: the first that is free or may be replaced, which `by` notes. */
void gp_outfile_keep(gp_outfile *f);
/* From now on what is written is worth that, should the run end without this thread. */
void gp_outfile_worth(const gp_outfile *f);
/* The same of one that is written in several places at once: its first `bytes` bytes are whole, what lies behind them
 * is then cut off. */
void gp_outfile_whole(const gp_outfile *f, size_t bytes);
/* Has the run ended without this thread? Then nothing is to be written any more. */
bool gp_outfile_is_abandoned(const gp_outfile *f);
/* How many files earlier runs kept of this one, whatever their numbers are, and the name of that
 * with the lowest; 0 where the folder cannot be listed. */
int gp_outfile_kept(const gp_outfile *f, char first[PATH_MAX]);

/* stale.c: the name of a temporary file for `name`, the n-th that process `pid` tries. */
void gp_temporary_name(char out[NAME_MAX + 1], const char *name, long pid, int n);
/* Removes the temporary files of dead processes from a folder, but what the run reads that
 * `by` belongs to; it may be NULL. */
void gp_remove_stale(const char *folder, struct gp_filewriter *by);
/* Makes this temporary file's process be seen as alive. False: another run looks at it or removes
 * it just now, so it is of no use. */
bool gp_hold_temporary(int fd);
/* A new temporary folder in another, for `of`, which gp_remove_stale removes, with all in it, once nobody holds *fd any
 * more. malloc'd; NULL, with errno. */
char *gp_temporary_folder(const char *in, const char *of, int *fd);
void gp_remove_tree(const char *folder);
/* Does another run write what the open file is to replace, or files of a pattern that may be that?
 * Seen where locks are: on a file system of a network perhaps only on this machine. *pid: its
 * process, 0: not known; `as`: how it calls it. */
bool gp_is_being_written(const gp_outfile *f, pid_t *pid, char as[NAME_MAX + 1]);

/* sync.c: puts a file on disk (fsync), the names in the folder of `path`, all of a file's
 * file system (syncfs). 0 or errno; where there is no disk behind (a pipe, a device, a
 * read-only file system) nothing is done. */
int gp_sync_file(int fd);
int gp_sync_folder(const char *path);
int gp_sync_all(int fd);

struct iovec;
/* Writes all of it, at the end; changes `v`. */
bool gp_write_all(int fd, struct iovec *v, int n, char err[GP_WHY]);
/* Writes all of it at a place. */
bool gp_put_at(int fd, const void *from, size_t n, int64_t at, char err[GP_WHY]);
