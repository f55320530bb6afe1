/* knobs_cases.c - one pipeline with all that there is: rates, windows, carried buffers on the device and by way of a
 * script, loops, state, holes, partial frames, frames of different shapes, and what is regrouped of these. Whatever the
 * settings, each of its files has the same bytes. */
#include "base/npy.h"
#include "knobs_cases.h"

enum { ROWS = 6, COLS = 8, FRAME = ROWS * COLS };

#pragma GCC diagnostic ignored "-Woverlength-strings"
const char knobs_yaml[] =
    "buffers:\n"
    "  x: {dtype: f32, shape: [6, 8]}\n"
    "  kept: {like: x}\n  sum: {like: x}\n  before: {carry: sum, init: 0.25, on_hole: splice}\n"
    "  slow: {like: x}\n  old: {carry: slow, init: 1}\n  near: {like: x}\n  mixed: {like: x}\n"
    "  long: {like: x}\n  any: {dtype: f32, shape: [\"<=9\", \"<=12\"]}\n  both: {like: any}\n"
    "  half: {dtype: f32, shape: [\"ceil(a.shape[0] / 2)\", \"a.shape[1]\"]}\n"
    "  fading: {state: true, dtype: f32, shape: [6, 8], init: 0.5}\n  faded: {like: x}\n"
    "  t: {const: t.npy}\n  m: {const: m.npy}\n"
    "  level: {dtype: f32, shape: [1]}\n  drift: {like: level}\n  ago: {carry: drift, init: 0.5}\n"
    "stages:\n  - {use: read, path: \"in-*.raw\", out: x}\n"
    /* Frames with fewer rows, and holes. */
    "  - {use: lua, name: lose, script: lose.lua, in: x, out: kept, workers: 3}\n"
    "  - {use: scale, a: 0.75, b: 0.1, in: kept, out: s}\n"
    "  - {name: sum, in: {a: s, b: before}, out: {o: sum}, "
    "<<: &m {use: kernel, source: k.cu, entry: mean, threads: o.size, args: [a, b, o, {i32: a.size}], each_once: true}}\n"
    "  - {use: kernel, name: fade, source: k.cu, entry: fade, in: {a: s, f: fading}, out: {f: fading, o: faded}, "
    "threads: o.size, args: [a, f, o, {i32: a.size}]}\n"
    "  - {use: expr, name: fall, in: {f: fading}, out: {f: fading}, expr: \"0.75 * f\"}\n"
    "  - {use: write, in: faded, path: faded.raw, durable: none}\n"
    "  - use: loop\n    name: near\n    in: {u: sum, w: s}\n    out: {v: near}\n    times: 7\n    carry: {u: v}\n"
    "    buffers: {t: {like: u}}\n    stages:\n"
    "      - {use: blur, sigma: 0.6, in: u, out: t}\n"
    "      - {<<: *m, in: {a: t, b: w}, out: {o: v}}\n"
    "  - {use: lua, name: slow, script: slow.lua, in: {x: near, u: old}, out: slow}\n"
    "  - {use: write, in: slow, path: slow.raw, durable: none}\n"
    "  - {use: write, in: near, path: near.raw, durable: none}\n"
    "  - {use: write, in: sum, path: \"sum-%03d.npy\", durable: none, workers: 2}\n"
    /* Whole frames, regrouped. */
    "  - {use: generate, pattern: noise, frames: 41, in: [], out: long}\n"
    "  - {use: fir, taps: [0.5, 0.25, 0.125], in: long}\n"
    "  - use: loop\n    name: many\n    in: {a: fir}\n    out: {b: many}\n    times: 300\n    carry: {a: b}\n"
    "    until: {buffer: done, every: 3}\n    buffers: {done: {dtype: i32, shape: [1]}}\n    stages:\n"
    "      - {use: kernel, source: k.cu, entry: shrink, in: {a: a}, out: {b: b, done: done}, "
    "threads: b.size, args: [a, b, done, {i32: a.size}]}\n"
    "  - {use: kernel, name: mixed, source: k.cu, entry: window, in: {a: many}, out: {o: mixed}, window: {a: 4}, "
    "args: [a, o, {i32: \"a.shape[0]\"}, {i32: o.size}], block: 64, grid: 1}\n"
    "  - &w {use: write, path: mixed.raw, durable: none}\n"
    "  - {use: group, frames: 6, in: many, out: groups}\n  - {use: scale, a: 3, b: -1}\n  - {use: split}\n"
    "  - {<<: *w, path: groups.raw}\n  - {use: mix, op: mean, frames: 5, in: mixed, out: means}\n"
    "  - {<<: *w, path: means.raw}\n  - {use: decimate, frames: 3, in: many}\n  - {use: hold, frames: 2}\n"
    "  - {use: sobel}\n  - {<<: *w, path: held.raw}\n"
    /* Rearranged, fir; what is computed element by element last is written to the host's memory. */
    "  - {use: slice, index: \"::-1, 1:\", in: s}\n  - {use: scale, a: 2, b: 1}\n  - {<<: *w, path: turned.raw}\n"
    "  - {use: pad, before: 2, after: [3, 1], edge: wrap, in: fir}\n"
    "  - {use: warp, in: {in: pad, map: m}}\n  - {use: conv2d, in: {in: warp, weights: t}}\n"
    "  - {use: median}\n  - {use: morphology, op: open}\n  - {use: normalize, to: deviation, out: even}\n"
    "  - {use: rotate90}\n  - {use: softmax}\n  - {use: cumsum}\n"
    "  - {use: concat, in: {a: cumsum, b: cumsum}, axis: 1}\n  - {use: transpose}\n  - {use: crop, size: [7, 5]}\n"
    "  - {use: reduce, op: std, axes: [0]}\n"
    "  - {use: expr, expr: in * in}\n  - {<<: *w, path: moved.raw}\n"
    "  - {use: histogram, bins: 9, range: [-2, 2], in: even}\n  - {use: reshape, shape: [3, -1]}\n"
    "  - {<<: *w, path: counts.raw}\n"
    "  - {use: threshold, level: 0.4, in: even}\n  - {use: label}\n  - {use: objects}\n  - {<<: *w, path: objects.raw}\n"
    /* Frames of different shapes. */
    "  - {use: read, path: \"any-*.npy\", out: any}\n"
    "  - {use: lua, name: some, script: lose.lua, in: any, workers: 2}\n"
    "  - {use: loop, name: soft, in: {u: some}, out: {v: soft}, times: 3, carry: {u: v}, stages: ["
    "{use: blur, sigma: 0.5, in: u, out: v}]}\n"
    "  - {<<: *m, name: both, in: {a: some, b: soft}, out: {o: both}}\n"
    "  - {<<: *w, path: \"some-%03d.npy\", workers: 2}\n"
    "  - {use: kernel, name: half, source: k.cu, entry: rows, in: {a: both}, out: {o: half}, "
    "args: [a, o, {i32: \"a.shape[1]\"}, {i32: o.size}], block: 64, grid: [\"ceil(o.size / 64)\"]}\n"
    "  - {<<: *w, path: \"half-%03d.npy\"}\n"
    /* What is made of these has one shape again: carried, in windows and in groups. */
    "  - {use: reduce, op: mean, in: half, out: level}\n"
    "  - {<<: *m, name: drift, in: {a: level, b: ago}, out: {o: drift}}\n"
    "  - {use: window, frames: 3, in: drift}\n  - {<<: *w, path: three.raw}\n"
    "  - {use: group, frames: 4, in: drift}\n  - {use: split}\n  - {use: mix, op: mean, frames: 3}\n"
    "  - {<<: *w, path: levels.raw}\n";

static const char kernels[] =
    "extern \"C\" __global__ void mean(const float *a, const float *b, float *o, int n)\n{\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n)\n        o[i] = 0.6f * a[i] + 0.3f * b[i];\n}\n"
    "extern \"C\" __global__ void fade(const float *a, float *f, float *o, int n)\n{\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n)\n"
    "        o[i] = a[i] - f[n - 1 - i], f[n - 1 - i] = f[n - 1 - i] * 0.5f + a[i];\n}\n"
    "extern \"C\" __global__ void rows(const float *a, float *o, int w, int n)\n{\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n)\n        o[i] = a[2 * (i / w) * w + i % w];\n}\n"
    "extern \"C\" __global__ void shrink(const float *a, float *b, int *done, int n)\n{\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n)\n        b[i] = 0.9f * a[i];\n"
    "    if (i == 0)\n        done[0] = a[0] * a[0] < 1e-4f;\n}\n"
    "extern \"C\" __global__ void window(const float *a, float *o, int rows, int n)\n{\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    float sum = 0;\n    for (int k = 0; i < n && k < rows; k++)\n"
    "        sum += (float)(k + 1) * a[k * n + i];\n    if (i < n)\n        o[i] = sum;\n}\n";

static const char *const settings[][9] = {
    { NULL },
    { "depth=1", NULL },
    { "depth=2", "streams=1", "sync=block", "copies=mapped", NULL },
    { "depth=9", "streams=4", "batch=8", "copies=dma", "stages.read.workers=3", "stages.generate.workers=4", "stages.read2.workers=5", NULL },
    { "depth=16", "batch=16", "stages.lose.workers=1", NULL },
    { "depth=5", "launch=stream", "stages.lose.workers=7", NULL },
    { "depth=8", "launch=stream", "batch=1", "sync=yield", "stages.read.workers=2", "stages.read2.workers=2", NULL },
    { "depth=33", "streams=2", "batch=2", "sync=spin", NULL },
    { "depth=24", "batch=8", "latency=3ms", "stages.read.workers=2", NULL },
    { "buffers.kept.depth=1", "buffers.sum.depth=7", "buffers.x.depth=3", "depth=12", NULL },
    { "priority=low", "stages.sum.priority=high", "stages.many.priority=normal", "stages.slow.priority=normal",
      "buffers.m.memory=managed", NULL },
    { "stages.near.priority=low", "stages.mixed.priority=high", "stages.some.priority=low", "launch=stream", NULL },
};
enum { SETTINGS = sizeof settings / sizeof *settings, RANDOM = 16 };

/* On several devices, which are parts of the CPU. */
static const char *const pretended[][8] = {
    { "device=cpu:0", NULL },
    { "device=cpu:0-1", NULL },
    { "device=cpu:0-1", "depth=1", "streams=1", "sync=block", "copies=mapped", NULL },
    { "device=cpu:0-2", "depth=9", "batch=4", "buffers.t.memory=managed", "buffers.m.memory=managed", NULL },
    { "device=cpu:0-3", "depth=8", "batch=8", "launch=stream", "fuse=none", NULL },
    { "device=cpu:3", "stages.sum.device=cpu:1", "stages.mixed.device=cpu:2", "stages.both.device=cpu:0", NULL },
    { "device=[cpu:4, cpu:0]", "stages.both.device=cpu:4", "stages.half.device=cpu:7", "depth=16", "latency=3ms", NULL },
    { "device=cpu:0-1", "buffers.kept.depth=1", "buffers.sum.depth=7", "buffers.x.depth=3", "depth=12", NULL },
};
enum { PRETENDED = sizeof pretended / sizeof *pretended };

/* On several GPUs. */
static const char *const spread[][8] = {
    { "device=all", NULL },
    { "device=all", "depth=1", "streams=1", "sync=block", NULL },
    { "device=all", "depth=8", "batch=8", "copies=mapped", "launch=stream", "fuse=none", "buffers.t.memory=managed", NULL },
    { "device=cuda:1", "stages.sum.device=cuda:0", "stages.mixed.device=cuda:0", NULL },
    { "device=cuda:0", "stages.both.device=cuda:1", "depth=16", "latency=3ms", NULL },
};
enum { SPREAD = sizeof spread / sizeof *spread };

void knobs_any(knobs_set *k, unsigned seed, bool goes_on)
{
    static const struct { const char *key; int least, most; } number[] = {
        { "depth", 1, 40 }, { "streams", 1, 8 }, { "batch", 1, 16 }, { "stages.lose.workers", 1, 6 },
        { "stages.some.workers", 1, 6 }, { "buffers.kept.depth", 1, 20 }, { "buffers.any.depth", 1, 20 },
        { "buffers.x.depth", 1, 20 }, { "buffers.long.depth", 8, 30 },
        { "stages.read.workers", 1, 5 }, { "stages.read2.workers", 1, 5 }, { "stages.generate.workers", 1, 5 },
    };
    static const char *const word[] = { "launch=stream", "sync=block", "sync=yield", "sync=spin", "batch_wait=3ms",
                                        "priority=low", "stages.sum.priority=high", "stages.many.priority=low",
                                        "stages.label.priority=high", "stages.lose.priority=low", "copies=dma", "copies=mapped",
                                        "fuse=none" };
    static const char *const device[] = { "device=cpu:0", "device=cpu:0-1", "device=cpu:0-2", "device=[cpu:5, cpu:1]" };
    enum { NUMBERS = sizeof number / sizeof *number, WORDS = sizeof word / sizeof *word };
    int n = 0;
    for (int i = 0; i < NUMBERS - (goes_on ? 3 : 0); i++) {
        if (rand_r(&seed) % 3)
            continue;
        snprintf(k->text[n], sizeof *k->text, "%s=%d", number[i].key,
                 number[i].least + rand_r(&seed) % (number[i].most - number[i].least + 1));
        k->set[n] = k->text[n], n++;
    }
    for (int i = 0; i < WORDS - goes_on; i++)
        if (rand_r(&seed) % 3 == 0)
            k->set[n++] = word[i];
    if (!goes_on && !strcmp(on, "cpu") && rand_r(&seed) % 3 == 0)
        k->set[n++] = device[rand_r(&seed) % 4];
    k->set[n] = NULL;
}

const char *const knobs_goes_on[KNOBS_GOES_ON][8] = {
    { NULL },
    { "depth=1", NULL },
    { "depth=2", "streams=1", "sync=block", NULL },
    { "depth=9", "streams=4", "batch=8", NULL },
    { "depth=16", "batch=16", "copies=mapped", NULL },
    { "depth=16", "batch=16", "latency=2ms", "copies=dma", NULL },
    { "depth=12", "batch=4", "latency=50us", "launch=stream", NULL },
    { "depth=5", "launch=stream", NULL },
    { "depth=8", "launch=stream", "batch=1", "sync=yield", NULL },
    { "depth=33", "streams=2", "batch=2", NULL },
    { "priority=low", "stages.sum.priority=high", "stages.many.priority=normal", NULL },
    { "stages.near.priority=low", "stages.mixed.priority=high", "stages.read.priority=low", "depth=6", NULL },
    { "buffers.kept.depth=1", "buffers.sum.depth=7", "buffers.x.depth=3", "depth=12", NULL },
};

unsigned knobs_draw(unsigned *seed)
{
    return (*seed = *seed * 1103515245u + 12345u) >> 8;
}

const char *const knobs_written[] = { "slow.raw", "near.raw", "sum-000.npy", "sum-017.npy", "mixed.raw", "groups.raw",
                                     "means.raw", "held.raw", "turned.raw", "moved.raw",
                                     "counts.raw", "objects.raw", "some-000.npy", "some-007.npy", "some-012.npy",
                                     "half-001.npy", "half-016.npy", "three.raw", "levels.raw", NULL };
enum { FILES = sizeof knobs_written / sizeof *knobs_written - 1 };

typedef struct made { char *data[FILES]; size_t n[FILES]; } made;

static void put_array(const char *dir, const char *name, gp_type t, const float *data)
{
    char all[GP_NPY_HEADER_MAX + 9 * 12 * sizeof *data];
    size_t head = gp_npy_header(&t, all, GP_NPY_HEADER_MAX), n = gp_bytes(&t);
    memcpy(all + head, data, n);
    pipe_file(dir, name, all, head + n);
}

/* 23 frames, each fifth a hole; those at the end of each file have fewer rows. */
void knobs_put_files(const char *dir)
{
    static float in[23 * FRAME];
    for (int i = 0; i < 23 * FRAME; i++)
        in[i] = (float)((i * 7919 + 31) % 1009) / 64 - 5;
    pipe_file(dir, "in-1.raw", in, sizeof *in * (10 * FRAME - 3 * COLS));
    pipe_file(dir, "in-2.raw", in + 100, sizeof *in * (1 * COLS));
    pipe_file(dir, "in-3.raw", in + 300, sizeof *in * (12 * FRAME - COLS));
    for (int i = 0; i < 17; i++) {
        char *name = format("any-%02d.npy", i);
        put_array(dir, name, (gp_type){ GP_F32, 2, { 1 + i * 7 % 9, 1 + i * 5 % 12 } }, in + 50 * i);
    }
    put_array(dir, "t.npy", (gp_type){ GP_F32, 2, { 3, 2 } }, in + 7);
    put_array(dir, "m.npy", (gp_type){ GP_F32, 3, { 5, 7, 2 } }, in + 90);
    pipe_text(dir, "k.cu", kernels);
    pipe_text(dir, "lose.lua", "stateless = true\nfunction process(frame, x, y)\n  if frame.index % 5 == 3 then return 'drop' end\n  y:copy(x)\nend\n");
    pipe_text(dir, "slow.lua", "function process(frame, x, y)\n  for i = 1, #y do y[i] = 0.5 * x.x[i] + 0.25 * x.u[i] end\nend\n");
}

char *knobs_read_files(const char *dir, size_t *bytes)
{
    char *all = NULL;
    *bytes = 0;
    for (int k = 0; knobs_written[k]; k++) {
        size_t n = 0;
        OWNED char *one = pipe_read(dir, knobs_written[k], &n);
        ck_assert_msg(one && n, "no %s", knobs_written[k]);
        all = realloc(all, *bytes + n + 1);
        memcpy(all + *bytes, one, n);
        *bytes += n;
    }
    return all;
}

void knobs_check_accounts(const pipe_result *r)
{
    ck_assert_int_eq(r->naccounts, 3);
    for (int k = 0; k < 3; k++)
        ck_assert_msg((r->account[k].in == 23 && r->account[k].out == 19 && r->account[k].dropped == 4)
                      || (r->account[k].in == 41 && r->account[k].out == 41)
                      || (r->account[k].in == 17 && r->account[k].out == 14 && r->account[k].dropped == 3), "%d in, %d out, %d dropped",
                      (int)r->account[k].in, (int)r->account[k].out, (int)r->account[k].dropped);
}

static made run(const char *const *set, int options)
{
    made m;
    const char *dir = pipe_dir();
    knobs_put_files(dir);
    /* Under compute-sanitizer a `while` node beside another kernel is an illegal access, in a program by hand, too. */
    bool alone = getenv("GPIPE_SANITIZED") != NULL;
    pipe_result r = pipe_done(dir, knobs_yaml, on, set,
                              (gp_run_options){ .poison = options & 1, .timed = options & 2, .isolate = alone });
    knobs_check_accounts(&r);
    for (int k = 0; k < FILES; k++) {
        m.data[k] = pipe_read(dir, knobs_written[k], &m.n[k]);
        ck_assert_msg(m.data[k] && m.n[k], "no %s with %s", knobs_written[k], set[0] ? set[0] : "defaults");
    }
    return m;
}

static void compare(const char *const *set, int options)
{
    char all[500] = "";
    made first = run(settings[0], 0), now = run(set, options);
    for (int i = 0; set[i]; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), " --set %s", set[i]);
    for (int k = 0; k < FILES; k++) {
        ck_assert_msg(first.n[k] == now.n[k] && !memcmp(first.data[k], now.data[k], first.n[k]), "%s differs with%s",
                      knobs_written[k], all);
        free(first.data[k]), free(now.data[k]);
    }
}

TEST_SOME(same_bytes, SETTINGS, 6, 1)
{
    compare(settings[_i], _i % 4);
}

TEST_SOME(same_bytes_on_devices, PRETENDED, 4, 1)
{
    if (!strcmp(on, "cpu"))
        compare(pretended[_i], _i % 4);
}

static int gpus(void)
{
    gp_machine *m = gp_machine_create(true);
    gp_machine_info is = { 0 };
    if (m)
        gp_machine_about(m, &is);
    gp_machine_destroy(m);
    return is.ndevices;
}

TEST_LOOP(same_bytes_on_gpus, 0, SPREAD)
{
    if (strcmp(on, "cpu") && gpus() > 1)
        compare(spread[_i], _i % 4);
    else if (strcmp(on, "cpu"))
        fprintf(stderr, "SKIPPED: tests of several GPUs: there is one\n");
}

TEST_SOME(any_knobs, RANDOM, 8, 1)
{
    knobs_set k;
    knobs_any(&k, (unsigned)_i * 2654435761u + 1, false);
    compare(k.set, _i % 4);
}

CASES_SUITE(knobs, NULL, NULL, 0, 1)
