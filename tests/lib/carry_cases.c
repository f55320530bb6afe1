/* carry_cases.c - carried buffers: the same bits with any settings, what they begin with, names and times, partial
 * frames, and a heat equation as NumPy computes it. tests/model.py has random graphs with them. */
#include "base/npy.h"
#include "cases.h"
enum { KNOBS = CASES_KNOBS };

/* One of them that goes on between runs: not that of kernels that stay. */
static const char *knob_that_goes(int i)
{
    return cases_knobs[(i % (KNOBS - 1) + CASES_PERSISTENT + 1) % KNOBS];
}

/* ---- the same bits ---------------------------------------------------- */

/* Stages behind x, of which `write` makes a file: results that are rounded. */
static const char *const rounded[] = {
    "buffers: {x: {dtype: f32, shape: [40, 30]}, u: {carry: v, dtype: f32, shape: [40, 30], init: 0.1}}\nstages:\n"
    "  - {use: generate, pattern: noise, frames: 30, out: x}\n"
    "  - {use: blur, name: soft, in: u, sigma: 1.2}\n"
    "  - name: v\n    use: kernel\n    threads: out.size\n    code: |\n"
    "      extern \"C\" __global__ void wave(const float *x, const float *u, float *out, int n)\n      {\n"
    "          int i = blockIdx.x * blockDim.x + threadIdx.x;\n          if (i < n)\n"
    "              out[i] = 0.3f * sinf(x[i]) + 0.9f * u[i] / (1.1f + fabsf(x[i]));\n      }\n"
    "    in: {x: x, u: soft}\n    args: [x, u, out, {i32: x.size}]\n"
    "  - {use: write, path: out.raw, durable: none}\n",
    "buffers: {x: {dtype: f32, shape: [40, 30]}, v: {like: x}, u: {carry: v, init: 0.1}}\nstages:\n"
    "  - {use: generate, pattern: noise, frames: 30, out: x}\n"
    "  - {name: v, use: lua, script: wave.lua, in: {x: x, u: u}}\n"
    "  - {use: sobel}\n  - {use: write, path: out.raw, durable: none}\n",
    "buffers: {x: {dtype: f32, shape: [40, 30]}, u: {carry: v, dtype: f32, shape: [40, 30], init: 0.1},\n"
    "  w: {carry: s, on_hole: splice}}\nstages:\n"
    "  - {use: generate, pattern: noise, frames: 30, out: x}\n"
    "  - {name: s, use: lua, script: wave.lua, in: {x: x, u: u}}\n  - {name: v, use: blur, sigma: 0.7}\n"
    "  - {use: write, path: v.raw, durable: none}\n"
    "  - {name: d, use: lua, script: wave.lua, in: {x: v, u: w}}\n  - {use: write, path: out.raw, durable: none}\n",
};

TEST_THIN(same_bits, sizeof rounded / sizeof *rounded, 1)
{
    char *first = NULL;
    size_t n = 0, got;
    for (int i = 0; i < 2 * KNOBS; i++) {
        const char *dir = pipe_dir();
        pipe_text(dir, "wave.lua", "local sin = math.sin\nfunction process(frame, x, y)\n"
                  "  for i = 1, #y do y[i] = 0.3 * sin(x.x[i]) + 0.9 * x.u[i] / (1.1 + x.x[i] ^ 2) end\nend\n");
        pipe_result r = cases_run(dir, rounded[_i], i % KNOBS);
        ck_assert_msg(r.outcome == GP_DONE, "%s%s: %s", cases_knobs[i % KNOBS], pipe_said(&r.errs), rounded[_i]);
        char *out = pipe_read(dir, "out.raw", &got);
        ck_assert(out && got == sizeof(float) * 30 * 40 * 30);
        ck_assert_msg(!first || !memcmp(first, out, n), "with %s:\n%s", cases_knobs[i % KNOBS], rounded[_i]);
        if (first)
            free(out);
        else
            first = out, n = got;
    }
    free(first);
}

/* ---- what a carried buffer begins with -------------------------------- */

#define BYTES(...) (const void *)(__VA_ARGS__)
static const struct { const char *dtype, *c, *init; size_t size; const void *is; } inits[] = {
    { "u8", "unsigned char", "255", 1, BYTES((uint8_t[]){ 255 }) },
    { "i8", "signed char", "-128", 1, BYTES((int8_t[]){ -128 }) },
    { "u16", "unsigned short", "65535", 2, BYTES((uint16_t[]){ 65535 }) },
    { "i16", "short", "-300", 2, BYTES((int16_t[]){ -300 }) },
    { "u32", "unsigned", "4294967295", 4, BYTES((uint32_t[]){ 4294967295 }) },
    { "i32", "int", "-70000", 4, BYTES((int32_t[]){ -70000 }) },
    { "u64", "unsigned long long", "5000000000", 8, BYTES((uint64_t[]){ 5000000000 }) },
    { "i64", "long long", "-5000000000", 8, BYTES((int64_t[]){ -5000000000 }) },
    { "f16", "__half", "0.5", 2, BYTES((uint16_t[]){ 0x3800 }) },
    { "f32", "float", "0.1", 4, BYTES((float[]){ 0.1f }) },
    { "f64", "double", "0.1", 8, BYTES((double[]){ 0.1 }) },
    { "c64", "float2", "-1.5", 8, BYTES((float[]){ -1.5f, 0 }) },
    { "f64", "double", "\"(base + 1) / 2.0\"", 8, BYTES((double[]){ 3.5 }) },
    { "i32", "int", "base", 4, BYTES((int32_t[]){ 6 }) },
    { "f32", "float", NULL, 4, BYTES((float[]){ 0 }) },
    { "i64", "long long", NULL, 8, BYTES((int64_t[]){ 0 }) },
    { "i16", "short", "file", 2, BYTES((int16_t[]){ -7 }) },
    { "c64", "float2", "file", 8, BYTES((float[]){ -7, 9 }) },
};
enum { INITS = sizeof inits / sizeof *inits, ELEMENTS = 5, INIT_FRAMES = 9 };

static void put_start(const char *dir, int c)
{
    char head[GP_NPY_HEADER_MAX], all[GP_NPY_HEADER_MAX + 8 * ELEMENTS];
    gp_type t = { gp_dtype_parse(inits[c].dtype), 1, { ELEMENTS } };
    size_t n = gp_npy_header(&t, head, sizeof head);
    memcpy(all, head, n);
    for (size_t i = 0; i < ELEMENTS; i++)
        memcpy(all + n + i * inits[c].size, inits[c].is, inits[c].size);
    pipe_file(dir, "start.npy", all, n + ELEMENTS * inits[c].size);
}

/* Frame 0 is that; the others are those of the source, one later: in a script, and in a kernel. */
TEST_THIN(begins_with, 2 * INITS, 1)
{
    int c = _i / 2;
    char in[INIT_FRAMES * ELEMENTS * 8], yaml[1500], init[60] = "";
    size_t frame = ELEMENTS * inits[c].size, got;
    const char *dir = pipe_dir();
    for (size_t i = 0; i < sizeof in; i++)
        in[i] = (char)(i % 50 + 1);                /* no NaN in any type */
    pipe_file(dir, "in.raw", in, INIT_FRAMES * frame);
    put_start(dir, c);
    pipe_text(dir, "was.lua", "function process(frame, x, y) y:copy(x.u) end\n");
    if (inits[c].init)
        snprintf(init, sizeof init, ", init: %s", strcmp(inits[c].init, "file") ? inits[c].init : "start.npy");
    snprintf(yaml, sizeof yaml, "vars: {base: 6}\nbuffers: {x: {dtype: %s, shape: [%d]}, u: {carry: x%s}}\n"
             "stages:\n  - {use: read, path: in.raw, out: x}\n  - {name: was, in: {x: x, u: u}, ",
             inits[c].dtype, ELEMENTS, init);
    if (_i % 2)
        snprintf(yaml + strlen(yaml), 500, "use: kernel, threads: out.size, args: [x, u, out, {i32: x.size}], source: was.cu}\n");
    else
        strcat(yaml, "use: lua, script: was.lua}\n");
    strcat(yaml, "  - {use: write, path: out.raw, durable: none}\n");
    char *cu = format("#include <cuda_fp16.h>\n"
                      "extern \"C\" __global__ void was(const %s *x, const %s *u, %s *out, int n)\n{\n"
                      "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n)\n        out[i] = u[i];\n}\n",
                      inits[c].c, inits[c].c, inits[c].c);
    pipe_text(dir, "was.cu", cu);
    pipe_done(dir, yaml, on, NULL, (gp_run_options){ .poison = true });
    OWNED char *out = pipe_read(dir, "out.raw", &got);
    ck_assert_msg(out && got == INIT_FRAMES * frame, "%s", yaml);
    for (size_t i = 0; i < ELEMENTS; i++)
        ck_assert_msg(!memcmp(out + i * inits[c].size, inits[c].is, inits[c].size), "element %d of\n%s", (int)i, yaml);
    ck_assert_msg(!memcmp(out + frame, in, (INIT_FRAMES - 1) * frame), "%s", yaml);
}

/* Paths are relative to the YAML's folder, and a run begins anew with what the first did. */
static void again(gp_pipeline *p, void *arg)
{
    gp_errs errs = { .n = 0 };
    *(gp_outcome *)arg = gp_pipeline_run(p, NULL, &errs);
}

static float four(int64_t i)
{
    return 4;
}

TEST_THIN(runs_again, 2, 1)
{
    float in[20], sum = 4;
    gp_outcome second = GP_ERROR;
    const char *dir = pipe_dir();
    for (int i = 0; i < 20; i++)
        in[i] = (float)i;
    pipe_file(dir, "in.raw", in, sizeof in);
    pipe_npy(dir, "start.npy", 1, 0, four);
    pipe_text(dir, "add.lua", "function process(frame, x, y) y:add(x.x, x.u) end\n");
    char *yaml = format("buffers: {x: {shape: [1], dtype: f32}, v: {like: x}, u: {carry: v, init: %s}}\nstages:\n"
                        "  - {use: read, path: in.raw, out: x}\n  - {name: v, in: {x: x, u: u}, %s}\n"
                        "  - {use: write, path: out.raw, durable: none}\n", _i ? "4" : "start.npy",
                        _i ? "use: lua, script: add.lua" : "use: expr, expr: x + u");
    pipe_result r = pipe_run_then(dir, yaml, on, NULL, (gp_run_options){ 0 }, again, &second);
    pipe_no_errors(&r, yaml);
    ck_assert_int_eq(second, GP_DONE);
    OWNED float *out = pipe_read_all(dir, "out.raw", sizeof in);
    for (int i = 0; i < 20; i++)
        ck_assert_float_eq(out[i], sum += in[i]);
}

/* Two that carry one buffer, and begin with zeros of both signs. */
TEST(zeros_of_both_signs)
{
    size_t n;
    static const char yaml[] =
        "buffers: {x: {dtype: f32, shape: [1]}, v: {like: x}, u: {carry: v, init: 0.0}, t: {carry: v, init: -0.0}}\nstages:\n"
        "  - {use: generate, pattern: constant, value: 1, frames: 2, out: x}\n"
        "  - {use: expr, in: {x: x, u: u, t: t}, out: v, expr: x + u + t}\n"
        "  - {use: expr, in: {x: x, u: u, t: t}, out: {a: a, b: b}, expr: \"a = x / u\\nb = x / t\"}\n"
        "  - {use: write, name: plus, in: a, path: a.raw}\n  - {use: write, name: minus, in: b, path: b.raw}\n";
    const char *dir = pipe_dir();
    pipe_result r = pipe_done(dir, yaml, on, NULL, (gp_run_options){ 0 });
    ck_assert_uint_eq(r.account[0].out, 2);
    OWNED float *a = (float *)pipe_read(dir, "a.raw", &n);
    OWNED float *b = (float *)pipe_read(dir, "b.raw", &n);
    ck_assert_float_eq(a[0], INFINITY);
    ck_assert_float_eq(b[0], -INFINITY);
    ck_assert_float_eq(a[1], 1);
}

/* ---- a source without end --------------------------------------------- */

static void stop_soon(gp_pipeline *p, void *arg)
{
    pipe_await_out(p, 100);
    gp_cancel(p, 1);
}

/* Stopped, all that went in comes out, and has the values that it would have. */
TEST_THIN(stopped, 2 * (KNOBS - 1), 1)
{
    const char *dir = pipe_dir(), *make = _i % 2 ? "use: lua, script: sum.lua" : "use: kernel, source: sum.cu, "
                       "threads: out.size, args: [x, u, out, {i32: x.size}]";
    size_t n;
    pipe_text(dir, "sum.lua", "function process(frame, x, y) y:add(x.x, x.u) end\n");
    pipe_text(dir, "sum.cu", "extern \"C\" __global__ void sum(const int *x, const int *u, int *out, int n)\n{\n"
              "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n)\n        out[i] = x[i] + u[i];\n}\n");
    char *yaml = format("%sbuffers: {x: {dtype: i32, shape: [4]}, v: {dtype: i32, shape: [4]}, u: {carry: v}}\n"
                        "stages:\n  - {use: generate, pattern: constant, value: 3, rate: 2kHz, out: x}\n"
                        "  - {name: v, %s, in: {x: x, u: u}}\n  - {use: write, path: out.raw, durable: none}\n",
                        knob_that_goes(_i / 2), make);
    pipe_result r = pipe_run_with(dir, yaml, on, NULL, (gp_run_options){ 0 }, stop_soon, NULL);
    pipe_no_errors(&r, yaml);
    ck_assert_int_eq(r.outcome, GP_DRAINED);
    gp_account x = r.account[0];
    ck_assert_msg(x.out >= 100 && x.in == x.out && !x.dropped && !x.failed, "%d in, %d out", (int)x.in, (int)x.out);
    OWNED int32_t *out = (int32_t *)pipe_read(dir, "out.raw", &n);
    ck_assert(out && n == x.out * 16);
    for (size_t i = 0; i < n / 4; i++)
        ck_assert_int_eq(out[i], 3 * (int)(i / 4 + 1));
}

/* ---- names and times --------------------------------------------------- */

/* Frames, their names and times, seen by a script behind the sum (said) and by one that reads x alone (is). */
TEST_THIN(names_and_times, 4 * (KNOBS - 1), 1)
{
    static const char *const stage[] = { "use: lua, script: sum.lua", "use: kernel, source: sum.cu, "
                                         "threads: out.size, args: [x, u, out, {i32: x.size}]" };
    const char *dir = pipe_dir();
    char name[40];
    size_t n, m;
    for (int i = 0; i < 6; i++) {
        float v[4] = { (float)i, 1, 2, 3 };
        snprintf(name, sizeof name, "in-%c.raw", 'f' - i);
        pipe_file(dir, name, v, sizeof v);
    }
    pipe_text(dir, "sum.lua", "function process(frame, x, y) y:add(x.x, x.u) end\n");
    pipe_text(dir, "sum.cu", "extern \"C\" __global__ void sum(const float *x, const float *u, float *out, int n)\n{\n"
              "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n)\n        out[i] = x[i] + u[i];\n}\n");
    pipe_text(dir, "say.lua", "function process(frame, x, y)\n"
              "  y:print(frame.index, frame.name, string.format('%.9f', frame.time), frame.valid)\nend\n");
    char *yaml = format("%sbuffers:\n  x: {dtype: f32, shape: [4]}\n  v: {dtype: f32, shape: [4]}\n"
        "  u: {carry: v}\n  said: {dtype: u8, shape: [200]}\n  is: {dtype: u8, shape: [200]}\nstages:\n"
        "  - {use: read, path: \"in-*.raw\", out: x}\n  - {name: v, in: %s, %s}\n"
        "  - {use: write, path: \"%%n-out.raw\", durable: none}\n"
        "  - {use: lua, script: say.lua, in: v, out: said}\n"
        "  - {use: write, path: said.txt, format: raw}\n  - {use: lua, script: say.lua, in: x, out: is}\n"
        "  - {use: write, path: is.txt, format: raw}\n", knob_that_goes(_i / 4), _i % 2 ? "{u: u, x: x}" : "{x: x, u: u}",
        stage[_i / 2 % 2]);
    pipe_done(dir, yaml, on, NULL, (gp_run_options){ 0 });
    float sum = 0;
    for (int i = 5; i >= 0; i--) {                  /* the glob is sorted */
        snprintf(name, sizeof name, "in-%c-out.raw", 'f' - i);
        OWNED float *v = (float *)pipe_read(dir, name, &n);
        sum += (float)i;
        ck_assert_msg(v && n == 16 && v[0] == sum, "%s of\n%s", name, yaml);
    }
    OWNED char *said = pipe_read(dir, "said.txt", &n), *is = pipe_read(dir, "is.txt", &m);
    ck_assert_msg(said && is && !strcmp(said, is), "%s, not %s, of\n%s", said, is, yaml);
    ck_assert(strstr(is, "\tin-f\t") != NULL);
}

/* ---- partial frames ---------------------------------------------------- */

/* The second of three frames has one row of two: it is carried with zeros for the other. */
TEST_THIN(partial, 2 * KNOBS, 1)
{
    static const char *const stage[] = { "use: lua, script: before.lua", "use: kernel, source: before.cu, "
                                         "threads: out.size, args: [u, out, {i32: out.size}]" };
    static const float in[] = { 1, 2, 3, 7, 8, 9, 4, 5, 6 }, expected[] = { 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 0, 0, 0 };
    const char *dir = pipe_dir();
    size_t n;
    pipe_file(dir, "in-a.raw", in, sizeof in);
    pipe_file(dir, "in-b.raw", in, sizeof *in * 6);
    pipe_text(dir, "before.lua", "function process(frame, x, y) for i = 1, #y do y[i] = x.u[i] end end\n");
    pipe_text(dir, "before.cu",
              "extern \"C\" __global__ void before(const float *u, float *out, int n)\n{\n"
              "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n)\n        out[i] = u[i];\n}\n");
    char *yaml = format("buffers: {x: {dtype: f32, shape: [2, 3]}, u: {carry: x}}\nstages:\n"
                        "  - {use: read, path: \"in-*.raw\", out: x}\n  - {in: {x: x, u: u}, %s, name: before}\n"
                        "  - {use: write, path: out.raw, durable: none}\n", stage[_i % 2]);
    pipe_result r = cases_run(dir, yaml, _i / 2);
    pipe_no_errors(&r, yaml);
    ck_assert_int_eq(r.outcome, GP_DONE);
    OWNED char *made = pipe_read(dir, "out.raw", &n);
    ck_assert_msg(n == sizeof expected && !memcmp(made, expected, n), "%zu bytes of\n%s", n, yaml);
}

/* ---- as NumPy ---------------------------------------------------------- */

/* What tests/ref/heat.py makes of a plate that is warmed at a moving point. */
TEST_THIN(heat_as_numpy, KNOBS, 1)
{
    char ref[4096];
    ck_assert_ptr_nonnull(realpath("tests/ref", ref));
    const char *dir = pipe_dir();
    char *yaml = format("buffers: {point: {shape: [3]}, was: {carry: heat, init: %s/heat_start.npy}}\n"
        "stages:\n  - {use: read, path: %s/heat_points.npy, out: point}\n  - name: heat\n    use: kernel\n    threads: [\"out.shape[1]\", \"out.shape[0]\"]\n"
        "    code: |\n"
        "      extern \"C\" __global__ void heat(const double *point, const double *was, double *out,\n"
        "                                      int width, int height)\n      {\n"
        "          int x = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "          int y = blockIdx.y * blockDim.y + threadIdx.y;\n          if (x >= width || y >= height)\n"
        "              return;\n          int w = width, i = y * w + x;\n"
        "          double around = was[y ? i - w : i] + was[y < height - 1 ? i + w : i]\n"
        "                        + was[x ? i - 1 : i] + was[x < w - 1 ? i + 1 : i];\n"
        "          out[i] = was[i] + 0.2 * (around - 4 * was[i]);\n"
        "          if (y == (int)point[0] && x == (int)point[1])\n              out[i] += point[2];\n      }\n"
        "    in: {point: point, was: was}\n"
        "    args: [point, was, out, {i32: \"out.shape[1]\"}, {i32: \"out.shape[0]\"}]\n"
        "  - {use: mix, op: last}\n  - {use: compare, file: %s/heat_end.npy, rel: 1e-6}\n", ref, ref, ref);
    pipe_result r = cases_run(dir, yaml, _i);
    pipe_no_errors(&r, yaml);
    ck_assert_int_eq(r.outcome, GP_DONE);
    ck_assert_uint_eq(r.account[0].in, 50);
}

CASES_SUITE(carry, NULL, NULL, 0, cases_every(23, 3, 2))
