/* spawn.c - see spawn.h. */
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>
#include "base/spawn.h"

int gp_spawn_start(pid_t *pid, const gp_spawn *s)
{
    posix_spawn_file_actions_t io;
    posix_spawnattr_t attr;
    sigset_t none, all;
    sigemptyset(&none), sigfillset(&all), sigdelset(&all, SIGHUP);     /* nohup is for it, too */
    posix_spawn_file_actions_init(&io);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setpgroup(&attr, s->group < 0 ? 0 : s->group);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &all);        /* who ignores SIGPIPE would write for ever */
    posix_spawnattr_setflags(&attr, (short)(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF
                                            | (s->group < 0 ? 0 : POSIX_SPAWN_SETPGROUP)));
    int e = 0;
    for (int i = 0; i < s->nfd && !e; i++)
        if (s->fd[i] >= 0)
            e = posix_spawn_file_actions_adddup2(&io, s->fd[i], i);
        else if (s->fd[i] == GP_SPAWN_NOTHING)
            e = posix_spawn_file_actions_addopen(&io, i, "/dev/null", O_RDWR, 0);
#if defined __GLIBC__ && __GLIBC_PREREQ(2, 34)
    if (!e)                            /* ours are closed by exec, but not all that we have inherited */
        e = posix_spawn_file_actions_addclosefrom_np(&io, s->nfd);
#endif
    if (!e && s->folder)
        e = posix_spawn_file_actions_addchdir_np(&io, s->folder);
    if (!e)
        e = posix_spawnp(pid, s->argv[0], &io, &attr, (char *const *)s->argv, environ);
    posix_spawn_file_actions_destroy(&io);
    posix_spawnattr_destroy(&attr);
    if (e)
        *pid = 0;
    return e;
}

int gp_fd_lift(int fd)
{
    int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, GP_SPAWN_FDS);
    if (fd >= 0)
        close(fd);
    return high;
}

bool gp_pipe_open(int p[2])
{
    if (pipe2(p, O_CLOEXEC))
        p[0] = p[1] = -1;
    for (int i = 0; i < 2; i++)
        p[i] = gp_fd_lift(p[i]);
    return p[0] >= 0 && p[1] >= 0;
}

void gp_fd_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}
