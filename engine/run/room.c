/* room.c - how many slots of its rings a run uses around a segment of small frames.
 *
 * Such rings have slots for launches of many frames (compile/depth.c). All of them in use from the start would only make
 * frames late wherever something else holds the run up: a slow sink would have a long queue before it, and Ctrl-C would
 * wait for all that is in it. So the run begins with `begins` slots, and the launcher doubles them while the segment
 * is what holds it up: its inputs are nearly full, nobody lets what it made wait, and launches are short. Where later a
 * consumer lets frames wait that takes long for each, the run goes back to the slots that it began with. */
#include "run/segment.h"

enum { LAUNCHES = 16, SHORT_NS = 1000000 };

static bool grows(const gp_ringrt *r)
{
    return atomic_load_explicit(&r->room, memory_order_relaxed) < atomic_load_explicit(&r->limit, memory_order_relaxed);
}

/* Frames of the ring that are there for a consumer. */
static uint64_t held(const gp_ringrt *r, int consumer)
{
    uint64_t used = atomic_load(&r->consumed[consumer].at), made = atomic_load(&r->produced.at);
    return made > used ? made - used : 0;
}

static bool holds_up(const gp_actorrt *p)
{
    bool is = true, any = false;
    for (int i = 0; i < p->nin && is; i++) {
        const gp_ringrt *r = p->in[i].ring;
        any |= grows(r);
        /* not quite full: a source that reads many at once has some slots for its next frames just then */
        is = !grows(r) || held(r, p->in[i].consumer) * 3 >= (uint64_t)gp_ring_room(r) * 2;
    }
    for (int o = 0; o < p->nout && is; o++) {
        const gp_ringrt *r = p->out[o];
        any |= grows(r);
        for (int c = 0; c < r->ring->nconsumers; c++)
            is &= atomic_load(&r->consumed[c].closed) || held(r, c) <= (uint64_t)gp_ring_room(r) / 4;
    }
    return is && any;
}

/* Does it use more slots than at first, and a consumer lets nearly as many frames wait as there is room for? */
static bool is_behind(const gp_actorrt *p)
{
    bool grown = false, behind = false;
    for (int i = 0; i < p->nin + p->nout; i++) {
        const gp_ringrt *r = i < p->nin ? p->in[i].ring : p->out[i - p->nin];
        grown |= gp_ring_room(r) > r->ring->begins;
    }
    for (int o = 0; o < p->nout && grown && !behind; o++) {
        const gp_ringrt *r = p->out[o];
        for (int c = 0; c < r->ring->nconsumers; c++)
            behind |= !atomic_load(&r->consumed[c].closed) && held(r, c) >= (uint64_t)gp_ring_room(r) * 3 / 4;
    }
    return behind;
}

/* Who waits for room, or for more frames than there is room for now, looks again. */
static void wake_around(const gp_actorrt *p, const gp_ringrt *r)
{
    for (int c = 0; c < r->ring->nconsumers; c++)
        gp_eventcount_wake(&p->run->actor[r->ring->consumer[c]].changed);
    if (r->ring->producer >= 0)
        gp_eventcount_wake(&p->run->actor[r->ring->producer].changed);
}

static void shrink(const gp_actorrt *p, gp_ringrt *r)
{
    int room = atomic_load(&r->room);
    if (room > r->ring->begins && atomic_compare_exchange_strong(&r->room, &room, r->ring->begins))
        wake_around(p, r);
}

/* Over some launches in a row. */
static void may_shrink(gp_actorrt *p)
{
    gp_roomrt *s = &p->seg->grown;
    if (!is_behind(p)) {
        s->behind = 0;
        return;
    }
    int64_t now = gp_now_ns();
    uint64_t next = atomic_load(&p->next);
    if (!s->behind++)
        s->behind_ns = now, s->behind_from = next;
    if (s->behind <= LAUNCHES)
        return;
    s->behind = 0;
    if (now - s->behind_ns > (int64_t)(next - s->behind_from) * SHORT_NS)
        for (int i = 0; i < p->nin + p->nout; i++)
            shrink(p, i < p->nin ? p->in[i].ring : p->out[i - p->nin]);
}

/* The segment on the other side may do the same at this time. */
static void grow(gp_ringrt *r)
{
    int room = atomic_load(&r->room), limit = atomic_load(&r->limit), more = 2 * room < limit ? 2 * room : limit;
    if (more > room)
        atomic_compare_exchange_strong(&r->room, &room, more);
}

void gp_room_launched(gp_actorrt *p)
{
    gp_roomrt *s = &p->seg->grown;
    may_shrink(p);
    if (!holds_up(p)) {
        s->launches -= s->launches > 0;
        return;
    }
    int64_t now = gp_now_ns();
    s->since_ns = s->launches++ ? s->since_ns : now;
    if (s->launches < LAUNCHES)
        return;
    s->launches = 0;
    if (now - s->since_ns > (int64_t)LAUNCHES * SHORT_NS)
        return;
    for (int i = 0; i < p->nin + p->nout; i++)
        grow(i < p->nin ? p->in[i].ring : p->out[i - p->nin]);
    for (int i = 0; i < p->nin; i++)
        if (p->in[i].ring->ring->producer >= 0)
            gp_eventcount_wake(&p->run->actor[p->in[i].ring->ring->producer].changed);
}
