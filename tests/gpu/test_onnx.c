/* test_onnx.c - models on a GPU, by ONNX Runtime's provider for CUDA, beside what the package onnx computes
 * (tests/data/make_onnx.py) and what the same library computes on the CPU. Without ONNX Runtime, or where it has no
 * such provider, the suite says so.
 *
 * It runs where tests/data is, with GPIPE_ONNXRUNTIME as `onnx` has it. */
#include <math.h>
#include "base/npy.h"
#include "gpu.h"
#include "onnx_model.h"
#include "pipe.h"

Suite *suite_onnx(void);

static const char *dir;
static char data[400];         /* the folder of the models */

static void set_up(void)
{
    ck_assert_ptr_nonnull(getcwd(data, sizeof data - 20));
    strcat(data, "/tests/data/onnx");
    dir = pipe_dir();
}

static void tear_down(void)
{
    pipe_dir_remove(dir);
}

static void run(const char *yaml)
{
    pipe_done(dir, yaml, "cuda", NULL, (gp_run_options){ 0 });
}

static char *load(const char *folder, const char *name, gp_type *t, size_t *at)
{
    size_t n;
    bool fortran;
    char why[160], *file = pipe_read(folder, name, &n);
    ck_assert_msg(file && gp_npy_parse(file, n, t, at, &fortran, why), "no %s/%s", folder, name);
    return file;
}

/* The file has the array `ref` of the models; floats may differ by a little. */
static void same(const char *name, const char *ref, const char *what)
{
    size_t x, y;
    gp_type a, b;
    char *is = load(dir, name, &a, &x), *want = load(data, ref, &b, &y);
    ck_assert_msg(a.dtype == b.dtype && gp_bytes(&a) == gp_bytes(&b), "%s: %s is of another type or size", what, name);
    if (a.dtype != GP_F32)
        ck_assert_msg(!memcmp(is + x, want + y, gp_bytes(&a)), "%s: %s is not %s", what, name, ref);
    for (size_t i = 0; a.dtype == GP_F32 && i < gp_bytes(&a) / 4; i++) {
        float p, q;
        memcpy(&p, is + x + 4 * i, 4), memcpy(&q, want + y + 4 * i, 4);
        ck_assert_msg(fabsf(p - q) <= 1e-4f * (1 + fabsf(q)), "%s: element %d of %s is %g, not %g", what, (int)i, name,
                      (double)p, (double)q);
    }
    free(is), free(want);
}

static const char *const knobs[] = {
    "", "depth: 1\n", "depth: 16\nstreams: 4\nbatch: 4\n", "depth: 6\nlaunch: stream\n", "depth: 8\nsync: spin\n",
};
enum { KNOBS = sizeof knobs / sizeof *knobs };

/* Batches of one and two rows, and all in one; the last is shorter. */
START_TEST(as_the_reference)
{
    static const int rows[] = { 1, 2, 5 };
    for (int i = 0; i < 3; i++) {
        const char *yaml = format("%sbuffers: {x: {shape: [%d, 4]}}\nstages:\n"
                                  "  - {use: read, path: \"%s/layer_x.npy\", out: x}\n"
                                  "  - {use: onnx, model: \"%s/layer.onnx\", provider: cuda}\n"
                                  "  - {use: write, path: y.npy, if_exists: replace}\n", knobs[_i], rows[i], data, data);
        run(yaml);
        same("y.npy", "layer_y.npy", yaml);
        yaml = format("%sbuffers: {a: {shape: [%d, 4]}, b: {shape: [%d, 4]}}\nstages:\n"
                      "  - {use: read, path: \"%s/pair_a.npy\", out: a}\n"
                      "  - {use: read, path: \"%s/pair_b.npy\", out: b}\n"
                      "  - {use: onnx, model: \"%s/pair.onnx\", in: {b: b, a: a}, out: {most: m, greater: g, sum: s}, "
                      "provider: cuda}\n"
                      "  - {use: write, in: m, path: m.npy, if_exists: replace}\n"
                      "  - {use: write, in: g, path: g.npy, if_exists: replace}\n"
                      "  - {use: write, in: s, path: s.npy, if_exists: replace}\n", knobs[_i], rows[i], rows[i], data,
                      data, data);
        run(yaml);
        same("m.npy", "pair_most.npy", yaml);
        same("g.npy", "pair_greater.npy", yaml);
        same("s.npy", "pair_sum.npy", yaml);
    }
    const char *yaml = format("%sbuffers: {x: {shape: [2, 1, 9, 14]}}\nstages:\n"
                              "  - {use: read, path: \"%s/halves_photo.npy\", out: x}\n"
                              "  - {use: onnx, model: \"%s/halves.onnx\", provider: cuda}\n"
                              "  - {use: write, path: maps.npy}\n", knobs[_i], data, data);
    run(yaml);
    same("maps.npy", "halves_maps.npy", yaml);
}
END_TEST

/* An input that the library has in the memory of the host. */
START_TEST(shapes)
{
    const char *yaml = format("buffers: {x: {shape: [5, 4]}, s: {shape: [2]}, z: {shape: [10, 2]}}\nstages:\n"
                              "  - {use: read, path: \"%s/shapes_x.npy\", out: x}\n"
                              "  - {use: read, path: \"%s/shapes_s.npy\", out: s}\n"
                              "  - {use: expr, expr: in + 0, in: s, out: t}\n"
                              "  - {use: onnx, model: \"%s/shapes.onnx\", in: {x: x, s: t}, out: {z: z}, provider: cuda}\n"
                              "  - {use: write, in: z, path: z.npy}\n", data, data, data);
    pipe_result r = pipe_run(dir, yaml, "cuda", NULL, (gp_run_options){ 0 });
    ck_assert_msg(r.outcome == GP_ERROR && strstr(r.errs.e[0].msg, "it has input 's' in the memory of the host"), "%s",
                  pipe_said(&r.errs));
}
END_TEST

/* Many frames between kernels, of which some have fewer rows or are dropped, as the CPU computes them: the weights and
 * what comes in are small multiples of 1/8, so that sums have the same bits in any order. */
START_TEST(between_kernels)
{
    pipe_text(dir, "few.lua", "stateless = true\nfunction process(frame, x, y)\n  y:copy(x)\n"
              "  if frame.index % 7 == 3 then frame.valid = 1 + frame.index % 5 end\n"
              "  if frame.index == 61 then return \"drop\" end\nend\n");
    const char *yaml = format("%sbuffers: {raw: {dtype: f32, shape: [6, 4]}, x: {like: raw}}\nstages:\n"
                              "  - {use: generate, pattern: noise, frames: 300, out: raw}\n"
                              "  - {use: lua, script: few.lua, in: raw, out: x}\n"
                              "  - {use: expr, expr: floor(in * 64) / 8, out: near}\n"
                              "  - {use: onnx, model: \"%s/layer.onnx\", in: near, out: by_gpu, provider: cuda}\n"
                              "  - {use: expr, expr: in * 2, in: by_gpu, out: far}\n"
                              "  - {use: onnx, model: \"%s/layer.onnx\", in: near, out: by_cpu, provider: cpu}\n"
                              "  - {use: expr, expr: in * 2, in: by_cpu, out: want}\n"
                              "  - {use: compare, in: [far, want]}\n", knobs[_i % KNOBS], data, data);
    pipe_done(dir, yaml, _i / KNOBS ? "cuda:0-1" : "cuda", NULL, (gp_run_options){ 0 });
}
END_TEST

/* What the library refuses is an error of the frame's. */
START_TEST(fails)
{
    const char *yaml = format("depth: 2\nbuffers: {x: {dtype: f32, shape: [1, 4]}, y: {shape: [2, 3]}}\nstages:\n"
                              "  - {use: generate, frames: 3, pattern: constant, value: 2, out: x}\n"
                              "  - {use: onnx, model: \"%s/where.onnx\", in: x, out: y, provider: cuda}\n"
                              "  - {use: write, path: y.csv}\n", data);
    pipe_result r = pipe_run(dir, yaml, "cuda", NULL, (gp_run_options){ 0 });
    ck_assert_msg(r.outcome == GP_ERROR && strstr(r.errs.e[0].msg, "stage 'onnx': frame 0: ONNX Runtime cannot run '"),
                  "%s", pipe_said(&r.errs));
    printf("onnx: what is said of a frame that fails: %s\n", r.errs.e[0].msg);
}
END_TEST

/* Can it run here? Says so if not. */
static bool is_there(void)
{
    gp_ort l;
    gp_errs errs = { .n = 0 };
    char why[GP_WHY] = "";
    bool open = gp_ort_open(&l, (gp_loc){ 0 }, &errs), has = open && gp_onnx_has_cuda(&l, 0, why);
    if (has)
        printf("onnx: with ONNX Runtime %s, CUDA\n", l.version);
    else
        printf("**** SKIPPED: onnx: models on the GPU were not tested: %s ****\n", open ? why : errs.e[0].msg);
    fflush(stdout);
    return has;
}

Suite *suite_onnx(void)
{
    if (!have_gpu || !is_there())
        return NULL;
    gp_machine m;
    gp_machine_read(&m, true);
    Suite *s = suite_create("onnx on cuda");
    TCase *tc = tcase_create("cuda");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(tc, as_the_reference, 0, KNOBS);
    tcase_add_test(tc, shapes);
    tcase_add_loop_test(tc, between_kernels, 0, m.ndevices > 1 ? 2 * KNOBS : KNOBS);
    tcase_add_test(tc, fails);
    suite_add_tcase(s, tc);
    return s;
}
