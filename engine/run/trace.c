/* trace.c - the tracks of a traced run, see trace.h.
 *
 * All memory is taken before frame 0, and is the same for a short run and a run of
 * weeks: TRACE_BYTES for all tracks together. */
#include "run/segment.h"
#include "run/trace.h"

enum { TRACE_BYTES = 64 << 20, EVENTS_MOST = 1 << 16, EVENTS_LEAST = 1 << 8 };

static void put(gp_track *t, gp_event e)
{
    uint64_t k = atomic_load_explicit(&t->n, memory_order_relaxed);
    t->event[k & t->mask] = e;
    atomic_store_explicit(&t->n, k + 1, memory_order_release);
}

void gp_trace_slice(gp_track *t, gp_trace_what what, const char *name, int64_t start, int64_t end,
                    uint64_t first, int n)
{
    if (t)
        put(t, (gp_event){ start, end, name, NULL, first, n, what });
}

/* The launch's first frame, from 1 on; its actor; the logarithm of its number of frames. */
enum { ACTOR_BITS = 16, SIZE_BITS = 8 };

uint64_t gp_trace_tag(const gp_actorrt *p, uint64_t first, int n)
{
    return (first + 1) << (ACTOR_BITS + SIZE_BITS) | ((uint64_t)p->index & 0xffff) << SIZE_BITS
        | (uint64_t)__builtin_ctz((unsigned)n);
}

void gp_trace_activity(void *arg, const gp_activity *a)
{
    gp_run *run = arg;
    int actor = a->tag >> SIZE_BITS & 0xffff;
    gp_segmentrt *s = actor < run->plan->nactors ? run->actor[actor].seg : NULL;
    if (!run->trace || !s || a->label >= s->nparts)
        return;
    const gp_taskrt *part = &s->part[a->label];
    gp_track *t = part->stage ? s->kernel_track : s->copy_track[0][part->engine];
    put(t, (gp_event){
        a->start, a->end, part->stage ? part->stage->name : gp_engine_name(part->engine),
        part->stage ? a->name : NULL, (a->tag >> (ACTOR_BITS + SIZE_BITS)) - 1,
        1 << (a->tag & 0xff), GP_TRACE_COPY_IN + (int)part->engine });
}

const char *gp_engine_name(gp_engine e)
{
    static const char *const name[] = {
        [GP_ENGINE_COPY_IN] = "copy in", [GP_ENGINE_COMPUTE] = "compute",
        [GP_ENGINE_COPY_OUT] = "copy out", [GP_ENGINE_COPY_PEER] = "peer copy",
    };
    return name[e];
}

/* The next track of the trace; NULL: it is only counted. */
static gp_track *add(gp_run *run, int *n, uint64_t events, const gp_actorrt *p, int device,
                     const char *name)
{
    int i = (*n)++;
    if (!events)
        return NULL;
    gp_track *t = &run->trace->track[i];
    t->name = name, t->actor = p, t->device = device, t->mask = events - 1;
    t->event = GP_NEW(&run->arena, gp_event, events);
    return t;
}

/* Those of what a segment does on each of its devices: a track for each copy engine, one for its
 * kernels, one for each stream. */
static void add_device(gp_run *run, gp_actorrt *p, int *n, uint64_t events)
{
    gp_arena *a = &run->arena;
    gp_segmentrt *s = p->seg;
    int lanes = p->segment->place.lanes;
    s->copy_track = gp_alloc(a, sizeof *s->copy_track * (size_t)lanes);
    for (int k = 0; k < lanes * GP_ENGINES; k++) {
        int l = k / GP_ENGINES, e = k % GP_ENGINES, i = 0;
        while (i < s->nparts && (s->part[i].stage || (int)s->part[i].engine != e))
            i++;
        if (i == s->nparts)
            continue;
        gp_track *t = add(run, n, events, p, s->lane[l].device,
                          events ? gp_format(a, "%s of %s", gp_engine_name((gp_engine)e), p->name) : NULL);
        if (events)
            s->copy_track[l][e] = t;
    }
    if (run->watched) {
        gp_track *t = add(run, n, events, p, s->lane[0].device,
                          events ? gp_format(a, "kernels of %s", p->name) : NULL);
        if (events)
            s->kernel_track = t, t->overlap = true;
    }
    if (events)
        s->stream_track = GP_NEW(a, gp_track *, p->segment->streams * lanes);
    for (int i = 0; i < p->segment->streams * lanes; i++) {
        gp_track *t = add(run, n, events, p, s->lane[i / p->segment->streams].device,
                          events ? gp_format(a, "stream %d of %s", i % p->segment->streams + 1, p->name) : NULL);
        if (events)
            s->stream_track[i] = t;
    }
}

/* Those of one actor: a track for each worker or the launcher, one for its moves, and those
 * of the device. With `events` 0 they are counted. */
static void add_actor(gp_run *run, gp_actorrt *p, int *n, uint64_t events)
{
    gp_arena *a = &run->arena;
    bool host = p->kind == GP_ACTOR_HOST;
    int workers = host ? p->stage->workers : 1;
    gp_track **track = events ? GP_NEW(a, gp_track *, workers) : NULL;
    for (int w = 0; w < workers; w++) {
        const char *name = !events ? NULL : !host ? gp_format(a, "%s launcher", p->name)
            : workers > 1 ? gp_format(a, "%s %d", p->name, w + 1) : p->name;
        gp_track *t = add(run, n, events, p, -1, name);
        if (track)
            track[w] = t;
    }
    gp_track *moves = add(run, n, events, p, -1, NULL);
    if (events)
        p->track = track, p->moves = moves;
    if (!host)
        add_device(run, p, n, events);
}

void gp_trace_open(gp_run *run)
{
    int n = 0;
    if (!run->options.trace_ns)
        return;
    for (int i = 0; i < run->plan->nactors; i++)
        add_actor(run, &run->actor[i], &n, 0);
    uint64_t events = EVENTS_MOST;
    while (events > EVENTS_LEAST && events * (uint64_t)n * sizeof(gp_event) > TRACE_BYTES)
        events /= 2;
    run->trace = GP_NEW(&run->arena, gp_trace, 1);
    run->trace->track = GP_NEW(&run->arena, gp_track, n);
    for (int i = 0; i < run->plan->nactors; i++)
        add_actor(run, &run->actor[i], &run->trace->ntracks, events);
}
