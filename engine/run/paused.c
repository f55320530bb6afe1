/* paused.c - a run that pauses, and goes on under another plan.
 *
 *   stop    All sources stop at once, where they are, and what waits in rings stays there: the plan that comes has room
 *           for it (retune.c). Or, where ranks meet in several collectives, at the end of the same period (gp_rate), so
 *           that stages that join them have taken as much of each; what they made goes through. An actor that can fire
 *           no more, because of that, leaves without an end: nothing is flushed.
 *   keep    What the next frames need is noted: frames in rings, state that is carried on the device, counters. That
 *           stays where it is until the next run has begun, which copies it. Host stages stay open, but those that fill
 *           the device's memory, which keep nothing between frames.
 *   go on   The next run has a plan with the same actors and rings; so what was kept goes by index. Frames keep their
 *           numbers: frame f lies in slot f mod depth, whatever the depth is then. */
#include <stdlib.h>
#include <string.h>
#include "compile/firing.h"
#include "run/host.h"
#include "run/paused.h"
#include "run/pipeline.h"
#include "run/setup.h"

/* ---- stopping -------------------------------------------------------- */

bool gp_source_goes_on(const gp_actorrt *p)
{
    return p->source && !atomic_load(&p->over) && !atomic_load(&p->host->ended);
}

/* Sources that are joined somewhere stop at the end of the same period: pause_at is that for now. */
static bool agree(gp_run *run, const gp_stage *st)
{
    uint64_t most = 0;
    bool changed = false;
    for (int i = 0; i < run->plan->nactors; i++) {
        const gp_actorrt *p = &run->actor[i];
        if (p->source && gp_comes_from(st, (int)(p->stage - run->graph->stage)) && p->pause_at > most)
            most = p->pause_at;
    }
    for (int i = 0; i < run->plan->nactors; i++) {
        gp_actorrt *p = &run->actor[i];
        if (!p->source || !gp_comes_from(st, (int)(p->stage - run->graph->stage)) || p->pause_at == most)
            continue;
        p->pause_at = most;
        changed = true;
    }
    return changed;
}

void gp_run_pause(gp_run *run)
{
    int none = GP_PAUSE_NOT;
    if (!atomic_compare_exchange_strong(&run->pausing, &none, GP_PAUSE_HOLD))
        return;
    for (int i = 0; i < run->plan->nactors; i++) {
        gp_actorrt *p = &run->actor[i];
        if (!p->source)
            continue;
        uint64_t rate = p->stage->rate > 1 ? (uint64_t)p->stage->rate : 1;
        pthread_mutex_lock(&p->host->lock);        /* who takes frames has it, and from now on takes none */
        p->pause_at = gp_source_goes_on(p) ? (atomic_load(&p->next) + rate - 1) / rate : 0;
        pthread_mutex_unlock(&p->host->lock);
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = 0; i < run->graph->nstages; i++)
            changed |= agree(run, &run->graph->stage[i]);
    }
    for (int i = 0; i < run->plan->nactors; i++)
        if (run->actor[i].source && run->actor[i].stage->rate > 1)
            run->actor[i].pause_at *= (uint64_t)run->actor[i].stage->rate;
    atomic_store(&run->pausing, GP_PAUSE_AT);
    gp_run_wake(run);
}

void gp_run_pause_rest(gp_run *run)
{
    int sources = GP_PAUSE_SOURCES;
    if (atomic_load(&run->pausing) != sources)
        return;
    for (int i = 0; i < run->plan->nactors; i++)
        if (run->actor[i].source && !atomic_load(&run->actor[i].over))
            return;
    if (atomic_compare_exchange_strong(&run->pausing, &sources, GP_PAUSE_ALL))
        gp_run_wake(run);
}

void gp_run_pause_at_once(gp_run *run)
{
    int none = GP_PAUSE_NOT;
    if (!atomic_compare_exchange_strong(&run->pausing, &none, GP_PAUSE_SOURCES))
        return;
    gp_run_wake(run);
    gp_run_pause_rest(run);
}

void gp_actor_pause(gp_actorrt *p)
{
    gp_run *run = p->run;
    for (int o = 0; o < p->nout; o++) {
        gp_ringrt *r = p->out[o];
        atomic_store(&r->paused, true);
    }
    for (int i = 0; i < p->nin; i++) {
        gp_ringrt *r = p->in[i].ring;
        atomic_store(&r->consumed[p->in[i].consumer].paused, true);
    }
    gp_run_wake(run);
    atomic_store(&p->over, true);
    gp_run_pause_rest(run);
}

bool gp_run_is_paused(const gp_run *run)
{
    bool paused = false;
    for (int i = 0; i < run->plan->nactors; i++)
        paused |= atomic_load(&run->actor[i].paused);
    return paused && atomic_load(&run->level) < 2 && !atomic_load(&run->failed);
}

/* ---- copies of what lies on the device ------------------------------- */

typedef struct gp_move { void *dst; const void *src; size_t bytes; } gp_move;

static bool record_move(gp_rec *r, void *arg)
{
    const gp_move *m = arg;
    return r->ops->item(r, 0, NULL, 0) && r->ops->copy(r, m->dst, m->src, m->bytes);
}

/* Within memory of a device, or of the host where that is NULL. */
static bool move(gp_dev *dev, void *dst, const void *src, size_t bytes, gp_errs *errs)
{
    gp_move m = { dst, src, bytes };
    if (!dev)
        return memcpy(dst, src, bytes);
    return dev->backend->direct(dev, 0, record_move, &m, errs) && dev->backend->wait(dev, 0, GP_SYNC_BLOCK, errs) == 1;
}

/* The device that frame f of a place is on; NULL: it is in the host's memory. */
static gp_dev *device_of(const gp_run *run, gp_place place, uint64_t f)
{
    return place.device && !run->plan->unified ? run->dev[place.index + gp_lane(place, f)] : NULL;
}

/* ---- keeping --------------------------------------------------------- */

/* Frames that ring r, inside segment actor p, has had so far: its stage's input, if that takes several, or output. */
static uint64_t had(const gp_actorrt *p, const gp_ringrt *r)
{
    uint64_t next = atomic_load(&p->next);
    if (!p->regroup)
        return next;
    for (int i = 0; i < p->seg->nparts; i++) {
        const gp_task *t = p->seg->part[i].task;
        for (int k = 0; t->op == GP_TASK_STAGE && k < t->nin; k++)
            if (t->in[k] >= 0 && r == &p->run->ring[t->in[k]])
                return next ? gp_firing_to(p->regroup, next - 1) : 0;
    }
    return gp_actor_made(p, next);
}

/* The frames of ring i that may be read again: [*from, the result). */
static uint64_t to_keep(const gp_run *run, int i, uint64_t *from)
{
    const gp_ringrt *r = &run->ring[i];
    uint64_t depth = (uint64_t)r->ring->depth, end = atomic_load(&r->produced.at);
    if (r->ring->segment >= 0) {       /* it has no counters: as much as there is */
        const gp_actorrt *p = run->actor;
        while (p->segment != &run->plan->segment[r->ring->segment])
            p++;
        end = r->buffer ? had(p, r) : 0;
        *from = end > depth ? end - depth : 0;
        return end;
    }
    *from = end ? end - 1 : 0;         /* what stands for a hole may be the frame before */
    for (int c = 0; c < r->ring->nconsumers; c++)
        if (!atomic_load(&r->consumed[c].closed) && atomic_load(&r->consumed[c].at) < *from)
            *from = atomic_load(&r->consumed[c].at);
    if (end > depth && *from < end - depth)
        *from = end - depth;
    return end;
}

static bool keep_ring(const gp_run *run, int i, gp_held_ring *h)
{
    const gp_ringrt *r = &run->ring[i];
    uint64_t from, end = to_keep(run, i, &from);
    size_t n = (size_t)r->ring->nconsumers;
    h->produced = atomic_load(&r->produced.at), h->end = atomic_load(&r->end);
    h->consumed = calloc(n + 1, sizeof *h->consumed), h->closed = calloc(n + 1, sizeof *h->closed);
    h->frame = calloc((size_t)(end - from) + 1, sizeof *h->frame), h->nconsumers = (int)n;
    if (!h->consumed || !h->closed || !h->frame)
        return false;
    for (size_t c = 0; c < n; c++) {
        h->consumed[c] = atomic_load(&r->consumed[c].at);
        h->closed[c] = atomic_load(&r->consumed[c].closed);
    }
    for (uint64_t f = from; r->buffer && f < end; f++) {
        gp_held_frame *x = &h->frame[h->nframes++];
        x->frame = f, x->meta = *gp_meta_of(r, f), x->type = gp_type_of(r, f);
        if (r->numbers)
            x->numbers = *gp_numbers_of(r, f);
        x->data = gp_slot(r, f);
    }
    return true;
}

static void keep_actor(gp_actorrt *p, gp_held_actor *h)
{
    h->next = p->host && !p->leak ? atomic_load(&p->host->head) : atomic_load(&p->next);
    h->frames = atomic_load(&p->frames), h->bytes = atomic_load(&p->bytes), h->dropped = atomic_load(&p->dropped);
    h->over = !atomic_load(&p->paused), h->flushed = atomic_load(&p->flushed);
    if (p->seg)
        h->gathered = p->seg->gathered;
    if (p->host)
        h->missing = p->host->missing, h->judged = p->host->view->judged, h->late = p->host->view->late;
    h->leak = p->leak ? p : NULL;
}

static bool keep(gp_run *run, struct gp_paused *x)
{
    const gp_plan *plan = run->plan;
    size_t stages = (size_t)run->graph->nstages;
    x->plan = plan;
    x->ring = calloc((size_t)plan->nrings + 1, sizeof *x->ring);
    x->actor = calloc((size_t)plan->nactors + 1, sizeof *x->actor);
    x->extra = calloc((size_t)plan->nextras + 1, sizeof *x->extra);
    x->state = calloc(stages + 1, sizeof *x->state);
    x->types = calloc(stages + 1, sizeof *x->types);
    x->opts = calloc(stages + 1, sizeof *x->opts);
    x->opened = calloc(stages + 1, sizeof *x->opened);
    x->account = calloc((size_t)run->naccounts + 1, sizeof *x->account);
    if (!x->account)
        return false;
    while (x->naccounts < run->naccounts) {
        gp_accountrt *l = &x->account[x->naccounts];
        if (!gp_account_init(l, run, run->account[x->naccounts++].source))
            return false;
    }
    if (!x->ring || !x->actor || !x->extra || !x->state || !x->types || !x->opts || !x->opened)
        return false;
    for (int i = 0; i < plan->nrings; i++)
        if (!keep_ring(run, i, &x->ring[i]))
            return false;
    for (int i = 0; i < plan->nactors; i++)
        keep_actor(&run->actor[i], &x->actor[i]);
    for (int i = 0; i < plan->nextras; i++)
        if (plan->extra[i].use == GP_EXTRA_STATE)
            x->extra[i] = gp_extra_on(run, i, plan->extra[i].place.index);
    return true;
}

struct gp_paused *gp_paused_make(gp_run *run, gp_errs *errs)
{
    struct gp_paused *x = calloc(1, sizeof *x);
    if (!x || !keep(run, x)) {
        gp_fail(errs, GP_E_RESOURCE, (gp_loc){ .file = run->graph->file }, "no memory to keep what the run has come to");
        gp_paused_free(x);
        return NULL;
    }
    for (int i = 0; i < run->graph->nstages; i++) {
        if (gp_stage_makes_on_device(&run->graph->stage[i]) || !run->opened[i])
            continue;
        x->state[i] = run->state[i], x->types[i] = run->types[i], x->opts[i] = run->opts[i], x->opened[i] = true;
        run->opened[i] = false, run->types[i] = NULL;
    }
    for (int i = 0; i < run->naccounts; i++)
        gp_account_take(&x->account[i], &run->account[i]);
    return x;
}

void gp_paused_close(struct gp_paused *x)
{
    for (int i = x->plan->graph->nstages - 1; i >= 0; i--)
        if (x->opened[i]) {
            gp_stage_close(&x->plan->graph->stage[i], x->state[i], "the run paused, and did not go on");
            x->opened[i] = false;
        }
}

void gp_paused_free(struct gp_paused *x)
{
    if (!x)
        return;
    for (int i = 0; x->ring && i < x->plan->nrings; i++) {
        gp_held_ring *h = &x->ring[i];
        free(h->frame), free(h->consumed), free(h->closed);
    }
    for (int i = 0; x->types && i < x->plan->graph->nstages; i++)
        free(x->types[i]);
    for (int i = 0; i < x->naccounts; i++)
        gp_account_fini(&x->account[i]);
    free(x->ring), free(x->actor), free(x->extra), free(x->state), free(x->types), free(x->opts);
    free(x->opened), free(x->account);
    free(x);
}

/* ---- going on -------------------------------------------------------- */

/* The first frame of a ring that a reader is still to have. */
static uint64_t first_held(const gp_held_ring *h)
{
    uint64_t least = h->produced;
    for (int c = 0; c < h->nconsumers; c++)
        if (!h->closed[c] && h->consumed[c] < least)
            least = h->consumed[c];
    return least;
}

/* How many frames that wait find no room. Those before a stage that nobody waits for (leak.c) may, and are the newest. */
static uint64_t too_many(const struct gp_paused *x, const gp_ring *ring, const gp_held_ring *h, bool *may)
{
    uint64_t n = h->produced - first_held(h);
    *may = ring->producer >= 0 && x->actor[ring->producer].leak;
    return n > (uint64_t)ring->depth ? n - (uint64_t)ring->depth : 0;
}

/* All frames of all rings of a state are one place. */
static bool is_moved(const gp_run *run, const gp_ringrt *r, bool last)
{
    return !run->plan->pool[r->ring->pool].one || (last && r->buffer->state == r->buffer->name);
}

static bool load_ring(gp_run *run, gp_ringrt *r, const struct gp_paused *x, const gp_held_ring *h, gp_errs *errs)
{
    uint64_t depth = (uint64_t)r->ring->depth, end = h->nframes ? h->frame[h->nframes - 1].frame + 1 : 0;
    bool may;
    uint64_t more = too_many(x, r->ring, h, &may);
    if (more && !may)
        return gp_fail(errs, GP_E_SPEC, r->buffer->depth_at.file ? r->buffer->depth_at : r->buffer->at,
                       "buffer '%s' has depth %d, but %llu frames of it wait in the paused run: set its depth to %llu",
                       r->buffer->name, r->ring->depth, (unsigned long long)(depth + more),
                       (unsigned long long)(depth + more));
    for (int k = 0; k < h->nframes && r->ring->before < 0; k++) {      /* else they are the other ring's */
        const gp_held_frame *f = &h->frame[k];
        if (f->frame + depth < end - more || f->frame >= end - more)
            continue;
        *gp_meta_of(r, f->frame) = f->meta;
        if (r->type)
            r->type[f->frame % depth] = f->type;
        if (r->numbers)
            *gp_numbers_of(r, f->frame) = f->numbers;
        if (!is_moved(run, r, k == h->nframes - 1))
            continue;
        if (!move(device_of(run, r->ring->place, f->frame), gp_slot(r, f->frame), f->data, r->ring->bytes, errs))
            return false;
    }
    return true;
}

bool gp_paused_load(gp_run *run, const struct gp_paused *x, gp_errs *errs)
{
    for (int i = 0; i < run->plan->nrings; i++)
        if (!load_ring(run, &run->ring[i], x, &x->ring[i], errs))
            return false;
    for (int i = 0; i < run->graph->nstages; i++) {
        const gp_stage *was = &x->plan->graph->stage[i], *now = &run->graph->stage[i];
        if (run->keeps[i] && x->opened[i] && was->workers != now->workers && now->kind->set_workers
            && !now->kind->set_workers(x->state[i], now->workers, errs))
            return false;
    }
    for (int i = 0; i < run->plan->nextras; i++)
        if (x->extra[i] && !move(device_of(run, run->plan->extra[i].place, 0),
                                 gp_extra_on(run, i, run->plan->extra[i].place.index), x->extra[i],
                                 run->plan->extra[i].bytes, errs))
            return false;
    return true;
}

/* But for its last frames, `more` of them, which are taken back. */
static void take_ring(gp_ringrt *r, const gp_held_ring *h, uint64_t more)
{
    atomic_store(&r->produced.at, h->produced - more);
    atomic_store(&r->end, h->end == GP_UNKNOWN ? GP_UNKNOWN : h->end - more);
    for (int k = 0; k < h->nframes - (int)more; k++)
        if (!h->frame[k].meta.hole)
            atomic_store(&r->there, h->frame[k].frame + 1);
    for (int c = 0; c < r->ring->nconsumers; c++) {
        atomic_store(&r->consumed[c].at, h->consumed[c]);
        atomic_store(&r->consumed[c].closed, h->closed[c]);
    }
}

static void take_actor(gp_actorrt *p, const gp_held_actor *h)
{
    atomic_store(&p->next, h->next);
    atomic_store(&p->frames, h->frames), atomic_store(&p->bytes, h->bytes), atomic_store(&p->dropped, h->dropped);
    atomic_store(&p->flushed, h->flushed);
    atomic_store(&p->over, h->over);
    if (p->host) {
        atomic_store(&p->host->head, h->next);
        atomic_store(&p->host->ended, h->over);
        p->host->missing = h->missing;
        p->host->view->judged = h->judged, p->host->view->late = h->late;
    } else {
        atomic_store(&p->seg->reaped, h->next);
        p->seg->gathered = h->gathered;
    }
}

void gp_paused_take(gp_run *run, struct gp_paused *x)
{
    bool may;
    for (int i = 0; i < run->plan->nrings; i++)
        take_ring(&run->ring[i], &x->ring[i], too_many(x, run->ring[i].ring, &x->ring[i], &may));
    for (int i = 0; i < run->plan->nrings; i++)
        gp_ring_limit(run, &run->ring[i], run->ring[i].end);
    for (int i = 0; i < run->plan->nactors; i++)
        take_actor(&run->actor[i], &x->actor[i]);
    for (int i = run->graph->nstages - 1; i >= 0; i--) {
        if (!x->opened[i])
            continue;
        x->opened[i] = false;
        if (!run->keeps[i]) {
            gp_stage_close(&x->plan->graph->stage[i], x->state[i], "the stage was opened again in a pause");
            continue;
        }
        run->opened[i] = true, run->opts[i] = x->opts[i];
        run->state[i] = x->state[i], run->types[i] = x->types[i], x->types[i] = NULL;
    }
    for (int i = 0; i < run->naccounts; i++)
        gp_account_take(&run->account[i], &x->account[i]);
    for (int i = 0; i < run->plan->nrings; i++) {
        const gp_held_ring *h = &x->ring[i];
        bool leaks;
        uint64_t more = too_many(x, run->ring[i].ring, h, &leaks);
        if (leaks)
            gp_leak_take(&run->actor[run->ring[i].ring->producer], x->actor[run->ring[i].ring->producer].leak,
                         h->frame + h->nframes - more, (int)more);
    }
}
