/* matmul_cases.c - a pipeline with products makes the same bytes over depths, streams, batches and launches. */
#include "iotest.h"
#include "cases.h"

static const char *const knobs[] = {
    "depth: 1\n", "", "depth: 16\nstreams: 3\nbatch: 4\n", "depth: 8\nstreams: 8\n",
    "depth: 5\nlaunch: stream\nsync: block\n", "depth: 32\nbatch: 32\n", "depth: 32\nbatch: 8\nlaunch: stream\n",
};
enum { KNOBS = sizeof knobs / sizeof *knobs };

/* A network of two layers, and a product; the last frame has fewer rows. Of long sums libraries add parts. */
TEST_LOOP(same_bytes, 0, 3)
{
    static const struct { int64_t rows, k, n, m; } sizes[] = { { 5, 70, 90, 11 }, { 60, 64, 32, 10 }, { 8, 3000, 40, 7 } };
    int64_t rows = sizes[_i].rows, k = sizes[_i].k, middle = sizes[_i].n, last = sizes[_i].m, all = 40 * rows + 3;
    static const char *const types[] = { "f32", "f16", "f64" };
    for (int t = 0; t < 3; t++) {
        char *first = NULL;
        size_t n = 0, bytes;
        io_count_npy("in.npy", U8(all, k), 0);
        io_count_npy("w.npy", U8(middle, k), 3);
        io_count_npy("v.npy", U8(last, middle), 5);
        io_count_npy("bias.npy", U8(middle), 7);
        for (int i = 0; i < KNOBS; i++) {
            char *yaml = format("%sbuffers: {x: {dtype: u8, shape: [%d, %d]}, w: {const: w.npy, dtype: %s}, "
                "v: {const: v.npy, dtype: %s}, bias: {const: bias.npy, dtype: %s}}\nstages:\n"
                "  - {use: read, path: in.npy, out: x}\n  - {use: cast, dtype: f32}\n  - {use: scale, a: 0.0001}\n"
                "  - {use: cast, dtype: %s, out: y}\n"
                "  - {use: linear, in: {in: y, weights: w, bias: bias}, activation: tanh, out: z}\n"
                "  - {use: linear, in: {in: z, weights: v}, activation: gelu, out: u}\n"
                "  - {use: matmul, in: {a: u, b: v}, out: all}\n"
                "  - {use: write, in: all, path: out.raw, durable: none}\n", knobs[i], (int)rows, (int)k,
                types[t], types[t], types[t], types[t]);
            pipe_done(io_dir, yaml, on, NULL, (gp_run_options){ .poison = true });
            char *made = pipe_read(io_dir, "out.raw", &bytes);
            ck_assert(made && bytes == (size_t)(all * middle) * (t == 0 ? 4 : t == 1 ? 2 : 8));
            ck_assert_msg(!first || (bytes == n && !memcmp(made, first, n)), "%s: other bytes with %s", types[t],
                          knobs[i]);
            free(first);
            first = made, n = bytes;
        }
        free(first);
    }
}

CASES_SUITE(matmul, io_set_up, NULL, 120, 1)
