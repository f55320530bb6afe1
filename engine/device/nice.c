/* nice.c - see nice.h. On Linux each thread has a nice value of its own, which threads that it starts inherit. */
#include <errno.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "device/nice.h"

enum { STEP = 10, NICEST = 19, LEAST_NICE = -20 };

bool gp_thread_nice(gp_priority p)
{
    if (p == GP_PRIORITY_NORMAL)
        return true;
    id_t thread = (id_t)syscall(SYS_gettid);
    errno = 0;
    int was = getpriority(PRIO_PROCESS, thread), nice = was - STEP * (int)p;
    nice = nice > NICEST ? NICEST : nice < LEAST_NICE ? LEAST_NICE : nice;
    return !errno && !setpriority(PRIO_PROCESS, thread, nice);
}
