/* test_fft.c - Fourier transforms in whole pipelines; those by cuFFT without a GPU, by a library in its place
 * (cufft_fake.c), which does what cuFFT is asked for by the definition; what is declared of cuFFT beside its header,
 * where that is there. */
#include "cufft_fake.h"
#include "device/libraries.h"
#include "fourier.h"
#include "harness.h"
#include "pipe.h"

/* ---- what is declared ------------------------------------------------------ */

#if defined __has_include
#if __has_include(<cufft.h>)
#include <cufft.h>

_Static_assert((int)CUFFT_C2C == GP_GPU_C2C && (int)CUFFT_R2C == GP_GPU_R2C && (int)CUFFT_C2R == GP_GPU_C2R
               && CUFFT_FORWARD == GP_GPU_FORWARD && CUFFT_INVERSE == GP_GPU_INVERSE && CUFFT_SUCCESS == 0
               && CUFFT_UNALIGNED_DATA == 9 && MAJOR_VERSION == 0 && MINOR_VERSION == 1, "numbers");
_Static_assert(sizeof(cufftHandle) == sizeof(int) && sizeof(cufftResult) == sizeof(int) && sizeof(cufftType) == sizeof(int)
               && sizeof(cufftComplex) == sizeof(gp_c64) && sizeof(cufftReal) == sizeof(float), "sizes");

/* Calls that do not compile if the header has other parameters in these places. */
__attribute__((unused)) static int calls(cufftHandle h, long long *n, size_t *work, void *area, cudaStream_t stream, int *out,
                                         cufftComplex *c, cufftReal *r)
{
    return cufftGetProperty(MAJOR_VERSION, out) + cufftCreate(&h) + cufftDestroy(h) + cufftSetAutoAllocation(h, 0)
         + cufftMakePlanMany64(h, 1, n, n, 1LL, 1LL, n, 1LL, 1LL, CUFFT_C2C, 1LL, work) + cufftSetStream(h, stream)
         + cufftSetWorkArea(h, area) + cufftExecC2C(h, c, c, CUFFT_FORWARD) + cufftExecR2C(h, r, c) + cufftExecC2R(h, c, r);
}
#endif
#endif

TEST(statuses)
{
    char buf[24];
    ck_assert_str_eq(gp_gpu_status(GP_GPU_FFT, 5, buf), "INTERNAL_ERROR");
    ck_assert_str_eq(gp_gpu_status(GP_GPU_FFT, 9, buf), "UNALIGNED_DATA");
    ck_assert_str_eq(gp_gpu_status(GP_GPU_FFT, 10, buf), "status 10");
    ck_assert_str_eq(gp_gpu_status(GP_GPU_FFT, -1, buf), "status -1");
}

/* ---- by a library in cuFFT's place ------------------------------------------- */

extern const gp_kind gp_kind_fft, gp_kind_ifft, gp_kind_channelize;
static cufft_fake *fake;

/* As the kinds on a machine with a GPU: the memory of the CPU back end will do. */
static bool on_gpu(gp_shape *s, const gp_kind *kind)
{
    gp_fft_opts *o = (gp_fft_opts *)s->opts;
    if (!kind->shape(s))
        return false;
    if (s->partial)
        return true;
    o->gpu = true;
    gp_fft_job j = gp_fft_job_of(o, &s->in[0], &s->out[0]);
    s->scratch = gp_fft_gpu_scratch(&j);
    return true;
}

static bool forward(gp_shape *s) { return on_gpu(s, &gp_kind_fft); }
static bool inverse(gp_shape *s) { return on_gpu(s, &gp_kind_ifft); }

/* What it needs of scratch memory on a CPU is more. */
static bool channels(gp_shape *s)
{
    struct { int64_t channels, taps; bool gpu; } *o = (void *)s->opts;     /* as in stages/channelize.c */
    ck_assert_uint_eq(sizeof *o, gp_kind_channelize.opts_size);
    bool ok = gp_kind_channelize.shape(s);
    o->gpu = true;
    return ok;
}

static void set_up(void)
{
    gp_kind more[] = { gp_kind_fft, gp_kind_ifft, gp_kind_channelize };
    more[0].name = "nvfft", more[0].shape = forward;
    more[1].name = "nvifft", more[1].shape = inverse;
    more[2].name = "nvchannelize", more[2].shape = channels;
    pipe_kinds(more, 3);
    fake = suite_fake("cufft_fake");
}

static gp_outcome run(const char *dir, const char *yaml, gp_errs *errs)
{
    pipe_result r = pipe_run(dir, yaml, "cpu", NULL, (gp_run_options){ .poison = true });
    *errs = r.errs;
    return r.outcome;
}

static void copy_file(const char *dir, const char *name, const char *as)
{
    char *path = format("tests/ref/%s.npy", name);
    FILE *f = fopen(path, "rb");
    static char bytes[1 << 20];
    ck_assert_msg(f != NULL, "cannot open '%s'", path);
    size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    pipe_file(dir, as, bytes, n);
}

/* A line of tests/ref/cases.txt. */
static void as_reference(const char *dir, const char *kind, const char *options, const char *in, const char *want,
                         double tolerance)
{
    char yaml[1000], shape[200] = "", path[600];
    gp_errs errs = { .n = 0 };
    snprintf(path, sizeof path, "tests/ref/%s.npy", in);
    array x = array_load(path);
    for (int k = 0; k < x.type.ndim; k++)
        snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%s%d", k ? ", " : "", (int)x.type.dim[k]);
    copy_file(dir, in, "in.npy");
    snprintf(yaml, sizeof yaml, "buffers: {x: {dtype: %s, shape: [%s]}}\nstages:\n  - {use: read, path: in.npy, out: x}\n"
             "  - {use: nv%s%s%s}\n  - {use: write, path: out.npy, if_exists: replace, durable: none}\n",
             gp_dtype_name(x.type.dtype), shape, kind, *options == '{' ? "" : ", ", *options == '{' ? "" : options);
    gp_outcome outcome = run(dir, yaml, &errs);
    ck_assert_msg(outcome == GP_DONE, "%s: %s", yaml, pipe_said(&errs));
    snprintf(path, sizeof path, "%s/out.npy", dir);
    array got = array_load(path);
    snprintf(path, sizeof path, "tests/ref/%s.npy", want);
    array expected = array_load(path);
    const char *differs = array_differs(&got, &expected, tolerance);
    ck_assert_msg(!*differs, "%s, %s: %s", yaml, in, differs);
    array_free(&x), array_free(&got), array_free(&expected);
}

TEST_LOOP(references, 0, 4)
{
    char line[500], kind[20], options[200], in[60], want[60];
    const char *dir = pipe_dir();
    double tolerance;
    int n = 0, seen = 0;
    FILE *list = fopen("tests/ref/cases.txt", "r");
    ck_assert(list != NULL);
    while (fgets(line, sizeof line, list)) {
        if (sscanf(line, "%19[a-z0-9_] | %199[^|] | %59s | %59s | %lg", kind, options, in, want, &tolerance) != 5
            || (strcmp(kind, "fft") && strcmp(kind, "ifft") && strcmp(kind, "channelize")) || n++ % 4 != _i)
            continue;
        options[strlen(options) - (options[strlen(options) - 1] == ' ')] = 0;
        as_reference(dir, kind, options, in, want, tolerance);
        seen++;
    }
    fclose(list);
    ck_assert_int_gt(seen, 20);
    ck_assert_int_eq(atomic_load(&fake->planned), seen);
    ck_assert_int_eq(atomic_load(&fake->destroyed), seen);
}

static const char *const knobs[] = { "", "depth: 1\n", "depth: 12\nstreams: 1\nbatch: 4\n", "depth: 4\nstreams: 1\nlaunch: stream\n" };
enum { KNOBS = sizeof knobs / sizeof *knobs, FRAMES = 9, ROWS = 6, COLS = 20, LAST = 2 };

static float wave(int64_t i)
{
    return (float)((i * 7919) % 1000) / 100 - 5;
}

/* There and back again; the last frame has fewer rows. One plan a stage, whatever the knobs. One stream, as those of
 * the CPU are threads and a plan is for one. */
TEST_LOOP(there_and_back, 0, 2 * KNOBS)
{
    static const char *const kinds[] = { "", "nv" };
    const char *dir = pipe_dir(), *nv = kinds[_i / KNOBS];
    gp_errs errs = { .n = 0 };
    size_t bytes;
    pipe_npy(dir, "in.npy", ROWS * (FRAMES - 1) + LAST, COLS, wave);
    char *yaml = format("%s%sbuffers: {x: {dtype: f32, shape: [6, 20]}}\nstages:\n  - {use: read, path: in.npy, out: x}\n"
             "  - {use: %sfft, norm: ortho}\n  - {use: %sifft, real: true, norm: ortho}\n  - {use: write, path: out.raw, durable: none}\n",
             knobs[_i % KNOBS], *knobs[_i % KNOBS] ? "" : "streams: 1\n", nv, nv);
    gp_outcome outcome = run(dir, yaml, &errs);
    ck_assert_msg(outcome == GP_DONE, "%s: %s", yaml, pipe_said(&errs));
    OWNED float *v = (float *)pipe_read(dir, "out.raw", &bytes);
    ck_assert_uint_eq(bytes, 4 * COLS * (ROWS * (FRAMES - 1) + LAST));
    for (int i = 0; i < (int)bytes / 4; i++)
        ck_assert_msg(v[i] - wave(i) < 5e-6f && wave(i) - v[i] < 5e-6f, "%s: element %d is %g, not %g", yaml, i, v[i], wave(i));
    ck_assert_int_eq(atomic_load(&fake->planned), *nv ? 2 : 0);
    ck_assert_int_eq(atomic_load(&fake->destroyed), *nv ? 2 : 0);
}

/* A filter bank makes of frames, the last of which has fewer rows, what it makes of the whole. */
TEST(filter_bank)
{
    enum { SAMPLES = 40 * 9 + 19, CHANNELS = 8 };
    static const struct { const char *kind, *knobs; int rows; } runs[] = {
        { "channelize", "", 400 }, { "channelize", "", 40 }, { "nvchannelize", "streams: 1\n", 40 }, { "nvchannelize", "depth: 1\n", 40 },
        { "nvchannelize", "depth: 4\nstreams: 1\nlaunch: stream\n", 80 }, { "nvchannelize", "streams: 1\n", 8 },
    };
    const char *dir = pipe_dir();
    float *whole = NULL;
    pipe_npy(dir, "in.npy", SAMPLES, 0, wave);
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        gp_errs errs = { .n = 0 };
        size_t bytes;
        char *yaml = format("%sbuffers: {x: {dtype: f32, shape: [%d]}}\nstages:\n  - {use: read, path: in.npy, out: x}\n"
                 "  - {use: %s, channels: %d, taps: 5}\n  - {use: write, path: out.raw, if_exists: replace, durable: none}\n",
                 runs[i].knobs, runs[i].rows, runs[i].kind, CHANNELS);
        gp_outcome outcome = run(dir, yaml, &errs);
        ck_assert_msg(outcome == GP_DONE, "%s: %s", yaml, pipe_said(&errs));
        float *v = (float *)pipe_read(dir, "out.raw", &bytes);
        ck_assert_uint_eq(bytes, sizeof(gp_c64) * (SAMPLES / CHANNELS) * (CHANNELS / 2 + 1));
        for (size_t k = 0; i && k < bytes / 4; k++)
            ck_assert_msg(v[k] - whole[k] < 1e-5f && whole[k] - v[k] < 1e-5f, "%s: number %zu is %g, not %g", yaml, k, v[k], whole[k]);
        free(i ? v : NULL);
        whole = i ? whole : v;
    }
    free(whole);
    ck_assert_int_eq(atomic_load(&fake->planned), 4);
    ck_assert_int_eq(atomic_load(&fake->destroyed), 4);
}

/* What cuFFT does not do is said at the stage. */
TEST_LOOP(library_fails, 0, 2)
{
    static const struct { int plan, exec; const char *says; } cases[] = {
        { 2, 0, "stage 'nvfft': cuFFT cannot plan such a transform (ALLOC_FAILED)" },
        { 0, 6, "stage 'nvfft': cuFFT failed (EXEC_FAILED)" },
    };
    const char *dir = pipe_dir();
    gp_errs errs = { .n = 0 };
    fake->plan_status = cases[_i].plan, fake->exec_status = cases[_i].exec;
    pipe_npy(dir, "in.npy", ROWS, COLS, wave);
    ck_assert_int_eq(run(dir, "buffers: {x: {dtype: f32, shape: [6, 20]}}\nstages:\n  - {use: read, path: in.npy, out: x}\n"
                         "  - {use: nvfft}\n  - {use: write, path: out.raw}\n", &errs), GP_ERROR);
    ck_assert_msg(errs.n && !strcmp(errs.e[0].msg, cases[_i].says), "%s", pipe_said(&errs));
    ck_assert_int_eq(errs.e[0].at.line, 4);
    ck_assert_int_eq(atomic_load(&fake->planned), atomic_load(&fake->destroyed));
}

/* ---- what is refused ------------------------------------------------------------ */

static const struct { const char *shape, *stage, *says; int rows; } refused[] = {
    { "[6, 20]", "{use: fft, axes: [0, 1]}", "a frame with fewer rows, f32 [2, 20], would have a transform of another length: "
      "give whole frames, or transform other axes than 0", 8 },
    { "[6, 20]", "{use: fft, axes: 0}", "a frame with fewer rows, f32 [2, 20]", 8 },
    { "[\"<=6\", 20]", "{use: fft}", "stage 'fft' takes frames of one shape", 6 },
};

TEST_EACH(refuses, refused)
{
    const char *dir = pipe_dir();
    gp_errs errs = { .n = 0 };
    pipe_npy(dir, "in.npy", refused[_i].rows, COLS, wave);
    char *yaml = format("buffers: {x: {dtype: f32, shape: %s}}\nstages:\n  - {use: read, path: in.npy, out: x}\n"
                        "  - %s\n  - {use: write, path: out.raw}\n", refused[_i].shape, refused[_i].stage);
    ck_assert_int_eq(run(dir, yaml, &errs), GP_ERROR);
    ck_assert_msg(errs.n && strstr(errs.e[0].msg, refused[_i].says), "%s: %s", yaml, pipe_said(&errs));
}

TEST_SUITE(fft, set_up, NULL, 0)
