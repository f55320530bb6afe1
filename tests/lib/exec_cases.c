/* exec_cases.c - what must hold of any run: the same bytes for any settings,
 * holes, partial frames, ends, stopping, the account. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "exec_cases.h"
#include "pipe.h"

static const char *on;         /* the device under test */
static int every;

static float wave(int64_t i)
{
    return (float)((i * 7919) % 1000) / 16.0f - 30.0f;
}

static void fail_on_errors(const pipe_result *r, const char *what)
{
    ck_assert_msg(!r->errs.failed, "%s: %s", what, r->errs.n ? r->errs.e[0].msg : "?");
}

/* Holes from a script, a partial frame at the end, a fork and a join on the
 * device, a stage with carried state, several Lua workers, a user's kernel. */
static const char *const EVERYTHING =
    "pipeline: everything\n"
    "depth: 3\n"
    "buffers:\n"
    "  x: {dtype: f32, shape: [6, 40]}\n"
    "stages:\n"
    "  - {use: read, path: in.npy, out: x}\n"
    "  - {name: dropper, use: lua, script: drop.lua, in: x, out: kept, workers: 1}\n"
    "  - {use: fir, in: kept, out: smooth, taps: [0.5, 0.25, 0.125, 0.0625, 0.03125]}\n"
    "  - {use: scale, in: x, out: scaled, a: 3, b: 0.5}\n"
    "  - name: join\n"
    "    use: kernel\n"
    "    source: join.cu\n"
    "    entry: join\n"
    "    in: {a: smooth, b: scaled}\n"
    "    out: joined\n"
    "    args: [a, b, out, {i32: a.size}, frame]\n"
    "    grid: [\"ceil(a.size / 256)\"]\n"
    "  - {name: after, use: lua, script: after.lua, in: joined, out: done, workers: 1}\n"
    "  - {use: write, in: done, path: out.npy}\n"
    "  - {use: write, in: scaled, path: side.npy}\n";

static void everything_files(const char *dir)
{
    pipe_npy(dir, "in.npy", 6 * 41 + 4, 40, wave);
    pipe_text(dir, "drop.lua",
              "stateless = true\n"
              "function process(frame, x, y)\n"
              "  if frame.index % 7 == 3 then return 'drop' end\n"
              "  y:copy(x)\n"
              "end\n");
    pipe_text(dir, "after.lua",
              "stateless = true\n"
              "function process(frame, x, y)\n"
              "  for i = 1, #x do y[i] = x[i] + frame.index + math.random(0, 9) end\n"
              "end\n");
    pipe_text(dir, "join.cu",
              "extern \"C\" __global__ void join(const float *a, const float *b, float *out, int n,\n"
              "                                const gp_frame_info *f)\n"
              "{\n"
              "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
              "    if (i < n)\n"
              "        out[i] = a[i] + b[i] * (float)(f->index + f->valid);\n"
              "}\n");
}

START_TEST(test_same_bytes)
{
    static const char *const streams[] = { "streams=1", "streams=2", "streams=3", "streams=8" };
    static const char *const depths[] = { "depth=1", "depth=2", "depth=3", "depth=7" };
    static const char *const batches[] = { "batch=1", "batch=4", "batch=auto" };
    static const char *const workers[][2] = {
        { "stages.dropper.workers=1", "stages.after.workers=1" },
        { "stages.dropper.workers=4", "stages.after.workers=4" } };
    static const char *const launches[] = { "launch=graph", "launch=stream" };
    static const char *const syncs[] = { "sync=auto", "sync=spin", "sync=yield", "sync=block" };
    const char *dir = pipe_dir();
    char *first = NULL, *first_side = NULL;
    size_t n0 = 0, s0 = 0;
    int run = 0, done = 0;

    everything_files(dir);
    for (int a = 0; a < 4; a++)
    for (int b = 0; b < 4; b++)
    for (int c = 0; c < 3; c++)
    for (int d = 0; d < 2; d++)
    for (int e = 0; e < 2; e++)
    for (int f = 0; f < 4; f++)
    for (int poison = 0; poison < 2; poison++) {
        if (run++ % every)
            continue;
        const char *sets[] = { streams[a], depths[b], batches[c], workers[d][0], workers[d][1],
                               launches[e], syncs[f], NULL };
        char what[200];
        snprintf(what, sizeof what, "%s %s %s %s %s %s%s", streams[a], depths[b], batches[c],
                 workers[d][0], launches[e], syncs[f], poison ? " poison" : "");
        bool looked_at = done % 3 == 1;        /* which must not change a byte */
        pipe_result r = pipe_run(dir, EVERYTHING, on, sets, (gp_run_options){
            .poison = poison, .timed = looked_at, .stamped = looked_at,
            .trace_ns = looked_at ? 1000000000 : 0 });
        fail_on_errors(&r, what);
        ck_assert_int_eq(r.outcome, GP_DONE);
        ck_assert_uint_eq(r.account[0].in, 42);
        ck_assert_uint_eq(r.account[0].dropped, 6);
        ck_assert_uint_eq(r.account[0].out, 36);
        size_t n, s;
        char *out = pipe_read(dir, "out.npy", &n), *side = pipe_read(dir, "side.npy", &s);
        ck_assert_ptr_nonnull(out);
        ck_assert_ptr_nonnull(side);
        if (!first) {
            first = out, n0 = n, first_side = side, s0 = s;
            /* 35 whole frames and the last, of 4 rows; the other writer sees all */
            ck_assert_uint_eq(n, 128 + (35 * 6 + 4) * 40 * 4);
            ck_assert_uint_eq(s, 128 + (41 * 6 + 4) * 40 * 4);
        } else {
            ck_assert_msg(n == n0 && !memcmp(out, first, n), "%s: out.npy differs", what);
            ck_assert_msg(s == s0 && !memcmp(side, first_side, s), "%s: side.npy differs", what);
            free(out), free(side);
        }
        done++;
    }
    ck_assert_int_gt(done, every == 1 ? 1000 : 1);
    free(first), free(first_side);
    pipe_dir_remove(dir);
}
END_TEST

/* The same without carried state, so that it can also be persistent. */
START_TEST(test_same_bytes_persistent)
{
    static const char *const yaml[] = {
        "depth: 4\n"
        "buffers: {x: {dtype: f32, shape: [6, 40]}}\n"
        "stages:\n"
        "  - {use: read, path: in.npy, out: x}\n"
        "  - {name: dropper, use: lua, script: drop.lua, in: x, out: kept}\n"
        "  - {use: threshold, in: kept, out: sharp, level: 3}\n"
        "  - {use: scale, in: x, out: scaled, a: 3, b: 0.5}\n"
        "  - {name: join, use: kernel, source: join.cu, entry: join, in: {a: sharp, b: scaled},\n"
        "     out: joined, args: [a, b, out, {i32: a.size}, frame], grid: [\"ceil(a.size / 256)\"]}\n"
        "  - {use: reduce, op: sum, axes: [1], out: sums}\n"
        "  - {use: write, in: joined, path: out.npy}\n"
        "  - {use: write, in: sums, path: side.npy}\n"
        "  - {use: write, in: scaled, path: scaled.npy}\n",
        "depth: 6\n"
        "buffers: {x: {dtype: u8, shape: [37, 64, 3]}}\n"
        "stages:\n"
        "  - {use: generate, pattern: noise, frames: 33, out: x}\n"
        "  - {use: gray}\n"
        "  - {use: blur, sigma: 1.5, out: soft}\n"
        "  - {use: lua, script: copy.lua, out: again}\n"
        "  - {use: sobel}\n"
        "  - {use: write, path: out.npy}\n"
        "  - {use: write, in: soft, path: side.npy}\n",
        "depth: 6\n"
        "buffers: {x: {dtype: u8, shape: [37, 64, 3]}}\n"
        "stages:\n"
        "  - {use: generate, pattern: noise, frames: 33, out: x}\n"
        "  - {use: gray}\n"
        "  - {use: blur, sigma: 1.5, out: soft}\n"
        "  - {use: sobel}\n"
        "  - {use: write, path: out.npy}\n"
        "  - {use: write, in: soft, path: side.npy}\n",
    };
    static const char *const launches[] = { "launch=graph", "launch=stream", "launch=persistent" };
    static const char *const depths[] = { "depth=1", "depth=4", "depth=7", "depth=40" };
    static const char *const batches[] = { "batch=1", "batch=auto", "batch=4" };
    const char *dir = pipe_dir();
    everything_files(dir);
    pipe_text(dir, "copy.lua", "stateless = true\nfunction process(f, x, y) y:copy(x) end\n");
    /* A sanitizer runs one kernel at a time: one segment, and no partial frames. */
    for (int y = getenv("GPIPE_SANITIZED") ? 2 : 0; y < 3; y++) {
        char *first[2] = { NULL, NULL };
        size_t n0[2];
        for (int run = 0; run < 3 * 4 * 3 * 2; run++) {
            if (run % 3 != 2 && run % (every > 4 ? 4 : every))
                continue;
            const char *sets[] = { launches[run % 3], depths[run / 3 % 4], batches[run / 12 % 3],
                                   NULL };
            pipe_result r = pipe_run(dir, yaml[y], on, sets,
                                     (gp_run_options){ .poison = run / 36 });
            fail_on_errors(&r, sets[0]);
            ck_assert_int_eq(r.outcome, GP_DONE);
            for (int k = 0; k < 2; k++) {
                size_t n;
                char *out = pipe_read(dir, k ? "side.npy" : "out.npy", &n);
                ck_assert_ptr_nonnull(out);
                if (!first[k]) {
                    first[k] = out, n0[k] = n;
                    continue;
                }
                ck_assert_msg(n == n0[k] && !memcmp(out, first[k], n), "%s %s %s: differs",
                              sets[0], sets[1], sets[2]);
                free(out);
            }
        }
        free(first[0]), free(first[1]);
    }
    pipe_dir_remove(dir);
}
END_TEST

START_TEST(test_isolate)
{
    const char *dir = pipe_dir();
    size_t n1, n2;
    everything_files(dir);
    pipe_result r = pipe_run(dir, EVERYTHING, on, NULL, (gp_run_options){ 0 });
    fail_on_errors(&r, "plain");
    char *a = pipe_read(dir, "out.npy", &n1);
    r = pipe_run(dir, EVERYTHING, on, NULL, (gp_run_options){ .isolate = true });
    fail_on_errors(&r, "isolate");
    char *b = pipe_read(dir, "out.npy", &n2);
    ck_assert(n1 == n2 && !memcmp(a, b, n1));
    free(a), free(b);
    pipe_dir_remove(dir);
}
END_TEST

/* A kernel's own variable counts the launches of frames, and no others, in the order of the
 * frames however many are in flight; each stage and each run has it for itself. Holes and
 * a partial frame have launches of their own. */
START_TEST(test_counts)
{
    static const char yaml[] =
        "buffers: {x: {dtype: f32, shape: [4, 2]}}\n"
        "stages:\n"
        "  - {use: read, path: in.npy, out: x}\n"
        "  - {use: lua, script: drop.lua}\n"
        "  - {use: kernel, source: count.cu, args: [in, out, {i32: in.size}], grid: 1, block: 1, serial: true}\n"
        "  - {use: kernel, source: count.cu, args: [in, out, {i32: in.size}], grid: 1, block: 1, serial: true}\n"
        "  - {use: write, path: out.raw}\n";
    static const char *const sets[][6] = {
        { "launch=graph", "depth=1", "streams=1" }, { "launch=stream", "depth=1" },
        { "launch=graph", "depth=8", "streams=8" }, { "launch=stream", "depth=8", "streams=8" },
        { "launch=graph", "depth=12", "streams=3", "batch=4" },
        { "launch=graph", "depth=7", "streams=7", "batch=2" },
    };
    enum { FRAMES = 60, LAST = 3 };            /* the last has three of four rows */
    const char *dir = pipe_dir();
    pipe_npy(dir, "in.npy", 4 * (FRAMES - 1) + LAST, 2, wave);
    pipe_text(dir, "drop.lua", "function process(f, x, y)\n"
              "  if f.index % 9 == 4 then return 'drop' end y:copy(x) end\n");
    pipe_text(dir, "count.cu",
              "__device__ int calls;\n"
              "extern \"C\" __global__ void count(const float *in, float *out, int n)\n"
              "{\n"
              "    int now = calls;\n"
              "    for (int i = 0; i < n; i++)\n"
              "        out[i] = in[i] + 1000 * now;\n"
              "    for (volatile int i = 0; i < 2000; i++)\n"    /* others may come between */
              "        ;\n"
              "    calls = now + 1;\n"
              "}\n");
    for (size_t k = 0; k < sizeof sets / sizeof *sets; k++) {
        pipe_result r = pipe_run(dir, yaml, on, sets[k], (gp_run_options){ 0 });
        fail_on_errors(&r, sets[k][1]);
        size_t n, at = 0;
        char *out = pipe_read(dir, "out.raw", &n);
        for (int f = 0, calls = 0; f < FRAMES; f++) {
            if (f % 9 == 4)
                continue;
            for (int i = 0; i < 2 * (f == FRAMES - 1 ? LAST : 4); i++, at += sizeof(float)) {
                float v;
                ck_assert_uint_lt(at, n);
                memcpy(&v, out + at, sizeof v);
                ck_assert_msg(v == wave(8 * f + i) + 1000 * (float)calls + 1000 * (float)calls,
                              "%s %s: frame %d counts %g, not %d", sets[k][0], sets[k][1], f,
                              (double)(v - wave(8 * f + i)) / 2000, calls);
            }
            calls++;
        }
        ck_assert_uint_eq(at, n);
        free(out);
    }
    pipe_dir_remove(dir);
}
END_TEST

/* fir over a stream cut anyhow is fir over the whole, with and without holes. */
START_TEST(test_carried)
{
    static const char yaml[] =
        "depth: 5\n"
        "buffers: {x: {dtype: f32, shape: [8]}}\n"
        "stages:\n"
        "  - {use: read, path: in.npy, out: x}\n"
        "  - {use: lua, script: drop.lua, out: y}\n"
        "  - {use: fir, taps: [1, 2, 4], on_hole: reset}\n"
        "  - {use: write, path: out.npy}\n";
    const char *dir = pipe_dir();
    enum { N = 8 * 30 };
    pipe_npy(dir, "in.npy", N, 0, wave);
    pipe_text(dir, "drop.lua",
              "function process(f, x, y) if f.index == 9 then return 'drop' end y:copy(x) end\n");
    for (int splice = 0; splice < 2; splice++) {
        const char *sets[] = { splice ? "stages.fir.on_hole=splice" : "stages.fir.on_hole=reset", NULL };
        pipe_result r = pipe_run(dir, yaml, on, sets, (gp_run_options){ 0 });
        fail_on_errors(&r, "fir");
        size_t n;
        char *out = pipe_read(dir, "out.npy", &n);
        ck_assert_uint_eq(n, 128 + (N - 8) * 4);
        float h1 = 0, h2 = 0;
        for (int64_t i = 0, k = 0; i < N; i++) {
            if (i / 8 == 9) {
                if (!splice)
                    h1 = h2 = 0;
                continue;
            }
            float want = 1 * wave(i) + 2 * h1;
            want = want + 4 * h2;
            float got;
            memcpy(&got, out + 128 + 4 * k++, 4);
            ck_assert_msg(got == want, "splice %d, sample %lld: %g, not %g", splice, (long long)i,
                          (double)got, (double)want);
            h2 = h1, h1 = wave(i);
        }
        free(out);
    }
    pipe_dir_remove(dir);
}
END_TEST

/* Finite inputs of different length are an error that names both; an endless
 * one ends with its consumer. */
START_TEST(test_ends)
{
    static const char yaml[] =
        "vars: {n: 5, m: 7}\n"
        "buffers: {a: {dtype: f32, shape: [4]}, b: {dtype: f32, shape: [4]}}\n"
        "stages:\n"
        "  - {name: one, use: generate, frames: n, out: a}\n"
        "  - {name: two, use: generate, in: [], frames: m, out: b}\n"
        "  - {use: lua, script: add.lua, in: {a: a, b: b}, out: c}\n"
        "  - {use: discard}\n";
    static const char endless[] =
        "buffers: {a: {dtype: f32, shape: [4]}, b: {dtype: f32, shape: [4]}}\n"
        "stages:\n"
        "  - {name: one, use: generate, frames: 50, out: a}\n"
        "  - {name: two, use: generate, in: [], out: b}\n"
        "  - {use: lua, script: add.lua, in: {a: a, b: b}, out: c}\n"
        "  - {use: discard}\n";
    const char *dir = pipe_dir();
    pipe_text(dir, "add.lua", "function process(f, x, y) y:add(x.a, x.b) end\n");
    for (int i = 0; i < 3; i++) {
        const char *sets[] = { i == 1 ? "vars.m=5" : i == 2 ? "vars.m=2" : "vars.m=7", NULL };
        pipe_result r = pipe_run(dir, yaml, on, sets, (gp_run_options){ 0 });
        if (i == 1) {
            fail_on_errors(&r, "equal");
            ck_assert_uint_eq(r.account[0].out, 5);
            ck_assert_uint_eq(r.account[1].out, 5);
        } else {
            ck_assert_int_eq(r.outcome, GP_ERROR);
            ck_assert_msg(strstr(r.errs.e[0].msg, "'a'") && strstr(r.errs.e[0].msg, "'b'"), "%s",
                          r.errs.e[0].msg);
        }
    }
    pipe_result r = pipe_run(dir, endless, on, NULL, (gp_run_options){ 0 });
    fail_on_errors(&r, "endless");
    for (int i = 0; i < 2; i++)
        ck_assert_uint_eq(r.account[i].out, 50);
    pipe_dir_remove(dir);
}
END_TEST

/* Once frames come out. */
static void cancel_soon(gp_pipeline *p, void *arg)
{
    struct timespec t = { 0, 10000000 };
    gp_account a = { 0 };
    for (int i = 0; i < 6000 && !a.out; i++) {
        nanosleep(&t, NULL);
        gp_accounts(p, &a, 1);
    }
    gp_cancel(p, *(int *)arg);
}

START_TEST(test_cancel)
{
    static const char yaml[] =
        "buffers: {a: {dtype: f32, shape: [64]}}\n"
        "stages:\n"
        "  - {use: generate, out: a}\n"
        "  - {use: scale, a: 2}\n"
        "  - {use: lua, script: copy.lua, workers: 3}\n"
        "  - {use: write, path: out.npy}\n";
    const char *dir = pipe_dir();
    pipe_text(dir, "copy.lua", "stateless = true\nfunction process(f, x, y) y:copy(x) end\n");
    for (int level = 1; level <= 2; level++) {
        pipe_result r = pipe_run_with(dir, yaml, on, NULL, (gp_run_options){ 0 }, cancel_soon, &level);
        fail_on_errors(&r, "cancel");
        ck_assert_int_eq(r.outcome, level == 1 ? GP_DRAINED : GP_NOT_DRAINED);
        const gp_account *a = &r.account[0];
        ck_assert_uint_eq(a->in, a->out + a->dropped + a->failed + a->cancelled);
        size_t n;
        char *out = pipe_read(dir, "out.npy", &n);
        if (level == 1) {          /* drained: the file is whole */
            ck_assert_uint_eq(a->cancelled, 0);
            ck_assert_uint_gt(a->out, 0);
            ck_assert_uint_eq(n, 128 + a->out * 64 * 4);
            pipe_file(dir, "out.npy", "old", 3);
        } else {                   /* not drained: the old one is untouched */
            ck_assert_uint_eq(n, 3);
        }
        free(out);
    }
    pipe_dir_remove(dir);
}
END_TEST

/* An error at frame 1,000 of several workers: that frame is named, all before
 * it came out, nothing after it. */
START_TEST(test_error)
{
    static const char yaml[] =
        "depth: 8\n"
        "buffers: {a: {dtype: u64, shape: [16]}}\n"
        "stages:\n"
        "  - {use: generate, frames: 5000, out: a}\n"
        "  - {name: bad, use: lua, script: bad.lua, workers: 4}\n"
        "  - {use: write, path: \"out/%05d.raw\", format: raw}\n";
    const char *dir = pipe_dir();
    pipe_text(dir, "bad.lua",
              "stateless = true\n"
              "function process(f, x, y)\n"
              "  if f.index >= 1000 then error('too far') end\n"
              "  y:copy(x)\n"
              "end\n");
    pipe_result r = pipe_run(dir, yaml, on, NULL, (gp_run_options){ 0 });
    ck_assert_int_eq(r.outcome, GP_ERROR);
    ck_assert_int_eq(r.errs.failed, 1);
    ck_assert_msg(strstr(r.errs.e[0].msg, "frame 1000") && strstr(r.errs.e[0].msg, "too far"),
                  "%s", r.errs.e[0].msg);
    ck_assert_uint_eq(r.account[0].out, 1000);
    ck_assert_uint_eq(r.account[0].failed, 1);
    size_t n;
    char *last = pipe_read(dir, "out/00999.raw", &n);
    ck_assert_ptr_nonnull(last);
    ck_assert_ptr_null(pipe_read(dir, "out/01000.raw", &n));
    free(last);

    const char *drop[] = { "on_error=drop", NULL };
    r = pipe_run(dir, yaml, on, drop, (gp_run_options){ 0 });
    ck_assert_int_eq(r.outcome, GP_DONE);
    ck_assert_uint_eq(r.account[0].out, 1000);
    ck_assert_uint_eq(r.account[0].failed, 4000);
    pipe_dir_remove(dir);
}
END_TEST

START_TEST(test_stall)
{
    static const char yaml[] =
        "stall_timeout: 300ms\n"
        "buffers: {a: {dtype: f32, shape: [16]}}\n"
        "stages:\n"
        "  - {use: generate, out: a}\n"
        "  - {name: sleeper, use: lua, script: sleep.lua}\n"
        "  - {use: discard}\n";
    static const char idle[] =
        "stall_timeout: 100ms\n"
        "buffers: {a: {dtype: f32, shape: [16]}}\n"
        "stages:\n"
        "  - {use: generate, out: a, rate: 3, frames: 3}\n"
        "  - {use: discard}\n";
    const char *dir = pipe_dir();
    char hang[400], script[600];           /* a FIFO that nobody writes to */
    snprintf(hang, sizeof hang, "%s/hang", dir);
    ck_assert_int_eq(mkfifo(hang, 0600), 0);
    snprintf(script, sizeof script, "function process(f, x, y)\n"
             "  if f.index == 4 then io.open('%s') end\n  y:copy(x)\nend\n", hang);
    pipe_text(dir, "sleep.lua", script);
    pipe_result r = pipe_run(dir, idle, on, NULL, (gp_run_options){ 0 });
    fail_on_errors(&r, "a paced source is idle, not stalled");
    r = pipe_run(dir, yaml, on, NULL, (gp_run_options){ 0 });
    ck_assert_int_eq(gp_errs_exit(&r.errs), 5);
    ck_assert_msg(strstr(r.errs.e[0].msg, "'sleeper' is busy with frame 4"), "%s", r.errs.e[0].msg);
    pipe_dir_remove(dir);
}
END_TEST

/* A finite input that ends late is found to differ while others sleep. */
START_TEST(test_ends_late)
{
    static const char yaml[] =
        "buffers: {a: {dtype: f32, shape: [4]}, b: {dtype: f32, shape: [4]}}\n"
        "stages:\n"
        "  - {name: one, use: generate, frames: 3, rate: 40, out: a}\n"
        "  - {name: two, use: generate, in: [], frames: 9, out: b}\n"
        "  - {use: lua, script: add.lua, in: {a: a, b: b}, out: c}\n"
        "  - {use: discard}\n";
    const char *dir = pipe_dir();
    pipe_text(dir, "add.lua", "function process(f, x, y) y:add(x.a, x.b) end\n");
    for (int i = 0; i < 5; i++) {
        pipe_result r = pipe_run(dir, yaml, on, NULL, (gp_run_options){ 0 });
        ck_assert_int_eq(r.outcome, GP_ERROR);
        ck_assert_msg(strstr(r.errs.e[0].msg, "'a' ended after 3 frames") != NULL, "%s",
                      r.errs.e[0].msg);
    }
    pipe_dir_remove(dir);
}
END_TEST

/* An error is told though warnings filled the table before it. */
START_TEST(test_error_after_warnings)
{
    static const char yaml[] =
        "on_error: drop\n"
        "buffers: {a: {dtype: f32, shape: [4]}}\n"
        "stages:\n"
        "  - {use: generate, frames: 200, out: a}\n"
        "  - {use: lua, script: bad.lua}\n"
        "  - {use: discard}\n";
    const char *dir = pipe_dir();
    pipe_text(dir, "bad.lua",
              "function process(f, x, y) error('each') end\n"
              "function finish(s) error('at the end') end\n");
    pipe_result r = pipe_run(dir, yaml, on, NULL, (gp_run_options){ 0 });
    ck_assert_int_eq(r.outcome, GP_ERROR);
    ck_assert_int_eq(gp_errs_exit(&r.errs), 1);
    ck_assert(strstr(r.errs.e[r.errs.n - 1].msg, "at the end") != NULL);
    ck_assert_uint_eq(r.account[0].failed, 200);
    pipe_dir_remove(dir);
}
END_TEST

/* One branch ends early: its shallow ring no longer bounds the others, and the
 * frames it did not see count for those that did. */
START_TEST(test_early_end)
{
    static const char yaml[] =
        "buffers:\n"
        "  a: {dtype: f32, shape: [64], depth: 16}\n"
        "  few: {dtype: f32, shape: [64], depth: 1}\n"
        "  many: {dtype: f32, shape: [64], depth: 16}\n"
        "  f: {dtype: f32, shape: [64]}\n"
        "  m: {dtype: f32, shape: [64]}\n"
        "stages:\n"
        "  - {name: endless, use: generate, pattern: ramp, out: a}\n"
        "  - {name: fork, use: lua, script: fork.lua, workers: 6, in: a, out: {few: few, many: many}}\n"
        "  - {name: five, use: generate, in: [], pattern: ramp, frames: 5, out: f}\n"
        "  - {name: want, use: generate, in: [], pattern: ramp, frames: 3000, out: m}\n"
        "  - {name: c1, use: compare, in: {in: few, with: f}}\n"
        "  - {name: c2, use: compare, in: {in: many, with: m}}\n";
    const char *dir = pipe_dir();
    pipe_text(dir, "fork.lua",
              "stateless = true\n"
              "function process(f, x, y) y.few:copy(x) y.many:copy(x) end\n");
    pipe_result r = pipe_run(dir, yaml, on, NULL, (gp_run_options){ 0 });
    fail_on_errors(&r, "early end");
    ck_assert_uint_eq(r.account[0].out, 3000);
    ck_assert_uint_eq(r.account[1].out, 5);
    ck_assert_uint_eq(r.account[2].out, 3000);
    pipe_dir_remove(dir);
}
END_TEST

#define NAP "local t = os.clock() while os.clock() - t < 0.05 do end "

/* E feeds two branches: one ends after 4 frames, before a stage in its middle has
 * worked off its own, the other after many. */
static const char *const TWO_BRANCHES =
    "vars: {many: 20000}\n"
    "depth: 4\n"
    "on_error: drop\n"
    "buffers: {e: {dtype: u8, shape: [4]}, x: {dtype: u8, shape: [4]}, y: {dtype: u8, shape: [4]}}\n"
    "stages:\n"
    "  - {name: E, use: generate, out: e}\n"
    "  - {name: X, use: lua, script: four.lua, in: [], out: x}\n"
    "  - {name: Y, use: generate, frames: many, out: y}\n"
    "  - {name: early, use: lua, script: early.lua, in: e, out: l}\n"
    "  - {name: J, use: lua, script: join.lua, in: {a: l, b: x}, out: j}\n"
    "  - {name: late, use: lua, script: late.lua, in: j, out: s}\n"
    "  - {name: s1, use: discard, in: s}\n"
    "  - {name: J2, use: lua, script: join.lua, in: {a: e, b: y}, out: j2}\n"
    "  - {name: s2, use: discard, in: j2}\n";

static pipe_result two_branches(const char *early, const char *late, const char *const *sets)
{
    const char *dir = pipe_dir();
    pipe_text(dir, "join.lua", "function process(f, x, y) y:copy(x.a) end\n");
    pipe_text(dir, "four.lua", "function produce(f, y) if f.index < 4 then y:fill(1) return end " NAP
              "return false end\n");
    pipe_text(dir, "early.lua", early);
    pipe_text(dir, "late.lua", late);
    pipe_result r = pipe_run(dir, TWO_BRANCHES, on, sets, (gp_run_options){ 0 });
    pipe_dir_remove(dir);
    return r;
}

/* A sink that lags in a branch that has ended neither holds up the other branch
 * nor spoils its account. */
START_TEST(test_lagging_branch)
{
    static const char copy[] = "function process(f, x, y) y:copy(x) end\n";
    for (int drops = 0; drops < 2; drops++) {
        pipe_result r = two_branches(copy, drops
            ? "function process(f, x, y) " NAP "return 'drop' end\n"
            : "function process(f, x, y) " NAP "y:copy(x) end\n", NULL);
        fail_on_errors(&r, "lagging");
        const gp_account *e = &r.account[0];
        ck_assert_uint_eq(e->out, drops ? 19996 : 20000);
        ck_assert_uint_eq(e->dropped, drops ? 4 : 0);
        ck_assert_uint_le(e->cancelled, 64);
        ck_assert_uint_eq(e->in, e->out + e->dropped + e->cancelled);
        ck_assert_uint_eq(r.account[1].out + r.account[1].dropped, 4);
        ck_assert_uint_eq(r.account[2].out, 20000);
    }
}
END_TEST

/* A frame that came out is not failed afterwards, by a stage in a branch that no
 * longer counts. */
START_TEST(test_fails_after_the_end)
{
    const char *sets[] = { "on_error=stop", "vars.many=3000", "stages.early.workers=3", NULL };
    pipe_result r = two_branches(
        "stateless = true\n"
        "function process(f, x, y) y:copy(x) if f.index == 6 then " NAP NAP "error('late') end end\n",
        "function process(f, x, y) y:copy(x) end\n", sets);
    ck_assert_int_eq(r.outcome, GP_ERROR);
    for (int i = 0; i < 3; i++) {
        const gp_account *a = &r.account[i];
        ck_assert_uint_ge(a->out, 4);
        ck_assert_uint_le(a->failed, 1);
        ck_assert_uint_le(a->cancelled, 64);
        ck_assert_uint_eq(a->in, a->out + a->failed + a->cancelled);
    }
}
END_TEST

/* Of several inputs the one that goes on is named, at the stage that reads it. */
START_TEST(test_ends_of_three)
{
    static const char yaml[] =
        "buffers: {a: {dtype: u8, shape: [4], depth: 2}, b: {dtype: u8, shape: [4]},\n"
        "          c: {dtype: u8, shape: [4]}}\n"
        "stages:\n"
        "  - {name: A, use: generate, frames: 5, out: a}\n"
        "  - {name: B, use: generate, frames: 10, out: b}\n"
        "  - {name: C, use: lua, script: five.lua, in: [], out: c}\n"
        "  - {name: J, use: lua, script: join.lua, in: {a: a, b: b, c: c}, out: j}\n"
        "  - {use: discard}\n";
    static const char segment[] =
        "buffers: {a: {dtype: u8, shape: [4]}, b: {dtype: u8, shape: [4]}}\n"
        "stages:\n"
        "  - {name: A, use: generate, frames: 5, out: a}\n"
        "  - {name: B, use: generate, frames: 10, out: b}\n"
        "  - {name: D, use: discard, in: b}\n"
        "  - {name: K, use: kernel, source: k.cu, grid: 1, args: [x, y, out], in: {x: a, y: b}, out: {out: o}}\n"
        "  - {use: discard, in: o}\n";
    const char *dir = pipe_dir();
    pipe_text(dir, "five.lua", "function produce(f, y) if f.index == 5 then " NAP
              "return false end y:fill(1) end\n");
    pipe_text(dir, "join.lua", "function process(f, x, y) y:copy(x.a) end\n");
    pipe_text(dir, "k.cu", "extern \"C\" __global__ void k(const unsigned char *x,\n"
              "    const unsigned char *y, unsigned char *o) { o[threadIdx.x % 4] = x[0] + y[0]; }\n");
    for (int i = 0; i < 2; i++) {
        pipe_result r = pipe_run(dir, i ? segment : yaml, on, NULL, (gp_run_options){ 0 });
        ck_assert_int_eq(r.outcome, GP_ERROR);
        ck_assert_msg(strstr(r.errs.e[0].msg, "'a' ended after 5 frames, 'b' has more") != NULL, "%s",
                      r.errs.e[0].msg);
        ck_assert_int_eq(r.errs.e[0].at.line, i ? 6 : 7);
    }
    pipe_dir_remove(dir);
}
END_TEST

/* A stage with several workers fails while the others wait for input: the run
 * ends at once, not when the watchdog says so. */
START_TEST(test_fails_while_waiting)
{
    static const char yaml[] =
        "stall_timeout: 20s\n"
        "depth: 8\n"
        "buffers: {a: {dtype: f32, shape: [4]}}\n"
        "stages:\n"
        "  - {use: generate, frames: 100, out: a}\n"
        "  - {name: pass, use: lua, script: slow.lua}\n"
        "  - {name: bad, use: lua, script: bad.lua, workers: 4}\n"
        "  - {use: discard}\n";
    const char *dir = pipe_dir();
    pipe_text(dir, "slow.lua", "function process(f, x, y) y:copy(x) end\n");
    pipe_text(dir, "bad.lua",
              "stateless = true\n"
              "function process(f, x, y)\n"
              "  if f.index == 5 then local t = os.clock() + 0.2 while os.clock() < t do end error('five') end\n"
              "  y:copy(x)\n"
              "end\n");
    time_t start = time(NULL);
    pipe_result r = pipe_run(dir, yaml, on, NULL, (gp_run_options){ 0 });
    ck_assert_int_eq(r.outcome, GP_ERROR);
    ck_assert_int_lt(time(NULL) - start, 10);
    ck_assert_int_eq(gp_errs_exit(&r.errs), 1);
    ck_assert_uint_eq(r.account[0].out, 5);
    ck_assert_uint_eq(r.account[0].failed, 1);
    pipe_dir_remove(dir);
}
END_TEST

/* A frame without rows goes through device stages as one without rows. */
START_TEST(test_no_rows)
{
    static const char yaml[] =
        "buffers: {a: {dtype: f32, shape: [16, 8]}}\n"
        "stages:\n"
        "  - {use: generate, frames: 6, out: a}\n"
        "  - {use: lua, script: cut.lua}\n"
        "  - {use: STAGE}\n"
        "  - {use: write, path: out.raw, format: raw}\n";
    static const char *const stage[] = { "fir, taps: [1, 2]", "blur, sigma: 1", "sobel",
                                         "reduce, op: sum", "scale", "cast, dtype: u8" };
    const char *dir = pipe_dir();
    pipe_text(dir, "cut.lua",
              "function process(f, x, y) y:copy(x) if f.index % 2 == 1 then f.valid = 0 end end\n");
    for (size_t i = 0; i < sizeof stage / sizeof *stage; i++) {
        char text[1000];
        const char *at = strstr(yaml, "STAGE");
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - yaml), yaml, stage[i], at + 5);
        pipe_result r = pipe_run(dir, text, on, NULL, (gp_run_options){ 0 });
        fail_on_errors(&r, stage[i]);
        ck_assert_uint_eq(r.account[0].out, 6);
        size_t n;
        free(pipe_read(dir, "out.raw", &n));
        ck_assert_uint_eq(n, i == 3 ? 3 * 4 : i == 5 ? 3 * 16 * 8 : 3 * 16 * 8 * 4);
    }
    pipe_dir_remove(dir);
}
END_TEST

/* Each frame is counted once, whichever branches and sinks fail or drop it. */
START_TEST(test_account)
{
    static const char yaml[] =
        "buffers: {a: {dtype: f32, shape: [4]}}\n"
        "stages:\n"
        "  - {use: generate, frames: 20, out: a}\n"
        "  - {name: s1, use: lua, script: one.lua, in: a, out: []}\n"
        "  - {name: s2, use: lua, script: two.lua, in: a, out: []}\n";
    const char *dir = pipe_dir();
    pipe_text(dir, "one.lua", "function process(f, x) if f.index % 4 == 1 then return 'drop' end end\n");
    pipe_text(dir, "two.lua", "function process(f, x) if f.index % 5 == 2 then error('no') end end\n");
    const char *drop[] = { "on_error=drop", NULL };
    pipe_result r = pipe_run(dir, yaml, on, drop, (gp_run_options){ 0 });
    ck_assert_int_eq(r.outcome, GP_DONE);
    ck_assert_uint_eq(r.account[0].in, 20);
    ck_assert_uint_eq(r.account[0].failed, 4);         /* 2 7 12 17 */
    ck_assert_uint_eq(r.account[0].dropped, 4);        /* 1 5 9 13, and 17 failed */
    ck_assert_uint_eq(r.account[0].out, 12);
    pipe_text(dir, "one.lua", "function process(f, x) error('both') end\n");
    pipe_text(dir, "two.lua", "function process(f, x) error('both') end\n");
    r = pipe_run(dir, yaml, on, NULL, (gp_run_options){ 0 });
    ck_assert_int_eq(r.outcome, GP_ERROR);
    const gp_account *a = &r.account[0];
    ck_assert_uint_eq(a->failed, 1);
    ck_assert_uint_eq(a->in, a->out + a->failed + a->cancelled);
    pipe_dir_remove(dir);
}
END_TEST

/* A frame that a device stage cannot compute is a hole with `on_error: drop`; the
 * stage behind it that carries state starts anew. */
START_TEST(test_drop_in_segment)
{
    static const char yaml[] =
        "on_error: drop\n"
        "buffers: {a: {dtype: f32, shape: [4, 8]}, b: {dtype: f32, shape: [4, 8]}}\n"
        "stages:\n"
        "  - {use: generate, pattern: constant, value: 1, frames: 20, out: a}\n"
        "  - {use: lua, script: part.lua, in: a, out: b}\n"
        "  - {name: k, use: kernel, source: k.cu, args: [in, out, {i32: in.size}], block: 32,\n"
        "     grid: '4 / (in.shape[0] - 3)', in: b, out: c}\n"
        "  - {use: fir, taps: [1, 1]}\n"
        "  - {use: write, path: out.npy}\n";
    const char *dir = pipe_dir();
    pipe_text(dir, "part.lua", "function process(f, x, y) y:copy(x) if f.index == 7 then f.valid = 3 end end\n");
    pipe_text(dir, "k.cu", "extern \"C\" __global__ void k(const float *x, float *y, int n)\n"
              "{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = x[i]; }\n");
    for (int i = 0; i < 2; i++) {
        const char *sets[] = { i ? "launch=stream" : "launch=graph", NULL };
        pipe_result r = pipe_run(dir, yaml, on, sets, (gp_run_options){ 0 });
        fail_on_errors(&r, "drop");
        ck_assert_uint_eq(r.account[0].in, 20);
        ck_assert_uint_eq(r.account[0].out, 19);
        ck_assert_uint_eq(r.account[0].failed, 1);
        ck_assert_msg(r.errs.n == 1 + i && strstr(r.errs.e[0].msg, "division by zero"), "%s",
                      r.errs.n ? r.errs.e[0].msg : "no warning");
        ck_assert(!i || strstr(r.errs.e[1].msg, "stage 'write' replaced a file"));
        size_t n;
        float *out = (float *)(pipe_read(dir, "out.npy", &n) + 128);
        ck_assert_uint_eq(n, 128 + 19 * 32 * 4);
        ck_assert(out[6 * 32] == 2 && out[7 * 32] == 1);   /* frame 8 has no history */
        free((char *)out - 128);
    }
    pipe_dir_remove(dir);
}
END_TEST

/* `frame` tells a kernel the rows of its own first input, wherever it is cut. */
START_TEST(test_valid)
{
    static const char yaml[] =
        "buffers: {a: {dtype: f32, shape: [8, 6]}, s: {dtype: f32}}\n"
        "stages:\n"
        "  - {use: generate, frames: 3, out: a}\n"
        "  - {use: reduce, op: sum, axes: [0], out: s}\n"
        "  - {use: kernel, source: v.cu, entry: v, grid: 1, args: [in, out, frame]}\n"
        "  - {use: write, path: out.raw, format: raw}\n";
    const char *dir = pipe_dir();
    pipe_text(dir, "v.cu",
              "extern \"C\" __global__ void v(const float *in, float *out, const gp_frame_info *f)\n"
              "{ int i = threadIdx.x; if (blockIdx.x == 0 && i < 6) out[i] = (float)f->valid; }\n");
    pipe_result r = pipe_run(dir, yaml, on, NULL, (gp_run_options){ 0 });
    fail_on_errors(&r, "valid");
    size_t n;
    char *out = pipe_read(dir, "out.raw", &n);
    ck_assert_uint_eq(n, 3 * 6 * 4);
    for (size_t i = 0; i < n; i += 4) {
        float v;
        memcpy(&v, out + i, 4);
        ck_assert(v == 6);
    }
    free(out);
    pipe_dir_remove(dir);
}
END_TEST

void exec_cases(TCase *tc, const char *device, int thin)
{
    tcase_add_test(tc, test_ends_late);
    tcase_add_test(tc, test_error_after_warnings);
    tcase_add_test(tc, test_early_end);
    tcase_add_test(tc, test_lagging_branch);
    tcase_add_test(tc, test_fails_after_the_end);
    tcase_add_test(tc, test_ends_of_three);
    tcase_add_test(tc, test_fails_while_waiting);
    tcase_add_test(tc, test_no_rows);
    tcase_add_test(tc, test_account);
    tcase_add_test(tc, test_valid);
    tcase_add_test(tc, test_drop_in_segment);
    on = device, every = thin;
    tcase_set_timeout(tc, 900);
    tcase_add_test(tc, test_same_bytes);
    tcase_add_test(tc, test_same_bytes_persistent);
    tcase_add_test(tc, test_isolate);
    tcase_add_test(tc, test_counts);
    tcase_add_test(tc, test_carried);
    tcase_add_test(tc, test_ends);
    tcase_add_test(tc, test_cancel);
    tcase_add_test(tc, test_error);
    tcase_add_test(tc, test_stall);
}
