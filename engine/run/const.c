/* const.c - loads constants: .npy files that are read once, before frame 0. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/half.h"
#include "base/npy.h"
#include "run/run.h"

/* ---- casts: as the kind `cast` does them (kernels/map.h) -------------- */

/* A number as it is in a file: an integer, or f64, which holds all floats. */
typedef struct number { bool integer, below; uint64_t magnitude; double f; } number;

static number of_signed(int64_t x)
{
    return (number){ true, x < 0, x < 0 ? 0 - (uint64_t)x : (uint64_t)x, 0 };
}

/* A NaN becomes the one that GPUs make of any. */
static float half_to_float(uint16_t h)
{
    float f = gp_half_to_float(h);
    if (f != f)
        memcpy(&f, &(uint32_t){ 0x7fffffff }, sizeof f);
    return f;
}

static uint16_t double_to_half(double x)
{
    return x == x ? gp_half_from_double(x) : 0x7fff;
}

static number fetch(const void *from, gp_dtype t)
{
    switch (t) {
    case GP_U8: return (number){ true, false, *(const uint8_t *)from, 0 };
    case GP_U16: return (number){ true, false, *(const uint16_t *)from, 0 };
    case GP_U32: return (number){ true, false, *(const uint32_t *)from, 0 };
    case GP_U64: return (number){ true, false, *(const uint64_t *)from, 0 };
    case GP_I8: return of_signed(*(const int8_t *)from);
    case GP_I16: return of_signed(*(const int16_t *)from);
    case GP_I32: return of_signed(*(const int32_t *)from);
    case GP_I64: return of_signed(*(const int64_t *)from);
    case GP_F16: return (number){ .f = half_to_float(*(const uint16_t *)from) };
    case GP_F32: return (number){ .f = *(const float *)from };
    default: return (number){ .f = *(const double *)from };
    }
}

static float to_float(const number *x)
{
    return !x->integer ? (float)x->f : x->below ? -(float)x->magnitude : (float)x->magnitude;
}

static double to_double(const number *x)
{
    return !x->integer ? x->f : x->below ? -(double)x->magnitude : (double)x->magnitude;
}

/* To nearest, ties to even; saturating; of NaN 0. The bytes of a two's complement. */
static uint64_t to_integer(number x, gp_dtype t)
{
    bool has_sign = t == GP_I8 || t == GP_I16 || t == GP_I32 || t == GP_I64;
    uint64_t most = UINT64_MAX >> (64 - 8 * gp_dtype_size(t) + has_sign);
    if (!x.integer) {
        double f = x.f == x.f ? fabs(rint(x.f)) : 0;
        x.below = x.f < 0;
        x.magnitude = f >= 0x1p64 ? UINT64_MAX : (uint64_t)f;
    }
    if (x.below && !has_sign)
        return 0;
    x.magnitude = x.magnitude > most + x.below ? most + x.below : x.magnitude;
    return x.below ? 0 - x.magnitude : x.magnitude;
}

static void cast(void *dst, gp_dtype to, const void *src, gp_dtype from, size_t n)
{
    char *d = dst;
    const char *s = src;
    for (size_t i = 0; i < n; i++, d += gp_dtype_size(to), s += gp_dtype_size(from)) {
        number x = fetch(s, from);
        if (to == GP_F16)
            *(uint16_t *)d = double_to_half(to_double(&x));
        else if (to == GP_F32)
            *(float *)d = to_float(&x);
        else if (to == GP_F64)
            *(double *)d = to_double(&x);
        else
            memcpy(d, &(uint64_t){ to_integer(x, to) }, gp_dtype_size(to));    /* the low bytes come first */
    }
}

/* ---- files -------------------------------------------------------------- */

/* Reads all elements; those of another type by way of memory of their own. */
static bool read_elements(FILE *f, const gp_buffer *b, void *dst, gp_errs *errs)
{
    size_t n = (size_t)gp_count(&b->type), each = gp_dtype_size(b->file);
    void *src = b->file == b->type.dtype ? dst : malloc(n * each);
    if (!src)
        return gp_fail(errs, GP_E_RESOURCE, b->at, "out of memory");
    bool ok = fread(src, each, n, f) == n
           || gp_fail(errs, GP_E_RUN, b->at, "constant '%s': %s is shorter than its header says", b->name, b->path);
    if (ok && src != dst)
        cast(dst, b->type.dtype, src, b->file, n);
    if (src != dst)
        free(src);
    return ok;
}

static bool load(FILE *f, const gp_buffer *b, void *dst, gp_errs *errs)
{
    enum { HEAD = 64 * 1024 };
    gp_type type, in_file = b->type;
    size_t offset;
    bool fortran;
    char why[160];
    char *head = malloc(HEAD);
    if (!head)
        return gp_fail(errs, GP_E_RESOURCE, b->at, "out of memory");
    bool ok = gp_npy_parse(head, fread(head, 1, HEAD, f), &type, &offset, &fortran, why);
    free(head);
    if (!ok)
        return gp_fail(errs, GP_E_RUN, b->at, "constant '%s': %s: %s", b->name, b->path, why);
    in_file.dtype = b->file;
    if (fortran || !gp_type_same(&type, &in_file))
        return gp_fail(errs, GP_E_RUN, b->at, "constant '%s': %s changed since it was checked",
                       b->name, b->path);
    if (fseek(f, (long)offset, SEEK_SET))
        return gp_fail(errs, GP_E_RUN, b->at, "constant '%s': %s is shorter than its header says",
                       b->name, b->path);
    return read_elements(f, b, dst, errs);
}

/* Each element is the same number, which its type has. */
static void set_all(const gp_buffer *b, char *dst)
{
    const gp_num *x = &b->value;
    size_t each = gp_dtype_size(b->type.dtype);
    for (size_t i = 0, n = (size_t)gp_count(&b->type); i < n; i++, dst += each)
        switch (b->type.dtype) {
        case GP_F16: *(uint16_t *)dst = gp_half_from_double(x->f); break;
        case GP_F32: *(float *)dst = (float)x->f; break;
        case GP_F64: *(double *)dst = x->f; break;
        case GP_C64: *(gp_c64 *)dst = (gp_c64){ (float)x->f, 0 }; break;
        case GP_I64: case GP_U64: *(int64_t *)dst = x->i; break;
        default: memcpy(dst, &(int64_t){ (int64_t)x->f }, each);       /* the low bytes come first */
        }
}

bool gp_const_load(const gp_buffer *b, void *dst, gp_errs *errs)
{
    if (!b->path) {
        set_all(b, dst);
        return true;
    }
    FILE *f = fopen(b->path, "rbe");
    if (!f)
        return gp_fail(errs, errno == ENOMEM ? GP_E_RESOURCE : GP_E_RUN, b->at,
                       "constant '%s': cannot open %s: %s", b->name, b->path, strerror(errno));
    bool ok = load(f, b, dst, errs);
    fclose(f);
    return ok;
}
