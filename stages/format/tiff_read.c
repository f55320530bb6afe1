/* tiff_read.c - the pixels of a TIFF's pages, see tiff_file.h.
 *
 * Plain pages are read as they are. Those that are compressed, in tiles or a plane a sample go through libtiff, which
 * is opened by the first pipeline that has one: each worker has a handle of its own over the one open file, and tells
 * it where the page's directory is. What libtiff finds there has to be what tiff_dir.c found. */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/dl.h"
#include "tiff_file.h"

/* ---- the library ----------------------------------------------------- */

/* What is used of <tiffio.h>, of version 4, and of its tags. */
typedef void (*say_fn)(const char *module, const char *fmt, va_list ap);
typedef struct tiff_library {
    void *(*open)(const char *name, const char *mode, void *user, ptrdiff_t (*read)(void *, void *, ptrdiff_t),
                  ptrdiff_t (*write)(void *, void *, ptrdiff_t), uint64_t (*seek)(void *, uint64_t, int),
                  int (*close)(void *), uint64_t (*size)(void *), int (*map)(void *, void **, uint64_t *),
                  void (*unmap)(void *, void *, uint64_t));
    void (*close)(void *tiff);
    int (*go_to)(void *tiff, uint64_t directory);
    int (*get)(void *tiff, uint32_t tag, ...), (*set)(void *tiff, uint32_t tag, ...);
    int (*has_codec)(uint16_t compression);
    ptrdiff_t (*strip_size)(void *tiff), (*tile_size)(void *tiff);
    ptrdiff_t (*strip)(void *tiff, uint32_t strip, void *to, ptrdiff_t n), (*tile)(void *tiff, uint32_t tile, void *to,
                                                                                  ptrdiff_t n);
    say_fn (*on_error)(say_fn), (*on_warning)(say_fn);
} tiff_library;
enum { TAG_COLS = 256, TAG_ROWS = 257, TAG_BITS = 258, TAG_COMPRESSION = 259, TAG_SAMPLES = 277, TAG_STRIP_ROWS = 278,
       TAG_PLANES = 284, TAG_TILE_COLS = 322, TAG_TILE_ROWS = 323, TAG_JPEG_COLORS = 65538 };

static struct {
    pthread_once_t once;
    tiff_library call;
    bool ok;
    char why[GP_WHY];
    say_fn error_before, warning_before;       /* of an application that uses libtiff, too */
} library = { .once = PTHREAD_ONCE_INIT };

/* What libtiff says while it works for us goes here, not to standard error: the first error counts. Of pixels it also
 * warns, where some are damaged or not there and it goes on; of a tag that it does not know there is nothing to say. */
static _Thread_local char *heard;
static _Thread_local bool decodes;

static void on_error(const char *module, const char *fmt, va_list ap)
{
    if (heard && !*heard)
        vsnprintf(heard, GP_WHY / 2, fmt, ap);
    else if (!heard && library.error_before)
        library.error_before(module, fmt, ap);
}

static void on_warning(const char *module, const char *fmt, va_list ap)
{
    static const char harmless[] = "JPEG strip size exceeds expected";   /* the last strip is as high as the others */
    if (heard && decodes && strncmp(fmt, harmless, sizeof harmless - 1))
        on_error(module, fmt, ap);
    else if (!heard && library.warning_before)
        library.warning_before(module, fmt, ap);
}

static void open_library(void)
{
    static const char *const names[] = { "libtiff.so.6", "libtiff.so.5", "libtiff.so", NULL };
    tiff_library *l = &library.call;
    const gp_dl_symbol symbol[] = {
        { "TIFFClientOpen", &l->open },
        { "TIFFClose", &l->close },
        { "TIFFSetSubDirectory", &l->go_to },
        { "TIFFGetFieldDefaulted", &l->get },
        { "TIFFSetField", &l->set },
        { "TIFFIsCODECConfigured", &l->has_codec },
        { "TIFFStripSize", &l->strip_size },
        { "TIFFTileSize", &l->tile_size },
        { "TIFFReadEncodedStrip", &l->strip },
        { "TIFFReadEncodedTile", &l->tile },
        { "TIFFSetErrorHandler", &l->on_error },
        { "TIFFSetWarningHandler", &l->on_warning },
        { 0 },
    };
    gp_errs errs = { .n = 0 };
    library.ok = gp_dl_open(names, symbol, "is compressed, in tiles or in planes, which",
                            "install libtiff6 (Debian; Ubuntu 22.04: libtiff5)", (gp_loc){ 0 }, &errs);
    if (!library.ok) {
        gp_why(library.why, "%s", errs.e[0].msg);
        return;
    }
    library.error_before = l->on_error(on_error);
    library.warning_before = l->on_warning(on_warning);
}

/* Can such a page be read? */
static bool can_read(const gp_tiff_page *p, char err[GP_WHY])
{
    if (gp_tiff_is_plain(p))
        return true;
    pthread_once(&library.once, open_library);
    if (!library.ok)
        return gp_why(err, "%s", library.why);
    return library.call.has_codec((uint16_t)p->compression)
        || gp_why(err, "is compressed by method %d of TIFF, which this libtiff does not have: convert it first, for "
                  "instance by tiffcp -c zip", p->compression);
}

/* ---- opening ---------------------------------------------------------- */

typedef struct tiff {
    gp_rows rows;
    gp_tiff_bytes from;
    gp_tiff_pages pages;
    bool keep_orientation;
} tiff;

bool gp_tiff_head(const gp_rows_head *h, const gp_rowsfile_how *how, gp_dtype dtype, gp_type *whole, char err[GP_WHY])
{
    gp_tiff_bytes f = { .fd = -1, .head = h, .size = h->size };
    gp_tiff_pages pages = { .at = NULL };
    (void)dtype;
    *whole = (gp_type){ 0 };
    if ((int64_t)h->n < h->size && !h->more)
        return true;
    bool ok = gp_tiff_begin(&f, err) && gp_tiff_find_pages(&f, how->keep_orientation, &pages, err)
           && can_read(&pages.first, err);
    if (ok)
        *whole = pages.whole;
    free(pages.at);
    return ok;
}

void gp_tiff_close(gp_rows *f)
{
    free(((tiff *)f)->pages.at);
    free(f);
}

gp_rows *gp_tiff_open(int fd, const gp_rowsfile_how *how, gp_dtype dtype, char err[GP_WHY])
{
    struct stat st;
    (void)dtype;
    tiff *t = calloc(1, sizeof *t);
    if (!t || fstat(fd, &st)) {
        gp_why(err, "cannot be read: %s", strerror(errno));
        free(t);
        return NULL;
    }
    t->from = (gp_tiff_bytes){ .fd = fd, .size = st.st_size };
    t->keep_orientation = how->keep_orientation;
    if (gp_tiff_begin(&t->from, err) && gp_tiff_find_pages(&t->from, t->keep_orientation, &t->pages, err)
        && can_read(&t->pages.first, err)) {
        t->rows.whole = t->pages.whole;
        return &t->rows;
    }
    gp_tiff_close(&t->rows);
    return NULL;
}

/* ---- plain pages ------------------------------------------------------ */

static bool get_bytes(const gp_tiff_bytes *f, int64_t at, void *to, size_t n, char err[GP_WHY])
{
    int64_t got = gp_tiff_get(f, at, to, n);
    return got == (int64_t)n
        || gp_why(err, got < 0 ? "cannot be read: %s" : "is cut off or damaged%.0s", strerror(errno));
}

/* Strips one behind the other are read at once. */
static bool read_plain(const gp_tiff_bytes *f, const gp_tiff_page *p, char *to, char err[GP_WHY])
{
    uint64_t at[32], bytes[32], from = 0, left = gp_bytes(&p->type), ready = 0;
    uint64_t strip = left / (uint64_t)p->rows * (uint64_t)p->piece_rows;
    for (uint64_t i = 0; left; i += 32) {
        uint64_t all = (left + strip - 1) / strip;
        int n = all < 32 ? (int)all : 32;
        if (!gp_tiff_values(f, &p->offsets, i, n, at)
            || (p->counts.count && !gp_tiff_values(f, &p->counts, i, n, bytes)))
            return gp_why(err, "is cut off or damaged");
        for (int k = 0; k < n; k++) {
            uint64_t want = strip < left ? strip : left;
            if ((p->counts.count && bytes[k] < want) || at[k] >= (uint64_t)f->size)
                return gp_why(err, "is cut off or damaged: its strip %llu has too few bytes",
                              (unsigned long long)i + (unsigned)k);
            if (ready && at[k] != from + ready) {
                if (!get_bytes(f, (int64_t)from, to, ready, err))
                    return false;
                to += ready, ready = 0;
            }
            from = ready ? from : at[k];
            ready += want, left -= want;
        }
    }
    return get_bytes(f, (int64_t)from, to, ready, err);
}

/* ---- pages through the library ---------------------------------------- */

typedef struct handle {        /* a worker's */
    gp_tiff_bytes from;
    int64_t at;
    void *tiff;
    gp_growbuf piece, page;    /* a strip or tile that is no part of the frame; what is to be turned */
    char said[GP_WHY];
} handle;

static ptrdiff_t on_read(void *user, void *to, ptrdiff_t n)
{
    handle *h = user;
    int64_t got = gp_tiff_get(&h->from, h->at, to, (size_t)n);
    h->at += got > 0 ? got : 0;
    return got;
}

static ptrdiff_t on_write(void *user, void *from, ptrdiff_t n)
{
    (void)user, (void)from, (void)n;
    return -1;
}

static uint64_t on_seek(void *user, uint64_t to, int whence)
{
    handle *h = user;
    h->at = (int64_t)to + (whence == SEEK_SET ? 0 : whence == SEEK_CUR ? h->at : h->from.size);
    return (uint64_t)h->at;
}

static uint64_t on_size(void *user)
{
    return (uint64_t)((handle *)user)->from.size;
}

static int on_close(void *user)
{
    (void)user;
    return 0;
}

static handle *own_handle(const tiff *t, void **own, char err[GP_WHY])
{
    handle *h = *own;
    if (!h && !(h = *own = calloc(1, sizeof *h)))
        gp_why(err, GP_WHY_MEMORY);
    else
        h->from = t->from;
    return h;
}

void gp_tiff_leave(void *own)
{
    handle *h = own;
    if (h->tiff)
        library.call.close(h->tiff);
    free(h->piece.data), free(h->page.data);
    free(h);
}

/* What went wrong, with what the library said. */
static bool library_failed(const handle *h, char err[GP_WHY])
{
    return gp_why(err, "is cut off or damaged%s%s%s", *h->said ? ": libtiff says '" : "", h->said, *h->said ? "'" : "");
}

/* Goes to the page, which has to be what its directory says by our reading. */
static bool go_to_page(handle *h, const gp_tiff_page *p, char err[GP_WHY])
{
    const tiff_library *l = &library.call;
    uint32_t rows = 0, cols = 0, piece_rows = 0, piece_cols = (uint32_t)p->cols;
    uint16_t bits = 0, samples = 0, compression = 0, planes = 0;
    if (!h->tiff)                      /* "rhm": the header alone for now, and no mapping */
        h->tiff = l->open("TIFF", "rhm", h, on_read, on_write, on_seek, on_close, on_size, NULL, NULL);
    if (!h->tiff || !l->go_to(h->tiff, (uint64_t)p->at))
        return library_failed(h, err);
    l->get(h->tiff, TAG_ROWS, &rows), l->get(h->tiff, TAG_COLS, &cols);
    l->get(h->tiff, TAG_BITS, &bits), l->get(h->tiff, TAG_SAMPLES, &samples);
    l->get(h->tiff, TAG_COMPRESSION, &compression), l->get(h->tiff, TAG_PLANES, &planes);
    l->get(h->tiff, p->tiled ? TAG_TILE_ROWS : TAG_STRIP_ROWS, &piece_rows);
    if (p->tiled)
        l->get(h->tiff, TAG_TILE_COLS, &piece_cols);
    if (!p->tiled && piece_rows > rows)
        piece_rows = rows;
    bool same = rows == p->rows && cols == p->cols && samples == p->samples && compression == p->compression
             && bits == 8 * gp_dtype_size(p->type.dtype) && (samples == 1 || (planes == 2) == p->separate)
             && piece_rows == p->piece_rows && piece_cols == p->piece_cols;
    if (same && p->colors == GP_TIFF_YCBCR)
        l->set(h->tiff, TAG_JPEG_COLORS, 1);  /* RGB, please */
    size_t sample = gp_dtype_size(p->type.dtype), piece = (size_t)p->piece_rows * (size_t)p->piece_cols * sample;
    piece *= p->separate ? 1 : (size_t)p->samples;
    return (same && (p->tiled ? l->tile_size(h->tiff) : l->strip_size(h->tiff)) == (ptrdiff_t)piece)
        || library_failed(h, err);
}

/* Where the pixels of a strip or tile go. */
typedef struct place { int64_t y, x, rows, cols, plane; } place;

static void put_piece(const gp_tiff_page *p, const place *at, const char *from, char *to)
{
    size_t sample = gp_dtype_size(p->type.dtype), pixel = sample * (size_t)p->samples;
    size_t given = p->separate ? sample : pixel;       /* bytes of a pixel in the piece */
    to += ((size_t)at->y * (size_t)p->cols + (size_t)at->x) * pixel + (size_t)at->plane * sample;
    for (int64_t y = 0; y < at->rows; y++, from += (size_t)p->piece_cols * given, to += (size_t)p->cols * pixel) {
        if (given == pixel)
            memcpy(to, from, (size_t)at->cols * pixel);
        else
            for (size_t x = 0; x < (size_t)at->cols; x++)
                memcpy(to + x * pixel, from + x * given, sample);
    }
}

static bool read_piece(handle *h, const gp_tiff_page *p, uint32_t piece, const place *at, char *to, char err[GP_WHY])
{
    const tiff_library *l = &library.call;
    size_t pixel = gp_dtype_size(p->type.dtype) * (p->separate ? 1 : (size_t)p->samples);
    bool direct = !p->tiled && !p->separate;
    ptrdiff_t n = (ptrdiff_t)((size_t)(p->tiled ? p->piece_rows : at->rows) * (size_t)p->piece_cols * pixel);
    if (!direct && !gp_growbuf_need(&h->piece, (size_t)n))
        return gp_why(err, GP_WHY_MEMORY);
    char *room = direct ? to + (size_t)at->y * (size_t)p->cols * pixel : (char *)h->piece.data;
    memset(room, 0, (size_t)n);        /* of data that are damaged libtiff may write a part, and say nothing */
    *h->said = 0;
    decodes = true;
    ptrdiff_t got = (p->tiled ? l->tile : l->strip)(h->tiff, piece, room, n);
    decodes = false;
    if (got != n || *h->said)
        return library_failed(h, err);
    if (!direct)
        put_piece(p, at, room, to);
    return true;
}

static bool read_pieces(handle *h, const gp_tiff_page *p, char *to, char err[GP_WHY])
{
    uint32_t piece = 0;
    for (int64_t plane = 0; plane < (p->separate ? p->samples : 1); plane++)
        for (int64_t y = 0; y < p->rows; y += p->piece_rows)
            for (int64_t x = 0; x < p->cols; x += p->piece_cols, piece++) {
                place at = { y, x, p->rows - y < p->piece_rows ? p->rows - y : p->piece_rows,
                             p->cols - x < p->piece_cols ? p->cols - x : p->piece_cols, plane };
                if (!read_piece(h, p, piece, &at, to, err))
                    return false;
            }
    return true;
}

static bool read_by_library(handle *h, const gp_tiff_page *p, char *to, char err[GP_WHY])
{
    *h->said = 0;
    heard = h->said;
    bool ok = go_to_page(h, p, err) && read_pieces(h, p, to, err);
    heard = NULL;
    return ok;
}

/* ---- any page --------------------------------------------------------- */

/* Turns a page upright: where its pixel (0, 0) goes, and how far from it those right of it and below it. */
static void turn(const gp_tiff_page *p, const char *from, char *to)
{
    const int64_t w = p->cols, h = p->rows;
    const struct { int64_t origin, right, down; } turns[9] = {
        [1] = { 0, 1, w },                      [2] = { w - 1, -1, w },
        [3] = { w * h - 1, -1, -w },            [4] = { w * (h - 1), 1, -w },
        [5] = { 0, h, 1 },                      [6] = { h - 1, h, -1 },
        [7] = { w * h - 1, -h, -1 },            [8] = { h * (w - 1), -h, 1 },
    }, *t = &turns[p->orientation];
    size_t pixel = gp_dtype_size(p->type.dtype) * (size_t)p->samples;
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++, from += pixel)
            memcpy(to + (t->origin + x * t->right + y * t->down) * (int64_t)pixel, from, pixel);
}

static bool read_stored(const tiff *t, int64_t i, const gp_tiff_page *p, handle *h, char *to, char err[GP_WHY])
{
    size_t bytes = gp_bytes(&p->type);
    if (!gp_tiff_is_plain(p))
        return can_read(p, err) && read_by_library(h, p, to, err);
    if (!(t->pages.at ? read_plain(&t->from, p, to, err)
                      : get_bytes(&t->from, t->pages.data + i * t->pages.bytes, to, bytes, err)))
        return false;
    if (t->from.swap)
        gp_swap(to, &p->type);
    return true;
}

static bool read_page(const tiff *t, int64_t i, const gp_tiff_page *p, void **own, char *to, char err[GP_WHY])
{
    bool turned = !t->keep_orientation && p->orientation != 1;
    handle *h = NULL;
    if ((turned || !gp_tiff_is_plain(p)) && !(h = own_handle(t, own, err)))
        return false;
    if (turned && !gp_growbuf_need(&h->page, gp_bytes(&p->type)))
        return gp_why(err, GP_WHY_MEMORY);
    if (!read_stored(t, i, p, h, turned ? (char *)h->page.data : to, err))
        return false;
    if (turned)
        turn(p, (char *)h->page.data, to);
    return true;
}

/* Page `i`, whose directory is looked at again: it has to be what it was. */
static bool take_page(const tiff *t, int64_t i, const gp_type *type, gp_tiff_page *p, char err[GP_WHY])
{
    if (!t->pages.at)
        *p = t->pages.first;
    else if (!gp_tiff_page_at(&t->from, t->pages.at[i], p, err))
        return false;
    gp_type found = p->skipped ? (gp_type){ 0 } : gp_tiff_shown(p, t->keep_orientation);
    return gp_type_same(&found, type) || gp_why(err, "was changed while it was read");
}

bool gp_tiff_read(gp_rows *f, void **own, int64_t first, int64_t n, void *to, char err[GP_WHY])
{
    const tiff *t = (tiff *)f;
    gp_tiff_page p;
    gp_type type = gp_tiff_shown(&t->pages.first, t->keep_orientation);
    for (int64_t i = first; i < first + n; i++, to = (char *)to + gp_bytes(&type))
        if (!take_page(t, i, &type, &p, err) || !read_page(t, i, &p, own, to, err))
            return gp_tiff_of_page(i, err);
    return true;
}

/* What a description says that is JSON. */
bool gp_tiff_said(gp_rows *f, int64_t row, gp_said *to, char err[GP_WHY])
{
    enum { ASCII = 2, MOST = 1 << 14 };
    const tiff *t = (tiff *)f;
    gp_tiff_page p;
    gp_type type = gp_tiff_shown(&t->pages.first, t->keep_orientation);
    char text[MOST + 1] = "";
    if (!take_page(t, row, &type, &p, err))
        return gp_tiff_of_page(row, err);
    const gp_tiff_field *v = &p.text;
    size_t n = v->count < MOST ? (size_t)v->count : MOST;
    if (v->type != ASCII)
        return true;
    if (v->inside)
        memcpy(text, v->here, n);
    bool there = v->inside || gp_tiff_get(&t->from, v->at, text, n) == (int64_t)n;
    size_t blank = strspn(text, " \t\r\n");
    if (!there || (n < v->count && (blank == n || text[blank] == '{')))
        gp_why(err, "has a description that is cut off, or longer than %d bytes", MOST);
    else if (gp_said_in_json(to, text, err))
        return true;
    return gp_tiff_of_page(row, err);
}
