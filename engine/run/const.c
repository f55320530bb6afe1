/* const.c - loads constants: .npy files that are read once, before frame 0. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/half.h"
#include "base/npy.h"
#include "run/run.h"

static bool load(FILE *f, const gp_buffer *b, void *dst, gp_errs *errs)
{
    enum { HEAD = 64 * 1024 };
    gp_type type;
    size_t offset, want = gp_bytes(&b->type);
    bool fortran;
    char why[160];
    char *head = malloc(HEAD);
    if (!head)
        return gp_fail(errs, GP_E_RESOURCE, b->at, "out of memory");
    bool ok = gp_npy_parse(head, fread(head, 1, HEAD, f), &type, &offset, &fortran, why);
    free(head);
    if (!ok)
        return gp_fail(errs, GP_E_RUN, b->at, "constant '%s': %s: %s", b->name, b->path, why);
    if (fortran || !gp_type_same(&type, &b->type))
        return gp_fail(errs, GP_E_RUN, b->at, "constant '%s': %s changed since it was checked",
                       b->name, b->path);
    if (fseek(f, (long)offset, SEEK_SET) || fread(dst, 1, want, f) != want)
        return gp_fail(errs, GP_E_RUN, b->at, "constant '%s': %s is shorter than its header says",
                       b->name, b->path);
    return true;
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
