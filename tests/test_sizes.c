/* test_sizes.c - pictures of different sizes of which no shape is declared: their headers say the bounds. */
#include "iotest.h"

#define READ "stages:\n  - {use: read, path: '*.p?m'%s}\n"

/* A picture of h x w whose bytes are all `value`; c is 1 or 3. */
static void put(const char *name, int h, int w, int c, int value)
{
    char file[4000];
    int n = snprintf(file, sizeof file, "P%d\n%d %d\n255\n", c == 1 ? 5 : 6, w, h);
    ck_assert_int_lt(n + h * w * c, (int)sizeof file);
    memset(file + n, value, (size_t)(h * w * c));
    pipe_file(io_dir, name, file, (size_t)(n + h * w * c));
}

/* The run goes on, with so many frames in and one of them failed. */
static void one_fails(const char *yaml, uint64_t in)
{
    pipe_result r = io_done(yaml);
    ck_assert_uint_eq(r.account[0].in, in);
    ck_assert_uint_eq(r.account[0].failed, 1);
}

static void is_all(const char *name, size_t n, int value)
{
    char bytes[4000];
    memset(bytes, value, n);
    io_holds(name, bytes, n);
}

static void wide_high_small(void)
{
    put("b.ppm", 3, 20, 3, 1), put("c.ppm", 30, 4, 3, 2), put("d.ppm", 2, 2, 3, 3);
}

/* Each comes as it is, by any number of workers; the largest sides are the bounds. */
TEST_LOOP(bounds, 0, 2)
{
    wide_high_small();
    ck_assert_uint_eq(io_runs(format(READ "  - {use: write, path: 'out/%%n.raw'}\n", _i ? ", workers: 3" : "")), 3);
    is_all("out/b.raw", 180, 1), is_all("out/c.raw", 360, 2), is_all("out/d.raw", 12, 3);
    io_fails(format(READ "  - {use: group, frames: 2}\n  - {use: discard}\n", ""), 3, "those of 'read' may differ");
    io_fails(format("buffers: {p: {dtype: u8, shape: [3, 20, 3]}}\n" READ "  - {use: discard}\n", ", out: p"), 1,
             "c.ppm' holds u8 [30, 4, 3], and 'buffers' declares u8 [3, 20, 3]");
}

/* One side is the same in all: it is no bound. One size: there are none. */
TEST(same)
{
    put("a.pgm", 3, 4, 1, 1), put("b.pgm", 5, 4, 1, 2);
    io_fails(format(READ "  - {use: group, frames: 2}\n  - {use: discard}\n", ""), 3, "those of 'read' may differ");
    put("b.pgm", 3, 4, 1, 2);
    io_runs(format(READ "  - {use: group, frames: 2}\n  - {use: write, path: out.npy}\n", ""));
    put("a.pgm", 5, 4, 1, 1);
    io_runs("stages:\n  - {use: read, path: a.pgm}\n  - {use: write, path: joined.raw}\n");
}

/* Those of another type do not count, nor do broken ones, nor headers of pictures that cannot be there. */
static const struct { const char *name, *text, *says; } odd[] = {
    { "e.pgm", "P5\n40 40\n255\n", "e.pgm' holds u8 [40, 40], the first files u8 [<=30, <=20, 3]: 'colors: rgb' makes RGB of gray "
      "pictures and of those with alpha, 'colors: gray' luma of all" },
    { "e.ppm", "P6\n20000 20000\n255\n1", "e.ppm' says that it has 20000 x 20000 pixels, and 'max_pixels' is 268435456: a larger "
      "number reads it" },
    { "e.ppm", "P6\n10000 10000\n255\n1", "e.ppm' holds u8 [10000, 10000, 3], which does not fit in u8 [<=30, <=20, 3], the "
      "largest of the first 4 files" },
    { "e.ppm", "P6\n2000000000 2000000000\n255\n1", "e.ppm' says that it has 2000000000 x 2000000000 pixels" },
    { "e.ppm", "no picture", "e.ppm' is not a PNM file" },
    { "e.ppm", "", "e.ppm' is empty" },
};

TEST_EACH(odd_ones, odd)
{
    wide_high_small();
    pipe_text(io_dir, odd[_i].name, odd[_i].text);
    io_fails(format(READ "  - {use: discard}\n", ""), strcmp(odd[_i].name, "e.pgm") ? 1 : 3, odd[_i].says);
    one_fails(format(READ "  - {use: write, path: 'out/%%n.raw'}\n", ", on_error: drop"), 4);
    ck_assert_int_eq(io_files("out"), 3);
    is_all("out/c.raw", 360, 2);
}

/* No memory is taken for what says that it has more pixels; pages of TIFF are pictures, too. */
static const struct { const char *path, *says; } many[] = {
    { "c.ppm", "c.ppm' says that it has 4 x 30 pixels, and 'max_pixels' is 119: a larger number reads it" },
    { "'[bc].ppm'", "c.ppm' says that it has 4 x 30 pixels, and 'max_pixels' is 119" },
    { "a.tif", "a.tif' (page 0) says that it has 4 x 30 pixels, and 'max_pixels' is 119" },
};

TEST_EACH(max_pixels, many)
{
    wide_high_small();
    io_runs("stages:\n  - {use: read, path: c.ppm}\n  - {use: write, path: a.tif}\n");
    io_fails(format("stages:\n  - {use: read, path: %s, max_pixels: 119}\n  - {use: discard}\n", many[_i].path), _i == 1 ? 1 : 3,
             many[_i].says);
    io_runs(format("stages:\n  - {use: read, path: %s, max_pixels: 120}\n  - {use: discard}\n", many[_i].path));
}

/* Which of two types is meant is not for the order of names to say. */
TEST(of_two_types)
{
    wide_high_small();
    pipe_text(io_dir, "e.ppm", "P6\n40 40\n65535\n");
    for (int drop = 0; drop < 2; drop++)
        io_fails(format(READ "  - {use: discard}\n", drop ? ", on_error: drop" : ""), 3, "b.ppm', the first file, u8: "
                 "pictures of 8 and of 16 bits, or floats, are read by a stage each; or declare which are meant, as 'dtype: "
                 "u16' under 'buffers'");
    one_fails(format("buffers: {read: {dtype: u8}}\n" READ "  - {use: write, path: 'out/%%n.raw'}\n", ", on_error: drop"), 4);
    is_all("out/c.raw", 360, 2);
}

/* Gray ones among colored ones, as one wants them. */
TEST_LOOP(colors, 0, 2)
{
    wide_high_small();
    put("e.pgm", 2, 3, 1, 9);
    ck_assert_uint_eq(io_runs(format(READ "  - {use: write, path: 'out/%%n.raw'}\n", _i ? ", colors: gray" : ", colors: rgb")), 4);
    is_all("out/b.raw", _i ? 60 : 180, 1), is_all("out/e.raw", _i ? 6 : 18, 9);
}

/* Channels may be a bound, too; then none are converted. */
TEST_LOOP(channels, 0, 2)
{
    int a[] = { 7, 7, 7, 7, 7, 7 };
    wide_high_small();
    pipe_file(io_dir, "a.raw", (char *)a, 2 * 3 * 4);
    io_runs("buffers: {x: {dtype: u8, shape: [2, 3, 4]}}\nstages:\n  - {use: read, path: a.raw, out: x}\n"
            "  - {use: write, path: e.png}\n");
    char *y = format("buffers: {x: {dtype: u8, shape: ['<=30', '<=20', '<=4']}}\nstages:\n"
        "  - {use: read, path: '[bcde].p?[mg]', out: x%s}\n  - {use: write, path: 'out/%%n.raw'}\n", _i ? ", colors: rgb" : "");
    ck_assert_uint_eq(io_runs(y), 4);
    free(pipe_read_all(io_dir, "out/e.raw", _i ? 18 : 24));
    is_all("out/b.raw", 180, 1);
}

/* What makes one size of all is of one shape, and can be grouped; what does so in one axis, in that one. */
TEST_LOOP(one_size, 0, 5)
{
    static const struct { const char *stage; size_t bytes; const char *says; } cases[] = {
        { "resize, height: 4, width: 5", 3 * 4 * 5 * 3, NULL }, { "crop, size: [2, 2]", 3 * 2 * 2 * 3, NULL },
        { "resize, height: 4", 0, "'height' alone makes pictures of any width" }, { "resize, height: 2, width: 2, fit: inside", 0, "'resize' may differ" },
        { "crop, size: [2]", 0, "'crop' may differ" },
    };
    wide_high_small();
    char *y = format(READ "  - {use: %s}\n  - {use: group, frames: 3}\n  - {use: write, path: all.raw}\n", "", cases[_i].stage);
    if (cases[_i].says) {
        io_fails(y, 3, cases[_i].says);
        return;
    }
    ck_assert_uint_eq(io_runs(y), 3);
    free(pipe_read_all(io_dir, "all.raw", cases[_i].bytes));
}

/* A declared shape alone: the type is that of what comes in. */
TEST(shape_without_type)
{
    wide_high_small();
    pipe_text(io_dir, "half.lua", "function process(f, x, y)\n  y.shape = {1, x.shape[2], 3}\n"
              "  for i = 1, x.shape[2] do for k = 1, 3 do y:set(1, i, k, x:at(1, i, k)) end end\nend\n");
    ck_assert_uint_eq(io_runs("buffers: {y: {shape: ['<=30', '<=20', 3]}}\n" "stages:\n  - {use: read, path: '*.ppm'}\n"
                              "  - {use: lua, script: half.lua, out: y}\n  - {use: write, path: 'out/%n.raw'}\n"), 3);
    is_all("out/b.raw", 60, 1), is_all("out/c.raw", 12, 2), is_all("out/d.raw", 6, 3);
}

/* The first one says what they are; where broken ones are left out, the first that is whole. */
TEST(first)
{
    wide_high_small();
    pipe_text(io_dir, "a.ppm", "no picture");
    io_fails(format(READ "  - {use: discard}\n", ""), 3, "a.ppm' is not a PNM file");
    one_fails(format(READ "  - {use: write, path: 'out/%%n.raw'}\n", ", on_error: drop"), 4);
    io_fails(format(READ "  - {use: discard}\n", ", on_error: drop, max_dropped: 0"), 1, "a.ppm' is not a PNM");
    is_all("out/b.raw", 180, 1);
}

/* A thousand are looked at; one behind them that is larger is an error, or left out. */
TEST(later)
{
    for (int i = 0; i < 1000; i++)
        put(format("%04d.pgm", i), 1 + i % 2, 2, 1, i % 256);
    put("1000.pgm", 1, 2, 1, 7), put("1001.pgm", 3, 2, 1, 8);
    io_fails(format(READ "  - {use: discard}\n", ""), 1, "frame 1001: '");
    io_fails(format(READ "  - {use: discard}\n", ""), 1, "1001.pgm' holds u8 [3, 2], which does not fit in u8 [<=2, 2], the "
             "largest of the first 1000 files: declare the largest under 'buffers'");
    one_fails(format(READ "  - {use: write, path: 'out/%%n.raw'}\n", ", on_error: drop"), 1002);
    ck_assert_int_eq(io_files("out"), 1001);
    is_all("out/1000.raw", 2, 7);
    ck_assert_uint_eq(io_runs(format("buffers: {p: {shape: ['<=3', 2]}}\n" READ "  - {use: discard}\n", ", out: p")), 1002);
}

/* Much may stand before the picture in a file. */
TEST(long_heads)
{
    static char comment[200000];
    put("a.pgm", 1, 2, 1, 1);
    memset(comment, '#', sizeof comment);
    memcpy(comment, "P5\n", 3);
    memcpy(comment + sizeof comment - 21, "\n4 3\n255\nabcdefghijkl", 21);
    pipe_file(io_dir, "b.pgm", comment, sizeof comment);
    io_runs(format(READ "  - {use: write, path: 'out/%%n.raw'}\n", ""));
    io_holds("out/b.raw", "abcdefghijkl", 12);
}

TEST_SUITE(sizes, io_set_up, NULL, 0)
