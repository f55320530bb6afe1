/* lower.c - graph -> plan: which rings a buffer needs, which copies and tasks there are, and who waits for whom;
 * segments.c says what is a segment. Everything here is linear in stages, ports and uses. */
#include "compile/plan.h"

/* A set of copies, or of rings, that grows. */
typedef struct list { int *v, n, cap; } list;

typedef struct actor_info {
    list copy_in, copy_peer, copy_out;    /* pairs of rings: from, to */
    list in, out;              /* rings with counters */
    int first;                 /* its first stage; lowering.next leads on */
    int ring;                  /* its ring of buffer `seen`, while rings are made */
    int seen;
} actor_info;

typedef struct lowering {
    gp_arena *a;
    const gp_graph *g;
    gp_plan *p;
    const int *group;          /* of each stage: a stage that stands for its actor, the first of it */
    int *next;                 /* the next stage of the same group, -1: the last */
    int *actor;                /* of each stage */
    gp_task *task;             /* of each stage, until tasks are put in order */
    actor_info *info;          /* of each actor */
    int ring_cap, extra_cap;
} lowering;

static const gp_place on_host = { .lanes = 1, .run = 1 };

static void push(gp_arena *a, list *l, int x)
{
    *GP_PUSH(a, l->v, l->n, l->cap) = x;
}

/* ---- actors ---------------------------------------------------------- */

static void chain_stages(lowering *w)
{
    int n = w->g->nstages, *last = GP_NEW(w->a, int, n);
    for (int v = 0; v < n; v++) {
        int top = w->group[v];
        if (top != v)
            w->next[last[top]] = v;
        last[top] = v;
    }
}

/* Actors in topological order; segments are numbered in it. */
static bool order_actors(lowering *w, gp_errs *errs)
{
    const gp_graph *g = w->g;
    gp_plan *p = w->p;
    int *waits = GP_NEW(w->a, int, g->nstages), *queue = GP_NEW(w->a, int, g->nstages);
    int n = 0, total = 0, nseg = 0;
    for (int b = 0; b < g->nbuffers; b++)
        for (int u = 0; g->buffer[b].producer.stage >= 0 && u < g->buffer[b].nuse; u++) {
            int from = w->group[g->buffer[b].producer.stage];
            int to = w->group[g->buffer[b].use[u].stage];
            waits[to] += from != to && !g->stage[g->buffer[b].use[u].stage].closes;
        }
    for (int v = 0; v < g->nstages; v++)
        if (w->group[v] == v) {
            total++;
            if (!waits[v])
                queue[n++] = v;
        }
    p->actor = GP_NEW(w->a, gp_actor, total);
    for (int done = 0; done < n; done++) {
        int head = queue[done];
        bool device = g->stage[head].device;
        p->actor[p->nactors] = device ? (gp_actor){ GP_ACTOR_SEGMENT, -1, nseg++ }
                                      : (gp_actor){ GP_ACTOR_HOST, head, -1 };
        for (int v = head; v >= 0; v = w->next[v]) {
            w->actor[v] = p->nactors;
            for (int o = 0; o < g->stage[v].nout; o++) {
                int out = g->stage[v].out[o];
                const gp_buffer *b = out < 0 ? NULL : &g->buffer[out];
                for (int u = 0; b && u < b->nuse; u++) {
                    int to = w->group[b->use[u].stage];
                    if (to != head && !g->stage[b->use[u].stage].closes && --waits[to] == 0)
                        queue[n++] = to;
                }
            }
        }
        p->nactors++;
    }
    p->nsegments = nseg;
    return n == total
        || gp_fail(errs, GP_E_BUG, g->stage[0].at, "the stages wait for each other in a circle");
}

/* ---- rings and extras ------------------------------------------------ */

static int add_ring(lowering *w, int buffer, gp_place place, int producer, int segment)
{
    gp_plan *p = w->p;
    const gp_buffer *b = buffer < 0 ? NULL : &w->g->buffer[buffer];
    size_t bytes = b ? gp_size_round(gp_bytes(&b->type)) : 0;
    *GP_PUSH(w->a, p->ring, p->nrings, w->ring_cap) = (gp_ring){
        .buffer = buffer, .place = place, .depth = b ? b->depth : 1, .why = b ? b->why : GP_DEPTH_BY_ASKED,
        .bytes = bytes ? bytes : 256, .pool = -1, .producer = producer, .segment = segment, .before = -1,
    };
    return p->nrings - 1;
}

static int add_extra(lowering *w, gp_extra_use use, gp_place place, int buffer, int stage,
                     size_t bytes)
{
    gp_plan *p = w->p;
    bytes = gp_size_round(bytes);
    *GP_PUSH(w->a, p->extra, p->nextras, w->extra_cap) = (gp_extra){
        .use = use, .place = place, .buffer = buffer, .stage = stage, .bytes = bytes,
        .stride = use == GP_EXTRA_SCRATCH ? bytes : 0,
    };
    return p->nextras - 1;
}

/* The devices of all that read a constant, and those between them; what runs before frame 0 is on the first. */
static gp_place readers_of(const gp_graph *g, const gp_buffer *b)
{
    int from = g->ndevices ? g->ndevices : 1, to = 0;
    if (b->in_prologue || b->maker.stage >= 0)
        from = 0, to = 1;
    for (int u = 0; u < b->nuse; u++) {
        gp_place p = gp_stage_place(g, &g->stage[b->use[u].stage]);
        if (!g->stage[b->use[u].stage].device)
            continue;
        from = p.index < from ? p.index : from;
        to = p.index + p.lanes > to ? p.index + p.lanes : to;
    }
    return (gp_place){ true, from, to - from, 1 };
}

static int konst_on(lowering *w, int b, bool device)
{
    const gp_buffer *buf = &w->g->buffer[b];
    int *extra = &w->p->konst[device][b];
    if (*extra < 0)
        *extra = add_extra(w, GP_EXTRA_CONST, device ? readers_of(w->g, buf) : on_host, b, -1, gp_bytes(&buf->type));
    return *extra;
}

/* A constant lives on each side that reads it, and where a stage makes it; once where the sides are one, and on the
 * host where it is managed. */
static void place_const(lowering *w, int b)
{
    const gp_buffer *buf = &w->g->buffer[b];
    bool host = false, managed = buf->managed && !w->p->unified;
    for (int u = 0; u < buf->nuse; u++)
        host |= !w->g->stage[buf->use[u].stage].device;
    bool apart = !managed && !(w->p->unified && host);
    if (buf->in_prologue || buf->maker.stage >= 0)
        konst_on(w, b, apart);
    for (int u = 0; u < buf->nuse; u++) {
        int v = buf->use[u].stage;
        w->task[v].konst[buf->use[u].port] = konst_on(w, b, w->g->stage[v].device && apart);
    }
    if (managed)
        w->p->extra[konst_on(w, b, false)].managed = true;
}

static void add_copy(lowering *w, list *copies, int from, int to)
{
    push(w->a, copies, from);
    push(w->a, copies, to);
}

/* The rings of one buffer: where it is made, and on the other side a ring for
 * each segment that reads it, or one for all host stages that do. What a host stage
 * makes in the memory of the device has one ring there. A segment on another device copies it from there, or, where the
 * devices are no peers, from the host. */
static void place_buffer(lowering *w, int b)
{
    const gp_graph *g = w->g;
    gp_plan *p = w->p;
    const gp_buffer *buf = &g->buffer[b];
    int from = w->actor[buf->producer.stage], home_segment = p->actor[from].segment;
    bool made_on_host = home_segment < 0, to_host = false, to_segment = false;
    bool filled = !p->unified && g->stage[buf->producer.stage].fills_device;
    gp_place made_on = gp_stage_place(g, &g->stage[buf->producer.stage]);
    for (int u = 0; u < buf->nuse; u++) {
        int to = w->actor[buf->use[u].stage];
        gp_place there = gp_stage_place(g, &g->stage[buf->use[u].stage]);
        bool here = p->actor[to].kind == GP_ACTOR_SEGMENT
                  ? gp_same_place(there, made_on) || gp_are_peers(g, made_on, there)
                  : !p->unified && g->stage[buf->use[u].stage].reads_device;
        to_host |= !here;
        to_segment |= here && to != from;
    }
    bool shared = made_on_host || to_segment || (p->unified && to_host);
    gp_place place = (made_on_host && !filled) || (p->unified && to_host) ? on_host : made_on;
    int home = add_ring(w, b, place, from, shared ? -1 : home_segment), back = home;
    if (shared && !made_on_host)
        push(w->a, &w->info[from].out, home);
    if (!made_on_host && to_host && !p->unified) {
        back = add_ring(w, b, on_host, from, -1);
        push(w->a, &w->info[from].out, back);
        add_copy(w, &w->info[from].copy_out, home, back);
    }
    w->task[buf->producer.stage].out[buf->producer.port] = home;

    list readers[2] = {0};                 /* of home, of back */
    for (int u = 0; u < buf->nuse; u++) {
        gp_use use = buf->use[u];
        int to = w->actor[use.stage], segment = p->actor[to].segment;
        actor_info *info = &w->info[to];
        if (info->seen != b) {             /* the first stage of its actor */
            gp_place there = gp_stage_place(g, &g->stage[use.stage]);
            bool crosses = segment >= 0 && !made_on_host && !p->unified && !gp_same_place(there, made_on);
            bool peer = crosses && gp_are_peers(g, made_on, there);
            info->seen = b;
            info->ring = (segment < 0 && !g->stage[use.stage].reads_device) || (crosses && !peer) ? back : home;
            if (to != from)
                push(w->a, &readers[info->ring != home], to);
            if (to != from && segment >= 0) {
                push(w->a, &info->in, info->ring);
                if (crosses || (made_on_host && !filled && !p->unified)) {
                    int source = info->ring;
                    info->ring = add_ring(w, b, there, to, segment);
                    add_copy(w, peer ? &info->copy_peer : &info->copy_in, source, info->ring);
                }
            }
        }
        w->task[use.stage].in[use.port] = info->ring;
    }
    for (int i = 0; i < 2; i++)
        if (readers[i].n) {
            gp_ring *r = &p->ring[i ? back : home];
            r->consumer = readers[i].v;
            r->nconsumers = readers[i].n;
        }
}

/* ---- tasks ----------------------------------------------------------- */

/* One task per stage, with room for its rings, and its memory beside rings. */
static void make_stage_tasks(lowering *w)
{
    for (int v = 0; v < w->g->nstages; v++) {
        const gp_stage *s = &w->g->stage[v];
        w->task[v] = (gp_task){
            .op = s->device ? GP_TASK_STAGE : GP_TASK_HOST, .stage = v, .segment = -1,
            .in = gp_nones(w->a, s->nin), .nin = s->nin, .out = gp_nones(w->a, s->nout), .nout = s->nout,
            .from_pool = -1, .to_pool = -1, .state = -1, .table = -1, .scratch = -1,
            .konst = gp_nones(w->a, s->nin),
        };
        gp_place place = gp_stage_place(w->g, s);
        if (!s->device)
            continue;
        if (s->table)
            w->task[v].table = add_extra(w, GP_EXTRA_TABLE, place, -1, v, s->table);
        if (s->state)
            w->task[v].state = add_extra(w, GP_EXTRA_STATE, place, -1, v, s->state);
        if (s->scratch)
            w->task[v].scratch = add_extra(w, GP_EXTRA_SCRATCH, place, -1, v, s->scratch);
    }
}

static void depend_on(lowering *w, gp_task *t, int on, int *cap)
{
    for (int i = 0; i < t->ndeps; i++)
        if (t->dep[i] == on)
            return;
    *GP_PUSH(w->a, t->dep, t->ndeps, *cap) = on;
}

/* Task `t` waits for the task of its own segment that writes `ring`. */
static void depend_on_writer(lowering *w, gp_task *t, const int *writer, int ring, int *cap)
{
    int on = ring < 0 ? -1 : writer[ring];
    if (on >= 0 && w->p->task[on].segment == t->segment)
        depend_on(w, t, on, cap);
}

/* What stage v makes in place of an older frame is not written before that was carried to the next. */
static void depend_on_carry(lowering *w, gp_task *t, int v, const int *task_of, int *cap)
{
    const gp_stage *s = &w->g->stage[v];
    for (int o = 0; o < s->nout; o++) {
        const gp_buffer *b = gp_stage_out(w->g, s, o);
        for (int u = 0; b && u < b->nuse; u++)
            if (gp_stage_circles_back(&w->g->stage[b->use[u].stage]))
                depend_on(w, t, task_of[b->use[u].stage], cap);
    }
}

static void emit_copies(lowering *w, gp_segment *s, int segment, gp_task_kind op, const list *pairs,
                        int *writer)
{
    gp_plan *p = w->p;
    for (int i = 0; i < pairs->n; i += 2) {
        gp_task *t = &p->task[p->ntasks];
        *t = (gp_task){
            .op = op, .stage = -1, .segment = segment, .in = &pairs->v[i], .nin = 1,
            .out = &pairs->v[i + 1], .nout = 1, .from_pool = -1, .to_pool = -1,
            .state = -1, .table = -1, .scratch = -1,
        };
        int cap = 0;
        if (op == GP_TASK_COPY_OUT)
            depend_on_writer(w, t, writer, t->in[0], &cap);
        writer[t->out[0]] = p->ntasks;
        s->task[s->ntasks++] = p->ntasks++;
    }
}

/* Tasks in the order of actors; in a segment copies in, peer copies, stages, copies out. */
static void order_tasks(lowering *w)
{
    const gp_graph *g = w->g;
    gp_plan *p = w->p;
    int ncopies = 0;
    for (int i = 0; i < p->nactors; i++)
        ncopies += (w->info[i].copy_in.n + w->info[i].copy_peer.n + w->info[i].copy_out.n) / 2;
    p->task = GP_NEW(w->a, gp_task, g->nstages + ncopies);
    int *order = GP_NEW(w->a, int, g->nstages + ncopies);
    int *writer = gp_nones(w->a, p->nrings), *task_of = gp_nones(w->a, g->nstages);
    for (int i = 0; i < p->nactors; i++) {
        int v = p->actor[i].stage, k = p->actor[i].segment;
        actor_info *info = &w->info[i];
        if (p->actor[i].kind == GP_ACTOR_HOST) {
            p->host_task[v] = p->ntasks;
            p->task[p->ntasks++] = w->task[v];
            continue;
        }
        gp_segment *s = &p->segment[k];
        s->task = order + p->ntasks;
        emit_copies(w, s, k, GP_TASK_COPY_IN, &info->copy_in, writer);
        emit_copies(w, s, k, GP_TASK_COPY_PEER, &info->copy_peer, writer);
        for (v = info->first; v >= 0; v = w->next[v]) {
            gp_task *t = &p->task[p->ntasks];
            *t = w->task[v];
            t->segment = k;
            int cap = 0;
            for (int j = 0; j < t->nin; j++)
                depend_on_writer(w, t, writer, t->in[j], &cap);
            if (g->stage[v].frame_info)
                depend_on_writer(w, t, writer, s->info_dev, &cap);
            depend_on_carry(w, t, v, task_of, &cap);
            for (int j = 0; j < g->stage[v].nafter; j++)
                depend_on(w, t, task_of[g->stage[v].after[j]], &cap);
            task_of[v] = p->ntasks;
            for (int j = 0; j < t->nout; j++)
                if (t->out[j] >= 0)
                    writer[t->out[j]] = p->ntasks;
            s->task[s->ntasks++] = p->ntasks++;
        }
        emit_copies(w, s, k, GP_TASK_COPY_OUT, &info->copy_out, writer);
    }
}

/* Stages that only carry launch no kernels. */
static void give_priority(const lowering *w, gp_segment *s, int first)
{
    bool any = false;
    for (int v = first; v >= 0; v = w->next[v]) {
        const gp_stage *st = &w->g->stage[v];
        if (gp_is_carry(st) && v != first)
            continue;
        s->priorities |= any && st->priority != s->priority;
        s->priority = !any || st->priority > s->priority ? st->priority : s->priority;
        any = true;
    }
}

/* Rings for frame infos where a stage of the segment asks for them. */
static bool place_infos(lowering *w, int actor, gp_errs *errs)
{
    gp_plan *p = w->p;
    actor_info *info = &w->info[actor];
    int k = p->actor[actor].segment;
    int asked = 0, batched = -1;
    if (p->actor[actor].kind == GP_ACTOR_HOST)
        return true;
    p->segment[k] = (gp_segment){
        .place = gp_stage_place(w->g, &w->g->stage[info->first]), .in = info->in.v, .nin = info->in.n,
        .out = info->out.v, .nout = info->out.n, .info_host = -1, .info_dev = -1,
        .regroups = w->g->stage[info->first].regroups ? info->first : -1, .uncaptured = -1,
    };
    for (int v = info->first; v >= 0; v = w->next[v]) {
        p->segment[k].each_shape |= w->g->stage[v].each_shape;
        if (w->g->stage[v].uncaptured && p->segment[k].uncaptured < 0)
            p->segment[k].uncaptured = v;
    }
    give_priority(w, &p->segment[k], info->first);
    for (int v = info->first; v >= 0; v = w->next[v])
        if (w->g->stage[v].frame_info)
            asked++, batched = w->g->stage[v].batched ? v : batched;
    if (!asked)
        return true;
    if (asked > GP_INFOS && batched >= 0)
        return gp_fail(errs, GP_E_SPEC, w->g->stage[batched].at, "stage '%s' takes several frames at once, and asks for the "
                       "frame's number or time ('frame'), as %d others of its segment do: at most %d may, where one takes "
                       "several at once", w->g->stage[batched].name, asked - 1, GP_INFOS);
    int host = add_ring(w, -1, on_host, actor, k), dev = host;
    if (!p->unified) {
        dev = add_ring(w, -1, p->segment[k].place, actor, k);
        add_copy(w, &info->copy_in, host, dev);
    }
    p->ring[host].bytes = p->ring[dev].bytes = gp_info_bytes(asked);
    p->segment[k].info_host = host;
    p->segment[k].info_dev = dev;
    return true;
}

gp_plan *gp_lower(gp_arena *a, const gp_graph *g, const gp_machine *m, gp_errs *errs)
{
    gp_plan *p = GP_NEW(a, gp_plan, 1);
    *p = (gp_plan){ .graph = g, .unified = !g->ndevices, .host_task = gp_nones(a, g->nstages),
                    .konst = { gp_nones(a, g->nbuffers), gp_nones(a, g->nbuffers) } };
    lowering w = {
        .a = a, .g = g, .p = p,
        .group = gp_segments(a, g), .next = gp_nones(a, g->nstages), .actor = GP_NEW(a, int, g->nstages),
        .task = GP_NEW(a, gp_task, g->nstages),
    };
    chain_stages(&w);
    if (!order_actors(&w, errs))
        return NULL;
    p->segment = GP_NEW(a, gp_segment, p->nsegments);
    w.info = GP_NEW(a, actor_info, p->nactors);
    for (int i = 0; i < p->nactors; i++)
        w.info[i].seen = -1;
    for (int v = g->nstages - 1; v >= 0; v--)
        w.info[w.actor[v]].first = v;
    make_stage_tasks(&w);
    for (int b = 0; b < g->nbuffers; b++)
        if (g->buffer[b].producer.stage < 0)
            place_const(&w, b);
        else
            place_buffer(&w, b);
    for (int i = 0; i < p->nactors; i++)
        if (!place_infos(&w, i, errs))
            return NULL;
    order_tasks(&w);
    return p;
}
