/* verdict_busy.c - how busy everybody was, from the numbers of a report: parts of the run,
 * and cores, both means over it. */
#include <limits.h>
#include "report/verdict.h"

double gp_part_of_run(const gp_judging *j, int64_t ns)
{
    return (double)ns / (double)j->r->wall_ns;
}

int gp_verdict_percent(double part)
{
    return part > 1 ? 100 : part > 0 ? (int)(100 * part + 0.5) : 0;
}

int gp_least_depth(const gp_judging *j, int actor)
{
    int least = INT_MAX;
    for (int i = 0; i < j->r->nbuffers; i++) {
        const gp_buffer_report *b = &j->r->buffer[i];
        if ((b->from == actor || b->to == actor) && b->depth < least)
            least = b->depth;
    }
    return least;
}

int gp_workers_able(const gp_judging *j, int actor)
{
    int depth = gp_least_depth(j, actor), workers = j->r->actor[actor].workers;
    return depth < workers ? depth : workers > 0 ? workers : 1;
}

/* Launches of a segment that are on the device, in the mean: a frame has its part of
 * its launch's time. */
static double in_flight(const gp_judging *j, const gp_actor_report *p)
{
    return gp_part_of_run(j, p->time.sum);
}

double gp_kernels_of(const gp_judging *j, const gp_actor_report *p)
{
    return p->segment >= 0 && j->plan->unified ? in_flight(j, p) : 0;
}

double gp_cores_of(const gp_judging *j, const gp_actor_report *p)
{
    return gp_part_of_run(j, p->busy_ns - p->idle_ns) + gp_kernels_of(j, p);
}

/* A stage that sleeps in its code counts as busy, and a thread that polls while it waits
 * uses a core: the lesser of the two sums is certain. */
double gp_cores_used(const gp_judging *j)
{
    double used = 0, known = gp_part_of_run(j, j->r->cpu_ns);
    for (int i = 0; i < j->r->nactors; i++)
        used += gp_cores_of(j, &j->r->actor[i]);
    return known > 0 && known < used ? known : used;
}

double gp_cores_free(const gp_judging *j)
{
    double left = gp_report_usable(j->r) - gp_cores_used(j);
    return left > 0 ? left : 0;
}

/* The rest is its own: work, and handing over frames. */
double gp_waiting(const gp_judging *j, int actor)
{
    const gp_actor_report *p = &j->r->actor[actor];
    int n = gp_workers_able(j, actor), others = p->workers > n ? p->workers - n : 0;
    return (gp_part_of_run(j, p->wait_in_ns) + gp_part_of_run(j, p->wait_out_ns)
            + gp_part_of_run(j, p->wait_stream_ns) + gp_part_of_run(j, gp_idle(j, actor)) - others) / n;
}

gp_candidate gp_working(const gp_judging *j, int actor)
{
    const gp_actor_report *p = &j->r->actor[actor];
    if (p->segment >= 0)
        return (gp_candidate){ GP_BOUND_LAUNCH, actor, gp_part_of_run(j, p->busy_ns) };
    return (gp_candidate){ GP_BOUND_STAGE, actor,
                           gp_part_of_run(j, p->busy_ns - p->idle_ns) / gp_workers_able(j, actor) };
}

void gp_consider(gp_candidate *best, gp_candidate other)
{
    if (other.part > best->part)
        *best = other;
}

int gp_main_segment(const gp_judging *j, gp_engine e, int on)
{
    int best = -1;
    double most = 0;
    for (int i = 0; i < j->r->nactors; i++) {
        const gp_actor_report *p = &j->r->actor[i];
        const gp_segment *s = p->segment >= 0 ? &j->plan->segment[p->segment] : NULL;
        if (!s || on < s->place.index || on >= s->place.index + s->place.lanes)
            continue;
        size_t peer = gp_segment_copied(j->plan, s, GP_TASK_COPY_PEER);
        double size = e == GP_ENGINE_COPY_PEER ? (double)peer * (double)p->frames : (double)p->time.sum;
        if (best < 0 || size > most)
            best = i, most = size;
    }
    return best;
}

/* Compute that was not measured is no candidate: its estimate is how long launches took,
 * with all that they waited for. */
gp_candidate gp_busiest(const gp_judging *j, int without)
{
    gp_candidate best = { GP_BOUND_UNKNOWN, -1, 0 };
    for (int i = 0; i < j->r->nactors; i++) {
        const gp_actor_report *p = &j->r->actor[i];
        if (i == without)
            continue;
        gp_consider(&best, gp_working(j, i));
        if (p->segment >= 0 && j->plan->unified)
            gp_consider(&best, (gp_candidate){ GP_BOUND_STREAMS, i, in_flight(j, p)
                                            / j->plan->segment[p->segment].streams });
    }
    for (int e = 0; e < GP_ENGINES && !j->plan->unified; e++) {
        const gp_engine_report *x = &j->r->engine[e];
        if (x->used && (x->measured || e != GP_ENGINE_COMPUTE))
            gp_consider(&best, (gp_candidate){ (gp_bound)(GP_BOUND_COPY_IN + e),
                                            gp_main_segment(j, (gp_engine)e, x->on),
                                            gp_part_of_run(j, x->busy_ns) });
    }
    return best;
}
