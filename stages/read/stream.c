/* stream.c - frames of a FIFO, of standard input or of what a process writes, see reader.h. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/clock.h"
#include "reader.h"
#include "y4m_file.h"

/* Waits for more. A part of a frame is in its slot, so that this frame cannot go back. */
static gp_status wait_more(gp_reader *r, gp_call *c)
{
    if (c && !r->midway)
        return gp_wait_or_pause(c, r->fd, -1);
    return (c ? gp_wait_fd(c, r->fd) : gp_ahead_wait(r->ahead, r->fd)) ? GP_OK : GP_STOPPED;
}

/* Reads `n` bytes of a stream, or up to its end, which it then has; into the room when `to` is
 * NULL. GP_OK with *got set; GP_STOPPED; GP_AGAIN: nothing came; GP_FAILED with errno. */
static gp_status from_stream(gp_reader *r, gp_call *c, char *to, int64_t n, int64_t *got)
{
    const gp_growbuf *room = &r->worker[0].room;
    for (*got = 0; *got < n;) {
        size_t left = (size_t)(n - *got);
        gp_status s = (int64_t)left > r->there ? wait_more(r, c) : GP_OK;
        if (s != GP_OK)
            return s;
        ssize_t k = to ? read(r->fd, to + *got, left)
                       : read(r->fd, room->data, left < room->cap ? left : room->cap);
        if (k < 0 && errno != EINTR && errno != EAGAIN)
            return GP_FAILED;
        r->ended |= !k;
        if (!k)
            break;
        *got += k > 0 ? k : 0;
        r->midway |= k > 0;
        r->there -= k > 0 && k < r->there ? k : r->there;
    }
    return GP_OK;
}

/* Two readers of a FIFO would each get a part of its bytes: the first holds it. False: another does. */
static bool hold_fifo(gp_reader *r)
{
    struct stat st;
    return !r->o->nfiles || r->fd < 0 || fstat(r->fd, &st) || !S_ISFIFO(st.st_mode)
        || !flock(r->fd, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK;
}

/* Opens a stream. One that has ended stays open until then, so that nobody who has begun
 * to write finds no reader. errno of an r->fd < 0: EBUSY, where another reads it. */
static void open_stream(gp_reader *r)
{
    const gp_read_opts *o = r->o;
    int old = r->fd, error;
    r->fd = r->process  ? gp_process_fd(r->process)
          : o->nfiles   ? open(o->file[0], O_RDONLY | O_CLOEXEC | O_NONBLOCK)
                        : STDIN_FILENO;
    error = errno;
    r->before = o->offset;
    r->ended = r->begun = false;
    r->array.rows = r->there = 0;
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

/* ---- what comes, frame by frame -------------------------------------- */

/* A raw frame. One of no rows: there are no more. */
static gp_status take_raw(gp_reader *r, gp_call *c, char *to, gp_came *came)
{
    const gp_read_opts *o = r->o;
    gp_type stored = gp_read_stored(o, &r->most);
    int64_t row = (int64_t)gp_bytes(&stored) / stored.dim[0], all = row * stored.dim[0];
    int64_t before = r->before, skip = before + o->skip, skipped, got = 0;

    gp_status s = from_stream(r, c, NULL, skip, &skipped);
    if (s == GP_OK && skipped == skip)
        s = from_stream(r, c, to, all, &got);
    if (s != GP_OK)
        return s;
    r->before = 0;
    int64_t rest = got ? got % row : skipped - before;
    came->rows = got / row;
    if (o->tail == GP_TAIL_DROP && got < all)
        came->rows = 0;
    else if (o->tail == GP_TAIL_ERROR && got < all && got)
        r->part = came->rows;
    if (skipped && rest < 0)
        gp_why(came->why, "has %lld bytes, fewer than the offset of %lld", (long long)skipped, (long long)before);
    else if (r->ended && rest > 0 && o->tail == GP_TAIL_ERROR)
        gp_why(came->why, "ends within a frame, %lld bytes after its last whole row of %lld bytes: 'tail: ignore' leaves "
               "them out, 'tail: drop' the frame", (long long)rest, (long long)row);
    return GP_OK;
}

/* The rest of a line, of which n bytes are there already: no byte behind its newline is taken. *n: its length without
 * that; GP_Y4M_LINE where it is too long, or the stream ends in it. */
static gp_status take_line(gp_reader *r, gp_call *c, char line[GP_Y4M_LINE], size_t *n)
{
    gp_status s = GP_OK;
    int64_t got = 1;
    for (; *n < GP_Y4M_LINE; ++*n) {
        s = from_stream(r, c, &line[*n], 1, &got);
        if (s != GP_OK || (got && line[*n] == '\n'))
            return s;
        if (!got)
            *n = GP_Y4M_LINE - 1;
    }
    return s;
}

/* The header of a video, which has to be what is declared. */
static gp_status take_header(gp_reader *r, gp_call *c, const gp_type *want, char why[GP_WHY])
{
    char line[GP_Y4M_LINE], have[128], declared[128], says[80];
    size_t n = 0;
    gp_y4m v;
    gp_type found;
    gp_status s = take_line(r, c, line, &n);
    if (s != GP_OK)
        return s;
    r->begun = true;
    if (n == GP_Y4M_LINE)
        gp_why(why, "is not a YUV4MPEG2 stream: it ends, or goes on for more than %d bytes, without a header", GP_Y4M_LINE);
    else if (gp_y4m_parse(line, n, &v, why) && gp_y4m_type(&v, &found, why) && gp_y4m_has_range(&v, r->o->range, why)
             && !gp_type_same(&found, want))
        gp_why(why, "has frames of %s (%s), and 'buffers' declares %s", gp_type_text(&found, have),
               gp_y4m_text(&v, says), gp_type_text(want, declared));
    return GP_OK;
}

/* A frame of a video, as take_raw(). */
static gp_status take_video(gp_reader *r, gp_call *c, char *to, gp_came *came)
{
    static const char word[] = "FRAME";
    char line[GP_Y4M_LINE];
    int64_t all = (int64_t)gp_bytes(&r->most), got = 0, first = sizeof word;
    gp_status s = r->begun ? GP_OK : take_header(r, c, &r->most, came->why);
    r->midway = false;                 /* what the header says is kept */
    if (s == GP_OK && !*came->why)
        s = from_stream(r, c, line, first, &got);
    if (s != GP_OK || *came->why || !got)
        return s;
    size_t n = (size_t)got;
    char last = line[first - 1];
    bool named = got == first && !memcmp(line, word, sizeof word - 1) && (last == '\n' || last == ' ');
    if (named && last == ' ')
        s = take_line(r, c, line, &n);
    if (s == GP_OK && (!named || n == GP_Y4M_LINE))
        gp_why(came->why, "has no line 'FRAME' where the frame begins");
    if (s != GP_OK || *came->why)
        return s;
    s = from_stream(r, c, to, all, &got);
    if (s == GP_OK && got < all)
        gp_why(came->why, "ends within the frame, which has %lld of %lld bytes", (long long)got, (long long)all);
    came->rows = r->most.dim[0];
    return s;
}

/* The header of the next array; one after the other may come. *any: there is one. */
static gp_status take_array(gp_reader *r, gp_call *c, bool *any, char why[GP_WHY])
{
    enum { FIRST = 12 };                   /* what is shorter is no .npy; in it stands how long the header is */
    unsigned char *p = r->worker[0].room.data;
    int64_t got, rest;
    gp_status s = from_stream(r, c, (char *)p, FIRST, &got);
    if (s != GP_OK || !(*any = got != 0))
        return s;
    bool begins = got == FIRST && !memcmp(p, "\x93NUMPY", 6);
    size_t n = !begins ? 0 : p[6] == 1 ? (size_t)10 + (p[8] | p[9] << 8)
             : FIRST + (p[8] | p[9] << 8 | (size_t)p[10] << 16 | (size_t)p[11] << 24);
    if (n > FIRST && n <= GP_READ_HEAD) {
        s = from_stream(r, c, (char *)p + FIRST, (int64_t)n - FIRST, &rest);
        got += rest;
    }
    if (s == GP_OK)
        gp_cut_npy(&r->array, p, (size_t)got, INT64_MAX, &r->most, &(gp_cut_how){ .ignore_tail = true }, why);
    r->next_piece = 0;
    return s;
}

/* A frame of an array, as take_raw(). */
static gp_status take_piece(gp_reader *r, gp_call *c, char *to, gp_came *came)
{
    int64_t at, rows, got = 0;
    bool any = true;
    while (!gp_cut_frame(&r->array, r->next_piece, &at, &rows)) {
        gp_status s = take_array(r, c, &any, came->why);
        if (s != GP_OK || *came->why || !any)
            return s;
        r->midway = false;             /* what the header says is kept */
    }
    int64_t all = rows * r->array.row_bytes;
    gp_status s = from_stream(r, c, to, all, &got);
    if (s == GP_OK && got < all)
        gp_why(came->why, "ends within the frame, which has %lld of %lld bytes", (long long)got, (long long)all);
    if (s == GP_OK)
        came->rows = r->o->tail == GP_TAIL_DROP && rows < r->array.frame_rows ? 0 : rows, r->next_piece++;
    return s;
}

/* ---- who writes it --------------------------------------------------- */

/* The process has written all that it will: waits for its end. GP_OK: that was a good one; or it does not come, and
 * there are rows, which are not held back until then. */
static gp_status end_process(gp_reader *r, gp_call *c, gp_came *came)
{
    enum { MOMENT_NS = 1000000, MOMENTS = 20, SOON_NS = 2000000000 };
    char why[GP_WHY];
    int64_t since = gp_now_ns();
    for (int k = 1; !gp_process_has_ended(r->process, false); k += k < MOMENTS) {
        if (!r->lingers && gp_now_ns() - since > SOON_NS) {
            r->lingers = true;
            gp_fail(c->errs, GP_E_WARN, r->o->at, "'%s' has closed its output, and does not end: the run waits for "
                    "that", r->o->path);
            if (came->rows)
                return GP_OK;
        }
        int64_t soon = gp_now_ns() + k * MOMENT_NS;
        gp_status s = !came->rows ? gp_wait_or_pause(c, -1, soon) : gp_wait_until(c, soon) ? GP_OK : GP_STOPPED;
        r->lingers |= s == GP_AGAIN;
        if (s != GP_OK)
            return s;
    }
    r->lingers = false;
    if (gp_process_is_well(r->process, why))
        return GP_OK;
    strcpy(came->why, why);
    came->none = true;
    return GP_FAILED;
}

/* Is the whole of the next frame there? Where that is not known, as with a device, it is not: to wait for the rest of
 * it would keep the frames before it from those who want them. */
static bool is_there(gp_reader *r)
{
    gp_type stored = gp_read_stored(r->o, &r->most);
    int64_t at, rows, need = r->o->skip + r->before + (int64_t)gp_bytes(&stored);
    int n;
    if (gp_read_is_video(r->o))        /* the length of its line is not known */
        return false;
    if (r->o->as == GP_NPY && !gp_cut_frame(&r->array, r->next_piece, &at, &rows))
        return false;
    if (r->o->as == GP_NPY)
        need = rows * r->array.row_bytes;
    if (r->there < need)
        r->there = ioctl(r->fd, FIONREAD, &n) ? 0 : n;
    return r->there >= need;
}

/* One writer's frames. A frame of no rows: there are no more. */
static gp_came live(gp_reader *r, gp_call *c, char *to, bool first)
{
    gp_came came = { .status = GP_OK };
    if (!first && !is_there(r))
        return (gp_came){ .status = GP_AGAIN };
    r->midway = false;
    came.status = gp_read_is_video(r->o) ? take_video(r, c, to, &came)
                : r->o->as == GP_NPY ? take_piece(r, c, to, &came) : take_raw(r, c, to, &came);
    if (came.status == GP_FAILED)
        gp_why(came.why, "cannot be read: %s", gp_strerror(errno));
    if (came.status == GP_OK && r->process && r->ended)
        came.status = end_process(r, c, &came);        /* which may say why */
    if (came.status == GP_OK && *came.why)
        came.status = GP_FAILED;
    r->ended |= came.status == GP_FAILED;
    return came;
}

gp_came gp_stream_next(gp_reader *r, gp_call *c, void *to, bool first)
{
    for (;;) {
        if (r->lingers && !first)
            return (gp_came){ .status = GP_AGAIN };
        if (r->ended && !r->o->reopen) {
            gp_came last = { .status = GP_END };
            gp_status s = r->lingers ? end_process(r, c, &last) : GP_OK;
            last.status = s == GP_OK ? GP_END : s;
            return last;
        }
        if (r->fd < 0 || r->ended)
            open_stream(r);
        if (r->fd < 0)
            return (gp_came){ .status = GP_FAILED, .error = errno, .none = true };
        gp_came came = live(r, c, to, first);
        if (came.status != GP_OK || came.rows)
            return came;
    }
}

/* A frame of a stream, whoever writes it. */
gp_status gp_reader_stream(gp_reader *r, gp_call *c, gp_frame *f, bool first)
{
    const gp_read_opts *o = r->o;
    gp_view *v = &f->out[0];
    gp_came came = r->held.none ? r->held
                 : r->ahead     ? gp_ahead_take(r->ahead, c, v->data, first)
                                : gp_stream_next(r, c, v->data, first);
    if (came.none && !first) {             /* what fails the whole call would take the frames before it along */
        r->held = came;
        return GP_AGAIN;
    }
    v->type.dim[0] = came.rows;
    gp_read_name(r, c, f, 0);
    f->time_ns = came.time_ns;
    if (came.came_ns)
        gp_source_came(c, f, came.came_ns);
    r->worker[c->worker].none |= came.none;
    if (came.status != GP_FAILED)
        return came.status;
    if (came.error)
        gp_fail(c->errs, GP_E_RUN, o->at, "'%s' cannot be read: %s", o->path,
                came.error == EBUSY ? "another run or stage of gpipe reads this FIFO, and each would get "
                                      "a part of it" : gp_strerror(came.error));
    else
        gp_fail(c->errs, GP_E_RUN, o->at, "frame %llu: '%s' %s", (unsigned long long)f->index, o->path, came.why);
    if (came.none && r->process)
        gp_process_tell(r->process, c->errs);
    return GP_FAILED;
}
