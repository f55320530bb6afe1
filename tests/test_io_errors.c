/* test_io_errors.c - files that are not what they should be, places where nothing
 * can be written, data that differ: what is said of each, and the exit code. */
#include <glob.h>
#include <math.h>
#include <errno.h>
#include <sys/stat.h>
#include "base/outfile.h"
#include "iotest.h"

/* A pipeline that reads `path`; one whose source makes frames declared so. */
#define IN(path) "stages:\n  - {use: read, path: " path "}\n"
/* Who may leave frames out. */
#define LUA "  - {use: lua, script: same.lua}\n"
#define AS(decl, source) \
    "buffers: {x: {" decl "}}\nstages:\n  - {use: " source ", out: x}\n"

/* ---- what is refused before it runs ---------------------------------- */

static const struct { const char *yaml, *text; } refused[] = {
    { IN("nothing.npy"), "cannot read '" },
    { IN("n%5d.npy"), "n%5d.npy': No such file or directory; a number is %d, or with its digits %05d" },
    { IN("'nothing*.npy'"), "no file matches '" },
    { IN("'no%03d.npy'"), "no file matches '" },
    { IN("'*_%03d.npy'"), "mean themselves" },
    { IN("."), "is a folder" },
    { IN("a.raw"), "declare dtype and shape" },
    { AS("dtype: u8", "read, path: a.raw"), "declare dtype and shape" },
    { IN("stdin"), "declare dtype and shape" },
    { IN("two.npy") "  - {use: write, path: '%d.fits'}\n", ".fits' does not end in the extension of a format" },
    { "stages:\n  - {use: read, path: stdin, format: npz}\n", "only raw data ('format: raw'), npy and y4m can be read" },
    { "buffers: {x: {dtype: u8, shape: [4]}}\nstages:\n"
      "  - {use: read, path: stdin, loop: true, out: x}\n", "cannot be read twice" },
    { IN("one.npy"), "how many elements make a frame" },
    { "stages:\n  - {use: read, path: two.npy, skip: 3}\n", "'skip' is only for raw" },
    { "stages:\n  - {use: read, path: two.npy, endian: big}\n", "'endian' is only for raw" },
    { "stages:\n  - {use: read, path: a.png, tail: ignore}\n", "'tail' is only for raw and .npy" },
    { IN("two.npy") "  - {use: compare, file: fortran.npy}\n", "column-major" },
    { IN("two.npy") "  - {use: compare, file: big.npy}\n", "big-endian" },
    { IN("short.npy"), "its header says 40 bytes of data, 39 are there" },
    { IN("long.npy"), "has 1 bytes after the array" },
    { IN("text.npy"), "is not a .npy file" },
    { IN("text.png"), "is not a PNG file" },
    { IN("flat.npy"), "no elements" },
    { AS("dtype: f32", "read, path: two.npy"), "holds u8, and 'buffers' declares f32" },
    { AS("shape: [3]", "read, path: two.npy"), "which cannot be cut into frames of u8 [3]" },
    { AS("dtype: u16", "read, path: a.png"), "holds u8 [5, 7], and 'buffers' declares u16 [5, 7]" },
    { AS("dtype: u8, shape: [2, 3]", "read, path: a.raw"),
      "has 1 bytes after its last whole row of 3 bytes: 'tail: ignore'" },
    { "buffers: {x: {dtype: u8, shape: [2, 3]}}\nstages:\n"
      "  - {use: read, path: a.raw, offset: 11, out: x}\n", "fewer than the offset of 11" },
    { "stages:\n  - {use: generate}\n", "declare dtype and shape" },
    { AS("dtype: f32, shape: [2]", "generate, seed: 3"), "'seed' has no effect on a ramp" },
    { AS("dtype: f32, shape: [2]", "generate, pattern: constant, period: 64"), "'period' has no effect on a constant" },
    { IN("two.npy") "  - {use: write, path: x.npy, compression: 3}\n",
      "'compression' has no effect on a file that is not a PNG" },
    { AS("dtype: f32, shape: [2, 3]", "generate, frames: 1")
      "  - {use: write, path: x.png}\n",
      "cannot hold f32 [2, 3]: PNG holds u8 or u16: put a 'cast'" },
    { AS("dtype: u8, shape: [2, 3, 5]", "generate, frames: 1")
      "  - {use: write, path: x.png}\n", "PNG holds frames of shape" },
    { IN("two.npy") "  - {use: write, path: stdout, format: png}\n",
      "only raw data, npy, text and y4m can be written to stdout" },
    { IN("two.npy") "  - {use: write, path: a.raw, stack: true}\n", "'stack'" },
    { "stages:\n  - {use: read, path: two.npy, shrink: 2}\n", "'shrink' has no effect on a file that is not a picture" },
    { "stages:\n  - {use: read, path: a.png, shrink: 2}\n",
      "a.png' is not a JPEG file, and only those can be made smaller while they are decoded ('shrink')" },
    { IN("two.npy") "  - {use: write, path: stdout, format: npy, stack: true}\n",
      "'stack' has no effect on a stream, in which each frame is an array of its own" },
    { AS("dtype: u8, shape: ['<=4', 2]", "read, path: stdin, format: npy"), "declare no bounds" },
    { "stages:\n  - {use: read, path: stdin, format: npy}\n", "is known only when the run has begun: declare its dtype" },
    { IN("two.npy") "  - {use: write, path: '%d.npy', stack: true}\n", "'stack'" },
    { IN("two.npy") "  - {use: write, path: '%n.npy'}\n",
      "%n.npy' is one file, and stage 'read' makes 4 frames: put %05d into the path" },
    { IN("'?/a.png'") "  - {use: write, path: '%n.png'}\n", "/a.png' and '" },
    { IN("two.npy") "  - {use: compare}\n", "one thing to compare with" },
    { IN("two.npy") "  - {use: compare, file: no.npy}\n", "cannot read" },
    { IN("two.npy") "  - {use: compare, file: a.png}\n", "neither a .npy" },
    { IN("two.npy") "  - {use: compare, file: flat.npy}\n", "cannot be cut" },
};

TEST_EACH(refuses, refused)
{
    size_t n, png_n;
    io_count_raw("a.raw", 10);
    io_count_npy("one.npy", U8(40), 0);
    io_count_npy("two.npy", U8(4, 10), 0);
    io_count_npy("flat.npy", U8(4, 0), 0);
    char *two = pipe_read(io_dir, "two.npy", &n), *at;
    pipe_file(io_dir, "short.npy", two, n - 1);
    two = realloc(two, n + 1);
    two[n] = 0;
    pipe_file(io_dir, "long.npy", two, n + 1);
    memcpy(strstr(two + 10, "False,"), "True, ", 6);
    pipe_file(io_dir, "fortran.npy", two, n);
    at = strstr(two + 10, "|u1");
    memcpy(at, ">u2", 3);
    pipe_file(io_dir, "big.npy", two, n);
    free(two);
    OWNED char *png = pipe_read("tests/data/png", "gray8.png", &png_n);
    pipe_file(io_dir, "a.png", png, png_n);
    for (int i = 0; i < 2; i++) {              /* two of one name */
        char *folder = io_at(i ? "q" : "p");
        mkdir(folder, 0755);
        pipe_file(folder, "a.png", png, png_n);
    }
    pipe_text(io_dir, "text.npy", "this is text");
    pipe_text(io_dir, "text.png", "this is text");
    bool sink = strstr(refused[_i].yaml, "use: write") || strstr(refused[_i].yaml, "use: compare");
    io_fails(format("%s%s", refused[_i].yaml, sink ? "" : "  - {use: discard}\n"), 3, refused[_i].text);
}

/* ---- what goes wrong while it runs ----------------------------------- */

static const struct { const char *yaml, *text; int code; } broken[] = {
    /* An odd one among many files. */
    { IN("'rows*.npy'") "  - {use: discard}\n", "rows2.npy' has 3 rows, the first file 2", 1 },
    { IN("'cols*.npy'") "  - {use: discard}\n", "frame 1: '", 1 },
    { IN("'type*.npy'") "  - {use: discard}\n", "type2.npy' holds f32, not u8", 1 },
    { AS("dtype: u8", "read, path: 'pic*.png'") "  - {use: discard}\n",
      "pic2.png' holds u16, and 'buffers' declares u8: pictures of 8 and of 16 bits", 1 },
    { IN("'pic*.png'") "  - {use: discard}\n", "pic2.png' holds u16, and '", 3 },
    { "buffers: {x: {dtype: u8, shape: [4]}}\nstages:\n"
      "  - {use: read, path: 'none*.raw', loop: true, frames: 3, out: x}\n  - {use: discard}\n",
      "no frames that could be repeated", 1 },
    { "on_error: drop\nbuffers: {x: {dtype: u8, shape: [4]}}\nstages:\n"
      "  - {use: read, path: 'none*.raw', loop: true, out: x}\n  - {use: discard}\n",
      "no frames that could be repeated", 1 },
    /* Two frames with one name. */
    { IN("two.npy") LUA "  - {use: write, path: out/%n.npy}\n",
      "is the name of both frame 0 and frame 1: put %05d into the path", 1 },
    { IN("'rgb*.npy'") LUA "  - {use: write, path: out/x.png, workers: 1}\n",
      "is the name of both frame 0 and frame 1", 1 },
    { AS("dtype: u8, shape: [4]", "generate, frames: 2")
      "  - {use: write, path: 'out/%n.npy'}\n", "has no name (its source gives none, or it is a row of a group): use %05d", 1 },
    /* No place to write. */
    { IN("two.npy") "  - {use: write, path: two.npy/out.npy}\n", "Not a directory", 1 },
    { IN("two.npy") "  - {use: write, path: two.npy/%d.npy}\n", "frame 0: '", 1 },
    { IN("two.npy") "  - {use: write, path: /proc/gpipe/out.raw}\n", "cannot be written", 1 },
    { IN("two.npy") "  - {use: write, path: /dev/full}\n",
      "'/dev/full' cannot be written: No space left on device", 1 },
    { AS("dtype: u8, shape: [4]", "generate, frames: 6") "  - {use: write, path: /dev/full}\n", "frame 0", 1 },
    { IN("two.npy") "  - {use: write, path: /dev/full, format: npy}\n",
      "is not a regular file, which a joined .npy needs", 1 },
    { IN("two.npy") "  - {use: write, path: .}\n", "it is a folder", 1 },
    { AS("shape: [3, 10]", "read, path: two.npy")
      "  - {use: write, path: out.npy, stack: true}\n", "frame 1: '", 1 },
    /* Comparing. */
    { IN("two.npy") "  - {use: compare, file: less.npy}\n", "frame 3 ends at row 40, but '", 6 },
    { IN("two.npy") "  - {use: compare, file: more.npy}\n", "together have 40 rows, but '", 6 },
    { IN("two.npy") "  - {use: compare, file: other.npy}\n",
      "frame 2 at [3] is 23 where 99 is expected; 2 of its 10 elements differ", 6 },
    { "stages:\n  - {use: read, path: two.npy, out: a}\n"
      "  - {name: b, use: read, path: other.npy, out: b}\n"
      "  - {use: compare, in: [a, b], abs: 75}\n", "frame 2 at [3] is 23 where 99", 6 },
};

TEST_EACH(breaks, broken)
{
    size_t n;
    io_count_npy("rows1.npy", U8(2, 3), 0), io_count_npy("rows2.npy", U8(3, 3), 0);
    io_count_npy("cols1.npy", U8(2, 3), 0), io_count_npy("cols2.npy", U8(2, 4), 0);
    io_count_npy("type1.npy", U8(2, 3), 0);
    io_count_npy("type2.npy", (gp_type){ GP_F32, 2, { 2, 3 } }, 0);
    io_count_npy("rgb1.npy", U8(2, 3, 3), 0), io_count_npy("rgb2.npy", U8(2, 3, 3), 0);
    io_count_npy("two.npy", U8(4, 10), 0);
    pipe_text(io_dir, "same.lua", "function process(f, x, y) y:copy(x) end\n");
    io_count_npy("less.npy", U8(3, 10), 0), io_count_npy("more.npy", U8(5, 10), 0);
    pipe_file(io_dir, "none1.raw", "", 0), pipe_file(io_dir, "none2.raw", "", 0);
    for (int i = 1; i <= 2; i++) {
        OWNED char *png = pipe_read("tests/data/png", i == 1 ? "gray8.png" : "gray16.png", &n);
        pipe_file(io_dir, format("pic%d.png", i), png, n);
    }
    OWNED char *other = pipe_read(io_dir, "two.npy", &n);
    other[n - 40 + 23] = 99, other[n - 40 + 25] = 99;
    pipe_file(io_dir, "other.npy", other, n);
    io_fails(broken[_i].yaml, broken[_i].code, broken[_i].text);
    /* Nothing half-written, but what is kept of a joined file. */
    glob_t kept;
    int more = glob(io_at("*.partial"), 0, NULL, &kept) ? 0 : (int)kept.gl_pathc;
    globfree(&kept);
    bool folder = !access(io_at("out"), F_OK);
    ck_assert_int_le(io_files("out"), 1);
    ck_assert_int_eq(io_files("."), 17 + folder + more);
}

/* Frames that are rows of a file, beside a constant of that file's shape: said, once; not of a declared buffer, nor
 * of a constant that is a row. */
TEST(rows_beside_all_rows)
{
    static const struct { const char *declared, *dark; int warnings; } cases[] = {
        { "", "all.npy", 1 }, { ", x: {shape: [10]}", "all.npy", 0 }, { ", x: {shape: [4, 10]}", "all.npy", 0 },
        { "", "row.npy", 0 }, { "", "five.npy", 0 },
    };
    io_count_npy("in.npy", U8(4, 10), 0), io_count_npy("all.npy", U8(4, 10), 0);
    io_count_npy("row.npy", U8(10), 0), io_count_npy("five.npy", U8(5, 10), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *y = format("buffers: {dark: {const: %s}%s}\nstages:\n  - {use: read, path: in.npy, out: x}\n"
                         "  - {use: expr, in: {x: x, dark: dark}, expr: x - dark}\n  - {use: discard}\n", cases[i].dark,
                         cases[i].declared);
        pipe_result r = io_done(y);
        ck_assert_int_eq(r.errs.n, cases[i].warnings);
        if (r.errs.n)
            ck_assert_str_eq(r.errs.e[0].msg, "stage 'expr': a frame of 'x' is u8 [10], one of the 4 rows that stage 'read' "
                             "reads, and the constant 'dark' is as large as all of them. If the file is one frame, declare "
                             "x: {dtype: u8, shape: [4, 10]}; if not, declare x: {dtype: u8, shape: [10]}");
    }
}

/* A stage that needs more axes than a row has: below the error is what to declare; of a declared row there is none. */
TEST(rows_for_an_image)
{
    static const struct { const char *declared, *sigma; const char *note; } cases[] = {
        { "", "1", "a frame of 'x' is one of the 4 rows that stage 'read' reads; if the file is one frame, declare "
                   "buffers: {x: {dtype: f32, shape: [4, 10]}}" },
        { "", "-1", NULL }, { "buffers: {x: {shape: [10]}}\n", "1", NULL },
    };
    io_count_npy("in.npy", (gp_type){ GP_F32, 2, { 4, 10 } }, 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pipe_result r = io_go(format("%sstages:\n  - {use: read, path: in.npy, out: x}\n  - {use: blur, sigma: %s}\n"
                                   "  - {use: discard}\n", cases[i].declared, cases[i].sigma));
        ck_assert_int_eq(r.errs.n, cases[i].note ? 2 : 1);
        ck_assert(!cases[i].note || (r.errs.e[1].code == GP_E_NOTE && !strcmp(r.errs.e[1].msg, cases[i].note)));
    }
}

/* A path of `n` bytes and then `end`, in folders that are not there. */
static char *long_path(size_t n, const char *end)
{
    char *path = malloc(n + strlen(end) + 1);
    for (size_t i = 0; i < n; i++)
        path[i] = i % 100 == 99 ? '/' : 'a';
    strcpy(path + n, end);
    return path;
}

/* Longer than any file's name, as it stands or with a number or a name put into it. */
static const struct { size_t n; const char *end, *text; } long_paths[] = {
    { 9000, "%d.raw", "frame 0: '" },
    { 5000, "%n.raw", "frame 0: '" },
    { 5000, "%%%d.raw", "frame 0: '" },
    { 4095, "%d.raw", "frame 0: '" },
    { 4000, "%020d%020d%020d%020d%020d.raw", "frame 0: '" },
    { 5000, "out.raw", "'" },
    { 5000, "out.png", "frame 0: '" },
};

TEST_EACH(long_names, long_paths)
{
    char yaml[10000], *path = long_path(long_paths[_i].n, long_paths[_i].end);
    io_count_npy("in.npy", U8(1, 2, 2), 0);
    TEXT(yaml, "stages:\n  - {use: read, path: in.npy}\n  - {use: write, path: '/%s'}\n", path);
    pipe_result r = io_go(yaml);
    const char *text = io_error(&r), *end = strstr(text, "' makes a name of more than 4095 bytes");
    ck_assert_int_eq(gp_errs_exit(&r.errs), 1);
    ck_assert_msg(!strncmp(text, long_paths[_i].text, strlen(long_paths[_i].text)), "%s", text);
    ck_assert_msg(end && !end[38], "%s", text);
    ck_assert_int_eq(r.errs.e[0].at.line, 3);
    ck_assert_int_eq(io_files("."), 1);
    TEXT(yaml, "stages:\n  - {use: read, path: '/%s'}\n  - {use: discard}\n", path);
    r = io_go(yaml);
    end = strstr(text = io_error(&r), "': File name too long");
    ck_assert_msg(strchr(path, '%') || (end && !end[21]), "%s", text);
    free(path);
}

/* A text that does not fit ends as it should: its middle is left out. */
TEST(long_reasons)
{
    char err[GP_WHY], *path = long_path(1000, "/folder");
    errno = EXDEV;
    ck_assert(!gp_why(err, "cannot be written: there is no folder '%s'", path));
    ck_assert_int_eq(errno, EXDEV);
    ck_assert_uint_eq(strlen(err), GP_WHY - 1);
    ck_assert_msg(!strncmp(err, "cannot be written: there is no folder 'aaa", 42) && strstr(err, "a...a")
                  && !strcmp(err + GP_WHY - 9, "/folder'"), "%s", err);
    free(path);
}

TEST(tolerances)
{
    static const struct { const char *options; bool same; } cases[] = {
        { "", false }, { ", abs: 0.0625", true }, { ", abs: 0.06", false },
        { ", rel: 0.0625", true }, { ", rel: 0.06", false },
        { ", abs: 0.03125, rel: 0.03125", true },
        { ", abs: 0.0625, nan: differ", false },
    };
    float a[4] = { 1.0625f, NAN, INFINITY, -0.0f }, b[4] = { 1, -NAN, INFINITY, 0 };
    pipe_file(io_dir, "a.raw", a, sizeof a);
    pipe_file(io_dir, "b.raw", b, sizeof b);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *y = format("buffers: {x: {dtype: f32, shape: [4]}}\nstages:\n"
                         "  - {use: read, path: a.raw, out: x}\n  - {use: compare, file: b.raw%s}\n",
                         cases[i].options);
        if (cases[i].same)
            io_runs(y);
        else
            io_fails(y, 6, "is expected; ");
    }
    /* A part of a complex number that is NaN or infinite in both, and the other part. */
    static const struct { float a[2], b[2]; const char *options, *hint; } parts[] = {
        { { NAN, 1.0625f }, { NAN, 1 }, "abs: 0.0625", NULL }, { { NAN, 1.0625f }, { NAN, 1 }, "abs: 0.06", "; " },
        { { 1.0625f, NAN }, { 1, NAN }, "rel: 0.0625", NULL }, { { 2, NAN }, { 2, -NAN }, "abs: 0", NULL },
        { { NAN, 1 }, { 1, NAN }, "abs: 9", "differ" }, { { NAN, 1 }, { 1, NAN }, "abs: 9, nan: differ", "differ" },
        { { NAN, 2 }, { NAN, 1 }, "nan: differ", "differ" },
        { { -NAN, 2 }, { -NAN, 1 }, "abs: 0", "at [0] is (nan, 2) where (nan, 1) is expected" },
        { { NAN, 1.0625f }, { NAN, 1 }, "abs: 0.0625, nan: differ", "differ ('nan: differ': no NaN agrees)" },
        { { INFINITY, 1.0625f }, { INFINITY, 1 }, "abs: 0.0625, nan: differ", NULL },
        { { -INFINITY, 1 }, { INFINITY, 1 }, "abs: 1e300", "differ" }, { { NAN, NAN }, { NAN, NAN }, "abs: 0", NULL },
        { { NAN, NAN }, { NAN, 1 }, "abs: 9", "differ" }, { { 5, 0 }, { NAN, 0 }, "abs: 9", "differ" },
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        pipe_file(io_dir, "a.raw", parts[i].a, 8);
        pipe_file(io_dir, "b.raw", parts[i].b, 8);
        char *y = format("buffers: {x: {dtype: c64, shape: [1]}}\nstages:\n  - {use: read, path: a.raw, out: x}\n"
                         "  - {use: compare, file: b.raw, %s}\n", parts[i].options);
        pipe_result r = io_go(y);
        const char *text = parts[i].hint ? io_error(&r) : "", *hint = parts[i].hint ? strstr(text, parts[i].hint) : text;
        ck_assert_msg(hint && gp_errs_exit(&r.errs) == (parts[i].hint ? 6 : 0), "case %zu: %s", i, text);
        ck_assert_msg(!parts[i].hint || strcmp(parts[i].hint, "differ") || !hint[6], "case %zu: %s", i, text);
    }
    /* 64-bit integers, further apart than a double can tell. */
    int64_t p = INT64_MAX, q = INT64_MAX - 1;
    pipe_file(io_dir, "p.raw", &p, 8);
    pipe_file(io_dir, "q.raw", &q, 8);
    io_fails(AS("dtype: i64, shape: [1]", "read, path: p.raw")
          "  - {use: compare, file: q.raw}\n", 6,
             "is 9223372036854775807 where 9223372036854775806");
    static const struct { const char *dtype; uint64_t a, b; const char *options; bool same; } far[] = {
        { "i64", 9007199254740993, 0, "abs: 9007199254740992", false },
        { "i64", 9007199254740993, 0, "abs: 9007199254740993", true },
        { "i64", 9007199254740993, 0, "abs: 9007199254740992.0", false },
        { "i64", (uint64_t)INT64_MIN, INT64_MAX, "abs: 18446744073709551614", false },
        { "i64", (uint64_t)INT64_MIN, INT64_MAX, "abs: 18446744073709551615", true },
        { "u64", UINT64_MAX, 0, "abs: 1e30", true }, { "u64", 10, 5, "abs: 4.9", false },
        { "u64", 10, 5, "rel: 1", true },
    };
    for (size_t i = 0; i < sizeof far / sizeof *far; i++) {
        pipe_file(io_dir, "p.raw", &far[i].a, 8);
        pipe_file(io_dir, "q.raw", &far[i].b, 8);
        char *y = format("buffers: {x: {dtype: %s, shape: [1]}}\nstages:\n  - {use: read, path: p.raw, out: x}\n"
                         "  - {use: compare, file: q.raw, %s}\n", far[i].dtype, far[i].options);
        if (far[i].same)
            io_runs(y);
        else
            io_fails(y, 6, "is expected; ");
    }
}

TEST_SUITE(io_errors, io_set_up, NULL, 0)
