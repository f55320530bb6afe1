/* files.c - no stage writes a file that one reads, that another writes first, or that it has written, as far as the
 * paths tell: the pass looks at no file. What it cannot see (links, other spellings of a folder,
 * numbers beside a %n, a later file of another stage's) is refused when the file is opened, see
 * base/filetable.h. */
#include <string.h>
#include "base/path.h"
#include "compile/resolve.h"

typedef struct input { const char *path, *plain, *who, *name; } input;

typedef struct files {
    gp_resolving *r;
    input *input; int ninputs, cap;    /* filled when they are needed first */
    gp_table read;             /* plain paths -> their place in `input` */
    gp_table first;            /* plain paths of the first files that stages write -> the stage */
    char plain[PATH_MAX];      /* the one that was asked for last */
} files;

/* "" of one that is too long for any file. */
static const char *plain(files *f, const char *path)
{
    return strlen(path) < PATH_MAX ? gp_path_plain(f->plain, path) : "";
}

/* What is no regular file is left to the run, which may find that it is everybody's. */
static void refuse(files *f, const gp_stage *to, const char *path, const char *who, const char *name)
{
    if (gp_probe_get(f->r->probe, path, false)->file.kind == GP_FILE_STREAM)
        return;
    AT(f->r, gp_node_at(to->node, to->writes_opt, to->at), "stage '%s': '%s' would replace '%s', "
       "which %s'%s' reads: give it a folder or a name of its own", to->name, to->writes, path, who, name);
}

/* The most numbers that stage `to` can give to files. */
static uint64_t most_frames(const gp_graph *g, const gp_stage *to)
{
    uint64_t most = 0;
    for (int i = 0; i < g->nstages; i++) {
        if (!gp_comes_from(to, i))
            continue;
        if (!g->stage[i].known.frames)
            return UINT64_MAX;
        if ((uint64_t)g->stage[i].known.frames > most)
            most = (uint64_t)g->stage[i].known.frames;
    }
    return most;
}

/* Checks a numbered path without %n. */
static void check_numbered(files *f, const gp_stage *to)
{
    const char *pattern = gp_strdup(f->r->arena, plain(f, to->writes));
    bool numbered = gp_path_has_number(pattern);
    uint64_t number, from = (uint64_t)to->writes_from, most = numbered ? most_frames(f->r->graph, to) : 0;
    for (int k = 0; k < f->ninputs; k++)
        if (gp_path_match(pattern, f->input[k].plain, &number)
            && (!numbered || (number >= from && number - from < most))) {
            refuse(f, to, f->input[k].path, f->input[k].who, f->input[k].name);
            return;
        }
}

static void add_inputs(files *f, const char *const *path, int n, const char *who, const char *name)
{
    for (int k = 0; k < n; k++) {
        const char *is = gp_strdup(f->r->arena, plain(f, path[k]));
        gp_table_put(&f->read, is, f->ninputs);
        *GP_PUSH(f->r->arena, f->input, f->ninputs, f->cap) = (input){ path[k], is, who, name };
    }
}

/* All files that the pipeline reads. */
static void list_inputs(files *f)
{
    const gp_graph *g = f->r->graph;
    f->read.arena = f->r->arena;
    add_inputs(f, (const char *const[]){ g->file }, 1, "", "gpipe");
    for (int i = 0; i < g->nstages; i++)
        add_inputs(f, g->stage[i].reads, g->stage[i].nreads, "stage ", g->stage[i].name);
    for (int i = 0; i < g->nprologue; i++)
        add_inputs(f, g->prologue[i].reads, g->prologue[i].nreads, "stage ", g->prologue[i].name);
    for (int i = 0; i < g->nbuffers; i++)
        if (g->buffer[i].path)
            add_inputs(f, (const char *const[]){ g->buffer[i].path }, 1, "buffer ", g->buffer[i].name);
}

const gp_stage *gp_only_source(const gp_graph *g, const gp_stage *st)
{
    const gp_stage *only = NULL;
    for (int i = 0; i < g->nstages; i++) {
        if (only && gp_comes_from(st, i))
            return NULL;
        only = gp_comes_from(st, i) ? &g->stage[i] : only;
    }
    return only;
}

int gp_first_namesake(gp_arena *a, const gp_stage *st, int n, int *of)
{
    gp_table seen = { .arena = a };
    for (int k = 0; k < n; k++) {
        size_t len;
        const char *stem = gp_path_stem(st->reads[k], &len);
        *of = (int)gp_table_put(&seen, gp_strndup(a, stem, len), k)->n;
        if (*of != k)
            return k;
    }
    return -1;
}

/* A path without a number: frames that would all be one file, and two files of one name in two folders. Where a stage
 * of the host, or one that regroups, may leave frames out, that is seen when it runs. */
static void check_one_file(files *f, const gp_stage *to)
{
    const gp_graph *g = f->r->graph;
    gp_loc at = gp_node_at(to->node, to->writes_opt, to->at);
    const gp_stage *from = gp_only_source(g, to);
    for (int i = 0; i < g->nstages; i++)
        if (g->stage[i].nin && g->stage[i].nout && (!g->stage[i].device || g->stage[i].regroups))
            return;
    if (!from || from->known.frames < 2 || (!from->nreads && gp_path_has_name(to->writes)))
        return;
    if (from->nreads < 2 || !gp_path_has_name(to->writes)) {
        AT(f->r, at, "stage '%s': '%s' is one file, and stage '%s' makes %lld frames: "
           "put %%05d into the path", to->name, to->writes, from->name, (long long)from->known.frames);
        return;
    }
    int was, n = from->nreads < from->known.frames ? from->nreads : (int)from->known.frames;
    int k = gp_first_namesake(f->r->arena, from, n, &was);
    if (k >= 0)
        AT(f->r, at, "stage '%s': '%s' is one file for both '%s' and '%s': put %%05d into the path", to->name, to->writes,
           from->reads[was], from->reads[k]);
}

/* Checks a path with %n: the names are those of the files that are read. */
static void check_named(files *f, const gp_stage *to)
{
    const gp_graph *g = f->r->graph;
    char made[PATH_MAX], name[NAME_MAX + 1], why[GP_WHY];
    for (int i = 0; i < g->nstages; i++) {
        if (!gp_comes_from(to, i))
            continue;
        for (int k = 0; k < g->stage[i].nreads; k++) {
            size_t n;
            const char *stem = gp_path_stem(g->stage[i].reads[k], &n);
            if (n > NAME_MAX)
                continue;
            memcpy(name, stem, n);
            name[n] = 0;
            if (!gp_path_expand(made, to->writes, 0, name, why))
                continue;
            int from = gp_table_index(&f->read, plain(f, made));
            if (from >= 0) {
                refuse(f, to, made, f->input[from].who, f->input[from].name);
                return;
            }
        }
    }
}

/* Two patterns are two spellings (gp_shape_writes), and yet may begin with one file. */
static void check_first(files *f, int stage)
{
    const gp_graph *g = f->r->graph;
    const gp_stage *to = &g->stage[stage];
    char made[PATH_MAX], why[GP_WHY];
    if (to->any_length || to->writes_from == INT64_MAX || gp_path_has_name(to->writes)
        || !gp_path_expand(made, to->writes, (uint64_t)to->writes_from, "", why))
        return;
    const char *path = gp_strdup(f->r->arena, plain(f, made));
    const gp_stage *other = &g->stage[gp_table_put(&f->first, path, stage)->n];
    if (other != to)
        AT(f->r, gp_node_at(to->node, to->writes_opt, to->at), "stage '%s': '%s' begins with '%s', which is written "
           "by stage '%s' too: give each a path of its own", to->name, to->writes, made, other->name);
}

/* A state may begin with the file that it is saved to. */
static void check_saved(files *f, const gp_buffer *b)
{
    const gp_graph *g = f->r->graph;
    const char *path = gp_strdup(f->r->arena, plain(f, b->save));
    uint64_t number;
    for (int k = 0; k < f->ninputs; k++)
        if (!strcmp(f->input[k].plain, path) && strcmp(f->input[k].name, gp_format(f->r->arena, "%s.init", b->name))) {
            AT(f->r, b->save_at, "'save' of the state '%s': '%s' would replace what %s'%s' reads: give it a name of its own",
               b->name, b->save, f->input[k].who, f->input[k].name);
            return;
        }
    for (int i = 0; i < g->nstages; i++)
        if (g->stage[i].writes && gp_path_match(gp_strdup(f->r->arena, plain(f, g->stage[i].writes)), path, &number)) {
            AT(f->r, b->save_at, "'save' of the state '%s': '%s' may be written by stage '%s' too: give each a path of its own",
               b->name, b->save, g->stage[i].name);
            return;
        }
}

void gp_check_files(gp_resolving *r)
{
    files f = { .r = r, .first.arena = r->arena };
    const gp_graph *g = r->graph;
    for (int i = 0; i < g->nbuffers; i++)
        if (g->buffer[i].save) {
            if (!f.input)
                list_inputs(&f);
            check_saved(&f, &g->buffer[i]);
        }
    for (int i = 0; i < g->nstages; i++) {
        const gp_stage *to = &g->stage[i];
        if (!to->writes)
            continue;
        if (!f.input)
            list_inputs(&f);
        check_first(&f, i);
        if (to->file_each && !gp_path_has_number(to->writes))
            check_one_file(&f, to);
        if (!gp_path_has_name(to->writes))
            check_numbered(&f, to);
        else if (!gp_path_has_number(to->writes))
            check_named(&f, to);
    }
}
