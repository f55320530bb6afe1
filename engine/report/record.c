/* record.c - see record.h. */
#include <errno.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/json.h"
#include "base/memfile.h"
#include "base/path.h"
#include "base/thread.h"
#include "compile/inside.h"
#include "compile/resolve.h"
#include "device/nice.h"
#include "report/files.h"
#include "report/inputs.h"
#include "report/record.h"

struct gp_record {
    gp_arena arena;
    gp_pipeline *p;
    const gp_record_of *of;
    gp_inputs in;
    const char *folder;                /* from the record's to that of relative paths */
    gp_outfile file;
    gp_environment here;
    pthread_t thread;
    bool threaded;
    atomic_bool stop;
};

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
static void compare_file(const gp_node *n, const char *here, gp_input *in, const gp_until *u, gp_errs *errs)
{
    const char *was = gp_node_text(n, "sha256"), *why = gp_node_text(n, "lacks"), *path = gp_node_text(n, "path");
    why = *why ? why : "has no 'sha256'";
    if (!*was && !strcmp(why, "was not there")) {
        if (in && gp_input_is_kept(in))
            SAY(n->at, GP_E_MISMATCH, "'%s' is there now, and was not when the run was recorded", path);
        return;
    }
    if (!in || !gp_input_is_kept(in)) {
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
    gp_input_hash(in, u);
    if (*in->why)
        SAY(n->at, GP_E_MISMATCH, "'%s' %s", path, in->why);
    else if (strcmp(was, in->sum.hex))
        SAY(n->at, GP_E_MISMATCH, "'%s' is not what the recorded run read: its SHA-256 was %s, and is %s", path, was,
            in->sum.hex);
}

static void compare_files(const gp_node *files, const gp_pipeline *p, gp_inputs *all, const gp_until *u, gp_errs *errs)
{
    gp_inputs_list(all, p);
    for (int i = 0; i < files->n; i++) {
        const char *here = gp_path_from(all->a, p->spec->dir, gp_node_text(files->item[i], "path"));
        gp_input *in = gp_inputs_find(all, here);
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
        compare_files(files, p, &(gp_inputs){ .a = &a }, &(gp_until){ .level = of->level }, errs);
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
    gp_inputs_hash_late(&r->in, &(gp_until){ .stop = &r->stop });
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

/* YAML has no other texts. */
static bool is_text(gp_errs *errs, const char *what, const char *s)
{
    size_t left = s ? strlen(s) : 0, n = 1;
    unsigned code;
    for (const char *at = s; left && (n = gp_utf8(at, left, &code)); at += n, left -= n)
        ;
    return n || USAGE(errs, "--record: %s '%s' is not UTF-8", what, s);
}

static bool check_texts(const gp_record *r, gp_errs *errs)
{
    const gp_recorded *is = r->p->recorded;
    bool ok = is_text(errs, "the name of the pipeline's folder", r->folder);
    for (int i = 0; ok && i < r->in.n; i++)
        ok = is_text(errs, gp_format(r->in.a, "the name of a file that %s reads,", r->in.v[i].of), r->in.v[i].path);
    for (int i = 0; ok && i < is->nset; i++)
        ok = is_text(errs, "--set", is->set[i]);
    for (int i = 0; ok && i < is->nasked; i++)
        ok = is_text(errs, gp_format(r->in.a, "the variable %s of the environment,", is->asked[i].name), is->asked[i].value);
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
    gp_inputs_list(&r->in, r->p);
    r->file.needs_folder = true;
    if (!*path || !strcmp(path, "-"))
        return USAGE(errs, "--record names a file, as in 'run.yaml', not '%s'", path);
    if (!gp_pipeline_writes(r->p, "--record", path, errs) || !find_folder(r, errs) || !check_texts(r, errs))
        return false;
    if (!gp_recorded_text(&r->arena, r->p->text, r->p->len, "{}", &n))
        return USAGE(errs, "--record: '%s' has no place for a key 'recorded' at its top", r->p->graph->file);
    if (!gp_outfile_open(&r->file, path, why))
        return gp_fail(errs, GP_E_USAGE, (gp_loc){ .file = path }, "%s", why);
    gp_inputs_hash_early(&r->in, &(gp_until){ .level = r->of->level });
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

static void put_files(gp_json *j, const gp_record *r, const gp_inputs *all)
{
    GP_JSON_EACH(j, "files", i, all->n) {
        const gp_input *in = &all->v[i];
        gp_json_put(j, "{path: %s, of: %s", from_folder(r->p, in->path), in->of);
        if (gp_input_is_kept(in) && S_ISREG(in->was.st_mode))
            gp_json_int(j, "size", in->was.st_size);
        const char *lacks = gp_input_lacks(in);
        gp_json_str(j, lacks ? "lacks" : "sha256", lacks ? lacks : in->sum.hex);
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
