/* reaper.c - the thread that waits for the launches of a segment in frame order, retires and publishes them. It
 * holds no lock while it calls the device. */
#include <sched.h>
#include <time.h>
#include "run/segment.h"
#include "run/tap.h"

static bool has_inflight(void *arg)
{
    gp_segmentrt *s = arg;
    return atomic_load(&s->issued) > atomic_load(&s->retired) || atomic_load(&s->over);
}

/* For the status: a frame that is not whole may be a hole in some outputs, or have few rows. */
static void count(gp_actorrt *p, const gp_inflight *fl)
{
    unsigned long long there = (unsigned)fl->n, bytes = p->seg->bytes * (unsigned)fl->n;
    if (fl->irregular || p->regroup)
        there = bytes = 0;
    for (uint64_t f = gp_actor_made(p, fl->first), end = gp_actor_made(p, fl->first + (uint64_t)fl->n) + !fl->n;
         (fl->irregular || p->regroup) && f < end; f++) {
        bool some = false;
        for (int o = 0; o < p->nout; o++) {
            gp_type t = gp_type_of(p->out[o], f);
            if (!gp_meta_of(p->out[o], f)->hole)
                bytes += gp_bytes(&t), some = true;
        }
        there += some;
    }
    atomic_fetch_add_explicit(&p->frames, there, memory_order_relaxed);
    atomic_fetch_add_explicit(&p->bytes, bytes, memory_order_relaxed);
}

/* Until frame `number` of the resident kernel is done: as gp_backend.wait. It looks
 * at memory that the device writes, and asks the driver now and then. */
static int await_resident(const gp_actorrt *p, uint64_t number, gp_errs *errs)
{
    enum { LOOKS = 1000, SLEEP_NS = 20000 };
    const gp_backend *be = p->seg->lane[0].dev->backend;
    gp_sync sync = p->run->graph->sync;
    int64_t start = 0;
    for (;;) {
        for (int i = 0; i < (sync == GP_SYNC_BLOCK ? 1 : LOOKS); i++)
            if (be->resident_done(p->seg->resident, number, NULL))
                return 1;
        int r = be->resident_done(p->seg->resident, number, errs);
        if (r)
            return r;
        int64_t now = gp_now_ns();
        if (!start)
            start = now;
        if (sync == GP_SYNC_YIELD)
            sched_yield();
        else if (sync == GP_SYNC_BLOCK || (sync == GP_SYNC_AUTO && now - start > p->run->spin_ns))
            nanosleep(&(struct timespec){ .tv_nsec = SLEEP_NS }, NULL);
    }
}

/* They are done in any order. */
static int await_residents(const gp_actorrt *p, const gp_inflight *fl, gp_errs *errs)
{
    int r = 1;
    for (int i = fl->n - 1; r == 1 && i >= 0; i--)
        r = await_resident(p, fl->number - (uint64_t)i, errs);
    return r;
}

/* Has a frame that is looked at, and is done, been written in full? `*lost`: the device is lost meanwhile. */
static bool is_written(gp_threadrt *t, const gp_inflight *fl, bool *lost)
{
    gp_actorrt *p = t->actor;
    int r;
    gp_batch o = { .p = p, .first = fl->first, .n = 1, .irregular = fl->irregular, .check = true, .recheck = true,
                   .again = true, .bare = true };
    while (!(r = gp_unwritten_look(p, fl->first, &t->errs)))
        if (!gp_segment_direct(p, fl->stream, gp_segment_record, &o, &t->errs)
            || gp_segment_wait(p, fl->stream, GP_SYNC_BLOCK, &t->errs) != 1) {
            *lost = true;
            return false;
        }
    return r > 0;
}

void *gp_segment_reaper(void *thread)
{
    gp_threadrt *t = thread;
    gp_actorrt *p = t->actor;
    gp_segmentrt *s = p->seg;
    gp_run *run = p->run;
    bool lost = false;
    for (;;) {
        uint64_t k = atomic_load(&s->retired);
        if (!has_inflight(s)) {
            gp_thread_doing(t, GP_DOING_WAIT, atomic_load(&s->reaped));
            gp_eventcount_wait(&s->done, has_inflight, s, run->spin_ns);
        }
        if (atomic_load(&s->issued) == k)
            break;
        gp_inflight fl = s->inflight[k % s->ninflight];
        gp_thread_doing(t, GP_DOING_WORK, fl.first);
        bool lost_now = false, done = fl.stream == GP_NO_STREAM
            || (fl.stream == GP_RESIDENT
                    ? await_residents(p, &fl, &t->errs)
                    : gp_segment_wait(p, fl.stream, run->graph->sync, &t->errs)) == 1;
        bool written = !done || lost || !fl.check || is_written(t, &fl, &lost_now);
        done &= !lost_now;
        if (!done && !lost)
            gp_segment_fault(t, atomic_load(&p->next));
        if (done && !written)
            gp_segment_fail_frame(t, fl.first);
        lost |= !done || !written;     /* then it only waits for what is in flight */
        bool finite = lost || gp_finite_launch(p, fl.first, &fl.n, &t->errs);
        if (fl.check && fl.irregular)
            gp_frame_set_whole(p);
        if (fl.check)
            atomic_store(&s->first, lost ? GP_FIRST_FAILED : gp_unwritten_goes_on(s->unwritten) ? GP_FIRST_DUE
                                             : (int)fl.then);
        if (!lost)
            gp_stamps_read(p, &fl);
        atomic_store(&s->retired, k + 1);
        if (fl.stream >= 0)
            atomic_store(&s->busy[fl.stream], false);
        if (!lost && (finite || fl.n)) {
            count(p, &fl);
            atomic_store(&p->flushed, !fl.n);
            gp_actor_complete(p, fl.first, fl.n);
            atomic_store(&s->reaped, fl.first + (uint64_t)fl.n);   /* behind: it has looked at the metas */
        }
        if (!finite) {
            lost = true;
            gp_segment_fail_frame(t, fl.first + (uint64_t)fl.n);
            atomic_store(&s->first, GP_FIRST_FAILED);  /* nothing more is launched */
        }
        gp_states_reaped(p);
        gp_eventcount_wake(&p->changed);
    }
    gp_segment_stop_resident(p);
    if (atomic_load(&p->paused))
        gp_actor_pause(p);
    else if (!atomic_load(&p->over))   /* it was, when a paused run went on */
        gp_actor_end(p, atomic_load(&s->reaped), p->nin > 1);
    return NULL;
}
