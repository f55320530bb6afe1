/* test_workers.c - stages with several workers: where they end, which error counts, in which order frames are told
 * of. */
#include <stdatomic.h>
#include "idle.h"
#include "pipe.h"

/* ---- a source whose frames are done out of order --------------------- */

enum { FRAMES = 40 };
enum { MAKES, ENDS, FAILS };

struct opts { int64_t first, second, third; int64_t at; bool turn; };

static atomic_int begun[FRAMES], called[FRAMES];
static uint64_t seen[FRAMES];
static atomic_int nseen;
static atomic_llong last_ns;
static atomic_bool older;
static atomic_int late;        /* frames whose turn did not come */
static atomic_int most;        /* in a call */

static bool deal_shape(gp_shape *s)
{
    s->by_number = true;
    return s->out[0].dtype;
}

static gp_status becomes(gp_call *c, const gp_frame *f, int64_t how)
{
    if (how == FAILS)
        gp_fail(c->errs, GP_E_RUN, c->at, "frame %d fails", (int)f->index);
    return how == FAILS ? GP_FAILED : how == ENDS ? GP_END : GP_OK;
}

static void await(const atomic_int *what)
{
    for (int i = 0; i < 60000 && !atomic_load(what); i++)
        nap();
}

/* Until frame k is done, and handed in. */
static void after(int k)
{
    await(&called[k]);
    for (int i = 0; i < 5; i++)
        nap();
}

/* Frame `at` becomes `second`, once the one after it has become `first`. With `third`, what the one behind these
 * becomes, the order is: frame `at`, that one, the one between. */
static bool deal(gp_call *c, gp_frame *f, int n)
{
    const struct opts *o = c->opts;
    int k = (int)f->index;
    if (n > atomic_load(&most))
        atomic_store(&most, n);
    if (n > 1)
        f[1].status = GP_AGAIN;
    if (k >= FRAMES) {
        f->status = GP_END;
        return true;
    }
    *(unsigned char *)f->out[0].data = (unsigned char)k;
    atomic_store(&begun[k], 1);
    if (o->third && k == o->at)
        await(&begun[k + 2]), await(&begun[k + 1]);
    if (o->third && k == o->at + 2)
        after(k - 2);
    if (k == o->at + (o->third != MAKES))
        after(k + 1);
    if (o->turn && gp_wait_turn(c))
        seen[atomic_fetch_add(&nseen, 1)] = (uint64_t)k;
    else if (o->turn)
        atomic_fetch_add(&late, 1);
    f->status = becomes(c, f, k == o->at ? o->second : k == o->at + 1 ? o->first : k == o->at + 2 ? o->third : MAKES);
    atomic_store(&called[k], 1);
    return true;
}

static bool take(gp_call *c, gp_frame *f, int n)
{
    for (int i = 0; i < n; i++) {
        if (f[i].time_ns < atomic_load(&last_ns))
            atomic_store(&older, true);
        atomic_store(&last_ns, f[i].time_ns);
    }
    return true;
}

/* Frames are taken one by one, in order, each by the worker that then has it; the first of each four is done last. */
static _Atomic uint64_t place[64];
static atomic_int inside, taken;
static atomic_bool odd;

static void reserve(gp_call *c, const gp_frame *f)
{
    if (atomic_fetch_add(&inside, 1) || c->worker > 63)
        atomic_store(&odd, true);
    seen[atomic_fetch_add(&taken, 1)] = f->index;
    atomic_store(&place[c->worker], f->index + 1);
    nap();
    atomic_fetch_sub(&inside, 1);
}

static bool keep(gp_call *c, gp_frame *f, int n)
{
    if (n != 1 || atomic_load(&place[c->worker]) != f->index + 1 || *(unsigned char *)f->in[0].data != f->index)
        atomic_store(&odd, true);
    for (int i = 0; i < 5 && f->index % 4 == 0; i++)
        nap();
    atomic_fetch_add(&nseen, n);
    return true;
}

/* Each fifth becomes a hole. */
static bool lose(gp_call *c, gp_frame *f, int n)
{
    for (int i = 0; i < n; i++) {
        *(unsigned char *)f[i].out[0].data = *(unsigned char *)f[i].in[0].data;
        f[i].status = f[i].index % 5 == 2 ? GP_DROP : GP_OK;
    }
    return true;
}

static const gp_port out[] = { { "out", .help = "frames" }, { 0 } };
static const gp_port in[] = { { "in", GP_ACCEPT_ANY, .help = "frames" }, { 0 } };
static const gp_opt options[] = {
    { GP_INT(struct opts, first), .min = 0, .max = 2, .help = "" },
    { GP_INT(struct opts, second), .min = 0, .max = 2, .help = "" },
    { GP_INT(struct opts, third), .min = 0, .max = 2, .help = "" },
    { GP_INT(struct opts, at), .def = "10", .min = 0, .max = 100, .help = "" },
    { GP_BOOL(struct opts, turn), .help = "" },
    { 0 }
};
static const gp_kind kinds[] = {
    { GP_KIND("deal"), .help = "", .opts = options, .opts_size = sizeof(struct opts), .out = out, .max_run = 8,
      .by_number = true, .shape = deal_shape, .run = deal },
    { GP_KIND("take"), .help = "", .in = in, .max_run = 8, .shape = as_declared, .run = take },
    { GP_KIND("keep"), .help = "", .in = in, .max_run = 8, .shape = as_declared, .run = keep, .reserve = reserve },
    { GP_KIND("lose"), .help = "", .in = in, .out = out, .max_run = 8, .shape = like_first, .run = lose },
    { GP_KIND("one"), .help = "", .opts = options, .opts_size = sizeof(struct opts), .out = out, .shape = deal_shape,
      .run = deal },
};

/* ---- ends and errors ------------------------------------------------- */

static const struct { const char *what; int first, second; bool drops; int frames; const char *told; int third; } ends[] = {
    { "to the end", MAKES, MAKES, false, FRAMES, "", MAKES },
    { "the lowest end", ENDS, ENDS, false, 10, "", MAKES },
    { "a frame behind the end", MAKES, ENDS, false, 10, "", MAKES },
    { "an end behind a frame", ENDS, MAKES, false, 11, "", MAKES },
    { "an error behind the end", FAILS, ENDS, false, 10, "", MAKES },
    { "a hole behind the end", FAILS, ENDS, true, 10, "", MAKES },
    { "the lowest error", FAILS, FAILS, false, 11, "frame 10 fails;", MAKES },
    { "an error before the end", ENDS, FAILS, false, 11, "frame 10 fails;", MAKES },
    { "a hole before the end", ENDS, FAILS, true, 11, "frame 10 fails;", MAKES },
    { "holes in order", FAILS, FAILS, true, FRAMES, "frame 10 fails;frame 11 fails;", MAKES },
    { "a hole between two ends", FAILS, ENDS, true, 10, "", ENDS },
    { "an error behind an end, a hole between", FAILS, ENDS, true, 10, "", FAILS },
};

static void clear(void)
{
    for (int i = 0; i < FRAMES; i++)
        atomic_store(&called[i], 0), atomic_store(&begun[i], 0);
    atomic_store(&nseen, 0), atomic_store(&last_ns, 0), atomic_store(&older, false), atomic_store(&late, 0);
    atomic_store(&most, 0);
}

static gp_errs errs;

static void set_up(void)
{
    pipe_kinds(kinds, sizeof kinds / sizeof *kinds);
    clear();
}

static gp_pipeline *compile(const char *text)
{
    errs = (gp_errs){ .n = 0 };
    return pipe_compile(".", text, (gp_config){ .set = NULL }, &errs);
}

TEST_EACH(the_lowest_frame_counts, ends)
{
    char text[600], told[400] = "";
    gp_account a = { 0 };
    gp_stage_status st[4];
    snprintf(text, sizeof text, "depth: 6\n%sbuffers: {x: {dtype: u8, shape: [4]}}\nstages:\n"
             "  - {use: deal, first: %d, second: %d, third: %d, workers: 4, out: x}\n  - {use: take}\n",
             ends[_i].drops ? "on_error: drop\n" : "", ends[_i].first, ends[_i].second, ends[_i].third);
    gp_pipeline *p = compile(text);
    ck_assert_msg(p != NULL, "%s", errs.e[0].msg);
    gp_outcome o = gp_pipeline_run(p, NULL, &errs);
    for (int i = 0; i < errs.n; i++)
        strcat(strcat(told, errs.e[i].msg), ";");
    gp_accounts(p, &a, 1);
    ck_assert_msg(!strcmp(told, ends[_i].told), "%s: %s", ends[_i].what, told);
    ck_assert_int_eq(o, *told && !ends[_i].drops ? GP_ERROR : GP_DONE);
    ck_assert_msg((int)a.in == ends[_i].frames, "%s: %d", ends[_i].what, (int)a.in);
    ck_assert_uint_eq(a.in, a.out + a.dropped + a.failed + a.cancelled);
    ck_assert_int_ge(gp_stages_status(p, st, 4), 1);
    ck_assert_msg(st[0].frames == a.in - a.failed - a.dropped, "%s: %d", ends[_i].what, (int)st[0].frames);
    ck_assert(!atomic_load(&older));
    ck_assert_int_eq(atomic_load(&most), 1);
    gp_pipeline_destroy(p);
}

/* Each waits for those before it; for a frame behind the end no turn comes. */
TEST_LOOP(turns, 1, 6)
{
    char *text = format("depth: 8\nbuffers: {x: {dtype: u8, shape: [4]}}\nstages:\n"
                        "  - {use: deal, turn: true, workers: %d, at: 100, out: x}\n  - {use: take}\n", _i);
    gp_pipeline *p = compile(text);
    ck_assert_msg(p != NULL, "%s", errs.e[0].msg);
    ck_assert_int_eq(gp_pipeline_run(p, NULL, &errs), GP_DONE);
    ck_assert_int_eq(atomic_load(&nseen), FRAMES);
    ck_assert_int_eq(atomic_load(&late), 0);
    for (int i = 0; i < FRAMES; i++)
        ck_assert_uint_eq(seen[i], (unsigned)i);
    gp_pipeline_destroy(p);
}

/* A sink whose frames have places, which holes have not; one worker needs none. */
TEST_LOOP(places, 1, 6)
{
    int holes = 0;
    atomic_store(&taken, 0), atomic_store(&odd, false), atomic_store(&inside, 0);
    char *text = format("depth: 8\nbuffers: {x: {dtype: u8, shape: [4]}}\nstages:\n"
        "  - {use: deal, workers: 3, at: 100, out: x}\n  - {use: lose}\n  - {use: keep, workers: %d}\n", _i);
    gp_pipeline *p = compile(text);
    ck_assert_msg(p != NULL, "%s", errs.e[0].msg);
    ck_assert_int_eq(gp_pipeline_run(p, NULL, &errs), GP_DONE);
    ck_assert_int_eq(atomic_load(&nseen), FRAMES * 4 / 5);
    ck_assert_int_eq(atomic_load(&taken), _i > 1 ? FRAMES * 4 / 5 : 0);
    for (int i = 0; _i > 1 && i < FRAMES; i++)
        if (i % 5 == 2)
            holes++;
        else
            ck_assert_uint_eq(seen[i - holes], (unsigned)i);
    ck_assert(_i == 1 || !atomic_load(&odd));
    gp_pipeline_destroy(p);
}

/* The kind has to say so, and shape(). */
TEST(a_kind_says_so)
{
    ck_assert_ptr_null(compile("buffers: {x: {dtype: u8, shape: [4]}}\nstages:\n  - {use: one, workers: 2, out: x}\n"
                               "  - {use: take}\n"));
    ck_assert_msg(strstr(errs.e[0].msg, "stage 'one' cannot have 2 workers: it is a source"), "%s", errs.e[0].msg);
}

/* ---- as many as the machine is good for ------------------------------- */

#define READ "  - {use: read, path: examples/data/raccoon.png, loop: true, out: photo}\n"
#define EDGES READ "  - {use: gray}\n  - {use: cast, dtype: u8}\n  - {use: write, path: 'out/%05d.png'}\n"
#define EDGES_JPEG "  - {use: read, path: examples/photos/photos/raccoon.jpg, loop: true, out: photo}\n" \
    "  - {use: gray}\n  - {use: cast, dtype: u8}\n  - {use: write, path: 'out/%05d.jpg'}\n"
#define TWO READ "  - {use: write, path: 'out/%05d.png'}\n"
#define THREE READ "  - {name: a, use: write, in: photo, path: 'a/%d.png'}\n" \
    "  - {name: b, use: write, in: photo, path: 'b/%d.png', compression: 9}\n"

#define BYTES "buffers: {x: {dtype: u8, shape: [1000000]}}\nstages:\n" \
    "  - {use: read, path: examples/data/raccoon.png, format: raw, tail: ignore, loop: true, out: x}\n"

/* Host stages with their workers, those of the machine with a '*'; depths of all buffers. */
static const struct { const char *what, *yaml; int cpus; size_t mib; const char *comes_to; } choices[] = {
    { "one core", "stages:\n" EDGES, 1, 65536, "read 1* write 1* / photo 3 gray 3 cast 6" },
    { "two cores", "stages:\n" EDGES, 2, 65536, "read 1* write 2* / photo 3 gray 3 cast 6" },
    { "8 cores", "stages:\n" EDGES, 8, 65536, "read 4* write 5* / photo 8 gray 3 cast 10" },
    { "16 cores", "stages:\n" EDGES, 16, 65536, "read 8* write 9* / photo 16 gray 3 cast 18" },
    { "64 cores", "stages:\n" EDGES, 64, 65536, "read 31* write 34* / photo 62 gray 3 cast 68" },
    { "little memory", "stages:\n" EDGES, 64, 1024, "read 5* write 5* / photo 10 gray 3 cast 10" },
    { "next to none", "stages:\n" EDGES, 64, 64, "read 3* write 3* / photo 3 gray 3 cast 6" },
    { "a depth for all", "depth: 4\nstages:\n" EDGES, 16, 65536, "read 4* write 4* / photo 4 gray 4 cast 4" },
    { "auto for all", "depth: auto\nstages:\n" EDGES, 2, 65536, "read 1* write 2* / photo 3 gray 3 cast 6" },
    { "a depth for one", "buffers: {photo: {depth: 5}}\nstages:\n" EDGES, 16, 65536,
      "read 5* write 9* / photo 5 gray 3 cast 18" },
    { "one next to the other", "stages:\n" TWO, 4, 65536, "read 1* write 4* / photo 8" },
    { "two readers", "stages:\n" THREE, 16, 65536, "read 1* a 2* b 14* / photo 28" },
    { "workers that are said", "stages:\n  - {use: read, path: examples/data/raccoon.png, loop: true, workers: 3, out: photo}\n"
      "  - {use: write, path: 'out/%05d.png'}\n", 4, 65536, "read 3 write 4* / photo 10" },
    { "auto is said", "stages:\n  - {use: read, path: examples/data/raccoon.png, loop: true, workers: auto, out: photo}\n"
      "  - {use: discard}\n", 4, 65536, "read 4* discard 1 / photo 8" },
    { "a single picture", "stages:\n  - {use: read, path: examples/data/raccoon.png, out: photo}\n  - {use: discard}\n", 16, 65536,
      "read 1* discard 1 / photo 3" },
    { "two frames", "stages:\n  - {use: read, path: examples/data/raccoon.png, loop: true, frames: 2, out: photo}\n"
      "  - {use: discard}\n", 16, 65536, "read 2* discard 1 / photo 4" },
    { "a small picture", "stages:\n  - {use: read, path: tests/data/png/gray8.png, loop: true, out: photo}\n"
      "  - {use: write, path: '%d.png'}\n", 16, 65536, "read 1 write 1 / photo 6" },
    { "no picture", "buffers: {photo: {shape: [360]}}\nstages:\n  - {use: read, path: examples/data/ecg.npy, loop: true, out: photo}\n"
      "  - {use: write, path: '%d.npy'}\n", 16, 65536, "read 1 write 1 / photo 6" },
    { "one picture file", "stages:\n" READ "  - {use: write, path: one.png}\n", 16, 65536, "read 16* write 1 / photo 32" },
    { "large raw frames", BYTES "  - {use: discard}\n", 16, 65536, "read 8* discard 1 / x 16" },
    { "... in few cores", BYTES "  - {use: discard}\n", 2, 65536, "read 2* discard 1 / x 4" },
    { "... to a file each", BYTES "  - {use: write, path: '%d.npy'}\n", 16, 65536, "read 4* write 13* / x 29" },
    { "... to one file", BYTES "  - {use: write, path: one.npy}\n", 16, 65536, "read 8* write 1 / x 16" },
    { "JPEG", "stages:\n" EDGES_JPEG, 16, 65536, "read 8* write 8* / photo 16 gray 6 cast 16" },
    { "a cheap one that is asked for", "buffers: {x: {dtype: u8, shape: [4]}}\nstages:\n"
      "  - {use: generate, out: x, workers: auto}\n  - {use: discard}\n", 6, 65536, "generate 6* discard 1 / x 12" },
    { "what takes turns", "buffers: {x: {dtype: u8, shape: [4]}}\nstages:\n  - {use: generate, out: x, frames: 3}\n"
      "  - {use: write, path: one.raw, workers: auto}\n", 6, 65536, "generate 1 write 1 / x 6" },
};

TEST_EACH(the_machine_decides, choices)
{
    char text[400] = "";
    gp_machine m;
    gp_machine_fixed(&m, 0);
    m.cpus = choices[_i].cpus, m.memory = choices[_i].mib << 20;
    const char *apart[] = { "fuse=none" };
    gp_pipeline *p = pipe_compiled(".", choices[_i].yaml, (gp_config){ .machine = &m, .set = apart, .nset = 1 });
    const gp_graph *g = gp_pipeline_plan(p)->graph;
    for (int v = 0; v < g->nstages; v++)
        if (!g->stage[v].device)
            sprintf(text + strlen(text), "%s %d%s ", g->stage[v].name, g->stage[v].workers,
                    g->stage[v].workers_auto ? "*" : "");
    strcat(text, "/");
    for (int b = 0; b < g->nbuffers; b++)
        sprintf(text + strlen(text), " %s %d", g->buffer[b].name, g->buffer[b].depth);
    ck_assert_msg(!strcmp(text, choices[_i].comes_to), "%s: %s", choices[_i].what, text);
    gp_pipeline_destroy(p);
}

TEST_SUITE(workers, set_up, NULL, 0)
