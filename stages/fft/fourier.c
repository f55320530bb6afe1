/* fourier.c - see fourier.h. Who transforms, and how, is decided by the machine and one frame's shape, and is a part
 * of the plan: so bits do not depend on the knobs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "axes.h"
#include "device/libraries.h"
#include "fourier.h"

enum { LONGEST = 1 << 27 };            /* elements along an axis */

/* The axes, as the option names them; the last one if it does not. */
static int axes_of(const gp_fft_opts *o, int ndim, int axis[GP_FFT_AXES])
{
    for (int i = 0; i < o->axes.n; i++)
        axis[i] = gp_axis(o->axes.v[i], ndim);
    if (!o->axes.n)
        axis[0] = ndim - 1;
    return o->axes.n ? o->axes.n : 1;
}

gp_fft_job gp_fft_job_of(const gp_fft_opts *o, const gp_type *in, const gp_type *out)
{
    gp_fft_job j = { .in = *in, .out = *out, .inverse = o->inverse };
    j.form = in->dtype == GP_F32 ? GP_FFT_R2C : out->dtype == GP_F32 ? GP_FFT_C2R : GP_FFT_C2C;
    j.axes = axes_of(o, in->ndim, j.axis);
    double all = 1;
    for (int i = 0; i < j.axes; i++) {
        j.n[i] = (j.form == GP_FFT_C2R ? out : in)->dim[j.axis[i]];
        all *= (double)j.n[i];
    }
    j.scale = o->norm == GP_FFT_ORTHO ? (float)(1 / sqrt(all))
            : (o->norm == GP_FFT_FORWARD) != o->inverse ? (float)(1 / all) : 1;
    return j;
}

/* ---- shape ----------------------------------------------------------------------- */

static bool set_type(gp_shape *s, const gp_fft_opts *o, int last)
{
    const gp_type *in = &s->in[0];
    gp_type *out = &s->out[0];
    char text[128];
    *out = *in;
    if (in->dtype == GP_F32) {
        out->dtype = GP_C64, out->dim[last] = in->dim[last] / 2 + 1;
    } else if (o->real) {
        int64_t n = o->length ? o->length : 2 * (in->dim[last] - 1);
        if (n < 1)
            return gp_shape_fail(s, "real", "axis %d of %s, of which half a spectrum has 1 element, says nothing of how many "
                                 "real numbers are made: set 'length: 1'", last, gp_type_text(in, text));
        if (n / 2 + 1 != in->dim[last])
            return gp_shape_fail(s, "length", "%lld real numbers have %lld elements in half a spectrum, and axis %d of %s has "
                                 "%lld", (long long)n, (long long)(n / 2 + 1), last, gp_type_text(in, text),
                                 (long long)in->dim[last]);
        out->dtype = GP_F32, out->dim[last] = n;
    }
    return true;
}

/* `library`: NULL where the CPU transforms. */
static bool say(gp_shape *s, const gp_fft_job *j, const char *library)
{
    enum { ROOM = 200 };
    char *does = gp_shape_alloc(s, ROOM), *to = does, *end = does + ROOM;
    if (library)
        snprintf(to, ROOM, "%s", library);
    for (int i = 0; i < j->axes && !library && to < end - 1; i++) {
        gp_fft_way w = gp_fft_way_of(gp_fft_length(i < j->axes - 1 ? GP_FFT_C2C : j->form, j->n[i]));
        to += snprintf(to, (size_t)(end - to), "%slength %lld on the CPU", i ? ", " : "", (long long)j->n[i]);
        if (w.conv && to < end)
            to += snprintf(to, (size_t)(end - to), " by a convolution of %d", w.conv);
    }
    s->does = does;
    return true;
}

bool gp_fft_decide(gp_shape *s, const gp_fft_job *j, bool *gpu)
{
    char name[GP_GPU_TEXT];
    gp_errs errs = { .n = 0 };
    bool here;
    *gpu = gp_shape_gpu(s, &here) > 0;
    if (*gpu && here && !gp_gpu_open(GP_GPU_FFT, name, "a Fourier transform on the GPU", (gp_loc){ 0 }, &errs))
        return gp_shape_fail(s, NULL, "%s", errs.e[0].msg);
    s->scratch += *gpu ? gp_fft_gpu_scratch(j) : gp_fft_cpu_scratch(j);
    s->calls_library = s->writes_all = true;
    return say(s, j, !*gpu ? NULL : here ? name : gp_gpu_name(GP_GPU_FFT));
}

bool gp_fft_shape(gp_shape *s, bool inverse)
{
    gp_fft_opts *o = (gp_fft_opts *)s->opts;           /* its last fields are shape()'s */
    const gp_type *in = &s->in[0];
    char text[128];
    int axis[GP_MAXDIM];

    if (o->axes.n > GP_FFT_AXES)
        return gp_shape_fail(s, "axes", "'axes' has %d axes, and at most %d are transformed at once", o->axes.n,
                             (int)GP_FFT_AXES);
    if (!gp_axes_of(s, "axes", &o->axes, in, axis))
        return false;
    int n = axes_of(o, in->ndim, axis);
    if (!set_type(s, o, axis[n - 1]))
        return false;
    for (int i = 0; i < n; i++)
        if (in->dim[axis[i]] > LONGEST || s->out[0].dim[axis[i]] > LONGEST)
            return gp_shape_fail(s, "axes", "at most %d elements are transformed along an axis, and not %s", (int)LONGEST,
                                 gp_type_text(in, text));
    for (int i = 0; s->partial && i < n; i++)
        if (axis[i] == 0)
            return gp_shape_fail(s, "axes", "a frame with fewer rows, %s, would have a transform of another length: give "
                                 "whole frames, or transform other axes than 0", gp_type_text(in, text));
    if (s->partial)
        return true;
    o->inverse = inverse;
    gp_fft_job j = gp_fft_job_of(o, in, &s->out[0]);
    return gp_fft_decide(s, &j, &o->gpu);
}

/* ---- run ------------------------------------------------------------------------- */

typedef struct transform { gp_fft_job job; bool gpu; void *plan; } transform;

bool gp_fft_open_job(const gp_open *g, const gp_fft_job *j, bool gpu, void **state)
{
    transform *t = calloc(1, sizeof *t);
    if (!(*state = t))
        return gp_fail(g->errs, GP_E_RESOURCE, g->at, "stage '%s': out of memory", g->name);
    t->job = *j, t->gpu = gpu;
    t->plan = t->gpu ? gp_fft_gpu_open(g, &t->job) : gp_fft_cpu_open(g, &t->job);
    return t->plan;
}

bool gp_fft_open(const gp_open *g, void **state)
{
    const gp_fft_opts *o = g->opts;
    gp_fft_job j = gp_fft_job_of(o, &g->in[0], &g->out[0]);
    return gp_fft_open_job(g, &j, o->gpu, state);
}

void gp_fft_close(void *state)
{
    transform *t = state;
    if (t && t->plan)
        (t->gpu ? gp_fft_gpu_close : gp_fft_cpu_close)(t->plan);
    free(t);
}

bool gp_fft_record(gp_dcall *c)
{
    transform *t = c->state;
    return (t->gpu ? gp_fft_gpu_record : gp_fft_cpu_record)(c, t->plan, &t->job);
}
