/* tiles.c - the walk over a frame of a CUDA kernel that reads neighbors. The frame counts as rows of a line each. A
 * block takes a tile of them, so that what its threads read of the same and of near elements is in its
 * multiprocessor's cache; a thread takes elements below each other, which share what they read, unless frames are so
 * small that this leaves a GPU idle. Where all neighbors of these are inside, for all threads of a warp (or it would do
 * both), their places differ by numbers that are the same for all threads; else each one is sought. */
#include <inttypes.h>
#include "program.h"

enum {
    LINE = 128,                /* elements that a line has at least, if the frame has */
    FEW = 16, SOME = 32,       /* neighbors of which a thread does 4 elements, 2 */
    SMALL = 1 << 16,           /* elements of a frame, of which a thread does 1 */
};

void gp_ew_measure(gp_ew_program *p, const gp_type *frame)
{
    int64_t line = 1;
    int cut = frame->ndim;
    while (cut > 0 && line < LINE)
        line *= frame->dim[--cut];
    p->cut = cut, p->small = gp_count(frame) <= SMALL;
}

static bool is_near(const gp_ew_program *p, int i)
{
    return p->ins[i].op == GP_EW_NEAR && p->ins[i].needed;
}

int gp_ew_below(const gp_ew_program *p)
{
    int n = 0;
    for (int i = 0; i < p->n; i++)
        n += is_near(p, i);
    return !p->cut || p->small || n > SOME ? 1 : n > FEW ? 2 : 4;
}

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

gp_ew_tiles gp_ew_tiles_of(const gp_ew_call *c, int cut)
{
    gp_ew_tiles t = { .rows = 1, .line = 1 };
    for (int k = 0; k < c->axes; k++) {
        *(k < cut ? &t.rows : &t.line) *= c->dim[k];
        set_magic(&t, k, c->dim[k] > 0 ? c->dim[k] : 1);
    }
    return t;
}

/* ---- places -------------------------------------------------------------------- */

/* The indices NAME0, ... along the axes from `from` to `to` of element `of` of these. */
static void put_indices(FILE *o, const char *name, const char *of, int from, int to, const char *type)
{
    if (to <= from)
        return;
    fprintf(o, "            %s %srest%d = %s;\n", type, name, from, of);
    for (int k = to - 1; k > from; k--)
        fprintf(o, "            const %s %s%d = gp_ew_split(%srest%d, axes, tiles, %d);\n", type, name, k, name, from,
                k);
    fprintf(o, "            const %s %s%d = %srest%d;\n", type, name, from, name, from);
}

static const char *const edges[] = { [GP_EW_REFLECT] = "reflect", [GP_EW_NEAREST] = "nearest", [GP_EW_ZERO] = "zero",
                                     [GP_EW_WRAP] = "periodic" };

/* By how much shift i moves. */
static void put_by(FILE *o, const gp_ew_program *p, int i, const char *type)
{
    if (p->shift[i].var)
        fprintf(o, "(%s)by%d", type, i);
    else
        fprintf(o, "%" PRId64, p->shift[i].to.by);
}

/* ---- elements all of whose neighbors are inside ---------------------------------- */

/* The condition that they are: of those that are known only the furthest are compared. */
static void put_condition(FILE *o, const gp_ew_program *p, int below, const char *type)
{
    int64_t least[GP_MAXDIM] = { 0 }, most[GP_MAXDIM] = { 0 };
    if (p->cut)
        most[p->cut - 1] = below - 1;
    fputs("            bool inside = true;\n", o);
    for (int i = 0; i < p->nshifts; i++) {
        int k = p->shift[i].to.axis, more = k == p->cut - 1 ? below - 1 : 0;
        int64_t by = p->shift[i].to.by;
        if (!p->shift[i].needed)
            continue;
        if (p->shift[i].var)
            fprintf(o, "            inside &= a%d + (%s)by%d >= 0 && a%d + (%s)by%d + %d < (%s)axes.dim[%d];\n", k,
                    type, i, k, type, i, more, type, k);
        else if (by < 0)
            least[k] = by < least[k] ? by : least[k];
        else
            most[k] = by + more > most[k] ? by + more : most[k];
    }
    for (int k = 0; k < p->space.ndim; k++) {
        if (least[k])
            fprintf(o, "            inside &= a%d >= %" PRId64 ";\n", k, -least[k]);
        if (most[k])
            fprintf(o, "            inside &= a%d < (%s)axes.dim[%d] - %" PRId64 ";\n", k, type, k, most[k]);
    }
}

/* From a thread's first element in input `port` to the one that `shift` leads to from its element j. */
static void put_step(FILE *o, const gp_ew_program *p, int port, const int *shift, int j, const char *type)
{
    fprintf(o, "p%d[0", port);
    for (int k = 0; k < p->space.ndim; k++) {
        int i = shift ? shift[k] : -1, more = k == p->cut - 1 ? j : 0;
        if (i < 0 && !more)
            continue;
        if (i >= 0 && p->shift[i].var) {
            fputs(" + (", o);
            put_by(o, p, i, type);
            fprintf(o, " + %d)", more);
        } else {
            fprintf(o, " + (%" PRId64 ")", more + (i < 0 ? 0 : p->shift[i].to.by));
        }
        fprintf(o, " * (%s)axes.stride[%d][%d]", type, port, k);
    }
    fputs("];\n", o);
}

static void put_inside(FILE *o, const gp_ew_program *p, int below, const char *type)
{
    char out[20];
    for (int i = 0; i < p->space.nin; i++) {
        fprintf(o, "                const %s *p%d = in%d", gp_ew_stored(p->in[i]), i, i);
        for (int k = 0; k < p->space.ndim; k++)
            fprintf(o, " + a%d * (%s)axes.stride[%d][%d]", k, type, i, k);
        fputs(";\n", o);
    }
    for (int i = 0; i < p->nout; i++)
        fprintf(o, "                %s y%d[%d];\n", gp_ew_stored(p->out[i]), i, below);
    for (int j = 0; j < below; j++) {
        fputs("                {\n", o);
        for (int k = 0; k < p->space.ndim; k++)
            fprintf(o, "                const %s at%d = a%d + %d;\n", type, k, k, k == p->cut - 1 ? j : 0);
        for (int i = 0; i < p->space.nin; i++) {
            fprintf(o, "                const %s x%d = ", gp_ew_stored(p->in[i]), i);
            put_step(o, p, i, NULL, j, type);
        }
        for (int i = 0; i < p->n; i++)
            if (is_near(p, i)) {
                fprintf(o, "                const %s near%d = ", gp_ew_stored(p->ins[i].from), i);
                put_step(o, p, p->ins[i].a, p->ins[i].shift, j, type);
            }
        snprintf(out, sizeof out, "y%%d[%d]", j);
        fputs("                ", o);
        gp_ew_put_call(o, p, "x%d", "at%d", out);
        fputs("                }\n", o);
    }
    for (int i = 0; i < p->nout; i++)
        for (int j = 0; j < below; j++)
            fprintf(o, "                out%d[(y + %d) * line + x] = y%d[%d];\n", i, j, i, j);
}

/* ---- the others -------------------------------------------------------------------- */

void gp_ew_put_shift(FILE *o, const gp_ew_program *p, int i, const char *type)
{
    const gp_ew_shift *to = &p->shift[i].to;
    fprintf(o, "            const %s s%d = gp_ew_%s<%s>(at%d, ", type, i, edges[to->edge], type, to->axis);
    put_by(o, p, i, type);
    fprintf(o, ", (%s)axes.dim[%d]);\n", type, to->axis);
}

void gp_ew_put_offset(FILE *o, const gp_ew_program *p, int port, const int *shift, const char *type)
{
    for (int k = 0; k < p->space.ndim; k++) {
        bool moved = shift && shift[k] >= 0;
        fprintf(o, "%s%s%d * (%s)axes.stride[%d][%d]", k ? " + " : "", moved ? "s" : "at", moved ? shift[k] : k, type,
                port, k);
    }
}

void gp_ew_put_near(FILE *o, const gp_ew_program *p, int i, const char *type)
{
    const gp_ew_ins *x = &p->ins[i];
    bool zero = false;
    fprintf(o, "            const %s near%d = ", gp_ew_stored(x->from), i);
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
    gp_ew_put_offset(o, p, x->a, x->shift, type);
    fputs(zero ? ");\n" : "];\n", o);
}

static void put_sought(FILE *o, const gp_ew_program *p, const char *type)
{
    put_indices(o, "at", "y + j", 0, p->cut, type);
    for (int k = p->cut; k < p->space.ndim; k++)
        fprintf(o, "            const %s at%d = a%d;\n", type, k, k);
    for (int i = 0; i < p->nshifts; i++)
        if (p->shift[i].needed)
            gp_ew_put_shift(o, p, i, type);
    for (int i = 0; i < p->n; i++)
        if (is_near(p, i))
            gp_ew_put_near(o, p, i, type);
    for (int i = 0; i < p->space.nin; i++) {
        fprintf(o, "            const %s from%d = ", type, i);
        gp_ew_put_offset(o, p, i, NULL, type);
        fputs(";\n", o);
    }
    fputs("            ", o);
    gp_ew_put_call(o, p, "in%d[from%d]", "at%d", "out%d[(y + j) * line + x]");
}

/* ---- all of them --------------------------------------------------------------------- */

void gp_ew_put_tiles(FILE *o, const gp_ew_program *p, const char *type)
{
    int below = gp_ew_below(p);
    fprintf(o, "        const %s line = tiles.line, rows = tiles.rows, x = first_x();\n", type);
    fprintf(o, "        const %s next = (%s)gridDim.y * blockDim.y * %d;\n", type, type, below);
    fputs("        if (x >= line)\n            return;\n", o);
    put_indices(o, "a", "x", p->cut, p->space.ndim, type);
    fprintf(o, "#pragma unroll 1\n        for (%s y = ((%s)blockIdx.y * blockDim.y + threadIdx.y) * %d; y < rows; "
            "y += next) {\n", type, type, below);
    put_indices(o, "a", "y", 0, p->cut, type);
    put_condition(o, p, below, type);
    fputs("            if (gp_ew_all(inside)) {\n", o);
    put_inside(o, p, below, type);
    fprintf(o, "                continue;\n            }\n#pragma unroll 1\n"
            "            for (int j = 0; j < %d && y + j < rows; j++) {\n", below);
    put_sought(o, p, type);
    fputs("            }\n        }\n", o);
}
