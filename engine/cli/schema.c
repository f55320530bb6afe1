/* schema.c - gpipe schema. */
#include "cli/verb.h"
#include "draw/dump.h"

static int schema(const gp_args *args, const gp_registry *registry, gp_errs *errs)
{
    gp_schema_write(stdout, registry);
    return gp_errs_exit(errs);
}

const gp_verb gp_verb_schema = {
    .name = "schema", .operand = "", .place = 110,
    .help = "print a JSON Schema of pipeline files, for editors",
    .more = "gpipe schema > gpipe.schema.json, and in the first line of a pipeline, for editors with\n"
            "the YAML language server:  # yaml-language-server: $schema=gpipe.schema.json\n"
            "An editor that can use 'gpipe lsp' knows more by that (gpipe help editor).\n",
    .kinds = true, .run = schema, .options = (const gp_option[]){ GP_OPTION_PLUGIN, { 0 } },
};
