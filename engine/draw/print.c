/* print.c - gp_pipeline_print_plan, and drawings. */
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

bool gp_draw(FILE *f, const gp_plan *p, const gp_drawing *as, gp_errs *errs)
{
    GP_ARENA(a);
    GP_IF_OOM(&a)
        return gp_no_memory(errs);
    const gp_measured *m = as->report ? gp_measured_read(&a, p, as->report, as->len, as->file, errs) : NULL;
    return (m || !as->report) && (as->dot ? gp_dump_dot : gp_dump_svg)(f, p->graph, as->graph ? NULL : p, m, errs);
}

bool gp_pipeline_print_plan(const gp_pipeline *p, gp_plan_form form, const char *report, FILE *to, gp_errs *errs)
{
    GP_C_LOCALE;
    const gp_plan *plan = gp_pipeline_plan(p);
    if (form == GP_PLAN_SVG)
        return gp_draw(to, plan, &(gp_drawing){ .report = report, .len = report ? strlen(report) : 0, .file = "report" }, errs);
    return gp_print_plain(to, form == GP_PLAN_JSON ? json : text, plan)
        || gp_no_memory(errs);
}
