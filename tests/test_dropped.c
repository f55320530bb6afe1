/* test_dropped.c - stages that say themselves what becomes of frames that fail in them, and how many may. */
#include "pipe.h"

/* Of 20 frames, frames 3, 7, 11, 15 and 19 fail in stage `some`; in stage `late` none, or all from frame 9 on. */
static const char some[] = "stateless = true\nfunction process(f, x, y) if f.index % 4 == 3 then error('odd one') end y:copy(x) end\n";
static const char late[] = "stateless = true\nfunction process(f, x, y) if f.index >= 9 then error('late one') end y:copy(x) end\n";

static const struct {
    const char *top, *some, *late, *script;    /* script: of `late` */
    gp_outcome outcome;
    unsigned out, failed;
    const char *says; int line;                /* the last error; its line, or 0 */
} cases[] = {
    { "", "on_error: drop", "", "some.lua", GP_DONE, 15, 5, NULL, 0 },
    { "", "on_error: drop, workers: 3", "", "some.lua", GP_DONE, 15, 5, NULL, 0 },
    { "on_error: drop\n", "", "", "late.lua", GP_DONE, 7, 13, NULL, 0 },
    { "", "on_error: drop", "", "late.lua", GP_ERROR, 7, 3, "late one", 0 },
    { "on_error: drop\n", "", "on_error: stop", "late.lua", GP_ERROR, 7, 3, "late one", 0 },
    { "", "", "on_error: drop", "late.lua", GP_ERROR, 3, 1, "odd one", 0 },
    { "", "on_error: drop, max_dropped: 5", "", "some.lua", GP_DONE, 15, 5, NULL, 0 },
    { "", "on_error: drop, max_dropped: 4", "", "some.lua", GP_ERROR, 15, 5, "more than 4 frames failed in stage 'some'", 5 },
    { "", "on_error: drop, max_dropped: 1, workers: 3", "", "some.lua", GP_ERROR, 6, 2, "more than 1 frame failed in stage 'some'", 5 },
    { "", "on_error: drop, max_dropped: 0", "", "some.lua", GP_ERROR, 3, 1, "more than 0 frames failed in stage 'some'", 5 },
    { "", "on_error: drop, max_dropped: 25%", "", "some.lua", GP_DONE, 15, 5, NULL, 0 },
    { "", "on_error: drop, max_dropped: 24%", "", "some.lua", GP_ERROR, 15, 5, "5 of 20 frames failed in stage 'some', more than 24 %", 5 },
    { "on_error: drop\n", "max_dropped: 100%", "max_dropped: 50%", "late.lua", GP_ERROR, 7, 13, "8 of 15 frames failed in stage 'late', more than 50 %", 6 },
};

TEST_EACH(of_a_stage, cases)
{
    const char *dir = pipe_dir();
    pipe_text(dir, "some.lua", some);
    pipe_text(dir, "late.lua", late);
    char *yaml = format("%sbuffers: {x: {dtype: f32, shape: [3]}}\nstages:\n"
        "%s  - {use: generate, frames: 20, out: x}\n  - {name: some, use: lua, script: some.lua%s%s}\n"
        "  - {name: late, use: lua, script: %s%s%s}\n  - {use: write, path: out.raw, durable: none}\n", cases[_i].top,
        *cases[_i].top ? "" : "\n", *cases[_i].some ? ", " : "", cases[_i].some,
        !strcmp(cases[_i].script, "late.lua") ? "late.lua" : "copy.lua", *cases[_i].late ? ", " : "", cases[_i].late);
    pipe_text(dir, "copy.lua", "stateless = true\nfunction process(f, x, y) y:copy(x) end\n");
    pipe_result r = pipe_run(dir, yaml, "cpu", NULL, (gp_run_options){ 0 });
    ck_assert_msg(r.outcome == cases[_i].outcome, "case %d: outcome %d: %s\n%s", _i, r.outcome,
                  r.errs.n ? r.errs.e[r.errs.n - 1].msg : "", yaml);
    ck_assert_uint_eq(r.account[0].out, cases[_i].out);
    ck_assert_uint_eq(r.account[0].failed, cases[_i].failed);
    ck_assert_uint_eq(r.errs.failed != 0, cases[_i].says != NULL);
    const gp_err *e = NULL;
    for (int i = 0; i < r.errs.n; i++)
        e = r.errs.e[i].code == GP_E_WARN ? e : &r.errs.e[i];
    if (cases[_i].says) {
        ck_assert_msg(e && strstr(e->msg, cases[_i].says), "case %d: %s", _i, e ? e->msg : "no error");
        ck_assert_msg(!cases[_i].line || e->at.line == cases[_i].line, "case %d: line %d", _i, e->at.line);
    }
}

/* A source of which frames fail without end, or all but one of 999. */
TEST_LOOP(of_a_source, 0, 5)
{
    static const struct { const char *keys, *script; gp_outcome outcome; unsigned out, failed; const char *says; } ways[] = {
        { "", "error('no')", GP_ERROR, 0, 1000, "the last 1000 frames of stage 'lua' failed, one after the other" },
        { "", "if f.index >= 7 then error('no') end", GP_ERROR, 7, 1000, "the last 1000 frames of stage 'lua' failed" },
        { ", max_dropped: 1500", "error('no')", GP_ERROR, 0, 1501, "more than 1500 frames failed in stage 'lua'" },
        { ", max_dropped: 100%", "if f.index == 2500 then return false end error('no')", GP_DONE, 0, 2500, NULL },
        { "", "if f.index == 3000 then return false end if f.index % 1000 ~= 0 then error('no') end", GP_DONE, 3, 2997, NULL },
    };
    const char *dir = pipe_dir();
    pipe_text(dir, "source.lua", format("function produce(f, y) %s y:fill(1) end\n", ways[_i].script));
    char *yaml = format("on_error: drop\nbuffers: {x: {dtype: f32, shape: [2]}}\nstages:\n"
                        "  - {use: lua, script: source.lua, out: x%s}\n  - {use: discard}\n", ways[_i].keys);
    pipe_result r = pipe_run(dir, yaml, "cpu", NULL, (gp_run_options){ 0 });
    const gp_err *e = NULL;
    for (int i = 0; i < r.errs.n; i++)
        e = r.errs.e[i].code == GP_E_RUN && !(e && strstr(e->msg, "frames")) ? &r.errs.e[i] : e;
    ck_assert_msg(r.outcome == ways[_i].outcome, "%s: %d: %s", ways[_i].script, r.outcome, e ? e->msg : "");
    ck_assert_uint_eq(r.account[0].out, ways[_i].out);
    ck_assert_uint_eq(r.account[0].failed, ways[_i].failed);
    ck_assert_msg(!ways[_i].says || (e && strstr(e->msg, ways[_i].says)), "%s", e ? e->msg : "no error");
}

/* The first of several files is one that can be dropped, if that is declared, or another says it. */
TEST_LOOP(the_first_file, 0, 6)
{
    static const struct { const char *buffer, *rule; gp_outcome outcome; unsigned out, failed; const char *first; } ways[] = {
        { "dtype: u8, shape: [2, 2]", ", on_error: drop", GP_DONE, 2, 1, "no picture" },
        { "dtype: u8, shape: ['<=2', '<=4']", ", on_error: drop", GP_DONE, 2, 1, "no picture" },
        { "dtype: u8, shape: [2, 2]", "", GP_ERROR, 0, 0, "no picture" },
        { "dtype: u8", ", on_error: drop", GP_DONE, 2, 1, "no picture" },
        { "dtype: u8", "", GP_ERROR, 0, 0, "no picture" },
        { "dtype: u8, shape: [2, 3]", ", on_error: drop", GP_ERROR, 0, 0, "P5 2 2 255\nijkl" },
    };
    const char *dir = pipe_dir();
    pipe_text(dir, "a.pgm", ways[_i].first);
    pipe_text(dir, "b.pgm", "P5 2 2 255\nabcd");
    pipe_text(dir, "c.pgm", "P5 2 2 255\nefgh");
    char *yaml = format("buffers: {x: {%s}}\nstages:\n  - {use: read, path: '?.pgm', out: x%s}\n  - {use: discard}\n",
                        ways[_i].buffer, ways[_i].rule);
    pipe_result r = pipe_run(dir, yaml, "cpu", NULL, (gp_run_options){ 0 });
    ck_assert_msg(r.outcome == ways[_i].outcome, "%s: outcome %d, %s", yaml, r.outcome, pipe_said(&r.errs));
    ck_assert_uint_eq(r.compiled ? r.account[0].out : 0, ways[_i].out);
    ck_assert_uint_eq(r.compiled ? r.account[0].failed : 0, ways[_i].failed);
}

TEST_SUITE(dropped, NULL, NULL, 0)
