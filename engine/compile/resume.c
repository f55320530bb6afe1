/* resume.c - may a run go on where another was broken off ('resume')? Then all frames are made anew from that number on,
 * as those of one rank of several are: what makes a frame needs its number alone, and a sink notes what it has. */
#include "compile/ir.h"

static bool check_source(const gp_stage *st, gp_errs *errs)
{
    const char *why = !st->by_number             ? "does not find its frames by their numbers"
                    : gp_stage_starts_anew(st)   ? "starts anew at its end ('loop')" : NULL;
    return !why || gp_fail(errs, GP_E_SPEC, st->at, "source '%s' %s, so that a run cannot go on within them, as 'resume' says",
                           st->name, why);
}

static bool check_stage(const gp_stage *st, gp_errs *errs)
{
    const char *why = gp_stage_needs(st);
    bool keeps = !st->nout && !st->kind->save && (!st->any_length || st->kind->open);
    if (why)
        return gp_fail(errs, GP_E_SPEC, st->at, "stage '%s' %s, so that a run cannot go on between two frames, as 'resume' "
                       "says", st->name, why);
    return !keeps || gp_fail(errs, GP_E_SPEC, st->at, "stage '%s' does not note which frames it has had, so that a run cannot "
                             "go on behind them, as 'resume' says", st->name);
}

bool gp_resume_check(gp_graph *g, gp_errs *errs)
{
    bool ok = g->ranks == 1 || gp_fail(errs, GP_E_SPEC, g->resume_at, "'resume' is for a run of one process, and this has %d "
                                       "ranks", g->ranks);
    for (int i = 0; i < g->nstages; i++) {
        gp_stage *st = &g->stage[i];
        ok &= st->nin ? check_stage(st, errs) : check_source(st, errs);
        st->shared = true;
    }
    return ok;
}
