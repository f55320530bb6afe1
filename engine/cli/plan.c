/* plan.c - gpipe check, gpipe plan. */
#include <string.h>
#include "api/forms.h"
#include "base/plain.h"
#include "cli/ranks.h"
#include "draw/dump.h"

int gp_cmd_check(const gp_args *args, const gp_registry *registry, gp_errs *errs)
{
    int status = 0;
    for (int i = 0; i < args->noperands; i++) {
        gp_loaded l;
        *errs = (gp_errs){ 0 };
        bool ok = gp_load(&l, args->operand[i], args, registry, errs);
        if (gp_ranks_agree(args, &l, ok, errs)) {
            gp_pipeline_lint(l.pipeline, l.machine, errs);
            if (!args->quiet && !gp_rank())
                gp_put_plain(stdout, l.file, strlen(l.file), ""), puts(": ok");
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

/* What a run of it took; memory in `a`. NULL after errors. */
static const gp_measured *read_report(const char *file, const gp_plan *plan, gp_loaded *text,
                                      gp_arena *a, gp_errs *errs)
{
    jmp_buf oom;
    if (setjmp(oom)) {
        gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory");
        return NULL;
    }
    a->oom = &oom;
    return gp_load_text(text, file, errs)
        ? gp_measured_read(a, plan, text->text, text->len, text->file, errs) : NULL;
}

/* A drawing: of the graph, its measures too are of the plan. */
static bool draw(const gp_args *args, const gp_plan *plan, gp_errs *errs)
{
    gp_arena a = { 0 };
    gp_loaded text = { 0 };
    const gp_measured *m = args->with ? read_report(args->with, plan, &text, &a, errs) : NULL;
    const gp_plan *drawn = args->form == GP_FORM_PLAN ? plan : NULL;
    bool ok = m || !args->with;
    if (ok && args->svg)
        ok = gp_dump_svg(stdout, plan->graph, drawn, m, errs);
    else if (ok && args->mermaid)
        ok = gp_dump_mermaid(stdout, plan->graph, drawn, m, errs);
    else if (ok)
        gp_dump_dot(stdout, plan->graph, drawn, m);
    gp_arena_free(&a);
    gp_unload(&text);
    return ok;
}

struct form { const gp_pipeline *pipeline; gp_form form; gp_dump how; };

static void dump(FILE *f, const void *arg)
{
    const struct form *w = arg;
    if (w->form == GP_FORM_SPEC)
        gp_dump_spec(f, gp_pipeline_spec(w->pipeline), w->how);
    else if (w->form == GP_FORM_GRAPH)
        gp_dump_graph(f, gp_pipeline_graph(w->pipeline), w->how);
    else
        gp_dump_plan(f, gp_pipeline_plan(w->pipeline), w->how);
}

int gp_cmd_plan(const gp_args *args, const gp_registry *registry, gp_errs *errs)
{
    gp_dump how = args->json ? GP_DUMP_JSON : args->dot ? GP_DUMP_DOT : GP_DUMP_TEXT;
    gp_loaded l;
    bool ok = gp_load(&l, args->operand[0], args, registry, errs);
    ok = gp_ranks_agree(args, &l, ok, errs);
    gp_print_errs(args, &l, errs);
    int status = ok ? 0 : gp_errs_exit(errs);
    *errs = (gp_errs){ 0 };
    bool first = !gp_rank(), drawn = args->svg || args->mermaid || (args->dot && args->form != GP_FORM_SPEC);
    struct form form = { l.pipeline, args->form, how };
    if (ok && first && drawn)
        status = draw(args, gp_pipeline_plan(l.pipeline), errs) ? 0 : gp_errs_exit(errs);
    else if (ok && first && !gp_print_plain(stdout, dump, &form))
        gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory"), status = gp_errs_exit(errs);
    gp_print_errs(args, &l, errs);
    *errs = (gp_errs){ 0 };
    gp_unload(&l);
    return status;
}
