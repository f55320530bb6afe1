/* test_turns.c - which thread does the turns of a host stage: that a thread goes on with cheap stages next to its
 * own, that it changes nothing, and that nobody waits for ever when such a stage blocks. */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include "run/pipeline.h"
#include "idle.h"
#include "every.h"
#include "pipe.h"
#include "run/run.h"

/* ---- stage kinds ----------------------------------------------------- */

static _Thread_local bool is_makers;   /* the thread of a `make` */
static atomic_ullong made, taken_by_maker, taken;
static struct { uint64_t hash, frames; } result[4];
static atomic_bool may_go_on, ended[4];

struct opts { int64_t frames, nap, spin, drop, again, fail, block, hang, id; bool says, until_end; };

static void nap_ns(int64_t ns)
{
    nanosleep(&(struct timespec){ .tv_nsec = ns }, NULL);
}

static uint64_t mixed(uint64_t a, uint64_t b)
{
    a = (a ^ b) * 0x9e3779b97f4a7c15;
    return a ^ a >> 29;
}

/* What all kinds may do in frame f, by its number alone. False: not this one yet. */
static bool behaves(gp_call *c, gp_frame *f, bool first)
{
    const struct opts *o = c->opts;
    uint64_t dice = mixed(f->index, (uint64_t)o->id + 77) >> 7;
    if (o->again && !first && dice % (uint64_t)o->again == 0) {
        f->status = GP_AGAIN;
        return false;
    }
    if (o->nap && dice % (uint64_t)o->nap == 0)
        nap_ns((int64_t)(dice % 300000));
    for (uint64_t i = 0; o->spin && dice % 16 == 0 && i < (uint64_t)o->spin; i++)
        __asm__ __volatile__("");
    if (o->drop && dice % (uint64_t)o->drop == 0)
        f->status = GP_DROP;
    if (o->fail && (int64_t)f->index == o->fail)
        f->status = GP_FAILED, gp_fail(c->errs, GP_E_RUN, c->at, "as asked");
    return true;
}

static bool make(gp_call *c, gp_frame *f, int n)
{
    const struct opts *o = c->opts;
    is_makers = true;
    for (int i = 0; i < n; i++) {
        if (f[i].index >= (uint64_t)o->frames) {
            f[i].status = GP_END;
            break;
        }
        if (o->says && f[i].index % 50 == 49 && !gp_wait_until(c, 0)) {
            f[i].status = GP_STOPPED;
            break;
        }
        if (!behaves(c, &f[i], i == 0))
            break;
        uint64_t *out = f[i].out[0].data;
        for (int64_t k = 0, m = gp_count(&f[i].out[0].type); k < m; k++)
            out[k] = mixed(f[i].index, (uint64_t)k + 1);
        atomic_fetch_add(&made, 1);
    }
    return true;
}

static bool step(gp_call *c, gp_frame *f, int n)
{
    for (int i = 0; i < n && behaves(c, &f[i], i == 0); i++)
        for (int64_t k = 0, m = gp_count(&f[i].in[0].type); k < m; k++)
            ((uint64_t *)f[i].out[0].data)[k] = 31 * ((const uint64_t *)f[i].in[0].data)[k] + (uint64_t)k;
    return true;
}

static bool join(gp_call *c, gp_frame *f, int n)
{
    for (int i = 0; i < n && behaves(c, &f[i], i == 0); i++)
        for (int64_t k = 0, m = gp_count(&f[i].in[0].type); k < m; k++)
            ((uint64_t *)f[i].out[0].data)[k] = mixed(((const uint64_t *)f[i].in[0].data)[k],
                                                      ((const uint64_t *)f[i].in[1].data)[k]);
    return true;
}

/* With `block`: in that frame it waits until the source is as far ahead as the depth lets it, nearly, or with
 * `until_end` until sink 1 has seen its end: what a stage can do to another by way of something outside. */
static bool take(gp_call *c, gp_frame *f, int n)
{
    const struct opts *o = c->opts;
    for (int i = 0; i < n && behaves(c, &f[i], i == 0); i++) {
        if (o->block && (int64_t)f[i].index == o->block) {
            uint64_t ahead = f[i].index + 300;
            for (int k = 0; k < 60000 && !(o->until_end ? atomic_load(&ended[1]) : atomic_load(&made) >= ahead); k++)
                nap_ns(1000000);
            atomic_store(&may_go_on, o->until_end ? atomic_load(&ended[1]) : atomic_load(&made) >= ahead);
        }
        if (o->hang && (int64_t)f[i].index == o->hang)
            sleep(60);
        uint64_t hash = mixed(result[o->id].hash, f[i].index);
        for (int64_t k = 0, m = gp_count(&f[i].in[0].type); k < m; k++)
            hash = mixed(hash, ((const uint64_t *)f[i].in[0].data)[k]);
        result[o->id].hash = hash, result[o->id].frames++;
        atomic_fetch_add(is_makers ? &taken_by_maker : &taken, 1);
    }
    return true;
}

static bool take_finish(gp_call *c)
{
    atomic_store(&ended[((const struct opts *)c->opts)->id], true);
    return true;
}

#define IN(n) { n, GP_ACCEPT(GP_U64), .help = "frames" }
static const gp_port one[] = { IN("in"), { 0 } }, two[] = { IN("a"), IN("b"), { 0 } };
static const gp_port out[] = { { "out", .help = "frames" }, { 0 } };
static const gp_opt options[] = {
    { GP_INT(struct opts, frames), .min = 0, .max = 1e9, .help = "" },
    { GP_INT(struct opts, nap), .min = 0, .max = 1e9, .help = "" },
    { GP_INT(struct opts, spin), .min = 0, .max = 1e9, .help = "" },
    { GP_INT(struct opts, drop), .min = 0, .max = 1e9, .help = "" },
    { GP_INT(struct opts, again), .min = 0, .max = 1e9, .help = "" },
    { GP_INT(struct opts, fail), .min = 0, .max = 1e9, .help = "" },
    { GP_INT(struct opts, block), .min = 0, .max = 1e9, .help = "" },
    { GP_INT(struct opts, hang), .min = 0, .max = 1e9, .help = "" },
    { GP_INT(struct opts, id), .min = 0, .max = 3, .help = "" },
    { GP_BOOL(struct opts, says), .help = "" },
    { GP_BOOL(struct opts, until_end), .help = "" },
    { 0 }
};
#define OPTIONS .help = "", .opts = options, .opts_size = sizeof(struct opts)

static const gp_kind kinds[] = {
    { GP_KIND("make"), OPTIONS, .out = out, .max_run = 8, .shape = as_declared, .run = make },
    { GP_KIND("step"), OPTIONS, .in = one, .out = out, .max_run = 8, .shape = like_first, .run = step },
    { GP_KIND("join"), OPTIONS, .in = two, .out = out, .max_run = 4, .shape = like_first, .run = join },
    { GP_KIND("take"), OPTIONS, .in = one, .max_run = 16, .shape = like_first, .run = take, .finish = take_finish },
};

/* ---- running --------------------------------------------------------- */

static gp_errs errs;

static void set_up(void)
{
    pipe_kinds(kinds, sizeof kinds / sizeof *kinds);
}

static gp_pipeline *compile(const char *stages, const char *const *set, int nset)
{
    char *text = format("stall_timeout: 60s\nbuffers: {a: {dtype: u64, shape: [3]}, a2: {like: a}%s}\n"
        "stages:\n%s", strstr(stages, "in: {a: a, b: u}") ? ", v: {like: a}, u: {carry: v}" : "", stages);
    if (!strstr(stages, "out: a2"))
        memcpy(strstr(text, ", a2: {like: a}"), "               ", 15);
    errs = (gp_errs){ .n = 0 };
    gp_pipeline *p = pipe_compiled(".", text, (gp_config){ .set = set, .nset = nset });
    memset(result, 0, sizeof result);
    for (int i = 0; i < 4; i++)
        atomic_store(&ended[i], false);
    atomic_store(&made, 0), atomic_store(&taken, 0), atomic_store(&taken_by_maker, 0), atomic_store(&may_go_on, false);
    return p;
}

/* ---- that it happens ------------------------------------------------- */

#define TRIVIAL(n) "  - {use: make, out: a, frames: " #n "}\n  - {use: step}\n  - {use: take}\n"

/* Of 1,000 frames. */
enum { MOST = 900 };

static gp_pipeline *current;
static int64_t was_cheap_ns;

/* What is cheap is a matter of nanoseconds, which depend on the machine: here all is. */
static bool all_is_cheap(void *unused)
{
    gp_run *run = gp_pipeline_lock_run(current);
    was_cheap_ns = run->awake_ns;
    run->awake_ns = run->asleep_ns = INT64_MAX;
    gp_pipeline_unlock_run(current);
    return true;
}

/* How many of 1,000 frames the thread of the source also took. */
static int shared_once(const char *stages, const char *sync, bool (*begin)(void *))
{
    const char *set[] = { sync, "depth=32" };
    gp_pipeline *p = current = compile(stages, set, 2);
    ck_assert_msg(gp_pipeline_run(p, &(gp_run_options){ .begin = begin }, &errs) == GP_DONE, "%s", errs.e[0].msg);
    int now = (int)(1000 * taken_by_maker / (taken + taken_by_maker));
    gp_pipeline_destroy(p);
    return now;
}

TEST(little_is_done_by_one_thread)
{
    for (int i = 0; i < 2; i++) {
        /* On a machine that others use, too, the source's thread may stand still while the other one has frames: in
         * some of the runs then. */
        int most = 0;
        for (int k = 0; k < 10 && most < MOST; k++) {
            int now = shared_once(TRIVIAL(100000), i ? "sync=auto" : "sync=block", all_is_cheap);
            most = now > most ? now : most;
            ck_assert_int_gt(was_cheap_ns, 0);
        }
        ck_assert_int_ge(most, MOST);
    }
}

TEST_LOOP(others_keep_their_threads, 0, 3)
{
    static const char *const stages[] = {
        TRIVIAL(50000),                                                        /* with sync: spin */
        "  - {use: make, out: a, frames: 20000, says: true}\n  - {use: step}\n  - {use: take}\n",
        "  - {use: make, out: a, frames: 2000}\n  - {use: step, spin: 1000000}\n  - {use: take}\n",
    };
    /* On a machine that others use, too, a millisecond of the source's may take as long as many of the stage's: in some
     * of the runs then. */
    int most = 0, least = 1000;
    for (int i = 0; i < (_i < 2 ? 20 / tests_every(5, 1) : 20) && (_i < 2 || least >= 500); i++) {
        int now = shared_once(stages[_i], _i ? "sync=auto" : "sync=spin", NULL);
        most = now > most ? now : most, least = now < least ? now : least;
    }
    ck_assert_msg(_i == 2 ? least < 500 : most <= (_i ? 20 : 0), "%d to %d of 1000", least, most);
}

/* ---- that it changes nothing ----------------------------------------- */

static const char *const pipelines[] = {
    TRIVIAL(6000),
    "  - {use: make, out: a, frames: 4000}\n  - {use: step, nap: 200}\n  - {use: step, id: 1}\n  - {use: take}\n",
    "  - {use: make, out: a, frames: 4000, nap: 300}\n  - {use: step}\n  - {use: take, nap: 250}\n",
    "  - {use: make, out: a, frames: 4000}\n  - {use: step, in: a, out: b}\n  - {use: step, in: a, out: c, nap: 300}\n"
    "  - {use: join, in: {a: b, b: c}}\n  - {use: step}\n  - {use: take}\n  - {use: take, in: b, id: 1}\n",
    "  - {use: make, out: a, frames: 4000}\n  - {use: step, workers: 3, spin: 3000}\n  - {use: step}\n  - {use: take}\n",
    "  - {use: make, out: a, frames: 4000}\n  - {use: step, drop: 7}\n  - {use: step, again: 5}\n  - {use: take}\n",
    "  - {use: make, out: a, frames: 4000, again: 3}\n  - {use: make, in: [], out: a2, frames: 4000, nap: 200, id: 1}\n"
    "  - {use: join, in: {a: a, b: a2}}\n  - {use: take}\n",
    "  - {use: make, out: a, frames: 4001}\n  - {use: group, frames: 3}\n  - {use: split}\n  - {use: step}\n"
    "  - {use: decimate, frames: 2}\n  - {use: take}\n",
    "  - {use: make, out: a, frames: 3000}\n  - {use: join, in: {a: a, b: u}, out: v, spin: 1000}\n"
    "  - {use: step, in: v}\n  - {use: take}\n",
    "  - {use: make, out: a, frames: 4000, says: true}\n  - {use: step, again: 9}\n  - {use: take, spin: 5000}\n",
    "  - {use: make, out: a, frames: 4000}\n  - {use: step, fail: 3210}\n  - {use: step}\n  - {use: take}\n",
};

TEST_SOME(bytes_are_the_same, sizeof pipelines / sizeof *pipelines, 3, 1)
{
    static const char *const sync[] = { "sync=spin", "sync=auto", "sync=block" };
    static const char *const depth[] = { "depth=1", "depth=2", "depth=3", "depth=8", "depth=64", "depth=700" };
    bool fails = strstr(pipelines[_i], "fail");
    uint64_t want[2] = { 0 }, frames[2] = { 0 };
    for (int s = 0; s < 3; s++)
        for (int d = s ? 0 : 3; d < (s ? 6 : 4); d++)
            for (int timed = 0; timed < (s == 1 ? 2 : 1); timed++) {
                const char *set[] = { sync[s], depth[d] };
                gp_pipeline *p = compile(pipelines[_i], set, 2);
                gp_outcome outcome = gp_pipeline_run(p, &(gp_run_options){ .timed = timed }, &errs);
                ck_assert_msg(outcome == (fails ? GP_ERROR : GP_DONE), "%s, %s: %s", set[0], set[1], errs.e[0].msg);
                for (int k = 0; k < 2 && !s; k++)
                    want[k] = result[k].hash, frames[k] = result[k].frames;
                for (int k = 0; k < 2; k++)
                    ck_assert_msg(result[k].hash == want[k] && result[k].frames == frames[k], "%s, %s: sink %d got %d "
                                  "frames, not these %d", set[0], set[1], k, (int)result[k].frames, (int)frames[k]);
                gp_pipeline_destroy(p);
            }
    ck_assert_uint_gt(frames[0], 100);
}

/* ---- that nobody is held up ------------------------------------------ */

/* Frame 50,000 of a stage that was cheap before waits for what only a source does, or another sink. */
static const char *const blocks[] = {
    "  - {use: make, out: a, frames: 60000}\n  - {use: take, block: 50000}\n",
    "  - {use: make, out: a, frames: 60000}\n  - {use: step}\n  - {use: take, block: 50000}\n",
    "  - {use: make, out: a, frames: 60000}\n  - {use: step}\n  - {use: take}\n"
    "  - {use: take, in: a, block: 50000, id: 2}\n",
    "  - {use: make, out: a, frames: 50300}\n  - {use: take, id: 1}\n"
    "  - {use: take, in: a, block: 50000, until_end: true}\n",
    "  - {use: make, out: a, frames: 50300}\n  - {use: step}\n  - {use: take, id: 1}\n"
    "  - {use: step, in: a}\n  - {use: take, block: 50000, until_end: true}\n",
};

TEST_EACH(what_blocks_holds_up_nobody, blocks)
{
    const char *set[] = { "depth=400" };
    gp_pipeline *p = compile(blocks[_i], set, 1);
    ck_assert_msg(gp_pipeline_run(p, NULL, &errs) == GP_DONE, "%s", errs.e[0].msg);
    ck_assert(may_go_on);
    gp_pipeline_destroy(p);
}

/* Who cancels meanwhile is heard. */
static void *cancel(void *pipeline)
{
    while (atomic_load(&made) < 50000)
        nap_ns(1000000);
    nap_ns(200000000);
    gp_cancel(pipeline, 1);
    return NULL;
}

TEST(a_run_is_cancelled_while_a_stage_blocks)
{
    pthread_t thread;
    const char *set[] = { "depth=50" };
    gp_account a;
    gp_pipeline *p = compile("  - {use: make, out: a, frames: 100000000}\n  - {use: step}\n"
                             "  - {use: take, nap: 5000}\n", set, 1);
    ck_assert(!pthread_create(&thread, NULL, cancel, p));
    gp_outcome outcome = gp_pipeline_run(p, NULL, &errs);
    pthread_join(thread, NULL);
    ck_assert_msg(outcome == GP_DRAINED, "%s", errs.e[0].msg);
    ck_assert_int_eq(gp_accounts(p, &a, 1), 1);
    ck_assert_uint_eq(a.in, a.out);
    ck_assert_uint_eq(result[0].frames, a.out);
    gp_pipeline_destroy(p);
}

/* ---- that what is told is true --------------------------------------- */

static bool says(const char *what)
{
    for (int i = 0; i < errs.n; i++)
        if (strstr(errs.e[i].msg, what))
            return true;
    return false;
}

/* The stage that blocks is named, not the one whose thread is in it; the others wait as if that were not so. */
TEST(a_stall_names_the_stage)
{
    const char *set[] = { "depth=20", "stall_timeout=1s" };
    gp_pipeline *p = compile("  - {use: make, out: a, frames: 100000}\n  - {use: step}\n"
                             "  - {use: take, hang: 50000}\n", set, 2);
    ck_assert_int_eq(gp_pipeline_run(p, NULL, &errs), GP_STUCK);
    ck_assert_msg(strstr(errs.e[0].msg, "stage 'take' is busy with frame"), "%s", errs.e[0].msg);
    ck_assert(says("stage 'take' has been busy with frame"));
    ck_assert(says("stage 'step' has waited") && says("into 'step': its slot"));
    ck_assert(says("stage 'make' has waited") && says("into 'a': its slot"));
    ck_assert(!says("'make' is busy") && !says("'make' has been busy"));
}

TEST(times_are_of_the_stage)
{
    const char *set[] = { "depth=16" };
    gp_pipeline *p = compile("  - {use: make, out: a, frames: 100000}\n  - {use: step, spin: 20}\n"
                             "  - {use: take}\n", set, 1);
    gp_run_options traced = { .timed = true, .trace_ns = 1000000000 };
    ck_assert_msg(gp_pipeline_run(p, &traced, &errs) == GP_DONE, "%s", errs.e[0].msg);
    const gp_run *run = gp_pipeline_lock_run(p);
    int64_t wall = run->end_ns - run->start_ns;
    for (int i = 0; i < run->plan->nactors; i++) {
        const gp_actorrt *q = &run->actor[i];
        int64_t busy = (int64_t)q->busy_ns, waited = 0;
        for (int w = 0; w < GP_WAIT_REASONS; w++)
            waited += (int64_t)q->wait_ns[w];
        ck_assert_msg(busy > 0 && waited >= 0 && busy + waited <= wall, "'%s' was busy for %lld ns and waited for %lld "
                      "of %lld", q->name, (long long)busy, (long long)waited, (long long)wall);
        ck_assert_uint_eq(q->frames, 100000);
    }
    gp_pipeline_unlock_run(p);
    gp_pipeline_destroy(p);
}

TEST_SUITE(turns, set_up, NULL, 0)
