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

typedef struct playing {
    const gp_plan *p;
    const gp_stage **stage;    /* of each actor: the one that it is, or one of its segment */
    uint64_t *fired;           /* of each actor */
    int *depth;                /* of each ring: what it has room for */
    int **in, *nin, **out, *nout;      /* of each actor: its rings with counters */
} playing;

static void list_rings(playing *y, gp_arena *a, bool fill)
{
    const gp_plan *p = y->p;
    for (int i = 0; i < p->nactors; i++) {
        if (fill)
            y->in[i] = GP_NEW(a, int, y->nin[i] + 1), y->out[i] = GP_NEW(a, int, y->nout[i] + 1);
        y->nin[i] = y->nout[i] = 0;
    }
    for (int i = 0; i < p->nrings; i++) {
        const gp_ring *r = &p->ring[i];
        if (r->segment >= 0)
            continue;
        if (fill)
            y->out[r->producer][y->nout[r->producer]] = i;
        y->nout[r->producer]++;
        for (int c = 0; c < r->nconsumers; c++) {
            if (fill)
                y->in[r->consumer[c]][y->nin[r->consumer[c]]] = i;
            y->nin[r->consumer[c]]++;
        }
    }
}

/* The slots of a ring that its producer's next firing needs it to have. */
static uint64_t wanted(const playing *y, const gp_ring *r)
{
    uint64_t made = gp_frames_made(&y->stage[r->producer]->regroup, y->fired[r->producer] + 1), least = made;
    for (int c = 0; c < r->nconsumers; c++) {
        int to = r->consumer[c];
        uint64_t used = gp_firing_from(&y->stage[to]->regroup, y->fired[to]);
        least = used < least ? used : least;
    }
    return made - least;
}

/* May an actor fire? If not, *full is the smallest ring without room, or -1: an input lacks a frame. */
static bool may_fire(const playing *y, int actor, int *full)
{
    const gp_plan *p = y->p;
    const gp_regroup *mine = &y->stage[actor]->regroup;
    *full = -1;
    for (int i = 0; i < y->nin[actor]; i++) {
        int from = p->ring[y->in[actor][i]].producer;
        if (y->stage[from]->regroup.every < INT64_MAX      /* else it comes at the end */
            && gp_frames_made(&y->stage[from]->regroup, y->fired[from]) < gp_firing_to(mine, y->fired[actor]))
            return false;
    }
    for (int i = 0; i < y->nout[actor]; i++) {
        int r = y->out[actor][i];
        if (wanted(y, &p->ring[r]) > (uint64_t)y->depth[r]
            && (*full < 0 || p->ring[r].bytes < p->ring[*full].bytes))
            *full = r;
    }
    return *full < 0;
}

/* Until each actor has fired `times` times its rate; the smallest ring that keeps one from it, or -1. No ring does
 * where stages on a cycle wait for each other. */
static int play(playing *y, uint64_t times)
{
    const gp_plan *p = y->p;
    for (;;) {
        bool moved = false;
        int smallest = -1, full;
        for (int i = 0; i < p->nactors; i++)
            while (y->fired[i] < times * (uint64_t)y->stage[i]->rate) {
                if (may_fire(y, i, &full)) {
                    y->fired[i]++, moved = true;
                    continue;
                }
                if (full >= 0 && (smallest < 0 || p->ring[full].bytes < p->ring[smallest].bytes))
                    smallest = full;
                break;
            }
        if (!moved)
            return smallest;
    }
}

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
static bool check_cycles(const playing *y, uint64_t times, gp_errs *errs)
{
    const gp_stage *most = NULL;
    bool done = true;
    for (int i = 0; i < y->p->nactors; i++) {
        const gp_stage *st = y->stage[i];
        done &= y->fired[i] >= times * (uint64_t)st->rate;
        if (st->cycle && (!most || ahead(st) > ahead(most)))
            most = st;
    }
    return done || gp_fail(errs, most ? GP_E_SPEC : GP_E_BUG, most ? most->at : (gp_loc){ 0 }, "stage '%s' needs %lld "
                           "frames to make one, but the last of these is made from that one, through a carried "
                           "buffer: it would never start; take it out of the cycle", most ? most->name : "?",
                           most ? (long long)ahead(most) : 0LL);
}

bool gp_deepen(gp_arena *a, const gp_plan *p, int *need, gp_errs *errs)
{
    const gp_graph *g = p->graph;
    int n = p->nactors;
    uint64_t firings = 0, times = 2;
    bool regroups = false, ok = true;
    for (int v = 0; v < g->nstages; v++)
        regroups |= g->stage[v].regroups;
    if (!regroups)
        return true;
    playing y = { .p = p, .stage = GP_NEW(a, const gp_stage *, n), .fired = GP_NEW(a, uint64_t, n),
                  .in = GP_NEW(a, int *, n), .nin = GP_NEW(a, int, n), .out = GP_NEW(a, int *, n),
                  .nout = GP_NEW(a, int, n), .depth = need };
    list_rings(&y, a, false), list_rings(&y, a, true);
    for (int i = 0; i < n; i++) {
        const gp_actor *q = &p->actor[i];
        int t = 0;
        while (q->kind == GP_ACTOR_SEGMENT && p->task[p->segment[q->segment].task[t]].stage < 0)
            t++;
        y.stage[i] = &g->stage[q->kind == GP_ACTOR_HOST ? q->stage : p->task[p->segment[q->segment].task[t]].stage];
        uint64_t full = (uint64_t)(y.stage[i]->regroup.back / y.stage[i]->rate) + 2;     /* a window is, then */
        firings += (uint64_t)y.stage[i]->rate;
        times = full > times ? full : times;
    }
    if (firings * times > FIRINGS_MAX)
        return gp_fail(errs, GP_E_SPEC, g->stage[0].at, "the rates of these stages differ so much that the pattern "
                       "in which they fire repeats only after %llu firings, and at most %d can be planned: make the "
                       "numbers of 'frames' multiples of each other",
                       (unsigned long long)(firings * times), FIRINGS_MAX);
    for (int r; (r = play(&y, times)) >= 0 || !check_cycles(&y, times, errs);) {
        if (r < 0)
            return false;
        const gp_buffer *b = &g->buffer[p->ring[r].buffer];
        uint64_t depth = wanted(&y, &p->ring[r]);
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
