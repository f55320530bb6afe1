/* run.c - runs a plan.
 *
 * A plan's actors (host stages and segments) each have threads of their own;
 * between them are rings. A ring has one producer, and one cursor for each
 * consumer. An actor may take frame i when each of its input rings holds frame i
 * and each of its output rings has a free slot for it (ring.c): that is all the
 * scheduling and all the back-pressure there is. Host stages are worked by one or
 * more workers who publish in order (host.c). Segments have a launcher, which
 * queues runs of frames on streams, and a reaper, which waits for them in order
 * (segment.c).
 *
 *   ends      A source that ends sets the end of its rings; whoever reaches the
 *             end of an input passes it on. An actor that takes no more closes
 *             its cursors; a producer whose consumers are all closed ends.
 *   holes     A dropped or failed frame is published like any other, marked in
 *             its meta; everybody passes it on.
 *   stopping  Level 1: sources end at once, the rest drains. Level 2: nobody
 *             takes another frame. An error is level 1, and the failing actor
 *             ends at the failed frame, so that all before it comes out.
 *   account   Every frame of every source is counted once by its ledger.
 *
 * Everything is allocated, opened, built and loaded before frame 0. This file
 * makes the tables and the threads, and takes them down. */
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "run/nvtx.h"
#include "run/run.h"
#include "run/trace.h"

/* ---- errors and levels ----------------------------------------------- */

void gp_run_level(gp_run *run, int level)
{
    int was = atomic_load(&run->level);
    while (was < level && !atomic_compare_exchange_weak(&run->level, &was, level))
        ;
    for (int i = 0; atomic_load(&run->is_up) && run->actor && i < run->plan->nactors; i++)
        gp_eventcount_wake(&run->actor[i].changed);
}

void gp_run_fail(gp_run *run, const gp_errs *errs)
{
    pthread_mutex_lock(&run->lock);
    bool first = !atomic_load(&run->failed);
    if (!errs->failed || first)            /* the first error wins; warnings stay */
        gp_errs_add(&run->errs, errs);
    if (errs->failed)
        atomic_store(&run->failed, true);
    pthread_mutex_unlock(&run->lock);
    if (errs->failed)
        gp_run_level(run, 1);
}

bool gp_frame_is_fatal(gp_threadrt *t)
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

/* ---- memory ---------------------------------------------------------- */

static void *plain_alloc(size_t bytes, gp_errs *errs)
{
    void *p = NULL;
    size_t n = (bytes + 255) & ~(size_t)255;
    if (posix_memalign(&p, 4096, n ? n : 256)) {
        gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory: %.1f MiB",
                (double)bytes / 1048576);
        return NULL;
    }
    memset(p, 0, n);           /* touched now, not at the first frames */
    return p;
}

/* Memory that the device has a say in comes from its back end. */
static bool backend_owns(const gp_run *run, gp_place place, bool pinned)
{
    return run->dev && (place.device || pinned);
}

static void *take_memory(gp_run *run, gp_place place, bool pinned, size_t bytes, gp_errs *errs)
{
    return backend_owns(run, place, pinned)
        ? run->dev->backend->alloc(run->dev, place.device, bytes, errs)
        : plain_alloc(bytes, errs);
}

static void give_memory(gp_run *run, gp_place place, bool pinned, void *mem, size_t bytes)
{
    if (mem && backend_owns(run, place, pinned))
        run->dev->backend->free(run->dev, place.device, mem, bytes);
    else
        free(mem);
}

typedef struct gp_upload { void *dst; const void *src; size_t bytes; } gp_upload;

static bool record_upload(gp_rec *r, void *arg)
{
    gp_upload *u = arg;
    return r->ops->item(r, 0, NULL, 0) && r->ops->copy(r, u->dst, u->src, u->bytes);
}

/* What a constant or a table holds, in host memory. */
static bool load_extra(gp_run *run, const gp_extra *x, void *host, gp_errs *errs)
{
    const gp_graph *g = run->graph;
    if (x->use == GP_EXTRA_CONST)
        return gp_const_load(&g->buffer[x->buffer], host, errs);
    const gp_stage *st = &g->stage[x->stage];
    gp_type in[GP_MAXPORT] = { { 0 } };
    for (int i = 0; i < st->nin; i++)
        if (st->in[i] >= 0)
            in[i] = g->buffer[st->in[i]].type;
    return st->kind->table(&(gp_table_call){ .opts = st->opts, .user = st->kind->user, .nin = st->nin,
                                             .in = in, .data = host, .bytes = x->bytes })
        || gp_fail(errs, GP_E_RESOURCE, st->at, "stage '%s': out of memory", st->name);
}

static bool fill_extra(gp_run *run, int i, gp_errs *errs)
{
    const gp_extra *x = &run->plan->extra[i];
    if (x->use != GP_EXTRA_CONST && x->use != GP_EXTRA_TABLE)
        return true;
    if (!x->place.device || run->plan->unified)
        return load_extra(run, x, run->extra[i], errs);
    const gp_backend *be = run->dev->backend;
    void *host = be->alloc(run->dev, false, x->bytes, errs);
    gp_upload u = { run->extra[i], host, x->bytes };
    bool ok = host && load_extra(run, x, host, errs)
        && be->direct(run->dev, 0, record_upload, &u, errs)
        && be->wait(run->dev, 0, GP_SYNC_BLOCK, errs) == 1;
    if (host)
        be->free(run->dev, false, host, x->bytes);
    return ok;
}

/* Gives an error without a place that of a buffer in the pool. */
static bool no_room(const gp_run *run, int pool, gp_errs *errs)
{
    for (int i = 0; errs->n && i < run->plan->nrings; i++) {
        const gp_ring *r = &run->plan->ring[i];
        if (r->pool == pool && r->buffer >= 0 && !errs->e[errs->n - 1].at.file)
            errs->e[errs->n - 1].at = run->graph->buffer[r->buffer].at;
    }
    return false;
}

static bool take_all_memory(gp_run *run, gp_errs *errs)
{
    const gp_plan *plan = run->plan;
    for (int i = 0; i < plan->npools; i++) {
        const gp_pool *p = &plan->pool[i];
        if (!(run->pool[i] = take_memory(run, p->place, p->pinned,
                                         p->stride * (size_t)p->depth, errs)))
            return no_room(run, i, errs);
    }
    for (int i = 0; i < plan->nextras; i++) {
        const gp_extra *x = &plan->extra[i];
        if (!(run->extra[i] = take_memory(run, x->place, false, x->bytes, errs))
            || !fill_extra(run, i, errs))
            return false;
    }
    return true;
}

/* ---- tables ---------------------------------------------------------- */

static void make_rings(gp_run *run)
{
    const gp_plan *plan = run->plan;
    for (int i = 0; i < plan->nrings; i++) {
        gp_ringrt *r = &run->ring[i];
        const gp_ring *ring = r->ring = &plan->ring[i];
        r->buffer = ring->buffer >= 0 ? &run->graph->buffer[ring->buffer] : NULL;
        r->base = (char *)run->pool[ring->pool] + ring->offset;
        r->stride = plan->pool[ring->pool].stride;
        r->meta = GP_NEW(&run->arena, gp_meta, ring->depth);
        atomic_init(&r->end, GP_UNKNOWN);
        r->consumed = GP_NEW_LINES(&run->arena, gp_cursor, ring->nconsumers);
    }
}

const gp_stage *gp_actor_stage(const gp_actorrt *p, int *at)
{
    const gp_plan *plan = p->run->plan;
    if (p->kind == GP_ACTOR_HOST)
        return (*at)++ ? NULL : p->stage;
    while (*at < p->segment->ntasks) {
        int st = plan->task[p->segment->task[(*at)++]].stage;
        if (st >= 0)
            return &plan->graph->stage[st];
    }
    return NULL;
}

gp_loc gp_actor_at(const gp_actorrt *p)
{
    int at = 0;
    return gp_actor_stage(p, &at)->at;
}

static const char *actor_name(const gp_actorrt *p)
{
    int at = 0;
    const gp_stage *first = gp_actor_stage(p, &at), *last = first, *st;
    while ((st = gp_actor_stage(p, &at)))
        last = st;
    return first == last ? first->name
        : gp_format(&p->run->arena, "%s..%s", first->name, last->name);
}

static void make_actor(gp_run *run, int index)
{
    const gp_plan *plan = run->plan;
    gp_actorrt *p = &run->actor[index];
    const gp_actor *actor = &plan->actor[index];

    p->run = run, p->index = index, p->kind = actor->kind;
    gp_eventcount_init(&p->changed);
    if (p->kind == GP_ACTOR_SEGMENT)
        p->segment = &plan->segment[actor->segment];
    else
        p->stage = &run->graph->stage[actor->stage];
    p->name = actor_name(p);
}

/* Counts the ends of rings that actors have, or with `fill` notes them. */
static void link_rings(gp_run *run, bool fill)
{
    const gp_plan *plan = run->plan;
    for (int i = 0; i < plan->nrings; i++) {
        const gp_ring *r = &plan->ring[i];
        if (r->segment >= 0)
            continue;
        if (r->producer >= 0) {
            gp_actorrt *p = &run->actor[r->producer];
            if (fill)
                p->out[p->nout] = &run->ring[i];
            p->nout++;
        }
        for (int c = 0; c < r->nconsumers; c++) {
            gp_actorrt *p = &run->actor[r->consumer[c]];
            if (fill)
                p->in[p->nin] = (gp_ring_end){ &run->ring[i], c };
            p->nin++;
        }
    }
}

static void make_actors(gp_run *run)
{
    int n = run->plan->nactors;
    for (int i = 0; i < n; i++)
        make_actor(run, i);
    link_rings(run, false);
    for (int i = 0; i < n; i++) {
        gp_actorrt *p = &run->actor[i];
        p->in = GP_NEW(&run->arena, gp_ring_end, p->nin);
        p->out = GP_NEW(&run->arena, gp_ringrt *, p->nout);
        p->source = !p->nin;
        p->nin = p->nout = 0;
    }
    link_rings(run, true);
}

static bool make_ledgers(gp_run *run)
{
    const gp_graph *g = run->graph;
    for (int i = 0; i < run->plan->nactors; i++) {
        const gp_actorrt *p = &run->actor[i];
        if (!p->source)
            continue;
        int stage = (int)(p->stage - g->stage);
        run->ledger_of[stage] = run->nledgers;
        if (!gp_ledger_init(&run->ledger[run->nledgers++], run->plan, stage))
            return false;
    }
    return true;
}

/* ---- stages ---------------------------------------------------------- */

static bool open_stages(gp_run *run, bool device, gp_errs *errs)
{
    const gp_graph *g = run->graph;
    for (int i = 0; i < g->nstages; i++) {
        const gp_stage *s = &g->stage[i];
        if (s->device != device || !s->kind->open)
            continue;
        if (atomic_load(&run->level))
            return false;
        gp_type in[GP_MAXPORT] = { { 0 } }, out[GP_MAXPORT] = { { 0 } };
        for (int k = 0; k < s->nin; k++)
            if (s->in[k] >= 0)
                in[k] = g->buffer[s->in[k]].type;
        for (int k = 0; k < s->nout; k++)
            out[k] = g->buffer[s->out[k]].type;
        gp_type *types = GP_NEW(&run->arena, gp_type, s->nin + s->nout + 1);
        memcpy(types, in, sizeof *types * (size_t)s->nin);
        memcpy(types + s->nin, out, sizeof *types * (size_t)s->nout);
        gp_open o = { .opts = s->opts, .user = s->kind->user, .name = s->name, .at = s->at, .nin = s->nin,
                      .nout = s->nout, .in = types, .out = types + s->nin,
                      .in_name = s->in_name, .out_name = s->out_name, .workers = s->workers,
                      .scope = &g->scope, .dev = device ? run->dev : NULL, .errs = errs };
        run->opened[i] = true;
        atomic_store(&run->opening, s);
        bool ok = s->kind->open(&o, &run->state[i]);
        atomic_store(&run->opening, NULL);
        atomic_fetch_add(&run->steps, 1);
        if (!ok)
            return false;
    }
    return true;
}

static bool init_actors(gp_run *run, gp_errs *errs)
{
    const gp_plan *plan = run->plan;
    int streams = 0, orders = 0, stamps = 0;
    for (int i = 0; i < plan->nactors; i++) {
        gp_actorrt *p = &run->actor[i];
        if (p->kind == GP_ACTOR_HOST) {
            gp_host_init(p);
            continue;
        }
        if (!gp_segment_init(p, streams, orders, &stamps, errs))
            return false;
        streams += p->segment->streams;
        for (int t = 0; t < p->segment->ntasks; t++)
            orders += plan->task[p->segment->task[t]].state >= 0;
    }
    return true;
}

/* ---- threads --------------------------------------------------------- */

static void *thread_main(void *arg)
{
    gp_threadrt *t = arg;
    char name[16];
    snprintf(name, sizeof name, "%.15s", t->actor->name);
    pthread_setname_np(pthread_self(), name);
    atomic_store(&t->tid, (int)syscall(SYS_gettid));
    gp_nvtx_name_thread(t);
    if (t->actor->kind == GP_ACTOR_HOST)
        gp_host_thread(t);
    else if (t->worker == 0)
        gp_segment_launcher(t);
    else
        gp_segment_reaper(t);
    gp_thread_doing(t, GP_DOING_GONE, atomic_load(&t->frame));
    if (atomic_fetch_sub(&t->run->live, 1) == 1)
        eventfd_write(t->run->done_fd, 1);
    return NULL;
}

static int64_t process_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* Starts all threads. When one cannot be started the others are told to stop. */
static void start(gp_run *run)
{
    int n = 0;
    for (int i = 0; i < run->plan->nactors; i++) {
        gp_actorrt *p = &run->actor[i];
        p->thread = &run->thread[n];
        p->nthreads = p->kind == GP_ACTOR_HOST ? p->stage->workers : 2;
        for (int w = 0; w < p->nthreads; w++, n++) {
            gp_threadrt *t = &run->thread[n];
            t->run = run, t->actor = p, t->worker = w;
            if (p->track && (p->kind == GP_ACTOR_HOST || w == 0))
                t->track = p->track[w];
        }
    }
    atomic_store(&run->live, n);
    run->start_ns = gp_now_ns();
    run->cpu_ns = -process_ns();
    for (int i = 0; i < n; i++) {
        int e = pthread_create(&run->thread[i].id, NULL, thread_main, &run->thread[i]);
        if (!e) {
            run->nthreads++;
            continue;
        }
        gp_errs errs = { .n = 0 };
        gp_fail(&errs, GP_E_RESOURCE, (gp_loc){ 0 }, "cannot start thread %d of %d: %s", i + 1, n,
                strerror(e));
        gp_run_fail(run, &errs);
        gp_run_level(run, 2);
        if (atomic_fetch_sub(&run->live, n - i) == n - i)
            eventfd_write(run->done_fd, 1);
        return;
    }
}

static int count_threads(const gp_plan *plan)
{
    int n = 0;
    for (int i = 0; i < plan->nactors; i++)
        n += plan->actor[i].kind == GP_ACTOR_HOST ? plan->graph->stage[plan->actor[i].stage].workers : 2;
    return n;
}

/* Waking a sleeping thread costs tens of microseconds, a wait in a busy
 * pipeline is shorter: with a core for each thread they look for a while. */
static int64_t spin_ns(const gp_pipeline *p, int threads)
{
    gp_sync sync = p->graph->sync;
    if (sync != GP_SYNC_AUTO)
        return sync == GP_SYNC_BLOCK ? 0 : INT64_MAX;
    return p->machine.cpus > threads ? 1000000 : 5000;
}

/* ---- a run, up and down ---------------------------------------------- */

/* The tables. Without memory goes to run->arena.oom. */
static void make_tables(gp_run *run)
{
    const gp_plan *plan = run->plan;
    gp_arena *a = &run->arena;
    int threads = count_threads(plan);
    run->pool = GP_NEW(a, void *, plan->npools + 1);
    run->extra = GP_NEW(a, void *, plan->nextras + 1);
    run->ledger = GP_NEW(a, gp_ledger, run->graph->nstages);
    run->ledger_of = GP_NEW(a, int, run->graph->nstages);
    run->state = GP_NEW(a, void *, run->graph->nstages);
    run->opened = GP_NEW(a, bool, run->graph->nstages);
    run->cached = GP_NEW(a, bool, run->graph->nstages);
    run->visited = GP_NEW(a, bool, plan->nactors);
    run->todo = GP_NEW(a, int, plan->nactors);
    for (int i = 0; i < run->graph->nstages; i++)
        for (int c = 0; c < run->options.ncached; c++)
            run->cached[i] |= !strcmp(run->graph->stage[i].name, run->options.cached[c]);
    run->ring = GP_NEW_LINES(a, gp_ringrt, plan->nrings);
    run->actor = GP_NEW_LINES(a, gp_actorrt, plan->nactors);
    run->thread = GP_NEW_LINES(a, gp_threadrt, threads);
    for (int i = 0; run->options.timed && i < threads; i++)
        run->thread[i].time = GP_NEW(a, gp_hist, 1);
    run->spin_ns = spin_ns(run->pipeline, threads);
}

static bool set_up(gp_run *run, gp_errs *errs)
{
    const gp_plan *plan = run->plan;
    make_tables(run);
    if (plan->nsegments) {
        const gp_backend *be = &gp_backend_cpu;
#if GP_CUDA
        if (!plan->unified)
            be = &gp_backend_cuda;
#endif
        int streams = 0, orders = 0, slots = 1;
        for (int i = 0; i < plan->nsegments; i++) {
            const gp_segment *s = &plan->segment[i];
            streams += s->streams;
            slots = s->depth > slots ? s->depth : slots;
            for (int t = 0; t < s->ntasks; t++)
                orders += plan->task[s->task[t]].state >= 0;
        }
        if (!(run->dev = be->open(run->graph->device, errs))
            || !be->prepare(run->dev, streams, orders, slots, errs))
            return false;
        if (run->options.trace_full && run->options.trace_ns && be->watch
            && !(run->watched = be->watch(run->dev, gp_trace_activity, run, errs)))
            return false;
    }
    if (!take_all_memory(run, errs))
        return false;
    make_rings(run);
    make_actors(run);
    gp_nvtx_open(run);
    if (!make_ledgers(run) || !open_stages(run, true, errs) || !open_stages(run, false, errs)
        || !init_actors(run, errs))
        return false;
    gp_trace_open(run);
    return true;
}

void gp_run_destroy(gp_run *run)
{
    if (!run)
        return;
    const gp_plan *plan = run->plan;
    for (int i = 0; run->actor && i < plan->nactors; i++)
        if (run->actor[i].kind == GP_ACTOR_SEGMENT)
            gp_segment_stop_resident(&run->actor[i]);
    for (int i = 0; run->actor && i < plan->nactors; i++) {
        gp_actorrt *p = &run->actor[i];
        if (!p->run)
            continue;
        if (p->kind == GP_ACTOR_HOST)
            gp_host_fini(p);
        else
            gp_segment_fini(p);
        gp_eventcount_fini(&p->changed);
    }
    for (int i = 0; i < run->nledgers; i++)
        gp_ledger_fini(&run->ledger[i]);
    for (int i = 0; run->pool && i < plan->npools; i++)
        give_memory(run, plan->pool[i].place, plan->pool[i].pinned, run->pool[i],
                    plan->pool[i].stride * (size_t)plan->pool[i].depth);
    for (int i = 0; run->extra && i < plan->nextras; i++)
        give_memory(run, plan->extra[i].place, false, run->extra[i], plan->extra[i].bytes);
    if (run->dev)
        run->dev->backend->close(run->dev);
    gp_nvtx_close(run);
    close(run->done_fd);
    pthread_mutex_destroy(&run->lock);
    pthread_mutex_destroy(&run->engine_lock);
    gp_arena_free(&run->arena);
    free(run);
}

/* A run that nobody stopped lost no frame, unless it was made by a source that
 * never ends for consumers that had enough. */
static void check_account(const gp_run *run, gp_errs *errs)
{
    for (int i = 0; i < run->nledgers; i++) {
        gp_ledger *l = &run->ledger[i];
        const gp_stage *s = &run->graph->stage[l->source];
        uint64_t in = l->in, seen = l->out + l->dropped + l->failed;
        if (seen > in || (seen < in && !s->endless))
            gp_fail(errs, GP_E_BUG, s->at,
                    "source '%s': %llu frames went in, but %llu are accounted for", s->name,
                    (unsigned long long)in, (unsigned long long)seen);
    }
}

static void close_stages(gp_run *run)
{
    for (int i = run->graph->nstages - 1; run->opened && i >= 0; i--)
        if (run->opened[i] && run->graph->stage[i].kind->close)
            run->graph->stage[i].kind->close(run->state[i]);
}

/* What stages do when they are opened may take any time: on a thread of its own. */
static void *set_up_main(void *arg)
{
    gp_run *run = arg;
    gp_errs *errs = &run->set_up_errs;
    jmp_buf oom;
    atomic_store(&run->set_up_tid, (int)syscall(SYS_gettid));
    run->arena.oom = &oom;
    if (!setjmp(oom))
        run->ready = set_up(run, errs);
    run->arena.oom = NULL;
    if (!run->ready && !errs->failed && !atomic_load(&run->level))
        gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory");
    atomic_store(&run->is_up, true);
    eventfd_write(run->done_fd, 1);
    return NULL;
}

/* False: it does not come back. */
static bool set_up_watched(gp_run *run)
{
    pthread_t thread;
    eventfd_t up;
    int e = pthread_create(&thread, NULL, set_up_main, run);
    if (e) {
        gp_fail(&run->set_up_errs, GP_E_RESOURCE, (gp_loc){ 0 }, "cannot start a thread: %s",
                strerror(e));
    } else {
        if (!gp_watch_set_up(run))
            return false;
        pthread_join(thread, NULL);
        eventfd_read(run->done_fd, &up);
        if (!run->ready && atomic_load(&run->pipeline->cancel))
            run->set_up_errs = (gp_errs){ .n = 0 };    /* it was broken off */
    }
    gp_run_fail(run, &run->set_up_errs);
    return true;
}

gp_outcome gp_pipeline_run(gp_pipeline *p, const gp_run_options *o, gp_errs *errs)
{
    gp_run *run = calloc(1, sizeof *run);
    if (!run) {
        gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory");
        return GP_ERROR;
    }
    run->pipeline = p, run->plan = p->plan, run->graph = p->plan->graph, run->options = *o;
    run->done_fd = eventfd(0, EFD_CLOEXEC);
    pthread_mutex_init(&run->lock, NULL);
    pthread_mutex_init(&run->engine_lock, NULL);
    bool back = set_up_watched(run);
    if (back)
        atomic_store(&p->run, run);
    if (back && run->ready && !run->set_up_errs.failed) {
        start(run);
        back = gp_watch(run);
        for (int i = 0; back && i < run->nthreads; i++)
            pthread_join(run->thread[i].id, NULL);
        run->end_ns = gp_now_ns();
        run->cpu_ns += process_ns();
    }
    if (back && run->watched)
        run->dev->backend->unwatch(run->dev);
    pthread_mutex_lock(&run->lock);
    gp_errs_add(errs, &run->errs);
    pthread_mutex_unlock(&run->lock);
    if (!back)
        return GP_STUCK;
    close_stages(run);
    if (!errs->failed && !atomic_load(&run->level))
        check_account(run, errs);
    int level = atomic_load(&p->cancel);
    return errs->failed ? GP_ERROR
        : level >= 2                 ? GP_NOT_DRAINED
        : level == 1                 ? GP_DRAINED
                                     : GP_DONE;
}
