/* end_cases.c - how runs end: inputs of different lengths, branches that end early, errors, stopping; the account. What
 * is said of a run in which nothing moves: tests/test_stall.c. */
#include "cases.h"

#define NAP "local t = os.clock() while os.clock() - t < 0.05 do end "

/* Finite inputs of different length are an error that names both, at the stage that reads them; of several the one
 * that goes on is named. An endless one ends with its consumer. Behind sources of a and b, with so many frames, a in no
 * hurry where it says so; `says` NULL: of both that many come out. */
#define ADD "  - {use: lua, script: add.lua, in: {a: a, b: b}, out: c}\n  - {use: discard}\n"
#define JOIN "  - {use: lua, script: five.lua, in: [], out: c}\n" \
             "  - {use: lua, script: add.lua, in: {a: a, b: b, c: c}, out: j}\n  - {use: discard}\n"
#define KERNEL "  - {use: discard, in: b}\n  - {use: kernel, source: k.cu, grid: 1, args: [x, y, out], " \
               "in: {x: a, y: b}, out: {out: o}}\n  - {use: discard, in: o}\n"
static const struct { const char *a, *b, *stages, *says; int line, times; unsigned out; } inputs[] = {
    { "frames: 5", "frames: 7", ADD, "'a' ended after 5 frames, 'b' has more", 6, 1, 0 },
    { "frames: 5", "frames: 2", ADD, "'b' ended after 2 frames, 'a' has more", 6, 1, 0 },
    { "frames: 5", "frames: 5", ADD, NULL, 0, 1, 5 },
    { "frames: 50", "workers: 1", ADD, NULL, 0, 1, 50 },
    { "frames: 3, rate: 40", "frames: 9", ADD, "'a' ended after 3 frames, 'b' has more", 6, 5, 0 },
    { "frames: 5", "frames: 10", JOIN, "'a' ended after 5 frames, 'b' has more", 7, 1, 0 },
    { "frames: 5", "frames: 10", KERNEL, "'a' ended after 5 frames, 'b' has more", 7, 1, 0 },
};

TEST_EACH(test_ends, inputs)
{
    const char *dir = pipe_dir();
    pipe_text(dir, "add.lua", "function process(f, x, y) y:add(x.a, x.b) end\n");
    pipe_text(dir, "five.lua", "function produce(f, y) if f.index == 5 then " NAP "return false end y:fill(1) end\n");
    pipe_text(dir, "k.cu", "extern \"C\" __global__ void k(const float *x, const float *y, float *o)\n"
              "{ o[threadIdx.x % 4] = x[0] + y[0]; }\n");
    char *yaml = format("stall_timeout: 0\nbuffers: {a: {dtype: f32, shape: [4], depth: 2}, b: {dtype: f32, shape: [4]}%s}\nstages:\n"
                        "  - {name: one, use: generate, %s, out: a}\n"
                        "  - {name: two, use: generate, in: [], %s, out: b}\n%s",
                        strstr(inputs[_i].stages, "c: c") ? ", c: {dtype: f32, shape: [4]}" : "", inputs[_i].a,
                        inputs[_i].b, inputs[_i].stages);
    for (int i = 0; i < inputs[_i].times; i++) {
        pipe_result r = pipe_run(dir, yaml, on, NULL, (gp_run_options){ 0 });
        pipe_ends(&r, inputs[_i].says);
        if (inputs[_i].says)
            ck_assert_int_eq(r.errs.e[0].at.line, inputs[_i].line);
        else
            ck_assert(r.account[0].out == inputs[_i].out && r.account[1].out == inputs[_i].out);
    }
}

/* Once frames come out. */
static void cancel_soon(gp_pipeline *p, void *arg)
{
    pipe_await_out(p, 1);
    gp_cancel(p, *(int *)arg);
}

TEST(test_cancel)
{
    static const char yaml[] =
        "buffers: {a: {dtype: f32, shape: [64]}}\n"
        "stages:\n"
        "  - {use: generate, out: a}\n"
        "  - {use: scale, a: 2}\n"
        "  - {use: lua, script: copy.lua, workers: 3}\n"
        "  - {use: write, path: out.npy}\n";
    const char *dir = pipe_dir();
    pipe_text(dir, "copy.lua", "stateless = true\nfunction process(f, x, y) y:copy(x) end\n");
    for (int level = 1; level <= 2; level++) {
        pipe_result r = pipe_run_with(dir, yaml, on, NULL, (gp_run_options){ 0 }, cancel_soon, &level);
        pipe_no_errors(&r, "cancel");
        ck_assert_int_eq(r.outcome, level == 1 ? GP_DRAINED : GP_NOT_DRAINED);
        const gp_account *a = &r.account[0];
        ck_assert_uint_eq(a->in, a->out + a->dropped + a->failed + a->cancelled);
        size_t n;
        OWNED char *out = pipe_read(dir, "out.npy", &n);
        if (level == 1) {          /* drained: the file is whole */
            ck_assert_uint_eq(a->cancelled, 0);
            ck_assert_uint_gt(a->out, 0);
            ck_assert_uint_eq(n, 128 + a->out * 64 * 4);
            pipe_file(dir, "out.npy", "old", 3);
        } else {                   /* not drained: the old one is untouched */
            ck_assert_uint_eq(n, 3);
        }
    }
}

/* An error at frame 1,000 of several workers: that frame is named, all before
 * it came out, nothing after it. */
TEST(test_error)
{
    static const char yaml[] =
        "depth: 8\n"
        "buffers: {a: {dtype: u64, shape: [16]}}\n"
        "stages:\n"
        "  - {use: generate, frames: 5000, out: a}\n"
        "  - {name: bad, use: lua, script: bad.lua, workers: 4}\n"
        "  - {use: write, path: \"out/%05d.raw\", format: raw}\n";
    const char *dir = pipe_dir();
    pipe_text(dir, "bad.lua",
              "stateless = true\n"
              "function process(f, x, y)\n"
              "  if f.index >= 1000 then error('too far') end\n"
              "  y:copy(x)\n"
              "end\n");
    pipe_result r = pipe_run(dir, yaml, on, NULL, (gp_run_options){ 0 });
    ck_assert_int_eq(r.outcome, GP_ERROR);
    ck_assert_int_eq(r.errs.failed, 1);
    ck_assert_msg(strstr(r.errs.e[0].msg, "frame 1000") && strstr(r.errs.e[0].msg, "too far"), "%s", r.errs.e[0].msg);
    ck_assert_uint_eq(r.account[0].out, 1000);
    ck_assert_uint_eq(r.account[0].failed, 1);
    size_t n;
    OWNED char *last = pipe_read(dir, "out/00999.raw", &n);
    ck_assert_ptr_nonnull(last);
    ck_assert_ptr_null(pipe_read(dir, "out/01000.raw", &n));

    const char *drop[] = { "on_error=drop", NULL };
    r = pipe_run(dir, yaml, on, drop, (gp_run_options){ 0 });
    ck_assert_int_eq(r.outcome, GP_DONE);
    ck_assert_uint_eq(r.account[0].out, 1000);
    ck_assert_uint_eq(r.account[0].failed, 4000);
}

/* An error is told though warnings filled the table before it. */
TEST(test_error_after_warnings)
{
    static const char yaml[] =
        "on_error: drop\n"
        "buffers: {a: {dtype: f32, shape: [4]}}\n"
        "stages:\n"
        "  - {use: generate, frames: 200, out: a}\n"
        "  - {use: lua, script: bad.lua}\n"
        "  - {use: discard}\n";
    const char *dir = pipe_dir();
    pipe_text(dir, "bad.lua",
              "function process(f, x, y) error('each') end\n"
              "function finish(s) error('at the end') end\n");
    pipe_result r = pipe_run(dir, yaml, on, NULL, (gp_run_options){ 0 });
    ck_assert_int_eq(r.outcome, GP_ERROR);
    ck_assert_int_eq(gp_errs_exit(&r.errs), 1);
    ck_assert(strstr(r.errs.e[r.errs.n - 1].msg, "at the end") != NULL);
    ck_assert_uint_eq(r.account[0].failed, 200);
}

/* One branch ends early: its shallow ring no longer bounds the others, and the
 * frames it did not see count for those that did. */
TEST(test_early_end)
{
    static const char yaml[] =
        "stall_timeout: 0\n"
        "buffers:\n"
        "  a: {dtype: f32, shape: [64], depth: 16}\n"
        "  few: {dtype: f32, shape: [64], depth: 1}\n"
        "  many: {dtype: f32, shape: [64], depth: 16}\n"
        "  f: {dtype: f32, shape: [64]}\n"
        "  m: {dtype: f32, shape: [64]}\n"
        "stages:\n"
        "  - {name: endless, use: generate, pattern: ramp, out: a}\n"
        "  - {name: fork, use: lua, script: fork.lua, workers: 6, in: a, out: {few: few, many: many}}\n"
        "  - {name: five, use: generate, in: [], pattern: ramp, frames: 5, out: f}\n"
        "  - {name: want, use: generate, in: [], pattern: ramp, frames: 3000, out: m}\n"
        "  - {name: c1, use: compare, in: {in: few, with: f}}\n"
        "  - {name: c2, use: compare, in: {in: many, with: m}}\n";
    const char *dir = pipe_dir();
    pipe_text(dir, "fork.lua",
              "stateless = true\n"
              "function process(f, x, y) y.few:copy(x) y.many:copy(x) end\n");
    pipe_result r = pipe_done(dir, yaml, on, NULL, (gp_run_options){ 0 });
    ck_assert_uint_eq(r.account[0].out, 3000);
    ck_assert_uint_eq(r.account[1].out, 5);
    ck_assert_uint_eq(r.account[2].out, 3000);
}

/* E feeds two branches: one ends after 4 frames, before a stage in its middle has
 * worked off its own, the other after many. */
static const char *const TWO_BRANCHES =
    "vars: {many: 20000}\n"
    "stall_timeout: 0\n"
    "depth: 4\n"
    "on_error: drop\n"
    "buffers: {e: {dtype: u8, shape: [4]}, x: {dtype: u8, shape: [4]}, y: {dtype: u8, shape: [4]}}\n"
    "stages:\n"
    "  - {name: E, use: generate, out: e}\n"
    "  - {name: X, use: lua, script: four.lua, in: [], out: x}\n"
    "  - {name: Y, use: generate, frames: many, out: y}\n"
    "  - {name: early, use: lua, script: early.lua, in: e, out: l}\n"
    "  - {name: J, use: lua, script: join.lua, in: {a: l, b: x}, out: j}\n"
    "  - {name: late, use: lua, script: late.lua, in: j, out: s}\n"
    "  - {name: s1, use: discard, in: s}\n"
    "  - {name: J2, use: lua, script: join.lua, in: {a: e, b: y}, out: j2}\n"
    "  - {name: s2, use: discard, in: j2}\n";

static pipe_result two_branches(const char *early, const char *late, const char *const *sets)
{
    const char *dir = pipe_dir();
    pipe_text(dir, "join.lua", "function process(f, x, y) y:copy(x.a) end\n");
    pipe_text(dir, "four.lua", "function produce(f, y) if f.index < 4 then y:fill(1) return end " NAP
              "return false end\n");
    pipe_text(dir, "early.lua", early);
    pipe_text(dir, "late.lua", late);
    pipe_result r = pipe_run(dir, TWO_BRANCHES, on, sets, (gp_run_options){ 0 });
    return r;
}

/* A sink that lags in a branch that has ended neither holds up the other branch
 * nor spoils its account. */
TEST(test_lagging_branch)
{
    static const char copy[] = "function process(f, x, y) y:copy(x) end\n";
    for (int drops = 0; drops < 2; drops++) {
        pipe_result r = two_branches(copy, drops
            ? "function process(f, x, y) " NAP "return 'drop' end\n"
            : "function process(f, x, y) " NAP "y:copy(x) end\n", NULL);
        pipe_no_errors(&r, "lagging");
        const gp_account *e = &r.account[0];
        ck_assert_uint_eq(e->out, drops ? 19996 : 20000);
        ck_assert_uint_eq(e->dropped, drops ? 4 : 0);
        ck_assert_uint_le(e->cancelled, 64);
        ck_assert_uint_eq(e->in, e->out + e->dropped + e->cancelled);
        ck_assert_uint_eq(r.account[1].out + r.account[1].dropped, 4);
        ck_assert_uint_eq(r.account[2].out, 20000);
    }
}

/* A frame that came out is not failed afterwards, by a stage in a branch that no
 * longer counts. */
TEST(test_fails_after_the_end)
{
    const char *sets[] = { "on_error=stop", "vars.many=3000", "stages.early.workers=3", NULL };
    pipe_result r = two_branches(
        "stateless = true\n"
        "function process(f, x, y) y:copy(x) if f.index == 6 then " NAP NAP "error('late') end end\n",
        "function process(f, x, y) y:copy(x) end\n", sets);
    ck_assert_int_eq(r.outcome, GP_ERROR);
    for (int i = 0; i < 3; i++) {
        const gp_account *a = &r.account[i];
        ck_assert_uint_ge(a->out, 4);
        ck_assert_uint_le(a->failed, 1);
        ck_assert_uint_le(a->cancelled, 64);
        ck_assert_uint_eq(a->in, a->out + a->failed + a->cancelled);
    }
}

/* A stage with several workers fails while the others wait for input: the run
 * ends at once, not when a watchdog says so: there is none. */
TEST(test_fails_while_waiting)
{
    static const char yaml[] =
        "stall_timeout: 0\n"
        "depth: 8\n"
        "buffers: {a: {dtype: f32, shape: [4]}}\n"
        "stages:\n"
        "  - {use: generate, frames: 100, out: a}\n"
        "  - {name: pass, use: lua, script: slow.lua}\n"
        "  - {name: bad, use: lua, script: bad.lua, workers: 4}\n"
        "  - {use: discard}\n";
    const char *dir = pipe_dir();
    pipe_text(dir, "slow.lua", "function process(f, x, y) y:copy(x) end\n");
    pipe_text(dir, "bad.lua",
              "stateless = true\n"
              "function process(f, x, y)\n"
              "  if f.index == 5 then local t = os.clock() + 0.2 while os.clock() < t do end error('five') end\n"
              "  y:copy(x)\n"
              "end\n");
    pipe_result r = pipe_run(dir, yaml, on, NULL, (gp_run_options){ 0 });
    ck_assert_int_eq(r.outcome, GP_ERROR);
    ck_assert_int_eq(gp_errs_exit(&r.errs), 1);
    ck_assert_msg(r.errs.failed == 1, "%s", r.errs.e[r.errs.n - 1].msg);
    ck_assert_uint_eq(r.account[0].out, 5);
    ck_assert_uint_eq(r.account[0].failed, 1);
}

/* Each frame is counted once, whichever branches and sinks fail or drop it. */
TEST(test_account)
{
    static const char yaml[] =
        "buffers: {a: {dtype: f32, shape: [4]}}\n"
        "stages:\n"
        "  - {use: generate, frames: 20, out: a}\n"
        "  - {name: s1, use: lua, script: one.lua, in: a, out: []}\n"
        "  - {name: s2, use: lua, script: two.lua, in: a, out: []}\n";
    const char *dir = pipe_dir();
    pipe_text(dir, "one.lua", "function process(f, x) if f.index % 4 == 1 then return 'drop' end end\n");
    pipe_text(dir, "two.lua", "function process(f, x) if f.index % 5 == 2 then error('no') end end\n");
    const char *drop[] = { "on_error=drop", NULL };
    pipe_result r = pipe_run(dir, yaml, on, drop, (gp_run_options){ 0 });
    ck_assert_int_eq(r.outcome, GP_DONE);
    ck_assert_uint_eq(r.account[0].in, 20);
    ck_assert_uint_eq(r.account[0].failed, 4);         /* 2 7 12 17 */
    ck_assert_uint_eq(r.account[0].dropped, 4);        /* 1 5 9 13, and 17 failed */
    ck_assert_uint_eq(r.account[0].out, 12);
    pipe_text(dir, "one.lua", "function process(f, x) error('both') end\n");
    pipe_text(dir, "two.lua", "function process(f, x) error('both') end\n");
    r = pipe_run(dir, yaml, on, NULL, (gp_run_options){ 0 });
    ck_assert_int_eq(r.outcome, GP_ERROR);
    const gp_account *a = &r.account[0];
    ck_assert_uint_eq(a->failed, 1);
    ck_assert_uint_eq(a->in, a->out + a->failed + a->cancelled);
}

CASES_SUITE(end, NULL, NULL, 900, 1)
