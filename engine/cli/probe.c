/* probe.c - gpipe probe: one frame of any buffer of a pipeline, which runs up to it and writes nothing else. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/live.h"
#include "cli/verb.h"

static bool number_of(const char *text, int64_t *n, gp_errs *errs)
{
    char *end;
    errno = 0;
    *n = strtoll(text, &end, 10);
    return (*text >= '0' && *text <= '9' && !*end && !errno)
        || gp_usage(errs, "--frame %s: must be the number of a frame, from 0 on", text);
}

/* Runs until the frame is there, or is not to come; `errs`: why not, `of_run`: what the run said. */
static gp_outcome run_to(gp_pipeline *p, gp_tap *t, int64_t frame, gp_tapped *out, gp_tap_status *is, gp_errs *of_run,
                         gp_errs *errs)
{
    const gp_run_options o = { .no_sinks = true };
    gp_tap_take(t, frame, 0, out, errs);           /* it waits from frame 0 on */
    gp_signals_for(p);
    gp_signals_catch(true);
    if (!gp_pipeline_start(p, &o, of_run))
        return GP_ERROR;
    *is = gp_tap_take(t, frame, -1, out, errs);
    gp_cancel(p, 2);
    gp_outcome outcome = gp_pipeline_wait(p);
    gp_signals_for(NULL);
    return outcome;
}

static int write_it(const gp_args *args, const gp_registry *registry, const gp_tapped *f, gp_errs *errs)
{
    gp_view_numbers n = gp_view_numbers_of(&f->type, f->data);
    if (!args->quiet) {
        gp_view_print(stderr, f, &n);
        fputc('\n', stderr);
    }
    return args->output || !isatty(STDOUT_FILENO) ? gp_view_write(args, registry, f, errs) : 0;
}

static int probe(const gp_args *args, const gp_registry *registry, gp_errs *errs)
{
    GP_ARENA(a);
    GP_IF_OOM(&a)
        return gp_no_memory(errs);
    gp_loaded l = { 0 };
    int64_t frame = 0;
    if (args->frame && !number_of(args->frame, &frame, errs))
        return gp_errs_exit(errs);
    gp_args with = *args;
    with.unfused = true;
    gp_outcome outcome = GP_ERROR;
    gp_tapped f;
    gp_tap *t = gp_load(&l, args->operand[0], &with, registry, errs) ? gp_tap_begin(l.pipeline, args->operand[1], errs) : NULL;
    int status = gp_tell_errs(args, &l, errs);
    if (t) {
        gp_errs *of_run = GP_NEW(&a, gp_errs, 1);
        gp_tap_status is = GP_TAP_OVER;
        outcome = run_to(l.pipeline, t, frame, &f, &is, of_run, errs);
        if (is == GP_TAP_OK) {
            status = write_it(args, registry, &f, errs);
        } else {
            gp_errs_add(errs, of_run);
            if (!errs->failed && gp_signals_level())
                status = 128 + gp_signal_taken();
            else if (!errs->failed)
                gp_fail(errs, GP_E_RUN, (gp_loc){ .file = args->operand[0] }, "there is no frame %jd of '%s': the pipeline ended before",
                        (intmax_t)frame, args->operand[1]);
        }
        int told = gp_tell_errs(args, &l, errs);
        status = status ? status : told;
    }
    if (outcome == GP_STUCK)
        gp_leave_stuck(args->ranks, status);
    gp_tap_end(t);
    gp_unload(&l);
    return status;
}

const gp_verb gp_verb_probe = {
    .name = "probe", .operand = "FILE BUFFER", .min = 2, .max = 2, .place = 76,
    .help = "one frame of any buffer of a pipeline, without its outputs",
    .more = "Runs the pipeline up to that frame, prints its least and greatest element, mean, standard\n"
            "deviation and NaNs, and writes it as 'gpipe view' does: as .npy to standard output, unless\n"
            "that is a terminal, or to the FILE of -o. Sinks do nothing, so that no file is written or\n"
            "replaced; scripts do what they do. Stages are not fused, so that each buffer is there, and\n"
            "wait for each other, whatever 'when_full' and 'deadline' say, so that each frame is.\n",
    .target = GP_TARGET_HERE, .run = probe,
    .options = (const gp_option[]){
        GP_OPTION_SET, GP_OPTION_DEVICE, GP_OPTION_PLUGIN,
        { "frame", 0, "N", GP_TO_TEXT(frame), "its number, from 0 on; default 0" },
        { "output", 'o', "FILE", GP_TO_TEXT(output), "write it to this file" },
        { "format", 0, "FORMAT", GP_TO_TEXT(format), "as 'format' of the stage write: npy, png, raw, ..." },
        GP_OPTION_QUIET,
        { 0 } },
};
