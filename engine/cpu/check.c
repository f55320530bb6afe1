/* check.c - finds users' kernels that read or write beyond what they were given.
 *
 * Each piece of memory is copied for the launch, between two guard regions, whose addresses
 * fault: once so that it begins where the first ends, and once more, for a second launch, so that
 * it ends where the second begins. What the kernel's library keeps is restored in between. The rest
 * of the pages is filled with a pattern, which is checked afterwards. What the kernel may not write
 * is write-protected. A fault is caught; it tells which piece was left, by how much and where, and
 * the grid is abandoned.
 *
 * A kernel that moves vectors of 16 bytes cannot have a piece that ends anywhere: it ends up to
 * 15 bytes before what faults. A read of these is found by what the kernel writes: if that
 * depends on what is there, it was read. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include "cpu/kernel.h"
#include "device/cache.h"

/* As far as an `int` reaches as an index of 8 bytes; less where there are not so many addresses.
 * The second pattern is no number in any floating point type. */
static const size_t around_most = (size_t)16 << 30, around_least = 1 << 20;
enum { PATTERN = 0xcb, OTHER_PATTERN = 0xff, WIDEST = 16 };

typedef struct guarded {
    gp_span span;              /* where it is copied from, and back to */
    char *map, *room, *data;   /* all that is mapped; what of it can be touched; the copy */
    size_t map_bytes, room_bytes;
    int pattern;
} guarded;

struct gp_check {
    const gp_cpu_entry *kernel;
    const gp_source *source;
    const char *stage;
    uint64_t frame;
    gp_cpu_saved *kept;         /* as before the launch */
    size_t around;             /* of each copy, in bytes, on each side */
    int nspans;
    int *span;                 /* of each argument; -1: it points into none */
    size_t *offset;            /* ... and where in it */
    guarded *g;
};

/* What the thread that is in a kernel came to. */
typedef struct fault {
    gp_cpu_runner *runner;
    const char *address;
    const void *pc;
    enum { TOUCHES, READS, WRITES } how;
    bool hit, misaligned;
} fault;

/* Of each thread a fault *, see gp_kernel_at_fault for why it is no thread-local variable. */
static pthread_key_t watching;
static atomic_bool key_made;

static void make_key(void)
{
    atomic_store(&key_made, !pthread_key_create(&watching, NULL));
}

/* ---- faults -------------------------------------------------------------- */

static const int signals[] = { SIGSEGV, SIGBUS };
enum { NSIGNALS = sizeof signals / sizeof *signals };
static struct sigaction was[NSIGNALS];

#if defined(__x86_64__)
static void leave(fault *f, ucontext_t *u)
{
    greg_t *r = u->uc_mcontext.gregs;
    f->pc = (const void *)r[REG_RIP];
    enum { PAGE_FAULT = 14 };          /* any other tells neither how nor where */
    f->how = r[REG_TRAPNO] != PAGE_FAULT ? TOUCHES : r[REG_ERR] & 2 ? WRITES : READS;
    r[REG_RSP] = ((r[REG_RSP] - 1024) & ~(greg_t)15) - 8;      /* as after a call */
    r[REG_RDI] = (greg_t)f->runner;
    r[REG_RIP] = (greg_t)gp_cpu_abandon;
}
#elif defined(__aarch64__)
/* Whether it wrote is in bit 6 of ESR, where the kernel gives it. */
static void leave(fault *f, ucontext_t *u)
{
    mcontext_t *m = &u->uc_mcontext;
    f->pc = (const void *)m->pc;
    for (const unsigned char *p = m->__reserved, *end = p + sizeof m->__reserved; p + 16 <= end; ) {
        uint32_t head[2];
        uint64_t esr;
        memcpy(head, p, sizeof head);
        if (head[0] == 0x45535201) {
            memcpy(&esr, p + 8, sizeof esr);
            f->how = esr & 64 ? WRITES : READS;
        }
        if (!head[0] || head[1] < 16)
            break;
        p += head[1];
    }
    m->sp = (m->sp - 1024) & ~15ull;
    m->regs[0] = (uintptr_t)f->runner;
    m->pc = (uintptr_t)gp_cpu_abandon;
}
#endif

/* A fault of anything else is for whoever had the signal before. */
static void on_fault(int number, siginfo_t *info, void *context)
{
    fault *f = pthread_getspecific(watching);  /* the key was made before the handler was set */
    if (!f || gp_cpu_runner_overflows(f->runner, info->si_addr)) {
        for (int i = 0; i < NSIGNALS; i++)
            if (signals[i] == number)
                sigaction(number, &was[i], NULL);
        return;
    }
    pthread_setspecific(watching, NULL);
    f->hit = true;
    f->address = info->si_addr;
    f->misaligned = (number == SIGBUS && info->si_code == BUS_ADRALN)
        || (number == SIGSEGV && info->si_code == SI_KERNEL);
    leave(f, context);
}

static void catch_faults(void)
{
    struct sigaction a = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK };
    sigemptyset(&a.sa_mask);
    for (int i = 0; i < NSIGNALS; i++) {
        struct sigaction now;
        if (!sigaction(signals[i], NULL, &now)
            && !(now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_fault)) {
            was[i] = now;
            sigaction(signals[i], &a, NULL);
        }
    }
}

/* ---- memory --------------------------------------------------------------- */

static size_t up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

/* A way to run a grid: `low`: the copies begin at what faults, else they end there; `wide`: they
 * are aligned for vectors; with the other pattern around copy `other`, EACH of them or NONE. */
enum { NONE = -1, EACH = -2 };
typedef struct way { bool low, wide; int other; } way;

static bool guard(guarded *g, const way *w, size_t around)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    g->room_bytes = up(g->span.bytes, page) + page;
    g->map_bytes = g->room_bytes + 2 * around;
    g->map = mmap(NULL, g->map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (g->map == MAP_FAILED) {
        g->map = NULL;
        return false;
    }
    g->room = g->map + around;
    if (mprotect(g->room, g->room_bytes, PROT_READ | PROT_WRITE))
        return false;
    size_t at = w->low ? 0 : g->room_bytes - g->span.bytes;
    g->data = g->room + (w->wide ? at / WIDEST * WIDEST : at);
    memset(g->room, g->pattern, g->room_bytes);
    memcpy(g->data, g->span.data, g->span.bytes);
    return g->span.output || !mprotect(g->room, g->room_bytes, PROT_READ);
}

static void unguard(guarded *g)
{
    if (g->map)
        munmap(g->map, g->map_bytes);
    g->map = NULL;
}

/* ---- errors ----------------------------------------------------------------- */

static const char *unit(const guarded *g)
{
    return g->span.dtype ? "element" : "byte";
}

/* "out[-1]; 'out' has 64 elements", "byte 256 of frame; 'frame' has 256 bytes" */
static void name_place(const guarded *g, const char *address, char text[200])
{
    int64_t size = g->span.dtype ? (int64_t)gp_dtype_size(g->span.dtype) : 1;
    int64_t bytes = address - g->data, index = bytes / size - (bytes % size < 0);
    long long n = (long long)g->span.bytes / size;
    bool in = bytes >= 0 && bytes < (int64_t)g->span.bytes;
    int k = g->span.dtype ? snprintf(text, 200, "%.60s[%lld]", g->span.name, (long long)index)
                          : snprintf(text, 200, "byte %lld of %.60s", (long long)index, g->span.name);
    if (in)
        snprintf(text + k, 200 - (size_t)k, ", which is not an output");
    else
        snprintf(text + k, 200 - (size_t)k, "; '%.60s' has %lld %s%s", g->span.name, n, unit(g), n == 1 ? "" : "s");
}

static bool report(const gp_check *c, const char *verb, const char *place, const void *pc,
                   gp_errs *errs)
{
    char file[PATH_MAX];
    char in[PATH_MAX + 32] = "";
    gp_loc at = gp_source_at(c->source);
    int line;
    if (pc && gp_cpu_line(c->source, pc, file, &line)) {
        if (!strcmp(file, c->source->path))
            at = (gp_loc){ .file = c->source->path, .line = line };
        else                           /* a header's line */
            snprintf(in, sizeof in, " (%s:%d)", file, line);
    }
    return gp_fail(errs, GP_E_RUN, at, "kernel '%s' of stage '%s' %s %s, in frame %llu%s",
                   c->kernel->name, c->stage, verb, place, (unsigned long long)c->frame, in);
}

static bool report_fault(const gp_check *c, const fault *f, gp_errs *errs)
{
    static const char *const verbs[] = { "touches", "reads", "writes" };
    char place[200];
    for (int i = 0; i < c->nspans; i++) {
        const guarded *g = &c->g[i];
        if (g->map && f->address >= g->map && f->address < g->map + g->map_bytes) {
            name_place(g, f->address, place);
            return report(c, verbs[f->how], place, f->pc, errs);
        }
    }
    return report(c, verbs[f->how], "memory that is near none of its arguments", f->pc, errs);
}

/* What was written where nothing is. */
static bool check_patterns(const gp_check *c, gp_errs *errs)
{
    for (int i = 0; i < c->nspans; i++) {
        const guarded *g = &c->g[i];
        char place[200];
        if (!g->map || !g->span.output)
            continue;
        const char *end = g->data + g->span.bytes, *p = end;
        while (p < g->room + g->room_bytes && (unsigned char)*p == g->pattern)
            p++;
        if (p == g->room + g->room_bytes) {
            p = g->data;
            while (p > g->room && (unsigned char)p[-1] == g->pattern)
                p--;
            if (p == g->room)
                continue;
            p--;
        }
        name_place(g, p, place);
        return report(c, "writes", place, NULL, errs);
    }
    return true;
}

/* ---- a launch ------------------------------------------------------------------ */

gp_check *gp_check_create(const gp_rec *r, const gp_cpu_entry *k, const gp_source *source,
                          void *const *args)
{
    gp_check *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    *c = (gp_check){ .kernel = k, .source = source, .stage = r->stage, .frame = r->frame,
                     .around = around_most, .nspans = r->nspans,
                     .span = calloc((size_t)k->nargs + 1, sizeof *c->span),
                     .offset = calloc((size_t)k->nargs + 1, sizeof *c->offset),
                     .g = calloc((size_t)r->nspans + 1, sizeof *c->g) };
    if (!c->span || !c->offset || !c->g) {
        gp_check_destroy(c);
        return NULL;
    }
    for (int i = 0; i < r->nspans; i++)
        c->g[i].span = r->span[i];
    for (int a = 0; a < k->nargs; a++) {
        const char *p;
        c->span[a] = -1;
        if (k->arg_bytes[a] != sizeof p)
            continue;
        memcpy(&p, args[a], sizeof p);
        for (int i = 0; i < r->nspans; i++) {
            const gp_span *s = &r->span[i];
            if ((uintptr_t)p - (uintptr_t)s->data < s->bytes || p == s->data)
                c->span[a] = i, c->offset[a] = (size_t)(p - s->data);
        }
    }
    return c;
}

void gp_check_destroy(gp_check *c)
{
    if (!c)
        return;
    for (int i = 0; c->g && i < c->nspans; i++)
        unguard(&c->g[i]);
    free(c->span), free(c->offset), free(c->g), free(c);
}

static bool is_used(const gp_check *c, int span)
{
    for (int a = 0; a < c->kernel->nargs; a++)
        if (c->span[a] == span)
            return true;
    return false;
}

/* New copies, all with as much around them; less than the last time if need be. False: no memory. */
static bool guard_all(gp_check *c, const way *w)
{
    for (; c->around >= around_least; c->around /= 2) {
        bool ok = true;
        for (int i = 0; i < c->nspans; i++) {
            unguard(&c->g[i]);
            c->g[i].pattern = w->other == EACH || w->other == i ? OTHER_PATTERN : PATTERN;
            ok = ok && (!is_used(c, i) || guard(&c->g[i], w, up(c->around, (size_t)sysconf(_SC_PAGESIZE))));
        }
        if (ok)
            return true;
    }
    return false;
}

/* Runs the grid on new copies; false: no memory, or f->hit. */
static bool run(gp_check *c, fault *f, const way *w, gp_dim3 grid, gp_dim3 block, size_t shared, void **args)
{
    void **changed = calloc((size_t)c->kernel->nargs + 1, 2 * sizeof *changed);
    if (!changed || !guard_all(c, w)) {
        free(changed);
        return false;
    }
    for (int a = 0; a < c->kernel->nargs; a++) {
        void **copy = &changed[c->kernel->nargs + 1 + a];
        changed[a] = args[a];
        if (c->span[a] >= 0) {
            *copy = c->g[c->span[a]].data + c->offset[a];
            changed[a] = copy;
        }
    }
    gp_cpu_put_back(c->kept);
    pthread_setspecific(watching, f);
    bool ok = (c->source->cooperative ? gp_cpu_cooperative : gp_cpu_grid)
        (f->runner, c->kernel, grid, block, shared, changed);
    pthread_setspecific(watching, NULL);
    free(changed);
    return ok;
}

/* What came out of the last run. */
static gp_key outputs(const gp_check *c)
{
    gp_hash h;
    gp_hash_begin(&h);
    for (int i = 0; i < c->nspans; i++)
        if (c->g[i].map && c->g[i].span.output)
            gp_hash_add(&h, c->g[i].data, c->g[i].span.bytes);
    return gp_hash_end(&h);
}

/* Does the outcome depend on what is behind copy `other`? */
static bool reads_behind(gp_check *c, gp_cpu_runner *r, int other, const gp_key *before, gp_dim3 grid,
                         gp_dim3 block, size_t shared, void **args)
{
    fault f = { .runner = r };
    if (!run(c, &f, &(way){ .wide = true, .other = other }, grid, block, shared, args))
        return false;                  /* no memory: it has run with the same before */
    gp_key now = outputs(c);
    return memcmp(&now, before, sizeof now) != 0;
}

/* After a run with gaps behind the copies: were they read? (Who reads before a copy has faulted,
 * when it began at what faults.) A kernel that does not always make
 * the same of the same (it may ask for the time) is left alone. */
static bool check_gaps(gp_check *c, gp_cpu_runner *r, gp_dim3 grid, gp_dim3 block, size_t shared,
                       void **args, gp_errs *errs)
{
    gp_key before = outputs(c);
    char place[200];
    if (!reads_behind(c, r, EACH, &before, grid, block, shared, args)
        || reads_behind(c, r, NONE, &before, grid, block, shared, args))
        return true;
    for (int i = 0; i < c->nspans; i++) {
        const guarded *g = &c->g[i];
        if (!is_used(c, i) || !reads_behind(c, r, i, &before, grid, block, shared, args))
            continue;
        long long n = (long long)(g->span.bytes / (g->span.dtype ? gp_dtype_size(g->span.dtype) : 1));
        snprintf(place, sizeof place, "beyond the end of %.100s, which has %lld %s%s", g->span.name, n,
                 unit(g), n == 1 ? "" : "s");
        return report(c, "reads", place, NULL, errs);
    }
    return report(c, "reads", "beyond the end of more than one of its arguments", NULL, errs);
}

/* The launch with all memory in one of the two places. False after an error. */
static bool run_checked(gp_check *c, gp_cpu_runner *r, bool low, gp_dim3 grid, gp_dim3 block,
                        size_t shared, void **args, gp_errs *errs)
{
    fault f = { .runner = r };
    way w = { .low = low, .other = NONE };
    bool ok = run(c, &f, &w, grid, block, shared, args);
    if (f.hit && f.misaligned) {       /* it moves vectors */
        f = (fault){ .runner = r };
        w.wide = true;
        ok = run(c, &f, &w, grid, block, shared, args);
    }
    if (f.hit)
        return report_fault(c, &f, errs);
    if (!ok && gp_cpu_runner_trouble(r))
        return false;                  /* it is told as without a check */
    if (!ok)
        return gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory to check kernel '%s'",
                       c->kernel->name);
    gp_errs late = { .n = 0 };
    if (check_patterns(c, &late))
        return low || !w.wide || check_gaps(c, r, grid, block, shared, args, errs);
    f = (fault){ .runner = r };        /* from the other side it faults, which tells the line */
    run(c, &f, &(way){ .low = !low, .other = NONE }, grid, block, shared, args);
    if (f.hit && !f.misaligned)
        report_fault(c, &f, errs);
    else
        gp_errs_add(errs, &late);
    return false;
}

/* A kernel in a loop fails in each iteration. */
static void tell_once(gp_errs *to, const gp_errs *from)
{
    for (int i = 0; from->n && i < to->n; i++)
        if (!strcmp(to->e[i].msg, from->e[0].msg))
            return;
    gp_errs_add(to, from);
}

bool gp_check_grid(gp_check *c, gp_cpu_runner *r, gp_dim3 grid, gp_dim3 block, size_t shared,
                   void **args, gp_errs *errs)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_key);
    if (!atomic_load(&key_made))
        return gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "no thread-specific data for what finds faults of kernels");
    catch_faults();
    if (!(c->kept = gp_cpu_keep((const void *)(uintptr_t)c->kernel->threads)))
        return gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory to check kernel '%s'",
                       c->kernel->name);
    gp_errs found = { .n = 0 };
    bool ok = run_checked(c, r, true, grid, block, shared, args, &found)
        && run_checked(c, r, false, grid, block, shared, args, &found);
    tell_once(errs, &found);
    for (int i = 0; i < c->nspans; i++) {
        guarded *g = &c->g[i];
        if (ok && g->map && g->span.output)
            memcpy(g->span.data, g->data, g->span.bytes);
        unguard(g);
    }
    gp_cpu_keep_no_more(c->kept);
    c->kept = NULL;
    return ok;
}
