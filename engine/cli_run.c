/* cli_run.c - gpipe run: signals, progress, the report.
 *
 * The signal handler only raises the level of gp_cancel and writes a line; both
 * are safe in a handler. */
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "cli.h"

static struct {
    gp_pipeline *pipeline;             /* set before the handler is */
    atomic_int level, signal;
    _Atomic double last;               /* time of the last signal */
    bool quiet;
} running;

static double seconds(void)
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
    double now = seconds();
    if (now - atomic_exchange(&running.last, now) < moment)
        return;
    int level = atomic_fetch_add(&running.level, 1) + 1;
    atomic_store(&running.signal, signal);
    if (level > 2)
        _exit(128 + signal);
    gp_cancel(running.pipeline, level);
    say(level == 1 ? "\ngpipe: stopping; what was taken in comes out (once more: stop at once)\n"
        : "\ngpipe: stopping at once (once more: give up)\n");
}

static void catch_signals(gp_pipeline *p, bool quiet)
{
    struct sigaction a = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
    running.pipeline = p;
    running.quiet = quiet;
    sigemptyset(&a.sa_mask);
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
}

static void ignore_signals(void)
{
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
}

/* "gpipe: device: cpu (auto: no NVIDIA driver)", where it was chosen for the
 * user or the user wants to know. */
static void print_device(const gp_args *args, const gp_pipeline *p)
{
    const gp_graph *g = gp_pipeline_graph(p);
    bool automatic = !strncmp(g->device_why, "auto", 4);
    if (args->quiet || !gp_pipeline_plan(p)->nsegments || !(automatic || args->verbose))
        return;
    char name[32] = "cpu";
    if (g->device >= 0)
        snprintf(name, sizeof name, "cuda:%d", g->device);
    if (automatic)
        fprintf(stderr, "gpipe: device: %s (%s)\n", name, g->device_why);
    else
        fprintf(stderr, "gpipe: device: %s\n", g->device_why);
}

static int exit_code(gp_outcome outcome, const gp_errs *errs)
{
    int status = gp_errs_exit(errs), signal = atomic_load(&running.signal);
    if (status)
        return status;
    if (outcome == GP_DONE)
        return 0;
    return signal ? 128 + signal : 1;
}

int gp_cmd_run(const gp_args *args, const gp_registry *registry, gp_errs *errs)
{
    gp_loaded l;
    bool ok = gp_load(&l, args->operand[0], args, registry, errs);
    gp_print_errs(args, &l, errs);
    int status = gp_errs_exit(errs);
    *errs = (gp_errs){ 0 };
    if (!ok) {
        gp_unload(&l);
        return status;
    }
    print_device(args, l.pipeline);
    catch_signals(l.pipeline, args->quiet);
    gp_meter *meter = gp_meter_start(l.pipeline, args->quiet ? GP_PROGRESS_NONE
                                     : (gp_progress)args->progress);
    double start = seconds();
    gp_run_options options = { .poison = args->poison, .isolate = args->isolate };
    gp_outcome outcome = gp_pipeline_run(l.pipeline, &options, errs);
    double took = seconds() - start;
    gp_meter_stop(meter);
    gp_print_errs(args, &l, errs);
    if (!args->quiet)
        gp_print_summary(l.pipeline, took, args->verbose);
    if (outcome == GP_NOT_DRAINED || outcome == GP_STUCK)
        fprintf(stderr, "gpipe: not drained: frames that had been taken in were cancelled\n");
    if (outcome == GP_STUCK)
        fprintf(stderr, "gpipe: a thread did not come back; it is abandoned\n");
    status = exit_code(outcome, errs);
    *errs = (gp_errs){ 0 };
    if (outcome == GP_STUCK)
        _exit(status);                 /* a thread still uses the pipeline */
    ignore_signals();                  /* the pipeline that they cancel goes away */
    gp_unload(&l);
    return status;
}
