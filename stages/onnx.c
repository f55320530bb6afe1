/* onnx.c - a network in a file, as other programs export it, run by ONNX Runtime on the host; see stages/onnx/.
 *
 * The library reads and writes frames where they lie: each has a tensor over its memory, kept for when its slot comes
 * again. One session serves all workers, and computes on the thread that calls it (option `threads`). */
#include <stdlib.h>
#include <string.h>
#include "onnx_model.h"

/* ---- run ------------------------------------------------------------- */

enum { KEPT = 64 };            /* of more slots tensors are made anew for each frame */

typedef struct tensor { const void *data; gp_type type; void *value; } tensor;

/* Those of one port. Slots come in turns: that after the last is tried first. */
typedef struct tensors { int n, next; tensor kept[KEPT]; } tensors;

typedef struct runner {
    gp_ort lib;
    const gp_onnx_bound *bound;
    gp_onnx_session model;
    void *memory;
    int workers, ports;
    tensors *of;               /* [worker][port], inputs first */
} runner;

static tensor *find(tensors *t, const gp_view *v)
{
    for (int i = 0; i < t->n; i++) {
        int at = (t->next + i) % t->n;
        if (t->kept[at].data == v->data) {
            t->next = (at + 1) % t->n;
            return &t->kept[at];
        }
    }
    if (t->n < KEPT)
        return &t->kept[t->n++];
    tensor *oldest = &t->kept[t->next];
    t->next = (t->next + 1) % KEPT;
    return oldest;
}

/* A tensor over the memory of a frame; NULL: `why`. */
static void *tensor_of(const runner *r, tensors *kept, const gp_onnx_port *x, const gp_view *v, char why[GP_WHY])
{
    tensor *t = find(kept, v);
    if (t->value && t->data == v->data && gp_type_same(&t->type, &v->type))
        return t->value;
    if (t->value)
        r->lib.release_value(t->value);
    *t = (tensor){ v->data, v->type, NULL };
    void *status = r->lib.create_tensor(r->memory, v->data, gp_bytes(&v->type), v->type.dim, (size_t)x->ndim,
                                        x->element, &t->value);
    return gp_ort_failed(&r->lib, status, why) ? NULL : t->value;
}

static bool run_one(const runner *r, int worker, gp_frame *f, char why[GP_WHY])
{
    const gp_onnx_bound *b = r->bound;
    const char *in_name[GP_MAXPORT], *out_name[GP_MAXPORT];
    const void *in[GP_MAXPORT];
    void *out[GP_MAXPORT];
    tensors *kept = &r->of[worker * r->ports];
    for (int p = 0; p < b->nin; p++) {
        in_name[p] = b->in[p].name;
        if (!(in[p] = tensor_of(r, kept++, &b->in[p], &f->in[p], why)))
            return false;
    }
    for (int p = 0; p < b->nout; p++) {
        out_name[p] = b->out[p].port.name;
        if (!(out[p] = tensor_of(r, kept++, &b->out[p].port, &f->out[p], why)))
            return false;
    }
    void *status = r->lib.run(r->model.session, NULL, in_name, in, (size_t)b->nin, out_name, (size_t)b->nout, out);
    return !gp_ort_failed(&r->lib, status, why);
}

static bool run(gp_call *c, gp_frame *f, int n)
{
    (void)n;                   /* 1 */
    char why[GP_WHY];
    if (run_one(c->state, c->worker, f, why))
        return true;
    gp_fail(c->errs, GP_E_RUN, c->at, "stage '%s': frame %llu: ONNX Runtime: %s", c->name,
            (unsigned long long)f->index, why);
    f->status = GP_FAILED;
    return true;
}

static bool set_workers(void *state, int n, gp_errs *errs)
{
    runner *r = state;
    if (n <= r->workers)
        return true;
    tensors *more = calloc((size_t)n * (size_t)r->ports, sizeof *more);
    if (!more)
        return gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "no memory for %d workers of a model", n);
    if (r->of)
        memcpy(more, r->of, sizeof *more * (size_t)r->workers * (size_t)r->ports);
    free(r->of);
    r->of = more, r->workers = n;
    return true;
}

static bool open_model(const gp_open *g, void **state)
{
    const gp_onnx_opts *o = g->opts;
    runner *r = calloc(1, sizeof *r);
    char why[GP_WHY];
    if (!(*state = r))
        return gp_fail(g->errs, GP_E_RESOURCE, g->at, "stage '%s': out of memory", g->name);
    r->bound = o->bound, r->ports = g->nin + g->nout;
    if (!gp_ort_open(&r->lib, g->at, g->errs) || !set_workers(r, g->workers, g->errs))
        return false;
    if (!gp_onnx_open(&r->lib, o, (int)o->threads, NULL, &r->model, why)
        || gp_ort_failed(&r->lib, r->lib.create_memory(GP_ORT_PLAIN_MEMORY, GP_ORT_MEMORY, &r->memory), why))
        return gp_fail(g->errs, GP_E_RUN, g->at, "stage '%s': ONNX Runtime %s cannot run '%s': %s", g->name,
                       r->lib.version, o->model, why);
    return true;
}

static void close_model(void *state)
{
    runner *r = state;
    for (int i = 0; r && r->of && i < r->workers * r->ports; i++)
        for (int k = 0; k < r->of[i].n; k++)
            if (r->of[i].kept[k].value)
                r->lib.release_value(r->of[i].kept[k].value);
    if (r && r->memory)
        r->lib.release_memory(r->memory);
    if (r)
        gp_onnx_close(&r->lib, &r->model), free(r->of);
    free(r);
}

/* ---- shape ----------------------------------------------------------- */

enum { AUTO, CPU, CUDA };

static bool shape(gp_shape *s)
{
    const gp_onnx_opts *o = s->opts;
    gp_errs errs = { .n = 0 };
    gp_ort lib;
    if (s->partial)
        return gp_onnx_smaller(s);
    if (o->provider == CUDA)
        return gp_shape_fail(s, "provider", "models run on the CPU so far: leave 'provider' out; on a GPU 'linear', "
                             "'matmul' and 'kernel' compute");
    const gp_file *f = gp_probe_file(s, o->model);
    if (!f)
        return false;
    if (f->error)
        return gp_shape_missing(s, "model", "cannot read '%s': %s", o->model, strerror(f->error));
    if (f->kind != GP_FILE_REGULAR)
        return gp_shape_fail(s, "model", "'%s' is %s: name a file .onnx", o->model,
                             f->kind == GP_FILE_DIR ? "a folder" : "not a regular file");
    if (!gp_ort_open(&lib, (gp_loc){ 0 }, &errs))
        return gp_shape_fail(s, NULL, "%s", errs.e[0].msg);
    gp_shape_reads(s, &o->model, 1);
    if (!gp_onnx_bind(s, &lib))
        return false;
    char *does = gp_shape_alloc(s, 60);
    snprintf(does, 60, "ONNX Runtime %.30s, on the CPU", lib.version);
    s->does = does, s->writes_all = true;
    return true;
}

static const gp_port in[] = {
    { "*", GP_ACCEPT_REAL, true, "the inputs of the model, by their names; that of a model with one needs none" }, { 0 }
};
static const gp_port out[] = {
    { "*", GP_ACCEPT_REAL, true, "its outputs, all or some; truths are u8, 0 or 1" }, { 0 }
};

static const gp_opt options[] = {
    { GP_PATH(gp_onnx_opts, model), .required = true,
      .help = "a file .onnx; beside it lie the weights that it keeps apart" },
    { GP_ENUM(gp_onnx_opts, provider), .def = "auto", .choices = "auto|cpu|cuda",
      .help = "who computes: so far that is the CPU, and cuda is refused" },
    { GP_INT(gp_onnx_opts, threads), .def = "1", .min = 1, .max = 1024,
      .help = "how many threads compute one frame; `workers` compute several frames at a time, and are faster" },
    { 0 }
};

const gp_kind gp_kind_onnx = {
    GP_KIND("onnx"), .field = "inference",
    .help = "runs a model in the format ONNX, by ONNX Runtime",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(gp_onnx_opts),
    .any_shape = true, .set_workers = set_workers, .shape = shape, .open = open_model, .close = close_model, .run = run,
};
