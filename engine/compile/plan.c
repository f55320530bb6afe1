/* plan.c - words for what is in a graph and a plan, see plan.h. */
#include <stdio.h>
#include "base/num.h"
#include "compile/firing.h"
#include "compile/plan.h"

const char *const gp_launch_name[] = { "graph", "stream", "persistent" };
const char *const gp_sync_name[] = { "auto", "spin", "yield", "block" };

const char *gp_priority_name(gp_priority p)
{
    return p == GP_PRIORITY_NORMAL ? "normal" : p > GP_PRIORITY_NORMAL ? "high" : "low";
}

char *gp_size_text(size_t bytes, char buf[24])
{
    static const char *const unit[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
    double x = (double)bytes;
    int u = 0;
    for (; x >= 1023.95; u++)
        x /= 1024;
    snprintf(buf, 24, u ? "%.1f %s" : "%.0f %s", x, unit[u]);
    return buf;
}

char *gp_place_text(const gp_plan *p, gp_place place, char buf[24])
{
    if (!place.device || p->unified) {
        snprintf(buf, 24, "%s", place.device ? "cpu" : "host");
        return buf;
    }
    const gp_device *d = &p->graph->device[place.index];
    int last = place.lanes - 1;
    if (!last)
        snprintf(buf, 24, "%s", d->name);
    else if (d[last].index == d->index + last)
        snprintf(buf, 24, "%.12s-%d", d->name, d[last].index);
    else
        snprintf(buf, 24, "%d devices", place.lanes);
    return buf;
}

int gp_plan_depth(const gp_plan *p)
{
    int most = GP_DEPTH_LARGE;
    for (int i = 0; i < p->nrings; i++) {
        const gp_ring *r = &p->ring[i];
        const gp_buffer *b = r->buffer < 0 ? NULL : &p->graph->buffer[r->buffer];
        if (b && b->depth > b->shallow && r->depth / r->place.lanes >= b->depth)
            most = most > GP_DEPTH_SMALL ? most : GP_DEPTH_SMALL;
        if (b && r->why == GP_DEPTH_BY_LAUNCHES && r->segment < 0 && r->given > most)
            most = r->given;
    }
    return p->graph->depth ? p->graph->depth : most;
}

const char *gp_const_text(const gp_buffer *b, char buf[32])
{
    if (b->numbers)
        snprintf(buf, 32, "%.0f numbers", (double)gp_count(&b->type));
    return b->maker.stage >= 0 ? "computed once" : b->path ? b->path : b->numbers ? buf : gp_num_text(&b->value, buf);
}

int gp_segment_first(const gp_plan *p, int segment)
{
    const int *task = p->segment[segment].task;
    while (p->task[*task].stage < 0)
        task++;
    return p->task[*task].stage;
}

int gp_plan_segment_of(const gp_plan *p, int stage)
{
    for (int i = 0; i < p->ntasks; i++)
        if (p->task[i].stage == stage && p->task[i].segment >= 0)
            return p->task[i].segment;
    return -1;
}

const gp_stage *gp_actor_first(const gp_plan *p, int actor)
{
    const gp_actor *q = &p->actor[actor];
    return &p->graph->stage[q->kind == GP_ACTOR_HOST ? q->stage : gp_segment_first(p, q->segment)];
}

bool *gp_late_stages(gp_arena *a, const gp_graph *g)
{
    bool *late = GP_NEW(a, bool, g->nstages);
    for (int v = 0; v < g->nstages; v++)
        for (int i = 0; i < g->stage[v].nin; i++) {
            int from = gp_stage_maker(g, &g->stage[v], i);
            late[v] |= from >= 0 && !g->stage[v].closes && (late[from] || g->stage[from].regroup.every == INT64_MAX);
        }
    return late;
}
