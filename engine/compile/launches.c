/* launches.c - how much of a segment is in flight: its streams, and the frames of a launch; see schedule.h. */
#include "compile/loop.h"
#include "compile/schedule.h"

enum { COPY_PER_LAUNCH = 1 << 20, ITEMS_PER_LAUNCH = 4096, STREAMS = 8 };

/* The nodes that loops have in an exec at least: run/loop.c records all iterations between two looks at `until`, else a
 * few launches, if there are some 64 nodes for them. */
static int64_t loop_nodes(const gp_plan *p, const gp_segment *s)
{
    enum { FEW = 4, ROOM = 64 };
    int64_t n = 0;
    for (int i = 0; i < s->ntasks; i++) {
        int v = p->task[s->task[i]].stage;
        const gp_loop *l = v < 0 ? NULL : gp_stage_loop(&p->graph->stage[v]);
        if (!l)
            continue;
        int64_t stages = l->graph->nstages, once = l->flag >= 0 ? 2 * l->every : ROOM / stages > FEW ? ROOM / stages : FEW;
        int64_t all = gp_loop_launches(l, l->times);
        n += stages * (once < all ? once : all);
    }
    return n;
}

/* Do slots come again so seldom, beside what is in flight, that graphs would be built for little? On a GPU a graph of a
 * frame with many kernels is built sooner than these are launched once. */
static bool is_sparse(const gp_plan *p, const gp_segment *s)
{
    enum { TURNS = 64, FEW = 512, MORE = 1024, NODES = 1 << 17 };
    int few = !p->unified && gp_segment_kernels(p, s) >= GP_LONG ? MORE : FEW;
    return s->period / s->depth > TURNS && (s->period > few || s->period * loop_nodes(p, s) > NODES);
}

int64_t gp_segment_execs(const gp_segment *s)
{
    int64_t n = 0;
    bool graphs = s->regroups < 0 && !s->each_shape && s->uncaptured < 0 && !s->sparse;
    for (int m = 1; m <= s->batch && graphs; m *= 2)
        n += s->depth / m;
    return n * (s->period / s->depth);
}

size_t gp_segment_copied(const gp_plan *p, const gp_segment *s, gp_task_kind way)
{
    size_t bytes = 0;
    for (int i = 0; i < s->ntasks; i++)
        if (p->task[s->task[i]].op == way)
            bytes = gp_size_add(bytes, gp_copy_bytes(p, &p->task[s->task[i]]));
    return bytes;
}

size_t gp_segment_copied_all(const gp_plan *p, const gp_segment *s)
{
    size_t in = gp_segment_copied(p, s, GP_TASK_COPY_IN), out = gp_segment_copied(p, s, GP_TASK_COPY_OUT);
    return gp_size_add(gp_size_add(in, out), gp_segment_copied(p, s, GP_TASK_COPY_PEER));
}

int gp_segment_batch(const gp_plan *p, const gp_segment *s, int asked)
{
    if (s->each_shape)
        return 1;
    int depth = s->depth / s->place.lanes;
    int64_t batch = asked ? asked : depth / 3;
    size_t copied = gp_segment_copied_all(p, s);
    if (!asked && copied && (size_t)batch > COPY_PER_LAUNCH / copied)
        batch = (int64_t)(COPY_PER_LAUNCH / copied);
    if (batch > depth)
        batch = depth;
    if (batch > ITEMS_PER_LAUNCH / s->ntasks)          /* larger graphs are not faster */
        batch = ITEMS_PER_LAUNCH / s->ntasks;
    if (s->place.lanes > 1 && batch > s->place.run)
        batch = s->place.run;
    return gp_power_below((int)batch);
}

/* A resident kernel has no order between frames, takes no work of a library's, and no other may ask for the whole GPU.
 * */
static bool may_persist(const gp_graph *g, const gp_stage *st, gp_errs *errs)
{
    return g->launch != GP_LAUNCH_PERSISTENT || st->regroups
        || (!gp_stage_in_order(st) && !st->cooperative && !st->calls_library)
        || gp_fail(errs, GP_E_SPEC, st->at, "stage '%s' %s, which 'launch: persistent' does not support: set "
                   "'launch: graph'", st->name, st->cooperative ? "has a cooperative kernel"
                   : st->calls_library ? "calls a library"
                   : st->state ? "carries state from frame to frame" : "takes frames in order");
}

/* Nor may anything ask the device for memory while it runs, as libraries do. What they make is on one device. */
static bool may_fill(const gp_graph *g, const gp_stage *st, gp_errs *errs)
{
    bool persists = g->launch == GP_LAUNCH_PERSISTENT;
    return !st->fills_device || !g->ndevices || (!persists && g->ndevices == 1)
        || gp_fail(errs, GP_E_SPEC, st->at, "stage '%s' itself writes or reads the memory of the device, which %s: set "
                   "%s, or an option of the stage that keeps it on the host ('gpipe stages %s')", st->name,
                   persists ? "'launch: persistent' does not support" : "is not possible with several devices",
                   persists ? "'launch: graph'" : "'device' to one", st->kind->name);
}

/* How many frames of a period a segment copies that way: none where they come once, at the end. */
static size_t copies(const gp_scheduling *w, const gp_segment *s, gp_task_kind way)
{
    int v = gp_segment_first(w->p, (int)(s - w->p->segment));
    const gp_stage *st = &w->g->stage[v];
    if (w->late[v])
        return 0;
    return (size_t)(way != GP_TASK_COPY_OUT ? st->rate : st->rate * st->regroup.make / st->regroup.every);
}

/* Finds the turns of the tasks: behind a task of a circle, and before one, is in the turn, too. There is room for a mark
 * of each task of the plan. */
static void set_turns(gp_scheduling *w, const gp_segment *s, bool *before, bool *behind)
{
    gp_task *task = w->p->task;
    for (int i = 0; i < s->ntasks; i++) {
        int k = s->task[i];
        behind[k] = before[k] = task[k].stage >= 0 && w->g->stage[task[k].stage].circles;
        for (int d = 0; d < task[k].ndeps; d++)
            behind[k] |= behind[task[k].dep[d]];
    }
    for (int i = s->ntasks - 1; i >= 0; i--) {
        int k = s->task[i];
        for (int d = 0; d < task[k].ndeps && before[k]; d++)
            before[task[k].dep[d]] = true;
        task[k].turn = !behind[k] ? GP_TURN_BEFORE : before[k] ? GP_TURN_IN : GP_TURN_BEHIND;
    }
}

bool gp_set_launches(gp_scheduling *w, gp_errs *errs)
{
    gp_plan *p = w->p;
    bool ok = true, *before = GP_NEW(w->a, bool, p->ntasks), *behind = GP_NEW(w->a, bool, p->ntasks);
    for (int v = 0; v < w->g->nstages; v++)
        ok &= may_fill(w->g, &w->g->stage[v], errs);
    for (int k = 0; k < p->nsegments; k++) {
        gp_segment *s = &p->segment[k];
        size_t in = gp_segment_copied(p, s, GP_TASK_COPY_IN);
        size_t out = gp_segment_copied(p, s, GP_TASK_COPY_OUT);
        size_t peer = gp_segment_copied(p, s, GP_TASK_COPY_PEER);
        for (int i = 0; i < s->ntasks; i++)
            if (p->task[s->task[i]].stage >= 0)
                ok &= may_persist(w->g, &w->g->stage[p->task[s->task[i]].stage], errs);
        p->copy_in_bytes = gp_size_add(p->copy_in_bytes, gp_size_mul(in, copies(w, s, GP_TASK_COPY_IN)));
        p->copy_out_bytes = gp_size_add(p->copy_out_bytes, gp_size_mul(out, copies(w, s, GP_TASK_COPY_OUT)));
        p->copy_peer_bytes = gp_size_add(p->copy_peer_bytes, gp_size_mul(peer, copies(w, s, GP_TASK_COPY_PEER)));

        int streams = w->g->streams ? w->g->streams : STREAMS;
        int depth = s->depth / s->place.lanes;
        s->streams = streams < depth ? streams : depth;
        if (s->regroups >= 0 && ((w->g->stage[s->regroups].kind->emit && !in && !peer)
                                 || gp_is_carry(&w->g->stage[s->regroups])))
            s->streams = 1;            /* frames take turns, and there is nothing else to do meanwhile */
        s->batch = gp_segment_batch(p, s, w->g->batch);
        s->sparse = is_sparse(p, s);
        set_turns(w, s, before, behind);
        if (s->ntasks > GP_REC_ITEMS) {
            const gp_stage *first = &w->g->stage[gp_segment_first(p, k)];
            ok = gp_fail(errs, GP_E_SPEC, first->at, "stage '%s' begins a segment of %d tasks, a launch takes at most %d; "
                         "put a host stage between, such as 'lua'", first->name, s->ntasks, (int)GP_REC_ITEMS);
        }
    }
    return ok;
}
