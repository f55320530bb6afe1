/* run.c - runs all suites of tests/test_*.c; check prints the total. */
#include <check.h>
#include <stdlib.h>

typedef Suite *(*suite)(void);
extern const suite suites[];

int main(void)
{
    SRunner *r = srunner_create(NULL);
    for (const suite *s = suites; *s; s++)
        srunner_add_suite(r, (*s)());
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
