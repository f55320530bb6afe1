/* state_save.c - the key `save_every` of a state: its file is written while the run goes on.
 *
 * The launcher of the segment that has the state queues a copy of it behind each so many frames, as a launch of its own: it
 * takes the turn between two frames in the order that the frames of the state keep, so that the next frame waits for the
 * copy, and for nothing else. No launch has frames of both sides. Once the reaper has seen the frames before the copy, which
 * have not failed then, a thread writes it to the file. There is room for one copy: while that is written no other is made.
 *
 * States of a segment that are saved behind the same frames are saved together, and with `resume` all states are. */
#include "base/clock.h"
#include "base/thread.h"
#include "base/why.h"
#include "run/state_file.h"

typedef struct gp_saving {
    const gp_ringrt *ring;     /* its only slot */
    gp_actorrt *actor;
    gp_dev *dev;
    int stream, order;
    void *copy;
    uint64_t every;
    _Atomic uint64_t frames;   /* this run had made so many when the copy was queued; 0: there is no copy */
    struct gp_saving *first;   /* the first of those that are saved together. It alone has, with the saver's lock: */
    uint64_t number;           /* ... the number of the frame behind which they are being saved; 0: they are not; */
    uint64_t decided;          /* ... up to which number it is decided whether they are */
} gp_saving;

struct gp_saver {
    gp_saving *of; int n;
    pthread_t thread;
    bool started;
    atomic_bool stop;
    pthread_mutex_t lock;
    gp_eventcount changed;     /* the thread sleeps here */
};

gp_actorrt *gp_state_actor(const gp_run *run, const gp_ringrt *r, int *order)
{
    gp_actorrt *p = run->actor;
    while (p->segment != &run->plan->segment[r->ring->segment])
        p++;
    for (int i = 0; i < p->seg->nparts; i++)
        if (p->seg->part[i].stage && r->buffer == &run->graph->buffer[p->seg->part[i].stage->out[0]])
            *order = p->seg->part[i].order;
    return p;
}

void *gp_state_room(const gp_run *run, const gp_ringrt *r, gp_errs *errs)
{
    const struct gp_saver *v = run->saver;
    for (int i = 0; v && i < v->n; i++)
        if (v->of[i].ring == r)
            return v->of[i].dev->backend->wait(v->of[i].dev, v->of[i].stream, GP_SYNC_BLOCK, errs) == 1 ? v->of[i].copy : NULL;
    return NULL;
}

static bool goes_on_saving(const gp_run *run, int ring)
{
    int b = run->plan->ring[ring].buffer;
    return b >= 0 && run->graph->buffer[b].save_every && gp_states_are_saved(run);
}

void gp_states_count_streams(const gp_run *run, gp_device_use *use)
{
    for (int i = 0; i < run->plan->nrings; i++)
        if (goes_on_saving(run, i))
            run->save_stream[i] = use[run->plan->ring[i].place.index].streams++;
}

bool gp_states_make(gp_run *run, gp_errs *errs)
{
    int n = 0;
    for (int i = 0; i < run->plan->nrings; i++) {
        n += goes_on_saving(run, i);
        if (run->resume && run->graph->from && run->ring[i].buffer && run->ring[i].buffer->save && !gp_state_load(run, &run->ring[i], errs))
            return false;
    }
    if (!n)
        return true;
    struct gp_saver *v = run->saver = GP_NEW_LINES(&run->arena, struct gp_saver, 1);
    gp_eventcount_init(&v->changed);
    pthread_mutex_init(&v->lock, NULL);
    v->of = GP_NEW(&run->arena, gp_saving, n);
    for (int i = 0; i < run->plan->nrings; i++) {
        gp_saving *s = &v->of[v->n];
        if (!goes_on_saving(run, i))
            continue;
        s->ring = &run->ring[i], s->actor = gp_state_actor(run, s->ring, &s->order), s->stream = run->save_stream[i];
        s->dev = s->actor->seg->lane[0].dev, s->every = (uint64_t)s->ring->buffer->save_every;
        s->actor->seg->saves = true, s->first = v->of;
        while (s->first != s && (s->first->every != s->every || (s->first->actor != s->actor && !run->resume)))
            s->first++;
        errs->at = s->ring->buffer->save_at;
        if (!(s->copy = s->dev->backend->alloc(s->dev, GP_MEMORY_PINNED, gp_bytes(&s->ring->buffer->type), errs)))
            return false;
        v->n++;
    }
    return true;
}

int gp_states_most(const gp_actorrt *p, uint64_t f, int n)
{
    const struct gp_saver *v = p->seg->saves ? p->run->saver : NULL;
    for (int i = 0; v && i < v->n; i++) {
        uint64_t left = v->of[i].every - gp_actor_number(p, f) % v->of[i].every;
        if (v->of[i].actor == p && left < (uint64_t)n)
            n = (int)left;
    }
    return n;
}

static bool record_copy(gp_rec *r, void *arg)
{
    const gp_saving *s = arg;
    int slot = (int)((atomic_load(&s->actor->next) - 1) % (uint64_t)s->actor->segment->depth);
    return r->ops->item(r, 0, NULL, 0) && r->ops->order_wait(r, s->order, slot)
        && r->ops->copy(r, s->copy, gp_slot(s->ring, 0), gp_bytes(&s->ring->buffer->type))
        && r->ops->order_pass(r, s->order, slot);
}

/* Is it to be saved behind so many frames? Of those that are saved together the one decides that comes to them first. */
static bool takes(struct gp_saver *v, gp_saving *s, uint64_t number)
{
    gp_saving *g = s->first;
    pthread_mutex_lock(&v->lock);
    if (number > g->decided && !g->number)
        g->number = number;
    g->decided = number > g->decided ? number : g->decided;
    bool is = g->number == number;
    pthread_mutex_unlock(&v->lock);
    return is;
}

bool gp_states_launched(gp_threadrt *t)
{
    gp_actorrt *p = t->actor;
    struct gp_saver *v = p->seg->saves && !atomic_load(&p->seg->undone) ? p->run->saver : NULL;
    uint64_t frames = atomic_load(&p->next);
    for (int i = 0; v && i < v->n; i++) {
        gp_saving *s = &v->of[i];
        if (s->actor != p || gp_actor_number(p, frames) % s->every || !takes(v, s, gp_actor_number(p, frames)))
            continue;
        if (!s->dev->backend->direct(s->dev, s->stream, record_copy, s, &t->errs))
            return false;
        atomic_store(&s->frames, frames);
        gp_eventcount_wake(&v->changed);
    }
    return true;
}

void gp_states_reaped(const gp_actorrt *p)
{
    if (p->seg->saves)
        gp_eventcount_wake(&p->run->saver->changed);
}

/* Finds states that are saved together, each of which has been copied, and whose frames before the copy have all come to a
 * good end. Returns the first of them. */
static gp_saving *due(struct gp_saver *v)
{
    for (gp_saving *g = v->of; g < v->of + v->n; g++) {
        bool is = g->first == g;
        for (gp_saving *s = g; is && s < v->of + v->n; s++) {
            uint64_t frames = atomic_load(&s->frames);
            is = s->first != g || (frames && atomic_load(&s->actor->seg->reaped) >= frames);
        }
        if (is)
            return g;
    }
    return NULL;
}

static bool has_stopped(void *arg)
{
    return atomic_load(&((struct gp_saver *)arg)->stop);
}

/* Waits until all sinks have so many frames, and `resume` has noted that. False: they will not have them any more. */
static bool noted(gp_run *run, uint64_t frames)
{
    enum { LOOK_NS = 20000000 };
    struct gp_saver *v = run->saver;
    bool ok = false;
    for (bool last = false; !ok && !last;) {
        last = has_stopped(v);
        ok = gp_resume_states(run, frames);
        if (!ok && !last)
            gp_eventcount_wait_until(&v->changed, has_stopped, v, 0, gp_now_ns() + LOOK_NS);
    }
    return ok;
}

static void write_copies(gp_run *run, gp_saving *g, gp_errs *errs)
{
    struct gp_saver *v = run->saver;
    bool ok = true;
    for (gp_saving *s = g; s < v->of + v->n; s++)
        if (s->first == g) {
            ok = ok && s->dev->backend->wait(s->dev, s->stream, GP_SYNC_BLOCK, errs) == 1
                 && gp_state_write(run, s->ring->buffer, g->number, s->copy, errs);
            atomic_store(&s->frames, 0);
        }
    if (ok && run->resume && noted(run, g->number))
        gp_states_name(run, errs);
    pthread_mutex_lock(&v->lock);
    g->number = 0;
    pthread_mutex_unlock(&v->lock);
}

static bool is_due(void *arg)
{
    struct gp_saver *v = arg;
    return due(v) || atomic_load(&v->stop);
}

static void *saver_main(void *arg)
{
    gp_run *run = arg;
    struct gp_saver *v = run->saver;
    for (gp_saving *s;;) {
        gp_eventcount_wait(&v->changed, is_due, v, 0);
        if (!(s = due(v)))
            return NULL;
        gp_errs errs = { .at = s->ring->buffer->save_at };
        write_copies(run, s, &errs);
        if (errs.n)
            gp_run_fail(run, &errs);
    }
}

void gp_states_start(gp_run *run)
{
    gp_errs errs = { .n = 0 };
    struct gp_saver *v = run->saver;
    int e = v ? gp_thread_start(&v->thread, saver_main, run) : 0;
    if (e)
        gp_fail(&errs, GP_E_RESOURCE, v->of->ring->buffer->save_at, "cannot start a thread: %s", gp_strerror(e)),
            gp_run_fail(run, &errs);
    if (v)
        v->started = !e;
}

void gp_states_stop(gp_run *run)
{
    struct gp_saver *v = run->saver;
    if (!v || !v->started)
        return;
    atomic_store(&v->stop, true);
    gp_eventcount_wake(&v->changed);
    pthread_join(v->thread, NULL);
    v->started = false;
}

void gp_states_free(gp_run *run)
{
    struct gp_saver *v = run->saver;
    gp_errs ignored = { .n = 0 };
    gp_states_stop(run);
    for (int i = 0; v && i < v->n; i++) {
        gp_saving *s = &v->of[i];
        s->dev->backend->wait(s->dev, s->stream, GP_SYNC_BLOCK, &ignored);     /* it may still be written */
        s->dev->backend->free(s->dev, GP_MEMORY_PINNED, s->copy, gp_bytes(&s->ring->buffer->type));
    }
    if (v)
        gp_eventcount_fini(&v->changed), pthread_mutex_destroy(&v->lock);
    run->saver = NULL;
}
