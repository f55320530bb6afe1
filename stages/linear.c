/* linear.c - a layer of a network: activation(in weights^T + bias) + add, as torch.nn.functional.linear has it,
 * behind torch.nn.functional.layer_norm if that is asked for; see
 * stages/matmul/. */
#include "multiply.h"

static bool shape(gp_shape *s)
{
    gp_multiply_opts *o = (gp_multiply_opts *)s->opts;
    const gp_type *in = &s->in[0], *weights = &s->in[1], *bias = &s->in[2], *add = &s->in[3];
    char x[128], y[128];
    if (weights->ndim != 2 || in->dim[in->ndim - 1] != weights->dim[1])
        return gp_shape_fail(s, NULL, "weights of %s do not fit %s: [n, k] fits [..., k]", gp_type_text(weights, y),
                             gp_type_text(in, x));
    if (s->nin > 2 && bias->dtype && (bias->ndim != 1 || bias->dim[0] != weights->dim[0]))
        return gp_shape_fail(s, NULL, "a bias of %s does not fit weights of %s: [%lld] does, a number for each row",
                             gp_type_text(bias, x), gp_type_text(weights, y), (long long)weights->dim[0]);
    if (!s->partial)
        o->transpose_b = true;
    return gp_multiply_shape(s)
        && (s->nin < 4 || !add->dtype || gp_type_same(add, &s->out[0])
            || gp_shape_fail(s, NULL, "'%s' of %s does not fit what is made, %s: they need one shape", s->in_name[3],
                             gp_type_text(add, x), gp_type_text(&s->out[0], y)));
}

static const gp_port in[] = {
    { "in", GP_MULTIPLY_TYPES, .help = "[..., k]" },
    { "weights", GP_MULTIPLY_TYPES, .help = "[n, k], of the same type" },
    { "bias", GP_MULTIPLY_TYPES, .optional = true, .help = "[n]" },
    { "add", GP_MULTIPLY_TYPES, .optional = true, .help = "of the shape of `out`: what is added behind the activation" },
    { 0 }
};
static const gp_port out[] = { { "out", GP_MULTIPLY_TYPES, .help = "[..., n]" }, { 0 } };

static const gp_opt options[] = {
    { GP_ENUM(gp_multiply_opts, activation), .def = "none", .choices = "none|relu|gelu|sigmoid|tanh",
      .help = "of each number; gelu is x / 2 (1 + erf(x / sqrt 2))" },
    GP_PRECISION,
    { GP_FLOAT(gp_multiply_opts, layer_norm), .def = "0", .min = 0, .max = 1e300,
      .help = "epsilon: each vector is brought to mean 0 and deviation 1 before, as by `normalize` with `axes: [-1]`; 0: "
              "it is not" },
    { 0 }
};

const gp_kind gp_kind_linear = {
    GP_KIND("linear"), .field = "arrays",
    .also = "dense",
    .help = "vectors times weights, with bias, activation and what is added",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(gp_multiply_opts),
    .any_shape = true, .calls_library = true, .by_place = true, .shape = shape, .open = gp_multiply_open,
    .close = gp_multiply_close, .record = gp_multiply_record,
};
