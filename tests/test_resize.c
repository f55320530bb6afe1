/* test_resize.c - the kind `resize` in whole pipelines: the sizes that options give, frames of several sizes, with
 * fewer rows, of one value. What it computes, stages_cases.c compares with Pillow and NumPy. */
#include "iotest.h"

static void has_shape(const char *name, int64_t h, int64_t w, const char *what)
{
    gp_type t = pipe_npy_type(io_dir, name);
    ck_assert_msg(t.ndim == 2 && t.dim[0] == h && t.dim[1] == w, "%s: [%lld, %lld], not [%lld, %lld]", what,
                  (long long)t.dim[0], (long long)t.dim[1], (long long)h, (long long)w);
}

/* `bound`: what has to be declared where the sizes of frames differ. */
static const struct { const char *options, *bound; int h, w, high, wide; } sizes[] = {
    { "height: 4, width: 9", "", 20, 30, 4, 9 },
    { "height: 10", "[10, '<=50']", 20, 30, 10, 15 },
    { "width: 10", "['<=50', 10]", 20, 30, 7, 10 },
    { "width: 3", "['<=50', 3]", 1, 30, 1, 3 },
    { "height: 3", "[3, '<=50']", 6, 1, 3, 1 },                /* 0.5: up */
    { "height: 3", "[3, '<=50']", 6, 5, 3, 3 },                /* 2.5: up */
    { "height: 5, width: 0", "[5, '<=50']", 20, 30, 5, 8 },
    { "scale: 0.5", "", 20, 30, 10, 15 },
    { "scale: 0.5", "", 5, 3, 3, 2 },
    { "scale: 0.01", "", 20, 30, 1, 1 },
    { "scale: 2", "", 3, 5, 6, 10 },
    { "height: 10, width: 10, fit: inside", "", 20, 30, 7, 10 },
    { "height: 10, width: 10, fit: inside", "", 30, 20, 10, 7 },
    { "height: 10, width: 30, fit: inside", "", 20, 30, 10, 15 },
    { "height: 20, width: 30, fit: inside", "", 20, 30, 20, 30 },
    { "height: 200, width: 100, fit: inside", "", 20, 30, 20, 30 },
    { "height: 200, width: 100, fit: cover", "", 20, 30, 200, 100 },
    { "height: 5, width: 7, fit: contain", "", 20, 30, 5, 7 },
    { "height: 19, width: 100, fit: inside", "", 20, 30, 19, 29 },     /* 28.5: up */
    { "height: 200, width: 100, fit: inside, enlarge: true", "", 20, 30, 67, 100 },
    { "height: 10, width: 15, fit: inside, enlarge: true", "", 20, 30, 10, 15 },
    { "height: 4, width: 1000, fit: inside, enlarge: true", "", 1, 1, 4, 4 },
    { "height: 9, width: 9, fit: inside", "", 1, 30, 1, 9 },
    { "height: 1, width: 1, fit: inside", "", 20, 30, 1, 1 },
};
enum { SIZES = sizeof sizes / sizeof *sizes };

/* Of frames of one size; where sizes may differ, of the largest that there can be, and of a smaller one. */
TEST_LOOP(size, 0, SIZES)
{
    static const struct { const char *le; int more; } declared[] = { { "", 0 }, { "<=", 0 }, { "<=", 7 } };
    char yaml[800], made[80] = "", what[100];
    io_count_npy("in.npy", U8(sizes[_i].h, sizes[_i].w), 0);
    for (int k = 0; k < 3; k++) {
        if (k && *sizes[_i].bound)
            snprintf(made, sizeof made, ", y: {shape: %s}", sizes[_i].bound);
        snprintf(yaml, sizeof yaml, "buffers: {x: {dtype: u8, shape: ['%s%d', '%s%d']}%s}\nstages:\n"
                 "  - {use: read, path: in.npy, out: x}\n  - {use: resize, %s, out: y}\n"
                 "  - {use: write, path: 'out/%%d.npy', if_exists: replace}\n", declared[k].le,
                 sizes[_i].h + declared[k].more, declared[k].le, sizes[_i].w + declared[k].more, made, sizes[_i].options);
        ck_assert_uint_eq(io_runs(yaml), 1);
        has_shape("out/0.npy", sizes[_i].high, sizes[_i].wide, TEXT(what, "%s, run %d", sizes[_i].options, k));
    }
}

/* High and wide frames beside each other, of which the bound of the box is as high and as wide as the box. */
TEST(shapes)
{
    static const int in[][2] = { { 40, 60 }, { 40, 10 }, { 7, 60 }, { 3, 4 }, { 40, 40 } };
    static const int want[][2] = { { 13, 20 }, { 20, 5 }, { 2, 20 }, { 3, 4 }, { 20, 20 } };
    for (int i = 0; i < 5; i++)
        io_count_npy(format("%d.npy", i), U8(in[i][0], in[i][1]), i);
    ck_assert_uint_eq(io_runs("depth: 6\nbuffers: {x: {dtype: u8, shape: ['<=40', '<=60']}}\nstages:\n"
                              "  - {use: read, path: '?.npy', out: x}\n  - {use: resize, height: 20, width: 20, fit: inside}\n"
                              "  - {use: write, path: 'out/%n.npy'}\n"), 5);
    for (int i = 0; i < 5; i++)
        has_shape(format("out/%d.npy", i), want[i][0], want[i][1], "height: 20, width: 20, fit: inside");
    io_counts("out/3.npy", U8(3, 4), 3);       /* which fits as it is */
}

/* A bound that was declared is kept: a frame that comes out larger is an error, not cut. */
TEST(beyond)
{
    io_count_npy("0.npy", U8(20, 30), 0);
    io_count_npy("1.npy", U8(5, 40), 0);
    io_fails("buffers: {x: {dtype: u8, shape: ['<=20', '<=40']}, y: {shape: [10, '<=50']}}\nstages:\n"
             "  - {use: read, path: '?.npy', out: x}\n  - {use: resize, height: 10, out: y}\n"
             "  - {use: write, path: 'out/%n.npy'}\n", 1, "stage 'resize' makes u8 [10, 80] of a smaller frame, and 'y' is "
             "u8 [10, <=50], of which frames may be shorter in axis 0 and where it has bounds: leave such frames out before, "
             "or raise the bounds of 'y' under 'buffers'");
    io_fails("buffers: {x: {dtype: u8, shape: ['<=20', '<=40']}}\nstages:\n  - {use: read, path: '?.npy', out: x}\n"
             "  - {use: resize, height: 10, out: y}\n  - {use: discard}\n", 3,
             "'height' alone makes pictures of any width");
}

/* More than 2^31 - 1 pixels for one: the sides are what a picture may have. */
TEST_LOOP(too_much_smaller, 0, 4)
{
    static const struct { const char *shape, *options, *taps; } cases[] = {
        { "536870912, 1", "height: 1, method: cubic", "2147483648" },
        { "1, 536870912", "width: 1, method: cubic", "2147483648" },
        { "1, 1073741824", "height: 1, width: 1", "2147483648" },
        { "1073741824, 1", "height: 1, width: 1, fit: inside, method: cubic", "4294967296" },
    };
    char *yaml = format("buffers: {x: {dtype: u8, shape: [%s]}}\nstages:\n"
        "  - {use: generate, frames: 1, out: x}\n  - {use: resize, %s}\n  - {use: discard}\n", cases[_i].shape, cases[_i].options);
    char *says = format("makes one pixel of at most 2147483647 in each axis, and here of %s: set "
                        "'method: area'", cases[_i].taps);
    io_fails(yaml, 3, says);
}

/* The last rows of a raw file are a picture of their own, as long as that is no wider. */
TEST(partial)
{
    size_t n;
    io_count_raw("a.raw", 28 * 8);
    io_runs("buffers: {x: {dtype: u8, shape: [20, 8]}}\nstages:\n  - {use: read, path: a.raw, out: x}\n"
            "  - {use: resize, scale: 0.5}\n  - {use: write, path: b.raw}\n");
    free(pipe_read(io_dir, "b.raw", &n));
    ck_assert_uint_eq(n, (10 + 4) * 4);
    io_fails("buffers: {x: {dtype: u8, shape: [20, 8]}}\nstages:\n  - {use: read, path: a.raw, out: x}\n"
             "  - {use: resize, height: 10}\n  - {use: write, path: b.raw}\n", 1,
             "makes u8 [10, 10] of a smaller frame");
}

/* Weights have the sum 1: a picture of one value stays that, the largest too, in any size. */
TEST_LOOP(flat, 0, 5)
{
    static const char *const method[] = { "bilinear", "area", "cubic", "nearest", "bilinear, antialias: false" };
    static const struct { const char *dtype, *value; } types[] = {
        { "u8", "255" }, { "u16", "65535" }, { "i8", "-128" },
    };
    static const char *const options[] = { "height: 1, width: 1", "scale: 0.37", "height: 300, width: 77",
                                           "height: 13, width: 13, fit: cover" };
    for (int t = 0; t < 3; t++)
        for (int k = 0; k < 4; k++) {
            char *yaml = format("buffers: {x: {dtype: %s, shape: [113, 217]}}\nstages:\n"
                "  - {use: generate, pattern: constant, value: %s, frames: 1, out: x}\n"
                "  - {use: resize, %s, method: %s, out: y}\n"
                "  - {use: reduce, op: min, in: y, out: low}\n  - {use: reduce, op: max, in: y, out: high}\n"
                "  - {use: write, in: low, path: low.csv}\n  - {use: write, in: high, path: high.csv}\n",
                types[t].dtype, types[t].value, options[k], method[_i]);
            io_runs(yaml);
            char *line = format("%s\n", types[t].value);
            io_holds("low.csv", line, strlen(line));
            io_holds("high.csv", line, strlen(line));
        }
}

TEST_SUITE(resize, io_set_up, NULL, 0)
