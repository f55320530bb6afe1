/* ranks_agree.c - before anything runs: do all ranks run the same, and no two write one file? See ranks.h. */
#include <stdlib.h>
#include <string.h>
#include "cli/ranks.h"
#include "cli/ranks_same.h"
#include "cli/report.h"
#include "cli/verb.h"

/* What each rank tells the others of the pipeline it has. */
typedef struct said {
    char version[64];
    uint64_t text, settings;
    int loaded, status, stages;
    bool account;
} said;

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

static uint64_t hash_text(uint64_t h, const char *text)
{
    return gp_ranks_hash(h, text ? text : "", text ? strlen(text) + 1 : 1);
}

static said say(const gp_args *args, const gp_loaded *l, bool ok, const gp_errs *errs)
{
    said s = { .loaded = l->text != NULL, .status = ok ? 0 : gp_errs_exit(errs), .account = gp_report_accounts(args) };
    snprintf(s.version, sizeof s.version, "%s%s%s", GP_VERSION, *gp_commit ? " " : "", gp_commit);
    s.text = gp_ranks_hash(0, l->text, l->len);
    s.settings = gp_ranks_hash(0, &args->quiet, sizeof args->quiet);
    for (int i = 0; i < args->nset; i++)
        s.settings = hash_text(s.settings, args->set[i]);
    s.settings = hash_text(hash_text(s.settings, args->report), args->trace);
    s.settings = gp_ranks_hash(s.settings, &args->trace_ns, sizeof args->trace_ns);
    s.settings = gp_ranks_hash(s.settings, &args->trace_gpu, sizeof args->trace_gpu);
    if (ok)
        s.stages = gp_rank_stages(l->pipeline, NULL, 0);
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

static void join(const gp_pipeline *p, const gp_rank_stage *of, int n)
{
    gp_stage_info is;
    joined.name = gp_ranks_room((size_t)n, sizeof *joined.name);
    for (int i = 0; i < n && gp_pipeline_stage(p, i, &is); i++)
        if (gp_ranks_write_one(of, n, gp_ranks(), i))
            joined.name[joined.n++] = is.name;
}

/* n: of the rank that has most stages. */
static bool check_stages(const gp_loaded *l, int n, gp_errs *errs)
{
    gp_rank_stage *mine = gp_ranks_room((size_t)n, sizeof *mine);
    gp_ranks_clash clash;
    (void)gp_rank_stages(l->pipeline, mine, n);
    gp_rank_stage *of = gp_ranks_gather(mine, n * (int)sizeof *mine, errs);
    bool ok = of && gp_ranks_find_alike(l->pipeline, of, n, gp_ranks(), errs);
    if (ok && gp_ranks_clash_of(of, n, gp_ranks(), &clash)) {
        speaker.rank = clash.a;        /* others may have other paths */
        ok = gp_ranks_clash_fail(l->pipeline, of, n, gp_ranks(), &clash, errs);
    } else if (ok) {
        join(l->pipeline, of, n);
    }
    free(mine), free(of);
    return ok;
}

bool gp_ranks_agree(const gp_args *args, const gp_loaded *l, bool ok, gp_errs *errs)
{
    if (gp_ranks() == 1)
        return ok;
    gp_errs differ = { .n = 0 };
    said mine = say(args, l, ok, errs), *of = gp_ranks_gather(&mine, sizeof mine, errs);
    if (!of && gp_ranks_is_first())
        gp_ranks_speak();
    if (of && !are_same(of, l->file, &differ))
        *errs = differ;
    if (!of || differ.n)
        return false;
    int failed = 0, first = 0, most = 0;
    account = of->account;
    for (int r = gp_ranks() - 1; r >= 0; r--) {
        most = of[r].stages > most ? of[r].stages : most;
        if (of[r].status)
            failed++, first = r;
    }
    free(of);
    speaker.rank = first, speaker.names = failed && failed < gp_ranks();
    if (failed)
        return ok && gp_fail(errs, GP_E_SPEC, (gp_loc){ .file = l->file }, "rank %d cannot run it", first);
    return check_stages(l, most, errs)
        && (args->verb->target != GP_TARGET_HERE || gp_ranks_meet_open(l->pipeline, errs));
}

void gp_ranks_speak(void)
{
    speaker.all = true;
}
