/* expand_file.c - see expand.h: files that are included, what goes into them and comes out of them, their variables. */
#include <limits.h>
#include <string.h>
#include "base/num.h"
#include "base/path.h"
#include "base/why.h"
#include "compile/expand.h"
#include "compile/expr.h"

/* ---- vars --------------------------------------------------------------- */

typedef struct value_now { gp_x *x; const gp_inside *in; int depth; } value_now;

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
static gp_node *as_number(gp_x *x, gp_node *n)
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
static gp_node *declared(gp_x *x, const gp_node *key, gp_node *said, const char *full, gp_node *given)
{
    if (said->kind != GP_MAP)
        return given ? given : said;
    if (!gp_x_check_keys(x, said, gp_var_keys, "a variable", NULL))
        return NULL;
    const gp_node *type = gp_node_get(said, "type");
    gp_node *def = (gp_node *)gp_node_get(said, "default");
    gp_node *value = given ? given : def ? def : NULL;
    if (type)
        *GP_PUSH(x->a, x->spec->typed, x->spec->ntyped, x->spec->typed_cap) = (gp_typed){ key->text, full, type };
    if (value)
        return type && (!strcmp(type->text, "integer") || !strcmp(type->text, "number")) ? as_number(x, value) : value;
    value = gp_x_new_node(x, GP_SCALAR, "", key->at);
    value->quoted = false;
    return value;
}

void gp_x_read_own_vars(gp_x *x, const gp_node *map)
{
    for (int i = 0; map && map->kind == GP_MAP && i < map->n; i++) {
        gp_node *value = declared(x, map->key[i], map->item[i], map->key[i]->text, NULL);
        if (value)
            gp_x_put_var(x, map->key[i], value);
    }
}

/* ---- files --------------------------------------------------------------- */

/* The file of a scope as a tree. NULL after an error at `at`. */
static const gp_node *read_file(gp_x *x, gp_x_scope *s, gp_loc at)
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
        SAY(x, stages ? stages->at : ((gp_loc){ .file = as }),
            "this file has no stages; write stages: [{use: KIND}, ...]");
    if (x->errs->failed > failed)
        return NULL;
    gp_table_put(&x->files, path, 0)->ptr = (void *)root;
    return root;
}

/* The i-th name that `inputs` or `outputs` lists; `decl`: its type, or NULL. */
const gp_node *gp_x_port_at(const gp_node *ports, int i, const gp_node **decl)
{
    *decl = ports->kind == GP_MAP && ports->item[i]->kind == GP_MAP ? ports->item[i] : NULL;
    return ports->kind == GP_MAP ? ports->key[i] : ports->item[i];
}

bool gp_x_check_ports(gp_x *x, const gp_node *ports, const char *key)
{
    static const gp_opt rows[] = { { .name = "dtype" }, { .name = "shape" }, { 0 } };
    const gp_node *decl;
    bool ok = !ports || ports->kind != GP_SCALAR || gp_is_null(ports)
        || SAY(x, ports->at, "'%s' is a list of names, or a map: {x: {dtype: f32, shape: [8]}}", key);
    for (int i = 0; ok && ports && i < ports->n; i++) {
        const gp_node *name = gp_x_port_at(ports, i, &decl);
        ok = gp_x_check_name(x, "buffer", name->text, name->at)
            && (!decl || gp_x_check_keys(x, decl, rows, "such a buffer", NULL))
            && (decl || ports->kind == GP_LIST || gp_is_null(ports->item[i])
                || SAY(x, ports->item[i]->at, "'%s' must be a map, like {dtype: f32, shape: [480, 640]}", name->text));
    }
    return ok;
}

/* What the entry connects to port i of the file: a scalar, or NULL. */
static const gp_node *connected(const gp_node *said, const gp_node *ports, int i)
{
    const gp_node *decl, *name = gp_x_port_at(ports, i, &decl);
    if (said && said->kind == GP_SCALAR)
        return i ? NULL : said;
    return !said ? NULL : said->kind == GP_MAP ? gp_node_get(said, name->text) : i < said->n ? said->item[i] : NULL;
}

/* Does `in` or `out` of an entry name ports that the file has? */
static bool check_connected(gp_x *x, const gp_node *said, const gp_node *ports, const char *what, const char *path)
{
    static const gp_node none = { .kind = GP_LIST };
    const gp_node *decl;
    bool ok = true;
    ports = ports ? ports : &none;
    int n = !said ? 0 : said->kind == GP_SCALAR ? 1 : said->n;
    if (said && said->kind != GP_MAP && n > ports->n)
        return SAY(x, said->at, "'%s' has %d %s%s, and %d are given", path, ports->n, what, ports->n == 1 ? "" : "s",
                   n);
    for (int i = 0; i < n && said->kind == GP_MAP; i++) {
        gp_near near = GP_NEAR(said->key[i]->text);
        bool found = false;
        for (int k = 0; k < ports->n; k++) {
            const char *name = gp_x_port_at(ports, k, &decl)->text;
            gp_near_try(&near, name), found |= !strcmp(near.word, name);
        }
        if (!found)
            ok = SAY(x, said->key[i]->at, "'%s' has no %s '%s'%s", path, what, near.word, gp_near_text(&near));
    }
    return ok;
}

static void expect(gp_x *x, const gp_x_scope *s, const char *name, const gp_node *decl, bool in, gp_loc at)
{
    if (decl)
        *GP_PUSH(x->a, x->spec->expected, x->spec->nexpected, x->spec->expected_cap)
            = (gp_expected){ .local = name, .of = s, .decl = decl, .file = s->in.path, .in = in, .at = at };
}

/* The file's inputs become names of buffers outside; *first: what its first stage reads. */
static bool connect_inputs(gp_x *x, gp_x_scope *f, const gp_x_scope *s, const gp_node *entry, const gp_node *inputs,
                           gp_x_before *b)
{
    const gp_node *in = gp_node_get(entry, "in"), *decl;
    gp_x_before prev = *b;
    *b = (gp_x_before){ .n = 0 };
    bool ok = check_connected(x, in, inputs, "input", f->in.path);
    for (int i = 0; ok && inputs && i < inputs->n; i++) {
        const gp_node *name = gp_x_port_at(inputs, i, &decl), *n = connected(in, inputs, i);
        const char *text = n && n->kind == GP_SCALAR && n->len ? gp_x_text_of(x, n) : NULL;
        if (text)
            gp_x_check_later(x, s, text, n->at);
        else if (n)
            ok = SAY(x, n->at, "the name of a buffer is expected here");
        else if (in || inputs->n > 1 || prev.n != 1)
            ok = SAY(x, in ? in->at : entry->at, "input '%s' of '%s' is not connected; write in: {%s: BUFFER}",
                     name->text, f->in.path, name->text);
        if (text)
            gp_x_add_buffer(x, f, name->text, s, text);
        else if (ok)
            gp_x_add_buffer(x, f, name->text, prev.out->of, prev.out->name);
        expect(x, f, name->text, decl, true, n ? n->at : entry->at);
    }
    if (inputs && inputs->n == 1) {
        const gp_node *name = gp_x_port_at(inputs, 0, &decl);
        b->out = GP_NEW(x->a, gp_x_alias, 1), b->n = 1;
        b->out[0] = (gp_x_alias){ name->text, f, name->text };
    }
    return ok;
}

/* Names outside of what the file makes: before its stages are added, those that the entry gives. */
static void name_file_outputs(gp_x *x, gp_x_scope *f, gp_x_scope *to, const gp_node *entry, const gp_node *outputs)
{
    const gp_node *out = gp_node_get(entry, "out"), *decl;
    const gp_node *only = outputs && outputs->n == 1 ? gp_x_port_at(outputs, 0, &decl) : NULL;
    if (!check_connected(x, out, outputs, "output", f->in.path))
        return;
    if (only && !out)
        gp_table_put(&f->out, only->text, 0)->ptr = (void *)f->in.prefix;
    for (int i = 0; outputs && i < outputs->n; i++) {
        const gp_node *local = gp_x_port_at(outputs, i, &decl), *n = connected(out, outputs, i);
        const char *text = n && n->kind == GP_SCALAR && n->len ? gp_x_text_of(x, n) : NULL;
        if (n && !text)
            SAY(x, n->at, "the name of a buffer is expected here");
        if (!text || !gp_x_check_name(x, "buffer", text, n->at))
            continue;
        gp_table_put(&f->out, local->text, 0)->ptr = (void *)gp_x_name_in_whole(x, to, text);
        gp_x_add_buffer(x, to, text, f, local->text);
    }
}

/* ... and once they are. `all`: its stages are there, so that what none of them makes nobody does. */
static void show_outputs(gp_x *x, gp_x_scope *f, gp_x_scope *to, const gp_node *entry, const gp_node *outputs,
                         const char *name, bool all, gp_x_before *b)
{
    const gp_node *decl;
    *b = (gp_x_before){ .who = f->in.prefix, .out = GP_NEW(x->a, gp_x_alias, outputs ? outputs->n : 0) };
    for (int i = 0; outputs && i < outputs->n; i++) {
        const gp_node *local = gp_x_port_at(outputs, i, &decl);
        if (all && gp_table_index(&f->index, local->text) < 0)
            SAY(x, local->at, "no stage of this file makes '%s', which is one of its outputs", local->text);
        b->out[b->n++] = (gp_x_alias){ local->text, f, local->text };
        gp_x_add_buffer(x, to, gp_x_join(x, name, local->text), f, local->text);
        expect(x, f, local->text, decl, false, entry->at);
    }
    if (b->n == 1)
        gp_x_add_buffer(x, to, name, f, b->out->name);
}

/* The variables of a file: what the entry gives them, else their defaults. */
static void read_file_vars(gp_x *x, gp_x_scope *f, const gp_x_scope *s, const gp_node *entry, const gp_node *vars)
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
                                  g ? gp_x_copy(x, g, s) : NULL);
        if (!gp_is_name(key->text))
            SAY(x, key->at, "'%.60s' is not a valid name for a variable; use letters, digits and _", key->text);
        else if (g && g->kind != GP_SCALAR)
            SAY(x, g->at, "'%s' is a %s; a variable has a single value", key->text,
                g->kind == GP_LIST ? "list" : "map");
        else if (value && gp_is_null(value))
            SAY(x, g ? g->at : entry->at, "'%s' needs a value for '%s'; write vars: {%s: ...}", f->in.path, key->text,
                key->text);
        if (value)
            gp_x_add_var(x, f, ".", key, value);
    }
}

/* What a file that is included may say: the rest is of a whole pipeline. */
static void check_file(gp_x *x, const gp_node *root)
{
    static const char known[] = "pipeline|inputs|outputs|vars|buffers|stages";
    for (int i = 0; i < root->n; i++) {
        const char *key = root->key[i]->text;
        if (gp_word_index(key, known) >= 0 || !strncmp(key, "x-", 2))
            continue;
        gp_near near = gp_key_near(gp_top_keys, key);
        SAY(x, root->key[i]->at, gp_key_find(gp_top_keys, key)
            ? "'%s' is for a whole pipeline: write it in the file that "
            "includes this one%s" : "a pipeline has no key '%s'%s", key, gp_key_find(gp_top_keys, key) ? ""
            : gp_near_text(&near));
    }
}

static bool is_circle(gp_x *x, const gp_x_scope *s, const char *path, gp_loc at)
{
    char plain[PATH_MAX], of[PATH_MAX];
    if (strlen(path) >= PATH_MAX)
        return !SAY(x, at, "cannot include '%.60s...': its name is too long", path);
    gp_path_plain(plain, path);
    for (const gp_inside *i = &s->in; i; i = i->outer)
        if (strlen(i->path) < PATH_MAX && !strcmp(plain, gp_path_plain(of, i->path)))
            return !SAY(x, at, !strcmp(i->path, s->in.path) ? "'%s' includes itself"
                        : "'%s' includes itself, by way of '%s'", path, s->in.path);
    return false;
}

void gp_x_add_file(gp_x *x, gp_x_scope *to, const gp_x_scope *s, const gp_node *said, const char *name, gp_x_before *b)
{
    const gp_node *include = gp_node_get(said, "include");
    if (!gp_x_check_keys(x, said, gp_include_keys, "an include", include->text))
        return;
    gp_node *entry = gp_x_copy(x, said, s);
    const gp_node *at = gp_node_get(entry, "include");
    const char *text = at->kind == GP_SCALAR && at->len ? gp_x_text_of(x, at) : NULL;
    if (!text) {
        if (at->kind != GP_SCALAR || !at->len)
            SAY(x, at->at, "'include' must be the name of a file");
        return;
    }
    const char *path = gp_path_from(x->a, gp_inside_dir(at, x->vars, x->spec->dir), text);
    if (is_circle(x, s, path, at->at))
        return;
    const gp_node *label = gp_node_get(entry, "name");
    gp_x_scope *f = gp_x_new_scope(x, s, gp_x_join(x, to->in.prefix, name), path, label ? label->at : at->at);
    const gp_node *root = read_file(x, f, at->at);
    if (!root)
        return;
    root = gp_x_copy(x, root, f);
    const gp_node *inputs = gp_node_get(root, "inputs"), *outputs = gp_node_get(root, "outputs");
    const gp_node *buffers = gp_node_get(root, "buffers");
    check_file(x, root);
    if (!gp_x_check_ports(x, inputs, "inputs") || !gp_x_check_ports(x, outputs, "outputs"))
        return;
    read_file_vars(x, f, s, entry, gp_node_get(root, "vars"));
    if (!connect_inputs(x, f, s, entry, inputs, b))
        return;
    name_file_outputs(x, f, to, entry, outputs);
    gp_x_add_buffers(x, f, buffers);
    int failed = x->errs->failed;
    gp_x_add_list(x, f, gp_node_get(root, "stages"), b);
    show_outputs(x, f, to, entry, outputs, name, x->errs->failed == failed, b);
}
