/* loan.c - slots of rings on loan to the program: what it pushes and pulls.
 *
 * A stage of a kind that is on_loan is one whose run() the program is: a thread of the program takes one of its
 * workers (turn.c), gets the frame that the worker would run next (gp_host_lend), and hands it in later
 * (gp_host_take_back). So slots, order, back-pressure, holes and accounts are those of any other stage, nothing is
 * copied, and a thread that pushes goes on with the turns of cheap stages behind it. The worker's own thread sleeps
 * until the stage ends.
 *
 * The program knows a stage by its endpoint, which is there as long as the pipeline; in a run it has an actor.
 * `users` counts the program's threads that look at the actor, so that it stays until they have left; a frame on loan
 * keeps its worker from leaving, and so the run from ending. */
#include <math.h>
#include <sched.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "base/c_locale.h"
#include "run/host.h"
#include "run/measure.h"
#include "run/pipeline.h"

struct gp_endpoint {
    const gp_stage *stage;
    const gp_buffer *buffer;           /* that it fills, or reads */
    _Atomic(gp_actorrt *) actor;       /* NULL: no run is on */
    atomic_int users;
    bool asked;                        /* the program has asked for it */
    atomic_bool closed;                /* ... and has no more frames for the run, or the next one */
    pthread_mutex_t lock;              /* of what follows, and to set the actor */
    pthread_cond_t changed;
    enum { NOT_YET, RUNS, OVER, PAUSED } state;
    atomic_int fd;                     /* eventfd; -1: the program has not asked for it */
};

struct gp_input { struct gp_endpoint e; };
struct gp_output { struct gp_endpoint e; };

/* ---- endpoints of a pipeline ----------------------------------------- */

bool gp_endpoints_make(gp_pipeline *p)
{
    const gp_graph *g = p->graph;
    int n = 0;
    for (int i = 0; i < g->nstages; i++)
        n += g->stage[i].kind->on_loan;
    p->endpoint = GP_NEW(&p->arena, struct gp_endpoint, n);
    for (int i = 0; i < g->nstages; i++) {
        if (!g->stage[i].kind->on_loan)
            continue;
        struct gp_endpoint *e = &p->endpoint[p->nendpoints++];
        e->stage = &g->stage[i], e->fd = -1;
        e->buffer = &g->buffer[e->stage->nin ? e->stage->in[0] : e->stage->out[0]];
        pthread_mutex_init(&e->lock, NULL);
        gp_cond_init(&e->changed);
    }
    return true;
}

void gp_endpoints_free(gp_pipeline *p)
{
    for (int i = 0; i < p->nendpoints; i++) {
        pthread_mutex_destroy(&p->endpoint[i].lock);
        pthread_cond_destroy(&p->endpoint[i].changed);
        if (p->endpoint[i].fd >= 0)
            close(p->endpoint[i].fd);
    }
}

static struct gp_endpoint *endpoint(gp_pipeline *p, const char *stage, bool source)
{
    for (int i = 0; i < p->nendpoints; i++) {
        struct gp_endpoint *e = &p->endpoint[i];
        if (!strcmp(e->stage->name, stage) && !e->stage->nin == source) {
            e->asked = true;
            return e;
        }
    }
    return NULL;
}

gp_input *gp_pipeline_input(gp_pipeline *p, const char *stage)
{
    return (gp_input *)endpoint(p, stage, true);
}

gp_output *gp_pipeline_output(gp_pipeline *p, const char *stage)
{
    return (gp_output *)endpoint(p, stage, false);
}

void gp_input_type(const gp_input *in, gp_type *type, unsigned *varies)
{
    *type = in->e.buffer->type, *varies = in->e.buffer->varies;
}

void gp_output_type(const gp_output *out, gp_type *type, unsigned *varies)
{
    *type = out->e.buffer->type, *varies = out->e.buffer->varies;
}

/* With the lock of e. */
static void set_state(struct gp_endpoint *e, gp_actorrt *actor, int state)
{
    atomic_store(&e->actor, actor);
    e->state = state;
    pthread_cond_broadcast(&e->changed);
    if (e->fd >= 0 && state != NOT_YET)
        eventfd_write(e->fd, 1);
}

bool gp_endpoints_asked(const gp_pipeline *p, bool no_sinks, gp_errs *errs)
{
    for (int i = 0; i < p->nendpoints; i++) {
        const struct gp_endpoint *e = &p->endpoint[i];
        if (!e->asked && !(no_sinks && e->stage->nin))
            return gp_fail(errs, GP_E_SPEC, e->stage->at, "a program has to %s: see 'gpipe help embed'", e->stage->nin
                           ? "pull the frames of this stage (gp_pipeline_output), and this one does not"
                           : "push frames into this stage (gp_pipeline_input), and this one does not");
    }
    return true;
}

bool gp_endpoint_is_asked(const gp_pipeline *p, const gp_stage *st)
{
    for (int i = 0; i < p->nendpoints; i++)
        if (p->endpoint[i].stage == st)
            return p->endpoint[i].asked;
    return false;
}

void gp_endpoints_begin(gp_pipeline *p)
{
    for (int i = 0; i < p->nendpoints; i++) {
        struct gp_endpoint *e = &p->endpoint[i];
        pthread_mutex_lock(&e->lock);
        set_state(e, NULL, NOT_YET);
        pthread_mutex_unlock(&e->lock);
    }
}

void gp_endpoints_end(gp_pipeline *p)
{
    for (int i = 0; i < p->nendpoints; i++) {
        struct gp_endpoint *e = &p->endpoint[i];
        pthread_mutex_lock(&e->lock);
        if (e->state == NOT_YET)
            set_state(e, NULL, p->paused ? PAUSED : OVER);
        pthread_mutex_unlock(&e->lock);
    }
}

void gp_endpoints_hand_on(gp_pipeline *to, gp_pipeline *from)
{
    for (int i = 0; i < from->nendpoints; i++) {
        struct gp_endpoint *e = &from->endpoint[i];
        if (atomic_exchange(&e->closed, false))
            gp_push_close(gp_pipeline_input(to, e->stage->name));
    }
}

/* ---- in a run -------------------------------------------------------- */

static gp_actorrt *actor_of(gp_run *run, const struct gp_endpoint *e)
{
    gp_actorrt *p = run->actor;
    while (p->stage != e->stage)
        p++;
    return p;
}

static void close_stage(gp_actorrt *p)
{
    gp_host_close(p);
    gp_eventcount_wake(&p->to_end), gp_eventcount_wake(&p->changed);       /* its threads may wait already */
}

void gp_loans_begin(gp_run *run)
{
    gp_pipeline *pipeline = run->pipeline;
    for (int i = 0; i < pipeline->nendpoints; i++) {
        struct gp_endpoint *e = &pipeline->endpoint[i];
        gp_actorrt *p = actor_of(run, e);
        for (int w = 0; p->on_loan && w < p->nthreads; w++)
            gp_thread_doing(&p->thread[w], GP_DOING_IDLE, atomic_load(&p->next));
        pthread_mutex_lock(&e->lock);
        gp_eventcount_set_fd(&p->changed, atomic_load(&e->fd));
        set_state(e, p->on_loan ? p : NULL, p->on_loan ? RUNS : OVER);
        if (atomic_load(&e->closed))
            close_stage(p);
        pthread_mutex_unlock(&e->lock);
    }
}

void gp_loans_end(gp_run *run, bool paused, bool back)
{
    gp_pipeline *pipeline = run->pipeline;
    for (int i = 0; i < pipeline->nendpoints; i++) {
        struct gp_endpoint *e = &pipeline->endpoint[i];
        pthread_mutex_lock(&e->lock);
        set_state(e, NULL, paused ? PAUSED : OVER);
        if (!paused)
            atomic_store(&e->closed, false);
        pthread_mutex_unlock(&e->lock);
        while (back && atomic_load(&e->users))
            sched_yield();
        if (paused)                    /* its frames are copied, and their slots are others' */
            gp_marks_pass(actor_of(run, e));
    }
}

/* Is there something left to do that the program need not ask for: an end, or a pause, or holes before it? */
static bool has_to_end(void *thread)
{
    const gp_threadrt *t = thread;
    const gp_actorrt *p = t->actor;
    gp_look l = gp_host_look(t->actor);
    return !atomic_load(&t->taken) && (l > GP_LOOK_GO || (l == GP_LOOK_GO && gp_turn_is_one_of_the_last(p)
                                                          && gp_meta_of(p->in[0].ring, atomic_load(&p->next))->hole));
}

gp_look gp_loan_await_end(gp_threadrt *t)
{
    for (;;) {
        gp_eventcount_wait(&t->actor->to_end, has_to_end, t, 0);
        if (atomic_exchange(&t->taken, true))
            continue;
        gp_look l;
        while ((l = gp_host_look(t->actor)) == GP_LOOK_GO && gp_host_skip_hole(t))
            ;
        if (l > GP_LOOK_GO)
            return l;
        gp_turn_give_back(t, GP_DOING_IDLE);
    }
}

bool gp_loans_are_stuck(gp_run *run)
{
    bool all = true, waits = false, left = false, never = false;
    for (int i = 0; run->pipeline->nendpoints && i < run->plan->nactors; i++) {
        gp_actorrt *p = &run->actor[i];
        if (!p->on_loan)
            continue;
        bool asked = atomic_load(&p->asked), there = !p->source && gp_host_look(p) == GP_LOOK_GO;
        all &= asked, waits |= atomic_load(&p->waits) > 0;
        left |= there, never |= there && !asked;
    }
    return (waits && ((atomic_load(&run->loan_tid) > 0 && all) || never)) || (left && atomic_load(&run->pipeline->waited));
}

bool gp_loan_is_worked_on(const gp_threadrt *t)
{
    const gp_run *run = t->run;
    bool waits = false;
    for (int i = 0; i < run->plan->nactors && t->actor->on_loan; i++)
        waits |= atomic_load(&run->actor[i].waiter) == atomic_load(&t->tid);
    return !waits;
}

bool gp_loans_are_out(const gp_run *run)
{
    bool out = false;
    for (int i = 0; i < run->nthreads; i++)
        out |= run->thread[i].actor->on_loan && atomic_load(&run->thread[i].doing) == GP_DOING_WORK;
    return out;
}

/* ---- a loan ---------------------------------------------------------- */

/* Is there a frame for the program, or none any more? */
static bool is_ready(void *actor)
{
    gp_actorrt *p = actor;
    gp_look l = gp_host_look(p);
    bool idle = false;
    for (int w = 0; w < p->nthreads; w++)
        idle |= !atomic_load(&p->thread[w].taken);
    return l > GP_LOOK_GO || (l == GP_LOOK_GO && idle);
}

/* The actor of a run that is on, with one user more; NULL: there is none, and *why. */
static gp_actorrt *enter(struct gp_endpoint *e, int64_t end_ns, gp_loan_status *why)
{
    atomic_fetch_add(&e->users, 1);
    gp_actorrt *p = atomic_load(&e->actor);
    if (p)
        return p;
    pthread_mutex_lock(&e->lock);
    struct timespec end = gp_moment(end_ns);
    while (e->state == NOT_YET && gp_now_ns() < end_ns)
        if (end_ns == INT64_MAX)
            pthread_cond_wait(&e->changed, &e->lock);
        else
            pthread_cond_timedwait(&e->changed, &e->lock, &end);
    p = atomic_load(&e->actor);
    eventfd_t told;
    if (e->state == NOT_YET && atomic_load(&e->fd) >= 0)
        eventfd_read(atomic_load(&e->fd), &told);
    *why = e->state == OVER ? GP_LOAN_END : e->state == PAUSED ? GP_LOAN_PAUSED : GP_LOAN_TIMEOUT;
    if (!p)
        atomic_fetch_sub(&e->users, 1);
    pthread_mutex_unlock(&e->lock);
    return p;
}

/* With the worker t, which is taken, if there is a frame for it. */
static gp_look lend(gp_threadrt *t, gp_loan *to)
{
    gp_frame *f;
    gp_look l;
    gp_measure_idle(t, t->loan_ns);
    t->loan_ns = 0;
    while ((l = gp_host_lend(t, &f)) == GP_LOOK_GO && !f)
        gp_turn_tell(t);
    if (l == GP_LOOK_GO)
        *to = (gp_loan){ .index = f->index, .time_ns = f->time_ns, .name = f->name,
                         .view = t->actor->source ? f->out[0] : f->in[0], .device = gp_mark_device(t->actor), .held = t },
        t->loan = f->index + 1;
    return l;
}

/* A worker that the program has not; NULL: it has all. */
static gp_threadrt *take_any(gp_actorrt *p)
{
    for (int w = 0; w < p->nthreads; w++)
        if (gp_turn_take(&p->thread[w]))
            return &p->thread[w];
    return NULL;
}

/* A call gives up: unless another has taken the only worker, the stage is idle from now on. */
static void stop_waiting(gp_actorrt *p)
{
    gp_threadrt *t = take_any(p);
    if (!t)
        return;
    gp_pause_end(t, atomic_load(&p->next));
    t->loan_ns = gp_measure_now(p->run);
    gp_turn_give_back(t, GP_DOING_IDLE);
}

/* Of a thread of the program that asks for a frame. */
static void note(gp_actorrt *p)
{
    int none = 0, tid = gp_turn_tid();
    atomic_store_explicit(&p->asked, true, memory_order_relaxed);
    if (atomic_load_explicit(&p->run->loan_tid, memory_order_relaxed) != tid
        && !atomic_compare_exchange_strong(&p->run->loan_tid, &none, tid) && none != tid)
        atomic_store(&p->run->loan_tid, -1);
}

static gp_loan_status wait_for_one(struct gp_endpoint *e, gp_actorrt *p, gp_loan *to, int64_t end_ns, bool no_limit)
{
    for (;;) {
        gp_threadrt *t = take_any(p);
        gp_look l = t ? lend(t, to) : gp_host_look(p);
        if (t && l == GP_LOOK_GO)
            return GP_LOAN_OK;
        if (t)
            gp_turn_give_back(t, GP_DOING_WAIT);
        if (l > GP_LOOK_GO)
            return l == GP_LOOK_PAUSED || atomic_load(&p->paused) ? GP_LOAN_PAUSED : GP_LOAN_END;
        if (gp_now_ns() < end_ns) {
            int tid = gp_turn_tid();
            if (no_limit)
                atomic_fetch_add(&p->waits, 1), atomic_store(&p->waiter, tid);
            gp_eventcount_wait_until(&p->changed, is_ready, p, p->run->spin_ns, end_ns);
            if (no_limit)
                atomic_fetch_sub(&p->waits, 1), atomic_compare_exchange_strong(&p->waiter, &tid, 0);
            continue;
        }
        eventfd_t told;
        if (atomic_load(&e->fd) >= 0)
            eventfd_read(atomic_load(&e->fd), &told);
        gp_eventcount_arm(&p->changed);
        if (is_ready(p))
            continue;
        stop_waiting(p);
        return GP_LOAN_TIMEOUT;
    }
}

static gp_loan_status begin(struct gp_endpoint *e, gp_loan *to, int64_t timeout_ns)
{
    enum { SLICE_NS = 100000000 };
    GP_C_LOCALE;
    bool no_limit = timeout_ns < 0;
    timeout_ns = timeout_ns == GP_LOAN_SLICE ? SLICE_NS : timeout_ns;
    int64_t now = gp_now_ns(), end_ns = timeout_ns < 0 || timeout_ns > INT64_MAX - now ? INT64_MAX
                                      : timeout_ns ? now + timeout_ns : 0;
    gp_loan_status status;
    *to = (gp_loan){ .held = NULL };
    gp_actorrt *p = enter(e, end_ns, &status);
    if (!p)
        return status;
    note(p);
    status = wait_for_one(e, p, to, end_ns, no_limit);
    atomic_fetch_sub(&e->users, 1);
    return status;
}

static gp_frame *frame_of(const gp_loan *l)
{
    const gp_threadrt *t = l->held;
    return t->actor->host->view[t->worker].frame;
}

static bool end(struct gp_endpoint *e, gp_loan *l, gp_status status)
{
    GP_C_LOCALE;
    gp_threadrt *t = l->held;
    if (!t || t->actor->stage != e->stage || t->loan != l->index + 1)
        return false;
    gp_actorrt *p = t->actor;
    gp_frame *f = frame_of(l);
    atomic_fetch_add(&e->users, 1);
    if (atomic_load(&t->run->pipeline->cancel) >= 2)   /* not only once gp_watch has seen it */
        gp_run_level(t->run, 2);
    f->status = status;
    if (p->source)
        f->time_ns = l->time_ns, f->name = l->name, f->out[0].type = l->view.type;
    l->held = NULL, t->loan = 0;
    bool marked = gp_mark(p, p->host->view[t->worker].first, l->stream, status != GP_OK, &t->errs);
    if (!marked) {                     /* nobody knows when the slot is free: no frame comes behind it */
        if (t->errs.failed)            /* else the device has stopped, and another thread says so */
            gp_run_fail(t->run, &t->errs);
        gp_run_level(t->run, 2);
        t->errs = (gp_errs){ .at = t->errs.at };
    }
    gp_host_take_back(t);
    bool fits = marked && f->status == status;
    if (p->source)
        f->out[0].type = p->out[0]->buffer->type;      /* the next frame is whole until the program says otherwise */
    gp_turn_tell(t);
    gp_turn_give_back(t, GP_DOING_IDLE);
    atomic_fetch_sub(&e->users, 1);
    return fits;
}

/* ---- for the program ------------------------------------------------- */

gp_loan_status gp_push_begin(gp_input *in, gp_loan *l, int64_t timeout_ns)
{
    return begin(&in->e, l, timeout_ns);
}

bool gp_push_end(gp_input *in, gp_loan *l)
{
    return end(&in->e, l, GP_OK);
}

bool gp_push_drop(gp_input *in, gp_loan *l)
{
    return end(&in->e, l, GP_DROP);
}

void gp_push_close(gp_input *in)
{
    struct gp_endpoint *e = &in->e;
    pthread_mutex_lock(&e->lock);
    gp_actorrt *p = atomic_load(&e->actor);
    if (p)
        close_stage(p);
    atomic_store(&e->closed, p || e->state == NOT_YET || e->state == PAUSED);
    pthread_mutex_unlock(&e->lock);
}

gp_loan_status gp_pull_begin(gp_output *out, gp_loan *l, int64_t timeout_ns)
{
    return begin(&out->e, l, timeout_ns);
}

bool gp_pull_end(gp_output *out, gp_loan *l)
{
    return end(&out->e, l, GP_OK);
}

void gp_loan_numbers(const gp_loan *l, gp_frames *f, int64_t i)
{
    double *number = f->meta + i * f->nkeys;
    for (int k = 0; k < f->nkeys; k++)
        number[k] = gp_loan_get(l, f->keys[k], &number[k]) ? number[k] : NAN;
}

static void set_numbers(const gp_loan *l, const gp_frames *f, int64_t i)
{
    const double *number = f->meta + i * f->nkeys;
    for (int k = 0; k < f->nkeys; k++)
        gp_loan_set(l, f->keys[k], isnan(number[k]) ? NULL : &number[k]);
}

gp_loan_status gp_push_frames(gp_input *in, const gp_frames *f, int64_t timeout_ns, int64_t *done, bool *failed)
{
    gp_loan_status status = GP_LOAN_OK;
    gp_loan l;
    *failed = false;
    for (*done = 0; *done < f->n && !*failed && (status = begin(&in->e, &l, timeout_ns)) == GP_LOAN_OK; ++*done) {
        size_t room = gp_bytes(&l.view.type), bytes;
        l.view.type = f->each ? f->each[*done] : f->type;
        if ((bytes = gp_bytes(&l.view.type)) <= room)      /* else end() says that it does not fit */
            memcpy(l.view.data, (const char *)f->data + (size_t)*done * gp_bytes(&f->type), bytes);
        l.time_ns = f->time_ns ? f->time_ns[*done] : 0;
        if (f->meta)
            set_numbers(&l, f, *done);
        *failed = !end(&in->e, &l, GP_OK);
    }
    return status;
}

gp_loan_status gp_pull_frames(gp_output *out, gp_frames *f, int64_t timeout_ns, int64_t *done)
{
    gp_loan_status status = GP_LOAN_OK;
    gp_loan l;
    for (*done = 0; *done < f->n && (status = begin(&out->e, &l, timeout_ns)) == GP_LOAN_OK; ++*done) {
        f->each[*done] = l.view.type, f->number[*done] = l.index;
        if (f->time_ns)
            f->time_ns[*done] = l.time_ns;
        if (f->meta)
            gp_loan_numbers(&l, f, *done);
        memcpy((char *)f->data + (size_t)*done * gp_bytes(&f->type), l.view.data, gp_bytes(&l.view.type));
        end(&out->e, &l, GP_OK);
    }
    return status;
}

bool gp_loan_get(const gp_loan *l, const char *key, double *value)
{
    return l->held && gp_meta_get(&(gp_call){ .ctx = l->held }, frame_of(l), key, value);
}

bool gp_loan_set(const gp_loan *l, const char *key, const double *value)
{
    return l->held && gp_meta_set(&(gp_call){ .ctx = l->held }, frame_of(l), key, value);
}

static int fd_of(struct gp_endpoint *e)
{
    pthread_mutex_lock(&e->lock);
    if (atomic_load(&e->fd) < 0)
        atomic_store(&e->fd, eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK));
    gp_actorrt *p = atomic_load(&e->actor);
    if (p)
        gp_eventcount_set_fd(&p->changed, atomic_load(&e->fd));
    pthread_mutex_unlock(&e->lock);
    return atomic_load(&e->fd);
}

int gp_input_fd(gp_input *in)
{
    return fd_of(&in->e);
}

int gp_output_fd(gp_output *out)
{
    return fd_of(&out->e);
}
