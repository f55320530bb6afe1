/* priority.c - whose work comes first: the key `priority`, of a pipeline and of a stage.
 *
 * It changes when something is done, never what: streams, nodes of graphs and threads have it, and no pass but lower
 * looks at it. */
#include "compile/resolve.h"

static bool read_word(gp_resolving *r, const gp_node *n, gp_priority *out)
{
    static const gp_priority of[] = { GP_PRIORITY_HIGH, GP_PRIORITY_NORMAL, GP_PRIORITY_LOW };
    int i = gp_read_word(&r->read, n, gp_key_find(gp_top_keys, "priority")->choices);
    if (i >= 0)
        *out = of[i];
    return i >= 0;
}

void gp_priority_read(gp_resolving *r, const gp_node *n)
{
    if (n)
        read_word(r, n, &r->graph->priority);
}

void gp_priority_of(gp_resolving *r, gp_rstage *st, const gp_node *n)
{
    st->s.priority = r->graph->priority;
    if (n && r->body)
        AT(r, n->at, "'priority' has no effect: stage '%s' is a part of a loop: give it to the loop", st->s.name);
    else if (n)
        st->s.priority_said = read_word(r, n, &st->s.priority);
}

void gp_priority_follow(gp_stage *st, const gp_stage *by)
{
    if (!st->priority_said)
        st->priority = by->priority;
}

void gp_priority_check(const gp_graph *g, gp_errs *errs)
{
    for (int i = 0; i < g->nprologue; i++)
        if (g->prologue[i].priority_said)
            gp_fail(errs, GP_E_SPEC, gp_node_get(g->prologue[i].node, "priority")->at, "'priority' has no effect: "
                    "stage '%s' reads only constants and runs once, before the first frame", g->prologue[i].name);
}
