/* plan.c - gpipe plan. */
#include "api/forms.h"
#include "base/plain.h"
#include "cli/verb.h"
#include "draw/dump.h"

/* A drawing: of the graph, its measures too are of the plan. */
static void draw(const gp_args *args, const gp_plan *plan, gp_errs *errs)
{
    gp_loaded text = { 0 };
    if (!args->with || gp_load_text(&text, args->with, errs))
        gp_draw(stdout, plan, &(gp_drawing){ args->form == GP_FORM_GRAPH, args->dot, text.text, text.len, text.file }, errs);
    gp_unload(&text);
}

struct form { const gp_pipeline *pipeline; gp_form form; gp_dump how; };

static void dump(FILE *f, const void *arg)
{
    const struct form *w = arg;
    if (w->form == GP_FORM_GRAPH)
        gp_dump_graph(f, gp_pipeline_graph(w->pipeline), w->how);
    else
        gp_dump_plan(f, gp_pipeline_plan(w->pipeline), w->how);
}

/* What is asked for can be colored. */
static bool check_form(const gp_args *args, gp_errs *errs)
{
    return !args->with || args->svg || args->dot
        || gp_usage(errs, "'--with' colors the drawing of a plan or graph; add --svg or --dot");
}

static int plan(const gp_args *args, const gp_registry *registry, gp_errs *errs)
{
    gp_loaded l = { 0 };
    bool ok = check_form(args, errs) && gp_load(&l, args->operand[0], args, registry, errs);
    ok = gp_agree(args, &l, ok, errs);
    int status = gp_tell_errs(args, &l, errs);
    bool first = !gp_rank(args->ranks), drawn = args->svg || args->dot;
    struct form form = { l.pipeline, args->form, args->json ? GP_DUMP_JSON : GP_DUMP_TEXT };
    if (ok && first && drawn)
        draw(args, gp_pipeline_plan(l.pipeline), errs);
    else if (ok && first && !gp_print_plain(stdout, dump, &form))
        gp_no_memory(errs);
    int drawing = gp_tell_errs(args, &l, errs);
    gp_unload(&l);
    return status ? status : drawing;
}

const gp_verb gp_verb_plan = {
    .name = "plan", .operand = "FILE", .min = 1, .max = 1, .place = 30,
    .help = "show what a pipeline becomes: tasks, copies, memory",
    .target = GP_TARGET_ASKED, .ranks = true, .run = plan,
    .options = (const gp_option[]){
        GP_OPTION_SET, GP_OPTION_DEVICE, GP_OPTION_PLUGIN, GP_OPTION_JOIN_TIMEOUT,
        { "form", 0, "FORM", GP_TO_CHOICE(form, "plan|graph"),
          "graph (what the file means) or plan (what is done)" },
        { "dot", 0, NULL, GP_TO_FLAG(dot), "as a graph for Graphviz" },
        { "svg", 0, NULL, GP_TO_FLAG(svg), "as a drawing (SVG), by the program dot of Graphviz" },
        GP_OPTION_WITH, GP_OPTION_MACHINE, GP_OPTION_JSON, GP_OPTION_QUIET,
        { 0 } },
};
