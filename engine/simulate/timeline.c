/* timeline.c - when a simulated run did what, as Chrome trace events: as report/trace_json.c writes those of a run. */
#include "base/json.h"
#include "simulate/simulate.h"

enum { HOST = 1, DEVICE = 2, LANES = 4096 };

static const char *const cats[] = { "stage", "launch", "copy in", "compute", "copy out", "peer copy" };

static bool is_copy(int what)
{
    return what >= GP_SLICE_COPY_IN && what != GP_SLICE_COMPUTE;
}

/* A track for each worker or launcher of an actor, then for its streams on the device; the copy engines, device by
 * device, come last. */
static int track(int of, int lane)
{
    return 1 + of * LANES + lane;
}

static void name_tracks(gp_json *j, const gp_plan *plan, const gp_report *r)
{
    const gp_graph *g = plan->graph;
    char name[160];
    gp_trace_name(j, HOST, 0, "process_name", "host");
    gp_trace_name(j, DEVICE, 0, "process_name", "device");
    for (int i = 0; i < r->nactors; i++) {
        const gp_actor_report *p = &r->actor[i];
        for (int w = 0; w < (p->workers > 0 ? p->workers : 1); w++) {
            snprintf(name, sizeof name, p->segment >= 0 ? "launch %.100s" : p->workers > 1 ? "%.100s %d" : "%.100s",
                     p->name, w);
            gp_trace_name(j, HOST, track(i, w), "thread_name", name);
        }
        for (int k = 0; p->segment >= 0 && k < p->streams * plan->segment[p->segment].place.lanes; k++) {
            snprintf(name, sizeof name, "%.100s stream %d", p->name, k);
            gp_trace_name(j, DEVICE, track(i, k), "thread_name", name);
        }
    }
    for (int d = 0; !plan->unified && d < (g->ndevices > 1 ? g->ndevices : 1); d++)
        for (int what = GP_SLICE_COPY_IN; what <= GP_SLICE_COPY_PEER; what++) {
            if (!is_copy(what) || (what == GP_SLICE_COPY_PEER && !plan->copy_peer_bytes))
                continue;
            snprintf(name, sizeof name, "%s%s%s", g->ndevices > 1 ? g->device[d].name : "", g->ndevices > 1 ? " " : "",
                     cats[what]);
            gp_trace_name(j, DEVICE, track(r->nactors + d, what), "thread_name", name);
        }
}

void gp_timeline_json(FILE *f, const gp_plan *plan, const gp_simulated *s)
{
    const gp_report *r = s->report;
    gp_json j = { .f = f };
    gp_trace_begin(&j);
    name_tracks(&j, plan, r);
    for (const gp_slice *e = s->slice; e < s->slice + s->nslices; e++) {
        bool copy = is_copy(e->what);
        gp_trace_head(&j, "X", e->what >= GP_SLICE_COPY_IN ? DEVICE : HOST,
                      copy ? track(r->nactors + e->device, (int)e->what) : track(e->actor, e->lane));
        gp_json_put(&j, "name: %s, ts: %g, dur: %g, cat: %s, args: {frame: %ju, frames: %d}}",
                    copy ? cats[e->what] : r->actor[e->actor].name, 1e-3 * (double)e->start,
                    1e-3 * (double)(e->end - e->start), cats[e->what], e->first, e->n);
    }
    gp_trace_end(&j, plan->graph->name, 1, 0, 1e-9 * (double)r->wall_ns);
}
