/* about.c - what a pipeline became, for an application: no pointers to the forms, and
 * no indices into them. */
#include "api/forms.h"
#include "device/machine.h"
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

void gp_pipeline_about(const gp_pipeline *p, gp_pipeline_info *out)
{
    const gp_graph *g = p->graph;
    *out = (gp_pipeline_info){
        .name = g->name, .nstages = g->nstages, .nbuffers = g->nbuffers,
        .nsegments = p->plan->nsegments, .device = g->device, .device_why = g->device_why,
        .copies = !p->plan->unified,
    };
}

bool gp_pipeline_stage(const gp_pipeline *p, int i, gp_stage_info *out)
{
    if (i < 0 || i >= p->graph->nstages)
        return false;
    const gp_stage *s = &p->graph->stage[i];
    *out = (gp_stage_info){
        .name = s->name, .at = s->at, .kind = s->kind, .opts = s->opts, .nin = s->nin,
        .nout = s->nout, .device = s->device, .workers = s->workers, .endless = s->endless,
        .frames = s->known.frames, .once = s->once, .any_length = s->any_length,
        .writes = s->writes, .writes_opt = s->writes_opt,
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

/* ---- lint -------------------------------------------------------------- */

void gp_pipeline_lint(const gp_pipeline *p, const gp_machine *machine, gp_errs *errs)
{
    gp_machine here = { 0 };
    if (!machine && gp_lint_of_machine(p->plan))
        gp_machine_read(&here, true);
    if (!here.ndevices)
        gp_machine_fixed(&here, 1);
    gp_lint(p->plan, p->spec, machine ? machine : &here, p->text, p->len, errs);
}
