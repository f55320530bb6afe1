/* managed_cases.c - a constant in managed memory is what it is anywhere else: for a kernel that looks numbers up in it,
 * for a script, for a stage that runs once, and for what is carried. */
#include "cases.h"

enum { ROWS = 4096, COLS = 48, FRAMES = 19, PLACES = 37 };

static const char yaml[] =
    "buffers:\n"
    "  at: {dtype: i32, shape: [37]}\n  rows: {dtype: f32, shape: [37, 48]}\n"
    "  less: {like: rows}\n  sum: {like: rows}\n"
    "  table: {const: table.npy, memory: managed}\n"
    "  first: {const: first.npy, memory: managed}\n"
    "stages:\n  - {use: read, path: at.raw, out: at}\n"
    "  - {use: kernel, source: k.cu, entry: look, in: {at: at, t: table}, out: {o: rows}, "
    "args: [at, t, o, {i32: \"t.shape[1]\"}, {i32: o.size}], block: 64, grid: [\"ceil(o.size / 64)\"]}\n"
    "  - {use: expr, in: {t: table, f: first}, out: twice, expr: \"2 * t + f[0, i1]\"}\n"
    "  - {use: lua, name: less, script: less.lua, in: {x: rows, t: table}, out: less}\n"
    "  - {use: kernel, name: sum, source: k.cu, entry: add, in: {at: at, t: twice, x: less}, out: {o: sum}, "
    "args: [at, t, x, o, {i32: \"t.shape[1]\"}, {i32: o.size}], block: 64, grid: [\"ceil(o.size / 64)\"]}\n"
    "  - {use: write, path: out.raw, durable: none}\n";

static const char kernels[] =
    "extern \"C\" __global__ void look(const int *at, const float *t, float *o, int cols, int n)\n{\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n)\n"
    "        o[i] = t[at[i / cols] * cols + i % cols];\n}\n"
    "extern \"C\" __global__ void add(const int *at, const float *t, const float *x, float *o, int cols, int n)\n{\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n)\n"
    "        o[i] = t[at[i / cols] * cols + i % cols] + x[i];\n}\n";

static const char script[] = "function process(f, x, y) y:sub(x.x, x.t[3]) end\n";

/* Small whole numbers: all that is made of them is exact. */
static float table_at(int64_t i)
{
    return (float)(i * 7919 % 8191 - 4000);
}

static float first_at(int64_t i)
{
    return (float)(i + 5);
}

static void put_files(const char *dir, int32_t at[FRAMES * PLACES])
{
    for (int i = 0; i < FRAMES * PLACES; i++)
        at[i] = (int32_t)((i * 2654435761u) % ROWS);
    pipe_npy(dir, "table.npy", ROWS, COLS, table_at);
    pipe_npy(dir, "first.npy", 1, COLS, first_at);
    pipe_file(dir, "at.raw", at, FRAMES * PLACES * sizeof *at);
    pipe_text(dir, "k.cu", kernels);
    pipe_text(dir, "less.lua", script);
}

static const char *const settings[][5] = {
    { "buffers.rows.memory=managed", NULL }, { "buffers.rows.memory=managed", "depth=1", "streams=1", NULL },
    { "buffers.sum.memory=managed", "buffers.rows.memory=managed", "buffers.at.memory=managed", "depth=32", NULL },
    { "buffers.rows.memory=managed", "buffers.less.memory=managed", "depth=8", "batch=4", NULL },
    { "buffers.rows.memory=managed", "buffers.sum.memory=managed", "launch=stream", NULL },
    { NULL }, { "depth=1", "streams=1", NULL }, { "depth=8", "batch=4", NULL }, { "launch=stream", NULL },
    { "buffers.table.memory=device", NULL }, { "fuse=none", "buffers.first.memory=device", NULL },
    { "launch=persistent", NULL }, { "device=cpu:0", NULL }, { "device=cpu:0-2", "depth=6", NULL },
    { "device=cpu:1", "stages.sum.device=cpu:0", NULL },
    { "device=cpu:0", "buffers.rows.memory=managed", "buffers.at.memory=managed", "depth=16", NULL },
    { "device=cpu:0-2", "buffers.rows.memory=managed", "buffers.sum.memory=managed", "batch=2", NULL },
};
enum { SETTINGS = sizeof settings / sizeof *settings, PRETENDED = 5 };

TEST_SOME(same_numbers, SETTINGS, 5, 1)
{
    static int32_t at[FRAMES * PLACES];
    if (strcmp(on, "cpu") && _i >= SETTINGS - PRETENDED)
        return;
    if (getenv("GPIPE_SANITIZED") && settings[_i][0] && !strcmp(settings[_i][0], "launch=persistent"))
        return;                        /* it needs two kernels at a time */
    const char *dir = pipe_dir();
    put_files(dir, at);
    pipe_done(dir, yaml, on, settings[_i], (gp_run_options){ .poison = _i & 1 });
    OWNED float *out = pipe_read_all(dir, "out.raw", FRAMES * PLACES * COLS * sizeof *out);
    for (int64_t i = 0; i < FRAMES * PLACES * COLS; i++) {
        float t = table_at((int64_t)at[i / COLS] * COLS + i % COLS);
        ck_each(out[i] == 2 * t + first_at(i % COLS) + t - table_at(2), "element %lld is %g", (long long)i,
                      (double)out[i]);
    }
}

/* The first frame of what is carried. */
TEST(carried)
{
    const char *dir = pipe_dir();
    pipe_npy(dir, "first.npy", 1, COLS, first_at);
    pipe_done(dir,
        "buffers: {x: {dtype: f32, shape: [1, 48]}, c: {const: first.npy, memory: managed}, "
        "u: {carry: v, init: first.npy}, v: {like: x}}\nstages:\n  - {use: generate, pattern: ramp, frames: 5, out: x}\n"
        "  - {use: expr, in: {x: x, u: u, c: c}, out: v, expr: x + u + c}\n"
        "  - {use: write, path: out.raw, durable: none}\n", on, NULL, (gp_run_options){ 0 });
    OWNED float *out = pipe_read_all(dir, "out.raw", 5 * COLS * sizeof *out);
    float sum[COLS];
    for (int i = 0; i < COLS; i++)
        sum[i] = first_at(i);
    for (int i = 0; i < 5 * COLS; i++)
        ck_assert_float_eq(out[i], sum[i % COLS] += (float)i + first_at(i % COLS));
}

/* Slots of what is put together from several frames, taken apart, carried, and in segments of their own. */
static const char *const regroups[] = { "memory: device", "memory: managed" };

TEST_LOOP(regrouped, 0, 2)
{
    const char *dir = pipe_dir(), *devices[] = { on, "cpu:0-1" };
    size_t n, m;
    unsigned char *bytes[2];
    bool several = !strcmp(on, "cpu");
    for (int i = 0; i < 2; i++) {
        char *text = format("depth: 6\nbuffers:\n  w: {dtype: f32, shape: [40]}\n  x: {%s}\n  g: {%s}\n  s: {%s}\n"
                 "  v: {like: w, %s}\n  u: {carry: v}\nstages:\n"
                 "  - {use: generate, pattern: ramp, frames: 43, out: w}\n  - {use: scale, a: 3, out: x}\n"
                 "  - {use: group, frames: 4, tail: keep, in: x, out: g}\n  - {use: scale, a: 2, out: d}\n"
                 "  - {use: split, out: s}\n  - {use: expr, in: {s: s, u: u}, out: v, expr: s + u}\n"
                 "  - {use: write, path: '%d.raw', durable: none}\n", regroups[i], regroups[i], regroups[i],
                 regroups[i], i);
        pipe_done(dir, text, several && _i ? devices[1] : on, NULL, (gp_run_options){ .poison = true });
    }
    bytes[0] = (unsigned char *)pipe_read(dir, "0.raw", &n), bytes[1] = (unsigned char *)pipe_read(dir, "1.raw", &m);
    ck_assert_uint_gt(n, 0);
    ck_assert_uint_eq(n, m);
    ck_assert_int_eq(memcmp(bytes[0], bytes[1], n), 0);
    free(bytes[0]), free(bytes[1]);
}

CASES_SUITE(managed, NULL, NULL, 0, 1)
