/* filetable.h - the files of one run: who writes which, and which are read. No name is
 * written twice, and no file that is read is replaced.
 *
 * A file that is written is known by the device and the inode of its folder and its name
 * there; one that is read, or is open already and written as it is (standard output, a
 * FIFO), by its own device and inode. So no spelling, symbolic link or second (hard) link
 * deceives the table. It looks at what is read only when a file is
 * there already that is to be replaced. Numbered files of one folder take no memory each:
 * from the first to the highest number all count as written. Any thread. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include "base/outfile.h"
#include "gpipe/err.h"

typedef struct gp_filetable gp_filetable;

gp_filetable *gp_filetable_new(void);                  /* NULL: no memory */
void gp_filetable_free(gp_filetable *t);               /* accepts NULL */
void gp_filetable_hold(gp_filetable *t);               /* one gp_filetable_free more frees it */

/* `who` ("stage 'read'") reads these files; the strings are borrowed. False: no memory. */
bool gp_filetable_reads(gp_filetable *t, const char *who, const char *const *path, int n);

/* The same for one file, once the run has begun; `who` is copied. False when somebody writes
 * it: the text says who. */
bool gp_filetable_read(gp_filetable *t, const char *who, const char *path, char err[GP_WHY]);

/* Is this file one that the run of `w` reads? */
bool gp_filetable_is_read(struct gp_filewriter *w, const struct stat *st);

/* Who writes files. */
typedef struct gp_filewriter {
    struct gp_filewriter *next;        /* in the order in which they were made */
    gp_filetable *table;
    const char *who;                   /* "stage 'write'", "--report" */
    gp_loc at;                         /* where the pipeline says so, if it does */
    uint64_t replaced;                 /* files that were there before */
    uint64_t replaced_number;          /* of the one with the lowest number: that, */
    char *replaced_path;               /* and its path; malloc'd, may be NULL for want of
                                          memory */
    char kept_path[PATH_MAX];          /* where a joined file is that does not have its name; else "" */
    uint64_t goes_on_at;               /* after files of an earlier run, at this number; 0: no */
    bool one_folder;                   /* all its files are in one, and once it has one: */
    bool placed;
    dev_t dev;
    ino_t ino;
    struct gp_filenumbers *numbers;    /* filetable.c's */
} gp_filewriter;

/* `who` is copied, `pattern` borrowed: the path of all its files, with %05d as it stands.
 * NULL: no memory. */
gp_filewriter *gp_filetable_writer(gp_filetable *t, const char *who, gp_loc at,
                                   const char *pattern);
/* The first; once nobody makes one any more. */
const gp_filewriter *gp_filetable_writers(const gp_filetable *t);

/* A file that is about to be written. */
typedef struct gp_fileclaim {
    dev_t dev;
    ino_t ino;                         /* of the folder */
    const char *name;                  /* in it */
    const struct stat *old;            /* what is there now; st_mode 0: nothing */
    uint64_t frame, number;            /* whose file it is; the number in its name, if any */
    bool adds;                         /* what is there stays, and is written as it is */
} gp_fileclaim;

/* Notes that `w` writes the file. False when somebody else does, or reads it: the text
 * says who. */
bool gp_filetable_claim(gp_filewriter *w, const gp_fileclaim *c, char err[GP_WHY]);

/* The same for a file that is written as it is, whatever it is called. A character device
 * (a terminal, /dev/null) is everybody's. */
bool gp_filetable_claim_open(gp_filewriter *w, const struct stat *st, uint64_t frame,
                             char err[GP_WHY]);

/* Is this the folder of all files of `w`, if they have one? The first is. st_mode 0: it is not there. */
bool gp_filetable_is_folder(gp_filewriter *w, const struct stat *folder);

/* Is this folder, or with a `pattern` that is not empty this pattern in it, seen here for the
 * first time? */
bool gp_filetable_is_new(gp_filewriter *w, dev_t dev, ino_t ino, const char *pattern);

/* Notes that gp_filetable_sync has to put on disk what is in open file `fd`, in a folder of
 * device `dev`: the file, its folder by its path, and `above` folders above that one, or with
 * `path` NULL all of its file system. False with errno. */
bool gp_filetable_sync_later(gp_filewriter *w, int fd, dev_t dev, const char *path, int above);
/* Is there anything to do for gp_filetable_sync? */
bool gp_filetable_must_sync(const gp_filetable *t);
/* Puts on disk what has been noted; takes as long as the disks do. Errors are of RUN, at
 * their writer's place. By one thread at a time; files may be written beside that. */
void gp_filetable_sync(gp_filetable *t, gp_errs *errs);

enum { GP_PARTIALS = 2 };              /* so many of what runs keep of one file are replaced by later ones */

/* One temporary file of a writer, for as long as it is there: gp_filetable_abandon keeps or
 * removes it. */
typedef struct gp_temporary {
    struct gp_temporary *next;
    gp_filewriter *by;
    atomic_bool is_there, is_worth;    /* it is kept */
    _Atomic int64_t whole;             /* then so many bytes of it; -1: all */
    ino_t older[GP_PARTIALS];          /* what earlier runs kept and it may replace; 0: nothing */
    char path[PATH_MAX], name[NAME_MAX + 1];   /* name: that of the file that it is to be */
} gp_temporary;

/* Room to note one, then another, the table's. NULL: no memory. */
gp_temporary *gp_filetable_temporary(gp_filewriter *w);
/* Notes that it is there. False: the table is abandoned, so that nobody else removes it. */
bool gp_temporary_note(gp_temporary *t, const char *path, const char *name);
/* partial.c: keeps it, which its writer notes, or removes it. As gp_filetable_abandon. */
void gp_temporary_end(gp_temporary *t);
/* The process ends without its threads: keeps of what is there, by renaming it, what is worth
 * it, and removes the rest. May be called from a signal handler, beside all others. */
void gp_filetable_abandon(gp_filetable *t);
bool gp_filetable_is_abandoned(const gp_filetable *t);

/* Is this a name in the folder of numbered files that `w` wrote, with a number (*number) above
 * theirs, and did nobody here write it? Once all writing is done. */
bool gp_filetable_is_left(const gp_filewriter *w, const char *name, uint64_t *number);

/* Notes that `w` replaced a file. */
void gp_filetable_replaced(gp_filewriter *w, const char *path, uint64_t number);
