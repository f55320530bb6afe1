/* cli_stages.c - gpipe stages: what the descriptors of the kinds say, as text,
 * JSON and Markdown. */
#include <string.h>
#include "cli.h"

static const char *const opt_types[] = {
    [GP_OPT_INT] = "integer", [GP_OPT_FLOAT] = "number", [GP_OPT_BOOL] = "bool",
    [GP_OPT_TEXT] = "text", [GP_OPT_PATH] = "path", [GP_OPT_ENUM] = "word",
    [GP_OPT_DTYPE] = "dtype", [GP_OPT_TIME] = "time", [GP_OPT_INTS] = "integers",
    [GP_OPT_FLOATS] = "numbers", [GP_OPT_NODE] = "yaml",
};

static const char *runs_on(const gp_kind *k)
{
    return !k->record ? "host" : k->run ? "device or host" : "device";
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

static void print_ports(const char *side, const gp_port *p, bool inputs)
{
    if (p && p->name)
        printf("\n%s:\n", side);
    for (; p && p->name; p++) {
        printf("  %-12s  %s%s", port_name(p), p->help ? p->help : "",
               p->optional ? " (optional)" : "");
        if (inputs) {
            printf("%s", p->help ? ": " : "");
            print_accept(stdout, p->accept);
        }
        printf("\n");
    }
}

/* ", 1 to 10", ", at least 0"; limits that nobody reaches are left out. */
static void print_range(const gp_opt *o)
{
    const double far = 1e15;
    double scale = o->type == GP_OPT_TIME ? 1e-9 : 1;
    const char *unit = o->type == GP_OPT_TIME ? "s" : "";
    if (o->min >= o->max)
        return;
    if (o->min > -far && o->max < far)
        printf(", %.15g%s to %.15g%s", o->min * scale, unit, o->max * scale, unit);
    else if (o->min > -far)
        printf(", at least %.15g%s", o->min * scale, unit);
    else if (o->max < far)
        printf(", at most %.15g%s", o->max * scale, unit);
}

static void print_option(const gp_opt *o)
{
    printf("  %-12s  %s\n  %-12s    %s", o->name, o->help, "",
           o->type == GP_OPT_ENUM ? o->choices : opt_types[o->type]);
    if (o->unit)
        printf(" [%s]", o->unit);
    print_range(o);
    if (o->required)
        printf(", required");
    else if (o->def && *o->def)
        printf(", default %s", o->def);
    printf("\n");
}

static void print_kind(const gp_kind *k)
{
    printf("%s - %s\nruns on: %s\n", k->name, k->help, runs_on(k));
    print_ports("in", k->in, true);
    print_ports("out", k->out, false);
    if (k->opts && k->opts->name)
        printf("\noptions:\n");
    for (const gp_opt *o = k->opts; o && o->name; o++)
        print_option(o);
}

static void print_list(const gp_registry *registry)
{
    const gp_kind *k;
    for (int i = 0; (k = gp_kind_at(registry, i)); i++)
        printf("%-12s  %-14s  %s\n", k->name, runs_on(k), k->help);
}

/* ---- Markdown -------------------------------------------------------- */

static void print_markdown(const gp_registry *registry)
{
    const gp_kind *k;
    printf("| stage | runs on | what it does | options |\n|---|---|---|---|\n");
    for (int i = 0; (k = gp_kind_at(registry, i)); i++) {
        printf("| `%s` | %s | %s |", k->name, runs_on(k), k->help);
        for (const gp_opt *o = k->opts; o && o->name; o++)
            printf("%s `%s`%s", o == k->opts ? "" : ",", o->name, o->required ? " (required)" : "");
        printf(" |\n");
    }
}

/* ---- JSON ------------------------------------------------------------ */

void gp_json_text(FILE *to, const char *s)
{
    if (!s) {
        fputs("null", to);
        return;
    }
    fputc('"', to);
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            fprintf(to, "\\%c", c);
        else if (c < 0x20)
            fprintf(to, "\\u%04x", c);
        else
            fputc(c, to);
    }
    fputc('"', to);
}

/* , "name": "text" */
static void member(const char *name, const char *text)
{
    printf(", \"%s\": ", name);
    gp_json_text(stdout, text);
}

static void json_ports(const char *side, const gp_port *p, bool inputs)
{
    printf(",\n   \"%s\": [", side);
    for (const char *sep = ""; p && p->name; p++, sep = ", ") {
        printf("%s{\"name\": ", sep);
        gp_json_text(stdout, p->name);
        member("help", p->help);
        printf(", \"optional\": %s", p->optional ? "true" : "false");
        if (inputs) {
            printf(", \"types\": [");
            const char *comma = "";
            for (int t = 1; t < GP_NDTYPES; t++)
                if (p->accept & GP_ACCEPT(t)) {
                    printf("%s\"%s\"", comma, gp_dtype_name((gp_dtype)t));
                    comma = ", ";
                }
            printf("]");
        }
        printf("}");
    }
    printf("]");
}

static void json_option(const gp_opt *o)
{
    printf("{\"name\": ");
    gp_json_text(stdout, o->name);
    member("type", opt_types[o->type]);
    member("default", o->def);
    member("choices", o->choices);
    member("unit", o->unit);
    member("help", o->help);
    printf(", \"required\": %s", o->required ? "true" : "false");
    if (o->min < o->max)
        printf(", \"min\": %.17g, \"max\": %.17g", o->min, o->max);
    printf("}");
}

static void json_kind(const gp_kind *k)
{
    printf("  {\"name\": ");
    gp_json_text(stdout, k->name);
    member("help", k->help);
    printf(", \"on\": [%s%s%s]", k->record ? "\"device\"" : "", k->record && k->run ? ", " : "",
           k->run ? "\"host\"" : "");
    json_ports("in", k->in, true);
    json_ports("out", k->out, false);
    printf(",\n   \"options\": [");
    for (const gp_opt *o = k->opts; o && o->name; o++) {
        printf("%s\n    ", o == k->opts ? "" : ",");
        json_option(o);
    }
    printf("]}");
}

/* ---- the verb -------------------------------------------------------- */

int gp_cmd_stages(const gp_args *args, const gp_registry *registry, gp_errs *errs)
{
    const char *name = args->noperands ? args->operand[0] : NULL;
    const gp_kind *k, *only = name ? gp_kind_find(registry, name) : NULL;
    if (name && !only) {
        gp_near near = GP_NEAR(name);
        for (int i = 0; (k = gp_kind_at(registry, i)); i++)
            gp_near_try(&near, k->name);
        const char *did = gp_near_text(&near);
        gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, "no stage '%s'%s", name,
                *did ? did : "; 'gpipe stages' lists them");
        return 2;
    }
    if (args->json) {
        printf("[\n");
        for (int i = 0; (k = only ? only : gp_kind_at(registry, i)); i++) {
            printf("%s", i ? ",\n" : "");
            json_kind(k);
            if (only)
                break;
        }
        printf("\n]\n");
    } else if (only) {
        print_kind(only);
    } else if (args->markdown) {
        print_markdown(registry);
    } else {
        print_list(registry);
    }
    return 0;
}
