/* scatter.c - writes what comes in at given places along an axis, as numpy.put_along_axis; see kernels/gather.cu.
 *
 * All other elements stay, so that it is for a state, or says `zero: true`. Places are checked as those of gather. */
#include <stdio.h>
#include <string.h>
#include "axes.h"
#include "device.h"

enum { CLIP, WRAP, SKIP, CHECKED };        /* as in kernels/gather.cu */
enum { BLOCK = 256, WORD = 16, BLOCKS = 1 << 14 };

struct opts {
    gp_ints index;
    int64_t axis;
    int mode;
    int64_t places;                    /* along that axis, as shape() found; a frame with fewer rows has as many */
};

/* Checks the places that the file lists. */
static bool check_places(gp_shape *s, const struct opts *o, int64_t n, int axis)
{
    const gp_node *list = gp_shape_node(s, "index");
    char text[128];
    for (int i = 0; i < o->index.n; i++) {
        gp_loc at = list && list->kind == GP_LIST ? list->item[i]->at : gp_shape_loc(s, "index");
        if (o->index.v[i] < -n || o->index.v[i] >= n)
            return gp_shape_fail_at(s, at, "there is no place %lld along axis %d of %s", (long long)o->index.v[i], axis,
                                    gp_type_text(&s->out[0], text));
        for (int k = 0; k < i; k++)
            if ((o->index.v[k] - o->index.v[i]) % n == 0)
                return gp_shape_fail_at(s, at, "the place %lld is given twice", (long long)o->index.v[i]);
    }
    return true;
}

static bool shape(gp_shape *s)
{
    struct opts *o = (struct opts *)s->opts;
    const gp_type *in = &s->in[0], *port = s->nin > 1 && s->in[1].ndim ? &s->in[1] : NULL;
    gp_type *out = &s->out[0], fits = *in;
    int64_t m = port ? port->dim[0] : o->index.n;
    char a[128], b[128];
    int axis;

    if (!gp_axis_of(s, "axis", o->axis, in, &axis))
        return false;
    if (!port == !o->index.n)
        return gp_shape_fail(s, port ? "index" : NULL, port ? "'index' is given twice, as an option and as an input; leave one out"
                             : "no places; give 'index: [...]', or connect the input 'index'");
    if (port && port->ndim > 1)
        return gp_shape_fail(s, NULL, "the input 'index' is a list of places, with one axis, not %s", gp_type_text(port, a));
    if (port && !s->partial && !gp_shape_node(s, "mode"))
        return gp_shape_fail(s, NULL, "what the input 'index' has is known when it comes: say with 'mode' what becomes of "
                             "what is for a place that there is not: clip, wrap or skip");
    if (!port && !gp_shape_without(s, "mode", "places that are listed, which are checked"))
        return false;
    if (in->dim[axis] != m)
        return gp_shape_fail(s, NULL, "%s has %lld along axis %d, and there are %lld places", gp_type_text(in, a),
                             (long long)in->dim[axis], axis, (long long)m);
    const gp_node *zero = gp_shape_node(s, "zero");
    if (!s->partial && !gp_shape_is_state(s, -1, 0) && !(zero && zero->kind == GP_SCALAR && !strcmp(zero->text, "true")))
        return gp_shape_fail(s, NULL, "what is not written has to be there already: let the output be a state, or set "
                             "'zero: true', so that it is 0");
    if (!out->dtype || !out->ndim)
        return gp_shape_fail(s, NULL, "how many places there are is not known: declare dtype and shape of the output under "
                             "'buffers'");
    if (s->partial && out->ndim == in->ndim)
        out->dim[axis] = o->places;
    fits.dim[axis] = out->ndim == in->ndim ? out->dim[axis] : 0;
    if (!gp_type_same(&fits, out))
        return gp_shape_fail(s, NULL, "%s does not go to places along axis %d of %s", gp_type_text(in, a), axis,
                             gp_type_text(out, b));
    if (m > UINT32_MAX - 1)
        return gp_shape_fail(s, NULL, "%lld places are too many: at most 2^32 - 2", (long long)m);
    if (!s->partial)
        o->places = out->dim[axis];
    s->by_place = axis == 0;
    s->table = port ? 0 : (size_t)o->index.n * sizeof *o->index.v;
    s->scratch = port && m > 1 ? (size_t)out->dim[axis] * sizeof(unsigned) : 0;
    return port || s->partial || check_places(s, o, out->dim[axis], axis);
}

static bool table(const gp_table_call *t)
{
    const struct opts *o = t->opts;
    for (int i = 0; i < o->index.n; i++)
        ((int64_t *)t->data)[i] = o->index.v[i];
    return true;
}

static bool record(gp_dcall *c)
{
    const struct opts *o = c->opts;
    const gp_view *x = c->in, *y = c->out, *port = c->in[1].type.ndim ? &c->in[1] : NULL;
    const gp_type *t = &x->type;
    int axis = gp_axis(o->axis, t->ndim), mode = port ? o->mode : CHECKED;
    gp_lanes at = gp_lanes_of(t, axis, axis);
    size_t n = (size_t)y->type.dim[axis], run = at.inner * gp_dtype_size(t->dtype), word = WORD;
    const void *index = port ? port->data : c->table;
    void *last = port && at.rows > 1 ? c->scratch : NULL;
    const char *name = gp_dtype_name(port ? port->type.dtype : GP_I64);
    bool cpu = gp_rec_on_cpu(c);
    char kernel[32];

    while (run % word)
        word /= 2;
    size_t words = run / word;
    snprintf(kernel, sizeof kernel, "scatter_last_%s", name);
    if (last && (!gp_fill(c, last, 0, n * sizeof(unsigned))
                 || !gp_launch(c, kernel, (gp_dim3){ cpu ? 1 : gp_blocks((int64_t)at.rows, BLOCK, BLOCKS), 1, 1 },
                               (gp_dim3){ cpu ? 1 : BLOCK, 1, 1 }, 0, GP_ARGS(&last, &index, &n, &at.rows, &mode))))
        return false;
    snprintf(kernel, sizeof kernel, "scatter_%zu_%s", word, name);
    unsigned across = cpu ? 1 : gp_blocks((int64_t)at.rows, 1, BLOCKS);
    gp_dim3 grid = { 1, 1, 1 };
    if (!cpu)
        grid.x = gp_blocks((int64_t)words, BLOCK, 64), grid.y = across * gp_blocks((int64_t)at.outer, 1, BLOCKS / across);
    return gp_launch(c, kernel, grid, (gp_dim3){ cpu ? 1 : BLOCK, 1, 1 }, 0,
                     GP_ARGS((void *)&y->data, (void *)&x->data, &index, &last, &at.outer, &n, &at.rows, &words, &across,
                             &mode));
}

static const gp_port in[] = {
    { "in", GP_ACCEPT_ANY, .help = "any array, with as many elements along the axis as there are places" },
    { "index", GP_ACCEPT(GP_I32) | GP_ACCEPT(GP_I64), .optional = true,
      .help = "the places, a list, in place of the option; of one that is there several times the last counts" },
    { 0 }
};
static const gp_port out[] = {
    { "out", GP_ACCEPT_ANY, .help = "a state, or with `zero: true` any buffer that is declared: out[i, index[j], k] = in[i, j, k]" },
    { 0 }
};

static const gp_opt options[] = {
    { GP_INTS(struct opts, index), .help = "the places, from 0, or negative from the last" },
    { GP_INT(struct opts, axis), .def = "0", GP_AXIS_RANGE, .help = "along which they are, negative from the last" },
    { GP_ENUM(struct opts, mode), .choices = "clip|wrap|skip",
      .help = "needed with the input `index`: where that goes whose place there is not, as all negative ones are: to the "
              "nearest, to the one that is reached by counting on from the other end, or nowhere" },
    { 0 }
};

const gp_kind gp_kind_scatter = {
    GP_KIND("scatter"), .field = "arrays", .also = "put index_copy",
    .help = "writes to places along an axis of a state, which keeps the rest",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .any_shape = true, .by_place = true, .shape = shape, .record = record, .table = table,
};
