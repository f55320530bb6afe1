/* ifft.c - the inverse Fourier transform, as numpy.fft.ifftn, or irfftn to real numbers; see stages/fft/. */
#include "fourier.h"

static bool check(gp_shape *s)
{
    const gp_fft_opts *o = s->opts;
    if (o->length && !o->real)
        return gp_shape_fail(s, "length", "'length' is that of real numbers: set 'real: true', too");
    return true;
}

static bool shape(gp_shape *s)
{
    return gp_fft_shape(s, true);
}

static const gp_port in[] = { { "in", GP_ACCEPT(GP_C64), .help = "a spectrum, as `fft` makes it" }, { 0 } };
static const gp_port out[] = {
    { "out", GP_ACCEPT(GP_C64) | GP_ACCEPT(GP_F32), .help = "c64 of the same shape; with `real` f32, of which the input is "
                                                            "half of the spectrum" }, { 0 }
};

static const gp_opt options[] = {
    { GP_INTS(gp_fft_opts, axes), .def = "-1", .min = -GP_MAXDIM, .max = GP_MAXDIM - 1,
      .help = "the axis to transform along, negative from the last, or up to three, as in `fft`" },
    { GP_ENUM(gp_fft_opts, norm), .def = "backward", .choices = "backward|ortho|forward",
      .help = "as in `fft`, which it undoes: backward: divided by how many elements are transformed; forward: not" },
    { GP_BOOL(gp_fft_opts, real), .def = "false", .help = "makes real numbers, of half a spectrum" },
    { GP_INT(gp_fft_opts, length), .min = 1, .max = 1 << 27,
      .help = "with `real`: how many along the last of `axes`, an even number if it is left out" },
    { 0 }
};

const gp_kind gp_kind_ifft = {
    GP_KIND("ifft"), .field = "signals",
    .help = "the inverse Fourier transform, along one axis or several",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(gp_fft_opts),
    .calls_library = true, .check = check, .shape = shape, .open = gp_fft_open, .close = gp_fft_close,
    .record = gp_fft_record,
};
