/* test_child.c - the compiler as a process: what it gets, what is kept of what it says, and
 * that neither it nor its files outlive what it runs for. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "cpu/child.h"
#include "device/scratch.h"
#include "lib/cu.h"
#include "lib/pipe.h"

static gp_child shell(const char *const argv[4])
{
    return (gp_child){ .argv = argv, .text = "the text\n", .len = 9, .tmp = "/a b" };
}
#define SHELL(command) shell((const char *const[4]){ "sh", "-c", command, NULL })

/* ---- what it gets and says ------------------------------------------------- */

TEST(streams_and_environment)
{
    setenv("LC_ALL", "xx", 1);
    gp_child c = SHELL("cat; echo $TMPDIR $LC_ALL $CHILD; echo error >&2; exit 7");
    setenv("CHILD", "one's own", 1);
    ck_assert_int_eq(gp_child_run(&c), 7);
    ck_assert_str_eq(c.log, "the text\n/a b C one's own\nerror\n");
    ck_assert_uint_eq(c.nlog, strlen(c.log));
    ck_assert_uint_eq(c.more, 0);
    free(c.log);
}

TEST(status_of_what_fails)
{
    gp_child c = SHELL("kill -9 $$");
    ck_assert_int_ne(gp_child_run(&c), 0);
    free(c.log);
    c = shell((const char *const[4]){ "/no/such/program", NULL });
    ck_assert_int_ne(gp_child_run(&c), 0);
    free(c.log);
}

/* The first 64 KiB; the rest is counted. */
TEST(log_is_bounded)
{
    gp_child c = SHELL("yes 0123456 | head -n 1000000; exit 1");
    ck_assert_int_eq(gp_child_run(&c), 1);
    ck_assert_uint_eq(c.nlog, 65536);
    ck_assert_uint_eq(strlen(c.log), 65536);
    ck_assert_uint_eq(c.more, 1000000 - 65536 / 8);
    free(c.log);
}

/* A process that it leaves behind may keep its streams open. */
TEST(does_not_wait_for_what_is_left_behind)
{
    gp_child c = SHELL("sleep 1000 & echo $!");
    ck_assert_int_eq(gp_child_run(&c), 0);
    ck_assert_int_eq(system(format("kill %d", atoi(c.log))), 0);          /* it was alive */
    free(c.log);
}

/* ---- how it ends ----------------------------------------------------------- */

/* Makes $CXX a compiler of two processes that never end; they write their numbers to a file. */
static void endless_compiler(void)
{
    char *text = format("#!/bin/sh\necho $$ >>'%s'\n: >$TMPDIR/own\nsleep 1000 &\n"
                        "echo $! >>'%s'\nwait\n", cu_path("pids"), cu_path("pids"));
    unlink(cu_path("pids"));
    cu_write("cxx", text);
    ck_assert_int_eq(chmod(cu_path("cxx"), 0755), 0);
    setenv("CXX", cu_path("cxx"), 1);
    setenv("TMPDIR", cu_path("tmp"), 1);
    mkdir(cu_path("tmp"), 0700);
    cu_write("k.cu", "extern \"C\" __global__ void k(const float *in, float *out) {}\n");
}

static void pids(int pid[2])
{
    const char *path = cu_path("pids");
    for (pid[1] = 0; !pid[1]; nap()) {
        FILE *f = fopen(path, "r");
        if (f && fscanf(f, "%d\n%d\n", &pid[0], &pid[1]) != 2)
            pid[1] = 0;
        if (f)
            fclose(f);
    }
}

/* Waits until it is gone, or nobody has asked for its status yet. */
static void wait_gone(int pid)
{
    char path[60], state = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    for (FILE *f; (f = fopen(path, "r")); nap()) {
        int n = fscanf(f, "%*d (%*[^)]) %c", &state);
        fclose(f);
        if (n != 1 || state == 'Z' || state == 'X')
            return;
    }
}

/* How many folders of compilers there are. */
static int folders(void)
{
    int n = 0;
    DIR *d = opendir(getenv("TMPDIR"));
    ck_assert_ptr_nonnull(d);
    for (struct dirent *e; (e = readdir(d));)
        n += !strncmp(e->d_name, ".cc.gpipe-", 10);
    closedir(d);
    return n;
}

static void cancel(gp_pipeline *p, void *arg)
{
    pids(arg);
    gp_cancel(p, 1);
}

/* The first request ends a set-up that compiles, with all processes and files. */
TEST(ends_with_a_cancelled_run)
{
    int pid[2];
    endless_compiler();
    cu_write("test.yaml", "");
    pipe_result r = pipe_run_with(cu_path("."),
        "buffers: {a: {dtype: f32, shape: [4]}}\nstages:\n  - {use: generate, frames: 1, out: a}\n"
        "  - {use: kernel, source: k.cu, grid: 1, args: [in, out]}\n  - {use: discard}\n",
        "cpu", NULL, (gp_run_options){ 0 }, cancel, pid);
    cu_print(&r.errs);
    ck_assert_int_eq(r.outcome, GP_DRAINED);
    ck_assert_int_eq(r.errs.n, 0);
    wait_gone(pid[0]), wait_gone(pid[1]);
    ck_assert_int_eq(folders(), 0);
}

/* When gpipe is killed the compiler goes, too, and the next one clears up. */
TEST(ends_with_us)
{
    int pid[2];
    gp_scratch s;
    char err[GP_WHY];
    endless_compiler();
    pid_t us = fork();
    if (us == 0) {
        gp_errs errs = { .n = 0 };
        gp_cpu_entry k;
        void *dl;
        const char *param[] = { "const float *", "float *" };
        gp_source src = { .path = cu_path("k.cu"), .entry = "k", .param = param, .nparam = 2 };
        gp_cc_compile(&src, NULL, &k, &dl, &errs);
        _exit(1);
    }
    pids(pid);
    ck_assert_int_eq(folders(), 1);
    ck_assert(gp_scratch_open(&s, err));
    ck_assert_int_eq(folders(), 2);            /* the other one is in use */
    gp_scratch_close(&s);
    ck_assert_int_eq(folders(), 1);
    kill(us, SIGKILL);
    ck_assert_int_eq(waitpid(us, NULL, 0), us);
    wait_gone(pid[0]), wait_gone(pid[1]);
    ck_assert(gp_scratch_open(&s, err));
    ck_assert_int_eq(folders(), 1);
    gp_scratch_close(&s);
    ck_assert_int_eq(folders(), 0);
}

/* Where no descriptor is left by then, too. */
TEST(a_folder_goes_without_descriptors)
{
    gp_scratch s;
    char err[GP_WHY];
    struct rlimit were, none;
    setenv("TMPDIR", cu_path("tmp"), 1);
    mkdir(cu_path("tmp"), 0700);
    ck_assert(gp_scratch_open(&s, err));
    close(creat(format("%s/out.so", s.path), 0600));
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &were), 0);
    none = were, none.rlim_cur = 0;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    gp_scratch_close(&s);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &were), 0);
    ck_assert_int_eq(folders(), 0);
}

TEST(no_place_for_a_folder)
{
    gp_scratch s;
    char err[GP_WHY];
    setenv("TMPDIR", cu_path("missing"), 1);
    ck_assert(!gp_scratch_open(&s, err));
    ck_assert_ptr_nonnull(strstr(err, "missing': No such file or directory; set TMPDIR"));
}

TEST_SUITE(child, cu_open, cu_close, 0)
