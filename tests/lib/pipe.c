/* pipe.c - see pipe.h. */
#include <ftw.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include "base/why.h"
#include "base/npy.h"
#include "pipe.h"

/* Those of this process and, of no matter here, of who forked it. */
typedef struct folder { char path[300]; pid_t of; struct folder *next; } folder;
static folder *folders;

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    return remove(path);
}

void pipe_dir_remove(const char *dir)
{
    folder **f = &folders, *gone;
    while ((*f)->path != dir)
        f = &(*f)->next;
    gone = *f, *f = gone->next;
    nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(gone);
}

static const folder *older;            /* than the test that runs */

static void remove_all(void)
{
    while (folders && folders != older && folders->of == getpid())
        pipe_dir_remove(folders->path);
}

void pipe_dirs_begin(void)
{
    older = folders;
}

void pipe_dirs_end(void)
{
    remove_all();
    older = NULL;
}

const char *pipe_dir(void)
{
    static bool at_exit;
    const char *tmp = getenv("TMPDIR");
    folder *f = malloc(sizeof *f);
    snprintf(f->path, sizeof f->path, "%s/gpipe-test-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(f->path))
        ck_abort_msg("no folder %s", f->path);
    f->of = getpid(), f->next = folders, folders = f;
    if (!at_exit)                      /* a process that is forked has it, too */
        atexit(remove_all);
    at_exit = true;
    return f->path;
}

void pipe_file(const char *dir, const char *name, const void *data, size_t bytes)
{
    char *path = format("%s/%s", dir, name);
    FILE *f = fopen(path, "wb");
    ck_assert_msg(f != NULL, "cannot write %s", path);
    ck_assert_uint_eq(fwrite(data, 1, bytes, f), bytes);
    fclose(f);
}

void pipe_text(const char *dir, const char *name, const char *text)
{
    pipe_file(dir, name, text, strlen(text));
}

char *pipe_read(const char *dir, const char *name, size_t *bytes)
{
    FILE *f = fopen(format("%s/%s", dir, name), "rb");
    if (!f)
        return NULL;
    fseek(f, 0, SEEK_END);
    *bytes = (size_t)ftell(f);
    rewind(f);
    char *data = malloc(*bytes + 1);
    ck_assert_uint_eq(fread(data, 1, *bytes, f), *bytes);
    data[*bytes] = 0;
    fclose(f);
    return data;
}

void *pipe_read_all(const char *dir, const char *name, size_t bytes)
{
    size_t n = 0;
    char *data = pipe_read(dir, name, &n);
    ck_assert_msg(data && n == bytes, "'%s' %s, and not %zu bytes", name, data ? format("has %zu", n) : "is not there", bytes);
    return data;
}

gp_type pipe_npy_type(const char *dir, const char *name)
{
    size_t n = 0, head = 0;
    gp_type t = { 0 };
    bool columns;
    char why[GP_WHY] = " is not there";
    OWNED char *file = pipe_read(dir, name, &n);
    ck_assert_msg(file && gp_npy_parse(file, n, &t, &head, &columns, why), "'%s'%s", name, why);
    ck_assert_msg(head + gp_bytes(&t) == n, "'%s' has %zu bytes, not %zu", name, n, head + gp_bytes(&t));
    return t;
}

void pipe_npy(const char *dir, const char *name, int64_t rows, int64_t cols, float (*value)(int64_t))
{
    gp_type t = { .dtype = GP_F32, .ndim = cols ? 2 : 1, .dim = { rows, cols } };
    size_t n = (size_t)gp_count(&t);
    OWNED char *data = malloc(GP_NPY_HEADER_MAX + 4 * n);
    size_t head = gp_npy_header(&t, data, GP_NPY_HEADER_MAX);
    for (size_t i = 0; i < n; i++) {
        float v = value ? value((int64_t)i) : 0;
        memcpy(data + head + 4 * i, &v, 4);
    }
    pipe_file(dir, name, data, head + 4 * n);
}

static gp_registry *registry;

void pipe_kinds(const gp_kind *more, size_t n)
{
    gp_errs errs = { .n = 0 };
    gp_registry_destroy(registry);
    registry = gp_registry_create();
    ck_assert_msg(registry && gp_register_builtin(registry, &errs), "%s", errs.n ? errs.e[0].msg : "no registry");
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(gp_register(registry, &more[i], &errs), "%s", errs.n ? errs.e[0].msg : "?");
}

const gp_registry *pipe_registry(void)
{
    if (!registry)
        pipe_kinds(NULL, 0);
    return registry;
}

static const char *environment(const void *arg, const char *name)
{
    return getenv(name);
}

/* Places point to `file`. */
static gp_pipeline *compile(char file[600], const char *dir, const char *yaml, gp_config c, gp_errs *errs)
{
    snprintf(file, 600, "%s/test.yaml", dir);
    c.registry = c.registry ? c.registry : pipe_registry(), c.env.get = environment;
    return gp_compile(yaml, strlen(yaml), file, &c, errs);
}

gp_pipeline *pipe_compile(const char *dir, const char *yaml, gp_config c, gp_errs *errs)
{
    static char file[600];
    return compile(file, dir, yaml, c, errs);
}

gp_pipeline *pipe_compiled(const char *dir, const char *yaml, gp_config c)
{
    gp_errs errs = { .n = 0 };
    gp_pipeline *p = pipe_compile(dir, yaml, c, &errs);
    ck_assert_msg(p != NULL, "%s\n%s", errs.n ? errs.e[0].msg : "?", yaml);
    return p;
}

char *pipe_edited(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    ck_assert_msg(at, "no '%s'", from);
    return format("%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

typedef struct strings { char file[600], device[64]; const char *set[32]; } strings;

/* Compiles for the device of this name; *s is there as long as the pipeline. */
static gp_pipeline *compile_for(const char *device, const char *dir, const char *yaml, const char *const *sets,
                                strings *s, gp_errs *errs)
{
    gp_machine machine;
    gp_config c = { .machine = &machine, .set = s->set };
    gp_machine_read(&machine, !strncmp(device, "cuda", 4));
    snprintf(s->device, sizeof s->device, "device=%s", device);
    s->set[c.nset++] = s->device;
    while (sets && *sets && c.nset < 32)
        s->set[c.nset++] = *sets++;
    return compile(s->file, dir, yaml, c, errs);
}

typedef struct during { void (*f)(gp_pipeline *, void *); gp_pipeline *p; void *arg; } during;

static void *run_during(void *arg)
{
    during *d = arg;
    d->f(d->p, d->arg);
    return NULL;
}

static pipe_result run(const char *dir, const char *yaml, const char *device,
                       const char *const *sets, gp_run_options options, void (*f)(gp_pipeline *p, void *arg),
                       void (*after)(gp_pipeline *p, void *arg), void *arg)
{
    pipe_result r = { .outcome = GP_ERROR };
    strings names;
    gp_pipeline *p = compile_for(device, dir, yaml, sets, &names, &r.errs);
    r.compiled = p != NULL;
    if (p) {
        pthread_t t;
        during d = { f, p, arg };
        if (f)
            pthread_create(&t, NULL, run_during, &d);
        r.outcome = gp_pipeline_run(p, &options, &r.errs);
        if (f)
            pthread_join(t, NULL);
        if (after && r.outcome != GP_STUCK)
            after(p, arg);
        r.naccounts = gp_accounts(p, r.account, PIPE_SOURCES);
        ck_assert_int_le(r.naccounts, PIPE_SOURCES);
        for (int i = 0; i < r.naccounts; i++)
            r.account[i].source = NULL;    /* lives in the pipeline, as places do */
        if (r.outcome != GP_STUCK)
            gp_pipeline_destroy(p);
    }
    for (int i = 0; i < r.errs.n; i++)
        r.errs.e[i].at.file = NULL;
    if (r.outcome == GP_STUCK)         /* a thread still calls the kinds */
        registry = NULL;
    return r;
}

pipe_result pipe_run_with(const char *dir, const char *yaml, const char *device,
                          const char *const *sets, gp_run_options options,
                          void (*f)(gp_pipeline *p, void *arg), void *arg)
{
    return run(dir, yaml, device, sets, options, f, NULL, arg);
}

pipe_result pipe_run_then(const char *dir, const char *yaml, const char *device,
                          const char *const *sets, gp_run_options options,
                          void (*after)(gp_pipeline *p, void *arg), void *arg)
{
    return run(dir, yaml, device, sets, options, NULL, after, arg);
}

pipe_result pipe_run(const char *dir, const char *yaml, const char *device,
                     const char *const *sets, gp_run_options options)
{
    return run(dir, yaml, device, sets, options, NULL, NULL, NULL);
}

const char *pipe_said(const gp_errs *errs)
{
    return errs->n ? errs->e[0].msg : "no error";
}

void pipe_no_errors(const pipe_result *r, const char *what)
{
    ck_assert_msg(!r->errs.failed, "%s: %s", what, r->errs.n ? r->errs.e[0].msg : "?");
}

void pipe_ends(const pipe_result *r, const char *says)
{
    const char *said = pipe_said(&r->errs);
    ck_assert_msg(says ? r->outcome == GP_ERROR && strstr(said, says) : r->outcome == GP_DONE && !r->errs.failed,
                  "outcome %d: %s, not '%s'", (int)r->outcome, said, says ? says : "");
}

pipe_result pipe_done(const char *dir, const char *yaml, const char *device,
                      const char *const *sets, gp_run_options options)
{
    pipe_result r = pipe_run(dir, yaml, device, sets, options);
    ck_assert_msg(r.outcome == GP_DONE && !r.errs.failed, "%s, with %s, of\n%s", pipe_said(&r.errs),
                  sets && *sets ? *sets : "no setting", yaml);
    return r;
}

/* ---- in parts -------------------------------------------------------- */

typedef struct pausing {
    gp_pipeline *p, *next;
    gp_pipeline *from;
    unsigned long long at;
    atomic_bool begun, ready, over;
    gp_run_options options;
    gp_errs errs;
} pausing;

void pipe_await_out(const gp_pipeline *p, uint64_t frames)
{
    for (gp_account a = { 0 }; gp_accounts(p, &a, 1) < 1 || a.out < frames; nap())         /* none: it is being set up */
        ;
}

unsigned long long pipe_frames_in(const gp_pipeline *p)
{
    gp_account a[8];
    unsigned long long sum = 0;
    int n = gp_accounts(p, a, 8);
    for (int i = 0; i < n; i++)
        sum += a[i].in;
    return sum;
}

/* A run is not over before the next plan is ready: it begins with its first frame then. */
static bool begin_when_ready(void *arg)
{
    pausing *w = arg;
    atomic_store(&w->begun, true);
    while (!atomic_load(&w->ready))
        sched_yield();
    return true;
}

static bool pause_when_due(void *arg)
{
    pausing *w = arg;
    atomic_store(&w->ready, true);
    while (!atomic_load(&w->over) && pipe_frames_in(w->p) < w->at)
        sched_yield();
    return !atomic_load(&w->over);
}

static void *retune(void *arg)
{
    pausing *w = arg;
    gp_run_options o = w->options;
    while (!atomic_load(&w->begun) && !atomic_load(&w->over)
           && (!w->from || gp_pipeline_is_paused(w->from)))
        sched_yield();
    o.pause = pause_when_due, o.pause_arg = w;
    if (!gp_pipeline_retune(w->next, w->p, &o, &w->errs) && w->errs.failed)
        gp_cancel(w->p, 1);            /* it may have no end */
    atomic_store(&w->ready, true);
    return NULL;
}

gp_outcome pipe_run_part(gp_pipeline *p, gp_pipeline *from, gp_pipeline *next, unsigned long long at, gp_run_options o,
                         gp_errs *errs)
{
    pausing w = { .p = p, .next = next, .from = from, .at = at, .options = o };
    pthread_t t;
    if (next) {
        o.begin = begin_when_ready, o.begin_arg = &w;
        pthread_create(&t, NULL, retune, &w);
    }
    gp_outcome outcome = from ? gp_pipeline_go_on(p, from, &o, errs) : gp_pipeline_run(p, &o, errs);
    atomic_store(&w.over, true);
    if (next)
        pthread_join(t, NULL);
    gp_errs_add(errs, &w.errs);
    return w.errs.failed ? GP_ERROR : outcome;
}

pipe_result pipe_run_paused(const char *dir, const char *yaml, const char *device, const char *const *const *sets,
                            const unsigned long long *at, int n, gp_run_options options, int *parts)
{
    enum { MOST = 16 };
    pipe_result r = { .outcome = GP_PAUSED };
    gp_pipeline *p[MOST] = { NULL };
    strings names[MOST];
    ck_assert_int_lt(n, MOST);
    r.compiled = (p[0] = compile_for(device, dir, yaml, sets[0], &names[0], &r.errs)) != NULL;
    for (*parts = 0; r.compiled && r.outcome == GP_PAUSED; ++*parts) {
        int i = *parts;
        if (i < n)
            r.compiled = (p[i + 1] = compile_for(device, dir, yaml, sets[i + 1], &names[i + 1], &r.errs)) != NULL;
        r.outcome = pipe_run_part(p[i], i ? p[i - 1] : NULL, p[i + 1], i < n ? at[i] : 0, options, &r.errs);
    }
    r.naccounts = r.compiled ? gp_accounts(p[*parts - 1], r.account, 8) : 0;
    for (int i = 0; i < r.naccounts; i++)
        r.account[i].source = NULL;
    for (int i = n; r.outcome != GP_STUCK && i >= 0; i--)
        gp_pipeline_destroy(p[i]);
    for (int i = 0; i < r.errs.n; i++)
        r.errs.e[i].at.file = NULL;
    if (r.outcome == GP_STUCK)
        registry = NULL;
    return r;
}
