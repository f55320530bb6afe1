/* generate.c - frames of computed numbers, for tests and for timing.
 *
 * What is in a frame depends only on the seed, the frame's number and the
 * element's: never on depth, speed or the order of slots. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/half.h"
#include "number.h"
#include "pace.h"

enum { MAX_RUN = 64 };
enum { RAMP, SINE, NOISE, CONSTANT };
enum { EACH, ONCE };

struct opts {
    int pattern, fill;
    int64_t frames, seed;
    double rate, amplitude, period;
    gp_num value;
};

static bool shape(gp_shape *s)
{
    const struct opts *o = s->opts;
    if (!s->out[0].dtype || !s->out[0].ndim)
        return gp_shape_fail(s, NULL, "what to generate is not declared: declare dtype and "
                                      "shape of the output under 'buffers:'");
    static const char *const what[] = { "a ramp", "a sine", "noise", "a constant" };
    static const struct { const char *opt; unsigned on; } effect[] = {
        { "value", 1 << SINE | 1 << NOISE | 1 << CONSTANT },
        { "amplitude", 1 << SINE | 1 << NOISE },
        { "period", 1 << SINE },
        { "seed", 1 << NOISE },
    };
    for (size_t i = 0; i < sizeof effect / sizeof *effect; i++)
        if (!(effect[i].on >> o->pattern & 1)
            && !gp_shape_without(s, effect[i].opt, what[o->pattern]))
            return false;
    if (o->pattern == CONSTANT && !gp_number_fits(s, "value", &o->value, s->out[0].dtype))
        return false;
    s->known.hertz = o->rate, s->known.frames = o->frames;
    s->endless = !o->frames;
    s->keeps_slots = o->fill == ONCE;
    s->by_number = true;
    return true;
}

/* ---- numbers --------------------------------------------------------- */

/* The i-th output of SplitMix64 (Steele, Lea, Flood 2014), without the ones
 * before it. */
static uint64_t mix(uint64_t seed, uint64_t i)
{
    uint64_t z = seed + (i + 1) * 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

/* In [-1, 1), 53 bits. */
static double uniform(uint64_t seed, uint64_t i)
{
    return (double)(mix(seed, i) >> 11) * 0x1p-52 - 1;
}

static double sine(const struct opts *o, uint64_t i, double turn)
{
    double phase = fmod((double)i, o->period) / o->period + turn;
    return o->value.f + o->amplitude * sin(2 * M_PI * phase);
}

static double noise(const struct opts *o, uint64_t i)
{
    return o->value.f + o->amplitude * uniform((uint64_t)o->seed, i);
}

/* To the nearest integer that the type has. */
static int64_t clamp_i64(double v)
{
    return v >= 0x1p63 ? INT64_MAX : v <= -0x1p63 ? INT64_MIN : llrint(v);
}

static uint64_t clamp_u64(double v)
{
    return v >= 0x1p64 ? UINT64_MAX : v <= 0 ? 0 : (uint64_t)rint(v);
}

/* Elements [i, i + n) of the endless sequence of numbers. FROM turns a double into
 * an element; WRAP is how the ramp counts: modulo what the type can hold, for
 * floats modulo the first integer that it cannot count past. */
#define FILL(ctype, FROM, RAND, WRAP) do {                                           \
        ctype same;                                                                  \
        memcpy(&same, &constant, sizeof same);                                       \
        for (ctype *p = data, *end = p + n; p < end; p++, i++)                       \
            *p = o->pattern == RAMP    ? (ctype)(WRAP)                               \
               : o->pattern == SINE    ? (ctype)FROM(sine(o, i, 0))                  \
               : o->pattern == NOISE   ? (ctype)(RAND)                               \
                                       : same;                                       \
    } while (0)

#define FROM_I(v)   fmin(fmax(rint(v), lo), hi)
#define FROM_F(v)   (v)
#define INTEGER(ctype, MIN, MAX) do {                                                \
        double lo = (double)(MIN), hi = (double)(MAX);                               \
        FILL(ctype, FROM_I, mix((uint64_t)o->seed, i) >> 32, i);                     \
    } while (0)

static void fill(const struct opts *o, gp_dtype t, void *data, size_t n, uint64_t i)
{
    uint64_t constant = o->pattern == CONSTANT ? gp_number_bits(&o->value, t) : 0;
    switch (t) {
    case GP_U8:  INTEGER(uint8_t, 0, UINT8_MAX); break;
    case GP_I8:  INTEGER(int8_t, INT8_MIN, INT8_MAX); break;
    case GP_U16: INTEGER(uint16_t, 0, UINT16_MAX); break;
    case GP_I16: INTEGER(int16_t, INT16_MIN, INT16_MAX); break;
    case GP_U32: INTEGER(uint32_t, 0, UINT32_MAX); break;
    case GP_I32: INTEGER(int32_t, INT32_MIN, INT32_MAX); break;
    case GP_U64: FILL(uint64_t, clamp_u64, mix((uint64_t)o->seed, i), i); break;
    case GP_I64: FILL(int64_t, clamp_i64, mix((uint64_t)o->seed, i), i); break;
    case GP_F16: FILL(uint16_t, gp_half_from_double, gp_half_from_double(noise(o, i)),
                      gp_half_from_double((double)(i % (1 << 11)))); break;
    case GP_F32: FILL(float, FROM_F, noise(o, i), i % (1 << 24)); break;
    case GP_F64: FILL(double, FROM_F, noise(o, i), i % (UINT64_C(1) << 53)); break;
    case GP_C64:
        for (gp_c64 *p = data, *end = p + n; p < end; p++, i++)
            *p = o->pattern == RAMP  ? (gp_c64){ (float)(i % (1 << 24)), 0 }
               : o->pattern == SINE  ? (gp_c64){ (float)sine(o, i, 0.25), (float)sine(o, i, 0) }
               : o->pattern == NOISE ? (gp_c64){ (float)noise(o, 2 * i),
                                                 (float)noise(o, 2 * i + 1) }
                                     : (gp_c64){ (float)o->value.f, 0 };
        break;
    case GP_NO_DTYPE: case GP_NDTYPES: break;
    }
}

/* ---- running --------------------------------------------------------- */

static bool set_workers(void *state, int n, gp_errs *errs)
{
    (void)state, (void)n, (void)errs;  /* it keeps nothing for each */
    return true;
}

static bool open_pace(const gp_open *g, void **state)
{
    gp_pace *pace = *state = calloc(1, sizeof *pace);
    if (pace)
        pace->from = g->from;
    return *state || gp_fail(g->errs, GP_E_RESOURCE, g->at, "stage '%s': out of memory", g->name);
}

static bool run(gp_call *c, gp_frame *f, int n)
{
    const struct opts *o = c->opts;
    uint64_t frames = o->frames ? (uint64_t)o->frames : UINT64_MAX;
    bool paced = o->rate > 0, once = o->fill == ONCE;
    size_t bytes = 0;
    for (int i = 0; i < n; i++) {
        gp_view *v = &f[i].out[0];
        f[i].status = f[i].index >= frames ? GP_END
                    : bytes >= GP_RUN_BYTES ? GP_AGAIN
                    : paced ? gp_pace_wait(c->state, c, o->rate, f[i].index, i == 0)
                            : GP_OK;
        if (f[i].status != GP_OK)
            break;
        if (once && !v->fresh)
            continue;
        size_t count = (size_t)gp_count(&v->type);
        fill(o, v->type.dtype, v->data, count, once ? 0 : f[i].index * count);
        bytes += gp_bytes(&v->type);
    }
    return true;
}

static void advise(gp_advice *a)
{
    const struct opts *o = a->opts;
    if (o->fill != ONCE)
        strcpy(a->text, "fill: once makes frames that cost nothing, if all may be the same");
}

static const gp_port out[] = { { "out", .help = "frames, as declared under 'buffers:'" }, { 0 } };

static const gp_opt options[] = {
    { GP_ENUM(struct opts, pattern), .def = "ramp", .choices = "ramp|sine|noise|constant",
      .help = "ramp counts elements over all frames, modulo what the type holds exactly (f16: 2048, f32: 2^24); "
              "sine (c64: cosine and sine) goes on over "
              "all frames; noise is even, for integers over their whole range" },
    { GP_NUM(struct opts, value), .def = "0",
      .help = "of constant, which the type has to hold; the middle of sine, and of noise in floats" },
    { GP_FLOAT(struct opts, amplitude), .def = "1", .help = "of sine, and of noise in floats" },
    { GP_FLOAT(struct opts, period), .def = "64", .min = 1e-6, .max = 1e15, .unit = "elements",
      .help = "of sine" },
    { GP_INT(struct opts, seed), .help = "of noise" },
    { GP_INT(struct opts, frames), .min = 0, .max = 1e18, .unit = "frames",
      .help = "how many; 0: endless" },
    { GP_FLOAT(struct opts, rate), .min = 0, .max = 1e9, .unit = "Hz",
      .help = "frames a second; 0: as fast as they are taken" },
    { GP_ENUM(struct opts, fill), .def = "each", .choices = "each|once",
      .help = "once: the first frame is written once to every slot and used again, so that frames "
              "cost nothing" },
    { 0 }
};

const gp_kind gp_kind_generate = {
    GP_KIND("generate"), .field = "testing",
    .help = "make frames of numbers: a ramp, a sine, noise or a constant",
    .out = out,
    .opts = options, .opts_size = sizeof(struct opts),
    .max_run = MAX_RUN,
    .by_number = true, .set_workers = set_workers, .shape = shape, .open = open_pace, .close = free, .run = run,
    .advise = advise,
};
