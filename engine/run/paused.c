/* paused.c - a run that pauses, and goes on under another plan.
 *
 *   stop    All sources stop at the end of the same period (gp_rate), so that stages that join them have taken as much
 *           of each. An actor that can fire no more, because of that, leaves without an end: nothing is flushed.
 *   keep    What the next frames need is copied to host memory: frames in rings, state that is carried on the device,
 *           counters. Host stages stay open, but those that fill the device's
 *           memory, which keep nothing between frames. The memory of the run, and its device, are given back.
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

static bool is_alive(const gp_actorrt *p)
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
        p->pause_at = is_alive(p) ? (atomic_load(&p->next) + rate - 1) / rate : 0;
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
    for (int i = 0; i < run->plan->nactors; i++)
        gp_eventcount_wake(&run->actor[i].changed);
}

void gp_actor_pause(gp_actorrt *p)
{
    const gp_run *run = p->run;
    for (int o = 0; o < p->nout; o++) {
        gp_ringrt *r = p->out[o];
        atomic_store(&r->paused, true);
        for (int c = 0; c < r->ring->nconsumers; c++)
            gp_eventcount_wake(&run->actor[r->ring->consumer[c]].changed);
    }
    for (int i = 0; i < p->nin; i++) {
        gp_ringrt *r = p->in[i].ring;
        atomic_store(&r->consumed[p->in[i].consumer].paused, true);
        gp_eventcount_wake(&run->actor[r->ring->producer].changed);
    }
    atomic_store(&p->over, true);
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

/* Between memory of a place and host memory. */
static bool move(gp_run *run, gp_place place, void *dst, const void *src, size_t bytes, bool to_host, gp_errs *errs)
{
    if (!place.device || run->plan->unified) {
        memcpy(dst, src, bytes);
        return true;
    }
    const gp_backend *be = run->dev->backend;
    void *pinned = be->alloc(run->dev, false, bytes, errs);
    if (!pinned)
        return false;
    if (!to_host)
        memcpy(pinned, src, bytes);
    gp_move m = { to_host ? pinned : dst, to_host ? src : pinned, bytes };
    bool ok = be->direct(run->dev, 0, record_move, &m, errs) && be->wait(run->dev, 0, GP_SYNC_BLOCK, errs) == 1;
    if (to_host && ok)
        memcpy(dst, pinned, bytes);
    be->free(run->dev, false, pinned, bytes);
    return ok;
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

static bool keep_ring(gp_run *run, int i, gp_held_ring *h, gp_errs *errs)
{
    const gp_ringrt *r = &run->ring[i];
    uint64_t from, end = to_keep(run, i, &from);
    size_t n = (size_t)r->ring->nconsumers;
    h->produced = atomic_load(&r->produced.at), h->end = atomic_load(&r->end);
    h->consumed = calloc(n + 1, sizeof *h->consumed), h->closed = calloc(n + 1, sizeof *h->closed);
    h->frame = calloc((size_t)(end - from) + 1, sizeof *h->frame);
    if (!h->consumed || !h->closed || !h->frame)
        return false;
    for (size_t c = 0; c < n; c++) {
        h->consumed[c] = atomic_load(&r->consumed[c].at);
        h->closed[c] = atomic_load(&r->consumed[c].closed);
    }
    for (uint64_t f = from; r->buffer && f < end; f++) {
        gp_held_frame *x = &h->frame[h->nframes++];
        x->frame = f, x->meta = *gp_meta_of(r, f);
        if (r->type)
            x->type = r->type[f % (uint64_t)r->ring->depth];
        if (r->numbers)
            x->numbers = *gp_numbers_of(r, f);
        if (!(x->data = malloc(r->ring->bytes + 1)) || !move(run, r->ring->place, x->data, gp_slot(r, f), r->ring->bytes,
                                                               true, errs))
            return false;
    }
    return true;
}

static void keep_actor(gp_actorrt *p, gp_held_actor *h)
{
    h->next = p->host ? atomic_load(&p->host->head) : atomic_load(&p->next);
    h->frames = atomic_load(&p->frames), h->bytes = atomic_load(&p->bytes), h->dropped = atomic_load(&p->dropped);
    h->over = !atomic_load(&p->paused), h->flushed = atomic_load(&p->flushed);
    if (p->seg)
        h->gathered = p->seg->gathered;
}

static bool keep(gp_run *run, struct gp_paused *x, gp_errs *errs)
{
    const gp_plan *plan = run->plan;
    size_t stages = (size_t)run->graph->nstages;
    x->plan = plan;
    x->ring = calloc((size_t)plan->nrings + 1, sizeof *x->ring);
    x->actor = calloc((size_t)plan->nactors + 1, sizeof *x->actor);
    x->extra = calloc((size_t)plan->nextras + 1, sizeof *x->extra);
    x->state = calloc(stages + 1, sizeof *x->state);
    x->types = calloc(stages + 1, sizeof *x->types);
    x->opened = calloc(stages + 1, sizeof *x->opened);
    x->account = calloc((size_t)run->naccounts + 1, sizeof *x->account);
    if (!x->account)
        return false;
    while (x->naccounts < run->naccounts) {
        gp_accountrt *l = &x->account[x->naccounts];
        if (!gp_account_init(l, run, run->account[x->naccounts++].source))
            return false;
    }
    if (!x->ring || !x->actor || !x->extra || !x->state || !x->types || !x->opened)
        return false;
    for (int i = 0; i < plan->nrings; i++)
        if (!keep_ring(run, i, &x->ring[i], errs))
            return false;
    for (int i = 0; i < plan->nactors; i++)
        keep_actor(&run->actor[i], &x->actor[i]);
    for (int i = 0; i < plan->nextras; i++)
        if (plan->extra[i].use == GP_EXTRA_STATE
            && (!(x->extra[i] = malloc(plan->extra[i].bytes + 1))
                || !move(run, plan->extra[i].place, x->extra[i], run->extra[i], plan->extra[i].bytes, true, errs)))
            return false;
    return true;
}

struct gp_paused *gp_paused_make(gp_run *run, gp_errs *errs)
{
    struct gp_paused *x = calloc(1, sizeof *x);
    int before = errs->failed;
    if (!x || !keep(run, x, errs)) {
        if (errs->failed == before)
            gp_fail(errs, GP_E_RESOURCE, (gp_loc){ .file = run->graph->file }, "no memory to keep what the run has come to");
        gp_paused_free(x);
        return NULL;
    }
    for (int i = 0; i < run->graph->nstages; i++) {
        if (gp_stage_makes_on_device(&run->graph->stage[i]) || !run->opened[i])
            continue;
        x->state[i] = run->state[i], x->types[i] = run->types[i], x->opened[i] = true;
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
            if (x->plan->graph->stage[i].kind->close)
                x->plan->graph->stage[i].kind->close(x->state[i]);
            x->opened[i] = false;
        }
}

void gp_paused_free(struct gp_paused *x)
{
    if (!x)
        return;
    for (int i = 0; x->ring && i < x->plan->nrings; i++) {
        gp_held_ring *h = &x->ring[i];
        for (int k = 0; k < h->nframes; k++)
            free(h->frame[k].data);
        free(h->frame), free(h->consumed), free(h->closed);
    }
    for (int i = 0; x->extra && i < x->plan->nextras; i++)
        free(x->extra[i]);
    for (int i = 0; x->types && i < x->plan->graph->nstages; i++)
        free(x->types[i]);
    for (int i = 0; i < x->naccounts; i++)
        gp_account_fini(&x->account[i]);
    free(x->ring), free(x->actor), free(x->extra), free(x->state), free(x->types), free(x->opened), free(x->account);
    free(x);
}

/* ---- the next plan --------------------------------------------------- */

static bool is_among(const char *word, const char *const *list)
{
    for (; *list; list++)
        if (!strcmp(word, *list))
            return true;
    return false;
}

/* *at: the key of b, or the item of a list, that is another. */
static bool differs(const gp_node *a, const gp_node *b, const gp_node **at);

/* The items of a map that are in one of both, but for `free` keys. */
static bool maps_differ(const gp_node *a, const gp_node *b, const char *const *free_keys, const gp_node **at)
{
    for (int i = 0; i < a->n; i++) {
        const gp_node *other = gp_node_get(b, a->key[i]->text);
        *at = a->key[i];
        if (!is_among(a->key[i]->text, free_keys) && (!other || differs(a->item[i], other, at)))
            return true;
    }
    for (int i = 0; i < b->n; i++) {
        *at = b->key[i];
        if (!is_among(b->key[i]->text, free_keys) && !gp_node_get(a, b->key[i]->text))
            return true;
    }
    return false;
}

static bool differs(const gp_node *a, const gp_node *b, const gp_node **at)
{
    static const char *const none[] = { NULL };
    if (a->kind == GP_MAP && b->kind == GP_MAP)
        return maps_differ(a, b, none, at);
    if (a->kind != b->kind || a->n != b->n || a->len != b->len || memcmp(a->text, b->text, a->len) != 0)
        return true;
    for (int i = 0; i < a->n; i++) {
        *at = b->item[i];
        if (differs(a->item[i], b->item[i], at))
            return true;
    }
    return false;
}

/* Declarations, but for depths. */
static bool buffers_differ(const gp_node *a, const gp_node *b, const gp_node **at)
{
    static const char *const knobs[] = { "depth", NULL };
    for (int i = 0; i < b->n; i++) {
        const gp_node *x = b->item[i], *was = a ? gp_node_get(a, b->key[i]->text) : NULL;
        *at = b->key[i];
        if (x->kind == GP_MAP && x->n == 1 && !strcmp(x->key[0]->text, "depth"))
            continue;                  /* it declares nothing else */
        if (!was || (x->kind == GP_MAP && was->kind == GP_MAP ? maps_differ(was, x, knobs, at) : differs(was, x, at)))
            return true;
    }
    return false;
}

/* The node of `now` that says what cannot change; NULL: there is none. */
static const gp_node *changed(const gp_node *was, const gp_node *now)
{
    static const char *const knobs[] = { "pipeline", "depth", "streams", "batch", "launch", "sync", "stall_timeout",
                                         "buffers", NULL };
    const gp_node *at = now, *a = gp_node_get(was, "buffers"), *b = gp_node_get(now, "buffers");
    if (maps_differ(was, now, knobs, &at))
        return at;
    return b && buffers_differ(a, b, &at) ? at : a && buffers_differ(b, a, &at) ? now : NULL;
}

static bool same_actor(const gp_plan *a, const gp_plan *b, int i)
{
    const gp_actor *x = &a->actor[i], *y = &b->actor[i];
    if (x->kind != y->kind)
        return false;
    if (x->kind == GP_ACTOR_HOST)
        return x->stage == y->stage;
    const gp_segment *s = &a->segment[x->segment], *t = &b->segment[y->segment];
    bool same = s->ntasks == t->ntasks;
    for (int k = 0; same && k < s->ntasks; k++)
        same = a->task[s->task[k]].op == b->task[t->task[k]].op && a->task[s->task[k]].stage == b->task[t->task[k]].stage;
    return same;
}

static bool same_ring(const gp_ring *a, const gp_ring *b)
{
    bool same = a->buffer == b->buffer && a->place.device == b->place.device && a->producer == b->producer
             && a->segment == b->segment && a->nconsumers == b->nconsumers && a->bytes == b->bytes;
    for (int c = 0; same && c < a->nconsumers; c++)
        same = a->consumer[c] == b->consumer[c];
    return same;
}

static bool same_plan(const gp_plan *a, const gp_plan *b)
{
    bool same = a->nactors == b->nactors && a->nrings == b->nrings && a->nextras == b->nextras && a->ntasks == b->ntasks
             && a->graph->nstages == b->graph->nstages && a->unified == b->unified;
    for (int i = 0; same && i < a->nactors; i++)
        same = same_actor(a, b, i);
    for (int i = 0; same && i < a->nrings; i++)
        same = same_ring(&a->ring[i], &b->ring[i]);
    for (int i = 0; same && i < a->nextras; i++)
        same = a->extra[i].use == b->extra[i].use && a->extra[i].stage == b->extra[i].stage
            && (a->extra[i].use != GP_EXTRA_STATE || a->extra[i].bytes == b->extra[i].bytes);
    return same;
}

bool gp_paused_fits(const gp_pipeline *p, const gp_pipeline *from, gp_errs *errs)
{
    gp_loc file = { .file = p->graph->file };
    if (p == from)
        return true;
    const gp_node *at = changed(from->spec->root, p->spec->root);
    if (at)
        return gp_fail(errs, GP_E_SPEC, at->at, "'%.60s' differs from what the paused run has: depth, streams, batch, launch, "
                       "sync and stall_timeout can change", at->text);
    for (int i = 0; i < p->graph->nstages; i++) {
        const gp_stage *was = &from->graph->stage[i], *now = &p->graph->stage[i];
        if (was->workers != now->workers && now->kind->open)
            return gp_fail(errs, GP_E_SPEC, now->at, "stage '%s' has %d workers in the paused run, which cannot change: set "
                           "'workers: %d'", now->name, was->workers, was->workers);
    }
    return same_plan(from->plan, p->plan)
        || gp_fail(errs, GP_E_SPEC, file, "the plan has other segments than the paused run");
}

/* ---- going on -------------------------------------------------------- */

static bool load_ring(gp_run *run, gp_ringrt *r, const gp_held_ring *h, gp_errs *errs)
{
    uint64_t depth = (uint64_t)r->ring->depth, end = h->nframes ? h->frame[h->nframes - 1].frame + 1 : 0, least = h->produced;
    for (int c = 0; c < r->ring->nconsumers; c++)
        if (!h->closed[c] && h->consumed[c] < least)
            least = h->consumed[c];
    if (h->produced - least > depth)
        return gp_fail(errs, GP_E_SPEC, r->buffer->depth_at.file ? r->buffer->depth_at : r->buffer->at,
                       "buffer '%s' has depth %d, but %llu frames of it wait in the paused run: set its depth to %llu",
                       r->buffer->name, r->ring->depth, (unsigned long long)(h->produced - least),
                       (unsigned long long)(h->produced - least));
    for (int k = 0; k < h->nframes; k++) {
        const gp_held_frame *x = &h->frame[k];
        if (x->frame + depth < end)
            continue;
        *gp_meta_of(r, x->frame) = x->meta;
        if (r->type)
            r->type[x->frame % depth] = x->type;
        if (r->numbers)
            *gp_numbers_of(r, x->frame) = x->numbers;
        if (!move(run, r->ring->place, gp_slot(r, x->frame), x->data, r->ring->bytes, false, errs))
            return false;
    }
    return true;
}

bool gp_paused_load(gp_run *run, const struct gp_paused *x, gp_errs *errs)
{
    for (int i = 0; i < run->plan->nrings; i++)
        if (!load_ring(run, &run->ring[i], &x->ring[i], errs))
            return false;
    for (int i = 0; i < run->plan->nextras; i++)
        if (x->extra[i] && !move(run, run->plan->extra[i].place, run->extra[i], x->extra[i], run->plan->extra[i].bytes, false,
                                 errs))
            return false;
    return true;
}

static void take_ring(gp_ringrt *r, const gp_held_ring *h)
{
    atomic_store(&r->produced.at, h->produced);
    atomic_store(&r->end, h->end);
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
    } else {
        atomic_store(&p->seg->reaped, h->next);
        p->seg->gathered = h->gathered;
    }
}

void gp_paused_take(gp_run *run, struct gp_paused *x)
{
    for (int i = 0; i < run->plan->nrings; i++)
        take_ring(&run->ring[i], &x->ring[i]);
    for (int i = 0; i < run->plan->nactors; i++)
        take_actor(&run->actor[i], &x->actor[i]);
    for (int i = 0; i < run->graph->nstages; i++) {
        if (!x->opened[i])
            continue;
        run->opened[i] = true, x->opened[i] = false;
        run->state[i] = x->state[i], run->types[i] = x->types[i], x->types[i] = NULL;
    }
    for (int i = 0; i < run->naccounts; i++)
        gp_account_take(&run->account[i], &x->account[i]);
}
