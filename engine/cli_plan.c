/* cli_plan.c - gpipe check, gpipe plan. */
#include "cli.h"
#include "dump.h"

/* For the GPU that is here; without one, for the one that the plan supposes. */
static void lint(const gp_loaded *l, gp_errs *errs)
{
    const gp_plan *plan = gp_pipeline_plan(l->pipeline);
    gp_machine m = { 0 };
    if (plan->nsegments && plan->graph->device >= 0)
        gp_machine_read(&m, true);
    if (!m.ndevices)
        gp_machine_fixed(&m, 1);
    gp_lint(plan, gp_pipeline_spec(l->pipeline), &m, l->text, l->len, errs);
}

int gp_cmd_check(const gp_args *args, const gp_registry *registry, gp_errs *errs)
{
    int status = 0;
    for (int i = 0; i < args->noperands; i++) {
        gp_loaded l;
        *errs = (gp_errs){ 0 };
        if (gp_load(&l, args->operand[i], args, registry, errs)) {
            lint(&l, errs);
            if (!args->quiet)
                printf("%s: ok\n", l.file);
        } else if (!status) {
            status = gp_errs_exit(errs);
        }
        fflush(stdout);
        gp_print_errs(args, &l, errs);
        gp_unload(&l);
    }
    *errs = (gp_errs){ 0 };
    return status;
}

int gp_cmd_plan(const gp_args *args, const gp_registry *registry, gp_errs *errs)
{
    gp_dump how = args->json ? GP_DUMP_JSON : args->dot ? GP_DUMP_DOT : GP_DUMP_TEXT;
    gp_loaded l;
    bool ok = gp_load(&l, args->operand[0], args, registry, errs);
    gp_print_errs(args, &l, errs);
    int status = ok ? 0 : gp_errs_exit(errs);
    *errs = (gp_errs){ 0 };
    const gp_graph *graph = ok ? gp_pipeline_graph(l.pipeline) : NULL;
    const gp_plan *plan = ok && args->form == GP_FORM_PLAN ? gp_pipeline_plan(l.pipeline) : NULL;
    if (ok && args->svg)
        gp_dump_svg(stdout, graph, plan, errs);
    else if (ok && args->mermaid)
        gp_dump_mermaid(stdout, graph, plan, errs);
    else if (ok && args->form == GP_FORM_SPEC)
        gp_dump_spec(stdout, gp_pipeline_spec(l.pipeline), how);
    else if (ok && args->form == GP_FORM_GRAPH)
        gp_dump_graph(stdout, graph, how);
    else if (ok)
        gp_dump_plan(stdout, plan, how);
    gp_unload(&l);
    return status;
}
