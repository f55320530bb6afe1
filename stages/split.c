/* split.c - the rows of a frame become frames. */
#include "gpipe/stage.h"

static bool shape(gp_shape *s)
{
    const gp_type *in = &s->in[0];
    gp_type *out = &s->out[0];
    char text[128];
    if (in->dim[0] > 65536)
        return gp_shape_fail(s, NULL, "%s would become more than 65536 frames", gp_type_text(in, text));
    s->regroup = (gp_regroup){ .step = 1, .repeat = 1, .take = 1, .make = in->dim[0], .split = true };
    *out = (gp_type){ .dtype = in->dtype };
    for (int d = 1; d < in->ndim; d++)
        out->dim[out->ndim++] = in->dim[d];
    if (!out->ndim)
        out->dim[out->ndim++] = 1;
    return true;
}

static const gp_port in[] = { { "in", GP_ACCEPT_ANY, .help = "frames" }, { 0 } };
static const gp_port out[] = {
    { "out", GP_ACCEPT_ANY, .help = "one row of the frame, without its first axis, or [1]" }, { 0 }
};

const gp_kind gp_kind_split = {
    GP_KIND("split"), .field = "regrouping",
    .help = "make a frame of each row of a frame",
    .in = in, .out = out,
    .shape = shape,
};
