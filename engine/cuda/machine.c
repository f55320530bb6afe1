/* machine.c - which GPUs there are. No context is made: it takes a few
 * milliseconds and no device memory. */
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdio.h>
#include "cuda/dev.h"
#include "cuda/libraries.h"
#include "cuda/nvrtc.h"

/* The oldest GPUs that CUDA 13 compiles for: Turing, 7.5. */
enum { MIN_CC = 75 };

static bool look(gp_device_info *info, int index)
{
    struct cudaDeviceProp p;
    if (cudaGetDeviceProperties(&p, index) != cudaSuccess
        || cudaDeviceGetAttribute(&info->f64, cudaDevAttrSingleToDoublePrecisionPerfRatio, index)
               != cudaSuccess)
        return false;
    snprintf(info->name, sizeof info->name, "%.95s", p.name);
    info->cc = 10 * p.major + p.minor;
    info->sms = p.multiProcessorCount;
    /* Not what is free now, so that a plan does not depend on the moment. 1/20 is left for the
     * context, the kernels and the graphs. */
    info->memory = p.totalGlobalMem / 20 * 19;
    info->copy_engines = p.asyncEngineCount;
    if (cudaDeviceGetPCIBusId(info->pci, sizeof info->pci, index) != cudaSuccess)
        info->pci[0] = '\0';
    return true;
}

/* What was free when this process asked first: what is compiled again, or beside another, chooses as before. */
static struct { gp_machine machine; bool known; } first;

static void look_at_free(void)
{
    gp_machine *m = &first.machine;
    gp_nvml_device of[GP_DEVICES] = { 0 };
    for (int i = 0; i < m->ndevices; i++)
        of[i].pci = m->device[i].pci;
    first.known = gp_nvml_look(NULL, of, m->ndevices);
    for (int i = 0; i < m->ndevices && first.known; i++)
        m->device[i].total = (size_t)of[i].memory.total, m->device[i].free = (size_t)of[i].memory.free;
}

static void set_free(gp_machine *m)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (!first.machine.ndevices && m->ndevices) {
        first.machine = *m;
        look_at_free();
    }
    for (int i = 0; i < m->ndevices && i < first.machine.ndevices && first.known; i++)
        m->device[i].total = first.machine.device[i].total, m->device[i].free = first.machine.device[i].free;
    pthread_mutex_unlock(&lock);
}

/* Which devices a device cannot copy from directly; so it is where nobody knows. */
static void look_for_peers(gp_machine *m)
{
    for (int i = 0; i < m->ndevices; i++)
        for (int k = 0; k < m->ndevices && k < 64; k++) {
            int there = 0, back = 0;
            bool peers = i == k || (cudaDeviceCanAccessPeer(&there, i, k) == cudaSuccess && there
                                    && cudaDeviceCanAccessPeer(&back, k, i) == cudaSuccess && back);
            m->device[i].no_peer |= peers ? 0 : UINT64_C(1) << k;
        }
}

/* Devices are CUDA's, by number. CUDA lists the fastest first, so the list ends
 * at the first that cannot be used. */
void gp_cuda_devices(gp_machine *m)
{
    const int major = CUDART_VERSION / 1000;
    int driver = 0, n = 0;
    m->ndevices = 0;
    m->why[0] = '\0';
    cudaError_t e = cudaDriverGetVersion(&driver);
    if (e != cudaSuccess || driver == 0) {
        snprintf(m->why, sizeof m->why, "no NVIDIA driver");
        return;
    }
    m->cuda_driver = driver, m->compiles = gp_nvrtc_is_there;
    if (driver < 1000 * major) {
        snprintf(m->why, sizeof m->why, "the NVIDIA driver is too old: it is for CUDA %d.%d, and "
                 "gpipe needs %d.0", driver / 1000, driver % 1000 / 10, major);
        return;
    }
    e = cudaGetDeviceCount(&n);
    if (e != cudaSuccess && e != cudaErrorNoDevice) {
        snprintf(m->why, sizeof m->why, "no GPU can be used: %s", cudaGetErrorString(e));
        return;
    }
    const int max = (int)(sizeof m->device / sizeof *m->device);
    for (int i = 0; i < n && i < max; i++) {
        gp_device_info *info = &m->device[i];
        if (!look(info, i)) {
            snprintf(m->why, sizeof m->why, "GPU %d cannot be used", i);
            break;
        }
        if (info->cc < MIN_CC) {
            snprintf(m->why, sizeof m->why, "'%s' is too old: it has compute capability %d.%d, "
                     "and gpipe needs %d.%d", info->name, info->cc / 10, info->cc % 10,
                     MIN_CC / 10, MIN_CC % 10);
            break;
        }
        m->ndevices++;
    }
    look_for_peers(m);
    if (n == 0)
        snprintf(m->why, sizeof m->why, "no GPU");
    set_free(m);
    cudaGetLastError();
}
