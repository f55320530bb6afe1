/* machine.c - what the passes need to know of the machine. */
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>
#include "base/cgroup.h"
#include "device/backend.h"
#include "device/machine.h"

static int cpus(void)
{
    cpu_set_t mine;                /* the CPUs that taskset or a container allows */
    if (sched_getaffinity(0, sizeof mine, &mine) == 0)
        return CPU_COUNT(&mine);
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}

/* The number at the start of a file; UINT64_MAX when there is none ("max"). */
static uint64_t number_in(const char *path)
{
    uint64_t n = UINT64_MAX;
    FILE *f = fopen(path, "re");
    if (!f)
        return n;
    if (fscanf(f, "%" SCNu64, &n) != 1)
        n = UINT64_MAX;
    fclose(f);
    return n;
}

static void take_limit(const char *folder, void *arg)
{
    static const char *const files[] = { "memory.max", "memory.limit_in_bytes" };      /* of v2, of v1 */
    char path[1400];
    uint64_t *least = arg;
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        uint64_t n = number_in(path);
        *least = n < *least ? n : *least;
    }
}

uint64_t gp_machine_memory_limit(const char *cgroup, const char *root)
{
    uint64_t limit = UINT64_MAX;
    gp_cgroup_each(cgroup, root, "memory", take_limit, &limit);
    return limit < UINT64_C(1) << 60 ? limit : UINT64_MAX;     /* v1 says "none" with 2^63 */
}

/* Bytes that can still be allocated. A limit below the machine's memory bounds it; a
 * limit above means a virtual machine that grows when memory is used, and then the
 * limit is the better estimate. */
static size_t memory(void)
{
    char line[256];
    uint64_t total = 0, available = 0, limit = gp_machine_memory_limit("/proc/self/cgroup", "/sys/fs/cgroup");
    FILE *f = fopen("/proc/meminfo", "re");
    while (f && fgets(line, sizeof line, f)) {
        sscanf(line, "MemTotal: %" SCNu64, &total);
        sscanf(line, "MemAvailable: %" SCNu64, &available);
    }
    if (f)
        fclose(f);
    total *= 1024;                 /* it counts in KiB */
    available *= 1024;
    struct sysinfo all;
    if (!available && !sysinfo(&all))  /* no /proc, or no descriptor to read it: rather too much */
        total = available = (uint64_t)all.totalram * all.mem_unit;
    if (limit == UINT64_MAX)
        return available;
    return limit > total || limit < available ? limit : available;
}

void gp_machine_read(gp_machine *m, bool gpus)
{
    const gp_backend *gpu = gp_backend_gpu();
    memset(m, 0, sizeof *m);       /* it is large, and no copy of it is to be on a stack */
    m->cpus = cpus(), m->memory = memory(), m->here = true;
    m->pin_limit = m->memory / 4 * 3;
    if (gpu && gpus)
        gpu->find(m);
    else
        snprintf(m->why, sizeof m->why, gpu ? "no GPU was looked for" : "this gpipe was built without CUDA");
    m->unified = m->ndevices == 0;
    for (int i = 0; i < m->ndevices; i++)
        gp_copying_find(m, &m->device[i]);
}

void gp_machine_fixed(gp_machine *m, int ndevices)
{
    const int max = (int)(sizeof m->device / sizeof *m->device);
    memset(m, 0, sizeof *m);
    m->cpus = 8, m->memory = (size_t)64 << 30, m->pin_limit = (size_t)48 << 30;
    m->ndevices = ndevices < max ? ndevices : max;
    for (int i = 0; i < m->ndevices; i++)
        m->device[i] = (gp_device_info){
            .name = "NVIDIA H200", .cc = 90, .sms = 132, .f64 = 2, .memory = (size_t)141000000000,
        };
    m->unified = m->ndevices == 0;
    if (m->unified)
        snprintf(m->why, sizeof m->why, "no NVIDIA driver");
}
