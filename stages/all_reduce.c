/* all_reduce.c - element by element the sum, mean, least or most of what all ranks have, in the order of ranks. */
#include <string.h>
#include "rounds.h"

enum { SUM, MEAN, MIN, MAX };
struct opts { int op; };

static bool shape(gp_shape *s)
{
    const struct opts *o = s->opts;
    s->out[0] = s->in[0];
    s->serial = true;
    bool is_float = s->in[0].dtype == GP_F32 || s->in[0].dtype == GP_F64;
    return is_float || o->op != MEAN
        || gp_shape_fail(s, "op", "the mean of integers (%s) is none: 'cast' them to f32 before",
                         gp_dtype_name(s->in[0].dtype));
}

static bool open_stage(const gp_open *o, void **state)
{
    *state = gp_rounds_open(o, gp_bytes(&o->in[0]), true);
    return *state != NULL;
}

/* Of element i of the ranks that are there. Integers are added as unsigned ones, which wrap around; a NaN stays. */
#define FOLD(ctype, wide) do {                                                               \
        for (size_t i = 0; i < n; i++) {                                                     \
            wide sum = 0;                                                                    \
            ctype most = 0;                                                                  \
            int k = 0;                                                                       \
            for (int q = 0; q < r->ranks; q++) {                                             \
                ctype x;                                                                     \
                if (!r->there[q])                                                            \
                    continue;                                                                \
                memcpy(&x, all + ((size_t)q * n + i) * sizeof x, sizeof x);                  \
                sum += (wide)x;                                                              \
                if (!k++ || x != x || (op == MIN ? x < most : x > most))                     \
                    most = most != most ? most : x;                                          \
            }                                                                                \
            ((ctype *)to)[i] = op == MIN || op == MAX ? most                                 \
                             : op == MEAN ? (ctype)(sum / (wide)k) : (ctype)sum;             \
        }                                                                                    \
    } while (0)

static void fold(const gp_rounds *r, int op, gp_dtype dtype, const char *all, size_t n, void *to)
{
    switch (dtype) {
    case GP_F32: FOLD(float, double); break;
    case GP_F64: FOLD(double, double); break;
    case GP_I32: FOLD(int32_t, uint32_t); break;
    case GP_U32: FOLD(uint32_t, uint32_t); break;
    case GP_I64: FOLD(int64_t, uint64_t); break;
    default:     FOLD(uint64_t, uint64_t);
    }
}

static bool run(gp_call *c, gp_frame *f, int n)
{
    (void)n;
    const struct opts *o = c->opts;
    const gp_view *x = &f->in[0];
    const char *all;
    f->status = gp_round(c, c->state, f, &x->type, x->data, gp_bytes(&x->type), &all);
    if (f->status == GP_OK)
        fold(c->state, o->op, x->type.dtype, all, (size_t)gp_count(&x->type), f->out[0].data);
    return true;
}

#define INTEGERS (GP_ACCEPT(GP_I32) | GP_ACCEPT(GP_U32) | GP_ACCEPT(GP_I64) | GP_ACCEPT(GP_U64))
#define NUMBERS (GP_ACCEPT(GP_F32) | GP_ACCEPT(GP_F64) | INTEGERS)
static const gp_port in[] = { { "in", NUMBERS, .help = "numbers, alike on all ranks" }, { 0 } };
static const gp_port out[] = { { "out", NUMBERS, .help = "the same on all ranks" }, { 0 } };

static const gp_opt options[] = {
    { GP_ENUM(struct opts, op), .def = "sum", .choices = "sum|mean|min|max",
      .help = "floats are summed in f64 in the order of ranks, integers wrap around; min and max find a NaN" },
    { 0 }
};

const gp_kind gp_kind_all_reduce = {
    GP_KIND("all_reduce"), .field = "ranks", .also = "allreduce",
    .help = "frame k of all ranks, element by element: their sum, mean, min or max",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts), .collective = true,
    .shape = shape, .open = open_stage, .close = gp_rounds_close, .run = run, .finish = gp_rounds_finish,
};
