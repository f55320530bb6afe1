/* ports.c - what `in` and `out` of a stage say: which buffer is connected to which port. */
#include <string.h>
#include "base/plural.h"
#include "compile/wire.h"

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
    const gp_node *path = gp_node_get(n, "path");
    if (s->in && path && path->kind == GP_SCALAR)
        return AT(r, n->at, "the name of a buffer is expected here; make the file a constant: buffers: {c: {const: %.200s}}, "
                  "and write its name, c", path->text);
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

int gp_count_ports(const gp_port *p, bool *star)
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
    int fixed = gp_count_ports(ports, &star), n = fixed;
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

/* Is what a loop calls so a state beside the loop, which is not both among its inputs and its outputs? */
static bool is_state_beside(const gp_resolving *r, const gp_rbuf *b, const char *name)
{
    const gp_resolving *outside = r->body ? r->body->outside : NULL;
    int is = outside && !b ? gp_table_index(&outside->buffer_index, name) : -1;
    for (int p = 0; b && outside && p < r->body->stage->s.nin; p++)
        if (b == &r->buffer[p])
            is = r->body->stage->s.in[p];
    return is >= 0 && outside->buffer[is].b.state;
}

static bool produce(gp_resolving *r, gp_rstage *st, int port, const struct conn *c)
{
    gp_rbuf *b = gp_find_buffer(r, c->buffer);
    if (b && b->b.state && !gp_is_carry(&st->s)) {
        for (int p = 0; p < port; p++)
            if (st->s.out[p] >= 0 && r->buffer[st->s.out[p]].b.state == b->b.state)
                return AT(r, c->at, "stage '%s' has two outputs that are the state '%s'", st->s.name, c->buffer);
        st->s.out[port] = gp_state_changed(r, (int)(b - r->buffer), st, port);
        return true;
    }
    if (b && b->carry && !gp_is_carry(&st->s))
        return AT(r, c->at, "buffer '%s' carries '%s'; stage '%s' cannot write it", c->buffer, b->carry, st->s.name);
    if (is_state_beside(r, b, c->buffer))
        return AT(r, c->at, "stage '%s' changes '%s', which is a state beside the loop: name it in 'in' and in 'out' of the "
                  "loop, too, {%s: %s}", st->s.name, c->buffer, c->buffer, c->buffer);
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
        b = gp_check_label(r, "buffer", c->buffer, c->at) ? gp_add_buffer(r, c->buffer, c->at) : NULL;
    if (b) {
        b->b.producer = (gp_use){ (int)(st - r->stage), port };
        st->s.out[port] = (int)(b - r->buffer);
    }
    return b != NULL;
}

/* ---- inputs ---------------------------------------------------------- */

/* Without `in`: the previous stage's only output. */
static bool default_in(gp_resolving *r, const gp_rstage *st, struct side *s)
{
    const gp_port *ports = st->s.kind->in;
    bool star;
    int fixed = gp_count_ports(ports, &star), nout = 0, only = -1;
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
        if (prev->s.out[p] >= 0 && !r->buffer[prev->s.out[p]].b.state)     /* a state is read by its name alone */
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
    gp_rbuf *b = gp_find_buffer(r, c->buffer);
    gp_near near = GP_NEAR(c->buffer);
    if (!b && r->body && gp_table_index(&r->body->outside->buffer_index, c->buffer) >= 0) {
        gp_loop_outside(r, c->buffer, c->at);
        return;
    }
    if (!b) {
        const size_t len = strlen(c->buffer);
        for (int i = 0; r->errs->n < GP_ERRS_MAX && i < r->nbuffers; i++)      /* only for what is shown */
            if (!strncmp(r->buffer[i].b.name, c->buffer, len) && r->buffer[i].b.name[len] == '.') {
                AT(r, c->at, "no stage makes a buffer '%s', but there is '%s': '%s.*' names all that are so", c->buffer,
                   r->buffer[i].b.name, c->buffer);
                return;
            }
        const char *like = gp_near_buffer(r, &near), *file = !*like && strpbrk(c->buffer, "./") ? gp_format(r->arena, "; to read a file, declare a constant, "
                                        "buffers: {w: {const: %s}}, and write 'w' here", c->buffer) : NULL;
        AT(r, c->at, "no stage makes a buffer '%s'%s", c->buffer, file ? file : like);
        return;
    }
    if (b->b.state)
        b = &r->buffer[gp_state_before(r, (int)(b - r->buffer), st)];
    b->readers++;
    st->s.in[port] = (int)(b - r->buffer);
    if (!b->konst && !b->b.given && b->b.producer.stage < 0)
        AT(r, c->at, "buffer '%s' is declared, but no stage makes it%s", c->buffer,
           gp_near_buffer(r, &near));
}

/* ---- of a stage ------------------------------------------------------ */

/* For inputs and outputs alike: allocates the arrays of the stage and keeps the names. */
static void keep(gp_resolving *r, int n, const char **names, int **index, const char ***kept)
{
    *index = GP_NEW(r->arena, int, n);
    *kept = GP_NEW(r->arena, const char *, n);
    for (int p = 0; p < n; p++)
        (*index)[p] = -1, (*kept)[p] = names[p];
}

/* Finds out which entry of `in` or `out` each port has, -1: none. How many ports there are; -1 after errors. */
static int read_ports(gp_resolving *r, gp_rstage *st, struct side *s, int conn_of[GP_MAXPORT])
{
    const gp_node *said = gp_node_get(st->node, s->in ? "in" : "out");
    const gp_kind *k = st->s.kind;
    const gp_port *ports = !k ? NULL : s->in ? k->in : k->out;
    const char *names[GP_MAXPORT];
    bool ok = true;
    if (said && k && (!ports || !ports[0].name) && !(said->kind == GP_LIST && !said->n))
        ok = AT(r, said->at, "stage '%s' has no %s: '%s' is a %s", st->s.name, side_name(s), k->name,
                s->in ? "source" : "sink");
    else if (said)
        ok = read_side(r, s, said);
    else if (s->in)
        ok = k && default_in(r, st, s);
    else
        default_out(r, st, s);
    int n = ok ? match(r, st, s, ports, conn_of, names) : -1;
    if (n >= 0 && s->in)
        keep(r, st->s.nin = n, names, &st->s.in, &st->s.in_name);
    else if (n >= 0)
        keep(r, st->s.nout = n, names, &st->s.out, &st->s.out_name);
    return n;
}

void gp_wire_out(gp_resolving *r, gp_rstage *st)
{
    struct side s = { .in = false };
    int conn_of[GP_MAXPORT], n = read_ports(r, st, &s, conn_of);
    st->outs_broken = n < 0;
    for (int p = 0; p < n; p++) {
        if (conn_of[p] >= 0)
            st->outs_broken |= !produce(r, st, p, &s.c[conn_of[p]]);
        else if (!st->s.kind->out[p].optional)
            st->outs_broken = !AT(r, gp_node_get(st->node, "out")->at, "output '%s' of stage '%s' needs a buffer",
                                  st->s.out_name[p], st->s.name);
    }
}

/* The inputs of a carry stage, which has the name of its buffer: what the buffer carries, and its first frame. */
static void connect_carry(gp_resolving *r, gp_rstage *st)
{
    const char *names[] = { "in", "init" };
    const gp_rbuf *b = gp_find_buffer(r, st->s.name), *v = b->carry ? gp_find_buffer(r, b->carry) : NULL;
    struct conn c = { NULL, b->carry, b->carry ? gp_node_get(st->node, "carry")->at : b->b.at };
    keep(r, 2, names, &st->s.in, &st->s.in_name);
    st->s.nin = 2;
    st->s.in[1] = b->init;
    if (b->init >= 0)
        r->buffer[b->init].readers++;
    if (b->b.state && &r->buffer[b->newest] != b)
        st->s.in[0] = b->newest, r->buffer[b->newest].readers++;
    else if (v && v->b.state)
        AT(r, c.at, "buffer '%s' carries '%s', which is a state: let a stage make a buffer of that, such as {use: expr, in: %s, "
           "expr: in}, and carry this", b->b.name, b->carry, b->carry);
    else if (v && v->konst)
        AT(r, c.at, "buffer '%s' carries '%s', which is constant: it has no frames to carry; read '%s' itself", b->b.name,
           b->carry, b->carry);
    else if (b->carry)
        consume(r, st, 0, &c);
    st->broken = st->s.in[0] < 0;
}

static void connect_in(gp_resolving *r, gp_rstage *st)
{
    struct side s = { .in = true };
    int conn_of[GP_MAXPORT], n = read_ports(r, st, &s, conn_of);
    if (n < 0) {
        st->broken = true;
        return;
    }
    for (int p = 0; p < n; p++) {
        if (conn_of[p] >= 0)
            consume(r, st, p, &s.c[conn_of[p]]);
        else if (!st->s.kind->in[p].optional)
            AT(r, gp_node_at(st->node, "in", st->s.at), "input '%s' of stage '%s' is not connected; write "
               "in: {%s: BUFFER}", st->s.in_name[p], st->s.name, st->s.in_name[p]);
        if (conn_of[p] >= 0 ? st->s.in[p] < 0 : !st->s.kind->in[p].optional)
            st->broken = true;
    }
    gp_window_wire(r, st);
    gp_leaky_wire(r, st);
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

void gp_wire_in(gp_resolving *r, gp_rstage *st)
{
    if (gp_is_carry(&st->s))
        connect_carry(r, st);
    else
        connect_in(r, st);
    assume_read(r, st);
}
