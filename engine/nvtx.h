/* nvtx.h - NVTX ranges of a domain `gpipe`, and the names of threads. Without a
 * tool attached each call tests one pointer. */
#ifndef GP_NVTX_H
#define GP_NVTX_H

#include <stdint.h>

#if defined(__has_include) && __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline void gp_nvtx_push(nvtxDomainHandle_t domain, const char *stage, uint64_t frame)
{
    if (!domain)
        return;
    nvtxEventAttributes_t a = { 0 };
    a.version = NVTX_VERSION;
    a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    a.messageType = NVTX_MESSAGE_TYPE_ASCII;
    a.message.ascii = stage;
    a.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
    a.payload.ullValue = frame;
    nvtxDomainRangePushEx(domain, &a);
}

static inline void gp_nvtx_thread(const char *name)
{
    nvtxNameOsThreadA((uint32_t)syscall(SYS_gettid), name);
}

static inline void gp_nvtx_pop(nvtxDomainHandle_t domain)
{
    if (domain)
        nvtxDomainRangePop(domain);
}
#else
typedef void *nvtxDomainHandle_t;
static inline nvtxDomainHandle_t nvtxDomainCreateA(const char *name) { (void)name; return 0; }
static inline void nvtxDomainDestroy(nvtxDomainHandle_t d) { (void)d; }
static inline void gp_nvtx_push(nvtxDomainHandle_t d, const char *s, uint64_t f) { (void)d, (void)s, (void)f; }
static inline void gp_nvtx_thread(const char *name) { (void)name; }
static inline void gp_nvtx_pop(nvtxDomainHandle_t d) { (void)d; }
#endif

#endif
