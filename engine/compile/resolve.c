/* resolve.c - spec -> graph: vars, the keys at the top, and the order in which
 * the parts of resolve.h do their work. */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>
#include "base/path.h"
#include "compile/expr.h"
#include "compile/inside.h"
#include "compile/resolve.h"

/* ---- names ----------------------------------------------------------- */

bool gp_is_label(const char *s)
{
    bool ok = isalpha((unsigned char)*s) || *s == '_';
    for (; *s; s++)
        ok &= isalnum((unsigned char)*s) || *s == '_' || *s == '-';
    return ok;
}

bool gp_is_name(const char *s)
{
    return gp_is_label(s) && !strchr(s, '-');
}

bool gp_is_null(const gp_node *n)
{
    return n->kind == GP_SCALAR && !n->quoted
        && (!n->len || !strcmp(n->text, "null") || !strcmp(n->text, "~"));
}

/* ---- vars ------------------------------------------------------------ */

/* Each value is computed once, after those that it refers to. */
struct vars_now {
    gp_arena *arena;
    gp_vars *vars;
    gp_errs *scratch;
    int depth;
    bool deep;
    bool named;                /* set: the last evaluation that failed did so at a name */
    const gp_var *of;          /* set: the var of that name, see gp_var */
    const gp_inside *inside;   /* of the value that is worked out */
};

static void work_out(struct vars_now *now, gp_var *v);

static bool var_now(const gp_scope *s, const char *name, gp_num *out)
{
    struct vars_now *now = (struct vars_now *)s->arg;
    gp_var *v = (gp_var *)gp_var_find(now->vars, now->inside, name);
    if (v && v->state == GP_VAR_NEW)
        work_out(now, v);
    if (v && v->number) {
        *out = v->num;
        return true;
    }
    now->named = true;
    now->of = !v ? NULL : v->of ? v->of : v->unset || v->why ? v : NULL;
    return false;
}

static void work_out(struct vars_now *now, gp_var *v)
{
    gp_scope scope = { .var = var_now, .arg = now };
    if (now->depth == GP_VARS_DEEPEST) {
        now->deep = true;
        return;
    }
    const gp_inside *was = now->inside;
    now->depth++, now->inside = v->node->inside;
    v->state = GP_VAR_BUSY;
    now->named = false;
    v->number = !v->unset && gp_expr_keep(now->arena, v->node)
             && gp_eval(v->node, &scope, &v->num, now->scratch);
    v->deep = !v->number && now->deep;
    if (now->scratch->n && now->named)
        v->of = now->of;
    else if (now->scratch->n)
        v->why = gp_strdup(now->arena, now->scratch->e[0].msg);
    now->scratch->n = 0;
    v->state = GP_VAR_DONE;
    now->depth--, now->inside = was;
}

void gp_vars_read(gp_arena *a, const gp_env *env, const gp_node *map, gp_vars *vars, gp_errs *errs)
{
    static const gp_node none = { .kind = GP_MAP };
    *vars = (gp_vars){ .index.arena = a };
    if (map && map->kind != GP_MAP && !gp_is_null(map)) {
        gp_fail(errs, GP_E_SPEC, map->at, "'vars' must be a map, like {gain: 1.5}");
        return;
    }
    if (!map || map->kind != GP_MAP)
        map = &none;
    vars->map = map;
    vars->v = GP_NEW(a, gp_var, map->n + GP_OWN_VARS);
    for (int i = 0; i < map->n; i++) {
        const gp_node *key = map->key[i], *value = map->item[i];
        if (!key->inside && !gp_is_name(key->text))        /* else expand.c made it */
            gp_fail(errs, GP_E_SPEC, key->at, "'%.60s' is not a valid name for a variable; use letters, digits and _",
               key->text);
        else if (value->kind != GP_SCALAR)
            gp_fail(errs, GP_E_SPEC, value->at, "'%s' is a %s; a variable has a single value", key->text,
               value->kind == GP_LIST ? "list, which an option itself may have" : "map");
        else
            gp_table_put(&vars->index, key->text, vars->n),
            vars->v[vars->n++] = (gp_var){ .name = key->text, .node = value,
                                           .unset = gp_is_null(value) };
    }
    for (int i = 0; i < GP_OWN_VARS; i++) {            /* a name that the file gives is the file's */
        const char *name;
        int64_t value = gp_own_var(env, i, &name);
        if (gp_table_index(&vars->index, name) < 0) {
            gp_table_put(&vars->index, name, vars->n);
            vars->v[vars->n++] = (gp_var){ .name = name, .number = true, .state = GP_VAR_DONE,
                                           .num = { .is_int = true, .i = value, .f = (double)value } };
        }
    }
    struct vars_now now = { .arena = a, .vars = vars,
                            .scratch = GP_NEW(a, gp_errs, 1) };
    for (int i = 0; i < vars->n; i++)
        if (vars->v[i].state == GP_VAR_NEW)
            now.deep = false, work_out(&now, &vars->v[i]);
}

/* Of vars that say their type: is the value of it? */
static bool check_typed(gp_resolving *r)
{
    int failed = r->errs->failed;
    for (int i = 0; i < r->spec->ntyped; i++) {
        const gp_typed *t = &r->spec->typed[i];
        const gp_node *value = gp_node_get(r->vars.map, t->full);
        union { int64_t i; double f; bool b; const char *s; gp_dtype d; } field;
        r->read.stage = NULL, r->read.key = "type";
        int type = gp_read_word(&r->read, t->type, gp_var_types);
        if (type < 0 || !value || gp_is_null(value))
            continue;
        gp_opt o = { .name = t->name, .type = gp_var_type(type) };
        r->read.key = t->name;
        gp_opt_read(&r->read, &o, value, &field);
    }
    return r->errs->failed == failed;
}

/* For graph.scope: reads values that have been computed, writes nothing. */
static bool var_later(const gp_scope *s, const char *name, gp_num *out)
{
    const gp_var *v = gp_var_find(s->arg, NULL, name);
    if (v && v->number)
        *out = v->num;
    return v && v->number;
}

static void each_var(const gp_scope *s, gp_near *near)
{
    const gp_vars *vars = s->arg;
    for (int i = 0; i < vars->n; i++)
        if (vars->v[i].number)
            gp_near_try(near, vars->v[i].name);
}

/* ---- the keys at the top --------------------------------------------- */

static const gp_node *top(gp_resolving *r, const char *key)
{
    r->read.stage = NULL, r->read.key = key;
    return gp_node_get(r->spec->root, key);
}

static bool is_auto(const gp_node *n)
{
    return n->kind == GP_SCALAR && !strcmp(n->text, "auto");
}

/* A whole number, or `otherwise` for auto. */
static int whole(gp_resolving *r, const char *key, int otherwise)
{
    const gp_node *n = top(r, key);
    int64_t v = otherwise;
    if (n && !is_auto(n))
        gp_read_int(&r->read, n, 1, (int64_t)gp_key_find(gp_top_keys, key)->max, &v);
    return (int)v;
}

/* The node of a key that is read now, if there is one and it is a time that is not negative; `zero`: what 0 means. */
static const gp_node *read_duration(gp_resolving *r, const gp_node *n, int64_t *ns, const char *zero)
{
    if (!n || !gp_read_time(&r->read, n, ns))
        return NULL;
    return *ns >= 0 ? n : GP_NULL(AT(r, n->at, "'%s' must be 0 (%s) or more", r->read.key, zero));
}

static int word(gp_resolving *r, const char *key)
{
    const gp_node *n = top(r, key);
    int i = n ? gp_read_word(&r->read, n, gp_key_find(gp_top_keys, key)->choices) : 0;
    return i < 0 ? 0 : i;
}

/* The file's name without folder and extension. */
static const char *name_of(gp_arena *a, const char *file)
{
    const char *slash = strrchr(file, '/');
    const char *name = slash ? slash + 1 : file, *dot = strrchr(name, '.');
    return gp_strndup(a, name, dot && dot > name ? (size_t)(dot - name) : strlen(name));
}

/* No key is called `stages`. Is one meant to be, or is it below another? */
static bool has_stages_elsewhere(gp_resolving *r)
{
    const gp_node *root = r->spec->root;
    for (int i = 0; i < root->n; i++) {
        gp_near near = GP_NEAR(root->key[i]->text);
        gp_near_try(&near, "stages");
        if (*gp_near_text(&near))
            return true;                   /* that was said */
        for (int k = 0; k < root->item[i]->n && root->item[i]->kind == GP_MAP; k++)
            if (!strcmp(root->item[i]->key[k]->text, "stages"))
                return !AT(r, root->item[i]->key[k]->at, "'stages' stands below '%s'; write it in the first column, "
                           "beside that", root->key[i]->text);
    }
    return false;
}

static void read_top(gp_resolving *r)
{
    const gp_node *root = r->spec->root, *n;
    gp_graph *g = r->graph;
    for (int i = 0; i < root->n; i++) {
        gp_near near = gp_key_near(gp_top_keys, root->key[i]->text);
        if (!gp_key_find(gp_top_keys, root->key[i]->text) && strncmp(root->key[i]->text, "x-", 2))
            AT(r, root->key[i]->at, "a pipeline has no key '%s'%s", root->key[i]->text,
               gp_near_text(&near));
    }
    g->file = r->spec->file, g->dir = r->spec->dir;
    n = top(r, "pipeline");
    if (n && gp_node_get(n, "stages"))
        n = NULL;                          /* which is said */
    g->name = n ? gp_read_text(&r->read, n) : name_of(r->arena, g->file);
    g->depth = whole(r, "depth", 0);
    g->streams = whole(r, "streams", 0);
    g->batch = whole(r, "batch", 0);
    g->launch = (gp_launch_mode)word(r, "launch");
    g->sync = (gp_sync)word(r, "sync");
    g->copies = (gp_copies_said)word(r, "copies");
    g->fuse = word(r, "fuse") == 0;
    g->on_error = (gp_on_error)word(r, "on_error");
    g->stall_ns = 30000000000;
    read_duration(r, top(r, "stall_timeout"), &g->stall_ns, "never");
    if ((n = top(r, "batch_wait")) && gp_read_time(&r->read, n, &g->batch_wait_ns)) {
        if (g->batch_wait_ns < 0 || (double)g->batch_wait_ns > gp_key_find(gp_top_keys, "batch_wait")->max)
            AT(r, n->at, "'batch_wait' must be from 0 to 1s");
        else if (g->stall_ns > 0 && g->batch_wait_ns >= g->stall_ns)
            AT(r, n->at, "'batch_wait' must be less than 'stall_timeout'");
    }
    if ((n = read_duration(r, top(r, "latency"), &g->latency_ns, "any"))) {
        if (g->latency_ns && g->stall_ns > 0 && g->latency_ns >= g->stall_ns)
            AT(r, n->at, "'latency' must be less than 'stall_timeout'");
        else if (g->latency_ns && g->batch_wait_ns)
            AT(r, n->at, "'latency' chooses how long a launch waits: leave out 'batch_wait'");
        else if (g->latency_ns && g->launch == GP_LAUNCH_PERSISTENT)
            AT(r, n->at, "'latency' chooses what a launch takes, and with 'launch: persistent' there are no launches: "
               "leave out one of them");
    }
    read_duration(r, top(r, "deadline"), &g->deadline_ns, "none");
    if ((n = top(r, "metadata")))
        gp_metadata_read(r, n);
    const char *resume = (n = top(r, "resume")) ? gp_read_text(&r->read, n) : NULL;
    if (resume && *resume)
        g->resume = gp_read_path(&r->read, n), g->resume_at = n->at;
    if (g->resume && gp_path_folder(g->resume) == strlen(g->resume))
        AT(r, n->at, "'resume' names a file, not a folder");
    for (int i = 0; i < root->n && g->resume; i++)
        if (strcmp(root->key[i]->text, "recorded") != 0)       /* it has whole texts of files that were included */
            g->outside += gp_resume_outside(r->arena, root->item[i], r->read.env, r->errs);
    gp_priority_read(r, top(r, "priority"));
    gp_devices_read(r, top(r, "device"));
}

/* ---- stages: their own keys and options ------------------------------ */

static void no_effect(gp_resolving *r, const gp_node *n, const gp_rstage *st, const char *why)
{
    AT(r, n->at, "'%s' has no effect: stage '%s' %s", r->read.key, st->s.name, why);
}

static const gp_node *stage_key(gp_resolving *r, const gp_rstage *st, const char *key)
{
    r->read.stage = st->s.name, r->read.key = key;
    return gp_node_get(st->node, key);
}

/* "1%", "0.5%". */
static void read_part(gp_resolving *r, const gp_node *n, double *part)
{
    gp_node number = *n;
    gp_num value;
    number.text = gp_strndup(r->arena, n->text, n->len - 1), number.len = n->len - 1, number.expr = NULL;
    if (!gp_read_num(&r->read, &number, &value))
        return;
    if (value.f >= 0 && value.f <= 100)
        *part = value.f / 100;
    else
        AT(r, n->at, "'max_dropped' of stage '%s' must be 0%% to 100%%, or a number of frames", r->read.stage);
}

/* What becomes of a frame that fails in the stage, and how many may. */
static void read_on_error(gp_resolving *r, gp_rstage *st)
{
    const gp_node *n = stage_key(r, st, "on_error");
    int i;
    st->s.on_error = r->graph->on_error, st->s.max_dropped = -1, st->s.max_part = -1;
    if (n && (st->s.device || !st->s.kind->run))
        no_effect(r, n, st, st->s.device ? "runs on the device; for all stages write it at the top"
                                         : "copies frames; for all stages write it at the top");
    else if (n && (i = gp_read_word(&r->read, n, "stop|drop")) >= 0)
        st->s.on_error = (gp_on_error)i;
    if (!(n = stage_key(r, st, "max_dropped")))
        return;
    if (st->s.device || !st->s.kind->run)
        no_effect(r, n, st, st->s.device ? "runs on the device" : "copies frames");
    else if (st->s.on_error == GP_ON_ERROR_STOP)
        no_effect(r, n, st, "drops no frame that fails; add on_error: drop");
    else if (n->kind == GP_SCALAR && n->len > 1 && n->text[n->len - 1] == '%')
        read_part(r, n, &st->s.max_part);
    else
        gp_read_int(&r->read, n, 0, INT64_MAX, &st->s.max_dropped);
}

static void read_deadline(gp_resolving *r, gp_rstage *st)
{
    const gp_node *n = stage_key(r, st, "deadline");
    bool may = !st->s.device && st->s.nin && st->s.kind->run && !st->s.regroups && !r->body && !st->s.kind->collective
            && !gp_is_leaky(&st->s);
    st->s.deadline_ns = may ? r->graph->deadline_ns : 0;
    if (n && !may)
        no_effect(r, n, st, !st->s.nin ? "is a source" : "does not run on the host; give it to one behind it that does");
    else
        read_duration(r, n, &st->s.deadline_ns, "none");
    r->graph->deadlines |= st->s.deadline_ns > 0;
}

static void read_stage(gp_resolving *r, gp_rstage *st)
{
    const gp_kind *k = st->s.kind;
    const gp_node *n;
    int64_t workers;
    int i;
    if (!k) {
        st->broken = true;
        return;
    }
    if (!st->s.opts)                   /* those of a window are read */
        st->s.opts = gp_alloc(r->arena, k->opts_size ? k->opts_size : 1);
    r->read.stage = st->s.name;
    if (!gp_options_read(&r->read, k, st->node, st->s.at, st->misspelt, st->s.opts) || st->misspelt)
        st->broken = true;             /* what its kind would say may follow from that */
    st->s.device = k->record && !k->collective && (!k->on_device || (!st->broken && gp_shape_on_device(r, st)));
    st->s.regroups = (!k->run && !k->record) || k->emit;
    if ((n = stage_key(r, st, "on"))) {
        if (!k->run || !k->record || k->on_device || k->collective)
            no_effect(r, n, st, k->on_device ? "runs where its options say" : k->run && !k->collective ? "runs on the host only"
                                : k->record && !k->run ? "runs on the device only" : "runs where its input is made");
        else if ((i = gp_read_word(&r->read, n, "host|device")) >= 0)
            st->s.device = i == 1;
    } else if (k->run && !st->s.nin) {
        st->s.device = false;          /* used as a source: runs on the host */
    }
    st->s.placed = -1;
    if ((n = stage_key(r, st, "device"))) {
        if (!st->s.device)
            no_effect(r, n, st, st->s.regroups ? "runs where its input is made" : "runs on the host");
        else if (r->body)
            no_effect(r, n, st, "is a part of a loop: give it to the loop");
        else
            gp_devices_place(r, st, n);
    }
    gp_priority_of(r, st, stage_key(r, st, "priority"));
    n = stage_key(r, st, "workers");
    st->s.workers_said = n != NULL;
    st->s.workers_auto = !st->s.device && (!n || is_auto(n));
    if (n) {
        if (!k->run && !k->record)
            no_effect(r, n, st, "copies frames as fast as one thread can");
        else if (st->s.device && !k->on_device)        /* which may run on the host elsewhere */
            no_effect(r, n, st, k->run ? "runs on the device; write on: host"
                                       : "runs on the device");
        else if (!is_auto(n) && gp_read_int(&r->read, n, 1, 1024, &workers) && !st->s.device)
            st->s.workers = (int)workers;
    }
    if ((n = stage_key(r, st, "zero"))) {
        gp_read_bool(&r->read, n, &st->s.zero);
        if (!st->s.nout && !st->outs_broken)
            no_effect(r, n, st, "has no output");
        else if (st->s.regroups)
            no_effect(r, n, st, "writes all of its output");
    }
    read_on_error(r, st);
    read_deadline(r, st);
    if ((n = stage_key(r, st, "shard"))) {
        if (st->s.nin)
            no_effect(r, n, st, "is no source");
        else if ((i = gp_read_word(&r->read, n, "auto|none")) >= 0)
            st->s.each_rank = i == 1;
    }
    n = stage_key(r, st, "on_hole");
    if (gp_is_carry(&st->s))
        r->read.stage = NULL;          /* it is the buffer's */
    if (n && (i = gp_read_word(&r->read, n, "reset|splice")) >= 0)
        st->s.on_hole = (gp_on_hole)i;
    r->read.stage = st->s.name;
    if (!st->broken && !gp_shape_check(r, st))
        st->broken = true;
}

/* ---- the result ------------------------------------------------------ */

/* Sets of sources. Stages share them; the union of the same two sets is made once. */
typedef struct sets {
    gp_arena *a;
    size_t words;
    unsigned **v; int n, cap;
    gp_table joined;           /* "1+4" -> the union of sets 1 and 4 */
} sets;

static int new_set(sets *s)
{
    *GP_PUSH(s->a, s->v, s->n, s->cap) = GP_NEW(s->a, unsigned, s->words);
    return s->n - 1;
}

static int join(sets *s, int x, int y)
{
    char key[32];
    snprintf(key, sizeof key, "%d+%d", x < y ? x : y, x < y ? y : x);
    int z = gp_table_index(&s->joined, key);
    if (z >= 0)
        return z;
    gp_table_put(&s->joined, gp_strdup(s->a, key), z = new_set(s));
    for (size_t w = 0; w < s->words; w++)
        s->v[z][w] = s->v[x][w] | s->v[y][w];
    return z;
}

/* Which sources reach each stage; not by way of what is carried, which decides no end. */
void gp_find_sources(gp_arena *a, gp_graph *g)
{
    sets s = { .a = a, .words = ((size_t)g->nstages + 31) / 32, .joined = { .arena = a } };
    int *set = GP_NEW(a, int, g->nstages), none = -1;
    for (int i = 0; i < g->nstages; i++) {
        gp_stage *st = &g->stage[i];
        set[i] = -1;
        if (gp_is_carry(st)) {
            set[i] = none = none < 0 ? new_set(&s) : none;
            st->sources = s.v[none];
            continue;
        }
        for (int p = 0; p < st->nin; p++) {
            int from = gp_stage_maker(g, st, p);
            if (from >= 0 && set[from] != set[i])
                set[i] = set[i] < 0 ? set[from] : join(&s, set[i], set[from]);
        }
        bool source = set[i] < 0;
        st->sources = source ? NULL : s.v[set[i]];
        if (source || gp_is_leaky(st)) {
            set[i] = new_set(&s);
            s.v[set[i]][i / 32] |= 1u << i % 32;
        }
        st->sources = source ? s.v[set[i]] : st->sources;
    }
}

static void build_buffer(gp_resolving *r, const gp_rbuf *from, gp_buffer *b)
{
    const gp_rstage *by = from->b.producer.stage < 0 ? NULL : &r->stage[from->b.producer.stage];
    *b = from->b;
    b->maker.stage = -1;
    if (by && by->s.prologue)
        b->maker = (gp_use){ by->sort, b->producer.port }, b->producer.stage = -1;
    else if (by)
        b->producer.stage = by->sort;
    b->use = GP_NEW(r->arena, gp_use, from->readers);
}

/* Buffers have their place by the stages that make them, as the file has these: so where they are declared, and
 * whether, moves none, and a run goes on when that changes (run/fits.c). Before them are constants, which are all
 * declared, and in the order of that, as carried buffers are. A loop's body names its own by their indices (loop.h),
 * and is as it is. */
static int *places_of_buffers(gp_resolving *r)
{
    int *place = GP_NEW(r->arena, int, r->nbuffers), n = 0;
    for (int i = 0; i < r->nbuffers; i++)
        place[i] = r->body ? i : r->buffer[i].b.producer.stage < 0 ? n++ : -1;
    for (int s = 0; s < r->nstages && !r->body; s++)
        for (int p = 0; p < r->stage[s].s.nout; p++)
            if (r->stage[s].s.out[p] >= 0)
                place[r->stage[s].s.out[p]] = n++;
    return place;
}

/* The places of the buffers of n ports. */
static int *places_of_ports(gp_resolving *r, const int *place, const int *buffer, int n)
{
    int *at = GP_NEW(r->arena, int, n);
    for (int p = 0; p < n; p++)
        at[p] = buffer[p] < 0 ? -1 : place[buffer[p]];
    return at;
}

/* Stages get their place in topological order, and those of the prologue among themselves; indices follow. */
static void build(gp_resolving *r)
{
    gp_graph *g = r->graph;
    const int *place = places_of_buffers(r);
    g->nbuffers = r->nbuffers;
    g->stage = GP_NEW(r->arena, gp_stage, r->nstages), g->prologue = GP_NEW(r->arena, gp_stage, r->nstages);
    g->buffer = GP_NEW(r->arena, gp_buffer, r->nbuffers);
    for (int i = 0; i < r->nstages; i++) {
        gp_rstage *from = &r->stage[r->order[i]];
        from->sort = from->s.prologue ? g->nprologue++ : g->nstages++;
    }
    for (int i = 0; i < r->nbuffers; i++)
        build_buffer(r, &r->buffer[i], &g->buffer[place[i]]);
    int *cycle = GP_NEW(r->arena, int, 2 * r->nstages + 1), ncycles = 0;
    for (int i = 0; i < r->nstages; i++) {
        const gp_rstage *from = &r->stage[r->order[i]];
        gp_stage *st = from->s.prologue ? &g->prologue[from->sort] : &g->stage[from->sort];
        *st = from->s;
        st->node = from->node;
        if (st->cycle && !cycle[st->cycle])
            cycle[st->cycle] = ++ncycles;
        st->cycle = cycle[st->cycle];
        st->after = GP_NEW(r->arena, int, st->nafter);
        for (int k = 0; k < st->nafter; k++)
            st->after[k] = r->stage[from->s.after[k]].sort;
        st->last = r->stage[from->s.last].sort;
        st->in = places_of_ports(r, place, from->s.in, st->nin);
        st->out = places_of_ports(r, place, from->s.out, st->nout);
        for (int p = 0; p < st->nin; p++) {
            gp_buffer *b = gp_stage_in(g, st, p);
            if (b && st->prologue)
                b->in_prologue = true;
            else if (b)
                b->use[b->nuse++] = (gp_use){ from->sort, p };
        }
    }
    gp_find_sources(r->arena, g);
}

/* Are the buffers that included files take and make of the types that those say? */
static void check_expected(gp_resolving *r)
{
    for (int i = 0; i < r->spec->nexpected; i++) {
        const gp_expected *e = &r->spec->expected[i];
        const int of = gp_table_index(&r->buffer_index, e->buffer);
        const gp_type *is = of < 0 || !r->buffer[of].known ? NULL : &r->buffer[of].b.type;
        char text[128];
        const char *want = is ? gp_type_expected(r, e->decl, is) : NULL;
        if (want)
            AT(r, e->at, e->in ? "'%s' takes %s at '%s', but '%s' is %s" : "'%s' says that it makes %s as '%s', but '%s' is %s",
               e->file, want, e->local, e->buffer, gp_type_text(is, text));
    }
}

/* The errors from `from` on in the order of the file, as a reader meets them. */
static void sort_errors(gp_errs *errs, int from, const char *file)
{
    for (int i = from + 1; i < errs->n; i++)
        for (int k = i; k > from; k--) {
            gp_err *a = &errs->e[k - 1], *b = &errs->e[k], keep = *b;
            if (a->at.file != file || b->at.file != file || a->at.line < b->at.line
                || (a->at.line == b->at.line && a->at.col <= b->at.col))
                break;
            *b = *a, *a = keep;
        }
}

static void resolve_stages(gp_resolving *r, const gp_node *buffers, const gp_node *stages)
{
    gp_wire(r, buffers, stages);
    for (int i = 0; i < r->nstages; i++)
        read_stage(r, &r->stage[i]);
    gp_order(r);
    gp_infer(r);
}

bool gp_resolve_body(gp_resolving *r, const gp_node *buffers, const gp_node *stages)
{
    int failed = r->errs->failed;
    resolve_stages(r, buffers, stages);
    if (r->errs->failed == failed)
        build(r);
    return r->errs->failed == failed;
}

gp_graph *gp_resolve(gp_arena *a, const gp_spec *spec, const gp_registry *registry,
                     const gp_env *env, const gp_machine *machine, gp_probe *probe,
                     gp_errs *errs)
{
    int failed = errs->failed, before = errs->n;
    gp_resolving *r = GP_NEW(a, gp_resolving, 1);
    r->arena = a, r->errs = errs, r->spec = spec, r->registry = registry, r->probe = probe;
    r->read = (gp_reader){ .arena = a, .errs = errs, .vars = &r->vars, .env = env,
                           .dir = spec->dir };
    r->machine = machine;
    r->graph = GP_NEW(a, gp_graph, 1);
    r->graph->rank = env ? env->rank : 0, r->graph->ranks = env && env->ranks > 1 ? env->ranks : 1;
    r->graph->scope = (gp_scope){ .var = var_later, .each = each_var, .arg = &r->vars };
    gp_vars_read(a, env, gp_node_get(spec->root, "vars"), &r->vars, errs);
    if (!check_typed(r)) {       /* what follows from that is not said */
        gp_spec_places(spec, errs);
        return NULL;
    }
    read_top(r);
    const gp_node *stages = gp_node_get(spec->root, "stages");
    if (!stages || (stages->kind == GP_LIST ? !stages->n : gp_is_null(stages))) {
        if (stages || !has_stages_elsewhere(r))
            AT(r, stages ? stages->at : ((gp_loc){ .file = spec->file }),
               "the pipeline has no stages; write stages: [{use: KIND}, ...]");
    } else if (stages->kind != GP_LIST) {
        AT(r, stages->at, "'stages' must be a list, like [{use: read}, {use: gray}]");
    } else {
        resolve_stages(r, gp_node_get(spec->root, "buffers"), stages);
        check_expected(r);
    }
    r->graph->device_name = gp_devices_text(r);
    if (errs->failed == failed) {
        build(r);
        bool rated = gp_rates(a, r->graph, errs);
        if (rated && gp_carry_sources(a, r->graph, errs))
            gp_check_files(r);
        gp_leaky_check(r->graph, errs);
        gp_devices_check(a, r->graph, errs);
        gp_managed_check(r->graph, errs);
        gp_devices_drop_unused(r);
        gp_priority_check(r->graph, errs);
        gp_place_casts(r->graph);
        if (rated)
            gp_set_depths(r->graph, errs);
        gp_metadata_origins(a, r->graph);
        gp_digest_stages(a, spec, probe, r->graph);
        if (errs->failed == failed)
            r->graph = gp_fuse_stages(r, r->graph, machine);
        if (errs->failed == failed && gp_shard(a, r->graph, errs))
            gp_share_cores(a, r->graph, machine);
    }
    gp_spec_places(spec, errs);
    sort_errors(errs, before, spec->file);
    return errs->failed == failed ? r->graph : NULL;
}
