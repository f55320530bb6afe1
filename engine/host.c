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
    int64_t *born_ns;          /* per frame */
} gp_desk;

typedef struct gp_hostrt {
    pthread_mutex_t lock;      /* of what follows, and of party.next */
    _Atomic uint64_t head;     /* the next frame to publish; written with the lock */
    gp_pending *pending;       /* frames [head, next), by frame mod window */
    gp_hole *hole;             /* likewise: made here or before */
    uint64_t window;
    int live;                  /* workers that have not left */
    atomic_bool ended;         /* a source said so, or a frame failed: head is the end */
    uint64_t end;
    int max_run;
    gp_desk *desk;             /* per worker */
    int *in_link, *out_link;   /* per port: index into party.in / out, or -1 */
    void **konst;              /* per input port: a constant's memory */
    uint64_t cached;           /* from this frame on the slots are as they are */
    gp_hist *latency;          /* of a sink in a timed run, else NULL; with the lock */
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
    h->cached = UINT64_MAX;
    if (run->options.timed && !st->nout)
        h->latency = GP_NEW(&run->arena, gp_hist, 1);
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
    for (int o = 0; run->cached[st - run->graph->stage] && o < st->nout; o++) {
        uint64_t depth = (uint64_t)run->plan->ring[t->out[o]].depth;
        if (!o || depth > h->cached)
            h->cached = depth;
    }
    if ((uint64_t)h->max_run > h->window)
        h->max_run = (int)h->window;
    h->pending = GP_NEW(&run->arena, gp_pending, h->window);
    h->hole = GP_NEW(&run->arena, gp_hole, h->window);
    h->desk = GP_NEW(&run->arena, gp_desk, st->workers);
    for (int w = 0; w < st->workers; w++) {
        gp_desk *d = &h->desk[w];
        int ports = st->nin + st->nout;
        d->frame = GP_NEW(&run->arena, gp_frame, h->max_run);
        d->born_ns = GP_NEW(&run->arena, int64_t, h->max_run);
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

/* Points the views at frame f's slots; `m` is what is known of it. False when the
 * output shapes of a partial frame cannot be computed. */
static bool lay_out(gp_partyrt *p, gp_frame *fr, uint64_t f, const gp_meta *m, gp_errs *errs)
{
    const gp_run *run = p->run;
    const gp_graph *g = run->graph;
    const gp_stage *st = p->stage;
    const gp_hostrt *h = p->host;
    bool partial = false, keep = st->keeps_slots || f >= h->cached;

    fr->index = f, fr->time_ns = m->time_ns, fr->name = m->name, fr->status = GP_OK;
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
        if (run->options.poison && !keep)
            memset(v->data, 0xa5, gp_bytes(&r->buffer->type));
        if (st->zero && (v->fresh || !keep))
            memset(v->data, 0, gp_bytes(&r->buffer->type));
    }
    return true;
}

static gp_hole hole_by(gp_status s)
{
    return s == GP_DROP ? GP_HOLE_DROPPED : s == GP_FAILED ? GP_HOLE_FAILED : GP_WHOLE;
}

static int64_t wall_clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* Writes the outputs' metas; clears the rows beyond the valid ones. */
static void sign(gp_partyrt *p, const gp_frame *fr, int64_t born_ns)
{
    const gp_stage *st = p->stage;
    gp_hole hole = hole_by(fr->status);
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
                                              .hole = hole, .touched = true,
                                              .born_ns = born_ns };
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

/* As gp_party_look, for what the workers of one stage share. */
static gp_look look(gp_partyrt *p, uint64_t next, int *n)
{
    gp_hostrt *h = p->host;
    uint64_t room = h->window - (next - atomic_load(&h->head));
    if (atomic_load(&h->ended))
        return GP_LOOK_OVER;
    return gp_party_look(p, next, room < (uint64_t)h->max_run ? (int)room : h->max_run, n);
}

static bool may_go(void *arg)
{
    gp_asking *a = arg;
    a->look = look(a->p, atomic_load(&a->p->next), &a->n);
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
        *first = atomic_load(&p->next);
        a.look = look(p, *first, &a.n);
        if (a.look == GP_LOOK_GO) {
            for (int i = 0; i < a.n; i++)
                h->pending[(*first + (uint64_t)i) % h->window] = (gp_pending){ GP_TAKEN, t };
            atomic_store(&p->next, *first + (uint64_t)a.n);
        }
        pthread_mutex_unlock(&h->lock);
        if (a.look == GP_LOOK_GO)
            return a.n;
        if (a.look == GP_LOOK_DIFFER)
            gp_party_ends_differ(p, *first);
        if (a.look != GP_LOOK_WAIT)
            return 0;
        gp_thread_doing(t, GP_DOING_WAIT, *first);
        gp_point_wait(&p->point, may_go, &a, p->run->spin_ns);
    }
}

/* Does source `l` feed this stage? */
static bool feeds(const gp_ledger *l, const gp_stage *st)
{
    return st->sources[l->source / 32] >> l->source % 32 & 1;
}

/* Frames [first, first + n) have left the pipeline by this sink. */
static void account(gp_partyrt *p, uint64_t first, int n)
{
    gp_hostrt *h = p->host;
    int64_t now = h->latency ? gp_now_ns() : 0;
    while (n) {
        uint64_t at = first % h->window;   /* up to where the window begins again */
        int k = (uint64_t)n < h->window - at ? n : (int)(h->window - at);
        for (int l = 0; l < p->run->nledgers; l++)
            gp_ledger_seen(&p->run->ledger[l], (int)(p->stage - p->run->graph->stage), first, k,
                           h->hole + at);
        for (int i = 0; h->latency && i < k; i++)
            if (!h->hole[at + (uint64_t)i])
                gp_hist_add(h->latency, now - gp_party_meta(p, first + (uint64_t)i).born_ns);
        first += (uint64_t)k, n -= k;
    }
}

void gp_host_latency(gp_partyrt *p, gp_hist *to)
{
    gp_hostrt *h = p->host;
    if (!h || !h->latency)
        return;
    pthread_mutex_lock(&h->lock);
    gp_hist_merge(to, h->latency);
    pthread_mutex_unlock(&h->lock);
}

/* Counts a frame that failed in a stage that stops the run. */
static void count_failed(gp_partyrt *p, uint64_t f)
{
    for (int i = 0; i < p->run->nledgers; i++) {
        gp_ledger *l = &p->run->ledger[i];
        if (!feeds(l, p->stage))
            continue;
        if (p->source)
            atomic_fetch_add(&l->in, 1);
        gp_ledger_fail(l, f);
    }
}

/* Publishes what is next; call with the lock. */
static void hand_over(gp_partyrt *p)
{
    gp_hostrt *h = p->host;
    uint64_t first = atomic_load(&h->head), head = first, next = atomic_load(&p->next);
    gp_pending *last;
    if (next > h->end)
        next = h->end;
    while (head < next && h->pending[head % h->window].handed == GP_HANDED_IN)
        head++;
    if (head > first) {
        if (!p->nout)
            account(p, first, (int)(head - first));
        gp_party_publish(p, first, (int)(head - first));
        atomic_store(&h->head, head);
    }
    last = &h->pending[head % h->window];
    if (head < next && last->handed == GP_HANDED_FAILED) {
        h->end = head;
        atomic_store(&h->ended, true);
        gp_run_fail(p->run, &last->by->errs);
        count_failed(p, head);
    }
    if (p->stage->workers > 1)
        gp_point_wake(&p->point);
}

/* Is the failure of a frame the failure of the run? What does not match what was
 * expected always is. If not, the errors become warnings. */
static bool is_fatal(gp_threadrt *t)
{
    bool fatal = t->run->graph->on_error == GP_ON_ERROR_STOP;
    for (int i = 0; i < t->errs.n; i++)
        fatal |= t->errs.e[i].code == GP_E_MISMATCH;
    if (fatal)
        return true;
    for (int i = 0; i < t->errs.n; i++)
        t->errs.e[i].code = GP_E_WARN;
    t->errs.failed = 0;
    gp_run_fail(t->run, &t->errs);
    t->errs = (gp_errs){ .n = 0 };
    return false;
}

static size_t bytes_done(const gp_stage *st, const gp_frame *fr)
{
    const gp_view *v = st->nout ? fr->out : fr->in;
    size_t bytes = 0;
    for (int j = 0; j < (st->nout ? st->nout : st->nin); j++)
        bytes += v[j].data ? gp_bytes(&v[j].type) : 0;
    return bytes;
}

/* The first frame of [first, first + n) has a hole in an input, or cannot be
 * laid out; or there is a piece of k frames to run. Returns k; 0 when the first
 * frame was dealt with, -1 when it failed for good. */
static int lay_out_piece(gp_threadrt *t, uint64_t first, int n)
{
    gp_partyrt *p = t->party;
    gp_desk *desk = &p->host->desk[t->worker];
    int k = 0;
    while (k < n) {
        uint64_t f = first + (uint64_t)k;
        gp_meta m = gp_party_meta(p, f);
        bool ok = m.hole || lay_out(p, &desk->frame[k], f, &m, &t->errs);
        desk->born_ns[k] = m.born_ns;
        if (k && !ok)
            t->errs = (gp_errs){ .n = 0 };
        if (k && (m.hole || !ok))
            return k;          /* its turn comes after this piece */
        if (!ok && is_fatal(t))
            return -1;
        if (!ok)
            m.hole = GP_HOLE_FAILED;
        if (m.hole) {
            pass_hole(p, first, m);
            p->host->hole[first % p->host->window] = m.hole;
            return 0;
        }
        k++;
    }
    return k;
}

/* Has the kind run k frames that are laid out. False: the next frame failed for
 * good. */
static bool run_piece(gp_threadrt *t, int k)
{
    gp_partyrt *p = t->party;
    gp_run *run = p->run;
    const gp_stage *st = p->stage;
    gp_frame *fr = p->host->desk[t->worker].frame;
    gp_call call = { .opts = st->opts, .state = run->state[st - run->graph->stage],
                     .worker = t->worker, .name = st->name, .at = st->at,
                     .errs = &t->errs, .ctx = t };
    if (fr->index >= p->host->cached)
        return true;
    gp_thread_doing(t, GP_DOING_WORK, fr->index);
    gp_nvtx_push(run->nvtx, st->name, fr->index);
    int64_t start = run->options.timed ? gp_now_ns() : 0;
    bool ok = st->kind->run(&call, fr, k);
    if (run->options.timed)
        atomic_fetch_add_explicit(&p->busy_ns, (unsigned long long)(gp_now_ns() - start),
                                  memory_order_relaxed);
    gp_nvtx_pop(run->nvtx);
    return ok;
}

/* Runs frames [first, first + n); returns how many may be handed in as done,
 * in order; *failed when the next one failed for good. *end: the source ends.
 * Neither, and fewer than n: the others are not done yet. */
static int work(gp_threadrt *t, uint64_t first, int n, bool *failed, bool *end)
{
    gp_partyrt *p = t->party;
    gp_hostrt *h = p->host;
    gp_desk *desk = &h->desk[t->worker];
    size_t frames = 0, bytes = 0;
    int done = 0;

    while (done < n && !*failed && !*end) {
        int k = lay_out_piece(t, first + (uint64_t)done, n - done), i = 0;
        if (k <= 0) {
            *failed = k < 0;
            done += !k;
            continue;
        }
        bool ok = run_piece(t, k);
        int64_t now = p->source ? wall_clock_ns() : 0;
        int64_t born = p->source && p->run->options.timed ? gp_now_ns() : 0;
        for (; i < k; i++, done++) {
            gp_frame *fr = &desk->frame[i];
            *failed = !ok || (fr->status == GP_FAILED && is_fatal(t));
            *end = !*failed && (fr->status == GP_END || fr->status == GP_STOPPED);
            if (*failed || *end || fr->status == GP_AGAIN)
                break;
            if (p->source && !fr->time_ns)
                fr->time_ns = now;
            sign(p, fr, p->source ? born : desk->born_ns[i]);
            h->hole[fr->index % h->window] = hole_by(fr->status);
            if (fr->status == GP_OK)
                frames++, bytes += bytes_done(p->stage, fr);
        }
        if (i < k)
            break;
    }
    atomic_fetch_add_explicit(&p->frames, frames, memory_order_relaxed);
    atomic_fetch_add_explicit(&p->bytes, bytes, memory_order_relaxed);
    return done;
}

/* The last worker to leave ends the stage. */
static void leave(gp_threadrt *t)
{
    gp_partyrt *p = t->party;
    gp_run *run = p->run;
    gp_hostrt *h = p->host;
    pthread_mutex_lock(&h->lock);
    bool last = --h->live == 0;
    atomic_store(&h->ended, true);
    pthread_mutex_unlock(&h->lock);
    gp_point_wake(&p->point);
    if (!last)
        return;
    const gp_kind *k = p->stage->kind;
    uint64_t head = atomic_load(&h->head);
    bool clean = !atomic_load(&run->failed) && atomic_load(&run->level) < 2;
    if (clean && k->finish) {
        gp_call call = { .opts = p->stage->opts, .name = p->stage->name, .at = p->stage->at,
                         .state = run->state[p->stage - run->graph->stage],
                         .errs = &t->errs, .ctx = t };
        gp_thread_doing(t, GP_DOING_FINISH, head);
        if (!k->finish(&call))
            gp_run_fail(run, &t->errs);
    }
    gp_party_end(p, head, p->nin > 1 || h->end != GP_UNKNOWN);
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
        if (end) {
            h->end = first + (uint64_t)done;
            atomic_store(&h->ended, true);
        }
        if (!end && !failed && done < n)   /* GP_AGAIN: give the others back */
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
