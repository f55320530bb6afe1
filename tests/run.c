/* run.c - runs all suites of tests/test_NAME.c and tests/lib/NAME_cases.c, or with PART/PARTS a part of them; check
 * prints the total. Compiled kernels are cached in a folder that is removed at the end. */
#include "every.h"
#include "pipe.h"

typedef Suite *(*suite)(void);
extern const suite suites[];

/* Asked by the thread sanitizer: threads that are stuck cannot be joined. */
__attribute__((visibility("default"))) const char *__tsan_default_options(void);

const char *__tsan_default_options(void)
{
    return "report_thread_leaks=0";
}

int main(int argc, char **argv)
{
    int part = 1, parts = 1;
    if (argc > 2 || (argc == 2 && (sscanf(argv[1], "%d/%d", &part, &parts) != 2 || part < 1 || part > parts))) {
        fprintf(stderr, "usage: %s [PART/PARTS]\n", argv[0]);
        return EXIT_FAILURE;
    }
    const char *cache = pipe_dir();
    setenv("XDG_CACHE_HOME", cache, 1);
    setenv("CK_DEFAULT_TIMEOUT", "120", 0);        /* a machine may have much else to do: what is bounded is */
    setenv("CK_TIMEOUT_MULTIPLIER", "5", 0);       /* a test that hangs */
    tests_say_every();
    SRunner *r = srunner_create(NULL);
    for (int i = 0; suites[i]; i++)
        if (i % parts == part - 1)
            srunner_add_suite(r, suites[i]());
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    pipe_dir_remove(cache);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
