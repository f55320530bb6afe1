/* rates.c - how many frames become how many, in words. */
#include <stdio.h>
#include <string.h>
#include "base/plural.h"
#include "compile/loop.h"
#include "compile/plan.h"
#include "draw/dump.h"

bool gp_rates_differ(const gp_graph *g)
{
    for (int i = 0; i < g->nstages; i++)
        if (g->stage[i].rate != 1 || g->stage[i].regroup.every == INT64_MAX)
            return true;
    for (int i = 0; i < g->nbuffers; i++)
        if (g->buffer[i].producer.stage >= 0 && g->buffer[i].rate != 1)
            return true;
    return false;
}

char *gp_regroup_text(const gp_regroup *r, char buf[GP_REGROUP_TEXT])
{
    int64_t after = r->take - r->back - 1, becomes = r->make * r->repeat;
    bool alone = !r->back && !after, apart = r->take > 1 && !r->back && r->step == r->take;
    int n;
    if (r->every == INT64_MAX)
        return strcpy(buf, "all frames -> 1");
    if (r->every > 1)
        n = snprintf(buf, GP_REGROUP_TEXT, "%lld frames", (long long)r->every);
    else if (apart)
        n = snprintf(buf, GP_REGROUP_TEXT, "%lld frames", (long long)r->take);
    else if (r->step > 1)
        n = snprintf(buf, GP_REGROUP_TEXT, "1 of %lld frames", (long long)r->step);
    else
        n = snprintf(buf, GP_REGROUP_TEXT, alone ? "1 frame" : "each frame");
    if (r->back)
        n += snprintf(buf + n, GP_REGROUP_TEXT - (size_t)n, " with %lld before it", (long long)r->back);
    if (after && !apart)
        n += snprintf(buf + n, GP_REGROUP_TEXT - (size_t)n, " %s %lld after it", r->back ? "and" : "with",
                      (long long)after);
    if (becomes > 1 || apart || r->every > 1 || (alone && r->step == 1))
        snprintf(buf + n, GP_REGROUP_TEXT - (size_t)n, " -> %lld", (long long)becomes);
    return buf;
}

char *gp_stage_note(const gp_stage *s, char buf[GP_REGROUP_TEXT])
{
    const gp_loop *l = gp_stage_loop(s);
    *buf = 0;
    if (gp_is_carry(s))
        return strcpy(buf, s->states ? "what the frame before left" : "the frame before");
    if (s->regroups)
        return gp_regroup_text(&s->regroup, buf);
    if (s->spares) {
        char size[24];
        snprintf(buf, GP_REGROUP_TEXT, "%s less to copy", gp_size_text(s->spares, size));
    }
    if (s->does)
        snprintf(buf, GP_REGROUP_TEXT, "%s", s->does);
    if (s->nparts)
        snprintf(buf, GP_REGROUP_TEXT, "%d stages in one", s->nparts);
    if (l && l->steps > 1)
        snprintf(buf, GP_REGROUP_TEXT, "%lld times, up to %lld in one kernel", (long long)l->times,
                 (long long)l->steps);
    else if (l && l->flag < 0)
        snprintf(buf, GP_REGROUP_TEXT, "%lld time%s", (long long)l->times, gp_plural(l->times));
    else if (l)
        snprintf(buf, GP_REGROUP_TEXT, "until %.60s, %lld time%s at most", l->graph->buffer[l->flag].name,
                 (long long)l->times, gp_plural(l->times));
    return buf;
}

const char *gp_period_text(gp_arena *a, const gp_graph *g)
{
    enum { MOST = 3 };
    const char *text = NULL;
    if (!gp_rates_differ(g))
        return "frame";
    for (int i = 0, n = 0; i < g->nstages; i++) {
        const gp_stage *s = &g->stage[i];
        if (s->nin)
            continue;
        if (n++ == MOST)
            return gp_format(a, "%s, ...", text);
        text = text ? gp_format(a, "%s, %lld of '%s'", text, (long long)s->rate, s->name)
            : gp_format(a, "%lld frame%s of '%s'", (long long)s->rate, gp_plural(s->rate), s->name);
    }
    return text;
}
