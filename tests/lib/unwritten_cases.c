/* unwritten_cases.c - what a kernel leaves unwritten is told of the first frames, however it is launched. */
#include "cases.h"

/* body: with x and y of the frame [h, w], else [48, 64]. msg: NULL where all is well. */
static const struct { const char *dtype, *c, *body, *stage, *top, *msg; int h, w; } cases[] = {
    { "f32", "float", "if (x < h && y < w) out[x * w + y] = in[x * w + y];", "", "",      /* other axes than the grid's */
      "stage 'k' leaves 768 of the 3072 elements of 'out' unwritten in frame 0, such as [0, 48]: they would be what an "
      "earlier frame left there. Write them all (are there enough threads?), or set 'zero: true', so that they are 0", 0, 0 },
    { "u8", "unsigned char", "if (x < h && y < w) out[x * w + y] = 2 * in[x * w + y];", "", "",
      "leaves 768 of the 3072 elements of 'out' unwritten in frame 0, such as [0, 48]", 0, 0 },
    { "u8", "unsigned char", "if (x < w && y < h && x != 5) out[y * w + x] = x;", "", "",
      "leaves 1000 of the 2000000 elements of 'out' unwritten in frame 0, such as [0, 5]", 1000, 2000 },
    { "u8", "unsigned char", "if (x < w && y < h && x != 5) out[y * w + x] = x;", "serial: true, ", "",      /* runs once */
      "of the 2000000 elements of 'out' unwritten in frame 0: they", 1000, 2000 },
    { "u8", "unsigned char", "if (x + y * w < 12) out[y * w + x] = x;", "", "",
      "leaves 4 of the 16 elements of 'out' unwritten in frame 0, such as [3, 0]", 4, 4 },
    { "i32", "int", "if (x > 0 && x < w && y < h) out[y * w + x] = x;", "", "",
      "leaves 1 of the 3 elements of 'out' unwritten in frame 0, such as [0, 0]", 1, 3 },
    { "i32", "int", "if (x + y < 0) out[y * w + x] = 1;", "", "", "leaves 1 of the 1 elements of 'out' unwritten in frame 0, such as [0, 0]", 1, 1 },
    { "c64", "float2", "if (x < w && y < h) out[y * w + x].x = in[y * w + x].x;", "", "",
      "leaves 1536 of the 3072 elements of 'out' unwritten in frame 0, such as [0, 0]", 0, 0 },
    { "f32", "float", "if (x < h && y < w) out[x * w + y] = in[x * w + y];", "zero: true, ", "", NULL, 0, 0 },
    { "f32", "float", "if (x < w && y < h) out[y * w + x] = in[y * w + x];", "", "", NULL, 0, 0 },
    { "f32", "float", "if (x < w && y < h && y * w + x != 77) out[y * w + x] = 0;", "", "",
      "leaves 1 of the 3072 elements of 'out' unwritten in frame 0, such as [1, 13]", 0, 0 },
    { "u8", "unsigned char", "if (x < w && y < h) out[y * w + x] = 0xc5;", "", "", NULL, 0, 0 },
    { "u32", "unsigned", "if (x < w && y < h - 1) out[y * w + x] = x;", "", "", "leaves 64 of the 3072 elements of 'out' "
      "unwritten in frame 0, such as [47, 0]", 0, 0 },
    { "f16", "__half", "if (x < w && y < h - 1) out[y * w + x] = in[0];", "serial: true, ", "launch: stream\n", "leaves 64 of", 0, 0 },
    { "u8", "unsigned char", "if (x < w && y < h && (y < h - 1 || x < w - 8)) out[y * w + x] = x;", "serial: true, ", "",
      "of the 2000000 elements of 'out' unwritten in frame 0, such as [999, 1992]: they", 1000, 2000 },
    { "u8", "unsigned char", "if (x > 0 && x < w && y < h) out[y * w + x] = x * y;", "serial: true, ", "",      /* an edge */
      "of the 1024 elements of 'out' unwritten in frame 0, such as [0, 0]", 4, 256 },
    { "u8", "unsigned char", "if (x < w && y < h && y * w + x != 77) out[y * w + x] = x * y;", "serial: true, ", "",
      "leaves 1 of the 3072 elements of 'out' unwritten in frame 3 and 3 before it, such as [1, 13]", 0, 0 },
    { "u8", "unsigned char", "if (x < w && y < h && x + y) out[y * w + x] = 1;", "serial: true, ", "batch: 4\n",
      "leaves 1 of the 3072 elements of 'out' unwritten in frame 2 and 2 before it, such as [0, 0]", 0, 0 },
    { "u8", "unsigned char", "if (x < w && y < h && x + y) out[y * w + x] = 1;", "serial: true, ", "launch: stream\n",
      "leaves 1 of the 3072 elements of 'out' unwritten in frame 2 and 2 before it, such as [0, 0]", 0, 0 },
    { "f32", "float", "if (x < w && y < h && y * w + x != 77) out[y * w + x] = 0;", "serial: true, ", "launch: stream\n",
      "leaves 1 of the 307200 elements of 'out' unwritten in frame 1 and 1 before it, such as [0, 77]", 480, 640 },
    { "u8", "unsigned char", "if (x < w && y < h) out[y * w + x] = (x * w + y) * 2654435761u >> 24;", "serial: true, ", "batch: 4\n",
      NULL, 0, 0 },
    { "f64", "double", "if (x < w && y < h && y * w + x != 77) out[y * w + x] = 0;", "serial: true, ", "",
      "leaves 1 of the 3072 elements of 'out' unwritten in frame 0, such as [1, 13]", 0, 0 },
    { "f64", "double", "if (x < w && y < h - 1) out[y * w + x] = 1;", "", "launch: persistent\n", "leaves 64 of", 0, 0 },
    { "c64", "float2", "if (x < w && y < h - 1) out[y * w + x] = in[0];", "", "on_error: drop\n", "leaves 64 of", 0, 0 },
    { "u16", "unsigned short", "if (x < w && y < h - 1) out[y * w + x] = 1;", "", "batch: 4\n", "leaves 64 of", 0, 0 },
    { "f32", "float", "if (x < w && y < h) out[y * w + x] = nanf(\"\");", "", "", NULL, 0, 0 },
    { "i64", "long long", "if (x < w && y < h && x + y) out[y * w + x] = 1;", "", "",
      "leaves 1 of the 3072 elements of 'out' unwritten in frame 0, such as [0, 0]", 0, 0 },
    { "f32", "float", "if (x < w && y < h - 1) out[y * w + x] = 1;", "", "", "leaves 2000 of the 4194304 sampled "
      "elements of 'out' unwritten in frame 0, such as [2199, 0]", 2200, 2000 },
    { "u8", "unsigned char", "if (x < 1000 && y < h) out[y * w + x] = 1;", "", "", "leaves 8388684 of the 16777216 "
      "sampled elements", 8500, 2000 },
    { "u8", "unsigned char", "if (x < w && y < h) out[y * w + x] = x ^ y;", "", "", NULL, 8500, 2000 },
    { "u16", "unsigned short", "if (x < w && y < h) out[y * w + x] = x * y;", "", "", NULL, 1234, 1001 },
};

static char *run_in(const char *dir, int i, gp_run_options options, pipe_result *r)
{
    size_t n;
    setenv("XDG_CACHE_HOME", dir, 1);
    char *code = format("%sextern \"C\" __global__ void k(const %s *in, %s *out, int w, int h)\n{\n"
        "    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;\n"
        "    %s\n}\n", strcmp(cases[i].dtype, "f16") ? "" : "#include <cuda_fp16.h>\n", cases[i].c, cases[i].c, cases[i].body);
    pipe_text(dir, "k.cu", code);
    char *yaml = format("pipeline: t\n%sbuffers: {x: {dtype: %s, shape: [%d, %d]}}\n"
        "stages:\n  - {use: generate, frames: %d, out: x}\n"
        "  - {name: k, use: kernel, source: k.cu, threads: [\"out.shape[1]\", \"out.shape[0]\"], %sargs: [in, out, {i32: \"in.shape[1]\"}, "
        "{i32: \"in.shape[0]\"}]}\n  - {use: write, path: out.raw}\n", cases[i].top, cases[i].dtype, cases[i].h ? cases[i].h : 48, cases[i].w ? cases[i].w : 64,
        cases[i].h ? 2 : 9, cases[i].stage);
    *r = pipe_run(dir, yaml, on, NULL, options);
    return pipe_read(dir, "out.raw", &n);
}

TEST_SOME(unwritten, sizeof cases / sizeof *cases, 4, 1)
{
    /* A sanitizer runs one kernel at a time: no first frame beside a kernel that is resident. */
    if (getenv("GPIPE_SANITIZED") && strstr(cases[_i].top, "persistent"))
        return;
    const char *dir = pipe_dir();
    pipe_result r;
    OWNED char *made = run_in(dir, _i, (gp_run_options){ .poison = false }, &r);
    ck_assert_msg(r.compiled, "%d: %s", _i, r.errs.e[0].msg);
    if (cases[_i].msg) {
        ck_assert_msg(r.outcome == GP_ERROR, "%d is done", _i);
        ck_assert_msg(strstr(r.errs.e[0].msg, cases[_i].msg) != NULL, "%d: %s", _i, r.errs.e[0].msg);
        ck_assert_int_eq(r.errs.e[0].at.line, 5 + (*cases[_i].top != 0));
        ck_assert_ptr_null(made);
    } else {
        pipe_no_errors(&r, cases[_i].body);
        ck_assert_int_eq(r.outcome, GP_DONE);
    }
}

/* What is checked is computed in full, although its slots have been used: holes and partial frames came before. */
TEST_SOME(first_whole_frame_comes_late, 7, 3, 1)
{
    const char *dir = pipe_dir();
    setenv("XDG_CACHE_HOME", dir, 1);
    pipe_text(dir, "late.lua", "function process(f, x, y)\n  y:copy(x)\n  if f.index < 6 then\n"
              "    if f.index % 2 == 0 then return 'drop' end\n    f.valid = 1\n  end\nend\n");
    pipe_text(dir, "k.cu", "extern \"C\" __global__ void k(const float *in, float *out, int n)\n{\n"
              "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n) out[i] = in[i] + 1;\n}\n");
    char *yaml = format("depth: %d\nbuffers: {x: {dtype: f32, shape: [4, 8]}}\nstages:\n"
        "  - {use: generate, frames: 12, out: x}\n  - {use: lua, script: late.lua}\n  - {use: scale, a: 2}\n"
        "  - {use: kernel, source: k.cu, threads: out.size, args: [in, out, {i32: in.size}]}\n"
        "  - {use: write, path: out.raw}\n", _i + 1);
    pipe_done(dir, yaml, on, NULL, (gp_run_options){ .poison = false });
    OWNED float *out = pipe_read_all(dir, "out.raw", (3 * 8 + 6 * 32) * sizeof *out);
    for (int i = 0, at = 0; i < 12; i++)
        for (int k = 0; k < (i >= 6 ? 32 : i % 2 ? 8 : 0); k++, at++)
            ck_assert_msg(out[at] == (float)(2 * (i * 32 + k) + 1), "element %d of frame %d is %g", k, i, (double)out[at]);
}

/* Where frames differ in shape, the first three shapes are checked, also where no frame is whole. `height`: of a
 * frame. */
static const struct { const char *first, *second, *height, *msg; } shaped[] = {
    { "i % 5", "true", "20", "stage 'a' leaves 120 of the 600 elements of 'out' unwritten in frame 0, such as [0, 0]" },
    { "i % 5", "true", "f.index < 4 and 9 or 20", "stage 'a' leaves 54 of the 270 elements of 'out' unwritten in frame 0, such as [0, 0]" },
    { "true", "i % 5 != 3", "20", "stage 'b' leaves 14 of the 70 elements of 'out' unwritten in frame 0, such as [0, 3]" },
    { "true", "i % 5 != 3", "19", "stage 'b' leaves 12 of the 60 elements of 'out' unwritten in frame 0, such as [0, 3]" },
    { "n != 270 || i % 5", "true", "({20, 20, 10})[f.index + 1] or 9", "'a' leaves 54 of the 270 elements of 'out' unwritten in frame 3," },
    { "n == 600 || i % 5", "true", "({20, 20, 9})[f.index + 1] or 9", "'a' leaves 54 of the 270 elements of 'out' unwritten in frame 2," },
    { "n != 600 || i", "true", "({9, 8, 7})[f.index + 1] or 20", "'a' leaves 1 of the 600 elements of 'out' unwritten in frame 3," },
    { "n != 300 || i", "true", "({9, 8, 9, 8, 9})[f.index + 1] or 10", "'a' leaves 1 of the 300 elements of 'out' unwritten in frame 5," },
    { "true", "true", "20", NULL },
    { "true", "true", "f.index < 4 and 9 or 20", NULL },
    { "true", "true", "f.index % 7 + 3", NULL },
};

/* `zero`: a kernel that is not checked. */
static char *run_shaped(const char *dir, int i, bool zero, pipe_result *r, size_t *n)
{
    char *text = format("function process(f, x, y)\n  local h = %s\n  y.shape = {h, 30}\n"
                        "  for i = 1, 30 * h do y[i] = x[i] end\nend\n", shaped[i].height);
    pipe_text(dir, "some.lua", text);
    text = format("extern \"C\" __global__ void a(const float *in, float *out, int n)\n{\n"
                  "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n && (%s)) out[i] = in[i] + 1;\n}\n"
                  "extern \"C\" __global__ void b(const float *in, float *out, int n)\n{\n"
                  "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n && (%s)) out[i] = in[i] + 1;\n}\n",
                  shaped[i].first, shaped[i].second);
    pipe_text(dir, "k.cu", text);
    text = format("buffers:\n  x: {dtype: f32, shape: [20, 30]}\n  v: {dtype: f32, shape: [\"<=20\", \"<=30\"]}\n"
        "  y: {like: v}\n  q: {dtype: f32, shape: [\"<=10\", \"<=10\"]}\nstages:\n  - {use: generate, frames: 9, out: x}\n"
        "  - {use: lua, script: some.lua, in: x, out: v}\n"
        "  - {name: a, use: kernel, source: k.cu, entry: a, threads: out.size, args: [in, out, {i32: in.size}], zero: %s, out: y}\n"
        "  - {use: resize, height: 10, width: 10, fit: inside}\n"
        "  - {name: b, use: kernel, source: k.cu, entry: b, threads: out.size, args: [in, out, {i32: in.size}], zero: %s, out: q}\n"
        "  - {use: write, path: \"%%05d.npy\"}\n", zero ? "true" : "false", zero ? "true" : "false");
    *r = pipe_run(dir, text, on, NULL, (gp_run_options){ .poison = false });
    return pipe_read(dir, "00008.npy", n);
}

TEST_SOME(each_shape, sizeof shaped / sizeof *shaped, 4, 1)
{
    const char *dir = pipe_dir();
    size_t n = 0, nzero = 0;
    pipe_result r, as_zero;
    setenv("XDG_CACHE_HOME", dir, 1);
    OWNED char *made = run_shaped(dir, _i, false, &r, &n);
    OWNED char *same = shaped[_i].msg ? NULL : run_shaped(dir, _i, true, &as_zero, &nzero);
    if (shaped[_i].msg) {
        ck_assert_msg(r.outcome == GP_ERROR, "%d is done: %s", _i, r.errs.e[0].msg);
        ck_assert_msg(strstr(r.errs.e[0].msg, shaped[_i].msg) != NULL, "%d: %s", _i, r.errs.e[0].msg);
        ck_assert_ptr_null(made);
    } else {
        pipe_no_errors(&r, "each_shape");
        ck_assert(made && same && n == nzero && !memcmp(made, same, n));
    }
}

CASES_SUITE(unwritten, NULL, NULL, 900, 1)
