/* bench.c - gpipe bench: every row in turns, round by round; then what bounds
 * the best; then all of it is printed, or nothing. */
#include <limits.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/bench.h"
#include "cli/verb.h"

static const double NEAR = 1.05;       /* times that differ by less count as equal, see time_alone() */

/* ---- rounds ---------------------------------------------------------- */

static int measure_rows(gp_bench *b)
{
    for (int round = 0; round < b->rounds; round++)
        for (int i = 0; i < b->nrows; i++) {
            gp_row *r = &b->row[i];
            gp_run_options o = { .timed = true, .cached = &r->cached,
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

/* ---- what bounds a row ------------------------------------------------ */

static double host_us(const gp_figures *f)
{
    double us = 0;
    for (int i = 0; i < f->nbusy; i++)
        us = fmax(us, f->busy[i].us);
    return us;
}

/* The time per frame of the row that a part takes alone; *most: it may be less. Sinks still cost what they cost, so a
 * time near theirs says nothing of the segments. */
static double time_alone(const gp_figures *row, const gp_figures *alone, bool *most)
{
    bool alike;
    double share = gp_bench_share(row, alone, &alike), each = 1e6 / alone->frames_per_s;
    *most = !alike || each < host_us(alone) * NEAR || each * share < host_us(row) * NEAR;
    return each * share;
}

/* Runs the segments with a part of their work, and host stages that cost nothing
 * where that can be. What is only a most does not count as the bound. A part that takes
 * longer than the whole did is timed again: the fastest counts. */
static int add_part(gp_bench *b, gp_row *r, const char *name, const char *how,
                    gp_run_options options)
{
    enum { TIMES = 3 };
    const gp_figures *f = r->figures;
    const char **cached = GP_NEW(&b->arena, const char *, f->nbusy);
    char why[GP_BENCH_WHY] = "";
    double us = NAN;
    bool most = false;
    for (int i = 0; i < f->nbusy; i++)
        if (f->busy[i].workers && !(f->busy[i].source && f->whole))
            cached[options.ncached++] = f->busy[i].name;
    options.cached = cached;
    for (int i = 0; i < TIMES && (!i || gp_bench_is_refuted(f, us)); i++) {
        gp_figures alone = { 0 };
        int status = gp_bench_measure(b, r, &options, why, &alone);
        if (gp_signal_taken() || b->stuck)
            return status;
        if (status && !i)
            break;
        bool at_most = false;
        double took = status ? INFINITY : time_alone(f, &alone, &at_most);
        if (!(took >= us))             /* the first, or less */
            us = took, most = at_most;
    }
    gp_resource one = { name, how, us, .alone = true };
    int bound = r->bound;
    if (isnan(us))
        one.how = gp_format(&b->arena, "could not be timed alone: %s", why);
    gp_resource *added = gp_bench_add(r, one);
    if (most) {
        added->how = gp_format(&b->arena, "at most; %s", how);
        r->bound = bound;
    }
    return 0;
}

/* Stages on a cycle take one frame after the other: all of their times together bound it. */
static void add_cycles(gp_bench *b, gp_row *r)
{
    const gp_figures *f = r->figures;
    for (int i = 0; i < f->nbusy; i++) {
        bool first = f->busy[i].cycle;
        double us = 0;
        int n = 0;
        for (int k = 0; k < f->nbusy && first; k++)
            if (f->busy[k].cycle == f->busy[i].cycle)
                first = k >= i, us += f->busy[k].us * f->busy[k].workers, n++;
        if (first && n > 1)
            gp_bench_add(r, (gp_resource){ gp_format(&b->arena, "cycle of %s", f->busy[i].name),
                         gp_format(&b->arena, "%d host stages, one frame after the other", n), us, false });
    }
}

static int find_bound(gp_bench *b, gp_row *r)
{
    const gp_figures *f = r->figures;
    r->resource = GP_NEW(&b->arena, gp_resource, 2 * f->nbusy + 2);
    r->bound = 0;
    for (int i = 0; i < f->nbusy; i++)
        if (f->busy[i].workers)
            gp_bench_add(r, (gp_resource){ f->busy[i].name,
                         gp_format(&b->arena, "host, %d worker%s", f->busy[i].workers,
                                   f->busy[i].workers > 1 ? "s" : ""), f->busy[i].us, false });
    add_cycles(b, r);
    int status = 0;
    if (f->nsegments && f->copies)
        status = add_part(b, r, "copies", "both directions at once, without the kernels",
                          (gp_run_options){ .no_kernels = true });
    if (f->nsegments && f->device < 0)
        gp_bench_add(r, (gp_resource){ "kernels", gp_format(&b->arena, "CPU time, shared by %.2g "
                     "core%s", f->cores, f->cores == 1 ? "" : "s"), f->kernels_us, false });
    else if (f->nsegments && !status)
        status = add_part(b, r, "kernels", "without the copies",
                          (gp_run_options){ .no_copies = true });
    return status;
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
    int status = 0, each = b->nrows / b->nfiles;
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
    for (int i = 0; i < b->nfiles && !status; i++)
        status = find_bound(b, gp_bench_best(b->row + i * each, each));
    return status;
}

static bool check_args(const gp_args *args, gp_errs *errs)
{
    for (int i = 0; i < args->noperands; i++)
        if (!strcmp(args->operand[i], "-"))
            return gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, "bench reads a pipeline several times, "
                           "and stdin can be read once; name a file in place of '-'");
    return true;
}

static int bench_verb(const gp_args *args, const gp_registry *registry, gp_errs *errs)
{
    gp_bench b = { .args = args, .registry = registry, .nfiles = args->noperands,
                   .longer = "give it time with --max-time" };
    b.window_s = args->window_ns ? 1e-9 * (double)args->window_ns : 0.5;
    b.max_time_s = args->max_time_ns ? 1e-9 * (double)args->max_time_ns : 10;
    b.rounds = args->rounds ? args->rounds : b.nfiles > 1 ? 3 : 1;
    if (!check_args(args, errs))
        return 2;
    int status = 1;
    if (gp_bench_rows(&b, errs)) {
        status = gp_bench_quietly(args, bench, &b);
        if (!status && gp_signal_taken())
            status = 128 + gp_signal_taken();
    } else {
        status = gp_errs_exit(errs);
    }
    if (!status && !gp_bench_print(&b)) {
        gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory");
        status = gp_errs_exit(errs);
    }
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
            "sink, and with 'when_full: drop' from when it was read, whether it waited or not.\n"
            "The bound is the largest of these times per frame: a host stage (by its busy time,\n"
            "through its workers), all copies without the kernels, all kernels without the copies\n"
            "(on the CPU: by their CPU time, through the streams and cores that they could use).\n"
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
