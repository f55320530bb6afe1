/* png.c - PNG files.
 *
 * The mutator knows chunks: it mends their sums, and changes pixels under the compression,
 * so that changed pictures are not all refused at once. */
#include <zlib.h>
#include "pictures.h"

enum { HEAD = 8, IHDR = 25, CHUNK = 12 };

static void one(const char *data, size_t n)
{
    fuzz_picture(&gp_png, &(gp_picfile_how){ .compression = 1 }, "a.png", true, data, n);
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
