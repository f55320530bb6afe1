/* stream.c - frames of a FIFO or of standard input, see reader.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "reader.h"

/* Reads `n` bytes of a stream, or up to its end; into the room when `to` is
 * NULL. GP_OK with *got set; GP_STOPPED; GP_FAILED with errno. */
static gp_status from_stream(gp_reader *r, gp_call *c, char *to, int64_t n, int64_t *got)
{
    const gp_growbuf *room = &r->worker[0].room;
    for (*got = 0; *got < n;) {
        if (!(c ? gp_wait_fd(c, r->fd) : gp_ahead_wait(r->ahead, r->fd)))
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
static gp_came live(gp_reader *r, gp_call *c, char *to, bool first)
{
    const gp_read_opts *o = r->o;
    gp_type stored = gp_read_stored(o, &r->most);
    int64_t row = (int64_t)gp_bytes(&stored) / stored.dim[0], all = row * stored.dim[0];
    int64_t skip = o->skip + r->before, skipped, got = 0;

    if (!first && poll(&(struct pollfd){ .fd = r->fd, .events = POLLIN }, 1, 0) == 0)
        return (gp_came){ .status = GP_AGAIN };
    gp_status s = from_stream(r, c, NULL, skip, &skipped);
    if (s == GP_OK && skipped == skip)
        s = from_stream(r, c, to, all, &got);
    if (s == GP_STOPPED)
        return (gp_came){ .status = s };
    gp_came came = { .status = s, .error = s == GP_FAILED ? errno : 0, .rows = got / row, .rest = got ? got % row : skipped };
    r->before = 0;
    r->ended = s == GP_FAILED || got < all;
    if (s == GP_OK && r->ended && came.rest && o->tail == GP_TAIL_ERROR)
        came.status = GP_FAILED;
    return came;
}

gp_came gp_stream_next(gp_reader *r, gp_call *c, void *to, bool first)
{
    for (;;) {
        if (r->ended && !r->o->reopen)
            return (gp_came){ .status = GP_END };
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
    gp_type stored = gp_read_stored(o, &r->most);
    gp_came came = r->ahead ? gp_ahead_take(r->ahead, c, v->data, first) : gp_stream_next(r, c, v->data, first);
    v->type.dim[0] = came.rows;
    f->name = r->stem[0], f->time_ns = came.time_ns;
    r->worker[c->worker].none |= came.none;
    if (came.status != GP_FAILED)
        return came.status;
    if (came.none)
        gp_fail(c->errs, GP_E_RUN, o->at, "'%s' cannot be read: %s", o->path,
                came.error == EBUSY ? "another run or stage of gpipe reads this FIFO, and each would get "
                                      "a part of it" : strerror(came.error));
    else if (came.error)
        gp_fail(c->errs, GP_E_RUN, o->at, "frame %llu: '%s' cannot be read: %s",
                (unsigned long long)f->index, o->path, strerror(came.error));
    else
        gp_fail(c->errs, GP_E_RUN, o->at, "frame %llu: '%s' ends within a frame, %lld bytes after "
                "its last whole row of %lld bytes: 'tail: ignore' leaves them out",
                (unsigned long long)f->index, o->path, (long long)came.rest,
                (long long)gp_bytes(&stored) / (long long)stored.dim[0]);
    return GP_FAILED;
}
