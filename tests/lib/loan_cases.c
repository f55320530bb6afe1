/* loan_cases.c - frames that the program pushes and pulls: slots of rings on loan. */
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include "cases.h"

static const char *dir;

static void set_up(void)
{
    dir = pipe_dir();
    pipe_text(dir, "copy.lua", "function process(f, x, y) y:copy(x) end");
    pipe_text(dir, "odd.lua", "function process(f, x, y) if f.index % 2 == 1 then return 'drop' end y:copy(x) end");
}

/* A pipeline that is compiled, with its first input and output. */
typedef struct rig {
    gp_pipeline *p;
    gp_input *in;
    gp_output *out;
    gp_errs errs;
} rig;

static void rig_make(rig *r, const char *yaml)
{
    *r = (rig){ .p = cases_compiled(dir, on, yaml) };
    r->in = gp_pipeline_input(r->p, "in");
    r->out = gp_pipeline_output(r->p, "out");
}

static void rig_start(rig *r, const char *yaml)
{
    rig_make(r, yaml);
    ck_assert(gp_pipeline_start(r->p, NULL, &r->errs));
}

static const char *rig_error(const rig *r)
{
    return r->errs.n ? r->errs.e[0].msg : "";
}

static void rig_end(rig *r, gp_outcome outcome)
{
    ck_assert_msg(gp_pipeline_wait(r->p) == outcome, "%s", rig_error(r));
    gp_pipeline_destroy(r->p);
}

static gp_account rig_account(const rig *r)
{
    gp_account a;
    ck_assert_int_eq(gp_accounts(r->p, &a, 1), 1);
    return a;
}

static bool push(gp_input *in, float value)
{
    gp_loan l;
    if (gp_push_begin(in, &l, -1) != GP_LOAN_OK)
        return false;
    float *x = l.view.data;
    for (int64_t i = 0; i < gp_count(&l.view.type); i++)
        x[i] = value;
    return gp_push_end(in, &l);
}

/* Is the next frame that one, with that value in each element? */
static void pulls(gp_output *out, uint64_t index, float value)
{
    gp_loan l;
    ck_assert_int_eq(gp_pull_begin(out, &l, -1), GP_LOAN_OK);
    ck_assert_uint_eq(l.index, index);
    for (int64_t i = 0; i < gp_count(&l.view.type); i++)
        ck_assert_float_eq(((const float *)l.view.data)[i], value);
    ck_assert(gp_pull_end(out, &l));
}

/* What is between `in` and `out`, and what it makes of x. */
static const struct { const char *stages; float a, b; } between[] = {
    { "", 1, 0 },
    { "  - {use: lua, script: copy.lua}\n", 1, 0 },
    { "  - {use: scale, a: 2, b: 1}\n", 2, 1 },
    { "  - {use: lua, script: copy.lua}\n  - {use: scale, a: 3}\n  - {use: lua, script: copy.lua}\n", 3, 0 },
};

static const char *const how[] = { "depth: 1", "depth: 3", "sync: block", "sync: yield", "streams: 3\nbatch: 4" };
enum { BETWEEN = sizeof between / sizeof *between, HOW = sizeof how / sizeof *how };

static const char *yaml_of(char *to, size_t max, int i, const char *more)
{
    snprintf(to, max, "%s\nbuffers: {a: {dtype: f32, shape: [4, 8]}}\nstages:\n  - {use: input, name: in, out: a%s}\n"
             "%s  - {use: output, name: out%s}\n", how[i / BETWEEN], more, between[i % BETWEEN].stages, more);
    return to;
}

TEST_LOOP(in_turn, 0, BETWEEN * HOW)
{
    char yaml[600];
    rig r;
    rig_start(&r, yaml_of(yaml, sizeof yaml, _i, ""));
    for (int i = 0; i < 50; i++) {
        ck_assert(push(r.in, (float)i));
        pulls(r.out, (uint64_t)i, (float)i * between[_i % BETWEEN].a + between[_i % BETWEEN].b);
    }
    gp_push_close(r.in);
    gp_loan l;
    ck_assert(!push(r.in, 1));
    ck_assert_int_eq(gp_pull_begin(r.out, &l, -1), GP_LOAN_END);
    ck_assert_uint_eq(rig_account(&r).out, 50);
    rig_end(&r, GP_DONE);
}

/* Several threads of the program at either side, each with a loan of its own. */
enum { FRAMES = 300, THREADS = 3 };

static void *push_many(void *arg)
{
    rig *r = arg;
    gp_loan l;
    while (gp_push_begin(r->in, &l, -1) == GP_LOAN_OK && l.index < FRAMES) {
        for (int i = 0; i < 32; i++)
            ((float *)l.view.data)[i] = (float)l.index;
        if (l.index % 3 == 0)
            sched_yield();             /* those behind it may come back before it */
        gp_push_end(r->in, &l);
    }
    if (l.held) {
        gp_push_drop(r->in, &l);
        gp_push_close(r->in);
    }
    return NULL;
}

typedef struct puller { rig *r; int row; unsigned char seen[2 * FRAMES]; bool wrong; } puller;

static void *pull_many(void *arg)
{
    puller *q = arg;
    gp_loan l;
    while (gp_pull_begin(q->r->out, &l, -1) == GP_LOAN_OK) {
        const float *x = l.view.data;
        for (int i = 0; i < 32; i++)
            q->wrong |= x[i] != (float)l.index * between[q->row].a + between[q->row].b;
        q->seen[l.index]++;
        gp_pull_end(q->r->out, &l);
    }
    return NULL;
}

TEST_LOOP(many_threads, 0, BETWEEN * HOW)
{
    char yaml[600];
    rig r;
    static puller q[THREADS];
    pthread_t t[2 * THREADS];
    int n = _i % 2 ? THREADS : 1;
    rig_start(&r, yaml_of(yaml, sizeof yaml, _i, n > 1 ? ", workers: 3" : ""));
    for (int i = 0; i < n; i++) {
        q[i] = (puller){ .r = &r, .row = _i % BETWEEN };
        pthread_create(&t[i], NULL, push_many, &r);
        pthread_create(&t[n + i], NULL, pull_many, &q[i]);
    }
    for (int i = 0; i < 2 * n; i++)
        pthread_join(t[i], NULL);
    for (int f = 0; f < FRAMES; f++) {
        int seen = 0;
        for (int i = 0; i < n; i++)
            seen += q[i].seen[f];
        ck_assert_msg(seen == 1, "frame %d came %d times", f, seen);
    }
    for (int i = 0; i < n; i++)
        ck_assert(!q[i].wrong);
    gp_account a = rig_account(&r);
    ck_assert_uint_eq(a.out, FRAMES);
    ck_assert_uint_eq(a.in, a.out + a.dropped);
    rig_end(&r, GP_DONE);
}

/* Several loans at once come back in any order, and go on in theirs. */
TEST(any_order)
{
    rig r;
    gp_loan l[3];
    rig_start(&r, "depth: 3\nbuffers: {a: {dtype: f32, shape: [4]}}\nstages:\n"
              "  - {use: input, name: in, workers: 3, out: a}\n  - {use: output, name: out, workers: 2}\n");
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(gp_push_begin(r.in, &l[i], -1), GP_LOAN_OK);
        ((float *)l[i].view.data)[0] = (float)i;
    }
    gp_loan none, out[2];
    ck_assert_int_eq(gp_push_begin(r.in, &none, 0), GP_LOAN_TIMEOUT);
    ck_assert(gp_push_end(r.in, &l[2]) && gp_push_end(r.in, &l[1]));
    ck_assert_int_eq(gp_pull_begin(r.out, &none, 0), GP_LOAN_TIMEOUT);
    ck_assert(gp_push_end(r.in, &l[0]));
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(gp_pull_begin(r.out, &out[i], -1), GP_LOAN_OK);
        ck_assert_uint_eq(out[i].index, (unsigned)i);
    }
    ck_assert(gp_pull_end(r.out, &out[1]) && gp_pull_end(r.out, &out[0]));
    ck_assert_int_eq(gp_pull_begin(r.out, &out[0], -1), GP_LOAN_OK);
    ck_assert_float_eq(*(const float *)out[0].view.data, 2);
    ck_assert(gp_pull_end(r.out, &out[0]));
    gp_push_close(r.in);
    rig_end(&r, GP_DONE);
}

/* Frames that the program drops, or a stage, are holes: numbers stay. */
TEST(holes)
{
    rig r;
    gp_loan l;
    rig_start(&r, "depth: 12\nbuffers: {a: {dtype: f32, shape: [4]}}\nstages:\n"
              "  - {use: input, name: in, out: a}\n  - {use: lua, script: odd.lua}\n  - {use: output, name: out}\n");
    for (int i = 0; i < 10; i++)
        if (i % 3)
            ck_assert(push(r.in, (float)i));
        else
            ck_assert(gp_push_begin(r.in, &l, -1) == GP_LOAN_OK && gp_push_drop(r.in, &l));
    gp_push_close(r.in);
    for (int i = 2; i < 10; i += 2)
        if (i % 3)
            pulls(r.out, (uint64_t)i, (float)i);
    ck_assert_int_eq(gp_pull_begin(r.out, &l, -1), GP_LOAN_END);
    ck_assert_int_eq(gp_pipeline_wait(r.p), GP_DONE);
    gp_account a = rig_account(&r);
    ck_assert_uint_eq(a.in, 10);
    ck_assert_uint_eq(a.out, 3);
    ck_assert_uint_eq(a.dropped, 7);
    gp_pipeline_destroy(r.p);
}

/* Fewer rows, sizes within bounds, and what does not fit. */
static const struct { const char *shape; int64_t dim[2]; const char *error; } shapes[] = {
    { "[4, 8]", { 3, 8 }, NULL },
    { "[4, 8]", { 0, 8 }, NULL },
    { "[\"<=4\", \"<=8\"]", { 2, 5 }, NULL },
    { "[4, 8]", { 5, 8 }, "stage 'in' made 5 rows of 'out' in frame 0, which is outside 0..4" },
    { "[4, 8]", { 4, 7 }, "stage 'in' made 'out' of frame 0 f32 [4, 7], which does not fit in f32 [4, 8]" },
    { "[\"<=4\", \"<=8\"]", { 4, 9 }, "stage 'in' made 'out' of frame 0 f32 [4, 9], which does not fit in f32 [<=4, "
                                           "<=8]" },
};

TEST_EACH(shapes_of_frames, shapes)
{
    rig r;
    gp_loan l;
    char *yaml = format("buffers: {a: {dtype: f32, shape: %s}}\nstages:\n  - {use: input, name: in, out: a}\n"
             "  - {use: output, name: out}\n", shapes[_i].shape);
    rig_start(&r, yaml);
    ck_assert_int_eq(gp_push_begin(r.in, &l, -1), GP_LOAN_OK);
    ck_assert_int_eq(l.view.rows, 4);
    memset(l.view.data, 0, 4 * 8 * sizeof(float));
    l.view.type.dim[0] = shapes[_i].dim[0], l.view.type.dim[1] = shapes[_i].dim[1];
    bool fits = !shapes[_i].error;
    ck_assert_int_eq(gp_push_end(r.in, &l), fits);
    if (fits) {
        ck_assert_int_eq(gp_pull_begin(r.out, &l, -1), GP_LOAN_OK);
        ck_assert_int_eq(l.view.type.dim[0], shapes[_i].dim[0]);
        ck_assert_int_eq(l.view.type.dim[1], shapes[_i].dim[1]);
        ck_assert(gp_pull_end(r.out, &l));
        gp_push_close(r.in);
    } else {
        ck_assert_int_eq(gp_push_begin(r.in, &l, -1), GP_LOAN_END);
        ck_assert_int_eq(gp_pull_begin(r.out, &l, -1), GP_LOAN_END);
    }
    ck_assert_int_eq(gp_pipeline_wait(r.p), fits ? GP_DONE : GP_ERROR);
    ck_assert_str_eq(rig_error(&r), fits ? "" : shapes[_i].error);
    gp_pipeline_destroy(r.p);
}

/* What a loan may not be used for. */
TEST(misuse)
{
    rig r;
    gp_loan l, again;
    rig_make(&r, "buffers: {a: {dtype: f32, shape: [4]}}\nstages:\n  - {use: input, name: in, out: a}\n"
             "  - {use: output, name: out}\n");
    ck_assert(!gp_pipeline_input(r.p, "out") && !gp_pipeline_output(r.p, "in") && !gp_pipeline_input(r.p, "other"));
    ck_assert_int_eq(gp_push_begin(r.in, &l, 0), GP_LOAN_TIMEOUT);     /* there is no run */
    ck_assert(!l.held && !gp_push_end(r.in, &l));
    ck_assert_int_eq(gp_pipeline_wait(r.p), GP_ERROR);
    ck_assert(gp_pipeline_start(r.p, NULL, &r.errs));
    ck_assert(!gp_pipeline_start(r.p, NULL, &(gp_errs){ .n = 0 }));
    ck_assert_int_eq(gp_push_begin(r.in, &l, -1), GP_LOAN_OK);
    ck_assert_int_eq(gp_push_begin(r.in, &again, 0), GP_LOAN_TIMEOUT); /* it has its only worker */
    ck_assert(!gp_pull_end(r.out, &l));
    ck_assert(gp_push_end(r.in, &l) && !gp_push_end(r.in, &l) && !gp_push_drop(r.in, &l));
    gp_push_close(r.in);
    gp_push_close(r.in);
    pulls(r.out, 0, ((float *)l.view.data)[0]);
    ck_assert_int_eq(gp_push_begin(r.in, &l, -1), GP_LOAN_END);
    ck_assert_int_eq(gp_pipeline_wait(r.p), GP_DONE);
    ck_assert_int_eq(gp_pull_begin(r.out, &l, -1), GP_LOAN_END);
    gp_pipeline_destroy(r.p);
}

/* A run of it by somebody who does not push, as the command is. */
static const struct { bool in, out; const char *error; } asked[] = {
    { false, true, "a program has to push frames into this stage (gp_pipeline_input), and this one does not: see 'gpipe "
                   "help embed'" },
    { true, false, "a program has to pull the frames of this stage (gp_pipeline_output), and this one does not: see "
                   "'gpipe help embed'" },
};

TEST_EACH(not_asked_for, asked)
{
    gp_errs errs = { .n = 0 };
    gp_pipeline *p = cases_compiled(dir, on, "buffers: {a: {dtype: f32, shape: [4]}}\nstages:\n"
                                   "  - {use: input, name: in, out: a}\n  - {use: output, name: out}\n");
    if (asked[_i].in)
        gp_pipeline_input(p, "in");
    if (asked[_i].out)
        gp_pipeline_output(p, "out");
    ck_assert(_i ? gp_pipeline_run(p, NULL, &errs) == GP_ERROR : !gp_pipeline_start(p, NULL, &errs));
    first_error_is(&errs, _i ? 4 : 3, asked[_i].error);
    gp_pipeline_destroy(p);
}

/* Each run begins with frame 0. */
TEST(run_again)
{
    rig r;
    rig_make(&r, "buffers: {a: {dtype: f32, shape: [4]}}\nstages:\n  - {use: input, name: in, out: a}\n"
             "  - {use: scale, a: 2}\n  - {use: output, name: out}\n");
    for (int i = 0; i < 3; i++) {
        ck_assert(gp_pipeline_start(r.p, NULL, &r.errs));
        for (int f = 0; f < 5; f++) {
            ck_assert(push(r.in, (float)(f + i)));
            pulls(r.out, (uint64_t)f, 2 * (float)(f + i));
        }
        gp_push_close(r.in);
        ck_assert_int_eq(gp_pipeline_wait(r.p), GP_DONE);
    }
    gp_pipeline_destroy(r.p);
}

/* A stopped run gives out what was pushed, one that ends at once does not; who waits for it hears. */
TEST_LOOP(cancelled, 1, 3)
{
    rig r;
    gp_loan l;
    rig_start(&r, "depth: 4\nbuffers: {a: {dtype: f32, shape: [4]}}\nstages:\n  - {use: input, name: in, out: a}\n"
              "  - {use: output, name: out}\n");
    for (int i = 0; i < 3; i++)
        ck_assert(push(r.in, (float)i));
    gp_cancel(r.p, _i);
    gp_loan_status s;
    while ((s = gp_push_begin(r.in, &l, -1)) == GP_LOAN_OK)    /* until it is heard */
        gp_push_drop(r.in, &l);
    ck_assert_int_eq(s, GP_LOAN_END);
    int n = 0;
    while (gp_pull_begin(r.out, &l, -1) == GP_LOAN_OK && gp_pull_end(r.out, &l))
        n++;
    ck_assert(n == 3 || _i == 2);
    rig_end(&r, _i == 1 ? GP_DRAINED : GP_NOT_DRAINED);
}

/* Several inputs that are joined, several outputs; times, names and numbers. */
TEST(joined)
{
    rig r;
    gp_loan l;
    rig_make(&r, "depth: 8\nmetadata: [gain, time]\n"
             "buffers: {a: {dtype: f32, shape: [4]}, b: {dtype: f32, shape: [4]}}\nstages:\n"
             "  - {use: input, name: in, out: a}\n  - {use: input, name: other, out: b}\n"
             "  - {use: expr, in: {a: a, b: b}, expr: a + b, out: c}\n  - {use: output, name: out, in: c}\n"
             "  - {use: output, name: raw, in: b}\n");
    gp_input *other = gp_pipeline_input(r.p, "other");
    gp_output *raw = gp_pipeline_output(r.p, "raw");
    ck_assert(gp_pipeline_start(r.p, NULL, &r.errs));
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(gp_push_begin(r.in, &l, -1), GP_LOAN_OK);
        for (int k = 0; k < 4; k++)
            ((float *)l.view.data)[k] = (float)i;
        double gain = i + 0.5;
        l.time_ns = 1000 + i, l.name = "shot";
        ck_assert(gp_loan_set(&l, "gain", &gain) && !gp_loan_set(&l, "loss", &gain) && gp_push_end(r.in, &l));
        ck_assert(!gp_loan_set(&l, "gain", &gain));
        ck_assert(push(other, 10));
        ck_assert_int_eq(gp_pull_begin(r.out, &l, -1), GP_LOAN_OK);
        ck_assert(gp_loan_get(&l, "gain", &gain) && gain == i + 0.5 && !gp_loan_get(&l, "loss", &gain));
        ck_assert_int_eq(l.time_ns, 1000 + i);
        ck_assert_str_eq(l.name, "shot");
        ck_assert_float_eq(*(const float *)l.view.data, (float)i + 10);
        ck_assert(gp_pull_end(r.out, &l));
        pulls(raw, (uint64_t)i, 10);
    }
    gp_push_close(r.in);
    gp_push_close(other);
    ck_assert_int_eq(gp_pull_begin(raw, &l, -1), GP_LOAN_END);
    rig_end(&r, GP_DONE);
}

/* An event loop in one thread: descriptors, and no wait in _begin. */
TEST_LOOP(event_loop, 0, BETWEEN)
{
    enum { N = 200 };
    char yaml[600];
    rig r;
    gp_loan l;
    int pushed = 0, pulled = 0;
    bool ended = false;
    rig_make(&r, yaml_of(yaml, sizeof yaml, _i + BETWEEN, ""));
    struct pollfd fd[2] = { { gp_input_fd(r.in), POLLIN, 0 }, { gp_output_fd(r.out), POLLIN, 0 } };
    ck_assert_int_eq(fd[0].fd, gp_input_fd(r.in));
    ck_assert(gp_pipeline_start(r.p, NULL, &r.errs));
    while (!ended) {
        ck_assert_int_gt(poll(fd + (pushed == N), pushed == N ? 1 : 2, -1), 0);
        gp_loan_status s = GP_LOAN_TIMEOUT;
        while (pushed < N && (s = gp_push_begin(r.in, &l, 0)) == GP_LOAN_OK) {
            for (int i = 0; i < 32; i++)
                ((float *)l.view.data)[i] = (float)pushed;
            ck_assert(gp_push_end(r.in, &l));
            if (++pushed == N)
                gp_push_close(r.in);
        }
        while ((s = gp_pull_begin(r.out, &l, 0)) == GP_LOAN_OK) {
            ck_assert_uint_eq(l.index, (unsigned)pulled);
            ck_assert_float_eq(*(const float *)l.view.data, (float)pulled * between[_i].a + between[_i].b);
            ck_assert(gp_pull_end(r.out, &l));
            pulled++;
        }
        ended = s == GP_LOAN_END;
    }
    ck_assert_int_eq(pulled, N);
    rig_end(&r, GP_DONE);
}

/* A loan that ends after a run was cancelled makes no room for another frame, whatever gp_watch has seen by then. */
TEST(ends_with_its_run)
{
    for (int i = 0; i < 100; i++) {
        rig r;
        gp_loan l;
        rig_start(&r, "depth: 1\nbuffers: {a: {dtype: f32, shape: [4]}}\nstages:\n"
                  "  - {use: input, name: in, out: a}\n  - {use: output, name: out}\n");
        ck_assert(push(r.in, 1));
        ck_assert_int_eq(gp_pull_begin(r.out, &l, -1), GP_LOAN_OK);
        gp_cancel(r.p, 2);
        ck_assert(gp_pull_end(r.out, &l));
        ck_assert_int_eq(gp_push_begin(r.in, &l, 0), GP_LOAN_END);
        rig_end(&r, GP_NOT_DRAINED);
    }
}

/* What of a stall is the program's is said. Nothing moves from then on, however fast the machine is. */
static const struct { int pushed; bool pull, keep; const char *said; int64_t wait; } stalls[] = {
    { 0, false, true, "had frame 0 of stage 'in' all the while, and that stage lends 1 at a time", -1 },
    { 2, true, false, "nothing moved", -1 },   /* one thread, which pulled, and pushes more than there is room for */
    { 1, false, false, "nothing moved", -1 },  /* ... which has not pulled yet */
    { 0, false, true, "the program has had frame 0 of stage 'in' all the while", GP_LOAN_SLICE },
    { 2, true, false, "nothing moved", GP_LOAN_SLICE },
    { 1, false, false, "nothing moved", GP_LOAN_SLICE },
};

TEST_EACH(stall, stalls)
{
    rig r;
    gp_loan l = { .held = NULL }, left;
    gp_loan_status s = GP_LOAN_END;
    rig_start(&r, "depth: 1\nstall_timeout: 300ms\nbuffers: {a: {dtype: f32, shape: [4]}}\nstages:\n"
              "  - {use: input, name: in, out: a}\n  - {use: output, name: out}\n");
    for (int i = 0; i < stalls[_i].pushed; i++) {
        ck_assert(push(r.in, 1));
        if (stalls[_i].pull && !i)
            pulls(r.out, 0, 1);
    }
    if (stalls[_i].keep)
        ck_assert_int_eq(gp_push_begin(r.in, &l, -1), GP_LOAN_OK);
    else
        while ((s = gp_push_begin(r.in, &left, stalls[_i].wait)) == GP_LOAN_TIMEOUT)
            ;
    ck_assert_int_eq(s, GP_LOAN_END);
    while ((s = gp_pull_begin(r.out, &left, stalls[_i].wait)) != GP_LOAN_END)      /* of what was pushed */
        if (s == GP_LOAN_OK)
            gp_pull_end(r.out, &left);
    if (l.held)
        gp_push_drop(r.in, &l);
    ck_assert_int_eq(gp_pipeline_wait(r.p), GP_ERROR);
    ck_assert_msg(strstr(rig_error(&r), stalls[_i].said), "%s", rig_error(&r));
    if (!stalls[_i].keep) {
        bool told = false;
        for (int i = 0; i < r.errs.n; i++)
            told |= strstr(r.errs.e[i].msg, "the program has pulled no frame of stage 'out' for ") != NULL;
        ck_assert(told);
    }
    gp_pipeline_destroy(r.p);
}

/* Many frames in one call: what fits, is short, fails, and the end. */
TEST(frames)
{
    enum { N = 6 };
    rig r;
    float a[N][4][2], b[N][4][2];
    gp_type each[N];
    uint64_t number[N];
    int64_t done;
    bool failed;
    unsigned varies;
    rig_start(&r, "depth: 16\nmetadata: [gain]\nbuffers: {a: {dtype: f32, shape: [4, 2]}}\nstages:\n"
              "  - {use: input, name: in, on_error: drop, out: a}\n  - {use: output, name: out}\n");
    const char *const keys[] = { "none", "gain" };
    int64_t time_ns[N] = { 0, 5, 6 }, came[N];
    double meta[N][2] = { { NAN, 1 }, { 7, 0.5 }, { NAN, 9 } }, has[N][2];
    gp_frames f = { .n = N, .data = a, .each = each, .time_ns = time_ns, .keys = keys, .nkeys = 2, .meta = *meta },
              g = { .n = 2 * N, .data = b, .each = each, .number = number, .time_ns = came, .keys = keys, .nkeys = 2,
                    .meta = *has };
    gp_input_type(r.in, &f.type, &varies);
    gp_output_type(r.out, &g.type, &varies);
    ck_assert(gp_type_same(&f.type, &g.type) && !varies && f.type.ndim == 2 && f.type.dim[0] == 4);
    for (int i = 0; i < N; i++) {
        each[i] = f.type;
        for (int k = 0; k < 8; k++)
            a[i][k / 2][k % 2] = (float)(10 * i + k);
    }
    each[1].dim[0] = 3, each[2].dim[1] = 3;            /* the last is none that the buffer may have */
    ck_assert_int_eq(gp_push_frames(r.in, &f, -1, &done, &failed), GP_LOAN_OK);
    ck_assert(done == 3 && failed);
    f.data = a[3], f.each = NULL, f.time_ns = NULL, f.meta = NULL, f.n = N - 3;
    ck_assert_int_eq(gp_push_frames(r.in, &f, -1, &done, &failed), GP_LOAN_OK);
    ck_assert(done == 3 && !failed);
    g.n = N - 1;
    ck_assert_int_eq(gp_pull_frames(r.out, &g, -1, &done), GP_LOAN_OK);
    ck_assert_int_eq(done, N - 1);
    for (int i = 0; i < N - 1; i++) {
        int of = i + (i > 1);
        ck_assert_uint_eq(number[i], (unsigned)of);
        ck_assert_int_eq(each[i].dim[0], i == 1 ? 3 : 4);
        ck_assert_mem_eq(b[i], a[of], gp_bytes(&each[i]));
        ck_assert(i == 1 ? came[i] == 5 : came[i] > 1000000);      /* when it was pushed */
        ck_assert(isnan(has[i][0]) && (of < 2 ? has[i][1] == meta[of][1] : isnan(has[i][1])));
    }
    ck_assert_int_eq(gp_pull_frames(r.out, &g, 0, &done), GP_LOAN_TIMEOUT);
    ck_assert_int_eq(done, 0);
    gp_push_close(r.in);
    ck_assert_int_eq(gp_pull_frames(r.out, &g, -1, &done), GP_LOAN_END);
    ck_assert_int_eq(gp_push_frames(r.in, &f, -1, &done, &failed), GP_LOAN_END);
    rig_end(&r, GP_DONE);
}

/* What a program prints: the plan at any time, the report of a run that was timed. */
TEST(printed)
{
    static const struct { gp_plan_form form; const char *has; } plans[] = { { GP_PLAN_TEXT, "\nstages\n" },
                                                                            { GP_PLAN_JSON, "\"stages\"" } };
    rig r;
    char *text = NULL;
    size_t n;
    rig_make(&r, "depth: 4\nmetadata: [gain]\nbuffers: {a: {dtype: f32, shape: [4]}}\nstages:\n"
             "  - {use: input, name: in, out: a}\n  - {use: output, name: out}\n");
    for (int i = 0; i < 2; i++) {
        FILE *f = open_memstream(&text, &n);
        ck_assert(gp_pipeline_print_plan(r.p, plans[i].form, NULL, f, &r.errs) && !fclose(f));
        ck_assert_msg(strstr(text, plans[i].has), "%s", text);
        free(text);
    }
    ck_assert(!gp_pipeline_print_plan(r.p, GP_PLAN_SVG, "{}", stderr, &r.errs));
    ck_assert_str_eq(r.errs.e[0].at.file, "report");
    const char *const *keys;
    ck_assert(gp_pipeline_meta_keys(r.p, &keys) == 1 && !strcmp(keys[0], "gain"));
    for (int timed = 0; timed < 2; timed++) {
        gp_run_options o = { .timed = timed };
        r.errs = (gp_errs){ .n = 0 };
        ck_assert(gp_pipeline_start(r.p, &o, &r.errs));
        for (uint64_t i = 0; i < 3; i++) {     /* by turns, so that each is idle for longer than it has a frame */
            ck_assert(push(r.in, (float)i));
            pulls(r.out, i, (float)i);
        }
        gp_push_close(r.in);
        gp_outcome outcome = gp_pipeline_wait(r.p);
        ck_assert_int_eq(outcome, GP_DONE);
        const char *set = "vars.n=1";
        for (gp_report_form form = GP_REPORT_TEXT; form <= GP_REPORT_JSON; form++) {
            r.errs = (gp_errs){ .n = 0 };
            FILE *f = open_memstream(&text, &n);
            ck_assert(gp_pipeline_print_report(r.p, form, outcome, &set, 1, f, &r.errs) == timed && !fclose(f));
            ck_assert_int_eq(r.errs.failed, !timed);
            ck_assert(timed || strstr(r.errs.e[0].msg, "no times were taken"));
            if (timed && form == GP_REPORT_JSON)
                ck_assert_msg(strstr(text, "\"outcome\": \"done\"") && strstr(text, set)
                              && !strstr(text, "\"busy\": -"), "%s", text);
            else if (timed)
                ck_assert_msg(strstr(text, "no input") && strstr(text, "\n  out ") && strstr(text, "too short"), "%s", text);
            free(text);
        }
    }
    gp_pipeline_destroy(r.p);
}

static const char two_stages[] = "depth: 4\nbuffers: {a: {dtype: f32, shape: [4]}}\nstages:\n"
                                 "  - {use: input, name: in, out: a}\n  - {use: output, name: out}\n";

/* A paused run goes on under another pipeline, where the frames that wait are; threads that come late to the first hear
 * of it. A pipeline whose frames nobody would push is refused before the pause. */
typedef struct goer { gp_pipeline *p, *from; gp_errs errs; gp_outcome outcome; } goer;

static void *go_on(void *arg)
{
    goer *g = arg;
    g->outcome = gp_pipeline_go_on(g->p, g->from, NULL, &g->errs);
    return NULL;
}

TEST(goes_on)
{
    rig r[3];
    gp_loan l;
    gp_errs errs = { .n = 0 };
    pthread_t t;
    rig_start(&r[0], two_stages);
    rig_make(&r[1], two_stages);
    r[2].p = cases_compiled(dir, on, two_stages);
    for (int i = 0; i < 3; i++)
        ck_assert(push(r[0].in, (float)i));
    ck_assert(!gp_pipeline_retune(r[2].p, r[0].p, NULL, &errs) && errs.failed);
    pulls(r[0].out, 0, 0);
    errs = (gp_errs){ .n = 0 };
    ck_assert_msg(gp_pipeline_retune(r[1].p, r[0].p, NULL, &errs), "%s", errs.e[0].msg);
    ck_assert_int_eq(gp_push_begin(r[0].in, &l, -1), GP_LOAN_PAUSED);
    ck_assert_int_eq(gp_pipeline_wait(r[0].p), GP_PAUSED);
    goer g = { .p = r[1].p, .from = r[0].p };
    pthread_create(&t, NULL, go_on, &g);
    pulls(r[1].out, 1, 1);
    ck_assert_int_eq(gp_push_begin(r[0].in, &l, -1), GP_LOAN_PAUSED);
    ck_assert(push(r[1].in, 3));
    pulls(r[1].out, 2, 2);
    pulls(r[1].out, 3, 3);
    gp_push_close(r[1].in);
    pthread_join(t, NULL);
    ck_assert_msg(g.outcome == GP_DONE, "%s", g.errs.e[0].msg);
    ck_assert_int_eq(gp_push_begin(r[0].in, &l, -1), GP_LOAN_PAUSED);
    ck_assert_int_eq(gp_push_begin(r[1].in, &l, -1), GP_LOAN_END);
    for (int i = 3; i-- > 0;)
        gp_pipeline_destroy(r[i].p);
}

/* An input that is closed when a pause begins, or in it, is closed for the run that goes on, under the same pipeline or
 * another. */
TEST_LOOP(closed_in_a_pause, 0, 4)
{
    enum { BEFORE, DURING } when = _i % 2;
    rig r[2];
    gp_loan l;
    pthread_t t;
    gp_errs errs = { .n = 0 };
    rig_start(&r[0], two_stages);
    rig_make(&r[1], two_stages);
    rig *to = &r[_i / 2];
    ck_assert(push(r[0].in, 0));
    ck_assert_msg(gp_pipeline_retune(r[1].p, r[0].p, NULL, &errs), "%s", errs.e[0].msg);
    if (when == BEFORE)
        gp_push_close(r[0].in);
    gp_outcome outcome = gp_pipeline_wait(r[0].p);
    if (when == DURING)
        gp_push_close(r[0].in);
    goer g = { .p = to->p, .from = r[0].p, .outcome = outcome };
    if (outcome == GP_PAUSED) {
        pthread_create(&t, NULL, go_on, &g);
        while (gp_pull_begin(to->out, &l, -1) != GP_LOAN_END)
            gp_pull_end(to->out, &l);
        pthread_join(t, NULL);
    }
    ck_assert_int_eq(g.outcome, GP_DONE);
    for (int i = 2; i-- > 0;)
        gp_pipeline_destroy(r[i].p);
}

/* Frames that do not fit are dropped, by threads with several loans, too; what comes behind them is whole. */
TEST_LOOP(dropped, 0, 2)
{
    rig r;
    gp_loan l[2];
    rig_start(&r, "depth: 4\nbuffers: {a: {dtype: f32, shape: [4, 8]}}\nstages:\n"
              "  - {use: input, name: in, workers: 2, on_error: drop, out: a}\n  - {use: output, name: out}\n");
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(gp_push_begin(r.in, &l[i], -1), GP_LOAN_OK);
        memset(l[i].view.data, 0, 4 * 8 * sizeof(float));
        l[i].view.type.dim[1] = 7;
    }
    ck_assert(!gp_push_end(r.in, &l[1]));
    ck_assert_int_eq(gp_push_drop(r.in, &l[0]), true);
    ck_assert_int_eq(gp_push_begin(r.in, &l[0], -1), GP_LOAN_OK);
    ck_assert_int_eq(l[0].view.type.dim[1], 8);
    l[1] = l[0];
    ck_assert(gp_push_drop(r.in, &l[0]) && !gp_push_drop(r.in, &l[1]));
    ck_assert(push(r.in, 3));
    pulls(r.out, 3, 3);
    if (_i) {                          /* holes at the end need not be asked for */
        ck_assert_int_eq(gp_push_begin(r.in, &l[0], -1), GP_LOAN_OK);
        ck_assert(gp_push_drop(r.in, &l[0]));
    }
    gp_push_close(r.in);
    ck_assert_int_eq(gp_pipeline_wait(r.p), GP_DONE);
    gp_account a = rig_account(&r);
    ck_assert_uint_eq(a.in, 4u + (unsigned)_i);
    ck_assert_uint_eq(a.out, 1);
    ck_assert_uint_eq(a.failed, 1);
    ck_assert_uint_eq(a.dropped, 2u + (unsigned)_i);
    gp_pipeline_destroy(r.p);
}

static const char one_to_one[] = "depth: 4\nstall_timeout: 300ms\nbuffers: {a: {dtype: f32, shape: [4]}}\nstages:\n"
                                 "  - {use: input, name: in, out: a}\n  - {use: output, name: out}\n";

/* Before the run: a descriptor waits, inputs are closed. */
TEST(before_the_run)
{
    rig r;
    gp_loan l;
    rig_make(&r, one_to_one);
    struct pollfd fd = { gp_output_fd(r.out), POLLIN, 0 };
    ck_assert_int_eq(gp_pull_begin(r.out, &l, 0), GP_LOAN_TIMEOUT);
    ck_assert_int_eq(poll(&fd, 1, 0), 0);
    gp_push_close(r.in);
    ck_assert(gp_pipeline_start(r.p, NULL, &r.errs));
    ck_assert_int_eq(poll(&fd, 1, -1), 1);
    ck_assert_int_eq(gp_push_begin(r.in, &l, INT64_MAX), GP_LOAN_END);
    ck_assert_int_eq(gp_pull_begin(r.out, &l, INT64_MAX - 1), GP_LOAN_END);
    ck_assert_int_eq(gp_pipeline_wait(r.p), GP_DONE);
    gp_pipeline_destroy(r.p);
}

/* An input that is closed before the run ends it, whether its threads have begun to wait or not. */
TEST(closed_before)
{
    for (int i = 0; i < 300; i++) {
        rig r;
        rig_make(&r, two_stages);
        gp_push_close(r.in);
        ck_assert(gp_pipeline_start(r.p, NULL, &r.errs));
        rig_end(&r, GP_DONE);
    }
}

/* One that runs ends with it. */
TEST(destroyed)
{
    rig r;
    rig_start(&r, one_to_one);
    gp_pipeline_destroy(r.p);
    rig_start(&r, one_to_one);
    ck_assert(push(r.in, 1));
    gp_pipeline_destroy(r.p);
}

static void *pull_one(void *out)
{
    gp_loan l;
    gp_loan_status s = gp_pull_begin(out, &l, -1);
    if (s == GP_LOAN_OK)
        gp_pull_end(out, &l);
    return s == GP_LOAN_OK ? out : NULL;
}

/* Who waits for another thread's first frame waits for longer than a stall takes. */
TEST(is_no_stall)
{
    rig r;
    pthread_t t;
    void *got;
    rig_start(&r, one_to_one);
    pthread_create(&t, NULL, pull_one, r.out);
    struct timespec end = { 0, 700000000 };
    nanosleep(&end, NULL);             /* of a stall it is known that nothing moves: there is no state to wait for */
    ck_assert(push(r.in, 1));
    pthread_join(t, &got);
    ck_assert(got == r.out);
    gp_push_close(r.in);
    rig_end(&r, GP_DONE);
}

/* The program waits for the end of a run of which it has not pulled all: that is said. */
TEST(not_pulled)
{
    rig r;
    rig_start(&r, one_to_one);
    ck_assert(push(r.in, 1));
    gp_push_close(r.in);
    ck_assert_int_eq(gp_pipeline_wait(r.p), GP_ERROR);
    ck_assert_msg(strstr(rig_error(&r), "nothing moved"), "%s", rig_error(&r));
    gp_pipeline_destroy(r.p);
}

static void *push_on(void *in)
{
    while (push(in, 1))
        ;
    return NULL;
}

/* Of two outputs one is never pulled, by a program of two threads: it holds up the other. */
TEST(one_of_two_outputs)
{
    rig r;
    gp_loan l;
    pthread_t t;
    rig_make(&r, "depth: 2\nstall_timeout: 300ms\nbuffers: {a: {dtype: f32, shape: [4]}}\nstages:\n"
             "  - {use: input, name: in, out: a}\n  - {use: output, name: out, in: a}\n"
             "  - {use: output, name: forgotten, in: a}\n");
    ck_assert(gp_pipeline_output(r.p, "forgotten") && gp_pipeline_start(r.p, NULL, &r.errs));
    pthread_create(&t, NULL, push_on, r.in);
    while (gp_pull_begin(r.out, &l, -1) == GP_LOAN_OK)
        gp_pull_end(r.out, &l);
    pthread_join(t, NULL);
    ck_assert_int_eq(gp_pipeline_wait(r.p), GP_ERROR);
    bool told = false;
    for (int i = 0; i < r.errs.n; i++)
        told |= strstr(r.errs.e[i].msg, "the program has pulled no frame of stage 'forgotten' for ") != NULL;
    ck_assert_msg(told && strstr(rig_error(&r), "nothing moved"), "%s", rig_error(&r));
    gp_pipeline_destroy(r.p);
}

/* Where the frames may not be what `memory: device` says. */
static const struct { const char *set, *stages, *error; } refused[] = {
    { "device=cuda:0", "  - {use: discard, in: a}\n  - {use: output, name: out, in: a, memory: device}\n",
      "stage 'in' writes the memory of the device, and stage 'discard' reads that on the host: put a stage of the device "
      "between" },
    { "device=cuda:0", "  - {use: scale}\n  - {use: lua, script: copy.lua}\n  - {use: output, name: out, memory: device}\n",
      "stage 'out': its frames are not made in the memory of one GPU: leave out 'memory: device'" },
    { "device=all", "  - {use: scale}\n  - {use: output, name: out}\n",
      "stage 'in' itself writes or reads the memory of the device, which is not possible with several devices: set 'device' "
      "to one, or an option of the stage that keeps it on the host ('gpipe stages input')" },
    { "launch=persistent", "  - {use: scale}\n  - {use: output, name: out}\n",
      "stage 'in' itself writes or reads the memory of the device, which 'launch: persistent' does not support: set 'launch: "
      "graph', or an option of the stage that keeps it on the host ('gpipe stages input')" },
};

TEST_EACH(memory_is_refused, refused)
{
    char *yaml = format("buffers: {a: {dtype: f32, shape: [4, 8]}}\nstages:\n  - {use: input, name: in, out: a, memory: "
                        "device}\n%s", refused[_i].stages);
    gp_errs errs = { .n = 0 };
    gp_machine m;
    gp_machine_fixed(&m, 2);
    gp_pipeline *p = pipe_compile(dir, yaml, (gp_config){ .machine = &m, .set = &refused[_i].set, .nset = 1 }, &errs);
    ck_assert_msg(!p && !strcmp(errs.e[0].msg, refused[_i].error), "%s", p ? "it compiles" : errs.e[0].msg);
}

/* Without a GPU the memory of the device is the host's, for the program, too. */
TEST(memory_without_a_gpu)
{
    rig r;
    gp_loan l;
    if (strcmp(on, "cpu"))
        return;
    rig_start(&r, "buffers: {a: {dtype: f32, shape: [4, 8]}}\nstages:\n  - {use: input, name: in, out: a, memory: device}\n"
              "  - {use: scale, a: 2}\n  - {use: output, name: out, memory: device}\n");
    for (int i = 0; i < 20; i++) {
        ck_assert(push(r.in, (float)i));
        ck_assert_int_eq(gp_pull_begin(r.out, &l, -1), GP_LOAN_OK);
        ck_assert_int_eq(l.device, -1);
        ck_assert_float_eq(((float *)l.view.data)[31], 2 * (float)i);
        ck_assert(gp_pull_end(r.out, &l));
    }
    gp_push_close(r.in);
    rig_end(&r, GP_DONE);
}

CASES_SUITE(loan, set_up, NULL, 0, 1)
