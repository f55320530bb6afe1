/* resample.c - a signal at another rate, up / down of its own: the rows of all frames are one signal, which starts
 * after zeros. Between rows there are up - 1 zeros, a filter goes over that, and each down-th element stays; only these
 * are computed.
 *
 * Every whole frame makes as many rows, so that each begins at the first coefficient. The rows that the filter needs of
 * earlier frames are carried. */
#include <math.h>
#include "device.h"
#include "history.h"

struct opts {
    int64_t up, down;
    gp_floats taps;
};

/* The ratio, and how many coefficients there are, of which each row is multiplied by `rows` at most. `half` and `zeros`
 * are of the filter that is made here. */
struct ratio { int64_t up, down, half, zeros, ntaps, rows; };

static bool has_port(const gp_type *in, int nin) { return nin > 1 && in[1].ndim; }

static int64_t gcd(int64_t a, int64_t b) { return b ? gcd(b, a % b) : a; }

/* As scipy.signal.resample_poly has it, with so many zeros in front that what it leaves out are whole rows. */
static struct ratio ratio_of(const struct opts *o, const gp_type *in, int nin)
{
    struct ratio r = { .up = o->up, .down = o->down, .ntaps = has_port(in, nin) ? in[1].dim[0] : o->taps.n };
    if (!r.ntaps) {
        int64_t both = gcd(o->up, o->down);
        bool same = o->up == o->down;
        r.up /= both, r.down /= both;
        r.half = same ? 0 : 10 * (r.up > r.down ? r.up : r.down);
        r.zeros = same ? 0 : r.down - r.half % r.down;
        r.ntaps = r.zeros + 2 * r.half + 1;
    }
    r.rows = (r.ntaps + r.up - 1) / r.up;
    return r;
}

static bool shape(gp_shape *s)
{
    const struct opts *o = s->opts;
    const gp_type *in = s->in;
    bool port = has_port(in, s->nin);
    struct ratio r = ratio_of(o, in, s->nin);
    char text[128];

    if (port && o->taps.n)
        return gp_shape_fail(s, "taps", "'taps' is given twice, as an option and as an input; leave one out");
    if (port && in[1].ndim != 1)
        return gp_shape_fail(s, NULL, "input 'taps' needs one axis, not %s", gp_type_text(&in[1], text));
    if (!s->partial && in[0].dim[0] * r.up % r.down)
        return gp_shape_fail(s, "down", "%lld samples at %lld / %lld of their rate are not a whole number: frames need a "
                             "multiple of %lld samples", (long long)in[0].dim[0], (long long)r.up, (long long)r.down,
                             (long long)(r.down / gcd(r.up, r.down)));
    s->out[0] = in[0];
    s->out[0].dim[0] = (in[0].dim[0] * r.up + r.down - 1) / r.down;
    s->state = s->scratch = (size_t)(r.rows - 1) * (gp_bytes(&in[0]) / (size_t)in[0].dim[0]);
    s->table = port ? 0 : (size_t)r.ntaps * sizeof(float);
    return true;
}

/* The modified Bessel function I0: Abramowitz and Stegun, 9.6.12. */
static double i0(double x)
{
    double sum = 1, term = 1;
    for (int k = 1; term > sum * 1e-18; k++)
        term *= x / (2 * k) * (x / (2 * k)), sum += term;
    return sum;
}

/* A low-pass of 2 half + 1 coefficients, a sine cardinal in a Kaiser window of beta 5. */
static double low_pass(const struct ratio *r, int64_t i)
{
    if (!r->half)
        return 1;                      /* the signal stays as it is */
    const double pi = 3.14159265358979323846, cut = 10.0 / (double)r->half, at = (double)(i - r->half);
    double part = at / (double)r->half, sinc = at == 0 ? 1 : sin(pi * cut * at) / (pi * cut * at);
    return sinc * i0(5 * sqrt(1 - part * part));
}

static bool table(const gp_table_call *t)
{
    const struct opts *o = t->opts;
    struct ratio r = ratio_of(o, t->in, t->nin);
    float *taps = t->data;
    double sum = 0;

    for (int64_t i = 0; i < o->taps.n; i++)
        taps[i] = (float)o->taps.v[i];
    if (o->taps.n)
        return true;
    for (int64_t i = 0; i <= 2 * r.half; i++)
        sum += low_pass(&r, i);
    for (int64_t i = 0; i < r.ntaps; i++)
        taps[i] = i < r.zeros ? 0 : (float)(low_pass(&r, i - r.zeros) / sum * (double)r.up);
    return true;
}

static bool record(gp_dcall *c)
{
    const struct opts *o = c->opts;
    const gp_view *x = c->in, *y = c->out, *port = c->in[1].type.ndim ? &c->in[1] : NULL;
    const gp_type types[] = { x->type, c->in[1].type };
    struct ratio r = ratio_of(o, types, port ? 2 : 1);
    size_t bytes = gp_bytes(&x->type), row = bytes / (size_t)x->type.dim[0], channels = row / sizeof(float);
    size_t n = (size_t)y->type.dim[0], up = (size_t)r.up, down = (size_t)r.down, ntaps = (size_t)r.ntaps;
    size_t past = (size_t)r.rows - 1;
    const void *taps = port ? port->data : c->table;

    return gp_launch_map(c, port && port->type.dtype == GP_F64 ? "resample_f64" : "resample_f32",
                         (int64_t)(n * channels),
                         GP_ARGS((void *)&y->data, (void *)&x->data, &n, &channels, &c->carried, &past, &taps, &ntaps,
                                 &up, &down))
        && gp_history(c, past * row, x->data, bytes);
}

#define SIGNALS (GP_ACCEPT(GP_F32) | GP_ACCEPT(GP_C64))
static const gp_port in[] = {
    { "in", SIGNALS, .help = "a signal: rows in time, all else are channels" },
    { "taps", GP_ACCEPT(GP_F32) | GP_ACCEPT(GP_F64), .optional = true,
      .help = "the coefficients, in place of the option; used as f32" },
    { 0 }
};
static const gp_port out[] = {
    { "out", SIGNALS, .help = "up / down times as many rows: what scipy.signal.resample_poly makes, later by the "
      "filter's delay; with `taps` what upfirdn makes" }, { 0 }
};

static const gp_opt options[] = {
    { GP_INT(struct opts, up), .def = "1", .min = 1, .max = 65536, .help = "samples that are made of `down`" },
    { GP_INT(struct opts, down), .def = "1", .min = 1, .max = 65536,
      .help = "samples of which `up` are made; frames have a multiple of it, once both are divided by what they "
              "share" },
    { GP_FLOATS(struct opts, taps),
      .help = "coefficients of the filter, at `up` times the rate; as they stand, so that their sum is best `up`. "
              "Without, a low-pass of 20 times the larger of `up` and `down`, in a Kaiser window of beta 5, or "
              "none where both are the same" },
    { 0 }
};

const gp_kind gp_kind_resample = {
    GP_KIND("resample"), .field = "signals",
    .also = "resample_poly",
    .help = "a signal at up / down of its rate",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .shape = shape, .record = record, .table = table,
};
