/* rotate.c - joined files that follow each other, see writer.h.
 *
 * A file is that of whole frames, one at least. Which frames it has depends on the frames alone: on how many they are,
 * their bytes, and their times. What `keep` removes is a file of this run, and still as the run has left it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "writer.h"

bool gp_rotate_due(const gp_writer *w, const gp_frame *f, int64_t before, size_t bytes)
{
    const gp_write_opts *o = w->o;
    int64_t frames = w->in_file + before;
    return frames && ((o->rotate_frames && frames >= o->rotate_frames)
                      || (o->rotate_size && w->size + w->nbegin + bytes > (size_t)o->rotate_size)
                      || (o->rotate_time && f->time_ns >= w->until));
}

/* Frames whose time goes back stay in the file. */
static bool open_next(gp_writer *w, const gp_frame *f, char why[GP_WHY])
{
    const gp_write_opts *o = w->o;
    const gp_view *in = &f->in[0];
    gp_outfile *file = &w->worker[0].file;
    gp_type frame = in->type;
    frame.dim[0] = in->rows;           /* this one may be partial */
    file->frame = f->index, file->number = w->first + w->nfiles;
    if (!gp_writer_name(w, f, file->number, w->path, why))
        return false;
    if (o->rotate_time)
        w->until = (f->time_ns / o->rotate_time + 1) * o->rotate_time;
    pthread_mutex_lock(&w->lock);
    w->now = (gp_saved){ f->index, { w->nfiles++ } };
    w->begun = true;
    pthread_mutex_unlock(&w->lock);
    w->in_file = 0;
    w->head = w->size = 0;
    gp_writer_begin(w, &frame);
    return gp_writer_open_joined(w, w->path, &frame, why);
}

bool gp_rotate(gp_writer *w, gp_call *c, const gp_frame *f, size_t bytes, char why[GP_WHY])
{
    bool open = w->worker[0].file.open;
    if (open && !gp_rotate_due(w, f, 0, bytes))
        return true;
    return (!open || (gp_writer_close_joined(w, why) && gp_rotate_done(w, c, why))) && open_next(w, f, why);
}

static bool is_as_left(const gp_write_done *d, const struct stat *st)
{
    return st->st_dev == d->st.st_dev && st->st_ino == d->st.st_ino && st->st_size == d->st.st_size
        && st->st_mtim.tv_sec == d->st.st_mtim.tv_sec && st->st_mtim.tv_nsec == d->st.st_mtim.tv_nsec;
}

/* Removes a file, which has not been moved or removed by others. */
static bool discard(gp_writer *w, gp_call *c, const gp_write_done *d, char why[GP_WHY])
{
    struct stat st;
    if (lstat(d->path, &st))
        return true;
    if (is_as_left(d, &st))
        return !unlink(d->path) || errno == ENOENT
            || gp_why(why, "is written, and '%s', which 'keep' has no more, cannot be removed: %s", d->path, gp_strerror(errno));
    if (!w->told)
        gp_fail(c->errs, GP_E_WARN, w->o->at, "'%s' stays, which 'keep' would remove: it was changed since it was written",
                d->path);
    return w->told = true;
}

bool gp_rotate_done(gp_writer *w, gp_call *c, char why[GP_WHY])
{
    const gp_outfile *f = &w->worker[0].file;
    if (!w->o->keep)
        return true;
    if (!w->done && !(w->done = calloc((size_t)w->o->keep, sizeof *w->done)))
        return gp_why(why, "cannot be kept: " GP_WHY_MEMORY);
    gp_write_done *d = &w->done[w->ndone++ % (uint64_t)w->o->keep];
    bool ok = !d->path || discard(w, c, d, why);
    free(d->path);
    d->path = strdup(f->path);
    if (ok && (!d->path || lstat(d->path, &d->st)))
        return gp_why(why, "cannot be kept: %s", gp_strerror(errno));
    return ok;
}

void gp_rotate_close(gp_writer *w)
{
    for (uint64_t i = 0; w->done && i < (uint64_t)w->o->keep; i++)
        free(w->done[i].path);
    free(w->done);
}
