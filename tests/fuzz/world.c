/* world.c - compiling with files that are made up, see fuzz.h.
 *
 * A file is what its name says: data-u16.npy holds u16, missing.npy is not there, cut.npy
 * ends early, a fifo is a stream, a dir a folder; 'none' in a pattern: no file matches. */
#include <errno.h>
#include <time.h>
#include "base/npy.h"
#include "device/machine.h"
#include "idle.h"
#include "fuzz.h"

/* ---- kinds and machines ------------------------------------------------ */

static const gp_kind give = IDLE_GIVE, take = IDLE_TAKE;

const gp_registry *fuzz_registry(void)
{
    static gp_registry *r;
    gp_errs errs = { 0 };
    if (!r)
        MUST((r = gp_registry_create()) && gp_register_builtin(r, &errs)
             && gp_register(r, &give, &errs) && gp_register(r, &take, &errs));
    return r;
}

const gp_machine *fuzz_machine(int ngpus)
{
    static gp_machine m[2];
    if (!m[ngpus].cpus)
        gp_machine_fixed(&m[ngpus], ngpus);
    return &m[ngpus];
}

/* ---- files ------------------------------------------------------------- */

static struct { const char *name, *data; size_t n; } given;

void fuzz_file(const char *name, const char *data, size_t n)
{
    given.name = name, given.data = data, given.n = n;
}

static void regular(gp_arena *a, gp_file *f, const void *data, size_t n, int64_t size)
{
    size_t head = n < GP_PROBE_HEAD ? n : GP_PROBE_HEAD;
    f->kind = GP_FILE_REGULAR, f->size = size;
    f->head = gp_strndup(a, data, head), f->nhead = head;
}

static void numbers(gp_arena *a, gp_file *f, const char *name)
{
    gp_type t = { GP_F32, 2, { 6, 8 } };
    char head[GP_NPY_HEADER_MAX];
    for (int d = GP_U8; d < GP_NDTYPES; d++)
        if (strstr(name, gp_dtype_name((gp_dtype)d)))
            t.dtype = (gp_dtype)d;
    if (strstr(name, "taps") || strstr(name, "bandpass"))
        t = (gp_type){ GP_F64, 1, { 5 } };
    if (strstr(name, "image"))
        t.ndim = 3, t.dim[2] = 3;
    size_t n = gp_npy_header(&t, head, sizeof head);
    regular(a, f, head, n, (int64_t)(n + gp_bytes(&t)) - (strstr(name, "cut") ? 5 : 0));
}

static void look_at_file(gp_arena *a, gp_file *f, const char *path)
{
    static const unsigned char png[] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x08\0\0\0\x06"
                                       "\x08\2\0\0\0\0\0\0\0\0\0\0\0IDAT";
    static const char lua[] = "function process(f, x, y) end\nstateless = true\n";
    static const char part[] = "inputs: {x: {dtype: f32, shape: [any, n]}}\noutputs: [y]\nvars: {n: {type: integer, default: 8}}\n"
                               "buffers: {was: {carry: y, init: 0}, y: {like: x}}\nstages:\n  - {use: expr, in: [x, was], out: y, "
                               "expr: x + was * n}\n";
    enum { STATELESS = 17 };           /* bytes of the last line */
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    f->path = path, f->head = "";
    if (!strcmp(path, "stdin") || !strcmp(path, "stdout") || strstr(name, "fifo"))
        f->kind = GP_FILE_STREAM;
    else if (given.name && !strcmp(name, given.name))
        regular(a, f, given.data, given.n, (int64_t)given.n);
    else if (strstr(name, "missing") || !dot)
        f->error = strstr(name, "dir") ? 0 : ENOENT, f->kind = GP_FILE_DIR;
    else if (!strcmp(dot, ".npy"))
        numbers(a, f, name);
    else if (!strcmp(dot, ".png"))
        regular(a, f, png, sizeof png - 1, 200);
    else if (!strcmp(dot, ".lua"))
        regular(a, f, lua, sizeof lua - 1 - (strstr(name, "serial") ? STATELESS : 0), sizeof lua - 1);
    else if (!strcmp(dot, ".yaml"))
        regular(a, f, part, sizeof part - 1, sizeof part - 1);
    else
        regular(a, f, "1234", 4, 4800);
}

static void look(gp_arena *a, gp_probed *x)
{
    if (!x->glob) {
        look_at_file(a, &x->file, x->path);
        return;
    }
    const char *dot = strrchr(x->path, '.');
    const char **path = GP_NEW(a, const char *, 3);
    for (int i = 0; i < 3; i++)
        path[i] = gp_format(a, "file-%d%.20s", i, dot ? dot : ".raw");
    x->files = (gp_files){ strstr(x->path, "none") ? 0 : 3, path };
}

static const char *env(const void *arg, const char *name)
{
    return !strcmp(name, "HOME") ? "/home" : !strcmp(name, "EMPTY") ? "" : NULL;
}

int fuzz_ranks;

/* ---- compiling --------------------------------------------------------- */

static void passes(fuzz_forms *f, const char *text, size_t n, const char *const *set, int nset,
                   int ngpus, bool lenient, bool all)
{
    gp_arena *a = &f->arena;
    const gp_machine *m = fuzz_machine(ngpus);
    const gp_registry *r = fuzz_registry();
    gp_probe probe = { .arena = a, .look = look, .lenient = lenient };
    static const struct tm date = { .tm_year = 126, .tm_mon = 10, .tm_mday = 22 };
    gp_env e = { .get = env, .date = &date, .rank = fuzz_ranks / 2, .ranks = fuzz_ranks };
    gp_plan *plan;
    if (!(f->spec = gp_parse(a, text, n, "p.yaml", &f->errs)))
        return;
    if (gp_expand(a, f->spec, set, nset, r, &e, &probe, &f->errs) && (f->graph = gp_resolve(a, f->spec, r, &e, m, &probe, &f->errs)) && all
        && (plan = gp_lower(a, f->graph, m, &f->errs))
        && (plan = gp_schedule(a, plan, m, &f->errs)) && gp_verify(plan, m, &f->errs))
        f->plan = plan;
}

static void guarded(fuzz_forms *f, const char *text, size_t n, const char *const *set, int nset,
                    int ngpus, bool lenient, bool all)
{
    jmp_buf oom;
    memset(f, 0, sizeof *f);
    if (setjmp(oom)) {
        gp_fail(&f->errs, GP_E_RESOURCE, (gp_loc){ .file = "p.yaml" }, "out of memory");
        f->plan = NULL;
        return;
    }
    f->arena.oom = &oom;
    passes(f, text, n, set, nset, ngpus, lenient, all);
    f->arena.oom = NULL;
}

void fuzz_compile(fuzz_forms *f, const char *text, size_t n, const char *const *set, int nset, int ngpus, bool lenient)
{
    guarded(f, text, n, set, nset, ngpus, lenient, true);
    MUST((f->plan == NULL) == (f->errs.failed > 0));
    for (int i = 0; i < f->errs.n; i++) {
        const gp_err *e = &f->errs.e[i];
        MUST(e->msg[0] && e->code != GP_E_OK && e->code != GP_E_BUG && e->code != GP_E_RUN);
        MUST(e->at.line >= 0 && e->at.col >= 0);
        MUST(e->at.file || e->code == GP_E_NOTE);
    }
}

void fuzz_resolve(fuzz_forms *f, const char *text)
{
    guarded(f, text, strlen(text), NULL, 0, 0, false, false);
    if (!f->graph)
        fuzz_print_errs(&f->errs, text, strlen(text));
    MUST(f->graph != NULL);
}

void fuzz_forms_free(fuzz_forms *f)
{
    gp_arena_free(&f->arena);
}

struct told { const gp_errs *errs; const char *text; size_t n; };

static void print_errs(FILE *f, const void *arg)
{
    const struct told *t = arg;
    for (int i = 0; i < t->errs->n; i++)
        gp_err_print(f, &t->errs->e[i], "p.yaml", t->text, t->n, true);
}

void fuzz_print_errs(const gp_errs *errs, const char *text, size_t n)
{
    struct told t = { errs, text, n };
    size_t len;
    char *out = fuzz_text(print_errs, &t, &len);
    if (getenv("FUZZ_SHOW"))
        fputs(out, stderr);
    free(out);
}
