/* yaml.c - a pipeline's text through all passes, for a machine without and one with a GPU;
 * then everything that draws it. */
#include "base/yaml.h"
#include "draw/dump.h"
#include "fuzz.h"

enum { DRAWN = 40 };                   /* stages: a picture of more takes a while */

struct drawn { const fuzz_forms *f; gp_dump how; int form; };

static void dump(FILE *to, const void *arg)
{
    const struct drawn *d = arg;
    if (d->form)
        gp_dump_plan(to, d->f->plan, d->how);
    else
        gp_dump_graph(to, d->f->graph, d->how);
}

static void dot(FILE *to, const void *arg)
{
    const fuzz_forms *f = arg;
    gp_errs errs = { 0 };
    MUST(gp_dump_dot(to, f->graph, f->plan, NULL, &errs));
}

/* The JSON of a plan and a graph can be read again. */
static void draw(const fuzz_forms *f)
{
    size_t n;
    for (int form = 0; form < 2; form++)
        for (int how = 0; how < 2; how++) {
            struct drawn d = { f, (gp_dump)how, form };
            char *text = fuzz_text(dump, &d, &n);
            gp_arena a = { 0 };
            gp_errs errs = { 0 };
            MUST(how != GP_DUMP_JSON || n > 100000
                 || gp_yaml_value(&a, text, (gp_loc){ .file = "json" }, &errs));
            gp_arena_free(&a);
            free(text);
        }
    free(fuzz_text(dot, f, &n));
}

/* As an edit of the file reads it. */
static void read_marked(const char *data, size_t n)
{
    gp_arena a = { 0 };
    gp_errs errs = { 0 };
    gp_yaml_marked(&a, data, n, "edited", &errs);
    gp_arena_free(&a);
}

static void one(const char *data, size_t n)
{
    read_marked(data, n);
    for (int i = 0; i < 3; i++) {              /* at last as one of three ranks */
        fuzz_forms f;
        int ngpus = i % 2;
        fuzz_ranks = i == 2 ? 3 : 0;
        fuzz_compile(&f, data, n, NULL, 0, ngpus, ngpus);
        if (f.plan)
            gp_lint(f.plan, f.spec, fuzz_machine(1), data, n, &f.errs);
        fuzz_print_errs(&f.errs, data, n);
        if (f.plan && f.graph->nstages <= DRAWN)
            draw(&f);
        fuzz_forms_free(&f);
    }
    fuzz_ranks = 0;
}

const fuzz_harness fuzz_yaml = { .name = "yaml", .one = one };
