/* test_held.c - that a finished frame is handed on before the next one is begun, which may wait for anything.
 *
 * Who is outside gives what the next frame waits for only once the frame before has arrived, by FIFOs: a frame that is
 * held stops both for ever, and the suite's time ends it. */
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include "iotest.h"

enum { BYTES = 8, FRAMES = 9 };

/* in: what frames, or scripts, wait for; out: frames that arrive. The test has both ends open. */
static int in, out;

static int fifo(const char *name)
{
    char *path = io_at(name);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    return fd;
}

static void script(const char *name, const char *text)
{
    pipe_text(io_dir, name, format("local f, out\nlocal function opens() f = io.open('%s/in', 'rb') f:setvbuf('no') end\n"
                                 "local function arrives(x) out = out or io.open('%s/out', 'wb') out:write(x:string()) "
                                 "out:flush() end\n%s", io_dir, io_dir, text));
}

static void set_up(void)
{
    io_set_up();
    in = fifo("in"), out = fifo("out");
    script("source.lua", "init = opens\nfunction produce(_, y)\n  local s = f:read(8) if not s then return false end y:write(s, 1) end\n");
    script("filter.lua", "init = opens\nfunction process(_, x, y) y:write(f:read(8), 1) end\n");
    script("sink.lua", "function process(_, x) arrives(x) end\n");
    script("copy.lua", "function process(_, x, y) y:copy(x) end\n");
    script("odd.lua", "function process(frame, x, y) if frame.index % 2 == 1 then return 'drop' end y:copy(x) end\n");
    script("fails.lua", "function process(frame, x, y)\n"
           "  if frame.index % 3 == 1 then error('as asked') end y:copy(x) end\n");
    script("few.lua", "init = opens\nfunction process(frame, x, y)\n  y:copy(x)\n"
           "  if frame.index % 5000 == 4999 then y:write(f:read(8), 1) end\nend\n");
}

static void tear_down(void)
{
    close(in), close(out);
}

static void give(const void *data, size_t n)
{
    ck_assert_int_eq((int)write(in, data, n), (int)n);
}

enum { OVER = 255 };

/* The next frame, when it arrives. OVER: the run has ended before. */
static int arrives(void)
{
    unsigned char data[BYTES];
    for (size_t at = 0; at < BYTES;) {
        ssize_t k = read(out, data + at, BYTES - at);
        ck_assert_int_gt((int)k, 0);
        at += (size_t)k;
    }
    return data[0];
}

typedef struct form { const char *head, *before; bool npy; } form;     /* of a stream; before each frame */

/* Frame k is given when frame k - 1 has arrived; with it the first `more` bytes of the next one. */
typedef struct peer { form as; int more, last; } peer;

static void *ask_and_wait(void *arg)
{
    peer *w = arg;
    char all[GP_NPY_HEADER_MAX + FRAMES * (BYTES + 10)], head[GP_NPY_HEADER_MAX];
    size_t n = 0, given = 0, first, each = BYTES + strlen(w->as.before);
    if (w->as.npy)
        memcpy(all, head, n = gp_npy_header(&U8(FRAMES * BYTES), head, sizeof head));
    else
        n = strlen(strcpy(all, w->as.head));
    first = n;
    for (int k = 0; k < FRAMES; k++, n += each) {
        memcpy(all + n, w->as.before, each - BYTES);
        memset(all + n + each - BYTES, k, BYTES);
    }
    for (int k = 0; k < FRAMES; k++) {
        size_t to = first + (size_t)(k + 1) * each + (k + 1 < FRAMES ? (size_t)w->more : 0);
        give(all + given, to - given);
        given = to;
        w->last = arrives();
        if (w->last != k)
            return NULL;
    }
    close(in);
    in = -1;
    return NULL;
}

static pipe_result run(const char *yaml, void *(*who)(void *), void *arg)
{
    static const unsigned char over[BYTES] = { OVER };
    pthread_t thread;
    ck_assert(!pthread_create(&thread, NULL, who, arg));
    pipe_result r = pipe_run(io_dir, yaml, "cpu", NULL, (gp_run_options){ 0 });
    if (r.outcome != GP_DONE)
        ck_assert_int_eq((int)write(out, over, sizeof over), BYTES);
    pthread_join(thread, NULL);
    return r;
}

#define STREAM "depth: 8\nbuffers: {x: {dtype: u8, shape: [8]}}\nstages:\n"
#define FEED "depth: 16\nbuffers: {x: {dtype: u8, shape: [8]}}\nstages:\n  - {use: generate, out: x, pattern: constant, frames: %d}\n"
#define VIDEO "depth: 8\nbuffers: {x: {dtype: u8, shape: [2, 4]}}\nstages:\n"
#define LUA(s) "  - {use: lua, script: " s ".lua}\n"
#define SINK(s) "  - {use: lua, script: sink.lua, out: []" s "}\n"
#define WRITE "  - {use: write, path: out, format: raw}\n"
#define RAW { "", "", false }
#define Y4M { "YUV4MPEG2 W4 H2 F25:1 Cmono\n", "FRAME\n", false }

static const struct { const char *yaml; int frames; form as; } held[] = {
    { STREAM "  - {use: read, path: in, out: x}\n" WRITE, 0, RAW },
    { STREAM "  - {use: read, path: in, out: x, when_full: drop-newest}\n" WRITE, 0, RAW },
    { STREAM "  - {use: read, command: [cat, in], out: x}\n" WRITE, 0, RAW },
    { STREAM "  - {use: read, path: in, out: x}\n  - {use: write, command: [sh, -c, 'exec cat > out']}\n", 0, RAW },
    { STREAM "  - {use: read, path: in, out: x, format: npy}\n" WRITE, 0, { "", "", true } },
    { VIDEO "  - {use: read, path: in, out: x, format: y4m}\n" WRITE, 0, Y4M },
    { STREAM "  - {use: read, path: in, out: x}\n" SINK(""), 0, RAW },
    { STREAM "  - {use: read, path: in, out: x}\n" LUA("copy") LUA("copy") WRITE, 0, RAW },
    { STREAM "  - {use: read, path: in, out: x}\n  - {use: expr, expr: in}\n" WRITE, 0, RAW },
    { STREAM "  - {use: lua, script: source.lua, out: x}\n" WRITE, 0, RAW },
    { FEED LUA("filter") WRITE, FRAMES, RAW },
    { FEED LUA("copy") LUA("filter") LUA("copy") SINK(""), FRAMES, RAW },
    { FEED LUA("odd") LUA("filter") WRITE, 2 * FRAMES, RAW },
    { FEED LUA("odd") LUA("filter") SINK(""), 2 * FRAMES, RAW },
    { FEED "  - {use: lua, script: fails.lua, on_error: drop}\n" LUA("filter") WRITE, FRAMES / 2 * 3 + 1, RAW },
};

/* Half a frame more, where that is asked for: a part of the next frame is no frame. */
TEST_LOOP(before_the_next, 0, 2 * (sizeof held / sizeof *held))
{
    int i = _i / 2;
    peer w = { held[i].as, _i % 2 ? BYTES / 2 : 0, -1 };
    pipe_result r = run(format(held[i].yaml, held[i].frames), ask_and_wait, &w);
    ck_assert_msg(r.outcome == GP_DONE, "%s", io_error(&r));
    ck_assert_int_eq(w.last, FRAMES - 1);
    ck_assert_uint_eq(r.account[0].out, FRAMES);
}

enum { MANY = 20000, FEW = 5000 };

/* A stage that was cheap, and is done on the thread of another, waits in a few frames for those before to arrive. */
static void *wait_for_few(void *arg)
{
    int all = *(int *)arg;
    for (int k = 0; k < MANY; k++) {
        if (k % FEW == FEW - 1 && all)
            give("\0abcdefg", BYTES);
        if (arrives() == OVER)
            break;
        if (k % FEW == FEW - 1 && !all)
            give("\0abcdefg", BYTES);
    }
    return NULL;
}

static const struct { const char *behind; int all; } cheap[] = {
    { LUA("few") WRITE, 1 },
    { LUA("few") LUA("copy") WRITE, 1 },
    { LUA("few") SINK(""), 1 },
    { LUA("few") LUA("copy") LUA("copy") SINK(""), 1 },
    { LUA("few") "  - {use: discard}\n  - {use: write, in: x, path: out, format: raw}\n", 0 },
    { LUA("few") "  - {use: discard}\n" SINK(", in: x"), 0 },
};

TEST_EACH(a_cheap_stage, cheap)
{
    int all = cheap[_i].all;
    pipe_result r = run(format(FEED "%s", MANY, cheap[_i].behind), wait_for_few, &all);
    ck_assert_msg(r.outcome == GP_DONE, "%s", io_error(&r));
    ck_assert_uint_eq(r.account[0].out, MANY);
}

TEST_SUITE(held, set_up, tear_down, 0)
