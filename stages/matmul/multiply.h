/* multiply.h - what the kinds `matmul` and `linear` share: a product, a bias for each row, an activation, and what is
 * added to that (multiply.c). */
#pragma once

#include "base/product.h"

enum { GP_PRECISION_F32, GP_PRECISION_TF32 };
enum { GP_NO_ACTIVATION, GP_RELU, GP_GELU, GP_SIGMOID, GP_TANH };

/* Options of both kinds, some of which each has; from `on_cpu` on they are gp_multiply_shape()'s. Inputs are a, b,
 * a bias or none, and what is added or none. */
typedef struct gp_multiply_opts {
    bool transpose_a, transpose_b;
    int precision, activation;
    double layer_norm;
    bool on_cpu, few;
    unsigned one[GP_MADE];     /* the axes of batches, from the innermost on, along which a factor has one matrix for all */
} gp_multiply_opts;

/* For shape(), open(), close() and record() of a kind. */
bool gp_multiply_shape(gp_shape *s);
bool gp_multiply_open(const gp_open *o, void **state);
void gp_multiply_close(void *state);
bool gp_multiply_record(gp_dcall *c);

#define GP_MULTIPLY_TYPES (GP_ACCEPT(GP_F16) | GP_ACCEPT(GP_F32) | GP_ACCEPT(GP_F64))
#define GP_PRECISION { GP_ENUM(gp_multiply_opts, precision), .def = "f32", .choices = "f32|tf32", \
                       .help = "tf32: of f32 on a GPU, the factors have 11 significant bits" }
