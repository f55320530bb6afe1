/* cufft_fake.c - a library with the functions of cuFFT that gpipe calls, for tests without a GPU: by the definition of the
 * transform, in f64, in host memory. It writes its work area, and what real numbers are made of. */
#include <complex.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "cufft_fake.h"

#define SHOWN __attribute__((visibility("default")))
enum { FINE = 0, INVALID_PLAN = 1, NO_WORKSPACE = 13, C2C = 0x29, R2C = 0x2a, C2R = 0x2c, PLANS = 16, AREA = 1000 };

SHOWN cufft_fake cufft_fake_does;

typedef struct side { long long dim[3], step, next; } side;

typedef struct plan {
    int rank, type, own;
    long long n[3], batch;
    side in, out;
    void *area;
} plan;

static plan plans[PLANS];

SHOWN int cufftGetProperty(int which, int *value)
{
    *value = which ? 0 : 12;
    return FINE;
}

SHOWN int cufftCreate(int *handle)
{
    *handle = atomic_fetch_add(&cufft_fake_does.planned, 1) % PLANS;
    plans[*handle] = (plan){ .own = 1 };
    return FINE;
}

SHOWN int cufftDestroy(int handle)
{
    plans[handle].rank = 0;
    atomic_fetch_add(&cufft_fake_does.destroyed, 1);
    return FINE;
}

SHOWN int cufftSetAutoAllocation(int handle, int yes)
{
    plans[handle].own = yes;
    return FINE;
}

SHOWN int cufftMakePlanMany64(int handle, int rank, long long *n, long long *in, long long in_step, long long in_next,
                              long long *out, long long out_step, long long out_next, int type, long long batch, size_t *work)
{
    plan *p = &plans[handle];
    if (cufft_fake_does.plan_status)
        return cufft_fake_does.plan_status;
    p->type = type, p->batch = batch, p->rank = rank;
    p->in.step = in_step, p->in.next = in_next, p->out.step = out_step, p->out.next = out_next;
    for (int i = 0; i < 3; i++) {
        int k = i - (3 - rank);                /* axes that there are not have one element */
        p->n[i] = k < 0 ? 1 : n[k], p->in.dim[i] = k < 0 ? 1 : in[k], p->out.dim[i] = k < 0 ? 1 : out[k];
    }
    *work = AREA;
    return FINE;
}

SHOWN int cufftSetStream(int handle, void *stream)
{
    return stream || !plans[handle].rank ? INVALID_PLAN : FINE;
}

SHOWN int cufftSetWorkArea(int handle, void *area)
{
    plans[handle].area = area;
    return FINE;
}

static long long at(const side *s, long long batch, const long long i[3])
{
    return batch * s->next + ((i[0] * s->dim[1] + i[1]) * s->dim[2] + i[2]) * s->step;
}

/* One axis of all numbers of x, which are n[0] x n[1] x n[2]. */
static void along(double complex *x, const long long n[3], int axis, int sign)
{
    long long inner = axis == 2 ? 1 : axis == 1 ? n[2] : n[1] * n[2], len = n[axis], all = n[0] * n[1] * n[2];
    double complex *root = malloc((size_t)len * sizeof *root), *line = malloc((size_t)len * sizeof *line);
    for (long long k = 0; k < len; k++)
        root[k] = cexp(sign * 2 * M_PI * I * (double)k / (double)len);
    for (long long first = 0; first < all; first++) {
        if (first / inner % len)
            continue;
        for (long long k = 0; k < len; k++) {
            line[k] = 0;
            for (long long j = 0; j < len; j++)
                line[k] += x[first + j * inner] * root[j * k % len];
        }
        for (long long k = 0; k < len; k++)
            x[first + k * inner] = line[k];
    }
    free(root), free(line);
}

/* What is missing of a spectrum of real numbers is there at the opposite indices. */
static double complex number(const plan *p, const float *from, long long batch, const long long i[3])
{
    long long other[3], last = p->in.dim[2];
    if (p->type == R2C)
        return from[at(&p->in, batch, i)];
    for (int k = 0; k < 3; k++)
        other[k] = (p->n[k] - i[k]) % p->n[k];
    bool there = p->type == C2C || i[2] < last;
    const float *v = from + 2 * at(&p->in, batch, there ? i : other);
    return v[0] + I * (there ? v[1] : -v[1]);
}

static int do_it(int handle, void *in, void *to, int sign)
{
    plan *p = &plans[handle];
    long long all = p->n[0] * p->n[1] * p->n[2];
    if (p->own || !p->area)
        return NO_WORKSPACE;
    if (cufft_fake_does.exec_status)
        return cufft_fake_does.exec_status;
    double complex *x = malloc((size_t)all * sizeof *x);
    memset(p->area, 0xff, AREA);
    for (long long b = 0; b < p->batch; b++) {
        long long i[3];
#define EACH_NUMBER for (i[0] = 0; i[0] < p->n[0]; i[0]++) for (i[1] = 0; i[1] < p->n[1]; i[1]++) \
        for (i[2] = 0; i[2] < p->n[2]; i[2]++)
        EACH_NUMBER x[(i[0] * p->n[1] + i[1]) * p->n[2] + i[2]] = number(p, in, b, i);
        for (int k = 0; k < 3; k++)
            along(x, p->n, k, sign);
        EACH_NUMBER {
            double complex v = x[(i[0] * p->n[1] + i[1]) * p->n[2] + i[2]];
            if (i[2] >= p->out.dim[2])
                continue;
            float *f = (float *)to + at(&p->out, b, i) * (p->type == C2R ? 1 : 2);
            f[0] = (float)creal(v);
            if (p->type != C2R)
                f[1] = (float)cimag(v);
        }
    }
    for (long long b = 0; b < p->batch && p->type == C2R; b++)
        for (long long k = 0; k < p->in.dim[0] * p->in.dim[1] * p->in.dim[2]; k++)
            ((float *)in)[2 * (b * p->in.next + k * p->in.step)] = NAN;
    free(x);
    atomic_fetch_add(&cufft_fake_does.done, 1);
    return FINE;
}

SHOWN int cufftExecC2C(int handle, void *from, void *to, int direction) { return do_it(handle, from, to, direction); }
SHOWN int cufftExecR2C(int handle, void *from, void *to) { return do_it(handle, from, to, -1); }
SHOWN int cufftExecC2R(int handle, void *from, void *to) { return do_it(handle, from, to, 1); }
