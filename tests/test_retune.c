/* test_retune.c - runs that are retuned while they go on, on the CPU back end: the bytes are those of a run without an
 * edit, or those that the edit asks for from some frame on; and what cannot change is named. */
#include <dirent.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include "knobs_cases.h"

static gp_machine machine;

static void set_up(void)
{
    gp_machine_read(&machine, false);
}

/* ---- a run, and edits of it ---------------------------------------------- */

enum { PARTS = 32 };

typedef struct edited_run {
    gp_pipeline *part[PARTS]; int nparts;      /* the last one is what runs, or is to go on */
    _Atomic(gp_pipeline *) now;
    gp_errs errs;              /* of the run */
    gp_errs refused;           /* of the newest edit */
    atomic_bool over;
    gp_outcome outcome;
    pthread_t thread;
    atomic_int gone_on;        /* how often */
} edited_run;

static gp_pipeline *compile(const char *dir, const char *text, const char *const *set, gp_errs *errs)
{
    const char *sets[16] = { "device=cpu" };
    gp_config c = { .machine = &machine, .set = sets, .nset = 1 };
    while (set && *set)
        sets[c.nset++] = *set++;
    return pipe_compile(dir, text, c, errs);
}

/* As an application does: the run goes on under the newest part, or, where that fails, under the one before. */
static void *run_main(void *arg)
{
    edited_run *r = arg;
    gp_pipeline *p = r->part[0];
    r->outcome = gp_pipeline_run(p, NULL, &r->errs);
    while (r->outcome == GP_PAUSED) {
        gp_pipeline *next = r->part[r->nparts - 1];
        atomic_fetch_add(&r->gone_on, 1);
        atomic_store(&r->now, next);
        r->outcome = gp_pipeline_go_on(next, p, NULL, &r->errs);
        if (r->outcome == GP_ERROR && gp_pipeline_is_paused(p)) {
            ck_assert(r->errs.failed);
            r->refused = r->errs, r->errs = (gp_errs){ .n = 0 };
            atomic_store(&r->now, p);
            r->outcome = gp_pipeline_go_on(p, p, NULL, &r->errs);
        } else {
            p = next;
        }
    }
    atomic_store(&r->over, true);
    return NULL;
}

static void start(edited_run *r, const char *dir, const char *text, const char *const *set)
{
    memset(r, 0, sizeof *r);
    r->part[r->nparts++] = compile(dir, text, set, &r->errs);
    ck_assert_msg(r->part[0], "%s", r->errs.e[0].msg);
    atomic_store(&r->now, r->part[0]);
    pthread_create(&r->thread, NULL, run_main, r);
}

static unsigned long long frames_in(edited_run *r)
{
    return pipe_frames_in(atomic_load(&r->now));
}

static void wait_for(edited_run *r, unsigned long long frames)
{
    while (!atomic_load(&r->over) && frames_in(r) < frames)
        sched_yield();
}

/* False: refused, see r->refused, or the run is over. Else it goes on, or has come to its end, before it returns. */
static bool edit(edited_run *r, const char *dir, const char *text, const char *const *set)
{
    gp_pipeline *from = atomic_load(&r->now);
    int before = atomic_load(&r->gone_on);
    r->refused = (gp_errs){ .n = 0 };
    gp_pipeline *p = compile(dir, text, set, &r->refused);
    if (!p)
        return false;
    ck_assert_int_lt(r->nparts, PARTS);
    r->part[r->nparts++] = p;
    bool ok = gp_pipeline_retune(p, from, NULL, &r->refused);
    if (!ok) {
        r->nparts--;
        gp_pipeline_destroy(p);
    }
    gp_stage_status s;
    while (ok && !atomic_load(&r->over)
           && (atomic_load(&r->gone_on) == before || gp_stages_status(atomic_load(&r->now), &s, 1) < 1))
        sched_yield();
    return ok;
}

static void finish(edited_run *r, int level)
{
    if (level)
        gp_cancel(atomic_load(&r->now), level);
    pthread_join(r->thread, NULL);
    ck_assert_msg(!r->errs.failed, "%s", r->errs.failed ? r->errs.e[0].msg : "");
    ck_assert_int_eq(r->outcome, level ? GP_DRAINED : GP_DONE);
}

static void destroy(edited_run *r)
{
    for (int i = r->nparts - 1; i >= 0; i--)
        gp_pipeline_destroy(r->part[i]);
}

#define COUNT(x) (int)(sizeof(x) / sizeof *(x))

/* ---- knobs: the same bytes ------------------------------------------------- */

enum { RUNS = 24 };

/* Settings of a run on this device whose sources take some 0.4 s, and each time longer: making a plan ready takes longer
 * than so few frames, at full speed. */
static const char *const *slowly(const char *device, const char *const *set, int tries, const char *to[14])
{
    static const struct { const char *stage; double rate; } source[] = {
        { "read", 60 }, { "generate", 110 }, { "read2", 45 } };
    static char text[3][60];
    int n = 0;
    for (; n < 3; n++) {
        snprintf(text[n], sizeof text[n], "stages.%s.rate=%g", source[n].stage, source[n].rate / (1 + tries));
        to[n] = text[n];
    }
    to[n++] = device;
    while (*set)
        to[n++] = *set++;
    to[n] = NULL;
    return to;
}

/* All kinds of stages that keep something, with random depths, streams, launches and copies at random frames. */
TEST_SOME(knobs_make_the_same_bytes, RUNS, 12, 1)
{
    static const char *const devices[] = { "device=cpu", "device=cpu:0", "device=cpu:0-1" };       /* these copy */
    const char *device = devices[_i % 3];
    unsigned seed = (unsigned)_i * 2654435761u + 99;
    size_t want_n, n;
    const char *dir = pipe_dir();
    knobs_put_files(dir);
    pipe_result one = pipe_run(dir, knobs_yaml, "cpu", NULL, (gp_run_options){ 0 });
    pipe_no_errors(&one, knobs_yaml);
    OWNED char *want = knobs_read_files(dir, &want_n);

    int edits = 0;
    for (int tries = 0; !edits && tries < 20; tries++) {       /* it may be over before it is asked */
        edited_run r;
        dir = pipe_dir();
        knobs_put_files(dir);
        const char *sets[14];
        start(&r, dir, knobs_yaml, slowly(device, knobs_goes_on[knobs_draw(&seed) % KNOBS_GOES_ON], tries, sets));
        for (int i = 0; i < 8 && !atomic_load(&r.over); i++) {
            wait_for(&r, knobs_draw(&seed) % 16 + frames_in(&r));
            edits += edit(&r, dir, knobs_yaml, slowly(device, knobs_goes_on[knobs_draw(&seed) % KNOBS_GOES_ON], tries, sets));
            ck_assert_msg(!r.refused.failed, "%s", r.refused.failed ? r.refused.e[0].msg : "");
        }
        finish(&r, 0);
        pipe_result last = { .outcome = r.outcome };
        last.naccounts = gp_accounts(atomic_load(&r.now), last.account, PIPE_SOURCES);
        knobs_check_accounts(&last);
        destroy(&r);
        OWNED char *have = knobs_read_files(dir, &n);
        ck_assert_msg(n == want_n && !memcmp(have, want, n), "run %d, with %d edits, makes other bytes", _i, edits);
    }
    ck_assert_int_gt(edits, 0);
}

static const char steps[] =
    "vars: {frames: 0, rate: 3000}\n"
    "buffers: {x: {dtype: f32, shape: [4]}, y: {like: x}, z: {like: x}, k: {const: k.npy}}\nstages:\n"
    "  - {use: generate, frames: frames, rate: rate, out: x}\n  - {use: scale, a: 2, b: 0, out: y}\n"
    "  - {use: expr, in: {y: y, k: k}, out: {z: z}, expr: y + k}\n  - {use: lua, script: s.lua, workers: 2}\n"
    "  - {use: mix, op: sum, frames: 3}\n  - {use: write, path: out.raw, durable: none}\n";

static const char script[] = "stateless = true\nfunction process(frame, x, y) y:copy(x) end\n";

static float hundred(int64_t i)
{
    return 3e6f;
}

/* Of the ramp's frame f in sums of three: what each of them would be with a gain. */
static float sum_of(uint64_t block, int i, double gain)
{
    double sum = 0;
    for (uint64_t f = 3 * block; f < 3 * block + 3; f++)
        sum += gain * (double)(4 * f + (unsigned)i);
    return (float)sum;
}

static void put_steps(const char *dir)
{
    pipe_text(dir, "s.lua", script);
    pipe_npy(dir, "k.npy", 4, 0, NULL);
}

/* An edit takes effect at some frame, and stays; the sum over that frame goes on over the pause. */
static const struct { const char *from, *to, *file, *text; double gain, offset; } effects[] = {
    { "a: 2", "a: 6", NULL, NULL, 6, 0 },
    { "expr: y + k", "expr: y * 4 + k", NULL, NULL, 8, 0 },
    { NULL, NULL, "s.lua", "stateless = true\nfunction process(f, x, y) for i = 1, 4 do y[i] = x[i] * 3 end end\n", 6, 0 },
    { NULL, NULL, "k.npy", NULL, 2, 9e6 },
    { "workers: 2", "workers: 4", NULL, NULL, 2, 0 },
};

TEST_EACH(an_edit_takes_effect, effects)
{
    const char *dir = pipe_dir();
    edited_run r;
    size_t bytes;
    put_steps(dir);
    const char *text = effects[_i].from ? pipe_edited(steps, effects[_i].from, effects[_i].to) : steps;
    start(&r, dir, steps, NULL);
    wait_for(&r, 100);
    if (effects[_i].text)
        pipe_text(dir, effects[_i].file, effects[_i].text);
    else if (effects[_i].file)
        pipe_npy(dir, effects[_i].file, 4, 0, hundred);
    unsigned long long before = frames_in(&r);
    ck_assert_msg(edit(&r, dir, text, NULL), "%s", pipe_said(&r.refused));
    wait_for(&r, before);              /* the plan that came counts on from there */
    wait_for(&r, frames_in(&r) + 100);
    finish(&r, 1);
    gp_account a;
    gp_accounts(atomic_load(&r.now), &a, 1);
    ck_assert_uint_eq(a.in, a.out + a.dropped);
    OWNED float *out = (float *)pipe_read(dir, "out.raw", &bytes);
    size_t blocks = bytes / 16, old = 0;
    ck_assert_uint_eq(blocks, (a.in + 2) / 3);
    while (old < blocks && out[4 * old + 1] == sum_of(old, 1, 2))
        old++;
    ck_assert_uint_ge(old, 33 - 16);
    if (_i < 4)
        ck_assert_uint_lt(old, blocks - 10);
    for (size_t k = old + 1; k + 1 < blocks; k++)      /* in `old` it took effect */
        for (int i = 0; i < 4; i++)
            ck_assert_msg(out[4 * k + (size_t)i] == (float)(sum_of(k, i, effects[_i].gain) + effects[_i].offset),
                          "block %zu of %zu, edited in %zu: %g", k, blocks, old, (double)out[4 * k + (size_t)i]);
    destroy(&r);
}

/* ---- what cannot change ------------------------------------------------------ */

static const struct { const char *from, *to, *msg; int line, col; } refused[] = {
    { "rate: rate", "rate: 1000", "'rate' cannot change while the run goes on: stage 'generate' is a source", 4, 37 },
    { "rate: 3000", "rate: 1000", "'rate' cannot change while the run goes on: stage 'generate' is a source", 1, 19 },
    { "path: out.raw", "path: other.raw", "'path' cannot change while the run goes on: stage 'write' keeps what it was given", 9, 18 },
    { "op: sum", "op: max", "'op' cannot change while the run goes on: stage 'mix' carries a state from frame to frame", 8, 16 },
    { "frames: 3}", "frames: 4}", "'frames' cannot change while the run goes on: stage 'mix' carries a state from frame to frame", 8, 25 },
    { "x: {dtype: f32, shape: [4]}", "x: {dtype: f64, shape: [4]}",
      "buffer 'x' is f32 [4] in the run and f64 [4] here: a shape cannot change while it goes on", 2, 11 },
    { "  - {use: lua", "  - {use: scale, a: 1, b: 0}\n  - {use: lua",
      "stage 'scale2' is not at this place in the run: stages cannot be added, taken out or moved while it goes on", 7, 11 },
    { "  - {use: lua, script: s.lua, workers: 2}\n", "",
      "stage 'mix' is not at this place in the run: stages cannot be added, taken out or moved while it goes on", 7, 11 },
    { "in: {y: y, k: k}", "in: {y: k, k: y}", "'in' of stage 'expr' cannot change while the run goes on", 6, 21 },
};

TEST_EACH(what_cannot_change_is_named, refused)
{
    const char *dir = pipe_dir();
    edited_run r;
    size_t bytes;
    put_steps(dir);
    char *text = pipe_edited(steps, refused[_i].from, refused[_i].to);
    start(&r, dir, steps, (const char *const[]){ "fuse=none", NULL });
    wait_for(&r, 30);
    ck_assert(!edit(&r, dir, text, (const char *const[]){ "fuse=none", NULL }));
    ck_assert_int_eq(r.refused.n, 1);
    ck_assert_str_eq(r.refused.e[0].msg, refused[_i].msg);
    ck_assert_int_eq(r.refused.e[0].at.line, refused[_i].line);
    ck_assert_int_eq(r.refused.e[0].at.col, refused[_i].col);
    ck_assert_int_eq(atomic_load(&r.gone_on), 0);
    wait_for(&r, frames_in(&r) + 30);  /* the old plan goes on */
    finish(&r, 1);
    OWNED float *out = (float *)pipe_read(dir, "out.raw", &bytes);
    for (size_t k = 0; k + 1 < bytes / 16; k++)
        ck_assert_float_eq(out[4 * k + 3], sum_of(k, 3, 2));
    destroy(&r);
}

/* A script that keeps something: it stays as it is over other edits, and cannot be edited itself. */
TEST(a_script_with_a_state)
{
    const char *dir = pipe_dir();
    edited_run r;
    size_t bytes;
    put_steps(dir);
    pipe_text(dir, "s.lua", "local n = 0\nfunction process(f, x, y) n = n + 1; for i = 1, 4 do y[i] = n end end\n");
    char *one = pipe_edited(steps, ", workers: 2", ""), *text = pipe_edited(one, "a: 2", "a: 6");
    start(&r, dir, one, NULL);
    wait_for(&r, 30);
    ck_assert_msg(edit(&r, dir, text, (const char *const[]){ "depth=7", NULL }), "%s", pipe_said(&r.refused));
    wait_for(&r, frames_in(&r) + 30);
    pipe_text(dir, "s.lua", "function process(f, x, y) y:copy(x) end\n");
    ck_assert(!edit(&r, dir, text, NULL));
    ck_assert_ptr_nonnull(strstr(r.refused.e[0].msg, "s.lua' cannot change while the run goes on: stage 'lua' may keep a state"));
    finish(&r, 1);
    OWNED float *out = (float *)pipe_read(dir, "out.raw", &bytes);
    for (size_t k = 0; k + 1 < bytes / 16; k++)        /* n of each of three frames */
        ck_assert_float_eq(out[4 * k], (float)(9 * k + 6));
    destroy(&r);
}

/* What is wrong is found while the old plan runs: it goes on. */
static const struct { const char *from, *to, *file, *text, *msg; } wrong[] = {
    { "a: 2", "a: [", NULL, NULL, NULL },
    { "a: 2", "aa: 2", NULL, NULL, NULL },
    { NULL, NULL, "s.lua", "stateless = true\nfunction process(f, x, y) y:copy(x) en", "s.lua:2" },
    { NULL, NULL, "s.lua", "stateless = true\nerror('no')", "no" },
    { "vars:", "depth: 999999\nvars:", NULL, NULL, NULL },
};

TEST_EACH(what_is_wrong_is_found_before, wrong)
{
    const char *dir = pipe_dir();
    edited_run r;
    put_steps(dir);
    const char *text = wrong[_i].from ? pipe_edited(steps, wrong[_i].from, wrong[_i].to) : steps;
    start(&r, dir, steps, NULL);
    wait_for(&r, 30);
    if (wrong[_i].file)
        pipe_text(dir, wrong[_i].file, wrong[_i].text);
    if (_i == 4)
        machine.memory = 1 << 20;
    ck_assert(!edit(&r, dir, text, NULL));
    ck_assert_int_gt(r.refused.failed, 0);
    if (wrong[_i].msg)
        ck_assert_msg(strstr(r.refused.e[0].msg, wrong[_i].msg), "%s", r.refused.e[0].msg);
    ck_assert_int_eq(atomic_load(&r.gone_on), 0);
    wait_for(&r, frames_in(&r) + 30);
    put_steps(dir);
    machine.memory = (size_t)1 << 40;
    ck_assert_msg(edit(&r, dir, steps, (const char *const[]){ "depth=3", NULL }), "%s", pipe_said(&r.refused));
    finish(&r, 1);
    destroy(&r);
}

/* Copies of buffers that have equally many slots are one, so that a depth changes how many there are. */
TEST(depths_beside_copies)
{
    static const char lanes[] =
        "buffers: {k: {dtype: f32, shape: [16]}}\nstages:\n"
        "  - {use: generate, rate: 400, out: k}\n"
        "  - {use: scale, name: up, a: 2, b: 1, in: k, out: e}\n"
        "  - {use: loop, times: 3, carry: {i: o}, stages: [{use: scale, a: 0.5, b: 1, in: i, out: o}], in: {i: k}, out: {o: g}}\n"
        "  - {use: write, name: first, in: e, path: e.raw, durable: none}\n"
        "  - {use: write, name: second, in: g, path: g.raw, durable: none}\n";
#define LANES "device=cpu:0-1"
    static const char *const sets[][4] = { { LANES, NULL }, { LANES, "buffers.e.depth=2", NULL },
        { LANES, "buffers.g.depth=9", NULL }, { LANES, "depth=4", NULL },
        { LANES, "buffers.k.depth=8", "buffers.e.depth=6", NULL } };
    const char *dir = pipe_dir();
    edited_run r;
    int edits = 0;
    start(&r, dir, lanes, sets[0]);
    for (int i = 1; i < PARTS - 1; i++) {
        wait_for(&r, frames_in(&r) + 10);
        edits += edit(&r, dir, lanes, sets[i % COUNT(sets)]);
        ck_assert_msg(!r.refused.failed, "%s", r.refused.failed ? r.refused.e[0].msg : "");
    }
    ck_assert_int_gt(edits, 2);
    finish(&r, 1);
    int frames = (int)frames_in(&r);
    for (int file = 0; file < 2; file++) {
        OWNED float *have = pipe_read_all(dir, file ? "g.raw" : "e.raw", (size_t)frames * 16 * sizeof *have);
        for (int i = 0; i < frames * 16; i++) {
            float x = (float)i, want = file ? ((x * 0.5f + 1) * 0.5f + 1) * 0.5f + 1 : 2 * x + 1;
            ck_assert_msg(have[i] == want, "element %d is %g, not %g", i, have[i], want);
        }
    }
    destroy(&r);
}

/* A frame that is carried has the slot of the one before: with fewer slots none of an older frame is in its place. */
TEST(slots_of_what_is_carried)
{
    static const char sums[] =
        "buffers: {x: {dtype: f32, shape: [4]}, was: {carry: sum}, sum: {like: x}}\nstages:\n"
        "  - {use: generate, pattern: constant, value: 1, rate: 400, out: x}\n"
        "  - {use: expr, in: {x: x, was: was}, out: sum, expr: was + x}\n"
        "  - {use: write, path: out.raw, durable: none}\n";
    static const char *const sets[][3] = { { "device=cpu:0", "depth=12", NULL }, { "device=cpu:0", "depth=1", NULL },
        { "device=cpu:0", "depth=24", NULL }, { "device=cpu:0", "depth=2", NULL }, { "device=cpu:0", "depth=3", NULL } };
    const char *dir = pipe_dir();
    edited_run r;
    size_t n;
    start(&r, dir, sums, sets[0]);
    for (int i = 1; i < PARTS - 1; i++) {
        wait_for(&r, frames_in(&r) + 30);
        ck_assert_msg(edit(&r, dir, sums, sets[i % COUNT(sets)]), "%s", pipe_said(&r.refused));
    }
    finish(&r, 1);
    OWNED float *have = (float *)pipe_read(dir, "out.raw", &n);
    ck_assert_uint_eq(n, frames_in(&r) * 4 * sizeof *have);
    for (size_t i = 0; i < n / sizeof *have; i++)
        ck_assert_msg(have[i] == (float)(i / 4 + 1), "element %zu is %g", i, (double)have[i]);
    destroy(&r);
}

/* Many workers and files: no frame is lost, doubled or in another's place. */
TEST(workers_of_files)
{
    static const char files[] =
        "buffers: {x: {dtype: f32, shape: [64]}, y: {like: x}}\nstages:\n"
        "  - {use: read, path: in.raw, loop: true, rate: 2000, out: x}\n"
        "  - {use: scale, a: 1, b: 0, out: y}\n  - {use: write, path: \"%05d.npy\", durable: none}\n";
    static const char *const sets[][4] = { { "stages.read.workers=3", "stages.write.workers=1", NULL },
        { "stages.read.workers=1", "stages.write.workers=4", NULL }, { "depth=9", "stages.write.workers=2", NULL },
        { "depth=2", "stages.read.workers=2", "stages.write.workers=3", NULL } };
    const char *dir = pipe_dir();
    edited_run r;
    float data[64 * 7];
    for (int i = 0; i < 64 * 7; i++)
        data[i] = (float)i;
    pipe_file(dir, "in.raw", data, sizeof data);
    start(&r, dir, files, sets[0]);
    int edits = 0;
    for (int i = 1; i < PARTS - 1; i++) {
        wait_for(&r, frames_in(&r) + 20);
        edits += edit(&r, dir, files, sets[i % 4]);
        ck_assert_msg(!r.refused.failed, "%s", r.refused.failed ? r.refused.e[0].msg : "");
    }
    ck_assert_int_gt(edits, 2);
    finish(&r, 1);
    int frames = (int)frames_in(&r);
    for (int f = 0; f < frames; f++) {
        size_t bytes;
        OWNED char *have = pipe_read(dir, format("%05d.npy", f), &bytes);
        ck_assert_msg(have && bytes > 256 && !memcmp(have + bytes - 256, data + 64 * (f % 7), 256), "frame %d", f);
    }
    destroy(&r);
}

/* A joined file has as many workers as it began with. */
TEST(workers_of_one_file)
{
    const char *dir = pipe_dir();
    edited_run r;
    put_steps(dir);
    start(&r, dir, steps, NULL);
    wait_for(&r, 30);
    edit(&r, dir, steps, (const char *const[]){ "stages.write.workers=3", NULL });
    ck_assert_int_eq(r.refused.failed, 1);
    ck_assert_ptr_nonnull(strstr(r.refused.e[0].msg, "stage 'write' writes one file, and has 1 worker in the run"));
    wait_for(&r, frames_in(&r) + 30);
    finish(&r, 1);
    destroy(&r);
}

/* Cancelled while it is set up, while it pauses, while it goes on. */
TEST_LOOP(cancelled_meanwhile, 0, 8)
{
    unsigned seed = (unsigned)_i * 77 + 5;
    const char *dir = pipe_dir();
    edited_run r;
    put_steps(dir);
    start(&r, dir, steps, NULL);
    wait_for(&r, 10);
    edit(&r, dir, steps, knobs_goes_on[1 + knobs_draw(&seed) % (KNOBS_GOES_ON - 2)]);
    if (_i & 1)
        usleep(knobs_draw(&seed) % 3000);
    gp_cancel(atomic_load(&r.now), 1);
    edit(&r, dir, steps, knobs_goes_on[1 + knobs_draw(&seed) % (KNOBS_GOES_ON - 2)]);
    finish(&r, 1);
    gp_account a;
    gp_accounts(atomic_load(&r.now), &a, 1);
    ck_assert_uint_eq(a.in, a.out + a.dropped);
    free(pipe_read_all(dir, "out.raw", (a.in + 2) / 3 * 16));
    destroy(&r);
}

/* Who retunes is asked once all is made ready, while the run goes on, and may say no. */
typedef struct asked { edited_run *r; unsigned long long in; int times; bool pauses; } asked;

static bool asked_to_pause(void *arg)
{
    asked *a = arg;
    a->times++;
    wait_for(a->r, frames_in(a->r) + 5);
    a->in = frames_in(a->r);
    return a->pauses;
}

TEST(asked_before_it_pauses)
{
    static const char yaml[] =
        "buffers: {x: {dtype: u8, shape: [16]}}\n"
        "stages: [{use: generate, rate: 500, out: x}, {use: discard}]\n";
    const char *deep[] = { "depth=7", NULL }, *paced[] = { "stages.generate.rate=7", NULL };
    const char *dir = pipe_dir();
    edited_run r;
    asked a = { .r = &r };
    gp_run_options o = { .pause = asked_to_pause, .pause_arg = &a };
    gp_stage_status s;
    start(&r, dir, yaml, NULL);
    wait_for(&r, 1);
    gp_pipeline *not = compile(dir, yaml, paced, &r.refused), *p = compile(dir, yaml, deep, &r.refused);
    ck_assert(not && p && !r.refused.failed);
    r.part[r.nparts++] = p;
    ck_assert(!gp_pipeline_retune(p, r.part[0], &o, &r.refused) && !r.refused.failed && a.times == 1);
    ck_assert(atomic_load(&r.gone_on) == 0);
    unsigned long long in = a.in;
    wait_for(&r, in + 5);
    ck_assert(!gp_pipeline_retune(not, r.part[0], &o, &r.refused) && r.refused.failed && a.times == 1);
    r.refused = (gp_errs){ .n = 0 };
    a.pauses = true;
    ck_assert(gp_pipeline_retune(p, r.part[0], &o, &r.refused) && a.times == 2 && a.in > in);
    while (atomic_load(&r.gone_on) != 1 || gp_stages_status(p, &s, 1) < 1)
        sched_yield();
    finish(&r, 1);
    gp_pipeline_destroy(not);
    destroy(&r);
}

TEST(a_kernel_with_variables)
{
    static const char counts[] =
        "buffers: {x: {dtype: f32, shape: [4]}, y: {like: x}}\nstages:\n  - {use: generate, rate: 1000, out: x}\n"
        "  - {use: kernel, source: k.cu, entry: k, grid: 1, block: 4, serial: true, in: {a: x}, out: {o: y}, args: [a, o]}\n"
        "  - {use: discard}\n";
    const char *dir = pipe_dir();
    edited_run r;
    pipe_text(dir, "k.cu", "__device__ int n;\nextern \"C\" __global__ void k(const float *a, float *o)\n{\n"
                           "    if (!threadIdx.x)\n        n++;\n    o[threadIdx.x] = a[threadIdx.x] + n;\n}\n");
    start(&r, dir, counts, NULL);
    wait_for(&r, 10);
    ck_assert(!edit(&r, dir, counts, (const char *const[]){ "depth=7", NULL }));
    ck_assert_str_eq(r.refused.e[0].msg, "the kernel of stage 'kernel' has variables of its own, which a run that pauses and goes "
                                         "on would lose");
    finish(&r, 1);
    destroy(&r);
}

TEST(a_kernel_is_edited)
{
    static const char yaml[] =
        "buffers: {x: {dtype: f32, shape: [4]}, y: {like: x}}\nstages:\n  - {use: generate, rate: 2000, out: x}\n"
        "  - {use: kernel, source: k.cu, entry: k, grid: 1, block: 4, in: {a: x}, out: {o: y}, args: [a, o]}\n"
        "  - {use: write, path: out.raw, durable: none}\n";
    static const char kernel[] = "extern \"C\" __global__ void k(const float *a, float *o) { o[threadIdx.x] = 2 * a[threadIdx.x]; }\n";
    const char *dir = pipe_dir();
    edited_run r;
    size_t bytes;
    char *text = pipe_edited(kernel, "2 *", "5 *"), *bad = pipe_edited(kernel, "2 *", "b *"), what[200];
    pipe_text(dir, "k.cu", kernel);
    start(&r, dir, yaml, NULL);
    wait_for(&r, 50);
    pipe_text(dir, "k.cu", bad);
    ck_assert(!edit(&r, dir, yaml, NULL));
    ck_assert_int_gt(r.refused.failed, 0);
    pipe_text(dir, "k.cu", text);
    ck_assert(edit(&r, dir, yaml, NULL));
    ck_assert_int_eq(gp_pipeline_changes(r.part[r.nparts - 1], r.part[0], what, sizeof what), 1);
    ck_assert_ptr_nonnull(strstr(what, "k.cu"));
    wait_for(&r, frames_in(&r) + 50);
    finish(&r, 1);
    OWNED float *out = (float *)pipe_read(dir, "out.raw", &bytes);
    size_t n = bytes / 4, i = 0;
    while (i < n && out[i] == 2 * (float)i)
        i++;
    ck_assert(i >= 4 * 40 && i < n && i % 4 == 1 - (i % 4 == 0));      /* element 0 of frame 0 is 0 anyhow */
    for (; i < n; i++)
        ck_assert_float_eq(out[i], 5 * (float)i);
    destroy(&r);
}

/* The threads of this process, but those of a device: how many of `known` are still there, 0: all, in `tid`. */
static int threads_there(long *tid, int known)
{
    enum { MOST = 100 };
    int n = 0, kept = 0;
    DIR *d = opendir("/proc/self/task");
    ck_assert_ptr_nonnull(d);
    for (struct dirent *e; (e = readdir(d));) {
        long id = atol(e->d_name);
        char path[64], name[20] = "";
        snprintf(path, sizeof path, "/proc/self/task/%ld/comm", id);
        FILE *f = fopen(path, "r");
        if (!f || !fgets(name, sizeof name, f) || !strcmp(name, "stream\n"))
            id = 0;
        if (f)
            fclose(f);
        for (int i = 0; i < known; i++)
            kept += tid[i] == id;
        if (id && !known && n < MOST)
            tid[n++] = id;
    }
    closedir(d);
    return known ? kept : n;
}

/* More workers than there may be threads are refused before the run pauses. Those that there are stay over an edit. */
TEST(threads_of_workers)
{
    const char *dir = pipe_dir();
    const char *const many[] = { "stages.lua.workers=64", NULL }, *const more[] = { "stages.lua.workers=4", NULL };
    edited_run r;
    long tid[100];
    put_steps(dir);
    start(&r, dir, steps, NULL);
    wait_for(&r, 30);
    int n = threads_there(tid, 0);
    ck_assert(edit(&r, dir, steps, more) && edit(&r, dir, steps, (const char *const[]){ more[0], "depth=3", NULL }));
    ck_assert_int_eq(threads_there(tid, n), n);
    if (suite_leave_memory(64 << 20)) {
        ck_assert(!edit(&r, dir, steps, many));
        ck_assert_int_eq(setrlimit(RLIMIT_AS, &(struct rlimit){ RLIM_INFINITY, RLIM_INFINITY }), 0);
        /* some of the memory may be gone before the last of them is started */
        ck_assert_int_eq(r.refused.e[0].code, GP_E_RESOURCE);
        ck_assert_msg(strstr(r.refused.e[0].msg, "cannot start ") || strstr(r.refused.e[0].msg, "memory"), "%s",
                      r.refused.e[0].msg);
        ck_assert_int_eq(atomic_load(&r.gone_on), 2);
        wait_for(&r, frames_in(&r) + 30);
    }
    ck_assert_msg(edit(&r, dir, steps, many), "%s", r.refused.n ? r.refused.e[0].msg : "?");
    finish(&r, 1);
    destroy(&r);
}

static const struct { const char *from, *to, *says; int items; } changes[] = {
    { "frames: 0", "frames: 0", "", 0 },
    { "a: 2", "a: 6", "stages.scale.a 2 -> 6", 1 },
    { "rate: 3000", "rate: 9", "vars.rate 3000 -> 9", 1 },
    { "vars:", "depth: 3\nvars:", "depth = 3", 1 },
    { ", durable: none", "", "stages.write.durable left out", 1 },
    { "script: s.lua, workers: 2", "script: s.lua, workers: 3, on_error: drop", "stages.lua.workers 2 -> 3, stages.lua.on_error = drop", 2 },
};

TEST_EACH(changes_are_said, changes)
{
    const char *dir = pipe_dir();
    gp_errs errs = { .n = 0 };
    char what[200];
    put_steps(dir);
    char *text = pipe_edited(steps, changes[_i].from, changes[_i].to);
    gp_pipeline *p = compile(dir, steps, NULL, &errs), *q = compile(dir, text, NULL, &errs);
    ck_assert_msg(p && q, "%s", pipe_said(&errs));
    ck_assert_int_eq(gp_pipeline_changes(q, p, what, sizeof what), changes[_i].items);
    ck_assert_str_eq(what, changes[_i].says);
    gp_pipeline_changes(q, p, what, 8);
    ck_assert_int_lt((int)strlen(what), 8);
    ck_assert_ptr_nonnull(strstr(gp_pipeline_made_of(p, 0), "test.yaml"));
    ck_assert_ptr_nonnull(strstr(gp_pipeline_made_of(p, 1), "s.lua"));
    ck_assert_ptr_nonnull(strstr(gp_pipeline_made_of(p, 2), "k.npy"));
    ck_assert_ptr_null(gp_pipeline_made_of(p, 3));
    gp_pipeline_destroy(q), gp_pipeline_destroy(p);
}

/* What pipelines that a run has left keep: open files, and bytes. */
typedef struct kept { int files; size_t bytes; } kept;

static kept kept_after(int edits)
{
    const char *dir = pipe_dir();
    edited_run r;
    kept k = { 0 };
    put_steps(dir);
    start(&r, dir, steps, NULL);
    wait_for(&r, 30);
    for (int i = 0; i < edits; i++) {
        char *depth = format("depth=%d", 2 + i % 2);
        ck_assert_msg(edit(&r, dir, steps, (const char *const[]){ depth, NULL }), "%s", pipe_said(&r.refused));
    }
    finish(&r, 1);
#if defined __GLIBC__ && __GLIBC_PREREQ(2, 33)
    struct mallinfo2 m = mallinfo2();
    k.bytes = m.uordblks + m.hblkhd;
#endif
    DIR *d = opendir("/proc/self/fd");
    ck_assert_ptr_nonnull(d);
    while (readdir(d))
        k.files++;
    closedir(d);
    destroy(&r);
    return k;
}

TEST(what_is_left_is_given_back)
{
    enum { FEW = 2, MANY = 30, EACH = 300000 };
    kept few = kept_after(FEW), many = kept_after(MANY);
    ck_assert_int_eq(many.files, few.files);
    ck_assert_uint_lt(many.bytes, few.bytes + (MANY - FEW) * EACH);
}

TEST_SUITE(retune, set_up, NULL, 0)
