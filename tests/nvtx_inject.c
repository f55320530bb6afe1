/* nvtx_inject.c - a tool that listens to NVTX: a library that NVTX_INJECTION64_PATH names. Each call of the program is
 * one line of the file that NVTX_LOG names, with the calling thread's id:
 *
 *   TID domain D "NAME"        TID category D ID "NAME"     TID string D ID "NAME"
 *   TID push D CATEGORY STRING PAYLOAD       (a registered string, a u64 payload)
 *   TID pop D                  TID thread TID "NAME"        TID destroy D
 *   TID other FUNCTION         (all others, and pushes of another form) */
#if defined(__has_include) && __has_include(<nvtx3/nvToolsExt.h>)
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <nvtx3/nvToolsExt.h>

static int log_fd = -1;
static atomic_int domains, strings;

#define LOG(fmt, ...) dprintf(log_fd, "%ld " fmt "\n", (long)syscall(SYS_gettid), __VA_ARGS__)
#define HANDLE(type, n) ((type)(intptr_t)(n))
#define NUMBER(handle) ((int)(intptr_t)(handle))

static nvtxDomainHandle_t domain_create(const char *name)
{
    int d = atomic_fetch_add(&domains, 1) + 1;
    LOG("domain %d \"%s\"", d, name);
    return HANDLE(nvtxDomainHandle_t, d);
}

static void domain_destroy(nvtxDomainHandle_t d)
{
    LOG("destroy %d", NUMBER(d));
}

static void name_category(nvtxDomainHandle_t d, uint32_t category, const char *name)
{
    LOG("category %d %u \"%s\"", NUMBER(d), category, name);
}

static nvtxStringHandle_t register_string(nvtxDomainHandle_t d, const char *text)
{
    int s = atomic_fetch_add(&strings, 1) + 1;
    LOG("string %d %d \"%s\"", NUMBER(d), s, text);
    return HANDLE(nvtxStringHandle_t, s);
}

static int push(nvtxDomainHandle_t d, const nvtxEventAttributes_t *a)
{
    if (a->version != NVTX_VERSION || a->size != NVTX_EVENT_ATTRIB_STRUCT_SIZE
        || a->messageType != NVTX_MESSAGE_TYPE_REGISTERED || a->payloadType != NVTX_PAYLOAD_TYPE_UNSIGNED_INT64)
        return LOG("other %s", "push");
    return LOG("push %d %u %d %llu", NUMBER(d), a->category, NUMBER(a->message.registered),
               (unsigned long long)a->payload.ullValue);
}

static int pop(nvtxDomainHandle_t d)
{
    return LOG("pop %d", NUMBER(d));
}

static void name_thread(uint32_t tid, const char *name)
{
    LOG("thread %u \"%s\"", tid, name);
}

/* What gpipe does not call. They are called with arguments that nobody looks at. */
#define OTHERS(X)                                                                        \
    X(CORE, MarkEx) X(CORE, MarkA) X(CORE, MarkW) X(CORE, RangeStartEx)                  \
    X(CORE, RangeStartA) X(CORE, RangeStartW) X(CORE, RangeEnd) X(CORE, RangePushEx)     \
    X(CORE, RangePushA) X(CORE, RangePushW) X(CORE, RangePop) X(CORE, NameCategoryA)     \
    X(CORE, NameCategoryW) X(CORE, NameOsThreadW) X(CORE2, DomainMarkEx)                 \
    X(CORE2, DomainRangeStartEx) X(CORE2, DomainRangeEnd) X(CORE2, DomainResourceCreate) \
    X(CORE2, DomainResourceDestroy) X(CORE2, DomainNameCategoryW)                        \
    X(CORE2, DomainRegisterStringW) X(CORE2, DomainCreateW)

#define X(module, name) \
    static long other_##name(void) { LOG("other %s", #name); return 0; }
OTHERS(X)
#undef X

typedef void (*call)(void);

static void hook(const NvtxExportTableCallbacks *table, NvtxCallbackModule module, unsigned id, call by)
{
    NvtxFunctionTable function;
    unsigned n;
    if (table->GetModuleFunctionTable(module, &function, &n) && id < n && function[id])
        *function[id] = (NvtxFunctionPointer)by;
}

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get);

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get)
{
    const NvtxExportTableCallbacks *table = get(NVTX_ETID_CALLBACKS);
    const char *path = getenv("NVTX_LOG");
    log_fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    if (!table || log_fd < 0)
        return 0;
#define HOOK(module, name, by) \
    hook(table, NVTX_CB_MODULE_##module, NVTX_CBID_##module##_##name, (call)(by));
    HOOK(CORE, NameOsThreadA, name_thread)
    HOOK(CORE2, DomainCreateA, domain_create)
    HOOK(CORE2, DomainDestroy, domain_destroy)
    HOOK(CORE2, DomainNameCategoryA, name_category)
    HOOK(CORE2, DomainRegisterStringA, register_string)
    HOOK(CORE2, DomainRangePushEx, push)
    HOOK(CORE2, DomainRangePop, pop)
#define X(module, name) HOOK(module, name, other_##name)
    OTHERS(X)
#undef X
    return 1;
}
#else
typedef int gp_no_nvtx;        /* a file is not to be empty */
#endif
