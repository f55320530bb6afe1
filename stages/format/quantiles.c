/* quantiles.c - see quantiles.h. Lines of the last axes are taken as they lie; of others the frame is first copied, with
 * these axes last. */
#include <stdio.h>
#include "device.h"
#include "quantile.h"
#include "quantiles.h"
#include "sort.h"
#include "strided.h"

enum { BLOCK = 256, BLOCKS = 1 << 14, BINS = 256 };   /* BINS as in kernels/quantile.cu */

static size_t up(size_t n) { return (n + 255) / 256 * 256; }

static bool are_last(unsigned axes, int ndim)
{
    unsigned above = axes & -axes;
    return axes + above == 1u << ndim;
}

static quantile_work work_of(const gp_type *t, unsigned axes, int count)
{
    quantile_work w = { .lines = 1, .n = 1, .count = count };
    for (int k = 0; k < t->ndim; k++)
        *(axes >> k & 1 ? &w.n : &w.lines) *= (size_t)t->dim[k];
    while (w.log_size < LOG_SIZE && (size_t)1 << w.log_size < w.n)
        w.log_size++;
    w.places = up(w.lines * sizeof(unsigned));
    w.bins = w.places + up(w.lines * 2 * (size_t)count * sizeof(quantile_place));
    return w;
}

static size_t bytes_of(const quantile_work *w)
{
    return w->n <= SIZE ? 0 : w->bins + up(w->lines * 2 * (size_t)w->count * BINS * sizeof(unsigned));
}

size_t gp_quantile_scratch(const gp_type *in, unsigned axes, int count)
{
    quantile_work w = work_of(in, axes, count);
    return bytes_of(&w) + (are_last(axes, in->ndim) ? 0 : gp_bytes(in));
}

/* The input with these axes last, in the scratch from `data` on. */
static bool turn(gp_dcall *c, unsigned axes, void *data, gp_view *made)
{
    const gp_type *in = &c->in->type;
    gp_strided s = { .each = gp_dtype_size(in->dtype) };
    *made = (gp_view){ .data = data, .type = *in, .stride = c->scratch_stride };
    for (int last = 0; last < 2; last++)
        for (int k = 0; k < in->ndim; k++)
            if ((int)(axes >> k & 1) == last) {
                s.axis[s.axes].n = made->type.dim[s.axes] = in->dim[k];
                s.axis[s.axes++].from = gp_strided_step(in, k);
            }
    for (int k = 0; k < s.axes; k++)
        s.axis[k].to = gp_strided_step(&made->type, k);
    made->rows = made->type.dim[0];
    return gp_strided_record(c, c->in, 0, made, 0, s);
}

static gp_dim3 grid_of(const gp_dcall *c, size_t blocks, int groups)
{
    return (gp_dim3){ gp_blocks((int64_t)blocks, 1, gp_rec_on_cpu(c) ? 1 : BLOCKS), (unsigned)groups, (unsigned)c->n };
}

static bool queue_long(gp_dcall *c, const gp_view *x, quantile_work *w, const double *q, gp_dim3 block)
{
    const char *type = gp_dtype_name(x->type.dtype);
    const gp_view *y = c->out;
    const int groups = (2 * w->count + QUANTILE_GROUP - 1) / QUANTILE_GROUP;
    const size_t chunks = (w->n + QUANTILE_CHUNK - 1) / QUANTILE_CHUNK;
    const gp_dim3 one = grid_of(c, w->lines, groups), some = grid_of(c, w->lines * chunks, groups);
    size_t xs = gp_stride(x), ys = gp_stride(y), stride = c->scratch_stride;
    char count[32], end[32];
    snprintf(count, sizeof count, "quantile_count_%s", type);
    snprintf(end, sizeof end, "quantile_end_%s", type);
    int begin = 1, shift = 8 * (x->type.dtype == GP_F16 ? 4 : (int)gp_dtype_size(x->type.dtype));
    bool ok = gp_launch(c, "quantile_next", one, block, 0, GP_ARGS(&c->scratch, &stride, &q, w, &begin));
    for (begin = 0; ok && shift;) {
        shift -= 8;
        ok = gp_launch(c, count, some, block, QUANTILE_GROUP * BINS * sizeof(unsigned),
                       GP_ARGS((void *)&x->data, &xs, &c->scratch, &stride, w, &shift))
          && gp_launch(c, "quantile_next", one, block, 0, GP_ARGS(&c->scratch, &stride, &q, w, &begin));
    }
    return ok && gp_launch(c, end, grid_of(c, (w->lines * (size_t)w->count + BLOCK - 1) / BLOCK, 1), block, 0,
                           GP_ARGS((void *)&y->data, &ys, &c->scratch, &stride, &q, w));
}

bool gp_quantile_record(gp_dcall *c, unsigned axes, int count, const double *q)
{
    quantile_work w = work_of(&c->in->type, axes, count);
    const gp_dim3 block = { gp_rec_on_cpu(c) ? 1 : BLOCK, 1, 1 };
    gp_view x = *c->in;
    const gp_view *y = c->out;
    char kernel[32];
    if (!are_last(axes, x.type.ndim) && !turn(c, axes, (char *)c->scratch + bytes_of(&w), &x))
        return false;
    if (w.n > SIZE)
        return queue_long(c, &x, &w, q, block);
    size_t xs = gp_stride(&x), ys = gp_stride(y), beside = SIZE >> w.log_size;
    size_t key = gp_dtype_size(x.type.dtype) == 8 ? 8 : 4;
    snprintf(kernel, sizeof kernel, "quantile_short_%s", gp_dtype_name(x.type.dtype));
    return gp_launch(c, kernel, grid_of(c, (w.lines + beside - 1) / beside, 1), block, SIZE * key,
                     GP_ARGS((void *)&y->data, &ys, &x.data, &xs, &q, &w));
}
