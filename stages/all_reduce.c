/* all_reduce.c - element by element the sum, mean, least or most of what all ranks have, in the order of ranks. */
#include "collective.h"

enum { SUM, MEAN, MIN, MAX };
struct opts { gp_collective_opts any; int op; };

static bool shape(gp_shape *s)
{
    const struct opts *o = s->opts;
    s->out[0] = s->in[0];
    s->serial = true;
    bool is_float = s->in[0].dtype == GP_F32 || s->in[0].dtype == GP_F64, extreme = o->op == MIN || o->op == MAX;
    if (!is_float && o->op == MEAN)
        return gp_shape_fail(s, "op", "the mean of integers (%s) is none: 'cast' them to f32 before",
                             gp_dtype_name(s->in[0].dtype));
    size_t bytes = gp_bytes(&s->in[0]);
    int steps = 2 * (s->ranks - 1);
    const gp_traffic traffic = { bytes, (double)bytes * steps / s->ranks, steps };
    return gp_collective_shape(s, is_float && extreme ? "its min and max lose a NaN" : NULL, &traffic);
}

/* Piece by piece, rank after rank, so that a piece stays in the cache. Integers are added as unsigned ones, which wrap
 * around; a NaN stays. */
#define FOLD(ctype, wide) do {                                                               \
        for (size_t from = 0; from < n; from += PIECE) {                                     \
            wide sum[PIECE] = { 0 };                                                         \
            ctype most[PIECE] = { 0 }, *y = (ctype *)to + from;                              \
            size_t many = n - from < PIECE ? n - from : PIECE;                               \
            int k = 0;                                                                       \
            for (int q = 0; q < r->ranks; q++) {                                             \
                const ctype *x = (const ctype *)(const void *)all + (size_t)q * n + from;    \
                if (!r->there[q])                                                            \
                    continue;                                                                \
                for (size_t i = 0; extreme && i < many; i++)                                 \
                    if (!k || x[i] != x[i] || (op == MIN ? x[i] < most[i] : x[i] > most[i])) \
                        most[i] = most[i] != most[i] ? most[i] : x[i];                       \
                for (size_t i = 0; !extreme && i < many; i++)                                \
                    sum[i] += (wide)x[i];                                                    \
                k++;                                                                         \
            }                                                                                \
            for (size_t i = 0; i < many; i++)                                                \
                y[i] = extreme ? most[i] : op == MEAN ? (ctype)(sum[i] / (wide)k) : (ctype)sum[i]; \
        }                                                                                    \
    } while (0)

static void fold(const gp_rounds *r, int op, gp_dtype dtype, const char *all, size_t n, void *to)
{
    enum { PIECE = 512 };
    bool extreme = op == MIN || op == MAX;
    switch (dtype) {
    case GP_F32: FOLD(float, double); break;
    case GP_F64: FOLD(double, double); break;
    case GP_I32: FOLD(int32_t, uint32_t); break;
    case GP_U32: FOLD(uint32_t, uint32_t); break;
    case GP_I64: FOLD(int64_t, uint64_t); break;
    default:     FOLD(uint64_t, uint64_t);
    }
}

static void make(const void *opts, const gp_rounds *r, const gp_view *x, const char *all, size_t n, gp_view *y)
{
    const struct opts *o = opts;
    fold(r, o->op, x->type.dtype, all, n / gp_dtype_size(x->type.dtype), y->data);
}

/* Each rank has the same bits, but f32 are summed in f32, in NCCL's order. */
static int queue(const void *opts, const gp_rounds *r, const gp_view *x, const gp_view *y, void *comm, void *stream)
{
    static const int op[] = { [SUM] = GP_GPU_SUM, [MEAN] = GP_GPU_MEAN, [MIN] = GP_GPU_MIN, [MAX] = GP_GPU_MAX };
    const struct opts *o = opts;
    int type = gp_gpu_type(x->type.dtype);
    return gp_gpu.ranks.all_reduce(x->data, y->data, (size_t)gp_count(&x->type), type, op[o->op], comm, stream);
}

static const gp_collective how = { .make = make, .queue = queue, .some = true };

#define INTEGERS (GP_ACCEPT(GP_I32) | GP_ACCEPT(GP_U32) | GP_ACCEPT(GP_I64) | GP_ACCEPT(GP_U64))
#define NUMBERS (GP_ACCEPT(GP_F32) | GP_ACCEPT(GP_F64) | INTEGERS)
static const gp_port in[] = { { "in", NUMBERS, .help = "numbers, alike on all ranks" }, { 0 } };
static const gp_port out[] = { { "out", NUMBERS, .help = "the same on all ranks that have a frame" }, { 0 } };

static const gp_opt options[] = {
    { GP_ENUM(struct opts, op), .def = "sum", .choices = "sum|mean|min|max",
      .help = "floats are summed by MPI in f64 in the order of ranks, by NCCL in their own type in its order; integers "
              "wrap around;"
              " min and max find a NaN" },
    GP_COLLECTIVE_BY,
    { 0 }
};

const gp_kind gp_kind_all_reduce = {
    GP_KIND("all_reduce"), .field = "ranks", .also = "allreduce",
    .help = "frame k of all ranks, element by element: their sum, mean, min or max",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts), .shape = shape,
    GP_COLLECTIVE(how),
};
