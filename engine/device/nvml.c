/* nvml.c - see nvml.h. */
#include "base/dl.h"
#include "device/nvml.h"

bool gp_nvml_look(const char *library, gp_nvml_device *device, int n)
{
    int (*init)(void), (*shutdown)(void);
    int (*by_pci)(const char *address, void **handle);
    int (*memory)(void *handle, gp_nvml_memory *to);
    const gp_dl_symbol symbol[] = {
        { "nvmlInit_v2", &init }, { "nvmlShutdown", &shutdown }, { "nvmlDeviceGetHandleByPciBusId_v2", &by_pci },
        { "nvmlDeviceGetMemoryInfo", &memory }, { 0 } };
    const char *const names[] = { library ? library : "libnvidia-ml.so.1", NULL };
    gp_errs none = { .n = 0 };                 /* without it the first device is taken, which is no error */
    if (!gp_dl_open(names, symbol, "", "", (gp_loc){ 0 }, &none) || init())
        return false;
    bool ok = true;
    for (int i = 0; i < n && ok; i++) {
        void *handle;
        ok = !by_pci(device[i].pci, &handle) && !memory(handle, &device[i].memory);
    }
    shutdown();
    return ok;
}
