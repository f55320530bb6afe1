/* communicator.c - see communicator.h. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include "communicator.h"
#include "base/clock.h"
#include "base/thread.h"
#include "device/libraries.h"

/* A run that ends waits for threads for two seconds. TOGETHER: workers of all collective stages. */
enum { LOOK_MS = 50, GRACE_MS = 500, LAST_MS = 3000, TOGETHER = 128 };

struct gp_comm {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    gp_dev *dev;
    int rank, ranks;
    gp_gpu_id id;
    void *comm, *gone;                 /* NULL: it was aborted; which it was */
    int inside;                        /* calls of NCCL that queue something */
    int status;                        /* of NCCL: of making it, or what it found while it ran */
    atomic_int stages;                 /* that share it; 0: none has run */
    uint64_t next, turn;               /* the next number, of rank 0 or of a stage that is alone; which may begin now */
    struct { const gp_call *call; bool begun; } waits[TOGETHER];   /* for their turn, then for what they began; NULL: free */
    bool quit, watched;
    pthread_t guard;
};

static struct { pthread_mutex_t lock; gp_comm *comm; void *run; int users; bool torn; } shared = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct timespec in_ms(int ms)
{
    return gp_moment(gp_now_ns() + 1000000LL * ms);
}

/* ---- what is under way when a rank has gone -------------------------- */

static void abort_it(void *arg)
{
    gp_comm *m = arg;
    gp_gpu.ranks.abort(m->gone);
}

static bool is_given_up(const gp_comm *m)
{
    for (int i = 0; i < TOGETHER; i++)
        if (m->waits[i].call && gp_cancelled(m->waits[i].call))
            return true;
    return false;
}

static bool anyone_waits(const gp_comm *m)
{
    for (int i = 0; i < TOGETHER; i++)
        if (m->waits[i].begun)
            return true;
    return false;
}

/* An operation that all ranks have begun is done in a moment. */
static void *guard(void *arg)
{
    gp_comm *m = arg;
    int given_up = 0;
    pthread_mutex_lock(&m->lock);
    while (!m->quit && m->comm) {
        struct timespec until = in_ms(LOOK_MS);
        while (!m->quit && pthread_cond_timedwait(&m->moved, &m->lock, &until) != ETIMEDOUT)
            ;
        given_up = is_given_up(m) ? given_up + 1 : 0;
        if (given_up)                  /* who waits for a turn sleeps until then: one that wakes would not seem stalled */
            pthread_cond_broadcast(&m->moved);
        if (!anyone_waits(m))
            continue;
        int status = 0;
        if (!gp_gpu.ranks.async_error(m->comm, &status) && status != GP_GPU_IN_PROGRESS)
            m->status = status;
        if (m->status || given_up > GRACE_MS / LOOK_MS) {
            m->gone = m->comm, m->comm = NULL;
            pthread_cond_broadcast(&m->moved);
            until = in_ms(GRACE_MS);       /* one that is stuck in a call is what it is aborted for */
            while (m->inside && pthread_cond_timedwait(&m->moved, &m->lock, &until) != ETIMEDOUT)
                ;
            pthread_mutex_unlock(&m->lock);
            gp_device_call(m->dev, abort_it, m);       /* it may wait for other ranks */
            pthread_mutex_lock(&m->lock);
        }
    }
    pthread_mutex_unlock(&m->lock);
    return NULL;
}

/* ---- open, close ----------------------------------------------------- */

static void make_id(void *arg)
{
    gp_comm *m = arg;
    m->status = gp_gpu.ranks.unique_id(&m->id);
}

static void join(void *arg)
{
    gp_comm *m = arg;
    m->status = gp_gpu.ranks.init(&m->comm, m->ranks, m->id, m->rank);
}

static void destroy(void *arg)
{
    gp_comm *m = arg;
    gp_gpu.ranks.destroy(m->gone);
}

static void *end_whole(void *arg)
{
    gp_comm *m = arg;
    gp_device_call(m->dev, destroy, m);
    return NULL;
}

static void *end_torn(void *arg)
{
    gp_comm *m = arg;
    gp_device_call(m->dev, abort_it, m);
    return NULL;
}

/* Has the thread come back? One that has not waits for ranks that are gone, and ends with the process. */
static bool joined(pthread_t t)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);             /* the only one that it knows */
    until.tv_sec += LAST_MS / 1000;
    return !pthread_timedjoin_np(t, NULL, &until) || (pthread_detach(t), false);
}

static void drop(gp_comm *m, bool whole)
{
    pthread_t last;
    bool back;
    pthread_mutex_lock(&m->lock);
    m->quit = true;
    pthread_cond_broadcast(&m->moved);
    pthread_mutex_unlock(&m->lock);
    back = !m->watched || joined(m->guard);
    if (back && m->comm) {
        m->gone = m->comm;
        back = !gp_thread_start(&last, whole ? end_whole : end_torn, m) && joined(last);
    }
    if (!back)
        return;
    pthread_mutex_destroy(&m->lock);
    pthread_cond_destroy(&m->moved);
    free(m);
}

/* Does it here, and tells all ranks how it went, and the id. The first rank where it failed, with its status in
 * *status; -1: none; -2: the run has ended, or with an error. */
static int on_all(const gp_open *o, gp_comm *m, void (*f)(void *), int *status)
{
    typedef struct told { gp_gpu_id id; int status; } told;
    if (f && !gp_device_call(o->dev, f, m))
        m->status = -1;
    told mine = { m->id, m->status };
    const told *all = gp_open_gather(o, &mine, sizeof mine);
    int bad = all ? -1 : -2;
    for (int r = all ? m->ranks - 1 : -1; r >= 0; r--)
        if (all[r].status)
            bad = r, *status = all[r].status;
    if (all)
        m->id = all[0].id;
    return bad;
}

static gp_comm *make(const gp_open *o, char why[160])
{
    gp_comm *m = calloc(1, sizeof *m);
    char text[GP_GPU_TEXT], buf[GP_GPU_TEXT], what[80];
    int status = 0;
    if (!m)
        return GP_NULL(gp_fail(o->errs, GP_E_RESOURCE, o->at, "stage '%s': out of memory", o->name));
    pthread_mutex_init(&m->lock, NULL);
    gp_cond_init(&m->moved);
    snprintf(what, sizeof what, "stage '%s'", o->name);
    m->rank = o->rank, m->ranks = o->ranks, m->dev = o->dev;
    bool there = gp_gpu_open(GP_GPU_RANKS, text, what, o->at, o->errs);
    int bad = there ? on_all(o, m, m->rank ? NULL : make_id, &status) : -2;
    if (bad == -1)
        bad = on_all(o, m, join, &status);
    m->watched = bad == -1 && !gp_thread_start(&m->guard, guard, m);
    if (m->watched)
        return m;
    if (bad >= 0)
        snprintf(why, 160, "rank %d cannot set up %s (%s)", bad, text,
                 status < 0 ? "its device has stopped" : gp_gpu_status(GP_GPU_RANKS, status, buf));
    else if (bad == -1)
        gp_fail(o->errs, GP_E_RESOURCE, o->at, "stage '%s': a thread cannot be started", o->name);
    drop(m, false);
    return NULL;
}

gp_comm *gp_comm_open(const gp_open *o, char why[160])
{
    *why = 0;
    pthread_mutex_lock(&shared.lock);
    gp_comm *m = NULL;
    if (shared.users && shared.run != o->ctx)
        gp_fail(o->errs, GP_E_USAGE, o->at, "stage '%s': another run of this process has %s: set 'by: mpi'", o->name,
                gp_gpu_name(GP_GPU_RANKS));
    else
        m = shared.users ? shared.comm : make(o, why);
    if (m && !shared.users++)
        shared.comm = m, shared.run = o->ctx, shared.torn = false;
    pthread_mutex_unlock(&shared.lock);
    return m;
}

void gp_comm_close(gp_comm *m, bool whole)
{
    if (!m)
        return;
    pthread_mutex_lock(&shared.lock);
    shared.torn |= !whole;
    if (!--shared.users)
        drop(m, !shared.torn), shared.comm = NULL;
    pthread_mutex_unlock(&shared.lock);
}

/* ---- operations ------------------------------------------------------ */

typedef struct deed { gp_call *c; gp_comm *m; const gp_comm_work *work; bool begun; } deed;

static void pass_turn(deed *x)
{
    pthread_mutex_lock(&x->m->lock);
    x->m->turn += !x->begun, x->begun = true;
    pthread_cond_broadcast(&x->m->moved);
    pthread_mutex_unlock(&x->m->lock);
}

/* On a GPU this is queued, and the next may begin. */
static bool call(void *stream, const void *arg, gp_errs *errs)
{
    deed *x = *(deed *const *)arg;
    pthread_mutex_lock(&x->m->lock);
    void *comm = x->m->comm;
    x->m->inside++;
    pthread_mutex_unlock(&x->m->lock);
    int status = comm ? x->work->f(comm, stream, x->work->arg) : 0;     /* 0: the run has been given up */
    pthread_mutex_lock(&x->m->lock);
    x->m->inside--;
    pthread_mutex_unlock(&x->m->lock);
    pass_turn(x);
    if (status)
        return gp_gpu_fail(GP_GPU_RANKS, status, errs, GP_E_RUN, x->c->at, x->c->name, "failed", "");
    gp_let_next_begin(x->c, x->work->n);
    return true;
}

static bool queue(gp_dcall *d, void *arg)
{
    deed *x = arg;
    return (!x->work->before || x->work->before(d, x->work->arg)) && gp_call_library(d, call, &x, sizeof x);
}

/* Waits for the turn of number `n`, and is then looked after. Which place has it? -1: the run is cancelled, or an
 * error. */
static int take_turn(gp_call *c, gp_comm *m, uint64_t n)
{
    int at = 0;
    pthread_mutex_lock(&m->lock);
    while (at < TOGETHER && m->waits[at].call)
        at++;
    if (at == TOGETHER) {
        pthread_mutex_unlock(&m->lock);
        gp_fail(c->errs, GP_E_RESOURCE, c->at, "stage '%s': more than %d operations of %s at a time", c->name, TOGETHER,
                gp_gpu_name(GP_GPU_RANKS));
        return -1;
    }
    m->waits[at].call = c;
    while (m->turn != n && m->comm && !gp_cancelled(c))
        pthread_cond_wait(&m->moved, &m->lock);
    bool go = m->waits[at].begun = m->turn == n && m->comm;
    if (!go)
        m->waits[at].call = NULL;
    pthread_mutex_unlock(&m->lock);
    return go ? at : -1;
}

/* Whether it is the only stage, which needs no numbers of rank 0. All are open when the first runs, on all ranks. */
static bool is_alone(gp_comm *m)
{
    int stages = atomic_load(&m->stages);
    if (!stages) {
        pthread_mutex_lock(&shared.lock);
        atomic_store(&m->stages, stages = shared.users);
        pthread_mutex_unlock(&shared.lock);
    }
    return stages == 1;
}

/* The number of the next operation. False: the run has ended. */
static bool number(gp_call *c, gp_comm *m, uint64_t *n)
{
    bool alone = is_alone(m);
    if (alone || !m->rank) {
        pthread_mutex_lock(&m->lock);
        *n = m->next++;
        pthread_mutex_unlock(&m->lock);
    }
    const uint64_t *all = alone ? n : gp_gather(c, n, sizeof *n);
    if (all)
        *n = all[0];
    return all != NULL;
}

bool gp_comm_do(gp_call *c, gp_comm *m, const gp_comm_work *work)
{
    uint64_t n = 0;
    if (!number(c, m, &n))
        return false;
    int at = take_turn(c, m, n);
    deed x = { .c = c, .m = m, .work = work };
    bool ok = at >= 0 && gp_device_do(c, queue, &x);
    if (at >= 0)
        pass_turn(&x);                 /* it may have failed before */
    pthread_mutex_lock(&m->lock);
    if (at >= 0)
        m->waits[at].call = NULL, m->waits[at].begun = false;
    int status = m->status;
    bool there = m->comm != NULL;
    pthread_mutex_unlock(&m->lock);
    if (status && !gp_cancelled(c))
        return gp_gpu_fail(GP_GPU_RANKS, status, c->errs, GP_E_RUN, c->at, c->name, "failed while it ran", "");
    return ok && there;
}
