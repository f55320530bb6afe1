/* report_json.c - a report as JSON: what tests/report.schema.json describes.
 *
 * Times end in _s or _us, parts of a whole are 0 to 1, what is not known is null. */
#include <math.h>
#include <string.h>
#include "api/forms.h"
#include "api/machine_file.h"
#include "base/json.h"
#include "compile/plan.h"
#include "report/report.h"

static const char *const outcomes[] = {
    [GP_DONE] = "done", [GP_DRAINED] = "drained", [GP_NOT_DRAINED] = "not drained",
    [GP_ERROR] = "error", [GP_STUCK] = "stuck",
};

const char *gp_outcome_text(gp_outcome outcome)
{
    return outcomes[outcome];
}

const char *gp_bound_name(gp_bound b)
{
    static const char *const name[] = {
        [GP_BOUND_UNKNOWN] = "unknown", [GP_BOUND_RATE] = "rate", [GP_BOUND_STAGE] = "stage",
        [GP_BOUND_CORES] = "cores", [GP_BOUND_COPY_IN] = "copy in",
        [GP_BOUND_COMPUTE] = "compute", [GP_BOUND_COPY_OUT] = "copy out",
        [GP_BOUND_COPY_PEER] = "peer copy",
        [GP_BOUND_LAUNCH] = "launch", [GP_BOUND_STREAMS] = "streams", [GP_BOUND_DEPTH] = "depth", [GP_BOUND_CYCLE] = "cycle",
    };
    return name[b];
}

/* ---- members ---------------------------------------------------------- */

static double seconds(int64_t ns)
{
    return 1e-9 * (double)ns;
}

static double known(bool is_known, double v)
{
    return is_known ? v : NAN;
}

static double us_at(const gp_hist *h, double q)
{
    return known(h->n > 0, 1e-3 * (double)gp_hist_at(h, q));
}

static const char *text(const char *s)
{
    return *s ? s : NULL;
}

/* 0 is auto. */
static void knob(gp_json *j, const char *key, int v)
{
    if (v)
        gp_json_int(j, key, v);
    else
        gp_json_str(j, key, "auto");
}

/* ---- the parts -------------------------------------------------------- */

static void pipeline(gp_json *j, const gp_graph *g)
{
    gp_json_put(j, "pipeline: {name: %s, file: %s, device: %s", g->name, g->file, g->device_name);
    knob(j, "depth", g->depth);
    knob(j, "streams", g->streams);
    knob(j, "batch", g->batch);
    gp_json_put(j, "batch_wait_ns: %jd, latency_ns: %jd, launch: %s, sync: %s, on_error: %s, digests: {",
                g->batch_wait_ns, g->latency_ns, gp_launch_name[g->launch], gp_sync_name[g->sync],
                g->on_error == GP_ON_ERROR_DROP ? "drop" : "stop");
    for (int i = 0; i < g->ndigests; i++)
        gp_json_str(j, g->digest[i].stage, g->digest[i].of);
    gp_json_put(j, "}, plugins: {");
    for (const gp_used_plugin *u = g->plugins; u; u = u->next)
        gp_json_str(j, u->info->name, u->info->version);
    gp_json_put(j, "}}");
}

/* What was measured of launches is what the plan was made with. */
static void environment(gp_json *j, const gp_environment *e, const gp_graph *g)
{
    gp_json_put(j, "environment: {cpu: %s, cores: %d, gpu: %s, driver: %s, toolkit: %s", text(e->cpu), e->cores,
                text(e->gpu), text(e->driver), text(e->toolkit));
    if (g->ndevices)
        gp_launch_json(j, g->device[0].info.launch);
    gp_json_close(j, '}');
}

/* The median of wakes has what threads waited for a core, where others had it. */
static void cores(gp_json *j, const gp_report *r)
{
    gp_json_put(j, "cores: {all: %d, used: %g, others: %g, quota: %g}", r->cpus,
                known(r->wall_ns > 0, (double)r->cpu_ns / (double)r->wall_ns), r->others,
                known(r->quota > 0, r->quota));
    gp_json_put(j, "wakes: {count: %ju, p10_us: %g, call_p10_us: %g}", r->wakes.n, us_at(&r->wakes, 0.1),
                us_at(&r->wake_calls, 0.1));
}

void gp_accounts_json(gp_json *j, const gp_account *a, int n, const char *left)
{
    GP_JSON_EACH(j, "sources", i, n) {
        gp_json_put(j, "{name: %s, in: %ju, out: %ju, dropped: %ju, failed: %ju", a[i].source, a[i].in, a[i].out,
                    a[i].dropped, a[i].failed);
        gp_json_size(j, left, a[i].cancelled);
        gp_json_put(j, "late: %ju, lost: %ju, full: %ju, faulty: %ju}", a[i].late, a[i].lost, a[i].full, a[i].faulty);
    }
}

static void stage(gp_json *j, const gp_report *r, const gp_actor_report *p, const gp_graph *g)
{
    double time = (double)r->wall_ns * (p->workers > 0 ? p->workers : 1);
    gp_json_put(j, "{name: %s, use: %s", p->name, g->stage[p->stage].kind->name);
    if (g->stage[p->stage].does)
        gp_json_str(j, "does", g->stage[p->stage].does);
    gp_json_put(j, "workers: %d, most_workers: %d, frames: %ju, bytes: %ju, busy: %g", p->workers, p->most_workers,
                p->frames, p->bytes, (double)(p->busy_ns - p->idle_ns) / time);
    gp_json_put(j, "busy_s: %g, idle_s: %g, cpu_s: %g, wait_in_s: %g, wait_out_s: %g", seconds(p->busy_ns),
                seconds(p->idle_ns), known(p->cpu_ns >= 0, seconds(p->cpu_ns)), seconds(p->wait_in_ns),
                seconds(p->wait_out_ns));
    gp_json_put(j, "turns: %ju, turn_us: %g, turn_frame_us: %g, turn_stop: %g, frame_p50_us: %g, frame_p99_us: %g}",
                p->turns, known(p->turn.turn >= 0, 1e-3 * p->turn.turn),
                known(p->turn.frame >= 0, 1e-3 * p->turn.frame), known(p->turn.stop > 0, p->turn.stop),
                us_at(&p->time, 0.5), us_at(&p->time, 0.99));
}

static void segment(gp_json *j, const gp_actor_report *p, const gp_plan *plan)
{
    const gp_segment *s = &plan->segment[p->segment];
    gp_json_put(j, "{name: %s", p->name);
    GP_JSON_EACH(j, "stages", i, s->ntasks)
        if (plan->task[s->task[i]].stage >= 0)
            gp_json_str(j, NULL, plan->graph->stage[plan->task[s->task[i]].stage].name);
    gp_json_put(j, "streams: %d, depth: %d, batch: %d, frames: %ju, bytes: %ju, launches: %ju", s->streams, s->depth,
                s->batch, p->frames, p->bytes, p->launches);
    gp_json_put(j, "launching_s: %g, kernels_cpu_s: %g, wait_in_s: %g, wait_out_s: %g, wait_stream_s: %g, "
                "frame_p50_us: %g, frame_p99_us: %g}", seconds(p->busy_ns), known(p->cpu_ns >= 0, seconds(p->cpu_ns)),
                seconds(p->wait_in_ns), seconds(p->wait_out_ns), seconds(p->wait_stream_ns), us_at(&p->time, 0.5),
                us_at(&p->time, 0.99));
}

static void engine(gp_json *j, const gp_report *r, const gp_engine_report *x)
{
    bool copies = strcmp(x->name, gp_bound_name(GP_BOUND_COMPUTE));
    bool timed = x->measured || x->busy_ns;
    gp_json_put(j, "{name: %s", x->name);
    if (x->device)
        gp_json_str(j, "device", x->device);
    gp_json_put(j, "busy: %g, busy_s: %g, bytes: %ju, by_kernels: %ju, gb_s: %g, limit_gb_s: %g, measured: %d?}",
                known(timed, (double)x->busy_ns / (double)r->wall_ns), known(timed, seconds(x->busy_ns)), x->bytes,
                x->by_kernels, known(copies, (double)x->bytes / (double)r->wall_ns), known(x->limit > 0, 1e-9 * x->limit),
                x->measured);
}

static void buffer(gp_json *j, const gp_report *r, const gp_buffer_report *b, const gp_graph *g)
{
    const gp_type *t = &g->buffer[b->buffer].type;
    gp_json_put(j, "{name: %s, from: %s, to: %s, depth: %d, held: %g, dtype: %s", b->name, r->actor[b->from].name,
                r->actor[b->to].name, b->depth, b->held, gp_dtype_name(t->dtype));
    GP_JSON_EACH(j, "shape", k, t->ndim)
        gp_json_int(j, NULL, t->dim[k]);
    gp_json_close(j, '}');
}

static void verdict(gp_json *j, const gp_report *r)
{
    const gp_verdict *v = &r->verdict;
    gp_json_put(j, "verdict: {bound: %s, name: %s, buffer: %s, text: %s", gp_bound_name(v->bound),
                v->actor >= 0 ? r->actor[v->actor].name : NULL, v->buffer >= 0 ? r->buffer[v->buffer].name : NULL,
                v->text);
    if (*v->path)
        gp_json_put(j, "edit: {path: %s, value: %s}", v->path, v->value);
    else
        gp_json_str(j, "edit", NULL);
    gp_json_close(j, '}');
}

/* ---- all of it -------------------------------------------------------- */

void gp_report_json(const gp_report *r, const gp_pipeline *p, const gp_report_about *about,
                    FILE *f)
{
    const gp_graph *g = gp_pipeline_graph(p);
    const gp_plan *plan = gp_pipeline_plan(p);
    gp_json j = { .f = f };
    const gp_hist *h = &r->latency;
    double done = (double)gp_frames_done(about->account, about->naccounts);
    gp_json_put(&j, "{gpipe: %s, commit: %s, date: %s, outcome: %s, wall_s: %g, frames_per_s: %g", GP_VERSION,
                text(about->environment.commit), about->environment.date,
                about->simulated ? "simulated" : gp_outcome_text(about->outcome), seconds(r->wall_ns),
                known(r->wall_ns > 0, 1e9 * done / (double)r->wall_ns));
    pipeline(&j, g);
    environment(&j, &about->environment, g);
    cores(&j, r);
    gp_json_strs(&j, "set", about->set, about->nset);
    if (about->nassumed)
        gp_json_strs(&j, "assumed", about->assumed, about->nassumed);
    gp_accounts_json(&j, about->account, about->naccounts, "cancelled");
    GP_JSON_EACH(&j, "stages", i, r->nactors)
        if (r->actor[i].stage >= 0)
            stage(&j, r, &r->actor[i], g);
    GP_JSON_EACH(&j, "segments", i, r->nactors)
        if (r->actor[i].segment >= 0)
            segment(&j, &r->actor[i], plan);
    GP_JSON_EACH(&j, "engines", i, r->nall)
        if (r->all[i].used)
            engine(&j, r, &r->all[i]);
    GP_JSON_EACH(&j, "buffers", i, r->nbuffers)
        buffer(&j, r, &r->buffer[i], g);
    gp_json_put(&j, "latency_us: {p50: %g, p90: %g, p95: %g, p99: %g, max: %g}, overlap: %g", us_at(h, 0.5),
                us_at(h, 0.9), us_at(h, 0.95), us_at(h, 0.99), us_at(h, 1), r->overlap);
    verdict(&j, r);
    gp_json_close(&j, '}');
}
