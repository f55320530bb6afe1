/* timeline.c - when a simulated run did what, as Chrome trace events: as report/trace_json.c writes those of a run. */
#include <stdlib.h>
#include "base/json.h"
#include "simulate/simulate.h"

enum { HOST = 1, DEVICE = 2 };

static const char *const cats[] = { "stage", "launch", "copy in", "compute", "copy out", "peer copy" };
static const int copies[] = { GP_SLICE_COPY_IN, GP_SLICE_COPY_OUT, GP_SLICE_COPY_PEER };

/* Tracks: of each actor its workers, or its launcher; then its streams; copy engines, device after device. */
typedef struct tracks {
    const gp_plan *plan;
    const gp_report *r;
    int *host, *streams, copies;       /* the first of each actor */
} tracks;

static bool is_copy(const gp_slice *s)
{
    return s->what == GP_SLICE_COPY_IN || s->what == GP_SLICE_COPY_OUT || s->what == GP_SLICE_COPY_PEER;
}

static bool on_device(const gp_slice *s)
{
    return s->what == GP_SLICE_COMPUTE || is_copy(s);
}

/* How many sorts of copies a device makes. */
static int sorts(const tracks *t)
{
    return t->plan->unified ? 0 : t->plan->copy_peer_bytes ? 3 : 2;
}

static int track_of(const tracks *t, const gp_slice *s)
{
    int sort = 0;
    while (sort < 2 && copies[sort] != (int)s->what)
        sort++;
    return is_copy(s) ? t->copies + s->device * sorts(t) + sort
         : s->what == GP_SLICE_COMPUTE ? t->streams[s->actor] + s->lane : t->host[s->actor] + s->lane;
}

static void name_tracks(gp_json *j, tracks *t)
{
    char name[160];
    int tid = 1;
    gp_trace_name(j, HOST, 0, "process_name", "host");
    gp_trace_name(j, DEVICE, 0, "process_name", "device");
    for (int i = 0; i < t->r->nactors; i++) {
        const gp_actor_report *p = &t->r->actor[i];
        t->host[i] = tid;
        for (int w = 0; w < (p->workers > 0 ? p->workers : 1); w++) {
            snprintf(name, sizeof name, p->segment >= 0 ? "launch %.100s" : p->workers > 1 ? "%.100s %d" : "%.100s",
                     p->name, w);
            gp_trace_name(j, HOST, tid++, "thread_name", name);
        }
    }
    for (int i = 0; i < t->r->nactors; i++) {
        t->streams[i] = tid;
        int segment = t->r->actor[i].segment, lanes = segment >= 0 ? t->plan->segment[segment].place.lanes : 1;
        for (int k = 0; k < t->r->actor[i].streams * lanes; k++) {
            snprintf(name, sizeof name, "%.100s stream %d", t->r->actor[i].name, k);
            gp_trace_name(j, DEVICE, tid++, "thread_name", name);
        }
    }
    t->copies = tid;
    const gp_graph *g = t->plan->graph;
    for (int d = 0; d < (g->ndevices > 1 ? g->ndevices : 1); d++)
        for (int k = 0; k < sorts(t); k++) {
            snprintf(name, sizeof name, "%s%s%s", g->ndevices > 1 ? g->device[d].name : "", g->ndevices > 1 ? " " : "",
                     cats[copies[k]]);
            gp_trace_name(j, DEVICE, tid++, "thread_name", name);
        }
}

void gp_timeline_json(FILE *f, const gp_plan *plan, const gp_simulated *s)
{
    gp_json j = { .f = f };
    tracks t = { plan, s->report, calloc((size_t)s->report->nactors, sizeof(int)),
                 calloc((size_t)s->report->nactors, sizeof(int)), 0 };
    gp_trace_begin(&j);
    if (t.host && t.streams)
        name_tracks(&j, &t);
    for (int i = 0; i < s->nslices && t.host && t.streams; i++) {
        const gp_slice *e = &s->slice[i];
        gp_trace_head(&j, "X", on_device(e) ? DEVICE : HOST, track_of(&t, e));
        gp_json_str(&j, "name", is_copy(e) ? cats[e->what] : s->report->actor[e->actor].name);
        gp_json_num(&j, "ts", 1e-3 * (double)e->start);
        gp_json_num(&j, "dur", 1e-3 * (double)(e->end - e->start));
        gp_json_str(&j, "cat", cats[e->what]);
        gp_json_open(&j, "args", '{');
        gp_json_int(&j, "frame", (int64_t)e->first);
        gp_json_int(&j, "frames", e->n);
        gp_json_close(&j, '}');
        gp_json_close(&j, '}');
    }
    gp_trace_end(&j, plan->graph->name, 1, 0, 1e-9 * (double)s->report->wall_ns);
    free(t.host), free(t.streams);
}
