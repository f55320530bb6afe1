/* cli_signal.c - Ctrl-C and SIGTERM: the first lets a run come to its end, the
 * second stops it, the third gives up.
 *
 * The handler only raises the level of gp_cancel and writes a line; both are
 * safe in a handler. A pipeline that is to be destroyed is let go first. */
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "cli.h"

static struct {
    _Atomic(gp_pipeline *) pipeline;
    atomic_int level, signal;
    _Atomic double last;               /* time of the last signal */
    bool quiet;
} running;

double gp_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void say(const char *line)
{
    ssize_t ignored = running.quiet ? 0 : write(STDERR_FILENO, line, strlen(line));
    (void)ignored;
}

/* Two signals at the same moment are one: timeout(1) sends its signal to the
 * command and to its group. */
static void on_signal(int signal)
{
    const double moment = 0.05;
    double now = gp_seconds();
    if (now - atomic_exchange(&running.last, now) < moment)
        return;
    int level = atomic_fetch_add(&running.level, 1) + 1;
    gp_pipeline *p = atomic_load(&running.pipeline);
    atomic_store(&running.signal, signal);
    if (level > 2)
        _exit(128 + signal);
    if (!p)
        return;
    gp_cancel(p, level);
    say(level == 1 ? "\ngpipe: stopping; what was taken in comes out (once more: stop at once)\n"
        : "\ngpipe: stopping at once (once more: give up)\n");
}

void gp_signals_catch(bool quiet)
{
    struct sigaction a = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
    running.quiet = quiet;
    sigemptyset(&a.sa_mask);
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
}

void gp_signals_for(gp_pipeline *p)
{
    atomic_store(&running.pipeline, p);
    int level = atomic_load(&running.level);
    if (p && level)
        gp_cancel(p, level);
}

int gp_signal_taken(void)
{
    return atomic_load(&running.signal);
}
