/* zarr_codec.c - the codecs of chunks, see zarr_file.h.
 *
 * How many bytes come out is known before, by the shape of a chunk: no size that the bytes themselves claim is believed.
 * Formats: RFC 1950 and 1952; RFC 8878 (Zstandard); LZ4 as numcodecs has it, a block behind its size in 4 bytes;
 * README_CHUNK_FORMAT of C-Blosc 1; CRC-32C (RFC 3720, B.4), behind the bytes. */
#include <libdeflate.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "base/dl.h"
#include "zarr_file.h"

/* ---- the libraries --------------------------------------------------- */

static struct {
    void *(*zstd_in)(void), *(*zstd_out)(void);
    size_t (*zstd_free_in)(void *), (*zstd_free_out)(void *);
    size_t (*zstd_get)(void *, void *, size_t, const void *, size_t);
    size_t (*zstd_put)(void *, void *, size_t, const void *, size_t), (*zstd_set)(void *, int, int);
    size_t (*zstd_bound)(size_t);
    unsigned (*zstd_is_error)(size_t);
    const char *(*zstd_why)(size_t);
    int (*lz4_get)(const char *, char *, int, int);
    int (*blosc_get)(const void *, void *, size_t, int);
    int (*blosc_check)(const void *, size_t, size_t *);
} lib;

static const gp_dl_symbol zstd[] = {
    { "ZSTD_createDCtx", &lib.zstd_in }, { "ZSTD_freeDCtx", &lib.zstd_free_in }, { "ZSTD_createCCtx", &lib.zstd_out },
    { "ZSTD_freeCCtx", &lib.zstd_free_out }, { "ZSTD_decompressDCtx", &lib.zstd_get }, { "ZSTD_compress2", &lib.zstd_put },
    { "ZSTD_CCtx_setParameter", &lib.zstd_set },
    { "ZSTD_compressBound", &lib.zstd_bound }, { "ZSTD_isError", &lib.zstd_is_error }, { "ZSTD_getErrorName", &lib.zstd_why },
    { 0 },
};
static const gp_dl_symbol lz4[] = { { "LZ4_decompress_safe", &lib.lz4_get }, { 0 } };
static const gp_dl_symbol blosc[] = {
    { "blosc_decompress_ctx", &lib.blosc_get }, { "blosc_cbuffer_validate", &lib.blosc_check }, { 0 },
};

/* most: bytes that one byte can become. */
static const struct {
    const char *name;
    size_t most;
    const char *library[2];
    const gp_dl_symbol *symbol;
    const char *advice;
} table[] = {
    [GP_ZARR_CRC32C] = { "crc32c", 1, { 0 }, NULL, NULL },
    [GP_ZARR_GZIP] = { "gzip", 1032, { 0 }, NULL, NULL },
    [GP_ZARR_ZLIB] = { "zlib", 1032, { 0 }, NULL, NULL },
    [GP_ZARR_ZSTD] = { "zstd", 1 << 15, { "libzstd.so.1" }, zstd, "install libzstd1 (Debian, Ubuntu)" },
    [GP_ZARR_LZ4] = { "lz4", 255, { "liblz4.so.1" }, lz4, "install liblz4-1 (Debian, Ubuntu)" },
    [GP_ZARR_BLOSC] = { "blosc", SIZE_MAX, { "libblosc.so.1" }, blosc, "install libblosc1 (Debian, Ubuntu)" },
};

gp_zarr_codec gp_zarr_codec_of(const char *name)
{
    int i = GP_ZARR_CRC32C;
    if (!strncmp(name, "numcodecs.", 10))
        name += 10, i = GP_ZARR_GZIP;  /* zarr-python's own names; its crc32c is no other */
    while (i < GP_ZARR_NO_CODEC && strcmp(name, table[i].name))
        i++;
    return (gp_zarr_codec)i;
}

const char *gp_zarr_codec_name(gp_zarr_codec c)
{
    return table[c].name;
}

bool gp_zarr_load(const gp_zarr_chain *c, char err[GP_WHY])
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static bool is_open[GP_ZARR_NO_CODEC];
    gp_errs errs = { .n = 0 };
    char what[60] = "is compressed with ";
    pthread_mutex_lock(&lock);
    for (int i = 0; i < c->n && !errs.n; i++) {
        gp_zarr_codec k = c->codec[i];
        strcpy(stpcpy(what + strlen("is compressed with "), table[k].name), ", which");
        is_open[k] = is_open[k] || !table[k].symbol
                   || gp_dl_open(table[k].library, table[k].symbol, what, table[k].advice, (gp_loc){ 0 }, &errs);
    }
    pthread_mutex_unlock(&lock);
    return !errs.n || gp_why(err, "%s", errs.e[0].msg);
}

void gp_zarr_leave(gp_zarr_work *w)
{
    if (w->zstd_in)
        lib.zstd_free_in(w->zstd_in);
    if (w->zstd_out)
        lib.zstd_free_out(w->zstd_out);
    if (w->deflate)
        libdeflate_free_decompressor(w->deflate);
    free(w->inner.data);
}

/* ---- CRC-32C ---------------------------------------------------------- */

static uint32_t crc_of[8][256];        /* of a byte, with so many zero bytes behind it */

static void make_crc(void)
{
    const uint32_t castagnoli = 0x82f63b78;            /* reversed */
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t x = i;
        for (int bit = 0; bit < 8; bit++)
            x = x >> 1 ^ (x & 1 ? castagnoli : 0);
        crc_of[0][i] = x;
    }
    for (int k = 1; k < 8; k++)
        for (int i = 0; i < 256; i++)
            crc_of[k][i] = crc_of[k - 1][i] >> 8 ^ crc_of[0][crc_of[k - 1][i] & 255];
}

uint32_t gp_crc32c(const void *data, size_t n)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const unsigned char *p = data;
    uint32_t x = UINT32_MAX;
    pthread_once(&once, make_crc);
    for (; n >= 8; n -= 8, p += 8) {   /* 8 bytes at once */
        x ^= (uint32_t)gp_number(p, 4, false);
        x = crc_of[7][x & 255] ^ crc_of[6][x >> 8 & 255] ^ crc_of[5][x >> 16 & 255] ^ crc_of[4][x >> 24]
          ^ crc_of[3][p[4]] ^ crc_of[2][p[5]] ^ crc_of[1][p[6]] ^ crc_of[0][p[7]];
    }
    while (n--)
        x = x >> 8 ^ crc_of[0][(x ^ *p++) & 255];
    return ~x;
}

/* ---- decoding -------------------------------------------------------- */

static bool short_of(size_t n, size_t want, char err[GP_WHY])
{
    return gp_why(err, "holds %zu bytes, where its elements have %zu", n, want);
}

bool gp_zarr_may_hold(const gp_zarr_chain *c, size_t n, size_t want, char err[GP_WHY])
{
    size_t most = 1, plain = want;
    for (int i = 0; i < c->n; i++) {
        most = table[c->codec[i]].most > most ? table[c->codec[i]].most : most;
        plain += c->codec[i] == GP_ZARR_CRC32C ? 4 : 0;
    }
    if (most == 1)
        return n == plain || short_of(n, plain, err);
    const size_t least = want < most ? 1 : want / most, largest = plain + plain / 8 + 65536;   /* of what cannot be compressed */
    return (least <= n && n <= largest)
        || gp_why(err, "has %zu bytes, which cannot be the %zu of its elements", n, want);
}

static bool damaged(gp_zarr_codec k, const char *says, char err[GP_WHY])
{
    return gp_why(err, "is damaged: as %s it %s", table[k].name, says);
}

static bool inflate(gp_zarr_codec k, gp_zarr_work *w, const void *from, size_t n, void *to, size_t want, char err[GP_WHY])
{
    size_t used, got;
    if (!w->deflate && !(w->deflate = libdeflate_alloc_decompressor()))
        return gp_why(err, GP_WHY_MEMORY);
    enum libdeflate_result r = k == GP_ZARR_GZIP ? libdeflate_gzip_decompress_ex(w->deflate, from, n, to, want, &used, &got)
                                                 : libdeflate_zlib_decompress_ex(w->deflate, from, n, to, want, &used, &got);
    if (r == LIBDEFLATE_INSUFFICIENT_SPACE || (r == LIBDEFLATE_SUCCESS && used != n))
        return damaged(k, "has more than the elements of a chunk", err);
    return r == LIBDEFLATE_SUCCESS ? got == want || short_of(got, want, err) : damaged(k, "cannot be decoded", err);
}

static bool from_zstd(gp_zarr_work *w, const void *from, size_t n, void *to, size_t want, char err[GP_WHY])
{
    if (!w->zstd_in && !(w->zstd_in = lib.zstd_in()))
        return gp_why(err, GP_WHY_MEMORY);
    size_t got = lib.zstd_get(w->zstd_in, to, want, from, n);
    if (lib.zstd_is_error(got))
        return gp_why(err, "is damaged: zstd says '%s'", lib.zstd_why(got));
    return got == want || short_of(got, want, err);
}

static bool from_lz4(const unsigned char *from, size_t n, void *to, size_t want, char err[GP_WHY])
{
    size_t says = n < 4 ? 0 : (size_t)gp_number(from, 4, false);
    if (n < 4 || n > INT32_MAX || want > INT32_MAX)
        return damaged(GP_ZARR_LZ4, "is too short or too long", err);
    if (says != want)
        return short_of(says, want, err);
    int got = lib.lz4_get((const char *)from + 4, to, (int)n - 4, (int)want);
    return got < 0 ? damaged(GP_ZARR_LZ4, "cannot be decoded", err) : (size_t)got == want || short_of((size_t)got, want, err);
}

static bool from_blosc(const unsigned char *from, size_t n, void *to, size_t want, char err[GP_WHY])
{
    static const char *const inner[8] = { "blosclz", "lz4", "snappy", "zlib", "zstd", "another", "another", "another" };
    enum { HEADER = 16 };
    size_t size = 0;
    if (n < HEADER || gp_number(from + 12, 4, false) != n || lib.blosc_check(from, n, &size))
        return damaged(GP_ZARR_BLOSC, "has a header that is broken", err);
    if (size != want)
        return short_of(size, want, err);
    int got = lib.blosc_get(from, to, want, 1);
    return (got >= 0 && (size_t)got == want)
        || gp_why(err, "is damaged, or blosc was built without what is in it: %s", inner[from[2] >> 5]);
}

static bool decompress(gp_zarr_codec k, gp_zarr_work *w, const void *from, size_t n, void *to, size_t want, char err[GP_WHY])
{
    return k == GP_ZARR_ZSTD ? from_zstd(w, from, n, to, want, err) : k == GP_ZARR_LZ4 ? from_lz4(from, n, to, want, err)
         : k == GP_ZARR_BLOSC ? from_blosc(from, n, to, want, err) : inflate(k, w, from, n, to, want, err);
}

bool gp_zarr_decode(const gp_zarr_chain *c, gp_zarr_work *w, const void *from, size_t n, void *to, size_t want,
                    char err[GP_WHY])
{
    for (int i = c->n; i--;) {
        if (c->codec[i] == GP_ZARR_CRC32C) {
            if (n < 4 || gp_crc32c(from, n - 4) != gp_number((const unsigned char *)from + n - 4, 4, false))
                return gp_why(err, "is damaged: its checksum (crc32c) is another");
            n -= 4;
            continue;
        }
        size_t size = want + 4 * (size_t)i;            /* before it there can be checksums alone */
        if (i && !gp_growbuf_need(&w->inner, size))
            return gp_why(err, GP_WHY_MEMORY);
        void *there = i ? w->inner.data : to;
        if (!decompress(c->codec[i], w, from, n, there, size, err))
            return false;
        from = there, n = size;
    }
    if (n != want)
        return short_of(n, want, err);
    if (from != to)
        memcpy(to, from, n);
    return true;
}

bool gp_zarr_encode(gp_zarr_work *w, int level, const void *from, size_t n, gp_growbuf *to, char err[GP_WHY])
{
    enum { LEVEL = 100, CHECKSUM = 201 };              /* numbers that zstd.h promises to keep */
    if (!w->zstd_out && !(w->zstd_out = lib.zstd_out()))
        return gp_why(err, GP_WHY_MEMORY);
    lib.zstd_set(w->zstd_out, LEVEL, level), lib.zstd_set(w->zstd_out, CHECKSUM, 1);
    if (!gp_growbuf_need(to, lib.zstd_bound(n)))
        return gp_why(err, GP_WHY_MEMORY);
    to->n = lib.zstd_put(w->zstd_out, to->data, to->cap, from, n);
    return !lib.zstd_is_error(to->n) || gp_why(err, "cannot be compressed: zstd says '%s'", lib.zstd_why(to->n));
}
