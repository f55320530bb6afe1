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
    if (posix_memalign(&p, 4096, n ? n : 256))
        return GP_NULL(gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory: %.1f MiB", (double)bytes / 1048576));
    memset(p, 0, n);           /* touched now, not at the first frames */
    return p;
}

/* Memory that the device has a say in comes from its back end; else it is plain. */
enum { PLAIN = -1 };

static int kind_of_pool(const gp_run *run, const gp_pool *p)
{
    return !run->dev[0] ? PLAIN : p->managed ? GP_MEMORY_MANAGED : p->place.device ? GP_MEMORY_DEVICE
         : p->pinned ? GP_MEMORY_PINNED : PLAIN;
}

static int kind_of_extra(const gp_run *run, const gp_extra *x)
{
    return !run->dev[0] ? PLAIN : x->managed ? GP_MEMORY_MANAGED : x->place.device ? GP_MEMORY_DEVICE : PLAIN;
}

/* Takes memory of one device, or of the host; what the first device pins, or manages, all of them can use. */
static void *take_memory(gp_run *run, int kind, int device, size_t bytes, gp_errs *errs)
{
    return kind == PLAIN ? plain_alloc(bytes, errs)
                         : run->dev[device]->backend->alloc(run->dev[device], (gp_memory)kind, bytes, errs);
}

static void give_memory(gp_run *run, int kind, int device, void *mem, size_t bytes)
{
    if (mem && kind != PLAIN)
        run->dev[device]->backend->free(run->dev[device], (gp_memory)kind, mem, bytes);
    else
        free(mem);
}

typedef struct gp_upload { void *dst; const void *src; size_t bytes; } gp_upload;

static bool record_upload(gp_rec *r, void *arg)
{
    gp_upload *u = arg;
    return r->ops->item(r, 0, NULL, 0) && r->ops->copy(r, u->dst, u->src, u->bytes);
}

bool gp_memory_copy(gp_dev *dev, void *dst, const void *src, size_t bytes, gp_errs *errs)
{
    gp_upload u = { dst, src, bytes };
    return dev->backend->direct(dev, 0, record_upload, &u, errs) && dev->backend->wait(dev, 0, GP_SYNC_BLOCK, errs) == 1;
}

static bool load_table(gp_run *run, const gp_stage *st, void *host, gp_errs *errs)
{
    const gp_graph *g = run->graph;
    gp_type in[GP_MAXPORT] = { { 0 } };
    for (int i = 0; i < st->nin; i++)
        if (st->in[i] >= 0)
            in[i] = g->buffer[st->in[i]].type;
    return st->kind->table(&(gp_table_call){ .opts = st->opts, .user = st->kind->user, .nin = st->nin,
                                             .in = in, .data = host, .bytes = st->table })
        || gp_fail(errs, GP_E_RESOURCE, st->at, "stage '%s': out of memory", st->name);
}

/* Fills memory of device `dev`, or of the host (dev NULL), with a constant or with a stage's table (konst NULL). */
static bool load_into(gp_run *run, gp_dev *dev, void *to, size_t bytes, const gp_buffer *konst, const gp_stage *st,
                      gp_errs *errs)
{
    void *host = dev ? dev->backend->alloc(dev, GP_MEMORY_PINNED, bytes, errs) : to;
    bool ok = host && (konst ? gp_const_load(konst, host, errs) : load_table(run, st, host, errs))
           && (!dev || gp_memory_copy(dev, to, host, bytes, errs));
    if (dev && host)
        dev->backend->free(dev, GP_MEMORY_PINNED, host, bytes);
    return ok;
}

static bool fill_extra(gp_run *run, int i, int device, gp_errs *errs)
{
    const gp_extra *x = &run->plan->extra[i];
    const gp_buffer *konst = x->use == GP_EXTRA_CONST ? &run->graph->buffer[x->buffer] : NULL;
    if (konst ? konst->maker.stage >= 0 : x->use != GP_EXTRA_TABLE)
        return true;
    return load_into(run, x->place.device && !run->plan->unified ? run->dev[device] : NULL, gp_extra_on(run, i, device),
                     x->bytes, konst, konst ? NULL : &run->graph->stage[x->stage], errs);
}

void *gp_memory_device(gp_run *run, size_t bytes, gp_errs *errs)
{
    return take_memory(run, run->dev[0] ? GP_MEMORY_DEVICE : PLAIN, 0, bytes, errs);
}

void gp_memory_device_free(gp_run *run, void *mem, size_t bytes)
{
    give_memory(run, run->dev[0] ? GP_MEMORY_DEVICE : PLAIN, 0, mem, bytes);
}

void *gp_memory_table(gp_run *run, const gp_stage *st, gp_errs *errs)
{
    void *mem = gp_memory_device(run, st->table, errs);
    if (!mem || load_into(run, run->plan->unified ? NULL : run->dev[0], mem, st->table, NULL, st, errs))
        return mem;
    gp_memory_device_free(run, mem, st->table);
    return NULL;
}

/* On each of its devices. */
static size_t pool_bytes(const gp_pool *p)
{
    return p->stride * (size_t)gp_pool_slots(p);
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

/* Last, so that it is known how much room there is. */
static bool fetch_managed(gp_run *run, gp_errs *errs)
{
    for (int i = 0; i < run->plan->nextras; i++) {
        const gp_extra *x = &run->plan->extra[i];
        errs->at = extra_at(run, x);
        for (int d = 0; d < run->ndevs && x->managed; d++) {
            gp_dev *dev = run->dev[d];
            if (dev && dev->backend->fetch && !dev->backend->fetch(dev, gp_extra_on(run, i, 0), x->bytes, errs))
                return false;
        }
    }
    return true;
}

bool gp_memory_take(gp_run *run, gp_errs *errs)
{
    const gp_plan *plan = run->plan;
    gp_loc was = errs->at;
    for (int i = 0; i < plan->npools; i++) {
        const gp_pool *p = &plan->pool[i];
        errs->at = pool_at(run, i);
        for (int d = p->place.index; d < p->place.index + p->place.lanes; d++)
            if (!(run->pool[d * plan->npools + i] = take_memory(run, kind_of_pool(run, p), d, pool_bytes(p), errs)))
                return false;
        if (p->guard)
            memset(run->pool[p->place.index * plan->npools + i], GP_GUARD, pool_bytes(p));
    }
    for (int i = 0; i < plan->nextras; i++) {
        const gp_extra *x = &plan->extra[i];
        errs->at = extra_at(run, x);
        for (int d = x->place.index; d < x->place.index + x->place.lanes; d++)
            if (!(run->extra[d * plan->nextras + i] = take_memory(run, kind_of_extra(run, x), d, x->bytes, errs))
                || !fill_extra(run, i, d, errs))
                return false;
    }
    bool ok = fetch_managed(run, errs);
    if (ok)
        errs->at = was;
    return ok;
}

void gp_memory_give(gp_run *run)
{
    const gp_plan *plan = run->plan;
    for (int d = 0; run->pool && d < run->ndevs; d++) {
        for (int i = 0; i < plan->npools; i++)
            give_memory(run, kind_of_pool(run, &plan->pool[i]), d, run->pool[d * plan->npools + i],
                        pool_bytes(&plan->pool[i]));
        for (int i = 0; run->extra && i < plan->nextras; i++)
            give_memory(run, kind_of_extra(run, &plan->extra[i]), d, gp_extra_on(run, i, d), plan->extra[i].bytes);
    }
}
