/* test_label.c - the kinds `label` and `objects` in whole pipelines. What `label` computes, stages_cases.c compares with
 * SciPy. */
#include "iotest.h"

/* A reference of tests/ref, by its name in the test's folder. */
static void link_reference(const char *name)
{
    char cwd[PATH_MAX];
    ck_assert(getcwd(cwd, sizeof cwd));
    ck_assert_int_eq(symlink(format("%s/tests/ref/%s", cwd, name), io_at(name)), 0);
}

static const char *const knobs[] = { "", "depth: 1\n", "depth: 12\nbatch: 4\n",
                                    "depth: 5\nlaunch: stream\nsync: block\n" };
static const char *const workers[] = { "1", "5", "auto", "2" };
enum { KNOBS = sizeof knobs / sizeof *knobs };

/* Each frame has as many rows as objects, those of SciPy; one has none. */
TEST_LOOP(as_scipy, 0, KNOBS)
{
    link_reference("labels_i32.npy"), link_reference("objects_f64.npy");
    io_runs(format("%sstages:\n  - {use: read, path: labels_i32.npy}\n  - {use: objects, workers: %s}\n"
                 "  - {use: compare, file: objects_f64.npy}\n", knobs[_i], workers[_i]));
    io_runs(format("%sstages:\n  - {use: read, path: labels_i32.npy}\n  - {use: cast, dtype: u16}\n"
                 "  - {use: objects, workers: %s}\n  - {use: compare, file: objects_f64.npy}\n", knobs[_i],
                 workers[_i]));
}

/* Labels that no pixel has are rows, too. */
TEST(gaps)
{
    link_reference("gaps_u8.npy"), link_reference("objects_gaps_f64.npy");
    io_runs("buffers: {x: {shape: [3, 4]}}\nstages:\n  - {use: read, path: gaps_u8.npy, out: x}\n"
            "  - {use: objects, max_objects: 200}\n  - {use: compare, file: objects_gaps_f64.npy}\n");
    io_fails("buffers: {x: {shape: [3, 4]}}\nstages:\n  - {use: read, path: gaps_u8.npy, out: x}\n"
             "  - {use: objects, max_objects: 199}\n  - {use: discard}\n", 1,
             "stage 'objects': frame 0 has labels up to 200, and 'max_objects' is 199");
}

/* Frames with fewer rows, and of their own shapes, from the mask on: as if each had come alone. */
TEST_LOOP(from_masks, 0, KNOBS)
{
    static const unsigned char mask[] = { 1, 0, 1,  0, 0, 1,  1, 0, 0,  /**/ 0, 1, 0 };
    static const char text[] = "1,0,0,1,1,0,0\n2,2,0,3,2,2,0.5\n1,0,2,1,3,0,2\n1,1,0,2,1,1,0\n";
    pipe_file(io_dir, "mask.raw", mask, sizeof mask);
    io_runs(format("%sbuffers: {x: {dtype: u8, shape: [3, 3]}}\nstages:\n  - {use: read, path: mask.raw, out: x}\n"
                 "  - {use: label}\n  - {use: objects}\n  - {use: write, path: out.csv}\n", knobs[_i]));
    io_holds("out.csv", text, sizeof text - 1);
}

/* As many objects as pixels; one less is said, and can be dropped. */
TEST(all_pixels)
{
    enum { N = 300 };
    static int32_t label[2 * N];
    size_t n;
    for (int i = 0; i < 2 * N; i++)
        label[i] = i % N + (i < N);                 /* frame 0: 1 to N, frame 1: 0 to N - 1 */
    pipe_file(io_dir, "labels.raw", label, sizeof label);
#define PIPELINE "buffers: {x: {dtype: i32, shape: [12, 25]}}\nstages:\n  - {use: read, path: labels.raw, out: x}\n"
    io_runs(PIPELINE "  - {use: objects, max_objects: 300}\n  - {use: write, path: out.raw}\n");
    OWNED double *row = (double *)(void *)pipe_read(io_dir, "out.raw", &n);
    ck_assert_uint_eq(n, 7 * sizeof(double) * (2 * N - 1));
    for (int i = 0; i < 2 * N - 1; i++) {
        int at = i < N ? i : i - N + 1, x = at % 25, y = at / 25;
        const double want[] = { 1, x, y, x + 1, y + 1, x, y };
        ck_assert_msg(!memcmp(row + 7 * i, want, sizeof want), "row %d", i);
    }
    io_fails(PIPELINE "  - {use: objects, max_objects: 299}\n  - {use: write, path: out.raw}\n", 1,
             "frame 0 has labels up to 300, and 'max_objects' is 299");
    pipe_result r = io_go(PIPELINE "  - {use: objects, max_objects: 299, on_error: drop}\n"
                          "  - {use: write, path: out.raw}\n");
    ck_assert(r.outcome == GP_DONE && r.account[0].in == 2 && r.account[0].out == 1 && r.account[0].failed == 1);
}

TEST_SUITE(label, io_set_up, NULL, 0)
