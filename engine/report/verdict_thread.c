/* verdict_thread.c - the one thread of a program that pushes and pulls all frames (gp_report.one_thread): what it does
 * with its time, and where that bounds a run. */
#include "report/verdict.h"

bool gp_shares_thread(const gp_judging *j, int actor)
{
    int stage = j->r->actor[actor].stage;
    return j->r->one_thread && stage >= 0 && j->g->stage[stage].kind->on_loan;
}

int64_t gp_idle(const gp_judging *j, int actor)
{
    const gp_actor_report *p = &j->r->actor[actor];
    return gp_shares_thread(j, actor) && j->away_ns < p->idle_ns ? j->away_ns : p->idle_ns;
}

void gp_follow_thread(gp_judging *j)
{
    int64_t left = j->r->wall_ns;
    for (int i = 0; i < j->r->nactors; i++) {
        const gp_actor_report *p = &j->r->actor[i];
        if (!gp_shares_thread(j, i))
            continue;
        j->asks_ns += p->wait_in_ns + p->wait_out_ns;
        left -= p->busy_ns - p->idle_ns;
    }
    left -= j->asks_ns;
    j->away_ns = left > 0 ? left : 0;
}

/* In the mean there is no more than one frame on its way (Little's law). */
bool gp_takes_turns(gp_judging *j)
{
    static const double ONE = 1.05;
    int in = -1, out = -1;
    for (int i = 0; i < j->r->nactors; i++) {
        const gp_actor_report *p = &j->r->actor[i];
        bool shares = gp_shares_thread(j, i), source = shares && !j->g->stage[p->stage].nin;
        if (source)
            in = i;
        else if (shares && (out < 0 || p->wait_in_ns > j->r->actor[out].wait_in_ns))
            out = i;
    }
    if (in < 0 || out < 0 || !j->r->latency.n)
        return false;
    double age = (double)j->r->latency.sum / (double)j->r->latency.n;
    double part = gp_part_of_run(j, j->r->actor[out].wait_in_ns);
    if (part < GP_HELD_UP || j->asks_ns < j->away_ns || age * (double)j->r->actor[in].frames > ONE * (double)j->r->wall_ns)
        return false;
    gp_verdict_found(j, GP_BOUND_RATE, out);
    say(j, "bound by the program, which pushes a frame into '%.60s' and waits until it comes out of '%.60s' (%d %% of the time",
        j->r->actor[in].name, j->r->actor[out].name, percent(part));
    gp_say_machine(j, "): push several before the first is pulled, or pull on another thread");
    return true;
}

void gp_blame_thread(gp_judging *j, int actor)
{
    say(j, "bound by the thread of the program that pushes and pulls, which has no frame and asks for none (%d %% of the "
        "time", percent(gp_part_of_run(j, gp_idle(j, actor))));
    gp_say_machine(j, "): what it does meanwhile has to be faster, or to be done by another thread");
}
