/* joined.c - all frames in one file, to standard output or to a process, see writer.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include "base/npy.h"
#include "base/plural.h"
#include "writer.h"

enum { PIECE = 1 << 16 };              /* bytes at once for who may not read on: those before it are done, and make room */

bool gp_writer_put_header(gp_writer *w, char why[GP_WHY])
{
    char head[GP_NPY_HEADER_MAX];
    int fd = w->worker[0].file.fd;
    size_t n = gp_npy_header(&w->joined, head, sizeof head);
    struct iovec v = { head, n };
    if (!w->head) {
        w->head = w->size = n;
        return gp_write_all(fd, &v, 1, why);
    }
    return gp_put_at(fd, head, n, 0, why);
}

/* Do its frames say what the header has to? */
static bool says_rate(const gp_write_opts *o)
{
    return gp_filetype_takes(o->as, "sample_rate") && !o->sample_rate;
}

bool gp_writer_rate(const gp_write_opts *o, const gp_filemeta *said, int64_t *rate, char why[GP_WHY])
{
    if (!says_rate(o))
        return true;
    int i = gp_filemeta_find(said, "sample_rate", strlen("sample_rate"));
    if (i < 0 || !(said->has & 1u << i))
        return gp_why(why, "cannot be written: the frame's metadata have no 'sample_rate': set the option "
                      "'sample_rate'");
    double hz = said->value[i];
    *rate = hz >= 1 && hz <= 1e9 ? (int64_t)hz : 0;
    return (*rate && (double)*rate == hz)
        || gp_why(why, "cannot be written: the frame's 'sample_rate' is %g Hz, and a recording has a whole number of "
                  "them, from 1 to 1e9", hz);
}

bool gp_writer_open_joined(gp_writer *w, const char *path, const gp_type *frame, char why[GP_WHY])
{
    const gp_write_opts *o = w->o;
    w->joined = *frame;
    if (o->stack || o->pages) {
        w->joined.ndim++;
        memcpy(w->joined.dim + 1, frame->dim, sizeof frame->dim[0] * (size_t)frame->ndim);
    }
    w->joined.dim[0] = 0;
    if (w->rank && w->ranks > 1)
        return true;                   /* the first one opens it */
    if ((o->append || w->goes_on) && !gp_append_open(w, path, why))
        return false;
    if (w->worker[0].file.open)
        return true;
    bool ok = gp_outfile_open(&w->worker[0].file, path, why);
    bool sound = gp_write_creates(o);
    bool refused = w->worker[0].file.in_place && (o->as == GP_NPY || sound || o->live || o->rotates || w->ranks > 1);
    if (refused)
        w->worker[0].file.unread = false;      /* nor is its reader waited for */
    if (refused && o->as == GP_NPY)
        return gp_why(why, "is not a regular file, which a joined .npy needs: set 'format: raw'");
    if (refused && sound)
        return gp_why(why, "is not a regular file, which %s needs: set 'format: raw'", gp_rowsfile_of(o->as)->name);
    if (refused && w->ranks > 1)
        return gp_why(why, "is not a regular file, which %d ranks need to write it together", w->ranks);
    if (ok && sound && !says_rate(o)
        && !(w->rows = gp_rowsfile_of(o->as)->create(w->worker[0].file.fd, &o->rows, frame, path, why)))
        return false;
    if (refused)
        return gp_why(why, "is not a regular file, on which '%s' has no effect",
                      o->append ? "append" : o->rotates ? "rotate_..." : "live");
    return ok && (o->as != GP_NPY || gp_writer_put_header(w, why))
        && (!o->live || w->worker[0].file.replaces || gp_outfile_publish(&w->worker[0].file, why));
}

static gp_status reach_joined(gp_writer *w, gp_call *c, char why[GP_WHY])
{
    char path[PATH_MAX];
    gp_outfile *f = &w->worker[0].file;
    if (f->open)
        return GP_OK;
    return gp_path_expand(path, w->o->path, 0, "", why) ? gp_writer_reach(c, f, path, why) : GP_FAILED;
}

static bool put(const gp_writer *w, struct iovec *v, int n, char why[GP_WHY])
{
    int fd = w->worker[0].file.fd;
    return w->process ? gp_process_write(w->process, v, n, why) : gp_write_all(fd, v, n, why);
}

/* One frame to a pipe, in pieces for which there is room, where the run may end or pause without its reader. After a pause
 * that frame comes again, of which w->put bytes are written. */
static bool put_in_pieces(gp_writer *w, const struct iovec *v, int n, char why[GP_WHY])
{
    size_t before = 0;
    for (int i = 0; i < n; before += v[i++].iov_len)
        for (size_t at, k; (at = w->put - before) < v[i].iov_len; w->put += k) {
            k = v[i].iov_len - at < PIPE_BUF ? v[i].iov_len - at : PIPE_BUF;
            w->room = gp_wait_for_reader_or_pause(w->call, w->worker[0].file.fd);
            if (w->room != 1 || !put(w, &(struct iovec){ (char *)v[i].iov_base + at, k }, 1, why))
                return false;
        }
    w->put = 0;
    return true;
}

/* Writes at the end of the file. Somebody may truncate it at any moment: then it stays too short. */
static bool put_rows(gp_writer *w, struct iovec *v, int n, char why[GP_WHY])
{
    const gp_outfile *f = &w->worker[0].file;
    bool own = f->open && !f->in_place;
    if (own)
        fcntl(f->fd, F_SETFL, O_APPEND);
    bool ok = w->room < 0 ? put(w, v, n, why) : put_in_pieces(w, v, n, why);
    if (own)
        fcntl(f->fd, F_SETFL, 0);      /* the header has its place */
    return ok;
}

/* The recording, whose header has the sample rate of its first frame; all others have the same. */
static bool begin_rows(gp_writer *w, const gp_frame *f, const gp_filemeta *said, char why[GP_WHY])
{
    gp_rowsfile_how how = w->o->rows;
    char path[PATH_MAX];
    if (!gp_writer_rate(w->o, said, &how.sample_rate, why))
        return false;
    if (w->rows)
        return !says_rate(w->o) || how.sample_rate == w->rate
            || gp_why(why, "cannot be written: the frame has a sample rate of %lld Hz, those before it %lld",
                      (long long)how.sample_rate, (long long)w->rate);
    w->rate = how.sample_rate;
    return gp_path_expand(path, w->o->path, 0, "", why)
        && (w->rows = gp_rowsfile_of(w->o->as)->create(w->worker[0].file.fd, &how, &f->in[0].type, path, why));
}

/* Adds the frames to a recording. Those before `*at` are in it, whatever comes. */
static bool append_rows(gp_writer *w, const gp_call *c, const gp_frame *f, const struct iovec *v, int n, int *at,
                        char why[GP_WHY])
{
    gp_outfile *file = &w->worker[0].file;
    struct stat st;
    gp_type row = w->joined;
    row.dim[0] = 1;
    size_t bytes = gp_bytes(&row);
    w->began = true;
    if ((w->o->live && !file->published && !gp_outfile_publish(file, why)) || !gp_outfile_check(file, w->size, why))
        return false;
    for (int i = 0; i < n; i++) {
        *at = i;
        int64_t rows = (int64_t)(v[i].iov_len / bytes);
        gp_filemeta said = gp_filemeta_of_frame(c, &f[i]);
        if (!begin_rows(w, &f[i], &said, why))
            return false;
        w->rows->said = &said;
        bool ok = w->rows->as->append(w->rows, v[i].iov_base, rows, why);
        w->rows->said = NULL;          /* it lives no longer than the frame's turn */
        if (!ok)
            return false;
        w->joined.dim[0] += rows;
    }
    if (fstat(file->fd, &st) || S_ISDIR(st.st_mode))
        w->size = 0;
    else if ((size_t)st.st_size > w->size)         /* else somebody has cut it since, which the next check says */
        w->size = (size_t)st.st_size;
    if (w->joined.dim[0])
        gp_outfile_worth(file);
    return true;
}

/* Adds the frames to the joined file. A .npy then says that they are there, whatever comes; what
 * could not be written whole is taken away. */
static bool append(gp_writer *w, struct iovec *v, int n, int64_t rows, char why[GP_WHY])
{
    const gp_write_opts *o = w->o;
    gp_outfile *f = &w->worker[0].file;
    w->began = true;
    if ((o->live && !f->published && !gp_outfile_publish(f, why))
        || !gp_outfile_check(f, w->size, why))
        return false;
    size_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += v[i].iov_len;
    if (put_rows(w, v, n, why)) {
        w->joined.dim[0] += rows;
        w->size += bytes;
        if (!w->head || gp_writer_put_header(w, why)) {
            if (w->joined.dim[0])
                gp_outfile_worth(f);
            return true;
        }
        w->size -= bytes;
        w->joined.dim[0] -= rows;      /* the header says what was there before */
    }
    int cut = f->in_place ? 0 : ftruncate(f->fd, (off_t)w->size);
    (void)cut;                         /* a .npy says how much of it is whole */
    return false;
}

bool gp_writer_spell(const gp_writer *w, const gp_call *c, const gp_frame *f, gp_growbuf *to, char why[GP_WHY])
{
    if (w->o->columns.n)
        return gp_table_spell(w->o, c, f, to, why);
    gp_type t = f->in[0].type;
    if (w->o->stack)
        t = (gp_type){ t.dtype, 2, { 1, t.dim[0] } };
    const gp_rowsfile *as = gp_rowsfile_of(w->o->as);
    return as->encode(as, f->in[0].data, &t, to, why);
}

/* The frames as text, in v[0]. */
static bool spell(gp_writer *w, const gp_call *c, const gp_frame *f, int n, struct iovec *v, char why[GP_WHY])
{
    gp_growbuf *to = &w->worker[0].encoded;
    to->n = 0;
    for (int i = 0; i < n; i++)
        if (!gp_writer_spell(w, c, &f[i], to, why))
            return false;
    v[0] = (struct iovec){ to->data, to->n };
    return true;
}

/* The frames of a video, with what stands before the first and before each, in `all`. How many parts that are. */
static int video_parts(gp_writer *w, const struct iovec *v, int n, struct iovec all[2 * GP_WRITE_RUN + 1])
{
    const char *before = gp_rowsfile_of(w->o->as)->before;
    int k = 0;
    if (w->nbegin)
        all[k++] = (struct iovec){ (char *)w->begin, w->nbegin };
    for (int i = 0; i < n; i++) {
        all[k++] = (struct iovec){ (void *)before, strlen(before) };
        all[k++] = v[i];
    }
    return k;
}

/* The frames as arrays, each with its header, in `all`. NULL: no memory; else how many parts that are is 2 n. */
static struct iovec *arrays(gp_writer *w, const gp_frame *f, const struct iovec *v, int n, struct iovec *all)
{
    gp_growbuf *heads = &w->worker[0].encoded;
    if (!gp_growbuf_need(heads, (size_t)n * GP_NPY_HEADER_MAX))
        return NULL;
    for (int i = 0; i < n; i++) {
        char *head = (char *)heads->data + (size_t)i * GP_NPY_HEADER_MAX;
        all[2 * i] = (struct iovec){ head, gp_npy_header(&f[i].in[0].type, head, GP_NPY_HEADER_MAX) };
        all[2 * i + 1] = v[i];
    }
    return all;
}

/* Adds the frames as the format has them, at once. */
static bool append_frames(gp_writer *w, gp_call *c, const gp_frame *f, struct iovec *v, int n, int64_t rows, char why[GP_WHY])
{
    struct iovec all[2 * GP_WRITE_RUN + 1];
    if (gp_write_begins(w->o))
        return append(w, all, video_parts(w, v, n, all), rows, why);
    if (gp_write_is_text(w->o)) {
        bool ok = spell(w, c, f, n, v, why) && (!w->o->rotate_size || gp_rotate(w, c, f, v[0].iov_len, why));
        all[0] = (struct iovec){ (char *)w->begin, w->nbegin }, all[1] = v[0];
        return ok && append(w, all, 2, rows, why);
    }
    if (w->o->arrays)
        return arrays(w, f, v, n, all) ? append(w, all, 2 * n, rows, why)
                                       : gp_why(why, "cannot be written: " GP_WHY_MEMORY);
    return append(w, v, n, rows, why);
}

/* Has the process ended as it should, with so many bytes unread? */
static bool ended_well(gp_writer *w, int unread, char why[GP_WHY])
{
    return gp_process_is_well(w->process, why)
        && (unread <= 0 || gp_why(why, "ended with exit status 0, and did not read all frames"));
}

/* The process reads no more. It may be about to say why. */
static void say_ended(gp_writer *w, char why[GP_WHY])
{
    enum { TICK_MS = 10, TICKS = 100 };
    for (int i = 0; i < TICKS && !gp_process_has_ended(w->process, false); i++)
        poll(NULL, 0, TICK_MS);
    if (!gp_process_has_ended(w->process, false))
        gp_why(why, "has closed its input, and does not end");
    else
        ended_well(w, 1, why);
}

/* The frames (n 0: what is written at the end) could not be written, nor will any be that follow. */
static bool fail(gp_writer *w, gp_call *c, const gp_frame *f, int n, char why[GP_WHY])
{
    const gp_write_opts *o = w->o;
    gp_code code = n && o->to_stdout && errno == EPIPE ? GP_E_CLOSED : GP_E_RUN;
    const char *path = *w->path ? w->path : o->path;
    bool ended = w->process && errno == EPIPE;
    if (ended)
        say_ended(w, why);
    if (!n)
        gp_fail(c->errs, code, o->at, "'%s' %s", path, why);
    else if (n == 1)
        gp_fail(c->errs, code, o->at, "frame %llu: '%s' %s", (unsigned long long)f[0].index, path, why);
    else
        gp_fail(c->errs, code, o->at, "frame %llu or one of the %d behind it: '%s' %s", (unsigned long long)f[0].index,
                n - 1, path, why);
    if (ended)
        gp_process_tell(w->process, c->errs);
    return false;
}

const gp_view *gp_writer_misfit(const gp_write_opts *o, const gp_frame *f)
{
    bool whole = o->stack || o->pages || gp_write_is_video(o);
    for (int i = 0; i < o->nin; i++)
        if (f->in[i].type.dim[0] != (whole ? f->in[i].rows : f->in[0].type.dim[0]))
            return &f->in[i];
    return NULL;
}

bool gp_writer_stacks(const gp_writer *w, gp_call *c, const gp_frame *f)
{
    const gp_view *in = gp_writer_misfit(w->o, f);
    if (in && gp_write_is_video(w->o))
        return gp_fail(c->errs, GP_E_RUN, w->o->at, "frame %llu: '%s' holds pictures of one size, and this frame has %lld "
                       "of %lld rows", (unsigned long long)f->index, w->o->path, (long long)in->type.dim[0],
                       (long long)in->rows);
    return !in || !(w->o->stack || w->o->pages)
        || gp_fail(c->errs, GP_E_RUN, w->o->at, "frame %llu: '%s' cannot stack a frame of %lld row%s on frames of %lld: "
                   "%s, or leave it out before (a group has 'tail: drop'; a script returns 'drop')",
                   (unsigned long long)f->index, w->o->path, (long long)in->type.dim[0], gp_plural(in->type.dim[0]),
                   (long long)in->rows, w->o->pages ? "give each frame a file" : "set 'stack: false'");
}

/* Whether the reader of a pipe has room, as gp_wait_for_reader_or_pause() says it. */
static gp_status await_room(gp_writer *w, gp_call *c)
{
    const gp_outfile *f = &w->worker[0].file;
    w->room = f->in_place ? gp_wait_for_reader_or_pause(c, f->fd) : -1;
    return w->room == 2 ? GP_AGAIN : w->room ? GP_OK : GP_STOPPED;
}

/* A file with a gap is useless, so any error ends the run. */
bool gp_writer_join(gp_writer *w, gp_call *c, gp_frame *f, int n)
{
    const gp_write_opts *o = w->o;
    struct iovec v[GP_WRITE_RUN];
    char why[GP_WHY];
    size_t bytes = 0;
    int64_t rows = 0;
    int k = 0;
    if (w->workers > 1 && !gp_wait_turn(c)) {
        f[0].status = GP_DROP;
        return true;
    }
    const size_t before = gp_write_begins(o) ? strlen(gp_rowsfile_of(o->as)->before) : 0;
    const bool text = gp_write_is_text(o);         /* how long it becomes is known once it is spelled */
    if (o->rotates && !gp_rotate(w, c, &f[0], text ? 0 : gp_bytes(&f[0].in[0].type) + before, why))
        return fail(w, c, f, 1, why);
    f[0].status = reach_joined(w, c, why);
    if (f[0].status == GP_OK)
        f[0].status = await_room(w, c);
    if (f[0].status != GP_OK)
        return f[0].status == GP_STOPPED || f[0].status == GP_AGAIN
            || gp_fail(c->errs, GP_E_RUN, o->at, "'%s' %s", o->path, why);
    const size_t most = w->worker[0].file.in_place ? PIECE : GP_RUN_BYTES;
    for (; k < (w->room < 0 ? n : 1) && bytes < most; k++) {
        const gp_view *in = &f[k].in[0];
        if (k && bytes + gp_bytes(&in->type) > most)
            break;
        if (k && gp_writer_misfit(o, &f[k]))
            break;                     /* first those before it */
        if (k && o->rotates && ((text && o->rotate_size)
                                || gp_rotate_due(w, &f[k], k, bytes + gp_bytes(&in->type) + before * (size_t)(k + 1))))
            break;
        if (!gp_writer_stacks(w, c, &f[k]))
            return false;
        v[k] = (struct iovec){ in->data, gp_bytes(&in->type) };
        bytes += v[k].iov_len;
        rows += o->stack || o->pages ? 1 : in->type.dim[0];
    }
    if (k < n)
        f[k].status = GP_AGAIN;
    int at = 0;
    w->call = c;
    bool ok = gp_write_creates(o) ? append_rows(w, c, f, v, k, &at, why) : append_frames(w, c, f, v, k, rows, why);
    w->call = NULL;
    if (w->room == 0 || w->room == 2) {
        f[0].status = w->room ? GP_AGAIN : GP_STOPPED;
        return true;
    }
    w->room = -1;
    w->in_file += k, w->nbegin = 0;
    if (ok && !o->rotates) {
        pthread_mutex_lock(&w->lock);
        w->now = (gp_saved){ f[k - 1].index + 1, { w->size, (uint64_t)w->joined.dim[0], w->head } };
        w->begun = true;
        pthread_mutex_unlock(&w->lock);
    }
    return ok || (gp_write_creates(o) ? fail(w, c, &f[at], 1, why) : fail(w, c, f, k, why));
}

/* Now that the file is whole, that may be done with. */
static void tell_kept(const gp_writer *w, gp_call *c)
{
    char first[PATH_MAX], more[40] = "";
    const gp_outfile *f = &w->worker[0].file;
    int n = f->in_place ? 0 : gp_outfile_kept(f, first);
    if (n > 1)
        snprintf(more, sizeof more, ", and %d more", n - 1);
    if (n)
        gp_fail(c->errs, GP_E_WARN, w->o->at, "'%s', which a run that failed kept, is still there%s",
                first, more);
}

/* Nothing more is written: waits for the process. */
static bool finish_process(gp_writer *w, gp_call *c)
{
    char why[GP_WHY];
    gp_process_hang_up(w->process);
    for (int go = 1; !gp_process_has_ended(w->process, go < 0);)
        if (!(go = gp_wait_for_reader(c, -1)))
            return true;               /* close_writer() stops it */
    int unread = gp_process_unread(w->process);
    if (ended_well(w, unread, why)) {
        if (unread < 0)
            gp_fail(c->errs, GP_E_WARN, w->o->at, "whether '%s' has read all frames is not known: %s", w->o->path,
                    gp_strerror(-unread));
        return true;
    }
    gp_fail(c->errs, GP_E_RUN, w->o->at, "'%s' %s", w->o->path, why);
    gp_process_tell(w->process, c->errs);
    return false;
}

bool gp_writer_close_joined(gp_writer *w, char why[GP_WHY])
{
    gp_outfile *f = &w->worker[0].file;
    gp_rows_out *rows = w->rows;
    char later[GP_WHY];
    w->rows = NULL;
    bool is_all = gp_outfile_check(f, w->size, why);
    return (!rows || rows->as->finish(rows, is_all ? why : later)) && is_all && gp_outfile_commit(f, why);
}

bool gp_writer_finish(gp_call *c)
{
    gp_writer *w = c->state;
    const gp_write_opts *o = w->o;
    gp_outfile *f = &w->worker[0].file;
    char why[GP_WHY];
    errno = 0;
    if (o->single || (o->rotates && !f->open))
        return true;
    int before = c->errs->failed;
    if (w->ranks > 1 && !gp_ranks_finish(w, c))
        return c->errs->failed == before;
    if (gp_stopping(c) && !w->began && f->open && !f->in_place && !f->published) {
        gp_fail(c->errs, GP_E_WARN, o->at, "'%s' is %s: the run was stopped before its first frame",
                o->path, f->replaces ? "left as it is" : "not made");
        return true;                   /* close_writer() drops it */
    }
    gp_status s = reach_joined(w, c, why);
    if (s == GP_STOPPED)
        return true;
    if (s == GP_OK && w->nbegin) {     /* a video, a table without frames */
        struct iovec v = { (char *)w->begin, w->nbegin };
        if (!append(w, &v, 1, 0, why))
            return fail(w, c, NULL, 0, why);
        w->nbegin = 0;
    }
    if (s == GP_OK && !w->rows && gp_write_creates(o)) {
        gp_why(why, "cannot be written: there was no frame that says its sample rate");
        return fail(w, c, NULL, 0, why);
    }
    if (s != GP_OK || !gp_writer_close_joined(w, why) || (o->rotates && !gp_rotate_done(w, c, why)))
        return fail(w, c, NULL, 0, why);
    tell_kept(w, c);
    return !w->process || finish_process(w, c);
}
