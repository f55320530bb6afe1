/* test_stage_kernel.c - the kind `kernel`: users' kernels in whole pipelines on
 * the CPU, and what is said of options that make no sense. */
#include <math.h>
#include "lib/pipe.h"

static const char *dir;

static float ramp(int64_t i)
{
    return (float)(i * 7 % 101) - 20;
}

enum { ROWS = 45, COLS = 6, FRAME = 8 };       /* five whole frames and one of 5 rows */

static void setup(void)
{
    dir = pipe_dir();
    setenv("XDG_CACHE_HOME", dir, 1);
    pipe_npy(dir, "x.npy", ROWS, COLS, ramp);
    pipe_text(dir, "scale.cu",
        "extern \"C\" __global__ void scale(const float *in, float *out, int h, int w, float a)\n"
        "{\n"
        "    int x = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "    int y = blockIdx.y * blockDim.y + threadIdx.y;\n"
        "    if (x < w && y < h) out[y * w + x] = in[y * w + x] * a + h;\n"
        "}\n");
    pipe_text(dir, "flip.cu",
        "#include \"how.h\"\n"
        "extern \"C\" __global__ void mirror(const float *in, float *out)\n"
        "{\n"
        "    extern __shared__ float row[];\n"
        "    int x = threadIdx.x, w = blockDim.x, at = blockIdx.x * w;\n"
        "    row[x] = in[at + x];\n"
        "    __syncthreads();\n"
        "    out[at + x] = HOW(row[w - 1 - x]) + ADD;\n"
        "}\n");
    pipe_text(dir, "how.h", "#define HOW(x) (2 * (x))\n");
    pipe_text(dir, "many.cu",
        "extern \"C\" __global__ void many(const float *in, size_t si, float *out, size_t so,\n"
        "                                int n, const gp_frame_info *f)\n"
        "{\n"
        "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "    in += blockIdx.z * si, out += blockIdx.z * so, f += blockIdx.z;\n"
        "    if (i < n) out[i] = in[i] + 1000 * (int)f->index + f->valid;\n"
        "}\n");
    pipe_text(dir, "split.cu",
        "extern \"C\" __global__ void split(const float *a, unsigned char *lo, float *rows,\n"
        "                                 unsigned n, const gp_frame_info *f)\n"
        "{\n"
        "    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "    if (i < n) lo[i] = (unsigned char)(a[i] + 20);\n"
        "    if (i == 0) rows[0] = f->valid;\n"
        "}\n");
    pipe_text(dir, "flat.cu",                      /* no y: a thread for each element */
        "extern \"C\" __global__ void flat(const float *in, float *out, int n)\n"
        "{\n"
        "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "    if (i < n) out[i] = 4 * in[i];\n"
        "}\n"
        "extern \"C\" __global__ void rows(const float *in, float *out, int h, int w)\n"
        "{\n"
        "    int x = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "    for (int y = 0; x < w && y < h; y++) out[y * w + x] = 4 * in[y * w + x];\n"
        "}\n"
        "extern \"C\" __global__ void row(const float *in, float *out, int w)\n"
        "{\n"
        "    int x = blockIdx.x * blockDim.x + threadIdx.x, at = blockIdx.y * w + x;\n"
        "    if (x < w) out[at] = 4 * in[at];\n"
        "}\n");
    pipe_text(dir, "groups.cu",
        "#include <cooperative_groups.h>\n"
        "static __device__ void meet() { cooperative_groups::this_grid().sync(); }\n"
        "extern \"C\" __global__ void groups(const float *in, float *out) { meet(); out[0] = in[0]; }\n");
    pipe_text(dir, "warps.cu",
        "#include <cooperative_groups.h>\n"
        "extern \"C\" __global__ void warps(const float *in, float *out)\n"
        "{\n"
        "    auto b = cooperative_groups::this_thread_block();\n"
        "    auto w = cooperative_groups::tiled_partition(b, 32);\n"
        "    out[0] = in[0];\n"
        "}\n");
    /* 300 KiB for each thread; a GPU has 512 */
    pipe_text(dir, "local.cu",
        "extern \"C\" __global__ void local(const float *in, float *out, int n)\n"
        "{\n"
        "    volatile float mine[75 * 1024];\n"
        "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "    for (int k = 0; k < 75 * 1024; k++) mine[k] = i < n ? in[i] : 0;\n"
        "#ifdef WAIT\n"
        "    __syncthreads();\n"
        "#endif\n"
        "    if (i < n) out[i] = (mine[i] + mine[75 * 1024 - 1]) * 2;\n"
        "}\n");
    pipe_text(dir, "broken.cu",
        "extern \"C\" __global__ void broken(const float *in, float *out)\n"
        "{\n    out[0] = ina[0];\n}\n");
    pipe_text(dir, "pasted.cu", "#define KERNEL(n) extern \"C\" __global__ void n ## l\n"
        "KERNEL(scae)(const float *in, float *out) { out[0] = in[0]; }\n");
}

/* A pipeline that reads x.npy in frames, runs `stage` and joins its output. */
static pipe_result run_stage(const char *stage, const char *const *sets)
{
    char *yaml = format("pipeline: t\nvars: {gain: 1.5}\nbuffers: {x: {dtype: f32, shape: [8, 6], depth: 6}}\nstages:\n"
             "  - {use: read, path: x.npy, out: x}\n"
             "  - %s\n"
             "  - {use: write, path: out.raw, in: y}\n", stage);
    return pipe_run(dir, yaml, "cpu", sets, (gp_run_options){ .poison = true });
}

static float scaled(int64_t i)
{
    return ramp(i) * 1.5f + (float)(i / COLS < 40 ? FRAME : ROWS % FRAME);
}

static float mirrored(int64_t i)
{
    return 2 * ramp(i / COLS * COLS + COLS - 1 - i % COLS) + 3;
}

static float numbered(int64_t i)
{
    int64_t f = i / COLS / FRAME;
    return ramp(i) + (float)(1000 * f + (f < 5 ? FRAME : ROWS % FRAME));
}

static float fourfold(int64_t i)
{
    return 4 * ramp(i);
}

static const struct { const char *stage; float (*want)(int64_t); } good[] = {
    /* threads along two axes, and all kinds of arguments */
    { "{use: kernel, source: scale.cu, out: y, args: [in, out, {i32: 'in.shape[0]'}, "
      "{i32: 'in.shape[1]'}, {f32: gain}], threads: ['in.shape[1]', 'in.shape[0]']}", scaled },
    { "{use: kernel, source: scale.cu, args: [x, y, {i32: 'x.shape[0]'}, "
      "{i32: 6.0}, {f32: '3 * gain / 3'}], in: {x: x}, out: {y: y}, block: [4, 2], "
      "grid: ['ceil(x.shape[1] / 4)', 'ceil(x.shape[0] / 2)']}", scaled },
    /* other grids: along x alone, and with rows along y */
    { "{use: kernel, source: flat.cu, out: y, threads: out.size, args: [in, out, {i32: in.size}]}", fourfold },
    { "{use: kernel, source: flat.cu, out: y, args: [in, out, {i32: in.size}], block: 7, threads: out.size, "
      "serial: true}", fourfold },
    { "{use: kernel, source: flat.cu, entry: rows, out: y, args: [in, out, "
      "{i32: 'in.shape[0]'}, {i32: 'in.shape[1]'}], threads: 'in.shape[1]'}", fourfold },
    { "{use: kernel, source: flat.cu, entry: row, out: y, block: 256, grid: [1, 'in.shape[0]'], "
      "args: [in, out, {i32: 'in.shape[1]'}]}", fourfold },
    /* another entry, an include, shared memory, a macro */
    { "{use: kernel, source: flip.cu, entry: mirror, out: y, args: [in, out], block: 6, "
      "grid: 'in.shape[0]', shared: '4 * in.shape[1]', define: {ADD: 3}}", mirrored },
    { "{use: kernel, source: many.cu, out: y, batched: true, grid: 'ceil(in.size / 256)', "
      "args: [in, out, {i32: in.size}, frame]}", numbered },
    /* large local arrays, with and without a barrier */
    { "{use: kernel, source: local.cu, out: y, args: [in, out, {i32: in.size}], block: 16, grid: 3}", fourfold },
    { "{use: kernel, source: local.cu, out: y, args: [in, out, {i32: in.size}], block: 16, "
      "grid: 3, define: {WAIT: 1}}", fourfold },
};

TEST_EACH(computes, good)
{
    static const char *const sets[][3] = { { "batch=1" }, { "batch=2", "launch=stream" } };
    for (int k = 0; k < 2; k++) {
        pipe_result r = run_stage(good[_i].stage, sets[k]);
        for (int i = 0; i < r.errs.n; i++)
            fprintf(stderr, "case %d: %d: %s\n", _i, r.errs.e[i].at.line, r.errs.e[i].msg);
        ck_assert_int_eq(r.outcome, GP_DONE);
        OWNED char *out = pipe_read_all(dir, "out.raw", ROWS * COLS * sizeof(float));
        for (int i = 0; i < ROWS * COLS; i++) {
            float v;
            memcpy(&v, out + sizeof v * (size_t)i, sizeof v);
            ck_assert_float_eq(v, good[_i].want(i));
        }
    }
}

/* Two outputs, declared types, one of them without rows in common with the input. */
TEST(two_outputs)
{
    pipe_result r = pipe_run(dir,
        "pipeline: t\n"
        "buffers:\n"
        "  x: {dtype: f32, shape: [8, 6]}\n"
        "  lo: {dtype: u8}\n"
        "  rows: {shape: [1]}\n"
        "stages:\n  - {use: read, path: x.npy, out: x}\n"
        "  - {use: kernel, source: split.cu, out: [lo, rows], "
        "args: [in, lo, rows, {u32: in.size}, frame], grid: 1.0, shared: 1e3}\n"
        "  - {use: write, path: lo.raw, in: lo}\n"
        "  - {use: write, path: rows.raw, in: rows}\n", "cpu", NULL, (gp_run_options){0});
    for (int i = 0; i < r.errs.n; i++)
        fprintf(stderr, "%d: %s\n", r.errs.e[i].at.line, r.errs.e[i].msg);
    ck_assert_int_eq(r.outcome, GP_DONE);
    OWNED char *lo = pipe_read_all(dir, "lo.raw", ROWS * COLS);
    for (int i = 0; i < ROWS * COLS; i++)
        ck_assert_int_eq((unsigned char)lo[i], (int)ramp(i) + 20);
    OWNED float *rows = pipe_read_all(dir, "rows.raw", 6 * sizeof(float));
    for (int i = 0; i < 6; i++)
        ck_assert_float_eq(rows[i], i < 5 ? FRAME : ROWS % FRAME);
}

#define SCALE "{use: kernel, source: scale.cu, out: y, "
#define XY ", threads: ['in.shape[1]', 'in.shape[0]']"
#define ARGS "args: [in, out, {i32: 1}, {i32: 1}, {f32: 1}]"

/* ---- a source in the pipeline itself ----------------------------------- */

#define FIRST "buffers: {x: {dtype: f32, shape: [8, 6], depth: 6}}\nstages:\n" \
              "  - {use: read, path: x.npy, out: x}\n"        /* lines 1 to 3 */
#define HEAD_QUOTED "extern \\\"C\\\" __global__ void "
#define HEAD "extern \"C\" __global__ void "
#define INDEX "        int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
#define LIST "    args: [in, out, {i32: in.size}]\n    threads: in.size\n"

/* Two that have the same entry and are not the same; a header beside the YAML; a macro. */
TEST(code_in_the_pipeline)
{
    pipe_text(dir, "by.h", "enum { BY = 2 };\n");
    pipe_result r = pipe_run(dir, FIRST
        "  - use: kernel\n"
        "    code: |\n"
        "      #include \"by.h\"\n"
        "      " HEAD "k(const float *in, float *out, int n)\n"
        "      {\n" INDEX
        "        if (i < n) out[i] = BY * in[i];\n"
        "      }\n" LIST
        "  - name: again\n"
        "    use: kernel\n"
        "    define: {T: float}\n"
        "    code: \"" HEAD_QUOTED "k(const T *in, T *out, int n) {\\n int i = blockIdx.x * blockDim.x + "
        "threadIdx.x;\\n if (i < n) out[i] = 2 * in[i]; }\"\n" LIST
        "  - {use: write, path: out.raw}\n", "cpu", NULL, (gp_run_options){ 0 });
    for (int i = 0; i < r.errs.n; i++)
        fprintf(stderr, "%d: %s\n", r.errs.e[i].at.line, r.errs.e[i].msg);
    ck_assert_int_eq(r.outcome, GP_DONE);
    OWNED float *out = pipe_read_all(dir, "out.raw", ROWS * COLS * sizeof *out);
    for (int i = 0; i < ROWS * COLS; i++)
        ck_assert_float_eq(out[i], fourfold(i));
}

/* `compiled`: found when the stage opens; the words are the compiler's. */
static const struct { const char *stage; bool compiled; int line, col; const char *msg; } inline_bad[] = {
    { "    code: |\n      " HEAD "k(const float *in, float *out, int n)\n      {\n" INDEX
      "        if (i < n) out[i] = ina[i];\n      }\n" LIST, true, 9, 29, "'ina'" },
    { "    code: >\n      " HEAD "k(const float *in, float *out, int n)\n      { out[n] = ina[0]; }\n" LIST,
      true, 5, 11, "in 'code', line 1: " },
    { "    code: |\n      " HEAD "k(const float *in,\n          float *out, float n) {}\n" LIST,
      true, 7, 23, "parameter 3 of 'k' is 'float n', but args passes 'int' (" },
    { "    code: |\n\n      __device__ int seen;\n      " HEAD "k(const float *in, float *out, int n) { seen++; }\n"
      LIST, true, 5, 11, "kernel 'k' of 'code' may change its variable 'seen', which launches for several frames share" },
    { "    code: |\n      " HEAD "a() {}\n      " HEAD "b() {}\n" LIST, false, 5, 11,
      "'code' has several kernels; set 'entry' to one of them: 'a', 'b'" },
    { "    code: |\n      " HEAD "a() {}\n      " HEAD "b() {}\n    entry: c\n" LIST, true, 5, 11,
      "no kernel 'c' in 'code'; set 'entry' to one of its kernels: 'a', 'b'" },
    { "    code: \" \"\n" LIST, false, 5, 11, "'code' has no kernel that is plainly declared" },
    { "    code:\n      #define A 3\n      " HEAD "k(const float *in, float *out, int n)\n      {\n" INDEX
      "        if (i < n) out[i] = A;\n      }\n" LIST, false, 7, 7, "'code' needs a '|', so that its lines stay" },
    { "    code: k.cu\n" LIST, false, 5, 11, "'code' has the source itself; a file's name is 'source: k.cu'" },
    { "    code: >\n      // k\n      " HEAD "k(const float *in, float *out, int n)\n      {}\n" LIST, false, 5, 11,
      "best write 'code: |', so that its lines stay as they are" },
};

TEST_EACH(code_that_is_wrong, inline_bad)
{
    char *yaml = format(FIRST "  - use: kernel\n%s  - {use: write, path: out.raw}\n", inline_bad[_i].stage);
    pipe_result r = pipe_run(dir, yaml, "cpu", NULL, (gp_run_options){ 0 });
    ck_assert_int_eq(r.compiled, inline_bad[_i].compiled);
    ck_assert_int_ge(r.errs.failed, 1);
    const gp_err *e = &r.errs.e[0];
    ck_assert_msg(strstr(e->msg, inline_bad[_i].msg) != NULL, "'%s' is not in '%s'", inline_bad[_i].msg, e->msg);
    ck_assert_int_eq(e->at.line, inline_bad[_i].line);
    ck_assert_int_eq(e->at.col, inline_bad[_i].col);
}

/* ---- what is refused ----------------------------------------------------- */

static const struct { const char *stage, *msg; } bad[] = {
    { "{use: kernel, out: y, args: [in, out]}", "a kernel needs 'source', its .cu file, or 'code'" },
    { "{use: kernel, source: '', out: y, args: [in, out]}", "a kernel needs 'source', its .cu file, or 'code'" },
    { "{use: kernel, source: scale.cu, code: 'x', out: y, args: [in, out]}", "leave out 'source' or 'code'" },
    { "{use: kernel, code: {x: 1}, out: y, args: [in, out]}", "'code' is a text, best a block" },
    { "{use: kernel, source: scale.cu, out: y}", "args" },
    { "{use: kernel, source: none.cu, out: y, args: [in, out]}", "none.cu': No such file" },
    { "{use: kernel, source: '.', out: y, args: [in, out]}", "is not a regular file" },
    { "{use: kernel, source: how.h, out: y, args: [in, out]}", "'how.h' cannot be the name of a kernel" },
    { SCALE "args: in}", "'args' must be a list, like [" },
    { SCALE "args: [in, otu]}", "'otu' is not a port of this stage: its ports are 'in' and 'out', and a number is written "
      "{i32: otu}; did you mean 'out'?" },
    { "{use: kernel, source: scale.cu, in: x, out: y, args: [x, y]}",
      "'x' is not a port but the buffer of input 'in': write in" },
    { "{use: kernel, source: scale.cu, in: x, out: y, args: [in, y]}",
      "'y' is not a port but the buffer of output 'out': write out" },
    { "{use: kernel, source: scale.cu, in: {a: x}, out: y, args: [x, out]}",
      "'x' is not a port but the buffer of input 'a': write a" },
    { "{use: kernel, source: scale.cu, in: {a: x, b: x}, out: y, args: [a, q, out]}",
      "'q' is not a port of this stage: its ports are 'a', 'b' and 'out', and a number is written {i32: q}" },
    { SCALE "args: [in, [out]]}", "an argument is a port" },
    { SCALE "args: [in]}", "output 'out' is not among the arguments" },
    { SCALE "args: [in, out, {int: 3}]}", "no type 'int'" },
    { SCALE "args: [in, out, {f16: 3}]}", "a value cannot be f16; pass f32" },
    { SCALE "args: [in, out, {i32: 3, f32: 3}]}", "one type and its value" },
    { SCALE "args: [in, out, {u8: 256}]}", "'256' is 256, which no u8 can be" },
    { SCALE "args: [in, out, {i32: gain}]}", "'gain' is 1.5, which no i32 can be" },
    { SCALE "args: [in, out, {u8: 2.56e2}]}", "'2.56e2' is 256, which no u8 can be" },
    { SCALE "args: [in, out, {i32: 3 / 2.0}]}", "'3 / 2.0' is 1.5, which no i32 can be" },
    { SCALE "args: [in, out, {f32: 16777217}]}", "'16777217' is 16777217, which no f32 can be" },
    { SCALE "args: [in, out, {i32: 'in.shape[2]'}]}", "'in' has no axis 2" },
    { SCALE ARGS "}", "a kernel needs 'threads', the number that runs for a frame: 'threads: out.size' is one for each element "
      "of 'out' along x, 'threads: [\"out.shape[1]\", \"out.shape[0]\"]' one along x and y; or 'grid', the number of" },
    { SCALE ARGS ", threads: 6, grid: 1}", "leave out 'grid' or 'threads'" },
    { SCALE ARGS ", threads: 0}", "0 threads along x; it must be a whole number, without point or exponent, from 1 to 549755813632" },
    { SCALE ARGS ", threads: 1.5}", "1.5 threads along x" },
    { SCALE ARGS ", threads: [1, 'in.size * 1000000']}", "threads along y; it must be a whole number, without point or exponent, from 1 to 524280" },
    { SCALE ARGS ", threads: [1, 1, 1, 1]}", "threads have 1 to 3 axes" },
    { SCALE ARGS ", threads: 6, block: [8, 4]}", "a block of 4 threads along y, and 'threads' says nothing of y" },
    { SCALE "batched: true, " ARGS ", threads: [1, 1, 1]}", "1 to 2 axes: [x, y]; z is the frame" },
    { SCALE ARGS XY ", block: [1, 1, 1, 1]}", "1 to 3 axes" },
    { SCALE ARGS XY ", block: [64, 32]}", "a block of 2048 threads" },
    { SCALE ARGS XY ", block: [1, 1, 128]}", "at most 64 threads along z" },
    { SCALE ARGS ", grid: [1, 1, 1, 1]}", "a grid has 1 to 3 axes" },
    { SCALE ARGS ", block: [8, 8], grid: [1, 70000]}", "70000 blocks along y" },
    { SCALE ARGS ", grid: [2, 3]}", "a grid of 2 axes needs 'block', too, like block: [32, 8]" },
    { SCALE ARGS ", grid: 0}", "0 blocks along x" },
    { SCALE "batched: true, " ARGS ", grid: [1, 1, 1]}", "1 to 2 axes: [x, y]; z is the frame" },
    { SCALE ARGS XY ", shared: 1MiB}", "bytes of shared memory" },
    { SCALE ARGS ", cooperative: true, batched: true}", "a grid for several frames ('batched')" },
    { SCALE ARGS ", define: {a-b: 3}}", "'a-b' is not a name that C can define" },
    { SCALE ARGS ", define: [A]}", "'define' must be a map, like {RADIUS: 3}" },
};

TEST_EACH(refuses, bad)
{
    pipe_result r = run_stage(bad[_i].stage, NULL);
    ck_assert_msg(!r.compiled, "case %d compiles", _i);
    ck_assert_int_ge(r.errs.failed, 1);
    ck_assert_msg(strstr(r.errs.e[0].msg, bad[_i].msg) != NULL, "case %d: '%s' is not in '%s'",
                  _i, bad[_i].msg, r.errs.e[0].msg);
    ck_assert_int_eq(r.errs.e[0].at.line, 6);
}

/* Found when the stage opens, at a line of the .cu file. */
static const struct { const char *stage; int line; const char *msg; } broken[] = {
    { "{use: kernel, source: pasted.cu, entry: scall, out: y, args: [in, out], grid: 1}", 6, "no kernel 'scall'" },
    { "{use: kernel, source: broken.cu, out: y, args: [in, out], grid: 1}", 3, "'ina'" },
    { SCALE "args: [in, out, {i32: 1}, {f32: 1}, {f32: 1}]" XY "}", 1,
      "parameter 4 of 'scale' is 'int w', but args passes 'float' (" },
    { SCALE "args: [in, out]" XY "}", 1, "'scale' has 5 parameters, but args gives 2 values (" },
    { SCALE "args: [in, out, {i32: 1}, {i32: 1}, {f32: 1}, {f32: 1}]" XY "}", 1,
      "'scale' has 5 parameters, but args gives 6 values (" },
    { SCALE "entry: scael, " ARGS XY "}", 6, "scale.cu'; set 'entry' to one of its kernels: 'scale'" },
    { "{use: kernel, source: groups.cu, out: y, args: [in, out], grid: 1}", 6,
      "waits for all blocks, by this_grid().sync(), which needs them to run at once: set 'cooperative: true'" },
    { "{use: kernel, source: warps.cu, out: y, args: [in, out], grid: 1, cooperative: true}", 5,
      "'tiled_partition' needs a GPU" },
};

TEST_EACH(does_not_compile, broken)
{
    pipe_result r = run_stage(broken[_i].stage, NULL);
    ck_assert(r.compiled);
    ck_assert_int_eq(r.outcome, GP_ERROR);
    ck_assert_int_ge(r.errs.failed, 1);
    ck_assert_msg(strstr(r.errs.e[0].msg, broken[_i].msg) != NULL, "case %d: '%s' is not in '%s'",
                  _i, broken[_i].msg, r.errs.e[0].msg);
    ck_assert_int_eq(r.errs.e[0].at.line, broken[_i].line);
}

/* The whole frames have blocks, the last, of 5 rows, has none: it is not left uncomputed. */
TEST(no_blocks)
{
    pipe_result r = run_stage("{use: kernel, source: flat.cu, out: y, args: [in, out, "
                              "{i32: in.size}], grid: 'floor(in.shape[0] / 8)'}", NULL);
    ck_assert_int_eq(r.outcome, GP_ERROR);
    first_error_has(&r.errs, 6, "stage 'kernel': a grid of 0 blocks along x");
    ck_assert_uint_eq(r.account[0].out, 5);
}

/* ---- what is not written --------------------------------------------- */

static const struct { const char *dtype, *c; size_t bytes; } types[] = {
    { "f16", "__half", 2 }, { "f32", "float", 4 }, { "f64", "double", 8 }, { "c64", "float2", 8 },
    { "u8", "unsigned char", 1 }, { "i8", "signed char", 1 }, { "u16", "unsigned short", 2 },
    { "i16", "short", 2 }, { "i32", "int", 4 }, { "u64", "unsigned long long", 8 },
};

/* Is it no number, or nearly as large as an integer of that type can be? */
static bool is_poison(const char *dtype, const char *p, size_t bytes)
{
    float f[2];
    double d;
    int64_t i = 0;
    memcpy(f, p, bytes < sizeof f ? bytes : sizeof f), memcpy(&d, p, bytes < 8 ? 0 : 8);
    if (!strcmp(dtype, "f16"))
        return (p[1] & 0x7c) == 0x7c && (p[0] || p[1] & 3);
    if (*dtype == 'f' || *dtype == 'c')
        return !strcmp(dtype, "f64") ? isnan(d) : isnan(f[0]) && (*dtype == 'f' || isnan(f[1]));
    memcpy((char *)&i + 8 - bytes, p, bytes);      /* as the highest bytes of 64 bits */
    return *dtype == 'u' ? (uint64_t)i > UINT64_MAX / 2 : i < INT64_MIN / 2 || i > INT64_MAX / 2;
}

/* Of outputs that a script and a kernel write in part from frame 1 on, with --poison the rest shows. */
TEST_EACH(poison_shows, types)
{
    pipe_text(dir, "one.lua", "function process(f, x, y)\n"
              "  if y.dtype == 'c64' then y = y:parts() end\n"
              "  y:slice(1, f.index == 0 and 4 or 1):fill(0)\nend");
    pipe_text(dir, "one.cu", "#include <cuda_fp16.h>\ntypedef ELEMENT element;\n"
              "extern \"C\" __global__ void one(element *out, const gp_frame_info *f)\n"
              "{ for (int i = 0; i < (f->index ? 1 : 4); i++) out[i] = element(); }\n");
    char *yaml = format("buffers: {x: {dtype: %s, shape: [4]}}\nstages:\n"
                        "  - {use: generate, frames: 5, out: x}\n  - {use: lua, script: one.lua}\n"
                        "  - {use: kernel, in: x, source: one.cu, args: [out, frame], grid: 1, block: 1,\n"
                        "     define: {ELEMENT: '%s'}}\n"
                        "  - {use: write, path: lua.raw, in: lua}\n"
                        "  - {use: write, path: kernel.raw, in: kernel}\n", types[_i].dtype, types[_i].c);
    pipe_result r = pipe_run(dir, yaml, "cpu", NULL, (gp_run_options){ .poison = true });
    ck_assert_msg(r.outcome == GP_DONE, "%s: %s", types[_i].dtype, r.errs.e[0].msg);
    for (int k = 0; k < 2; k++) {
        const char *name = k ? "kernel.raw" : "lua.raw", zero[8] = { 0 };
        size_t bytes = types[_i].bytes;
        OWNED char *made = pipe_read_all(dir, name, 5 * 4 * bytes);
        for (size_t i = 0; i < 5 * 4; i++)
            ck_assert_msg(i % 4 && i >= 4 ? is_poison(types[_i].dtype, made + i * bytes, bytes)
                                : !memcmp(made + i * bytes, zero, bytes),
                          "%s of %s, element %zu", types[_i].dtype, name, i);
    }
}

TEST_SUITE(stage_kernel, setup, NULL, 0)
