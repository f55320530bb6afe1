/* NAME.c - a plug-in for gpipe with two kinds of stages, a source (NAME_ramp) and a filter (NAME_gain). The comments
 * of gpipe/stage.h say more. */
#include <gpipe/stage.h>

/* ---- NAME_ramp: frames of f32, whose first element is the number of the frame */

struct ramp { int64_t frames, size; };         /* the options, which `ramp_opts` describes */

/* Before anything runs: the type of what is made. */
static bool ramp_shape(gp_shape *s)
{
    const struct ramp *o = s->opts;
    s->out[0] = (gp_type){ GP_F32, 1, { o->size } };
    s->known.frames = o->frames;
    s->endless = o->frames == 0;
    return true;
}

/* Makes a frame. A device would be read here, and opened in `open`; who waits for it uses
 * gp_wait_or_pause(), and returns what that says as f->status, unless GP_OK. */
static bool ramp_run(gp_call *c, gp_frame *f, int n)
{
    const struct ramp *o = c->opts;
    float *data = f->out[0].data;
    (void)n;                                   /* 1, as there is no .max_run */
    if (o->frames && f->index >= (uint64_t)o->frames)
        f->status = GP_END;
    else
        for (int64_t i = 0; i < o->size; i++)
            data[i] = (float)f->index + (float)i;
    return true;
}

static const gp_port ramp_out[] = { { .name = "out", .help = "numbers that rise" }, { 0 } };
static const gp_opt ramp_opts[] = {
    { GP_INT(struct ramp, frames), .def = "0", .min = 0, .max = 1e15, .help = "how many; 0: without end" },
    { GP_INT(struct ramp, size), .def = "8", .min = 1, .max = 1e6, .help = "elements of a frame" },
    { 0 } };
static const gp_kind ramp = {
    GP_KIND("NAME_ramp"), .help = "numbers that rise", .out = ramp_out, .opts = ramp_opts,
    .opts_size = sizeof(struct ramp), .shape = ramp_shape, .run = ramp_run };

/* ---- NAME_gain: frames times a number ---------------------------------- */

struct gain { double gain; };

static bool gain_shape(gp_shape *s)
{
    s->out[0] = s->in[0];
    return true;
}

/* Several workers may be here at the same time, each with a frame of its own: what they share is only read. All of an
 * output is written, as its memory has what an earlier frame left there: else the run, or the test, fails. */
static bool gain_run(gp_call *c, gp_frame *f, int n)
{
    const struct gain *o = c->opts;
    const float *in = f->in[0].data;
    float *out = f->out[0].data;
    (void)n;
    for (int64_t i = 0; i < gp_count(&f->in[0].type); i++)      /* of a frame with fewer rows it is as much less */
        out[i] = in[i] * (float)o->gain;
    gp_meta_set(c, f, "gain", &o->gain);       /* travels along where the pipeline has `metadata: [gain]` */
    return true;
}

static const gp_port gain_in[] = { { "in", GP_ACCEPT(GP_F32), .help = "numbers" }, { 0 } };
static const gp_port gain_out[] = { { .name = "out", .help = "these, times gain" }, { 0 } };
static const gp_opt gain_opts[] = {
    { GP_FLOAT(struct gain, gain), .def = "2", .help = "what they are multiplied by" },
    { 0 } };
static const gp_kind gain = {
    GP_KIND("NAME_gain"), .help = "multiplies by a number", .in = gain_in, .out = gain_out, .opts = gain_opts,
    .opts_size = sizeof(struct gain), .shape = gain_shape, .run = gain_run };

GP_PLUGIN("NAME", "0.1", &ramp, &gain);
