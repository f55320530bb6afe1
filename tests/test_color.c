/* test_color.c - the kind `color` in whole pipelines: frames of other depths, of several sizes, with fewer rows.
 * What it computes, stages_cases.c compares with NumPy. */
#include "iotest.h"

/* Limited 8 bits are a quarter of 10 bits, both ways, whatever the colors. */
TEST(depths)
{
    io_count_raw("a.raw", 2 * 36);
    io_runs("buffers: {x: {dtype: u8, shape: [6, 6]}, deep: {dtype: u16}, back: {dtype: u8}}\nstages:\n"
            "  - {use: read, path: a.raw, out: x}\n  - {use: color, from: yuv420, to: yuv420, bits: 10, out: deep}\n"
            "  - {name: w, use: write, path: deep.raw}\n"
            "  - {name: c, use: color, in: deep, from: yuv420, to: yuv420, bits: 10, out: back}\n"
            "  - {use: compare, in: [x, back]}\n");
    OWNED uint16_t *deep = pipe_read_all(io_dir, "deep.raw", 4 * 36);
    for (int i = 0; i < 2 * 36; i++)
        ck_assert_int_eq(deep[i], 4 * i);
}

/* To 4:4:4 with the nearest chroma and back by means, nothing changes; nor from RGB to BGR and back. */
TEST(and_back)
{
    io_count_raw("a.raw", 216);
    io_runs("buffers: {x: {dtype: u8, shape: [9, 12]}}\nstages:\n  - {use: read, path: a.raw, out: x}\n"
            "  - {use: color, from: yuv420, to: yuv444, chroma: nearest, out: full}\n"
            "  - {name: c, use: color, from: yuv444, to: yuv420, out: back}\n  - {use: compare, in: [x, back]}\n");
    io_runs("buffers: {x: {dtype: u8, shape: [4, 9, 3]}}\nstages:\n  - {use: read, path: a.raw, out: x}\n"
            "  - {use: color, from: rgb, to: bgr, out: b}\n  - {name: c, use: color, from: bgr, to: rgb, out: back}\n"
            "  - {use: compare, in: [x, back]}\n");
}

/* Frames of their own shapes within bounds. */
TEST(shapes)
{
    io_count_npy("0.npy", U8(3, 4), 0);
    io_count_npy("1.npy", U8(6, 2), 40);
    io_count_npy("2.npy", U8(6, 4), 80);
    ck_assert_uint_eq(io_runs("buffers: {x: {dtype: u8, shape: ['<=6', '<=4']}}\nstages:\n"
                              "  - {use: read, path: '?.npy', out: x}\n  - {use: color, from: yuv420, to: rgb}\n"
                              "  - {use: color, from: rgb, to: gray}\n  - {use: write, path: 'out/%d.npy'}\n"), 3);
    static const int64_t want[][2] = { { 2, 4 }, { 4, 2 }, { 4, 4 } };
    for (int i = 0; i < 3; i++) {
        gp_type t = pipe_npy_type(io_dir, format("out/%d.npy", i));
        ck_assert(t.ndim == 2 && t.dim[0] == want[i][0] && t.dim[1] == want[i][1]);
    }
}

/* The last rows of a raw file are no planes. */
TEST(partial)
{
    io_count_raw("a.raw", 28);
    io_fails("buffers: {x: {dtype: u8, shape: [6, 4]}}\nstages:\n  - {use: read, path: a.raw, out: x}\n"
             "  - {use: color, from: yuv420, to: rgb}\n  - {use: discard}\n", 1, "a frame of 'yuv420' is (3 H / 2, W)");
}

TEST_SUITE(color, io_set_up, NULL, 0)
