/* reader.h - what the files of the kind `read` share: its options, and what it has open.
 *
 * look.c finds out, for shape(), which files there are and what is in them; files.c makes frames of files, by all
 * workers; stream.c makes them of a FIFO, of standard input or of what a process writes, by one; ahead.c reads such a
 * stream on a thread of its own, which does not wait for anybody. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include "cut.h"
#include "pace.h"
#include "picture_file.h"
#include "process.h"
#include "rows_file.h"

enum { GP_READ_HEAD = 12 + (1 << 16) };        /* bytes that the header of a .npy or a picture may have */
enum { GP_READ_AT_ONCE = 32 };                 /* frames */
enum { GP_LITTLE, GP_BIG };
enum { GP_STORED_SAME, GP_STORED_CI8, GP_STORED_CI16 };
enum { GP_TAIL_ERROR, GP_TAIL_IGNORE, GP_TAIL_DROP };
enum { GP_ORIENTATION_APPLY, GP_ORIENTATION_KEEP };
enum { GP_FULL_WAIT, GP_FULL_DROP };
enum { GP_POINT, GP_COMMA };
enum { GP_MISSING_HOLE, GP_MISSING_SKIP, GP_MISSING_ERROR };

typedef struct gp_read_opts {
    const char *path, *member; /* path: of a process the name of its program */
    gp_texts command;
    int format, stored, endian, tail, orientation, colors, shrink, when_full, missing; /* shrink: how often by two */
    int header, decimal, range;
    int64_t offset, skip, start, every, frames, shuffle, sample_rate, max_pixels, stream, level; /* shuffle: -1: not */
    bool loop, reopen, strict;
    double rate;
    /* found by shape() */
    gp_loc at, start_at;
    const char *from;          /* the option that names what is read: "path", "command" */
    const char *folder;        /* of a process: where it runs */
    gp_filetype as;
    gp_picfile_how pictures;   /* where `as` is one */
    gp_rowsfile_how rows;      /* where it is a list of rows */
    bool whole;                /* its bytes, whatever is in them */
    bool live;                 /* a stream: `file` is not a regular file */
    bool same_rows;            /* the frame's shape is that of the first file */
    unsigned varies;           /* as declared, found, or of whole files: not 0, then each file is one frame, of its own shape */
    int looked;                /* where it was found in pictures: in how many */
    bool says_dtype, says_shape;       /* 'buffers' declares it */
    const char *const *file;
    int nfiles;
    const int *numbered; int numbers;  /* of files whose numbers decide: which file has the lowest number + i, or -1 */
    uint64_t lowest, first_gap;        /* the lowest number that a file has; and between others that none has, */
    int gaps;                          /* ... of so many */
    int64_t pieces;            /* ... and where files are cut: the frames of each */
} gp_read_opts;

typedef struct gp_piece_file { /* a file that is cut into pieces */
    int fd, users;             /* users 0: it is not open */
    gp_cut cut;
    gp_rows *rows;             /* NULL: its rows are plain bytes, */
    gp_columns *columns;       /* ... or those of columns; or NULL */
} gp_piece_file;

typedef struct gp_read_worker {
    gp_growbuf room;           /* a header, a picture, or what is skipped of a stream */
    gp_piece_file whole;       /* where a file is one frame */
    gp_rows_own own;           /* where files are lists of rows */
    gp_filemeta said;              /* the numbers that its file says of the frame */
    char fault[GP_WHY];        /* what is wrong with a list of rows that was opened for it; or "" */
    bool none;                 /* no further frame could be made either */
} gp_read_worker;

typedef struct gp_came {       /* what a stream gave for a frame */
    gp_status status;          /* GP_OK; GP_DROP; GP_END; GP_STOPPED; GP_AGAIN: it is not there yet; GP_FAILED, with */
    int error;                 /* ... why it cannot be opened; 0: it is, and */
    char why[GP_WHY];          /* ... goes on after its name; */
    bool none;                 /* ... no further frame could be made either */
    int64_t rows;
    uint64_t lost;             /* frames before it for which there was no room: holes, as GP_DROP says */
    int64_t time_ns, came_ns;  /* CLOCK_REALTIME, CLOCK_MONOTONIC; 0: now */
} gp_came;

typedef struct gp_ahead gp_ahead;

typedef struct gp_reader {
    const gp_read_opts *o;
    gp_type most;              /* a whole frame */
    char **name;               /* per file; live: one: without its extension, and behind the NUL of that with it */
    gp_read_worker *worker;
    int workers;
    gp_pace pace;
    _Atomic bool gaps_told;    /* the warning of numbers that no file has */
    _Atomic uint64_t good;     /* 1 more than the last pass over the files that made a frame */
    /* Files in pieces. How many a file has is known once it is open, so workers find their pieces in the order of
     * frames, by turns, and then read them at the same time: */
    pthread_mutex_t lock;      /* of all below */
    pthread_cond_t turn;
    uint64_t ranks;            /* gp_open.ranks */
    uint64_t next;             /* the frame that is to be found, of all ranks; */
    uint64_t over;             /* none is from here on */
    int file;                  /* its file, */
    int64_t piece;             /* its number there, */
    int number;                /* what stands for it in o->numbered, */
    int64_t holes;             /* frames before it, of files that are missing, */
    uint64_t pass;             /* the pass over the files, */
    bool any;                  /* which has had a frame */
    gp_piece_file *now;        /* NULL: `file` is not open */
    gp_piece_file *open;       /* one for each worker, and `now` */
    /* A stream. */
    gp_process *process;       /* whose it is, or NULL */
    gp_came held;              /* .none: how it ended, to be said once the frames before are handed in */
    int fd;                    /* -1: it is not open */
    bool ended;
    int64_t part;              /* of raw data that ended within a frame: the rows that this has, which are to be told */
    bool lingers;              /* its process has not, and that was said */
    bool begun;                /* of a video: its header was read */
    gp_cut array;              /* of .npy: how the present array is cut, and which piece is next */
    int64_t next_piece;
    int64_t before;            /* bytes to skip before the next frame's `skip` */
    int64_t there;             /* bytes that can be read without waiting, at least */
    bool midway;               /* something of the next frame has been read */
    gp_ahead *ahead;           /* NULL: who wants a frame reads it */
} gp_reader;

/* Which frame of the files frame `index` of the stage is. */
static inline uint64_t gp_read_frame(const gp_read_opts *o, uint64_t index)
{
    return (uint64_t)o->start + index * (uint64_t)o->every;
}

/* look.c: of the kind; fills in what is found, and the output's type. */
bool gp_read_shape(gp_shape *s);
bool gp_read_is_pictures(const gp_read_opts *o);
bool gp_read_is_rows(const gp_read_opts *o);
bool gp_read_is_video(const gp_read_opts *o);
gp_cut_how gp_read_cut(const gp_read_opts *o);
/* As which type the elements of such frames lie in the file, where an element of pairs has fewer bytes. */
gp_type gp_read_stored(const gp_read_opts *o, const gp_type *frame);

/* Who says what a picture has to be. */
static inline const char *gp_read_who_says(const gp_read_opts *o, bool declared)
{
    return declared ? "and 'buffers' declares" : o->looked ? "the first files" : "the first file";
}

/* The frame is of this file. */
static inline void gp_read_name(const gp_reader *r, const gp_call *c, gp_frame *f, int file)
{
    f->name = r->name[file];
    gp_frame_set_file(c, f, f->name + strlen(f->name) + 1);
}

/* files.c: makes frame f->index, and where these are plain bytes behind it those that follow, of at most `most`; *n is
 * how many. f->status is the caller's to set. */
gp_status gp_reader_file(gp_reader *r, gp_call *c, gp_frame *f, int most, int *n);
/* No frame is from `frame` on: no worker waits for its turn. */
void gp_reader_over(gp_reader *r, uint64_t frame);
void gp_piece_release(gp_piece_file *f);

/* stream.c: the next frame of the stream; `first`: of this call, otherwise GP_AGAIN where it is not there as a
 * whole. */
gp_status gp_reader_stream(gp_reader *r, gp_call *c, gp_frame *f, bool first);
/* The next frame of a stream, in `to`; `c` is NULL on the thread of ahead.c. */
gp_came gp_stream_next(gp_reader *r, gp_call *c, void *to, bool first);

/* ahead.c: NULL: no memory, or no more open files. The thread begins with the first frame that is asked for. */
gp_ahead *gp_ahead_new(gp_reader *r);
gp_came gp_ahead_take(gp_ahead *a, gp_call *c, void *to, bool first);
/* Waits until r->fd can be read; false: nobody wants it any more. */
bool gp_ahead_wait(gp_ahead *a, int fd);
/* How many frames were dropped in all, now that no more are wanted. */
uint64_t gp_ahead_end(gp_ahead *a, gp_call *c);
void gp_ahead_free(gp_ahead *a);                       /* accepts NULL */
