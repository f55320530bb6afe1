/* run.c - runs all suites of tests/gpu/test_NAME.c and tests/lib/NAME_cases.c, in this one process. Without a GPU it
 * says so, and runs what the CPU back end shares with the CUDA one. */
#include "cases.h"
#include "gpu.h"

typedef Suite *(*suite)(void);
extern const suite suites[];

bool have_gpu;

int main(int argc, char **argv)
{
    alarm(getenv("GPIPE_SANITIZED") ? 1800 : 480);     /* nothing here may hang */
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    if (argc >= 3 && !strcmp(argv[1], "--fault"))
        return fault_main(argv[2], argc == 4);
    setenv("GPIPE_TESTS", "all", 0);
    gp_machine m;
    gp_machine_read(&m, true);
    have_gpu = m.ndevices > 0;
    on = have_gpu ? "cuda" : NULL;
    for (int i = 0; i < m.ndevices; i++)
        printf("GPU %d: %s, compute capability %d.%d, %d SMs, %.1f GiB\n", i, m.device[i].name,
               m.device[i].cc / 10, m.device[i].cc % 10, m.device[i].sms, (double)m.device[i].memory / (1 << 30));
    fflush(stdout);
    const char *cache = pipe_dir();
    setenv("XDG_CACHE_HOME", cache, 1);
    SRunner *r = srunner_create(NULL);
    srunner_set_fork_status(r, CK_NOFORK);
    for (const suite *s = suites; *s; s++) {
        Suite *one = (*s)();
        if (one)
            srunner_add_suite(r, one);
    }
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    pipe_dir_remove(cache);
    if (!have_gpu)
        printf("**** SKIPPED: no usable GPU: %s ****\n"
               "**** the CUDA back end was not tested ****\n", m.why);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
