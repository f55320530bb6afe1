/* files.h - names of files, and reading and writing them whole.
 *
 * Names come in three forms: a plain one, a glob (*, ?, [) and a numbered one
 * (%05d; for writers also %n). Functions that return bool put a text into `err`
 * that continues after the file's name: "'x.npy' cannot be read: ...". */
#ifndef GP_FILES_H
#define GP_FILES_H

#include <limits.h>
#include <stdarg.h>
#include "base/outfile.h"
#include "gpipe/stage.h"

typedef enum gp_filetype { GP_AUTO, GP_RAW, GP_NPY, GP_PNG } gp_filetype;
#define GP_FORMATS "auto|raw|npy|png"

/* By the extension of the name; raw for any other. */
gp_filetype gp_filetype_of(const char *path);

/* The extension, as ".jpg", where it is that of files gpipe does not know; else NULL. */
const char *gp_foreign_extension(const char *path);

/* ---- names ----------------------------------------------------------- */

bool gp_path_is_glob(const char *path);

/* The length of the %d, %05d, %n or %% at `p`, or 0. */
size_t gp_path_conversion(const char *p);
bool gp_path_has_number(const char *path);             /* has a %d or %05d */
bool gp_path_has_name(const char *path);               /* has a %n */
/* The path of frame `index` whose source is called `name`; %% becomes %. False when
 * it does not fit, with an empty text in `out`. */
bool gp_path_expand(char out[PATH_MAX], const char *pattern, uint64_t index, const char *name,
                    char err[GP_WHY]);

/* The file's name without folder and extension: where it begins in `path`, and
 * its length. */
const char *gp_path_stem(const char *path, size_t *len);

/* ---- reading --------------------------------------------------------- */

/* Reads `n` bytes at `at`. Returns how many there were, -1 with errno. */
int64_t gp_read_at(int fd, void *buf, size_t n, int64_t at);

/* Memory that grows and is kept from frame to frame. */
typedef struct gp_growbuf {
    unsigned char *data;
    size_t n, cap;                     /* n bytes are used */
} gp_growbuf;
bool gp_growbuf_need(gp_growbuf *r, size_t cap);             /* false: no memory */

/* Puts the whole file, or its first `max` bytes, into `r`. */
bool gp_read_file(int fd, size_t max, gp_growbuf *r, char err[GP_WHY]);

#endif
