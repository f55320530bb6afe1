/* copying.c - how launches take longer by what they move: with copy engines, with kernels that copy, with one that reads
 * and writes the host's memory itself (compile/mapped.c).
 *
 * As in a run several launches are in flight. Of each way a small and a large launch are measured, whose medians are two
 * points of a straight line. What was measured is kept in the cache, for each GPU, its place and driver. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "device/backend.h"
#include "device/cache.h"
#include "device/machine.h"

enum { FLIGHT = 4, ROUNDS = 101, WARM = 20, SMALL = 4 << 10, LARGE = 256 << 10 };

/* A launch: its frame comes in, a kernel makes another one of it, which goes out. */
typedef struct shuttle {
    gp_copying how;
    size_t bytes;
    char *host[2], *device[2];
} shuttle;

static bool move(gp_rec *r, int id, void *to, const void *from, size_t bytes, bool by_kernel)
{
    const int before = id - 1;
    r->by_kernel = by_kernel;
    bool ok = r->ops->item(r, id, &before, id > 0) && r->ops->copy(r, to, from, bytes);
    r->by_kernel = false;
    return ok;
}

static bool record(gp_rec *r, void *arg)
{
    const shuttle *s = arg;
    const int last = s->how == GP_COPY_MAPPED ? 0 : 2;
    bool kernel = s->how == GP_COPY_KERNEL, ok;
    if (s->how == GP_COPY_MAPPED)
        ok = move(r, 0, s->host[1], s->host[0], s->bytes, true);
    else
        ok = move(r, 0, s->device[0], s->host[0], s->bytes, kernel)
            && move(r, 1, s->device[1], s->device[0], s->bytes, true)
            && move(r, 2, s->host[1], s->device[1], s->bytes, kernel);
    if (s->how == GP_COPY_DMA || !r->ops->done)
        return ok;
    return ok && r->ops->item(r, last + 1, &last, 1) && r->ops->done(r);
}

static int by_size(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Of a launch, in ns; < 0: it failed. */
static double median_of(gp_dev *dev, gp_exec *const exec[FLIGHT], gp_errs *errs)
{
    const gp_backend *be = dev->backend;
    int64_t took[ROUNDS];
    for (int k = -WARM; k < ROUNDS; k++) {
        int64_t from = gp_now_ns();
        for (int i = 0; i < FLIGHT; i++)
            if (!be->launch(dev, i, exec[i], errs))
                return -1;
        for (int i = 0; i < FLIGHT; i++)
            if (be->wait(dev, i, GP_SYNC_SPIN, errs) != 1)
                return -1;
        if (k >= 0)
            took[k] = gp_now_ns() - from;
    }
    qsort(took, ROUNDS, sizeof *took, by_size);
    return (double)took[ROUNDS / 2] / FLIGHT;
}

static double measure(gp_dev *dev, shuttle of[FLIGHT], gp_copying how, size_t bytes, gp_errs *errs)
{
    const gp_backend *be = dev->backend;
    gp_exec *exec[FLIGHT] = { NULL };
    bool ok = true;
    for (int i = 0; i < FLIGHT && ok; i++) {
        of[i].how = how, of[i].bytes = bytes;
        ok = (!be->load || be->load(dev, record, &of[i], errs)) && (exec[i] = be->build(dev, i, record, &of[i], errs));
    }
    double took = ok ? median_of(dev, exec, errs) : -1;
    for (int i = 0; i < FLIGHT; i++)
        if (exec[i])
            be->discard(dev, exec[i]);
    return took;
}

bool gp_copying_measure(gp_dev *dev, gp_link launch[GP_COPYINGS], gp_errs *errs)
{
    const double FASTEST = 1e12;       /* bytes a second: more is noise */
    const gp_backend *be = dev->backend;
    const gp_priority priority[FLIGHT] = { GP_PRIORITY_NORMAL };
    char *mem[4] = { NULL };
    shuttle of[FLIGHT];
    bool ok = be->prepare(dev, FLIGHT, priority, 0, 1, errs);
    for (int k = 0; k < 4 && ok; k++)
        ok = (mem[k] = be->alloc(dev, k < 2 ? GP_MEMORY_PINNED : GP_MEMORY_DEVICE, FLIGHT * LARGE, errs));
    for (int i = 0; i < FLIGHT && ok; i++)
        for (int k = 0; k < 2; k++)
            of[i].host[k] = mem[k] + i * LARGE, of[i].device[k] = mem[k + 2] + i * LARGE;
    for (int how = 0; how < GP_COPYINGS && ok; how++) {
        double small = measure(dev, of, (gp_copying)how, SMALL, errs);
        double large = small < 0 ? -1 : measure(dev, of, (gp_copying)how, LARGE, errs);
        double each = fmax((large - small) / (LARGE - SMALL), 1e9 / FASTEST);
        ok = large >= 0;
        launch[how] = (gp_link){ .rate = 1e9 / each, .step_ns = fmax(small - SMALL * each, 0) };
    }
    for (int k = 0; k < 4; k++)
        if (mem[k])
            be->free(dev, k < 2 ? GP_MEMORY_PINNED : GP_MEMORY_DEVICE, mem[k], FLIGHT * LARGE);
    return ok;
}

/* ---- on disk ----------------------------------------------------------- */

static gp_key key_of(const gp_machine *m, const gp_device_info *d)
{
    gp_hash h;
    gp_hash_begin(&h);
    gp_hash_text(&h, "launch 1");
    gp_hash_text(&h, d->name);
    gp_hash_text(&h, d->pci);
    gp_hash_add(&h, &m->cuda_driver, sizeof m->cuda_driver);
    return gp_hash_end(&h);
}

static const char ext[] = ".launch";

void gp_copying_find(const gp_machine *m, gp_device_info *d)
{
    gp_errs ignored = { .n = 0 };
    gp_key key = key_of(m, d);
    void *data;
    size_t bytes;
    if (!gp_cache_find(&key, ext, &data, &bytes, &ignored))
        return;
    if (bytes == sizeof d->launch)
        memcpy(d->launch, data, bytes);
    free(data);
}

bool gp_copying_keep(const gp_machine *m, const gp_device_info *d, gp_errs *errs)
{
    gp_key key = key_of(m, d);
    return gp_cache_store(&key, ext, d->launch, sizeof d->launch, errs);
}
