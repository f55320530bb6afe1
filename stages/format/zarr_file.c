/* zarr_file.c - arrays of Zarr stores as frames, see zarr_file.h and rows_file.h.
 *
 * Rows are the indices of axis 0. Where frames are whole chunks along it, each worker decodes those of its frame, straight
 * into that if they are its rows. Else the rows that chunks have in common are decoded once, into a window: the workers that
 * want one of its frames divide its chunks among them. A window is of one row of chunks at most, so what is damaged in it
 * is damaged for each of its frames. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/target.h"
#include "zarr_file.h"

enum { WINDOWS = 16 };
static const int64_t window_bytes = 512 << 20;         /* of all windows, or of the two that there are at least each */

typedef struct window {
    int64_t first, rows;       /* rows 0: there is nothing in it */
    int64_t next, left;        /* the chunk that nobody has begun, and how many are not done */
    int users;
    uint64_t used;             /* when: the oldest one is taken for other rows */
    bool bad;
    char why[GP_WHY];
    char *data;
} window;

typedef struct zarr {
    gp_rows rows;
    gp_zarr is;
    int fd, meta;              /* the array's folder; in it what says what it is, */
    struct stat said;          /* ... as it was read */
    char path[PATH_MAX];       /* of the folder; "": not known */
    size_t row;                /* bytes */
    int64_t step, chunks;      /* rows of a window; chunks that lie beside each other in it */
    int windows;
    pthread_mutex_t lock;      /* of all below */
    pthread_cond_t done;
    uint64_t now;
    window window[WINDOWS];
} zarr;

/* ---- chunks to rows ---------------------------------------------------- */

/* A box of elements: n along each axis, bytes from one to the next where it comes from and where it goes. */
typedef struct box { int64_t n[GP_MAXDIM], from[GP_MAXDIM], to[GP_MAXDIM], size; int last; } box;

/* Its axes from k on: from `from`, or all are `fill` where that is NULL. */
static void put(const box *b, int k, const unsigned char *fill, const char *from, char *to)
{
    static const unsigned char zeros[8];
    if (k < b->last) {
        for (int64_t i = 0; i < b->n[k]; i++, to += b->to[k])
            put(b, k + 1, fill, from ? from + i * b->from[k] : NULL, to);
    } else if (from && b->from[k] == b->size) {
        memcpy(to, from, (size_t)(b->n[k] * b->size));
    } else if (!from && !memcmp(fill, zeros, sizeof zeros)) {
        memset(to, 0, (size_t)(b->n[k] * b->size));
    } else {
        for (int64_t i = 0; i < b->n[k]; i++, to += b->size)
            memcpy(to, from ? from + i * b->from[k] : (const char *)fill, (size_t)b->size);
    }
}

/* Is the array still what was opened? A chunk that is missing is `fill` there alone, and not where somebody removed or
 * replaced the array. One that is being written becomes longer. */
static bool is_still(const zarr *z, char err[GP_WHY])
{
    struct stat held, now;
    int fd = z->fd;
    gp_zarr is;
    bool same = (!*z->path || gp_target_is(fd, z->path, 0)) && !fstat(z->meta, &held) && !fstatat(fd, z->is.file, &now, 0)
             && now.st_dev == held.st_dev && now.st_ino == held.st_ino && now.st_size == z->said.st_size;
    if (same && (now.st_mtim.tv_sec != z->said.st_mtim.tv_sec || now.st_mtim.tv_nsec != z->said.st_mtim.tv_nsec)) {
        same = gp_zarr_look(&is, &(gp_zarr_from){ gp_zarr_beside, &fd }, 0, err) && is.whole.dim[0] >= z->is.whole.dim[0];
        is.whole.dim[0] = z->is.whole.dim[0];
        memcpy(is.folder, z->is.folder, sizeof is.folder);
        same = same && !memcmp(&is, &z->is, sizeof is);
    }
    return same || gp_why(err, "is not there: the store was changed or removed while it was read");
}

/* What a chunk has of rows [first, first + rows), which are at `to`. */
static bool take_chunk(const zarr *z, gp_zarr_own *o, const int64_t *chunk, int64_t first, int64_t rows, char *to,
                       char err[GP_WHY])
{
    const gp_zarr *is = &z->is;
    const int64_t size = (int64_t)gp_dtype_size(is->whole.dtype);
    box b = { .size = size, .last = is->whole.ndim - 1 };
    int64_t elements = 1, skip = 0, all = size;
    char name[GP_ZARR_NAME], why[GP_WHY] = "";
    bool there, whole = true;
    for (int k = is->whole.ndim; k--;) {
        b.from[is->order[k]] = elements * size, elements *= is->chunk[is->order[k]];
        b.to[k] = all, all *= is->whole.dim[k];
    }
    for (int k = 0; k < is->whole.ndim; k++) {
        int64_t from = chunk[k] * is->chunk[k], low = k || from > first ? from : first;
        int64_t end = from + is->chunk[k], most = k ? is->whole.dim[k] : first + rows;
        b.n[k] = (end < most ? end : most) - low;
        skip += (low - from) * b.from[k], to += (low - (k ? 0 : first)) * b.to[k];
        whole &= is->order[k] == k && b.n[k] == is->chunk[k] && (!k || b.n[k] == is->whole.dim[k]);
    }
    const size_t want = (size_t)(elements * size);
    bool ok = gp_zarr_bytes(is, z->fd, o, chunk, want, &there, name, why) && (there || is_still(z, why))
           && (!there || whole || gp_growbuf_need(&o->chunk, want) || gp_why(why, GP_WHY_MEMORY));
    char *decoded = there ? whole ? to : (char *)o->chunk.data : NULL;
    ok = ok && (!there || gp_zarr_decode(&is->chain, &o->work, o->file.data, o->file.n, decoded, want, why));
    if (!ok)
        return gp_why(err, "(chunk '%s') %s", name, why);
    if (there && is->big)
        gp_swap(decoded, &(gp_type){ is->whole.dtype, 1, { elements } });
    for (int k; (k = b.last) && b.from[k] == size && b.from[k - 1] == b.n[k] * size && b.to[k - 1] == b.n[k] * size; b.last--)
        b.n[k - 1] *= b.n[k], b.from[k - 1] = b.to[k - 1] = size;      /* two axes that lie as one */
    if (!there || !whole)
        put(&b, 0, is->fill, there ? decoded + skip : NULL, to);
    return true;
}

/* The i-th of the chunks that lie in a row of them. */
static bool take_one(const zarr *z, gp_zarr_own *o, int64_t row, int64_t i, int64_t first, int64_t rows, char *to,
                     char err[GP_WHY])
{
    int64_t chunk[GP_MAXDIM] = { row };
    for (int k = z->is.whole.ndim - 1; k; k--) {
        int64_t many = (z->is.whole.dim[k] + z->is.chunk[k] - 1) / z->is.chunk[k];
        chunk[k] = i % many, i /= many;
    }
    return take_chunk(z, o, chunk, first, rows, to, err);
}

/* Rows of whole chunks. */
static bool take_all(const zarr *z, gp_zarr_own *o, int64_t first, int64_t rows, char *to, char err[GP_WHY])
{
    const int64_t each = z->is.chunk[0];
    for (int64_t row = first / each; row * each < first + rows; row++)
        for (int64_t i = 0; i < z->chunks; i++)
            if (!take_one(z, o, row, i, first, rows, to, err))
                return false;
    return true;
}

/* ---- windows ----------------------------------------------------------- */

/* The window with these rows, for one user more; with the lock. NULL: no memory. */
static window *find_window(zarr *z, int64_t first, int64_t rows)
{
    for (;;) {
        window *old = NULL;
        for (window *w = z->window; w < z->window + z->windows; w++) {
            if (w->rows && w->first == first) {
                w->users++, w->used = ++z->now;
                return w;
            }
            if (!w->users && (!old || w->used < old->used))
                old = w;
        }
        if (!old) {
            pthread_cond_wait(&z->done, &z->lock);
            continue;
        }
        if (!old->data && !(old->data = malloc(z->row * (size_t)z->step)))
            return NULL;
        *old = (window){ .first = first, .rows = rows, .left = z->chunks, .users = 1, .used = ++z->now, .data = old->data };
        return old;
    }
}

/* Decodes chunks of the window until nobody has to any more; with the lock. */
static void fill_window(zarr *z, gp_zarr_own *o, window *w)
{
    char why[GP_WHY] = "";
    while (w->next < z->chunks && !w->bad) {
        int64_t i = w->next++;
        pthread_mutex_unlock(&z->lock);
        bool ok = take_one(z, o, w->first / z->is.chunk[0], i, w->first, w->rows, w->data, why);
        pthread_mutex_lock(&z->lock);
        if (!ok && !w->bad) {
            w->bad = true, w->left -= z->chunks - w->next, w->next = z->chunks;
            memcpy(w->why, why, GP_WHY);
        }
        if (!--w->left)
            pthread_cond_broadcast(&z->done);
    }
    while (w->left)
        pthread_cond_wait(&z->done, &z->lock);
}

/* Copies rows out of the window that begins there. */
static bool take_from_window(zarr *z, gp_zarr_own *o, int64_t first, int64_t rows, int64_t at, int64_t n, char *to,
                             char err[GP_WHY])
{
    pthread_mutex_lock(&z->lock);
    window *w = find_window(z, first, rows);
    if (w)
        fill_window(z, o, w);
    bool ok = w && !w->bad;
    if (!ok)
        memcpy(err, w ? w->why : GP_WHY_MEMORY, w ? GP_WHY : sizeof GP_WHY_MEMORY);
    pthread_mutex_unlock(&z->lock);
    if (ok)
        memcpy(to, w->data + (size_t)(at - first) * z->row, (size_t)n * z->row);
    pthread_mutex_lock(&z->lock);
    if (w && !--w->users && w->bad)
        w->rows = 0;                   /* another try may find it whole */
    pthread_cond_broadcast(&z->done);
    pthread_mutex_unlock(&z->lock);
    return ok;
}

static bool zarr_read(gp_rows *rows, void **mine, int64_t first, int64_t n, void *to, char err[GP_WHY])
{
    zarr *z = (zarr *)rows;
    gp_zarr_own *o = *mine;
    const int64_t each = z->is.chunk[0], all = z->is.whole.dim[0];
    if (!o && !(o = *mine = gp_zarr_new_own()))
        return gp_why(err, GP_WHY_MEMORY);
    if (first % each == 0 && (n % each == 0 || first + n == all))
        return take_all(z, o, first, n, to, err);
    bool ok = true;
    for (int64_t at = first, k; ok && at < first + n; at += k) {
        int64_t row = at / each * each, begin = row + (at - row) / z->step * z->step;
        int64_t end = row + each < all ? row + each : all, many = end - begin < z->step ? end - begin : z->step;
        k = begin + many < first + n ? begin + many - at : first + n - at;
        ok = take_from_window(z, o, begin, many, at, k, (char *)to + (size_t)(at - first) * z->row, err);
    }
    return ok;
}

/* ---- the file ----------------------------------------------------------- */

static bool zarr_head(const gp_rows_head *h, const gp_rowsfile_how *how, gp_type *whole, char err[GP_WHY])
{
    gp_zarr z;
    if (!h->beside)
        return gp_why(err, "is no folder, as a Zarr store is");
    bool ok = gp_zarr_look(&z, &(gp_zarr_from){ h->beside, h->user }, how->level, err);
    *whole = z.whole;
    return ok;
}

static void zarr_close(gp_rows *rows)
{
    zarr *z = (zarr *)rows;
    for (int i = 0; i < WINDOWS; i++)
        free(z->window[i].data);
    if (z->fd >= 0)
        close(z->fd);
    if (z->meta >= 0)
        close(z->meta);
    pthread_cond_destroy(&z->done);
    pthread_mutex_destroy(&z->lock);
    free(z);
}

static gp_rows *zarr_open(int fd, const gp_rowsfile_how *how, char err[GP_WHY])
{
    int64_t size;
    zarr *z = gp_rows_new(sizeof *z, fd, &size, err);
    if (!z)
        return NULL;
    pthread_mutex_init(&z->lock, NULL);
    pthread_cond_init(&z->done, NULL);
    z->fd = z->meta = -1;
    if (!gp_zarr_look(&z->is, &(gp_zarr_from){ gp_zarr_beside, &fd }, how->level, err)) {
        zarr_close(&z->rows);
        return NULL;
    }
    z->fd = openat(fd, *z->is.folder ? z->is.folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    z->meta = z->fd < 0 ? -1 : openat(z->fd, z->is.file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (z->meta < 0 || fstat(z->meta, &z->said)) {
        gp_why(err, "cannot be read: %s", gp_strerror(errno));
        zarr_close(&z->rows);
        return NULL;
    }
    if (!gp_target_path(z->fd, z->path))
        *z->path = 0;
    z->rows.whole = z->is.whole;
    gp_type one = z->is.whole;
    one.dim[0] = 1, z->row = gp_bytes(&one), z->chunks = 1;
    for (int k = 1; k < one.ndim; k++)
        z->chunks *= (one.dim[k] + z->is.chunk[k] - 1) / z->is.chunk[k];
    const int64_t each = z->is.chunk[0] < z->is.whole.dim[0] ? z->is.chunk[0] : z->is.whole.dim[0];
    const int64_t row = z->row ? (int64_t)z->row : 1, most = window_bytes / row;
    z->step = each < most ? each : most;
    z->step = z->step > 1 ? z->step : 1;
    const int64_t many = window_bytes / (z->step * row);
    z->windows = many < 2 ? 2 : many < WINDOWS ? (int)many : WINDOWS;
    return &z->rows;
}

static const char *zarr_why_not(const gp_type *type, const char *path)
{
    return NULL;                       /* it holds all types */
}

const gp_rowsfile gp_zarr_array = {
    .name = "Zarr", .options = { "level", "compression", "chunk" }, .is_array = true, .is_folder = true,
    .decode_ns = 1, .encode_ns = { 0, 2, 3, 3, 6, 10, 15, 20, 25, 30 },
    .head = zarr_head, .open = zarr_open, .read = zarr_read, .leave = gp_zarr_close_own, .close = zarr_close,
    .why_not = zarr_why_not, .may_replace = gp_zarr_may_replace,
    .create = gp_zarr_create, .append = gp_zarr_append, .finish = gp_zarr_finish,
};
