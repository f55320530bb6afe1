/* fits.c - may a run go on under another plan? What differs between the two pipelines, and what of that can change
 * while a run goes on.
 *
 *   knobs     depths, streams, batch, batch_wait, latency, workers, launch, sync, copies, priority, stall_timeout,
 *             and what becomes of frames that fail: always.
 *   stages    An option, a script or a kernel, where the stage keeps nothing from frame to frame: one on the device is
 *             set up for each plan, and one on the host is opened again. Any other stage has to say the same, so that
 *             what it keeps goes on: a source, a sink that keeps its frames, one whose frames take turns, one that
 *             carries a state or regroups frames.
 *   the rest  Stages, wires and types of buffers make the rings that frames wait in: they have to be the same.
 *
 * Options are compared as they stand, and by the vars that they name. Files are compared as both compilations saw them.
 * */
#include <ctype.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include "base/c_locale.h"
#include "compile/inside.h"
#include "run/paused.h"

/* ---- trees ------------------------------------------------------------- */

static bool is_among(const char *word, const char *const *list)
{
    for (; *list; list++)
        if (!strcmp(word, *list))
            return true;
    return false;
}

/* Where something is another: its place in b, and the key, or NULL for an item of a list. */
typedef struct spot { gp_loc at; const char *key; } spot;

static bool differs(const gp_node *a, const gp_node *b, spot *at);

/* The items of a map that are in one of both, but for `free` keys. */
static bool maps_differ(const gp_node *a, const gp_node *b, const char *const *free_keys, spot *at)
{
    for (int i = 0; i < a->n; i++) {
        const gp_node *other = gp_node_get(b, a->key[i]->text);
        if (is_among(a->key[i]->text, free_keys))
            continue;
        if (!other)                    /* it has no place in b */
            return true;
        if (differs(a->item[i], other, at)) {
            *at = (spot){ other->at, a->key[i]->text };
            for (int k = 0; k < b->n; k++)
                if (!strcmp(b->key[k]->text, at->key) && b->at.line && other->at.line)     /* else --set said it */
                    at->at = b->key[k]->at;
            return true;
        }
    }
    for (int i = 0; i < b->n; i++)
        if (!is_among(b->key[i]->text, free_keys) && !gp_node_get(a, b->key[i]->text)) {
            *at = (spot){ b->key[i]->at, b->key[i]->text };
            return true;
        }
    return false;
}

static bool differs(const gp_node *a, const gp_node *b, spot *at)
{
    static const char *const none[] = { NULL };
    if (a->kind == GP_MAP && b->kind == GP_MAP)
        return maps_differ(a, b, none, at);
    if ((a->inside && b->inside && strcmp(a->inside->dir, b->inside->dir)) || a->kind != b->kind || a->n != b->n || a->len != b->len || memcmp(a->text, b->text, a->len) != 0)
        return true;
    for (int i = 0; i < a->n; i++)
        if (differs(a->item[i], b->item[i], at))
            return true;
    return false;
}

/* Does the tree have this var in some text? */
static bool mentions(const gp_node *n, const char *var)
{
    const char *behind = var + strlen(var);
    while (behind > var && !strchr(".:", behind[-1]))  /* its name in an included file, or a copy */
        behind--;
    const char *full = n->inside || behind > var ? gp_inside_name(n->inside, behind) : var, *word = behind;
    size_t len = strlen(word);
    for (const char *p = n->text; (p = strstr(p, word)); p++) {
        bool before = p > n->text && (isalnum((unsigned char)p[-1]) || p[-1] == '_');
        if (!before && !isalnum((unsigned char)p[len]) && p[len] != '_' && full && !strcmp(full, var))
            return true;
    }
    for (int i = 0; i < n->n; i++)
        if (mentions(n->item[i], var))
            return true;
    return false;
}

/* ---- what differs ------------------------------------------------------ */

typedef struct fit {
    const gp_pipeline *p, *from;
    const gp_node *vars;       /* of p; NULL: none */
    bool *changed;             /* per var of p: it is another, or names one that is */
    gp_errs *errs;
} fit;

static bool find_changed_vars(fit *f)
{
    gp_arena a = { 0 };
    jmp_buf oom;
    a.oom = &oom;
    bool ok = !setjmp(oom);
    if (ok)
        gp_vars_changed(&a, gp_node_get(f->from->spec->root, "vars"), f->vars, f->changed);
    gp_arena_free(&a);
    return ok;
}

/* Does the tree name a var that is another? */
static bool changed_var(const fit *f, const gp_node *n, spot *at)
{
    for (int i = 0; f->vars && n && i < f->vars->n; i++)
        if (f->changed[i] && mentions(n, f->vars->key[i]->text)) {
            const gp_node *key = f->vars->key[i], *item = f->vars->item[i];
            *at = (spot){ item->at.line ? key->at : item->at, key->text };
            return true;
        }
    return false;
}

static const gp_file *seen(const gp_pipeline *p, const char *path)
{
    const gp_entry *e = p->probe ? gp_table_find(&p->probe->of[0], path) : NULL;
    return e ? &((const gp_probed *)e->ptr)->file : NULL;
}

/* Had the file other bytes when `from` was compiled? Of a large one the beginning and the size count. */
static bool file_changed(const gp_pipeline *p, const gp_pipeline *from, const char *path)
{
    const gp_file *was = seen(from, path), *now = seen(p, path);
    return was && now && (was->size != now->size || was->nhead != now->nhead || memcmp(was->head, now->head, now->nhead) != 0);
}

static const char *changed_file(const fit *f, const gp_stage *s)
{
    for (int i = 0; gp_deps_code(s) && i < s->nreads; i++)
        if (file_changed(f->p, f->from, s->reads[i]))
            return s->reads[i];
    return NULL;
}

/* ---- stages ------------------------------------------------------------ */

/* Why the stage has to stay as it is; NULL: it keeps nothing from frame to frame. */
static const char *must_stay(const gp_stage *s)
{
    return !s->nin                          ? "is a source"
         : gp_is_carry(s)                   ? s->states ? "is a state" : "carries frames"
         : s->state || s->kind->emit        ? "carries a state from frame to frame"
         : s->keeps_slots                   ? "keeps what it wrote into frames before"
         : !s->nout && !s->any_length       ? "keeps what it was given"
         : !s->device && s->serial          ? "may keep a state from frame to frame"
                                            : NULL;
}

/* Keys of any stage that are not the kind's. */
static const char *const engines[] = { "workers", "priority", "on_error", "max_dropped", "in", "out", "name", "use",
                                       NULL };

/* Does the stage say something else? */
static bool stage_changed(const fit *f, const gp_stage *was, const gp_stage *now, spot *at)
{
    *at = (spot){ now->node ? now->node->at : now->at, now->name };
    return (was->node && now->node && maps_differ(was->node, now->node, engines, at)) || changed_var(f, now->node, at);
}

static bool same_regroup(const gp_regroup *a, const gp_regroup *b)
{
    return a->step == b->step && a->repeat == b->repeat && a->take == b->take && a->back == b->back && a->make == b->make
        && a->stack == b->stack && a->split == b->split && a->drop_tail == b->drop_tail && a->every == b->every
        && a->drop_partial == b->drop_partial;
}

/* *again: it is to be opened again. */
static bool fits_stage(const fit *f, const gp_stage *was, const gp_stage *now, bool *again)
{
    const char *why = must_stay(now) ? must_stay(now) : must_stay(was), *file = changed_file(f, now);
    spot at;
    bool changed = stage_changed(f, was, now, &at);
    if (now->regroups && !now->kind->emit)
        return same_regroup(&was->regroup, &now->regroup)
            || gp_fail(f->errs, GP_E_SPEC, changed ? at.at : now->at, "stage '%s' takes and makes other frames than in the run, "
                       "which cannot change while it goes on", now->name);
    if (why && changed)
        return gp_fail(f->errs, GP_E_SPEC, at.at, "'%.60s' cannot change while the run goes on: stage '%s' %s", at.key,
                       now->name, why);
    if (why && file)
        return gp_fail(f->errs, GP_E_SPEC, now->at, "'%s' cannot change while the run goes on: stage '%s' %s", file, now->name,
                       why);
    bool workers = was->workers != now->workers;
    if (why && workers && now->kind->open && !now->kind->set_workers) {
        return gp_fail(f->errs, GP_E_SPEC, gp_node_at(now->node, "workers", now->at), "stage '%s' has %d worker%s in "
                       "the run, which cannot change while it goes on: set 'workers: %d'", now->name, was->workers,
                       was->workers == 1 ? "" : "s", was->workers);
    }
    *again = !why && now->kind->open && (changed || file || workers);
    return true;
}

static const char *buffer_name(const gp_graph *g, int i)
{
    return i < 0 ? "" : g->buffer[i].name;
}

static bool same_wires(const gp_graph *a, const gp_stage *s, const gp_graph *b, const gp_stage *t, bool inputs)
{
    int n = inputs ? s->nin : s->nout, m = inputs ? t->nin : t->nout;
    bool same = n == m;
    for (int i = 0; same && i < n; i++)
        same = !strcmp(buffer_name(a, inputs ? s->in[i] : s->out[i]), buffer_name(b, inputs ? t->in[i] : t->out[i]))
            && !strcmp(inputs ? s->in_name[i] : s->out_name[i], inputs ? t->in_name[i] : t->out_name[i]);
    return same;
}

static bool fits_wires(const fit *f, const gp_stage *was, const gp_stage *now)
{
    for (int inputs = 1; inputs >= 0; inputs--) {
        const char *key = inputs ? "in" : "out";
        if (!same_wires(f->from->graph, was, f->p->graph, now, inputs))
            return gp_fail(f->errs, GP_E_SPEC, gp_node_at(now->node, key, now->at), "'%s' of stage '%s' cannot change "
                           "while the run goes on", key, now->name);
    }
    return true;
}

static bool fits_stages(const fit *f)
{
    const gp_graph *a = f->from->graph, *b = f->p->graph;
    gp_loc at = gp_node_at(f->p->spec->root, "stages", (gp_loc){ .file = b->file });
    for (int i = 0; i < b->nstages; i++) {
        const gp_stage *now = &b->stage[i];
        if (i < a->nstages && a->ndigests == b->ndigests && a->stage[i].nparts != now->nparts)
            return gp_fail(f->errs, GP_E_SPEC, now->at, "stage '%s' would be another kernel than in the run: what is fused "
                           "(by 'fuse', and where a buffer has no depth of its own) cannot change while it goes on",
                           now->name);
        if (i >= a->nstages || strcmp(a->stage[i].name, now->name) != 0 || a->stage[i].kind != now->kind
            || a->stage[i].device != now->device)
            return gp_fail(f->errs, GP_E_SPEC, now->at, "stage '%s' is not at this place in the run: stages cannot be added, "
                           "taken out or moved while it goes on", now->name);
    }
    if (a->nstages > b->nstages)
        return gp_fail(f->errs, GP_E_SPEC, at, "stage '%s' is in the run: stages cannot be added, taken out or moved while it "
                       "goes on", a->stage[b->nstages].name);
    for (int i = 0; i < b->nstages; i++)
        if (!fits_wires(f, &a->stage[i], &b->stage[i]) || !fits_stage(f, &a->stage[i], &b->stage[i], &f->p->again[i]))
            return false;
    return true;
}

static bool fits_buffers(const fit *f)
{
    const gp_graph *a = f->from->graph, *b = f->p->graph;
    char was[GP_BOUNDS_TEXT], now[GP_BOUNDS_TEXT];
    for (int i = 0; i < b->nbuffers; i++) {
        const gp_buffer *x = i < a->nbuffers ? &a->buffer[i] : NULL, *y = &b->buffer[i];
        if (!x || strcmp(x->name, y->name) != 0 || gp_is_const(x) != gp_is_const(y))
            return gp_fail(f->errs, GP_E_SPEC, y->at, "buffer '%s' is another in the run: buffers cannot be added, taken out or "
                           "moved while it goes on", y->name);
        if (!gp_type_same(&x->type, &y->type) || x->varies != y->varies)
            return gp_fail(f->errs, GP_E_SPEC, y->at, "buffer '%s' is %s in the run and %s here: a shape cannot change while it "
                           "goes on", y->name, gp_bounds_text(&x->type, x->varies, was),
                           gp_bounds_text(&y->type, y->varies, now));
    }
    return true;
}

/* ---- plans --------------------------------------------------------------- */

/* The next task from the k-th on that is a stage. */
static const gp_task *next_stage(const gp_plan *p, const gp_segment *s, int *k)
{
    while (*k < s->ntasks && p->task[s->task[*k]].op != GP_TASK_STAGE)
        ++*k;
    return *k < s->ntasks ? &p->task[s->task[(*k)++]] : NULL;
}

/* Copies do not count: those of buffers that have equally many slots are one. */
static bool same_actor(const gp_plan *a, const gp_plan *b, int i)
{
    const gp_actor *x = &a->actor[i], *y = &b->actor[i];
    if (x->kind != y->kind)
        return false;
    if (x->kind == GP_ACTOR_HOST)
        return x->stage == y->stage;
    const gp_task *t, *u;
    int k = 0, m = 0;
    do {
        t = next_stage(a, &a->segment[x->segment], &k), u = next_stage(b, &b->segment[y->segment], &m);
    } while (t && u && t->stage == u->stage);
    return !t && !u;
}

static bool same_ring(const gp_ring *a, const gp_ring *b)
{
    bool same = a->buffer == b->buffer && a->place.device == b->place.device
             && a->place.index == b->place.index && a->place.lanes == b->place.lanes && a->producer == b->producer
             && a->segment == b->segment && a->nconsumers == b->nconsumers && a->bytes == b->bytes;
    for (int c = 0; same && c < a->nconsumers; c++)
        same = a->consumer[c] == b->consumer[c];
    return same;
}

static bool same_plan(const gp_plan *a, const gp_plan *b)
{
    bool same = a->nactors == b->nactors && a->nrings == b->nrings && a->nextras == b->nextras
             && a->graph->nstages == b->graph->nstages && a->unified == b->unified;
    for (int i = 0; same && i < a->nactors; i++)
        same = same_actor(a, b, i);
    for (int i = 0; same && i < a->nrings; i++)
        same = same_ring(&a->ring[i], &b->ring[i]);
    for (int i = 0; same && i < a->nextras; i++)
        same = a->extra[i].use == b->extra[i].use && a->extra[i].stage == b->extra[i].stage
            && (a->extra[i].use != GP_EXTRA_STATE || a->extra[i].bytes == b->extra[i].bytes);
    return same;
}

static bool fits_plan(const fit *f)
{
    const gp_graph *a = f->from->graph, *b = f->p->graph;
    const gp_node *root = f->p->spec->root;
    gp_loc file = { .file = b->file };
    bool same = a->nmetadata == b->nmetadata;
    for (int i = 0; same && i < a->nmetadata; i++)
        same = !strcmp(a->metadata[i], b->metadata[i]);
    if (!same)
        return gp_fail(f->errs, GP_E_SPEC, gp_node_at(root, "metadata", file), "'metadata' cannot change while the run "
                       "goes on");
    if (strcmp(a->device_name, b->device_name))
        return gp_fail(f->errs, GP_E_SPEC, gp_node_at(root, "device", file), "'device' cannot change while the run "
                       "goes on");
    return same_plan(f->from->plan, f->p->plan)
        || gp_fail(f->errs, GP_E_SPEC, file, "the plan has other segments than that of the run, which cannot change while it "
                   "goes on");
}

/* A pause closes the stages of the device, and those that fill its memory. */
static bool keeps_more(const fit *f)
{
    const gp_graph *g = f->p->graph;
    for (int i = 0; i < g->nstages; i++) {
        const gp_stage *s = &g->stage[i];
        if (s->variables)
            return !gp_fail(f->errs, GP_E_SPEC, s->at, "the kernel of stage '%s' has variables of its own, which a run "
                            "that pauses and goes on would lose", s->name);
        if (s->reads_device && s->serial)
            return !gp_fail(f->errs, GP_E_SPEC, s->at, "stage '%s' keeps a library open in the memory of the device, which a "
                            "run that pauses and goes on would close", s->name);
    }
    return false;
}

bool gp_paused_fits(gp_pipeline *p, const gp_pipeline *from, gp_errs *errs)
{
    fit f = { .p = p, .from = from, .vars = gp_node_get(p->spec->root, "vars"), .errs = errs };
    free(p->again);
    p->again = calloc((size_t)p->graph->nstages + 1, sizeof *p->again);
    f.changed = calloc((size_t)(f.vars ? f.vars->n : 0) + 1, sizeof *f.changed);
    if (p->graph->resume || from->graph->resume)
        return free(f.changed), gp_fail(errs, GP_E_RUN, p->graph->resume ? p->graph->resume_at : from->graph->resume_at, "a run "
                                        "with 'resume' cannot pause, nor be changed while it goes on");
    bool ok = (p->again && f.changed && (p == from || !f.vars || find_changed_vars(&f)))
           || gp_fail(errs, GP_E_RESOURCE, (gp_loc){ .file = p->graph->file }, "out of memory");
    ok = ok && !keeps_more(&f) && (p == from || (fits_stages(&f) && fits_buffers(&f) && fits_plan(&f)));
    free(f.changed);
    return ok;
}

/* ---- what differs, in words ---------------------------------------------- */

typedef struct list { char *text; size_t n, max; int items; } list;

static const char *cut(const char *value)
{
    return value && strlen(value) > 40 ? "..." : "";
}

static void add(list *l, const char *where, const char *key, const char *was, const char *now)
{
    size_t room = l->max > l->n ? l->max - l->n : 0;
    int n = snprintf(l->text + l->n, room, "%s%s%s%s%s%.40s%s%s%.40s%s", l->items++ ? ", " : "", where, *where ? "." : "",
                     key, was || now ? " " : "", was ? was : "", cut(was), now ? was ? " -> " : "= " : "", now ? now : "",
                     cut(now));
    l->n += (size_t)n < room ? (size_t)n : room ? room - 1 : 0;
}

static const char *scalar(const gp_node *n)
{
    return n->kind == GP_SCALAR ? n->text : "...";
}

static void list_maps(list *l, const char *where, const gp_node *was, const gp_node *now);

static void list_items(list *l, const char *where, const char *key, const gp_node *was, const gp_node *now)
{
    spot at;
    char deeper[160];
    if (was->kind == GP_MAP && now->kind == GP_MAP) {
        snprintf(deeper, sizeof deeper, "%s%s%s", where, *where ? "." : "", key);
        list_maps(l, deeper, was, now);
    } else if (differs(was, now, &at)) {
        bool block = was->kind != GP_SCALAR || now->kind != GP_SCALAR || strchr(was->text, '\n') || strchr(now->text, '\n');
        add(l, where, key, block ? NULL : scalar(was), block ? NULL : scalar(now));
    }
}

/* One that was not there: of a map all that is in it, as `gpipe set` names these. */
static void list_new(list *l, const char *where, const char *key, const gp_node *now)
{
    static const gp_node nothing = { .kind = GP_MAP };
    if (now->kind == GP_MAP && now->n)
        list_items(l, where, key, &nothing, now);
    else
        add(l, where, key, NULL, scalar(now));
}

static void list_stages(list *l, const gp_node *was, const gp_node *now)
{
    for (int i = 0; was && now && (i < now->n || i < was->n); i++) {
        const gp_node *of = i < now->n ? now->item[i] : was->item[i], *name = gp_node_get(of, "name");
        name = name ? name : gp_node_get(of, "use");
        const char *text = name ? name->text : "";
        if (i < now->n && i < was->n)
            list_items(l, "stages", text, was->item[i], of);
        else
            add(l, "stages", text, i < now->n ? "is new" : "left out", NULL);
    }
}

static void list_maps(list *l, const char *where, const gp_node *was, const gp_node *now)
{
    for (int i = 0; i < now->n; i++) {
        const gp_node *old = gp_node_get(was, now->key[i]->text);
        if (!*where && !strcmp(now->key[i]->text, "stages"))
            list_stages(l, old, now->item[i]);
        else if (old)
            list_items(l, where, now->key[i]->text, old, now->item[i]);
        else
            list_new(l, where, now->key[i]->text, now->item[i]);
    }
    for (int i = 0; i < was->n; i++)
        if (!gp_node_get(now, was->key[i]->text))
            add(l, where, was->key[i]->text, "left out", NULL);
}

/* Is it a file with stages, whose settings are compared? */
static bool is_included(const gp_pipeline *p, const char *path)
{
    const gp_inside *in = p->spec->insides;
    while (in && in->path != path)
        in = in->next;
    return in != NULL;
}

int gp_pipeline_changes(const gp_pipeline *p, const gp_pipeline *from, char *text, size_t max)
{
    GP_C_LOCALE;
    list l = { .text = text, .max = max };
    const char *path;
    *text = 0;
    list_maps(&l, "", from->spec->root, p->spec->root);
    for (int i = 1; (path = gp_pipeline_made_of(p, i)); i++)
        if (!is_included(p, path) && file_changed(p, from, path))
            add(&l, "", path, NULL, NULL);
    return l.items;
}

const char *gp_pipeline_made_of(const gp_pipeline *p, int i)
{
    const gp_graph *g = p->graph;
    if (!i--)
        return g->file;
    for (int k = 0; k < g->nstages + g->nprologue; k++) {
        const gp_stage *s = k < g->nstages ? &g->stage[k] : &g->prologue[k - g->nstages];
        if (gp_deps_code(s) && i < s->nreads)
            return s->reads[i];
        i -= gp_deps_code(s) ? s->nreads : 0;
    }
    for (int k = 0; k < g->nbuffers; k++)
        if (g->buffer[k].path && !i--)
            return g->buffer[k].path;
    for (const gp_inside *in = p->spec->insides; in; in = in->next)
        if (in->at.line && in->opaque && !i--)
            return in->path;
    return NULL;
}
