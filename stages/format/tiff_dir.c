/* tiff_dir.c - libtiff, and which pages a TIFF has, of what type, see tiff_file.h.
 *
 * libtiff is opened by the first pipeline that has a TIFF. Each reader has a handle of its own, over the whole file or
 * over the part that is there. What a directory only claims is compared here with what can be. */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/arena.h"
#include "base/dl.h"
#include "tiff_file.h"

/* ---- the library ----------------------------------------------------- */

/* The part that is used of <tiffio.h>, of version 4, and of its tags. */
typedef void (*say_fn)(const char *module, const char *fmt, va_list ap);
typedef struct tiff_library {
    void *(*open)(const char *name, const char *mode, void *user, ptrdiff_t (*read)(void *, void *, ptrdiff_t),
                  ptrdiff_t (*write)(void *, void *, ptrdiff_t), uint64_t (*seek)(void *, uint64_t, int),
                  int (*close)(void *), uint64_t (*size)(void *), int (*map)(void *, void **, uint64_t *),
                  void (*unmap)(void *, void *, uint64_t));
    void (*close)(void *tiff);
    int (*go_to)(void *tiff, uint64_t directory), (*next)(void *tiff), (*is_last)(void *tiff), (*is_tiled)(void *tiff);
    uint64_t (*place)(void *tiff);
    int (*get)(void *tiff, uint32_t tag, ...), (*set)(void *tiff, uint32_t tag, ...);
    int (*has_codec)(uint16_t compression);
    ptrdiff_t (*strip_size)(void *tiff), (*tile_size)(void *tiff);
    uint64_t (*piece_at)(void *tiff, uint32_t piece), (*piece_bytes)(void *tiff, uint32_t piece);
    ptrdiff_t (*strip)(void *tiff, uint32_t strip, void *to, ptrdiff_t n), (*tile)(void *tiff, uint32_t tile, void *to,
                                                                                  ptrdiff_t n);
    say_fn (*on_error)(say_fn), (*on_warning)(say_fn);
} tiff_library;
enum { KIND = 254, COLS = 256, ROWS, BITS, COMPRESSION, COLORS = 262, TEXT = 270, ORIENTATION = 274, SAMPLES = 277,
       STRIP_ROWS, PLANES = 284, TILE_COLS = 322, TILE_ROWS, FORMAT = 339, PALETTE = 320, DEPTH = 32997, JPEG_COLORS = 65538 };

static struct {
    pthread_once_t once;
    tiff_library call;
    bool ok;
    char why[GP_WHY];
    say_fn error_before, warning_before;       /* of an application that uses libtiff, too */
} library = { .once = PTHREAD_ONCE_INIT };

/* For whom libtiff works in this thread: what it says goes there, not to standard error. Its handlers for one file came
 * with 4.5. */
static _Thread_local gp_tiff_handle *listener;

static void on_error(const char *module, const char *fmt, va_list ap)
{
    if (listener && !*listener->said)
        vsnprintf(listener->said, GP_WHY / 2, fmt, ap);
    else if (!listener && library.error_before)
        library.error_before(module, fmt, ap);
}

/* It warns of pixels where some are damaged or not there and it goes on; of tags where they are odd, and of all that
 * it does not know, which are no fault. That the description is lost is an error for those who want it. */
static void on_warning(const char *module, const char *fmt, va_list ap)
{
    static const char harmless[] = "JPEG strip size exceeds expected";   /* the last strip is as high as the others */
    static const char unknown[] = "Unknown field with tag";
    char text[GP_WHY];
    va_list copy;
    va_copy(copy, ap);
    vsnprintf(text, sizeof text, fmt, copy);
    va_end(copy);
    if (listener && !listener->decodes && !*listener->warned && strncmp(text, unknown, sizeof unknown - 1))
        snprintf(listener->warned, sizeof listener->warned, "%s", text);
    if (listener && (listener->decodes ? strncmp(fmt, harmless, sizeof harmless - 1) != 0
                                       : strstr(text, "ImageDescription") != NULL))
        on_error(module, fmt, ap);
    else if (!listener && library.warning_before)
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
        { "TIFFReadDirectory", &l->next },
        { "TIFFLastDirectory", &l->is_last },
        { "TIFFIsTiled", &l->is_tiled },
        { "TIFFCurrentDirOffset", &l->place },
        { "TIFFGetFieldDefaulted", &l->get },
        { "TIFFSetField", &l->set },
        { "TIFFIsCODECConfigured", &l->has_codec },
        { "TIFFStripSize", &l->strip_size },
        { "TIFFTileSize", &l->tile_size },
        { "TIFFGetStrileOffset", &l->piece_at },
        { "TIFFGetStrileByteCount", &l->piece_bytes },
        { "TIFFReadEncodedStrip", &l->strip },
        { "TIFFReadEncodedTile", &l->tile },
        { "TIFFSetErrorHandler", &l->on_error },
        { "TIFFSetWarningHandler", &l->on_warning },
        { 0 },
    };
    gp_errs errs = { .n = 0 };
    library.ok = gp_dl_open(names, symbol, "is a TIFF, which", "install libtiff6 (Debian; Ubuntu 22.04: libtiff5)",
                            (gp_loc){ 0 }, &errs);
    if (!library.ok) {
        gp_why(library.why, "%s", errs.e[0].msg);
        return;
    }
    library.error_before = l->on_error(on_error);
    library.warning_before = l->on_warning(on_warning);
}

/* Before libtiff is called for this handle; after it. */
static const tiff_library *listen(gp_tiff_handle *h, bool decodes)
{
    *h->said = *h->warned = 0, h->error = 0, h->cut = false, h->decodes = decodes;
    listener = h;
    return &library.call;
}

/* Tells what went wrong, with what the library said. */
static bool failed(const gp_tiff_handle *h, char err[GP_WHY])
{
    if (h->error)
        return gp_why(err, "cannot be read: %s", gp_strerror(h->error));
    return gp_why(err, "is cut off or damaged%s%s%s", *h->said ? ": libtiff says '" : "", h->said, *h->said ? "'" : "");
}

/* ---- a file ----------------------------------------------------------- */

int64_t gp_tiff_get(const gp_tiff_handle *f, int64_t at, void *to, size_t n)
{
    if (at < 0 || at >= f->size)
        return 0;
    return gp_rows_bytes(f->fd, f->head, at, to, n);
}

static ptrdiff_t on_read(void *user, void *to, ptrdiff_t n)
{
    gp_tiff_handle *h = user;
    int64_t got = gp_tiff_get(h, h->at, to, (size_t)n);
    h->at += got > 0 ? got : 0;
    h->error = got < 0 ? errno : h->error;
    /* libtiff takes a link that is cut off for the end of the chain; nothing else that lies apart is so short. */
    h->cut |= n == (h->big ? 8 : 4) && got < n;
    return got;
}

static ptrdiff_t on_write(void *user, void *from, ptrdiff_t n)
{
    return -1;
}

static uint64_t on_seek(void *user, uint64_t to, int whence)
{
    gp_tiff_handle *h = user;
    h->at = (int64_t)to + (whence == SEEK_SET ? 0 : whence == SEEK_CUR ? h->at : h->size);
    return (uint64_t)h->at;
}

static uint64_t on_size(void *user)
{
    return (uint64_t)((gp_tiff_handle *)user)->size;
}

static int on_close(void *user)
{
    return 0;
}

bool gp_tiff_begin(gp_tiff_handle *h, char err[GP_WHY])
{
    unsigned char b[16];
    int64_t n = gp_tiff_get(h, 0, b, sizeof b);
    if (n < 0)
        return gp_why(err, "cannot be read: %s", gp_strerror(errno));
    h->swap = n >= 2 && b[0] == 'M';
    int version = n >= 8 && b[0] == b[1] && (b[0] == 'I' || b[0] == 'M') ? (int)gp_number(b + 2, 2, h->swap) : 0;
    h->big = version == 43;
    if ((version != 42 && !h->big) || (h->big && (n < 16 || gp_number(b + 4, 2, h->swap) != 8)))
        return gp_why(err, n ? "is not a TIFF file" : "is empty");
    uint64_t first = h->big ? gp_number(b + 8, 8, h->swap) : gp_number(b + 4, 4, h->swap);
    if (first < 8)
        return gp_why(err, "has no pages: it was never finished");
    if (first >= (uint64_t)h->size)
        return gp_why(err, "is cut off: its first page is at byte %llu of %lld", (unsigned long long)first,
                      (long long)h->size);
    h->first = (int64_t)first;
    pthread_once(&library.once, open_library);
    if (!library.ok)
        return gp_why(err, "%s", library.why);
    /* "rhm": the header alone for now, and no mapping */
    h->tiff = listen(h, false)->open("TIFF", "rhm", h, on_read, on_write, on_seek, on_close, on_size, NULL, NULL);
    listener = NULL;
    return h->tiff || failed(h, err);
}

void gp_tiff_end(gp_tiff_handle *h)
{
    if (h->tiff)
        library.call.close(h->tiff);
    h->tiff = NULL;
}

/* ---- a page ----------------------------------------------------------- */

static const char *name_of_colors(int colors)
{
    switch (colors) {
    case GP_TIFF_PALETTE: return "a palette of another form than TIFF has";
    case 4: return "a mask";
    case GP_TIFF_INKS: return "inks that are not CMYK of 8 bits, or in JPEG";
    case GP_TIFF_YCBCR: return "YCbCr";
    case 8: case 9: case 10: return "CIE L*a*b*";
    default: return "colors that gpipe does not know";
    }
}

static bool take_colors(const gp_tiff_page *p, char err[GP_WHY])
{
    enum { CFA = 32803, LINEAR_RAW = 34892 };  /* what a sensor has */
    int colors = p->colors;
    if (colors == GP_TIFF_YCBCR && p->compression == GP_TIFF_JPEG && p->samples == 3)
        return true;                           /* the library makes RGB of it */
    if (colors == GP_TIFF_PALETTE && p->samples == 1 && p->bits <= 8 && p->palette[0])
        return true;
    if (colors == GP_TIFF_INKS && p->samples == 4 && p->bits == 8 && p->compression != GP_TIFF_JPEG)
        return true;
    return colors == GP_TIFF_WHITE_IS_0 || colors == GP_TIFF_BLACK_IS_0 || colors == GP_TIFF_RGB || colors == CFA
        || colors == LINEAR_RAW
        || gp_why(err, "has %s, and gpipe reads gray and RGB: convert it first", name_of_colors(colors));
}

static bool take_type(gp_tiff_page *p, int format, int64_t max_pixels, char err[GP_WHY])
{
    const int bits = p->bits;
    bool few = bits == 1 || bits == 2 || bits == 4, odd = bits == 10 || bits == 12 || bits == 14;
    enum { UNSIGNED = 1, SIGNED, FLOAT, VOID };
    static const gp_dtype of[4][4] = { { GP_U8, GP_U16, GP_U32, GP_U64 }, { GP_I8, GP_I16, GP_I32, GP_I64 },
                                       { GP_NO_DTYPE, GP_F16, GP_F32, GP_F64 } };
    int size = bits == 8 || few ? 0 : bits == 16 || odd ? 1 : bits == 32 ? 2 : bits == 64 ? 3 : -1;
    if (size < 0)
        return gp_why(err, "has samples of %d bits, and gpipe reads those of 1, 2, 4, 8, 10, 12, 14, 16, 32 and 64: convert it "
                      "first", bits);
    format = format == VOID ? UNSIGNED : format;
    gp_dtype dtype = format >= UNSIGNED && format <= FLOAT ? of[format - 1][size] : GP_NO_DTYPE;
    if (!dtype || (bits % 8 && format != UNSIGNED) || ((few || odd) && p->compression == GP_TIFF_JPEG))
        return gp_why(err, "has samples of %d bits that are neither whole numbers nor floats: convert it first", bits);
    p->raw = (gp_type){ dtype, p->samples > 1 ? 3 : 2, { p->rows, p->cols, p->samples > 1 ? p->samples : 0 } };
    bool rgb = p->colors == GP_TIFF_PALETTE || p->colors == GP_TIFF_INKS;
    p->type = rgb ? (gp_type){ dtype, 3, { p->rows, p->cols, 3 } } : p->raw;
    return gp_has_room(&p->raw, max_pixels, err);
}

/* Its strips or tiles, whose size libtiff and the page have to agree on. */
static bool take_pieces(const gp_tiff_handle *h, gp_tiff_page *p, char err[GP_WHY])
{
    const tiff_library *l = &library.call;
    uint32_t rows = 0, cols = (uint32_t)p->cols;
    l->get(h->tiff, p->tiled ? TILE_ROWS : STRIP_ROWS, &rows);
    if (p->tiled)
        l->get(h->tiff, TILE_COLS, &cols);
    p->piece_rows = !p->tiled && rows > p->rows ? p->rows : rows, p->piece_cols = cols;
    double size = (double)p->piece_rows * (double)gp_tiff_row(p, cols);
    if (size > 64 << 20 && size > 4 * (double)gp_bytes(&p->raw))
        return gp_why(err, "says that its tiles have %lld x %lld pixels, far more than the page: it is damaged",
                      (long long)cols, (long long)p->piece_rows);
    return (size > 0 && (double)(p->tiled ? l->tile_size(h->tiff) : l->strip_size(h->tiff)) == size) || failed(h, err);
}

/* How many bytes of pixels one in the file can stand for: a code of LZW for a string that grew with each code before,
 * one of deflate for 258 bytes by 2 bits (RFC 1951), a count of PackBits for 128. 0: any number. */
static int64_t most_for_a_byte(int compression)
{
    switch (compression) {
    case GP_TIFF_NONE: return 1;
    case GP_TIFF_PACKBITS: return 64;
    case GP_TIFF_DEFLATE: case GP_TIFF_OTHER_DEFLATE: return 1032;
    case GP_TIFF_LZW: return 4096;
    default: return 0;
    }
}

/* Takes what the directory says that libtiff has read. */
static bool take_page(gp_tiff_handle *h, gp_tiff_page *p, char err[GP_WHY])
{
    enum { REDUCED = 1, MASK = 4 };
    const tiff_library *l = &library.call;
    uint32_t kind = 0, rows = 0, cols = 0, depth = 1;
    uint16_t bits = 1, samples = 1, format = 1, planes = 1, compression = 1, orientation = 1, colors = 1;
    const char *text = NULL;
    *p = (gp_tiff_page){ .text = "" };
    l->get(h->tiff, KIND, &kind);
    if ((p->skipped = (kind & (REDUCED | MASK)) != 0))
        return true;
    l->get(h->tiff, ROWS, &rows), l->get(h->tiff, COLS, &cols), l->get(h->tiff, DEPTH, &depth);
    l->get(h->tiff, BITS, &bits), l->get(h->tiff, SAMPLES, &samples), l->get(h->tiff, FORMAT, &format);
    l->get(h->tiff, COMPRESSION, &compression), l->get(h->tiff, COLORS, &colors);
    l->get(h->tiff, ORIENTATION, &orientation), l->get(h->tiff, PLANES, &planes);
    p->text = l->get(h->tiff, TEXT, &text) && text ? text : "";
    p->rows = rows, p->cols = cols, p->samples = samples, p->compression = compression, p->colors = colors;
    p->orientation = orientation >= 1 && orientation <= 8 ? orientation : 1;
    p->bits = bits;
    if (colors == GP_TIFF_PALETTE && !l->get(h->tiff, PALETTE, &p->palette[0], &p->palette[1], &p->palette[2]))
        p->palette[0] = NULL;
    p->separate = planes == 2 && samples > 1, p->tiled = l->is_tiled(h->tiff);
    if (!rows || !cols || !samples)
        return failed(h, err);
    if (depth != 1)
        return gp_why(err, "is a volume of several slices in one page: save it with a page for each");
    if (compression == GP_TIFF_OLD_JPEG)
        return gp_why(err, "is compressed by the JPEG of TIFF 6.0, which was given up: convert it first");
    if (!take_colors(p, err) || !take_type(p, format, h->max_pixels, err))
        return false;
    if (!l->has_codec(compression))
        return gp_why(err, "is compressed by method %d of TIFF, which this libtiff does not have: convert it first, "
                      "for instance by tiffcp -c zip", compression);
    int64_t most = most_for_a_byte(compression), packed = p->rows * (int64_t)((p->cols * p->samples * bits + 7) / 8);
    int64_t pixels = bits % 8 ? packed : (int64_t)gp_bytes(&p->raw), least = most ? pixels / most : 0;
    if (least > h->size)
        return gp_why(err, "is cut off or damaged: it needs %lld bytes for its pixels%s, and the file has %lld",
                      (long long)least, most > 1 ? " at least" : "", (long long)h->size);
    if (p->colors == GP_TIFF_YCBCR)
        l->set(h->tiff, JPEG_COLORS, 1);       /* RGB, please */
    return take_pieces(h, p, err);
}

bool gp_tiff_go_to(gp_tiff_handle *h, int64_t at, gp_tiff_page *p, char err[GP_WHY])
{
    const tiff_library *l = listen(h, false);
    bool ok = (at ? l->go_to(h->tiff, (uint64_t)at) : l->next(h->tiff)) && !h->cut;
    ok = ok ? take_page(h, p, err) : failed(h, err);
    listener = NULL;
    return ok;
}

bool gp_tiff_piece(gp_tiff_handle *h, const gp_tiff_page *p, uint32_t piece, void *to, size_t n, char err[GP_WHY])
{
    memset(to, 0, n);                  /* of data that are damaged libtiff may write a part, and say nothing */
    const tiff_library *l = listen(h, true);
    bool few = p->compression == GP_TIFF_NONE && l->piece_bytes(h->tiff, piece) < n;
    bool ok = !few && (p->tiled ? l->tile : l->strip)(h->tiff, piece, to, (ptrdiff_t)n) == (ptrdiff_t)n && !*h->said;
    listener = NULL;
    if (few)
        return gp_why(err, "is cut off or damaged: its %s %u has too few bytes", p->tiled ? "tile" : "strip", piece);
    return ok || failed(h, err);
}

gp_type gp_tiff_shown(const gp_tiff_page *p, bool keep_orientation)
{
    gp_type t = p->type;
    if (!keep_orientation && p->orientation >= 5)
        t.dim[0] = p->cols, t.dim[1] = p->rows;
    return t;
}

/* ---- all of them ------------------------------------------------------ */

bool gp_tiff_of_page(int64_t page, char err[GP_WHY])
{
    char why[GP_WHY];
    memcpy(why, err, GP_WHY);
    why[GP_WHY - 32] = 0;
    return gp_why(err, "(page %lld) %s", (long long)page, why);
}

static bool add_page(gp_tiff_pages *all, int64_t *room, int64_t at, char err[GP_WHY])
{
    if (!GP_ROOM(all->at, all->whole.dim[0], *room))
        return gp_why(err, GP_WHY_MEMORY);
    all->at[all->whole.dim[0]++] = at;
    return true;
}

static gp_type list_of(const gp_type *page)
{
    gp_type t = { page->dtype, page->ndim + 1, { 0 } };
    memcpy(t.dim + 1, page->dim, sizeof *t.dim * (size_t)page->ndim);
    return t;
}

/* Where the pixels of a page lie, if they lie as they are, in one piece; -1: they do not. */
static int64_t in_one(const gp_tiff_handle *h, const gp_tiff_page *p)
{
    const tiff_library *l = &library.call;
    uint64_t first = l->piece_at(h->tiff, 0), bytes = gp_bytes(&p->type) / (uint64_t)p->rows * (uint64_t)p->piece_rows;
    bool ok = p->bits % 8 == 0 && gp_type_same(&p->raw, &p->type) && p->compression == GP_TIFF_NONE && !p->tiled
        && !p->separate && first < (uint64_t)h->size;
    for (uint64_t i = 1; ok && i < (uint64_t)((p->rows + p->piece_rows - 1) / p->piece_rows); i++)
        ok = l->piece_at(h->tiff, (uint32_t)i) == first + i * bytes;
    return ok ? (int64_t)first : -1;
}

/* ImageJ writes the directory of the first image alone where all would need more than 4 GiB: the others lie behind it.
 * It says so in a text, which copies of a page may have kept. `p`: the only page, which `h` is at. */
static bool find_images(const gp_tiff_handle *h, const gp_tiff_page *p, gp_tiff_pages *all, char err[GP_WHY])
{
    const char *said = strncmp(p->text, "ImageJ=", 7) ? NULL : strstr(p->text, "\nimages=");
    long long images = said ? strtoll(said + 8, NULL, 10) : 1;
    int64_t data = images > 1 ? in_one(h, p) : -1, bytes = (int64_t)gp_bytes(&p->type);
    int64_t there = data < 0 ? 0 : (h->size - data) / bytes;
    if (there <= 1)
        return true;
    if (there < images)
        return gp_why(err, "is cut off: ImageJ says that it has %lld images, and %lld are there", images,
                      (long long)there);
    free(all->at);
    all->at = NULL, all->data = data, all->bytes = bytes, all->whole.dim[0] = images;
    return true;
}

bool gp_tiff_find_pages(gp_tiff_handle *h, bool keep_orientation, gp_tiff_pages *all, char err[GP_WHY])
{
    const tiff_library *l = &library.call;
    char have[128], want[128];
    int64_t room = 0, seen = 0;
    gp_tiff_page p;
    gp_type first = { 0 };
    *all = (gp_tiff_pages){ .at = NULL };
    for (int64_t at = h->first;; at = 0, seen++) {
        int64_t page = all->whole.dim[0];
        if (!gp_tiff_go_to(h, at, &p, err))
            return gp_tiff_of_page(page, err);
        if (!p.skipped) {
            gp_type t = gp_tiff_shown(&p, keep_orientation);
            if (*h->warned && !*all->fault)
                gp_why(all->fault, "has an odd tag in page %lld: libtiff says '%s'", (long long)page, h->warned);
            if (!page)
                all->first = p, all->first.text = NULL, all->first.palette[0] = NULL, first = t, all->whole = list_of(&t);
            if (!gp_type_same(&t, &first))
                return gp_why(err, "has pages of different types: page 0 holds %s, page %lld %s; split it into files "
                              "of one page, for instance with tiffsplit", gp_type_text(&first, want), (long long)page,
                              gp_type_text(&t, have));
            if (!add_page(all, &room, (int64_t)l->place(h->tiff), err))
                return false;
        }
        if (l->is_last(h->tiff))
            break;
    }
    if (!all->whole.dim[0])
        return gp_why(err, "has no page that is not a smaller copy of one or a mask");
    return all->whole.dim[0] > 1 || seen || find_images(h, &p, all, err);
}
