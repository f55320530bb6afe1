/* test_matmul.c - products beyond stages_cases.c: every order of axes against plain sums, by all that computes them on a
 * CPU and by a stand-in for cuBLASLt; what is declared of cuBLASLt beside its header, where that is there. */
#include "cblas_library.h"
#include "cuda/libraries.h"
#include "iotest.h"
#include "cases.h"

/* ---- what is declared ------------------------------------------------ */

#if defined __has_include
#if __has_include(<cublasLt.h>)
#include <cublasLt.h>

_Static_assert((int)CUDA_R_16F == GP_CUBLAS_F16 && (int)CUDA_R_32F == GP_CUBLAS_F32 && (int)CUDA_R_64F == GP_CUBLAS_F64
               && (int)CUBLAS_COMPUTE_32F == GP_CUBLAS_IN_F32 && (int)CUBLAS_COMPUTE_32F_FAST_TF32 == GP_CUBLAS_IN_TF32
               && (int)CUBLAS_COMPUTE_64F == GP_CUBLAS_IN_F64, "types");
_Static_assert((int)CUBLASLT_MATMUL_DESC_TRANSA == GP_CUBLASLT_TURN_A
               && (int)CUBLASLT_MATMUL_DESC_TRANSB == GP_CUBLASLT_TURN_B
               && (int)CUBLASLT_MATMUL_DESC_EPILOGUE == GP_CUBLASLT_EPILOGUE && CUBLAS_OP_N == 0 && CUBLAS_OP_T == 1
               && (int)CUBLASLT_MATMUL_DESC_BIAS_POINTER == GP_CUBLASLT_BIAS
               && (int)CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE == GP_CUBLASLT_BIAS_STEP
               && (int)CUBLASLT_EPILOGUE_BIAS == GP_CUBLASLT_ADDS_BIAS
               && (int)CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT == GP_CUBLASLT_BATCH
               && (int)CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET == GP_CUBLASLT_STEP
               && (int)CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES == GP_CUBLASLT_ROOM
               && (int)CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK == GP_CUBLASLT_SUMS
               && (int)CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE == GP_CUBLASLT_SUMS_IN_ORDER
               && (int)CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES == GP_CUBLASLT_ALIGNED
               && (int)CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES == GP_CUBLASLT_ALIGNED + 3
               && CUBLAS_STATUS_SUCCESS == 0 && CUBLAS_STATUS_NOT_SUPPORTED == 15, "numbers");
_Static_assert(sizeof(cublasLtMatmulDescOpaque_t) == sizeof(gp_cublaslt_operation)
               && sizeof(cublasLtMatrixLayoutOpaque_t) == sizeof(gp_cublaslt_layout)
               && sizeof(cublasLtMatmulPreferenceOpaque_t) == sizeof(gp_cublaslt_preference)
               && sizeof(cublasLtMatmulAlgo_t) == sizeof((gp_gpu_choice){ 0 }.algorithm)
               && sizeof(cublasLtMatmulHeuristicResult_t) == sizeof(gp_cublaslt_found)
               && offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize) == offsetof(gp_cublaslt_found, room)
               && offsetof(cublasLtMatmulHeuristicResult_t, state) == offsetof(gp_cublaslt_found, status)
               && sizeof(cublasStatus_t) == sizeof(int) && sizeof(cublasOperation_t) == sizeof(int32_t)
               && sizeof(cublasLtEpilogue_t) == sizeof(uint32_t), "sizes");

/* Calls that do not compile if the header has other parameters in these places. */
__attribute__((unused)) static int calls(cublasLtHandle_t h, cublasLtMatmulDesc_t o, cublasLtMatrixLayout_t l,
                                         cublasLtMatmulPreference_t p, cublasLtMatmulHeuristicResult_t *found, int *n,
                                         const cublasLtMatmulAlgo_t *algorithm, void *mem, size_t size,
                                         cudaStream_t stream)
{
    const char *name = cublasLtGetStatusName(CUBLAS_STATUS_SUCCESS);
    size_t version = cublasLtGetVersion();
    return cublasLtCreate(&h) + cublasLtDestroy(h)
         + cublasLtMatmulDescInit_internal(o, size, CUBLAS_COMPUTE_32F, CUDA_R_32F)
         + cublasLtMatmulDescSetAttribute(o, CUBLASLT_MATMUL_DESC_TRANSA, mem, size)
         + cublasLtMatrixLayoutInit_internal(l, size, CUDA_R_32F, (uint64_t)1, (uint64_t)1, (int64_t)1)
         + cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, mem, size)
         + cublasLtMatmulPreferenceInit_internal(p, size)
         + cublasLtMatmulPreferenceSetAttribute(p, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, mem, size)
         + cublasLtMatmulAlgoGetHeuristic(h, o, l, l, l, l, p, 1, found, n)
         + cublasLtMatmulAlgoCheck(h, o, l, l, l, l, algorithm, found)
         + cublasLtMatmul(h, o, mem, mem, l, mem, l, mem, mem, l, mem, l, algorithm, mem, size, stream)
         + (int)version + *name;
}
#endif
#endif

/* ---- a stand-in for cuBLASLt, which computes on the CPU ---------------- */

typedef struct operation {
    int computes, scale;
    int32_t turn_a, turn_b;
    uint32_t epilogue;
    const float *bias;
    int64_t bias_step;
} operation;
typedef struct layout { int type; int64_t rows, columns, ld, step; int32_t n; } layout;
typedef struct preference { uint64_t room; uint32_t sums, aligned[4]; } preference;
_Static_assert(sizeof(operation) <= sizeof(gp_cublaslt_operation) && sizeof(layout) <= sizeof(gp_cublaslt_layout)
               && sizeof(preference) <= sizeof(gp_cublaslt_preference), "they lie in what the caller has");

static preference asked;               /* of the latest algorithm */
static layout asked_for[4];

static int new_operation(gp_cublaslt_operation *o, size_t size, int computes, int scale)
{
    ck_assert_uint_eq(size, sizeof *o);
    memset(o, 0, size);
    *(operation *)(void *)o = (operation){ .computes = computes, .scale = scale };
    return 0;
}

static int set_operation(gp_cublaslt_operation *op, int what, const void *value, size_t size)
{
    operation *o = (operation *)(void *)op;
    void *to = what == GP_CUBLASLT_TURN_A ? (void *)&o->turn_a : what == GP_CUBLASLT_TURN_B ? (void *)&o->turn_b
             : what == GP_CUBLASLT_EPILOGUE ? (void *)&o->epilogue : what == GP_CUBLASLT_BIAS ? (void *)&o->bias
             : what == GP_CUBLASLT_BIAS_STEP ? (void *)&o->bias_step : NULL;
    ck_assert(to && size == (what == GP_CUBLASLT_BIAS ? sizeof(void *) : what == GP_CUBLASLT_BIAS_STEP ? 8 : 4));
    memcpy(to, value, size);
    return 0;
}

static int new_layout(gp_cublaslt_layout *l, size_t size, int type, uint64_t rows, uint64_t columns, int64_t ld)
{
    ck_assert(size == sizeof *l && ld >= (int64_t)rows);
    *(layout *)(void *)l = (layout){ .type = type, .rows = (int64_t)rows, .columns = (int64_t)columns, .ld = ld,
                                     .n = 1 };
    return 0;
}

static int set_layout(gp_cublaslt_layout *to, int what, const void *value, size_t size)
{
    layout *l = (layout *)(void *)to;
    ck_assert(what == GP_CUBLASLT_BATCH ? size == sizeof l->n : what == GP_CUBLASLT_STEP && size == sizeof l->step);
    memcpy(what == GP_CUBLASLT_BATCH ? (void *)&l->n : (void *)&l->step, value, size);
    return 0;
}

static int new_preference(gp_cublaslt_preference *p, size_t size)
{
    ck_assert_uint_eq(size, sizeof *p);
    memset(p, 0, size);
    return 0;
}

static int set_preference(gp_cublaslt_preference *to, int what, const void *value, size_t size)
{
    preference *p = (preference *)(void *)to;
    int i = what - GP_CUBLASLT_ALIGNED;
    ck_assert(what == GP_CUBLASLT_ROOM ? size == 8 : size == 4);
    ck_assert(what == GP_CUBLASLT_ROOM || what == GP_CUBLASLT_SUMS || (i >= 0 && i < 4));
    memcpy(what == GP_CUBLASLT_ROOM ? (void *)&p->room : what == GP_CUBLASLT_SUMS ? (void *)&p->sums
           : (void *)&p->aligned[i < 0 ? 0 : i], value, size);
    return 0;
}

static int find(void *handle, gp_cublaslt_operation *o, gp_cublaslt_layout *a, gp_cublaslt_layout *b,
                gp_cublaslt_layout *c, gp_cublaslt_layout *d, gp_cublaslt_preference *p, int want,
                gp_cublaslt_found *found, int *n)
{
    gp_cublaslt_layout *l[] = { a, b, c, d };
    ck_assert_int_eq(want, 1);
    memcpy(&asked, p, sizeof asked);
    for (int i = 0; i < 4; i++)
        memcpy(&asked_for[i], l[i], sizeof asked_for[i]);
    *found = (gp_cublaslt_found){ .algorithm = { 4711 } };
    *n = 1;
    return 0;
}

static bool same(const layout *a, const layout *b)
{
    return a->type == b->type && a->rows == b->rows && a->columns == b->columns && a->ld == b->ld
        && ((a->step == b->step && a->n == b->n) || b->n == 1);        /* frames as a batch */
}

/* The library says of some batches that the algorithm does not do them. */
static bool refuses_batches;
static int64_t times;

static int check(void *handle, gp_cublaslt_operation *o, gp_cublaslt_layout *a, gp_cublaslt_layout *b,
                 gp_cublaslt_layout *c, gp_cublaslt_layout *d, const uint64_t *algorithm, gp_cublaslt_found *found)
{
    (void)handle, (void)o, (void)a, (void)b, (void)c, (void)d;
    ck_assert(*algorithm == 4711);
    *found = (gp_cublaslt_found){ .room = 12345 };
    return refuses_batches ? 15 : 0;
}

static void aligned(const void *at, int i)
{
    ck_assert_uint_eq((uintptr_t)at % asked.aligned[i], 0);
}

static int multiply(void *handle, gp_cublaslt_operation *op, const void *alpha, const void *a, gp_cublaslt_layout *la,
                    const void *b, gp_cublaslt_layout *lb, const void *beta, const void *c, gp_cublaslt_layout *lc,
                    void *d, gp_cublaslt_layout *ld, const uint64_t *algorithm, void *work, size_t room, void *stream)
{
    const operation *o = (const operation *)(const void *)op;
    const layout *x = (const void *)la, *y = (const void *)lb, *z = (const void *)ld;
    ck_assert(*algorithm == 4711 && room == asked.room * (size_t)(z->n / asked_for[3].n) && lc == ld && c == d);
    times++;
    ck_assert(*(const float *)alpha == 1 && *(const float *)beta == 0);
    ck_assert(same(x, &asked_for[0]) && same(y, &asked_for[1]) && same(z, &asked_for[3]));
    aligned(a, 0), aligned(b, 1), aligned(d, 3);
    int64_t k = o->turn_a ? x->rows : x->columns;
    ck_assert(k == (o->turn_b ? y->columns : y->rows) && x->n == z->n && y->n == z->n
              && z->rows == (o->turn_a ? x->columns : x->rows) && z->columns == (o->turn_b ? y->rows : y->columns));
    for (int32_t i = 0; i < z->n; i++)
        for (int64_t row = 0; row < z->rows; row++)
            for (int64_t column = 0; column < z->columns; column++) {
                const float *from = (const float *)a + i * x->step, *by = (const float *)b + i * y->step;
                float sum = 0;
                for (int64_t q = 0; q < k; q++)
                    sum += from[o->turn_a ? row * x->ld + q : q * x->ld + row]
                         * by[o->turn_b ? q * y->ld + column : column * y->ld + q];
                ((float *)d)[i * z->step + column * z->ld + row] = sum + (o->epilogue ? o->bias[i * o->bias_step + row] : 0);
            }
    return 0;
}

static const gp_cublaslt stand_in = {
    .operation = new_operation, .set_operation = set_operation, .layout = new_layout, .set_layout = set_layout,
    .preference = new_preference, .set_preference = set_preference, .find = find, .check = check, .multiply = multiply,
};

/* ---- products against plain sums -------------------------------------- */

enum { MOST = 1 << 13 };

static uint32_t seed;
static int any(int n)
{
    seed = seed * 1664525u + 1013904223u;
    return (int)((seed >> 8) % (unsigned)n);
}

/* Element (..., i, j) of an array with the axes of `t`, where an axis of 1 is taken for all of `index`, which has `n`
 * axes before the last two. */
static float element(const float *v, const gp_type *t, const int64_t *index, int n, int64_t i, int64_t j)
{
    int64_t at = 0;
    for (int k = 0; k < t->ndim - 2; k++) {
        int64_t x = index[n - (t->ndim - 2) + k];
        at = at * t->dim[k] + (t->dim[k] == 1 ? 0 : x);
    }
    return v[(at * t->dim[t->ndim - 2] + i) * t->dim[t->ndim - 1] + j];
}

/* Room for one frame, which begins at 256 bytes as all do. */
static int64_t step_of(const gp_type *t)
{
    return (gp_count(t) + 63) / 64 * 64;
}

/* Small integers: all sums are exact. Of several frames, which may have one matrix on a side. */
static void as_plain_sums(const gp_type *a, bool ta, const gp_type *b, bool tb)
{
    _Alignas(256) static float x[MOST], y[MOST], by_loops[MOST], by_library[MOST], by_gpu[MOST], bias[MOST];
    gp_cblas loops = { .name = "" }, library;
    gp_product p;
    gp_type made;
    char text[2][128];
    ck_assert(gp_product_of(a, ta, b, tb, &p, &made));
    int64_t m = a->dim[a->ndim - (ta ? 1 : 2)], n = b->dim[b->ndim - (tb ? 2 : 1)], k = a->dim[a->ndim - (ta ? 2 : 1)];
    ck_assert(made.ndim == (a->ndim > b->ndim ? a->ndim : b->ndim) && gp_count(&made) <= MOST && gp_count(a) <= MOST
              && gp_count(b) <= MOST && made.dim[made.ndim - 2] == m && made.dim[made.ndim - 1] == n);
    for (int i = 0; i < MOST; i++)
        x[i] = (float)(any(19) - 9), y[i] = (float)(any(19) - 9), bias[i] = (float)any(100);
    gp_cublaslt_calls = stand_in;
    gp_cblas_open(&library);
    gp_product_frames frames = { { 1 + any(3), { step_of(a), any(2) ? step_of(b) : 0, step_of(&made) } }, any(2) ? 64 : 0 };
    while (frames.axis.n * step_of(a) > MOST || frames.axis.n * step_of(b) > MOST || frames.axis.n * step_of(&made) > MOST)
        frames.axis.n--;
    refuses_batches = any(4) == 0, times = 0;
    gp_cblas_multiply(&loops, &p, &frames, x, y, by_loops);
    gp_cblas_multiply(&library, &p, &frames, x, y, by_library);
    gp_gpu_choice c = { .p = p, .bias = any(2), .room = 12345 };
    ck_assert_int_eq(gp_gpu.products.choose(NULL, &c), 0);
    ck_assert_uint_eq(asked.sums, GP_CUBLASLT_SUMS_IN_ORDER);
    ck_assert_int_eq(gp_gpu.products.multiply(NULL, &c, &frames, x, y, bias, by_gpu, NULL, NULL), 0);
    ck_assert_int_eq(times, gp_product_batches(&p) * (p.batch.n > 1 || refuses_batches ? frames.axis.n : 1));
    for (int64_t e = 0; e < frames.axis.n * gp_count(&made); e++) {
        int64_t f = e / gp_count(&made), at = e % gp_count(&made), is = f * frames.axis.step[GP_MADE] + at;
        int64_t index[GP_MAXDIM], rest = at / (m * n), i = at / n % m, j = at % n;
        float sum = 0;
        for (int q = made.ndim - 3; q >= 0; q--)
            index[q] = rest % made.dim[q], rest /= made.dim[q];
        for (int64_t q = 0; q < k; q++)
            sum += element(x + f * frames.axis.step[GP_LEFT], a, index, made.ndim - 2, ta ? q : i, ta ? i : q)
                 * element(y + f * frames.axis.step[GP_RIGHT], b, index, made.ndim - 2, tb ? j : q, tb ? q : j);
        ck_each(by_loops[is] == sum && by_library[is] == sum && by_gpu[is] == sum + (c.bias ? bias[f * frames.bias + j] : 0),
                      "%s %d times %s %d: element %d of frame %d is %g, %g, %g, not %g", gp_type_text(a, text[0]), ta,
                      gp_type_text(b, text[1]), tb, (int)at, (int)f, by_loops[is], by_library[is], by_gpu[is],
                      sum);
    }
}

TEST_LOOP(all_axes, 0, 2)
{
    for (int i = 0; i < 2000; i++) {
        int64_t batch[3] = { 1 + any(3), 1 + any(3), 1 + any(4) };
        int64_t m = 1 + any(6), n = 1 + any(_i ? 6 : 20), k = 1 + any(6);
        bool ta = any(2), tb = any(2);
        gp_type a = { GP_F32, 2 + any(4), { 0 } }, b = { GP_F32, 2 + any(4), { 0 } };
        for (int q = 0; q < a.ndim - 2; q++)
            a.dim[q] = any(3) ? batch[3 - (a.ndim - 2) + q] : 1;
        for (int q = 0; q < b.ndim - 2; q++)
            b.dim[q] = any(3) ? batch[3 - (b.ndim - 2) + q] : 1;
        a.dim[a.ndim - 2] = ta ? k : m, a.dim[a.ndim - 1] = ta ? m : k;
        b.dim[b.ndim - 2] = tb ? n : k, b.dim[b.ndim - 1] = tb ? k : n;
        as_plain_sums(&a, ta, &b, tb);
    }
}

/* Larger than the panels of loops.c. */
TEST(long_sums)
{
    static const int64_t sizes[][3] = { { 1, 1, 3000 }, { 9, 7, 300 }, { 5, 17, 200 }, { 1, 100, 40 }, { 60, 1, 66 } };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int turned = 0; turned < 4; turned++) {
            int64_t m = sizes[i][0], n = sizes[i][1], k = sizes[i][2];
            bool ta = turned & 1, tb = turned & 2;
            gp_type a = { GP_F32, 2, { ta ? k : m, ta ? m : k } }, b = { GP_F32, 2, { tb ? n : k, tb ? k : n } };
            as_plain_sums(&a, ta, &b, tb);
        }
}

/* What lies in a row is one product: few calls. */
TEST(few_calls)
{
    static const struct {
        int a_axes;
        int64_t a[5];
        bool ta;
        int b_axes;
        int64_t b[5], m, batch, batches;
    } cases[] = {
        { 4, { 3, 4, 5, 6 }, false, 2, { 6, 7 }, 60, 1, 1 },             /* one matrix on the right: more rows */
        { 4, { 3, 4, 6, 5 }, true, 2, { 6, 7 }, 5, 12, 1 },
        { 4, { 3, 4, 5, 6 }, false, 4, { 3, 4, 6, 7 }, 5, 12, 1 },
        { 2, { 5, 6 }, false, 4, { 3, 4, 6, 7 }, 5, 12, 1 },
        { 4, { 3, 1, 5, 6 }, false, 3, { 4, 6, 7 }, 5, 4, 3 },
        { 4, { 3, 4, 5, 6 }, false, 4, { 3, 1, 6, 7 }, 20, 3, 1 },
        { 5, { 2, 3, 4, 5, 6 }, false, 4, { 3, 1, 6, 7 }, 20, 3, 2 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gp_type a = { GP_F32, cases[i].a_axes, { 0 } }, b = { GP_F32, cases[i].b_axes, { 0 } }, made;
        gp_product p;
        memcpy(a.dim, cases[i].a, sizeof cases[i].a), memcpy(b.dim, cases[i].b, sizeof cases[i].b);
        ck_assert(gp_product_of(&a, cases[i].ta, &b, false, &p, &made));
        ck_assert_msg(p.m == cases[i].m && p.batch.n == cases[i].batch && gp_product_batches(&p) == cases[i].batches,
                      "case %d: %d rows, %d at once, %d times", (int)i, (int)p.m, (int)p.batch.n,
                      (int)gp_product_batches(&p));
    }
}

/* ---- frames with fewer rows ---------------------------------------------- */

/* Frames of their own shapes: what each has is the whole product. */
TEST(shapes)
{
    io_count_npy("0.npy", U8(3, 4), 0);
    io_count_npy("1.npy", U8(6, 2), 40);
    io_count_npy("2.npy", U8(1, 5), 80);
    ck_assert_uint_eq(io_runs("buffers: {x: {dtype: u8, shape: ['<=6', '<=5']}}\nstages:\n"
                              "  - {use: read, path: '?.npy', out: x}\n  - {use: cast, dtype: f32, out: f}\n"
                              "  - {use: matmul, in: {a: f, b: f}, transpose_b: true}\n"
                              "  - {use: write, path: 'out/%d.npy'}\n"), 3);
    static const int rows[] = { 3, 6, 1 }, columns[] = { 4, 2, 5 };
    for (int i = 0; i < 3; i++) {
        OWNED char *file = pipe_read_all(io_dir, format("out/%d.npy", i), 128 + 4 * (size_t)(rows[i] * rows[i]));
        for (int r = 0; r < rows[i]; r++)
            for (int c = 0; c < rows[i]; c++) {
                float sum = 0, got;
                for (int k = 0; k < columns[i]; k++)
                    sum += (float)((40 * i + r * columns[i] + k) * (40 * i + c * columns[i] + k));
                memcpy(&got, file + 128 + 4 * (r * rows[i] + c), 4);
                ck_assert_msg(got == sum, "%d: (%d, %d) is %g, not %g", i, r, c, got, sum);
            }
    }
}

/* A frame with fewer rows than the sum wants has no product. */
TEST(too_few_rows)
{
    io_count_npy("in.npy", U8(5 + 3, 4), 0);
    io_fails("buffers: {x: {dtype: u8, shape: [5, 4]}, w: {const: in.npy, dtype: f32}}\nstages:\n"
             "  - {use: read, path: in.npy, out: x}\n  - {use: cast, dtype: f32, out: y}\n"
             "  - {use: slice, in: w, index: ':5', out: v}\n"
             "  - {use: matmul, in: {a: y, b: v}, transpose_a: true}\n  - {use: discard}\n", 1,
             "f32 [3, 4] transposed times f32 [5, 4] does not fit");
}

CASES_AND(matmul)
