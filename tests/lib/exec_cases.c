/* exec_cases.c - what comes out of a run: the same bytes for any settings; holes, partial
 * frames, carried state. */
#include <math.h>
#include "cases.h"

static int every;

static float wave(int64_t i)
{
    return (float)((i * 7919) % 1000) / 16.0f - 30.0f;
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

TEST(test_same_bytes)
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
    int run = tests_first(every), done = 0;

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
        char *what = format("%s %s %s %s %s %s%s", streams[a], depths[b], batches[c],
                            workers[d][0], launches[e], syncs[f], poison ? " poison" : "");
        bool looked_at = done % 3 == 1;        /* which must not change a byte */
        pipe_result r = pipe_done(dir, EVERYTHING, on, sets, (gp_run_options){
             .poison = poison, .timed = looked_at, .stamped = looked_at,
             .trace_ns = looked_at ? 1000000000 : 0 });
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
}

/* The same without carried state, so that it can also be persistent. */
TEST(test_same_bytes_persistent)
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
            pipe_done(dir, yaml[y], on, sets, (gp_run_options){ .poison = run / 36 });
            for (int k = 0; k < 2; k++) {
                size_t n;
                char *out = pipe_read(dir, k ? "side.npy" : "out.npy", &n);
                ck_assert_ptr_nonnull(out);
                if (!first[k]) {
                    first[k] = out, n0[k] = n;
                    continue;
                }
                ck_assert_msg(n == n0[k] && !memcmp(out, first[k], n), "%s %s %s: differs", sets[0], sets[1], sets[2]);
                free(out);
            }
        }
        free(first[0]), free(first[1]);
    }
}

TEST(test_isolate)
{
    const char *dir = pipe_dir();
    size_t n1, n2;
    everything_files(dir);
    pipe_done(dir, EVERYTHING, on, NULL, (gp_run_options){ 0 });
    OWNED char *a = pipe_read(dir, "out.npy", &n1);
    pipe_done(dir, EVERYTHING, on, NULL, (gp_run_options){ .isolate = true });
    OWNED char *b = pipe_read(dir, "out.npy", &n2);
    ck_assert(n1 == n2 && !memcmp(a, b, n1));
}

/* A kernel's own variable counts the launches of frames, and no others, in the order of the
 * frames however many are in flight; each stage and each run has it for itself. Holes and
 * a partial frame have launches of their own. */
TEST(test_counts)
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
        { "launch=graph", "depth=8", "streams=2", "batch=4", "batch_wait=300us" },
        { "launch=graph", "depth=8", "streams=2", "batch=4", "latency=3ms" },
        { "launch=stream", "depth=8", "streams=2", "batch=4", "latency=1us" },
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
        pipe_done(dir, yaml, on, sets[k], (gp_run_options){ 0 });
        size_t n, at = 0;
        OWNED char *out = pipe_read(dir, "out.raw", &n);
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
    }
}

/* A frame without rows goes through device stages as one without rows, or as what is made of none: `none` bytes, which
 * are `byte`, beside `whole` of a frame of [16, 8]. */
TEST(test_no_rows)
{
    static const struct { const char *stage; size_t whole, none; unsigned char byte; } of[] = {
        { "fir, taps: [1, 2]", 512, 0, 0 }, { "blur, sigma: 1", 512, 0, 0 }, { "sobel", 512, 0, 0 },
        { "scale", 512, 0, 0 }, { "cast, dtype: u8", 128, 0, 0 }, { "cumsum, axis: 0", 512, 0, 0 },
        { "softmax, axis: 0", 512, 0, 0 }, { "normalize, to: deviation", 512, 0, 0 },
        { "reduce, op: sum", 4, 4, 0 }, { "reduce, op: sum, axes: [1]", 64, 0, 0 },
        { "reduce, op: mean, axes: [0]", 32, 32, 0xff }, { "reduce, op: mean, axes: [0], keep: true", 32, 32, 0xff },
        { "reduce, op: std", 4, 4, 0xff }, { "reduce, op: min, axes: [0]", 32, 32, 0xff },
        { "reduce, op: max, axes: [1]", 64, 0, 0 }, { "reduce, op: any", 1, 1, 0 },
        { "reduce, op: all, axes: [0]", 8, 8, 1 }, { "reduce, op: argmax", 8, 0, 0 },
        { "cast, dtype: i32}\n  - {use: reduce, op: max", 4, 0, 0 },
        { "cast, dtype: i32}\n  - {use: reduce, op: mean", 4, 4, 0xff },
        { "expr, in: {x: lua}, expr: x * x}\n  - {use: reduce, op: sum", 4, 4, 0 },
        { "expr, in: {x: lua}, expr: x * x}\n  - {use: reduce, op: mean, axes: [0]", 32, 32, 0xff },
        { "histogram, bins: 5, range: [0, 1]", 40, 40, 0 }, { "correlate, in: {a: lua, b: lua}, lags: 2", 160, 160, 0 },
        { "expr, in: {x: lua}, expr: x >= 0}\n  - {use: objects", 56, 0, 0 },
        { "reduce, op: mean, axes: [0], out: mu}\n  - {use: expr, in: {x: lua, mu: mu}, expr: x - mu", 512, 0, 0 },
        { "reduce, op: sum, axes: [0], out: mu}\n  - {use: expr, in: {x: lua, mu: mu}, expr: x - mu, out: d}\n"
          "  - {use: reduce, in: d, op: sum, axes: [0]", 32, 32, 0 },
        { "loop, in: {x: lua}, times: 3, out: {y: y}, stages: [{use: scale, in: x, out: y}]", 512, 0, 0 },
        { "loop, in: {x: lua}, times: 3, out: {y: y}, stages: [{use: reduce, op: any, axes: [0], in: x, out: y}]", 8, 8, 0 },
        { "loop, in: {x: lua}, times: 3, out: {y: y}, stages: [{use: reduce, op: mean, axes: [0], in: x, out: m}, "
          "{use: expr, in: {x: x, m: m}, expr: x - m, out: d}, {use: reduce, op: all, axes: [0], in: d, out: y}]", 8, 8, 1 },
        { "reduce, op: sum, axes: [0], out: u}\n  - {use: loop, in: {x: lua, u: u}, times: 300, carry: {u: v}, out: {v: v}, "
          "stages: [{use: reduce, op: sum, axes: [0], in: x, out: s}, {use: expr, in: {s: s, u: u}, expr: u + s, out: v}]",
          32, 32, 0 },
        { "loop, in: {x: lua}, times: 3, until: f, out: {y: y}, stages: [{use: reduce, op: mean, axes: [0], in: x, out: y}, "
          "{use: reduce, op: any, in: x, out: a}, {use: cast, dtype: i32, in: a, out: f}]", 32, 32, 0xff },
    };
    const char *dir = pipe_dir();
    pipe_text(dir, "cut.lua", "function process(f, x, y) y:copy(x) if f.index % 2 == 1 then f.valid = 0 end end\n");
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        size_t n, each = of[i].whole + of[i].none;
        char *text = format("buffers: {a: {dtype: f32, shape: [16, 8]}}\nstages:\n"
                            "  - {use: generate, frames: 6, out: a}\n  - {use: lua, script: cut.lua}\n  - {use: %s}\n"
                            "  - {use: write, path: out.raw, format: raw}\n", of[i].stage);
        pipe_result r = pipe_done(dir, text, on, NULL, (gp_run_options){ .poison = i % 2 });
        ck_assert_uint_eq(r.account[0].out, 6);
        OWNED unsigned char *got = (unsigned char *)pipe_read(dir, "out.raw", &n);
        ck_assert_msg(n == 3 * each, "%s: %zu bytes", of[i].stage, n);
        for (size_t k = 0; k < n; k++)
            ck_assert_msg(k % each < of[i].whole || got[k] == of[i].byte, "%s: byte %zu is %d", of[i].stage, k, got[k]);
    }
}

/* However a recording is cut into frames, a signal is the same, bit by bit; of iir in f64 beside the largest value, and
 * on a GPU, whose transforms go by their number, of what transforms. */
TEST(test_cuts)
{
    enum { ROWS = 5040, MOST = 16 };
    static const struct { const char *what, *dtype, *stages; double within, on_gpu; } of[] = {
        { "fir", "f32", "{use: fir, taps: [0.1, 0.2, 0.3, 0.25, 0.7]}", 0, 0 },
        { "iir", "f32", "{use: iir, sos: [[0.99197274, -1.9839455, 0.99197274, 1, -1.983881, 0.98400992]]}", 0x1p-23, 0 },
        { "iir f64", "f64", "{use: iir, sos: [[0.99197274, -1.9839455, 0.99197274, 1, -1.983881, 0.98400992]]}", 1e-12, 0 },
        { "iir, sections", "f64", "{use: iir, sos: [[0.2, 0.4, 0.2, 1, -0.4, 0.2], [1, -2, 1, 1, -1.6, 0.7]]}", 1e-12, 0 },
        { "resample up", "f32", "{use: resample, up: 160, down: 7}", 0, 0 },
        { "resample down", "f32", "{use: resample, up: 3, down: 4}", 0, 0 },
        { "slide", "f32", "{use: slide, length: 40, hop: 12, taper: hann}", 0, 0 },
        { "slide and reduce", "f32", "{use: slide, length: 40, hop: 12}\n  - {use: reduce, op: mean, axes: [1]}", 0, 0 },
        { "channelize", "f32", "{use: channelize, channels: 12, taps: 4}", 0, 1e-5 },
        { "all of them", "f32", "{use: fir, taps: [1, 2]}\n  - {use: resample, up: 2, down: 7}\n"
          "  - {use: channelize, channels: 6, taps: 3}\n  - {use: power}", 0, 1e-5 },
    };
    static const int sizes[] = { ROWS, 84, 168, 252, 420, 1008, 1260, 1680, 2520 };
    const char *dir = pipe_dir();
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        bool wide = !strcmp(of[i].dtype, "f64");
        char *first = NULL, *data = malloc(ROWS * MOST);
        size_t all = 0, n, each = wide ? sizeof(double) : sizeof(float);
        for (int64_t k = 0; k < 2 * ROWS; k++)
            wide ? memcpy(data + k * 8, &(double){ wave(k * k) / 3 }, 8)
                 : memcpy(data + k * 4, &(float){ wave(k * k) / 3 }, 4);
        pipe_file(dir, "in.raw", data, 2 * ROWS * each);
        free(data);
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            double most = 0, off = 0, within = of[i].within;
            within = strcmp(on, "cpu") && of[i].on_gpu > within ? of[i].on_gpu : within;
            char *text = format("buffers: {a: {dtype: %s, shape: [%d, 2]}}\nstages:\n"
                "  - {use: read, path: in.raw, out: a}\n  - %s\n  - {use: write, path: out.raw, durable: none}\n",
                of[i].dtype, sizes[s], of[i].stages);
            pipe_done(dir, text, on, NULL, (gp_run_options){ .poison = s % 2 });
            char *got = pipe_read(dir, "out.raw", &n);
            first = first ? first : got, all = s ? all : n;
            ck_assert_msg(n == all && n, "%s in frames of %d: %zu bytes, not %zu", of[i].what, sizes[s], n, all);
            for (size_t k = 0; within > 0 && k < n; k += each) {
                double x = wide ? *(double *)(first + k) : (double)*(float *)(first + k);
                double y = wide ? *(double *)(got + k) : (double)*(float *)(got + k);
                most = fabs(x) > most ? fabs(x) : most, off = fabs(x - y) > off ? fabs(x - y) : off;
            }
            ck_assert_msg(within > 0 ? off <= within * most : !memcmp(first, got, n), "%s in frames of %d: off by %g of %g",
                          of[i].what, sizes[s], off, most);
            if (got != first)
                free(got);
        }
        free(first);
    }
}

/* A frame of no rows has the columns that it has, not those of the frame before it; and it is refused where one of one
 * row is. */
TEST(test_no_rows_shapes)
{
    static const char varies[] =
        "buffers: {a: {dtype: f32, shape: [16, 8]}, b: {dtype: f32, shape: [\"<=16\", \"<=8\"]}}\n"
        "stages:\n"
        "  - {use: generate, frames: 6, out: a}\n"
        "  - {use: lua, script: cut.lua, in: a, out: b}\n"
        "  - {use: sobel, in: b, out: c}\n"
        "  - {use: concat, axis: 0, in: {b: b, c: c}, out: d}\n"
        "  - {use: discard, in: d}\n";
    static const char turned[] =
        "buffers: {a: {dtype: f32, shape: [16, 8]}, f: {const: f.npy}}\n"
        "stages:\n"
        "  - {use: generate, frames: 6, out: a}\n"
        "  - {use: lua, script: none.lua, in: a, out: b}\n"
        "  - {use: matmul, transpose_a: true, in: {a: b, b: f}, out: c}\n"
        "  - {use: write, path: out.raw, format: raw, in: c}\n";
    const char *dir = pipe_dir();
    pipe_text(dir, "cut.lua", "function process(f, x, y) y.shape = {f.index % 2 == 1 and 0 or 16, 8 - f.index} y:fill(1) end\n");
    pipe_text(dir, "none.lua", "function process(f, x, y) y:copy(x) if f.index == 1 then f.valid = 0 end end\n");
    pipe_npy(dir, "f.npy", 16, 4, wave);
    pipe_result r = pipe_done(dir, varies, on, NULL, (gp_run_options){ 0 });
    ck_assert_uint_eq(r.account[0].out, 6);
    r = pipe_run(dir, turned, on, NULL, (gp_run_options){ 0 });
    ck_assert_msg(r.errs.failed && strstr(r.errs.e[0].msg, "does not fit"), "%s", pipe_said(&r.errs));
}

/* With `on_error: drop` a frame that one branch of a segment cannot have goes on in another. */
TEST(test_drop_in_branch)
{
    static const char yaml[] =
        "on_error: drop\n"
        "buffers: {a: {dtype: f32, shape: [4, 8]}, b: {dtype: f32, shape: [4, 8]}}\n"
        "stages:\n"
        "  - {use: generate, frames: 20, out: a}\n"
        "  - {use: lua, script: part.lua, in: a, out: b}\n"
        "  - {use: crop, size: [4, 4], in: b, out: c}\n"
        "  - {use: fir, taps: [1, 1], in: c, out: d}\n"
        "  - {use: write, path: d.raw, in: d}\n"
        "  - {use: fir, taps: [1, 1], in: b, out: e}\n"
        "  - {use: write, path: e.raw, in: e}\n";
    const char *dir = pipe_dir();
    pipe_text(dir, "part.lua", "function process(f, x, y) y:copy(x) if f.index == 7 then f.valid = 3 end end\n");
    for (int i = 0; i < 2; i++) {
        const char *sets[] = { i ? "launch=stream" : "launch=graph", NULL };
        size_t cut, all;
        pipe_result r = pipe_done(dir, yaml, on, sets, (gp_run_options){ 0 });
        ck_assert_msg(strstr(r.errs.e[0].msg, "'size' is 4 in axis 0, which is larger"), "%s", r.errs.e[0].msg);
        ck_assert_msg(r.account[0].out == 19 && r.account[0].failed == 1, "%d out, %d failed", (int)r.account[0].out,
                      (int)r.account[0].failed);
        free(pipe_read(dir, "d.raw", &cut)), free(pipe_read(dir, "e.raw", &all));
        ck_assert_msg(cut == 19 * 64 && all == 19 * 128 + 96, "%zu and %zu bytes", cut, all);
    }
}

/* A frame that a device stage cannot compute is a hole with `on_error: drop`; the
 * stage behind it that carries state starts anew. */
TEST(test_drop_in_segment)
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
        pipe_result r = pipe_done(dir, yaml, on, sets, (gp_run_options){ 0 });
        ck_assert_uint_eq(r.account[0].in, 20);
        ck_assert_uint_eq(r.account[0].out, 19);
        ck_assert_uint_eq(r.account[0].failed, 1);
        ck_assert_msg(r.errs.n == 2 + i && strstr(r.errs.e[0].msg, "division by zero"), "%s", pipe_said(&r.errs));
        ck_assert(strstr(r.errs.e[1].msg, "'out.npy' has no gap where 1 frame is missing"));
        ck_assert(!i || strstr(r.errs.e[2].msg, "stage 'write' replaced a file"));
        size_t n;
        float *out = (float *)(pipe_read(dir, "out.npy", &n) + 128);
        ck_assert_uint_eq(n, 128 + 19 * 32 * 4);
        ck_assert(out[6 * 32] == 2 && out[7 * 32] == 1);   /* frame 8 has no history */
        free((char *)out - 128);
    }
}

/* `frame` tells a kernel the rows of its own first input, wherever it is cut. */
TEST(test_valid)
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
    pipe_done(dir, yaml, on, NULL, (gp_run_options){ 0 });
    size_t n;
    OWNED char *out = pipe_read(dir, "out.raw", &n);
    ck_assert_uint_eq(n, 3 * 6 * 4);
    for (size_t i = 0; i < n; i += 4) {
        float v;
        memcpy(&v, out + i, 4);
        ck_assert(v == 6);
    }
}

CASES_SUITE(exec, NULL, NULL, 900, every = cases_thin(61, 1, 1))
