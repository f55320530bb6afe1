/* backend.c - what stage kinds see of a device: the checks that both back ends
 * then need not make. */
#include "device/backend.h"
#include "device/libraries.h"

const gp_backend *gp_backend_gpu(void)
{
    const gp_backend *const *b = gp_backends;
    while (*b && !(*b)->find)
        b++;
    return *b;
}

static const size_t MOST_BYTES = (size_t)1 << 40;     /* as of a frame */

static bool grid_fits(gp_dcall *c, gp_dim3 grid, gp_dim3 block)
{
    if (grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535)
        return gp_fail(c->errs, GP_E_SPEC, (gp_loc){0}, "stage '%s': a grid of %u x %u x %u "
                       "blocks is too large, 2147483647 x 65535 x 65535 is the most: let each "
                       "thread do more, or put the longest axis first", c->name, grid.x, grid.y,
                       grid.z);
    if (grid.x == 0 || grid.y == 0 || grid.z == 0)
        return gp_fail(c->errs, GP_E_SPEC, (gp_loc){0}, "stage '%s': a grid of %u x %u x %u blocks "
                       "computes nothing", c->name, grid.x, grid.y, grid.z);
    if (block.x == 0 || block.y == 0 || block.z == 0 || block.x > 1024 || block.y > 1024
        || block.z > 64 || block.x * block.y * block.z > 1024)
        return gp_fail(c->errs, GP_E_SPEC, (gp_loc){0}, "stage '%s': a block cannot have "
                       "%u x %u x %u threads: 1 to 1024 in all, and at most 64 along z",
                       c->name, block.x, block.y, block.z);
    return true;
}

bool gp_cooperative_fits(gp_rec *r, const char *kernel, gp_dim3 grid, gp_dim3 block, unsigned most)
{
    return (uint64_t)grid.x * grid.y * grid.z <= most
        || gp_fail(r->errs, GP_E_SPEC, (gp_loc){0}, "kernel '%s' is cooperative, so that all blocks "
                   "of its grid run at once; of blocks of %u x %u x %u threads this device runs %u at "
                   "once, not %u x %u x %u: set 'grid' to at most that, and let each thread do more",
                   kernel, block.x, block.y, block.z, most, grid.x, grid.y, grid.z);
}

bool gp_launch_kernel(gp_dcall *c, const gp_kernel *k, gp_dim3 grid, gp_dim3 block,
                      size_t shared, void *const *args, int nargs)
{
    c->rec->stage = c->name;
    return grid_fits(c, grid, block)
        && c->rec->ops->launch(c->rec, k, grid, block, shared, args, nargs);
}

bool gp_launch(gp_dcall *c, const char *kernel, gp_dim3 grid, gp_dim3 block, size_t shared,
               void *const *args, int nargs)
{
    const gp_kernel *k = c->rec->ops->kernel(c->rec, kernel);
    if (!k)
        return gp_fail(c->errs, GP_E_SPEC, (gp_loc){0}, "stage '%s': no built-in kernel '%s'",
                       c->name, kernel);
    return gp_launch_kernel(c, k, grid, block, shared, args, nargs);
}

/* Is [p, p + bytes) of one of the pieces of memory that the stage has been given, if it begins in one? It may also
 * have memory of its own. Pieces of several frames that take turns in memory, as in a loop, lie within each other:
 * one of them will do. */
static bool range_fits(gp_dcall *c, const char *what, const void *p, size_t bytes, bool written)
{
    const gp_rec *r = c->rec;
    const gp_span *in = NULL;
    if (!p || bytes > MOST_BYTES)
        return gp_fail(c->errs, GP_E_SPEC, (gp_loc){0}, "stage '%s': %s %zu bytes at %p", c->name,
                       what, bytes, p);
    for (int i = 0; i < r->nspans; i++) {
        const gp_span *s = &r->span[i];
        size_t at = (size_t)((uintptr_t)p - (uintptr_t)s->data);
        if (at >= s->room)
            continue;
        if (bytes <= s->room - at && (!written || s->output))
            return true;
        in = in ? in : s;
    }
    if (!in)
        return true;
    size_t at = (size_t)((uintptr_t)p - (uintptr_t)in->data);
    if (bytes > in->room - at)
        return gp_fail(c->errs, GP_E_SPEC, (gp_loc){0}, "stage '%s': %s %zu bytes from byte %zu "
                       "of '%s', which has %zu", c->name, what, bytes, at, in->name, in->room);
    return gp_fail(c->errs, GP_E_SPEC, (gp_loc){0}, "stage '%s': %s '%s', which is not an output",
                   c->name, what, in->name);
}

bool gp_copy(gp_dcall *c, void *dst, const void *src, size_t bytes)
{
    return bytes == 0
        || (range_fits(c, "copies", src, bytes, false) && range_fits(c, "copies to", dst, bytes, true)
            && c->rec->ops->copy(c->rec, dst, src, bytes));
}

/* The bytes from a launch's first frame to the end of its last, where nothing but padding lies between them; else 0. */
static size_t bytes_together(const gp_dcall *c, const gp_view *v)
{
    enum { PADDING = 256 };
    size_t bytes = gp_bytes(&v->type);
    return v->stride < bytes + PADDING ? (size_t)(c->n - 1) * v->stride + bytes : 0;
}

bool gp_copy_frames(gp_dcall *c, const gp_view *to, const gp_view *from)
{
    size_t bytes = gp_bytes(&from->type), apart = from->stride, all = apart == to->stride ? bytes_together(c, from) : 0;
    if (all)
        return gp_copy(c, to->data, from->data, all);
    for (int i = 0; i < c->n; i++)
        if (!gp_copy(c, (char *)to->data + (size_t)i * to->stride, (const char *)from->data + (size_t)i * apart, bytes))
            return false;
    return true;
}

bool gp_fill(gp_dcall *c, void *dst, int byte, size_t bytes)
{
    return bytes == 0
        || (range_fits(c, "fills", dst, bytes, true) && c->rec->ops->fill(c->rec, dst, byte, bytes));
}

bool gp_fill_frames(gp_dcall *c, const gp_view *v, int byte)
{
    size_t all = bytes_together(c, v);
    if (all)
        return gp_fill(c, v->data, byte, all);
    for (int i = 0; i < c->n; i++)
        if (!gp_fill(c, (char *)v->data + (size_t)i * v->stride, byte, gp_bytes(&v->type)))
            return false;
    return true;
}

bool gp_call_library(gp_dcall *c, gp_library *f, const void *arg, size_t bytes)
{
    c->rec->stage = c->name;
    return c->rec->ops->call(c->rec, f, arg, bytes, false);
}

bool gp_call_library_apart(gp_dcall *c, gp_library *f, const void *arg, size_t bytes)
{
    c->rec->stage = c->name;
    return c->rec->ops->call(c->rec, f, arg, bytes, true);
}

bool gp_device_place(gp_dev *dev, int *index, void **stream, gp_errs *errs)
{
    *index = 0, *stream = NULL;
    return !dev->backend->place || dev->backend->place(dev, index, stream, errs);
}

bool gp_library_do(gp_library *f, void *stream, const void *arg, const char *stage, gp_errs *errs)
{
    int before = errs->failed;
    if (!f(stream, arg, errs) && errs->failed == before)
        gp_fail(errs, GP_E_RUN, (gp_loc){0}, "stage '%s': a call of a library failed and does not say why", stage ? stage : "?");
    return errs->failed == before;
}

bool gp_gpu_fail(gp_gpu_library which, int status, gp_errs *errs, gp_code code, gp_loc at, const char *stage,
                 const char *does, const char *hint)
{
    char buf[GP_GPU_TEXT];
    return gp_fail(errs, code, at, "stage '%s': %s %s (%s)%s", stage, gp_gpu_name(which), does,
                   gp_gpu_status(which, status, buf), hint);
}

bool gp_rec_on_cpu(const gp_dcall *c)
{
    return gp_dev_on_cpu(c->rec->dev);
}

bool gp_dev_on_cpu(const gp_dev *dev)
{
    return dev->backend == &gp_backend_cpu;
}

const gp_kernel *gp_kernel_builtin(gp_dev *dev, const char *name)
{
    return dev->backend->builtin(dev, name);
}

const gp_kernel *gp_kernel_compile(gp_dev *dev, const gp_source *src, gp_errs *errs)
{
    gp_loc was = gp_errs_place(errs, src->at);
    atomic_fetch_add(&dev->compiling, 1);
    const gp_kernel *k = dev->backend->compile(dev, src, errs);
    atomic_fetch_sub(&dev->compiling, 1);
    errs->at = was;
    return k;
}
