/* trace_json.c - what a traced run kept, as Chrome trace events: for Perfetto
 * (ui.perfetto.dev), chrome://tracing and the page of a report. Format: the "Trace
 * Event Format" document of the Chromium project.
 *
 *   X       a slice: a track is a thread of process 1 (host), or 2, 3, ... (devices); of a run in several processes,
 *           of process rank + 1
 *   s t f   arrows that follow a frame from slice to slice; of every frame, or with
 *           launches of n frames of each n-th
 *   C       frames held in a buffer, for each of its readers
 *
 * A frame has a number in a stretch of the pipeline: up to where frames are regrouped, and from there on another
 * one, as from where on they are no longer shared out among ranks. Where there are several stretches each slice says of
 * which it is, by a buffer. Of frames that are shared out it has every `step`-th, from `frame` on.
 *
 * All tracks begin at the same time: from when on each of them has all its events. They
 * are copied first, since in a run that is stuck some thread may still go on. */
#include <stdlib.h>
#include <string.h>
#include "base/json.h"
#include "run/pipeline.h"
#include "report/report.h"
#include "run/trace.h"

/* A slice that frames go through. */
typedef struct placed {
    const gp_event *event;
    int pid, tid;
    int stretch;
    uint64_t frame;            /* the one that arrows follow */
} placed;

typedef struct stretch {
    const char *buffer;
    uint64_t step;             /* arrows follow each step-th frame */
} stretch;

typedef struct kept {
    const gp_run *run;
    const gp_trace_part *part;
    int64_t from;              /* what ended before is left out */
    struct { gp_event *event; size_t n; bool lost; } *track;       /* as run->trace->track */
    size_t events;             /* of all tracks */
    int *stretch_of;           /* of each actor */
    stretch *stretch; int nstretches;
    placed *slice; size_t n;
} kept;

enum { HOST = 1, DEVICE = 2 };         /* the first one */

static int process_of(const kept *x, const gp_track *t)
{
    return x->part->ranks > 1 ? HOST + x->part->rank : t->device < 0 ? HOST : DEVICE + t->device;
}

/* Events that may have been overwritten while they were copied are left out. */
static bool copy_tracks(kept *x)
{
    const gp_trace *t = x->run->trace;
    if (!(x->track = calloc((size_t)t->ntracks + 1, sizeof *x->track)))
        return false;
    for (int i = 0; i < t->ntracks; i++) {
        const gp_track *from = &t->track[i];
        uint64_t n = atomic_load_explicit(&from->n, memory_order_acquire);
        uint64_t first = n > from->mask ? n - from->mask : 0;
        gp_event *to = malloc((n - first + 1) * sizeof *to);
        if (!(x->track[i].event = to))
            return false;
        for (uint64_t k = first; k < n; k++)
            to[k - first] = from->event[k & from->mask];
        uint64_t now = atomic_load(&from->n), whole = now > from->mask ? now - from->mask : 0;
        uint64_t gone = whole < first ? 0 : whole < n ? whole - first : n - first;
        memmove(to, to + gone, (n - first - gone) * sizeof *to);
        x->track[i].n = n - first - gone, x->track[i].lost = first + gone > 0;
        x->events += x->track[i].n;
    }
    return true;
}

static bool carries(const gp_event *e)
{
    return e->what != GP_TRACE_WAIT && e->what != GP_TRACE_MOVE;
}

static int by_time(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int by_start(const void *a, const void *b)
{
    const placed *x = a, *y = b;
    int by = (x->event->start > y->event->start) - (x->event->start < y->event->start);
    return by ? by : (x->event->end > y->event->end) - (x->event->end < y->event->end);
}

static int by_frame(const void *a, const void *b)
{
    const placed *x = a, *y = b;
    int by = (x->frame > y->frame) - (x->frame < y->frame);
    by = by ? by : x->stretch - y->stretch;
    return by ? by : by_start(a, b);
}

/* From when on: the last `keep` ns, what every track still has, and `most` slices. */
static bool find_start(kept *x, int64_t end, int64_t keep, size_t most)
{
    size_t k = 0;
    x->from = end - keep;
    for (int i = 0; i < x->run->trace->ntracks; i++)
        if (x->track[i].lost && x->track[i].n && x->track[i].event->start > x->from)
            x->from = x->track[i].event->start;
    if (!most || x->events <= most)
        return true;
    int64_t *time = malloc(x->events * sizeof *time);
    if (!time)
        return false;
    for (int i = 0; i < x->run->trace->ntracks; i++)
        for (size_t e = 0; e < x->track[i].n; e++)
            if (x->track[i].event[e].what != GP_TRACE_MOVE)
                time[k++] = x->track[i].event[e].end;
    qsort(time, k, sizeof *time, by_time);
    if (k > most && time[k - most] > x->from)
        x->from = time[k - most];
    free(time);
    return true;
}

/* Is firing k of it about frame k of its inputs; of its outputs? */
static bool keeps_number(const gp_actorrt *p, bool inputs)
{
    return !p->regroup || (inputs ? p->regroup->step == 1 && p->regroup->repeat == 1
                                  : p->regroup->make == 1 && p->regroup->every == 1);
}

/* Actors are in the order of frames: the first of a stretch stands for it. */
static bool find_stretches(kept *x)
{
    int n = x->run->plan->nactors;
    x->stretch_of = malloc((size_t)n * sizeof *x->stretch_of);
    x->stretch = malloc((size_t)n * sizeof *x->stretch);
    if (!x->stretch_of || !x->stretch)
        return false;
    for (int i = 0; i < n; i++)
        x->stretch_of[i] = i;
    for (int i = 0; i < n; i++) {
        const gp_actorrt *p = &x->run->actor[i];
        for (int k = 0; k < p->nin; k++) {
            const gp_actorrt *from = &x->run->actor[p->in[k].ring->ring->producer];
            int a = gp_root(x->stretch_of, i), b = gp_root(x->stretch_of, from->index);
            if (keeps_number(p, true) && keeps_number(from, false) && p->shared == from->shared)
                x->stretch_of[a < b ? b : a] = a < b ? a : b;
        }
    }
    for (int i = 0; i < n; i++)
        x->stretch_of[i] = gp_root(x->stretch_of, i);
    for (int i = 0; i < n; i++) {
        const gp_actorrt *p = &x->run->actor[i];
        int first = x->stretch_of[i];
        if (first < i) {
            x->stretch_of[i] = x->stretch_of[first];
            continue;
        }
        bool of_input = p->nin && keeps_number(p, true)
            && p->shared == x->run->actor[p->in[0].ring->ring->producer].shared;
        x->stretch[x->nstretches] = (stretch){ (of_input || !p->nout ? p->in[0].ring : p->out[0])->buffer->name, 1 };
        x->stretch_of[i] = x->nstretches++;
    }
    return true;
}

/* Microseconds by the clock that all ranks share. */
static double us(const kept *x, int64_t t)
{
    return (double)(gp_clock_other(&x->part->clock, t) - x->part->zero) * 1e-3;
}

static double us_between(const kept *x, int64_t start, int64_t end)
{
    const gp_clock *c = &x->part->clock;
    return (double)(gp_clock_other(c, end) - gp_clock_other(c, start)) * 1e-3;
}

/* ---- members --------------------------------------------------------- */

void gp_trace_head(gp_json *j, const char *ph, int pid, int tid)
{
    gp_json_put(j, "{ph: %s, pid: %d", ph, pid);
    if (tid)
        gp_json_int(j, "tid", tid);
}

void gp_trace_name(gp_json *j, int pid, int tid, const char *what, const char *name)
{
    gp_trace_head(j, "M", pid, tid);
    gp_json_put(j, "name: %s, args: {name: %s}}", what, name);
}

static void slice(gp_json *j, const kept *x, const gp_track *track, const gp_event *e, int tid)
{
    static const char *const cats[] = {
        "stage", "wait", "launch", "copy in", "compute", "copy out", "peer copy",
    };
    gp_trace_head(j, "X", process_of(x, track), tid);
    gp_json_put(j, "ts: %g, dur: %g, name: %s, cat: %s, args: {frame: %ju, frames: %d", us(x, e->start),
                us_between(x, e->start, e->end), e->name, cats[e->what], gp_actor_number(track->actor, e->first), e->n);
    if (x->part->ranks > 1 && track->actor->shared)
        gp_json_int(j, "step", x->part->ranks);
    if (x->nstretches > 1)
        gp_json_str(j, "of", x->stretch[x->stretch_of[track->actor->index]].buffer);
    if (e->kernel)
        gp_json_str(j, "kernel", e->kernel);
    gp_json_put(j, "}}");
}

/* Slices of a track that overlap go to lanes beside each other. */
typedef struct lanes { int64_t *until; int n, cap; } lanes;

/* Which one is free for e, perhaps a new one? -1: no memory. */
static int lane_of(lanes *l, const gp_event *e)
{
    int lane = 0;
    while (lane < l->n && l->until[lane] > e->start)
        lane++;
    if (!GP_ROOM(l->until, lane, l->cap))
        return -1;
    l->n += lane == l->n;
    l->until[lane] = e->end;
    return lane;
}

static void name_track(gp_json *j, int pid, int tid, const char *name)
{
    gp_trace_name(j, pid, tid, "thread_name", name);
    gp_trace_head(j, "M", pid, tid);
    gp_json_put(j, "name: %s, args: {sort_index: %d}}", "thread_sort_index", tid);
}

/* Track `i` as threads from `tid` on; returns the next free one, 0: no memory. */
static int add_track(gp_json *j, kept *x, int i, int tid)
{
    const gp_track *track = &x->run->trace->track[i];
    int pid = process_of(x, track), named = 0;
    bool on_one = track->device >= 0 && x->part->ranks > 1 && x->run->ndevs > 1;     /* of the devices of a rank */
    char name[300];
    snprintf(name, sizeof name, "%s%s%s", on_one ? x->run->graph->device[track->device].name : "", on_one ? ": " : "",
             track->name);
    lanes l = { NULL, 0, 0 };
    for (size_t k = 0; k < x->track[i].n; k++) {
        const gp_event *e = &x->track[i].event[k];
        if (e->end < x->from)
            continue;
        int lane = track->overlap ? lane_of(&l, e) : 0;
        if (lane < 0) {
            free(l.until);
            return 0;
        }
        while (named <= lane)
            name_track(j, pid, tid + named++, on_one ? name : track->name);
        slice(j, x, track, e, tid + lane);
        if (carries(e))
            x->slice[x->n++] = (placed){ e, pid, tid + lane,
                                         x->stretch_of[track->actor->index], 0 };
    }
    free(l.until);
    return tid + named;
}

static bool add_tracks(gp_json *j, kept *x)
{
    const gp_trace *t = x->run->trace;
    if (!(x->slice = malloc((x->events + 1) * sizeof *x->slice)))
        return false;
    gp_trace_name(j, HOST + x->part->rank, 0, "process_name", x->part->ranks > 1 ? x->part->name : "host");
    for (int d = 0; d < x->run->ndevs && x->part->ranks == 1; d++)
        gp_trace_name(j, DEVICE + d, 0, "process_name", x->run->ndevs > 1 ? x->run->graph->device[d].name : "device");
    for (int i = 0, tid = 1; i < t->ntracks && tid; i++)
        if (t->track[i].name && !(tid = add_track(j, x, i, tid)))
            return false;
    return true;
}

/* Keeps the slices with a frame that arrows follow: each launch of n frames has one. */
static void follow(kept *x)
{
    size_t n = 0;
    for (size_t i = 0; i < x->n; i++) {
        uint64_t *step = &x->stretch[x->slice[i].stretch].step;
        while (*step < (uint64_t)x->slice[i].event->n)
            *step *= 2;
    }
    for (size_t i = 0; i < x->n; i++) {
        placed s = x->slice[i];
        uint64_t step = x->stretch[s.stretch].step;
        s.frame = (s.event->first + step - 1) / step * step;
        if (s.frame < s.event->first + (uint64_t)s.event->n)
            x->slice[n++] = s;
    }
    x->n = n;
    qsort(x->slice, n, sizeof *x->slice, by_frame);
}

static void arrow(gp_json *j, const kept *x, const placed *s, const char *ph)
{
    gp_trace_head(j, ph, s->pid, s->tid);
    gp_json_put(j, "ts: %g, id: %jd, name: %s, cat: %s", us(x, s->event->start),
                ((int64_t)s->frame * x->nstretches + s->stretch) * x->part->ranks + x->part->rank, "frame", "frame");
    if (*ph == 'f')
        gp_json_str(j, "bp", "e");
    gp_json_close(j, '}');
}

static bool is_same(const placed *a, const placed *b)
{
    return a->frame == b->frame && a->stretch == b->stretch;
}

static void add_arrows(gp_json *j, kept *x)
{
    follow(x);
    for (size_t i = 0; i < x->n; i++) {
        const placed *s = &x->slice[i];
        bool first = !i || !is_same(s - 1, s), last = i + 1 == x->n || !is_same(s, s + 1);
        if (!first || !last)
            arrow(j, x, s, first ? "s" : last ? "f" : "t");
    }
}

/* The frames that p had made when it had fired k times; `end`: or more, where the last few made one. */
static uint64_t made_by(const gp_actorrt *p, uint64_t k, bool end)
{
    return p->regroup ? gp_frames_made(p->regroup, k) + (end && atomic_load(&p->flushed)) : k;
}

/* How many frames reader `l` held, from when its frames and its producer's moved on. */
static void add_counter(gp_json *j, const kept *x, const gp_actorrt *to, const gp_ring_end *l,
                        const char *name)
{
    const gp_track *all = x->run->trace->track;
    const gp_actorrt *from = &x->run->actor[l->ring->ring->producer];
    size_t p = (size_t)(from->moves - all);
    size_t g = (size_t)(to->moves - all);
    const gp_event *put = x->track[p].event, *put_end = put + x->track[p].n;
    const gp_event *got = x->track[g].event, *got_end = got + x->track[g].n;
    uint64_t made = put < put_end ? made_by(from, put->first, false) : 0;
    uint64_t used = got < got_end ? gp_actor_used(to, got->first) : 0;
    for (bool over = false; !over && (put < put_end || got < got_end);) {
        bool put_next = got == got_end || (put < put_end && put->start <= got->start);
        const gp_event *e = put_next ? put++ : got++;
        over = !put_next && !e->n;
        if (put_next)
            made = made_by(from, e->first + (uint64_t)e->n, !e->n);
        else
            used = over ? made : gp_actor_used(to, e->first + (uint64_t)e->n);
        if (e->start < x->from)
            continue;
        gp_trace_head(j, "C", HOST + x->part->rank, 0);
        gp_json_put(j, "name: %s, ts: %g, args: {held: %ju}}", name, us(x, e->start), made > used ? made - used : 0);
    }
}

static bool add_counters(gp_json *j, const kept *x)
{
    for (int i = 0; i < x->run->plan->nactors; i++) {
        const gp_actorrt *to = &x->run->actor[i];
        for (int k = 0; k < to->nin; k++) {
            const gp_ringrt *r = to->in[k].ring;
            const char *form = r->ring->nconsumers > 1 ? "buffer %s for %s" : "buffer %s";
            char *name;
            if (asprintf(&name, form, r->buffer->name, to->name) < 0)
                return false;
            add_counter(j, x, to, &to->in[k], name);
            free(name);
        }
    }
    return true;
}

void gp_trace_begin(gp_json *j)
{
    gp_json_put(j, "{traceEvents: [");
}

void gp_trace_end(gp_json *j, const char *pipeline, int ranks, double from_s, double to_s)
{
    gp_json_put(j, "], displayTimeUnit: %s, otherData: {pipeline: %s, gpipe: %s", "ms", pipeline, GP_VERSION);
    if (ranks > 1)
        gp_json_put(j, "ranks: %d}}", ranks);
    else
        gp_json_put(j, "from_s: %g, to_s: %g}}", from_s, to_s);
}

/* `part` NULL: all of a trace, of one process. */
static bool write_trace(const gp_run *run, const gp_trace_part *part, size_t most, FILE *f, gp_errs *errs)
{
    gp_trace_part alone = { .ranks = 1, .zero = run ? run->start_ns : 0 };
    kept x = { .run = run, .part = part ? part : &alone };
    if (!run || !run->ready || !run->trace)
        return gp_fail(errs, GP_E_RUN, (gp_loc){ 0 }, "there is nothing to show: no frame was begun");
    int64_t end = run->end_ns ? run->end_ns : gp_now_ns();
    gp_json j = { .f = f, .level = part ? 2 : 0 };
    bool ok = copy_tracks(&x) && find_stretches(&x) && find_start(&x, end, run->options.trace_ns, most);
    if (ok && !part)
        gp_trace_begin(&j);
    if (ok && (ok = add_tracks(&j, &x))) {
        add_arrows(&j, &x);
        ok = add_counters(&j, &x);
    }
    int64_t from = x.from > run->start_ns ? x.from : run->start_ns;
    if (ok && !part)
        gp_trace_end(&j, run->graph->name, 1, (double)(from - run->start_ns) * 1e-9, (double)(end - run->start_ns) * 1e-9);
    for (int i = 0; x.track && i < run->trace->ntracks; i++)
        free(x.track[i].event);
    free(x.track), free(x.slice), free(x.stretch_of), free(x.stretch);
    return ok || gp_no_memory(errs);
}

bool gp_trace_events(const gp_pipeline *p, const gp_trace_part *part, size_t most, FILE *f, gp_errs *errs)
{
    bool ok = write_trace(gp_pipeline_lock_run(p), part, most, f, errs);
    gp_pipeline_unlock_run(p);
    return ok;
}

bool gp_trace_json(const gp_pipeline *p, size_t most, FILE *f, gp_errs *errs)
{
    return gp_trace_events(p, NULL, most, f, errs);
}
