/* slice.c - a part of an array by an index as NumPy has it, "10:20, ::-1": cut, thinned out, turned round, fewer
 * axes. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "strided.h"

struct opts { const char *index; };

/* The places that are taken of one axis: start:stop:step, or one number, which takes the axis away. */
struct range {
    bool one, has_start, has_stop;
    int64_t start, stop, step;
};

struct ranges { struct range of[GP_MAXDIM + 1]; int n, dots; };    /* dots: `...` stands before of[dots]; -1: none */

enum { FAR = 40 };                             /* bits of a number */

/* ---- the text ------------------------------------------------------------- */

static const char *skip(const char *p)
{
    while (isspace((unsigned char)*p))
        p++;
    return p;
}

/* A number, if there is one: *p moves behind it. False: it is too large. */
static bool number(const char **p, bool *has, int64_t *v)
{
    char *end;
    *p = skip(*p);
    *has = isdigit((unsigned char)**p) || ((**p == '-' || **p == '+') && isdigit((unsigned char)(*p)[1]));
    if (!*has)
        return true;
    *v = strtoll(*p, &end, 10);
    *p = skip(end);
    return llabs(*v) <= (int64_t)1 << FAR;
}

static const char *read_range(const char **p, struct range *r)
{
    bool has_step = false;
    *r = (struct range){ .step = 1 };
    if (!number(p, &r->has_start, &r->start))
        return "has a number beyond 2^40";
    if (**p != ':') {
        r->one = true;
        return r->has_start ? NULL : "is not an index such as \"10:20, ::2\"";
    }
    ++*p;
    if (!number(p, &r->has_stop, &r->stop))
        return "has a number beyond 2^40";
    if (**p == ':') {
        ++*p;
        if (!number(p, &has_step, &r->step))
            return "has a number beyond 2^40";
    }
    return r->step ? NULL : "has a step of 0";
}

/* Says what is wrong with it; NULL: nothing. */
static const char *read_index(const char *p, struct ranges *r)
{
    *r = (struct ranges){ .dots = -1 };
    for (;;) {
        p = skip(p);
        if (!strncmp(p, "...", 3)) {
            if (r->dots >= 0)
                return "has '...' twice";
            r->dots = r->n, p = skip(p + 3);
        } else {
            if (r->n > GP_MAXDIM)
                return "has more axes than a frame can have";
            const char *wrong = read_range(&p, &r->of[r->n++]);
            if (wrong)
                return wrong;
        }
        if (!*p)
            return NULL;
        if (*p++ != ',')
            return "is not an index such as \"10:20, ::2\"";
    }
}

/* ---- one axis --------------------------------------------------------------- */

static int64_t bounded(bool has, int64_t v, int64_t otherwise, int64_t n, int64_t low, int64_t high)
{
    v = !has ? otherwise : v < 0 ? v + n : v;
    return v < low ? low : v > high ? high : v;
}

/* How many elements of n; *first: the first of them. As Python's slice.indices(). */
static int64_t taken(const struct range *r, int64_t n, int64_t *first)
{
    int64_t low = r->step > 0 ? 0 : -1, high = r->step > 0 ? n : n - 1;
    if (r->one) {
        *first = r->start < 0 ? r->start + n : r->start;
        return *first >= 0 && *first < n;
    }
    *first = bounded(r->has_start, r->start, r->step > 0 ? low : high, n, low, high);
    int64_t stop = bounded(r->has_stop, r->stop, r->step > 0 ? high : low, n, low, high);
    int64_t span = r->step > 0 ? stop - *first : *first - stop, step = llabs(r->step);
    return span > 0 ? (span + step - 1) / step : 0;
}

/* The most elements of any n up to `most`: between the places where a bound of the range meets an end, the number only
 * grows or only falls. */
static int64_t most_taken(const struct range *r, int64_t most)
{
    int64_t meets[] = { 1, most, llabs(r->start), llabs(r->stop), llabs(r->start) + llabs(r->stop) }, best = 0, first;
    for (size_t i = 0; i < sizeof meets / sizeof *meets; i++)
        for (int64_t n = meets[i] - 1; n <= meets[i] + 1; n++)
            if (n >= 1 && n <= most && taken(r, n, &first) > best)
                best = taken(r, n, &first);
    return best;
}

/* The range of axis k of `ndim`. */
static struct range range_of(const struct ranges *r, int k, int ndim)
{
    int dots = r->dots < 0 ? r->n : r->dots, filled = ndim - r->n;
    return k < dots ? r->of[k] : k < dots + filled ? (struct range){ .step = 1 } : r->of[k - filled];
}

/* ---- what comes out ----------------------------------------------------------- */

static bool check(gp_shape *s)
{
    const struct opts *o = s->opts;
    struct ranges r;
    const char *wrong = read_index(o->index, &r);
    return !wrong || gp_shape_fail(s, "index", "'%s' %s", o->index, wrong);
}

static bool shape(gp_shape *s)
{
    const struct opts *o = s->opts;
    const gp_type *in = &s->in[0];
    gp_type made = { .dtype = in->dtype };
    unsigned varies = s->in_varies ? s->in_varies[0] : 0;
    struct ranges all;
    int64_t first;
    char text[128];

    read_index(o->index, &all);
    if (all.n > in->ndim)
        return gp_shape_fail(s, "index", "'%s' indexes %d axes, and %s has %d", o->index, all.n, gp_type_text(in,
                text), in->ndim);
    for (int k = 0; k < in->ndim; k++) {
        struct range r = range_of(&all, k, in->ndim);
        int64_t n = varies >> k & 1 ? most_taken(&r, in->dim[k]) : taken(&r, in->dim[k], &first);
        if (n == 0)
            return gp_shape_fail(s, "index", "'%s' selects nothing along axis %d of %s", o->index, k, gp_type_text(in,
                    text));
        if (!r.one)
            made.dim[made.ndim++] = n;
        if (k == 0)
            s->by_place = r.one || r.step != 1 || n < in->dim[k];
    }
    if (made.ndim == 0)
        made.dim[made.ndim++] = 1;
    s->out[0] = made;
    s->batched = true;
    return true;
}

static bool record(gp_dcall *c)
{
    const struct opts *o = c->opts;
    const gp_type *in = &c->in->type;
    gp_strided s = { .axes = in->ndim, .each = gp_dtype_size(in->dtype) };
    struct ranges all;
    int64_t from = 0, to = (int64_t)s.each;
    read_index(o->index, &all);
    for (int k = in->ndim - 1; k >= 0; k--) {
        struct range r = range_of(&all, k, in->ndim);
        int64_t first, step = gp_strided_step(in, k), n = taken(&r, in->dim[k], &first);
        s.axis[k].n = n, s.axis[k].from = r.one ? step : r.step * step, s.axis[k].to = to;
        from += first * step, to *= n;
    }
    return gp_strided_record(c, c->in, from, c->out, 0, s);
}

static const gp_port in[] = { { "in", GP_ACCEPT_ANY, .help = "any array" }, { 0 } };
static const gp_port out[] = { { "out", GP_ACCEPT_ANY, .help = "its part; of an index of numbers only, [1]" }, { 0 } };

static const gp_opt options[] = {
    { GP_TEXT(struct opts, index), .required = true,
      .help = "as in NumPy, start:stop:step for each axis: \"10:20, ::2\"; \"::-1\" reverses an axis, a number "
              "removes it, "
      "\"...\" stands for all axes that are left" },
    { 0 }
};

const gp_kind gp_kind_slice = {
    GP_KIND("slice"), .field = "arrays",
    .also = "flip fliplr flipud mirror",
    .help = "a part by an index as in NumPy: cut, every n-th, flipped, a channel",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .any_shape = true, .by_place = true, .each_shape = true, .check = check, .shape = shape, .record = record,
};
