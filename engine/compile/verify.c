/* verify.c - proves of a plan what the executor and the back ends rely on, and
 * that the machine can hold it.
 *
 * It trusts no pass before it: everything is derived again from
 * the plan and its graph. A broken invariant is a bug in gpipe (GP_E_BUG); too
 * little memory (budget.c) is the user's to change.
 *
 * Each check may rely on those before it. All are linear, but for one sort, and for tasks that wait for
 * others through many between. */
#include <stdlib.h>
#include "compile/firing.h"
#include "compile/plan.h"

typedef struct verifying {
    gp_arena *a;
    const gp_plan *p;
    const gp_graph *g;
    gp_errs *errs;
    int *actor;                /* of each stage */
    int *segment_actor;        /* of each segment */
    int *writer;               /* of each ring: its task; -1: the launcher */
    gp_playing play;
    int *consumer, *reader;    /* of each ring: the last actor that was seen to be one */
    int *path, *passed;        /* waits_for: tasks whose deps it has not seen yet; of each task: the last search that came by, */
    int *walk;                 /* ... and how many there were */
} verifying;

#define BUG(v, at, ...) gp_fail((v)->errs, GP_E_BUG, (at), __VA_ARGS__)

static gp_loc nowhere(const verifying *v)
{
    return (gp_loc){ .file = v->g->file };
}

static gp_loc ring_at(const verifying *v, int ring)
{
    int b = v->p->ring[ring].buffer;
    return b < 0 ? nowhere(v) : v->g->buffer[b].at;
}

static const char *ring_name(const verifying *v, int ring)
{
    int b = v->p->ring[ring].buffer;
    return b < 0 ? "(frame infos)" : v->g->buffer[b].name;
}

static bool within(const int *index, int n, int least, int limit)
{
    for (int i = 0; i < n; i++)
        if (index[i] < least || index[i] >= limit)
            return false;
    return true;
}

/* ---- indices --------------------------------------------------------- */

static bool check_indices(const verifying *v)
{
    const gp_plan *p = v->p;
    for (int i = 0; i < p->nrings; i++) {
        const gp_ring *r = &p->ring[i];
        if (!within(&r->buffer, 1, -1, v->g->nbuffers) || !within(&r->pool, 1, 0, p->npools)
            || !within(&r->producer, 1, 0, p->nactors)
            || !within(&r->segment, 1, -1, p->nsegments)
            || !within(r->consumer, r->nconsumers, 0, p->nactors))
            return BUG(v, nowhere(v), "ring %d has an index out of range", i);
    }
    for (int i = 0; i < p->ntasks; i++) {
        const gp_task *t = &p->task[i];
        bool copy = t->op == GP_TASK_COPY_IN || t->op == GP_TASK_COPY_OUT || t->op == GP_TASK_COPY_PEER;
        if (!within(&t->stage, 1, copy ? -1 : 0, v->g->nstages)
            || !within(&t->segment, 1, t->op == GP_TASK_HOST ? -1 : 0, p->nsegments)
            || !within(t->in, t->nin, copy ? 0 : -1, p->nrings)
            || !within(t->out, t->nout, copy ? 0 : -1, p->nrings)
            || !within(&t->from_pool, 1, copy ? 0 : -1, p->npools)
            || !within(&t->to_pool, 1, copy ? 0 : -1, p->npools)
            || !within(&t->state, 1, -1, p->nextras) || !within(&t->table, 1, -1, p->nextras)
            || !within(&t->scratch, 1, -1, p->nextras) || !within(t->dep, t->ndeps, 0, i)
            || (!copy && !within(t->konst, t->nin, -1, p->nextras)))
            return BUG(v, nowhere(v), "task %d has an index out of range", i);
    }
    for (int i = 0; i < p->nsegments; i++) {
        const gp_segment *s = &p->segment[i];
        if (!within(s->task, s->ntasks, 0, p->ntasks) || !within(s->in, s->nin, 0, p->nrings)
            || !within(s->out, s->nout, 0, p->nrings)
            || !within(&s->info_host, 1, -1, p->nrings)
            || !within(&s->info_dev, 1, -1, p->nrings))
            return BUG(v, nowhere(v), "segment %d has an index out of range", i);
    }
    for (int i = 0; i < p->nactors; i++)
        if (!within(&p->actor[i].stage, 1, -1, v->g->nstages)
            || !within(&p->actor[i].segment, 1, -1, p->nsegments)
            || (p->actor[i].stage < 0) == (p->actor[i].segment < 0)
            || (p->actor[i].stage < 0) != (p->actor[i].kind == GP_ACTOR_SEGMENT))
            return BUG(v, nowhere(v), "actor %d is neither a stage nor a segment", i);
    return within(v->p->host_task, v->g->nstages, -1, p->ntasks)
        || BUG(v, nowhere(v), "a stage has a task out of range");
}

/* ---- tasks ----------------------------------------------------------- */

/* Each stage has one task, on its side; each segment has its own tasks, and
 * what a task waits for is there before it. */
static bool check_tasks(verifying *v)
{
    const gp_plan *p = v->p;
    const gp_graph *g = v->g;
    int *times = GP_NEW(v->a, int, g->nstages), *listed = GP_NEW(v->a, int, p->ntasks);
    for (int i = 0; i < p->nactors; i++) {
        gp_actor q = p->actor[i];
        if (q.kind == GP_ACTOR_HOST)
            v->actor[q.stage] = i;
        else
            v->segment_actor[q.segment] = i;
    }
    for (int k = 0; k < p->nsegments; k++)
        for (int i = 0, last = -1; i < p->segment[k].ntasks; last = p->segment[k].task[i++]) {
            int t = p->segment[k].task[i];
            if (p->task[t].segment != k || t <= last || listed[t]++)
                return BUG(v, nowhere(v), "segment %d lists task %d out of order", k, t);
        }
    for (int i = 0; i < p->ntasks; i++) {
        const gp_task *t = &p->task[i];
        for (int j = 0; j < t->ndeps; j++)
            if (t->segment < 0 || p->task[t->dep[j]].segment != t->segment)
                return BUG(v, nowhere(v), "task %d waits for one of another actor", i);
            else if (p->task[t->dep[j]].turn > t->turn)
                return BUG(v, nowhere(v), "a launch of several frames does task %d before one that it waits for", i);
        if (listed[i] != (t->segment >= 0))
            return BUG(v, nowhere(v), "task %d is in no segment", i);
        if (t->stage < 0)
            continue;
        const gp_stage *s = &g->stage[t->stage];
        if (times[t->stage]++ || s->device != (t->op == GP_TASK_STAGE)
            || s->device != (t->segment >= 0)
            || p->host_task[t->stage] != (s->device ? -1 : i))
            return BUG(v, s->at, "stage '%s' has a second task, or one on the wrong side",
                       s->name);
        if (s->device)
            v->actor[t->stage] = v->segment_actor[t->segment];
    }
    for (int i = 0; i < g->nstages; i++)
        if (times[i] != 1 || v->actor[i] < 0)
            return BUG(v, g->stage[i].at, "stage '%s' has no task", g->stage[i].name);
    for (int k = 0; k < p->nsegments; k++)
        if (v->segment_actor[k] < 0 || !p->segment[k].nin || !p->segment[k].ntasks)
            return BUG(v, nowhere(v), "segment %d is never run", k);
    return true;
}

/* Actors are in topological order of the frames' ways, but for those that close a cycle. So no way leads out of a
 * segment and back: segments are convex, and none waits for another that waits
 * for it. */
static bool check_convex(const verifying *v)
{
    for (int b = 0; b < v->g->nbuffers; b++) {
        const gp_buffer *buf = &v->g->buffer[b];
        for (int u = 0; buf->producer.stage >= 0 && u < buf->nuse; u++) {
            int from = v->actor[buf->producer.stage], to = v->actor[buf->use[u].stage];
            if (v->g->stage[buf->use[u].stage].closes)
                continue;
            if (from > to || (from == to && v->p->actor[from].kind == GP_ACTOR_HOST))
                return BUG(v, buf->at, "buffer '%s' leads back to an actor that made it",
                           buf->name);
        }
    }
    return true;
}

/* ---- progress -------------------------------------------------------- */

/* The plan goes on for ever. deepen.c refuses what would take longer. Where all stand still, what is full gets deeper, so
 * that the depth that is needed can be told. */
static bool check_progress(verifying *v)
{
    const gp_plan *p = v->p;
    int small = -1;                    /* the first ring that was too shallow */
    gp_playing *y = &v->play;
    *y = gp_play_begin(v->a, p);
    for (int i = 0; i < p->nrings; i++)
        y->depth[i] = p->ring[i].begins;
    for (uint64_t f = 1; f <= y->periods; f++)
        for (int full; (full = gp_play(y, f)) >= 0 || !gp_play_is_done(y, f);) {
            if (full < 0)
                return BUG(v, ring_at(v, y->lacks), "the pipeline would stand still: nothing fills buffer '%s'",
                           ring_name(v, y->lacks));
            y->depth[full] = (int)gp_play_needs(y, full);
            small = small < 0 ? full : small;
        }
    return small < 0
        || BUG(v, ring_at(v, small), "the pipeline would stand still at buffer '%s', which has depth %d and needs %d",
               ring_name(v, small), p->ring[small].begins, y->depth[small]);
}

/* ---- rings ----------------------------------------------------------- */

/* One writer each: a task of the producing actor, or for frame infos the
 * launcher. */
static bool check_writers(verifying *v)
{
    const gp_plan *p = v->p;
    int *writes = GP_NEW(v->a, int, p->nrings);
    for (int k = 0; k < p->nsegments; k++)
        if (p->segment[k].info_host >= 0)
            writes[p->segment[k].info_host]++;
    for (int i = 0; i < p->ntasks; i++) {
        const gp_task *t = &p->task[i];
        int actor = t->segment < 0 ? v->actor[t->stage] : v->segment_actor[t->segment];
        for (int j = 0; j < t->nout; j++) {
            if (t->out[j] < 0)
                continue;
            if (p->ring[t->out[j]].producer != actor)
                return BUG(v, ring_at(v, t->out[j]), "buffer '%s' is written by another actor "
                           "than its producer", ring_name(v, t->out[j]));
            writes[t->out[j]]++;
            v->writer[t->out[j]] = i;
        }
    }
    for (int i = 0; i < p->nrings; i++)
        if (writes[i] != 1)
            return BUG(v, ring_at(v, i), "buffer '%s' has a ring with %d writers",
                       ring_name(v, i), writes[i]);
    return true;
}

/* Does task `i` wait for `task`, or for one that does? Those before `task` do not. */
static bool waits_for(const verifying *v, int i, int task)
{
    bool found = false;
    int n = 0;
    for (v->path[n++] = i, v->passed[i] = ++*v->walk; n && !found;) {
        const gp_task *t = &v->p->task[v->path[--n]];
        for (int k = 0; k < t->ndeps; k++)
            found |= t->dep[k] == task;
        for (int k = 0; k < t->ndeps && !found; k++)
            if (t->dep[k] > task && v->passed[t->dep[k]] != *v->walk)
                v->passed[t->dep[k]] = *v->walk, v->path[n++] = t->dep[k];
    }
    return found;
}

/* What task `i` reads of `ring` is there: made in the same launch by a task it
 * waits for, or announced by the ring's counters. */
static bool check_read(const verifying *v, int i, int ring)
{
    const gp_plan *p = v->p;
    const gp_task *t = &p->task[i];
    const gp_ring *r = &p->ring[ring];
    int actor = t->segment < 0 ? v->actor[t->stage] : v->segment_actor[t->segment];
    v->reader[ring] = actor;
    if (t->stage >= 0 && gp_stage_circles_back(&v->g->stage[t->stage]) && r->producer == actor)
        return (t->turn == GP_TURN_IN && v->writer[ring] >= 0 && p->task[v->writer[ring]].turn == GP_TURN_IN)
            || BUG(v, ring_at(v, ring), "a launch of several frames does not make buffer '%s' before task %d needs it in the "
                   "next frame", ring_name(v, ring), i);
    if (r->producer == actor && t->segment >= 0
            ? v->writer[ring] < 0 || waits_for(v, i, v->writer[ring])
            : r->segment < 0 && v->consumer[ring] == actor)
        return true;
    return BUG(v, ring_at(v, ring), "task %d does not wait for buffer '%s'", i,
               ring_name(v, ring));
}

/* A stage's port is served by a ring or a constant of its buffer, on its side, or where it says that it writes. */
static bool check_port(const verifying *v, const gp_task *t, int buffer, int ring, int konst, bool output)
{
    const gp_plan *p = v->p;
    const gp_stage *s = &v->g->stage[t->stage];
    bool constant = buffer >= 0 && v->g->buffer[buffer].producer.stage < 0;
    if ((ring >= 0) != (buffer >= 0 && !constant) || (konst >= 0) != constant
        || (ring >= 0 && p->ring[ring].buffer != buffer)
        || (konst >= 0 && p->extra[konst].buffer != buffer))
        return BUG(v, s->at, "stage '%s' has another buffer at a port than was wired", s->name);
    if (konst >= 0 && p->extra[konst].managed)
        return !p->extra[konst].place.device || BUG(v, s->at, "managed memory is not on the host");
    bool device = ring >= 0 ? p->ring[ring].place.device
                : konst >= 0 ? p->extra[konst].place.device : s->device;
    if (device != (output ? gp_stage_makes_on_device(s) : gp_stage_takes_on_device(s)) && !p->unified)
        return BUG(v, s->at, "stage '%s' has a buffer on the other side", s->name);
    if (!s->device || !device || p->unified || (ring < 0 && konst < 0))
        return true;
    gp_place here = p->segment[t->segment].place, there = ring >= 0 ? p->ring[ring].place : p->extra[konst].place;
    bool same = there.index <= here.index && there.index + there.lanes >= here.index + here.lanes;
    if (ring >= 0)
        same = there.index == here.index && there.lanes == here.lanes && there.run == here.run;
    return same || BUG(v, s->at, "stage '%s' has a buffer on another device", s->name);
}

/* A peer copy moves a ring from devices to their peers, of whose slots there are as many. */
static bool check_peer_copy(const verifying *v, int i)
{
    const gp_plan *p = v->p;
    const gp_task *t = &p->task[i];
    const gp_ring *from = &p->ring[t->in[0]], *to = &p->ring[t->out[0]];
    bool same = t->nin == 1 && t->nout == 1 && from->pool == t->from_pool && to->pool == t->to_pool
             && from->buffer == to->buffer && from->bytes == to->bytes && from->depth == to->depth;
    bool peers = !p->unified && from->place.device && to->place.device && gp_are_peers(v->g, from->place, to->place)
              && to->segment == t->segment;
    return (same && peers) || BUG(v, ring_at(v, t->in[0]), "peer copy %d is between rings that differ", i);
}

/* What is mapped has nothing in its slots on the device: only one stage of the segment may read or write them. */
static bool check_mapped(const verifying *v, const gp_task *t)
{
    const gp_plan *p = v->p;
    const gp_segment *s = &p->segment[t->segment];
    for (int j = 0; j < t->nin; j++) {
        int ring = t->op == GP_TASK_COPY_IN ? t->out[j] : t->in[j], users = p->ring[ring].nconsumers;
        for (int i = 0; i < s->ntasks; i++) {
            const gp_task *u = &p->task[s->task[i]];
            for (int k = 0; u != t && k < u->nin + u->nout; k++)
                if ((k < u->nin ? u->in[k] : u->out[k - u->nin]) == ring)
                    users += u->stage < 0 ? 2 : 1;     /* no copy may */
        }
        if (users != 1)
            return BUG(v, ring_at(v, ring), "buffer '%s' is mapped, and is not for one stage alone", ring_name(v, ring));
    }
    return true;
}

/* A copy in or out moves all of one pool to the other side, which has the same layout. */
static bool check_copy(const verifying *v, int i, const int *rings_in)
{
    const gp_plan *p = v->p;
    const gp_task *t = &p->task[i];
    const gp_pool *from = &p->pool[t->from_pool], *to = &p->pool[t->to_pool];
    const gp_pool *host = t->op == GP_TASK_COPY_IN ? from : to;
    bool ok = t->nin == t->nout && t->nin > 0 && t->nin == rings_in[t->from_pool]
           && t->nin == rings_in[t->to_pool] && from->depth == to->depth
           && from->stride == to->stride && from->place.device == (t->op == GP_TASK_COPY_OUT)
           && to->place.device == (t->op == GP_TASK_COPY_IN) && host->pinned;
    for (int j = 0; ok && j < t->nin; j++) {
        const gp_ring *r = &p->ring[t->in[j]], *q = &p->ring[t->out[j]];
        ok = r->pool == t->from_pool && q->pool == t->to_pool && r->offset == q->offset
          && r->bytes == q->bytes && r->buffer == q->buffer;
    }
    if (!ok)
        return BUG(v, nowhere(v), "copy %d is between pools that differ", i);
    return t->copying != GP_COPY_MAPPED || check_mapped(v, t);
}

static bool check_task(const verifying *v, int i, const int *rings_in)
{
    const gp_plan *p = v->p;
    const gp_task *t = &p->task[i];
    for (int j = 0; j < t->nin; j++)
        if (t->in[j] >= 0 && !check_read(v, i, t->in[j]))
            return false;
    if (t->stage < 0)
        return t->op == GP_TASK_COPY_PEER ? check_peer_copy(v, i) : check_copy(v, i, rings_in);
    const gp_stage *s = &v->g->stage[t->stage];
    if (t->nin != s->nin || t->nout != s->nout)
        return BUG(v, s->at, "stage '%s' has a task with other ports", s->name);
    for (int j = 0; j < s->nin; j++)
        if (!check_port(v, t, s->in[j], t->in[j], t->konst[j], false))
            return false;
    for (int j = 0; j < s->nout; j++)
        if (!check_port(v, t, s->out[j], t->out[j], -1, true))
            return false;
    if (!s->device || !s->frame_info)
        return true;
    int info = p->segment[t->segment].info_dev;
    return info < 0 ? BUG(v, s->at, "stage '%s' has no frame infos", s->name)
                    : check_read(v, i, info);
}

/* Actor by actor, with a mark at the rings that the actor consumes: it reads
 * these, and no others. */
static bool check_wiring(const verifying *v)
{
    const gp_plan *p = v->p;
    int *rings_in = GP_NEW(v->a, int, p->npools);
    for (int i = 0; i < p->nrings; i++)
        rings_in[p->ring[i].pool] += p->ring[i].before < 0;
    for (int i = 0; i < p->nactors; i++) {
        gp_actor q = p->actor[i];
        int n = q.kind == GP_ACTOR_HOST ? 1 : p->segment[q.segment].ntasks;
        const int *task = q.kind == GP_ACTOR_HOST ? &p->host_task[q.stage] : p->segment[q.segment].task;
        const int *from = &v->play.read.v[v->play.read.from[i]], *to = &v->play.read.v[v->play.read.from[i + 1]];
        for (const int *r = from; r < to; r++) {
            if (v->consumer[*r] == i)
                return BUG(v, ring_at(v, *r), "buffer '%s' has a consumer twice", ring_name(v, *r));
            v->consumer[*r] = i;
        }
        for (int k = 0; k < n; k++)
            if (!check_task(v, task[k], rings_in))
                return false;
        for (const int *r = from; r < to; r++)
            if (v->reader[*r] != i)
                return BUG(v, ring_at(v, *r), "buffer '%s' has a consumer that does not read it",
                           ring_name(v, *r));
    }
    return true;
}

/* ---- depths and memory ----------------------------------------------- */

/* No more than `depth` frames of a segment are in flight, so a slot inside it
 * is not written while an earlier frame uses it, if there are that many; slots
 * with counters are guarded by these. Ranges of slots repeat with `period`. */
static bool check_depth(const verifying *v, int ring, const gp_segment *s)
{
    int d = v->p->ring[ring].depth, k = s->depth;
    while (k < d && k <= s->period)
        k *= 2;
    return (k == d && d <= s->period)
        || BUG(v, ring_at(v, ring), "buffer '%s' has depth %d, its segment %d", ring_name(v, ring),
               d, s->depth);
}

/* The rings that a segment says it touches are those that it does. */
static bool check_list(const verifying *v, int segment, const int *ring, int n, const gp_ring_lists *l,
                       int actor)
{
    const int *touched = &l->v[l->from[actor]];
    bool ok = n == l->from[actor + 1] - l->from[actor];
    for (int i = 0; ok && i < n; i++)
        ok = ring[i] == touched[i];
    if (!ok)
        return BUG(v, nowhere(v), "segment %d does not list the rings it touches", segment);
    for (int i = 0; i < n; i++)
        if (v->p->segment[segment].regroups < 0 && !check_depth(v, ring[i], &v->p->segment[segment]))
            return false;
    return true;
}

static bool check_depths(const verifying *v)
{
    const gp_plan *p = v->p;
    for (int k = 0; k < p->nsegments; k++) {
        const gp_segment *s = &p->segment[k];
        if (s->depth < 1 || s->period < s->depth || s->streams < 1 || s->streams > s->depth
            || s->batch < 1 || s->batch > s->depth || (s->batch & (s->batch - 1))
            || (s->place.lanes > 1 && s->place.run % s->batch))
            return BUG(v, nowhere(v), "segment %d has depth %d, period %d, %d streams, batch %d",
                       k, s->depth, s->period, s->streams, s->batch);
        int q = v->segment_actor[k];
        for (int i = 0; i < s->ntasks; i++) {
            int st = p->task[s->task[i]].stage;
            if (st >= 0 && (v->g->stage[st].regroups ? st : -1) != s->regroups)
                return BUG(v, v->g->stage[st].at, "stage '%s' regroups frames beside others in segment %d",
                           v->g->stage[st].name, k);
        }
        if (!check_list(v, k, s->in, s->nin, &v->play.read, q)
            || !check_list(v, k, s->out, s->nout, &v->play.made, q))
            return false;
    }
    for (int i = 0; i < p->nrings; i++) {
        const gp_ring *r = &p->ring[i];
        if (r->place.lanes < 1 || r->place.run < 1 || (r->place.lanes > 1 && r->depth % (r->place.lanes * r->place.run)))
            return BUG(v, ring_at(v, i), "buffer '%s' has a ring of depth %d in %d lanes, %d frames each", ring_name(v, i),
                       r->depth, r->place.lanes, r->place.run);
        if (r->depth < 1 || r->depth != p->pool[r->pool].depth || r->begins < 1 || r->begins > r->depth)
            return BUG(v, ring_at(v, i), "buffer '%s' has a ring of depth %d", ring_name(v, i),
                       r->depth);
        if (r->segment >= 0 && p->segment[r->segment].regroups < 0 && !check_depth(v, i, &p->segment[r->segment]))
            return false;
    }
    return true;
}

static int by_offset(const void *x, const void *y)
{
    const gp_ring *a = *(const gp_ring *const *)x, *b = *(const gp_ring *const *)y;
    return a->pool != b->pool ? (a->pool < b->pool ? -1 : 1)
         : a->offset != b->offset ? (a->offset < b->offset ? -1 : 1) : 0;
}

/* A ring has the slots of another where a stage inside a segment carries that: stages of the segment alone read it, and
 * no more than half as many frames as slots are in flight, so that none is made in a slot that an earlier frame reads. */
static bool check_before(const verifying *v, int ring)
{
    const gp_plan *p = v->p;
    const gp_ring *r = &p->ring[ring], *of = r->before < p->nrings ? &p->ring[r->before] : r;
    const gp_task *t = &p->task[v->writer[ring] < 0 ? 0 : v->writer[ring]];
    bool ok = of != r && of->before < 0 && r->segment >= 0 && r->nconsumers == 0 && of->depth >= 2 * p->segment[r->segment].depth
           && of->depth == r->depth && of->pool == r->pool && of->offset == r->offset && of->bytes == r->bytes
           && t->op == GP_TASK_STAGE && gp_stage_circles_back(&v->g->stage[t->stage]) && t->segment == r->segment
           && t->in[0] == r->before && t->out[0] == ring;
    for (int i = 0; ok && i < p->ntasks; i++)
        for (int k = 0; k < p->task[i].nin; k++)
            ok &= p->task[i].in[k] != ring || (p->task[i].op == GP_TASK_STAGE && p->task[i].segment == r->segment);
    return ok || BUG(v, ring_at(v, ring), "buffer '%s' has the slots of one that it cannot share", ring_name(v, ring));
}

/* Stages of a segment that ask for frame infos. */
static int count_infos(const verifying *v, int segment)
{
    const gp_segment *s = &v->p->segment[segment];
    int n = 0;
    for (int i = 0; i < s->ntasks; i++) {
        const gp_task *t = &v->p->task[s->task[i]];
        n += t->op == GP_TASK_STAGE && v->g->stage[t->stage].frame_info;
    }
    return n;
}

static bool check_memory(const verifying *v)
{
    const gp_plan *p = v->p;
    const gp_ring **sorted = GP_NEW(v->a, const gp_ring *, p->nrings);
    int n = 0;
    for (int i = 0; i < p->nrings; i++) {
        const gp_buffer *b = p->ring[i].buffer < 0 ? NULL : &v->g->buffer[p->ring[i].buffer];
        if (b && b->state && b->state != b->name)
            continue;
        if (p->ring[i].before < 0)
            sorted[n++] = &p->ring[i];
        else if (!check_before(v, i))
            return false;
    }
    if (n)
        qsort(sorted, (size_t)n, sizeof *sorted, by_offset);
    for (int i = 0; i < n; i++) {
        const gp_ring *r = sorted[i], *next = i + 1 < n ? sorted[i + 1] : NULL;
        const gp_pool *q = &p->pool[r->pool];
        size_t end = next && next->pool == r->pool ? next->offset : q->stride;
        size_t need = r->buffer < 0 ? gp_info_bytes(count_infos(v, r->segment))
                                    : gp_bytes(&v->g->buffer[r->buffer].type);
        bool managed = r->buffer >= 0 && r->place.device && !p->unified && v->g->buffer[r->buffer].managed;
        if (q->managed != managed)
            return BUG(v, ring_at(v, (int)(r - p->ring)), "the slots of buffer '%s' are in other memory than was said",
                       ring_name(v, (int)(r - p->ring)));
        if (r->bytes < need || gp_size_add(r->offset, r->bytes) > end || r->offset % 256
            || q->stride % 256 || q->place.device != r->place.device || q->place.index != r->place.index
            || q->place.lanes != r->place.lanes || q->place.run != r->place.run)
            return BUG(v, ring_at(v, (int)(r - p->ring)), "the slots of buffer '%s' overlap others",
                       ring_name(v, (int)(r - p->ring)));
    }
    for (int i = 0; i < p->ntasks; i++) {
        const gp_task *t = &p->task[i];
        const gp_extra *e = t->scratch < 0 ? NULL : &p->extra[t->scratch];
        if (e && e->bytes < gp_size_mul(e->stride, (size_t)(p->segment[t->segment].depth / e->place.lanes)))
            return BUG(v, v->g->stage[t->stage].at, "stage '%s' has too little scratch",
                       v->g->stage[t->stage].name);
    }
    return true;
}

/* ---- states ----------------------------------------------------------- */

/* Of the state in a pool: the tasks that carries it and that used it last, plus 1; 0: none yet. */
typedef struct users { int carry, last; } users;

/* Those that use a state are of one segment, and each waits for the one before; the stage that carries it is the first. */
static bool check_users(const verifying *v, int task, users *of)
{
    const gp_plan *p = v->p;
    const gp_task *t = &p->task[task];
    const gp_stage *st = t->stage < 0 ? NULL : &v->g->stage[t->stage];
    for (int i = 0; i < t->nin + t->nout; i++) {
        int ring = i < t->nin ? t->in[i] : t->out[i - t->nin], b = ring < 0 ? -1 : p->ring[ring].buffer;
        if (b < 0 || !v->g->buffer[b].state || of[p->ring[ring].pool].last == task + 1)
            continue;
        users *u = &of[p->ring[ring].pool];
        bool first = st && gp_is_carry(st) && v->g->buffer[st->out[0]].state == v->g->buffer[b].state;
        if (first ? u->last || !gp_stage_circles_back(st)
                  : !u->carry || t->op != GP_TASK_STAGE || t->segment != p->task[u->carry - 1].segment
                    || !waits_for(v, task, u->last - 1) || !st->circles || t->turn != GP_TURN_IN)
            return BUG(v, ring_at(v, ring), "stages that use the state '%s' do not wait for each other", v->g->buffer[b].state);
        u->carry = first ? task + 1 : u->carry, u->last = task + 1;
    }
    return true;
}

/* All that a state is has the one slot of a pool, in which nothing else is. */
static bool check_states(const verifying *v)
{
    const gp_plan *p = v->p;
    const char **of = GP_NEW(v->a, const char *, p->npools);
    for (int i = 0; i < p->nrings; i++) {
        const gp_ring *r = &p->ring[i];
        const char *state = r->buffer < 0 ? NULL : v->g->buffer[r->buffer].state;
        if (p->pool[r->pool].one != (state != NULL) || (state && (r->segment < 0 || r->offset || r->nconsumers))
            || (of[r->pool] && of[r->pool] != state))
            return BUG(v, ring_at(v, i), "buffer '%s' is not in the place of its state", ring_name(v, i));
        of[r->pool] = state;
    }
    users *by = GP_NEW(v->a, users, p->npools);
    for (int i = 0; i < p->ntasks; i++)
        if (!check_users(v, i, by))
            return false;
    for (int q = 0; q < p->npools; q++) {
        const gp_stage *first = by[q].carry ? &v->g->stage[p->task[by[q].carry - 1].stage] : NULL;
        if (first && (by[q].last == by[q].carry || first->last != p->task[by[q].last - 1].stage))
            return BUG(v, first->at, "the state '%s' is not carried behind the last stage that uses it", of[q]);
    }
    return true;
}

static bool is_behind(const verifying *v, int i, int task)
{
    return i == task || waits_for(v, i, task);
}

/* Does all that task `i` keeps in order come behind task `carry`, and before what that carries to the next frame is made? */
static bool is_within(const verifying *v, int i, int carry)
{
    const gp_plan *p = v->p;
    bool ok = i != carry && is_behind(v, gp_task_passer(p, carry), gp_task_passer(p, i));
    if (!gp_task_is_nothing(p, &p->task[i]))
        return ok && waits_for(v, i, carry);
    for (int k = 0; k < p->ntasks && ok; k++)
        for (int d = 0; d < p->task[k].ndeps; d++)
            ok &= p->task[k].dep[d] != i || waits_for(v, k, carry);
    return ok;
}

/* An order that is left out follows from one that is kept. */
static bool check_orders(const verifying *v)
{
    const gp_plan *p = v->p;
    for (int i = 0; i < p->ntasks; i++) {
        const gp_task *t = &p->task[i];
        bool ok = !t->follows;
        for (int k = 0; k < p->ntasks && !ok; k++) {
            const gp_task *c = &p->task[k];
            ok = c->segment == t->segment && c->stage >= 0 && gp_stage_circles_back(&v->g->stage[c->stage]) && !c->follows
              && is_within(v, i, k);
        }
        if (!ok)
            return BUG(v, nowhere(v), "nothing keeps the frames of task %d in order", i);
    }
    return true;
}

/* ---- the pass --------------------------------------------------------- */

static bool verify(verifying *v, const gp_machine *m)
{
    const gp_plan *p = v->p;
    v->actor = gp_nones(v->a, v->g->nstages), v->segment_actor = gp_nones(v->a, p->nsegments);
    v->writer = gp_nones(v->a, p->nrings), v->consumer = gp_nones(v->a, p->nrings), v->reader = gp_nones(v->a, p->nrings);
    v->path = GP_NEW(v->a, int, p->ntasks), v->passed = GP_NEW(v->a, int, p->ntasks), v->walk = GP_NEW(v->a, int, 1);
    return check_indices(v) && check_tasks(v) && check_convex(v) && check_progress(v)
        && check_writers(v) && check_wiring(v) && check_depths(v) && check_memory(v) && check_states(v) && check_orders(v)
        && gp_budgets(v->p, m, v->errs);
}

/* Running out of memory for the checks ends them. */
static bool guarded(verifying *v, const gp_machine *m)
{
    GP_IF_OOM(v->a)
        return gp_fail(v->errs, GP_E_RESOURCE, nowhere(v), "out of memory");
    return verify(v, m);
}

bool gp_verify(const gp_plan *p, const gp_machine *m, gp_errs *errs)
{
    gp_arena a = { 0 };
    verifying v = { .a = &a, .p = p, .g = p->graph, .errs = errs };
    bool ok = guarded(&v, m);
    gp_arena_free(&a);
    return ok;
}
