/* const.c - loads constants, once, before frame 0: .npy files, and numbers. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/convert.h"
#include "base/npy.h"
#include "base/num.h"
#include "base/why.h"
#include "run/run.h"

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
        gp_convert(dst, b->type.dtype, src, b->file, n);
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

/* The numbers that are in the pipeline's file, or the one that all elements are. Its type has them. */
static void set_all(const gp_buffer *b, char *dst)
{
    const gp_num *x = b->numbers ? b->numbers : &b->value;
    size_t each = gp_dtype_size(b->type.dtype);
    for (size_t i = 0, n = (size_t)gp_count(&b->type); i < n; i++, dst += each, x += b->numbers != NULL)
        gp_num_store(dst, x, b->type.dtype);
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
                       "constant '%s': cannot open %s: %s", b->name, b->path, gp_strerror(errno));
    bool ok = load(f, b, dst, errs);
    fclose(f);
    return ok;
}
