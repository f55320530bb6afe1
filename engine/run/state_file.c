/* state_file.c - the keys `save` and `save_every` of a state: the .npy file that has it.
 *
 * The file is held, by a temporary one of its name, from before the state is read until the run ends, so that no other run
 * saves to it meanwhile. It is replaced when the run has ended, but not by one that failed or was stopped at once: what is
 * there then is of an earlier frame or run.
 *
 * While the run goes on the launcher of the segment that has the state queues a copy of it behind each so many frames, as a
 * launch of its own: it takes the turn between two frames in the order that the frames of the state keep, so that the next
 * one waits for the copy, and for nothing else. No launch has frames of both sides. Once the reaper has seen the frames
 * before it, which have not failed then, a thread writes the copy to the file. There is room for one copy: while that is
 * written no other is made.
 *
 * With `resume` all states are of one frame, and the run goes on from that. So they are saved together, and not before all
 * sinks have what comes before: each first as FILE.next, then the note says so, then they get their names. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include "base/clock.h"
#include "base/npy.h"
#include "base/outfile.h"
#include "base/thread.h"
#include "run/pipeline.h"
#include "run/segment.h"
#include "run/setup.h"
#include "run/tap.h"

typedef struct gp_state_file gp_state_file;
struct gp_state_file {
    gp_state_file *next;
    const gp_buffer *of;
    gp_outfile held;
};

/* A state that is saved while the run goes on. */
typedef struct gp_saving {
    const gp_ringrt *ring;     /* its only slot */
    gp_actorrt *actor;
    gp_dev *dev;
    int stream, order;
    void *copy;
    uint64_t every;
    struct gp_saving *first;   /* of those that are saved together, which has of all: */
    int all;                   /* ... how many they are; */
    atomic_int copied;         /* ... copies that are queued; */
    bool taken;                /* ... whether some are, or will be: with the saver's lock; */
    uint64_t number, decided;  /* ... behind how many frames; up to which number that is decided */
    _Atomic uint64_t frames;   /* the copy is behind so many that this run has made */
} gp_saving;

struct gp_saver {
    gp_saving *of; int n;
    pthread_t thread;
    bool started;
    atomic_bool stop;
    pthread_mutex_t lock;
    gp_eventcount changed;     /* the thread sleeps here */
};

/* ---- files ------------------------------------------------------------ */

static bool failed(const gp_buffer *b, const char *path, const char *why, gp_errs *errs)
{
    return gp_fail(errs, GP_E_RUN, b->save_at, "'save' of the state '%s': '%s' %s", b->name, path, why);
}

/* Has no other run save to the file of a state. What `init` is was looked at before that, by the compiler: a file that has
 * come since then is what another run saved meanwhile. */
static bool hold(gp_run *run, const gp_buffer *b, gp_errs *errs)
{
    char why[GP_WHY];
    struct stat st;
    gp_state_file *f = calloc(1, sizeof *f);
    if (!f)
        return gp_fail(errs, GP_E_RESOURCE, b->save_at, "out of memory to save the state '%s'", b->name);
    f->of = b, f->held.is_sole = true;
    f->next = run->saves, run->saves = f;
    if (!gp_outfile_open(&f->held, b->save, why))
        return failed(b, b->save, why, errs);
    return !b->missing || stat(b->missing, &st)
        || gp_fail(errs, GP_E_RUN, b->at, "'init' of the state '%s': '%s' has come since the pipeline was checked, when it was "
                   "missing: run it again", b->name, b->missing);
}

bool gp_states_hold(gp_run *run, gp_errs *errs)
{
    bool ok = true;
    for (int i = 0; i < run->graph->nbuffers && !run->from && gp_states_are_saved(run); i++)
        if (run->graph->buffer[i].save)
            ok &= hold(run, &run->graph->buffer[i], errs);
    return ok;
}

void gp_states_drop(gp_run *run)
{
    for (gp_state_file *f; (f = run->saves);) {
        run->saves = f->next;
        gp_outfile_drop(&f->held);
        free(f);
    }
}

/* NULL: the run saves nothing, or goes on from one of another pipeline, which held it. */
static const gp_outfile *held(const gp_run *run, const gp_buffer *b)
{
    const gp_state_file *f = run->saves;
    while (f && f->of != b)
        f = f->next;
    return f ? &f->held : NULL;
}

/* Where it is, if a link is followed. */
static const char *file_of(const gp_run *run, const gp_buffer *b)
{
    return held(run, b) ? held(run, b)->path : b->save;
}

static const char *next_of(const gp_run *run, const gp_buffer *b, char path[PATH_MAX])
{
    return snprintf(path, PATH_MAX, "%s.next", file_of(run, b)) < PATH_MAX ? path : "";
}

/* Replaces the file, or with `resume` FILE.next, in the folder that was looked through when it was held: `data` is the
 * state behind so many frames, which the header says, too. */
static bool write_file(const gp_run *run, const gp_buffer *b, uint64_t frames, void *data, gp_errs *errs)
{
    char head[GP_NPY_HEADER_MAX], after[60], why[GP_WHY], next[PATH_MAX];
    const char *path = run->resume ? next_of(run, b, next) : b->save;
    const gp_outfile *h = held(run, b);
    gp_outfile f = { .durable = GP_DURABLE_FILE, .placed = h && h->placed };
    if (h)
        strcpy(f.path, h->path);
    snprintf(after, sizeof after, "after %llu frames", (unsigned long long)frames);
    struct iovec all[] = { { head, gp_npy_header_with(&b->type, after, head, sizeof head) }, { data, gp_bytes(&b->type) } };
    bool ok = gp_outfile_open(&f, path, why) && gp_write_all(f.fd, all, 2, why) && gp_outfile_commit(&f, why);
    gp_outfile_drop(&f);
    if (run->resume)
        gp_resume_state(run, b, data);
    return ok || failed(b, path, why, errs);
}

static bool take_next(const gp_run *run, const gp_buffer *b, gp_errs *errs)
{
    char next[PATH_MAX];
    int bad = rename(next_of(run, b, next), file_of(run, b)) ? errno : gp_sync_folder(file_of(run, b));
    return !bad || failed(b, b->save, gp_strerror(bad), errs);
}

/* Is what this file has the state that was noted? */
static bool is_noted(const gp_run *run, const gp_buffer *b, const char *path, void *data)
{
    gp_errs ignored = { .n = 0 };
    const gp_buffer in_file = { .name = b->name, .path = path, .type = b->type, .file = b->type.dtype, .at = b->save_at };
    return gp_const_load(&in_file, data, &ignored) && gp_resume_is_state(run, b, data);
}

/* The run goes on where all states were saved. */
static bool load(gp_run *run, const gp_ringrt *r, gp_errs *errs)
{
    const gp_buffer *b = r->buffer;
    char next[PATH_MAX];
    gp_dev *dev = run->dev[run->plan->unified ? 0 : r->ring->place.index];
    size_t bytes = gp_bytes(&b->type);
    void *data = dev->backend->alloc(dev, GP_MEMORY_PINNED, bytes, errs);
    if (!data)
        return false;
    bool ok = is_noted(run, b, next_of(run, b, next), data)
            ? take_next(run, b, errs)
            : is_noted(run, b, b->save, data)
              || gp_fail(errs, GP_E_RUN, b->save_at, "'save' of the state '%s': '%s' is not the state after %llu frames, at which "
                         "the run goes on, as '%s' says: to begin from the first frame, remove '%s'", b->name, b->save,
                         (unsigned long long)run->graph->from, run->graph->resume, run->graph->resume);
    ok = ok && gp_memory_copy(dev, gp_slot(r, 0), data, bytes, errs);
    dev->backend->free(dev, GP_MEMORY_PINNED, data, bytes);
    return ok;
}

/* The segment whose stages use the state, and the order in which the frames of that go on. */
static gp_actorrt *actor_of(const gp_run *run, const gp_ringrt *r, int *order)
{
    gp_actorrt *p = run->actor;
    while (p->segment != &run->plan->segment[r->ring->segment])
        p++;
    for (int i = 0; i < p->seg->nparts; i++)
        if (p->seg->part[i].stage && r->buffer == &run->graph->buffer[p->seg->part[i].stage->out[0]])
            *order = p->seg->part[i].order;
    return p;
}

/* The room that there is for a copy while the run goes on, to which nothing is written any more; NULL: there is none. */
static void *room_of(const gp_run *run, const gp_ringrt *r, gp_errs *errs)
{
    const struct gp_saver *v = run->saver;
    for (int i = 0; v && i < v->n; i++)
        if (v->of[i].ring == r)
            return v->of[i].dev->backend->wait(v->of[i].dev, v->of[i].stream, GP_SYNC_BLOCK, errs) == 1 ? v->of[i].copy : NULL;
    return NULL;
}

static bool save(gp_run *run, const gp_ringrt *r, uint64_t *frames, gp_errs *errs)
{
    const gp_buffer *b = r->buffer;
    size_t bytes = gp_bytes(&b->type);
    int order;
    const gp_actorrt *p = actor_of(run, r, &order);
    char *room = room_of(run, r, errs), *data = room || errs->failed ? room : malloc(bytes);
    if (!data)
        return !errs->failed && gp_fail(errs, GP_E_RESOURCE, b->save_at, "out of memory to save the state '%s'", b->name);
    pthread_mutex_lock(&run->pipeline->taps.lock);
    bool ok = gp_taps_fetch(run, r, 0, data, bytes, errs);
    pthread_mutex_unlock(&run->pipeline->taps.lock);
    *frames = gp_actor_number(p, atomic_load(&p->seg->reaped));
    ok = ok && write_file(run, b, *frames, data, errs);
    if (!room)
        free(data);
    return ok;
}

bool gp_states_name(const gp_run *run, gp_errs *errs)
{
    bool ok = true;
    for (int i = 0; i < run->graph->nbuffers && gp_states_are_saved(run); i++)
        ok &= !run->graph->buffer[i].save || take_next(run, &run->graph->buffer[i], errs);
    return ok;
}

/* With `resume` a run that was drained goes on with what was saved before, unless all sinks have all that the states have
 * had. One that is done names the states when there is nothing to go on any more. */
bool gp_states_save(gp_run *run, bool drained, gp_errs *errs)
{
    bool ok = true, same = true;
    uint64_t frames = UINT64_MAX, is = 0;
    for (int i = 0; i < run->plan->nrings; i++)
        if (run->ring[i].buffer && run->ring[i].buffer->save) {
            ok &= save(run, &run->ring[i], &is, errs);
            same &= frames == UINT64_MAX || frames == is;
            frames = is;
        }
    bool named = ok && same && run->resume && drained && frames != UINT64_MAX && gp_resume_states(run, frames);
    return named ? gp_states_name(run, errs) : ok;
}

/* ---- while the run goes on -------------------------------------------- */

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
        if (run->resume && run->graph->from && run->ring[i].buffer && run->ring[i].buffer->save && !load(run, &run->ring[i], errs))
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
        s->ring = &run->ring[i], s->actor = actor_of(run, s->ring, &s->order), s->stream = run->save_stream[i];
        s->dev = s->actor->seg->lane[0].dev, s->every = (uint64_t)s->ring->buffer->save_every;
        s->actor->seg->saves = true, s->first = v->of;
        while (s->first != s && (s->first->every != s->every || (s->first->actor != s->actor && !run->resume)))
            s->first++;
        s->first->all++;
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

/* Is it to be saved behind so many frames? The first of those that are saved together to come to them decides. */
static bool takes(struct gp_saver *v, gp_saving *s, uint64_t number)
{
    gp_saving *g = s->first;
    pthread_mutex_lock(&v->lock);
    if (number > g->decided && !g->taken)
        g->taken = true, g->number = number;
    g->decided = number > g->decided ? number : g->decided;
    bool is = g->taken && g->number == number;
    pthread_mutex_unlock(&v->lock);
    return is;
}

bool gp_states_launched(gp_threadrt *t)
{
    gp_actorrt *p = t->actor;
    struct gp_saver *v = p->seg->saves ? p->run->saver : NULL;
    uint64_t frames = atomic_load(&p->next);
    for (int i = 0; v && i < v->n; i++) {
        gp_saving *s = &v->of[i];
        if (s->actor != p || gp_actor_number(p, frames) % s->every || !takes(v, s, gp_actor_number(p, frames)))
            continue;
        if (!s->dev->backend->direct(s->dev, s->stream, record_copy, s, &t->errs))
            return false;
        atomic_store(&s->frames, frames);
        atomic_fetch_add(&s->first->copied, 1);
        gp_eventcount_wake(&v->changed);
    }
    return true;
}

void gp_states_reaped(const gp_actorrt *p)
{
    if (p->seg->saves)
        gp_eventcount_wake(&p->run->saver->changed);
}

/* The first of those of which there are copies, and whose frames have all come to a good end. */
static gp_saving *due(struct gp_saver *v)
{
    for (int i = 0; i < v->n; i++) {
        gp_saving *g = &v->of[i];
        bool is = g->first == g && atomic_load(&g->copied) == g->all;
        for (int k = i; is && k < v->n; k++)
            is = v->of[k].first != g || atomic_load(&v->of[k].actor->seg->reaped) >= atomic_load(&v->of[k].frames);
        if (is)
            return g;
    }
    return NULL;
}

static bool has_stopped(void *arg)
{
    return atomic_load(&((struct gp_saver *)arg)->stop);
}

/* With `resume`: waits until all sinks have so many frames, or will not have them any more. */
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
    for (gp_saving *s = g; ok && s < v->of + v->n; s++)
        ok = s->first != g
            || (s->dev->backend->wait(s->dev, s->stream, GP_SYNC_BLOCK, errs) == 1
                && write_file(run, s->ring->buffer, g->number, s->copy, errs));
    ok = ok && run->resume && noted(run, g->number);
    for (gp_saving *s = g; ok && s < v->of + v->n; s++)
        ok = s->first != g || take_next(run, s->ring->buffer, errs);
    atomic_store(&g->copied, 0);
    pthread_mutex_lock(&v->lock);
    g->taken = false;
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
