/* expand_names.c - see expand.h: nodes, scopes and their names; stages, with the names of their outputs; what names of
 * inputs mean, once all outputs have theirs. */
#include <string.h>
#include "compile/expand.h"

enum { MOST_NODES = 1000 * 1000 };

gp_node *gp_x_new_node(gp_x *x, gp_node_kind kind, const char *text, gp_loc at)
{
    gp_node *n = GP_NEW(x->a, gp_node, 1);
    *n = (gp_node){ .kind = kind, .at = at, .text = text, .len = strlen(text), .quoted = true };
    return n;
}

void gp_x_put(gp_x *x, gp_node *map, int *cap, gp_node *key, gp_node *item)
{
    int n = map->n, room = *cap;
    if (key)
        *GP_PUSH(x->a, map->key, n, room) = key, n--;
    *GP_PUSH(x->a, map->item, n, *cap) = item;
    map->n = n, map->index = NULL;
}

void gp_x_put_var(gp_x *x, gp_node *key, gp_node *value)
{
    gp_table_put(x->var_index, key->text, x->vars->n);
    gp_x_put(x, x->vars, &x->caps[0], key, value);
    x->vars->index = x->var_index;
}

/* With `value` under `key`; NULL: without it. The map is one of which no other node has the arrays. */
void gp_x_set_key(gp_x *x, gp_node *map, const char *key, gp_node *value)
{
    int i = 0, cap = map->n;
    while (i < map->n && strcmp(map->key[i]->text, key))
        i++;
    map->index = NULL;
    if (value && i < map->n)
        map->item[i] = value;
    else if (value)
        gp_x_put(x, map, &cap, gp_x_new_node(x, GP_SCALAR, key, value->at), value);
    else if (i < map->n)
        for (map->n--; i < map->n; i++)
            map->key[i] = map->key[i + 1], map->item[i] = map->item[i + 1];
}

/* A copy with all that is in it, which stands inside `s`. */
gp_node *gp_x_copy(gp_x *x, const gp_node *from, const gp_x_scope *s)
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
        n->item[i] = more ? gp_x_copy(x, from->item[i], s) : gp_x_new_node(x, GP_SCALAR, "", from->at);
        if (n->key)
            n->key[i] = more ? gp_x_copy(x, from->key[i], s) : from->key[i];
    }
    return n;
}

const char *gp_x_join(gp_x *x, const char *prefix, const char *name)
{
    return *prefix ? gp_format(x->a, "%s.%s", prefix, name) : name;
}

const char *gp_x_text_of(gp_x *x, const gp_node *n)
{
    const char *text = "";
    return gp_interpolate(x->a, n, x->vars, x->env, &text, x->errs) ? text : NULL;
}

bool gp_x_check_name(gp_x *x, const char *what, const char *name, gp_loc at)
{
    return gp_is_label(name) || SAY(x, at, "'%.60s' is not a valid name for a %s; use letters, digits, _ and -", name,
                                    what);
}

/* Keys that an entry may have, as `rows` says. */
bool gp_x_check_keys(gp_x *x, const gp_node *map, const gp_opt *rows, const char *what, const char *file)
{
    bool ok = true;
    for (int i = 0; i < map->n; i++) {
        gp_near near = gp_key_near(rows, map->key[i]->text);
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
gp_x_scope *gp_x_new_scope(gp_x *x, const gp_x_scope *outer, const char *prefix, const char *file, gp_loc at)
{
    gp_x_scope *s = GP_NEW(x->a, gp_x_scope, 1);
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

void gp_x_add_buffer(gp_x *x, gp_x_scope *s, const char *local, const gp_x_scope *of, const char *name)
{
    if (gp_table_index(&s->index, local) >= 0)         /* two producers, which is said where they are wired */
        return;
    gp_table_put(&s->index, local, s->n);
    *GP_PUSH(x->a, s->buffer, s->n, s->cap) = (gp_x_alias){ local, of, name };
}

/* The name in the whole of what a scope calls so. */
const char *gp_x_lookup(gp_x *x, const gp_x_scope *s, const char *name)
{
    for (int steps = 0; s && steps < 4 * GP_X_DEEPEST; steps++) {
        int i = gp_table_index(&s->index, name);
        if (i >= 0 && !s->buffer[i].of)
            return s->buffer[i].name;
        if (i < 0 && s->in.opaque)
            return gp_x_join(x, s->in.prefix, name);
        const gp_x_scope *to = i < 0 ? s->outer : s->buffer[i].of;
        name = i < 0 ? name : s->buffer[i].name, s = to;
    }
    return name;
}

/* Where a scope's own outputs are named outside, that name; else one behind its prefix. */
const char *gp_x_name_in_whole(gp_x *x, const gp_x_scope *s, const char *local)
{
    const gp_entry *e = gp_table_find(&s->out, local);
    return e ? e->ptr : gp_x_join(x, s->in.prefix, local);
}

/* A value is under that name, which is also said in full, in the whole's vars. */
void gp_x_add_var(gp_x *x, gp_x_scope *s, const char *mark, const gp_node *key, gp_node *value)
{
    char *full = gp_format(x->a, "%s%s%s", s->in.prefix, mark, key->text);
    gp_node *named = gp_x_new_node(x, GP_SCALAR, full, key->at);
    named->inside = &s->in;
    gp_x_put_var(x, named, value);
    gp_table_put(&s->in.vars, key->text, 0)->ptr = full;
}

/* ---- buffers ------------------------------------------------------------- */

static void wait(gp_x *x, gp_node *map, const char *key, const gp_x_scope *s, const gp_kind *kind)
{
    if (gp_node_get(map, key))
        *GP_PUSH(x->a, x->later, x->nlater, x->later_cap) = (gp_x_later){ map, key, s, kind, { 0 } };
}

/* Whether there is a buffer that a scope calls so. */
void gp_x_check_later(gp_x *x, const gp_x_scope *s, const char *name, gp_loc at)
{
    *GP_PUSH(x->a, x->later, x->nlater, x->later_cap) = (gp_x_later){ NULL, name, s, NULL, at };
}

/* What the file says of a buffer, beside what is said outside. */
static void add_keys(gp_x *x, const gp_x_scope *s, gp_node *to, const gp_node *from)
{
    to->kind = GP_MAP;
    for (int i = 0; i < from->n; i++) {
        const char *key = from->key[i]->text;
        if (gp_node_get(to, key))
            SAY(x, gp_node_get(to, key)->at, "'%s' of this buffer is said in '%s', too: remove one", key,
                from->inside ? from->inside->path : x->spec->file);
        else
            gp_x_set_key(x, to, key, from->item[i]);
        if (!strcmp(key, "like"))
            wait(x, to, key, s, NULL);
    }
}

void gp_x_add_buffers(gp_x *x, gp_x_scope *s, const gp_node *map)
{
    if (map && map->kind != GP_MAP && !gp_is_null(map))
        SAY(x, map->at, "'buffers' must be a map, like {photo: {dtype: u8, shape: [768, 1024]}}");
    for (int i = 0; map && map->kind == GP_MAP && i < map->n; i++) {
        gp_node *key = map->key[i], *value = map->item[i];
        if (!gp_x_check_name(x, "buffer", key->text, key->at))
            continue;
        const gp_entry *input = gp_table_find(&s->index, key->text);
        if (input && s->buffer[input->n].of) {
            SAY(x, key->at,
                "'%s' is an input of this file: write its type there, inputs: {%s: {dtype: f32, shape: [8]}}",
                key->text, key->text);
            continue;
        }
        gp_node *named = GP_NEW(x->a, gp_node, 1);
        *named = *key;
        named->text = gp_x_name_in_whole(x, s, key->text), named->len = strlen(named->text);
        const gp_node *outside = gp_node_get(x->buffers, named->text);
        if (outside && (outside->kind == GP_MAP || gp_is_null(outside)) && value->kind == GP_MAP) {
            add_keys(x, s, (gp_node *)outside, value);         /* of an output */
            continue;
        }
        if (value->kind == GP_MAP)
            wait(x, value, "like", s, NULL), wait(x, value, "carry", s, NULL);
        gp_x_put(x, x->buffers, &x->caps[1], named, value);
        bool made = value->kind == GP_MAP && (gp_node_get(value, "const") || gp_node_get(value, "carry"));
        if (made)
            gp_x_add_buffer(x, s, key->text, NULL, named->text), gp_table_put(&x->made, named->text, 0);
    }
}

/* ---- a stage --------------------------------------------------------------- */

/* The name of an output, as the scope has it. */
static gp_node *output(gp_x *x, gp_x_scope *to, const gp_node *said, bool check, gp_x_before *b)
{
    const char *local = said->kind == GP_SCALAR && said->len ? gp_x_text_of(x, said) : NULL;
    gp_node *n = GP_NEW(x->a, gp_node, 1);
    *n = *said;
    if (!local || (check && !gp_x_check_name(x, "buffer", local, said->at)))
        return n;
    const char *whole = gp_x_lookup(x, to, local);
    if (gp_node_get(gp_node_get(x->buffers, whole), "state")) {        /* it is changed, not made */
        n->text = whole, n->len = strlen(whole), n->local = local;
        return n;
    }
    n->local = local;
    n->text = gp_x_name_in_whole(x, to, local), n->len = strlen(n->text);
    gp_x_add_buffer(x, to, local, NULL, n->text);
    gp_table_put(&x->made, n->text, 0);
    b->out[b->n++] = (gp_x_alias){ local, NULL, n->text };
    return n;
}

/* Names by position become names by port, as of a kind that has ports of any name they are the names of buffers. */
static gp_node *by_port(gp_x *x, gp_node *n, const gp_port *ports, const char *const *local)
{
    bool star;
    int fixed = gp_count_ports(ports, &star), cap = 0;
    if (!star || n->kind != GP_LIST || (n->n < 2 && !fixed) || n->n > GP_MAXPORT)
        return n;
    gp_node *map = gp_x_new_node(x, GP_MAP, "", n->at);
    for (int i = 0; i < n->n; i++) {
        char *port = gp_strdup(x->a, i < fixed ? ports[i].name : local[i]);
        for (char *p = port; *p; p++)
            *p = *p == '.' ? '_' : *p;
        gp_x_put(x, map, &cap, gp_x_new_node(x, GP_SCALAR, port, n->item[i]->at), n->item[i]);
    }
    return map;
}

static void name_outputs(gp_x *x, gp_x_scope *to, gp_node *st, const gp_kind *kind, const char *name, gp_x_before *b)
{
    const gp_node *said = gp_node_get(st, "out");
    const char *local[GP_MAXPORT] = { 0 }, *text;
    const gp_port *port;
    *b = (gp_x_before){ .who = gp_x_join(x, to->in.prefix, name), .out = GP_NEW(x->a, gp_x_alias, GP_MAXPORT + 1),
                        .flat = true };
    if (said && said->kind == GP_SCALAR) {
        gp_x_set_key(x, st, "out", output(x, to, said, true, b));
    } else if (said && said->n <= GP_MAXPORT) {
        gp_node *out = gp_x_copy(x, said, to);
        for (int i = 0; i < out->n; i++)
            local[i] = out->item[i]->text, out->item[i] = output(x, to, said->item[i], true, b);
        gp_x_set_key(x, st, "out", *to->in.prefix ? by_port(x, out, kind ? kind->out : NULL, local) : out);
    } else if (!said) {
        gp_node *out = gp_x_new_node(x, GP_MAP, "", st->at);
        bool moved = false, named = false;
        for (int i = 0, cap = 0; i < GP_MAXPORT && (text = gp_default_out(x->a, kind, name, i, &port)); i++) {
            gp_node *as = output(x, to, gp_x_new_node(x, GP_SCALAR, text, st->at), false, b);
            moved |= gp_table_find(&to->out, text) != NULL, named |= port != NULL;
            gp_x_put(x, out, &cap, gp_x_new_node(x, GP_SCALAR, port ? port->name : "out", st->at), as);
        }
        if (moved)
            gp_x_set_key(x, st, "out", named ? out : out->item[0]);
    }
}

/* What a stage reads that does not say it, where the stage before it in the list of all is another than in its own. */
static void name_input(gp_x *x, gp_node *st, const gp_kind *kind, const char *name, const gp_x_before *b)
{
    bool star, takes = kind && (gp_count_ports(kind->in, &star) || star);
    if (gp_node_get(st, "in") || b->flat || !takes)
        return;
    bool optional = star || kind->in[0].optional;
    const char *hint = optional ? ", or in: [] for a source" : "";
    if (b->n == 1) {
        gp_x_set_key(x, st, "in", gp_x_new_node(x, GP_SCALAR, b->out->name, st->at));
        if (b->out->of)
            wait(x, st, "in", b->out->of, kind);
    } else if (b->n > 1) {
        SAY(x, st->at, "which of the %d outputs of '%s' does stage '%s' read? write in: BUFFER%s", b->n, b->who, name,
            hint);
    } else if (b->who) {
        SAY(x, st->at, "stage '%s' has no input: '%s' before it has no output; write in: BUFFER%s", name, b->who, hint);
    } else if (!optional) {
        SAY(x, st->at, "stage '%s' needs an input, and no stage is before it; write in: BUFFER", name);
    } else {
        gp_x_set_key(x, st, "in", gp_x_new_node(x, GP_LIST, "", st->at));
    }
}

/* `to`: the list that it is of; `s`: what its nodes stand in, which has the variables of `repeat`, too. */
void gp_x_add_stage(gp_x *x, gp_x_scope *to, const gp_x_scope *s, const gp_node *said, const char *name, gp_x_before *b)
{
    gp_node *st = gp_x_copy(x, said, s);
    const gp_node *use = gp_node_get(st, "use"), *label = gp_node_get(st, "name");
    const gp_kind *kind = use && use->kind == GP_SCALAR ? gp_kind_find(x->registry, use->text) : NULL;
    const char *full = gp_x_join(x, to->in.prefix, name);
    wait(x, st, "in", s, kind);
    name_input(x, st, kind, full, b);
    name_outputs(x, to, st, kind, name, b);
    gp_x_set_key(x, st, "name", gp_x_new_node(x, GP_SCALAR, full, label ? label->at : use ? use->at : st->at));
    gp_x_put(x, x->stages, &x->caps[2], NULL, st);
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

/* Does the stage `map` itself make the buffer? A state is only changed. */
static bool makes(const gp_x *x, const gp_node *map, const char *whole)
{
    const gp_node *said = gp_node_get(map, "out"), *out = said ? said : gp_node_get(map, "name");
    bool is = out && out->kind == GP_SCALAR && !strcmp(out->text, whole);
    for (int i = 0; out && i < out->n && !is; i++)
        is = !strcmp(out->item[i]->text, whole);
    return is && !gp_node_get(gp_node_get(x->buffers, whole), "state");
}

/* Adds the buffers that one text of `map` names: a pattern none that the stage itself makes. */
static int find_named(gp_x *x, const gp_x_scope *s, const gp_node *map, const gp_node *said, found *v, int n)
{
    const char *text = said->kind == GP_SCALAR && said->len ? gp_x_text_of(x, said) : NULL;
    int first = n;
    for (const gp_x_scope *in = s; text && strchr(text, '*') && in && n == first; in = in->in.opaque ? NULL : in->outer)
        for (int i = 0; i < in->n && n < GP_MAXPORT + 1; i++)
            if (matches(text, in->buffer[i].local)) {
                const char *full = gp_x_lookup(x, in, in->buffer[i].local);
                if (!makes(x, map, full))
                    v[n++] = (found){ in->buffer[i].local, gp_x_new_node(x, GP_SCALAR, full, said->at) };
            }
    if (text && strchr(text, '*') && n == first)
        SAY(x, said->at, "no buffer has a name like '%s'", text);
    else if (text && n == first)
        v[n] = (found){ text, gp_x_new_node(x, GP_SCALAR, gp_x_lookup(x, s, text), said->at) }, v[n++].node->local = text;
    else if (!text && n < GP_MAXPORT + 1)
        v[n++] = (found){ said->text, (gp_node *)said };
    return n;
}

static void check_given(gp_x *x, const gp_x_later *l)
{
    gp_near near = GP_NEAR(l->key);
    if (gp_table_find(&x->made, gp_x_lookup(x, l->s, l->key)))
        return;
    for (const gp_x_scope *s = l->s; s; s = s->in.opaque ? NULL : s->outer)
        for (int i = 0; i < s->n; i++)
            gp_near_try(&near, s->buffer[i].local);
    SAY(x, l->at, "no stage makes a buffer '%s'%s", l->key, gp_near_text(&near));
}

void gp_x_find_inputs(gp_x *x, const gp_x_later *l)
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
            if ((n = find_named(x, l->s, l->map, said->item[i], v, 0)) > 1)
                SAY(x, said->item[i]->at, "'%s' names %d buffers, and a port takes one", said->item[i]->text, n);
            else if (n)
                said->item[i] = v[0].node;
        return;
    }
    for (int i = 0; i < (said->kind == GP_LIST ? said->n : 1) && n <= GP_MAXPORT; i++)
        n = find_named(x, l->s, l->map, said->kind == GP_LIST ? said->item[i] : said, v, n);
    if (n > GP_MAXPORT) {
        SAY(x, said->at, "a stage has at most %d inputs", GP_MAXPORT);
        return;
    }
    gp_node *list = gp_x_new_node(x, GP_LIST, "", said->at);
    for (int i = 0; i < n; i++)
        local[i] = v[i].local, gp_x_put(x, list, &cap, NULL, v[i].node);
    bool one = said->kind == GP_SCALAR && n == 1;
    gp_x_set_key(x, l->map, l->key, one ? v[0].node : by_port(x, list, l->kind ? l->kind->in : NULL, local));
}
