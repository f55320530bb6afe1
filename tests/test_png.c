/* test_png.c - pictures of every kind in, compared and out; broken ones. The
 * pictures are made by tests/data/make.py. */
#include "iotest.h"
#include "picture_file.h"

/* ---- pictures -------------------------------------------------------- */

static const char *const pictures[] = {
    "gray1", "gray2", "gray4", "gray8", "gray16", "graya8", "graya16", "rgb8", "rgb16", "rgba8",
    "rgba16", "gray1_adam7", "gray2_adam7", "gray4_adam7", "gray8_adam7", "gray16_adam7",
    "graya8_adam7", "graya16_adam7", "rgb8_adam7", "rgb16_adam7", "rgba8_adam7", "rgba16_adam7",
    "gray8_trns", "gray16_trns", "rgb8_trns", "rgb16_trns", "palette1", "palette2", "palette4",
    "palette8", "palette1_trns", "palette2_trns", "palette4_trns", "palette8_trns",
};

/* Reads a picture, compares it with what it should be, and writes it with every
 * compression; what was written reads the same again. */
TEST_EACH(picture, pictures)
{
    char here[400];
    ck_assert_ptr_nonnull(getcwd(here, sizeof here));
    const char *p = pictures[_i];
    io_runs(format("stages:\n"
              "  - {use: read, path: '%s/tests/data/png/%s.png', out: p}\n"
              "  - {use: compare, file: '%s/tests/data/png/%s.npy', in: p}\n"
              "  - {name: w0, use: write, path: out/0.png, compression: 0, in: p}\n"
              "  - {name: w9, use: write, path: out/%%n.png, compression: 9, in: p}\n"
              "  - {name: w3, use: write, path: out/%%d-3.png, in: p}\n", here, p, here, p));
    io_runs(format("stages:\n"
              "  - {use: read, path: out/*.png, out: p}\n"
              "  - {use: write, path: out/all.npy, in: p}\n"));
    io_runs(format("stages:\n"
              "  - {use: read, path: out/0.png, out: p}\n"
              "  - {use: compare, file: '%s/tests/data/png/%s.npy', in: p}\n"
              "  - {name: r9, use: read, path: out/%s.png, out: q}\n"
              "  - {name: c9, use: compare, in: [p, q]}\n"
              "  - {name: r3, use: read, path: out/0-3.png, out: r}\n"
              "  - {name: c3, use: compare, in: {in: p, with: r}}\n", here, p, p));
}

TEST(pictures_cut_off)
{
    size_t n;
    OWNED char *png = pipe_read("tests/data/png", "rgb8_adam7.png", &n);
    ck_assert_ptr_nonnull(png);
    pipe_file(io_dir, "a.png", png, n);
    for (size_t k = 0; k < n; k += k < 40 || k > n - 20 ? 1 : 7) {
        pipe_file(io_dir, "b.png", png, k);
        io_fails("stages:\n  - {use: read, path: '?.png', strict: true}\n  - {use: discard}\n", 1,
              !k ? "b.png' is empty" : k < 8 ? "b.png' is not a PNG file" : "frame 1: '");
    }
    for (size_t k = 33; k < n; k++) {      /* one bit flipped: never a crash */
        png[k] ^= 4;
        pipe_file(io_dir, "b.png", png, n);
        pipe_result r = io_go("stages:\n  - {use: read, path: '?.png'}\n  - {use: discard}\n");
        ck_assert(r.outcome == GP_DONE || r.outcome == GP_ERROR);
        png[k] ^= 4;
    }
    pipe_file(io_dir, "b.png", png, n / 2);
    io_fails("stages:\n  - {use: read, path: '?.png'}\n  - {use: discard}\n", 1, "is cut off");
    /* The bad one is a hole when the run may go on. */
    pipe_result r = io_done(format("on_error: drop\nstages:\n  - {use: read, path: '?.png'}\n"
                            "  - {use: write, path: 'out/%%d.png'}\n"));
    ck_assert_uint_eq(r.account[0].failed, 1);
    ck_assert_uint_eq(r.account[0].out, 1);
    ck_assert_int_eq(io_files("out"), 1);
}

/* ---- files by hand --------------------------------------------------- */

static unsigned char file[4096];
static size_t nfile;

static void put32(unsigned char *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (unsigned char)(v >> (24 - 8 * i));
}

/* The checksum of chunks, a bit at a time (PNG specification, annex D). */
static uint32_t crc(const unsigned char *p, size_t n)
{
    uint32_t c = UINT32_MAX;
    while (n--) {
        c ^= *p++;
        for (int k = 0; k < 8; k++)
            c = c & 1 ? 0xedb88320u ^ c >> 1 : c >> 1;
    }
    return ~c;
}

static void chunk(const char *name, const void *data, size_t n)
{
    unsigned char *p = file + nfile;
    put32(p, (uint32_t)n);
    memcpy(p + 4, name, 4);
    memcpy(p + 8, data, n);
    put32(p + 8 + n, crc(p + 4, n + 4));
    nfile += n + 12;
}

/* Not compressed: a stream of zlib of one stored block. */
static size_t stored(unsigned char *to, const unsigned char *lines, size_t n)
{
    uint32_t a = 1, b = 0;
    memcpy(to, (unsigned char[]){ 0x78, 1, 1, (unsigned char)n, 0, (unsigned char)~n, 0xff }, 7);
    memcpy(to + 7, lines, n);
    for (size_t i = 0; i < n; i++)
        a = (a + lines[i]) % 65521, b = (b + a) % 65521;
    put32(to + 7 + n, b << 16 | a);
    return n + 11;
}

/* What is wrong, or odd, with a picture of 3 x 2 pixels of 4 colors, 2 bits each. '~': it is read, with this
 * warning. */
static const struct { const char *what, *said; } odd[] = {
    { "nothing", NULL }, { "pieces", NULL }, { "chunks", NULL }, { "behind", NULL }, { "stream goes on", NULL },
    { "tRNS late", NULL }, { "color", NULL },
    { "checksum of gAMA", "~has a fault, and its picture is whole: the checksum of the chunk gAMA is wrong" },
    { "no end", "~is cut off behind its picture, which is whole" },
    { "cut off", "~is cut off behind its picture, which is whole" },
    { "checksum of eXIf", "is a broken PNG file: the checksum of the chunk eXIf at byte 57 is wrong" },
    { "bits", "is a PNG file with a broken header" }, { "color type", "is a PNG file with a broken header" },
    { "interlace", "is a PNG file with a broken header" }, { "method", "is a PNG file with a broken header" },
    { "no picture", "has no picture in its first " },
    { "no palette", "is a broken PNG file: it has no palette" },
    { "palettes", "is a broken PNG file: it has two palettes" },
    { "palette", "is a broken PNG file: its palette has 11 bytes" },
    { "tRNS early", "is a broken PNG file: its chunk tRNS says 1 colors, its palette before that 0" },
    { "tRNS", "is a broken PNG file: its chunk tRNS says 5 colors, its palette before that 4" },
    { "critical", "is a broken PNG file: the chunk IDOT at byte 33 does not belong there" },
    { "header", "is a broken PNG file: the chunk IHDR at byte 33 does not belong there" },
    { "name", "is a broken PNG file: there is no chunk at byte 33" },
    { "checksum", "is a broken PNG file: the checksum of the chunk IDAT at byte 57 is wrong" },
    { "filter", "is a broken PNG file: a row has filter 5, and there is none above 4" },
    { "less", "is a broken PNG file: its data end before its last row" },
    { "more", "is a broken PNG file: its data go on behind its last row" },
    { "adler", "is a broken PNG file: its data cannot be decompressed" },
    { "deflate", "is a broken PNG file: its data cannot be decompressed" },
    { "bomb", "is a broken PNG file: its data end before its last row" },
    { "long", "is cut off: " }, { "too long", "is a broken PNG file: the chunk IDAT at byte 57 is too long" },
};

TEST_EACH(by_hand, odd)
{
    const char *what = odd[_i].what;
#define IS(x) (!strcmp(what, x))
    unsigned char head[13] = { 0, 0, 0, 3, 0, 0, 0, 2, 2, 3 }, z[64] = { 0 };
    unsigned char colors[13] = { 1, 2, 3, 40, 50, 60, 70, 80, 90, 255, 254, 253 };
    unsigned char lines[6] = { 0, 0x18, 1, 0xe4 };           /* 0 1 2 and, by the filter Sub, 3 2 1 */
    head[8] = IS("bits") ? 3 : 2, head[9] = IS("color type") ? 5 : 3, head[12] = IS("interlace") ? 2 : 0;
    head[10] = IS("method"), lines[2] = IS("filter") ? 5 : 1;
    if (IS("bomb"))
        put32(head, INT32_MAX), put32(head + 4, INT32_MAX / 64);
    size_t nz = stored(z, lines, IS("less") ? 3 : IS("more") ? 5 : 4);
    z[nz - 1] ^= IS("adler");
    z[2] |= IS("deflate") ? 6 : 0;
    nz += IS("stream goes on") ? 3 : 0;
    nfile = 8;
    memcpy(file, "\x89PNG\r\n\x1a\n", 8);
    chunk("IHDR", head, 13);
    if (IS("critical") || IS("header") || IS("name"))
        chunk(IS("critical") ? "IDOT" : IS("header") ? "IHDR" : "ID T", "", 0);
    if (IS("tRNS early"))
        chunk("tRNS", "\x80", 1);
    if (!IS("no palette"))
        chunk("PLTE", colors, IS("palette") ? 11 : IS("color") ? 9 : 12);
    if (IS("palettes"))
        chunk("PLTE", colors, 12);
    if (IS("tRNS"))
        chunk("tRNS", "\x80\x81\x82\x83\x84", 5);
    if (IS("chunks") || IS("checksum of gAMA"))
        chunk("gAMA", "\0\0\0\1", 4);
    file[nfile - 1] ^= IS("checksum of gAMA");
    static const char exif[] = "MM\0*\0\0\0\10\0\1\1\22\0\3\0\0\0\1\0\6\0\0";
    if (IS("checksum of eXIf"))
        chunk("eXIf", exif, sizeof exif - 1), file[nfile - 1] ^= 1;
    size_t piece = IS("pieces") ? 3 : sizeof z;
    if (IS("pieces"))
        chunk("IDAT", z, 0);
    for (size_t at = 0; at < nz && !IS("no picture"); at += piece)
        chunk("IDAT", z + at, piece < nz - at ? piece : nz - at);
    file[nfile - 1] ^= IS("checksum");
    if (IS("long") || IS("too long"))
        file[57] = IS("long") ? 1 : 0x80;
    if (IS("chunks"))
        chunk("tEXt", "a\0b", 3), chunk("IDAT", z, 5);
    if (IS("tRNS late"))
        chunk("tRNS", "\x80", 1);
    if (!IS("no end"))
        chunk("IEND", "", 0);
    nfile -= IS("cut off") ? 2 : 0;
    if (IS("behind"))
        memcpy(file + nfile, "more", 4), nfile += 4;
#undef IS

    gp_type t;
    char err[GP_WHY] = "";
    unsigned char frame[18];
    const unsigned char *c = colors;
    unsigned char *alone = malloc(nfile);                    /* so that a sanitizer sees its end */
    memcpy(alone, file, nfile);
    bool ok = gp_png.head(alone, nfile, &(gp_picfile_how){ 0 }, &t, err);
    if (ok) {
        ck_assert(t.dtype == GP_U8 && t.ndim == 3);
        ok = !gp_png.decode(alone, nfile, &(gp_picfile_how){ .strict = true }, &t, frame, err);
        ck_assert_msg(ok == (odd[_i].said != NULL), "%s, strict: '%s'", what, err);
        *err = 0;
        ok = gp_png.decode(alone, nfile, &(gp_picfile_how){ 0 }, &t, frame, err);
    }
    free(alone);
    const char *says = odd[_i].said ? odd[_i].said : "~";
    bool is_read = *says == '~';
    says += is_read;
    ck_assert_msg(ok == is_read && strstr(err, says) == err && !*says == !*err, "%s: '%s'", what, err);
    static const int want[6] = { 0, 1, 2, 3, 2, 1 };
    for (int i = 0; ok && i < 6; i++) {
        static const unsigned char black[3];
        bool none = !strcmp(what, "color") && want[i] == 3;  /* what is not in the palette is black */
        ck_assert_msg(!memcmp(frame + 3 * i, none ? black : c + 3 * want[i], 3), "%s: pixel %d", what, i);
    }
}

/* Of the number in tRNS those bits count that samples have (PNG specification, 11.3.2.1). */
TEST(transparent_gray)
{
    unsigned char z[64], frame[12], head[13] = { 0, 0, 0, 3, 0, 0, 0, 2, 2, 0 };
    size_t nz = stored(z, (const unsigned char[]){ 0, 0x18, 0, 0xe4 }, 4);
    nfile = 8;
    memcpy(file, "\x89PNG\r\n\x1a\n", 8);
    chunk("IHDR", head, 13);
    chunk("tRNS", "\xff\x06", 2);
    chunk("IDAT", z, nz);
    chunk("IEND", "", 0);
    gp_type t;
    char err[GP_WHY] = "";
    ck_assert(gp_png.head(file, nfile, &(gp_picfile_how){ 0 }, &t, err) && gp_bytes(&t) == sizeof frame);
    ck_assert_msg(gp_png.decode(file, nfile, &(gp_picfile_how){ 0 }, &t, frame, err), "%s", err);
    static const unsigned char want[12] = { 0, 255, 85, 255, 170, 0, 255, 255, 170, 0, 85, 255 };
    ck_assert(!memcmp(frame, want, sizeof want));
}

/* No memory is taken for pixels that the file cannot have; what deflate makes of one color is taken. */
TEST_LOOP(claims, 0, 2)
{
    unsigned char head[13] = { 0, 1, 0, 0, 0, 0, 0, 0, 8, 2 };
    char z[8] = "not seen";
    put32(head + 4, _i ? 10 : 65536);
    nfile = 8;
    memcpy(file, "\x89PNG\r\n\x1a\n", 8);
    chunk("IHDR", head, 13);
    chunk("IDAT", z, sizeof z);
    chunk("IEND", "", 0);
    pipe_file(io_dir, "a.png", file, nfile);
    io_fails("stages:\n  - {use: read, path: a.png, max_pixels: 1e10}\n  - {use: discard}\n", _i ? 1 : 3, _i ? "is a broken PNG file: its data"
             : "it says that it has 65536 x 65536 pixels, for which 65 bytes are too few");
}

TEST_SUITE(png, io_set_up, NULL, 0)
