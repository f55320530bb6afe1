/* png_file.c - PNG: what a file holds, and writing one, see picture_file.h.
 *
 * A frame is u8 or u16; C = 2 is gray and alpha, 3 RGB, 4 RGBA. Chunks and filters are done here, compression by
 * libdeflate. It takes and makes all of the data at once, so a picture's lines are in memory beside its frame. */
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>
#include "png_file.h"
#include "png_filter.h"
#include "turn.h"

static const unsigned char begin[16] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n', 0, 0, 0, 13, 'I', 'H', 'D', 'R' };

enum { CHUNK = 12 };                   /* bytes of a chunk beside its data */

uint32_t gp_png_number(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void put_number(unsigned char *p, uint32_t v)
{
    p[0] = (unsigned char)(v >> 24), p[1] = (unsigned char)(v >> 16), p[2] = (unsigned char)(v >> 8);
    p[3] = (unsigned char)v;
}

/* Are pixels of this color type stored in samples of so many bits? */
static bool is_known(int color, int bits)
{
    bool whole = bits == 8 || bits == 16, less = bits == 1 || bits == 2 || bits == 4;
    return color == GP_PNG_GRAY ? whole || less : color == GP_PNG_PALETTE ? less || bits == 8 : whole;
}

bool gp_png_header_of(const void *file, size_t n, gp_png_header *h, char err[GP_WHY])
{
    static const int channels[7] = { 1, 0, 3, 1, 2, 0, 4 };
    const unsigned char *p = file;
    if (n < GP_PNG_FIRST || memcmp(p, begin, GP_PNG_FIRST))
        return gp_why(err, "is not a PNG file");
    if (n < 33)
        return gp_why(err, "is cut off within its header, after %zu bytes", n);
    *h = (gp_png_header){ .width = gp_png_number(p + 16), .height = gp_png_number(p + 20), .bits = p[24],
                          .color = p[25], .channels = p[25] < 7 ? channels[p[25]] : 0, .interlaced = p[28] == 1 };
    if (memcmp(p, begin, sizeof begin) || !h->width || !h->height || h->width > INT32_MAX || h->height > INT32_MAX
        || !h->channels || !is_known(h->color, h->bits) || p[26] || p[27] || p[28] > 1)
        return gp_why(err, "is a PNG file with a broken header");
    return true;
}

/* Which side is up, by the first chunk eXIf, as far as chunks are all there. 0: none says it. */
static int orientation_of(const unsigned char *p, size_t n)
{
    for (size_t at = 33, size; at + CHUNK <= n && memcmp(p + at + 4, "IEND", 4); at += CHUNK + size) {
        size = gp_png_number(p + at);
        if (size <= n - at - CHUNK && !memcmp(p + at + 4, "eXIf", 4))
            return gp_turn_of_exif(p + at + 8, size, 1);
    }
    return 0;
}

/* Some programs put eXIf behind the picture: a part of the file may begin anywhere, so its checksum says that it is
 * one. */
static void png_end(const void *head, size_t n, const void *end, size_t nend, const gp_picfile_how *how, gp_type *type)
{
    const unsigned char *p = end;
    if (how->keep_orientation || orientation_of(head, n))
        return;
    for (size_t at = 0, size; at + CHUNK <= nend; at++) {
        size = memcmp(p + at + 4, "eXIf", 4) ? nend : gp_png_number(p + at);
        if (size > nend - at - CHUNK || libdeflate_crc32(0, p + at + 4, size + 4) != gp_png_number(p + at + 8 + size))
            continue;
        if (gp_turn_of_exif(p + at + 8, size, 1) >= 5) {
            int64_t rows = type->dim[0];
            type->dim[0] = type->dim[1], type->dim[1] = rows;
        }
        return;
    }
}

static bool png_head(const void *head, size_t n, const gp_picfile_how *how, gp_type *type, char err[GP_WHY])
{
    gp_png_header h;
    const unsigned char *p = head;
    if (!gp_png_header_of(head, n, &h, err))
        return false;

    /* A tRNS chunk makes an alpha channel; it stands before the first IDAT. */
    bool alpha = false;
    size_t at = 33;
    for (; at + 8 <= n && memcmp(p + at + 4, "IDAT", 4); at += 12 + (size_t)gp_png_number(p + at))
        alpha |= !memcmp(p + at + 4, "tRNS", 4);
    if (at + 8 > n)
        return gp_why(err, "has no picture in its first %zu bytes", n);

    int orientation = how->keep_orientation ? 1 : orientation_of(p, n);
    int c = (h.color == GP_PNG_PALETTE ? 3 : h.channels) + (alpha && !(h.color & GP_PNG_ALPHA));
    *type = (gp_type){ .dtype = h.bits == 16 ? GP_U16 : GP_U8, .ndim = c > 1 ? 3 : 2,
                       .dim = { orientation < 5 ? h.height : h.width, orientation < 5 ? h.width : h.height, c > 1 ? c : 0 } };
    return true;
}

/* ---- writing --------------------------------------------------------- */

static const char *png_why_not(const gp_type *t, const char *path)
{
    if (t->dtype != GP_U8 && t->dtype != GP_U16)
        return "PNG holds u8 or u16: put a 'cast' stage before this one";
    if (t->ndim != 2 && !(t->ndim == 3 && t->dim[2] >= 1 && t->dim[2] <= 4))
        return "PNG holds frames of shape [H, W] or [H, W, 1 to 4]";
    if (t->dim[0] > INT32_MAX || t->dim[1] > INT32_MAX)
        return "PNG holds less than 2^31 rows and columns";
    return NULL;
}

/* The parts of a picture while it is written. */
typedef struct writing {
    size_t rows, n;                    /* n bytes in a row */
    int bpp;
    bool swap;                         /* u16: its bytes are stored in the other order */
    unsigned char *lines;              /* each n + 1 */
    unsigned char *work;               /* n bytes, as each of these two: zeros; swapped rows take turns */
    unsigned char *row[2];
    unsigned char *packed;             /* the compressed lines */
    size_t npacked;
} writing;

static void filter_lines(writing *w, const unsigned char *frame, bool any)
{
    const unsigned char *above = w->row[0];
    for (size_t y = 0; y < w->rows; y++) {
        const unsigned char *row = frame + y * w->n;
        unsigned char *line = w->lines + y * (w->n + 1);
        if (w->swap) {
            unsigned char *to = w->row[(y + 1) % 2];
            for (size_t i = 0; i < w->n; i += 2)
                to[i] = row[i + 1], to[i + 1] = row[i];
            row = to;
        }
        if (any)
            gp_png_filter(line, row, above, w->n, w->bpp, w->work);
        else
            line[0] = GP_PNG_NONE, memcpy(line + 1, row, w->n);
        above = row;
    }
}

/* Compresses so many lines into `room` bytes at most; gives how many these are. 0: no memory. */
static size_t pack(writing *w, const unsigned char *lines, size_t n, int level, size_t room)
{
    struct libdeflate_compressor *c = libdeflate_alloc_compressor(level);
    size_t packed = c ? libdeflate_zlib_compress(c, lines, n * (w->n + 1), w->packed, room) : 0;
    libdeflate_free_compressor(c);
    return packed;
}

/* Do pixels repeat so little that level 1 makes files nearly as small as 2 does, in less time? By lines in the middle. Of
 * pixels of 1 or 2 bytes none is larger then, of colors some are by 1 %. */
static bool is_noisy(writing *w, size_t room)
{
    enum { LOOKED_AT = 64 << 10 };
    double limit = w->bpp <= 2 ? 0.5 : 0.7;
    size_t n = LOOKED_AT / (w->n + 1) + 1;
    n = n < w->rows ? n : w->rows;
    return pack(w, w->lines + (w->rows - n) / 2 * (w->n + 1), n, 1, room) > limit * (double)(n * (w->n + 1));
}

/* The levels of libdeflate whose files are no larger than those of zlib's level `compression`, but for noisy colors. */
static bool pack_as(writing *w, int compression, size_t room)
{
    static const int level[10] = { 0, 1, 2, 2, 5, 6, 7, 8, 9, 10 };
    bool less = level[compression] == 2 && is_noisy(w, room);
    w->npacked = pack(w, w->lines, w->rows, less ? 1 : level[compression], room);
    return w->npacked > 0;
}

/* There is room in `out`. */
static void put_chunk(gp_growbuf *out, const char *name, const unsigned char *data, size_t n)
{
    unsigned char *p = out->data + out->n;
    put_number(p, (uint32_t)n);
    memcpy(p + 4, name, 4);
    if (n)
        memcpy(p + 8, data, n);
    put_number(p + 8 + n, libdeflate_crc32(0, p + 4, n + 4));
    out->n += CHUNK + n;
}

/* Each number is a chunk tEXt: its name, a NUL, its text. */
static void put_numbers(gp_growbuf *out, const gp_filemeta *s)
{
    for (int i = 0; s && i < s->n; i++) {
        char text[GP_META_NAME + 1 + GP_FILEMETA_NUMBER];
        size_t n = (size_t)(stpcpy(text, s->key[i]) - text) + 1;
        n += s->has & 1u << i ? (size_t)gp_filemeta_format(s, i, text + n) : 0;
        if (s->has & 1u << i)
            put_chunk(out, "tEXt", (unsigned char *)text, n);
    }
}

static bool put_file(const writing *w, const gp_type *t, const gp_filemeta *said, gp_growbuf *out)
{
    static const unsigned char color[5] = { 0, GP_PNG_GRAY, GP_PNG_GRAY | GP_PNG_ALPHA, GP_PNG_RGB,
                                            GP_PNG_RGB | GP_PNG_ALPHA };
    unsigned char head[13] = { [8] = w->swap ? 16 : 8, [9] = color[t->ndim == 3 ? t->dim[2] : 1] };
    put_number(head, (uint32_t)t->dim[1]);
    put_number(head + 4, (uint32_t)t->dim[0]);
    size_t chunks = w->npacked / INT32_MAX + 1;
    size_t numbers = said ? (size_t)said->n * (CHUNK + GP_META_NAME + 1 + GP_FILEMETA_NUMBER) : 0;
    if (!gp_growbuf_need(out, out->n + GP_PNG_FIRST + CHUNK + sizeof head + numbers + chunks * CHUNK + w->npacked
                              + CHUNK))
        return false;
    memcpy(out->data + out->n, begin, GP_PNG_FIRST);
    out->n += GP_PNG_FIRST;
    put_chunk(out, "IHDR", head, sizeof head);
    put_numbers(out, said);
    for (size_t at = 0; at < w->npacked; at += INT32_MAX)
        put_chunk(out, "IDAT", w->packed + at, w->npacked - at < INT32_MAX ? w->npacked - at : INT32_MAX);
    put_chunk(out, "IEND", NULL, 0);
    return true;
}

static bool png_encode(const void *frame, const gp_type *type, const gp_picfile_how *how, gp_growbuf *out,
                       char err[GP_WHY])
{
    size_t rows = (size_t)type->dim[0], n = gp_bytes(type) / rows, lines = rows * (n + 1);
    size_t room = libdeflate_zlib_compress_bound(NULL, lines);
    unsigned char *memory = malloc(lines + 3 * n + room);
    writing w = { .rows = rows, .n = n, .bpp = (int)(n / (size_t)type->dim[1]), .swap = type->dtype == GP_U16,
                  .lines = memory };
    bool ok = memory != NULL;
    if (ok) {
        w.work = memory + lines, w.row[0] = w.work + n, w.row[1] = w.row[0] + n, w.packed = w.row[1] + n;
        memset(w.row[0], 0, n);
        filter_lines(&w, frame, how->compression > 0);
        ok = pack_as(&w, how->compression, room) && put_file(&w, type, how->said, out);
    }
    free(memory);
    return ok || gp_why(err, "cannot be encoded: " GP_WHY_MEMORY);
}

const gp_picfile gp_png = {
    .most_for_a_byte = 1032 * 32,      /* of deflate (RFC 1951); a pixel of 1 bit may become 4 bytes */
    .name = "PNG", .magic = { "\x89PNG\r\n\x1a\n" }, .options = { "compression" },
    .head = png_head, .end = png_end, .decode = gp_png_decode, .said = gp_png_metadata, .why_not = png_why_not,
    .encode = png_encode,
    .decode_ns = 3, .encode_ns = { 1, 7, 9, 10, 15, 19, 26, 50, 63, 90 },
};
