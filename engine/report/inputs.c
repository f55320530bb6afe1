/* inputs.c - see inputs.h. What a run may change itself (scripts, constants, states) is hashed before it begins, what its
 * sources read by a thread beside it; a file that changed meanwhile has no hash, and says so. A hash is SHA-256, of a
 * folder that of the names and the bytes of all files in it. */
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <string.h>
#include <unistd.h>
#include "compile/resolve.h"
#include "report/inputs.h"

/* ---- hashes ----------------------------------------------------------- */

static bool is_as_it_was(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size
        && !memcmp(&a->st_mtim, &b->st_mtim, sizeof a->st_mtim) && !memcmp(&a->st_ctim, &b->st_ctim, sizeof a->st_ctim);
}

/* Adds the bytes of a regular file, which is to be as it was. */
static bool add_file(gp_hash *h, const char *path, const struct stat *was, const gp_until *u, char why[GP_WHY])
{
    enum { PART = 1 << 16 };
    char part[PART];
    struct stat st;
    ssize_t got = -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    bool same = fd >= 0 && !fstat(fd, &st) && is_as_it_was(was, &st), stopped = false;
    while (same && !(stopped = u->stop ? atomic_load(u->stop) : u->level && u->level())
           && ((got = read(fd, part, PART)) > 0 || (got < 0 && errno == EINTR)))
        gp_hash_add(h, part, got > 0 ? (size_t)got : 0);
    int error = fd < 0 || (same && got < 0) ? errno : 0;
    same = same && !fstat(fd, &st) && is_as_it_was(was, &st);
    if (fd >= 0)
        close(fd);
    return stopped ? gp_why(why, "was not hashed, as the run was broken off")
         : error ? gp_why(why, "cannot be read: %s", gp_strerror(error))
         : same || gp_why(why, "changed while the run went on");
}

typedef struct stamp { ino_t file; off_t size; struct timespec changed, renamed; } stamp;

static int by_name(const FTSENT **x, const FTSENT **y)
{
    return strcmp((*x)->fts_name, (*y)->fts_name);
}

/* `bytes`: what is in its files; else what tells whether one changed. */
static bool add_folder(gp_hash *h, const char *path, bool bytes, const gp_until *u, char why[GP_WHY])
{
    char *const paths[] = { (char *)path, NULL };
    FTS *t = fts_open(paths, FTS_LOGICAL | FTS_NOCHDIR, by_name);
    bool ok = t || gp_why(why, "cannot be read: %s", gp_strerror(errno));
    for (FTSENT *e; ok && (e = fts_read(t));) {
        gp_hash_text(h, e->fts_path + strlen(path));
        const struct stat *st = e->fts_statp;
        if (e->fts_info == FTS_F && bytes)
            ok = add_file(h, e->fts_path, st, u, why);
        else if (e->fts_info == FTS_F)
            gp_hash_add(h, &(stamp){ st->st_ino, st->st_size, st->st_mtim, st->st_ctim }, sizeof(stamp));
        else if (e->fts_info != FTS_D && e->fts_info != FTS_DP)
            ok = gp_why(why, "has '%.100s', which is no file that can be read", e->fts_name);
    }
    if (t)
        fts_close(t);
    return ok;
}

void gp_input_hash(gp_input *in, const gp_until *u)
{
    gp_hash h;
    gp_hash_begin(&h);
    bool ok = S_ISDIR(in->was.st_mode) ? add_folder(&h, in->path, true, u, in->why)
                                       : add_file(&h, in->path, &in->was, u, in->why);
    if (ok)
        in->sum = gp_hash_end(&h), *in->why = 0;
}

/* Of a folder, before and after a run; "": it cannot be read. */
static gp_key stamp_of(const char *path)
{
    char why[GP_WHY];
    gp_hash h;
    gp_hash_begin(&h);
    return add_folder(&h, path, false, NULL, why) ? gp_hash_end(&h) : (gp_key){ .hex = "" };
}

void gp_inputs_hash_early(gp_inputs *all, const gp_until *u)
{
    for (gp_input *in = all->v; in < all->v + all->n; in++)
        if (in->early && gp_input_is_kept(in))
            gp_input_hash(in, u);
        else if (S_ISDIR(in->was.st_mode))
            in->stamp = stamp_of(in->path);
}

void gp_inputs_hash_late(gp_inputs *all, const gp_until *u)
{
    for (gp_input *in = all->v; in < all->v + all->n && !(u->stop && atomic_load(u->stop)); in++)
        if (!in->early && gp_input_is_kept(in))
            gp_input_hash(in, u);
}

const char *gp_input_lacks(const gp_input *in)
{
    struct stat st;
    bool same = *in->why || in->early
        || (!stat(in->path, &st) && is_as_it_was(&in->was, &st)
            && (!S_ISDIR(st.st_mode) || !strcmp(in->stamp.hex, stamp_of(in->path).hex)));
    return *in->why ? in->why : same ? NULL : "changed while the run went on";
}

/* ---- what a run reads ---------------------------------------------------- */

bool gp_input_is_kept(const gp_input *in)
{
    return (S_ISREG(in->was.st_mode) || S_ISDIR(in->was.st_mode)) && strcmp(in->path, "/dev/stdin");
}

static void add(gp_inputs *all, const char *path, const char *of, bool early)
{
    gp_entry *e = gp_table_find(&all->index, path);
    if (e) {
        all->v[e->n].early |= early;
        return;
    }
    gp_table_put(&all->index, path, all->n);
    gp_input *in = GP_PUSH(all->a, all->v, all->n, all->cap);
    *in = (gp_input){ .path = path, .of = of, .early = early };
    if (stat(path, &in->was))
        gp_why(in->why, errno == ENOENT ? "was not there" : "cannot be read: %s", gp_strerror(errno));
    else if (!gp_input_is_kept(in))
        gp_why(in->why, "is a stream");
    else
        gp_why(in->why, "was not hashed");
}

void gp_inputs_list(gp_inputs *all, const gp_pipeline *p)
{
    const gp_graph *g = p->graph;
    const gp_plugin_info *plugin;
    all->index.arena = all->a;
    for (int i = 0; i < g->nstages + g->nprologue; i++) {
        const gp_stage *s = i < g->nstages ? &g->stage[i] : &g->prologue[i - g->nstages];
        for (int k = 0; k < s->nreads; k++)
            add(all, s->reads[k], gp_format(all->a, "stage '%s'", s->name), s->nin || gp_deps_code(s));
    }
    for (int i = 0; i < g->nbuffers; i++)
        if (g->buffer[i].path || g->buffer[i].missing)
            add(all, g->buffer[i].path ? g->buffer[i].path : g->buffer[i].missing,
                gp_format(all->a, "buffer '%s'", g->buffer[i].name), true);
    if (g->resume)
        add(all, g->resume, "'resume'", true);
    for (int i = 0; (plugin = gp_pipeline_plugin(p, i)); i++)
        add(all, plugin->file, gp_format(all->a, "plug-in '%s'", plugin->name), true);
}

gp_input *gp_inputs_find(const gp_inputs *all, const char *path)
{
    const gp_entry *e = gp_table_find(&all->index, path);
    struct stat st;
    if (e || stat(path, &st))
        return e ? &all->v[e->n] : NULL;
    for (int i = 0; i < all->n; i++)
        if (all->v[i].was.st_mode && all->v[i].was.st_dev == st.st_dev && all->v[i].was.st_ino == st.st_ino)
            return &all->v[i];
    return NULL;
}

