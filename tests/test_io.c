/* test_io.c - files in and out, through whole pipelines: how files are cut and
 * joined, every kind of PNG, streams, rates, and everything that can go wrong. */
#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "pipe.h"
#include "npy.h"

Suite *suite_io(void);

/* ---- running --------------------------------------------------------- */

static const char *dir;        /* of the test that runs */

static void set_up(void)
{
    dir = pipe_dir();
}

static void tear_down(void)
{
    pipe_dir_remove(dir);
}

static char *path_in(const char *name, char buf[600])
{
    snprintf(buf, 600, "%s/%s", dir, name);
    return buf;
}

static pipe_result go(const char *yaml)
{
    return pipe_run(dir, yaml, "cpu", NULL, (gp_run_options){ .poison = true });
}

static const char *first_error(const pipe_result *r)
{
    return r->errs.n ? r->errs.e[0].msg : "no error";
}

/* Runs `yaml`; it must come to a good end. Returns how many frames did. */
static uint64_t runs(const char *yaml)
{
    pipe_result r = go(yaml);
    ck_assert_msg(r.outcome == GP_DONE && !r.errs.failed, "%s\n%s", first_error(&r), yaml);
    ck_assert_uint_eq(r.account[0].in, r.account[0].out);
    return r.account[0].out;
}

/* Runs `yaml`; it must fail with this exit code and a message that has `text`. */
static void fails(const char *yaml, int code, const char *text)
{
    pipe_result r = go(yaml);
    ck_assert_msg(r.outcome == GP_ERROR, "it did not fail:\n%s", yaml);
    ck_assert_msg(strstr(first_error(&r), text) != NULL, "'%s' is not in '%s'", text, first_error(&r));
    ck_assert_int_eq(gp_errs_exit(&r.errs), code);
}

#define YAML(buf, ...) (snprintf(buf, sizeof buf, __VA_ARGS__), buf)

/* ---- files ----------------------------------------------------------- */

/* A .npy of `type` whose bytes are 0, 1, 2, ... from `first`. */
static void count_npy(const char *name, gp_type type, int first)
{
    char buf[8192];
    size_t head = gp_npy_header(&type, buf, sizeof buf), n = gp_bytes(&type);
    ck_assert_uint_lt(head + n, sizeof buf);
    for (size_t i = 0; i < n; i++)
        buf[head + i] = (char)((size_t)first + i);
    pipe_file(dir, name, buf, head + n);
}

static void count_raw(const char *name, size_t n)
{
    unsigned char buf[8192];
    for (size_t i = 0; i < n; i++)
        buf[i] = (unsigned char)i;
    pipe_file(dir, name, buf, n);
}

#define U8(...) ((gp_type){ GP_U8, sizeof((int64_t[]){ __VA_ARGS__ }) / 8, { __VA_ARGS__ } })

/* The file `name` must hold these bytes and no more. */
static void holds(const char *name, const void *bytes, size_t n)
{
    size_t have = 0;
    char *data = pipe_read(dir, name, &have);
    ck_assert_msg(data != NULL, "no file '%s'", name);
    ck_assert_msg(have == n && !memcmp(data, bytes, n), "'%s' (%zu bytes) is not as expected", name, have);
    free(data);
}

/* The .npy `name` must be of `type` and hold the bytes first, first + 1, ... */
static void counts(const char *name, gp_type type, int first)
{
    size_t n = 0, data;
    gp_type have;
    bool fortran;
    char err[160] = "", a[128], b[128];
    char *file = pipe_read(dir, name, &n);
    ck_assert_msg(file != NULL, "no file '%s'", name);
    ck_assert_msg(gp_npy_parse(file, n, &have, &data, &fortran, err), "%s %s", name, err);
    ck_assert_str_eq(gp_type_text(&have, a), gp_type_text(&type, b));
    ck_assert_uint_eq(n, data + gp_bytes(&type));
    for (size_t i = 0; data + i < n; i++)
        ck_assert_msg((unsigned char)file[data + i] == (unsigned char)((size_t)first + i),
                      "'%s' differs at byte %zu of its data", name, i);
    free(file);
}

static int files_in(const char *sub)
{
    char path[600];
    int n = 0;
    DIR *d = opendir(path_in(sub, path));
    for (struct dirent *e; d && (e = readdir(d));)
        n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
    if (d)
        closedir(d);
    return n;
}

/* ---- cutting --------------------------------------------------------- */

/* One file of `bytes` bytes, read with these options, makes so many frames, and
 * what is joined again is bytes [from, from + n) of it. */
static const struct {
    const char *buffer, *options;
    size_t bytes;
    uint64_t frames;
    size_t from, n;
} raw_cuts[] = {
    { "dtype: u8, shape: [4, 5]", "", 200, 10, 0, 200 },
    { "dtype: u8, shape: [4, 5]", "", 0, 0, 0, 0 },
    { "dtype: u8, shape: [4, 5]", "", 210, 11, 0, 210 },                /* a part of 2 rows */
    { "dtype: u8, shape: [4, 5]", ", tail: ignore", 213, 11, 0, 210 },
    { "dtype: u8, shape: [4, 5]", ", offset: 10", 210, 10, 10, 200 },
    { "dtype: u8, shape: [4, 5]", ", frames: 3", 200, 3, 0, 60 },
    { "dtype: u8, shape: [4, 5]", ", frames: 30", 200, 10, 0, 200 },
    { "dtype: u8, shape: [1000]", "", 200, 1, 0, 200 },                 /* less than a frame */
    { "dtype: f64, shape: [2, 3]", "", 240, 5, 0, 240 },
    { "dtype: u8, shape: [200], depth: 1", ", skip: 1", 201, 1, 1, 200 },
};

START_TEST(cuts_raw)
{
    char y[1000];
    count_raw("in.raw", raw_cuts[_i].bytes);
    uint64_t frames = runs(YAML(y, "buffers: {a: {%s}}\nstages:\n"
                                "  - {use: read, path: in.raw, out: a%s}\n"
                                "  - {use: write, path: out/all.bin}\n",
                                raw_cuts[_i].buffer, raw_cuts[_i].options));
    unsigned char want[300];
    for (size_t i = 0; i < raw_cuts[_i].n; i++)
        want[i] = (unsigned char)(raw_cuts[_i].from + i);
    ck_assert_uint_eq(frames, raw_cuts[_i].frames);
    holds("out/all.bin", want, raw_cuts[_i].n);
    ck_assert_int_eq(files_in("out"), 1);
}
END_TEST

START_TEST(skips_and_swaps)
{
    /* Two bytes before each frame of 2 x 2 u16, big-endian; the last frame has
     * one row. */
    static const unsigned char in[] = { 9, 'h', 'h', 0, 1, 0, 2, 0, 3, 0, 4, 'h', 'h', 1, 5, 1, 6 };
    static const unsigned char out[] = { 1, 0, 2, 0, 3, 0, 4, 0, 5, 1, 6, 1 };
    pipe_file(dir, "in.raw", in, sizeof in);
    ck_assert_uint_eq(runs("buffers: {a: {dtype: u16, shape: [2, 2]}}\nstages:\n"
                           "  - {use: read, path: in.raw, offset: 1, skip: 2, endian: big, out: a}\n"
                           "  - {use: write, path: out.raw}\n"), 2);
    holds("out.raw", out, sizeof out);

    static const unsigned char big[] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    static const struct { const char *dtype; unsigned char out[8]; } swaps[] = {
        { "u8", { 1, 2, 3, 4, 5, 6, 7, 8 } },  { "f16", { 2, 1, 4, 3, 6, 5, 8, 7 } },
        { "f32", { 4, 3, 2, 1, 8, 7, 6, 5 } }, { "f64", { 8, 7, 6, 5, 4, 3, 2, 1 } },
        { "c64", { 4, 3, 2, 1, 8, 7, 6, 5 } },
    };
    char y[500];
    pipe_file(dir, "big.raw", big, 8);
    for (size_t i = 0; i < sizeof swaps / sizeof *swaps; i++) {
        runs(YAML(y, "buffers: {a: {dtype: %s, shape: [1]}}\nstages:\n"
                  "  - {use: read, path: big.raw, endian: big, out: a}\n"
                  "  - {use: write, path: out.raw}\n", swaps[i].dtype));
        holds("out.raw", swaps[i].out, 8);
    }
}
END_TEST

/* A .npy of a type, and a declaration (may be empty): so many frames, and files
 * of one frame and of the last one have these types. */
static const struct {
    gp_type file;
    const char *buffer;
    uint64_t frames;
    gp_type one, last;
} npy_cuts[] = {
    { { GP_U8, 3, { 6, 2, 5 } }, "", 6, { GP_U8, 2, { 2, 5 } }, { GP_U8, 2, { 2, 5 } } },
    { { GP_U8, 3, { 6, 2, 5 } }, "shape: [2, 5]", 6, { GP_U8, 2, { 2, 5 } }, { GP_U8, 2, { 2, 5 } } },
    { { GP_U8, 3, { 6, 2, 5 } }, "shape: [4, 2, 5]", 2, { GP_U8, 3, { 4, 2, 5 } },
      { GP_U8, 3, { 2, 2, 5 } } },
    { { GP_U8, 2, { 7, 5 } }, "", 7, { GP_U8, 1, { 5 } }, { GP_U8, 1, { 5 } } },
    { { GP_U8, 2, { 7, 5 } }, "shape: [3, 5]", 3, { GP_U8, 2, { 3, 5 } }, { GP_U8, 2, { 1, 5 } } },
    { { GP_U8, 2, { 7, 5 } }, "dtype: u8", 7, { GP_U8, 1, { 5 } }, { GP_U8, 1, { 5 } } },
    { { GP_C64, 1, { 10 } }, "shape: [4]", 3, { GP_C64, 1, { 4 } }, { GP_C64, 1, { 2 } } },
    { { GP_F32, 1, { 10 } }, "shape: [10]", 1, { GP_F32, 1, { 10 } }, { GP_F32, 1, { 10 } } },
    { { GP_F32, 1, { 10 } }, "shape: [12]", 1, { GP_F32, 1, { 10 } }, { GP_F32, 1, { 10 } } },
};

START_TEST(cuts_npy)
{
    char y[1000], name[64];
    gp_type all = npy_cuts[_i].file, one = npy_cuts[_i].one, last = npy_cuts[_i].last;
    count_npy("in.npy", all, 0);
    uint64_t n = runs(YAML(y, "buffers: {a: {depth: 2%s%s}}\nstages:\n"
                           "  - {name: src, use: read, path: in.npy, out: a}\n"
                           "  - {use: write, path: out/f%%02d.npy, workers: 2}\n"
                           "  - {name: all, use: write, path: all.npy, in: a}\n",
                           *npy_cuts[_i].buffer ? ", " : "", npy_cuts[_i].buffer));
    ck_assert_uint_eq(n, npy_cuts[_i].frames);
    ck_assert_int_eq(files_in("out"), (int)n);
    for (uint64_t i = 0; i < n; i++)
        counts(YAML(name, "out/f%02d.npy", (int)i), i == n - 1 ? last : one,
               (int)(i * gp_bytes(&one)));
    gp_type joined = one;
    joined.dim[0] = (int64_t)(gp_bytes(&all) / (gp_bytes(&one) / (size_t)one.dim[0]));
    counts("all.npy", joined, 0);
}
END_TEST

START_TEST(stacks)
{
    count_npy("in.npy", U8(6, 2, 5), 0);
    runs("stages:\n  - {use: read, path: in.npy}\n"
         "  - {use: write, path: out.npy, stack: true}\n");
    counts("out.npy", U8(6, 2, 5), 0);
    count_npy("none.npy", U8(0, 2, 5), 0);
    ck_assert_uint_eq(runs("stages:\n  - {use: read, path: none.npy}\n"
                           "  - {use: write, path: none-out.npy, stack: true}\n"), 0);
    counts("none-out.npy", U8(0, 2, 5), 0);
}
END_TEST

/* ---- many files ------------------------------------------------------ */

START_TEST(globs_in_order)
{
    /* Byte order, not the order of numbers; the last file is shorter. */
    mkdir(path_in("in", (char[600]){ 0 }), 0777);
    count_npy("in/B.npy", U8(2, 4), 0);
    count_npy("in/a10.npy", U8(2, 4), 8);
    count_npy("in/a9.npy", U8(1, 4), 16);
    ck_assert_uint_eq(runs("buffers: {x: {shape: [2, 4]}}\nstages:\n"
                           "  - {use: read, path: 'in/*.npy', out: x}\n"
                           "  - {use: write, path: all.npy}\n"
                           "  - {name: single, use: write, path: out/%n.npy, in: x, workers: 2}\n"), 3);
    counts("all.npy", U8(5, 4), 0);
    counts("out/B.npy", U8(2, 4), 0);
    counts("out/a10.npy", U8(2, 4), 8);
    counts("out/a9.npy", U8(1, 4), 16);
    ck_assert_int_eq(files_in("out"), 3);

    /* Frames never span files: [3, 4] frames of files of 2, 2, 1 rows. */
    ck_assert_uint_eq(runs("buffers: {x: {shape: [3, 4]}}\nstages:\n"
                           "  - {use: read, path: 'in/*.npy', out: x}\n"
                           "  - {use: write, path: all3.npy}\n"), 3);
    counts("all3.npy", U8(5, 4), 0);
    /* Twice over, and a part. */
    ck_assert_uint_eq(runs("buffers: {x: {shape: [2, 4]}}\nstages:\n"
                           "  - {use: read, path: 'in/*.npy', loop: true, frames: 7, out: x}\n"
                           "  - {use: write, path: out7/%05d.npy}\n"), 7);
    counts("out7/00006.npy", U8(2, 4), 0);
    counts("out7/00005.npy", U8(1, 4), 16);
}
END_TEST

START_TEST(numbered)
{
    char y[100];
    for (int i = 0; i < 12; i++)
        count_npy(YAML(y, "x%02d.npy", i + 3), U8(2, 2), 4 * i);
    count_npy("xx.npy", U8(1), 0);
    count_npy("x100.npy", U8(1), 0);      /* not in the run of numbers */
    ck_assert_uint_eq(runs("stages:\n  - {use: read, path: x%02d.npy}\n"
                           "  - {use: write, path: all.npy}\n"), 12);
    counts("all.npy", U8(24, 2), 0);
    ck_assert_uint_eq(runs("stages:\n  - {use: read, path: x%02d.npy}\n"
                           "  - {use: write, path: 'out/%n/%d.raw'}\n"), 12);
    holds("out/x14/11.raw", "\x2c\x2d\x2e\x2f", 4);
}
END_TEST

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
START_TEST(picture)
{
    char y[2000], here[400];
    ck_assert_ptr_nonnull(getcwd(here, sizeof here));
    const char *p = pictures[_i];
    runs(YAML(y, "stages:\n"
              "  - {use: read, path: '%s/tests/data/png/%s.png', out: p}\n"
              "  - {use: compare, file: '%s/tests/data/png/%s.npy', in: p}\n"
              "  - {name: w0, use: write, path: out/0.png, compression: 0, in: p}\n"
              "  - {name: w9, use: write, path: out/%%n.png, compression: 9, in: p}\n"
              "  - {name: w3, use: write, path: out/%%d-3.png, in: p}\n", here, p, here, p));
    runs(YAML(y, "stages:\n"
              "  - {use: read, path: out/*.png, out: p}\n"
              "  - {use: write, path: out/all.npy, in: p}\n"));
    runs(YAML(y, "stages:\n"
              "  - {use: read, path: out/0.png, out: p}\n"
              "  - {use: compare, file: '%s/tests/data/png/%s.npy', in: p}\n"
              "  - {name: r9, use: read, path: out/%s.png, out: q}\n"
              "  - {name: c9, use: compare, in: [p, q]}\n"
              "  - {name: r3, use: read, path: out/0-3.png, out: r}\n"
              "  - {name: c3, use: compare, in: {in: p, with: r}}\n", here, p, p));
}
END_TEST

START_TEST(pictures_cut_off)
{
    char y[1000];
    size_t n;
    char *png = pipe_read("tests/data/png", "rgb8_adam7.png", &n);
    ck_assert_ptr_nonnull(png);
    pipe_file(dir, "a.png", png, n);
    for (size_t k = 0; k < n; k += k < 40 || k > n - 20 ? 1 : 7) {
        pipe_file(dir, "b.png", png, k);
        fails("stages:\n  - {use: read, path: '?.png'}\n  - {use: discard}\n", 1,
              k < 8 ? "b.png' is no PNG" : "frame 1: '");
    }
    for (size_t k = 33; k < n; k++) {      /* one bit flipped: never a crash */
        png[k] ^= 4;
        pipe_file(dir, "b.png", png, n);
        pipe_result r = go("stages:\n  - {use: read, path: '?.png'}\n  - {use: discard}\n");
        ck_assert(r.outcome == GP_DONE || r.outcome == GP_ERROR);
        png[k] ^= 4;
    }
    pipe_file(dir, "b.png", png, n / 2);
    fails("stages:\n  - {use: read, path: '?.png'}\n  - {use: discard}\n", 1, "is cut off");
    free(png);
    /* The bad one is a hole when the run may go on. */
    pipe_result r = go(YAML(y, "on_error: drop\nstages:\n  - {use: read, path: '?.png'}\n"
                            "  - {use: write, path: 'out/%%d.png'}\n"));
    ck_assert_int_eq(r.outcome, GP_DONE);
    ck_assert_uint_eq(r.account[0].failed, 1);
    ck_assert_uint_eq(r.account[0].out, 1);
    ck_assert_int_eq(files_in("out"), 1);
}
END_TEST

/* ---- what is refused before it runs ---------------------------------- */

static const struct { const char *yaml, *text; } refused[] = {
    { "stages:\n  - {use: read, path: nothing.npy}\n", "cannot read '" },
    { "stages:\n  - {use: read, path: 'nothing*.npy'}\n", "no file matches '" },
    { "stages:\n  - {use: read, path: 'no%03d.npy'}\n", "no file matches '" },
    { "stages:\n  - {use: read, path: '*_%03d.npy'}\n", "mean themselves" },
    { "stages:\n  - {use: read, path: .}\n", "is a folder" },
    { "stages:\n  - {use: read, path: a.raw}\n", "declare dtype and shape" },
    { "buffers: {x: {dtype: u8}}\nstages:\n  - {use: read, path: a.raw, out: x}\n",
      "declare dtype and shape" },
    { "stages:\n  - {use: read, path: stdin}\n", "declare dtype and shape" },
    { "stages:\n  - {use: read, path: stdin, format: npy}\n", "only raw data can be read" },
    { "buffers: {x: {dtype: u8, shape: [4]}}\nstages:\n"
      "  - {use: read, path: stdin, loop: true, out: x}\n", "cannot be read twice" },
    { "stages:\n  - {use: read, path: one.npy}\n", "how many elements make a frame" },
    { "stages:\n  - {use: read, path: two.npy, skip: 3}\n", "'skip' is only for raw" },
    { "stages:\n  - {use: read, path: two.npy, endian: big}\n", "'endian' is only for raw" },
    { "stages:\n  - {use: read, path: a.png, tail: ignore}\n", "'tail' is only for raw and .npy" },
    { "stages:\n  - {use: read, path: fortran.npy}\n", "column-major" },
    { "stages:\n  - {use: read, path: big.npy}\n", "big-endian" },
    { "stages:\n  - {use: read, path: short.npy}\n", "its header says 40 bytes of data, 39 are there" },
    { "stages:\n  - {use: read, path: long.npy}\n", "has 1 bytes after the array" },
    { "stages:\n  - {use: read, path: text.npy}\n", "is no .npy file" },
    { "stages:\n  - {use: read, path: text.png}\n", "is no PNG file" },
    { "stages:\n  - {use: read, path: flat.npy}\n", "no elements" },
    { "buffers: {x: {dtype: f32}}\nstages:\n  - {use: read, path: two.npy, out: x}\n", "not f32" },
    { "buffers: {x: {shape: [3]}}\nstages:\n  - {use: read, path: two.npy, out: x}\n", "cannot be cut" },
    { "buffers: {x: {dtype: u16}}\nstages:\n  - {use: read, path: a.png, out: x}\n", "not what is declared" },
    { "buffers: {x: {dtype: u8, shape: [2, 3]}}\nstages:\n  - {use: read, path: a.raw, out: x}\n",
      "has 1 bytes after its last whole row of 3 bytes: 'tail: ignore'" },
    { "buffers: {x: {dtype: u8, shape: [2, 3]}}\nstages:\n"
      "  - {use: read, path: a.raw, offset: 11, out: x}\n", "fewer than the offset of 11" },
    { "stages:\n  - {use: generate}\n", "declare dtype and shape" },
    { "buffers: {x: {dtype: f32, shape: [2, 3]}}\nstages:\n  - {use: generate, frames: 1, out: x}\n"
      "  - {use: write, path: x.png}\n", "cannot hold f32 [2, 3]: PNG holds u8 or u16: put a 'cast'" },
    { "buffers: {x: {dtype: u8, shape: [2, 3, 5]}}\nstages:\n  - {use: generate, frames: 1, out: x}\n"
      "  - {use: write, path: x.png}\n", "PNG holds frames of shape" },
    { "stages:\n  - {use: read, path: two.npy}\n  - {use: write, path: stdout, format: npy}\n",
      "only raw data can be written to stdout" },
    { "stages:\n  - {use: read, path: two.npy}\n  - {use: write, path: a.raw, stack: true}\n", "'stack'" },
    { "stages:\n  - {use: read, path: two.npy}\n  - {use: write, path: '%d.npy', stack: true}\n",
      "'stack'" },
    { "stages:\n  - {use: read, path: two.npy}\n  - {use: compare}\n", "one thing to compare with" },
    { "stages:\n  - {use: read, path: two.npy}\n  - {use: compare, file: no.npy}\n", "cannot read" },
    { "stages:\n  - {use: read, path: two.npy}\n  - {use: compare, file: a.png}\n", "neither a .npy" },
    { "stages:\n  - {use: read, path: two.npy}\n  - {use: compare, file: flat.npy}\n", "cannot be cut" },
};

START_TEST(refuses)
{
    size_t n, png_n;
    count_raw("a.raw", 10);
    count_npy("one.npy", U8(40), 0);
    count_npy("two.npy", U8(4, 10), 0);
    count_npy("flat.npy", U8(4, 0), 0);
    char *two = pipe_read(dir, "two.npy", &n), *at;
    pipe_file(dir, "short.npy", two, n - 1);
    two = realloc(two, n + 1);
    two[n] = 0;
    pipe_file(dir, "long.npy", two, n + 1);
    memcpy(strstr(two + 10, "False,"), "True, ", 6);
    pipe_file(dir, "fortran.npy", two, n);
    at = strstr(two + 10, "|u1");
    memcpy(at, ">u2", 3);
    pipe_file(dir, "big.npy", two, n);
    free(two);
    char *png = pipe_read("tests/data/png", "gray8.png", &png_n);
    pipe_file(dir, "a.png", png, png_n);
    free(png);
    pipe_text(dir, "text.npy", "this is text");
    pipe_text(dir, "text.png", "this is text");
    char y[600];
    bool sink = strstr(refused[_i].yaml, "use: write") || strstr(refused[_i].yaml, "use: compare");
    fails(YAML(y, "%s%s", refused[_i].yaml, sink ? "" : "  - {use: discard}\n"), 3, refused[_i].text);
}
END_TEST

/* ---- what goes wrong while it runs ----------------------------------- */

static const struct { const char *yaml, *text; int code; } broken[] = {
    /* An odd one among many files. */
    { "stages:\n  - {use: read, path: 'rows*.npy'}\n  - {use: discard}\n",
      "rows2.npy' has 3 rows, the first file 2", 1 },
    { "stages:\n  - {use: read, path: 'cols*.npy'}\n  - {use: discard}\n",
      "frame 1: '", 1 },
    { "stages:\n  - {use: read, path: 'type*.npy'}\n  - {use: discard}\n",
      "type2.npy' holds f32, not u8", 1 },
    { "stages:\n  - {use: read, path: 'pic*.png'}\n  - {use: discard}\n",
      "pic2.png' holds u16 [5, 7], the first file u8 [5, 7]", 1 },
    { "buffers: {x: {dtype: u8, shape: [4]}}\nstages:\n"
      "  - {use: read, path: 'none*.raw', loop: true, frames: 3, out: x}\n  - {use: discard}\n",
      "no frames that could be repeated", 1 },
    /* Two frames with one name. */
    { "stages:\n  - {use: read, path: two.npy}\n  - {use: write, path: out/%n.npy}\n",
      "is the name of both frame 0 and frame 1: put %05d into the path", 1 },
    { "stages:\n  - {use: read, path: 'rgb*.npy'}\n  - {use: write, path: out/x.png, workers: 1}\n",
      "is the name of both frame 0 and frame 1", 1 },
    { "buffers: {x: {dtype: u8, shape: [4]}}\nstages:\n  - {use: generate, frames: 2, out: x}\n"
      "  - {use: write, path: 'out/%n.npy'}\n", "gives no names: use %05d", 1 },
    /* No place to write. */
    { "stages:\n  - {use: read, path: two.npy}\n  - {use: write, path: two.npy/out.npy}\n",
      "Not a directory", 1 },
    { "stages:\n  - {use: read, path: two.npy}\n  - {use: write, path: two.npy/%d.npy}\n",
      "frame 0: '", 1 },
    { "stages:\n  - {use: read, path: two.npy}\n  - {use: write, path: /proc/gpipe/out.raw}\n",
      "cannot be written", 1 },
    { "stages:\n  - {use: read, path: two.npy}\n  - {use: write, path: /dev/full}\n",
      "'/dev/full' cannot be written: No space left on device", 1 },
    { "stages:\n  - {use: read, path: two.npy}\n  - {use: write, path: /dev/full, format: npy}\n",
      "no regular file", 1 },
    { "stages:\n  - {use: read, path: two.npy}\n  - {use: write, path: .}\n", "it is a folder", 1 },
    { "buffers: {x: {shape: [3, 10]}}\nstages:\n  - {use: read, path: two.npy, out: x}\n"
      "  - {use: write, path: out.npy, stack: true}\n", "frame 1: '", 1 },
    /* Comparing. */
    { "stages:\n  - {use: read, path: two.npy}\n  - {use: compare, file: less.npy}\n",
      "frame 3 ends at row 40, but '", 6 },
    { "stages:\n  - {use: read, path: two.npy}\n  - {use: compare, file: more.npy}\n",
      "together have 40 rows, but '", 6 },
    { "stages:\n  - {use: read, path: two.npy}\n  - {use: compare, file: other.npy}\n",
      "frame 2 at [3] is 23 where 99 is expected; 2 of its 10 elements differ", 6 },
    { "stages:\n  - {use: read, path: two.npy, out: a}\n"
      "  - {name: b, use: read, path: other.npy, out: b}\n"
      "  - {use: compare, in: [a, b], abs: 75}\n", "frame 2 at [3] is 23 where 99", 6 },
};

START_TEST(breaks)
{
    size_t n;
    char name[32];
    count_npy("rows1.npy", U8(2, 3), 0), count_npy("rows2.npy", U8(3, 3), 0);
    count_npy("cols1.npy", U8(2, 3), 0), count_npy("cols2.npy", U8(2, 4), 0);
    count_npy("type1.npy", U8(2, 3), 0);
    count_npy("type2.npy", (gp_type){ GP_F32, 2, { 2, 3 } }, 0);
    count_npy("rgb1.npy", U8(2, 3, 3), 0), count_npy("rgb2.npy", U8(2, 3, 3), 0);
    count_npy("two.npy", U8(4, 10), 0);
    count_npy("less.npy", U8(3, 10), 0), count_npy("more.npy", U8(5, 10), 0);
    pipe_file(dir, "none1.raw", "", 0), pipe_file(dir, "none2.raw", "", 0);
    for (int i = 1; i <= 2; i++) {
        char *png = pipe_read("tests/data/png", i == 1 ? "gray8.png" : "gray16.png", &n);
        pipe_file(dir, YAML(name, "pic%d.png", i), png, n);
        free(png);
    }
    char *other = pipe_read(dir, "two.npy", &n);
    other[n - 40 + 23] = 99, other[n - 40 + 25] = 99;
    pipe_file(dir, "other.npy", other, n);
    free(other);
    fails(broken[_i].yaml, broken[_i].code, broken[_i].text);
    /* Nothing half-written, under no name. */
    bool folder = !access(path_in("out", (char[600]){ 0 }), F_OK);
    ck_assert_int_le(files_in("out"), 1);
    ck_assert_int_eq(files_in("."), 16 + folder);
}
END_TEST

START_TEST(tolerances)
{
    static const struct { const char *options; bool same; } cases[] = {
        { "", false }, { ", abs: 0.0625", true }, { ", abs: 0.06", false },
        { ", rel: 0.0625", true }, { ", rel: 0.06", false }, { ", abs: 0.03125, rel: 0.03125", true },
        { ", abs: 0.0625, nan: differ", false },
    };
    float a[4] = { 1.0625f, NAN, INFINITY, -0.0f }, b[4] = { 1, -NAN, INFINITY, 0 };
    pipe_file(dir, "a.raw", a, sizeof a);
    pipe_file(dir, "b.raw", b, sizeof b);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char y[500];
        YAML(y, "buffers: {x: {dtype: f32, shape: [4]}}\nstages:\n"
             "  - {use: read, path: a.raw, out: x}\n  - {use: compare, file: b.raw%s}\n",
             cases[i].options);
        if (cases[i].same)
            runs(y);
        else
            fails(y, 6, "is expected; ");
    }
    /* 64-bit integers, further apart than a double can tell. */
    int64_t p = INT64_MAX, q = INT64_MAX - 1;
    pipe_file(dir, "p.raw", &p, 8);
    pipe_file(dir, "q.raw", &q, 8);
    fails("buffers: {x: {dtype: i64, shape: [1]}}\nstages:\n  - {use: read, path: p.raw, out: x}\n"
          "  - {use: compare, file: q.raw}\n", 6, "is 9223372036854775807 where 9223372036854775806");
}
END_TEST

/* ---- whole or nothing ------------------------------------------------ */

static void cut_in_half(gp_pipeline *p, void *arg)
{
    (void)p;
    nanosleep(&(struct timespec){ .tv_nsec = 150 * 1000000 }, NULL);
    ck_assert_int_eq(truncate(arg, 128 + 100), 0);
}

START_TEST(shrinks)
{
    char path[600];
    count_npy("in.npy", U8(200, 1), 0);
    pipe_text(dir, "out.npy", "from an earlier run");
    pipe_result r = pipe_run_with(dir, "stages:\n  - {use: read, path: in.npy, rate: 200}\n"
                                  "  - {use: write, path: out.npy}\n", "cpu", NULL,
                                  (gp_run_options){ 0 }, cut_in_half, path_in("in.npy", path));
    ck_assert_int_eq(r.outcome, GP_ERROR);
    ck_assert_msg(strstr(first_error(&r), "frame 100: '") && strstr(first_error(&r),
                  "became shorter: 1 bytes expected at offset 228, 0 found"), "%s", first_error(&r));
    holds("out.npy", "from an earlier run", 19);
    ck_assert_int_eq(files_in("."), 2);
}
END_TEST

START_TEST(replaces)
{
    count_npy("in.npy", U8(4, 10), 0);
    pipe_text(dir, "out.npy", "from an earlier run");
    for (int i = 0; i < 2; i++)
        runs("stages:\n  - {use: read, path: in.npy, out: a}\n  - {use: write, path: out.npy, in: a}\n"
             "  - {name: each, use: write, path: new/folder/%d.raw, in: a}\n");
    counts("out.npy", U8(40), 0);
    holds("new/folder/3.raw", "\x1e\x1f !\"#$%&'", 10);
    ck_assert_int_eq(files_in("new/folder"), 4);
    ck_assert_int_eq(files_in("."), 3);
}
END_TEST

static void cancel_soon(gp_pipeline *p, void *arg)
{
    nanosleep(&(struct timespec){ .tv_nsec = 100 * 1000000 }, NULL);
    gp_cancel(p, *(int *)arg);
}

/* Drained: the file is whole, and there. Cancelled: it is not there. */
START_TEST(cancelled)
{
    for (int level = 1; level <= 2; level++) {
        pipe_result r = pipe_run_with(dir, "buffers: {a: {dtype: u8, shape: [7]}}\nstages:\n"
                                      "  - {use: generate, rate: 300, out: a}\n"
                                      "  - {use: write, path: out.raw}\n", "cpu", NULL,
                                      (gp_run_options){ 0 }, cancel_soon, &level);
        size_t n = 0;
        char *data = pipe_read(dir, "out.raw", &n);
        ck_assert_int_eq(r.outcome, level == 1 ? GP_DRAINED : GP_NOT_DRAINED);
        ck_assert_int_eq(data != NULL, level == 1);
        ck_assert_int_eq(files_in("."), level == 1);
        if (data) {
            ck_assert_uint_eq(n, 7 * r.account[0].out);
            ck_assert_uint_gt(n, 7);
            free(data);
            ck_assert_int_eq(unlink(path_in("out.raw", (char[600]){ 0 })), 0);
        }
    }
}
END_TEST

/* ---- streams --------------------------------------------------------- */

typedef struct feed { char path[600]; const char *data; size_t n, piece; int pause_ms; } feed;

static void *feeding(void *arg)
{
    const feed *f = arg;
    int fd = open(f->path, O_WRONLY);
    for (size_t i = 0; i < f->n; i += f->piece) {
        size_t k = f->n - i < f->piece ? f->n - i : f->piece;
        ck_assert_int_eq(write(fd, f->data + i, k), (ssize_t)k);
        nanosleep(&(struct timespec){ .tv_nsec = f->pause_ms * 1000000L }, NULL);
    }
    close(fd);
    return NULL;
}

static const struct { size_t n, piece; const char *options, *text; size_t from, kept; } streams[] = {
    { 1200, 1200, "", NULL, 0, 1200 },
    { 1200, 7, "", NULL, 0, 1200 },
    { 1206, 50, "", NULL, 0, 1206 },
    { 1207, 50, "", "ends within a frame, 1 bytes after", 0, 0 },
    { 1207, 50, ", tail: ignore", NULL, 0, 1206 },
    { 1210, 50, ", offset: 10", NULL, 10, 1200 },
    { 31, 31, ", skip: 1", NULL, 1, 30 },
    { 32, 31, ", skip: 1", "ends within a frame, 1 bytes", 0, 0 },
    { 33, 31, ", skip: 2", "ends within a frame, 1 bytes", 0, 0 },
    { 0, 1, "", NULL, 0, 0 },
};

/* Through a FIFO, slowly; frames of 5 x 6 bytes. */
START_TEST(streams_from_fifo)
{
    char data[2000], y[600];
    pthread_t t;
    feed f = { .data = data, .n = streams[_i].n, .piece = streams[_i].piece, .pause_ms = 1 };
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (char)(i * 7);
    ck_assert_int_eq(mkfifo(path_in("pipe", f.path), 0600), 0);
    pthread_create(&t, NULL, feeding, &f);
    YAML(y, "buffers: {a: {dtype: u8, shape: [5, 6]}}\nstages:\n"
         "  - {use: read, path: pipe, out: a%s}\n  - {use: write, path: out.raw}\n",
         streams[_i].options);
    if (streams[_i].text)
        fails(y, 1, streams[_i].text);
    else
        runs(y);
    pthread_join(t, NULL);
    if (!streams[_i].text)
        holds("out.raw", data + streams[_i].from, streams[_i].kept);
}
END_TEST

/* Nobody ever opens the other end: a drain ends the run at once. */
START_TEST(fifo_without_writer)
{
    char path[600];
    int level = 1;
    ck_assert_int_eq(mkfifo(path_in("pipe", path), 0600), 0);
    pipe_result r = pipe_run_with(dir, "buffers: {a: {dtype: u8, shape: [5, 6]}}\nstages:\n"
                                  "  - {use: read, path: pipe, out: a}\n  - {use: discard}\n",
                                  "cpu", NULL, (gp_run_options){ 0 }, cancel_soon, &level);
    ck_assert_int_eq(r.outcome, GP_DRAINED);
    ck_assert_uint_eq(r.account[0].in, 0);
}
END_TEST

/* Nobody reads the other end: an error, not a wait. */
START_TEST(fifo_without_reader)
{
    char path[600];
    ck_assert_int_eq(mkfifo(path_in("pipe", path), 0600), 0);
    fails("buffers: {a: {dtype: u8, shape: [5, 6]}}\nstages:\n"
          "  - {use: generate, frames: 1, out: a}\n  - {use: write, path: pipe}\n", 1,
          "nobody reads it");
}
END_TEST

/* As it arrives: a frame is out before the next one comes. */
START_TEST(stdin_to_stdout)
{
    int in[2], out[2], in_was = dup(0), out_was = dup(1);
    char got[6], y[400];
    fflush(stdout);
    ck_assert(!pipe(in) && !pipe(out));
    dup2(in[0], 0), dup2(out[1], 1);
    ck_assert_int_eq(write(in[1], "abcdef", 6), 6);
    close(in[1]);
    uint64_t n = runs(YAML(y, "buffers: {a: {dtype: u8, shape: [4]}}\nstages:\n"
                           "  - {use: read, path: stdin, out: a}\n  - {use: write, path: stdout}\n"));
    dup2(in_was, 0), dup2(out_was, 1);
    ck_assert_int_eq(read(out[0], got, 6), 6);
    ck_assert_mem_eq(got, "abcdef", 6);
    ck_assert_uint_eq(n, 2);
    close(in[0]), close(out[0]), close(out[1]), close(in_was), close(out_was);
}
END_TEST

/* ---- generate -------------------------------------------------------- */

/* What is generated does not depend on depth or on how it is written. */
START_TEST(generates_the_same)
{
    static const char *const patterns[] = { "ramp", "sine", "noise", "constant" };
    static const char *const types[] = { "u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f16",
                                         "f32", "f64", "c64" };
    char y[1000];
    for (size_t p = 0; p < 4; p++)
        for (size_t t = 0; t < 12; t++) {
            const char *options = "value: 3, amplitude: 50, period: 10, frames: 20, seed: 7";
            runs(YAML(y, "buffers: {a: {dtype: %s, shape: [3, 5], depth: 1}}\nstages:\n"
                      "  - {use: generate, pattern: %s, %s, out: a}\n"
                      "  - {use: write, path: a.npy}\n", types[t], patterns[p], options));
            ck_assert_uint_eq(
                runs(YAML(y, "buffers: {a: {dtype: %s, shape: [3, 5], depth: 7}}\nstages:\n"
                          "  - {use: generate, pattern: %s, %s, out: a}\n"
                          "  - {use: compare, file: a.npy}\n", types[t], patterns[p], options)), 20);
        }
}
END_TEST

static const struct { const char *dtype, *options; double v[6]; } generated[] = {
    { "u8", "frames: 3", { 0, 1, 2, 3, 4, 5 } },
    { "i16", "frames: 3", { 0, 1, 2, 3, 4, 5 } },
    { "f32", "frames: 3", { 0, 1, 2, 3, 4, 5 } },
    { "f16", "frames: 3", { 0, 1, 2, 3, 4, 5 } },
    { "u8", "frames: 3, pattern: constant, value: 300", { 255, 255, 255, 255, 255, 255 } },
    { "i8", "frames: 3, pattern: constant, value: -2.5", { -2, -2, -2, -2, -2, -2 } },
    { "u64", "frames: 3, pattern: constant, value: -1", { 0, 0, 0, 0, 0, 0 } },
    { "i32", "frames: 3, pattern: sine, amplitude: 100, period: 4", { 0, 100, 0, -100, 0, 100 } },
    { "u8", "frames: 3, pattern: sine, amplitude: 200, period: 4, value: 100",
      { 100, 255, 100, 0, 100, 255 } },
    { "f64", "frames: 3, pattern: constant, value: 0.1", { .1, .1, .1, .1, .1, .1 } },
    { "u16", "frames: 3, fill: once", { 0, 1, 0, 1, 0, 1 } },
};

START_TEST(generates)
{
    char y[1000];
    size_t n = 0;
    gp_dtype t = gp_dtype_parse(generated[_i].dtype);
    runs(YAML(y, "buffers: {a: {dtype: %s, shape: [2], depth: 2}}\nstages:\n"
              "  - {use: generate, %s, out: a}\n  - {use: write, path: out.raw}\n",
              generated[_i].dtype, generated[_i].options));
    char *data = pipe_read(dir, "out.raw", &n);
    ck_assert_uint_eq(n, 6 * gp_dtype_size(t));
    for (int i = 0; i < 6; i++) {
        double v = 0;
        switch (t) {
#define X(NAME, name, ctype, bytes) case GP_##NAME: v = AS_##NAME(((ctype *)data)[i]); break;
#define AS_U8
#define AS_I8
#define AS_U16
#define AS_I16
#define AS_U32
#define AS_I32
#define AS_U64 (double)
#define AS_I64 (double)
#define AS_F16(h) ((h) ? ldexp(1024 + ((h) & 1023), ((h) >> 10) - 25) : 0)
#define AS_F32
#define AS_F64
#define AS_C64(c) (c).re
        GP_DTYPES(X)
        case GP_NO_DTYPE: case GP_NDTYPES: break;
        }
        ck_assert_msg(v == generated[_i].v[i], "element %d is %g, not %g", i, v, generated[_i].v[i]);
    }
    free(data);
}
END_TEST

/* Noise: every bit of an integer is set about half of the time, a float fills its
 * range, another seed is another noise. */
START_TEST(noise_is_even)
{
    char y[600];
    size_t n = 0;
    int ones[16] = { 0 };
    for (int seed = 0; seed < 2; seed++)
        runs(YAML(y, "buffers: {a: {dtype: u16, shape: [1000]}}\nstages:\n"
                  "  - {use: generate, pattern: noise, frames: 10, seed: %d, out: a}\n"
                  "  - {use: write, path: n%d.raw}\n", seed, seed));
    char *a = pipe_read(dir, "n0.raw", &n), *b = pipe_read(dir, "n1.raw", &n);
    ck_assert_int_ne(memcmp(a, b, n), 0);
    for (size_t i = 0; i < n / 2; i++)
        for (int bit = 0; bit < 16; bit++)
            ones[bit] += ((uint16_t *)a)[i] >> bit & 1;
    for (int bit = 0; bit < 16; bit++)
        ck_assert_msg(ones[bit] > 4700 && ones[bit] < 5300, "bit %d: %d", bit, ones[bit]);
    free(a), free(b);
    runs("buffers: {a: {dtype: f32, shape: [10000]}}\nstages:\n"
         "  - {use: generate, pattern: noise, frames: 1, amplitude: 2, value: 5, out: a}\n"
         "  - {use: write, path: f.raw}\n");
    float *f = (float *)pipe_read(dir, "f.raw", &n), lo = f[0], hi = f[0];
    for (int i = 0; i < 10000; i++)
        lo = f[i] < lo ? f[i] : lo, hi = f[i] > hi ? f[i] : hi;
    ck_assert(lo >= 3 && lo < 3.01 && hi <= 7 && hi > 6.99);
    free(f);
}
END_TEST

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* 50 frames at 200 Hz: the last is due after 245 ms, never earlier. */
START_TEST(keeps_the_rate)
{
    static const char *const sources[] = { "generate, frames: 50", "read, path: in.raw, frames: 50",
                                           "read, path: in.raw, loop: true, frames: 50" };
    char y[600];
    count_raw("in.raw", 100);
    for (int i = 0; i < 3; i++) {
        double start = seconds();
        ck_assert_uint_eq(runs(YAML(y, "buffers: {a: {dtype: u8, shape: [2], depth: 8}}\nstages:\n"
                                    "  - {use: %s, rate: 200, out: a}\n  - {use: discard}\n",
                                    sources[i])), 50);
        double took = seconds() - start;
        ck_assert_msg(took > 0.245 && took < 2, "it took %g s", took);
    }
}
END_TEST

Suite *suite_io(void)
{
    Suite *s = suite_create("io");
    TCase *tc = tcase_create("files");
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, set_up, tear_down);
#define LOOP(test, table) tcase_add_loop_test(tc, test, 0, sizeof table / sizeof *table)
    LOOP(cuts_raw, raw_cuts);
    LOOP(cuts_npy, npy_cuts);
    LOOP(picture, pictures);
    LOOP(refuses, refused);
    LOOP(breaks, broken);
    LOOP(streams_from_fifo, streams);
    LOOP(generates, generated);
    tcase_add_test(tc, skips_and_swaps);
    tcase_add_test(tc, stacks);
    tcase_add_test(tc, globs_in_order);
    tcase_add_test(tc, numbered);
    tcase_add_test(tc, pictures_cut_off);
    tcase_add_test(tc, tolerances);
    tcase_add_test(tc, shrinks);
    tcase_add_test(tc, replaces);
    tcase_add_test(tc, cancelled);
    tcase_add_test(tc, fifo_without_writer);
    tcase_add_test(tc, fifo_without_reader);
    tcase_add_test(tc, stdin_to_stdout);
    tcase_add_test(tc, generates_the_same);
    tcase_add_test(tc, noise_is_even);
    tcase_add_test(tc, keeps_the_rate);
    suite_add_tcase(s, tc);
    return s;
}
