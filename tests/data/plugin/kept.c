/* kept.c - a plug-in of ABI 2 as others may have one: kept.so was made of this file once, and later versions of gpipe
 * must load and run it (tests/test_plugin.c). It is made again, from a new file beside it, only for a new GP_ABI:
 *
 *   gcc -std=c11 -Os -shared -fPIC -fvisibility=hidden -s -nostdlib -Wl,-z,noseparate-code -Iengine/include \
 *       tests/data/plugin/kept.c -o tests/data/plugin/kept.so */
#include <gpipe/stage.h>

/* ---- kept_ramp: a source -------------------------------------------------- */

struct ramp { int64_t frames, size, wait; gp_dtype dtype; gp_floats start; const char *label; };

static bool ramp_shape(gp_shape *s)
{
    const struct ramp *o = s->opts;
    if (o->dtype != GP_F32 && o->dtype != GP_I32)
        return gp_shape_fail(s, "dtype", "f32 or i32, not %s", gp_dtype_name(o->dtype));
    s->out[0] = (gp_type){ o->dtype, 1, { o->size } };
    s->endless = !o->frames;
    s->known.frames = o->frames;
    return true;
}

static bool ramp_open(const gp_open *o, void **state)
{
    static double start;
    const struct ramp *r = o->opts;
    start = r->start.n ? r->start.v[0] : 0;
    *state = &start;
    return true;
}

static bool ramp_run(gp_call *c, gp_frame *f, int n)
{
    const struct ramp *o = c->opts;
    const double *start = c->state;
    for (int i = 0; i < n; i++) {
        if (o->frames && f[i].index >= (uint64_t)o->frames) {
            f[i].status = GP_END;
            continue;
        }
        if (o->wait && !gp_wait_until(c, o->wait)) {
            f[i].status = GP_STOPPED;
            continue;
        }
        f[i].name = o->label;
        for (int64_t k = 0; k < gp_count(&f[i].out[0].type); k++) {
            double v = *start + (double)f[i].index + (double)k;
            if (o->dtype == GP_F32)
                ((float *)f[i].out[0].data)[k] = (float)v;
            else
                ((int32_t *)f[i].out[0].data)[k] = (int32_t)v;
        }
    }
    return true;
}

static const gp_port ramp_out[] = { { "out", .help = "numbers that rise" }, { 0 } };
static const gp_opt ramp_opts[] = {
    { GP_INT(struct ramp, frames), .help = "how many; 0: endless" },
    { GP_INT(struct ramp, size), .def = "4", .min = 1, .max = 1000, .help = "elements of a frame" },
    { GP_TIME(struct ramp, wait), .help = "when to begin, of CLOCK_MONOTONIC" },
    { GP_DTYPE(struct ramp, dtype), .def = "f32", .help = "their type" },
    { GP_FLOATS(struct ramp, start), .help = "the first number" },
    { GP_TEXT(struct ramp, label), .def = "kept", .help = "the name of each frame" },
    { 0 } };
static const gp_kind ramp = { GP_KIND("kept_ramp"), .help = "numbers that rise", .out = ramp_out, .opts = ramp_opts,
                              .opts_size = sizeof(struct ramp), .shape = ramp_shape, .open = ramp_open, .run = ramp_run,
                              .max_run = 16, .field = "signals", .also = "sawtooth" };

/* ---- kept_pick: a filter with two outputs, one of them with another shape --- */

struct pick { int how; bool drop; double gain; };

static bool pick_shape(gp_shape *s)
{
    s->out[0] = s->in[0];
    s->out[1] = (gp_type){ GP_F32, 1, { 1 } };
    return true;
}

static bool pick_run(gp_call *c, gp_frame *f, int n)
{
    const struct pick *o = c->opts;
    for (int i = 0; i < n; i++) {
        const float *in = f[i].in[0].data;
        float *all = f[i].out[0].data, *one = f[i].out[1].data;
        *one = in[0];
        for (int64_t k = 0; k < gp_count(&f[i].in[0].type); k++) {
            if (in[k] < 0) {
                gp_fail(c->errs, GP_E_RUN, c->at, "a negative number in frame %d", (int)f[i].index);
                f[i].status = GP_FAILED;
            }
            all[k] = in[k] * (float)o->gain;
            *one = (o->how ? in[k] > *one : in[k] < *one) ? in[k] : *one;
        }
        if (o->drop && f[i].index % 2)
            f[i].status = GP_DROP;
    }
    return true;
}

static const gp_port pick_in[] = { { "in", GP_ACCEPT(GP_F32), .help = "numbers" }, { 0 } };
static const gp_port pick_out[] = { { "all", .help = "these, times gain" }, { "one", .help = "one of them" }, { 0 } };
static const gp_opt pick_opts[] = {
    { GP_ENUM(struct pick, how), .choices = "least|most", .required = true, .help = "which" },
    { GP_BOOL(struct pick, drop), .help = "every second frame is dropped" },
    { GP_FLOAT(struct pick, gain), .def = "2", .help = "what all are multiplied by" },
    { 0 } };
static const gp_kind pick = { GP_KIND("kept_pick"), .help = "the least or most of each frame", .in = pick_in,
                              .out = pick_out, .opts = pick_opts, .opts_size = sizeof(struct pick), .shape = pick_shape,
                              .run = pick_run };

GP_PLUGIN("kept", "1.0", &ramp, &pick);
