/* tiff_dir.c - which pages a TIFF has, and of what type, see tiff_file.h.
 *
 * Reads the directories itself: in order, each once, whatever they say, and without memory that the file asks for but a
 * number a page. A directory that does not fit what can be read is an error that says what to do. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tiff_file.h"

/* ---- bytes, numbers --------------------------------------------------- */

int64_t gp_tiff_get(const gp_tiff_bytes *f, int64_t at, void *to, size_t n)
{
    if (at < 0 || at >= f->size)
        return 0;
    if (f->fd >= 0)
        return gp_read_at(f->fd, to, n, at);
    const gp_rows_head *h = f->head;
    if (at + (int64_t)n > (int64_t)h->n && (int64_t)h->n < h->size)
        return h->more ? h->more(h->user, at, to, n) : 0;
    n = (int64_t)h->n - at < (int64_t)n ? h->n - (size_t)at : n;
    memcpy(to, (const char *)h->data + at, n);
    return (int64_t)n;
}

static uint64_t number(const gp_tiff_bytes *f, const unsigned char *p, int n)
{
    uint64_t x = 0;
    for (int i = 0; i < n; i++)
        x = x << 8 | p[f->swap ? i : n - 1 - i];
    return x;
}

/* Bytes of a value, by its type; 0: unknown. */
static int size_of(int type)
{
    static const unsigned char size[19] = { 0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8, 8, 8 };
    return type < 19 ? size[type] : 0;
}

static bool is_number(int type)
{
    return type == 1 || type == 3 || type == 4 || type == 13 || type == 16 || type == 18;
}

bool gp_tiff_values(const gp_tiff_bytes *f, const gp_tiff_field *v, uint64_t first, int n, uint64_t *to)
{
    unsigned char room[32 * 8];
    int size = size_of(v->type);
    size_t bytes = (size_t)(n * size);
    if (!is_number(v->type) || first + (uint64_t)n > v->count)
        return false;
    if (v->inside)
        memcpy(room, v->here + first * (uint64_t)size, bytes);
    else if (gp_tiff_get(f, v->at + (int64_t)first * size, room, bytes) != (int64_t)bytes)
        return false;
    for (int i = 0; i < n; i++)
        to[i] = number(f, room + i * size, size);
    return true;
}

bool gp_tiff_begin(gp_tiff_bytes *f, char err[GP_WHY])
{
    unsigned char h[16];
    int64_t n = gp_tiff_get(f, 0, h, sizeof h);
    if (n < 0)
        return gp_why(err, "cannot be read: %s", strerror(errno));
    f->swap = n >= 2 && h[0] == 'M';
    int version = n >= 8 && h[0] == h[1] && (h[0] == 'I' || h[0] == 'M') ? (int)number(f, h + 2, 2) : 0;
    f->big = version == 43;
    if ((version != 42 && !f->big) || (f->big && (n < 16 || number(f, h + 4, 2) != 8)))
        return gp_why(err, n ? "is not a TIFF file" : "is empty");
    uint64_t first = f->big ? number(f, h + 8, 8) : number(f, h + 4, 4);
    if (first < 8)
        return gp_why(err, "has no pages: it was never finished");
    if (first >= (uint64_t)f->size)
        return gp_why(err, "is cut off: its first page is at byte %llu of %lld", (unsigned long long)first,
                      (long long)f->size);
    f->first = (int64_t)first;
    return true;
}

/* ---- a directory ------------------------------------------------------ */

/* The tags that say what is in a page, and their numbers in a list of fields. */
static const uint16_t tags[] = { 254, 255, 256, 257, 258, 259, 262, 266, 270, 273, 274, 277, 278, 279, 284, 322, 323,
                                 324, 325, 339, 32997 };
enum { KIND, OLD_KIND, COLS, ROWS, BITS, COMPRESSION, COLORS, BIT_ORDER, TEXT, STRIPS, ORIENTATION, SAMPLES,
       STRIP_ROWS, STRIP_BYTES, PLANES, TILE_COLS, TILE_ROWS, TILES, TILE_BYTES, FORMAT, DEPTH, FIELDS };
_Static_assert(sizeof tags / sizeof *tags == FIELDS, "a name for each tag");

typedef struct window { int64_t at, n; unsigned char bytes[1 << 12]; } window;

/* `n` bytes at `at`; NULL: they are not there. */
static const unsigned char *look_at(const gp_tiff_bytes *f, window *w, int64_t at, int64_t n)
{
    if (at < w->at || at + n > w->at + w->n)
        w->at = at, w->n = gp_tiff_get(f, at, w->bytes, sizeof w->bytes);
    return n <= w->n ? w->bytes + (at - w->at) : NULL;
}

static bool damaged(char err[GP_WHY])
{
    return gp_why(err, "is cut off or damaged");
}

static void take_entry(const gp_tiff_bytes *f, const unsigned char *e, gp_tiff_field field[FIELDS])
{
    int tag = (int)number(f, e, 2), k = 0, room = f->big ? 8 : 4;
    while (k < FIELDS && tags[k] != tag)
        k++;
    if (k == FIELDS || field[k].count)
        return;                        /* of two the first counts */
    gp_tiff_field v = { .type = (int)number(f, e + 2, 2), .count = number(f, e + 4, room) };
    const unsigned char *value = e + 4 + room;
    int size = size_of(v.type);
    if (!size || v.count > INT64_MAX / 16)
        return;
    v.inside = v.count <= (uint64_t)(room / size);
    memcpy(v.here, value, (size_t)room);
    uint64_t at = number(f, value, room);
    v.at = at < (uint64_t)f->size ? (int64_t)at : f->size;
    field[k] = v;
}

static bool take_entries(const gp_tiff_bytes *f, int64_t at, gp_tiff_field field[FIELDS], int64_t *next,
                         char err[GP_WHY])
{
    window w = { .n = 0 };
    int count = f->big ? 8 : 2, entry = f->big ? 20 : 12, link = f->big ? 8 : 4;
    const unsigned char *p = look_at(f, &w, at, count);
    uint64_t n = p ? number(f, p, count) : 0;
    if (!n || n > UINT16_MAX)
        return damaged(err);
    at += count;
    for (; n; n--, at += entry) {
        if (!(p = look_at(f, &w, at, entry)))
            return damaged(err);
        take_entry(f, p, field);
    }
    if (!(p = look_at(f, &w, at, link)))
        return damaged(err);
    uint64_t to = number(f, p, link);
    *next = to < (uint64_t)f->size ? (int64_t)to : f->size;
    return true;
}

/* The value of a field that has one; `otherwise` where it is not there; -1: it is no such number. */
static int64_t value_of(const gp_tiff_bytes *f, const gp_tiff_field *v, int64_t otherwise)
{
    uint64_t x;
    if (!v->count)
        return otherwise;
    return gp_tiff_values(f, v, 0, 1, &x) && x <= INT64_MAX ? (int64_t)x : -1;
}

/* That of a field that has one a sample, all the same; -1: they are not. */
static int64_t value_of_all(const gp_tiff_bytes *f, const gp_tiff_field *v, int64_t samples, int64_t otherwise)
{
    uint64_t x[32];
    int64_t found = value_of(f, v, otherwise);
    uint64_t all = v->count < (uint64_t)samples ? v->count : (uint64_t)samples;
    for (uint64_t i = 0; i < all; i += 32) {
        int n = all - i < 32 ? (int)(all - i) : 32;
        if (!gp_tiff_values(f, v, i, n, x))
            return -1;
        for (int k = 0; k < n; k++)
            if ((int64_t)x[k] != found)
                return -1;
    }
    return found;
}

/* ---- what is in it ---------------------------------------------------- */

static const char *name_of_colors(int64_t colors)
{
    switch (colors) {
    case 3: return "a palette";
    case 4: return "a mask";
    case 5: return "CMYK";
    case GP_TIFF_YCBCR: return "YCbCr";
    case 8: case 9: case 10: return "CIE L*a*b*";
    default: return "colors that gpipe does not know";
    }
}

static bool take_colors(gp_tiff_page *p, int64_t colors, char err[GP_WHY])
{
    enum { CFA = 32803, LINEAR_RAW = 34892 };  /* what a sensor has */
    p->colors = (int)colors;
    if (colors == GP_TIFF_YCBCR && p->compression == GP_TIFF_JPEG && p->samples == 3)
        return true;                           /* the library makes RGB of it */
    return colors == GP_TIFF_WHITE_IS_0 || colors == GP_TIFF_BLACK_IS_0 || colors == GP_TIFF_RGB || colors == CFA
        || colors == LINEAR_RAW
        || gp_why(err, "has %s, and gpipe reads gray and RGB: convert it first", name_of_colors(colors));
}

static bool take_type(gp_tiff_page *p, int64_t bits, int64_t format, char err[GP_WHY])
{
    enum { UNSIGNED = 1, SIGNED, FLOAT, VOID };
    static const gp_dtype of[4][4] = { { GP_U8, GP_U16, GP_U32, GP_U64 }, { GP_I8, GP_I16, GP_I32, GP_I64 },
                                       { GP_NO_DTYPE, GP_F16, GP_F32, GP_F64 } };
    int size = bits == 8 ? 0 : bits == 16 ? 1 : bits == 32 ? 2 : bits == 64 ? 3 : -1;
    if (bits < 0)
        return gp_why(err, "has samples of different size, and gpipe reads those of one: convert it first");
    if (size < 0)
        return gp_why(err, "has samples of %lld bit%s, and gpipe reads those of 8, 16, 32 and 64: convert it first",
                      (long long)bits, bits == 1 ? "" : "s");
    format = format == VOID ? UNSIGNED : format;
    gp_dtype dtype = format >= UNSIGNED && format <= FLOAT ? of[format - 1][size] : GP_NO_DTYPE;
    if (!dtype)
        return gp_why(err, "has samples of %lld bits that are neither whole numbers nor floats, or differ: convert it "
                      "first", (long long)bits);
    p->type = (gp_type){ dtype, p->samples > 1 ? 3 : 2, { p->rows, p->cols, p->samples > 1 ? p->samples : 0 } };
    if ((double)p->rows * (double)p->cols * (double)p->samples * (double)gp_dtype_size(dtype) > 0x1p40)
        return gp_why(err, "says that it has %lld x %lld pixels, which is more than 1 TiB", (long long)p->cols,
                      (long long)p->rows);
    return true;
}

/* Where its strips or tiles are: are there as many as it takes? */
static bool take_pieces(const gp_tiff_bytes *f, gp_tiff_page *p, const gp_tiff_field *field, char err[GP_WHY])
{
    p->tiled = field[TILES].count > 0;
    p->offsets = field[p->tiled ? TILES : STRIPS];
    p->counts = field[p->tiled ? TILE_BYTES : STRIP_BYTES];
    p->piece_rows = value_of(f, &field[p->tiled ? TILE_ROWS : STRIP_ROWS], UINT32_MAX);
    p->piece_cols = p->tiled ? value_of(f, &field[TILE_COLS], 0) : p->cols;
    if (p->piece_rows < 1 || p->piece_cols < 1 || p->piece_cols > INT32_MAX)
        return damaged(err);
    if (!p->tiled && p->piece_rows > p->rows)
        p->piece_rows = p->rows;
    if (p->piece_rows > INT32_MAX)
        return damaged(err);
    double size = (double)p->piece_rows * (double)p->piece_cols * (double)gp_dtype_size(p->type.dtype)
                * (p->separate ? 1 : (double)p->samples);
    if (size > 64 << 20 && size > 4 * (double)gp_bytes(&p->type))
        return gp_why(err, "says that its tiles have %lld x %lld pixels, far more than the page: it is damaged",
                      (long long)p->piece_cols, (long long)p->piece_rows);
    int64_t down = (p->rows + p->piece_rows - 1) / p->piece_rows;
    int64_t across = (p->cols + p->piece_cols - 1) / p->piece_cols;
    uint64_t want = (uint64_t)down * (uint64_t)across * (p->separate ? (uint64_t)p->samples : 1);
    if (p->offsets.count < want || (p->counts.count && p->counts.count < want))
        return gp_why(err, "needs %llu %s for its pixels, and lists %llu: it is damaged", (unsigned long long)want,
                      p->tiled ? "tiles" : "strips", (unsigned long long)(p->offsets.count < want ? p->offsets.count
                                                                                                  : p->counts.count));
    return true;
}

static bool take_page(const gp_tiff_bytes *f, gp_tiff_page *p, const gp_tiff_field *field, char err[GP_WHY])
{
    enum { REDUCED = 1, MASK = 4 };
    int64_t kind = value_of(f, &field[KIND], 0), old = value_of(f, &field[OLD_KIND], 0);
    p->skipped = (kind > 0 && kind & (REDUCED | MASK)) || old == 2;
    if (p->skipped)
        return true;
    p->rows = value_of(f, &field[ROWS], 0), p->cols = value_of(f, &field[COLS], 0);
    p->samples = value_of(f, &field[SAMPLES], 1);
    int64_t compression = value_of(f, &field[COMPRESSION], GP_TIFF_NONE), planes = value_of(f, &field[PLANES], 1);
    int64_t orientation = value_of(f, &field[ORIENTATION], 1), order = value_of(f, &field[BIT_ORDER], 1);
    if (p->rows < 1 || p->cols < 1 || p->rows > UINT32_MAX || p->cols > UINT32_MAX || p->samples < 1
        || p->samples > UINT16_MAX || compression < 1 || compression > UINT16_MAX || planes < 1 || planes > 2)
        return damaged(err);
    p->compression = (int)compression;
    p->orientation = orientation >= 1 && orientation <= 8 ? (int)orientation : 1;
    p->separate = planes == 2 && p->samples > 1, p->reversed = order == 2;
    p->text = field[TEXT];
    if (value_of(f, &field[DEPTH], 1) != 1)
        return gp_why(err, "is a volume of several slices in one page: save it with a page for each");
    if (compression == GP_TIFF_OLD_JPEG)
        return gp_why(err, "is compressed by the JPEG of TIFF 6.0, which was given up: convert it first");
    return take_colors(p, value_of(f, &field[COLORS], GP_TIFF_BLACK_IS_0), err)
        && take_type(p, value_of_all(f, &field[BITS], p->samples, 1),
                     value_of_all(f, &field[FORMAT], p->samples, 1), err)
        && take_pieces(f, p, field, err);
}

bool gp_tiff_page_at(const gp_tiff_bytes *f, int64_t at, gp_tiff_page *p, char err[GP_WHY])
{
    gp_tiff_field field[FIELDS] = { 0 };
    *p = (gp_tiff_page){ .at = at };
    return take_entries(f, at, field, &p->next, err) && take_page(f, p, field, err);
}

gp_type gp_tiff_shown(const gp_tiff_page *p, bool keep_orientation)
{
    gp_type t = p->type;
    if (!keep_orientation && p->orientation >= 5)
        t.dim[0] = p->cols, t.dim[1] = p->rows;
    return t;
}

bool gp_tiff_is_plain(const gp_tiff_page *p)
{
    return p->compression == GP_TIFF_NONE && !p->tiled && !p->separate && !p->reversed;
}

int64_t gp_tiff_in_one(const gp_tiff_bytes *f, const gp_tiff_page *p)
{
    uint64_t at[32], first = 0, all = (uint64_t)((p->rows + p->piece_rows - 1) / p->piece_rows);
    uint64_t bytes = (uint64_t)p->piece_rows * (gp_bytes(&p->type) / (uint64_t)p->rows);
    for (uint64_t i = 0; i < all; i += 32) {
        int n = all - i < 32 ? (int)(all - i) : 32;
        if (!gp_tiff_values(f, &p->offsets, i, n, at))
            return -1;
        first = i ? first : at[0];
        for (int k = 0; k < n; k++)
            if (at[k] != first + (i + (uint64_t)k) * bytes)
                return -1;
    }
    return first < (uint64_t)f->size ? (int64_t)first : -1;
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
    if (all->whole.dim[0] == *room) {
        int64_t more = *room ? 2 * *room : 16, *p = realloc(all->at, (size_t)more * sizeof *p);
        if (!p)
            return gp_why(err, GP_WHY_MEMORY);
        all->at = p, *room = more;
    }
    all->at[all->whole.dim[0]++] = at;
    return true;
}

static gp_type list_of(const gp_type *page)
{
    gp_type t = { page->dtype, page->ndim + 1, { 0 } };
    memcpy(t.dim + 1, page->dim, sizeof *t.dim * (size_t)page->ndim);
    return t;
}

/* ImageJ writes the directory of the first image alone where all would need more than 4 GiB: the others lie behind it.
 * It says so in a text, which copies of a page may have kept. */
static bool find_images(const gp_tiff_bytes *f, gp_tiff_pages *all, char err[GP_WHY])
{
    char text[256] = "";
    const gp_tiff_page *p = &all->first;
    const gp_tiff_field *v = &p->text;
    size_t n = v->count < sizeof text ? (size_t)v->count : sizeof text - 1;
    if (all->whole.dim[0] != 1 || v->inside || gp_tiff_get(f, v->at, text, n) != (int64_t)n
        || strncmp(text, "ImageJ=", 7))
        return true;
    const char *said = strstr(text, "\nimages=");
    long long images = said ? strtoll(said + 8, NULL, 10) : 1;
    int64_t bytes = (int64_t)gp_bytes(&p->type), data = gp_tiff_is_plain(p) ? gp_tiff_in_one(f, p) : -1;
    int64_t there = data < 0 ? 0 : (f->size - data) / bytes;
    if (images <= 1 || there <= 1)
        return true;
    if (there < images)
        return gp_why(err, "is cut off: ImageJ says that it has %lld images, and %lld are there", images,
                      (long long)there);
    free(all->at);
    all->at = NULL, all->data = data, all->bytes = bytes, all->whole.dim[0] = images;
    return true;
}

bool gp_tiff_find_pages(const gp_tiff_bytes *f, bool keep_orientation, gp_tiff_pages *all, char err[GP_WHY])
{
    char have[128], want[128];
    int64_t room = 0, seen = f->first, step = 0, limit = 1;
    gp_tiff_page p;
    gp_type first = { 0 };
    *all = (gp_tiff_pages){ .at = NULL };
    for (int64_t at = f->first; at; at = p.next) {
        int64_t page = all->whole.dim[0];
        if (at >= f->size)
            return gp_why(err, "is cut off: page %lld is behind its end", (long long)page);
        if (!gp_tiff_page_at(f, at, &p, err))
            return gp_tiff_of_page(page, err);
        if (p.next == seen)
            return gp_why(err, "is damaged: the page behind page %lld is one before it", (long long)page);
        if (++step == limit)           /* a loop that begins later is found, too (Brent) */
            seen = at, step = 0, limit *= 2;
        if (p.skipped)
            continue;
        gp_type t = gp_tiff_shown(&p, keep_orientation);
        if (!page)
            all->first = p, first = t, all->whole = list_of(&t);
        if (!gp_type_same(&t, &first))
            return gp_why(err, "has pages of different types: page 0 holds %s, page %lld %s; split it into files of "
                          "one page, for instance with tiffsplit", gp_type_text(&first, want), (long long)page,
                          gp_type_text(&t, have));
        if (!add_page(all, &room, at, err))
            return false;
    }
    if (!all->whole.dim[0])
        return gp_why(err, "has no page that is not a smaller copy of one or a mask");
    return find_images(f, all, err);
}
