/* test_io.c - files in and out, through whole pipelines: how files are cut and
 * joined, lists of files, and that a name never stands for half a file. */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "../stages/format/cut.h"
#include "iotest.h"
#include "suite.h"

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
    { "dtype: u8, shape: [4, 5]", ", tail: drop", 213, 10, 0, 200 },
    { "dtype: u8, shape: [4, 5]", ", tail: drop", 19, 0, 0, 0 },
    { "dtype: u8, shape: [200]", ", tail: drop, skip: 1", 300, 1, 1, 200 },
    { "dtype: u8, shape: [4, 5]", ", offset: 10", 210, 10, 10, 200 },
    { "dtype: u8, shape: [4, 5]", ", frames: 3", 200, 3, 0, 60 },
    { "dtype: u8, shape: [4, 5]", ", frames: 30", 200, 10, 0, 200 },
    { "dtype: u8, shape: [1000]", "", 200, 1, 0, 200 },                 /* less than a frame */
    { "dtype: f64, shape: [2, 3]", "", 240, 5, 0, 240 },
    { "dtype: u8, shape: [200], depth: 1", ", skip: 1", 201, 1, 1, 200 },
};

TEST_EACH(cuts_raw, raw_cuts)
{
    io_count_raw("in.raw", raw_cuts[_i].bytes);
    uint64_t frames = io_runs(format("buffers: {a: {%s}}\nstages:\n"
                                "  - {use: read, path: in.raw, out: a%s}\n"
                                "  - {use: write, path: out/all.bin}\n",
                                raw_cuts[_i].buffer, raw_cuts[_i].options));
    unsigned char want[300];
    for (size_t i = 0; i < raw_cuts[_i].n; i++)
        want[i] = (unsigned char)(raw_cuts[_i].from + i);
    ck_assert_uint_eq(frames, raw_cuts[_i].frames);
    io_holds("out/all.bin", want, raw_cuts[_i].n);
    ck_assert_int_eq(io_files("out"), 1);
}

/* Files of /proc say that they have no bytes, as some of other file systems do; those of /sys more than they have. */
static const char *const of_the_kernel[] = { "/proc/version", "/sys/devices/system/cpu/possible" };

TEST_EACH(says_another_size, of_the_kernel)
{
    char text[4096];
    size_t n;
    FILE *f = fopen(of_the_kernel[_i], "r");
    if (!f && _i) {
        printf("SKIPPED: there is no %s\n", of_the_kernel[_i]);
        return;
    }
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_gt(n = fread(text, 1, sizeof text, f), 0);
    fclose(f);
    ck_assert_uint_eq(io_runs(format("buffers: {a: {dtype: u8, shape: [1]}}\nstages:\n"
                                     "  - {use: read, path: %s, format: raw, out: a}\n"
                                     "  - {use: write, path: b.raw}\n", of_the_kernel[_i])), n);
    OWNED char *have = pipe_read_all(io_dir, "b.raw", n);
    ck_assert(!memcmp(have, text, n));
    pipe_file(io_dir, "0.raw", "abc", 3);
    ck_assert_int_eq(symlink(of_the_kernel[_i], io_at("1.raw")), 0);
    io_fails("buffers: {a: {dtype: u8, shape: [1]}}\nstages:\n"
             "  - {use: read, path: '%d.raw', out: a}\n  - {use: discard}\n", 1,
             _i ? "1.raw' became shorter" : "1.raw' says a size of 0 bytes, and has some");
}

TEST(says_no_size)
{
    io_fails("buffers: {a: {dtype: f32, shape: [1]}}\nstages:\n"
             "  - {use: read, path: /proc/uptime, format: csv, out: a}\n"
             "  - {use: discard}\n", 3, "'/proc/uptime' is a stream");
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(symlink("/proc/version", io_at(i ? "1.raw" : "0.raw")), 0);
    io_fails("buffers: {a: {dtype: u8, shape: [1]}}\nstages:\n  - {use: read, path: '*.raw', out: a}\n  - {use: discard}\n",
             3, "0.raw' is a stream, and cannot be one of the 2 files that match");
}

TEST(skips_and_swaps)
{
    /* Two bytes before each frame of 2 x 2 u16, big-endian; the last frame has
     * one row. */
    static const unsigned char in[] = { 9, 'h', 'h', 0, 1, 0, 2, 0, 3, 0, 4, 'h', 'h', 1, 5, 1, 6 };
    static const unsigned char out[] = { 1, 0, 2, 0, 3, 0, 4, 0, 5, 1, 6, 1 };
    pipe_file(io_dir, "in.raw", in, sizeof in);
    ck_assert_uint_eq(io_runs("buffers: {a: {dtype: u16, shape: [2, 2]}}\nstages:\n"
                           "  - {use: read, path: in.raw, offset: 1, skip: 2, endian: big,\n"
                           "     out: a}\n"
                           "  - {use: write, path: out.raw}\n"), 2);
    io_holds("out.raw", out, sizeof out);

    static const unsigned char big[] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    static const struct { const char *dtype; unsigned char out[8]; } swaps[] = {
        { "u8", { 1, 2, 3, 4, 5, 6, 7, 8 } },  { "f16", { 2, 1, 4, 3, 6, 5, 8, 7 } },
        { "f32", { 4, 3, 2, 1, 8, 7, 6, 5 } }, { "f64", { 8, 7, 6, 5, 4, 3, 2, 1 } },
        { "c64", { 4, 3, 2, 1, 8, 7, 6, 5 } },
    };
    pipe_file(io_dir, "big.raw", big, 8);
    for (size_t i = 0; i < sizeof swaps / sizeof *swaps; i++) {
        io_runs(format("buffers: {a: {dtype: %s, shape: [1]}}\nstages:\n"
                  "  - {use: read, path: big.raw, endian: big, out: a}\n"
                  "  - {use: write, path: out.raw}\n", swaps[i].dtype));
        io_holds("out.raw", swaps[i].out, 8);
    }
}

/* Pairs of whole numbers are c64 of the same values: of a file in blocks, each a frame of its own length, and of a
 * FIFO. */
static const struct { const char *stored; int bytes; bool big; } pairs[] = {
    { "ci8", 1, false }, { "ci16", 2, false }, { "ci16, endian: big", 2, true }, { "ci8, endian: big", 1, true },
};

static void spell_pairs(const char *name, int skip, int bytes, bool big, int fd)
{
    unsigned char raw[2 * 2 * 1003 + 8] = "12345";
    size_t n = (size_t)skip;
    for (int i = 0; i < 2 * 1003; i++) {
        int x = bytes == 1 ? i % 256 - 128 : i * 37 % 65536 - 32768;
        raw[n++] = (unsigned char)(big && bytes == 2 ? x >> 8 : x);
        if (bytes == 2)
            raw[n++] = (unsigned char)(big ? x : x >> 8);
    }
    if (fd < 0)
        pipe_file(io_dir, name, raw, n);
    else if (write(fd, raw, n) != (ssize_t)n)
        _exit(1);
}

static void hold_pairs(int bytes)
{
    static gp_c64 want[1003];
    for (int i = 0; i < 1003; i++)
        for (int k = 0; k < 2; k++)
            (k ? &want[i].im : &want[i].re)[0] = (float)(bytes == 1 ? (2 * i + k) % 256 - 128
                                                                    : (2 * i + k) * 37 % 65536 - 32768);
    io_holds("out.raw", want, sizeof want);
}

TEST_EACH(pairs_of_whole_numbers, pairs)
{
    char y[600], *fifo = io_at("fifo");
    int status, bytes = pairs[_i].bytes;
    spell_pairs("in.raw", 5, bytes, pairs[_i].big, -1);
    for (int workers = 1; workers < 4; workers += 2) {
        ck_assert_uint_eq(io_runs(TEXT(y, "buffers: {x: {shape: [100]}}\nstages:\n"
            "  - {use: read, path: in.raw, offset: 5, stored: %s, workers: %d, out: x}\n"
            "  - {use: write, path: out.raw}\n", pairs[_i].stored, workers)), 11);
        hold_pairs(bytes);
    }
    ck_assert_uint_eq(io_runs(TEXT(y, "buffers: {x: {dtype: c64, shape: ['<=2000']}}\nstages:\n"
        "  - {use: read, path: in.raw, offset: 5, stored: %s, out: x}\n"
        "  - {use: write, path: 'out%%d.raw'}\n", pairs[_i].stored)), 1);
    ck_assert_int_eq(rename(io_at("out0.raw"), io_at("out.raw")), 0);
    hold_pairs(bytes);
    ck_assert_int_eq(mkfifo(fifo, 0600), 0);
    pid_t child = fork();
    if (!child) {
        spell_pairs(NULL, 0, bytes, pairs[_i].big, open(fifo, O_WRONLY));
        _exit(0);
    }
    ck_assert_uint_eq(io_runs(TEXT(y, "buffers: {x: {shape: [10, 10]}}\nstages:\n"
                                   "  - {use: read, path: fifo, stored: %s, tail: ignore, out: x}\n"
                                   "  - {use: discard}\n  - {name: w, use: write, in: x, path: w.raw}\n",
                                   pairs[_i].stored)), 10);
    ck_assert(waitpid(child, &status, 0) == child && !status);
    size_t n, all;
    OWNED char *w = pipe_read(io_dir, "w.raw", &n), *want = pipe_read(io_dir, "out.raw", &all);
    ck_assert_uint_eq(n, 1000 * sizeof(gp_c64));       /* ten rows of ten, ten times; three numbers are left */
    ck_assert(!memcmp(w, want, n));
}

static const struct { const char *type, *read, *said; } no_pairs[] = {
    { "dtype: f32, shape: [4]", "in.raw, stored: ci8",
      "pairs of whole numbers are read as c64, and 'buffers' declares f32" },
    { "depth: 3", "in.raw, stored: ci8", "declare dtype and shape" },
    { "shape: [3]", "in.raw, stored: ci16", "has 1 bytes after its last whole row of 4 bytes" },
    { "shape: [3]", "in.npy, stored: ci16", "'stored' is only for raw data" },
};

TEST_EACH(not_pairs, no_pairs)
{
    pipe_file(io_dir, "in.raw", "123456789", 9);
    io_count_npy("in.npy", U8(3, 3), 0);
    io_fails(format("buffers: {x: {%s}}\nstages:\n  - {use: read, path: %s, out: x}\n  - {use: discard}\n",
                  no_pairs[_i].type, no_pairs[_i].read), 3, no_pairs[_i].said);
}

/* A .npy of a type, and a declaration (may be empty): so many frames, and files
 * of one frame and of the last one have these types. */
static const struct {
    gp_type file;
    const char *buffer;
    uint64_t frames;
    gp_type one, last;
} npy_cuts[] = {
    { { GP_U8, 3, { 6, 2, 5 } }, "", 6, { GP_U8, 2, { 2, 5 } }, { GP_U8, 2, { 2, 5 } } },
    { { GP_U8, 3, { 6, 2, 5 } }, "shape: [2, 5]", 6, { GP_U8, 2, { 2, 5 } },
      { GP_U8, 2, { 2, 5 } } },
    { { GP_U8, 3, { 6, 2, 5 } }, "shape: [4, 2, 5]", 2, { GP_U8, 3, { 4, 2, 5 } },
      { GP_U8, 3, { 2, 2, 5 } } },
    { { GP_U8, 2, { 7, 5 } }, "", 7, { GP_U8, 1, { 5 } }, { GP_U8, 1, { 5 } } },
    { { GP_U8, 2, { 7, 5 } }, "shape: [3, 5]", 3, { GP_U8, 2, { 3, 5 } }, { GP_U8, 2, { 1, 5 } } },
    { { GP_U8, 2, { 7, 5 } }, "dtype: u8", 7, { GP_U8, 1, { 5 } }, { GP_U8, 1, { 5 } } },
    { { GP_C64, 1, { 10 } }, "shape: [4]", 3, { GP_C64, 1, { 4 } }, { GP_C64, 1, { 2 } } },
    { { GP_F32, 1, { 10 } }, "shape: [10]", 1, { GP_F32, 1, { 10 } }, { GP_F32, 1, { 10 } } },
    { { GP_F32, 1, { 10 } }, "shape: [12]", 1, { GP_F32, 1, { 10 } }, { GP_F32, 1, { 10 } } },
};

TEST_EACH(cuts_npy, npy_cuts)
{
    gp_type all = npy_cuts[_i].file, one = npy_cuts[_i].one, last = npy_cuts[_i].last;
    io_count_npy("in.npy", all, 0);
    uint64_t n = io_runs(format("buffers: {a: {depth: 2%s%s}}\nstages:\n"
                           "  - {name: src, use: read, path: in.npy, out: a}\n"
                           "  - {use: write, path: out/f%%02d.npy, workers: 2}\n"
                           "  - {name: all, use: write, path: all.npy, in: a}\n",
                           *npy_cuts[_i].buffer ? ", " : "", npy_cuts[_i].buffer));
    ck_assert_uint_eq(n, npy_cuts[_i].frames);
    ck_assert_int_eq(io_files("out"), (int)n);
    for (uint64_t i = 0; i < n; i++)
        io_counts(format("out/f%02d.npy", (int)i), i == n - 1 ? last : one,
               (int)(i * gp_bytes(&one)));
    gp_type joined = one;
    joined.dim[0] = (int64_t)(gp_bytes(&all) / (gp_bytes(&one) / (size_t)one.dim[0]));
    io_counts("all.npy", joined, 0);
}

TEST(stacks)
{
    io_count_npy("in.npy", U8(6, 2, 5), 0);
    io_runs("stages:\n  - {use: read, path: in.npy}\n"
         "  - {use: write, path: out.npy, stack: true}\n");
    io_counts("out.npy", U8(6, 2, 5), 0);
    io_count_npy("none.npy", U8(0, 2, 5), 0);
    ck_assert_uint_eq(io_runs("stages:\n  - {use: read, path: none.npy}\n"
                           "  - {use: write, path: none-out.npy, stack: true}\n"), 0);
    io_counts("none-out.npy", U8(0, 2, 5), 0);
}

/* ---- many files ------------------------------------------------------ */

TEST(globs_in_order)
{
    /* Digits count as the number they are; the last file is shorter. */
    mkdir(io_at("in"), 0777);
    io_count_npy("in/B.npy", U8(2, 4), 0);
    io_count_npy("in/a9.npy", U8(2, 4), 8);
    io_count_npy("in/a10.npy", U8(1, 4), 16);
    ck_assert_uint_eq(io_runs("buffers: {x: {shape: [2, 4]}}\nstages:\n"
                           "  - {use: read, path: 'in/*.npy', out: x}\n"
                           "  - {use: write, path: all.npy}\n"
                           "  - {name: single, use: write, path: out/%n.npy, in: x,\n"
                           "     workers: 2}\n"), 3);
    io_counts("all.npy", U8(5, 4), 0);
    io_counts("out/B.npy", U8(2, 4), 0);
    io_counts("out/a9.npy", U8(2, 4), 8);
    io_counts("out/a10.npy", U8(1, 4), 16);
    ck_assert_int_eq(io_files("out"), 3);

    /* Frames never span files: [3, 4] frames of files of 2, 2, 1 rows. */
    ck_assert_uint_eq(io_runs("buffers: {x: {shape: [3, 4]}}\nstages:\n"
                           "  - {use: read, path: 'in/*.npy', out: x}\n"
                           "  - {use: write, path: all3.npy}\n"), 3);
    io_counts("all3.npy", U8(5, 4), 0);
    /* Twice over, and a part. */
    ck_assert_uint_eq(io_runs("buffers: {x: {shape: [2, 4]}}\nstages:\n"
                           "  - {use: read, path: 'in/*.npy', loop: true, frames: 7, out: x}\n"
                           "  - {use: write, path: out7/%05d.npy}\n"), 7);
    io_counts("out7/00006.npy", U8(2, 4), 0);
    io_counts("out7/00005.npy", U8(1, 4), 16);
}

/* A folder that is there is meant by its name, in whatever it would be a pattern. */
static const struct { const char *path; unsigned files; } in_folders[] = {
    { "d [1]/*.npy", 2 }, { "d [1]/[a-b].npy", 2 }, { "d [1]/{b,c}.npy", 1 }, { "d [1]/%d.npy", 1 }, { "{a,b}/*.npy", 1 },
    { "d [1]/e?/*.npy", 1 }, { "?/*.npy", 1 }, { "[d]*/*.npy", 2 }, { "d [1]/?.{npy,raw}", 3 },
};

TEST_EACH(folders_like_patterns, in_folders)
{
    static const char *const folders[] = { "d [1]", "{a,b}", "d [1]/e?", "1", "a", "d 1" };
    static const char *const files[] = { "d [1]/a.npy", "d [1]/b.npy", "{a,b}/c.npy", "d [1]/e?/d.npy", "1/e.npy" };
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        mkdir(io_at(folders[i]), 0777);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        io_count_npy(files[i], U8(2, 4), 0);
    if (strstr(in_folders[_i].path, "%d") || in_folders[_i].files == 3)
        io_count_npy("d [1]/7.npy", U8(2, 4), 0);
    ck_assert_uint_eq(io_runs(format("buffers: {x: {shape: [2, 4]}}\nstages:\n  - {use: read, path: '%s', out: x}\n"
                                   "  - {use: discard}\n", in_folders[_i].path)), in_folders[_i].files);
}

TEST(numbered)
{
    for (int i = 0; i < 12; i++)
        io_count_npy(format("x%02d.npy", i + 3), U8(2, 2), 4 * i);
    io_count_npy("xx.npy", U8(1), 0);
    io_count_npy("x003.npy", U8(1), 0);      /* no %02d would write it so */
    io_count_npy("x100.npy", U8(2, 2), 48);  /* after a gap */
    ck_assert_uint_eq(io_runs("stages:\n  - {use: read, path: x%02d.npy, missing: skip}\n"
                           "  - {use: write, path: all.npy}\n"), 13);
    io_counts("all.npy", U8(26, 2), 0);
    ck_assert_uint_eq(io_runs("stages:\n  - {use: read, path: x%02d.npy, missing: skip}\n"
                           "  - {use: write, path: 'out/%n/%d.raw'}\n"), 13);
    io_holds("out/x14/11.raw", "\x2c\x2d\x2e\x2f", 4);
}

/* Of 10 numbers of two lists one is missing in each, and of a third, in which a file has two frames, two: frames keep
 * their numbers. */
TEST_LOOP(missing, 0, 2)
{
    static const char run[] = "buffers: {c: {dtype: u8, shape: [2]}}\nstages:\n  - {name: a, use: read, path: a%%d.npy}\n"
                              "  - {name: b, use: read, path: b%%02d.npy, workers: 2}\n"
                              "  - {use: expr, in: {a: a, b: b}, expr: b - a, out: d}\n  - {use: write, path: d/%%d.raw}\n"
                              "  - {use: read, path: c%%d.raw, out: c, workers: %d}\n  - {use: write, path: c/%%d.raw}\n";
    for (int i = 0; i < 10; i++) {
        if (i != 5)
            io_count_npy(format("a%d.npy", i + 95), U8(2), 10 * i);
        if (i != 7)
            io_count_npy(format("b%02d.npy", i), U8(2), 10 * i + i);
        if (i != 3 && i != 4)
            io_count_raw(format("c%d.raw", i), 4);
    }
    pipe_result r = io_done(format(run, 1 + 2 * _i));
    ck_assert(r.account[0].in == 10 && r.account[0].dropped == 2 && r.account[2].in == 20 && r.account[2].dropped == 4);
    ck_assert_int_eq(io_files("d"), 8);
    ck_assert_int_eq(io_files("c"), 16);
    io_holds("d/6.raw", "\6\0\0\0\6\0\0", 8);
    io_holds("d/9.raw", "\11\0\0\0\11\0\0", 8);
    io_holds("c/5.raw", "\2\3", 2);
    io_holds("c/10.raw", "\0\1", 2);
}

/* Files that are one frame each need not have one size; of one that cannot be opened all frames fail, where each has as
 * many. What is missing is said by name. */
TEST(missing_or_broken)
{
    io_count_npy("v1.npy", U8(1, 2), 0);
    io_count_npy("v%3.npy", U8(3, 2), 0);    /* no number of the pattern */
    io_count_npy("v3.npy", U8(3, 2), 10);
    for (int i = 0; i < 3; i++)
        io_count_npy(format("f%d.npy", i), U8(4, 2), 10 * i);
    FILE *f = fopen(io_at("f1.npy"), "r+");
    ck_assert(f && fwrite("no npy", 1, 6, f) == 6 && !fclose(f));
    pipe_result r = io_done("buffers: {v: {dtype: u8, shape: ['<=3', 2]}, f: {dtype: u8, shape: [2, 2]}}\nstages:\n"
                          "  - {use: read, path: v%d.npy, out: v}\n  - {use: write, path: 'v/%d.raw'}\n"
                          "  - {use: read, path: f%d.npy, out: f, on_error: drop}\n  - {use: write, path: 'f/%d.raw'}\n");
    ck_assert(r.account[0].in == 3 && r.account[0].dropped == 1 && r.account[1].in == 6 && r.account[1].failed == 2);
    io_holds("v/2.raw", "\12\13\14\15\16\17", 6);
    io_holds("f/4.raw", "\24\25\26\27", 4);
    io_holds("f/5.raw", "\30\31\32\33", 4);
    bool said = false;
    for (int i = 0; i < r.errs.n; i++)
        said |= strstr(r.errs.e[i].msg, "frame 1: there is no file") && strstr(r.errs.e[i].msg, "v2.npy'");
    ck_assert(said);
}

/* Of many numbers without a file there is one warning. */
TEST(one_in_ten)
{
    for (int i = 0; i < 60; i += 10)
        io_count_raw(format("g%d.raw", i), 4);
    pipe_result r = io_go("buffers: {v: {dtype: u8, shape: [2]}}\nstages:\n"
                          "  - {use: read, path: g%d.raw, workers: 3, out: v}\n  - {use: write, path: 'g/%d.raw'}\n");
    ck_assert(r.outcome == GP_DONE && r.account[0].in == 102 && r.account[0].dropped == 90);
    ck_assert_int_eq(r.errs.n, 1);
    const char *said = strstr(r.errs.e[0].msg, ": there is no file '");
    ck_assert_msg(said && strstr(said, "g1.raw', nor of 44 other numbers between others ('missing: hole')"), "%s",
                  r.errs.e[0].msg);
}

/* %% is a % and begins nothing. */
TEST(percent_signs)
{
    io_count_npy("in.npy", U8(4, 2), 0);
    ck_assert_uint_eq(io_runs("buffers: {a: {shape: [2, 2]}}\nstages:\n"
                              "  - {use: read, path: in.npy, out: a}\n"
                              "  - {use: write, path: 50%%d.raw}\n"
                              "  - {use: write, path: o/%d%%%%n.raw, in: a}\n"
                              "  - {use: write, path: o/%n%d%%, format: raw, in: a}\n"), 2);
    io_holds("50%d.raw", "\0\1\2\3\4\5\6\7", 8);
    io_holds("o/1%%n.raw", "\4\5\6\7", 4);
    io_holds("o/in0%", "\0\1\2\3", 4);
    ck_assert_int_eq(io_files("o"), 4);
}

/* ---- whole or nothing ------------------------------------------------ */

/* While the script holds frame 20 back, and those that were taken with it. */
static void cut_in_half(gp_pipeline *p, void *arg)
{
    pipe_await_out(p, 10);
    ck_assert_int_eq(truncate(arg, 128 + 100), 0);
    pipe_text(io_dir, "cut", "");
}

TEST(shrinks)
{
    io_count_npy("in.npy", U8(200, 1), 0);
    pipe_text(io_dir, "out.npy", "from an earlier run");
    char *text = format("function process(f, x, y)\n    y:copy(x)\n"
             "    while f.index == 20 and not io.open('%s/cut') do end\nend\n", io_dir);
    pipe_text(io_dir, "hold.lua", text);
    pipe_result r = pipe_run_with(io_dir, "stages:\n  - {use: read, path: in.npy}\n"
                                  "  - {use: lua, script: hold.lua}\n"
                                  "  - {use: write, path: out.npy}\n", "cpu", NULL,
                                  (gp_run_options){ 0 }, cut_in_half, io_at("in.npy"));
    ck_assert_int_eq(r.outcome, GP_ERROR);
    ck_assert_msg(strstr(io_error(&r), "frame 100: '") && strstr(io_error(&r),
                  "became shorter: 1 bytes expected at offset 228, 0 found"), "%s", io_error(&r));
    io_holds("out.npy", "from an earlier run", 19);
    ck_assert_int_eq(io_files("."), 5);     /* and what holds it back, and what came before */
    free(pipe_read_all(io_dir, "out.npy.partial", 128 + 100));
}

TEST(replaces)
{
    io_count_npy("in.npy", U8(4, 10), 0);
    pipe_text(io_dir, "out.npy", "from an earlier run");
    for (int i = 0; i < 2; i++)
        io_runs("stages:\n  - {use: read, path: in.npy, out: a}\n"
                "  - {use: write, path: out.npy, in: a}\n"
             "  - {name: each, use: write, path: new/folder/%d.raw, in: a}\n");
    io_counts("out.npy", U8(40), 0);
    io_holds("new/folder/3.raw", "\x1e\x1f !\"#$%&'", 10);
    ck_assert_int_eq(io_files("new/folder"), 4);
    ck_assert_int_eq(io_files("."), 3);
}

static void cancel_soon(gp_pipeline *p, void *arg)
{
    pipe_await_out(p, 2);
    gp_cancel(p, *(int *)arg);
}

/* Drained: the file is whole, and there. Cancelled: what came before is kept beside it. */
TEST(cancelled)
{
    for (int level = 1; level <= 2; level++) {
        pipe_result r = pipe_run_with(io_dir, "buffers: {a: {dtype: u8, shape: [7]}}\nstages:\n"
                                      "  - {use: generate, rate: 300, out: a}\n"
                                      "  - {use: write, path: out.raw}\n", "cpu", NULL,
                                      (gp_run_options){ 0 }, cancel_soon, &level);
        size_t n = 0;
        const char *name = level == 1 ? "out.raw" : "out.raw.partial";
        char *data = pipe_read(io_dir, name, &n);
        ck_assert_int_eq(r.outcome, level == 1 ? GP_DRAINED : GP_NOT_DRAINED);
        ck_assert_int_eq(io_files("."), data != NULL);
        ck_assert(data || level == 2);
        if (data) {
            ck_assert_uint_eq(n, 7 * r.account[0].out);
            ck_assert(n > 7 || level == 2);
            free(data);
            ck_assert_int_eq(unlink(io_at(name)), 0);
        }
    }
}

/* Bytes that this process has read. */
static unsigned long long bytes_read(void)
{
    unsigned long long n = 0;
    FILE *f = fopen("/proc/self/io", "r");
    ck_assert(f && fscanf(f, "rchar: %llu", &n) == 1);
    fclose(f);
    return n;
}

/* Each byte of a column-major array is read about once, however many frames it has: many rows, many columns. */
static const struct { int rows, columns; } tall_and_wide[] = { { 60000, 100 }, { 3000, 3000 } };

TEST_LOOP(of_columns, 0, 4)
{
    const int rows = tall_and_wide[_i / 2].rows, columns = tall_and_wide[_i / 2].columns;
    size_t n = (size_t)rows * (size_t)columns, made;
    char y[300], *file = malloc(128 + 2 * n);
    int k = snprintf(file, 128, "\x93NUMPY\1%cv%c{'descr': '<u2', 'fortran_order': True, 'shape': (%d, %d), }", 0, 0, rows, columns);
    memset(file + k, ' ', 128 - (size_t)k), file[127] = '\n';
    uint16_t *x = (uint16_t *)(void *)(file + 128), *made_of;
    for (size_t i = 0; i < n; i++)
        x[i] = (uint16_t)(i % (size_t)rows * 7 + i / (size_t)rows * 31);
    pipe_file(io_dir, "a.npy", file, 128 + 2 * n);
    free(file);
    unsigned long long before = bytes_read();
    ck_assert_uint_eq(io_runs(TEXT(y, "stages:\n  - {use: read, path: a.npy, workers: %d}\n  - {use: write, path: a.raw}\n",
                                   _i % 2 ? 3 : 1)), (uint64_t)rows);
    unsigned long long all = bytes_read() - before;
    ck_assert_msg(all < 2 * 2 * n + (1 << 24), "%llu bytes of %zu were read", all, 2 * n);
    made_of = (uint16_t *)(void *)pipe_read(io_dir, "a.raw", &made);
    ck_assert_uint_eq(made, 2 * n);
    for (size_t i = 0; i < n; i++)
        ck_each(made_of[i] == (uint16_t)(i / (size_t)columns * 7 + i % (size_t)columns * 31), "element %zu is %d", i,
                made_of[i]);
    free(made_of);
    unlink(io_at("a.raw"));
}

static bool get_counted(void *bytes, int64_t at, void *to, size_t n)
{
    *(size_t *)bytes += n;
    for (size_t i = 0; i < n / 2; i++)
        ((uint16_t *)to)[i] = (uint16_t)(at / 2 + (int64_t)i);
    return true;
}

/* Of workers that ask out of turn, too: by one frame, by ten. The last frame is a partial one. */
TEST_LOOP(columns_out_of_turn, 0, 2)
{
    const int64_t rows = 3001, columns = 3000, frame = 2, late = _i ? 10 : 1, frames = (rows + frame - 1) / frame;
    const gp_type array = { .dtype = GP_U16, .ndim = 2, .dim = { rows, columns } };
    gp_columns *c = gp_columns_new();
    size_t bytes = 0;
    uint16_t *to = malloc(2 * (size_t)(frame * columns));
    for (int64_t i = 0; i < frames; i++) {
        int64_t k = i - i % (2 * late) + (i + late) % (2 * late);
        k = k < frames ? k : i;
        int64_t n = rows - k * frame < frame ? rows - k * frame : frame;
        ck_assert(gp_columns_read(c, &array, k * frame, n, to, get_counted, &bytes));
        for (int64_t j = 0; j < n * columns; j++)
            ck_each(to[j] == (uint16_t)(j % columns * rows + k * frame + j / columns), "element %lld of frame %lld is %d",
                    (long long)j, (long long)k, to[j]);
    }
    ck_assert_msg(bytes < 2 * 2 * (size_t)(rows * columns), "%zu bytes were read", bytes);
    free(to);
    gp_columns_free(c);
}

TEST_SUITE(io, io_set_up, NULL, 0)
