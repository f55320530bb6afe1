/* list.c - records a body as a list of operations, see list.h.
 *
 * A stream runs them in the order in which they were recorded, which respects all dependencies: items need no edges. */
#include <stdlib.h>
#include <string.h>
#include "cpu/list.h"

static void clear(gp_list *l)
{
    for (int i = 0; i < l->n; i++)
        gp_check_destroy(l->op[i].check);
    l->n = 0, l->used = 0;
}

void gp_list_free(gp_list *l)
{
    clear(l);
    free(l->op), free(l->bytes);
}

typedef struct gp_cpurec {
    gp_rec rec;
    gp_list *list;
    int streams, slots;
} gp_cpurec;

static bool no_memory(gp_rec *r)
{
    return gp_fail(r->errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory");
}

static gp_cpuop *add(gp_rec *r, gp_opcode code)
{
    gp_list *l = ((gp_cpurec *)r)->list;
    if (!GP_ROOM(l->op, l->n, l->cap)) {
        no_memory(r);
        return NULL;
    }
    l->op[l->n] = (gp_cpuop){ .code = code };
    return &l->op[l->n++];
}

static bool rec_item(gp_rec *r, int id, const int *dep, int ndeps)
{
    return true;
}

/* Copies `n` bytes behind the arguments that are there. */
static bool keep(gp_rec *r, const void *arg, size_t n)
{
    gp_list *l = ((gp_cpurec *)r)->list;
    size_t step = (n + 15) & ~(size_t)15;
    if (l->used + step > l->room) {
        size_t room = 2 * l->room + step + 256;
        char *bytes = realloc(l->bytes, room);
        if (!bytes)
            return no_memory(r);
        l->bytes = bytes, l->room = room;
    }
    if (n)
        memcpy(l->bytes + l->used, arg, n);
    l->used += step;
    return true;
}

static bool rec_launch(gp_rec *r, const gp_kernel *k, gp_dim3 grid, gp_dim3 block, size_t shared,
                       void *const *args, int nargs)
{
    gp_list *l = ((gp_cpurec *)r)->list;
    if (nargs != k->entry.nargs)
        return gp_fail(r->errs, GP_E_SPEC, (gp_loc){ 0 }, "stage '%s': kernel '%s' takes %d arguments, not %d",
                       r->stage, k->entry.name, k->entry.nargs, nargs);
    if (k->source.cooperative
        && !gp_cooperative_fits(r, k->entry.name, grid, block, gp_cpu_cooperative_max(
                                    ((gp_cpurec *)r)->streams, block)))
        return false;
    gp_cpuop *op = add(r, OP_KERNEL);
    if (!op)
        return false;
    op->kernel = &k->entry, op->stage = r->stage, op->at = r->errs->at, op->grid = grid, op->block = block, op->shared = shared;
    op->cooperative = k->source.cooperative;
    op->args = l->used, op->nargs = nargs;
    for (int i = 0; i < nargs; i++)
        if (!keep(r, args[i], k->entry.arg_bytes[i]))
            return false;
    if (!r->check_kernels || !k->dl)
        return true;
    op->check = gp_check_create(r, &k->entry, &k->source, args);
    return op->check || no_memory(r);
}

static bool rec_call(gp_rec *r, gp_library *f, const void *arg, size_t bytes, bool apart)
{
    gp_cpuop *op = add(r, OP_CALL);
    if (!op)
        return false;
    op->call = f, op->stage = r->stage, op->at = r->errs->at, op->args = ((gp_cpurec *)r)->list->used;
    return keep(r, arg, bytes);
}

static bool rec_copy(gp_rec *r, void *dst, const void *src, size_t bytes)
{
    gp_cpuop *op = add(r, OP_COPY);
    if (op)
        op->dst = dst, op->src = src, op->n = bytes;
    return op;
}

static bool rec_fill(gp_rec *r, void *dst, int byte, size_t bytes)
{
    gp_cpuop *op = add(r, OP_FILL);
    if (op)
        op->dst = dst, op->byte = byte, op->n = bytes;
    return op;
}

static bool rec_repeat(gp_rec *r, const gp_repeat *what)
{
    gp_list *l = ((gp_cpurec *)r)->list;
    int at = l->n;
    gp_cpuop *op = add(r, OP_REPEAT);
    if (!op)
        return false;
    op->turn = (uint64_t)what->turns, op->src = what->flag;
    if (!what->body(r, what->arg) || !(op = add(r, OP_AGAIN)))
        return false;
    op->slot = at;
    l->op[at].slot = l->n - 1;
    return true;
}

static bool rec_turn(gp_rec *r, gp_opcode code, int o, int slot)
{
    gp_cpuop *op = add(r, code);
    if (op)
        op->slot = o * ((gp_cpurec *)r)->slots + slot;
    return op;
}

static bool rec_order_wait(gp_rec *r, int o, int slot)
{
    return rec_turn(r, OP_WAIT, o, slot);
}

static bool rec_order_pass(gp_rec *r, int o, int slot)
{
    return rec_turn(r, OP_PASS, o, slot);
}

static bool rec_stamp(gp_rec *r, int i)
{
    gp_cpuop *op = add(r, OP_STAMP);
    if (op)
        op->slot = i;
    return op;
}

static bool rec_wait(gp_rec *r)
{
    (void)r;                   /* a kernel on the CPU has no faults to find */
    return true;
}

static const gp_kernel *rec_kernel(gp_rec *r, const char *name)
{
    return r->dev->backend->builtin(r->dev, name);
}

static const gp_rec_ops rec_ops = {
    .item = rec_item, .launch = rec_launch, .copy = rec_copy, .fill = rec_fill, .repeat = rec_repeat,
    .order_wait = rec_order_wait, .order_pass = rec_order_pass, .stamp = rec_stamp, .wait = rec_wait,
    .kernel = rec_kernel, .call = rec_call,
};

bool gp_list_record(gp_list *l, gp_dev *d, int streams, int slots, gp_body body, void *arg, gp_errs *errs)
{
    gp_cpurec r = { { .ops = &rec_ops, .dev = d, .errs = errs }, l, streams, slots };
    clear(l);
    return body(&r.rec, arg);
}
