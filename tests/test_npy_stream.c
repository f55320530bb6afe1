/* test_npy_stream.c - arrays in .npy form one after the other, through processes, as numpy.lib.format reads and writes them. */
#include "iotest.h"

/* `cat` of these files is cut into frames of [2, 3]. */
#define READ(...) "buffers: {x: {dtype: u8, shape: [2, 3]}}\nstages:\n  - {use: read, command: [cat" __VA_ARGS__ \
    "], format: npy, out: x}\n"

static void arrays(void)
{
    io_count_npy("frame.npy", U8(2, 3), 0);
    io_count_npy("stack.npy", U8(4, 2, 3), 10);
    io_count_npy("rows.npy", U8(5, 3), 50);
    io_count_npy("none.npy", U8(0, 3), 0);
}

/* Frames, stacks and rows, in any order; what has no rows makes no frame. */
static const struct { const char *files; uint64_t frames; } streams[] = {
    { ", frame.npy", 1 }, { ", stack.npy", 4 }, { ", frame.npy, frame.npy, stack.npy", 6 }, { ", none.npy, stack.npy, none.npy", 4 },
    { ", rows.npy", 3 }, { ", rows.npy, frame.npy", 4 }, { ", none.npy", 0 },
};

TEST_EACH(in, streams)
{
    arrays();
    ck_assert_uint_eq(io_runs(format(READ("%s") "  - {use: write, path: out.raw}\n", streams[_i].files)), streams[_i].frames);
    io_done(format("buffers: {b: {dtype: u8, shape: [1]}}\nstages:\n  - {use: read, command: [sh, -c, 'for f in "
                               "$$(echo %s | tr -d ,); do tail -c +129 $$f; done'], out: b}\n"
                               "  - {use: write, path: same.raw}\n", streams[_i].files));
    size_t n;
    OWNED char *same = pipe_read(io_dir, "same.raw", &n);
    io_holds("out.raw", same, n);
}

/* The last frame of each array may have fewer rows, and be left out. */
TEST(in_whole)
{
    arrays();
    ck_assert_uint_eq(io_runs("buffers: {x: {dtype: u8, shape: [2, 3]}}\nstages:\n"
                              "  - {use: read, command: [cat, rows.npy, frame.npy], format: npy, tail: drop, out: x}\n"
                              "  - {use: write, path: out.raw}\n"), 3);
    ck_assert_uint_eq(io_runs("buffers: {x: {dtype: u8, shape: [2, 3]}}\nstages:\n"
                              "  - {use: read, path: 'r*.npy', tail: drop, out: x}\n  - {use: discard}\n"), 2);
}

/* What is written is read again: each frame with its own header, those with fewer rows, too. */
TEST(out)
{
    arrays();
    io_runs(format(READ(", stack.npy, rows.npy") "  - {use: write, command: [sh, -c, 'cat > all'], format: npy}\n"));
    size_t n;
    free(pipe_read(io_dir, "all", &n));
    ck_assert_uint_eq(n, 7 * 128 + 4 * 6 + 5 * 3);
    ck_assert_uint_eq(io_runs(format(READ(", all") "  - {use: write, path: 'out/%%d.npy'}\n")), 7);
    io_counts("out/1.npy", U8(2, 3), 16), io_counts("out/6.npy", U8(1, 3), 62);
    ck_assert_uint_eq(io_runs("buffers: {p: {dtype: u8, shape: ['<=5', '<=3']}}\nstages:\n"
                              "  - {use: read, path: '[fr]*.npy', out: p}\n"
                              "  - {use: write, command: [sh, -c, 'cat > varied'], format: npy}\n"), 2);
    free(pipe_read_all(io_dir, "varied", 2 * 128 + 6 + 15));
}

static const struct { const char *from, *says; } wrong[] = {
    { "printf 'no array, but text'", "frame 0: 'sh' is not a .npy file" },
    { "printf abc", "frame 0: 'sh' is not a .npy file" },
    { "head -c 60 frame.npy", "frame 0: 'sh' " },
    { "head -c 130 frame.npy", "frame 0: 'sh' ends within the frame, which has 2 of 6 bytes" },
    { "cat frame.npy; head -c 131 frame.npy", "frame 1: 'sh' ends within the frame, which has 3 of 6 bytes" },
    { "cat frame.npy; echo more and more", "frame 1: 'sh' is not a .npy file" },
    { "cat frame.npy wide.npy", "frame 1: 'sh' " },
    { "cat other.npy", "frame 0: 'sh' " },
    { "printf '\\223NUMPY\\2\\0\\377\\377\\377\\177'; cat frame.npy", "frame 0: 'sh' " },
    { "cat frame.npy; exit 3", "frame 1: 'sh' ended with exit status 3" },
};

TEST_EACH(refused, wrong)
{
    arrays();
    io_count_npy("wide.npy", U8(2, 4), 0);
    io_count_npy("other.npy", (gp_type){ GP_U16, 2, { 2, 3 } }, 0);
    pipe_text(io_dir, "made.sh", wrong[_i].from);
    io_fails("buffers: {x: {dtype: u8, shape: [2, 3]}}\nstages:\n  - {use: read, command: [sh, made.sh], format: npy, out: x}\n"
             "  - {use: discard}\n", 1, wrong[_i].says);
}

TEST_SUITE(npy_stream, io_set_up, NULL, 0)
