/* roll.c - elements shifted along axes, or through the whole array; what leaves on one side comes back on the other, as
 * numpy.roll. An axis that is shifted has two parts, which change places; each part of every axis is copied alone. */
#include "axes.h"
#include "strided.h"

struct opts { gp_ints shift, axis; };

static bool check(gp_shape *s)
{
    const struct opts *o = s->opts;
    if (o->shift.n > 1 && !o->axis.n)
        return gp_shape_fail(s, "shift", "'shift' has %d numbers, and there is no 'axis': name one axis for each",
                             o->shift.n);
    if (o->shift.n > 1 && o->shift.n != o->axis.n)
        return gp_shape_fail(s, "shift", "'shift' has %d numbers, and 'axis' has %d: give one number for all, or "
                             "one for each", o->shift.n, o->axis.n);
    return true;
}

static bool shape(gp_shape *s)
{
    const struct opts *o = s->opts;
    int axis[GP_MAXDIM];

    if (!gp_axes_of(s, "axis", &o->axis, &s->in[0], axis))
        return false;
    s->out[0] = s->in[0];
    s->by_place = !o->axis.n;
    for (int i = 0; i < o->axis.n; i++)
        s->by_place |= axis[i] == 0;
    s->batched = true;
    return true;
}

/* How far each axis of `s` is shifted: 0 or more, less than its size. */
static void shifts_of(const struct opts *o, const gp_strided *s, int64_t by[GP_MAXDIM])
{
    for (int k = 0; k < s->axes; k++)
        by[k] = 0;
    for (int i = 0; i < (o->axis.n ? o->axis.n : 1); i++) {
        int k = o->axis.n ? gp_axis(o->axis.v[i], s->axes) : 0;
        int64_t n = s->axis[k].n, rest = o->shift.v[o->shift.n > 1 ? i : 0] % n;
        by[k] = rest < 0 ? rest + n : rest;
    }
}

/* The parts of axis k and of those behind it. */
static bool parts(gp_dcall *c, gp_strided s, const int64_t by[GP_MAXDIM], int k, int64_t from, int64_t to)
{
    if (k == s.axes)
        return gp_strided_record(c, c->in, from, c->out, to, s);
    int64_t n = s.axis[k].n;
    s.axis[k].n = n - by[k];
    if (!parts(c, s, by, k + 1, from, to + by[k] * s.axis[k].to))
        return false;
    s.axis[k].n = by[k];
    return !by[k] || parts(c, s, by, k + 1, from + (n - by[k]) * s.axis[k].from, to);
}

static bool record(gp_dcall *c)
{
    const struct opts *o = c->opts;
    gp_type t = c->in->type;
    int64_t by[GP_MAXDIM];

    if (!o->axis.n)
        t = (gp_type){ t.dtype, 1, { gp_count(&t) } };
    gp_strided s = gp_strided_of(&t, &t);
    shifts_of(o, &s, by);
    return parts(c, s, by, 0, 0, 0);
}

static const gp_port in[] = { { "in", GP_ACCEPT_ANY, .help = "any array" }, { 0 } };
static const gp_port out[] = { { "out", GP_ACCEPT_ANY, .help = "the same elements, shifted" }, { 0 } };

static const gp_opt options[] = {
    { GP_INTS(struct opts, shift), .required = true,
      .help = "how many places further each element goes, or back where it is negative; one number for all of `axis`, "
              "or one for each" },
    { GP_INTS(struct opts, axis), GP_AXIS_RANGE,
      .help = "the axes along which they go, each once; when left out, through the whole array, from the end of one "
              "row to the next" },
    { 0 }
};

const gp_kind gp_kind_roll = {
    GP_KIND("roll"), .field = "arrays", .also = "circshift",
    .help = "shift along axes; what leaves on one side comes back on the other",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .any_shape = true, .by_place = true, .check = check, .shape = shape, .record = record,
};
