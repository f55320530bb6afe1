/* onnx_cuda.c - a model on a GPU, by ONNX Runtime's provider for CUDA: one session on each device.
 *
 * The library reads and writes the frames of the segment where they lie. It is told one stream for good, which the
 * engine puts in order with those of launches (gp_call_library_apart), and does not wait for what it has queued there.
 * But it may wait in between, as where a model computes a shape on the host, and ask for memory for a shape that is
 * new: so that nothing of this can be captured, and launches of this segment are queued anew (gp_shape.uncaptured).
 *
 * Each slot has its tensors. What is recorded for a slot is done before more for it begins, so that they
 * need no lock. */
#include <stdlib.h>
#include <string.h>
#include "onnx_model.h"

typedef struct runner {
    gp_onnx_runner base;
    gp_ort lib;
    const gp_onnx_opts *o;
    gp_dev *dev;
    gp_onnx_gpu gpu;
    gp_onnx_session model;
    void *memory, *how;        /* the library's: where frames lie; that it does not wait at the end */
    int ports, slots;
    gp_onnx_tensor *of;        /* [slot][port], inputs first */
    /* While it is opened: */
    bool ok;
    char why[GP_WHY];
} runner;

/* ---- open, close ----------------------------------------------------- */

/* Is this input or output of the session where frames lie? What the library has in the host's memory, as a shape that
 * it computes with, it copies on a stream that it is told and does not wait for the copy: it would read what was there
 * before. */
static bool is_on_gpu(const runner *r, const void *memory, bool is_input, const char *name, char why[GP_WHY])
{
    const char *is = "";
    if (gp_ort_failed(&r->lib, r->lib.memory_name(memory, &is), why))
        return false;
    return !strcmp(is, "Cuda")
        || gp_why(why, "it has %s '%s' in the memory of the host, as a shape is, and frames lie in that of the GPU: set "
                  "'provider: cpu'", is_input ? "input" : "output", name);
}

/* Are all ports of the stage? The session has them in an order of its own. */
static bool are_on_gpu(const runner *r, bool is_input, char why[GP_WHY])
{
    const gp_ort *l = &r->lib;
    const gp_onnx_bound *b = r->o->bound;
    void *allocator, *session = r->model.session;
    size_t n = 0;
    bool ok = !gp_ort_failed(l, (is_input ? l->count_in : l->count_out)(session, &n), why)
           && !gp_ort_failed(l, l->allocator(&allocator), why);
    const void **memory = ok ? calloc(n + 1, sizeof *memory) : NULL;
    if (ok && !memory)
        return gp_why(why, "out of memory");
    ok = ok && !gp_ort_failed(l, (is_input ? l->memory_in : l->memory_out)(session, memory, n), why);
    for (size_t i = 0; ok && i < n; i++) {
        char *name = NULL;
        ok = !gp_ort_failed(l, (is_input ? l->name_in : l->name_out)(session, i, allocator, &name), why);
        for (int p = 0; ok && p < (is_input ? b->nin : b->nout); p++)
            if (!strcmp(is_input ? b->in[p].name : b->out[p].port.name, name))
                ok = is_on_gpu(r, memory[i], is_input, name, why);
        char again[GP_WHY];
        if (name && gp_ort_failed(l, l->free_name(allocator, name), again))
            ok = ok && gp_why(why, "%s", again);
    }
    free(memory);
    return ok;
}

/* With the device as the current one. */
static void make_session(void *arg)
{
    runner *r = arg;
    const gp_ort *l = &r->lib;
    const gp_onnx_use use = { .threads = (int)r->o->threads, .gpu = &r->gpu };
    r->ok = gp_onnx_open(l, r->o, &use, &r->model, r->why) && are_on_gpu(r, true, r->why) && are_on_gpu(r, false, r->why)
         && !gp_ort_failed(l, l->create_memory("Cuda", GP_ORT_PLAIN_MEMORY, r->gpu.index, GP_ORT_MEMORY, &r->memory),
                           r->why)
         && !gp_ort_failed(l, l->create_run(&r->how), r->why)
         && !gp_ort_failed(l, l->set_run(r->how, "disable_synchronize_execution_providers", "1"), r->why);
}

bool gp_onnx_cuda_open(const gp_open *g, void **state)
{
    runner *r = calloc(1, sizeof *r);
    bool room = (*state = r) != NULL;
    if (room) {
        r->base.by = GP_ONNX_CUDA, r->o = g->opts, r->dev = g->dev, r->ports = g->nin + g->nout, r->slots = g->slots;
        r->of = calloc((size_t)r->ports * (size_t)r->slots + 1, sizeof *r->of);
        room = r->of != NULL;
    }
    if (!room)
        return gp_fail(g->errs, GP_E_RESOURCE, g->at, "stage '%s': out of memory", g->name);
    if (!gp_ort_open(&r->lib, g->at, g->errs) || !gp_device_place(g->dev, &r->gpu.index, &r->gpu.stream, g->errs)
        || !gp_device_call(g->dev, make_session, r))
        return false;
    return r->ok || gp_fail(g->errs, GP_E_RUN, g->at, "stage '%s': ONNX Runtime %s cannot run '%s' on the GPU: %s",
                            g->name, r->lib.version, r->o->model, r->why);
}

static void drop_session(void *arg)
{
    runner *r = arg;
    const gp_ort *l = &r->lib;
    for (int i = 0; i < r->ports * r->slots; i++)
        if (r->of[i].value)
            l->release_value(r->of[i].value);
    if (r->how)
        l->release_run(r->how);
    if (r->memory)
        l->release_memory(r->memory);
    gp_onnx_close(l, &r->model);
}

/* A device that has stopped gives nothing back. */
void gp_onnx_cuda_close(void *state)
{
    runner *r = state;
    if (r && r->of && r->lib.version)
        gp_device_call(r->dev, drop_session, r);
    if (r)
        free(r->of);
    free(r);
}

/* ---- record ---------------------------------------------------------- */

typedef struct step { const runner *r; const char *name; uint64_t frame; int slot; } step;

static bool run_slot(void *stream, const void *arg, gp_errs *errs)
{
    const step *x = arg;
    const runner *r = x->r;
    const gp_onnx_bound *b = r->o->bound;
    const gp_onnx_tensor *t = &r->of[x->slot * r->ports];
    const char *in_name[GP_MAXPORT], *out_name[GP_MAXPORT];
    const void *in[GP_MAXPORT];
    void *out[GP_MAXPORT];
    char why[GP_WHY];
    (void)stream;              /* the session has it */
    for (int p = 0; p < b->nin; p++)
        in_name[p] = b->in[p].name, in[p] = t++->value;
    for (int p = 0; p < b->nout; p++)
        out_name[p] = b->out[p].port.name, out[p] = t++->value;
    void *status = r->lib.run(r->model.session, r->how, in_name, in, (size_t)b->nin, out_name, (size_t)b->nout, out);
    return !gp_ort_failed(&r->lib, status, why)
        || gp_onnx_fail(errs, (gp_loc){ 0 }, x->name, x->frame, r->o->model, why);
}

bool gp_onnx_cuda_record(gp_dcall *c)
{
    const runner *r = c->state;
    const gp_onnx_bound *b = r->o->bound;
    gp_onnx_tensor *t = &r->of[c->slot * r->ports];
    const step x = { r, c->name, c->index, c->slot };
    char why[GP_WHY];
    bool ok = true;
    for (int p = 0; p < b->nin && ok; p++)
        ok = gp_onnx_over(&r->lib, r->memory, &b->in[p], &c->in[p], t++, why);
    for (int p = 0; p < b->nout && ok; p++)
        ok = gp_onnx_over(&r->lib, r->memory, &b->out[p].port, &c->out[p], t++, why);
    if (!ok)
        return gp_onnx_fail(c->errs, (gp_loc){ 0 }, c->name, c->index, r->o->model, why);
    return gp_call_library_apart(c, run_slot, &x, sizeof x);
}
