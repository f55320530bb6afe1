/* check.c - gpipe check. */
#include <limits.h>
#include <string.h>
#include "base/plain.h"
#include "cli/verb.h"

static int check(const gp_args *args, const gp_registry *registry, gp_errs *errs)
{
    int status = 0;
    for (int i = 0; i < args->noperands; i++) {
        gp_loaded l;
        bool ok = gp_load(&l, args->operand[i], args, registry, errs);
        if (gp_agree(args, &l, ok, errs)) {
            gp_pipeline_lint(l.pipeline, l.machine, errs);
            if (!args->quiet && !gp_rank(args->ranks))
                gp_put_plain(stdout, l.file, strlen(l.file), ""), puts(": ok");
        }
        fflush(stdout);
        int told = gp_tell_errs(args, &l, errs);
        status = status ? status : told;
        gp_unload(&l);
    }
    return status;
}

const gp_verb gp_verb_check = {
    .name = "check", .operand = "FILE...", .min = 1, .max = INT_MAX, .place = 20,
    .help = "validate pipelines; runs no script and no kernel",
    .more = "Checks as for a machine with a GPU, even on one without. A missing input file is only a\n"
            "warning if 'buffers' declares what it holds. What will be slow, or is hardly meant, is a\n"
            "warning that ends in (lint: NAME), for the GPU of this machine or, without one, an H200;\n"
            "'# nolint: NAME' in its line silences it.\n",
    .target = GP_TARGET_ANY, .ranks = true, .run = check,
    .options = (const gp_option[]){
        GP_OPTION_SET, GP_OPTION_DEVICE, GP_OPTION_PLUGIN, GP_OPTION_JOIN_TIMEOUT, GP_OPTION_MACHINE, GP_OPTION_QUIET,
        { 0 } },
};
