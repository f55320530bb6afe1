/* test_paused.c - runs that pause and go on under other plans, on the CPU back end; and what cannot go on. */
#include <pthread.h>
#include <sched.h>
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

typedef struct asked { gp_pipeline *p; bool pauses; int level; } asked;

/* Once there are frames, and more than a run before had made: pauses, and cancels. */
static void *ask(void *arg)
{
    asked *a = arg;
    gp_account x;
    while (gp_accounts(a->p, &x, 1) < 1)
        sched_yield();
    for (unsigned long long first = x.in; x.in <= first; gp_accounts(a->p, &x, 1))
        sched_yield();
    if (a->pauses)
        gp_pipeline_pause(a->p);
    if (a->level)
        gp_cancel(a->p, a->level);
    return NULL;
}

/* A run of p. */
static gp_outcome run_asked(gp_pipeline *p, gp_pipeline *from, bool pauses, int level)
{
    asked a = { p, pauses, level };
    pthread_t t;
    pthread_create(&t, NULL, ask, &a);
    gp_outcome outcome = from ? gp_pipeline_go_on(p, from, NULL, &errs) : gp_pipeline_run(p, NULL, &errs);
    pthread_join(t, NULL);
    return outcome;
}

static gp_outcome pause_it(gp_pipeline *p, gp_pipeline *from)
{
    return run_asked(p, from, true, 0);
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
        ck_assert_float_eq(out[i], 2 * (float)i);
}

/* The source with one worker, and with three. */
TEST_LOOP(goes_on_with_itself_and_with_another, 0, 2)
{
    const char *dir = pipe_dir();
    char *text = pipe_edited(yaml, "out: x}", _i ? "out: x, workers: 3}" : "out: x}");
    gp_pipeline *p = compile(dir, text, "vars.frames=0"), *q = compile(dir, text, "vars.frames=0");
    ck_assert_int_eq(pause_it(p, NULL), GP_PAUSED);
    ck_assert_int_eq(pause_it(p, p), GP_PAUSED);
    ck_assert_int_eq(pause_it(q, p), GP_PAUSED);
    ck_assert_int_eq(pause_it(p, q), GP_PAUSED);
    gp_outcome last = run_asked(p, p, true, 1);        /* what comes first */
    ck_assert(last == GP_PAUSED || last == GP_DRAINED);
    if (last == GP_PAUSED)             /* what was asked for holds for the next */
        last = gp_pipeline_go_on(p, p, NULL, &errs);
    ck_assert_int_eq(last, GP_DRAINED);
    ck_assert_int_eq(errs.n, 0);
    check_ramp(dir, p, 4);
    gp_pipeline_destroy(p), gp_pipeline_destroy(q);
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
        size_t bytes;
        pipe_result r = pipe_run_paused(dir, text, "cpu", sets, at, 2, (gp_run_options){ 0 }, &parts);
        pipe_no_errors(&r, text);
        ck_assert_int_eq(r.outcome, GP_DONE);
        ck_assert_uint_eq(r.account[0].out, 40);
        free(pipe_read(dir, "out.raw", &bytes));
        ck_assert_uint_eq(bytes, 40 * 16);
    }
}

TEST_LOOP(a_paused_run_that_does_not_go_on, 0, 2)
{
    const char *dir = pipe_dir();
    char *path = format("%s/out.raw", dir);
    gp_pipeline *p = compile(dir, yaml, "vars.frames=0");
    ck_assert_int_eq(pause_it(p, NULL), GP_PAUSED);
    if (_i) {                          /* from the beginning again */
        ck_assert_int_eq(run_asked(p, NULL, false, 1), GP_DRAINED);
        ck_assert_int_eq(errs.failed, 0);
        check_ramp(dir, p, 4);
    }
    gp_pipeline_destroy(p);
    ck_assert_int_eq(access(path, F_OK) == 0, _i);     /* what is not whole does not get its name */
}

TEST(one_that_is_over_before)
{
    const char *dir = pipe_dir();
    gp_pipeline *p = compile(dir, yaml, NULL);
    gp_pipeline_pause(p);              /* nothing runs */
    ck_assert_int_eq(gp_pipeline_run(p, NULL, &errs), GP_DONE);
    gp_pipeline_pause(p);
    check_ramp(dir, p, 4);
    ck_assert_int_eq(gp_pipeline_go_on(p, p, NULL, &errs), GP_ERROR);
    ck_assert_str_eq(errs.e[0].msg, "no run of this pipeline is paused");
    gp_pipeline_destroy(p);
}

static const struct { const char *from, *to, *msg; int line; } other[] = {
    { "shape: [4]", "shape: [8]", "buffer 'x' is f32 [4] in the run and f32 [8] here: a shape cannot change while it goes on", 2 },
    { "b: 0, out: y}\n", "b: 0, out: y}\n  - {use: scale, a: 1, b: 0}\n",
      "stage 'scale+scale2' is not at this place in the run: stages cannot be added, taken out or moved while it goes on", 5 },
    { "path: out.raw", "path: other.raw", "'path' cannot change while the run goes on: stage 'write' keeps what it was given", 6 },
};

TEST_EACH(what_differs_cannot_go_on, other)
{
    const char *dir = pipe_dir();
    char *text = pipe_edited(yaml, other[_i].from, other[_i].to);
    gp_pipeline *p = compile(dir, yaml, "vars.frames=0"), *q = compile(dir, text, "vars.frames=0");
    ck_assert_int_eq(pause_it(p, NULL), GP_PAUSED);
    ck_assert_int_eq(gp_pipeline_go_on(q, p, NULL, &errs), GP_ERROR);
    ck_assert_int_eq(errs.n, 1);
    first_error_is(&errs, other[_i].line, other[_i].msg);
    errs = (gp_errs){ .n = 0 };
    gp_cancel(p, 1);
    ck_assert_int_eq(gp_pipeline_go_on(p, p, NULL, &errs), GP_DRAINED);    /* it is paused still */
    check_ramp(dir, p, 4);
    gp_pipeline_destroy(q), gp_pipeline_destroy(p);
}

/* A kernel is compiled, and a stage opened, while the run is to stop: what was taken in comes out all the same. */
TEST(stops_when_it_goes_on)
{
    static const char kernel[] =
        "buffers: {x: {dtype: f32, shape: [4]}, y: {like: x}}\nstages:\n  - {use: generate, out: x}\n"
        "  - {use: kernel, in: {a: x}, out: {o: y}, args: [a, o], source: k.cu, entry: k, grid: 1, block: 4}\n"
        "  - {use: window, frames: 5, partial: drop}\n  - {use: mix, op: sum, frames: 7}\n  - {use: discard}\n";
    const char *dir = pipe_dir();
    pipe_text(dir, "k.cu", "extern \"C\" __global__ void k(const float *a, float *o) { o[threadIdx.x] = a[threadIdx.x]; }\n");
    gp_pipeline *p = compile(dir, kernel, NULL), *q = compile(dir, kernel, "depth=16");
    ck_assert_int_eq(pause_it(p, NULL), GP_PAUSED);
    gp_cancel(p, 1);
    ck_assert_int_eq(gp_pipeline_go_on(q, p, NULL, &errs), GP_DRAINED);
    ck_assert_int_eq(errs.n, 0);
    gp_account a;
    gp_accounts(q, &a, 1);
    ck_assert_uint_gt(a.in, 0);
    ck_assert_uint_eq(a.in, a.out + a.dropped);
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
    gp_pipeline *p = compile(dir, lua, NULL);
    pipe_text(dir, "s.lua", "stateless = true\nerror('not so')\nfunction process(frame, x, y) y:copy(x) end\n");
    gp_pipeline *bad = compile(dir, lua, NULL), *q = bad;
    ck_assert_int_eq(pause_it(p, NULL), GP_PAUSED);
    ck_assert_int_eq(gp_pipeline_go_on(q, p, NULL, &errs), GP_ERROR);
    ck_assert_ptr_nonnull(strstr(errs.e[0].msg, "s.lua:2"));
    ck_assert(gp_pipeline_is_paused(p));
    errs = (gp_errs){ .n = 0 };
    ck_assert_int_eq(pause_it(p, p), GP_PAUSED);
    pipe_text(dir, "s.lua", "stateless = true\nfunction process(frame, x, y) y:copy(x) end\n");
    q = compile(dir, lua, "stages.lua.workers=3");
    ck_assert_int_eq(pause_it(q, p), GP_PAUSED);
    ck_assert(gp_pipeline_is_paused(q));
    ck_assert(!gp_pipeline_is_paused(p));
    ck_assert_int_eq(errs.n, 0);
    gp_pipeline_destroy(bad), gp_pipeline_destroy(q), gp_pipeline_destroy(p);
}

/* Joined sources stop after as many frames; a slow one beside them, which is not joined, does not wait for them. */
TEST(sources_stop_together)
{
    static const char two[] =
        "buffers: {a: {dtype: f32, shape: [4]}, b: {like: a}, c: {like: a}, d: {like: a}, o: {like: a}}\n"
        "depth: 7\nstages:\n  - {use: generate, in: [], out: a}\n"
        "  - {use: generate, in: [], out: b, rate: 500}\n  - {use: hold, frames: 3, in: b, out: c}\n"
        "  - {use: kernel, in: {a: a, c: c}, out: {o: o}, args: [a, c, o], source: k.cu, entry: k, grid: 1, block: 4}\n"
        "  - {use: discard}\n  - {use: generate, in: [], out: d}\n  - {use: discard, in: d}\n";
    const char *dir = pipe_dir();
    pipe_text(dir, "k.cu", "extern \"C\" __global__ void k(const float *a, const float *c, float *o)\n"
                           "{\n    o[threadIdx.x] = a[threadIdx.x] + c[threadIdx.x];\n}\n");
    gp_pipeline *p = compile(dir, two, NULL), *q = compile(dir, two, "depth=1");
    ck_assert_int_eq(pause_it(p, NULL), GP_PAUSED);
    ck_assert_int_eq(pause_it(q, p), GP_PAUSED);
    gp_account a[3];
    gp_accounts(q, a, 3);
    ck_assert_uint_eq(a[0].in, 3 * a[1].in);
    ck_assert_uint_gt(a[0].in, 0);
    ck_assert_uint_eq(a[0].out, a[0].in);
    ck_assert_uint_eq(a[2].out, a[2].in);
    ck_assert_int_eq(errs.n, 0);
    gp_pipeline_destroy(q), gp_pipeline_destroy(p);
}

/* 1000 frames become one of all of them, whatever pauses. */
TEST(an_accumulator_of_all)
{
    static const char all[] =
        "buffers: {x: {dtype: f32, shape: [4]}}\nstages:\n  - {use: generate, frames: 3000, out: x, rate: 100000}\n"
        "  - {use: mix, op: sum}\n  - {use: write, path: out.raw, durable: none}\n";
    const char *dir = pipe_dir();
    gp_pipeline *p = compile(dir, all, NULL);
    size_t bytes;
    int parts = 1;
    gp_outcome outcome = pause_it(p, NULL);
    for (; outcome == GP_PAUSED && parts < 5; parts++)
        outcome = pause_it(p, p);
    ck_assert_int_gt(parts, 1);
    if (outcome == GP_PAUSED)
        outcome = gp_pipeline_go_on(p, p, NULL, &errs);
    ck_assert_int_eq(outcome, GP_DONE);
    OWNED float *out = (float *)pipe_read(dir, "out.raw", &bytes);
    ck_assert_uint_eq(bytes, 16);
    for (int i = 0; i < 4; i++)        /* 4 k + i for k < 3000 */
        ck_assert_float_eq(out[i], (float)(4.0 * 2999 * 3000 / 2 + 3000.0 * i));
    gp_pipeline_destroy(p);
}

void paused_cases(TCase *tc);

SUITE(paused, paused_cases(tc); tcase_add_checked_fixture(tc, set_up, NULL))
