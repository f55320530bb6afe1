/* rows_file.c - lists of rows of any format, see rows_file.h. */
#include <stdatomic.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "rows_file.h"

/* One column is an axis only where the frame has one for it. */
static void take_columns(gp_type *whole, const gp_type *frame)
{
    if (whole->ndim == 1 && frame->ndim == 2 && frame->dim[1] == 1)
        whole->ndim = 2, whole->dim[1] = 1;
}

/* May several rows of the file be a frame of this type, by what it says they are? */
static bool can_be_cut(const gp_rowsfile *row, const gp_rows_head *h, const gp_rowsfile_how *how, const gp_type *whole,
                       const gp_type *frame, char err[GP_WHY])
{
    bool several = row->cuts && frame->ndim > 1 && whole->ndim == frame->ndim && frame->dim[0] > 1;
    for (int k = 1; several && k < frame->ndim; k++)
        several = whole->dim[k] == frame->dim[k];
    return !several || row->cuts(h, how, frame->dim[0], err);
}

bool gp_rowsfile_head(const gp_rowsfile_how *how, gp_filetype as, const gp_rows_head *h, const gp_type *frame,
                      gp_type *whole, char err[GP_WHY])
{
    const gp_rowsfile *row = gp_rowsfile_of(as);
    gp_rowsfile_how all = *how;
    all.as = row, all.dtype = frame->dtype;
    if (!row->head(h, &all, whole, err))
        return false;
    take_columns(whole, frame);
    return can_be_cut(row, h, how, whole, frame, err);
}

bool gp_rowsfile_one(gp_type *whole, const gp_rowsfile *as, int ndim, char err[GP_WHY])
{
    if (!as->pages || whole->ndim != ndim + 1)
        return true;
    if (whole->dim[0] != 1)
        return gp_why(err, "has %lld pages, and where the shape is declared by bounds ('<=') each file is a frame",
                      (long long)whole->dim[0]);
    whole->ndim--;
    memmove(whole->dim, whole->dim + 1, sizeof whole->dim - sizeof *whole->dim);
    return true;
}

char *gp_rowsfile_text(const gp_type *whole, char buf[128])
{
    char row[128];
    gp_type t = *whole;
    if (t.dim[0] >= 0)
        return gp_type_text(&t, buf);
    t.ndim -= t.ndim > 1;
    memmove(t.dim, t.dim + 1, sizeof t.dim - sizeof t.dim[0]);
    t.dim[0] += whole->ndim == 1;
    snprintf(buf, 128, "rows of %.110s", gp_type_text(&t, row));
    return buf;
}

int64_t gp_rows_bytes(int fd, const gp_rows_head *h, int64_t at, void *to, size_t n)
{
    if (fd >= 0)
        return gp_read_at(fd, to, n, at);
    if (at + (int64_t)n > (int64_t)h->n && (int64_t)h->n < h->size)
        return h->more ? h->more(h->user, at, to, n) : 0;
    n = (int64_t)h->n - at < (int64_t)n ? h->n - (size_t)at : n;
    memcpy(to, (const char *)h->data + at, n);
    return (int64_t)n;
}

void *gp_rows_new(size_t bytes, int fd, int64_t *size, char err[GP_WHY])
{
    struct stat st;
    void *f = calloc(1, bytes);
    if (f && !fstat(fd, &st)) {
        *size = st.st_size;
        return f;
    }
    gp_why(err, f ? "cannot be read: %s" : GP_WHY_MEMORY "%.0s", gp_strerror(errno));
    free(f);
    return NULL;
}

static int64_t bytes_at(void *user, int64_t at, void *to, size_t n)
{
    return gp_read_at(*(int *)user, to, n, at);
}

gp_rows *gp_rowsfile_open(const gp_rowsfile_how *how, gp_filetype as, int fd, const gp_type *frame, char err[GP_WHY])
{
    static _Atomic uint64_t openings;
    char head[16];
    int64_t n = gp_read_at(fd, head, sizeof head, 0);
    const gp_rowsfile *row = gp_rowsfile_of(as);
    gp_rowsfile_how all = *how;
    all.as = row, all.dtype = frame->dtype;
    gp_rows *f = row->open(fd, &all, err);
    if (!f)
        return NULL;
    f->as = row;
    struct stat st;
    gp_rows_head h = { .data = head, .n = n > 0 ? (size_t)n : 0, .size = fstat(fd, &st) ? n : st.st_size,
                       .more = bytes_at, .user = &fd };
    if (!can_be_cut(row, &h, how, &f->whole, frame, err)) {
        row->close(f);
        return NULL;
    }
    f->serial = atomic_fetch_add(&openings, 1) + 1;
    take_columns(&f->whole, frame);
    return f;
}

static void **own_of(const gp_rows *f, gp_rows_own *w)
{
    if (w->serial != f->serial)
        gp_rowsfile_leave(w);
    w->as = f->as, w->serial = f->serial;
    return &w->own;
}

gp_status gp_rowsfile_take(gp_rows *f, gp_rows_own *w, int64_t row, gp_call *c, char err[GP_WHY])
{
    *err = 0;
    return f->as->take ? f->as->take(f, own_of(f, w), row, c, err) : GP_OK;
}

bool gp_rowsfile_read(gp_rows *f, gp_rows_own *w, int64_t first, int64_t n, void *to, char err[GP_WHY])
{
    *err = 0;
    return f->as->read(f, own_of(f, w), first, n, to, err);
}

bool gp_rowsfile_metadata(gp_rows *f, const gp_rows_own *w, int64_t row, gp_filemeta *to, char err[GP_WHY])
{
    if (f->said.has)
        *to = f->said;
    return !to->n || !f->as->said || f->as->said(f, w->own, row, to, err);
}

void gp_rowsfile_leave(gp_rows_own *w)
{
    if (w->own)
        w->as->leave(w->own);
    *w = (gp_rows_own){ 0 };
}

void gp_rowsfile_close(gp_rows *f)
{
    if (f)
        f->as->close(f);
}
