/* test_fft.c - transforms by cuFFT in whole pipelines, whatever the knobs, beside those that the CPU makes; alone
 * they are compared with SciPy by test_stages.c. Without cuFFT the suite says so. */
#include <math.h>
#include "device/libraries.h"
#include "gpu.h"
#include "pipe.h"

Suite *suite_fft(void);

enum { FRAMES = 23, ROWS = 6, COLS = 60, LAST = 2 };

static float wave(int64_t i)
{
    return (float)((i * 7919) % 1000) / 100 - 5;
}

static const char *const settings[][5] = {
    { NULL }, { "depth=1", NULL }, { "depth=12", "streams=4", "batch=4", NULL }, { "depth=8", "streams=8", NULL },
    { "depth=5", "launch=stream", NULL }, { "depth=16", "batch=8", "launch=stream", NULL },
};
enum { SETTINGS = sizeof settings / sizeof *settings };

/* Real, complex, of a prime length, along two axes, of axes that are moved, in a loop; what comes out, and how far
 * it may be from that of the CPU. */
static const struct { const char *stages; double tolerance; } cases[] = {
    { "  - {use: fft}\n", 5e-4 },
    { "  - {use: fft, norm: forward}\n  - {use: ifft, real: true, norm: forward}\n", 1e-5 },
    { "  - {use: slice, index: ':, :59'}\n  - {use: fft}\n  - {use: fft, norm: ortho}\n", 5e-3 },
    { "  - {use: reshape, shape: [-1, 3, 5, 4]}\n  - {use: fft, axes: [3, 1]}\n  - {use: ifft, axes: 2}\n", 5e-4 },
    { "  - {use: reshape, shape: [-1, 3, 5, 4]}\n  - {use: fft, axes: [1, 2, 3]}\n"
      "  - {use: ifft, axes: [1, 2, 3], real: true}\n", 1e-5 },
    { "  - {use: loop, in: {a: x}, out: {b: b}, times: 200, carry: {a: b}, stages: [{use: fft, in: a, out: s}, "
      "{use: ifft, real: true, in: s, out: b}]}\n", 1e-3 },
};
enum { CASES = sizeof cases / sizeof *cases };

static float *run(const char *dir, const char *stages, const char *device, const char *const *sets, size_t *n)
{
    char *yaml = format("buffers: {x: {dtype: f32, shape: [6, 60]}}\nstages:\n  - {use: read, path: in.npy, out: x}\n"
                        "%s  - {use: write, path: out.raw, if_exists: replace, durable: none}\n", stages);
    pipe_done(dir, yaml, device, sets, (gp_run_options){ .poison = true });
    float *v = (float *)pipe_read(dir, "out.raw", n);
    ck_assert(v != NULL);
    return v;
}

TEST_LOOP(whatever_the_knobs, 0, CASES)
{
    const char *dir = pipe_dir();
    size_t n, other;
    pipe_npy(dir, "in.npy", ROWS * (FRAMES - 1) + LAST, COLS, wave);
    float *cpu = run(dir, cases[_i].stages, "cpu", NULL, &n), *first = NULL;
    for (int k = 0; k < SETTINGS; k++) {
        float *v = run(dir, cases[_i].stages, "cuda", settings[k], &other);
        ck_assert_uint_eq(n, other);
        for (size_t i = 0; i < n / 4; i++)
            ck_assert_msg(fabs((double)v[i] - (double)cpu[i]) <= cases[_i].tolerance, "%s: element %zu is %g, not %g",
                          cases[_i].stages, i, v[i], cpu[i]);
        ck_assert_msg(!first || !memcmp(v, first, n), "%s: other bytes with settings %d", cases[_i].stages, k);
        if (first)
            free(v);
        else
            first = v;
    }
    free(cpu), free(first);
    pipe_dir_remove(dir);
}

Suite *suite_fft(void)
{
    gp_errs errs = { .n = 0 };
    if (!have_gpu)
        return NULL;
    if (!gp_gpu_open(GP_GPU_FFT, NULL, "fft", (gp_loc){ 0 }, &errs)) {
        fprintf(stderr, "fft on cuda: skipped: %s\n", errs.e[0].msg);
        return NULL;
    }
    Suite *s = suite_create("fft on cuda");
    TCase *tc = tcase_create("cuda");
    tcase_set_timeout(tc, 120);
    suite_fill(tc, suite_items, 1);
    suite_add_tcase(s, tc);
    return s;
}
