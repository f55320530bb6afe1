/* call_cases.c - a device stage that calls a library: `through`, which copies its input to a work area of the slot
 * and from there to its output. Results are compared with what a host would have made, over depths, streams, batches
 * and launches. */
#include <stdatomic.h>
#if GP_CUDA
#include <cuda_runtime_api.h>
#endif
#include "cases.h"

enum { FRAMES = 37, HIGH = 5, WIDE = 100, SIZE = HIGH * WIDE, LAST = 3, SLOTS = 192 };

static atomic_int opened, alike;       /* slots that open() was told of; frames that were in one slot at the same time */
static atomic_bool used[SLOTS];

/* ---- the kind ------------------------------------------------------------ */

typedef struct opts { int64_t fails; bool batched, apart; } opts;

typedef struct through {
    gp_dev *dev;
    int slots;
    size_t bytes;
    char *work;
    void *stream;              /* of one that is called apart */
    atomic_bool busy[SLOTS];
} through;

typedef struct copying { through *t; const void *from; void *to; size_t bytes; int slot, fails; } copying;

static bool shape(gp_shape *s)
{
    const opts *o = s->opts;
    s->out[0] = s->in[0];
    s->calls_library = true, s->uncaptured = o->apart, s->batched = o->batched, s->writes_all = true;
    return true;
}

static bool open_through(const gp_open *o, void **state)
{
    through *t = calloc(1, sizeof *t);
    int index;
    ck_assert(t && o->slots >= 1 && o->slots <= SLOTS);
    *state = t;
    t->dev = o->dev, t->slots = o->slots, t->bytes = gp_bytes(&o->in[0]);
    atomic_store(&opened, o->slots);
    if (((const opts *)o->opts)->apart && !gp_device_place(o->dev, &index, &t->stream, o->errs))
        return false;
    return (t->work = gp_device_alloc(o->dev, t->bytes * (size_t)t->slots, o->errs)) != NULL;
}

static void close_through(void *state)
{
    through *t = state;
    gp_device_free(t->dev, t->work, t->bytes * (size_t)t->slots);
    free(t);
}

static bool copy(void *stream, const void *arg, gp_errs *errs)
{
    const copying *x = arg;
    char *work = x->t->work + x->t->bytes * (size_t)x->slot;
    ck_assert_uint_eq((uintptr_t)arg % 16 * !stream, 0);
    atomic_store(&used[x->slot], true);
    ck_assert(!x->t->stream || stream == x->t->stream);
    if (x->fails)
        return x->fails == 1 ? gp_fail(errs, GP_E_RUN, (gp_loc){ 0 }, "the library does not like it") : false;
#if GP_CUDA
    if (stream)
        return cudaMemcpyAsync(work, x->from, x->bytes, cudaMemcpyDeviceToDevice, stream) == cudaSuccess
            && cudaMemcpyAsync(x->to, work, x->bytes, cudaMemcpyDeviceToDevice, stream) == cudaSuccess;
#endif
    ck_assert_ptr_null(stream);
    if (atomic_exchange(&x->t->busy[x->slot], true))
        atomic_fetch_add(&alike, 1);
    memcpy(work, x->from, x->bytes);
    memcpy(x->to, work, x->bytes);
    atomic_store(&x->t->busy[x->slot], false);
    return true;
}

static bool record(gp_dcall *c)
{
    const opts *o = c->opts;
    through *t = c->state;
    for (int j = 0; j < c->n; j++) {
        copying x = { t, (char *)c->in[0].data + (size_t)j * c->in[0].stride,
                      (char *)c->out[0].data + (size_t)j * c->out[0].stride, gp_bytes(&c->in[0].type), c->slot + j,
                      (int)o->fails };
        ck_assert(x.slot >= 0 && x.slot < t->slots);
        if (!(o->apart ? gp_call_library_apart : gp_call_library)(c, copy, &x, sizeof x))
            return false;
    }
    return true;
}

static const gp_port port[] = { { "x", GP_ACCEPT(GP_F32), false, "numbers" }, { 0 } };
static const gp_opt options[] = {
    { GP_INT(opts, fails), .help = "1: with an error; 2: without one" },
    { GP_BOOL(opts, batched), .help = "takes several frames" },
    { GP_BOOL(opts, apart), .help = "on a stream of its own" },
    { 0 }
};
static const gp_kind kind = {
    GP_KIND("through"), .help = "calls a library", .in = port, .out = port, .opts = options, .opts_size = sizeof(opts),
    .any_shape = true, .calls_library = true, .shape = shape, .open = open_through, .close = close_through, .record = record,
};

/* ---- running --------------------------------------------------------------- */

static void set_up(void)
{
    pipe_kinds(&kind, 1);
    atomic_store(&opened, 0), atomic_store(&alike, 0);
    memset(used, 0, sizeof used);
}

static void tear_down(void)
{
    pipe_kinds(NULL, 0);
}

static float value(int64_t i)
{
    return (float)((i * 7919) % 1000);
}

static gp_outcome run(const char *dir, const char *yaml, gp_errs *errs)
{
    pipe_result r = pipe_run(dir, yaml, on, NULL, (gp_run_options){ .poison = true });
    *errs = r.errs;
    return r.outcome;
}

static const char *const knobs[] = {
    "", "depth: 1\n", "depth: 16\nstreams: 3\nbatch: 4\n", "depth: 8\nstreams: 8\n",
    "depth: 5\nlaunch: stream\nsync: block\n", "depth: 16\nbatch: 8\nlaunch: stream\n",
};
enum { KNOBS = sizeof knobs / sizeof *knobs };

/* In order with kernels before and behind it, the last frame with fewer rows; alone, and in a loop. */
static const char *const uses[] = {
    "  - {use: through}\n", "  - {use: through, batched: true}\n",
    "  - {use: through, apart: true}\n",
    "  - {use: through, apart: true, batched: true, out: t}\n  - {use: through, apart: true}\n",
    ("  - {use: loop, in: {x: y}, out: {z: end}, times: 3, carry: {x: z}, stages: [{use: through, batched: true, out: t}, "
     "{use: through, batched: true, in: t, out: z}]}\n"),
};
enum { USES = sizeof uses / sizeof *uses };

TEST_LOOP(in_order, 0, KNOBS * USES)
{
    const char *dir = pipe_dir();
    gp_errs errs = { .n = 0 };
    size_t bytes;
    int depth = 1;
    pipe_npy(dir, "in.npy", HIGH * (FRAMES - 1) + LAST, WIDE, value);
    char *yaml = format("%sbuffers: {x: {dtype: f32, shape: [5, 100]}}\nstages:\n  - {use: read, path: in.npy, out: x}\n"
             "  - {use: scale, a: 2, out: y}\n%s  - {use: scale, b: 1}\n  - {use: write, path: out.raw, durable: none}\n",
             knobs[_i % KNOBS], uses[_i / KNOBS]);
    gp_outcome outcome = run(dir, yaml, &errs);
    ck_assert_msg(outcome == GP_DONE && !errs.failed, "%s: outcome %d: %s", yaml, (int)outcome, pipe_said(&errs));
    OWNED float *v = (float *)pipe_read(dir, "out.raw", &bytes);
    ck_assert_msg(v && bytes == 4 * (SIZE * (FRAMES - 1) + LAST * WIDE), "%s: %zu bytes", yaml, bytes);
    for (int i = 0; i < (int)bytes / 4; i++)
        ck_assert_msg(v[i] == 2 * value(i) + 1, "%s: element %d is %g", yaml, i, v[i]);
    ck_assert_int_eq(atomic_load(&alike), 0);
    sscanf(knobs[_i % KNOBS], "depth: %d", &depth);
    ck_assert_int_ge(atomic_load(&opened), depth);
    for (int i = 0; i < atomic_load(&opened) && i < FRAMES; i++)
        ck_assert_msg(atomic_load(&used[i]), "%s: nothing was in slot %d", yaml, i);
}

/* What the library does not do is an error at the stage: with its words, or with the engine's. */
TEST_LOOP(fails, 0, 2 * KNOBS)
{
    static const char *const says[] = { "the library does not like it",
                                        "stage 'through': a call of a library failed and does not say why" };
    const char *dir = pipe_dir();
    gp_errs errs = { .n = 0 };
    pipe_npy(dir, "in.npy", HIGH * FRAMES, WIDE, value);
    char *yaml = format("%sbuffers: {x: {dtype: f32, shape: [5, 100]}}\nstages:\n  - {use: read, path: in.npy, out: x}\n"
             "  - {use: scale, a: 2}\n  - {use: through, fails: %d}\n  - {use: write, path: out.raw}\n", knobs[_i % KNOBS],
             1 + _i / KNOBS);
    ck_assert_int_eq(run(dir, yaml, &errs), GP_ERROR);
    ck_assert_msg(errs.n && !strcmp(errs.e[0].msg, says[_i / KNOBS]), "%s", pipe_said(&errs));
    int lines = 5;
    for (const char *k = knobs[_i % KNOBS]; *k; k++)
        lines += *k == '\n';
    ck_assert_int_eq(errs.e[0].at.line, lines);
}

TEST(not_persistent)
{
    const char *dir = pipe_dir();
    for (int i = 0; i < USES; i++) {
        gp_errs errs = { .n = 0 };
        char *yaml = format("launch: persistent\nbuffers: {y: {dtype: f32, shape: [5, 100]}}\nstages:\n"
                            "  - {use: generate, frames: 3, out: y}\n%s  - {use: discard}\n", uses[i]);
        ck_assert_int_eq(run(dir, yaml, &errs), GP_ERROR);
        char *want = format("stage '%s' calls a library, which 'launch: persistent' does not support: set "
                            "'launch: graph'", strstr(uses[i], "loop") ? "loop" : "through");
        ck_assert_msg(errs.n && !strcmp(errs.e[0].msg, want), "%s", pipe_said(&errs));
        ck_assert_int_eq(errs.e[0].at.line, 5);
    }
}

TEST(not_in_a_loop)
{
    const char *dir = pipe_dir();
    gp_errs errs = { .n = 0 };
    const char *yaml = "buffers: {y: {dtype: f32, shape: [5, 100]}}\nstages:\n  - {use: generate, frames: 3, out: y}\n"
                       "  - {use: loop, in: {x: y}, out: {z: end}, times: 3, carry: {x: z}, "
                       "stages: [{use: through, apart: true, out: z}]}\n  - {use: discard}\n";
    ck_assert_int_eq(run(dir, yaml, &errs), GP_ERROR);
    ck_assert_msg(errs.n && strstr(errs.e[0].msg, "cannot be part of a graph, which no stage of a loop may do"), "%s",
                  pipe_said(&errs));
}

CASES_SUITE(call, set_up, tear_down, 0, 1)
