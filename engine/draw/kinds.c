/* kinds.c - gp_kinds_print: what the descriptors of the kinds say, as text, JSON and Markdown. Kinds are listed by
 * field. */
#include <stdlib.h>
#include <string.h>
#include "base/c_locale.h"
#include "base/json.h"
#include "compile/registry.h"
#include "draw/dump.h"

static const char *const opt_types[] = {
    [GP_OPT_INT] = "integer", [GP_OPT_FLOAT] = "number", [GP_OPT_NUM] = "number",
    [GP_OPT_BOOL] = "bool",
    [GP_OPT_TEXT] = "text", [GP_OPT_PATH] = "path", [GP_OPT_ENUM] = "word",
    [GP_OPT_DTYPE] = "dtype", [GP_OPT_TIME] = "time", [GP_OPT_INTS] = "integers",
    [GP_OPT_FLOATS] = "numbers", [GP_OPT_NODE] = "yaml",
    [GP_OPT_TEXTS] = "texts",
};

static const char *runs_on(const gp_kind *k)
{
    return k->collective && k->record ? "where its input is"
         : !k->record ? k->run ? "host" : "where its input is" : k->run ? "device or host" : "device";
}

static const char *port_name(const gp_port *p)
{
    return strcmp(p->name, "*") ? p->name : "...";
}

/* ---- text ------------------------------------------------------------ */

static void print_accept(FILE *to, unsigned accept)
{
    const char *sep = "";
    if ((accept & GP_ACCEPT_ANY) == GP_ACCEPT_ANY || !accept) {
        fprintf(to, "any type");
        return;
    }
    if (accept == GP_ACCEPT_REAL) {
        fprintf(to, "any type but c64");
        return;
    }
    for (int t = 1; t < GP_NDTYPES; t++)
        if (accept & GP_ACCEPT(t)) {
            fprintf(to, "%s%s", sep, gp_dtype_name((gp_dtype)t));
            sep = " ";
        }
}

static void print_ports(FILE *to, const char *side, const gp_port *p, bool inputs)
{
    if (p && p->name)
        fprintf(to, "\n%s:\n", side);
    for (; p && p->name; p++) {
        fprintf(to, "  %-12s  %s%s", port_name(p), p->help ? p->help : "",
               p->optional ? " (optional)" : "");
        if (inputs) {
            fprintf(to, "%s", p->help ? ": " : "");
            print_accept(to, p->accept);
        }
        fprintf(to, "\n");
    }
}

/* ", 1 to 10", ", at least 0"; limits that nobody reaches are left out. */
static void print_range(FILE *to, const gp_opt *o)
{
    const double far = 1e15;
    double scale = o->type == GP_OPT_TIME ? 1e-9 : 1;
    const char *unit = o->type == GP_OPT_TIME ? "s" : "";
    if (o->min >= o->max)
        return;
    if (o->min > -far && o->max < far)
        fprintf(to, ", %.15g%s to %.15g%s", o->min * scale, unit, o->max * scale, unit);
    else if (o->min > -far)
        fprintf(to, ", at least %.15g%s", o->min * scale, unit);
    else if (o->max < far)
        fprintf(to, ", at most %.15g%s", o->max * scale, unit);
}

void gp_option_print(FILE *to, const gp_opt *o)
{
    fputs(o->type == GP_OPT_ENUM ? o->choices : opt_types[o->type], to);
    if (o->unit)
        fprintf(to, " [%s]", o->unit);
    print_range(to, o);
    if (o->required)
        fprintf(to, ", required%s%s", gp_schema_instead(o) ? " unless there is " : "",
                gp_schema_instead(o) ? gp_schema_instead(o) : "");
    else if (o->def && *o->def)
        fprintf(to, ", default %s", o->def);
}

void gp_kind_print(FILE *to, const gp_registry *registry, const gp_kind *k)
{
    const gp_plugin_info *of = gp_kind_plugin(registry, k);
    fprintf(to, "%s - %s\nruns on: %s\n", k->name, k->help, runs_on(k));
    if (of)
        fprintf(to, "plug-in: %s %s, %s\n", of->name, of->version, of->file);
    print_ports(to, "in", k->in, true);
    print_ports(to, "out", k->out, false);
    const gp_opt *o = gp_schema_option(k, 0);
    if (o)
        fprintf(to, "\noptions:\n");
    for (int i = 0; (o = gp_schema_option(k, i)); i++) {
        fprintf(to, "  %-12s  %s\n  %-12s    ", o->name, o->help, "");
        gp_option_print(to, o);
        fputc('\n', to);
    }
}

/* ---- by field -------------------------------------------------------- */

static const char *field_of(const gp_kind *k)
{
    return k->field ? k->field : "other";
}

/* The field behind `last` in alphabetical order; NULL: none. */
static const char *next_field(const gp_registry *registry, const char *last)
{
    const gp_kind *k;
    const char *next = NULL;
    for (int i = 0; (k = gp_kind_at(registry, i)); i++)
        if (strcmp(field_of(k), last) > 0 && (!next || strcmp(field_of(k), next) < 0))
            next = field_of(k);
    return next;
}

/* The first kind of a field from number *i on; NULL: none. *i is then behind it. */
static const gp_kind *next_kind(const gp_registry *registry, const char *field, int *i)
{
    const gp_kind *k;
    while ((k = gp_kind_at(registry, (*i)++)) && strcmp(field_of(k), field))
        ;
    return k;
}

static void print_line(FILE *to, const gp_registry *registry, const gp_kind *k)
{
    const gp_plugin_info *of = gp_kind_plugin(registry, k);
    fprintf(to, "  %-13s  %-18s  %s", k->name, runs_on(k), k->help);
    if (of)
        fprintf(to, " [plug-in %s %s]", of->name, of->version);
    fputc('\n', to);
}

static void print_list(FILE *to, const gp_registry *registry)
{
    const gp_kind *k;
    char *plugins = gp_registry_missing(registry, false);
    for (const char *field = ""; (field = next_field(registry, field));) {
        fprintf(to, "%s\n", field);
        for (int i = 0; (k = next_kind(registry, field, &i));)
            print_line(to, registry, k);
    }
    if (plugins)
        fprintf(to, "%s; see 'gpipe help plugins'\n", plugins);
    free(plugins);
}

/* ---- Markdown -------------------------------------------------------- */

static void print_row(FILE *to, const gp_kind *k)
{
    fprintf(to, "| [`%s`](#%s) | %s | %s |", k->name, k->name, runs_on(k), k->help);
    const gp_opt *o;
    for (int i = 0; (o = gp_schema_option(k, i)); i++)
        fprintf(to, gp_schema_instead(o) ? "%s `%s` (or `%s`)" : "%s `%s`%s", i ? "," : "", o->name,
               gp_schema_instead(o) ? gp_schema_instead(o) : o->required ? " (required)" : "");
    fprintf(to, " |\n");
}

/* A table for each field, and all of each kind. */
static void print_markdown(FILE *to, const gp_registry *registry)
{
    const gp_kind *k;
    fprintf(to, "# Kinds of stages\n\nMade by `gpipe stages --markdown > stages/REFERENCE.md`. `gpipe stages NAME` "
           "prints one.\n");
    for (const char *field = ""; (field = next_field(registry, field));) {
        fprintf(to, "\n## %c%s\n\n| stage | runs on | what it does | options |\n|---|---|---|---|\n",
               field[0] - 'a' + 'A', field + 1);
        for (int i = 0; (k = next_kind(registry, field, &i));)
            print_row(to, k);
        for (int i = 0; (k = next_kind(registry, field, &i));) {
            fprintf(to, "\n### %s\n\n```text\n", k->name);
            gp_kind_print(to, registry, k);
            fprintf(to, "```\n");
        }
    }
}

/* ---- JSON ------------------------------------------------------------ */

static void json_ports(gp_json *j, const char *side, const gp_port *p, bool inputs)
{
    gp_json_open(j, side, '[');
    for (; p && p->name; p++) {
        gp_json_put(j, "{name: %s, help: %s, optional: %d?", p->name, p->help, p->optional);
        if (inputs) {
            gp_json_open(j, "types", '[');
            for (int t = 1; t < GP_NDTYPES; t++)
                if (p->accept & GP_ACCEPT(t))
                    gp_json_str(j, NULL, gp_dtype_name((gp_dtype)t));
            gp_json_close(j, ']');
        }
        gp_json_close(j, '}');
    }
    gp_json_close(j, ']');
}

static void json_option(gp_json *j, const gp_opt *o)
{
    gp_json_put(j, "{name: %s, type: %s, default: %s, choices: %s, unit: %s, help: %s, required: %d?", o->name,
                opt_types[o->type], o->def, o->type == GP_OPT_ENUM ? o->choices : NULL, o->unit, o->help, o->required);
    if (o->min < o->max)
        gp_json_put(j, "min: %g, max: %g", o->min, o->max);
    gp_json_close(j, '}');
}

static void json_kind(gp_json *j, const gp_registry *registry, const gp_kind *k)
{
    const gp_plugin_info *of = gp_kind_plugin(registry, k);
    gp_json_put(j, "{name: %s, field: %s, help: %s", k->name, field_of(k), k->help);
    if (of)
        gp_json_put(j, "plugin: {name: %s, version: %s, file: %s}", of->name, of->version, of->file);
    gp_json_open(j, "on", '[');
    if (k->record || !k->run)
        gp_json_str(j, NULL, "device");
    if (k->run || !k->record)
        gp_json_str(j, NULL, "host");
    gp_json_close(j, ']');
    json_ports(j, "in", k->in, true);
    json_ports(j, "out", k->out, false);
    gp_json_open(j, "options", '[');
    const gp_opt *o;
    for (int i = 0; (o = gp_schema_option(k, i)); i++)
        json_option(j, o);
    gp_json_close(j, ']');
    gp_json_close(j, '}');
}

static void print_json(FILE *to, const gp_registry *registry, const gp_kind *only)
{
    gp_json j = { .f = to };
    const gp_kind *k;
    gp_json_open(&j, NULL, '[');
    for (int i = 0; (k = only ? only : gp_kind_at(registry, i)); i++) {
        json_kind(&j, registry, k);
        if (only)
            break;
    }
    gp_json_close(&j, ']');
}

/* ---- any ------------------------------------------------------------- */

bool gp_kinds_print(const gp_registry *r, const char *name, gp_kinds_form form, FILE *to, gp_errs *errs)
{
    GP_C_LOCALE;
    const gp_kind *only = name ? gp_kind_find(r, name) : NULL;
    if (name && !only)
        return gp_registry_lacks(r, name, GP_E_USAGE, (gp_loc){ 0 }, errs);
    if (form == GP_KINDS_JSON)
        print_json(to, r, only);
    else if (only)
        gp_kind_print(to, r, only);
    else if (form == GP_KINDS_MARKDOWN)
        print_markdown(to, r);
    else
        print_list(to, r);
    return true;
}
