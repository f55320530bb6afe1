/* cuda.c - operations become the text of a CUDA kernel. It depends on the program alone, and on no var's value, so that
 * it is compiled once; that of several iterations also on the frame, and on how far neighbors are (steps.c).
 *
 * Where each input lies as the frame does, a thread takes four elements at a time; else it finds the place of each
 * element in each input. Which of the two a launch does is an argument, where both may happen. With neighbors blocks
 * take tiles (tiles.c). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/memfile.h"
#include "program.h"

static const char *const stored[GP_NDTYPES] = {
    [GP_U8] = "uint8_t", [GP_I8] = "int8_t", [GP_U16] = "uint16_t", [GP_I16] = "int16_t", [GP_U32] = "uint32_t",
    [GP_I32] = "int32_t", [GP_U64] = "uint64_t", [GP_I64] = "int64_t", [GP_F16] = "gp_half", [GP_F32] = "float",
    [GP_F64] = "double", [GP_C64] = "gp_c64",
};
static const char *const computed[GP_EW_NTYPES] = {
#define X(NAME, ctype) #ctype,
    GP_EW_TYPES(X)
#undef X
};
static const char *const function[GP_EW_NOPS] = {
#define X(NAME, name, n, types) #name,
    GP_EW_OPS(X)
#undef X
};

const char *gp_ew_stored(gp_dtype t)
{
    return stored[t];
}

bool gp_ew_has_lines(const gp_ew_program *p)
{
    return p->fold.op && gp_reduction_is_lines(&p->fold, p->space.ndim);
}

bool gp_ew_is_used(const gp_ew_program *p, int port)
{
    for (int i = 0; i < p->n; i++)
        if (p->ins[i].op == GP_EW_LOAD && p->ins[i].a == port && p->ins[i].needed)
            return true;
    return false;
}

/* ---- the function of one element ---------------------------------------------- */

/* By its bits, so that it is this number on any compiler. */
static void put_number(FILE *o, const gp_ew_ins *x)
{
    if (x->type == GP_EW_C64)
        fprintf(o, "gp_c64{ __uint_as_float(0x%08" PRIx32 "u), 0 }", x->value.u32);
    else if (x->type == GP_EW_F32)
        fprintf(o, "__uint_as_float(0x%08" PRIx32 "u)", x->value.u32);
    else if (x->type == GP_EW_F64)
        fprintf(o, "__longlong_as_double(0x%016" PRIx64 "ll)", x->value.u64);
    else if (x->type == GP_EW_I32 || x->type == GP_EW_U32)
        fprintf(o, "(%s)0x%08" PRIx32 "u", computed[x->type], x->value.u32);
    else
        fprintf(o, "(%s)0x%016" PRIx64 "ull", computed[x->type], x->value.u64);
}

void gp_ew_put_ins(FILE *o, const gp_ew_program *p, int i, int *vars)
{
    const gp_ew_ins *x = &p->ins[i];
    if (x->op == GP_EW_STORE || x->op == GP_EW_FOLD) {
        fprintf(o, "        y%d = gp_ew_store<%s>(v%d);\n", x->op == GP_EW_FOLD ? p->folded : x->d, stored[x->from], x->a);
        return;
    }
    fprintf(o, "        const %s v%d = ", computed[gp_ew_makes(x)], i);
    if (x->op == GP_EW_NUMBER && x->var)
        fprintf(o, "k%d", (*vars)++);
    else if (x->op == GP_EW_NUMBER)
        put_number(o, x);
    else if (x->op == GP_EW_CONVERT)
        fprintf(o, "gp_ew_change<%s>(v%d)", computed[x->type], x->a);
    else if (x->op == GP_EW_THROUGH)
        fprintf(o, "gp_ew_load(gp_ew_store<%s>(v%d))", stored[x->from], x->a);
    else if (x->op == GP_EW_SIZE)
        fprintf(o, "(%s)size%d", computed[x->type], x->a);
    else if (x->op == GP_EW_FRAME)
        fputs(x->a ? "(double)frame->time_ns / 1e9" : "(int64_t)frame->index", o);
    else if (x->op == GP_EW_INDEX)
        fprintf(o, "(%s)i%d", computed[x->type], x->a);
    else if (x->op == GP_EW_LOAD)
        fprintf(o, "gp_ew_load(x%d)", x->a);
    else if (x->op == GP_EW_NEAR)
        fprintf(o, "gp_ew_load(near%d)", i);
    else if (x->op == GP_EW_SELECT)
        fprintf(o, "gp_ew_select<%s>(v%d, v%d, v%d)", computed[x->type], x->a, x->b, x->c);
    else if (gp_ew_operands(x->op) == 1)
        fprintf(o, "gp_ew_%s<%s>(v%d)", function[x->op], computed[x->type], x->a);
    else
        fprintf(o, "gp_ew_%s<%s>(v%d, v%d)", function[x->op], computed[x->type], x->a, x->b);
    fputs(";\n", o);
}

/* The text between the arguments of a list that begins with nothing. */
static const char *comma(int *n)
{
    return (*n)++ ? ", " : "";
}

/* As an output is computed. */
const char *gp_ew_made(const gp_ew_program *p, int i)
{
    return stored[p->fold.op && i == p->folded ? p->folds : p->out[i]];
}

static void put_one(FILE *o, const gp_ew_program *p)
{
    int n = 0, vars = 0;
    for (int i = 0; i < p->n; i++)     /* by each thread, and not for each element */
        if (p->ins[i].needed && p->ins[i].once)
            gp_ew_put_ins(o, p, i, &vars);
    fputs("    auto one = [=](", o);
    for (int i = 0; i < p->space.nin; i++)
        if (gp_ew_is_used(p, i))
            fprintf(o, "%s%s x%d", comma(&n), stored[p->in[i]], i);
    for (int i = 0; i < p->n; i++)
        if (p->ins[i].op == GP_EW_NEAR && p->ins[i].needed)
            fprintf(o, "%s%s near%d", comma(&n), stored[p->ins[i].from], i);
    for (int k = 0; k < p->space.ndim; k++)
        if (p->indices >> k & 1)
            fprintf(o, "%sint64_t i%d", comma(&n), k);
    for (int i = 0; i < p->nout; i++)
        fprintf(o, "%s%s &y%d", comma(&n), gp_ew_made(p, i), i);
    fputs(") {\n", o);
    for (int i = 0; i < p->n; i++)
        if (p->ins[i].needed && !p->ins[i].once)
            gp_ew_put_ins(o, p, i, &vars);
    fputs("    };\n", o);
}

/* ---- the walk over a frame ------------------------------------------------------ */

void gp_ew_put_list(FILE *o, const gp_ew_program *p, const char *in, const char *index, const char *out)
{
    int n = 0;
    for (int i = 0; i < p->space.nin; i++)
        if (gp_ew_is_used(p, i)) {
            fputs(comma(&n), o);
            fprintf(o, in, i, i);
        }
    for (int i = 0; i < p->n; i++)
        if (p->ins[i].op == GP_EW_NEAR && p->ins[i].needed)
            fprintf(o, "%snear%d", comma(&n), i);
    for (int k = 0; k < p->space.ndim; k++)
        if (p->indices >> k & 1) {
            fputs(comma(&n), o);
            fprintf(o, index, k);
        }
    for (int i = 0; i < p->nout && out; i++) {
        fputs(comma(&n), o);
        fprintf(o, out, i);
    }
}

void gp_ew_put_call(FILE *o, const gp_ew_program *p, const char *in, const char *index, const char *out)
{
    fputs("one(", o);
    gp_ew_put_list(o, p, in, index, out);
    fputs(");\n", o);
}

static void put_quads(FILE *o, const gp_ew_program *p)
{
    fputs("        for (size_t i = first_x(); i < n / 4; i += step_x()) {\n", o);
    for (int i = 0; i < p->space.nin; i++)
        if (gp_ew_is_used(p, i))
            fprintf(o, "            const quad<%s> x%d = ((const quad<%s> *)in%d)[i];\n", stored[p->in[i]], i,
                    stored[p->in[i]], i);
    for (int i = 0; i < p->nout; i++)
        fprintf(o, "            quad<%s> y%d;\n", stored[p->out[i]], i);
    fputs("            for (int k = 0; k < 4; k++)\n                ", o);
    gp_ew_put_call(o, p, "x%d.v[k]", "at%d", "y%d.v[k]");
    for (int i = 0; i < p->nout; i++)
        fprintf(o, "            ((quad<%s> *)out%d)[i] = y%d;\n", stored[p->out[i]], i, i);
    fputs("        }\n        size_t e = n / 4 * 4 + first_x();\n        if (e < n)\n            ", o);
    gp_ew_put_call(o, p, "in%d[e]", "at%d", "out%d[e]");
}

/* Where element `rest` of the frame is, in integers of `type`. */
void gp_ew_put_offsets(FILE *o, const gp_ew_program *p, const char *type)
{
    for (int i = 0; i < p->space.nin; i++)
        if (gp_ew_is_used(p, i))
            fprintf(o, "            %s from%d = 0;\n", type, i);
    for (int k = p->space.ndim - 1; p->indices && k >= 0; k--) {
        fprintf(o, "            const %s at%d = rest %% (%s)axes.dim[%d];\n", type, k, type, k);
        fprintf(o, "            rest /= (%s)axes.dim[%d];\n", type, k);
        for (int i = 0; i < p->space.nin; i++)
            if (gp_ew_is_used(p, i))
                fprintf(o, "            from%d += at%d * (%s)axes.stride[%d][%d];\n", i, k, type, i, k);
    }
    if (!p->indices) {                 /* axes may be merged */
        fputs("            for (int k = axes.n - 1; k >= 0; k--) {\n", o);
        fprintf(o, "                const %s at = rest %% (%s)axes.dim[k];\n", type, type);
        fprintf(o, "                rest /= (%s)axes.dim[k];\n", type);
        for (int i = 0; i < p->space.nin; i++)
            if (gp_ew_is_used(p, i))
                fprintf(o, "                from%d += at * (%s)axes.stride[%d][k];\n", i, type, i);
        fputs("            }\n", o);
    }
}

static void put_places(FILE *o, const gp_ew_program *p, const char *type)
{
    fprintf(o, "        for (%s e = (%s)first_x(); e < (%s)n; e += (%s)step_x()) {\n", type, type, type, type);
    fprintf(o, "            %s rest = e;\n", type);
    gp_ew_put_offsets(o, p, type);
    fputs("            ", o);
    gp_ew_put_call(o, p, "in%d[from%d]", "at%d", "out%d[e]");
    fputs("        }\n", o);
}

/* ---- the kernel ---------------------------------------------------------------- */

typedef struct params {
    FILE *o;
    gp_shape *s;
    const char **type; int n;
} params;

static void put_param(params *q, const char *type, const char *name, int i)
{
    q->type[q->n] = type;
    fprintf(q->o, "%s%s%s%s", q->n++ ? ", " : "", type, type[strlen(type) - 1] == '*' ? "" : " ", name);
    if (i >= 0)
        fprintf(q->o, "%d", i);
}

static const char *pointer(gp_shape *s, const char *before, gp_dtype t)
{
    char *text = gp_shape_alloc(s, 40);
    snprintf(text, 40, "%s%s *", before, stored[t]);
    return text;
}

/* As record() passes them. */
static void put_params(params *q, gp_ew_program *p)
{
    for (int i = 0; i < p->space.nin; i++) {
        put_param(q, pointer(q->s, "const ", p->in[i]), "in", i);
        put_param(q, "size_t", "in_next", i);
    }
    for (int i = 0; i < p->nout; i++) {
        put_param(q, pointer(q->s, "", p->out[i]), "out", i);
        put_param(q, "size_t", "out_next", i);
    }
    put_param(q, "size_t", "n", -1);
    put_param(q, "gp_ew_axes", "axes", -1);
    put_param(q, "int", "linear", -1);
    if (p->nshifts)
        put_param(q, "gp_ew_tiles", "tiles", -1);
    static const char *const numbers[] = { "outer", "rows", "inner", "lanes", "steps" };
    if (gp_ew_has_lines(p))
        put_param(q, "gp_lines", "lines", -1);
    for (int i = 0; p->fold.op && !gp_ew_has_lines(p) && i < 5; i++)
        put_param(q, "size_t", numbers[i], -1);
    if (p->frame)
        put_param(q, "const gp_frame_info *", "frame", -1);
    for (int i = 0; i < p->nsizes; i++)
        put_param(q, "int64_t", "size", i);
    p->nvars = 0;
    for (int i = 0; i < p->n; i++)
        if (p->ins[i].op == GP_EW_NUMBER && p->ins[i].var && p->ins[i].needed && p->nvars++ < GP_EW_VARS)
            put_param(q, computed[p->ins[i].type], "k", p->nvars - 1);
    for (int i = 0; i < p->nshifts; i++)
        if (p->shift[i].var && p->nvars++ < GP_EW_VARS)
            put_param(q, "int64_t", "by", i);
    if (p->steps)
        put_param(q, "int32_t", "steps", -1);
}

/* In the offsets' type. */
static void put_walk(FILE *o, const gp_ew_program *p, const char *near, const char *plain)
{
    if (p->nshifts)
        gp_ew_put_tiles(o, p, near);
    else if (gp_ew_has_lines(p))
        gp_ew_put_lines(o, p, plain);
    else if (p->fold.op)
        gp_ew_put_fold(o, p, plain);
    else
        put_places(o, p, plain);
}

static void put_kernel(params *q, gp_ew_program *p)
{
    FILE *o = q->o;
    fprintf(o, "#include \"expr_ops.h\"\n%sextern \"C\" __global__ void ",
            gp_ew_has_lines(p) ? "#include \"lines.h\"\n" : p->fold.op ? "#include \"fold.h\"\n" : "");
    if (p->steps)
        fprintf(o, "__launch_bounds__(%d) ", p->steps->wide * (p->steps->high / p->steps->rows));
    fputs("expr(", o);
    put_params(q, p);
    fputs(")\n{\n", o);
    for (int i = 0; i < p->space.nin; i++)
        fprintf(o, "    in%d += blockIdx.z * in_next%d;\n", i, i);
    for (int i = 0; i < p->nout; i++)
        fprintf(o, "    out%d += blockIdx.z * out_next%d;\n", i, i);
    if (p->frame)
        fputs("    frame += blockIdx.z;\n", o);
    if (p->steps) {
        gp_ew_put_steps(o, p);
        fputs("}\n", o);
        return;
    }
    put_one(o, p);
    if (p->fold.op)
        gp_ew_put_loaded(o, p);
    if (!p->indices && !p->nshifts) {
        fputs("    if (linear) {\n", o);
        if (gp_ew_has_lines(p))
            gp_ew_put_lines(o, p, NULL);
        else if (p->fold.op)
            gp_ew_put_fold(o, p, NULL);
        else
            put_quads(o, p);
        fputs("    } else ", o);
    } else {
        fputs("    ", o);
    }
    fputs("if (axes.narrow) {\n", o);
    put_walk(o, p, "int32_t", "uint32_t");
    fputs("    } else {\n", o);
    put_walk(o, p, "int64_t", "uint64_t");
    fputs("    }\n}\n", o);
}

bool gp_ew_write(gp_shape *s, const gp_node *text, gp_ew_program *p)
{
    gp_memfile m;
    size_t len;
    char *code = NULL, *kept;
    params q = { .s = s, .type = gp_shape_alloc(s, sizeof *q.type * GP_EW_ARGS) };
    if (gp_memfile_open(&m)) {
        q.o = m.f;
        put_kernel(&q, p);
        code = gp_memfile_close(&m, &len);
    }
    if (!code)
        return gp_shape_fail(s, NULL, "out of memory");
    kept = memcpy(gp_shape_alloc(s, len + 1), code, len);
    free(code);
    if (p->nvars > GP_EW_VARS)
        return gp_shape_fail_at(s, text->at, "more than %d different numbers that vars make", GP_EW_VARS);
    p->source = (gp_source){ .path = gp_shape_loc(s, NULL).file, .entry = "expr", .text = kept, .param = q.type,
                             .nparam = q.n, .shared = p->steps ? p->steps->shared : 0,
                             .at = text->at };     /* it has no variables that launches could share */
    return true;
}
