/* agree.c - before anything runs: do all ranks run the same, find the same files, and no two write one? See ranks.h;
 * same.h has what needs no MPI. */
#include <stdlib.h>
#include <string.h>
#include "base/path.h"
#include "base/plural.h"
#include "ranks/inside.h"

uint64_t gp_ranks_hash(uint64_t h, const void *data, size_t n)
{
    const unsigned char *p = data;
    for (h = h ? h : 0xcbf29ce484222325; n--; p++)
        h = (h ^ *p) * 0x100000001b3;
    return h;
}

static uint64_t hash_text(uint64_t h, const char *text)
{
    return gp_ranks_hash(h, text, strlen(text) + 1);
}

static gp_rank_stage stage_of(const gp_stage_info *is)
{
    const char *path = is->writes;
    gp_rank_stage s = { .name = hash_text(0, is->name), .source = !is->nin && is->shared, .files = is->nreads,
                        .frames = is->frames_of_all, .sink = path, .shared = is->shared };
    for (int i = 0; i < is->nreads; i++)
        s.names = hash_text(s.names, is->reads[i] + gp_path_folder(is->reads[i]));
    if (path)
        s.path = hash_text(0, path), s.from = is->writes_from,
        s.each = gp_path_has_number(path) || gp_path_has_name(path),
        s.anyone = is->elsewhere || gp_path_is_device(path), s.joins = is->joins;
    return s;
}

int gp_rank_stages(const gp_pipeline *p, gp_rank_stage *to, int most)
{
    gp_stage_info is;
    int n = 0;
    for (; gp_pipeline_stage(p, n, &is); n++)
        if (n < most)
            to[n] = stage_of(&is);
    return n;
}

/* The same stage of rank r, which may lack it: zeros. */
static const gp_rank_stage *of_rank(const gp_rank_stage *of, int n, int r, int stage)
{
    static const gp_rank_stage none;
    for (int i = 0; i < n; i++)
        if (of[r * n + i].name == of[stage].name)
            return &of[r * n + i];
    return &none;
}

bool gp_ranks_find_alike(const gp_pipeline *p, const gp_rank_stage *of, int n, int ranks, gp_errs *errs)
{
    gp_stage_info is;
    for (int i = 0; i < n && gp_pipeline_stage(p, i, &is); i++)
        for (int r = 1; of[i].source && r < ranks; r++) {
            const gp_rank_stage *a = of_rank(of, n, r, i);
            if (a->files != of[i].files || a->frames != of[i].frames)
                return gp_fail(errs, GP_E_SPEC, is.at, "source '%s': rank %d finds %lld file%s with %lld frames, and "
                               "rank 0 %lld with %lld: all ranks must see the same files", is.name, r,
                               (long long)a->files, gp_plural(a->files), (long long)a->frames, (long long)of[i].files,
                               (long long)of[i].frames);
            if (a->names != of[i].names)
                return gp_fail(errs, GP_E_SPEC, is.at, "source '%s': rank %d finds files of other names than rank 0: "
                               "all ranks must see the same files", is.name, r);
        }
    return true;
}

/* Do all ranks write one file in this stage, together? */
static bool write_one(const gp_rank_stage *of, int n, int ranks, int stage)
{
    const gp_rank_stage *first = &of[stage];
    bool one = first->joins && !first->each && !first->anyone;
    for (int r = 1; one && r < ranks; r++)
        one = of_rank(of, n, r, stage)->joins && of_rank(of, n, r, stage)->path == first->path;
    return one;
}

/* Two ranks may write one pattern, where each has frames of its own. A rank may lack the sink: its path is 0. */
static bool go_together(const gp_rank_stage *a, const gp_rank_stage *b)
{
    return !a->path || a->path != b->path || a->anyone || b->anyone || (a->shared && a->each && a->from == b->from);
}

bool gp_ranks_clash_of(const gp_rank_stage *of, int n, int ranks, gp_ranks_clash *c)
{
    for (int i = 0; i < n; i++) {
        if (!of[i].sink || write_one(of, n, ranks, i))
            continue;
        for (int b = 1; b < ranks; b++)
            for (int a = 0; a < b; a++)
                if (!go_together(of_rank(of, n, a, i), of_rank(of, n, b, i))) {
                    *c = (gp_ranks_clash){ i, a, b };
                    return true;
                }
    }
    return false;
}

bool gp_ranks_clash_fail(const gp_pipeline *p, const gp_rank_stage *of, int n, int ranks, const gp_ranks_clash *c,
                         gp_errs *errs)
{
    const gp_rank_stage *a = of_rank(of, n, c->a, c->stage);
    gp_stage_info is;
    gp_pipeline_stage(p, (int)(a - &of[c->a * n]), &is);
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

/* ---- what ranks tell each other --------------------------------------- */

typedef struct said {
    char version[64], names[200];      /* of gpipe; of plug-ins, with their versions, as many as have room */
    uint64_t text, settings, plugins, included;
    int status, stages;
    bool loaded, account;
} said;

bool gp_ranks_joins(void *arg, const char *stage)
{
    const gp_ranks *us = arg;
    for (int i = 0; i < us->joined.n; i++)
        if (!strcmp(us->joined.name[i], stage))
            return true;
    return false;
}

bool gp_ranks_account(gp_ranks *us)
{
    return us->account;
}

bool gp_ranks_say(gp_ranks *us, const char **name)
{
    snprintf(us->speaker.name, sizeof us->speaker.name, "rank %d: ", us->rank);
    *name = us->n > 1 && (us->speaker.all || us->speaker.names) ? us->speaker.name : "";
    return us->n == 1 || us->speaker.all || us->speaker.rank == us->rank;
}

static void say_plugins(const gp_pipeline *p, said *s)
{
    const gp_plugin_info *of;
    size_t n = 0, room = sizeof s->names;
    snprintf(s->names, room, "none");
    for (int i = 0; (of = gp_pipeline_plugin(p, i)); i++) {
        s->plugins = hash_text(hash_text(s->plugins, of->name), of->version);
        n += n < room ? (size_t)snprintf(s->names + n, room - n, "%s%s %s", i ? ", " : "", of->name, of->version) : 0;
    }
    if (n >= room)
        strcpy(s->names + room - 4, "...");
}

static said say(const gp_ranks *us, const gp_ranks_has *mine, bool ok, const gp_errs *errs)
{
    said s = { .text = gp_ranks_hash(0, mine->text, mine->len), .settings = mine->settings, .included = ok ? gp_pipeline_included(mine->pipeline) : 0, .loaded = mine->text,
               .status = ok ? 0 : gp_errs_exit(errs), .stages = ok ? gp_rank_stages(mine->pipeline, NULL, 0) : 0,
               .account = mine->account };
    snprintf(s.version, sizeof s.version, "%s", us->host->version);
    if (ok)
        say_plugins(mine->pipeline, &s);
    return s;
}

/* How some rank differs from the first; false with an error. */
static bool are_same(const gp_ranks *us, const said *of, const char *file, gp_errs *errs)
{
    gp_loc at = { .file = file };
    for (int r = 1; r < us->n; r++) {
        if (strcmp(of[r].version, of->version))
            return gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, "rank %d runs gpipe %s, and rank 0 %s", r, of[r].version,
                           of->version);
        if (of[r].loaded && of->loaded && of[r].text != of->text)
            return gp_fail(errs, GP_E_USAGE, at, "rank %d has another text of it than rank 0: all run one pipeline", r);
        if (of[r].loaded && of->loaded && of[r].settings != of->settings)
            return gp_fail(errs, GP_E_USAGE, at, "rank %d was given other settings than rank 0: all run one pipeline",
                           r);
        if (!of[r].status && !of->status && of[r].included != of->included)
            return gp_fail(errs, GP_E_USAGE, at, "rank %d includes files of another text than rank 0: all run one pipeline",
                           r);
        if (!of[r].status && !of->status && of[r].plugins != of->plugins)
            return gp_fail(errs, GP_E_USAGE, at, "rank %d uses other plug-ins than rank 0: %s, not %s", r, of[r].names,
                           of->names);
    }
    return true;
}

static void join(gp_ranks *us, const gp_pipeline *p, const gp_rank_stage *of, int n)
{
    gp_stage_info is;
    us->joined.name = gp_ranks_room(us, (size_t)n, sizeof *us->joined.name);
    for (int i = 0; i < n && gp_pipeline_stage(p, i, &is); i++)
        if (write_one(of, n, us->n, i))
            us->joined.name[us->joined.n++] = is.name;
}

/* n: of the rank that has most stages. */
static bool check_stages(gp_ranks *us, const gp_ranks_has *mine, int n, gp_errs *errs)
{
    gp_rank_stage *own = gp_ranks_room(us, (size_t)n, sizeof *own);
    gp_ranks_clash clash;
    (void)gp_rank_stages(mine->pipeline, own, n);
    gp_rank_stage *of = gp_ranks_gather(us, own, n * (int)sizeof *own, false, errs);
    bool ok = of && gp_ranks_find_alike(mine->pipeline, of, n, us->n, errs);
    if (ok && gp_ranks_clash_of(of, n, us->n, &clash)) {
        us->speaker.rank = clash.a;        /* others may have other paths */
        ok = gp_ranks_clash_fail(mine->pipeline, of, n, us->n, &clash, errs);
    } else if (ok) {
        join(us, mine->pipeline, of, n);
    }
    free(own), free(of);
    return ok;
}

bool gp_ranks_agree(gp_ranks *us, const gp_ranks_has *mine, bool ok, gp_errs *errs)
{
    if (us->n == 1)
        return ok;
    gp_errs differ = { .n = 0 };
    said own = say(us, mine, ok, errs), *of = gp_ranks_gather(us, &own, sizeof own, false, errs);
    if (!of && gp_ranks_is_first(us))
        us->speaker.all = true;
    if (of && !are_same(us, of, mine->file, &differ))
        *errs = differ;
    if (!of || differ.n)
        return false;
    int failed = 0, first = 0, most = 0;
    us->account = of->account;
    for (int r = us->n - 1; r >= 0; r--) {
        most = of[r].stages > most ? of[r].stages : most;
        if (of[r].status)
            failed++, first = r;
    }
    free(of);
    us->speaker.rank = first, us->speaker.names = failed && failed < us->n;
    if (failed)
        return ok && gp_fail(errs, GP_E_SPEC, (gp_loc){ .file = mine->file }, "rank %d cannot run it", first);
    return check_stages(us, mine, most, errs)
        && (!mine->runs || gp_ranks_meet_open(us, mine->pipeline, errs));
}
