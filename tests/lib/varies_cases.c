/* varies_cases.c - frames that differ in shape: each is as if it had come alone, in a pipeline of that one shape. */
#include "base/npy.h"
#include "cases.h"
#include "harness.h"

static const char *const knobs[] = {
    "", "depth: 1\n", "depth: 2\nlaunch: stream\n", "depth: 7\nstreams: 2\nbatch: 4\n",
    "depth: 12\nbatch: 1\nsync: block\n",
};
enum { KNOBS = sizeof knobs / sizeof *knobs };

static const int sizes[][2] = { { 30, 40 }, { 1, 1 }, { 30, 1 }, { 7, 40 }, { 1, 40 }, { 30, 40 }, { 13, 17 }, { 2, 3 },
                                { 29, 39 }, { 5, 5 } };
enum { FILES = sizeof sizes / sizeof *sizes, HIGH = 30, WIDE = 40 };

/* A kernel whose frames are half as high as those of x, rounded up, and wider by one. */
#define BY_INPUT "[\"ceil(a.shape[0] / 2)\", \"a.shape[1] + 1\"]"
#define SHRINK "  - {use: kernel, source: k.cu, entry: shrink, in: {a: x}, out: {o: y}, block: [8, 8], args: [a, o, " \
    "{i32: \"a.shape[1]\"}, {i32: \"o.shape[0]\"}, {i32: \"o.shape[1]\"}], " \
    "grid: [\"ceil(o.shape[1] / 8)\", \"ceil(o.shape[0] / 8)\"]}\n"

/* Stages from x to the file; `same`: what has to be declared of the kernels' outputs. */
static const struct { const char *what, *buffers, *stages; bool drops; } chains[] = {
    { "scale", "", "  - {use: scale, a: 2, b: 1, in: x}\n", false },
    { "images", "", "  - {use: blur, sigma: 1.1, in: x}\n  - {use: sobel}\n  - {use: threshold, level: 3}\n", false },
    { "kernel", "y: {like: x}", "  - {use: kernel, source: k.cu, entry: turn, in: {a: x}, out: {o: y}, "
      "args: [a, o, {i32: \"a.shape[0]\"}, {i32: \"a.shape[1]\"}], block: [8, 8], "
      "grid: [\"ceil(a.shape[1] / 8)\", \"ceil(a.shape[0] / 8)\"]}\n", false },
    { "in a box", "", "  - {use: resize, height: 12, width: 9, fit: inside, in: x}\n", false },
    { "in a larger box", "", "  - {use: blur, sigma: 0.7, in: x}\n"
      "  - {use: resize, height: 50, width: 50, fit: inside, enlarge: true, method: cubic}\n"
      "  - {use: scale, a: 2, b: 0}\n", false },
    { "covering one size", "", "  - {use: resize, height: 11, width: 7, fit: cover, in: x}\n", false },
    { "with bars", "", "  - {use: resize, height: 9, width: 21, fit: contain, value: 3, method: cubic, in: x}\n", false },
    { "in one size", "", "  - {use: resize, height: 11, width: 7, method: area, in: x}\n  - {use: sobel}\n", false },
    { "in parts of a size", "", "  - {use: resize, scale: 0.4, method: nearest, in: x}\n", false },
    { "turned", "", "  - {use: transpose, in: x}\n  - {use: blur, sigma: 0.8}\n  - {use: rotate90, times: -1}\n", false },
    { "shifted", "", "  - {use: roll, shift: [5, -7], axis: [1, 0], in: x}\n  - {use: blur, sigma: 0.8}\n"
      "  - {use: roll, shift: 33}\n", false },
    { "half of it", "", "  - {use: slice, in: x, index: \"::2, ::-3\"}\n  - {use: scale, a: 2, b: 1}\n", false },
    { "more of a smaller frame", "", "  - {use: slice, in: x, index: \"-20:25\"}\n"
      "  - {use: scale, a: 2, b: 1}\n", false },
    { "the middle", "", "  - {use: pad, in: x, before: [4, 3], after: [5, 6], edge: reflect}\n"
      "  - {use: crop, size: [8, 9]}\n  - {use: reshape, shape: [4, -1]}\n", false },
    { "around", "", "  - {use: pad, in: x, before: 2, after: [70, 0], edge: wrap, out: x1}\n"
      "  - {use: concat, in: {a: x1, b: x1}, axis: 1}\n", false },
    { "two ways", "y: {like: x}", "  - {use: blur, sigma: 0.7, in: x, out: b}\n"
      "  - {use: lua, script: copy.lua, in: b, out: l}\n"
      "  - {use: kernel, source: k.cu, entry: mean, in: {a: x, b: l}, out: {o: y}, threads: o.size, args: [a, b, o, {i32: a.size}]}\n", false },
    { "rows", "", "  - {use: reduce, op: sum, axes: [1], in: x}\n", false },
    { "statistics", "", "  - {use: cumsum, axis: 1, in: x}\n  - {use: softmax, axis: 0}\n"
      "  - {use: reduce, op: std, axes: [1]}\n", false },
    { "specks", "", "  - {use: pad, before: 3, after: 3, edge: mirror, in: x}\n"
      "  - {use: median, size: 5}\n  - {use: morphology, op: open, size: [3, 5]}\n"
      "  - {use: normalize, range: [-1, 1]}\n  - {use: colormap, range: [-1, 1]}\n", false },
    { "weights", "", "  - {use: conv2d, weights: [[1, 2], [-3, 4], [5, 0.5]], edge: wrap, in: x}\n"
      "  - {use: conv2d, weights: [[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]], flip: true, edge: mirror}\n", false },
    { "other places", "",
      "  - {use: warp, affine: [0.9, -0.3, 2.5, 0.3, 0.9, -1.5], method: cubic, edge: reflect, in: x}\n"
      "  - {use: warp, perspective: [1, 0, 0, 0, 1, 0, 0.01, 0.02, 1], value: -1, width: 21}\n", false },
    { "counts", "", "  - {use: normalize, to: deviation, in: x}\n  - {use: histogram, bins: 30, range: [-2, 2]}\n", false },
    { "chosen", "", "  - {use: topk, k: 1, axis: 0, in: x, out: {indices: best}}\n"
      "  - {use: gather, in: {in: x, index: best}, axis: 1, mode: wrap}\n  - {use: gather, index: [-1, 0, 0], axis: 1}\n", false },
    { "objects", "", "  - {use: threshold, level: 60, in: x}\n  - {use: label, connectivity: 8}\n  - {use: objects}\n", false },
    { "decibels", "", "  - {use: power, in: x}\n  - {use: db, reference: 1000, floor: -20}\n", false },
    { "lags", "", "  - {use: correlate, in: {a: x, b: x}, lags: 9}\n", false },
    { "products", "", "  - {use: matmul, in: {a: x, b: x}, transpose_b: true, out: s}\n"
      "  - {use: matmul, in: {a: s, b: x}}\n  - {use: scale, a: 0.1, b: 1}\n", false },
    { "columns", "", "  - {use: reduce, op: max, axes: [0], in: x}\n  - {use: scale, a: -1, b: 0}\n", false },
    { "one number", "", "  - {use: reduce, op: mean, in: x}\n", false },
    { "types", "", "  - {use: cast, dtype: i32, in: x}\n  - {use: cast, dtype: f64}\n", false },
    { "a script", "", "  - {use: lua, script: copy.lua, in: x}\n  - {use: scale, a: 0.5, b: 0}\n"
      "  - {use: lua, script: copy.lua}\n", false },
    { "a script that makes another shape", "y: {dtype: f32, shape: [\"<=40\", \"<=30\"]}",
      "  - {use: lua, script: turn.lua, in: x, out: y}\n  - {use: blur, sigma: 0.9}\n", false },
    { "a script that makes one shape", "y: {dtype: f32, shape: [4]}",
      "  - {use: lua, script: sum.lua, in: x, out: y}\n", false },
    { "a script that makes one shape, by chance as high as x", "y: {dtype: f32, shape: [30]}",
      "  - {use: lua, script: ones.lua, in: x, out: y}\n", false },
    { "a kernel that makes one shape, by chance as high as x", "y: {dtype: f32, shape: [30, 40]}",
      "  - {use: kernel, source: k.cu, entry: whole, in: {a: x}, out: {o: y}, args: [a, o, {i32: o.size}], block: 256, "
      "grid: \"ceil(o.size / 256)\"}\n", false },
    { "a kernel that makes sizes by expressions", "y: {dtype: f32, shape: " BY_INPUT "}", SHRINK "  - {use: blur, sigma: 0.9}\n",
      false },
    { "a kernel that turns, and one that is like its output", "y: {dtype: f32, shape: [\"a.shape[1]\", \"a.shape[0]\"]}, z: {like: y}",
      "  - {use: kernel, source: k.cu, entry: ramp, in: {a: x}, out: {o: y}, threads: o.size, args: [a, o, {i32: o.size}]}\n"
      "  - {use: kernel, source: k.cu, entry: ramp, in: {a: y}, out: {o: z}, threads: o.size, args: [a, o, {i32: o.size}]}\n", false },
    { "a script whose sizes are expressions", "y: {dtype: f32, shape: [\"in.shape[1] * 2\", 3]}",
      "  - {use: lua, script: fill.lua, in: x, out: y}\n", false },
    { "a size beside a bound", "y: {dtype: f32, shape: [\"in.shape[0] + 1\", \"<=2 * in.shape[1]\"]}",
      "  - {use: lua, script: wide.lua, in: x, out: y}\n", false },
    { "a carried buffer, by chance as high as x", "y: {dtype: f32, shape: [30]}, u: {carry: y, init: 2}",
      "  - {use: lua, script: count.lua, in: {x: x, u: u}, out: y}\n", false },
    { "a loop", "", "  - {use: loop, in: {u: x}, out: {v: y}, times: 5, carry: {u: v}, stages: ["
      "{use: blur, sigma: 0.6, in: u, out: v}]}\n", false },
    { "holes", "", "  - {use: lua, script: lose.lua, in: x}\n  - {use: blur, sigma: 0.8}\n", true },
    { "fewer and more", "", "  - {use: decimate, frames: 1, in: x}\n  - {use: scale, a: 3, b: 0}\n"
      "  - {use: hold, frames: 1}\n", false },
};
enum { CHAINS = sizeof chains / sizeof *chains };

static void put_files(const char *dir)
{
    static float v[HIGH * WIDE];
    char all[GP_NPY_HEADER_MAX + sizeof v];
    for (int i = 0; i < FILES; i++) {
        gp_type t = { GP_F32, 2, { sizes[i][0], sizes[i][1] } };
        size_t head = gp_npy_header(&t, all, GP_NPY_HEADER_MAX), n = (size_t)gp_count(&t);
        for (size_t k = 0; k < n; k++)
            v[k] = (float)(((int)k * 7919 + i * 31) % 1009) / 8;
        memcpy(all + head, v, 4 * n);
        pipe_file(dir, format("in-%d.npy", i), all, head + 4 * n);
    }
    pipe_text(dir, "k.cu",
              "extern \"C\" __global__ void turn(const float *a, float *o, int h, int w)\n{\n"
              "    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;\n"
              "    if (x < w && y < h)\n        o[y * w + x] = a[(h - 1 - y) * w + w - 1 - x];\n}\n"
              "extern \"C\" __global__ void mean(const float *a, const float *b, float *o, int n)\n{\n"
              "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n)\n        o[i] = 0.5f * (a[i] + b[i]);\n}\n"
              "extern \"C\" __global__ void whole(const float *a, float *o, int n)\n{\n"
              "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n)\n        o[i] = a[0] + i;\n}\n"
              "extern \"C\" __global__ void shrink(const float *a, float *o, int wide, int h, int w)\n{\n"
              "    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;\n"
              "    if (x < w && y < h)\n        o[y * w + x] = a[2 * y * wide + x - (x == w - 1)];\n}\n"
              "extern \"C\" __global__ void ramp(const float *a, float *o, int n)\n{\n"
              "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n)\n        o[i] = a[n - 1 - i] * 2;\n}\n");
    pipe_text(dir, "copy.lua", "function process(frame, x, y) y:copy(x) end\n");
    pipe_text(dir, "turn.lua", "function process(frame, x, y)\n  local h, w = x.shape[1], x.shape[2]\n  y.shape = {w, h}\n"
              "  for i = 1, w do for j = 1, h do y[(i - 1) * h + j] = x[(j - 1) * w + i] end end\nend\n");
    pipe_text(dir, "sum.lua", "function process(frame, x, y)\n  y[1], y[2], y[3], y[4] = x:sum(), x.shape[1], x.shape[2], #x\nend\n");
    pipe_text(dir, "ones.lua", "function process(frame, x, y)\n  for i = 1, 30 do y[i] = i + x[1] end\nend\n");
    pipe_text(dir, "fill.lua", "function process(frame, x, y) y:fill(#x + #y) end\n");
    pipe_text(dir, "wide.lua", "function process(frame, x, y)\n  y.shape = {x.shape[1] + 1, x.shape[2] * 2}\n  y:fill(#y)\nend\n");
    pipe_text(dir, "count.lua", "function process(frame, x, y) y:fill(#x.u) end\n");
    pipe_text(dir, "lose.lua", "function process(frame, x, y)\n  if frame.name == 'in-3' then return 'drop' end\n  y:copy(x)\nend\n");
}

static void run(const char *dir, const char *buffers, int chain, const char *path, const char *to, const char *settings, int o)
{
    const char *and = chains[chain].buffers;
    char *yaml = format("%sbuffers: {x: {%s}%s%s}\nstages:\n  - {use: read, path: \"%s\", out: x}\n%s"
        "  - {use: write, path: \"%s/%%n.npy\", durable: none}\n", settings, buffers, *and ? ", " : "", and, path,
        chains[chain].stages, to);
    pipe_done(dir, yaml, on, NULL, (gp_run_options){ .poison = o & 1, .timed = o & 2 });
}

TEST_THIN(as_if_alone, CHAINS * KNOBS, 1)
{
    int c = _i / KNOBS;
    const char *dir = pipe_dir();
    char name[60];
    size_t n, m;
    put_files(dir);
    run(dir, _i & 1 ? "shape: [\"<=30\", \"<= 20 + 20\"]" : "dtype: f32, shape: [\"<=30\", \"<=40\"]", c, "in-*.npy",
        "all", knobs[_i % KNOBS], _i);
    for (int i = 0; i < FILES; i++) {
        char *path = format("in-%d.npy", i);
        run(dir, format("dtype: f32, shape: [%d, %d]", sizes[i][0], sizes[i][1]), c, path, "one", "", 0);
    }
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "one/in-%d.npy", i);
        OWNED char *one = pipe_read(dir, name, &n);
        snprintf(name, sizeof name, "all/in-%d.npy", i);
        OWNED char *all = pipe_read(dir, name, &m);
        ck_assert_msg(!one == !all && !one == (chains[c].drops && i == 3), "%s of %s", name, chains[c].what);
        ck_assert_msg(!one || (n == m && !memcmp(one, all, n)), "%s of %s, with %s", name, chains[c].what, knobs[_i % KNOBS]);
    }
}

/* Sizes that are expressions are those of each frame; one that comes to nothing is an error of its frame. */
TEST_THIN(sizes_by_expressions, KNOBS, 14)
{
    const char *dir = pipe_dir();
    put_files(dir);
    char *yaml = format("%sbuffers: {x: {dtype: f32, shape: [\"<=30\", \"<=40\"]}, y: {dtype: f32, shape: %s}}\n"
        "stages:\n  - {use: read, path: \"in-*.npy\", out: x}\n" SHRINK "  - {use: write, path: \"made/%%n.npy\", durable: none}\n",
        knobs[_i], BY_INPUT);
    pipe_result r = pipe_done(dir, yaml, on, NULL, (gp_run_options){ 0 });
    for (int i = 0; i < FILES; i++) {
        gp_type t = pipe_npy_type(dir, format("made/in-%d.npy", i));
        ck_assert_msg(t.ndim == 2 && t.dim[0] == (sizes[i][0] + 1) / 2 && t.dim[1] == sizes[i][1] + 1, "frame %d", i);
    }
    yaml = format("%sbuffers: {x: {dtype: f32, shape: [\"<=30\", \"<=40\"]}, y: {dtype: f32, shape: "
                  "[\"floor(a.shape[0] / 2)\", \"a.shape[1] + 1\"]}}\n"
                  "stages:\n  - {use: read, path: \"in-*.npy\", out: x}\n" SHRINK "  - {use: discard}\n", knobs[_i]);
    r = pipe_run(dir, yaml, on, NULL, (gp_run_options){ 0 });
    pipe_ends(&r, "axis 0 of buffer 'y' would have 0 elements");
}

/* Frame 0, of rows of 40; the next has others. */
static void put_wide(const char *dir)
{
    const char *const yaml = "buffers: {x: {dtype: f32, shape: [30, 40]}}\nstages:\n"
        "  - {use: read, path: in-0.npy, out: x}\n  - {use: write, path: wide.npy, durable: none}\n";
    pipe_done(dir, yaml, on, NULL, (gp_run_options){ 0 });
}

#define IMAGE "[\"<=30\", \"<=40\"]"

/* Frame by frame, with those of another buffer; rows with those of a file. */
TEST_THIN(compared, 7, 14)
{
    static const struct { const char *shape, *stages, *wrong; } cases[] = {
        { IMAGE, "  - {use: blur, sigma: 0.6, in: x, out: a}\n  - {use: blur, sigma: 0.6, in: x, out: b}\n"
          "  - {use: compare, in: [a, b]}\n", NULL },
        { IMAGE, "  - {use: slice, index: \":, :20\", in: x, out: a}\n  - {use: compare, in: [x, a]}\n",
          "frame 0 is f32 [30, 40] where f32 [30, 20] is expected" },
        { IMAGE, "  - {use: slice, index: \":3\", in: x, out: a}\n  - {use: compare, in: [a, x]}\n",
          "frame 0 has 3 rows where 30 are expected" },
        { IMAGE, "  - {use: expr, expr: \"x + (frame.index == 6 && i0 + i1 == 28)\", in: x, out: a}\n"
          "  - {use: compare, in: [a, x], abs: 0.5}\n", "frame 6 at [12, 16] is" },
        { "[\"<=30\"]", "  - {use: compare, in: x, file: rows.npy}\n", NULL },
        { "[\"<=30\"]", "  - {use: scale, a: 2, b: 0, in: x}\n  - {use: compare, file: rows.npy}\n",
          "frame 0 at [1] is 2 where 1" },
        { IMAGE, "  - {use: compare, in: x, file: wide.npy}\n", "frame 1 is f32 [1, 1] where f32 [30, 40] is expected" },
    };
    const char *dir = pipe_dir();
    bool rows = strstr(cases[_i].stages, "rows.npy");
    float v[24];
    char all[GP_NPY_HEADER_MAX + sizeof v];
    put_files(dir);
    for (int i = 0; i < 24; i++)
        v[i] = (float)i;
    pipe_file(dir, "row-0.raw", v, 4 * 11);
    pipe_file(dir, "row-1.raw", v + 11, 4);
    pipe_file(dir, "row-2.raw", v + 12, 4 * 12);
    size_t head = gp_npy_header(&(gp_type){ GP_F32, 1, { 24 } }, all, GP_NPY_HEADER_MAX);
    memcpy(all + head, v, sizeof v);
    pipe_file(dir, "rows.npy", all, head + sizeof v);
    if (strstr(cases[_i].stages, "wide.npy"))
        put_wide(dir);
    char *yaml = format("buffers: {x: {dtype: f32, shape: %s}}\nstages:\n"
        "  - {use: read, path: \"%s\", out: x}\n%s", cases[_i].shape, rows ? "row-*.raw" : "in-*.npy", cases[_i].stages);
    pipe_result r = pipe_run(dir, yaml, on, NULL, (gp_run_options){ 0 });
    if (cases[_i].wrong) {
        ck_assert_msg(r.errs.n && strstr(r.errs.e[0].msg, cases[_i].wrong), "%s", r.errs.n ? r.errs.e[0].msg : yaml);
        ck_assert_int_eq(r.errs.e[0].code, GP_E_MISMATCH);
    } else {
        pipe_no_errors(&r, yaml);
    }
}

/* What is declared with one shape may be regrouped, and be read beside what is not. */
TEST_THIN(regrouped, KNOBS, 14)
{
    const char *dir = pipe_dir();
    size_t n;
    put_files(dir);
    char *yaml = format("%sbuffers: {x: {dtype: f32, shape: [\"<=30\", \"<=40\"]}, y: {dtype: f32, shape: [4]}}\n"
        "stages:\n  - {use: read, path: \"in-*.npy\", out: x}\n  - {use: lua, script: sum.lua, in: x, out: y}\n"
        "  - {use: group, frames: 3}\n  - {use: write, path: out.raw, durable: none}\n", knobs[_i]);
    pipe_done(dir, yaml, on, NULL, (gp_run_options){ 0 });
    OWNED float *out = (float *)pipe_read(dir, "out.raw", &n);
    ck_assert_msg(out && n == sizeof(float) * 4 * FILES, "%zu bytes", n);
    for (int i = 0; i < FILES; i++)
        ck_assert_msg(out[4 * i + 1] == (float)sizes[i][0] && out[4 * i + 2] == (float)sizes[i][1]
                      && out[4 * i + 3] == (float)(sizes[i][0] * sizes[i][1]), "frame %d", i);
}

/* A kernel that goes through one by the size of the other would read what is in its slot beyond it. */
TEST_THIN(two_shapes, KNOBS, 14)
{
    const char *dir = pipe_dir();
    put_files(dir);
    pipe_text(dir, "one.lua", "function process(frame, x, y) y.shape = {1, 1} y[1] = x[1] end\n");
    char *yaml = format("%sbuffers: {x: {dtype: f32, shape: [\"<=30\", \"<=40\"]}, y: {like: x}, z: {like: x}}\n"
        "stages:\n  - {use: read, path: \"in-*.npy\", out: x}\n  - {use: lua, script: one.lua, in: x, out: y}\n"
        "  - {use: kernel, source: k.cu, entry: mean, in: {a: x, b: y}, out: {o: z}, threads: o.size, args: [a, b, o, {i32: a.size}]}\n"
        "  - {use: write, path: \"%%n.raw\", durable: none}\n", knobs[_i]);
    pipe_result r = pipe_run(dir, yaml, on, NULL, (gp_run_options){ 0 });
    pipe_ends(&r, "stage 'kernel': input 'a' is f32 [30, 40] in one frame, and 'b', which has the same "
                  "bounds, is f32 [1, 1]");
}

/* The bounds that inputs a and b have in common; false: they are of two types, or have one shape, or `kind` takes none of
 * fewer matrices than declared for all. */
static bool in_common(const char *kind, const gp_type *a, const gp_type *b, gp_type *most)
{
    bool product = !strcmp(kind, "matmul"), ok = a->dtype == b->dtype && a->ndim == b->ndim && !gp_type_same(a, b);
    int last = a->ndim - 1;
    *most = *a;
    for (int k = 0; ok && k <= last; k++) {
        most->dim[k] = a->dim[k] > b->dim[k] ? a->dim[k] : b->dim[k];
        ok = k > last - 2 || !product || a->dim[k] == b->dim[k];
    }
    if (product && last > 0)
        most->dim[last] = most->dim[last - 1] = most->dim[last] > most->dim[last - 1] ? most->dim[last] : most->dim[last - 1];
    return ok;
}

static void put_array(const char *dir, const char *name, const array *a)
{
    size_t bytes = gp_bytes(&a->type);
    OWNED char *all = malloc(GP_NPY_HEADER_MAX + bytes);
    size_t head = gp_npy_header(&a->type, all, GP_NPY_HEADER_MAX);
    memcpy(all + head, a->data, bytes);
    pipe_file(dir, name, all, head + bytes);
}

/* Runs a case of cases.txt, its first two inputs within bounds that they have in common; false: there are none. */
static bool within_bounds(char *const *field)
{
    char kind[40], path[300], yaml[3000], buffers[600] = "", reads[300] = "", name[20];
    array in[4], want, got;
    int n = 0;
    gp_type most;
    sscanf(field[0], "%39s", kind);
    for (char *save = NULL, *of; n < 4 && (of = strtok_r(n ? NULL : field[2], ", ", &save)); n++) {
        snprintf(path, sizeof path, "tests/ref/%s.npy", of);
        in[n] = array_load(path);
    }
    /* what `linear` adds has the shape of what it makes, which is not bounded so */
    bool ok = n < 4 && in_common(kind, &in[0].type, &in[1].type, &most);
    if (ok) {
        const char *dir = pipe_dir();
        for (int i = 0; i < n; i++) {
            const gp_type *t = i < 2 ? &most : &in[i].type;
            size_t b = strlen(buffers), r = strlen(reads);
            b += (size_t)snprintf(buffers + b, sizeof buffers - b, "%sx%d: {dtype: %s, shape: [", i ? ", " : "", i,
                                  gp_dtype_name(t->dtype));
            for (int k = 0; k < t->ndim; k++)
                b += (size_t)snprintf(buffers + b, sizeof buffers - b, "%s\"<=%d\"", k ? ", " : "", (int)t->dim[k]);
            snprintf(buffers + b, sizeof buffers - b, "]}");
            snprintf(reads + r, sizeof reads - r, "  - {use: read, path: \"x%d-%%d.npy\", out: x%d, in: []}\n", i, i);
            snprintf(name, sizeof name, "x%d-0.npy", i);
            put_array(dir, name, &in[i]);
        }
        snprintf(yaml, sizeof yaml, "buffers: {%s}\nstages:\n%s  - {use: %s, in: [x0, x1%s]%s%s}\n"
                 "  - {use: write, path: \"o%%d.npy\", durable: none}\n", buffers, reads, kind, n > 2 ? ", x2" : "",
                 strstr(field[1], "{}") ? "" : ", ", strstr(field[1], "{}") ? "" : field[1]);
        pipe_result run = pipe_run(dir, yaml, on, NULL, (gp_run_options){ 0 });
        pipe_no_errors(&run, yaml);
        snprintf(path, sizeof path, "%s/o0.npy", dir);
        got = array_load(path);
        sscanf(field[3], "%19s", name);
        snprintf(path, sizeof path, "tests/ref/%s.npy", name);
        want = array_load(path);
        const char *differs = array_differs(&got, &want, atof(field[4]));
        ck_assert_msg(!*differs, "%s: %s\n%s", path, differs, yaml);
        array_free(&got), array_free(&want);
    }
    while (n--)
        array_free(&in[n]);
    return ok;
}

/* What references have of two inputs of different shapes comes out, too, where both are declared with the same bounds. */
TEST(one_bound)
{
    char line[2000];
    int tried = 0;
    FILE *list = fopen("tests/ref/cases.txt", "r");
    ck_assert(list != NULL);
    while (fgets(line, sizeof line, list)) {
        char *field[5] = { 0 }, *save = NULL;
        for (int k = 0; k < 5 && (field[k] = strtok_r(k ? NULL : line, "|", &save)); k++)
            field[k] += *field[k] == ' ';
        if (field[4] && strchr(field[2], ',') && *line != '#')
            tried += within_bounds(field);
    }
    fclose(list);
    ck_assert_int_gt(tried, 50);
}

static float element(int64_t i)
{
    return (float)i + 1.5f;
}

/* An expression finds each input along its own axes; where they share one, they have to fit. */
TEST_THIN(two_lengths, KNOBS, 14)
{
    static const int rows[] = { 3, 5, 8 }, columns[] = { 4, 2, 8 };
    const char *dir = pipe_dir();
    char name[20];
    size_t n;
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "r%d.npy", i);
        pipe_npy(dir, name, rows[i], 0, element);
        snprintf(name, sizeof name, "c%d.npy", i);
        pipe_npy(dir, name, columns[i], 0, element);
    }
    for (int sum = 0; sum < 2; sum++) {
        char *yaml = format("%sbuffers: {r: {dtype: f32, shape: [\"<=8\"]}, c: {dtype: f32, shape: [\"<=8\"]}}\nstages:\n"
                 "  - {use: read, path: \"r*.npy\", out: r}\n  - {use: read, path: \"c*.npy\", out: c}\n"
                 "  - {use: scale, a: 2, in: r, out: h}\n  - {use: expr, in: {r: h, c: c}, expr: %s, out: y}\n"
                 "  - {use: write, path: \"o%%05d.raw\", format: raw, durable: none}\n", knobs[_i],
                 sum ? "r + c" : "\"r[i0] * c[i1]\"");
        pipe_result r = pipe_run(dir, yaml, on, NULL, (gp_run_options){ 0 });
        if (sum) {
            pipe_ends(&r, "in one frame: what is shorter there than declared does not broadcast");
            continue;
        }
        pipe_no_errors(&r, yaml);
        for (int i = 0; i < 3; i++) {
            snprintf(name, sizeof name, "o%05d.raw", i);
            OWNED float *o = (float *)pipe_read(dir, name, &n);
            ck_assert_msg(o && n == sizeof *o * (size_t)(rows[i] * columns[i]), "frame %d: %zu bytes", i, n);
            for (int k = 0; k < rows[i] * columns[i]; k++)
                ck_assert(o[k] == 2 * element(k / columns[i]) * element(k % columns[i]));
        }
    }
}

/* Each raw file is a frame of as many rows as it has; and what is not as declared is told by the file's name. */
TEST_THIN(raw_files, 4, 14)
{
    static const struct { const char *shape; size_t bytes; const char *wrong; } cases[] = {
        { "[\"<=10\", 3]", 120, NULL }, { "[\"<=10\", 3]", 36, NULL },
        { "[\"<=10\", 3]", 132, "frame 1: '" }, { "[\"<=10\", 3]", 40, "has 4 bytes after its last whole row" },
    };
    const char *dir = pipe_dir();
    char yaml[1000], data[200] = "abcdefghijklmnopqrstuvwxyz";
    size_t n;
    pipe_file(dir, "in-a.raw", data, 24);
    pipe_file(dir, "in-b.raw", data, cases[_i].bytes);
    snprintf(yaml, sizeof yaml, "buffers: {x: {dtype: f32, shape: %s}}\nstages:\n  - {use: read, path: \"in-*.raw\", out: x}\n"
             "  - {use: write, path: \"out/%%n.raw\", durable: none}\n", cases[_i].shape);
    pipe_result r = pipe_run(dir, yaml, on, NULL, (gp_run_options){ 0 });
    if (cases[_i].wrong) {
        ck_assert(r.outcome == GP_ERROR && r.errs.n);
        ck_assert_msg(strstr(r.errs.e[0].msg, cases[_i].wrong) && strstr(r.errs.e[0].msg, "in-b.raw"), "%s", r.errs.e[0].msg);
    } else {
        pipe_no_errors(&r, yaml);
        OWNED char *out = pipe_read(dir, "out/in-b.raw", &n);
        ck_assert(out && n == cases[_i].bytes && !memcmp(out, data, n));
    }
}

/* A script's frame of a shape that its buffer does not have is told, and is no frame. */
TEST_THIN(wrong_shapes, 7, 14)
{
    static const struct { const char *shape, *made, *wrong; } cases[] = {
        { "[4, 4]", "{2, 3}", "made 'out' of frame 0 f32 [2, 3], which does not fit in f32 [4, 4]" },
        { "[\"<=4\", 4]", "{2, 3}", "made 'out' of frame 0 f32 [2, 3], which does not fit in f32 [<=4, 4]" },
        { "[\"<=4\", \"<=4\"]", "{2, 5}", "a size of the shape 5 is outside 1..4" },
        { "[\"<=4\", \"<=4\"]", "{2}", "the shape of 'out' is a list of 2 numbers" },
        { "[4, 4]", "{2, 4}", NULL }, { "[\"<=4\", 4]", "{0, 4}", NULL }, { "[4, \"<=4\"]", "{4, 1}", NULL },
    };
    const char *dir = pipe_dir();
    char *script = format("function produce(frame, y)\n  if frame.index > 2 then return false end\n"
                          "  y.shape = %s\n  y:fill(1)\nend\n", cases[_i].made);
    pipe_text(dir, "s.lua", script);
    char *yaml = format("buffers: {y: {dtype: f32, shape: %s}}\nstages:\n  - {use: lua, script: s.lua, out: y}\n"
                        "  - {use: write, path: \"out/%%d.npy\", durable: none}\n", cases[_i].shape);
    pipe_result r = pipe_run(dir, yaml, on, NULL, (gp_run_options){ 0 });
    pipe_ends(&r, cases[_i].wrong);
}

CASES_SUITE(varies, NULL, NULL, 0, cases_every(17, 3, 3))
