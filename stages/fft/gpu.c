/* gpu.c - transforms by the GPU's library, by one call a frame.
 *
 * It takes all lines of a frame at once where the transformed axes lie side by side, in their order, with all other
 * axes on one side of them. Where they do not, they are moved behind the others in scratch memory, and back. What is to
 * become real numbers is copied there anyway, as its input may be written then. A work area is had for each slot: its
 * size is known only when there is a plan. Frames with fewer rows are transformed whole: what is behind their rows is
 * nobody's. But two lines of real numbers may be transformed as one of complex numbers, where what one of them has
 * shows in the other: the lines behind these are zeros. */
#include <stdlib.h>
#include "device.h"
#include "device/libraries.h"
#include "fourier.h"
#include "strided.h"

typedef struct plan {
    gp_dev *dev;
    gp_errs *errs;             /* while it is opened */
    const gp_open *open;
    const gp_fft_job *job;
    int handle, made;
    char *area;
    size_t area_bytes, slots;
} plan;

/* ---- where the numbers lie --------------------------------------------------------- */

/* How many numbers there are before and behind the transformed axes, if these are side by side in their order. */
static bool beside(const gp_fft_job *j, const gp_type *t, int64_t *outer, int64_t *inner)
{
    *outer = *inner = 1;
    for (int i = 1; i < j->axes; i++)
        if (j->axis[i] != j->axis[0] + i)
            return false;
    for (int k = 0; k < t->ndim; k++)
        *(k < j->axis[0] ? outer : k > j->axis[j->axes - 1] ? inner : &(int64_t){ 0 }) *= t->dim[k];
    return *outer == 1 || *inner == 1;
}

/* A frame's type with the transformed axes behind all others; axis k of it is axis from[k] of `t`. */
static gp_type moved_of(const gp_fft_job *j, const gp_type *t, int from[GP_MAXDIM])
{
    gp_type m = *t;
    int n = 0;
    for (int k = 0; k < t->ndim; k++) {
        bool is = false;
        for (int i = 0; i < j->axes; i++)
            is |= j->axis[i] == k;
        if (!is)
            from[n++] = k;
    }
    for (int i = 0; i < j->axes; i++)
        from[n++] = j->axis[i];
    for (int k = 0; k < n; k++)
        m.dim[k] = t->dim[from[k]];
    return m;
}

static size_t up(size_t n)
{
    return (n + 255) / 256 * 256;
}

static bool moves(const gp_fft_job *j)
{
    int64_t outer, inner;
    return !beside(j, &j->in, &outer, &inner);
}

/* May lines show in each other that are of different rows? */
static bool mixes_rows(const gp_fft_job *j)
{
    bool mixes = j->form != GP_FFT_C2C && j->in.dim[0] > 1;
    for (int i = 0; i < j->axes; i++)
        mixes &= j->axis[i] != 0;
    return mixes;
}

size_t gp_fft_gpu_scratch(const gp_fft_job *j)
{
    bool m = moves(j);
    return (m || j->form == GP_FFT_C2R || mixes_rows(j) ? up(gp_bytes(&j->in)) : 0) + (m ? up(gp_bytes(&j->out)) : 0);
}

/* ---- open -------------------------------------------------------------------------- */

static void make_plan(void *arg)
{
    plan *p = arg;
    const gp_fft_job *j = p->job;
    static const int type[] = { GP_GPU_C2C, GP_GPU_R2C, GP_GPU_C2R };
    long long n[GP_FFT_AXES], in[GP_FFT_AXES], out[GP_FFT_AXES], all_in = 1, all_out = 1;
    int64_t outer = 1, inner = 1;
    for (int i = 0; i < j->axes; i++) {
        n[i] = j->n[i], in[i] = j->in.dim[j->axis[i]], out[i] = j->out.dim[j->axis[i]];
        all_in *= in[i], all_out *= out[i];
    }
    if (!beside(j, &j->in, &outer, &inner))
        outer = gp_count(&j->in) / all_in, inner = 1;
    int status = gp_gpu.fft.create(&p->handle);
    p->made = !status;
    if (!status)
        status = gp_gpu.fft.own_areas(p->handle, 0);
    if (!status)
        status = gp_gpu.fft.make(p->handle, j->axes, n, in, inner, inner == 1 ? all_in : 1, out, inner,
                                 inner == 1 ? all_out : 1, type[j->form], inner == 1 ? outer : inner, &p->area_bytes);
    if (status)
        gp_gpu_fail(GP_GPU_FFT, status, p->errs, GP_E_RESOURCE, p->open->at, p->open->name,
                    "cannot plan such a transform", "");
}

void *gp_fft_gpu_open(const gp_open *o, const gp_fft_job *j)
{
    plan *p = calloc(1, sizeof *p);
    if (!p)
        return GP_NULL(gp_fail(o->errs, GP_E_RESOURCE, o->at, "stage '%s': out of memory", o->name));
    p->dev = o->dev, p->errs = o->errs, p->open = o, p->job = j, p->slots = (size_t)o->slots;
    int before = o->errs->failed;
    if (gp_gpu_open(GP_GPU_FFT, NULL, "a Fourier transform on the GPU", o->at, o->errs)
        && gp_device_call(o->dev, make_plan, p) && o->errs->failed == before) {
        p->area_bytes = up(p->area_bytes + 1);         /* some, even where it needs none */
        p->area = gp_device_alloc(o->dev, p->area_bytes * p->slots, o->errs);
    }
    if (p->area)
        return p;
    gp_fft_gpu_close(p);
    return NULL;
}

static void end_plan(void *arg)
{
    plan *p = arg;
    gp_gpu.fft.destroy(p->handle);
}

void gp_fft_gpu_close(void *made)
{
    plan *p = made;
    if (p->made)
        gp_device_call(p->dev, end_plan, p);
    gp_device_free(p->dev, p->area, p->area_bytes * p->slots);
    free(p);
}

/* ---- record ------------------------------------------------------------------------ */

typedef struct step { const plan *p; const gp_fft_job *job; void *from, *to, *area; const char *name; } step;

static bool transform(void *stream, const void *arg, gp_errs *errs)
{
    const step *x = arg;
    int status = gp_gpu.fft.set_stream(x->p->handle, stream);
    if (!status)
        status = gp_gpu.fft.set_area(x->p->handle, x->area);
    if (!status)
        status = x->job->form == GP_FFT_R2C ? gp_gpu.fft.forward(x->p->handle, x->from, x->to)
               : x->job->form == GP_FFT_C2R ? gp_gpu.fft.inverse(x->p->handle, x->from, x->to)
               : gp_gpu.fft.complex(x->p->handle, x->from, x->to, x->job->inverse ? GP_GPU_INVERSE : GP_GPU_FORWARD);
    return !status || gp_gpu_fail(GP_GPU_FFT, status, errs, GP_E_RUN, (gp_loc){ 0 }, x->name, "failed", "");
}

static bool scale(gp_dcall *c, const gp_fft_job *j, void *data)
{
    size_t n = (size_t)gp_count(&j->out), none = 0;
    float a = j->scale, b = 0;
    return j->scale == 1
        || gp_launch_typed(c, "scale", j->out.dtype, (int64_t)n, GP_ARGS(&data, &none, &data, &none, &n, &a, &b));
}

/* Moves the axes of a whole frame behind the others, or back. */
static bool move(gp_dcall *c, const gp_fft_job *j, const gp_type *t, void *from, void *to, bool back)
{
    int of[GP_MAXDIM];
    gp_type moved = moved_of(j, t, of);
    gp_view a = { .data = from, .type = back ? moved : *t }, b = { .data = to, .type = back ? *t : moved };
    gp_strided s = gp_strided_of(&a.type, &b.type);
    for (int k = 0; k < t->ndim; k++)
        if (back)
            s.axis[of[k]].from = gp_strided_step(&moved, k);
        else
            s.axis[k].from = gp_strided_step(t, of[k]);
    return gp_strided_record(c, &a, 0, &b, 0, s);
}

bool gp_fft_gpu_record(gp_dcall *c, void *made, const gp_fft_job *j)
{
    plan *p = made;
    size_t row = gp_bytes(&j->in) / (size_t)j->in.dim[0], behind = (size_t)(j->in.dim[0] - c->in[0].type.dim[0]) * row;
    bool m = moves(j), zeros = behind && mixes_rows(j), copied = m || zeros || j->form == GP_FFT_C2R;
    void *in = c->in[0].data, *out = c->out[0].data;
    void *from = copied ? c->scratch : in, *to = m ? (char *)c->scratch + up(gp_bytes(&j->in)) : out;
    step x = { p, j, from, to, p->area + p->area_bytes * (size_t)c->slot, c->name };
    return (m ? move(c, j, &j->in, in, from, false) : !copied || gp_copy(c, from, in, gp_bytes(&j->in) - behind))
        && (!zeros || gp_fill(c, (char *)from + gp_bytes(&j->in) - behind, 0, behind))
        && gp_call_library(c, transform, &x, sizeof x) && scale(c, j, to)
        && (!m || move(c, j, &j->out, to, out, true));
}
