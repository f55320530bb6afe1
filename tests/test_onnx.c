/* test_onnx.c - models: by ONNX Runtime, where it is there, beside what the package onnx computes
 * (tests/data/make_onnx.py); by a library in its place (onnx_fake.c), whose calls fail when they are told to; what is
 * declared of it beside its header, where that is there. */
#include <stddef.h>
#include "base/npy.h"
#include "onnx_fake.h"
#include "onnx_model.h"
#include "pipe.h"

/* ---- what is declared ------------------------------------------------ */

#if defined __has_include
#if __has_include(<onnxruntime_c_api.h>)
#include <onnxruntime_c_api.h>

#define X(name, place, theirs, result, parameters) \
    _Static_assert(offsetof(OrtApi, theirs) == (place) * sizeof(void *), #theirs);
GP_ORT_CALLS(X)
#if ORT_API_VERSION >= 23
GP_ORT_GPU_CALLS(X)
#endif
#undef X
_Static_assert(ORT_LOGGING_LEVEL_FATAL == (int)GP_ORT_FATAL && ORT_ENABLE_BASIC == (int)GP_ORT_BASIC
               && ORT_ENABLE_ALL == (int)GP_ORT_OPTIMIZED && OrtDeviceAllocator == (int)GP_ORT_PLAIN_MEMORY
               && OrtMemTypeDefault == (int)GP_ORT_MEMORY, "what is asked for");
_Static_assert(ONNX_TYPE_TENSOR == (int)GP_ORT_TENSOR && ONNX_TYPE_SEQUENCE == (int)GP_ORT_SEQUENCE
               && ONNX_TYPE_MAP == (int)GP_ORT_MAP && ONNX_TYPE_OPAQUE == (int)GP_ORT_OPAQUE
               && ONNX_TYPE_SPARSETENSOR == (int)GP_ORT_SPARSE && ONNX_TYPE_OPTIONAL == (int)GP_ORT_OPTIONAL, "kinds");
#define SAME(theirs, mine) _Static_assert(ONNX_TENSOR_ELEMENT_DATA_TYPE_##theirs == (int)GP_ORT_##mine, #theirs);
SAME(FLOAT, F32) SAME(UINT8, U8) SAME(INT8, I8) SAME(UINT16, U16) SAME(INT16, I16) SAME(INT32, I32) SAME(INT64, I64)
SAME(STRING, STRING) SAME(BOOL, BOOL) SAME(FLOAT16, F16) SAME(DOUBLE, F64) SAME(UINT32, U32) SAME(UINT64, U64)
#undef SAME
#endif
#endif

/* ---- pipelines ------------------------------------------------------- */

static const char *dir, *data;             /* of this test; of the models */
static char data_path[400], *fake_path, real_path[400];
static onnx_fake *fake;

static void set_up(void)
{
    fake_path = suite_beside("onnx_fake.so"), fake = suite_fake("onnx_fake");
    *fake = (onnx_fake){ .version = "1.23.0", .newest = 23, .says = "told to" };
    ck_assert_ptr_nonnull(getcwd(data_path, sizeof data_path - 20));
    data = strcat(data_path, "/tests/data/onnx");
    dir = pipe_dir();
    snprintf(real_path, sizeof real_path, "%s", getenv("GPIPE_ONNXRUNTIME") ? getenv("GPIPE_ONNXRUNTIME") : "");
}

static void use(const char *library)
{
    setenv("GPIPE_ONNXRUNTIME", library, 1);
}

static void tear_down(void)
{
    use(real_path);
}

/* Without ONNX Runtime its tests pass, and one of them says so. */
static bool is_there(void)
{
    gp_ort l;
    gp_errs errs = { .n = 0 };
    return gp_ort_open(&l, (gp_loc){ 0 }, &errs);
}

TEST(is_tested)
{
    gp_ort l;
    gp_errs errs = { .n = 0 };
    if (!gp_ort_open(&l, (gp_loc){ 0 }, &errs))
        printf("onnx: SKIPPED what needs ONNX Runtime: %s\n", errs.e[0].msg);
    else
        printf("onnx: with ONNX Runtime %s\n", l.version);
    fflush(stdout);
}

static pipe_result run(const char *yaml)
{
    return pipe_run(dir, yaml, "cpu", NULL, (gp_run_options){ 0 });
}

/* The file in the test's folder has the elements of the array `ref`. */
static void same(const char *name, const char *ref, const char *what)
{
    size_t n, m, x, y;
    gp_type a, b;
    bool fortran;
    char why[160];
    OWNED char *is = pipe_read(dir, name, &n), *want = pipe_read(data, ref, &m);
    ck_assert_msg(is && want, "%s: no %s", what, is ? ref : name);
    ck_assert(gp_npy_parse(is, n, &a, &x, &fortran, why) && gp_npy_parse(want, m, &b, &y, &fortran, why));
    ck_assert_msg(a.dtype == b.dtype && gp_bytes(&a) == gp_bytes(&b) && !memcmp(is + x, want + y, gp_bytes(&a)),
                  "%s: not %s", what, ref);
}

/* A pipeline in which frames of this shape, of the model's arrays, go through it; ports are named, up to a NULL. */
static const char *through(const char *knob, const char *model, const char *shape, const char *const *in,
                           const char *const *out, const char *stage)
{
    const char *buffers = "", *reads = "", *ins = "", *outs = "", *writes = "";
    for (int i = 0; in[i]; i++) {
        buffers = format("%s%sb_%s: {shape: %s}", buffers, i ? ", " : "", in[i], shape);
        reads = format("%s  - {use: read, path: \"%s/%s_%s.npy\", out: b_%s}\n", reads, data, model, in[i], in[i]);
        ins = format("%s%s%s: b_%s", ins, i ? ", " : "", in[i], in[i]);
    }
    for (int i = 0; out[i]; i++) {
        outs = format("%s%s%s: o_%s", outs, i ? ", " : "", out[i], out[i]);
        writes = format("%s  - {use: write, in: o_%s, path: out_%s.npy, if_exists: replace}\n", writes, out[i], out[i]);
    }
    return format("%sbuffers: {%s}\nstages:\n%s  - {use: onnx, model: \"%s/%s.onnx\", in: {%s}, out: {%s}%s}\n%s",
                  knob, buffers, reads, data, model, ins, outs, stage, writes);
}

static void compare(const char *knob, const char *model, const char *shape, const char *const *in,
                    const char *const *out, const char *stage)
{
    const char *yaml = through(knob, model, shape, in, out, stage);
    pipe_result r = run(yaml);
    pipe_no_errors(&r, yaml);
    for (int i = 0; out[i]; i++)
        same(format("out_%s.npy", out[i]), format("%s_%s.npy", model, out[i]), yaml);
}

#define NAMES(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define TYPES(end) "f32" end, "u8" end, "i8" end, "u16" end, "i16" end, "i32" end, "i64" end, "f16" end, "f64" end, \
                   "u32" end, "u64" end

static const char *const knobs[] = { "", "depth: 1\n", "depth: 7\n", "depth: 130\n" };
static const char *const stages[] = { "", ", workers: 3", ", threads: 2", ", provider: cpu" };

/* A partial frame is the last batch; a frame of one row each; all in one. */
TEST_LOOP(as_the_reference, 0, 16)
{
    const char *knob = knobs[_i % 4], *stage = stages[_i / 4];
    if (!is_there())
        return;
    static const char *const rows[] = { "[1, 4]", "[2, 4]", "[5, 4]" };
    for (int i = 0; i < 3; i++) {
        compare(knob, "layer", rows[i], NAMES("x"), NAMES("y"), stage);
        compare(knob, "pair", rows[i], NAMES("a", "b"), NAMES("sum", "minus", "greater", "most"), stage);
        compare(knob, "pair", rows[i], NAMES("b", "a"), NAMES("most", "minus"), stage);
    }
    compare(knob, "total", "[5, 4]", NAMES("x"), NAMES("y"), stage);
    compare(knob, "halves", "[1, 1, 9, 14]", NAMES("photo"), NAMES("maps"), stage);
    compare(knob, "halves", "[2, 1, 9, 14]", NAMES("photo"), NAMES("maps"), stage);
    compare(knob, "types", "[3, 2, 3]", NAMES(TYPES("")), NAMES(TYPES("_out")), stage);
}

/* Outputs that are not known before have the size that is declared; a frame for which that is wrong fails. */
TEST(declared)
{
    static const struct { int size; const char *error; } is[] = {
        { 4, NULL }, { 3, "axis 1 of output 'y' has 4 elements, and 'buffers' declares 3" },
    };
    if (!is_there())
        return;
    for (int i = 0; i < 2; i++) {
        const char *yaml = format("buffers: {x: {dtype: f32, shape: [1, 4]}, y: {shape: [2, %d]}}\nstages:\n"
                                  "  - {use: generate, frames: 1, pattern: constant, value: 2, out: x}\n"
                                  "  - {use: onnx, model: \"%s/where.onnx\", in: x, out: y}\n"
                                  "  - {use: write, path: y.csv}\n", is[i].size, data);
        pipe_result r = run(yaml);
        pipe_ends(&r, is[i].error);
    }
}

/* How many elements are not 0 is another number for each frame: within the bounds it is the frame's size. */
TEST(bounded)
{
    static const struct { const char *x, *shape, *want; } is[] = {      /* [2, N]: the rows and columns of what is not 0 */
        { "0, 1, 0, 1", "[2, \"<=4\"]", "0 0\n1 3\n" },
        { "1, 1, 1, 1", "[2, \"<=4\"]", "0 0 0 0\n0 1 2 3\n" },
        { "1, 1, 1, 1", "[2, \"<=3\"]", "axis 1 of output 'y' has 4 elements, and 'buffers' declares 1 to 3" },
        { "0, 0, 0, 0", "[2, \"<=4\"]", "axis 1 of output 'y' has 0 elements, and 'buffers' declares 1 to 4" },
    };
    if (!is_there())
        return;
    for (size_t i = 0; i < sizeof is / sizeof *is; i++) {
        pipe_text(dir, "x.lua", format("local x = {%s}\nfunction produce(f, y)\n  if f.index == 3 then return false end\n"
                                   "  for i = 1, 4 do y[i] = x[i] end\nend\n", is[i].x));
        pipe_text(dir, "y.lua", "function process(f, x, y)\n  for i = 1, 2 do\n    local t = {}\n"
                            "    for k = 1, x.shape[2] do t[k] = string.format('%d', x:at(i, k)) end\n"
                            "    y:print(table.concat(t, ' '))\n  end\nend\n");
        const char *yaml = format("buffers: {x: {dtype: f32, shape: [1, 4]}, y: {shape: %s}, t: {dtype: u8, shape: [99]}}\n"
                                  "stages:\n  - {use: lua, script: x.lua, out: x}\n"
                                  "  - {use: onnx, model: \"%s/where.onnx\", in: x, out: y}\n"
                                  "  - {name: t, use: lua, script: y.lua, in: y, out: t}\n"
                                  "  - {use: write, path: t.dat}\n", is[i].shape, data);
        pipe_result r = run(yaml);
        if (*is[i].want == 'a') {
            ck_assert_msg(r.outcome != GP_DONE && strstr(r.errs.e[0].msg, is[i].want), "%s", pipe_said(&r.errs));
            continue;
        }
        pipe_no_errors(&r, yaml);
        size_t n;
        OWNED char *text = pipe_read(dir, "t.dat", &n);
        const char *want = format("%s%s%s", is[i].want, is[i].want, is[i].want);
        ck_assert_msg(n == strlen(want) && !memcmp(text, want, n), "%.*s", (int)n, text);
    }
}

/* Any byte but 0 and 1 would be computed with in some way of the library's. */
TEST(truths)
{
    if (!is_there())
        return;
    for (int value = 0; value < 256; value = value < 2 ? value + 1 : 4 * value - 1) {
        const char *yaml = format("buffers: {x: {dtype: u8, shape: [3]}}\nstages:\n"
                                  "  - {use: generate, frames: 2, pattern: constant, value: %d, out: x}\n"
                                  "  - {use: onnx, model: \"%s/truths.onnx\"}\n"
                                  "  - {use: compare, in: {in: onnx, with: x}}\n", value, data);
        pipe_result r = run(yaml);
        if (value <= 1)
            pipe_no_errors(&r, yaml);
        else
            ck_assert_msg(r.outcome != GP_DONE && strstr(r.errs.e[0].msg, format("frame 0: ONNX Runtime cannot run '%s/"
                          "truths.onnx': input 'x' takes truths, 0 or 1, and element 0 is %d", data, value)), "%s",
                          pipe_said(&r.errs));
    }
}

/* What a provider for GPUs has in memory of the host: here it is as any other input and output. */
TEST(shapes)
{
    if (!is_there())
        return;
    const char *yaml = format("buffers: {x: {shape: [5, 4]}, s: {shape: [2]}, z: {shape: [10, 2]}}\nstages:\n"
                              "  - {use: read, path: \"%s/shapes_x.npy\", out: x}\n"
                              "  - {use: read, path: \"%s/shapes_s.npy\", out: s}\n"
                              "  - {use: onnx, model: \"%s/shapes.onnx\", in: {x: x, s: s}, out: {z: z, n: n}}\n"
                              "  - {use: write, in: z, path: out_z.npy}\n  - {use: write, in: n, path: out_n.npy}\n",
                              data, data, data);
    pipe_result r = run(yaml);
    pipe_no_errors(&r, yaml);
    same("out_z.npy", "shapes_z.npy", yaml);
    same("out_n.npy", "shapes_n.npy", yaml);
}

static float fourth(int64_t i)
{
    return (float)i / 4;
}

/* Frames that differ in shape, where outputs follow by the names of axes alone. */
TEST(of_many_shapes)
{
    if (!is_there())
        return;
    static const int sizes[][2] = { { 4, 6 }, { 1, 1 }, { 4, 1 }, { 2, 6 }, { 1, 5 }, { 3, 2 } };
    for (int i = 0; i < 6; i++)
        pipe_npy(dir, format("in_%d.npy", i), sizes[i][0], sizes[i][1], fourth);
    for (int k = 0; k < 4; k++) {
        const char *yaml = format("%sbuffers: {x: {dtype: f32, shape: [\"<=4\", \"<=6\"]}}\nstages:\n"
                                  "  - {use: read, path: \"in_*.npy\", out: x}\n  - {use: onnx, model: "
                                  "\"%s/turn.onnx\"%s}\n"
                                  "  - {use: write, path: \"%d/%%n.npy\"}\n", knobs[k], data, stages[k], k);
        pipe_result r = run(yaml);
        pipe_no_errors(&r, yaml);
        for (int i = 0; i < 6; i++) {
            size_t n, at;
            gp_type t;
            bool fortran;
            char why[160], *file = pipe_read(dir, format("%d/in_%d.npy", k, i), &n);
            ck_assert(file && gp_npy_parse(file, n, &t, &at, &fortran, why));
            ck_assert(t.ndim == 2 && t.dim[0] == sizes[i][1] && t.dim[1] == sizes[i][0]);
            for (int j = 0; j < sizes[i][0] * sizes[i][1]; j++) {
                float is;
                memcpy(&is, file + at + 4 * (size_t)j, 4);
                ck_assert_float_eq(is, fourth(j % sizes[i][0] * sizes[i][1] + j / sizes[i][0]));
            }
            free(file);
        }
    }
}

/* A frame without rows has none behind the model. */
TEST(no_rows)
{
    if (!is_there())
        return;
    pipe_text(dir, "odd.lua", "function process(frame, x, y)\n"
              "    if frame.index == 1 then frame.valid = 0 else y:copy(x) end\nend\n");
    const char *yaml = format("buffers: {x: {dtype: f32, shape: [2, 4]}, z: {like: x}}\nstages:\n"
                              "  - {use: read, path: \"%s/layer_x.npy\", out: x}\n"
                              "  - {use: lua, script: odd.lua, in: x, out: z}\n"
                              "  - {use: onnx, model: \"%s/layer.onnx\"}\n  - {use: write, path: y.npy}\n", data, data);
    pipe_result r = run(yaml);
    pipe_no_errors(&r, yaml);
    gp_type t = pipe_npy_type(dir, "y.npy");
    ck_assert(t.ndim == 2 && t.dim[0] == 3 && t.dim[1] == 3);
}

/* ---- errors ---------------------------------------------------------- */

#define X4 "buffers: {x: {dtype: f32, shape: [2, 4]}}\n"
static const struct { const char *buffers, *stage, *error; } refused[] = {
    { X4, "model: \"%s/none.onnx\"", "cannot read '%s/none.onnx': No such file" },
    { X4, "model: \"%s\"", "'%s' is a folder: name a file .onnx" },
    { X4, "model: \"%s/layer_x.npy\"", "cannot run '%s/layer_x.npy': " },
    { X4, "model: \"%s/custom.onnx\"", "cannot run '%s/custom.onnx': " },
    { X4, "model: \"%s/no_output.onnx\"", "model '%s/no_output.onnx' has no outputs" },
    { X4, "model: \"%s/no_input.onnx\"", "model '%s/no_input.onnx' has no inputs: let a Lua script be a source" },
    { X4, "model: \"%s/layer.onnx\", provider: cuda", "no GPU can compute the model: the pipeline runs on the CPU" },
    { X4, "model: \"%s/layer.onnx\", on: host", "'on' has no effect: stage 'onnx' runs where its options say" },
    { X4, "model: \"%s/layer.onnx\", in: {y: x}", "model '%s/layer.onnx' has no input 'y'" },
    { X4, "model: \"%s/layer.onnx\", out: {logits: z}", "model '%s/layer.onnx' has no output 'logits', but 'y': write "
                                                        "out: {y: BUFFER}" },
    { X4, "model: \"%s/pair.onnx\"", "model '%s/pair.onnx' has no input 'in', but 'a' and 'b': write in: {a: BUFFER}" },
    { X4, "model: \"%s/pair.onnx\", in: {a: x}, out: {sum: z}", "model '%s/pair.onnx' has 2 inputs, 'a' and 'b', and "
                                                                "1 is given" },
    { X4, "model: \"%s/strings.onnx\"", "input 'x' of model '%s/strings.onnx' holds strings" },
    { X4, "model: \"%s/strings_out.onnx\"", "output 'y' of model '%s/strings_out.onnx' holds strings" },
    { X4, "model: \"%s/truths.onnx\"", "model '%s/truths.onnx' takes u8 [N] as input 'x', and not f32 [2, 4]" },
    { X4, "model: \"%s/bfloat.onnx\"", "input 'x' of model '%s/bfloat.onnx' has elements of a type that gpipe does "
                                       "not have" },
    { X4, "model: \"%s/axes.onnx\"", "input 'x' of model '%s/axes.onnx' has more than 8 axes" },
    { X4, "model: \"%s/sequence.onnx\"", "output 'y' of model '%s/sequence.onnx' is a sequence" },
    { X4, "model: \"%s/where.onnx\"", "model '%s/where.onnx' does not tell the size of axis 1 of output 'y', i64 [2, "
                                      "?]: declare its shape under 'buffers'" },
    { X4, "model: \"%s/total.onnx\"", "model '%s/total.onnx' takes f32 [5, 4] as input 'x', and not f32 [2, 4]: put a "
                                      "'reshape'" },
    { X4, "model: \"%s/halves.onnx\"", "model '%s/halves.onnx' takes f32 [N, 1, H, W] as input 'photo', and not f32 "
                                       "[2, 4]: put a" },
    { "buffers: {x: {dtype: f32, shape: [\"<=2\", 1, \"<=9\", 14]}}\n", "model: \"%s/halves.onnx\"",
      "frames differ in shape, and model '%s/halves.onnx' does not tell how output 'maps', f32 [N, 2, H2, W2], "
      "follows" },
    { "buffers: {x: {dtype: f32, shape: [\"<=5\", 4]}}\n", "model: \"%s/total.onnx\"",
      "model '%s/total.onnx' takes f32 [5, 4] as input 'x', and frames may be shorter than f32 [5, 4] in axis 0" },
    { "buffers: {x: {dtype: u8, shape: [2, 4]}}\n", "model: \"%s/layer.onnx\"",
      "model '%s/layer.onnx' takes f32 [N, 4] as input 'x', and not u8 [2, 4]: put a 'cast' before it" },
    { "buffers: {x: {dtype: f32, shape: [4]}}\n", "model: \"%s/layer.onnx\"",
      "model '%s/layer.onnx' takes f32 [N, 4] as input 'x', and not f32 [4]: put a 'group' before it" },
    { "buffers: {x: {dtype: f32, shape: [2, 4]}, k: {const: one.npy}}\n", "model: \"%s/pair.onnx\", in: {a: x, b: k}, "
                                                                          "out: {sum: z}",
      "model '%s/pair.onnx' takes one size as 'N', and it is 2 in axis 0 of input 'a' and 1 in axis 0 of 'b'" },
};

static const char *one_stage(const char *buffers, const char *stage)
{
    return format("%sstages:\n  - {use: generate, frames: 3, out: x}\n  - {use: onnx, %s}\n  - {use: discard}\n",
                  buffers, stage);
}

TEST(what_is_refused)
{
    if (!is_there())
        return;
    pipe_npy(dir, "one.npy", 1, 4, fourth);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        const char *want = format(refused[i].error, data), *stage = format(refused[i].stage, data);
        pipe_result r = run(one_stage(refused[i].buffers, stage));
        ck_assert_msg(!r.compiled && strstr(r.errs.e[0].msg, want) && r.errs.e[0].at.line == 4, "%s: '%s', not '%s'",
                      stage, pipe_said(&r.errs), want);
    }
    pipe_result r = run(format("stages: [{use: onnx, model: \"%s/layer.onnx\", in: [], out: y}, {use: discard}]\n",
                               data));
    ck_assert_msg(!r.compiled && strstr(r.errs.e[0].msg, "a model needs an input; name one with 'in'"), "%s",
                  r.errs.e[0].msg);
}

/* A model of which the end is missing, wherever it is cut, is refused. */
TEST(truncated)
{
    size_t n;
    if (!is_there())
        return;
    OWNED char *whole = pipe_read(data, "layer.onnx", &n);
    for (size_t k = 0; k < n; k += 3) {
        pipe_file(dir, "cut.onnx", whole, k);
        pipe_result r = run(one_stage(X4, "model: cut.onnx"));
        ck_assert_msg(r.outcome != GP_DONE && r.errs.n, "%d of %d bytes", (int)k, (int)n);
    }
}

/* ---- the library ----------------------------------------------------- */

static void is_error(const char *stage, const char *want)
{
    pipe_result r = run(one_stage(X4, stage));
    ck_assert_msg(r.outcome != GP_DONE && strstr(r.errs.e[0].msg, want) && r.errs.e[0].at.line == 4,
                  "%s: '%s', not '%s'", stage, pipe_said(&r.errs), want);
}

TEST(libraries)
{
    pipe_text(dir, "m.onnx", "any");
    pipe_text(dir, "text.so", "no library");
    use("/nowhere/none.so");
    is_error("model: m.onnx", "a model needs /nowhere/none.so, which cannot be opened (");
    is_error("model: m.onnx", "set GPIPE_ONNXRUNTIME to the path");
    use(format("%s/text.so", dir));
    is_error("model: m.onnx", "text.so, which cannot be opened (");
    char other[400];
    strcpy(other, fake_path);
    strcpy(strrchr(other, '/') + 1, "nvjpeg_fake.so");
    use(other);
    is_error("model: m.onnx", "a model needs 'OrtGetApiBase', which");
    use(fake_path);
    fake->version = "1.18.1", fake->newest = 18;
    is_error("model: m.onnx", "is ONNX Runtime 1.18.1, and models need 1.19 or later");
    fake->version = "2.0.0";
    is_error("model: m.onnx", "is ONNX Runtime 2.0.0, which no longer has the functions of 1.19");
    fake->newest = 30;
    pipe_result r = run(one_stage(X4, "model: m.onnx"));
    pipe_no_errors(&r, "2.0.0");
}

/* Each call of the library fails, once in each place; then an error says so, and all that was made is released. */
TEST(calls_that_fail)
{
    static const char *const calls[] = {
#define X(name, place, theirs, result, parameters) #name,
        GP_ORT_CALLS(X)
#undef X
    };
    pipe_text(dir, "m.onnx", "any");
    const char *yaml = one_stage(X4, "model: m.onnx");
    use(fake_path);
    int can_fail = 0;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        for (int after = 0; after < 9; after++) {
            fake->fails = calls[i], fake->after = after;
            pipe_result r = run(yaml);
            bool all = r.outcome == GP_DONE;
            ck_assert_msg(all || strstr(r.errs.e[0].msg, "told to"), "%s: %s", calls[i], pipe_said(&r.errs));
            ck_assert_msg(!fake->live, "%s after %d: %d are left", calls[i], after, fake->live);
            can_fail += !all && !after;
            if (all)
                break;
        }
    ck_assert_int_eq(can_fail, 23);    /* all but status_text, what releases, and what the CPU does not need */
}

/* A frame that fails is dropped, where that is asked for; the text of the failure is cut, and has no lines. */
TEST(frames_that_fail)
{
    char says[3000];
    memset(says, 'a', sizeof says);
    strcpy(says + 2980, "z\nend\n");
    fake->fails = "run", fake->after = 2, fake->says = says;
    pipe_text(dir, "m.onnx", "any");
    use(fake_path);
    pipe_result r = run("buffers: {x: {dtype: f32, shape: [2, 4]}}\nstages:\n  - {use: generate, frames: 5, out: x}\n"
                        "  - {use: onnx, model: m.onnx, on_error: drop}\n  - {use: discard}\n");
    ck_assert_int_eq(r.outcome, GP_DONE);
    ck_assert_int_eq((int)r.account[0].in, 5);
    ck_assert_int_eq((int)r.account[0].failed, 3);
    ck_assert_msg(strstr(r.errs.e[0].msg, "frame 2: ONNX Runtime cannot run '") && strstr(r.errs.e[0].msg, "z end"),
                  "%s", r.errs.e[0].msg);
}

/* Files of a model's weights are read, too: what else would be overwritten. */
TEST(weights)
{
    use(fake_path);
    pipe_text(dir, "m.onnx", "j\n\n\x08location\x12\x06" "w0.binj\n\n\x08location\x12\x06" "w1.bin");
    pipe_text(dir, "w1.bin", "any");
    pipe_result r = run("buffers: {x: {dtype: f32, shape: [2, 4]}}\nstages:\n  - {use: generate, frames: 5, out: x}\n"
                        "  - {use: onnx, model: m.onnx}\n  - {use: write, path: w1.bin, format: raw}\n");
    ck_assert_msg(r.errs.n && strstr(r.errs.e[0].msg, "w1.bin', which stage 'onnx' reads"), "%s", r.errs.e[0].msg);
}

/* Tensors are made once for each slot, while there are not too many; and for a frame of another shape. */
TEST(tensors)
{
    static const struct { const char *knob; int most; } is[] = { { "depth: 1\n", 2 }, { "depth: 8\n", 20 } };
    pipe_text(dir, "m.onnx", "any");
    use(fake_path);
    for (int i = 0; i < 2; i++) {
        fake->tensors = 0;
        pipe_result r = run(format("%sbuffers: {x: {dtype: f32, shape: [2, 4]}}\nstages:\n  - {use: generate, frames: "
                                   "500, out: x}\n"
                                   "  - {use: onnx, model: m.onnx, threads: 3}\n  - {use: discard}\n", is[i].knob));
        pipe_no_errors(&r, is[i].knob);
        ck_assert_msg(fake->tensors > 0 && fake->tensors <= is[i].most, "%s: %d tensors", is[i].knob, fake->tensors);
        ck_assert_int_eq(fake->threads, 3);
        ck_assert_int_eq(fake->live, 0);
    }
}

/* While a run is paused its stage gets other workers. */
TEST(workers_change)
{
    static const char *const one[] = { "stages.onnx.workers=1", NULL }, *const three[] = { "stages.onnx.workers=3",
                                                                                           NULL };
    const char *const *const sets[] = { one, three, one };
    const unsigned long long at[] = { 300, 800 };
    int parts = 0;
    pipe_text(dir, "m.onnx", "any");
    use(fake_path);
    pipe_result r = pipe_run_paused(dir, "buffers: {x: {dtype: f32, shape: [2, 4]}}\nstages:\n"
                                    "  - {use: generate, frames: 4000, out: x}\n"
                                    "  - {use: onnx, model: m.onnx, out: y}\n"
                                    "  - {use: scale, a: 2, b: 0, in: x, out: z}\n  - {use: compare, in: [y, z]}\n",
                                    "cpu", sets, at, 2, (gp_run_options){ 0 }, &parts);
    pipe_no_errors(&r, "paused");
    ck_assert_int_eq(fake->live, 0);
    ck_assert_int_ge(parts, 2);
}

/* ---- on a GPU -------------------------------------------------------- */

/* The kind `onnx` as it is where a GPU and a library for it are: the memory of the CPU back end will do. */
static bool on_device(gp_shape *s)
{
    gp_onnx_opts *o = (gp_onnx_opts *)s->opts;
    o->by = o->provider == GP_ONNX_CPU ? GP_ONNX_CPU : GP_ONNX_CUDA;
    return o->by == GP_ONNX_CUDA;
}

extern const gp_kind gp_kind_onnx;

static void set_up_gpu(void)
{
    static gp_kind kind;
    set_up();
    use(fake_path);
    pipe_text(dir, "m.onnx", "any");
    fake->cuda = 1;
    kind = gp_kind_onnx, kind.name = "gonnx", kind.on_device = on_device;
    pipe_kinds(&kind, 1);
}

/* What a session is told, and where its memory lies. */
#define PROVIDER(device) "device_id=" device "; use_tf32=0; cudnn_conv_algo_search=HEURISTIC; " \
                         "arena_extend_strategy=kSameAsRequested; provider; "
#define SESSION(device) PROVIDER(device) "session; memory " device "; "

static const char *const gpu_knobs[] = {
    "", "depth: 1\n", "depth: 16\nstreams: 3\nbatch: 4\n", "depth: 12\nlaunch: stream\n", "depth: 8\nbatch: 1\n",
    "depth: 8\nlatency: 5ms\n",
};

TEST_CASE(gpu, set_up_gpu, tear_down, 0)

/* Each frame is computed, whole or with fewer rows, and none twice beyond the first, which is looked at; the model is
 * opened once, and not waited for. `workers` are for the host, where the same file may run. */
TEST_EACH(on_a_gpu, gpu_knobs)
{
    const char *yaml = format("%sbuffers: {raw: {dtype: f32, shape: [4, 4]}, x: {like: raw}}\nstages:\n"
                              "  - {use: generate, pattern: noise, frames: 41, out: raw}\n"
                              "  - {use: lua, script: few.lua, in: raw, out: x}\n"
                              "  - {use: scale, a: 3, b: 1, in: x, out: near}\n"
                              "  - {use: gonnx, model: m.onnx, in: near, out: far, workers: 3}\n"
                              "  - {use: scale, a: 6, b: 2, in: x, out: want}\n"
                              "  - {use: compare, in: [far, want]}\n", gpu_knobs[_i]);
    pipe_text(dir, "few.lua", "stateless = true\nfunction process(frame, x, y)\n  y:copy(x)\n"
              "  if frame.index % 5 == 3 then frame.valid = frame.index % 4 end\n"
              "  if frame.index == 17 then return \"drop\" end\nend\n");
    pipe_result r = run(yaml);
    pipe_no_errors(&r, yaml);
    ck_assert_int_ge(fake->runs, 38);          /* of 41 one is dropped, and two have no rows */
    ck_assert_int_le(fake->runs, 45);
    ck_assert_int_eq(fake->waits, 0);
    ck_assert_int_eq(fake->live, 0);
    ck_assert_str_eq(fake->log, SESSION("0"));
}

/* On each of several devices there is a session, and frames take turns. */
TEST(on_several)
{
    const char *sets[] = { "device=[cpu:0, cpu:1]", NULL };
    const char *yaml = "buffers: {x: {dtype: f32, shape: [4, 4]}}\nstages:\n"
                       "  - {use: generate, pattern: noise, frames: 60, out: x}\n"
                       "  - {use: gonnx, model: m.onnx, in: x, out: y}\n"
                       "  - {use: scale, a: 2, b: 0, in: x, out: z}\n  - {use: compare, in: [y, z]}\n";
    pipe_done(dir, yaml, "cpu", sets, (gp_run_options){ 0 });
    ck_assert_str_eq(fake->log, SESSION("0") SESSION("0"));    /* parts of the CPU have no numbers of CUDA's */
    ck_assert_int_eq(fake->live, 0);
}

#define FRAMES "stages:\n  - {use: generate, frames: 3, out: x}\n"
/* A run that goes on with other settings has its model anew on the device, where it has to stay. */
TEST_LOOP(goes_on, 0, 2)
{
    static const char *const on_gpu[] = { "depth=6", NULL }, *const deeper[] = { "depth=12", NULL },
                            *const on_cpu[] = { "stages.gonnx.provider=cpu", NULL };
    const char *const *const sets[][3] = { { on_gpu, deeper, on_gpu }, { on_gpu, on_cpu, on_gpu } };
    const unsigned long long at[] = { 300, 800 };
    int parts;
    pipe_result r = pipe_run_paused(dir, "buffers: {x: {dtype: f32, shape: [2, 4]}}\nstages:\n"
                                    "  - {use: generate, frames: 4000, out: x}\n"
                                    "  - {use: gonnx, model: m.onnx, in: x, out: y}\n"
                                    "  - {use: scale, a: 2, b: 0, in: x, out: z}\n  - {use: compare, in: [y, z]}\n",
                                    "cpu", sets[_i], at, 2, (gp_run_options){ 0 }, &parts);
    if (_i)
        ck_assert_msg(r.outcome == GP_ERROR && strstr(r.errs.e[0].msg, "'gonnx' is not at this place in the run"),
                      "%s", pipe_said(&r.errs));
    else
        pipe_no_errors(&r, "paused");
    ck_assert_int_ge(parts, 2 - _i);
    ck_assert_int_eq(fake->live, 0);
}

static const char gpu_stage[] = FRAMES "  - {use: gonnx, model: m.onnx, in: x, out: y}\n  - {use: discard}\n";

TEST(calls_that_fail_on_a_gpu)
{
    static const char *const calls[] = { "create_cuda", "set_cuda", "append_cuda", "create_session", "create_memory",
                                         "create_run", "set_run", "create_tensor", "run", "memory_in", "memory_out",
                                         "memory_name", "name_in", "name_out", "count_in", "count_out", "free_name" };
    const char *yaml = format("%s%s", X4, gpu_stage);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        for (int after = 0, all = 0; !all && after < 12; after++) {
            fake->fails = calls[i], fake->after = after;
            pipe_result r = run(yaml);
            all = r.outcome == GP_DONE;
            ck_assert_msg(!all || after, "%s is not called", calls[i]);
            ck_assert_msg(all || (strstr(r.errs.e[0].msg, "told to") && r.errs.e[0].at.line == 4), "%s: %s", calls[i],
                          pipe_said(&r.errs));
            ck_assert_msg(!fake->live, "%s after %d: %d are left", calls[i], after, fake->live);
        }
}

/* The message names the model, the stage and the frame, and says what to do where memory is short. */
TEST(messages_of_a_gpu)
{
    static const struct { const char *fails, *says, *want; } is[] = {
        { "run", "bad shape", "stage 'gonnx': frame 2: ONNX Runtime cannot run '%s/m.onnx': bad shape" },
        { "run", "Failed to allocate memory for a buffer of size 64", "stage 'gonnx': frame 2: ONNX Runtime cannot run "
          "'%s/m.onnx': Failed to allocate memory for a buffer of size 64: lower a depth, or make smaller batches" },
        { "create_session", "no kernel", "stage 'gonnx': ONNX Runtime 1.23.0 cannot run '%s/m.onnx' on the GPU: no" },
    };
    for (size_t i = 0; i < sizeof is / sizeof *is; i++) {
        bool runs = !strcmp(is[i].fails, "run");
        const char *want = format(is[i].want, dir);
        fake->fails = is[i].fails, fake->says = is[i].says, fake->after = runs ? 2 : 1;    /* to look at it */
        pipe_result r = run(format("depth: 1\n%s%s", X4, gpu_stage));
        ck_assert_msg(r.outcome != GP_DONE && strstr(r.errs.e[0].msg, want), "'%s', not '%s'",
                      pipe_said(&r.errs), want);
    }
}

/* What a session on a GPU has in the memory of the host. */
TEST(ports_on_the_host)
{
    onnx_fake_port x = { .name = "x", .kind = GP_ORT_TENSOR, .element = GP_ORT_F32, .ndim = 2, .dim = { -1, 4 },
                         .symbol = { "N", "" } }, y = x;
    y.name = "y", fake->in = &x, fake->out = &y, fake->nin = fake->nout = 1;
    pipe_result r = run(format("%s%s", X4, gpu_stage));
    pipe_no_errors(&r, "none");
    for (int is_input = 0; is_input < 2; is_input++) {
        x.host = is_input, y.host = !is_input;
        const char *want = format("stage 'gonnx': ONNX Runtime 1.23.0 cannot run '%s/m.onnx' on the GPU: it has %s in the "
                                  "memory of the host, as a shape is, and frames lie in that of the GPU: set 'provider: "
                                  "cpu'", dir, is_input ? "input 'x'" : "output 'y'");
        r = run(format("%s%s", X4, gpu_stage));
        ck_assert_msg(r.outcome != GP_DONE && r.errs.e[0].at.line == 4 && !strcmp(r.errs.e[0].msg, want), "'%s', not '%s'",
                      pipe_said(&r.errs), want);
        ck_assert_int_eq(fake->live, 0);
    }
}

#define LOOP(kind) "  - {use: loop, in: {u: x}, out: {v: y}, times: 3, carry: {u: v}, stages: [{use: " kind ", " \
                   "model: m.onnx, in: u, out: v}]}\n  - {use: discard}\n"

TEST(refused_on_a_gpu)
{
    static const struct { const char *top, *stages, *want; } is[] = {
        { "launch: persistent\n", gpu_stage, "stage 'gonnx' calls a library, which 'launch: persistent' does not" },
        { "", FRAMES "  - {use: gonnx, model: m.onnx, in: x, out: y, on_error: drop}\n  - {use: discard}\n",
          "'on_error' has no effect: stage 'gonnx' runs on the device; for all stages write it" },
        { "", FRAMES LOOP("gonnx"), "stage 'gonnx' calls a library in a way that cannot be part of a graph, which no" },
        { "", FRAMES LOOP("onnx"), "stage 'onnx' runs on the host, which no stage of a loop may do" },
    };
    for (size_t i = 0; i < sizeof is / sizeof *is; i++) {
        pipe_result r = run(format("%s%s%s", is[i].top, X4, is[i].stages));
        ck_assert_msg(!r.compiled && strstr(r.errs.e[0].msg, is[i].want), "'%s', not '%s'",
                      pipe_said(&r.errs), is[i].want);
    }
}

/* Which provider there is. */
TEST(has_cuda)
{
    static const struct { int cuda; const char *fails, *why; } is[] = {
        { 1, NULL, NULL }, { 0, NULL, "ONNX Runtime 1.23.0 was built without CUDA" },
        { 1, "append_cuda", "does not load its provider for CUDA (told to; 'ldd libonnxruntime_providers_cuda.so'" },
        { 1, "create_cuda", "(told to; " }, { 1, "set_cuda", "(told to; " }, { 1, "create_env", "(told to; " },
        { 1, "create_options", "(told to; " }, { 1, "providers", "(told to; " },
        { 1, "release_providers", "(told to; " },
    };
    gp_ort l;
    gp_errs errs = { .n = 0 };
    char old[GP_WHY] = "";
    fake->version = "1.22.1", fake->newest = 22, fake->cuda = 1;
    ck_assert(gp_ort_open(&l, (gp_loc){ 0 }, &errs) && !gp_onnx_has_cuda(&l, 0, old));
    ck_assert_str_eq(old, "ONNX Runtime 1.22.1 is too old for a GPU, which takes 1.23 or later");
    fake->version = "1.23.0", fake->newest = 23;
    ck_assert(gp_ort_open(&l, (gp_loc){ 0 }, &errs));
    for (size_t i = 0; i < sizeof is / sizeof *is; i++) {
        char why[GP_WHY] = "";
        fake->cuda = is[i].cuda, fake->fails = is[i].fails, fake->after = 0;
        bool has = gp_onnx_has_cuda(&l, 0, why);
        ck_assert_msg(has == !is[i].why && (has || strstr(why, is[i].why)), "%d: '%s'", (int)i, why);
        ck_assert_int_eq(fake->live, 0);
    }
    use(real_path);
    if (!is_there() || !gp_ort_open(&l, (gp_loc){ 0 }, &errs))
        return;
    char why[GP_WHY] = "";                     /* pip's has none; another may */
    ck_assert_msg(gp_onnx_has_cuda(&l, 0, why) || strstr(why, "CUDA"), "'%s'", why);
}

/* The plan for a machine with a GPU, this one (`here`) or another. */
static const char *planned_for(bool here, const char *stage, gp_errs *errs)
{
    static char text[8000];
    gp_machine m;
    const char *yaml = format("%s" FRAMES "  - {use: onnx, model: \"%s/m.onnx\"%s}\n  - {use: discard}\n", X4, dir,
                              stage);
    gp_machine_fixed(&m, 1);
    m.here = here;
    *errs = (gp_errs){ .n = 0 };
    gp_pipeline *p = pipe_compile(".", yaml, (gp_config){ .machine = &m }, errs);
    FILE *f = fmemopen(text, sizeof text, "w");
    if (p)
        gp_dump_plan(f, gp_pipeline_plan(p), GP_DUMP_TEXT);
    fclose(f);
    gp_pipeline_destroy(p);
    return p ? text : NULL;
}

TEST(which_provider)
{
    static const struct { bool here; int cuda; const char *stage, *plan, *error; } is[] = {
        { true, 1, "", "ONNX Runtime 1.23.0, CUDA\n", NULL },
        { true, 1, "", "what 'onnx' calls cannot be part of a graph", NULL },
        { true, 1, ", provider: cuda", "no graphs", NULL },
        { true, 1, ", provider: cpu", "ONNX Runtime 1.23.0, on the CPU\n", NULL },
        { true, 0, "", "on the CPU, as it has no CUDA ('provider: cuda' says why)", NULL },
        { true, 0, ", workers: 3", "on the CPU, as it has no CUDA", NULL },
        { true, 1, ", workers: 3", "ONNX Runtime 1.23.0, CUDA\n", NULL },
        { true, 0, ", provider: cuda", NULL, "no GPU can compute the model: ONNX Runtime 1.23.0 was built without "
          "CUDA; install pip's onnxruntime-gpu, with the CUDA and cuDNN that it is for, and set GPIPE_ONNXRUNTIME" },
        { false, 0, "", "ONNX Runtime 1.23.0, CUDA\n", NULL },        /* another machine's is taken to have it */
    };
    for (size_t i = 0; i < sizeof is / sizeof *is; i++) {
        gp_errs errs;
        fake->cuda = is[i].cuda;
        const char *text = planned_for(is[i].here, is[i].stage, &errs);
        if (is[i].plan)
            ck_assert_msg(text && strstr(text, is[i].plan), "%d: no '%s' in\n%s", (int)i, is[i].plan,
                          text ? text : errs.e[0].msg);
        else
            ck_assert_msg(!text && strstr(errs.e[0].msg, is[i].error) && errs.e[0].at.line == 4, "%d: %s", (int)i,
                          text ? text : errs.e[0].msg);
        ck_assert_int_eq(fake->live, 0);
    }
}

TEST_SUITE(onnx, set_up, tear_down, 0)
