/* test_backend.c - what the executor relies on, on both back ends: the loop
 * index of a test is the back end's, 0 cpu, 1 cuda. */
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#if GP_CUDA
#include <cuda_runtime_api.h>
#include <cudaTypedefs.h>
#endif
#include "device/backend.h"
#include "base/embed.h"
#include "gpu.h"

extern char **environ;
Suite *suite_backend(void);

static const gp_backend *const backends[] = {
    &gp_backend_cpu,
#if GP_CUDA
    &gp_backend_cuda,
#endif
};

/* add: element by element. slow: 2.0 in *x after many dependent steps.
 * carry: counts what went through it, slowly. */
static const char source[] =
    "extern \"C\" __global__ void add(const float *a, const float *b, float *out, int n)\n"
    "{\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < n)\n"
    "        out[i] = a[i] + b[i];\n"
    "}\n"
    "extern \"C\" __global__ void slow(float *x, int n)\n"
    "{\n"
    "    float v = *x;\n"
    "    for (int k = 0; k < n; k++)\n"
    "        v = v * 0.5f + 1.0f;\n"
    "    *x = v;\n"
    "}\n"
    "extern \"C\" __global__ void carry(unsigned *state, unsigned *out, float *x, int n)\n"
    "{\n"
    "    unsigned seen = *state;\n"
    "    float v = *x;\n"
    "    for (int k = 0; k < n; k++)\n"
    "        v = v * 0.5f + 1.0f;\n"
    "    *x = v;\n"
    "    *state = seen + 1;\n"
    "    *out = seen;\n"
    "}\n";

enum { N = 3000, STREAMS = 4 };

static const gp_backend *b;
static gp_dev *dev;
static gp_errs errs;
static bool gpu;                   /* the back end under test is CUDA */
static int steps;                  /* of `slow`: about a millisecond */
static char dir[200];
static const gp_kernel *add, *slow, *carry;

/* What a test took, for stop() to give back. */
static struct { void *at; size_t bytes; bool device; } taken[32];
static gp_exec *built[8];
static int ntaken, nbuilt;

static const char *said(void)
{
    return errs.n ? errs.e[0].msg : "(no error)";
}

#define OK(x) ck_assert_msg((x), "%s: %s", #x, said())

static void remove_dir(void)
{
    const char *argv[] = { "rm", "-rf", dir, NULL };
    pid_t pid;
    if (!posix_spawnp(&pid, "rm", NULL, NULL, (char **)argv, environ))
        waitpid(pid, NULL, 0);
}

/* A folder of our own, for the source and as the cache of compiled kernels. */
static bool make_dir(void)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(dir, sizeof dir, "%s/gpipe-backend-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(dir))
        return false;
    setenv("XDG_CACHE_HOME", dir, 1);
    char path[240];
    snprintf(path, sizeof path, "%s/test.cu", dir);
    FILE *f = fopen(path, "w");
    return f && fputs(source, f) >= 0 && fclose(f) == 0;
}

static const gp_kernel *compile(const char *entry, const char *const *param, int nparam)
{
    char path[240];
    snprintf(path, sizeof path, "%s/test.cu", dir);
    gp_source s = { .path = path, .entry = entry, .param = param, .nparam = nparam };
    return gp_kernel_compile(dev, &s, &errs);
}

static void start(int which)
{
    b = backends[which];
    gpu = which == 1;
    steps = gpu ? 200000 : 100000;
    ntaken = nbuilt = 0;           /* a test that failed leaves them */
    errs.n = errs.failed = 0;
    OK(dev = b->open(0, &errs));
    OK(b->prepare(dev, STREAMS, 1, STREAMS, &errs));
}

static void start_kernels(int which)
{
    static const char *const of_add[] = { "const float *", "const float *", "float *", "int" };
    static const char *const of_slow[] = { "float *", "int" };
    static const char *const of_carry[] = { "unsigned *", "unsigned *", "float *", "int" };
    start(which);
    OK(add = compile("add", of_add, 4));
    OK(slow = compile("slow", of_slow, 2));
    OK(carry = compile("carry", of_carry, 4));
}

static void stop(void)
{
    ck_assert_msg(errs.n == 0, "%s", said());
    while (nbuilt)
        b->discard(dev, built[--nbuilt]);
    for (; ntaken; ntaken--)
        b->free(dev, taken[ntaken - 1].device, taken[ntaken - 1].at, taken[ntaken - 1].bytes);
    b->close(dev);
    dev = NULL;
}

static void *alloc(bool device, size_t bytes)
{
    void *p = b->alloc(dev, device, bytes, &errs);
    OK(p);
    ck_assert_uint_eq((uintptr_t)p % 256, 0);
    taken[ntaken].at = p;
    taken[ntaken].bytes = bytes;
    taken[ntaken++].device = device;
    return p;
}

static gp_exec *build(gp_body body, void *arg)
{
    gp_exec *x = b->build(dev, body, arg, &errs);
    OK(x);
    return built[nbuilt++] = x;
}

static bool call(gp_rec *r, const gp_kernel *k, unsigned blocks, unsigned threads,
                 void *const *args, int nargs)
{
    return r->ops->launch(r, k, (gp_dim3){ blocks, 1, 1 }, (gp_dim3){ threads, 1, 1 }, 0, args,
                          nargs);
}

static void finish(int stream)
{
    ck_assert_msg(b->wait(dev, stream, GP_SYNC_AUTO, &errs) == 1, "%s", said());
}

static void run_graph(gp_body body, void *arg)
{
    OK(b->launch(dev, 0, build(body, arg), &errs));
    finish(0);
}

static void run_direct(gp_body body, void *arg)
{
    OK(b->direct(dev, 0, body, arg, &errs));
    finish(0);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- memory, copies, fills ------------------------------------------- */

struct move { void *dst; const void *src; size_t bytes; };

static bool move(gp_rec *r, void *arg)
{
    struct move *m = arg;
    return r->ops->item(r, 0, NULL, 0) && r->ops->copy(r, m->dst, m->src, m->bytes);
}

START_TEST(memory_is_zeroed)
{
    start(_i);
    enum { BYTES = 100000 };
    unsigned char *host = alloc(false, BYTES), *mem = alloc(true, BYTES);
    static const unsigned char zero[BYTES];
    ck_assert(!memcmp(host, zero, BYTES));
    memset(host, 7, BYTES);
    run_direct(move, &(struct move){ host, mem, BYTES });
    ck_assert(!memcmp(host, zero, BYTES));
    memset(host, 7, BYTES);
    run_direct(move, &(struct move){ mem, host, BYTES });
    b->free(dev, true, mem, BYTES);
    ntaken--;
    mem = alloc(true, BYTES);      /* likely the same memory: zeroed again? */
    run_direct(move, &(struct move){ host, mem, BYTES });
    ck_assert(!memcmp(host, zero, BYTES));
    stop();
}
END_TEST

struct filling { char *host, *mem; };

static bool filling(gp_rec *r, void *arg)
{
    struct filling *f = arg;
    return r->ops->item(r, 0, NULL, 0) && r->ops->fill(r, f->mem, 0xa5, 1000)
        && r->ops->item(r, 1, (int[]){ 0 }, 1) && r->ops->fill(r, f->mem + 10, 3, 20)
        && r->ops->item(r, 2, (int[]){ 1 }, 1) && r->ops->copy(r, f->host, f->mem, 1001);
}

START_TEST(fills)
{
    start(_i);
    struct filling f = { alloc(false, 1001), alloc(true, 1001) };
    for (int direct = 0; direct < 2; direct++) {
        memset(f.host, 1, 1001);
        if (direct)
            run_direct(filling, &f);
        else
            run_graph(filling, &f);
        for (int i = 0; i < 1000; i++)
            ck_assert_int_eq((unsigned char)f.host[i], i >= 10 && i < 30 ? 3 : 0xa5);
        ck_assert_int_eq(f.host[1000], 0);
    }
    stop();
}
END_TEST

START_TEST(out_of_memory)
{
    start(_i);
    if (gpu) {
        ck_assert_ptr_null(b->alloc(dev, true, (size_t)1 << 46, &errs));
        ck_assert_int_eq(errs.n, 1);
        ck_assert_int_eq(errs.e[0].code, GP_E_RESOURCE);
        ck_assert_msg(strstr(said(), "67108864.0 MiB") && strstr(said(), "depth"), "%s", said());
        errs.n = errs.failed = 0;
        alloc(true, 1 << 20);      /* the device is as before */
    }
    stop();
}
END_TEST

START_TEST(no_such_device)
{
    if (_i != 1)
        return;
    errs.n = 0;
    ck_assert_ptr_null(backends[_i]->open(1000, &errs));
    ck_assert_int_eq(errs.n, 1);
    errs.n = errs.failed = 0;
}
END_TEST

/* ---- bodies ---------------------------------------------------------- */

struct sum { float *ha, *hb, *hout, *a, *b, *out; int n; };

static bool sum(gp_rec *r, void *arg)
{
    struct sum *s = arg;
    size_t bytes = sizeof(float) * (size_t)s->n;
    return r->ops->item(r, 0, NULL, 0) && r->ops->copy(r, s->a, s->ha, bytes)
        && r->ops->item(r, 1, NULL, 0) && r->ops->copy(r, s->b, s->hb, bytes)
        && r->ops->item(r, 2, (int[]){ 0, 1 }, 2)
        && call(r, add, (unsigned)(s->n + 255) / 256, 256, GP_ARGS(&s->a, &s->b, &s->out, &s->n))
        && r->ops->item(r, 3, (int[]){ 2 }, 1) && r->ops->copy(r, s->hout, s->out, bytes);
}

START_TEST(graph_equals_direct)
{
    start_kernels(_i);
    size_t bytes = N * sizeof(float);
    struct sum s = { alloc(false, bytes), alloc(false, bytes), alloc(false, bytes),
                     alloc(true, bytes), alloc(true, bytes), alloc(true, bytes), N };
    gp_exec *x = build(sum, &s);
    for (int round = 0; round < 6; round++) {
        for (int i = 0; i < N; i++) {
            s.ha[i] = (float)(i + round);
            s.hb[i] = (float)(1000 * round);
            s.hout[i] = -1;
        }
        if (round % 2)
            OK(b->direct(dev, round % STREAMS, sum, &s, &errs));
        else
            OK(b->launch(dev, round % STREAMS, x, &errs));
        finish(round % STREAMS);
        for (int i = 0; i < N; i++)
            ck_assert_msg(s.hout[i] == (float)(i + 1001 * round), "round %d, element %d: %g",
                          round, i, (double)s.hout[i]);
    }
    stop();
}
END_TEST

struct diamond { float *x, *y, *z, *one, *out, *hout; };

static bool diamond(gp_rec *r, void *arg)
{
    struct diamond *d = arg;
    int n = 1;
    return r->ops->item(r, 0, NULL, 0) && r->ops->fill(r, d->x, 0, 4)
        && r->ops->fill(r, d->y, 0xff, 4) && r->ops->fill(r, d->z, 0xff, 4)
        && r->ops->fill(r, d->out, 0xff, 4)
        && r->ops->item(r, 1, NULL, 0) && r->ops->fill(r, d->one, 0, 4)
        && r->ops->item(r, 2, (int[]){ 0 }, 1) && call(r, slow, 1, 1, GP_ARGS(&d->x, &steps))
        && r->ops->item(r, 3, (int[]){ 2 }, 1)
        && call(r, add, 1, 1, GP_ARGS(&d->x, &d->x, &d->y, &n))
        && r->ops->item(r, 4, (int[]){ 1, 2 }, 2)
        && call(r, add, 1, 1, GP_ARGS(&d->x, &d->one, &d->z, &n))
        && r->ops->item(r, 5, (int[]){ 3, 4, 2 }, 3)
        && r->ops->item(r, 6, (int[]){ 5, 3 }, 2)      /* 5 has nothing in it */
        && call(r, add, 1, 1, GP_ARGS(&d->y, &d->z, &d->out, &n))
        && r->ops->item(r, 7, (int[]){ 6 }, 1) && r->ops->copy(r, d->hout, d->out, 4);
}

START_TEST(items_wait_for_what_they_name)
{
    start_kernels(_i);
    struct diamond d = { alloc(true, 4), alloc(true, 4), alloc(true, 4), alloc(true, 4),
                         alloc(true, 4), alloc(false, 4) };
    gp_exec *x = build(diamond, &d);
    for (int round = 0; round < 20; round++) {
        *d.hout = 0;
        OK(b->launch(dev, 0, x, &errs));
        finish(0);
        ck_assert_msg(*d.hout == 6.0f, "round %d: %g", round, (double)*d.hout);
    }
    run_direct(diamond, &d);
    ck_assert(*d.hout == 6.0f);
    stop();
}
END_TEST

struct pair { float *x, *y; bool chained; int n; };

static bool pair(gp_rec *r, void *arg)
{
    struct pair *p = arg;
    return r->ops->item(r, 0, NULL, 0) && call(r, slow, 1, 1, GP_ARGS(&p->x, &p->n))
        && r->ops->item(r, 1, (int[]){ 0 }, p->chained)
        && call(r, slow, 1, 1, GP_ARGS(&p->y, &p->n));
}

static double fastest(struct pair *p)
{
    double best = 1e9;
    gp_exec *x = build(pair, p);
    for (int i = 0; i < 6; i++) {
        double t = seconds();
        OK(b->launch(dev, 0, x, &errs));
        finish(0);
        t = seconds() - t;
        best = t < best ? t : best;
    }
    return best;
}

START_TEST(items_wait_for_nothing_else)
{
    if (_i != 1)
        return;                    /* one stream of the CPU back end is one thread */
    start_kernels(_i);
    struct pair p = { alloc(true, 4), alloc(true, 4), true, 4 * steps };
    double chained = fastest(&p);
    p.chained = false;
    double apart = fastest(&p);
    ck_assert_msg(apart < 0.65 * chained, "%g s apart, %g s one after the other", apart, chained);
    stop();
}
END_TEST

static bool breaks(gp_rec *r, void *arg)
{
    (void)arg;
    return r->ops->item(r, 0, NULL, 0)
        && gp_fail(r->errs, GP_E_RUN, (gp_loc){0}, "as it should");
}

static bool waits(gp_rec *r, void *arg)
{
    (void)arg;
    return r->ops->item(r, 0, NULL, 0) && r->ops->wait(r);
}

START_TEST(a_body_may_fail)
{
    start_kernels(_i);
    ck_assert_ptr_null(b->build(dev, breaks, NULL, &errs));
    ck_assert_str_eq(said(), "as it should");
    ck_assert(!b->direct(dev, 0, breaks, NULL, &errs));
    ck_assert_int_eq(errs.n, 2);
    if (gpu) {                     /* cannot be part of a graph */
        ck_assert_ptr_null(b->build(dev, waits, NULL, &errs));
        ck_assert_int_eq(errs.n, 3);
    }
    errs.n = errs.failed = 0;
    OK(b->direct(dev, 0, waits, NULL, &errs));
    finish(0);
    float *x = alloc(true, 4), *y = alloc(true, 4);
    run_graph(pair, &(struct pair){ x, y, true, 10 });     /* and nothing is left of it */
    stop();
}
END_TEST

/* Builds n execs and discards them, the oldest or the newest first; the CPU time that
 * discarding took, the least of three. */
static double discard_all(int n, bool oldest, struct move *m)
{
    gp_exec **x = malloc((size_t)n * sizeof *x);
    double least = 1e9;
    ck_assert_ptr_nonnull(x);
    for (int k = 0; k < 3; k++) {
        struct timespec from, to;
        for (int i = 0; i < n; i++)
            OK(x[i] = b->build(dev, move, m, &errs));
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
        for (int i = 0; i < n; i++)
            b->discard(dev, x[oldest ? i : n - 1 - i]);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
        double took = (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
        least = took < least ? took : least;
    }
    free(x);
    return least;
}

/* It takes about as long from either end of the list in which they are; a search from one
 * end through those that are left would take hundreds of times as long. */
START_TEST(execs_are_discarded_in_constant_time)
{
    start(_i);
    const int n = getenv("GPIPE_SANITIZED") ? 4096 : 32768;
    struct move m = { alloc(false, 64), alloc(true, 64), 64 };
    double oldest = discard_all(n, true, &m), newest = discard_all(n, false, &m);
    ck_assert_msg(oldest < 10 * newest && newest < 10 * oldest, "%d took %g s the oldest first, "
                  "%g s the newest first", n, oldest, newest);
    stop();
}
END_TEST

/* ---- orders ---------------------------------------------------------- */

struct turn { unsigned *state, *out, *hout; float *x, *y; int slot; };

static bool turn(gp_rec *r, void *arg)
{
    struct turn *t = arg;
    int little = steps / 200;
    return r->ops->item(r, 0, NULL, 0) && call(r, slow, 1, 1, GP_ARGS(&t->x, &steps))
        && r->ops->item(r, 1, NULL, 0)
        && r->ops->order_wait(r, 0, (t->slot + STREAMS - 1) % STREAMS)
        && call(r, carry, 1, 1, GP_ARGS(&t->state, &t->out, &t->y, &little))
        && r->ops->order_pass(r, 0, t->slot)
        && r->ops->item(r, 2, (int[]){ 1 }, 1) && r->ops->copy(r, t->hout, t->out, 4);
}

START_TEST(orders_hold_over_streams)
{
    start_kernels(_i);
    enum { FRAMES = 400 };
    unsigned *state = alloc(true, 4);
    struct turn t[STREAMS];
    gp_exec *x[STREAMS];
    for (int s = 0; s < STREAMS; s++) {
        t[s] = (struct turn){ state, alloc(true, 4), alloc(false, 4), alloc(true, 4),
                              alloc(true, 4), s };
        x[s] = build(turn, &t[s]);
    }
    double alone = fastest(&(struct pair){ t[0].x, t[0].x, true, steps }) / 2;
    double all = seconds();
    for (int f = 0; f < FRAMES + STREAMS; f++) {
        int s = f % STREAMS;
        if (f >= STREAMS) {
            finish(s);
            ck_assert_msg((int)*t[s].hout == f - STREAMS, "frame %d was number %u",
                          f - STREAMS, *t[s].hout);
        }
        if (f >= FRAMES)
            continue;
        if (f % 7 == 3)            /* as partial frames do */
            OK(b->direct(dev, s, turn, &t[s], &errs));
        else
            OK(b->launch(dev, s, x[s], &errs));
    }
    all = seconds() - all;
    if (gpu && !getenv("GPIPE_SANITIZED"))       /* and only what is ordered is */
        ck_assert_msg(all < 0.6 * FRAMES * alone, "%g s; one by one %g", all, FRAMES * alone);
    stop();
}
END_TEST

/* ---- waiting --------------------------------------------------------- */

static void *wait_there(void *sync)
{
    gp_errs mine = { .n = 0 };
    return (void *)(intptr_t)b->wait(dev, 1, *(gp_sync *)sync, &mine);
}

START_TEST(waiting)
{
    start_kernels(_i);
    ck_assert_int_eq(b->query(dev, 1, &errs), 1);      /* nothing was queued */
    struct pair p = { alloc(true, 4), alloc(true, 4), true, 2 * steps };
    gp_exec *x = build(pair, &p);
    for (gp_sync sync = GP_SYNC_AUTO; sync <= GP_SYNC_BLOCK; sync++)
        for (int other = 0; other < 2; other++) {
            OK(b->launch(dev, 1, x, &errs));
            if (gpu)
                ck_assert_int_eq(b->query(dev, 1, &errs), 0);
            if (other) {
                pthread_t thread;
                void *r;
                ck_assert_int_eq(pthread_create(&thread, NULL, wait_there, &sync), 0);
                pthread_join(thread, &r);
                ck_assert_int_eq((int)(intptr_t)r, 1);
            } else {
                ck_assert_int_eq(b->wait(dev, 1, sync, &errs), 1);
            }
            ck_assert_int_eq(b->query(dev, 1, &errs), 1);
            ck_assert_int_eq(b->query(dev, 0, &errs), 1);
        }
    stop();
}
END_TEST

/* ---- what an application does with CUDA --------------------------------- */

#if GP_CUDA
static void driver(const char *name, unsigned version, void *to)
{
    enum cudaDriverEntryPointQueryResult found;
    ck_assert_int_eq(cudaGetDriverEntryPointByVersion(name, to, version, cudaEnableDefault, &found),
                     cudaSuccess);
    ck_assert_int_eq(found, cudaDriverEntryPointSuccess);
}

/* Between two calls it makes a context of its own current, or none: the second call finds
 * its device all the same; and what gives things back leaves that context current. */
START_TEST(a_context_of_the_application)
{
    PFN_cuCtxGetCurrent_v4000 get;
    PFN_cuCtxSetCurrent_v4000 set;
    PFN_cuCtxCreate_v3020 create;
    PFN_cuCtxDestroy_v4000 destroy;
    CUcontext own = NULL, now;
    start_kernels(1);
    driver("cuCtxGetCurrent", 4000, &get);
    driver("cuCtxSetCurrent", 4000, &set);
    driver("cuCtxCreate", 3020, &create);
    driver("cuCtxDestroy", 4000, &destroy);
    ck_assert_int_eq(create(&own, 0, 0), CUDA_SUCCESS);        /* and it is current */
    float *x = alloc(true, 4), *y = alloc(true, 4);
    for (int i = 0; i < 2; i++) {
        CUcontext theirs = i ? NULL : own;
        struct pair p = { x, y, true, 10 };
        set(theirs);
        gp_exec *e = b->build(dev, pair, &p, &errs);
        OK(e);
        set(theirs);
        OK(b->launch(dev, 0, e, &errs));
        set(theirs);
        finish(0);
        get(&now);
        ck_assert_ptr_eq(now, theirs);
        OK(b->direct(dev, 1, pair, &p, &errs));
        set(theirs);
        ck_assert_int_ge(b->query(dev, 1, &errs), 0);
        set(theirs);
        finish(1);
        b->discard(dev, e);
        void *mem = b->alloc(dev, true, 1000, &errs);
        OK(mem);
        set(theirs);
        b->free(dev, true, mem, 1000);
        double in, out;
        OK(b->rates(dev, &in, &out, &errs));
        get(&now);
        ck_assert_ptr_eq(now, theirs);
    }
    set(own);
    stop();
    get(&now);
    ck_assert_ptr_eq(now, own);
    destroy(own);
    set(NULL);
}
END_TEST
#endif

/* ---- kernels --------------------------------------------------------- */

static bool has_builtin(gp_rec *r, void *arg)
{
    (void)arg;
    for (int t = 0; gp_cpu_tables[t]; t++)
        for (const gp_cpu_entry *e = gp_cpu_tables[t]; e->name; e++)
            if (!r->ops->kernel(r, e->name))
                return gp_fail(r->errs, GP_E_BUG, (gp_loc){0}, "no '%s'", e->name);
    return !r->ops->kernel(r, "no_such_kernel");
}

START_TEST(built_in_kernels_are_there)
{
    start(_i);
    run_direct(has_builtin, NULL);
    stop();
}
END_TEST

/* What gp_launch and gp_launch_kernel refuse. */
static bool odd_launches(gp_rec *r, void *arg)
{
    static const struct { gp_dim3 grid, block; bool fine; } odd[] = {
        { { 0, 1, 1 }, { 1, 1, 1 }, false }, { { 1, 0, 1 }, { 9999, 1, 1 }, false },
        { { 1, 1, 0 }, { 1, 1, 1 }, false },
        { { 1, 65536, 1 }, { 1, 1, 1 }, false }, { { 1, 1, 65536 }, { 1, 1, 1 }, false },
        { { 0x80000000u, 1, 1 }, { 1, 1, 1 }, false }, { { 1, 1, 1 }, { 0, 1, 1 }, false },
        { { 1, 1, 1 }, { 32, 33, 1 }, false }, { { 1, 1, 1 }, { 1, 1, 65 }, false },
        { { 1, 1, 1 }, { 65536, 65536, 1 }, false }, { { 1, 1, 1 }, { 1, 1, 1 }, true },
    };
    int *n = arg;
    float *x = alloc(true, 4);
    gp_dcall c = { .n = 1, .name = "odd", .rec = r, .errs = r->errs };
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        r->errs->n = 0;
        bool fine = gp_launch_kernel(&c, slow, odd[i].grid, odd[i].block, 0, GP_ARGS(&x, n));
        ck_assert_msg(fine == odd[i].fine, "launch %zu", i);
        ck_assert_int_eq(r->errs->n, !fine);
        ck_assert(fine || strstr(r->errs->e[0].msg, "'odd'"));
    }
    ck_assert(gp_copy(&c, NULL, NULL, 0) && gp_fill(&c, NULL, 0, 0));
    r->errs->n = 0;
    ck_assert(!gp_launch(&c, "no_such_kernel", odd[0].grid, odd[0].block, 0, GP_ARGS(&x, n)));
    ck_assert_int_eq(r->errs->e[0].code, GP_E_BUG);
    r->errs->n = r->errs->failed = 0;
    ck_assert_int_eq(gp_rec_stream(&c) != NULL, gpu);
    return true;
}

START_TEST(launches_are_checked)
{
    start_kernels(_i);
    int n = 3;
    run_direct(odd_launches, &n);
    stop();
}
END_TEST

static void set_up(void)
{
    ck_assert(make_dir());
}

Suite *suite_backend(void)
{
    Suite *s = suite_create("backend");
    TCase *t = tcase_create("both");
    const int n = have_gpu ? (int)(sizeof backends / sizeof *backends) : 1;
    tcase_add_unchecked_fixture(t, set_up, remove_dir);
    tcase_add_loop_test(t, memory_is_zeroed, 0, n);
    tcase_add_loop_test(t, fills, 0, n);
    tcase_add_loop_test(t, out_of_memory, 0, n);
    tcase_add_loop_test(t, no_such_device, 0, n);
    tcase_add_loop_test(t, graph_equals_direct, 0, n);
    tcase_add_loop_test(t, items_wait_for_what_they_name, 0, n);
    tcase_add_loop_test(t, items_wait_for_nothing_else, 0, n);
    tcase_add_loop_test(t, a_body_may_fail, 0, n);
    tcase_add_loop_test(t, execs_are_discarded_in_constant_time, 0, n);
    tcase_add_loop_test(t, orders_hold_over_streams, 0, n);
    tcase_add_loop_test(t, waiting, 0, n);
    tcase_add_loop_test(t, built_in_kernels_are_there, 0, n);
    tcase_add_loop_test(t, launches_are_checked, 0, n);
#if GP_CUDA
    if (have_gpu)
        tcase_add_test(t, a_context_of_the_application);
#endif
    suite_add_tcase(s, t);
    return s;
}
