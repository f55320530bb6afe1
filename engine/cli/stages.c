/* stages.c - gpipe stages: the kinds of stages, as the library prints them. */
#include <limits.h>
#include "cli/verb.h"

static int stages(const gp_args *args, const gp_registry *registry, gp_errs *errs)
{
    const char *name = args->noperands ? args->operand[0] : NULL;
    gp_kinds_form form = args->json ? GP_KINDS_JSON : args->markdown ? GP_KINDS_MARKDOWN : GP_KINDS_TEXT;
    if (name && form == GP_KINDS_MARKDOWN && gp_kind_find(registry, name))
        return gp_usage(errs, "'--markdown' is about all stages; leave out '%s'", name);
    if (args->noperands > 1 && form == GP_KINDS_JSON)
        return gp_usage(errs, "'--json' is about one stage, or all: leave out '%s'", args->operand[1]);
    for (int i = 0; i < args->noperands || !i; i++)
        gp_kinds_print(registry, i < args->noperands ? args->operand[i] : NULL, form, stdout, errs);
    return 0;
}

const gp_verb gp_verb_stages = {
    .name = "stages", .operand = "[KIND...]", .max = INT_MAX, .place = 90,
    .help = "list the kinds of stages, or show the ports and options of some",
    .kinds = true, .run = stages,
    .options = (const gp_option[]){
        GP_OPTION_PLUGIN, GP_OPTION_JSON,
        { "markdown", 0, NULL, GP_TO_FLAG(markdown), "as Markdown: what stages/REFERENCE.md has" },
        { 0 } },
};
