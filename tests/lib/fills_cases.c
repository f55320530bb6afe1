/* fills_cases.c - a host stage that fills device memory: `put`, whose output is its input, by copies that it queues
 * on the device. Every case is compared with what a host would have made, over depths, workers, frames at once, and
 * knobs. */
#include <stdatomic.h>
#include "cases.h"

enum { FRAMES = 61, HIGH = 9, WIDE = 40, SIZE = HIGH * WIDE };

/* ---- the kinds ------------------------------------------------------- */

typedef struct opts { int64_t at_once, fails, drops, again, fewer; bool whole; } opts;

static atomic_int most, calls;         /* frames in a call of put */

/* The rows and columns of a frame. */
static void size_of(uint64_t f, bool whole, int64_t dim[2])
{
    dim[0] = whole ? HIGH : 1 + (int64_t)(f * 5 % HIGH), dim[1] = whole ? WIDE : 1 + (int64_t)(f * 7 % WIDE);
}

static float value(uint64_t f, int64_t i)
{
    return (float)((int64_t)f * 1000 + i);
}

static bool make_shape(gp_shape *s)
{
    s->by_number = true;
    s->known.frames = FRAMES;
    return true;
}

static atomic_bool is_to_pause;        /* before half of the frames */

static bool make(gp_call *c, gp_frame *f, int n)
{
    const opts *o = c->opts;
    gp_view *v = &f->out[0];
    size_of(f->index, o->whole, v->type.dim);
    for (int64_t i = 0; i < gp_count(&v->type); i++)
        ((float *)v->data)[i] = value(f->index, i);
    f->status = f->index >= FRAMES ? GP_END
              : f->index == FRAMES / 2 && atomic_load(&is_to_pause) ? gp_wait_or_pause(c, -1, INT64_MAX) : GP_OK;
    return true;
}

static bool put_shape(gp_shape *s)
{
    const opts *o = s->opts;
    s->out[0] = s->in[0];
    s->fills_device = true, s->at_once = (int)o->at_once, s->default_workers = 2, s->does = "copies";
    return true;
}

typedef struct copies { gp_frame *f; int n; } copies;

static bool copy_all(gp_dcall *d, void *arg)
{
    const copies *x = arg;
    for (int i = 0; i < x->n; i++)
        if (!gp_copy(d, x->f[i].out[0].data, x->f[i].in[0].data, gp_bytes(&x->f[i].out[0].type)))
            return false;
    return true;
}

static bool put(gp_call *c, gp_frame *f, int n)
{
    const opts *o = c->opts;
    int done = 0;
    atomic_fetch_add(&calls, 1);
    for (int was = atomic_load(&most); n > was && !atomic_compare_exchange_weak(&most, &was, n);)
        ;
    for (; done < n; done++) {
        uint64_t k = f[done].index;
        bool fails = o->fails && k % (uint64_t)o->fails == 3, again = o->again && k % (uint64_t)o->again == 0;
        if (done && (fails || again))
            break;
        if (fails) {
            gp_fail(c->errs, GP_E_RUN, c->at, "frame %d fails", (int)k);
            f->status = GP_FAILED;
            done = 1;
            break;
        }
        f[done].status = o->drops && k % (uint64_t)o->drops == 1 ? GP_DROP : GP_OK;
        if (o->fewer)
            f[done].out[0].type.dim[0] = 1 + (int64_t)(k % HIGH);
    }
    for (int i = done; i < n; i++)
        f[i].status = GP_AGAIN;
    return f->status == GP_FAILED || gp_device_do(c, copy_all, &(copies){ f, done });
}

static const gp_port port[] = { { "x", GP_ACCEPT(GP_F32), false, "numbers" }, { 0 } };
static const gp_opt options[] = {
    { GP_INT(opts, at_once), .def = "1", .help = "frames in a call" },
    { GP_INT(opts, fails), .help = "of so many frames one fails" },
    { GP_INT(opts, drops), .help = "... is dropped" },
    { GP_INT(opts, again), .help = "... is the first of its call" },
    { GP_INT(opts, fewer), .help = "frames have fewer rows" },
    { GP_BOOL(opts, whole), .help = "frames have one size" },
    { 0 }
};
static const gp_kind kinds[] = {
    { GP_KIND("make"), .help = "a source", .out = port, .opts = options, .opts_size = sizeof(opts), .shape = make_shape,
      .run = make, .by_number = true, .any_shape = true },
    { GP_KIND("put"), .help = "fills device memory", .in = port, .out = port, .opts = options, .opts_size = sizeof(opts),
      .shape = put_shape, .run = put, .fills_device = true, .any_shape = true },
};

/* ---- running --------------------------------------------------------- */

static gp_pipeline *compile(const char *dir, const char *yaml, gp_errs *errs)
{
    const char *set[] = { strcmp(on, "cpu") ? "device=cuda" : "device=cpu" };
    return pipe_compile(dir, yaml, (gp_config){ .set = set, .nset = 1 }, errs);
}

static void set_up(void)
{
    pipe_kinds(kinds, sizeof kinds / sizeof *kinds);
    atomic_store(&most, 0), atomic_store(&calls, 0);
}

static void tear_down(void)
{
    pipe_kinds(NULL, 0);
}

/* What is in out/K.raw: 2 x + 1 of frame k, as put has it; or nothing. */
static void check(const char *dir, const char *what, uint64_t k, const opts *o, bool there)
{
    size_t bytes;
    int64_t dim[2];
    OWNED float *v = (float *)pipe_read(dir, format("out/%05d.raw", (int)k), &bytes);
    ck_assert_msg((v != NULL) == there, "%s: frame %d %s", what, (int)k, there ? "is not there" : "is there");
    if (!v)
        return;
    size_of(k, o->whole, dim);
    if (o->fewer)
        dim[0] = 1 + (int64_t)(k % HIGH);
    ck_assert_msg(bytes == (size_t)(4 * dim[0] * dim[1]), "%s: frame %d has %zu bytes, not of %d x %d", what, (int)k, bytes,
                  (int)dim[0], (int)dim[1]);
    for (int64_t i = 0; i < dim[0] * dim[1]; i++)
        ck_each(v[i] == 2 * value(k, i) + 1, "%s: element %d of frame %d is %g, not %g", what, (int)i, (int)k, v[i],
                      2 * value(k, i) + 1);
}

static const char *const knobs[] = {
    "", "depth: 1\n", "depth: 16\nstreams: 2\nbatch: 4\n", "depth: 16\nbatch: 8\nbatch_wait: 400us\n",
    "depth: 16\nbatch: 8\nlatency: 2ms\n",
    "depth: 5\nlaunch: stream\nsync: block\n",
};
enum { KNOBS = sizeof knobs / sizeof *knobs };

static const char *const puts_[] = {
    "workers: 1", "workers: 3", "workers: 1, at_once: 8", "workers: 2, at_once: 5", "at_once: 32, again: 3",
    "workers: 3, at_once: 4, again: 5",
};
enum { PUTS = sizeof puts_ / sizeof *puts_ };

static const char *write_yaml(char yaml[2000], int knob, const char *put_keys, bool whole, const char *more)
{
    snprintf(yaml, 2000, "%sbuffers: {x: {dtype: f32, shape: %s}}\nstages:\n  - {use: make, whole: %s, out: x}\n"
             "  - {use: put, %s}\n%s  - {use: scale, a: 2, b: 1}\n  - {use: write, path: \"out/%%05d.raw\", durable: none}\n",
             knobs[knob], whole ? "[9, 40]" : "[\"<=9\", \"<=40\"]", whole ? "true" : "false", put_keys, more);
    return yaml;
}

static void run_case(const opts *o, int knob, const char *put_keys, const char *more)
{
    const char *dir = pipe_dir();
    char yaml[2000];
    gp_errs errs = { .n = 0 };
    gp_pipeline *p = compile(dir, write_yaml(yaml, knob, put_keys, o->whole, more), &errs);
    ck_assert_msg(p != NULL, "%s: %s", yaml, pipe_said(&errs));
    gp_run_options how = { .poison = knob & 1, .timed = knob & 2 };
    gp_outcome outcome = gp_pipeline_run(p, &how, &errs);
    ck_assert_msg(outcome == GP_DONE && !errs.failed, "%s: outcome %d: %s", yaml, (int)outcome, pipe_said(&errs));
    uint64_t lost = 0;
    for (uint64_t k = 0; k < FRAMES; k++) {
        bool gone = (o->fails && k % (uint64_t)o->fails == 3) || (o->drops && k % (uint64_t)o->drops == 1);
        check(dir, yaml, k, o, !gone);
        lost += gone;
    }
    gp_account a;
    ck_assert_int_eq(gp_accounts(p, &a, 1), 1);
    ck_assert_msg(a.in == FRAMES && a.out == FRAMES - lost && a.failed + a.dropped == lost, "%s: %d in, %d out", yaml,
                  (int)a.in, (int)a.out);
    gp_pipeline_destroy(p);
}

/* Frames of several shapes, and of one. */
TEST_LOOP(in_order, 0, 2 * KNOBS * PUTS)
{
    int knob = _i % KNOBS, how = _i / KNOBS % PUTS;
    run_case(&(opts){ .whole = _i >= KNOBS * PUTS }, knob, puts_[how], "");
    ck_assert_int_ge(atomic_load(&calls), 1);
    if (!strstr(puts_[how], "at_once"))
        ck_assert_int_eq(atomic_load(&most), 1);
}

/* Frames that fail, or are dropped, are holes; the others are as they were. */
TEST_LOOP(holes, 0, KNOBS * PUTS)
{
    char *keys = format("%s, fails: 7, drops: 5, on_error: drop", puts_[_i / KNOBS]);
    run_case(&(opts){ .fails = 7, .drops = 5 }, _i % KNOBS, keys, "");
}

/* Of frames of one shape, which have fewer rows, what is behind them is zero, on the device too. */
TEST_LOOP(fewer_rows, 0, KNOBS * PUTS)
{
    run_case(&(opts){ .fewer = 1, .whole = true }, _i % KNOBS, format("%s, fewer: 1", puts_[_i / KNOBS]), "");
}

/* The error of the lowest frame ends the run: all before it comes out, and nothing behind it. */
TEST_LOOP(stops, 0, KNOBS * PUTS)
{
    const char *dir = pipe_dir();
    char yaml[2000];
    gp_errs errs = { .n = 0 };
    char *keys = format("%s, fails: 20", puts_[_i / KNOBS]);
    gp_pipeline *p = compile(dir, write_yaml(yaml, _i % KNOBS, keys, false, ""), &errs);
    ck_assert_msg(p != NULL, "%s", pipe_said(&errs));
    ck_assert_int_eq(gp_pipeline_run(p, NULL, &errs), GP_ERROR);
    ck_assert_msg(errs.n && !strcmp(errs.e[0].msg, "frame 3 fails"), "%s: %s", yaml, pipe_said(&errs));
    for (uint64_t k = 0; k < FRAMES; k++)
        check(dir, yaml, k, &(opts){ .fails = 0 }, k < 3);
    gp_pipeline_destroy(p);
}

/* What regroups them does so on the device; frames of a row are copied out in their order. */
TEST_LOOP(regrouped, 0, KNOBS)
{
    const char *dir = pipe_dir();
    gp_errs errs = { .n = 0 };
    size_t bytes;
    char *yaml = format("%sbuffers: {x: {dtype: f32, shape: [9, 40]}}\nstages:\n"
                        "  - {use: make, whole: true, out: x}\n  - {use: put, workers: 2, at_once: 4}\n"
                        "  - {use: group, frames: 4}\n  - {use: write, path: out.raw, durable: none}\n", knobs[_i]);
    gp_pipeline *p = compile(dir, yaml, &errs);
    ck_assert_msg(p && gp_pipeline_run(p, NULL, &errs) == GP_DONE, "%s: %s", yaml, pipe_said(&errs));
    OWNED float *v = (float *)pipe_read(dir, "out.raw", &bytes);
    ck_assert_msg(v && bytes == 4 * FRAMES * SIZE, "%zu bytes", bytes);
    for (int i = 0; i < FRAMES * SIZE; i++)
        ck_each(v[i] == value((uint64_t)(i / SIZE), i % SIZE), "element %d", i);
    gp_pipeline_destroy(p);
}

/* A run that pauses hands back what it had on the device, and goes on under another depth. */
TEST_LOOP(pauses, 0, KNOBS)
{
    const char *dir = pipe_dir();
    char yaml[2000];
    gp_errs errs = { .n = 0 };
    gp_pipeline *p[2];
    for (int i = 0; i < 2; i++)
        p[i] = compile(dir, write_yaml(yaml, (i + _i) % KNOBS, "workers: 2, at_once: 4", false, ""), &errs);
    ck_assert_msg(p[0] && p[1], "%s", pipe_said(&errs));
    atomic_store(&is_to_pause, true);
    ck_assert_int_eq(pipe_run_part(p[0], NULL, p[1], 5, (gp_run_options){ 0 }, &errs), GP_PAUSED);
    atomic_store(&is_to_pause, false);
    ck_assert_msg(gp_pipeline_go_on(p[1], p[0], NULL, &errs) == GP_DONE, "%s", pipe_said(&errs));
    for (uint64_t k = 0; k < FRAMES; k++)
        check(dir, yaml, k, &(opts){ .fails = 0 }, true);
    gp_pipeline_destroy(p[1]), gp_pipeline_destroy(p[0]);
}

/* A stage on the host may not read them. */
TEST(host_readers)
{
    gp_errs errs = { .n = 0 };
    const char *dir = pipe_dir();
    char yaml[2000];
    pipe_text(dir, "copy.lua", "function process(frame, x, y) y:copy(x) end\n");
    ck_assert(!compile(dir, write_yaml(yaml, 0, "workers: 1", false, "  - {use: lua, script: copy.lua}\n"), &errs));
    ck_assert_msg(strstr(errs.e[0].msg, "stage 'put' writes the memory of the device, and stage 'lua' reads that on the host"),
                  "%s", errs.e[0].msg);
}

CASES_SUITE(fills, set_up, tear_down, 120, 1)
