/* verdict_rates.c - buffers whose two sides take and make several frames at a time: depths by what these need. */
#include "compile/firing.h"
#include "report/verdict.h"

static const gp_regroup each_frame = { .step = 1, .repeat = 1, .take = 1, .make = 1 };

static const gp_regroup *regroup_of(const gp_judging *j, int actor)
{
    const gp_actor_report *p = &j->r->actor[actor];
    int stage = p->stage >= 0 ? p->stage : j->plan->segment[p->segment].regroups;
    return stage >= 0 ? &j->g->stage[stage].regroup : &each_frame;
}

int gp_made_at_once(const gp_judging *j, const gp_buffer_report *b)
{
    return (int)regroup_of(j, b->from)->make;
}

int gp_taken_at_once(const gp_judging *j, const gp_buffer_report *b)
{
    const gp_regroup *r = regroup_of(j, b->to);
    return (int)(gp_firing_slots(r, true, 1) - gp_firing_slots(r, true, 0));
}

int gp_kept(const gp_judging *j, const gp_buffer_report *b)
{
    return (int)gp_firing_slots(regroup_of(j, b->to), true, 0);
}

double gp_fullness(const gp_judging *j, const gp_buffer_report *b)
{
    int kept = gp_kept(j, b);
    double held = b->held - kept, room = b->depth - kept;
    return held <= 0 || room <= 0 ? 0 : held < room ? held / room : 1;
}

static int at_a_time(const gp_judging *j, const gp_buffer_report *b)
{
    int made = gp_made_at_once(j, b), taken = gp_taken_at_once(j, b);
    return made > taken ? made : taken;
}

int gp_turns_of(const gp_judging *j, const gp_buffer_report *b, int depth)
{
    int turns = (depth - gp_kept(j, b)) / at_a_time(j, b);
    return turns > 1 ? turns : 1;
}

int gp_depth_for(const gp_judging *j, const gp_buffer_report *b, int turns)
{
    int64_t depth = gp_kept(j, b) + (int64_t)at_a_time(j, b) * turns;
    return depth < GP_DEEPEST ? (int)depth : GP_DEEPEST;
}

int gp_given_depth(const gp_judging *j, int buffer)
{
    const gp_buffer *b = &j->g->buffer[j->r->buffer[buffer].buffer];
    for (const gp_ring *r = j->plan->ring; r < j->plan->ring + j->plan->nrings; r++)
        if (r->buffer == j->r->buffer[buffer].buffer && r->why == GP_DEPTH_BY_LAUNCHES)
            return r->given;
    return j->r->buffer[buffer].depth < b->depth ? b->shallow : b->depth;
}

int gp_followed_depth(const gp_judging *j, int buffer)
{
    const gp_buffer *b = &j->g->buffer[j->r->buffer[buffer].buffer];
    int depth = gp_given_depth(j, buffer);
    if (b->depth_said)
        return 0;
    if (depth > b->depth && !j->g->depth)
        return depth;
    if (depth == gp_default_slots(j->g, b, GP_DEPTH_LARGE))
        return j->g->depth ? j->g->depth : GP_DEPTH_LARGE;
    return depth == gp_default_slots(j->g, b, GP_DEPTH_SMALL) ? GP_DEPTH_SMALL : 0;
}
