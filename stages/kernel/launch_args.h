/* launch_args.h - what the stage `kernel` gives to a launch: arguments (launch_args.c), block and grid (grid.c), and what
 * stands beside a compiled kernel (beside.c). */
#pragma once

#include "gpipe/stage.h"

enum { GP_MAX_ARGS = 64 };         /* batched: a pointer counts twice */

typedef struct gp_karg {
    enum { GP_INPUT, GP_OUTPUT, GP_STRIDE_IN, GP_STRIDE_OUT, GP_FRAME_INFO, GP_VALUE, GP_NO_POINTER } what;
    int port;
    gp_dtype dtype;                /* of a value */
    const gp_node *value;
    int64_t multiple;              /* what a compiled kernel takes it to be a multiple of; 0, 1: nothing */
} gp_karg;

typedef struct gp_kargs {
    gp_karg arg[GP_MAX_ARGS];
    const char *type[GP_MAX_ARGS]; /* in C */
    gp_loc at[GP_MAX_ARGS];        /* in the YAML */
    int n, nulls;                  /* nulls: of these the last so many, GP_NO_POINTER */
} gp_kargs;

typedef union gp_kvalue {
    uint8_t u8; int8_t i8; uint16_t u16; int16_t i16; uint32_t u32; int32_t i32;
    uint64_t u64; int64_t i64; float f32; double f64;
    size_t size;
    const void *pointer;
} gp_kvalue;

/* The stage's ports, as shape() saw them. */
typedef struct gp_ports {
    const char *const *in_name, *const *out_name;
    int nin, nout;
} gp_ports;

/* Reads the stage's `args`. False after errors. */
bool gp_kargs_read(gp_shape *s, const gp_node *args, bool batched, gp_kargs *out);
/* The value of one argument in a launch. */
bool gp_karg_value(const gp_dcall *c, const gp_ports *p, const gp_karg *a, gp_kvalue *v);

/* What k.json beside k.cubin says; NULL, 0: nothing. */
typedef struct gp_kbeside {
    const char *path, *name;
    const gp_node *shared, *grid, *params;
    int64_t threads;               /* of a block */
} gp_kbeside;

/* Reads it, if there is one beside the module `path`. False after errors. */
bool gp_kbeside_read(gp_shape *s, const char *path, gp_kbeside *b);
/* Do the arguments suit its parameters? Adds the pointers that are null. False after an error. */
bool gp_kbeside_fit(gp_shape *s, const gp_kbeside *b, gp_kargs *args);

/* How many threads a launch has. */
typedef struct gp_kgrid {
    const gp_node *threads, *grid; /* the options of these names, of which one is given */
    gp_dim3 block;
    bool batched;                  /* blockIdx.z is the frame */
} gp_kgrid;

/* Reads `block`, and `threads` or `grid`. False after errors. */
bool gp_kgrid_read(gp_shape *s, const gp_ints *block, gp_kgrid *g);
/* The grid of a launch. */
bool gp_kgrid_of(const gp_dcall *c, const gp_ports *p, const gp_kgrid *g, gp_dim3 *grid);

/* Evaluates an option at run time. */
bool gp_ports_eval(const gp_dcall *c, const gp_ports *p, const gp_node *n, gp_num *out);
