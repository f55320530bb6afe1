/* process.c - see process.h.
 *
 * The program is our child, so that its exit status is known exactly. It is in a process group that a guard leads: a
 * shell that reads a pipe whose other end only we have. When we die, of whatever cause, the guard sees the pipe's end
 * and kills the group. (PR_SET_PDEATHSIG would have to be set in the child, would come when the thread that started it
 * ends, and would not reach what the program has started.) Where there is no shell, the program sees its pipe closed.
 *
 * A thread takes what the program writes to its standard error, so that it never waits for us; the last part is kept.
 * */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/spawn.h"
#include "base/thread.h"
#include "process.h"

enum { KEPT = 4096, LINES = 8, LINE = 300, TICK_MS = 10, GRACE_MS = 2000, PIPE_BYTES = 1 << 20 };

bool gp_process_shape(gp_shape *s, const gp_texts *command, const char *both, const char *const *without,
                      const char *what, const char **path, const char **folder)
{
    gp_node here = { .kind = GP_SCALAR, .text = ".", .len = 1 };
    if (gp_shape_node(s, "path"))
        return gp_shape_fail(s, "command", "%s", both);
    if (!command->n || !*command->v[0])
        return gp_shape_fail(s, "command", "'command' is empty: its first word is the program");
    for (; *without; without++)
        if (!gp_shape_without(s, *without, what))
            return false;
    *path = command->v[0];
    return (*folder = gp_shape_path(s, &here)) != NULL;
}

struct gp_process {
    pid_t pid, guard;          /* 0: there is none */
    bool ended;                /* and was waited for: status, */
    bool lost;                 /* ... unless that was not to be had */
    int status;
    int fd, lifeline;          /* ours: of the pipe, of the guard's; -1: closed */
    int rest;                  /* a reading end of the pipe, since we hung up; negative: -errno */
    int errors, quit;          /* what its standard error is read from; told to the thread at the end */
    bool listens;              /* the thread is there */
    pthread_t thread;
    size_t nlog;               /* all that was written; */
    char log[KEPT];            /* the last of it, a ring */
};

/* ---- starting -------------------------------------------------------- */

/* The leader of the group, if there is a shell. */
static void start_guard(gp_process *p)
{
    static const char *const argv[] = { "/bin/sh", "-c", "trap '' TERM HUP INT; read -r x; kill -9 0", NULL };
    int life[2];
    if (gp_pipe_open(life) && !gp_spawn_start(&p->guard, &(gp_spawn){
            .argv = argv, .fd = { life[0], GP_SPAWN_NOTHING, GP_SPAWN_NOTHING }, .nfd = 3 }))
        p->lifeline = life[1], life[1] = -1;
    gp_fd_close(&life[0]), gp_fd_close(&life[1]);
}

/* Keeps what the program says. False: it says no more, or nothing yet. */
static bool listen_once(gp_process *p)
{
    char buf[1024];
    ssize_t n = read(p->errors, buf, sizeof buf);
    for (ssize_t i = 0; i < n; i++)
        p->log[p->nlog++ % KEPT] = buf[i];
    return n > 0 || (n < 0 && errno == EINTR);
}

static void *listen_main(void *arg)
{
    gp_process *p = arg;
    struct pollfd at[2] = { { p->quit, POLLIN, 0 }, { p->errors, POLLIN, 0 } };
    while (!at[0].revents) {
        if (poll(at, 2, -1) < 0)
            continue;
        if (at[1].revents && !listen_once(p))
            at[1].fd = -1;             /* it has closed it */
    }
    while (listen_once(p))
        ;
    return NULL;
}

static bool start_listening(gp_process *p, int errors)
{
    sigset_t all, was;
    p->errors = errors;
    fcntl(errors, F_SETFL, O_NONBLOCK);
    p->quit = eventfd(0, EFD_CLOEXEC);
    if (p->quit < 0)
        return false;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &was);
    int e = gp_thread_start(&p->thread, listen_main, p);
    pthread_sigmask(SIG_SETMASK, &was, NULL);
    errno = e;
    return p->listens = !e;
}

/* 0 or errno. */
static int start(gp_process *p, const char *const *argv, const char *folder, bool reads)
{
    int data[2] = { -1, -1 }, said[2] = { -1, -1 }, e = 0;
    if (!gp_pipe_open(data) || !gp_pipe_open(said)) {
        e = errno;
    } else {
        start_guard(p);
        e = gp_spawn_start(&p->pid, &(gp_spawn){
            .argv = argv, .folder = folder, .nfd = 3, .group = p->guard,
            .fd = { reads ? data[0] : GP_SPAWN_NOTHING, reads ? GP_SPAWN_OURS : data[1], said[1] } });
    }
    p->fd = reads ? data[1] : data[0];
    gp_fd_close(reads ? &data[0] : &data[1]), gp_fd_close(&said[1]);
#ifdef F_SETPIPE_SZ
    fcntl(p->fd, F_SETPIPE_SZ, PIPE_BYTES);            /* fewer, larger reads and writes; may fail */
#endif
    if (!e && !start_listening(p, said[0]))
        e = errno;
    if (p->errors < 0)
        gp_fd_close(&said[0]);
    return e;
}

gp_process *gp_process_start(const char *const *argv, const char *folder, bool reads, char why[GP_WHY])
{
    gp_process *p = calloc(1, sizeof *p);
    if (!p)
        return GP_NULL(gp_why(why, "cannot be started: %s", gp_strerror(ENOMEM)));
    p->fd = p->lifeline = p->errors = p->quit = p->rest = -1;
    int e = start(p, argv, folder, reads);
    if (!e)
        return p;
    gp_process_stop(p);
    gp_why(why, "cannot be started: %s", gp_strerror(e));
    return NULL;
}

/* ---- while it runs --------------------------------------------------- */

int gp_process_fd(const gp_process *p)
{
    return p->fd;
}

bool gp_process_write(gp_process *p, struct iovec *v, int n, char why[GP_WHY])
{
    sigset_t broken, was, pending;
    sigemptyset(&broken), sigaddset(&broken, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &broken, &was);
    bool ok = gp_write_all(p->fd, v, n, why);
    int e = errno;
    if (!ok && !sigismember(&was, SIGPIPE) && !sigpending(&pending) && sigismember(&pending, SIGPIPE))
        sigtimedwait(&broken, NULL, &(struct timespec){ 0 });
    pthread_sigmask(SIG_SETMASK, &was, NULL);
    errno = e;
    return ok;
}

/* Had we another reading end before, nobody who reads would be no error of a write. */
void gp_process_hang_up(gp_process *p)
{
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", p->fd);
    p->rest = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (p->rest < 0)
        p->rest = -errno;
    gp_fd_close(&p->fd);
}

int gp_process_unread(const gp_process *p)
{
    int n;
    return p->rest < 0 ? p->rest : ioctl(p->rest, FIONREAD, &n) ? -errno : n;
}

/* ---- its end --------------------------------------------------------- */

bool gp_process_has_ended(gp_process *p, bool wait)
{
    pid_t k;
    while (!p->ended && (k = waitpid(p->pid, &p->status, wait ? 0 : WNOHANG))) {
        if (k < 0 && errno == EINTR)
            continue;
        p->lost = k < 0, p->ended = true;
    }
    return p->ended;
}

bool gp_process_is_well(gp_process *p, char why[GP_WHY])
{
    if (p->lost)
        return gp_why(why, "has ended, and how is not known: this process ignores SIGCHLD, or waits for children that it has "
                      "not started");
    if (WIFSIGNALED(p->status))
        return gp_why(why, "was ended by signal %d (%s)", WTERMSIG(p->status), strsignal(WTERMSIG(p->status)));
    return !WEXITSTATUS(p->status) || gp_why(why, "ended with exit status %d", WEXITSTATUS(p->status));
}

static void stop_listening(gp_process *p)
{
    if (p->listens) {
        eventfd_write(p->quit, 1);
        pthread_join(p->thread, NULL);
    }
    p->listens = false;
}

void gp_process_tell(gp_process *p, gp_errs *errs)
{
    char log[KEPT + 1], *line[LINES], *rest;
    int n = 0;
    stop_listening(p);
    size_t have = p->nlog < KEPT ? p->nlog : KEPT;
    for (size_t i = 0; i < have; i++) {
        char c = p->log[(p->nlog - have + i) % KEPT];
        log[i] = c ? c : ' ';
    }
    log[have] = 0;
    for (char *s = strtok_r(log, "\r\n", &rest); s; s = strtok_r(NULL, "\r\n", &rest))
        line[n++ % LINES] = s;
    for (int i = n > LINES ? n - LINES : 0; i < n; i++)
        gp_fail(errs, GP_E_NOTE, (gp_loc){ 0 }, "%.*s", LINE, line[i % LINES]);
}

/* Soon, as it was asked to. */
static void await_end(gp_process *p)
{
    for (int ms = 0; !gp_process_has_ended(p, false); ms += TICK_MS) {
        if (ms > GRACE_MS)
            kill(p->pid, SIGKILL);
        poll(NULL, 0, TICK_MS);
    }
}

void gp_process_stop(gp_process *p)
{
    if (!p)
        return;
    if (p->pid && !gp_process_has_ended(p, false))
        kill(p->pid, SIGTERM);         /* before it sees the end of its input, which it would take for a good one */
    gp_fd_close(&p->fd);
    if (p->pid)
        await_end(p);
    stop_listening(p);
    if (p->guard) {                    /* and what it has left behind */
        kill(-p->guard, SIGKILL);
        while (waitpid(p->guard, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    gp_fd_close(&p->lifeline), gp_fd_close(&p->errors), gp_fd_close(&p->quit), gp_fd_close(&p->rest);
    free(p);
}
