/* label.c - the connected components of a mask, numbered as scipy.ndimage.label does; see kernels/label.cu. */
#include <stdio.h>
#include "device.h"

enum { FOUR, EIGHT };

struct opts { int connectivity; };

enum { WORD = 32, CHUNK = 1024, BLOCK = 256, MOST = 0x7fffffff };      /* pixels; WORD, CHUNK as in kernels/label.cu */

/* A frame's scratch: parents, marks of roots, counts of roots. */
static size_t marks_at(size_t n) { return (4 * n + 255) / 256 * 256; }
static size_t counts_at(size_t n) { return marks_at(n) + ((n + WORD - 1) / WORD * 4 + 255) / 256 * 256; }

static bool shape(gp_shape *s)
{
    const gp_type *in = &s->in[0];
    char text[128];
    if (!gp_shape_image(s, false))
        return false;
    if (gp_count(in) > MOST)
        return gp_shape_fail(s, NULL, "labels are i32, for images of at most %d pixels, not %s", MOST,
                             gp_type_text(in, text));
    size_t n = (size_t)gp_count(in);
    s->out[0] = *in;
    s->out[0].dtype = GP_I32;
    s->scratch = counts_at(n) + (n + CHUNK - 1) / CHUNK * 4;
    s->batched = true, s->by_place = 1;
    return true;
}

/* For rows x cols pixels, or words of them. On a CPU one thread has all, which finds roots that were found already. */
static bool launch(gp_dcall *c, const char *kernel, int64_t rows, int64_t cols, void *const *args, int n)
{
    if (gp_rec_on_cpu(c))
        return gp_launch(c, kernel, (gp_dim3){ 1, 1, (unsigned)c->n }, (gp_dim3){ 1, 1, 1 }, sizeof(unsigned), args, n);
    return rows == 1 ? gp_launch_map(c, kernel, cols, args, n) : gp_launch_image(c, kernel, rows, cols, args, n);
}

static bool record(gp_dcall *c)
{
    const struct opts *o = c->opts;
    const gp_view *x = c->in, *y = c->out;
    size_t n = (size_t)gp_count(&x->type), words = (n + WORD - 1) / WORD, chunks = (n + CHUNK - 1) / CHUNK;
    size_t stride = c->scratch_stride / 4, xs = gp_stride(x), ys = gp_stride(y);
    int rows = (int)x->type.dim[0], width = (int)x->type.dim[1], eight = o->connectivity == EIGHT;
    void *parent = c->scratch, *marks = (char *)parent + marks_at(n), *counts = (char *)parent + counts_at(n);
    unsigned block = gp_rec_on_cpu(c) ? 1 : BLOCK;
    char first[32];
    snprintf(first, sizeof first, "label_first_%s", gp_dtype_name(x->type.dtype));
    return launch(c, first, rows, width, GP_ARGS(&parent, &marks, &counts, &stride, (void *)&x->data, &xs, &rows,
                                                 &width, &eight))
        && launch(c, "label_join", rows, width, GP_ARGS(&parent, &stride, &rows, &width, &eight))
        && launch(c, "label_roots", 1, (int64_t)n, GP_ARGS(&parent, &marks, &counts, &stride, &n))
        && gp_launch(c, "label_before", (gp_dim3){ 1, 1, (unsigned)c->n }, (gp_dim3){ block, 1, 1 },
                     block * sizeof(unsigned), GP_ARGS(&counts, &stride, &chunks))
        && launch(c, "label_number", 1, (int64_t)words, GP_ARGS((void *)&y->data, &ys, &marks, &counts, &stride,
                                                                &words))
        && launch(c, "label_spread", 1, (int64_t)n, GP_ARGS((void *)&y->data, &ys, &parent, &stride, &n));
}

static const gp_port in[] = {
    { "in", GP_ACCEPT_REAL, .help = "a mask (H, W): what is not 0 is in a component, NaN too" }, { 0 }
};
static const gp_port out[] = {
    { "out", GP_ACCEPT(GP_I32), .help = "(H, W), i32: 1, 2, ... in the order of the components' first pixels, row "
                                        "after row; 0 outside of all" }, { 0 }
};

static const gp_opt options[] = {
    { GP_ENUM(struct opts, connectivity), .def = "4", .choices = "4|8",
      .help = "neighbors of a pixel: beside, above and below it, or also across its corners" },
    { 0 }
};

const gp_kind gp_kind_label = {
    GP_KIND("label"), .field = "pictures",
    .help = "number the connected components of a mask",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .any_shape = true, .by_place = true, .shape = shape, .record = record,
};
