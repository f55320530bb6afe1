/* gather.c - what lies at given places along an axis, as numpy.take; see kernels/gather.cu.
 *
 * A place that there is not is never read: of indices that the file has it is an error before anything runs, and of
 * those that come with the frames `mode`, which has no default, says what is taken instead. */
#include <stdio.h>
#include "axes.h"
#include "device.h"

enum { CLIP, WRAP, ZERO, CHECKED };        /* as in kernels/gather.cu */
enum { BLOCK = 256, DEEP = 64, BLOCKS = 1 << 14, WORD = 16 };

struct opts {
    gp_ints index;
    int64_t axis;
    int mode;
};

static const gp_type *port_of(const gp_type *in, int nin) { return nin > 1 && in[1].ndim ? &in[1] : NULL; }

/* Checks the indices that the file lists. */
static bool check_places(gp_shape *s, const struct opts *o, int axis)
{
    const gp_type *in = &s->in[0];
    const gp_node *list = gp_shape_node(s, "index");
    int64_t n = in->dim[axis];
    char text[128];
    for (int i = 0; i < o->index.n; i++)
        if (o->index.v[i] < -n || o->index.v[i] >= n)
            return gp_shape_fail_at(s, list && list->kind == GP_LIST ? list->item[i]->at : gp_shape_loc(s, "index"),
                                    "there is no place %lld along axis %d of %s", (long long)o->index.v[i], axis,
                                    gp_type_text(in, text));
    return true;
}

static bool shape(gp_shape *s)
{
    const struct opts *o = s->opts;
    const gp_type *in = &s->in[0], *port = port_of(in, s->nin);
    gp_type *out = &s->out[0], list = { GP_I64, 1, { o->index.n } };
    const gp_type *index = port ? port : &list;
    char a[128], b[128];
    int axis;

    if (!gp_axis_of(s, "axis", o->axis, in, &axis))
        return false;
    if (port && o->index.n)
        return gp_shape_fail(s, "index", "'index' is given twice, as an option and as an input; leave one out");
    if (!port && !o->index.n)
        return gp_shape_fail(s, NULL, "no indices; give 'index: [...]', or connect the input 'index'");
    if (port && !s->partial && !gp_shape_node(s, "mode"))
        return gp_shape_fail(s, NULL, "what the input 'index' has is known when it comes: say with 'mode' what is "
                             "taken at a place that there is not: clip, wrap or zero");
    if (!port && !gp_shape_without(s, "mode", "indices that are listed, which are checked"))
        return false;
    if (!port && !check_places(s, o, axis))
        return false;
    if (in->ndim - 1 + index->ndim > GP_MAXDIM)
        return gp_shape_fail(s, NULL, "%s at places of %s would have %d axes, and a frame has %d at most",
                             gp_type_text(in, a), gp_type_text(index, b), in->ndim - 1 + index->ndim, GP_MAXDIM);
    *out = (gp_type){ .dtype = in->dtype };
    for (int k = 0; k < axis; k++)
        out->dim[out->ndim++] = in->dim[k];
    for (int k = 0; k < index->ndim; k++)
        out->dim[out->ndim++] = index->dim[k];
    for (int k = axis + 1; k < in->ndim; k++)
        out->dim[out->ndim++] = in->dim[k];
    s->by_place = axis == 0;
    s->table = port ? 0 : (size_t)o->index.n * sizeof *o->index.v;
    s->batched = true;
    return true;
}

static bool table(const gp_table_call *t)
{
    const struct opts *o = t->opts;
    for (int i = 0; i < o->index.n; i++)
        ((int64_t *)t->data)[i] = o->index.v[i];
    return true;
}

/* The largest power of two up to n and `most`, which is one. */
static unsigned part(size_t n, unsigned most)
{
    unsigned p = 1;
    while (p < most && 2 * p <= n)
        p *= 2;
    return p;
}

static bool record(gp_dcall *c)
{
    const struct opts *o = c->opts;
    const gp_view *x = c->in, *y = c->out, *port = c->in[1].type.ndim ? &c->in[1] : NULL;
    const gp_type *t = &x->type;
    int axis = gp_axis(o->axis, t->ndim), mode = port ? o->mode : CHECKED;
    gp_lanes at = gp_lanes_of(t, axis, axis);
    size_t m = port ? (size_t)gp_count(&port->type) : (size_t)o->index.n, index_step = port ? gp_stride(port) : 0;
    size_t run = at.inner * gp_dtype_size(t->dtype), word = WORD;
    const void *index = port ? port->data : c->table;
    char kernel[32];

    while (run % word)
        word /= 2;
    size_t words = run / word, from = x->stride / word, to = y->stride / word;
    snprintf(kernel, sizeof kernel, "gather_%zu_%s", word, gp_dtype_name(port ? port->type.dtype : GP_I64));

    gp_dim3 block = { 1, 1, 1 }, grid = { 1, 1, (unsigned)c->n };
    unsigned across = 1;                   /* blocks along the indices, of those in y */
    if (!gp_rec_on_cpu(c)) {
        block.x = part(words, BLOCK), block.y = part(m, BLOCK / block.x);
        block.z = BLOCK / block.x / block.y;
        block.z = part(at.outer, block.z < DEEP ? block.z : DEEP);
        block.x = BLOCK / block.y / block.z;           /* all of a resident kernel have as many threads */
        across = gp_blocks((int64_t)m, block.y, BLOCKS);
        grid.x = gp_blocks((int64_t)words, block.x, BLOCKS);
        grid.y = across * gp_blocks((int64_t)at.outer, block.z, BLOCKS / across);
    }
    return gp_launch(c, kernel, grid, block, 0,
                     GP_ARGS((void *)&y->data, &to, (void *)&x->data, &from, &index, &index_step, &at.outer, &at.rows,
                             &m, &words, &across, &mode));
}

static const gp_port in[] = {
    { "in", GP_ACCEPT_ANY, .help = "any array" },
    { "index", GP_ACCEPT(GP_I32) | GP_ACCEPT(GP_I64), .optional = true,
      .help = "the places, of any shape, in place of the option: one array for all frames if it is a constant" },
    { 0 }
};
static const gp_port out[] = {
    { "out", GP_ACCEPT_ANY, .help = "the axes of `index` stand where `axis` was: out[i, j, k] = in[i, index[j], k]" },
    { 0 }
};

static const gp_opt options[] = {
    { GP_INTS(struct opts, index),
      .help = "the places, from 0, or negative from the last; one that there is not is an error" },
    { GP_INT(struct opts, axis), .def = "0", GP_AXIS_RANGE, .help = "along which they are, negative from the last" },
    { GP_ENUM(struct opts, mode), .choices = "clip|wrap|zero",
      .help = "needed with the input `index`: what is taken at a place that there is not, as all negative ones are: "
              "the nearest, the one that is reached by counting on from the other end, or 0" },
    { 0 }
};

const gp_kind gp_kind_gather = {
    GP_KIND("gather"), .field = "arrays",
    .help = "what lies at given places along an axis: chosen, sorted, repeated",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .any_shape = true, .by_place = true, .shape = shape, .record = record, .table = table,
};
