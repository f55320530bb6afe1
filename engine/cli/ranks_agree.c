/* ranks_agree.c - before anything runs: do all ranks run the same, and no two write one file? See ranks.h. */
#include <stdlib.h>
#include <string.h>
#include "base/path.h"
#include "base/plural.h"
#include "cli/ranks.h"
#include "cli/report.h"

/* What each rank tells the others of the pipeline it has. */
typedef struct said {
    char version[64];
    uint64_t text, settings;
    int loaded, status, sources, sinks;
    bool account;
} said;

/* The same of one of its sources, whose frames are shared out: so each has to find the same. */
typedef struct source { uint64_t names; int64_t files, frames; } source;

/* The same of one of its sinks. */
typedef struct sink { uint64_t path; int64_t from; bool shared, each, anyone; } sink;   /* each: a file a frame */

/* The sinks, by name, that write one file in all ranks. */
static struct { int n; const char **name; } joined;

bool gp_ranks_joins(void *arg, const char *stage)
{
    (void)arg;
    for (int i = 0; i < joined.n; i++)
        if (!strcmp(joined.name[i], stage))
            return true;
    return false;
}

static bool account;

bool gp_ranks_account(void)
{
    return account;
}

static struct { bool all, names; int rank; char name[32]; } speaker = { .rank = 0 };

bool gp_ranks_say(const char **name)
{
    snprintf(speaker.name, sizeof speaker.name, "rank %d: ", gp_rank());
    *name = gp_ranks() > 1 && (speaker.all || speaker.names) ? speaker.name : "";
    return gp_ranks() == 1 || speaker.all || speaker.rank == gp_rank();
}

/* FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv/), 64 bits. */
uint64_t gp_ranks_hash(uint64_t h, const void *data, size_t n)
{
    const unsigned char *p = data;
    for (h = h ? h : 0xcbf29ce484222325; n--; p++)
        h = (h ^ *p) * 0x100000001b3;
    return h;
}

static uint64_t hash_text(uint64_t h, const char *text)
{
    return gp_ranks_hash(h, text ? text : "", text ? strlen(text) + 1 : 1);
}

static said say(const gp_args *args, const gp_loaded *l, bool ok, const gp_errs *errs)
{
    said s = { .loaded = l->text != NULL, .status = ok ? 0 : gp_errs_exit(errs), .account = gp_report_accounts(args) };
    gp_stage_info is;
    snprintf(s.version, sizeof s.version, "%s%s%s", GP_VERSION, *gp_commit ? " " : "", gp_commit);
    s.text = gp_ranks_hash(0, l->text, l->len);
    s.settings = gp_ranks_hash(0, &args->quiet, sizeof args->quiet);
    for (int i = 0; i < args->nset; i++)
        s.settings = hash_text(s.settings, args->set[i]);
    s.settings = hash_text(hash_text(s.settings, args->report), args->trace);
    s.settings = gp_ranks_hash(s.settings, &args->trace_ns, sizeof args->trace_ns);
    s.settings = gp_ranks_hash(s.settings, &args->trace_gpu, sizeof args->trace_gpu);
    for (int i = 0; ok && gp_pipeline_stage(l->pipeline, i, &is); i++)
        s.sources += !is.nin && is.shared, s.sinks += is.writes != NULL;
    return s;
}

/* How some rank differs from the first; false with an error. */
static bool are_same(const said *of, const char *file, gp_errs *errs)
{
    gp_loc at = { .file = file };
    for (int r = 1; r < gp_ranks(); r++) {
        if (strcmp(of[r].version, of->version))
            return gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, "rank %d runs gpipe %s, and rank 0 %s", r, of[r].version,
                           of->version);
        if (of[r].loaded && of->loaded && of[r].text != of->text)
            return gp_fail(errs, GP_E_USAGE, at, "rank %d has another text of it than rank 0: all run one pipeline", r);
        if (of[r].loaded && of->loaded && of[r].settings != of->settings)
            return gp_fail(errs, GP_E_USAGE, at, "rank %d was given other settings than rank 0: all run one pipeline",
                           r);
    }
    return true;
}

/* Folders may be called differently on other machines. */
static source source_of(const gp_stage_info *is)
{
    source s = { .files = is->nreads, .frames = is->frames_of_all };
    for (int i = 0; i < is->nreads; i++) {
        const char *name = is->reads[i] + gp_path_folder(is->reads[i]);
        s.names = gp_ranks_hash(s.names, name, strlen(name) + 1);
    }
    return s;
}

static bool check_source(const gp_stage_info *is, const source *of, int nsources, gp_errs *errs)
{
    for (int r = 1; r < gp_ranks(); r++) {
        const source *a = &of[r * nsources];
        if (a->files != of->files || a->frames != of->frames)
            return gp_fail(errs, GP_E_SPEC, is->at, "source '%s': rank %d finds %lld file%s with %lld frames, and rank 0 %lld with "
                           "%lld: all ranks must see the same files", is->name, r, (long long)a->files,
                           gp_plural(a->files), (long long)a->frames, (long long)of->files, (long long)of->frames);
        if (a->names != of->names)
            return gp_fail(errs, GP_E_SPEC, is->at, "source '%s': rank %d finds files of other names than rank 0: all ranks must "
                           "see the same files", is->name, r);
    }
    return true;
}

static bool check_sources(const gp_loaded *l, int nsources, gp_errs *errs)
{
    source *mine = gp_ranks_room((size_t)nsources, sizeof *mine);
    source *of = gp_ranks_room((size_t)nsources * (size_t)gp_ranks(), sizeof *of);
    gp_stage_info is;
    int n = 0;
    for (int i = 0; gp_pipeline_stage(l->pipeline, i, &is); i++)
        if (!is.nin && is.shared)
            mine[n++] = source_of(&is);
    bool ok = gp_ranks_gather(mine, nsources * (int)sizeof *mine, of, errs);
    n = 0;
    for (int i = 0; ok && gp_pipeline_stage(l->pipeline, i, &is); i++)
        if (!is.nin && is.shared)
            ok = check_source(&is, &of[n++], nsources, errs);
    free(mine), free(of);
    return ok;
}

/* Do all ranks write one file there? */
static bool writes_one(const gp_stage_info *is, const sink *of, int nsinks)
{
    bool one = is->joins && !of->each && !of->anyone;
    for (int r = 1; r < gp_ranks(); r++)
        one = one && of[r * nsinks].path == of->path;
    return one;
}

/* Two ranks may write one pattern, where each has frames of its own. */
static bool check_sink(const gp_stage_info *is, const sink *of, int nsinks, gp_errs *errs)
{
    const char *opt = is->writes_opt ? is->writes_opt : "path";
    for (int r = 1; r < gp_ranks(); r++)
        for (int q = 0; q < r; q++) {
            const sink *a = &of[q * nsinks], *b = &of[r * nsinks];
            if (a->path != b->path || a->anyone || b->anyone || (a->shared && a->each && a->from == b->from))
                continue;
            if (a->shared && a->each)
                return gp_fail(errs, GP_E_SPEC, is->at, "stage '%s': ranks %d and %d begin to number '%s' differently",
                               is->name, q, r, is->writes);
            if (!a->shared)
                return gp_fail(errs, GP_E_SPEC, is->at, "stage '%s': ranks %d and %d would both write '%s': put "
                               "${rank} into '%s', or 'gather_ranks' before it, so that one rank writes", is->name, q,
                               r, is->writes, opt);
            return gp_fail(errs, GP_E_SPEC, is->at, "stage '%s': '%s' is one for all frames, and each of %d ranks has "
                           "a part of them: put %%05d into '%s' for a file a frame, ${rank} for a file a rank, or "
                           "'gather_ranks' before it; ranks write together what is .npy, raw, text or .y4m, and not "
                           "'live'", is->name, is->writes, gp_ranks(), opt);
        }
    return true;
}

static sink sink_of(const gp_stage_info *is)
{
    const char *path = is->writes;
    return (sink){ .path = gp_ranks_hash(0, path, strlen(path)), .from = is->writes_from, .shared = is->shared,
                   .each = gp_path_has_number(path) || gp_path_has_name(path),
                   .anyone = is->elsewhere || gp_path_is_device(path) };
}

static bool check_sinks(const gp_loaded *l, int nsinks, gp_errs *errs)
{
    sink *mine = gp_ranks_room((size_t)nsinks, sizeof *mine);
    sink *of = gp_ranks_room((size_t)nsinks * (size_t)gp_ranks(), sizeof *of);
    gp_stage_info is;
    int n = 0;
    joined.name = gp_ranks_room((size_t)nsinks, sizeof *joined.name);
    for (int i = 0; gp_pipeline_stage(l->pipeline, i, &is); i++)
        if (is.writes)
            mine[n++] = sink_of(&is);
    bool ok = gp_ranks_gather(mine, nsinks * (int)sizeof *mine, of, errs);
    n = 0;
    for (int i = 0; ok && gp_pipeline_stage(l->pipeline, i, &is); i++)
        if (is.writes && writes_one(&is, &of[n], nsinks))
            joined.name[joined.n++] = is.name, n++;
        else if (is.writes)
            ok = check_sink(&is, &of[n++], nsinks, errs);
    free(mine), free(of);
    return ok;
}

bool gp_ranks_agree(const gp_args *args, const gp_loaded *l, bool ok, gp_errs *errs)
{
    if (gp_ranks() == 1)
        return ok;
    said mine = say(args, l, ok, errs), *of = gp_ranks_room((size_t)gp_ranks(), sizeof *of);
    bool told = gp_ranks_gather(&mine, sizeof mine, of, errs);
    gp_errs differ = { .n = 0 };
    bool same = told && are_same(of, l->file, &differ);
    int failed = 0, first = 0, sources = told ? of->sources : 0, sinks = told ? of->sinks : 0;
    account = told && of->account;
    for (int r = gp_ranks() - 1; told && r >= 0; r--)
        if (of[r].status)
            failed++, first = r;
    free(of);
    if (!same) {
        if (told)
            *errs = differ;
        else if (gp_ranks_is_first())
            gp_ranks_speak();
        return false;
    }
    speaker.rank = first, speaker.names = failed && failed < gp_ranks();
    if (failed)
        return ok && gp_fail(errs, GP_E_SPEC, (gp_loc){ .file = l->file }, "rank %d cannot run it", first);
    return (!sources || check_sources(l, sources, errs)) && (!sinks || check_sinks(l, sinks, errs))
        && (!(args->verb & GP_VERB_RUN) || gp_ranks_meet_open(l->pipeline, errs));
}

void gp_ranks_speak(void)
{
    speaker.all = true;
}
