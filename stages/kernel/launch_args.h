/* launch_args.h - what the stage `kernel` gives to a launch: arguments (launch_args.c), which are
 * compared with the kernel's parameters (params.c) and reads (bounds.c), block and grid (grid.c). */
#ifndef GP_LAUNCH_ARGS_H
#define GP_LAUNCH_ARGS_H

#include "code.h"

enum { GP_MAX_ARGS = 64 };         /* batched: a pointer counts twice */

typedef struct gp_karg {
    enum { GP_INPUT, GP_OUTPUT, GP_STRIDE_IN, GP_STRIDE_OUT, GP_FRAME_INFO, GP_VALUE } what;
    int port;
    gp_dtype dtype;                /* of a value */
    const gp_node *value;
} gp_karg;

typedef struct gp_kargs {
    gp_karg arg[GP_MAX_ARGS];
    const char *type[GP_MAX_ARGS]; /* in C */
    gp_loc at[GP_MAX_ARGS];        /* in the YAML */
    int n;
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
/* Does the entry of `code` take them? Also true where its text leaves that open. */
bool gp_kargs_check(gp_shape *s, const gp_node *args, const gp_kargs *a, gp_cu *code);
/* The name of the entry's k-th parameter; NULL: it has none that is plain. */
const gp_tok *gp_kargs_name(const gp_cu *code, int k);
/* False, with an error, where the entry, whose grid was left out, plainly reads out of the bounds
 * of an input that is smaller than that. */
bool gp_kargs_bounds(gp_shape *s, const gp_kargs *a, const gp_cu *code);
/* The value of one argument in a launch. */
bool gp_karg_value(const gp_dcall *c, const gp_ports *p, const gp_karg *a, gp_kvalue *v);

/* How the threads of a launch lie. */
typedef struct gp_kgrid {
    const gp_node *given;          /* the option `grid`, or NULL: a thread for each element, */
    int axes;                      /* ... along so many axes; 1: all along x; 0: one thread */
    gp_dim3 block;
    bool batched;                  /* blockIdx.z is the frame */
} gp_kgrid;

/* Reads `block` and `grid`, and where `grid` is left out finds out what the entry of `code`
 * wants. False after errors. */
bool gp_kgrid_read(gp_shape *s, const gp_ints *block, gp_cu *code, gp_kgrid *g);
/* The grid of a launch. */
bool gp_kgrid_of(const gp_dcall *c, const gp_ports *p, const gp_kgrid *g, gp_dim3 *grid);

/* Evaluates an option at run time. */
bool gp_ports_eval(const gp_dcall *c, const gp_ports *p, const gp_node *n, gp_num *out);

#endif
