/* assume.c - what a simulation takes for granted, in words. */
#include <string.h>
#include "base/plural.h"
#include "compile/plan.h"
#include "simulate/simulate.h"

static const double OTHERS = 0.1;      /* of the cores: what others use is worth a word */

static char *gb_s(gp_arena *a, double rate)
{
    return gp_format(a, "%.3g GB/s", 1e-9 * rate);
}

/* "4 ranks on 3 machines of one sort, 2 on one of them and 1 on each of the others". */
static const char *where_ranks_are(gp_arena *a, int ranks, int nodes)
{
    int least = ranks / nodes, more = ranks % nodes, most = least + 1, less = nodes - more;
    if (nodes == 1 || !more)
        return gp_format(a, "%d ranks on %d machine%s, all alike", ranks, nodes, gp_plural(nodes));
    const char *on = more == 1 ? gp_format(a, "%d on one of them", most) : gp_format(a, "%d on each of %d", most, more);
    return gp_format(a, "%d ranks on %d machines of one sort, %s and %d on %s", ranks, nodes, on, least,
                     less == 1 ? "the other" : "each of the others");
}

/* May a launch of the plan leave a copy to a copy engine? */
static bool uses_engines(const gp_plan *plan)
{
    for (int i = 0; i < plan->ntasks; i++) {
        const gp_task *t = &plan->task[i];
        if ((t->op == GP_TASK_COPY_IN || t->op == GP_TASK_COPY_OUT)
            && gp_copying_in(t, plan->segment[t->segment].batch) == GP_COPY_DMA)
            return true;
    }
    return false;
}

/* Stages that do something else than in the run of the report, "'blur', 'label'"; NULL: none. */
static const char *other_stages(gp_arena *a, const gp_costs *c, const gp_graph *g, int *n)
{
    const char *names = NULL;
    *n = 0;
    for (int i = 0; c->digests && i < g->ndigests; i++) {
        const gp_digest *d = &g->digest[i];
        const gp_node *then = gp_node_get(c->digests, d->stage);
        if (then && then->kind == GP_SCALAR && strcmp(then->text, d->of) && ++*n)
            names = names ? gp_format(a, "%s, '%s'", names, d->stage) : gp_format(a, "'%s'", d->stage);
    }
    return names;
}

const char *const *gp_costs_assume(gp_arena *a, const gp_costs *c, const gp_plan *plan, int *n)
{
    const gp_graph *g = plan->graph;
    int ranks = c->ranks > 1 ? c->ranks : 1, nodes = c->nodes > 1 ? c->nodes : 1, most = (ranks + nodes - 1) / nodes;
    int devices = g->ndevices > 1 ? g->ndevices : 1;
    bool gpus = g->ndevices && !g->device[0].pretend && plan->nsegments;
    const char **say = GP_NEW(a, const char *, 10 + g->nstages);
    int others;
    const char *other = other_stages(a, c, g, &others);
    *n = 0;
    if (other)
        say[(*n)++] = gp_format(a, "%s take%s as long as in the run of the report, where %s had other options, or a "
                                "script or kernel of other text", other, others == 1 ? "s" : "",
                                others == 1 ? "it" : "they");
    if (c->scaled)
        say[(*n)++] = gp_format(a, "times go with the bytes of frames: those of '%s' are %.3g of the report's",
                                c->scaled, c->scaled_by);
    if (c->others > OTHERS * (c->cores + c->others))
        say[(*n)++] = gp_format(a, "there %s %.2g core%s, as in the run of the report, where other processes used %.2g",
                                c->cores == 1 ? "is" : "are", c->cores, c->cores == 1 ? "" : "s", c->others);
    if (c->copy_usual && uses_engines(plan))
        say[(*n)++] = gp_format(a, "a copy engine takes %.3g us to begin a copy, as is usual: in the run of the report "
                                "kernels copied", 1e-3 * c->copy_ns);
    if (ranks == 1 && devices == 1)
        return say;
    if (devices > 1 && !gpus)
        say[(*n)++] = gp_format(a, "frames take turns on %d parts of the CPU, which share its %.3g core%s", devices,
                                c->cores, c->cores == 1 ? "" : "s");
    if (ranks > 1)
        say[(*n)++] = gp_format(a, "%s; the threads of %d rank%s share %.3g core%s", where_ranks_are(a, ranks, nodes),
                                most, gp_plural(most), c->cores, c->cores == 1 ? "" : "s");
    if (gpus && c->devices && most * devices > c->devices)
        say[(*n)++] = gp_format(a, "%d rank%s share %d GPU%s of a machine, in turns; more are said by 'devices' in the "
                                "file that '--machine' names", most, gp_plural(most), c->devices,
                                gp_plural(c->devices));
    else if (gpus)
        say[(*n)++] = gp_format(a, "%s %d GPU%s of a machine, each as fast as in the report", ranks > 1
                                ? "no two ranks share one of the" : "frames take turns on", most * devices,
                                gp_plural(most * devices));
    if (gpus && (plan->copy_in_bytes || plan->copy_out_bytes))
        say[(*n)++] = gp_format(a, "each GPU copies in at %s and out at %s; %s%s", gb_s(a, c->copy_in),
                                gb_s(a, c->copy_out), c->memory > 0 ? "those of a machine together at "
                                : "nothing limits those of a machine together ('host_memory_gb_s')",
                                c->memory > 0 ? gb_s(a, c->memory) : "");
    const char *lacking = ranks > 1 ? gp_step_lacking(c, g) : NULL;
    if (lacking)
        say[(*n)++] = gp_format(a, "a step over the link takes no time of its own, as '%s' is not said: short frames "
                                "are slower than this", lacking);
    for (int v = 0; v < g->nstages && ranks > 1; v++)
        if (g->stage[v].kind->collective)
            say[(*n)++] = gp_round_text(a, c, &g->stage[v]);
    say[(*n)++] = "disks, files and caches are as fast for all as they were for the run of the report";
    return say;
}
