/* signal.c - Ctrl-C and SIGTERM: the first lets a run come to its end, the
 * second stops it, the third gives up, and so does an alarm some time after the
 * second. SIGHUP, of which a terminal that is closed sends
 * several, lets it come to its end. A fault, such as that of a kernel that
 * writes beyond its output, or of a plug-in, ends the process as ever, but says where it was.
 *
 * A handler only raises the level of gp_cancel, writes a line and removes what is not to
 * stay; all are safe in a handler. The handler forgets a pipeline before that is destroyed. */
#include <dirent.h>
#include <errno.h>
#include <execinfo.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/thread.h"
#include "cli/cli.h"

static struct {
    _Atomic(gp_pipeline *) pipeline;
    _Atomic(const gp_registry *) plugins;      /* the registry, if it has kinds of any, or gets them */
    atomic_int level, signal, said;    /* said: the level of which it was said that it stops */
    _Atomic double last;               /* time of the last signal */
    bool quiet;
    atomic_bool lines;
    atomic_int reload;                 /* an eventfd, and 1 more; 0: none */
    char name[GP_REMOVED][PATH_MAX];   /* what `file` may point to */
    _Atomic(const char *) file[GP_REMOVED];
} running;

enum { GIVE_UP_S = 10 };       /* well above the 2 s for which a run waits for its stages then */

double gp_seconds(void)
{
    return 1e-9 * (double)gp_now_ns();
}

/* One line, made without what is not safe in a handler and written at once: what others
 * write does not come between. */
typedef struct line { char text[1000]; size_t n; } line;

/* Up to NULL. */
static void put_all(line *l, const char *const *text)
{
    for (; *text; text++) {
        size_t n = strlen(*text), room = sizeof l->text - 3 - l->n;    /* for its end */
        n = n < room ? n : room;
        memcpy(l->text + l->n, *text, n);
        l->n += n;
    }
}
#define put(l, ...) put_all(l, (const char *const[]){ __VA_ARGS__, NULL })

/* `what`: the key of a JSON line; `words`: the beginning of another. */
static line begin(const char *what, const char *words)
{
    line l = { .n = 0 };
    if (gp_says_json()) {
        put(&l, "{\"", what, "\": \"");
    } else {
        char log[GP_LOG_BEGIN];
        gp_log_begin(*what == 'e' ? GP_LEVEL_ERROR : GP_LEVEL_INFO, log);
        put(&l, *log ? log : atomic_load(&running.lines) ? "\r\033[J" : "", words + (*log && *words == '\n'));
    }
    return l;
}

static void end(line *l)
{
    const char *last = gp_says_json() ? "\"}\n" : "\n";
    memcpy(l->text + l->n, last, strlen(last));
    ssize_t ignored = write(STDERR_FILENO, l->text, l->n + strlen(last));
    (void)ignored;
}

static void say(const char *words)
{
    line l = begin("text", "\ngpipe: ");
    put(&l, words);
    if (!running.quiet)
        end(&l);
}

static void say_level(int level)
{
    int was = atomic_load(&running.said);
    while (level > was && !atomic_compare_exchange_weak(&running.said, &was, level))
        ;
    if (level > was)
        say(level == 1 ? "stopping: frames in flight will finish (again: stop at once)"
            : "stopping at once (again: give up)");
}

static void remove_files(void)
{
    gp_pipeline *p = atomic_load(&running.pipeline);
    for (int i = 0; i < GP_REMOVED; i++) {
        const char *file = atomic_load(&running.file[i]);
        if (file)
            unlink(file);
    }
    if (p)
        gp_cancel(p, 3);
}

/* SIGQUIT: SA_RESETHAND has put the default back. */
static void on_end(int signal)
{
    remove_files();
    raise(signal);
}

static const struct { int signal; const char *text; } faults[] = {
    { SIGSEGV, "a segmentation fault" }, { SIGBUS, "a bus error" },
    { SIGFPE, "a division of integers by zero" }, { SIGILL, "an illegal instruction" },
    { SIGABRT, "an abort" },
};
enum { NFAULTS = sizeof faults / sizeof *faults };

static void put_kernel(line *l, const char *kernel, const char *stage)
{
    put(l, "kernel '", kernel, stage ? "' of stage '" : "", stage ? stage : "");
}

/* The instruction that a fault was at, or, when a function was called that is not there, who called it. */
static const void *code_of(const ucontext_t *context)
{
#if defined __x86_64__
    const greg_t *reg = context->uc_mcontext.gregs;
    return (const void *)(uintptr_t)(reg[REG_RIP] ? reg[REG_RIP] : *(const greg_t *)(uintptr_t)reg[REG_RSP]);
#elif defined __aarch64__
    return (const void *)(uintptr_t)(context->uc_mcontext.pc ? context->uc_mcontext.pc : context->uc_mcontext.regs[30]);
#else
    return context ? NULL : context;
#endif
}

/* The plug-in whose code is at fault: it faulted there, or in what that called, as a function of the C library. NULL: no
 * fault, but a call. */
static const gp_plugin_info *plugin_of(const gp_registry *r, const ucontext_t *context)
{
    void *caller[64];
    const gp_plugin_info *of = context ? gp_plugin_at(r, code_of(context)) : NULL;
    for (int i = 0, n = of ? 0 : backtrace(caller, 64); i < n && !of; i++)
        of = gp_plugin_at(r, caller[i]);
    return of;
}

/* One that is being opened has not said its name yet. */
static void put_plugin(line *l, const ucontext_t *context)
{
    const gp_registry *r = atomic_load(&running.plugins);
    const char *opened = r ? gp_plugin_opening(r) : NULL;
    const gp_plugin_info *of = r && !opened ? plugin_of(r, context) : NULL;
    if (of)
        put(l, " in plug-in '", of->name, "' ", of->version, " (", of->file, ")");
    else if (opened)
        put(l, " in plug-in '", opened, "', which was being opened,");
}

/* Several threads may fault at the same moment: the first says so and ends the process,
 * the others wait for that. */
static void on_fault(int number, siginfo_t *info, void *context)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    gp_kernel_fault in;
    while (atomic_flag_test_and_set(&said))
        pause();
    gp_kernel_at_fault(number == SIGABRT ? NULL : info->si_addr, &in);
    const char *kernel = in.kernel, *stage = in.stage;
    char thread[17] = "";
    prctl(PR_GET_NAME, thread);
    line l = begin("error", "gpipe: error: ");
    if (in.overflow) {
        put_kernel(&l, kernel, stage);
        put(&l, "' needs more than 1 MiB for the local variables of a thread: make its arrays "
            "smaller, or give it a buffer for them");
        end(&l);
        remove_files();
        _exit(1);
    }
    for (int i = 0; i < NFAULTS; i++)
        if (faults[i].signal == number)
            put(&l, faults[i].text);
    if (!kernel)
        put_plugin(&l, context);
    if (kernel) {
        put(&l, " in ");
        put_kernel(&l, kernel, stage);
        put(&l, "': 'gpipe run --check-kernels' says what it left, and where; a __constant__ variable cannot be written, "
            "and needs a value that the compiler knows");
    } else {
        put(&l, " in the thread of '", thread, "'");
    }
    end(&l);
    remove_files();
    signal(number, SIG_DFL);
    raise(number);
}

/* A stage, or a library that it uses, ends the process while a run goes on: what is lost is said, and it is no success.
 * gpipe itself ends on its first thread. */
static void on_exit_call(void)
{
    char thread[17] = "";
    if (!atomic_load(&running.pipeline) || syscall(SYS_gettid) == getpid())
        return;
    prctl(PR_GET_NAME, thread);
    line l = begin("error", "gpipe: error: a call of exit(), which ends the run,");
    put_plugin(&l, NULL);
    put(&l, " in the thread of '", thread, "'");
    end(&l);
    remove_files();
    _exit(1);
}

/* Where no sanitizer does it better. */
static void catch_faults(void)
{
    static char room[GP_SIGNAL_STACK];
    struct sigaction was, a = { .sa_sigaction = on_fault,
                                .sa_flags = SA_SIGINFO | SA_ONSTACK };
    gp_thread_signals(room);
    sigemptyset(&a.sa_mask);
    for (int i = 0; i < NFAULTS; i++)          /* one in the handler ends the process there and then */
        sigaddset(&a.sa_mask, faults[i].signal);
    for (int i = 0; i < NFAULTS; i++)
        if (!sigaction(faults[i].signal, NULL, &was) && was.sa_handler == SIG_DFL)
            sigaction(faults[i].signal, &a, NULL);
}

/* Twice the same at the same moment is one: timeout(1) sends its signal to the command
 * and to its group. */
static bool is_again(int signal)
{
    const double moment = 0.05;
    double now = gp_seconds(), last = atomic_exchange(&running.last, now);
    int was = atomic_exchange(&running.signal, signal);
    bool again = was && (signal == SIGHUP || (signal == was && now - last < moment));
    if (again)
        atomic_store(&running.signal, was);
    return again;
}

/* A stage may have spoiled the heap, or have taken a lock for good, and then nothing else here comes to an end. */
static void give_up(int signal)
{
    remove_files();
    _exit(128 + (signal == SIGALRM ? atomic_load(&running.signal) : signal));
}

static void stop_by(int signal)
{
    if (is_again(signal))
        return;
    int level = atomic_fetch_add(&running.level, 1) + 1;
    gp_pipeline *p = atomic_load(&running.pipeline);
    if (level > 2)
        give_up(signal);
    if (level == 2 && !sigaction(SIGALRM, &(struct sigaction){ .sa_handler = give_up }, NULL))
        alarm(GIVE_UP_S);
    if (!p)
        return;
    gp_cancel(p, level);
    say_level(level);
}

/* The thread that was interrupted may be about to look at its errno. */
static void on_signal(int signal)
{
    int was = errno, reload = atomic_load(&running.reload) - 1;
    if (signal == SIGHUP && reload >= 0)
        eventfd_write(reload, 1);
    else
        stop_by(signal);
    errno = was;
}

void gp_signals_plugins(const gp_registry *r, bool opens)
{
    void *first;
    const gp_kind *k;
    bool has = opens;
    for (int i = 0; !has && (k = gp_kind_at(r, i)); i++)
        has = gp_kind_plugin(r, k);
    atomic_store(&running.plugins, has ? r : NULL);
    if (has && (opens || backtrace(&first, 1)))        /* the first opens a library, which no handler may */
        catch_faults();
}

void gp_signals_catch(bool quiet)
{
    struct sigaction a = { .sa_handler = on_signal, .sa_flags = SA_RESTART }, was,
                     last = { .sa_handler = on_end, .sa_flags = (int)SA_RESETHAND };
    sigset_t mask;
    running.quiet = quiet;
    atexit(on_exit_call);
    sigemptyset(&a.sa_mask);
    sigemptyset(&last.sa_mask);
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
    if (!sigaction(SIGHUP, NULL, &was) && (was.sa_handler != SIG_IGN || atomic_load(&running.reload)))     /* nohup */
        sigaction(SIGHUP, &a, NULL);
    if (!sigaction(SIGQUIT, NULL, &was) && was.sa_handler == SIG_DFL)
        sigaction(SIGQUIT, &last, NULL);
    sigemptyset(&mask), sigaddset(&mask, SIGINT), sigaddset(&mask, SIGTERM), sigaddset(&mask, SIGHUP);
    sigaddset(&mask, SIGQUIT), sigaddset(&mask, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &mask, NULL);         /* whoever started us may have blocked them */
    catch_faults();
}

void gp_signals_reload(int fd)
{
    atomic_store(&running.reload, fd + 1);
}

void gp_signals_lines(bool drawn)
{
    atomic_store(&running.lines, drawn);
}

void gp_signals_remove(gp_removed which, const char *path)
{
    atomic_store(&running.file[which], NULL);
    if (path && strlen(path) < PATH_MAX)
        atomic_store(&running.file[which], strcpy(running.name[which], path));
}

void gp_signals_for(gp_pipeline *p)
{
    atomic_store(&running.pipeline, p);
    int level = atomic_load(&running.level);
    if (p && level)
        gp_cancel(p, level);
}

int gp_signals_level(void)
{
    return atomic_load(&running.level);
}

void gp_signals_cancel(int level)
{
    gp_pipeline *p = atomic_load(&running.pipeline);
    if (p)
        gp_cancel(p, level);
}

void gp_signals_of_another(int level)
{
    if (level && atomic_load(&running.pipeline))
        say_level(level);
}

int gp_signal_taken(void)
{
    return atomic_load(&running.signal);
}

/* ---- a run that does not end ----------------------------------------- */

enum { DEEPEST = 16 };

/* /proc lists the processes that each thread has started. The children of a child are ended before it, because they
 * would have another parent once it is gone. */
static void end_those_of(long pid, int deep)
{
    char path[300];
    snprintf(path, sizeof path, "/proc/%ld/task", pid);
    DIR *tasks = deep < DEEPEST ? opendir(path) : NULL;
    for (struct dirent *e; tasks && (e = readdir(tasks)); ) {
        snprintf(path, sizeof path, "/proc/%ld/task/%ld/children", pid, atol(e->d_name));
        FILE *f = fopen(path, "re");
        for (long child; f && fscanf(f, "%ld", &child) == 1; ) {
            end_those_of(child, deep + 1);
            kill((pid_t)child, SIGTERM);
        }
        if (f)
            fclose(f);
    }
    if (tasks)
        closedir(tasks);
}

void gp_leave_stuck(gp_ranks *us, int status)
{
    end_those_of(getpid(), 0);
    gp_say_last();
    gp_ranks_leave(us, status);
    _exit(status);
}
