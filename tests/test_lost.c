/* test_lost.c - what a run says and counts when the device, a stage or the caller fails it
 * in ways that the CPU back end does not: a back end that breaks in one of its functions is
 * put in its place by a stage of the test. Each test is a process of its own. */
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <ucontext.h>
#include "idle.h"
#include "pipe.h"
#include "device/backend.h"
#include "run/segment.h"

extern const gp_kind gp_kind_scale, gp_kind_mix;

/* ---- a device that breaks -------------------------------------------- */

static gp_backend broken;
static atomic_int calls, well;         /* of the function that breaks; the calls that go well */
static atomic_bool told;               /* a device tells one thread why */

static bool is_broken(gp_errs *errs)
{
    if (atomic_fetch_add(&calls, 1) < atomic_load(&well))
        return false;
    if (!atomic_exchange(&told, true))
        gp_fail(errs, GP_E_RUN, (gp_loc){ 0 }, "it broke");
    return true;
}

static gp_exec *build(gp_dev *dev, int stream, gp_body body, void *arg, gp_errs *errs)
{
    return is_broken(errs) ? NULL : gp_backend_cpu.build(dev, stream, body, arg, errs);
}

static bool launch(gp_dev *dev, int stream, gp_exec *x, gp_errs *errs)
{
    return !is_broken(errs) && gp_backend_cpu.launch(dev, stream, x, errs);
}

static int wait_for(gp_dev *dev, int stream, gp_sync sync, gp_errs *errs)
{
    int r = gp_backend_cpu.wait(dev, stream, sync, errs);
    return is_broken(errs) ? -1 : r;
}

/* Stage `breaks`: a scale whose start puts the back end there. */
static bool break_device(const gp_open *o, void **state)
{
    *state = NULL;
    o->dev->backend = &broken;
    return true;
}

static bool break_without_a_place(const gp_open *o, void **state)
{
    *state = NULL;
    return gp_fail(o->errs, GP_E_RUN, (gp_loc){ 0 }, "it broke");
}

static bool fail_frames(gp_call *c, gp_frame *frames, int n)
{
    return gp_fail(c->errs, GP_E_RUN, (gp_loc){ 0 }, "it broke");
}

/* Stage `emits`, a mix of which some frames cannot be made, and `keeps`, a sink. */
static float made[16];                 /* per frame, at the sink; 0: a hole */
static int emitted;                    /* how often emit() was called */
static bool writes_nothing;            /* it, whatever call it is */

/* Calls 1 and 5 fail: of frames 4 to 7, and of the last three. */
static bool emit_most(gp_dcall *c)
{
    int k = emitted++;
    if (writes_nothing)
        return true;
    return k == 1 || k == 5 ? gp_fail(c->errs, GP_E_RUN, (gp_loc){ 0 }, "call %d broke", k) : gp_kind_mix.emit(c);
}

static bool keep(gp_call *c, gp_frame *frames, int n)
{
    for (int i = 0; i < n; i++)
        made[frames[i].index] = *(const float *)frames[i].in[0].data;
    return true;
}

static gp_pipeline *compile(const char *yaml)
{
    static const gp_port in[] = { { "in", GP_ACCEPT(GP_F32), false, "anything" }, { 0 } };
    gp_kind more[] = {
        { GP_KIND("fails"), .help = "fails", .in = in, .shape = as_declared, .run = fail_frames },
        { GP_KIND("keeps"), .help = "keeps", .in = in, .shape = as_declared, .run = keep },
        gp_kind_scale, gp_kind_scale, gp_kind_mix,
    };
    gp_machine machine;
    more[2].name = "breaks", more[2].open = break_device;
    more[3].name = "closed", more[3].open = break_without_a_place;
    more[4].name = "emits", more[4].emit = emit_most;
    pipe_kinds(more, sizeof more / sizeof *more);
    gp_machine_read(&machine, false);
    return pipe_compiled(".", yaml, (gp_config){ .machine = &machine });
}

typedef struct seen { gp_outcome outcome; gp_errs errs; gp_account account; } seen;

static seen run_with(const char *yaml, gp_run_options options)
{
    seen s = { .outcome = GP_ERROR };
    gp_pipeline *p = compile(yaml);
    s.outcome = gp_pipeline_run(p, &options, &s.errs);
    ck_assert_int_eq(gp_accounts(p, &s.account, 1), 1);
    for (int i = 0; i < s.errs.n; i++) {
        ck_assert_msg(s.errs.e[i].at.file != NULL, "no place: %s", s.errs.e[i].msg);
        s.errs.e[i].at.file = NULL;
    }
    gp_pipeline_destroy(p);
    return s;
}

static seen run(const char *yaml)
{
    return run_with(yaml, (gp_run_options){ 0 });
}

/* The segment's first stage is in line 5. */
#define YAML                                      \
    "{depth: 4,\n"                                \
    "buffers: {a: {dtype: f32, shape: [16]}},\n"  \
    "stages: [\n"                                 \
    "  {use: generate, frames: 2000, out: a},\n"  \
    "  {name: first, use: scale, a: 2},\n"        \
    "  {use: breaks},\n"                          \
    "  {use: discard}], fuse: none}\n"

/* ---- a frame that cannot be made of many ------------------------------ */

TEST_LOOP(emission_that_fails, 0, 6)
{
    static const char *const knobs[] = { "depth: 1\n", "depth: 12\n", "depth: 3\nlaunch: stream\n" };
    static const float want[16] = { 4, 0, 4, 4, 4 };
    emitted = 0;
    char *yaml = format("%son_error: %s\nbuffers: {a: {dtype: f32, shape: [3]}}\nstages:\n"
        "  - {use: generate, pattern: constant, value: 1, frames: 23, out: a}\n  - {use: emits, op: sum, frames: 4}\n"
        "  - {use: keeps}\n", knobs[_i / 2], _i % 2 ? "stop" : "drop");
    seen s = run(yaml);
    const gp_account *a = &s.account;
    first_error_is(&s.errs, _i / 2 < 2 ? 6 : 7, "call 1 broke");
    ck_assert_int_eq(s.outcome, _i % 2 ? GP_ERROR : GP_DONE);
    ck_assert_uint_eq(a->in, a->out + a->dropped + a->failed + a->cancelled);
    if (_i % 2)
        return;
    ck_assert_int_eq(s.errs.n, 2);
    ck_assert_str_eq(s.errs.e[1].msg, "call 5 broke");
    ck_assert_int_eq(s.errs.failed, 0);
    ck_assert_msg(a->in == 23 && a->out == 16 && a->failed == 7, "%d in, %d out, %d failed", (int)a->in, (int)a->out,
                  (int)a->failed);
    for (int i = 0; i < 16; i++)
        ck_assert_msg(made[i] == want[i], "frame %d: %g", i, (double)made[i]);
}

/* What emit() leaves unwritten is poisoned. */
TEST(emission_that_writes_nothing)
{
    static const char yaml[] = "depth: 2\nbuffers: {a: {dtype: f32, shape: [3]}}\nstages:\n"
             "  - {use: generate, frames: 23, out: a}\n  - {use: emits, op: sum, frames: 4}\n"
             "  - {use: keeps}\n";
    writes_nothing = true;
    seen s = run_with(yaml, (gp_run_options){ .poison = true });
    ck_assert_int_eq(s.outcome, GP_DONE);
    for (int i = 0; i < 6; i++)
        ck_assert_msg(isnan(made[i]), "frame %d: %g", i, (double)made[i]);
}

/* ---- one frame at a time ------------------------------------------------ */

static gp_rec_ops ops;                  /* of the recorder, with a wait that fails in line `at_line` */
static int at_line;
struct body { gp_body does; void *arg; };

static bool wait_in_body(gp_rec *r)
{
    return r->errs->at.line != at_line;
}

static bool with_wait(gp_rec *r, void *arg)
{
    const struct body *b = arg;
    const gp_rec_ops *own = r->ops;
    ops = *own, ops.wait = wait_in_body, r->ops = &ops;
    bool ok = b->does(r, b->arg);
    r->ops = own;
    return ok;
}

static bool direct(gp_dev *dev, int stream, gp_body body, void *arg, gp_errs *errs)
{
    return gp_backend_cpu.direct(dev, stream, with_wait, &(struct body){ body, arg }, errs);
}

/* The stage that faults is found, also where it regroups. */
TEST_LOOP(isolated_stage, 0, 4)
{
    static const char *const of[] = { "scale, a: 2", "mix, op: sum, frames: 4", "group, frames: 4", "hold, frames: 4" };
    broken.direct = direct, at_line = 6;
    char *yaml = format("depth: 2\nbuffers: {a: {dtype: f32, shape: [3]}}\nstages:\n"
                        "  - {use: generate, frames: 23, out: a}\n  - {use: breaks, a: 2}\n  - {name: x, use: %s}\n"
                        "  - {name: on, use: scale, a: 2}\n  - {use: discard}\nfuse: none\n", of[_i]);
    seen s = run_with(yaml, (gp_run_options){ .isolate = true });
    ck_assert_int_eq(s.outcome, GP_ERROR);
    first_error_is(&s.errs, 6, "stage 'x' failed on the device in frame 0");
}

/* ---- places ---------------------------------------------------------- */

TEST(graph_that_cannot_be_built)
{
    broken.build = build;
    seen s = run(YAML);
    ck_assert_int_eq(s.outcome, GP_ERROR);
    first_error_is(&s.errs, 5, "it broke");
    ck_assert_uint_eq(s.account.in, 0);
}

TEST(places_of_stages)
{
    static const char *const use[] = { "closed", "fails" };
    for (int i = 0; i < 2; i++) {
        char *text = format("buffers: {a: {dtype: f32, shape: [16]}}\nstages:\n  - {use: generate, frames: 3, out: a}\n"
                 "  - {use: %s, in: a}\n"
                 "%s", use[i], i ? "" : "  - {use: discard}\n");
        seen s = run(text);
        ck_assert_int_eq(s.outcome, GP_ERROR);
        first_error_is(&s.errs, 4, i ? "it broke, in frame 0" : "it broke");
    }
}

/* ---- a device that is lost ------------------------------------------- */

/* Fails the run at the k-th call of a function; what it says and counts is true. */
static void lose(const char *yaml, int k)
{
    unsigned long long from, to;
    const char *at;
    int said = 0;
    atomic_store(&calls, 0);
    atomic_store(&well, k);
    atomic_store(&told, false);
    seen s = run(yaml);
    const gp_account *a = &s.account;
    ck_assert_int_eq(s.outcome, GP_ERROR);
    first_error_is(&s.errs, 5, "it broke");
    ck_assert_int_eq(s.errs.e[1].at.line, 5);
    at = strstr(s.errs.e[1].msg, "; frames ");
    ck_assert_msg(at != NULL, "%s", s.errs.e[1].msg);
    ck_assert_int_eq(sscanf(at, "; frames %llu to %llu are not finished%n", &from, &to, &said), 2);
    ck_assert_int_gt(said, 0);
    ck_assert_msg(from <= to && to < from + 4 && to < a->in, "%s; %llu went in", s.errs.e[1].msg,
                  (unsigned long long)a->in);
    ck_assert_uint_gt(a->in, 0);
    ck_assert_uint_le(a->out, to);         /* what was in flight before it may come out */
    ck_assert_uint_eq(a->in, a->out + a->dropped + a->failed + a->cancelled);
    ck_assert_uint_gt(a->cancelled, 0);
}

TEST_LOOP(lost_in_flight, 0, 4)
{
    static const int at[] = { 0, 1, 5, 100 };
    broken.wait = wait_for;
    lose(YAML, at[_i]);
}

TEST_LOOP(lost_at_a_launch, 0, 4)
{
    static const int at[] = { 0, 1, 5, 100 };
    broken.launch = launch;
    lose(YAML, at[_i]);
}

/* Follows the launcher, instruction by instruction, from where the device has taken a launch: at no instant is a launch
 * issued whose frames are not below `next`, for the reaper may see it at that instant and say which frames are lost. */
#if defined __x86_64__ && !defined __SANITIZE_THREAD__     /* which delivers signals later */
#define STEPS
enum { TRAP_FLAG = 0x100 };
static gp_actorrt *segment;
static uint64_t issued;                /* launches, when the steps began */
static atomic_int steps, too_early;

static void step(int sig, siginfo_t *info, void *context)
{
    greg_t *flags = &((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL];
    gp_segmentrt *s = segment->seg;
    uint64_t k = atomic_load(&s->issued);
    *flags |= TRAP_FLAG;
    if (k == issued)
        return;
    const gp_inflight *fl = &s->inflight[(k - 1) % s->ninflight];
    if (atomic_load(&segment->next) < fl->first + (uint64_t)fl->n)
        atomic_store(&too_early, 1);
    atomic_fetch_add(&steps, 1);
    *flags &= ~(greg_t)TRAP_FLAG;
}

static gp_exec *build_seen(gp_dev *dev, int stream, gp_body body, void *arg, gp_errs *errs)
{
    segment = ((gp_batch *)arg)->p;
    return gp_backend_cpu.build(dev, stream, body, arg, errs);
}

static bool launch_and_step(gp_dev *dev, int stream, gp_exec *x, gp_errs *errs)
{
    bool ok = gp_backend_cpu.launch(dev, stream, x, errs);
    issued = atomic_load(&segment->seg->issued);
    raise(SIGTRAP);
    return ok;
}

TEST(issued_frames_are_below_next)
{
    struct sigaction sa = { .sa_sigaction = step, .sa_flags = SA_SIGINFO };
    ck_assert_int_eq(sigaction(SIGTRAP, &sa, NULL), 0);
    broken.build = build_seen, broken.launch = launch_and_step;
    seen s = run("{depth: 4, batch: 1, launch: graph,\n"
                 "buffers: {a: {dtype: f32, shape: [16]}},\n"
                 "stages: [{use: generate, frames: 20, out: a}, {use: scale, a: 2},\n"
                 "         {use: breaks}, {use: discard}], fuse: none}\n");
    ck_assert_int_eq(s.outcome, GP_DONE);
    ck_assert_int_eq(atomic_load(&steps), 20);
    ck_assert_int_eq(atomic_load(&too_early), 0);
}
#endif

static void set_up(void)
{
    broken = gp_backend_cpu;
}

TEST_SUITE(lost, set_up, NULL, 0)
