/* product.c - see product.h. Axes of batches that lie in a row become one; and where all of a batch is multiplied by
 * one matrix on the right, its rows are those of one matrix on the left. */
#include "base/product.h"

typedef struct matrix { int64_t rows, columns; int batches; } matrix;

/* The last two axes; of a vector one, with 1 for the other. */
static matrix matrix_of(const gp_type *t, bool turned, bool left)
{
    const int64_t *last = &t->dim[t->ndim - 1];
    if (t->ndim == 1)
        return left ? (matrix){ 1, *last, 0 } : (matrix){ *last, 1, 0 };
    return turned ? (matrix){ last[0], last[-1], t->ndim - 2 } : (matrix){ last[-1], last[0], t->ndim - 2 };
}

/* Adds an axis outside of those that are there, which stand in `axis` from the innermost on. */
static void add(gp_product_axis *axis, int *n, gp_product_axis a)
{
    gp_product_axis *in = *n ? &axis[*n - 1] : NULL;
    bool joins = in != NULL;
    for (int f = 0; joins && f < GP_FACTORS; f++)
        joins = a.step[f] == in->n * in->step[f];
    if (a.n == 1)
        return;
    if (joins)
        in->n *= a.n;
    else
        axis[(*n)++] = a;
}

/* Axis k of a batch, counted from the innermost. */
static int64_t size(const gp_type *t, int batches, int k)
{
    return k < batches ? t->dim[batches - 1 - k] : 1;
}

bool gp_product_of(const gp_type *a, bool turn_a, const gp_type *b, bool turn_b, gp_product *p, gp_type *made)
{
    matrix x = matrix_of(a, turn_a, true), y = matrix_of(b, turn_b, false);
    int batches = x.batches > y.batches ? x.batches : y.batches, n = 0;
    int64_t step[GP_FACTORS] = { x.rows * x.columns, y.rows * y.columns, x.rows * y.columns };
    gp_product_axis axis[GP_MAXDIM];

    if (x.columns != y.rows)
        return false;
    *p = (gp_product){ .dtype = a->dtype, .turned = { a->ndim > 1 && turn_a, b->ndim > 1 && turn_b },
                       .m = x.rows, .n = y.columns, .k = x.columns, .batch = { .n = 1 } };
    *made = (gp_type){ .dtype = a->dtype, .ndim = batches };
    for (int k = 0; k < batches; k++) {
        int64_t i = size(a, x.batches, k), j = size(b, y.batches, k), all = i == 1 ? j : i;
        if (i != j && i != 1 && j != 1)
            return false;
        made->dim[batches - 1 - k] = all;
        add(axis, &n, (gp_product_axis){ all, { i == 1 ? 0 : step[GP_LEFT], j == 1 ? 0 : step[GP_RIGHT],
                                                step[GP_MADE] } });
        step[GP_LEFT] *= i, step[GP_RIGHT] *= j, step[GP_MADE] *= all;
    }
    if (a->ndim > 1)
        made->dim[made->ndim++] = p->m;
    if (b->ndim > 1)
        made->dim[made->ndim++] = p->n;
    if (!made->ndim)
        made->dim[made->ndim++] = 1;

    int inner = 0;
    if (n && !p->turned[GP_LEFT] && !axis[0].step[GP_RIGHT] && axis[0].step[GP_LEFT] && p->m * axis[0].n <= INT32_MAX)
        p->m *= axis[0].n, inner = 1;
    if (n > inner)
        p->batch = axis[inner++];
    for (int k = n - 1; k >= inner; k--)
        p->axis[p->axes++] = axis[k];
    return true;
}

int64_t gp_product_batches(const gp_product *p)
{
    int64_t n = 1;
    for (int k = 0; k < p->axes; k++)
        n *= p->axis[k].n;
    return n;
}

void gp_product_at_frame(const gp_product *p, const gp_product_frames *frames, int64_t i, int64_t at[GP_FACTORS])
{
    int64_t batches = gp_product_batches(p);
    for (int f = 0; f < GP_FACTORS; f++)
        at[f] = i / batches * frames->axis.step[f];
    i %= batches;
    for (int k = p->axes - 1; k >= 0; k--) {
        for (int f = 0; f < GP_FACTORS; f++)
            at[f] += i % p->axis[k].n * p->axis[k].step[f];
        i /= p->axis[k].n;
    }
}
