/* cut.c - how a .npy or raw file is cut into frames, see cut.h. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "rows_file.h"
#include "base/npy.h"

static bool start(gp_cut *c, const gp_type *frame, char err[GP_WHY])
{
    *c = (gp_cut){ .frame_rows = frame->dim[0] };
    if (!gp_count(frame))
        return gp_why(err, "cannot be cut into frames without elements");
    c->row_bytes = (int64_t)gp_bytes(frame) / frame->dim[0];
    return true;
}

bool gp_cut_raw(gp_cut *c, int64_t size, const gp_type *frame, const gp_cut_how *how,
                char err[GP_WHY])
{
    if (!start(c, frame, err))
        return false;
    if (size < how->offset)
        return gp_why(err, "has %lld bytes, fewer than the offset of %lld", (long long)size,
                      (long long)how->offset);
    c->data = how->offset;
    c->skip = how->skip;
    int64_t bytes = size - how->offset, whole = how->skip + c->row_bytes * c->frame_rows;
    int64_t tail = bytes % whole, rest = 0;
    c->rows = bytes / whole * c->frame_rows;
    if (tail > how->skip) {
        c->rows += (tail - how->skip) / c->row_bytes;
        rest = (tail - how->skip) % c->row_bytes;
    } else {
        rest = tail;
    }
    if (rest && !how->ignore_tail)
        return gp_why(err, "has %lld bytes after its last whole row of %lld bytes: "
                           "'tail: ignore' leaves them out",
                      (long long)rest, (long long)c->row_bytes);
    c->rows -= how->whole ? c->rows % c->frame_rows : 0;
    return true;
}

static bool same_dims(const int64_t *a, const int64_t *b, int n)
{
    return !memcmp(a, b, sizeof *a * (size_t)n);
}

bool gp_cut_type(gp_cut *c, const gp_type *whole, const gp_type *frame, char err[GP_WHY])
{
    char have[128], want[128];
    int extra = whole->ndim - frame->ndim;
    if (whole->dtype != frame->dtype)
        return gp_why(err, "holds %s, not %s", gp_dtype_name(whole->dtype),
                      gp_dtype_name(frame->dtype));
    if (extra == 0 ? !same_dims(whole->dim + 1, frame->dim + 1, frame->ndim - 1)
                   : extra != 1 || !same_dims(whole->dim + 1, frame->dim, frame->ndim))
        return gp_why(err, "holds %s, which cannot be cut into frames of %s", gp_rowsfile_text(whole, have),
                      gp_type_text(frame, want));
    if (!start(c, frame, err))
        return false;
    c->rows = whole->dim[0] * (extra ? frame->dim[0] : 1);
    return true;
}

bool gp_cut_npy(gp_cut *c, const void *head, size_t n, int64_t size, const gp_type *frame,
                const gp_cut_how *how, char err[GP_WHY])
{
    gp_type t;
    size_t data;
    bool fortran, big = false;
    if (!gp_npy_parse_any(head, n, &t, &data, &fortran, how->any_order ? &big : NULL, err))
        return false;
    fortran &= t.ndim > 1;
    if (fortran && !how->any_order)
        return gp_why(err, "is in column-major (Fortran) order: save its "
                           "numpy.ascontiguousarray");
    if (!gp_cut_type(c, &t, frame, err))
        return false;
    c->data = (int64_t)data, c->swap = big;
    c->columns = fortran ? t : (gp_type){ 0 };
    int64_t bytes = (int64_t)gp_bytes(&t), found = size - c->data;
    if (found < bytes)
        return gp_why(err, "is cut off: its header says %lld bytes of data, %lld are there",
                      (long long)bytes, (long long)found);
    if (found > bytes && !how->ignore_tail)
        return gp_why(err, "has %lld bytes after the array: 'tail: ignore' leaves them out",
                      (long long)(found - bytes));
    c->rows -= how->whole ? c->rows % c->frame_rows : 0;
    return true;
}

bool gp_cut_infer(gp_type *frame, const gp_type *array, bool whole, char err[GP_WHY])
{
    char have[128];
    if (!frame->dtype)
        frame->dtype = array->dtype;
    if (frame->ndim)
        return true;
    if (!whole && array->ndim == 1)
        return gp_why(err, "holds %s: how many elements make a frame? declare the shape of the "
                           "output under 'buffers:'",
                      gp_type_text(array, have));
    frame->ndim = array->ndim - !whole;
    memcpy(frame->dim, array->dim + !whole, sizeof frame->dim[0] * (size_t)frame->ndim);
    return gp_count(frame) > 0
        || gp_why(err, "holds %s: its frames would have no elements", gp_type_text(array, have));
}

bool gp_cut_frame(const gp_cut *c, int64_t i, int64_t *at, int64_t *rows)
{
    int64_t first = i * c->frame_rows, left = c->rows - first;
    if (left <= 0)
        return false;
    *rows = left < c->frame_rows ? left : c->frame_rows;
    *at = c->data + i * (c->skip + c->frame_rows * c->row_bytes) + c->skip;
    return true;
}

bool gp_cut_columns(const gp_type *array, int64_t first, int64_t n, void *to,
                    bool (*get)(void *user, int64_t at, void *to, size_t n), void *user)
{
    enum { CHUNK = 1 << 16, READ = 4096 };             /* READ: bytes that take as long as a call more */
    unsigned char chunk[CHUNK];
    const int64_t size = (int64_t)gp_dtype_size(array->dtype), height = array->dim[0], most = CHUNK / size;
    const int64_t columns = height ? gp_count(array) / height : 0;
    for (int64_t column = 0, all; column < columns; column += all) {
        bool near = n <= most && (height - n) * size <= READ;
        all = near && height <= most ? (most - n) / height + 1 : 1;    /* that are read at once */
        all = all < columns - column ? all : columns - column;
        for (int64_t done = 0, k; done < n; done += k) {
            k = n - done < most ? n - done : most;
            if (!get(user, (first + done + height * column) * size, chunk, (size_t)((height * (all - 1) + k) * size)))
                return false;
            for (int64_t i = 0; i < all; i++) {
                int64_t place = 0, rest = column + i, step = columns;
                for (int d = 1; d < array->ndim; rest /= array->dim[d++])
                    step /= array->dim[d], place += rest % array->dim[d] * step;
                for (int64_t row = 0; row < k; row++)
                    memcpy((char *)to + ((done + row) * columns + place) * size, chunk + (i * height + row) * size,
                           (size_t)size);
            }
        }
    }
    return true;
}

/* Rows that were put together: two windows, since a worker may still want a frame of the one before. Windows begin
 * where a multiple of frames begins, not where the first request of any worker does: so each is read once. */
struct gp_columns {
    pthread_mutex_t lock;
    int64_t frame;             /* rows of a frame: the most that were asked for at once */
    struct {
        int64_t first, n;      /* the rows that are there */
        char *rows;            /* NULL: no room was needed yet */
    } window[2];
};

gp_columns *gp_columns_new(void)
{
    gp_columns *c = calloc(1, sizeof *c);
    if (c)
        pthread_mutex_init(&c->lock, NULL);
    return c;
}

void gp_columns_free(gp_columns *c)
{
    if (!c)
        return;
    pthread_mutex_destroy(&c->lock);
    free(c->window[0].rows);
    free(c->window[1].rows);
    free(c);
}

bool gp_columns_read(gp_columns *c, const gp_type *array, int64_t first, int64_t n, void *to,
                     bool (*get)(void *user, int64_t at, void *to, size_t n), void *user)
{
    enum { BYTES = 8 << 20 };
    gp_type one = *array;
    one.dim[0] = 1;
    const size_t row = gp_bytes(&one);
    const int64_t most = (int64_t)(BYTES / row);
    if (!c || n >= most || n == array->dim[0])
        return gp_cut_columns(array, first, n, to, get, user);
    pthread_mutex_lock(&c->lock);
    c->frame = n > c->frame ? n : c->frame;
    const int64_t step = most / c->frame * c->frame, base = first - first % step, left = array->dim[0] - base;
    bool ok = true, straddles = first + n > base + step;
    int i = (int)(base / step % 2);
    if (!straddles && (first < c->window[i].first || first + n > c->window[i].first + c->window[i].n)) {
        c->window[i].first = base, c->window[i].n = step < left ? step : left;
        ok = (c->window[i].rows || (c->window[i].rows = malloc(BYTES)))
            && gp_cut_columns(array, base, c->window[i].n, c->window[i].rows, get, user);
        if (!ok)
            c->window[i].n = 0;
    }
    if (ok && !straddles)
        memcpy(to, c->window[i].rows + (size_t)(first - c->window[i].first) * row, (size_t)n * row);
    pthread_mutex_unlock(&c->lock);
    return straddles ? gp_cut_columns(array, first, n, to, get, user) : ok;
}

void gp_swap(void *data, const gp_type *t)
{
    size_t n = (size_t)gp_count(t), size = gp_dtype_size(t->dtype);
    if (t->dtype == GP_C64)
        n *= 2, size = 4;
    if (size == 2)
        for (uint16_t *p = data, *end = p + n; p < end; p++)
            *p = __builtin_bswap16(*p);
    if (size == 4)
        for (uint32_t *p = data, *end = p + n; p < end; p++)
            *p = __builtin_bswap32(*p);
    if (size == 8)
        for (uint64_t *p = data, *end = p + n; p < end; p++)
            *p = __builtin_bswap64(*p);
}
