/* files.c - frames of files, see reader.h.
 *
 * Where a file is one frame, a frame's number says which. Files that are cut into pieces are opened one after the
 * other, since each says how many it has; then its pieces are read at the same time by all workers. A file that cannot
 * be opened costs one frame, or as many as each has where numbers decide: the next is from the next file. A piece that
 * cannot be read costs its own, so that numbers depend on what files say when they are opened. A file whose rows can be
 * read in their order only is read by turns. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include "base/npy.h"
#include "base/plural.h"
#include "reader.h"

void gp_piece_release(gp_piece_file *f)
{
    if (!f || --f->users)
        return;
    gp_rowsfile_close(f->rows);
    gp_columns_free(f->columns);
    f->rows = NULL, f->columns = NULL;
    close(f->fd);
}

/* ---- what is in a file ------------------------------------------------ */

/* Is a file one frame, whatever is in it? */
static bool is_whole(const gp_read_opts *o)
{
    return gp_read_is_pictures(o) || o->same_rows || o->whole || (o->varies && o->as != GP_RAW);
}

static const char *path_of(const gp_reader *r, int file)
{
    return r->o->nfiles ? r->o->file[file] : r->o->path;
}

/* A raw file is one frame, of as many rows as it has. */
static bool take_rows(const gp_reader *r, gp_view *v, int64_t size, char why[GP_WHY])
{
    gp_type found = r->most;
    if (r->o->whole && !size)
        return gp_why(why, "is empty");
    gp_type stored = gp_read_stored(r->o, &found);
    int64_t row = (int64_t)gp_bytes(&stored) / found.dim[0], rows = (size - r->o->offset - r->o->skip) / row;
    found.dim[0] = rows > 1 ? rows : 1;
    return gp_file_take(v, &r->most, r->o->varies, &found, why);
}

static bool take_header(const gp_reader *r, const gp_growbuf *room, gp_view *v, char why[GP_WHY])
{
    gp_type found;
    size_t data;
    bool fortran, big;
    return gp_npy_parse_any((const char *)room->data, room->n, &found, &data, &fortran, &big, why)
        && gp_file_take(v, &r->most, r->o->varies, &found, why);
}

/* Are the rows of a file that is an array those of the first? */
static bool has_rows_of_first(const gp_reader *r, const gp_piece_file *f, const gp_type *frame, char why[GP_WHY])
{
    if (r->o->same_rows && f->cut.rows != frame->dim[0])
        return gp_why(why, "has %lld rows, the first file %lld: 'on_error: drop' leaves it out; if files of different "
                           "length are to be cut into frames, declare the output's shape", (long long)f->cut.rows,
                      (long long)frame->dim[0]);
    return true;
}

/* Opens a list of rows. */
static bool look_into_rows(const gp_reader *r, gp_read_worker *w, gp_piece_file *f, gp_view *v, char why[GP_WHY])
{
    f->rows = gp_rowsfile_open(&r->o->rows, r->o->as, f->fd, &v->type, why);
    memcpy(w->fault, f->rows ? f->rows->fault : "", f->rows ? GP_WHY : 1);
    if (f->rows && f->rows->in_order && r->o->shuffle >= 0 && !is_whole(r->o))
        return gp_why(why, "can be read from its beginning on alone, and so cannot be shuffled");
    gp_type found = f->rows ? f->rows->whole : (gp_type){ 0 };
    if (!f->rows || (r->o->varies && !(gp_rowsfile_one(&found, f->rows->as, r->most.ndim, why)
                                       && gp_file_take(v, &r->most, r->o->varies, &found, why)))
        || !gp_cut_type(&f->cut, &f->rows->whole, &v->type, why) || !has_rows_of_first(r, f, &v->type, why))
        return false;
    if (f->rows->whole.dim[0] < 0)
        f->cut.rows = INT64_MAX / 2;       /* until the end shows */
    return true;
}

/* Finds out how a file that is open is cut; of a picture, reads it whole. */
static bool look_into(gp_reader *r, gp_read_worker *w, gp_piece_file *f, gp_view *v, char why[GP_WHY])
{
    const gp_type *frame = &v->type;
    const gp_read_opts *o = r->o;
    gp_cut_how as = gp_read_cut(o);
    gp_growbuf *room = &w->room;
    struct stat st;
    if (fstat(f->fd, &st))
        return gp_why(why, "cannot be read: %s", gp_strerror(errno));
    const bool folder = gp_read_is_rows(o) && gp_rowsfile_of(o->as)->is_folder;
    if (folder ? !S_ISDIR(st.st_mode) : !S_ISREG(st.st_mode))
        return gp_why(why, folder ? "is no folder, as a %s store is" : "is not a regular file%.0s",
                      folder ? gp_rowsfile_of(o->as)->name : "");
    char byte;
    if (!st.st_size && gp_read_at(f->fd, &byte, 1, 0) > 0)
        return gp_why(why, "says a size of 0 bytes, and has some: it cannot be one of several files");
    posix_fadvise(f->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    if (gp_read_is_pictures(o))
        return gp_read_file(f->fd, SIZE_MAX, room, why);
    if (gp_read_is_rows(o))
        return look_into_rows(r, w, f, v, why);
    if (o->as == GP_RAW && o->varies && !take_rows(r, v, st.st_size, why))
        return false;
    if (o->as == GP_RAW) {
        gp_type stored = gp_read_stored(o, frame);
        return gp_cut_raw(&f->cut, st.st_size, &stored, &as, why);
    }
    return gp_read_file(f->fd, GP_READ_HEAD, room, why) && (!o->varies || take_header(r, room, v, why))
        && gp_cut_npy(&f->cut, room->data, room->n, st.st_size, frame, &as, why)
        && has_rows_of_first(r, f, frame, why);
}

/* Opens a file, and finds out how it is cut. */
static bool open_file(gp_reader *r, gp_read_worker *w, gp_piece_file *f, int file, gp_view *v, char why[GP_WHY])
{
    f->fd = open(path_of(r, file), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (f->fd < 0)
        return gp_why(why, "cannot be read: %s", gp_strerror(errno));
    f->users = 1, f->cut.columns.ndim = 0;
    if (look_into(r, w, f, v, why)) {
        f->columns = f->cut.columns.ndim ? gp_columns_new() : NULL;
        return true;
    }
    gp_piece_release(f);
    return false;
}

/* Counts a frame that is made of a file with a fault, which the first of its frames says. */
static void warn(const gp_reader *r, gp_call *c, const gp_frame *f, int file, const char *fault, bool faulty)
{
    if (*fault)
        gp_fail(c->errs, GP_E_WARN, r->o->at, "frame %llu: '%s' %s ('strict: true' refuses it)", (unsigned long long)f->index,
                path_of(r, file), fault);
    if (*fault || faulty)
        gp_frame_faulty(c);
}

/* Has a picture the type and colors of the others? What is to be done if not is not what other sizes need. */
static bool is_alike(const gp_reader *r, const gp_type *found, const gp_view *v, char why[GP_WHY])
{
    const gp_read_opts *o = r->o;
    const gp_type *want = o->varies ? &r->most : &v->type;
    return gp_picfile_alike(found, want, o->varies,
                            gp_read_who_says(o, found->dtype == want->dtype ? o->says_shape : o->says_dtype), why);
}

static bool decode(gp_reader *r, gp_call *c, gp_read_worker *w, const gp_frame *f, int file, char why[GP_WHY])
{
    gp_view *v = &f->out[0];
    gp_type found;
    char have[128], want[128], most[GP_BOUNDS_TEXT];
    const gp_picfile_how *as = &r->o->pictures;
    if (!gp_picfile_head(as, path_of(r, file), w->room.data, w->room.n, &found, why))
        return false;
    if (!is_alike(r, &found, v, why))
        return false;
    if (!r->o->varies && !gp_type_same(&found, &v->type))
        return gp_why(why, "holds %s, %s %s: for pictures of different sizes declare the largest under "
                      "'buffers', like shape: [\"<=1080\", \"<=1920\", 3]", gp_type_text(&found, have),
                      gp_read_who_says(r->o, r->o->says_shape), gp_type_text(&v->type, want));
    if (r->o->looked && !gp_file_fits(&found, &r->most, r->o->varies, why))
        return gp_why(why, "holds %s, which does not fit in %s, the largest of the first %d files: declare the largest under "
                      "'buffers', like shape: [\"<=1080\", \"<=1920\", 3]", gp_type_text(&found, have),
                      gp_bounds_text(&r->most, r->o->varies, most), r->o->looked);
    if ((r->o->varies && !gp_file_take(v, &r->most, r->o->varies, &found, why))
        || !gp_picfile_decode(as, path_of(r, file), w->room.data, w->room.n, &v->type, v->data, why))
        return false;
    warn(r, c, f, file, why, false);
    return gp_picfile_metadata(as, path_of(r, file), w->room.data, w->room.n, &w->said, why);
}

/* Rows of the file, of which a frame may be one or several. */
static bool read_rows(gp_piece_file *f, gp_read_worker *w, int64_t at, int64_t rows, gp_view *v, char why[GP_WHY])
{
    gp_type row = f->rows->whole;
    row.dim[0] = 1;
    int64_t bytes = (int64_t)gp_bytes(&row);
    if (!gp_rowsfile_read(f->rows, &w->own, at / bytes, rows * f->cut.row_bytes / bytes, v->data, why))
        return false;
    if (f->rows->as->take && *why)
        memcpy(w->fault, why, GP_WHY);
    if (!gp_rowsfile_metadata(f->rows, &w->own, at / bytes, &w->said, why))
        return false;
    v->type.dim[0] = rows;
    return true;
}

static bool get_bytes(void *user, int64_t at, void *to, size_t n)
{
    const gp_piece_file *f = user;
    errno = 0;
    return gp_read_at(f->fd, to, n, f->cut.data + at) == (int64_t)n;
}

/* Reads `want` bytes of a column-major array, whose place would be `at` in a row-major one. */
static bool read_columns(gp_piece_file *f, int64_t at, int64_t want, void *to, char why[GP_WHY])
{
    gp_type index = f->cut.columns;
    index.dim[0] = 1;
    int64_t bytes = (int64_t)gp_bytes(&index);
    return gp_columns_read(f->columns, &f->cut.columns, (at - f->cut.data) / bytes, want / bytes, to, get_bytes, f)
        || gp_why(why, errno ? "cannot be read: %s" : "became shorter%.0s", gp_strerror(errno));
}

static bool read_plain(const gp_piece_file *f, int64_t at, int64_t want, void *to, char why[GP_WHY])
{
    int64_t got = gp_read_at(f->fd, to, (size_t)want, at);
    if (got < 0)
        return gp_why(why, "cannot be read: %s", gp_strerror(errno));
    return got == want || gp_why(why, "became shorter: %lld bytes expected at offset %lld, %lld found",
                                 (long long)want, (long long)at, (long long)got);
}

static bool read_piece(gp_piece_file *f, gp_read_worker *w, int64_t piece, gp_view *v, char why[GP_WHY])
{
    int64_t at, rows;
    if (!gp_cut_frame(&f->cut, piece, &at, &rows))
        return gp_why(why, "has no rows");
    if (f->rows)
        return read_rows(f, w, at, rows, v, why);
    int64_t want = rows * f->cut.row_bytes;
    v->type.dim[0] = rows;
    if (!(f->cut.columns.ndim ? read_columns(f, at, want, v->data, why) : read_plain(f, at, want, v->data, why)))
        return false;
    if (f->cut.swap)
        gp_swap(v->data, &v->type);
    return true;
}

/* Where a frame is. */
struct place {
    int file;                  /* negative: there is none */
    uint64_t number;           /* ... of this number */
    uint64_t pass;             /* over the files */
    bool first;                /* of its pass */
    gp_piece_file *in;     /* NULL: the file is one frame */
    int64_t piece;
    int n;                     /* it and the pieces behind it that are to be read at once */
    bool none;                 /* there are none to be repeated */
    bool is_read, ok;          /* it was read as it was found, and could be */
};

/* ---- which of them --------------------------------------------------- */

static uint64_t scrambled(uint64_t x)      /* the end of SplitMix64 (Steele, Lea and Flood, 2014) */
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* Which of n stands at place i of this pass, in the order that the seed decides: a Feistel network permutes a power of
 * four from n on, and is used again as long as what it makes is not below n. So nobody keeps the order, and all workers,
 * ranks and sources of n frames have the same. */
static uint64_t at_place(const gp_read_opts *o, uint64_t pass, uint64_t n, uint64_t i)
{
    enum { ROUNDS = 6 };
    int half = 4;
    if (o->shuffle < 0)
        return i;
    while (half < 31 && (uint64_t)1 << 2 * half < n)
        half++;
    uint64_t low = ((uint64_t)1 << half) - 1, key = scrambled(scrambled((uint64_t)o->shuffle) + pass);
    do
        for (uint64_t round = 0, next; round < ROUNDS; round++, i = next)
            next = (i & low) << half | ((i >> half) ^ (scrambled(key + (i & low) * ROUNDS + round) & low));
    while (i >= n);
    return i;
}

void gp_reader_over(gp_reader *r, uint64_t frame)
{
    pthread_mutex_lock(&r->lock);
    r->over = frame < r->over ? frame : r->over;
    pthread_cond_broadcast(&r->turn);
    pthread_mutex_unlock(&r->lock);
}

/* The file is done with: the next frame is from the next one. With the lock. */
static void next_file(gp_reader *r)
{
    gp_piece_release(r->now);
    r->now = NULL;
    r->piece = 0;
    r->file++;
    for (r->number++; r->number < r->o->numbers && r->o->numbered[r->number] < 0; r->number++)
        r->holes += r->o->pieces;
}

/* Opens the next file. Of files whose numbers decide, each has as many pieces as the first. */
static bool open_next(gp_reader *r, gp_read_worker *w, gp_piece_file *f, gp_view *v, char why[GP_WHY])
{
    int64_t at, rows, want = r->o->numbered ? r->o->pieces : 0;
    if (!open_file(r, w, f, r->file, v, why))
        return false;
    if (!want || (gp_cut_frame(&f->cut, want - 1, &at, &rows) && !gp_cut_frame(&f->cut, want, &at, &rows)))
        return true;
    gp_piece_release(f);
    return gp_why(why, "does not have %lld frames, as the first file has: numbers of the frames behind it would not be "
                  "known ('missing: skip' takes files as they are)", (long long)want);
}

/* The next piece, for the worker whose turn it is; with the lock. Of a file that cannot be opened each frame fails,
 * where it is known how many there would be; else one. */
static gp_status next_piece(gp_reader *r, gp_read_worker *w, gp_view *v, struct place *p, char why[GP_WHY])
{
    const gp_read_opts *o = r->o;
    int64_t at, rows;
    for (;; next_file(r)) {
        if (r->file == o->nfiles) {
            if (!o->loop)
                return GP_END;
            r->file = 0, r->number = 0, r->pass++;
            *p = (struct place){ .none = !r->any };
            if (p->none)
                return GP_FAILED;
            r->any = false;
        }
        *p = (struct place){ .file = r->file, .pass = r->pass, .first = !r->any };
        if (r->holes) {
            p->number = o->lowest + (uint64_t)(r->number - (r->holes-- + o->pieces - 1) / o->pieces);
            return GP_DROP;
        }
        gp_piece_file *f = r->open;
        while (!r->now && f->users)
            f++;
        if (!r->now && !open_next(r, w, f, v, why)) {
            if (++r->piece >= r->o->pieces || !r->o->numbered)
                next_file(r);
            break;
        }
        if (!r->now)
            r->now = f;
        if (!gp_cut_frame(&r->now->cut, r->piece, &at, &rows))
            continue;
        p->in = r->now;
        p->piece = (int64_t)at_place(o, r->pass, (uint64_t)gp_cut_frames(&p->in->cut), (uint64_t)r->piece);
        p->in->users++;
        r->piece++;
        break;
    }
    r->any = true;
    return p->in ? GP_OK : GP_FAILED;
}

/* Takes the pieces that lie behind p, for a worker that is alone, up to `most` with p; with the lock. They are whole and
 * in a row. */
static void take_more(gp_reader *r, struct place *p, int most)
{
    int64_t first, rows, at, n;
    bool alone = r->workers == 1 && r->ranks == 1 && r->o->every == 1 && !p->in->rows && !p->in->cut.columns.ndim && r->o->shuffle < 0;
    gp_cut_frame(&p->in->cut, p->piece, &first, &rows);
    for (p->n = 1; alone && p->n < most && r->now == p->in; p->n++) {
        if (!gp_cut_frame(&p->in->cut, r->piece, &at, &n) || n != rows || at != first + p->n * rows * p->in->cut.row_bytes)
            return;
        r->piece++, r->next++;
    }
}

/* The lowest frame that nobody has looked for, counted from the first in the files. With the lock. */
static uint64_t due(const gp_reader *r)
{
    uint64_t from = gp_read_frame(r->o, r->pace.from);
    return r->next > from ? r->next : from;
}

/* The file turned out to end before this piece. With the lock. */
static void end_file(gp_reader *r, gp_call *c, const gp_frame *f, const struct place *p, const char *why)
{
    if (*why)
        gp_fail(c->errs, GP_E_WARN, r->o->at, "frame %llu: '%s' %s", (unsigned long long)f->index, path_of(r, p->file), why);
    p->in->cut.rows = p->in->rows->came * p->in->cut.frame_rows;
    r->next -= (uint64_t)(p->piece - p->in->rows->came);
    gp_piece_release(p->in);
}

/* There are no more: not even those that 'start' leaves out? With the lock. */
static gp_status end_all(gp_reader *r, gp_call *c, struct place *p)
{
    const gp_read_opts *o = r->o;
    if (!o->start || r->next > (uint64_t)o->start)
        return GP_END;
    *p = (struct place){ .file = -1 };
    gp_fail(c->errs, GP_E_SPEC, o->start_at, "'start' is %lld, and there %s %llu frame%s in '%s'", (long long)o->start,
            r->next == 1 ? "is" : "are", (unsigned long long)r->next, gp_plural((int64_t)r->next), o->path);
    r->worker[c->worker].none = true, r->over = 0;
    return GP_FAILED;
}

/* Finds a frame of files in pieces; the frames before it first, of which those of other ranks and runs are passed over. */
static gp_status find_piece(gp_reader *r, gp_call *c, gp_read_worker *w, gp_frame *f, int most, struct place *p,
                            char why[GP_WHY])
{
    const uint64_t at = gp_read_frame(r->o, f->index);
    pthread_mutex_lock(&r->lock);
    while (due(r) + r->ranks * (uint64_t)r->o->every <= at && r->over > f->index)
        pthread_cond_wait(&r->turn, &r->lock);
    gp_status s = r->over <= f->index ? GP_END : GP_OK;
    gp_filemeta none = w->said;
    char fault[GP_WHY] = "";                           /* of a file, known when it was opened */
    for (bool found = s != GP_OK; !found;) {
        w->said = none, *w->fault = 0;
        s = next_piece(r, w, &f->out[0], p, why);
        memcpy(*w->fault ? fault : w->fault, *w->fault ? w->fault : fault, GP_WHY);
        const uint64_t before = s == GP_OK && p->in->rows && p->in->rows->as->take ? at - r->next : 0;     /* it finds it */
        p->piece += (int64_t)before, r->piece += (int64_t)before, r->next += before;
        gp_status taken = s == GP_OK && p->in->rows ? gp_rowsfile_take(p->in->rows, &w->own, p->piece, c, why) : GP_OK;
        if (taken == GP_END) {
            end_file(r, c, f, p, why);
            continue;
        }
        if (taken != GP_OK)
            p->is_read = true, p->ok = false;
        else if (s == GP_OK && p->in->rows && p->in->rows->in_order && !p->in->rows->as->take)
            p->is_read = true, p->ok = read_piece(p->in, w, p->piece, &f->out[0], why);
        found = s == GP_END || r->next++ == at;
        if ((!found && s == GP_OK) || taken == GP_STOPPED)
            gp_piece_release(p->in);
        if (taken == GP_STOPPED || (!found && gp_stopping(c)))     /* others do not wait for frames behind it */
            s = GP_STOPPED, found = true, r->over = f->index < r->over ? f->index : r->over;
        s = s == GP_END ? end_all(r, c, p) : s;
    }
    if (s == GP_OK)
        take_more(r, p, most);
    pthread_cond_broadcast(&r->turn);
    pthread_mutex_unlock(&r->lock);
    return s;
}

/* Finds a frame where a file is one. */
static gp_status find_file(const gp_reader *r, uint64_t frame, struct place *p)
{
    const gp_read_opts *o = r->o;
    uint64_t n = (uint64_t)(o->numbered ? o->numbers : o->nfiles), at = gp_read_frame(o, frame);
    *p = (struct place){ .none = !n };
    if (n)
        *p = (struct place){ .file = (int)at_place(o, at / n, n, at % n), .pass = at / n, .first = at % n == 0 };
    if (o->numbered)
        p->number = o->lowest + (uint64_t)p->file, p->file = o->numbered[p->file];
    return (p->pass || p->none) && !o->loop ? GP_END : p->none ? GP_FAILED : p->file < 0 ? GP_DROP : GP_OK;
}

/* The frame cannot be made. One that begins a pass over the files ends the run, where the pass before made none: the
 * next would not either. So does a file that cannot be opened because too many are open, which errno says. */
static gp_status fail(gp_reader *r, gp_call *c, gp_frame *f, const struct place *p, char why[GP_WHY])
{
    bool short_of_files = errno == EMFILE || errno == ENFILE;
    bool none = !short_of_files
             && (p->none || (p->first && p->pass && gp_wait_turn(c) && atomic_load(&r->good) < p->pass));
    if (none)
        gp_why(why, "has no frames that could be repeated");
    r->worker[c->worker].none |= none || short_of_files;
    gp_fail(c->errs, GP_E_RUN, r->o->at, "frame %llu: '%s' %s",
            (unsigned long long)f->index, path_of(r, p->file), why);
    return GP_FAILED;
}

static bool read_whole(gp_reader *r, gp_call *c, gp_read_worker *w, gp_frame *f, int file, char why[GP_WHY])
{
    gp_view *v = &f->out[0];
    if (!open_file(r, w, &w->whole, file, v, why))
        return false;
    gp_read_name(r, c, f, file);
    bool ok = gp_read_is_pictures(r->o) || read_piece(&w->whole, w, 0, v, why);
    gp_piece_release(&w->whole);
    return ok && (!gp_read_is_pictures(r->o) || decode(r, c, w, f, file, why));
}

/* One warning is enough for files that are missing between others; it names the first. */
static void tell_gap(gp_reader *r, gp_call *c, const gp_frame *f, uint64_t number)
{
    char name[PATH_MAX], why[GP_WHY], others[60] = "";
    const gp_read_opts *o = r->o;
    if (number != o->first_gap || atomic_exchange(&r->gaps_told, true)
        || !gp_path_expand(name, o->path, number, "", why))
        return;
    if (o->gaps > 1)
        snprintf(others, sizeof others, ", nor of %d other number%s between others", o->gaps - 1,
                 gp_plural(o->gaps - 1));
    gp_fail(c->errs, GP_E_WARN, o->at, "frame %llu: there is no file '%s'%s ('missing: hole')",
            (unsigned long long)f->index, name, others);
}

/* Reads the pieces at once. Else all but the first go back, so that each has its own error. */
static bool read_at_once(gp_reader *r, gp_frame *f, struct place *p)
{
    struct iovec to[GP_READ_AT_ONCE];
    int64_t at, rows, each;
    gp_cut_frame(&p->in->cut, p->piece, &at, &rows);
    each = rows * p->in->cut.row_bytes;
    for (int i = 0; i < p->n; i++)
        to[i] = (struct iovec){ f[i].out[0].data, (size_t)each };
    if (p->n > 1 && preadv(p->in->fd, to, p->n, (off_t)at) == (ssize_t)(p->n * each)) {
        for (int i = 0; i < p->n; i++) {
            f[i].out[0].type.dim[0] = rows;
            if (p->in->cut.swap)
                gp_swap(f[i].out[0].data, &f[i].out[0].type);
        }
        return true;
    }
    pthread_mutex_lock(&r->lock);
    r->piece -= p->n - 1, r->next -= (uint64_t)(p->n - 1), p->n = 1;
    pthread_mutex_unlock(&r->lock);
    return false;
}

gp_status gp_reader_file(gp_reader *r, gp_call *c, gp_frame *f, int most, int *n)
{
    gp_read_worker *w = &r->worker[c->worker];
    struct place p;
    char why[GP_WHY];
    bool whole = is_whole(r->o), faulty = false, ok;
    w->said = gp_filemeta_none(c), *w->fault = 0;
    errno = 0, *n = 1;
    gp_status s = whole ? find_file(r, f->index, &p) : find_piece(r, c, w, f, most, &p, why);
    if (s == GP_FAILED)
        return p.file < 0 ? s : fail(r, c, f, &p, why);
    if (s == GP_DROP)
        tell_gap(r, c, f, p.number);
    if (s != GP_OK)
        return s;
    if (whole) {
        ok = read_whole(r, c, w, f, p.file, why);
    } else {
        ok = p.is_read ? p.ok : read_at_once(r, f, &p) || read_piece(p.in, w, p.piece, &f->out[0], why);
        *n = p.n;
        for (int i = 0; i < p.n; i++)
            gp_read_name(r, c, &f[i], p.file);
        faulty = p.in->rows && *p.in->rows->fault;
        pthread_mutex_lock(&r->lock);
        gp_piece_release(p.in);
        pthread_mutex_unlock(&r->lock);
    }
    if (!ok)
        return fail(r, c, f, &p, why);
    warn(r, c, f, p.file, w->fault, faulty);
    for (int i = 0; i < *n; i++)
        gp_filemeta_to_frame(c, &f[i], &w->said);
    for (uint64_t good = atomic_load(&r->good); good <= p.pass;)
        if (atomic_compare_exchange_weak(&r->good, &good, p.pass + 1))
            break;
    return GP_OK;
}
