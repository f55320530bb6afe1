/* command.c - see command.h. The child is ended before a test can fail, so that none outlives it. */
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include "base/clock.h"
#include "command.h"
#include "pipe.h"

extern char **environ;

enum { MAX_ARGS = 30 };

static bool has_bytes(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && st.st_size > 0;
}

static pid_t spawn(const char *out, const char *err, const char *const *args)
{
    const char *argv[MAX_ARGS] = { getenv("GPIPE") };
    posix_spawn_file_actions_t files;
    pid_t pid;
    for (int i = 0; i + 2 < MAX_ARGS && args[i]; i++)
        argv[i + 1] = args[i];
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, 1, out, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addopen(&files, 2, err, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    int e = posix_spawnp(&pid, argv[0], &files, NULL, (char **)argv, environ);
    posix_spawn_file_actions_destroy(&files);
    ck_assert_msg(!e, "cannot start '%s' (GPIPE)", argv[0]);
    return pid;
}

command_result command_run(const char *dir, const char *const *args, double limit, int interrupts)
{
    const struct timespec tick = { 0, 10000000 };
    command_result r = { 0 };
    int status = 0;

    char *out = format("%s/stdout", dir);
    char *err = format("%s/stderr", dir);
    unlink(out);
    double start = 1e-9 * (double)gp_now_ns(), signaled = 0;
    pid_t pid = spawn(out, err, args);
    while (waitpid(pid, &status, WNOHANG) == 0) {
        double now = 1e-9 * (double)gp_now_ns();
        if (interrupts && now - signaled > 0.3 && has_bytes(out)) {
            kill(pid, SIGINT);
            signaled = now;
            interrupts--;
        }
        if (now - start > limit && !r.late) {
            kill(pid, SIGKILL);
            r.late = true;
        }
        nanosleep(&tick, NULL);
    }
    r.seconds = 1e-9 * (double)gp_now_ns() - start;
    r.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    r.out = pipe_read(dir, "stdout", &r.nout);
    r.err = pipe_read(dir, "stderr", &r.nerr);
    return r;
}

void command_free(command_result *r)
{
    free(r->out);
    free(r->err);
}
