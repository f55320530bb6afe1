/* nvml.h - how much memory of GPUs is free, as the driver's library for monitoring (NVML) says it.
 *
 * CUDA says it only of a GPU on which the process has a context, which takes memory and time there. NVML comes with the
 * driver and is opened when it is asked. What its header declares is said again here in our words: functions return 0,
 * or a status; a device is a handle, found by the address of the PCI bus, since NVML's order is not CUDA's. */
#ifndef GP_NVML_H
#define GP_NVML_H

#include "gpipe/err.h"

/* Bytes. Part of what is used may be reserved by the driver. */
typedef struct gp_nvml_memory { unsigned long long total, free, used; } gp_nvml_memory;

/* What NVML says of the device at that address, "0000:1b:00.0" as CUDA has it. */
typedef struct gp_nvml_device { const char *pci; gp_nvml_memory memory; } gp_nvml_device;

/* All of `n` devices, by `library`; NULL: the driver's. False when not all are known. */
bool gp_nvml_look(const char *library, gp_nvml_device *device, int n);

#endif
