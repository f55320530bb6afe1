/* cores.c - what the cores did, as the kernel counts it, see cores.h.
 *
 * /proc/stat is of the machine, not of a container: only the lines of the cores that
 * this process may use are read. Time that a hypervisor took from them counts as work. */
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include "base/cgroup.h"
#include "run/cores.h"

gp_core_ticks gp_core_ticks_read(const char *stat)
{
    /* user nice system idle iowait irq softirq steal */
    enum { FIELDS = 8, IDLE = 3, IOWAIT = 4 };
    gp_core_ticks sum = { 0 };
    cpu_set_t mine;
    char line[512];
    FILE *f = sched_getaffinity(0, sizeof mine, &mine) ? NULL : fopen(stat, "re");
    while (f && fgets(line, sizeof line, f)) {
        uint64_t t[FIELDS] = { 0 };
        int core;
#define N " %" SCNu64
        int n = sscanf(line, "cpu%d" N N N N N N N N, &core, &t[0], &t[1], &t[2], &t[3], &t[4],
                       &t[5], &t[6], &t[7]);
        if (n <= 1 + IOWAIT || core < 0 || core >= CPU_SETSIZE || !CPU_ISSET(core, &mine))
            continue;
        for (int i = 0; i < FIELDS; i++)
            sum.all += t[i];
        sum.idle += t[IDLE] + t[IOWAIT];
        sum.cores++;
    }
    if (f)
        fclose(f);
    return sum;
}

double gp_cores_worked(gp_core_ticks from, gp_core_ticks to)
{
    enum { ENOUGH = 10 };              /* ticks of each core: then one more or less is 10 % */
    uint64_t all = to.all - from.all, idle = to.idle > from.idle ? to.idle - from.idle : 0;
    if (!to.cores || to.cores != from.cores || to.all < from.all
        || all < (uint64_t)to.cores * ENOUGH)
        return -1;
    return idle < all ? to.cores * (double)(all - idle) / (double)all : 0;
}

int64_t gp_core_delay(void)
{
    int64_t ran, delay = 0;            /* and how often; kernels without schedstats have no file */
    FILE *f = fopen("/proc/thread-self/schedstat", "re");
    if (f && fscanf(f, "%" SCNd64 " %" SCNd64, &ran, &delay) != 2)
        delay = 0;
    if (f)
        fclose(f);
    return delay;
}

/* ---- the quota -------------------------------------------------------- */

/* Cores' worth of time in one cgroup's folder; 0: no limit. */
static double quota_in(const char *folder)
{
    static const char *const quota[] = { "cpu.max", "cpu.cfs_quota_us" };
    char path[1400];
    double us = 0, period = 0;
    for (int v1 = 0; v1 < 2; v1++) {
        snprintf(path, sizeof path, "%s/%s", folder, quota[v1]);
        FILE *f = fopen(path, "re");
        int n = f ? fscanf(f, "%lf %lf", &us, &period) : 0;
        if (f)
            fclose(f);
        if (v1 && n == 1) {
            snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
            if ((f = fopen(path, "re"))) {
                n += fscanf(f, "%lf", &period) == 1;
                fclose(f);
            }
        }
        if (n == 2)
            return us > 0 && period > 0 ? us / period : 0;
    }
    return 0;
}

static void take_quota(const char *folder, void *arg)
{
    double *least = arg, q = quota_in(folder);
    *least = q > 0 && (*least <= 0 || q < *least) ? q : *least;
}

double gp_cores_quota(const char *cgroup, const char *root)
{
    double least = 0;
    gp_cgroup_each(cgroup, root, "cpu", take_quota, &least);
    return least;
}
