/* cc.c - compiles a user's kernel for the CPU with the system's C++ compiler.
 *
 * The compiler reads the unit from its standard input and writes a shared library
 * that holds one gp_cpu_entry. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cpu/kernel.h"
#include "gpipe/gpipe.h"
#include "device/source.h"

extern char **environ;

/* The options that decide what comes out; part of the cache's key. */
static const char *const flags[] = {
    "-std=c++17", "-O2", "-fPIC", "-fstack-clash-protection", "-shared", "-ffp-contract=off",
    "-fvisibility=hidden", "-w",
    "-fdiagnostics-color=never", "-x", "c++", "-",
};

enum { NFLAGS = sizeof flags / sizeof *flags };

const char *gp_cc_flag(int i)
{
    return i < NFLAGS ? flags[i] : NULL;
}

typedef struct compiler {
    char path[PATH_MAX];           /* of the program */
    struct stat st;
    char *words;                   /* $CXX may hold options, or a launcher */
    char **word; int nwords;
} compiler;

/* Finds a program as the shell does. */
static bool find_program(const char *name, compiler *c)
{
    const char *path = strchr(name, '/') ? "" : getenv("PATH");
    for (const char *p = path ? path : ""; ; p++) {
        size_t n = strcspn(p, ":");
        if (strchr(name, '/'))
            snprintf(c->path, sizeof c->path, "%s", name);
        else
            snprintf(c->path, sizeof c->path, "%.*s/%s", (int)n, p, name);
        if (stat(c->path, &c->st) == 0 && S_ISREG(c->st.st_mode) && access(c->path, X_OK) == 0)
            return true;
        p += n;
        if (!*p)
            return false;
    }
}

static bool find_compiler(compiler *c, const gp_source *src, gp_errs *errs)
{
    static const char *const usual[] = { "c++", "g++", "clang++" };
    const char *cxx = getenv("CXX");
    memset(c, 0, sizeof *c);
    c->word = calloc((cxx ? strlen(cxx) / 2 : 0) + 1, sizeof *c->word);
    if (!c->word)
        return gp_fail(errs, GP_E_RESOURCE, src->at, "no memory to compile '%s'", src->path);
    if (cxx && cxx[strspn(cxx, " ")]) {
        char *save = NULL;
        c->words = strdup(cxx);
        for (char *w = c->words ? strtok_r(c->words, " ", &save) : NULL; w;
             w = strtok_r(NULL, " ", &save))
            c->word[c->nwords++] = w;
        if (c->nwords && find_program(c->word[0], c))
            return true;
        return gp_fail(errs, GP_E_RESOURCE, src->at, "no compiler '%s' to compile '%s' for the "
                       "CPU; set CXX to a C++ compiler", cxx, src->path);
    }
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (find_program(usual[i], c)) {
            c->word[c->nwords++] = c->path;
            return true;
        }
    return gp_fail(errs, GP_E_RESOURCE, src->at, "no C++ compiler to compile '%s' for the CPU; "
                   "install g++ or clang++, or set CXX", src->path);
}

/* A version is told by the program's place, size and time: asking it would take
 * longer than all the rest. */
static gp_key make_key(gp_unit *u, const compiler *c)
{
    int64_t id[] = { c->st.st_size, c->st.st_mtim.tv_sec, c->st.st_mtim.tv_nsec };
    gp_hash *h = &u->hash;
    gp_hash_text(h, "cpu " GP_VERSION);
    gp_hash_text(h, c->path);
    gp_hash_add(h, id, sizeof id);
    for (int i = 1; i < c->nwords; i++)
        gp_hash_text(h, c->word[i]);
    for (int i = 0; i < NFLAGS; i++)
        gp_hash_text(h, flags[i]);
    return gp_hash_end(h);
}

/* Runs the program with `in` and `out` as its streams; its exit status, or -1. */
static int spawn(const char **argv, int in, int out)
{
    int n = 0, status = -1;
    while (environ[n])
        n++;
    char **env = calloc((size_t)n + 2, sizeof *env), lang[] = "LC_ALL=C";
    posix_spawn_file_actions_t io;
    pid_t pid;
    if (!env || posix_spawn_file_actions_init(&io)) {
        free(env);
        return -1;
    }
    n = 0;
    env[n++] = lang;                   /* "error:" in English, quotes in ASCII */
    for (char **e = environ; *e; e++)
        if (strncmp(*e, "LC_ALL=", 7) != 0)
            env[n++] = *e;
    posix_spawn_file_actions_adddup2(&io, in, 0);
    posix_spawn_file_actions_adddup2(&io, out, 1);
    posix_spawn_file_actions_adddup2(&io, out, 2);
    if (posix_spawnp(&pid, argv[0], &io, NULL, (char *const *)argv, env) == 0)
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
    posix_spawn_file_actions_destroy(&io);
    free(env);
    return status;
}

/* Compiles the unit to the file `to`. */
static bool compile(const gp_unit *u, const compiler *c, const char *to, gp_errs *errs)
{
    const gp_source *src = u->src;
    const char **argv = calloc((size_t)(c->nwords + NFLAGS + 8), sizeof *argv);
    int n = 0, in = memfd_create("gpipe.cu", MFD_CLOEXEC);
    int out = memfd_create("gpipe.log", MFD_CLOEXEC);
    bool ok = false;
    if (!argv || in < 0 || out < 0 || write(in, u->text, u->len) != (ssize_t)u->len ||
        lseek(in, 0, SEEK_SET) != 0) {
        gp_fail(errs, GP_E_RESOURCE, src->at, "no memory to compile '%s'", src->path);
        goto done;
    }
    for (int i = 0; i < c->nwords; i++)
        argv[n++] = c->word[i];
    argv[n++] = "-iquote", argv[n++] = u->dir;
    for (int i = 0; i < NFLAGS; i++)
        argv[n++] = flags[i];
    argv[n++] = "-o", argv[n++] = to;
    ok = spawn(argv, in, out) == 0;
    if (!ok) {
        off_t size = lseek(out, 0, SEEK_END);
        char *log = calloc(1, (size_t)size + 1);
        gp_unit_errors(u, log && pread(out, log, (size_t)size, 0) == size ? log : "", errs);
        free(log);
    }
done:
    free(argv);
    if (in >= 0)
        close(in);
    if (out >= 0)
        close(out);
    return ok;
}

/* Opens a copy of the file, so that each stage has the kernel's __device__ variables for
 * itself, as on a GPU: a file that is opened twice is the same library. */
static void *open_copy(const char *path)
{
    const char *tmp = getenv("TMPDIR");
    char name[PATH_MAX];
    size_t bytes;
    void *data = gp_slurp(path, &bytes), *dl = NULL;
    if (snprintf(name, sizeof name, "%s/gpipe-XXXXXX.so", tmp && *tmp ? tmp : "/tmp")
        >= (int)sizeof name)
        name[0] = '\0';
    int fd = data && name[0] ? mkostemps(name, 3, O_CLOEXEC) : -1;
    if (fd >= 0) {
        if (write(fd, data, bytes) == (ssize_t)bytes)
            dl = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        close(fd);
        unlink(name);
    }
    free(data);
    return dl;
}

static bool load(const char *path, gp_cpu_entry *k, void **dl)
{
    *dl = open_copy(path);
    if (!*dl)                          /* TMPDIR is full, or may hold no programs */
        *dl = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const gp_cpu_entry *e = *dl ? dlsym(*dl, "gp_entry") : NULL;
    if (e)
        *k = *e;
    else if (*dl)
        dlclose(*dl);
    return e != NULL;
}

/* Compiles in a folder of its own, stores what came out, loads it. */
static bool build(const gp_unit *u, const compiler *c, const gp_key *key, gp_cpu_entry *k,
                  void **dl, gp_errs *errs)
{
    const char *tmp = getenv("TMPDIR"), *why;
    char dir[PATH_MAX], file[PATH_MAX + 8], path[PATH_MAX];
    snprintf(dir, sizeof dir, "%s/gpipe-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(dir))
        return gp_fail(errs, GP_E_RESOURCE, u->src->at, "cannot make a folder in '%s' to "
                       "compile '%s': %s; set TMPDIR", tmp && *tmp ? tmp : "/tmp", u->src->path,
                       strerror(errno));
    snprintf(file, sizeof file, "%s/out.so", dir);
    bool ok = compile(u, c, file, errs);
    if (ok) {
        size_t bytes;
        void *data = gp_slurp(file, &bytes);
        bool stored = data && u->traced && gp_cache_store(key, ".so", data, bytes, path);
        free(data);
        ok = (stored && load(path, k, dl)) || load(file, k, dl);
        if (!ok) {
            why = dlerror();
            gp_fail(errs, GP_E_RESOURCE, u->src->at, "cannot load '%s' as compiled: %s",
                    u->src->path, why ? why : "it has no entry");
        }
    }
    unlink(file);
    rmdir(dir);
    return ok;
}

bool gp_cc_compile(const gp_source *src, gp_cpu_entry *k, void **dl, gp_errs *errs)
{
    gp_unit u = { 0 };
    compiler c;
    char path[PATH_MAX];
    bool ok = find_compiler(&c, src, errs) && gp_unit_make(&u, src, true, errs);
    if (ok) {
        gp_key key = make_key(&u, &c);
        ok = (u.traced && gp_cache_find(&key, ".so", path, NULL, NULL) && load(path, k, dl)) ||
             build(&u, &c, &key, k, dl, errs);
    }
    gp_unit_free(&u);
    free(c.words), free(c.word);
    return ok;
}
