/* budget.c - can the machine hold a plan? Too little memory is the user's to change (GP_E_RESOURCE), and the error
 * names what takes most. A part of verify. */
#include <string.h>
#include "base/plural.h"
#include "compile/plan.h"

typedef struct largest { size_t bytes; const gp_ring *ring; const gp_extra *extra; } largest;

/* Is the place a part of what is asked for: the host, device -1, or a device? */
static bool is_on(const gp_plan *p, gp_place place, int device)
{
    return p->unified || (device < 0 ? !place.device : place.device && place.index <= device
                                                       && device < place.index + place.lanes);
}

/* The largest thing of a kind of memory: on a device, on the host (device -1), pinned. */
static largest find_largest(const gp_plan *p, int device, bool pinned)
{
    largest l = { 0, NULL, NULL };
    for (int i = 0; i < p->nrings; i++) {
        const gp_ring *r = &p->ring[i];
        bool managed = p->pool[r->pool].managed, here = is_on(p, r->place, device) || (managed && device < 0);
        int slots = managed && device >= 0 ? gp_pool_at_once(p, r->pool) : r->depth / r->place.lanes;
        size_t bytes = gp_size_mul(r->bytes, (size_t)slots);
        if (bytes > l.bytes && here && (!pinned || p->pool[r->pool].pinned))
            l = (largest){ bytes, r, NULL };
    }
    for (int i = 0; i < p->nextras && !pinned; i++)
        if (p->extra[i].bytes > l.bytes && is_on(p, p->extra[i].place, device))
            l = (largest){ p->extra[i].bytes, NULL, &p->extra[i] };
    return l;
}

/* What a device would need less, and the host more, if what is there were in managed memory. */
typedef struct freed { size_t device, host; } freed;

static void free_more(freed *f, size_t device, size_t host)
{
    f->device = gp_size_add(f->device, device), f->host = gp_size_add(f->host, host);
}

static void free_ring(const gp_plan *p, const gp_ring *r, freed *f)
{
    const gp_pool *q = &p->pool[r->pool];
    bool may = r->buffer >= 0 && !q->managed && gp_managed_may(p->graph, &p->graph->buffer[r->buffer]);
    int lanes = r->place.lanes, fewer = may ? r->depth / lanes - gp_pool_at_once(p, r->pool) : 0;
    if (fewer > 0)
        free_more(f, gp_size_mul(r->bytes, (size_t)fewer), gp_size_mul(r->bytes, (size_t)r->depth));
}

static void free_extra(const gp_plan *p, const gp_extra *x, freed *f)
{
    if (x->buffer >= 0 && !x->managed && gp_managed_may(p->graph, &p->graph->buffer[x->buffer]))
        free_more(f, x->bytes, x->bytes);
}

/* Is it of use that the largest is in managed memory, if others are, too? Not where that frees too little for the
 * device, or has no room on the host. */
static bool does_managed_help(const gp_plan *p, const gp_machine *m, int device, size_t need, size_t have, largest l)
{
    freed one = { 0, 0 }, all = { 0, 0 };
    if (l.ring)
        free_ring(p, l.ring, &one);
    else if (l.extra)
        free_extra(p, l.extra, &one);
    for (int i = 0; i < p->nrings; i++)
        if (is_on(p, p->ring[i].place, device))
            free_ring(p, &p->ring[i], &all);
    for (int i = 0; i < p->nextras; i++)
        if (is_on(p, p->extra[i].place, device))
            free_extra(p, &p->extra[i], &all);
    const freed *f = one.device < need && need - one.device <= have ? &one : &all;
    return one.device && f->device < need && need - f->device <= have
        && gp_size_add(p->host_bytes, f->host) <= m->memory;
}

/* `sharers`: so many processes have as much each. */
static bool check_budget(const gp_plan *p, size_t need, size_t have, int sharers, const char *where, largest l,
                         bool helps, gp_errs *errs)
{
    if (need <= have)
        return true;
    const gp_graph *g = p->graph;
    char needs[24], has[80], size[24], slot[24], type[GP_BOUNDS_TEXT];
    int b = l.ring ? l.ring->buffer : l.extra ? l.extra->buffer : -1;
    int s = l.extra && b < 0 ? l.extra->stage : -1;
    gp_size_text(need, needs), gp_size_text(have, has), gp_size_text(l.bytes, size);
    if (sharers > 1)
        snprintf(has + strlen(has), sizeof has - strlen(has), " for each of the %d ranks that share it", sharers);
#define TOO_LITTLE(at, fmt, ...) \
    gp_fail(errs, GP_E_RESOURCE, (at), "the pipeline needs %s of %s; there are %s" fmt, needs, where, has, __VA_ARGS__)
    const char *managed = helps ? ", or give it 'memory: managed'" : "";
    if (l.ring && b >= 0)
        return TOO_LITTLE(g->buffer[b].depth_said ? g->buffer[b].depth_at : g->buffer[b].at, ". The largest is buffer '%s' "
                          "(%s, %d slot%s of %s): lower its depth or its shape%s", g->buffer[b].name,
                          gp_bounds_text(&g->buffer[b].type, g->buffer[b].varies, type), l.ring->depth,
                          gp_plural(l.ring->depth), gp_size_text(l.ring->bytes, slot), managed);
    if (b >= 0)
        return TOO_LITTLE(g->buffer[b].at, ". The largest is constant '%s' (%s): make it smaller%s", g->buffer[b].name, size,
                          managed);
    if (s >= 0)
        return TOO_LITTLE(g->stage[s].at, ". The largest is the work area of stage '%s' (%s): lower the depth or the shape of "
                          "its inputs", g->stage[s].name, size);
    return TOO_LITTLE((gp_loc){ .file = g->file }, "%s", ": lower 'depth'");
}

bool gp_budgets(const gp_plan *p, const gp_machine *m, gp_errs *errs)
{
    const gp_graph *g = p->graph;
    bool pretend = g->ndevices && g->device[0].pretend;
    size_t host = gp_size_add(p->host_bytes, pretend ? p->device_bytes : 0);
    bool ok = check_budget(p, host, m->memory, m->sharers, "host memory", find_largest(p, -1, false), false, errs);
    if (p->unified || pretend)
        return ok;
    ok &= check_budget(p, p->pinned_bytes, m->pin_limit, m->sharers, "pinned host memory",
                       find_largest(p, -1, true), false, errs);
    for (int i = 0; i < g->ndevices; i++) {
        char where[64];
        snprintf(where, sizeof where, "memory on %s", g->device[i].name);
        size_t need = p->on_device[i], have = g->device[i].info.memory;
        if (need <= have)              /* the largest is looked for only where it is named: there may be many devices */
            continue;
        largest l = find_largest(p, i, false);
        ok &= check_budget(p, need, have, 0, where, l, does_managed_help(p, m, i, need, have, l), errs);
    }
    return ok;
}
