/* clock.c - how far the clock of each rank is ahead of that of rank 0: see ranks.h.
 *
 * As NTP does it (RFC 5905, section 8), but of all at once: no rank receives before every rank has sent. So the stamp
 * of one rank before an exchange precedes that of another rank after it, which bounds the difference of their clocks by
 * the time that both have taken. Of several exchanges the shortest tells most. It is measured before the run and
 * behind it; between them a clock is taken to drift evenly. */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>
#include "base/clock.h"
#include "ranks/inside.h"

enum { EXCHANGES = 16, HOST = sizeof *((gp_ranks *)0)->clocks.host };

/* One measurement; at: by the clock of the other rank. */
typedef struct offset { int64_t at; double ahead, error; } offset;

/* What one says in an exchange: when that began, and when the one before was over. */
typedef struct stamps { int64_t begun, over; } stamps;

static void improve(offset *o, int64_t begun0, int64_t over0, int64_t begun, int64_t over)
{
    double error = (double)((over0 - begun0) + (over - begun)) / 2;
    if (error < o->error)
        *o = (offset){ begun, (double)((begun - over0) + (over - begun0)) / 2, fmax(error, 1) };
}

/* NULL with an error. */
static offset *measure(gp_ranks *us, gp_errs *errs)
{
    size_t n = (size_t)us->n;
    offset *o = gp_ranks_room(us, n, sizeof *o);
    stamps mine = { 0 }, *was = NULL;
    for (size_t r = 1; r < n; r++)
        o[r].error = INFINITY;
    for (int i = 0; i <= EXCHANGES; i++) {
        mine.begun = gp_now_ns();
        stamps *all = gp_ranks_gather(us, &mine, sizeof mine, true, errs);
        if (!all)
            return NULL;
        mine.over = gp_now_ns();
        for (size_t r = 1; was && r < n; r++)
            improve(&o[r], was->begun, all->over, was[r].begun, all[r].over);
        free(was);
        was = all;
    }
    free(was);
    return o;
}

bool gp_ranks_clocks_begin(gp_ranks *us, gp_errs *errs)
{
    char mine[HOST] = "";
    gethostname(mine, HOST - 1);
    return (us->clocks.host = gp_ranks_gather(us, mine, HOST, false, errs)) && (us->clocks.begin = measure(us, errs));
}

bool gp_ranks_clocks_end(gp_ranks *us, gp_errs *errs)
{
    return (us->clocks.end = measure(us, errs));
}

gp_clock gp_ranks_clock(gp_ranks *us, int r, double *error_ns)
{
    *error_ns = 0;
    if (!us->clocks.begin)
        return (gp_clock){ 0 };
    const offset *a = &us->clocks.begin[r], *b = us->clocks.end ? &us->clocks.end[r] : a;
    *error_ns = fmax(a->error, b->error);
    return (gp_clock){ a->at, a->ahead, b->at > a->at ? (b->ahead - a->ahead) / (double)(b->at - a->at) : 0 };
}

const char *gp_ranks_machine(gp_ranks *us, int r)
{
    return us->clocks.host ? us->clocks.host[r] : "";
}
