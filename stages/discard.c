/* discard.c - a sink that ignores its input: to time what comes before it. The
 * engine counts its frames. */
#include "gpipe/stage.h"

static bool shape(gp_shape *s)
{
    s->any_length = true;
    return true;
}

static bool run(gp_call *c, gp_frame *f, int n)
{
    return true;
}

static const gp_port in[] = { { "in", GP_ACCEPT_ANY, .help = "anything" }, { 0 } };

const gp_kind gp_kind_discard = {
    GP_KIND("discard"), .field = "testing",
    .also = "null devnull",
    .help = "take frames and drop them",
    .in = in,
    .max_run = 64,
    .any_shape = true, .shape = shape, .run = run,
};
