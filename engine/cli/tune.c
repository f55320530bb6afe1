/* tune.c - gpipe tune: one measurement, many simulations, then a few settings in turns with the given ones. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "api/forms.h"
#include "base/memfile.h"
#include "base/why.h"
#include "cli/live.h"
#include "cli/tune.h"
#include "cli/verb.h"

enum { CANDIDATES = 7, SIMULATED = 4000, VARIANTS = 3,
       TURNS = 3 };            /* of all candidates there is time for so many */
static const double BUDGET = 60, LEAST = 1, SIMULATING = 0.2;     /* seconds; the part of it for simulations */
static const double NOISE = 0.01, LOUD = 0.1, BEHIND = 0.93;
static const double CROWDED = 0.25;    /* of the cores, by other processes: results are uncertain */
static const double TOO_LONG = 2;      /* times the first measurement: one that takes longer is broken off */
static const double PROMISE = 1.02;    /* times the given score: less is none */

static double left(const gp_tuning *x)
{
    return x->began + x->budget - gp_seconds();
}

/* ---- what may be tuned ------------------------------------------------ */

static bool read_memory(gp_tuning *x)
{
    gp_node n = { .text = x->args->memory, .len = strlen(x->args->memory) };
    gp_num v;
    gp_errs ignored = { .n = 0 };
    x->goal.memory = gp_eval(&n, NULL, &v, &ignored) && v.f >= 1 && v.f < 1e18 ? (size_t)v.f : 0;
    return x->goal.memory || gp_usage(x->errs, "--memory %s: write a size, like 4GiB", n.text);
}

/* Can the file be changed? As root every file can, which its owner may not want. */
static bool check_write(gp_tuning *x, const char *file)
{
    struct stat st;
    if (x->args->nset)
        return gp_usage(x->errs, "--write with --set: the file would be tuned for values that it does not have; leave "
                        "out one of them");
    if (!stat(file, &st) && !(st.st_mode & 0222))
        return gp_fail(x->errs, GP_E_USAGE, (gp_loc){ .file = file }, "--write: the file is read-only");
    return !access(file, W_OK) || gp_fail(x->errs, GP_E_USAGE, (gp_loc){ .file = file }, "--write: %s",
                                          gp_strerror(errno));
}

/* What bench runs as it is, and would be done again and again. */
static bool check_sinks(gp_tuning *x)
{
    const gp_graph *g = gp_pipeline_graph(x->given.pipeline);
    for (int v = 0; v < g->nstages; v++)
        if (!g->stage[v].nout && gp_node_get(g->stage[v].node, "command"))
            return gp_fail(x->errs, GP_E_USAGE, g->stage[v].at, "'%s' starts a program, and each measurement would "
                           "start it again; tune with a path in place of its command", g->stage[v].name);
    return true;
}

static bool check(gp_tuning *x)
{
    const gp_args *args = x->args;
    if (!gp_bench_rereads(args, x->errs))
        return false;
    if (x->budget < LEAST)
        return gp_usage(x->errs, "--budget %.3gs is too small to measure anything in turns; give it %.0fs or more",
                        x->budget, LEAST);
    return gp_goal_read(args->goal ? args->goal : "rate", &x->goal, x->errs) && (!args->memory || read_memory(x))
        && (!args->write || check_write(x, args->operand[0]));
}

/* ---- plans ------------------------------------------------------------ */

static bool compile(gp_tuning *x, gp_loaded *l, const char *const *set, int nset, gp_errs *errs)
{
    gp_args args = gp_args_with(&x->bench.arena, x->args, set, nset);
    *l = (gp_loaded){ .file = x->file.file, .text = x->file.text, .len = x->file.len };
    bool ok = gp_load_for(l, &args, x->machine, x->bench.registry, errs);
    l->text = NULL;                    /* it is x->file's */
    return ok;
}

static const gp_plan *plan(void *arg, const char *const *set, int nset)
{
    gp_tuning *x = arg;
    gp_errs ignored = { .n = 0 };
    gp_unload(&x->planned);
    return compile(x, &x->planned, set, nset, &ignored) ? gp_pipeline_plan(x->planned.pipeline) : NULL;
}

static bool goes_on(void *arg)
{
    const gp_tuning *x = arg;
    return gp_seconds() < x->stop_simulating && !gp_signal_taken();
}

/* ---- measuring -------------------------------------------------------- */

/* One turn of one, or the first measurement, which leaves a report. The exit code; what could not be measured is
 * out. */
static int measure(gp_tuning *x, gp_tried *t, FILE *report)
{
    gp_bench *b = &x->bench;
    gp_run_options o = { .timed = true, .no_saves = true, .stamped = report != NULL };
    gp_figures f = { 0 };
    char why[GP_BENCH_WHY] = "";
    bool given = t == x->tried;
    double longest = b->longest_s;
    b->report = report;
    if (given && !report)              /* what all are compared with is measured however long it takes */
        b->longest_s = 0;
    int status = gp_bench_measure(b, &t->row, &o, given ? NULL : why, &f);
    b->report = NULL, b->longest_s = longest;
    if (gp_signal_taken() || b->stuck)
        return status ? status : 128 + gp_signal_taken();
    if (status && !given) {
        t->out = true, t->why = gp_strdup(&b->arena, why);
        return 0;
    }
    if (!status && !report)
        t->result[t->n++] = (gp_result){ f.frames_per_s, (double)gp_hist_at(&f.latency, 0.99), t->settings->is.memory };
    return status;
}

static int measure_once(gp_tuning *x)
{
    gp_memfile m;
    bool open = gp_memfile_open(&m);
    int status = open ? measure(x, x->tried, m.f) : 0;
    x->report = open ? gp_memfile_close(&m, &x->report_n) : NULL;
    x->once = gp_seconds() - x->began;
    x->bench.longest_s = fmin(x->bench.longest_s, TOO_LONG * x->once);
    if (status)
        return status;
    if (!x->report)
        gp_no_memory(x->errs);
    else if (x->once > 0.5 * x->budget)
        gp_usage(x->errs, "--budget %.3gs is too small: one measurement took %.2g s, and several are needed; give it "
                 "%.0fs", x->budget, x->once, ceil(20 * x->once));
    return gp_errs_exit(x->errs);
}

gp_result gp_tune_middle(const gp_tried *t)
{
    return gp_result_middle(t->result, t->n);
}

/* How many are still measured, beside the given ones. */
static int alive(const gp_tuning *x)
{
    int n = 0;
    for (int i = 1; i < x->ntried; i++)
        n += !x->tried[i].out;
    return n;
}

static double score_of(const gp_tuning *x, const gp_tried *t)
{
    gp_result m = gp_tune_middle(t);
    return gp_goal_score(&x->goal, &m);
}

static void add_tried(gp_tuning *x, const gp_settings *s)
{
    gp_tried *t = &x->tried[x->ntried++];
    *t = (gp_tried){ .settings = s, .label = "", .row = x->tried[0].row };
    for (int k = 0; k < s->nset; k++) {
        t->label = gp_format(&x->bench.arena, "%s%s%s", t->label, k ? " " : "", s->set[k]);
        t->row.args = gp_bench_set(&x->bench, &t->row.args, s->set[k]);
    }
}

static bool simulate(gp_tuning *x)
{
    gp_arena *a = &x->bench.arena;
    const gp_plan *given = gp_pipeline_plan(x->given.pipeline);
    const gp_source_report *r = gp_source_report_read(a, x->report, x->report_n, x->args->operand[0], x->errs);
    const gp_costs *c = r ? gp_costs_read(a, r, given, x->errs) : NULL;
    if (!c)
        return false;
    if (c->others > CROWDED * (c->cores + c->others) && !x->args->quiet)
        fprintf(stderr, "gpipe: other processes used %.1f of %.3g core%s meanwhile: what is measured beside them says "
                "little\n", c->others, c->cores + c->others, c->cores + c->others == 1 ? "" : "s");
    double began = gp_seconds();
    x->stop_simulating = began + SIMULATING * x->budget;
    gp_search s = { .given = given, .costs = c, .goal = x->goal, .plan = plan, .goes_on = goes_on, .arg = x,
                    .most = SIMULATED };
    int most = (int)(left(x) / (TURNS * x->once)) - 1;
    most = most < 2 ? 2 : most < CANDIDATES ? most : CANDIDATES;
    const gp_found *f = x->found = gp_search_settings(a, &s, most, x->errs);
    if (!f)
        return false;
    double took = gp_seconds() - began;
    if (!x->args->quiet)
        fprintf(stderr, "gpipe: simulated %d settings in %.2g s (%.0f a second)\n", f->n, took, f->n / took);
    x->tried[0].settings = &f->all[0];
    for (int i = 0; i < f->nbest; i++)
        add_tried(x, &f->all[f->best[i]]);
    return true;
}

/* Far behind the best of the others, so that more turns would be for nothing; and the worst, until few are left. */
static void drop(gp_tuning *x)
{
    gp_tried *all = x->tried;
    double best = 0;
    int keep = all[0].n > 1 ? 2 : 3;
    for (int i = 0; i < x->ntried; i++)
        best = all[i].out ? best : fmax(best, score_of(x, &all[i]));
    for (int i = 1; i < x->ntried; i++) {
        double score = score_of(x, &all[i]);
        all[i].out |= best > 0 ? score < BEHIND * best : score < best - (1 - BEHIND);
    }
    while (alive(x) > keep) {
        gp_tried *worst = NULL;
        for (int i = 1; i < x->ntried; i++)
            if (!all[i].out && (!worst || score_of(x, &all[i]) < score_of(x, worst)))
                worst = &all[i];
        worst->out = true;
    }
}

/* Knobs that are not simulated, on top of the best of the first turn: whether they help is measured. */
static void add_variants(gp_tuning *x)
{
    static const char *const more[] = { "sync=block", "launch=stream", "launch=persistent" };
    const gp_plan *given = gp_pipeline_plan(x->given.pipeline);
    const gp_graph *g = given->graph;
    gp_arena *a = &x->bench.arena;
    int best = 0;
    for (int i = 1; i < x->ntried; i++)
        if (!x->tried[i].why && score_of(x, &x->tried[i]) > score_of(x, &x->tried[best]))
            best = i;
    for (int i = 0; i < VARIANTS; i++) {
        bool launch = i > 0, same = launch ? (int)g->launch == i : g->sync == GP_SYNC_BLOCK;
        const gp_settings *was = x->tried[best].settings;
        if (same || (launch && (given->unified || !given->nsegments)))
            continue;
        gp_settings *s = GP_NEW(a, gp_settings, 1);
        size_t had = sizeof *was->set * (size_t)was->nset;
        *s = *was;
        s->set = gp_regrow(a, was->set, had, had + sizeof *was->set);
        s->set[s->nset++] = more[i];
        if (plan(x, s->set, s->nset))
            add_tried(x, s);
    }
}

/* Round by round, as long as there is time; each with the given settings first. */
static int measure_in_turns(gp_tuning *x)
{
    int status = 0;                    /* the first turn has variants, even of the given ones alone */
    for (int turn = 0; turn < GP_TUNE_TURNS && (!turn || alive(x)) && !status; turn++) {
        double began = gp_seconds();
        int measured = 0;
        for (int i = 0, simulated = x->ntried; i < x->ntried && !status; i++) {
            gp_tried *t = &x->tried[i];
            if (t->out || (i && turn && left(x) < 0))
                continue;
            status = measure(x, t, NULL);
            measured++;
            if (!x->args->quiet && !status && !t->out)
                fprintf(stderr, "gpipe: turn %d: %s: %.1f frames/s\n", turn + 1, t->label, t->result[t->n - 1].rate);
            if (!turn && !status && i + 1 == simulated)
                add_variants(x);
        }
        drop(x);
        if (left(x) < (gp_seconds() - began) / measured * (alive(x) + 1))
            break;
    }
    return status;
}

/* ---- the end ---------------------------------------------------------- */

/* What is better by less than this may be chance: with few turns, or where simulations promised nothing. */
static double noise_of(const gp_tuning *x)
{
    const gp_settings *given = x->tried[0].settings;
    double most = -INFINITY;
    for (int i = 1; i < x->ntried; i++)
        most = fmax(most, x->tried[i].settings->score);
    return x->tried[0].n < TURNS || most < given->score + (PROMISE - 1) * fabs(given->score) ? LOUD : NOISE;
}

static void choose(gp_tuning *x)
{
    const gp_result *result[CANDIDATES + VARIANTS + 1];
    int rounds[CANDIDATES + VARIANTS + 1];
    for (int i = 0; i < x->ntried; i++) {
        const gp_tried *t = &x->tried[i];
        bool few = t->n < TURNS && x->tried[0].n >= TURNS;           /* it fell behind */
        result[i] = t->result, rounds[i] = t->why || few ? 0 : t->n;
    }
    x->chosen = gp_choose_measured(&x->goal, result, rounds, x->ntried, noise_of(x));
}

/* Does what is proposed reach what the goal limits? */
static bool is_reached(gp_tuning *x)
{
    const gp_tried *t = &x->tried[x->chosen];
    gp_result is = gp_tune_middle(t);
    char size[32];
    if (gp_goal_is_reached(&x->goal, &is))
        return true;
    for (int i = 0; i < x->ntried; i++)
        if (x->tried[i].n && score_of(x, &x->tried[i]) > score_of(x, t))
            t = &x->tried[i];
    is = gp_tune_middle(t);
    return gp_fail(x->errs, GP_E_RUN, (gp_loc){ .file = x->file.file }, "no settings that were measured reach the "
                   "goal; nearest: %s, %.4g frames/s, latency %.3g ms, %s", t->label, is.rate, 1e-6 * is.latency_ns,
                   gp_amount_text((double)is.memory, "B", size));
}

static bool write_text(void *arg, FILE *to)
{
    const gp_loaded *l = arg;
    fwrite(l->text, 1, l->len, to);
    return true;
}

static void write_file(gp_tuning *x, const char *path, gp_loaded *text)
{
    gp_outfile f = { .needs_folder = true, .is_sole = true };
    char why[GP_WHY] = "";
    if (!gp_outfile_open(&f, path, why)) {
        gp_fail(x->errs, GP_E_RUN, (gp_loc){ .file = path }, "%s", why);
        return;
    }
    gp_signals_remove(GP_REMOVED_REPORT, f.in_place ? NULL : f.tmp);
    gp_report_put(&f, write_text, text, x->errs);
    gp_signals_remove(GP_REMOVED_REPORT, NULL);
}

/* The lines of the file that change, and the file with --write. */
static void edit(gp_tuning *x)
{
    const gp_settings *s = x->tried[x->chosen].settings;
    gp_loaded is = x->file;
    for (int i = 0; i < s->nset; i++) {
        is.text = (char *)gp_spec_edit(&x->bench.arena, is.text, is.len, is.file, s->set[i], x->bench.registry, &is.len,
                                       x->errs);
        if (!is.text)
            return;
    }
    gp_tune_diff(x->file.file, x->file.text, x->file.len, is.text, is.len);
    if (x->args->write)
        write_file(x, x->args->operand[0], &is);
}

static void finish(gp_tuning *x)
{
    choose(x);
    gp_tune_print(x);
    if (!is_reached(x))
        return;
    if (x->chosen)
        edit(x);
    else
        printf("No settings were measured that are better: leave the file as it is.\n");
}

static int tune(void *arg)
{
    gp_tuning *x = arg;
    const gp_args *args = x->args;
    x->tried = GP_NEW(&x->bench.arena, gp_tried, CANDIDATES + VARIANTS + 1);
    x->tried[0] = (gp_tried){ .label = "as given", .row = { .file = args->operand[0], .args = *x->bench.args } };
    x->ntried = 1;
    x->bench.row = &x->tried[0].row;
    int status = gp_bench_check(&x->bench, &x->tried[0].row);
    if (status || (status = measure_once(x)))
        return status;
    if (!simulate(x))
        return gp_errs_exit(x->errs);
    return measure_in_turns(x);
}

static int tune_verb(const gp_args *args, const gp_registry *registry, gp_errs *errs)
{
    gp_args quiet = *args;
    quiet.progress = GP_PROGRESS_NONE;
    gp_tuning x = { .args = args, .errs = errs, .began = gp_seconds() };
    x.budget = args->budget_ns ? 1e-9 * (double)args->budget_ns : BUDGET;
    x.bench = (gp_bench){ .args = &quiet, .registry = registry, .nfiles = 1, .rounds = 1,
                          .longer = "give it time with --budget", .window_s = fmin(0.5, x.budget / 200),
                          .max_time_s = x.budget / 20, .longest_s = 0.5 * x.budget };
    int status = 0;
    bool ok = check(&x) && gp_load_text(&x.file, args->operand[0], errs);
    if (ok && !(x.machine = gp_machine_create(true)))
        ok = gp_no_memory(errs);
    if (ok && compile(&x, &x.given, NULL, 0, errs) && check_sinks(&x) && !(status = gp_bench_quietly(args, tune, &x)))
        finish(&x);
    int told = gp_tell_errs(args, &x.file, errs);
    status = status ? status : told;
    if (x.bench.stuck)
        gp_leave_stuck(args->ranks, status);
    gp_unload(&x.planned), gp_unload(&x.given), gp_unload(&x.file);
    gp_machine_destroy(x.machine);
    free(x.report);
    gp_arena_free(&x.bench.arena);
    return status;
}

const gp_verb gp_verb_tune = {
    .name = "tune", .operand = "FILE", .min = 1, .max = 1, .place = 60,
    .help = "find settings that are faster: measure once, simulate many, measure a few",
    .more = "The pipeline is measured as by 'gpipe bench' (see its help); outputs go to a temporary\n"
            "folder. From the times of that run hundreds of settings are simulated: depth, streams,\n"
            "batch, batch_wait, workers, sync, copies, which change no byte of any output. The most\n"
            "promising ones and the given ones are measured in turns (a turn measures each once), and\n"
            "the best one also with another sync and launch. Settings are proposed only if they were better\n"
            "than the given ones in most turns, and by more than 1 % in the median turn. A table of\n"
            "what was measured is printed, and the lines of the file to change; --write changes them,\n"
            "and nothing else.\n",
    .target = GP_TARGET_HERE, .run = tune_verb,
    .options = (const gp_option[]){
        GP_OPTION_SET, GP_OPTION_DEVICE, GP_OPTION_PLUGIN,
        { "goal", 0, "GOAL", GP_TO_TEXT(goal),
          "rate (default), latency (of 99 frames in 100), with limits: 'rate, latency < 5 ms'; 'latency, rate > 100'" },
        { "budget", 0, "TIME", GP_TO_TIME(budget_ns), "how long it may take; default 60s" },
        { "memory", 0, "SIZE", GP_TO_TEXT(memory), "the most host and device memory together: 4GiB" },
        { "write", 0, NULL, GP_TO_FLAG(write), "change the file, if better settings were found" },
        GP_OPTION_QUIET,
        { 0 } },
};
