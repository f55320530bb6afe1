/* text_file.c - writing numbers as text, and what the formats of it are, see text_file.h. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "text_file.h"

enum { NUMBER_MAX = 32 };              /* bytes that a number and its separator need at most */

/* The fewest digits that are read back to the same bits. */
static int put_float(char *to, double x, bool single, bool json)
{
    if (!isfinite(x))
        return sprintf(to, "%s", isnan(x) ? (json ? "NaN" : "nan") : json ? (x < 0 ? "-Infinity" : "Infinity")
                                                                          : x < 0 ? "-inf" : "inf");
    int n = 0;
    if (fabs(x) < 1e6 && x == (int)x && !(x == 0 && signbit(x)))
        return sprintf(to, "%d", (int)x);
    for (int digits = single ? 6 : 15; digits <= (single ? 9 : 17); digits++) {
        n = sprintf(to, "%.*g", digits, x);
        double again = single ? (double)strtof(to, NULL) : strtod(to, NULL);
        if (again == x)
            break;
    }
    for (char *p = to; *p; p++)        /* some locales have a comma */
        if (!isdigit((unsigned char)*p) && !strchr("+-e", *p))
            *p = '.';
    return n;
}

int gp_text_spell(char to[GP_FILEMETA_NUMBER], double x)
{
    return put_float(to, x, false, true);
}

/* One element, and its NUL. */
static int put_element(char *to, const char *from, gp_dtype t, bool json)
{
    switch (t) {
#define WHOLE(NAME, ctype, format, wide)         \
    case NAME: {                                 \
        ctype x;                                 \
        memcpy(&x, from, sizeof x);              \
        return sprintf(to, "%" format, (wide)x); \
    }
    WHOLE(GP_U8, uint8_t, "u", unsigned)
    WHOLE(GP_I8, int8_t, "d", int)
    WHOLE(GP_U16, uint16_t, "u", unsigned)
    WHOLE(GP_I16, int16_t, "d", int)
    WHOLE(GP_U32, uint32_t, "u", unsigned)
    WHOLE(GP_I32, int32_t, "d", int)
    WHOLE(GP_U64, uint64_t, "llu", unsigned long long)
    WHOLE(GP_I64, int64_t, "lld", long long)
#undef WHOLE
    default: {
        float f;
        double d;
        memcpy(t == GP_F32 ? (void *)&f : (void *)&d, from, gp_dtype_size(t));
        return put_float(to, t == GP_F32 ? (double)f : d, t == GP_F32, json);
    }
    }
}

int gp_text_element(char to[GP_FILEMETA_NUMBER], const void *from, gp_dtype t)
{
    return put_element(to, from, t, false);
}

static bool encode(const gp_rowsfile *as, const void *frame, const gp_type *t, gp_growbuf *out, char err[GP_WHY])
{
    size_t size = gp_dtype_size(t->dtype), count = (size_t)gp_count(t);
    size_t columns = t->ndim > 1 ? (size_t)t->dim[1] : 1;
    const char *from = frame;
    bool json = !as->separator;
    if (!gp_growbuf_need(out, out->n + count * (NUMBER_MAX + 1) + 1))
        return gp_why(err, "cannot be written: " GP_WHY_MEMORY);
    char *to = (char *)out->data + out->n;
    for (size_t i = 0; i < count; i++, from += size) {
        size_t k = i % columns;
        if (json)
            to += sprintf(to, "%s", k ? ", " : t->ndim > 1 ? "[" : "");
        else if (k)
            *to++ = as->separator;
        to += put_element(to, from, t->dtype, json);
        if (k + 1 == columns)
            to += sprintf(to, "%s\n", json && t->ndim > 1 ? "]" : "");
    }
    out->n = (size_t)(to - (char *)out->data);
    return true;
}

static const char *why_not(const gp_type *t, const char *path)
{
    if (t->dtype == GP_F16 || t->dtype == GP_C64)
        return "text holds no f16 and no c64: put a 'cast' stage before this one";
    return t->ndim <= 2 ? NULL : "text has frames of shape [rows] or [rows, columns]";
}

/* ---- the three of them ------------------------------------------------ */

#define TEXT \
    .decode_ns = 20, .head = gp_text_head, .open = gp_text_open, .read = gp_text_read, \
    .leave = gp_text_leave, .close = gp_text_close, .why_not = why_not, .encode = encode

const gp_rowsfile gp_csv = { .name = "CSV", .options = { "header", "decimal", "columns" }, .separator = ',', TEXT };
const gp_rowsfile gp_tsv = { .name = "TSV", .options = { "header", "decimal", "columns" }, .separator = '\t', TEXT };
const gp_rowsfile gp_jsonl = { .name = "JSON lines", TEXT };
