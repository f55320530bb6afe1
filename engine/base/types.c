/* types.c - element types and frame types, see stage.h. */
#include <stdio.h>
#include <string.h>
#include "gpipe/stage.h"

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

char *gp_type_text(const gp_type *t, char buf[128])
{
    int n = snprintf(buf, 128, "%s [", gp_dtype_name(t->dtype));
    for (int i = 0; i < t->ndim && n < 120; i++)
        n += snprintf(buf + n, 128 - (size_t)n, "%s%lld", i ? ", " : "",
                      (long long)t->dim[i]);
    strcpy(buf + (n < 127 ? n : 123), n < 127 ? "]" : "...]");
    return buf;
}
