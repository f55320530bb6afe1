/* test_png_peer.c - PNG beside libpng: random pictures of every kind that libpng writes are what libpng reads; what
 * gpipe writes libpng reads, and is no larger than what it would have written. */
#include <png.h>
#include "picture_file.h"
#include "suite.h"

enum { SIDE = 45, PIXELS = SIDE * SIDE, MOST = PIXELS * 8, FILE_MOST = 1 << 17 };

static unsigned seed;

static unsigned below(unsigned n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

/* ---- libpng ---------------------------------------------------------- */

typedef struct stream { const unsigned char *from; size_t left; gp_growbuf *to; } stream;

static void on_read(png_structp png, png_bytep to, size_t n)
{
    stream *s = png_get_io_ptr(png);
    if (n > s->left)
        png_error(png, "cut off");
    memcpy(to, s->from, n);
    s->from += n, s->left -= n;
}

static void on_write(png_structp png, png_bytep from, size_t n)
{
    stream *s = png_get_io_ptr(png);
    ck_assert(gp_growbuf_need(s->to, s->to->n + n));
    memcpy(s->to->data + s->to->n, from, n);
    s->to->n += n;
}

static void on_flush(png_structp png)
{
}

static _Noreturn void on_error(png_structp png, png_const_charp msg)
{
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp msg)
{
}

/* A picture as libpng writes it: rows of samples, packed, of 16 bits big-endian. */
typedef struct sample {
    int w, h, bits, color, interlace, filters, level, piece;
    int ncolors, nalpha;               /* of a palette; nalpha: also 1 where gray or RGB has a tRNS */
    unsigned char rows[MOST];
} sample;

static size_t row_of(const sample *s)
{
    static const int channels[7] = { 1, 0, 3, 1, 2, 0, 4 };
    return ((size_t)s->w * (size_t)(channels[s->color] * s->bits) + 7) / 8;
}

static void peer_write(sample *s, gp_growbuf *to)
{
    png_color colors[256];
    png_byte alpha[256];
    png_bytep row[SIDE];
    for (int i = 0; i < 256; i++)
        colors[i] = (png_color){ (png_byte)below(256), (png_byte)below(256), (png_byte)below(256) },
        alpha[i] = (png_byte)below(256);
    for (int y = 0; y < s->h; y++)
        row[y] = s->rows + (size_t)y * row_of(s);
    png_color_16 key = { .red = (png_uint_16)below(3), .green = (png_uint_16)below(3),
                         .blue = (png_uint_16)below(3), .gray = (png_uint_16)below(3) };
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, on_warning);
    png_infop info = png_create_info_struct(png);
    stream st = { .to = to };
    if (setjmp(png_jmpbuf(png)))
        ck_abort_msg("libpng cannot write this");
    to->n = 0;
    png_set_write_fn(png, &st, on_write, on_flush);
    png_set_compression_level(png, s->level);
    png_set_compression_buffer_size(png, (size_t)s->piece);
    png_set_filter(png, 0, s->filters);
    png_set_IHDR(png, info, (png_uint_32)s->w, (png_uint_32)s->h, s->bits, s->color, s->interlace, 0, 0);
    if (s->color == PNG_COLOR_TYPE_PALETTE)
        png_set_PLTE(png, info, colors, s->ncolors);
    if (s->nalpha)
        png_set_tRNS(png, info, s->color == PNG_COLOR_TYPE_PALETTE ? alpha : NULL, s->nalpha, &key);
    png_write_info(png, info);
    png_write_image(png, row);
    png_write_end(png, NULL);
    png_destroy_write_struct(&png, &info);
}

/* Of a file of this type into a frame; false: libpng refuses it. */
static bool peer_read(const void *file, size_t n, const gp_type *t, unsigned char *frame)
{
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, NULL, on_error, on_warning);
    png_infop info = png_create_info_struct(png);
    stream st = { .from = file, .left = n };
    bool ok = !setjmp(png_jmpbuf(png));
    if (ok) {
        png_set_read_fn(png, &st, on_read);
        png_read_info(png, info);
        png_set_expand(png);
        if (png_get_bit_depth(png, info) == 16)
            png_set_swap(png);
        int passes = png_set_interlace_handling(png);
        png_read_update_info(png, info);
        size_t row = gp_bytes(t) / (size_t)t->dim[0];
        if (png_get_image_height(png, info) != (png_uint_32)t->dim[0] || png_get_rowbytes(png, info) != row)
            png_error(png, "another type");
        for (int i = 0; i < passes; i++)
            for (int64_t y = 0; y < t->dim[0]; y++)
                png_read_row(png, frame + (size_t)y * row, NULL);
        png_read_end(png, NULL);
    }
    png_destroy_read_struct(&png, &info, NULL);
    return ok;
}

/* ---- tests ----------------------------------------------------------- */

static void make_up(sample *s)
{
    static const struct { int color, bits; } kinds[] = {
        { 0, 1 }, { 0, 2 }, { 0, 4 }, { 0, 8 }, { 0, 16 }, { 2, 8 }, { 2, 16 }, { 3, 1 }, { 3, 2 }, { 3, 4 }, { 3, 8 },
        { 4, 8 }, { 4, 16 }, { 6, 8 }, { 6, 16 } };
    static const int filters[] = { PNG_FILTER_NONE, PNG_FILTER_SUB, PNG_FILTER_UP, PNG_FILTER_AVG, PNG_FILTER_PAETH,
                                   PNG_ALL_FILTERS, PNG_ALL_FILTERS, PNG_FILTER_AVG | PNG_FILTER_PAETH };
    unsigned kind = below(sizeof kinds / sizeof *kinds);
    *s = (sample){ .w = 1 + (int)below(SIDE), .h = 1 + (int)below(SIDE), .bits = kinds[kind].bits,
                   .color = kinds[kind].color, .interlace = (int)below(2), .filters = filters[below(8)],
                   .level = (int)below(10), .piece = 6 + (int)below(3000) };
    s->ncolors = s->color == 3 ? 1 << s->bits : 0;
    if (!(s->color & PNG_COLOR_MASK_ALPHA) && below(2))
        s->nalpha = s->color == 3 ? 1 + (int)below((unsigned)s->ncolors) : 1;
    size_t row = row_of(s);
    unsigned noise = 1 + below(4) * below(80);
    for (size_t i = 0; i < row * (size_t)s->h; i++)
        s->rows[i] = (unsigned char)(i % row * 3 * below(2) / 2 + i / row + below(noise));
    for (size_t i = 0; s->nalpha && i < row * (size_t)s->h; i++)     /* what is transparent is often there */
        s->rows[i] = s->rows[i] % 8 < 6 ? (unsigned char)(i % 2 * below(3)) : s->rows[i];
}

static unsigned char mine[MOST], peers[MOST];

TEST_LOOP(random_pictures, 0, 20)
{
    sample *s = malloc(sizeof *s);
    gp_growbuf file = { 0 };
    gp_type t;
    char err[GP_WHY] = "";
    for (int i = 0; i < 500; i++) {
        seed = (unsigned)(_i * 500 + i);
        make_up(s);
        peer_write(s, &file);
        ck_assert_msg(gp_png.head(file.data, file.n, &(gp_picfile_how){ 0 }, &t, err), "seed %d: %s", _i * 500 + i,
                      err);
        memset(mine, 0xa5, sizeof mine);
        memset(peers, 0x5a, sizeof peers);
        ck_assert_msg(gp_png.decode(file.data, file.n, &(gp_picfile_how){ 0 }, &t, mine, err), "seed %d: %s",
                      _i * 500 + i, err);
        ck_assert(peer_read(file.data, file.n, &t, peers));
        ck_assert_msg(!memcmp(mine, peers, gp_bytes(&t)), "seed %d: other pixels: color %d, %d bits, interlaced %d",
                      _i * 500 + i, s->color, s->bits, s->interlace);
    }
    free(file.data);
    free(s);
}

/* Bytes that differ, are gone or there twice: what is read all the same is what libpng reads. */
TEST(broken_pictures)
{
    sample *s = malloc(sizeof *s);
    gp_growbuf file = { 0 };
    OWNED unsigned char *broken = malloc(FILE_MOST);
    gp_type t;
    int accepted = 0, refused = 0;
    for (int i = 0; i < 4000; i++) {
        seed = (unsigned)(i + 77777);
        make_up(s);
        peer_write(s, &file);
        size_t n = file.n, at = below((unsigned)n), k = 1 + below(8);
        ck_assert(n + 8 < FILE_MOST);
        memcpy(broken, file.data, n);
        switch (below(4)) {
        case 0: broken[at] ^= (unsigned char)(1 + below(255)); break;
        case 1: n = at; break;
        case 2: k = k < n - at ? k : n - at, memmove(broken + at, broken + at + k, n - at - k), n -= k; break;
        default: memmove(broken + at + k, file.data + at, n - at), n += k; break;
        }
        unsigned char *alone = malloc(n ? n : 1);          /* so that a sanitizer sees its end */
        memcpy(alone, broken, n);
        char err[GP_WHY] = "";
        bool ok = gp_png.head(alone, n, &(gp_picfile_how){ 0 }, &t, err);
        if (ok && gp_bytes(&t) <= MOST) {
            ok = gp_png.decode(alone, n, &(gp_picfile_how){ .strict = true }, &t, mine, err);
            ck_assert_msg(!ok || (peer_read(alone, n, &t, peers) && !memcmp(mine, peers, gp_bytes(&t))),
                          "seed %d: libpng does not read the same", i + 77777);
        }
        ck_assert(ok || *err);
        accepted += ok, refused += !ok;
        free(alone);
    }
    ck_assert_msg(accepted > 10 && refused > 3000, "%d, %d", accepted, refused);
    free(file.data);
    free(s);
}

/* Frames of every type, written at level _i. */
TEST_LOOP(written, 0, 10)
{
    gp_growbuf file = { 0 };
    char err[GP_WHY] = "";
    for (int i = 0; i < 120; i++) {
        seed = (unsigned)(i + 999 * _i);
        int c = (int)below(5);
        gp_type t = { .dtype = below(2) ? GP_U8 : GP_U16, .ndim = c ? 3 : 2,
                      .dim = { 1 + below(SIDE), 1 + below(SIDE), c } }, again;
        unsigned noise = 1 + below(5) * below(60);
        for (size_t k = 0; k < gp_bytes(&t); k++)
            mine[k] = (unsigned char)(k / 7 + below(noise));
        gp_picfile_how how = { .compression = _i };
        file.n = 0;
        ck_assert(!gp_png.why_not(&t, "a.png"));
        ck_assert_msg(gp_png.encode(mine, &t, &how, &file, err), "%s", err);
        ck_assert(gp_png.head(file.data, file.n, &how, &again, err) && gp_bytes(&again) == gp_bytes(&t)
                  && again.dtype == t.dtype && again.ndim == (c > 1 ? 3 : 2));
        ck_assert(peer_read(file.data, file.n, &t, peers) && !memcmp(mine, peers, gp_bytes(&t)));
    }
    free(file.data);
}

/* The photo of the README, whole, and what is gray of it: level _i of gpipe and of libpng. */
TEST_LOOP(no_larger, 0, 10)
{
    gp_growbuf photo = { 0 }, file = { 0 };
    gp_type t, gray;
    char err[GP_WHY] = "";
    FILE *f = fopen("examples/data/raccoon.png", "rb");
    ck_assert(f && gp_read_file(fileno(f), SIZE_MAX, &photo, err));
    fclose(f);
    ck_assert(gp_png.head(photo.data, photo.n, &(gp_picfile_how){ 0 }, &t, err));
    OWNED unsigned char *frame = malloc(gp_bytes(&t));
    ck_assert(gp_png.decode(photo.data, photo.n, &(gp_picfile_how){ 0 }, &t, frame, err));
    t.dim[0] = 192;                    /* a quarter of it is enough */
    gray = (gp_type){ .dtype = GP_U8, .ndim = 2, .dim = { t.dim[0], t.dim[1] } };
    for (int k = 0; k < 2; k++) {
        const gp_type *type = k ? &gray : &t;
        for (int64_t i = 0; k && i < t.dim[0] * t.dim[1]; i++)
            frame[i] = frame[3 * i + 1];
        size_t sizes[2];
        file.n = 0;
        ck_assert(gp_png.encode(frame, type, &(gp_picfile_how){ .compression = _i }, &file, err));
        sizes[0] = file.n;
        png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, on_warning);
        png_infop info = png_create_info_struct(png);
        stream st = { .to = &file };
        file.n = 0;
        png_set_write_fn(png, &st, on_write, on_flush);
        png_set_compression_level(png, _i);
        png_set_filter(png, 0, _i ? PNG_FAST_FILTERS : PNG_FILTER_NONE);
        png_set_IHDR(png, info, (png_uint_32)type->dim[1], (png_uint_32)type->dim[0], 8,
                     k ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB, 0, 0, 0);
        png_write_info(png, info);
        for (int64_t y = 0; y < type->dim[0]; y++)
            png_write_row(png, frame + (size_t)(y * type->dim[1]) * (k ? 1 : 3));
        png_write_end(png, NULL);
        png_destroy_write_struct(&png, &info);
        sizes[1] = file.n;
        ck_assert_msg(sizes[0] <= sizes[1] + sizes[1] / 100, "%s: %zu bytes, libpng %zu", k ? "gray" : "RGB", sizes[0],
                      sizes[1]);
    }
    free(photo.data);
    free(file.data);
}

TEST_SUITE(png_peer, NULL, NULL, 0)
