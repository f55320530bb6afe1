/* expr.h - a typed program of the kind `expr`, as kernels/expr.cpp runs it: what stages/expr makes, in C, and the
 * kernel reads, in C++.
 *
 * A program has registers, each of as many values as a piece of the frame has elements, of the type that they are
 * computed in. Instructions are run one after the other, each for all of a piece. */
#ifndef GP_EXPR_PROGRAM_H
#define GP_EXPR_PROGRAM_H

#include <stddef.h>
#include <stdint.h>
#include "lines.h"

/* The types that are computed in, in C. */
#define GP_EW_REALS(X) X(I32, int32_t) X(U32, uint32_t) X(I64, int64_t) X(U64, uint64_t) X(F32, float) X(F64, double)
#define GP_EW_TYPES(X) GP_EW_REALS(X) X(C64, gp_c64)

typedef enum gp_ew_type {
#define X(NAME, ctype) GP_EW_##NAME,
    GP_EW_TYPES(X)
#undef X
    GP_EW_NTYPES
} gp_ew_type;

/* X(NAME, name, operands, types): each is a function gp_ew_NAME of expr_ops.h, for ALL types, for all REALs, for INTs,
 * for FLOATs, for these and c64 (FIELD), or for the one that is named. Its operands have the type of the instruction;
 * but the first of `select`, which is 0 or 1 in i32. */
#define GP_EW_OPS(X)                                                                              \
    X(NEG, neg, 1, ALL) X(ABS, abs, 1, ALL) X(TRUTH, truth, 1, REAL) X(NOT, not, 1, REAL)         \
    X(INVERT, invert, 1, INT) X(ADD, add, 2, ALL) X(SUB, sub, 2, ALL) X(MUL, mul, 2, ALL)         \
    X(DIV, div, 2, FIELD) X(REM, rem, 2, REAL) X(MIN, min, 2, REAL) X(MAX, max, 2, REAL)          \
    X(LT, lt, 2, REAL) X(LE, le, 2, REAL) X(EQ, eq, 2, ALL) X(NE, ne, 2, ALL)                     \
    X(BAND, band, 2, INT) X(BOR, bor, 2, INT) X(BXOR, bxor, 2, INT) X(SHL, shl, 2, INT)           \
    X(SHR, shr, 2, INT) X(FLOOR, floor, 1, FLOAT) X(CEIL, ceil, 1, FLOAT)                         \
    X(ROUND, round, 1, FLOAT) X(SQRT, sqrt, 1, FLOAT) X(RSQRT, rsqrt, 1, FLOAT)                   \
    X(EXP, exp, 1, FIELD) X(LOG, log, 1, FLOAT) X(LOG2, log2, 1, FLOAT) X(LOG10, log10, 1, FLOAT) \
    X(SIN, sin, 1, FLOAT) X(COS, cos, 1, FLOAT) X(TAN, tan, 1, FLOAT) X(ISNAN, isnan, 1, FIELD)   \
    X(POW, pow, 2, FLOAT) X(ATAN2, atan2, 2, FLOAT) X(HYPOT, hypot, 2, FLOAT)                     \
    X(RE, re, 1, C64) X(IM, im, 1, C64) X(CONJ, conj, 1, C64) X(ARG, arg, 1, C64)                 \
    X(COMPLEX, complex, 2, F32) X(SELECT, select, 3, ALL)

/* The other instructions; d is where the result of one goes. */
#define GP_EW_MOVES(X)                                                                            \
    X(CONVERT)     /* of type `from`, at a */                                                     \
    X(NUMBER)      /* `value`; once, before the first piece */                                    \
    X(SIZE)        /* call.size[a]; once */                                                       \
    X(FRAME)       /* frame.index, or of a = 1 frame.time; once */                                \
    X(INDEX)       /* of the element along axis a */                                              \
    X(LOAD)        /* the elements of input a, of dtype `from` */                                 \
    X(NEAR)        /* the same of elements that lie where c shifts, from that of number b on, lead */ \
    X(THROUGH)     /* a, of type b, as it is loaded where it was stored as dtype `from` */       \
    X(STORE)       /* a, to output d, of dtype `from` */                                          \
    X(FOLD)        /* a, as dtype `from`, to the partials of call.fold; d: a register for that */

typedef enum gp_ew_op {
#define X(NAME, name, n, types) GP_EW_##NAME,
    GP_EW_OPS(X)
#undef X
    GP_EW_NOPS,
    GP_EW_BEFORE = GP_EW_NOPS - 1,
#define X(NAME) GP_EW_##NAME,
    GP_EW_MOVES(X)
#undef X
} gp_ew_op;

typedef union gp_ew_value {
    int32_t i32; uint32_t u32; int64_t i64; uint64_t u64; float f32; double f64;
    float c64[2];
} gp_ew_value;

typedef struct gp_ew_step {
    uint8_t op, type, from;
    uint16_t d, a, b, c;
    gp_ew_value value;         /* of another step that is done once, u64: bytes of an element that it makes */
} gp_ew_step;

/* From an element to one that lies `by` further along an axis of the frame, which `edge` says where it ends: the
 * functions of expr_ops.h. Behind the steps is a list of them. */
typedef enum gp_ew_edge { GP_EW_REFLECT, GP_EW_NEAREST, GP_EW_ZERO, GP_EW_WRAP } gp_ew_edge;
typedef struct gp_ew_shift {
    int32_t axis, edge;
    int64_t by;
} gp_ew_shift;

enum { GP_EW_FAR = 1 << 29 };  /* the most that `by` is; frames of which all indices are less have narrow offsets */

/* The stage's table begins with this; the steps follow. */
typedef struct gp_ew_code {
    uint32_t n, once;          /* steps; those that are done once */
    uint32_t piece;            /* elements in a register */
    uint32_t bytes;            /* of a register */
} gp_ew_code;

enum { GP_EW_AXES = 8, GP_EW_PORTS = 16 };

#ifndef __cplusplus
/* Where the elements of each input lie, as an argument of the kernel that stages/expr/cuda.c writes (expr_ops.h has it
 * for that): strides in elements, 0 along an axis in which the input is repeated. */
typedef struct gp_ew_axes {
    int n;
    int narrow;                /* all offsets fit in 31 bits */
    long long dim[GP_EW_AXES], stride[GP_EW_PORTS][GP_EW_AXES];
} gp_ew_axes;

/* The frame as rows of lines, for a kernel that reads neighbors. Number e < 2^31 divided by dim[k] is
 * e * magic[k] >> up[k]. */
typedef struct gp_ew_tiles {
    long long rows, line;
    unsigned magic[GP_EW_AXES], up[GP_EW_AXES];
} gp_ew_tiles;
#endif

/* A launch; `next`: bytes from one frame to the next. */
typedef struct gp_ew_port { char *data; size_t next; } gp_ew_port;

/* A program with a FOLD: what the fold of kernels/fold.h has, or kernels/lines.h; op 0: sum, 1: min, 2: max, 3:
 * fsum. */
typedef struct gp_ew_partials {
    gp_ew_port to;
    uint64_t outer, rows, inner, lanes, steps;
    int32_t op, by_lines;
    gp_lines lines;
} gp_ew_partials;

typedef struct gp_ew_call {
    gp_ew_port in[GP_EW_PORTS], out[GP_EW_PORTS];
    int64_t stride[GP_EW_PORTS][GP_EW_AXES], dim[GP_EW_AXES];      /* as gp_ew_axes */
    int64_t elements;
    int64_t size[GP_EW_PORTS];
    gp_ew_partials fold;
    const void *frame;
    int32_t axes;
    uint32_t linear;           /* a set of inputs: element e of the frame is their element e */
} gp_ew_call;

#endif
