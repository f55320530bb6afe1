/* threads.c - the threads of a run: of a host stage one for each worker, of a segment its
 * launcher and its reaper.
 *
 * gp_run.live counts those that have not returned; the last one wakes the watch. The threads themselves wait then for a
 * run that goes on from this one, and others are started only where it needs more, or some of another priority. */
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include "base/c_locale.h"
#include "base/thread.h"
#include "base/why.h"
#include "device/nice.h"
#include "run/nvtx.h"
#include "run/setup.h"

/* Kernels on a GPU have their streams' priority, whatever their threads may have. */
static bool counts_on_cores(const gp_run *run, const gp_actorrt *p)
{
    return p->kind == GP_ACTOR_HOST || run->plan->unified || run->graph->device[0].pretend;
}

typedef struct thread {
    struct thread *next;
    struct gp_threads *all;
    pthread_t id;
    gp_priority priority;      /* it has it for good */
    const gp_run *since;       /* the run that it was started for, until that begins */
    gp_threadrt *does;         /* NULL: nothing, it waits */
    bool counted, leaves;
} thread;

struct gp_threads {
    pthread_mutex_t lock;      /* of what follows */
    pthread_cond_t told, done;         /* some have something to do, or leave; one has done it */
    thread *first;
};

static void no_priority(gp_threadrt *t)
{
    gp_run *run = t->run;
    const gp_actorrt *p = t->actor;
    gp_errs errs = { .n = 0 };
    if (!counts_on_cores(run, p) || atomic_exchange(&run->no_high, true))
        return;
    gp_fail(&errs, GP_E_WARN, gp_actor_at(p), "threads that should have a high priority, as those of '%s', have a "
            "normal one: this process may not raise it (RLIMIT_NICE, see 'ulimit -e')", p->name);
    gp_run_fail(run, &errs);
}

static void work(gp_threadrt *t, bool has_priority)
{
    char name[16];
    int64_t delay = t->run->options.timed ? gp_core_delay() : 0;
    snprintf(name, sizeof name, "%.15s", t->actor->name);
    pthread_setname_np(pthread_self(), name);
    if (!t->actor->on_loan) {          /* else they are those of the program's thread that has the worker */
        gp_thread_known(&t->tid, &t->clock);
        t->own_tid = atomic_load(&t->tid), t->own_clock = atomic_load(&t->clock);
        gp_nvtx_name_thread(t);
    }
    if (!has_priority)
        no_priority(t);
    if (t->actor->kind == GP_ACTOR_HOST)
        gp_host_thread(t);
    else if (t->worker == 0)
        gp_segment_launcher(t);
    else
        gp_segment_reaper(t);
    if (t->run->options.timed)
        atomic_fetch_add(&t->run->delayed_ns, gp_core_delay() - delay);
    gp_thread_doing(t, GP_DOING_GONE, atomic_load(&t->frame));
    if (atomic_fetch_sub(&t->run->live, 1) == 1)
        eventfd_write(t->run->done_fd, 1);
}

static void *thread_main(void *arg)
{
    GP_C_LOCALE;
    thread *t = arg;
    struct gp_threads *all = t->all;
    bool has_priority = gp_thread_nice(t->priority);
    pthread_mutex_lock(&all->lock);
    while (t->does || !t->leaves) {
        if (!t->does) {
            pthread_cond_wait(&all->told, &all->lock);
            continue;
        }
        pthread_mutex_unlock(&all->lock);
        work(t->does, has_priority);
        pthread_mutex_lock(&all->lock);
        t->does = NULL;
        pthread_cond_signal(&all->done);
    }
    pthread_mutex_unlock(&all->lock);
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

static int threads_of(const gp_plan *plan, int actor)
{
    const gp_actor *a = &plan->actor[actor];
    return a->kind == GP_ACTOR_HOST ? plan->graph->stage[a->stage].workers : 2;
}

int gp_threads_needed(const gp_plan *plan)
{
    int n = 0;
    for (int i = 0; i < plan->nactors; i++)
        n += threads_of(plan, i);
    return n;
}

/* ---- threads that there are ------------------------------------------- */

/* One of this priority that is not counted yet; NULL: there is none. Here and below with the lock. */
static thread *count(struct gp_threads *all, gp_priority priority)
{
    thread *t = all->first;
    while (t && (t->counted || t->priority != priority))
        t = t->next;
    if (t)
        t->counted = true;
    return t;
}

static void count_none(struct gp_threads *all)
{
    for (thread *t = all->first; t; t = t->next)
        t->counted = false;
}

static int add(struct gp_threads *all, gp_priority priority, const gp_run *run)
{
    thread *t = calloc(1, sizeof *t);
    if (!t)
        return ENOMEM;
    *t = (thread){ .next = all->first, .all = all, .priority = priority, .since = run, .counted = true };
    int e = gp_thread_start(&t->id, thread_main, t);
    if (e)
        free(t);
    else
        all->first = t;
    return e;
}

/* Gives the lock back, and waits for those that leave. */
static void unlock_and_join(struct gp_threads *all)
{
    thread *gone = NULL, *t;
    for (thread **at = &all->first; (t = *at);) {
        if (t->leaves)
            *at = t->next, t->next = gone, gone = t;
        else
            at = &t->next;
    }
    pthread_cond_broadcast(&all->told);
    pthread_mutex_unlock(&all->lock);
    while ((t = gone)) {
        gone = t->next;
        pthread_join(t->id, NULL);
        free(t);
    }
}

void gp_threads_release(struct gp_threads *all, const gp_run *run)
{
    pthread_mutex_lock(&all->lock);
    for (thread *t = all->first; t; t = t->next)
        t->leaves = t->since == run;
    unlock_and_join(all);
}

bool gp_threads_reserve(struct gp_threads *all, const gp_run *run, gp_errs *errs)
{
    int n = 0, e = 0;
    pthread_mutex_lock(&all->lock);
    count_none(all);
    for (int i = 0; !e && i < run->plan->nactors; i++) {
        const gp_actorrt *p = &run->actor[i];
        for (int w = threads_of(run->plan, i); !e && w > 0; w--, n++)
            e = count(all, p->priority) ? 0 : add(all, p->priority, run);
        if (e)
            gp_fail(errs, GP_E_RESOURCE, gp_actor_at(p), "cannot start thread %d of %d: %s", n,
                    gp_threads_needed(run->plan), gp_strerror(e));
    }
    pthread_mutex_unlock(&all->lock);
    if (e)
        gp_threads_release(all, run);
    return !e;
}

struct gp_threads *gp_threads_new(void)
{
    struct gp_threads *all = calloc(1, sizeof *all);
    if (all) {
        pthread_mutex_init(&all->lock, NULL);
        pthread_cond_init(&all->told, NULL), pthread_cond_init(&all->done, NULL);
    }
    return all;
}

void gp_threads_free(struct gp_threads *all)
{
    if (!all)
        return;
    pthread_mutex_lock(&all->lock);
    for (thread *t = all->first; t; t = t->next)
        t->leaves = true;
    unlock_and_join(all);
    pthread_cond_destroy(&all->told), pthread_cond_destroy(&all->done);
    pthread_mutex_destroy(&all->lock);
    free(all);
}

/* ---- those of a run ------------------------------------------------------ */

static void begin(struct gp_threads *all, gp_run *run)
{
    pthread_mutex_lock(&all->lock);
    count_none(all);
    for (int i = 0; i < run->nthreads; i++)
        count(all, run->thread[i].actor->priority)->does = &run->thread[i];
    for (thread *t = all->first; t; t = t->next) {
        t->leaves = !t->does && (!t->since || t->since == run);    /* else it is for the run that goes on from this */
        t->since = t->does ? NULL : t->since;
    }
    unlock_and_join(all);
}

void gp_threads_start(gp_run *run)
{
    int n = 0;
    for (int i = 0; i < run->plan->nactors; i++) {
        gp_actorrt *p = &run->actor[i];
        p->thread = &run->thread[n];
        p->nthreads = threads_of(run->plan, i);
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
    run->nthreads = n;
    begin(run->pipeline->threads, run);
}

/* Until they all wait. */
static void wait_for_all(struct gp_threads *all)
{
    pthread_mutex_lock(&all->lock);
    for (thread *t = all->first; t; t = t->next)
        while (t->does)
            pthread_cond_wait(&all->done, &all->lock);
    pthread_mutex_unlock(&all->lock);
}

void gp_threads_end(gp_run *run, bool back)
{
    if (back)
        wait_for_all(run->pipeline->threads);
    for (int i = 0; back && i < run->nthreads; i++) {
        gp_threadrt *t = &run->thread[i];
        if (!t->errs.failed)               /* warnings; all else was handed over at once */
            gp_run_fail(run, &t->errs);
    }
    run->end_ns = gp_now_ns();
    run->cpu_ns += process_ns();
    if (run->options.timed)
        run->ticks[1] = gp_core_ticks_read("/proc/stat");
}
