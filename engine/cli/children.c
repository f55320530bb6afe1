/* children.c - ends the programs that scripts started, when the thread that waits for one is given up: otherwise they
 * would outlive the run. Compilers are ended by cpu/child.c. */
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#include "cli/cli.h"

enum { DEEPEST = 16 };

/* Of each thread /proc lists the processes that it started; those of a child before it, as
 * they would be nobody's afterwards. */
static void end_those_of(long pid, int deep)
{
    char path[300];
    snprintf(path, sizeof path, "/proc/%ld/task", pid);
    DIR *tasks = deep < DEEPEST ? opendir(path) : NULL;
    for (struct dirent *e; tasks && (e = readdir(tasks)); ) {
        snprintf(path, sizeof path, "/proc/%ld/task/%ld/children", pid, atol(e->d_name));
        FILE *f = fopen(path, "re");
        for (long child; f && fscanf(f, "%ld", &child) == 1; ) {
            end_those_of(child, deep + 1);
            kill((pid_t)child, SIGTERM);
        }
        if (f)
            fclose(f);
    }
    if (tasks)
        closedir(tasks);
}

void gp_children_end(void)
{
    end_those_of(getpid(), 0);
}
