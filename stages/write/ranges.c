/* ranges.c - all frames in one file, by several workers, see writer.h.
 *
 * Each frame gets its place when a worker takes it, in the order of frames, so that nothing is left where a hole was,
 * or the rows of a partial frame end; then all write at the same time. What lies before the first range that somebody
 * still writes, or could not write, is whole: so much a .npy says that it has, and so much stays of a file that does
 * not come to its end.
 *
 * Linux lets one thread at a time write() to a file. Where its pages are memory and nothing else (tmpfs), threads can
 * fill them at the same time through mappings: as one of those is half as fast as one that writes, only from MAPPING
 * workers on. The kernel copies into the mapping, as it tells of what fails (no room, a file that was cut short) by an
 * error, while a store of our own would end the process. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "writer.h"

enum { MAPPING = 4 };

void gp_ranges_open(gp_writer *w)
{
    const gp_outfile *f = &w->worker[0].file;
    struct statfs fs;
    w->ranges = w->workers > 1 && !f->in_place;
    w->maps = w->ranges && w->workers >= MAPPING && !fstatfs(f->fd, &fs) && fs.f_type == TMPFS_MAGIC;
    w->end = w->size;
}

void gp_ranges_reserve(gp_call *c, const gp_frame *f)
{
    gp_writer *w = c->state;
    gp_write_worker *d = &w->worker[c->worker];
    if (!w->ranges)
        return;
    pthread_mutex_lock(&w->lock);
    w->began = true;
    d->writes = true, d->at = w->end, d->rows = w->rows_end;
    w->end += gp_bytes(&f->in[0].type);
    w->rows_end += w->o->stack ? 1 : f->in[0].type.dim[0];
    pthread_mutex_unlock(&w->lock);
}

/* Fills a range of a file in memory. False: nothing is known of it, it has to be written. */
static bool copy_into(int fd, const char *data, size_t n, size_t at)
{
    size_t before = at % (size_t)sysconf(_SC_PAGESIZE);
    if (!n || fallocate(fd, 0, (off_t)at, (off_t)n))
        return false;
    char *map = mmap(NULL, before + n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)(at - before));
    if (map == MAP_FAILED)
        return false;
    ssize_t k = 1;
    for (size_t done = 0; done < n && k > 0; done += (size_t)k) {
        struct iovec from = { (char *)data + done, n - done }, to = { map + before + done, n - done };
        k = process_vm_writev(getpid(), &from, 1, &to, 1, 0);
    }
    munmap(map, before + n);
    return k > 0;
}

bool gp_ranges_put(const gp_writer *w, const char *data, size_t n, size_t at, char why[GP_WHY])
{
    const gp_outfile *f = &w->worker[0].file;
    if (w->maps && !gp_outfile_is_abandoned(f) && copy_into(f->fd, data, n, at))
        return true;
    for (size_t done = 0; done < n;) {
        if (gp_outfile_is_abandoned(f))        /* it has been cut to what is whole */
            return gp_why(why, "cannot be written: the run has ended");
        ssize_t k = pwrite(f->fd, data + done, n - done, (off_t)(at + done));
        if (k < 0 && errno != EINTR)
            return gp_why(why, "cannot be written: %s", gp_strerror(errno));
        done += k > 0 ? (size_t)k : 0;
    }
    return true;
}

/* Finds out how much is whole, now that this worker writes its frame, or no longer does. */
static void settle(gp_writer *w, gp_write_worker *d, bool writes)
{
    pthread_mutex_lock(&w->lock);
    d->writes = writes;
    w->size = w->end, w->joined.dim[0] = w->rows_end;
    for (int i = 0; i < w->workers; i++)
        if (w->worker[i].writes && w->worker[i].at < w->size)
            w->size = w->worker[i].at, w->joined.dim[0] = w->worker[i].rows;
    pthread_mutex_unlock(&w->lock);
    gp_outfile_whole(&w->worker[0].file, w->size);
}

/* The frame is there. */
static bool put_down(gp_writer *w, gp_write_worker *d, char why[GP_WHY])
{
    pthread_mutex_lock(&w->settling);
    size_t was = w->size;
    settle(w, d, false);
    bool ok = w->size == was || w->o->as != GP_NPY || gp_writer_put_header(w, why);
    if (!ok)
        settle(w, d, true);
    if (w->joined.dim[0])
        gp_outfile_worth(&w->worker[0].file);
    pthread_mutex_unlock(&w->settling);
    return ok;
}

bool gp_ranges_write(gp_writer *w, gp_call *c, gp_frame *f)
{
    gp_write_worker *d = &w->worker[c->worker];
    const gp_view *in = &f->in[0];
    char why[GP_WHY];
    if (!gp_writer_stacks(w, c, f))
        return false;
    return (gp_ranges_put(w, in->data, gp_bytes(&in->type), d->at, why) && put_down(w, d, why))
        || gp_fail(c->errs, GP_E_RUN, w->o->at, "frame %llu: '%s' %s", (unsigned long long)f->index, w->o->path, why);
}

void gp_ranges_cut(gp_writer *w)
{
    const gp_outfile *f = &w->worker[0].file;
    int cut = f->open ? ftruncate(f->fd, (off_t)w->size) : 0;
    (void)cut;                         /* a .npy says how much of it is whole */
}
