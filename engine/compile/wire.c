/* wire.c - who makes and who reads each buffer.
 *
 * First every buffer gets its name (`buffers:`, then what stages make), then
 * `like` and inputs are looked up, so that the order in the file is free. */
#include <inttypes.h>
#include <string.h>
#include "base/plural.h"
#include "compile/resolve.h"

#define AT(r, at, ...) gp_fail((r)->errs, GP_E_SPEC, (at), __VA_ARGS__)

/* ---- buffers --------------------------------------------------------- */

static gp_rbuf *find_buffer(gp_resolving *r, const char *name)
{
    int i = gp_table_index(&r->buffer_index, name);
    return i < 0 ? NULL : &r->buffer[i];
}

gp_rbuf *gp_push_buffer(gp_resolving *r, const char *name, gp_loc at)
{
    gp_rbuf *b = GP_PUSH(r->arena, r->buffer, r->nbuffers, r->buffers_cap);
    *b = (gp_rbuf){ .b = { .name = name, .at = at, .depth = r->depth, .producer = { -1, -1 } },
                    .like = -1 };
    return b;
}

gp_rbuf *gp_add_buffer(gp_resolving *r, const char *name, gp_loc at)
{
    gp_table_put(&r->buffer_index, name, r->nbuffers);
    return gp_push_buffer(r, name, at);
}

/* "; did you mean ...": of the buffers that have frames or are constant. */
static const char *near_buffer(const gp_resolving *r, gp_near *near)
{
    for (int i = 0; r->errs->n < GP_ERRS_MAX && i < r->nbuffers; i++)
        if ((r->buffer[i].konst && r->buffer[i].node) || r->buffer[i].b.given
            || (r->buffer[i].b.producer.stage >= 0 && !r->buffer[i].b.hidden))
            gp_near_try(near, r->buffer[i].b.name);
    return gp_near_text(near);
}

static bool check_label(gp_resolving *r, const char *what, const char *name, gp_loc at)
{
    return gp_is_label(name)
        || AT(r, at, "'%.60s' is not a valid name for a %s; use letters, digits, _ and -", name,
              what);
}

static bool read_shape(gp_resolving *r, const gp_node *n, gp_type *t)
{
    int count = n->kind == GP_LIST ? n->n : 1;
    int64_t size = t->dtype ? (int64_t)gp_dtype_size(t->dtype) : 1;
    r->read.key = "shape";
    if (count < 1 || count > GP_MAXDIM)
        return AT(r, n->at, "a shape has 1 to %d axes, not %d", GP_MAXDIM, count);
    for (int i = 0; i < count; i++) {
        const gp_node *dim = n->kind == GP_LIST ? n->item[i] : n;
        if (!gp_read_int(&r->read, dim, 1, GP_BYTES_MAX, &t->dim[i]))
            return false;
        if (__builtin_mul_overflow(size, t->dim[i], &size) || size > GP_BYTES_MAX)
            return AT(r, n->at, "a frame of this shape is larger than 1 TiB");
    }
    t->ndim = count;
    return true;
}

/* A constant's only key is `const`. */
static void read_const(gp_resolving *r, gp_rbuf *b)
{
    r->read.key = "const";
    b->konst = true;
    b->b.depth = 1;
    b->b.path = gp_read_path(&r->read, gp_node_get(b->node, "const"));
    b->broken = !b->b.path;
    for (int i = 0; i < b->node->n; i++)
        if (strcmp(b->node->key[i]->text, "const"))
            AT(r, b->node->key[i]->at, "'%s' has no effect: buffer '%s' is constant, and is what "
               "its file holds", b->node->key[i]->text, b->b.name);
}

static void read_buffer(gp_resolving *r, gp_rbuf *b)
{
    static const char *const keys[] = { "dtype", "shape", "depth", "like", "const", "carry", "init", "on_hole", NULL };
    const gp_node *map = b->node, *n;
    int64_t depth;
    for (int i = 0; i < map->n; i++) {
        gp_near near = GP_NEAR(map->key[i]->text);
        int k = 0;
        for (; keys[k] && strcmp(keys[k], map->key[i]->text); k++)
            gp_near_try(&near, keys[k]);
        if (!keys[k])
            AT(r, map->key[i]->at, "a buffer has no key '%s'%s", map->key[i]->text,
               gp_near_text(&near));
    }
    if (gp_node_get(map, "const") && !gp_node_get(map, "carry")) {
        read_const(r, b);
        return;
    }
    for (int i = 0; i < map->n && !gp_node_get(map, "carry"); i++)
        if (!strcmp(map->key[i]->text, "init") || !strcmp(map->key[i]->text, "on_hole"))
            AT(r, map->key[i]->at, "'%s' has no effect: buffer '%s' carries nothing; add carry: BUFFER", map->key[i]->text,
               b->b.name);
    if ((n = gp_node_get(map, "depth"))) {
        r->read.key = "depth";
        b->b.depth_said = true, b->b.depth_at = n->at;
        if (gp_read_int(&r->read, n, 1, GP_DEPTH_MAX, &depth))
            b->b.depth = (int)depth;
    }
    if ((n = gp_node_get(map, "dtype"))) {
        r->read.key = "dtype";
        b->broken |= !(b->b.said.dtype = gp_read_dtype(&r->read, n));
    }
    if ((n = gp_node_get(map, "shape")))
        b->broken |= !read_shape(r, n, &b->b.said);
    if (!gp_node_get(map, "carry") && (n = gp_node_get(map, "like")) && b->b.said.dtype && b->b.said.ndim)
        AT(r, n->at, "'like' has no effect: dtype and shape of buffer '%s' are both given",
           b->b.name);
}

static void read_buffers(gp_resolving *r, const gp_node *buffers)
{
    if (buffers && buffers->kind != GP_MAP && !gp_is_null(buffers)) {
        AT(r, buffers->at,
           "'buffers' must be a map, like {photo: {dtype: u8, shape: [768, 1024]}}");
        return;
    }
    r->read.stage = NULL;
    for (int i = 0; buffers && i < buffers->n; i++) {
        const gp_node *key = buffers->key[i], *value = buffers->item[i];
        check_label(r, "buffer", key->text, key->at);
        gp_rbuf *b = gp_add_buffer(r, key->text, key->at);
        if (value->kind == GP_MAP) {
            int index = (int)(b - r->buffer);
            b->node = value, read_buffer(r, b);
            if (gp_node_get(value, "carry"))
                gp_carry_read(r, index);
        } else if (!gp_is_null(value)) {
            AT(r, value->at, "buffer '%s' must be a map, like {dtype: f32, shape: [480, 640]}",
               key->text), b->broken = true;
        }
    }
}

/* ---- like ------------------------------------------------------------ */

void gp_said_like(gp_rbuf *b, const gp_type *t)
{
    if (!b->b.said.dtype)
        b->b.said.dtype = t->dtype;
    if (!b->b.said.ndim) {
        b->b.said.ndim = t->ndim;
        memcpy(b->b.said.dim, t->dim, sizeof t->dim);
    }
}

static void find_like(gp_resolving *r, gp_rbuf *b)
{
    const gp_node *n = b->konst || b->carry ? NULL : gp_node_get(b->node, "like");
    if (!n || gp_is_complete(&b->b.said))
        return;
    r->read.stage = NULL, r->read.key = "like";
    const char *name = gp_read_text(&r->read, n);
    gp_rbuf *other = name ? find_buffer(r, name) : NULL;
    gp_near near = GP_NEAR(name);
    if (other)
        b->like = (int)(other - r->buffer);
    else if (name)
        AT(r, n->at, "no buffer '%s'%s", name, near_buffer(r, &near));
    b->broken |= !other;
}

/* Follows chains of `like` down to what is declared. A chain that ends at a
 * buffer whose type is inferred is left to infer. */
static void follow_likes(gp_resolving *r)
{
    enum { NEW, BUSY, DONE };
    char *state = GP_NEW(r->arena, char, r->nbuffers);
    int *path = GP_NEW(r->arena, int, r->nbuffers), n;
    for (int start = 0; start < r->nbuffers; start++) {
        int i = start;
        for (n = 0; i >= 0 && state[i] == NEW; i = r->buffer[i].like)
            state[i] = BUSY, path[n++] = i;
        if (i >= 0 && state[i] == BUSY) {
            gp_rbuf *b = &r->buffer[i];
            AT(r, gp_node_get(b->node, "like")->at, "buffer '%s' is like itself%s", b->b.name,
               b->like == i ? "" : ", by way of others");
            b->broken = true;
            b->like = -1;
        }
        while (n > 0) {
            gp_rbuf *b = &r->buffer[path[--n]], *other = b->like < 0 ? NULL : &r->buffer[b->like];
            state[path[n]] = DONE;
            if (other && other->broken)
                b->broken = true;
            if (other && gp_is_complete(&other->b.said))
                gp_said_like(b, &other->b.said), b->like = -1;
        }
    }
}

/* ---- stages: the keys that all have ---------------------------------- */

static const char *const stage_keys[] = { "name", "use", "in", "out", "on", "workers", "zero",
                                          "on_hole", "window", NULL };

bool gp_is_stage_key(const char *s)
{
    for (int i = 0; stage_keys[i]; i++)
        if (!strcmp(stage_keys[i], s))
            return true;
    return false;
}

/* Without a kind the other keys cannot be looked at: one of them may be a wrong `use`. */
static void lacks_kind(gp_resolving *r, const gp_rstage *st)
{
    for (int i = 0; i < st->node->n; i++) {
        const gp_node *key = st->node->key[i], *item = st->node->item[i];
        if ((!i || !gp_is_stage_key(key->text)) && gp_kind_find(r->registry, key->text)) {
            bool bare = gp_is_null(item) || (item->kind == GP_MAP && !item->n);
            AT(r, key->at, "a stage names its kind with 'use': write {use: %s%s}", key->text,
               bare && st->node->n == 1 ? "" : ", ...");
            return;
        }
        const char *colon = gp_lacks_colon(r->arena, key, item, "use");
        if (colon || (!gp_is_stage_key(key->text) && item->kind == GP_SCALAR && gp_kind_find(r->registry, item->text))) {
            AT(r, key->at, "a stage names its kind with 'use': write '%s'", colon ? colon
               : gp_format(r->arena, "use: %s", item->text));
            return;
        }
        gp_near near = GP_NEAR(key->text);
        gp_near_try(&near, "use");
        if (*gp_near_text(&near)) {
            AT(r, st->node->key[i]->at, "a stage has no key '%s'%s", near.word, near.text);
            return;
        }
    }
    AT(r, st->s.at, "stage '%s' does not say its kind; add use: KIND", st->s.name);
}

static void find_kind(gp_resolving *r, gp_rstage *st)
{
    const gp_node *use = gp_node_get(st->node, "use");
    if (!use) {
        lacks_kind(r, st);
        return;
    }
    r->read.stage = NULL, r->read.key = "use";
    const char *name = gp_read_text(&r->read, use);
    if (!name || (st->s.kind = gp_kind_find(r->registry, name)))
        return;
    gp_near near = GP_NEAR(name);
    const gp_kind *k;
    for (int i = 0; (k = gp_kind_at(r->registry, i)); i++)
        gp_near_try(&near, k->name);
    const char *hint = gp_near_text(&near);
    AT(r, use->at, "no stage kind '%s'%s", name, *hint ? hint : "; 'gpipe stages' lists them");
}

static void check_keys(gp_resolving *r, gp_rstage *st)
{
    for (int i = 0; i < st->node->n; i++) {
        const char *key = st->node->key[i]->text;
        if (!gp_is_stage_key(key) && !gp_option_find(st->s.kind, key))
            st->misspelt = !AT(r, st->node->key[i]->at, "stage '%s' has no option '%s'%s", st->s.name, key,
                               gp_option_hint(r->arena, st->s.kind, st->node, i, stage_keys));
    }
}

static void read_head(gp_resolving *r, gp_rstage *st, const gp_node *n, const char *name,
                      gp_table *names, int i)
{
    const gp_node *label = gp_node_get(n, "name"), *use = gp_node_get(n, "use");
    st->node = n;
    st->s.name = name;
    st->s.at = label ? label->at : use ? use->at : n->at;
    st->s.workers = 1;
    if (n->kind != GP_MAP) {
        const char *colon = gp_lacks_colon(r->arena, n, NULL, "use");
        AT(r, n->at, "a stage must be a map; write {%.60s}", colon ? colon
           : gp_format(r->arena, "use: %s", n->kind == GP_SCALAR && n->len ? n->text : "KIND"));
        return;
    }
    if (label && label->kind != GP_SCALAR)
        AT(r, label->at, "'name' must be text");
    else if (label)
        check_label(r, "stage", name, label->at);
    int first = (int)gp_table_put(names, name, i)->n;
    if (first != i)
        AT(r, st->s.at, "two stages are named '%s'; the first is in line %d", name,
           r->stage[first].s.at.line);
    find_kind(r, st);
    if (st->s.kind)
        check_keys(r, st);
}

/* ---- ports ----------------------------------------------------------- */

/* One entry of `in` or `out`; port NULL: by position. */
struct conn { const char *port, *buffer; gp_loc at; };
struct side { bool in; struct conn c[GP_MAXPORT]; int n; };

static const char *side_name(const struct side *s)
{
    return s->in ? "input" : "output";
}

static bool add_conn(gp_resolving *r, struct side *s, const char *port, const gp_node *n)
{
    if (s->n == GP_MAXPORT)
        return AT(r, n->at, "a stage has at most %d %ss", GP_MAXPORT, side_name(s));
    if (n->kind != GP_SCALAR || !n->len)
        return AT(r, n->at, "the name of a buffer is expected here");
    s->c[s->n++] = (struct conn){ port, n->text, n->at };
    return true;
}

/* NAME, [NAME, ...] or {port: NAME, ...}. */
static bool read_side(gp_resolving *r, struct side *s, const gp_node *n)
{
    bool ok = true;
    if (n->kind == GP_SCALAR)
        return add_conn(r, s, NULL, n);
    for (int i = 0; i < n->n; i++)
        ok &= add_conn(r, s, n->kind == GP_MAP ? n->key[i]->text : NULL, n->item[i]);
    return ok;
}

static int count_ports(const gp_port *p, bool *star)
{
    int n = 0;
    *star = false;
    for (; p && p[n].name; n++)
        if (!strcmp(p[n].name, "*"))
            return *star = true, n;
    return n;
}

/* Finds the port of each entry: conn of port p in (*at)[p], or -1. Returns the
 * number of ports, -1 after errors. */
static int match(gp_resolving *r, const gp_rstage *st, const struct side *s, const gp_port *ports,
                 int conn_of[GP_MAXPORT], const char *names[GP_MAXPORT])
{
    bool star, ok = true;
    int fixed = count_ports(ports, &star), n = fixed;
    if (!st->s.kind)
        star = true;
    for (int p = 0; p < fixed; p++)
        conn_of[p] = -1, names[p] = ports[p].name;
    for (int i = 0; i < s->n; i++) {
        const struct conn *c = &s->c[i];
        int p = 0;
        gp_near near = GP_NEAR(c->port);
        if (c->port)
            for (; p < fixed && strcmp(ports[p].name, c->port); p++)
                gp_near_try(&near, ports[p].name);
        else
            p = i < fixed ? i : fixed;
        if (p < fixed) {
            conn_of[p] = i;
        } else if (star && n == GP_MAXPORT) {
            return AT(r, c->at, "a stage has at most %d %ss", GP_MAXPORT, side_name(s)), -1;
        } else if (star) {
            conn_of[n] = i;
            names[n++] = c->port ? c->port : s->n > 1 || fixed ? c->buffer : s->in ? "in" : "out";
        } else if (c->port) {
            ok = AT(r, c->at, "stage '%s' has no %s '%s'%s", st->s.name, side_name(s), c->port,
                    gp_near_text(&near));
        } else {
            return AT(r, c->at, "stage '%s' has %d %s%s, and %d are given", st->s.name, fixed,
                      side_name(s), gp_plural(fixed), s->n), -1;
        }
    }
    for (int p = fixed; p < n; p++)
        for (int q = 0; q < p; q++)
            if (!strcmp(names[p], names[q]))
                ok = AT(r, s->c[conn_of[p]].at, "stage '%s' has two %ss named '%s'; name them: "
                        "{a: %s, b: %s}", st->s.name, side_name(s), names[p],
                        s->c[conn_of[p]].buffer, s->c[conn_of[p]].buffer);
    return ok ? n : -1;
}

/* ---- outputs --------------------------------------------------------- */

/* Without `out`. */
static void default_out(gp_resolving *r, const gp_rstage *st, struct side *s)
{
    const gp_port *port;
    const char *name;
    while ((name = gp_default_out(r->arena, st->s.kind, st->s.name, s->n, &port)))
        s->c[s->n++] = (struct conn){ port ? port->name : NULL, name, st->s.at };
}

static bool produce(gp_resolving *r, gp_rstage *st, int port, const struct conn *c)
{
    gp_rbuf *b = find_buffer(r, c->buffer);
    if (b && b->carry && !gp_is_carry(&st->s))
        return AT(r, c->at, "buffer '%s' carries '%s'; stage '%s' cannot write it", c->buffer, b->carry, st->s.name);
    if (b && b->b.given)
        return AT(r, c->at, "buffer '%s' comes into the loop; stage '%s' cannot write it: let it make another, and carry: "
                  "{%s: THAT}", c->buffer, st->s.name, c->buffer);
    if (b && b->konst)
        return AT(r, c->at, "buffer '%s' is constant; stage '%s' cannot write it", c->buffer,
                  st->s.name);
    if (b && b->b.producer.stage >= 0)
        return AT(r, c->at, "buffer '%s' has two producers: stages '%s' and '%s'", c->buffer,
                  r->stage[b->b.producer.stage].s.name, st->s.name);
    if (!b)
        b = check_label(r, "buffer", c->buffer, c->at) ? gp_add_buffer(r, c->buffer, c->at) : NULL;
    if (b) {
        b->b.producer = (gp_use){ (int)(st - r->stage), port };
        st->s.out[port] = (int)(b - r->buffer);
    }
    return b != NULL;
}

/* For inputs and outputs alike: allocates the arrays of the stage and keeps the names. */
static void keep(gp_resolving *r, int n, const char **names, int **index, const char ***kept)
{
    *index = GP_NEW(r->arena, int, n);
    *kept = GP_NEW(r->arena, const char *, n);
    for (int p = 0; p < n; p++)
        (*index)[p] = -1, (*kept)[p] = names[p];
}

static void wire_out(gp_resolving *r, gp_rstage *st)
{
    const gp_node *said = gp_node_get(st->node, "out");
    const gp_port *ports = st->s.kind ? st->s.kind->out : NULL;
    struct side s = { .in = false };
    int conn_of[GP_MAXPORT], n = -1;
    const char *names[GP_MAXPORT];
    bool ok = true;
    if (said && st->s.kind && (!ports || !ports[0].name) && !(said->kind == GP_LIST && !said->n))
        ok = AT(r, said->at, "stage '%s' has no output: '%s' is a sink", st->s.name,
                st->s.kind->name);
    else if (said)
        ok = read_side(r, &s, said);
    else
        default_out(r, st, &s);
    if (ok)
        n = match(r, st, &s, ports, conn_of, names);
    st->outs_broken = n < 0;
    if (n < 0)
        return;
    keep(r, n, names, &st->s.out, &st->s.out_name);
    st->s.nout = n;
    for (int p = 0; p < n; p++) {
        if (conn_of[p] >= 0)
            st->outs_broken |= !produce(r, st, p, &s.c[conn_of[p]]);
        else if (!ports[p].optional)
            st->outs_broken = !AT(r, said->at, "output '%s' of stage '%s' needs a buffer",
                                  names[p], st->s.name);
    }
}

/* ---- inputs ---------------------------------------------------------- */

/* Without `in`: the previous stage's only output. */
static bool default_in(gp_resolving *r, const gp_rstage *st, struct side *s)
{
    const gp_port *ports = st->s.kind->in;
    bool star;
    int fixed = count_ports(ports, &star), nout = 0, only = -1;
    const gp_rstage *prev = st > r->stage ? st - 1 : NULL;
    bool optional = !fixed || ports[0].optional;
    if (!fixed && !star)
        return true;
    if (!prev && r->body && r->body->stage->s.nin == 1) {
        s->c[s->n++] = (struct conn){ NULL, r->body->stage->s.in_name[0], st->s.at };
        return true;
    }
    if (!prev)
        return optional || AT(r, st->s.at, "stage '%s' needs an input, and no stage is before it; "
                              "write in: BUFFER", st->s.name);
    if (prev->outs_broken)
        return false;
    for (int p = 0; p < prev->s.nout; p++)
        if (prev->s.out[p] >= 0)
            nout++, only = prev->s.out[p];
    const char *hint = optional ? ", or in: [] for a source" : "";
    if (!nout)
        return AT(r, st->s.at, "stage '%s' has no input: '%s' before it has no output; write "
                  "in: BUFFER%s", st->s.name, prev->s.name, hint);
    if (nout > 1)
        return AT(r, st->s.at, "which of the %d outputs of '%s' does stage '%s' read? write "
                  "in: BUFFER%s", nout, prev->s.name, st->s.name, hint);
    s->c[s->n++] = (struct conn){ NULL, r->buffer[only].b.name, st->s.at };
    return true;
}

static void consume(gp_resolving *r, gp_rstage *st, int port, const struct conn *c)
{
    gp_rbuf *b = find_buffer(r, c->buffer);
    gp_near near = GP_NEAR(c->buffer);
    if (!b && r->body && gp_table_index(&r->body->outside->buffer_index, c->buffer) >= 0) {
        gp_loop_outside(r, c->buffer, c->at);
        return;
    }
    if (!b) {
        const char *file = strpbrk(c->buffer, "./") ? gp_format(r->arena, "; a file is read as a constant: buffers: {w: "
                                                                "{const: %s}}, and 'w' here", c->buffer) : NULL;
        AT(r, c->at, "no stage makes a buffer '%s'%s", c->buffer, file ? file : near_buffer(r, &near));
        return;
    }
    b->readers++;
    st->s.in[port] = (int)(b - r->buffer);
    if (!b->konst && !b->b.given && b->b.producer.stage < 0)
        AT(r, c->at, "buffer '%s' is declared, but no stage makes it%s", c->buffer,
           near_buffer(r, &near));
}

/* Of a carry stage, which is called as its buffer is: what that carries, and its first frame. */
static void wire_carry(gp_resolving *r, gp_rstage *st)
{
    const char *names[] = { "in", "init" };
    const gp_rbuf *b = find_buffer(r, st->s.name), *v = b->carry ? find_buffer(r, b->carry) : NULL;
    struct conn c = { NULL, b->carry, gp_node_get(st->node, "carry")->at };
    keep(r, 2, names, &st->s.in, &st->s.in_name);
    st->s.nin = 2;
    st->s.in[1] = b->init;
    r->buffer[b->init].readers++;
    if (v && v->konst)
        AT(r, c.at, "buffer '%s' carries '%s', which is constant: it has no frames to carry; read '%s' itself", b->b.name,
           b->carry, b->carry);
    else if (b->carry)
        consume(r, st, 0, &c);
    st->broken = st->s.in[0] < 0;
}

static void wire_in(gp_resolving *r, gp_rstage *st)
{
    const gp_node *said = gp_node_get(st->node, "in");
    const gp_port *ports = st->s.kind ? st->s.kind->in : NULL;
    struct side s = { .in = true };
    int conn_of[GP_MAXPORT], n = -1;
    const char *names[GP_MAXPORT];
    bool ok = st->s.kind || said;
    if (said && st->s.kind && (!ports || !ports[0].name) && !(said->kind == GP_LIST && !said->n))
        ok = AT(r, said->at, "stage '%s' has no input: '%s' is a source", st->s.name,
                st->s.kind->name);
    else if (said)
        ok = read_side(r, &s, said);
    else if (ok)
        ok = default_in(r, st, &s);
    if (ok)
        n = match(r, st, &s, ports, conn_of, names);
    if (n < 0) {
        st->broken = true;
        return;
    }
    keep(r, n, names, &st->s.in, &st->s.in_name);
    st->s.nin = n;
    for (int p = 0; p < n; p++) {
        if (conn_of[p] >= 0)
            consume(r, st, p, &s.c[conn_of[p]]);
        else if (!ports[p].optional)
            AT(r, said ? said->at : st->s.at, "input '%s' of stage '%s' is not connected; write "
               "in: {%s: BUFFER}", names[p], st->s.name, names[p]);
        if (conn_of[p] >= 0 ? st->s.in[p] < 0 : !ports[p].optional)
            st->broken = true;
    }
    gp_window_wire(r, st);
}

/* An unknown kind counts as a reader of the stage before it, so that its output is not
 * reported as unused. */
static void assume_read(gp_resolving *r, const gp_rstage *st)
{
    if (st->s.kind || gp_node_get(st->node, "in") || st == r->stage)
        return;
    for (int p = 0; p < st[-1].s.nout; p++)
        if (st[-1].s.out[p] >= 0)
            r->buffer[st[-1].s.out[p]].readers++;
}

/* ---- what nobody needs ----------------------------------------------- */

static bool ends_free(const gp_kind *k)
{
    bool star;
    count_ports(k->out, &star);
    return star;
}

static void check_used(gp_resolving *r, const gp_rbuf *b)
{
    gp_near near = GP_NEAR(b->b.name);
    int i = b->b.producer.stage;
    if (b->readers)
        return;
    if (b->carry) {
        AT(r, b->b.at, "no stage reads the carried buffer '%s'; remove it, or read it with in: %s", b->b.name, b->b.name);
    } else if (b->b.given || (b->konst && r->body)) {
        AT(r, b->b.at, "no stage of the loop reads '%s', which comes into it", b->b.name);
    } else if (b->konst) {
        AT(r, b->b.at, "no stage reads the constant '%s'", b->b.name);
    } else if (i < 0) {
        AT(r, b->b.at, "buffer '%s' is declared, but no stage makes or reads it%s", b->b.name,
           near_buffer(r, &near));
    } else {
        const gp_rstage *st = &r->stage[i], *next = i + 1 < r->nstages ? st + 1 : NULL;
        const char *name = b->b.name, *of = st->s.name;
        if (ends_free(st->s.kind) && st->s.kind->run)      /* a sink runs on the host */
            AT(r, st->s.at, "no stage reads '%s', which stage '%s' makes; write out: [] if it is "
               "a sink", name, of);
        else if (next && !next->s.nin)
            AT(r, st->s.at, "no stage reads '%s', which stage '%s' makes, and '%s' after it is a "
               "source; read it with in: %s", name, of, next->s.name, name);
        else
            AT(r, st->s.at, "no stage reads '%s', which stage '%s' makes; read it with in: %s, or "
               "add a stage that writes it", name, of, name);
    }
}

/* ---- the whole ------------------------------------------------------- */

/* The stage that makes a carried buffer: as if it stood at the end of the file. */
static void add_carry(gp_resolving *r, const gp_rbuf *b, gp_table *names)
{
    int i = r->nstages++, first = (int)gp_table_put(names, b->b.name, i)->n;
    if (first != i)
        AT(r, r->stage[first].s.at, "the name '%s' is taken: the carried buffer '%s' is made by a stage of that name",
           b->b.name, b->b.name);
    r->stage[i] = (gp_rstage){ .node = b->node, .s = { .name = b->b.name, .at = b->b.at, .workers = 1,
                                                       .kind = &gp_kind_carry } };
}

void gp_wire(gp_resolving *r, const gp_node *buffers, const gp_node *stages)
{
    int failed = r->errs->failed;
    gp_table names = { .arena = r->arena };
    r->buffer_index.arena = r->written.arena = r->windows.arena = r->arena;
    if (r->body)
        gp_loop_give(r);
    read_buffers(r, buffers);
    const char **name = GP_NEW(r->arena, const char *, stages->n);
    int given = r->nbuffers, carries = 0;
    for (int i = 0; i < given; i++)
        carries += r->buffer[i].node && gp_node_get(r->buffer[i].node, "carry");
    r->nstages = r->ngiven = stages->n;
    r->stage = GP_NEW(r->arena, gp_rstage, stages->n + carries + gp_windows_most(stages));
    gp_stage_names(r->arena, stages, name);
    for (int i = 0; i < r->ngiven; i++)
        read_head(r, &r->stage[i], stages->item[i], name[i], &names, i);
    for (int i = 0; i < given && carries; i++)
        if (r->buffer[i].node && gp_node_get(r->buffer[i].node, "carry"))
            add_carry(r, &r->buffer[i], &names);
    for (int i = 0; i < r->nstages; i++)
        wire_out(r, &r->stage[i]);
    for (int i = 0; i < r->nbuffers; i++)
        find_like(r, &r->buffer[i]);
    follow_likes(r);
    for (int i = 0, n = r->nstages; i < n; i++)        /* windows are added behind, as they should be */
        (gp_is_carry(&r->stage[i].s) ? wire_carry : wire_in)(r, &r->stage[i]), assume_read(r, &r->stage[i]);
    if (r->body && r->errs->failed == failed)
        gp_loop_ends(r);
    int used = r->errs->failed == failed ? r->nbuffers : 0;
    for (int i = 0; i < used; i++)
        check_used(r, &r->buffer[i]);
}
