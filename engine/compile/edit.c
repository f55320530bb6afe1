/* edit.c - writes a setting, as of --set, into the text of the file. */
#include <string.h>
#include "base/yaml.h"
#include "compile/ir.h"

bool gp_node_is_same(const gp_node *x, const gp_node *y)
{
    if (x->kind != y->kind || x->n != y->n)
        return false;
    if (x->kind == GP_SCALAR)
        return x->len == y->len && !memcmp(x->text, y->text, x->len);
    for (int i = 0; i < x->n; i++) {
        const gp_node *other = x->kind == GP_LIST ? y->item[i] : gp_node_get(y, x->key[i]->text);
        if (!other || !gp_node_is_same(x->item[i], other))
            return false;
    }
    return true;
}

char *gp_spec_edit(gp_arena *a, const char *text, size_t len, const char *file, const char *assignment,
                   const gp_registry *registry, size_t *out_len, gp_errs *errs)
{
    gp_spec *want = gp_parse(a, text, len, file, errs);
    int n = 0;
    if (!want)
        return NULL;
    if (gp_set_is_late(a, want, assignment, registry))
        return GP_NULL(gp_fail(errs, GP_E_SPEC, (gp_loc){ .file = file }, "'%.100s' is of a stage or buffer that 'include' or "
                               "'repeat' makes, for which this file has no place: give the run --set, or make it a variable "
                               "of what is included or repeated, by hand", assignment));
    const gp_node *before = want->root;
    const char **word = gp_set_words(a, want, assignment, &n);
    if (!gp_spec_set(a, want, assignment, registry, errs))
        return NULL;
    gp_number_stages(a, before, word, n);
    char *out = gp_yaml_edit(a, text, len, file, word, n, strchr(assignment, '=') + 1, out_len, errs);
    gp_errs *ignored = GP_NEW(a, gp_errs, 1);
    const gp_spec *is = out ? gp_parse(a, out, *out_len, file, ignored) : NULL;
    if (out && (!is || !gp_node_is_same(want->root, is->root)))
        return GP_NULL(gp_fail(errs, GP_E_SPEC, (gp_loc){ .file = file }, "'%.100s' cannot be written into this file "
                               "without a change in another place (an anchor?); write it by hand", assignment));
    return out;
}
