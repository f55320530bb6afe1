/* rows_file.h - files that are a list of rows, behind a library's or our own reader.
 *
 * A recording or a table of numbers: (rows) or (rows, columns), of which any rows can be read. Such files are cut along
 * axis 0 into frames, as those of .npy are (cut.h), whose bytes stand at no offset. Errors are as in files.h. */
#pragma once

#include "cut.h"
#include "filemeta.h"

/* Is the first line of a text a header? */
enum { GP_HEADER_AUTO, GP_HEADER_YES, GP_HEADER_NO };

typedef struct gp_rowsfile gp_rowsfile;

/* Options say this of such files. */
typedef struct gp_rowsfile_how {
    const gp_rowsfile *as;     /* for head() and open(): whose they are, and of which type elements are to be; 0: as it is stored */
    gp_dtype dtype;
    gp_filetype format;        /* of a reader GP_AUTO: as the file says */
    int64_t sample_rate;       /* Hz; of a reader 0: any */
    int quality;               /* 1 to 100 */
    const char *member;        /* of an archive: which; NULL or "": the only one, and of a writer NumPy's name */
    bool stack;                /* of a writer: a frame is one of the file's rows */
    bool strict;               /* of a reader: faults are errors that no row suffers from */
    bool keep_orientation;     /* pixels as they are stored, whatever side is said to be up */
    int64_t max_pixels;        /* of a reader of pictures: more are an error; 0: any */
    int compression;           /* 0 to 9 */
    bool alone;                /* of a writer: there is one frame */
    int range;                 /* of a reader of video, as gp_y4m has it; */
    int colors, stream;        /* ... as gp_picfile_how has it; which of a file's streams: negative: the best */
    int64_t level;             /* of a reader of what has several: which */
    int64_t chunk;             /* of a writer: rows that are compressed at once; 0: those of a frame */
    int header;                /* of a reader of CSV; */
    uint64_t header_line;      /* ... where that is `auto`: by head() of the first file its header, or that it has none; 0: not known */
    bool decimal_comma;        /* ... its numbers are 3,5, and no comma separates them */
    int64_t narrow;            /* bytes of a file in which places have 32 bits; 0: 4 GiB */
    const char *const *key; int nkeys; /* of a reader: the names of numbers that the pipeline lists */
    const struct gp_y4m *video;        /* of a writer of video: what the header of a .y4m says, */
    const struct gp_video_how *encode; /* ... and of another one, how it is encoded */
} gp_rowsfile_how;

/* An open file that is read: the first member of a format's own struct, which all workers share. */
typedef struct gp_rows {
    const gp_rowsfile *as;
    gp_type whole;             /* of all rows */
    uint64_t serial;           /* of its opening */
    bool in_order;             /* rows can be read one after the other only, and by one at a time */
    int64_t came;              /* of take(), with GP_END: how many there were */
    gp_filemeta said;              /* the numbers that the file says of all rows */
    char fault[GP_WHY];        /* what is wrong with the file, though its rows are whole; or "" */
} gp_rows;

/* A worker keeps this from read to read. Zeroed before first use. */
typedef struct gp_rows_own {
    void *own;
    const gp_rowsfile *as;
    uint64_t serial;           /* of whose opening it is */
} gp_rows_own;

/* A file that is written: the first member of a format's own struct. 1 thread. */
typedef struct gp_rows_out {
    const gp_rowsfile *as;
    const gp_filemeta *said;       /* the numbers of the frame whose rows are added next, for those that can; or NULL */
} gp_rows_out;

/* The beginning of a file: the first n of its `size` bytes. */
typedef struct gp_rows_head {
    const void *data;
    size_t n;
    int64_t size;
    /* Bytes of it from anywhere: how many were there, -1 with errno. NULL: there are none but these. */
    int64_t (*more)(void *user, int64_t at, void *to, size_t n);
    void *user;
    /* The same of a file in what is a folder, and has no bytes itself. NULL: it is none. */
    int64_t (*beside)(void *user, const char *name, int64_t at, void *to, size_t n);
    char *note;                /* NULL; else GP_WHY bytes, empty: for what was guessed, in words behind the file's name */
    uint64_t *header_line;     /* NULL; else 0: for what later files are compared with */
} gp_rows_head;

/* Bytes of a file from `at` on: of the open one, or where fd is negative of what its beginning has or gives. How many
 * were there, -1 with errno. */
int64_t gp_rows_bytes(int fd, const gp_rows_head *h, int64_t at, void *to, size_t n);

/* A format's own struct for a file that is open, zeroed, and the size of that; NULL: an error. */
void *gp_rows_new(size_t bytes, int fd, int64_t *size, char err[GP_WHY]);

struct gp_rowsfile {
    const char *name;                  /* as in messages: "WAV" */
    const char *magic[9], *options[16]; /* each ends with NULL; magic: first bytes, of which '?' is any; options: those
                                          of readers and writers that it takes */
    bool is_array;                     /* where nothing is declared, each index of axis 0 is a frame, as of a .npy; one that is
                                          written can be stacked, */
    bool pages;                        /* ... and each frame is a row, also where there are many files; so is one that is
                                          written */
    bool by_turns;                     /* most such files are read in order, by one worker at a time */
    const char *program;               /* NULL; of a stream, which is not read: a command that makes raw data of FILE */
    bool is_folder;                    /* so is each such file, and `fd` below leads to one */
    bool is_video;                     /* each index of axis 0 is a frame, which is never cut or put together */
    /* About how long a core needs for a byte of a frame, where several may read at the same time; 0: hardly any. */
    int decode_ns, encode_ns[10];      /* the latter by compression */
    /* The type of the whole file. dim[0] is -1 where the head does
     * not say how many rows there are; all is 0 where it says nothing at all. */
    bool (*head)(const gp_rows_head *h, const gp_rowsfile_how *how, gp_type *whole, char err[GP_WHY]);
    /* Can so many of its rows make a frame, by what it says they are? NULL: any number can. */
    bool (*cuts)(const gp_rows_head *h, const gp_rowsfile_how *how, int64_t rows, char err[GP_WHY]);
    /* The same as head() of a file that is open and stays so. NULL: an error. */
    gp_rows *(*open)(int fd, const gp_rowsfile_how *how, char err[GP_WHY]);
    /* Reads `n` rows, which are there by `whole`. Any thread, each with an `*own` of its own, NULL at first; of a file
     * in order one thread at a time, each row once. */
    bool (*read)(gp_rows *f, void **own, int64_t first, int64_t n, void *to, char err[GP_WHY]);
    /* NULL, else of a file in order, one thread at a time, rows behind the one before: what read() makes this row of, at
     * any time and with the same `own`. GP_OK; GP_STOPPED; GP_FAILED: of this row; GP_END: there are only `came`, and
     * what is in `err`, which was empty, is a warning. So is what read() has in it then. */
    gp_status (*take)(gp_rows *f, void **own, int64_t row, gp_call *c, char err[GP_WHY]);
    /* Notes the numbers that the file says of one row alone. Any thread, after read(). NULL: there are none. */
    bool (*said)(gp_rows *f, void *own, int64_t row, gp_filemeta *to, char err[GP_WHY]);
    void (*leave)(void *own);          /* the file may be closed by now */
    void (*close)(gp_rows *f);

    /* NULL when a file of this name can hold such frames, else why not: "WAV holds ...". */
    const char *(*why_not)(const gp_type *type, const char *path);
    /* Writers have begin() and `before`, or encode(), or the three below it, or none of them. With the first a file is
     * the bytes of frames: begin() makes what stands before the first of them, at most 1 KiB, and says how long that
     * is; `before` stands before each. */
    size_t (*begin)(const gp_rowsfile_how *how, const gp_type *frame, char to[1024]);
    const char *before;
    /* A frame -> what stands for its rows in a file, after what is in `out`: a file is nothing but that. */
    bool (*encode)(const gp_rowsfile *as, const void *frame, const gp_type *type, gp_growbuf *out, char err[GP_WHY]);
    /* Of what is a folder: may it replace what is at `path`, a folder, too? */
    bool (*may_replace)(const char *path, char err[GP_WHY]);
    char separator;                    /* of text: what stands between numbers that are written; 0: JSON */
    /* NULL, else with create(): can a file of this name be made so? What was chosen where the best is not there is in `note`,
     * or "". */
    bool (*fits)(const gp_rowsfile_how *how, const char *path, char note[GP_WHY], char err[GP_WHY]);
    /* Begins a new, empty file, which is called `path` and stays open until it is finished: for frames of this type.
     * NULL: an error. */
    gp_rows_out *(*create)(int fd, const gp_rowsfile_how *how, const gp_type *frame, const char *path,
                           char err[GP_WHY]);
    /* Adds rows. After an error, errno says whether a file system was to blame, and no more is added. */
    bool (*append)(gp_rows_out *o, const void *rows, int64_t n, char err[GP_WHY]);
    /* Makes the file whole; `o` is gone, also after an error. */
    bool (*finish)(gp_rows_out *o, char err[GP_WHY]);
};

#define GP_DECLARE_ROWS(word, constant, ...) extern const gp_rowsfile constant;
GP_ROWS(GP_DECLARE_ROWS)

/* The same of a file of format `as`, or of another one of the same reader (recordings are). `frame`: of those that it
 * is to be cut into, as far as that is known. */
bool gp_rowsfile_head(const gp_rowsfile_how *how, gp_filetype as, const gp_rows_head *h, const gp_type *frame,
                      gp_type *whole, char err[GP_WHY]);
gp_rows *gp_rowsfile_open(const gp_rowsfile_how *how, gp_filetype as, int fd, const gp_type *frame, char err[GP_WHY]);
/* Where a file is one frame, of `ndim` axes: makes the type of the whole that of the frame. False: it is several. */
bool gp_rowsfile_one(gp_type *whole, const gp_rowsfile *as, int ndim, char err[GP_WHY]);
/* As gp_type_text; "rows of f32 [2]" where it is not known how many there are. */
char *gp_rowsfile_text(const gp_type *whole, char buf[128]);
gp_status gp_rowsfile_take(gp_rows *f, gp_rows_own *w, int64_t row, gp_call *c, char err[GP_WHY]);
bool gp_rowsfile_read(gp_rows *f, gp_rows_own *w, int64_t first, int64_t n, void *to, char err[GP_WHY]);
/* The numbers that it says of a row that was read. */
bool gp_rowsfile_metadata(gp_rows *f, const gp_rows_own *w, int64_t row, gp_filemeta *to, char err[GP_WHY]);
void gp_rowsfile_leave(gp_rows_own *w);
void gp_rowsfile_close(gp_rows *f);
