/* matmul.c - the product of matrices, as numpy.matmul; see stages/matmul/. */
#include "multiply.h"

static const gp_port in[] = {
    { "a", GP_MULTIPLY_TYPES, .help = "[..., m, k], or [k]" },
    { "b", GP_MULTIPLY_TYPES, .help = "[..., k, n], or [k]; of the same type" },
    { 0 }
};
static const gp_port out[] = {
    { "out", GP_MULTIPLY_TYPES, .help = "[..., m, n], of two vectors [1]; where one has axes before the last "
                                        "two that the other lacks, or has 1 there, that is taken for all" },
    { 0 }
};

static const gp_opt options[] = {
    { GP_BOOL(gp_multiply_opts, transpose_a), .help = "`a` is [..., k, m]" },
    { GP_BOOL(gp_multiply_opts, transpose_b), .help = "`b` is [..., n, k]" },
    GP_PRECISION,
    { 0 }
};

const gp_kind gp_kind_matmul = {
    GP_KIND("matmul"), .field = "arrays",
    .also = "dot gemm",
    .help = "the product of two matrices, or of many",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(gp_multiply_opts),
    .any_shape = true, .calls_library = true, .by_place = true, .shape = gp_multiply_shape, .open = gp_multiply_open,
    .close = gp_multiply_close, .record = gp_multiply_record,
};
