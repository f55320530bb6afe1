/* test_jpeg.c - JPEG: files of every kind in, as Pillow reads them; out and in again; broken
 * ones; pictures whose names say something else. tests/data/make_pictures.py made the files. */
#include "iotest.h"

#define DISCARD "  - {use: discard}\n"
#define STRICT(path) "stages:\n  - {use: read, path: " path ", strict: true}\n" DISCARD
#define READ(path) "stages:\n  - {use: read, path: " path "}\n" DISCARD

/* Copies a file of tests/data into the test's folder; its size. */
static size_t take(const char *name, const char *as)
{
    size_t n;
    OWNED char *file = pipe_read("tests/data", name, &n);
    ck_assert_msg(file != NULL, "no %s", name);
    pipe_file(io_dir, as, file, n);
    return n;
}

/* ---- in -------------------------------------------------------------- */

static const char *const pictures[] = {
    "gray_1x1", "gray_1x7", "gray_17x3", "gray_3x17", "gray_19x33", "rgb420_1x1", "rgb420_1x7", "rgb420_17x3",
    "rgb420_3x17", "rgb420_19x33", "rgb422_1x1", "rgb422_1x7", "rgb422_17x3", "rgb422_3x17", "rgb422_19x33",
    "rgb444_1x1", "rgb444_1x7", "rgb444_17x3", "rgb444_3x17", "rgb444_19x33", "progressive", "progressive_gray",
    "restarts", "optimized", "as_rgb", "profile", "arithmetic", "orient1", "orient2", "orient3", "orient4", "orient5",
    "orient6", "orient7", "orient8", "orient6_big_endian_gray", "cmyk", "ycck",
};

TEST_EACH(picture, pictures)
{
    char here[400];
    ck_assert_ptr_nonnull(getcwd(here, sizeof here));
    const char *p = pictures[_i];
    ck_assert_uint_eq(io_runs(format("stages:\n  - {use: read, path: '%s/tests/data/jpeg/%s.jpg'}\n"
                                   "  - {use: compare, file: '%s/tests/data/jpeg/%s.npy'}\n", here, p, here, p)), 1);
}

/* The shape is that of the upright picture, unless it is to be kept: then the pixels are, too. */
TEST_LOOP(orientation, 1, 9)
{
    take(format("jpeg/orient%d.jpg", _i), "a.jpg");
    bool turned = _i >= 5;
    io_runs("buffers: {p: {dtype: u8, shape: [19, 35, 3]}}\nstages:\n"
            "  - {use: read, path: a.jpg, orientation: keep, out: p}\n  - {use: write, path: kept.npy, stack: true}\n");
    io_fails(format("buffers: {p: {dtype: u8, shape: [%s, 3]}}\nstages:\n"
                  "  - {use: read, path: a.jpg, out: p}\n" DISCARD, turned ? "19, 35" : "35, 19"), 3,
             turned ? "holds u8 [35, 19, 3], and 'buffers' declares u8 [19, 35, 3]"
                    : "holds u8 [19, 35, 3], and 'buffers' declares u8 [35, 19, 3]");
    size_t nkept, nup;
    OWNED char *kept = pipe_read(io_dir, "kept.npy", &nkept);
    OWNED char *up = pipe_read("tests/data/jpeg", format("orient%d.npy", _i), &nup);
    const int w = 35, h = 19, bytes = w * h * 3;
    const char *stored = kept + nkept - bytes, *shown = up + nup - bytes;
    for (int v = 0; v < h; v++)
        for (int u = 0; u < w; u++) {
            /* where EXIF says that row v and column u of what is stored are seen */
            int x = (int[]){ 0, u, w - 1 - u, w - 1 - u, u, v, h - 1 - v, h - 1 - v, v }[_i];
            int z = (int[]){ 0, v, v, h - 1 - v, h - 1 - v, u, u, w - 1 - u, w - 1 - u }[_i];
            ck_assert(!memcmp(stored + 3 * (v * w + u), shown + 3 * (z * (turned ? h : w) + x), 3));
        }
}

/* ---- out ------------------------------------------------------------- */

static const struct { const char *shape, *options; int abs, quantum, samples; } written[] = {
    { "[1, 1]", "", 3, 3, 0x11 },
    { "[1, 1, 1]", "", 3, 3, 0x11 },
    { "[1, 7, 3]", "", 12, 3, 0x22 },
    { "[17, 3, 3]", ", subsampling: 4:2:2", 12, 3, 0x21 },
    { "[3, 17, 3]", ", subsampling: \"4:4:4\", quality: 100", 3, 1, 0x11 },
    { "[33, 19]", ", quality: 100", 3, 1, 0x11 },
    { "[40, 50, 3]", ", quality: 50", 40, 16, 0x22 },
    { "[40, 50, 3]", ", quality: 1, subsampling: 4:2:0", 140, 255, 0x22 },
    { "[700, 900, 3]", ", quality: 95, subsampling: 4:4:4", 8, 2, 0x11 },
};

/* A smooth picture; the file's first quantum and its first component's samples are as asked
 * for, and it is read as nearly what it was. */
TEST_EACH(and_back, written)
{
    char y[1000];
    TEXT(y, "buffers: {p: {dtype: u8, shape: %s}}\nstages:\n  - {use: lua, script: s.lua, out: p}\n"
         "  - {use: write, path: a.jpg%s}\n"
         "  - {name: raw, use: write, path: p.raw, in: p}\n", written[_i].shape, written[_i].options);
    pipe_text(io_dir, "s.lua", "function produce(f, y)\n  if f.index == 1 then return false end\n"
              "  local h, w, c = y.shape[1], y.shape[2], y.shape[3] or 1\n"
              "  for i = 0, h * w * c - 1 do\n    local k, x, v = i % c, i // c % w, i // c // w\n"
              "    y[i + 1] = (90 + 40 * k + 60 * x // w + 20 * v // h) end end\n");
    io_runs(y);
    size_t n;
    char *file = pipe_read(io_dir, "a.jpg", &n), *p = file;
    ck_assert(!memcmp(file, "\xff\xd8\xff", 3));
    while (*(p += 2) != '\xff' || p[1] != '\xdb')
        p += (unsigned char)p[2] << 8 | (unsigned char)p[3];
    ck_assert_int_eq((unsigned char)p[5], written[_i].quantum);
    while (p[1] != '\xc0')
        p += 2 + ((unsigned char)p[2] << 8 | (unsigned char)p[3]);
    ck_assert_int_eq(p[11], written[_i].samples);
    free(file);
    bool flat = !strcmp(written[_i].shape, "[1, 1, 1]");      /* is read as one of two axes */
    io_runs(TEXT(y, "buffers: {p: {dtype: u8, shape: %s}}\nstages:\n  - {use: read, path: a.jpg, out: p}\n"
                 "  - {use: compare, file: p.raw, abs: %d}\n", flat ? "[1, 1]" : written[_i].shape, written[_i].abs));
}

/* Several workers decode and encode at once: each frame is as if it had come alone. */
TEST(workers_agree)
{
    enum { FRAMES = 24 };
    size_t n, again;
    take("jpeg/orient7.jpg", "a.jpg");
    io_runs("stages:\n  - {use: read, path: a.jpg, loop: true, frames: 24, out: a}\n"
            "  - {name: b, use: read, path: a.jpg, loop: true, frames: 24, orientation: keep, out: b}\n"
            "  - {use: write, path: 'a/%d.jpg', workers: 4, in: a}\n"
            "  - {name: w, use: write, path: 'b/%d.jpg', workers: 4, subsampling: 4:4:4, in: b}\n");
    for (int i = 1; i < 2 * FRAMES; i++) {
        OWNED char *first = pipe_read(io_dir, i < FRAMES ? "a/0.jpg" : "b/0.jpg", &n);
        OWNED char *other = pipe_read(io_dir, format("%c/%d.jpg", i < FRAMES ? 'a' : 'b', i % FRAMES), &again);
        ck_assert(first && other && n == again && !memcmp(first, other, n));
    }
}

static const struct { const char *type, *text; } refused[] = {
    { "dtype: u16, shape: [2, 3]", "cannot hold u16 [2, 3]: JPEG holds u8: put a 'cast'" },
    { "dtype: u8, shape: [2, 3, 4]", "JPEG holds frames of shape [H, W] or [H, W, 1 or 3]" },
    { "dtype: u8, shape: [2]", "JPEG holds frames of shape" },
    { "dtype: u8, shape: [2, 65501]", "at most 65500 rows and columns" },
};

TEST_EACH(not_written, refused)
{
    io_fails(format("buffers: {x: {%s}}\nstages:\n  - {use: generate, frames: 1, out: x}\n"
                  "  - {use: write, path: x.jpg}\n", refused[_i].type), 3, refused[_i].text);
}

/* ---- broken ---------------------------------------------------------- */

static const char *const to_break[] = { "rgb420_19x33", "progressive", "restarts", "orient6_big_endian_gray",
                                        "arithmetic" };

/* Cut off anywhere it is an error that names the file; the frame before is whole. */
TEST_EACH(cut_off, to_break)
{
    size_t n;
    take(format("jpeg/%s.jpg", to_break[_i]), "a.jpg");
    OWNED char *file = pipe_read(io_dir, "a.jpg", &n);
    for (size_t k = 0; k < n; k += k < 30 || k > n - 30 ? 1 : 13) {
        pipe_file(io_dir, "b.jpg", file, k);
        io_fails(STRICT("'?.jpg'"), 1, !k ? "b.jpg' is empty" : k < 3 ? "b.jpg' is not a JPEG file" : "b.jpg' ");
    }
    for (size_t part = 1; part < 8; part++) {
        pipe_file(io_dir, "b.jpg", file, n * part / 8);
        io_fails(STRICT("'?.jpg'"), 1, "frame 1: '");
    }
    pipe_file(io_dir, "b.jpg", file, n - 2);       /* all but its end */
    io_fails(STRICT("'?.jpg'"), 1, "b.jpg' is cut off: its picture goes on after ");
    pipe_result r = io_done(format("on_error: drop\nstages:\n  - {use: read, path: '?.jpg', strict: true}\n"
                               "  - {use: write, path: 'out/%%d.jpg'}\n"));
    ck_assert_uint_eq(r.account[0].failed, 1);
    ck_assert_uint_eq(r.account[0].out, 1);
    ck_assert_int_eq(io_files("out"), 1);
}

/* Bytes that are put at a place from a marker on, or before it, or so many cut off at the end. `rows`: those that
 * are as in the whole file, of a picture that is made, with a warning, unless it is to be strict; 0: it is an error
 * anyhow. */
static const struct { const char *from; int marker, at; const char *put; int n, cut, rows; const char *says; } faults[] = {
    { "rgb420_19x33", 0xda, -1, "\0\0\0\0\0", 5, 0, 19, "has a fault, and its picture is whole: bytes between its parts" },
    { "rgb420_19x33", 0xc4, -1, "abc", 3, 0, 19, "has bytes between its parts that mean nothing; if they are of a table, its" },
    { "rgb420_19x33", 0xdb, -1, "\0\0\0\0\0", 5, 0, 19, "has a fault, and its picture is whole: bytes between its parts" },
    { "orient1", 0xe1, -1, "\0", 1, 0, 19, "has a fault, and its picture is whole: bytes between its parts" },
    { "rgb420_19x33", 0xd9, -1, "\0\0\0\0\0\0\0\0\0\0\0\0", 12, 0, 19, "has a fault, and its picture is whole: bytes between" },
    { "rgb420_19x33", 0xda, 11, "\0\0\0", 3, 0, 19, "has a scan that says that it is a part of a progressive one; if it lacks bytes there" },
    { "rgb420_19x33", 0, 0, NULL, 0, 2, 19, "is cut off behind its picture, or within its last pixels" },
    { "rgb420_19x33", 0, 0, NULL, 0, 5, 15, "is cut off: of its last 4 rows of 19 not all is in the file" },
    { "gray_19x33", 0, 0, NULL, 0, 3, 16, "is cut off: of its last 3 rows of 19 not all is in the file" },
    { "rgb444_17x3", 0, 0, NULL, 0, 3, 16, "is cut off: of its last 1 row of 17 not all is in the file" },
    { "progressive", 0, 0, NULL, 0, 2, 19, "is cut off behind its picture, or within its last pixels" },
    { "rgb420_19x33", 0, 0, NULL, 0, 160, 0, "is cut off: its picture goes on after" },
    { "progressive", 0, 0, NULL, 0, 3, 0, "is cut off: its picture goes on after" },
    { "progressive", 0, 0, NULL, 0, 30, 0, "is cut off: its picture goes on after" },
    { "arithmetic", 0, 0, NULL, 0, 2, 0, "is cut off: its picture goes on after" },
    { "rgb420_19x33", 0xd9, -1, "0123456789ab", 12, 0, 0, "extraneous bytes before marker 0xd9" },
    { "rgb420_19x33", 0xdb, 0, "\x7f", 1, 0, 0, "is a broken JPEG file: " },
    { "rgb420_19x33", 0xc4, 0, "\x7f", 1, 0, 0, "is a broken JPEG file: " },
    { "rgb420_19x33", 0xc4, 1, "\0", 1, 0, 0, "is a broken JPEG file: " },
    { "restarts", 0xdd, 0, "\x7f", 1, 0, 0, "is a broken JPEG file: " },
    { "restarts", 0xd0, 0, "\x7f", 1, 0, 0, "is a broken JPEG file: " },
    { "orient6", 0xe1, 0, "\x7f", 1, 0, 0, "is a broken JPEG file: " },
    { "rgb420_19x33", 0xc0, 0, "\x7f", 1, 0, 0, "is a JPEG file with a broken header" },
};

TEST_EACH(with_faults, faults)
{
    char changed[20000];
    size_t n, size, whole;
    char *file = pipe_read("tests/data/jpeg", format("%s.jpg", faults[_i].from), &n), *at = file + n;
    for (char *p = file; at == file + n && faults[_i].marker && p + 1 < file + n; p++)
        at = p[0] == '\xff' && (unsigned char)p[1] == faults[_i].marker ? p : at;
    size_t before = (size_t)(at - file), insert = faults[_i].at < 0 ? (size_t)faults[_i].n : 0;
    ck_assert(n + insert < sizeof changed);
    memcpy(changed, file, before), memcpy(changed + before + insert, at, n - before);
    if (faults[_i].n)
        memcpy(changed + before + (insert ? 0 : faults[_i].at), faults[_i].put, (size_t)faults[_i].n);
    free(file);
    pipe_file(io_dir, "a.jpg", changed, n + insert - (size_t)faults[_i].cut);
    pipe_result r = io_go(STRICT("a.jpg"));
    ck_assert(r.errs.failed && strstr(r.errs.e[0].msg, "a.jpg' is "));
    r = io_go("stages:\n  - {use: read, path: a.jpg}\n  - {use: write, path: a.npy}\n");
    ck_assert_msg(r.errs.n && strstr(r.errs.e[0].msg, faults[_i].says), "%s", pipe_said(&r.errs));
    ck_assert_int_eq(r.outcome, faults[_i].rows ? GP_DONE : GP_ERROR);
    if (!faults[_i].rows)
        return;
    ck_assert(r.account[0].out == 1 && r.account[0].faulty == 1);
    OWNED char *made = pipe_read(io_dir, "a.npy", &size);
    OWNED char *as = pipe_read("tests/data/jpeg", format("%s.npy", faults[_i].from), &whole);
    ck_assert_uint_eq(size, whole);
    const int rows = faults[_i].from[0] == 'r' && faults[_i].from[3] == '4' && faults[_i].from[4] == '4' ? 17 : 19;
    ck_assert(!memcmp(made, as, 128 + (size - 128) / (size_t)rows * (size_t)faults[_i].rows));
}

/* What is coded ends too early, but the file does not: something before is damaged. */
TEST(ends_early)
{
    size_t n;
    OWNED char *file = pipe_read("tests/data/jpeg", "rgb420_19x33.jpg", &n);
    memcpy(file + n - 8, "\xff\xd9", 2);
    pipe_file(io_dir, "a.jpg", file, n - 6);
    io_fails(READ("a.jpg"), 1, "a.jpg' is a broken JPEG file: Corrupt JPEG data: premature end of data segment");
}

/* Bytes that are wrong: a picture or an error, and never a crash. */
TEST_EACH(changed, to_break)
{
    size_t n;
    unsigned errors = 0;
    take(format("jpeg/%s.jpg", to_break[_i]), "a.jpg");
    OWNED char *file = pipe_read(io_dir, "a.jpg", &n);
    for (size_t k = 3; k < n; k++) {
        char was = file[k];
        file[k] ^= (char)(1 << k % 8);
        pipe_file(io_dir, "b.jpg", file, n);
        pipe_result r = io_go(READ("'?.jpg'"));
        ck_assert(r.outcome == GP_DONE || r.outcome == GP_ERROR);
        errors += r.outcome == GP_ERROR;
        file[k] = was;
    }
    ck_assert_uint_gt(errors, 20);
}

/* Bytes that are put at `at` of a picture, and what is said. */
static const struct { const char *from; int at; const char *bytes, *text; } patched[] = {
    { "scans", 0, "\xff", "is a JPEG file of more than 500 scans" },
    { "gray_1x7", 0, "\xfe", "is not a JPEG file" },
    { "gray_1x7", 93, "\x0c", "is a JPEG file of 12 bits" },
    { "gray_1x7", 90, "\xc3", "is a lossless or hierarchical JPEG file" },
    { "gray_1x7", 90, "\xc5", "is a lossless or hierarchical JPEG file" },
    { "gray_1x7", 98, "\x02", "is a JPEG file with a broken header" },
    { "gray_1x7", 90, "\xda", "is a JPEG file with a broken header" },
    { "gray_1x7", 94, "\xff\xff\xff\xff", "says that it has 65535 x 65535 pixels, and 'max_pixels' is" },
};

TEST_EACH(not_read, patched)
{
    size_t n;
    take(format("jpeg/%s.jpg", patched[_i].from), "b.jpg");
    OWNED char *file = pipe_read(io_dir, "b.jpg", &n);
    memcpy(file + patched[_i].at, patched[_i].bytes, strlen(patched[_i].bytes));
    pipe_file(io_dir, "b.jpg", file, n);
    take(!strcmp(patched[_i].from, "scans") ? "jpeg/gray_1x1.jpg" : "jpeg/gray_1x7.jpg", "a.jpg");
    io_fails(READ("'?.jpg'"), 1, patched[_i].text);
}

/* What follows the end of a picture is another's, as phones have it; fill bytes mean nothing. */
TEST(behind_the_end)
{
    char here[400], more[3000];
    size_t n;
    ck_assert_ptr_nonnull(getcwd(here, sizeof here));
    OWNED char *file = pipe_read("tests/data/jpeg", "rgb444_17x3.jpg", &n);
    ck_assert_uint_lt(n + 20, sizeof more);
    memcpy(more, "\xff\xd8\xff\xff\xff", 5);
    memcpy(more + 5, file + 3, n - 3);
    memcpy(more + n + 2, "\xff\xd8\xff and more", 12);
    pipe_file(io_dir, "a.jpg", more, n + 14);
    io_runs(format("stages:\n  - {use: read, path: a.jpg}\n"
                 "  - {use: compare, file: '%s/tests/data/jpeg/rgb444_17x3.npy'}\n", here));
}

/* A picture whose header is large is refused by what the frame may have, at once. */
TEST(bomb)
{
    size_t n;
    take("jpeg/rgb420_19x33.jpg", "a.jpg");
    char *file = pipe_read(io_dir, "a.jpg", &n), *sof = file;
    while (sof[0] != '\xff' || sof[1] != '\xc0')
        sof++;
    memset(sof + 5, 0xff, 4);
    pipe_file(io_dir, "b.jpg", file, n);
    free(file);
    io_fails("buffers: {p: {dtype: u8, shape: [\"<=100\", \"<=100\", 3]}}\nstages:\n"
             "  - {use: read, path: '?.jpg', max_pixels: 1e10, out: p}\n" DISCARD, 1,
             "b.jpg' holds u8 [65535, 65535, 3], which does not fit in u8 [<=100, <=100, 3]");
}

/* ---- names and formats ----------------------------------------------- */

/* A name may be wrong: the bytes count, but where `format` is said. */
TEST(other_names)
{
    char here[400];
    ck_assert_ptr_nonnull(getcwd(here, sizeof here));
    take("jpeg/rgb420_19x33.jpg", "a.png");
    take("png/rgb8.png", "b.JPEG");
    take("jpeg/rgb420_19x33.jpg", "c");
    io_runs(format("stages:\n  - {use: read, path: a.png}\n"
                 "  - {use: compare, file: '%s/tests/data/jpeg/rgb420_19x33.npy'}\n", here));
    io_runs(format("stages:\n  - {use: read, path: b.JPEG}\n"
                 "  - {use: compare, file: '%s/tests/data/png/rgb8.npy'}\n", here));
    io_runs(format("stages:\n  - {use: read, path: c, format: jpeg}\n"
                 "  - {use: compare, file: '%s/tests/data/jpeg/rgb420_19x33.npy'}\n", here));
    io_fails("stages:\n  - {use: read, path: a.png, format: png}\n" DISCARD, 3, "a.png' is not a PNG file");
    pipe_text(io_dir, "text.jpg", "this is text");
    io_fails(READ("text.jpg"), 3, "text.jpg' is not a JPEG file");
    pipe_file(io_dir, "empty.jpg", "", 0);
    io_fails(READ("empty.jpg"), 3, "empty.jpg' is empty");
}

/* Formats may be mixed in a list; types have to agree, or to be within bounds. */
TEST(mixed)
{
    take("jpeg/gray_1x7.jpg", "a.jpg");
    take("pnm/gray8_1x7.pgm", "b.pgm");
    take("png/gray8.png", "c.png");
    take("jpeg/progressive_gray.jpg", "d.jpg");
    ck_assert_uint_eq(io_runs(READ("'*.*'")), 4);
    ck_assert_uint_eq(io_runs("buffers: {p: {dtype: u8, shape: [\"<=19\", \"<=33\"]}}\nstages:\n"
                              "  - {use: read, path: '*.*', out: p}\n  - {use: write, path: 'out/%n.pgm'}\n"), 4);
    ck_assert_int_eq(io_files("out"), 4);
    io_runs("buffers: {p: {dtype: u8, shape: [\"<=19\", \"<=33\"]}, q: {like: p}}\nstages:\n"
            "  - {use: read, path: '*.*', out: p}\n  - {name: again, use: read, path: 'out/*', out: q}\n"
            "  - {use: write, path: 'p/%n.raw', in: p}\n  - {name: w, use: write, path: 'q/%n.raw', in: q}\n");
    for (int i = 0; i < 4; i++) {
        size_t n;
        char name[20], *p = pipe_read(io_dir, TEXT(name, "p/%c.raw", 'a' + i), &n);
        io_holds(TEXT(name, "q/%c.raw", 'a' + i), p, n);
        free(p);
    }
    pipe_text(io_dir, "0", "no picture, and no suffix");
    io_fails(READ("'*'"), 3, "0' is of no format that gpipe reads, neither");
    pipe_result r = io_go("buffers: {p: {dtype: u8, shape: [\"<=19\", \"<=33\"]}}\nstages:\n"
                          "  - {use: read, path: '[0-9a-d]*', out: p, on_error: drop}\n" DISCARD);
    ck_assert(r.outcome == GP_DONE && r.account[0].failed == 1 && r.account[0].out == 4);
    pipe_text(io_dir, "z.none", "no picture");
    io_fails("buffers: {p: {dtype: u8, shape: [\"<=19\", \"<=33\"]}}\nstages:\n"
             "  - {use: read, path: '[a-z].*', out: p}\n" DISCARD, 1, "z.none' is not a picture that gpipe reads");
}

TEST_SUITE(jpeg, io_set_up, NULL, 0)
