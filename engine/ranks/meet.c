/* meet.c - what ranks gather: numbers of each, for all; and what collective stages, and sinks that write one file
 * together, exchange. It finds the ranks that no longer answer: see ranks.h.
 *
 * Each collective has a communicator of its own, so that stages need no common order. A gather is done when all ranks
 * have begun it, so that no rank has begun more than one that another has not. */
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include "ranks/inside.h"

enum { CALLS = 8 };                    /* how often a rank that waits calls */
#define SPIN_S 1e-3                    /* so long it looks all the time whether a message is there */

static const char *start_sending(gp_ranks *us, int channel, const void *mine, int n, void *all)
{
    pthread_mutex_lock(&us->calls);
    const char *why = us->mpi->gather(channel, mine, n, all);
    pthread_mutex_unlock(&us->calls);
    return why;
}

static const char *is_sent(gp_ranks *us, int channel, bool *done)
{
    pthread_mutex_lock(&us->calls);
    const char *why = us->mpi->gathered(channel, done);
    pthread_mutex_unlock(&us->calls);
    return why;
}

/* What comes too late still has a place to come to, which is nobody else's. */
const char *gp_ranks_pass(gp_ranks *us, int from, int to, void *data, int n)
{
    const int other = from == us->rank ? to : from;
    const int64_t most = us->join_ns * (us->rank ? 2 : 1);       /* the first may wait for another */
    bool done = false;
    int64_t late = 0;                  /* while there are no rounds */
    double begun = now_s();
    char *room = gp_ranks_room(us, (size_t)n, 1);
    if (from == us->rank)
        memcpy(room, data, (size_t)n);
    pthread_mutex_lock(&us->calls);
    const char *why = us->mpi->pass(from, to, room, n);
    pthread_mutex_unlock(&us->calls);
    while (!why) {
        pthread_mutex_lock(&us->calls);
        why = us->mpi->passed(&done);
        pthread_mutex_unlock(&us->calls);
        if (why || done)
            break;
        bool apart = atomic_load(&us->apart);
        if (apart && (us->lost[other] || late > most))
            why = "it takes too long";
        else if (now_s() - begun < SPIN_S)
            sched_yield();
        else
            late += gp_ranks_rest(100000) * apart;
    }
    if (done && to == us->rank)
        memcpy(data, room, (size_t)n);
    if (done)
        free(room);
    return why;
}

/* ---- a gather that does not end -------------------------------------- */

const bool *gp_ranks_lost(gp_ranks *us)
{
    return atomic_load(&us->apart) && us->nlost ? us->lost : NULL;
}

bool gp_ranks_is_first(gp_ranks *us)
{
    const bool *lost = gp_ranks_lost(us);
    int r = 0;
    while (lost && r < us->rank && lost[r])
        r++;
    return r == us->rank;
}

/* A gather does not tell which rank is missing. So a rank that waits in one says so to all, again and again, and a rank
 * that says nothing is lost. Others may wait in the one before, or behind: so what counts is that they call at all. One
 * that comes to a gather in which others wait calls at once, as they may give up soon; what they said before it came
 * does not count. */
static const char *call(gp_ranks *us, bool comes, bool now)
{
    pthread_mutex_lock(&us->calls);
    const char *why = us->mpi->heard(us->heard);
    for (int r = 0; comes && r < us->n; r++)
        now |= us->heard[r] >= us->gathers, us->heard[r] = 0;
    for (int r = 0; !why && now && r < us->n; r++)
        why = r == us->rank ? NULL : us->mpi->call(r, us->gathers);
    pthread_mutex_unlock(&us->calls);
    return why;
}

static void have_lost(gp_ranks *us, gp_errs *errs)
{
    char names[200], whom[300];
    for (int r = 0; r < us->n; r++)
        us->nlost += us->lost[r] = r != us->rank && !us->heard[r];
    snprintf(whom, sizeof whom, us->nlost ? "%s %s" : "what all ranks have sent: MPI does not bring it",
             gp_ranks_names(us, us->lost, names), us->wait_what);
    gp_ranks_waited(us->wait_ns, us->wait_key, whom, errs);
}

/* Begins to gather; of the room at *all, which MPI has until that is done, the end has what this rank sends. */
static const char *begin_gather(gp_ranks *us, int channel, const void *mine, int n, char **all)
{
    char *sent = (*all = gp_ranks_room(us, (size_t)n, (size_t)us->n + 1)) + (size_t)n * (size_t)us->n;
    memcpy(sent, mine, (size_t)n);
    return start_sending(us, channel, sent, n, *all);
}

/* After a gather that failed a rank begins no other one: the ranks may no longer be in the same one, and MPI may still
 * hold the memory of this one. */
void *gp_ranks_gather(gp_ranks *us, const void *mine, int n, bool now, gp_errs *errs)
{
    bool done = false, over = false;
    int64_t late = 0, called = 0;
    char *all;
    if (atomic_load(&us->apart))
        return GP_NULL(gp_fail(errs, GP_E_STALL, (gp_loc){ 0 }, "%d rank%s lost", us->nlost, us->nlost > 1 ? "s are"
                               : " is"));
    us->gathers++;
    double since = now_s(), begun = since;
    const char *why = begin_gather(us, 0, mine, n, &all);
    while (!why && !over && !(why = is_sent(us, 0, &done)) && !done) {
        if (now && now_s() - begun < 10 * SPIN_S) {
            sched_yield();
            continue;
        }
        bool comes = !late, calls;
        gp_ranks_rest(1000000);                        /* the others may need the core */
        late += gp_ranks_since(&since);
        over = us->wait_ns && late > us->wait_ns, calls = over || late - called > us->wait_ns / CALLS;
        if (us->wait_ns && (comes || calls))
            why = call(us, comes, calls);
        if (calls)
            called = late;
    }
    if (why)
        gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "MPI failed: %s", why);
    else if (!done)
        have_lost(us, errs);
    atomic_store(&us->apart, why || !done);
    return why || !done ? NULL : all;
}

void *gp_ranks_gather_on(gp_ranks *us, int channel, const void *mine, int n)
{
    bool done = false;
    char *all;
    const char *why = atomic_load(&us->apart) ? "some are lost" : begin_gather(us, channel, mine, n, &all);
    while (!why && !(why = is_sent(us, channel, &done)) && !done && !atomic_load(&us->apart))
        gp_ranks_rest(1000000);
    return done ? all : NULL;
}

/* ---- collective stages ----------------------------------------------- */

/* The memory of one collective. `room`: bytes at mine; `all` has as many for each rank. */
typedef struct meeting {
    char *mine, *all;
    size_t room;
    int n;                             /* bytes of what is under way, or was last */
    long begun;
    bool under_way;
} meeting;

bool gp_ranks_meet_open(gp_ranks *us, const gp_pipeline *p, gp_errs *errs)
{
    gp_stage_info is;
    for (int i = 0; gp_pipeline_stage(p, i, &is); i++)
        us->meetings.n += (is.kind && is.kind->collective) || gp_ranks_joins(us, is.name);
    us->meetings.of = gp_ranks_room(us, (size_t)us->meetings.n, sizeof *us->meetings.of);
    gp_ranks_limit(us, us->join_ns, "to open the channels of collectives", 0);
    const char *why = us->mpi->open_channels(GP_CHANNEL_COLLECTIVES - 1 + us->meetings.n);
    gp_ranks_limit(us, 0, NULL, 0);
    return !why || gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "MPI failed: %s", why);
}

/* Begins to send n bytes; NULL: as many as nobody looks at. */
static const char *begin(gp_ranks *us, int collective, const void *mine, size_t n)
{
    meeting *m = &us->meetings.of[collective];
    if (n > INT_MAX / (size_t)us->n)
        return "this is more than it sends at a time (2 GiB, of all ranks together)";
    if (n > m->room) {
        free(m->mine), free(m->all);
        m->room = n;
        m->mine = gp_ranks_room(us, n, 1), m->all = gp_ranks_room(us, n, (size_t)us->n);
    }
    if (mine)
        memcpy(m->mine, mine, n);      /* what is under way when a run is cancelled outlives its buffers */
    m->n = (int)n, m->begun++, m->under_way = true;
    atomic_fetch_add(&us->meetings.waits, 1);
    return start_sending(us, GP_CHANNEL_COLLECTIVES + collective, m->mine, m->n, m->all);
}

int gp_ranks_meet(void *arg, int collective, const void *mine, size_t n, const void **all, gp_errs *errs)
{
    gp_ranks *us = arg;
    meeting *m = &us->meetings.of[collective];
    bool done = false;
    const char *why = m->under_way ? NULL : begin(us, collective, mine, n);
    if (!why)
        why = is_sent(us, GP_CHANNEL_COLLECTIVES + collective, &done);
    if (why) {
        gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "MPI failed: %s", why);
        return -1;
    }
    m->under_way = !done;
    atomic_fetch_sub(&us->meetings.waits, done);
    *all = m->all;
    return done;
}

/* One that this rank has not begun, and others have, or that is under way, comes to its end. */
static bool end(gp_ranks *us, int collective, long begun, int n, gp_errs *errs)
{
    meeting *m = &us->meetings.of[collective];
    const void *all;
    int64_t late = 0;
    int done = 1;
    while (done >= 0 && (m->begun < begun || m->under_way)) {      /* what is under way may be the one before */
        done = gp_ranks_meet(us, collective, NULL, (size_t)n, &all, errs);
        late = done ? 0 : late + gp_ranks_rest(1000000);
        if (us->wait_ns && late > us->wait_ns)
            return gp_ranks_waited(us->wait_ns, us->wait_key, "what other ranks had begun to send: one is "
                                   "stopped, killed or out of reach", errs);
    }
    return done > 0;
}

bool gp_ranks_meet_close(gp_ranks *us, gp_errs *errs)
{
    typedef struct has { long begun; int n; } has;
    const int n = us->meetings.n;
    has *mine = gp_ranks_room(us, (size_t)n, sizeof *mine);
    for (int k = 0; k < n; k++)
        mine[k] = (has){ .begun = us->meetings.of[k].begun, .n = us->meetings.of[k].n };
    has *of = n ? gp_ranks_gather(us, mine, n * (int)sizeof *mine, false, errs) : NULL;
    bool ok = of || !n;
    for (int k = 0; ok && k < n; k++) {
        has most = { 0 };
        for (int r = 0; r < us->n; r++)
            if (of[r * n + k].begun > most.begun)
                most = of[r * n + k];
        ok = end(us, k, most.begun, most.n, errs);
    }
    for (int k = 0; ok && k < n; k++)          /* else MPI may still have them */
        free(us->meetings.of[k].mine), free(us->meetings.of[k].all);
    free(us->meetings.of), free(mine), free(of);
    us->meetings.of = NULL, us->meetings.n = 0;
    return ok;
}
