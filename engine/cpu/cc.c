/* cc.c - compiles a user's kernel for the CPU with the system's C++ compiler.
 *
 * The compiler reads the unit from its standard input and writes a shared library
 * that holds one gp_cpu_entry, and the names of the files that it has read. It is
 * given the input by a path: with "-" it would look for headers in quotes in the
 * folder that gpipe was started in before it looks beside the user's source. */
#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include "cpu/child.h"
#include "cpu/kernel.h"
#include "device/deps.h"
#include "device/scratch.h"
#include "device/source.h"
#include "gpipe/gpipe.h"

#define INPUT "/proc/self/fd/0"

/* The options that decide what comes out; part of the cache's key. */
static const char *const flags[] = {
    "-std=c++17", "-O2", "-fPIC", "-fstack-clash-protection", "-shared", "-ffp-contract=off",
    "-fvisibility=hidden", "-w",
    "-fdiagnostics-color=never", "-idirafter", "/usr/local/cuda/include", "-x", "c++", INPUT,
};

enum { NFLAGS = sizeof flags / sizeof *flags };

typedef struct compiler {
    char path[PATH_MAX];           /* of the program */
    char *words;                   /* $CXX may hold options, or a launcher */
    char **word; int nwords;
} compiler;

/* Finds a program as the shell does. */
static bool find_program(const char *name, char found[PATH_MAX], struct stat *st)
{
    const char *path = strchr(name, '/') ? "" : getenv("PATH");
    for (const char *p = path ? path : ""; ; p++) {
        size_t n = strcspn(p, ":");
        if (strchr(name, '/'))
            snprintf(found, PATH_MAX, "%s", name);
        else
            snprintf(found, PATH_MAX, "%.*s/%s", (int)n, p, name);
        if (stat(found, st) == 0 && S_ISREG(st->st_mode) && access(found, X_OK) == 0)
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
    struct stat st;
    memset(c, 0, sizeof *c);
    c->word = calloc((cxx ? strlen(cxx) / 2 : 0) + 1, sizeof *c->word);
    if (!c->word)
        return gp_fail(errs, GP_E_RESOURCE, src->at, "no memory to compile '%s'", gp_source_name(src));
    if (cxx && cxx[strspn(cxx, " ")]) {
        char *save = NULL;
        c->words = strdup(cxx);
        for (char *w = c->words ? strtok_r(c->words, " ", &save) : NULL; w;
             w = strtok_r(NULL, " ", &save))
            c->word[c->nwords++] = w;
        if (c->nwords && find_program(c->word[0], c->path, &st))
            return true;
        return gp_fail(errs, GP_E_RESOURCE, src->at, "no compiler '%s' to compile '%s' for the "
                       "CPU; set CXX to a C++ compiler", cxx, gp_source_name(src));
    }
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (find_program(usual[i], c->path, &st)) {
            c->word[c->nwords++] = c->path;
            return true;
        }
    return gp_fail(errs, GP_E_RESOURCE, src->at, "no C++ compiler to compile '%s' for the CPU; "
                   "install g++ or clang++, or set CXX", gp_source_name(src));
}

/* ---- what it depends on -------------------------------------------------- */

/* What compilers read of the environment, and where programs are looked for. */
static const char *const variables[] = {
    "PATH", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "COMPILER_PATH",
    "GCC_EXEC_PREFIX", "GCC_TOOLCHAIN", "SOURCE_DATE_EPOCH", "CCC_OVERRIDE_OPTIONS",
    "CLANG_CONFIG_PATH", "SDKROOT", "LD_RUN_PATH",
};

/* A version is told by the program's place, size and time: asking it would take longer than
 * all the rest. Behind a launcher the program is another word. */
static gp_key make_key(const gp_unit *u, const compiler *c)
{
    gp_hash h;
    gp_hash_begin(&h);
    gp_hash_text(&h, "cpu " GP_VERSION);
    gp_hash_text(&h, u->text);
    gp_cc_headers_hash(&h);
    gp_hash_text(&h, u->dir);
    for (int i = 0; i < c->nwords; i++) {
        char path[PATH_MAX];
        struct stat st;
        gp_hash_text(&h, c->word[i]);
        if (c->word[i][0] == '-' || !find_program(c->word[i], path, &st))
            continue;
        int64_t id[] = { st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec };
        gp_hash_text(&h, path);
        gp_hash_add(&h, id, sizeof id);
    }
    for (int i = 0; i < NFLAGS; i++)
        gp_hash_text(&h, flags[i]);
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *v = getenv(variables[i]);
        gp_hash_text(&h, v ? "set" : "");
        gp_hash_text(&h, v ? v : "");
    }
    return gp_hash_end(&h);
}

/* The folders of a variable; one without a name is the one that we are in. */
static void add_variable(gp_deps *r, const char *name)
{
    const char *p = getenv(name);
    for (size_t n; p && *p; p += n + (p[n] == ':')) {
        n = strcspn(p, ":");
        gp_deps_folder(r, n ? p : ".", n ? n : 1);
    }
}

/* Where the user has headers looked for: beside the source, in options, by variables. */
static void add_folders(gp_deps *r, const gp_unit *u, const compiler *c)
{
    static const char *const option[] = { "-I", "-iquote", "-isystem", "-idirafter" };
    gp_deps_folder(r, u->dir, strlen(u->dir));
    for (int i = 1; i < c->nwords; i++)
        for (size_t k = 0; k < sizeof option / sizeof *option; k++) {
            size_t n = strlen(option[k]);
            const char *w = c->word[i];
            if (strncmp(w, option[k], n) != 0)
                continue;
            w = w[n] ? w + n : i + 1 < c->nwords ? c->word[i + 1] : "";
            if (*w)
                gp_deps_folder(r, w, strlen(w));
        }
    add_variable(r, "CPATH");
    add_variable(r, "CPLUS_INCLUDE_PATH");
    gp_deps_folder(r, "/usr/local/include", strlen("/usr/local/include"));
}

/* Reads what `-MD` has written: a rule for make, with its way to quote. The unit and what is in
 * `dir` are our own. */
static void read_rule(gp_deps *r, const char *path, const char *dir)
{
    char err[GP_WHY], *text;
    size_t bytes;
    if (!(text = gp_slurp(path, GP_SOURCE_MAX, &bytes, err))) {
        r->unknown = true;
        return;
    }
    char *p = text + strcspn(text, ":");
    for (p += *p == ':'; *p;) {
        if (isspace((unsigned char)*p) || (p[0] == '\\' && p[1] == '\n')) {
            p++;
            continue;
        }
        char *name = p, *to = p;
        for (; *p && !isspace((unsigned char)*p); p++) {
            if (p[0] == '$' && p[1] == '$')
                p++;
            else if (p[0] == '\\' && p[1] && strchr(" \t#\\", p[1]))
                p++;
            *to++ = *p;
        }
        size_t n = (size_t)(to - name);
        bool unit = n == sizeof INPUT - 1 && !memcmp(name, INPUT, n);
        if (!unit && strncmp(name, dir, strlen(dir)) != 0)
            gp_deps_path(r, name, n);
    }
    free(text);
}

/* What the compiler read has to be files: compilers differ in what they make of a device. */
static bool all_are_files(const gp_deps *r, const gp_source *src, gp_errs *errs)
{
    struct stat st;
    for (int i = 0; i < r->npaths; i++)
        if (!stat(r->path[i], &st) && !S_ISREG(st.st_mode))
            return gp_fail(errs, GP_E_SPEC, src->at, "'%s' includes '%s', which is not a "
                           "regular file", gp_source_name(src), r->path[i]);
    return true;
}

/* ---- compiling ----------------------------------------------------------- */

/* The line in which a compiler, or what it has started, says that it was killed or has not what it needs. NULL:
 * there is none, or the compiler names an error of a source, whose words are those of its author. */
static const char *gave_up(const char *log, int *n)
{
    static const char *const words[] = {
        "terminated program", "unable to execute command", "out of memory", "memory exhausted",
        "Cannot allocate memory", "std::bad_alloc", "No space left on device", "Disk quota exceeded",
        "Too many open files", "File size limit exceeded",
    };
    const char *found = NULL;
    for (const char *p = log; *p; p += strspn(p, "\n")) {
        const char *line = p, *end = p + strcspn(p, "\n");
        bool place = false;
        for (; p < end; p++)
            place |= p[0] == ':' && isdigit((unsigned char)p[1]);
        if (place && memmem(line, (size_t)(end - line), "error: ", 7))
            return NULL;
        for (size_t i = 0; !place && !found && i < sizeof words / sizeof *words; i++)
            if (memmem(line, (size_t)(end - line), words[i], strlen(words[i])))
                found = line, *n = (int)(end - line);
    }
    return found;
}

/* What became of a compiler that made nothing, as errors. The shell that starts it says 128 and
 * the signal's number of one that was killed. */
static void tell(const gp_unit *u, const compiler *c, const gp_child *child, int status, int why, gp_errs *errs)
{
    const gp_source *src = u->src;
    const char *log = child->log ? child->log : "", *line;
    int n;
    if (status < 0 && why) {
        gp_fail(errs, GP_E_RESOURCE, src->at, "the compiler '%s' cannot be started: %s", c->word[0],
                gp_strerror(why));
    } else if (status < 0 || status > 128) {
        gp_fail(errs, GP_E_RESOURCE, src->at, "the compiler '%s' was killed", c->word[0]);
    } else if ((line = gave_up(log, &n))) {
        gp_fail(errs, GP_E_RESOURCE, src->at, "the compiler '%s' gave up: %.*s", c->word[0], n, line);
    } else {
        gp_unit_errors(u, log, errs);
        if (child->more)
            gp_fail(errs, GP_E_NOTE, (gp_loc){ 0 }, "%zu more line%s of the compiler's output",
                    child->more, child->more == 1 ? "" : "s");
    }
}

/* Compiles the unit to the file `to`, in the folder, with `more` options, which end with NULL. */
static bool compile(const gp_unit *u, const compiler *c, const char *dir, const char *to,
                    const char *const *more, const atomic_int *cancel, gp_errs *errs)
{
    const gp_source *src = u->src;
    const char **argv = calloc((size_t)(c->nwords + NFLAGS + 12), sizeof *argv);
    int n = 0;
    if (!argv)
        return gp_fail(errs, GP_E_RESOURCE, src->at, "no memory to compile '%s'", gp_source_name(src));
    if (!gp_cc_headers_put(src, dir, errs)) {
        free(argv);
        return false;
    }
    for (int i = 0; i < c->nwords; i++)
        argv[n++] = c->word[i];
    argv[n++] = "-iquote", argv[n++] = u->dir, argv[n++] = "-I", argv[n++] = dir;
    for (; *more; more++)
        argv[n++] = *more;
    for (int i = 0; i < NFLAGS; i++)
        argv[n++] = flags[i];
    argv[n++] = "-o", argv[n++] = to;
    gp_child child = { .argv = argv, .text = u->text, .len = u->len, .tmp = dir,
                       .cancel = cancel };
    int status = gp_child_run(&child);
    int why = errno;
    bool cancelled = cancel && atomic_load(cancel);
    if (status && !cancelled)
        tell(u, c, &child, status, why, errs);
    free(child.log);
    free(argv);
    return status == 0;
}

/* Loads a library from memory, under a name that no other has: each stage has the kernel's
 * __device__ variables for itself, as on a GPU. The name is that of an open file, with a
 * number between the slashes, since the descriptor is used again. */
static void *open_library(const void *data, size_t bytes)
{
    static atomic_uint count;
    char name[80] = "/proc/self/fd/";
    size_t n = strlen(name);
    int fd = memfd_create("gpipe.so", MFD_CLOEXEC);
    void *dl = NULL;
    for (unsigned k = atomic_fetch_add(&count, 1); k; k >>= 1) {
        if (k & 1)
            name[n++] = '.';
        name[n++] = '/';
    }
    snprintf(name + n, sizeof name - n, "%d", fd);
    struct iovec v = { (void *)data, bytes };
    char err[GP_WHY];
    if (fd >= 0 && gp_write_all(fd, &v, 1, err))
        dl = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (fd >= 0)
        close(fd);
    return dl;
}

static bool load(const void *data, size_t bytes, gp_cpu_entry *k, void **dl)
{
    *dl = open_library(data, bytes);
    const gp_cpu_entry *e = *dl ? dlsym(*dl, "gp_entry") : NULL;
    if (e)
        *k = *e;
    else if (*dl)
        dlclose(*dl);
    return e != NULL;
}

/* A library as loaded, and the bytes of its file, malloc'd. */
typedef struct library { gp_cpu_entry *k; void *dl, *data; size_t bytes; } library;

/* Compiles in a folder of its own, loads what came out, stores it. */
static bool build(const gp_unit *u, const compiler *c, gp_deps *r, const atomic_int *cancel,
                  library *l, gp_errs *errs)
{
    gp_scratch s;
    char file[PATH_MAX], rule[PATH_MAX], err[GP_WHY];
    if (!gp_scratch_open(&s, err))
        return gp_fail(errs, GP_E_RESOURCE, u->src->at, "to compile '%s' %s", gp_source_name(u->src), err);
    snprintf(file, sizeof file, "%s/out.so", s.path);
    snprintf(rule, sizeof rule, "%s/out.d", s.path);
    const char *const depends[] = { "-MD", "-MF", rule, "-MT", "x", NULL };
    gp_deps_start(r);
    bool ok = compile(u, c, s.path, file, depends, cancel, errs);
    if (ok) {
        read_rule(r, rule, s.path);
        ok = all_are_files(r, u->src, errs);
    }
    if (ok) {
        l->data = gp_slurp(file, SIZE_MAX / 2, &l->bytes, err);
        ok = l->data && load(l->data, l->bytes, l->k, &l->dl);
        if (ok) {
            gp_deps_store(r, ".so", l->data, l->bytes, errs);
        } else {
            const char *why = l->data ? dlerror() : err;
            gp_fail(errs, GP_E_RESOURCE, u->src->at, "cannot load '%s' as compiled: %s",
                    gp_source_name(u->src), why ? why : "it has no entry");
        }
    }
    gp_scratch_close(&s);
    return ok;
}

static bool find(const gp_deps *r, library *l, gp_errs *errs)
{
    if (!gp_deps_find(r, ".so", &l->data, &l->bytes, errs))
        return false;
    if (load(l->data, l->bytes, l->k, &l->dl))
        return true;
    free(l->data);
    l->data = NULL;
    return false;
}

bool gp_cc_compile(const gp_source *src, const atomic_int *cancel, gp_cpu_entry *k, void **dl,
                   gp_errs *errs)
{
    gp_unit u = { 0 };
    gp_deps r = { .npaths = 0 };
    library l = { .k = k };
    compiler c;
    bool ok = find_compiler(&c, src, errs) && gp_unit_make(&u, src, true, errs);
    if (ok) {
        r.unit = make_key(&u, &c);
        gp_deps_text(&r, u.text);
        add_folders(&r, &u, &c);
        gp_cpu_loads(src->entry);
        ok = find(&r, &l, errs) || build(&u, &c, &r, cancel, &l, errs);
        gp_cpu_loads(NULL);
    }
    if (ok && !gp_source_writes_no_variable(src, l.data, l.bytes, errs)) {
        dlclose(l.dl);
        l.dl = NULL;
        ok = false;
    }
    *dl = l.dl;
    free(l.data);
    gp_deps_free(&r);
    gp_unit_free(&u);
    free(c.words), free(c.word);
    return ok;
}

/* DWARF 5: with a source from its input gcc 12 gives the lines of headers to the input. */
bool gp_cc_lines(const gp_unit *u, const char *dir, const char *to)
{
    static const char *const table[] = { "-g1", "-gdwarf-4", NULL };
    gp_errs ignored = { .n = 0 };
    compiler c;
    bool ok = find_compiler(&c, u->src, &ignored) && compile(u, &c, dir, to, table, NULL, &ignored);
    free(c.words), free(c.word);
    return ok;
}
