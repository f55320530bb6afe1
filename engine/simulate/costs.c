/* costs.c - what the parts of a plan cost, from the report of a run.
 *
 * Of a host stage: its CPU time a firing; what else it took is found by simulating the plan of the run, because threads
 * that shared a core took longer, too. Of a segment: on the CPU back end the CPU time of its kernels, on a GPU the time
 * in which at least one launch had kernels to do. JSON is YAML: the reader of YAML reads the report. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/plural.h"
#include "base/yaml.h"
#include "compile/plan.h"
#include "simulate/simulate.h"

#define MAKE_ANEW "make it anew with 'gpipe run --report FILE.json'"

/* A run whose costs are found. */
typedef struct measured {
    const gp_source_report *r;
    const gp_plan *plan;
    const gp_graph *g;
    gp_errs *errs;
    gp_costs costs;
    double *period;                    /* by stage: how many periods of the graph (gp_rate) it went through */
    double *busy_ns;                   /* ... of a firing, with all that it waited for a core */
    double *firings, *weight;          /* by segment; weight: how long all of its launches took */
    double *took_ns;                   /* ... of a firing, from start to end of its launch: the median */
    double *each;                      /* ... how many firings a launch has: the mean */
    double *least_ns;                  /* ... of kernels that leave room for others: kernels_ns at least; else 0 */
} measured;

/* ---- the report -------------------------------------------------------- */

static bool check(gp_source_report *r, gp_errs *errs)
{
    const gp_node *root = r->root;
    const char *version = gp_node_text(root, "gpipe"), *outcome = gp_node_text(root, "outcome");
    if (!*version || !gp_node_list(root, "stages") || !gp_node_get(root, "verdict"))
        return gp_fail(errs, GP_E_USAGE, r->at,
                       "this is not a report; give a file that 'gpipe run --report FILE.json' wrote");
    if (strcmp(version, GP_VERSION))
        return gp_fail(errs, GP_E_USAGE, r->at, "a report of gpipe %.40s, and this is gpipe %s; " MAKE_ANEW, version,
                       GP_VERSION);
    if (!strcmp(outcome, "simulated"))
        return gp_fail(errs, GP_E_USAGE, r->at, "this is the report of a simulation; give one of a run, of 'gpipe run "
                       "--report FILE.json'");
    if (gp_node_get(root, "ranks"))
        return gp_fail(errs, GP_E_USAGE, r->at, "this is the report of a run of several ranks, which shared the "
                       "cores; give one of a run in one process, and say --ranks");
    if (strcmp(outcome, gp_outcome_text(GP_DONE)) && strcmp(outcome, gp_outcome_text(GP_DRAINED)))
        return gp_fail(errs, GP_E_USAGE, r->at, "a report of a run that did not come to its end (outcome: %.40s) does "
                       "not tell what frames cost; " MAKE_ANEW, outcome);
    const gp_node *sources = gp_node_list(root, "sources");
    for (int i = 0; sources && i < sources->n; i++)
        r->frames = fmax(r->frames, gp_node_number(sources->item[i], "in"));
    r->wall_ns = 1e9 * gp_node_number(root, "wall_s");
    if (r->frames < GP_REPORT_FRAMES || !(r->wall_ns > 0))
        return gp_fail(errs, GP_E_USAGE, r->at, "a run of %.0f frame%s is too short to know what one costs: %d or more "
                       "are needed", r->frames, gp_plural((int64_t)r->frames), GP_REPORT_FRAMES);
    return true;
}

gp_source_report *gp_source_report_read(gp_arena *a, const char *json, size_t len, const char *file, gp_errs *errs)
{
    gp_errs *ignored = GP_NEW(a, gp_errs, 1);
    gp_source_report *r = GP_NEW(a, gp_source_report, 1);
    r->at = (gp_loc){ .file = file };
    r->root = memchr(json, 0, len) ? NULL : gp_yaml_value(a, gp_strndup(a, json, len), r->at, ignored);
    if (ignored->n && ignored->e[0].code == GP_E_RESOURCE) {
        gp_errs_add(errs, ignored);
        return NULL;
    }
    if (!check(r, errs))
        return NULL;
    const gp_node *set = gp_node_list(r->root, "set");
    r->set = GP_NEW(a, const char *, set ? set->n : 0);
    for (int i = 0; set && i < set->n; i++)
        if (set->item[i]->kind == GP_SCALAR)
            r->set[r->nset++] = set->item[i]->text;
    return r;
}

/* What a report does not say is as in every other: a plan for it is then the same everywhere. */
void gp_source_report_machine(const gp_source_report *r, gp_machine *m)
{
    const size_t memory = (size_t)64 << 30;
    const char *device = gp_node_text(gp_node_get(r->root, "pipeline"), "device");
    const gp_node *where = gp_node_get(r->root, "environment"), *launch = gp_node_get(where, "launch");
    const char *gpu = gp_node_text(where, "gpu");
    gp_errs ignored = { .n = 0 };
    double cpus = gp_node_number(gp_node_get(r->root, "cores"), "all");
    int index = -1;
    for (const char *d = strstr(device, "cuda:"); d; d = strstr(d + 1, "cuda:"))
        index = atoi(d + 5) > index ? atoi(d + 5) : index;
    memset(m, 0, sizeof *m);
    m->cpus = cpus >= 1 && cpus < 1e6 ? (int)cpus : 1, m->memory = memory, m->pin_limit = memory / 4 * 3;
    m->ndevices = index >= 0 && index < GP_DEVICES ? index + 1 : 0;
    for (int i = 0; i < m->ndevices; i++) {
        m->device[i] = (gp_device_info){ .cc = 90, .sms = 132, .f64 = 2, .memory = (size_t)141000000000 };
        snprintf(m->device[i].name, sizeof m->device[i].name, "%s", *gpu ? gpu : "a GPU");
        if (launch)
            gp_launch_read(launch, m->device[i].launch, &ignored);
    }
    m->unified = m->ndevices == 0;
    snprintf(m->why, sizeof m->why, "the report is of a run on the CPU");
}

/* A number of the report; where it has none: 0. */
static double number(const gp_node *of, const char *key)
{
    return fmax(gp_node_number(of, key), 0);
}

/* The map with this name in a list of maps. */
static const gp_node *named(const measured *m, const char *key, const char *name)
{
    const gp_node *list = gp_node_list(m->r->root, key);
    for (int i = 0; list && i < list->n; i++)
        if (!strcmp(gp_node_text(list->item[i], "name"), name))
            return list->item[i];
    return NULL;
}

static bool another(const measured *m, const char *what, const char *name)
{
    return gp_fail(m->errs, GP_E_USAGE, m->r->at, "a report of another pipeline, or of an older state of it: %s "
                   "'%.100s'; " MAKE_ANEW, what, name);
}

static bool lacks(const measured *m, const char *what, const char *name)
{
    return gp_fail(m->errs, GP_E_USAGE, m->r->at, "the report lacks %s of '%.100s'; " MAKE_ANEW, what, name);
}

/* ---- host stages ------------------------------------------------------- */

static void find_periods(measured *m)
{
    const gp_graph *g = m->g;
    for (int v = 0; v < g->nstages; v++) {
        const gp_stage *st = &g->stage[v];
        double n = st->nin ? INFINITY : gp_node_number(named(m, "sources", st->name), "in") / (double)st->rate;
        for (int i = 0; i < st->nin; i++) {
            int from = st->in[i] < 0 || st->closes ? -1 : g->buffer[st->in[i]].producer.stage;
            if (from >= 0 && from < v)
                n = fmin(n, m->period[from]);
        }
        m->period[v] = n;
    }
    for (int v = 0; v < g->nstages; v++)
        m->period[v] = m->period[v] < INFINITY ? m->period[v] : m->r->frames;
}

/* Where others had a part of the cores, that a frame took long says little of the frame: from a quarter on nothing. */
static double spread_of(const measured *m, const gp_node *of)
{
    const gp_node *cores = gp_node_get(m->r->root, "cores");
    double p50 = gp_node_number(of, "frame_p50_us"), p99 = gp_node_number(of, "frame_p99_us");
    double part = number(cores, "others") / fmax(gp_node_number(cores, "all"), 1);
    return p50 > 0 && p99 > p50 ? 1 + (p99 / p50 - 1) * fmax(1 - 4 * part, 0) : 1;
}

static bool read_stage(measured *m, int v)
{
    const gp_stage *st = &m->g->stage[v];
    gp_stage_cost *c = &m->costs.stage[v];
    const gp_node *of = named(m, "stages", st->name);
    double busy = gp_node_number(of, "busy_s"), idle = gp_node_number(of, "idle_s"), cpu = gp_node_number(of, "cpu_s");
    double hertz = st->known.hertz, firings = fmax(m->period[v] * (double)st->rate, 1);
    if (!of)
        return another(m, "it has no stage", st->name);
    if (gp_node_number(of, "workers") != (double)st->workers)
        return another(m, "it has other workers in stage", st->name);
    if (busy < 0 || idle < 0)
        return lacks(m, "the busy time", st->name);
    if (cpu < 0 && gp_node_number(of, "frame_p50_us") >= 0)        /* what saw holes alone computed nothing */
        return lacks(m, "the CPU time", st->name);
    if (!gp_node_get(of, "turn_us") || !gp_node_get(of, "turn_frame_us"))
        return lacks(m, "the time of turns", st->name);
    m->busy_ns[v] = 1e9 * fmax(busy - idle, 0) / firings;
    *c = (gp_stage_cost){ .cpu_ns = fmin(1e9 * fmax(cpu, 0) / firings, m->busy_ns[v]), .spread = spread_of(m, of),
                          .turn_ns = 1e3 * number(of, "turn_us"), .frame_ns = 1e3 * number(of, "turn_frame_us"),
                          .stop = number(of, "turn_stop") };
    if (!st->nin) {
        c->frames = (uint64_t)fmax(gp_node_number(named(m, "sources", st->name), "in"), 1);
        c->pace_ns = hertz > 0 ? 1e9 / hertz : 1e9 * idle > 0.1 * m->r->wall_ns ? m->r->wall_ns / (double)c->frames : 0;
    }
    return true;
}

/* ---- segments, copies -------------------------------------------------- */

/* The segment of the report that has the same stages. */
static const gp_node *segment_of(const measured *m, const gp_segment *s)
{
    const gp_node *all = gp_node_list(m->r->root, "segments");
    for (int k = 0; all && k < all->n; k++) {
        const gp_node *stages = gp_node_list(all->item[k], "stages");
        int n = 0;
        bool same = stages != NULL;
        for (int i = 0; same && i < s->ntasks; i++) {
            int v = m->plan->task[s->task[i]].stage;
            same = v < 0 || (n < stages->n && !strcmp(stages->item[n]->text, m->g->stage[v].name));
            n += v >= 0;
        }
        if (same && n == stages->n)
            return all->item[k];
    }
    return NULL;
}

static bool read_segment(measured *m, int k)
{
    gp_segment_cost *c = &m->costs.segment[k];
    int first = gp_segment_first(m->plan, k);
    const char *name = m->g->stage[first].name;
    const gp_node *of = segment_of(m, &m->plan->segment[k]);
    double launching = gp_node_number(of, "launching_s"), launches = gp_node_number(of, "launches");
    double cpu = gp_node_number(of, "kernels_cpu_s"), firings = m->period[first] * (double)m->g->stage[first].rate;
    if (!of)
        return another(m, "it has no segment of the stages from", name);
    if (launching < 0 || launches < 1)
        return lacks(m, "the launches", name);
    if (m->plan->unified && cpu < 0)
        return lacks(m, "the CPU time of the kernels", name);
    *c = (gp_segment_cost){ .launch_ns = 1e9 * launching / launches, .spread = spread_of(m, of) };
    if (m->plan->unified)
        c->kernels_ns = 1e9 * cpu / fmax(firings, 1);
    m->firings[k] = firings, m->each[k] = fmax(firings / launches, 1);
    m->took_ns[k] = 1e3 * number(of, "frame_p50_us"), m->weight[k] = m->took_ns[k] * number(of, "frames");
    return true;
}

static bool on_cores(const measured *m)
{
    return m->g->ndevices && m->g->device[0].pretend;
}

/* What a launch of segment k moves one way, for each firing: of as many as it had in the mean. */
static gp_crossing crossing(const measured *m, int k, gp_engine e)
{
    return gp_costs_crossing(m->plan, &m->plan->segment[k], e, (int)lround(m->each[k]));
}

/* The rate of copies of all devices: that of a limit, where there is one, else the bytes over the time of the engines.
 * *beside: what each of `copies` took more than that, where it is most of it; else others may have had a part of the
 * limit. Parts of the CPU copy in memory, and have no limit. */
static bool read_copies(const measured *m, const char *way, double copies, bool crosses, double *rate, double *beside)
{
    const double USUAL_IN_MEMORY = 5e9;
    const gp_node *engines = gp_node_list(m->r->root, "engines");
    double limit = 0, bytes = 0, took = 0;
    bool by_device = true;
    for (int i = 0; engines && i < engines->n; i++) {
        const gp_node *e = engines->item[i];
        if (strcmp(gp_node_text(e, "name"), way))
            continue;
        limit = fmax(limit, gp_node_number(e, "limit_gb_s"));
        bytes += number(e, "bytes"), took += number(e, "busy_s");
        by_device &= !strcmp(gp_node_text(e, "measured"), "true");
    }
    *rate = limit > 0 ? 1e9 * limit : bytes > 0 && took > 0 ? bytes / took
          : on_cores(m) && !(copies > 0) ? USUAL_IN_MEMORY : 0;
    double more = limit > 0 && by_device && copies > 0 ? 1e9 * took / copies - bytes / limit / copies : 0;
    *beside = limit > 0 && more > bytes / limit / copies ? more : 0;
    return *rate > 0 || !(bytes > 0 || crosses) || lacks(m, "the rate", way);
}

/* How long kernels had device d of the plan, in s; -1: the report does not say so. */
static double compute_of(const measured *m, int d)
{
    const gp_node *engines = gp_node_list(m->r->root, "engines");
    bool there = false;
    for (int i = 0; engines && i < engines->n; i++) {
        const gp_node *e = engines->item[i];
        bool compute = !strcmp(gp_node_text(e, "name"), "compute");
        there |= compute;
        if (compute && (m->g->ndevices < 2 || !strcmp(gp_node_text(e, "device"), m->g->device[d].name)))
            return gp_node_number(e, "busy_s");
    }
    return there ? 0 : -1;             /* it was not used */
}

/* The time in which kernels had device d is shared out by how long the launches of each segment took. */
static bool read_kernels(measured *m, int d)
{
    double all = 0, busy = compute_of(m, d);
    int there = 0;
    if (busy < 0)
        return lacks(m, "the time of engine", "compute");
    for (int pass = 0; pass < 2; pass++)
        for (int k = 0; k < m->plan->nsegments; k++) {
            gp_place on = m->plan->segment[k].place;
            double mine = m->weight[k] / on.lanes;
            if (d < on.index || d >= on.index + on.lanes)
                continue;
            if (!pass)
                all += mine, there++;
            else
                m->costs.segment[k].kernels_ns += 1e9 * busy * (all > 0 ? mine / all : 1.0 / there)
                                                  / fmax(m->firings[k], 1);
        }
    return true;
}

/* Of their time, what they copy themselves: gp_crossing_ns() has that. What overlapped is not known: something is left. */
static void part_crossings(measured *m)
{
    for (int k = 0; k < m->plan->nsegments; k++) {
        gp_segment_cost *c = &m->costs.segment[k];
        double link = 0;
        for (int e = 0; e < GP_ENGINES; e++) {
            gp_crossing x = crossing(m, k, (gp_engine)e);
            link += x.copied ? 0 : gp_crossing_ns(&m->costs, x, (gp_engine)e, (int)lround(m->each[k])) / m->each[k];
        }
        c->kernels_ns = fmax(c->kernels_ns - link, c->kernels_ns / 10);
    }
}

/* The device's time of kernels that leave room for others is only the least that they take, as those of several
 * launches may have run side by side: find_kernels() finds it from what their launches took. */
static void part_kernels(measured *m)
{
    for (int k = 0; k < m->plan->nsegments; k++) {
        gp_segment_cost *c = &m->costs.segment[k];
        double fills = gp_segment_occupancy(m->plan, k);
        c->part = fmin(fills, 1);
        if (fills > 0)
            c->kernels_ns *= m->each[k] / fmax(m->each[k] * c->part, 1);
        m->least_ns[k] = c->part < 1 ? c->kernels_ns : 0;
    }
}

static bool read_device(measured *m)
{
    gp_costs *c = &m->costs;
    const struct { const char *name; gp_engine engine; double *rate; } way[] = {
        { "copy in", GP_ENGINE_COPY_IN, &c->copy_in }, { "copy out", GP_ENGINE_COPY_OUT, &c->copy_out },
        { "peer copy", GP_ENGINE_COPY_PEER, &c->copy_peer },
    };
    /* Of an H200: where no copy engine was used, what its copies would take beside; and a kernel that copies. */
    const double USUAL_COPY = 3e3, USUAL_LINK = 1e3;
    double all_copies = 0;
    for (int i = 0; i < 3; i++) {
        double copies = 0, beside;
        bool crosses = false;
        for (int k = 0; k < m->plan->nsegments; k++) {
            gp_crossing x = crossing(m, k, way[i].engine);
            copies += x.copied ? m->firings[k] / m->each[k] : 0, crosses |= x.copied || x.on_link;
        }
        if (!read_copies(m, way[i].name, copies, crosses, way[i].rate, &beside))
            return false;
        c->copy_ns += copies * beside, all_copies += copies;
    }
    c->copy_ns = on_cores(m) ? 0 : all_copies > 0 ? c->copy_ns / all_copies : USUAL_COPY;
    c->link_ns = on_cores(m) ? 0 : USUAL_LINK;
    c->copy_usual = !on_cores(m) && !(all_copies > 0);
    if (c->copy_usual)
        gp_costs_measured(c, &m->g->device[0].info);
    for (int d = 0; d < m->g->ndevices; d++)
        if (!read_kernels(m, d))
            return false;
    part_crossings(m);
    part_kernels(m);
    return true;
}

/* ---- the machine ------------------------------------------------------- */

/* Threads shared the cores, so that without them nothing is known of what a frame costs. Where threads were hardly ever
 * woken, it matters little how long that takes: as is usual. */
static bool read_threads(measured *m)
{
    enum { FEWEST = 10 };              /* wakes, from which it can be told how long one takes */
    const double USUAL_WAKE = 8e3, USUAL_CALL = 2.5e3;
    const gp_node *cores = gp_node_get(m->r->root, "cores"), *wakes = gp_node_get(m->r->root, "wakes");
    double all = gp_node_number(cores, "all"), quota = gp_node_number(cores, "quota");
    double wake = gp_node_number(wakes, "p10_us"), call = gp_node_number(wakes, "call_p10_us");
    gp_costs *c = &m->costs;
    const char *lacking = !(all >= 1) ? "'cores.all', how many cores its threads shared"
                        : !wakes ? "'wakes', how long it takes to wake a thread" : NULL;
    if (lacking)
        return gp_fail(m->errs, GP_E_USAGE, m->r->at, "the report lacks %s; " MAKE_ANEW, lacking);
    c->cores = fmax(all - number(cores, "others"), 0.5);
    c->others = all - c->cores;
    if (quota > 0 && quota < c->cores)
        c->cores = quota;
    bool known = gp_node_number(wakes, "count") >= FEWEST && wake > 0 && call >= 0;
    c->wake_ns = known ? 1e3 * wake : USUAL_WAKE, c->call_ns = known ? 1e3 * call : USUAL_CALL;
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

static bool read_all(gp_arena *a, measured *m)
{
    const gp_graph *g = m->g;
    int n = m->plan->nsegments;
    const gp_node *pipeline = gp_node_get(m->r->root, "pipeline");
    const char *device = gp_node_text(pipeline, "device");
    m->costs = (gp_costs){ .stage = GP_NEW(a, gp_stage_cost, g->nstages), .nstages = g->nstages, .slower = 1,
                           .segment = GP_NEW(a, gp_segment_cost, n), .nsegments = n,
                           .digests = gp_node_get(pipeline, "digests") };
    double **const of_stages[] = { &m->period, &m->busy_ns };
    double **const of_segments[] = { &m->firings, &m->weight, &m->took_ns, &m->each, &m->least_ns };
    for (size_t i = 0; i < sizeof of_stages / sizeof *of_stages; i++)
        *of_stages[i] = GP_NEW(a, double, g->nstages);
    for (size_t i = 0; i < sizeof of_segments / sizeof *of_segments; i++)
        *of_segments[i] = GP_NEW(a, double, n);
    if (n && !are_alike(device, g->device_name))
        return gp_fail(m->errs, GP_E_USAGE, m->r->at, "a report of a run on '%.60s', and with its settings this plan "
                       "is for '%.60s'; " MAKE_ANEW, device, g->device_name);
    if (!read_threads(m))
        return false;
    find_periods(m);
    for (int v = 0; v < g->nstages; v++)
        if (!g->stage[v].device && !read_stage(m, v))
            return false;
    for (int k = 0; k < n; k++)
        if (!read_segment(m, k))
            return false;
    return m->plan->unified || !n || read_device(m);
}

/* ---- what a report does not say ---------------------------------------- */

/* It is such that the plan of the run, simulated, does what the run did:
 *
 *   wait_ns   of each host stage: what its busy time was beside CPU time, less what threads wait for a core in the
 *             simulation: it slept then, for a disk or another process
 *   kernels_ns of those that leave room for others on a GPU: their launches take as long as those of the run
 *   all       times are scaled, where the rate still differs: caches, memory and the clock of the cores are shared, too
 */

/* Threads sleep for what firings took that simulated ones do not. */
static void find_waits(measured *m, const gp_actor_report *p)
{
    double busy = (double)(p->busy_ns - p->idle_ns) / (double)p->time.n;
    gp_stage_cost *stage = &m->costs.stage[p->stage];
    stage->wait_ns = fmax(stage->wait_ns + m->busy_ns[p->stage] - busy, 0);
}

/* What launches took more than simulated ones is of their kernels: of several that share the device each has a part. */
static void find_kernels(measured *m, const gp_actor_report *p)
{
    int k = p->segment;
    gp_segment_cost *c = &m->costs.segment[k];
    double each = m->each[k], fill = fmin(each * c->part, 1);
    double more = each * (m->took_ns[k] - (double)gp_hist_at(&p->time, 0.5));
    more /= fmax(m->plan->segment[k].streams * fill, 1) * fmax(each * c->part, 1);
    c->kernels_ns = fmax(c->kernels_ns + more, m->least_ns[k]);
}

/* What the run took over what the simulation takes; < 0: it failed. */
static double ratio_of(gp_arena *a, measured *m, bool find)
{
    enum { FRAMES = 20000 };
    const gp_simulated *s = gp_simulate(a, m->plan, &m->costs, FRAMES, 0, m->errs);
    for (int i = 0; s && find && i < s->report->nactors; i++) {
        const gp_actor_report *p = &s->report->actor[i];
        if (p->stage >= 0 && p->time.n)
            find_waits(m, p);
        if (p->segment >= 0 && p->time.n && m->least_ns[p->segment] > 0)
            find_kernels(m, p);
    }
    double frames = m->r->frames;
    return s ? m->r->wall_ns / frames / (frames <= FRAMES ? (double)s->report->wall_ns / frames : 1e9 / s->frames_per_s)
             : -1;
}

static void scale(gp_costs *c, double by)
{
    c->slower *= by;
    for (int v = 0; v < c->nstages; v++)
        c->stage[v].cpu_ns *= by, c->stage[v].wait_ns *= by, c->stage[v].turn_ns *= by, c->stage[v].frame_ns *= by;
    for (int k = 0; k < c->nsegments; k++)
        c->segment[k].kernels_ns *= by, c->segment[k].launch_ns *= by;
}

gp_costs *gp_costs_read(gp_arena *a, const gp_source_report *r, const gp_plan *plan, gp_errs *errs)
{
    enum { WAITS = 4, SCALINGS = 8 };
    const double CLOSE = 0.0025;
    measured *m = GP_NEW(a, measured, 1);
    *m = (measured){ .r = r, .plan = plan, .g = plan->graph, .errs = errs };
    if (!read_all(a, m))
        return NULL;
    for (int i = 0; i < WAITS; i++)
        if (ratio_of(a, m, true) < 0)
            return NULL;
    for (int i = 0; i < SCALINGS; i++) {
        double ratio = ratio_of(a, m, false);
        if (!(ratio > 0) || fabs(ratio - 1) < CLOSE)
            break;
        scale(&m->costs, fmax(fmin(ratio, 2), 0.5));
    }
    return &m->costs;
}
