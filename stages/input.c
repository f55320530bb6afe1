/* input.c - a source whose frames a program pushes (gpipe.h: gp_push_begin). The engine does all of it. */
#include "gpipe/stage.h"

enum { HOST, DEVICE };
typedef struct opts { int memory; } opts;

static bool shape(gp_shape *s)
{
    const opts *o = s->opts;
    bool here;
    s->fills_device = o->memory == DEVICE && gp_shape_gpu(s, &here);
    if (!s->out[0].dtype || !s->out[0].ndim)
        return gp_shape_fail(s, NULL, "what the program pushes is not declared: declare dtype and shape of the output under "
                             "'buffers:'");
    return true;
}

static bool run(gp_call *c, gp_frame *f, int n)
{
    return gp_fail(c->errs, GP_E_BUG, c->at, "the engine ran a stage that is on loan to the program");
}

static const gp_opt options[] = {
    { GP_ENUM(opts, memory), .def = "host", .choices = "host|device",
      .help = "where the program writes; device: in the memory of the GPU, if there is one: only stages of the device may "
              "read it" },
    { 0 }
};

static const gp_port out[] = { { "out", .help = "frames, as declared under 'buffers:'" }, { 0 } };

const gp_kind gp_kind_input = {
    GP_KIND("input"), .field = "files",
    .also = "appsrc push program",
    .help = "frames that a program pushes, by gp_push_begin() of the library",
    .opts = options, .opts_size = sizeof(opts), .out = out,
    .any_shape = true, .fills_device = true, .on_loan = true, .shape = shape, .run = run,
};
