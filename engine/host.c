/* host.c - the workers of a host stage.
 *
 * Workers take consecutive frames under the stage's lock, work without it, and
 * hand in under it again; whoever hands in the frame that is next publishes it
 * and all that wait behind it. So frames are published in order for any number
 * of workers, and none waits for another. A failed frame is reported when it is
 * next to be published: the error of the lowest frame wins. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "nvtx.h"
#include "run.h"

typedef enum gp_handed { GP_TAKEN, GP_HANDED_IN, GP_HANDED_FAILED } gp_handed;

typedef struct gp_pending {
    gp_handed handed;
    gp_threadrt *by;           /* whose errors it has */
} gp_pending;

typedef struct gp_desk {       /* one worker's frames and views */
    gp_frame *frame;
    gp_view *view;             /* per frame: inputs, then outputs */
} gp_desk;

typedef struct gp_hostrt {
    pthread_mutex_t lock;      /* of what follows, and of party.next */
    uint64_t head;             /* the next frame to publish */
    gp_pending *pending;       /* frames [head, next), by frame mod window */
    uint64_t window;
    int live;                  /* workers that have not left */
    bool ended;                /* a source said so, or a frame failed: head is the end */
    uint64_t end;
    int max_run;
    gp_desk *desk;             /* per worker */
    int *in_link, *out_link;   /* per port: index into party.in / out, or -1 */
    void **konst;              /* per input port: a constant's memory */
} gp_hostrt;

/* ---- setting up ------------------------------------------------------ */

static int link_of(const gp_partyrt *p, int ring, bool out)
{
    for (int i = 0; i < (out ? p->nout : p->nin); i++)
        if ((out ? p->out[i] : p->in[i].ring) == &p->run->ring[ring])
            return i;
    return -1;
}

bool gp_host_init(gp_partyrt *p, gp_errs *errs)
{
    gp_run *run = p->run;
    const gp_stage *st = p->stage;
    const gp_task *t = &run->plan->task[run->plan->host_task[st - run->graph->stage]];
    gp_hostrt *h = p->host = GP_NEW(&run->arena, gp_hostrt, 1);

    (void)errs;
    pthread_mutex_init(&h->lock, NULL);
    h->end = GP_UNKNOWN;
    h->live = st->workers;
    h->max_run = st->workers == 1 && st->kind->max_run > 1 ? st->kind->max_run : 1;
    h->window = UINT64_MAX;
    h->in_link = GP_NEW(&run->arena, int, st->nin + 1);
    h->out_link = GP_NEW(&run->arena, int, st->nout + 1);
    h->konst = GP_NEW(&run->arena, void *, st->nin + 1);
    for (int i = 0; i < st->nin; i++) {
        h->in_link[i] = t->in[i] >= 0 ? link_of(p, t->in[i], false) : -1;
        if (t->konst && t->konst[i] >= 0)
            h->konst[i] = run->extra[t->konst[i]];
        if (t->in[i] >= 0 && (uint64_t)run->plan->ring[t->in[i]].depth < h->window)
            h->window = (uint64_t)run->plan->ring[t->in[i]].depth;
    }
    for (int o = 0; o < st->nout; o++) {
        h->out_link[o] = link_of(p, t->out[o], true);
        if ((uint64_t)run->plan->ring[t->out[o]].depth < h->window)
            h->window = (uint64_t)run->plan->ring[t->out[o]].depth;
    }
    if ((uint64_t)h->max_run > h->window)
        h->max_run = (int)h->window;
    h->pending = GP_NEW(&run->arena, gp_pending, h->window);
    h->desk = GP_NEW(&run->arena, gp_desk, st->workers);
    for (int w = 0; w < st->workers; w++) {
        gp_desk *d = &h->desk[w];
        int ports = st->nin + st->nout;
        d->frame = GP_NEW(&run->arena, gp_frame, h->max_run);
        d->view = GP_NEW(&run->arena, gp_view, h->max_run * ports + 1);
        for (int i = 0; i < h->max_run; i++) {
            d->frame[i].in = d->view + i * ports;
            d->frame[i].out = d->frame[i].in + st->nin;
        }
    }
    return true;
}

void gp_host_fini(gp_partyrt *p)
{
    if (p->host)
        pthread_mutex_destroy(&p->host->lock);
}

/* ---- one frame ------------------------------------------------------- */

/* Points the views at frame f's slots. False when the output shapes of a
 * partial frame cannot be computed. */
static bool lay_out(gp_partyrt *p, gp_frame *fr, uint64_t f, gp_errs *errs)
{
    const gp_run *run = p->run;
    const gp_graph *g = run->graph;
    const gp_stage *st = p->stage;
    const gp_hostrt *h = p->host;
    gp_meta m = gp_party_meta(p, f);
    bool partial = false;

    fr->index = f, fr->time_ns = m.time_ns, fr->name = m.name, fr->status = GP_OK;
    for (int i = 0; i < st->nin; i++) {
        gp_view *v = &fr->in[i];
        if (st->in[i] < 0)
            continue;
        const gp_buffer *b = &g->buffer[st->in[i]];
        v->type = b->type, v->rows = b->type.dim[0], v->data = h->konst[i];
        if (h->in_link[i] >= 0) {
            gp_ringrt *r = p->in[h->in_link[i]].ring;
            v->data = gp_slot(r, f);
            v->type.dim[0] = gp_meta_of(r, f)->rows;
            partial |= v->type.dim[0] != v->rows;
        }
    }
    if (partial && st->nout) {
        gp_type in[GP_MAXPORT], out[GP_MAXPORT];
        for (int i = 0; i < st->nin; i++)
            in[i] = fr->in[i].type;
        if (!gp_partial_shape(g, st, in, out, errs))
            return false;
        for (int o = 0; o < st->nout; o++)
            fr->out[o].type = out[o];
    }
    for (int o = 0; o < st->nout; o++) {
        gp_view *v = &fr->out[o];
        gp_ringrt *r = p->out[h->out_link[o]];
        if (!partial)
            v->type = r->buffer->type;
        v->rows = r->buffer->type.dim[0];
        v->data = gp_slot(r, f);
        v->fresh = !gp_meta_of(r, f)->touched;
        size_t all = gp_bytes(&r->buffer->type);
        if (run->options.poison && !st->keeps_slots)
            memset(v->data, 0xa5, all);
        if (st->zero)
            memset(v->data, 0, all);
    }
    return true;
}

/* Writes the outputs' metas; clears the rows beyond the valid ones. */
static void sign(gp_partyrt *p, gp_frame *fr)
{
    const gp_stage *st = p->stage;
    gp_hole hole = fr->status == GP_DROP     ? GP_HOLE_DROPPED
                   : fr->status == GP_FAILED ? GP_HOLE_FAILED
                                             : GP_WHOLE;
    if (p->source && !fr->time_ns) {
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        fr->time_ns = t.tv_sec * 1000000000LL + t.tv_nsec;
    }
    for (int o = 0; o < st->nout; o++) {
        gp_ringrt *r = p->out[p->host->out_link[o]];
        gp_view *v = &fr->out[o];
        int64_t rows = v->type.dim[0] < v->rows ? v->type.dim[0] : v->rows;
        if (hole == GP_WHOLE && rows < v->rows) {
            size_t row = gp_bytes(&r->buffer->type) / (size_t)v->rows;
            memset((char *)v->data + row * (size_t)rows, 0, row * (size_t)(v->rows - rows));
        }
        *gp_meta_of(r, fr->index) = (gp_meta){ .rows = hole ? v->rows : rows,
                                              .time_ns = fr->time_ns, .name = fr->name,
                                              .hole = hole, .touched = true };
    }
}

/* A frame that has a hole in an input: so have the outputs. */
static void pass_hole(gp_partyrt *p, uint64_t f, gp_meta m)
{
    for (int o = 0; o < p->nout; o++) {
        gp_meta *to = gp_meta_of(p->out[o], f);
        m.touched = to->touched;
        m.rows = p->out[o]->buffer->type.dim[0];
        *to = m;
    }
}

/* ---- a worker -------------------------------------------------------- */

typedef struct gp_asking { gp_partyrt *p; gp_look look; int n; } gp_asking;

static bool may_go(void *arg)
{
    gp_asking *a = arg;
    a->look = gp_party_look(a->p, atomic_load(&a->p->next), a->p->host->max_run, &a->n);
    return a->look != GP_LOOK_WAIT;
}

/* Takes frames: *first, and how many; 0 when there will be none. */
static int take(gp_threadrt *t, uint64_t *first)
{
    gp_partyrt *p = t->party;
    gp_hostrt *h = p->host;
    for (;;) {
        gp_asking a = { .p = p };
        pthread_mutex_lock(&h->lock);
        if (h->ended) {
            pthread_mutex_unlock(&h->lock);
            return 0;
        }
        *first = atomic_load(&p->next);
        a.look = gp_party_look(p, *first, h->max_run, &a.n);
        if (a.look == GP_LOOK_GO) {
            for (int i = 0; i < a.n; i++)
                h->pending[(*first + (uint64_t)i) % h->window] = (gp_pending){ GP_TAKEN, t };
            atomic_store(&p->next, *first + (uint64_t)a.n);
        }
        pthread_mutex_unlock(&h->lock);
        if (a.look == GP_LOOK_GO)
            return a.n;
        if (a.look == GP_LOOK_OVER)
            return 0;
        gp_thread_doing(t, GP_DOING_WAIT, *first);
        gp_point_wait(&p->point, may_go, &a, p->run->spin_ns);
    }
}

/* Counts a frame that failed in a stage that stops the run: no sink sees it. */
static void count_failed(gp_partyrt *p)
{
    for (int l = 0; l < p->run->nledgers; l++) {
        int s = p->run->ledger[l].source;
        if (p->stage->sources[s / 32] >> s % 32 & 1)
            atomic_fetch_add(&p->run->ledger[l].failed, 1);
        if (p->source && s == (int)(p->stage - p->run->graph->stage))
            atomic_fetch_add(&p->run->ledger[l].in, 1);
    }
}

/* Publishes what is next; call with the lock. */
static void hand_over(gp_partyrt *p)
{
    gp_hostrt *h = p->host;
    uint64_t first = h->head, next = atomic_load(&p->next);
    if (next > h->end)
        next = h->end;
    while (h->head < next && h->pending[h->head % h->window].handed == GP_HANDED_IN)
        h->head++;
    if (h->head > first)
        gp_party_publish(p, first, (int)(h->head - first));
    if (h->head < next && h->pending[h->head % h->window].handed == GP_HANDED_FAILED) {
        h->ended = true;
        h->end = h->head;
        gp_run_fail(p->run, &h->pending[h->head % h->window].by->errs);
        count_failed(p);
    }
}

/* Runs frames [first, first + n); returns how many may be handed in as done,
 * in order; *failed when the next one failed for good. *end: the source ends.
 * Neither, and fewer than n: the others are not done yet. */
static int work(gp_threadrt *t, uint64_t first, int n, bool *failed, bool *end)
{
    gp_partyrt *p = t->party;
    gp_run *run = p->run;
    const gp_stage *st = p->stage;
    gp_frame *fr = p->host->desk[t->worker].frame;
    gp_call call = { .opts = st->opts, .state = run->state[st - run->graph->stage],
                     .worker = t->worker, .name = st->name, .at = st->at,
                     .errs = &t->errs, .ctx = t };

    for (int done = 0; done < n;) {
        int k = 0;             /* a piece without holes */
        gp_meta m = { .hole = GP_WHOLE };
        while (done + k < n) {
            m = gp_party_meta(p, first + (uint64_t)(done + k));
            if (m.hole)
                break;
            if (!lay_out(p, &fr[k], first + (uint64_t)(done + k), &t->errs)) {
                *failed = true;
                return done;
            }
            k++;
        }
        if (!k) {
            pass_hole(p, first + (uint64_t)done, m);
            done++;
            continue;
        }
        gp_thread_doing(t, GP_DOING_WORK, fr->index);
        gp_nvtx_push(run->nvtx, st->name, fr->index);
        bool ok = st->kind->run(&call, fr, k);
        gp_nvtx_pop(run->nvtx);
        for (int i = 0; i < k; i++, done++) {
            gp_status s = fr[i].status;
            if (ok && s == GP_AGAIN)
                return done;
            if (!ok || s == GP_END || s == GP_STOPPED
                || (s == GP_FAILED && run->graph->on_error == GP_ON_ERROR_STOP)) {
                *failed = !ok || s == GP_FAILED;
                *end = !*failed;
                return done;
            }
            if (s == GP_FAILED) {
                for (int e = 0; e < t->errs.n; e++)
                    t->errs.e[e].code = GP_E_WARN;
                t->errs.failed = 0;
                gp_run_fail(run, &t->errs);
                t->errs = (gp_errs){ .n = 0 };
            }
            sign(p, &fr[i]);
            if (s == GP_OK) {
                size_t bytes = 0;
                const gp_view *v = st->nout ? fr[i].out : fr[i].in;
                for (int j = 0; j < (st->nout ? st->nout : st->nin); j++)
                    bytes += v[j].data ? gp_bytes(&v[j].type) : 0;
                atomic_fetch_add_explicit(&p->frames, 1, memory_order_relaxed);
                atomic_fetch_add_explicit(&p->bytes, bytes, memory_order_relaxed);
            }
        }
    }
    return n;
}

/* The last worker to leave ends the stage. */
static void leave(gp_threadrt *t)
{
    gp_partyrt *p = t->party;
    gp_run *run = p->run;
    gp_hostrt *h = p->host;
    pthread_mutex_lock(&h->lock);
    bool last = --h->live == 0;
    h->ended = true;
    pthread_mutex_unlock(&h->lock);
    gp_point_wake(&p->point);
    if (!last)
        return;
    const gp_kind *k = p->stage->kind;
    bool clean = !atomic_load(&run->failed) && atomic_load(&run->level) < 2;
    if (clean && k->finish) {
        gp_call call = { .opts = p->stage->opts, .name = p->stage->name, .at = p->stage->at,
                         .state = run->state[p->stage - run->graph->stage],
                         .errs = &t->errs, .ctx = t };
        gp_thread_doing(t, GP_DOING_WORK, h->head);
        if (!k->finish(&call))
            gp_run_fail(run, &t->errs);
    }
    gp_party_end(p, h->head);
}

void *gp_host_thread(void *thread)
{
    gp_threadrt *t = thread;
    gp_partyrt *p = t->party;
    gp_hostrt *h = p->host;
    uint64_t first;
    int n;

    while ((n = take(t, &first))) {
        bool failed = false, end = false;
        int done = work(t, first, n, &failed, &end);
        pthread_mutex_lock(&h->lock);
        for (int i = 0; i < done; i++)
            h->pending[(first + (uint64_t)i) % h->window].handed = GP_HANDED_IN;
        if (failed)
            h->pending[(first + (uint64_t)done) % h->window].handed = GP_HANDED_FAILED;
        if (end)
            h->ended = true, h->end = first + (uint64_t)done;
        else if (!failed && done < n)      /* GP_AGAIN: give the others back */
            atomic_store(&p->next, first + (uint64_t)done);
        hand_over(p);
        pthread_mutex_unlock(&h->lock);
        if (failed || end)
            break;
    }
    leave(t);
    return NULL;
}

/* ---- what stages may ask for ----------------------------------------- */

bool gp_cancelled(const gp_call *c)
{
    const gp_threadrt *t = c->ctx;
    return atomic_load(&t->run->level) >= 2;
}
