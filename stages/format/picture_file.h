/* picture_file.h - pictures: what a format of them is, files to and from frames.
 *
 * A frame is (H, W) for gray or (H, W, C); writers also take C = 1. Color spaces and
 * profiles are left alone. A file is what its first bytes say; where these are no
 * format's, its name says what it should be. Any thread; errors are as in files.h. */
#pragma once

#include "files.h"
#include "filemeta.h"

/* Options say this of pictures. */
typedef struct gp_picfile_how {
    gp_filetype format;                /* GP_AUTO: as the file says */
    bool strict;                       /* of a reader: faults are errors that no pixel suffers from, or few rows */
    bool keep_orientation;             /* pixels as they are stored, whatever side is said to be up */
    int colors;                        /* of a frame that is read, one of GP_COLORS */
    int halvings;                      /* of each side, while it is decoded: 0 to 3. Only formats that `shrink` */
    int compression;                   /* 0 to 9 */
    int quality;                       /* 1 to 100 */
    int subsampling;                   /* one of GP_SUBSAMPLING */
    int64_t max_pixels;                /* of a reader: more are an error; 0: any */
    const gp_filemeta *said;           /* of a writer: the frame's numbers, for those that can; or NULL */
} gp_picfile_how;
enum { GP_420, GP_422, GP_444 };
#define GP_SUBSAMPLING "4:2:0|4:2:2|4:4:4"
/* As the file has them; or three, of gray ones all the same; or luma. These two have no alpha. */
enum { GP_COLORS_KEEP, GP_COLORS_RGB, GP_COLORS_GRAY };
enum { GP_COLORS_PLANES = GP_COLORS_GRAY + 1 };        /* of video */
#define GP_COLORS "keep|rgb|gray"
#define GP_COLORS_HELP "pictures: as they are stored; rgb: gray ones get three equal colors; gray: the luma of colored ones " \
                       "(BT.601; of a JPEG its own); both leave alpha out"

typedef struct gp_picfile {
    const char *name;                  /* as in messages: "PNG" */
    const char *magic[8], *options[3]; /* each ends with NULL; magic: first bytes, of which '?' is any; options: those of
                                          writers that it takes */
    bool shrinks;
    int64_t most_for_a_byte;           /* bytes of a frame that one in its file can stand for, at most; 0: any number */
    /* The type of the frame that decode() makes of a file that begins with `head`; all that stands before the picture's
     * data has to be there. Its colors may be other ones than `how` says: they are converted. */
    bool (*head)(const void *head, size_t n, const gp_picfile_how *how, gp_type *type, char err[GP_WHY]);
    /* Changes the type that head() found by the last bytes of a larger file, which begins with `head`. NULL:
     * nothing. */
    void (*end)(const void *head, size_t n, const void *end, size_t nend, const gp_picfile_how *how, gp_type *type);
    /* A whole file of n bytes -> a frame of type `type`, as head() said. True with a text in `err`, which was empty: a
     * warning, of a fault of the file. */
    bool (*decode)(const void *file, size_t n, const gp_picfile_how *how, const gp_type *type, void *frame,
                   char err[GP_WHY]);
    /* Notes the numbers that a file says, which was decoded. NULL: there are none in such files. */
    bool (*said)(const void *file, size_t n, gp_filemeta *to, char err[GP_WHY]);
    /* NULL when a file of this name can hold such frames, else why not: "PNG holds u8 or ...". */
    const char *(*why_not)(const gp_type *type, const char *path);
    /* A frame, not empty, -> a whole file in `out`, after what is there. */
    bool (*encode)(const void *frame, const gp_type *type, const gp_picfile_how *how, gp_growbuf *out,
                   char err[GP_WHY]);
    /* About how long a core needs for a byte of a frame; to encode one, by compression. 0: hardly any time. For a
     * byte of gray, so many times as long; 0: as long. */
    int decode_ns, encode_ns[10], gray_times;
} gp_picfile;

#define GP_DECLARE_PICTURE(word, constant, ...) extern const gp_picfile constant;
GP_PICTURES(GP_DECLARE_PICTURE)

/* Has a picture the type and the colors of the others, whatever its size? `of`: how a message names them: "the first
 * file". */
bool gp_picfile_alike(const gp_type *found, const gp_type *others, unsigned varies, const char *of, char why[GP_WHY]);

/* Can a file of `size` bytes, which begins with `head`, have the pixels that it says? Else memory is not taken for
 * them. */
bool gp_picfile_can_hold(const gp_picfile_how *how, const char *path, const void *head, size_t n, int64_t size,
                         const gp_type *type, char why[GP_WHY]);

/* A frame of type `t`, with the colors that `how` says. */
gp_type gp_picfile_colored(const gp_picfile_how *how, gp_type t);

/* For shape(): a declared type, of which the axes `varies` are bounds, has room for the colors that `how` says. */
bool gp_picfile_fits_colors(gp_shape *s, const gp_picfile_how *how, const gp_type *declared, unsigned varies);

/* About how long a core needs to decode such a frame; to encode one. */
int64_t gp_picfile_decode_ns(const gp_picfile *p, const gp_picfile_how *how, const gp_type *t);
int64_t gp_picfile_encode_ns(const gp_picfile *p, const gp_type *t, int compression);

/* The same by the row of the file, which is called `path`. */
bool gp_picfile_head(const gp_picfile_how *how, const char *path, const void *head, size_t n, gp_type *type,
                     char err[GP_WHY]);
/* How many bytes of its end change what that found, at most; does it. */
enum { GP_PICFILE_END = 1 << 17 };
bool gp_picfile_has_end(const gp_picfile_how *how, const char *path, const void *head, size_t n);
void gp_picfile_end(const gp_picfile_how *how, const char *path, const void *head, size_t n, const void *end, size_t nend,
                    gp_type *type);
bool gp_picfile_decode(const gp_picfile_how *how, const char *path, const void *file, size_t n, const gp_type *type,
                       void *frame, char err[GP_WHY]);
bool gp_picfile_metadata(const gp_picfile_how *how, const char *path, const void *file, size_t n, gp_filemeta *to,
                     char err[GP_WHY]);
/* As how->format, in place of what is in `out`. */
bool gp_picfile_encode(const gp_picfile_how *how, const void *frame, const gp_type *type, gp_growbuf *out,
                       char err[GP_WHY]);
