/* test_report.c - reports and traces of runs on the CPU back end. */
#include "run/measure.h"
#include "cases.h"

Suite *suite_report(void);

/* Of a run of days the sums of times wrap; what was held does not. */
TEST(test_held)
{
    const gp_ring ring = { .depth = 4, .nconsumers = 1 };
    gp_cursor c = { .at = 98, .got = 400 };
    gp_ringrt r = { .produced = { .at = 100 }, .consumed = &c, .ring = &ring,
                    .put = UINT64_MAX - 599 };
    gp_run run = { .start_ns = 50 };
    ck_assert_int_eq(gp_measure_held(&run, &(gp_ring_end){ &r, 0 }, 1050), 1000 + 2 * 1000);
    c.at = 90;                         /* never more than the buffer */
    ck_assert_int_eq(gp_measure_held(&run, &(gp_ring_end){ &r, 0 }, 1050), 4 * 1000);
}

Suite *suite_report(void)
{
    Suite *s = suite_create("report");
    TCase *tc = tcase_create("cpu");
    report_cases(tc, "cpu");
    suite_fill(tc, suite_items, 1);
    suite_add_tcase(s, tc);
    return s;
}
