/* play.c - plays frames through the actors of a plan as the executor does, see plan.h: an actor fires when all that it
 * reads have the frames that it takes and all that it makes have room. A launch may be of several firings, but never
 * needs more than one. */
#include "compile/firing.h"
#include "compile/plan.h"

/* Rings with counters by the actor that makes them, or by those that read them. */
static gp_ring_lists list_rings(gp_arena *a, const gp_plan *p, bool makers)
{
    gp_ring_lists l = { .from = GP_NEW(a, int, p->nactors + 2) };
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < p->nrings; i++) {
            const gp_ring *r = &p->ring[i];
            const int *actor = makers ? &r->producer : r->consumer;
            for (int c = 0; r->segment < 0 && c < (makers ? 1 : r->nconsumers); c++)
                if (pass == 0)
                    l.from[actor[c] + 2]++;
                else
                    l.v[l.from[actor[c] + 1]++] = i;
        }
        for (int i = 0; pass == 0 && i < p->nactors; i++)
            l.from[i + 2] += l.from[i + 1];
        if (pass == 0)
            l.v = GP_NEW(a, int, l.from[p->nactors + 1]);
    }
    return l;
}

gp_playing gp_play_begin(gp_arena *a, const gp_plan *p)
{
    gp_playing y = { .p = p, .stage = GP_NEW(a, const gp_stage *, p->nactors), .fired = GP_NEW(a, uint64_t, p->nactors),
                     .depth = GP_NEW(a, int, p->nrings), .made = list_rings(a, p, true), .read = list_rings(a, p, false),
                     .periods = 2 };
    for (int i = 0; i < p->nactors; i++) {
        y.stage[i] = gp_actor_first(p, i);
        uint64_t full = (uint64_t)(y.stage[i]->regroup.back / y.stage[i]->rate) + 2;     /* a window is, then */
        y.periods = full > y.periods ? full : y.periods;
    }
    return y;
}

uint64_t gp_play_needs(const gp_playing *y, int ring)
{
    const gp_ring *r = &y->p->ring[ring];
    uint64_t made = gp_frames_made(&y->stage[r->producer]->regroup, y->fired[r->producer] + 1), least = made;
    for (int c = 0; c < r->nconsumers; c++) {
        int to = r->consumer[c];
        uint64_t used = gp_firing_from(&y->stage[to]->regroup, y->fired[to]);
        least = used < least ? used : least;
    }
    return made - least;
}

static bool is_smaller(const gp_playing *y, int ring, int than)
{
    return than < 0 || y->p->ring[ring].bytes < y->p->ring[than].bytes;
}

/* May an actor fire? If not, an input lacks a frame, or *full is the smallest ring without room. */
static bool may_fire(gp_playing *y, int actor, int *full)
{
    const gp_regroup *mine = &y->stage[actor]->regroup;
    *full = -1;
    for (int i = y->read.from[actor]; i < y->read.from[actor + 1]; i++) {
        int from = y->p->ring[y->read.v[i]].producer;
        if (y->stage[from]->regroup.every < INT64_MAX      /* else it comes at the end */
            && gp_frames_made(&y->stage[from]->regroup, y->fired[from]) < gp_firing_to(mine, y->fired[actor]))
            return y->lacks = y->read.v[i], false;
    }
    for (int i = y->made.from[actor]; i < y->made.from[actor + 1]; i++) {
        int ring = y->made.v[i];
        if (gp_play_needs(y, ring) > (uint64_t)y->depth[ring] && is_smaller(y, ring, *full))
            *full = ring;
    }
    return *full < 0;
}

int gp_play(gp_playing *y, uint64_t periods)
{
    for (;;) {
        bool moved = false;
        int smallest = -1, full;
        for (int i = 0; i < y->p->nactors; i++)
            while (y->fired[i] < periods * (uint64_t)y->stage[i]->rate) {
                if (may_fire(y, i, &full)) {
                    y->fired[i]++, moved = true;
                    continue;
                }
                if (full >= 0 && is_smaller(y, full, smallest))
                    smallest = full;
                break;
            }
        if (!moved)
            return smallest;
    }
}

bool gp_play_is_done(const gp_playing *y, uint64_t periods)
{
    bool done = true;
    for (int i = 0; i < y->p->nactors; i++)
        done &= y->fired[i] >= periods * (uint64_t)y->stage[i]->rate;
    return done;
}
