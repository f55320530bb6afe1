/* test_several.c - what passes between two GPUs, and what is said of each. */
#include <spawn.h>
#include <sys/wait.h>
#include "gpu.h"
#include "cases.h"

Suite *suite_several(void);
void several_cases(TCase *tc);

extern char **environ;

/* A fault of the second GPU is said to be its own, and nothing hangs on the first one: in a process of its own. */
TEST(a_fault_names_its_gpu)
{
    const char *dir = pipe_dir();
    char *path = format("%s/bad.cu", dir);
    pipe_text(dir, "bad.cu", "extern \"C\" __global__ void bad(float *x, int n)\n{\n    x[n] = 1.0f;\n}\n");
    pid_t pid;
    int status = -1;
    const char *argv[] = { "run", "--fault", path, "1", NULL };
    ck_assert_int_eq(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, (char **)argv, environ), 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    pipe_dir_remove(dir);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %#x", (unsigned)status);
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
