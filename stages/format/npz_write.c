/* npz_write.c - writes .npz archives: the frames as one array, and beside it the numbers that travel with them, see
 * rows_file.h.
 *
 * As np.savez does, members are stored as they are. The header of the array has its place at the beginning, and is
 * written again at the end, when the number of rows, the checksum and the size are known; behind the array come the
 * numbers and the list of members. ZIP: PKWARE's APPNOTE.TXT; sizes and places of 4 GiB and more are in the fields of
 * ZIP64, for which each header has room. A number of one file for one frame is an array of no axes, else one value a
 * frame, NaN where a frame has none. */
#include <errno.h>
#include <libdeflate.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include "base/npy.h"
#include "base/outfile.h"
#include "npz_file.h"

enum { FIXED = 30, WIDE = 20, NAME = 256, VERSION = 45, JANUARY_1980 = 1 << 5 | 1 };

/* A member that is whole. */
typedef struct member {
    char name[NAME];
    uint64_t at, size;         /* of its local header; of the member behind it */
    uint32_t crc;
} member;

typedef struct npz_out {
    gp_rows_out out;
    int fd;
    bool alone;                /* there is one frame */
    uint64_t most;             /* sizes and places up to here have 32 bits */
    gp_type whole;             /* dim[0]: rows that are there */
    size_t row;                /* bytes */
    uint32_t crc;              /* of these rows */
    char name[NAME];           /* of the array */
    uint64_t size;             /* of the file, up to here */
    int nkeys, frames;         /* the numbers of each frame, one frame behind the other, NaN: it has none */
    char key[GP_META_KEYS][NAME];
    gp_growbuf numbers;
    member members[GP_META_KEYS + 1]; int n;
} npz_out;

static unsigned char *put(unsigned char *to, uint64_t x, int bytes)
{
    for (int i = 0; i < bytes; i++, x >>= 8)
        *to++ = (unsigned char)x;
    return to;
}

static uint64_t narrow(const npz_out *o, uint64_t x)
{
    return x < o->most ? x : UINT32_MAX;
}

/* Writes the fields that a local header and an entry of the list have in common. */
static unsigned char *put_common(const npz_out *o, unsigned char *to, const member *m, int extra)
{
    to = put(to, VERSION, 2), to = put(to, 0, 2), to = put(to, 0, 2);          /* no flags; stored */
    to = put(to, 0, 2), to = put(to, JANUARY_1980, 2);                         /* equal frames make equal files */
    to = put(to, m->crc, 4), to = put(to, narrow(o, m->size), 4), to = put(to, narrow(o, m->size), 4);
    return put(put(to, strlen(m->name), 2), (uint64_t)extra, 2);
}

static size_t local_bytes(const member *m)
{
    return FIXED + strlen(m->name) + WIDE;
}

static bool put_local(const npz_out *o, const member *m, char err[GP_WHY])
{
    unsigned char bytes[FIXED + NAME + WIDE], *to = bytes;
    to = put_common(o, put(to, 0x04034b50, 4), m, WIDE);
    to = (unsigned char *)stpcpy((char *)to, m->name);
    to = put(put(put(put(to, 1, 2), WIDE - 4, 2), m->size, 8), m->size, 8);
    return gp_put_at(o->fd, bytes, (size_t)(to - bytes), (int64_t)m->at, err);
}

/* The list of members, and the end of the file. */
static bool put_list(npz_out *o, char err[GP_WHY])
{
    enum { ENTRY = 46 + NAME + 28, END = 56 + 20 + 22 };
    unsigned char bytes[(GP_META_KEYS + 1) * ENTRY + END], *to = bytes;
    for (int i = 0; i < o->n; i++) {
        const member *m = &o->members[i];
        int sizes = narrow(o, m->size) != m->size ? 16 : 0, place = narrow(o, m->at) != m->at ? 8 : 0;
        to = put_common(o, put(put(to, 0x02014b50, 4), VERSION, 2), m, sizes + place ? 4 + sizes + place : 0);
        to = put(put(put(put(to, 0, 2), 0, 2), 0, 2), 0, 4);
        to = put(to, narrow(o, m->at), 4);
        to = (unsigned char *)stpcpy((char *)to, m->name);
        if (sizes + place)             /* ZIP64 has those that have no room, in this order */
            to = put(put(to, 1, 2), (uint64_t)(sizes + place), 2);
        if (sizes)
            to = put(put(to, m->size, 8), m->size, 8);
        if (place)
            to = put(to, m->at, 8);
    }
    uint64_t at = o->size, n = (uint64_t)(to - bytes), end = at + n;
    if (narrow(o, at) != at) {
        to = put(put(put(put(to, 0x06064b50, 4), 44, 8), VERSION, 2), VERSION, 2);
        to = put(put(put(put(to, 0, 4), 0, 4), (uint64_t)o->n, 8), (uint64_t)o->n, 8);
        to = put(put(to, n, 8), at, 8);
        to = put(put(put(put(to, 0x07064b50, 4), 0, 4), end, 8), 1, 4);
    }
    to = put(put(put(to, 0x06054b50, 4), 0, 2), 0, 2);
    to = put(put(put(put(put(to, (uint64_t)o->n, 2), (uint64_t)o->n, 2), n, 4), narrow(o, at), 4), 0, 2);
    return gp_put_at(o->fd, bytes, (size_t)(to - bytes), (int64_t)at, err);
}

/* Adds a member that is an array with these rows behind its header. */
static bool put_numbers(npz_out *o, const char *key, const double *x, char err[GP_WHY])
{
    char head[GP_NPY_HEADER_MAX];
    gp_type t = { .dtype = GP_F64, .ndim = !o->alone, .dim = { o->frames } };
    size_t n = gp_npy_header(&t, head, sizeof head), bytes = sizeof *x * (size_t)o->frames;
    member *m = &o->members[o->n++];
    *m = (member){ .at = o->size, .size = n + bytes };
    memcpy(stpcpy(m->name, key), ".npy", 5);
    m->crc = libdeflate_crc32(libdeflate_crc32(0, head, n), x, bytes);
    int64_t at = (int64_t)(m->at + local_bytes(m));
    o->size = (uint64_t)at + m->size;
    return put_local(o, m, err) && gp_put_at(o->fd, head, n, at, err) && gp_put_at(o->fd, x, bytes, at + (int64_t)n, err);
}

/* The header of the array, as far as it is there. */
static bool put_array(npz_out *o, char err[GP_WHY])
{
    char head[GP_NPY_HEADER_MAX];
    size_t n = gp_npy_header(&o->whole, head, sizeof head);
    uint64_t bytes = o->row * (uint64_t)o->whole.dim[0];
    member *m = &o->members[0];
    *m = (member){ .size = n + bytes };
    memcpy(stpcpy(m->name, o->name), ".npy", 5);
    m->crc = (uint32_t)crc32_combine(libdeflate_crc32(0, head, n), o->crc, (z_off_t)bytes);
    o->n = 1, o->size = local_bytes(m) + m->size;
    return put_local(o, m, err) && gp_put_at(o->fd, head, n, (int64_t)local_bytes(m), err);
}

static void forget(npz_out *o)
{
    free(o->numbers.data);
    free(o);
}

gp_rows_out *gp_npz_create(int fd, const gp_rowsfile_how *how, const gp_type *frame, const char *path, char err[GP_WHY])
{
    npz_out *o = calloc(1, sizeof *o);
    if (!o)
        return GP_NULL(gp_why(err, GP_WHY_MEMORY));
    *o = (npz_out){ .out.as = &gp_npz, .fd = fd, .alone = how->alone, .whole = *frame,
                    .most = how->narrow ? (uint64_t)how->narrow : UINT32_MAX };
    strcpy(o->name, how->member && *how->member ? how->member : GP_NPZ_MEMBER);
    if (how->stack) {
        o->whole.ndim++;
        memcpy(o->whole.dim + 1, frame->dim, sizeof *frame->dim * (size_t)frame->ndim);
    }
    o->whole.dim[0] = 1;
    o->row = gp_bytes(&o->whole);
    o->whole.dim[0] = 0;
    if (put_array(o, err))
        return &o->out;
    forget(o);
    return NULL;
}

/* Keeps the numbers of the frame. */
static bool take_numbers(npz_out *o, const gp_filemeta *s)
{
    if (!s || !s->n)
        return true;
    if (!gp_growbuf_need(&o->numbers, o->numbers.n + sizeof(double) * (size_t)s->n))
        return false;
    o->nkeys = s->n, o->frames++;
    double *x = (double *)(void *)(o->numbers.data + o->numbers.n);
    for (int i = 0; i < s->n; i++) {
        snprintf(o->key[i], NAME - 4, "%s", s->key[i]);
        x[i] = !(s->has >> i & 1) ? NAN : strcmp(s->key[i], "time") ? s->value[i] : (double)s->time_ns / 1e9;
    }
    o->numbers.n += sizeof *x * (size_t)s->n;
    return true;
}

bool gp_npz_append(gp_rows_out *out, const void *rows, int64_t n, char err[GP_WHY])
{
    npz_out *o = (npz_out *)out;
    size_t bytes = o->row * (size_t)n;
    if (!gp_put_at(o->fd, rows, bytes, (int64_t)o->size, err)) {
        int error = errno, cut = ftruncate(o->fd, (off_t)o->size);
        (void)cut;                     /* what is not whole counts for nothing */
        errno = error;
        return false;
    }
    if (!take_numbers(o, out->said))
        return gp_why(err, GP_WHY_MEMORY);
    o->crc = libdeflate_crc32(o->crc, rows, bytes);
    o->whole.dim[0] += n, o->size += bytes;
    return true;
}

bool gp_npz_finish(gp_rows_out *out, char err[GP_WHY])
{
    npz_out *o = (npz_out *)out;
    double *column = malloc(sizeof *column * ((size_t)o->frames + 1));
    bool ok = column ? put_array(o, err) : gp_why(err, GP_WHY_MEMORY);
    for (int i = 0; ok && i < o->nkeys; i++) {
        bool any = false;
        for (int k = 0; k < o->frames; k++) {
            memcpy(&column[k], o->numbers.data + sizeof *column * ((size_t)k * (size_t)o->nkeys + (size_t)i), sizeof *column);
            any |= !isnan(column[k]);
        }
        ok = !any || put_numbers(o, o->key[i], column, err);
    }
    ok = ok && put_list(o, err);
    int error = errno;
    free(column);
    forget(o);
    errno = error;
    return ok;
}
