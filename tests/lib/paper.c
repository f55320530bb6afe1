/* paper.c - see paper.h. */
#include "api/forms.h"
#include "paper.h"

gp_costs paper_costs(const gp_plan *plan, gp_costs like, gp_segment_cost segment)
{
    gp_costs c = like;
    c.nstages = plan->graph->nstages, c.nsegments = plan->nsegments;
    c.stage = GP_NEW(&verdict_arena, gp_stage_cost, c.nstages);
    c.segment = GP_NEW(&verdict_arena, gp_segment_cost, c.nsegments);
    c.cores = like.cores > 0 ? like.cores : 64;
    double *rate[] = { &c.copy_in, &c.copy_out, &c.copy_peer };
    for (int i = 0; i < 3; i++)
        *rate[i] = *rate[i] > 0 ? *rate[i] : 1e3 * MIB;
    for (int v = 0; v < c.nstages; v++)
        c.stage[v].frames = PAPER_FRAMES;
    for (int k = 0; k < c.nsegments; k++)
        c.segment[k] = segment;
    return c;
}

gp_simulated *paper_simulate(const gp_plan *plan, const gp_costs *costs, const char *what)
{
    gp_errs errs = { 0 };
    gp_simulated *s = gp_simulate(&verdict_arena, plan, costs, 0, 0, &errs);
    ck_assert_msg(s != NULL, "%s: %s", what, errs.e[0].msg);
    for (int i = 0; i < s->report->nactors; i++) {
        const gp_actor_report *p = &s->report->actor[i];
        ck_assert_msg(p->busy_ns >= p->idle_ns, "%s: '%s' is busy for %g s, and idle for %g s of that", what, p->name,
                      1e-9 * (double)p->busy_ns, 1e-9 * (double)p->idle_ns);
    }
    return s;
}

const gp_costs *paper_again(const gp_pipeline *p, gp_simulated *s, const char *what)
{
    gp_errs errs = { 0 };
    char *json = NULL;
    size_t len = 0;
    gp_verdict_find(s->report, p);
    gp_report_about about = { .outcome = GP_DONE, .account = s->account, .naccounts = s->naccounts };
    FILE *f = open_memstream(&json, &len);
    gp_report_json(s->report, p, &about, f);
    fclose(f);
    const gp_source_report *r = gp_source_report_read(&verdict_arena, json, len, "run.json", &errs);
    const gp_costs *found = r ? gp_costs_read(&verdict_arena, r, gp_pipeline_plan(p), &errs) : NULL;
    ck_assert_msg(found != NULL, "%s: %s", what, errs.e[0].msg);
    free(json);
    return found;
}
