/* png.c - pictures: what a head promises is what the decoder fills, and what was decoded is
 * encoded and decoded again.
 *
 * The mutator knows chunks: it mends their sums, and changes pixels under the compression,
 * so that changed pictures are not all refused at once. */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "png_file.h"
#include "fuzz.h"

enum { BYTES = 1 << 20, HEAD = 8, IHDR = 25, CHUNK = 12 };

static void *decoded(const void *file, size_t n, const gp_type *type)
{
    char err[GP_WHY] = "";
    void *frame = malloc(gp_bytes(type));
    if (gp_png_decode(file, n, type, frame, err))
        return frame;
    MUST(*err);
    free(frame);
    return NULL;
}

/* A frame that can be written is read as it was; one of one channel has an axis less. */
static void and_back(const gp_type *type, const void *frame)
{
    gp_growbuf file = { 0 };
    gp_type again;
    char err[GP_WHY] = "";
    MUST(!gp_png_why_not(type) && gp_png_encode(frame, type, 1, &file, err));
    MUST(gp_png_head(file.data, file.n, &again, err) && again.dtype == type->dtype
         && gp_bytes(&again) == gp_bytes(type));
    void *copy = decoded(file.data, file.n, &again);
    MUST(copy && !memcmp(copy, frame, gp_bytes(type)));
    free(copy);
    free(file.data);
}

static void one(const char *data, size_t n)
{
    gp_type type;
    char err[GP_WHY] = "";
    if (!gp_png_head(data, n, &type, err)) {
        MUST(*err);
        return;
    }
    MUST(type.ndim >= 2 && type.ndim <= 3 && type.dim[0] > 0 && type.dim[1] > 0);
    if (type.dim[0] > BYTES || type.dim[1] > BYTES || gp_bytes(&type) > BYTES)
        return;
    void *frame = decoded(data, n, &type);
    if (frame)
        and_back(&type, frame);
    free(frame);
}

/* ---- the mutator -------------------------------------------------------- */

static uint32_t load(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void store(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 24), p[1] = (uint8_t)(v >> 16), p[2] = (uint8_t)(v >> 8), p[3] = (uint8_t)v;
}

/* Mends the sum of each chunk that is there as a whole. */
static void mend(uint8_t *data, size_t n)
{
    for (size_t at = HEAD; at + CHUNK <= n;) {
        size_t len = load(data + at);
        if (len > n - at - CHUNK)
            return;
        store(data + at + 8 + len, (uint32_t)crc32(0, data + at + 4, (uInt)len + 4));
        at += CHUNK + len;
    }
}

/* The picture's compressed data: from the first IDAT to behind the last; false: there is none. */
static bool find_picture(const uint8_t *data, size_t n, size_t *from, size_t *to)
{
    *from = *to = 0;
    for (size_t at = HEAD; at + CHUNK <= n;) {
        size_t len = load(data + at);
        if (len > n - at - CHUNK)
            break;
        if (!memcmp(data + at + 4, "IDAT", 4)) {
            *from = *from ? *from : at;
            *to = at + CHUNK + len;
        } else if (*from) {
            break;
        }
        at += CHUNK + len;
    }
    return *from > 0;
}

/* Changes the scan lines themselves, which then are one IDAT. */
static size_t change_pixels(uint8_t *data, size_t n, size_t max, fuzz_mutator plain)
{
    static uint8_t packed[1 << 16], lines[1 << 17], again[1 << 17];
    size_t from, to, npacked = 0;
    uLongf nlines = sizeof lines - 4096, nagain = sizeof again;
    if (!find_picture(data, n, &from, &to))
        return 0;
    for (size_t at = from; at < to; at += CHUNK + load(data + at)) {
        size_t len = load(data + at);
        if (len > sizeof packed - npacked)
            return 0;
        memcpy(packed + npacked, data + at + 8, len);
        npacked += len;
    }
    if (uncompress(lines, &nlines, packed, (uLong)npacked) || !nlines)
        return 0;
    nlines = plain(lines, nlines, sizeof lines);
    if (compress(again, &nagain, lines, nlines) || from + CHUNK + nagain + (n - to) > max)
        return 0;
    memmove(data + from + CHUNK + nagain, data + to, n - to);
    store(data + from, (uint32_t)nagain);
    memcpy(data + from + 8, again, nagain);
    return from + CHUNK + nagain + (n - to);
}

static size_t mutate(uint8_t *data, size_t n, size_t max, unsigned seed, fuzz_mutator plain)
{
    size_t changed = seed % 3 == 0 ? change_pixels(data, n, max, plain) : 0;
    if (!changed && seed % 3 == 1 && n >= HEAD + IHDR) {
        plain(data + HEAD + 8, 13, 13);        /* width, height, bits, color, interlacing */
        changed = n;
    }
    n = changed ? changed : plain(data, n, max);
    if (seed % 16)
        mend(data, n);
    return n;
}

const fuzz_harness fuzz_png = { .name = "png", .one = one, .mutate = mutate };
