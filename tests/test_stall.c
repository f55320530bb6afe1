/* test_stall.c - what a run says in which nothing moves: the whole report, word for word, with its times made equal.
 * The threads that are stuck end with the test's process. */
#include <ctype.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include "base/clock.h"
#include "idle.h"
#include "iotest.h"

/* Threads that work get a processor more often than each second, whatever else runs; who sleeps needs none. What is no
 * stall takes several times as long. */
#define PATIENCE "1s"
#define ASLEEP "400ms"
#define HINT "if it is only slow, raise 'stall_timeout'\n"
/* `hang` is a FIFO that nobody writes to: to open it never ends. */
#define HANG(frame) "stateless = true\nfunction process(f, x, y)\n" \
                    "  if f.index == " frame " then io.open(hang) end\n" \
                    "  if y then y:copy(x) end\nend\n"

/* Several workers take one frame at a time, one may take a run of them. `says`: the lines but for that of what was done
 * last, which has to have `last`. @ is what the stuck thread does, `at`; # is a time or a worker. */
static const struct { const char *stages, *script, *says, *at, *last; } cases[] = {
    { "  - {use: generate, out: a}\n  - {name: slow, use: lua, script: s.lua, workers: 2}\n"
      "  - {use: discard}\n  - {name: aside, use: discard, in: a}\n",
      HANG("4"),
      "nothing moved for #: stage 'slow' is busy with frame 4@\n"
      "stage 'slow' (worker #) has been busy with frame 4 for #\n"
      "stage 'discard' has waited # for frame 4 of 'slow', which stage 'slow' makes\n"
      "stage 'generate' has waited # to put frame 7 into 'a': its slot (2 of 3) has frame 4, which stage 'slow' needs\n"
      "stage 'aside' has waited # for frame 7 of 'a', which stage 'generate' makes\n",
      ", opening a file", "frame 3 of 'slow' #" },
    { "  - {use: generate, out: a}\n  - {name: slow, use: lua, script: s.lua, workers: 2}\n"
      "  - {use: discard}\n",
      HANG("4 or f.index == 5"),
      "nothing moved for #: stage 'slow' is busy with frame 4@\n"
      "stage 'slow' (worker #) has been busy with frame 4 for #\n"
      "stage 'slow' (worker #) has been busy with frame 5 for #@\n"
      "stage 'discard' has waited # for frame 4 of 'slow', which stage 'slow' makes\n"
      "stage 'generate' has waited # to put frame 7 into 'a': its slot (2 of 3) has frame 4, "
      "which stage 'slow' needs\n",
      ", opening a file", "frame 3 of 'slow' #" },
    { "  - {use: generate, out: a, frames: 2}\n  - {name: slow, use: lua, script: s.lua}\n"
      "  - {use: discard}\n",
      "function process() os.execute('exec sleep 60') end",
      "nothing moved for #: stage 'slow' is busy with frame 0@\n"
      "stage 'slow' has been busy with frame 0 for #\n"
      "stage 'discard' has waited # for frame 0 of 'slow', which stage 'slow' makes\n"
      "stage 'generate' ended # ago, after 2 frames\n",
      ", waiting for a process", "frame 1 of 'generate' #" },
    { "  - {use: generate, out: a, frames: 20}\n  - {name: slow, use: lua, script: s.lua}\n"
      "  - {use: discard}\n",
      "function process(f, x, y) y:copy(x) end function finish() io.open(hang) end",
      "nothing moved for #: stage 'slow' is busy in its finish@\n"
      "stage 'slow' has been in its finish for #\n"
      "stage 'discard' has waited # for frame 20 of 'slow', which stage 'slow' makes\n"
      "stage 'generate' ended # ago, after 20 frames\n",
      ", opening a file", "frame 19 of 'discard' #" },
    { "  - {use: generate, out: a, frames: 20}\n  - {name: slow, use: lua, script: s.lua}\n"
      "  - {use: discard}\n",
      "io.open(hang)",
      "nothing moved for #: stage 'slow' is still being opened@\n",
      ", opening a file", NULL },
    { "  - {use: generate, out: a}\n"
      "  - {use: kernel, name: stuck, source: k.cu, entry: k, args: [in, out, frame], grid: [1]}\n"
      "  - {use: discard}\n",
      NULL,
      "nothing moved for #: segment 'stuck' is busy with frame 3\n"
      "segment 'stuck' has had frame 3 on the device for #, after it those up to 5\n"
      "stage 'discard' has waited # for frame 3 of 'stuck', which segment 'stuck' makes\n"
      "stage 'generate' has waited # to put frame 6 into 'a': its slot (1 of 3) has frame 3, "
      "which segment 'stuck' needs\n",
      "", "frame 2 of 'stuck' #" },
    { "  - {use: generate, out: a}\n  - {use: scale, a: 2}\n  - {use: write, path: pipe, format: raw}\n",
      NULL,
      "nothing moved for #: stage 'write' is busy with frame N@\n"
      "stage 'write' has been busy with frame N for #\n"
      "segment 'scale' has waited # to put frame N into 'scale': its slot (N of N) has frame N, "
      "which stage 'write' needs\n"
      "stage 'generate' has waited # to put frame N into 'a': its slot (N of N) has frame N, "
      "which segment 'scale' needs\n",
      ", writing to PIPE, a full pipe: its reader does not read", "of 'scale' #" },
    { "  - {use: generate, out: a}\n  - {name: slow, use: lua, script: s.lua, out: y, workers: 2}\n"
      "  - {use: discard}\n  - {name: generate2, use: generate, out: b}\n"
      "  - {name: join, use: compare, in: [y, b]}\n",
      HANG("1"),
      "nothing moved for #: stage 'slow' is busy with frame 1@\n"
      "stage 'slow' (worker #) has been busy with frame 1 for #\n"
      "stage 'discard' has waited # for frame 1 of 'y', which stage 'slow' makes\n"
      "stage 'join' has waited # for frame 1 of 'y', which stage 'slow' makes\n"
      "stage 'generate' has waited # to put frame 4 into 'a': its slot (2 of 3) has frame 1, which stage 'slow' needs\n"
      "stage 'generate2' has waited # to put frame 4 into 'b': its slot (2 of 3) has frame 1, "
      "which stage 'join' needs\n",
      ", opening a file", "frame 0 of 'join' #" },
};

/* Copies text; times and workers become #, in a report of a pipe numbers N. */
static void plain(char *out, const char *text, bool numbers)
{
    while (*text) {
        int time = 0, worker = 0;
        if (isdigit((unsigned char)*text))
            sscanf(text, "%*f s%n", &time);
        sscanf(text, "worker %*d of %*d%n", &worker);
        if (time) {
            *out++ = '#';
            text += time;
        } else if (worker && *text == 'w') {
            out += sprintf(out, "worker #");
            text += worker;
        } else if (isdigit((unsigned char)*text) && numbers) {
            *out++ = 'N';
            text += strspn(text, "0123456789");
        } else {                   /* a whole word of letters or digits, or one other byte */
            do
                *out++ = *text++;
            while (isdigit((unsigned char)*text) && isalnum((unsigned char)text[-1]));
        }
    }
    *out = 0;
}

/* Puts `with` in place of the first `what`. */
static void put(char *text, size_t size, const char *what, const char *with)
{
    char *at = strstr(text, what);
    if (!at)
        return;
    snprintf(at, size - (size_t)(at - text), "%s%s", with, format("%s", at + strlen(what)));
}

/* Does the kernel say in which system call a thread is? */
static bool calls_are_seen(void)
{
    char text[20];
    int fd = open(format("/proc/self/task/%ld/syscall", (long)syscall(SYS_gettid)), O_RDONLY | O_CLOEXEC);
    bool seen = fd >= 0 && read(fd, text, sizeof text) > 0;
    if (fd >= 0)
        close(fd);
    return seen;
}

static void put_script(const char *script)
{
    char *path = io_at("hang");
    mkfifo(path, 0600);
    pipe_text(io_dir, "s.lua", format("local hang = '%s'\n%s", path, script));
}

static pipe_result stall(const char *stages, const char *script)
{
    char text[6000];
    pipe_text(io_dir, "k.cu",
              "extern \"C\" int pause(void);\n"
              "extern \"C\" __global__ void k(const float *in, float *out, const gp_frame_info *frame)\n"
              "{\n"
              "    if (frame->index == 3)\n"
              "        pause();\n"
              "    for (int i = 0; i < 8192; i++) out[i] = in[i];\n"
              "}\n");
    put_script(script ? script : "");
    pipe_text(io_dir, "copy.lua", "function process(f, x, y) y:copy(x) end");
    snprintf(text, sizeof text, "stall_timeout: " PATIENCE "\ndepth: 3\nbatch: 1\n"
             "buffers: {a: {dtype: f32, shape: [8192]}, b: {like: a}}\nstages:\n%s", stages);
    if (!strstr(stages, "out: b"))
        put(text, sizeof text, ", b: {like: a}", "");
    pipe_result r = pipe_run(io_dir, text, "cpu", NULL, (gp_run_options){ 0 });
    ck_assert_int_eq(gp_errs_exit(&r.errs), 5);
    return r;
}

TEST_SOME(report, sizeof cases / sizeof *cases, 2, 1)
{
    char *pipe = io_at("pipe"), said[6000] = "", want[6000], line[800];
    const char *at = calls_are_seen() ? cases[_i].at : "";
    if (*at != *cases[_i].at)
        fprintf(stderr, "SKIPPED: what threads of a stalled run do: this kernel does not say\n");
    bool to_pipe = strstr(cases[_i].stages, "path: pipe");
    ck_assert_int_eq(mkfifo(pipe, 0600), 0);
    /* stays open: the thread that writes is not to wake up */
    ck_assert_int_ge(open(pipe, O_RDONLY | O_NONBLOCK | O_CLOEXEC), 0);

    pipe_result r = stall(cases[_i].stages, cases[_i].script);
    ck_assert_int_eq(r.errs.failed, 1);
    ck_assert_int_eq(r.errs.dropped, 0);
    ck_assert_int_gt(r.errs.e[0].at.line, 0);
    bool last = false;
    for (int i = 0; i < r.errs.n; i++) {
        ck_assert_int_eq((int)r.errs.e[i].code, i ? GP_E_NOTE : GP_E_STALL);
        put(r.errs.e[i].msg, sizeof r.errs.e[i].msg, pipe, "PIPE");
        plain(line, r.errs.e[i].msg, to_pipe);
        bool recent = !strncmp(line, "done last: ", 11);
        last |= recent && cases[_i].last && strstr(line, cases[_i].last);
        if (!recent)
            strcat(strcat(said, line), "\n");
    }
    snprintf(want, sizeof want, "%s%s", cases[_i].says, HINT);
    put(want, sizeof want, "@", at);
    put(want, sizeof want, "@", at);
    ck_assert_str_eq(said, want);
    ck_assert_msg(last == (cases[_i].last != NULL), "%s", r.errs.e[r.errs.n - 2].msg);
}

/* The nearest come first; how many more there are is said. */
TEST(many)
{
    char stages[5000] = "  - {use: generate, out: a}\n";
    for (int i = 1; i <= 40; i++)
        sprintf(stages + strlen(stages), "  - {name: %c%d, use: lua, script: %s.lua}\n",
                i == 20 ? 'x' : 'l', i, i == 20 ? "s" : "copy");
    strcat(stages, "  - {use: discard}\n");
    pipe_result r = stall(stages, HANG("0"));
    ck_assert_int_eq(r.errs.n, 20);
    ck_assert_ptr_nonnull(strstr(r.errs.e[2].msg, "stage 'l21' has waited"));
    ck_assert_ptr_nonnull(strstr(r.errs.e[3].msg, "stage 'l19' has waited"));
    ck_assert_str_eq(r.errs.e[17].msg, "and 26 more");
}

/* ---- what takes long and is no stall ---------------------------------- */

#define COMPUTE(seconds) "local start = os.clock() repeat until os.clock() - start > " seconds "\n"
#define COMPUTES "  - {use: generate, out: a, frames: 1}\n" \
                 "  - {use: lua, script: s.lua}\n  - {use: discard}\n"

/* Each takes several times the stall_timeout, of CPU time, which is told of a frame. */
static const struct { const char *name, *stages, *script; } slow[] = {
    { "a frame", COMPUTES, "function process(f, x, y) y:copy(x) " COMPUTE("2.5") " end" },
    { "a finish", COMPUTES, "function process(f, x, y) y:copy(x) end function finish() " COMPUTE("2.5") " end" },
    { "a script that is opened", COMPUTES, COMPUTE("2.5") "function process(f, x, y) y:copy(x) end" },
    { "a kernel", "  - {use: generate, out: a, frames: 1}\n"
      "  - {use: kernel, source: k.cu, args: [in, out], grid: [1], block: [1]}\n  - {use: discard}\n", "" },
};

static const char *timed(const char *patience, const char *stages, char text[2000])
{
    snprintf(text, 2000, "stall_timeout: %s\nbuffers: {a: {dtype: f32, shape: [16]}}\n"
             "stages:\n%s", patience, stages);
    return text;
}

static void note_slow(void *arg, bool ends, const gp_errs *who)
{
    ck_assert(!ends && who->n == 1 && who->e[0].code == GP_E_WARN);
    ck_assert_msg(strstr(who->e[0].msg, "been busy with frame 0 for") || strstr(who->e[0].msg, "been in its finish for")
                  || strstr(who->e[0].msg, "has had frame 0 on the device for"), "%s", who->e[0].msg);
    ++*(int *)arg;
}

TEST_SOME(work_is_no_stall, sizeof slow / sizeof *slow, 2, 1)
{
    char text[2000];
    int told = 0;
    put_script(slow[_i].script);
    pipe_text(io_dir, "k.cu", "extern \"C\" long clock(void);\n"
              "extern \"C\" __global__ void k(const float *in, float *out)\n"
              "{\n"
              "    long start = clock();\n"
              "    while (clock() - start < 2500000)\n"
              "        ;\n"
              "    for (int i = 0; i < 16; i++) out[i] = in[i];\n"
              "}\n");
    pipe_result r = pipe_run(io_dir, timed(PATIENCE, slow[_i].stages, text), "cpu", NULL,
                             (gp_run_options){ .held_up = note_slow, .held_up_arg = &told });
    ck_assert_msg(r.outcome == GP_DONE, "%s: %s", slow[_i].name, io_error(&r));
    ck_assert_msg((told > 0) == !strstr(slow[_i].name, "opened"), "%s: %d", slow[_i].name, told);      /* and each time it is twice as long */
    ck_assert_uint_eq(r.account[0].out, r.account[0].in);
}

/* Reads 512 KiB from a FIFO a page at a time, slowly. */
static void read_slowly(gp_pipeline *p, void *arg)
{
    char page[4096];
    size_t got = 0;
    for (ssize_t n; got < 1 << 19; got += (size_t)n) {
        usleep(20000);
        n = read(*(int *)arg, page, sizeof page);
        ck_assert_int_gt(n, 0);
    }
}

/* One frame of 512 KiB takes 2.6 s, and no frame moves meanwhile. */
TEST(bytes_are_no_stall)
{
    char *pipe = io_at("pipe");
    ck_assert_int_eq(mkfifo(pipe, 0600), 0);
    int fd = open(pipe, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ck_assert_int_eq(fcntl(fd, F_SETFL, 0), 0);
    ck_assert_int_ge(open(pipe, O_WRONLY | O_CLOEXEC), 0);     /* so that reads wait */
    pipe_result r = pipe_run_with(io_dir, "stall_timeout: " PATIENCE "\n"
        "buffers: {a: {dtype: u8, shape: [524288]}}\nstages:\n  - {use: generate, out: a, frames: 1}\n"
        "  - {use: write, path: pipe, format: raw}\n", "cpu", NULL, (gp_run_options){ 0 },
        read_slowly, &fd);
    ck_assert_msg(r.outcome == GP_DONE, "%s", io_error(&r));
}

/* A kind whose frame waits for an instrument, as stage.h has it or asleep. */
struct naps { bool said; };

static bool nap_run(gp_call *c, gp_frame *f, int n)
{
    const struct naps *o = c->opts;
    if (!o->said)
        sleep(60);
    else if (!gp_wait_until(c, gp_now_ns() + 1500000000))
        f->status = GP_STOPPED;
    return true;
}

static const gp_kind naps = {
    GP_KIND("nap"), .help = "sleeps",
    .in = (const gp_port[]){ { "in", GP_ACCEPT_ANY, false, "frames" }, { 0 } },
    .opts = (const gp_opt[]){ { GP_BOOL(struct naps, said), .help = "" }, { 0 } },
    .opts_size = sizeof(struct naps), .shape = as_declared, .run = nap_run,
};

TEST_LOOP(a_wait_that_is_said_is_no_stall, 0, 2)
{
    static gp_errs errs;
    static gp_pipeline *p;             /* a stage that hangs still has it when the test is over */
    char text[2000];
    pipe_kinds(&naps, 1);
    timed(ASLEEP, _i ? "  - {use: generate, out: a, frames: 1}\n  - {use: nap, said: true}\n"
             : "  - {use: generate, out: a, frames: 1}\n  - {use: nap}\n", text);
    p = pipe_compiled(".", text, (gp_config){ .set = NULL });
    gp_outcome outcome = gp_pipeline_run(p, NULL, &errs);
    ck_assert_int_eq(gp_errs_exit(&errs), _i ? 0 : 5);
    ck_assert(_i ? outcome == GP_DONE : outcome != GP_DONE);
    if (outcome == GP_DONE)
        gp_pipeline_destroy(p);
}

/* Goes on with frame 1 until it is told a second time to end, beside a stage that fails there, with `beside`. */
static atomic_bool is_at_one;

static bool goes_on_run(gp_call *c, gp_frame *f, int n)
{
    atomic_store(&is_at_one, f->index == 1);
    while (f->index == 1 && !gp_cancelled(c))
        nap();
    f->status = f->index == 1 ? GP_STOPPED : GP_OK;
    return true;
}

static const gp_kind goes_on = {
    GP_KIND("goes_on"), .help = "goes on",
    .in = (const gp_port[]){ { "in", GP_ACCEPT_ANY, false, "frames" }, { 0 } }, .shape = as_declared, .run = goes_on_run,
};

static void end_it(gp_pipeline *p, void *arg)
{
    while (!atomic_load(&is_at_one))
        nap();
    if (!*(int *)arg)
        gp_cancel(p, 1);
}

TEST_LOOP(ends_by_itself, 0, 2)
{
    pipe_kinds(&goes_on, 1);
    put_script("function process(f, x, y)\n    if f.index == 1 then error('no') end\n    y:copy(x)\nend\n");
    char *yaml = format("stall_timeout: 0s\nbuffers: {a: {dtype: f32, shape: [16]}}\nstages:\n  - {use: generate, out: a}\n"
                        "  - {use: goes_on, in: a}\n%s", _i ? "  - {use: lua, script: s.lua, in: a, out: b}\n  - {use: discard, in: b}\n"
                        : "");
    pipe_result r = pipe_run_with(io_dir, yaml, "cpu", NULL, (gp_run_options){ .stop_ns = 4000000000 }, end_it, &_i);
    ck_assert_int_eq(r.outcome, _i ? GP_ERROR : GP_NOT_DRAINED);
    int said = 0;
    for (int i = 0; i < r.errs.n; i++)
        said += strstr(r.errs.e[i].msg, "s since it was to end, and is stopped at once") != NULL
              || strstr(r.errs.e[i].msg, "stage 'goes_on' has been busy with frame 1 for ") != NULL;
    ck_assert_msg(said == 2, "%s", pipe_said(&r.errs));
    ck_assert_msg(!_i == !r.errs.failed, "%s", pipe_said(&r.errs));
}

/* Of buffers with many slots a run uses few at first: those are the slots that are full. */
TEST(few_of_many_slots)
{
    char text[2000], line[800], said[2000] = "";
    put_script(HANG("0"));
    pipe_result r = pipe_run(io_dir, timed(PATIENCE, "  - {use: generate, out: a}\n  - {use: scale, a: 2}\n"
                             "  - {name: slow, use: lua, script: s.lua}\n  - {use: discard}\n", text), "cpu", NULL,
                             (gp_run_options){ 0 });
    ck_assert_int_eq(gp_errs_exit(&r.errs), 5);
    for (int i = 0; i < r.errs.n; i++)
        if (strstr(r.errs.e[i].msg, "to put frame"))
            plain(line, r.errs.e[i].msg, false), strcat(strcat(said, line), "\n");
    ck_assert_str_eq(said, "segment 'scale' has waited # to put frame 6 into 'scale': its slot (1 of 6) has frame 0, "
                           "which stage 'slow' needs\n"
                           "stage 'generate' has waited # to put frame 12 into 'a': its slot (1 of 6) has frame 6, "
                           "which segment 'scale' needs\n");
}

/* ---- a compiler that takes long --------------------------------------- */

/* Runs a kernel of the user with a compiler that waits until there is a file `go`; with
 * "exists" it is there, after many times the stall_timeout. */
static pipe_result compile_slowly(const char *go, void (*during)(gp_pipeline *, void *))
{
    static char cxx[200];              /* the one that is not slow */
    if (!*cxx)
        snprintf(cxx, sizeof cxx, "%s", getenv("CXX") ? getenv("CXX") : "c++");
    char *text = format("#!/bin/sh\n# for %s\n: >%s/began\n[ %s = exists ] && sleep 1.5 ||\n"
                        "while [ -d %s ] && [ ! -e %s/%s ]; do sleep 0.05; done\nexec %s \"$@\"\n", go, io_dir,
                        go, io_dir, io_dir, go, cxx);
    pipe_text(io_dir, "slow-c++", text);
    ck_assert_int_eq(chmod(io_at("slow-c++"), 0755), 0);
    unlink(io_at("began"));
    setenv("CXX", io_at("slow-c++"), 1);
    setenv("XDG_CACHE_HOME", io_dir, 1);
    pipe_text(io_dir, "k.cu", "extern \"C\" __global__ void k(const float *in, float *out)\n"
              "{\n    for (int i = 0; i < 16; i++) out[i] = in[i];\n}\n");
    const char *yaml = "stall_timeout: " ASLEEP "\nbuffers: {a: {dtype: f32, shape: [16]}}\nstages:\n"
             "  - {use: generate, frames: 5, out: a}\n"
             "  - {use: kernel, source: k.cu, entry: k, args: [in, out], grid: [1]}\n  - {use: discard}\n";
    return during ? pipe_run_with(io_dir, yaml, "cpu", NULL, (gp_run_options){ 0 }, during, NULL)
                  : pipe_run(io_dir, yaml, "cpu", NULL, (gp_run_options){ 0 });
}

TEST(compiler_is_no_stall)
{
    pipe_result r = compile_slowly("exists", NULL);
    ck_assert_msg(r.outcome == GP_DONE, "%s", pipe_said(&r.errs));
    ck_assert_uint_eq(r.account[0].out, 5);
}

static void when_it_compiles(void)
{
    char *began = io_at("began");
    while (access(began, F_OK))
        usleep(10000);
}

static void cancel_once(gp_pipeline *p, void *arg)
{
    when_it_compiles();
    gp_cancel(p, 1);
}

/* The compiler is ended, for it would never end itself. */
TEST(compiler_is_cancelled)
{
    pipe_result r = compile_slowly("never", cancel_once);
    ck_assert_int_eq(r.outcome, GP_DRAINED);
    ck_assert_int_eq(r.errs.failed, 0);
    ck_assert_int_eq(r.naccounts ? (int)r.account[0].in : 0, 0);
}

/* A source waits for as long as it takes: for bytes of the standard input, at a FIFO for its writer, too, and for the time
 * of its next frame. */
static const char *const sources[] = {
    "{use: read, path: stdin, format: raw, out: a}", "{use: read, path: hang, format: raw, out: a}",
    "{use: read, path: hang, format: raw, reopen: true, out: a}", "{use: generate, rate: 0.5, out: a}",
};

static void wait_and_stop(gp_pipeline *p, void *arg)
{
    usleep(1200000);           /* three times its stall_timeout */
    gp_cancel(p, 1);
}

TEST_EACH(no_input_yet_is_no_stall, sources)
{
    char text[2000];
    int silent[2];
    ck_assert_int_eq(pipe(silent), 0);
    ck_assert_int_eq(dup2(silent[0], STDIN_FILENO), STDIN_FILENO);
    ck_assert_int_eq(mkfifo(io_at("hang"), 0600), 0);
    char *stages = format("  - %s\n  - {use: discard}\n", sources[_i]);
    pipe_result r = pipe_run_with(io_dir, timed(ASLEEP, stages, text), "cpu", NULL, (gp_run_options){ 0 },
                                  wait_and_stop, NULL);
    ck_assert_msg(r.outcome == GP_DRAINED && !r.errs.n, "%s", io_error(&r));
}

TEST_SUITE(stall, io_set_up, NULL, 0)
