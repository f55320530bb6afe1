/* bench.c - gpipe bench: every row in turns, round by round; then all of it is
 * printed, or nothing. */
#include <limits.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/bench.h"
#include "cli/verb.h"

/* ---- rounds ---------------------------------------------------------- */

static int measure_rows(gp_bench *b)
{
    for (int round = 0; round < b->rounds; round++)
        for (int i = 0; i < b->nrows; i++) {
            gp_row *r = &b->row[i];
            gp_run_options o = { .timed = true, .no_saves = true, .cached = &r->cached,
                                 .ncached = r->cached != NULL };
            int status = gp_bench_measure(b, r, &o, NULL, &r->round[round]);
            if (status)
                return status;
        }
    return 0;
}

static int by_rate(const void *a, const void *b)
{
    const gp_figures *const *x = a, *const *y = b;
    return ((*x)->frames_per_s > (*y)->frames_per_s) - ((*x)->frames_per_s < (*y)->frames_per_s);
}

static void choose_figures(gp_bench *b)
{
    const gp_figures **order = GP_NEW(&b->arena, const gp_figures *, b->rounds);
    for (int i = 0; i < b->nrows; i++) {
        for (int k = 0; k < b->rounds; k++)
            order[k] = &b->row[i].round[k];
        qsort(order, (size_t)b->rounds, sizeof *order, by_rate);
        b->row[i].figures = order[b->rounds / 2];
    }
}

static void compare(gp_bench *b)
{
    for (gp_row *r = b->row; r < b->row + b->nrows; r++) {
        if (!r->base)
            continue;
        r->ratio = r->figures->frames_per_s / r->base->figures->frames_per_s;
        r->ratio_min = INFINITY, r->ratio_max = 0;
        for (int k = 0; k < b->rounds; k++) {
            double pair = r->round[k].frames_per_s / r->base->round[k].frames_per_s;
            r->ratio_min = fmin(r->ratio_min, pair), r->ratio_max = fmax(r->ratio_max, pair);
        }
    }
}

/* ---- the verb --------------------------------------------------------- */

/* What a pipeline writes to stdout would stand in the table. */
int gp_bench_quietly(const gp_args *args, int (*measure)(void *arg), void *arg)
{
    gp_signals_catch(args->quiet);
    fflush(stdout);
    int kept = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3), null = open("/dev/null", O_WRONLY);
    if (kept >= 0 && null >= 0)
        dup2(null, STDOUT_FILENO);
    if (null > STDERR_FILENO)
        close(null);
    int status = measure(arg);
    if (kept >= 0) {
        dup2(kept, STDOUT_FILENO);
        close(kept);
    }
    return status;
}

static int bench(void *arg)
{
    gp_bench *b = arg;
    int status = 0;
    for (int i = 0; i < b->nrows && !status; i++)
        status = gp_bench_check(b, &b->row[i]);
    if (status || (status = measure_rows(b)))
        return status;
    choose_figures(b);
    compare(b);
    gp_row *best = b->nrows > 1 ? gp_bench_best(b->row, b->nrows) : NULL;
    if (best)
        best->best = true;
    for (int i = 0; best && i < b->nrows; i++)
        b->row[i].noise = !b->row[i].cached
            && b->row[i].figures->frames_per_s > best->figures->frames_per_s;
    return 0;
}

bool gp_bench_rereads(const gp_args *args, gp_errs *errs)
{
    for (int i = 0; i < args->noperands; i++)
        if (!strcmp(args->operand[i], "-"))
            return gp_usage(errs, "%s reads a pipeline several times, and stdin can be read once; name a file in place "
                            "of '-'", args->verb->name);
    return true;
}

static int bench_verb(const gp_args *args, const gp_registry *registry, gp_errs *errs)
{
    gp_bench b = { .args = args, .registry = registry, .nfiles = args->noperands,
                   .longer = "give it time with --max-time" };
    b.window_s = args->window_ns ? 1e-9 * (double)args->window_ns : 0.5;
    b.max_time_s = args->max_time_ns ? 1e-9 * (double)args->max_time_ns : 10;
    b.rounds = args->rounds ? args->rounds : b.nfiles > 1 ? 3 : 1;
    if (!gp_bench_rereads(args, errs))
        return 0;
    int status = gp_bench_rows(&b, errs) ? gp_bench_quietly(args, bench, &b) : gp_errs_exit(errs);
    if (!status && gp_signal_taken())
        status = 128 + gp_signal_taken();
    if (!status && !gp_bench_print(&b))
        gp_no_memory(errs);
    if (b.stuck)
        gp_leave_stuck(args->ranks, status);
    gp_arena_free(&b.arena);
    return status;
}

const gp_verb gp_verb_bench = {
    .name = "bench", .operand = "FILE...", .min = 1, .max = INT_MAX, .place = 40,
    .help = "measure pipelines: rate, latency, what holds them back",
    .more = "One run is watched, after a warm-up, until three windows in a row agree within 5 %.\n"
            "Sources are made endless (frames: 0, loop: true). Where that is not possible (a stage\n"
            "writes, a source in Lua ends, 'compare' reads a file) whole runs are repeated, and are\n"
            "timed from their first frame in to their last frame out.\n"
            "What 'write' makes goes to a temporary folder next to where it belongs, or to\n"
            "/dev/null for stdout; files that Lua scripts write are not redirected.\n"
            "frames/s, GB/s and times per frame count the sources' frames, also where most are\n"
            "dropped on the way; latency is from when a source has made a frame to the end of a\n"
            "sink, and with 'when_full: drop-newest' from when it was read, whether it waited or not.\n"
            "What bounds a row is the verdict of its run, as 'gpipe run -v' says it.\n"
            "Several files are measured in turns and compared with the first.\n",
    .target = GP_TARGET_HERE, .run = bench_verb,
    .options = (const gp_option[]){
        GP_OPTION_SET, GP_OPTION_DEVICE, GP_OPTION_PLUGIN,
        { "sweep", 0, "PATH=LIST", GP_TO_WORDS(sweep),
          "a row for each value: depth=1..8, batch=1,4,auto; may be given again" },
        { "serial", 0, NULL, GP_TO_FLAG(serial),
          "add a row with depth 1 for all buffers, one stream and no batches" },
        { "cached", 0, "STAGE", GP_TO_WORDS(cached),
          "a row in which that stage costs nothing: its outputs are used again" },
        { "window", 0, "TIME", GP_TO_TIME(window_ns), "how long to count frames; default 500ms" },
        { "max-time", 0, "TIME", GP_TO_TIME(max_time_ns),
          "how long to wait for three windows to agree; default 10s" },
        { "rounds", 0, "N", GP_TO_COUNT(rounds),
          "how often to measure each row, in turns; default 1, or 3 for several files" },
        GP_OPTION_PROGRESS, GP_OPTION_JSON, GP_OPTION_QUIET,
        { 0 } },
};
