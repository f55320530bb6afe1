/* shim.c - preloaded into gpipe by torture.py: makes one call fail, or sends a signal at it.
 *
 * main() is a server: for each request it forks a child, which is the real main() with one
 * plan. A call is known by its name and a hash of its call stack, which are the same in every
 * run; threads decide only which of equal calls is the k-th. What is shared with torture.py
 * lies in one mapped file, `shared`: a counting run lists there every call by its stack. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <glob.h>
#include <link.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FRAMES = 40, CALLS = 8192, MODULES = 48 };
enum { SHORT = -1 };                   /* as an error: half of the bytes */
enum { MEMORY, OTHER };                /* memory that is gone is gone for all of these */
enum { OFF, COUNT, ONCE, EVER, SIGNAL };

typedef struct request {               /* torture.py packs it */
    int32_t mode, error, nth, low;     /* low: of the return address, to look no further */
    uint64_t hash;
    char name[24];
} request;

typedef struct stack {
    _Atomic uint64_t hash;
    _Atomic uint32_t count;
    int32_t low, n;
    char name[20];
    struct { int32_t module, unused; uint64_t offset; } at[FRAMES];
} stack;

static struct shared {
    _Atomic uint32_t fired, calls, seen, lock, nmodules, lost;
    char module[MODULES][160];
    stack stack[CALLS];
} *shared;

static request plan;
static atomic_int armed;
static __thread int inside __attribute__((tls_model("initial-exec")));

/* ---- stacks ------------------------------------------------------------ */

/* A place by its module and its offset there, which no run changes. */
static uint64_t place(void *pc, const char **module)
{
    struct dl_find_object o;
    if (_dl_find_object(pc, &o)) {
        *module = "?";
        return 0;
    }
    *module = o.dlfo_link_map->l_name;
    return (uint64_t)pc - o.dlfo_link_map->l_addr;
}

/* Of the stack above the wrapper. What a library does inside itself is one frame: the way
 * through it does not matter to who called it. Returns how many frames it kept. */
static __attribute__((noinline)) int look(const char *name, void *kept[FRAMES], uint64_t *hash)
{
    void *pc[128];
    const char *module, *last = NULL;
    int n = backtrace(pc, 128), k = 0;
    uint64_t h = 1469598103934665603u;
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 1099511628211u;
    for (int i = 3; i < n && k < FRAMES; i++) {
        uint64_t offset = place((char *)pc[i] - 1, &module);
        if (*module && module == last)
            continue;
        last = module;
        kept[k++] = (char *)pc[i] - 1;
        h = (h ^ offset) * 1099511628211u;
    }
    *hash = h ? h : 1;
    return k;
}

static int module_of(const char *name)
{
    int n = (int)shared->nmodules, i = 0;
    while (i < n && strcmp(shared->module[i], name) != 0)
        i++;
    if (i == n && n < MODULES) {
        strncpy(shared->module[n], name, sizeof shared->module[n] - 1);
        shared->nmodules++;
    }
    return i < MODULES ? i : -1;
}

static void record(const char *name, int low, void **pc, int n, uint64_t hash)
{
    unsigned i = (unsigned)(hash % CALLS), tries = 0;
    while (atomic_exchange(&shared->lock, 1))
        ;
    while (shared->stack[i].hash && shared->stack[i].hash != hash && ++tries < CALLS)
        i = (i + 1) % CALLS;
    stack *s = &shared->stack[i];
    if (tries == CALLS) {
        shared->lost++;
    } else if (!s->hash) {
        const char *module;
        s->hash = hash;
        s->low = low;
        s->n = n;
        strncpy(s->name, name, sizeof s->name - 1);
        for (int k = 0; k < n; k++) {
            s->at[k].offset = place(pc[k], &module);
            s->at[k].module = module_of(module);
        }
    }
    s->count++;
    atomic_store(&shared->lock, 0);
}

/* The error with which this call is to fail; 0: it goes on. */
static __attribute__((noinline)) int decide(const char *name, int class, int low)
{
    static int plan_class = OTHER;
    void *pc[FRAMES];
    uint64_t hash;
    int was = errno, error = 0;
    inside = 1;
    shared->calls++;
    if (plan.mode == COUNT) {
        int n = look(name, pc, &hash);
        record(name, low, pc, n, hash);
    } else if (plan.mode == EVER && shared->fired) {
        if (strcmp(name, plan.name) == 0 || (class == MEMORY && plan_class == MEMORY))
            error = class == MEMORY ? ENOMEM : plan.error;
    } else if (!shared->fired && low == plan.low && !strcmp(name, plan.name)) {
        int n = look(name, pc, &hash);
        if (hash == plan.hash && (int)++shared->seen == plan.nth) {
            plan_class = class;
            shared->fired = 1;
            record(name, low, pc, n, hash);
            if (plan.mode == SIGNAL)
                kill(getpid(), plan.error);
            else
                error = plan.error;
        }
    }
    inside = 0;
    errno = was;
    return error;
}

#define FAILS(name, class) \
    (!armed || inside ? 0 : decide(name, class, (int)((uintptr_t)__builtin_return_address(0) & 0xfff)))
#define REAL(name) \
    static __typeof__(name) *real; \
    if (!real) { \
        inside++; \
        *(void **)&real = dlsym(RTLD_NEXT, #name); \
        inside--; \
    }

/* ---- calls that give `bad` and set errno ------------------------------- */

#define CALL(ret, name, params, args, bad) \
ret name params \
{ \
    REAL(name) \
    int e = FAILS(#name, OTHER); \
    if (e) { \
        errno = e; \
        return bad; \
    } \
    return real args; \
}

CALL(int, mkdir, (const char *p, mode_t m), (p, m), -1)
CALL(int, rmdir, (const char *p), (p), -1)
CALL(int, unlink, (const char *p), (p), -1)
CALL(int, rename, (const char *a, const char *b), (a, b), -1)
CALL(int, link, (const char *a, const char *b), (a, b), -1)
CALL(int, unlinkat, (int d, const char *p, int f), (d, p, f), -1)
CALL(int, renameat, (int d, const char *a, int e2, const char *b), (d, a, e2, b), -1)
CALL(int, stat, (const char *p, struct stat *s), (p, s), -1)
CALL(int, lstat, (const char *p, struct stat *s), (p, s), -1)
CALL(int, fstat, (int fd, struct stat *s), (fd, s), -1)
CALL(int, fstatat, (int d, const char *p, struct stat *s, int f), (d, p, s, f), -1)
CALL(int, access, (const char *p, int m), (p, m), -1)
CALL(int, fchmod, (int fd, mode_t m), (fd, m), -1)
CALL(int, ftruncate, (int fd, off_t n), (fd, n), -1)
CALL(int, fallocate, (int fd, int m, off_t at, off_t n), (fd, m, at, n), -1)
CALL(off_t, lseek, (int fd, off_t at, int from), (fd, at, from), -1)
CALL(int, fsync, (int fd), (fd), -1)
CALL(int, fdatasync, (int fd), (fd), -1)
CALL(int, syncfs, (int fd), (fd), -1)
CALL(int, memfd_create, (const char *s, unsigned f), (s, f), -1)
CALL(int, eventfd, (unsigned v, int f), (v, f), -1)
CALL(int, pipe, (int fd[2]), (fd), -1)
CALL(int, pipe2, (int fd[2], int f), (fd, f), -1)
CALL(int, dup, (int fd), (fd), -1)
CALL(int, dup2, (int a, int b), (a, b), -1)
CALL(int, poll, (struct pollfd *p, nfds_t n, int ms), (p, n, ms), -1)
CALL(int, socket, (int d, int t, int p), (d, t, p), -1)
CALL(int, bind, (int fd, __CONST_SOCKADDR_ARG a, socklen_t n), (fd, a, n), -1)
CALL(int, listen, (int fd, int n), (fd, n), -1)
CALL(int, setsockopt, (int fd, int l, int o, const void *v, socklen_t n), (fd, l, o, v, n), -1)
CALL(int, getsockname, (int fd, __SOCKADDR_ARG a, socklen_t *n), (fd, a, n), -1)
CALL(pid_t, waitpid, (pid_t p, int *s, int o), (p, s, o), -1)
CALL(int, mkostemp, (char *t, int f), (t, f), -1)
CALL(int, mkostemps, (char *t, int n, int f), (t, n, f), -1)
CALL(char *, mkdtemp, (char *t), (t), NULL)
CALL(char *, getcwd, (char *b, size_t n), (b, n), NULL)
CALL(char *, realpath, (const char *p, char *r), (p, r), NULL)
CALL(DIR *, opendir, (const char *p), (p), NULL)
CALL(FILE *, fopen, (const char *p, const char *m), (p, m), NULL)
CALL(FILE *, fopen64, (const char *p, const char *m), (p, m), NULL)
CALL(FILE *, fdopen, (int fd, const char *m), (fd, m), NULL)
CALL(FILE *, popen, (const char *c, const char *m), (c, m), NULL)
CALL(int, setenv, (const char *n, const char *v, int o), (n, v, o), -1)
CALL(int, sigaltstack, (const stack_t *a, stack_t *b), (a, b), -1)
CALL(int, mprotect, (void *p, size_t n, int f), (p, n, f), -1)

/* A file that cannot be closed is closed all the same. */
int close(int fd)
{
    REAL(close)
    int e = FAILS("close", OTHER), got = real(fd);
    if (e)
        errno = e;
    return e ? -1 : got;
}

#define OPENS(name, params, ...) \
int name params \
{ \
    REAL(name) \
    va_list ap; \
    va_start(ap, flags); \
    mode_t m = flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, mode_t) : 0; \
    va_end(ap); \
    int e = FAILS(flags & O_CREAT ? "create" : "open", OTHER); \
    if (e) { errno = e; return -1; } \
    return real(__VA_ARGS__, flags, m); \
}
OPENS(open, (const char *p, int flags, ...), p)
OPENS(openat, (int d, const char *p, int flags, ...), d, p)

/* ---- calls that may do half -------------------------------------------- */

#define PARTIAL(name, params, args, half) \
ssize_t name params \
{ \
    REAL(name) \
    int e = FAILS(#name, OTHER); \
    if (e > 0) { errno = e; return -1; } \
    if (e == SHORT && n > 1) half; \
    return real args; \
}

PARTIAL(read, (int fd, void *b, size_t n), (fd, b, n), n /= 2)
PARTIAL(pread, (int fd, void *b, size_t n, off_t at), (fd, b, n, at), n /= 2)
PARTIAL(write, (int fd, const void *b, size_t n), (fd, b, n), n /= 2)
PARTIAL(pwrite, (int fd, const void *b, size_t n, off_t at), (fd, b, n, at), n /= 2)
PARTIAL(send, (int fd, const void *b, size_t n, int f), (fd, b, n, f), n /= 2)

ssize_t writev(int fd, const struct iovec *v, int n)
{
    REAL(writev)
    int e = FAILS("writev", OTHER);
    if (e > 0) { errno = e; return -1; }
    if (e == SHORT && n)
        return write(fd, v->iov_base, (v->iov_len + 1) / 2);
    return real(fd, v, n);
}

/* ---- calls that return the error --------------------------------------- */

#define RETURNS(class, name, params, args) \
int name params \
{ \
    REAL(name) \
    int e = FAILS(#name, class); \
    return e ? e : real args; \
}

RETURNS(MEMORY, pthread_create, (pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *x), (t, a, f, x))
RETURNS(MEMORY, posix_memalign, (void **p, size_t align, size_t n), (p, align, n))
RETURNS(OTHER, pthread_key_create, (pthread_key_t *k, void (*f)(void *)), (k, f))
RETURNS(OTHER, posix_spawnp, (pid_t *p, const char *f, const posix_spawn_file_actions_t *a,
        const posix_spawnattr_t *s, char *const v[], char *const e2[]), (p, f, a, s, v, e2))
RETURNS(OTHER, posix_spawn, (pid_t *p, const char *f, const posix_spawn_file_actions_t *a,
        const posix_spawnattr_t *s, char *const v[], char *const e2[]), (p, f, a, s, v, e2))
RETURNS(OTHER, getaddrinfo, (const char *h, const char *s, const struct addrinfo *i, struct addrinfo **r), (h, s, i, r))
RETURNS(OTHER, glob, (const char *p, int f, int (*bad)(const char *, int), glob_t *g), (p, f, bad, g))

/* A library that is not there, so that dlerror() says something. */
void *dlopen(const char *name, int flags)
{
    REAL(dlopen)
    return real(FAILS("dlopen", OTHER) ? "/nonexistent/torture.so" : name, flags);
}

/* ---- streams: an error as of a write when the buffer was full ----------- */

static int spoil(FILE *f, int e)
{
    __fpurge(f);
    f->_flags |= _IO_ERR_SEEN;
    errno = e;
    return EOF;
}

#define STREAM(ret, name, params, args, bad) \
ret name params \
{ \
    REAL(name) \
    int e = f == stderr ? 0 : FAILS(#name, OTHER); \
    if (e) { spoil(f, e); return bad; } \
    return real args; \
}

STREAM(int, fflush, (FILE *f), (f), EOF)
STREAM(size_t, fwrite, (const void *p, size_t s, size_t n, FILE *f), (p, s, n, f), 0)
STREAM(int, fputs, (const char *p, FILE *f), (p, f), EOF)
STREAM(size_t, fread, (void *p, size_t s, size_t n, FILE *f), (p, s, n, f), 0)
STREAM(char *, fgets, (char *p, int n, FILE *f), (p, n, f), NULL)

int fclose(FILE *f)
{
    REAL(fclose)
    int e = FAILS("fclose", OTHER);
    if (e)
        spoil(f, e);
    int got = real(f);
    if (e)
        errno = e;
    return e ? EOF : got;
}

int fprintf(FILE *f, const char *fmt, ...)
{
    va_list ap;
    int e = f == stderr ? 0 : FAILS("fprintf", OTHER);
    if (e)
        return spoil(f, e);
    va_start(ap, fmt);
    int n = vfprintf(f, fmt, ap);
    va_end(ap);
    return n;
}

/* ---- memory ------------------------------------------------------------ */

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

#define TAKE(name, params, args) \
void *name params \
{ \
    int e = FAILS(#name, MEMORY); \
    if (e) { errno = e; return NULL; } \
    return __libc_##args; \
}

TAKE(malloc, (size_t n), malloc(n))
TAKE(calloc, (size_t k, size_t n), calloc(k, n))
TAKE(realloc, (void *p, size_t n), realloc(p, n))
TAKE(aligned_alloc, (size_t align, size_t n), memalign(align, n))

void *mmap(void *p, size_t n, int prot, int flags, int fd, off_t at)
{
    REAL(mmap)
    int e = FAILS("mmap", MEMORY);
    if (e) { errno = e; return MAP_FAILED; }
    return real(p, n, prot, flags, fd, at);
}

/* Says who ends the process: a library may do so without a word, or have none left. */
void abort(void)
{
    char text[200];
    const char *module;
    place((char *)__builtin_return_address(0) - 1, &module);
    int n = snprintf(text, sizeof text, "ABORT by %s\n", *module ? module : "gpipe");
    syscall(SYS_write, 2, text, n);
    signal(SIGABRT, SIG_DFL);
    raise(SIGABRT);
    _exit(127);
}

/* ---- the server -------------------------------------------------------- */

static int (*real_main)(int, char **, char **);
static int requests, answers;        /* pipes from and to torture.py */

static void redirect(const char *variable, int fd, int flags)
{
    const char *path = getenv(variable);
    int got = path ? open(path, flags, 0666) : -1;
    if (got < 0 || dup2(got, fd) < 0)
        _exit(126);
    close(got);
}

static void be_child(void)
{
    setpgid(0, 0);
    redirect("TORTURE_IN", 0, O_RDONLY);
    redirect("TORTURE_OUT", 1, O_WRONLY | O_CREAT | O_TRUNC);
    redirect("TORTURE_ERR", 2, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND);
    close(requests);
    close(answers);
    unsetenv("TORTURE_IN"), unsetenv("TORTURE_OUT"), unsetenv("TORTURE_ERR");
    armed = plan.mode != OFF;
}

static int serve(int argc, char **argv, char **env)
{
    while (read(requests, &plan, sizeof plan) == (ssize_t)sizeof plan) {
        int32_t answer[2] = { fork(), 0 };
        if (!answer[0]) {
            be_child();
            return real_main(argc, argv, env);
        }
        if (write(answers, answer, sizeof *answer) < 0 || waitpid(answer[0], &answer[1], 0) < 0
            || write(answers, &answer[1], sizeof *answer) < 0)
            break;
    }
    _exit(0);
}

int __libc_start_main(int (*f)(int, char **, char **), int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*rtld)(void), void *end);
int __libc_start_main(int (*f)(int, char **, char **), int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*rtld)(void), void *end)
{
    REAL(__libc_start_main)
    const char *path = getenv("TORTURE_SHARED");
    int fd = path ? open(path, O_RDWR) : -1;
    void *warm[2];
    if (fd >= 0) {
        shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        close(fd);
        unsetenv("LD_PRELOAD");
        unsetenv("TORTURE_SHARED");
        requests = atoi(getenv("TORTURE_REQUESTS"));
        answers = atoi(getenv("TORTURE_ANSWERS"));
        backtrace(warm, 2);            /* it loads a library the first time */
        real_main = f;
        f = serve;
    }
    return real(f, argc, argv, init, fini, rtld, end);
}
