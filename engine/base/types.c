/* types.c - element types and frame types, see stage.h. */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include "base/dtypes.h"

static const struct { const char *name; size_t bytes; } dtypes[GP_NDTYPES] = {
#define X(NAME, name, ctype, bytes) [GP_##NAME] = { #name, bytes },
    GP_DTYPES(X)
#undef X
};

size_t gp_dtype_size(gp_dtype t)
{
    return dtypes[t].bytes;
}

const char *gp_dtype_name(gp_dtype t)
{
    return dtypes[t].name ? dtypes[t].name : "?";
}

gp_dtype gp_dtype_parse(const char *name)
{
    for (int t = 1; t < GP_NDTYPES; t++)
        if (!strcmp(dtypes[t].name, name))
            return (gp_dtype)t;
    return GP_NO_DTYPE;
}

/* Other names of types: the name of the type that gpipe has, or what to use in its place. */
static const struct { const char *name, *is; } elsewhere[] = {
    { "uint8", "u8" }, { "uint8_t", "u8" }, { "u1", "u8" }, { "byte", "u8" }, { "ubyte", "u8" },
    { "uchar", "u8" }, { "unsigned char", "u8" }, { "char", "u8" }, { "bool", "u8" },
    { "int8", "i8" }, { "int8_t", "i8" }, { "i1", "i8" }, { "schar", "i8" }, { "signed char", "i8" },
    { "uint16", "u16" }, { "uint16_t", "u16" }, { "u2", "u16" }, { "ushort", "u16" },
    { "unsigned short", "u16" },
    { "int16", "i16" }, { "int16_t", "i16" }, { "i2", "i16" }, { "short", "i16" },
    { "uint32", "u32" }, { "uint32_t", "u32" }, { "u4", "u32" }, { "uint", "u32" },
    { "unsigned", "u32" }, { "unsigned int", "u32" },
    { "int32", "i32" }, { "int32_t", "i32" }, { "i4", "i32" }, { "int", "i32" }, { "integer", "i32" },
    { "uint64", "u64" }, { "uint64_t", "u64" }, { "ulong", "u64" }, { "size_t", "u64" },
    { "unsigned long", "u64" }, { "int64", "i64" }, { "int64_t", "i64" }, { "long", "i64" },
    { "long long", "i64" },
    { "float16", "f16" }, { "f2", "f16" }, { "half", "f16" }, { "__half", "f16" }, { "fp16", "f16" },
    { "float32", "f32" }, { "f4", "f32" }, { "float", "f32" }, { "single", "f32" }, { "fp32", "f32" },
    { "float64", "f64" }, { "f8", "f64" }, { "double", "f64" }, { "fp64", "f64" },
    { "complex64", "c64" }, { "c8", "c64" }, { "complex", "c64" }, { "cuComplex", "c64" },
    { "float2", "c64" },
    { "complex128", ": c64 holds two f32 (complex64); two f64 are f64 with a last axis of 2" },
    { "c16", ": c64 holds two f32 (complex64); two f64 are f64 with a last axis of 2" },
    { "c128", ": c64 holds two f32 (complex64); two f64 are f64 with a last axis of 2" },
    { "bfloat16", ": f16 and f32 are the floats of up to 32 bits" },
    { "bf16", ": f16 and f32 are the floats of up to 32 bits" },
    { "longdouble", ": f64 is the widest float" }, { "long double", ": f64 is the widest float" },
    { "float128", ": f64 is the widest float" },
    { "str", ": text is u8, a byte an element" }, { "string", ": text is u8, a byte an element" },
};

const char *gp_dtype_hint(const char *name, char text[GP_DTYPE_HINT])
{
    size_t n = sizeof elsewhere / sizeof *elsewhere, i = 0;
    while (i < n && strcasecmp(elsewhere[i].name, name))
        i++;
    gp_near near = GP_NEAR(name);
    for (int t = 1; t < GP_NDTYPES; t++) {
        gp_near_try(&near, dtypes[t].name);
        if (!strcasecmp(dtypes[t].name, name))
            near.best = dtypes[t].name, near.distance = 0;
    }
    if (i == n)
        return strcpy(text, gp_near_text(&near));
    bool have = *elsewhere[i].is != ':';
    snprintf(text, GP_DTYPE_HINT, "%s%s%s", have ? "; did you mean '" : "", elsewhere[i].is,
             have ? "'?" : "");
    return text;
}

int64_t gp_count(const gp_type *t)
{
    int64_t n = 1;
    for (int i = 0; i < t->ndim; i++)
        n *= t->dim[i];
    return n;
}

size_t gp_bytes(const gp_type *t)
{
    return (size_t)gp_count(t) * gp_dtype_size(t->dtype);
}

bool gp_type_same(const gp_type *a, const gp_type *b)
{
    return a->dtype == b->dtype && a->ndim == b->ndim
        && !memcmp(a->dim, b->dim, sizeof a->dim[0] * (size_t)a->ndim);
}

static char *type_text(const gp_type *t, unsigned varies, char *buf, int size)
{
    int n = snprintf(buf, (size_t)size, "%s [", gp_dtype_name(t->dtype));
    for (int i = 0; i < t->ndim && n < size - 8; i++)
        n += snprintf(buf + n, (size_t)(size - n), "%s%s%lld", i ? ", " : "", varies >> i & 1 ? "<=" : "",
                      (long long)t->dim[i]);
    strcpy(buf + (n < size - 1 ? n : size - 5), n < size - 1 ? "]" : "...]");
    return buf;
}

char *gp_type_text(const gp_type *t, char buf[128])
{
    return type_text(t, 0, buf, 128);
}

char *gp_bounds_text(const gp_type *t, unsigned varies, char buf[GP_BOUNDS_TEXT])
{
    return type_text(t, varies, buf, GP_BOUNDS_TEXT);
}
