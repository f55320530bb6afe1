/* view_numbers.c - what is said of a frame that is looked at: least, greatest, mean, and so on. */
#include <math.h>
#include "base/half.h"
#include "base/json.h"
#include "cli/live.h"

double gp_view_element(gp_dtype t, const void *data, size_t i)
{
    switch (t) {
    case GP_F16:
        return (double)gp_half_to_float(((const uint16_t *)data)[i]);
    case GP_C64:
        return hypot((double)((const gp_c64 *)data)[i].re, (double)((const gp_c64 *)data)[i].im);
#define NUMBER(NAME, ctype) case GP_##NAME: return (double)((const ctype *)data)[i];
    NUMBER(U8, uint8_t) NUMBER(I8, int8_t) NUMBER(U16, uint16_t) NUMBER(I16, int16_t) NUMBER(U32, uint32_t)
    NUMBER(I32, int32_t) NUMBER(U64, uint64_t) NUMBER(I64, int64_t) NUMBER(F32, float) NUMBER(F64, double)
    default:
        return 0;
    }
}

gp_view_numbers gp_view_numbers_of(const gp_type *t, const void *data)
{
    gp_view_numbers v = { .min = NAN, .max = NAN, .mean = NAN, .std = NAN, .n = (size_t)gp_count(t) };
    double squares = 0, good = 0;
    for (size_t i = 0; i < v.n; i++) {
        double x = gp_view_element(t->dtype, data, i);
        v.nan += isnan(x), v.inf += isinf(x) != 0;
        if (!isfinite(x))
            continue;
        double off = good++ ? x - v.mean : 0;  /* Welford: one pass, and no sum that cancels */
        v.mean = good > 1 ? v.mean + off / good : x;
        squares += off * (x - v.mean);
        v.min = x < v.min || good == 1 ? x : v.min;
        v.max = x > v.max || good == 1 ? x : v.max;
    }
    v.std = good > 0 ? sqrt(squares / good) : NAN;
    return v;
}

void gp_view_put(FILE *f, const gp_tapped *frame, const gp_view_numbers *n)
{
    gp_json j = { .f = f, .level = 3 };
    gp_json_put(&j, "{frame: %ju, holes: %ju, time_ns: %jd, dtype: %s", (uintmax_t)frame->frame, (uintmax_t)frame->holes,
                (intmax_t)frame->time_ns, gp_dtype_name(frame->type.dtype));
    GP_JSON_EACH(&j, "shape", i, frame->type.ndim)
        gp_json_int(&j, NULL, frame->type.dim[i]);
    if (n)
        gp_json_put(&j, "min: %g, max: %g, mean: %g, std: %g, elements: %zu, nan: %zu, inf: %zu", n->min, n->max, n->mean,
                    n->std, n->n, n->nan, n->inf);
    gp_json_close(&j, '}');
}

void gp_view_print(FILE *to, const gp_tapped *f, const gp_view_numbers *n)
{
    char type[128];
    gp_dtype t = f->type.dtype;
    fprintf(to, "frame %ju  %s  min %.6g  max %.6g  mean %.6g  std %.6g", (uintmax_t)f->frame, gp_type_text(&f->type, type),
            n->min, n->max, n->mean, n->std);
    if (t == GP_F16 || t == GP_F32 || t == GP_F64 || t == GP_C64)
        fprintf(to, "  nan %zu  inf %zu", n->nan, n->inf);
    if (f->holes)
        fprintf(to, "  holes %ju", (uintmax_t)f->holes);
}
