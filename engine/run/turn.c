/* turn.c - whose thread does the turns of a host stage.
 *
 * A turn of a worker is: take frames, run the stage, hand in (gp_host_step). Each worker has a thread, which does its
 * turns as long as there are frames, and sleeps. To wake it costs more than a cheap turn does, and so does moving
 * frames from core to core. So a thread that has moved frames goes on with the turns of those stages for which that
 * made frames or room, when these are cheap, and nobody is at them; then it comes back to its own. A pipeline with
 * little to do runs on the source's thread.
 *
 *   cheap     A stage's cost is the mean time of its turns, less FRAME_NS for each frame. Up to AWAKE_NS (ALONE_NS
 *             where each thread has a core) that is less than handing over to a thread that looks all the time; its
 *             own thread then sleeps at once. Up to ASLEEP_NS it is less than waking one: if it sleeps, it is woken
 *             once in a while only, and with much to do stays awake.
 *   turns     who does one has taken the worker (gp_threadrt.taken). Who gives it back looks whether there are frames
 *             again, and wakes its thread if so: they may have come meanwhile, from somebody who found it taken.
 *   alone     Sources, stages with several workers, and those that wait for something outside (gp_wait_fd,
 *             gp_wait_until) are left to their own threads. A source that does so also does nothing else.
 *   on loan   Turns of stages whose frames the program makes, or takes, are done by its threads (loan.c), which go on
 *             likewise. Such a stage's own thread only ends it.
 *   held up   A cheap turn may block all the same. When the watchdog finds a thread in it for a whole tick, that
 *             stage's own thread does the work of the one that is held up, until that is back, and all others look
 *             whether there is something to do. So what could not block the pipeline with a thread for each stage does
 *             not block it so, either.
 *
 * Threads do the turns of stages of their own priority only. Nobody but the worker's own thread ends a stage, or who
 * stands in for it. With `sync: spin` or `yield` threads never sleep, and each keeps to its own stage. */
#include <sys/resource.h>
#include "run/measure.h"
#include "run/pipeline.h"
#include "run/setup.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { SLOWER = 20 };          /* is all that is compiled so, threads that wake up included */
#else
enum { SLOWER = 1 };
#endif

enum {
    FRAME_NS = 20 * SLOWER, AWAKE_NS = 600 * SLOWER, ALONE_NS = 100 * SLOWER, ASLEEP_NS = 2300 * SLOWER,
    UNKNOWN_NS = 5000 * SLOWER,        /* before its first turns */
    HELD_UP_NS = 100000 * SLOWER,
    LONG_NS = 20000 * SLOWER,  /* a turn that may have waited for a core */
    SAMPLED = 8,               /* one in so many turns is timed */
    WEIGHT = 64,               /* the mean is of about so many */
    WOKEN = 256,               /* one in so many times a thread that could stay awake is woken */
    TURNS = 256,               /* the most before a thread comes back to its own stage */
    ROOM = 16,
};

void gp_turns_init(gp_run *run)
{
    int n = run->plan->nactors;
    gp_sync sync = run->graph->sync;
    run->awake_ns = run->pipeline->cpus > gp_threads_needed(run->plan) ? ALONE_NS : AWAKE_NS, run->asleep_ns = ASLEEP_NS;
    for (int i = 0; i < n; i++) {
        gp_actorrt *p = &run->actor[i];
        p->lends = p->kind == GP_ACTOR_HOST && p->stage->workers == 1 && !gp_is_leaky(p->stage)
                && (sync == GP_SYNC_AUTO || sync == GP_SYNC_BLOCK);
        p->lent = p->lends && !p->source && !p->on_loan;
        atomic_init(&p->cost, UNKNOWN_NS);
    }
}

/* ---- a turn ---------------------------------------------------------- */

static bool may_go(const gp_threadrt *t)
{
    return !atomic_load(&t->taken) && gp_host_look(t->actor) != GP_LOOK_WAIT;
}

/* What a worker has taken, it gives back. */
static void give_back(gp_threadrt *t)
{
    uint64_t next = atomic_load(&t->actor->next);
    gp_thread_doing(t, GP_DOING_WAIT, next);
    if (t->run->options.timed && gp_host_look(t->actor) == GP_LOOK_WAIT)
        gp_pause_begin(t, next);
    atomic_store(&t->taken, false);
}

static int64_t cost_of(const gp_actorrt *p)
{
    return atomic_load_explicit(&p->cost, memory_order_relaxed);
}

/* Has the thread lost its core since it was last asked, and has not slept? */
static bool was_preempted(gp_threadrt *me)
{
    struct rusage u;
    if (getrusage(RUSAGE_THREAD, &u))
        return false;
    bool lost = u.ru_nivcsw != me->lost_core && u.ru_nvcsw == me->slept;
    me->lost_core = u.ru_nivcsw, me->slept = u.ru_nvcsw;
    return lost;
}

/* As gp_host_step, of a worker that thread `me` has taken. */
static gp_look timed_step(gp_threadrt *me, gp_threadrt *t)
{
    gp_actorrt *p = t->actor;
    int n;
    bool timed = p->run->options.timed;
    if ((!p->lent && !timed) || t->turns % SAMPLED) {
        gp_look l = gp_host_step(t, &n);
        t->turns += l == GP_LOOK_GO;
        return l;
    }
    int64_t start = gp_now_ns(), was = cost_of(p);
    t->worked_ns = 0, t->halves = timed && t->turns / SAMPLED % 2;
    gp_look l = gp_host_step(t, &n);
    t->halves = false;
    int64_t took = gp_now_ns() - start;
    t->turns += l == GP_LOOK_GO;
    if (l == GP_LOOK_GO && timed)
        gp_measure_turn(t, took, n);
    if (!p->lent || l != GP_LOOK_GO || (took >= LONG_NS && was_preempted(me)))
        return l;
    if (t->samples < WEIGHT)
        t->samples++;
    atomic_store_explicit(&p->cost, was + (took - FRAME_NS * n - was) / (t->samples + 1), memory_order_relaxed);
    return l;
}

/* Thread `me` does a turn of worker t. WAIT: there is none to do, or another thread is at it. OVER and DIFFER: the
 * worker has to leave, and is taken until it has. */
static gp_look turn(gp_threadrt *me, gp_threadrt *t)
{
    if (atomic_load(&t->taken) || atomic_exchange(&t->taken, true))
        return GP_LOOK_WAIT;
    if (atomic_load_explicit(&t->tid, memory_order_relaxed) != me->own_tid) {
        atomic_store(&t->clock, me->own_clock);
        atomic_store(&t->tid, me->own_tid);
    }
    if (me != t) {
        atomic_fetch_add(&me->visits, 1);
        atomic_store(&me->at, t);
    }
    gp_look l = timed_step(me, t);
    if (l <= GP_LOOK_GO)
        give_back(t);
    if (me != t) {
        atomic_store(&me->at, NULL);
        gp_eventcount_wake(&me->actor->changed);   /* who stands in for it may go */
    }
    return l;
}

/* ---- going on with others -------------------------------------------- */

static bool is_cheap(gp_actorrt *p)
{
    int64_t c = cost_of(p);
    if (!p->lent || atomic_load(&p->outside) || c >= p->run->asleep_ns)
        return false;
    return c < p->run->awake_ns || (atomic_load(&p->changed.sleepers) && atomic_fetch_add(&p->offers, 1) % WOKEN);
}

/* Stages whose frames were moved, each by the one below it, and how many of those next to it have been told. */
typedef struct gp_moved { struct { gp_actorrt *p; int told; } at[ROOM]; int n, turns; } gp_moved;

static bool is_being_told_of(const gp_moved *m, const gp_actorrt *q)
{
    for (int i = 0; i < m->n; i++)
        if (m->at[i].p == q)
            return true;
    return false;
}

/* There may be frames, or room, for q. */
static void tell(gp_threadrt *me, gp_moved *m, gp_actorrt *q)
{
    if (q == me->actor || is_being_told_of(m, q))      /* its turn comes when all next to it know of the one before */
        return;
    if (q->lent && !may_go(q->thread))         /* or who is at it looks again */
        return;
    if (m->n == ROOM || q->priority != me->actor->priority || !is_cheap(q)) {
        gp_eventcount_wake(&q->changed);
        return;
    }
    gp_look l = m->turns < TURNS ? turn(me, q->thread) : GP_LOOK_WAIT;
    if (l == GP_LOOK_GO) {
        m->at[m->n].p = q, m->at[m->n++].told = 0;
        m->turns++;
        return;
    }
    if (l > GP_LOOK_GO)
        give_back(q->thread);
    if (may_go(q->thread))
        gp_eventcount_wake(&q->changed);
}

/* Thread `me` has moved frames of p: it tells all next to p. With `help` it goes on with them, and with those next to
 * them, and with each as long as there is something to do: a frame is passed on before the next one is begun, which may
 * block. */
static void tell_all(gp_threadrt *me, gp_actorrt *p, bool help)
{
    gp_moved m = { .at = { { p, 0 } }, .n = 1, .turns = help && !atomic_load(&p->outside) ? 0 : TURNS };
    while (m.n) {
        int top = m.n - 1;
        p = m.at[top].p;
        if (p->lends && m.at[top].told < p->nnear) {
            tell(me, &m, p->near[m.at[top].told++]);
            continue;
        }
        m.n--;
        tell(me, &m, p);
    }
}

/* ---- waiting --------------------------------------------------------- */

/* Do those before it do its turns, so that its thread need not look? */
static bool stays_away(const gp_actorrt *p)
{
    bool stays = p->lent && cost_of(p) < p->run->awake_ns && !atomic_load(&p->outside);
    for (int i = 0; stays && i < p->nin; i++) {
        const gp_actorrt *from = &p->run->actor[p->in[i].ring->ring->producer];
        stays = from->lends && from->priority == p->priority && !atomic_load(&from->outside);
    }
    return stays;
}

static void leave(gp_threadrt *t, gp_look l)
{
    gp_actorrt *p = t->actor;
    if (l == GP_LOOK_DIFFER)
        gp_actor_ends_differ(p, atomic_load(&p->next));
    if (l == GP_LOOK_PAUSED)
        atomic_store(&p->paused, true);
    gp_host_leave(t);
}

typedef struct gp_absence { gp_threadrt *t, *at; unsigned visit; } gp_absence;

static bool is_away(const gp_absence *a)
{
    return atomic_load(&a->t->at) == a->at && atomic_load(&a->t->visits) == a->visit;
}

static bool is_back_or_may_go(void *arg)
{
    const gp_absence *a = arg;
    return !is_away(a) || may_go(a->t);
}

/* While another thread is held up at a turn of t: thread t does its work. */
static void stand_in(gp_threadrt *t)
{
    gp_threadrt *home = atomic_exchange(&t->asked, NULL);
    gp_actorrt *p = home->actor;
    gp_absence a = { home, t, atomic_load(&home->visits) };
    while (is_away(&a) && !atomic_load(&p->over)) {
        gp_look l = turn(t, home);
        if (l != GP_LOOK_WAIT)
            tell_all(t, p, false);
        if (l > GP_LOOK_GO)
            leave(home, l);
        if (l == GP_LOOK_WAIT)
            gp_eventcount_wait(&p->changed, is_back_or_may_go, &a, p->run->spin_ns);
    }
    gp_eventcount_wake(&p->changed);
}

static bool is_due(void *thread)
{
    const gp_threadrt *t = thread;
    return may_go(t) || atomic_load(&t->asked) || atomic_load(&t->actor->over);
}

/* ---- stages on loan: their turns are the program's ------------------- */

static _Thread_local atomic_int program_tid, program_clock;    /* of a thread of the program, once it is known */

int gp_turn_tid(void)
{
    if (!atomic_load(&program_tid))
        gp_thread_known(&program_tid, &program_clock);
    return atomic_load(&program_tid);
}

bool gp_turn_take(gp_threadrt *t)
{
    if (atomic_load(&t->taken) || atomic_exchange(&t->taken, true))
        return false;
    if (t->own_tid != gp_turn_tid()) {
        t->own_tid = gp_turn_tid(), t->own_clock = atomic_load(&program_clock);
        atomic_store(&t->clock, t->own_clock);
        atomic_store(&t->tid, t->own_tid);
    }
    return true;
}

bool gp_turn_is_one_of_the_last(const gp_actorrt *p)
{
    const gp_ringrt *r = p->nin ? p->in[0].ring : NULL;
    return r && (atomic_load(&r->end) != GP_UNKNOWN || atomic_load(&r->paused));
}

void gp_turn_give_back(gp_threadrt *t, gp_doing doing)
{
    gp_actorrt *p = t->actor;
    uint64_t next = atomic_load(&p->next);
    gp_thread_doing(t, doing, next);
    if (doing == GP_DOING_WAIT && gp_host_look(p) == GP_LOOK_WAIT)
        gp_pause_begin(t, next);
    atomic_store(&t->taken, false);
    gp_look l = gp_host_look(p);
    if (l != GP_LOOK_WAIT)             /* others of the program may have found it taken */
        gp_eventcount_wake(&p->changed);
    if (l > GP_LOOK_GO || (l == GP_LOOK_GO && gp_turn_is_one_of_the_last(p)))
        gp_eventcount_wake(&p->to_end);
}

void gp_turn_tell(gp_threadrt *t)
{
    tell_all(t, t->actor, t->actor->priority == GP_PRIORITY_NORMAL);
}

/* ---- a thread -------------------------------------------------------- */

void *gp_host_thread(void *thread)
{
    gp_threadrt *t = thread;
    gp_actorrt *p = t->actor;
    if (p->leak) {
        gp_leak_thread(t);
        return NULL;
    }
    if (p->on_loan) {
        leave(t, gp_loan_await_end(t));
        return NULL;
    }
    while (!atomic_load(&p->over)) {
        gp_look l = turn(t, t);
        if (l != GP_LOOK_WAIT)
            tell_all(t, p, l == GP_LOOK_GO);
        if (l > GP_LOOK_GO) {
            leave(t, l);
            break;
        }
        if (l == GP_LOOK_WAIT && gp_eventcount_wait(&p->changed, is_due, t, stays_away(p) ? 0 : p->run->spin_ns))
            was_preempted(t);
        if (atomic_load(&t->asked))
            stand_in(t);
    }
    return NULL;
}

void gp_turns_watch(gp_run *run)
{
    for (int i = 0; i < run->nthreads; i++) {
        gp_threadrt *t = &run->thread[i], *at = atomic_load(&t->at);
        unsigned visits = atomic_load(&t->visits);
        if (at && at == t->seen.at && visits == t->seen.visits) {
            atomic_store(&at->actor->cost, HELD_UP_NS);
            if (!t->actor->on_loan)            /* else that is the program's */
                atomic_store(&at->asked, t);
            for (int k = 0; k < run->plan->nactors; k++)       /* it has not told all of what it did before */
                gp_eventcount_wake(&run->actor[k].changed);
        }
        t->seen.at = at, t->seen.visits = visits;
    }
}
