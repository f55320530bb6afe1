/* channelize.c - a polyphase filter bank: a signal in bands of equal width, each at the rate of its width; see
 * kernels/channelize.cu and D. Price, "Spectrometers and Polyphase Filterbanks in Radio Astronomy" (2016). The rows of
 * all frames are one signal, which starts after zeros.
 *
 * With N channels and T taps the samples x, which N T coefficients h are for, become N sums, s[c] = sum over t of
 * h[t N + c] x[t N + c], and these a spectrum. Such samples end with each N of the frames; those of earlier frames that
 * the first spectra need are carried. */
#include <math.h>
#include <stdio.h>
#include "device.h"
#include "fourier.h"
#include "history.h"

struct opts {
    int64_t channels, taps;
    bool gpu;                              /* found by shape(): who transforms */
};

static bool has_port(const gp_type *in, int nin) { return nin > 1 && in[1].ndim; }

static int64_t taps_of(const struct opts *o, const gp_type *in, int nin)
{
    return has_port(in, nin) ? in[1].dim[0] / o->channels : o->taps;
}

/* The sums of a frame: the channels of the signal, [samples, ...], in front of those that are made of it. */
static gp_type sums_of(const struct opts *o, const gp_type *in)
{
    gp_type t = *in;
    t.dim[0] = in->dim[0] / o->channels, t.dim[t.ndim++] = o->channels;
    return t;
}

static gp_type spectra_of(const gp_type *sums)
{
    gp_type t = *sums;
    t.dtype = GP_C64;
    if (sums->dtype == GP_F32)
        t.dim[t.ndim - 1] = t.dim[t.ndim - 1] / 2 + 1;
    return t;
}

static gp_fft_job job_of(const struct opts *o, const gp_type *in)
{
    gp_type sums = sums_of(o, in), spectra = spectra_of(&sums);
    return gp_fft_job_of(&(gp_fft_opts){ .norm = GP_FFT_BACKWARD }, &sums, &spectra);
}

static size_t up(size_t n) { return (n + 255) / 256 * 256; }

static size_t past_of(const struct opts *o, const gp_type *in, int nin)
{
    return (size_t)((taps_of(o, in, nin) - 1) * o->channels) * (gp_bytes(in) / (size_t)in->dim[0]);
}

static bool shape(gp_shape *s)
{
    struct opts *o = (struct opts *)s->opts;
    const gp_type *in = s->in;
    bool port = has_port(in, s->nin);
    char text[128];

    if (in->ndim == GP_MAXDIM)
        return gp_shape_fail(s, NULL, "%s already has %d axes, the most that a frame may have", gp_type_text(in, text),
                             GP_MAXDIM);
    if (port && !gp_shape_without(s, "taps", "a 'prototype', whose length says how many there are"))
        return false;
    if (port && (in[1].ndim != 1 || in[1].dim[0] % o->channels))
        return gp_shape_fail(s, NULL, "'prototype' is %s, and needs one axis with a multiple of 'channels', %lld",
                             gp_type_text(&in[1], text), (long long)o->channels);
    if (!s->partial && in->dim[0] % o->channels)
        return gp_shape_fail(s, "channels", "frames have %lld samples, which is no multiple of 'channels', %lld: "
                             "spectra would not run on from frame to frame; %lld would be one", (long long)in->dim[0],
                             (long long)o->channels, (long long)((in->dim[0] / o->channels + 1) * o->channels));
    gp_type sums = sums_of(o, in);
    s->out[0] = spectra_of(&sums);
    if (s->partial)
        return true;
    gp_fft_job j = job_of(o, in);
    s->state = past_of(o, in, s->nin);
    s->scratch = up(s->state) + up(gp_bytes(&sums));
    s->table = port ? 0 : (size_t)(o->channels * o->taps) * sizeof(float);
    return gp_fft_decide(s, &j, &o->gpu);
}

/* A low-pass of half a channel's width, as scipy.signal.firwin(channels taps, 1 / channels, window="hamming"): a sine
 * cardinal in a Hamming window, with the sum 1. */
static double low_pass(const struct opts *o, int64_t i)
{
    const double pi = 3.14159265358979323846, n = (double)(o->channels * o->taps);
    double at = ((double)i - (n - 1) / 2) / (double)o->channels;
    return (at == 0 ? 1 : sin(pi * at) / (pi * at)) * (0.54 - 0.46 * cos(2 * pi * (double)i / (n - 1)));
}

static bool table(const gp_table_call *t)
{
    const struct opts *o = t->opts;
    float *h = t->data;
    double sum = 0;
    for (int64_t i = 0; i < o->channels * o->taps; i++)
        sum += low_pass(o, i);
    for (int64_t i = 0; i < o->channels * o->taps; i++)
        h[i] = (float)(low_pass(o, i) / sum);
    return true;
}

static bool open_stage(const gp_open *g, void **state)
{
    const struct opts *o = g->opts;
    gp_fft_job j = job_of(o, &g->in[0]);
    return gp_fft_open_job(g, &j, o->gpu, state);
}

static bool record(gp_dcall *c)
{
    const struct opts *o = c->opts;
    const gp_view *x = c->in, *port = c->in[1].type.ndim ? &c->in[1] : NULL;
    const gp_type types[] = { x->type, c->in[1].type };
    size_t past = past_of(o, types, port ? 2 : 1);
    gp_view sums = { .data = (char *)c->scratch + up(past), .type = sums_of(o, &x->type) };
    size_t spectra = (size_t)sums.type.dim[0], channels = (size_t)o->channels;
    size_t signals = (size_t)gp_count(&x->type) / (size_t)x->type.dim[0];
    size_t taps = (size_t)taps_of(o, types, port ? 2 : 1);
    const void *h = port ? port->data : c->table;
    char kernel[40];

    snprintf(kernel, sizeof kernel, "channelize_%s_%s", gp_dtype_name(x->type.dtype),
             gp_dtype_name(port ? port->type.dtype : GP_F32));
    if (spectra && !gp_launch_image(c, kernel, (int64_t)(spectra * signals), gp_rec_on_cpu(c) ? 1 : (int64_t)channels,
                                    GP_ARGS(&sums.data, (void *)&x->data, &c->carried, &h, &spectra, &signals,
                                            &channels, &taps)))
        return false;
    if (!gp_history(c, past, x->data, gp_bytes(&x->type)))
        return false;
    gp_dcall transform = *c;
    transform.in = &sums, transform.scratch = (char *)sums.data + up(gp_bytes(&sums.type));
    return !spectra || gp_fft_record(&transform);
}

#define SIGNALS (GP_ACCEPT(GP_F32) | GP_ACCEPT(GP_C64))
static const gp_port in[] = {
    { "in", SIGNALS, .help = "a signal: rows in time, all else are signals of their own" },
    { "prototype", GP_ACCEPT(GP_F32) | GP_ACCEPT(GP_F64), .optional = true,
      .help = "the coefficients, `channels` times `taps`, in place of those that are made; used as f32" },
    { 0 }
};
static const gp_port out[] = {
    { "out", GP_ACCEPT(GP_C64), .help = "[spectra, ..., channels]: each `channels` samples of a frame end a spectrum; "
      "channel k is about k / channels of the rate. Of f32 the half that says all, channels / 2 + 1" }, { 0 }
};

static const gp_opt options[] = {
    { GP_INT(struct opts, channels), .required = true, .min = 2, .max = 1 << 20,
      .help = "how many bands; frames have a multiple of so many samples" },
    { GP_INT(struct opts, taps), .def = "8", .min = 1, .max = 1024,
      .help = "coefficients for each channel, of a low-pass: scipy.signal.firwin(channels taps, 1 / channels), whose "
              "window is a Hamming window" },
    { 0 }
};

const gp_kind gp_kind_channelize = {
    GP_KIND("channelize"), .field = "signals",
    .help = "a signal in bands of equal width: a polyphase filter bank",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .calls_library = true, .shape = shape, .open = open_stage, .close = gp_fft_close, .record = record, .table = table,
};
