/* cgroup.h - the cgroups that this process is in. */
#pragma once

/* Calls f with the folder of each cgroup that `controller` ("cpu", "memory") limits this process by, its parents too.
 * Those of v2 are among them, whatever they control. `cgroup` is /proc/self/cgroup and `root` is /sys/fs/cgroup, or
 * like them. */
void gp_cgroup_each(const char *cgroup, const char *root, const char *controller,
                    void (*f)(const char *folder, void *arg), void *arg);
