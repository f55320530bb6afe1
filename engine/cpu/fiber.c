/* fiber.c - runs grids of CPU kernels on one OS thread; see kernels/cpu.h.
 *
 * A block runs on fibers: stacks that this file switches between. The first fiber runs
 * thread after thread. When a thread waits at a barrier, its fiber is parked there
 * and the next fiber goes on with the next thread. When all threads were started,
 * the fibers that wait form a circle, in the order of their threads, and each
 * barrier is one round of it. A kernel without barriers runs on one fiber and never
 * switches; a barrier costs one switch per thread. A warp function is a barrier of its own for the threads in its
 * mask; the last of them to come makes what each of them gets.
 *
 * The blocks of a cooperative grid take turns on the one OS thread: each goes on to its next
 * barrier of the grid, where what is its own, the thread-local memory of the kernel's library
 * and dynamic shared memory, is kept until its next turn. The room for that stays with the
 * runner, as the fibers do: a grid no larger than one before it allocates nothing.
 *
 * The invariant: between two grids every fiber is parked in fiber_main(). */
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "cpu/kernel.h"
#include "cpu/fiber.h"

#if defined(__SANITIZE_ADDRESS__)
#define ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TSAN 1
#endif
#endif
#ifdef ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef TSAN
#include <sanitizer/tsan_interface.h>
#endif

/* Address space, not memory: pages are taken when they are touched. Compilers touch a
 * large frame at steps of at most GUARD bytes (cc.c), so none reaches over a guard. */
enum {
    GUARD = 64 * 1024, STACK = GP_CPU_LOCAL + 64 * 1024, SHARED_ALIGN = 64, THREADS = 1024,
};

struct fiber {
    void *sp;                      /* while it does not run */
    struct fiber *next, *prev;     /* the circle */
    gp_cpu_runner *runner;
    char *map;                     /* GUARD bytes that fault, then the stack */
    const void *stack;             /* the two as ASan wants them */
    size_t stack_bytes;
    void *fake_stack, *tsan;
    unsigned thread;               /* its rank in the block, once it has waited */
    bool waited;
    /* at a warp function */
    unsigned from;
    gp_cpu_vote vote;
    gp_cpu_bits given, got;
    bool answered;
};

/* Of the fibers of a block: how many there are, and wait at its barrier, which has let go so many times. */
struct circle { unsigned size, waiting, released; };

/* A block of a cooperative grid between its turns. */
struct parked {
    struct gp_cpu_block block;
    struct fiber *at;              /* what goes on; NULL: it has ended, or has not begun */
    struct circle circle;
};

struct gp_cpu_runner {
    struct gp_cpu_block block;     /* first: wait_here() gets its address */
    const gp_cpu_entry *kernel;
    void *const *args;
    struct fiber host;             /* the thread that called gp_cpu_grid() */
    struct fiber *now, *before;    /* what runs, what ran before the last switch */
    struct circle circle;
    uint64_t moved;                /* how often a thread has begun, gone on or ended */
    struct fiber *lane[THREADS];   /* by thread: those at a warp function, and with which mask; 0: at none */
    unsigned mask[THREADS];
    const char *trouble;
    struct fiber **fiber;
    int nfibers, used, room;       /* made; taken by this block, or cooperative grid */
    struct fiber *at_grid;         /* waits for the other blocks; NULL: none does */
    struct parked *parked;         /* of cooperative grids, by block */
    size_t nparked;
    char *kept;                    /* of each that is parked: thread-local, then shared memory */
    size_t kept_bytes;
    bool failed;                   /* no memory for a fiber, or given up */
    size_t shared_bytes;
};

/* ---- the switch ------------------------------------------------------ */

/* Saves what the ABI says a call preserves, with the stack pointer in *save, and
 * goes on where `to` was saved. A new fiber starts in gp_fiber_start, which calls
 * the function in its second saved register with the first as the argument. */
void gp_fiber_swap(void **save, void *to);
void gp_fiber_start(void);

#if defined(__x86_64__)
enum { SAVED = 7, SAVED_ARG = 3, SAVED_CALL = 2, SAVED_PC = 6 };   /* words */
__asm__(".pushsection .text\n.balign 16\n"
        ".globl gp_fiber_swap\n.hidden gp_fiber_swap\n.type gp_fiber_swap, @function\n"
        "gp_fiber_swap:\n"
        "    push %rbp\n    push %rbx\n    push %r12\n    push %r13\n    push %r14\n    push %r15\n"
        "    mov %rsp, (%rdi)\n"
        "    mov %rsi, %rsp\n"
        "    pop %r15\n    pop %r14\n    pop %r13\n    pop %r12\n    pop %rbx\n    pop %rbp\n"
        "    ret\n"
        ".size gp_fiber_swap, . - gp_fiber_swap\n"
        ".globl gp_fiber_start\n.hidden gp_fiber_start\n.type gp_fiber_start, @function\n"
        "gp_fiber_start:\n"
        "    .cfi_startproc\n    .cfi_undefined rip\n"
        "    mov %r12, %rdi\n    call *%r13\n    ud2\n"
        "    .cfi_endproc\n"
        ".size gp_fiber_start, . - gp_fiber_start\n"
        ".popsection\n");
#elif defined(__aarch64__)
enum { SAVED = 20, SAVED_ARG = 0, SAVED_CALL = 1, SAVED_PC = 11 };
__asm__(".pushsection .text\n.balign 16\n"
        ".globl gp_fiber_swap\n.hidden gp_fiber_swap\n.type gp_fiber_swap, %function\n"
        "gp_fiber_swap:\n"
        "    sub sp, sp, #160\n"
        "    stp x19, x20, [sp]\n    stp x21, x22, [sp, #16]\n    stp x23, x24, [sp, #32]\n"
        "    stp x25, x26, [sp, #48]\n    stp x27, x28, [sp, #64]\n    stp x29, x30, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n    stp d10, d11, [sp, #112]\n"
        "    stp d12, d13, [sp, #128]\n    stp d14, d15, [sp, #144]\n"
        "    mov x9, sp\n    str x9, [x0]\n"
        "    mov sp, x1\n"
        "    ldp x19, x20, [sp]\n    ldp x21, x22, [sp, #16]\n    ldp x23, x24, [sp, #32]\n"
        "    ldp x25, x26, [sp, #48]\n    ldp x27, x28, [sp, #64]\n    ldp x29, x30, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n    ldp d10, d11, [sp, #112]\n"
        "    ldp d12, d13, [sp, #128]\n    ldp d14, d15, [sp, #144]\n"
        "    add sp, sp, #160\n"
        "    ret\n"
        ".size gp_fiber_swap, . - gp_fiber_swap\n"
        ".globl gp_fiber_start\n.hidden gp_fiber_start\n.type gp_fiber_start, %function\n"
        "gp_fiber_start:\n"
        "    .cfi_startproc\n    .cfi_undefined x30\n"
        "    mov x0, x19\n    blr x20\n    brk #1\n"
        "    .cfi_endproc\n"
        ".size gp_fiber_start, . - gp_fiber_start\n"
        ".popsection\n");
#else
#error "fiber.c has no switch for this processor: write gp_fiber_swap for it"
#endif

/* After a switch: tells the sanitizers which stack this is. */
static void arrived(gp_cpu_runner *r)
{
#ifdef ASAN
    __sanitizer_finish_switch_fiber(r->now->fake_stack, &r->before->stack,
                                    &r->before->stack_bytes);
#endif
}

static void switch_to(gp_cpu_runner *r, struct fiber *to)
{
    struct fiber *from = r->now;
    r->before = from;
    r->now = to;
#ifdef ASAN
    __sanitizer_start_switch_fiber(&from->fake_stack, to->stack, to->stack_bytes);
#endif
#ifdef TSAN
    __tsan_switch_to_fiber(to->tsan, 0);
#endif
    gp_fiber_swap(&from->sp, to->sp);
    arrived(r);
}

/* ---- fibers ---------------------------------------------------------- */

/* The barrier lets all go on when all that have not ended are there. */
static void release_if_all_wait(gp_cpu_runner *r)
{
    if (r->circle.waiting == r->circle.size && r->block.next.z == r->block.dim.z)
        r->circle.waiting = 0, r->circle.released++, r->moved++;
}

static void fiber_main(struct fiber *f)
{
    gp_cpu_runner *r = f->runner;
    arrived(r);
    for (;;) {
        do {
            r->kernel->threads(&r->block, r->args);
            f->waited = false;
            r->moved++;
        } while (r->block.next.z < r->block.dim.z && !r->failed);
        struct fiber *to = f->next == f ? &r->host : f->next;
        f->prev->next = f->next;
        f->next->prev = f->prev;
        r->circle.size--;
        release_if_all_wait(r);
        switch_to(r, to);
    }
}

static struct fiber *fiber_create(gp_cpu_runner *r)
{
    struct fiber *f = calloc(1, sizeof *f);
    if (!f)
        return NULL;
    f->map = mmap(NULL, GUARD + STACK, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (f->map == MAP_FAILED || mprotect(f->map, GUARD, PROT_NONE)) {
        if (f->map != MAP_FAILED)
            munmap(f->map, GUARD + STACK);
        free(f);
        return NULL;
    }
    f->runner = r;
    f->stack = f->map + GUARD;
    f->stack_bytes = STACK;
    /* Tops at different offsets, or all would share a few sets of the caches.
     * After the last pop and ret, sp is aligned to 16. */
    size_t shift = (size_t)(r->nfibers % 64) * 192;
    void **sp = (void **)(void *)(f->map + GUARD + STACK - shift) - 2 - SAVED;
    void (*call)(struct fiber *) = fiber_main;
    void (*start)(void) = gp_fiber_start;
    sp[SAVED_ARG] = f;
    memcpy(&sp[SAVED_CALL], &call, sizeof call);
    memcpy(&sp[SAVED_PC], &start, sizeof start);
    f->sp = sp;
#ifdef TSAN
    f->tsan = __tsan_create_fiber(0);
#endif
    return f;
}

static void fiber_destroy(struct fiber *f)
{
#ifdef TSAN
    __tsan_destroy_fiber(f->tsan);
#endif
    munmap(f->map, GUARD + STACK);
    free(f);
}

/* The next unused fiber of this block; NULL without memory. */
static struct fiber *take(gp_cpu_runner *r)
{
    if (r->used == r->nfibers) {
        struct fiber *f = GP_ROOM(r->fiber, r->nfibers, r->room) ? fiber_create(r) : NULL;
        if (!f)
            return NULL;
        r->fiber[r->nfibers++] = f;
    }
    return r->fiber[r->used++];
}

static void drop_fibers(gp_cpu_runner *r)
{
    while (r->nfibers)
        fiber_destroy(r->fiber[--r->nfibers]);
}

static void give_up(gp_cpu_runner *r)
{
    r->failed = true;
    switch_to(r, &r->host);
}

/* Lets a thread begin, or else the next fiber of the circle go on, until this one's turn comes again. */
static void pass_on(gp_cpu_runner *r)
{
    struct gp_cpu_block *b = &r->block;
    struct fiber *f = r->now, *to = f->next;
    if (b->next.z < b->dim.z) {    /* f is the last of the circle */
        struct fiber *n = take(r);
        if (!n) {
            give_up(r);
            return;
        }
        n->next = to, n->prev = f;
        to->prev = f->next = n;
        to = n;
        r->circle.size++, r->moved++;
    }
    if (to != f)
        switch_to(r, to);
}

/* When a thread waits for the first time, the one behind it is the next to begin. */
static void note_thread(gp_cpu_runner *r, struct fiber *f)
{
    const struct gp_cpu_block *b = &r->block;
    if (!f->waited)
        f->thread = (b->next.z * b->dim.y + b->next.y) * b->dim.x + b->next.x - 1;
    f->waited = true;
}

/* gp_cpu_block.wait */
static void wait_here(struct gp_cpu_block *b)
{
    gp_cpu_runner *r = (gp_cpu_runner *)b;
    unsigned released = r->circle.released;
    note_thread(r, r->now);
    r->circle.waiting++;
    release_if_all_wait(r);
    do
        pass_on(r);
    while (r->circle.released == released);
}

/* ---- warps ------------------------------------------------------------ */

/* The lanes of the warp whose threads have not ended; all have begun. */
static unsigned lanes_left(const gp_cpu_runner *r, unsigned first)
{
    unsigned lanes = 0;
    const struct fiber *f = r->now;
    do
        lanes |= f->thread - first < 32 ? 1u << (f->thread - first) : 0;
    while ((f = f->next) != r->now);
    return lanes;
}

/* The lanes of the warp that are at a warp function with this mask. */
static unsigned lanes_at(const gp_cpu_runner *r, unsigned first, unsigned mask)
{
    unsigned lanes = 0;
    for (unsigned l = 0; l < 32; l++)
        lanes |= (unsigned)(r->mask[first + l] == mask) << l;
    return lanes;
}

/* Threads come in order: the last is looked for first. */
static bool all_came(const gp_cpu_runner *r, unsigned first, unsigned mask)
{
    for (unsigned l = 32; l--;)
        if (mask >> l & 1 && r->mask[first + l] != mask)
            return false;
    return true;
}

/* All lanes that this one waits for have come: what each gets. */
static void answer(gp_cpu_runner *r, unsigned first, unsigned lanes)
{
    gp_cpu_bits given[32] = { 0 };
    for (unsigned l = 0; l < 32; l++)
        if (lanes >> l & 1) {
            given[l] = r->lane[first + l]->given;
            if (r->lane[first + l]->vote != r->now->vote)
                r->trouble = "threads of a warp are at different warp functions with the same mask";
        }
    if (r->trouble) {
        give_up(r);
        return;
    }
    for (unsigned l = 0; l < 32; l++)
        if (lanes >> l & 1) {
            struct fiber *f = r->lane[first + l];
            f->got = f->vote ? f->vote(given, lanes, l) : given[lanes >> f->from & 1 ? f->from : l];
            f->answered = true;
            r->mask[first + l] = 0;
        }
    r->moved++;
}

/* gp_cpu_block.exchange. Threads that have ended are looked for only when nothing else moves; when that does not help
 * in two rounds of the circle, nothing will. */
static gp_cpu_bits exchange(struct gp_cpu_block *b, unsigned thread, unsigned mask, gp_cpu_bits given, unsigned from,
                            gp_cpu_vote vote)
{
    gp_cpu_runner *r = (gp_cpu_runner *)b;
    struct fiber *f = r->now;
    unsigned first = thread & ~31u, all = b->dim.x * b->dim.y * b->dim.z - first, stuck = 0;
    if (from > 31) {
        r->trouble = "a thread is at a warp function with a width that is no power of two up to 32";
        give_up(r);
    }
    if (!(mask >> (thread - first) & 1)) {
        r->trouble = "a thread is at a warp function whose mask does not name it";
        give_up(r);
    }
    mask &= all < 32 ? (1u << all) - 1 : ~0u;
    f->thread = thread, f->waited = true;
    f->given = given, f->from = from, f->vote = vote, f->answered = false;
    r->lane[thread] = f, r->mask[thread] = mask;
    if (all_came(r, first, mask))
        answer(r, first, mask);
    while (!f->answered) {
        uint64_t moved = r->moved;
        pass_on(r);
        if (f->answered || moved != r->moved) {
            stuck = 0;
        } else if ((mask & lanes_left(r, first)) == lanes_at(r, first, mask)) {
            answer(r, first, lanes_at(r, first, mask));
        } else if (++stuck == 2) {
            r->trouble = "threads of a warp wait without end at a warp function, which not all that its mask names call "
                         "with that mask";
            give_up(r);
        }
    }
    return f->got;
}

/* gp_cpu_block.wait_grid */
static void wait_for_grid(struct gp_cpu_block *b)
{
    gp_cpu_runner *r = (gp_cpu_runner *)b;
    r->at_grid = r->now;
    switch_to(r, &r->host);
}

_Noreturn void gp_cpu_abandon(gp_cpu_runner *r)
{
    give_up(r);
    abort();                       /* its stack is gone by then */
}

/* ---- runners --------------------------------------------------------- */

gp_cpu_runner *gp_cpu_runner_create(void)
{
    gp_cpu_runner *r = calloc(1, sizeof *r);
    if (r)
        r->block.wait = wait_here, r->block.exchange = exchange;
    return r;
}

bool gp_cpu_runner_overflows(const gp_cpu_runner *r, const void *address)
{
    const char *map = r->now ? r->now->map : NULL, *p = address;
    return map && p >= map && p < map + GUARD;
}

const char *gp_cpu_runner_trouble(const gp_cpu_runner *r)
{
    return r->trouble;
}

void gp_cpu_runner_destroy(gp_cpu_runner *r)
{
    if (!r)
        return;
    drop_fibers(r);
    free(r->fiber);
    free(r->block.shared);
    free(r->parked), free(r->kept);
    free(r);
}

/* ---- grids ----------------------------------------------------------- */

static bool begin(gp_cpu_runner *r, const gp_cpu_entry *k, gp_dim3 grid, gp_dim3 block,
                  size_t shared, void *const *args)
{
    if (shared > r->shared_bytes) {
        size_t bytes = (shared + SHARED_ALIGN - 1) / SHARED_ALIGN * SHARED_ALIGN;
        free(r->block.shared);
        r->block.shared = aligned_alloc(SHARED_ALIGN, bytes);
        r->shared_bytes = r->block.shared ? bytes : 0;
        if (!r->block.shared)
            return false;
    }
    r->kernel = k, r->args = args, r->now = &r->host, r->used = 0, r->trouble = NULL;
#ifdef TSAN
    r->host.tsan = __tsan_get_current_fiber();
#endif
    r->block.dim = (gp_cpu_dim){ block.x, block.y, block.z };
    r->block.grid = (gp_cpu_dim){ grid.x, grid.y, grid.z };
    return true;
}

/* Lets the threads of the block run from the first one on, or from where `at` is, until they
 * have ended or wait for the grid. False: the fibers are not parked, and are no more. */
static bool go_on(gp_cpu_runner *r, struct fiber *at)
{
    if (!at) {
        r->block.next = (gp_cpu_dim){ 0, 0, 0 };
        if (!(at = take(r))) {
            drop_fibers(r);
            return false;
        }
        at->next = at->prev = at;
        r->circle.size = 1, r->circle.waiting = 0;
    }
    r->at_grid = NULL;
    switch_to(r, at);
    if (r->failed) {
        drop_fibers(r);
        memset(r->mask, 0, sizeof r->mask);
    }
    return !r->failed;
}

static gp_cpu_dim index_of(uint64_t i, gp_dim3 grid)
{
    return (gp_cpu_dim){ (unsigned)(i % grid.x), (unsigned)(i / grid.x % grid.y),
                         (unsigned)(i / grid.x / grid.y) };
}

bool gp_cpu_grid(gp_cpu_runner *r, const gp_cpu_entry *k, gp_dim3 grid, gp_dim3 block,
                 size_t shared, void *const *args)
{
    bool ok = begin(r, k, grid, block, shared, args);
    r->failed = false;
    for (uint64_t i = 0; ok && i < (uint64_t)grid.x * grid.y * grid.z; i++, r->used = 0) {
        r->block.index = index_of(i, grid);
        ok = go_on(r, NULL);
    }
    return ok;
}

/* ---- cooperative grids ----------------------------------------------- */

static long pieces;                /* of address space that the system allows this process */

static void ask_pieces(void)
{
    enum { USUAL = 65530 };
    FILE *f = fopen("/proc/sys/vm/max_map_count", "re");
    if (!f || fscanf(f, "%ld", &pieces) != 1)
        pieces = USUAL;
    if (f)
        fclose(f);
}

/* Each stack takes two pieces. */
unsigned gp_cpu_cooperative_max(int streams, gp_dim3 block)
{
    enum { OTHERS = 8192, MOST = 1 << 18 };
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, ask_pieces);
    long threads = (pieces < MOST ? pieces - OTHERS : MOST) / 2 / (streams > 0 ? streams : 1);
    long blocks = threads / (long)((uint64_t)block.x * block.y * block.z);
    return blocks > 1 ? (unsigned)blocks : 1;
}

/* The thread-local memory of the library that `pc` is in. */
struct local { uintptr_t pc; void *data; size_t bytes; };

static int find_local(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct local *l = arg;
    size_t bytes = 0;
    bool here = false;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        here |= p->p_type == PT_LOAD && l->pc - (info->dlpi_addr + p->p_vaddr) < p->p_memsz;
        bytes = p->p_type == PT_TLS ? p->p_memsz : bytes;
    }
    if (here && info->dlpi_tls_data)
        l->data = info->dlpi_tls_data, l->bytes = bytes;
    return here;
}

static bool room_for_blocks(gp_cpu_runner *r, size_t n)
{
    if (n > r->nparked) {
        free(r->parked);
        r->parked = malloc(n * sizeof *r->parked);
        r->nparked = r->parked ? n : 0;
    }
    return n <= r->nparked;
}

static bool room_to_keep(gp_cpu_runner *r, size_t bytes)
{
    if (bytes > r->kept_bytes) {
        free(r->kept);
        r->kept = malloc(bytes);
        r->kept_bytes = r->kept ? bytes : 0;
    }
    return bytes <= r->kept_bytes;
}

/* One turn of block i of n: false as go_on. A library's thread-local memory is made when it is
 * first touched, so *l is found when the first block parks; before that nothing is kept. */
static bool turn(gp_cpu_runner *r, size_t i, size_t n, struct local *l, size_t shared)
{
    struct parked *p = &r->parked[i];
    if (p->at) {
        const char *kept = r->kept + i * (l->bytes + shared);
        memcpy(l->data, kept, l->bytes);
        if (shared)
            memcpy(r->block.shared, kept + l->bytes, shared);
    }
    r->block = p->block, r->circle = p->circle;
    if (!go_on(r, p->at))
        return false;
    p->block = r->block, p->circle = r->circle, p->at = r->at_grid;
    if (!p->at)
        return true;
    if (!l->data) {
        dl_iterate_phdr(find_local, l);
        if (!room_to_keep(r, n * (l->bytes + shared))) {
            drop_fibers(r);
            return false;
        }
    }
    char *kept = r->kept + i * (l->bytes + shared);
    memcpy(kept, l->data, l->bytes);
    if (shared)
        memcpy(kept + l->bytes, r->block.shared, shared);
    return true;
}

bool gp_cpu_cooperative(gp_cpu_runner *r, const gp_cpu_entry *k, gp_dim3 grid, gp_dim3 block,
                        size_t shared, void *const *args)
{
    size_t n = (size_t)grid.x * grid.y * grid.z;
    struct local local = { .pc = (uintptr_t)k->threads };
    bool ok = room_for_blocks(r, n) && begin(r, k, grid, block, shared, args), wait = true;
    r->failed = false;
    r->block.wait_grid = wait_for_grid;
    for (size_t i = 0; ok && i < n; i++) {
        r->parked[i] = (struct parked){ .block = r->block };
        r->parked[i].block.index = index_of(i, grid);
        ok = turn(r, i, n, &local, shared);
    }
    while (ok && wait) {
        wait = false;
        for (size_t i = 0; ok && i < n; i++)
            if (r->parked[i].at) {
                ok = turn(r, i, n, &local, shared);
                wait |= r->parked[i].at != NULL;
            }
    }
    r->block.wait_grid = NULL;
    return ok;
}
