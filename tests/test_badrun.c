/* test_badrun.c - bad input and bad ends that take a whole run: scripts and
 * kernels that are wrong, full disks, closed files, signals at any moment. */
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include "command.h"
#include "iotest.h"

static command_result go(const char *const *args)
{
    command_result r = command_run(io_dir, args, 60, 0);
    ck_assert_msg(!r.late, "it hangs; stderr:\n%s", r.err);
    return r;
}

static void says(const char *const *args, int code, const char *text)
{
    command_result r = go(args);
    ck_assert_msg(r.code == code && strstr(r.err, text), "exit %d, not %d, or no '%s' in:\n%s",
                  r.code, code, text, r.err);
    command_free(&r);
}

#define RUN(...) ((const char *const[]){ "run", "--progress", "none", __VA_ARGS__, NULL })

/* ---- scripts --------------------------------------------------------- */

static const struct { const char *script, *text; int code; } scripts[] = {
    { "function process(f, x, y", "s.lua:2: ')' expected", 3 },
    { "function process(f, x, y) y:copy(x)\n if f.index == 1000 then error('boom') end end",
      "s.lua:3: error: stage 's', frame 1000: boom", 1 },
    { "function process(f, x, y) y[17] = 1 end", "s.lua:2: error: stage 's', frame 0: index 17", 1 },
    { "function process(f, x, y) x[1] = 1 end", "'in' is an input", 1 },
    { "local k\nfunction process(f, x, y) y:copy(x) if k then k[1] = 2 end k = y end",
      "'out' is used after its frame", 1 },
    { "function process(f, x, y) process(f, x, y) y[1] = 1 end", "stack overflow", 1 },
    { "function process(f, x, y) os.exit(0) end", "os.exit() would end the whole run", 1 },
    { "function process(f, x, y) error() end", "frame 0: nil", 1 },
    { "function process(f, x, y) y:copy(x) if f.index == 100 then io.open(hang) end end",
      "stage 's' is busy with frame 100", 5 },
    { "io.open(hang)", "stage 's' is still being opened", 5 },
    { "function process(f, x, y) end function init() io.open(hang) end", "stage 's' is still being opened", 5 },
    { "function process(f, x, y) y:copy(x) end function finish() io.open(hang) end",
      "stage 's' is busy in its finish", 5 },
    { "function process() end function init() error() end function finish() io.open(hang) end",
      "stage 's' is still in its finish", 5 },
    { "function process(f, x) error() end function finish() io.open(hang) end", "stage 's', frame 0: nil", 1 },
    { "", "no function 'process(frame, x, y)'", 1 },
};

TEST_SOME(script, sizeof scripts / sizeof *scripts, 4, 1)
{
    char *path = io_at("hang");
    ck_assert_int_eq(mkfifo(path, 0600), 0);  /* to open it never ends */
    pipe_text(io_dir, "s.lua", format("stateless = true local hang = '%s'\n%s", path, scripts[_i].script));
    pipe_text(io_dir, "p.yaml", "stall_timeout: 2s\nbuffers: {a: {dtype: f32, shape: [16]}}\n"
              "stages:\n  - {use: generate, frames: 3000, out: a}\n"
              "  - {name: s, use: lua, script: s.lua, workers: 4}\n  - {use: discard}\n");
    says(RUN(io_at("p.yaml")), scripts[_i].code, scripts[_i].text);
}

/* ---- kernels --------------------------------------------------------- */

static const struct { const char *source, *text; int code; } kernels[] = {
    { "(const float *x, float *y) { y[0] = ; }", "k.cu:1:", 3 },
    { "(const float *x, float *y, int n) { y[0] = 1; }", "'go' has 3 parameters, but args gives 2 values", 3 },
    { "(const float *x, int *y) { y[0] = 1; }", "parameter 2 of 'go' is 'int *y', but args passes 'float *'", 3 },
    { "0(const float *x, float *y) { y[0] = 1; }", "k.cu'; set 'entry' to one of its kernels: 'go0'", 3 },
};

static void put_kernel(const char *source)
{
    pipe_text(io_dir, "k.cu", format("extern \"C\" __global__ void go%s\n", source));
    pipe_text(io_dir, "p.yaml", "buffers: {a: {dtype: f32, shape: [16]}}\nstages:\n"
              "  - {use: generate, frames: 3, out: a}\n"
              "  - {use: kernel, source: k.cu, entry: go, grid: 1, block: 1, args: [in, out]}\n  - {use: discard}\n");
}

TEST_SOME(kernel, sizeof kernels / sizeof *kernels, 4, 1)
{
    put_kernel(kernels[_i].source);
    says(RUN("--device", "cpu", io_at("p.yaml")), kernels[_i].code, kernels[_i].text);
}

TEST(no_compiler)
{
    put_kernel("(const float *x, float *y) { y[0] = 77; }");
    setenv("PATH", io_dir, 1);
    setenv("XDG_CACHE_HOME", io_dir, 1);
    unsetenv("CXX");
    says(RUN("--device", "cpu", io_at("p.yaml")), 4, "no C++ compiler to compile");
}

/* ---- files ----------------------------------------------------------- */

TEST(names_with_spaces)
{
    mkdir(io_at("sp ace"), 0777), mkdir(io_at("sp ace/\xc3\xbc"), 0777);
    io_count_npy("sp ace/\xc3\xbc/in \xc3\xa9.npy", U8(6, 4), 0);
    pipe_text(io_dir, "sp ace/\xc3\xbc/a pipe.yaml", "stages:\n  - {use: read, path: \"in \xc3\xa9.npy\"}\n"
              "  - {use: write, path: \"o u t/\xc3\xa9 %d.npy\"}\n");
    says(RUN(io_at("sp ace/\xc3\xbc/a pipe.yaml")), 0, "6 frames in, 6 out");
    io_counts("sp ace/\xc3\xbc/o u t/\xc3\xa9 5.npy", U8(4), 20);
}

/* A disk with no room left, in a file system of 64 KiB; four workers map the file. */
TEST(full_disk)
{
    static const struct { const char *path; int workers; } files[] = {
        { "tiny/out.raw", 1 }, { "tiny/out.npy", 1 }, { "tiny/out.raw", 2 }, { "tiny/out.npy", 5 }, { "tiny/out.raw", 4 },
        { "tiny/%d.npy", 1 }, { "tiny/%d.npy", 4 },
    };
    enum { FILES = sizeof files / sizeof *files, JOINED = 5 };
    char *path = io_at("tiny");
    mkdir(path, 0777);
    if (mount("none", path, "tmpfs", 0, "size=64k")) {
        fprintf(stderr, "badrun: SKIPPED full_disk: a tmpfs cannot be mounted here\n");
        return;
    }
    int rest = 0, code[FILES] = { 0 };
    bool said[FILES] = { 0 }, kept[FILES] = { 0 };
    for (int i = 0; i < FILES; i++) {
        pipe_text(io_dir, "p.yaml", format("depth: 6\nbuffers: {a: {dtype: u8, shape: [5000]}}\nstages:\n"
                  "  - {use: generate, frames: 100, out: a}\n"
                  "  - {use: write, path: \"%s\", workers: %d}\n", files[i].path, files[i].workers));
        command_result r = command_run(io_dir, RUN(io_at("p.yaml")), 60, 0);
        code[i] = r.code, said[i] = strstr(r.err, "p.yaml:5:24: error: ") && strstr(r.err, "No space left on device");
        command_free(&r);
        if (i >= JOINED) {                     /* the files that there was room for */
            for (int k = 0; k < 100; k++)
                unlink(io_at(format(files[i].path, k)));
            continue;
        }
        rest += io_files("tiny") - 1;          /* what is kept is the frames that there was room for */
        kept[i] = !unlink(io_at(format("%s.partial", files[i].path)));
    }
    ck_assert_int_eq(umount(path), 0);
    ck_assert_int_eq(rest, 0);
    for (int i = 0; i < FILES; i++) {
        ck_assert_msg(code[i] == 1 && said[i], "%s, %d workers: exit %d", files[i].path, files[i].workers, code[i]);
        ck_assert(i >= JOINED || kept[i]);
    }
}

TEST(read_only_folder)
{
    char *path = io_at("ro");
    mkdir(path, 0777);
    bool root = !mount("none", path, "tmpfs", MS_RDONLY, "size=64k");
    pipe_text(io_dir, "p.yaml", "buffers: {a: {dtype: u8, shape: [5]}}\nstages:\n"
              "  - {use: generate, frames: 3, out: a}\n  - {use: write, path: ro/x/out.npy}\n");
    if (!root)
        chmod(path, 0500);
    command_result r = command_run(io_dir, RUN(io_at("p.yaml")), 60, 0);
    if (root)
        umount(path);
    ck_assert_msg(r.code == 1 && strstr(r.err, "ro/x/out.npy' cannot be written: "), "exit %d: %s", r.code, r.err);
    ck_assert_msg(strstr(r.err, root ? "Read-only file system" : "Permission denied"), "%s", r.err);
    command_free(&r);
}

/* ---- signals at any moment ------------------------------------------- */

/* With rates, and nothing synced: a disk on which others write may take minutes for that. */
static const char *const pipelines[] = {
    "  - {use: generate, out: a, rate: 20000}\n  - {use: write, path: out.npy, durable: none}\n",
    "  - {use: generate, out: a, rate: 3000}\n  - {use: scale, a: 2}\n"
    "  - {use: write, path: out.npy, durable: none}\n",
    "  - {use: generate, out: a, rate: 20000}\n  - {use: lua, script: s.lua, workers: 2}\n"
    "  - {use: fir, taps: [1, 2, 1]}\n  - {use: write, path: out.npy, durable: none}\n",
};

/* in = out + dropped + failed + cancelled, as printed. */
static void account_adds_up(const char *err)
{
    unsigned long long in, out, dropped, failed, cancelled;
    const char *at = strstr(err, " in, ");
    ck_assert_msg(at != NULL, "no account in:\n%s", err);
    while (at > err && at[-1] != '\n')
        at--;
    at = strpbrk(at, "0123456789");
    ck_assert_msg(at && sscanf(at, "%llu %*[a-z] in, %llu out, %llu dropped, %llu failed, "
                               "%llu cancelled", &in, &out, &dropped, &failed, &cancelled) == 5,
                  "%s", err);
    ck_assert_msg(in == out + dropped + failed + cancelled, "%s", err);
}

/* Begins a run of the pipeline; what it says goes to the file. */
static pid_t begun(const char *yaml, const char *err)
{
    char *file = io_at("p.yaml");
    const char *gpipe = getenv("GPIPE");
    ck_assert_ptr_nonnull(gpipe);
    pipe_text(io_dir, "p.yaml", yaml);
    signal(SIGINT, SIG_DFL);           /* check's handler kills the test's group, in a child that is not gpipe yet too */
    pid_t pid = fork();
    if (!pid) {
        if (!freopen(err, "w", stderr) || !freopen("/dev/null", "r", stdin))
            _exit(99);
        execl(gpipe, gpipe, "run", "--progress", "none", "--device", "cpu", file, (char *)NULL);
        _exit(98);
    }
    return pid;
}

/* One run that gets `signals` SIGINTs, each after a time of its own. */
static void interrupted(const char *yaml, int signals, unsigned *seed)
{
    enum { TRIES = 12000 };
    unlink(io_at("out.npy"));
    pid_t pid = begun(yaml, io_at("err"));
    for (int i = 0; i < signals; i++) {
        long ms = (i ? 51 : 5) + rand_r(seed) % 100;
        nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
        kill(pid, SIGINT);
    }
    int status = 0, tries = 0;
    while (waitpid(pid, &status, WNOHANG) == 0 && tries++ < TRIES)
        nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
    if (tries > TRIES) {
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
    }
    size_t n = 0;
    OWNED char *said = pipe_read(io_dir, "err", &n);
    ck_assert_msg(tries <= TRIES, "%d signals: it hangs:\n%s", signals, said);
    bool early = WIFSIGNALED(status) && WTERMSIG(status) == SIGINT;   /* before it listens */
    ck_assert_msg(early || (WIFEXITED(status) && WEXITSTATUS(status) == 130),
                  "%d signals: status %x:\n%s", signals, (unsigned)status, said);
    if (!early && signals < 3)         /* the third ends it there and then */
        account_adds_up(said);
    if (!access(io_at("out.npy"), F_OK))
        pipe_npy_type(io_dir, "out.npy");
}

TEST_SOME(signals, sizeof pipelines / sizeof *pipelines, 4, 1)
{
    unsigned seed = 1 + (unsigned)_i;
    pipe_text(io_dir, "s.lua", "stateless = true\nfunction process(f, x, y) y:copy(x) end\n");
    char *yaml = format("buffers: {a: {dtype: f32, shape: [1000]}}\nstages:\n%s", pipelines[_i]);
    for (int k = 0; k < 10; k++)
        interrupted(yaml, 1 + k % 3, &seed);
}

static void wait_for_words(const char *words)
{
    for (bool there = false; !there;) {
        size_t n;
        OWNED char *said = pipe_read(io_dir, "err", &n);
        there = said && strstr(said, words);
        nap();
    }
}

/* Does a thread come back whose process stands still for longer than a run waits for its threads? Its kernel ends
 * 0.1 s after there is a file 'go'. */
static bool comes_back(void)
{
    const struct timespec moment = { .tv_nsec = 60000000 }, some = { .tv_nsec = 400000000 }, longer = { .tv_sec = 3 };
    char *began = io_at("began"), *go = io_at("go"), *err = io_at("err"), text[2500];
    size_t n;
    int status;
    unlink(began), unlink(go);
    pipe_text(io_dir, "k.cu", TEXT(text, "extern \"C\" int creat(const char *, unsigned), access(const char *, int);\n"
              "extern \"C\" int usleep(unsigned);\n"
              "extern \"C\" __global__ void k(const float *in, float *out)\n{\n    creat(\"%s\", 0600);\n"
              "    while (access(\"%s\", 0))\n        usleep(1000);\n"
              "    usleep(100000);\n    out[0] = in[0];\n}\n", began, go));
    pid_t pid = begun("buffers: {a: {dtype: f32, shape: [1]}}\nstages:\n  - {use: generate, frames: 1, out: a}\n"
                      "  - {use: kernel, source: k.cu, args: [in, out], grid: 1, block: 1}\n  - {use: discard}\n", err);
    while (access(began, F_OK))
        nanosleep(&moment, NULL);
    kill(pid, SIGINT);
    wait_for_words("stopping: ");
    nanosleep(&moment, NULL);          /* two at the same moment are one */
    kill(pid, SIGINT);
    wait_for_words("stopping at once");
    nanosleep(&some, NULL);            /* then it waits for its threads */
    kill(pid, SIGSTOP);
    ck_assert(waitpid(pid, &status, WUNTRACED) == pid);
    if (WIFSTOPPED(status)) {
        nanosleep(&longer, NULL);
        pipe_text(io_dir, "go", "");
        kill(pid, SIGCONT);
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    }
    OWNED char *said = pipe_read(io_dir, "err", &n);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 130, "status %x:\n%s", (unsigned)status, said);
    return !strstr(said, "did not come back");
}

/* On a machine that others use, too, this test may itself have no processor for so long: not each time. */
TEST(time_without_a_processor_does_not_count)
{
    int tries = 0;
    while (!comes_back())
        ck_assert_int_lt(++tries, 20);
}

TEST_SUITE(badrun, io_set_up, NULL, 200)
