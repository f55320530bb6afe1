/* mix.c - the sum, mean, least, greatest or last of many frames, element by element. */
#include <stdio.h>
#include "device.h"
#include "sums.h"

enum { SUM, MEAN, MIN, MAX, LAST };
enum { KEEP, DROP };
static const char *const added[] = { "sum", "sum", "min", "max", "last" };

struct opts {
    int op, tail;
    int64_t frames;
};

static bool is_sum(int op) { return op == SUM || op == MEAN; }

static gp_dtype kept(int op, gp_dtype t)
{
    return is_sum(op) ? gp_sum_kept(t, op == MEAN) : t;
}

static bool shape(gp_shape *s)
{
    const struct opts *o = s->opts;
    const gp_type *in = &s->in[0];
    if (!o->frames && o->tail == DROP)
        return gp_shape_fail(s, "tail", "'tail: drop' without 'frames' would drop everything: give "
                             "'frames', or leave out 'tail'");
    s->out[0] = *in;
    if (is_sum(o->op))
        s->out[0].dtype = gp_sum_made(in->dtype, o->op == MEAN);
    s->state = (size_t)gp_count(in) * gp_dtype_size(kept(o->op, in->dtype));
    s->regroup.every = o->frames ? o->frames : INT64_MAX;
    s->regroup.drop_tail = o->tail == DROP;
    s->batched = true;
    return true;
}

static bool record(gp_dcall *c)
{
    const struct opts *o = c->opts;
    const gp_view *x = c->in;
    size_t n = (size_t)gp_count(&x->type), stride = gp_stride(x), frames = (size_t)c->n;
    unsigned first = !c->added;
    char name[40];
    c->n = 1;                          /* the kernel takes all frames, in their order */
    snprintf(name, sizeof name, "mix_add_%s", gp_is_fsum(x->type.dtype, o->op == MEAN) ? "fsum" : added[o->op]);
    return gp_launch_typed(c, name, x->type.dtype, (int64_t)n,
                           GP_ARGS(&c->carried, (void *)&x->data, &stride, &n, &frames, &first));
}

static bool emit(gp_dcall *c)
{
    const struct opts *o = c->opts;
    const gp_view *y = c->out;
    gp_dtype in = c->in[0].type.dtype, sum = kept(o->op, in);
    size_t n = (size_t)gp_count(&y->type);
    double count = (double)c->added;
    return gp_launch_typed(c, o->op == SUM ? "mix_make_sum" : o->op == MEAN ? "mix_make_mean" : "mix_make_same",
                           !is_sum(o->op) ? in : sum == GP_F64 ? y->type.dtype : sum, (int64_t)n,
                           GP_ARGS((void *)&y->data, &c->carried, &n, &count));
}

static const gp_port in[] = { { "in", GP_ACCEPT_REAL, .help = "whole frames" }, { 0 } };
static const gp_port out[] = {
    { "out", GP_ACCEPT_REAL, .help = "one frame for every `frames` of the input; floats and min, max, last keep "
      "their type, sums of integers are i64 (u64 of u64), their means f32" }, { 0 }
};

static const gp_opt options[] = {
    { GP_ENUM(struct opts, op), .required = true, .choices = "sum|mean|min|max|last",
      .help = "floats, and i64 and u64 for a mean, are summed in f64, other integers in 64 bits; min and max keep a NaN; a "
              "mean is of the frames that are no holes" },
    { GP_INT(struct opts, frames), .min = 0, .max = 1048576, .help = "how many frames become one; 0, or left out: all" },
    { GP_ENUM(struct opts, tail), .def = "keep", .choices = "keep|drop",
      .help = "what becomes of the last frames where they are fewer: a frame of these, or nothing" },
    { 0 }
};

const gp_kind gp_kind_mix = {
    GP_KIND("mix"), .field = "regrouping",
    .also = "average avg",
    .help = "sum, mean, min, max or last of many frames, element by element",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .shape = shape, .record = record, .emit = emit,
};
