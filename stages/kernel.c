/* kernel.c - a user's own kernel, from a .cu file or in the pipeline itself.
 *
 * check() and shape() read `args`, `block` and the like once, look at the source
 * (kernel/code.h), and leave what they found in the options; open() has the source compiled; record() evaluates
 * arguments and grid for the views it gets, so that a partial frame is computed at its own
 * size. */
#include <stdlib.h>
#include <string.h>
#include "base/why.h"
#include "launch_args.h"

enum { MAX_BLOCK = 1024, MAX_SHARED = 227 * 1024 };

struct opts {
    const char *source, *entry;
    const gp_node *code, *args, *grid, *define, *shared;
    gp_ints block;
    bool batched, serial, cooperative;
    /* Not options: made of them by check() and shape(). */
    gp_source kernel;
    const gp_file *file;       /* of the source; NULL: it is `code` */
    gp_kargs passed;
    gp_kgrid threads;
};

/* ---- the rest of the options ----------------------------------------- */

static bool read_shared(gp_shape *s, struct opts *o)
{
    gp_num n;
    o->kernel.shared = 0;
    if (!o->shared)
        return true;
    if (!gp_shape_eval(s, o->shared, &n))
        return false;
    if (!n.is_int || n.i < 0 || n.i > MAX_SHARED)
        return gp_shape_fail(s, "shared", "%.17g bytes of shared memory; a block can have 0 to "
                             "%d KiB", n.f, MAX_SHARED / 1024);
    o->kernel.shared = (size_t)n.i;
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
    const char **defines = gp_shape_alloc(s, sizeof *defines * (size_t)(d->n + 1));
    o->kernel.define = defines, o->kernel.ndefine = d->n;
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
        defines[i] = define;
    }
    return true;
}

static bool read_file(gp_shape *s, struct opts *o)
{
    const gp_file *f = o->file = gp_probe_file(s, o->source);
    if (f->error)
        return gp_shape_fail(s, "source", "cannot read '%s': %s", o->source, gp_strerror(f->error));
    if (f->kind != GP_FILE_REGULAR)
        return gp_shape_fail(s, "source", "'%s' is not a regular file", o->source);
    o->kernel.path = o->source;
    if (!o->kernel.entry) {
        const char *slash = strrchr(o->source, '/'), *base = slash ? slash + 1 : o->source;
        size_t n = strlen(base);
        char *name = gp_shape_alloc(s, n + 1);
        strcpy(name, base);
        if (n > 3 && !strcmp(name + n - 3, ".cu"))
            name[n - 3] = 0;
        o->kernel.entry = name;
    }
    return true;
}

static bool is_file_name(const char *text)
{
    size_t n = strlen(text);
    return n > 3 && !strcmp(text + n - 3, ".cu") && !strpbrk(text, " \n(");
}

static bool read_source(gp_shape *s, struct opts *o)
{
    const gp_node *code = o->code;
    o->kernel = (gp_source){ .entry = o->entry && *o->entry ? o->entry : NULL, .overlaps = !o->serial,
                             .cooperative = o->cooperative };
    if (!code && (!o->source || !*o->source))
        return gp_shape_fail(s, "source", "a kernel needs 'source', its .cu file, or 'code', its CUDA C++ as it stands");
    if (code && o->source)
        return gp_shape_fail(s, "code", "leave out 'source' or 'code': the kernel is either in a file or here");
    if (code && code->kind != GP_SCALAR)
        return gp_shape_fail(s, "code", "'code' is a text, best a block: 'code: |', and CUDA C++ in the lines below");
    if (code && is_file_name(code->text))
        return gp_shape_fail(s, "code", "'code' has the source itself; a file's name is 'source: %s'", code->text);
    /* YAML joins its lines, and leaves out those that begin with '#'. */
    if (code && !code->quoted && code->at.line)
        return gp_shape_fail(s, "code", "'code' needs a '|', so that its lines stay as they are: 'code: |', and CUDA "
                             "C++ in the lines below");
    if (code)
        o->kernel.path = gp_shape_loc(s, NULL).file, o->kernel.text = code->text,
        o->kernel.line = code->line, o->kernel.col = code->col;
    else if (!read_file(s, o))
        return false;
    return !o->kernel.entry || is_identifier(o->kernel.entry)
        || gp_shape_fail(s, "entry", "'%s' cannot be the name of a kernel; set 'entry'", o->kernel.entry);
}

/* Frames in flight would change the variable at the same time. */
static bool check_variables(gp_shape *s, const struct opts *o, gp_cu *code)
{
    gp_state keeps = gp_cu_state(code);
    if (o->serial) {
        s->variables = keeps.at;
        return true;
    }
    if (!keeps.at)
        return true;
    gp_loc at = gp_cu_at(code, keeps.at), changed = gp_cu_at(code, keeps.changed ? keeps.changed : keeps.at);
    int len = keeps.at->len < 40 ? keeps.at->len : 40;
    if (keeps.changed)
        return gp_shape_fail(s, gp_cu_option(code), "kernel '%s' may change '%.*s' (%s:%d), which is const, and which "
                             "launches for several frames share: set 'serial: true', so that frames take "
                             "turns", code->entry, len, keeps.at->p, changed.file, changed.line);
    return gp_shape_fail(s, gp_cu_option(code), "kernel '%s' may change the variable '%.*s' (%s:%d), which launches "
                         "for several frames share and change at the same time: declare it const (or "
                         "__constant__) if it is only read, else set 'serial: true', so that frames take "
                         "turns", code->entry, len, keeps.at->p, at.file, at.line);
}

/* Without a cooperative launch grid.sync() is an error that only some GPUs report. */
static bool check_groups(gp_shape *s, const struct opts *o, gp_cu *code)
{
    const gp_tok *at = o->cooperative ? NULL : gp_cu_uses(code, "this_grid");
    return !at || gp_shape_fail(s, gp_cu_option(code), "kernel '%s' uses this_grid() (%s:%d), which needs all "
                                "blocks to run at once: set 'cooperative: true'", code->entry,
                                gp_cu_at(code, at).file, at->line);
}

/* Said at once where the name is nowhere in the source, so that no macro can make it, and where the
 * source does not tell which of its kernels it is. */
static bool check_entry(gp_shape *s, const struct opts *o, gp_cu *code)
{
    const gp_kernels *k = &code->kernels;
    char names[200] = "";
    bool named = o->kernel.entry != NULL;
    if (named ? code->odd || k->odd != code->main.v || gp_cu_uses(code, code->entry) || gp_cu_uses(code, "##")
              : code->entry && !k->nothers)
        return true;
    if (gp_cu_slip(code))
        return false;
    if (!named && code->entry)
        snprintf(names, sizeof names, "'%.100s'", code->entry);
    for (int i = 0; i < k->nothers; i++) {
        size_t used = strlen(names);
        const gp_tok *name = &code->main.v[k->other[i].name];
        if (used + (size_t)name->len + 5 < sizeof names)
            snprintf(names + used, sizeof names - used, "%s'%.*s'", used ? ", " : "", name->len, name->p);
    }
    if (!named && code->entry)
        return gp_shape_fail(s, "code", "'code' has several kernels; set 'entry' to one of them: %s", names);
    if (!named)
        return gp_shape_fail(s, "code", "'code' has no kernel that is plainly declared: write extern \"C\" "
                                        "__global__ void "
                             "NAME(...) { ... }, or set 'entry' to its name%s", o->kernel.line ? "" : "; best write "
                             "'code: |', so that its lines stay as they are");
    return gp_shape_fail(s, o->entry ? "entry" : gp_cu_option(code), "no kernel '%s' in '%s'; %s%s", code->entry,
                         o->code ? "code" : o->source, *names ? "set 'entry' to one of its kernels: " : "it has none", names);
}

/* What is decided by the source as text, so that check, plan and run agree on any machine. */
static bool look_at_code(gp_shape *s, struct opts *o)
{
    gp_cu *code = gp_cu_read(s, &o->kernel, o->file);
    gp_source *k = &o->kernel;
    int text = k->text != NULL;
    gp_shape_reads(s, code->path + text, code->nfiles - text);
    o->threads = (gp_kgrid){ .given = o->grid, .batched = o->batched };
    bool ok = check_entry(s, o, code)
        && gp_kgrid_read(s, &o->block, code, &o->threads)
        && gp_kargs_check(s, o->args, &o->passed, code) && gp_kargs_bounds(s, &o->passed, code)
        && check_variables(s, o, code) && check_groups(s, o, code);
    k->entry = ok ? code->entry : k->entry;
    k->constant = code->constant, k->nconstants = code->nconstants;
    k->fixed = code->fixed, k->nfixed = code->nfixed;
    k->words = code->words, k->nwords = code->nsorted;
    return ok;
}

static bool check(gp_shape *s)
{
    struct opts *o = (void *)s->opts;
    bool ok = read_source(s, o);
    if (o->cooperative && o->batched)
        ok = gp_shape_fail(s, "cooperative", "a grid for several frames ('batched') would wait for all "
                           "of them: leave one of the two out");
    return read_define(s, o) && ok;
}

/* A kernel cannot say how large a frame is that it made: where that varies, it is as large as that of the input
 * that does. */
static bool bounds_follow(gp_shape *s)
{
    char a[GP_BOUNDS_TEXT], b[GP_BOUNDS_TEXT];
    int first = 0;
    while (first < s->nin && !s->in_varies[first])
        first++;
    first = first < s->nin ? first : 0;
    const gp_type *in = &s->in[first];
    for (int i = 0; i < s->nout; i++)
        for (int k = 0; k < s->out[i].ndim; k++)
            if (s->out_varies[i] >> k & 1 && s->out[i].dim[k] > 1
                && (k >= in->ndim || s->out[i].dim[k] != in->dim[k]))
                return gp_shape_fail(s, NULL, "output '%s' is %s, and a kernel cannot say how large what it made is: a "
                                     "size with '<=' is that of its input '%s', which is %s. Declare one size without '<=', which may be "
                                     "an expression like floor(%s.shape[0] / 2)",
                                     s->out_name[i], gp_bounds_text(&s->out[i], s->out_varies[i], a), s->in_name[first],
                                     gp_bounds_text(in, s->in_varies[first], b), s->in_name[first]);
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
    s->serial = o->serial, s->cooperative = o->cooperative, s->writes_all = true;
    return bounds_follow(s) && gp_kargs_read(s, o->args, o->batched, &o->passed) && read_shared(s, o)
        && look_at_code(s, o);
}

/* ---- run time -------------------------------------------------------- */

struct state {
    const gp_kernel *kernel;
    gp_ports ports;
};

static bool open_kernel(const gp_open *o, void **state)
{
    const struct opts *k = o->opts;
    struct state *st = *state = calloc(1, sizeof *st);
    if (!st)
        return gp_fail(o->errs, GP_E_RESOURCE, o->at, "stage '%s': no memory", o->name);
    st->ports = (gp_ports){ .in_name = o->in_name, .out_name = o->out_name, .nin = o->nin,
                            .nout = o->nout };
    gp_source src = k->kernel;
    src.at = k->code ? k->code->at : o->at, src.param = k->passed.type, src.nparam = k->passed.n, src.param_at = k->passed.at;
    st->kernel = gp_kernel_compile(o->dev, &src, o->errs);
    return st->kernel != NULL;
}

static bool record(gp_dcall *c)
{
    const struct opts *o = c->opts;
    const struct state *st = c->state;
    gp_kvalue v[GP_MAX_ARGS];
    void *args[GP_MAX_ARGS];
    gp_dim3 grid;
    for (int i = 0; i < o->passed.n; i++) {
        if (!gp_karg_value(c, &st->ports, &o->passed.arg[i], &v[i]))
            return false;
        args[i] = &v[i];
    }
    return gp_kgrid_of(c, &st->ports, &o->threads, &grid)
        && gp_launch_kernel(c, st->kernel, grid, o->threads.block, o->kernel.shared, args, o->passed.n);
}

static const gp_port in[] = {
    { "*", GP_ACCEPT_ANY, .help = "one input or more; `in` is the only one" }, { 0 }
};
static const gp_port out[] = {
    { "*", GP_ACCEPT_ANY, .help = "of the first input's type, where not declared" }, { 0 }
};

static const gp_opt options[] = {
    { GP_PATH(struct opts, source), .help = "the .cu file; else give `code`" },
    { GP_NODE(struct opts, code),
      .help = "the source itself, as a block: `code: |`, and CUDA C++ in the lines below" },
    { GP_TEXT(struct opts, entry),
      .help = "the extern \"C\" __global__ function; else the file's name without .cu, or the only one in `code`" },
    { GP_NODE(struct opts, args), .required = true,
      .help = "its arguments: ports, `frame`, {f32: gain}" },
    { GP_INTS(struct opts, block), .min = 1, .max = MAX_BLOCK, .unit = "threads",
      .help = "threads of a block along 1 to 3 axes; else 256, or [32, 8] where grid is left out and the kernel uses "
              "threadIdx.y; a grid of several axes needs it" },
    { GP_NODE(struct opts, grid),
      .help = "blocks along 1 to 3 axes; else a thread for each element of the first output, if the "
              "kernel says blockIdx.x * blockDim.x + threadIdx.x, and the same for y and z" },
    { GP_NODE(struct opts, define), .choices = "text", .help = "macros: {RADIUS: 3}" },
    { GP_NODE(struct opts, shared), .unit = "bytes",
      .help = "dynamic shared memory of a block, for `extern __shared__ float s[]`" },
    { GP_BOOL(struct opts, batched),
      .help = "blockIdx.z is the frame, and a size_t stride in elements follows each pointer to "
              "a port" },
    { GP_BOOL(struct opts, cooperative),
      .help = "all blocks run at once, and cooperative_groups::this_grid().sync() lets each wait for "
              "all; a grid that the device cannot run at once is an error" },
    { GP_BOOL(struct opts, serial),
      .help = "frames take turns, in order: for a source with __device__ or static variables that "
              "are not const" },
    { 0 }
};

const gp_kind gp_kind_kernel = {
    GP_KIND("kernel"), .field = "own code",
    .also = "cuda",
    .help = "runs a kernel of your own, from a .cu file or in the YAML",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .any_shape = true, .variables = true, .shape = shape, .open = open_kernel, .close = free, .record = record,
    .check = check,
};
