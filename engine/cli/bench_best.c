/* bench_best.c - gpipe bench: which row to name, see bench.h. Pure. */
#include "cli/bench.h"

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
