/* test_rearrange.c - stages that rearrange elements, in whole pipelines: frames with fewer rows, frames that differ in
 * size, holes. What they make of whole frames, stages_cases.c compares with NumPy. */
#include "iotest.h"

/* Raw rows of 8 bytes, 10 a frame and 4 in the last; the bytes of what comes out. */
static char *of_rows(const char *stages, size_t *n)
{
    io_count_raw("a.raw", 14 * 8);
    char *yaml = format("buffers: {x: {dtype: u8, shape: [10, 8]}}\nstages:\n"
        "  - {use: read, path: a.raw, out: x}\n%s  - {use: write, path: b.raw, if_exists: replace}\n", stages);
    io_runs(yaml);
    return pipe_read(io_dir, "b.raw", n);
}

/* Which row of a frame row k of what comes out is, -1: none, but zeros; which column. */
static int same(int k) { return k; }
static int row(int k, int rows) { (void)rows; return k; }
static int last_first(int k, int rows) { return rows - 1 - k; }
static int third(int k, int rows) { (void)rows; return k * 3; }
static int after_two(int k, int rows) { (void)rows; return k - 2; }
static int last_and_first(int k, int rows) { return k ? 0 : rows - 1; }
static int again(int k, int rows) { return k % rows; }
static int three_back(int k, int rows) { return (k + 3) % rows; }
static int from_left(int k) { return 7 - k; }
static int at_two(int k) { return k + 2; }
static int one_on(int k) { return (k + 7) % 8; }

static const struct { const char *stages; int rows[2], wide; int (*row)(int k, int rows),
                      (*column)(int k); } parts[] = {
    { "  - {use: slice, index: '::-1'}\n", { 10, 4 }, 8, last_first, same },
    { "  - {use: slice, index: '::3, ::-1'}\n", { 4, 2 }, 8, third, from_left },
    { "  - {use: slice, index: ':6, 2:5'}\n", { 6, 4 }, 3, row, at_two },
    { "  - {use: rotate90, times: 2}\n", { 10, 4 }, 8, last_first, from_left },
    { "  - {use: pad, before: [2, 0]}\n", { 12, 6 }, 8, after_two, same },
    { "  - {use: pad, after: [3, 0], edge: wrap}\n", { 13, 7 }, 8, again, same },
    { "  - {use: concat, in: {a: x, b: x}}\n", { 20, 8 }, 8, again, same },
    { "  - {use: reshape, shape: [-1, 4]}\n  - {use: reshape, shape: [-1, 8]}\n", { 10, 4 }, 8, row, same },
    { "  - {use: crop, size: [4, 4], at: [0, 2]}\n", { 4, 4 }, 4, row, at_two },
    { "  - {use: roll, shift: [-3, 1], axis: [0, 1]}\n", { 10, 4 }, 8, three_back, one_on },
    { "  - {use: gather, index: [-1, 0]}\n", { 2, 2 }, 8, last_and_first, same },
    { "  - {use: gather, axis: 1, index: [7, 6, 5, 4, 3, 2, 1, 0]}\n", { 10, 4 }, 8, row, from_left },
    { "  - {use: topk, k: 3, axis: 0}\n", { 3, 3 }, 8, last_first, same },
};

TEST_EACH(fewer_rows, parts)
{
    size_t n, want = 0;
    OWNED char *out = of_rows(parts[_i].stages, &n);
    for (int f = 0; f < 2; f++)
        for (int y = 0; y < parts[_i].rows[f]; y++)
            for (int x = 0; x < parts[_i].wide; x++, want++) {
                int r = parts[_i].row(y, f ? 4 : 10);
                int v = r < 0 ? 0 : 8 * (10 * f + r) + parts[_i].column(x);
                ck_assert_msg(want < n && (unsigned char)out[want] == v, "%s: frame %d, (%d, %d) of %zu bytes",
                              parts[_i].stages, f, y, x, n);
            }
    ck_assert_uint_eq(n, want);
}

/* What would have another width is refused, by the frame's number. */
TEST_LOOP(fewer_rows_refused, 0, 10)
{
    static const struct { const char *stages, *says; } cases[] = {
        { "  - {use: transpose}\n", "stage 'transpose' makes u8 [8, 4] of a smaller frame, and 'transpose' is u8 [8, "
                                    "10]" },
        { "  - {use: rotate90}\n", "stage 'rotate90' makes u8 [8, 4] of a smaller frame" },
        { "  - {use: crop, size: [5, 8]}\n", "stage 'crop': 'size' is 5 in axis 0, which is larger than the frame, u8 "
                                             "[4, 8]" },
        { "  - {use: crop, size: [2, 8], at: [3, 0]}\n", "elements 3 to 4 of axis 0 are not all inside u8 [4, 8]" },
        { "  - {use: slice, index: '4:'}\n", "'4:' selects nothing along axis 0 of u8 [4, 8]" },
        { "  - {use: slice, index: '9'}\n", "'9' selects nothing along axis 0 of u8 [4, 8]" },
        { "  - {use: slice, index: '-9:3'}\n", "makes u8 [3, 8] of a smaller frame" },
        { "  - {use: reshape, shape: [8, 10]}\n", "u8 [4, 8] has 32 elements, and u8 [8, 10] needs 80" },
        { "  - {use: gather, index: [0, 3, 4]}\n", "stage 'gather': there is no place 4 along axis 0 of u8 [4, 8]" },
        { "  - {use: topk, k: 5, axis: 0}\n", "stage 'topk': 'k' is 5, and axis 0 of u8 [4, 8] has 4 elements" },
    };
    io_count_raw("a.raw", 14 * 8);
    char *yaml = format("buffers: {x: {dtype: u8, shape: [10, 8]}}\nstages:\n  - {use: read, path: a.raw, out: x}\n"
                        "%s  - {use: write, path: b.raw}\n", cases[_i].stages);
    io_fails(yaml, 1, cases[_i].says);
}

/* Pictures that differ in size: those that are too small fail, or are dropped, and the others go on. */
TEST(sizes)
{
    static const int in[][2] = { { 40, 60 }, { 7, 10 }, { 20, 60 }, { 9, 8 }, { 40, 9 } };
    for (int i = 0; i < 5; i++)
        io_count_npy(format("%d.npy", i), U8(in[i][0], in[i][1]), i);
    io_go("depth: 6\non_error: drop\nbuffers: {x: {dtype: u8, shape: ['<=40', '<=60']}}\nstages:\n"
          "  - {use: read, path: '?.npy', out: x}\n  - {use: pad, before: [0, 1]}\n"
          "  - {use: slice, index: '..., 1:'}\n  - {use: crop, size: 9, at: 0}\n"
          "  - {use: write, path: 'out/%n.npy'}\n");
    for (int i = 0; i < 5; i++)
        if (i != 1)
            io_counts(format("out/%d.npy", i), U8(9, in[i][1]), i);
    ck_assert_int_eq(io_files("out"), 4);
}

/* Of frames up to 40 rows "-20:13" takes at most 13: of 20 to 33 rows fewer the more there are. */
TEST(bounds)
{
    io_count_npy("0.npy", U8(40, 2), 0);
    io_count_npy("1.npy", U8(20, 2), 0);
    io_count_npy("2.npy", U8(30, 2), 0);
    io_count_npy("3.npy", U8(5, 2), 0);
    io_go("on_error: drop\nbuffers: {x: {dtype: u8, shape: ['<=40', '<=2']}}\nstages:\n"
          "  - {use: read, path: '?.npy', out: x}\n  - {use: slice, index: '-20:13'}\n"
          "  - {use: write, path: 'out/%n.npy'}\n");
    io_counts("out/1.npy", U8(13, 2), 0);
    io_counts("out/2.npy", U8(3, 2), 20);
    io_counts("out/3.npy", U8(5, 2), 0);
}

TEST_SUITE(rearrange, io_set_up, NULL, 0)
