/* filetable.c - the files of one run, see filetable.h. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/filetable.h"
#include "base/path.h"
#include "base/table.h"

/* Files that are read. */
typedef struct readers {
    struct readers *next;
    const char *who;
    const char *const *path;
    int n;
    bool known;                /* are they in the table? */
} readers;

/* What is to be put on disk at the end. */
typedef struct unsynced {
    struct unsynced *next;
    const gp_filewriter *by;
    int fd;
    dev_t dev;
    int above;                 /* folders above that of the file */
    char path[];               /* "": all of the file system */
} unsynced;

typedef struct written {
    const gp_filewriter *by;
    uint64_t frame;
    bool open;                 /* it is written as it is; else a new file takes its name */
} written;

/* The numbers in the names of a writer's files. */
typedef struct gp_filenumbers {
    const char *base;          /* of a pattern whose last part has a number and nothing else
                                  has: that part; else NULL */
    bool began;                /* then it wrote numbers `first` to `last` in this folder */
    dev_t dev;
    ino_t ino;
    uint64_t first, last;
} gp_filenumbers;

struct gp_filetable {
    atomic_int holds;
    pthread_mutex_t lock;
    readers *readers;
    gp_filewriter *writers, **last_writer;
    unsynced *unsynced;
    _Atomic(gp_temporary *) temporaries;
    atomic_bool is_abandoned;
    gp_table names;            /* "dev:ino/name" -> written; both malloc'd */
    gp_table files;            /* "dev:ino" -> written, likewise: those that are open, and those
                                  that single names had before */
    gp_table read;             /* "dev:ino" -> who; the key malloc'd */
    gp_table folders;          /* "dev:ino/" and "dev:ino/pattern", malloc'd: those that were seen */
};

gp_filetable *gp_filetable_new(void)
{
    gp_filetable *t = calloc(1, sizeof *t);
    if (t) {
        pthread_mutex_init(&t->lock, NULL);
        t->last_writer = &t->writers;
    }
    return t;
}

void gp_filetable_hold(gp_filetable *t)
{
    atomic_fetch_add(&t->holds, 1);
}

void gp_filetable_free(gp_filetable *t)
{
    if (!t || atomic_fetch_sub(&t->holds, 1))      /* 0: nobody else has it */
        return;
    for (gp_entry *e = NULL; (e = gp_table_next(&t->names, e));)
        free((void *)e->name), free(e->ptr);
    for (gp_entry *e = NULL; (e = gp_table_next(&t->files, e));)
        free((void *)e->name), free(e->ptr);
    for (gp_entry *e = NULL; (e = gp_table_next(&t->read, e));)
        free((void *)e->name);
    for (gp_entry *e = NULL; (e = gp_table_next(&t->folders, e));)
        free((void *)e->name);
    gp_table_free(&t->folders);
    gp_table_free(&t->names);
    gp_table_free(&t->files);
    gp_table_free(&t->read);
    for (readers *r = t->readers, *next; r; r = next)
        next = r->next, free(r);
    for (unsynced *u = t->unsynced, *next; u; u = next)
        next = u->next, close(u->fd), free(u);
    for (gp_temporary *m = atomic_load(&t->temporaries), *next; m; m = next)
        next = m->next, free(m);
    for (gp_filewriter *w = t->writers, *next; w; w = next)
        next = w->next, free(w->replaced_path), free(w->numbers), free(w);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

bool gp_filetable_reads(gp_filetable *t, const char *who, const char *const *path, int n)
{
    readers *r = malloc(sizeof *r);
    if (!r)
        return false;
    *r = (readers){ t->readers, who, path, n, false };
    t->readers = r;
    return true;
}

gp_filewriter *gp_filetable_writer(gp_filetable *t, const char *who, gp_loc at,
                                   const char *pattern)
{
    size_t len = strlen(who) + 1;
    gp_filewriter *w = calloc(1, sizeof *w + len);
    if (!w || !(w->numbers = calloc(1, sizeof *w->numbers))) {
        free(w);
        return NULL;
    }
    size_t folder = gp_path_folder(pattern);
    w->one_folder = !memchr(pattern, '%', folder);
    bool plain = gp_path_has_number(pattern + folder) && !gp_path_has_name(pattern) && w->one_folder;
    w->table = t, w->who = memcpy(w + 1, who, len), w->at = at;
    w->numbers->base = plain ? pattern + folder : NULL;
    pthread_mutex_lock(&t->lock);
    *t->last_writer = w, t->last_writer = &w->next;
    pthread_mutex_unlock(&t->lock);
    return w;
}

const gp_filewriter *gp_filetable_writers(const gp_filetable *t)
{
    return t->writers;
}

/* ---- what is read ---------------------------------------------------- */

enum { ID = 40, KEY = ID + PATH_MAX };     /* a pattern may be as long as a path */

static void id_text(char id[ID], dev_t dev, ino_t ino)
{
    snprintf(id, ID, "%llx:%llx", (unsigned long long)dev, (unsigned long long)ino);
}

static void name_text(char key[KEY], dev_t dev, ino_t ino, const char *name)
{
    id_text(key, dev, ino);
    size_t n = strlen(key);
    snprintf(key + n, KEY - n, "/%s", name);
}

/* The entry of a key in a table of malloc'd ones; *fresh: it was not there. NULL: no
 * memory. */
static gp_entry *put_key(gp_table *t, const char *id, bool *fresh)
{
    gp_entry *e = gp_table_find(t, id);
    *fresh = !e;
    if (e)
        return e;
    char *key = strdup(id);
    e = key ? gp_table_put(t, key, 0) : NULL;
    if (!e)
        free(key);
    return e;
}

bool gp_filetable_is_new(gp_filewriter *w, dev_t dev, ino_t ino, const char *pattern)
{
    bool fresh = false;
    char key[KEY];
    name_text(key, dev, ino, pattern);
    pthread_mutex_lock(&w->table->lock);
    put_key(&w->table->folders, key, &fresh);
    pthread_mutex_unlock(&w->table->lock);
    return fresh;
}

bool gp_filetable_is_folder(gp_filewriter *w, const struct stat *folder)
{
    pthread_mutex_lock(&w->table->lock);
    if (w->one_folder && !w->placed && folder->st_mode)
        w->placed = true, w->dev = folder->st_dev, w->ino = folder->st_ino;
    bool is = !w->placed || (folder->st_mode && folder->st_dev == w->dev && folder->st_ino == w->ino);
    pthread_mutex_unlock(&w->table->lock);
    return is;
}

static bool look_at(gp_filetable *t, const char *who, const char *path, struct stat *st)
{
    char id[ID];
    bool fresh;
    if (stat(path, st) || !(S_ISREG(st->st_mode) || S_ISFIFO(st->st_mode) || S_ISDIR(st->st_mode)))
        return true;                   /* who reads a terminal or a socket may write it */
    id_text(id, st->st_dev, st->st_ino);
    gp_entry *e = put_key(&t->read, id, &fresh);
    if (fresh && e)
        e->ptr = (void *)who;
    return e;
}

static bool no_memory(char err[GP_WHY])
{
    return gp_why(err, GP_WHY_MEMORY);
}

static bool check_read(gp_filetable *t, const struct stat *old, char err[GP_WHY])
{
    struct stat st;
    char id[ID];
    for (readers *r = t->readers; r; r = r->next) {
        for (int i = 0; !r->known && i < r->n; i++)
            if (!look_at(t, r->who, r->path[i], &st))
                return no_memory(err);
        r->known = true;
    }
    id_text(id, old->st_dev, old->st_ino);
    const gp_entry *e = gp_table_find(&t->read, id);
    return !e || gp_why(err, "is read by %s: give it another name", (const char *)e->ptr);
}

/* Without memory it is taken for one. */
bool gp_filetable_is_read(gp_filewriter *w, const struct stat *st)
{
    char why[GP_WHY];
    pthread_mutex_lock(&w->table->lock);
    bool is = !check_read(w->table, st, why);
    pthread_mutex_unlock(&w->table->lock);
    return is;
}

/* ---- what is written ------------------------------------------------- */

/* Is the claim's folder that of the numbers? */
static bool is_in(const gp_filenumbers *n, const gp_fileclaim *c)
{
    return n->began && n->dev == c->dev && n->ino == c->ino;
}

static bool taken(const gp_filewriter *w, const gp_filewriter *by, uint64_t a, uint64_t b,
                  char err[GP_WHY])
{
    if (by != w)
        return gp_why(err, "is written by %s too: give each a path of its own", by->who);
    unsigned long long low = a < b ? a : b, high = a < b ? b : a;
    return gp_why(err, "is the name of both frame %llu and frame %llu: put %%05d into the path",
                  low, high);
}

/* Is it one of the numbers of another writer? */
static bool check_numbers(const gp_filewriter *w, const gp_fileclaim *c, char err[GP_WHY])
{
    uint64_t number;
    for (const gp_filewriter *o = w->table->writers; o; o = o->next)
        if (o != w && is_in(o->numbers, c) && gp_path_match(o->numbers->base, c->name, &number)
            && number >= o->numbers->first && number <= o->numbers->last)
            return taken(w, o, 0, 0, err);
    return true;
}

/* Is it a number of `w`, in its folder? Then it is noted. */
static bool extend(gp_filenumbers *n, const gp_fileclaim *c)
{
    char name[PATH_MAX], why[GP_WHY];
    if (!n->base || (n->began && !is_in(n, c))
        || !gp_path_expand(name, n->base, c->number, "", why) || strcmp(name, c->name))
        return false;
    if (!n->began)
        n->first = n->last = c->number;
    n->began = true, n->dev = c->dev, n->ino = c->ino;
    n->first = c->number < n->first ? c->number : n->first;
    n->last = c->number > n->last ? c->number : n->last;
    return true;
}

/* Notes what is written under a malloc'd key. */
static bool put(gp_table *t, const char *key, written is, char err[GP_WHY])
{
    char *name = strdup(key);
    written *now = malloc(sizeof *now);
    gp_entry *e = name && now ? gp_table_put(t, name, 0) : NULL;
    if (!e) {
        free(name), free(now);
        return no_memory(err);
    }
    *now = is;
    e->ptr = now;
    return true;
}

static const written *look_up(const gp_table *t, const char *key)
{
    const gp_entry *e = gp_table_find(t, key);
    return e ? e->ptr : NULL;
}

static bool claim(gp_filewriter *w, const gp_fileclaim *c, char err[GP_WHY])
{
    gp_filetable *t = w->table;
    bool there = c->old->st_mode;
    char key[KEY], old[ID];
    if (there && !check_read(t, c->old, err))
        return false;
    id_text(old, c->old->st_dev, c->old->st_ino);
    const written *is = there && t->files.n ? look_up(&t->files, old) : NULL;
    bool noted = is;
    if (is && is->open)
        return taken(w, is->by, is->frame, c->frame, err);
    if (!check_numbers(w, c, err))
        return false;
    if (!t->names.n && extend(w->numbers, c))
        return true;                   /* as it mostly is, and soon done */
    name_text(key, c->dev, c->ino, c->name);
    is = look_up(&t->names, key);
    if (is && is->by == w && is->frame == c->frame)
        return true;                   /* it is tried again */
    if (is)
        return taken(w, is->by, is->frame, c->frame, err);
    if (extend(w->numbers, c))
        return true;
    written now = { w, c->frame, c->adds && there };
    return put(&t->names, key, now, err) && (!there || noted || put(&t->files, old, now, err));
}

bool gp_filetable_is_left(const gp_filewriter *w, const char *name, uint64_t *number)
{
    const gp_filenumbers *n = w->numbers;
    const gp_fileclaim c = { .dev = n->dev, .ino = n->ino, .name = name };
    char key[KEY], why[GP_WHY];
    name_text(key, n->dev, n->ino, name);
    return n->began && gp_path_match(n->base, name, number) && *number > n->last
        && check_numbers(w, &c, why) && !look_up(&w->table->names, key);
}

bool gp_filetable_read(gp_filetable *t, const char *who, const char *path, char err[GP_WHY])
{
    struct stat st = { .st_mode = 0 };
    char key[ID];
    size_t len = strlen(who) + 1;
    readers *r = malloc(sizeof *r + len);
    if (!r)
        return no_memory(err);
    *r = (readers){ .who = memcpy(r + 1, who, len), .known = true };
    pthread_mutex_lock(&t->lock);
    r->next = t->readers, t->readers = r;
    bool ok = look_at(t, r->who, path, &st) || no_memory(err);
    id_text(key, st.st_dev, st.st_ino);
    const written *is = ok && st.st_mode ? look_up(&t->files, key) : NULL;
    pthread_mutex_unlock(&t->lock);
    return is ? gp_why(err, "is written by %s: give that another path", is->by->who) : ok;
}

static bool claim_open(gp_filewriter *w, const struct stat *st, uint64_t frame, char err[GP_WHY])
{
    char key[ID];
    if (S_ISCHR(st->st_mode))
        return true;
    if (!check_read(w->table, st, err))
        return false;
    id_text(key, st->st_dev, st->st_ino);
    const written *is = look_up(&w->table->files, key);
    if (is && is->open && is->by == w && is->frame == frame)
        return true;
    return is ? taken(w, is->by, is->frame, frame, err)
              : put(&w->table->files, key, (written){ w, frame, true }, err);
}

bool gp_filetable_claim_open(gp_filewriter *w, const struct stat *st, uint64_t frame,
                             char err[GP_WHY])
{
    pthread_mutex_lock(&w->table->lock);
    bool ok = claim_open(w, st, frame, err);
    pthread_mutex_unlock(&w->table->lock);
    return ok;
}

bool gp_filetable_claim(gp_filewriter *w, const gp_fileclaim *c, char err[GP_WHY])
{
    pthread_mutex_lock(&w->table->lock);
    bool ok = claim(w, c, err);
    pthread_mutex_unlock(&w->table->lock);
    return ok;
}

void gp_filetable_replaced(gp_filewriter *w, const char *path, uint64_t number)
{
    pthread_mutex_lock(&w->table->lock);
    if (!w->replaced++ || number < w->replaced_number) {
        free(w->replaced_path);
        w->replaced_path = strdup(path), w->replaced_number = number;
    }
    pthread_mutex_unlock(&w->table->lock);
}

/* ---- temporary files -------------------------------------------------- */

/* Nothing is taken off the list, so that a signal handler may walk it at any time. */
gp_temporary *gp_filetable_temporary(gp_filewriter *w)
{
    gp_temporary *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->by = w;
    pthread_mutex_lock(&w->table->lock);
    t->next = atomic_load(&w->table->temporaries);
    atomic_store(&w->table->temporaries, t);
    pthread_mutex_unlock(&w->table->lock);
    return t;
}

bool gp_temporary_note(gp_temporary *t, const char *path, const char *name)
{
    snprintf(t->path, sizeof t->path, "%s", path);
    snprintf(t->name, sizeof t->name, "%s", name);
    memset(t->older, 0, sizeof t->older);
    atomic_store(&t->is_worth, false);
    atomic_store(&t->whole, -1);
    atomic_store(&t->is_there, true);
    return !atomic_load(&t->by->table->is_abandoned);
}

void gp_filetable_abandon(gp_filetable *t)
{
    atomic_store(&t->is_abandoned, true);
    for (gp_temporary *m = atomic_load(&t->temporaries); m; m = m->next)
        gp_temporary_end(m);
}

bool gp_filetable_is_abandoned(const gp_filetable *t)
{
    return atomic_load(&t->is_abandoned);
}

/* ---- on disk --------------------------------------------------------- */

/* A second file of one file system needs no more. */
static bool is_noted(const gp_filetable *t, dev_t dev, const char *path)
{
    const unsynced *u = t->unsynced;
    while (u && (*u->path || u->dev != dev))
        u = u->next;
    return !path && u;
}

bool gp_filetable_sync_later(gp_filewriter *w, int fd, dev_t dev, const char *path, int above)
{
    gp_filetable *t = w->table;
    bool ok = true;
    pthread_mutex_lock(&t->lock);
    if (!is_noted(t, dev, path)) {
        unsynced *u = malloc(sizeof *u + (path ? strlen(path) : 0) + 1);
        int own = u ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
        ok = own >= 0;
        if (ok) {
            u->next = t->unsynced, u->by = w, u->fd = own, u->dev = dev;
            u->above = above;
            strcpy(u->path, path ? path : "");
            t->unsynced = u;
        } else {
            free(u);
        }
    }
    pthread_mutex_unlock(&t->lock);
    return ok;
}

bool gp_filetable_must_sync(const gp_filetable *t)
{
    return t->unsynced;
}

void gp_filetable_sync(gp_filetable *t, gp_errs *errs)
{
    char path[PATH_MAX];
    pthread_mutex_lock(&t->lock);
    const unsynced *u = t->unsynced;   /* more come before it */
    pthread_mutex_unlock(&t->lock);
    for (; u; u = u->next) {
        int bad = *u->path ? gp_sync_file(u->fd) : gp_sync_all(u->fd);
        snprintf(path, sizeof path, "%s", u->path);
        for (int i = 0; !bad && *u->path && i <= u->above; i++) {
            bad = gp_sync_folder(path);
            path[gp_path_folder(path) ? gp_path_folder(path) - 1 : 0] = 0;
        }
        if (bad)
            gp_fail(errs, GP_E_RUN, u->by->at, "%s: what was written may not be on disk: %s",
                    u->by->who, gp_strerror(bad));
    }
}
