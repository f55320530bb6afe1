/* tiff_read.c - the pixels of a TIFF's pages, see tiff_file.h. Each worker has a handle of its own over the one open
 * file, and tells libtiff where the page's directory is, whose strips or tiles it puts together. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tiff_file.h"
#include "turn.h"

/* ---- opening ---------------------------------------------------------- */

typedef struct tiff {
    gp_rows rows;
    int fd;
    int64_t size;
    gp_tiff_pages pages;
    bool swap, keep_orientation;
} tiff;

static bool find(gp_tiff_handle *h, const gp_rowsfile_how *how, gp_tiff_pages *pages, char err[GP_WHY])
{
    h->max_pixels = how->max_pixels;
    bool ok = gp_tiff_begin(h, err) && gp_tiff_find_pages(h, how->keep_orientation, pages, err);
    gp_tiff_end(h);
    return ok && (!how->strict || !*pages->fault || gp_why(err, "%s", pages->fault));
}

bool gp_tiff_head(const gp_rows_head *h, const gp_rowsfile_how *how, gp_type *whole, char err[GP_WHY])
{
    gp_tiff_handle f = { .fd = -1, .head = h, .size = h->size };
    gp_tiff_pages pages = { .at = NULL };
    *whole = (gp_type){ 0 };
    if ((int64_t)h->n < h->size && !h->more)
        return true;
    bool ok = find(&f, how, &pages, err);
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

gp_rows *gp_tiff_open(int fd, const gp_rowsfile_how *how, char err[GP_WHY])
{
    int64_t size;
    tiff *t = gp_rows_new(sizeof *t, fd, &size, err);
    if (!t)
        return NULL;
    gp_tiff_handle h = { .fd = fd, .size = size };
    t->fd = fd, t->size = size, t->keep_orientation = how->keep_orientation;
    if (find(&h, how, &t->pages, err)) {
        t->swap = h.swap, t->rows.whole = t->pages.whole;
        memcpy(t->rows.fault, t->pages.fault, GP_WHY);
        return &t->rows;
    }
    gp_tiff_close(&t->rows);
    return NULL;
}

/* ---- a worker --------------------------------------------------------- */

typedef struct worker {
    gp_tiff_handle h;
    gp_growbuf piece, page, raw;       /* a strip or tile that is no part of the frame; what is to be turned; to be made */
} worker;

void gp_tiff_leave(void *own)
{
    worker *w = own;
    gp_tiff_end(&w->h);
    free(w->piece.data), free(w->page.data), free(w->raw.data);
    free(w);
}

static worker *own_worker(const tiff *t, void **own, char err[GP_WHY])
{
    worker *w = *own;
    if (!w && !(w = *own = calloc(1, sizeof *w)))
        return GP_NULL(gp_why(err, GP_WHY_MEMORY));
    w->h.fd = t->fd, w->h.size = t->size;
    return w->h.tiff || gp_tiff_begin(&w->h, err) ? w : NULL;
}

/* Page `i`, to which the worker goes: it has to be what it was. */
static bool take_page(const tiff *t, worker *w, int64_t i, gp_tiff_page *p, char err[GP_WHY])
{
    if (!gp_tiff_go_to(&w->h, t->pages.at ? t->pages.at[i] : w->h.first, p, err))
        return false;
    gp_type want = gp_tiff_shown(&t->pages.first, t->keep_orientation);
    gp_type found = p->skipped ? (gp_type){ 0 } : gp_tiff_shown(p, t->keep_orientation);
    return gp_type_same(&found, &want) || gp_why(err, "was changed while it was read");
}

/* ---- pixels ----------------------------------------------------------- */

/* Where the pixels of a strip or tile go. */
typedef struct place { int64_t y, x, rows, cols, plane; } place;

static void put_piece(const gp_tiff_page *p, const place *at, const char *from, char *to)
{
    size_t sample = gp_dtype_size(p->raw.dtype), pixel = sample * (size_t)p->samples;
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

/* The same of samples that are not whole bytes: they stand one behind the other, each with its highest bit first. */
static void put_bits(const gp_tiff_page *p, const place *at, const unsigned char *from, char *to)
{
    int64_t each = p->separate ? 1 : p->samples;
    for (int64_t y = 0; y < at->rows; y++, from += gp_tiff_row(p, p->piece_cols))
        for (int64_t i = 0; i < at->cols * each; i++) {
            size_t bit = (size_t)(i * p->bits), end = bit + (size_t)p->bits;
            unsigned v = 0;
            for (size_t byte = bit / 8; byte * 8 < end; byte++)
                v = v << 8 | from[byte];
            v = v >> (8 - end % 8) % 8 & ((1u << p->bits) - 1);
            int64_t k = ((at->y + y) * p->cols + at->x + i / each) * p->samples + (p->separate ? at->plane : i % each);
            if (p->bits < 8)
                ((uint8_t *)to)[k] = (uint8_t)v;
            else
                ((uint16_t *)to)[k] = (uint16_t)v;
        }
}

/* Makes the pixels of a frame of samples that are not: gray of less than 8 bits is stretched to 255, which is white. */
static void make_pixels(const gp_tiff_page *p, const unsigned char *from, char *frame)
{
    size_t n = (size_t)gp_count(&p->raw);
    unsigned char *to = (unsigned char *)frame;
    int most = (1 << (p->bits < 8 ? p->bits : 8)) - 1, shift = 0;
    if (p->colors == GP_TIFF_PALETTE) {
        for (int v = 0; v <= most; v++)            /* some have numbers of 8 bits */
            for (int k = 0; k < 3; k++)
                shift |= p->palette[k][v] > UINT8_MAX ? 8 : 0;
        for (size_t i = 0; i < n; i++)
            for (int k = 0; k < 3; k++)
                *to++ = (unsigned char)(p->palette[k][from[i]] >> shift);
    } else if (p->colors == GP_TIFF_INKS) {
        for (size_t i = 0; i < n; i += 4)
            for (int k = 0; k < 3; k++)
                *to++ = (unsigned char)(((255 - from[i + (size_t)k]) * (255 - from[i + 3]) + 127) / 255);
    } else {
        for (size_t i = 0; i < n; i++)
            *to++ = (unsigned char)((p->colors == GP_TIFF_WHITE_IS_0 ? most - from[i] : from[i]) * 255 / most);
    }
}

static bool read_piece(worker *w, const gp_tiff_page *p, uint32_t piece, const place *at, char *to, char err[GP_WHY])
{
    bool direct = !p->tiled && !p->separate && p->bits % 8 == 0;
    size_t row = gp_tiff_row(p, p->piece_cols), n = (size_t)(p->tiled ? p->piece_rows : at->rows) * row;
    if (direct)
        return gp_tiff_piece(&w->h, p, piece, to + (size_t)at->y * row, n, err);
    if (!gp_growbuf_need(&w->piece, n))
        return gp_why(err, GP_WHY_MEMORY);
    if (!gp_tiff_piece(&w->h, p, piece, w->piece.data, n, err))
        return false;
    if (p->bits % 8)
        put_bits(p, at, w->piece.data, to);
    else
        put_piece(p, at, (char *)w->piece.data, to);
    return true;
}

static bool read_pieces(worker *w, const gp_tiff_page *p, char *to, char err[GP_WHY])
{
    uint32_t piece = 0;
    for (int64_t plane = 0; plane < (p->separate ? p->samples : 1); plane++)
        for (int64_t y = 0; y < p->rows; y += p->piece_rows)
            for (int64_t x = 0; x < p->cols; x += p->piece_cols, piece++) {
                place at = { y, x, p->rows - y < p->piece_rows ? p->rows - y : p->piece_rows,
                             p->cols - x < p->piece_cols ? p->cols - x : p->piece_cols, plane };
                if (!read_piece(w, p, piece, &at, to, err))
                    return false;
            }
    return true;
}

/* One of ImageJ's, without a directory. */
static bool read_image(const tiff *t, const gp_tiff_handle *h, int64_t i, char *to, char err[GP_WHY])
{
    int64_t got = gp_tiff_get(h, t->pages.data + i * t->pages.bytes, to, (size_t)t->pages.bytes);
    if (got != t->pages.bytes)
        return gp_why(err, got < 0 ? "cannot be read: %s" : "is cut off or damaged%.0s", gp_strerror(errno));
    if (t->swap)
        gp_swap(to, &t->pages.first.type);
    return true;
}

static bool read_page(const tiff *t, int64_t i, void **own, char *to, char err[GP_WHY])
{
    gp_tiff_page p = t->pages.first;
    worker *w = own_worker(t, own, err);
    if (!w || (t->pages.at && !take_page(t, w, i, &p, err)))
        return false;
    bool turned = !t->keep_orientation && p.orientation != 1;
    if (turned && !gp_growbuf_need(&w->page, gp_bytes(&p.type)))
        return gp_why(err, GP_WHY_MEMORY);
    char *stored = turned ? (char *)w->page.data : to;
    bool made = p.bits < 8 || !gp_type_same(&p.raw, &p.type);
    if (made && !gp_growbuf_need(&w->raw, gp_bytes(&p.raw)))
        return gp_why(err, GP_WHY_MEMORY);
    char *raw = made ? (char *)w->raw.data : stored;
    if (!(t->pages.at ? read_pieces(w, &p, raw, err) : read_image(t, &w->h, i, stored, err)))
        return false;
    if (made)
        make_pixels(&p, w->raw.data, stored);
    if (turned)
        gp_turn_rows(gp_turn_for(p.orientation, p.cols, p.rows), stored, p.rows, 0, p.cols,
                     gp_bytes(&p.type) / (size_t)(p.rows * p.cols), to);
    return true;
}

bool gp_tiff_read(gp_rows *f, void **own, int64_t first, int64_t n, void *to, char err[GP_WHY])
{
    const tiff *t = (tiff *)f;
    for (int64_t i = first; i < first + n; i++, to = (char *)to + gp_bytes(&t->pages.first.type))
        if (!read_page(t, i, own, to, err))
            return gp_tiff_of_page(i, err);
    return true;
}

/* Takes the numbers of a description that is JSON. */
bool gp_tiff_metadata(gp_rows *f, void *own, int64_t row, gp_filemeta *to, char err[GP_WHY])
{
    const tiff *t = (tiff *)f;
    gp_tiff_page p;
    worker w = { .h = { .fd = t->fd, .size = t->size } };
    bool ok = gp_tiff_begin(&w.h, err) && take_page(t, &w, row, &p, err);
    if (ok && !*p.text && *w.h.said)
        ok = gp_why(err, "has a description that cannot be read: libtiff says '%s'", w.h.said);
    ok = ok && gp_filemeta_from_json(to, p.text, err);
    gp_tiff_end(&w.h);
    return ok || gp_tiff_of_page(row, err);
}
