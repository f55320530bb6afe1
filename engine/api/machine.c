/* machine.c - machines, as gpipe.h has them. */
#include <stdlib.h>
#include "api/machine_file.h"
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

bool gp_machine_measure(gp_machine *m, gp_errs *errs)
{
    const gp_backend *gpu = gp_backend_gpu();
    bool ok = true;
    for (int i = 0; i < m->ndevices && ok; i++) {
        gp_dev *dev = gpu->open(i, errs);
        ok = dev && gp_copying_measure(dev, m->device[i].launch, errs);
        if (dev)
            gpu->close(dev);
        if (ok && !gp_copying_keep(m, &m->device[i], errs))
            ok = gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "what was measured cannot be kept: there is no folder for it; set "
                         "XDG_CACHE_HOME to one");
    }
    return ok;
}
