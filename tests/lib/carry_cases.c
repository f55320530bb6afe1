/* carry_cases.c - carried buffers: graphs against a model, what they begin with, holes, names and times, partial
 * frames, and a heat equation as NumPy computes it. */
#include <math.h>
#include <time.h>
#include "base/npy.h"
#include "cases.h"
#include "carry_graph.h"
enum { KNOBS = CASES_KNOBS };

/* One of them that goes on between runs: not that of kernels that stay. */
static const char *knob_that_goes(int i)
{
    return cases_knobs[(i % (KNOBS - 1) + CASES_PERSISTENT + 1) % KNOBS];
}

/* ---- graphs ---------------------------------------------------------- */

/* Graphs, and where it is not nan by how much what v has last after 50 frames of [1, 3] begins. x is 0, 3, 6, ... */
static const struct { const char *what, *words; double last; } graphs[] = {
    { "every stage, and nothing carried",
      "z = copy x; a = sum x z; b = lua diff a z; c = mean b x; d = lua hdiff c x; e = scale d; "
      "f = lua copy e; g = slow f; h = wide g; i = slide 3 h; j = lose 7 i; k = lua sum j x; l = fail 11 k; "
      "m = lua mean l x; n = lua scale m; o = hdiff n x; p = lua slow o; q = copy p; r = cap 400 q x; v = diff r x",
      NAN },
    { "a running sum", "v = sum x u; u : v", 3675 },
    { "the input that is carried comes first", "v = sum u x; u : v", 3675 },
    { "a running sum in a script", "v = lua sum x u; u : v", 3675 },
    { "two of one buffer, which begin otherwise", "a = sum x p; v = mean a q; p : v; q : v 7.5", NAN },
    { "two of one buffer, of which one goes on at holes", "l = lose 4 x; a = sum l p; v = mean a q; p : v; q : v splice", NAN },
    { "two of one buffer that agree", "l = lose 4 x; a = sum l p; v = mean a q; p : v 3 splice; q : v 3 splice", NAN },
    { "a script that reads the carried buffer first", "v = lua sum u x; u : v", 3675 },
    { "a script in the cycle", "s = sum x u; v = lua copy s; u : v", 3675 },
    { "a script in front of the sum", "s = lua copy u; v = sum x s; u : v", 3675 },
    { "half of what was", "s = scale u; v = sum x s; u : v 4", NAN },
    { "half of what was, all in scripts", "s = lua scale u; v = lua sum x s; u : v 4", NAN },
    { "through another type", "s = wide u; v = sum x s; u : v", 3675 },
    { "what it begins with", "v = sum x u; u : v 10", 3685 },
    { "what it begins with, from a file", "v = sum x u; u : v file", 3676 },
    { "a file, in scripts", "v = lua mean x u; u : v file", NAN },
    { "two in one cycle", "v = sum p q; s = copy x; w = hdiff x v; p : w 1; q : v", NAN },
    { "as Fibonacci's numbers", "s = hdiff x x2; x2 = copy x; t = sum p q; v = sum s t; p : v 1; q : p", NAN },
    { "one of a carried buffer", "v = diff x q; p : x; q : p", 6 },
    { "three of each other, in scripts and not", "v = diff x r; p : x; q : p 2; r : q 3 splice", 9 },
    { "the one of a carried buffer alone", "v = lua diff x q; p : x; q : p 5", 6 },
    { "a difference, and no cycle", "v = diff x u; u : x", 3 },
    { "a difference in a script", "v = lua diff x u; u : x", 3 },
    { "on the host and on the device", "v = sum x u; w = lua diff x u; u : v", 3675 },
    { "read by three, one behind the other",
      "v = sum x u; a = mean u v; b = lua mean a u; c = hdiff b u; u : v", 3675 },
    { "of what a script makes, for the device", "s = lua copy x; v = sum x u; w = mean v p; u : v; p : s", 3675 },
    { "beside a long branch",
      "v = sum x u; a = slow x; b = slow a; c = lua slow b; d = slow c; e = mean d v; u : v", 3675 },
    { "a long way in the cycle", "a = slow u; b = lua slow a; v = sum x b; w = copy x; u : v", 3675 },
    { "two cycles", "v = sum x u; w = lua sum x p; u : v; p : w 1", 3675 },
    { "a cycle behind a cycle", "s = sum x u; v = sum s p; u : s; p : v", 62475 },
    { "a cycle in a cycle", "s = mean x p; v = hdiff s u; p : s 2; u : v 3", NAN },
    { "two cycles with a stage in common", "s = mean p q; v = mean x s; w = lua hdiff v x; p : v; q : w", NAN },
    { "three stages", "a = mean x u; b = scale a; v = hdiff b x; u : v", NAN },
    { "three stages, one a script", "a = mean x u; b = lua scale a; v = hdiff b x; u : v 100", NAN },
    { "three scripts", "a = lua mean x u; b = lua scale a; v = lua hdiff b x; u : v 100", NAN },
    { "two sources", "v = mean x u; w = hdiff v y; u : w", NAN },
    { "of one source, read beside the other", "v = sum y u; w = copy x; u : x", 1291 },
    { "a window behind a cycle", "s = sum x u; v = slide 3 s; u : s", 3675 },
    { "a window of a carried buffer", "s = sum x u; w = slide 3 u; v = mean w x; u : s", 1837.5 },
    { "a window in a cycle", "w = slide 2 u; v = sum x w; u : v", NAN },
    { "a window in a cycle, that goes on", "w = slide 2 u; v = sum x w; u : v 5 splice", NAN },
    { "holes before the cycle", "s = lose 3 x; v = mean s u; u : v 8", NAN },
    { "holes before the cycle, and it goes on", "s = lose 3 x; v = sum s u; u : v 8 splice", NAN },
    { "holes only", "s = lose 1 x; v = mean s u; w = copy x; u : v", NAN },
    { "failures before the cycle", "s = fail 4 x; v = mean s u; u : v 8", NAN },
    { "failures before the cycle, and it goes on", "s = fail 4 x; v = sum s u; u : v file splice", NAN },
    { "holes in the cycle", "s = mean x u; v = lose 5 s; u : v 8", NAN },
    { "holes in the cycle, and it goes on", "s = mean x u; v = lose 5 s; u : v 8 splice", NAN },
    { "failures in the cycle", "s = mean x u; v = fail 5 s; w = copy v; u : w", NAN },
    { "failures in the cycle, and it goes on", "s = mean x u; v = fail 5 s; w = lua copy v; u : w splice", NAN },
    { "holes of what is carried only", "s = lose 3 u; v = mean x s; u : v 6", NAN },
    { "a hole by what was carried", "v = cap 50 x u; u : v", NAN },
    { "a hole by what was carried, and for ever", "v = cap 50 x u; w = copy x; u : v splice", NAN },
    { "the first frame is a hole", "s = lose 1 x; v = mean x u; w = mean x p; u : s 9; p : s 9 splice", NAN },
    { "a hole, by way of two", "s = lose 3 x; v = mean x q; p : s 4; q : p 7 splice", NAN },
    { "holes and failures",
      "s = lose 3 x; f = fail 4 x; v = mean s u; w = mean f p; a = mean v w; u : w splice; p : v", NAN },
    { "of fewer frames", "s = decimate 3 x; v = sum s u; w = copy x; u : v", NAN },
    { "of more frames", "s = hold 2 x; v = lua diff s u; u : s", NAN },
    { "as many frames again in the cycle", "d = decimate 2 u; h = hold 2 d; v = mean x h; u : v 3", NAN },
};
enum { GRAPHS = sizeof graphs / sizeof *graphs };

static void check_account(carry_graph *g, const pipe_result *r, const char *what)
{
    for (int i = 0; i < r->naccounts; i++) {
        gp_account x = r->account[i];
        ck_assert_msg(x.in == (uint64_t)g->frames && x.in == x.out + x.dropped + x.failed, "%d in, %d out, %d dropped, "
                      "%d failed of %s", (int)x.in, (int)x.out, (int)x.dropped, (int)x.failed, what);
    }
    if (r->naccounts > 1 || carry_regroups(g))
        return;
    gp_account x = r->account[0], is = carry_account(g);
    ck_assert_msg(x.out == is.out && x.dropped == is.dropped && x.failed == is.failed, "%d out, %d dropped, %d failed, "
                  "not %d, %d and %d, of %s", (int)x.out, (int)x.dropped, (int)x.failed, (int)is.out,
                  (int)is.dropped, (int)is.failed, what);
}

static void run_graph(const char *words, int frames, int rows, int knob, int seed)
{
    char yaml[12000];
    carry_graph g;
    carry_parse(&g, words, frames, rows);
    const char *dir = pipe_dir();
    char *what = format("%s (%d frames of %d rows, settings %d, seed %d; %s)", words, frames, rows, knob, seed, dir);
    carry_how how = { .knobs = "", .seed = seed };
    carry_yaml(&g, dir, &how, yaml, sizeof yaml);
    pipe_result r = cases_run(dir, yaml, knob);
    bool refused = r.errs.n && strstr(r.errs.e[0].msg, "' would make nothing: it takes ");
    ck_assert_msg(r.outcome == GP_DONE || (refused && frames < 3), "%s: %s", pipe_said(&r.errs), what);
    if (refused) {                     /* a window that so few frames never fill */
        pipe_dir_remove(dir);
        carry_free(&g);
        return;
    }
    carry_outputs(&g, dir, &how, what);
    check_account(&g, &r, what);
    pipe_dir_remove(dir);
    carry_free(&g);
}

TEST_THIN(graph, GRAPHS * KNOBS, 1)
{
    static const int frames[] = { 1, 2, 3, 50 };
    int c = _i / KNOBS;
    for (int i = 0; i < 4; i++)
        run_graph(graphs[c].words, frames[i], i == 3 && c % 2 ? 500 : 1 + i, _i % KNOBS, _i + i);
}

/* The model is right where one can tell without it. */
TEST(model_by_hand)
{
    int known = 0;
    for (int i = 0; i < GRAPHS; i++) {
        carry_graph g;
        carry_parse(&g, graphs[i].words, 50, 1);
        const carry_node *v = carry_find(&g, "v");
        bool there = graphs[i].last == graphs[i].last;
        if (there)
            ck_assert_msg(v->fate[49] == CARRY_OK && v->frame[49][0] == (float)graphs[i].last, "%s: %.9g",
                          graphs[i].what, v->fate[49] == CARRY_OK ? (double)v->frame[49][0] : -1);
        known += there;
        carry_free(&g);
    }
    ck_assert_int_gt(known, 20);
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
        pipe_dir_remove(dir);
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
    pipe_dir_remove(dir);
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

TEST_THIN(runs_again, 2, 1)
{
    char yaml[12000];
    carry_graph g;
    carry_how how = { .knobs = "", .seed = 1 };
    gp_outcome second = GP_ERROR;
    const char *dir = pipe_dir();
    carry_parse(&g, _i ? "v = sum x u; w = lua sum x p; u : v 4; p : w" : "v = sum x u; w = lua copy v; u : w file",
                20, 7);
    carry_yaml(&g, dir, &how, yaml, sizeof yaml);
    pipe_result r = pipe_run_then(dir, yaml, on, NULL, (gp_run_options){ 0 }, again, &second);
    pipe_no_errors(&r, g.words);
    ck_assert_int_eq(second, GP_DONE);
    carry_outputs(&g, dir, &how, g.words);
    pipe_dir_remove(dir);
    carry_free(&g);
}

/* ---- a source without end --------------------------------------------- */

static void stop_soon(gp_pipeline *p, void *arg)
{
    gp_account a = { .out = 0 };
    while (gp_accounts(p, &a, 1) < 1 || a.out < 100)      /* none: it is being set up */
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
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
    pipe_dir_remove(dir);
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
    pipe_dir_remove(dir);
    pipe_no_errors(&r, yaml);
    ck_assert_int_eq(r.outcome, GP_DONE);
    ck_assert_uint_eq(r.account[0].in, 50);
}

CASES_SUITE(carry, NULL, NULL, 0, cases_every(167, 23, 5))
