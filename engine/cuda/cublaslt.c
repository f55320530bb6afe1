/* cublaslt.c - products on a GPU, see libraries.h. The library's matrices are column-major, ours are row-major: so it
 * computes the transpose of the product, of the transposes of both factors in the other order, and copies nothing.
 *
 * Which algorithm it takes is chosen by its own heuristic for exactly these sizes and alignments and this much work
 * area, among those whose partial sums have an order: so a product has the same bits wherever it is computed in a
 * run. The products of several frames are one call of that algorithm, as a batch, not one product of more rows, for
 * which the heuristic might choose another. */
#include <string.h>
#include "cuda/libraries.h"

typedef struct task {
    gp_cublaslt_operation op;
    gp_cublaslt_layout right, left, made;      /* the library's A, B, C */
} task;

static int type_of(gp_dtype t)
{
    return t == GP_F16 ? GP_CUBLAS_F16 : t == GP_F32 ? GP_CUBLAS_F32 : GP_CUBLAS_F64;
}

/* The memory of a matrix of `rows` rows is that of the transpose of so many columns. */
static int lay_out(gp_cublaslt_layout *to, const gp_product *p, const gp_product_axis *batch, int factor, int64_t rows,
                   int64_t columns)
{
    const gp_cublaslt *l = &gp_cublaslt_calls;
    int32_t n = (int32_t)batch->n;
    int status = l->layout(to, sizeof *to, type_of(p->dtype), (uint64_t)columns, (uint64_t)rows, columns);
    if (!status && n > 1)
        status = l->set_layout(to, GP_CUBLASLT_BATCH, &n, sizeof n);
    if (!status && n > 1)
        status = l->set_layout(to, GP_CUBLASLT_STEP, &batch->step[factor], sizeof batch->step[factor]);
    return status;
}

static int describe(const gp_gpu_choice *c, const gp_product_axis *batch, const void *bias, int64_t bias_step, task *t)
{
    const gp_cublaslt *l = &gp_cublaslt_calls;
    const gp_product *p = &c->p;
    int32_t turn_right = p->turned[GP_RIGHT], turn_left = p->turned[GP_LEFT];
    uint32_t epilogue = GP_CUBLASLT_ADDS_BIAS;
    bool wide = p->dtype == GP_F64;
    int computes = wide ? GP_CUBLAS_IN_F64 : c->tf32 ? GP_CUBLAS_IN_TF32 : GP_CUBLAS_IN_F32;
    int status = l->operation(&t->op, sizeof t->op, computes, wide ? GP_CUBLAS_F64 : GP_CUBLAS_F32);
    status = status ? status : l->set_operation(&t->op, GP_CUBLASLT_TURN_A, &turn_right, sizeof turn_right);
    status = status ? status : l->set_operation(&t->op, GP_CUBLASLT_TURN_B, &turn_left, sizeof turn_left);
    if (c->bias) {
        status = status ? status : l->set_operation(&t->op, GP_CUBLASLT_EPILOGUE, &epilogue, sizeof epilogue);
        status = status ? status : l->set_operation(&t->op, GP_CUBLASLT_BIAS, &bias, sizeof bias);
        if (bias_step)
            status = status ? status : l->set_operation(&t->op, GP_CUBLASLT_BIAS_STEP, &bias_step, sizeof bias_step);
    }
    status = status ? status : lay_out(&t->right, p, batch, GP_RIGHT, turn_right ? p->n : p->k, turn_right ? p->k : p->n);
    status = status ? status : lay_out(&t->left, p, batch, GP_LEFT, turn_left ? p->k : p->m, turn_left ? p->m : p->k);
    return status ? status : lay_out(&t->made, p, batch, GP_MADE, p->m, p->n);
}

/* Bytes that the beginnings of all batches of a factor are multiples of. */
static uint32_t alignment(const gp_product *p, int factor)
{
    uint64_t all = 256;
    for (int k = 0; k < p->axes; k++)
        all |= (uint64_t)p->axis[k].step[factor] * gp_dtype_size(p->dtype);
    return (uint32_t)(all & (~all + 1));
}

int gp_cublaslt_choose(void *handle, gp_gpu_choice *c)
{
    const gp_cublaslt *l = &gp_cublaslt_calls;
    enum { NOT_SUPPORTED = 15 };
    static const int factor[] = { GP_RIGHT, GP_LEFT, GP_MADE, GP_MADE };
    task t;
    gp_cublaslt_preference want;
    gp_cublaslt_found found;
    uint64_t room = c->room;
    uint32_t sums = GP_CUBLASLT_SUMS_IN_ORDER;
    int n = 0, status = describe(c, &c->p.batch, (const void *)256, 0, &t);     /* a bias as well aligned as all are */
    status = status ? status : l->preference(&want, sizeof want);
    status = status ? status : l->set_preference(&want, GP_CUBLASLT_ROOM, &room, sizeof room);
    status = status ? status : l->set_preference(&want, GP_CUBLASLT_SUMS, &sums, sizeof sums);
    for (int i = 0; i < 4; i++) {
        uint32_t bytes = alignment(&c->p, factor[i]);
        status = status ? status : l->set_preference(&want, GP_CUBLASLT_ALIGNED + i, &bytes, sizeof bytes);
    }
    status = status ? status : l->find(handle, &t.op, &t.right, &t.left, &t.made, &t.made, &want, 1, &found, &n);
    if (status || !n || found.status)
        return status ? status : n ? found.status : NOT_SUPPORTED;
    memcpy(c->algorithm, found.algorithm, sizeof c->algorithm);
    return 0;
}

/* Describes all frames as one batch. False: the algorithm does not compute that, or not in that much memory. */
static bool describe_frames(void *handle, const gp_gpu_choice *c, const gp_product_frames *frames, const void *bias, task *t)
{
    gp_cublaslt_found found;
    return frames->axis.n > 1 && c->p.batch.n == 1 && !describe(c, &frames->axis, bias, frames->bias, t)
        && !gp_cublaslt_calls.check(handle, &t->op, &t->right, &t->left, &t->made, &t->made, c->algorithm, &found)
        && !found.status && found.room <= c->room * (size_t)frames->axis.n;
}

int gp_cublaslt_multiply(void *handle, const gp_gpu_choice *c, const gp_product_frames *frames, const void *a,
                         const void *b, const void *bias, void *made, void *work, void *stream)
{
    const gp_product *p = &c->p;
    static const double one = 1, zero = 0;
    static const float one_f32 = 1, zero_f32 = 0;
    const void *alpha = p->dtype == GP_F64 ? (const void *)&one : &one_f32;
    const void *beta = p->dtype == GP_F64 ? (const void *)&zero : &zero_f32;
    size_t each = gp_dtype_size(p->dtype);
    task t;
    bool at_once = describe_frames(handle, c, frames, bias, &t);
    int64_t at[GP_FACTORS], each_frame = gp_product_batches(p), batches = at_once ? 1 : frames->axis.n * each_frame;
    size_t room = at_once ? c->room * (size_t)frames->axis.n : c->room;
    int status = 0;
    for (int64_t i = 0; !status && i < batches; i++) {
        const char *row = c->bias ? (const char *)bias + each * (size_t)(i / each_frame * frames->bias) : NULL;
        if (!at_once && i % each_frame == 0)
            status = describe(c, &p->batch, row, 0, &t);
        gp_product_at_frame(p, frames, i, at);
        void *to = (char *)made + each * (size_t)at[GP_MADE];
        const char *right = (const char *)b + each * (size_t)at[GP_RIGHT];
        const char *left = (const char *)a + each * (size_t)at[GP_LEFT];
        status = status ? status : gp_cublaslt_calls.multiply(handle, &t.op, alpha, right, &t.right, left, &t.left, beta, to, &t.made, to,
                                            &t.made, c->algorithm, work, room, stream);
    }
    return status;
}
