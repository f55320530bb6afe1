/* expand.c - `include`, `repeat` and branches: the spec becomes one that has each of their stages, as if it were
 * written by hand. Behind this pass nobody knows where a stage came from, but for names and folders (inside.h).
 *
 * First all stages get their names and outputs, in the order of the file; then inputs are looked up, since a stage may
 * read what one behind it makes. */
#include <string.h>
#include "compile/expand.h"

/* ---- branches ------------------------------------------------------------ */

/* What `in` of an entry names, as one output before its first stage. */
static void read_branch_in(gp_x *x, const gp_x_scope *s, const gp_node *in, gp_x_before *b)
{
    const char *name = in->kind == GP_SCALAR && in->len ? gp_x_text_of(x, in) : NULL;
    if (in->kind != GP_SCALAR || !in->len)
        SAY(x, in->at, "'in' of a branch is one buffer, which its first stage reads");
    b->out = GP_NEW(x->a, gp_x_alias, 1), b->n = name != NULL, b->who = NULL;
    if (name)
        b->out[0] = (gp_x_alias){ name, s, name }, gp_x_check_later(x, s, name, in->at);
}

static void add_branch(gp_x *x, gp_x_scope *to, const gp_x_scope *s, const gp_node *said, const char *name,
                       gp_x_before *b)
{
    gp_x_scope *g = gp_x_new_scope(x, s, gp_x_join(x, to->in.prefix, name), NULL, said->at);
    const gp_node *stages = gp_node_get(said, "stages"), *in = gp_node_get(said, "in");
    if (!gp_x_check_keys(x, said, gp_branch_keys, "a branch", NULL))
        return;
    if (stages->kind != GP_LIST || !stages->n) {
        SAY(x, stages->at, "'stages' must be a list, like [{use: read}, {use: gray}]");
        return;
    }
    b->flat = false;
    if (in)
        read_branch_in(x, s, gp_x_copy(x, in, s), b);
    const gp_node *buffers = gp_node_get(said, "buffers");
    if (buffers)
        gp_x_add_buffers(x, g, gp_x_copy(x, buffers, g));
    gp_x_add_list(x, g, stages, b);
    for (int i = 0; i < g->n; i++)
        gp_x_add_buffer(x, to, gp_x_join(x, name, g->buffer[i].local), g, g->buffer[i].local);
    if (b->n == 1)
        gp_x_add_buffer(x, to, name, b->out->of, b->out->name);
    b->flat = false, b->who = g->in.prefix;
}

/* ---- repeat --------------------------------------------------------------------- */

/* One variable with its values, in turns; or several that change together: then item i of `values` is a map of them. */
typedef struct axis { const gp_node *name, *values; int n; bool words; } axis;

/* A number of copies has the values 0, 1, ... */
static const gp_node *counted(gp_x *x, const gp_node *n)
{
    gp_vars vars;
    gp_reader r = { .arena = x->a, .errs = x->errs, .vars = &vars, .env = x->env, .dir = "", .key = "over" };
    int64_t count;
    gp_vars_read(x->a, x->env, x->vars, &vars, GP_NEW(x->a, gp_errs, 1));
    if (!gp_read_int(&r, n, 1, GP_X_STAGES, &count))
        return NULL;
    gp_node *list = gp_x_new_node(x, GP_LIST, "", n->at);
    for (int i = 0, cap = 0; i < count; i++) {
        gp_node *item = gp_x_new_node(x, GP_SCALAR, gp_format(x->a, "%d", i), n->at);
        item->quoted = false;
        gp_x_put(x, list, &cap, NULL, item);
    }
    return list;
}

static const gp_node *value_at(const axis *of, int i)
{
    const gp_node *n = of->values->item[i];
    return n->kind == GP_MAP && n->n ? n->item[0] : n;
}

/* Copies are named by their values where those are short words, all different; else by their numbers. */
static bool are_words(gp_x *x, const axis *of)
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

static bool check_var(gp_x *x, const gp_node *key, const gp_node *value)
{
    if (!gp_is_name(key->text))
        return SAY(x, key->at, "'%.60s' is not a valid name for a variable; use letters, digits and _", key->text);
    return value->kind == GP_SCALAR || SAY(x, value->at, "'%s' is a %s; a variable has a single value", key->text,
                                           value->kind == GP_LIST ? "list" : "map");
}

/* {ch: 8}, {ch: [0, 1], pol: [x, y]}, [{ch: 0, file: a.npy}, {ch: 1, file: b.npy}]: how many axes; 0 after an error. */
static int read_over(gp_x *x, const gp_x_scope *s, const gp_node *repeat, axis v[GP_MAXDIM])
{
    static const gp_opt rows[] = { { .name = "over" }, { 0 } };
    const gp_node *over = gp_node_get(repeat, "over");
    if (repeat->kind == GP_MAP && !gp_x_check_keys(x, repeat, rows, "'repeat'", NULL))
        return 0;
    if (!over || over->kind == GP_SCALAR || !over->n || (over->kind == GP_MAP && over->n > GP_MAXDIM)
        || (over->kind == GP_LIST && over->item[0]->kind != GP_MAP)) {
        SAY(x, over ? over->at : repeat->at,
            "'repeat' names a variable and its values: repeat: {over: {i: [a, b]}}, or "
            "{over: {i: 8}} for 0 to 7");
        return 0;
    }
    over = gp_x_copy(x, over, s);
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
        if (list->kind != GP_LIST || !list->n)
            ok = SAY(x, list->at, "the values of '%s' are a list, or a number of them", v[i].name->text);
        for (int k = 0; ok && k < list->n; k++)
            ok &= check_var(x, v[i].name, list->item[k]);
    }
    return ok ? over->n : 0;
}

static void add_entry(gp_x *x, gp_x_scope *to, const gp_x_scope *s, const gp_node *said, const char *name,
                      gp_x_before *b)
{
    if (x->stages->n >= GP_X_STAGES && !x->full)
        x->full = !SAY(x, said->at, "'include' and 'repeat' make more than %d stages of this pipeline", GP_X_STAGES);
    if (++x->depth > GP_X_DEEPEST)
        SAY(x, said->at, "'include' and branches are more than %d deep in each other", GP_X_DEEPEST);
    else if (x->full)
        ;
    else if (gp_node_get(said, "include"))
        gp_x_add_file(x, to, s, said, name, b);
    else if (gp_node_get(said, "stages") && !gp_node_get(said, "use"))
        add_branch(x, to, s, said, name, b);
    else
        gp_x_add_stage(x, to, s, said, name, b);
    x->depth--;
}

/* A copy of one map, whose keys may be changed. */
static gp_node *shallow(gp_x *x, const gp_node *map)
{
    gp_node *n = GP_NEW(x->a, gp_node, 1);
    *n = *map;
    n->key = GP_NEW(x->a, gp_node *, n->n), n->item = GP_NEW(x->a, gp_node *, n->n);
    memcpy(n->key, map->key, sizeof *n->key * (size_t)n->n), memcpy(n->item, map->item, sizeof *n->item * (size_t)n->n);
    return n;
}

static void add_copies(gp_x *x, gp_x_scope *to, const gp_node *said, const char *name, gp_x_before *b)
{
    axis v[GP_MAXDIM];
    const gp_node *repeat = gp_node_get(said, "repeat");
    gp_node *once = shallow(x, said);
    gp_x_set_key(x, once, "repeat", NULL);
    int failed = x->errs->failed, n = read_over(x, to, repeat, v), at[GP_MAXDIM] = { 0 }, i = n - 1;
    while (i >= 0 && x->errs->failed == failed) {      /* one copy with a mistake is enough */
        const char *label = name;
        for (int k = 0; k < n; k++)
            label = v[k].words ? gp_format(x->a, "%s.%s", label, value_at(&v[k], at[k])->text)
                               : gp_format(x->a, "%s.%d", label, at[k]);
        gp_x_scope *c = gp_x_new_scope(x, to, gp_x_join(x, to->in.prefix, label), NULL, said->at);
        for (int k = 0; k < n; k++) {
            const gp_node *value = v[k].values->item[at[k]];
            for (int m = 0; !v[k].name && m < value->n; m++)
                gp_x_add_var(x, c, ":", value->key[m], value->item[m]);
            if (v[k].name)
                gp_x_add_var(x, c, ":", v[k].name, (gp_node *)value);
        }
        add_entry(x, to, c, once, label, b);
        for (i = n - 1; i >= 0 && ++at[i] == v[i].n; i--)
            at[i] = 0;
    }
}

void gp_x_add_list(gp_x *x, gp_x_scope *s, const gp_node *list, gp_x_before *b)
{
    const char **names = GP_NEW(x->a, const char *, list->n);
    gp_stage_names(x->a, list, names);
    gp_table seen = { .arena = x->a };
    for (int i = 0; i < list->n; i++) {
        const gp_node *st = list->item[i], *label = gp_node_get(st, "name");
        if (st->kind != GP_MAP) {                      /* which is said where it is wired */
            gp_node *as = gp_x_copy(x, st, s);
            gp_x_put(x, x->stages, &x->caps[2], NULL, as);
            continue;
        }
        if (label && (label->kind != GP_SCALAR ? !SAY(x, label->at, "'name' must be text")
                                               : !gp_x_check_name(x, "stage", names[i], label->at)))
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

static bool check_inputs(gp_x *x)
{
    const gp_node *root = x->spec->root, *inputs = gp_node_get(root, "inputs"), *decl;
    if (!gp_x_check_ports(x, inputs, "inputs") || !gp_x_check_ports(x, gp_node_get(root, "outputs"), "outputs"))
        return false;
    return !inputs || !inputs->n
        || SAY(x, inputs->at, "this file is a part of pipelines: its input '%s' comes from one that includes it, "
               "stages: [{include: %s, in: BUFFER}]", gp_x_port_at(inputs, 0, &decl)->text, x->spec->file);
}

/* A map that many look into. */
static void add_index(gp_x *x, gp_node *map)
{
    gp_table *t = GP_NEW(x->a, gp_table, 1);
    t->arena = x->a;
    for (int i = 0; i < map->n; i++)
        gp_table_put(t, map->key[i]->text, i);
    map->index = t;
}

static void expand(gp_x *x)
{
    const int failed = x->errs->failed;
    gp_spec *spec = x->spec;
    const gp_node *vars = gp_node_get(spec->root, "vars"), *stages = gp_node_get(spec->root, "stages");
    gp_node *root = shallow(x, spec->root);
    x->vars = gp_x_new_node(x, GP_MAP, "", vars ? vars->at : spec->root->at);
    x->buffers = gp_x_new_node(x, GP_MAP, "", spec->root->at);
    x->stages = gp_x_new_node(x, GP_LIST, "", spec->root->at);
    gp_x_read_own_vars(x, vars);
    if (vars && vars->kind == GP_MAP)
        gp_x_set_key(x, root, "vars", x->vars);
    if (is_any_reused(stages)) {
        gp_x_scope *top = GP_NEW(x->a, gp_x_scope, 1);
        gp_x_before b = { .flat = true };
        top->in.prefix = "", top->in.path = spec->file, top->in.dir = spec->dir;
        top->index.arena = top->out.arena = x->a;
        spec->expanded = true, x->made.arena = x->files.arena = x->a;
        const gp_node *buffers = gp_node_get(root, "buffers");
        if (buffers)
            x->buffers->at = buffers->at, gp_x_add_buffers(x, top, gp_x_copy(x, buffers, top));
        x->stages->at = stages->at;
        gp_x_add_list(x, top, stages, &b);
        bool whole = x->errs->failed == failed;        /* else what they look for may be missing */
        for (int i = 0; whole && i < x->nlater; i++)
            gp_x_find_inputs(x, &x->later[i]);
        for (int i = 0; i < spec->nexpected; i++)
            spec->expected[i].buffer = gp_x_lookup(x, spec->expected[i].of, spec->expected[i].local);
        add_index(x, x->buffers);
        gp_x_set_key(x, root, "stages", x->stages);
        if (x->vars->n)
            gp_x_set_key(x, root, "vars", x->vars);
        if (x->buffers->n)
            gp_x_set_key(x, root, "buffers", x->buffers);
    }
    spec->root = root;
}

bool gp_expand(gp_arena *a, gp_spec *spec, const char *const *set, int nset, const gp_registry *registry,
               const gp_env *env, gp_probe *probe, gp_errs *errs)
{
    gp_x x = { .a = a, .spec = spec, .var_index = GP_NEW(a, gp_table, 1), .registry = registry, .env = env,
               .probe = probe, .errs = errs };
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
