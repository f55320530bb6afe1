/* exchange.c - a strip of rows with those beside it, which the ranks before and after have: rank r has the rows that come
 * after those of rank r - 1. */
#include <string.h>
#include "rounds.h"

enum { ZERO, HOLD, WRAP };
struct opts { int64_t rows; int edge; };

static bool shape(gp_shape *s)
{
    const struct opts *o = s->opts;
    const gp_type *x = &s->in[0];
    s->serial = true;
    s->out[0] = *x;
    s->out[0].dim[0] += 2 * o->rows;
    return x->dim[0] >= o->rows
        || gp_shape_fail(s, "rows", "a strip of %lld rows has no %lld to give to its neighbors", (long long)x->dim[0],
                         (long long)o->rows);
}

/* Of the rows that a rank gives away, the first ones are sent before the last ones. */
static size_t halo_bytes(const struct opts *o, const gp_type *t)
{
    return gp_bytes(t) / (size_t)t->dim[0] * (size_t)o->rows;
}

static bool open_stage(const gp_open *o, void **state)
{
    *state = gp_rounds_open(o, 2 * halo_bytes(o->opts, &o->in[0]), false);
    return *state != NULL;
}

/* The rows beyond an edge, of `row` bytes each: `held` is the row at the edge, `wrapped` are those of the other end. */
static void fill_edge(const struct opts *o, char *to, size_t row, const char *held, const char *wrapped)
{
    for (int64_t i = 0; i < o->rows; i++, to += row)
        if (o->edge == ZERO)
            memset(to, 0, row);
        else
            memcpy(to, o->edge == HOLD ? held : wrapped + (size_t)i * row, row);
}

static bool run(gp_call *c, gp_frame *f, int n)
{
    (void)n;
    const struct opts *o = c->opts;
    gp_rounds *r = c->state;
    const gp_view *x = &f->in[0];
    size_t halo = halo_bytes(o, &x->type), row = halo / (size_t)o->rows, bytes = gp_bytes(&x->type);
    const char *strip = x->data, *all;
    gp_type alike = x->type;           /* strips may have different numbers of rows */
    alike.dim[0] = o->rows;
    memcpy(r->mine, strip, halo);
    memcpy(r->mine + halo, strip + bytes - halo, halo);
    f->status = gp_round(c, r, f, &alike, r->mine, 2 * halo, &all);
    if (f->status != GP_OK)
        return true;
    char *to = f->out[0].data, *end = to + halo + bytes;
    size_t me = (size_t)r->rank, last = (size_t)r->ranks - 1;
    memcpy(to + halo, strip, bytes);
    if (me > 0)
        memcpy(to, all + (me - 1) * 2 * halo + halo, halo);
    else
        fill_edge(o, to, row, strip, all + last * 2 * halo + halo);
    if (me < last)
        memcpy(end, all + (me + 1) * 2 * halo, halo);
    else
        fill_edge(o, end, row, strip + bytes - row, all);
    return true;
}

static const gp_port in[] = { { "in", GP_ACCEPT_ANY, .help = "the rows of this rank" }, { 0 } };
static const gp_port out[] = { { "out", GP_ACCEPT_ANY, .help = "those with `rows` more before and after them" }, { 0 } };

static const gp_opt options[] = {
    { GP_INT(struct opts, rows), .def = "1", .min = 1, .max = 1 << 20, .unit = "rows", .help = "how many of each neighbor" },
    { GP_ENUM(struct opts, edge), .def = "zero", .choices = "zero|hold|wrap",
      .help = "before the first rank and after the last: zeros, the row at the edge again, or the rows of the other end" },
    { 0 }
};

const gp_kind gp_kind_exchange = {
    GP_KIND("exchange"), .field = "ranks", .also = "halo ghost",
    .help = "the rows of this rank, between those of its neighbors: strips",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts), .collective = true,
    .shape = shape, .open = open_stage, .close = gp_rounds_close, .run = run, .finish = gp_rounds_finish,
};
