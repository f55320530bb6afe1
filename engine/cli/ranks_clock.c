/* ranks_clock.c - how far the clock of each rank is ahead of that of rank 0: see ranks.h.
 *
 * * As NTP does it (RFC 5905, section 8): rank 0 asks, the other stamps when that came and when its answer left. Of
 * several such exchanges the one with the shortest way there and back tells most: a message takes time in both
 * directions, so that the offset is within half of that way of what is taken for it, however unlike the two directions
 * are. It is measured before the run and behind it; between them a clock is taken to drift evenly. */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>
#include "base/clock.h"
#include "cli/ranks.h"

enum { EXCHANGES = 16, HOST = 64 };

/* One measurement; at: by the clock of the other rank. */
typedef struct offset { int64_t at; double ahead, error; } offset;

static struct {
    atomic_bool known;                 /* rank 0: of all; else of this one */
    char (*host)[HOST];
    offset *begin, *end;               /* rank 0's, of each rank */
} clocks;

/* Rank 0's side. */
static const char *measure(int r, offset *o, int64_t ns)
{
    const char *why = NULL;
    o->error = INFINITY;
    for (int i = 0; !why && i < EXCHANGES; i++) {
        int64_t there[2] = { 0 }, sent = gp_now_ns();
        why = gp_ranks_pass(0, r, &sent, sizeof sent, ns);
        if (!why)
            why = gp_ranks_pass(r, 0, there, sizeof there, ns);
        int64_t back = gp_now_ns();
        double error = (double)((back - sent) - (there[1] - there[0])) / 2;
        if (!why && error < o->error)
            *o = (offset){ there[0], (double)((there[0] - sent) + (there[1] - back)) / 2, fmax(error, 1) };
    }
    return why;
}

static const char *answer(int64_t ns)
{
    const char *why = NULL;
    for (int i = 0; !why && i < EXCHANGES; i++) {
        int64_t sent, here[2];
        why = gp_ranks_pass(0, gp_rank(), &sent, sizeof sent, ns);
        here[0] = here[1] = gp_now_ns();
        if (!why)
            why = gp_ranks_pass(gp_rank(), 0, here, sizeof here, ns);
    }
    return why;
}

static bool failed(const char *why, int other, int64_t ns, gp_errs *errs)
{
    char time[32];
    if (gp_ranks_ends())               /* those that end it say why */
        return true;
    if (why != gp_ranks_too_late)
        return gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "the clock of rank %d cannot be compared: MPI failed: %s",
                       other, why);
    gp_fail(errs, GP_E_STALL, (gp_loc){ 0 }, "waited %s for rank %d to compare clocks", gp_ranks_time(ns, time), other);
    return gp_fail(errs, GP_E_NOTE, (gp_loc){ 0 }, "'--join-timeout' says how long to wait");
}

bool gp_ranks_clocks_begin(gp_errs *errs)
{
    /* Rank 0 may find meanwhile that another does not answer: it is to say so, not those that wait for it. */
    const int64_t ns = gp_ranks_join_ns() * (gp_rank() ? 2 : 1);
    const char *why = NULL;
    int r = 0;
    if (gp_ranks() == 1)
        return true;
    clocks.host = gp_ranks_room((size_t)gp_ranks(), sizeof *clocks.host);
    clocks.begin = gp_ranks_room((size_t)gp_ranks(), sizeof *clocks.begin);
    clocks.end = gp_ranks_room((size_t)gp_ranks(), sizeof *clocks.end);
    gethostname(clocks.host[gp_rank()], HOST - 1);
    if (gp_rank())
        why = answer(ns);
    if (gp_rank() && !why)
        why = gp_ranks_pass(gp_rank(), 0, clocks.host[gp_rank()], HOST, ns);
    while (!gp_rank() && !why && ++r < gp_ranks()) {
        why = measure(r, &clocks.begin[r], ns);
        if (!why)
            why = gp_ranks_pass(r, 0, clocks.host[r], HOST, ns);
    }
    atomic_store(&clocks.known, !why);
    return !why || failed(why, r, ns, errs);
}

bool gp_ranks_clocks_known(void)
{
    return atomic_load(&clocks.known);
}

const char *gp_ranks_clock_end(int r, int64_t ns)
{
    if (!gp_ranks_clocks_known())
        return "its clock is not known";
    return gp_rank() == 0 ? measure(r, &clocks.end[r], ns) : answer(ns);
}

gp_clock gp_ranks_clock(int r, double *error_ns)
{
    *error_ns = 0;
    if (!r || !gp_ranks_clocks_known())
        return (gp_clock){ 0 };
    const offset *a = &clocks.begin[r], *b = &clocks.end[r];
    *error_ns = fmax(a->error, b->error);
    return (gp_clock){ a->at, a->ahead, b->at > a->at ? (b->ahead - a->ahead) / (double)(b->at - a->at) : 0 };
}

const char *gp_ranks_host(int r)
{
    return clocks.host ? clocks.host[r] : "";
}
