/* fft.c - the discrete Fourier transform, as numpy.fft.fftn, or rfftn of real numbers; see stages/fft/. */
#include "fourier.h"

static bool shape(gp_shape *s)
{
    return gp_fft_shape(s, false);
}

static const gp_port in[] = { { "in", GP_ACCEPT(GP_F32) | GP_ACCEPT(GP_C64), .help = "f32 or c64; of other numbers a 'cast'" },
                              { 0 } };
static const gp_port out[] = {
    { "out", GP_ACCEPT(GP_C64), .help = "c64 of the same shape; of f32 the half of the spectrum that says all: N / 2 + 1 "
                                        "elements along the last of `axes`" }, { 0 }
};

static const gp_opt options[] = {
    { GP_INTS(gp_fft_opts, axes), .def = "-1", .min = -GP_MAXDIM, .max = GP_MAXDIM - 1,
      .help = "the axis to transform along, negative from the last, or up to three: [0, 1] are those of a picture" },
    { GP_ENUM(gp_fft_opts, norm), .def = "backward", .choices = "backward|ortho|forward",
      .help = "backward: not scaled; forward: divided by how many elements are transformed; ortho: by the root of that" },
    { 0 }
};

const gp_kind gp_kind_fft = {
    GP_KIND("fft"), .field = "signals",
    .help = "the Fourier transform, along one axis or several",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(gp_fft_opts),
    .calls_library = true, .shape = shape, .open = gp_fft_open, .close = gp_fft_close, .record = gp_fft_record,
};
