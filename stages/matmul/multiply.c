/* multiply.c - see multiply.h. A GPU multiplies by cuBLASLt, which adds the bias too where it can; a CPU by a CBLAS or
 * by loops, f16 in f32. Activations are a kernel's, the same on both: those of cuBLASLt are approximations, and do not
 * say what becomes of a NaN. A layer of a network that has few rows at a time reads its weights once for all of
 * them, by a kernel of ours that does the rest, too.
 *
 * How a frame is multiplied follows from its own shape alone, a smaller one included: not from how many others the
 * launch has. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "cblas_library.h"
#include "device.h"
#include "device/libraries.h"
#include "multiply.h"

typedef struct multiplier {
    bool tf32, bias, more;
    gp_cblas cpu;
    gp_dev *dev;                           /* of a GPU: */
    void *handle;
    gp_gpu_choice choice;                  /* of the latest product */
    int status;                            /* of the library */
} multiplier;

/* ---- shape ----------------------------------------------------------- */

/* On a CPU the factors of an f16 product, and the product, are in scratch memory as f32, in this order. */
static size_t scratch_f32(const gp_type *a, const gp_type *b, const gp_type *made, size_t at[GP_FACTORS])
{
    const gp_type *t[] = { a, b, made };
    size_t n = 0;
    for (int i = 0; i < GP_FACTORS; i++) {
        at[i] = n;
        n += (4 * (size_t)gp_count(t[i]) + 255) / 256 * 256;
    }
    return n;
}

/* Bytes that a GPU's library may work in: no more for a frame with fewer elements. */
static size_t room_for(const gp_product *p)
{
    enum { LEAST = 64 << 10, MOST = 32 << 20, PARTS = 32 };    /* parts of a long sum, of f32 or f64 */
    size_t each = p->dtype == GP_F64 ? 8 : 4;
    double want = (double)p->m * (double)p->n * (double)p->batch.n * (double)gp_product_batches(p)
                * (double)(PARTS * each);
    return want < LEAST ? LEAST : want > MOST ? MOST : (size_t)want;
}

enum { FEW = 8, WARP = 32, EACH = 8, APART = 32 };     /* kernels/linear.cu */
enum { WARPS = 8, SHORT = 768, LEAST_SHARED = 48 << 10 };
enum { BLOCKS = 264, WIDE = 2 * BLOCKS * WARPS * 8 };      /* two on each part of a large GPU; twice 8 rows of each warp */

/* Of a block whose warps share rows of weights. */
static int64_t warps_of(const gp_product *p)
{
    return p->k > 1024 ? 2 * WARPS : WARPS;
}

/* Is there a row of weights for each warp, several times? */
static bool is_wide(const gp_product *p)
{
    return p->n >= WIDE && p->k <= 2048;
}

static int64_t high_of(const gp_product *p)
{
    return p->n <= 12 * BLOCKS ? 8 : 16;
}

static size_t shared_of(const gp_multiply_opts *o, const gp_product *p)
{
    size_t rows = (size_t)(p->m * (p->k + APART)) * 2;
    return is_wide(p) ? rows : (size_t)(warps_of(p) * high_of(p) * FEW) * sizeof(float) + (o->layer_norm > 0 ? rows : 0);
}

/* Few rows of f16, by weights whose rows are multiples of 16 bytes. A frame with fewer rows is of this sort, too. */
static bool is_few(const gp_multiply_opts *o, const gp_product *p)
{
    return p->dtype == GP_F16 && p->m <= FEW && p->batch.n == 1 && gp_product_batches(p) == 1 && p->turned[GP_RIGHT]
        && !p->turned[GP_LEFT] && p->k % EACH == 0 && shared_of(o, p) <= LEAST_SHARED;
}

/* Bytes in scratch memory for the rows of a frame that are normalized. */
static size_t normalized(const gp_multiply_opts *o, const gp_type *in)
{
    return o->layer_norm > 0 ? ((size_t)gp_count(in) * gp_dtype_size(in->dtype) + 255) / 256 * 256 : 0;
}

/* Decides who multiplies, and says so. */
static bool choose(gp_shape *s, gp_multiply_opts *o, const gp_product *p)
{
    bool here, tf32 = o->precision == GP_PRECISION_TF32 && p->dtype == GP_F32;
    char *does = gp_shape_alloc(s, 80);
    size_t at[GP_FACTORS];
    char gpu[GP_GPU_TEXT];
    gp_cblas cpu;
    gp_errs errs = { .n = 0 };
    o->on_cpu = !gp_shape_gpu(s, &here);
    s->does = does, s->calls_library = true, s->batched = true, s->writes_all = true, s->known.f64 = p->dtype == GP_F64;
    if (o->on_cpu) {
        s->scratch = p->dtype == GP_F16 ? scratch_f32(&s->in[0], &s->in[1], &s->out[0], at) : 0;
        s->scratch += normalized(o, &s->in[0]);
        if (here)
            gp_cblas_open(&cpu);
        snprintf(does, 80, "%s", here ? cpu.name : "OpenBLAS, BLIS or own loops");
        return true;
    }
    if ((o->few = is_few(o, p))) {
        s->calls_library = false, s->does = "own kernel, of few rows";
        return true;
    }
    if (here && !gp_gpu_open(GP_GPU_PRODUCTS, gpu, "a product", (gp_loc){ 0 }, &errs))
        return gp_shape_fail(s, NULL, "%s", errs.e[0].msg);
    s->scratch = room_for(p) + normalized(o, &s->in[0]);
    snprintf(does, 80, "%s%s", here ? gpu : gp_gpu_name(GP_GPU_PRODUCTS), tf32 ? ", tf32" : "");
    return true;
}

/* The axes of batches, from the innermost on, along which there is one matrix. */
static unsigned ones(const gp_type *t)
{
    unsigned set = 0;
    for (int k = 0; k < t->ndim - 2; k++)
        set |= t->dim[t->ndim - 3 - k] == 1 ? 1u << k : 0;
    return set;
}

/* A factor with fewer matrices in a frame than declared is not taken for all: it had as many as the other one before.
 * A group of frames, too, has a matrix for each. */
static bool fits_declared(gp_shape *s, gp_multiply_opts *o)
{
    char x[128], y[128];
    for (int i = 0; i < GP_MADE; i++) {
        const gp_type *t = &s->in[i], *other = &s->in[1 - i];
        unsigned one = ones(t);
        if (!s->partial)
            o->one[i] = one, s->beside |= t->ndim > 2 && t->ndim == s->out[0].ndim && t->dim[0] > 1 ? 1u << i : 0;
        else if (one & ~o->one[i] & ((1u << (other->ndim > 2 ? other->ndim - 2 : 0)) - 1) & ~ones(other))
            return gp_shape_fail(s, NULL, "%s times %s in one frame: what is shorter there than declared is not taken for all",
                                 gp_type_text(&s->in[GP_LEFT], x), gp_type_text(&s->in[GP_RIGHT], y));
    }
    return true;
}

bool gp_multiply_shape(gp_shape *s)
{
    gp_multiply_opts *o = (gp_multiply_opts *)s->opts;
    const gp_type *a = &s->in[0], *b = &s->in[1];
    char x[128], y[128];
    gp_product p;
    for (int i = 1; i < s->nin; i++)
        if (s->in[i].dtype && s->in[i].dtype != a->dtype)
            return gp_shape_fail(s, NULL, "'%s' is %s, and '%s' is %s: they need one type; put a 'cast' before one",
                                 s->in_name[0], gp_type_text(a, x), s->in_name[i], gp_type_text(&s->in[i], y));
    if ((o->transpose_a && a->ndim == 1) || (o->transpose_b && b->ndim == 1))
        return gp_shape_fail(s, o->transpose_a && a->ndim == 1 ? "transpose_a" : "transpose_b", "a vector, %s, cannot be "
                             "transposed: leave the option out", gp_type_text(o->transpose_a && a->ndim == 1 ? a : b, x));
    if (!gp_product_of(a, o->transpose_a, b, o->transpose_b, &p, &s->out[0]))
        return gp_shape_fail(s, NULL, "%s%s times %s%s does not fit: [..., m, k] times [..., k, n] does",
                             gp_type_text(a, x), o->transpose_a ? " transposed" : "", gp_type_text(b, y),
                             o->transpose_b ? " transposed" : "");
    if (p.m > INT32_MAX || p.n > INT32_MAX || p.k > INT32_MAX || p.batch.n > INT32_MAX)
        return gp_shape_fail(s, NULL, "a matrix has at most %d rows and columns, not those of %s and %s", INT32_MAX,
                             gp_type_text(a, x), gp_type_text(b, y));
    if (a->dtype != GP_F32 && !gp_shape_without(s, "precision", gp_dtype_name(a->dtype)))
        return false;
    return fits_declared(s, o) && (s->partial || choose(s, o, &p));
}

/* ---- open, close ----------------------------------------------------- */

/* With the device as the current one. */
static void make_handle(void *arg)
{
    multiplier *m = arg;
    m->status = gp_gpu.products.create(&m->handle);
}

static void drop_handle(void *arg)
{
    multiplier *m = arg;
    gp_gpu.products.destroy(m->handle);
}

bool gp_multiply_open(const gp_open *g, void **state)
{
    const gp_multiply_opts *o = g->opts;
    multiplier *m = calloc(1, sizeof *m);
    if (!(*state = m))
        return gp_fail(g->errs, GP_E_RESOURCE, g->at, "stage '%s': out of memory", g->name);
    m->tf32 = o->precision == GP_PRECISION_TF32 && g->in[0].dtype == GP_F32;
    m->bias = g->nin > 2 && g->in[2].dtype, m->more = g->nin > 3 && g->in[3].dtype;
    if (o->on_cpu) {
        gp_cblas_open(&m->cpu);
        gp_cblas_single_thread(&m->cpu);
        return true;
    }
    m->dev = g->dev;
    if (o->few)
        return true;
    return gp_gpu_open(GP_GPU_PRODUCTS, NULL, "a product", g->at, g->errs) && gp_device_call(g->dev, make_handle, m)
        && (!m->status || gp_gpu_fail(GP_GPU_PRODUCTS, m->status, g->errs, GP_E_RESOURCE, g->at, g->name,
                                      "cannot be set up", ""));
}

void gp_multiply_close(void *state)
{
    multiplier *m = state;
    if (m && m->handle)
        gp_device_call(m->dev, drop_handle, m);
    free(m);
}

/* ---- record ---------------------------------------------------------- */

typedef struct job {
    multiplier *m;
    gp_product p;
    gp_product_frames frames;
    const void *a, *b, *bias;
    void *made, *work;
    const char *stage;
} job;

/* The choice for this product; it is made anew where the latest one was of another shape. Without a bias where the
 * library has no algorithm that adds it. */
static int choose_algorithm(multiplier *m, const gp_product *p)
{
    const gp_product *q = &m->choice.p;
    bool same = q->dtype && q->m == p->m && q->n == p->n && q->k == p->k && q->batch.n == p->batch.n
             && q->axes == p->axes;
    for (int f = 0; same && f < GP_FACTORS; f++) {
        same = q->batch.step[f] == p->batch.step[f];
        for (int k = 0; k < p->axes; k++)
            same &= q->axis[k].n == p->axis[k].n && q->axis[k].step[f] == p->axis[k].step[f];
    }
    if (same)
        return 0;
    m->choice = (gp_gpu_choice){ .p = *p, .tf32 = m->tf32, .bias = m->bias && p->dtype != GP_F64, .room = room_for(p) };
    int status = gp_gpu.products.choose(m->handle, &m->choice);
    if (status && m->choice.bias) {
        m->choice.bias = false;
        status = gp_gpu.products.choose(m->handle, &m->choice);
    }
    if (status)
        m->choice.p.dtype = GP_NO_DTYPE;
    return status;
}

static bool multiply_gpu(void *stream, const void *arg, gp_errs *errs)
{
    const job *j = arg;
    multiplier *m = j->m;
    int status = choose_algorithm(m, &j->p);
    if (!status)
        status = gp_gpu.products.multiply(m->handle, &m->choice, &j->frames, j->a, j->b, j->bias, j->made, j->work,
                                          stream);
    return !status || gp_gpu_fail(GP_GPU_PRODUCTS, status, errs, GP_E_RUN, (gp_loc){ 0 }, j->stage, "fails", "");
}

static bool multiply_cpu(void *stream, const void *arg, gp_errs *errs)
{
    const job *j = arg;
    gp_cblas_multiply(&j->m->cpu, &j->p, &j->frames, j->a, j->b, j->made);
    return true;
}

/* made = activation(from + bias) + more, of elements of type `t`, as `frames` has them; bias and more may be NULL. */
static bool finish(gp_dcall *c, gp_dtype t, const void *from, const gp_product_frames *frames, const void *bias,
                   const gp_view *more, int activation)
{
    const gp_type *made = &c->out->type;
    size_t n = (size_t)gp_count(made), columns = (size_t)made->dim[made->ndim - 1], to = gp_stride(c->out);
    size_t step = (size_t)frames->axis.step[GP_MADE], bias_step = (size_t)frames->bias, more_step = more ? gp_stride(more) : 0;
    const void *added = more ? more->data : NULL;
    char kernel[40];
    snprintf(kernel, sizeof kernel, "linear_%s_%s", gp_dtype_name(t), gp_dtype_name(made->dtype));
    return gp_launch_map(c, kernel, (int64_t)n,
                         GP_ARGS((void *)&c->out->data, &to, &from, &step, &bias, &bias_step, &added, &more_step, &n, &columns,
                                 &activation));
}

/* All of it, of few rows. */
static bool record_few(gp_dcall *c, const job *j, const gp_view *more)
{
    const gp_multiply_opts *o = c->opts;
    const int64_t *step = j->frames.axis.step;
    unsigned rows = (unsigned)j->p.m, n = (unsigned)j->p.n, k = (unsigned)j->p.k;
    size_t to = (size_t)step[GP_MADE], from = (size_t)step[GP_LEFT], weights = (size_t)step[GP_RIGHT];
    size_t bias = (size_t)j->frames.bias, more_step = more ? gp_stride(more) : 0;
    const void *added = more ? more->data : NULL;
    float epsilon = o->layer_norm > FLT_MIN ? (float)fmin(o->layer_norm, FLT_MAX) : o->layer_norm > 0 ? FLT_MIN : 0;
    bool wide = is_wide(&j->p);
    unsigned high = (unsigned)high_of(&j->p), blocks = (n + high - 1) / high, most = wide ? BLOCKS : 2 * BLOCKS;
    int fixed = (c->constants >> 1 & 1) && (!j->bias || (c->constants >> 2 & 1));
    gp_dim3 grid = { blocks < most ? blocks : most, 1, (unsigned)c->n };
    gp_dim3 block = { (unsigned)(wide ? WARPS : warps_of(&j->p)) * WARP, 1, 1 };
    const char *kernel = wide ? "linear_few_wide_f16" : high == 16 ? "linear_few_16_f16"
                       : k > SHORT ? "linear_few_8_long_f16" : "linear_few_8_f16";
    return gp_launch(c, kernel, grid, block, shared_of(o, &j->p),
                     GP_ARGS((void *)&j->made, &to, (void *)&j->a, &from, (void *)&j->b, &weights, (void *)&j->bias, &bias,
                             &added, &more_step, &rows, &n, &k, (void *)&o->activation, &epsilon, &fixed));
}

/* To f32, in scratch memory. */
static bool widen(gp_dcall *c, const gp_view *v, void *to)
{
    size_t n = (size_t)gp_count(&v->type), step = c->scratch_stride / sizeof(float), from = gp_stride(v);
    return gp_launch_typed(c, "cast_f16", GP_F32, (int64_t)n, GP_ARGS(&to, &step, (void *)&v->data, &from, &n));
}

/* The rows of the factor on the left to mean 0 and deviation 1: those of all frames before what the library works in,
 * which is one area for all; on a CPU each frame's in its own part. */
static bool normalize(gp_dcall *c, job *j, gp_view *left)
{
    const gp_multiply_opts *o = c->opts;
    size_t bytes = normalized(o, &left->type), from = gp_stride(left), to;
    double epsilon = o->layer_norm;
    gp_lanes l = gp_lanes_of(&left->type, left->type.ndim - 1, left->type.ndim - 1);
    gp_view made = { .data = c->scratch, .stride = o->on_cpu ? c->scratch_stride : bytes, .type = left->type,
                     .rows = left->rows };
    to = gp_stride(&made);
    j->work = (char *)c->scratch + (o->on_cpu ? bytes : bytes * (size_t)c->n);
    j->a = made.data, j->frames.axis.step[GP_LEFT] = (int64_t)to;
    if (!gp_launch_lines(c, "normalize_lines_deviation", &l, GP_ARGS(&made.data, &to, &left->data, &from, &l, &epsilon)))
        return false;
    *left = made;
    return true;
}

bool gp_multiply_record(gp_dcall *c)
{
    const gp_multiply_opts *o = c->opts;
    multiplier *m = c->state;
    gp_view left = c->in[0];
    const gp_view *a = &left, *b = &c->in[1];
    const void *bias = m->bias ? c->in[2].data : NULL;
    const gp_view *more = m->more ? &c->in[3] : NULL;
    job j = { .m = m, .a = a->data, .b = b->data, .bias = bias, .made = c->out->data, .work = c->scratch,
              .stage = c->name, .frames = { { .n = c->n }, bias ? (int64_t)gp_stride(&c->in[2]) : 0 } };
    gp_dtype t = a->type.dtype;
    const gp_view *of[] = { a, b, c->out };
    for (int f = 0; f < GP_FACTORS; f++)
        j.frames.axis.step[f] = (int64_t)gp_stride(of[f]);
    gp_type made;
    gp_product_of(&a->type, o->transpose_a, &b->type, o->transpose_b, &j.p, &made);

    if (!o->on_cpu && is_few(o, &j.p))
        return record_few(c, &j, more);
    if (o->layer_norm > 0 && !normalize(c, &j, &left))
        return false;
    if (!o->on_cpu) {
        if (!gp_call_library(c, multiply_gpu, &j, sizeof j))
            return false;
        bias = m->choice.bias ? NULL : bias;
    } else {
        if (t == GP_F16) {
            size_t at[GP_FACTORS];
            char *work = j.work;
            scratch_f32(&a->type, &b->type, &made, at);
            j.a = work + at[GP_LEFT], j.b = work + at[GP_RIGHT], j.made = work + at[GP_MADE];
            if (!widen(c, a, (void *)j.a) || !widen(c, b, (void *)j.b))
                return false;
            t = j.p.dtype = GP_F32;
            for (int f = 0; f < GP_FACTORS; f++)
                j.frames.axis.step[f] = (int64_t)(c->scratch_stride / sizeof(float));
        }
        if (!gp_call_library(c, multiply_cpu, &j, sizeof j))
            return false;
    }
    return (!bias && !more && !o->activation && t == c->out->type.dtype)
        || finish(c, t, j.made, &j.frames, bias, more, o->activation);
}
