/* tap.c - copies of frames for who looks at a run, see tap.h.
 *
 * Invariant: a tap is in the list of its pipeline while it waits, and only then is it written by threads of the run, with
 * the list's lock. Inside a segment, whose rings have no counters, a frame stays until its launch is reaped: it is copied
 * by the reaper, as are those that the segment publishes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "compile/plan.h"
#include "run/segment.h"
#include "run/tap.h"

struct gp_tap {
    gp_pipeline *pipeline;
    const gp_buffer *buffer;
    gp_tap *next;              /* in the list */
    bool listed, full;
    gp_tap_status ended;       /* OVER, FAILED: in place of a frame; else OK */
    int64_t at;                /* the frame that it wants; -1: the next one */
    gp_actorrt *actor;         /* while it is listed, and a run goes on; */
    gp_ringrt *ring;           /* ... whose thread copies from this */
    gp_tapped frame;
    uint64_t holes;
    char *data; size_t room;   /* malloc'd */
    gp_errs errs;
};

/* ---- which buffer, where ---------------------------------------------- */

/* The stage of fused ones that has `name` between them; NULL: none. */
static const gp_stage *fused_around(const gp_graph *g, const char *name)
{
    for (int i = 0; i < g->nstages; i++)
        for (int k = 0; k < g->stage[i].ninside; k++)
            if (!strcmp(g->stage[i].inside[k], name))
                return &g->stage[i];
    return NULL;
}

static const gp_buffer *find(const gp_pipeline *p, const char *name, gp_errs *errs)
{
    const gp_graph *g = p->graph;
    const gp_stage *fused = fused_around(g, name);
    const gp_loc file = { .file = g->file };
    char all[600] = "";
    gp_near near = GP_NEAR(name);
    for (int i = 0; i < g->nbuffers; i++) {
        const gp_buffer *b = &g->buffer[i];
        size_t n = strlen(all);
        if (b->state && !strcmp(b->name, name))
            return GP_NULL(gp_fail(errs, GP_E_USAGE, b->at, "'%s' is a state, which stages change while it is looked at: let "
                                   "a stage make a buffer of it, such as {use: expr, in: %s, expr: in}, and look at that",
                                   name, name));
        if (!strcmp(b->name, name) && !b->hidden)
            return !gp_is_const(b) ? b : GP_NULL(gp_fail(errs, GP_E_USAGE, b->at, "'%s' is a constant, and has no frames", name));
        if (!gp_is_const(b) && !b->hidden && !b->state) {
            snprintf(all + n, sizeof all - n, "%s%s", n ? ", " : "", b->name);
            gp_near_try(&near, b->name);
        }
    }
    if (fused)
        gp_fail(errs, GP_E_USAGE, fused->at, "'%s' is nowhere in memory: the stages around it are computed as one, '%s'; run "
                "it with --set fuse=none", name, fused->name);
    else if (*name)
        gp_fail(errs, GP_E_USAGE, file, "no buffer '%s'; there are: %s%s", name, all, gp_near_text(&near));
    else
        gp_fail(errs, GP_E_USAGE, file, "no buffer is named; there are: %s", all);
    return NULL;
}

/* Where it is published, best on the host; else inside a segment, whose launches it is a part of. */
static void attach(gp_tap *t, gp_run *run)
{
    const gp_plan *plan = run->plan;
    t->actor = NULL;
    for (int i = 0; i < plan->nrings; i++) {
        gp_ringrt *r = &run->ring[i];
        if (r->buffer != t->buffer)
            continue;
        for (int a = 0; a < plan->nactors && r->ring->segment >= 0 && !t->actor; a++)
            if (run->actor[a].segment == &plan->segment[r->ring->segment])
                t->actor = &run->actor[a], t->ring = r;
        if (r->ring->segment < 0 && (!t->actor || t->ring->ring->segment >= 0 || !r->ring->place.device))
            t->actor = &run->actor[r->ring->producer], t->ring = r;
    }
    if (!t->actor)
        gp_fail(&t->errs, GP_E_BUG, t->buffer->at, "'%s' is in no ring of the plan", t->buffer->name);
    else if (t->actor->mark0)
        gp_fail(&t->errs, GP_E_USAGE, t->buffer->at, "'%s' is written by the program itself in the memory of the device, and "
                "only the GPU knows when that is done; look at what is made of it", t->buffer->name);
    else if (t->ring->ring->segment >= 0 && (t->buffer->varies || t->actor->regroup))
        gp_fail(&t->errs, GP_E_USAGE, t->buffer->at, "frames of '%s' differ %s, and stay in the device: only what leaves it "
                "can be looked at", t->buffer->name, t->buffer->varies ? "in shape" : "in number");
    if (t->errs.failed)
        t->ended = GP_TAP_FAILED;
    else
        atomic_fetch_add(&t->actor->taps, 1);
}

/* With the lock. */
static void take_off(gp_tap *t)
{
    gp_tap **at = &t->pipeline->taps.first;
    while (*at != t)
        at = &(*at)->next;
    *at = t->next;
    if (t->actor)
        atomic_fetch_sub(&t->actor->taps, 1);
    t->listed = false, t->actor = NULL;
}

void gp_taps_begin(gp_run *run)
{
    gp_taps *taps = &run->pipeline->taps;
    pthread_mutex_lock(&taps->lock);
    taps->run = run, taps->over = false;
    for (gp_tap *t = taps->first, *next; t; t = next) {
        next = t->next;
        attach(t, run);
        if (t->ended)
            take_off(t);
    }
    pthread_cond_broadcast(&taps->changed);
    pthread_mutex_unlock(&taps->lock);
}

void gp_taps_end(gp_run *run)
{
    gp_taps *taps = &run->pipeline->taps;
    pthread_mutex_lock(&taps->lock);
    taps->run = NULL, taps->over = true;
    while (taps->first) {
        taps->first->ended = GP_TAP_OVER;
        take_off(taps->first);
    }
    pthread_cond_broadcast(&taps->changed);
    pthread_mutex_unlock(&taps->lock);
}

/* ---- copying ------------------------------------------------------------ */

typedef struct copying { void *to; const void *from; size_t bytes; gp_run *run; int device; gp_errs *errs; bool done; } copying;

static bool record_copy(gp_rec *r, void *arg)
{
    const copying *c = arg;
    return r->ops->item(r, 0, NULL, 0) && r->ops->copy(r, c->to, c->from, c->bytes);
}

static void copy_and_wait(void *arg)
{
    copying *c = arg;
    gp_dev *dev = c->run->dev[c->device];
    int stream = c->run->tap_stream[c->device];
    bool queued = dev->backend->direct(dev, stream, record_copy, c, c->errs);
    c->done = dev->backend->wait(dev, stream, GP_SYNC_BLOCK, c->errs) == 1 && queued;
}

bool gp_taps_fetch(gp_run *run, const gp_ringrt *r, uint64_t f, void *to, size_t bytes, gp_errs *errs)
{
    const gp_place place = r->ring->place;
    copying c = { to, gp_slot(r, f), bytes, run, place.index + (place.device ? gp_lane(place, f) : 0), errs, false };
    if (!place.device || run->plan->unified) {
        memcpy(to, c.from, bytes);
        return true;
    }
    gp_dev *dev = run->dev[c.device];
    return dev->backend->call(dev, copy_and_wait, &c) && c.done;
}

static bool has_room(gp_tap *t, size_t bytes)
{
    if (bytes <= t->room)
        return true;
    free(t->data);
    t->room = 0;
    if ((t->data = malloc(bytes)))
        t->room = bytes;
    return t->data || gp_fail(&t->errs, GP_E_RESOURCE, t->buffer->at, "out of memory for a frame of '%s'", t->buffer->name);
}

/* Frame f of its ring, which is no hole. */
static void fill(gp_tap *t, uint64_t f)
{
    const gp_actorrt *p = t->actor;
    const gp_ringrt *r = t->ring;
    const bool inside = r->ring->segment >= 0;
    gp_type type = inside ? r->buffer->type : gp_type_of(r, f);
    size_t bytes = gp_bytes(&type);
    int64_t time_ns = inside ? gp_frame_meta_of(p, f, r->ring->buffer).time_ns : gp_meta_of(r, f)->time_ns;
    if (has_room(t, bytes) && gp_taps_fetch(p->run, r, f, t->data, bytes, &t->errs))
        t->frame = (gp_tapped){ gp_actor_number(p, f), t->holes, time_ns, type, t->data, bytes }, t->full = true;
    else
        t->ended = GP_TAP_FAILED;
    t->holes = 0;
    take_off(t);
}

static bool is_hole(const gp_tap *t, uint64_t f)
{
    return t->ring->ring->segment < 0 ? gp_meta_of(t->ring, f)->hole : !gp_frame_is_regular(t->actor, f);
}

static void look(gp_tap *t, uint64_t from, uint64_t to)
{
    if (t->at < 0) {
        while (to > from && is_hole(t, to - 1))
            to--, t->holes++;
        if (to > from)
            fill(t, to - 1);
        return;
    }
    uint64_t at = (uint64_t)t->at;
    bool hole = at >= from && at < to && is_hole(t, at);
    if (at >= from && at < to && !hole) {
        fill(t, at);
    } else if (at < to) {
        gp_fail(&t->errs, GP_E_RUN, t->buffer->at, hole ? "frame %llu of '%s' is a hole: it was dropped, failed, or is not whole "
                "where it stays in the device" : "frame %llu of '%s' has passed already", (unsigned long long)at, t->buffer->name);
        t->ended = GP_TAP_FAILED;
        take_off(t);
    }
}

void gp_taps_copy(gp_actorrt *p, uint64_t first, int n)
{
    gp_taps *taps = &p->run->pipeline->taps;
    pthread_mutex_lock(&taps->lock);
    for (gp_tap *t = taps->first, *next; t; t = next) {
        next = t->next;
        if (t->actor == p && t->ring->ring->segment >= 0)
            look(t, first, first + (uint64_t)n);
        else if (t->actor == p)
            look(t, atomic_load(&t->ring->produced.at), gp_actor_made(p, first + (uint64_t)n));
    }
    pthread_cond_broadcast(&taps->changed);
    pthread_mutex_unlock(&taps->lock);
}

/* ---- who looks ---------------------------------------------------------- */

gp_tap *gp_tap_begin(const gp_pipeline *p, const char *buffer, gp_errs *errs)
{
    const gp_buffer *b = find(p, buffer, errs);
    gp_tap *t = b ? calloc(1, sizeof *t) : NULL;
    if (t)
        t->pipeline = (gp_pipeline *)p, t->buffer = b;
    else if (b)
        gp_fail(errs, GP_E_RESOURCE, b->at, "out of memory");
    return t;
}

/* With the lock: it waits for a frame, unless there can be none. */
static void put_on(gp_tap *t, int64_t at)
{
    gp_taps *taps = &t->pipeline->taps;
    t->at = at, t->ended = taps->over ? GP_TAP_OVER : GP_TAP_OK;
    t->errs = (gp_errs){ .n = 0 };
    if (t->ended)
        return;
    t->next = taps->first, taps->first = t, t->listed = true;
    if (taps->run)
        attach(t, taps->run);
    if (t->ended)
        take_off(t);
}

gp_tap_status gp_tap_take(gp_tap *t, int64_t frame, int64_t timeout_ns, gp_tapped *out, gp_errs *errs)
{
    gp_taps *taps = &t->pipeline->taps;
    struct timespec end = gp_moment(timeout_ns < 0 ? INT64_MAX / 2 : gp_now_ns() + timeout_ns);
    pthread_mutex_lock(&taps->lock);
    if (!t->listed && !t->full && (!t->ended || (t->ended == GP_TAP_OVER && !taps->over)))
        put_on(t, frame);
    while (t->listed && pthread_cond_timedwait(&taps->changed, &taps->lock, &end) != ETIMEDOUT)
        ;
    gp_tap_status is = t->full ? GP_TAP_OK : t->listed ? GP_TAP_TIMEOUT : t->ended;
    if (t->full)
        *out = t->frame, t->full = false;
    pthread_mutex_unlock(&taps->lock);
    if (is == GP_TAP_FAILED)
        gp_errs_add(errs, &t->errs);
    return is;
}

void gp_tap_end(gp_tap *t)
{
    if (!t)
        return;
    pthread_mutex_lock(&t->pipeline->taps.lock);
    if (t->listed)
        take_off(t);
    pthread_mutex_unlock(&t->pipeline->taps.lock);
    free(t->data), free(t);
}
