/* bench_run.c - gpipe bench: one measurement.
 *
 * The pipeline runs in a thread of its own and is watched from outside: its
 * counters are read at the edges of windows. An edge is at the moment when a frame finished: when
 * it came out, or was found to have been dropped. If none finishes before the run ends, an edge is
 * where a frame went in: in a run that goes on, the number of frames in flight stays the same.
 * Nothing is reported of a run that ended badly or whose account is wrong. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/plural.h"
#include "base/thread.h"
#include "base/why.h"
#include "cli/bench.h"
#include "cli/report.h"

static const double AGREE = 1.05;      /* largest / smallest of windows that agree */
static const double LOOK = 0.0005;     /* how often counters are read for an edge, in s */
static const double SHORT = 0.0003;    /* a run that is over sooner cannot be measured, in s */
static const double ENOUGH = 0.05;     /* runs that take less together are no window, in s */

typedef struct runner {
    gp_arena *arena;                   /* the table's */
    gp_counters now;                   /* of read_counts */
    gp_loaded l;
    gp_run_options options;
    gp_errs errs;
    gp_outcome outcome;
    gp_meter *meter;
    bool whole;                        /* watched to their ends, not windows of one */
    pthread_t thread;
    double began, ended;               /* its own times: all set up, and over; seconds */
    atomic_bool over;
} runner;

/* ---- what is read from outside ---------------------------------------- */

typedef struct counts {
    double s;                          /* seconds */
    uint64_t in, frames;               /* of the source that made most: in; done with, those
                                          that were dropped on the way too, or in */
    uint64_t block;                    /* as gp_account.block, of the same */
} counts;

/* All that was counted up to a moment. */
typedef struct sample {
    counts at;
    double bytes_per_frame;            /* of all sources together */
    gp_hist latency;
} sample;

static counts read_counts(runner *r)
{
    counts c = { .s = gp_seconds() };
    gp_counters_read(&r->now, r->l.pipeline);
    for (int i = 0; i < r->now.nsources; i++) {
        const gp_account *a = &r->now.source[i];
        uint64_t frames = r->whole || a->block ? gp_frames_done(a, 1) : a->in;
        if (a->in > c.in)
            c.in = a->in, c.block = a->block;
        c.frames = frames > c.frames ? frames : c.frames;
    }
    return c;
}

static void read_all(runner *r, sample *to)
{
    memset(&to->latency, 0, sizeof to->latency);
    gp_latency(r->l.pipeline, &to->latency);
    to->at = read_counts(r);
    uint64_t bytes = 0, frames = 0;
    for (int i = 0; i < r->now.nstages; i++) {
        const gp_stage_status *st = &r->now.stage[i];
        for (int k = 0; k < r->now.nsources; k++)
            if (!strcmp(st->name, r->now.source[k].source)) {
                bytes += st->bytes;
                frames = st->frames > frames ? st->frames : frames;
            }
    }
    to->bytes_per_frame = frames ? (double)bytes / (double)frames : 0;
}

/* `to` += `s`, of another run that took `seconds`. */
static void add_run(sample *to, const sample *s, double seconds)
{
    to->at.s += seconds, to->at.frames += s->at.frames;
    to->bytes_per_frame = s->bytes_per_frame;
    gp_hist_merge(&to->latency, &s->latency);
}

/* ---- windows ---------------------------------------------------------- */

/* Windows lie between samples that follow each other. */
typedef struct series {
    gp_arena *arena;
    sample first, last[GP_BENCH_AGREE + 1];    /* the newest is last[0] */
    double *rate;                      /* frames/s of each window */
    int n, cap;
} series;

static void begin(series *w, const sample *s)
{
    w->first = w->last[0] = *s;
}

static double spread(const double *rate, int n)
{
    double low = rate[0], high = rate[0];
    for (int i = 1; i < n; i++)
        low = fmin(low, rate[i]), high = fmax(high, rate[i]);
    return high / low;
}

static bool agree(const series *w)
{
    return w->n >= GP_BENCH_AGREE
        && spread(w->rate + w->n - GP_BENCH_AGREE, GP_BENCH_AGREE) <= AGREE;
}

static void add_window(series *w, const sample *s)
{
    double took = s->at.s - w->last[0].at.s;
    if (s->at.frames == w->last[0].at.frames || took <= 0)
        return;
    memmove(w->last + 1, w->last, sizeof *w->last * GP_BENCH_AGREE);
    w->last[0] = *s;
    *GP_PUSH(w->arena, w->rate, w->n, w->cap) =
        (double)(s->at.frames - w->last[1].at.frames) / took;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* `each_s`: what the runs of a window take, with their set-up. */
static void sum_up(const series *w, double each_s, gp_figures *f)
{
    const sample *to = &w->last[0];
    f->stable = agree(w);
    f->windows = f->stable ? GP_BENCH_AGREE : w->n;
    const sample *from = f->stable ? &w->last[GP_BENCH_AGREE] : &w->first;
    double *rate = GP_NEW(w->arena, double, f->windows);
    memcpy(rate, w->rate + w->n - f->windows, sizeof *rate * (size_t)f->windows);
    qsort(rate, (size_t)f->windows, sizeof *rate, by_size);
    int middle = f->windows / 2;
    f->frames_per_s = f->windows % 2 ? rate[middle] : (rate[middle - 1] + rate[middle]) / 2;
    f->spread = spread(rate, f->windows) - 1;
    f->window_s = (to->at.s - from->at.s) / f->windows;
    if (f->windows < GP_BENCH_AGREE)       /* with the warm-up, or room to spare */
        f->enough_s = f->whole ? (GP_BENCH_AGREE + 1) * each_s * ceil(ENOUGH / f->window_s)
                               : GP_BENCH_AGREE * f->window_s;
    f->bytes_per_frame = to->bytes_per_frame;
    f->latency = to->latency;
    gp_hist_subtract(&f->latency, &from->latency);
}

/* ---- the thread -------------------------------------------------------- */

static bool note_begin(void *arg)
{
    runner *r = arg;
    r->began = gp_seconds();
    return true;
}

static void *run_thread(void *arg)
{
    runner *r = arg;
    gp_run_options o = r->options;
    o.begin = note_begin, o.begin_arg = r;
    r->outcome = gp_pipeline_run(r->l.pipeline, &o, &r->errs);
    r->ended = gp_seconds();
    atomic_store(&r->over, true);
    return NULL;
}

static bool start(gp_bench *b, runner *r)
{
    bool quiet = b->args->quiet;
    gp_signals_for(r->l.pipeline);
    r->meter = gp_meter_start(b->args->ranks, r->l.pipeline, quiet ? GP_PROGRESS_NONE
                              : (gp_progress)b->args->progress, NULL, NULL);
    int e = gp_thread_start(&r->thread, run_thread, r);
    if (e)
        gp_meter_stop(r->meter);
    return !e || gp_fail(&r->errs, GP_E_RESOURCE, (gp_loc){ 0 }, "cannot start a thread: %s",
                         gp_strerror(e));
}

static void nap(double s)
{
    struct timespec t = { (time_t)s, (long)(1e9 * (s - floor(s))) };
    nanosleep(&t, NULL);
}

/* Until then, or until there is nothing more to wait for. */
static bool wait_until(const runner *r, double then)
{
    for (double left; (left = then - gp_seconds()) > 0;) {
        if (atomic_load(&r->over) || gp_signal_taken())
            return false;
        nap(left < 0.02 ? left : 0.02);
    }
    return true;
}

/* Until a frame is done with, at most for so long. */
static bool wait_edge(runner *r, double seconds)
{
    double then = gp_seconds() + seconds;
    counts c = read_counts(r);
    for (uint64_t was = c.frames; c.frames == was; c = read_counts(r))
        if (c.s > then || !wait_until(r, c.s + LOOK))
            return false;
    return true;
}

/* Until the first frame is done with, which may take its time: before it the run is set up. False, too, where
 * --max-time is over and not enough of them went in that one can be. */
static bool wait_first(const gp_bench *b, runner *r, double *began)
{
    counts c = read_counts(r);
    for (*began = c.s; !c.frames; c = read_counts(r)) {
        if (!c.in)
            *began = c.s;
        if ((c.in && c.in < c.block && c.s > *began + b->max_time_s) || !wait_until(r, c.s + LOOK))
            return false;
    }
    return true;
}

/* Frames that went in came out, and nothing else. */
static bool check_account(runner *r)
{
    gp_counters_read(&r->now, r->l.pipeline);
    const gp_account *a = r->now.source;
    int n = r->now.nsources;
    for (int i = 0; i < n; i++) {
        uint64_t seen = a[i].out + a[i].dropped + a[i].failed;
        if (a[i].failed || seen > a[i].in || (n == 1 && seen != a[i].in))
            return gp_fail(&r->errs, GP_E_RUN, (gp_loc){ .file = r->l.file }, "source '%s': %llu "
                           "frame%s in, %llu out, %llu dropped, %llu failed: not what can be "
                           "measured", a[i].source, (unsigned long long)a[i].in, gp_plural((int64_t)a[i].in),
                           (unsigned long long)a[i].out, (unsigned long long)a[i].dropped,
                           (unsigned long long)a[i].failed);
    }
    return true;
}

/* `of`: the frames that there were in so many seconds. */
static int too_few(runner *r, counts of, double seconds, const char *more)
{
    bool blocks = !r->whole && of.block > 1;
    uint64_t n = blocks ? of.in : of.frames;
    char block[64] = "";
    if (blocks)
        snprintf(block, sizeof block, ", and %llu at a time are done with", (unsigned long long)of.block);
    gp_fail(&r->errs, GP_E_RUN, (gp_loc){ .file = r->l.file }, "%llu frame%s%s in %.3g s%s: too few to be measured; %s",
            (unsigned long long)n, gp_plural((int64_t)n), blocks ? " went in" : "", seconds, block, more);
    return gp_errs_exit(&r->errs);
}

/* Waits for the end of the run, and looks how it ended. The exit code. */
static int finish(gp_bench *b, runner *r)
{
    pthread_join(r->thread, NULL);
    gp_meter_stop(r->meter);
    b->stuck = r->outcome == GP_STUCK;
    if (!b->stuck)
        gp_signals_for(NULL);
    int status = gp_errs_exit(&r->errs), signal = gp_signal_taken();
    if (!status && signal)
        return 128 + signal;
    if (!status && r->outcome != GP_DONE && r->outcome != GP_DRAINED)
        status = 1;
    if (!status && !check_account(r))
        status = 1;
    return status;
}

/* ---- watching ---------------------------------------------------------- */

/* Windows of one run that does not end. */
static int watch_one(gp_bench *b, runner *r, series *w)
{
    sample s;
    double began;
    if (!start(b, r))
        return gp_errs_exit(&r->errs);
    if (wait_first(b, r, &began) && wait_until(r, gp_seconds() + b->window_s)
        && wait_edge(r, b->max_time_s)) {
        read_all(r, &s);
        begin(w, &s);
        double stop = s.at.s + b->max_time_s;
        while (s.at.s < stop && !agree(w) && wait_until(r, s.at.s + b->window_s)
               && wait_edge(r, b->max_time_s)) {
            read_all(r, &s);
            add_window(w, &s);
        }
    }
    counts seen = read_counts(r);
    gp_cancel(r->l.pipeline, 1);
    int status = finish(b, r);
    if (status)
        return status;
    if (!w->n || (b->report && (seen = read_counts(r)).in < GP_REPORT_FRAMES))
        return too_few(r, seen, seen.s - began, b->longer);
    /* Bytes and frames are counted one after the other: only now do they fit. */
    read_all(r, &s);
    w->last[0].bytes_per_frame = s.bytes_per_frame;
    return 0;
}

static int too_long(runner *r, counts of, double seconds)
{
    gp_fail(&r->errs, GP_E_RUN, (gp_loc){ .file = r->l.file }, "a run did not end in %.3g s, in which %llu frame%s came: "
            "give it fewer of them, or more time with --budget", seconds, (unsigned long long)of.frames,
            gp_plural((int64_t)of.frames));
    return gp_errs_exit(&r->errs);
}

/* One run from its first frame in to its last out: *took seconds. */
static int watch_whole(gp_bench *b, runner *r, sample *s, double *took)
{
    double first = 0, last = 0, began = gp_seconds();
    bool broken_off = false;
    counts c = { 0 };
    if (!start(b, r))
        return gp_errs_exit(&r->errs);
    for (bool over = false; !over;) {
        uint64_t out = c.frames;
        over = atomic_load(&r->over);
        c = read_counts(r);
        if (c.in && !first)
            first = c.s;
        if (c.frames != out)
            last = c.s;
        if (!broken_off && b->longest_s > 0 && c.s > began + b->longest_s)
            broken_off = true, gp_cancel(r->l.pipeline, 1);
        nap(fmin(first ? (c.s - first) / 200 : 0, LOOK));      /* to 0.5 % */
    }
    int status = finish(b, r);
    if (status || broken_off)
        return status ? status : too_long(r, c, b->longest_s);
    read_all(r, s);
    *took = last > first ? last - first : r->ended - r->began;     /* all of it went by between two looks */
    return *took >= SHORT ? 0 : too_few(r, c, *took, "give a run more of them");
}

/* ---- a measurement ----------------------------------------------------- */

/* What the plan says, and the report of the run that is over. */
static void describe(gp_bench *b, const gp_fit *fit, runner *r, gp_figures *f)
{
    gp_pipeline_info is;
    gp_report_files files = { .set = fit->args.set, .nset = fit->args.nset, .commit = gp_commit };
    gp_own_report own;
    gp_errs too_short = { .n = 0 };
    gp_pipeline_about(r->l.pipeline, &is);
    f->device = is.nsegments ? is.device : -1;
    f->in = !r->whole && !read_counts(r).block;
    gp_own_report_make(&own, &files, r->l.pipeline, r->outcome, b->report ? &r->errs : &too_short);
    if (own.report) {
        const gp_verdict *v = &own.report->verdict;
        f->verdict = gp_strdup(&b->arena, v->text);
        if (v->bound != GP_BOUND_UNKNOWN)
            f->bound_by = gp_strdup(&b->arena, v->bound == GP_BOUND_STAGE ? own.report->actor[v->actor].name
                                    : gp_bound_name(v->bound));
    }
    if (own.report && b->report)
        gp_report_json(own.report, r->l.pipeline, &own.about, b->report);
    gp_own_report_free(&own);
}

/* A run, or several. The pipeline of the last one is left in `r`. */
static int measure(gp_bench *b, const gp_row *row, const gp_fit *fit, runner *r, gp_figures *f)
{
    series w = { .arena = &b->arena };
    sample one, sum = { .bytes_per_frame = 0 };
    double took = 0, began = gp_seconds(), stop = began + b->max_time_s, each_s = 0;
    int counted = 0;
    r->whole = fit->whole;
    begin(&w, &sum);
    for (int runs = 0;; runs++) {
        r->errs = (gp_errs){ 0 };
        atomic_store(&r->over, false);
        if (!gp_load(&r->l, row->file, &fit->args, b->registry, &r->errs))
            return gp_errs_exit(&r->errs);
        int status = fit->whole ? watch_whole(b, r, &one, &took) : watch_one(b, r, &w);
        if (status)
            return status;
        if (!fit->whole)
            break;
        bool late = gp_seconds() > stop;
        if (runs || late) {            /* the first is the warm-up, when there is time */
            add_run(&sum, &one, took);
            counted++;
            if (sum.at.s - w.last[0].at.s >= ENOUGH || (late && !w.n))
                add_window(&w, &sum);
        }
        if (late || agree(&w)) {
            each_s = (gp_seconds() - began) / (runs + 1) * counted / w.n;
            break;
        }
        gp_unload(&r->l);
    }
    f->whole = fit->whole;
    sum_up(&w, each_s, f);
    describe(b, fit, r, f);
    return gp_errs_exit(&r->errs);
}

/* The row as it stands says how it has to be changed. */
static int fit(gp_bench *b, const gp_row *row, gp_loaded *l, gp_fit *out, gp_errs *errs)
{
    *out = (gp_fit){ 0 };
    if (!gp_load(l, row->file, &row->args, b->registry, errs)
        || !gp_bench_fit(b, row, l, out, errs))
        return gp_errs_exit(errs);
    return 0;
}

int gp_bench_check(gp_bench *b, const gp_row *row)
{
    gp_loaded l;
    gp_fit f;
    gp_errs errs = { 0 };
    int status = fit(b, row, &l, &f, &errs);
    if (status || row == b->row || strcmp(row->file, row[-1].file))    /* warnings: once a file */
        gp_print_errs(&row->args, &l, &errs);
    gp_bench_unfit(&f);
    gp_unload(&l);
    return status;
}

int gp_bench_measure(gp_bench *b, const gp_row *row, const gp_run_options *options, char *why,
                     gp_figures *out)
{
    runner r = { .arena = &b->arena, .options = *options };
    gp_fit f;
    int status = fit(b, row, &r.l, &f, &r.errs);
    if (!status) {
        gp_unload(&r.l);
        status = measure(b, row, &f, &r, out);
    }
    if (why && status && r.errs.n)
        snprintf(why, GP_BENCH_WHY, "%.*s", GP_BENCH_WHY - 1, r.errs.e[0].msg);
    else if (status)
        gp_print_errs(&f.args, &r.l, &r.errs);
    gp_bench_unfit(&f);
    gp_counters_free(&r.now);
    if (!b->stuck)
        gp_unload(&r.l);
    return status;
}
