/* tiff_file.c - the format TIFF, and writing it, see tiff_file.h.
 *
 * A file has the pages that were added, whatever comes: the directory of a page is written with it, and last the number
 * in that before it which says where it is. Up to 4 GiB it is a TIFF, beyond a BigTIFF. As nobody knows at its first
 * page which of the two it will be, pages of a file that may become large have a directory of both kinds; which of them
 * count, the header says, which is changed when the file grows beyond 4 GiB. */
#include <errno.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/outfile.h"
#include "tiff_file.h"

enum { HEADER = 16, ENTRIES = 14, STRIP = 1 << 18, ASCII = 2, SHORT = 3, LONG = 4, LONG8 = 16 };

typedef struct pages_out {
    gp_rows_out out;
    int fd;
    gp_type type;
    int compression;
    bool alone;                /* there is one page: which kind the file is, is known */
    bool big;
    int64_t most;              /* bytes of a TIFF */
    int64_t size;              /* what is whole */
    int64_t link[2];           /* of TIFF and BigTIFF: where it has to say where the next directory is */
    int64_t first;             /* the first directory of BigTIFF */
    gp_growbuf data, head, work;       /* of a page: its strips, its directories; a strip before it is compressed */
    uint64_t *strip;           /* bytes of each */
    int64_t rows, nstrips;     /* of a strip; in a page */
    char text[GP_FILEMETA_JSON];   /* of a page: its numbers, which is its ImageDescription */
    int64_t ntext;             /* its bytes, with the NUL; 0: there is none */
} pages_out;

static void put_number(gp_growbuf *to, uint64_t x, int n)
{
    for (int i = 0; i < n; i++)
        to->data[to->n++] = (unsigned char)(x >> 8 * i);
}

/* ---- strips ----------------------------------------------------------- */

static int64_t channels(const gp_type *t)
{
    return t->ndim > 2 ? t->dim[2] : 1;
}

static bool is_whole_number(gp_dtype t)
{
    return t != GP_F16 && t != GP_F32 && t != GP_F64;
}

/* Samples as what they differ by from those of the pixel before, modulo their size; floats and 64 bits stay. */
static bool has_predictor(const pages_out *o)
{
    return o->compression && is_whole_number(o->type.dtype) && gp_dtype_size(o->type.dtype) < 8;
}

#define DIFFER(type) do {                                                  \
        type *p = row;                                                     \
        for (int64_t i = n - 1; i >= step; i--)                            \
            p[i] = (type)(p[i] - p[i - step]);                             \
    } while (0)

static void differ(void *row, int64_t n, int64_t step, size_t size)
{
    if (size == 1)
        DIFFER(uint8_t);
    else if (size == 2)
        DIFFER(uint16_t);
    else
        DIFFER(uint32_t);
}

static bool add_packed(pages_out *o, struct libdeflate_compressor *c, const char *from, int64_t rows, size_t *n)
{
    size_t row = gp_bytes(&o->type) / (size_t)o->type.dim[0], bytes = row * (size_t)rows;
    size_t room = libdeflate_zlib_compress_bound(c, bytes);
    if (!gp_growbuf_need(&o->work, bytes) || !gp_growbuf_need(&o->data, o->data.n + room))
        return false;
    memcpy(o->work.data, from, bytes);
    for (int64_t y = 0; has_predictor(o) && y < rows; y++)
        differ(o->work.data + (size_t)y * row, o->type.dim[1] * channels(&o->type), channels(&o->type),
               gp_dtype_size(o->type.dtype));
    *n = libdeflate_zlib_compress(c, o->work.data, bytes, o->data.data + o->data.n, room);
    o->data.n += *n;
    return *n > 0;
}

/* Compresses a page, in strips of about STRIP bytes. */
static bool pack(pages_out *o, const char *from)
{
    static const int level[10] = { 0, 1, 2, 3, 5, 6, 7, 8, 9, 10 };
    size_t row = gp_bytes(&o->type) / (size_t)o->type.dim[0];
    struct libdeflate_compressor *c = libdeflate_alloc_compressor(level[o->compression]);
    bool ok = c != NULL;
    for (int64_t i = 0, y = 0; ok && i < o->nstrips; i++, y += o->rows) {
        size_t n = 0;
        int64_t rows = o->type.dim[0] - y < o->rows ? o->type.dim[0] - y : o->rows;
        ok = add_packed(o, c, from + (size_t)y * row, rows, &n);
        o->strip[i] = n;
    }
    libdeflate_free_compressor(c);
    return ok;
}

/* ---- directories ------------------------------------------------------ */

enum { BITS = 258, TEXT = 270, STRIPS = 273, STRIP_BYTES = 279 };
typedef struct entry { int tag, type; int64_t count; uint64_t value; } entry;      /* the value of each */

static int value_bytes(int type)
{
    return type == ASCII ? 1 : type == SHORT ? 2 : type == LONG ? 4 : 8;
}

/* At most; the next thing behind it lies well, too. */
static int64_t directory_bytes(const pages_out *o, bool big)
{
    int64_t always = ENTRIES - !o->ntext, fixed = big ? 8 + 20 * always + 8 : 2 + 12 * always + 4;
    return (fixed + o->ntext + 4 * channels(&o->type) + 2 * o->nstrips * (big ? 8 : 4) + 7) / 8 * 8;
}

static void list_entries(const pages_out *o, bool big, entry e[ENTRIES])
{
    const gp_type *t = &o->type;
    int64_t c = channels(t);
    int wide = big ? LONG8 : LONG;
    bool is_signed = t->dtype == GP_I8 || t->dtype == GP_I16 || t->dtype == GP_I32 || t->dtype == GP_I64;
    const entry all[ENTRIES] = {
        { 256, LONG, 1, (uint64_t)t->dim[1] },
        { 257, LONG, 1, (uint64_t)t->dim[0] },
        { BITS, SHORT, c, 8 * gp_dtype_size(t->dtype) },
        { 259, SHORT, 1, o->compression ? GP_TIFF_DEFLATE : GP_TIFF_NONE },
        { 262, SHORT, 1, c > 2 ? GP_TIFF_RGB : GP_TIFF_BLACK_IS_0 },
        { TEXT, ASCII, o->ntext, 0 },
        { STRIPS, wide, o->nstrips, 0 },
        { 277, SHORT, 1, (uint64_t)c },
        { 278, LONG, 1, (uint64_t)o->rows },
        { STRIP_BYTES, wide, o->nstrips, 0 },
        { 284, SHORT, 1, 1 },                          /* the samples of a pixel lie together */
        { 317, SHORT, o->compression > 0, has_predictor(o) ? 2 : 1 },
        { 338, SHORT, c % 2 == 0, 2 },                 /* the last sample is alpha, by which none is multiplied */
        { 339, SHORT, c, !is_whole_number(t->dtype) ? 3 : is_signed ? 2 : 1 },
    };
    memcpy(e, all, sizeof all);
}

static void put_values(pages_out *o, const entry *e, int64_t data)
{
    if (e->tag == TEXT) {
        memcpy(o->head.data + o->head.n, o->text, (size_t)e->count);
        o->head.n += (size_t)e->count;
        return;
    }
    for (int64_t i = 0; i < e->count; i++) {
        uint64_t x = e->tag == STRIPS ? (uint64_t)data : e->tag == STRIP_BYTES ? o->strip[i] : e->value;
        put_number(&o->head, x, value_bytes(e->type));
        data += e->tag == STRIPS ? (int64_t)o->strip[i] : 0;
    }
}

static void pad(gp_growbuf *to, size_t n)
{
    memset(to->data + to->n, 0, n - to->n);
    to->n = n;
}

/* Adds to o->head, in which there is room, the directory that is to lie at `at`, of a page whose strips begin at
 * `data`. The place that says where the next directory is. */
static int64_t put_directory(pages_out *o, bool big, int64_t at, int64_t data)
{
    gp_growbuf *to = &o->head;
    size_t begin = to->n;
    int room = big ? 8 : 4, n = 0;
    entry e[ENTRIES];
    list_entries(o, big, e);
    for (int i = 0; i < ENTRIES; i++)
        n += e[i].count > 0;
    int64_t link = at + (big ? 8 + 20 * n : 2 + 12 * n), list = link + room;
    put_number(to, (uint64_t)n, big ? 8 : 2);
    for (int i = 0; i < ENTRIES; i++) {
        int64_t bytes = e[i].count * value_bytes(e[i].type);
        if (!bytes)
            continue;
        put_number(to, (uint64_t)e[i].tag, 2), put_number(to, (uint64_t)e[i].type, 2);
        put_number(to, (uint64_t)e[i].count, room);
        size_t value = to->n;
        if (bytes <= room)
            put_values(o, &e[i], data);
        else
            put_number(to, (uint64_t)list, room), list += bytes;
        pad(to, value + (size_t)room);
    }
    put_number(to, 0, room);
    for (int i = 0; i < ENTRIES; i++)
        if (e[i].count * value_bytes(e[i].type) > room)
            put_values(o, &e[i], data);
    pad(to, begin + (size_t)directory_bytes(o, big));
    return link;
}

/* ---- a file ----------------------------------------------------------- */

static bool put_link(pages_out *o, int64_t at, int64_t to, int n, char err[GP_WHY])
{
    unsigned char bytes[8];
    gp_growbuf b = { bytes, 0, sizeof bytes };
    put_number(&b, (uint64_t)to, n);
    return gp_put_at(o->fd, bytes, (size_t)n, at, err);
}

static bool put_header(pages_out *o, char err[GP_WHY])
{
    unsigned char bytes[HEADER] = { 'I', 'I', 42 };
    gp_growbuf b = { bytes, 2, sizeof bytes };
    if (o->big)
        put_number(&b, 43, 2), put_number(&b, 8, 4), put_number(&b, (uint64_t)o->first, 8);
    return gp_put_at(o->fd, bytes, sizeof bytes, 0, err);
}

/* Writes a page behind what is there; what could not be written whole does not count. */
static bool put_page(pages_out *o, const void *strips, int64_t bytes, char err[GP_WHY])
{
    int64_t at = o->size, small = directory_bytes(o, false), large = directory_bytes(o, true), link[2];
    bool was_big = o->big, first = !o->first;
    int64_t end = at + small + (o->alone ? 0 : large) + bytes;
    bool big = was_big || end > o->most, both = !big && !o->alone;
    int64_t at_large = at + (big ? 0 : small), data = at + (big ? large : both ? small + large : small);
    o->head.n = 0;
    if (!gp_growbuf_need(&o->head, (size_t)(small + large)))
        return gp_why(err, GP_WHY_MEMORY);
    if (!big)
        link[0] = put_directory(o, false, at, data);
    if (big || both)
        link[1] = put_directory(o, true, at_large, data);
    if (!gp_put_at(o->fd, o->head.data, o->head.n, at, err) || !gp_put_at(o->fd, strips, (size_t)bytes, data, err))
        return false;
    if (!big && !put_link(o, o->link[0], at, 4, err))
        return false;
    if ((big || both) && !first && !put_link(o, o->link[1], at_large, 8, err))
        return false;
    o->first = first ? at_large : o->first, o->big = big;
    if (big && !was_big && !put_header(o, err))
        return false;
    memcpy(o->link, link, sizeof link);
    o->size = (data + bytes + 7) / 8 * 8;
    return true;
}

static bool tiff_append(gp_rows_out *out, const void *frames, int64_t n, char err[GP_WHY])
{
    pages_out *o = (pages_out *)out;
    size_t bytes = gp_bytes(&o->type), text = out->said ? gp_filemeta_to_json(out->said, o->text) : 0;
    o->ntext = text ? (int64_t)text + 1 : 0;
    for (const char *p = frames; n > 0; n--, p += bytes) {
        o->data.n = 0;
        if (o->compression && !pack(o, p))
            return gp_why(err, GP_WHY_MEMORY);
        if (!o->compression)
            o->strip[0] = bytes;
        if (!put_page(o, o->compression ? (const char *)o->data.data : p, o->compression ? (int64_t)o->data.n
                                                                                         : (int64_t)bytes, err)) {
            int error = errno, cut = ftruncate(o->fd, (off_t)o->size);
            (void)cut;                 /* what is behind the last page counts for nothing */
            errno = error;
            return false;
        }
    }
    return true;
}

static void forget(pages_out *o)
{
    free(o->data.data), free(o->head.data), free(o->work.data);
    free(o->strip);
    free(o);
}

static bool tiff_finish(gp_rows_out *out, char err[GP_WHY])
{
    pages_out *o = (pages_out *)out;
    bool any = o->first != 0;
    forget(o);
    errno = any ? errno : 0;
    return any || gp_why(err, "cannot be written: a TIFF has pages, and there were no frames");
}

static gp_rows_out *tiff_create(int fd, const gp_rowsfile_how *how, const gp_type *frame, const char *path,
                                char err[GP_WHY])
{
    if (!gp_count(frame))
        return GP_NULL(gp_why(err, "cannot be written: the frame has no rows, and a page must have one"));
    pages_out *o = calloc(1, sizeof *o);
    if (o) {
        size_t row = gp_bytes(frame) / (size_t)frame->dim[0];
        *o = (pages_out){ .out.as = &gp_tiff, .fd = fd, .type = *frame, .compression = how->compression,
                          .alone = how->alone, .most = how->narrow ? how->narrow : UINT32_MAX, .size = HEADER,
                          .link = { 4 } };
        o->rows = row < STRIP ? (int64_t)(STRIP / row) : 1;
        o->rows = o->compression && o->rows < frame->dim[0] ? o->rows : frame->dim[0];
        o->nstrips = (frame->dim[0] + o->rows - 1) / o->rows;
        o->strip = calloc((size_t)o->nstrips, sizeof *o->strip);
    }
    if (o && o->strip && put_header(o, err))
        return &o->out;
    if (!o || !o->strip)
        gp_why(err, GP_WHY_MEMORY);
    if (o)
        forget(o);
    return NULL;
}

static const char *tiff_why_not(const gp_type *t, const char *path)
{
    if (t->dtype == GP_C64)
        return "TIFF holds whole numbers and floats: put a stage before this one that makes such";
    if (t->ndim != 2 && !(t->ndim == 3 && t->dim[2] >= 1 && t->dim[2] <= 4))
        return "a page of a TIFF is a frame of shape [H, W] or [H, W, 1 to 4]: put a 'split' stage before this one";
    if (t->dim[0] > INT32_MAX || t->dim[1] > INT32_MAX)
        return "TIFF holds less than 2^31 rows and columns";
    return NULL;
}

const gp_rowsfile gp_tiff = {
    .name = "TIFF", .magic = { "II*?", "MM?*", "II+?", "MM?+" }, .options = { "orientation", "max_pixels", "compression" },
    .is_array = true, .pages = true, .decode_ns = 3, .encode_ns = { 0, 7, 9, 10, 15, 19, 26, 50, 63, 90 },
    .head = gp_tiff_head, .cuts = gp_tiff_cuts, .open = gp_tiff_open, .read = gp_tiff_read, .said = gp_tiff_metadata,
    .leave = gp_tiff_leave, .close = gp_tiff_close,
    .why_not = tiff_why_not, .create = tiff_create, .append = tiff_append, .finish = tiff_finish,
};
