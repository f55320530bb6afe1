/* ranks_same.c - see ranks_same.h. */
#include <string.h>
#include "base/path.h"
#include "base/plural.h"
#include "cli/ranks_same.h"

uint64_t gp_ranks_hash(uint64_t h, const void *data, size_t n)
{
    const unsigned char *p = data;
    for (h = h ? h : 0xcbf29ce484222325; n--; p++)
        h = (h ^ *p) * 0x100000001b3;
    return h;
}

/* ---- sources ---------------------------------------------------------- */

static bool is_shared_source(const gp_stage_info *is)
{
    return !is->nin && is->shared;
}

static gp_rank_source source_of(const gp_stage_info *is)
{
    gp_rank_source s = { .files = is->nreads, .frames = is->frames_of_all };
    for (int i = 0; i < is->nreads; i++) {
        const char *name = is->reads[i] + gp_path_folder(is->reads[i]);
        s.names = gp_ranks_hash(s.names, name, strlen(name) + 1);
    }
    return s;
}

int gp_rank_sources(const gp_pipeline *p, gp_rank_source *to, int most)
{
    gp_stage_info is;
    int n = 0;
    for (int i = 0; gp_pipeline_stage(p, i, &is); i++)
        if (is_shared_source(&is) && n++ < most)
            to[n - 1] = source_of(&is);
    return n;
}

static bool find_alike(const gp_stage_info *is, const gp_rank_source *of, int n, int ranks, gp_errs *errs)
{
    for (int r = 1; r < ranks; r++) {
        const gp_rank_source *a = &of[r * n];
        if (a->files != of->files || a->frames != of->frames)
            return gp_fail(errs, GP_E_SPEC, is->at, "source '%s': rank %d finds %lld file%s with %lld frames, and rank "
                           "0 %lld with %lld: all ranks must see the same files", is->name, r, (long long)a->files,
                           gp_plural(a->files), (long long)a->frames, (long long)of->files, (long long)of->frames);
        if (a->names != of->names)
            return gp_fail(errs, GP_E_SPEC, is->at, "source '%s': rank %d finds files of other names than rank 0: all "
                           "ranks must see the same files", is->name, r);
    }
    return true;
}

bool gp_ranks_find_alike(const gp_pipeline *p, const gp_rank_source *of, int n, int ranks, gp_errs *errs)
{
    gp_stage_info is;
    bool ok = true;
    int k = 0;
    for (int i = 0; ok && k < n && gp_pipeline_stage(p, i, &is); i++)
        if (is_shared_source(&is))
            ok = find_alike(&is, &of[k++], n, ranks, errs);
    return ok;
}

/* ---- sinks ------------------------------------------------------------ */

static gp_rank_sink sink_of(const gp_stage_info *is)
{
    const char *path = is->writes;
    return (gp_rank_sink){ .path = gp_ranks_hash(0, path, strlen(path)), .from = is->writes_from,
                           .shared = is->shared, .each = gp_path_has_number(path) || gp_path_has_name(path),
                           .anyone = is->elsewhere || gp_path_is_device(path), .joins = is->joins };
}

int gp_rank_sinks(const gp_pipeline *p, gp_rank_sink *to, int most)
{
    gp_stage_info is;
    int n = 0;
    for (int i = 0; gp_pipeline_stage(p, i, &is); i++)
        if (is.writes && n++ < most)
            to[n - 1] = sink_of(&is);
    return n;
}

bool gp_ranks_write_one(const gp_rank_sink *of, int n, int ranks, int sink)
{
    const gp_rank_sink *first = &of[sink];
    bool one = first->joins && !first->each && !first->anyone;
    for (int r = 1; one && r < ranks; r++)
        one = first[r * n].joins && first[r * n].path == first->path;
    return one;
}

/* Two ranks may write one pattern, where each has frames of its own. A rank may lack the sink: its path is 0. */
static bool go_together(const gp_rank_sink *a, const gp_rank_sink *b)
{
    return !a->path || a->path != b->path || a->anyone || b->anyone || (a->shared && a->each && a->from == b->from);
}

bool gp_ranks_clash_of(const gp_rank_sink *of, int n, int ranks, gp_ranks_clash *c)
{
    for (int i = 0; i < n; i++) {
        if (gp_ranks_write_one(of, n, ranks, i))
            continue;
        for (int b = 1; b < ranks; b++)
            for (int a = 0; a < b; a++)
                if (!go_together(&of[a * n + i], &of[b * n + i])) {
                    *c = (gp_ranks_clash){ i, a, b };
                    return true;
                }
    }
    return false;
}

bool gp_ranks_clash_fail(const gp_pipeline *p, const gp_rank_sink *of, int n, int ranks, const gp_ranks_clash *c,
                         gp_errs *errs)
{
    const gp_rank_sink *a = &of[c->a * n + c->sink];
    gp_stage_info is;
    int k = 0;
    for (int i = 0; gp_pipeline_stage(p, i, &is); i++)
        if (is.writes && k++ == c->sink)
            break;
    const char *opt = is.writes_opt ? is.writes_opt : "path";
    if (a->shared && a->each)
        return gp_fail(errs, GP_E_SPEC, is.at, "stage '%s': ranks %d and %d begin to number '%s' differently", is.name,
                       c->a, c->b, is.writes);
    if (!a->shared)
        return gp_fail(errs, GP_E_SPEC, is.at, "stage '%s': ranks %d and %d would both write '%s': put ${rank} into "
                       "'%s', or 'gather_ranks' before it, so that one rank writes", is.name, c->a, c->b, is.writes,
                       opt);
    return gp_fail(errs, GP_E_SPEC, is.at, "stage '%s': '%s' is one for all frames, and each of %d ranks has a part of "
                   "them: put %%05d into '%s' for a file a frame, ${rank} for a file a rank, or 'gather_ranks' before "
                   "it; ranks write together what is .npy, raw, text or .y4m, and not 'live'", is.name, is.writes,
                   ranks, opt);
}
