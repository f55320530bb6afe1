/* test_shuffle.c - `start` and `shuffle` of the kind `read`: of files that are a frame each, and of those that are cut. */
#include "iotest.h"

enum { N = 53 };

/* Frames of one byte, which is their number: N files of .npy, two of raw data, and one of all. */
static void put(void)
{
    unsigned char all[N];
    for (int i = 0; i < N; i++)
        all[i] = (unsigned char)i, io_count_npy(format("f%d.npy", i), U8(1), i);
    pipe_file(io_dir, "all.raw", all, N);
    pipe_file(io_dir, "part0.raw", all, 20);
    pipe_file(io_dir, "part1.raw", all + 20, N - 20);
}

/* Of .npy a file is a frame, unless that is declared. */
static const char *declared(const char *path)
{
    return strstr(path, ".npy") ? "{}" : "{x: {dtype: u8, shape: [1]}}";
}

/* The frames that come, in their order. */
static unsigned char *frames(const char *path, const char *options, int want)
{
    size_t n;
    io_runs(format("buffers: %s\nstages:\n  - {use: read, path: '%s', out: x%s}\n"
                   "  - {use: write, path: out.raw}\n", declared(path), path, options));
    unsigned char *got = (unsigned char *)pipe_read(io_dir, "out.raw", &n);
    ck_assert_msg(n == (size_t)want, "%s%s: %zu frames, not %d", path, options, n, want);
    return got;
}

static const char *const sources[] = { "f*.npy", "f%d.npy", "all.raw", "part*.raw" };

TEST_LOOP(start, 0, 4)
{
    static const struct { const char *options; int first, n; } cases[] = {
        { ", start: 0", 0, N }, { ", start: 1", 1, N - 1 }, { ", start: 30", 30, N - 30 }, { ", start: 52", 52, 1 },
        { ", start: 18, frames: 5", 18, 5 }, { ", start: 50, frames: 7", 50, 3 }, { ", start: 25, workers: 3", 25, N - 25 },
        { ", start: 50, loop: true, frames: 60", 50, 60 },
    };
    put();
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        OWNED unsigned char *got = frames(sources[_i], cases[k].options, cases[k].n);
        for (int i = 0; i < cases[k].n; i++)
            ck_assert_msg(got[i] == (cases[k].first + i) % N, "%s%s: frame %d is %d", sources[_i], cases[k].options, i, got[i]);
    }
}

/* Each frame once; sources of as many frames have them in one order, whatever their workers; other passes and seeds have
 * others, and `start` is within it. */
TEST(shuffled)
{
    put();
    OWNED unsigned char *want = frames("all.raw", ", shuffle: 7, loop: true, frames: 106", 2 * N);
    OWNED unsigned char *other = frames("all.raw", ", shuffle: 8", N);
    int moved = 0, same = 0, as_before = 0;
    bool there[2][256] = { { false } };
    for (int i = 0; i < 2 * N; i++)
        there[i / N][want[i]] = true;
    for (int i = 0; i < N; i++) {
        ck_assert(there[0][i] && there[1][i]);
        moved += want[i] != i, same += want[i] == other[i], as_before += want[i] == want[N + i];
    }
    ck_assert(moved > N / 2 && same < N / 2 && as_before < N / 2);
    for (int k = 0; k < 3; k++)
        for (int workers = 1; workers <= 4; workers += 3) {
            OWNED unsigned char *got = frames(sources[k], format(", shuffle: 7, workers: %d, loop: true, frames: 106", workers),
                                              2 * N);
            ck_assert_mem_eq(got, want, 2 * N);
            OWNED unsigned char *rest = frames(sources[k], format(", shuffle: 7, workers: %d, start: 40", workers), N - 40);
            ck_assert_mem_eq(rest, want + 40, N - 40);
        }
}

/* Frames keep the names of their files. */
TEST(names)
{
    put();
    io_runs("stages:\n  - {use: read, path: 'f*.npy', shuffle: 3, start: 50}\n  - {use: write, path: 'out/%n.npy'}\n");
    ck_assert_int_eq(io_files("out"), 3);
    for (int i = 0, n = 0; i < N; i++) {
        size_t bytes;
        OWNED char *got = pipe_read(io_dir, format("out/f%d.npy", i), &bytes);
        if (got)
            io_counts(format("out/f%d.npy", i), U8(1), i), n++;
        ck_assert(i < N - 1 || n == 3);
    }
}

/* Small numbers of frames come in each of their orders. */
TEST(orders)
{
    bool seen[27] = { false };
    int n = 0;
    pipe_file(io_dir, "three.raw", (unsigned char[]){ 0, 1, 2 }, 3);
    OWNED unsigned char *got = frames("three.raw", ", shuffle: 1, loop: true, frames: 300", 300);
    for (int i = 0; i < 300; i += 3)
        seen[got[i] * 9 + got[i + 1] * 3 + got[i + 2]] = true;
    for (int i = 0; i < 27; i++)
        n += seen[i];
    ck_assert_int_eq(n, 6);
}

TEST_LOOP(refused, 0, 5)
{
    static const struct { const char *path, *options, *says; } cases[] = {
        { "all.raw", ", start: 53", "'start' is 53, and there are 53 frames" },
        { "f*.npy", ", start: 60, loop: true", "'start' is 60, and there are 53 frames" },
        { "part*.raw", ", shuffle: 1", "several files, each of which is cut into frames, cannot be shuffled" },
        { "stdin", ", start: 1", "'start' has no effect on a stream" },
        { "stdin", ", shuffle: 1", "'shuffle' has no effect on a stream" },
    };
    put();
    io_fails(format("buffers: %s\nstages:\n  - {use: read, path: '%s', out: x%s}\n"
                    "  - {use: discard}\n", declared(cases[_i].path), cases[_i].path, cases[_i].options), 3, cases[_i].says);
}

TEST_SUITE(shuffle, io_set_up, NULL, 0)
