/* number.c - see number.h. */
#include <math.h>
#include <string.h>
#include "base/half.h"
#include "number.h"

bool gp_number_fits(gp_shape *s, const char *opt, double v, gp_dtype t)
{
    int bits = (int)(8 * gp_dtype_size(t));
    bool is_signed = t == GP_I8 || t == GP_I16 || t == GP_I32 || t == GP_I64;
    double min = is_signed ? -ldexp(1, bits - 1) : 0, end = ldexp(1, is_signed ? bits - 1 : bits);
    return t == GP_F16 || t == GP_F32 || t == GP_F64 || t == GP_C64 || (v >= min && v < end && v == floor(v))
        || gp_shape_fail(s, opt, "'%s' is %g, which '%s' does not hold; give another, or put a 'cast' before this "
                                 "stage",
                         opt, v, gp_dtype_name(t));
}

uint64_t gp_number_bits(double v, gp_dtype t)
{
    union { uint8_t u8; uint16_t u16; uint32_t u32; uint64_t u64; float f32; double f64; gp_c64 c64; } x;
    memset(&x, 0, sizeof x);
    switch (t) {
    case GP_U8: x.u8 = (uint8_t)v; break;
    case GP_I8: x.u8 = (uint8_t)(int8_t)v; break;
    case GP_U16: x.u16 = (uint16_t)v; break;
    case GP_I16: x.u16 = (uint16_t)(int16_t)v; break;
    case GP_U32: x.u32 = (uint32_t)v; break;
    case GP_I32: x.u32 = (uint32_t)(int32_t)v; break;
    case GP_U64: x.u64 = (uint64_t)v; break;
    case GP_I64: x.u64 = (uint64_t)(int64_t)v; break;
    case GP_F16: x.u16 = gp_half_from_double(v); break;
    case GP_F32: x.f32 = (float)v; break;
    case GP_F64: x.f64 = v; break;
    default: x.c64 = (gp_c64){ (float)v, 0 };
    }
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

bool gp_number_range(gp_shape *s, const gp_floats *range)
{
    if (range->n && range->n != 2)
        return gp_shape_fail(s, "range", "'range' is a list of %d; give [low, high]", range->n);
    return !range->n || (range->v[0] < range->v[1] && isfinite(range->v[1] - range->v[0]))
        || gp_shape_fail(s, "range", "'range' is [%g, %g]: the second must be more than the first", range->v[0],
                         range->v[1]);
}
