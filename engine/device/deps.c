/* deps.c - see deps.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include "base/memfile.h"
#include "device/deps.h"

/* What is kept of a file, behind its name: as long as it looks the same its contents are. */
typedef struct seen {
    int64_t device, inode, bytes, modified, changed;       /* times in ns */
    char sum[64];
} seen;

static int64_t ns(struct timespec t)
{
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* CLOCK_REALTIME is never behind the stamp of a file that has changed already, and
 * CLOCK_REALTIME_COARSE, which moves in steps, never before that of one that will change. */
static int64_t now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return ns(t);
}

static void add(char ***list, int *n, const char *path, size_t len, bool *lost)
{
    char **more = realloc(*list, sizeof *more * (size_t)(*n + 1));
    if (more)
        *list = more;
    if (more && (more[*n] = strndup(path, len)))
        (*n)++;
    else
        *lost = true;
}

void gp_deps_folder(gp_deps *r, const char *path, size_t n)
{
    add(&r->folder, &r->nfolders, path, n, &r->unknown);
}

void gp_deps_path(gp_deps *r, const char *path, size_t n)
{
    add(&r->path, &r->npaths, path, n, &r->unknown);
}

void gp_deps_free(gp_deps *r)
{
    for (int i = 0; i < r->nfolders; i++)
        free(r->folder[i]);
    for (int i = 0; i < r->npaths; i++)
        free(r->path[i]);
    free(r->folder), free(r->path);
}

void gp_deps_start(gp_deps *r)
{
    r->start = now(CLOCK_REALTIME);
    for (int i = 0; i < 100 && now(CLOCK_REALTIME_COARSE) <= r->start; i++)
        nanosleep(&(struct timespec){ .tv_nsec = 500000 }, NULL);
    r->unknown |= now(CLOCK_REALTIME_COARSE) <= r->start;      /* somebody set it back */
}

/* ---- what asks for files --------------------------------------------------- */

/* Behind a backslash at the end of a line, which goes on in the next. */
static const char *spliced(const char *p)
{
    for (const char *q; *p == '\\' && (q = p + 1 + strspn(p + 1, " \t\r"), *q == '\n');)
        p = q + 1;
    return p;
}

/* Comments and strings count too. */
static bool asks(const char *text)
{
    static const char word[] = "__has_include";
    for (const char *p = text; (p = strchr(p, '_')); p++) {
        const char *w = word;
        for (const char *q = p; *w && *(q = spliced(q)) == *w; q++)
            w++;
        if (!*w)
            return true;
    }
    return false;
}

void gp_deps_text(gp_deps *r, const char *text)
{
    r->unknown |= asks(text);
}

static bool in_folder(const char *path, const char *folder, size_t n)
{
    return !strncmp(path, folder, n) && (path[n] == '/' || (n && folder[n - 1] == '/'));
}

/* Does path i lie in a folder that is searched, or below one? */
static bool is_searched(const gp_deps *r, int i)
{
    bool yes = r->path[i][0] != '/';
    for (int k = 0; k < r->nfolders; k++)
        yes |= in_folder(r->path[i], r->folder[k], strlen(r->folder[k]));
    return yes;
}

/* A header of a toolkit or a library that is installed. */
static bool is_installed(const char *path)
{
    return !strncmp(path, "/usr/", 5) && strstr(path, "/include/");
}

/* ---- the key of the binary ----------------------------------------------- */

/* Brings *s up to date; reads file i only if it does not look as it did. False: it cannot be
 * read, or asks for others. */
static bool look_at(const gp_deps *r, int i, seen *s)
{
    const char *path = r->path[i];
    struct stat st;
    if (stat(path, &st))
        return false;
    seen new = { (int64_t)st.st_dev, (int64_t)st.st_ino, st.st_size, ns(st.st_mtim),
                 ns(st.st_ctim), "" };
    memcpy(new.sum, s->sum, sizeof new.sum);
    if (memcmp(&new, s, sizeof new) == 0)
        return true;
    char err[GP_WHY], *text;
    size_t bytes;
    gp_hash h;
    if (!(text = gp_slurp(path, GP_SOURCE_MAX, &bytes, err)))
        return false;
    gp_hash_begin(&h);
    gp_hash_add(&h, text, bytes);
    gp_key sum = gp_hash_end(&h);
    bool bad = is_searched(r, i) && !is_installed(path) && asks(text);
    free(text);
    if (bad)
        return false;
    memcpy(new.sum, sum.hex, sizeof new.sum);
    *s = new;
    return true;
}

/* Adds to `h` what lies in the folder under the name of a file that was read: under each
 * end of its path, since what the source called it is not known. *newest: the latest change. */
static void add_names(gp_hash *h, const char *folder, size_t n, const gp_deps *r, int64_t *newest)
{
    char at[PATH_MAX];
    struct stat st;
    if (n + 2 > sizeof at)
        return;
    memcpy(at, folder, n);
    at[n] = '\0';
    if (n && stat(at, &st))
        return;                        /* an option may name a folder that there is not */
    at[n] = '/';
    for (int i = 0; i < r->npaths; i++) {
        const char *name = strncmp(r->path[i], "/usr/", 5) ? NULL : strstr(r->path[i], "/include/");
        name = name ? name + strlen("/include/") : r->path[i];
        for (; name; name = strchr(name, '/')) {
            name += strspn(name, "/");
            size_t len = strlen(name);
            if (!len || n + 1 + len >= sizeof at)
                continue;
            memcpy(at + n + 1, name, len + 1);
            if (stat(at, &st) || S_ISDIR(st.st_mode))
                continue;
            gp_hash_text(h, at);
            if (ns(st.st_ctim) > *newest)
                *newest = ns(st.st_ctim);
        }
    }
}

/* The length of the folder of path i, if that is below one that is searched and no path
 * before it lies there: a header in quotes is looked for beside the file that includes it. */
static size_t new_folder(const gp_deps *r, int i)
{
    const char *slash = strrchr(r->path[i], '/');
    size_t n = slash ? (size_t)(slash - r->path[i]) : 0;
    if (!slash || !is_searched(r, i))
        return 0;
    for (int k = 0; k < i; k++) {
        const char *other = strrchr(r->path[k], '/');
        if (other && (size_t)(other - r->path[k]) == n && !memcmp(r->path[k], r->path[i], n))
            return 0;
    }
    return n;
}

/* False: a file is not there, cannot be read, or asks for others. */
static bool make_key(const gp_deps *r, seen *s, gp_key *key, int64_t *newest)
{
    gp_hash h;
    *newest = 0;
    gp_hash_begin(&h);
    gp_hash_text(&h, r->unit.hex);
    for (int i = 0; i < r->npaths; i++) {
        if (!look_at(r, i, &s[i]))
            return false;
        gp_hash_text(&h, r->path[i]);
        gp_hash_add(&h, s[i].sum, sizeof s[i].sum);
        if (s[i].changed > *newest)
            *newest = s[i].changed;
    }
    for (int i = 0; i < r->nfolders; i++)
        add_names(&h, r->folder[i], strlen(r->folder[i]), r, newest);
    for (int i = 0; i < r->npaths; i++) {
        size_t n = new_folder(r, i);
        if (n)
            add_names(&h, r->path[i], n, r, newest);
    }
    *key = gp_hash_end(&h);
    return true;
}

/* ---- the list of files --------------------------------------------------- */

static const char list_ext[] = ".reads";

static void store_list(const gp_deps *r, const seen *s, gp_errs *errs)
{
    gp_memfile m;
    size_t len;
    if (!gp_memfile_open(&m))
        return;
    for (int i = 0; i < r->npaths; i++) {
        fwrite(r->path[i], 1, strlen(r->path[i]) + 1, m.f);
        fwrite(&s[i], sizeof s[i], 1, m.f);
    }
    char *text = gp_memfile_close(&m, &len);
    if (text)
        gp_cache_store(&r->unit, list_ext, text, len, errs);
    free(text);
}

/* What was read the last time. False: it is not known. */
static bool find_list(gp_deps *r, seen **s, gp_errs *errs)
{
    void *data;
    size_t bytes;
    *s = NULL;
    if (!gp_cache_find(&r->unit, list_ext, &data, &bytes, errs))
        return false;
    bool ok = (*s = malloc(bytes + 1));    /* a record takes more than sizeof **s bytes */
    for (const char *p = data, *end = p + bytes; ok && p < end;) {
        size_t n = strnlen(p, (size_t)(end - p));
        ok = (size_t)(end - p) >= n + 1 + sizeof **s;
        if (!ok)
            break;
        memcpy(*s + r->npaths, p + n + 1, sizeof **s);
        gp_deps_path(r, p, n);
        p += n + 1 + sizeof **s;
        ok = !r->unknown;
    }
    free(data);
    return ok;
}

bool gp_deps_find(const gp_deps *r, const char *ext, void **data, size_t *bytes, gp_errs *errs)
{
    gp_deps known = { .unit = r->unit, .folder = r->folder, .nfolders = r->nfolders };
    seen *s = NULL;
    gp_key key;
    int64_t newest, start = now(CLOCK_REALTIME_COARSE);
    bool ok = !r->unknown && find_list(&known, &s, errs);
    if (ok) {
        size_t size = sizeof *s * (size_t)known.npaths;
        seen *were = malloc(size + 1);
        if (were)
            memcpy(were, s, size);
        ok = make_key(&known, s, &key, &newest) && gp_cache_find(&key, ext, data, bytes, errs);
        if (ok && were && memcmp(were, s, size) && newest < start)
            store_list(&known, s, errs);       /* so that they are not read again */
        free(were);
    }
    known.folder = NULL, known.nfolders = 0;
    gp_deps_free(&known);
    free(s);
    return ok;
}

void gp_deps_store(const gp_deps *r, const char *ext, const void *data, size_t bytes,
                    gp_errs *errs)
{
    seen *s = calloc((size_t)r->npaths + 1, sizeof *s);
    gp_key key;
    int64_t newest;
    if (s && !r->unknown && make_key(r, s, &key, &newest) && newest <= r->start
        && gp_cache_store(&key, ext, data, bytes, errs))
        store_list(r, s, errs);
    free(s);
}
