/* record.c - see record.h. What a run may change itself (scripts, constants, states) is hashed before it begins, what
 * its sources read by a thread beside it; a file that changed meanwhile has no hash, and says so. A hash is SHA-256, of
 * a folder that of the names and the bytes of all files in it. */
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/json.h"
#include "base/memfile.h"
#include "base/path.h"
#include "base/thread.h"
#include "base/why.h"
#include "compile/inside.h"
#include "compile/resolve.h"
#include "device/cache.h"
#include "device/nice.h"
#include "report/files.h"
#include "report/record.h"
#include "run/pipeline.h"

typedef struct input {
    const char *path, *of;             /* of: "stage 'read'" */
    struct stat was;
    bool early, compared;              /* early: it is hashed before the run */
    gp_key sum, stamp;                 /* stamp: of a folder, before the run */
    char why[GP_WHY];                  /* "" once it is hashed */
} input;

typedef struct inputs {
    gp_arena *a;
    gp_table index;
    input *v; int n, cap;
} inputs;

struct gp_record {
    gp_arena arena;
    gp_pipeline *p;
    const gp_record_of *of;
    inputs in;
    const char *folder;                /* from the record's to that of relative paths */
    gp_outfile file;
    gp_environment here;
    pthread_t thread;
    bool threaded;
    atomic_bool stop;
};

/* ---- hashes ----------------------------------------------------------- */

static bool is_as_it_was(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size
        && !memcmp(&a->st_mtim, &b->st_mtim, sizeof a->st_mtim) && !memcmp(&a->st_ctim, &b->st_ctim, sizeof a->st_ctim);
}

/* Hashing goes on until this is set, or as long as the run is not to end. */
typedef struct until { const atomic_bool *stop; int (*level)(void); } until;

/* Adds the bytes of a regular file, which is to be as it was. */
static bool add_file(gp_hash *h, const char *path, const struct stat *was, const until *u, char why[GP_WHY])
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
static bool add_folder(gp_hash *h, const char *path, bool bytes, const until *u, char why[GP_WHY])
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

static void hash(input *in, const until *u)
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

static bool has_changed(const input *in)
{
    struct stat st;
    return stat(in->path, &st) || !is_as_it_was(&in->was, &st)
        || (S_ISDIR(st.st_mode) && strcmp(in->stamp.hex, stamp_of(in->path).hex));
}

/* ---- what a run reads ---------------------------------------------------- */

/* Was it there, with bytes that can be had again? A file at standard input may be read from its middle. */
static bool is_kept(const input *in)
{
    return (S_ISREG(in->was.st_mode) || S_ISDIR(in->was.st_mode)) && strcmp(in->path, "/dev/stdin");
}

static void add(inputs *all, const char *path, const char *of, bool early)
{
    gp_entry *e = gp_table_find(&all->index, path);
    if (e) {
        all->v[e->n].early |= early;
        return;
    }
    gp_table_put(&all->index, path, all->n);
    input *in = GP_PUSH(all->a, all->v, all->n, all->cap);
    *in = (input){ .path = path, .of = of, .early = early };
    if (stat(path, &in->was))
        gp_why(in->why, errno == ENOENT ? "was not there" : "cannot be read: %s", gp_strerror(errno));
    else if (!is_kept(in))
        gp_why(in->why, "is a stream");
    else
        gp_why(in->why, "was not hashed");
}

static void list(inputs *all, const gp_pipeline *p)
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

/* As the file would write it. */
static const char *from_folder(const gp_pipeline *p, const char *path)
{
    const char *dir = p->spec->dir;
    size_t n = strlen(dir);
    bool in = n && strcmp(dir, ".") && !strncmp(path, dir, n) && (path[n] == '/' || dir[n - 1] == '/');
    return in ? path + n + (path[n] == '/') : path;
}

static bool names_time(const gp_node *n)
{
    if (!n || n->kind == GP_SCALAR)
        return n && strstr(n->text, "frame.time");
    for (int i = 0; i < n->n; i++)
        if (names_time(n->item[i]) || (n->kind == GP_MAP && !strcmp(n->key[i]->text, "rotate_time")))
            return true;
    return false;
}

/* Does it take the times of frames, which sources take from the clock? */
static bool asks_time(const gp_graph *g, const gp_stage *s)
{
    bool keeps = false;
    for (int i = 0; i < g->nmetadata; i++)
        keeps |= !strcmp(g->metadata[i], "time");
    return names_time(s->node) || (s->writes && (keeps || strstr(s->writes, "%t")));
}

/* What no second run has again; NULL: nothing. */
static const char *lost(gp_arena *a, const gp_graph *g, const gp_stage *s, int ranks)
{
    return asks_time(g, s) ? gp_format(a, "stage '%s' takes the times of frames, which are those of the clock", s->name)
         : s->each_rank && s->nreads && ranks > 1
               ? gp_format(a, "what other ranks read for stage '%s' is not compared", s->name)
         : !s->nin && s->kind && !s->nreads && !s->by_number && !gp_is_carry(s)
               ? gp_format(a, "what stage '%s' takes in is in no file", s->name)
         : gp_is_leaky(s) || s->deadline_ns ? gp_format(a, "stage '%s' drops frames by the clock", s->name) : NULL;
}

/* ---- where it ran ---------------------------------------------------------- */

static void look_around(gp_environment *e, const gp_pipeline *p, const gp_record_of *of)
{
    gp_pipeline_info is;
    gp_pipeline_about(p, &is);
    gp_environment_read(e, is.device, of->commit);
}

enum { FACTS = 8 };
typedef struct fact { const char *name, *value; } fact;

/* What is compared. */
static void facts(const gp_environment *e, const gp_record_of *of, fact all[FACTS])
{
    const fact here[FACTS] = {
        { "gpipe", GP_VERSION }, { "commit", e->commit }, { "scripts", of->scripts }, { "libc", gnu_get_libc_version() },
        { "cpu", e->cpu }, { "gpu", e->gpu }, { "driver", e->driver }, { "cuda", e->toolkit },
    };
    memcpy(all, here, sizeof here);
}

/* Libraries are told by the names of their files, which have their versions. */
static int put_library(struct dl_phdr_info *info, size_t size, void *json)
{
    char *real = strstr(info->dlpi_name, ".so") ? realpath(info->dlpi_name, NULL) : NULL;
    const char *so = real ? strstr(real, ".so.") : NULL;
    if (so && so[4])
        gp_json_str(json, NULL, real);
    free(real);
    return 0;
}

/* ---- checking ------------------------------------------------------------- */

#define SAY(at, code, ...) gp_fail(errs, code, (at), __VA_ARGS__)

static void compare_facts(const gp_node *map, const gp_pipeline *p, const gp_record_of *of, gp_errs *errs)
{
    fact is[FACTS];
    gp_environment here;
    const gp_node *libraries = gp_node_list(map, "libraries"), *was;
    look_around(&here, p, of);
    facts(&here, of, is);
    for (int i = 0; i < FACTS; i++)
        if ((was = gp_node_get(map, is[i].name)) && was->kind == GP_SCALAR && strcmp(was->text, is[i].value))
            SAY(was->at, GP_E_WARN, "the recorded run had %s '%s', this one has '%s': its bytes may differ", is[i].name,
                was->text, is[i].value);
    for (int i = 0; libraries && i < libraries->n; i++)
        if (access(libraries->item[i]->text, F_OK))
            SAY(libraries->item[i]->at, GP_E_WARN, "the recorded run had the library '%s', which is not here: bytes "
                "may differ", libraries->item[i]->text);
}

/* One file of the record, whose path is `here` now, beside what is read now. */
static void compare_file(const gp_node *n, const char *here, input *in, const until *u, gp_errs *errs)
{
    const char *was = gp_node_text(n, "sha256"), *why = gp_node_text(n, "lacks"), *path = gp_node_text(n, "path");
    if (!*was && !strcmp(why, "was not there")) {
        if (in && is_kept(in))
            SAY(n->at, GP_E_MISMATCH, "'%s' is there now, and was not when the run was recorded", path);
        return;
    }
    if (!in || !is_kept(in)) {
        if (*was)
            SAY(n->at, GP_E_MISMATCH, "'%s', which the recorded run read, %s", path,
                access(here, F_OK) ? "is not there any more" : in ? "is a stream now" : "is not read any more");
        else
            SAY(n->at, GP_E_WARN, "'%s' %s: this run cannot be the same", path, why);
        return;
    }
    if (!*was) {
        SAY(n->at, GP_E_WARN, "whether '%s' is what the recorded run read is not known: it %s", path, why);
        return;
    }
    double size = gp_node_number(n, "size");
    if (S_ISREG(in->was.st_mode) && size >= 0 && (off_t)size != in->was.st_size) {
        SAY(n->at, GP_E_MISMATCH, "'%s' is not what the recorded run read: it had %.0f bytes, and has %lld", path, size,
            (long long)in->was.st_size);
        return;
    }
    hash(in, u);
    if (*in->why)
        SAY(n->at, GP_E_MISMATCH, "'%s' %s", path, in->why);
    else if (strcmp(was, in->sum.hex))
        SAY(n->at, GP_E_MISMATCH, "'%s' is not what the recorded run read: its SHA-256 was %s, and is %s", path, was,
            in->sum.hex);
}

/* By its name, or another name of the same file: the pipeline may name it without its folder. */
static input *find(const inputs *all, const char *path)
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

static void compare_files(const gp_node *files, const gp_pipeline *p, inputs *all, const until *u, gp_errs *errs)
{
    list(all, p);
    for (int i = 0; i < files->n; i++) {
        const char *here = gp_path_from(all->a, p->spec->dir, gp_node_text(files->item[i], "path"));
        input *in = find(all, here);
        compare_file(files->item[i], here, in, u, errs);
        if (in)
            in->compared = true;
    }
    for (int i = 0; i < all->n; i++)
        if (!all->v[i].compared && all->v[i].was.st_mode)
            SAY(files->at, GP_E_MISMATCH, "%s reads '%s', too, which the recorded run did not", all->v[i].of,
                all->v[i].path);
}

/* What is left of the text without the record, so that edits of it are seen. */
static gp_key rest_of(gp_arena *a, const gp_pipeline *p)
{
    size_t len = 0;
    gp_hash h;
    const char *text = gp_recorded_text(a, p->text, p->len, "{}", &len);
    gp_hash_begin(&h);
    gp_hash_add(&h, text, len);
    return gp_hash_end(&h);
}

bool gp_record_check(const gp_pipeline *p, const gp_record_of *of, gp_errs *errs)
{
    const gp_node *map = p->recorded->map, *files = gp_node_list(map, "files"), *n;
    int failed = errs->failed;
    if (!map)
        return true;
    GP_ARENA(a);
    GP_IF_OOM(&a)
        return gp_no_memory(errs);
    if ((n = gp_node_get(map, "text")) && strcmp(n->text, rest_of(&a, p).hex))
        SAY(n->at, GP_E_WARN, "this file was edited since the run was recorded: this run may be another");
    if (files)
        compare_files(files, p, &(inputs){ .a = &a }, &(until){ .level = of->level }, errs);
    else
        SAY(map->at, GP_E_WARN, "'recorded' has no 'files': whether this run reads what that did is not known");
    compare_facts(map, p, of, errs);
    if ((n = gp_node_get(map, "outcome")) && strcmp(n->text, gp_outcome_text(GP_DONE)))
        SAY(n->at, GP_E_WARN, "the recorded run did not come to its end (%s, %s frames): this one goes on "
            "as far as it can", n->text, gp_node_text(map, "frames"));
    if ((n = gp_node_get(map, "ranks")) && gp_node_number(map, "ranks") != of->ranks)
        SAY(n->at, GP_E_WARN, "the recorded run had %s ranks, this one has %d: its bytes may differ", n->text, of->ranks);
    const gp_node *lacks = gp_node_list(map, "lost");
    for (int i = 0; lacks && i < lacks->n; i++)
        SAY(lacks->item[i]->at, GP_E_WARN, "%s: this run may be another", lacks->item[i]->text);
    return errs->failed == failed;
}

/* ---- opening ----------------------------------------------------------------- */

#define USAGE(errs, ...) gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, __VA_ARGS__)

static void *hash_main(void *arg)
{
    gp_record *r = arg;
    gp_thread_nice(GP_PRIORITY_LOW);
    for (int i = 0; i < r->in.n && !atomic_load(&r->stop); i++)
        if (!r->in.v[i].early && is_kept(&r->in.v[i]))
            hash(&r->in.v[i], &(until){ .stop = &r->stop });
    return NULL;
}

/* The way from one folder to another, both without links. */
static const char *way(gp_arena *a, const char *from, const char *to)
{
    size_t same = 0;
    for (size_t i = 0; (i == 0 || (from[i - 1] && from[i - 1] == to[i - 1])); i++)
        if ((!from[i] || from[i] == '/') && (!to[i] || to[i] == '/'))
            same = i;
    const char *out = "";
    for (const char *s = from + same; (s = strchr(s, '/')) && s[1]; s++)
        out = gp_format(a, "%s../", out);
    const char *rest = to + same + (to[same] == '/');
    return *rest ? gp_format(a, "%s%s", out, rest) : *out ? gp_strndup(a, out, strlen(out) - 1) : "";
}

static bool find_folder(gp_record *r, gp_errs *errs)
{
    const char *path = r->of->path;
    size_t n = gp_path_folder(path);
    char *from = realpath(n ? gp_strndup(&r->arena, path, n) : ".", NULL);
    char *to = realpath(r->p->spec->dir, NULL);
    if (from && to)
        r->folder = way(&r->arena, from, to);
    free(from), free(to);
    return r->folder || gp_fail(errs, GP_E_USAGE, (gp_loc){ .file = path }, "no way leads from here to the folder of "
                                "the pipeline: %s", gp_strerror(errno));
}

static bool is_text(const char *s)
{
    size_t left = s ? strlen(s) : 0, n = 1;
    unsigned code;
    for (; left && (n = gp_utf8(s, left, &code)); s += n, left -= n)
        ;
    return n > 0;
}

/* YAML has no other texts. */
static bool check_texts(const gp_record *r, gp_errs *errs)
{
    const gp_recorded *is = r->p->recorded;
    bool ok = is_text(r->folder) || USAGE(errs, "--record: the name of the pipeline's folder is not UTF-8");
    for (int i = 0; ok && i < r->in.n; i++)
        ok = is_text(r->in.v[i].path) || USAGE(errs, "--record: the name '%s' of a file that %s reads is not UTF-8",
                                                  r->in.v[i].path, r->in.v[i].of);
    for (int i = 0; ok && i < is->nset; i++)
        ok = is_text(is->set[i]) || USAGE(errs, "--record: --set %s is not UTF-8", is->set[i]);
    for (int i = 0; ok && i < is->nasked; i++)
        ok = is_text(is->asked[i].value) || USAGE(errs, "--record: the value of '%s' in the environment is not UTF-8",
                                                     is->asked[i].name);
    return ok;
}

static bool begin(gp_record *r, gp_errs *errs)
{
    const char *path = r->of->path;
    char why[GP_WHY];
    size_t n;
    GP_IF_OOM(&r->arena)
        return gp_no_memory(errs);
    r->in.a = &r->arena;
    list(&r->in, r->p);
    r->file.needs_folder = true;
    if (!*path || !strcmp(path, "-"))
        return USAGE(errs, "--record names a file, as in 'run.yaml', not '%s'", path);
    if (!gp_pipeline_writes(r->p, "--record", path, errs) || !find_folder(r, errs) || !check_texts(r, errs))
        return false;
    if (!gp_recorded_text(&r->arena, r->p->text, r->p->len, "{}", &n))
        return USAGE(errs, "--record: '%s' has no place for a key 'recorded' at its top", r->p->graph->file);
    if (!gp_outfile_open(&r->file, path, why))
        return gp_fail(errs, GP_E_USAGE, (gp_loc){ .file = path }, "%s", why);
    for (int i = 0; i < r->in.n; i++)
        if (r->in.v[i].early && is_kept(&r->in.v[i]))
            hash(&r->in.v[i], &(until){ .level = r->of->level });
        else if (S_ISDIR(r->in.v[i].was.st_mode))
            r->in.v[i].stamp = stamp_of(r->in.v[i].path);
    look_around(&r->here, r->p, r->of);
    r->threaded = !gp_thread_start(&r->thread, hash_main, r);
    r->arena.oom = NULL;
    return true;
}

gp_record *gp_record_open(gp_pipeline *p, const gp_record_of *of, gp_errs *errs)
{
    gp_record *r = calloc(1, sizeof *r);
    if (!r)
        return GP_NULL(gp_no_memory(errs));
    r->p = p, r->of = of;
    if (begin(r, errs))
        return r;
    gp_record_drop(r);
    return NULL;
}

const char *gp_record_temporary(const gp_record *r)
{
    return r && r->file.open && !r->file.in_place ? r->file.tmp : NULL;
}

/* ---- writing ----------------------------------------------------------------- */

static void put_files(gp_json *j, const gp_record *r, const inputs *all)
{
    GP_JSON_EACH(j, "files", i, all->n) {
        const input *in = &all->v[i];
        gp_json_put(j, "{path: %s, of: %s", from_folder(r->p, in->path), in->of);
        if (is_kept(in) && S_ISREG(in->was.st_mode))
            gp_json_int(j, "size", in->was.st_size);
        if (*in->why)
            gp_json_str(j, "lacks", in->why);
        else if (!in->early && has_changed(in))
            gp_json_str(j, "lacks", "changed while the run went on");
        else
            gp_json_str(j, "sha256", in->sum.hex);
        gp_json_close(j, '}');
    }
}

static void put_included(gp_json *j, const gp_record *r)
{
    gp_table seen = { .arena = (gp_arena *)&r->arena };
    gp_json_open(j, "included", '[');
    for (const gp_inside *in = r->p->spec->insides; in; in = in->next)
        if (in->at.line && in->opaque && in->text && !gp_table_find(&seen, in->path)) {
            gp_table_put(&seen, in->path, 0);
            gp_json_put(j, "{path: %s", from_folder(r->p, in->path));
            gp_json_strn(j, "text", in->text, in->len);
            gp_json_close(j, '}');
        }
    gp_json_close(j, ']');
}

/* Of the source that had most. */
static gp_account frames_of(const gp_pipeline *p)
{
    gp_account most = { .in = 0 };
    int n = gp_accounts(p, NULL, 0);
    gp_account *a = calloc((size_t)n + 1, sizeof *a);
    for (int i = a ? gp_accounts(p, a, n) - 1 : -1; i >= 0; i--)
        most = a[i].in >= most.in ? a[i] : most;
    free(a);
    return most;
}

static void put(gp_json *j, gp_record *r, gp_outcome outcome)
{
    const gp_pipeline *p = r->p;
    const gp_recorded *is = p->recorded;
    const gp_graph *g = p->graph;
    fact has[FACTS];
    const char *why;
    facts(&r->here, r->of, has);
    gp_json_open(j, NULL, '{');
    for (int i = 0; i < FACTS; i++)
        gp_json_str(j, has[i].name, has[i].value);
    gp_json_put(j, "began: %s, outcome: %s, frames: %ju, ranks: %d, text: %s", r->here.date, gp_outcome_text(outcome),
                frames_of(p).out, r->of->ranks, rest_of(&r->arena, r->p).hex);
    if (*r->folder)
        gp_json_str(j, "folder", r->folder);
    gp_json_strs(j, "set", is->set, is->nset);
    if (is->env.date) {
        char date[64], zone[64];
        strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", is->env.date);
        strftime(zone, sizeof zone, "%z %Z", is->env.date);
        gp_json_str(j, "date", gp_format(&r->arena, "%s.%09d %s", date, is->env.nanoseconds, zone));
    }
    gp_json_open(j, "environment", '{');
    for (int i = 0; i < is->nasked; i++)
        gp_json_str(j, is->asked[i].name, is->asked[i].value);
    gp_json_close(j, '}');
    put_included(j, r);
    gp_json_open(j, "libraries", '[');
    dl_iterate_phdr(put_library, j);
    gp_json_close(j, ']');
    GP_JSON_EACH(j, "lost", i, g->nstages)
        if ((why = lost(&r->arena, g, &g->stage[i], r->of->ranks)))
            gp_json_str(j, NULL, why);
    put_files(j, r, &r->in);
    gp_json_close(j, '}');
}

typedef struct text { const char *is; size_t n; } text;

static bool write_text(void *arg, FILE *to)
{
    const text *t = arg;
    return fwrite(t->is, 1, t->n, to) <= t->n;
}

static bool finish(gp_record *r, gp_outcome outcome, gp_errs *errs)
{
    gp_memfile m;
    text t;
    size_t n;
    if (!gp_memfile_open(&m))
        return gp_no_memory(errs);
    char *volatile value = NULL;
    GP_IF_OOM(&r->arena) {
        free(value);
        return gp_no_memory(errs);
    }
    put(&(gp_json){ .f = m.f }, r, outcome);
    value = gp_memfile_close(&m, &n);
    if (!value)
        return gp_no_memory(errs);
    value[n - 1] = 0;                  /* the end of the line */
    t.is = gp_recorded_text(&r->arena, r->p->text, r->p->len, value, &t.n);
    free(value);
    r->arena.oom = NULL;
    if (!t.is)
        return gp_fail(errs, GP_E_RUN, (gp_loc){ .file = r->of->path }, "the run cannot be recorded: a name is too "
                       "long for YAML");
    gp_report_put(&r->file, write_text, &t, errs);
    return true;
}

void gp_record_close(gp_record *r, gp_outcome outcome, gp_errs *errs)
{
    if (!r)
        return;
    if (outcome != GP_DONE)
        atomic_store(&r->stop, true);
    if (!r->threaded)
        hash_main(r);
    while (r->threaded && pthread_tryjoin_np(r->thread, NULL)) {
        if (r->of->level())
            atomic_store(&r->stop, true);
        nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
    }
    r->threaded = false;
    if (outcome == GP_DONE || frames_of(r->p).in)    /* else it did not begin */
        finish(r, outcome, errs);
}

void gp_record_drop(gp_record *r)
{
    if (!r)
        return;
    atomic_store(&r->stop, true);
    if (r->threaded)
        pthread_join(r->thread, NULL);
    gp_outfile_drop(&r->file);
    gp_arena_free(&r->arena);
    free(r);
}
