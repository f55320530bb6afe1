/* test_when_full.c - streams that do not wait: `when_full: drop-newest`. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include "iotest.h"
#include "run/pipeline.h"
#include "run/run.h"

enum {
    FRAME = 1 << 16,                   /* bytes */
    ROOM = 64 + 16 + 1 + 3 * 3         /* frames that may have room: in the queue, in the pipe of 1 MiB, between, in buffers */
};

static void set_up(void)
{
    io_set_up();
    ck_assert_int_eq(mkfifo(io_at("fifo"), 0600), 0);
    pipe_text(io_dir, "hold.lua", format("function process(f, x, y)\n  y:copy(x)\n"
                                       "  while f.index == 0 and not io.open('%s/go') do\n"
                                       "    os.execute('sleep 0.01')\n  end\nend\n", io_dir));
}

#define READ "depth: 3\nbuffers: {x: {dtype: i32, shape: [16, 1024]}}\nstages:\n  - {use: read, path: fifo, out: x%s}\n"
#define HOLD "  - {use: lua, script: hold.lua}\n"
#define WRITE "  - {use: write, path: 'out/%%d.raw', durable: none}\n"

typedef struct job { int frames, tail; bool ends; int cancel; } job;

static void put(int fd, int frame, size_t n)
{
    static int data[FRAME / 4];
    for (int i = 0; i < FRAME / 4; i++)
        data[i] = frame;
    for (size_t at = 0; at < n;) {
        ssize_t k = write(fd, (char *)data + at, n - at);
        if (k < 0 && errno == EPIPE)
            return;
        ck_assert_int_gt(k, 0);
        at += (size_t)k;
    }
}

/* Writes its frames, each in one piece, before the pipeline goes on. */
static void send(gp_pipeline *p, void *arg)
{
    job *j = arg;
    signal(SIGPIPE, SIG_IGN);
    int fd = open(io_at("fifo"), O_WRONLY);
    ck_assert_int_ge(fd, 0);
    for (int i = 0; i < j->frames; i++)
        put(fd, i, FRAME);
    if (j->tail)
        put(fd, j->frames, (size_t)j->tail);
    pipe_text(io_dir, "go", "");
    if (j->ends)
        close(fd);
    gp_account a = { 0 };
    for (; !j->ends && (a.out < 3 || !a.dropped); nap())
        gp_accounts(p, &a, 1);
    if (j->cancel)
        gp_cancel(p, j->cancel);
}

/* The number that file out/N.raw has in each place, which are `rows` rows. */
static int number_in(int n, int rows)
{
    char name[40];
    size_t bytes;
    int *data = (int *)(void *)pipe_read(io_dir, TEXT(name, "out/%d.raw", n), &bytes), first;
    ck_assert_msg(data != NULL, "no %s", name);
    ck_assert_uint_eq(bytes, (size_t)rows * 4096);
    first = *data;
    for (size_t i = 0; i < bytes / 4; i++)
        ck_assert_int_eq(data[i], first);
    free(data);
    return first;
}

static pipe_result go(const char *options, const char *behind, job *j)
{
    return pipe_run_with(io_dir, format(READ "%s" WRITE, options, behind), "cpu", NULL, (gp_run_options){ 0 }, send, j);
}

/* While a stage holds back frame 0 its writer is not held up. Of what was dropped nobody sees a part, and the others have
 * the numbers that they came with. */
TEST_LOOP(drops, 0, 2)
{
    job j = { .frames = 300, .ends = true, .tail = _i ? FRAME / 2 : 0 };
    pipe_result r = go(", when_full: drop-newest", HOLD, &j);
    const gp_account *a = &r.account[0];
    int last = -1;
    ck_assert_msg(r.outcome == GP_DONE, "%s", io_error(&r));
    ck_assert_uint_eq(a->in, 300u + (_i != 0));
    ck_assert_uint_ge(a->dropped, 300 - ROOM);
    ck_assert_uint_eq(a->in, a->out + a->dropped);
    ck_assert_uint_eq(a->lost, a->dropped);
    ck_assert_uint_eq(a->failed + a->cancelled, 0);
    ck_assert_int_eq(io_files("out"), (int)a->out);
    for (int i = 0; i < (int)a->in; i++)
        if (!access(io_at(format("out/%d.raw", i)), F_OK)) {
            ck_assert_int_eq(number_in(i, i == 300 ? 8 : 16), i);
            last = i;
        }
    ck_assert_int_eq(number_in(0, 16), 0);
    ck_assert(!_i || last == 300);
    char *says = format("fifo': %d frames came when there was no room, and were dropped ('when_full: drop-newest')", (int)a->dropped);
    const gp_err *e = &r.errs.e[_i];           /* the first one is of half a frame */
    ck_assert_msg(r.errs.n == 1 + _i && strstr(e->msg, says) && e->code == GP_E_WARN, "%s", io_error(&r));
    ck_assert_int_eq(e->at.line, 4);
}

/* What there is room for comes through, in order, and its times do not go back. */
TEST(drops_nothing)
{
    job j = { .frames = 40, .ends = true };
    pipe_text(io_dir, "go", "");
    pipe_text(io_dir, "hold.lua", "local last = 0\nfunction process(f, x, y)\n  y:copy(x)\n"
              "  if f.time < last or f.time < 1e9 or f.name ~= 'fifo' then error('a wrong time') end\n  last = f.time\nend\n");
    pipe_result r = go(", when_full: drop-newest", HOLD, &j);
    ck_assert_msg(r.outcome == GP_DONE && !r.errs.n, "%s", io_error(&r));
    ck_assert_uint_eq(r.account[0].out, 40);
    ck_assert_uint_eq(r.account[0].in, 40);
    for (int i = 0; i < 40; i++)
        ck_assert_int_eq(number_in(i, 16), i);
}

enum { NAP_NS = 100000000, LEAST_NS = 80000000 };

/* All frames are in the queue before the nap. */
static void *send_and_nap(void *arg)
{
    int left = 1, fd = open(io_at("fifo"), O_WRONLY);
    ck_assert_int_ge(fd, 0);
    for (int i = 0; i < 40; i++)
        put(fd, i, FRAME);
    while (left) {
        nap();
        ck_assert_int_eq(ioctl(fd, FIONREAD, &left), 0);
    }
    nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
    pipe_text(io_dir, "go", "");
    close(fd);
    return NULL;
}

static void waited(gp_pipeline *p, void *arg)
{
    gp_hist latency = { 0 };
    gp_run_latency(gp_pipeline_lock_run(p), &latency);
    gp_pipeline_unlock_run(p);
    ck_assert_uint_eq(latency.n, 40);
    ck_assert_int_ge(gp_hist_at(&latency, 0.5), LEAST_NS);
}

/* Latency is from when they came, not from when they left the queue. */
TEST(time_in_the_queue_counts)
{
    pthread_t sender;
    ck_assert(!pthread_create(&sender, NULL, send_and_nap, NULL));
    char *y = format(READ "%s" WRITE, ", when_full: drop-newest", HOLD);
    pipe_result r = pipe_run_then(io_dir, y, "cpu", NULL, (gp_run_options){ .timed = true }, waited, NULL);
    pthread_join(sender, NULL);
    ck_assert_msg(r.outcome == GP_DONE && !r.errs.n, "%s", io_error(&r));
}

TEST_LOOP(ends_within_a_row, 0, 2)
{
    job j = { .frames = 5, .ends = true, .tail = 5000 };
    pipe_text(io_dir, "go", "");
    pipe_result r = go(_i ? ", when_full: drop-newest, tail: ignore" : ", when_full: drop-newest", HOLD, &j);
    ck_assert_int_eq(r.outcome, _i ? GP_DONE : GP_ERROR);
    ck_assert_uint_eq(r.account[0].out, 5u + (_i != 0));
    if (_i)
        ck_assert_int_eq(number_in(5, 1), 5);
    else
        ck_assert_msg(strstr(io_error(&r), "frame 5: '") && strstr(io_error(&r), "ends within a frame, 904 bytes after"), "%s",
                      io_error(&r));
}

TEST(so_many_frames)
{
    job j = { .frames = 20, .ends = true };
    pipe_text(io_dir, "go", "");
    pipe_result r = go(", when_full: drop-newest, frames: 7", HOLD, &j);
    ck_assert_msg(r.outcome == GP_DONE && !r.errs.n, "%s", io_error(&r));
    ck_assert_uint_eq(r.account[0].out, 7);
    ck_assert_int_eq(number_in(6, 16), 6);
}

/* Its writer says no more, and does not close it. */
TEST_LOOP(stopped, 1, 3)
{
    job j = { .frames = 200, .cancel = _i };
    pipe_result r = go(", when_full: drop-newest", HOLD, &j);
    const gp_account *a = &r.account[0];
    ck_assert_msg(r.outcome == (_i == 1 ? GP_DRAINED : GP_NOT_DRAINED) || r.outcome == GP_DRAINED, "%d", (int)r.outcome);
    ck_assert_uint_eq(a->in, a->out + a->dropped + a->cancelled);
    ck_assert_uint_gt(a->dropped, 0);
    ck_assert_uint_eq(a->lost, a->dropped);
    ck_assert_int_eq(io_files("out"), (int)a->out);
}

/* The frames of the next writer go on behind those of the first. */
static void send_twice(gp_pipeline *p, void *arg)
{
    job j = *(job *)arg;
    send(p, &j);
    pipe_await_out(p, 4);
    send(p, &j);
}

TEST(another_writer)
{
    job j = { .frames = 4, .ends = true };
    pipe_text(io_dir, "go", "");
    char *y = format(READ WRITE, ", when_full: drop-newest, reopen: true, frames: 8");
    pipe_result r = pipe_run_with(io_dir, y, "cpu", NULL, (gp_run_options){ 0 }, send_twice, &j);
    ck_assert_msg(r.outcome == GP_DONE, "%s", io_error(&r));
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(number_in(i, 16), i % 4);
}

TEST_SUITE(when_full, set_up, NULL, 0)
