/* tap_cases.c - frames that are looked at while a run goes on (gp_tap_begin). The test pushes each frame, so that it knows
 * which one a tap that waits must see. */
#include <pthread.h>
#include "cases.h"

static const char *dir;

static void set_up(void)
{
    dir = pipe_dir();
    pipe_text(dir, "odd.lua", "function process(f, x, y) if f.index % 2 == 1 then return 'drop' end y:copy(x) end");
}

typedef struct rig { gp_pipeline *p; gp_input *in; gp_output *out; gp_errs errs; } rig;

static void rig_start(rig *r, const char *device, const char *yaml)
{
    *r = (rig){ .p = cases_compiled(dir, device, yaml) };
    r->in = gp_pipeline_input(r->p, "in"), r->out = gp_pipeline_output(r->p, "out");
    ck_assert(gp_pipeline_start(r->p, NULL, &r->errs));
}

static void rig_end(rig *r)
{
    gp_push_close(r->in);
    gp_loan l;
    ck_assert_int_eq(gp_pull_begin(r->out, &l, -1), GP_LOAN_END);
    ck_assert_msg(gp_pipeline_wait(r->p) == GP_DONE, "%s", r->errs.n ? r->errs.e[0].msg : "");
}

static void push(gp_input *in, float value)
{
    gp_loan l;
    ck_assert_int_eq(gp_push_begin(in, &l, -1), GP_LOAN_OK);
    float *x = l.view.data;
    for (int64_t i = 0; i < gp_count(&l.view.type); i++)
        x[i] = value;
    ck_assert(gp_push_end(in, &l));
}

static void pull(gp_output *out)
{
    gp_loan l;
    ck_assert_int_eq(gp_pull_begin(out, &l, -1), GP_LOAN_OK);
    ck_assert(gp_pull_end(out, &l));
}

static bool waits(gp_tap *t, int64_t frame)
{
    gp_tapped f;
    gp_errs errs = { .n = 0 };
    return gp_tap_take(t, frame, 0, &f, &errs) == GP_TAP_TIMEOUT;
}

/* The frame, which is there or comes, with that value in each element. */
static void sees(gp_tap *t, uint64_t frame, uint64_t holes, float value)
{
    gp_tapped f;
    gp_errs errs = { .n = 0 };
    ck_assert_msg(gp_tap_take(t, -1, -1, &f, &errs) == GP_TAP_OK, "%s", errs.n ? errs.e[0].msg : "over");
    ck_assert_uint_eq(f.frame, frame);
    ck_assert_uint_eq(f.holes, holes);
    ck_assert_uint_eq(f.bytes, gp_bytes(&f.type));
    for (int64_t i = 0; i < gp_count(&f.type); i++)
        ck_assert_float_eq(((const float *)f.data)[i], value);
}

static const char *fails(gp_tap *t, int64_t frame)
{
    static gp_errs errs;
    gp_tapped f;
    errs = (gp_errs){ .n = 0 };
    ck_assert_int_eq(gp_tap_take(t, frame, -1, &f, &errs), GP_TAP_FAILED);
    return errs.e[0].msg;
}

/* In front of the segment, inside it, and behind it, with settings, and on devices that are parts of the CPU. */
static const char *const how[] = { "depth: 1", "depth: 3\nlaunch: stream", "streams: 3\nbatch: 4\ndepth: 8", "depth: 4\nlaunch: "
                                   "persistent" };
static const char *const parts[] = { NULL, "cpu:0-1" };
static const struct { const char *name; float a; } tapped[] = { { "a", 1 }, { "twice", 2 }, { "six", 6 } };
enum { HOW = 4, TAPPED = 3, PARTS = 2 };

static const char *chain(int i)
{
    return format("%s\nfuse: none\nbuffers: {a: {dtype: f32, shape: [3, 5]}}\nstages:\n  - {use: input, name: in, out: a}\n"
                  "  - {name: twice, use: scale, a: 2}\n  - {name: six, use: scale, a: 3}\n  - {use: output, name: out}\n", how[i]);
}

TEST_LOOP(each_buffer, 0, HOW * PARTS)
{
    const char *part = parts[_i / HOW];
    if (part && (strcmp(on, "cpu") || _i % HOW == 3))          /* persistent: on one device */
        return;
    rig r;
    gp_tap *t[TAPPED];
    rig_start(&r, part ? part : on, chain(_i % HOW));
    for (int k = 0; k < TAPPED; k++)
        ck_assert((t[k] = gp_tap_begin(r.p, tapped[k].name, &r.errs)));
    for (int i = 0; i < 20; i++) {
        for (int k = 0; k < TAPPED; k++)
            ck_assert(i % (k + 1) || waits(t[k], -1));
        push(r.in, (float)i);
        pull(r.out);
        for (int k = 0; k < TAPPED; k++)
            if (!(i % (k + 1)))
                sees(t[k], (uint64_t)i, 0, tapped[k].a * (float)i);
    }
    ck_assert(waits(t[1], -1));
    gp_tap_end(t[0]);
    rig_end(&r);
    gp_tapped f;
    ck_assert_int_eq(gp_tap_take(t[1], -1, -1, &f, &r.errs), GP_TAP_OVER);
    ck_assert_int_eq(gp_tap_take(t[2], -1, -1, &f, &r.errs), GP_TAP_OVER);
    gp_tap_end(t[1]), gp_tap_end(t[2]);
    gp_pipeline_destroy(r.p);
}

/* Taps come and go while frames pass as fast as they can: what they see is one frame, not parts of two. */
typedef struct looking { const rig *r; const char *name; float a; atomic_bool stop; int seen; } looking;

static void *look(void *arg)
{
    looking *l = arg;
    gp_errs errs = { .n = 0 };
    while (!atomic_load(&l->stop)) {
        gp_tap *t = gp_tap_begin(l->r->p, l->name, &errs);
        gp_tapped f;
        for (int i = 0; i < 3; i++) {
            gp_tap_status is = gp_tap_take(t, -1, i ? -1 : 0, &f, &errs);
            for (int64_t k = 0; is == GP_TAP_OK && k < gp_count(&f.type); k++)
                ck_assert_float_eq(((const float *)f.data)[k], l->a * (float)f.frame);
            l->seen += is == GP_TAP_OK;
        }
        gp_tap_end(t);
    }
    return NULL;
}

TEST_LOOP(come_and_go, 0, HOW * PARTS)
{
    const char *part = parts[_i / HOW];
    if (part && (strcmp(on, "cpu") || _i % HOW == 3))          /* persistent: on one device */
        return;
    rig r;
    rig_start(&r, part ? part : on, chain(_i % HOW));
    looking l[TAPPED];
    pthread_t thread[TAPPED];
    for (int k = 0; k < TAPPED; k++) {
        l[k] = (looking){ .r = &r, .name = tapped[k].name, .a = tapped[k].a };
        pthread_create(&thread[k], NULL, look, &l[k]);
    }
    for (int i = 0; i < 300; i++)
        push(r.in, (float)i), pull(r.out);
    for (int k = 0; k < TAPPED; k++)
        atomic_store(&l[k].stop, true);
    rig_end(&r);
    for (int k = 0; k < TAPPED; k++)
        pthread_join(thread[k], NULL);
    gp_pipeline_destroy(r.p);
}

TEST(holes)
{
    rig r;
    rig_start(&r, on, "buffers: {a: {dtype: f32, shape: [3, 5]}}\nstages:\n  - {use: input, name: in, out: a}\n"
              "  - {name: odd, use: lua, script: odd.lua}\n  - {use: output, name: out}\n");
    gp_tap *t = gp_tap_begin(r.p, "odd", &r.errs), *third = gp_tap_begin(r.p, "odd", &r.errs);
    ck_assert(waits(third, 3));
    push(r.in, 0), pull(r.out);
    ck_assert(waits(t, -1));
    push(r.in, 1), push(r.in, 2), pull(r.out);
    sees(t, 2, 1, 2);
    push(r.in, 3), push(r.in, 4), pull(r.out);
    ck_assert_str_eq(fails(third, 3), "frame 3 of 'odd' is a hole: it was dropped, failed, or is not whole where it stays in the "
                     "device");
    gp_tap_end(t), gp_tap_end(third);
    rig_end(&r);
    gp_pipeline_destroy(r.p);
}

/* A certain frame, asked for before the run; one that has passed; partial frames have their shape. */
TEST(certain_ones)
{
    rig r = { .p = cases_compiled(dir, on, chain(1)) };
    gp_tap *t = gp_tap_begin(r.p, "twice", &r.errs), *out = gp_tap_begin(r.p, "six", &r.errs);
    gp_tapped f;
    ck_assert(waits(t, 2));
    r.in = gp_pipeline_input(r.p, "in"), r.out = gp_pipeline_output(r.p, "out");
    ck_assert(gp_pipeline_start(r.p, NULL, &r.errs));
    for (int i = 0; i < 5; i++)
        push(r.in, (float)i), pull(r.out);
    sees(t, 2, 0, 4);
    ck_assert(waits(t, 4));
    push(r.in, 5), pull(r.out);
    ck_assert_str_eq(fails(t, 4), "frame 4 of 'twice' has passed already");
    gp_loan l;
    ck_assert(waits(out, -1));
    ck_assert_int_eq(gp_push_begin(r.in, &l, -1), GP_LOAN_OK);
    l.view.type.dim[0] = 2;
    memset(l.view.data, 0, gp_bytes(&l.view.type));
    ck_assert(gp_push_end(r.in, &l));
    pull(r.out);
    ck_assert_int_eq(gp_tap_take(out, -1, -1, &f, &r.errs), GP_TAP_OK);
    ck_assert(f.frame == 6 && f.type.dim[0] == 2 && f.type.dim[1] == 5 && f.bytes == 40);
    gp_tap_end(t), gp_tap_end(out);
    rig_end(&r);
    gp_pipeline_destroy(r.p);
}

/* A sink that does nothing has workers, is retuned, and reserves, opens and ends nothing. */
TEST(idle_sinks)
{
    const gp_run_options o = { .no_sinks = true };
    gp_errs errs = { .n = 0 };
    gp_pipeline *p[2];
    for (int i = 0; i < 2; i++)
        p[i] = cases_compiled(dir, on, format("buffers: {a: {dtype: f32, shape: [3, 5]}}\nstages:\n  - {use: input, name: in, out: a}\n"
                                   "  - {name: twice, use: scale, a: 2}\n  - {use: write, path: idle.raw, workers: %d}\n"
                                   "  - {name: each, use: write, in: a, path: idle/%%d.npy, workers: 2}\n", 3 - i));
    gp_input *in = gp_pipeline_input(p[0], "in");
    gp_pipeline_input(p[1], "in");
    ck_assert_msg(gp_pipeline_start(p[0], &o, &errs), "%s", errs.e[0].msg);
    for (int i = 0; i < 20; i++)
        push(in, (float)i);
    ck_assert_msg(gp_pipeline_retune(p[1], p[0], &o, &errs), "%s", errs.e[0].msg);
    ck_assert_int_eq(gp_pipeline_wait(p[0]), GP_PAUSED);
    gp_push_close(in);
    ck_assert_int_eq(gp_pipeline_go_on(p[1], p[0], &o, &errs), GP_DONE);
    for (int i = 1; i >= 0; i--)
        gp_pipeline_destroy(p[i]);
    ck_assert(access(format("%s/idle.raw", dir), F_OK) && access(format("%s/idle.raw.partial", dir), F_OK)
              && access(format("%s/idle", dir), F_OK));
}

TEST(no_such_buffer)
{
    gp_pipeline *p = cases_compiled(dir, on, "buffers:\n  a: {dtype: f32, shape: [3, 5]}\n  k: {const: [1, 2], dtype: f32}\nstages:\n"
                              "  - {use: input, name: in, out: a}\n  - {name: twice, use: scale, a: 2}\n"
                              "  - {name: six, use: scale, a: 3}\n  - {name: sum, use: fir, in: [six, k]}\n"
                              "  - {use: output, name: out}\n");
    static const char *const of[][2] = {
        { "summ", "no buffer 'summ'; there are: a, six, sum; did you mean 'sum'?" },
        { "", "no buffer is named; there are: a, six, sum" },
        { "k", "'k' is a constant, and has no frames" },
        { "twice", "'twice' is nowhere in memory: the stages around it are computed as one, 'twice+six'; run it with --set fuse=none" },
    };
    for (int i = 0; i < 4; i++) {
        gp_errs errs = { .n = 0 };
        ck_assert(!gp_tap_begin(p, of[i][0], &errs));
        ck_assert_str_eq(errs.e[0].msg, of[i][1]);
    }
    gp_pipeline_destroy(p);
}

CASES_SUITE(tap, set_up, NULL, 0, 1)
