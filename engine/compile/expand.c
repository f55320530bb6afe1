/* expand.c - `include`, `repeat` and branches: the spec becomes one that has each of their stages, as if it were
 * written by hand. Behind this pass nobody knows where a stage came from, but for names and folders (inside.h).
 *
 * First all stages get their names and outputs, in the order of the file; then inputs are looked up, since a stage may
 * read what one behind it makes. */
#include <limits.h>
#include <string.h>
#include "base/num.h"
#include "base/path.h"
#include "base/why.h"
#include "compile/expr.h"
#include "compile/inside.h"
#include "compile/resolve.h"
#include "compile/wire.h"

enum { DEEPEST = 16, MOST_STAGES = 10000, MOST_NODES = 1000 * 1000 };

/* ---- what is being made ---------------------------------------------- */

typedef struct scope scope;

/* A buffer as a scope knows it: by its name in the whole (of NULL), or by a name of another scope. */
typedef struct alias { const char *local; const scope *of; const char *name; } alias;

/* The stages of one list, with the names that mean something there. */
struct scope {
    gp_inside in;              /* of the nodes */
    const scope *outer;        /* NULL: the pipeline itself */
    gp_table index; alias *buffer; int n, cap;
    gp_table out;              /* outputs that are named outside -> that name */
};

/* What the stage before makes, for one that says no `in`. flat: it stands before it in the list of all, too. */
typedef struct before { const char *who; alias *out; int n; bool flat; } before;

/* Names that wait for all outputs: those of `in`, or of one key of a buffer; map NULL: `key`, which an include gives a
 * file as an input. */
typedef struct later { gp_node *map; const char *key; const scope *s; const gp_kind *kind; gp_loc at; } later;

typedef struct expansion {
    gp_arena *a;
    gp_spec *spec;
    const gp_registry *registry;
    const gp_env *env;
    gp_probe *probe;
    gp_errs *errs, ignored;
    gp_node *vars, *buffers, *stages;          /* of the whole */
    int caps[3];
    gp_table files;            /* what was read of each */
    gp_table *var_index;       /* of vars */
    gp_table made;             /* names in the whole of buffers that stages make, and constants */
    later *later; int nlater, later_cap;
    int nodes, depth;
    bool full;                 /* that there are too many stages was said */
} expansion;

#define SAY(x, at, ...) gp_fail((x)->errs, GP_E_SPEC, (at), __VA_ARGS__)

static gp_node *new_node(expansion *x, gp_node_kind kind, const char *text, gp_loc at)
{
    gp_node *n = GP_NEW(x->a, gp_node, 1);
    *n = (gp_node){ .kind = kind, .at = at, .text = text, .len = strlen(text), .quoted = true };
    return n;
}

static void put(expansion *x, gp_node *map, int *cap, gp_node *key, gp_node *item)
{
    int n = map->n, room = *cap;
    if (key)
        *GP_PUSH(x->a, map->key, n, room) = key, n--;
    *GP_PUSH(x->a, map->item, n, *cap) = item;
    map->n = n, map->index = NULL;
}

static void put_var(expansion *x, gp_node *key, gp_node *value)
{
    gp_table_put(x->var_index, key->text, x->vars->n);
    put(x, x->vars, &x->caps[0], key, value);
    x->vars->index = x->var_index;
}

/* With `value` under `key`; NULL: without it. The map is one of which no other node has the arrays. */
static void set_key(expansion *x, gp_node *map, const char *key, gp_node *value)
{
    int i = 0, cap = map->n;
    while (i < map->n && strcmp(map->key[i]->text, key))
        i++;
    map->index = NULL;
    if (value && i < map->n)
        map->item[i] = value;
    else if (value)
        put(x, map, &cap, new_node(x, GP_SCALAR, key, value->at), value);
    else if (i < map->n)
        for (map->n--; i < map->n; i++)
            map->key[i] = map->key[i + 1], map->item[i] = map->item[i + 1];
}

/* A copy with all that is in it, which stands inside `s`. */
static gp_node *copy(expansion *x, const gp_node *from, const scope *s)
{
    gp_node *n = GP_NEW(x->a, gp_node, 1);
    *n = *from;
    n->index = NULL;
    n->inside = s->in.file ? &s->in : NULL;
    n->at.file = s->in.file && from->at.line ? s->in.file : from->at.file;     /* line 0: of --set */
    n->item = GP_NEW(x->a, gp_node *, n->n), n->key = n->kind == GP_MAP ? GP_NEW(x->a, gp_node *, n->n) : NULL;
    if (++x->nodes == MOST_NODES)
        SAY(x, from->at, "'include' and 'repeat' make more than %d values of this pipeline", MOST_NODES);
    for (int i = 0; i < n->n; i++) {
        bool more = x->nodes < MOST_NODES;
        n->item[i] = more ? copy(x, from->item[i], s) : new_node(x, GP_SCALAR, "", from->at);
        if (n->key)
            n->key[i] = more ? copy(x, from->key[i], s) : from->key[i];
    }
    return n;
}

static const char *join(expansion *x, const char *prefix, const char *name)
{
    return *prefix ? gp_format(x->a, "%s.%s", prefix, name) : name;
}

static const char *text_of(expansion *x, const gp_node *n)
{
    const char *text = "";
    return gp_interpolate(x->a, n, x->vars, x->env, &text, x->errs) ? text : NULL;
}

static bool check_name(expansion *x, const char *what, const char *name, gp_loc at)
{
    return gp_is_label(name) || SAY(x, at, "'%.60s' is not a valid name for a %s; use letters, digits, _ and -", name, what);
}

/* Keys that an entry may have, as `rows` says. */
static bool check_keys(expansion *x, const gp_node *map, const gp_opt *rows, const char *what, const char *file)
{
    bool ok = true;
    for (int i = 0; i < map->n; i++) {
        gp_near near = GP_NEAR(map->key[i]->text);
        for (const gp_opt *o = rows; o->name; o++)
            gp_near_try(&near, o->name);
        if (gp_key_find(rows, near.word))
            continue;
        const char *hint = gp_near_text(&near);
        if (!*hint && file)
            hint = gp_format(x->a, "; what is to differ there is a variable in '%s': vars: {%s: ...}", file, near.word);
        ok = SAY(x, map->key[i]->at, "%s has no key '%s'%s", what, near.word, hint);
    }
    return ok;
}

/* ---- scopes ------------------------------------------------------------ */

/* A scope within `outer`; `file`: of another file, and knows none of its names. Errors in it are told from others by
 * the address of its file's name. */
static scope *new_scope(expansion *x, const scope *outer, const char *prefix, const char *file, gp_loc at)
{
    scope *s = GP_NEW(x->a, scope, 1);
    const char *path = file ? file : outer->in.path;
    s->outer = outer;
    s->in = (gp_inside){ .prefix = prefix, .outer = &outer->in, .opaque = file, .path = path, .dir = outer->in.dir,
                         .file = gp_strdup(x->a, path), .at = file ? at : outer->in.at, .next = x->spec->insides,
                         .name = file ? prefix : outer->in.name, .text = outer->in.text, .len = outer->in.len };
    if (file)
        s->in.dir = gp_folder_of(x->a, file);
    s->index.arena = s->out.arena = s->in.vars.arena = x->a;
    x->spec->insides = &s->in;
    return s;
}

static void add_buffer(expansion *x, scope *s, const char *local, const scope *of, const char *name)
{
    if (gp_table_index(&s->index, local) >= 0)         /* two producers, which is said where they are wired */
        return;
    gp_table_put(&s->index, local, s->n);
    *GP_PUSH(x->a, s->buffer, s->n, s->cap) = (alias){ local, of, name };
}

/* The name in the whole of what a scope calls so. */
static const char *lookup(expansion *x, const scope *s, const char *name)
{
    for (int steps = 0; s && steps < 4 * DEEPEST; steps++) {
        int i = gp_table_index(&s->index, name);
        if (i >= 0 && !s->buffer[i].of)
            return s->buffer[i].name;
        if (i < 0 && s->in.opaque)
            return join(x, s->in.prefix, name);
        const scope *to = i < 0 ? s->outer : s->buffer[i].of;
        name = i < 0 ? name : s->buffer[i].name, s = to;
    }
    return name;
}

/* Where a scope's own outputs are named outside, that name; else one behind its prefix. */
static const char *name_in_whole(expansion *x, const scope *s, const char *local)
{
    const gp_entry *e = gp_table_find(&s->out, local);
    return e ? e->ptr : join(x, s->in.prefix, local);
}

/* A value is under that name, which is also said in full, in the whole's vars. */
static void add_var(expansion *x, scope *s, const char *mark, const gp_node *key, gp_node *value)
{
    char *full = gp_format(x->a, "%s%s%s", s->in.prefix, mark, key->text);
    put_var(x, new_node(x, GP_SCALAR, full, key->at), value);
    gp_table_put(&s->in.vars, key->text, 0)->ptr = full;
}

/* ---- vars --------------------------------------------------------------- */

typedef struct value_now { expansion *x; const gp_inside *in; int depth; } value_now;

/* The value of a var while others are still being read. */
static bool var_now(const gp_scope *s, const char *name, gp_num *out)
{
    const value_now *of = s->arg;
    const char *full = gp_inside_name(of->in, name), *own;
    const gp_node *v = full && of->depth < GP_VARS_DEEPEST ? gp_node_get(of->x->vars, full) : NULL;
    value_now next = { of->x, v ? v->inside : NULL, of->depth + 1 };
    gp_scope names = { .var = var_now, .arg = &next };
    for (int i = 0; !v && i < GP_OWN_VARS; i++) {
        int64_t n = gp_own_var(of->x->env, i, &own);
        if (!strcmp(own, name))
            return *out = (gp_num){ true, n, (double)n }, true;
    }
    return v && v->kind == GP_SCALAR && gp_expr_keep(of->x->a, v) && gp_eval(v, &names, out, &of->x->ignored);
}

/* What names a number becomes that number, in texts too; what does not stays, and is told later. */
static gp_node *as_number(expansion *x, gp_node *n)
{
    value_now now = { x, n->inside, 0 };
    gp_scope names = { .var = var_now, .arg = &now };
    const gp_expr *e = n->kind == GP_SCALAR ? gp_expr_keep(x->a, n) : NULL;
    char text[GP_NUM_TEXT];
    gp_num v;
    if (!e || !e->named || !gp_eval(n, &names, &v, &x->ignored))
        return n;
    gp_node *is = GP_NEW(x->a, gp_node, 1);
    *is = *n;
    is->text = gp_strdup(x->a, gp_num_text(&v, text)), is->len = strlen(is->text), is->expr = NULL;
    return is;
}

/* A var that is declared as {type, default, help}: its default, and its type is noted. NULL: it has none. */
static gp_node *declared(expansion *x, const gp_node *key, gp_node *said, const char *full, gp_node *given)
{
    if (said->kind != GP_MAP)
        return given ? given : said;
    if (!check_keys(x, said, gp_var_keys, "a variable", NULL))
        return NULL;
    const gp_node *type = gp_node_get(said, "type");
    gp_node *def = (gp_node *)gp_node_get(said, "default");
    gp_node *value = given ? given : def ? def : NULL;
    if (type)
        *GP_PUSH(x->a, x->spec->typed, x->spec->ntyped, x->spec->typed_cap) = (gp_typed){ key->text, full, type };
    if (value)
        return type && (!strcmp(type->text, "integer") || !strcmp(type->text, "number")) ? as_number(x, value) : value;
    value = new_node(x, GP_SCALAR, "", key->at);
    value->quoted = false;
    return value;
}

static void read_own_vars(expansion *x, const gp_node *map)
{
    for (int i = 0; map && map->kind == GP_MAP && i < map->n; i++) {
        gp_node *value = declared(x, map->key[i], map->item[i], map->key[i]->text, NULL);
        if (value)
            put_var(x, map->key[i], value);
    }
}

/* ---- buffers ------------------------------------------------------------- */

static void wait(expansion *x, gp_node *map, const char *key, const scope *s, const gp_kind *kind)
{
    if (gp_node_get(map, key))
        *GP_PUSH(x->a, x->later, x->nlater, x->later_cap) = (later){ map, key, s, kind, { 0 } };
}

/* Whether there is a buffer that a scope calls so. */
static void check_later(expansion *x, const scope *s, const char *name, gp_loc at)
{
    *GP_PUSH(x->a, x->later, x->nlater, x->later_cap) = (later){ NULL, name, s, NULL, at };
}

/* What the file says of a buffer, beside what is said outside. */
static void add_keys(expansion *x, const scope *s, gp_node *to, const gp_node *from)
{
    to->kind = GP_MAP;
    for (int i = 0; i < from->n; i++) {
        const char *key = from->key[i]->text;
        if (gp_node_get(to, key))
            SAY(x, gp_node_get(to, key)->at, "'%s' of this buffer is said in '%s', too: remove one", key,
                from->inside ? from->inside->path : x->spec->file);
        else
            set_key(x, to, key, from->item[i]);
        if (!strcmp(key, "like"))
            wait(x, to, key, s, NULL);
    }
}

static void add_buffers(expansion *x, scope *s, const gp_node *map)
{
    if (map && map->kind != GP_MAP && !gp_is_null(map))
        SAY(x, map->at, "'buffers' must be a map, like {photo: {dtype: u8, shape: [768, 1024]}}");
    for (int i = 0; map && map->kind == GP_MAP && i < map->n; i++) {
        gp_node *key = map->key[i], *value = map->item[i];
        if (!check_name(x, "buffer", key->text, key->at))
            continue;
        const gp_entry *input = gp_table_find(&s->index, key->text);
        if (input && s->buffer[input->n].of) {
            SAY(x, key->at, "'%s' is an input of this file: write its type there, inputs: {%s: {dtype: f32, shape: [8]}}",
                key->text, key->text);
            continue;
        }
        gp_node *named = GP_NEW(x->a, gp_node, 1);
        *named = *key;
        named->text = name_in_whole(x, s, key->text), named->len = strlen(named->text);
        const gp_node *outside = gp_node_get(x->buffers, named->text);
        if (outside && (outside->kind == GP_MAP || gp_is_null(outside)) && value->kind == GP_MAP) {
            add_keys(x, s, (gp_node *)outside, value);         /* of an output */
            continue;
        }
        if (value->kind == GP_MAP)
            wait(x, value, "like", s, NULL), wait(x, value, "carry", s, NULL);
        put(x, x->buffers, &x->caps[1], named, value);
        bool made = value->kind == GP_MAP && (gp_node_get(value, "const") || gp_node_get(value, "carry"));
        if (made)
            add_buffer(x, s, key->text, NULL, named->text), gp_table_put(&x->made, named->text, 0);
    }
}

/* ---- a stage --------------------------------------------------------------- */

/* The name of an output, as the scope has it. */
static gp_node *output(expansion *x, scope *to, const gp_node *said, bool check, before *b)
{
    const char *local = said->kind == GP_SCALAR && said->len ? text_of(x, said) : NULL;
    gp_node *n = GP_NEW(x->a, gp_node, 1);
    *n = *said;
    if (!local || (check && !check_name(x, "buffer", local, said->at)))
        return n;
    n->text = name_in_whole(x, to, local), n->len = strlen(n->text);
    add_buffer(x, to, local, NULL, n->text);
    gp_table_put(&x->made, n->text, 0);
    b->out[b->n++] = (alias){ local, NULL, n->text };
    return n;
}

/* Names by position become names by port, as of a kind that has ports of any name they are the names of buffers. */
static gp_node *by_port(expansion *x, gp_node *n, const gp_port *ports, const char *const *local)
{
    bool star;
    int fixed = gp_count_ports(ports, &star), cap = 0;
    if (!star || n->kind != GP_LIST || (n->n < 2 && !fixed) || n->n > GP_MAXPORT)
        return n;
    gp_node *map = new_node(x, GP_MAP, "", n->at);
    for (int i = 0; i < n->n; i++) {
        char *port = gp_strdup(x->a, i < fixed ? ports[i].name : local[i]);
        for (char *p = port; *p; p++)
            *p = *p == '.' ? '_' : *p;
        put(x, map, &cap, new_node(x, GP_SCALAR, port, n->item[i]->at), n->item[i]);
    }
    return map;
}

static void name_outputs(expansion *x, scope *to, gp_node *st, const gp_kind *kind, const char *name, before *b)
{
    const gp_node *said = gp_node_get(st, "out");
    const char *local[GP_MAXPORT] = { 0 }, *text;
    const gp_port *port;
    b->out = GP_NEW(x->a, alias, GP_MAXPORT + 1), b->n = 0, b->flat = true, b->who = join(x, to->in.prefix, name);
    if (said && said->kind == GP_SCALAR) {
        set_key(x, st, "out", output(x, to, said, true, b));
    } else if (said && said->n <= GP_MAXPORT) {
        gp_node *out = copy(x, said, to);
        for (int i = 0; i < out->n; i++)
            local[i] = out->item[i]->text, out->item[i] = output(x, to, said->item[i], true, b);
        set_key(x, st, "out", *to->in.prefix ? by_port(x, out, kind ? kind->out : NULL, local) : out);
    } else if (!said) {
        gp_node *out = new_node(x, GP_MAP, "", st->at);
        bool moved = false, named = false;
        for (int i = 0, cap = 0; i < GP_MAXPORT && (text = gp_default_out(x->a, kind, name, i, &port)); i++) {
            gp_node *as = output(x, to, new_node(x, GP_SCALAR, text, st->at), false, b);
            moved |= gp_table_find(&to->out, text) != NULL, named |= port != NULL;
            put(x, out, &cap, new_node(x, GP_SCALAR, port ? port->name : "out", st->at), as);
        }
        if (moved)
            set_key(x, st, "out", named ? out : out->item[0]);
    }
}

/* What a stage reads that does not say it, where the stage before it in the list of all is another than in its own. */
static void name_input(expansion *x, gp_node *st, const gp_kind *kind, const char *name, const before *b)
{
    bool star, takes = kind && (gp_count_ports(kind->in, &star) || star);
    if (gp_node_get(st, "in") || b->flat || !takes)
        return;
    bool optional = star || kind->in[0].optional;
    const char *hint = optional ? ", or in: [] for a source" : "";
    if (b->n == 1) {
        set_key(x, st, "in", new_node(x, GP_SCALAR, b->out->name, st->at));
        if (b->out->of)
            wait(x, st, "in", b->out->of, kind);
    } else if (b->n > 1) {
        SAY(x, st->at, "which of the %d outputs of '%s' does stage '%s' read? write in: BUFFER%s", b->n, b->who, name, hint);
    } else if (b->who) {
        SAY(x, st->at, "stage '%s' has no input: '%s' before it has no output; write in: BUFFER%s", name, b->who, hint);
    } else if (!optional) {
        SAY(x, st->at, "stage '%s' needs an input, and no stage is before it; write in: BUFFER", name);
    } else {
        set_key(x, st, "in", new_node(x, GP_LIST, "", st->at));
    }
}

/* `to`: the list that it is of; `s`: what its nodes stand in, which has the variables of `repeat`, too. */
static void add_stage(expansion *x, scope *to, const scope *s, const gp_node *said, const char *name, before *b)
{
    gp_node *st = copy(x, said, s);
    const gp_node *use = gp_node_get(st, "use"), *label = gp_node_get(st, "name");
    const gp_kind *kind = use && use->kind == GP_SCALAR ? gp_kind_find(x->registry, use->text) : NULL;
    const char *full = join(x, to->in.prefix, name);
    wait(x, st, "in", s, kind);
    name_input(x, st, kind, full, b);
    name_outputs(x, to, st, kind, name, b);
    set_key(x, st, "name", new_node(x, GP_SCALAR, full, label ? label->at : use ? use->at : st->at));
    put(x, x->stages, &x->caps[2], NULL, st);
}

/* ---- branches and files --------------------------------------------------------- */

static void add_list(expansion *x, scope *s, const gp_node *list, before *b);

/* What `in` of an entry names, as one output before its first stage. */
static void read_branch_in(expansion *x, const scope *s, const gp_node *in, before *b)
{
    const char *name = in->kind == GP_SCALAR && in->len ? text_of(x, in) : NULL;
    if (in->kind != GP_SCALAR || !in->len)
        SAY(x, in->at, "'in' of a branch is one buffer, which its first stage reads");
    b->out = GP_NEW(x->a, alias, 1), b->n = name != NULL, b->who = NULL;
    if (name)
        b->out[0] = (alias){ name, s, name }, check_later(x, s, name, in->at);
}

static void add_branch(expansion *x, scope *to, const scope *s, const gp_node *said, const char *name, before *b)
{
    scope *g = new_scope(x, s, join(x, to->in.prefix, name), NULL, said->at);
    const gp_node *stages = gp_node_get(said, "stages"), *in = gp_node_get(said, "in");
    if (!check_keys(x, said, gp_branch_keys, "a branch", NULL))
        return;
    if (stages->kind != GP_LIST || !stages->n) {
        SAY(x, stages->at, "'stages' must be a list, like [{use: read}, {use: gray}]");
        return;
    }
    b->flat = false;
    if (in)
        read_branch_in(x, s, copy(x, in, s), b);
    const gp_node *buffers = gp_node_get(said, "buffers");
    if (buffers)
        add_buffers(x, g, copy(x, buffers, g));
    add_list(x, g, stages, b);
    for (int i = 0; i < g->n; i++)
        add_buffer(x, to, join(x, name, g->buffer[i].local), g, g->buffer[i].local);
    if (b->n == 1)
        add_buffer(x, to, name, b->out->of, b->out->name);
    b->flat = false, b->who = g->in.prefix;
}

/* The file of a scope as a tree. NULL after an error at `at`. */
static const gp_node *read_file(expansion *x, scope *s, gp_loc at)
{
    const char *path = s->in.path, *as = s->in.file;
    const gp_probed *p = gp_probe_get(x->probe, path, false);
    const gp_file *f = &p->file;
    if (f->error)
        return GP_NULL(SAY(x, at, "cannot include '%s': %s", path, gp_strerror(f->error)));
    if (f->kind != GP_FILE_REGULAR || f->size > GP_PROBE_HEAD)
        return GP_NULL(SAY(x, at, f->kind == GP_FILE_DIR ? "cannot include '%s': it is a folder"
                           : f->kind != GP_FILE_REGULAR ? "cannot include '%s': it is no regular file"
                           : "cannot include '%s': it is larger than 1 MiB", path));
    s->in.text = f->head, s->in.len = f->nhead;
    const gp_entry *known = gp_table_find(&x->files, path);
    if (known)
        return known->ptr;
    int failed = x->errs->failed;
    const gp_node *root = gp_yaml_parse(x->a, f->head, f->nhead, as, x->errs);
    const gp_node *stages = gp_node_get(root, "stages");
    if (x->errs->failed == failed && (!stages || stages->kind != GP_LIST || !stages->n))
        SAY(x, stages ? stages->at : ((gp_loc){ .file = as }), "this file has no stages; write stages: [{use: KIND}, ...]");
    if (x->errs->failed > failed)
        return NULL;
    gp_table_put(&x->files, path, 0)->ptr = (void *)root;
    return root;
}

/* The i-th name that `inputs` or `outputs` lists; `decl`: its type, or NULL. */
static const gp_node *port_at(const gp_node *ports, int i, const gp_node **decl)
{
    *decl = ports->kind == GP_MAP && ports->item[i]->kind == GP_MAP ? ports->item[i] : NULL;
    return ports->kind == GP_MAP ? ports->key[i] : ports->item[i];
}

static bool check_ports(expansion *x, const gp_node *ports, const char *key)
{
    static const gp_opt rows[] = { { .name = "dtype" }, { .name = "shape" }, { 0 } };
    const gp_node *decl;
    bool ok = !ports || ports->kind != GP_SCALAR || gp_is_null(ports)
        || SAY(x, ports->at, "'%s' is a list of names, or a map: {x: {dtype: f32, shape: [8]}}", key);
    for (int i = 0; ok && ports && i < ports->n; i++) {
        const gp_node *name = port_at(ports, i, &decl);
        ok = check_name(x, "buffer", name->text, name->at) && (!decl || check_keys(x, decl, rows, "such a buffer", NULL))
            && (decl || ports->kind == GP_LIST || gp_is_null(ports->item[i])
                || SAY(x, ports->item[i]->at, "'%s' must be a map, like {dtype: f32, shape: [480, 640]}", name->text));
    }
    return ok;
}

/* What the entry connects to port i of the file: a scalar, or NULL. */
static const gp_node *connected(const gp_node *said, const gp_node *ports, int i)
{
    const gp_node *decl, *name = port_at(ports, i, &decl);
    if (said && said->kind == GP_SCALAR)
        return i ? NULL : said;
    return !said ? NULL : said->kind == GP_MAP ? gp_node_get(said, name->text) : i < said->n ? said->item[i] : NULL;
}

/* Does `in` or `out` of an entry name ports that the file has? */
static bool check_connected(expansion *x, const gp_node *said, const gp_node *ports, const char *what, const char *path)
{
    static const gp_node none = { .kind = GP_LIST };
    const gp_node *decl;
    bool ok = true;
    ports = ports ? ports : &none;
    int n = !said ? 0 : said->kind == GP_SCALAR ? 1 : said->n;
    if (said && said->kind != GP_MAP && n > ports->n)
        return SAY(x, said->at, "'%s' has %d %s%s, and %d are given", path, ports->n, what, ports->n == 1 ? "" : "s", n);
    for (int i = 0; i < n && said->kind == GP_MAP; i++) {
        gp_near near = GP_NEAR(said->key[i]->text);
        bool found = false;
        for (int k = 0; k < ports->n; k++)
            gp_near_try(&near, port_at(ports, k, &decl)->text), found |= !strcmp(near.word, port_at(ports, k, &decl)->text);
        if (!found)
            ok = SAY(x, said->key[i]->at, "'%s' has no %s '%s'%s", path, what, near.word, gp_near_text(&near));
    }
    return ok;
}

static void expect(expansion *x, const scope *s, const char *name, const gp_node *decl, bool in, gp_loc at)
{
    if (decl)
        *GP_PUSH(x->a, x->spec->expected, x->spec->nexpected, x->spec->expected_cap)
            = (gp_expected){ .local = name, .of = s, .decl = decl, .file = s->in.path, .in = in, .at = at };
}

/* The file's inputs become names of buffers outside; *first: what its first stage reads. */
static bool connect_inputs(expansion *x, scope *f, const scope *s, const gp_node *entry, const gp_node *inputs, before *b)
{
    const gp_node *in = gp_node_get(entry, "in"), *decl;
    before prev = *b;
    *b = (before){ .n = 0 };
    bool ok = check_connected(x, in, inputs, "input", f->in.path);
    for (int i = 0; ok && inputs && i < inputs->n; i++) {
        const gp_node *name = port_at(inputs, i, &decl), *n = connected(in, inputs, i);
        const char *text = n && n->kind == GP_SCALAR && n->len ? text_of(x, n) : NULL;
        if (text)
            check_later(x, s, text, n->at);
        else if (n)
            ok = SAY(x, n->at, "the name of a buffer is expected here");
        else if (in || inputs->n > 1 || prev.n != 1)
            ok = SAY(x, in ? in->at : entry->at, "input '%s' of '%s' is not connected; write in: {%s: BUFFER}", name->text,
                f->in.path, name->text);
        add_buffer(x, f, name->text, text ? s : prev.n == 1 ? prev.out->of : NULL, text ? text : prev.n == 1 ? prev.out->name
                   : name->text);
        expect(x, f, name->text, decl, true, n ? n->at : entry->at);
    }
    if (inputs && inputs->n == 1) {
        const gp_node *name = port_at(inputs, 0, &decl);
        b->out = GP_NEW(x->a, alias, 1), b->n = 1;
        b->out[0] = (alias){ name->text, f, name->text };
    }
    return ok;
}

/* Names outside of what the file makes: before its stages are added, those that the entry gives. */
static void name_file_outputs(expansion *x, scope *f, scope *to, const gp_node *entry, const gp_node *outputs)
{
    const gp_node *only, *name = outputs && outputs->n == 1 ? port_at(outputs, 0, &only) : NULL, *out = gp_node_get(entry, "out"), *decl;
    if (!check_connected(x, out, outputs, "output", f->in.path))
        return;
    if (name && !out)
        gp_table_put(&f->out, name->text, 0)->ptr = (void *)f->in.prefix;
    for (int i = 0; outputs && i < outputs->n; i++) {
        const gp_node *local = port_at(outputs, i, &decl), *n = connected(out, outputs, i);
        const char *text = n && n->kind == GP_SCALAR && n->len ? text_of(x, n) : NULL;
        if (n && !text)
            SAY(x, n->at, "the name of a buffer is expected here");
        if (!text || !check_name(x, "buffer", text, n->at))
            continue;
        gp_table_put(&f->out, local->text, 0)->ptr = (void *)name_in_whole(x, to, text);
        add_buffer(x, to, text, f, local->text);
    }
}

/* ... and once they are. */
static void show_outputs(expansion *x, scope *f, scope *to, const gp_node *entry, const gp_node *outputs, const char *name,
                         before *b)
{
    const gp_node *decl;
    *b = (before){ .who = f->in.prefix, .out = GP_NEW(x->a, alias, outputs ? outputs->n : 0) };
    for (int i = 0; outputs && i < outputs->n; i++) {
        const gp_node *local = port_at(outputs, i, &decl);
        if (gp_table_index(&f->index, local->text) < 0)
            SAY(x, local->at, "no stage of this file makes '%s', which is one of its outputs", local->text);
        b->out[b->n++] = (alias){ local->text, f, local->text };
        add_buffer(x, to, join(x, name, local->text), f, local->text);
        expect(x, f, local->text, decl, false, entry->at);
    }
    if (b->n == 1)
        add_buffer(x, to, name, f, b->out->name);
}

/* The variables of a file: what the entry gives them, else their defaults. */
static void read_file_vars(expansion *x, scope *f, const scope *s, const gp_node *entry, const gp_node *vars)
{
    static const gp_node none = { .kind = GP_MAP };
    const gp_node *given = gp_node_get(entry, "vars");
    vars = vars && vars->kind == GP_MAP ? vars : &none;
    for (int i = 0; given && i < given->n && given->kind == GP_MAP; i++) {
        gp_near near = GP_NEAR(given->key[i]->text);
        for (int k = 0; k < vars->n; k++)
            gp_near_try(&near, vars->key[k]->text);
        if (!gp_node_get(vars, near.word))
            SAY(x, given->key[i]->at, "'%s' has no variable '%s'%s", f->in.path, near.word, gp_near_text(&near));
    }
    if (given && given->kind != GP_MAP && !gp_is_null(given))
        SAY(x, given->at, "'vars' must be a map, like {gain: 1.5}");
    for (int i = 0; i < vars->n; i++) {
        const gp_node *key = vars->key[i], *g = given ? gp_node_get(given, key->text) : NULL;
        gp_node *value = declared(x, key, vars->item[i], gp_format(x->a, "%s.%s", f->in.prefix, key->text),
                                  g ? copy(x, g, s) : NULL);
        if (value && gp_is_null(value))
            SAY(x, g ? g->at : entry->at, "'%s' needs a value for '%s'; write vars: {%s: ...}", f->in.path, key->text,
                key->text);
        if (value)
            add_var(x, f, ".", key, value);
    }
}

/* What a file that is included may say: the rest is of a whole pipeline. */
static void check_file(expansion *x, const gp_node *root)
{
    static const char known[] = "pipeline|inputs|outputs|vars|buffers|stages";
    for (int i = 0; i < root->n; i++) {
        const char *key = root->key[i]->text;
        if (gp_word_index(key, known) >= 0 || !strncmp(key, "x-", 2))
            continue;
        gp_near near = GP_NEAR(key);
        for (const gp_opt *o = gp_top_keys; o->name; o++)
            gp_near_try(&near, o->name);
        SAY(x, root->key[i]->at, gp_key_find(gp_top_keys, key) ? "'%s' is for a whole pipeline: write it in the file that "
            "includes this one%s" : "a pipeline has no key '%s'%s", key, gp_key_find(gp_top_keys, key) ? ""
            : gp_near_text(&near));
    }
}

static bool is_circle(expansion *x, const scope *s, const char *path, gp_loc at)
{
    char plain[PATH_MAX], of[PATH_MAX];
    if (strlen(path) >= PATH_MAX)
        return !SAY(x, at, "cannot include '%.60s...': its name is too long", path);
    gp_path_plain(plain, path);
    for (const gp_inside *i = &s->in; i; i = i->outer)
        if (strlen(i->path) < PATH_MAX && !strcmp(plain, gp_path_plain(of, i->path)))
            return !SAY(x, at, !strcmp(i->path, s->in.path) ? "'%s' includes itself" : "'%s' includes itself, by way of '%s'",
                        path, s->in.path);
    return false;
}

static void add_file(expansion *x, scope *to, const scope *s, const gp_node *said, const char *name, before *b)
{
    const gp_node *include = gp_node_get(said, "include");
    if (!check_keys(x, said, gp_include_keys, "an include", include->text))
        return;
    gp_node *entry = copy(x, said, s);
    const gp_node *at = gp_node_get(entry, "include");
    const char *text = at->kind == GP_SCALAR && at->len ? text_of(x, at) : NULL;
    if (!text) {
        if (at->kind != GP_SCALAR || !at->len)
            SAY(x, at->at, "'include' must be the name of a file");
        return;
    }
    const char *path = gp_path_from(x->a, gp_inside_dir(at, x->vars, x->spec->dir), text);
    if (is_circle(x, s, path, at->at))
        return;
    const gp_node *label = gp_node_get(entry, "name");
    scope *f = new_scope(x, s, join(x, to->in.prefix, name), path, label ? label->at : at->at);
    const gp_node *root = read_file(x, f, at->at);
    if (!root)
        return;
    root = copy(x, root, f);
    const gp_node *inputs = gp_node_get(root, "inputs"), *outputs = gp_node_get(root, "outputs");
    const gp_node *buffers = gp_node_get(root, "buffers");
    check_file(x, root);
    if (!check_ports(x, inputs, "inputs") || !check_ports(x, outputs, "outputs"))
        return;
    read_file_vars(x, f, s, entry, gp_node_get(root, "vars"));
    if (!connect_inputs(x, f, s, entry, inputs, b))
        return;
    name_file_outputs(x, f, to, entry, outputs);
    add_buffers(x, f, buffers);
    add_list(x, f, gp_node_get(root, "stages"), b);
    show_outputs(x, f, to, entry, outputs, name, b);
}

/* ---- repeat --------------------------------------------------------------------- */

/* One variable with its values, in turns; or several that change together: then item i of `values` is a map of them. */
typedef struct axis { const gp_node *name, *values; int n; bool words; } axis;

/* A number of copies has the values 0, 1, ... */
static const gp_node *counted(expansion *x, const gp_node *n)
{
    gp_vars vars;
    gp_reader r = { .arena = x->a, .errs = x->errs, .vars = &vars, .env = x->env, .dir = "", .key = "over" };
    int64_t count;
    gp_vars_read(x->a, x->env, x->vars, &vars, GP_NEW(x->a, gp_errs, 1));
    if (!gp_read_int(&r, n, 1, MOST_STAGES, &count))
        return NULL;
    gp_node *list = new_node(x, GP_LIST, "", n->at);
    for (int i = 0, cap = 0; i < count; i++) {
        gp_node *item = new_node(x, GP_SCALAR, gp_format(x->a, "%d", i), n->at);
        item->quoted = false;
        put(x, list, &cap, NULL, item);
    }
    return list;
}

static const gp_node *value_at(const axis *of, int i)
{
    const gp_node *n = of->values->item[i];
    return n->kind == GP_MAP && n->n ? n->item[0] : n;
}

/* Copies are named by their values where those are short words, all different; else by their numbers. */
static bool are_words(expansion *x, const axis *of)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    gp_table seen = { .arena = x->a };
    for (int k = 0; k < of->n; k++) {
        const gp_node *n = value_at(of, k);
        if (n->kind != GP_SCALAR || !n->len || n->len > 32 || strspn(n->text, letters) < n->len
            || gp_table_find(&seen, n->text))
            return false;
        gp_table_put(&seen, n->text, k);
    }
    return true;
}

static bool check_var(expansion *x, const gp_node *key, const gp_node *value)
{
    if (!gp_is_name(key->text))
        return SAY(x, key->at, "'%.60s' is not a valid name for a variable; use letters, digits and _", key->text);
    return value->kind == GP_SCALAR || SAY(x, value->at, "'%s' is a %s; a variable has a single value", key->text,
                                           value->kind == GP_LIST ? "list" : "map");
}

/* {ch: 8}, {ch: [0, 1], pol: [x, y]}, [{ch: 0, file: a.npy}, {ch: 1, file: b.npy}]: how many axes; 0 after an error. */
static int read_over(expansion *x, const scope *s, const gp_node *repeat, axis v[GP_MAXDIM])
{
    static const gp_opt rows[] = { { .name = "over" }, { 0 } };
    const gp_node *over = gp_node_get(repeat, "over");
    if (repeat->kind == GP_MAP && !check_keys(x, repeat, rows, "'repeat'", NULL))
        return 0;
    if (!over || over->kind == GP_SCALAR || !over->n || (over->kind == GP_MAP && over->n > GP_MAXDIM)
        || (over->kind == GP_LIST && over->item[0]->kind != GP_MAP)) {
        SAY(x, over ? over->at : repeat->at, "'repeat' names a variable and its values: repeat: {over: {i: [a, b]}}, or "
            "{over: {i: 8}} for 0 to 7");
        return 0;
    }
    over = copy(x, over, s);
    bool ok = true;
    if (over->kind == GP_LIST) {
        v[0] = (axis){ NULL, over, over->n, .words = are_words(x, &(axis){ .values = over, .n = over->n }) };
        for (int i = 0; i < over->n; i++) {
            ok &= over->item[i]->kind == GP_MAP || SAY(x, over->item[i]->at, "each is a map of variables here");
            for (int k = 0; ok && k < over->item[i]->n; k++)
                ok &= check_var(x, over->item[i]->key[k], over->item[i]->item[k]);
        }
        return ok;
    }
    for (int i = 0; i < over->n; i++) {
        const gp_node *list = over->item[i]->kind == GP_SCALAR ? counted(x, over->item[i]) : over->item[i];
        if (!list)
            return 0;
        v[i] = (axis){ over->key[i], list, list->n, .words = are_words(x, &(axis){ .values = list, .n = list->n }) };
        ok &= list->kind == GP_LIST && list->n ? true : SAY(x, list->at, "the values of '%s' are a list, or a number of them",
                                                             v[i].name->text);
        for (int k = 0; ok && k < list->n; k++)
            ok &= check_var(x, v[i].name, list->item[k]);
    }
    return ok ? over->n : 0;
}

static void add_entry(expansion *x, scope *to, const scope *s, const gp_node *said, const char *name, before *b)
{
    if (x->stages->n >= MOST_STAGES && !x->full)
        x->full = !SAY(x, said->at, "'include' and 'repeat' make more than %d stages of this pipeline", MOST_STAGES);
    if (++x->depth > DEEPEST)
        SAY(x, said->at, "'include' and branches are more than %d deep in each other", DEEPEST);
    else if (x->full)
        ;
    else if (gp_node_get(said, "include"))
        add_file(x, to, s, said, name, b);
    else if (gp_node_get(said, "stages") && !gp_node_get(said, "use"))
        add_branch(x, to, s, said, name, b);
    else
        add_stage(x, to, s, said, name, b);
    x->depth--;
}

/* A copy of one map, whose keys may be changed. */
static gp_node *shallow(expansion *x, const gp_node *map)
{
    gp_node *n = GP_NEW(x->a, gp_node, 1);
    *n = *map;
    n->key = GP_NEW(x->a, gp_node *, n->n), n->item = GP_NEW(x->a, gp_node *, n->n);
    memcpy(n->key, map->key, sizeof *n->key * (size_t)n->n), memcpy(n->item, map->item, sizeof *n->item * (size_t)n->n);
    return n;
}

static void add_copies(expansion *x, scope *to, const gp_node *said, const char *name, before *b)
{
    axis v[GP_MAXDIM];
    const gp_node *repeat = gp_node_get(said, "repeat");
    gp_node *once = shallow(x, said);
    set_key(x, once, "repeat", NULL);
    int failed = x->errs->failed, n = read_over(x, to, repeat, v), at[GP_MAXDIM] = { 0 }, i = n - 1;
    while (i >= 0 && x->errs->failed == failed) {      /* one copy with a mistake is enough */
        const char *label = name;
        for (int k = 0; k < n; k++)
            label = v[k].words ? gp_format(x->a, "%s.%s", label, value_at(&v[k], at[k])->text)
                               : gp_format(x->a, "%s.%d", label, at[k]);
        scope *c = new_scope(x, to, join(x, to->in.prefix, label), NULL, said->at);
        for (int k = 0; k < n; k++) {
            const gp_node *value = v[k].values->item[at[k]];
            for (int m = 0; !v[k].name && m < value->n; m++)
                add_var(x, c, ":", value->key[m], value->item[m]);
            if (v[k].name)
                add_var(x, c, ":", v[k].name, (gp_node *)value);
        }
        add_entry(x, to, c, once, label, b);
        for (i = n - 1; i >= 0 && ++at[i] == v[i].n; i--)
            at[i] = 0;
    }
}

static void add_list(expansion *x, scope *s, const gp_node *list, before *b)
{
    const char **names = GP_NEW(x->a, const char *, list->n);
    gp_stage_names(x->a, list, names);
    gp_table seen = { .arena = x->a };
    for (int i = 0; i < list->n; i++) {
        const gp_node *st = list->item[i], *label = gp_node_get(st, "name");
        if (st->kind != GP_MAP) {                      /* which is said where it is wired */
            gp_node *as = copy(x, st, s);
            put(x, x->stages, &x->caps[2], NULL, as);
            continue;
        }
        if (label && !check_name(x, "stage", names[i], label->at))
            continue;
        if (gp_table_find(&seen, names[i])) {
            SAY(x, label ? label->at : st->at, "two stages are named '%s'", names[i]);
            continue;
        }
        gp_table_put(&seen, names[i], i);
        if (gp_node_get(st, "repeat"))
            add_copies(x, s, st, names[i], b);
        else
            add_entry(x, s, s, st, names[i], b);
    }
}

/* ---- inputs, once all outputs have names ------------------------------------------- */

/* Does a name match a pattern, of which '*' is any word up to a point? */
static bool matches(const char *pattern, const char *name)
{
    for (; *pattern; pattern++) {
        if (*pattern == '*') {
            for (; *name && *name != '.' && !matches(pattern + 1, name); name++)
                ;
        } else if (*pattern != *name++) {
            return false;
        }
    }
    return !*name;
}

typedef struct found { const char *local; gp_node *node; } found;

/* Adds the buffers that one text names. */
static int find_named(expansion *x, const scope *s, const gp_node *said, found *v, int n)
{
    const char *text = said->kind == GP_SCALAR && said->len ? text_of(x, said) : NULL;
    int first = n;
    for (const scope *in = s; text && strchr(text, '*') && in && n == first; in = in->in.opaque ? NULL : in->outer)
        for (int i = 0; i < in->n && n < GP_MAXPORT + 1; i++)
            if (matches(text, in->buffer[i].local))
                v[n++] = (found){ in->buffer[i].local, new_node(x, GP_SCALAR, lookup(x, in, in->buffer[i].local), said->at) };
    if (text && strchr(text, '*') && n == first)
        SAY(x, said->at, "no buffer has a name like '%s'", text);
    else if (text && n == first)
        v[n++] = (found){ text, new_node(x, GP_SCALAR, lookup(x, s, text), said->at) };
    else if (!text && n < GP_MAXPORT + 1)
        v[n++] = (found){ said->text, (gp_node *)said };
    return n;
}

static void check_given(expansion *x, const later *l)
{
    gp_near near = GP_NEAR(l->key);
    if (gp_table_find(&x->made, lookup(x, l->s, l->key)))
        return;
    for (const scope *s = l->s; s; s = s->in.opaque ? NULL : s->outer)
        for (int i = 0; i < s->n; i++)
            gp_near_try(&near, s->buffer[i].local);
    SAY(x, l->at, "no stage makes a buffer '%s'%s", l->key, gp_near_text(&near));
}

static void find_inputs(expansion *x, const later *l)
{
    if (!l->map) {
        check_given(x, l);
        return;
    }
    gp_node *said = (gp_node *)gp_node_get(l->map, l->key);
    found v[GP_MAXPORT + 1];
    const char *local[GP_MAXPORT + 1];
    int n = 0, cap = 0;
    if (said->kind == GP_MAP) {
        for (int i = 0; i < said->n; i++, n = 0)
            if ((n = find_named(x, l->s, said->item[i], v, 0)) > 1)
                SAY(x, said->item[i]->at, "'%s' names %d buffers, and a port takes one", said->item[i]->text, n);
            else if (n)
                said->item[i] = v[0].node;
        return;
    }
    for (int i = 0; i < (said->kind == GP_LIST ? said->n : 1) && n <= GP_MAXPORT; i++)
        n = find_named(x, l->s, said->kind == GP_LIST ? said->item[i] : said, v, n);
    if (n > GP_MAXPORT) {
        SAY(x, said->at, "a stage has at most %d inputs", GP_MAXPORT);
        return;
    }
    gp_node *list = new_node(x, GP_LIST, "", said->at);
    for (int i = 0; i < n; i++)
        local[i] = v[i].local, put(x, list, &cap, NULL, v[i].node);
    set_key(x, l->map, l->key, said->kind == GP_SCALAR && n == 1 ? v[0].node : by_port(x, list, l->kind ? l->kind->in : NULL,
                                                                                       local));
}

/* ---- the whole ------------------------------------------------------------------------ */

bool gp_is_reused(const gp_node *stage)
{
    return gp_node_get(stage, "include") || gp_node_get(stage, "repeat")
        || (gp_node_get(stage, "stages") && !gp_node_get(stage, "use"));
}

static bool is_any_reused(const gp_node *stages)
{
    for (int i = 0; stages && stages->kind == GP_LIST && i < stages->n; i++)
        if (gp_is_reused(stages->item[i]))
            return true;
    return false;
}

static bool check_inputs(expansion *x)
{
    const gp_node *inputs = gp_node_get(x->spec->root, "inputs"), *decl;
    if (!check_ports(x, inputs, "inputs") || !check_ports(x, gp_node_get(x->spec->root, "outputs"), "outputs"))
        return false;
    return !inputs || !inputs->n || SAY(x, inputs->at, "this file is a part of pipelines: its input '%s' comes from one that "
                                        "includes it, stages: [{include: %s, in: BUFFER}]", port_at(inputs, 0, &decl)->text,
                                        x->spec->file);
}

/* A map that many look into. */
static void add_index(expansion *x, gp_node *map)
{
    gp_table *t = GP_NEW(x->a, gp_table, 1);
    t->arena = x->a;
    for (int i = 0; i < map->n; i++)
        gp_table_put(t, map->key[i]->text, i);
    map->index = t;
}

static void expand(expansion *x)
{
    const int failed = x->errs->failed;
    gp_spec *spec = x->spec;
    const gp_node *vars = gp_node_get(spec->root, "vars"), *stages = gp_node_get(spec->root, "stages");
    gp_node *root = shallow(x, spec->root);
    x->vars = new_node(x, GP_MAP, "", vars ? vars->at : spec->root->at);
    x->buffers = new_node(x, GP_MAP, "", spec->root->at), x->stages = new_node(x, GP_LIST, "", spec->root->at);
    read_own_vars(x, vars);
    if (vars && vars->kind == GP_MAP)
        set_key(x, root, "vars", x->vars);
    if (is_any_reused(stages)) {
        scope s = { .in = { .prefix = "", .path = spec->file, .dir = spec->dir }, .index.arena = x->a, .out.arena = x->a };
        scope *top = GP_NEW(x->a, scope, 1);
        before b = { .flat = true };
        *top = s;
        spec->expanded = true, x->made.arena = x->files.arena = x->a;
        const gp_node *buffers = gp_node_get(root, "buffers");
        if (buffers)
            x->buffers->at = buffers->at, add_buffers(x, top, copy(x, buffers, top));
        x->stages->at = stages->at;
        add_list(x, top, stages, &b);
        bool whole = x->errs->failed == failed;        /* else what they look for may be missing */
        for (int i = 0; whole && i < x->nlater; i++)
            find_inputs(x, &x->later[i]);
        for (int i = 0; i < spec->nexpected; i++)
            spec->expected[i].buffer = lookup(x, spec->expected[i].of, spec->expected[i].local);
        add_index(x, x->buffers);
        set_key(x, root, "stages", x->stages);
        if (x->vars->n)
            set_key(x, root, "vars", x->vars);
        if (x->buffers->n)
            set_key(x, root, "buffers", x->buffers);
    }
    spec->root = root;
}

bool gp_expand(gp_arena *a, gp_spec *spec, const char *const *set, int nset, const gp_registry *registry, const gp_env *env,
               gp_probe *probe, gp_errs *errs)
{
    expansion x = { .a = a, .spec = spec, .var_index = GP_NEW(a, gp_table, 1), .registry = registry, .env = env, .probe = probe, .errs = errs };
    int failed = errs->failed;
    x.var_index->arena = a;
    for (int i = 0; i < nset; i++)
        if (!gp_set_is_late(a, spec, set[i], registry))
            gp_spec_set(a, spec, set[i], registry, errs);
    if (errs->failed > failed)
        return false;
    const gp_spec given = *spec;
    if (check_inputs(&x))
        expand(&x);
    for (int i = 0; i < nset && errs->failed == failed; i++)
        if (gp_set_is_late(a, &given, set[i], registry))
            gp_spec_set(a, spec, set[i], registry, errs);
    gp_spec_places(spec, errs);
    return errs->failed == failed;
}
