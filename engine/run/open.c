/* open.c - the stages of a run are opened, and closed: one of the device once for each device that it is on. */
#include <stdlib.h>
#include <string.h>
#include "run/setup.h"

/* On device `d`, where it runs on one. */
static bool open_on(gp_run *run, int i, int d, const gp_segment *seg, gp_errs *errs)
{
    const gp_graph *g = run->graph;
    const gp_stage *s = &g->stage[i];
    int at = d * g->nstages + i, before = errs->failed;
    bool of_ranks = s->shared || s->kind->collective;
    gp_open o = { .opts = s->opts, .user = s->kind->user, .name = s->name, .at = s->at, .nin = s->nin,
                  .nout = s->nout, .in = run->types[i], .out = run->types[i] + s->nin,
                  .in_name = s->in_name, .out_name = s->out_name, .workers = s->workers,
                  .scope = &g->scope, .dev = gp_stage_makes_on_device(s) ? run->dev[d] : NULL, .errs = errs,
                  .files = run->files, .slots = seg ? seg->depth / seg->place.lanes : 0,
                  .rank = of_ranks ? g->rank : 0, .ranks = of_ranks ? g->ranks : 1,
                  .ctx = run, .joins = gp_run_joins(run, s), .from = s->shared ? g->from : 0,
                  .saved = gp_resume_saved(run, i) };
    run->opened[at] = true;
    errs->at = s->at;
    atomic_store(&run->opening, s);
    bool ok = s->kind->open(&o, &run->state[at]);
    if (!ok && errs->failed == before && !atomic_load(&run->level))
        gp_fail(errs, GP_E_RUN, s->at, "stage '%s' cannot be opened and does not say why", s->name);
    atomic_store(&run->opening, NULL);
    atomic_fetch_add(&run->steps, 1);
    return ok;
}

bool gp_stages_open(gp_run *run, bool device, gp_errs *errs)
{
    const gp_graph *g = run->graph;
    gp_loc was = errs->at;
    for (int i = 0; i < g->nstages; i++) {
        const gp_stage *s = &g->stage[i];
        if (s->device != device || !s->kind->open || run->keeps[i] || s->elsewhere || gp_is_idle_sink(run, s))
            continue;
        gp_type *types = run->types[i] = calloc((size_t)(s->nin + s->nout) + 1, sizeof *types);
        if (!types)
            return gp_fail(errs, GP_E_RESOURCE, s->at, "out of memory");
        for (int k = 0; k < s->nin + s->nout; k++) {
            int b = k < s->nin ? s->in[k] : s->out[k - s->nin];
            if (b >= 0)
                types[k] = g->buffer[b].type;
        }
        int segment = gp_plan_segment_of(run->plan, i);
        const gp_segment *seg = segment < 0 ? NULL : &run->plan->segment[segment];
        gp_place place = seg ? seg->place : (gp_place){ .lanes = 1 };
        for (int d = place.index; d < place.index + place.lanes; d++)
            if (atomic_load(&run->level) || !open_on(run, i, d, seg, errs))
                return false;
    }
    errs->at = was;
    return true;
}

void gp_stages_break_off(gp_run *run, int stage, gp_errs *errs)
{
    const gp_kind *k = run->graph->stage[stage].kind;
    const gp_errs *of = errs->failed ? errs : &run->errs;
    char why[sizeof of->e->msg] = "the run was stopped";
    if (!run->opened[stage] || !k->break_off || !run->state[stage])
        return;
    pthread_mutex_lock(&run->lock);
    for (int i = of->n - 1; i >= 0; i--)
        if (of->e[i].code != GP_E_WARN && of->e[i].code != GP_E_NOTE)
            strcpy(why, of->e[i].msg);
    pthread_mutex_unlock(&run->lock);
    k->break_off(run->state[stage], why, errs);
}

void gp_stage_close(const gp_stage *s, void *state, const char *why)
{
    gp_errs errs = { .n = 0 };             /* nobody is left to hear a warning */
    if (s->kind->break_off && state)
        s->kind->break_off(state, why, &errs);
    if (s->kind->close)
        s->kind->close(state);
}

void gp_stages_close(gp_run *run)
{
    int n = run->graph->nstages;
    for (int i = n * run->ndevs - 1; run->opened && i >= 0; i--)
        if (run->opened[i])
            gp_stage_close(&run->graph->stage[i % n], run->state[i], "the run did not begin");
    for (int i = 0; run->types && i < run->graph->nstages; i++)
        free(run->types[i]);
}
