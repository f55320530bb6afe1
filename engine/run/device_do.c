/* device_do.c - the work of host stages whose outputs lie in the memory of a device.
 *
 * Each worker has a stream of its own. run() waits until the work that it queued there is done, so that frames are
 * complete when they are published, and their readers need not know of the stream. Nothing differs where the device's
 * memory is the host's. */
#include <string.h>
#include "run/host.h"

typedef struct gp_deed {
    gp_dcall call;
    bool (*body)(gp_dcall *d, void *arg);
    void *arg;
    bool said;                 /* the body was called, and said so */
    gp_run *run;
    int stream;
    gp_errs *errs;
    bool done;
} gp_deed;

static bool record_deed(gp_rec *r, void *arg)
{
    gp_deed *x = arg;
    x->call.rec = r, r->stage = x->call.name;
    return r->ops->item(r, 0, NULL, 0) && (x->said = x->body(&x->call, x->arg));
}

static void do_and_wait(void *arg)
{
    gp_deed *x = arg;
    gp_run *run = x->run;
    const gp_backend *be = run->dev[0]->backend;
    bool queued = be->direct(run->dev[0], x->stream, record_deed, x, x->errs);
    x->done = be->wait(run->dev[0], x->stream, run->graph->sync, x->errs) == 1 && queued;
}

/* Does it on the stream of a worker, whose thread has its own device again after it, and waits for it. */
static bool do_on(gp_run *run, int stream, gp_deed *x, gp_errs *errs)
{
    x->run = run, x->stream = stream, x->errs = errs;
    return run->dev[0]->backend->call(run->dev[0], do_and_wait, x) && x->done;
}

bool gp_device_do(gp_call *c, bool (*body)(gp_dcall *d, void *arg), void *arg)
{
    gp_threadrt *t = c->ctx;
    gp_actorrt *p = t->actor;
    gp_deed x = { .call = { .opts = c->opts, .user = c->user, .state = c->state, .n = 1, .scope = &p->run->graph->scope,
                            .name = c->name, .errs = c->errs }, .body = body, .arg = arg };
    return do_on(p->run, p->host->stream + t->worker, &x, c->errs) && x.said;
}

bool gp_device_call(gp_dev *dev, void (*f)(void *arg), void *arg)
{
    return dev->backend->call(dev, f, arg);
}

void *gp_device_alloc(gp_dev *dev, size_t bytes, gp_errs *errs)
{
    return dev->backend->alloc(dev, GP_MEMORY_DEVICE, bytes, errs);
}

void gp_device_free(gp_dev *dev, void *mem, size_t bytes)
{
    if (mem)
        dev->backend->free(dev, GP_MEMORY_DEVICE, mem, bytes);
}

typedef struct gp_filling { void *at; int byte; size_t bytes; } gp_filling;

static bool fill(gp_dcall *d, void *arg)
{
    const gp_filling *x = arg;
    return gp_fill(d, x->at, x->byte, x->bytes);
}

void gp_host_fill(gp_actorrt *p, const gp_worker_view *w, void *at, int byte, size_t bytes)
{
    gp_errs none = { .n = 0 };         /* a device that has stopped says so when run() uses it */
    gp_filling what = { at, byte, bytes };
    gp_deed x = { .call = { .name = p->stage->name, .n = 1, .errs = &none }, .body = fill, .arg = &what };
    if (p->stage->fills_device && !p->run->plan->unified)
        do_on(p->run, p->host->stream + (int)(w - p->host->view), &x, &none);
    else
        memset(at, byte, bytes);
}
