/* shard.c - the frames of sources are shared out among ranks: processes that run the same pipeline together.
 *
 * Of a source that finds its frames by their numbers, rank r of n makes frames r, r + n, r + 2n, ...: its firing k is
 * the frame of number k * n + r, and so it is in all stages behind it (gp_number_of). So a frame has the number, the
 * bytes and the file that it has in one process. What needs other frames than its own, or an order over all of them, is
 * refused. */
#include <string.h>
#include "base/path.h"
#include "compile/resolve.h"

static bool fail(gp_errs *errs, gp_loc at, const gp_graph *g, const char *fmt, const char *stage, const char *more)
{
    char what[300];
    snprintf(what, sizeof what, fmt, stage, more);
    return gp_fail(errs, GP_E_SPEC, at, "%s, and the frames of its source are shared out among %d ranks: write 'shard: none' "
                   "there, for each rank to make all of them, put a stage before it in which ranks exchange frames, as "
                   "'gather_ranks', or run it in one process", what, g->ranks);
}

bool gp_stage_starts_anew(const gp_stage *st)
{
    const gp_opt *loop = gp_kind_opt(st->kind, "loop", GP_OPT_BOOL);
    bool on;
    return loop && (memcpy(&on, (const char *)st->opts + loop->off, sizeof on), on);
}

static bool shard_source(const gp_graph *g, gp_stage *st, gp_errs *errs)
{
    gp_loc at = gp_node_at(st->node, "shard", st->at);
    if (st->each_rank)
        return !st->once || gp_fail(errs, GP_E_SPEC, at, "source '%s' reads a stream, of which each of %d ranks would take a "
                                    "part: run it in one process", st->name, g->ranks);
    if (!st->by_number)
        return gp_fail(errs, GP_E_SPEC, at, "source '%s' does not find its frames by their numbers, so that they cannot be "
                       "shared out among %d ranks: with 'shard: none' each rank makes all of them", st->name, g->ranks);
    if (gp_stage_starts_anew(st))
        return gp_fail(errs, GP_E_SPEC, at, "source '%s' starts anew at its end ('loop'), so that its frames cannot be "
                       "shared out among %d ranks: with 'shard: none' each rank makes all of them", st->name, g->ranks);
    return st->shared = true;
}

const char *gp_stage_needs(const gp_stage *st)
{
    bool one_file = !st->nout && st->writes;   /* of each rank: the command looks for those that are the same */
    return gp_is_carry(st)                            ? st->states ? "has what the frame before left" : "carries the frame before"
         : st->regroups                               ? "takes or makes several frames at a time"
         : st->state || st->variables                 ? "keeps something from frame to frame"
         : st->serial && !one_file && st->device      ? "takes its frames in turns"
         : st->serial && !one_file && !st->nout       ? "takes all frames in their order"
         : st->serial && !one_file                    ? "may keep something from frame to frame"
                                                      : NULL;
}

/* Do its frames come from files that each are one, and are called differently? */
static bool has_own_names(gp_arena *a, const gp_graph *g, const gp_stage *st)
{
    const gp_stage *from = gp_only_source(g, st);
    int of;
    if (from && gp_first_namesake(a, from, from->nreads, &of) >= 0)
        return false;
    return from && from->known.frames && from->known.frames <= from->nreads;
}

static bool check_files(gp_arena *a, const gp_graph *g, const gp_stage *st, gp_errs *errs)
{
    const gp_node *n = st->writes_opt ? gp_node_get(st->node, st->writes_opt) : NULL;
    gp_loc at = n ? n->at : st->at;
    if (!st->writes || !gp_path_has_number(st->writes))
        return !st->writes || !gp_path_has_name(st->writes) || has_own_names(a, g, st)
            || gp_fail(errs, GP_E_SPEC, at, "stage '%s': '%s' names files by the names of frames alone, and two of %d ranks "
                       "may have frames of one name: put %%05d into the path, too", st->name, st->writes, g->ranks);
    if (!st->file_each && !st->any_length && !(n && strstr(n->text, "${rank}")))
        return gp_fail(errs, GP_E_SPEC, at, "stage '%s' puts several frames into each file, and %d ranks would write '%s': put "
                       "${rank} into the path, too, for files of each rank", st->name, g->ranks, st->writes);
    return st->writes_from != INT64_MAX
        || gp_fail(errs, GP_E_SPEC, at, "stage '%s' looks for the numbers that are there already, and %d ranks write at "
                                        "the same "
                   "time: leave out 'if_exists: next', or write to a folder that is new", st->name, g->ranks);
}

static const gp_stage *maker(const gp_graph *g, const gp_stage *st, int port)
{
    int from = gp_stage_maker(g, st, port);
    return from < 0 ? NULL : &g->stage[from];
}

static bool shard_stage(gp_arena *a, const gp_graph *g, gp_stage *st, gp_errs *errs)
{
    const gp_stage *from = NULL;
    for (int p = 0; p < st->nin; p++) {
        const gp_stage *by = maker(g, st, p);
        if (!by || by->closes)
            continue;
        if (from && from->shared != by->shared)
            return gp_fail(errs, GP_E_SPEC, st->at, "stage '%s' reads frames that are shared out among %d ranks, which '%s' "
                           "makes, beside frames that each rank has, of '%s': say 'shard' alike for both sources",
                           st->name, g->ranks,
                           from->shared ? from->name : by->name, from->shared ? by->name : from->name);
        from = by;
    }
    st->shared = from && from->shared && !st->kind->collective;        /* what it makes is the same in all */
    if (!st->shared)
        return true;
    const char *why = gp_stage_needs(st);
    return why ? fail(errs, st->at, g, "stage '%s' %s", st->name, why) : check_files(a, g, st, errs);
}

/* Behind a stage whose frames one rank has there are frames in that rank alone, but for those that are carried: without
 * one before it each begins anew. */
static bool find_alone(const gp_graph *g, gp_stage *st, gp_errs *errs)
{
    const gp_stage *by = NULL;
    for (int p = 0; p < st->nin && !by; p++)
        by = maker(g, st, p) && maker(g, st, p)->only ? maker(g, st, p) : NULL;
    int only = by ? by->only : 0;
    const char *buffer = by ? g->buffer[by->out[0]].name : "";
    for (int p = 0; p < st->nin; p++) {
        const gp_stage *from = maker(g, st, p);
        if (from && from->only && from->only != only)
            return gp_fail(errs, GP_E_SPEC, st->at, "stage '%s' reads '%s', which rank %d alone has, beside '%s', which rank "
                           "%d alone has", st->name, buffer, only - 1, g->buffer[st->in[p]].name, from->only - 1);
    }
    if (st->kind->collective && only && !st->from_rank)
        return gp_fail(errs, GP_E_SPEC, st->at, "stage '%s' needs a frame of each rank, and rank %d alone has those of '%s'",
                       st->name, only - 1, buffer);
    if (st->kind->collective && only && st->from_rank != only)
        return gp_fail(errs, GP_E_SPEC, st->at, "stage '%s' needs the frames of rank %d, and rank %d alone has those of '%s'",
                       st->name, st->from_rank - 1, only - 1, buffer);
    st->only = st->kind->collective ? st->to_rank : gp_is_carry(st) ? 0 : only;
    st->elsewhere = only && only != g->rank + 1 && !st->kind->collective && !gp_is_carry(st) && !st->device;
    return true;
}

/* A stage that closes a cycle comes before what it carries. Behind a collective that is no longer shared out. */
static bool check_cycle(const gp_graph *g, const gp_stage *st, gp_errs *errs)
{
    const gp_stage *from = &g->stage[g->buffer[st->in[0]].producer.stage];
    if (from->shared)
        return fail(errs, st->at, g, "buffer '%s' %s", st->name, gp_stage_needs(st));
    for (int i = 0; i < g->nstages; i++)
        for (int p = 0; g->stage[i].shared && p < g->stage[i].nin; p++)
            if (g->stage[i].in[p] == st->out[0])
                return gp_fail(errs, GP_E_SPEC, g->stage[i].at, "stage '%s' reads frames that are shared out among %d "
                               "ranks, beside '%s', which each rank has: write 'shard: none' in their source",
                               g->stage[i].name, g->ranks, st->name);
    return true;
}

/* How often a stage fires that reads what is carried alone is known at the end only, and by then once more in some
 * ranks. */
static bool check_rounds(const gp_graph *g, const gp_stage *st, gp_errs *errs)
{
    uint32_t any = 0;
    for (int i = 0; i < (g->nstages + 31) / 32; i++)
        any |= st->sources[i];
    return any || gp_fail(errs, GP_E_SPEC, st->at, "stage '%s' reads what is carried alone, so that it is not known how many "
                          "rounds there are: let a stage before it, as 'expr', read that beside frames of a source",
                          st->name);
}

bool gp_shard(gp_arena *a, gp_graph *g, gp_errs *errs)
{
    bool ok = true;
    for (int i = 0; i < g->nstages; i++)
        if (g->stage[i].kind->collective)
            ok &= check_rounds(g, &g->stage[i], errs);
    if (ok && g->resume)
        return gp_resume_check(a, g, errs);
    if (g->ranks == 1)
        return ok;
    for (int i = 0; i < g->nstages; i++)
        if (!g->stage[i].nin)
            ok &= shard_source(g, &g->stage[i], errs);
    for (int i = 0; ok && i < g->nstages; i++)
        if (g->stage[i].nin && !g->stage[i].closes)
            ok &= shard_stage(a, g, &g->stage[i], errs);
    for (int i = 0; ok && i < g->nstages; i++)
        ok &= find_alone(g, &g->stage[i], errs);
    for (int i = 0; i < g->nstages; i++)
        if (g->stage[i].closes)
            ok &= check_cycle(g, &g->stage[i], errs);
    return ok;
}
