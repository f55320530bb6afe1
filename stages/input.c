/* input.c - a source whose frames a program pushes (gpipe.h: gp_push_begin). The engine does all of it. */
#include "gpipe/stage.h"

static bool shape(gp_shape *s)
{
    if (!s->out[0].dtype || !s->out[0].ndim)
        return gp_shape_fail(s, NULL, "what the program pushes is not declared: declare dtype and shape of the output under "
                             "'buffers:'");
    return true;
}

static bool run(gp_call *c, gp_frame *f, int n)
{
    (void)f, (void)n;
    return gp_fail(c->errs, GP_E_BUG, c->at, "the engine ran a stage that is on loan to the program");
}

static const gp_port out[] = { { "out", .help = "frames, as declared under 'buffers:'" }, { 0 } };

const gp_kind gp_kind_input = {
    GP_KIND("input"), .field = "files",
    .also = "appsrc push program",
    .help = "frames that a program pushes, by gp_push_begin() of the library",
    .out = out,
    .any_shape = true, .on_loan = true, .shape = shape, .run = run,
};
