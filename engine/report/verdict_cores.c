/* verdict_cores.c - the cores of the machine in a verdict: that they bound a run, and what
 * other processes had of them. */
#include "base/plural.h"
#include "report/verdict.h"

static const double FULL = 0.85;       /* of all cores: little is left for more threads */
static const double SOME = 0.1;        /* of the cores: what others use is worth a word, */
static const double MOST = 0.5;        /* and if it is more than that, the first one */
static const double AWAKE = 0.5;       /* of what seems busy: it computes, and does not sleep */

/* ---- words ------------------------------------------------------------ */

/* Others may be ranks of the same run, without which it is another one. */
static bool are_ranks_beside(const gp_judging *j)
{
    return j->g->ranks > 1 && !j->r->simulated;
}

static bool is_crowded(const gp_judging *j)
{
    return !j->r->simulated && !are_ranks_beside(j) && j->r->cpus > 0 && j->r->others > MOST * j->r->cpus;
}

static void say_used_by_others(gp_judging *j)
{
    say(j, "other %s used %.1f of %d core%s", are_ranks_beside(j) ? "ranks and processes" : "processes", j->r->others,
        j->r->cpus, gp_plural(j->r->cpus));
}

void gp_say_others(gp_judging *j)
{
    if (j->r->others < SOME * j->r->cpus || j->crowd_said)
        return;
    say(j, ", ");
    say_used_by_others(j);
}

void gp_say_crowd(gp_judging *j)
{
    if (!is_crowded(j))
        return;
    say_used_by_others(j);
    say(j, ": run it without them first. ");
    j->crowd_said = true;
}

void gp_say_machine(gp_judging *j, const char *end)
{
    const char *device = NULL;
    double most = 0;
    bool used = false, known = true;
    for (int e = 0; e < GP_ENGINES && !j->plan->unified; e++) {
        const gp_engine_report *x = &j->r->engine[e];
        double part = gp_part_of_run(j, x->busy_ns);
        used |= x->used, known &= !x->used || x->measured;
        device = x->used && part > most ? x->device : device;
        most = x->used && part > most ? part : most;
    }
    if (used)
        say(j, ", %s idle %s%d %%", device ? device : "GPU", known ? "" : "~", 100 - percent(most));
    gp_say_others(j);
    say(j, "%s", end);
}

/* ---- the rule --------------------------------------------------------- */

/* Cores are wanted: what seems busy did compute or waited for a core to do so, or it is a
 * kernel. A script that sleeps wants none, whatever others do. */
static bool are_cores_wanted(const gp_judging *j, double used, double kernels)
{
    double seems = 0, awake = used + gp_part_of_run(j, j->r->delayed_ns);
    for (int i = 0; i < j->r->nactors; i++)
        seems += gp_cores_of(j, &j->r->actor[i]);
    return awake >= AWAKE * seems || kernels >= AWAKE * seems;
}

/* The cgroup allows no more than others leave. */
static bool is_quota(const gp_report *r)
{
    return r->quota > 0 && r->quota <= gp_report_usable(r);
}

static void say_cores(gp_judging *j, double used)
{
    const gp_report *r = j->r;
    if (is_quota(r))
        say(j, "bound by the %.3g core%s that its cgroup allows (%d %% used", r->quota,
            r->quota == 1 ? "" : "s", percent(used / r->quota));
    else if (r->cpus == 1)
        say(j, "bound by the one core (%d %% busy", percent(used + r->others));
    else
        say(j, "bound by the %d cores (%d %% busy", r->cpus, percent((used + r->others) / r->cpus));
    gp_say_machine(j, "). ");
}

bool gp_are_cores_busy(gp_judging *j)
{
    double used = gp_cores_used(j), kernels = 0, sum = 0;
    int most = -1;
    for (int i = 0; i < j->r->nactors; i++) {
        double cores = gp_cores_of(j, &j->r->actor[i]);
        sum += cores, kernels += gp_kernels_of(j, &j->r->actor[i]);
        if (most < 0 || cores > gp_cores_of(j, &j->r->actor[most]))
            most = i;
    }
    double full = FULL * gp_report_usable(j->r);
    if (j->r->cpus < 1 || !(used > 0) || (used < full && kernels < full)
        || !are_cores_wanted(j, used, kernels))
        return false;
    const gp_actor_report *p = &j->r->actor[most];
    bool shared = j->r->others >= SOME * j->r->cpus && !is_quota(j->r);
    bool theirs = is_crowded(j) && !is_quota(j->r);
    gp_verdict_found(j, GP_BOUND_CORES, most);
    if (!theirs)
        say_cores(j, used);
    say(j, "%s '%.60s' takes %d %% of %s", p->stage >= 0 ? "Stage" : "Segment", p->name,
        percent(gp_cores_of(j, p) / sum), shared ? "the rest" : "it");
    if (theirs)
        return true;
    if (p->stage >= 0)
        gp_try_less(j, p);
    else
        say(j, ": its kernels run on the CPU here; a GPU would take them off the cores");
    return true;
}
