/* test_pnm.c - PGM, PPM and PFM: in, as their bytes say, and out to the same bytes; broken ones.
 * tests/data/make_pictures.py made the files. */
#include "iotest.h"

#define DISCARD "  - {use: discard}\n"

static const char *const sizes[] = { "1x1", "1x7", "17x3", "5x7" };
static const struct { const char *name, *suffix; } kinds[] = {
    { "gray8", "pgm" }, { "rgb8", "ppm" }, { "gray16", "pgm" }, { "rgb16", "ppm" }, { "f32", "pfm" },
    { "rgb32", "pfm" },
};
enum { SIZES = sizeof sizes / sizeof *sizes, KINDS = sizeof kinds / sizeof *kinds };

TEST_LOOP(there_and_back, 0, SIZES * KINDS)
{
    char here[400];
    size_t n;
    ck_assert_ptr_nonnull(getcwd(here, sizeof here));
    const char *kind = kinds[_i % KINDS].name, *suffix = kinds[_i % KINDS].suffix, *size = sizes[_i / KINDS];
    io_runs(format("stages:\n  - {use: read, path: '%s/tests/data/pnm/%s_%s.%s', out: p}\n"
                 "  - {use: compare, file: '%s/tests/data/pnm/%s_%s.npy', in: p}\n"
                 "  - {use: write, path: out/a.%s, in: p}\n", here, kind, size, suffix, here, kind, size, suffix));
    OWNED char *file = pipe_read("tests/data/pnm", format("%s_%s.%s", kind, size, suffix), &n);
    io_holds(format("out/a.%s", suffix), file, n);
}

static const char *const others[] = {
    "comments.pgm", "twelve.pgm", "seven.ppm", "big_endian.pfm", "text_bits.pbm", "text_rows.pbm", "text.pgm", "text16.pgm", "text_rgb.ppm",
    "bits_1x1.pbm", "bits_1x7.pbm", "bits_17x3.pbm", "bits_5x17.pbm", "gray.pam", "rgb16.pam", "alpha.pam", "gray_alpha.pam",
};

TEST_EACH(read_otherwise, others)
{
    char here[400];
    ck_assert_ptr_nonnull(getcwd(here, sizeof here));
    int stem = (int)strcspn(others[_i], ".");
    io_runs(format("stages:\n  - {use: read, path: '%s/tests/data/pnm/%s'}\n"
                 "  - {use: compare, file: '%s/tests/data/pnm/%.*s.npy'}\n", here, others[_i], here, stem, others[_i]));
}

/* A frame of one channel has an axis less when it is read; a name may be any where `format` is said. */
TEST(one_channel)
{
    char two[] = { 7, 9 };
    io_runs("buffers: {p: {dtype: u8, shape: [2, 1, 1]}}\nstages:\n"
            "  - {use: generate, pattern: constant, value: 7, frames: 1, out: p}\n"
            "  - {use: write, path: a.pgm}\n  - {name: w, use: write, path: 'a%d', format: pnm, in: p}\n");
    io_holds("a.pgm", "P5\n1 2\n255\n\7\7", 13);
    io_holds("a0", "P5\n1 2\n255\n\7\7", 13);
    pipe_file(io_dir, "b.jpg", "P5\n1 2\n255\n\7\11more", 17);
    io_runs("stages:\n  - {use: read, path: b.jpg}\n  - {use: write, path: b.raw}\n");
    io_holds("b.raw", two, 2);
}

/* Bits without blanks, as netpbm writes them, and words of a PAM that are none or several. */
TEST(words)
{
    enum { WIDE = 70, HIGH = 3 };
    char text[400] = "P1\n70 3\n";
    unsigned char want[WIDE * HIGH];
    for (int i = 0; i < WIDE * HIGH; i++) {
        bool black = i % 7 < 3 || i % 11 == 0;
        want[i] = black ? 0 : 255;
        strcat(text, black ? "1" : "0");
        strcat(text, i % WIDE == WIDE - 1 && i < 2 * WIDE - 1 ? "\n" : "");
    }
    pipe_text(io_dir, "a.pbm", text);
    io_runs("stages:\n  - {use: read, path: a.pbm}\n  - {use: write, path: a.raw}\n");
    io_holds("a.raw", want, sizeof want);
    pipe_text(io_dir, "a.pam", "P7\nWIDTH 2\nTUPLTYPE\nTUPLTYPE MY OWN TYPE\nHEIGHT 1\nDEPTH 1\nMAXVAL 255\nENDHDR\nab");
    io_runs("stages:\n  - {use: read, path: a.pam}\n  - {use: write, path: b.raw}\n");
    io_holds("b.raw", "ab", 2);
    pipe_text(io_dir, "b.pbm", "P4\n8 2\nabP4\n8 2\ncd");
    io_fails("stages:\n  - {use: read, path: b.pbm}\n" DISCARD, 1, "has more than one picture");
}

/* ---- broken ---------------------------------------------------------- */

static const struct { const char *name, *text, *said; } broken[] = {
    { "a.pgm", "", "is empty" },
    { "a.pgm", "P", "is not a PNM file" },
    { "a.pgm", "P5", "is cut off within its header, after 2 bytes" },
    { "a.pgm", "P5 7", "is cut off within its header" },
    { "a.pgm", "P5 7 5 255", "is cut off within its header" },
    { "a.pgm", "P5 # 7 5 255 abc", "is cut off within its header" },
    { "a.pgm", "P57 5 255 ", "is not a PNM file" },
    { "a.pgm", "P5 0 5 255 ", "is a PNM file with a broken header" },
    { "a.pgm", "P5 7 -5 255 ", "is a PNM file with a broken header" },
    { "a.pgm", "P5 7 5x 255 ", "is a PNM file with a broken header" },
    { "a.pgm", "P5 7 5 0 ", "is a PNM file with a broken header" },
    { "a.pgm", "P5 7 5 65536 ", "is a PNM file with a broken header" },
    { "a.pgm", "P5 2147483648 1 255 ", "is a PNM file with a broken header" },
    { "a.pgm", "P5 99999999999999999999999999999999999999999999 1 255 ", "is a PNM file with a broken header" },
    { "a.pgm", "P5 2147483647 2147483647 65535 ", "pixels, and 'max_pixels' is 268435456" },
    { "a.pgm", "P8 1 1 255 7", "is not a PNM file" },
    { "a.pgm", "P2 1 1 65536 7", "is a PNM file with a broken header" },
    { "a.pbm", "P4 1 ", "is cut off within its header" },
    { "a.pam", "P7\nWIDTH 1\n", "is cut off within its header" },
    { "a.pam", "P7\nWIDTH 1\nHEIGHT 1\nDEPTH 5\nMAXVAL 1\nENDHDR\n12345", "is a PNM file with a broken header" },
    { "a.pam", "P7\nWIDTH 1\nDEPTH 1\nMAXVAL 1\nENDHDR\n1", "is a PNM file with a broken header" },
    { "a.pfm", "", "is empty" },
    { "a.pfm", "PG 1 1 1 abcd", "is not a PFM file" },
    { "a.pfm", "Pf 1 1 0 abcd", "is a PFM file with a broken header" },
    { "a.pfm", "Pf 1 1 0e1 abcd", "is a PFM file with a broken header" },
    { "a.pfm", "Pf 1 1 one abcd", "is a PFM file with a broken header" },
    { "a.pfm", "Pf 1 1 - abcd", "is a PFM file with a broken header" },
    { "a.pfm", "Pf 1 1 -1.0", "is cut off within its header" },
    { "a.pfm", "PF 1 1.5 -1.0 abcd", "is a PFM file with a broken header" },
};

TEST_EACH(not_read, broken)
{
    pipe_text(io_dir, broken[_i].name, broken[_i].text);
    io_fails(format("stages:\n  - {use: read, path: %s}\n" DISCARD, broken[_i].name), 3, broken[_i].said);
}

static const struct { const char *text, *said; } texts[] = {
    { "P2 2 1 7 3", "is cut off: it has 1 of 2 numbers" }, { "P2 2 1 7 3 8", "is damaged: '8' is not a number from 0 to 7" },
    { "P2 2 1 7 3 x ", "is damaged: 'x' is not" }, { "P2 2 1 7 -1 1", "is damaged: '-1' is not" },
    { "P1 2 1 1", "is cut off: it has 1 of 2 numbers" }, { "P1 2 1 12", "is damaged: '2' is not" },
    { "P3 1 1 9 1 2", "is cut off: it has 2 of 3 numbers" },
    { "P7\nWIDTH 2\nHEIGHT 1\nDEPTH 1\nMAXVAL 1\nENDHDR\n1", "is cut off: 1 more bytes expected" },
};

TEST_EACH(texts_not_read, texts)
{
    pipe_text(io_dir, "a.pnm", texts[_i].text);
    io_fails("stages:\n  - {use: read, path: a.pnm}\n" DISCARD, 1, texts[_i].said);
}

static const struct { const char *name, *head; int data; } cut[] = {
    { "pgm", "P5 7 5 255\n", 35 }, { "ppm", "P6\n7 5\n300\n", 210 }, { "pfm", "PF 7 5 1.0\n", 420 },
    { "pbm", "P4 9 17\n", 34 },
};

/* Cut off anywhere it is an error, which says how much is missing. */
TEST_EACH(cut_off, cut)
{
    char file[500] = "", y[300], said[100];
    strcpy(file, cut[_i].head);
    int head = (int)strlen(file), n = head + cut[_i].data;
    pipe_file(io_dir, TEXT(y, "a.%s", cut[_i].name), file, (size_t)n);
    io_runs(TEXT(y, "stages:\n  - {use: read, path: '*.%s'}\n" DISCARD, cut[_i].name));
    for (int k = head; k < n; k++) {
        pipe_file(io_dir, TEXT(y, "b.%s", cut[_i].name), file, (size_t)k);
        io_fails(TEXT(y, "stages:\n  - {use: read, path: '*.%s'}\n" DISCARD, cut[_i].name), 1,
                 TEXT(said, "is cut off: %d more bytes expected after %d found", n - k, k));
    }
}

TEST(several)
{
    pipe_text(io_dir, "a.pgm", "P5 1 1 255 xP5 1 1 255 y");
    io_fails("stages:\n  - {use: read, path: a.pgm}\n" DISCARD, 1, "has more than one picture");
    pipe_text(io_dir, "a.pgm", "P5 1 1 255 x\n");
    io_runs("stages:\n  - {use: read, path: a.pgm}\n" DISCARD);
}

static const struct { const char *type, *path, *text; } refused[] = {
    { "dtype: f32, shape: [2, 3]", "x.pgm", "cannot hold f32 [2, 3]: PNM holds u8 or u16: put a 'cast'" },
    { "dtype: u8, shape: [2, 3, 2]", "x.pnm", "PNM holds frames of shape [H, W] or [H, W, 1 or 3]" },
    { "dtype: u8, shape: [2, 3, 3]", "x.pgm", "PGM is gray: name it .ppm" },
    { "dtype: u8, shape: [2, 3]", "x.ppm", "PPM is RGB: name it .pgm" },
    { "dtype: u8, shape: [2, 3]", "x.pbm", "PBM and PAM are read, and not written: name it .pgm" },
    { "dtype: f64, shape: [2, 3]", "x.pfm", "PFM holds f32: put a 'cast'" },
    { "dtype: f32, shape: [6]", "x.pfm", "PFM holds frames of shape" },
};

TEST_EACH(not_written, refused)
{
    io_fails(format("buffers: {x: {%s}}\nstages:\n  - {use: generate, frames: 1, out: x}\n"
                  "  - {use: write, path: %s}\n", refused[_i].type, refused[_i].path), 3, refused[_i].text);
}

TEST_SUITE(pnm, io_set_up, NULL, 0)
