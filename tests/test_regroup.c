/* test_regroup.c - stages that regroup, on the CPU back end; and what a run keeps of frames whose fate is known at
 * its end only. */
#include "cases.h"
#include "run/pipeline.h"
#include "run/run.h"

/* Behind a source of N frames of [1]: an account of these, and no entry for each that is a hole. */
enum { N = 20000, ENTRIES = 4096 };
static const struct { const char *what, *stages; int out, dropped, failed; } long_runs[] = {
    { "all dropped", "  - {use: lua, script: drop.lua, params: {by: 1}}\n  - {use: mix, op: sum}\n  - {use: discard}\n",
      0, N, 0 },
    { "another sink beside", "  - {use: lua, script: drop.lua, params: {by: 2}, in: a}\n  - {use: mix, op: sum}\n"
      "  - {use: discard}\n  - {use: discard, in: a}\n", N / 2, N / 2, 0 },
    { "two wait for the end", "  - {use: lua, script: drop.lua, params: {by: 2}, in: a, out: b}\n"
      "  - {use: mix, op: sum}\n  - {use: discard}\n  - {use: lua, script: drop.lua, params: {by: 4}, in: a}\n"
      "  - {use: mix, op: max}\n  - {use: discard}\n", N / 2, N / 2, 0 },
    { "failed and dropped", "  - {use: lua, script: drop.lua, params: {by: 2}}\n"
      "  - {use: lua, script: fail.lua, params: {by: 5}}\n  - {use: mix, op: sum}\n  - {use: discard}\n",
      N * 4 / 10, N / 2, N / 10 },
    { "what all became fails", "  - {use: lua, script: drop.lua, params: {by: 2}}\n  - {use: mix, op: sum}\n"
      "  - {use: lua, script: fail.lua, params: {by: 1}}\n  - {use: discard}\n", 0, 0, N },
    { "what all became is left out", "  - {use: lua, script: drop.lua, params: {by: 2}, in: a}\n"
      "  - {use: mix, op: sum}\n  - {use: group, frames: 2, tail: drop}\n  - {use: discard}\n"
      "  - {use: lua, script: fail.lua, params: {by: 5}, in: a}\n  - {use: discard}\n", 0, N * 8 / 10, N / 5 },
};

/* A sink that failed has not seen the frames behind: they are cancelled, whatever another one makes of all. */
TEST_LOOP(failed_beside_all, 0, 5)
{
    const char *dir = pipe_dir();
    pipe_text(dir, "half.lua", "function process(frame, x) if frame.index == 1000 then error('no') end end\n");
    pipe_result r = pipe_run(dir, "depth: 8\nbuffers: {a: {dtype: f32, shape: [1]}}\nstages:\n"
                             "  - {use: generate, rate: 20kHz, frames: 4000, out: a}\n  - {use: mix, op: sum}\n"
                             "  - {use: discard}\n  - {use: lua, script: half.lua, in: a, out: []}\n", "cpu", NULL,
                             (gp_run_options){ 0 });
    gp_account x = r.account[0];
    ck_assert_int_eq(r.outcome, GP_ERROR);
    ck_assert_msg(x.out <= 1000 && x.failed >= 1 && x.in == x.out + x.failed + x.cancelled, "%d in, %d out, %d failed, "
                  "%d cancelled", (int)x.in, (int)x.out, (int)x.failed, (int)x.cancelled);
}

static void look(gp_pipeline *p, void *entries)
{
    *(size_t *)entries = gp_pipeline_lock_run(p)->account[0].marks.cap;
    gp_pipeline_unlock_run(p);
}

TEST_SOME(long_run, sizeof long_runs / sizeof *long_runs, 6, 1)
{
    const char *dir = pipe_dir();
    size_t entries = 0;
    pipe_text(dir, "drop.lua", "local by\nfunction init(stage) by = stage.params.by end\n"
              "function process(frame, x, y) if frame.index % by == 0 then return 'drop' end y:copy(x) end\n");
    pipe_text(dir, "fail.lua", "local by\nfunction init(stage) by = stage.params.by end\n"
              "function process(frame, x, y) if frame.index % by == 0 then error('no') end y:copy(x) end\n");
    pipe_text(dir, "count.lua", "local n\nfunction init(stage) n = stage.params.n end\n"
              "function produce(frame, y) if frame.index == n then return false end y[1] = frame.index end\n");
    /* Of a script nobody knows how many frames it makes. */
    bool known = !strstr(long_runs[_i].stages, "tail: drop");
    char *yaml = format("on_error: drop\nbuffers: {a: {dtype: f32, shape: [1]}}\nstages:\n"
        "  - {%s: %d%s, out: a}\n%s", known ? "use: generate, frames" : "use: lua, script: count.lua, params: {n", N,
        known ? "" : "}", long_runs[_i].stages);
    pipe_result r = pipe_run_then(dir, yaml, "cpu", NULL, (gp_run_options){ 0 }, look, &entries);
    ck_assert_msg(r.outcome == GP_DONE, "%s: %s", long_runs[_i].what, pipe_said(&r.errs));
    gp_account x = r.account[0];
    ck_assert_msg(x.in == N && x.out == (uint64_t)long_runs[_i].out && x.dropped == (uint64_t)long_runs[_i].dropped
                  && x.failed == (uint64_t)long_runs[_i].failed, "%s: %d in, %d out, %d dropped, %d failed",
                  long_runs[_i].what, (int)x.in, (int)x.out, (int)x.dropped, (int)x.failed);
    ck_assert_msg(entries > 0 && entries <= ENTRIES, "%s: room for %zu entries", long_runs[_i].what, entries);
}

/* Groups of two of five frames, of which it is known that no more come, though their end is not told yet: the last one
 * is made of one frame. Of a run that has failed it is not, and what was made of it before that stands. */
static const struct { uint64_t next; bool failed; gp_look look; int n; } rests[] = {
    { 0, false, GP_LOOK_GO, 3 }, { 2, false, GP_LOOK_GO, 1 }, { 3, false, GP_LOOK_WAIT, 0 },
    { 0, true, GP_LOOK_GO, 2 }, { 2, true, GP_LOOK_WAIT, 0 }, { 3, true, GP_LOOK_WAIT, 0 },
};

TEST_EACH(a_rest_of_a_run_that_fails, rests)
{
    static gp_run run;
    static gp_ringrt r;
    static gp_actorrt p;
    const gp_regroup twos = { .step = 2, .repeat = 1, .take = 2, .make = 1, .every = 1, .stack = true };
    gp_ring_end in = { .ring = &r };
    int n = 0;
    p.run = &run, p.regroup = &twos, p.in = &in, p.nin = 1;
    atomic_store(&r.produced.at, 5), atomic_store(&r.most, 5), atomic_store(&r.end, GP_UNKNOWN);
    atomic_store(&run.failed, rests[_i].failed);
    ck_assert_int_eq(gp_actor_look(&p, rests[_i].next, 4, &n), rests[_i].look);
    ck_assert_int_eq(n, rests[_i].n);
}

CASES_AND(regroup)
