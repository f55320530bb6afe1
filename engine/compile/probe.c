/* probe.c - which files exist and how they begin: the table that the passes read, and
 * the code that looks at the files.
 *
 * Only regular files are opened, so that no pipe loses a byte and nobody waits for the
 * other end of a FIFO. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/path.h"
#include "compile/resolve.h"

/* ---- the table ------------------------------------------------------- */

const gp_probed *gp_probe_get(gp_probe *p, const char *path, bool glob)
{
    gp_table *t = &p->of[glob];
    const gp_entry *e = gp_table_find(t, path);
    if (e)
        return e->ptr;
    gp_probed *x = GP_NEW(p->arena, gp_probed, 1);
    x->path = gp_strdup(p->arena, path);
    x->glob = glob, x->most = p->most, x->left = p->most - p->seen;
    t->arena = p->arena;
    gp_table_put(t, x->path, 0)->ptr = x;
    p->look(p->arena, x);
    p->seen = p->most - x->left;
    return x;
}

/* ---- one file -------------------------------------------------------- */

int64_t gp_probe_read(const char *path, int64_t at, void *to, size_t n)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    size_t got = 0;
    ssize_t k = fd < 0 ? -1 : 1;
    while (k > 0 && got < n) {
        k = pread(fd, (char *)to + got, n - got, (off_t)at + (off_t)got);
        got += k > 0 ? (size_t)k : 0;
        k = k < 0 && errno == EINTR ? 1 : k;
    }
    int error = errno;
    if (fd >= 0)
        close(fd);
    errno = error;
    return k < 0 ? -1 : (int64_t)got;
}

int64_t gp_probe_size_of(const char *path)
{
    struct stat st;
    return stat(path, &st) || !S_ISREG(st.st_mode) ? -1 : st.st_size;
}

static void read_head(gp_arena *a, gp_file *f)
{
    size_t want = f->size < GP_PROBE_HEAD ? (size_t)f->size : GP_PROBE_HEAD;
    char *head = gp_alloc(a, want + 1);
    int64_t got = gp_probe_read(f->path, 0, head, want);
    f->error = got < 0 ? errno : 0;
    f->nhead = got < 0 ? 0 : (size_t)got;
    f->head = head;
}

static void look_at_file(gp_arena *a, gp_file *f, const char *path)
{
    struct stat st;
    f->path = path;
    f->head = "";
    if (!strcmp(path, "stdin") || !strcmp(path, "stdout"))
        f->kind = GP_FILE_STREAM;
    else if (stat(path, &st))
        f->error = errno;
    else if (S_ISDIR(st.st_mode))
        f->kind = GP_FILE_DIR;
    else if (!S_ISREG(st.st_mode))
        f->kind = GP_FILE_STREAM;
    else
        f->kind = GP_FILE_REGULAR, f->size = st.st_size, read_head(a, f);
    char byte;                         /* files of /proc say 0 bytes, those of /sys more than they have */
    if (f->kind == GP_FILE_REGULAR && (f->size ? !f->error && f->nhead < GP_PROBE_HEAD && (int64_t)f->nhead < f->size
                                               : gp_probe_read(path, 0, &byte, 1) > 0))
        f->kind = GP_FILE_STREAM;
}

/* ---- lists of files -------------------------------------------------- */

/* A glob that matches any text in place of the number; all other special characters are
 * escaped. */
static char *any_number(gp_arena *a, const char *pattern)
{
    char *out = gp_alloc(a, 2 * strlen(pattern) + 2), *o = out;
    for (const char *s = pattern; *s; s++) {
        size_t n = gp_path_conversion(s);
        if (n && s[n - 1] != 'n') {
            *o++ = s[n - 1] == 'd' ? '*' : '%', s += n - 1;
            continue;
        }
        if (strchr("*?[\\", *s))
            *o++ = '\\';
        *o++ = *s;
    }
    *o = 0;
    return out;
}

/* A folder that is there is meant by its name, whatever characters that has: they are escaped. */
static const char *by_folder(gp_arena *a, const char *pattern)
{
    char *out = gp_alloc(a, 2 * strlen(pattern) + 1), *folder = gp_strdup(a, pattern), *o = out;
    const char *from = pattern;
    struct stat st;
    for (char *slash = folder; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = 0;
        bool is_there = slash == folder || (!stat(folder, &st) && S_ISDIR(st.st_mode));
        if (!is_there)
            break;
        for (; from < pattern + (slash - folder); *o++ = *from++)
            if (strchr("*?[\\{,}", *from))
                *o++ = '\\';
    }
    strcpy(o, from);
    return out;
}

struct numbered { uint64_t number; const char *path; };

static int by_number(const void *a, const void *b)
{
    const struct numbered *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

/* Digits count as the whole number they are: a9 stands before a10, and a09 between a8 and a10. */
static int by_name(const void *a, const void *b)
{
    static const char digits[] = "0123456789";
    const char *const x = *(const char *const *)a, *const y = *(const char *const *)b, *p = x, *q = y;
    while (*p && *q) {
        size_t m = strspn(p, digits), n = strspn(q, digits);
        if (!m || !n) {
            if (*p != *q)
                break;
            p++, q++;
            continue;
        }
        for (; m > 1 && *p == '0'; m--)
            p++;
        for (; n > 1 && *q == '0'; n--)
            q++;
        int differ = m != n ? (m > n) - (m < n) : memcmp(p, q, m);
        if (differ)
            return differ;
        p += m, q += n;
    }
    return *p != *q ? (unsigned char)*p - (unsigned char)*q : strcmp(x, y);
}

/* Keeps those of the paths that have a number, from the lowest on. */
static int keep_numbered(gp_arena *a, const char *pattern, const char **path, int n)
{
    struct numbered *v = GP_NEW(a, struct numbered, n);
    int count = 0;
    for (int i = 0; i < n; i++)
        if (gp_path_match(pattern, path[i], &v[count].number))
            v[count++].path = path[i];
    qsort(v, (size_t)count, sizeof *v, by_number);
    for (int i = 0; i < count; i++)
        path[i] = v[i].path;
    return count;
}

struct list { const char **path; int n; };

static void copy_list(gp_arena *a, const glob_t *g, struct list *l)
{
    l->path = GP_NEW(a, const char *, g->gl_pathc);
    for (; l->n < (int)g->gl_pathc; l->n++)
        l->path[l->n] = gp_strdup(a, g->gl_pathv[l->n]);
}

/* What glob() was short of on this thread. */
static _Thread_local int shortage;

/* A folder that one has not enough to look into may hold matches; others are passed over. */
static int is_short(const char *folder, int error)
{
    bool is = error == ENOMEM || error == EMFILE || error == ENFILE;
    shortage = is ? error : shortage;
    return is;
}

/* How many more names glob() may read on this thread, and whether it wanted more; it has no
 * argument of ours. */
static _Thread_local int left;
static _Thread_local bool refused;

static void *open_folder(const char *path)
{
    errno = ENOTDIR;
    refused |= !left;
    return left ? opendir(path) : NULL;
}

static struct dirent *next_name(void *folder)
{
    struct dirent *e = left ? readdir(folder) : NULL;
    refused |= !left;
    left -= e != NULL;
    return e;
}

static void close_folder(void *folder)
{
    closedir(folder);
}

/* As glob(), until x->left names were seen; then x->cut. */
static int bounded_glob(const char *pattern, gp_probed *x, glob_t *g)
{
    bool choice = !gp_path_has_number(x->path) && gp_path_has_choice(pattern);         /* beside a number: none */
    int flags = GLOB_NOSORT | (choice ? GLOB_BRACE : 0);
    if (!x->most)
        return glob(pattern, flags, is_short, g);
    g->gl_opendir = open_folder, g->gl_readdir = next_name, g->gl_closedir = close_folder;
    g->gl_stat = stat, g->gl_lstat = lstat;
    left = x->left, refused = false;
    int bad = glob(pattern, flags | GLOB_ALTDIRFUNC, is_short, g);
    x->left = left, x->cut = refused;
    return bad;
}

/* When the arena runs out of memory meanwhile, glob's memory is freed first. */
static void list_matches(gp_arena *a, const char *pattern, gp_probed *x, struct list *l)
{
    jmp_buf here, *there = a->oom;
    glob_t g = {0};
    if (setjmp(here)) {
        globfree(&g);
        a->oom = there;
        longjmp(*there, 1);
    }
    if (there)
        a->oom = &here;
    shortage = ENOMEM;
    int bad = bounded_glob(pattern, x, &g);
    if (!bad)
        copy_list(a, &g, l);
    a->oom = there;
    globfree(&g);
    if (bad && bad != GLOB_NOMATCH)
        x->file.error = shortage;
}

/* Removes twins from a sorted list: several texts of a choice may match one file. */
static int without_twins(const char **path, int n)
{
    int kept = n > 0;
    for (int i = 1; i < n; i++)
        if (strcmp(path[i], path[kept - 1]) != 0)
            path[kept++] = path[i];
    return kept;
}

static void look_at_glob(gp_arena *a, gp_probed *x)
{
    const char *pattern = x->path;
    struct list l = {0};
    bool numbered = gp_path_has_number(pattern);
    list_matches(a, numbered ? any_number(a, pattern) : by_folder(a, pattern), x, &l);
    if (l.n > 1)
        qsort(l.path, (size_t)l.n, sizeof *l.path, by_name);
    l.n = without_twins(l.path, l.n);
    if (numbered)
        l.n = keep_numbered(a, pattern, l.path, l.n);
    x->files = (gp_files){ l.n, l.path };
}

void gp_probe_look(gp_arena *a, gp_probed *x)
{
    if (x->glob)
        look_at_glob(a, x);
    else
        look_at_file(a, &x->file, x->path);
}
