/* files.h - what files are by their names, and reading them whole.
 *
 * Functions that return bool put a text into `err` that continues after the file's name:
 * "'x.npy' cannot be read: ...". */
#ifndef GP_FILES_H
#define GP_FILES_H

#include <limits.h>
#include <stdarg.h>
#include "base/path.h"
#include "gpipe/stage.h"

/* From GP_PICTURE on: a picture, see picture_file.h; from GP_ROWS on: a list of rows, see rows_file.h. */
typedef enum gp_filetype { GP_AUTO, GP_RAW, GP_NPY, GP_PICTURE, GP_ROWS = GP_PICTURE + 4, GP_WHOLE = GP_ROWS + 10 } gp_filetype;

/* Choices of an option `format`: those of gp_filetype, then the rows of both tables. `read` has one more, GP_WHOLE: the
 * bytes of a file, whatever is in it. */
#define GP_FORMATS "auto|raw|npy|png|jpeg|pnm|pfm|wav|flac|ogg|aiff|csv|tsv|jsonl|npz|tiff|y4m"

/* By the extension of the name; raw for any other. */
gp_filetype gp_filetype_of(const char *path);

/* The extension, as ".tif", where it is that of files gpipe does not know; else NULL. */
const char *gp_foreign_extension(const char *path);

/* One more than the highest number that a file has whose path `pattern` makes (its last part
 * has the number, its folder none), but `start` at least. */
bool gp_next_number(const char *pattern, uint64_t start, uint64_t *next, char err[GP_WHY]);

/* Is what a file holds one of the frames that are declared, of which those axes may be shorter? */
bool gp_file_fits(const gp_type *found, const gp_type *most, unsigned varies, char why[GP_WHY]);
/* The same of a frame, which is then made as large. */
bool gp_file_take(gp_view *v, const gp_type *most, unsigned varies, const gp_type *found, char why[GP_WHY]);

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
