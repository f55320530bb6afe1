/* machine.h - what the passes know of a machine, read or made up. */
#pragma once

#include "compile/ir.h"

/* This machine. `gpus`: look for devices too, which starts the driver. */
void gp_machine_read(gp_machine *m, bool gpus);
/* Bytes that the cgroup of this process, or one of its parents, may have: the least; UINT64_MAX without a limit.
 * `cgroup` is /proc/self/cgroup and `root` is /sys/fs/cgroup, or like them. */
uint64_t gp_machine_memory_limit(const char *cgroup, const char *root);
/* A machine that is the same everywhere, with `ndevices` H200-like devices. */
void gp_machine_fixed(gp_machine *m, int ndevices);

/* copying.c: measures how launches take longer by what they move, by who copies, on a device that nobody else uses. */
bool gp_copying_measure(gp_dev *dev, gp_link launch[GP_COPYINGS], gp_errs *errs);
/* What was measured before for a device of a machine, on disk; keeps it there. */
void gp_copying_find(const gp_machine *m, gp_device_info *d);
bool gp_copying_keep(const gp_machine *m, const gp_device_info *d, gp_errs *errs);
