/* inject.c - makes every CUDA call of a run fail, one run a failure. Needs a GPU; a program of its own, as all calls go
 * through stubs; it never forks.
 *
 * Each pipeline runs once whole, and its calls are counted. Then, at each place that calls a function, the first, the
 * second and the last call fail once, with the function's own error (no memory, or an invalid value); and the device is
 * lost at random calls: from there on all fail. Whatever fails: no signal, no hang; a run that is done has written the
 * bytes of the whole one; one that is not says why, with a file that the user can edit, its account adds up, and no
 * file has a wrong byte. Each finding is printed with what repeats it.
 *
 * inject [SEED [LOSSES [CASE NAME:CALL:ERROR]]]; ERROR with NAME "all": from CALL on.
 *
 * The linker puts a stub before each function of the runtime that the back end calls (--wrap); functions of the driver,
 * NVRTC and CUPTI, which are looked up when they are needed, get theirs when they are found. A stub asks
 * inject_decide() and either returns its error or goes on to the function; it knows no prototypes. x86-64 only. */
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include "base/dl.h"
#include "pipe.h"

/* Functions that return a text, or nothing that can fail. */
static const char *const infallible[] = {
    "cudaGetErrorName", "cudaGetErrorString", "cudaGetLastError", "nvrtcGetErrorString", NULL,
};

/* What these give back would be missing in the runs that follow: they are called and return an error all the same. */
static const char *const made[] = { "cudaStreamEndCapture", "cuptiUnsubscribe", "cuptiActivityDisable", NULL };
enum { MADE = 1 << 30 };

enum { STUBS = 192, SITES = 2048 };

/* inject_calls.h has a line CALL(NUMBER, NAME) for each function of the runtime that the
 * library needs; the Makefile makes it. They have the first stubs. */
#define CALL(i, f) extern char __real_##f[];
#include "inject_calls.h"
#undef CALL
#define CALL(i, f) #f,
static const char *name[STUBS] = {
#include "inject_calls.h"
};
#undef CALL
#define CALL(i, f) __real_##f,
const void *inject_real[STUBS] = {
#include "inject_calls.h"
};
#undef CALL

extern char inject_stubs[];            /* STUBS of STUB_BYTES */
enum { STUB_BYTES = 16 };

__asm__(".text\n"
        ".balign 16\n"
        "inject_stubs:\n"
        ".set i, 0\n"
        ".rept 192\n"
        ".balign 16\n"
        "    movl $i, %eax\n"
        "    jmp inject_common\n"
        ".set i, i + 1\n"
        ".endr\n"
        "inject_common:\n"
        "    push %rbp\n"
        "    mov %rsp, %rbp\n"
        "    push %rdi\n    push %rsi\n    push %rdx\n    push %rcx\n    push %r8\n    push %r9\n"
        "    push %rax\n    sub $8, %rsp\n"
        "    mov %eax, %edi\n"
        "    mov 8(%rbp), %rsi\n"
        "    call inject_decide\n"
        "    add $8, %rsp\n"
        "    pop %r11\n"
        "    pop %r9\n    pop %r8\n    pop %rcx\n    pop %rdx\n    pop %rsi\n    pop %rdi\n"
        "    pop %rbp\n"
        "    cmp $-1, %eax\n"
        "    je 1f\n"
        "    btr $30, %eax\n"             /* MADE: none of these has arguments on the stack */
        "    jnc 2f\n"
        "    push %rax\n"
        "    lea inject_real(%rip), %rax\n"
        "    call *(%rax,%r11,8)\n"
        "    pop %rax\n"
        "2:  ret\n"
        "1:  lea inject_real(%rip), %rax\n"
        "    jmp *(%rax,%r11,8)\n");

/* __wrap_NAME is the stub of NAME. */
#define CALL(i, f) \
    __asm__(".globl __wrap_" #f "\n.set __wrap_" #f ", inject_stubs + 16 * " #i "\n");
#include "inject_calls.h"
#undef CALL

/* A place that calls a stub. */
static struct site { int stub; const void *from; unsigned first, second, last; } site[SITES];
static int nsites, nstubs;
static atomic_uint calls[STUBS], all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool counting;

/* What fails: call `call` of stub `stub`; or, with LOST, all from the `call`-th on. */
enum { NOTHING = -2, LOST = -1 };
static struct fault { int stub; unsigned call; int error; } fault = { .stub = NOTHING };

static void count(int stub, const void *from, unsigned k)
{
    int i = 0;
    pthread_mutex_lock(&lock);
    while (i < nsites && (site[i].stub != stub || site[i].from != from))
        i++;
    if (i == nsites && nsites < SITES)
        site[nsites++] = (struct site){ stub, from, k, 0, k };
    if (i < nsites) {
        if (!site[i].second && site[i].first != k)
            site[i].second = k;
        site[i].last = k;
    }
    pthread_mutex_unlock(&lock);
}

static bool is_one_of(int stub, const char *const *list)
{
    while (*list && strcmp(*list, name[stub]))
        list++;
    return *list;
}

int inject_decide(int stub, const void *from);

/* -1: the call is made; else what it returns. */
int inject_decide(int stub, const void *from)
{
    if (is_one_of(stub, infallible))
        return -1;
    unsigned k = atomic_fetch_add(&calls[stub], 1) + 1, n = atomic_fetch_add(&all, 1) + 1;
    if (counting)
        count(stub, from, k);
    return (fault.stub == LOST && n >= fault.call) || (fault.stub == stub && k == fault.call)
        ? fault.error | (is_one_of(stub, made) ? MADE : 0) : -1;
}

/* A stub before what `to` points to, a function that was looked up as `what`. */
static void put_stub(const char *what, void *to)
{
    int i = 0;
    pthread_mutex_lock(&lock);
    while (i < nstubs && strcmp(name[i], what))
        i++;
    if (i == STUBS)
        abort();
    name[i] = what;
    memcpy(&inject_real[i], to, sizeof inject_real[i]);
    nstubs += i == nstubs;
    pthread_mutex_unlock(&lock);
    char *stub = inject_stubs + STUB_BYTES * i;
    memcpy(to, &stub, sizeof stub);
}

static cudaError_t (*find_driver)(const char *, void **, unsigned, unsigned long long,
                                  enum cudaDriverEntryPointQueryResult *);

static cudaError_t find_driver_and_put_stub(const char *what, void **to, unsigned version, unsigned long long flags,
                                            enum cudaDriverEntryPointQueryResult *found)
{
    cudaError_t e = find_driver(what, to, version, flags, found);
    if (e == cudaSuccess && *to)
        put_stub(what, to);
    return e;
}

bool __real_gp_dl_open(const char *const *, const gp_dl_symbol *, const char *, const char *, gp_loc, gp_errs *);
bool __wrap_gp_dl_open(const char *const *, const gp_dl_symbol *, const char *, const char *, gp_loc, gp_errs *);

bool __wrap_gp_dl_open(const char *const *library, const gp_dl_symbol *symbol, const char *what,
                       const char *advice, gp_loc at, gp_errs *errs)
{
    if (!__real_gp_dl_open(library, symbol, what, advice, at, errs))
        return false;
    bool cuda = strstr(library[0], "nvrtc") || strstr(library[0], "cupti");
    for (; cuda && symbol->name; symbol++)
        put_stub(symbol->name, symbol->to);
    return true;
}

static void put_stubs(void)
{
    __typeof__(find_driver) finder = find_driver_and_put_stub;
    for (; name[nstubs]; nstubs++)
        if (!strcmp(name[nstubs], "cudaGetDriverEntryPointByVersion")) {
            memcpy(&find_driver, &inject_real[nstubs], sizeof find_driver);
            memcpy(&inject_real[nstubs], &finder, sizeof finder);
        }
}

/* ---- pipelines ------------------------------------------------------- */

enum { FRAMES = 30, ROWS = 16, COLS = 64, LAST_ROWS = 11 };

#define HEAD                                                                 \
    "depth: 4\nstreams: 2\nstall_timeout: 20s\n"                             \
    "buffers: {a: {dtype: f32, shape: [16, 64]}}\n"                          \
    "stages:\n"                                                              \
    "  - {use: read, path: in.raw, out: a}\n"                                \
    "  - {use: scale, a: 2, out: s}\n"
#define KERNEL(more)                                                         \
    "  - {use: kernel, source: twice.cu, args: [in, out, {i32: in.size}],\n" \
    "     block: 256, grid: 'ceil(in.size / 256)'" more "}\n"
#define TWICE KERNEL("")
#define WRITE "  - {use: write, path: out/all.raw}\n"

static const struct test {
    const char *name, *yaml;
    const char *only;          /* functions whose names begin so; NULL: all */
    bool fresh;                /* kernels are compiled in each run */
    gp_run_options options;
} test[] = {
    { "graph", "batch: auto\n" HEAD "  - {use: fir, taps: [1, 2, 3]}\n  - {use: blur, sigma: 1}\n"
      WRITE, NULL, false, { .timed = true } },
    { "stream", "launch: stream\non_error: drop\n" HEAD "  - {use: lua, script: drop.lua}\n" TWICE
      "  - {use: write, path: out/%05d.raw}\n", NULL, false, { .stamped = true } },
    { "compiled", HEAD TWICE WRITE, "nvrtc", true, { 0 } },
    { "persistent", "launch: persistent\n" HEAD TWICE WRITE, NULL, false, { 0 } },
    { "persistent, compiled", "launch: persistent\n" HEAD TWICE WRITE, "nvrtc", true, { 0 } },
    { "cooperative", "launch: stream\n" HEAD KERNEL(", cooperative: true") WRITE, NULL, false, { 0 } },
    { "priorities, managed", "depth: 4\nstreams: 2\nstall_timeout: 20s\n"
      "buffers: {a: {dtype: f32, shape: [16, 64]}, t: {const: t.npy, memory: managed}}\nstages:\n"
      "  - {use: read, path: in.raw, out: a}\n  - {use: scale, a: 2, out: s, priority: low}\n"
      "  - {use: expr, in: [s, t], expr: s + t}\n" KERNEL(", priority: high") WRITE, NULL, false, { 0 } },
    { "traced", HEAD "  - {use: sobel}\n" WRITE, NULL, false, { .trace_ns = 1000000000, .trace_full = true } },
};
enum { TESTS = sizeof test / sizeof *test };

static float table_at(int64_t i)
{
    return (float)i;
}

static void prepare(const char *dir)
{
    static float x[FRAMES * ROWS * COLS];
    for (int i = 0; i < FRAMES * ROWS * COLS; i++)
        x[i] = (float)(i * 7 % 251);
    pipe_file(dir, "in.raw", x, sizeof x - sizeof *x * (ROWS - LAST_ROWS) * COLS);
    pipe_npy(dir, "t.npy", COLS, 0, table_at);
    pipe_text(dir, "drop.lua", "function process(f, x, y)\n"
              "  if f.index % 7 == 3 then return 'drop' end\n  y:copy(x)\nend\n");
    pipe_text(dir, "twice.cu", "extern \"C\" __global__ void twice(const float *in, float *out, int n)\n{\n"
              "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
              "    if (i < n)\n        out[i] = 2 * in[i];\n}\n");
}

/* The files of out/ and their bytes. */
struct files { char name[FRAMES + 1][32]; char *data[FRAMES + 1]; size_t bytes[FRAMES + 1]; int n; };

static struct files outputs(const char *dir)
{
    struct files f = { .n = 0 };
    for (int i = -1; i < FRAMES; i++) {
        char path[40];
        snprintf(f.name[f.n], sizeof *f.name, i < 0 ? "all.raw" : "%05d.raw", i);
        snprintf(path, sizeof path, "out/%s", f.name[f.n]);
        f.n += (f.data[f.n] = pipe_read(dir, path, &f.bytes[f.n])) != NULL;
    }
    return f;
}

static void free_files(struct files *f)
{
    for (int i = 0; i < f->n; i++)
        free(f->data[i]);
}

static bool same(const struct files *f, int i, const struct files *whole, bool part)
{
    for (int k = 0; k < whole->n; k++)
        if (!strcmp(f->name[i], whole->name[k]))
            return f->bytes[i] <= whole->bytes[k] && (part || f->bytes[i] == whole->bytes[k])
                && !memcmp(f->data[i], whole->data[k], f->bytes[i]);
    return false;
}

static const char *environment(const void *arg, const char *what)
{
    return getenv(what);
}

/* ---- a run ----------------------------------------------------------- */

static bool have_gpu;

struct result { gp_outcome outcome; struct files files; char wrong[300]; };

/* Runs it; `whole`: what it would write if nothing failed, or NULL. */
static struct result run(const struct test *t, const char *cache, const struct files *whole)
{
    struct result r = { .outcome = GP_ERROR };
    gp_errs errs = { .n = 0 };
    gp_account account = { 0 };
    gp_machine machine;
    char file[400], fresh[400];
    const char *dir = pipe_dir(), *set = have_gpu ? "device=cuda" : "device=cpu";
    gp_registry *reg = gp_registry_create();
    gp_config c = { .registry = reg, .machine = &machine, .env = { environment, NULL },
                    .set = &set, .nset = 1 };
    prepare(dir);
    snprintf(file, sizeof file, "%s/test.yaml", dir);
    snprintf(fresh, sizeof fresh, "%s/cache", dir);
    setenv("XDG_CACHE_HOME", t->fresh ? fresh : cache, 1);
    if (!gp_register_builtin(reg, &errs))
        abort();
    for (int i = 0; i < STUBS; i++)
        atomic_store(&calls[i], 0);
    atomic_store(&all, 0);
    alarm(120);
    gp_machine_read(&machine, true);
    gp_pipeline *p = gp_compile(t->yaml, strlen(t->yaml), file, &c, &errs);
    if (p) {
        r.outcome = gp_pipeline_run(p, &t->options, &errs);
        gp_accounts(p, &account, 1);
    }
    alarm(0);
    r.files = outputs(dir);
    if (r.outcome != GP_DONE && r.outcome != GP_ERROR)
        snprintf(r.wrong, sizeof r.wrong, "outcome %d", r.outcome);
    if (account.in != account.out + account.dropped + account.failed + account.cancelled)
        snprintf(r.wrong, sizeof r.wrong, "the account does not add up");
    if (r.outcome == GP_ERROR && (!errs.failed || !errs.e[0].at.file))
        snprintf(r.wrong, sizeof r.wrong, "no error with a place");
    if (r.outcome == GP_ERROR && fault.error == cudaErrorMemoryAllocation && errs.e[0].code != GP_E_RESOURCE)
        snprintf(r.wrong, sizeof r.wrong, "is not an error of resources");
    int failed = strstr(t->yaml, "on_error: drop") ? (int)account.failed : 0;
    if (whole && r.outcome == GP_DONE && r.files.n != whole->n - failed)
        snprintf(r.wrong, sizeof r.wrong, "done, with %d files of %d", r.files.n, whole->n);
    for (int i = 0; whole && i < r.files.n; i++)
        if (!same(&r.files, i, whole, r.outcome == GP_ERROR && !strcmp(r.files.name[i], "all.raw")))
            snprintf(r.wrong, sizeof r.wrong, "wrong bytes in %s", r.files.name[i]);
    for (int i = 0; (*r.wrong || getenv("INJECT_SHOW")) && i < errs.n; i++)
        printf("  %s:%d: %s\n", errs.e[i].at.file ? errs.e[i].at.file : "?", errs.e[i].at.line, errs.e[i].msg);
    if (r.outcome != GP_STUCK) {
        gp_pipeline_destroy(p);
        gp_registry_destroy(reg);
    }
    pipe_dir_remove(dir);
    return r;
}

/* ---- all of them ----------------------------------------------------- */

static char now[200];          /* what fails, for a signal's handler */
static int tries, findings;

static void on_signal(int sig)
{
    static const char what[] = "inject: a signal, or two minutes without an end, at ";
    ssize_t n = write(STDOUT_FILENO, what, sizeof what - 1) + write(STDOUT_FILENO, now, strlen(now));
    _exit(n > 0 ? 128 + sig : 2);
}

static void try(const struct test *t, const char *cache, const struct files *whole, struct fault f)
{
    snprintf(now, sizeof now, "\"%s\" %s:%u:%d\n", t->name, f.stub == LOST ? "all" : name[f.stub], f.call, f.error);
    fault = f;
    struct result r = run(t, cache, whole);
    fault.stub = NOTHING;
    tries++;
    if (*r.wrong) {
        findings++;
        printf("inject: %s: %s", r.wrong, now);
        fflush(stdout);
    }
    free_files(&r.files);
    if (r.outcome == GP_STUCK) {
        printf("inject: a thread does not return; no more is tried\n");
        exit(1);
    }
}

static int error_of(int stub)
{
    return strcmp(name[stub], "cudaMalloc") && strcmp(name[stub], "cudaHostAlloc")
        ? cudaErrorInvalidValue : cudaErrorMemoryAllocation;
}

static void try_all(const struct test *t, const char *cache, int losses)
{
    struct result r = run(t, cache, NULL);     /* fills the cache */
    free_files(&r.files);
    nsites = 0;
    counting = true;
    r = run(t, cache, NULL);
    counting = false;
    unsigned n = atomic_load(&all);
    int before = tries;
    if (r.outcome != GP_DONE || *r.wrong) {
        printf("inject: %s: fails without a fault: %s\n", t->name, r.wrong);
        findings++;
        return;
    }
    for (int i = 0; have_gpu && i < nsites; i++) {
        const struct site *s = &site[i];
        if (t->only && strncmp(name[s->stub], t->only, strlen(t->only)))
            continue;
        try(t, cache, &r.files, (struct fault){ s->stub, s->first, error_of(s->stub) });
        if (s->second)
            try(t, cache, &r.files, (struct fault){ s->stub, s->second, error_of(s->stub) });
        if (s->last > s->second)
            try(t, cache, &r.files, (struct fault){ s->stub, s->last, error_of(s->stub) });
    }
    for (int i = 0; !t->only && i < losses; i++)
        try(t, cache, &r.files, (struct fault){ LOST, 1 + (unsigned)rand() % n, cudaErrorLaunchFailure });
    struct result after = run(t, cache, &r.files);
    if (after.outcome != GP_DONE || *after.wrong) {
        printf("inject: %s: fails afterwards: %s\n", t->name, after.wrong);
        findings++;
    }
    printf("inject: %s: %u calls from %d places, %d tries\n", t->name, n, nsites, tries - before);
    fflush(stdout);
    free_files(&r.files);
    free_files(&after.files);
}

/* As it was printed. */
static void try_one(const char *which, const char *what, const char *cache)
{
    char function[64];
    struct fault f = { .stub = LOST };
    int t = 0, i = 0;
    while (t < TESTS && strcmp(test[t].name, which))
        t++;
    if (t == TESTS || sscanf(what, "%63[^:]:%u:%d", function, &f.call, &f.error) != 3) {
        printf("inject: no such fault\n");
        exit(2);
    }
    struct result r = run(&test[t], cache, NULL);      /* and all stubs are there */
    while (i < nstubs && strcmp(name[i], function))
        i++;
    if (i < nstubs)
        f.stub = i;
    setenv("INJECT_SHOW", "1", 1);
    try(&test[t], cache, &r.files, f);
}

static char **argument;
static int nargument;

START_TEST(every_call_fails)
{
    const char *cache = pipe_dir();
    if (nargument > 4)
        try_one(argument[3], argument[4], cache);
    for (int i = 0; i < TESTS && nargument <= 4; i++)
        try_all(&test[i], cache, !have_gpu ? 0 : nargument > 2 ? atoi(argument[2]) : 40);
    pipe_dir_remove(cache);
    ck_assert_int_eq(findings, 0);
}
END_TEST

int main(int argc, char **argv)
{
    unsigned seed = argc > 1 ? (unsigned)atoi(argv[1]) : (unsigned)time(NULL);
    gp_machine m;
    gp_machine_read(&m, true);
    have_gpu = m.ndevices > 0;
    put_stubs();
    for (const int *s = (const int[]){ SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGALRM, 0 }; *s; s++)
        signal(*s, on_signal);
    srand(seed);
    argument = argv, nargument = argc;
    Suite *suite = suite_create("inject");
    TCase *tc = tcase_create(have_gpu ? "cuda" : "cpu");
    SRunner *r = srunner_create(suite);
    tcase_add_test(tc, every_call_fails);
    suite_add_tcase(suite, tc);
    srunner_set_fork_status(r, CK_NOFORK);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    if (!have_gpu)
        printf("**** SKIPPED: no usable GPU: %s ****\n**** no call of CUDA was made to fail ****\n", m.why);
    printf("inject: %d tries, %d findings (seed %u)\n", tries, findings, seed);
    return failed != 0;
}
