/* latency.c - measures, for the key `latency`, the times from which timely.c chooses; each segment has a lock for them.
 *
 * A frame carries the time at which its last launch was due (gp_age). The sink that ends it, or the next launch that
 * takes it, tells the segment that launched it how long that was; a launch adds the usual time of its own frames. */
#include "compile/plan.h"
#include "run/host.h"
#include "run/latency.h"

void gp_latency_init(gp_actorrt *p)
{
    gp_arena *a = &p->run->arena;
    gp_latencyrt *l = p->seg->latency = GP_NEW(a, gp_latencyrt, 1);
    pthread_mutex_init(&l->lock, NULL);
    l->timely.latency_ns = p->run->graph->latency_ns;
    l->timely.sizes = gp_timely_size(p->segment->batch) + 1;
    l->timely.tail = GP_NEW(a, gp_tail, l->timely.sizes);
}

void gp_latency_fini(gp_actorrt *p)
{
    if (p->seg->latency)
        pthread_mutex_destroy(&p->seg->latency->lock);
}

void gp_latency_ended(const gp_run *run, const gp_age *age, int64_t now_ns)
{
    if (age->due_ns <= run->start_ns)  /* no launch took it, or one before a pause */
        return;
    gp_latencyrt *l = run->actor[age->by].seg->latency;
    pthread_mutex_lock(&l->lock);
    gp_timely_ended(&l->timely, age->size, now_ns - age->due_ns);
    pthread_mutex_unlock(&l->lock);
}

void gp_latency_launched(gp_actorrt *p, uint64_t f, int n)
{
    gp_latencyrt *l = p->seg->latency;
    int size = gp_timely_size(n);
    pthread_mutex_lock(&l->lock);
    gp_timely_launched(&l->timely, size);
    int64_t end = l->due_ns + gp_timely_tail(&l->timely, size);
    pthread_mutex_unlock(&l->lock);
    for (uint64_t k = f; k < f + (uint64_t)n; k++) {
        gp_age age = gp_frame_meta(p, k).age;
        gp_latency_ended(p->run, &age, end);
        for (int o = 0; o < p->nout; o++)
            gp_meta_of(p->out[o], k)->age = (gp_age){ age.born_ns, l->due_ns, p->index, size };
    }
}

/* Frames from f on that are there in all inputs. */
static uint64_t ready(const gp_actorrt *p, uint64_t f)
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < p->nin; i++) {
        uint64_t made = atomic_load(&p->in[i].ring->produced.at);
        least = made < least ? made : least;
    }
    return p->nin && least > f ? least - f : 0;
}

gp_timely_choice gp_latency_choose(gp_actorrt *p, uint64_t f, gp_timely_ready *w)
{
    gp_latencyrt *l = p->seg->latency;
    int lead = gp_lead_input(p);
    w->born_ns = gp_frame_meta(p, f).age.born_ns;
    if (!w->born_ns || w->born_ns == INT64_MAX)        /* from before a pause; carried, from no source */
        w->born_ns = w->now_ns;
    pthread_mutex_lock(&l->lock);
    for (uint64_t k = l->seen > f ? l->seen : f; k < f + (uint64_t)w->n; k++) {
        gp_timely_came(&l->timely, gp_meta_of(p->in[lead].ring, k)->age.born_ns);
        l->came_ns = w->now_ns, l->seen = k + 1;
    }
    w->came_ns = l->came_ns, w->lanes = p->segment->streams;
    uint64_t all = ready(p, f);
    w->all = all > (uint64_t)w->n ? (int)all : w->n;
    w->newest_ns = gp_meta_of(p->in[lead].ring, f + (uint64_t)w->all - 1)->age.born_ns;
    if (!w->newest_ns || w->newest_ns == INT64_MAX)
        w->newest_ns = w->now_ns;
    gp_timely_choice c = gp_timely_choose(&l->timely, w);
    pthread_mutex_unlock(&l->lock);
    return c;
}

gp_late gp_latency_late(const gp_run *run)
{
    gp_late is = { .frames = 0 };
    gp_hist all = { 0 };
    gp_run_latency(run, &all);
    is.frames = all.n, is.p99_ns = gp_hist_at(&all, 0.99);
    if (run->end_ns > run->start_ns)
        is.under_way = (double)all.sum / (double)(run->end_ns - run->start_ns);
    for (int i = 0; i < run->plan->nactors; i++) {
        const gp_segmentrt *s = run->actor[i].seg;
        is.late += run->actor[i].host ? run->actor[i].host->late : 0;
        if (s && s->latency && s->latency->timely.tail[0].most_ns > is.alone_ns)
            is.alone_ns = s->latency->timely.tail[0].most_ns;
    }
    return is;
}

void gp_latency_check(const gp_run *run, gp_errs *errs)
{
    char text[GP_LATE_TEXT];
    gp_late is = gp_latency_late(run);
    if (gp_late_text(&is, run->graph->latency_ns, gp_plan_depth(run->plan), text))
        gp_fail(errs, GP_E_WARN, gp_node_get(run->pipeline->spec->root, "latency")->at, "%s", text);
}
