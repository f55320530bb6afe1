/* devices.c - the devices of a run are opened, with a stream for each that an actor needs, and actors get theirs. */
#include "run/host.h"
#include "run/setup.h"
#include "run/trace.h"

/* How many stages of a segment keep the order of their frames themselves. */
static int orders_of(const gp_run *run, const gp_segment *s)
{
    int n = 0;
    for (int i = 0; i < s->ntasks; i++) {
        int stage = run->plan->task[s->task[i]].stage;
        n += stage >= 0 && gp_stage_takes_turns(&run->graph->stage[stage]) && !run->plan->task[s->task[i]].follows;
    }
    return n;
}

static bool open_device(gp_run *run, int d, const gp_device_use *use, int slots, gp_errs *errs)
{
    bool cpu = run->plan->unified || run->graph->device[d].pretend;
    const gp_backend *be = cpu ? &gp_backend_cpu : gp_backend_gpu();
    int index = cpu ? 0 : run->graph->device[d].index;
    if (!be)               /* the plan is for another machine */
        return gp_fail(errs, GP_E_RESOURCE, run->graph->device_at, "this gpipe was built without CUDA, and cannot use '%s'",
                       run->graph->device[d].name);
    if (!(run->dev[d] = be->open(index, errs)))
        return false;
    run->dev[d]->name = run->ndevs > 1 ? run->graph->device[d].name : NULL;
    run->dev[d]->cancel = &run->level;
    return be->prepare(run->dev[d], use->streams ? use->streams : 1, use->priority, use->orders, slots, errs);
}

/* The streams of all actors, in the order in which gp_actors_init() gives them out. */
static void count_streams(const gp_run *run, gp_device_use *use)
{
    const gp_plan *plan = run->plan;
    for (int i = 0; i < plan->nactors; i++) {
        const gp_segment *seg = plan->actor[i].kind == GP_ACTOR_SEGMENT ? &plan->segment[plan->actor[i].segment] : NULL;
        const gp_stage *st = seg ? NULL : &run->graph->stage[plan->actor[i].stage];
        int first = seg ? seg->place.index : 0, lanes = seg ? seg->place.lanes : 1;
        int streams = seg ? seg->streams : st->fills_device ? st->workers : 0;
        for (int d = first; d < first + lanes; d++)
            for (int k = 0; k < streams; k++, use[d].streams++)
                if (use[d].priority)
                    use[d].priority[use[d].streams] = seg ? seg->priority : st->priority;
    }
    for (int d = 0; d < run->ndevs && !plan->unified; d++)
        run->tap_stream[d] = use[d].streams++;
}

static void mark(bool *used, gp_place place)
{
    for (int d = place.index; place.device && d < place.index + place.lanes; d++)
        used[d] = true;
}

/* Those that something of the plan is on; the first also runs what comes before frame 0, and pins the host's memory. */
static bool *used_devices(gp_run *run)
{
    const gp_plan *plan = run->plan;
    bool *used = GP_NEW(&run->arena, bool, run->ndevs);
    used[0] = true;
    for (int i = 0; i < plan->nsegments; i++)
        mark(used, plan->segment[i].place);
    for (int i = 0; i < plan->npools; i++)
        mark(used, plan->pool[i].place);
    for (int i = 0; i < plan->nextras; i++)
        mark(used, plan->extra[i].place);
    return used;
}

/* Devices between which the plan copies. */
static bool reach_peers(gp_run *run, gp_errs *errs)
{
    const gp_plan *plan = run->plan;
    bool ok = true;
    for (int i = 0; i < plan->ntasks; i++) {
        const gp_task *t = &plan->task[i];
        if (t->op != GP_TASK_COPY_PEER)
            continue;
        gp_place from = plan->ring[t->in[0]].place, to = plan->ring[t->out[0]].place;
        for (int k = to.index; k < to.index + to.lanes; k++)
            for (int j = from.index; ok && j < from.index + from.lanes; j++)
                ok = j == k || !run->dev[k]->backend->reach
                  || run->dev[k]->backend->reach(run->dev[k], run->dev[j], errs);
    }
    return ok;
}

static bool open_used(gp_run *run, gp_errs *errs)
{
    const gp_plan *plan = run->plan;
    gp_device_use *use = GP_NEW(&run->arena, gp_device_use, run->ndevs);
    if (run->options.check_kernels && !plan->unified)
        return gp_fail(errs, GP_E_USAGE, run->graph->device_at, "kernels are checked on the CPU back "
                       "end, with --device cpu; on a GPU run: compute-sanitizer gpipe run "
                       "--isolate %s", run->graph->file);
    int slots = 1;
    for (int i = 0; i < plan->nsegments; i++) {
        const gp_segment *s = &plan->segment[i];
        slots = s->depth > slots ? s->depth : slots;
        use[s->place.index].orders += orders_of(run, s);
    }
    run->tap_stream = GP_NEW(&run->arena, int, run->ndevs);
    count_streams(run, use);
    for (int d = 0; d < run->ndevs; d++)
        use[d].priority = GP_NEW(&run->arena, gp_priority, use[d].streams + 1), use[d].streams = 0;
    count_streams(run, use);
    gp_loc was = errs->at;
    if (run->graph->device_at.file)
        errs->at = run->graph->device_at;
    const bool *used = used_devices(run);
    for (int d = 0; d < run->ndevs; d++)
        if (used[d] && !open_device(run, d, &use[d], slots, errs))
            return false;
    if (!reach_peers(run, errs))
        return false;
    const gp_backend *be = run->dev[0]->backend;
    bool watch = run->options.trace_full && run->options.trace_ns && be->watch;
    if (watch && run->ndevs > 1)
        return gp_fail(errs, GP_E_USAGE, errs->at, "a full trace is of one device: set 'device' to one, or leave out "
                       "'--trace-gpu full'");
    if (watch && !(run->watched = be->watch(run->dev[0], gp_trace_activity, run, errs)))
        return false;
    errs->at = was;
    return true;
}

static bool needs_device(const gp_run *run)
{
    bool fills = false;
    for (int i = 0; i < run->graph->nstages; i++)
        fills |= run->graph->stage[i].fills_device;
    return run->plan->nsegments || run->graph->nprologue || fills;
}

bool gp_devices_open(gp_run *run, gp_errs *errs)
{
    return !needs_device(run) || open_used(run, errs);
}

bool gp_actors_init(gp_run *run, gp_errs *errs)
{
    const gp_plan *plan = run->plan;
    gp_device_use *used = GP_NEW(&run->arena, gp_device_use, run->ndevs);
    gp_loc was = errs->at;
    for (int i = 0; i < plan->nactors; i++) {
        gp_actorrt *p = &run->actor[i];
        if (p->kind == GP_ACTOR_HOST) {
            gp_host_init(p);
            if (gp_is_leaky(p->stage))
                gp_leak_init(p);
            p->host->stream = used[0].streams, used[0].streams += p->stage->fills_device ? p->stage->workers : 0;
            continue;
        }
        errs->at = gp_actor_at(p);
        if (!gp_segment_init(p, used, errs))
            return false;
    }
    errs->at = was;
    return gp_marks_init(run, errs);
}
