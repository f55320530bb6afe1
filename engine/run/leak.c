/* leak.c - the stage before an input that does not wait (compile/leaky.c): it takes each frame as soon as that is made,
 * whether its reader has room for it or not, so that nobody before it ever waits for that reader.
 *
 * A slot of a ring is free for its producer when all of its readers are done with it, and one that may never be has to
 * be given back before: so frames are copied here, into a slot of the next ring where one is free, else, with
 * `drop-oldest`, into a queue of as many frames as the ring before has slots. What finds no room is dropped, the frame
 * that came, or the oldest in the queue. Its number stays: the reader gets holes for all numbers that it did not get,
 * as it has room for these, so that a frame of its own is always the one of that number. It is known how many holes of
 * each sort are still to come, not which of them is which: that needs no memory, however long the reader is away.
 *
 * For the account the stage is a sink of those before it, and a source of those behind it (account.c). What is dropped
 * here counts at once, long before a sink sees the hole. One thread does all of it. Where sinks do nothing, nobody is
 * slow, and all frames are wanted (gpipe probe): it waits for room as any other stage. */
#include <string.h>
#include "run/measure.h"
#include "run/paused.h"

typedef struct gp_held { uint64_t frame; gp_meta meta; gp_type type; gp_numbers numbers; } gp_held;

struct gp_leakrt {
    gp_accountrt *account;
    int cap, first, n;         /* of the queue; with `drop-newest` cap is 0 */
    gp_held *held;
    char *data;
    size_t stride;
    uint64_t holes[GP_HOLES];  /* that are still to come, by their sort */
    gp_meta last;              /* of the last frame that was taken: the name and time that a hole has */
};

void gp_leak_init(gp_actorrt *p)
{
    gp_run *run = p->run;
    gp_arena *a = &run->arena;
    struct gp_leakrt *l = p->leak = GP_NEW(a, struct gp_leakrt, 1);
    const gp_ringrt *in = p->in[0].ring;
    l->account = &run->account[run->account_of[p->stage - run->graph->stage]];
    l->cap = gp_leaky_when(p->stage) == GP_WHEN_FULL_DROP_OLDEST ? in->ring->depth : 0;
    l->held = GP_NEW(a, gp_held, l->cap);
    l->stride = gp_bytes(&in->buffer->type);
    l->data = gp_alloc(a, l->stride * (size_t)l->cap);
}

/* ---- what it makes ------------------------------------------------------ */

static uint64_t made(const gp_actorrt *p)
{
    return atomic_load(&p->out[0]->produced.at);
}

static bool has_room(const gp_actorrt *p)
{
    const gp_ringrt *r = p->out[0];
    uint64_t used = UINT64_MAX;
    for (int c = 0; c < r->ring->nconsumers; c++) {
        uint64_t at = atomic_load(&r->consumed[c].at);
        used = at < used ? at : used;
    }
    return made(p) < used + (uint64_t)gp_ring_room(r);
}

/* May frame f of the input be taken now? */
static bool may_take(const gp_actorrt *p, uint64_t f)
{
    return f < atomic_load(&p->in[0].ring->produced.at) && (!p->run->options.no_sinks || (made(p) == f && has_room(p)));
}

/* The bytes of a frame: of a partial one those of a whole one, as readers find 0 behind its rows. */
static size_t bytes_of(const gp_ringrt *r, const gp_type *t)
{
    return gp_bytes(r->type ? t : &r->buffer->type);
}

/* Frame f, whose slot is free, is this one, or with `data` NULL a hole. */
static void publish(gp_actorrt *p, uint64_t f, const gp_meta *m, const gp_type *t, const gp_numbers *numbers, const void *data)
{
    gp_ringrt *r = p->out[0];
    gp_meta *to = gp_meta_of(r, f);
    bool touched = to->touched || data;
    *to = *m;
    to->touched = touched;
    gp_set_type(r, f, t);
    gp_numbers_write(r, f, data ? numbers : NULL);
    if (data) {
        atomic_store(&r->there, f + 1);
        memcpy(gp_slot(r, f), data, bytes_of(r, t));
        atomic_fetch_add_explicit(&p->frames, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&p->bytes, gp_bytes(t), memory_order_relaxed);
    } else if (p->tells_holes)
        gp_buffer_hole(p->run, r->buffer, f, m->hole);
    gp_measure_move(p, f, 1);
    atomic_store(&r->produced.at, f + 1);
    atomic_fetch_add(&p->progress, 1ULL);
    for (int c = 0; c < r->ring->nconsumers; c++)
        gp_eventcount_wake(&p->run->actor[r->ring->consumer[c]].changed);
}

static void publish_hole(gp_actorrt *p, uint64_t f)
{
    struct gp_leakrt *l = p->leak;
    gp_meta m = l->last;
    int sort = GP_HOLES - 1;
    while (sort && !l->holes[sort])
        sort--;
    l->holes[sort]--;
    m.hole = (gp_hole)sort;
    publish(p, f, &m, &p->out[0]->buffer->type, NULL, NULL);
}

/* Passes on what there is room for. Was there anything? */
static bool give(gp_actorrt *p)
{
    struct gp_leakrt *l = p->leak;
    uint64_t f, next = atomic_load(&p->next);
    bool gave = false;
    for (; (f = made(p)) < next && has_room(p) && atomic_load(&p->run->level) < 2; gave = true) {
        gp_held *h = l->n ? &l->held[l->first] : NULL;
        if (!h || h->frame != f) {
            publish_hole(p, f);
            continue;
        }
        publish(p, f, &h->meta, &h->type, &h->numbers, l->data + (size_t)l->first * l->stride);
        l->first = (l->first + 1) % l->cap, l->n--;
    }
    return gave;
}

/* ---- what it takes ------------------------------------------------------ */

static void drop_one(struct gp_leakrt *l)
{
    l->holes[GP_HOLE_FULL]++;
    atomic_fetch_add(&l->account->dropped, 1);
    atomic_fetch_add(&l->account->full, 1);
}

/* Frame f of the input, which is no hole, and for which there is no slot. */
static void hold(gp_actorrt *p, uint64_t f, const gp_meta *m, const gp_type *t)
{
    struct gp_leakrt *l = p->leak;
    gp_ringrt *in = p->in[0].ring;
    const gp_numbers *numbers = gp_numbers_of(in, f);
    if (l->n == l->cap)
        drop_one(l);
    if (!l->cap)
        return;
    if (l->n == l->cap)
        l->first = (l->first + 1) % l->cap, l->n--;
    int at = (l->first + l->n++) % l->cap;
    l->held[at] = (gp_held){ .frame = f, .meta = *m, .type = *t };
    if (numbers)
        l->held[at].numbers = *numbers;
    memcpy(l->data + (size_t)at * l->stride, gp_slot(in, f), bytes_of(in, t));
}

static void take_one(gp_actorrt *p, uint64_t f)
{
    struct gp_leakrt *l = p->leak;
    gp_ringrt *in = p->in[0].ring;
    const gp_meta m = *gp_meta_of(in, f);
    const gp_type t = gp_type_of(in, f);
    atomic_fetch_add(&l->account->in, 1);
    if (m.hole)                        /* dropped here or there are two things: what was for another is as any other */
        l->holes[m.hole == GP_HOLE_FULL || m.hole == GP_HOLE_UNDONE ? GP_HOLE_DROPPED : m.hole]++;
    else if (made(p) == f && has_room(p))
        publish(p, f, &m, &t, gp_numbers_of(in, f), gp_slot(in, f));
    else
        hold(p, f, &m, &t);
    l->last = m;
    unsigned char hole = (unsigned char)m.hole;
    for (int i = 0; i < p->run->naccounts; i++)
        if (&p->run->account[i] != l->account)
            gp_account_seen(&p->run->account[i], (int)(p->stage - p->run->graph->stage), f, 1, &hole);
    atomic_store(&p->next, f + 1);
    atomic_store(&in->consumed[p->in[0].consumer].at, f + 1);
    if (in->ring->producer >= 0)
        gp_eventcount_wake(&p->run->actor[in->ring->producer].changed);
}

static bool take(gp_threadrt *t)
{
    gp_actorrt *p = t->actor;
    bool took = false;
    uint64_t f;
    for (; may_take(p, f = atomic_load(&p->next)) && atomic_load(&p->run->level) < 2; took = true) {
        gp_thread_doing(t, GP_DOING_WORK, f);
        give(p);
        take_one(p, f);
    }
    return took;
}

/* ---- a pause ---------------------------------------------------------------- */

/* The queue may be shorter now: then the oldest frames in it find no room. One that has ended makes no holes of what it
 * takes back: its frames end before. */
void gp_leak_take(gp_actorrt *p, const gp_actorrt *was, const gp_held_frame *frame, int n)
{
    struct gp_leakrt *l = p->leak;
    const struct gp_leakrt *from = was->leak;
    memcpy(l->holes, from->holes, sizeof l->holes);
    l->last = from->last;
    for (const gp_held_frame *f = frame; f < frame + n; f++) {
        if (f->meta.hole) {
            l->holes[f->meta.hole]++;
            continue;
        }
        drop_one(l);
        atomic_fetch_sub(&p->frames, 1);
        atomic_fetch_sub(&p->bytes, gp_bytes(&f->type));
    }
    for (int i = 0; i < from->n; i++) {
        int at = (from->first + i) % from->cap;
        if (from->n - i > l->cap) {
            drop_one(l);
            continue;
        }
        l->held[l->n] = from->held[at];
        memcpy(l->data + (size_t)l->n++ * l->stride, from->data + (size_t)at * from->stride, l->stride);
    }
}

/* ---- the thread ----------------------------------------------------------- */

static bool is_over(const gp_actorrt *p)
{
    uint64_t next = atomic_load(&p->next);
    return atomic_load(&p->run->level) >= 2 || !gp_actor_is_wanted(p)
        || (atomic_load(&p->in[0].ring->end) <= next && made(p) == next);
}

/* At once where all pause; else when what sources made is taken. What waits here goes on later. */
static bool is_to_pause(const gp_actorrt *p)
{
    return atomic_load(&p->run->pausing) == GP_PAUSE_ALL
        || (atomic_load(&p->in[0].ring->paused) && !may_take(p, atomic_load(&p->next)));
}

static bool may_go(void *actor)
{
    const gp_actorrt *p = actor;
    uint64_t next = atomic_load(&p->next);
    return is_over(p) || is_to_pause(p) || may_take(p, next) || (made(p) < next && has_room(p));
}

/* What its reader has not got stays so: the holes that it made are counted, the others are now. */
static void count_rest(struct gp_leakrt *l)
{
    atomic_fetch_add(&l->account->failed, l->holes[GP_HOLE_FAILED]);
    atomic_fetch_add(&l->account->late, l->holes[GP_HOLE_LATE]);
    atomic_fetch_add(&l->account->missed, l->holes[GP_HOLE_LOST]);
    atomic_fetch_add(&l->account->dropped, l->holes[GP_HOLE_DROPPED] + l->holes[GP_HOLE_LATE] + l->holes[GP_HOLE_LOST]);
}

void gp_leak_thread(gp_threadrt *t)
{
    gp_actorrt *p = t->actor;
    while (!is_over(p)) {
        if (is_to_pause(p)) {
            atomic_store(&p->paused, true);
            gp_actor_pause(p);
            return;
        }
        bool took = take(t), gave = give(p);
        if (took || gave)
            continue;
        gp_thread_doing(t, GP_DOING_WAIT, atomic_load(&p->next));
        gp_pause_begin(t, atomic_load(&p->next));
        gp_eventcount_wait(&p->changed, may_go, p, p->run->spin_ns);
        gp_pause_end(t, atomic_load(&p->next));
    }
    uint64_t next = atomic_load(&p->next);
    bool early = !gp_actor_is_wanted(p) || atomic_load(&p->run->level) >= 2;
    if (early)
        atomic_store(&p->leak->account->cut, true);
    count_rest(p->leak);
    for (int i = 0; !early && i < p->run->naccounts; i++)
        if (&p->run->account[i] != p->leak->account)
            gp_account_last(&p->run->account[i], (int)(p->stage - p->run->graph->stage), next);
    gp_actor_end(p, next, early);
}
