/* ring.c - counters, waiting, and when an actor may take a frame.
 *
 * Invariant: a slot is written by the producer while produced <= frame and read
 * by consumer c while consumed[c] <= frame < produced. Counters only rise. A
 * counter is stored, then the other side's sleepers are read; a sleeper first
 * counts itself, then reads the counters: all sequentially consistent, so that
 * no wake is lost. */
#include <time.h>
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/eventfd.h>
#include "base/plural.h"
#include "run/measure.h"
#include "run/paused.h"
#include "run/regroup.h"
#include "run/segment.h"
#include "run/tap.h"

void gp_eventcount_init(gp_eventcount *p)
{
    atomic_init(&p->sleepers, 0);
    pthread_mutex_init(&p->lock, NULL);
    gp_cond_init(&p->wake);
    p->fd = -1;
}

void gp_eventcount_fini(gp_eventcount *p)
{
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->wake);
}

bool gp_eventcount_wait_until(gp_eventcount *p, bool (*ready)(void *arg), void *arg, int64_t spin_ns, int64_t end_ns)
{
    enum { SHORT = 200, LONG = 2000, IDLE_CORES_NS = 100000 };
    int tight = spin_ns < IDLE_CORES_NS ? SHORT : LONG;    /* pauses: a few or 50 us */
    int64_t until = 0;
    for (int i = 0; spin_ns; i++) {
        if (ready(arg))
            return false;
        if (i < tight) {
            gp_relax();
            continue;
        }
        int64_t now = gp_now_ns();
        if (!until)
            until = spin_ns < INT64_MAX - now ? now + spin_ns : INT64_MAX;
        if (now >= end_ns)
            return false;
        if (now > until)
            break;
        sched_yield();
    }
    pthread_mutex_lock(&p->lock);
    atomic_fetch_add(&p->sleepers, 1);
    gp_wakes_forget(p->wakes);
    struct timespec end = gp_moment(end_ns);
    while (!ready(arg)) {
        if (end_ns == INT64_MAX)
            pthread_cond_wait(&p->wake, &p->lock);
        else if (pthread_cond_timedwait(&p->wake, &p->lock, &end) == ETIMEDOUT)
            break;
        gp_wakes_awake(p->wakes);
    }
    atomic_fetch_sub(&p->sleepers, 1);
    pthread_mutex_unlock(&p->lock);
    return true;
}

bool gp_eventcount_wait(gp_eventcount *p, bool (*ready)(void *arg), void *arg, int64_t spin_ns)
{
    return gp_eventcount_wait_until(p, ready, arg, spin_ns, INT64_MAX);
}

void gp_eventcount_wake(gp_eventcount *p)
{
    if (!atomic_load(&p->sleepers))
        return;
    int64_t start = p->wakes ? gp_now_ns() : 0;
    pthread_mutex_lock(&p->lock);
    gp_wakes_begin(p->wakes, start);
    pthread_cond_broadcast(&p->wake);
    if (p->armed) {
        p->armed = false;
        atomic_fetch_sub(&p->sleepers, 1);
        eventfd_write(p->fd, 1);
    }
    gp_wakes_end(p->wakes, start);
    pthread_mutex_unlock(&p->lock);
}

void gp_eventcount_set_fd(gp_eventcount *p, int fd)
{
    pthread_mutex_lock(&p->lock);
    p->fd = fd;
    pthread_mutex_unlock(&p->lock);
}

void gp_eventcount_arm(gp_eventcount *p)
{
    pthread_mutex_lock(&p->lock);
    if (p->fd >= 0 && !p->armed) {
        p->armed = true;
        atomic_fetch_add(&p->sleepers, 1);
    }
    pthread_mutex_unlock(&p->lock);
}

/* ---- looking --------------------------------------------------------- */

uint64_t gp_ring_frames(const gp_ringrt *r)
{
    uint64_t end = atomic_load(&r->end), at = atomic_load(&r->produced.at);
    return end == GP_UNKNOWN && at >= atomic_load(&r->most) ? at : end;
}

/* The place in the file of its stage that reads buffer b. */
static gp_loc reader_at(const gp_actorrt *p, const gp_buffer *b)
{
    const gp_stage *st;
    for (int i = 0; (st = gp_actor_stage(p, &i)); )
        for (int u = 0; u < b->nuse; u++)
            if (st == &p->run->graph->stage[b->use[u].stage])
                return st->at;
    return gp_actor_at(p);
}

void gp_actor_ends_differ(gp_actorrt *p, uint64_t next)
{
    const gp_buffer *ended = NULL, *goes_on = NULL;
    for (int i = 0; i < p->nin; i++) {
        gp_ringrt *r = p->in[i].ring;
        if (atomic_load(&r->most) <= next)
            ended = ended ? ended : r->buffer;
        else if (!gp_follows(p, r->buffer) && atomic_load(&r->there) > next)
            goes_on = r->buffer;
    }
    if (!ended || !goes_on)
        return;
    gp_errs e = { .n = 0 };
    gp_fail(&e, GP_E_RUN, reader_at(p, goes_on),
            "the inputs of '%s' have different lengths: '%s' ended after %llu frame%s, '%s' has "
            "more%s", p->name, ended->name, (unsigned long long)next, gp_plural((int64_t)next),
            goes_on->name, ended->follows && !ended->carried
            ? ", of which none was held: does a 'tail: drop' leave out the last?" : "");
    gp_run_fail(p->run, &e);
}

/* How many firings there are when no more frames than these come. After an error there is none of too few: what that
 * makes would look as if it were of all. */
static uint64_t firings_in_all(const gp_actorrt *p, uint64_t frames)
{
    return atomic_load(&p->run->failed) ? gp_firings_ready(p->regroup, frames) : gp_firings_in_all(p->regroup, frames);
}

static void wake_producer(gp_ringrt *r, gp_run *run)
{
    if (r->ring->producer >= 0)
        gp_eventcount_wake(&run->actor[r->ring->producer].changed);
}

/* Does ring r of actor p have no room for what its producer makes next? */
static bool is_full(const gp_actorrt *p, const gp_ringrt *r, uint64_t used)
{
    const gp_actorrt *from = &p->run->actor[r->ring->producer];
    return atomic_load(&from->next) >= gp_actor_room(from, r, used);
}

/* What a buffer has of a frame behind the end of an input. NEITHER: it goes by the others. */
enum { NEITHER, REAL, HOLE, ENDED };

static int behind(const gp_actorrt *p, const gp_ringrt *r, uint64_t f)
{
    return gp_follows(p, r->buffer) ? NEITHER : atomic_load(&r->most) <= f ? ENDED : gp_meta_of(r, f)->hole ? HOLE : REAL;
}

/* Would frame f be lost if `p` ended before it: does a stage have it beside an input that has ended, or make it for
 * others? What meets a hole is dropped anyway. */
static bool goes_on_at(const gp_actorrt *p, uint64_t f)
{
    gp_segmentrt *s = p->seg;
    bool has[ENDED + 1] = { false }, lost = false;
    for (int i = 0; i < p->nin; i++) {
        int is = behind(p, p->in[i].ring, f);
        has[is] = true;
        if (s)
            s->behind[p->in[i].ring->ring->buffer] = (unsigned char)is;
    }
    if (!s || !has[HOLE] || !has[REAL])
        return has[REAL] && !has[HOLE];
    for (int i = 0; i < s->nparts; i++) {
        const gp_stage *st = s->part[i].stage;
        bool meets[ENDED + 1] = { false };
        for (int k = 0; st && k < st->nin && !gp_stage_circles_back(st); k++)
            if (st->in[k] >= 0 && !gp_is_const(&p->run->graph->buffer[st->in[k]]))
                meets[s->behind[st->in[k]]] = true;
        for (int k = 0; st && k < st->nout; k++)
            s->behind[st->out[k]] = meets[ENDED] ? ENDED : meets[HOLE] ? HOLE : meets[REAL] ? REAL : NEITHER;
        lost |= meets[ENDED] && meets[REAL] && !meets[HOLE];
    }
    for (int o = 0; o < p->nout; o++)
        lost |= s->behind[p->out[o]->ring->buffer] == REAL;
    return lost;
}

/* Consumes the frames of input i up to `to`, of which those that are no holes meet one, and are dropped. True: there
 * were some, and its producer is to be woken. */
static bool skip(gp_actorrt *p, int i, uint64_t next, uint64_t to)
{
    gp_ringrt *r = p->in[i].ring;
    _Atomic uint64_t *at = &r->consumed[p->in[i].consumer].at;
    uint64_t used = atomic_load(at);
    if (used < next || used >= to)
        return false;
    for (uint64_t f = used; f < to && !gp_follows(p, r->buffer); f++)
        if (!gp_meta_of(r, f)->hole)
            gp_buffer_hole(p->run, r->buffer, f, GP_HOLE_DROPPED);
    atomic_store(at, to);
    return true;
}

/* One of several inputs has ended after `next` frames, or will: do others go on? Holes, what meets them and held
 * frames do not count. They are consumed, so that what is behind them can come, once no frame before them is in
 * flight; whoever made holes told the accounts. What will end may wait for what comes behind a frame that is no hole
 * and fills its ring: then it is as if it had ended. *woken gets a bit for each input whose producer has room again.
 * One thread at a time, as slots that one gives back may be written while another still reads their metas. */
static gp_look behind_end_locked(gp_actorrt *p, uint64_t next, unsigned *woken)
{
    bool ended = false, goes_on = false, unknown = false, lacks = false, full = false;
    uint64_t to = UINT64_MAX, all = next, f = UINT64_MAX;      /* up to `to` frames are there, where there are any */
    for (int i = 0; i < p->nin; i++) {
        gp_ringrt *r = p->in[i].ring;
        bool paused = atomic_load(&r->paused);
        uint64_t end = atomic_load(&r->end), at = atomic_load(&r->produced.at);
        uint64_t used = atomic_load(&r->consumed[p->in[i].consumer].at);
        ended |= end <= next;
        if (end > next && gp_follows(p, r->buffer) && !r->buffer->endless)
            *woken |= (unsigned)skip(p, i, next, at) << i;
        if (end <= next || gp_follows(p, r->buffer))
            continue;
        unknown |= at < end, lacks |= at < end && paused;
        to = atomic_load(&r->most) > at && at < to ? at : to;
        all = at > all ? at : all;
        f = used < f && atomic_load(&r->most) > used ? used : f;
    }
    for (f = f < next ? next : f, to = all < to ? all : to; f < to && !(goes_on = goes_on_at(p, f));)
        f++;
    for (int i = 0; i < p->nin; i++) {
        gp_ringrt *r = p->in[i].ring;
        uint64_t at = atomic_load(&r->produced.at), used = atomic_load(&r->consumed[p->in[i].consumer].at);
        if (gp_follows(p, r->buffer) || atomic_load(&r->end) <= next)
            continue;
        full |= goes_on && at > f && is_full(p, r, used);
        *woken |= (unsigned)skip(p, i, next, f < at ? f : at) << i;
    }
    bool stopping = atomic_load(&p->run->level) > 0;   /* it rises before a stopped source ends: look again */
    return ended && (stopping || !(goes_on || unknown)) ? GP_LOOK_OVER
         : (ended && goes_on) || (full && !stopping) ? GP_LOOK_DIFFER : lacks ? GP_LOOK_PAUSED : GP_LOOK_WAIT;
}

static gp_look behind_end(gp_actorrt *p, uint64_t next)
{
    unsigned woken = 0;
    pthread_mutex_lock(&p->behind);
    gp_look look = behind_end_locked(p, next, &woken);
    pthread_mutex_unlock(&p->behind);
    for (int i = 0; i < p->nin; i++)
        if (woken >> i & 1)
            wake_producer(p->in[i].ring, p->run);
    return look;
}

gp_look gp_actor_look(gp_actorrt *p, uint64_t next, int max, int *n)
{
    gp_run *run = p->run;
    int level = atomic_load(&run->level);
    if (level >= 2 || (level >= 1 && p->source))
        return GP_LOOK_OVER;

    uint64_t avail = (uint64_t)max;
    int pausing = atomic_load(&run->pausing);
    bool over = false, lacks = false;  /* lacks: frames, or room, that will not come in this run */
    if (pausing == GP_PAUSE_ALL || (p->source && pausing == GP_PAUSE_SOURCES))
        return GP_LOOK_PAUSED;
    if (p->source && pausing == GP_PAUSE_HOLD)
        return GP_LOOK_WAIT;
    if (p->source && pausing == GP_PAUSE_AT) {
        if (p->pause_at <= next)
            return GP_LOOK_PAUSED;
        avail = p->pause_at - next < avail ? p->pause_at - next : avail;
    }
    for (int i = 0; i < p->nin; i++) {
        gp_ringrt *r = p->in[i].ring;
        bool paused = atomic_load(&r->paused);         /* before what was made, as the end is */
        uint64_t end = atomic_load(&r->end), all = gp_ring_frames(r), at = gp_actor_firings(p, atomic_load(&r->produced.at));
        if (p->regroup && all != GP_UNKNOWN) {
            at = firings_in_all(p, all);
            end = end == GP_UNKNOWN ? end : at;
        }
        over |= end <= next || (at <= next && p->nin > 1 && atomic_load(&r->most) <= next);
        lacks |= at <= next && paused;
        uint64_t more = at > next ? at - next : 0;     /* after an error a rest is none any more, also one that was launched */
        avail = more < avail ? more : avail;
    }
    if (over)
        return p->nin > 1 ? behind_end(p, next) : GP_LOOK_OVER;

    int wanted = 0;
    for (int o = 0; o < p->nout; o++) {
        gp_ringrt *r = p->out[o];
        for (int c = 0; c < r->ring->nconsumers; c++) {
            if (atomic_load(&r->consumed[c].closed))
                continue;
            wanted++;
            bool paused = atomic_load(&r->consumed[c].paused);
            uint64_t to = gp_actor_room(p, r, atomic_load(&r->consumed[c].at)), room = to > next ? to - next : 0;
            lacks |= !room && paused;
            if (room < avail)
                avail = room;
        }
    }
    if (p->nout && !wanted)
        return GP_LOOK_OVER;
    *n = (int)avail;
    if (avail && atomic_load(&run->level) >= 2)        /* room may be that of a loan that ended since: gp_pull_end */
        return GP_LOOK_OVER;
    return avail ? GP_LOOK_GO : lacks ? GP_LOOK_PAUSED : GP_LOOK_WAIT;
}

/* ---- moving ---------------------------------------------------------- */

static void wake_consumers(gp_ringrt *r, gp_run *run)
{
    for (int c = 0; c < r->ring->nconsumers; c++)
        gp_eventcount_wake(&run->actor[r->ring->consumer[c]].changed);
}

/* Which of its frames up to `to` are holes. */
static void look_for_holes(gp_actorrt *p, gp_ringrt *r, uint64_t to)
{
    uint64_t there = 0;
    for (uint64_t f = atomic_load(&r->produced.at); f < to; f++) {
        gp_hole hole = gp_meta_of(r, f)->hole;
        if (hole)
            gp_buffer_hole(p->run, r->buffer, f, hole);
        else
            there = f + 1;
    }
    if (there)
        atomic_store(&r->there, there);
}

void gp_actor_complete(gp_actorrt *p, uint64_t first, int n)
{
    gp_run *run = p->run;
    gp_measure_move(p, first, n);
    if (atomic_load_explicit(&p->taps, memory_order_relaxed))
        gp_taps_copy(p, first, n);
    for (int o = 0; o < p->nout && p->tells_holes; o++)
        look_for_holes(p, p->out[o], gp_actor_made(p, first + (uint64_t)n));
    if (p->source)
        atomic_fetch_add(&run->account[run->account_of[p->stage - run->graph->stage]].in,
                         (uint64_t)n);
    for (int o = 0; o < p->nout; o++) {
        atomic_store(&p->out[o]->produced.at, gp_actor_made(p, first + (uint64_t)n));
        if (!p->lends)
            wake_consumers(p->out[o], run);
    }
    for (int i = 0; i < p->nin; i++) {
        gp_ringrt *r = p->in[i].ring;
        atomic_store(&r->consumed[p->in[i].consumer].at, gp_actor_used(p, first + (uint64_t)n));
        if (!p->lends)
            wake_producer(r, run);
    }
    atomic_fetch_add(&p->progress, (unsigned long long)n);
}

/* Is an actor, which a walk of end_sinks has reached, to tell of its end itself? Another of its inputs may still have
 * holes behind the end, and frames count as what the worst of them is. */
static bool tells_itself(const gp_actorrt *p)
{
    bool waits = false;
    for (int i = 0; i < p->nin; i++) {
        const gp_ringrt *r = p->in[i].ring;
        waits |= !gp_follows(p, r->buffer) && !p->run->visited[r->ring->producer] && atomic_load(&r->end) == GP_UNKNOWN;
    }
    return waits;
}

/* Tells the accounts that no sink behind `p`, which fires no more from `end` on, sees what that would have made. What
 * others behind it drop at the end they tell themselves. */
static void end_sinks(gp_actorrt *p, uint64_t end)
{
    gp_run *run = p->run;
    const gp_actorrt *self = p;
    int n = 0;
    pthread_mutex_lock(&run->lock);
    memset(run->visited, 0, sizeof *run->visited * (size_t)run->plan->nactors);
    run->visited[p->index] = true;
    run->todo[n++] = p->index, run->todo_end[p->index] = end;
    while (n) {
        p = &run->actor[run->todo[--n]];
        end = run->todo_end[p->index];
        for (int l = 0; l < run->naccounts && (!p->nout || p->leak); l++)     /* a sink: a host stage */
            gp_account_end(&run->account[l], (int)(p->stage - run->graph->stage), end);
        for (int o = 0; o < p->nout; o++)
            for (int c = 0; c < p->out[o]->ring->nconsumers; c++) {
                int to = p->out[o]->ring->consumer[c];
                if (tells_itself(&run->actor[to]))
                    continue;
                const gp_regroup *g = run->actor[to].regroup;
                uint64_t frames = !p->regroup ? end : (p == self ? gp_frames_in_all : gp_frames_at_most)(p->regroup, end);
                if (!run->visited[to])
                    run->todo[n++] = to, run->todo_end[to] = g ? gp_firings_at_most(g, frames) : frames;
                run->visited[to] = true;
            }
    }
    pthread_mutex_unlock(&run->lock);
}

bool gp_actor_is_wanted(const gp_actorrt *p)
{
    bool open = !p->nout;
    for (int o = 0; o < p->nout; o++)
        for (int c = 0; c < p->out[o]->ring->nconsumers; c++)
            open |= !atomic_load(&p->out[o]->consumed[c].closed);
    return open;
}

/* Has an input ended after `next` firings, or does nobody want what they make? Else it has no reason to end. */
static bool has_come_to_end(const gp_actorrt *p, uint64_t next)
{
    bool ended = !p->nin;
    for (int i = 0; i < p->nin; i++) {
        uint64_t end = atomic_load(&p->in[i].ring->end);
        ended |= end != GP_UNKNOWN && (p->regroup ? firings_in_all(p, end) : end) <= next;
    }
    return ended || !gp_actor_is_wanted(p);
}

/* Before sinks behind it end, and files get their names: frames that are lost are no end. */
static void check_end(gp_actorrt *p, uint64_t next)
{
    gp_run *run = p->run;
    gp_errs e = { .n = 0 };
    if (has_come_to_end(p, next) || p->broke || atomic_load(&run->level) || atomic_load(&run->failed))
        return;
    gp_fail(&e, GP_E_BUG, gp_actor_at(p), "'%s' ended after %llu frame%s, and its inputs have not", p->name,
            (unsigned long long)next, gp_plural((int64_t)next));
    gp_run_fail(run, &e);
}

void gp_ring_limit(gp_run *run, gp_ringrt *r, uint64_t frames)
{
    if (frames >= atomic_load(&r->most))
        return;
    atomic_store(&r->most, frames);
    for (int c = 0; c < r->ring->nconsumers; c++) {
        const gp_actorrt *to = &run->actor[r->ring->consumer[c]];
        const gp_regroup *g = to->regroup;
        for (int o = 0; o < to->nout; o++)
            gp_ring_limit(run, to->out[o], g ? gp_frames_at_most(g, gp_firings_at_most(g, frames)) : frames);
    }
}

void gp_actor_end(gp_actorrt *p, uint64_t end, bool early)
{
    gp_run *run = p->run;
    check_end(p, end);
    if (early && !atomic_load(&run->level)) {
        end_sinks(p, end);
        for (int i = 0; i < p->nin; i++)
            gp_buffer_lost(run, p->in[i].ring->buffer, end);
    }
    gp_measure_end(p, end);
    uint64_t left = p->regroup ? gp_regroup_left_out(p, end) : GP_UNKNOWN;
    if (left != GP_UNKNOWN) {
        end_sinks(p, end);
        gp_buffer_lost(run, p->in[0].ring->buffer, left);
    }
    pthread_mutex_lock(&run->lock);
    for (int o = 0; o < p->nout; o++) {
        atomic_store(&p->out[o]->end, gp_actor_made(p, end));
        gp_ring_limit(run, p->out[o], gp_actor_made(p, end));
    }
    pthread_mutex_unlock(&run->lock);
    for (int i = 0; i < p->nin; i++)
        atomic_store(&p->in[i].ring->consumed[p->in[i].consumer].closed, true);
    gp_run_wake(run);                  /* see gp_ringrt.most */
    atomic_store(&p->over, true);
    atomic_fetch_add(&p->progress, 1ULL);
    gp_run_pause_rest(run);
}
