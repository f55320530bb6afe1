/* managed.c - buffers whose slots on a device are in managed memory: which of them can be.
 *
 * Kernels and copies use such slots as any other. What a library writes or reads by itself does not, nor what stays on
 * the device while slots come and go. */
#include "compile/plan.h"
#include "compile/resolve.h"

static bool check(const gp_graph *g, const gp_buffer *b, const gp_stage *st, bool *device, gp_errs *errs)
{
    *device |= st->device;
    if (st->fills_device || st->reads_device)
        return gp_fail(errs, GP_E_SPEC, b->managed_at, "buffer '%s' cannot be in managed memory: stage '%s' gives the "
                       "memory of its frames to a library", b->name, st->name);
    return !st->device || g->launch != GP_LAUNCH_PERSISTENT
        || gp_fail(errs, GP_E_SPEC, b->managed_at, "buffer '%s' cannot be in managed memory with 'launch: persistent': "
                   "its slots are fetched before a launch, and there is one launch for all", b->name);
}

/* Can its slots be there? *device: does a stage of the device touch them? */
static bool can_be(const gp_graph *g, const gp_buffer *b, bool *device, gp_errs *errs)
{
    bool ok = check(g, b, &g->stage[b->producer.stage], device, errs);
    for (int u = 0; ok && u < b->nuse; u++)
        ok = check(g, b, &g->stage[b->use[u].stage], device, errs);
    return ok;
}

bool gp_managed_may(const gp_graph *g, const gp_buffer *b)
{
    return b->producer.stage < 0 || can_be(g, b, &(bool){ false }, &(gp_errs){ .n = 0 });
}

void gp_managed_check(const gp_graph *g, gp_errs *errs)
{
    for (int i = 0; i < g->nbuffers; i++) {
        const gp_buffer *b = &g->buffer[i];
        bool device = false, ok = b->managed && b->producer.stage >= 0 && can_be(g, b, &device, errs);
        if (ok && !device)
            gp_fail(errs, GP_E_SPEC, b->managed_at, "'memory' has no effect: no stage of the device makes or reads "
                    "buffer '%s'", b->name);
    }
}
