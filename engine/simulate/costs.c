/* costs.c - what the parts of a plan cost, from the report of a run.
 *
 * Of a host stage: its CPU time a firing; what else it took is found out by calibrate.c, because threads that shared a
 * core took longer, too. Of a segment: on the CPU back end the CPU time of its kernels, on a GPU the time in which at
 * least one launch had kernels to do. */
#include <math.h>
#include <string.h>
#include "base/yaml.h"
#include "compile/plan.h"
#include "simulate/measured.h"

/* Of a list of maps the one with this name. */
static const gp_node *named(const gp_node *list, const char *name)
{
    for (int i = 0; list && i < list->n; i++)
        if (!strcmp(gp_node_text(list->item[i], "name"), name))
            return list->item[i];
    return NULL;
}

enum { FEWEST = 10 };                  /* wakes, from which it can be told how long one takes */
static const double USUAL_WAKE = 8e3, USUAL_CALL = 2.5e3;

static bool another(const gp_source_report *r, gp_errs *errs, const char *what, const char *name)
{
    return gp_fail(errs, GP_E_USAGE, r->at, "a report of another pipeline, or of an older state of it: %s '%.100s'; "
                   MAKE_ANEW, what, name);
}

static bool lacks(const gp_source_report *r, gp_errs *errs, const char *what, const char *name)
{
    return gp_fail(errs, GP_E_USAGE, r->at, "the report lacks %s of '%.100s'; " MAKE_ANEW, what, name);
}

/* How many periods of the graph (gp_rate) each stage went through. */
static double *periods(gp_arena *a, const gp_source_report *r, const gp_graph *g)
{
    double *n = GP_NEW(a, double, g->nstages);
    const gp_node *sources = gp_node_list(r->root, "sources");
    for (int v = 0; v < g->nstages; v++) {
        const gp_stage *st = &g->stage[v];
        n[v] = INFINITY;
        if (!st->nin)
            n[v] = gp_node_number(named(sources, st->name), "in") / (double)st->rate;
        for (int i = 0; i < st->nin; i++) {
            int from = st->in[i] < 0 || st->closes ? -1 : g->buffer[st->in[i]].producer.stage;
            if (from >= 0 && from < v)
                n[v] = fmin(n[v], n[from]);
        }
    }
    for (int v = 0; v < g->nstages; v++)
        if (!(n[v] < INFINITY))
            n[v] = r->frames;
    return n;
}

/* Where others had a part of the cores, that a frame took long says little of the frame: from a quarter on nothing. */
static double spread_of(const gp_source_report *r, const gp_node *of)
{
    const gp_node *cores = gp_node_get(r->root, "cores");
    double p50 = gp_node_number(of, "frame_p50_us"), p99 = gp_node_number(of, "frame_p99_us");
    double part = fmax(gp_node_number(cores, "others"), 0) / fmax(gp_node_number(cores, "all"), 1);
    return p50 > 0 && p99 > p50 ? 1 + (p99 / p50 - 1) * fmax(1 - 4 * part, 0) : 1;
}

static bool read_stage(const gp_source_report *r, const gp_stage *st, double firings, gp_stage_cost *c, double *busy_ns,
                       gp_errs *errs)
{
    const gp_node *of = named(gp_node_list(r->root, "stages"), st->name);
    double busy = gp_node_number(of, "busy_s"), idle = gp_node_number(of, "idle_s"), cpu = gp_node_number(of, "cpu_s");
    double hertz = st->known.hertz;
    if (!of)
        return another(r, errs, "it has no stage", st->name);
    if (gp_node_number(of, "workers") != (double)st->workers)
        return another(r, errs, "it has other workers in stage", st->name);
    if (busy < 0 || idle < 0)
        return lacks(r, errs, "the busy time", st->name);
    if (cpu < 0 && busy > 0)
        return lacks(r, errs, "the CPU time", st->name);
    busy = fmax(busy - idle, 0);
    if (!gp_node_get(of, "turn_us") || !gp_node_get(of, "turn_frame_us"))
        return lacks(r, errs, "the time of turns", st->name);
    *busy_ns = 1e9 * busy / fmax(firings, 1);
    *c = (gp_stage_cost){ .cpu_ns = fmin(1e9 * fmax(cpu, 0) / fmax(firings, 1), *busy_ns), .spread = spread_of(r, of),
                          .turn_ns = 1e3 * fmax(gp_node_number(of, "turn_us"), 0),
                          .frame_ns = 1e3 * fmax(gp_node_number(of, "turn_frame_us"), 0),
                          .stop = fmax(gp_node_number(of, "turn_stop"), 0) };
    if (!st->nin) {
        c->frames = (uint64_t)fmax(gp_node_number(named(gp_node_list(r->root, "sources"), st->name), "in"), 1);
        c->pace_ns = hertz > 0 ? 1e9 / hertz : 1e9 * idle > 0.1 * r->wall_ns ? r->wall_ns / (double)c->frames : 0;
    }
    return true;
}

static const char *first_of(const gp_plan *plan, const gp_segment *s)
{
    int i = 0;
    while (plan->task[s->task[i]].stage < 0)
        i++;
    return plan->graph->stage[plan->task[s->task[i]].stage].name;
}

/* The segment of the report that has the same stages. */
static const gp_node *segment_of(const gp_source_report *r, const gp_plan *plan, const gp_segment *s)
{
    const gp_node *all = gp_node_list(r->root, "segments");
    for (int k = 0; all && k < all->n; k++) {
        const gp_node *stages = gp_node_list(all->item[k], "stages");
        int n = 0;
        bool same = stages != NULL;
        for (int i = 0; same && i < s->ntasks; i++) {
            int v = plan->task[s->task[i]].stage;
            same = v < 0 || (n < stages->n && !strcmp(stages->item[n]->text, plan->graph->stage[v].name));
            n += v >= 0;
        }
        if (same && n == stages->n)
            return all->item[k];
    }
    return NULL;
}

/* On a GPU: the time in which kernels had it is shared out by how long the launches of each segment took. */
static bool read_segment(const gp_source_report *r, const gp_plan *plan, int k, double firings, gp_measured_costs *m,
                         double *weight, gp_errs *errs)
{
    gp_segment_cost *c = &m->costs.segment[k];
    const char *name = first_of(plan, &plan->segment[k]);
    const gp_node *of = segment_of(r, plan, &plan->segment[k]);
    double launching = gp_node_number(of, "launching_s"), launches = gp_node_number(of, "launches"), cpu = gp_node_number(of, "kernels_cpu_s");
    if (!of)
        return another(r, errs, "it has no segment of the stages from", name);
    if (launching < 0 || launches < 1)
        return lacks(r, errs, "the launches", name);
    if (plan->unified && cpu < 0)
        return lacks(r, errs, "the CPU time of the kernels", name);
    *c = (gp_segment_cost){ .launch_ns = 1e9 * launching / launches, .spread = spread_of(r, of) };
    if (plan->unified)
        c->kernels_ns = 1e9 * cpu / fmax(firings, 1);
    m->took_ns[k] = 1e3 * fmax(gp_node_number(of, "frame_p50_us"), 0), m->each[k] = fmax(firings / launches, 1);
    *weight = m->took_ns[k] * fmax(gp_node_number(of, "frames"), 0);
    return true;
}

/* Of all devices: what a limit is; else what went through the engines, over the time that they took. *beside: what each
 * of `copies` took more than that, where it is most of it; else others may have had a part of the limit. */
static bool read_copies(const gp_source_report *r, const char *way, double copies, double *rate, double *beside,
                        gp_errs *errs)
{
    const gp_node *engines = gp_node_list(r->root, "engines");
    double limit = 0, bytes = 0, took = 0;
    bool measured = true;
    for (int i = 0; engines && i < engines->n; i++) {
        const gp_node *e = engines->item[i];
        if (strcmp(gp_node_text(e, "name"), way))
            continue;
        limit = fmax(limit, gp_node_number(e, "limit_gb_s"));
        bytes += fmax(gp_node_number(e, "bytes"), 0), took += fmax(gp_node_number(e, "busy_s"), 0);
        measured &= !strcmp(gp_node_text(e, "measured"), "true");
    }
    *rate = limit > 0 ? 1e9 * limit : bytes > 0 && took > 0 ? bytes / took : 0;
    double more = limit > 0 && measured && copies > 0 ? 1e9 * took / copies - bytes / limit / copies : 0;
    *beside = limit > 0 && more > bytes / limit / copies ? more : 0;
    return *rate > 0 || !(bytes > 0 || copies > 0) || lacks(r, errs, "the rate", way);
}

/* How long kernels had device d of the plan, in s; -1: the report does not say so. */
static double compute_of(const gp_source_report *r, const gp_graph *g, int d)
{
    const gp_node *engines = gp_node_list(r->root, "engines");
    bool there = false;
    for (int i = 0; engines && i < engines->n; i++) {
        const gp_node *e = engines->item[i];
        bool compute = !strcmp(gp_node_text(e, "name"), "compute");
        there |= compute;
        if (compute && (g->ndevices < 2 || !strcmp(gp_node_text(e, "device"), g->device[d].name)))
            return gp_node_number(e, "busy_s");
    }
    return there ? 0 : -1;             /* it was not used */
}

static bool is_on(const gp_segment *s, int d)
{
    return d >= s->place.index && d < s->place.index + s->place.lanes;
}

/* Of kernels that leave room for others the time of the device says only how long they take at least, as those of
 * several launches may have run side by side: calibrate.c finds it from what their launches took. */
static void part_kernels(gp_measured_costs *m, const gp_plan *plan)
{
    for (int k = 0; k < plan->nsegments; k++) {
        gp_segment_cost *c = &m->costs.segment[k];
        double fills = gp_segment_fills(plan, k);
        c->part = fmin(fills, 1);
        if (fills > 0)
            c->kernels_ns *= m->each[k] / fmax(m->each[k] * c->part, 1);
        m->least_ns[k] = c->part < 1 ? c->kernels_ns : 0;
    }
}

static bool read_device(const gp_source_report *r, const gp_plan *plan, gp_measured_costs *m, const double *firings,
                        const double *weight, gp_errs *errs)
{
    const gp_graph *g = plan->graph;
    gp_costs *c = &m->costs;
    static const struct { const char *name; gp_task_kind task; } way[] = {
        { "copy in", GP_TASK_COPY_IN }, { "copy out", GP_TASK_COPY_OUT }, { "peer copy", GP_TASK_COPY_PEER },
    };
    double *const rate[] = { &c->copy_in, &c->copy_out, &c->copy_peer };
    double all_copies = 0;
    for (int i = 0; i < 3; i++) {
        double copies = 0, beside;
        for (int k = 0; k < plan->nsegments; k++)
            copies += gp_segment_copied(plan, &plan->segment[k], way[i].task) ? firings[k] / m->each[k] : 0;
        if (!read_copies(r, way[i].name, copies, rate[i], &beside, errs))
            return false;
        c->copy_ns += copies * beside, all_copies += copies;
    }
    c->copy_ns = g->ndevices && g->device[0].pretend ? 0 : c->copy_ns / fmax(all_copies, 1);
    for (int d = 0; d < g->ndevices; d++) {
        double all = 0, busy = compute_of(r, g, d);
        int there = 0;
        if (plan->nsegments && busy < 0)
            return lacks(r, errs, "the time of engine", "compute");
        for (int k = 0; k < plan->nsegments; k++)
            if (is_on(&plan->segment[k], d))
                all += weight[k] / plan->segment[k].place.lanes, there++;
        for (int k = 0; k < plan->nsegments; k++)
            if (is_on(&plan->segment[k], d))
                c->segment[k].kernels_ns += 1e9 * busy * (all > 0 ? weight[k] / plan->segment[k].place.lanes / all
                                                          : 1.0 / there) / fmax(firings[k], 1);
    }
    part_kernels(m, plan);
    return true;
}

/* Threads shared them, so that without them nothing is known of what a frame costs. */
static bool read_cores(const gp_source_report *r, gp_costs *c, gp_errs *errs)
{
    const gp_node *cores = gp_node_get(r->root, "cores");
    double all = gp_node_number(cores, "all"), others = fmax(gp_node_number(cores, "others"), 0), quota = gp_node_number(cores, "quota");
    if (!(all >= 1))
        return gp_fail(errs, GP_E_USAGE, r->at, "the report lacks 'cores.all', how many cores its threads shared; "
                       MAKE_ANEW);
    c->cores = fmax(all - others, 0.5);
    c->others = all - c->cores;
    if (quota > 0 && quota < c->cores)
        c->cores = quota;
    return true;
}

/* Where threads were hardly ever woken, it matters little how long that takes: as is usual. */
static bool read_wakes(const gp_source_report *r, gp_costs *c, gp_errs *errs)
{
    const gp_node *wakes = gp_node_get(r->root, "wakes");
    if (!wakes)
        return gp_fail(errs, GP_E_USAGE, r->at, "the report lacks 'wakes', how long it takes to wake a thread; "
                       MAKE_ANEW);
    bool known = gp_node_number(wakes, "count") >= FEWEST && gp_node_number(wakes, "p10_us") > 0 && gp_node_number(wakes, "call_p10_us") >= 0;
    c->wake_ns = known ? 1e3 * gp_node_number(wakes, "p10_us") : USUAL_WAKE;
    c->call_ns = known ? 1e3 * gp_node_number(wakes, "call_p10_us") : USUAL_CALL;
    return true;
}

/* Names of devices, "cuda:0, cuda:1": as many of one sort (the CPU, parts of it, GPUs)? */
static bool are_alike(const char *a, const char *b)
{
    size_t n = strcspn(a, "0123456789");
    int more = 0;
    for (const char *s = a; *s; s++)
        more += *s == ',';
    for (const char *s = b; *s; s++)
        more -= *s == ',';
    return n == strcspn(b, "0123456789") && !strncmp(a, b, n) && !more;
}

gp_measured_costs *gp_measured_costs_read(gp_arena *a, const gp_source_report *r, const gp_plan *plan, gp_errs *errs)
{
    const gp_graph *g = plan->graph;
    gp_measured_costs *m = GP_NEW(a, gp_measured_costs, 1);
    const double *period = periods(a, r, g);
    double *weight = GP_NEW(a, double, plan->nsegments), *firings = GP_NEW(a, double, plan->nsegments);
    m->costs = (gp_costs){ .stage = GP_NEW(a, gp_stage_cost, g->nstages), .nstages = g->nstages,
                           .segment = GP_NEW(a, gp_segment_cost, plan->nsegments), .nsegments = plan->nsegments };
    m->busy_ns = GP_NEW(a, double, g->nstages);
    m->took_ns = GP_NEW(a, double, plan->nsegments), m->least_ns = GP_NEW(a, double, plan->nsegments);
    m->each = GP_NEW(a, double, plan->nsegments);
    m->wall_ns = r->wall_ns, m->frames = r->frames;
    const char *device = gp_node_text(gp_node_get(r->root, "pipeline"), "device");
    m->costs.digests = gp_node_get(gp_node_get(r->root, "pipeline"), "digests");
    if (plan->nsegments && !are_alike(device, g->device_name)) {
        gp_fail(errs, GP_E_USAGE, r->at, "a report of a run on '%.60s', and with its settings this plan is for "
                "'%.60s'; " MAKE_ANEW, device, g->device_name);
        return NULL;
    }
    if (!read_cores(r, &m->costs, errs) || !read_wakes(r, &m->costs, errs))
        return NULL;
    for (int v = 0; v < g->nstages; v++)
        if (!g->stage[v].device
            && !read_stage(r, &g->stage[v], period[v] * (double)g->stage[v].rate, &m->costs.stage[v], &m->busy_ns[v],
                           errs))
            return NULL;
    for (int k = 0; k < plan->nsegments; k++) {
        int i = 0;
        while (plan->task[plan->segment[k].task[i]].stage < 0)
            i++;
        int v = plan->task[plan->segment[k].task[i]].stage;
        firings[k] = period[v] * (double)g->stage[v].rate;
        if (!read_segment(r, plan, k, firings[k], m, &weight[k], errs))
            return NULL;
    }
    if (!plan->unified && plan->nsegments && !read_device(r, plan, m, firings, weight, errs))
        return NULL;
    return m;
}
