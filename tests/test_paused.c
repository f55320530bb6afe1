/* test_paused.c - runs that pause and go on under other plans, on the CPU back end. */
#include "cases.h"

static gp_errs errs;

static const char yaml[] =
    "vars: {gain: 2, frames: 40}\nbuffers: {x: {dtype: f32, shape: [4]}, y: {like: x}}\nstages:\n"
    "  - {use: generate, frames: frames, out: x}\n  - {use: scale, a: gain, b: 0, out: y}\n"
    "  - {use: write, path: out.raw, durable: none}\n";

static gp_pipeline *compile(const char *dir, const char *text, const char *set)
{
    const char *sets[] = { "device=cpu", set };
    return pipe_compiled(dir, text, (gp_config){ .set = sets, .nset = set ? 2 : 1 });
}

static void set_up(void)
{
    errs = (gp_errs){ .n = 0 };
}

/* Runs p, or goes on under it, and pauses it for `next`. */
static gp_outcome pause_it(gp_pipeline *p, gp_pipeline *from, gp_pipeline *next)
{
    return pipe_run_part(p, from, next, (from ? pipe_frames_in(from) : 0) + 5, (gp_run_options){ 0 }, &errs);
}

/* Frames 0, 1, 2, ... of the ramp times 2, as many as the account says. */
static void check_ramp(const char *dir, const gp_pipeline *p, int values)
{
    gp_account a;
    size_t bytes;
    ck_assert_int_eq(gp_accounts(p, &a, 1), 1);
    ck_assert_uint_eq(a.in, a.out);
    OWNED float *out = (float *)pipe_read(dir, "out.raw", &bytes);
    ck_assert_ptr_nonnull(out);
    ck_assert_uint_eq(bytes, a.in * (unsigned)values * sizeof *out);
    for (size_t i = 0; i < bytes / sizeof *out; i++)
        ck_each(out[i] == 2 * (float)i, "element %zu is %g", i, (double)out[i]);
}

/* The source with one worker, and with three. */
TEST_LOOP(goes_on_with_itself_and_with_another, 0, 2)
{
    const char *dir = pipe_dir();
    char *text = pipe_edited(yaml, "out: x}", _i ? "out: x, workers: 3}" : "out: x}");
    gp_pipeline *p = compile(dir, text, "vars.frames=0"), *q = compile(dir, text, "vars.frames=0");
    gp_pipeline *last = compile(dir, text, "vars.frames=0");
    ck_assert_int_eq(pause_it(p, NULL, q), GP_PAUSED);
    ck_assert_int_eq(pause_it(p, p, q), GP_PAUSED);
    ck_assert_int_eq(pause_it(q, p, last), GP_PAUSED);
    gp_cancel(q, 1);                   /* what was asked for in a pause holds for what goes on */
    ck_assert_int_eq(gp_pipeline_go_on(last, q, NULL, &errs), GP_DRAINED);
    ck_assert_int_eq(errs.n, 0);
    check_ramp(dir, last, 4);
    gp_pipeline_destroy(last), gp_pipeline_destroy(q), gp_pipeline_destroy(p);
}

/* A pause about where the source ends, or beyond. */
TEST_LOOP(a_source_that_ends_meanwhile, 0, 8)
{
    const char *dir = pipe_dir();
    char *text = pipe_edited(yaml, "out: x}", _i & 1 ? "out: x, workers: 3}" : "out: x}");
    const char *const set[] = { NULL }, *const *const sets[] = { set, set, set };
    for (int i = 0; i < 12; i++) {
        const unsigned long long at[] = { 25 + (unsigned)i, 33 + (unsigned)i };
        int parts;
        pipe_result r = pipe_run_paused(dir, text, "cpu", sets, at, 2, (gp_run_options){ 0 }, &parts);
        pipe_no_errors(&r, text);
        ck_assert_int_eq(r.outcome, GP_DONE);
        ck_assert_uint_eq(r.account[0].out, 40);
        free(pipe_read_all(dir, "out.raw", 40 * 16));
    }
}

TEST_LOOP(a_paused_run_that_does_not_go_on, 0, 2)
{
    const char *dir = pipe_dir();
    char *path = format("%s/out.raw", dir);
    gp_pipeline *p = compile(dir, yaml, "vars.frames=20000"), *q = compile(dir, yaml, "vars.frames=20000");
    ck_assert_int_eq(pause_it(p, NULL, q), GP_PAUSED);
    gp_pipeline_destroy(q);
    if (_i) {                          /* from the beginning again */
        ck_assert_int_eq(gp_pipeline_run(p, NULL, &errs), GP_DONE);
        ck_assert_int_eq(errs.failed, 0);
        check_ramp(dir, p, 4);
    }
    gp_pipeline_destroy(p);
    ck_assert_int_eq(access(path, F_OK) == 0, _i);     /* what is not whole does not get its name */
}

TEST(one_that_is_over_before)
{
    const char *dir = pipe_dir();
    gp_pipeline *p = compile(dir, yaml, NULL), *q = compile(dir, yaml, NULL);
    ck_assert(!gp_pipeline_retune(q, p, NULL, &errs) && !errs.n);      /* nothing runs */
    ck_assert_int_eq(gp_pipeline_run(p, NULL, &errs), GP_DONE);
    ck_assert(!gp_pipeline_retune(q, p, NULL, &errs) && !errs.n);
    check_ramp(dir, p, 4);
    ck_assert_int_eq(gp_pipeline_go_on(p, p, NULL, &errs), GP_ERROR);
    ck_assert_str_eq(errs.e[0].msg, "no run of this pipeline is paused");
    gp_pipeline_destroy(q), gp_pipeline_destroy(p);
}

/* A pipeline with an edit is set up in the pause; where that fails, the run is paused still. */
TEST(a_plan_that_cannot_be_set_up)
{
    static const char lua[] =
        "buffers: {x: {dtype: f32, shape: [4]}}\nstages:\n  - {use: generate, out: x}\n"
        "  - {use: lua, script: s.lua, workers: 2}\n  - {use: discard}\n";
    const char *dir = pipe_dir();
    pipe_text(dir, "s.lua", "stateless = true\nfunction process(frame, x, y) y:copy(x) end\n");
    gp_pipeline *p = compile(dir, lua, NULL), *q = compile(dir, lua, "stages.lua.workers=3");
    pipe_text(dir, "s.lua", "stateless = true\nerror('not so')\nfunction process(frame, x, y) y:copy(x) end\n");
    gp_pipeline *bad = compile(dir, lua, NULL);
    ck_assert_int_eq(pause_it(p, NULL, q), GP_PAUSED);
    ck_assert_int_eq(gp_pipeline_go_on(bad, p, NULL, &errs), GP_ERROR);
    ck_assert_ptr_nonnull(strstr(errs.e[0].msg, "s.lua:2"));
    ck_assert(gp_pipeline_is_paused(p));
    errs = (gp_errs){ .n = 0 };
    ck_assert_int_eq(pause_it(p, p, q), GP_PAUSED);
    gp_cancel(p, 1);
    ck_assert_int_eq(gp_pipeline_go_on(q, p, NULL, &errs), GP_DRAINED);
    ck_assert_int_eq(errs.n, 0);
    gp_pipeline_destroy(bad), gp_pipeline_destroy(q), gp_pipeline_destroy(p);
}

void paused_cases(TCase *tc);

SUITE(paused, paused_cases(tc); tcase_add_checked_fixture(tc, set_up, NULL))
