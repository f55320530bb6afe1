/* threads.c - the threads of a run: of a host stage one for each worker, of a segment its
 * launcher and its reaper.
 *
 * gp_run.live counts those that have not returned; the last one wakes the watch. */
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include "base/c_locale.h"
#include "base/why.h"
#include "device/nice.h"
#include "run/nvtx.h"
#include "run/setup.h"

/* Kernels on a GPU have their streams' priority, whatever their threads may have. */
static bool counts_on_cores(const gp_run *run, const gp_actorrt *p)
{
    return p->kind == GP_ACTOR_HOST || run->plan->unified || run->graph->device[0].pretend;
}

static void take_priority(gp_threadrt *t)
{
    gp_run *run = t->run;
    const gp_actorrt *p = t->actor;
    gp_errs errs = { .n = 0 };
    if (gp_thread_nice(p->priority) || !counts_on_cores(run, p) || atomic_exchange(&run->no_high, true))
        return;
    gp_fail(&errs, GP_E_WARN, gp_actor_at(p), "threads that should have a high priority, as those of '%s', have a "
            "normal one: this process may not raise it (RLIMIT_NICE, see 'ulimit -e')", p->name);
    gp_run_fail(run, &errs);
}

static void *thread_main(void *arg)
{
    GP_C_LOCALE;
    gp_threadrt *t = arg;
    char name[16];
    snprintf(name, sizeof name, "%.15s", t->actor->name);
    pthread_setname_np(pthread_self(), name);
    if (!t->actor->on_loan) {          /* else these are of the program's thread */
        gp_thread_known(&t->tid, &t->clock);
        t->own_tid = atomic_load(&t->tid), t->own_clock = atomic_load(&t->clock);
        gp_nvtx_name_thread(t);
    }
    take_priority(t);
    if (t->actor->kind == GP_ACTOR_HOST)
        gp_host_thread(t);
    else if (t->worker == 0)
        gp_segment_launcher(t);
    else
        gp_segment_reaper(t);
    if (t->run->options.timed)
        atomic_fetch_add(&t->run->delayed_ns, gp_core_delay());
    gp_thread_doing(t, GP_DOING_GONE, atomic_load(&t->frame));
    if (atomic_fetch_sub(&t->run->live, 1) == 1)
        eventfd_write(t->run->done_fd, 1);
    return NULL;
}

static int64_t process_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* Waking a sleeping thread costs tens of microseconds, a wait in a busy
 * pipeline is shorter: with a core for each thread they look for a while. */
static int64_t spin_ns(const gp_pipeline *p, int threads)
{
    gp_sync sync = p->graph->sync;
    if (sync != GP_SYNC_AUTO)
        return sync == GP_SYNC_BLOCK ? 0 : INT64_MAX;
    return p->cpus > threads ? 1000000 : 5000;
}

int gp_threads_needed(const gp_plan *plan)
{
    int n = 0;
    for (int i = 0; i < plan->nactors; i++)
        n += plan->actor[i].kind == GP_ACTOR_HOST
            ? plan->graph->stage[plan->actor[i].stage].workers : 2;
    return n;
}

void gp_threads_start(gp_run *run)
{
    int n = 0;
    for (int i = 0; i < run->plan->nactors; i++) {
        gp_actorrt *p = &run->actor[i];
        p->thread = &run->thread[n];
        p->nthreads = p->kind == GP_ACTOR_HOST ? p->stage->workers : 2;
        for (int w = 0; w < p->nthreads; w++, n++) {
            gp_threadrt *t = &run->thread[n];
            t->run = run, t->actor = p, t->worker = w;
            t->errs.at = gp_actor_at(p);   /* of what says no place itself */
            if (p->track && (p->kind == GP_ACTOR_HOST || w == 0))
                t->track = p->track[w];
        }
    }
    run->spin_ns = spin_ns(run->pipeline, n);
    atomic_store(&run->live, n);
    run->start_ns = gp_now_ns();
    run->cpu_ns = -process_ns();
    if (run->options.timed)
        run->ticks[0] = gp_core_ticks_read("/proc/stat");
    for (int i = 0; i < n; i++) {
        int e = pthread_create(&run->thread[i].id, NULL, thread_main, &run->thread[i]);
        if (!e) {
            run->nthreads++;
            continue;
        }
        gp_errs errs = { .n = 0 };
        gp_fail(&errs, GP_E_RESOURCE, gp_actor_at(run->thread[i].actor), "cannot start thread %d of %d: %s",
                i + 1, n, gp_strerror(e));
        gp_run_fail(run, &errs);
        gp_run_level(run, 2);
        if (atomic_fetch_sub(&run->live, n - i) == n - i)
            eventfd_write(run->done_fd, 1);
        return;
    }
}

void gp_threads_end(gp_run *run, bool back)
{
    for (int i = 0; back && i < run->nthreads; i++) {
        gp_threadrt *t = &run->thread[i];
        pthread_join(t->id, NULL);
        if (!t->errs.failed)               /* warnings; all else was handed over at once */
            gp_run_fail(run, &t->errs);
    }
    run->end_ns = gp_now_ns();
    run->cpu_ns += process_ns();
    if (run->options.timed)
        run->ticks[1] = gp_core_ticks_read("/proc/stat");
}
