/* test_backend.c - what the executor relies on, on both back ends: memory, copies, fills and
 * kernels. The loop index of a test is the back end's, 0 cpu, 1 cuda. */
#include "base/embed.h"
#include "backendrig.h"
#include "gpu.h"

Suite *suite_backend(void);

/* ---- memory, copies, fills ------------------------------------------- */

START_TEST(memory_is_zeroed)
{
    be_start(_i);
    enum { BYTES = 100000 };
    unsigned char *host = be_alloc(false, BYTES), *mem = be_alloc(true, BYTES);
    static const unsigned char zero[BYTES];
    ck_assert(!memcmp(host, zero, BYTES));
    memset(host, 7, BYTES);
    be_run_direct(be_move, &(struct be_move){ host, mem, BYTES });
    ck_assert(!memcmp(host, zero, BYTES));
    memset(host, 7, BYTES);
    be_run_direct(be_move, &(struct be_move){ mem, host, BYTES });
    be_free_last();
    mem = be_alloc(true, BYTES);      /* likely the same memory: zeroed again? */
    be_run_direct(be_move, &(struct be_move){ host, mem, BYTES });
    ck_assert(!memcmp(host, zero, BYTES));
    be_stop();
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
    be_start(_i);
    struct filling f = { be_alloc(false, 1001), be_alloc(true, 1001) };
    for (int direct = 0; direct < 2; direct++) {
        memset(f.host, 1, 1001);
        if (direct)
            be_run_direct(filling, &f);
        else
            be_run_graph(filling, &f);
        for (int i = 0; i < 1000; i++)
            ck_assert_int_eq((unsigned char)f.host[i], i >= 10 && i < 30 ? 3 : 0xa5);
        ck_assert_int_eq(f.host[1000], 0);
    }
    be_stop();
}
END_TEST

START_TEST(out_of_memory)
{
    be_start(_i);
    if (be_gpu) {
        ck_assert_ptr_null(be->alloc(be_dev, true, (size_t)1 << 46, &be_errs));
        ck_assert_int_eq(be_errs.n, 1);
        ck_assert_int_eq(be_errs.e[0].code, GP_E_RESOURCE);
        ck_assert_msg(strstr(be_said(), "67108864.0 MiB") && strstr(be_said(), "depth"), "%s", be_said());
        be_errs.n = be_errs.failed = 0;
        be_alloc(true, 1 << 20);      /* the device is as before */
    }
    be_stop();
}
END_TEST

START_TEST(no_such_device)
{
    if (_i != 1)
        return;
    be_errs.n = 0;
    ck_assert_ptr_null(be_of(_i)->open(1000, &be_errs));
    ck_assert_int_eq(be_errs.n, 1);
    be_errs.n = be_errs.failed = 0;
}
END_TEST

/* ---- kernels --------------------------------------------------------- */

static bool has_builtin(gp_rec *r, void *arg)
{
    for (int t = 0; gp_cpu_tables[t]; t++)
        for (const gp_cpu_entry *e = gp_cpu_tables[t]; e->name; e++)
            if (!r->ops->kernel(r, e->name) && strcmp(e->name, "expr_run") != 0)   /* that is the CPU's alone */
                return gp_fail(r->errs, GP_E_BUG, (gp_loc){0}, "no '%s'", e->name);
    return !r->ops->kernel(r, "no_such_kernel");
}

START_TEST(built_in_kernels_are_there)
{
    be_start(_i);
    be_run_direct(has_builtin, NULL);
    be_stop();
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
    float *x = be_alloc(true, 4);
    gp_dcall c = { .n = 1, .name = "odd", .rec = r, .errs = r->errs };
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        r->errs->n = 0;
        bool fine = gp_launch_kernel(&c, be_slow, odd[i].grid, odd[i].block, 0, GP_ARGS(&x, n));
        ck_assert_msg(fine == odd[i].fine, "launch %zu", i);
        ck_assert_int_eq(r->errs->n, !fine);
        ck_assert(fine || strstr(r->errs->e[0].msg, "'odd'"));
    }
    ck_assert(gp_copy(&c, NULL, NULL, 0) && gp_fill(&c, NULL, 0, 0));
    r->errs->n = 0;
    ck_assert(!gp_launch(&c, "no_such_kernel", odd[0].grid, odd[0].block, 0, GP_ARGS(&x, n)));
    ck_assert(r->errs->e[0].code == GP_E_SPEC && strstr(r->errs->e[0].msg, "no built-in kernel 'no_such_kernel'"));
    r->errs->n = r->errs->failed = 0;
    return true;
}

START_TEST(launches_are_checked)
{
    be_start_kernels(_i);
    int n = 3;
    be_run_direct(odd_launches, &n);
    be_stop();
}
END_TEST

Suite *suite_backend(void)
{
    Suite *s = suite_create("backend");
    TCase *t = tcase_create("both");
    const int n = be_count(have_gpu);
    tcase_add_unchecked_fixture(t, be_set_up, NULL);
    tcase_add_loop_test(t, memory_is_zeroed, 0, n);
    tcase_add_loop_test(t, fills, 0, n);
    tcase_add_loop_test(t, out_of_memory, 0, n);
    tcase_add_loop_test(t, no_such_device, 0, n);
    tcase_add_loop_test(t, built_in_kernels_are_there, 0, n);
    tcase_add_loop_test(t, launches_are_checked, 0, n);
    suite_add_tcase(s, t);
    return s;
}
