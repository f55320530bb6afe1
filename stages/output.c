/* output.c - a sink whose frames a program pulls (gpipe.h: gp_pull_begin). The engine does all of it. */
#include "gpipe/stage.h"

static bool shape(gp_shape *s)
{
    (void)s;
    return true;
}

static bool run(gp_call *c, gp_frame *f, int n)
{
    (void)f, (void)n;
    return gp_fail(c->errs, GP_E_BUG, c->at, "the engine ran a stage that is on loan to the program");
}

static const gp_port in[] = { { "in", GP_ACCEPT_ANY, .help = "anything" }, { 0 } };

const gp_kind gp_kind_output = {
    GP_KIND("output"), .field = "files",
    .also = "appsink pull",
    .help = "frames that a program pulls, by gp_pull_begin() of the library",
    .in = in,
    .any_shape = true, .on_loan = true, .shape = shape, .run = run,
};
