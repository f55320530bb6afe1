/* nvtx.c - see nvtx.h. NVTX is a header that loads the tool which NVTX_INJECTION64_PATH
 * names; where the compiler does not find it, no tool is ever attached.
 *
 * Invariant: names are made once, by gp_nvtx_open; a range only refers to them. */
#include <pthread.h>
#include "run/nvtx.h"

#if defined(__has_include) && __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>

typedef struct gp_label { uint32_t category; nvtxStringHandle_t name; } gp_label;

struct gp_nvtx {
    nvtxDomainHandle_t domain;
    gp_label *label;           /* per actor */
};

/* The kind of all the stages of an actor, NULL when they differ. */
static const gp_kind *kind_of(const gp_actorrt *p)
{
    const gp_kind *kind = NULL;
    const gp_stage *st;
    for (int i = 0; (st = gp_actor_stage(p, &i)); kind = st->kind)
        if (kind && kind != st->kind)
            return NULL;
    return kind;
}

/* The header's own way to load the tool once is no fence for other threads. */
static void load_tool(void)
{
    nvtxInitialize(NULL);
}

/* Categories are numbered from 1 in the order of their stages. The last one is for
 * segments with stages of several kinds. */
void gp_nvtx_open(gp_run *run)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const gp_graph *g = run->graph;
    pthread_once(&once, load_tool);
    nvtxDomainHandle_t domain = nvtxDomainCreateA("gpipe");
    uint32_t n = 0;
    if (!domain)
        return;
    run->nvtx = GP_NEW(&run->arena, gp_nvtx, 1);
    run->nvtx->domain = domain;
    run->nvtx->label = GP_NEW(&run->arena, gp_label, run->plan->nactors);
    const gp_kind **kind = GP_NEW(&run->arena, const gp_kind *, g->nstages);
    for (int i = 0; i < g->nstages; i++) {
        uint32_t k = 0;
        while (k < n && kind[k] != g->stage[i].kind)
            k++;
        if (k < n)
            continue;
        kind[n++] = g->stage[i].kind;
        nvtxDomainNameCategoryA(domain, n, g->stage[i].kind->name);
    }
    nvtxDomainNameCategoryA(domain, n + 1, "segment");
    for (int i = 0; i < run->plan->nactors; i++) {
        const gp_kind *is = kind_of(&run->actor[i]);
        uint32_t k = 0;
        while (k < n && kind[k] != is)
            k++;
        run->nvtx->label[i] =
            (gp_label){ k + 1, nvtxDomainRegisterStringA(domain, run->actor[i].name) };
    }
}

void gp_nvtx_close(gp_run *run)
{
    if (run->nvtx)
        nvtxDomainDestroy(run->nvtx->domain);
}

void gp_nvtx_name_thread(const gp_threadrt *t)
{
    const gp_actorrt *p = t->actor;
    char name[300];
    if (!t->run->nvtx)
        return;
    if (p->kind == GP_ACTOR_SEGMENT)
        snprintf(name, sizeof name, "%s %s", p->name, t->worker ? "reaper" : "launcher");
    else if (p->stage->workers > 1)
        snprintf(name, sizeof name, "%s worker %d", p->name, t->worker + 1);
    else
        snprintf(name, sizeof name, "%s", p->name);
    nvtxNameOsThreadA((uint32_t)atomic_load(&t->tid), name);
}

void gp_nvtx_push_(const gp_actorrt *p, uint64_t frame)
{
    const gp_label *label = &p->run->nvtx->label[p->index];
    nvtxEventAttributes_t a = { 0 };
    a.version = NVTX_VERSION;
    a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    a.category = label->category;
    a.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    a.message.registered = label->name;
    a.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
    a.payload.ullValue = frame;
    nvtxDomainRangePushEx(p->run->nvtx->domain, &a);
}

void gp_nvtx_pop_(const gp_actorrt *p)
{
    nvtxDomainRangePop(p->run->nvtx->domain);
}
#else
void gp_nvtx_open(gp_run *run) { (void)run; }
void gp_nvtx_close(gp_run *run) { (void)run; }
void gp_nvtx_name_thread(const gp_threadrt *t) { (void)t; }
void gp_nvtx_push_(const gp_actorrt *p, uint64_t frame) { (void)p, (void)frame; }
void gp_nvtx_pop_(const gp_actorrt *p) { (void)p; }
#endif
