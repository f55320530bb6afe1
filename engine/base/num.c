/* num.c - see num.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/half.h"
#include "base/num.h"

/* As an element of floats. */
static double rounded(const gp_num *x, gp_dtype t)
{
    return t == GP_F64 ? x->f : t == GP_F16 ? gp_half_to_float(gp_half_from_double(x->f))
         : x->is_int ? (double)(float)x->i : (double)(float)x->f;
}

bool gp_num_fits(const gp_num *x, gp_dtype t)
{
    if (t >= GP_F16) {
        double v = rounded(x, t);
        return isfinite(v) && (!x->is_int || (gp_int128)v == x->i);
    }
    if (!x->is_int && !(x->f == floor(x->f) && fabs(x->f) <= 0x1p64))
        return false;
    gp_int128 i = x->is_int ? x->i : (gp_int128)x->f;
    int bits = 8 * (int)gp_dtype_size(t);
    bool is_signed = t == GP_I8 || t == GP_I16 || t == GP_I32 || t == GP_I64;
    return i >= (is_signed ? -((gp_int128)1 << (bits - 1)) : 0) && i < (gp_int128)1 << (bits - is_signed);
}

void gp_num_store(void *to, const gp_num *x, gp_dtype t)
{
    uint64_t i = t >= GP_F16 ? 0 : (uint64_t)(x->is_int ? x->i : (gp_int128)x->f);
    switch (t) {
    case GP_F16: *(uint16_t *)to = gp_half_from_double(x->f); break;
    case GP_F32: *(float *)to = (float)rounded(x, t); break;
    case GP_F64: *(double *)to = x->f; break;
    case GP_C64: *(gp_c64 *)to = (gp_c64){ (float)rounded(x, t), 0 }; break;
    default: memcpy(to, &i, gp_dtype_size(t));         /* the low bytes come first */
    }
}

bool gp_num_whole(gp_num *x)
{
    if (!x->is_int && x->f == floor(x->f) && fabs(x->f) < 0x1p53)
        *x = (gp_num){ true, (gp_int128)x->f, x->f };
    return x->is_int;
}

const char *gp_num_text(const gp_num *x, char buf[GP_NUM_TEXT])
{
    if (x->is_int)
        snprintf(buf, GP_NUM_TEXT, "%s%llu", x->i < 0 ? "-" : "", (unsigned long long)(x->i < 0 ? -x->i : x->i));
    else if (snprintf(buf, GP_NUM_TEXT, "%.15g", x->f), strtod(buf, NULL) != x->f)
        snprintf(buf, GP_NUM_TEXT, "%.17g", x->f);
    return buf;
}
