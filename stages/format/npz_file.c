/* npz_file.c - a member of a NumPy .npz, which is a ZIP archive of .npy files, see rows_file.h.
 *
 * Rows of a member that is stored are read where they are; those of one that is compressed (np.savez_compressed) in
 * order. ZIP: PKWARE's APPNOTE.TXT, with ZIP64; all its numbers are little-endian. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>
#include "base/half.h"
#include "base/npy.h"
#include "npz_file.h"
#include "sums.h"

enum { STORED = 0, DEFLATED = 8, FIXED_LOCAL = 30, FIXED_CENTRAL = 46, FIXED_END = 22, DIRECTORY_MAX = 1 << 26 };
enum { HEAD = 12 + (1 << 16), CHUNK = 1 << 16 };

/* ---- bytes of the archive --------------------------------------------- */

typedef struct bytes { int fd; const gp_rows_head *head; int64_t size; } bytes;

static bool get(const bytes *b, int64_t at, void *to, size_t n)
{
    return at >= 0 && at <= b->size && (int64_t)n <= b->size - at && gp_rows_bytes(b->fd, b->head, at, to, n) == (int64_t)n;
}

static bool broken(char err[GP_WHY])
{
    return gp_why(err, "is not a .npz file, or is cut off or damaged");
}

/* ---- its members ------------------------------------------------------ */

typedef struct member {
    int64_t data, packed, size;        /* where its bytes are, how many, and how many they are of */
    uint32_t crc;
    int method;
    bool missing;                      /* there is none of its name */
} member;

/* Numbers that have no room in 32 bits stand in an extra field, in this order. */
static void take_zip64(const unsigned char *extra, size_t n, uint64_t *size, uint64_t *packed, uint64_t *at)
{
    uint64_t *of[] = { size, packed, at };
    for (size_t i = 0; i + 4 <= n; i += 4 + (size_t)gp_number(extra + i + 2, 2, false)) {
        size_t k = i + 4, end = k + (size_t)gp_number(extra + i + 2, 2, false);
        if (gp_number(extra + i, 2, false) != 1)
            continue;
        for (int j = 0; j < 3; j++)
            if (of[j] && *of[j] == UINT32_MAX && k + 8 <= end && end <= n)
                *of[j] = gp_number(extra + k, 8, false), k += 8;
    }
}

/* Is a member called so, "x" or "x.npy"? */
static bool is_called(const char *name, size_t n, const char *want)
{
    size_t len = strlen(want);
    return n >= len && !memcmp(name, want, len) && (n == len || (n == len + 4 && !memcmp(name + len, ".npy", 4)));
}

/* Finds where a member's data are, from where its own header is. */
static bool find_data(const bytes *b, uint64_t at, member *m, char err[GP_WHY])
{
    unsigned char h[FIXED_LOCAL];
    if (at > INT64_MAX || !get(b, (int64_t)at, h, sizeof h) || memcmp(h, "PK\3\4", 4))
        return broken(err);
    m->data = (int64_t)at + FIXED_LOCAL + (int64_t)(gp_number(h + 26, 2, false) + gp_number(h + 28, 2, false));
    if (m->packed < 0 || m->size < 0 || m->data > b->size || m->packed > b->size - m->data)
        return gp_why(err, "is cut off or damaged");
    return true;
}

static bool take_member(const bytes *b, const unsigned char *c, size_t name, size_t extra, member *m, char err[GP_WHY])
{
    uint64_t packed = gp_number(c + 20, 4, false), size = gp_number(c + 24, 4, false), at = gp_number(c + 42, 4, false);
    take_zip64(c + FIXED_CENTRAL + name, extra, &size, &packed, &at);
    *m = (member){ .method = (int)gp_number(c + 10, 2, false), .crc = (uint32_t)gp_number(c + 16, 4, false),
                   .packed = (int64_t)packed,
                   .size = (int64_t)size };
    if (gp_number(c + 8, 2, false) & 1)
        return gp_why(err, "is encrypted");
    if (m->method != STORED && m->method != DEFLATED)
        return gp_why(err, "is compressed by method %d, of which gpipe knows none and deflate", m->method);
    return find_data(b, at, m, err);
}

/* Is it one of the numbers that travel with frames? */
static bool is_number(const char *name, size_t n, const gp_rowsfile_how *how)
{
    for (int i = 0; i < how->nkeys; i++)
        if (is_called(name, n, how->key[i]))
            return true;
    return false;
}

/* The one that is asked for, or the only one that is no number; else an error that lists them. */
static bool choose(const bytes *b, const unsigned char *c, size_t n, const gp_rowsfile_how *how, member *m,
                   char err[GP_WHY])
{
    const char *want = how->member ? how->member : "";
    char names[GP_WHY] = "";
    int all = 0;
    size_t used = 0, at = 0;
    const unsigned char *only = NULL, *found = NULL;
    bool exact = false;                /* `found` has the very name, else that with .npy behind it */
    for (size_t next; at + FIXED_CENTRAL <= n && !memcmp(c + at, "PK\1\2", 4); at = next) {
        const char *name = (const char *)c + at + FIXED_CENTRAL;
        size_t len = (size_t)gp_number(c + at + 28, 2, false), extra = (size_t)gp_number(c + at + 30, 2, false);
        next = at + FIXED_CENTRAL + len + extra + (size_t)gp_number(c + at + 32, 2, false);
        if (next > n)
            return broken(err);
        if (!*want && is_number(name, len, how))
            continue;
        if (*want && is_called(name, len, want) && (!exact || len == strlen(want)))
            found = c + at, exact = len == strlen(want);       /* of several the last */
        only = c + at;
        len -= len > 4 && !memcmp(name + len - 4, ".npy", 4) ? 4 : 0;
        if (used < 160)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s'%.*s'", all ? ", " : "",
                                     len > 60 ? 60 : (int)len, name);
        all++;
    }
    found = !*want && all == 1 ? only : found;
    m->missing = *want && !found && at >= n;
    if (found)
        return take_member(b, found, (size_t)gp_number(found + 28, 2, false), (size_t)gp_number(found + 30, 2, false), m, err);
    if (!all)
        return at < n ? broken(err) : gp_why(err, "has no members");
    return *want ? gp_why(err, "has no member '%.60s'; it has %s", want, names)
                 : gp_why(err, "has %d members: set 'member' to one of %s", all, names);
}

/* Where the list of members is, which stands at the end. */
static bool find_directory(const bytes *b, uint64_t *at, uint64_t *n)
{
    unsigned char end[FIXED_END + UINT16_MAX], locator[20], wide[56];
    size_t look = b->size < (int64_t)sizeof end ? (size_t)b->size : sizeof end, k = look - FIXED_END;
    if (look < FIXED_END || !get(b, b->size - (int64_t)look, end, look))
        return false;
    while (memcmp(end + k, "PK\5\6", 4))
        if (!k--)
            return false;
    *n = gp_number(end + k + 12, 4, false), *at = gp_number(end + k + 16, 4, false);
    if (*n != UINT32_MAX && *at != UINT32_MAX)
        return true;
    int64_t here = b->size - (int64_t)look + (int64_t)k;
    if (!get(b, here - 20, locator, sizeof locator) || memcmp(locator, "PK\6\7", 4)
        || !get(b, (int64_t)gp_number(locator + 8, 8, false), wide, sizeof wide) || memcmp(wide, "PK\6\6", 4))
        return false;
    *n = gp_number(wide + 40, 8, false), *at = gp_number(wide + 48, 8, false);
    return true;
}

static bool find_member(const bytes *b, const gp_rowsfile_how *how, member *m, char err[GP_WHY])
{
    uint64_t at, n;
    if (!find_directory(b, &at, &n) || at > INT64_MAX || n > DIRECTORY_MAX)
        return broken(err);
    unsigned char *c = malloc(n + 1);
    if (!c)
        return gp_why(err, GP_WHY_MEMORY);
    bool ok = get(b, (int64_t)at, c, n) ? choose(b, c, n, how, m, err) : broken(err);
    free(c);
    return ok;
}

/* ---- what is in one --------------------------------------------------- */

typedef struct npz {
    gp_rows rows;
    bytes from;
    member is;
    int64_t data;              /* of the array, within the member */
    /* compressed: */
    z_stream z;
    bool begun, broken, swap;
    bool columns;              /* it is column-major: */
    gp_columns *put;           /* ... its rows; or NULL */
    unsigned char *all;        /* ... of one that is compressed, what is unpacked of it: all of it; NULL: not yet */
    int64_t at;                /* within the member: what was unpacked, */
    int64_t taken;             /* of how many packed bytes; */
    int64_t next;              /* the row that comes */
    double *each[GP_META_KEYS];        /* of a key with one number a row: those; NaN: a row has none */
    uint32_t crc;
    size_t ready, given;       /* of `room`, what was unpacked with the header, and of that what is used */
    unsigned char room[HEAD], chunk[CHUNK];
} npz;

/* Unpacks the next `n` bytes. */
static bool unpack(npz *f, unsigned char *to, size_t n, char err[GP_WHY])
{
    for (size_t got = 0; got < n;) {
        size_t step = n - got < UINT_MAX ? n - got : UINT_MAX;
        int64_t left = f->is.packed - f->taken;
        if (!f->z.avail_in && left) {
            uInt k = left < CHUNK ? (uInt)left : CHUNK;
            if (!get(&f->from, f->is.data + f->taken, f->chunk, k))
                return false;
            f->z.next_in = f->chunk, f->z.avail_in = k, f->taken += k;
        }
        f->z.next_out = to + got, f->z.avail_out = (uInt)step;
        int rc = inflate(&f->z, Z_NO_FLUSH);
        size_t made = step - f->z.avail_out;
        f->crc = (uint32_t)crc32_z(f->crc, to + got, made);
        got += made, f->at += (int64_t)made;
        if (got < n && (rc != Z_OK || (!made && !f->z.avail_in && f->taken == f->is.packed)))
            return gp_why(err, "is cut off or damaged");
    }
    return f->at < f->is.size || (f->at == f->is.size && f->crc == f->is.crc)
        || gp_why(err, "is damaged: its checksum is another");
}

/* The header of the array, of which a compressed member unpacks some of the data, too. */
static bool take_header(npz *f, char err[GP_WHY])
{
    size_t n = f->is.size < HEAD ? (size_t)f->is.size : HEAD, data;
    bool fortran;
    gp_why(err, "is cut off or damaged");
    if (f->is.method == STORED ? !get(&f->from, f->is.data, f->room, n) : !unpack(f, f->room, n, err))
        return false;
    f->ready = n;
    if (!gp_npy_parse_any((const char *)f->room, n, &f->rows.whole, &data, &fortran, &f->swap, err))
        return false;
    f->data = (int64_t)data, f->given = data;
    f->columns = fortran && f->rows.whole.ndim > 1, f->put = f->columns ? gp_columns_new() : NULL;
    int64_t want = (int64_t)gp_bytes(&f->rows.whole), there = f->is.size - f->data;
    return (want == there && (f->is.method != STORED || f->is.packed == f->is.size))
        || gp_why(err, "is damaged: its array has %lld bytes, and %lld are there", (long long)want, (long long)there);
}

static void npz_close(gp_rows *rows)
{
    npz *f = (npz *)rows;
    if (f->begun)
        inflateEnd(&f->z);
    for (int i = 0; i < GP_META_KEYS; i++)
        free(f->each[i]);
    gp_columns_free(f->put);
    free(f->all);
    free(f);
}

/* *missing: set where that is why it cannot be. */
static npz *open_bytes(const bytes *from, const gp_rowsfile_how *how, bool *missing, char err[GP_WHY])
{
    npz *f = calloc(1, sizeof *f);
    if (!f)
        return GP_NULL(gp_why(err, GP_WHY_MEMORY));
    f->from = *from;
    bool ok = find_member(from, how, &f->is, err);
    f->rows.in_order = f->is.method == DEFLATED;
    f->begun = ok && f->rows.in_order && inflateInit2(&f->z, -MAX_WBITS) == Z_OK;
    if (ok && f->rows.in_order && !f->begun)
        ok = gp_why(err, GP_WHY_MEMORY);
    if (ok && take_header(f, err))
        return f;
    *missing = f->is.missing;
    npz_close(&f->rows);
    return NULL;
}

static bool npz_head(const gp_rows_head *h, const gp_rowsfile_how *how, gp_type *whole, char err[GP_WHY])
{
    bytes from = { .fd = -1, .head = h, .size = h->size };
    *whole = (gp_type){ 0 };
    if ((int64_t)h->n < h->size && !h->more)   /* the list of members is at the end */
        return true;
    bool missing;
    npz *f = open_bytes(&from, how, &missing, err);
    if (!f)
        return false;
    *whole = f->rows.whole;
    npz_close(&f->rows);
    return true;
}

/* The next bytes of a compressed member. */
static bool next_bytes(npz *f, unsigned char *to, size_t n, char err[GP_WHY])
{
    size_t k = f->ready - f->given < n ? f->ready - f->given : n;
    memcpy(to, f->room + f->given, k);
    f->given += k;
    return unpack(f, to + k, n - k, err);
}

static bool get_columns(void *user, int64_t at, void *to, size_t n)
{
    const npz *f = user;
    errno = 0;
    if (f->all)
        memcpy(to, f->all + at, n);
    return f->all || gp_read_at(f->from.fd, to, n, f->is.data + f->data + at) == (int64_t)n;
}

static bool read_columns(npz *f, int64_t first, int64_t n, void *to, char err[GP_WHY])
{
    size_t size = gp_bytes(&f->rows.whole);
    if (f->rows.in_order && !f->all) {
        gp_why(err, f->broken ? "is cut off or damaged" : "cannot be unpacked: " GP_WHY_MEMORY);
        unsigned char *all = f->broken ? NULL : malloc(size + 1);
        f->broken = !all || !next_bytes(f, all, size, err);
        if (f->broken) {
            free(all);
            return false;
        }
        f->all = all;
    }
    return gp_columns_read(f->put, &f->rows.whole, first, n, to, get_columns, f)
        || gp_why(err, errno ? "cannot be read: %s" : "became shorter%.0s", gp_strerror(errno));
}

static bool read_rows(npz *f, int64_t first, int64_t n, void *to, char err[GP_WHY])
{
    const gp_rows *rows = &f->rows;
    gp_type row = rows->whole;
    row.dim[0] = 1;
    size_t size = gp_bytes(&row);
    if (f->columns)
        return read_columns(f, first, n, to, err);
    if (!rows->in_order) {
        int64_t at = f->is.data + f->data + first * (int64_t)size, want = n * (int64_t)size;
        int64_t got = gp_read_at(f->from.fd, to, (size_t)want, at);
        return got == want || gp_why(err, got < 0 ? "cannot be read: %s" : "became shorter%.0s", gp_strerror(errno));
    }
    if (f->broken || f->next != first)
        return gp_why(err, "is damaged before row %lld", (long long)first);
    gp_why(err, "is cut off or damaged");
    f->next += n;
    f->broken = !next_bytes(f, to, (size_t)n * size, err);
    return !f->broken;
}

static bool npz_read(gp_rows *rows, void **own, int64_t first, int64_t n, void *to, char err[GP_WHY])
{
    npz *f = (npz *)rows;
    gp_type part = rows->whole;
    part.dim[0] = n;
    if (!read_rows(f, first, n, to, err))
        return false;
    if (f->swap)
        gp_swap(to, &part);
    return true;
}

/* ---- numbers that travel with frames ---------------------------------- */

/* False: a double cannot hold it. */
static bool to_double(gp_dtype t, const void *from, double *x)
{
    const double most = t == GP_U64 ? 0x1p64 : 0x1p63;
    switch (t) {
#define WHOLE(T, ctype) \
    case T: *x = (double)*(const ctype *)from; return *x < most && (ctype)*x == *(const ctype *)from;
    WHOLE(GP_U8, uint8_t) WHOLE(GP_I8, int8_t) WHOLE(GP_U16, uint16_t) WHOLE(GP_I16, int16_t)
    WHOLE(GP_U32, uint32_t) WHOLE(GP_I32, int32_t) WHOLE(GP_U64, uint64_t) WHOLE(GP_I64, int64_t)
#undef WHOLE
    case GP_F16: *x = (double)gp_half_to_float(*(const uint16_t *)from); break;
    case GP_F32: *x = (double)*(const float *)from; break;
    case GP_F64: *x = *(const double *)from; break;
    default: return false;
    }
    return isfinite(*x);
}

/* The numbers of member m, one of all rows or one a row. */
static bool take_values(npz *m, const char *key, double *x, int64_t n, char err[GP_WHY])
{
    const gp_type *t = &m->rows.whole;
    size_t size = gp_dtype_size(t->dtype);
    char why[GP_WHY], *raw = malloc(size * (size_t)n + 8);
    bool ok = raw ? npz_read(&m->rows, NULL, 0, t->ndim ? t->dim[0] : 1, raw, why) : gp_why(why, GP_WHY_MEMORY);
    if (!ok)
        gp_why(err, "(member '%s') %.200s", key, why);
    for (int64_t i = 0; ok && i < n; i++)
        if (!(ok = to_double(t->dtype, raw + (size_t)i * size, &x[i]) || (n > 1 && isnan(x[i]))))
            gp_why(err, "has a '%s' that %s", key, t->dtype == GP_C64 ? "is complex: save its .real"
                   : gp_is_float(t->dtype) ? "is not a finite number" : "is not exact in an f64");
    free(raw);
    return ok;
}

/* Notes x of the i-th key. NaN, which only a frame of an array of many may have: it has no value. */
static bool note(gp_filemeta *s, int i, double x, char err[GP_WHY])
{
    s->value[i] = x;
    if (!strcmp(s->key[i], "time") && !isnan(x)) {
        s->time_ns = x > 0 && x < 9e9 ? llround(x * 1e9) : 0;
        if (!s->time_ns)
            return gp_why(err, "has a 'time' that is not a number of seconds since 1970");
    }
    s->has |= (unsigned)!isnan(x) << i;
    return true;
}

/* A member with one number is that of all rows; one with as many as there are rows has one for each. */
static bool take_number(npz *f, int i, char err[GP_WHY])
{
    const char *key = f->rows.said.key[i];
    bool missing = false;
    char why[GP_WHY], has[128];
    double one;
    npz *m = open_bytes(&f->from, &(gp_rowsfile_how){ .member = key }, &missing, why);
    if (!m)
        return missing || gp_why(err, "(member '%s') %.200s", key, why);
    const gp_type *t = &m->rows.whole;
    int64_t n = gp_count(t), rows = f->rows.whole.dim[0];
    bool each = n != 1 && t->ndim == 1 && n == rows, ok = n == 1 || each;
    if (!ok)
        gp_why(err, "has %s as '%s', which 'metadata' lists: that is one number, or one for each of the %lld indices of "
               "axis 0", gp_type_text(t, has), key, (long long)rows);
    if (each && !(f->each[i] = malloc(sizeof *f->each[i] * (size_t)n)))
        ok = gp_why(err, GP_WHY_MEMORY);
    ok = ok && take_values(m, key, each ? f->each[i] : &one, n, err) && (each || note(&f->rows.said, i, one, err));
    npz_close(&m->rows);
    return ok;
}

static bool npz_said(gp_rows *rows, void *own, int64_t row, gp_filemeta *to, char err[GP_WHY])
{
    const npz *f = (const npz *)rows;
    bool ok = true;
    for (int i = 0; ok && i < rows->said.n; i++)
        ok = !f->each[i] || note(to, i, f->each[i][row], err);
    return ok;
}

static const char *why_not(const gp_type *type, const char *path)
{
    return NULL;                       /* it holds all that a .npy does */
}

static gp_rows *npz_open(int fd, const gp_rowsfile_how *how, char err[GP_WHY])
{
    struct stat st;
    bool missing;
    if (fstat(fd, &st))
        return GP_NULL(gp_why(err, "cannot be read: %s", gp_strerror(errno)));
    npz *f = open_bytes(&(bytes){ .fd = fd, .size = st.st_size }, how, &missing, err);
    if (f)
        f->rows.said = (gp_filemeta){ .n = how->nkeys, .key = how->key };
    for (int i = 0; f && i < how->nkeys; i++)
        if (!take_number(f, i, err)) {
            npz_close(&f->rows);
            return NULL;
        }
    return f ? &f->rows : NULL;
}

const gp_rowsfile gp_npz = {
    .name = ".npz", .magic = { "PK\3\4" }, .options = { "member" }, .is_array = true,
    .head = npz_head, .open = npz_open, .read = npz_read, .said = npz_said, .close = npz_close,
    .why_not = why_not, .create = gp_npz_create, .append = gp_npz_append, .finish = gp_npz_finish,
};
