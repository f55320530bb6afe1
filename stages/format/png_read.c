/* png_read.c - decoding PNG, see picture_file.h.
 *
 * All chunks are looked at before anything is decoded. Then the picture's data are decompressed into its lines, whose
 * size the header says, the filters undone, and pixels made of samples. Palettes, tRNS and less than 8 bits are
 * expanded. Where nothing has to be, the rows are made in the frame itself. */
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>
#include "png_file.h"
#include "png_filter.h"
#include "turn.h"

typedef struct chunk {
    char name[5];
    const unsigned char *data;
    size_t n;
} chunk;

typedef struct reader {
    const unsigned char *file;
    size_t n, at;
    gp_png_header head;
    int ncolors;                       /* of the palette; 0: none */
    const unsigned char *colors;
    bool keyed;                        /* there is a tRNS */
    uint16_t key[3];                   /* gray, RGB: what is transparent */
    unsigned char pixel[256][4];       /* one sample of 8 bits or less: the pixel for each of its values */
    int channels;                      /* of a pixel in the frame */
    size_t first, ndata, pieces;       /* IDAT: the first one's offset, the bytes and number of all */
    bool strict, cut;                  /* the file ends behind the picture's data */
    char fault[5];                     /* a chunk whose checksum is wrong, and that is of no use here */
    int orientation;
    char *err;
} reader;

#define broken(r, ...) gp_why((r)->err, "is a broken PNG file: " __VA_ARGS__)

static bool is_there(reader *r, size_t want)
{
    size_t left = r->n - r->at;
    return want <= left || gp_why(r->err, "is cut off: %zu more bytes expected after %zu found", want - left, r->n);
}

/* ---- chunks ---------------------------------------------------------- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The next one, whole; where it matters its sum was right, else it is noted. */
static bool next_chunk(reader *r, chunk *c)
{
    if (!is_there(r, 8))
        return false;
    const unsigned char *p = r->file + r->at;
    *c = (chunk){ .data = p + 8, .n = gp_png_number(p) };
    memcpy(c->name, p + 4, 4);
    for (int i = 0; i < 4; i++)
        if (!is_letter(c->name[i]))
            return broken(r, "there is no chunk at byte %zu", r->at);
    if (c->n > INT32_MAX)
        return broken(r, "the chunk %s at byte %zu is too long", c->name, r->at);
    if (!is_there(r, c->n + 12))
        return false;
    bool optional = c->name[0] >= 'a' && strcmp(c->name, "tRNS") && strcmp(c->name, "eXIf") && !r->strict;
    bool right = libdeflate_crc32(0, p + 4, c->n + 4) == gp_png_number(c->data + c->n);
    if (!right && !optional)
        return broken(r, "the checksum of the chunk %s at byte %zu is wrong", c->name, r->at);
    if (!right)
        memcpy(r->fault, c->name, sizeof c->name);
    r->at += c->n + 12;
    return true;
}

static bool take_palette(reader *r, const chunk *c)
{
    if (r->ncolors)
        return broken(r, "it has two palettes");
    if (!c->n || c->n % 3 || c->n > 768)
        return broken(r, "its palette has %zu bytes", c->n);
    r->ncolors = (int)(c->n / 3);
    r->colors = c->data;
    for (int i = 0; i < r->ncolors && r->head.color == GP_PNG_PALETTE; i++)
        memcpy(r->pixel[i], c->data + 3 * i, 3);
    return true;
}

/* The first one counts; with an alpha channel none does. */
static bool take_transparency(reader *r, const chunk *c)
{
    if (r->keyed || (r->head.color & GP_PNG_ALPHA))
        return true;
    r->keyed = true;
    if (r->head.color == GP_PNG_PALETTE) {
        if (!c->n || c->n > (size_t)r->ncolors)
            return broken(r, "its chunk tRNS says %zu colors, its palette before that %d", c->n, r->ncolors);
        for (size_t i = 0; i < c->n; i++)
            r->pixel[i][3] = c->data[i];
        return true;
    }
    if (c->n != 2 * (size_t)r->head.channels)
        return broken(r, "its chunk tRNS has %zu bytes", c->n);
    for (int i = 0; i < r->head.channels; i++)
        r->key[i] = (uint16_t)((c->data[2 * i] << 8 | c->data[2 * i + 1]) & ((1 << r->head.bits) - 1));
    return true;
}

/* Up to the end of the file; chunks that are of no use here are skipped. */
static bool walk(reader *r)
{
    bool behind = false;               /* the picture's data */
    chunk c;
    for (r->at = GP_PNG_FIRST;; behind = behind || (r->pieces && strcmp(c.name, "IDAT"))) {
        size_t at = r->at, there = r->n - at;
        bool is_picture = there >= 8 && !memcmp(r->file + at + 4, "IDAT", 4);
        r->cut = !r->strict && r->pieces && !is_picture && (there < 8 || gp_png_number(r->file + at) + 12ul > there);
        if (r->cut)
            break;
        if (!next_chunk(r, &c))
            return false;
        if (!strcmp(c.name, "IEND"))
            break;
        if (!strcmp(c.name, "eXIf") && !r->orientation)
            r->orientation = gp_turn_of_exif(c.data, c.n, 1);
        if (!strcmp(c.name, "IDAT")) {
            r->first = r->pieces ? r->first : at;
            r->pieces += !behind, r->ndata += behind ? 0 : c.n;
        } else if (!strcmp(c.name, "PLTE")) {
            if (!r->pieces && r->head.color == GP_PNG_PALETTE && !take_palette(r, &c))
                return false;
        } else if (!strcmp(c.name, "tRNS")) {
            if (!r->pieces && !take_transparency(r, &c))
                return false;
        } else if (c.name[0] <= 'Z' && (strcmp(c.name, "IHDR") || at != GP_PNG_FIRST)) {
            return broken(r, "the chunk %s at byte %zu does not belong there", c.name, at);
        }
    }
    if (!r->pieces)
        return broken(r, "it has no picture");
    return r->ncolors || r->head.color != GP_PNG_PALETTE || broken(r, "it has no palette");
}

/* The last of several with one name counts. */
bool gp_png_metadata(const void *file, size_t n, gp_filemeta *to, char err[GP_WHY])
{
    reader r = { .file = file, .n = n, .at = GP_PNG_FIRST, .err = err };
    chunk c;
    do {
        if (!next_chunk(&r, &c))
            return true;               /* behind the picture, of which it was said */
        const unsigned char *end = strcmp(c.name, "tEXt") ? NULL : memchr(c.data, 0, c.n);
        int i = end ? gp_filemeta_find(to, (const char *)c.data, (size_t)(end - c.data)) : -1;
        if (i < 0)
            continue;
        if (libdeflate_crc32(0, c.data - 4, c.n + 4) != gp_png_number(c.data + c.n))
            return broken(&r, "the checksum of the chunk tEXt with '%s' is wrong", to->key[i]);
        if (!gp_filemeta_parse(to, i, (const char *)end + 1, c.n - (size_t)(end + 1 - c.data), err))
            return false;
    } while (strcmp(c.name, "IEND"));
    return true;
}

/* ---- lines ----------------------------------------------------------- */

/* Pixels x0, x0 + dx, ... of rows y0, y0 + dy, ...: all of them, or one of seven parts of an interlaced picture. */
typedef struct pass { uint32_t x0, y0, dx, dy; } pass;

static const pass whole = { 0, 0, 1, 1 }, adam7[7] = {
    { 0, 0, 8, 8 }, { 4, 0, 8, 8 }, { 0, 4, 4, 8 }, { 2, 0, 4, 4 }, { 0, 2, 2, 4 }, { 1, 0, 2, 2 }, { 0, 1, 1, 2 },
};

static int passes(const reader *r)
{
    return r->head.interlaced ? 7 : 1;
}

static const pass *nth_pass(const reader *r, int i)
{
    return r->head.interlaced ? &adam7[i] : &whole;
}

static size_t steps(uint32_t size, uint32_t from, uint32_t by)
{
    return size > from ? (size - from - 1) / by + 1 : 0;
}

static size_t pass_columns(const reader *r, const pass *p)
{
    return steps(r->head.width, p->x0, p->dx);
}

/* 0 as well where it has no columns. */
static size_t pass_rows(const reader *r, const pass *p)
{
    return pass_columns(r, p) ? steps(r->head.height, p->y0, p->dy) : 0;
}

static size_t row_bytes(const reader *r, size_t columns)
{
    return (columns * (size_t)(r->head.channels * r->head.bits) + 7) / 8;
}

static size_t lines_bytes(const reader *r)
{
    size_t n = 0;
    for (int i = 0; i < passes(r); i++) {
        const pass *p = nth_pass(r, i);
        n += pass_rows(r, p) * (row_bytes(r, pass_columns(r, p)) + 1);
    }
    return n;
}

/* The data of all IDAT together, in `room` where they are not in one piece. */
static const unsigned char *joined(const reader *r, unsigned char *room)
{
    const unsigned char *p = r->file + r->first;
    if (r->pieces == 1)
        return p + 8;
    for (size_t i = 0, to = 0, n; i < r->pieces; i++, to += n, p += n + 12) {
        n = gp_png_number(p);
        memcpy(room + to, p + 8, n);
    }
    return room;
}

static bool decompress(reader *r, const unsigned char *data, unsigned char *lines, size_t n)
{
    struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
    if (!d)
        return gp_why(r->err, "cannot be decoded: " GP_WHY_MEMORY);
    enum libdeflate_result said = libdeflate_zlib_decompress(d, data, r->ndata, lines, n, NULL);
    libdeflate_free_decompressor(d);
    switch (said) {
    case LIBDEFLATE_SUCCESS: return true;
    case LIBDEFLATE_SHORT_OUTPUT: return broken(r, "its data end before its last row");
    case LIBDEFLATE_INSUFFICIENT_SPACE: return broken(r, "its data go on behind its last row");
    default: return broken(r, "its data cannot be decompressed");
    }
}

/* ---- pixels ---------------------------------------------------------- */

/* The pixel for each sample of 8 bits or less: of a palette it is known; gray is stretched to 255. */
static void know_pixels(reader *r)
{
    int most = (1 << r->head.bits) - 1;
    if (r->head.color != GP_PNG_GRAY || r->head.bits > 8)
        return;
    for (int v = 0; v <= most; v++) {
        r->pixel[v][0] = (unsigned char)(v * 255 / most);
        r->pixel[v][1] = r->keyed && v == r->key[0] ? 0 : 255;
    }
}

/* These place n pixels of a row `apart` bytes from each other. */
static void place_known(const reader *r, const unsigned char *row, size_t n, unsigned char *to, size_t apart)
{
    size_t bits = (size_t)r->head.bits, most = ((size_t)1 << bits) - 1, each = (size_t)r->channels;
    for (size_t i = 0; i < n; i++) {
        size_t bit = i * bits, v = row[bit / 8] >> (8 - bits - bit % 8) & most;
        for (size_t k = 0; k < each; k++)
            to[i * apart + k] = r->pixel[v][k];
    }
}

static void place_bytes(const reader *r, const unsigned char *row, size_t n, unsigned char *to, size_t apart)
{
    int stored = r->head.channels;
    for (size_t i = 0; i < n; i++, row += stored, to += apart) {
        for (int k = 0; k < stored; k++)
            to[k] = row[k];
        if (r->keyed)
            to[3] = row[0] == r->key[0] && row[1] == r->key[1] && row[2] == r->key[2] ? 0 : 255;
    }
}

static void place_words(const reader *r, const unsigned char *row, size_t n, unsigned char *to, size_t apart)
{
    int stored = r->head.channels;
    for (size_t i = 0; i < n; i++, to += apart) {
        uint16_t pixel[4], differs = 0;
        for (int k = 0; k < stored; k++, row += 2) {
            pixel[k] = (uint16_t)(row[0] << 8 | row[1]);
            differs |= r->keyed ? pixel[k] ^ r->key[k] : 0;
        }
        if (r->keyed)
            pixel[stored] = differs ? UINT16_MAX : 0;
        memcpy(to, pixel, 2 * (size_t)r->channels);
    }
}

static bool place_pass(reader *r, const pass *p, unsigned char *lines, const unsigned char *zeros, unsigned char *frame)
{
    size_t columns = pass_columns(r, p), rows = pass_rows(r, p), n = row_bytes(r, columns);
    size_t size = (size_t)r->channels * (r->head.bits == 16 ? 2 : 1), width = size * r->head.width;
    int bits = r->head.channels * r->head.bits, bpp = bits < 8 ? 1 : bits / 8;
    for (size_t y = 0; y < rows; y++)
        if (lines[y * (n + 1)] >= GP_PNG_FILTERS)
            return broken(r, "a row has filter %d, and there is none above 4", lines[y * (n + 1)]);
    if (r->head.bits == 8 && r->head.color != GP_PNG_PALETTE && !r->keyed && !r->head.interlaced) {
        gp_png_unfilter(frame, n, lines, rows, n, bpp, zeros);
        return true;
    }
    gp_png_unfilter(lines + 1, n + 1, lines, rows, n, bpp, zeros);
    for (size_t y = 0; y < rows; y++)
        (r->head.bits == 16 ? place_words : r->head.channels == 1 ? place_known : place_bytes)(
            r, lines + y * (n + 1) + 1, columns, frame + (p->y0 + y * p->dy) * width + p->x0 * size, p->dx * size);
    return true;
}

/* ---- all of it ------------------------------------------------------- */

static bool is_of(const reader *r, const gp_type *t)
{
    const gp_png_header *h = &r->head;
    bool across = r->orientation >= 5;
    return t->dim[across] == h->height && t->dim[!across] == h->width && (t->dtype == GP_U16) == (h->bits == 16)
        && r->channels == (h->color == GP_PNG_PALETTE ? 3 : h->channels) + r->keyed;
}

bool gp_png_decode(const void *file, size_t n, const gp_picfile_how *how, const gp_type *type, void *frame,
                   char err[GP_WHY])
{
    /* Deflate makes 258 bytes of 2 bits at most. */
    enum { MOST = 1032 };
    reader r = { .file = file, .n = n, .channels = type->ndim == 3 ? (int)type->dim[2] : 1,
                 .strict = how->strict, .err = err };
    memset(r.pixel, 0, sizeof r.pixel);
    for (int v = 0; v < 256; v++)
        r.pixel[v][3] = 255;
    if (!gp_png_header_of(file, n, &r.head, err) || !walk(&r))
        return false;
    if (how->keep_orientation || !r.orientation)
        r.orientation = 1;
    if (!is_of(&r, type))
        return gp_why(err, "was changed while it was read");
    know_pixels(&r);
    size_t size = lines_bytes(&r), widest = row_bytes(&r, r.head.width);
    if (size / MOST > r.ndata)
        return broken(&r, "its data end before its last row");
    bool turned = r.orientation != 1;
    unsigned char *lines = malloc(size + widest + (r.pieces > 1 ? r.ndata : 0));
    unsigned char *made = turned ? malloc(gp_bytes(type)) : frame;
    if (!lines || !made) {
        free(lines), free(turned ? made : NULL);
        return gp_why(err, "cannot be decoded: " GP_WHY_MEMORY);
    }
    unsigned char *zeros = lines + size, *at = lines;
    memset(zeros, 0, widest);
    bool ok = decompress(&r, joined(&r, zeros + widest), lines, size);
    for (int i = 0; ok && i < passes(&r); i++) {
        const pass *p = nth_pass(&r, i);
        ok = place_pass(&r, p, at, zeros, made);
        at += pass_rows(&r, p) * (row_bytes(&r, pass_columns(&r, p)) + 1);
    }
    free(lines);
    if (ok && turned)
        gp_turn_rows(gp_turn_for(r.orientation, r.head.width, r.head.height), made, r.head.height, 0, r.head.width,
                     gp_bytes(type) / ((size_t)r.head.width * r.head.height), frame);
    free(turned ? made : NULL);
    if (ok && (r.cut || *r.fault))
        gp_why(err, r.cut ? "is cut off behind its picture, which is whole%.0s"
               : "has a fault, and its picture is whole: the checksum of the chunk %s is wrong", r.fault);
    return ok;
}
