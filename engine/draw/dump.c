/* dump.c - the spec as text or JSON.
 *
 * Dumps are for people and for golden files: the same form is the same bytes,
 * wherever it is written. */
#include <ctype.h>
#include <string.h>
#include "draw/dump.h"

/* ---- the spec -------------------------------------------------------- */

/* A scalar as YAML; in a flow list more needs quotes. */
static void scalar(FILE *f, const gp_node *n, const char *special)
{
    bool plain = !n->quoted && n->len && !strpbrk(n->text, special);
    for (size_t i = 0; i < n->len; i++)
        plain &= !iscntrl((unsigned char)n->text[i]);
    if (plain)
        fwrite(n->text, 1, n->len, f);
    else
        gp_json_quote(f, n->text, n->len);
}

/* A scalar, something empty, or a list of scalars. */
static bool one_line(const gp_node *n)
{
    for (int i = 0; n->kind != GP_SCALAR && i < n->n; i++)
        if (n->kind == GP_MAP || n->item[i]->kind != GP_SCALAR)
            return false;
    return true;
}

/* As YAML, from column `indent`, where the cursor already is if `behind` a dash. */
static void spec_text(FILE *f, const gp_node *n, int indent, bool behind)
{
    if (one_line(n)) {
        if (n->kind == GP_SCALAR)
            scalar(f, n, "");
        else
            fputc(n->kind == GP_MAP ? '{' : '[', f);
        for (int i = 0; n->kind == GP_LIST && i < n->n; i++) {
            fputs(i ? ", " : "", f);
            scalar(f, n->item[i], ",[]{}#:\"'");
        }
        fputs(n->kind == GP_SCALAR ? "\n" : n->kind == GP_MAP ? "}\n" : "]\n", f);
        return;
    }
    for (int i = 0; i < n->n; i++) {
        const gp_node *item = n->item[i];
        bool below = n->kind == GP_MAP && !one_line(item);
        if (i || !behind)
            fprintf(f, "%*s", indent, "");
        if (n->kind == GP_MAP) {
            scalar(f, n->key[i], "");
            fputs(below ? ":\n" : ": ", f);
        } else {
            fputs("- ", f);
        }
        spec_text(f, item, indent + 2, !below);
    }
}

static void spec_json(gp_json *j, const char *key, const gp_node *n)
{
    if (n->kind == GP_SCALAR) {
        gp_json_strn(j, key, n->text, n->len);
        return;
    }
    gp_json_open(j, key, n->kind == GP_MAP ? '{' : '[');
    for (int i = 0; i < n->n; i++)
        spec_json(j, n->kind == GP_MAP ? n->key[i]->text : NULL, n->item[i]);
    gp_json_close(j, n->kind == GP_MAP ? '}' : ']');
}

void gp_dump_spec(FILE *f, const gp_spec *s, gp_dump how)
{
    if (how == GP_DUMP_TEXT)
        spec_text(f, s->root, 0, false);
    else
        spec_json(&(gp_json){ .f = f }, NULL, s->root);
}
