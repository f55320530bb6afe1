/* test_memory.c - a frame costs no allocation, and a run no more memory than its plan says.
 *
 * This program's malloc() and its like count, and hand on to glibc's. Sanitizers have a malloc() of their own, so
 * nothing is counted then. */
#include <errno.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include "iotest.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
#define COUNTS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define COUNTS 0
#endif
#endif
#ifndef COUNTS
#define COUNTS 1
#endif

static atomic_long allocations;

#if COUNTS
#pragma GCC visibility push(default)   /* so that the C library and Lua call them too */
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);

void *malloc(size_t n)
{
    atomic_fetch_add(&allocations, 1);
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    atomic_fetch_add(&allocations, 1);
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    atomic_fetch_add(&allocations, 1);
    return __libc_realloc(p, n);
}

void *aligned_alloc(size_t align, size_t n)
{
    atomic_fetch_add(&allocations, 1);
    return __libc_memalign(align, n);
}

int posix_memalign(void **p, size_t align, size_t n)
{
    *p = aligned_alloc(align, n);
    return *p ? 0 : ENOMEM;
}
#pragma GCC visibility pop
#endif

/* ---- allocations ----------------------------------------------------- */

#define TURN "  - {use: kernel, source: turn.cu, cooperative: true, args: [in, out], grid: 4, block: 16,\n" \
             "     shared: 64}\n"

/* %s is a number of frames. */
static const struct { const char *name, *yaml; } pipelines[] = {
    { "device", "buffers: {a: {dtype: f32, shape: [64, 64]}}\nstages:\n"
      "  - {use: generate, frames: %s, out: a}\n  - {use: scale, a: 2}\n"
      "  - {use: fir, taps: [1, 2, 1]}\n  - {use: discard}\n" },
    { "files", "stages:\n  - {use: read, path: in.npy, loop: true, frames: %s}\n"
      "  - {use: gray}\n  - {use: cast, dtype: u8}\n  - {use: write, path: out.raw}\n" },
    { "stacked", "stages:\n  - {use: read, path: in.npy, loop: true, frames: %s}\n"
      "  - {use: write, path: out.npy, stack: true}\n" },
    { "lua", "buffers: {a: {dtype: f32, shape: [64]}}\nstages:\n  - {use: generate, frames: %s, out: a}\n"
      "  - {use: lua, script: copy.lua, workers: 2}\n  - {use: discard}\n" },
    { "cooperative", "batch: 1\nbuffers: {a: {dtype: f32, shape: [64]}}\nstages:\n"
      "  - {use: generate, frames: %s, out: a}\n" TURN "  - {use: discard}\n" },
    { "cooperative, not as a graph", "launch: stream\nbatch: 1\n"
      "buffers: {a: {dtype: f32, shape: [64]}}\nstages:\n"
      "  - {use: generate, frames: %s, out: a}\n" TURN "  - {use: discard}\n" },
    { "partial frames", "buffers: {a: {dtype: f32, shape: [64]}}\nstages:\n"
      "  - {use: lua, script: short.lua, params: {frames: %s}, out: a}\n"
      "  - {use: kernel, source: part.cu, args: [in, out, {i32: \"in.shape[0] - 2 * floor(in.size / 9)\"}],\n"
      "     grid: \"ceil(in.shape[0] / 16)\", block: 16}\n  - {use: discard}\n" },
    { "host", "buffers: {a: {dtype: f32, shape: [64]}}\nstages:\n"
      "  - {use: generate, frames: %s, out: a}\n  - {use: discard}\n" },
};

static long count(const char *yaml, const char *frames)
{
    char *text = format(yaml, frames);
    long before = atomic_load(&allocations);
    pipe_result r = pipe_run(io_dir, text, "cpu", NULL, (gp_run_options){ 0 });
    long n = atomic_load(&allocations) - before;
    ck_assert_msg(r.outcome == GP_DONE, "%s", io_error(&r));
    ck_assert_uint_eq(r.account[0].out, (uint64_t)atoi(frames));
    return n;
}

/* Lua's own memory is no frame's: its collector frees what a call leaves, and the
 * frame's table is used again. So it is counted too. */
TEST_SOME(a_frame_allocates_nothing, sizeof pipelines / sizeof *pipelines, 3, 1)
{
    if (!COUNTS) {
        fprintf(stderr, "memory: SKIPPED counting allocations: a sanitizer has malloc\n");
        return;
    }
    io_count_npy("in.npy", U8(5, 16, 24, 3), 0);
    pipe_text(io_dir, "copy.lua", "stateless = true\nfunction process(f, x, y) y:copy(x) end\n");
    pipe_text(io_dir, "turn.cu",
              "#include <cooperative_groups.h>\n"
              "extern \"C\" __global__ void turn(const float *in, float *out)\n"
              "{\n"
              "    extern __shared__ float mine[];\n"
              "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
              "    mine[threadIdx.x] = in[i];\n"
              "    cooperative_groups::this_grid().sync();\n"
              "    out[63 - i] = mine[threadIdx.x];\n"
              "}\n");
    pipe_text(io_dir, "short.lua",
              "local frames\nfunction init(stage) frames = stage.params.frames end\n"
              "function produce(f, y)\n  if f.index == frames then return false end\n"
              "  y:fill(1)\n  f.valid = 1 + f.index % 63\nend\n");
    pipe_text(io_dir, "part.cu",
              "extern \"C\" __global__ void part(const float *in, float *out, int n)\n"
              "{\n    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
              "    if (i < n)\n        out[i] = in[i];\n}\n");
    const char *yaml = pipelines[_i].yaml;
    count(yaml, "100");                    /* what is allocated once in a process */
    long few = count(yaml, "1000"), many = count(yaml, "3000");
    ck_assert_int_gt(few, 10);
    /* Not one for every hundredth frame. */
    ck_assert_msg(labs(many - few) <= 20, "%s: %ld allocations for 1000 frames, %ld for 3000",
                  pipelines[_i].name, few, many);
}

/* ---- resident memory ------------------------------------------------- */

/* The peak resident memory in KiB of the command with these arguments. */
static long peak(const char *verb, const char *file)
{
    const char *gpipe = getenv("GPIPE");
    ck_assert_ptr_nonnull(gpipe);
    pid_t pid = fork();
    if (!pid) {
        if (!freopen("/dev/null", "w", stderr) || !freopen("/dev/null", "w", stdout))
            _exit(99);
        execl(gpipe, gpipe, verb, "--device", "cpu", file, (char *)NULL);
        _exit(98);
    }
    struct rusage u;
    int status;
    ck_assert_int_eq(wait4(pid, &status, 0, &u), pid);
    ck_assert_int_eq(status, 0);
    return u.ru_maxrss;
}

/* Rings of 3 + 5 slots of 4 MiB, and of 1 MiB; 40 MiB for all the rest. */
TEST(a_run_takes_what_the_plan_says)
{
    enum { RINGS = (3 + 5) * 4 + 3, REST = 40 };
    char *file = io_at("p.yaml");
    if (!COUNTS) {
        fprintf(stderr, "memory: SKIPPED resident memory: a sanitizer needs its own\n");
        return;
    }
    pipe_text(io_dir, "p.yaml", "buffers:\n  a: {dtype: f32, shape: [1024, 1024], depth: 3}\n"
              "  b: {depth: 5}\nstages:\n"
              "  - {use: generate, frames: 200, out: a}\n  - {use: lua, script: copy.lua, out: b}\n"
              "  - {use: cast, dtype: u8}\n  - {use: write, path: /dev/null, format: raw}\n");
    pipe_text(io_dir, "copy.lua", "function process(f, x, y) y:copy(x) end\n");
    long base = peak("check", file), run = peak("run", file);
    ck_assert_msg(run > base + 20 * 1024, "%ld KiB to check, %ld to run: is anything measured?", base, run);
    ck_assert_msg(run - base < (RINGS + REST) * 1024, "%ld KiB beyond the %ld of a check", run - base, base);
}

TEST_SUITE(memory, io_set_up, NULL, 0)
