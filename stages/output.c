/* output.c - a sink whose frames a program pulls (gpipe.h: gp_pull_begin). The engine does all of it. */
#include "gpipe/stage.h"

enum { HOST, DEVICE };
typedef struct opts { int memory; } opts;

static bool shape(gp_shape *s)
{
    const opts *o = s->opts;
    bool here, gpu = gp_shape_gpu(s, &here);
    s->fills_device = s->reads_device = o->memory == DEVICE && gpu;
    return !s->fills_device || gp_shape_in_device(s, 0)
        || gp_shape_fail(s, "memory", "its frames are not made in the memory of one GPU: leave out 'memory: device'");
}

static bool run(gp_call *c, gp_frame *f, int n)
{
    return gp_fail(c->errs, GP_E_BUG, c->at, "the engine ran a stage that is on loan to the program");
}

static const gp_opt options[] = {
    { GP_ENUM(opts, memory), .def = "host", .choices = "host|device",
      .help = "where the program reads; device: in the memory of the GPU, if there is one, where a stage of the device "
              "makes the frames" },
    { 0 }
};

static const gp_port in[] = { { "in", GP_ACCEPT_ANY, .help = "anything" }, { 0 } };

const gp_kind gp_kind_output = {
    GP_KIND("output"), .field = "files",
    .also = "appsink pull",
    .help = "frames that a program pulls, by gp_pull_begin() of the library",
    .opts = options, .opts_size = sizeof(opts), .in = in,
    .any_shape = true, .fills_device = true, .reads_device = true, .on_loan = true, .shape = shape, .run = run,
};
