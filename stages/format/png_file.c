/* png_file.c - PNG through libpng, see picture_file.h.
 *
 * A frame is u8 or u16; C = 2 is gray and alpha, 3 RGB, 4 RGBA. Palettes, tRNS and less than
 * 8 bits are expanded. libpng leaves by longjmp. Each setjmp stands in a function of its own whose
 * caller owns everything, so that no local changes between the two. */
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "picture_file.h"

static uint32_t be32(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static bool png_head(const void *head, size_t n, const gp_picfile_how *how, gp_type *type, char err[GP_WHY])
{
    (void)how;
    static const unsigned char begin[16] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n',
                                             0,    0,   0,   13,  'I',  'H',  'D',  'R' };
    const unsigned char *p = head;
    if (n < 8 || memcmp(p, begin, 8))
        return gp_why(err, "is not a PNG file");
    if (n < 33)
        return gp_why(err, "is cut off within its header, after %zu bytes", n);
    if (memcmp(p, begin, sizeof begin))
        return gp_why(err, "is a PNG file with a broken header");

    uint32_t w = be32(p + 16), h = be32(p + 20);
    int bits = p[24], color = p[25];
    static const int channels[7] = { 1, 0, 3, 3, 2, 0, 4 };
    if (!w || !h || w > INT32_MAX || h > INT32_MAX || color > 6 || !channels[color])
        return gp_why(err, "is a PNG file with a broken header");

    /* A tRNS chunk makes an alpha channel; it stands before the first IDAT. */
    bool alpha = false;
    size_t at = 33;
    for (; at + 8 <= n && memcmp(p + at + 4, "IDAT", 4); at += 12 + (size_t)be32(p + at))
        alpha |= !memcmp(p + at + 4, "tRNS", 4);
    if (at + 8 > n)
        return gp_why(err, "has no picture in its first %zu bytes", n);

    int c = channels[color] + (alpha && !(color & PNG_COLOR_MASK_ALPHA));
    *type = (gp_type){ .dtype = bits == 16 ? GP_U16 : GP_U8, .ndim = c > 1 ? 3 : 2,
                       .dim = { h, w, c > 1 ? c : 0 } };
    return true;
}

/* ---- what libpng calls ----------------------------------------------- */

static void on_read_error(png_structp png, png_const_charp msg)
{
    gp_why(png_get_error_ptr(png), "is a broken PNG file: %s", msg);
    png_longjmp(png, 1);
}

static void on_write_error(png_structp png, png_const_charp msg)
{
    gp_why(png_get_error_ptr(png), "cannot be made a PNG file: %s", msg);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp msg)
{
    (void)png, (void)msg;
}

/* libpng's memory: what it says when there is none depends on what it was for. */
static png_voidp take(png_structp png, png_alloc_size_t n)
{
    void *p = malloc(n);
    if (!p)
        *(bool *)png_get_mem_ptr(png) = true;
    return p;
}

static void give(png_structp png, png_voidp p)
{
    (void)png;
    free(p);
}

typedef struct source { const unsigned char *p; size_t left, all; } source;

static void on_read(png_structp png, png_bytep to, size_t n)
{
    source *s = png_get_io_ptr(png);
    if (n > s->left) {
        gp_why(png_get_error_ptr(png), "is cut off: %zu more bytes expected after %zu found",
               n - s->left, s->all);
        png_longjmp(png, 1);
    }
    memcpy(to, s->p, n);
    s->p += n;
    s->left -= n;
}

static void on_write(png_structp png, png_bytep from, size_t n)
{
    gp_growbuf *r = png_get_io_ptr(png);
    if (!gp_growbuf_need(r, r->n + n))
        png_error(png, GP_WHY_MEMORY);
    memcpy(r->data + r->n, from, n);
    r->n += n;
}

static void on_flush(png_structp png)
{
    (void)png;
}

/* ---- decode ---------------------------------------------------------- */

static bool decode(png_structp png, png_infop info, source *from, const gp_type *type,
                   unsigned char *frame)
{
    if (setjmp(png_jmpbuf(png)))
        return false;
    png_set_read_fn(png, from, on_read);
    png_read_info(png, info);
    png_set_expand(png);
    if (png_get_bit_depth(png, info) == 16)
        png_set_swap(png);
    int passes = png_set_interlace_handling(png);
    png_read_update_info(png, info);

    size_t row = gp_bytes(type) / (size_t)type->dim[0];
    if (png_get_image_height(png, info) != (png_uint_32)type->dim[0]
        || png_get_rowbytes(png, info) != row)
        png_error(png, "its header is not what it was");
    for (int pass = 0; pass < passes; pass++)
        for (int64_t y = 0; y < type->dim[0]; y++)
            png_read_row(png, frame + row * (size_t)y, NULL);
    png_read_end(png, NULL);
    return true;
}

static bool png_decode(const void *file, size_t n, const gp_picfile_how *how, const gp_type *type, void *frame,
                       char err[GP_WHY])
{
    (void)how;
    source from = { file, n, n };
    bool full = false;
    png_structp png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, err, on_read_error,
                                               on_warning, &full, take, give);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    bool ok = info && decode(png, info, &from, type, frame);
    png_destroy_read_struct(&png, &info, NULL);
    return ok || (full && gp_why(err, "cannot be decoded: " GP_WHY_MEMORY));
}

/* ---- encode ---------------------------------------------------------- */

static const char *png_why_not(const gp_type *t, const char *path)
{
    (void)path;
    if (t->dtype != GP_U8 && t->dtype != GP_U16)
        return "PNG holds u8 or u16: put a 'cast' stage before this one";
    if (t->ndim != 2 && !(t->ndim == 3 && t->dim[2] >= 1 && t->dim[2] <= 4))
        return "PNG holds frames of shape [H, W] or [H, W, 1 to 4]";
    return NULL;
}

static bool encode(png_structp png, png_infop info, const unsigned char *frame,
                   const gp_type *t, int level, gp_growbuf *out)
{
    static const int color[5] = { 0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA,
                                  PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA };
    if (setjmp(png_jmpbuf(png)))
        return false;
    png_set_write_fn(png, out, on_write, on_flush);
    png_set_compression_level(png, level);
    png_set_filter(png, PNG_FILTER_TYPE_BASE, level ? PNG_FAST_FILTERS : PNG_FILTER_NONE);
    png_set_IHDR(png, info, (png_uint_32)t->dim[1], (png_uint_32)t->dim[0],
                 t->dtype == GP_U16 ? 16 : 8, color[t->ndim == 3 ? t->dim[2] : 1],
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    if (t->dtype == GP_U16)
        png_set_swap(png);
    size_t row = gp_bytes(t) / (size_t)t->dim[0];
    for (int64_t y = 0; y < t->dim[0]; y++)
        png_write_row(png, frame + row * (size_t)y);
    png_write_end(png, NULL);
    return true;
}

static bool png_encode(const void *frame, const gp_type *type, const gp_picfile_how *how, gp_growbuf *out,
                       char err[GP_WHY])
{
    bool full = false;
    png_structp png = png_create_write_struct_2(PNG_LIBPNG_VER_STRING, err, on_write_error,
                                                on_warning, &full, take, give);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    bool ok = info && encode(png, info, frame, type, how->compression, out);
    png_destroy_write_struct(&png, &info);
    return ok || (full && gp_why(err, "cannot be encoded: " GP_WHY_MEMORY));
}

const gp_picfile gp_png = {
    .name = "PNG", .suffix = { ".png" }, .magic = { "\x89PNG\r\n\x1a\n" }, .options = { "compression" },
    .head = png_head, .decode = png_decode, .why_not = png_why_not, .encode = png_encode,
    .decode_ns = 10, .encode_ns = { 7, 20, 22, 26, 32, 42, 60, 75, 100, 110 },
};
