/* kernel.c - a user's own kernel, from a .cu file.
 *
 * shape() reads `args`, `block` and the like once and leaves what it found in the
 * options; open() has the source compiled; record() evaluates arguments and grid
 * for the views it gets, so that a partial frame is computed at its own size. */
#include <stdlib.h>
#include <string.h>
#include "device.h"

enum {
    MAX_ARGS = 64,             /* batched: a pointer counts twice */
    MAX_BLOCK = 1024, MAX_BLOCK_Z = 64, MAX_GRID_YZ = 65535, MAX_SHARED = 227 * 1024,
};

struct arg {
    enum { INPUT, OUTPUT, STRIDE_IN, STRIDE_OUT, FRAME, VALUE } what;
    int port;
    gp_dtype dtype;            /* of a VALUE */
    const gp_node *value;
};

struct opts {
    const char *source, *entry;
    const gp_node *args, *grid, *define, *shared;
    gp_ints block;
    bool batched;
    /* Not options: made of them by shape(). */
    const char *name;          /* of the entry */
    struct arg arg[MAX_ARGS];
    const char *type[MAX_ARGS];
    gp_loc at[MAX_ARGS];
    int nargs;
    const char **defines;
    gp_dim3 dim;               /* of a block */
    size_t bytes;              /* shared */
};

/* ---- arguments ------------------------------------------------------- */

/* As in C, and as the type of what a pointer points to. */
static const char *const c_type[GP_NDTYPES] = {
    [GP_U8] = "unsigned char", [GP_I8] = "signed char", [GP_U16] = "unsigned short",
    [GP_I16] = "short", [GP_U32] = "unsigned", [GP_I32] = "int",
    [GP_U64] = "unsigned long long", [GP_I64] = "long long", [GP_F16] = "gp_half",
    [GP_F32] = "float", [GP_F64] = "double", [GP_C64] = "gp_c64",
};

typedef union value {
    uint8_t u8; int8_t i8; uint16_t u16; int16_t i16; uint32_t u32; int32_t i32;
    uint64_t u64; int64_t i64; float f32; double f64;
    size_t size;
    const void *pointer;
} value;

/* A number as an argument of type `t`. False when it does not fit. */
static bool convert(gp_dtype t, gp_num n, value *v)
{
#define INTEGER(T, f, ctype, min, max) \
    case T: v->f = (ctype)n.i; return n.is_int && n.i >= (min) && n.i <= (max)
    switch (t) {
    INTEGER(GP_U8, u8, uint8_t, 0, UINT8_MAX);
    INTEGER(GP_I8, i8, int8_t, INT8_MIN, INT8_MAX);
    INTEGER(GP_U16, u16, uint16_t, 0, UINT16_MAX);
    INTEGER(GP_I16, i16, int16_t, INT16_MIN, INT16_MAX);
    INTEGER(GP_U32, u32, uint32_t, 0, UINT32_MAX);
    INTEGER(GP_I32, i32, int32_t, INT32_MIN, INT32_MAX);
    INTEGER(GP_U64, u64, uint64_t, 0, INT64_MAX);
    INTEGER(GP_I64, i64, int64_t, INT64_MIN, INT64_MAX);
    case GP_F32: v->f32 = (float)n.f; return true;
    case GP_F64: v->f64 = n.f; return true;
    default: return false;
    }
#undef INTEGER
}

static bool push_arg(gp_shape *s, struct opts *o, const gp_node *n, struct arg a,
                     const char *type)
{
    if (o->nargs == MAX_ARGS)
        return gp_shape_fail_at(s, n->at, "a kernel takes at most %d arguments", MAX_ARGS);
    o->type[o->nargs] = type;
    o->at[o->nargs] = n->at;
    o->arg[o->nargs++] = a;
    return true;
}

static const char *pointer_type(gp_shape *s, const char *konst, gp_dtype t)
{
    char *text = gp_shape_alloc(s, 40);
    snprintf(text, 40, "%s%s *", konst, c_type[t]);
    return text;
}

static int find(const char *const *name, int n, const char *want)
{
    int i = 0;
    while (i < n && strcmp(name[i], want) != 0)
        i++;
    return i;
}

/* `frame`, or a port by name; `in` and `out` are also the only input and output. */
static bool read_port(gp_shape *s, struct opts *o, const gp_node *n)
{
    int in = find(s->in_name, s->nin, n->text), out = find(s->out_name, s->nout, n->text);
    if (!strcmp(n->text, "frame")) {
        s->frame_info = true;
        return push_arg(s, o, n, (struct arg){ .what = FRAME }, "const gp_frame_info *");
    }
    if (in == s->nin && s->nin == 1 && !strcmp(n->text, "in"))
        in = 0;
    if (out == s->nout && s->nout == 1 && !strcmp(n->text, "out"))
        out = 0;
    if (in == s->nin && out == s->nout) {
        gp_near near = GP_NEAR(n->text);
        gp_near_try(&near, "frame");
        for (int i = 0; i < s->nin; i++)
            gp_near_try(&near, s->in_name[i]);
        for (int i = 0; i < s->nout; i++)
            gp_near_try(&near, s->out_name[i]);
        return gp_shape_fail_at(s, n->at, "'%s' is not an input or output of this stage%s (a "
                                "number is written {i32: %s})", n->text, gp_near_text(&near), n->text);
    }
    if (in < s->nin && out < s->nout)
        return gp_shape_fail_at(s, n->at, "'%s' is the name of an input and of an output; give "
                                "one another name, as in 'out: {result: %s}'", n->text, n->text);
    bool ok = in < s->nin
        ? push_arg(s, o, n, (struct arg){ .what = INPUT, .port = in },
                   pointer_type(s, "const ", s->in[in].dtype))
        : push_arg(s, o, n, (struct arg){ .what = OUTPUT, .port = out },
                   pointer_type(s, "", s->out[out].dtype));
    if (ok && o->batched)
        ok = push_arg(s, o, n, in < s->nin ? (struct arg){ .what = STRIDE_IN, .port = in }
                                           : (struct arg){ .what = STRIDE_OUT, .port = out },
                      "size_t");
    return ok;
}

static bool read_value(gp_shape *s, struct opts *o, const gp_node *n)
{
    gp_dtype t = n->n == 1 ? gp_dtype_parse(n->key[0]->text) : GP_NO_DTYPE;
    gp_num num;
    value v;
    if (n->n != 1)
        return gp_shape_fail_at(s, n->at, "an argument is one type and its value: {f32: gain}");
    if (t == GP_NO_DTYPE)
        return gp_shape_fail_at(s, n->key[0]->at, "no type '%s'; a value is written {f32: gain}",
                                n->key[0]->text);
    if (t == GP_F16 || t == GP_C64)
        return gp_shape_fail_at(s, n->key[0]->at, "a value cannot be %s; pass f32",
                                gp_dtype_name(t));
    if (!gp_shape_eval(s, n->item[0], &num))
        return false;
    if (!convert(t, num, &v))
        return gp_shape_fail_at(s, n->item[0]->at, "'%s' is %.17g, which no %s can be",
                                n->item[0]->text, num.f, gp_dtype_name(t));
    return push_arg(s, o, n, (struct arg){ .what = VALUE, .dtype = t, .value = n->item[0] },
                    c_type[t]);
}

static bool read_args(gp_shape *s, struct opts *o)
{
    const gp_node *n = o->args;
    bool ok = true;
    o->nargs = 0;
    if (n->kind != GP_LIST)
        return gp_shape_fail_at(s, n->at, "'args' must be a list, like "
                                "[in, out, {i32: \"in.shape[0]\"}]");
    for (int i = 0; i < n->n; i++) {
        const gp_node *a = n->item[i];
        if (a->kind == GP_LIST)
            ok = gp_shape_fail_at(s, a->at, "an argument is a port, 'frame', or {f32: gain}");
        else
            ok &= a->kind == GP_SCALAR ? read_port(s, o, a) : read_value(s, o, a);
    }
    for (int p = 0; p < s->nout && ok; p++) {
        int i = 0;
        while (i < o->nargs && !(o->arg[i].what == OUTPUT && o->arg[i].port == p))
            i++;
        if (i == o->nargs)
            ok = gp_shape_fail_at(s, n->at, "output '%s' is not among the arguments, so nothing "
                                  "would write it", s->out_name[p]);
    }
    for (int i = 0; i < o->nargs; i++) {
        const struct arg *a = &o->arg[i];
        s->known.f64 |= a->what == INPUT ? s->in[a->port].dtype == GP_F64
                      : a->what == OUTPUT ? s->out[a->port].dtype == GP_F64
                      : a->what == VALUE && a->dtype == GP_F64;
    }
    return ok;
}

/* ---- block and grid -------------------------------------------------- */

static bool read_block(gp_shape *s, struct opts *o)
{
    int64_t d[3] = { 256, 1, 1 };
    if (!o->block.n && !o->grid && s->out[0].ndim > 1)
        d[0] = 32, d[1] = 8;
    if (o->block.n > 3)
        return gp_shape_fail(s, "block", "a block has 1 to 3 axes: [x, y, z]");
    for (int i = 0; i < o->block.n; i++)
        d[i] = o->block.v[i];
    if (d[0] * d[1] * d[2] > MAX_BLOCK)
        return gp_shape_fail(s, "block", "a block of %lld threads; at most %d are possible",
                             (long long)(d[0] * d[1] * d[2]), MAX_BLOCK);
    if (d[2] > MAX_BLOCK_Z)
        return gp_shape_fail(s, "block", "a block has at most %d threads along z", MAX_BLOCK_Z);
    o->dim = (gp_dim3){ (unsigned)d[0], (unsigned)d[1], (unsigned)d[2] };
    return true;
}

static const gp_node *grid_item(const gp_node *grid, int i)
{
    return grid->kind == GP_LIST ? grid->item[i] : grid;
}

static int grid_axes(const gp_node *grid)
{
    return grid->kind == GP_LIST ? grid->n : 1;
}

/* Blocks along axis x, y, z (i = 0, 1, 2) for one thread per element of `t`. */
static int64_t default_blocks(const gp_type *t, int i, unsigned block)
{
    int64_t n = i < t->ndim ? t->dim[t->ndim - 1 - i] : 1;
    return (n + block - 1) / block;
}

static bool blocks_fit(gp_num n, int axis)
{
    return n.is_int && n.i >= 0 && n.i <= (axis ? MAX_GRID_YZ : INT32_MAX);
}

static bool check_grid(gp_shape *s, const struct opts *o)
{
    const gp_node *g = o->grid;
    bool ok = true;
    if (!g) {
        const gp_type *t = &s->out[0];
        int64_t y = default_blocks(t, 1, o->dim.y), z = default_blocks(t, 2, o->dim.z);
        if (o->batched && t->ndim > 2 && t->dim[t->ndim - 3] > 1)
            return gp_shape_fail(s, "batched", "blockIdx.z is the frame, so that there is no grid "
                                 "for three axes; set 'grid' to one of x and y");
        if (default_blocks(t, 0, o->dim.x) > INT32_MAX || y > MAX_GRID_YZ || z > MAX_GRID_YZ)
            return gp_shape_fail(s, NULL, "no grid has one thread for each element of '%s'; set "
                                 "'grid'", s->out_name[0]);
        return true;
    }
    int n = grid_axes(g), most = o->batched ? 2 : 3;
    s->known.threads = (int64_t)o->dim.x * o->dim.y * o->dim.z;
    s->known.blocks = 1;
    if (g->kind == GP_MAP || n < 1 || n > most)
        return gp_shape_fail_at(s, g->at, "a grid has 1 to %d axes: [x, y%s%s", most,
                                most == 3 ? ", z]" : "]", most == 3 ? "" : "; z is the frame");
    for (int i = 0; i < n; i++) {
        gp_num v;
        const gp_node *e = grid_item(g, i);
        if (!gp_shape_eval(s, e, &v))
            ok = false;
        else if (!blocks_fit(v, i) || v.i == 0)
            ok = gp_shape_fail_at(s, e->at, "a grid of %.17g blocks along %c; it must be a whole "
                                  "number from 1 to %d", v.f, "xyz"[i],
                                  i ? MAX_GRID_YZ : INT32_MAX);
        else
            s->known.blocks *= v.i;        /* at most INT32_MAX * MAX_GRID_YZ^2 < 2^63 */
    }
    return ok;
}

/* ---- the rest of the options ----------------------------------------- */

static bool read_shared(gp_shape *s, struct opts *o)
{
    gp_num n;
    o->bytes = 0;
    if (!o->shared)
        return true;
    if (!gp_shape_eval(s, o->shared, &n))
        return false;
    if (!n.is_int || n.i < 0 || n.i > MAX_SHARED)
        return gp_shape_fail(s, "shared", "%.17g bytes of shared memory; a block can have 0 to "
                             "%d KiB", n.f, MAX_SHARED / 1024);
    o->bytes = (size_t)n.i;
    return true;
}

static bool is_identifier(const char *s)
{
    size_t n = strspn(s, "_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");
    return n && !s[n] && !(*s >= '0' && *s <= '9');
}

static bool read_define(gp_shape *s, struct opts *o)
{
    const gp_node *d = o->define;
    if (!d)
        return true;
    if (d->kind != GP_MAP)
        return gp_shape_fail_at(s, d->at, "'define' must be a map, like {RADIUS: 3}");
    o->defines = gp_shape_alloc(s, sizeof *o->defines * (size_t)(d->n + 1));
    for (int i = 0; i < d->n; i++) {
        const char *text = d->item[i]->kind == GP_SCALAR ? gp_shape_text(s, d->item[i]) : NULL;
        if (d->item[i]->kind != GP_SCALAR)
            return gp_shape_fail_at(s, d->item[i]->at, "'define' gives each name one value");
        if (!text)
            return false;
        if (!is_identifier(d->key[i]->text))
            return gp_shape_fail_at(s, d->key[i]->at, "'%s' is not a name that C can define",
                                    d->key[i]->text);
        size_t n = strlen(d->key[i]->text) + strlen(text) + 2;
        char *define = gp_shape_alloc(s, n);
        snprintf(define, n, "%s=%s", d->key[i]->text, text);
        o->defines[i] = define;
    }
    return true;
}

static bool read_source(gp_shape *s, struct opts *o)
{
    const gp_file *f = gp_probe_file(s, o->source);
    if (f->error)
        return gp_shape_fail(s, "source", "cannot read '%s': %s", o->source, strerror(f->error));
    if (f->kind != GP_FILE_REGULAR)
        return gp_shape_fail(s, "source", "'%s' is not a regular file", o->source);
    o->name = o->entry;
    if (!o->name || !*o->name) {
        const char *slash = strrchr(o->source, '/'), *base = slash ? slash + 1 : o->source;
        size_t n = strlen(base);
        char *name = gp_shape_alloc(s, n + 1);
        strcpy(name, base);
        if (n > 3 && !strcmp(name + n - 3, ".cu"))
            name[n - 3] = 0;
        o->name = name;
    }
    if (!is_identifier(o->name))
        return gp_shape_fail(s, "entry", "'%s' cannot be the name of a kernel; set 'entry'",
                             o->name);
    return true;
}

static bool shape(gp_shape *s)
{
    struct opts *o = (void *)s->opts;
    if (s->nin == 0)
        return gp_shape_fail(s, NULL, "a kernel needs an input; name one with 'in'");
    if (s->nout == 0)
        return gp_shape_fail(s, NULL, "a kernel needs an output; name one with 'out'");
    for (int i = 0; i < s->nout; i++) {
        gp_type *t = &s->out[i];
        if (!t->dtype)
            t->dtype = s->in[0].dtype;
        if (!t->ndim) {
            t->ndim = s->in[0].ndim;
            memcpy(t->dim, s->in[0].dim, sizeof t->dim);
        }
    }
    if (s->partial)
        return true;
    s->batched = o->batched;
    return read_source(s, o) && read_args(s, o) && read_block(s, o) && check_grid(s, o) &&
           read_shared(s, o) && read_define(s, o);
}

/* ---- run time -------------------------------------------------------- */

struct state {
    const gp_kernel *kernel;
    const char *const *in_name, *const *out_name;
    int nin, nout;
};

static bool open_kernel(const gp_open *o, void **state)
{
    const struct opts *k = o->opts;
    struct state *st = *state = calloc(1, sizeof *st);
    if (!st)
        return gp_fail(o->errs, GP_E_RESOURCE, o->at, "stage '%s': no memory", o->name);
    *st = (struct state){ .in_name = o->in_name, .out_name = o->out_name, .nin = o->nin,
                          .nout = o->nout };
    gp_source src = { .path = k->source, .entry = k->name, .param = k->type, .nparam = k->nargs,
                      .define = k->defines, .ndefine = k->define ? k->define->n : 0,
                      .shared = k->bytes, .at = o->at, .param_at = k->at };
    st->kernel = gp_kernel_compile(o->dev, &src, o->errs);
    return st->kernel != NULL;
}

static bool eval(const gp_dcall *c, const gp_node *n, gp_num *out)
{
    const struct state *st = c->state;
    return gp_dcall_eval(c, st->in_name, st->nin, st->out_name, st->nout, n, out);
}

static bool set_value(gp_dcall *c, const struct arg *a, value *v)
{
    gp_num n;
    switch (a->what) {
    case INPUT: v->pointer = c->in[a->port].data; return true;
    case OUTPUT: v->pointer = c->out[a->port].data; return true;
    case STRIDE_IN: v->size = gp_stride(&c->in[a->port]); return true;
    case STRIDE_OUT: v->size = gp_stride(&c->out[a->port]); return true;
    case FRAME: v->pointer = c->frame; return true;
    case VALUE: break;
    }
    if (!eval(c, a->value, &n))
        return false;
    return convert(a->dtype, n, v) ||
           gp_fail(c->errs, GP_E_RUN, a->value->at, "stage '%s': '%s' is %.17g, which no %s can "
                   "be", c->name, a->value->text, n.f, gp_dtype_name(a->dtype));
}

static bool set_grid(gp_dcall *c, const struct opts *o, gp_dim3 *grid)
{
    int64_t n[3] = { 1, 1, 1 };
    const unsigned block[3] = { o->dim.x, o->dim.y, o->dim.z };
    for (int i = 0; i < 3; i++) {
        gp_num v;
        if (!o->grid) {
            n[i] = default_blocks(&c->out[0].type, i, block[i]);
        } else if (i < grid_axes(o->grid)) {
            const gp_node *e = grid_item(o->grid, i);
            if (!eval(c, e, &v))
                return false;
            if (!blocks_fit(v, i))
                return gp_fail(c->errs, GP_E_RUN, e->at, "stage '%s': a grid of %.17g blocks "
                               "along %c", c->name, v.f, "xyz"[i]);
            n[i] = v.i;
        }
    }
    if (o->batched)
        n[2] = c->n;
    *grid = (gp_dim3){ (unsigned)n[0], (unsigned)n[1], (unsigned)n[2] };
    return true;
}

static bool record(gp_dcall *c)
{
    const struct opts *o = c->opts;
    const struct state *st = c->state;
    value v[MAX_ARGS];
    void *args[MAX_ARGS];
    gp_dim3 grid;
    for (int i = 0; i < o->nargs; i++) {
        if (!set_value(c, &o->arg[i], &v[i]))
            return false;
        args[i] = &v[i];
    }
    if (!set_grid(c, o, &grid))
        return false;
    if (!grid.x || !grid.y || !grid.z)     /* a frame without rows */
        return true;
    return gp_launch_kernel(c, st->kernel, grid, o->dim, o->bytes, args, o->nargs);
}

static const gp_port in[] = {
    { "*", GP_ACCEPT_ANY, .help = "one input or more; `in` is the only one" }, { 0 }
};
static const gp_port out[] = {
    { "*", GP_ACCEPT_ANY, .help = "of the first input's type, where not declared" }, { 0 }
};

static const gp_opt options[] = {
    { GP_PATH(struct opts, source), .required = true, .help = "the .cu file" },
    { GP_TEXT(struct opts, entry),
      .help = "the extern \"C\" __global__ function; else the file's name without .cu" },
    { GP_NODE(struct opts, args), .required = true,
      .help = "its arguments: ports, `frame`, {f32: gain}" },
    { GP_INTS(struct opts, block), .min = 1, .max = MAX_BLOCK, .unit = "threads",
      .help = "1 to 3 axes; else 256, or [32, 8] where grid is left out and there are 2 axes" },
    { GP_NODE(struct opts, grid),
      .help = "blocks along 1 to 3 axes; else a thread for each element of the last three axes "
              "of the first output, x the last" },
    { GP_NODE(struct opts, define), .help = "macros: {RADIUS: 3}" },
    { GP_NODE(struct opts, shared), .unit = "bytes",
      .help = "dynamic shared memory of a block, for `extern __shared__ float s[]`" },
    { GP_BOOL(struct opts, batched),
      .help = "blockIdx.z is the frame, and a size_t stride in elements follows each pointer to "
              "a port" },
    { 0 }
};

const gp_kind gp_kind_kernel = {
    GP_KIND("kernel"),
    .help = "runs a kernel of your own, from a .cu file",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .shape = shape, .open = open_kernel, .close = free, .record = record,
};
