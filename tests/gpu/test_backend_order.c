/* test_backend_order.c - the same of bodies: what waits for what, in one and over several
 * streams, and who waits for it. The loop index of a test is the back end's, 0 cpu, 1 cuda. */
#include <pthread.h>
#include <stdint.h>
#if GP_CUDA
#include <cuda_runtime_api.h>
#include <cudaTypedefs.h>
#endif
#include "backendrig.h"
#include "gpu.h"

Suite *suite_backend_order(void);

enum { N = 3000 };

/* ---- bodies ---------------------------------------------------------- */

struct sum { float *ha, *hb, *hout, *a, *b, *out; int n; };

static bool sum(gp_rec *r, void *arg)
{
    struct sum *s = arg;
    size_t bytes = sizeof(float) * (size_t)s->n;
    return r->ops->item(r, 0, NULL, 0) && r->ops->copy(r, s->a, s->ha, bytes)
        && r->ops->item(r, 1, NULL, 0) && r->ops->copy(r, s->b, s->hb, bytes)
        && r->ops->item(r, 2, (int[]){ 0, 1 }, 2)
        && be_call(r, be_add, (unsigned)(s->n + 255) / 256, 256, GP_ARGS(&s->a, &s->b, &s->out, &s->n))
        && r->ops->item(r, 3, (int[]){ 2 }, 1) && r->ops->copy(r, s->hout, s->out, bytes);
}

START_TEST(graph_equals_direct)
{
    be_start_kernels(_i);
    size_t bytes = N * sizeof(float);
    struct sum s = { be_alloc(false, bytes), be_alloc(false, bytes), be_alloc(false, bytes),
                     be_alloc(true, bytes), be_alloc(true, bytes), be_alloc(true, bytes), N };
    gp_exec *x = be_build(sum, &s);
    for (int round = 0; round < 6; round++) {
        for (int i = 0; i < N; i++) {
            s.ha[i] = (float)(i + round);
            s.hb[i] = (float)(1000 * round);
            s.hout[i] = -1;
        }
        if (round % 2)
            OK(be->direct(be_dev, round % STREAMS, sum, &s, &be_errs));
        else
            OK(be->launch(be_dev, round % STREAMS, x, &be_errs));
        be_finish(round % STREAMS);
        for (int i = 0; i < N; i++)
            ck_assert_msg(s.hout[i] == (float)(i + 1001 * round), "round %d, element %d: %g",
                          round, i, (double)s.hout[i]);
    }
    be_stop();
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
        && r->ops->item(r, 2, (int[]){ 0 }, 1) && be_call(r, be_slow, 1, 1, GP_ARGS(&d->x, &be_steps))
        && r->ops->item(r, 3, (int[]){ 2 }, 1)
        && be_call(r, be_add, 1, 1, GP_ARGS(&d->x, &d->x, &d->y, &n))
        && r->ops->item(r, 4, (int[]){ 1, 2 }, 2)
        && be_call(r, be_add, 1, 1, GP_ARGS(&d->x, &d->one, &d->z, &n))
        && r->ops->item(r, 5, (int[]){ 3, 4, 2 }, 3)
        && r->ops->item(r, 6, (int[]){ 5, 3 }, 2)      /* 5 has nothing in it */
        && be_call(r, be_add, 1, 1, GP_ARGS(&d->y, &d->z, &d->out, &n))
        && r->ops->item(r, 7, (int[]){ 6 }, 1) && r->ops->copy(r, d->hout, d->out, 4);
}

START_TEST(items_wait_for_what_they_name)
{
    be_start_kernels(_i);
    struct diamond d = { be_alloc(true, 4), be_alloc(true, 4), be_alloc(true, 4), be_alloc(true, 4),
                         be_alloc(true, 4), be_alloc(false, 4) };
    gp_exec *x = be_build(diamond, &d);
    for (int round = 0; round < 20; round++) {
        *d.hout = 0;
        OK(be->launch(be_dev, 0, x, &be_errs));
        be_finish(0);
        ck_assert_msg(*d.hout == 6.0f, "round %d: %g", round, (double)*d.hout);
    }
    be_run_direct(diamond, &d);
    ck_assert(*d.hout == 6.0f);
    be_stop();
}
END_TEST

struct pair { float *x, *y; bool chained; int n; };

static bool pair(gp_rec *r, void *arg)
{
    struct pair *p = arg;
    return r->ops->item(r, 0, NULL, 0) && be_call(r, be_slow, 1, 1, GP_ARGS(&p->x, &p->n))
        && r->ops->item(r, 1, (int[]){ 0 }, p->chained)
        && be_call(r, be_slow, 1, 1, GP_ARGS(&p->y, &p->n));
}

static double fastest(struct pair *p)
{
    double best = 1e9;
    gp_exec *x = be_build(pair, p);
    for (int i = 0; i < 6; i++) {
        double t = be_seconds();
        OK(be->launch(be_dev, 0, x, &be_errs));
        be_finish(0);
        t = be_seconds() - t;
        best = t < best ? t : best;
    }
    return best;
}

START_TEST(items_wait_for_nothing_else)
{
    if (_i != 1)
        return;                    /* one stream of the CPU back end is one thread */
    be_start_kernels(_i);
    struct pair p = { be_alloc(true, 4), be_alloc(true, 4), true, 4 * be_steps };
    double chained = fastest(&p);
    p.chained = false;
    double apart = fastest(&p);
    ck_assert_msg(apart < 0.65 * chained, "%g s apart, %g s one after the other", apart, chained);
    be_stop();
}
END_TEST

struct load { float *x; unsigned blocks; const gp_priority *own; };

static bool load(gp_rec *r, void *arg)
{
    struct load *l = arg;
    int n = be_steps / 10;
    r->priority = l->own;
    bool ok = r->ops->item(r, 0, NULL, 0) && be_call(r, be_slow, l->blocks, 1024, GP_ARGS(&l->x, &n));
    r->priority = NULL;
    return ok;
}

/* How far a kernel of many blocks is when a small one is done that was queued behind it on another stream: 1 is its
 * end. */
static double waited(gp_exec *const x[2], struct load *l)
{
    double start = be_seconds(), first;
    for (int i = 0; i < 2; i++)
        OK(x[i] ? be->launch(be_dev, i, x[i], &be_errs) : be->direct(be_dev, i, load, &l[i], &be_errs));
    be_finish(1);
    first = be_seconds() - start;
    be_finish(0);
    return first / (be_seconds() - start);
}

/* The streams have priorities, in graphs and without; or the kernels of graphs have their own. */
START_TEST(high_comes_before_low)
{
    static const gp_priority low = GP_PRIORITY_LOW, high = GP_PRIORITY_HIGH;
    enum { GRAPHS, DIRECT, KERNELS, KERNELS_DIRECT };
    bool own = _i >= KERNELS;
    be_priority[0] = own ? GP_PRIORITY_NORMAL : low, be_priority[1] = own ? GP_PRIORITY_NORMAL : high;
    be_start_kernels(1);
    struct load l[2] = { { be_alloc(true, 4), 40000, own ? &low : NULL }, { be_alloc(true, 4), 1, own ? &high : NULL } };
    gp_exec *x[2] = { NULL, NULL };
    double best = 1;
    for (int i = 0; i < 2 && (_i == GRAPHS || _i == KERNELS); i++)
        OK(x[i] = be->build(be_dev, i, load, &l[i], &be_errs));
    for (int i = 0; i < 5 && best >= 0.5; i++) {
        double now = waited(x, l);
        best = now < best ? now : best;
    }
    ck_assert_msg(best < 0.5, "it waited for %g of the other", best);
    for (int i = 0; i < 2; i++)
        if (x[i])
            be->discard(be_dev, x[i]);
    be_stop();
    be_priority[0] = be_priority[1] = GP_PRIORITY_NORMAL;
}
END_TEST

static bool breaks(gp_rec *r, void *arg)
{
    return r->ops->item(r, 0, NULL, 0) && gp_fail(r->errs, GP_E_RUN, (gp_loc){0}, "as it should");
}

static bool waits(gp_rec *r, void *arg)
{
    return r->ops->item(r, 0, NULL, 0) && r->ops->wait(r);
}

START_TEST(a_body_may_fail)
{
    be_start_kernels(_i);
    ck_assert_ptr_null(be->build(be_dev, 0, breaks, NULL, &be_errs));
    ck_assert_str_eq(be_said(), "as it should");
    ck_assert(!be->direct(be_dev, 0, breaks, NULL, &be_errs));
    ck_assert_int_eq(be_errs.n, 2);
    if (be_gpu) {                     /* cannot be part of a graph */
        ck_assert_ptr_null(be->build(be_dev, 0, waits, NULL, &be_errs));
        ck_assert_int_eq(be_errs.n, 3);
    }
    be_errs.n = be_errs.failed = 0;
    OK(be->direct(be_dev, 0, waits, NULL, &be_errs));
    be_finish(0);
    float *x = be_alloc(true, 4), *y = be_alloc(true, 4);
    be_run_graph(pair, &(struct pair){ x, y, true, 10 });     /* and nothing is left of it */
    be_stop();
}
END_TEST

/* Builds n execs and discards them, the oldest or the newest first; the CPU time that
 * discarding took, the least of three. */
static double discard_all(int n, bool oldest, struct be_move *m)
{
    gp_exec **x = malloc((size_t)n * sizeof *x);
    double least = 1e9;
    ck_assert_ptr_nonnull(x);
    for (int k = 0; k < 3; k++) {
        struct timespec from, to;
        for (int i = 0; i < n; i++)
            OK(x[i] = be->build(be_dev, 0, be_move, m, &be_errs));
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
        for (int i = 0; i < n; i++)
            be->discard(be_dev, x[oldest ? i : n - 1 - i]);
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
    be_start(_i);
    const int n = getenv("GPIPE_SANITIZED") ? 4096 : 32768;
    struct be_move m = { be_alloc(false, 64), be_alloc(true, 64), 64 };
    double oldest = discard_all(n, true, &m), newest = discard_all(n, false, &m);
    ck_assert_msg(oldest < 10 * newest && newest < 10 * oldest, "%d took %g s the oldest first, "
                  "%g s the newest first", n, oldest, newest);
    be_stop();
}
END_TEST

/* ---- orders ---------------------------------------------------------- */

struct turn { unsigned *state, *out, *hout; float *x, *y; int slot; };

static bool turn(gp_rec *r, void *arg)
{
    struct turn *t = arg;
    int little = be_steps / 200;
    return r->ops->item(r, 0, NULL, 0) && be_call(r, be_slow, 1, 1, GP_ARGS(&t->x, &be_steps))
        && r->ops->item(r, 1, NULL, 0) && r->ops->order_wait(r, 0, (t->slot + STREAMS - 1) % STREAMS)
        && be_call(r, be_carry, 1, 1, GP_ARGS(&t->state, &t->out, &t->y, &little)) && r->ops->order_pass(r, 0, t->slot)
        && r->ops->item(r, 2, (int[]){ 1 }, 1) && r->ops->copy(r, t->hout, t->out, 4);
}

START_TEST(orders_hold_over_streams)
{
    be_start_kernels(_i);
    enum { FRAMES = 400 };
    unsigned *state = be_alloc(true, 4);
    struct turn t[STREAMS];
    gp_exec *x[STREAMS];
    for (int s = 0; s < STREAMS; s++) {
        t[s] = (struct turn){ state, be_alloc(true, 4), be_alloc(false, 4), be_alloc(true, 4),
                              be_alloc(true, 4), s };
        x[s] = be_build(turn, &t[s]);
    }
    double alone = fastest(&(struct pair){ t[0].x, t[0].x, true, be_steps }) / 2;
    double all = be_seconds();
    for (int f = 0; f < FRAMES + STREAMS; f++) {
        int s = f % STREAMS;
        if (f >= STREAMS) {
            be_finish(s);
            ck_assert_msg((int)*t[s].hout == f - STREAMS, "frame %d was number %u", f - STREAMS, *t[s].hout);
        }
        if (f >= FRAMES)
            continue;
        if (f % 7 == 3)            /* as partial frames do */
            OK(be->direct(be_dev, s, turn, &t[s], &be_errs));
        else
            OK(be->launch(be_dev, s, x[s], &be_errs));
    }
    all = be_seconds() - all;
    if (be_gpu && !getenv("GPIPE_SANITIZED"))       /* and only what is ordered is */
        ck_assert_msg(all < 0.6 * FRAMES * alone, "%g s; one by one %g", all, FRAMES * alone);
    be_stop();
}
END_TEST

/* ---- waiting --------------------------------------------------------- */

static void *wait_there(void *sync)
{
    gp_errs mine = { .n = 0 };
    return (void *)(intptr_t)be->wait(be_dev, 1, *(gp_sync *)sync, &mine);
}

START_TEST(waiting)
{
    be_start_kernels(_i);
    ck_assert_int_eq(be->query(be_dev, 1, &be_errs), 1);      /* nothing was queued */
    struct pair p = { be_alloc(true, 4), be_alloc(true, 4), true, 2 * be_steps };
    gp_exec *x = be_build(pair, &p);
    for (gp_sync sync = GP_SYNC_AUTO; sync <= GP_SYNC_BLOCK; sync++)
        for (int other = 0; other < 2; other++) {
            OK(be->launch(be_dev, 1, x, &be_errs));
            if (be_gpu)
                ck_assert_int_eq(be->query(be_dev, 1, &be_errs), 0);
            if (other) {
                pthread_t thread;
                void *r;
                ck_assert_int_eq(pthread_create(&thread, NULL, wait_there, &sync), 0);
                pthread_join(thread, &r);
                ck_assert_int_eq((int)(intptr_t)r, 1);
            } else {
                ck_assert_int_eq(be->wait(be_dev, 1, sync, &be_errs), 1);
            }
            ck_assert_int_eq(be->query(be_dev, 1, &be_errs), 1);
            ck_assert_int_eq(be->query(be_dev, 0, &be_errs), 1);
        }
    be_stop();
}
END_TEST

/* ---- what an application does with CUDA --------------------------------- */

#if GP_CUDA
static void driver(const char *name, unsigned version, void *to)
{
    enum cudaDriverEntryPointQueryResult found;
    ck_assert_int_eq(cudaGetDriverEntryPointByVersion(name, to, version, cudaEnableDefault, &found), cudaSuccess);
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
    be_start_kernels(1);
    driver("cuCtxGetCurrent", 4000, &get);
    driver("cuCtxSetCurrent", 4000, &set);
    driver("cuCtxCreate", 3020, &create);
    driver("cuCtxDestroy", 4000, &destroy);
    ck_assert_int_eq(create(&own, 0, 0), CUDA_SUCCESS);        /* and it is current */
    float *x = be_alloc(true, 4), *y = be_alloc(true, 4);
    for (int i = 0; i < 2; i++) {
        CUcontext theirs = i ? NULL : own;
        struct pair p = { x, y, true, 10 };
        set(theirs);
        gp_exec *e = be->build(be_dev, 0, pair, &p, &be_errs);
        OK(e);
        set(theirs);
        OK(be->launch(be_dev, 0, e, &be_errs));
        set(theirs);
        be_finish(0);
        get(&now);
        ck_assert_ptr_eq(now, theirs);
        OK(be->direct(be_dev, 1, pair, &p, &be_errs));
        set(theirs);
        ck_assert_int_ge(be->query(be_dev, 1, &be_errs), 0);
        set(theirs);
        be_finish(1);
        be->discard(be_dev, e);
        void *mem = be->alloc(be_dev, true, 1000, &be_errs);
        OK(mem);
        set(theirs);
        be->free(be_dev, true, mem, 1000);
        double in, out;
        OK(be->rates(be_dev, &in, &out, &be_errs));
        get(&now);
        ck_assert_ptr_eq(now, theirs);
    }
    set(own);
    be_stop();
    get(&now);
    ck_assert_ptr_eq(now, own);
    destroy(own);
    set(NULL);
}
END_TEST
#endif

Suite *suite_backend_order(void)
{
    Suite *s = suite_create("backend_order");
    TCase *t = tcase_create("both");
    const int n = be_count(have_gpu);
    tcase_add_unchecked_fixture(t, be_set_up, NULL);
    tcase_add_loop_test(t, graph_equals_direct, 0, n);
    tcase_add_loop_test(t, items_wait_for_what_they_name, 0, n);
    tcase_add_loop_test(t, items_wait_for_nothing_else, 0, n);
    tcase_add_loop_test(t, a_body_may_fail, 0, n);
    tcase_add_loop_test(t, execs_are_discarded_in_constant_time, 0, n);
    tcase_add_loop_test(t, orders_hold_over_streams, 0, n);
    tcase_add_loop_test(t, waiting, 0, n);
    if (have_gpu)
        tcase_add_loop_test(t, high_comes_before_low, 0, 4);
#if GP_CUDA
    if (have_gpu)
        tcase_add_test(t, a_context_of_the_application);
#endif
    suite_add_tcase(s, t);
    return s;
}
