/* run.c - gpipe run: progress, the report. */
#include <signal.h>
#include <string.h>
#include "cli/live.h"
#include "cli/report.h"
#include "cli/retune.h"
#include "cli/verb.h"
#include "report/record.h"

/* "gpipe: device: cpu (auto: no NVIDIA driver)", where it was chosen for the
 * user or the user wants to know. */
static void print_device(const gp_args *args, const gp_pipeline *p)
{
    gp_pipeline_info is;
    gp_pipeline_about(p, &is);
    bool automatic = !strncmp(is.device_why, "auto", 4);
    if (args->quiet || gp_rank(args->ranks) || !is.nsegments || !(automatic || args->verbose))
        return;
    if (automatic)
        fprintf(stderr, "gpipe: device: %s (%s)\n", is.devices, is.device_why);
    else
        fprintf(stderr, "gpipe: device: %s\n", is.device_why);
}

/* A sink that the run is for: it keeps its frames, or has something to say at its end. */
static bool has_result(const gp_stage_info *s)
{
    return !s->nout && (s->writes || !s->any_length || s->kind->finish);
}

/* Nobody reads the standard output any more, and that was all the run was for. */
static bool is_in_vain(const gp_pipeline *p, const gp_errs *errs)
{
    gp_stage_info s;
    int i = 0;
    while (i < errs->n && errs->e[i].code == GP_E_WARN)
        i++;
    if (i == errs->n || errs->e[i].code != GP_E_CLOSED)
        return false;
    for (i = 0; gp_pipeline_stage(p, i, &s); i++)
        if (has_result(&s) && !(s.writes && !strcmp(s.writes, "stdout")))
            return false;
    return true;
}

/* Leaves the warnings. */
static void drop_errors(gp_errs *errs)
{
    int n = 0;
    for (int i = 0; i < errs->n; i++)
        if (errs->e[i].code == GP_E_WARN)
            errs->e[n++] = errs->e[i];
    errs->n = n, errs->failed = 0;
}

static int exit_code(const gp_args *args, gp_outcome outcome, const gp_errs *errs)
{
    int status = gp_errs_exit(errs), signal = gp_signal_taken();
    if (status)
        return status;
    if (outcome == GP_DONE || (args->service && outcome == GP_DRAINED && signal == SIGTERM))
        return 0;                      /* as a manager asks a service to end */
    return signal ? 128 + signal : 1;
}

/* Goes on for as long as it is retuned. *p: what it ran under last. */
static gp_outcome run_on(gp_ranks *us, gp_pipeline **p, gp_retuner *r, const gp_run_options *o, gp_meter *meter,
                         gp_metrics *metrics, gp_errs *errs)
{
    gp_outcome outcome = gp_pipeline_run(*p, o, errs);
    while (outcome == GP_PAUSED) {
        gp_pipeline *next = gp_retuner_next(r);
        gp_signals_for(next), gp_meter_next(meter, next), gp_metrics_next(metrics, next), gp_ranks_next(us, next);
        gp_errs here = { .n = 0 };
        outcome = gp_pipeline_go_on(next, *p, o, &here);
        if (outcome != GP_ERROR || !gp_pipeline_is_paused(*p)) {
            gp_errs_add(errs, &here);
            *p = next;
            continue;
        }
        gp_signals_for(*p), gp_meter_next(meter, *p), gp_metrics_next(metrics, *p), gp_ranks_next(us, *p);
        gp_retuner_failed(r, &here);
        outcome = gp_pipeline_go_on(*p, *p, o, errs);
    }
    return outcome;
}

/* A run that is measured as a whole stays as it is. */
static const char *why_not(const gp_args *args)
{
    return args->record ? "a run with --record is recorded as a whole: it cannot be retuned"
         : args->report || args->trace ? "a run with --report or --trace is measured as a whole: it cannot be retuned"
         : !strcmp(args->operand[0], "-") ? "the pipeline came from standard input, and cannot be read again: it cannot "
                                            "be retuned"
                                          : NULL;
}

/* It cannot begin; `errs` says why, which is still to be printed. */
static int give_up(gp_ranks *us, gp_loaded *l, gp_report_files *files, gp_errs *errs)
{
    bool first;
    double took = 0;
    int status = gp_ranks_end(us, gp_errs_exit(errs), &took, &first);
    if (!first)
        drop_errors(errs);
    gp_ranks_tell_replaced(us);
    gp_ranks_report(us, files, l->pipeline, GP_ERROR, status, errs);
    gp_report_drop(files);
    gp_signals_for(NULL);
    gp_unload(l);
    return status;
}

/* The exit code, where that has been `status`. */
static int write_reports(gp_ranks *us, gp_report_files *files, const gp_pipeline *p, gp_outcome outcome, int status,
                         gp_errs *errs)
{
    int before = errs->failed;
    if (gp_ranks_n(us) == 1)
        gp_report_close(files, p, outcome, errs);
    else
        gp_ranks_report(us, files, p, outcome, status, errs);
    gp_report_drop(files);
    return errs->failed > before && (!status || status == GP_EXIT_PIPE) ? gp_errs_exit(errs) : status;
}

static void drop_record(gp_record *r)
{
    gp_signals_remove(GP_REMOVED_RECORD, NULL);
    gp_record_drop(r);
}

/* The exit code, where that has been `status`. */
static int write_record(gp_record *r, gp_outcome outcome, int status, gp_errs *errs)
{
    int before = errs->failed;
    gp_record_close(r, outcome, errs);
    drop_record(r);
    return errs->failed > before && !status ? gp_errs_exit(errs) : status;
}

/* Was a frame taken in, as far as can be seen? */
static bool has_taken(const gp_pipeline *p)
{
    gp_account a[16];
    int n = gp_accounts(p, a, 16);
    bool any = n > 16;
    for (int i = 0; i < n && !any; i++)
        any = a[i].in > 0;
    return any;
}

static const int64_t STOP_NS = INT64_C(20) * 1000000000;      /* of a service: less than its manager waits */

typedef struct held_up { const gp_args *args; const gp_loaded *l; } held_up;

/* gp_run_options.held_up. Any rank says so of its own stages. */
static void say_held_up(void *arg, bool ends, const gp_errs *who)
{
    const held_up *h = arg;
    gp_errs e = *who;
    gp_ranks *us = h->args->ranks;
    if (h->args->quiet)
        return;
    if (ends)
        gp_fail(&e, GP_E_NOTE, (gp_loc){ 0 }, "the end waits for that; %s stops at once",
                gp_signals_level() ? "Ctrl-C or SIGTERM again" : "a second Ctrl-C or SIGTERM");
    if (gp_ranks_n(us) > 1)
        gp_print_errs_of_rank(h->args, gp_rank(us), h->l, &e);
    else
        gp_print_errs(h->args, h->l, &e);
}

static int run(const gp_args *args, const gp_registry *registry, gp_errs *errs)
{
    gp_ranks *const us = args->ranks;
    const bool together = gp_ranks_n(us) > 1;
    gp_loaded l;
    if ((args->watch || args->service) && why_not(args))
        gp_usage(errs, "--%s: %s", args->watch ? "watch" : "service", why_not(args));
    else if (args->view && !args->metrics)
        gp_usage(errs, "--view is a page of the server of --metrics; write --metrics PORT --view");
    else if (args->service && together)
        gp_usage(errs, "--service: a run of several ranks is no service");
    else if (args->service)
        gp_service_begin(errs);
    if (errs->failed)
        return gp_errs_exit(errs);
    bool ok = gp_load(&l, args->operand[0], args, registry, errs), first;
    const gp_record_of of = { args->record, gp_commit, gp_lua, gp_ranks_n(us), gp_signals_level };
    ok = ok && (gp_rank(us) || gp_record_check(l.pipeline, &of, errs));
    ok = gp_agree(args, &l, ok, errs);
    int status = gp_tell_errs(args, &l, errs);
    if (!ok) {
        gp_unload(&l);
        return status;
    }
    gp_run_options options = { .poison = args->poison, .isolate = args->isolate,
                               .check_kernels = args->check_kernels, .check_finite = args->check_finite, .begin = gp_ranks_begin,
                               .gather = together ? gp_ranks_meet : NULL, .gather_arg = us,
                               .begin_arg = us, .joins = gp_ranks_joins,
                               .replaced = together ? gp_ranks_note_replaced : NULL, .held_up = say_held_up,
                               .held_up_arg = &(held_up){ args, &l },
                               .stop_ns = args->stop_ns ? args->stop_ns : args->service ? STOP_NS : 0 };
    gp_report_files files = { .account = false };
    gp_record *record = NULL;
    gp_signals_for(l.pipeline);        /* from here on there are files that a signal removes */
    gp_signals_catch(args->quiet || gp_rank(us));
    gp_metrics *metrics = NULL;
    bool opened = gp_ranks_watch(us, l.pipeline, args->report || args->trace, errs)
        && gp_report_open(&files, args, l.pipeline, &options, errs);
    if (opened && args->record && !gp_rank(us))
        opened = (record = gp_record_open(l.pipeline, &of, errs)) != NULL;
    gp_signals_remove(GP_REMOVED_RECORD, gp_record_temporary(record));
    if (opened && args->metrics)
        metrics = gp_metrics_start(args, l.pipeline, errs);
    if (!opened || (args->metrics && !metrics)) {
        drop_record(record);
        return give_up(us, &l, &files, errs);
    }
    print_device(args, l.pipeline);
    gp_socket *socket = gp_socket_open();
    options.timed |= metrics != NULL;
    gp_pipeline *p = l.pipeline;
    gp_retuner *retuner = socket || args->watch || args->service || together    /* then other ranks may be asked to change all */
        ? gp_retuner_start(args, registry, &l, &options, why_not(args), errs) : NULL;
    if (!retuner && !args->watch && !args->service && !together)
        *errs = (gp_errs){ 0 };        /* then nobody can change it */
    if (errs->failed) {
        gp_socket_close(socket);
        gp_metrics_stop(metrics);
        drop_record(record);
        return give_up(us, &l, &files, errs);
    }
    gp_meter *meter = gp_meter_start(us, p, args->quiet || gp_rank(us) ? GP_PROGRESS_NONE
                                     : (gp_progress)args->progress, socket, retuner);
    double start = gp_seconds();
    gp_outcome outcome = run_on(us, &p, retuner, &options, meter, metrics, errs);
    double took = gp_seconds() - start;
    gp_retuner_over(retuner);
    bool in_vain = is_in_vain(p, errs);
    if (in_vain)                       /* as it ends cat: no error */
        drop_errors(errs);
    status = in_vain ? GP_EXIT_PIPE : exit_code(args, outcome, errs);
    status = gp_ranks_end(us, status, &took, &first);
    gp_meter_stop(meter);              /* it shows how the others go on */
    files.retuned = gp_retuner_stop(retuner) > 0;      /* what was measured is of the last part */
    gp_socket_close(socket);
    gp_metrics_stop(metrics);
    if (!first)
        drop_errors(errs);
    gp_tell_errs(args, &l, errs);      /* before what follows from it */
    gp_ranks_tell_replaced(us);
    status = write_reports(us, &files, p, outcome, status, errs);
    status = write_record(record, outcome, status, errs);
    gp_tell_errs(args, &l, errs);
    gp_ranks_replaced(us, l.file, errs);
    gp_print_errs_of_rank(args, -1, NULL, errs);
    if (((outcome == GP_NOT_DRAINED && first && gp_ranks_is_first(us)) || outcome == GP_STUCK)
        && (gp_ranks_n(us) > 1 || has_taken(p)))
        fprintf(stderr, "gpipe: not drained: frames that had been taken in were cancelled\n");
    if (outcome == GP_STUCK)
        fprintf(stderr, "gpipe: a thread did not come back; it is abandoned\n");
    if (!args->quiet)
        gp_print_summary(us, p, took, outcome, status, files.verdict);
    *errs = (gp_errs){ 0 };
    if (outcome == GP_STUCK)
        gp_leave_stuck(us, status);
    gp_signals_for(NULL);
    gp_retuner_free(retuner);
    gp_unload(&l);
    return status;
}

const gp_verb gp_verb_run = {
    .name = "run", .operand = "FILE", .min = 1, .max = 1, .place = 10,
    .help = "run a pipeline",
    .more = "'-' as FILE is standard input. Ctrl-C, SIGTERM or a closed terminal (SIGHUP) stops the\n"
            "sources and lets frames in flight finish; a second Ctrl-C stops at once.\n",
    .target = GP_TARGET_HERE, .ranks = true, .run = run,
    .options = (const gp_option[]){
        GP_OPTION_SET, GP_OPTION_DEVICE, GP_OPTION_PLUGIN,
        { "watch", 0, NULL, GP_TO_FLAG(watch),
          "when FILE, or a script, kernel or constant that it names, is saved, go on with the new version" },
        { "service", 0, NULL, GP_TO_FLAG(service),
          "for a service manager: tell it when the run is ready (sd_notify), reload FILE at SIGHUP, end with 0 at SIGTERM, "
          "lines of a log on stderr" },
        GP_OPTION_JOIN_TIMEOUT,
        { "stop-timeout", 0, "TIME", GP_TO_TIME(stop_ns),
          "a run that is to end has ended after so long: 2s before it stops at once, as after a second Ctrl-C; default: 20s "
          "with --service, else it waits" },
        { "poison", 0, NULL, GP_TO_FLAG(poison),
          "fill every slot before each use, floats with NaN, integers with bytes 0xa5: shows what stages leave "
          "unwritten; a stage on the host that changes its input is an error" },
        { "isolate", 0, NULL, GP_TO_FLAG(isolate),
          "one frame at a time: finds the stage that faults" },
        { "check-kernels", 0, NULL, GP_TO_FLAG(check_kernels),
          "on the CPU, one frame at a time: finds kernels of yours that read or write outside their frames, up to 16 "
          "GiB away; a read in the padding at a frame's end (15 bytes at most) is found only if it changes the output" },
        { "check-finite", 0, NULL, GP_TO_FLAG(check_finite),
          "a frame in which a stage makes a NaN or infinite element fails there: names the stage, frame and element" },
        GP_OPTION_PROGRESS,
        { "metrics", 0, "[ADDR:]PORT", GP_TO_TEXT(metrics),
          "serve http://127.0.0.1:PORT/metrics to Prometheus while it runs; port 0: a free one" },
        { "view", 0, NULL, GP_TO_FLAG(view),
          "with --metrics: serve a page beside it, /view, that shows frames of any buffer (gpipe help looking)" },
        GP_OPTION_REPORT,
        { "record", 0, "FILE.yaml", GP_TO_TEXT(record),
          "the pipeline with a section that has what is needed to repeat this run: 'gpipe run FILE.yaml' does "
          "(gpipe help record)" },
        { "trace", 0, "FILE.json", GP_TO_TEXT(trace),
          "when each stage, copy and kernel ran, for ui.perfetto.dev" },
        { "trace-gpu", 0, "HOW", GP_TO_CHOICE(trace_gpu, "cheap|full"),
          "cheap (default: copies and kernels as wholes) or full (each, by CUPTI; slower)" },
        { "trace-last", 0, "TIME", GP_TO_TIME(trace_ns),
          "keep only the last TIME of the run; default 30s" },
        GP_OPTION_QUIET,
        { "verbose", 'v', NULL, GP_TO_FLAG(verbose),
          "name the device and, as on a terminal, say what each stage did and what held the run back" },
        { 0 } },
};
