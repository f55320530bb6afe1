/* fir.c - finite impulse response filter along axis 0: the rows of all frames
 * are one signal, which starts after zeros.
 *
 * The last ntaps - 1 rows are carried to the next frame. A c64 is filtered as two
 * f32 channels. */
#include "device.h"
#include "history.h"

struct opts { gp_floats taps; };

static bool has_port(const gp_type *in, int nin) { return nin > 1 && in[1].ndim; }

static bool shape(gp_shape *s)
{
    const struct opts *o = s->opts;
    const gp_type *in = s->in;
    bool port = has_port(in, s->nin);
    char text[128];

    if (port && o->taps.n)
        return gp_shape_fail(s, "taps", "'taps' is given twice, as an option and as an input; "
                             "leave one out");
    if (!port && !o->taps.n)
        return gp_shape_fail(s, NULL, "no taps; give 'taps: [...]', or connect the input "
                             "'taps' to a constant");
    if (port && in[1].ndim != 1)
        return gp_shape_fail(s, NULL, "input 'taps' needs one axis, not %s",
                             gp_type_text(&in[1], text));
    size_t ntaps = port ? (size_t)in[1].dim[0] : (size_t)o->taps.n;
    s->out[0] = in[0];
    s->state = s->scratch = (ntaps - 1) * (gp_bytes(&in[0]) / (size_t)in[0].dim[0]);
    s->table = port ? 0 : ntaps * sizeof(float);
    return true;
}

static bool table(const gp_table_call *t)
{
    const struct opts *o = t->opts;
    float *taps = t->data;
    for (int i = 0; i < o->taps.n; i++)
        taps[i] = (float)o->taps.v[i];
    return true;
}

static bool record(gp_dcall *c)
{
    const struct opts *o = c->opts;
    const gp_view *x = c->in, *y = c->out, *port = c->in[1].type.ndim ? &c->in[1] : NULL;
    size_t rows = (size_t)x->type.dim[0], bytes = gp_bytes(&x->type);
    size_t channels = bytes / rows / sizeof(float);
    size_t ntaps = port ? (size_t)port->type.dim[0] : (size_t)o->taps.n;
    const void *taps = port ? port->data : c->table;
    size_t past = (ntaps - 1) * channels * sizeof(float);

    return gp_launch_map(c, port && port->type.dtype == GP_F64 ? "fir_f64" : "fir_f32",
                         (int64_t)((rows + 3) / 4 * channels),
                         GP_ARGS((void *)&y->data, (void *)&x->data, &rows, &channels,
                                 &c->carried, &taps, &ntaps))
        && gp_history(c, past, x->data, bytes);
}

#define SIGNALS (GP_ACCEPT(GP_F32) | GP_ACCEPT(GP_C64))
static const gp_port in[] = {
    { "in", SIGNALS, .help = "a signal: rows in time, all else are channels" },
    { "taps", GP_ACCEPT(GP_F32) | GP_ACCEPT(GP_F64), .optional = true,
      .help = "the coefficients, in place of the option; used as f32" },
    { 0 }
};
static const gp_port out[] = { { "out", SIGNALS, .help = "the same, filtered" }, { 0 } };

static const gp_opt options[] = {
    { GP_FLOATS(struct opts, taps),
      .help = "coefficients: out[i] = sum of taps[k] in[i - k]; what came before is that of earlier frames" },
    { 0 }
};

const gp_kind gp_kind_fir = {
    GP_KIND("fir"), .field = "signals",
    .also = "convolve lfilter lowpass highpass bandpass",
    .help = "filter a signal with given coefficients",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .shape = shape, .record = record, .table = table,
};
