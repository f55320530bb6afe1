/* cooperative_cases.c - kernels whose blocks wait for each other, on either back end. */
#include "cases.h"

enum { ROWS = 6, COLS = 250, FRAMES = 14, LAST = 4, STEPS = 25 };

static float wave(int64_t i)
{
    return (float)((i * 7919) % 1000) / 16.0f - 30.0f;
}

/* STEPS of the heat equation along a line; each step waits for all of the one before. Each
 * block keeps marks in both kinds of shared memory while the others run. */
static const char heat[] =
    "#include <cooperative_groups.h>\n"
    "namespace cg = cooperative_groups;\n"
    "extern \"C\" __global__ void heat(const float *in, float *out, float *next, int n, int steps)\n"
    "{\n"
    "    extern __shared__ unsigned marks[];\n"
    "    __shared__ unsigned own;\n"
    "    cg::grid_group grid = cg::this_grid();\n"
    "    cg::thread_block block = cg::this_thread_block();\n"
    "    int first = (int)grid.thread_rank(), size = (int)grid.size();\n"
    "    marks[threadIdx.x] = 1000 * blockIdx.x + threadIdx.x;\n"
    "    for (int i = first; i < n; i += size) out[i] = in[i];\n"
    "    for (int s = 0; s < steps; s++) {\n"
    "        if (block.thread_rank() == 0) own = grid.block_rank() + 7 * s;\n"
    "        grid.sync();\n"
    "        for (int i = first; i < n; i += size)\n"
    "            next[i] = 0.25f * (i ? out[i - 1] : 0) + 0.5f * out[i]\n"
    "                    + 0.25f * (i + 1 < n ? out[i + 1] : 0);\n"
    "        cg::sync(grid);\n"
    "        for (int i = first; i < n; i += size) out[i] = next[i];\n"
    "        if (own != blockIdx.x + 7 * s || marks[threadIdx.x] != 1000 * blockIdx.x + threadIdx.x)\n"
    "            out[0] = -1e30f;\n"
    "        block.sync();\n"
    "    }\n"
    "}\n";

static const char yaml[] =
    "buffers: {x: {dtype: f32, shape: [6, 250]}, y: {like: x}, z: {like: x}, t: {like: x}, u: {like: x}}\n"
    "stages:\n  - {use: read, path: in.npy, out: x}\n  - {use: lua, script: drop.lua, in: x, out: kept}\n"
    "  - {name: a, use: kernel, source: heat.cu, cooperative: true, in: kept, out: [y, t], block: 32,\n"
    "     grid: 5, shared: 128, args: [in, y, t, {i32: in.size}, {i32: 25}]}\n"
    "  - {name: b, use: kernel, source: heat.cu, cooperative: true, in: y, out: [z, u], block: 64,\n"
    "     grid: 12, shared: 256, args: [in, z, u, {i32: in.size}, {i32: 25}]}\n"
    "  - {use: write, in: z, path: out.raw}\n  - {use: discard, in: t}\n  - {use: discard, in: u}\n";

static void serial(float *v, int n)
{
    float next[ROWS * COLS];
    for (int s = 0; s < 2 * STEPS; s++) {
        for (int i = 0; i < n; i++) {
            float below = 0.25f * (i ? v[i - 1] : 0), here = 0.5f * v[i];
            float above = 0.25f * (i + 1 < n ? v[i + 1] : 0), sum = below + here;
            next[i] = sum + above;
        }
        memcpy(v, next, sizeof *v * (size_t)n);
    }
}

TEST(heat_is_as_in_a_loop)
{
    static const char *const sets[][5] = {
        { "launch=graph", "depth=1", "streams=1" }, { "launch=graph", "depth=6", "streams=6" },
        { "launch=stream", "depth=6", "streams=4" }, { "launch=graph", "depth=8", "batch=4" },
        { "launch=graph", "stages.a.grid=1", "stages.b.grid=3" },
    };
    const char *dir = pipe_dir();
    pipe_npy(dir, "in.npy", ROWS * (FRAMES - 1) + LAST, COLS, wave);
    pipe_text(dir, "heat.cu", heat);
    pipe_text(dir, "drop.lua", "function process(f, x, y)\n"
              "  if f.index % 5 == 3 then return 'drop' end y:copy(x) end\n");
    for (size_t k = 0; k < sizeof sets / sizeof *sets; k++) {
        pipe_result r = pipe_run(dir, yaml, on, sets[k], (gp_run_options){
                                        .check_kernels = k == 1 && !strcmp(on, "cpu") });
        ck_assert_msg(!r.errs.failed, "%s: %s", sets[k][1], r.errs.e[0].msg);
        size_t bytes, at = 0;
        OWNED char *out = pipe_read(dir, "out.raw", &bytes);
        for (int f = 0; f < FRAMES; f++) {
            float want[ROWS * COLS];
            int n = COLS * (f == FRAMES - 1 ? LAST : ROWS);
            if (f % 5 == 3)
                continue;
            for (int i = 0; i < n; i++)
                want[i] = wave(ROWS * COLS * f + i);
            serial(want, n);
            ck_assert_uint_le(at + sizeof *want * (size_t)n, bytes);
            ck_assert_msg(!memcmp(out + at, want, sizeof *want * (size_t)n), "%s %s: frame %d", sets[k][0],
                          sets[k][1], f);
            at += sizeof *want * (size_t)n;
        }
        ck_assert_uint_eq(at, bytes);
    }
}

/* What the device cannot run at once is refused before frame 0, with what it can; and what it can it does. */
TEST(a_grid_that_does_not_fit)
{
    const char *dir = pipe_dir(), *at, *sets[] = { "stages.b.grid=40000", NULL };
    unsigned blocks;
    pipe_npy(dir, "in.npy", ROWS, COLS, wave);
    pipe_text(dir, "heat.cu", heat);
    pipe_text(dir, "drop.lua", "function process(f, x, y) y:copy(x) end\n");
    pipe_result r = pipe_run(dir, yaml, on, sets, (gp_run_options){ 0 });
    ck_assert_int_eq(r.outcome, GP_ERROR);
    ck_assert_uint_eq(r.account[0].out, 0);
    ck_assert_int_eq(gp_errs_exit(&r.errs), 3);
    ck_assert_msg((at = strstr(r.errs.e[0].msg, "this device runs ")) != NULL, "%s", r.errs.e[0].msg);
    ck_assert_int_eq(r.errs.e[0].at.line, 7);
    ck_assert_int_eq(sscanf(at, "this device runs %u at once, not 40000 x 1 x 1", &blocks), 1);
    ck_assert(blocks >= 1 && blocks < 40000);
#ifndef __SANITIZE_THREAD__             /* which has no memory for so many threads */
    sets[0] = format("stages.b.grid=%u", blocks);
    r = pipe_run(dir, yaml, on, sets, (gp_run_options){ 0 });
    ck_assert_msg(!r.errs.failed, "%u blocks: %s", blocks, pipe_said(&r.errs));
#endif
}

CASES_SUITE(cooperative, NULL, NULL, 900, 1)
