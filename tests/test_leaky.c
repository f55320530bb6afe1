/* test_leaky.c - inputs that do not wait (`when_full: drop-oldest`): what is beside them gets all frames, at any time. And
 * frames that come too late for a stage (`deadline`). */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include "iotest.h"
#include "run/pipeline.h"
#include "run/run.h"

enum { FRAMES = 200, WORDS = 1024, DEPTH = 3 };

/* Frame i of frames.raw holds i. A stage `hold` keeps its first frame until there is a file `go`. */
static void set_up(void)
{
    static int data[FRAMES * WORDS];
    io_set_up();
    signal(SIGPIPE, SIG_IGN);
    for (int i = 0; i < FRAMES * WORDS; i++)
        data[i] = i / WORDS;
    pipe_file(io_dir, "frames.raw", data, sizeof data);
    ck_assert_int_eq(mkfifo(io_at("fifo"), 0600), 0);
    pipe_text(io_dir, "hold.lua", format("stateless = true\nfunction process(f, x, y)\n  y:copy(x)\n"
                                       "  while f.index == 0 and not io.open('%s/go') do\n"
                                       "    os.execute('sleep 0.01')\n  end\nend\n", io_dir));
    pipe_text(io_dir, "odd.lua", "function process(f, x, y)\n  y:copy(x)\n"
              "  if f.index % 2 == 1 then return 'drop' end\nend\n");
}

#define HEAD "depth: 3\nbuffers: {x: {dtype: i32, shape: [4, 256]}%s}\nstages:\n" \
             "  - {use: read, path: frames.raw, out: x}\n  - {use: write, path: all.raw, in: x}\n"
#define HOLD "  - {name: hold, use: lua, script: hold.lua, in: x, when_full: %s%s}\n"
#define NUMBERED "  - {use: write, path: 'out/%d.raw', durable: none}\n"

/* Accounts are in the order of stages. */
enum { OF_READ, OF_QUEUE };

static gp_account account(const pipe_result *r, int of)
{
    ck_assert_int_eq(r->naccounts, 2);
    return r->account[of];
}

static void adds_up(const gp_account *a)
{
    ck_assert_uint_eq(a->in, a->out + a->dropped + a->failed + a->cancelled);
    ck_assert_uint_le(a->full + a->late, a->dropped);
}

/* The source, and what is beside the leaky input, lost nothing. */
static void kept_all(const pipe_result *r)
{
    gp_account a = account(r, OF_READ);
    size_t bytes = 0;
    OWNED int *all = (int *)(void *)pipe_read(io_dir, "all.raw", &bytes);
    adds_up(&a);
    ck_assert_uint_eq(a.in, FRAMES);
    ck_assert_uint_eq(a.out, FRAMES);
    ck_assert_uint_eq(bytes, (size_t)FRAMES * WORDS * 4);
    for (int i = 0; i < FRAMES * WORDS; i++)
        ck_each(all[i] == i / WORDS, "word %d is %d", i, all[i]);
}

/* Once all frames are where nobody waits, and out of the other branch, the stage goes on. */
static void let_go(gp_pipeline *p, void *arg)
{
    gp_account a[2] = { { 0 } };
    do {
        nap();
        ck_assert_int_le(gp_accounts(p, a, 2), 2);
    } while (a[0].out + a[0].dropped < FRAMES);
    pipe_text(io_dir, "go", "");
}

static pipe_result run_held(const char *buffers, const char *when, const char *options, const char *behind)
{
    char *y = format(HEAD HOLD "%s", buffers, when, options, behind);
    pipe_result r = pipe_run_with(io_dir, y, "cpu", NULL, (gp_run_options){ 0 }, let_go, NULL);
    ck_assert_msg(r.outcome == GP_DONE && !r.errs.failed, "%s", io_error(&r));
    kept_all(&r);
    return r;
}

/* The files in out/ are those of these frames, and hold them. */
static void has_frames(const int *frame, int n)
{
    ck_assert_int_eq(io_files("out"), n);
    for (int i = 0; i < n; i++) {
        OWNED int *data = pipe_read_all(io_dir, format("out/%d.raw", frame[i]), WORDS * 4);
        for (int k = 0; k < WORDS; k++)
            ck_assert_int_eq(data[k], frame[i]);
    }
}

static const struct { const char *when, *options; int n, frame[2 * DEPTH + 2]; } kept[] = {
    { "drop-newest", "", DEPTH, { 0, 1, 2 } },
    { "drop-oldest", "", DEPTH + 1, { 0, FRAMES - 3, FRAMES - 2, FRAMES - 1 } },
    { "drop-oldest", ", workers: 2", DEPTH + 2, { 0, 1, FRAMES - 3, FRAMES - 2, FRAMES - 1 } },
};

/* While a stage is at its first frame, all others pass it by; it then finds those that the key promises, by their numbers. */
TEST_LOOP(which_frames, 0, sizeof kept / sizeof *kept)
{
    pipe_result r = run_held("", kept[_i].when, kept[_i].options, NUMBERED);
    gp_account a = account(&r, OF_QUEUE);
    adds_up(&a);
    ck_assert_uint_eq(a.in, FRAMES);
    ck_assert_uint_eq(a.failed + a.cancelled + a.late, 0);
    if (!*kept[_i].options) {
        ck_assert_uint_eq(a.out, kept[_i].n);
        has_frames(kept[_i].frame, kept[_i].n);
    }
    ck_assert_uint_eq(a.out, io_files("out"));
    ck_assert_uint_eq(a.full, FRAMES - a.out);
    ck_assert_uint_eq(a.dropped, a.full);
}

/* Frames that a stage before it dropped are no loss of it. */
TEST_LOOP(holes_before, 0, 2)
{
    char *y = format("depth: 3\nbuffers: {x: {dtype: i32, shape: [4, 256]}, y: {like: x}}\nstages:\n"
                     "  - {use: read, path: frames.raw, out: x}\n  - {use: write, path: all.raw, in: x}\n"
                     "  - {use: lua, script: odd.lua, in: x, out: y}\n"
                     "  - {name: hold, use: lua, script: hold.lua, in: y, when_full: %s}\n%s",
                     _i ? "drop-oldest" : "drop-newest", NUMBERED);
    pipe_result r = pipe_run_with(io_dir, y, "cpu", NULL, (gp_run_options){ 0 }, let_go, NULL);
    gp_account of_read = account(&r, OF_READ), a = account(&r, OF_QUEUE);
    ck_assert_msg(r.outcome == GP_DONE && !r.errs.failed, "%s", io_error(&r));
    adds_up(&a), adds_up(&of_read);
    ck_assert_uint_eq(of_read.out, FRAMES / 2);
    ck_assert_uint_eq(of_read.full, 0);
    ck_assert_uint_eq(a.in, FRAMES);
    ck_assert_uint_eq(a.out, _i ? 1 + DEPTH : 2);      /* with drop-newest the hole of frame 1 has a slot, too */
    ck_assert_uint_eq(a.full, FRAMES / 2 - a.out);
    ck_assert_uint_eq(a.dropped, FRAMES - a.out);
    if (_i)
        has_frames((int[]){ 0, FRAMES - 6, FRAMES - 4, FRAMES - 2 }, 4);
    else
        has_frames((int[]){ 0, 2 }, 2);
}

/* Groups behind it lack what was dropped, as they lack other holes, and each frame counts once. */
TEST(groups)
{
    pipe_result r = run_held("", "drop-newest", "", "  - {use: group, frames: 10}\n  - {use: write, path: 'out/%d.raw', durable: none}\n");
    gp_account a = account(&r, OF_QUEUE);
    adds_up(&a);
    ck_assert_uint_eq(a.in, FRAMES);
    ck_assert_uint_eq(a.full, FRAMES - DEPTH);
    ck_assert_uint_eq(a.out, DEPTH);
    ck_assert_uint_eq(a.cancelled + a.failed, 0);
    ck_assert_int_eq(io_files("out"), 1);
    free(pipe_read_all(io_dir, "out/0.raw", DEPTH * WORDS * 4));
}

#define VIEW "  - {name: view, use: write, path: fifo, in: x, when_full: %s%s}\n"

/* A FIFO that nobody reads holds up nobody, not even the end. */
TEST_LOOP(nobody_reads, 0, 2)
{
    char *y = format(HEAD VIEW, "", _i ? "drop-oldest" : "drop-newest", "");
    pipe_result r = pipe_run_with(io_dir, y, "cpu", NULL, (gp_run_options){ 0 }, NULL, NULL);
    gp_account a = account(&r, OF_QUEUE);
    ck_assert_msg(r.outcome == GP_DONE && r.errs.n == 1 && strstr(io_error(&r), "nobody takes what stage 'view' has"), "%s",
                  io_error(&r));
    kept_all(&r);
    adds_up(&a);
    ck_assert_uint_eq(a.in, FRAMES);
    ck_assert_uint_eq(a.out + a.failed, 0);
    ck_assert_uint_eq(a.cancelled, DEPTH + _i);
    ck_assert_uint_eq(a.full, FRAMES - a.cancelled);
}

/* Nor does one whose reader has it open, and reads nothing. */
TEST(reader_does_not_read)
{
    int fd = open(io_at("fifo"), O_RDONLY | O_NONBLOCK);
    char *y = format(HEAD VIEW, "", "drop-newest", "");
    ck_assert_int_ge(fd, 0);
    fcntl(fd, F_SETPIPE_SZ, 4096);
    pipe_result r = pipe_run_with(io_dir, y, "cpu", NULL, (gp_run_options){ 0 }, NULL, NULL);
    gp_account a = account(&r, OF_QUEUE);
    close(fd);
    ck_assert_msg(r.outcome == GP_DONE, "%s", io_error(&r));
    kept_all(&r);
    adds_up(&a);
    ck_assert_uint_eq(a.in, FRAMES);
    ck_assert_uint_gt(a.full, 0);
}

static void *read_one(void *arg)
{
    static char frame[WORDS * 4];
    int fd = open(io_at("fifo"), O_RDONLY);
    for (size_t at = 0; at < sizeof frame;) {
        ssize_t k = read(fd, frame + at, sizeof frame - at);
        ck_assert_int_gt(k, 0);
        at += (size_t)k;
    }
    close(fd);
    pipe_text(io_dir, "go", "");
    return NULL;
}

/* A reader that leaves is an error, which with on_error: drop ends that branch alone. The frame behind the one that it
 * reads is made when it is gone. */
TEST_LOOP(reader_leaves, 0, 2)
{
    pthread_t reader;
    char *y = format("depth: 3\nbuffers: {x: {dtype: i32, shape: [4, 256]}, y: {like: x}}\nstages:\n"
                     "  - {use: read, path: frames.raw, out: x}\n"
                     "  - {name: late, use: lua, script: late.lua, in: x, out: y}\n"
                     "  - {use: write, path: all.raw, in: y}\n"
                     "  - {name: view, use: write, path: fifo, in: y, when_full: drop-newest%s}\n",
                     _i ? ", on_error: drop" : "");
    pipe_text(io_dir, "late.lua", format("function process(f, x, y)\n  y:copy(x)\n"
                                         "  while f.index == 1 and not io.open('%s/go') do\n"
                                         "    os.execute('sleep 0.01')\n  end\nend\n", io_dir));
    ck_assert(!pthread_create(&reader, NULL, read_one, NULL));
    pipe_result r = pipe_run_with(io_dir, y, "cpu", NULL, (gp_run_options){ 0 }, NULL, NULL);
    pthread_join(reader, NULL);
    gp_account a = account(&r, OF_QUEUE);
    adds_up(&a);
    ck_assert_uint_ge(a.out, 1);
    ck_assert_uint_eq(a.failed, 1);
    ck_assert_msg(strstr(io_error(&r), "Broken pipe"), "%s", io_error(&r));
    ck_assert_int_eq(r.outcome, _i ? GP_DONE : GP_ERROR);
    if (_i)
        kept_all(&r);
}

/* Where there is room for all frames it changes nothing. */
TEST_LOOP(drops_nothing, 0, 2)
{
    char *y = format("depth: 200\nbuffers: {x: {dtype: i32, shape: [4, 256]}}\nstages:\n"
                     "  - {use: read, path: frames.raw, out: x}\n  - {use: write, path: all.raw, in: x}\n"
                     "  - {use: write, path: more.raw, in: x, name: more, when_full: %s}\n",
                     _i ? "drop-oldest" : "drop-newest");
    pipe_result r = pipe_run_with(io_dir, y, "cpu", NULL, (gp_run_options){ 0 }, NULL, NULL);
    gp_account a = account(&r, OF_QUEUE);
    size_t n = 0, m = 0;
    ck_assert_msg(r.outcome == GP_DONE && !r.errs.n, "%s", io_error(&r));
    kept_all(&r);
    ck_assert_uint_eq(a.out, FRAMES);
    OWNED char *all = (char *)pipe_read(io_dir, "all.raw", &n), *more = (char *)pipe_read(io_dir, "more.raw", &m);
    ck_assert(n == m && !memcmp(all, more, n));
}

static const struct { const char *top, *view; int late; } deadlines[] = {
    { "", ", deadline: 1h", 0 }, { "", ", deadline: 1ns", FRAMES }, { "deadline: 1ns\n", "", FRAMES },
    { "deadline: 1ns\n", ", deadline: 0s", 0 }, { "", ", deadline: 1ns, workers: 3", FRAMES },
    { "deadline: 1h\n", ", workers: 3", 0 },
};

/* All frames are older than a nanosecond when they are taken, and none is older than an hour. What is beside the stage
 * gets them all the same. */
TEST_LOOP(late, 0, sizeof deadlines / sizeof *deadlines)
{
    char *y = format("%sbuffers: {x: {dtype: i32, shape: [4, 256]}}\nstages:\n  - {use: read, path: frames.raw, out: x}\n"
                     "  - {use: write, path: more.raw, in: x%s}\n", deadlines[_i].top, deadlines[_i].view);
    pipe_result r = pipe_run_with(io_dir, y, "cpu", NULL, (gp_run_options){ 0 }, NULL, NULL);
    ck_assert_msg(r.outcome == GP_DONE && r.errs.n == !!deadlines[_i].late, "%s", io_error(&r));
    adds_up(&r.account[0]);
    ck_assert_uint_eq(r.account[0].in, FRAMES);
    ck_assert_uint_eq(r.account[0].late, deadlines[_i].late);
    ck_assert_uint_eq(r.account[0].dropped, deadlines[_i].late);
    free(pipe_read_all(io_dir, "more.raw", (size_t)(FRAMES - deadlines[_i].late) * WORDS * 4));
}

/* The time in a queue counts: frame 0 is late once it is let go, and so are those behind it; of the two branches only the
 * one with the deadline lacks them, and all count as late for the source. */
TEST(late_in_a_queue)
{
    char *y = format("depth: 3\nbuffers: {x: {dtype: i32, shape: [4, 256]}, y: {like: x}}\nstages:\n"
                     "  - {use: read, path: frames.raw, out: x}\n  - {use: write, path: all.raw, in: x}\n"
                     "  - {name: hold, use: lua, script: hold.lua, in: x, out: y, when_full: drop-newest}\n"
                     "  - {use: write, path: 'out/%%d.raw', durable: none, in: y, deadline: 1ns}\n");
    pipe_result r = pipe_run_with(io_dir, y, "cpu", NULL, (gp_run_options){ 0 }, let_go, NULL);
    gp_account a = account(&r, OF_QUEUE);
    ck_assert_msg(r.outcome == GP_DONE && !r.errs.failed, "%s", io_error(&r));
    kept_all(&r);
    adds_up(&a);
    ck_assert_uint_eq(a.full, FRAMES - DEPTH);
    ck_assert_uint_eq(a.late, DEPTH);
    ck_assert_uint_eq(a.out, 0);
    ck_assert_int_eq(io_files("out"), 0);
}

enum { BEHIND = 2 };            /* the queue's account, behind those of two sources */

typedef struct retuning { gp_pipeline *p, *q; gp_errs errs; int fd; bool ended, ok; } retuning;

static const gp_actorrt *leak_of(const gp_run *run)
{
    for (int i = 0; i < run->plan->nactors; i++)
        if (run->actor[i].leak)
            return &run->actor[i];
    return NULL;
}

/* Once the leak has taken so many frames and, if it is to, has ended. */
static void *retune(void *arg)
{
    retuning *t = arg;
    gp_account a[3] = { { 0 } };
    while (gp_accounts(t->p, a, 3) < 3 || a[BEHIND].in < 10)
        nap();
    if (t->ended)
        close(t->fd);
    for (bool over = !t->ended; !over; nap()) {
        over = atomic_load(&leak_of(gp_pipeline_lock_run(t->p))->over);
        gp_pipeline_unlock_run(t->p);
    }
    t->ok = gp_pipeline_retune(t->q, t->p, NULL, &t->errs);
    return NULL;
}

/* A pause takes back the newest frames that nobody has read, where the depth is smaller then: they count as dropped, and
 * their bytes, each of a frame that is not whole, count no more. So it does when no more are to come (1). */
TEST_LOOP(taken_back, 0, 2)
{
    enum { CAME = 10, ROWS = 3 };
    static char data[CAME * WORDS * 4];
    char *y = format("depth: 12\nbuffers: {x: {dtype: i32, shape: [4, 256]}, y: {like: x}, z: {like: x}}\nstages:\n"
                     "  - {use: read, path: in, format: raw, out: x}\n  - {use: lua, script: rows.lua, in: x, out: y}\n"
                     "  - {name: view, use: write, path: fifo, in: y, when_full: drop-newest}\n"
                     "  - {use: generate, in: [], rate: 0.001, out: z}\n  - {use: discard, in: z}\n");
    const char *less[] = { "depth=1" };
    pthread_t thread;
    pipe_text(io_dir, "rows.lua", format("function process(f, x, y) y:copy(x) f.valid = %d end\n", ROWS));
    ck_assert_int_eq(mkfifo(io_at("in"), 0600), 0);
    int fd = open(io_at("in"), O_RDWR);
    ck_assert_int_eq(write(fd, data, sizeof data), sizeof data);
    retuning t = { .p = pipe_compiled(io_dir, y, (gp_config){ 0 }), .fd = fd, .ended = _i,
                   .q = pipe_compiled(io_dir, y, (gp_config){ .set = less, .nset = 1 }) };
    ck_assert(!pthread_create(&thread, NULL, retune, &t));
    gp_errs errs = { .n = 0 };
    ck_assert_msg(gp_pipeline_run(t.p, NULL, &errs) == GP_PAUSED, "%s", pipe_said(&errs));
    pthread_join(thread, NULL);
    ck_assert_msg(t.ok, "%s", pipe_said(&t.errs));
    gp_cancel(t.p, 1);
    ck_assert_msg(gp_pipeline_go_on(t.q, t.p, NULL, &errs) == GP_DRAINED, "%s", pipe_said(&errs));
    gp_account a[3];
    ck_assert_int_eq(gp_accounts(t.q, a, 3), 3);
    adds_up(&a[BEHIND]);
    ck_assert_uint_eq(a[BEHIND].in, CAME);
    ck_assert_uint_eq(a[BEHIND].full, CAME - 1);
    const gp_run *run = gp_pipeline_lock_run(t.q);
    const gp_actorrt *leak = leak_of(run);
    ck_assert_uint_eq(leak->frames, 1);
    ck_assert_uint_eq(leak->bytes, ROWS * WORDS);
    ck_assert_uint_eq(leak->out[0]->there, 1);
    gp_pipeline_unlock_run(t.q);
    gp_pipeline_destroy(t.q), gp_pipeline_destroy(t.p);
    if (!_i)
        close(fd);
}

TEST_SUITE(leaky, set_up, NULL, 0)
