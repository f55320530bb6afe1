/* test_in_order.c - stages whose frames take turns, and that have several workers all the same: a worker begins when
 * the one before it has returned, or lets it. */
#include <stdatomic.h>
#include "idle.h"
#include "pipe.h"

enum { FRAMES = 40, AT = 10, BEGINS = FRAMES + 8 };

/* What run() does: it `lets` the next begin, then waits until that is so, and fails in frame AT and the one behind it,
 * `early` before that. With `one` it takes one frame of each call. */
typedef struct what {
    const char *name;
    bool lets, fails, early, drops, one;
    int at_once, frames;
    const char *told;
} what;

static const what cases[] = {
    { "one after the other", .at_once = 1, .frames = FRAMES, .told = "" },
    { "two at a time", .lets = true, .at_once = 1, .frames = FRAMES, .told = "" },
    { "two calls of up to 4 frames", .lets = true, .at_once = 4, .frames = FRAMES, .told = "" },
    { "calls that take one of up to 4", .lets = true, .one = true, .at_once = 4, .frames = FRAMES, .told = "" },
    { "an error", .fails = true, .early = true, .at_once = 1, .frames = AT, .told = "frame 10 fails;" },
    { "errors of two frames under way", .lets = true, .fails = true, .at_once = 1, .frames = AT, .told = "frame 10 fails;" },
    { "dropped in order", .lets = true, .fails = true, .drops = true, .at_once = 1, .frames = FRAMES - 2,
      .told = "frame 10 fails;frame 11 fails;" },
    { "dropped before the next may begin", .lets = true, .fails = true, .early = true, .drops = true, .at_once = 1,
      .frames = FRAMES - 2, .told = "frame 10 fails;frame 11 fails;" },
};

static const what *now;
static atomic_int next, inside, begun[BEGINS], alone, seen;
static atomic_bool wrong;

static bool shape(gp_shape *s)
{
    s->out[0] = s->in[0];
    s->serial = s->fills_device = s->reads_device = true, s->default_workers = 2, s->at_once = now->at_once;
    return true;
}

static bool copy(gp_dcall *d, void *arg)
{
    const gp_frame *f = arg;
    return gp_copy(d, f->out[0].data, f->in[0].data, gp_bytes(&f->in[0].type));
}

static bool fails(gp_call *c, gp_frame *f)
{
    bool it = now->fails && (f->index == AT || f->index == AT + 1);
    if (it)
        f->status = GP_FAILED, gp_fail(c->errs, GP_E_RUN, c->at, "frame %d fails", (int)f->index);
    return it;
}

static bool run(gp_call *c, gp_frame *f, int n)
{
    int k = (int)f->index, done = now->one ? 1 : n;
    if (atomic_fetch_add(&inside, 1) || atomic_exchange(&next, k + done) != k)
        atomic_store(&wrong, true);
    for (int i = 0; i < done; i++) {
        atomic_store(&begun[k + i], 1);
        if (!gp_device_do(c, copy, &f[i]))
            return false;
    }
    if (done < n)
        f[done].status = GP_AGAIN;
    nap();
    bool failed = now->early && fails(c, f);
    atomic_fetch_sub(&inside, 1);
    if (failed || !now->lets)
        return true;
    gp_let_next_begin(c, done);
    for (int i = 0; i < 60000 && k % 2 == 0 && k + done < FRAMES && done == n && !atomic_load(&begun[k + done]); i++)
        nap();
    if (k % 2 == 0 && k + done < FRAMES && done == n && !atomic_load(&begun[k + done]))
        atomic_fetch_add(&alone, 1);
    fails(c, f);
    return true;
}

static bool numbers_shape(gp_shape *s)
{
    s->out[0] = (gp_type){ GP_F32, 1, { 64 } };
    return true;
}

static bool numbers(gp_call *c, gp_frame *f, int n)
{
    for (int i = 0; i < 64; i++)
        ((float *)f->out[0].data)[i] = (float)f->index;
    f->status = f->index == FRAMES ? GP_END : GP_OK;
    return true;
}

/* Frames come in order, with what they had. */
static bool sink(gp_call *c, gp_frame *f, int n)
{
    for (int i = 0; i < n; i++) {
        float x;
        memcpy(&x, f[i].in[0].data, sizeof x);
        if (x != 2 * (float)f[i].index + 1)
            atomic_store(&wrong, true);
    }
    atomic_fetch_add(&seen, n);
    return true;
}

static const gp_port in[] = { { "in", GP_ACCEPT_ANY, .help = "frames" }, { 0 } };
static const gp_port out[] = { { "out", .help = "frames" }, { 0 } };
static const gp_kind kinds[] = {
    { GP_KIND("numbers"), .help = "", .out = out, .shape = numbers_shape, .run = numbers },
    { GP_KIND("turns"), .help = "", .in = in, .out = out, .max_run = 4, .fills_device = true, .reads_device = true,
      .shape = shape, .run = run },
    { GP_KIND("sink"), .help = "", .in = in, .max_run = 8, .shape = as_declared, .run = sink },
};

static gp_errs errs;

static void set_up(void)
{
    pipe_kinds(kinds, sizeof kinds / sizeof *kinds);
    atomic_store(&next, 0), atomic_store(&inside, 0), atomic_store(&alone, 0), atomic_store(&seen, 0);
    atomic_store(&wrong, false);
    for (int i = 0; i < BEGINS; i++)
        atomic_store(&begun[i], 0);
}

static gp_pipeline *compile(const char *key, bool drops)
{
    char *text = format("depth: 8\n%sstages:\n  - {use: numbers, out: x}\n  - {use: expr, expr: 2 * in}\n"
        "  - {use: turns%s}\n  - {use: expr, expr: in + 1}\n  - {use: sink}\n", drops ? "on_error: drop\n" : "", key);
    errs = (gp_errs){ .n = 0 };
    return pipe_compile(".", text, (gp_config){ .set = NULL }, &errs);
}

TEST_EACH(workers_begin_in_order, cases)
{
    char told[400] = "";
    gp_account a = { 0 };
    now = &cases[_i];
    gp_pipeline *p = compile("", now->drops);
    ck_assert_msg(p != NULL, "%s: %s", now->name, errs.e[0].msg);
    gp_outcome o = gp_pipeline_run(p, NULL, &errs);
    for (int i = 0; i < errs.n; i++)
        strcat(strcat(told, errs.e[i].msg), ";");
    gp_accounts(p, &a, 1);
    ck_assert_msg(!strcmp(told, now->told), "%s: %s", now->name, told);
    ck_assert_int_eq(o, *told && !now->drops ? GP_ERROR : GP_DONE);
    ck_assert_msg(atomic_load(&seen) == now->frames, "%s: %d", now->name, atomic_load(&seen));
    ck_assert_msg(!atomic_load(&wrong), "%s: out of order, or two at a time", now->name);
    ck_assert_msg(!atomic_load(&alone), "%s: %d frames waited in vain", now->name, atomic_load(&alone));
    if (now->early && !now->drops)         /* as it never got its turn */
        ck_assert_int_eq(atomic_load(&begun[AT + 1]), 0);
    ck_assert_uint_eq(a.in, a.out + a.dropped + a.failed + a.cancelled);
    gp_pipeline_destroy(p);
}

TEST(how_many_is_not_for_the_file_to_say)
{
    now = &cases[0];
    ck_assert_ptr_null(compile(", workers: 3", false));
    first_error_has(&errs, 5, "stage 'turns' cannot have 3 workers: it takes frames in order");
}

TEST_SUITE(in_order, set_up, NULL, 0)
