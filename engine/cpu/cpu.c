/* cpu.c - the CPU back end: streams are threads, kernels are C++ functions.
 *
 * A body is recorded as a list of operations (list.c); a stream's thread runs lists in the order they were queued, one
 * operation after the other. Frames overlap because streams do. Invariant: an exec is queued at most once at a time, so
 * that what a launch waits for can be kept in its operations. */
#include <stdint.h>
#include <sys/mman.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "base/c_locale.h"
#include "base/clock.h"
#include "base/table.h"
#include "base/thread.h"
#include "cpu/list.h"
#include "device/nice.h"

struct gp_exec { gp_list list; };

typedef struct gp_turn { _Atomic uint64_t done; uint64_t queued; } gp_turn;

typedef struct gp_cpudev gp_cpudev;

typedef struct gp_stream {
    gp_cpudev *dev;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;       /* both ways */
    gp_priority priority;
    const gp_list *queued;     /* NULL: idle */
    gp_list direct;            /* of direct() */
    gp_cpu_runner *runner;
    const gp_cpuop *volatile running;  /* the kernel that its thread is in */
    void **argv;
    bool started, quit, failed;
    gp_errs errs;              /* why it failed; none: no memory for stacks */
} gp_stream;

struct gp_cpudev {
    gp_dev dev;
    gp_stream *stream; int nstreams;
    gp_turn *turn; int nturns, slots;
    int64_t *stamp;            /* written by streams; to be read after a wait for the stream */
    pthread_mutex_t turn_lock;
    pthread_cond_t turn_wake;
    gp_table builtin;                      /* kernels by name */
    gp_kernel *made;                       /* all kernels */
};

/* ---- open, close ----------------------------------------------------- */

static void cpu_close(gp_dev *d);

static gp_kernel *add_kernel(gp_cpudev *c, gp_cpu_entry entry, void *dl)
{
    gp_kernel *k = calloc(1, sizeof *k);
    if (k) {
        k->entry = entry, k->dl = dl, k->next = c->made;
        c->made = k;
    }
    return k;
}

static gp_dev *cpu_open(int index, gp_errs *errs)
{
    gp_cpudev *c = calloc(1, sizeof *c);
    if (!c)
        goto oom;
    c->dev.backend = &gp_backend_cpu;
    pthread_mutex_init(&c->turn_lock, NULL);
    pthread_cond_init(&c->turn_wake, NULL);
    for (int t = 0; gp_cpu_tables[t]; t++)
        for (const gp_cpu_entry *e = gp_cpu_tables[t]; e->name; e++) {
            gp_kernel *k = add_kernel(c, *e, NULL);
            gp_entry *x = k ? gp_table_put(&c->builtin, e->name, 0) : NULL;
            if (!x)
                goto oom;
            x->ptr = k;
        }
    return &c->dev;
oom:
    gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory");
    if (c)
        cpu_close(&c->dev);
    return NULL;
}

static void cpu_close(gp_dev *d)
{
    gp_cpudev *c = (gp_cpudev *)d;
    for (int i = 0; i < c->nstreams; i++) {
        gp_stream *s = &c->stream[i];
        if (s->started) {
            pthread_mutex_lock(&s->lock);
            s->quit = true;
            pthread_cond_broadcast(&s->wake);
            pthread_mutex_unlock(&s->lock);
            pthread_join(s->thread, NULL);
            pthread_mutex_destroy(&s->lock);
            pthread_cond_destroy(&s->wake);
        }
        gp_cpu_runner_destroy(s->runner);
        gp_list_free(&s->direct);
        free(s->argv);
    }
    while (c->made) {
        gp_kernel *next = c->made->next;
        if (c->made->dl)
            dlclose(c->made->dl);
        free(c->made);
        c->made = next;
    }
    pthread_mutex_destroy(&c->turn_lock);
    pthread_cond_destroy(&c->turn_wake);
    free(c->stream), free(c->turn), free(c->stamp), gp_table_free(&c->builtin), free(c);
}

/* ---- memory ---------------------------------------------------------- */

static void *cpu_alloc(gp_dev *d, gp_memory kind, size_t bytes, gp_errs *errs)
{
    void *p = NULL;
    if (posix_memalign(&p, 4096, bytes ? bytes : 256))
        return GP_NULL(gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory: %.1f MiB", (double)bytes / 1048576));
    return memset(p, 0, bytes);
}

static void cpu_free(gp_dev *d, gp_memory kind, void *mem, size_t bytes)
{
    free(mem);
}

/* Pages that were swapped out come back. */
static bool cpu_bring(gp_dev *d, void *mem, size_t bytes, gp_errs *errs)
{
    size_t before = (uintptr_t)mem % 4096;
    return !madvise((char *)mem - before, before + bytes, MADV_WILLNEED) || errno != ENOMEM
        || gp_fail(errs, GP_E_BUG, (gp_loc){ 0 }, "memory that was not taken is fetched ahead");
}

static const gp_kernel *cpu_builtin(gp_dev *d, const char *name)
{
    const gp_entry *e = gp_table_find(&((gp_cpudev *)d)->builtin, name);
    return e ? e->ptr : NULL;
}

/* ---- streams --------------------------------------------------------- */

static void await_turn(gp_cpudev *c, const gp_cpuop *op)
{
    gp_turn *t = &c->turn[op->slot];
    if (atomic_load(&t->done) >= op->turn)
        return;
    pthread_mutex_lock(&c->turn_lock);
    while (atomic_load(&t->done) < op->turn)
        pthread_cond_wait(&c->turn_wake, &c->turn_lock);
    pthread_mutex_unlock(&c->turn_lock);
}

static void pass_turn(gp_cpudev *c, const gp_cpuop *op)
{
    pthread_mutex_lock(&c->turn_lock);
    atomic_store(&c->turn[op->slot].done, op->turn);
    pthread_cond_broadcast(&c->turn_wake);
    pthread_mutex_unlock(&c->turn_lock);
}

/* The stream whose thread this is, and the kernel that it loads: for a signal handler that reports its fault. They are no
 * thread-local variables, as those of a library that a program opens late are allocated when a thread first reads them,
 * which a handler may not do, or else have no room. */
static pthread_key_t stream_of, loading;
static atomic_bool keys_made;

static void make_keys(void)
{
    atomic_store(&keys_made, !pthread_key_create(&stream_of, NULL) && !pthread_key_create(&loading, NULL));
}

static void set(pthread_key_t *key, const void *value)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_keys);
    if (atomic_load(&keys_made))
        pthread_setspecific(*key, value);
}

void gp_cpu_loads(const char *kernel)
{
    set(&loading, kernel);
}

void gp_kernel_at_fault(const void *address, gp_kernel_fault *out)
{
    *out = (gp_kernel_fault){ .kernel = NULL };
    if (!atomic_load(&keys_made))
        return;
    const gp_stream *s = pthread_getspecific(stream_of);
    const gp_cpuop *op = s ? s->running : NULL;
    out->kernel = pthread_getspecific(loading);
    if (op)
        *out = (gp_kernel_fault){ op->kernel->name, op->stage, gp_cpu_runner_overflows(s->runner, address) };
}

static bool run_op(gp_stream *s, const gp_list *l, const gp_cpuop *op)
{
    switch (op->code) {
    case OP_KERNEL: {
        size_t at = op->args;
        for (int i = 0; i < op->nargs; i++) {
            s->argv[i] = l->bytes + at;
            at += (op->kernel->arg_bytes[i] + 15u) & ~(size_t)15;
        }
        s->running = op;
        bool ok = op->check
            ? gp_check_grid(op->check, s->runner, op->grid, op->block, op->shared, s->argv, &s->errs)
            : (op->cooperative ? gp_cpu_cooperative : gp_cpu_grid)
                  (s->runner, op->kernel, op->grid, op->block, op->shared, s->argv);
        s->running = NULL;
        const char *trouble = ok ? NULL : gp_cpu_runner_trouble(s->runner);
        return trouble ? gp_fail(&s->errs, GP_E_RUN, op->at, "kernel '%s': %s", op->kernel->name, trouble) : ok;
    }
    case OP_CALL:
        s->errs.at = op->at;
        return gp_library_do(op->call, NULL, l->bytes + op->args, op->stage, &s->errs);
    case OP_COPY:
        memcpy(op->dst, op->src, op->n);
        return true;
    case OP_FILL:
        memset(op->dst, op->byte, op->n);
        return true;
    case OP_WAIT:
        await_turn(s->dev, op);
        return true;
    case OP_PASS:
        pass_turn(s->dev, op);
        return true;
    case OP_STAMP:
        s->dev->stamp[op->slot] = gp_now_ns();
        return true;
    case OP_REPEAT: case OP_AGAIN:
        return true;
    }
    return false;
}

/* A failed launch still passes its turn. */
static bool run_list(gp_stream *s, const gp_list *l)
{
    bool ok = true;
    uint64_t turn = 0;                 /* of the repeated operations that it is in */
    for (int i = 0; i < l->n; i++) {
        const gp_cpuop *op = &l->op[i];
        if (op->code == OP_AGAIN)
            i = op->slot, op = &l->op[i], turn++;
        else if (op->code == OP_REPEAT)
            turn = 0;
        if (op->code == OP_REPEAT && (turn == op->turn || !ok || (op->src && *(const int32_t *)op->src)))
            i = op->slot;
        ok = run_op(s, l, op) && ok;
    }
    return ok;
}

static void *stream_main(void *arg)
{
    GP_C_LOCALE;
    gp_stream *s = arg;
    set(&stream_of, s);
    gp_thread_nice(s->priority);       /* where that cannot be, a thread of the segment says so */
    pthread_mutex_lock(&s->lock);
    for (;;) {
        while (!s->queued && !s->quit)
            pthread_cond_wait(&s->wake, &s->lock);
        if (!s->queued)
            break;
        const gp_list *l = s->queued;
        pthread_mutex_unlock(&s->lock);
        bool ok = run_list(s, l);
        pthread_mutex_lock(&s->lock);
        s->failed |= !ok;
        s->queued = NULL;
        pthread_cond_broadcast(&s->wake);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static bool cpu_prepare(gp_dev *d, int streams, const gp_priority *priority, int orders, int slots, gp_errs *errs)
{
    enum { ARGS = 1024 };
    gp_cpudev *c = (gp_cpudev *)d;
    c->slots = slots, c->nturns = orders * slots;
    c->turn = calloc((size_t)c->nturns + 1, sizeof *c->turn);
    c->stream = calloc((size_t)streams, sizeof *c->stream);
    if (!c->turn || !c->stream)
        return gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory");
    for (int i = 0; i < streams; i++) {
        gp_stream *s = &c->stream[c->nstreams++];
        s->dev = c, s->priority = priority[i];
        s->runner = gp_cpu_runner_create();
        s->argv = calloc(ARGS, sizeof *s->argv);
        if (!s->runner || !s->argv)
            return gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory");
        pthread_mutex_init(&s->lock, NULL);
        pthread_cond_init(&s->wake, NULL);
        int e = gp_thread_start(&s->thread, stream_main, s);
        if (e)
            return gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "cannot start a thread: %s",
                           gp_strerror(e));
        s->started = true;
        pthread_setname_np(s->thread, "stream");
    }
    return true;
}

static bool cpu_stamps(gp_dev *d, int n, gp_errs *errs)
{
    gp_cpudev *c = (gp_cpudev *)d;
    int64_t *stamp = realloc(c->stamp, sizeof *stamp * (size_t)n);
    if (!stamp)
        return gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory");
    c->stamp = stamp;
    return true;
}

static int64_t cpu_stamped(gp_dev *d, int i)
{
    return ((gp_cpudev *)d)->stamp[i];
}

/* Called by the launchers in frame order; orders are of one segment each. */
static void queue(gp_cpudev *c, gp_stream *s, gp_list *l)
{
    for (int i = 0; i < l->n; i++) {
        gp_cpuop *op = &l->op[i];
        if (op->code == OP_WAIT)
            op->turn = c->turn[op->slot].queued;
        else if (op->code == OP_PASS)
            op->turn = ++c->turn[op->slot].queued;
    }
    pthread_mutex_lock(&s->lock);
    while (s->queued)
        pthread_cond_wait(&s->wake, &s->lock);
    s->queued = l;
    pthread_cond_broadcast(&s->wake);
    pthread_mutex_unlock(&s->lock);
}

static int result(gp_stream *s, gp_errs *errs)
{
    if (!s->failed)
        return 1;
    if (s->errs.failed)
        gp_errs_add(errs, &s->errs);
    else
        gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory for the stacks of a kernel's threads");
    return -1;
}

static int cpu_query(gp_dev *d, int stream, gp_errs *errs)
{
    gp_stream *s = &((gp_cpudev *)d)->stream[stream];
    pthread_mutex_lock(&s->lock);
    int done = s->queued ? 0 : result(s, errs);
    pthread_mutex_unlock(&s->lock);
    return done;
}

static int cpu_wait(gp_dev *d, int stream, gp_sync sync, gp_errs *errs)
{
    gp_stream *s = &((gp_cpudev *)d)->stream[stream];
    (void)sync;                /* spinning would take a core from the kernel */
    pthread_mutex_lock(&s->lock);
    while (s->queued)
        pthread_cond_wait(&s->wake, &s->lock);
    int done = result(s, errs);
    pthread_mutex_unlock(&s->lock);
    return done;
}

static uint64_t cpu_computed(gp_dev *d, int stream)
{
    const gp_stream *s = &((gp_cpudev *)d)->stream[stream];
    clockid_t clock;
    struct timespec t;
    if (pthread_getcpuclockid(s->thread, &clock) || clock_gettime(clock, &t))
        return 0;
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- bodies ---------------------------------------------------------- */

static bool record(gp_dev *d, gp_list *l, gp_body body, void *arg, gp_errs *errs)
{
    const gp_cpudev *c = (gp_cpudev *)d;
    return gp_list_record(l, d, c->nstreams, c->slots, body, arg, errs);
}

static void cpu_discard(gp_dev *d, gp_exec *x)
{
    gp_list_free(&x->list);
    free(x);
}

static gp_exec *cpu_build(gp_dev *d, int stream, gp_body body, void *arg, gp_errs *errs)
{
    gp_exec *x = calloc(1, sizeof *x);
    if (!x)
        return GP_NULL(gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory"));
    if (record(d, &x->list, body, arg, errs))
        return x;
    cpu_discard(d, x);
    return NULL;
}

static bool cpu_launch(gp_dev *d, int stream, gp_exec *x, gp_errs *errs)
{
    gp_cpudev *c = (gp_cpudev *)d;
    queue(c, &c->stream[stream], &x->list);
    return true;
}

static bool cpu_direct(gp_dev *d, int stream, gp_body body, void *arg, gp_errs *errs)
{
    gp_cpudev *c = (gp_cpudev *)d;
    gp_stream *s = &c->stream[stream];
    if (cpu_wait(d, stream, GP_SYNC_BLOCK, errs) != 1      /* its list is in use till then */
        || !record(d, &s->direct, body, arg, errs))
        return false;
    queue(c, s, &s->direct);
    return true;
}

static bool cpu_call(gp_dev *d, void (*f)(void *arg), void *arg)
{
    f(arg);
    return true;
}

/* A user's kernel stays loaded until the device is closed. */
static const gp_kernel *cpu_compile(gp_dev *d, const gp_source *src, gp_errs *errs)
{
    gp_cpu_entry entry;
    void *dl;
    if (!gp_cc_compile(src, d->cancel, &entry, &dl, errs))
        return NULL;
    gp_kernel *k = add_kernel((gp_cpudev *)d, entry, dl);
    if (!k) {
        dlclose(dl);
        gp_fail(errs, GP_E_RESOURCE, src->at, "out of memory");
        return NULL;
    }
    k->source = *src;
    return k;
}

const gp_backend gp_backend_cpu = {
    .name = "cpu",
    .open = cpu_open, .close = cpu_close, .alloc = cpu_alloc, .free = cpu_free, .bring = cpu_bring,
    .prepare = cpu_prepare, .stamps = cpu_stamps, .stamped = cpu_stamped, .build = cpu_build, .discard = cpu_discard,
    .launch = cpu_launch, .direct = cpu_direct, .call = cpu_call, .query = cpu_query, .wait = cpu_wait,
    .computed = cpu_computed, .builtin = cpu_builtin, .compile = cpu_compile,
};
