/* watch.c - what the thread that called gp_pipeline_run does meanwhile: passes
 * on gp_cancel, notices that nothing moves, and gives up on threads that do not
 * come back. Also the waits of sources, which gp_cancel ends. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "run/measure.h"
#include "run/paused.h"

enum {
    TICK_MS = 50,
    LATE_MS = 2 * TICK_MS,     /* a tick counts as this at most: in one that took longer nobody here had a processor */
    GRACE_MS = 2000,           /* for threads to come back once nothing new starts, but half of stop_ns at most */
    LONG_MS = 1000,            /* so long at one frame, so long after the end was asked for: that holds it up; so long
                                  may who others do not wait for take for a frame once these have ended */
};

void gp_thread_doing(gp_threadrt *t, gp_doing doing, uint64_t frame)
{
    atomic_store_explicit(&t->frame, frame, memory_order_relaxed);
    atomic_store_explicit(&t->doing, (int)doing, memory_order_relaxed);
}

/* ---- waits of sources ------------------------------------------------ */

/* Is the run to pause, or has this stage taken more frames than its buffers are to have? Then it gives back those that it
 * waits for. */
static bool is_to_give_back(const gp_actorrt *p)
{
    int pausing = atomic_load(&p->run->pausing);
    uint64_t next = atomic_load(&p->next);
    bool gives = pausing == GP_PAUSE_ALL || (p->source && pausing == GP_PAUSE_SOURCES);
    for (int o = 0; o < p->nout; o++)
        for (int c = 0; c < p->out[o]->ring->nconsumers; c++) {
            const gp_cursor *used = &p->out[o]->consumed[c];
            gives |= !atomic_load(&used->closed) && next > gp_actor_room(p, p->out[o], atomic_load(&used->at));
        }
    return gives && p->stage->workers == 1;        /* of several others have those behind it */
}

/* Until `fd` (or -1) can be read, or t_ns (or -1) is reached; where the stage can give frames back, until it is to. */
static bool source_wait(gp_call *c, int fd, int64_t t_ns, bool pauses)
{
    gp_threadrt *t = c->ctx;
    struct pollfd p[2] = { { t->run->pipeline->stop_fd, POLLIN, 0 }, { fd, POLLIN, 0 } };
    int was = atomic_load(&t->doing);
    bool go = false;
    int64_t since = gp_measure_now(t->run);

    pauses = pauses && was != GP_DOING_FINISH, t->goes_back = false;
    atomic_store(&t->actor->outside, true);
    atomic_store(&t->doing, GP_DOING_IDLE);
    while (!atomic_load(&t->run->level) && gp_actor_is_wanted(t->actor)
           && !(t->goes_back = pauses && is_to_give_back(t->actor))) {
        int64_t ns = TICK_MS * 1000000LL;  /* a failed run does not write to stop_fd */
        if (t_ns >= 0) {
            int64_t left = t_ns - gp_now_ns();
            if (left <= 0) {
                go = true;
                break;
            }
            ns = left < ns ? left : ns;
        }
        struct timespec timeout = { ns / 1000000000, ns % 1000000000 };
        if (ppoll(p, fd >= 0 ? 2 : 1, &timeout, NULL) < 0 && errno != EINTR)
            break;
        if (fd >= 0 && p[1].revents) {
            go = true;
            break;
        }
    }
    atomic_store(&t->doing, was);
    gp_measure_idle(t, since);
    return go;
}

bool gp_wait_fd(gp_call *c, int fd)
{
    return source_wait(c, fd, -1, false);
}

bool gp_wait_until(gp_call *c, int64_t t_ns)
{
    return source_wait(c, -1, t_ns > 0 ? t_ns : 0, false);
}

gp_status gp_wait_or_pause(gp_call *c, int fd, int64_t t_ns)
{
    const gp_threadrt *t = c->ctx;
    return source_wait(c, fd, t_ns, true) ? GP_OK : t->goes_back ? GP_AGAIN : GP_STOPPED;
}

/* ---- waits for other ranks ------------------------------------------- */

bool gp_run_joins(const gp_run *run, const gp_stage *s)
{
    const gp_run_options *o = &run->options;
    return s->joins && s->shared && o->joins && o->joins(o->gather_arg, s->name);
}

/* Another rank cannot wake a thread that waits for it. So that looks for a while (run/threads.c), and then rests, for
 * an eighth of the time that it has waited at most. */
static void rest(const gp_run *run, int64_t since)
{
    enum { LOOKS_NS = 50000, LEAST_NS = 5000, MOST_NS = 500000, SLACK_NS = 1000 };
    int64_t waited = gp_now_ns() - since, ns = waited / 8 > LEAST_NS ? waited / 8 : LEAST_NS;
    if (waited < LOOKS_NS || waited < run->spin_ns) {
        sched_yield();
        return;
    }
    prctl(PR_SET_TIMERSLACK, (unsigned long)SLACK_NS);         /* else a rest takes 50 us longer */
    nanosleep(&(struct timespec){ .tv_nsec = ns < MOST_NS ? ns : MOST_NS }, NULL);
}

/* Until the run is asked to end as `level` says, or has failed here, which ends all ranks. */
static const void *meet(const gp_run *run, int level, const gp_stage *st, const void *mine, size_t n, gp_errs *errs)
{
    const gp_graph *g = run->graph;
    int collective = 0, came = 0;
    const void *all = NULL;
    for (const gp_stage *s = g->stage; s < st; s++)
        collective += s->kind->collective || gp_run_joins(run, s);
    if (!run->options.gather && g->ranks > 1)
        gp_fail(errs, GP_E_USAGE, st->at, "stage '%s' needs what %d ranks have, and the run has no 'gather'", st->name,
                g->ranks);
    if (!run->options.gather)
        return g->ranks > 1 ? NULL : mine;
    for (int64_t since = gp_now_ns(); !came && atomic_load(&run->level) < level && !atomic_load(&run->failed);) {
        came = run->options.gather(run->options.gather_arg, collective, mine, n, &all, errs);
        if (!came)
            rest(run, since);
    }
    return came > 0 ? all : NULL;
}

/* Another rank may be long in coming. That is no stall here: it says so there. */
const void *gp_gather(gp_call *c, const void *mine, size_t n)
{
    gp_threadrt *t = c->ctx;
    int was = atomic_load(&t->doing);
    int64_t since = gp_measure_now(t->run);
    atomic_store(&t->actor->outside, true);
    atomic_store(&t->doing, GP_DOING_IDLE);
    const void *all = meet(t->run, 2, t->actor->stage, mine, n, c->errs);
    atomic_store(&t->doing, was);
    gp_measure_idle(t, since);
    return all;
}

const void *gp_open_gather(const gp_open *o, const void *mine, size_t n)
{
    const gp_run *run = o->ctx;
    return meet(run, 1, atomic_load(&run->opening), mine, n, o->errs);     /* others may open no more */
}

/* ---- stalls ---------------------------------------------------------- */

void gp_thread_known(atomic_int *tid, atomic_int *clock)
{
    clockid_t id;
    atomic_store(clock, pthread_getcpuclockid(pthread_self(), &id) ? -1 : id);
    atomic_store(tid, (int)syscall(SYS_gettid));
}

/* What the thread has computed so far, in ns: to move bytes takes some of it, too. */
static uint64_t computed(const atomic_int *tid, const atomic_int *clock)
{
    struct timespec t;
    if (!atomic_load(tid) || clock_gettime(atomic_load(clock), &t))
        return 0;
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static bool works(const gp_threadrt *t)
{
    int d = atomic_load(&t->doing);
    return d == GP_DOING_WORK || d == GP_DOING_FINISH;
}

/* Frames, and what computes: who works on a frame of a host stage, and the kernels where
 * they run on the CPU. The threads of a segment may spin while they wait for a device. */
static uint64_t progress(gp_run *run, int64_t now)
{
    uint64_t sum = 0;
    gp_stall_note(run, now);
    gp_turns_watch(run);
    for (int i = 0; i < run->plan->nactors; i++)
        sum += atomic_load(&run->actor[i].progress);
    for (int i = 0; i < run->nthreads; i++) {
        const gp_threadrt *t = &run->thread[i];
        if (t->actor->kind == GP_ACTOR_HOST && works(t) && gp_loan_is_worked_on(t))
            sum += computed(&t->tid, &t->clock);
    }
    for (int i = 0; i < run->plan->nactors; i++)
        sum += gp_segment_computed(&run->actor[i]);
    return sum;
}

/* A source waits for its input, or a sink for its reader, and nobody works. */
static bool idle(gp_run *run)
{
    bool waits = false, work = false, stuck = gp_loans_are_stuck(run);
    for (int i = 0; i < run->nthreads; i++) {
        const gp_threadrt *t = &run->thread[i];
        work |= works(t);
        waits |= atomic_load(&t->doing) == GP_DOING_IDLE && !(stuck && t->actor->on_loan);
    }
    return waits && !work;
}

static void stop_stalled(gp_run *run, const gp_errs *errs)
{
    gp_run_fail(run, errs);
    gp_run_level(run, 2);
}

static void stalled(gp_run *run, int64_t ns)
{
    gp_errs e = { .n = 0 };
    gp_stall_report(run, ns, &e);
    stop_stalled(run, &e);
}

/* Before frame 0, when there are no actors to look at. */
static void stalled_early(gp_run *run, int64_t ns)
{
    gp_errs e = { .n = 0 };
    if (gp_stall_report_early(run, ns, &e))
        stop_stalled(run, &e);
}

/* ---- who others do not wait for (leak.c) ------------------------------ */

bool gp_actor_is_behind_leak(const gp_actorrt *p)
{
    const gp_graph *g = p->run->graph;
    int at = 0;
    const gp_stage *st = gp_actor_stage(p, &at);
    bool is = p->leak != NULL;
    for (int i = 0; i < p->run->naccounts && !is; i++)
        is = gp_is_leaky(&g->stage[p->run->account[i].source]) && gp_comes_from(st, p->run->account[i].source);
    return is;
}

/* Have all ended, not paused, but these, which only wait for a reader? */
static bool leaks_are_left(const gp_run *run)
{
    bool waits = false, others = atomic_load(&run->pausing) != GP_PAUSE_NOT, leaks = false;
    for (int i = 0; i < run->nthreads; i++) {
        others |= works(&run->thread[i]);
        waits |= atomic_load(&run->thread[i].doing) == GP_DOING_IDLE;
    }
    for (int i = 0; i < run->plan->nactors && waits && !others; i++)
        if (!atomic_load(&run->actor[i].over))
            *(gp_actor_is_behind_leak(&run->actor[i]) ? &leaks : &others) = true;
    return waits && leaks && !others;
}

/* They take no more, and the run need not wait for them. */
static void give_up_leaks(gp_run *run)
{
    gp_errs e = { .n = 0 };
    for (int i = 0; i < run->plan->nactors; i++) {
        const gp_actorrt *p = &run->actor[i];
        if (!p->nout && !atomic_load(&p->over))
            gp_fail(&e, GP_E_WARN, gp_actor_at(p), "nobody takes what stage '%s' has, and all others are done: the frames that "
                    "it has not got are cancelled", p->name);
    }
    gp_run_fail(run, &e);
    atomic_store(&run->gave_up, true);
    gp_run_level(run, 2);
}

static int reader_wait(gp_call *c, int fd, bool pauses)
{
    gp_threadrt *t = c->ctx;
    if (!gp_actor_is_behind_leak(t->actor))
        return -1;
    int was = atomic_load(&t->doing);
    struct pollfd p = { .fd = fd, .events = POLLOUT };
    int64_t since = gp_measure_now(t->run);
    bool go = true;
    t->goes_back = false;
    for (bool waits = true; (go = atomic_load(&t->run->level) < 2) && !poll(&p, 1, 0) && waits; waits = fd >= 0) {
        if ((t->goes_back = pauses && is_to_give_back(t->actor)))
            break;
        atomic_store(&t->actor->outside, true);
        atomic_store(&t->doing, GP_DOING_IDLE);
        poll(&p, 1, TICK_MS);
    }
    atomic_store(&t->doing, was);
    gp_measure_idle(t, since);
    return t->goes_back ? 2 : go;
}

int gp_wait_for_reader(gp_call *c, int fd)
{
    return reader_wait(c, fd, false);
}

int gp_wait_for_reader_or_pause(gp_call *c, int fd)
{
    return reader_wait(c, fd, true);
}

/* ---- the watch ------------------------------------------------------- */

typedef struct gp_watcher {
    bool (*back)(gp_run *run);             /* the threads have returned */
    uint64_t (*progress)(gp_run *run, int64_t now);    /* rises when something moves */
    bool (*idle)(gp_run *run);       /* nothing need move */
    void (*stalled)(gp_run *run, int64_t ns);
    bool (*holds_up)(gp_run *run, int64_t ns, gp_errs *errs);  /* says who does */
    bool (*slow)(gp_run *run, int64_t ns, gp_errs *errs);      /* says who has been at a frame for so long; or NULL */
    bool (*leaks)(const gp_run *run);      /* is all over but what nobody waits for? or NULL */
} gp_watcher;

/* Who has cancelled twice hears whom he waited for, with all that is told of the run; who cancelled once hears it at
 * once (`early`). False: there is nobody to name yet. */
static bool tell_who(gp_run *run, const gp_watcher *w, bool early)
{
    const gp_run_options *o = &run->options;
    gp_errs e = { .n = 0 };
    bool told = (!early || o->held_up) && w->holds_up(run, LONG_MS * 1000000LL, &e);
    if (!early)
        gp_run_fail(run, &e);
    else if (told) {
        pthread_mutex_lock(&run->lock);
        for (int i = 0; i < run->errs.n && atomic_load(&run->failed); i++)
            if (run->errs.e[i].code != GP_E_WARN && run->errs.e[i].code != GP_E_NOTE) {
                gp_fail(&e, GP_E_NOTE, (gp_loc){ 0 }, "the run has failed: %s", run->errs.e[i].msg);
                break;
            }
        pthread_mutex_unlock(&run->lock);
        o->held_up(o->held_up_arg, true, &e);
    }
    return told;
}

/* Who computes is no stall, but may never end. */
static void tell_slow(gp_run *run, const gp_watcher *w)
{
    const gp_run_options *o = &run->options;
    gp_errs e = { .n = 0 };
    if (o->held_up && w->slow && w->slow(run, run->graph->stall_ns, &e))
        o->held_up(o->held_up_arg, false, &e);
}

/* As who asked for the end would do who does not wait any more. */
static bool stop_late(gp_run *run, const gp_watcher *w, int64_t ns)
{
    gp_errs e = { .n = 0 };
    gp_fail(&e, GP_E_WARN, (gp_loc){ .file = run->graph->file }, "the run has gone on for %lld s since it was to end, and is "
            "stopped at once", (long long)((ns + 500000000) / 1000000000));
    gp_run_fail(run, &e);
    bool told = tell_who(run, w, false);
    gp_cancel(run->pipeline, 2);
    return told;
}

static bool watch(gp_run *run, const gp_watcher *w)
{
    int64_t stall = run->graph->stall_ns, ticked = gp_now_ns(), now = ticked, moved = now, ends = 0, stopped = 0, left = now;
    uint64_t last = w->progress(run, ticked);
    int64_t stop = run->options.stop_ns, most_grace = GRACE_MS * 1000000LL;
    int64_t grace = stop && stop / 2 < most_grace ? stop / 2 : most_grace;
    bool told = false, told_early = false;
    struct pollfd p[2] = { { run->done_fd, POLLIN, 0 }, { run->pipeline->stop_fd, POLLIN, 0 } };

    for (;;) {
        int level = atomic_load(&run->level), asked = atomic_load(&run->pipeline->cancel);
        bool later = asked == 1 && run->goes_on;       /* what it goes on with is to come out: once it is set up */
        asked = later ? 0 : asked;
        if (asked > level)
            gp_run_level(run, level = asked);
        if (w->back(run))
            return true;
        /* stop_fd stays readable: look at it only until it has been heard */
        if (poll(p, level || later ? 1 : 2, TICK_MS) < 0 && errno != EINTR)
            usleep(1000 * TICK_MS);        /* no memory for poll: that is no end of the run */
        if (!level && !later && p[1].revents && !atomic_load(&run->pipeline->cancel))
            eventfd_read(run->pipeline->stop_fd, &(eventfd_t){ 0 });   /* it was of the run before */

        int64_t was = ticked, most = was + LATE_MS * 1000000LL;
        ticked = gp_now_ns();
        now += (ticked < most ? ticked : most) - was;
        uint64_t at = w->progress(run, ticked);
        if (at != last || !w->leaks || !w->leaks(run))
            left = now;
        if (level < 2 && now - left > LONG_MS * 1000000LL)
            give_up_leaks(run);
        if (at != last || w->idle(run))
            last = at, moved = now;
        if (level >= 2 && !stopped)
            stopped = now;
        if (level && !ends)
            ends = now;
        if (level == 1 && !told_early && now - ends > LONG_MS * 1000000LL)
            told_early = tell_who(run, w, true);
        if (level == 1 && stop && now - ends > stop - grace)
            told = stop_late(run, w, now - ends);
        if (!level && now - moved < stall / 2)         /* else it is a stall, if it goes on so */
            tell_slow(run, w);
        told = told || (asked >= 2 && tell_who(run, w, false));
        if (stopped && now - stopped > (!gp_loans_are_out(run) ? grace : stall ? stall : INT64_MAX))
            return w->back(run);
        if (stall && !stopped && now - moved > stall)
            w->stalled(run, now - moved);
    }
}

static bool all_left(gp_run *run)
{
    return !atomic_load(&run->live);
}

bool gp_watch(gp_run *run)
{
    return watch(run, &(gp_watcher){ all_left, progress, idle, stalled, gp_stall_holds_up, gp_stall_slow,
                                     leaks_are_left });
}

static bool is_up(gp_run *run)
{
    return atomic_load(&run->is_up);
}

static uint64_t steps(gp_run *run, int64_t now)
{
    const gp_stage *st = atomic_load(&run->opening);
    uint64_t opens = st ? computed(&run->set_up_tid, &run->set_up_clock) : 0;
    if (st && st->prologue && run->dev[0]->backend->computed)
        opens += run->dev[0]->backend->computed(run->dev[0], 0);
    return (uint64_t)atomic_load(&run->steps) + opens;
}

/* Memory of any size may be taken for as long as that lasts, and a compiler works for as
 * long as the user's kernel needs. */
static bool takes_memory_or_compiles(gp_run *run)
{
    if (!atomic_load(&run->opening) && !atomic_load(&run->warming))
        return true;
    bool compiling = false;
    for (int d = 0; d < run->ndevs; d++)                       /* set before these two */
        compiling |= run->dev[d] && atomic_load(&run->dev[d]->compiling);
    return compiling;
}

bool gp_watch_set_up(gp_run *run)
{
    return watch(run, &(gp_watcher){ is_up, steps, takes_memory_or_compiles, stalled_early,
                                     gp_stall_holds_up_early, NULL, NULL });
}
