/* host.c - the workers of a host stage: what each does in a turn (turn.c says whose thread does it).
 *
 * Workers take consecutive frames under the stage's lock, work without it, and
 * hand in under it again; whoever hands in the frame that is next publishes it
 * and all that wait behind it. So frames are published in order for any number
 * of workers, and none waits for another. A failed frame is reported when it is
 * next to be published: the error of the lowest frame wins. A source ends at the
 * lowest frame that a worker found not to be there; those behind it that others
 * have made by then are nobody's, and are not counted. Where workers do wait for
 * each other is host_order.c. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/plural.h"
#include "run/host.h"
#include "run/measure.h"
#include "run/nvtx.h"
#include "run/regroup.h"
#include "run/setup.h"
#include "run/tap.h"

enum { TAKEN, HANDED_IN, HANDED_FAILED };      /* gp_hostrt.handed */

/* ---- setting up ------------------------------------------------------ */

static gp_portrt port_of(const gp_run *run, int ring, int buffer, void *konst)
{
    gp_portrt port = { .konst = konst };
    if (ring >= 0)
        port.ring = &run->ring[ring];
    if (buffer >= 0) {
        port.type = &run->graph->buffer[buffer].type;
        port.bytes = gp_bytes(port.type);
        port.row_bytes = port.bytes / (size_t)port.type->dim[0];
    }
    return port;
}

void gp_host_init(gp_actorrt *p)
{
    gp_run *run = p->run;
    const gp_stage *st = p->stage;
    const gp_task *t = &run->plan->task[run->plan->host_task[st - run->graph->stage]];
    gp_arena *a = &run->arena;
    gp_hostrt *h = p->host = GP_NEW_LINES(a, gp_hostrt, 1);

    pthread_mutex_init(&h->lock, NULL);
    h->end = h->window = h->cached = GP_UNKNOWN;
    if (gp_is_idle_sink(run, st))
        h->cached = 0;
    h->live = st->workers;
    if ((run->options.timed || run->graph->latency_ns) && !st->nout)
        h->latency = GP_NEW(a, gp_hist, 1);
    h->port = GP_NEW(a, gp_portrt, st->nin + st->nout);
    for (int i = 0; i < st->nin; i++)
        h->port[i] = port_of(run, t->in[i], st->in[i],
                             t->konst && t->konst[i] >= 0 ? run->extra[t->konst[i]] : NULL);
    for (int o = 0; o < st->nout; o++) {
        h->port[st->nin + o] = port_of(run, t->out[o], st->out[o], NULL);
        uint64_t depth = (uint64_t)run->plan->ring[t->out[o]].depth;
        if (run->cached[st - run->graph->stage] && (!o || depth > h->cached))
            h->cached = depth;
    }
    for (int i = 0; i < st->nin + st->nout; i++)
        if (h->port[i].ring && (uint64_t)h->port[i].ring->ring->depth < h->window)
            h->window = (uint64_t)h->port[i].ring->ring->depth;
    h->max_run = st->at_once > 1 ? st->at_once : st->workers == 1 && st->kind->max_run > 1 ? st->kind->max_run : 1;
    if (p->regroup)                    /* firings, for each of which there is room */
        h->window = p->out[0]->ring->depth > p->regroup->make
                  ? (uint64_t)p->out[0]->ring->depth / (uint64_t)p->regroup->make : 1;
    uint64_t share = h->window > (uint64_t)st->workers ? h->window / (uint64_t)st->workers : 1;
    if ((uint64_t)h->max_run > share)
        h->max_run = (int)share;
    h->handed = GP_NEW(a, unsigned char, h->window);
    h->hole = GP_NEW(a, unsigned char, h->window);
    h->by = GP_NEW(a, gp_threadrt *, h->window);
    if (st->workers > 1) {
        h->bytes = GP_NEW(a, size_t, h->window);
        h->dated = GP_NEW(a, bool, h->window);
    }
    h->view = GP_NEW(a, gp_worker_view, st->workers);
    for (int w = 0; w < st->workers; w++)
        gp_worker_view_init(p, &h->view[w], h->max_run);
}

void gp_host_fini(gp_actorrt *p)
{
    if (p->host)
        pthread_mutex_destroy(&p->host->lock);
}

/* ---- a worker -------------------------------------------------------- */

/* As gp_actor_look, for what the workers of one stage share. */
static gp_look look(gp_actorrt *p, uint64_t next, int *n)
{
    gp_hostrt *h = p->host;
    uint64_t room = h->window - (next - atomic_load(&h->head));
    if (atomic_load(&h->ended))
        return GP_LOOK_OVER;
    return gp_actor_look(p, next, room < (uint64_t)h->max_run ? (int)room : h->max_run, n);
}

gp_look gp_host_look(gp_actorrt *p)
{
    int n;
    return look(p, atomic_load(&p->next), &n);
}

/* Sets what a table with a byte for each frame of the window has for frames
 * [first, first + n). */
static void set_bytes(const gp_hostrt *h, unsigned char *table, uint64_t first, int n, int to)
{
    uint64_t at = first % h->window, left = h->window - at;
    if (n == 1) {
        table[at] = (unsigned char)to;
        return;
    }
    size_t before_end = (uint64_t)n < left ? (size_t)n : left;
    memset(table + at, to, before_end);
    memset(table, to, (size_t)n - before_end);
}

static gp_call call_of(gp_threadrt *t)
{
    gp_actorrt *p = t->actor;
    const gp_stage *st = p->stage;
    long i = st - p->run->graph->stage;
    return (gp_call){ .opts = p->run->opts[i], .user = st->kind->user, .state = p->run->state[i],
                      .worker = t->worker, .name = st->name, .at = st->at, .errs = &t->errs, .ctx = t };
}

/* What stages see of k frames are their numbers over all ranks, and with `back` they are firings again. */
static void number(const gp_actorrt *p, gp_frame *fr, int k, bool back)
{
    const gp_graph *g = p->run->graph;
    for (int i = 0; p->shared && i < k; i++)
        fr[i].index = back ? gp_firing_of(g, true, fr[i].index) : gp_number_of(g, true, fr[i].index);
}

/* A worker of several has taken a frame of a sink; a hole needs no place. */
static void reserve(gp_threadrt *t, uint64_t frame)
{
    gp_worker_view *wv = &t->actor->host->view[t->worker];
    gp_hole hole;
    if (gp_worker_view_lay_out(t->actor, wv, frame, 1, &hole, &t->errs)) {
        gp_call call = call_of(t);
        number(t->actor, wv->frame, 1, false);
        t->actor->stage->kind->reserve(&call, wv->frame);
    }
}

/* Takes frames [*first, *first + *n), if there are any to take. */
static gp_look take(gp_threadrt *t, uint64_t *first, int *n)
{
    gp_actorrt *p = t->actor;
    gp_hostrt *h = p->host;
    pthread_mutex_lock(&h->lock);
    *first = atomic_load(&p->next);
    gp_look l = look(p, *first, n);
    if (l == GP_LOOK_GO) {
        *n = t->halves && *n > 1 && !p->together ? *n / 2 : *n;
        set_bytes(h, h->handed, *first, *n, TAKEN);
        h->view[t->worker].first = *first;
        atomic_store(&p->next, *first + (uint64_t)*n);
        if (p->stage->workers > 1 && p->stage->kind->reserve && !gp_is_idle_sink(p->run, p->stage))
            reserve(t, *first);
    }
    pthread_mutex_unlock(&h->lock);
    return l;
}

/* Frames [first, first + n) have left the pipeline by this sink. */
static void account(gp_actorrt *p, uint64_t first, int n)
{
    gp_hostrt *h = p->host;
    int64_t now = h->latency ? gp_now_ns() : 0;
    while (n) {
        uint64_t at = first % h->window;   /* up to where the window begins again */
        int k = (uint64_t)n < h->window - at ? n : (int)(h->window - at);
        for (int l = 0; l < p->run->naccounts; l++)
            gp_account_seen(&p->run->account[l], (int)(p->stage - p->run->graph->stage), first, k,
                           h->hole + at);
        for (int i = 0; h->latency && i < k; i++) {
            if (h->hole[at + (uint64_t)i])
                continue;
            gp_age age = gp_frame_meta(p, first + (uint64_t)i).age;
            if (!age.born_ns)          /* made before a pause, by a run that had no clock */
                continue;
            gp_hist_add(h->latency, now - age.born_ns, 1);
            h->late += p->run->graph->latency_ns && now - age.born_ns > p->run->graph->latency_ns;
            gp_latency_ended(p->run, &age, now);
        }
        first += (uint64_t)k, n -= k;
    }
}

void gp_run_latency(const gp_run *run, gp_hist *to)
{
    for (int i = 0; i < run->plan->nactors; i++)
        if (run->actor[i].host && run->actor[i].host->latency)
            gp_hist_merge(to, run->actor[i].host->latency);
}

/* Frames [first, first + n) of a stage with several workers are next: none of them lies behind the end any more. */
static void settle(gp_actorrt *p, uint64_t first, int n)
{
    gp_hostrt *h = p->host;
    for (int i = 0; i < n; i++) {
        uint64_t f = first + (uint64_t)i, at = f % h->window;
        atomic_fetch_add_explicit(&p->bytes, h->bytes[at], memory_order_relaxed);
        atomic_fetch_add_explicit(&p->frames, h->hole[at] == GP_NO_HOLE, memory_order_relaxed);
        if (!h->dated[at])
            continue;
        int64_t *time_ns = &gp_meta_of(p->out[0], f)->time_ns;
        h->last_ns = *time_ns > h->last_ns ? *time_ns : h->last_ns;
        for (int o = 0; o < p->nout; o++)      /* no frame is older than the one before */
            gp_meta_of(p->out[o], f)->time_ns = h->last_ns;
    }
}

/* Is what cannot go on a loss of its own branch alone? */
static bool ends_alone(const gp_actorrt *p)
{
    const gp_stage *st = p->stage;
    return st->on_error == GP_ON_ERROR_DROP && st->max_dropped < 0 && st->max_part < 0 && gp_actor_is_behind_leak(p);
}

/* What it has not got is cancelled, though those before it may have ended well. */
static void cut_off(const gp_actorrt *p)
{
    for (int i = 0; i < p->run->naccounts; i++)
        if (gp_comes_from(p->stage, p->run->account[i].source) && gp_is_leaky(&p->run->graph->stage[p->run->account[i].source]))
            atomic_store(&p->run->account[i].cut, true);
}

/* Publishes what is next, now that frames [from, from + done) are handed in; call with the lock. */
static void hand_over(gp_actorrt *p, uint64_t from, int done)
{
    gp_hostrt *h = p->host;
    uint64_t first = atomic_load(&h->head), next = atomic_load(&p->next);
    int n = from == first ? done : 0;
    uint64_t at = (first + (uint64_t)n) % h->window;
    if (next > h->end)
        next = h->end;
    while (first + (uint64_t)n < next && h->handed[at] == HANDED_IN) {
        n++;
        at = at + 1 < h->window ? at + 1 : 0;
    }
    if (n) {
        if (h->bytes)
            settle(p, first, n);
        if (!p->nout)
            account(p, first, n);
        gp_actor_complete(p, first, n);
        atomic_store(&h->head, first + (uint64_t)n);
    }
    if (first + (uint64_t)n < next && h->handed[at] == HANDED_FAILED) {
        h->end = first + (uint64_t)n;
        atomic_store(&h->ended, true);
        p->broke = ends_alone(p) && !gp_frame_drop_or_fail(h->by[at]);
        if (p->broke)
            cut_off(p);
        else
            gp_run_fail(p->run, &h->by[at]->errs);
        gp_actor_failed(p, h->end);
    }
    if (p->stage->workers > 1)
        gp_eventcount_wake(&p->changed);
}

/* Has a frame a shape that its buffer cannot have, but for its rows? */
static bool is_wrong(const gp_buffer *b, const gp_type *t)
{
    bool wrong = t->dtype != b->type.dtype || t->ndim != b->type.ndim;
    for (int k = 1; k < b->type.ndim && !wrong; k++)
        wrong = b->varies >> k & 1 ? t->dim[k] < 1 || t->dim[k] > b->type.dim[k] : t->dim[k] != b->type.dim[k];
    return wrong;
}

/* The output of which a frame that is done has more or fewer rows than can be, or another shape that cannot be; -1:
 * none. */
static inline int wrong_shape(const gp_actorrt *p, const gp_frame *fr)
{
    for (int o = 0; o < p->stage->nout; o++) {
        const gp_ringrt *r = p->host->port[p->stage->nin + o].ring;
        if (fr->out[o].type.dim[0] < 0 || fr->out[o].type.dim[0] > fr->out[o].rows
            || is_wrong(r->buffer, &fr->out[o].type))
            return o;
    }
    return -1;
}

/* Has the kind run k frames that are laid out; *span, in a timed run: from when to when.
 * False: the next frame failed for good. */
static bool run_piece(gp_threadrt *t, int k, gp_interval *span)
{
    gp_actorrt *p = t->actor;
    gp_run *run = p->run;
    const gp_stage *st = p->stage;
    gp_worker_view *wv = &p->host->view[t->worker];
    gp_frame *fr = wv->frame;
    gp_call call = call_of(t);
    if (fr->index >= p->host->cached)
        return true;
    t->goes_back = false;
    gp_thread_doing(t, GP_DOING_WORK, fr->index);
    gp_nvtx_push(p, fr->index);
    span->start = gp_measure_now(run);
    int64_t cpu = gp_measure_cpu(t);
    number(p, fr, k, false);
    bool ok = st->kind->run(&call, fr, k);
    number(p, fr, k, true);
    span->cpu = gp_measure_cpu_since(cpu);
    span->end = gp_measure_now(run);
    gp_nvtx_pop(p);
    if (wv->keeps && !gp_host_kept_look(p, wv, &t->errs))
        return false;
    if (wv->looks && ok && !t->errs.failed && fr->status == GP_OK && wrong_shape(p, fr) < 0)
        return gp_host_unwritten_look(p, wv, &t->errs);
    return ok;
}

/* Each of several workers tells what it leaves out when it has its turn: warnings come in the order of frames, and
 * none is of a frame behind the end. A thread of the program does not wait for the loans before its own, which it may
 * have. */
static bool is_fatal(gp_threadrt *t, uint64_t frame)
{
    bool tells = t->actor->stage->workers > 1 && t->actor->stage->on_error == GP_ON_ERROR_DROP && !t->actor->on_loan;
    if (!tells || gp_host_await_turn(t, frame))
        return gp_frame_drop_or_fail(t);
    t->errs = (gp_errs){ .at = t->errs.at };
    return true;
}

/* Does a text name this frame ("frame 13")? */
static bool names(const char *text, const char *frame)
{
    size_t n = strlen(frame);
    while ((text = strstr(text, frame)) && text[n] >= '0' && text[n] <= '9')
        text++;
    return text;
}

/* What a stage says of a failure is of a frame, whose number few stages name; but not what the machine lacks,
 * nor what is wrong in the pipeline. */
static void tell_frame(gp_threadrt *t, uint64_t frame)
{
    char what[32];
    snprintf(what, sizeof what, "frame %llu", (unsigned long long)gp_actor_number(t->actor, frame));
    for (int i = 0; i < t->errs.n; i++) {
        gp_err *e = &t->errs.e[i];
        size_t n = strlen(e->msg);
        if (e->code == GP_E_WARN || e->code == GP_E_NOTE || e->code == GP_E_RESOURCE || e->code == GP_E_SPEC)
            continue;
        if (!names(e->msg, what) && n + sizeof ", in " + strlen(what) <= sizeof e->msg)
            snprintf(e->msg + n, sizeof e->msg - n, ", in %s", what);
        return;
    }
}

/* Is the run to end, or does nobody take any more what this stage makes? Else it would end as if it were whole. */
static bool may_stop(const gp_threadrt *t)
{
    return atomic_load(&t->run->level) || atomic_load(&t->run->failed) || (t->actor->source && !gp_actor_is_wanted(t->actor));
}

/* Makes a failure of what run() should not have done: `fr` is the frame, `ok` what it
 * returned. */
static void check_frame(gp_threadrt *t, gp_frame *fr, bool ok)
{
    const gp_stage *st = t->actor->stage;
    gp_status s = fr->status;
    unsigned long long frame = gp_actor_number(t->actor, fr->index);
    int o = ok && s == GP_OK ? wrong_shape(t->actor, fr) : -1;
    const gp_buffer *b = o >= 0 ? t->actor->host->port[st->nin + o].ring->buffer : NULL;
    char made[128], most[GP_BOUNDS_TEXT];
    if (b && (b->varies || is_wrong(b, &fr->out[o].type))) {
        gp_fail(&t->errs, GP_E_RUN, st->at, "stage '%s' made '%s' of frame %llu %s, which does not fit in %s", st->name,
                st->out_name[o], frame, gp_type_text(&fr->out[o].type, made),
                gp_bounds_text(&b->type, b->varies, most));
        fr->status = GP_FAILED;
    } else if (o >= 0) {
        gp_fail(&t->errs, GP_E_RUN, st->at, "stage '%s' made %lld row%s of '%s' in frame %llu, which "
                "is outside 0..%lld", st->name, (long long)fr->out[o].type.dim[0],
                gp_plural(fr->out[o].type.dim[0]), st->out_name[o],
                frame, (long long)fr->out[o].rows);
        fr->status = GP_FAILED;
    } else if ((!ok || s == GP_FAILED) && !t->errs.failed)
        gp_fail(&t->errs, GP_E_RUN, st->at, "stage '%s' failed in frame %llu and does not say why",
                st->name, frame);
    else if (ok && s == GP_STOPPED && !may_stop(t)) {
        gp_fail(&t->errs, GP_E_RUN, st->at, "stage '%s' gave frame %llu the status GP_STOPPED, and nobody asked the run to "
                "stop: %s", st->name, frame, st->nin ? "a frame that it leaves out gets GP_DROP, one that failed GP_FAILED"
                : "where there are no more frames it is GP_END, and GP_FAILED where they broke off");
        fr->status = GP_FAILED;
    } else if (ok && ((s == GP_END && st->nin) || s < GP_OK || s > GP_NO_ROUND || (s == GP_ABSENT && !st->to_rank)
                      || (s == GP_LOST && st->nin) || (s == GP_NO_ROUND && !st->kind->collective))) {
        gp_fail(&t->errs, GP_E_RUN, st->at, "stage '%s' gave frame %llu the status %d%s, which it may not return", st->name,
                frame, (int)s, s == GP_END ? " (GP_END)" : s == GP_ABSENT ? " (GP_ABSENT)" : s == GP_LOST ? " (GP_LOST)" : s == GP_NO_ROUND ? " (GP_NO_ROUND)" : "");
        fr->status = GP_FAILED;
    } else if (ok && s == GP_AGAIN && fr == t->actor->host->view[t->worker].frame && !t->goes_back) {
        gp_fail(&t->errs, GP_E_RUN, st->at, "stage '%s' gave frame %llu the status GP_AGAIN, which the first frame of a call "
                "may not have", st->name, frame);
        fr->status = GP_FAILED;
    } else if (ok && s == GP_OK && !gp_finite_is(t->actor, fr, &t->errs)) {
        fr->status = GP_FAILED;
    }
}

/* An error that was added is believed, not the status beside it: it is of the one frame that
 * was run. False: of several nobody knows which. */
static bool is_of_a_frame(gp_frame *fr, int k)
{
    int failed = 0, last = k;
    for (int i = k - 1; i >= 0; i--) {
        failed += fr[i].status == GP_FAILED;
        last = fr[i].status == GP_AGAIN ? i : last;
    }
    if (failed)
        return true;
    if (last <= 1)
        fr[0].status = GP_FAILED;
    return last <= 1;
}

/* Where frames are joined in a file, nobody sees that one is missing. */
static void note_missing(gp_actorrt *p, uint64_t f, gp_hole hole)
{
    const gp_stage *st = p->stage;
    gp_missing *m = &p->host->missing;
    bool joins = st->kind->joins && st->writes && !st->file_each && !st->any_length;
    if (!joins || gp_is_idle_sink(p->run, st) || hole == GP_NO_HOLE || hole == GP_HOLE_ABSENT || hole == GP_HOLE_DROPPED
        || hole == GP_HOLE_UNDONE)
        return;
    uint64_t number = gp_actor_number(p, f), all = 0;
    pthread_mutex_lock(&p->host->lock);
    for (int i = 0; i < GP_HOLES; i++)
        all += m->n[i];
    m->first = all && m->first < number ? m->first : number;
    m->n[hole]++;
    pthread_mutex_unlock(&p->host->lock);
}

/* What became of k frames that were run: how many in a row are done; *there of these
 * are no holes. *failed: the one after them failed for good. *end: there is none. */
static int sort_out(gp_threadrt *t, bool ok, int k, int *there, bool *failed, bool *end)
{
    gp_hostrt *h = t->actor->host;
    gp_frame *fr = h->view[t->worker].frame;
    int plain = 0;
    ok = ok && (!t->errs.failed || is_of_a_frame(fr, k));
    while (ok && plain < k && fr[plain].status == GP_OK && wrong_shape(t->actor, &fr[plain]) < 0
           && gp_finite_is(t->actor, &fr[plain], NULL))
        plain++;
    set_bytes(h, h->hole, fr->index, plain, GP_NO_HOLE);
    *there = plain;
    for (int i = plain; i < k; i++) {
        if (t->errs.failed && (k == 1 || (ok && fr[i].status == GP_FAILED)))
            tell_frame(t, fr[i].index);
        check_frame(t, &fr[i], ok);
        gp_status s = fr[i].status;
        *failed = !ok || (s == GP_FAILED && is_fatal(t, fr[i].index));
        *end = !*failed && (s == GP_END || s == GP_STOPPED);
        if (*failed || *end || s == GP_AGAIN)
            return i;
        h->hole[fr[i].index % h->window] = (unsigned char)gp_hole_by(s);
        note_missing(t->actor, fr[i].index, gp_hole_by(s));
        *there += s == GP_OK;
    }
    return k;
}

/* A source's frames get their times when they are made. */
static void date(const gp_actorrt *p, gp_worker_view *wv, int n)
{
    struct timespec now = { 0 };
    const gp_run *run = p->run;
    int64_t born = run->options.timed || run->graph->latency_ns || run->graph->deadlines ? gp_now_ns() : 0;
    for (int i = 0; i < n; i++) {
        bool before = born && wv->age[i].born_ns && wv->age[i].born_ns < born;
        wv->age[i] = (gp_age){ .born_ns = before ? wv->age[i].born_ns : born };
        if (p->host->dated)
            p->host->dated[wv->frame[i].index % p->host->window] = !wv->frame[i].time_ns;
        if (wv->frame[i].time_ns)
            continue;
        if (!now.tv_sec)
            clock_gettime(CLOCK_REALTIME, &now);
        wv->frame[i].time_ns = now.tv_sec * 1000000000LL + now.tv_nsec;
    }
}

/* A frame that cannot be run: it has a hole in an input, or else an error was
 * added. False: it failed for good. */
static bool skip(gp_threadrt *t, uint64_t f, gp_hole hole)
{
    gp_actorrt *p = t->actor;
    gp_hostrt *h = p->host;
    if (!hole)
        tell_frame(t, f);
    if (!hole && is_fatal(t, f))
        return false;
    if (!hole)
        hole = GP_HOLE_FAILED;
    const gp_kind *k = p->stage->kind;
    bool alone = !k->collective && !k->joins;
    if ((p->together || alone) && hole != GP_HOLE_ABSENT && k->skipped && !gp_is_idle_sink(p->run, p->stage)) {
        gp_call call = call_of(t);     /* it may wait for other ranks, which counts as idle: a part of what it is busy */
        call.hole = hole == GP_HOLE_LOST ? GP_LOST : hole == GP_HOLE_FAILED ? GP_FAILED : GP_DROP;
        gp_interval span = { .start = gp_measure_now(p->run) };
        bool ok = k->skipped(&call, gp_actor_number(p, f));
        span.end = gp_measure_now(p->run);
        gp_measure_work(t, span, f, 0);
        if (!ok)
            return false;
    }
    if (h->bytes)
        h->bytes[f % h->window] = 0, h->dated[f % h->window] = false;
    gp_frame_write_hole(p, f, hole);
    note_missing(p, f, hole);
    h->hole[f % h->window] = (unsigned char)hole;
    return true;
}

/* The same for a stage that regroups. */
static int regroup(gp_threadrt *t, uint64_t first, int n, bool *failed)
{
    gp_actorrt *p = t->actor;
    gp_interval span = { .start = gp_measure_now(p->run) };
    int64_t cpu = gp_measure_cpu(t);
    int good = gp_regroup_good(p, first, n, &t->errs);
    bool hole = !good && !gp_frame_drop_or_fail(t);
    gp_thread_doing(t, GP_DOING_WORK, first);
    *failed = !good && !hole;
    if (*failed)
        return 0;
    for (int i = 0; i < good && first + (uint64_t)i < p->host->cached; i++)
        gp_regroup_copy(p, first + (uint64_t)i);
    gp_regrouped made = gp_regroup_write_metas(p, first, hole ? 1 : good, hole);
    atomic_fetch_add_explicit(&p->bytes, made.bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&p->frames, made.frames, memory_order_relaxed);
    span.cpu = gp_measure_cpu_since(cpu);
    span.end = gp_measure_now(p->run);
    gp_measure_work(t, span, first, hole ? 1 : good);
    return hole ? 1 : good;
}

/* What a worker did from frame `first` on: `done` frames, of which `frames` are no holes. Of several workers a stage's
 * frames are counted when they are handed over. */
static void count(gp_actorrt *p, uint64_t first, int done, int frames, size_t bytes)
{
    gp_hostrt *h = p->host;
    if (h->bytes) {
        for (int i = 0; i < done; i++)
            h->bytes[(first + (uint64_t)i) % h->window] = i ? 0 : bytes;
        return;
    }
    atomic_fetch_add_explicit(&p->bytes, bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&p->frames, (unsigned)frames, memory_order_relaxed);
}

/* The kind has run k frames that are laid out, which are frames [first, first + k): those that are done are counted,
 * and how many these are is returned. `span`: as in run_piece. The rest as work() has it. */
static int ran(gp_threadrt *t, bool ok, uint64_t first, int k, gp_interval span, bool *failed, bool *end)
{
    gp_actorrt *p = t->actor;
    gp_worker_view *wv = &p->host->view[t->worker];
    int there, done = sort_out(t, ok, k, &there, failed, end);
    gp_measure_work(t, span, first, done);
    if (p->source)
        date(p, wv, done);
    count(p, first, done, there, gp_frames_write_metas(p, wv, done));
    return done;
}

/* Calls run() for the first of frames [first, first + n), or passes by the holes that are before them: run() may take
 * long, or wait. Returns how many may be handed in as done, in order; *failed when the next one failed for good. *end:
 * the source ends. Neither, and fewer than n: the others are not done yet. */
static int work(gp_threadrt *t, uint64_t first, int n, bool *failed, bool *end)
{
    gp_actorrt *p = t->actor;
    gp_worker_view *wv = &p->host->view[t->worker];
    int done = 0;

    while (done < n && p->regroup && !*failed)
        done += regroup(t, first + (uint64_t)done, n - done, failed);
    while (done < n && !p->regroup) {
        uint64_t f = first + (uint64_t)done;
        gp_hole hole;
        int k = gp_worker_view_lay_out(p, wv, f, n - done, &hole, &t->errs);
        if (k && !done) {
            gp_interval span = { 0 };
            bool ok = run_piece(t, k, &span);
            done = ran(t, ok, f, k, span, failed, end);
        }
        if (k)
            break;
        *failed = !skip(t, f, hole);
        if (*failed)
            break;
        done++;
        if (p->together)               /* other ranks are waited for */
            break;
    }
    return done;
}

/* Frames [first, first + done) are; n more that were taken are not, and go back. */
static void hand_in(gp_threadrt *t, uint64_t first, int done, int n, bool failed, bool end)
{
    gp_actorrt *p = t->actor;
    gp_hostrt *h = p->host;
    uint64_t next = first + (uint64_t)done;
    pthread_mutex_lock(&h->lock);
    set_bytes(h, h->handed, first, done, HANDED_IN);
    if (failed) {
        set_bytes(h, h->handed, next, 1, HANDED_FAILED);
        h->by[next % h->window] = t;
    }
    if (end && next < h->end)
        h->end = next;
    if (end)
        atomic_store(&h->ended, true);
    if (n) {
        atomic_store(&p->next, next);
        t->measured.ended_early++, t->measured.frames_of_ended += done;
    }
    hand_over(p, first, done);
    pthread_mutex_unlock(&h->lock);
}

gp_look gp_host_step(gp_threadrt *t, int *n)
{
    gp_actorrt *p = t->actor;
    uint64_t first;
    gp_look l = take(t, &first, n);
    if (l == GP_LOOK_WAIT)
        return l;
    bool over = l == GP_LOOK_GO && p->stage->in_order && !gp_host_await_begin(t);
    gp_pause_end(t, first);
    if (l != GP_LOOK_GO || over)
        return over ? GP_LOOK_OVER : l;

    bool failed = false, end = false, alone = p->stage->workers == 1;
    int all = *n;
    *n = 0;
    do {
        int done = work(t, first + (uint64_t)*n, all - *n, &failed, &end);
        *n += done, over = failed || end;
        if (p->stage->in_order && !over && (alone || *n == all))
            gp_host_let_begin(p, first + (uint64_t)*n);
        hand_in(t, first + (uint64_t)(*n - done), done, alone && !over ? all - *n : 0, failed, end);
    } while (!alone && !over && *n < all);     /* others have those behind these */
    return over ? GP_LOOK_OVER : GP_LOOK_GO;
}

gp_look gp_host_lend(gp_threadrt *t, gp_frame **frame)
{
    gp_actorrt *p = t->actor;
    gp_worker_view *wv = &p->host->view[t->worker];
    uint64_t first;
    int n;
    gp_hole hole;
    gp_look l = take(t, &first, &n);
    *frame = NULL;
    if (l == GP_LOOK_WAIT)
        return l;
    gp_pause_end(t, first);
    if (l != GP_LOOK_GO)
        return l;
    if (gp_worker_view_lay_out(p, wv, first, 1, &hole, &t->errs)) {
        *frame = wv->frame;
        number(p, wv->frame, 1, false);
        gp_thread_doing(t, GP_DOING_WORK, first);
        gp_measure_idle(t, t->loan_ns);
        t->loan_ns = gp_measure_now(p->run);
        return l;
    }
    bool failed = !skip(t, first, hole);
    hand_in(t, first, !failed, 0, failed, false);
    return failed ? GP_LOOK_OVER : l;
}

void gp_host_take_back(gp_threadrt *t)
{
    gp_actorrt *p = t->actor;
    gp_worker_view *wv = &p->host->view[t->worker];
    gp_interval span = { t->loan_ns, gp_measure_now(p->run), 0 };
    bool failed = false, end = false;
    t->loan_ns = span.end;
    number(p, wv->frame, 1, true);
    int done = ran(t, true, wv->first, 1, span, &failed, &end);
    hand_in(t, wv->first, done, 0, failed, end);
}

bool gp_host_skip_hole(gp_threadrt *t)
{
    gp_actorrt *p = t->actor;
    gp_hostrt *h = p->host;
    gp_hole hole = GP_NO_HOLE;
    int n;
    pthread_mutex_lock(&h->lock);
    uint64_t next = atomic_load(&p->next);
    if (!p->source && look(p, next, &n) == GP_LOOK_GO && (hole = gp_meta_of(p->in[0].ring, next)->hole)) {
        set_bytes(h, h->handed, next, 1, TAKEN);
        h->view[t->worker].first = next;
        atomic_store(&p->next, next + 1);
    }
    pthread_mutex_unlock(&h->lock);
    if (hole && skip(t, next, hole))
        hand_in(t, next, 1, 0, false, false);
    return hole;
}

void gp_host_close(gp_actorrt *p)
{
    gp_hostrt *h = p->host;
    pthread_mutex_lock(&h->lock);
    uint64_t next = atomic_load(&p->next);
    h->end = next < h->end ? next : h->end;
    atomic_store(&h->ended, true);
    pthread_mutex_unlock(&h->lock);
}

static void tell_missing(const gp_actorrt *p)
{
    static const char *const why[GP_HOLES] = { [GP_HOLE_FAILED] = "failed", [GP_HOLE_LATE] = "late", [GP_HOLE_LOST] = "lost",
                                               [GP_HOLE_FULL] = "for lack of room" };
    const gp_stage *st = p->stage;
    const gp_missing *m = &p->host->missing;
    const char *file = st->writes ? strrchr(st->writes, '/') : NULL;
    gp_errs e = { .n = 0 };
    char text[120] = "";
    uint64_t all = 0;
    for (int i = 0; i < GP_HOLES; i++) {
        size_t n = strlen(text);
        if (m->n[i])
            snprintf(text + n, sizeof text - n, "%s%llu %s", all ? ", " : "", (unsigned long long)m->n[i], why[i]);
        all += m->n[i];
    }
    if (all)
        gp_fail(&e, GP_E_WARN, st->at, "'%s' has no gap where %llu frame%s missing (%s), frame %llu first: frames that have a file "
                "each (%%05d in its name) keep their numbers", file ? file + 1 : st->writes, (unsigned long long)all, all == 1 ? " is" : "s are",
                text, (unsigned long long)m->first);
    gp_run_fail(p->run, &e);
}

void gp_host_leave(gp_threadrt *t)
{
    gp_actorrt *p = t->actor;
    gp_run *run = p->run;
    gp_hostrt *h = p->host;
    pthread_mutex_lock(&h->lock);
    bool last = --h->live == 0;
    atomic_store(&h->ended, true);
    pthread_mutex_unlock(&h->lock);
    gp_eventcount_wake(&p->changed);
    if (!last)
        return;
    if (atomic_load(&p->paused) && h->end == GP_UNKNOWN) {
        gp_actor_pause(p);
        return;
    }
    atomic_store(&p->paused, false);   /* one of several workers came to its end */
    const gp_kind *k = p->stage->kind;
    uint64_t head = atomic_load(&h->head);
    if (k->finish)
        gp_host_await_ranks(p);
    bool clean = !atomic_load(&run->failed) && atomic_load(&run->level) < 2 && !p->broke;
    bool early = p->nin > 1 || h->end != GP_UNKNOWN;
    /* While this one waits for other ranks, they may wait for those behind it to end. */
    bool first = clean && p->together && p->nout;
    if (first) {
        gp_host_waits(p, true);
        gp_actor_end(p, head, early);
    }
    if (clean && k->finish && !p->stage->elsewhere && !gp_is_idle_sink(run, p->stage)) {
        gp_call call = call_of(t);
        call.worker = 0;
        gp_thread_doing(t, GP_DOING_FINISH, head);
        int before = t->errs.failed;
        gp_interval span = { .start = gp_measure_now(run) };
        atomic_store(&p->finishes, true);
        bool ok = k->finish(&call);
        atomic_store(&p->finishes, false);
        span.end = gp_measure_now(run);
        gp_measure_work(t, span, head, 0);
        if (!ok && t->errs.failed == before)
            gp_fail(&t->errs, GP_E_RUN, p->stage->at, "stage '%s' failed at its end and does not say "
                    "why", p->name);
        if (t->errs.failed > before)
            gp_run_fail(run, &t->errs);
    }
    if (k->break_off && (!clean || atomic_load(&run->failed))) {
        gp_errs warnings = { .n = 0 };
        gp_thread_doing(t, GP_DOING_FINISH, head);
        gp_stages_break_off(run, (int)(p->stage - run->graph->stage), &warnings);
        gp_run_fail(run, &warnings);
    }
    if (first)
        gp_host_waits(p, false);
    tell_missing(p);
    for (int l = 0; clean && !p->nout && l < run->naccounts; l++)
        gp_account_last(&run->account[l], (int)(p->stage - run->graph->stage), head);
    if (!first)
        gp_actor_end(p, head, early);
}

/* ---- what stages may ask for ----------------------------------------- */

void gp_source_dropped(gp_call *c, uint64_t n)
{
    const gp_threadrt *t = c->ctx;
    gp_run *run = t->run;
    atomic_fetch_add(&run->account[run->account_of[t->actor->stage - run->graph->stage]].lost, n);
}

void gp_source_came(gp_call *c, const gp_frame *f, int64_t t_ns)
{
    const gp_threadrt *t = c->ctx;
    gp_worker_view *wv = &t->actor->host->view[t->worker];
    wv->age[f - wv->frame].born_ns = t_ns;
}

void gp_frame_faulty(gp_call *c)
{
    const gp_threadrt *t = c->ctx;
    for (int i = 0; i < t->run->naccounts; i++)
        if (gp_comes_from(t->actor->stage, t->run->account[i].source))
            atomic_fetch_add(&t->run->account[i].faulty, 1);
}

void gp_working_on(gp_call *c, uint64_t index)
{
    gp_threadrt *t = c->ctx;
    atomic_store_explicit(&t->frame, gp_firing_of(t->run->graph, t->actor->shared, index), memory_order_relaxed);
}

bool gp_cancelled(const gp_call *c)
{
    const gp_threadrt *t = c->ctx;
    return atomic_load(&t->run->level) >= 2;
}

bool gp_stopping(const gp_call *c)
{
    const gp_threadrt *t = c->ctx;
    return atomic_load(&t->run->level) >= 1;
}
