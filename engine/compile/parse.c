/* parse.c - YAML text -> spec. */
#include <string.h>
#include "base/yaml.h"
#include "compile/ir.h"

const char *gp_folder_of(gp_arena *a, const char *file)
{
    const char *slash = strrchr(file, '/');
    return !slash ? "." : gp_strndup(a, file, slash == file ? 1 : (size_t)(slash - file));
}

gp_spec *gp_parse(gp_arena *a, const char *text, size_t len, const char *file, gp_errs *errs)
{
    int before = errs->failed;
    gp_node *root = gp_yaml_parse(a, text, len, file, errs);
    if (errs->failed > before)
        return NULL;
    if (!root || root->kind != GP_MAP)
        return GP_NULL(gp_fail(errs, GP_E_SPEC, root ? root->at : (gp_loc){ .file = file }, "the file is %s; a "
                               "pipeline is a map with 'stages:'", !root ? "empty" : root->kind == GP_LIST ? "a list"
                               : "a single value"));
    gp_spec *spec = GP_NEW(a, gp_spec, 1);
    spec->root = root;
    spec->file = file;
    spec->dir = gp_folder_of(a, file);
    return spec;
}
