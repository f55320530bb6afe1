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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/outfile.h"
#include "base/spawn.h"
#include "cpu/child.h"

enum { LOG_MAX = 64 << 10, TICK_MS = 20 };

/* "error:" in English, quotes in ASCII; its own files where we remove them. 4 GiB (ulimit counts KiB): an endless
 * include must not take all memory. */
static const char script[] =
    "export TMPDIR=\"$1\" LC_ALL=C; shift\n"
    "{ read -r x; kill -9 0; } <&3 >/dev/null 2>&1 &\n"
    "exec 3<&-; ulimit -v 4194304 2>/dev/null\n"
    "\"$@\"; status=$?; kill -9 $!; exit $status\n";

typedef struct streams { int in, out[2], life[2]; } streams;

static void close_streams(streams *s)
{
    gp_fd_close(&s->in), gp_fd_close(&s->out[0]), gp_fd_close(&s->out[1]);
    gp_fd_close(&s->life[0]), gp_fd_close(&s->life[1]);
}

static bool open_streams(streams *s, const gp_child *c)
{
    char err[GP_WHY];
    struct iovec text = { (void *)c->text, c->len };
    *s = (streams){ -1, { -1, -1 }, { -1, -1 } };
    s->in = gp_fd_lift(memfd_create("gpipe.cu", MFD_CLOEXEC));
    return s->in >= 0 && gp_pipe_open(s->out) && gp_pipe_open(s->life) && fcntl(s->out[0], F_SETFL, O_NONBLOCK) == 0
        && gp_write_all(s->in, &text, 1, err) && lseek(s->in, 0, SEEK_SET) == 0;
}

/* The leader of the new group; 0 with errno. */
static pid_t start(const gp_child *c, const streams *s)
{
    int n = 0;
    pid_t pid = 0;
    while (c->argv[n])
        n++;
    const char **argv = calloc((size_t)n + 6, sizeof *argv);
    if (argv) {
        memcpy(argv, (const char *[]){ "/bin/sh", "-c", script, "gpipe", c->tmp }, 5 * sizeof *argv);
        memcpy(argv + 5, c->argv, sizeof *argv * (size_t)n);
    }
    errno = !argv ? ENOMEM : gp_spawn_start(&pid, &(gp_spawn){
        .argv = argv, .fd = { s->in, s->out[1], s->out[1], s->life[0] }, .nfd = 4 });
    free(argv);
    return pid;
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
    gp_fd_close(&s.in), gp_fd_close(&s.out[1]), gp_fd_close(&s.life[0]);
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
