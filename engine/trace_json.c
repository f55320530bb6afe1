/* trace_json.c - what a traced run kept, as Chrome trace events: for Perfetto
 * (ui.perfetto.dev), chrome://tracing and the page of a report. Format: the "Trace
 * Event Format" document of the Chromium project.
 *
 *   X       a slice: a track is a thread of process 1 (host) or 2 (device)
 *   s t f   arrows that follow a frame from slice to slice; of every frame, or with
 *           launches of n frames of each n-th
 *   C       frames held in a buffer, for each of its readers
 *
 * All tracks begin at one time: where the newest of their oldest events is. */
#include <stdlib.h>
#include <string.h>
#include "dump.h"
#include "pipeline.h"
#include "report.h"
#include "trace.h"

typedef struct kept {
    const gp_run *run;
    int64_t from;              /* what ended before is left out */
    const gp_event **event;    /* slices that frames go through, by start */
    int *tid;                  /* of event[i] */
    size_t n;
} kept;

enum { HOST = 1, DEVICE = 2, LANES = 16 };

static uint64_t oldest(const gp_track *t)
{
    uint64_t n = atomic_load_explicit(&t->n, memory_order_acquire);
    return n > t->mask ? n - t->mask - 1 : 0;
}

static const gp_event *event_at(const gp_track *t, uint64_t k)
{
    return &t->event[k & t->mask];
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

typedef struct placed { const gp_event *event; int tid; } placed;

static int by_start(const void *a, const void *b)
{
    const placed *x = a, *y = b;
    int by = (x->event->start > y->event->start) - (x->event->start < y->event->start);
    return by ? by : (x->event->end > y->event->end) - (x->event->end < y->event->end);
}

/* From when on: the last `keep` ns, what every track still has, and `most` slices. */
static bool find_start(const gp_trace *t, int64_t end, int64_t keep, size_t most, int64_t *from)
{
    size_t n = 0, k = 0;
    *from = end - keep;
    for (int i = 0; i < t->ntracks; i++) {
        const gp_track *track = &t->track[i];
        uint64_t first = oldest(track);
        n += atomic_load(&track->n) - first;
        if (first && event_at(track, first)->start > *from)
            *from = event_at(track, first)->start;
    }
    if (!most || n <= most)
        return true;
    int64_t *time = malloc(n * sizeof *time);
    if (!time)
        return false;
    for (int i = 0; i < t->ntracks; i++)
        for (uint64_t e = oldest(&t->track[i]); e < atomic_load(&t->track[i].n); e++)
            if (event_at(&t->track[i], e)->what != GP_TRACE_MOVE)
                time[k++] = event_at(&t->track[i], e)->end;
    qsort(time, k, sizeof *time, by_time);
    if (k > most && time[k - most] > *from)
        *from = time[k - most];
    free(time);
    return true;
}

static double us(const kept *x, int64_t t)
{
    return (double)(t - x->run->start_ns) * 1e-3;
}

/* ---- members --------------------------------------------------------- */

static void head(gp_json *j, const char *ph, int pid, int tid)
{
    gp_json_open(j, NULL, '{');
    gp_json_str(j, "ph", ph);
    gp_json_int(j, "pid", pid);
    if (tid)
        gp_json_int(j, "tid", tid);
}

static void name_it(gp_json *j, int pid, int tid, const char *what, const char *name)
{
    head(j, "M", pid, tid);
    gp_json_str(j, "name", what);
    gp_json_open(j, "args", '{');
    gp_json_str(j, "name", name);
    gp_json_close(j, '}');
    gp_json_close(j, '}');
}

static void slice(gp_json *j, const kept *x, const gp_event *e, bool device, int tid)
{
    static const char *const cats[] = { "stage", "wait", "launch", "copy in", "compute", "copy out" };
    head(j, "X", device ? DEVICE : HOST, tid);
    gp_json_num(j, "ts", us(x, e->start));
    gp_json_num(j, "dur", (double)(e->end - e->start) * 1e-3);
    gp_json_str(j, "name", e->name);
    gp_json_str(j, "cat", cats[e->what]);
    gp_json_open(j, "args", '{');
    gp_json_int(j, "frame", (int64_t)e->first);
    gp_json_int(j, "frames", e->n);
    if (e->kernel)
        gp_json_str(j, "kernel", e->kernel);
    gp_json_close(j, '}');
    gp_json_close(j, '}');
}

/* Slices that overlap go to tracks beside each other: which, of LANES, is free for e? */
static int lane_of(int64_t until[LANES], const gp_event *e)
{
    int lane = 0;
    while (lane < LANES - 1 && until[lane] > e->start)
        lane++;
    until[lane] = e->end;
    return lane;
}

static void name_track(gp_json *j, int pid, int tid, const char *name)
{
    name_it(j, pid, tid, "thread_name", name);
    head(j, "M", pid, tid);
    gp_json_str(j, "name", "thread_sort_index");
    gp_json_open(j, "args", '{');
    gp_json_int(j, "sort_index", tid);
    gp_json_close(j, '}');
    gp_json_close(j, '}');
}

static bool add_tracks(gp_json *j, kept *x)
{
    const gp_trace *t = x->run->trace;
    size_t n = 0;
    for (int i = 0; i < t->ntracks; i++)
        n += atomic_load(&t->track[i].n) - oldest(&t->track[i]);
    placed *all = malloc((n + 1) * sizeof *all);
    if (!all)
        return false;
    name_it(j, HOST, 0, "process_name", "host");
    name_it(j, DEVICE, 0, "process_name", "device");
    for (int i = 0; i < t->ntracks; i++) {
        const gp_track *track = &t->track[i];
        if (!track->name)
            continue;
        int tid = (i + 1) * LANES, pid = track->device ? DEVICE : HOST, lanes = 0;
        int64_t until[LANES] = { 0 };
        for (uint64_t k = oldest(track); k < atomic_load(&track->n); k++) {
            const gp_event *e = event_at(track, k);
            int lane = track->overlap ? lane_of(until, e) : 0;
            if (e->end < x->from)
                continue;
            while (lanes <= lane)
                name_track(j, pid, tid + lanes++, track->name);
            slice(j, x, e, track->device, tid + lane);
            if (carries(e))
                all[x->n++] = (placed){ e, track->device ? -tid - lane : tid };
        }
    }
    qsort(all, x->n, sizeof *all, by_start);
    x->event = malloc((x->n + 1) * sizeof *x->event);
    x->tid = malloc((x->n + 1) * sizeof *x->tid);
    for (size_t i = 0; x->event && x->tid && i < x->n; i++)
        x->event[i] = all[i].event, x->tid[i] = all[i].tid;
    free(all);
    return x->event && x->tid;
}

/* The first frame of the event that is a multiple of `step`; *n such frames. */
static uint64_t followed(const gp_event *e, uint64_t step, uint64_t *n)
{
    uint64_t first = (e->first + step - 1) / step * step, end = e->first + (uint64_t)e->n;
    *n = first < end ? (end - first + step - 1) / step : 0;
    return first;
}

static bool add_arrows(gp_json *j, const kept *x)
{
    uint64_t step = 1, low = UINT64_MAX, high = 0, n;
    for (size_t i = 0; i < x->n; i++) {
        while (step < (uint64_t)x->event[i]->n)
            step *= 2;
        low = x->event[i]->first < low ? x->event[i]->first : low;
        high = x->event[i]->first > high ? x->event[i]->first : high;
    }
    if (!x->n)
        return true;
    low = low / step * step;
    struct { int in, seen; } *count = calloc((high - low) / step + 2, sizeof *count);
    if (!count)
        return false;
    for (size_t i = 0; i < x->n; i++) {
        uint64_t f = followed(x->event[i], step, &n);
        for (uint64_t k = 0; k < n; k++)
            count[(f - low) / step + k].in++;
    }
    for (size_t i = 0; i < x->n; i++) {
        const gp_event *e = x->event[i];
        uint64_t f = followed(e, step, &n);
        for (uint64_t k = 0; k < n; k++) {
            int in = count[(f - low) / step + k].in, seen = ++count[(f - low) / step + k].seen;
            if (in < 2)
                continue;
            head(j, seen == 1 ? "s" : seen == in ? "f" : "t", x->tid[i] < 0 ? DEVICE : HOST,
                 abs(x->tid[i]));
            gp_json_num(j, "ts", us(x, e->start));
            gp_json_int(j, "id", (int64_t)(f + k * step));
            gp_json_str(j, "name", "frame");
            gp_json_str(j, "cat", "frame");
            if (seen == in)
                gp_json_str(j, "bp", "e");
            gp_json_close(j, '}');
        }
    }
    free(count);
    return true;
}

/* What reader `l` held, from when its frames and their producer's moved on. */
static void add_counter(gp_json *j, const kept *x, const gp_partyrt *to, const gp_link *l,
                        const char *name)
{
    const gp_track *put = x->run->party[l->ring->ring->producer].moves, *got = to->moves;
    uint64_t a = oldest(put), b = oldest(got), an = atomic_load(&put->n), bn = atomic_load(&got->n);
    uint64_t made = a < an ? event_at(put, a)->first : 0, used = b < bn ? event_at(got, b)->first : 0;
    while (a < an || b < bn) {
        bool put_next = b >= bn || (a < an && event_at(put, a)->start <= event_at(got, b)->start);
        const gp_event *e = put_next ? event_at(put, a++) : event_at(got, b++);
        *(put_next ? &made : &used) = e->first + (uint64_t)e->n;
        if (e->start < x->from)
            continue;
        head(j, "C", HOST, 0);
        gp_json_str(j, "name", name);
        gp_json_num(j, "ts", us(x, e->start));
        gp_json_open(j, "args", '{');
        gp_json_int(j, "held", made > used ? (int64_t)(made - used) : 0);
        gp_json_close(j, '}');
        gp_json_close(j, '}');
    }
}

static void add_counters(gp_json *j, const kept *x)
{
    for (int i = 0; i < x->run->plan->nparties; i++) {
        const gp_partyrt *to = &x->run->party[i];
        for (int k = 0; k < to->nin; k++) {
            const gp_ringrt *r = to->in[k].ring;
            char name[200];
            snprintf(name, sizeof name, r->ring->nconsumers > 1 ? "buffer %s for %s" : "buffer %s",
                     r->buffer->name, to->name);
            add_counter(j, x, to, &to->in[k], name);
        }
    }
}

bool gp_trace_json(const gp_pipeline *p, size_t most, FILE *f, gp_errs *errs)
{
    const gp_run *run = atomic_load(&((gp_pipeline *)p)->run);
    kept x = { .run = run };
    if (!run || !run->ready || !run->trace)
        return gp_fail(errs, GP_E_RUN, (gp_loc){ 0 },
                       "there is nothing to show: no frame was begun");
    int64_t end = run->end_ns ? run->end_ns : gp_now_ns();
    gp_json j = { .f = f };
    bool ok = find_start(run->trace, end, run->options.trace_ns, most, &x.from);
    if (ok) {
        gp_json_open(&j, NULL, '{');
        gp_json_open(&j, "traceEvents", '[');
        ok = add_tracks(&j, &x) && add_arrows(&j, &x);
        if (ok)
            add_counters(&j, &x);
        gp_json_close(&j, ']');
        gp_json_str(&j, "displayTimeUnit", "ms");
        gp_json_open(&j, "otherData", '{');
        gp_json_str(&j, "pipeline", run->graph->name);
        gp_json_str(&j, "gpipe", GP_VERSION);
        int64_t from = x.from > run->start_ns ? x.from : run->start_ns;
        gp_json_num(&j, "from_s", (double)(from - run->start_ns) * 1e-9);
        gp_json_num(&j, "to_s", (double)(end - run->start_ns) * 1e-9);
        gp_json_close(&j, '}');
        gp_json_close(&j, '}');
    }
    free(x.event), free(x.tid);
    return ok || gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory");
}
