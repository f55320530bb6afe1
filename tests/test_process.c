/* test_process.c - programs that write what a stage reads, and read what one writes: their data, how they end, and that
 * none outlives the run, however that ends. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include "command.h"
#include "iotest.h"

#define DISCARD "  - {use: discard}\n"
#define FROM(...) "buffers: {x: {dtype: u8, shape: [4]}}\nstages:\n  - {use: read, out: x, command: " __VA_ARGS__ "}\n"
#define TO(...) "buffers: {x: {dtype: u8, shape: [4]}}\nstages:\n  - {use: generate, frames: 20, out: x}\n" \
                "  - {use: write, command: " __VA_ARGS__ "}\n"

static void set_up(void)
{
    io_set_up();
    io_count_raw("a.raw", 80);
}

/* What the file holds, once it is there: a number. */
static long number_in(const char *name)
{
    size_t n;
    for (int i = 0; i < 12000; i++) {
        char *text = pipe_read(io_dir, name, &n), *line = text ? strchr(text, '\n') : NULL;
        long v = line ? atol(text) : 0;
        free(text);
        if (v)
            return v;
        nanosleep(&(struct timespec){ 0, 10000000 }, NULL);
    }
    ck_abort_msg("no number in '%s'", name);
}

static bool is_gone(long pid)
{
    for (int i = 0; i < 12000; i++) {
        char path[60], text[400] = "";
        FILE *f = fopen(TEXT(path, "/proc/%ld/stat", pid), "r");
        if (!f)
            return true;
        bool zombie = fgets(text, sizeof text, f) && strstr(text, ") Z ");
        fclose(f);
        if (zombie)                    /* of whoever adopted it */
            return true;
        nanosleep(&(struct timespec){ 0, 10000000 }, NULL);
    }
    return false;
}

/* Nor a zombie. */
static void no_children(void)
{
    errno = 0;
    ck_assert(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
}

/* ---- data ------------------------------------------------------------ */

static const char *const sound[] = {
    FROM("[cat, a.raw]") "  - {use: write, path: b.raw}\n",
    FROM("[cat, a.raw], skip: 0, format: raw") "  - {use: write, path: b.raw}\n",
    FROM("[sh, -c, 'head -c 7 a.raw; sleep 0.05; tail -c +8 a.raw']") "  - {use: write, path: b.raw}\n",
    FROM("[sh, -c, 'cat a.raw; exec >&-; sleep 0.1']") "  - {use: write, path: b.raw}\n",
    FROM("[sh, -c, 'cat; cat a.raw']") "  - {use: write, path: b.raw}\n",          /* it has no input */
    TO("[sh, -c, 'cat >b.raw']"),
    TO("[sh, -c, 'sleep 0.1; cat >b.raw'], format: raw"),
    TO("[dd, bs=1, count=80, status=none, of=b.raw]"),
    TO("[sh, -c, 'sleep 0.1; dd bs=80 count=1 status=none of=b.raw; exec 0<&-; sleep 0.1']"),
    FROM("[cat, a.raw]") "  - {use: write, command: [dd, of=b.raw, status=none]}\n",
    FROM("[cat, a.raw]") "  - {use: write, command: ['sh', '-c', 'cat >$1', 'x', 'b.raw']}\n",
};

/* In the folder of the pipeline. */
TEST_EACH(data, sound)
{
    size_t n;
    ck_assert_uint_eq(io_runs(sound[_i]), 20);
    if (strstr(sound[_i], "generate"))
        io_runs("buffers: {x: {dtype: u8, shape: [4]}}\nstages:\n  - {use: generate, frames: 20, out: x}\n"
                "  - {use: write, path: a.raw}\n");
    OWNED char *want = pipe_read(io_dir, "a.raw", &n);
    ck_assert_uint_eq(n, 80);
    io_holds("b.raw", want, n);
    no_children();
}

TEST(text)
{
    io_runs("buffers: {x: {dtype: u8, shape: [2]}}\nstages:\n  - {use: read, path: a.raw, frames: 2, out: x}\n"
            "  - {use: write, command: [sh, -c, 'cat >b.csv'], format: csv, stack: true}\n");
    io_holds("b.csv", "0,1\n2,3\n", 8);
    /* vars, in any word */
    io_runs(format("vars: {from: a.raw, n: 8}\n" FROM("[head, -c, '${n}', '${from}']") "  - {use: write, path: b.raw}\n"));
    io_holds("b.raw", "\0\1\2\3\4\5\6\7", 8);
}

/* It says more than a pipe holds before it writes; that holds nobody up, and the last of it is kept. */
TEST(talkative)
{
    ck_assert_uint_eq(io_runs(FROM("[sh, -c, 'i=0; while [ $i -lt 3000 ]; do echo a line of some sixty bytes, of which "
                                   "there are very many: $i >&2; i=$((i + 1)); done; cat a.raw']") DISCARD), 20);
    pipe_result r = io_go(FROM("[sh, -c, 'i=0; while [ $i -lt 3000 ]; do echo line $i >&2; i=$((i + 1)); done; cat a.raw; "
                               "exit 7']") DISCARD);
    ck_assert_msg(strstr(io_error(&r), "frame 20: 'sh' ended with exit status 7"), "%s", io_error(&r));
    int last = r.errs.n - 1;
    ck_assert_int_eq(r.errs.e[last].code, GP_E_NOTE);
    ck_assert_str_eq(r.errs.e[last].msg, "line 2999");
    ck_assert_str_eq(r.errs.e[last - 7].msg, "line 2992");
    ck_assert_int_ne(r.errs.e[last - 8].code, GP_E_NOTE);
}

/* What it says there, its progress for instance, is of no interest where it comes to a good end. */
static const char *const well[] = {
    FROM("[sh, -c, 'cat a.raw; echo 100 % >&2']") DISCARD, TO("[sh, -c, 'cat >b.raw; echo 100 % >&2']"),
    FROM("[sh, -c, 'cat a.raw; exec >&-; echo 100 % >&2']") DISCARD,
};

TEST_EACH(says_nothing_at_a_good_end, well)
{
    ck_assert_int_eq(io_done(well[_i]).errs.n, 0);
}

/* Only its three streams are open in it, whatever this process has open. (3 is how `ls` reads the folder.) */
TEST(descriptors)
{
    int open_one = open("/dev/null", O_RDONLY);                /* not O_CLOEXEC */
    ck_assert_int_gt(open_one, 2);
    io_runs(FROM("[ls, /proc/self/fd]") "  - {use: write, path: b.raw}\n"
            "  - {name: w, use: write, in: x, command: [sh, -c, 'ls /proc/self/fd >more; cat >c.raw']}\n");
    io_holds("b.raw", "0\n1\n2\n3\n", 8);
    io_holds("more", "0\n1\n2\n3\n", 8);
    close(open_one);
}

/* ---- bad ends -------------------------------------------------------- */

static const struct { const char *yaml, *text; } bad[] = {
    { FROM("[no-such-program, -i, x]") DISCARD, "'no-such-program' cannot be started: No such file or directory" },
    { FROM("[./a.raw]") DISCARD, "'./a.raw' cannot be started: Permission denied" },
    { TO("[no-such-program]"), "'no-such-program' cannot be started" },
    { FROM("['false']") DISCARD, "frame 0: 'false' ended with exit status 1" },
    { FROM("[sh, -c, 'cat a.raw; exit 3']") DISCARD, "frame 20: 'sh' ended with exit status 3" },
    { FROM("[sh, -c, 'cat a.raw; kill -9 $$$$']") DISCARD, "frame 20: 'sh' was ended by signal 9" },
    { FROM("[sh, -c, 'head -c 6 a.raw; exit 3']") DISCARD, "frame 1: 'sh' ended with exit status 3" },
    { FROM("[sh, -c, 'cat a.raw; exit 3'], format: y4m") DISCARD, "is not a YUV4MPEG2 stream" },
    { FROM("[sh, -c, 'exit 3'], format: y4m") DISCARD, "frame 0: 'sh' ended with exit status 3" },
    { "on_error: drop\n" FROM("[sh, -c, 'cat a.raw; exit 3']") DISCARD, "frame 20: 'sh' ended with exit status 3" },
    { TO("[sh, -c, 'cat >/dev/null; exit 5']"), "'sh' ended with exit status 5" },
    { TO("[sh, -c, 'cat >/dev/null; kill $$$$']"), "'sh' was ended by signal 15" },
    { "buffers: {x: {dtype: u8, shape: [1000000]}}\nstages:\n  - {use: generate, frames: 20, out: x}\n"
      "  - {use: write, command: [head, -c, '10']}\n", "'head' ended with exit status 0, and did not read all frames" },
    { "buffers: {x: {dtype: u8, shape: [1000000]}}\nstages:\n  - {use: generate, frames: 20, out: x}\n"
      "  - {use: write, command: [sh, -c, 'echo why >&2; exit 2']}\n", "'sh' ended with exit status 2" },
    { "buffers: {x: {dtype: u8, shape: [1000000]}}\nstages:\n  - {use: generate, frames: 20, out: x}\n"
      "  - {use: write, command: [sh, -c, 'exec 0<&-; exec sleep 1000']}\n", "'sh' has closed its input, and does not end" },
    /* what the pipe has room for can be written, whoever reads it */
    { TO("[sh, -c, 'exit 0']"), "'sh' ended with exit status 0, and did not read all frames" },
    { TO("[sh, -c, 'sleep 0.2; exit 0']"), "'sh' ended with exit status 0, and did not read all frames" },
    { TO("[dd, bs=1, count=79, status=none, of=b.raw]"), "'dd' ended with exit status 0, and did not read all frames" },
    { TO("[sh, -c, 'sleep 0.2; dd bs=1 count=79 status=none of=b.raw']"),
      "'sh' ended with exit status 0, and did not read all frames" },
    { TO("[sh, -c, 'sleep 0.2; exit 6']"), "'sh' ended with exit status 6" },
};

/* With SIGPIPE as it is by default: this process is an application that has not thought of it. */
TEST_EACH(ends_badly, bad)
{
    io_fails(bad[_i].yaml, 1, bad[_i].text);
    no_children();
}

/* An application that is told of no child's end does not take each end for a good one. */
TEST(end_unknown)
{
    signal(SIGCHLD, SIG_IGN);
    io_fails(FROM("[sh, -c, 'cat a.raw; exit 3']") DISCARD, 1, "'sh' has ended, and how is not known");
    io_fails(TO("[sh, -c, 'cat >/dev/null; exit 3']"), 1, "'sh' has ended, and how is not known");
}

/* What it reads has no name before all is well. */
TEST(no_file)
{
    io_fails(FROM("[sh, -c, 'cat a.raw; exit 3']") "  - {use: write, path: b.raw}\n", 1, "exit status 3");
    ck_assert_int_ne(access(io_at("b.raw"), F_OK), 0);
}

/* Whole frames that a program has written come out, however it ends, whether they are read in one call or in
 * several. */
static const char *const failing[] = {
    "[sh, -c, 'cat a.raw; exit 3']", "[sh, -c, 'cat a.raw; kill -9 $$$$']",
    "[sh, -c, 'cat a.raw; printf x; exit 3']", "[sh, -c, 'cat a.raw; sleep 0.05; exit 3']",
};

TEST_EACH(delivered, failing)
{
    for (int i = 0; i < 20; i++) {         /* a program may end before we look, or after that */
        pipe_result r = io_go(format("depth: 64\n" FROM("%s") DISCARD, failing[_i]));
        ck_assert_msg(r.account[0].out == 20 && strstr(io_error(&r), "frame 20: 'sh' "), "%llu out, %s",
                      (unsigned long long)r.account[0].out, io_error(&r));
    }
}

/* One that has closed its output, and does not end: what it has written is not held back, and what the run waits for is
 * said. */
TEST(lingers)
{
    pipe_result r = io_go(FROM("[sh, -c, 'head -c 6 a.raw; exec >&-; until [ -e 1.raw ]; do sleep 0.01; done']")
                          "  - {use: write, path: '%d.raw'}\n");
    ck_assert_uint_eq(r.account[0].out, 2);
    ck_assert_int_eq(r.errs.failed, 0);
    ck_assert_msg(strstr(io_error(&r), "'sh' has closed its output, and does not end"), "%s", io_error(&r));
}

/* Where enough frames are read, what becomes of it is no error: not SIGPIPE, nor what it makes of that, nor if it
 * has to be killed. */
static const char *const longer[] = {
    "[cat, /dev/zero]", "[yes]", "[sh, -c, 'cat a.raw; sleep 1000']", "[sh, -c, 'cat a.raw a.raw; exit 4']",
    "[sh, -c, 'trap \"\" PIPE; while cat a.raw; do :; done 2>/dev/null; exit 9']",
    "[sh, -c, 'trap \"\" TERM PIPE; while :; do cat a.raw; done 2>/dev/null']",
};

TEST_EACH(enough, longer)
{
    ck_assert_uint_eq(io_runs(format(FROM("%s, frames: 3") DISCARD, longer[_i])), 3);
    no_children();
}

/* What the program has started ends with it, and what it waits for when another stage fails. */
TEST(left_behind)
{
    io_runs(TO("[sh, -c, 'sleep 1000 & echo $! >pid; cat >b.raw']"));
    ck_assert(is_gone(number_in("pid")));
    io_fails("buffers: {x: {dtype: u8, shape: [4]}, y: {dtype: u8, shape: [4]}}\nstages:\n"
             "  - {use: read, out: x, command: [sh, -c, 'echo $$$$ >pid1; exec sleep 1000']}\n"
             "  - {name: r, use: read, out: y, command: [sh, -c, 'exit 3']}\n"
             "  - {name: w, use: write, in: x, command: [sh, -c, 'echo $$$$ >pid2; sleep 1000']}\n"
             "  - {use: discard, in: y}\n", 1, "frame 0: 'sh' ended with exit status 3");
    for (int i = 1; i < 3; i++) {
        char name[20];
        struct stat st;
        if (!stat(io_at(TEXT(name, "pid%d", i)), &st) && st.st_size)   /* it came so far */
            ck_assert(is_gone(number_in(name)));
    }
}

/* ---- ends from outside ----------------------------------------------- */

static const struct { int signal, code; } stops[] = { { SIGINT, 130 }, { SIGTERM, 143 }, { SIGHUP, 129 }, { SIGKILL, 137 } };
enum { STOPS = sizeof stops / sizeof *stops };

static pid_t start(const char *yaml)
{
    char *path = io_at("p.yaml"), *err = io_at("stderr");
    pipe_text(io_dir, "p.yaml", yaml);
    pid_t pid = fork();
    if (pid)
        return pid;
    for (int i = 0; i < STOPS; i++)
        signal(stops[i].signal, SIG_DFL);      /* who started the tests may have had it ignored, as nohup does */
    freopen(err, "w", stderr);
    freopen("/dev/null", "w", stdout);
    execl(getenv("GPIPE"), "gpipe", "run", "--progress", "none", path, (char *)NULL);
    _exit(99);
}

static int exit_of(pid_t pid)
{
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static const char *const waiting[] = {
    FROM("[sh, -c, 'echo $$$$ >pid; exec sleep 1000']") DISCARD,
    FROM("[sh, -c, 'trap \"\" TERM INT HUP; echo $$$$ >pid; while :; do cat a.raw; sleep 0.1; done']") DISCARD,
    FROM("[sh, -c, 'cat a.raw; exec >&-; echo $$$$ >pid; exec sleep 1000']") DISCARD,
    "buffers: {x: {dtype: u8, shape: [4]}}\nstages:\n  - {use: generate, rate: 20, out: x}\n"
    "  - {use: write, command: [sh, -c, 'echo $$$$ >pid; exec cat >/dev/null']}\n",
    "buffers: {x: {dtype: u8, shape: [4]}}\nstages:\n  - {use: generate, rate: 20, out: x}\n"
    "  - {use: write, command: [sh, -c, 'sleep 1000 & echo $! >pid; cat >/dev/null']}\n",
};
enum { WAITING = sizeof waiting / sizeof *waiting };

TEST_SOME(is_stopped, WAITING * STOPS, 3, 1)
{
    pid_t pid = start(waiting[_i / STOPS]);
    long child = number_in("pid");
    ck_assert_int_eq(kill(pid, stops[_i % STOPS].signal), 0);
    ck_assert_int_eq(exit_of(pid), stops[_i % STOPS].code);
    ck_assert(is_gone(child));
}

/* One that does not read, or does not end after the last frame, holds up the run, which says so. */
static const char *const stuck[] = {
    "[sh, -c, 'echo $$$$ >pid; exec sleep 1000']", "[sh, -c, 'echo $$$$ >pid; cat >/dev/null; exec sleep 1000']",
    "[sh, -c, 'echo $$$$ >pid; head -c 19999000 >/dev/null; exec sleep 1000']",
};

TEST_EACH(stalls, stuck)
{
    pipe_text(io_dir, "p.yaml", format("stall_timeout: 1s\nbuffers: {x: {dtype: u8, shape: [1000000]}}\nstages:\n"
                                     "  - {use: generate, frames: 20, out: x}\n  - {use: write, command: %s}\n", stuck[_i]));
    command_result r = command_run(io_dir, (const char *const[]){ "run", "--progress", "none", io_at("p.yaml"),
                                                                  NULL }, 60, 0);
    ck_assert_msg(!r.late && r.code == 5 && strstr(r.err, "stage 'write' is busy"), "exit %d: %s", r.code, r.err);
    ck_assert(is_gone(number_in("pid")));
    command_free(&r);
}

/* A source that waits for its process is not stalled. */
TEST(no_stall)
{
    ck_assert_uint_eq(io_runs("stall_timeout: 500ms\n" FROM("[sh, -c, 'sleep 1; cat a.raw; exec >&-; sleep 1']") DISCARD), 20);
}

/* Nothing is started by what only looks. */
TEST(only_looks)
{
    pipe_text(io_dir, "p.yaml", FROM("[touch, started]") "  - {use: write, command: [touch, started]}\n");
    static const char *const verbs[] = { "check", "plan" };
    for (int i = 0; i < 2; i++) {
        command_result r = command_run(io_dir, (const char *const[]){ verbs[i], io_at("p.yaml"), NULL }, 60, 0);
        ck_assert_msg(r.code == 0, "%s", r.err);
        command_free(&r);
        ck_assert_int_ne(access(io_at("started"), F_OK), 0);
    }
}

TEST_SUITE(process, set_up, NULL, 0)
