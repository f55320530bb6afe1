/* child.c - see child.h.
 *
 * A compiler is several processes. They are one process group, led by a shell: it also
 * starts a process that reads a pipe whose other end only we have. When we die, of
 * whatever cause, that process sees the pipe's end and kills the group. (A signal at the
 * parent's death, PR_SET_PDEATHSIG, would come when the thread that started the compiler
 * ends, and would not reach what the compiler has started.) */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/outfile.h"
#include "cpu/child.h"

extern char **environ;

enum { LOG_MAX = 64 << 10, TICK_MS = 20, LIFELINE = 3 };

/* 4 GiB (ulimit counts KiB): an endless include must not take all memory. */
static const char script[] =
    "{ read -r x; kill -9 0; } <&3 >/dev/null 2>&1 &\n"
    "exec 3<&-; ulimit -v 4194304 2>/dev/null\n"
    "\"$@\"; status=$?; kill -9 $!; exit $status\n";

/* "error:" in English, quotes in ASCII; its own files where we remove them. */
static char **environment(const char *tmp)
{
    size_t n = 0;
    while (environ[n])
        n++;
    char **env = calloc(n + 3, sizeof *env);
    if (!env || asprintf(&env[0], "TMPDIR=%s", tmp) < 0) {
        free(env);
        return NULL;
    }
    static char lang[] = "LC_ALL=C";
    n = 1;
    env[n++] = lang;
    for (char **e = environ; *e; e++)
        if (strncmp(*e, "LC_ALL=", 7) != 0 && strncmp(*e, "TMPDIR=", 7) != 0)
            env[n++] = *e;
    return env;
}

static void free_environment(char **env)
{
    if (env)
        free(env[0]);
    free(env);
}

/* The streams of the child, all above those that it gets them as. */
typedef struct streams { int in, out[2], life[2]; } streams;

static int lift(int fd)
{
    int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, LIFELINE + 1);
    if (fd >= 0)
        close(fd);
    return high;
}

static void close_one(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void close_streams(streams *s)
{
    close_one(&s->in), close_one(&s->out[0]), close_one(&s->out[1]);
    close_one(&s->life[0]), close_one(&s->life[1]);
}

static bool open_streams(streams *s, const gp_child *c)
{
    int p[2] = { -1, -1 };
    char err[GP_WHY];
    struct iovec text = { (void *)c->text, c->len };
    *s = (streams){ -1, { -1, -1 }, { -1, -1 } };
    s->in = lift(memfd_create("gpipe.cu", MFD_CLOEXEC));
    if (!pipe2(p, O_CLOEXEC))
        s->out[0] = lift(p[0]), s->out[1] = lift(p[1]);
    if (!pipe2(p, O_CLOEXEC))
        s->life[0] = lift(p[0]), s->life[1] = lift(p[1]);
    return s->in >= 0 && s->out[0] >= 0 && s->out[1] >= 0 && s->life[0] >= 0 && s->life[1] >= 0
        && fcntl(s->out[0], F_SETFL, O_NONBLOCK) == 0 && gp_write_all(s->in, &text, 1, err)
        && lseek(s->in, 0, SEEK_SET) == 0;
}

/* What the child's descriptors are. Error or 0. */
static int set_child_fds(posix_spawn_file_actions_t *io, const streams *s)
{
    const int fd[] = { s->in, s->out[1], s->out[1], s->life[0] };
    int e = 0;
    for (int i = 0; i <= LIFELINE && !e; i++)
        e = posix_spawn_file_actions_adddup2(io, fd[i], i);
    return e;
}

/* The leader of the new group; 0 with errno. */
static pid_t start(const gp_child *c, const streams *s)
{
    int n = 0, e;
    pid_t pid;
    posix_spawn_file_actions_t io;
    posix_spawnattr_t attr;
    sigset_t none, all;
    while (c->argv[n])
        n++;
    const char **argv = calloc((size_t)n + 5, sizeof *argv);
    char **env = environment(c->tmp);
    if (!argv || !env) {
        free(argv), free_environment(env);
        errno = ENOMEM;
        return 0;
    }
    argv[0] = "/bin/sh", argv[1] = "-c", argv[2] = script, argv[3] = "gpipe";
    memcpy(argv + 4, c->argv, sizeof *argv * (size_t)n);
    sigemptyset(&none), sigfillset(&all);
    posix_spawn_file_actions_init(&io);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setpgroup(&attr, 0);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &all);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK
                                    | POSIX_SPAWN_SETSIGDEF);
    e = set_child_fds(&io, s);
    if (!e)
        e = posix_spawn(&pid, argv[0], &io, &attr, (char *const *)argv, env);
    posix_spawn_file_actions_destroy(&io);
    posix_spawnattr_destroy(&attr);
    free(argv), free_environment(env);
    errno = e;
    return e ? 0 : pid;
}

/* Takes what is there to read; counts the lines that there is no room for. False: no more
 * will come. */
static bool take_log(gp_child *c, int fd)
{
    char buf[4096];
    ssize_t n;
    while ((n = read(fd, buf, sizeof buf)) > 0) {
        size_t keep = LOG_MAX - c->nlog < (size_t)n ? LOG_MAX - c->nlog : (size_t)n;
        memcpy(c->log + c->nlog, buf, keep);
        c->nlog += keep;
        for (size_t i = keep; i < (size_t)n; i++)
            c->more += buf[i] == '\n';
    }
    return n < 0 && (errno == EAGAIN || errno == EINTR);
}

static bool is_running(pid_t pid, int *status)
{
    pid_t p = waitpid(pid, status, WNOHANG);
    return !p || (p < 0 && errno == EINTR);
}

static bool cancelled(const gp_child *c)
{
    return c->cancel && atomic_load(c->cancel);
}

int gp_child_run(gp_child *c)
{
    streams s;
    pid_t pid = 0;
    int status = -1;
    c->nlog = c->more = 0;
    c->log = calloc(1, LOG_MAX + 1);
    if (!c->log || !open_streams(&s, c) || cancelled(c) || !(pid = start(c, &s))) {
        int why = errno;
        if (c->log)
            close_streams(&s);
        errno = why;
        return -1;
    }
    close_one(&s.in), close_one(&s.out[1]), close_one(&s.life[0]);
    /* A process that the compiler leaves behind may keep the log open. */
    for (bool more = true; is_running(pid, &status);) {
        if (more)
            poll(&(struct pollfd){ s.out[0], POLLIN, 0 }, 1, TICK_MS);
        else
            poll(NULL, 0, 1);
        more = more && take_log(c, s.out[0]);
        if (cancelled(c))
            kill(-pid, SIGKILL);
    }
    take_log(c, s.out[0]);
    close_streams(&s);
    errno = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
