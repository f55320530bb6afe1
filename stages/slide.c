/* slide.c - overlapping windows of a signal: the rows of all frames are one signal, which starts after zeros.
 *
 * A window ends with each `hop` samples of the frames, so that every whole frame makes as many; the samples that its
 * first windows need of earlier frames are carried. */
#include <math.h>
#include <stdio.h>
#include "device.h"
#include "history.h"

enum { NONE, HANN, HAMMING, BLACKMAN, NUTTALL, BLACKMANHARRIS, FLATTOP };

struct opts {
    int64_t length, hop;
    int taper;
};

static int64_t past_of(const struct opts *o)
{
    return o->length > o->hop ? o->length - o->hop : 0;
}

static bool shape(gp_shape *s)
{
    const struct opts *o = s->opts;
    const gp_type *in = &s->in[0];
    int64_t past = past_of(o);
    char text[128];

    if (in->ndim == GP_MAXDIM)
        return gp_shape_fail(s, NULL, "%s already has %d axes, the most that a frame may have", gp_type_text(in, text),
                             GP_MAXDIM);
    if (o->taper && in->dtype != GP_F16 && in->dtype != GP_F32 && in->dtype != GP_F64 && in->dtype != GP_C64)
        return gp_shape_fail(s, "taper", "a taper makes fractions of samples, which are %s; put a 'cast' to f32 before "
                             "this stage", gp_dtype_name(in->dtype));
    int64_t whole = in->dim[0] / o->hop * o->hop;
    char fewer[32] = "";
    if (whole)
        snprintf(fewer, sizeof fewer, "%lld or ", (long long)whole);
    if (!s->partial && whole < in->dim[0])
        return gp_shape_fail(s, "hop", "frames have %lld samples, which is not a multiple of 'hop', %lld: windows would "
                             "not run on from frame to frame; make frames of %s%lld", (long long)in->dim[0], (long long)o->hop,
                             fewer, (long long)(whole + o->hop));
    gp_type *out = &s->out[0];
    int64_t there = in->dim[0] + past;
    *out = (gp_type){ .dtype = in->dtype, .ndim = in->ndim + 1,
                      .dim = { there < o->length ? 0 : (there - o->length) / o->hop + 1, o->length } };
    for (int k = 1; k < in->ndim; k++)
        out->dim[k + 1] = in->dim[k];
    s->state = s->scratch = (size_t)past * (gp_bytes(in) / (size_t)in->dim[0]);
    s->table = o->taper ? (size_t)o->length * (in->dtype == GP_F64 ? sizeof(double) : sizeof(float)) : 0;
    return true;
}

/* Sums of cosines, as scipy.signal.get_window(..., fftbins=True) has them. */
static double weight(int taper, int64_t i, int64_t n)
{
    static const double a[][5] = {
        [HANN] = { 0.5, 0.5 }, [HAMMING] = { 0.54, 0.46 }, [BLACKMAN] = { 0.42, 0.5, 0.08 },
        [NUTTALL] = { 0.3635819, 0.4891775, 0.1365995, 0.0106411 },
        [BLACKMANHARRIS] = { 0.35875, 0.48829, 0.14128, 0.01168 },
        [FLATTOP] = { 0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368 },
    };
    const double pi = 3.14159265358979323846;
    double w = 0;
    for (int k = 0; k < 5; k++)
        w += (k % 2 ? -a[taper][k] : a[taper][k]) * cos(2 * pi * k * (double)i / (double)n);
    return n == 1 ? 1 : w;
}

static bool table(const gp_table_call *t)
{
    const struct opts *o = t->opts;
    for (int64_t i = 0; i < o->length; i++) {
        double w = weight(o->taper, i, o->length);
        if (t->in[0].dtype == GP_F64)
            ((double *)t->data)[i] = w;
        else
            ((float *)t->data)[i] = (float)w;
    }
    return true;
}

static bool record(gp_dcall *c)
{
    const struct opts *o = c->opts;
    const gp_view *x = c->in, *y = c->out;
    gp_dtype t = x->type.dtype;
    size_t bytes = gp_bytes(&x->type), row = bytes / (size_t)x->type.dim[0], channels = row / gp_dtype_size(t);
    size_t windows = (size_t)y->type.dim[0], size = (size_t)o->length * channels, hop = (size_t)o->hop * channels;
    size_t past = (size_t)past_of(o), npast = past * channels;
    char kernel[32];

    if (o->taper)
        snprintf(kernel, sizeof kernel, "taper_%s", gp_dtype_name(t));
    else
        snprintf(kernel, sizeof kernel, "slide_%zu", gp_dtype_size(t));
    void *const args[] = { (void *)&y->data, (void *)&x->data, &c->carried, &npast, &windows, &size, &hop,
                           &c->table, &channels };
    int n = (int)(sizeof args / sizeof *args);
    return gp_launch_image(c, kernel, (int64_t)(windows + 7) / 8, (int64_t)size, args, o->taper ? n : n - 2)
        && gp_history(c, past * row, x->data, bytes);
}

static const gp_port in[] = { { "in", GP_ACCEPT_ANY, .help = "a signal: rows in time, all else are channels" }, { 0 } };
static const gp_port out[] = {
    { "out", GP_ACCEPT_ANY, .help = "[windows, length, ...]: each `hop` samples of a frame end a window, or begin one "
      "that is shorter than `hop`; the first windows of the signal begin with zeros" }, { 0 }
};

static const gp_opt options[] = {
    { GP_INT(struct opts, length), .required = true, .min = 1, .max = 1 << 24, .unit = "samples",
      .help = "of a window" },
    { GP_INT(struct opts, hop), .required = true, .min = 1, .max = 1 << 24, .unit = "samples",
      .help = "from the start of a window to that of the next; frames have a multiple of it" },
    { GP_ENUM(struct opts, taper), .def = "none",
      .choices = "none|hann|hamming|blackman|nuttall|blackmanharris|flattop",
      .help = "the weights of a window's samples, periodic, as scipy.signal.get_window gives them" },
    { 0 }
};

const gp_kind gp_kind_slide = {
    GP_KIND("slide"), .field = "signals", .also = "stft spectrogram",
    .help = "overlapping windows of a signal, which run on from frame to frame",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .shape = shape, .record = record, .table = table,
};
