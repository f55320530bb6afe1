/* onnx.c - a network in a file, as other programs export it, run by ONNX Runtime: here on the host, and on a GPU by
 * stages/onnx/onnx_cuda.c.
 *
 * The library reads and writes frames where they lie: each has a tensor over its memory, kept for when its slot comes
 * again. One session serves all workers, and computes on the thread that calls it (option `threads`). Who computes is
 * decided before the plan is made, by the machine, the library and the option `provider`, and is a part of it. */
#include <stdlib.h>
#include <string.h>
#include "onnx_model.h"

/* ---- run ------------------------------------------------------------- */

enum { KEPT = 64 };            /* of more slots tensors are made anew for each frame */

/* Those of one port. Slots come in turns: that after the last is tried first. */
typedef struct tensors { int n, next; gp_onnx_tensor kept[KEPT]; } tensors;

typedef struct runner {
    gp_onnx_runner base;
    gp_ort lib;
    const gp_onnx_bound *bound;
    gp_onnx_session model;
    void *memory;
    int workers, ports;
    tensors *of;               /* [worker][port], inputs first */
} runner;

static gp_onnx_tensor *find(tensors *t, const gp_view *v)
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
    gp_onnx_tensor *oldest = &t->kept[t->next];
    t->next = (t->next + 1) % KEPT;
    return oldest;
}

/* NULL: `why`. */
static void *tensor_of(const runner *r, tensors *kept, const gp_onnx_port *x, const gp_view *v, char why[GP_WHY])
{
    gp_onnx_tensor *t = find(kept, v);
    return gp_onnx_over(&r->lib, r->memory, x, v, t, why) ? t->value : NULL;
}

/* The library computes with any byte that it is given for a truth. */
static bool are_truths(const gp_onnx_port *x, const gp_view *v, char why[GP_WHY])
{
    const uint8_t *byte = v->data;
    size_t n = x->element == GP_ORT_BOOL ? gp_bytes(&v->type) : 0, i = 0;
    while (i < n && byte[i] <= 1)
        i++;
    return i == n || gp_why(why, "input '%s' takes truths, 0 or 1, and element %zu is %d: make it one before, as with "
                            "'threshold'", x->name, i, byte[i]);
}

/* Puts what the library made in memory of its own into the frame, which gets its shape. */
static bool take(const gp_ort *l, const gp_onnx_output *x, void *value, gp_view *to, char why[GP_WHY])
{
    const char *name = x->port.name;
    gp_type is = { .dtype = to->type.dtype, .ndim = to->type.ndim };
    void *shape = NULL, *data = NULL;
    size_t n = 0;
    bool ok = !gp_ort_failed(l, l->value_shape(value, &shape), why) && !gp_ort_failed(l, l->count_dims(shape, &n), why)
           && (n == (size_t)is.ndim || gp_why(why, "output '%s' has %zu axes, and not %d", name, n, is.ndim))
           && !gp_ort_failed(l, l->dims(shape, is.dim, n), why) && !gp_ort_failed(l, l->elements(value, &data), why);
    for (int k = 0; ok && k < is.ndim; k++) {
        int64_t most = to->type.dim[k], least = !x->axis[k].varies ? most : k > 0;
        if (is.dim[k] < least || is.dim[k] > most)
            ok = gp_why(why, "axis %d of output '%s' has %lld elements, and 'buffers' declares %s%lld", k, name,
                        (long long)is.dim[k], x->axis[k].varies ? least ? "1 to " : "0 to " : "", (long long)most);
    }
    if (ok)
        to->type = is, memcpy(to->data, data, gp_bytes(&is));
    if (shape)
        l->release_shape(shape);
    return ok;
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
        if (!are_truths(&b->in[p], &f->in[p], why) || !(in[p] = tensor_of(r, kept++, &b->in[p], &f->in[p], why)))
            return false;
    }
    for (int p = 0; p < b->nout; p++) {
        out_name[p] = b->out[p].port.name, out[p] = NULL;
        if (!b->out[p].declared && !(out[p] = tensor_of(r, kept, &b->out[p].port, &f->out[p], why)))
            return false;
        kept++;
    }
    void *status = r->lib.run(r->model.session, NULL, in_name, in, (size_t)b->nin, out_name, (size_t)b->nout, out);
    bool ok = !gp_ort_failed(&r->lib, status, why);
    for (int p = 0; p < b->nout; p++)
        if (b->out[p].declared && out[p]) {
            ok = ok && take(&r->lib, &b->out[p], out[p], &f->out[p], why);
            r->lib.release_value(out[p]);
        }
    return ok;
}

static bool run(gp_call *c, gp_frame *f, int n)
{
    (void)n;                   /* 1 */
    char why[GP_WHY];
    if (run_one(c->state, c->worker, f, why))
        return true;
    gp_onnx_fail(c->errs, c->at, c->name, f->index, ((const gp_onnx_opts *)c->opts)->model, why);
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

static bool open_on_host(const gp_open *g, void **state)
{
    const gp_onnx_opts *o = g->opts;
    const gp_onnx_use use = { .threads = (int)o->threads };
    runner *r = calloc(1, sizeof *r);
    char why[GP_WHY];
    if (!(*state = r))
        return gp_fail(g->errs, GP_E_RESOURCE, g->at, "stage '%s': out of memory", g->name);
    r->base.by = GP_ONNX_CPU, r->bound = o->bound, r->ports = g->nin + g->nout;
    if (!gp_ort_open(&r->lib, g->at, g->errs) || !set_workers(r, g->workers, g->errs))
        return false;
    if (!gp_onnx_open(&r->lib, o, &use, &r->model, why)
        || gp_ort_failed(&r->lib, r->lib.create_memory("Cpu", GP_ORT_PLAIN_MEMORY, 0, GP_ORT_MEMORY, &r->memory), why))
        return gp_fail(g->errs, GP_E_RUN, g->at, "stage '%s': ONNX Runtime %s cannot run '%s': %s", g->name,
                       r->lib.version, o->model, why);
    return true;
}

static void close_on_host(runner *r)
{
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

/* ---- either ---------------------------------------------------------- */

static bool open_model(const gp_open *g, void **state)
{
    const gp_onnx_opts *o = g->opts;
    return (o->by == GP_ONNX_CUDA ? gp_onnx_cuda_open : open_on_host)(g, state);
}

static void close_model(void *state)
{
    if (state && ((gp_onnx_runner *)state)->by == GP_ONNX_CUDA)
        gp_onnx_cuda_close(state);
    else
        close_on_host(state);
}

/* ---- who computes ---------------------------------------------------- */

/* The reason that keeps the GPU from it, and what to do, in memory of the pipeline; or NULL. A library of another
 * machine is taken to be there. */
static const char *what_lacks(gp_shape *s)
{
    gp_errs errs = { .n = 0 };
    gp_ort lib;
    char why[GP_WHY], *text = gp_shape_alloc(s, 2 * GP_WHY);
    bool here;
    if (!gp_shape_gpu(s, &here))
        return "the pipeline runs on the CPU; leave 'provider' out";
    if (!here || !gp_ort_open(&lib, (gp_loc){ 0 }, &errs)      /* without it shape() says so */
        || gp_onnx_has_cuda(&lib, 0, why))
        return NULL;
    snprintf(text, 2 * GP_WHY, "%s; install pip's onnxruntime-gpu, with the CUDA and cuDNN that it is for, and set "
             "GPIPE_ONNXRUNTIME to its libonnxruntime.so, or leave 'provider' out", why);
    return text;
}

static bool on_device(gp_shape *s)
{
    gp_onnx_opts *o = (gp_onnx_opts *)s->opts;
    o->lacks = o->provider == GP_ONNX_CPU ? NULL : what_lacks(s);
    o->by = o->provider == GP_ONNX_CUDA || (o->provider == GP_ONNX_AUTO && !o->lacks) ? GP_ONNX_CUDA : GP_ONNX_CPU;
    return o->by == GP_ONNX_CUDA;
}

/* Says what it does, for plans. */
static const char *does(gp_shape *s, const gp_onnx_opts *o, const gp_ort *lib)
{
    char *text = gp_shape_alloc(s, 120);
    bool here, gpu = gp_shape_gpu(s, &here) != 0;
    snprintf(text, 120, "ONNX Runtime %.30s, %s%s", lib->version, o->by == GP_ONNX_CUDA ? "CUDA" : "on the CPU",
             gpu && o->lacks ? ", as it has no CUDA ('provider: cuda' says why)" : "");
    return text;
}

/* ---- shape ----------------------------------------------------------- */

typedef struct files { const char **path; int n, room; } files;

static void add(gp_shape *s, files *all, const char *model, const char *name, size_t len)
{
    const char *slash = strrchr(model, '/');
    size_t folder = slash ? (size_t)(slash + 1 - model) : 0;
    char *path = gp_shape_alloc(s, folder + len + 1);
    memcpy(path, model, folder), memcpy(path + folder, name, len), path[folder + len] = 0;
    for (int i = 0; i < all->n; i++)
        if (!strcmp(all->path[i], path))
            return;
    if (all->n == all->room) {
        const char **more = gp_shape_alloc(s, (size_t)(all->room *= 2) * sizeof *more);
        all->path = memcpy(more, all->path, (size_t)all->n * sizeof *more);
    }
    all->path[all->n++] = path;
}

/* The model, and where it says that weights lie which it keeps apart: TensorProto.external_data has an entry with the
 * key 'location', behind which come the value's length, in one byte or two, and the value. */
static void tell_files(gp_shape *s, const gp_file *f, const char *model)
{
    enum { PART = 1 << 16, LONGEST = 1 << 12 };
    static const char key[] = "\n\x08location\x12";
    char *part = gp_shape_alloc(s, PART + LONGEST);
    files all = { gp_shape_alloc(s, 2 * sizeof *all.path), 1, 2 };
    int64_t got;
    all.path[0] = model;
    for (int64_t at = 0; at < f->size && (got = gp_probe_bytes(s, f, at, part, PART + LONGEST)) > 0; at += PART)
        for (const char *p = part, *end = part + got; (p = memmem(p, (size_t)(end - p), key, sizeof key - 1)) && p < part + PART;) {
            p += sizeof key - 1;
            size_t len = p < end ? (unsigned char)*p++ : 0;
            if (len >= 128 && p < end)
                len += ((size_t)(unsigned char)*p++ << 7) - 128;
            if (len && len <= (size_t)(end - p) && !memchr(p, 0, len))
                add(s, &all, model, p, len);
        }
    gp_shape_reads(s, all.path, all.n);
}

static bool shape(gp_shape *s)
{
    const gp_onnx_opts *o = s->opts;
    gp_errs errs = { .n = 0 };
    gp_ort lib;
    if (s->partial)
        return gp_onnx_smaller(s);
    if (o->by == GP_ONNX_CUDA && o->lacks)
        return gp_shape_fail(s, "provider", "no GPU can compute the model: %s", o->lacks);
    const gp_file *f = gp_probe_file(s, o->model);
    if (!f)
        return false;
    if (f->error)
        return gp_shape_missing(s, "model", "cannot read '%s': %s", o->model, gp_strerror(f->error));
    if (f->kind != GP_FILE_REGULAR)
        return gp_shape_fail(s, "model", "'%s' is %s: name a file .onnx", o->model,
                             f->kind == GP_FILE_DIR ? "a folder" : "not a regular file");
    if (!gp_ort_open(&lib, (gp_loc){ 0 }, &errs))
        return gp_shape_fail(s, NULL, "%s", errs.e[0].msg);
    tell_files(s, f, o->model);
    if (!gp_onnx_bind(s, &lib))
        return false;
    s->does = does(s, o, &lib), s->writes_all = true;
    s->calls_library = s->uncaptured = o->by == GP_ONNX_CUDA;
    return true;
}

static const gp_port in[] = {
    { "*", GP_ACCEPT_REAL, true, "the inputs of the model, by their names; that of a model with one needs none; truths "
      "are u8, 0 or 1" }, { 0 }
};
static const gp_port out[] = {
    { "*", GP_ACCEPT_REAL, true, "its outputs, all or some; truths are u8, 0 or 1" }, { 0 }
};

static const gp_opt options[] = {
    { GP_PATH(gp_onnx_opts, model), .required = true,
      .help = "a file .onnx; beside it lie the weights that it keeps apart" },
    { GP_ENUM(gp_onnx_opts, provider), .def = "auto", .choices = "auto|cpu|cuda",
      .help = "who computes: cuda, on a GPU, which is experimental; cpu, on the host; auto: cuda where the pipeline "
              "runs on a GPU and the library can, else cpu" },
    { GP_INT(gp_onnx_opts, threads), .def = "1", .min = 1, .max = 1024,
      .help = "how many threads compute one frame on the CPU; `workers` compute several at a time, and are faster" },
    { 0 }
};

const gp_kind gp_kind_onnx = {
    GP_KIND("onnx"), .field = "inference",
    .help = "runs an ONNX model, by ONNX Runtime; see `gpipe help models`",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(gp_onnx_opts),
    .any_shape = true, .calls_library = true, .set_workers = set_workers, .on_device = on_device, .shape = shape,
    .open = open_model, .close = close_model, .run = run, .record = gp_onnx_cuda_record,
};
