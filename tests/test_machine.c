/* test_machine.c - what gpipe takes the machine for. */
#include <check.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "api/forms.h"
#include "device/machine.h"

Suite *suite_machine(void);

START_TEST(fixed_is_fixed)
{
    static const struct { int ask, get; } cases[] = { { 0, 0 }, { 1, 1 }, { 2, 2 }, { 99, 64 } };
    gp_machine m;
    gp_machine_fixed(&m, cases[_i].ask);
    ck_assert_int_eq(m.cpus, 8);
    ck_assert_uint_eq(m.memory, (size_t)64 << 30);
    ck_assert_uint_eq(m.pin_limit, (size_t)48 << 30);
    ck_assert_int_eq(m.ndevices, cases[_i].get);
    ck_assert_int_eq(m.unified, cases[_i].get == 0);
    ck_assert_int_eq(m.why[0] != '\0', cases[_i].get == 0);
    for (int i = 0; i < m.ndevices; i++) {
        ck_assert_str_eq(m.device[i].name, "NVIDIA H200");
        ck_assert_int_eq(m.device[i].cc, 90);
        ck_assert_int_eq(m.device[i].sms, 132);
        ck_assert_uint_eq(m.device[i].memory, 141000000000u);
    }
}
END_TEST

START_TEST(this_machine)
{
    gp_machine m;
    memset(&m, 0xa5, sizeof m);
    gp_machine_read(&m, false);    /* a fork must not touch CUDA */
    ck_assert_int_ge(m.cpus, 1);
    ck_assert_int_le(m.cpus, (int)sysconf(_SC_NPROCESSORS_CONF));
    ck_assert_uint_gt(m.memory, 1 << 20);
    ck_assert_uint_eq(m.pin_limit, m.memory / 4 * 3);
    ck_assert_int_eq(m.ndevices, 0);
    ck_assert(m.unified);
    ck_assert_str_ne(m.why, "");
}
END_TEST

/* Who has no descriptor left has memory. */
START_TEST(no_descriptor)
{
    struct rlimit was, none;
    gp_machine m;
    ck_assert(!getrlimit(RLIMIT_NOFILE, &was));
    none = (struct rlimit){ 0, was.rlim_max };
    ck_assert(!setrlimit(RLIMIT_NOFILE, &none));
    gp_machine_read(&m, false);
    ck_assert(!setrlimit(RLIMIT_NOFILE, &was));
    ck_assert_uint_gt(m.memory, 1 << 20);
}
END_TEST

START_TEST(only_our_cpus_count)
{
    cpu_set_t all, one;
    CPU_ZERO(&one);
    ck_assert_int_eq(sched_getaffinity(0, sizeof all, &all), 0);
    for (int i = 0; CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
    gp_machine m;
    gp_machine_read(&m, false);
    sched_setaffinity(0, sizeof all, &all);
    ck_assert_int_eq(m.cpus, 1);
}
END_TEST

Suite *suite_machine(void)
{
    Suite *s = suite_create("machine");
    TCase *t = tcase_create("all");
    tcase_add_loop_test(t, fixed_is_fixed, 0, 4);
    tcase_add_test(t, this_machine);
    tcase_add_test(t, no_descriptor);
    tcase_add_test(t, only_our_cpus_count);
    suite_add_tcase(s, t);
    return s;
}
