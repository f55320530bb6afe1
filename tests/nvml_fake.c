/* nvml_fake.c - a library with the functions of NVML that gpipe calls, for tests without a GPU: it knows two GPUs, in
 * another order than CUDA's, and nothing outside init and shutdown. */
#include <string.h>

#define SHOWN __attribute__((visibility("default")))
enum { FINE = 0, UNINITIALIZED = 1, NOT_FOUND = 6 };

struct memory { unsigned long long total, free, used; };

static const struct gpu { const char *pci; struct memory has; } gpus[] = {
    { "0000:1b:00.0", { 80ull << 30, 78ull << 30, 2ull << 30 } },
    { "0000:0a:00.0", { 80ull << 30, 12ull << 30, 68ull << 30 } },
};
static int started;

SHOWN int nvmlInit_v2(void)
{
    started++;
    return FINE;
}

SHOWN int nvmlShutdown(void)
{
    return started-- > 0 ? FINE : UNINITIALIZED;
}

SHOWN int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, const struct gpu **to)
{
    for (unsigned i = 0; i < sizeof gpus / sizeof *gpus && started; i++)
        if (!strcmp(gpus[i].pci, pci))
            return *to = &gpus[i], FINE;
    return started ? NOT_FOUND : UNINITIALIZED;
}

SHOWN int nvmlDeviceGetMemoryInfo(const struct gpu *gpu, struct memory *to)
{
    if (!started)
        return UNINITIALIZED;
    *to = gpu->has;
    return FINE;
}
