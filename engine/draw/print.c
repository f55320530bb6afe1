/* print.c - gp_pipeline_print_plan. */
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

bool gp_pipeline_print_plan(const gp_pipeline *p, gp_plan_form form, FILE *to, gp_errs *errs)
{
    GP_C_LOCALE;
    const gp_plan *plan = gp_pipeline_plan(p);
    if (form == GP_PLAN_SVG)
        return gp_dump_svg(to, plan->graph, plan, NULL, errs);
    return gp_print_plain(to, form == GP_PLAN_JSON ? json : text, plan)
        || gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory");
}
