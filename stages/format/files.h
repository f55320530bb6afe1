/* files.h - what files are by their names, and reading them whole.
 *
 * Functions that return bool put a text into `err` that continues after the file's name:
 * "'x.npy' cannot be read: ...". */
#pragma once

#include <limits.h>
#include <stdarg.h>
#include "base/path.h"
#include "gpipe/stage.h"

/* The formats, each a line here and a NAME_file.c: its word for the option `format`, the constant of that file (of
 * pictures a gp_picfile, see picture_file.h, of lists of rows a gp_rowsfile, see rows_file.h), extensions of names. */
#define GP_PICTURES(X) \
    X(png, gp_png, ".png") \
    X(jpeg, gp_jpeg, ".jpg .jpeg") \
    X(pnm, gp_pnm, ".pgm .ppm .pnm .pbm .pam") \
    X(pfm, gp_pfm, ".pfm")
#define GP_ROWS(X) \
    X(wav, gp_wav, ".wav .rf64") \
    X(flac, gp_flac, ".flac") \
    X(ogg, gp_ogg, ".ogg .oga .opus") \
    X(mp3, gp_mp3, ".mp3") \
    X(aiff, gp_aiff, ".aiff .aif .aifc") \
    X(csv, gp_csv, ".csv") \
    X(tsv, gp_tsv, ".tsv") \
    X(jsonl, gp_jsonl, ".jsonl .ndjson") \
    X(npz, gp_npz, ".npz") \
    X(tiff, gp_tiff, ".tif .tiff .btf") \
    X(zarr, gp_zarr_array, ".zarr") \
    X(y4m, gp_y4m_video, ".y4m") \
    X(video, gp_video, ".mp4 .m4v .mov .3gp .mkv .webm .avi .flv .wmv .ts .mts .m2ts .mpg .mpeg .m2v .vob .h264 .264 .hevc .265 .ivf .gif")
/* In place of the constant: first bytes. */
#define GP_PLAIN(X) X(raw, none, ".raw .bin .dat") X(npy, array, ".npy")
#define GP_ALL_FORMATS(X) GP_PLAIN(X) GP_PICTURES(X) GP_ROWS(X)

/* GP_WHOLE: `read` has it, too: the bytes of a file, whatever is in it. */
#define GP_FORMAT_ID(word, ...) GP_FORMAT_##word,
typedef enum gp_filetype {
    GP_AUTO, GP_ALL_FORMATS(GP_FORMAT_ID) GP_WHOLE, GP_RAW = GP_FORMAT_raw, GP_NPY = GP_FORMAT_npy
} gp_filetype;

/* Choices of an option `format`, in the order of gp_filetype, and how its help goes on. */
#define GP_FORMAT_CHOICE(word, ...) "|" #word
#define GP_FORMATS "auto" GP_ALL_FORMATS(GP_FORMAT_CHOICE)
#define GP_FORMAT_HELP(word, constant, extensions) "; " #word ": " extensions
#define GP_FORMATS_HELP GP_ALL_FORMATS(GP_FORMAT_HELP)

/* By the extension of the name; by the first bytes; by the name where files of its format (raw, text) may begin with
 * any bytes, else by the bytes, else by the name. GP_AUTO where that is no format's. */
gp_filetype gp_filetype_of(const char *path);
gp_filetype gp_filetype_begun(const void *head, size_t n);
gp_filetype gp_filetype_is(const char *path, const void *head, size_t n);
/* Its constant; NULL where that is no such format. Its word. */
const struct gp_picfile *gp_picfile_of(gp_filetype as);
const struct gp_rowsfile *gp_rowsfile_of(gp_filetype as);
const char *gp_filetype_word(gp_filetype as);
/* Does the format take this option? */
bool gp_filetype_takes(gp_filetype as, const char *option);

#define GP_STRICT_HELP "faults of a file that its pixels or rows do not suffer from, and a cut that costs few rows of a JPEG, are " \
                       "errors; else a warning, and the account has the file's frames as faulty"

/* One more than the highest number that a file has whose path `pattern` makes (its last part
 * has the number, its folder none), but `start` at least. */
bool gp_next_number(const char *pattern, uint64_t start, uint64_t *next, char err[GP_WHY]);

/* May memory be taken for a picture that a file says it has? max_pixels 0: for any up to 1 TiB. */
bool gp_has_room(const gp_type *picture, int64_t max_pixels, char err[GP_WHY]);
#define GP_MAX_PIXELS(T) GP_INT(T, max_pixels), .def = "268435456", .min = 1, .max = 1e15, .unit = "pixels", \
    .help = "pictures: one that says it has more is an error, before memory is taken for it"

/* Is what a file holds one of the frames that are declared, of which those axes may be shorter? */
bool gp_file_fits(const gp_type *found, const gp_type *most, unsigned varies, char why[GP_WHY]);
/* The same of a frame, which is then made as large. */
bool gp_file_take(gp_view *v, const gp_type *most, unsigned varies, const gp_type *found, char why[GP_WHY]);

/* ---- reading --------------------------------------------------------- */

/* Reads `n` bytes at `at`. Returns how many there were, -1 with errno. */
int64_t gp_read_at(int fd, void *buf, size_t n, int64_t at);

/* A number of so many bytes, which stand in this order. */
static inline uint64_t gp_number(const unsigned char *p, int bytes, bool big)
{
    uint64_t x = 0;
    for (int i = 0; i < bytes; i++)
        x = x << 8 | p[big ? i : bytes - 1 - i];
    return x;
}

/* Memory that grows and is kept from frame to frame. */
typedef struct gp_growbuf {
    unsigned char *data;
    size_t n, cap;                     /* n bytes are used */
} gp_growbuf;
bool gp_growbuf_need(gp_growbuf *r, size_t cap);             /* false: no memory */

/* Puts the whole file, or its first `max` bytes, into `r`. */
bool gp_read_file(int fd, size_t max, gp_growbuf *r, char err[GP_WHY]);
