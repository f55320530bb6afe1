/* constants.c - what constants hold: .npy files, or numbers in the pipeline's file. */
#include <string.h>
#include "base/npy.h"
#include "base/num.h"
#include "base/plural.h"
#include "base/why.h"
#include "compile/resolve.h"

/* ---- lists of numbers -------------------------------------------------- */

typedef struct listing { gp_resolving *r; gp_rbuf *b; gp_num *v; int n, cap; } listing;

/* A number, which the type has to have. */
static bool read_number(listing *l, const gp_node *n)
{
    enum { MOST = 1 << 16 };
    gp_dtype t = l->b->b.type.dtype;
    gp_num *x = GP_PUSH(l->r->arena, l->v, l->n, l->cap);
    if (l->n > MOST)
        return AT(l->r, n->at, "constant '%s' has more than %d elements: make it a .npy file", l->b->b.name, MOST);
    if (!gp_read_num(&l->r->read, n, x))
        return false;
    return gp_num_fits(x, t)
        || AT(l->r, n->at, "constant '%s': %s cannot hold %.40s: give it another 'dtype'", l->b->b.name,
              gp_dtype_name(t), n->text);
}

/* The list that is an axis, or a part of it; the first one there says how long all are. */
static bool read_list(listing *l, const gp_node *list, int axis)
{
    gp_type *t = &l->b->b.type;
    const char *name = l->b->b.name;
    if (list->kind != GP_LIST)
        return AT(l->r, list->at, list->kind == GP_MAP ? "constant '%s' is a list of numbers, or of lists of them, not of maps"
                  : "constant '%s': this is a number, and others here are lists", name);
    if (axis == GP_MAXDIM)
        return AT(l->r, list->at, "constant '%s' has more than %d axes", name, GP_MAXDIM);
    if (!list->n)
        return AT(l->r, list->at, "constant '%s': this list is empty", name);
    if (axis == t->ndim)
        t->dim[t->ndim++] = list->n;
    if (list->n != t->dim[axis])
        return AT(l->r, list->at, "constant '%s': this list has %d element%s, and the first one here %lld", name, list->n,
                  gp_plural(list->n), (long long)t->dim[axis]);
    for (int i = 0; i < list->n; i++) {
        const gp_node *item = list->item[i];
        bool last = axis + 1 == t->ndim;
        if (last && l->n && item->kind == GP_LIST)
            return AT(l->r, item->at, "constant '%s': this is a list, and others here are numbers", name);
        if (last && item->kind == GP_SCALAR ? !read_number(l, item) : !read_list(l, item, axis + 1))
            return false;
    }
    return true;
}

bool gp_read_const_list(gp_resolving *r, gp_rbuf *b, const gp_node *list)
{
    listing l = { .r = r, .b = b };
    r->read.key = "const";
    b->b.type = (gp_type){ .dtype = b->b.said.dtype ? b->b.said.dtype : GP_F32 };
    b->known = read_list(&l, list, 0);
    b->b.numbers = l.v;
    return b->known;
}

/* ---- files ------------------------------------------------------------- */

static bool look_into_file(gp_resolving *r, gp_rbuf *b)
{
    gp_loc at = b->node ? gp_node_get(b->node, "const")->at : b->b.at;
    const gp_file *f = &gp_probe_get(r->probe, b->b.path, false)->file;
    const char *path = b->b.path, *name = b->node ? gp_format(r->arena, "constant '%s'", b->b.name)
                                                  : gp_format(r->arena, "'init' of buffer '%.*s'",
                                                              (int)strlen(b->b.name) - (int)strlen(".init"), b->b.name);
    gp_type *t = &b->b.type;
    size_t offset;
    bool fortran;
    char why[160];
    if (f->error || f->kind != GP_FILE_REGULAR)
        return AT(r, at, "%s: '%s' %s%s", name, path,
                  f->error ? "cannot be read: " : "is not a regular file",
                  f->error ? gp_strerror(f->error) : "");
    if (!gp_npy_parse(f->head, f->nhead, t, &offset, &fortran, why))
        return AT(r, at, "%s: '%s' %s", name, path, why);
    if (fortran && t->ndim > 1)
        return AT(r, at, "%s: '%s' is column-major; save it with np.ascontiguousarray",
                  name, path);
    if (gp_count(t) < 1)
        return AT(r, at, "%s: '%s' is empty", name, path);
    size_t bytes = gp_bytes(t);
    if (bytes > (size_t)GP_BYTES_MAX || gp_count(t) * 8 > GP_BYTES_MAX)
        return AT(r, at, "%s: '%s' is larger than 1 TiB", name, path);
    if (f->size < 0 || (size_t)f->size < offset + bytes)
        return AT(r, at, "%s: '%s' is shorter than its header says", name, path);
    b->b.file = t->dtype;
    if (b->b.said.dtype && b->b.said.dtype != t->dtype && (b->b.said.dtype == GP_C64 || t->dtype == GP_C64))
        return AT(r, gp_node_get(b->node, "dtype")->at, "%s: '%s' holds %s, which is not cast to %s", name, path,
                  gp_dtype_name(t->dtype), gp_dtype_name(b->b.said.dtype));
    t->dtype = b->b.said.dtype ? b->b.said.dtype : t->dtype;
    return true;
}

void gp_look_into_constants(gp_resolving *r)
{
    for (int i = 0; i < r->nbuffers; i++)
        if (r->buffer[i].konst && !r->buffer[i].broken && r->buffer[i].b.path)
            r->buffer[i].known = look_into_file(r, &r->buffer[i]);
}
