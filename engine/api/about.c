/* about.c - what a pipeline became, for an application: no pointers to the forms, and
 * no indices into them. */
#include "api/forms.h"
#include "base/c_locale.h"
#include "device/machine.h"
#include "compile/inside.h"
#include "compile/plan.h"
#include "run/pipeline.h"

const gp_spec *gp_pipeline_spec(const gp_pipeline *p)
{
    return p->spec;
}

const gp_graph *gp_pipeline_graph(const gp_pipeline *p)
{
    return p->graph;
}

const gp_plan *gp_pipeline_plan(const gp_pipeline *p)
{
    return p->plan;
}

int gp_pipeline_meta_keys(const gp_pipeline *p, const char *const **keys)
{
    *keys = p->graph->metadata;
    return p->graph->nmetadata;
}

void gp_pipeline_about(const gp_pipeline *p, gp_pipeline_info *out)
{
    const gp_graph *g = p->graph;
    *out = (gp_pipeline_info){
        .name = g->name, .nstages = g->nstages, .nbuffers = g->nbuffers, .devices = g->device_name,
        .nsegments = p->plan->nsegments, .device = g->ndevices && !g->device[0].pretend ? g->device[0].index : -1,
        .device_why = g->device_why,
        .stall_ns = g->stall_ns,
    };
}

/* The frames of a source that this rank makes. */
static int64_t share_of(const gp_graph *g, const gp_stage *s)
{
    int64_t n = s->known.frames;
    return n && s->shared ? (n - g->rank + g->ranks - 1) / g->ranks : n;
}

bool gp_pipeline_stage(const gp_pipeline *p, int i, gp_stage_info *out)
{
    if (i < 0 || i >= p->graph->nstages)
        return false;
    const gp_stage *s = &p->graph->stage[i];
    *out = (gp_stage_info){
        .name = s->name, .at = s->at, .kind = s->kind, .opts = s->opts, .nin = s->nin,
        .nout = s->nout, .device = s->device, .workers = s->workers, .endless = s->endless,
        .frames = share_of(p->graph, s), .frames_of_all = s->known.frames, .reads = s->reads, .nreads = s->nreads,
        .once = s->once, .any_length = s->any_length,
        .writes = s->writes, .writes_opt = s->writes_opt,
        .shared = s->shared, .writes_from = s->writes_from, .joins = s->shared && s->joins,
        .elsewhere = s->elsewhere,
    };
    return true;
}

bool gp_pipeline_buffer(const gp_pipeline *p, int i, gp_buffer_info *out)
{
    if (i < 0 || i >= p->graph->nbuffers)
        return false;
    const gp_buffer *b = &p->graph->buffer[i];
    *out = (gp_buffer_info){
        .name = b->name, .at = b->at, .type = b->type, .depth = b->depth,
        .depth_said = b->depth_said, .constant = b->producer.stage < 0,
    };
    return true;
}

/* ---- knobs ------------------------------------------------------------- */

static void put_knob(gp_knob *out, int max, int *n, const char *path, const char *value, int number)
{
    if (*n < max) {
        gp_knob *k = &out[*n];
        snprintf(k->path, sizeof k->path, "%s", path);
        if (value)
            snprintf(k->value, sizeof k->value, "%s", value);
        else
            snprintf(k->value, sizeof k->value, "%d", number);
    }
    ++*n;
}

/* "200us", "0". */
static const char *time_text(int64_t ns, char out[24])
{
    snprintf(out, 24, "%.9gus", (double)ns / 1e3);
    return ns ? out : "0";
}

int gp_pipeline_knobs(const gp_pipeline *p, gp_knob *out, int max)
{
    GP_C_LOCALE;
    const gp_graph *g = p->graph;
    char path[96], time[24];
    int n = 0;
    put_knob(out, max, &n, "depth", NULL, gp_plan_depth(p->plan));
    if (p->plan->nsegments) {
        put_knob(out, max, &n, "streams", g->streams ? NULL : "auto", g->streams);
        put_knob(out, max, &n, "batch", g->batch ? NULL : "auto", g->batch);
        if (g->latency_ns)             /* then no launch has a wait of its own */
            put_knob(out, max, &n, "latency", time_text(g->latency_ns, time), 0);
        else
            put_knob(out, max, &n, "batch_wait", time_text(g->batch_wait_ns, time), 0);
        put_knob(out, max, &n, "launch", gp_launch_name[g->launch], 0);
    }
    put_knob(out, max, &n, "sync", gp_sync_name[g->sync], 0);
    for (int i = 0; i < g->nstages; i++) {
        const gp_stage *s = &g->stage[i];
        if (s->device || s->regroups || gp_is_carry(s) || s->serial || (!s->nin && !s->kind->by_number)
            || snprintf(path, sizeof path, "stages.%s.workers", s->name) >= (int)sizeof path)
            continue;
        put_knob(out, max, &n, path, NULL, s->workers);
    }
    return n;
}

uint64_t gp_pipeline_included(const gp_pipeline *p)
{
    uint64_t sum = 0;
    for (const gp_inside *in = p->spec->insides; in; in = in->next)
        sum += in->text ? gp_text_hash(in->text) : 0;
    return sum;
}

/* ---- lint -------------------------------------------------------------- */

void gp_pipeline_lint(const gp_pipeline *p, const gp_machine *machine, gp_errs *errs)
{
    GP_C_LOCALE;
    gp_machine *here = machine ? NULL : gp_machine_create(gp_lint_of_machine(p->plan));
    if (!machine && !here) {
        gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory");
        return;
    }
    if (here && !here->ndevices)
        gp_machine_fixed(here, 1);
    gp_lint(p->plan, p->spec, machine ? machine : here, p->text, p->len, errs);
    gp_spec_places(p->spec, errs);
    gp_machine_destroy(here);
}

const gp_plugin_info *gp_pipeline_plugin(const gp_pipeline *p, int i)
{
    const gp_used_plugin *u = p->graph->plugins;
    while (u && i--)
        u = u->next;
    return u ? u->info : NULL;
}
