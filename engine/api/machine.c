/* machine.c - machines, as gpipe.h has them. */
#include <stdlib.h>
#include "device/backend.h"
#include "device/machine.h"

gp_machine *gp_machine_create(bool gpus)
{
    gp_machine *m = malloc(sizeof *m);
    if (m)
        gp_machine_read(m, gpus);
    return m;
}

gp_machine *gp_machine_create_fixed(int ndevices)
{
    gp_machine *m = malloc(sizeof *m);
    if (m)
        gp_machine_fixed(m, ndevices);
    return m;
}

void gp_machine_destroy(gp_machine *m)
{
    free(m);
}

void gp_machine_about(const gp_machine *m, gp_machine_info *out)
{
    const gp_backend *gpu = gp_backend_gpu();
    *out = (gp_machine_info){ .cpus = m->cpus, .memory = m->memory, .ndevices = m->ndevices,
                              .why = m->why, .cuda_driver = m->cuda_driver, .cuda = gpu ? gpu->toolkit : 0 };
}

const char *gp_machine_device(const gp_machine *m, int device)
{
    return device >= 0 && device < m->ndevices ? m->device[device].name : NULL;
}
