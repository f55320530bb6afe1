/* test_again.c - a pipeline that is run again, and several that run at the same time. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include "pipe.h"

static const char *dir;

static gp_pipeline *compile(const char *yaml)
{
    static const char *const set[] = { "device=cpu" };
    return pipe_compiled(dir, yaml, (gp_config){ .set = set, .nset = 1 });
}

static void set_up(void)
{
    dir = pipe_dir();
    pipe_text(dir, "k.cu", "extern \"C\" __global__ void k(const float *in, float *out, int n)\n"
              "{\n    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n) out[i] = 2 * in[i];\n}\n");
    pipe_text(dir, "sum.lua", "local n = 0\nfunction process(f, x, y)\n  n = n + 1\n  y:scale(x, 1, n)\nend\n");
    pipe_text(dir, "third.lua", "function process(f, x, y)\n  if f.index % 3 == 2 then return 'drop' end\n  y:copy(x)\nend\n");
    pipe_text(dir, "fails.lua", "function process(f, x, y)\n  if f.index == 7 and os.getenv('AGAIN_FAILS') then error('as asked') end\n"
              "  y:copy(x)\nend\n");
}

#define BUFFERS "buffers: {a: {dtype: f32, shape: [50]}}\n"

static const struct { const char *name, *yaml; uint64_t in, out; } pipelines[] = {
    { "host", BUFFERS "stages: [{use: generate, frames: 30, out: a}, {use: write, path: out.raw}]\n", 30, 30 },
    { "state", BUFFERS "stages: [{use: generate, frames: 30, out: a}, {use: lua, script: sum.lua},\n"
      "  {use: fir, taps: [1, 2, 1]}, {use: write, path: out.raw}]\n", 30, 30 },
    { "kernel", BUFFERS "stages: [{use: generate, frames: 30, out: a},\n"
      "  {use: kernel, source: k.cu, threads: out.size, args: [in, out, {i32: in.size}]}, {use: scale, a: 3}, {use: write, path: out.raw}]\n",
      30, 30 },
    { "holes", BUFFERS "stages: [{use: generate, frames: 30, out: a}, {use: lua, script: third.lua},\n"
      "  {use: write, path: out.raw}]\n", 30, 20 },
    { "frames together", "buffers: {a: {dtype: f32, shape: [50]}, v: {like: a}, u: {carry: v, init: 1}}\n"
      "stages: [{use: generate, frames: 30, out: a}, {use: expr, in: {a: a, u: u}, out: v, expr: a + 0.5 * u},\n"
      "  {use: loop, in: {x: v}, out: {y: w}, times: 5, carry: {x: y}, stages: [{use: scale, a: 0.75, in: x, out: y}]},\n"
      "  {use: mix, op: mean, frames: 7, in: w}, {use: window, frames: 2}, {use: write, path: out.raw}]\n", 30, 30 },
    { "files", BUFFERS "stages: [{use: read, path: in.raw, out: a}, {use: write, path: out.raw, durable: none}]\n", 8, 8 },
};

static gp_outcome run(gp_pipeline *p, gp_errs *errs)
{
    *errs = (gp_errs){ .n = 0 };
    return gp_pipeline_run(p, &(gp_run_options){ .timed = true }, errs);
}

/* Each run makes the same file, counts the same, and says that it replaced the one of the run before. */
TEST_EACH(again, pipelines)
{
    float in[400];
    for (int i = 0; i < 400; i++)
        in[i] = (float)i;
    pipe_file(dir, "in.raw", in, sizeof in);
    gp_pipeline *p = compile(pipelines[_i].yaml);
    char *first = NULL;
    size_t nfirst = 0, n;
    for (int k = 0; k < 5; k++) {
        gp_errs errs;
        gp_account a;
        ck_assert_msg(run(p, &errs) == GP_DONE, "%s, run %d: %s", pipelines[_i].name, k, errs.e[0].msg);
        ck_assert_int_eq(errs.n, k > 0);
        ck_assert(!k || strstr(errs.e[0].msg, "replaced a file"));
        ck_assert_int_eq(gp_accounts(p, &a, 1), 1);
        ck_assert_uint_eq(a.in, pipelines[_i].in);
        ck_assert_uint_eq(a.out, pipelines[_i].out);
        char *made = pipe_read(dir, "out.raw", &n);
        ck_assert_ptr_nonnull(made);
        ck_assert(n > 0 && (!first || (n == nfirst && !memcmp(made, first, n))));
        if (first)
            free(made);
        else
            first = made, nfirst = n;
    }
    free(first);
    gp_pipeline_destroy(p);
}

/* A run that failed, one that was cancelled before it and one that was cancelled in it leave a pipeline that runs. */
TEST(after_all_ends)
{
    gp_errs errs;
    gp_account a;
    char *made;
    size_t n;
    gp_pipeline *p = compile(BUFFERS "stages: [{use: generate, frames: 30, out: a}, {use: lua, script: fails.lua},\n"
             "  {use: write, path: out.raw}]\n");
    setenv("AGAIN_FAILS", "1", 1);
    ck_assert_int_eq(run(p, &errs), GP_ERROR);
    ck_assert_ptr_nonnull(strstr(errs.e[0].msg, "as asked"));
    ck_assert_ptr_null(pipe_read(dir, "out.raw", &n));
    unsetenv("AGAIN_FAILS");
    gp_cancel(p, 1);
    ck_assert_int_eq(run(p, &errs), GP_DRAINED);
    for (int k = 0; k < 2; k++) {
        ck_assert_msg(run(p, &errs) == GP_DONE, "%s", errs.e[0].msg);
        ck_assert_int_eq(gp_accounts(p, &a, 1), 1);
        ck_assert_uint_eq(a.out, 30);
        made = pipe_read(dir, "out.raw", &n);
        ck_assert_uint_eq(n, 30 * 50 * 4);
        free(made);
    }
    gp_pipeline_destroy(p);
}

/* ---- at the same time ------------------------------------------------ */

typedef struct job { gp_pipeline *p; gp_outcome outcome; gp_errs errs; } job;

static void *run_job(void *arg)
{
    job *j = arg;
    j->outcome = gp_pipeline_run(j->p, NULL, &j->errs);
    return NULL;
}

/* One pipeline has one run at a time; who asks for a second gets an error, and the first goes on. */
TEST(twice_at_a_time)
{
    pthread_t t;
    gp_errs errs = { .n = 0 };
    gp_account a = { .in = 0 };
    gp_pipeline *p = compile(BUFFERS "stages: [{use: generate, out: a}, {use: discard}]\n");
    job j = { .p = p, .errs.n = 0 };
    ck_assert_int_eq(pthread_create(&t, NULL, run_job, &j), 0);
    while ((!gp_accounts(p, &a, 1) || !a.in) && pthread_tryjoin_np(t, NULL))
        sched_yield();
    ck_assert_msg(a.in, "%s", j.errs.e[0].msg);
    ck_assert_int_eq(gp_pipeline_run(p, NULL, &errs), GP_ERROR);
    ck_assert_int_eq(errs.n, 1);
    ck_assert_ptr_nonnull(strstr(errs.e[0].msg, "this pipeline is running"));
    gp_cancel(p, 1);
    pthread_join(t, NULL);
    ck_assert_int_eq(j.outcome, GP_DRAINED);
    ck_assert_int_eq(j.errs.failed, 0);
    gp_pipeline_destroy(p);
}

/* Several pipelines of one process, each run several times beside the others. */
TEST(beside_others)
{
    enum { N = 3 };
    job j[N];
    for (int i = 0; i < N; i++) {
        char *yaml = format(BUFFERS "stages: [{use: generate, frames: 40, out: a}, {use: lua, script: sum.lua},\n"
            "  {use: kernel, source: k.cu, threads: out.size, args: [in, out, {i32: in.size}]}, {use: fir, taps: [1, %d]},\n"
            "  {use: write, path: out%d.raw}]\n", i, i);
        j[i] = (job){ .p = compile(yaml) };
    }
    char *first[N] = { NULL };
    for (int k = 0; k < 3; k++) {
        pthread_t t[N];
        for (int i = 0; i < N; i++)
            ck_assert_int_eq(pthread_create(&t[i], NULL, run_job, &j[i]), 0);
        for (int i = 0; i < N; i++)
            pthread_join(t[i], NULL);
        for (int i = 0; i < N; i++) {
            size_t n;
            ck_assert_msg(j[i].outcome == GP_DONE, "%s", j[i].errs.e[0].msg);
            char *made = pipe_read(dir, format("out%d.raw", i), &n);
            ck_assert_uint_eq(n, 40 * 50 * 4);
            ck_assert(!first[i] || !memcmp(first[i], made, n));
            free(first[i]);
            first[i] = made;
        }
    }
    for (int i = 0; i < N; i++)
        gp_pipeline_destroy(j[i].p), free(first[i]);
}

static atomic_bool over;

static void *look(void *arg)
{
    gp_pipeline *p = arg;
    gp_stage_status s[8];
    gp_buffer_status b[8];
    gp_account a;
    gp_hist h;
    size_t letters = 0;
    while (!atomic_load(&over)) {
        int ns = gp_stages_status(p, s, 8), nb = gp_buffers_status(p, b, 8);
        gp_accounts(p, &a, 1), gp_latency(p, &h), gp_syncing(p);
        sched_yield();                 /* a run may begin here: names are the pipeline's */
        for (int i = 0; i < ns; i++)
            letters += strlen(s[i].name);
        for (int i = 0; i < nb; i++)
            letters += strlen(b[i].name) + strlen(b[i].from) + strlen(b[i].to);
    }
    return (void *)(uintptr_t)letters;
}

/* Several look at the numbers all the while. */
TEST(watched)
{
    enum { N = 6 };
    pthread_t t[N];
    gp_errs errs;
    gp_stage_status first[8], last[8];
    gp_pipeline *p = compile(BUFFERS "stages: [{use: generate, frames: 20, out: a}, {use: scale, a: 2},\n"
                             "  {use: cast, dtype: f64}, {use: discard}]\nfuse: none\n");
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(pthread_create(&t[i], NULL, look, p), 0);
    for (int k = 0; k < 30; k++) {
        ck_assert_msg(run(p, &errs) == GP_DONE, "%s", errs.e[0].msg);
        ck_assert_int_eq(gp_stages_status(p, k ? last : first, 8), 3);
    }
    atomic_store(&over, true);
    for (int i = 0; i < N; i++)
        pthread_join(t[i], NULL);
    ck_assert_str_eq(first[1].name, "scale..cast");
    ck_assert_ptr_eq(first[1].name, last[1].name);
    gp_pipeline_destroy(p);
}

TEST_SUITE(again, set_up, NULL, 0)
