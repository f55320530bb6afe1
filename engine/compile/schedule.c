/* schedule.c - plan -> plan: depths, copies, memory and launches, see schedule.h; here their order, and what memory all
 * takes. Where that is more than there is, all is done again with fewer slots, and then with as few as the file allows. */
#include "compile/schedule.h"

static bool touches(const gp_plan *p, const gp_segment *s, int pool)
{
    for (int i = 0; i < s->ntasks; i++) {
        const gp_task *t = &p->task[s->task[i]];
        for (int k = 0; k < t->nin + t->nout; k++) {
            int ring = k < t->nin ? t->in[k] : t->out[k - t->nin];
            if (ring >= 0 && p->ring[ring].pool == pool)
                return true;
        }
    }
    return false;
}

int gp_pool_at_once(const gp_plan *p, int pool)
{
    const gp_pool *q = &p->pool[pool];
    int64_t slots = 0, all = q->depth / q->place.lanes;
    for (int k = 0; k < p->nsegments; k++)
        if (touches(p, &p->segment[k], pool))
            slots += (int64_t)p->segment[k].batch * (p->segment[k].streams + 1);
    return (int)(slots < all ? slots : all);
}

/* `bytes` on each device, or on the host. */
static void count(gp_plan *p, gp_place place, bool pinned, size_t bytes)
{
    bool device = place.device && !p->unified;
    for (int i = 0; i < place.lanes && device; i++) {
        size_t *total = &p->on_device[place.index + i];
        *total = gp_size_add(*total, bytes);
        p->device_bytes = gp_size_add(p->device_bytes, bytes);
    }
    if (!device)
        p->host_bytes = gp_size_add(p->host_bytes, bytes);
    if (pinned)
        p->pinned_bytes = gp_size_add(p->pinned_bytes, bytes);
}

static void set_totals(gp_plan *p)
{
    for (int i = 0; i < p->ntasks; i++)
        if (p->task[i].scratch >= 0) {
            gp_extra *e = &p->extra[p->task[i].scratch];
            e->bytes = gp_size_mul(e->stride, (size_t)(p->segment[p->task[i].segment].depth / e->place.lanes));
        }
    for (int i = 0; i < p->nextras; i++)
        count(p, p->extra[i].place, false, p->extra[i].bytes);
    for (int i = 0; i < p->graph->nstages; i++) {
        const gp_stage *st = &p->graph->stage[i];
        if (!gp_is_leaky(st) || gp_leaky_when(st) != GP_WHEN_FULL_DROP_OLDEST)
            continue;
        const gp_ring *in = &p->ring[p->task[p->host_task[i]].in[0]];
        count(p, (gp_place){ .lanes = 1 }, false, gp_size_mul(in->bytes, (size_t)in->depth));
    }
    for (int i = 0; i < p->nrings; i++) {      /* a state is copied to be saved */
        const gp_buffer *b = p->ring[i].buffer < 0 ? NULL : &p->graph->buffer[p->ring[i].buffer];
        if (b && b->save)
            count(p, (gp_place){ .lanes = 1 }, b->save_every && !p->unified, gp_bytes(&b->type));
    }
    for (int i = 0; i < p->npools; i++) {
        const gp_pool *q = &p->pool[i];
        size_t bytes = gp_size_mul(q->stride, (size_t)gp_pool_slots(q));
        if (q->managed) {
            const gp_place host = { .lanes = 1 };
            count(p, host, false, gp_size_mul(bytes, (size_t)q->place.lanes));
            bytes = gp_size_mul(q->stride, (size_t)gp_pool_at_once(p, i));
        }
        count(p, q->place, q->pinned, bytes);
    }
}

/* Leaves out each dep that another dep of the task waits for, itself or through others: these are marked, as far back as
 * the first dep. */
static void reduce_deps(gp_arena *a, gp_plan *p)
{
    int *mark = GP_NEW(a, int, p->ntasks), *next = GP_NEW(a, int, p->ntasks);
    for (int i = 0; i < p->ntasks; i++) {
        gp_task *t = &p->task[i];
        int first = i, left = 0, n = 0;
        for (int j = 0; j < t->ndeps; j++)
            first = t->dep[j] < first ? t->dep[j] : first;
        for (int j = 0; j < t->ndeps || left; ) {
            const gp_task *b = &p->task[left ? next[--left] : t->dep[j++]];
            for (int k = 0; k < b->ndeps; k++)
                if (b->dep[k] >= first && mark[b->dep[k]] != i)
                    mark[b->dep[k]] = i, next[left++] = b->dep[k];
        }
        for (int j = 0; j < t->ndeps; j++)
            if (mark[t->dep[j]] != i)
                mark[t->dep[j]] = i, t->dep[n++] = t->dep[j];
        t->ndeps = n;
    }
}

static bool takes_turns(const gp_plan *p, const gp_task *t)
{
    return t->turn == GP_TURN_IN && t->stage >= 0 && gp_stage_takes_turns(&p->graph->stage[t->stage]);
}

/* Does a state that is saved between two frames take a turn of its own in that order? */
static bool is_shared(const gp_plan *p, const gp_task *t)
{
    const gp_stage *st = &p->graph->stage[t->stage];
    return gp_is_carry(st) && p->graph->buffer[st->out[0]].save_every;
}

/* Task `carry` comes behind `made` of the frame before. So what of its segment comes behind `carry`, and whose order is
 * passed on before `made`, keeps its order by that. */
static void leave_out_orders(gp_plan *p, int carry, bool *behind, bool *before)
{
    int segment = p->task[carry].segment, made = gp_task_passer(p, carry);
    for (int i = 0; i < p->ntasks; i++)
        behind[i] = false, before[i] = i == made;
    for (int i = made; i > carry; i--)
        for (int k = 0; k < p->task[i].ndeps && before[i]; k++)
            before[p->task[i].dep[k]] = true;
    for (int i = carry + 1; i < p->ntasks; i++)
        for (int k = 0; k < p->task[i].ndeps; k++)
            behind[i] |= p->task[i].dep[k] == carry || behind[p->task[i].dep[k]];
    for (int i = 0; i < p->ntasks; i++) {
        gp_task *t = &p->task[i];
        if (i == carry || t->segment != segment || !takes_turns(p, t) || is_shared(p, t))
            continue;
        bool nothing = gp_task_is_nothing(p, t), follows = before[gp_task_passer(p, i)] && (nothing || behind[i]);
        for (int k = i + 1; k < p->ntasks && nothing; k++)
            for (int d = 0; d < p->task[k].ndeps; d++)
                follows &= p->task[k].dep[d] != i || behind[k];
        t->follows |= follows;
    }
}

/* An order is kept by an event of each frame, for which the GPU waits longer than for a kernel. */
static void reduce_orders(gp_arena *a, gp_plan *p)
{
    bool *behind = GP_NEW(a, bool, p->ntasks), *before = GP_NEW(a, bool, p->ntasks);
    for (int i = 0; i < p->ntasks; i++)
        p->task[i].follows = false;
    for (int i = 0; i < p->ntasks; i++)
        if (takes_turns(p, &p->task[i]) && gp_stage_circles_back(&p->graph->stage[p->task[i].stage]) && !p->task[i].follows)
            leave_out_orders(p, i, behind, before);
}

static void *dup(gp_arena *a, const void *v, size_t bytes)
{
    return gp_regrow(a, v, bytes, bytes);
}

#define DUP(a, v, n) dup((a), (v), sizeof *(v) * (size_t)(n))

static gp_plan *schedule(gp_arena *a, const gp_plan *from, gp_slots slots, gp_errs *errs)
{
    gp_plan *p = DUP(a, from, 1);
    p->ring = DUP(a, from->ring, from->nrings);
    p->extra = DUP(a, from->extra, from->nextras);
    p->segment = DUP(a, from->segment, from->nsegments);
    p->host_task = DUP(a, from->host_task, from->graph->nstages);
    p->on_device = GP_NEW(a, size_t, from->graph->ndevices);
    gp_scheduling w = {
        .a = a, .g = from->graph, .p = p,
        .late = gp_late_stages(a, from->graph), .root = GP_NEW(a, int, from->nsegments), .base = GP_NEW(a, int, from->nsegments),
        .lanes = GP_NEW(a, int, from->nsegments), .copied = gp_nones(a, from->nrings),
        .twice = GP_NEW(a, bool, from->graph->nbuffers),
    };
    int failed = errs->failed;
    if (!gp_ring_depths(&w, slots, errs))
        return NULL;
    gp_merge_copies(&w);
    gp_set_copying(&w);
    bool ok = gp_set_launches(&w, errs);
    gp_set_runs(&w);
    set_totals(p);
    return ok && errs->failed == failed ? p : NULL;
}

gp_plan *gp_schedule(gp_arena *a, const gp_plan *from, const gp_machine *m, gp_errs *errs)
{
    gp_errs ignored = { .n = 0 };
    gp_plan *p = schedule(a, from, GP_SLOTS_MANY, errs);
    for (gp_slots s = GP_SLOTS_SOME; p && s <= GP_SLOTS_FEW && !gp_budgets(p, m, &ignored); s++)
        p = schedule(a, from, s, errs);
    if (p)
        reduce_deps(a, p), reduce_orders(a, p);
    return p;
}
