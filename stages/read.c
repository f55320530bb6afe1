/* read.c - frames from files, a FIFO or standard input.
 *
 * shape() finds out what the files hold; run() looks again and checks that this has not
 * changed. Raw and .npy data are read straight into the slot. Where a file is one frame, a
 * frame's number says which. Files that are cut into pieces are opened one after the other,
 * since each says how many it has; then its pieces are read at the same time by all workers.
 * A file that cannot be opened costs one frame: the next is from the next file. A piece that
 * cannot be read costs its own, so that numbers depend on what files say when they are opened. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cut.h"
#include "base/npy.h"
#include "pace.h"
#include "picture_file.h"

enum { MAX_RUN = 32, RUN_BYTES = 1 << 20, HEAD = 12 + (1 << 16) };
enum { LITTLE, BIG };
enum { TAIL_ERROR, TAIL_IGNORE };
enum { ORIENTATION_APPLY, ORIENTATION_KEEP };

struct opts {
    const char *path;
    int format, endian, tail, orientation;
    int64_t offset, skip, frames;
    bool loop, reopen;
    double rate;
    /* found by shape() */
    gp_loc at;
    gp_filetype as;
    gp_picfile_how pictures;   /* where `as` is one */
    bool live;                 /* a stream: `file` is not a regular file */
    bool same_rows;            /* the frame's shape is that of the first file */
    unsigned varies;           /* as declared: not 0, then each file is one frame, of its own shape */
    const char *const *file;
    int nfiles;
};

static bool is_pictures(const struct opts *o)
{
    return o->as >= GP_PICTURE;
}

static gp_cut_how how(const struct opts *o)
{
    return (gp_cut_how){ o->offset, o->skip, o->tail == TAIL_IGNORE };
}

/* ---- which files ----------------------------------------------------- */

/* Fills in file, nfiles, live. *many: a glob or numbered. False: ask again, or
 * an error was added. */
static bool list_files(gp_shape *s, struct opts *o, const gp_file **first, bool *many)
{
    o->nfiles = 0;
    *first = NULL;
    *many = false;
    if (!strcmp(o->path, "stdin")) {
        static const char *const file[] = { "/dev/stdin" };    /* it may be any file */
        gp_shape_reads(s, file, 1);
        o->live = true;
        return true;
    }
    bool glob = gp_path_is_glob(o->path), numbered = gp_path_has_number(o->path);
    if (glob || numbered) {
        *many = gp_probe_file(s, o->path)->error != 0;     /* a file may be called 'a[1].npy' */
    }
    if (!*many) {
        const char **file = gp_shape_alloc(s, sizeof *file);
        file[0] = o->path;
        o->file = file, o->nfiles = 1;
    } else {
        const gp_files *all = gp_probe_glob(s, o->path);
        o->file = all->path, o->nfiles = all->n;
    }
    if (!o->nfiles)
        return gp_shape_missing(s, "path", "no file matches '%s'%s", o->path, glob && numbered
                                ? ": beside a number, *, ? and [ mean themselves" : "");
    *first = gp_probe_file(s, o->file[0]);
    gp_shape_reads(s, o->file, o->nfiles);
    if ((*first)->error)
        return gp_shape_missing(s, "path", "cannot read '%s': %s%s", o->file[0],
                                strerror((*first)->error), !gp_path_lacks_zero(o->file[0]) ? ""
                                : "; a number is %d, or with its digits %05d");
    if ((*first)->kind == GP_FILE_DIR)
        return gp_shape_fail(s, "path", "'%s' is a folder: say which of its files, as in "
                                        "'%s/*.npy'", o->file[0], o->file[0]);
    o->live = (*first)->kind == GP_FILE_STREAM;
    return true;
}

/* ---- what is in them ------------------------------------------------- */

/* What the files are: what `format` says, else the extension of `name`, which is the path or, for
 * a glob of any extension, the first file. */
static bool say_format(gp_shape *s, struct opts *o, const char *name)
{
    const char *dot = strrchr(name, '.');
    bool open = !o->format && name == o->path && gp_path_is_glob(dot ? dot : name);
    o->as = o->format ? (gp_filetype)o->format : gp_filetype_of(name);
    o->pictures = (gp_picfile_how){ .format = (gp_filetype)o->format,
                                    .keep_orientation = o->orientation == ORIENTATION_KEEP };
    if (o->varies & ~1u && o->as == GP_RAW && !open)
        return gp_shape_fail(s, "path", "raw data do not say what their shape is: in the shape of what is read from "
                             "'%s' only the first number may be a bound ('<=')", o->path);
    return o->format || !gp_foreign_extension(name)
        || gp_shape_fail(s, "path", "gpipe reads no %s files; make it .npy or .png, or set "
                         "'format: raw' to read its bytes", gp_foreign_extension(name));
}

static bool raw_only(gp_shape *s, const struct opts *o)
{
    const char *opt = o->offset           ? "offset"
                    : o->skip             ? "skip"
                    : o->endian != LITTLE ? "endian"
                                          : NULL;
    if (o->as != GP_RAW && opt)
        return gp_shape_fail(s, opt, "'%s' is only for raw data, not for '%s'", opt, o->path);
    if (!is_pictures(o) && !gp_shape_without(s, "orientation", "a file that is not a picture"))
        return false;
    if (is_pictures(o) && o->tail != TAIL_ERROR)
        return gp_shape_fail(s, "tail", "'tail' is only for raw and .npy data, not for '%s'",
                             o->path);
    return true;
}

static bool declared(gp_shape *s, const char *path)
{
    const gp_type *t = &s->out[0];
    return (t->dtype && t->ndim)
        || gp_shape_fail(s, "path", "raw data do not say what they are: declare dtype and shape "
                                    "of what is read from '%s' under 'buffers:'", path);
}

/* Is a file's frame one of those that are declared with bounds? */
static bool fits_in(const gp_type *found, const gp_type *most, unsigned varies, char why[GP_WHY])
{
    char have[128], want[GP_BOUNDS_TEXT];
    bool fits = found->dtype == most->dtype && found->ndim == most->ndim;
    for (int k = 0; fits && k < found->ndim; k++)
        fits = varies >> k & 1 ? found->dim[k] <= most->dim[k] : found->dim[k] == most->dim[k];
    return fits || gp_why(why, "holds %s, which does not fit in %s", gp_type_text(found, have),
                          gp_bounds_text(most, varies, want));
}

/* The type of a frame, from the head of the first file and the declaration. */
static bool look_inside(gp_shape *s, struct opts *o, const gp_file *f, bool many)
{
    gp_type *t = &s->out[0], found = { 0 };
    gp_cut cut;
    gp_cut_how as = how(o);
    char why[GP_WHY], have[128], want[128];
    bool ok = true, fortran;
    size_t data;

    o->same_rows = o->as == GP_NPY && many && !t->ndim;
    if (o->varies) {
        if (o->as == GP_RAW && !declared(s, f->path))
            return false;
        if (o->as != GP_RAW)
            ok = is_pictures(o) ? gp_picfile_head(&o->pictures, f->path, f->head, f->nhead, &found, why)
                                : gp_npy_parse(f->head, f->nhead, &found, &data, &fortran, why);
        if (!t->dtype)
            t->dtype = found.dtype;
        ok = ok && (o->as == GP_RAW || fits_in(&found, t, o->varies, why));
    } else if (o->as == GP_RAW) {
        if (!declared(s, f->path))
            return false;
        ok = gp_cut_raw(&cut, f->size, t, &as, why);
    } else if (o->as == GP_NPY) {
        ok = gp_npy_parse(f->head, f->nhead, &found, &data, &fortran, why)
          && (!t->dtype || t->dtype == found.dtype
              || gp_why(why, "holds %s, and 'buffers' declares %s", gp_dtype_name(found.dtype),
                        gp_dtype_name(t->dtype)))
          && gp_cut_infer(t, &found, many, why)
          && gp_cut_npy(&cut, f->head, f->nhead, f->size, t, &as, why);
    } else {
        ok = gp_picfile_head(&o->pictures, f->path, f->head, f->nhead, &found, why);
        gp_type said = { .dtype = t->dtype ? t->dtype : found.dtype,
                         .ndim = t->ndim ? t->ndim : found.ndim };
        memcpy(said.dim, t->ndim ? t->dim : found.dim, sizeof said.dim);
        if (ok && !gp_type_same(&said, &found))
            ok = gp_why(why, "holds %s, and 'buffers' declares %s", gp_type_text(&found, have),
                        gp_type_text(&said, want));
        if (ok)
            *t = found;
    }
    if (!ok)
        return gp_shape_fail(s, "path", "'%s' %s", f->path, why);
    /* how many there are, where that shows in the first file */
    int64_t each = is_pictures(o) || o->same_rows || o->varies ? 1
        : o->nfiles == 1 ? (cut.rows + cut.frame_rows - 1) / cut.frame_rows
                         : 0;
    int64_t all = each * o->nfiles;
    s->busy_ns = is_pictures(o) ? gp_picfile_of(o->as)->decode_ns * (int64_t)gp_bytes(t) : 0;
    s->known.frames = o->loop || (o->frames && o->frames < all) ? o->frames : all;
    return true;
}

static bool shape(gp_shape *s)
{
    struct opts *o = (struct opts *)s->opts;   /* its last fields are shape()'s */
    const gp_file *first;
    bool many;

    o->at = gp_shape_loc(s, "path");
    o->varies = s->out_varies[0];
    if (!say_format(s, o, o->path))
        return false;
    s->endless = (o->loop || o->reopen) && !o->frames;
    s->known.hertz = o->rate;
    if (!list_files(s, o, &first, &many) || (many && o->nfiles && !say_format(s, o, o->file[0]))
        || !raw_only(s, o))
        return false;
    s->once = o->live;
    s->by_number = !o->live;
    if (o->live && s->workers > 1)
        return gp_shape_fail(s, "workers", "'%s' is a stream, whose frames come one after the other: it has one worker",
                             o->path);
    if (o->reopen && (!o->live || !o->nfiles))
        return gp_shape_fail(s, "reopen", "'reopen' waits for the next writer of a FIFO, which '%s' "
                             "is not", o->path);
    if (o->live) {
        if (o->as != GP_RAW)
            return gp_shape_fail(s, "path", "'%s' is a stream, and only raw data can be read from "
                                            "one: set 'format: raw'", o->path);
        if (o->loop)
            return gp_shape_fail(s, "loop", "'%s' is a stream and cannot be read twice%s", o->path,
                                 o->nfiles ? ": 'reopen' waits for its next writer" : "");
        return declared(s, o->path);
    }
    return !first || first->error || look_inside(s, o, first, many);
}

/* ---- running --------------------------------------------------------- */

struct piece_file {            /* a file that is cut into pieces */
    int fd, users;             /* users 0: it is not open */
    gp_cut cut;
};

struct worker {                /* one worker's */
    gp_growbuf room;           /* a header, a picture, or what is skipped of a stream */
    struct piece_file whole;   /* where a file is one frame */
    bool none;                 /* no further frame could be made either */
};

struct reader {
    const struct opts *o;
    gp_type most;              /* a whole frame */
    char **stem;               /* per file; live: one */
    struct worker *worker;
    int workers;
    gp_pace pace;
    _Atomic uint64_t good;     /* 1 more than the last pass over the files that made a frame */
    /* Files in pieces. How many a file has is known once it is open, so workers find their pieces in the order of
     * frames, by turns, and then read them at the same time: */
    pthread_mutex_t lock;      /* of all below */
    pthread_cond_t turn;
    uint64_t next;             /* the frame that is to be found; */
    uint64_t over;             /* none is from here on */
    int file;                  /* its file, */
    int64_t piece;             /* its number there, */
    uint64_t pass;             /* the pass over the files, */
    bool any;                  /* which has had a frame */
    struct piece_file *now;    /* NULL: `file` is not open */
    struct piece_file *open;   /* one for each worker, and `now` */
    /* A stream. */
    int fd;                    /* -1: it is not open */
    bool ended;
    int64_t before;            /* bytes to skip before the next frame's `skip` */
};

/* Where a frame is. */
struct place {
    int file;
    uint64_t pass;             /* over the files */
    bool first;                /* of its pass */
    struct piece_file *in;     /* NULL: the file is one frame */
    int64_t piece;
    bool none;                 /* there are none to be repeated */
};

static void release(struct piece_file *f)
{
    if (f && !--f->users)
        close(f->fd);
}

static void close_reader(void *state)
{
    struct reader *r = state;
    if (!r)
        return;
    if (r->fd > STDIN_FILENO)
        close(r->fd);
    if (r->open)
        release(r->now);
    for (int i = 0; r->stem && r->stem[i]; i++)
        free(r->stem[i]);
    for (int i = 0; r->worker && i < r->workers; i++)
        free(r->worker[i].room.data);
    pthread_cond_destroy(&r->turn);
    pthread_mutex_destroy(&r->lock);
    free(r->stem);
    free(r->worker);
    free(r->open);
    free(r);
}

static bool open_reader(const gp_open *g, void **state)
{
    const struct opts *o = g->opts;
    struct reader *r = calloc(1, sizeof *r);
    int n = o->nfiles ? o->nfiles : 1;
    *state = r;
    bool ok = r != NULL;
    if (ok) {
        r->o = o, r->most = g->out[0], r->fd = -1, r->workers = g->workers, r->over = UINT64_MAX;
        pthread_mutex_init(&r->lock, NULL);
        pthread_cond_init(&r->turn, NULL);
        r->stem = calloc((size_t)n + 1, sizeof *r->stem);
        r->worker = calloc((size_t)r->workers, sizeof *r->worker);
        r->open = calloc((size_t)r->workers + 1, sizeof *r->open);
        ok = r->stem && r->worker && r->open;
    }
    for (int i = 0; ok && i < r->workers; i++)
        ok = gp_growbuf_need(&r->worker[i].room, HEAD);
    for (int i = 0; ok && i < n; i++) {
        size_t len;
        const char *stem = gp_path_stem(o->nfiles ? o->file[i] : o->path, &len);
        ok = (r->stem[i] = strndup(stem, len));
    }
    return ok || gp_fail(g->errs, GP_E_RESOURCE, g->at, "stage '%s': out of memory", g->name);
}

/* ---- files ----------------------------------------------------------- */

static const char *path_of(const struct reader *r, int file)
{
    return r->o->nfiles ? r->o->file[file] : r->o->path;
}

/* Makes the frame as large as the file says, where it may be so. */
static bool take_shape(const struct reader *r, gp_view *v, const gp_type *found, char why[GP_WHY])
{
    if (!fits_in(found, &r->most, r->o->varies, why))
        return false;
    v->type = *found;
    return true;
}

/* A raw file is one frame, of as many rows as it has. */
static bool take_rows(const struct reader *r, gp_view *v, int64_t size, char why[GP_WHY])
{
    gp_type found = r->most;
    int64_t row = (int64_t)gp_bytes(&found) / found.dim[0], rows = (size - r->o->offset - r->o->skip) / row;
    found.dim[0] = rows > 1 ? rows : 1;
    return take_shape(r, v, &found, why);
}

static bool take_header(const struct reader *r, const gp_growbuf *room, gp_view *v, char why[GP_WHY])
{
    gp_type found;
    size_t data;
    bool fortran;
    return gp_npy_parse((const char *)room->data, room->n, &found, &data, &fortran, why) && take_shape(r, v, &found, why);
}

/* Finds out how a file that is open is cut; of a picture, reads it whole. */
static bool look_into(struct reader *r, struct worker *w, struct piece_file *f, gp_view *v, char why[GP_WHY])
{
    const gp_type *frame = &v->type;
    const struct opts *o = r->o;
    gp_cut_how as = how(o);
    gp_growbuf *room = &w->room;
    struct stat st;
    if (fstat(f->fd, &st))
        return gp_why(why, "cannot be read: %s", strerror(errno));
    if (!S_ISREG(st.st_mode))
        return gp_why(why, "is not a regular file");
    posix_fadvise(f->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    if (is_pictures(o))
        return gp_read_file(f->fd, SIZE_MAX, room, why);
    if (o->as == GP_RAW)
        return (!o->varies || take_rows(r, v, st.st_size, why)) && gp_cut_raw(&f->cut, st.st_size, frame, &as, why);
    if (!gp_read_file(f->fd, HEAD, room, why) || (o->varies && !take_header(r, room, v, why))
        || !gp_cut_npy(&f->cut, room->data, room->n, st.st_size, frame, &as, why))
        return false;
    if (o->same_rows && f->cut.rows != frame->dim[0])
        return gp_why(why, "has %lld rows, the first file %lld: declare the output's shape to "
                           "cut files of different length", (long long)f->cut.rows,
                      (long long)frame->dim[0]);
    return true;
}

/* Opens a file, and finds out how it is cut. */
static bool open_file(struct reader *r, struct worker *w, struct piece_file *f, int file, gp_view *v, char why[GP_WHY])
{
    f->fd = open(path_of(r, file), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (f->fd < 0)
        return gp_why(why, "cannot be read: %s", strerror(errno));
    f->users = 1;
    if (look_into(r, w, f, v, why))
        return true;
    release(f);
    return false;
}

static bool decode(struct reader *r, struct worker *w, int file, gp_view *v, char why[GP_WHY])
{
    gp_type found;
    char have[128], want[128];
    const gp_picfile_how *as = &r->o->pictures;
    if (!gp_picfile_head(as, path_of(r, file), w->room.data, w->room.n, &found, why))
        return false;
    if (!r->o->varies && !gp_type_same(&found, &v->type))
        return gp_why(why, "holds %s, the first file %s: for pictures of different sizes declare the largest under "
                      "'buffers', like shape: [\"<=1080\", \"<=1920\", 3]", gp_type_text(&found, have),
                      gp_type_text(&v->type, want));
    return (!r->o->varies || take_shape(r, v, &found, why))
        && gp_picfile_decode(as, path_of(r, file), w->room.data, w->room.n, &v->type, v->data, why);
}

static bool read_piece(const struct piece_file *f, int64_t piece, gp_view *v, char why[GP_WHY])
{
    int64_t at, rows;
    if (!gp_cut_frame(&f->cut, piece, &at, &rows))
        return gp_why(why, "has no rows");
    int64_t want = rows * f->cut.row_bytes, got = gp_read_at(f->fd, v->data, (size_t)want, at);
    if (got < 0)
        return gp_why(why, "cannot be read: %s", strerror(errno));
    if (got != want)
        return gp_why(why, "became shorter: %lld bytes expected at offset %lld, %lld found",
                      (long long)want, (long long)at, (long long)got);
    v->type.dim[0] = rows;
    return true;
}

/* ---- which of them --------------------------------------------------- */

/* Is a file one frame, whatever is in it? */
static bool is_whole(const struct opts *o)
{
    return is_pictures(o) || o->same_rows || (o->varies && o->as == GP_NPY);
}

/* No frame is from `frame` on: nobody waits for its turn. */
static void end_at(struct reader *r, uint64_t frame)
{
    pthread_mutex_lock(&r->lock);
    r->over = frame < r->over ? frame : r->over;
    pthread_cond_broadcast(&r->turn);
    pthread_mutex_unlock(&r->lock);
}

/* The file is done with: the next frame is from the next one. With the lock. */
static void next_file(struct reader *r)
{
    release(r->now);
    r->now = NULL;
    r->piece = 0;
    r->file++;
}

/* The next piece, for the worker whose turn it is; with the lock. A file that cannot be opened costs one frame. */
static gp_status next_piece(struct reader *r, struct worker *w, gp_view *v, struct place *p, char why[GP_WHY])
{
    const struct opts *o = r->o;
    int64_t at, rows;
    for (;; next_file(r)) {
        if (r->file == o->nfiles) {
            if (!o->loop)
                return GP_END;
            r->file = 0, r->pass++;
            *p = (struct place){ .none = !r->any };
            if (p->none)
                return GP_FAILED;
            r->any = false;
        }
        *p = (struct place){ .file = r->file, .pass = r->pass, .first = !r->any, .piece = r->piece };
        struct piece_file *f = r->open;
        while (!r->now && f->users)
            f++;
        if (!r->now && !open_file(r, w, f, r->file, v, why)) {
            next_file(r);
            break;
        }
        if (!r->now)
            r->now = f;
        if (!gp_cut_frame(&r->now->cut, r->piece, &at, &rows))
            continue;
        p->in = r->now;
        p->in->users++;
        r->piece++;
        break;
    }
    r->any = true;
    return p->in ? GP_OK : GP_FAILED;
}

/* Finds a frame of files in pieces; the frames before it first. */
static gp_status find_piece(struct reader *r, struct worker *w, gp_frame *f, struct place *p, char why[GP_WHY])
{
    pthread_mutex_lock(&r->lock);
    while (r->next != f->index && r->over > f->index)
        pthread_cond_wait(&r->turn, &r->lock);
    gp_status s = r->over <= f->index ? GP_STOPPED : next_piece(r, w, &f->out[0], p, why);
    r->next += s != GP_STOPPED;
    pthread_cond_broadcast(&r->turn);
    pthread_mutex_unlock(&r->lock);
    return s;
}

/* Finds a frame where a file is one. */
static gp_status find_file(const struct reader *r, uint64_t frame, struct place *p)
{
    uint64_t n = (uint64_t)r->o->nfiles;
    *p = (struct place){ .none = !n };
    if (n)
        *p = (struct place){ .file = (int)(frame % n), .pass = frame / n, .first = frame % n == 0 };
    return (p->pass || p->none) && !r->o->loop ? GP_END : p->none ? GP_FAILED : GP_OK;
}

/* The frame cannot be made. One that begins a pass over the files ends the run, where the pass before made none: the
 * next would not either. */
static gp_status fail(struct reader *r, gp_call *c, gp_frame *f, const struct place *p, char why[GP_WHY])
{
    bool none = p->none || (p->first && p->pass && gp_wait_turn(c) && atomic_load(&r->good) < p->pass);
    if (none)
        gp_why(why, "has no frames that could be repeated");
    r->worker[c->worker].none |= none;
    gp_fail(c->errs, GP_E_RUN, r->o->at, "frame %llu: '%s' %s",
            (unsigned long long)f->index, path_of(r, p->file), why);
    return GP_FAILED;
}

static bool read_whole(struct reader *r, struct worker *w, gp_frame *f, int file, char why[GP_WHY])
{
    gp_view *v = &f->out[0];
    if (!open_file(r, w, &w->whole, file, v, why))
        return false;
    f->name = r->stem[file];
    bool ok = is_pictures(r->o) || read_piece(&w->whole, 0, v, why);
    release(&w->whole);
    return ok && (!is_pictures(r->o) || decode(r, w, file, v, why));
}

static gp_status from_files(struct reader *r, gp_call *c, gp_frame *f)
{
    struct worker *w = &r->worker[c->worker];
    struct place p;
    char why[GP_WHY];
    bool whole = is_whole(r->o), ok;
    gp_status s = whole ? find_file(r, f->index, &p) : find_piece(r, w, f, &p, why);
    if (s == GP_FAILED)
        return fail(r, c, f, &p, why);
    if (s != GP_OK)
        return s;
    if (whole) {
        ok = read_whole(r, w, f, p.file, why);
    } else {
        f->name = r->stem[p.file];
        ok = read_piece(p.in, p.piece, &f->out[0], why);
        pthread_mutex_lock(&r->lock);
        release(p.in);
        pthread_mutex_unlock(&r->lock);
    }
    if (!ok)
        return fail(r, c, f, &p, why);
    for (uint64_t good = atomic_load(&r->good); good <= p.pass;)
        if (atomic_compare_exchange_weak(&r->good, &good, p.pass + 1))
            break;
    return GP_OK;
}

/* ---- streams --------------------------------------------------------- */

/* Reads `n` bytes of a stream, or up to its end; into the room when `to` is
 * NULL. GP_OK with *got set; GP_STOPPED; GP_FAILED with errno. */
static gp_status from_stream(struct reader *r, gp_call *c, char *to, int64_t n, int64_t *got)
{
    const gp_growbuf *room = &r->worker[c->worker].room;
    for (*got = 0; *got < n;) {
        if (!gp_wait_fd(c, r->fd))
            return GP_STOPPED;
        size_t left = (size_t)(n - *got);
        ssize_t k = to ? read(r->fd, to + *got, left)
                       : read(r->fd, room->data, left < room->cap ? left : room->cap);
        if (k < 0 && errno != EINTR && errno != EAGAIN)
            return GP_FAILED;
        if (!k)
            break;
        *got += k > 0 ? k : 0;
    }
    return GP_OK;
}

/* Two readers of a FIFO would each get a part of its bytes: the first holds it. False: another does. */
static bool hold_fifo(struct reader *r)
{
    struct stat st;
    return !r->o->nfiles || r->fd < 0 || fstat(r->fd, &st) || !S_ISFIFO(st.st_mode)
        || !flock(r->fd, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK;
}

/* Opens a stream. One that has ended stays open until then, so that nobody who has begun
 * to write finds no reader. errno of an r->fd < 0: EBUSY, where another reads it. */
static void open_stream(struct reader *r)
{
    const struct opts *o = r->o;
    int old = r->fd, error;
    r->fd = o->nfiles ? open(o->file[0], O_RDONLY | O_CLOEXEC | O_NONBLOCK) : STDIN_FILENO;
    error = errno;
    r->before = o->offset;
    r->ended = false;
    if (old > STDIN_FILENO)
        close(old);
#ifdef F_SETPIPE_SZ
    fcntl(r->fd, F_SETPIPE_SZ, 1 << 20);           /* fewer, larger reads; may fail */
#endif
    if (!hold_fifo(r)) {
        close(r->fd);
        r->fd = -1, error = EBUSY;
    }
    errno = error;
}

/* One writer's frames. A frame of no rows: there are no more. */
static gp_status live(struct reader *r, gp_call *c, gp_frame *f, bool first)
{
    const struct opts *o = r->o;
    gp_view *v = &f->out[0];
    int64_t row = (int64_t)gp_bytes(&v->type) / v->type.dim[0], all = row * v->type.dim[0];
    int64_t skip = o->skip + r->before, skipped, got = 0;

    if (!first && poll(&(struct pollfd){ .fd = r->fd, .events = POLLIN }, 1, 0) == 0)
        return GP_AGAIN;
    gp_status s = from_stream(r, c, NULL, skip, &skipped);
    if (s == GP_OK && skipped == skip)
        s = from_stream(r, c, v->data, all, &got);
    if (s == GP_STOPPED)
        return s;
    r->before = 0;
    r->ended = s == GP_FAILED || got < all;
    int64_t rest = got ? got % row : skipped;
    if (s == GP_FAILED) {
        gp_fail(c->errs, GP_E_RUN, o->at, "frame %llu: '%s' cannot be read: %s",
                (unsigned long long)f->index, o->path, strerror(errno));
    } else if (r->ended && rest && o->tail == TAIL_ERROR) {
        gp_fail(c->errs, GP_E_RUN, o->at, "frame %llu: '%s' ends within a frame, %lld bytes after "
                "its last whole row of %lld bytes: 'tail: ignore' leaves them out",
                (unsigned long long)f->index, o->path, (long long)rest, (long long)row);
        s = GP_FAILED;
    }
    v->type.dim[0] = got / row;
    f->name = r->stem[0];
    return s;
}

/* A frame of a stream, whoever writes it. */
static gp_status from_writers(struct reader *r, gp_call *c, gp_frame *f, bool first)
{
    int64_t rows = f->out[0].type.dim[0];
    for (;;) {
        if (r->ended && !r->o->reopen)
            return GP_END;
        if (r->fd < 0 || r->ended)
            open_stream(r);
        if (r->fd < 0) {
            r->worker[c->worker].none = true;
            gp_fail(c->errs, GP_E_RUN, r->o->at, "'%s' cannot be read: %s", r->o->path,
                    errno == EBUSY ? "another run or stage of gpipe reads this FIFO, and each would get "
                                     "a part of it" : strerror(errno));
            return GP_FAILED;
        }
        f->out[0].type.dim[0] = rows;
        gp_status s = live(r, c, f, first);
        if (s != GP_OK || f->out[0].type.dim[0])
            return s;
    }
}

static bool run(gp_call *c, gp_frame *f, int n)
{
    struct reader *r = c->state;
    const struct opts *o = c->opts;
    size_t bytes = 0;
    for (int i = 0; i < n; i++) {
        gp_status s = GP_OK;
        if (o->frames && f[i].index >= (uint64_t)o->frames)
            s = GP_END;
        else if (i && (bytes >= RUN_BYTES || is_pictures(o)))
            s = GP_AGAIN;
        else
            s = gp_pace_wait(&r->pace, c, o->rate, f[i].index, i == 0);
        if (s == GP_OK)
            s = o->live ? from_writers(r, c, &f[i], i == 0) : from_files(r, c, &f[i]);
        if (s == GP_OK && o->endian == BIG)
            gp_swap(f[i].out[0].data, &f[i].out[0].type);
        f[i].status = s;
        if (s == GP_END || s == GP_STOPPED)
            end_at(r, f[i].index);
        if (s == GP_FAILED && i + 1 < n)
            f[i + 1].status = GP_AGAIN;
        if (s != GP_OK)
            break;
        bytes += gp_bytes(&f[i].out[0].type);
    }
    return !r->worker[c->worker].none;
}

static void advise(gp_advice *a)
{
    const struct opts *o = a->opts;
    strcpy(a->text, is_pictures(o) ? "store its frames as .npy, which need no decoding"
                                   : "store a smaller type, and cast it on the device");
}

static const gp_port out[] = {
    { "out", .help = "declared under 'buffers:', else: a picture or a .npy of a list is one frame; a "
                     "single .npy is cut at each index of axis 0 (a 1-D one has to be declared)" },
    { 0 }
};

static const gp_opt options[] = {
    { GP_PATH(struct opts, path), .required = true,
      .help = "a file; a glob ('*.png'), in byte order; a number ('img_%05d.png'), all that are there, "
              "from the lowest on; a FIFO, or stdin" },
    { GP_ENUM(struct opts, format), .def = "auto", .choices = GP_FORMATS,
      .help = "auto: .npy and pictures (.png .jpg .jpeg .pgm .ppm .pnm .pfm) by the file's extension, all "
              "else is raw; which picture it is, its first bytes say" },
    { GP_INT(struct opts, offset), .min = 0, .max = 1e15, .unit = "bytes",
      .help = "raw: where the data begin in each file" },
    { GP_INT(struct opts, skip), .min = 0, .max = 1e15, .unit = "bytes",
      .help = "raw: what stands before each frame and is not data" },
    { GP_ENUM(struct opts, endian), .def = "little", .choices = "little|big",
      .help = "raw: the order of bytes in an element" },
    { GP_ENUM(struct opts, tail), .def = "error", .choices = "error|ignore",
      .help = "raw, npy: what to do with bytes after the last whole row" },
    { GP_INT(struct opts, frames), .min = 0, .max = 1e18, .unit = "frames",
      .help = "stop after so many; 0: all" },
    { GP_BOOL(struct opts, loop), .help = "begin again after the last file" },
    { GP_BOOL(struct opts, reopen),
      .help = "a FIFO: when its writer has closed it, wait for the next one; writers come one after "
              "another, as a FIFO does not tell two apart that have it open at once" },
    { GP_FLOAT(struct opts, rate), .min = 0, .max = 1e9, .unit = "Hz",
      .help = "frames a second; 0: as fast as they can be read" },
    { GP_ENUM(struct opts, orientation), .def = "apply", .choices = "apply|keep",
      .help = "jpeg: turn pictures upright, as their EXIF data say, or keep them as they are stored" },
    { 0 }
};

const gp_kind gp_kind_read = {
    GP_KIND("read"),
    .help = "frames from pictures, .npy or raw files, a FIFO or standard input",
    .out = out,
    .opts = options, .opts_size = sizeof(struct opts),
    .max_run = MAX_RUN, .by_number = true,
    .any_shape = true, .shape = shape, .open = open_reader, .close = close_reader, .run = run,
    .advise = advise,
};
