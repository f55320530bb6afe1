/* reduced.c - the text of a CUDA kernel whose result is reduced: the walk over a frame is the fold of kernels/fold.h. */
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
    fputs(" };\n", o);
}

void gp_ew_put_fold(FILE *o, const gp_ew_program *p, const char *type)
{
    static const char *const joins[] = { [GP_SUM] = "sum", [GP_MEAN] = "sum", [GP_MIN] = "least", [GP_MAX] = "most" };
    int n = 0;
    fprintf(o, "        gp_fold<%s>(out%d, outer, rows, inner, lanes, steps, %d, [&](size_t e) {\n", joins[p->fold.op],
            p->folded, p->fold.op == GP_MIN || p->fold.op == GP_MAX);
    if (type) {
        fprintf(o, "            %s rest = (%s)e;\n", type, type);
        gp_ew_put_offsets(o, p, type);
    }
    fputs("            return loaded{", o);
    for (int i = 0; i < p->space.nin; i++)
        if (gp_ew_is_used(p, i))
            fprintf(o, type ? "%s in%d[from%d]" : "%s in%d[e]", n++ ? "," : "", i, i);
    for (int k = 0; k < p->space.ndim; k++)
        if (p->indices >> k & 1)
            fprintf(o, "%s (int64_t)at%d", n++ ? "," : "", k);
    fputs(" };\n        }, [&](const loaded &x, size_t e) {\n", o);
    for (int i = 0; i < p->nout; i++)
        fprintf(o, "            %s y%d;\n", gp_ew_made(p, i), i);
    fputs("            one(", o);
    n = 0;
    for (int i = 0; i < p->space.nin; i++)
        if (gp_ew_is_used(p, i))
            fprintf(o, "%sx.x%d", n++ ? ", " : "", i);
    for (int k = 0; k < p->space.ndim; k++)
        if (p->indices >> k & 1)
            fprintf(o, "%sx.i%d", n++ ? ", " : "", k);
    for (int i = 0; i < p->nout; i++)
        fprintf(o, "%sy%d", n++ ? ", " : "", i);
    fputs(");\n", o);
    for (int i = 0; i < p->nout; i++)
        if (i != p->folded)
            fprintf(o, "            out%d[e] = y%d;\n", i, i);
    fprintf(o, "            return y%d;\n        });\n", p->folded);
}
