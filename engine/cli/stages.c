/* stages.c - gpipe stages: the kinds of stages, as the library prints them. */
#include "cli/verb.h"

static int stages(const gp_args *args, const gp_registry *registry, gp_errs *errs)
{
    const char *name = args->noperands ? args->operand[0] : NULL;
    gp_kinds_form form = args->json ? GP_KINDS_JSON : args->markdown ? GP_KINDS_MARKDOWN : GP_KINDS_TEXT;
    if (name && form == GP_KINDS_MARKDOWN && gp_kind_find(registry, name))
        return gp_usage(errs, "'--markdown' is about all stages; leave out '%s'", name);
    gp_kinds_print(registry, name, form, stdout, errs);
    return 0;
}

const gp_verb gp_verb_stages = {
    .name = "stages", .operand = "[KIND]", .max = 1, .place = 90,
    .help = "list the kinds of stages, or show the ports and options of one",
    .kinds = true, .run = stages,
    .options = (const gp_option[]){
        GP_OPTION_PLUGIN, GP_OPTION_JSON,
        { "markdown", 0, NULL, GP_TO_FLAG(markdown), "as Markdown: what stages/REFERENCE.md has" },
        { 0 } },
};
