/* print.c - gp_pipeline_print_plan. */
#include <string.h>
#include "api/forms.h"
#include "base/c_locale.h"
#include "base/plain.h"
#include "draw/dump.h"

static void text(FILE *f, const void *plan)
{
    gp_dump_plan(f, plan, GP_DUMP_TEXT);
}

static void json(FILE *f, const void *plan)
{
    gp_dump_plan(f, plan, GP_DUMP_JSON);
}

static bool draw(FILE *to, const gp_plan *plan, const char *report, gp_errs *errs)
{
    gp_arena a = { 0 };
    GP_IF_OOM(&a) {
        gp_arena_free(&a);
        return gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory");
    }
    const gp_measured *m = report ? gp_measured_read(&a, plan, report, strlen(report), "report", errs) : NULL;
    bool ok = (m || !report) && gp_dump_svg(to, plan->graph, plan, m, errs);
    gp_arena_free(&a);
    return ok;
}

bool gp_pipeline_print_plan(const gp_pipeline *p, gp_plan_form form, const char *report, FILE *to, gp_errs *errs)
{
    GP_C_LOCALE;
    const gp_plan *plan = gp_pipeline_plan(p);
    if (form == GP_PLAN_SVG)
        return draw(to, plan, report, errs);
    return gp_print_plain(to, form == GP_PLAN_JSON ? json : text, plan)
        || gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory");
}
