/* writer.h - what the files of the kind `write` share: its options, and what it has open.
 *
 * check.c is what can be said before a run; single.c writes one file a frame, by any number of workers; joined.c writes
 * all frames to one file, to standard output or to a process, by one; rotate.c has it begin another file; append.c
 * finds the end of one that is there; ranges.c to one file, by several; ranks.c to one
 * file, by several ranks, and relay.c to standard output, by the first of them; table.c makes rows of frames whose numbers
 * have names. Functions that return bool put into
 * `why` how the sentence goes on that begins with the file's name. */
#pragma once

#include <pthread.h>
#include <sys/stat.h>
#include "base/filetable.h"
#include "picture_file.h"
#include "process.h"
#include "rows_file.h"
#include "video_how.h"
#include "y4m_file.h"

enum { GP_WRITE_RUN = 64 };            /* frames in a call, at most */
enum { GP_REPLACE, GP_REFUSE, GP_NEXT };
enum { GP_NOT_DURABLE, GP_AT_END, GP_FILE_BY_FILE };

/* What stands in a column of a table: something of the frame, or an element of a row of an input. */
typedef struct gp_column {
    enum { GP_COLUMN_INDEX, GP_COLUMN_TIME, GP_COLUMN_NAME, GP_COLUMN_FILE, GP_COLUMN_META, GP_COLUMN_NUMBER } is;
    const char *key;           /* ... of its metadata */
    int port; int64_t at;      /* ... of the input */
} gp_column;

typedef struct gp_write_opts {
    const char *path;          /* of a process the name of its program */
    gp_texts command;
    int format;
    bool stack, live;
    int64_t compression, start, quality, sample_rate, chunk;
    int64_t rotate_frames, rotate_time, rotate_size, keep;
    bool append;
    int if_exists, durable, subsampling, siting, range;
    int64_t bits;
    const char *frame_rate, *pixel_aspect, *member, *codec, *preset;
    double crf;
    int64_t bitrate;
    int colors, matrix;
    gp_texts columns;
    /* found by check() */
    gp_loc at;
    const char *to;            /* the option that says where to: "path", "command" */
    const char *folder;        /* of a process: where it runs */
    gp_filetype as;
    gp_picfile_how pictures;   /* where `as` is one */
    gp_rowsfile_how rows;      /* where it is a list of rows */
    gp_y4m video;              /* where it is one; */
    gp_video_how encode;       /* ... and is encoded */
    bool numbered;             /* has a number: no two frames have one name */
    bool named;                /* has a %n */
    bool timed;                /* has a %t */
    bool resumes;              /* the run may go on from another */
    bool rotates;              /* a joined file is followed by others, and `numbered` or `timed` */
    bool single;               /* one file a frame */
    bool pages;                /* of a TIFF, or pictures of a video that is encoded: each is a frame */
    bool to_stdout;
    bool arrays;               /* to a stream, an array a frame, each with its header */
    int nin;
    gp_column *column;         /* of a table, for each of `columns`; */
    const char *header;        /* ... its first line */
} gp_write_opts;

typedef struct gp_write_worker {
    gp_outfile file;
    gp_growbuf encoded;        /* pictures and text */
    bool writes;               /* a frame, which has the place `at` in the joined file, behind so many rows; */
    size_t at;                 /* ... set, as `rows`, under gp_writer.lock */
    int64_t rows;
} gp_write_worker;

/* A frame of a rank, in the order of frames, as bytes. */
typedef struct gp_write_part { int rank; size_t n; } gp_write_part;

typedef struct gp_write_relay {
    gp_write_part *part; int nparts;   /* what goes on now, of all ranks */
    size_t *has;                       /* ... bytes of each rank; */
    gp_growbuf *all;                   /* ... these, in the first one */
    char *chunk;
} gp_write_relay;

/* A file that this run has finished, as it was then. */
typedef struct gp_write_done { char *path; struct stat st; } gp_write_done;

typedef struct gp_writer {
    const gp_write_opts *o;
    gp_filewriter *files;      /* all that it writes */
    gp_outfile held;           /* the pattern of numbered files */
    char who[128];
    uint64_t first;            /* number of the file of frame 0 */
    int workers;
    int rank;                  /* gp_open.rank */
    int ranks;                 /* that write the joined file together; 1: this one alone */
    bool reached;              /* ... by now this one knows the file */
    gp_write_relay *relay;     /* ... or NULL: it is standard output */
    gp_write_worker *worker;
    gp_type joined;            /* what the joined file holds so far */
    size_t head, size;         /* bytes of its header, and of all that is whole */
    gp_rows_out *rows;         /* of a format that is not plain bytes; NULL: it is, or its first frame says */
    int64_t rate;              /* ... the sample rate; 0: it is not known yet, or an option says it */
    gp_process *process;       /* that reads what is written, or NULL */
    char line[GP_Y4M_LINE];    /* of a video: its header */
    const char *begin;         /* of a video, a table: what is to be written before its first frame; */
    size_t nbegin;             /* its bytes; 0: it was */
    bool began;                /* a frame came, be it one of no rows */
    gp_call *call;             /* the one that writes to a joined file now */
    int room;                  /* ... what gp_wait_for_reader_or_pause() said in it */
    size_t put;                /* ... after a pause: bytes of its frames that are written */
    /* Of joined files that follow each other: */
    char path[PATH_MAX];       /* of the last one */
    uint64_t nfiles;           /* so many were begun, */
    int64_t in_file;           /* ... the last one has so many frames */
    int64_t until;             /* ... and none from this time on */
    gp_write_done *done;       /* the last `keep`, of ndone, in turn; NULL: all are kept */
    uint64_t ndone;
    bool told;                 /* that one stays, which somebody has changed */
    /* Of a run that may be broken off: frames before number `from` are there from an earlier one; what gp_kind.save says,
     * with `lock`: of files that follow each other how many are finished, else bytes, rows and those of the header. */
    uint64_t from;
    gp_saved now;
    bool begun;                /* ... that is known; then, when it is opened, the file */
    bool goes_on;              /* ... goes on from there */
    /* Where several workers write the joined file: */
    bool ranges;               /* they do, each a range of it */
    bool maps;                 /* they copy into it through mappings */
    pthread_mutex_t lock;      /* of `began`, `end`, of ranges */
    size_t end;                /* of the last range, */
    int64_t rows_end;          /* in rows */
    pthread_mutex_t settling;  /* of `size` and `joined`, which only grow over ranges that lie one behind the other */
} gp_writer;

/* check.c: of the kind. */
bool gp_write_check(gp_shape *s);
bool gp_write_shape(gp_shape *s);
bool gp_write_is_pictures(const gp_write_opts *o);
/* Rows as text, bytes that need nothing before or behind them; a file that its format makes, by
 * create(). */
bool gp_write_is_text(const gp_write_opts *o);
bool gp_write_creates(const gp_write_opts *o);
bool gp_write_is_video(const gp_write_opts *o);
/* A video that is not encoded: bytes of frames, with others before them. */
bool gp_write_begins(const gp_write_opts *o);
bool gp_write_is_folder(const gp_write_opts *o);

/* A file begins, whose frames are like this: what is to be written before the first. */
void gp_writer_begin(gp_writer *w, const gp_type *frame);

/* Opens a file; of a FIFO it waits for the reader. GP_OK; GP_STOPPED; GP_AGAIN; GP_FAILED with
 * `why`. */
gp_status gp_writer_reach(gp_call *c, gp_outfile *f, const char *path, char why[GP_WHY]);

/* single.c: before frame 0, whose files these are, and the number of the first. */
bool gp_writer_hold(gp_writer *w, char why[GP_WHY]);
bool gp_writer_find_first(gp_writer *w, char why[GP_WHY]);
/* Writes a frame, and sets its status. False: no further frame could be written either. */
bool gp_writer_single(gp_writer *w, gp_call *c, gp_frame *f);

/* single.c: the path of a file for this frame, and those behind it; `path` is empty after an error that is the pattern's. */
bool gp_writer_name(const gp_writer *w, const gp_frame *f, uint64_t number, char path[PATH_MAX], char why[GP_WHY]);

/* rotate.c: of an open file that has so many frames and bytes with this one: does the frame belong into the next? */
bool gp_rotate_due(const gp_writer *w, const gp_frame *f, int64_t before, size_t bytes);
/* Opens a file for the frame, which takes `bytes`, where none is open or it belongs into the next. */
bool gp_rotate(gp_writer *w, gp_call *c, const gp_frame *f, size_t bytes, char why[GP_WHY]);
/* A file has its name. Removes the one that `keep` has no more. */
bool gp_rotate_done(gp_writer *w, gp_call *c, char why[GP_WHY]);
void gp_rotate_close(gp_writer *w);

/* append.c: opens the file where it is there, to go on at its end, which has to be that of frames of w->joined. None is
 * open else. */
bool gp_append_open(gp_writer *w, const char *path, char why[GP_WHY]);

/* joined.c: the sample rate of a recording where no option says it (`*rate` is 0): by its frame's numbers. Of other
 * files it stays 0. */
bool gp_writer_rate(const gp_write_opts *o, const gp_filemeta *said, int64_t *rate, char why[GP_WHY]);
/* The file for all frames, of which w->joined.dim[0] rows are there; it gets its name, and is closed. */
bool gp_writer_open_joined(gp_writer *w, const char *path, const gp_type *frame, char why[GP_WHY]);
bool gp_writer_close_joined(gp_writer *w, char why[GP_WHY]);
bool gp_writer_join(gp_writer *w, gp_call *c, gp_frame *f, int n);
bool gp_writer_finish(gp_call *c);
/* An input of a frame that has not as many rows as it has to: all, where frames are stacked, are pages or video; in a
 * table those of the first. NULL: there is none. */
const gp_view *gp_writer_misfit(const gp_write_opts *o, const gp_frame *f);
/* Can a frame be a row of a stacked file? Else an error is added. */
bool gp_writer_stacks(const gp_writer *w, gp_call *c, const gp_frame *f);
/* Adds a frame as text. */
bool gp_writer_spell(const gp_writer *w, const gp_call *c, const gp_frame *f, gp_growbuf *to, char why[GP_WHY]);
/* Writes the header of the joined file as it now is; its length stays the same. */
bool gp_writer_put_header(gp_writer *w, char why[GP_WHY]);

/* table.c: what `columns` says, as far as it does not depend on frames; the rest; the same as gp_writer_spell. Does an open
 * file of so many bytes begin as such a table, and end with a row? */
bool gp_table_check(gp_shape *s);
bool gp_table_shape(gp_shape *s);
bool gp_table_spell(const gp_write_opts *o, const gp_call *c, const gp_frame *f, gp_growbuf *to, char why[GP_WHY]);
bool gp_table_ends(const gp_write_opts *o, int fd, int64_t size, char why[GP_WHY]);

/* ranges.c: the same by several workers. When it is open; of each frame, in order; once it has its range; what stays
 * of a file that does not come to its end. */
void gp_ranges_open(gp_writer *w);
void gp_ranges_reserve(gp_call *c, const gp_frame *f);
bool gp_ranges_write(gp_writer *w, gp_call *c, gp_frame *f);
void gp_ranges_cut(gp_writer *w);
/* Fills a range of the file. */
bool gp_ranges_put(const gp_writer *w, const char *data, size_t n, size_t at, char why[GP_WHY]);

/* ranks.c: the same by several ranks, of which the first has opened it. As gp_writer_join; and in finish(): may the
 * file get its name, here? It is whole then. False with or without an error. */
bool gp_ranks_write(gp_writer *w, gp_call *c, gp_frame *f, int n);
bool gp_ranks_finish(gp_writer *w, gp_call *c);
/* gp_kind.skipped: this rank has no frame there. */
bool gp_ranks_skip(gp_call *c, uint64_t index);

/* relay.c: to standard output. False: no memory. */
bool gp_relay_open(gp_writer *w);
void gp_relay_close(gp_writer *w);
/* Adds to worker[0].encoded, where this rank puts together what it sends. */
bool gp_relay_add(gp_writer *w, const void *data, size_t n, char why[GP_WHY]);
/* Brings the parts to the first rank, which writes them; `mine`: those of this one. All ranks call it with the same
 * parts. GP_OK; GP_STOPPED: the run is over, or has an error; GP_FAILED with `why`. */
gp_status gp_relay(gp_writer *w, gp_call *c, const char *mine, char why[GP_WHY]);
