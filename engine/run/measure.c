/* measure.c - counters of a timed run, see measure.h.
 *
 * Each counter has one thread that writes it, or is atomic; nobody waits here. The
 * mean fill of a buffer needs no samples: frames were there from when they were
 * published until they were given back, so the sum of these times over the run's is
 * the mean (Little's law). The sums of both moments wrap after some hours; their
 * difference, which is at most depth times the run, does not. */
#include <time.h>
#include "run/measure.h"
#include "run/segment.h"
#include "run/trace.h"

static void add(atomic_ullong *to, int64_t ns)
{
    atomic_fetch_add_explicit(to, (unsigned long long)ns, memory_order_relaxed);
}

/* What it lacks for frame `next`, which it cannot take. */
static gp_wait_reason blocked_on(const gp_actorrt *p, uint64_t next)
{
    if (p->kind == GP_ACTOR_SEGMENT
        && next - atomic_load(&p->seg->reaped) >= (uint64_t)p->segment->depth)
        return GP_WAITS_FOR_OUTPUT;         /* first: what is in flight holds its inputs too */
    for (int i = 0; i < p->nin; i++)
        if (gp_actor_firings(p, atomic_load(&p->in[i].ring->produced.at)) <= next)
            return GP_WAITS_FOR_INPUT;
    for (int o = 0; o < p->nout; o++) {
        const gp_ringrt *r = p->out[o];
        for (int c = 0; c < r->ring->nconsumers; c++)
            if (!atomic_load(&r->consumed[c].closed)
                && gp_actor_room(p, r, atomic_load(&r->consumed[c].at)) <= next)
                return GP_WAITS_FOR_OUTPUT;
    }
    return p->kind == GP_ACTOR_SEGMENT ? GP_WAITS_FOR_STREAM : GP_WAITS_FOR_OUTPUT;
}

void gp_pause_begin(gp_threadrt *t, uint64_t frame)
{
    if (t->run->options.timed && !t->blocked.since)
        t->blocked = (gp_blocked){ gp_now_ns(), blocked_on(t->actor, frame) };
}

void gp_pause_end(gp_threadrt *t, uint64_t frame)
{
    static const char *const names[] = { "input", "output", "stream" };
    gp_blocked p = t->blocked;
    if (!p.since)
        return;
    t->blocked.since = 0;
    int64_t now = gp_now_ns();
    add(&t->actor->wait_ns[p.block], now - p.since);
    gp_trace_slice(t->track, GP_TRACE_WAIT, names[p.block], p.since, now, frame, 1);
}

static int64_t thread_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* The clock is a system call: of what takes less than LONG_NS one in SAMPLED is sampled. */
int64_t gp_measure_cpu(gp_threadrt *t)
{
    enum { SAMPLED = 16 };
    bool due = t->run->options.stamped && (t->takes_long || t->works % SAMPLED == 0);
    t->works++;
    return due ? thread_ns() : 0;
}

int64_t gp_measure_cpu_since(int64_t since)
{
    return since ? thread_ns() - since : 0;
}

void gp_measure_work(gp_threadrt *t, gp_interval span, uint64_t first, int n)
{
    enum { LONG_NS = 20000 };
    if (!span.start)
        return;
    add(&t->actor->busy_ns, span.end - span.start);
    t->worked_ns += span.end - span.start;
    t->takes_long = span.end - span.start > LONG_NS;
    if (span.cpu) {
        add(&t->actor->sampled_ns, span.end - span.start);
        add(&t->actor->cpu_ns, span.cpu);
    }
    if (!n)
        return;
    gp_hist_add(t->time, (span.end - span.start) / n, (uint64_t)n);
    gp_trace_slice(t->track, GP_TRACE_STAGE, t->actor->name, span.start, span.end, first, n);
}

void gp_measure_idle(gp_threadrt *t, int64_t since)
{
    if (!since)
        return;
    int64_t now = gp_now_ns();
    if (t->actor->on_loan)             /* others are in their kind's code meanwhile, which is a span of work */
        add(&t->actor->busy_ns, now - since);
    add(&t->actor->idle_ns, now - since);
    gp_trace_slice(t->track, GP_TRACE_WAIT, "source", since, now, atomic_load(&t->frame), 1);
}

void gp_measure_launch(gp_threadrt *t, int64_t since, uint64_t first, int n)
{
    if (!since)
        return;
    int64_t now = gp_now_ns();
    add(&t->actor->busy_ns, now - since);
    add(&t->actor->launches, 1);
    gp_trace_slice(t->track, GP_TRACE_LAUNCH, t->actor->name, since, now, first, n);
}

/* Firings [first, next) of p made frames of which a reader, one that takes one of several, gave some back before: to
 * it they count as given back now. */
static void put_used(const gp_actorrt *p, gp_cursor *c, uint64_t first, uint64_t next, uint64_t since)
{
    uint64_t used = atomic_load(&c->at), from = gp_actor_made(p, first), to = gp_actor_made(p, next);
    if (used > from)
        atomic_fetch_add_explicit(&c->got, ((used < to ? used : to) - from) * (since - atomic_load(&c->last)),
                                  memory_order_relaxed);
}

void gp_measure_move_(gp_actorrt *p, uint64_t first, int n)
{
    const gp_run *run = p->run;
    int64_t now = gp_now_ns();
    uint64_t since = (uint64_t)(now - run->start_ns), next = first + (uint64_t)n;
    uint64_t put = (n ? gp_actor_made(p, next) - gp_actor_made(p, first) : 1) * since;     /* 0: the last few made one */
    uint64_t got = (gp_actor_used(p, next) - gp_actor_used(p, first)) * since;
    for (int o = 0; o < p->nout; o++) {
        atomic_fetch_add_explicit(&p->out[o]->put, put, memory_order_relaxed);
        for (int c = 0; c < p->out[o]->ring->nconsumers; c++)
            put_used(p, &p->out[o]->consumed[c], first, next, since);
    }
    for (int i = 0; i < p->nin; i++) {
        gp_cursor *c = &p->in[i].ring->consumed[p->in[i].consumer];
        atomic_fetch_add_explicit(&c->got, got, memory_order_relaxed);
        atomic_store_explicit(&c->last, since, memory_order_relaxed);
    }
    gp_trace_slice(p->moves, GP_TRACE_MOVE, p->name, now, now, first, n);
}

int64_t gp_measure_held(const gp_run *run, const gp_ring_end *l, int64_t now)
{
    const gp_ringrt *r = l->ring;
    const gp_cursor *c = &r->consumed[l->consumer];
    if (atomic_load(&c->closed))
        return atomic_load(&c->held_ns);
    uint64_t made = atomic_load(&r->produced.at), used = atomic_load(&c->at);
    uint64_t sum = atomic_load(&c->got) - atomic_load(&r->put);
    if (made >= used)
        sum += (made - used) * (uint64_t)(now - run->start_ns);
    else                               /* given back before they are made: not held at all */
        sum -= (used - made) * atomic_load(&c->last);
    int64_t most = r->ring->depth * (now - run->start_ns), held = (int64_t)sum;
    return held < 0 ? 0 : held < most ? held : most;
}

void gp_measure_end(gp_actorrt *p, uint64_t end)
{
    if (!p->run->options.timed)
        return;
    int64_t now = gp_now_ns();
    atomic_store(&p->end_ns, now);
    for (int i = 0; i < p->nin; i++)
        atomic_store(&p->in[i].ring->consumed[p->in[i].consumer].held_ns,
                     gp_measure_held(p->run, &p->in[i], now));
    gp_trace_slice(p->moves, GP_TRACE_MOVE, p->name, now, now, end, 0);
}
