/* cpu.c - transforms by lines.c, axis by axis: the last of `axes` first, or last where real numbers are made. Each of
 * them is a call in the list of operations of the launch. */
#include <stdlib.h>
#include "fourier.h"

typedef struct plan { int axes; gp_fft_axis axis[GP_FFT_AXES]; } plan;

static size_t work_of(const gp_fft_job *j)
{
    size_t most = 0;
    for (int i = 0; i < j->axes; i++) {
        int64_t lines = gp_count(&j->in) / j->in.dim[j->axis[i]];
        size_t n = gp_fft_axis_work(i < j->axes - 1 ? GP_FFT_C2C : j->form, j->n[i], lines) * sizeof(float);
        most = n > most ? n : most;
    }
    return (most + 255) / 256 * 256;
}

/* Bytes between two axes where real numbers are made: no input may be written. */
static size_t between_of(const gp_fft_job *j)
{
    return j->form == GP_FFT_C2R && j->axes > 1 ? gp_bytes(&j->in) : 0;
}

size_t gp_fft_cpu_scratch(const gp_fft_job *j)
{
    return work_of(j) + between_of(j);
}

void *gp_fft_cpu_open(const gp_open *o, const gp_fft_job *j)
{
    plan *p = calloc(1, sizeof *p);
    bool ok = p;
    for (int i = 0; ok && i < j->axes; i++) {
        gp_fft_form form = i < j->axes - 1 ? GP_FFT_C2C : j->form;
        ok = gp_fft_axis_make(&p->axis[p->axes++], form, j->n[i], j->inverse);
    }
    if (ok)
        return p;
    gp_fail(o->errs, GP_E_RESOURCE, o->at, "stage '%s': out of memory", o->name);
    if (p)
        gp_fft_cpu_close(p);
    return NULL;
}

void gp_fft_cpu_close(void *made)
{
    plan *p = made;
    for (int i = 0; i < p->axes; i++)
        gp_fft_axis_end(&p->axis[i]);
    free(p);
}

typedef struct pass { const gp_fft_axis *axis; int64_t outer, inner; const void *from; void *to, *work; float scale; } pass;

static bool do_pass(void *stream, const void *arg, gp_errs *errs)
{
    const pass *x = arg;
    gp_fft_axis_do(x->axis, x->outer, x->inner, x->from, x->to, x->scale, x->work);
    return true;
}

bool gp_fft_cpu_record(gp_dcall *c, void *made, const gp_fft_job *j)
{
    const plan *p = made;
    const gp_type *t = &c->in[0].type;             /* rows may be fewer */
    char *between = (char *)c->scratch + work_of(j);
    const void *from = c->in[0].data;
    for (int i = 0; i < j->axes; i++) {
        int k = j->form == GP_FFT_C2R ? i : j->axes - 1 - i;
        bool last = i == j->axes - 1;
        pass x = { &p->axis[k], 1, 1, from, j->form == GP_FFT_C2R && !last ? between : c->out[0].data, c->scratch,
                   last ? j->scale : 1 };
        for (int a = 0; a < t->ndim; a++)
            *(a < j->axis[k] ? &x.outer : a > j->axis[k] ? &x.inner : &(int64_t){ 0 })
                *= (j->form == GP_FFT_C2R ? &c->in[0] : &c->out[0])->type.dim[a];
        if (!gp_call_library(c, do_pass, &x, sizeof x))
            return false;
        from = x.to;
    }
    return true;
}
