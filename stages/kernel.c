/* kernel.c - a user's own kernel, from a .cu file or in the pipeline itself, or as another compiler left it (a module).
 *
 * check() and shape() read `args`, `block` and the like once, and leave what they found in the options; open() has the
 * source compiled; errors in it are found there; record() evaluates arguments and grid for the views it gets,
 * so that a partial frame is computed at its own size. */
#include <stdlib.h>
#include <string.h>
#include "base/cxx.h"
#include "base/module.h"
#include "base/num.h"
#include "base/why.h"
#include "launch_args.h"

enum { MAX_BLOCK = 1024, MAX_SHARED = 227 * 1024 };

struct opts {
    const char *source, *entry, *cpu;
    const gp_node *code, *args, *threads, *grid, *define, *shared;
    gp_ints block;
    bool batched, serial, cooperative, each_once;
    /* Not options: made of them by check() and shape(). */
    gp_source kernel;
    gp_kargs passed;
    gp_kgrid launched;
    gp_kbeside beside;                 /* of a module */
    unsigned alike[GP_MAXPORT];        /* per input: a set of those behind it that have the same bounds */
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
    if (!gp_num_whole(&n) || n.i < 0 || n.i > MAX_SHARED)
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

/* All of a file; NULL after an error. */
static const char *read_all(gp_shape *s, const gp_file *f)
{
    if ((size_t)f->size == f->nhead)
        return f->head;
    size_t more = (size_t)f->size - f->nhead;
    char *all = f->size <= GP_MODULE_MAX ? gp_shape_alloc(s, (size_t)f->size + 1) : NULL;
    if (!all)
        gp_shape_fail(s, "source", "'%s' is too large", f->path);
    else if (gp_probe_bytes(s, f, (int64_t)f->nhead, all + f->nhead, more) != (int64_t)more)
        return gp_shape_fail(s, "source", "cannot read all of '%s'", f->path), NULL;
    else
        memcpy(all, f->head, f->nhead), all[f->size] = '\0';
    return all;
}

/* It is compiled already: what it says is looked at here, and what stands beside it. */
static bool read_module(gp_shape *s, struct opts *o, const gp_file *f)
{
    gp_source *k = &o->kernel;
    gp_module m;
    char why[GP_WHY];
    const char *data = read_all(s, f);
    if (!data || !gp_kbeside_read(s, f->path, &o->beside))
        return false;
    if (o->define && !o->cpu)
        return gp_shape_fail(s, "define", "'define' has no effect on '%s', which is compiled already", o->source);
    if (o->cpu) {
        const gp_file *cpu = gp_probe_file(s, o->cpu);
        if (cpu->error || cpu->kind != GP_FILE_REGULAR)
            return gp_shape_fail(s, "cpu", "cannot read '%s': %s", o->cpu, cpu->error ? gp_strerror(cpu->error)
                                 : "it is not a regular file");
        if (gp_module_is(o->cpu))
            return gp_shape_fail(s, "cpu", "'cpu' is CUDA C++, a .cu file");
    }
    k->entry = k->entry ? k->entry : o->beside.name;
    if (!gp_module_read(&m, data, (size_t)f->size, k->entry, why))
        return gp_shape_fail(s, "source", "'%s' %s", o->source, why);
    if (!k->entry && m.kernels == 1)
        k->entry = strcpy(gp_shape_alloc(s, strlen(m.first) + 1), m.first), m.found = true;
    if (!k->entry)
        return gp_shape_fail(s, "entry", "set 'entry' to a kernel of '%s'%s%s", o->source, *m.names ? ": " : "", m.names);
    if (!gp_module_allows(&m, k, why))
        return gp_shape_fail(s, "source", "%s", why);
    if (o->beside.threads)
        o->block = (gp_ints){ 1, &o->beside.threads };
    o->shared = o->beside.shared ? o->beside.shared : o->shared;
    o->grid = o->beside.grid ? o->beside.grid : o->grid;
    return true;
}

static bool read_file(gp_shape *s, struct opts *o)
{
    const gp_file *f = gp_probe_file(s, o->source);
    if (f->error)
        return gp_shape_fail(s, "source", "cannot read '%s': %s", o->source, gp_strerror(f->error));
    if (f->kind != GP_FILE_REGULAR)
        return gp_shape_fail(s, "source", "'%s' is not a regular file", o->source);
    o->kernel.path = o->source;
    if (gp_module_is(o->source))
        return read_module(s, o, f);
    if (o->cpu)
        return gp_shape_fail(s, "cpu", "'cpu' has no effect on '%s', which is compiled for the CPU, too", o->source);
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
    return !o->kernel.entry || is_identifier(o->kernel.entry) || gp_module_is(o->kernel.path)
        || gp_shape_fail(s, "entry", "'%s' cannot be the name of a kernel; set 'entry'", o->kernel.entry);
}

enum { MOST_LOOKS = 256 };

/* The entry of `code` that names none: its only kernel. */
static bool find_entry(gp_shape *s, struct opts *o)
{
    char names[200] = "", *code = gp_code_blank(o->kernel.text);
    const char *entry = NULL;
    size_t n, nentry = 0, used;
    bool several = false;
    int looked = 0;                            /* a text may be of nothing else, and long */
    for (const char *p = code; p && looked < MOST_LOOKS && (p = gp_find_word(code, p, "__global__")); looked++) {
        const char *name = gp_kernel_name(p += strlen("__global__"), &n);
        if (!name || (entry && n == nentry && !strncmp(entry, name, n)))
            continue;
        several |= entry != NULL;
        entry = name, nentry = n, used = strlen(names);
        if (used + n + 5 < sizeof names)
            snprintf(names + used, sizeof names - used, "%s'%.*s'", used ? ", " : "", (int)n, name);
    }
    several |= looked == MOST_LOOKS;           /* there may be others behind */
    if (entry && !several)
        o->kernel.entry = memcpy(gp_shape_alloc(s, nentry + 1), entry, nentry);
    free(code);
    if (several)
        return gp_shape_fail(s, "code", "'code' has several kernels; set 'entry' to one of them: %s", names);
    return o->kernel.entry
        || gp_shape_fail(s, "code", "'code' has no kernel that is plainly declared: write extern \"C\" __global__ void "
                         "NAME(...) { ... }, or set 'entry' to its name%s", o->kernel.line ? "" : "; best write "
                         "'code: |', so that its lines stay as they are");
}

/* ---- the files that it is made of --------------------------------------- */

enum { FILES = 4096 };

typedef struct files { const char **path; int n, cap; } files;

/* Adds the n characters at `name`, as a path in the folder of `from`, if they are that of a file. */
static void add_file(gp_shape *s, files *list, const char *from, const char *name, size_t n)
{
    const char *slash = strrchr(from, '/');
    size_t dir = *name == '/' || !slash ? 0 : (size_t)(slash + 1 - from);
    char *path = gp_shape_alloc(s, dir + n + 1);
    memcpy(path, from, dir), memcpy(path + dir, name, n);
    const gp_file *f = gp_probe_file(s, path);
    bool known = !f || f->error || f->kind != GP_FILE_REGULAR || list->n == FILES;
    for (int i = 0; i < list->n && !known; i++)
        known = !strcmp(list->path[i], path);
    if (known)
        return;
    if (list->n == list->cap) {
        const char **more = gp_shape_alloc(s, sizeof *more * (size_t)(list->cap = 2 * list->cap + 16));
        if (list->n)
            memcpy(more, list->path, sizeof *more * (size_t)list->n);
        list->path = more;
    }
    list->path[list->n++] = path;
}

static void add_includes(gp_shape *s, files *list, const char *from, const char *text)
{
    char *code = gp_code_blank(text);
    for (const char *p = code; p && (p = gp_find_word(code, p, "include")); p++) {
        const char *name = gp_include_operand(text, code, p);
        if (name && *name == '"')
            add_file(s, list, from, name + 1, strcspn(name + 1, "\"\n"));
    }
    free(code);
}

/* The source, and all that it includes in quotes from its own folder and theirs: a person who changes one of them
 * means the pipeline, too. */
static void list_files(gp_shape *s, const struct opts *o)
{
    files list = { 0 };
    if (o->kernel.text)
        add_includes(s, &list, o->kernel.path, o->kernel.text);
    else
        add_file(s, &list, "", o->source, strlen(o->source));
    if (o->beside.path)
        add_file(s, &list, "", o->beside.path, strlen(o->beside.path));
    if (o->cpu)
        add_file(s, &list, "", o->cpu, strlen(o->cpu));
    for (int i = 0; i < list.n; i++)           /* grows meanwhile */
        add_includes(s, &list, list.path[i], gp_probe_file(s, list.path[i])->head);
    gp_shape_reads(s, list.path, list.n);
}

static bool check(gp_shape *s)
{
    struct opts *o = (void *)s->opts;
    bool ok = read_source(s, o) && (o->kernel.entry || find_entry(s, o));
    if (ok)
        list_files(s, o);
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
                                     "size with '<=' is that of its input '%s', which is %s. Declare one size without "
                                     "'<=', which may be "
                                     "an expression like floor(%s.shape[0] / 2)",
                                     s->out_name[i], gp_bounds_text(&s->out[i], s->out_varies[i], a), s->in_name[first],
                                     gp_bounds_text(in, s->in_varies[first], b), s->in_name[first]);
    return true;
}

/* Inputs that have the same bounds have one shape in each frame: a kernel that goes through one by the size of another
 * would read beyond it. */
static bool are_alike(gp_shape *s, struct opts *o)
{
    char x[128], y[128];
    for (int a = 0; a < s->nin; a++)
        for (int b = a + 1; b < s->nin; b++) {
            bool same = gp_type_same(&s->in[a], &s->in[b]);
            if (!s->partial)
                o->alike[a] |= same && s->in_varies[a] && s->in_varies[b] ? 1u << b : 0;
            else if (o->alike[a] >> b & 1 && !same)
                return gp_shape_fail(s, NULL, "input '%s' is %s in one frame, and '%s', which has the same bounds, is %s",
                                     s->in_name[a], gp_type_text(&s->in[a], x), s->in_name[b], gp_type_text(&s->in[b], y));
        }
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
    bool alike = are_alike(s, o);
    if (s->partial)
        return alike;
    s->batched = o->batched;
    s->serial = o->serial, s->cooperative = o->cooperative, s->writes_all = true;
    s->variables = o->serial, s->each_once = o->each_once;
    o->launched = (gp_kgrid){ .threads = o->threads, .grid = o->grid, .batched = o->batched };
    return bounds_follow(s) && gp_kargs_read(s, o->args, o->batched, &o->passed)
        && gp_kbeside_fit(s, &o->beside, &o->passed) && read_shared(s, o)
        && gp_kgrid_read(s, &o->block, &o->launched);
}

/* ---- run time -------------------------------------------------------- */

struct state {
    const gp_kernel *kernel;
    gp_ports ports;
    int nargs;                 /* a reference for the CPU has no parameters that are null */
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
    bool other = gp_module_is(src.path) && !src.text && gp_dev_on_cpu(o->dev);
    if (other && !k->cpu)
        return gp_fail(o->errs, GP_E_SPEC, o->at, "stage '%s': '%s' is for NVIDIA GPUs, and this is the CPU back end: "
                       "run with 'device: cuda', or give the stage a reference for the CPU: 'cpu: k.cu', with the same "
                       "kernel in CUDA C++", o->name, src.path);
    if (other)
        src.path = k->cpu;
    st->nargs = k->passed.n - (other ? k->passed.nulls : 0);
    src.at = k->code ? k->code->at : o->at;
    src.param = k->passed.type, src.nparam = st->nargs, src.param_at = k->passed.at;
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
    for (int i = 0; i < st->nargs; i++) {
        if (!gp_karg_value(c, &st->ports, &o->passed.arg[i], &v[i]))
            return false;
        args[i] = &v[i];
    }
    return gp_kgrid_of(c, &st->ports, &o->launched, &grid)
        && gp_launch_kernel(c, st->kernel, grid, o->launched.block, o->kernel.shared, args, st->nargs);
}

static const gp_port in[] = {
    { "*", GP_ACCEPT_ANY, .help = "one input or more; `in` is the only one" }, { 0 }
};
static const gp_port out[] = {
    { "*", GP_ACCEPT_ANY, .help = "of the first input's type, where not declared" }, { 0 }
};

static const gp_opt options[] = {
    { GP_PATH(struct opts, source), .help = "the .cu file, or .ptx, .cubin or .fatbin of another compiler; else give `code`" },
    { GP_NODE(struct opts, code),
      .help = "the source itself, as a block: `code: |`, and CUDA C++ in the lines below" },
    { GP_TEXT(struct opts, entry),
      .help = "the extern \"C\" __global__ function; else the file's name without .cu, or the only one in `code` or a "
              "compiled file" },
    { GP_PATH(struct opts, cpu), .help = "a .cu file with the same kernel, for the CPU, beside a compiled `source`" },
    { GP_NODE(struct opts, args), .required = true,
      .help = "its arguments: ports, `frame`, {f32: gain}" },
    { GP_NODE(struct opts, threads),
      .help = "threads along 1 to 3 axes, of which the last blocks may have more: out.size, or "
              "[\"out.shape[1]\", \"out.shape[0]\"] for x and y of an image" },
    { GP_NODE(struct opts, grid), .help = "in place of `threads`: blocks along 1 to 3 axes" },
    { GP_INTS(struct opts, block), .min = 1, .max = MAX_BLOCK, .unit = "threads",
      .help = "threads of a block along 1 to 3 axes; else 256, or [32, 8] for `threads` of several axes; a `grid` of several "
              "axes needs it" },
    { GP_BOOL(struct opts, each_once),
      .help = "it reads each element of its inputs once, and writes each of its outputs once, neighbors by neighboring threads: "
              "small frames then stay in the host's memory" },
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
              "it changes" },
    { 0 }
};

const gp_kind gp_kind_kernel = {
    GP_KIND("kernel"), .field = "own code",
    .also = "cuda",
    .help = "runs a kernel of your own, from a .cu file or in the YAML",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct opts),
    .any_shape = true, .variables = true, .in_place = true, .shape = shape, .open = open_kernel, .close = free, .record = record,
    .check = check,
};
