/* test_faults.c - what the command does when the device fails it: kernels that write to nowhere, never end, do not
 * compile or ask for too much; no memory; Ctrl-C. Each run is a process of its own and must end in time with the exit
 * code and the words that say what to do. GPIPE is the command. Without a GPU runs, on the CPU, what faults there in
 * the same way. */
#include <errno.h>
#include <regex.h>
#include <sys/stat.h>
#if GP_CUDA
#include <cuda_runtime_api.h>
#endif
#include "command.h"
#include "gpu.h"
#include "pipe.h"

Suite *suite_faults(void);

enum { LIMIT = 60, SAYS = 6 };

static const char *dir;
static char runtime[400];

static void set_up(void)
{
    dir = pipe_dir();
    setenv("XDG_CACHE_HOME", dir, 1);      /* of compiled kernels */
    snprintf(runtime, sizeof runtime, "%s/runtime", dir);
    mkdir(runtime, 0700);
    setenv("XDG_RUNTIME_DIR", runtime, 1); /* of sockets */
}

static void tear_down(void)
{
    pipe_dir_remove(dir);
}

static bool matches(const char *text, const char *pattern)
{
    regex_t re;
    ck_assert_msg(regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB) == 0, "%s", pattern);
    bool yes = regexec(&re, text, 0, NULL, 0) == 0;
    regfree(&re);
    return yes;
}

/* Runs dir/test.yaml with dir/k.cu; `extra` are more arguments, up to a NULL. */
static command_result run(const char *yaml, const char *cu, const char *const *extra, double limit, int interrupts)
{
    const char *args[20] = { "run", "--device", have_gpu ? "cuda" : "cpu" };
    int n = 3;
    pipe_text(dir, "test.yaml", yaml);
    if (cu)
        pipe_text(dir, "k.cu", cu);
    char *path = format("%s/test.yaml", dir);
    while (extra && *extra && n < 18)
        args[n++] = *extra++;
    args[n] = path;
    return command_run(dir, args, limit, interrupts);
}

/* ---- runs that must fail --------------------------------------------- */

/* Two stages in one segment, the second is the user's kernel. */
#define PIPELINE(top, kernel)                                    \
    top                                                          \
    "buffers: {a: {dtype: f32, shape: [64]}}\n"                  \
    "stages:\n"                                                  \
    "  - {use: generate, out: a, frames: 20}\n"                  \
    "  - {name: first, use: scale, a: 2, out: b}\n"              \
    "  - {name: second, use: kernel, source: k.cu, " kernel "}\n" \
    "  - {use: discard}\n"

#define FRAME_ARGS "args: [in, out, frame]"

/* 4 TiB away there is nothing. */
#define WILD(when)                                                                        \
    "extern \"C\" __global__ void k(const float *in, float *out, const gp_frame_info *frame)\n" \
    "{\n"                                                                                 \
    "    out[threadIdx.x % 64] = in[threadIdx.x % 64];\n"                                 \
    "    if (" when ")\n"                                                                 \
    "        out[(1ull << 40) + threadIdx.x] = 1.0f;\n"                                   \
    "}\n"

#define ENDLESS(when)                                                                     \
    "extern \"C\" __global__ void k(const float *in, float *out, const gp_frame_info *frame)\n" \
    "{\n"                                                                                 \
    "    volatile float *v = out;\n"                                                      \
    "    for (int i = 1; i < 64; i++) out[i] = in[i];\n"                                  \
    "    *v = in[0] * 0.0f;\n"                                                            \
    "    while (*v == 0.0f && (" when "))\n"                                              \
    "        ;\n"                                                                         \
    "}\n"

static const struct {
    const char *name, *yaml, *cu;
    const char *args[4];
    int code;
    double limit;                  /* s; else LIMIT */
    bool gpu;                      /* nothing of the kind happens on the CPU */
    const char *says[SAYS];        /* extended regular expressions, in stderr */
} cases[] = {
    { "a wild pointer", PIPELINE("", "entry: k, " FRAME_ARGS ", grid: [1]"),
      WILD("frame->index == 7"), { 0 }, 1, 0, true,
      { "cudaErrorIllegalAddress", "segment 'first\\.\\.second'",
        "frames [0-9]+ to [0-9]+ are not finished", "gpipe run --isolate .*test\\.yaml",
        "test\\.yaml:[0-9]+:[0-9]+: error", "gpipe: [1-9][0-9]* frames? in" } },
    { "a wild pointer, isolated", PIPELINE("", "entry: k, " FRAME_ARGS ", grid: [1]"),
      WILD("frame->index == 7"), { "--isolate" }, 1, 0, true,
      { "stage 'second' failed on the device in frame 7", "test\\.yaml:[0-9]+:[0-9]+: error" } },
    { "a wild pointer, launch: stream", PIPELINE("launch: stream\n", "entry: k, " FRAME_ARGS
      ", grid: [1]"), WILD("frame->index == 7"), { 0 }, 1, 0, true,
      { "cudaErrorIllegalAddress", "gpipe run --isolate .*test\\.yaml" } },
    { "a wild pointer from the first frame", PIPELINE("", "entry: k, " FRAME_ARGS ", grid: [1]"),
      WILD("true"), { 0 }, 1, 0, true,
      { "cudaErrorIllegalAddress", "segment 'first\\.\\.second'; frames 0 to [0-9]+ are not",
        "gpipe run --isolate .*test\\.yaml", "gpipe: ([1-9][0-9]*) frames? in, 0 out, .* \\1 cancelled" } },
    { "a wild pointer from the first frame, isolated",
      PIPELINE("", "entry: k, " FRAME_ARGS ", grid: [1]"), WILD("true"), { "--isolate" }, 1, 0,
      true, { "stage 'second' failed on the device in frame 0" } },

    { "a kernel that never ends", PIPELINE("stall_timeout: 2s\n", "entry: k, " FRAME_ARGS
      ", grid: [1], block: [1]"), ENDLESS("frame->index == 3"), { 0 }, 5, 20, true,
      { "nothing moved for 2", "'first\\.\\.second' is busy with frame [0-3]",
        "[0-9]+ frames? in" } },
    { "a kernel that never ends, from the first frame",
      PIPELINE("stall_timeout: 2s\n", "entry: k, " FRAME_ARGS ", grid: [1], block: [1]"),
      ENDLESS("true"), { 0 }, 5, 20, true, { "nothing moved for", "'first\\.\\.second' is busy with frame 0" } },

    { "a kernel with a syntax error", PIPELINE("", "entry: k, grid: 1, args: [in, out]"),
      "extern \"C\" __global__ void k(const float *in, float *out)\n"
      "{\n"
      "    out[0] = in[0]\n"
      "}\n", { 0 }, 3, 0, false, { "k\\.cu:[34]:?[0-9]*: error" } },
    { "an unknown name", PIPELINE("", "entry: k, grid: 1, args: [in, out]"),
      "extern \"C\" __global__ void k(const float *in, float *out)\n"
      "{\n"
      "    out[0] = in[nowhere];\n"
      "}\n", { 0 }, 3, 0, false, { "k\\.cu:3:?[0-9]*: error: .*nowhere" } },
    { "too few arguments", PIPELINE("", "entry: k, grid: 1, args: [in, out]"),
      "extern \"C\" __global__ void k(const float *in, float *out, int n)\n"
      "{\n"
      "    out[0] = in[n];\n"
      "}\n", { 0 }, 3, 0, false, { "k\\.cu:1:[0-9]+: error: 'k' has 3 parameters, but args gives 2 values \\(.*test\\.yaml:5:[0-9]+\\)" } },
    { "an argument of another type", PIPELINE("", "entry: k, grid: 1, args: [in, out, {i32: 3}]"),
      "extern \"C\" __global__ void k(const float *in, float *out, float n)\n"
      "{\n"
      "    out[0] = in[0] * n;\n"
      "}\n", { 0 }, 3, 0, false,
      { "k\\.cu:1:[0-9]+: error: parameter 3 of 'k' is 'float n', but args passes 'int' \\(.*test\\.yaml:5:[0-9]+\\)" } },

    { "a block that the kernel excludes",
      PIPELINE("", "entry: k, args: [in, out], block: [512], grid: [1]"),
      "extern \"C\" __global__ void __launch_bounds__(256) k(const float *in, float *out)\n"
      "{\n"
      "    out[threadIdx.x % 64] = in[threadIdx.x % 64];\n"
      "}\n", { 0 }, 3, 0, true, { "kernel 'k' can have 256 threads in a block", "lower 'block'" } },
    { "a block with too many registers",
      PIPELINE("", "entry: k, args: [in, out, {i32: 5}], block: [1024], grid: [1]"),
      "extern \"C\" __global__ void k(const float *in, float *out, int n)\n"
      "{\n"
      "    float v[120], sum = 0;\n"
      "#pragma unroll\n"
      "    for (int i = 0; i < 120; i++)\n"
      "        v[i] = in[(threadIdx.x + i) % 64];\n"
      "    for (int k = 0; k < n; k++)\n"
      "#pragma unroll\n"
      "        for (int i = 0; i < 120; i++)\n"
      "            v[i] = v[i] * v[(i + 1) % 120] + v[(i + 7) % 120];\n"
      "#pragma unroll\n"
      "    for (int i = 0; i < 120; i++)\n"
      "        sum += v[i];\n"
      "    out[threadIdx.x % 64] = sum;\n"
      "}\n", { 0 }, 3, 0, true, { "kernel 'k' can have [0-9]+ threads in a block",
      "lower 'block'" } },
    { "more shared memory than is left",
      PIPELINE("", "entry: k, args: [in, out], shared: 227KiB, grid: [1]"),
      "extern \"C\" __global__ void k(const float *in, float *out)\n"
      "{\n"
      "    __shared__ float mine[1024];\n"
      "    extern __shared__ float more[];\n"
      "    mine[threadIdx.x] = more[threadIdx.x] = in[threadIdx.x % 64];\n"
      "    __syncthreads();\n"
      "    out[threadIdx.x % 64] = mine[63 - threadIdx.x % 64] + more[threadIdx.x % 64];\n"
      "}\n", { 0 }, 3, 0, true, { "kernel 'k' asks for 232448 bytes of dynamic shared memory",
      "lower 'shared'", "test\\.yaml:[0-9]+:[0-9]+: error" } },
    { "more shared memory than any block has",
      PIPELINE("", "entry: k, args: [in, out], shared: 300KiB, grid: [1]"),
      WILD("false"), { 0 }, 3, 0, false, { "307200 bytes of shared memory" } },
    { "a shared array that is too large", PIPELINE("", "entry: k, args: [in, out], grid: [1]"),
      "extern \"C\" __global__ void k(const float *in, float *out)\n"
      "{\n"
      "    __shared__ float mine[100000];\n"
      "    mine[threadIdx.x * 300] = in[threadIdx.x % 64];\n"
      "    __syncthreads();\n"
      "    out[threadIdx.x % 64] = mine[300 * (threadIdx.x % 64)];\n"
      "}\n", { 0 }, 3, 0, true, { "k\\.cu.*shared" } },

    { "buffers larger than the memory",
      "buffers: {a: {dtype: u8, shape: [1000000000000]}}\nstages:\n  - {use: generate, out: a, frames: 1}\n"
      "  - {use: threshold, level: 3}\n  - {use: discard}\n", NULL, { 0 }, 4, 0, false,
      { "test\\.yaml:1:[0-9]+: error: the pipeline needs .* buffer 'a'" } },
    { "no such GPU", PIPELINE("", "entry: k, grid: 1, args: [in, out]"), WILD("false"),
      { "--device", "cuda:99" }, 4, 0, false,
      { "there is no device 'cuda:99'" } },
};

TEST_EACH(fails_as_it_should, cases)
{
    if (cases[_i].gpu && !have_gpu)
        return;
    double limit = cases[_i].limit > 0 ? cases[_i].limit : LIMIT;
    const char *extra[] = { cases[_i].args[0], cases[_i].args[1], cases[_i].args[2],
                            cases[_i].args[3], NULL };
    command_result r = run(cases[_i].yaml, cases[_i].cu, extra, limit, 0);
    ck_assert_msg(!r.late, "%s: did not end in %g s; stderr:\n%s", cases[_i].name, limit, r.err);
    ck_assert_msg(r.code == cases[_i].code, "%s: exit %d, not %d; stderr:\n%s", cases[_i].name,
                  r.code, cases[_i].code, r.err);
    for (int i = 0; i < SAYS && cases[_i].says[i]; i++)
        ck_assert_msg(matches(r.err, cases[_i].says[i]), "%s: stderr lacks '%s':\n%s",
                      cases[_i].name, cases[_i].says[i], r.err);
    command_free(&r);
}

/* ---- a kernel without room for its local variables ------------------- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };            /* which then tells of faults */
#else
enum { SANITIZED = 0 };
#endif

/* Always on the CPU: for a GPU it would not compile. No socket stays behind. */
TEST_LOOP(local_variables_that_are_too_large, 0, 2)
{
    static const char *const define[] = { "", ", define: {WAIT: 1}" };
    char *yaml = format(PIPELINE("", "entry: k, grid: 1, args: [in, out]%s"), define[_i]);
    char *sockets = format("%s/gpipe", runtime);
    command_result r = run(yaml,
        "extern \"C\" __global__ void k(const float *in, float *out)\n"
        "{\n"
        "    volatile float mine[16 * 1024 * 1024];\n"
        "    mine[(int)in[0]] = 1;\n"
        "#ifdef WAIT\n"
        "    __syncthreads();\n"
        "#endif\n"
        "    out[threadIdx.x % 64] = mine[(int)in[1] + 1000000];\n"
        "}\n", (const char *[]){ "--device", "cpu", NULL }, LIMIT, 0);
    ck_assert_msg(!r.late && (SANITIZED ? r.code != 0 : r.code == 1), "exit %d; stderr:\n%s", r.code, r.err);
    ck_assert_msg(SANITIZED || strstr(r.err, "error: kernel 'k' of stage 'second' needs more than "
                                             "1 MiB for the local variables of a thread"),
                  "stderr:\n%s", r.err);
    /* an empty folder: a socket was there */
    ck_assert_msg(SANITIZED || rmdir(sockets) == 0, "%s: %s", sockets, strerror(errno));
    command_free(&r);
}

/* ---- memory that somebody else has ----------------------------------- */

#if GP_CUDA
/* 8 GiB on the device, nearly nothing on the host. */
static const char big_yaml[] =
    "depth: 2\n"
    "buffers:\n"
    "  a: {dtype: f32, shape: [64]}\n"
    "  big: {dtype: f32, shape: [1073741824]}\n"
    "  c: {dtype: f32, shape: [64]}\n"
    "stages:\n  - {use: generate, out: a, frames: 3}\n"
    "  - {use: kernel, source: k.cu, entry: k, args: [in, out, {i64: out.size}],\n"
    "     block: [64], grid: [1000], out: big}\n"
    "  - {use: kernel, source: k.cu, entry: k, args: [in, out, {i64: out.size}],\n"
    "     block: [64], grid: [1], out: c}\n"
    "  - {use: discard}\n";
static const char big_cu[] =
    "extern \"C\" __global__ void k(const float *in, float *out, long long n)\n"
    "{\n"
    "    for (long long i = blockIdx.x * 64 + threadIdx.x; i < n; i += gridDim.x * 64)\n"
    "        out[i] = in[i % 64];\n"
    "}\n";

/* Takes GPU memory, the largest pieces first, until `leave` bytes are free. */
static int take(void **held, int most, size_t leave)
{
    int n = 0;
    for (size_t piece = (size_t)1 << 40; piece >= 1 << 20; piece /= 2) {
        size_t left, all;
        while (n < most && cudaMemGetInfo(&left, &all) == cudaSuccess && left >= leave + piece
               && cudaMalloc(&held[n], piece) == cudaSuccess)
            n++;
    }
    cudaGetLastError();
    return n;
}

TEST_LOOP(memory_is_taken, 0, 3)
{
    static const struct { size_t leave; int code; const char *says; } left[] = {
        { (size_t)24 << 30, 0, "3 frames in, 3 out" },
        { (size_t)2 << 30, 4, "no room for [0-9.]+ MiB of GPU memory.*lower a depth" },
        { 0, 4, "error: " },
    };
    void *held[200];
    if (!have_gpu)
        return;
    cudaSetDevice(0);
    int n = take(held, 200, left[_i].leave);
    command_result r = run(big_yaml, big_cu, NULL, LIMIT, 0);
    while (n)
        cudaFree(held[--n]);
    ck_assert_msg(!r.late, "did not end in %d s; stderr:\n%s", LIMIT, r.err);
    ck_assert_msg(r.code == left[_i].code && matches(r.err, left[_i].says),
                  "exit %d, not %d, or stderr lacks '%s':\n%s", r.code, left[_i].code, left[_i].says, r.err);
    command_free(&r);
}
#endif

/* ---- Ctrl-C ---------------------------------------------------------- */

#define ACCOUNT "%llu frame%*[^0-9]%llu out, %llu dropped, %llu failed, %llu cancelled"

/* Each frame's account adds up; the numbers of the last line that has them. */
static void read_account(const command_result *r, unsigned long long v[5])
{
    const char *at = strstr(r->err, " in, ");
    ck_assert_msg(at, "no account:\n%s", r->err);
    while (at > r->err && !(at[-1] >= '0' && at[-1] <= '9'))
        at--;
    while (at > r->err && at[-1] >= '0' && at[-1] <= '9')
        at--;
    ck_assert_int_eq(sscanf(at, ACCOUNT, &v[0], &v[1], &v[2], &v[3], &v[4]), 5);
    ck_assert_msg(v[0] == v[1] + v[2] + v[3] + v[4], "does not add up:\n%s", r->err);
}

TEST(interrupted_once)
{
    unsigned long long v[5];
    command_result r = run(
        "buffers: {a: {dtype: f32, shape: [64]}}\nstages:\n  - {use: generate, out: a, rate: 500}\n"
        "  - {use: scale, a: 2}\n  - {use: write, path: stdout, format: raw}\n", NULL, NULL, LIMIT, 1);
    ck_assert_msg(!r.late && r.code == 130, "exit %d; stderr:\n%s", r.code, r.err);
    read_account(&r, v);
    ck_assert_msg(v[1] > 0 && v[1] == v[0], "what was taken in did not come out:\n%s", r.err);
    ck_assert_uint_eq(r.nout, 256 * v[1]);
    command_free(&r);
}

TEST(interrupted_twice)
{
    unsigned long long v[5];
    command_result r = run(
        "stall_timeout: 0\nbuffers: {a: {dtype: f32, shape: [64]}}\nstages:\n  - {use: generate, out: a}\n"
        "  - {use: kernel, source: k.cu, entry: k, args: [in, out], grid: [1], block: [1]}\n"
        "  - {use: write, path: stdout, format: raw}\n",
        "extern \"C\" __global__ void k(const float *in, float *out)\n"
        "{\n"
        "    float v = in[0];\n"
        "    for (int i = 0; i < 400000000; i++)\n"      /* a second or two */
        "        v = v * 0.5f + 1.0f;\n"
        "    for (int i = 0; i < 64; i++) out[i] = v;\n"
        "}\n", NULL, LIMIT, 2);
    ck_assert_msg(!r.late && r.code == 130, "exit %d; stderr:\n%s", r.code, r.err);
    ck_assert_msg(strstr(r.err, "not drained"), "does not say 'not drained':\n%s", r.err);
    read_account(&r, v);
    ck_assert_msg(v[4] > 0, "nothing was cancelled:\n%s", r.err);
    command_free(&r);
}

/* ---- the same output, however it is launched and waited for ---------- */

TEST(sync_and_launch)
{
    static const char *const sync[] = { "sync=auto", "sync=spin", "sync=yield", "sync=block" };
    static const char *const launch[] = { "launch=graph", "launch=stream" };
    command_result first = { 0 };
    static const char *const copies[] = { "copies=mapped", "copies=dma" };
    for (int i = 0; i < 16; i++) {
        const char *extra[] = { "--set", sync[i % 4], "--set", launch[i / 4 % 2], "--set", copies[i / 8], NULL };
        command_result r = run(
            "depth: 4\nbuffers: {a: {dtype: f32, shape: [40, 50]}}\nstages:\n"
            "  - {use: generate, out: a, frames: 50, pattern: noise}\n  - {use: blur, sigma: 1.5}\n"
            "  - {use: scale, a: 3}\n  - {use: write, path: stdout, format: raw}\n", NULL, extra, LIMIT, 0);
        ck_assert_msg(!r.late && r.code == 0, "%s, %s, %s: exit %d; stderr:\n%s", extra[1], extra[3], extra[5], r.code,
                      r.err);
        ck_assert_uint_eq(r.nout, 50 * 40 * 50 * 4);
        ck_assert_msg(!i || !memcmp(r.out, first.out, r.nout), "%s, %s, %s: not the output of %s, %s",
                      extra[1], extra[3], extra[5], sync[0], launch[0]);
        if (!i)
            first = r;
        else
            command_free(&r);
    }
    command_free(&first);
}

Suite *suite_faults(void)
{
    if (!getenv("GPIPE")) {
        printf("**** SKIPPED: faults: GPIPE does not name the command ****\n");
        return NULL;
    }
    Suite *s = suite_create("faults");
    TCase *t = tcase_create("faults");
    tcase_add_unchecked_fixture(t, set_up, tear_down);
    suite_fill(t, suite_items, 1);
    suite_add_tcase(s, t);
    return s;
}
