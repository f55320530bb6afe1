/* deepen.c - the depth that buffers need where paths of different lengths meet.
 *
 * A buffer on the short path has to keep the frames that the long one has not delivered yet: all frames of a group,
 * while the group goes another path and comes back held. So the firings of actors are simulated; when none is possible,
 * the smallest ring that is full gets room for one more frame, until all go on (T. M. Parks, Bounded
 * Scheduling of Process Networks, 1995). Where nothing regroups, a ring that is full always has a reader that goes on.
 * */
#include "compile/firing.h"
#include "compile/plan.h"
#include "compile/resolve.h"

enum { FIRINGS_MAX = 10000000 };

/* Checks a buffer whose rings got room for `depth` frames. */
static bool check_depth(const gp_buffer *b, int depth, gp_errs *errs)
{
    return !b->depth_said || depth == b->depth
        || gp_fail(errs, GP_E_SPEC, b->depth_at, "buffer '%s' has depth %d, and the pipeline would deadlock: a stage "
                   "after it waits for another input, which needs more frames of this buffer first; write "
                   "'depth: %d' or more, or leave 'depth' out",
                   b->name, b->depth, depth);
}

/* How many frames a stage waits for beyond those that it has seen. */
static int64_t ahead(const gp_stage *st)
{
    const gp_regroup *r = &st->regroup;
    return r->every > 1 ? r->every : r->take - r->back;
}

/* Has each actor fired as often as it should? Else the error, at the stage on a cycle that needs most frames. */
static bool check_cycles(const gp_playing *y, gp_errs *errs)
{
    const gp_stage *most = NULL;
    for (int i = 0; i < y->p->nactors; i++)
        if (y->stage[i]->cycle && (!most || ahead(y->stage[i]) > ahead(most)))
            most = y->stage[i];
    return gp_play_is_done(y, y->periods) || gp_fail(errs, most ? GP_E_SPEC : GP_E_BUG, most ? most->at : (gp_loc){ 0 }, "stage '%s' needs %lld "
                           "frames to make one, but the last of these is made from that one, through a carried "
                           "buffer: it would never start; take it out of the cycle", most ? most->name : "?",
                           most ? (long long)ahead(most) : 0LL);
}

bool gp_deepen(gp_arena *a, const gp_plan *p, int *need, gp_errs *errs)
{
    const gp_graph *g = p->graph;
    uint64_t firings = 0;
    bool regroups = false, ok = true;
    for (int v = 0; v < g->nstages; v++)
        regroups |= g->stage[v].regroups;
    if (!regroups)
        return true;
    gp_playing y = gp_play_begin(a, p);
    y.depth = need;
    for (int i = 0; i < p->nactors; i++)
        firings += (uint64_t)y.stage[i]->rate;
    if (firings * y.periods > FIRINGS_MAX)
        return gp_fail(errs, GP_E_SPEC, g->stage[0].at, "the rates of these stages differ so much that the pattern "
                       "in which they fire repeats only after %llu firings, and at most %d can be planned: make the "
                       "numbers of 'frames' multiples of each other",
                       (unsigned long long)(firings * y.periods), FIRINGS_MAX);
    for (int r; (r = gp_play(&y, y.periods)) >= 0 || !check_cycles(&y, errs);) {
        if (r < 0)
            return false;
        const gp_buffer *b = &g->buffer[p->ring[r].buffer];
        uint64_t depth = gp_play_needs(&y, r);
        if (depth > GP_DEPTH_MAX)
            return gp_fail(errs, GP_E_SPEC, b->at, "buffer '%s' needs a depth of more than %d: another path to a "
                           "stage that reads it takes more frames than that first; regroup fewer frames at a time",
                           b->name, GP_DEPTH_MAX);
        need[r] = (int)depth;
    }
    for (int i = 0, next; i < p->nrings; i = next) {           /* the rings of a buffer are neighbors */
        const gp_buffer *b = p->ring[i].buffer < 0 ? NULL : &g->buffer[p->ring[i].buffer];
        int depth = 0;
        for (next = i; next < p->nrings && p->ring[next].buffer == p->ring[i].buffer; next++)
            depth = need[next] > depth ? need[next] : depth;
        if (!b || depth == p->ring[i].depth)
            continue;
        ok &= check_depth(b, depth, errs);
        if (g->depth != 1 && depth <= GP_DEPTH_MAX / 2)         /* the one goes on while the other is read */
            depth *= 2;
        for (int k = i; k < next; k++)
            need[k] = depth;
    }
    return ok;
}
