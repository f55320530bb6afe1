/* test_nvjpeg.c - decoding by nvJPEG without a GPU: a library in its place (nvjpeg_fake.c), which decodes by libjpeg
 * and refuses, or garbles, what it is told to; what is declared of nvJPEG beside its header, where that is there. */
#include <stddef.h>
#include "decode.h"
#include "device/libraries.h"
#include "nvjpeg_fake.h"
#include "pipe.h"

/* ---- what is declared ------------------------------------------------ */

#if defined __has_include
#if __has_include(<nvjpeg.h>)
#include <nvjpeg.h>

_Static_assert((int)NVJPEG_BACKEND_HYBRID == GP_GPU_HYBRID && (int)NVJPEG_BACKEND_GPU_HYBRID == GP_GPU_ALL
               && (int)NVJPEG_BACKEND_HARDWARE == GP_GPU_HARDWARE && (int)NVJPEG_OUTPUT_Y == GP_GPU_Y
               && (int)NVJPEG_OUTPUT_RGBI == GP_GPU_RGBI && NVJPEG_STATUS_SUCCESS == 0 && NVJPEG_FLAGS_DEFAULT == 0
               && (int)NVJPEG_STATUS_ARCH_MISMATCH == GP_GPU_NO_DECODER && (int)NVJPEG_STATUS_BAD_JPEG == GP_GPU_BAD_JPEG
               && (int)NVJPEG_STATUS_JPEG_NOT_SUPPORTED == GP_GPU_JPEG_UNKNOWN
               && (int)NVJPEG_STATUS_IMPLEMENTATION_NOT_SUPPORTED == GP_GPU_JPEG_NOT_DONE
               && (int)NVJPEG_STATUS_INCOMPLETE_BITSTREAM == GP_GPU_JPEG_CUT && MAJOR_VERSION == 0 && MINOR_VERSION == 1,
               "numbers");
_Static_assert(sizeof(nvjpegImage_t) == sizeof(gp_gpu_image)
               && offsetof(nvjpegImage_t, pitch) == offsetof(gp_gpu_image, pitch) && sizeof(nvjpegStatus_t) == sizeof(int)
               && sizeof(nvjpegBackend_t) == sizeof(int) && sizeof(nvjpegOutputFormat_t) == sizeof(int), "sizes");

/* Calls that do not compile if the header has other parameters in these places. */
__attribute__((unused)) static int calls(nvjpegHandle_t h, nvjpegJpegState_t s, nvjpegJpegStream_t p, const unsigned char *file,
                                         size_t n, const unsigned char *const *files, const size_t *sizes,
                                         nvjpegImage_t *to, cudaStream_t stream, int *out, unsigned *size)
{
    return nvjpegGetProperty(MAJOR_VERSION, out) + nvjpegCreateEx(NVJPEG_BACKEND_HARDWARE, NULL, NULL, 0u, &h)
         + nvjpegDestroy(h) + nvjpegJpegStateCreate(h, &s) + nvjpegJpegStateDestroy(s) + nvjpegJpegStreamCreate(h, &p)
         + nvjpegJpegStreamDestroy(p) + nvjpegJpegStreamParseHeader(h, file, n, p)
         + nvjpegJpegStreamGetFrameDimensions(p, size, size) + nvjpegJpegStreamGetComponentsNum(p, size)
         + nvjpegDecodeBatchedSupported(h, p, out) + nvjpegDecodeBatchedInitialize(h, s, 1, 1, NVJPEG_OUTPUT_RGBI)
         + nvjpegDecodeBatched(h, s, files, sizes, to, stream) + nvjpegDecode(h, s, file, n, NVJPEG_OUTPUT_RGBI, to, stream);
}
#endif
#endif

TEST(statuses)
{
    char buf[24];
    ck_assert_str_eq(gp_gpu_status(GP_GPU_JPEG, 3, buf), "BAD_JPEG");
    ck_assert_str_eq(gp_gpu_status(GP_GPU_JPEG, 10, buf), "INCOMPLETE_BITSTREAM");
    ck_assert_str_eq(gp_gpu_status(GP_GPU_JPEG, 11, buf), "status 11");
    ck_assert_str_eq(gp_gpu_status(GP_GPU_JPEG, -1, buf), "status -1");
}

/* ---- decoding -------------------------------------------------------- */

extern const gp_kind gp_kind_decode;
static nvjpeg_fake *fake;      /* what the library does, and has done */

/* As the kind `decode` on a machine with a GPU: the memory of the CPU back end will do. */
static bool shape(gp_shape *s)
{
    gp_decode_opts *o = (gp_decode_opts *)s->opts;
    if (!gp_kind_decode.shape(s))
        return false;
    if (s->partial)
        return true;
    o->by = o->decoder == GP_DECODER_CPU ? GP_DECODER_CPU : GP_DECODER_HARDWARE;
    s->fills_device = o->by != GP_DECODER_CPU, s->at_once = GP_DECODE_AT_ONCE, s->default_workers = 2;
    return true;
}

static void set_up(void)
{
    gp_kind kind = gp_kind_decode;
    kind.name = "nvdecode", kind.shape = shape;
    pipe_kinds(&kind, 1);
    fake = suite_fake("nvjpeg_fake");
    *fake = (nvjpeg_fake){ .version = 13, .bad_status = 3 };
}

static gp_outcome run_yaml(const char *dir, const char *yaml, gp_account *a, gp_errs *errs)
{
    pipe_result r = pipe_run(dir, yaml, "cpu", NULL, (gp_run_options){ 0 });
    ck_assert_msg(r.compiled, "%s", r.errs.e[0].msg);
    *a = r.account[0], *errs = r.errs;
    return r.outcome;
}

static gp_outcome run(const char *dir, const char *knob, const char *stage, const char *to, gp_account *a,
                      gp_errs *errs)
{
    char cwd[300];
    ck_assert_ptr_nonnull(getcwd(cwd, sizeof cwd));
    char *yaml = format("%sbuffers: {photo: {shape: [\"<=400\", \"<=400\", 3]}}\nstages:\n"
                        "  - {use: read, path: \"%s/tests/data/jpeg/*.jpg\", format: bytes, out: coded}\n"
                        "  - {use: %s, in: coded, out: photo}\n  - {use: decimate, frames: 1}\n"
                        "  - {use: write, path: \"%s/%%n.npy\", durable: none}\n", knob, cwd, stage, to);
    return run_yaml(dir, yaml, a, errs);
}

static const char *const knobs[] = { "", "depth: 1\n", "depth: 5\n", "depth: 90\n" };
static const char *const stages[] = { "nvdecode, on_error: drop", "nvdecode, on_error: drop, workers: 1",
                                      "nvdecode, on_error: drop, workers: 3", "nvdecode, on_error: drop, orientation: keep",
                                      "nvdecode, on_error: drop, colors: rgb" };

/* The pictures that the library decodes, alone or in batches, and those that the CPU does, are where they belong:
 * all are as the CPU has them. `garbled`: a batch with this file in it fails. */
static void compare(const char *dir, const char *knob, const char *stage, const char *garbled)
{
    static const char *const names[] = { "rgb420_19x33", "rgb444_1x1", "progressive", "arithmetic", "as_rgb", "orient1", "orient2",
                                         "orient3", "orient4", "orient5", "orient6", "orient7", "orient8", "restarts", "profile",
                                         "rgb422_17x3", "gray_19x33", "progressive_gray" };
    bool rgb = strstr(stage, "rgb") != NULL;
    size_t there = sizeof names / sizeof *names - (rgb ? 0 : 2);
    gp_account a, b;
    gp_errs errs, others;
    char name[100];
    size_t n, m;
    ck_assert_msg(run(dir, knob, stage, "gpu", &a, &errs) == GP_DONE, "%s%s: %s", knob, stage, pipe_said(&errs));
    char *by_cpu = format("decode, decoder: cpu, on_error: drop%s", strstr(stage, "keep") ? ", orientation: keep"
                          : rgb ? ", colors: rgb" : "");
    ck_assert_int_eq(run(dir, "", by_cpu, "cpu", &b, &others), GP_DONE);
    ck_assert_msg(a.in == b.in && a.failed == b.failed + (garbled != NULL), "%s%s: %d failed, by the CPU %d", knob, stage,
                  (int)a.failed, (int)b.failed);
    for (size_t i = 0; i < there; i++) {
        bool gone = garbled && !strcmp(names[i], garbled);
        snprintf(name, sizeof name, "gpu/%s.npy", names[i]);
        OWNED char *x = pipe_read(dir, name, &n);
        snprintf(name, sizeof name, "cpu/%s.npy", names[i]);
        OWNED char *y = pipe_read(dir, name, &m);
        ck_assert_msg(!x == gone && y, "%s%s: %s", knob, stage, names[i]);
        ck_assert_msg(gone || (n == m && !memcmp(x, y, n)), "%s%s: %s differs", knob, stage, names[i]);
    }
    if (garbled) {
        char buf[24];
        snprintf(name, sizeof name, "'%s' is a JPEG file that nvJPEG does not decode (%s)", garbled,
                 gp_gpu_status(GP_GPU_JPEG, fake->bad_status, buf));
        bool said = false;
        for (int i = 0; i < errs.n; i++)
            said |= strstr(errs.e[i].msg, name) != NULL;
        ck_assert_msg(said, "no '%s'", name);
    }
}

TEST_LOOP(as_the_cpu_has_them, 0, 20)
{
    const char *dir = pipe_dir();
    compare(dir, knobs[_i % 4], stages[_i / 4], NULL);
    ck_assert_int_gt(atomic_load(&fake->in_batches), 0);
    ck_assert_int_gt(atomic_load(&fake->alone), 0);
    if (_i == 1)
        ck_assert_int_eq(atomic_load(&fake->most), 1);
    if (_i == 3)
        ck_assert_int_gt(atomic_load(&fake->most), 1);
}

/* The library says this of the file, and of a batch with it. */
static void garble(const char *name, int status)
{
    size_t n;
    OWNED char *data = pipe_read("tests/data", format("jpeg/%s.jpg", name), &n);
    ck_assert_ptr_nonnull(data);
    fake->bad = n, fake->bad_status = status;
}

/* A batch that fails is done one by one; a file that fails alone is a hole, wherever it is in its batch. */
TEST_SOME(batches_that_fail, 60, 7, 1)
{
    static const char *const garbled[] = { "orient1", "restarts", "profile" };
    const char *dir = pipe_dir();
    garble(garbled[_i % 3], _i % 2 ? 3 : 10);
    compare(dir, knobs[_i / 3 % 4], stages[_i / 12], garbled[_i % 3]);
}

/* There is less memory than batches need: their files are done one by one. */
TEST_LOOP(little_memory, 0, 8)
{
    const char *dir = pipe_dir();
    fake->room = _i % 2 + 1;
    compare(dir, knobs[_i / 2], stages[_i % 4], NULL);
    ck_assert_int_le(atomic_load(&fake->most), fake->room);
}

/* What is no file's fault, of files in batches or alone, makes no hole: it ends the run. */
TEST_LOOP(machine_fails, 0, 24)
{
    static const struct { int status; const char *name; } cases[] = {
        { 5, "ALLOCATOR_FAILURE" }, { 6, "EXECUTION_FAILED" }, { 8, "INTERNAL_ERROR" },
    };
    const char *dir = pipe_dir();
    gp_account a;
    gp_errs errs = { .n = 0 };
    bool said = false;
    garble(_i % 2 ? "progressive" : "orient1", cases[_i / 2 % 3].status);
    ck_assert_int_eq(run(dir, knobs[_i / 6], stages[_i % 4], "gpu", &a, &errs), GP_ERROR);
    char *says = format("stage 'nvdecode': nvJPEG failed (%s): lower 'workers' or a depth, or set "
                        "'decoder: cpu'", cases[_i / 2 % 3].name);
    for (int i = 0; i < errs.n; i++)
        said |= !strcmp(errs.e[i].msg, says) && errs.e[i].code == GP_E_RESOURCE;
    ck_assert_msg(said, "%s, not %s", errs.e[0].msg, says);
}

/* But of a file that is wrong, whatever nvJPEG says of it, a hole. */
TEST_LOOP(wrong_all_the_same, 0, 4)
{
    const char *dir = pipe_dir();
    gp_account a;
    gp_errs errs = { .n = 0 };
    size_t n;
    OWNED char *data = pipe_read("tests/data", _i % 2 ? "jpeg/progressive.jpg" : "jpeg/restarts.jpg", &n);
    ck_assert_ptr_nonnull(data);
    memcpy(data + n - n / 8, "\xff\xd9", 2);          /* it ends before its last rows */
    pipe_file(dir, "in.jpg", data, n);
    fake->bad = n, fake->bad_status = _i < 2 ? 5 : 8;
    ck_assert_int_eq(run_yaml(dir, "buffers: {photo: {shape: [\"<=400\", \"<=400\", 3]}}\nstages:\n"
                              "  - {use: read, path: in.jpg, format: bytes, out: coded, loop: true, frames: 5}\n"
                              "  - {use: nvdecode, in: coded, out: photo, on_error: drop}\n"
                              "  - {use: decimate, frames: 1}\n  - {use: discard}\n", &a, &errs), GP_DONE);
    ck_assert_msg(a.failed == 5 && strstr(errs.e[0].msg, "'in' is a broken JPEG file"), "%s", pipe_said(&errs));
}

/* A library that finds another size than gpipe would write beyond the picture. */
TEST(two_headers)
{
    const char *dir = pipe_dir();
    gp_account a;
    gp_errs errs = { .n = 0 };
    fake->wider = true;
    ck_assert_int_eq(run(dir, "", "nvdecode", "gpu", &a, &errs), GP_ERROR);
    ck_assert_msg(errs.n && strstr(errs.e[0].msg, "frame 1: 'as_rgb'") == NULL, "%s", errs.e[0].msg);
    errs = (gp_errs){ .n = 0 };
    ck_assert_int_eq(run(dir, "", "nvdecode, on_error: drop", "gpu", &a, &errs), GP_DONE);
    bool said = false;
    for (int i = 0; i < errs.n; i++)
        said |= strstr(errs.e[i].msg, "'rgb420_1x1' is a broken JPEG file: it has two headers") != NULL;
    ck_assert(said && atomic_load(&fake->in_batches) == 0 && atomic_load(&fake->alone) == 0);
}

/* The numbers of a file that the CPU decodes are its frame's. */
TEST(numbers)
{
    const char *dir = pipe_dir();
    gp_account a;
    gp_errs errs = { .n = 0 };
    pipe_text(dir, "mark.lua", "function process(frame, x, y)\n  y:copy(x)\n"
              "  frame.meta.exposure = 5 + frame.index\nend\n");
    pipe_text(dir, "same.lua", "function process(frame, x)\n  assert(frame.meta.exposure == 5 + frame.index)\nend\n");
    ck_assert_int_eq(run_yaml(dir, "metadata: [exposure]\nbuffers: {x: {dtype: u8, shape: [5, 7]}}\nstages:\n"
                              "  - {use: generate, frames: 9, out: x}\n  - {use: lua, script: mark.lua}\n"
                              "  - {use: write, path: '%d.png'}\n", &a, &errs), GP_DONE);
    ck_assert_msg(run_yaml(dir, "metadata: [exposure]\nbuffers: {photo: {shape: [5, 7]}}\nstages:\n"
                           "  - {use: read, path: '%d.png', format: bytes, out: coded}\n"
                           "  - {use: nvdecode, in: coded, out: photo}\n  - {use: decimate, frames: 1}\n"
                           "  - {use: lua, script: same.lua, out: []}\n", &a, &errs) == GP_DONE && a.out == 9, "%s",
                  pipe_said(&errs));
}

/* What opening says. */
TEST_LOOP(no_decoder, 0, 2)
{
    static const struct { int status; const char *says; } cases[] = {
        { 7, "stage 'nvdecode': nvJPEG finds no JPEG decoder in this GPU (ARCH_MISMATCH): set 'decoder: cuda'" },
        { 5, "stage 'nvdecode': nvJPEG finds no JPEG decoder in this GPU, or none that this process may use (ALLOCATOR_FAILURE): "
             "set 'decoder: cuda'" },
    };
    const char *dir = pipe_dir();
    gp_account a;
    gp_errs errs = { .n = 0 };
    fake->create_status = cases[_i].status;
    ck_assert_int_eq(run(dir, "", "nvdecode", "gpu", &a, &errs), GP_ERROR);
    ck_assert_msg(!strcmp(errs.e[0].msg, cases[_i].says), "%s", errs.e[0].msg);
}

TEST_SUITE(nvjpeg, set_up, NULL, 0)
