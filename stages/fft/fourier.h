/* fourier.h - what the kinds `fft` and `ifft` share, and kinds that transform what they have computed. */
#pragma once

#include "gpipe/stage.h"
#include "fft_lines.h"

enum { GP_FFT_AXES = 3 };
enum { GP_FFT_BACKWARD, GP_FFT_ORTHO, GP_FFT_FORWARD };

typedef struct gp_fft_opts {
    gp_ints axes;
    int norm;
    bool real;                 /* of ifft: it makes real numbers, */
    int64_t length;            /* ... so many along the last of `axes` */
    bool inverse;              /* found by shape(), as all that follows */
    bool gpu;
} gp_fft_opts;

/* A transform of frames of type `in` to type `out`, over `axis[0 ... axes - 1]`; of real numbers the last of these has
 * them all in one of the types, and half of them and one in the other. */
typedef struct gp_fft_job {
    gp_type in, out;
    gp_fft_form form;
    bool inverse;
    int axes, axis[GP_FFT_AXES];
    int64_t n[GP_FFT_AXES];    /* lengths */
    float scale;
} gp_fft_job;

/* The job, once shape() has had no error. */
gp_fft_job gp_fft_job_of(const gp_fft_opts *o, const gp_type *in, const gp_type *out);

/* For both kinds. gp_fft_record() transforms c->in[0] to c->out[0]; c->state is what was opened, and c->scratch has the
 * room that was decided on. */
bool gp_fft_shape(gp_shape *s, bool inverse);
bool gp_fft_open(const gp_open *o, void **state);
void gp_fft_close(void *state);
bool gp_fft_record(gp_dcall *c);

/* For other kinds, in shape() and open(): who does this job, and the scratch memory that it needs, which is added to
 * that of the stage. `j` is copied. */
bool gp_fft_decide(gp_shape *s, const gp_fft_job *j, bool *gpu);
bool gp_fft_open_job(const gp_open *o, const gp_fft_job *j, bool gpu, void **state);

/* cpu.c, gpu.c: what a frame needs of scratch memory; a plan, made once, NULL after an error; queueing a frame. */
size_t gp_fft_cpu_scratch(const gp_fft_job *j);
void *gp_fft_cpu_open(const gp_open *o, const gp_fft_job *j);
void gp_fft_cpu_close(void *plan);
bool gp_fft_cpu_record(gp_dcall *c, void *plan, const gp_fft_job *j);

size_t gp_fft_gpu_scratch(const gp_fft_job *j);
void *gp_fft_gpu_open(const gp_open *o, const gp_fft_job *j);
void gp_fft_gpu_close(void *plan);
bool gp_fft_gpu_record(gp_dcall *c, void *plan, const gp_fft_job *j);
