/* ranks_meet.c - gathers of collective stages, and of sinks that write one file together. Each has a communicator of
 * its own, so that stages need no common order: see ranks.h.
 *
 * A gather is done when all ranks have begun it, so that no rank has begun more than one that another has not. */
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "cli/ranks.h"

/* Of one collective. `room`: bytes at mine; those at `all` are as many for each rank. */
typedef struct meeting {
    char *mine, *all;
    size_t room;
    int n;                             /* bytes of what is under way, or was last */
    long begun;
    bool under_way;
} meeting;

static struct { int n; meeting *of; atomic_int waits; } meetings;         /* waits: for so many */

bool gp_ranks_meets(void)
{
    return atomic_load(&meetings.waits);
}

bool gp_ranks_meet_open(const gp_pipeline *p, gp_errs *errs)
{
    gp_stage_info is;
    for (int i = 0; gp_pipeline_stage(p, i, &is); i++)
        meetings.n += (is.kind && is.kind->collective) || gp_ranks_joins(NULL, is.name);
    meetings.of = gp_ranks_room((size_t)meetings.n, sizeof *meetings.of);
    const char *why = gp_ranks_channels(GP_CHANNEL_COLLECTIVES - 1 + meetings.n);
    return !why || gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "MPI failed: %s", why);
}

/* Begins to send n bytes; NULL: as many as nobody looks at. */
static const char *begin(int collective, const void *mine, size_t n)
{
    meeting *m = &meetings.of[collective];
    if (n > INT_MAX / (size_t)gp_ranks())
        return "this is more than it sends at a time (2 GiB, of all ranks together)";
    if (n > m->room) {
        free(m->mine), free(m->all);
        m->room = n;
        m->mine = gp_ranks_room(n, 1), m->all = gp_ranks_room(n, (size_t)gp_ranks());
    }
    if (mine)
        memcpy(m->mine, mine, n);      /* what is under way when a run is cancelled outlives its buffers */
    m->n = (int)n, m->begun++, m->under_way = true;
    atomic_fetch_add(&meetings.waits, 1);
    return gp_ranks_send(GP_CHANNEL_COLLECTIVES + collective, m->mine, m->n, m->all);
}

int gp_ranks_meet(void *arg, int collective, const void *mine, size_t n, const void **all, gp_errs *errs)
{
    (void)arg;
    meeting *m = &meetings.of[collective];
    bool done = false;
    const char *why = m->under_way ? NULL : begin(collective, mine, n);
    if (!why)
        why = gp_ranks_sent(GP_CHANNEL_COLLECTIVES + collective, &done);
    if (why) {
        gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "MPI failed: %s", why);
        return -1;
    }
    m->under_way = !done;
    atomic_fetch_sub(&meetings.waits, done);
    *all = m->all;
    return done;
}

/* One that this rank has not begun, and others have, or that is under way, comes to its end. */
static bool end(int collective, long begun, int n, gp_errs *errs)
{
    meeting *m = &meetings.of[collective];
    const void *all;
    int64_t late = 0;
    int done = 1;
    while (done >= 0 && (m->begun < begun || m->under_way)) {      /* what is under way may be the one before */
        done = gp_ranks_meet(NULL, collective, NULL, (size_t)n, &all, errs);
        late = done ? 0 : late + gp_ranks_rest(1000000);
        if (gp_ranks_too_late(late, "what other ranks had begun to send: one is stopped, killed or out of reach", errs))
            return false;
    }
    return done > 0;
}

bool gp_ranks_meet_close(gp_errs *errs)
{
    typedef struct has { long begun; int n; } has;
    const int n = meetings.n;
    has *mine = gp_ranks_room((size_t)n, sizeof *mine);
    for (int k = 0; k < n; k++)
        mine[k] = (has){ .begun = meetings.of[k].begun, .n = meetings.of[k].n };
    has *of = n ? gp_ranks_gather(mine, n * (int)sizeof *mine, errs) : NULL;
    bool ok = of || !n;
    for (int k = 0; ok && k < n; k++) {
        has most = { 0 };
        for (int r = 0; r < gp_ranks(); r++)
            if (of[r * n + k].begun > most.begun)
                most = of[r * n + k];
        ok = end(k, most.begun, most.n, errs);
    }
    for (int k = 0; ok && k < n; k++)          /* else MPI may still have them */
        free(meetings.of[k].mine), free(meetings.of[k].all);
    free(meetings.of), free(mine), free(of);
    meetings.of = NULL, meetings.n = 0;
    return ok;
}
