/* cli_progress.c - how a run goes, while it goes and at its end.
 *
 * A thread of its own looks at the counters of the run, which are atomic, and
 * prints; it holds nothing that the run waits for. */
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "cli.h"
#include "dump.h"

enum { SOURCES = 64, STAGES = 512 };

struct gp_meter {
    const gp_pipeline *pipeline;
    gp_progress how;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stop;
    struct timespec start;
    double last_s;                     /* of the last line, and its frames */
    uint64_t last_frames;
};

static double since(const struct timespec *start)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)(t.tv_sec - start->tv_sec) + 1e-9 * (double)(t.tv_nsec - start->tv_nsec);
}

/* Frames that are out, of all sources together. */
static uint64_t frames_out(const gp_pipeline *p)
{
    gp_account a[SOURCES];
    uint64_t n = 0;
    int sources = gp_accounts(p, a, SOURCES);
    for (int i = 0; i < sources && i < SOURCES; i++)
        n += a[i].out;
    return n;
}

/* Frames that are in flight count as cancelled in an account until they are out. */
static void print_json(const gp_pipeline *p, double s, bool ended)
{
    gp_account a[SOURCES];
    gp_stage_status st[STAGES];
    int n = gp_accounts(p, a, SOURCES), m = gp_stages_status(p, st, STAGES);
    gp_json j = { .f = stderr, .level = 3 };           /* all on one line */
    gp_json_open(&j, NULL, '{');
    gp_json_num(&j, "seconds", s);
    gp_json_open(&j, "sources", '[');
    for (int i = 0; i < n && i < SOURCES; i++) {
        gp_json_open(&j, NULL, '{');
        gp_json_str(&j, "name", a[i].source);
        gp_json_size(&j, "in", a[i].in);
        gp_json_size(&j, "out", a[i].out);
        gp_json_size(&j, "dropped", a[i].dropped);
        gp_json_size(&j, "failed", a[i].failed);
        gp_json_size(&j, ended ? "cancelled" : "in_flight", a[i].cancelled);
        gp_json_close(&j, '}');
    }
    gp_json_close(&j, ']');
    gp_json_open(&j, "stages", '[');
    for (int i = 0; i < m && i < STAGES; i++) {
        gp_json_open(&j, NULL, '{');
        gp_json_str(&j, "name", st[i].name);
        gp_json_size(&j, "frames", st[i].frames);
        gp_json_size(&j, "bytes", st[i].bytes);
        gp_json_close(&j, '}');
    }
    gp_json_close(&j, ']');
    gp_json_close(&j, '}');
    fputc('\n', stderr);
}

static void print_line(gp_meter *m)
{
    double s = since(&m->start);
    if (m->how == GP_PROGRESS_JSON) {
        print_json(m->pipeline, s, false);
        return;
    }
    uint64_t frames = frames_out(m->pipeline);
    double rate = s > m->last_s ? (double)(frames - m->last_frames) / (s - m->last_s) : 0;
    bool bar = m->how == GP_PROGRESS_BAR;
    fprintf(stderr, "%sgpipe: %" PRIu64 " frames, %.0f frames/s, %.*f s%s", bar ? "\r" : "",
            frames, rate, bar ? 1 : 0, s, bar ? "\033[K" : "\n");
    fflush(stderr);
    m->last_s = s, m->last_frames = frames;
}

static void *meter_thread(void *arg)
{
    gp_meter *m = arg;
    long period = m->how == GP_PROGRESS_BAR ? 200000000 : 1000000000;    /* ns */
    struct timespec next = m->start;
    pthread_mutex_lock(&m->lock);
    for (;;) {
        next.tv_nsec += period % 1000000000, next.tv_sec += period / 1000000000;
        if (next.tv_nsec >= 1000000000)
            next.tv_nsec -= 1000000000, next.tv_sec++;
        while (!m->stop && !pthread_cond_timedwait(&m->wake, &m->lock, &next))
            ;
        if (m->stop)
            break;
        print_line(m);
    }
    pthread_mutex_unlock(&m->lock);
    return NULL;
}

gp_meter *gp_meter_start(const gp_pipeline *p, gp_progress how)
{
    if (how == GP_PROGRESS_AUTO)
        how = isatty(STDERR_FILENO) ? GP_PROGRESS_BAR : GP_PROGRESS_NONE;
    gp_meter *m = how == GP_PROGRESS_NONE ? NULL : calloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->pipeline = p, m->how = how;
    clock_gettime(CLOCK_MONOTONIC, &m->start);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->wake, &attr);
    pthread_condattr_destroy(&attr);
    if (pthread_create(&m->thread, NULL, meter_thread, m)) {
        free(m);
        return NULL;
    }
    return m;
}

void gp_meter_stop(gp_meter *m)
{
    if (!m)
        return;
    pthread_mutex_lock(&m->lock);
    m->stop = true;
    pthread_cond_signal(&m->wake);
    pthread_mutex_unlock(&m->lock);
    pthread_join(m->thread, NULL);
    if (m->how == GP_PROGRESS_BAR)
        fprintf(stderr, "\r\033[K");
    else if (m->how == GP_PROGRESS_JSON)
        print_json(m->pipeline, since(&m->start), true);
    pthread_cond_destroy(&m->wake);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

void gp_print_summary(const gp_pipeline *p, double s, bool verbose)
{
    gp_account a[SOURCES];
    int n = gp_accounts(p, a, SOURCES);
    for (int i = 0; i < n && i < SOURCES; i++)
        fprintf(stderr, "gpipe: %s%s%" PRIu64 " frames in, %" PRIu64 " out, %" PRIu64
                " dropped, %" PRIu64 " failed, %" PRIu64 " cancelled in %.3f s (%.0f frames/s)\n",
                n > 1 ? a[i].source : "", n > 1 ? ": " : "", a[i].in, a[i].out, a[i].dropped,
                a[i].failed, a[i].cancelled, s, s > 0 ? (double)a[i].out / s : 0);
    if (!verbose)
        return;
    gp_stage_status st[STAGES];
    int m = gp_stages_status(p, st, STAGES);
    for (int i = 0; i < m && i < STAGES; i++)
        fprintf(stderr, "gpipe:   %-16s %10" PRIu64 " frames  %9.1f MB  %8.1f MB/s\n", st[i].name,
                st[i].frames, (double)st[i].bytes / 1e6,
                s > 0 ? (double)st[i].bytes / 1e6 / s : 0);
}
