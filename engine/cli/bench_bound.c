/* bench_bound.c - gpipe bench: what bounds a row, see bench.h. Pure.
 *
 * A time that was taken in the row's own windows is a bound: it cannot be more than they
 * lasted. One that a part of the work took alone, in another run, is an estimate: other
 * processes, the clock of the cores and chance differ from run to run. */
#include <math.h>
#include "cli/bench.h"

double gp_bench_busy_us(uint64_t busy_ns, double workers, double seconds, uint64_t frames)
{
    double most = 1e6 * seconds;
    return frames && busy_ns ? fmin(1e-3 * (double)busy_ns / workers, most) / (double)frames : 0;
}

/* The fastest of those that do all their work, of the stable ones or of all. */
static gp_row *fastest(gp_row *row, int n, bool stable)
{
    gp_row *best = NULL;
    for (gp_row *r = row; r < row + n; r++)
        if (!r->cached && (r->figures->stable || !stable)
            && (!best || r->figures->frames_per_s > best->figures->frames_per_s))
            best = r;
    return best;
}

gp_row *gp_bench_best(gp_row *row, int n)
{
    gp_row *best = fastest(row, n, false), *sure = fastest(row, n, true);
    if (!sure || best->figures->frames_per_s
        > sure->figures->frames_per_s * (1 + best->figures->spread + sure->figures->spread))
        return best;
    return sure;
}

gp_resource *gp_bench_add(gp_row *r, gp_resource one)
{
    if (one.us > r->resource[r->bound].us)
        r->bound = r->nresources;
    r->resource[r->nresources] = one;
    return &r->resource[r->nresources++];
}

double gp_bench_reached(const gp_row *r)
{
    const gp_resource *bound = r->nresources ? &r->resource[r->bound] : NULL;
    return !bound ? NAN : bound->us / 1e6
        * (bound->alone ? r->figures->frames_per_s : r->figures->mean_per_s);
}

double gp_bench_share(const gp_figures *row, const gp_figures *alone, bool *alike)
{
    double least = INFINITY, most = 0;
    for (int i = 0; i < row->nbusy; i++)
        if (!row->busy[i].workers && alone->busy[i].share > 0) {
            double part = row->busy[i].share / alone->busy[i].share;
            least = fmin(least, part), most = fmax(most, part);
        }
    *alike = most <= least * 1.01;     /* sources of a join may end some frames apart */
    return most;
}

bool gp_bench_is_refuted(const gp_figures *f, double us)
{
    return us * f->frames_per_s > 1e6;
}

const char *gp_bench_bound_is(const gp_row *r)
{
    const gp_resource *bound = r->nresources ? &r->resource[r->bound] : NULL;
    return !bound ? NULL : !bound->alone ? "same run"
        : gp_bench_is_refuted(r->figures, bound->us) ? "refuted" : "estimate";
}
