/* cores.h - what the cores that this process may use did while a run went on. */
#pragma once

#include <stdint.h>

/* What the kernel counted for these cores since the machine started, in ticks. */
typedef struct gp_core_ticks { uint64_t idle, all; int cores; } gp_core_ticks;

/* `stat` is /proc/stat, or a file like it; of the cores that sched_getaffinity names.
 * All 0 where nothing can be read. */
gp_core_ticks gp_core_ticks_read(const char *stat);

/* How many of the cores worked for somebody in between, in the mean: 0 to cores; < 0: not
 * known, or it was too short for the kernel's clock. */
double gp_cores_worked(gp_core_ticks from, gp_core_ticks to);

/* ns that the calling thread was ready to run and had no core, since it began; 0 where that
 * is not known. */
int64_t gp_core_delay(void);

/* So many cores' worth of time does the cgroup of this process allow (cpu.max or
 * cpu.cfs_quota_us, the least of it and its parents); 0: no limit. `cgroup` is
 * /proc/self/cgroup and `root` is /sys/fs/cgroup, or like them. */
double gp_cores_quota(const char *cgroup, const char *root);
