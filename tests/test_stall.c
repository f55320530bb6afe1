/* test_stall.c - what a run says in which nothing moves: the whole report, word for
 * word, with its times made equal. The threads that are stuck end with the test's
 * process. */
#include <check.h>
#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "iotest.h"

Suite *suite_stall(void);

/* Asked by the thread sanitizer: threads that are stuck cannot be joined. */
const char *__tsan_default_options(void);

const char *__tsan_default_options(void)
{
    return "report_thread_leaks=0";
}

#define HINT "if it is only slow, raise 'stall_timeout'\n"
#define LOOP(frame) "stateless = true\nfunction process(f, x, y)\n" \
                    "  while f.index == " frame " do end\n  if y then y:copy(x) end\nend\n"

/* Several workers take one frame at a time, one may take a run of them.
 * `says`: the lines but for that of what was done last, which has to have `last`. @ is
 * what the stuck thread does, `at`; # is a time or a worker. */
static const struct { const char *stages, *script, *says, *at, *last; } cases[] = {
    { "  - {use: generate, out: a}\n"
      "  - {name: slow, use: lua, script: s.lua, workers: 2}\n"
      "  - {use: discard}\n"
      "  - {name: aside, use: discard, in: a}\n",
      LOOP("4"),
      "nothing moved for #: stage 'slow' is busy with frame 4@\n"
      "stage 'slow' (worker #) has been busy with frame 4 for #\n"
      "stage 'discard' has waited # for frame 4 of 'slow', which stage 'slow' makes\n"
      "stage 'generate' has waited # to put frame 7 into 'a': its slot (2 of 3) has frame 4, "
      "which stage 'slow' needs\n"
      "stage 'aside' has waited # for frame 7 of 'a', which stage 'generate' makes\n",
      ", computing", "frame 3 of 'slow' #" },
    { "  - {use: generate, out: a}\n"
      "  - {name: slow, use: lua, script: s.lua, workers: 2}\n"
      "  - {use: discard}\n",
      LOOP("4 or f.index == 5"),
      "nothing moved for #: stage 'slow' is busy with frame 4@\n"
      "stage 'slow' (worker #) has been busy with frame 4 for #\n"
      "stage 'slow' (worker #) has been busy with frame 5 for #@\n"
      "stage 'discard' has waited # for frame 4 of 'slow', which stage 'slow' makes\n"
      "stage 'generate' has waited # to put frame 7 into 'a': its slot (2 of 3) has frame 4, "
      "which stage 'slow' needs\n",
      ", computing", "frame 3 of 'slow' #" },
    { "  - {use: generate, out: a, frames: 2}\n"
      "  - {name: slow, use: lua, script: s.lua}\n"
      "  - {use: discard}\n",
      "function process() os.execute('exec sleep 3') end",
      "nothing moved for #: stage 'slow' is busy with frame 0@\n"
      "stage 'slow' has been busy with frame 0 for #\n"
      "stage 'discard' has waited # for frame 0 of 'slow', which stage 'slow' makes\n"
      "stage 'generate' ended # ago, after 2 frames\n",
      ", waiting for a process", "frame 1 of 'generate' #" },
    { "  - {use: generate, out: a, frames: 20}\n"
      "  - {name: slow, use: lua, script: s.lua}\n"
      "  - {use: discard}\n",
      "function process(f, x, y) y:copy(x) end function finish() while true do end end",
      "nothing moved for #: stage 'slow' is busy in its finish@\n"
      "stage 'slow' has been in its finish for #\n"
      "stage 'discard' has waited # for frame 20 of 'slow', which stage 'slow' makes\n"
      "stage 'generate' ended # ago, after 20 frames\n",
      ", computing", "frame 19 of 'discard' #" },
    { "  - {use: generate, out: a, frames: 20}\n"
      "  - {name: slow, use: lua, script: s.lua}\n"
      "  - {use: discard}\n",
      "while true do end",
      "nothing moved for #: stage 'slow' is still being opened@\n",
      ", computing", NULL },
    { "  - {use: generate, out: a}\n"
      "  - {use: kernel, name: stuck, source: k.cu, entry: k, args: [in, out, frame], grid: [1]}\n"
      "  - {use: discard}\n",
      NULL,
      "nothing moved for #: segment 'stuck' is busy with frame 3\n"
      "segment 'stuck' has had frame 3 on the device for #, behind it those to 5\n"
      "stage 'discard' has waited # for frame 3 of 'stuck', which segment 'stuck' makes\n"
      "stage 'generate' has waited # to put frame 6 into 'a': its slot (1 of 3) has frame 3, "
      "which segment 'stuck' needs\n",
      "", "frame 2 of 'stuck' #" },
    { "  - {use: generate, out: a}\n"
      "  - {use: scale, a: 2}\n"
      "  - {use: write, path: pipe, format: raw}\n",
      NULL,
      "nothing moved for #: stage 'write' is busy with frame N@\n"
      "stage 'write' has been busy with frame N for #\n"
      "segment 'scale' has waited # to put frame N into 'scale': its slot (N of N) has frame N, "
      "which stage 'write' needs\n"
      "stage 'generate' has waited # to put frame N into 'a': its slot (N of N) has frame N, "
      "which segment 'scale' needs\n",
      ", writing to PIPE, a full pipe: its reader does not read", "of 'scale' #" },
    { "  - {use: generate, out: a}\n"
      "  - {name: slow, use: lua, script: s.lua, out: y, workers: 2}\n"
      "  - {use: discard}\n"
      "  - {name: generate2, use: generate, out: b}\n"
      "  - {name: join, use: compare, in: [y, b]}\n",
      LOOP("1"),
      "nothing moved for #: stage 'slow' is busy with frame 1@\n"
      "stage 'slow' (worker #) has been busy with frame 1 for #\n"
      "stage 'discard' has waited # for frame 1 of 'y', which stage 'slow' makes\n"
      "stage 'join' has waited # for frame 1 of 'y', which stage 'slow' makes\n"
      "stage 'generate' has waited # to put frame 4 into 'a': its slot (2 of 3) has frame 1, "
      "which stage 'slow' needs\n"
      "stage 'generate2' has waited # to put frame 4 into 'b': its slot (2 of 3) has frame 1, "
      "which stage 'join' needs\n",
      ", computing", "frame 0 of 'join' #" },
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
    char rest[4000];
    snprintf(rest, sizeof rest, "%s", at + strlen(what));
    snprintf(at, size - (size_t)(at - text), "%s%s", with, rest);
}

/* Does the kernel say in which system call a thread is? */
static bool calls_are_seen(void)
{
    char path[60], text[20];
    snprintf(path, sizeof path, "/proc/self/task/%ld/syscall", (long)syscall(SYS_gettid));
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool seen = fd >= 0 && read(fd, text, sizeof text) > 0;
    if (fd >= 0)
        close(fd);
    return seen;
}

static pipe_result stall(const char *stages, const char *script)
{
    char text[6000];
    pipe_text(io_dir, "k.cu",
              "extern \"C\" __global__ void k(const float *in, float *out, "
              "const gp_frame_info *frame)\n"
              "{\n"
              "    volatile bool go = true;\n"
              "    while (frame->index == 3 && go)\n"
              "        ;\n"
              "    out[0] = in[0];\n"
              "}\n");
    pipe_text(io_dir, "s.lua", script ? script : "");
    pipe_text(io_dir, "copy.lua", "function process(f, x, y) y:copy(x) end");
    /* to compile a kernel takes long where others keep the machine busy */
    snprintf(text, sizeof text, "stall_timeout: %s\nbatch: 1\n"
             "buffers: {a: {dtype: f32, shape: [8192]}, b: {like: a}}\nstages:\n%s",
             strstr(stages, "use: kernel") ? "6s" : "400ms", stages);
    if (!strstr(stages, "out: b"))
        put(text, sizeof text, ", b: {like: a}", "");
    pipe_result r = pipe_run(io_dir, text, "cpu", NULL, (gp_run_options){ 0 });
    ck_assert_int_eq(gp_errs_exit(&r.errs), 5);
    return r;
}

START_TEST(report)
{
    char pipe[600], said[6000] = "", want[6000], line[800];
    const char *at = calls_are_seen() ? cases[_i].at : "";
    bool to_pipe = strstr(cases[_i].stages, "path: pipe");
    ck_assert_int_eq(mkfifo(io_path("pipe", pipe), 0600), 0);
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
END_TEST

/* The nearest come first; how many more there are is said. */
START_TEST(many)
{
    char stages[5000] = "  - {use: generate, out: a}\n";
    for (int i = 1; i <= 40; i++)
        sprintf(stages + strlen(stages), "  - {name: %c%d, use: lua, script: %s.lua}\n",
                i == 20 ? 'x' : 'l', i, i == 20 ? "s" : "copy");
    strcat(stages, "  - {use: discard}\n");
    pipe_result r = stall(stages, LOOP("0"));
    ck_assert_int_eq(r.errs.n, 20);
    ck_assert_ptr_nonnull(strstr(r.errs.e[2].msg, "stage 'l21' has waited"));
    ck_assert_ptr_nonnull(strstr(r.errs.e[3].msg, "stage 'l19' has waited"));
    ck_assert_str_eq(r.errs.e[17].msg, "and 26 more");
}
END_TEST

/* ---- a compiler that takes long --------------------------------------- */

/* Runs a kernel of the user with a compiler that takes `seconds` longer, many times the
 * stall_timeout. */
static pipe_result compile_slowly(const char *seconds, void (*during)(gp_pipeline *, void *))
{
    char text[1000], path[600];
    static char cxx[200];              /* the one that is not slow */
    if (!*cxx)
        snprintf(cxx, sizeof cxx, "%s", getenv("CXX") ? getenv("CXX") : "c++");
    snprintf(text, sizeof text, "#!/bin/sh\nsleep %s\nexec %s \"$@\"\n", seconds, cxx);
    pipe_text(io_dir, "slow-c++", text);
    ck_assert_int_eq(chmod(io_path("slow-c++", path), 0755), 0);
    setenv("CXX", path, 1);
    setenv("XDG_CACHE_HOME", io_dir, 1);
    pipe_text(io_dir, "k.cu", "extern \"C\" __global__ void k(const float *in, float *out)\n"
              "{\n    out[0] = in[0];\n}\n");
    const char *yaml = "stall_timeout: 400ms\n"
             "buffers: {a: {dtype: f32, shape: [16]}}\n"
             "stages:\n"
             "  - {use: generate, frames: 5, out: a}\n"
             "  - {use: kernel, source: k.cu, entry: k, args: [in, out], grid: [1]}\n"
             "  - {use: discard}\n";
    return during ? pipe_run_with(io_dir, yaml, "cpu", NULL, (gp_run_options){ 0 }, during, NULL)
                  : pipe_run(io_dir, yaml, "cpu", NULL, (gp_run_options){ 0 });
}

START_TEST(compiler_is_no_stall)
{
    pipe_result r = compile_slowly("2", NULL);
    ck_assert_msg(r.outcome == GP_DONE, "%s", r.errs.n ? r.errs.e[0].msg : "?");
    ck_assert_uint_eq(r.account[0].out, 5);
}
END_TEST

static void cancel_twice(gp_pipeline *p, void *arg)
{
    (void)arg;
    usleep(300000);
    gp_cancel(p, 1);
    usleep(100000);
    gp_cancel(p, 2);
}

static void cancel_once(gp_pipeline *p, void *arg)
{
    (void)arg;
    usleep(300000);
    gp_cancel(p, 1);
}

/* Once: when the compiler is done. Twice: it is not waited for. */
START_TEST(compiler_is_cancelled)
{
    pipe_result r = compile_slowly("1", cancel_once);
    ck_assert_int_eq(r.outcome, GP_DRAINED);
    ck_assert_int_eq(r.errs.failed, 0);
    ck_assert_int_eq(r.naccounts ? (int)r.account[0].in : 0, 0);
    time_t start = time(NULL);
    r = compile_slowly("8.125", cancel_twice);     /* another compiler: it is not in the cache */
    ck_assert_int_eq(r.outcome, GP_STUCK);
    ck_assert_int_lt(time(NULL) - start, 7);
}
END_TEST

Suite *suite_stall(void)
{
    Suite *s = suite_create("stall");
    TCase *tc = tcase_create("reports");
    tcase_set_timeout(tc, 120);
    tcase_add_checked_fixture(tc, io_set_up, io_tear_down);
    tcase_add_loop_test(tc, report, 0, sizeof cases / sizeof *cases);
    tcase_add_test(tc, many);
    tcase_add_test(tc, compiler_is_no_stall);
    tcase_add_test(tc, compiler_is_cancelled);
    suite_add_tcase(s, tc);
    if (!calls_are_seen())
        fprintf(stderr, "SKIPPED: what threads of a stalled run do: this kernel does not say\n");
    return s;
}
