/* test_window.c - the key `window` of a stage does what a stage `window` before it does: the same bytes, and the same
 * becomes of each frame; on the CPU back end. */
#include "pipe.h"

/* Frames of [2, 3] that count up, in a file; scripts and kernels that are called below. */
enum { ROWS = 2, COLS = 3, SIZE = ROWS * COLS };

static const struct { const char *name, *text; } scripts[] = {
    { "copy.lua", "function process(frame, x, y) y:copy(x) end\n" },
    /* of each input: how many elements there are, and their sum by place */
    { "sum.lua", "stateless = true\nfunction process(frame, x, y)\n  local v = 0\n"
      "  for p, name in ipairs({'a', 'b'}) do\n    local w = x[name]\n    v = v + p * 1000 * #w\n"
      "    for i = 1, #w do v = v + p * i * w[i] end\n  end\n  for i = 1, #y do y[i] = v + i end\nend\n" },
    { "lose.lua", "function process(frame, x, y)\n"
      "  if frame.index % 4 == 1 then return 'drop' end\n  y:copy(x)\nend\n" },
    { "fail.lua", "function process(frame, x, y)\n  if frame.index % 5 == 3 then error('no') end\n  y:copy(x)\nend\n" },
};

#define SUM "block: 32, grid: 1, args: [a, {i32: a.size}, b, {i32: b.size}, out, {i32: out.size}], code: \"" \
    "extern \\\"C\\\" __global__ void kernel(const float *a, int na, const float *b, int nb, float *out, int n) " \
    "{ int k = threadIdx.x; if (k >= n) return; float v = 1000.0f * (float)na + 2000.0f * (float)nb; " \
    "for (int i = 0; i < na; i++) v += (float)(i + 1) * a[i]; " \
    "for (int i = 0; i < nb; i++) v += (float)(2 * (i + 1)) * b[i]; out[k] = v + (float)k; }\""
#define COPY "use: lua, script: copy.lua"
#define BOTH "use: lua, script: sum.lua"

/* Behind `read`, which makes x: stages with the key, and the same without it, before `write`; the frames that go in,
 * and out. */
static const struct { const char *what, *key, *stages; int frames, out; } cases[] = {
    { "a script", "  - {" COPY ", window: {in: 3}}\n", "  - {use: window, frames: 3}\n  - {" COPY "}\n", 12, 12 },
    { "whole ones", "  - {" COPY ", window: {in: {frames: 3, partial: drop}}}\n",
      "  - {use: window, frames: 3, partial: drop}\n  - {" COPY "}\n", 12, 10 },
    { "all that there are", "  - {" COPY ", window: {in: {frames: 3, partial: keep}}}\n",
      "  - {use: window, frames: 3}\n  - {" COPY "}\n", 12, 12 },
    { "of one", "  - {" COPY ", in: x, window: {in: 1}}\n", "  - {use: window, frames: 1}\n  - {" COPY "}\n", 12, 12 },
    { "of more than come", "  - {" COPY ", in: x, window: {in: 40}}\n",
      "  - {use: window, frames: 40}\n  - {" COPY "}\n", 12, 12 },
    { "no frames", "  - {" COPY ", window: {in: 3}}\n", "  - {use: window, frames: 3}\n  - {" COPY "}\n", 0, 0 },
    { "by a variable", "  - {" COPY ", window: {in: w * 2 + 1}}\n",
      "  - {use: window, frames: 5}\n  - {" COPY "}\n", 12, 12 },
    { "two inputs", "  - {" BOTH ", in: {a: x, b: x}, out: y, window: {a: 3, b: 5}}\n",
      "  - {use: window, in: x, frames: 3, out: p}\n  - {use: window, in: x, frames: 5, out: q}\n"
      "  - {" BOTH ", in: {a: p, b: q}, out: y}\n", 12, 12 },
    { "two inputs of one window", "  - {" BOTH ", in: {a: x, b: x}, out: y, window: {a: 4, b: 4}}\n",
      "  - {use: window, in: x, frames: 4, out: p}\n  - {" BOTH ", in: {a: p, b: p}, out: y}\n", 12, 12 },
    { "one of two inputs, and several workers",
      "  - {" BOTH ", in: {a: x, b: x}, out: y, workers: 2, window: {b: 5}}\n",
      "  - {use: window, in: x, frames: 5, out: q}\n  - {" BOTH ", in: {a: x, b: q}, out: y, workers: 2}\n", 12, 12 },
    { "whole at one input, and not at the other",
      "  - {" BOTH ", in: {a: x, b: x}, out: y, window: {a: 4, b: {frames: 4, partial: drop}}}\n",
      "  - {use: window, in: x, frames: 4, out: p}\n  - {use: window, in: x, frames: 4, out: q, partial: drop}\n"
      "  - {" BOTH ", in: {a: p, b: q}, out: y}\n", 12, 9 },
    { "holes", "  - {use: lua, script: lose.lua, out: z}\n  - {" COPY ", window: {in: 3}}\n",
      "  - {use: lua, script: lose.lua, out: z}\n  - {use: window, frames: 3}\n  - {" COPY "}\n", 12, 9 },
    { "holes, and whole ones", "  - {use: lua, script: lose.lua, out: z}\n"
      "  - {" COPY ", window: {in: {frames: 3, partial: drop}}}\n",
      "  - {use: lua, script: lose.lua, out: z}\n  - {use: window, frames: 3, partial: drop}\n  - {" COPY "}\n",
      12, 2 },
    { "holes beside all", "  - {use: lua, script: lose.lua, out: z}\n"
      "  - {" BOTH ", in: {a: x, b: z}, out: y, window: {a: 3, b: 2}}\n",
      "  - {use: lua, script: lose.lua, out: z}\n  - {use: window, in: x, frames: 3, out: p}\n"
      "  - {use: window, in: z, frames: 2, out: q}\n  - {" BOTH ", in: {a: p, b: q}, out: y}\n", 12, 9 },
    { "failures", "  - {use: lua, script: fail.lua, out: z}\n"
      "  - {" BOTH ", in: {a: z, b: x}, out: y, window: {a: 6}}\n",
      "  - {use: lua, script: fail.lua, out: z}\n  - {use: window, frames: 6, out: p}\n"
      "  - {" BOTH ", in: {a: p, b: x}, out: y}\n", 12, 10 },
    { "a kernel", "  - {use: kernel, in: {a: x, b: x}, out: y, window: {a: 3}, " SUM "}\n",
      "  - {use: window, in: x, frames: 3, out: p}\n  - {use: kernel, in: {a: p, b: x}, out: y, " SUM "}\n", 12, 12 },
    { "a kernel, two inputs",
      "  - {use: kernel, in: {a: x, b: x}, out: y, window: {a: 2, b: {frames: 5, partial: drop}}, " SUM "}\n",
      "  - {use: window, in: x, frames: 2, out: p}\n  - {use: window, in: x, frames: 5, partial: drop, out: q}\n"
      "  - {use: kernel, in: {a: p, b: q}, out: y, " SUM "}\n", 12, 8 },
    { "a kernel behind one, and holes", "  - {use: lua, script: lose.lua}\n  - {use: scale, a: 0.5, out: z}\n"
      "  - {use: kernel, in: {a: z, b: z}, out: y, window: {a: 4}, " SUM "}\n",
      "  - {use: lua, script: lose.lua}\n  - {use: scale, a: 0.5, out: z}\n  - {use: window, frames: 4, out: p}\n"
      "  - {use: kernel, in: {a: p, b: z}, out: y, " SUM "}\n", 12, 9 },
    { "a kernel and a script, which share one", "  - {use: scale, a: 0.5, out: z}\n"
      "  - {use: kernel, in: {a: z, b: z}, out: y, window: {a: 4}, " SUM "}\n"
      "  - {" BOTH ", in: {a: z, b: y}, out: t, window: {b: 3, a: 4}}\n",
      "  - {use: scale, a: 0.5, out: z}\n  - {use: window, frames: 4, out: p}\n"
      "  - {use: kernel, in: {a: p, b: z}, out: y, " SUM "}\n  - {use: window, frames: 3, out: q}\n"
      "  - {" BOTH ", in: {a: p, b: q}, out: t}\n", 12, 12 },
    { "fewer frames", "  - {use: decimate, frames: 3, out: z}\n  - {" COPY ", window: {in: 2}}\n",
      "  - {use: decimate, frames: 3, out: z}\n  - {use: window, frames: 2}\n  - {" COPY "}\n", 12, 12 },
    { "one frame of many", "  - {use: group, frames: 2}\n  - {" COPY ", window: {in: {frames: 3, partial: drop}}}\n"
      "  - {use: split}\n",
      "  - {use: group, frames: 2}\n  - {use: window, frames: 3, partial: drop}\n  - {" COPY "}\n  - {use: split}\n",
      12, 8 },
    { "what is carried", "  - {" BOTH ", in: {a: x, b: u}, out: v, window: {b: 3}}\n",
      "  - {use: window, in: u, frames: 3, out: q}\n  - {" BOTH ", in: {a: x, b: q}, out: v}\n", 12, 12 },
    { "what is carried, in a kernel", "  - {use: kernel, in: {a: x, b: u}, out: v, window: {a: 2, b: 3}, " SUM "}\n",
      "  - {use: window, in: x, frames: 2, out: p}\n  - {use: window, in: u, frames: 3, out: q}\n"
      "  - {use: kernel, in: {a: p, b: q}, out: v, " SUM "}\n", 12, 12 },
};

static const char *const knobs[] = {
    "", "depth: 1\n", "depth: 2\nlaunch: stream\n", "depth: 7\nstreams: 2\nbatch: 4\n",
    "depth: 12\nbatch: 1\nsync: block\n",
};
enum { KNOBS = sizeof knobs / sizeof *knobs };

/* The pipeline: of the buffers only those that are made are declared. */
static void make_yaml(char *yaml, size_t room, const char *stages, int knob)
{
    static const char *const like[] = { "y", "z", "t", "v" };
    int n = snprintf(yaml, room, "%son_error: drop\nvars: {w: 2}\nbuffers:\n  x: {dtype: f32, shape: [%d, %d]}\n",
                     knobs[knob], ROWS, COLS);
    for (size_t i = 0; i < sizeof like / sizeof *like; i++) {
        if (strstr(stages, format("out: %s", like[i])))
            n += snprintf(yaml + n, room - (size_t)n, "  %s: {like: x}\n", like[i]);
    }
    snprintf(yaml + n, room - (size_t)n, "%sstages:\n  - {use: read, path: in.raw, out: x}\n%s"
             "  - {use: write, path: out.raw, durable: none}\n",
             strstr(stages, "out: v") ? "  u: {carry: v, init: 1}\n" : "", stages);
}

/* What a run of `frames` frames and `rows` rows more writes; *bytes: how much. */
static char *run(const char *stages, const char *const *sets, int frames, int rows, int knob, pipe_result *r,
                 size_t *bytes)
{
    const char *dir = pipe_dir();
    float in[64 * SIZE];
    char yaml[5000];
    for (int i = 0; i < 64 * SIZE; i++)
        in[i] = (float)i;
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
        pipe_text(dir, scripts[i].name, scripts[i].text);
    pipe_file(dir, "in.raw", in, sizeof *in * (size_t)(frames * SIZE + rows * COLS));
    make_yaml(yaml, sizeof yaml, stages, knob);
    *r = pipe_run(dir, yaml, "cpu", sets, (gp_run_options){ .poison = knob % 2 });
    char *out = pipe_read(dir, "out.raw", bytes);
    return out;
}

static void same_account(const gp_account *a, const gp_account *b, const char *what)
{
    ck_assert_msg(a->in == b->in && a->out == b->out && a->dropped == b->dropped && a->failed == b->failed,
                  "%s: %d in, %d out, %d dropped, %d failed, and %d, %d, %d, %d without the key", what, (int)a->in,
                  (int)a->out, (int)a->dropped, (int)a->failed, (int)b->in, (int)b->out, (int)b->dropped,
                  (int)b->failed);
}

TEST_SOME(as_stages, KNOBS * (sizeof cases / sizeof *cases), 6, 1)
{
    int c = _i / KNOBS, knob = _i % KNOBS;
    const char *what = cases[c].what;
    pipe_result r[2];
    size_t bytes[2];
    char *out[2];
    for (int i = 0; i < 2; i++) {
        out[i] = run(i ? cases[c].stages : cases[c].key, NULL, cases[c].frames, 0, knob, &r[i], &bytes[i]);
        ck_assert_msg(r[i].outcome == GP_DONE, "%s: %s", what, pipe_said(&r[i].errs));
        ck_assert_ptr_nonnull(out[i]);
    }
    ck_assert_msg((int)r[0].account[0].in == cases[c].frames && (int)r[0].account[0].out == cases[c].out,
                  "%s: %d in, %d out", what, (int)r[0].account[0].in, (int)r[0].account[0].out);
    same_account(&r[0].account[0], &r[1].account[0], what);
    ck_assert_msg(!cases[c].out == !bytes[0] && bytes[0] == bytes[1] && !memcmp(out[0], out[1], bytes[0]),
                  "%s: %zu bytes, and %zu without the key, or others", what, bytes[0], bytes[1]);
    free(out[0]), free(out[1]);
}

/* Not by another run: frame k is frames k - 2 to k. The key stands in the file, or is set where there is none,
 * or another. */
TEST_LOOP(as_told, 0, 3 * KNOBS)
{
    enum { FRAMES = 12, W = 3 };
    static const char *const sets[] = { "stages.lua.window.in=w + 1", NULL };
    static const char *const told[] = { "  - {" COPY ", window: {in: 3}}\n", "  - {" COPY "}\n",
                                        "  - {" COPY ", window: {in: 2}}\n" };
    float expected[FRAMES * W * SIZE];
    size_t n = 0, bytes;
    pipe_result r;
    for (int k = 0; k < FRAMES; k++)
        for (int i = (k < W - 1 ? 0 : k - W + 1) * SIZE; i < (k + 1) * SIZE; i++)
            expected[n++] = (float)i;
    OWNED char *out = run(told[_i % 3], _i % 3 ? sets : NULL, FRAMES, 0, _i / 3, &r, &bytes);
    pipe_no_errors(&r, told[_i % 3]);
    ck_assert_uint_eq(bytes, sizeof *expected * n);
    ck_assert(!memcmp(out, expected, bytes));
}

/* A frame with fewer rows is no row of a window; that is told at the key. */
TEST_LOOP(tail, 0, 3)
{
    static const struct { const char *stages; int in_window; } tails[] = {
        { "  - {" COPY ", window: {in: 3}}\n", 1 },
        { "  - {use: window, frames: 3}\n  - {" COPY "}\n", 1 },
        { "  - {" BOTH ", in: {a: x, b: x}, out: y}\n", 0 },
    };
    size_t bytes;
    pipe_result r;
    free(run(tails[_i].stages, NULL, 5, 1, 0, &r, &bytes));
    ck_assert_msg(r.compiled, "%s", pipe_said(&r.errs));
    ck_assert_msg((int)r.account[0].in == 6 && (int)r.account[0].failed == tails[_i].in_window, "%d in, %d failed",
                  (int)r.account[0].in, (int)r.account[0].failed);
    if (tails[_i].in_window)
        ck_assert_msg(r.errs.n && strstr(r.errs.e[0].msg, "takes whole frames, and frame 5 of 'x' has 1 of 2 rows"),
                      "%s", pipe_said(&r.errs));
    if (!_i)
        ck_assert_msg(strstr(r.errs.e[0].msg, "stage 'x.window3'") && r.errs.e[0].at.line == 7
                      && r.errs.e[0].at.col > 40, "%d:%d: %s", r.errs.e[0].at.line, r.errs.e[0].at.col,
                      r.errs.e[0].msg);
}

TEST_SUITE(window, NULL, NULL, 0)
