/* test_io_joined.c - one file for all frames, written by several workers: what it holds is what one writes, and what is
 * there after an error are whole frames, from the first on. In two folders: of the system, and in memory, where they
 * copy into the file. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include "iotest.h"

Suite *suite_io_joined(void);

/* Frames of some 100 KB; each then holds its number. */
#define TYPE "{dtype: i32, shape: [5, 5001]}"
#define BIG "depth: 12\nbuffers: {x: " TYPE "}\nstages:\n  - {use: generate, frames: 120, out: x}\n"
#define NUMBER(frames) "depth: 12\nbuffers: {x: " TYPE ", n: " TYPE "}\nstages:\n  - {use: generate" frames ", out: x}\n" \
    "  - {use: expr, expr: frame.index, out: n}\n"
#define NUMBERS NUMBER(", frames: 120")

static void make_files(void)
{
    static const int rows[] = { 4, 1, 7, 0, 2, 5 };
    for (int i = 0; i < 6; i++)
        io_count_npy(format("n%d.npy", i), U8(rows[i], 10), 20 * i);
    for (int i = 0; i < 30; i++)
        io_count_npy(format("s%02d.npy", i), U8(i == 20 ? 2 : 3, 10), i);
    io_count_npy("one.npy", U8(101, 3), 0);
    pipe_text(io_dir, "lose.lua", "stateless = true\nfunction process(f, x, y)\n"
              "  if f.index % 7 == 3 then return 'drop' end\n  y:copy(x)\nend\n");
    pipe_text(io_dir, "fail.lua", "stateless = true\nfunction process(f, x, y)\n"
              "  if f.index % 5 == 0 then error('as it should') end\n  y:copy(x)\nend\n");
    pipe_text(io_dir, "all.lua", "stateless = true\nfunction process(f, x, y)\n  return 'drop'\nend\n");
}

/* ---- the same bytes -------------------------------------------------- */

#define N(shape) "depth: 9\nbuffers: {x: {dtype: u8, shape: " shape "}}\nstages:\n  - {use: read, path: 'n*.npy', loop: true, " \
    "frames: 90, out: x}\n"

static const struct { const char *what, *yaml, *file; } same[] = {
    { "a .npy", BIG, "npy" },
    { "raw", BIG, "raw" },
    { "stacked", BIG, "npy, stack: true" },
    { "on disk before it has its name", BIG, "npy, durable: file, if_exists: error" },
    { "numbers", NUMBERS, "raw" },
    { "holes", NUMBERS "  - {use: lua, script: lose.lua, workers: 3}\n", "npy" },
    { "holes by errors", "on_error: drop\n" NUMBERS "  - {use: lua, script: fail.lua, workers: 3}\n", "raw" },
    { "nothing but holes", BIG "  - {use: lua, script: all.lua}\n", "npy" },
    { "a partial frame at the end", "depth: 5\nbuffers: {x: {dtype: u8, shape: [8, 3]}}\nstages:\n"
      "  - {use: read, path: one.npy, out: x}\n", "npy" },
    { "partial frames", N("[3, 10]"), "npy" },
    { "partial frames and holes", N("[3, 10]") "  - {use: lua, script: lose.lua, workers: 2}\n", "raw" },
    { "frames of several lengths", "depth: 9\nbuffers: {x: {dtype: u8, shape: ['<=9', 10]}}\nstages:\n"
      "  - {use: read, path: 'n[0-2].npy', loop: true, frames: 90, out: x}\n", "npy" },
    { "one slot", "depth: 1\nbuffers: {x: {dtype: u8, shape: [3]}}\nstages:\n  - {use: read, path: one.npy, loop: true, "
      "frames: 200, out: x}\n", "raw" },
};

static pipe_result go(const char *yaml, const char *file, int workers, char name[40])
{
    snprintf(name, 40, "out%d.%.3s", workers, file);
    return io_go(format("%s  - {use: write, path: out%d.%s, workers: %d}\n", yaml, workers, file, workers));
}

TEST_EACH(several_write_what_one_writes, same)
{
    static const int workers[] = { 2, 4, 7 };
    char name[40];
    size_t n, more;
    make_files();
    pipe_result one = go(same[_i].yaml, same[_i].file, 1, name);
    ck_assert_msg(one.outcome == GP_DONE, "%s: %s", same[_i].what, io_error(&one));
    OWNED char *want = pipe_read(io_dir, name, &n);
    for (int k = 0; k < 3; k++) {
        pipe_result r = go(same[_i].yaml, same[_i].file, workers[k], name);
        ck_assert_msg(r.outcome == GP_DONE, "%s: %s", same[_i].what, io_error(&r));
        ck_assert_uint_eq(r.account[0].out, one.account[0].out);
        ck_assert_uint_eq(r.account[0].dropped, one.account[0].dropped);
        OWNED char *is = pipe_read(io_dir, name, &more);
        ck_assert_msg(is && n == more && !memcmp(is, want, n), "%s, %d workers: %zu, not %zu bytes", same[_i].what, workers[k],
                      more, n);
    }
}

/* ---- what needs an order --------------------------------------------- */

typedef struct reading { char *path; size_t n; unsigned char data[100000]; } reading;

static void *read_all(void *arg)
{
    reading *r = arg;
    int fd = open(r->path, O_RDONLY);
    ssize_t k;
    while ((k = read(fd, r->data + r->n, sizeof r->data - r->n)) > 0)
        r->n += (size_t)k;
    close(fd);
    return NULL;
}

/* Nothing has a place in a FIFO: workers take turns. */
TEST_LOOP(a_fifo, 1, 5)
{
    static reading r;
    pthread_t thread;
    io_count_raw("in.raw", 900);
    ck_assert_int_eq(mkfifo(r.path = io_at("fifo"), 0600), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, read_all, &r), 0);
    io_runs(format("depth: 9\nbuffers: {x: {dtype: u8, shape: [3]}}\nstages:\n  - {use: read, path: in.raw, out: x}\n"
                 "  - {use: write, path: fifo, workers: %d}\n", _i));
    pthread_join(thread, NULL);
    io_holds("in.raw", r.data, r.n);
}

static const char *const ordered[] = {
    "path: a.csv", "path: a.wav, sample_rate: 8000", "path: stdout", "path: a.npy, live: true", "path: a.png",
};

TEST_EACH(one_worker, ordered)
{
    io_fails(format("buffers: {x: {dtype: u8, shape: [6]}}\nstages:\n  - {use: generate, frames: 3, out: x}\n"
                  "  - {use: write, %s, workers: 2}\n", ordered[_i]), 3, "");
}

/* ---- errors ---------------------------------------------------------- */

/* The file, whatever it is called, has a header of `head` bytes, and then frames 0 to n - 1 of `bytes` bytes, each of
 * i32 that are its number. */
static void has_frames(const char *name, size_t head, uint64_t n, size_t bytes)
{
    size_t is;
    OWNED char *data = pipe_read(io_dir, name, &is);
    ck_assert_msg(data != NULL, "no %s", name);
    ck_assert_uint_eq(is, head + n * bytes);
    for (uint64_t i = 0; i < n * (bytes / 4); i++)
        ck_each(((uint32_t *)(data + head))[i] == i / (bytes / 4), "element %d of '%s'", (int)i, name);
    if (head)
        pipe_npy_type(io_dir, name);
}

enum { FRAME = 5 * 5001 * 4 };

static const struct { const char *file; size_t head; int workers, frames; } full[] = {
    { "npy", 128, 2, 31 }, { "npy", 128, 7, 31 }, { "raw", 0, 4, 50 }, { "raw", 0, 7, 0 },
};

/* The frame that does not fit is named; those before it are all in what is kept, and in the account. */
TEST_EACH(no_room, full)
{
    struct rlimit was, now;
    char name[40];
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &was), 0);
    signal(SIGXFSZ, SIG_IGN);
    now = was, now.rlim_cur = full[_i].head + (size_t)full[_i].frames * FRAME + FRAME / 2;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &now), 0);
    pipe_result r = go(NUMBERS, full[_i].file, full[_i].workers, name);
    setrlimit(RLIMIT_FSIZE, &was);
    ck_assert_int_eq(r.outcome, GP_ERROR);
    ck_assert_int_eq(gp_errs_exit(&r.errs), 1);
    ck_assert_msg(strstr(io_error(&r), format("frame %d: '", full[_i].frames))
                  && strstr(io_error(&r), "cannot be written: File too large"), "%s", io_error(&r));
    const gp_account *a = &r.account[0];
    ck_assert_uint_eq(a->out, (unsigned)full[_i].frames);
    ck_assert_uint_eq(a->in, a->out + a->dropped + a->failed + a->cancelled);
    ck_assert_int_ne(access(io_at(name), F_OK), 0);
    strcat(name, ".partial");
    if (full[_i].frames)
        has_frames(name, full[_i].head, a->out, FRAME);
    else
        ck_assert_int_eq(io_files("."), 0);
}

/* Frame 20 is refused; frames behind it that others have written are not kept. */
TEST_LOOP(an_error_in_the_middle, 0, 6)
{
    char name[40];
    make_files();
    pipe_result r = go("depth: 12\nbuffers: {x: {dtype: u8, shape: [3, 10]}}\nstages:\n"
                       "  - {use: read, path: 's*.npy', loop: true, out: x}\n", "npy, stack: true", 2 + _i, name);
    ck_assert_int_eq(r.outcome, GP_ERROR);
    ck_assert_msg(strstr(io_error(&r), "frame 20: '") && strstr(io_error(&r), "cannot stack"), "%s", io_error(&r));
    ck_assert_uint_eq(r.account[0].out, 20);
    ck_assert_int_eq(rename(io_at(format("%s.partial", name)), io_at("kept.npy")), 0);
    ck_assert_uint_eq(io_runs("buffers: {x: {dtype: u8, shape: [3, 10]}}\nstages:\n  - {use: read, path: kept.npy, out: x}\n"
                              "  - {use: write, path: kept.raw}\n"), 20);
    OWNED char *data = pipe_read_all(io_dir, "kept.raw", 600);
    for (int i = 0; i < 600; i++)
        ck_assert_int_eq((unsigned char)data[i], i / 30 + i % 30);
}

/* ---- stopped --------------------------------------------------------- */

TEST_LOOP(stopped, 0, 4)
{
    int level = _i % 2 + 1, workers = _i / 2 ? 7 : 2;
    char *y = format(NUMBER("") "  - {use: write, path: out.npy, workers: %d}\n", workers);
    pipe_result r = pipe_run_with(io_dir, y, "cpu", NULL, (gp_run_options){ 0 }, io_stop_soon, &level);
    const gp_account *a = &r.account[0];
    ck_assert_uint_ge(a->out, 10);
    ck_assert_uint_eq(a->in, a->out + a->dropped + a->failed + a->cancelled);
    bool whole = !access(io_at("out.npy"), F_OK);
    ck_assert_msg(whole == (r.outcome == GP_DRAINED), "%d", (int)r.outcome);
    ck_assert(whole || level == 2);
    has_frames(whole ? "out.npy" : "out.npy.partial", 128, a->out, FRAME);
}

static void add(Suite *s, const char *name, void (*fixture)(void))
{
    TCase *tc = tcase_create(name);
    tcase_add_checked_fixture(tc, fixture, NULL);
    suite_fill(tc, suite_items, 1);
    suite_add_tcase(s, tc);
}

Suite *suite_io_joined(void)
{
    Suite *s = suite_create("io_joined");
    add(s, "files", io_set_up);
    add(s, "in memory", io_set_up_in_memory);
    return s;
}
