/* memory.c - the memory that a plan asks for: its pools of slots; constants, tables, state
 * and scratch beside them.
 *
 * All of it is taken, touched and filled before frame 0. An error is at the buffer or the
 * stage that the memory is for. */
#include <stdlib.h>
#include <string.h>
#include "run/setup.h"

static void *plain_alloc(size_t bytes, gp_errs *errs)
{
    void *p = NULL;
    size_t n = (bytes + 255) & ~(size_t)255;
    if (posix_memalign(&p, 4096, n ? n : 256)) {
        gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory: %.1f MiB",
                (double)bytes / 1048576);
        return NULL;
    }
    memset(p, 0, n);           /* touched now, not at the first frames */
    return p;
}

/* Memory that the device has a say in comes from its back end. */
static bool backend_owns(const gp_run *run, gp_place place, bool pinned)
{
    return run->dev && (place.device || pinned);
}

static void *take_memory(gp_run *run, gp_place place, bool pinned, size_t bytes, gp_errs *errs)
{
    return backend_owns(run, place, pinned)
        ? run->dev->backend->alloc(run->dev, place.device, bytes, errs)
        : plain_alloc(bytes, errs);
}

static void give_memory(gp_run *run, gp_place place, bool pinned, void *mem, size_t bytes)
{
    if (mem && backend_owns(run, place, pinned))
        run->dev->backend->free(run->dev, place.device, mem, bytes);
    else
        free(mem);
}

typedef struct gp_upload { void *dst; const void *src; size_t bytes; } gp_upload;

static bool record_upload(gp_rec *r, void *arg)
{
    gp_upload *u = arg;
    return r->ops->item(r, 0, NULL, 0) && r->ops->copy(r, u->dst, u->src, u->bytes);
}

/* What a constant or a table holds, in host memory. */
static bool load_extra(gp_run *run, const gp_extra *x, void *host, gp_errs *errs)
{
    const gp_graph *g = run->graph;
    if (x->use == GP_EXTRA_CONST)
        return gp_const_load(&g->buffer[x->buffer], host, errs);
    const gp_stage *st = &g->stage[x->stage];
    gp_type in[GP_MAXPORT] = { { 0 } };
    for (int i = 0; i < st->nin; i++)
        if (st->in[i] >= 0)
            in[i] = g->buffer[st->in[i]].type;
    return st->kind->table(&(gp_table_call){ .opts = st->opts, .user = st->kind->user, .nin = st->nin,
                                             .in = in, .data = host, .bytes = x->bytes })
        || gp_fail(errs, GP_E_RESOURCE, st->at, "stage '%s': out of memory", st->name);
}

static bool fill_extra(gp_run *run, int i, gp_errs *errs)
{
    const gp_extra *x = &run->plan->extra[i];
    if (x->use != GP_EXTRA_CONST && x->use != GP_EXTRA_TABLE)
        return true;
    if (!x->place.device || run->plan->unified)
        return load_extra(run, x, run->extra[i], errs);
    const gp_backend *be = run->dev->backend;
    void *host = be->alloc(run->dev, false, x->bytes, errs);
    gp_upload u = { run->extra[i], host, x->bytes };
    bool ok = host && load_extra(run, x, host, errs)
        && be->direct(run->dev, 0, record_upload, &u, errs)
        && be->wait(run->dev, 0, GP_SYNC_BLOCK, errs) == 1;
    if (host)
        be->free(run->dev, false, host, x->bytes);
    return ok;
}

/* The place of the first buffer in a pool; one of frame infos alone has none. */
static gp_loc pool_at(const gp_run *run, int pool)
{
    for (int i = 0; i < run->plan->nrings; i++) {
        const gp_ring *r = &run->plan->ring[i];
        if (r->pool == pool && r->buffer >= 0)
            return run->graph->buffer[r->buffer].at;
    }
    return (gp_loc){ .file = run->graph->file };
}

static gp_loc extra_at(const gp_run *run, const gp_extra *x)
{
    return x->use == GP_EXTRA_CONST ? run->graph->buffer[x->buffer].at
                                    : run->graph->stage[x->stage].at;
}

bool gp_memory_take(gp_run *run, gp_errs *errs)
{
    const gp_plan *plan = run->plan;
    gp_loc was = errs->at;
    for (int i = 0; i < plan->npools; i++) {
        const gp_pool *p = &plan->pool[i];
        errs->at = pool_at(run, i);
        if (!(run->pool[i] = take_memory(run, p->place, p->pinned,
                                         p->stride * (size_t)p->depth, errs)))
            return false;
    }
    for (int i = 0; i < plan->nextras; i++) {
        const gp_extra *x = &plan->extra[i];
        errs->at = extra_at(run, x);
        if (!(run->extra[i] = take_memory(run, x->place, false, x->bytes, errs))
            || !fill_extra(run, i, errs))
            return false;
    }
    errs->at = was;
    return true;
}

void gp_memory_give(gp_run *run)
{
    const gp_plan *plan = run->plan;
    for (int i = 0; run->pool && i < plan->npools; i++)
        give_memory(run, plan->pool[i].place, plan->pool[i].pinned, run->pool[i],
                    plan->pool[i].stride * (size_t)plan->pool[i].depth);
    for (int i = 0; run->extra && i < plan->nextras; i++)
        give_memory(run, plan->extra[i].place, false, run->extra[i], plan->extra[i].bytes);
}
