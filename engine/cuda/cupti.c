/* cupti.c - what the GPU did, kernel by kernel, from CUPTI: for traces in full.
 *
 * CUPTI hands over records of kernels and copies long after they were done. Which
 * launch one belongs to is told by an external correlation id, the tag that was set
 * when it was launched; which item, for a node of a graph, by the label that the
 * recorder had when the node was made: a callback notes it, and again when the node is
 * cloned into an exec, as the records name the clone. What is run without a graph has
 * its label as a second external id.
 *
 * CUPTI knows one client in a process and passes it no argument: hence the one static
 * variable of this library. The lock protects everything in it; while it is held no
 * function of CUPTI is called but those that read a buffer, as CUPTI may hold locks of
 * its own when it calls us. */
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/dl.h"
#include "base/table.h"
#include "cuda/dev.h"

#if __has_include(<cupti.h>)
#include <cupti.h>

#define CALLS(X) X(cuptiSubscribe) X(cuptiUnsubscribe) X(cuptiEnableCallback)                  \
    X(cuptiActivityEnable) X(cuptiActivityDisable) X(cuptiActivityRegisterCallbacks)           \
    X(cuptiActivityFlushAll) X(cuptiActivityGetNextRecord) X(cuptiGetGraphNodeId)              \
    X(cuptiGetTimestamp) X(cuptiActivityPushExternalCorrelationId)                             \
    X(cuptiActivityPopExternalCorrelationId) X(cuptiGetResultString)

enum { SETS = 1 << 15, WAYS = 8, WAITING = 1 << 14, BUFFER = 1 << 20 };
#define TAG CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0
#define LABEL CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1

static const CUpti_ActivityKind kinds[] = {
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET,
    CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER,       /* external ids come with these */
    CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
};
enum { KINDS = sizeof kinds / sizeof *kinds };

typedef struct call { uint32_t id; uint64_t tag; int label; } call;    /* of the CUDA API */
typedef struct done { gp_activity is; uint32_t call; uint64_t node; } done;

static struct {
    pthread_mutex_t lock;
    bool on;
#define X(name) __typeof__(&name) name;
    CALLS(X)
#undef X
    CUpti_SubscriberHandle subscriber;
    void (*note)(void *arg, const gp_activity *a);
    void *arg;
    gp_table nodes;                    /* the label of each node, by its id */
    call *calls;                       /* SETS of WAYS: the newest that have a tag */
    done *waiting; int nwaiting;       /* whose call was not seen yet */
} cupti = { .lock = PTHREAD_MUTEX_INITIALIZER };

static _Thread_local int label_now = -1;       /* of what this thread records */
static _Thread_local bool tagged, labeled;    /* pushed on CUPTI's stacks */

/* ---- nodes and calls, with the lock ---------------------------------- */

/* The call with this id; NULL: it is not known. With `make` it replaces the oldest of its
 * set then. Polling alone makes a million calls a second, of which none is kept. */
static call *find_call(uint32_t id, bool make)
{
    call *set = &cupti.calls[(id * UINT32_C(0x9e3779b1) >> 17) * WAYS], *old = set;
    for (call *c = set; c < set + WAYS; c++) {
        if (c->id == id)
            return c;
        if ((int32_t)(c->id - old->id) < 0)    /* ids wrap */
            old = c;
    }
    if (make)
        *old = (call){ id, 0, -1 };
    return make ? old : NULL;
}

static void CUPTIAPI graph_changed(void *arg, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                                   const void *data)
{
    if (domain != CUPTI_CB_DOMAIN_RESOURCE)
        return;
    const CUpti_GraphData *g = ((const CUpti_ResourceData *)data)->resourceDescriptor;
    bool cloned = id == CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED;
    uint64_t self = 0, from = 0;
    if (cupti.cuptiGetGraphNodeId(g->node, &self) != CUPTI_SUCCESS
        || (cloned && cupti.cuptiGetGraphNodeId(g->originalNode, &from) != CUPTI_SUCCESS))
        return;
    pthread_mutex_lock(&cupti.lock);
    const gp_entry *original = cupti.on && cloned ? gp_table_find_id(&cupti.nodes, from) : NULL;
    int label = original ? (int)original->n : cloned ? -1 : label_now;
    gp_entry *e = cupti.on && label >= 0 ? gp_table_put_id(&cupti.nodes, self, label) : NULL;
    if (e)                     /* without memory its slices will be missing */
        e->n = label;
    pthread_mutex_unlock(&cupti.lock);
}

/* ---- records --------------------------------------------------------- */

/* Fills in the rest of what was done and tells of it; false: its call is not known yet. */
static bool tell(done *d)
{
    const call *c = find_call(d->call, false);
    if (!c || !c->tag)
        return false;
    d->is.tag = c->tag;
    const gp_entry *node = d->node ? gp_table_find_id(&cupti.nodes, d->node) : NULL;
    d->is.label = !d->node ? c->label : node ? (int)node->n : -1;
    if (d->is.label >= 0)
        cupti.note(cupti.arg, &d->is);
    return true;
}

/* Its call comes with a later buffer, or never: then it was no frame's, but set-up's. */
static void wait_for_call(const done *d)
{
    if (cupti.nwaiting == WAITING)
        memmove(cupti.waiting, cupti.waiting + WAITING / 2,
                sizeof *cupti.waiting * (size_t)(cupti.nwaiting = WAITING / 2));
    cupti.waiting[cupti.nwaiting++] = *d;
}

static bool read_record(const CUpti_Activity *r, int64_t shift, done *d)
{
    if (r->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
        const CUpti_ActivityKernel10 *k = (const void *)r;
        *d = (done){ { k->name, (int64_t)k->start + shift, (int64_t)k->end + shift, 0, -1 },
                     k->correlationId, k->graphNodeId };
    } else if (r->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
        const CUpti_ActivityMemcpy6 *m = (const void *)r;
        *d = (done){ { "copy", (int64_t)m->start + shift, (int64_t)m->end + shift, 0, -1 },
                     m->correlationId, m->graphNodeId };
    } else if (r->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
        const CUpti_ActivityMemset4 *m = (const void *)r;
        *d = (done){ { "fill", (int64_t)m->start + shift, (int64_t)m->end + shift, 0, -1 },
                     m->correlationId, m->graphNodeId };
    } else {
        return false;
    }
    return true;
}

static void read_buffer(uint8_t *buffer, size_t bytes, int64_t shift)
{
    CUpti_Activity *r = NULL;
    done d;
    while (cupti.cuptiActivityGetNextRecord(buffer, bytes, &r) == CUPTI_SUCCESS) {
        const CUpti_ActivityExternalCorrelation *x = (const void *)r;
        if (r->kind != CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION)
            continue;
        if (x->externalKind == TAG)
            find_call(x->correlationId, true)->tag = x->externalId;
        else if (x->externalKind == LABEL)
            find_call(x->correlationId, true)->label = (int)x->externalId;
    }
    int left = 0;
    for (int i = 0; i < cupti.nwaiting; i++)
        if (!tell(&cupti.waiting[i]))
            cupti.waiting[left++] = cupti.waiting[i];
    cupti.nwaiting = left;
    r = NULL;
    while (cupti.cuptiActivityGetNextRecord(buffer, bytes, &r) == CUPTI_SUCCESS)
        if (read_record(r, shift, &d) && !tell(&d))
            wait_for_call(&d);
}

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *bytes, size_t *most)
{
    *buffer = malloc(BUFFER);
    *bytes = *buffer ? BUFFER : 0;
    *most = 0;
}

static void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t bytes,
                                 size_t valid)
{
    uint64_t theirs = 0;
    cupti.cuptiGetTimestamp(&theirs);
    int64_t shift = gp_now_ns() - (int64_t)theirs;
    pthread_mutex_lock(&cupti.lock);
    if (cupti.on && valid)
        read_buffer(buffer, valid, shift);
    pthread_mutex_unlock(&cupti.lock);
    free(buffer);
}

/* ---- on and off ------------------------------------------------------ */

static void free_tables(void)
{
    gp_table_free(&cupti.nodes);
    free(cupti.calls), free(cupti.waiting);
    cupti.calls = NULL, cupti.waiting = NULL;
}

static bool load(gp_errs *errs)
{
    static const char *const names[] = {
        "libcupti.so.13", "libcupti.so", "/usr/local/cuda/lib64/libcupti.so.13",
        "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13", NULL,
    };
    static const gp_dl_symbol symbol[] = {
#define X(name) { #name, &cupti.name },
        CALLS(X)
#undef X
        { 0 },
    };
    return gp_dl_open(names, symbol, "a trace in full",
                      "install CUPTI, a part of the CUDA Toolkit, or set '--trace-gpu cheap'",
                      (gp_loc){ 0 }, errs);
}

static bool ok(CUptiResult e, const char *what, gp_errs *errs)
{
    const char *text = NULL;
    if (e == CUPTI_SUCCESS)
        return true;
    cupti.cuptiGetResultString(e, &text);
    return gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "tracing the GPU in full: %s: %s%s", what,
                   text ? text : "unknown error",
                   e == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
                       ? ": another tool is tracing this process" : "");
}

static bool start(gp_errs *errs)
{
    static const CUpti_CallbackId of_nodes[] = { CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED,
                                                 CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED };
    bool fine = ok(cupti.cuptiSubscribe(&cupti.subscriber, graph_changed, NULL), "subscribing", errs)
        && ok(cupti.cuptiActivityRegisterCallbacks(give_buffer, take_buffer), "buffers", errs);
    for (int i = 0; fine && i < 2; i++)
        fine = ok(cupti.cuptiEnableCallback(1, cupti.subscriber, CUPTI_CB_DOMAIN_RESOURCE,
                                            of_nodes[i]), "graphs", errs);
    for (int i = 0; fine && i < KINDS; i++)
        fine = ok(cupti.cuptiActivityEnable(kinds[i]), "records", errs);
    return fine;
}

bool gp_cuda_watch(gp_dev *dev, void (*note)(void *arg, const gp_activity *a), void *arg,
                   gp_errs *errs)
{
    pthread_mutex_lock(&cupti.lock);
    bool fine = !cupti.on || gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 },
                                     "another run of this process is being traced in full");
    if (fine && (fine = load(errs))) {
        cupti.note = note, cupti.arg = arg;
        cupti.calls = gp_cuda_table(SETS * WAYS, sizeof *cupti.calls, errs);
        cupti.waiting = gp_cuda_table(WAITING, sizeof *cupti.waiting, errs);
        cupti.nwaiting = 0;
        fine = cupti.on = cupti.calls && cupti.waiting;
        if (!fine)
            free_tables();
    }
    pthread_mutex_unlock(&cupti.lock);
    if (fine && !start(errs)) {
        gp_cuda_unwatch(dev);
        return false;
    }
    return fine;
}

void gp_cuda_unwatch(gp_dev *dev)
{
    if (!cupti.on)
        return;
    cupti.cuptiActivityFlushAll(0);
    for (int i = 0; i < KINDS; i++)
        cupti.cuptiActivityDisable(kinds[i]);
    cupti.cuptiUnsubscribe(cupti.subscriber);
    pthread_mutex_lock(&cupti.lock);
    free_tables();
    cupti.on = false;
    pthread_mutex_unlock(&cupti.lock);
}

static void pop(bool *pushed, CUpti_ExternalCorrelationKind kind)
{
    uint64_t last;
    if (*pushed)
        cupti.cuptiActivityPopExternalCorrelationId(kind, &last);
    *pushed = false;
}

void gp_cuda_tag(gp_dev *dev, uint64_t tag)
{
    pop(&labeled, LABEL);
    pop(&tagged, TAG);
    if (tag)
        tagged = cupti.cuptiActivityPushExternalCorrelationId(TAG, tag) == CUPTI_SUCCESS;
}

void gp_cuda_label(int label, bool in_graph)
{
    label_now = in_graph ? label : -1;
    if (in_graph)
        return;
    pop(&labeled, LABEL);
    labeled = cupti.cuptiActivityPushExternalCorrelationId(LABEL, (uint64_t)label) == CUPTI_SUCCESS;
}

#else

bool gp_cuda_watch(gp_dev *dev, void (*note)(void *arg, const gp_activity *a), void *arg,
                   gp_errs *errs)
{
    return gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 },
                   "this gpipe was built without CUPTI, which a trace in full needs");
}

void gp_cuda_unwatch(gp_dev *dev)
{
}

void gp_cuda_tag(gp_dev *dev, uint64_t tag)
{
}

void gp_cuda_label(int label, bool in_graph)
{
}

#endif
