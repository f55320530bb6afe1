/* tiles.c - the walk over a frame of a CUDA kernel that reads neighbours. A block takes a tile of rows, so that what its
 * threads read of the same and of near elements is in its multiprocessor's cache. The index of each neighbour along an
 * axis is found once for an element, whatever reads there. */
#include <inttypes.h>
#include "program.h"

enum { LINE = 128 };           /* elements that a row has at least, if the frame has */

/* At most 2^31 - 1 divided by d is e * magic >> up: Granlund and Montgomery, "Division by invariant integers using
 * multiplication", 1994. */
static void set_magic(gp_ew_tiles *t, int k, int64_t d)
{
    unsigned log = 0;
    while (log < 31 && (int64_t)1 << log < d)
        log++;
    t->up[k] = 31 + log;
    t->magic[k] = (unsigned)((((uint64_t)1 << t->up[k]) + (uint64_t)d - 1) / (uint64_t)d);
}

gp_ew_tiles gp_ew_tiles_of(const gp_ew_call *c)
{
    gp_ew_tiles t = { .rows = 1, .line = 1, .cut = c->axes };
    while (t.cut > 0 && t.line < LINE)
        t.line *= c->dim[--t.cut];
    for (int k = 0; k < c->axes; k++) {
        t.rows *= k < t.cut ? c->dim[k] : 1;
        set_magic(&t, k, c->dim[k] > 0 ? c->dim[k] : 1);
    }
    return t;
}

static const char *const edges[] = { [GP_EW_REFLECT] = "reflect", [GP_EW_NEAREST] = "nearest", [GP_EW_ZERO] = "zero" };

static void put_shift(FILE *o, const gp_ew_program *p, int i, const char *type)
{
    const gp_ew_shift *to = &p->shift[i].to;
    fprintf(o, "            const %s s%d = gp_ew_%s<%s>(at%d, ", type, i, edges[to->edge], type, to->axis);
    if (p->shift[i].var)
        fprintf(o, "(%s)by%d", type, i);
    else
        fprintf(o, "%" PRId64, to->by);
    fprintf(o, ", (%s)axes.dim[%d]);\n", type, to->axis);
}

/* Where an element of input `port` is; `shift` as of a gp_ew_ins, or NULL. */
static void put_offset(FILE *o, const gp_ew_program *p, int port, const int *shift, const char *type)
{
    for (int k = 0; k < p->space.ndim; k++) {
        bool moved = shift && shift[k] >= 0;
        fprintf(o, "%s%s%d * (%s)axes.stride[%d][%d]", k ? " + " : "", moved ? "s" : "at", moved ? shift[k] : k, type, port, k);
    }
}

static void put_near(FILE *o, const gp_ew_program *p, int i, const char *type)
{
    const gp_ew_ins *x = &p->ins[i];
    bool zero = false;
    fprintf(o, "            const auto near%d = ", i);
    for (int k = 0; k < p->space.ndim; k++)
        if (x->shift[k] >= 0 && p->shift[x->shift[k]].to.edge == GP_EW_ZERO) {
            if (zero)
                fprintf(o, " | s%d", x->shift[k]);
            else
                fprintf(o, "gp_ew_inside(in%d, (s%d", x->a, x->shift[k]);
            zero = true;
        }
    if (zero)
        fputs(") < 0 ? -1 : ", o);
    else
        fprintf(o, "in%d[", x->a);
    put_offset(o, p, x->a, x->shift, type);
    fputs(zero ? ");\n" : "];\n", o);
}

static void put_element(FILE *o, const gp_ew_program *p, const char *type)
{
    fprintf(o, "            const %s e = y * (%s)tiles.line + x;\n            %s rest = x;\n", type, type, type);
    for (int k = p->space.ndim - 1; k >= 0; k--)
        fprintf(o, "            if (tiles.cut == %d)\n                rest = y;\n"
                "            const %s at%d = gp_ew_split(rest, axes, tiles, %d);\n", k + 1, type, k, k);
    for (int i = 0; i < p->nshifts; i++)
        put_shift(o, p, i, type);
    for (int i = 0; i < p->n; i++)
        if (p->ins[i].op == GP_EW_NEAR && p->ins[i].needed)
            put_near(o, p, i, type);
    for (int i = 0; i < p->nin; i++) {
        fprintf(o, "            const %s from%d = ", type, i);
        put_offset(o, p, i, NULL, type);
        fputs(";\n", o);
    }
    fputs("            ", o);
    gp_ew_put_call(o, p, "in%d[from%d]", "out%d[e]");
}

void gp_ew_put_tiles(FILE *o, const gp_ew_program *p, const char *type)
{
    fprintf(o, "        const %s next_x = step_x(), next_y = (%s)gridDim.y * blockDim.y;\n", type, type);
    fprintf(o, "        for (%s y = (%s)blockIdx.y * blockDim.y + threadIdx.y; y < (%s)tiles.rows; y += next_y)\n", type, type,
            type);
    fprintf(o, "        for (%s x = first_x(); x < (%s)tiles.line; x += next_x) {\n", type, type);
    put_element(o, p, type);
    fputs("        }\n", o);
}
