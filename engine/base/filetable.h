/* filetable.h - the files of one run: who writes which, and which are read. No name is
 * written twice, and no file that is read is replaced.
 *
 * A file that is written is known by the device and the inode of its folder and its name
 * there; one that is read by its own device and inode. So no spelling, symbolic link or
 * second (hard) link deceives the table. It looks at what is read only when a file is
 * there already that is to be replaced. Numbered files of one folder take no memory each:
 * from the first to the highest number all count as written. Any thread. */
#ifndef GP_FILETABLE_H
#define GP_FILETABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include "base/outfile.h"

typedef struct gp_filetable gp_filetable;

gp_filetable *gp_filetable_new(void);                  /* NULL: no memory */
void gp_filetable_free(gp_filetable *t);               /* accepts NULL */

/* `who` ("stage 'read'") reads these files; the strings are borrowed. False: no memory. */
bool gp_filetable_reads(gp_filetable *t, const char *who, const char *const *path, int n);

/* Who writes files: "stage 'write'", "'--report'". */
typedef struct gp_filewriter gp_filewriter;
/* `pattern`: the path of all its files, with %05d as it stands. NULL: no memory. */
gp_filewriter *gp_filetable_writer(gp_filetable *t, const char *who, const char *pattern);

/* A file that is about to be written. */
typedef struct gp_fileclaim {
    dev_t dev;
    ino_t ino;                         /* of the folder */
    const char *name;                  /* in it */
    const struct stat *old;            /* what is there now; st_mode 0: nothing */
    uint64_t frame, number;            /* whose file it is; the number in its name, if any */
} gp_fileclaim;

/* Notes that `w` writes the file. False when somebody else does, or reads it: the text
 * says who. */
bool gp_filetable_claim(gp_filewriter *w, const gp_fileclaim *c, char err[GP_WHY]);

#endif
