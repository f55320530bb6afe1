/* test_source.c - frames that are not from files: FIFOs, standard input, generated ones; and rates. */
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>
#include "base/clock.h"
#include "iotest.h"

/* ---- streams --------------------------------------------------------- */

typedef struct feed { char *path; const char *data; size_t n, piece; int pause_ms; } feed;

static void *feeding(void *arg)
{
    const feed *f = arg;
    int fd = open(f->path, O_WRONLY);
    for (size_t i = 0; i < f->n; i += f->piece) {
        size_t k = f->n - i < f->piece ? f->n - i : f->piece;
        ck_assert_int_eq(write(fd, f->data + i, k), (ssize_t)k);
        nanosleep(&(struct timespec){ .tv_nsec = f->pause_ms * 1000000L }, NULL);
    }
    close(fd);
    return NULL;
}

static const struct {
    size_t n, piece;
    const char *options, *text;
    size_t from, kept;
} streams[] = {
    { 1200, 1200, "", NULL, 0, 1200 },
    { 1200, 7, "", NULL, 0, 1200 },
    { 1206, 50, "", NULL, 0, 1206 },
    { 1207, 50, "", "ends within a frame, 1 bytes after", 0, 0 },
    { 1207, 50, ", tail: ignore", NULL, 0, 1206 },
    { 1206, 50, ", tail: drop", NULL, 0, 1200 },
    { 1207, 50, ", tail: drop", NULL, 0, 1200 },
    { 29, 29, ", tail: drop", NULL, 0, 0 },
    { 1210, 50, ", offset: 10", NULL, 10, 1200 },
    { 31, 31, ", skip: 1", NULL, 1, 30 },
    { 32, 31, ", skip: 1", "ends within a frame, 1 bytes", 0, 0 },
    { 33, 31, ", skip: 2", "ends within a frame, 1 bytes", 0, 0 },
    { 0, 1, "", NULL, 0, 0 },
    { 7, 7, ", offset: 7", NULL, 0, 0 },               /* as of a file of these bytes */
    { 7, 7, ", offset: 7, skip: 2", NULL, 0, 0 },
    { 9, 9, ", offset: 7, skip: 2", "ends within a frame, 2 bytes", 0, 0 },
    { 3, 3, ", offset: 7", "pipe' has 3 bytes, fewer than the offset of 7", 0, 0 },
    { 3, 3, ", offset: 7, tail: ignore", "pipe' has 3 bytes, fewer than the offset of 7", 0, 0 },
    { 0, 1, ", offset: 7", NULL, 0, 0 },
};

/* Through a FIFO, slowly; frames of 5 x 6 bytes. */
TEST_EACH(streams_from_fifo, streams)
{
    char data[2000];
    pthread_t t;
    feed f = { .data = data, .n = streams[_i].n, .piece = streams[_i].piece, .pause_ms = 1 };
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (char)(i * 7);
    ck_assert_int_eq(mkfifo(f.path = io_at("pipe"), 0600), 0);
    pthread_create(&t, NULL, feeding, &f);
    char *y = format("buffers: {a: {dtype: u8, shape: [5, 6]}}\nstages:\n"
                     "  - {use: read, path: pipe, out: a%s}\n  - {use: write, path: out.raw}\n", streams[_i].options);
    if (streams[_i].text)
        io_fails(y, 1, streams[_i].text);
    else
        io_runs(y);
    pthread_join(t, NULL);
    if (!streams[_i].text)
        io_holds("out.raw", data + streams[_i].from, streams[_i].kept);
}

/* A frame that is not whole is said, unless it is left out, or expected. */
static const struct { const char *options, *bytes, *says; } parts[] = {
    { "", "72", "'head' ended within a frame: the last one has 2 of 5 rows ('tail: drop' leaves it out, 'tail: ignore' keeps "
      "it without a word)" },
    { "", "90", NULL }, { "", "0", NULL }, { ", tail: ignore", "72", NULL }, { ", tail: drop", "72", NULL },
};

TEST_EACH(says_that_a_frame_is_not_whole, parts)
{
    pipe_result r = io_done(format("buffers: {a: {dtype: u8, shape: [5, 6]}}\nstages:\n"
                                   "  - {use: read, command: [head, -c, %s, /dev/zero], out: a%s}\n  - {use: discard}\n",
                                   parts[_i].bytes, parts[_i].options));
    ck_assert_int_eq(r.errs.n, parts[_i].says != NULL);
    if (parts[_i].says)
        ck_assert_str_eq(r.errs.e[0].msg, parts[_i].says);
}

static void cancel_soon(gp_pipeline *p, void *arg)
{
    nanosleep(&(struct timespec){ .tv_nsec = 100 * 1000000 }, NULL);
    gp_cancel(p, *(int *)arg);
}

/* Nobody ever opens the other end: a drain ends the run at once. */
TEST(fifo_without_writer)
{
    int level = 1;
    ck_assert_int_eq(mkfifo(io_at("pipe"), 0600), 0);
    pipe_result r = pipe_run_with(io_dir, "buffers: {a: {dtype: u8, shape: [5, 6]}}\nstages:\n"
                                  "  - {use: read, path: pipe, out: a}\n  - {use: discard}\n",
                                  "cpu", NULL, (gp_run_options){ 0 }, cancel_soon, &level);
    ck_assert_int_eq(r.outcome, GP_DRAINED);
    ck_assert_uint_eq(r.account[0].in, 0);
}

#define TO_FIFO(frames, more) "stall_timeout: 500ms\nbuffers: {a: {dtype: u8, shape: [5, 6]}}\nstages:\n" \
    "  - {use: generate, frames: " frames ", out: a}\n  - {use: write, path: pipe}\n" more

/* Reads arg's FIFO to its end once it has been left alone for longer than stall_timeout. */
typedef struct taker { char *path; int wait_ms; ssize_t got; pthread_t thread; } taker;

static void *taking(void *arg)
{
    taker *t = arg;
    char buf[4096];
    nanosleep(&(struct timespec){ t->wait_ms / 1000, t->wait_ms % 1000 * 1000000L }, NULL);
    int fd = open(t->path, O_RDONLY | O_CLOEXEC);
    for (ssize_t n; (n = read(fd, buf, sizeof buf)) > 0;)
        t->got += n;
    close(fd);
    return NULL;
}

static void take_fifo(taker *t, const char *name, int wait_ms)
{
    t->wait_ms = wait_ms;
    ck_assert_int_eq(mkfifo(t->path = io_at(name), 0600), 0);
    pthread_create(&t->thread, NULL, taking, t);
}

/* A writer waits for its reader, for as long as that takes. */
TEST_LOOP(fifo_whose_reader_comes, 0, 2)
{
    static const struct { const char *yaml; ssize_t bytes; } cases[] = {
        { TO_FIFO("7", ""), 7 * 30 },
        { "stall_timeout: 500ms\nbuffers: {a: {dtype: u8, shape: [5, 6]}}\nstages:\n"
          "  - {use: read, path: empty.raw, out: a}\n  - {use: write, path: pipe}\n", 0 },
    };
    taker t = { .got = 0 };
    io_count_raw("empty.raw", 0);
    take_fifo(&t, "pipe", 2000);
    io_runs(cases[_i].yaml);
    pthread_join(t.thread, NULL);
    ck_assert_int_eq(t.got, cases[_i].bytes);
}

/* The readers come in another order than the stages. */
TEST(fifos_whose_readers_come)
{
    taker second = { .got = 0 }, first = { .got = 0 };
    take_fifo(&second, "pipe2", 0);
    take_fifo(&first, "pipe", 600);
    io_runs(TO_FIFO("7", "  - {use: write, name: w2, in: a, path: pipe2}\n"));
    pthread_join(first.thread, NULL);
    pthread_join(second.thread, NULL);
    ck_assert_int_eq(first.got, 210);
    ck_assert_int_eq(second.got, 210);
}

static void cancel_with_a_frame(gp_pipeline *p, void *arg)
{
    gp_account a = { 0 };
    while (gp_accounts(p, &a, 1) < 1 || !a.in)
        nap();
    cancel_soon(p, arg);
}

/* Nobody reads it: cancelled, the run ends. */
TEST_LOOP(fifo_without_reader, 0, 2)
{
    static const char *const paths[] = { "pipe", "pipe%d.raw" };
    int level = 1;
    ck_assert_int_eq(mkfifo(io_at(_i ? "pipe0.raw" : "pipe"), 0600), 0);
    char *text = format("buffers: {a: {dtype: u8, shape: [5, 6]}}\nstages:\n"
                        "  - {use: generate, frames: 1, out: a}\n  - {use: write, path: %s}\n", paths[_i]);
    pipe_result r = pipe_run_with(io_dir, text, "cpu", NULL, (gp_run_options){ 0 }, cancel_with_a_frame, &level);
    ck_assert_msg(r.outcome == GP_DRAINED, "%s", io_error(&r));
    ck_assert_uint_eq(r.account[0].cancelled, 1);
}

/* ---- one writer after another ---------------------------------------- */

typedef struct writers { feed feed; const size_t (*part)[2]; atomic_bool over; } writers;

/* Each writes and goes before the next one comes, which is when the frame is out that it
 * left unfinished, or the run is over. */
static void *write_in_turns(void *arg)
{
    writers *w = arg;
    feed f = w->feed;
    for (const size_t (*p)[2] = w->part; (*p)[0]; f.data += f.n, p++) {
        f.n = f.piece = (*p)[0];
        feeding(&f);
        char *path = io_at(format("out/%zu.raw", (*p)[1]));
        while (access(path, F_OK) && !atomic_load(&w->over))
            usleep(10000);
    }
    return NULL;
}

static const struct {
    size_t part[4][2];         /* bytes that a writer writes, the number of its last frame */
    const char *options, *text;
    struct { size_t from, n; } kept[4];
} reopens[] = {
    { { { 60, 1 }, { 30, 2 }, { 90, 5 } }, "frames: 6", NULL, { { 0, 180 } } },
    { { { 60, 1 }, { 36, 3 }, { 66, 6 } }, "frames: 7", NULL, { { 0, 162 } } },
    { { { 60, 1 }, { 37, 3 }, { 60, 5 } }, "frames: 6, tail: ignore", NULL, { { 0, 96 }, { 97, 60 } } },
    { { { 40, 1 }, { 10, 2 }, { 64, 4 } }, "frames: 5, offset: 4", NULL, { { 4, 36 }, { 44, 6 }, { 54, 60 } } },
    { { { 60, 1 }, { 31, 2 } }, "frames: 5", "pipe' ends within a frame, 1 bytes", { { 0 } } },
};

/* A writer's frames are its own: what one leaves unfinished the next one does not finish. */
TEST_EACH(writers_in_turns, reopens)
{
    char data[400], want[400], got[400];
    pthread_t t;
    size_t n = 0, have = 0;
    writers w = { .feed = { .data = data }, .part = reopens[_i].part };
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (char)(i * 7);
    ck_assert_int_eq(mkfifo(w.feed.path = io_at("pipe"), 0600), 0);
    pthread_create(&t, NULL, write_in_turns, &w);
    char *y = format("buffers: {a: {dtype: u8, shape: [5, 6]}}\nstages:\n"
                     "  - {use: read, path: pipe, out: a, reopen: true, %s}\n"
                     "  - {use: write, path: out/%%d.raw}\n", reopens[_i].options);
    if (reopens[_i].text) {
        io_fails(y, 1, reopens[_i].text);
        atomic_store(&w.over, true);   /* it waits for a frame that does not come */
        pthread_join(t, NULL);
        return;
    }
    io_runs(y);
    pthread_join(t, NULL);
    for (int i = 0; i < 4; n += reopens[_i].kept[i++].n)
        memcpy(want + n, data + reopens[_i].kept[i].from, reopens[_i].kept[i].n);
    for (int i = 0; i < io_files("out"); i++) {
        size_t bytes;
        OWNED char *file = pipe_read(io_dir, format("out/%d.raw", i), &bytes);
        ck_assert(file && have + bytes <= sizeof got);
        memcpy(got + have, file, bytes);
        have += bytes;
    }
    ck_assert_uint_eq(have, n);
    ck_assert_mem_eq(got, want, n);
}

/* As it arrives: a frame is out before the next one comes. */
TEST(stdin_to_stdout)
{
    int in[2], out[2], in_was = dup(0), out_was = dup(1);
    char got[6];
    fflush(stdout);
    ck_assert(!pipe(in) && !pipe(out));
    dup2(in[0], 0), dup2(out[1], 1);
    ck_assert_int_eq(write(in[1], "abcdef", 6), 6);
    close(in[1]);
    uint64_t n = io_runs(format("buffers: {a: {dtype: u8, shape: [4]}}\nstages:\n"
                           "  - {use: read, path: stdin, out: a}\n  - {use: write, path: stdout}\n"));
    dup2(in_was, 0), dup2(out_was, 1);
    ck_assert_int_eq(read(out[0], got, 6), 6);
    ck_assert_mem_eq(got, "abcdef", 6);
    ck_assert_uint_eq(n, 2);
    close(in[0]), close(out[0]), close(out[1]), close(in_was), close(out_was);
}

/* ---- generate -------------------------------------------------------- */

/* What is generated does not depend on depth or on how it is written. */
TEST(generates_the_same)
{
    static const char *const patterns[] = { "ramp", "sine, value: 3, amplitude: 50, period: 10",
        "noise, value: 3, amplitude: 50, seed: 7", "constant, value: 3" };
    static const char *const types[] = { "u8", "i8", "u16", "i16", "u32", "i32",
                                         "u64", "i64", "f16", "f32", "f64", "c64" };
    for (size_t p = 0; p < 4; p++)
        for (size_t t = 0; t < 12; t++) {
            io_runs(format("buffers: {a: {dtype: %s, shape: [3, 5], depth: 1}}\nstages:\n"
                      "  - {use: generate, pattern: %s, frames: 20, out: a}\n"
                      "  - {use: write, path: a.npy}\n", types[t], patterns[p]));
            ck_assert_uint_eq(io_runs(format("buffers: {a: {dtype: %s, shape: [3, 5], depth: 7}}\nstages:\n"
                          "  - {use: generate, pattern: %s, frames: 20, out: a}\n"
                          "  - {use: compare, file: a.npy}\n", types[t], patterns[p])), 20);
        }
}

static const struct { const char *dtype, *options; double v[6]; } generated[] = {
    { "u8", "frames: 3", { 0, 1, 2, 3, 4, 5 } },
    { "i16", "frames: 3", { 0, 1, 2, 3, 4, 5 } },
    { "f32", "frames: 3", { 0, 1, 2, 3, 4, 5 } },
    { "f16", "frames: 3", { 0, 1, 2, 3, 4, 5 } },
    { "i8", "frames: 3, pattern: constant, value: -2.0", { -2, -2, -2, -2, -2, -2 } },
    { "i32", "frames: 3, pattern: sine, amplitude: 100, period: 4", { 0, 100, 0, -100, 0, 100 } },
    { "u8", "frames: 3, pattern: sine, amplitude: 200, period: 4, value: 100", { 100, 255, 100, 0, 100, 255 } },
    { "f64", "frames: 3, pattern: constant, value: 0.1", { .1, .1, .1, .1, .1, .1 } },
    { "u16", "frames: 3, fill: once", { 0, 1, 0, 1, 0, 1 } },
};

TEST_EACH(generates, generated)
{
    gp_dtype t = gp_dtype_parse(generated[_i].dtype);
    io_runs(format("buffers: {a: {dtype: %s, shape: [2], depth: 2}}\nstages:\n"
              "  - {use: generate, %s, out: a}\n  - {use: write, path: out.raw}\n",
              generated[_i].dtype, generated[_i].options));
    OWNED char *data = pipe_read_all(io_dir, "out.raw", 6 * gp_dtype_size(t));
    for (int i = 0; i < 6; i++) {
        double v = 0;
        switch (t) {
#define X(NAME, name, ctype, bytes) case GP_##NAME: v = AS_##NAME(((ctype *)data)[i]); break;
#define AS_U8
#define AS_I8
#define AS_U16
#define AS_I16
#define AS_U32
#define AS_I32
#define AS_U64 (double)
#define AS_I64 (double)
#define AS_F16(h) ((h) ? ldexp(1024 + ((h) & 1023), ((h) >> 10) - 25) : 0)
#define AS_F32
#define AS_F64
#define AS_C64(c) (c).re
        GP_DTYPES(X)
        case GP_NO_DTYPE: case GP_NDTYPES: break;
        }
        ck_assert_msg(v == generated[_i].v[i], "element %d is %g, not %g", i, v, generated[_i].v[i]);
    }
}

/* Noise: every bit of an integer is set about half of the time, a float fills its
 * range, another seed is another noise. */
TEST(noise_is_even)
{
    size_t n = 0;
    int ones[16] = { 0 };
    for (int seed = 0; seed < 2; seed++)
        io_runs(format("buffers: {a: {dtype: u16, shape: [1000]}}\nstages:\n"
                  "  - {use: generate, pattern: noise, frames: 10, seed: %d, out: a}\n"
                  "  - {use: write, path: n%d.raw}\n", seed, seed));
    OWNED char *a = pipe_read(io_dir, "n0.raw", &n), *b = pipe_read(io_dir, "n1.raw", &n);
    ck_assert_int_ne(memcmp(a, b, n), 0);
    for (size_t i = 0; i < n / 2; i++)
        for (int bit = 0; bit < 16; bit++)
            ones[bit] += ((uint16_t *)a)[i] >> bit & 1;
    for (int bit = 0; bit < 16; bit++)
        ck_assert_msg(ones[bit] > 4700 && ones[bit] < 5300, "bit %d: %d", bit, ones[bit]);
    io_runs("buffers: {a: {dtype: f32, shape: [10000]}}\nstages:\n"
         "  - {use: generate, pattern: noise, frames: 1, amplitude: 2, value: 5, out: a}\n"
         "  - {use: write, path: f.raw}\n");
    float *f = (float *)pipe_read(io_dir, "f.raw", &n), lo = f[0], hi = f[0];
    for (int i = 0; i < 10000; i++)
        lo = f[i] < lo ? f[i] : lo, hi = f[i] > hi ? f[i] : hi;
    ck_assert(lo >= 3 && lo < 3.01 && hi <= 7 && hi > 6.99);
    free(f);
}

/* 50 frames at 200 Hz: the last is due after 245 ms, never earlier; and not much later, if
 * the machine has time for it once. */
TEST(keeps_the_rate)
{
    static const char *const sources[] = { "generate, frames: 50", "read, path: in.raw, frames: 50",
                                           "read, path: in.raw, loop: true, frames: 50" };
    io_count_raw("in.raw", 100);
    for (int i = 0; i < 3; i++) {
        double took = 2;
        for (int again = 0; again < 20 && took >= 2; again++) {
            int64_t start = gp_now_ns();
            uint64_t n = io_runs(format("buffers: {a: {dtype: u8, shape: [2], depth: 8}}\nstages:\n"
                                      "  - {use: %s, rate: 200, out: a}\n  - {use: discard}\n", sources[i]));
            ck_assert_uint_eq(n, 50);
            took = 1e-9 * (double)(gp_now_ns() - start);
            ck_assert_msg(took > 0.245, "it took %g s", took);
        }
        ck_assert_msg(took < 2, "it took %g s, each time", took);
    }
}

TEST_SUITE(source, io_set_up, NULL, 0)
