/* test_several.c - what passes between two GPUs, and what is said of each. */
#include "gpu.h"
#include "cases.h"

Suite *suite_several(void);
void several_cases(TCase *tc);

/* A fault of the second GPU is said to be its own, and nothing hangs on the first one: in a process of its own. */
TEST(a_fault_names_its_gpu)
{
    fault_check("1");
}

Suite *suite_several(void)
{
    gp_machine m;
    gp_machine_read(&m, true);
    if (m.ndevices < 2) {
        printf("**** SKIPPED: several: it takes two GPUs, and this machine has %d: no peer copy was tested ****\n",
               m.ndevices);
        return NULL;
    }
    Suite *s = cases_suite("several", "several on cuda", several_cases);
    TCase *tc = tcase_create("faults");
    suite_fill(tc, suite_items, 1);
    suite_add_tcase(s, tc);
    return s;
}
