/* harness.c - see harness.h. */
#include <math.h>
#include "device/machine.h"
#include "idle.h"
#include "harness.h"
#include "base/npy.h"

/* ---- arrays ---------------------------------------------------------- */

static array make(const gp_type *t)
{
    size_t bytes = gp_bytes(t);
    array a = { *t, calloc(1, bytes ? bytes : 1) };
    ck_assert_ptr_nonnull(a.data);
    return a;
}

array array_new(gp_dtype dtype, int ndim, const int64_t *dim)
{
    gp_type t = { .dtype = dtype, .ndim = ndim };
    memcpy(t.dim, dim, sizeof *dim * (size_t)ndim);
    return make(&t);
}

void array_free(array *a)
{
    free(a->data);
    *a = (array){ 0 };
}

array array_load(const char *path)
{
    char head[4096], err[160];
    gp_type t;
    size_t offset;
    bool fortran;
    FILE *f = fopen(path, "rb");
    ck_assert_msg(f != NULL, "cannot open '%s'", path);
    size_t n = fread(head, 1, sizeof head, f);
    ck_assert_msg(gp_npy_parse(head, n, &t, &offset, &fortran, err), "'%s'%s", path, err);
    ck_assert_msg(!fortran || t.ndim == 1, "'%s' is column-major", path);
    array a = make(&t);
    fseek(f, (long)offset, SEEK_SET);
    ck_assert_uint_eq(fread(a.data, 1, gp_bytes(&t), f), gp_bytes(&t));
    fclose(f);
    return a;
}

array array_rows(const array *a, int64_t first, int64_t n)
{
    gp_type t = a->type;
    size_t row = gp_bytes(&t) / (size_t)t.dim[0];
    t.dim[0] = n;
    array r = make(&t);
    memcpy(r.data, (char *)a->data + row * (size_t)first, row * (size_t)n);
    return r;
}

/* Element i (of c64: of the floats) of a float type. */
static double number(const array *a, size_t i)
{
    switch (a->type.dtype) {
    case GP_F64: return ((double *)a->data)[i];
    case GP_F16: {
        unsigned h = ((uint16_t *)a->data)[i], e = h >> 10 & 31, m = h & 1023;
        double x = e == 31 ? m ? NAN : INFINITY : e ? ldexp(1024 + m, (int)e - 25) : ldexp(m, -24);
        return h >> 15 ? -x : x;
    }
    default: return ((float *)a->data)[i];
    }
}

const char *array_differs(const array *a, const array *b, double tolerance)
{
    static char text[300];
    char ta[128], tb[128];
    gp_dtype t = b->type.dtype;
    bool floats = t == GP_F16 || t == GP_F32 || t == GP_F64 || t == GP_C64;
    size_t n = (size_t)gp_count(&b->type) * (t == GP_C64 ? 2 : 1);
    size_t size = t == GP_C64 ? 4 : gp_dtype_size(t);
    double most = 0;

    if (!gp_type_same(&a->type, &b->type)) {
        snprintf(text, sizeof text, "%s is not %s", gp_type_text(&a->type, ta), gp_type_text(&b->type, tb));
        return text;
    }
    for (size_t i = 0; floats && i < n; i++)
        if (isfinite(number(b, i)))
            most = fmax(most, fabs(number(b, i)));
    for (size_t i = 0; i < n; i++) {
        const unsigned char *x = (unsigned char *)a->data + i * size;
        const unsigned char *y = (unsigned char *)b->data + i * size;
        double p = floats ? number(a, i) : 0, q = floats ? number(b, i) : 0;
        if (!memcmp(x, y, size) || (floats && isnan(p) && isnan(q))
            || (floats && fabs(p - q) <= tolerance * most && tolerance > 0))
            continue;
        int l = snprintf(text, sizeof text, "element %zu of %zu is %.9g, not %.9g: ", i, n, p, q);
        for (size_t k = size; k-- > 0; )
            l += snprintf(text + l, sizeof text - (size_t)l, "%02x", x[k]);
        l += snprintf(text + l, sizeof text - (size_t)l, " not ");
        for (size_t k = size; k-- > 0; )
            l += snprintf(text + l, sizeof text - (size_t)l, "%02x", y[k]);
        return text;
    }
    return "";
}

/* ---- a pipeline around the stage -------------------------------------- */

static const gp_kind give = IDLE_GIVE, take = IDLE_TAKE;

static const char *no_env(const void *arg, const char *name)
{
    return NULL;
}

static char *pipeline_text(gp_arena *a, const char *device, const char *kind, const char *options,
                           const array *in, int nin)
{
    char *buffers = gp_strdup(a, ""), *names = buffers;
    for (int i = 0; i < nin; i++) {
        char *shape = gp_strdup(a, "");
        for (int d = 0; d < in[i].type.ndim; d++)
            shape = gp_format(a, "%s%s%lld", shape, d ? ", " : "", (long long)in[i].type.dim[d]);
        buffers = gp_format(a, "%s  x%d: {dtype: %s, shape: [%s]}\n", buffers, i,
                            gp_dtype_name(in[i].type.dtype), shape);
        names = gp_format(a, "%s%sx%d", names, i ? ", " : "", i);
    }
    return gp_format(a, "device: %s\nbuffers:\n%sstages:\n  - {use: give, out: [%s]}\n"
                     "  - {name: it, use: %s, in: [%s], out: y%s%s}\n  - {use: take, in: y}\n",
                     device, buffers, names, kind, names, *options ? ", " : "", options);
}

struct trial {
    gp_arena arena;
    gp_registry *registry;             /* whose kinds the graph has */
    const gp_graph *graph;
    const gp_stage *stage;
    const gp_backend *b;
    gp_dev *dev;
    gp_errs errs;
    int n;                         /* frames of room */
    gp_type type[2 * GP_MAXPORT];  /* of the inputs, then of the outputs */
    size_t stride[2 * GP_MAXPORT]; /* bytes from frame to frame */
    char *dev_mem[2 * GP_MAXPORT], *host_mem[2 * GP_MAXPORT];
    void *opened;                  /* of the kind's open() */
    void *state, *table, *host_table, *scratch;
    size_t scratch_stride;
    /* of the launch in hand */
    int m;
    const array *in;
    gp_type out[GP_MAXPORT];
};

static size_t up(size_t n) { return (n + 255) / 256 * 256; }

#define OK(x) ck_assert_msg((x), "%s: %s", #x, t->errs.n ? t->errs.e[0].msg : "no error")

static void *memory(trial *t, bool device, size_t bytes)
{
    void *p = bytes ? t->b->alloc(t->dev, device, up(bytes), &t->errs) : NULL;
    OK(p || !bytes);
    return p;
}

static void release(trial *t, bool device, void *mem, size_t bytes)
{
    if (mem)
        t->b->free(t->dev, device, mem, up(bytes));
}

static void do_now(trial *t, gp_body body)
{
    OK(t->b->direct(t->dev, 0, body, t, &t->errs));
    OK(t->b->wait(t->dev, 0, GP_SYNC_AUTO, &t->errs) == 1);
}

static bool fill_table(gp_rec *r, void *arg)
{
    trial *t = arg;
    return r->ops->item(r, 0, NULL, 0) && (!t->table || r->ops->copy(r, t->table, t->host_table, t->stage->table));
}

gp_dev *trial_device(const gp_backend *b)
{
    gp_errs errs = { 0 };
    gp_dev *dev = b->open(0, &errs);
    ck_assert_msg(dev && b->prepare(dev, 1, &(gp_priority){ 0 }, 0, 0, &errs), "%s: %s", b->name,
                  errs.n ? errs.e[0].msg : "no error");
    return dev;
}

static int inputs(const trial *t)
{
    int n = 0;
    while (n < t->stage->nin && t->stage->in[n] >= 0)
        n++;
    return n;
}

static void open_stage(trial *t)
{
    const gp_stage *st = t->stage;
    gp_open o = { .opts = st->opts, .name = st->name, .at = st->at, .nin = inputs(t), .nout = st->nout, .in = t->type,
                  .out = t->type + inputs(t), .in_name = st->in_name, .out_name = st->out_name, .workers = 1,
                  .scope = &t->graph->scope, .dev = t->dev, .errs = &t->errs, .slots = 1 };
    if (st->kind->open)
        OK(st->kind->open(&o, &t->opened));
}

trial *trial_open(gp_dev *dev, const char *kind, const char *options, const array *in, int nin, int n, gp_errs *errs)
{
    gp_arena a = { 0 };
    trial *t = trial_open_text(dev, pipeline_text(&a, dev->backend->name, kind, options, in, nin), n, errs);
    gp_arena_free(&a);
    return t;
}

trial *trial_open_text(gp_dev *dev, const char *yaml, int n, gp_errs *errs)
{
    trial *t = calloc(1, sizeof *t);
    gp_registry *registry = gp_registry_create();
    gp_env env = { .get = no_env };
    gp_machine machine;
    gp_probe probe = { .arena = &t->arena, .look = gp_probe_look };

    ck_assert(gp_register_builtin(registry, errs) && gp_register(registry, &give, errs)
              && gp_register(registry, &take, errs));
    gp_machine_fixed(&machine, 1);
    const char *text = gp_strdup(&t->arena, yaml);
    gp_spec *spec = gp_parse(&t->arena, text, strlen(text), "trial.yaml", errs);
    t->graph = spec ? gp_resolve(&t->arena, spec, registry, &env, &machine, &probe, errs) : NULL;
    t->registry = registry;
    if (!t->graph) {
        gp_registry_destroy(registry);
        gp_arena_free(&t->arena);
        free(t);
        return NULL;
    }
    for (int i = 0; i < t->graph->nstages; i++)
        if (!strcmp(t->graph->stage[i].name, "it"))
            t->stage = &t->graph->stage[i];
    t->b = dev->backend, t->dev = dev, t->n = n;
    int nin = inputs(t), ports = nin + t->stage->nout;
    for (int i = 0; i < ports; i++) {
        int buffer = i < nin ? t->stage->in[i] : t->stage->out[i - nin];
        t->type[i] = t->graph->buffer[buffer].type;
        t->stride[i] = up(gp_bytes(&t->type[i]));
        t->dev_mem[i] = memory(t, true, t->stride[i] * (size_t)n);
        t->host_mem[i] = memory(t, false, t->stride[i] * (size_t)n);
    }
    t->scratch_stride = up(t->stage->scratch);
    t->scratch = memory(t, true, t->scratch_stride * (size_t)n);
    t->state = memory(t, true, t->stage->state);
    t->table = memory(t, true, t->stage->table);
    t->host_table = memory(t, false, t->stage->table);
    if (t->table)
        OK(t->stage->kind->table(&(gp_table_call){ .opts = t->stage->opts, .nin = nin, .in = t->type,
                                           .data = t->host_table, .bytes = t->stage->table }));
    do_now(t, fill_table);
    open_stage(t);
    return t;
}

const void *trial_options(const trial *t)
{
    return t->stage->opts;
}

int trial_outputs(const trial *t)
{
    return t->stage->nout;
}

void trial_close(trial *t)
{
    if (t->opened)
        t->stage->kind->close(t->opened);
    for (int i = 0; i < inputs(t) + t->stage->nout; i++) {
        release(t, true, t->dev_mem[i], t->stride[i] * (size_t)t->n);
        release(t, false, t->host_mem[i], t->stride[i] * (size_t)t->n);
    }
    release(t, true, t->scratch, t->scratch_stride * (size_t)t->n);
    release(t, true, t->state, t->stage->state);
    release(t, true, t->table, t->stage->table);
    release(t, false, t->host_table, t->stage->table);
    gp_arena_free(&t->arena);
    gp_registry_destroy(t->registry);
    free(t);
}

bool trial_batched(const trial *t)
{
    return t->stage->batched;
}

/* ---- a launch ---------------------------------------------------------- */

static bool launch(gp_rec *r, void *arg)
{
    trial *t = arg;
    int nin = inputs(t), nout = t->stage->nout;
    size_t m = (size_t)t->m;
    gp_view in[GP_MAXPORT] = { { 0 } }, out[GP_MAXPORT] = { { 0 } };
    gp_dcall c = { .opts = t->stage->opts, .state = t->opened, .n = t->m, .in = in, .out = out,
                   .carried = t->state, .table = t->table, .scratch = t->scratch,
                   .scratch_stride = t->scratch_stride, .scope = &t->graph->scope,
                   .name = "it", .rec = r, .errs = r->errs };

    for (int i = 0; i < nin + nout; i++) {
        gp_view *v = i < nin ? &in[i] : &out[i - nin];
        *v = (gp_view){ t->dev_mem[i], i < nin ? t->in[i].type : t->out[i - nin], t->type[i].dim[0],
                        t->stride[i], false };
    }
    if (!r->ops->item(r, 0, NULL, 0))
        return false;
    for (int i = 0; i < nin; i++)
        if (!r->ops->copy(r, t->dev_mem[i], t->host_mem[i], t->stride[i] * m))
            return false;
    if (t->scratch && !r->ops->fill(r, t->scratch, 0xff, t->scratch_stride * m))
        return false;
    bool ok = true;
    for (unsigned k = 0; ok && t->stage->scratch_zero && k < m; k++)
        ok = r->ops->fill(r, (char *)t->scratch + k * t->scratch_stride, 0, t->stage->scratch_zero);
    for (int i = nin; ok && i < nin + nout; i++)
        ok = r->ops->fill(r, t->dev_mem[i], 0xa5, t->stride[i] * m);
    ok = ok && t->stage->kind->record(&c);
    for (int i = nin; ok && i < nin + nout; i++)
        ok = r->ops->copy(r, t->host_mem[i], t->dev_mem[i], t->stride[i] * m);
    return ok;
}

void trial_run(trial *t, const array *in, int n, array *out)
{
    int nin = inputs(t);
    gp_type types[GP_MAXPORT] = { { 0 } }; /* zero where no input is wired */

    ck_assert(n == 1 || (t->stage->batched && n <= t->n));
    for (int j = 0; j < n; j++)
        for (int i = 0; i < nin; i++) {
            char *slot = t->host_mem[i] + (size_t)j * t->stride[i];
            memset(slot, 0xff, t->stride[i]);
            memcpy(slot, in[j * nin + i].data, gp_bytes(&in[j * nin + i].type));
            types[i] = in[i].type;
        }
    int nout = t->stage->nout;
    memcpy(t->out, t->type + nin, sizeof *t->out * (size_t)nout);
    bool smaller = false;
    for (int i = 0; i < nin; i++)
        smaller |= !gp_type_same(&in[i].type, &t->type[i]);
    if (smaller)
        OK(gp_partial_shape(t->graph, t->stage, types, t->out, &t->errs));
    t->m = n, t->in = in;
    do_now(t, launch);
    for (int j = 0; j < n; j++)
        for (int o = 0; o < nout; o++) {
            out[j * nout + o] = make(&t->out[o]);
            memcpy(out[j * nout + o].data, t->host_mem[nin + o] + (size_t)j * t->stride[nin + o], gp_bytes(&t->out[o]));
        }
}

array trial_once(gp_dev *dev, const char *kind, const char *options, const array *in, int nin)
{
    gp_errs errs = { 0 };
    array out;
    trial *t = trial_open(dev, kind, options, in, nin, 1, &errs);
    ck_assert_msg(t != NULL, "%s: %s", kind, errs.n ? errs.e[0].msg : "no error");
    trial_run(t, in, 1, &out);
    trial_close(t);
    return out;
}
