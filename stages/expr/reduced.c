/* reduced.c - the text of a CUDA kernel whose result is reduced: the walk over a frame is that of
 * kernels/lines.h, or of kernels/fold.h. */
#include "program.h"

void gp_ew_put_loaded(FILE *o, const gp_ew_program *p)
{
    fputs("    struct loaded {", o);
    for (int i = 0; i < p->space.nin; i++)
        if (gp_ew_is_used(p, i))
            fprintf(o, " %s x%d;", gp_ew_stored(p->in[i]), i);
    for (int k = 0; k < p->space.ndim; k++)
        if (p->indices >> k & 1)
            fprintf(o, " int64_t i%d;", k);
    fputs(" };\n    struct four { loaded v[4]; };\n", o);
}

/* How elements are joined, see kernels/join.h. */
static const char *joins(const gp_ew_program *p)
{
    static const char *const of[] = { [GP_SUM] = "sum", [GP_MEAN] = "sum", [GP_MIN] = "least", [GP_MAX] = "most" };
    return gp_reduction_is_fsum(&p->fold, p->folds) ? "fsum" : of[p->fold.op];
}

/* What a struct loaded has. */
static void put_initial(FILE *o, const gp_ew_program *p, const char *in)
{
    fputs("loaded{ ", o);
    gp_ew_put_list(o, p, in, "(int64_t)at%d", NULL);
    fputs(" }", o);
}

/* The function `load`, from element e to its struct loaded. */
static void put_load(FILE *o, const gp_ew_program *p, const char *type)
{
    fputs("        auto load = [&](size_t e) {\n", o);
    if (type) {
        fprintf(o, "            %s rest = (%s)e;\n", type, type);
        gp_ew_put_offsets(o, p, type);
    }
    fputs("            return ", o);
    put_initial(o, p, type ? "in%d[from%d]" : "in%d[e]");
    fputs(";\n        };\n", o);
}

/* The function `value`, from these to the element that is reduced; it writes the others. */
static void put_value(FILE *o, const gp_ew_program *p)
{
    fputs("        auto value = [&](const loaded &x, size_t e) {\n", o);
    for (int i = 0; i < p->nout; i++)
        fprintf(o, "            %s y%d;\n", gp_ew_made(p, i), i);
    fputs("            ", o);
    gp_ew_put_call(o, p, "x.x%d", "x.i%d", "y%d");
    for (int i = 0; i < p->nout; i++)
        if (i != p->folded)
            fprintf(o, "            out%d[e] = y%d;\n", i, i);
    fprintf(o, "            return y%d;\n        };\n", p->folded);
}

void gp_ew_put_fold(FILE *o, const gp_ew_program *p, const char *type)
{
    put_load(o, p, type);
    put_value(o, p);
    fprintf(o, "        gp_fold<%s>(out%d, outer, rows, inner, lanes, steps, %d, load, value);\n", joins(p),
            p->folded, p->fold.op == GP_MIN || p->fold.op == GP_MAX);
}

/* So many groups of four elements are loaded at a time: their registers are limited. */
static int in_flight(const gp_ew_program *p)
{
    size_t bytes = 0;
    int q = 8;
    for (int i = 0; i < p->space.nin; i++)
        bytes += gp_ew_is_used(p, i) ? gp_dtype_size(p->in[i]) : 0;
    for (int k = 0; k < p->space.ndim; k++)
        bytes += p->indices >> k & 1 ? sizeof(int64_t) : 0;
    while (q > 1 && q * bytes > 32)
        q /= 2;
    return q;
}

/* The function `values`, the same of four elements; `quads`: outputs lie as the frame does, at multiples of four. */
static void put_values(FILE *o, const gp_ew_program *p, bool quads)
{
    fputs("        auto values = [&](const four &x, size_t e) {\n", o);
    for (int i = 0; i < p->nout; i++)
        fprintf(o, "            quad<%s> y%d;\n", gp_ew_made(p, i), i);
    fputs("            for (int k = 0; k < 4; k++)\n                ", o);
    gp_ew_put_call(o, p, "x.v[k].x%d", "x.v[k].i%d", "y%d.v[k]");
    for (int i = 0; i < p->nout; i++)
        if (i != p->folded && quads)
            fprintf(o, "            ((quad<%s> *)out%d)[e / 4] = y%d;\n", gp_ew_made(p, i), i, i);
        else if (i != p->folded)
            fprintf(o, "            for (int k = 0; k < 4; k++)\n                out%d[e + k] = y%d.v[k];\n", i, i);
    fprintf(o, "            return y%d;\n        };\n", p->folded);
}

void gp_ew_put_lines(FILE *o, const gp_ew_program *p, const char *type)
{
    put_load(o, p, type);
    put_value(o, p);
    put_values(o, p, !type);
    fputs("        auto loads = [&](size_t e) {\n            four x;\n", o);
    for (int i = 0; i < p->space.nin && !type; i++)
        if (gp_ew_is_used(p, i))
            fprintf(o, "            const quad<%s> x%d = ((const quad<%s> *)in%d)[e / 4];\n", gp_ew_stored(p->in[i]), i,
                    gp_ew_stored(p->in[i]), i);
    fputs("            for (int k = 0; k < 4; k++)\n                x.v[k] = ", o);
    if (type)
        fputs("load(e + k)", o);
    else
        put_initial(o, p, "x%d.v[k]");
    fputs(";\n            return x;\n        };\n", o);
    fprintf(o, "        gp_reduce_lines<%s, %s, %d>(lines, loads, values,\n"
               "            [&](size_t e) { return value(load(e), e); });\n",
            joins(p), gp_ew_made(p, p->folded), type ? 1 : in_flight(p));
}
