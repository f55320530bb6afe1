/* test_exec.c - the executor on the CPU back end. GPIPE_THIN=n runs every n-th
 * combination of the determinism test (default: 17 under a sanitizer, else 1). */
#include <check.h>
#include <stdlib.h>
#include "cooperative_cases.h"
#include "end_cases.h"
#include "exec_cases.h"
#include "unwritten_cases.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { THIN = 17 };
#else
enum { THIN = 1 };
#endif

Suite *suite_exec(void);

Suite *suite_exec(void)
{
    const char *thin = getenv("GPIPE_THIN");
    Suite *s = suite_create("exec");
    TCase *tc = tcase_create("cpu");
    exec_cases(tc, "cpu", thin ? atoi(thin) : THIN);
    end_cases(tc, "cpu");
    cooperative_cases(tc, "cpu");
    unwritten_cases(tc, "cpu");
    suite_add_tcase(s, tc);
    return s;
}
