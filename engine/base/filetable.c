/* filetable.c - the files of one run, see filetable.h. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

typedef struct written { const gp_filewriter *by; uint64_t frame; } written;

struct gp_filewriter {
    gp_filewriter *next;
    gp_filetable *table;
    const char *who;
    const char *base;          /* of a pattern whose last part has a number and nothing else
                                  has: that part; else NULL */
    bool began;                /* then it wrote numbers `first` to `last` in this folder */
    dev_t dev;
    ino_t ino;
    uint64_t first, last;
};

struct gp_filetable {
    pthread_mutex_t lock;
    readers *readers;
    gp_filewriter *writers;
    gp_table names;            /* "dev:ino/name" -> written; both malloc'd */
    gp_table read;             /* "dev:ino" -> who; the key malloc'd */
};

gp_filetable *gp_filetable_new(void)
{
    gp_filetable *t = calloc(1, sizeof *t);
    if (t)
        pthread_mutex_init(&t->lock, NULL);
    return t;
}

void gp_filetable_free(gp_filetable *t)
{
    if (!t)
        return;
    for (gp_entry *e = NULL; (e = gp_table_next(&t->names, e));)
        free((void *)e->name), free(e->ptr);
    for (gp_entry *e = NULL; (e = gp_table_next(&t->read, e));)
        free((void *)e->name);
    gp_table_free(&t->names);
    gp_table_free(&t->read);
    for (readers *r = t->readers, *next; r; r = next)
        next = r->next, free(r);
    for (gp_filewriter *w = t->writers, *next; w; w = next)
        next = w->next, free(w);
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

gp_filewriter *gp_filetable_writer(gp_filetable *t, const char *who, const char *pattern)
{
    gp_filewriter *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    size_t folder = gp_path_folder(pattern);
    bool plain = gp_path_has_number(pattern + folder) && !gp_path_has_name(pattern)
              && !memchr(pattern, '%', folder);
    w->table = t, w->who = who, w->base = plain ? pattern + folder : NULL;
    pthread_mutex_lock(&t->lock);
    w->next = t->writers, t->writers = w;
    pthread_mutex_unlock(&t->lock);
    return w;
}

/* ---- what is read ---------------------------------------------------- */

enum { ID = 40, KEY = ID + NAME_MAX + 2 };

static void id_text(char id[ID], dev_t dev, ino_t ino)
{
    snprintf(id, ID, "%llx:%llx", (unsigned long long)dev, (unsigned long long)ino);
}

static bool look_at(gp_filetable *t, const readers *r)
{
    struct stat st;
    char id[ID];
    for (int i = 0; i < r->n; i++) {
        if (stat(r->path[i], &st) || !S_ISREG(st.st_mode))
            continue;
        id_text(id, st.st_dev, st.st_ino);
        if (gp_table_find(&t->read, id))
            continue;
        char *key = strdup(id);
        gp_entry *e = key ? gp_table_put(&t->read, key, 0) : NULL;
        if (!e) {
            free(key);
            return false;
        }
        e->ptr = (void *)r->who;
    }
    return true;
}

static bool no_memory(char err[GP_WHY])
{
    return gp_why(err, "does not fit in memory");
}

static bool check_read(gp_filetable *t, const struct stat *old, char err[GP_WHY])
{
    char id[ID];
    for (readers *r = t->readers; r; r = r->next) {
        if (!r->known && !look_at(t, r))
            return no_memory(err);
        r->known = true;
    }
    id_text(id, old->st_dev, old->st_ino);
    const gp_entry *e = gp_table_find(&t->read, id);
    return !e || gp_why(err, "is read by %s: give it another name", (const char *)e->ptr);
}

/* ---- what is written ------------------------------------------------- */

/* Is the claim's folder that of the numbers that `w` wrote? */
static bool is_in(const gp_filewriter *w, const gp_fileclaim *c)
{
    return w->began && w->dev == c->dev && w->ino == c->ino;
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
        if (o != w && is_in(o, c) && gp_path_match(o->base, c->name, &number)
            && number >= o->first && number <= o->last)
            return taken(w, o, 0, 0, err);
    return true;
}

/* Is it the next number of `w` in its folder? Then it is noted. */
static bool extend(gp_filewriter *w, const gp_fileclaim *c)
{
    char name[PATH_MAX], why[GP_WHY];
    if (!w->base || (w->began && !is_in(w, c))
        || !gp_path_expand(name, w->base, c->number, "", why) || strcmp(name, c->name))
        return false;
    if (!w->began)
        w->first = w->last = c->number;
    w->began = true, w->dev = c->dev, w->ino = c->ino;
    w->first = c->number < w->first ? c->number : w->first;
    w->last = c->number > w->last ? c->number : w->last;
    return true;
}

static bool claim(gp_filewriter *w, const gp_fileclaim *c, char err[GP_WHY])
{
    gp_filetable *t = w->table;
    char key[KEY];
    if (c->old->st_mode && !check_read(t, c->old, err))
        return false;
    id_text(key, c->dev, c->ino);
    size_t n = strlen(key);
    snprintf(key + n, sizeof key - n, "/%s", c->name);
    const gp_entry *e = gp_table_find(&t->names, key);
    const written *is = e ? e->ptr : NULL;
    if (is)
        return taken(w, is->by, is->frame, c->frame, err);
    if (!check_numbers(w, c, err))
        return false;
    if (extend(w, c))
        return true;
    char *name = strdup(key);
    written *now = malloc(sizeof *now);
    gp_entry *put = name && now ? gp_table_put(&t->names, name, 0) : NULL;
    if (!put) {
        free(name), free(now);
        return no_memory(err);
    }
    *now = (written){ w, c->frame };
    put->ptr = now;
    return true;
}

bool gp_filetable_claim(gp_filewriter *w, const gp_fileclaim *c, char err[GP_WHY])
{
    pthread_mutex_lock(&w->table->lock);
    bool ok = claim(w, c, err);
    pthread_mutex_unlock(&w->table->lock);
    return ok;
}
