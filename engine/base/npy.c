/* npy.c - reads and writes the header of .npy files, see npy.h.
 *
 * A header is a Python dict of three keys, in any order. It is scanned as untrusted text:
 * every step is bounded by `end`. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/npy.h"

static const char magic[6] = { '\x93', 'N', 'U', 'M', 'P', 'Y' };

/* c16 and above 8 bytes are not gpipe's; bool is stored as bytes 0 and 1. */
static const struct { char code[3]; gp_dtype dtype; } codes[] = {
    { "u1", GP_U8 },  { "i1", GP_I8 },  { "u2", GP_U16 }, { "i2", GP_I16 },
    { "u4", GP_U32 }, { "i4", GP_I32 }, { "u8", GP_U64 }, { "i8", GP_I64 },
    { "f2", GP_F16 }, { "f4", GP_F32 }, { "f8", GP_F64 }, { "c8", GP_C64 },
    { "b1", GP_U8 },
};
enum { NCODES = sizeof codes / sizeof *codes };

typedef struct scan {
    const char *p, *end;
    char *err;             /* 160 bytes */
} scan;

__attribute__((format(printf, 2, 3)))
static bool fail(char *err, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(err, 160, fmt, ap);
    va_end(ap);
    return false;
}

static bool bad(scan *s, const char *what)
{
    return fail(s->err, "has a broken .npy header: %s", what);
}

static void blank(scan *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\t' || *s->p == '\n' || *s->p == '\r'))
        s->p++;
}

/* Is `c` next? Then it is taken. */
static bool take(scan *s, char c)
{
    blank(s);
    if (s->p == s->end || *s->p != c)
        return false;
    s->p++;
    return true;
}

static bool take_word(scan *s, const char *word)
{
    size_t n = strlen(word);
    blank(s);
    if ((size_t)(s->end - s->p) < n || memcmp(s->p, word, n))
        return false;
    s->p += n;
    return true;
}

/* A quoted string without escapes, of at most cap - 1 bytes. */
static bool string(scan *s, char *out, size_t cap)
{
    char quote = take(s, '\'') ? '\'' : take(s, '"') ? '"' : 0;
    const char *close = quote ? memchr(s->p, quote, (size_t)(s->end - s->p)) : NULL;
    size_t n = close ? (size_t)(close - s->p) : 0;
    if (!close || n >= cap)
        return false;
    memcpy(out, s->p, n);
    out[n] = 0;
    s->p = close + 1;
    return true;
}

static bool has_order(const char *d)
{
    return *d == '<' || *d == '>' || *d == '|' || *d == '=';
}

static gp_dtype dtype_of(const char *code)
{
    for (int i = 0; i < NCODES; i++)
        if (!strcmp(codes[i].code, code))
            return codes[i].dtype;
    return GP_NO_DTYPE;
}

static bool parse_descr(scan *s, gp_type *t, bool *big)
{
    char d[32];
    blank(s);
    if (s->p < s->end && *s->p == '[')
        return fail(s->err, "holds records, which gpipe cannot take: save one field of them");
    if (!string(s, d, sizeof d))
        return bad(s, "'descr' is not a short string");

    const char *code = d + has_order(d);
    t->dtype = dtype_of(code);
    if (!t->dtype) {
        const char *what = *code == 'O' ? "Python objects"
                         : *code == 'S' || *code == 'U' || *code == 'a' ? "strings"
                         : *code == 'M' || *code == 'm' ? "dates"
                         : *code == 'V' ? "raw records"
                         : NULL;
        const char *wide = !strcmp(code, "c16") ? "complex128" : !strcmp(code, "c32") ? "complex256"
                         : !strcmp(code, "f16") ? "longdouble" : NULL;
        return wide ? fail(s->err, "holds %s, which gpipe has no type for: save it with .astype('%s')%s",
                           wide, *code == 'c' ? "complex64" : "float64", *code == 'c' ? ", or its .real" : "")
             : what ? fail(s->err, "holds %s, which gpipe has no type for", what)
                    : fail(s->err, "has element type '%.31s', which gpipe does not have", d);
    }
    bool swapped = d[0] == '>' && gp_dtype_size(t->dtype) > 1;
    if (big)
        *big = swapped;
    else if (swapped)
        return fail(s->err, "is big-endian ('%.31s'): save it with .astype('<%.30s')", d, code);
    return true;
}

static bool parse_shape(scan *s, gp_type *t)
{
    if (!take(s, '('))
        return bad(s, "'shape' is not a tuple");
    while (!take(s, ')')) {
        blank(s);
        if (t->ndim == GP_MAXDIM)
            return fail(s->err, "has more than %d axes", GP_MAXDIM);
        int64_t v = 0;
        const char *first = s->p;
        for (; s->p < s->end && *s->p >= '0' && *s->p <= '9'; s->p++)
            if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *s->p - '0', &v))
                return fail(s->err, "has an axis that is too long");
        if (s->p == first)
            return bad(s, "an axis is not a number");
        t->dim[t->ndim++] = v;
        take(s, 'L');                  /* as Python 2 wrote long integers */
        if (!take(s, ',')) {
            if (!take(s, ')'))
                return bad(s, "the shape does not end");
            break;
        }
    }
    if (!t->ndim)
        t->dim[t->ndim++] = 1;
    return true;
}

/* No product of axes may overflow, even where another axis is 0. */
static bool check_size(const gp_type *t, char *err)
{
    int64_t bytes = (int64_t)gp_dtype_size(t->dtype);
    for (int i = 0; i < t->ndim; i++)
        if (__builtin_mul_overflow(bytes, t->dim[i] ? t->dim[i] : 1, &bytes))
            return fail(err, "has a shape of more than 2^63 bytes");
    return true;
}

bool gp_npy_parse(const char *head, size_t n, gp_type *type, size_t *data_offset,
                  bool *fortran, char err[160])
{
    return gp_npy_parse_any(head, n, type, data_offset, fortran, NULL, err);
}

bool gp_npy_parse_any(const char *head, size_t n, gp_type *type, size_t *data_offset,
                      bool *fortran, bool *big, char err[160])
{
    const unsigned char *u = (const unsigned char *)head;
    if (n < sizeof magic || memcmp(head, magic, sizeof magic))
        return fail(err, "is not a .npy file");
    if (n < 10)
        return fail(err, "is cut off within its header, after %zu bytes", n);
    int version = u[6];
    if (version < 1 || version > 3)
        return fail(err, "has .npy version %d.%d; gpipe reads 1.0 to 3.0", u[6], u[7]);
    size_t at = version == 1 ? 10 : 12;
    size_t len = u[8] | (size_t)u[9] << 8;
    if (version > 1 && n >= 12)
        len |= (size_t)u[10] << 16 | (size_t)u[11] << 24;
    if (n < at || len > n - at)
        return fail(err, "is cut off within its header, after %zu bytes", n);

    scan s = { head + at, head + at + len, err };
    gp_type t = { 0 };
    bool order = false;
    enum { DESCR = 1, ORDER = 2, SHAPE = 4 };
    int seen = 0;

    if (!take(&s, '{'))
        return bad(&s, "it is not a dict");
    while (!take(&s, '}')) {
        char key[32];
        if (!string(&s, key, sizeof key) || !take(&s, ':'))
            return bad(&s, "a key is expected");
        int bit = !strcmp(key, "descr") ? DESCR : !strcmp(key, "fortran_order") ? ORDER
                : !strcmp(key, "shape") ? SHAPE : 0;
        if (!bit || seen & bit)
            return bad(&s, "it has an unknown or repeated key");
        seen |= bit;
        if (bit == DESCR && !parse_descr(&s, &t, big))
            return false;
        if (bit == SHAPE && !parse_shape(&s, &t))
            return false;
        if (bit == ORDER && !(order = take_word(&s, "True")) && !take_word(&s, "False"))
            return bad(&s, "'fortran_order' is neither True nor False");
        if (!take(&s, ',')) {
            if (!take(&s, '}'))
                return bad(&s, "the dict does not end");
            break;
        }
    }
    blank(&s);
    if (seen != (DESCR | ORDER | SHAPE))
        return bad(&s, "'descr', 'fortran_order' or 'shape' is missing");
    if (s.p != s.end && *s.p != '#')
        return bad(&s, "there is something after the dict");
    if (!check_size(&t, err))
        return false;

    *type = t;
    *data_offset = at + len;
    *fortran = order;
    return true;
}

/* The dict; returns its length without the NUL. */
static size_t dict(const gp_type *type, int64_t rows, char *buf, size_t cap)
{
    const char *code = "";
    for (int i = NCODES; i-- > 0; )
        if (codes[i].dtype == type->dtype)
            code = codes[i].code;
    int n = snprintf(buf, cap, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                     gp_dtype_size(type->dtype) > 1 ? '<' : '|', code);
    for (int i = 0; i < type->ndim; i++)
        n += snprintf((size_t)n < cap ? buf + n : NULL, (size_t)n < cap ? cap - (size_t)n : 0,
                      "%s%lld", i ? ", " : "", (long long)(i ? type->dim[i] : rows));
    n += snprintf((size_t)n < cap ? buf + n : NULL, (size_t)n < cap ? cap - (size_t)n : 0,
                  type->ndim == 1 ? ",), }" : "), }");
    return (size_t)n;
}

size_t gp_npy_header_with(const gp_type *type, const char *comment, char *buf, size_t cap)
{
    size_t more = strlen(comment) + 3 * !!*comment;
    size_t text = dict(type, INT64_MAX, NULL, 0) + more + 1;       /* and a newline */
    size_t total = (10 + text + 63) / 64 * 64;
    if (total > cap)
        return 0;

    memcpy(buf, magic, sizeof magic);
    buf[6] = 1;
    buf[7] = 0;
    buf[8] = (char)((total - 10) & 0xff);
    buf[9] = (char)((total - 10) >> 8);
    size_t n = dict(type, type->dim[0], buf + 10, total - 10);
    memset(buf + 10 + n, ' ', total - 10 - n);
    if (more)
        memcpy(buf + 10 + n + 1, "# ", 2), memcpy(buf + 10 + n + 3, comment, more - 3);
    buf[total - 1] = '\n';
    return total;
}

size_t gp_npy_header(const gp_type *type, char *buf, size_t cap)
{
    return gp_npy_header_with(type, "", buf, cap);
}

char *gp_numpy_name(gp_dtype t, char to[GP_NUMPY_NAME])
{
    const char *name = gp_dtype_name(t);
    snprintf(to, GP_NUMPY_NAME, "%s%s", *name == 'u' ? "uint" : *name == 'i' ? "int" : *name == 'f' ? "float" : "complex",
             name + 1);
    return to;
}

gp_dtype gp_numpy_dtype(const char *name, bool *big)
{
    char is[GP_NUMPY_NAME];
    *big = false;
    if (has_order(name)) {
        gp_dtype t = dtype_of(name + 1);
        *big = *name == '>' && t && gp_dtype_size(t) > 1;
        return t;
    }
    for (int t = GP_NO_DTYPE + 1; t < GP_NDTYPES; t++)
        if (!strcmp(gp_numpy_name((gp_dtype)t, is), name))
            return (gp_dtype)t;
    return strcmp(name, "bool") ? GP_NO_DTYPE : GP_U8;
}
