/* loop.c - the body of a stage `loop`, see loop.h.
 *
 * It is wired and inferred as a pipeline is, but that some of its buffers come from outside: those have their types
 * before any stage. A buffer that carries has the type of what it carries. */
#include <string.h>
#include "compile/loop.h"
#include "compile/plan.h"
#include "compile/resolve.h"
#include "compile/steps.h"

/* ---- names ----------------------------------------------------------- */

static int find(const gp_resolving *r, const char *name)
{
    return gp_table_index(&r->buffer_index, name);
}

/* The buffer of that name that a stage of the body makes, or -1 after an error at `at`. */
static int find_made(gp_resolving *r, const char *name, gp_loc at, const char *what)
{
    int b = find(r, name);
    gp_near near = GP_NEAR(name);
    if (b >= 0 && r->buffer[b].b.state)
        return r->buffer[b].newest;
    for (int i = 0; b < 0 && i < r->nbuffers; i++)
        if (r->buffer[i].b.producer.stage >= 0)
            gp_near_try(&near, r->buffer[i].b.name);
    if (b >= 0 && r->buffer[b].b.producer.stage >= 0) {
        r->buffer[b].readers++;
        return b;
    }
    const char *hint = gp_near_text(&near);
    if (!*hint && !strcmp(what, "output"))
        hint = "; write out: {BUFFER IN THE LOOP: BUFFER}";
    AT(r, at, "stage '%s': %s '%s' is made by no stage of the loop%s", r->body->stage->s.name, what, name, hint);
    return -1;
}

/* Is a state that the loop reads one of its outputs, too? Then stages of the body may change it, by one name. */
static bool is_changed(gp_resolving *r, const char *state, const char *name)
{
    const gp_stage *st = &r->body->stage->s;
    bool is = false;
    for (int p = 0; p < st->nout; p++) {
        if (st->out[p] < 0 || r->body->outside->buffer[st->out[p]].b.state != state)
            continue;
        is = true;
        if (strcmp(st->out_name[p], name))
            AT(r, gp_node_at(r->body->stage->node, "in", st->at), "stage '%s': the state '%s' comes into the loop as '%s', and leaves it "
               "as '%s': let both be one name", st->name, state, name, st->out_name[p]);
    }
    return is;
}

void gp_loop_give(gp_resolving *r)
{
    gp_body *body = r->body;
    const gp_stage *st = &body->stage->s;
    for (int p = 0; p < st->nin; p++) {
        const gp_rbuf *from = &body->outside->buffer[st->in[p]];
        gp_rbuf *b = gp_add_buffer(r, st->in_name[p], st->at);
        b->konst = from->konst, b->b.given = !b->konst;
        b->node = b->konst ? from->node : NULL;    /* what else is declared outside is not of the body */
        b->b.type = b->b.said = body->in[p], b->b.varies = from->b.varies;
        b->known = true;
        b->newest = (int)(b - r->buffer);
        b->b.state = from->b.state && is_changed(r, from->b.state, st->in_name[p]) ? b->b.name : NULL;
    }
}

static void read_carry(gp_resolving *r)
{
    const gp_node *map = r->body->opts->carry;
    if (!map)
        return;
    if (map->kind != GP_MAP) {
        AT(r, map->at, "'carry' must be a map, like {u: v}: in each iteration but the first 'u' is what 'v' was in the one "
           "before");
        return;
    }
    for (int i = 0; i < map->n; i++) {
        const char *name = map->key[i]->text;
        int u = find(r, name), v = -1;
        gp_near near = GP_NEAR(name);
        for (int p = 0; p < r->body->stage->s.nin; p++)
            gp_near_try(&near, r->body->stage->s.in_name[p]);
        if (u < 0 || !r->buffer[u].b.given)
            AT(r, map->key[i]->at, "stage '%s': '%s' is %s, and only an input can carry%s", r->body->stage->s.name, name,
               u >= 0 && r->buffer[u].konst ? "a constant" : "not an input of the loop",
               u < 0 ? gp_near_text(&near) : "");
        if (map->item[i]->kind != GP_SCALAR || !map->item[i]->len)
            AT(r, map->item[i]->at, "the name of a buffer is expected here");
        else
            v = find_made(r, map->item[i]->text, map->item[i]->at, "buffer");
        if (u < 0 || !r->buffer[u].b.given || v < 0)
            continue;
        if (r->buffer[u].b.state || r->buffer[v].b.state) {
            AT(r, map->key[i]->at, "stage '%s': '%s' is a state, which stays from one iteration to the next by itself: leave it out "
               "of 'carry'", r->body->stage->s.name, r->buffer[u].b.state ? name : r->buffer[v].b.state);
            continue;
        }
        r->body->carries[u] = v;
        if (!gp_is_complete(&r->buffer[v].b.said))
            gp_buffer_type_like(&r->buffer[v], &r->buffer[u].b.type, r->buffer[u].b.varies),
                r->buffer[v].said_by = name;
    }
}

static void read_until(gp_resolving *r)
{
    static const char *const keys[] = { "buffer", "every", NULL };
    const gp_node *until = r->body->opts->until, *name = until;
    r->body->every = 1;
    if (!until)
        return;
    if (until->kind == GP_MAP) {
        for (int i = 0; i < until->n; i++) {
            gp_near near = GP_NEAR(until->key[i]->text);
            int k = 0;
            for (; keys[k] && strcmp(keys[k], near.word); k++)
                gp_near_try(&near, keys[k]);
            if (!keys[k]) {
                AT(r, until->key[i]->at, "'until' has no key '%s'%s", near.word, gp_near_text(&near));
                return;
            }
        }
        const gp_node *every = gp_node_get(until, "every");
        r->read.stage = r->body->stage->s.name, r->read.key = "every";
        if (every)
            gp_read_int(&r->read, every, 1, 256, &r->body->every);
        name = gp_node_get(until, "buffer");
    }
    if (!name || name->kind != GP_SCALAR || !name->len)
        AT(r, until->at, "'until' must be the name of a buffer, or a map, like {buffer: done, every: 20}");
    else
        r->body->flag = find_made(r, name->text, name->at, "buffer");
    if (r->graph->launch == GP_LAUNCH_PERSISTENT)
        AT(r, until->at, "'until' and 'launch: persistent' do not go together: set 'launch: graph'");
}

void gp_loop_outside(gp_resolving *r, const char *name, gp_loc at)
{
    const gp_rstage *loop = r->body->stage;
    for (int p = 0; p < loop->s.nin; p++)
        if (!strcmp(r->body->outside->buffer[loop->s.in[p]].b.name, name)) {
            AT(r, at, "buffer '%s' is called '%s' in the loop '%s': write that name", name, loop->s.in_name[p],
               loop->s.name);
            return;
        }
    AT(r, at, "buffer '%s' is outside of the loop '%s': give it to the loop as an input, in: {%s: %s}", name, loop->s.name,
       name, name);
}

/* ---- which stages ---------------------------------------------------- */

static void admit(gp_resolving *r, gp_rstage *st)
{
    const gp_kind *k = st->s.kind;
    const char *why = !k ? NULL : k->shape == gp_loop_shape ? "is a loop, and a loop has no loop in it"
                    : !k->in || !st->s.nin ? "is a source"
                    : k->emit || (!k->run && !k->record) ? "changes how many frames there are"
                    : !k->record || k->collective ? "runs on the host" : NULL;
    const gp_node *window = gp_node_get(st->node, "window");
    if (window)
        st->broken = !AT(r, window->at, "'window' has no effect in a loop: give it to the loop '%s' itself",
                         r->body->stage->s.name);
    else if (why)
        st->broken = !AT(r, st->s.at, "stage '%s' %s; the stages of a loop run on the device, one frame at a time: put it "
                         "before or after the loop", st->s.name, why);
}

/* Checks a stage of the body that is resolved. */
static bool check_stage(gp_resolving *r, const gp_stage *st)
{
    static const char take_out[] = "do: take it out of the loop";
    const struct { bool is; const char *does, *may; } refused[] = {
        { !st->device, "runs on the host", take_out },
        { st->uncaptured, "calls a library in a way that cannot be part of a graph", take_out },
        { st->state, "carries state from frame to frame", take_out },
        { st->frame_info, "reads the frame's number, rows or time ('frame')", take_out },
        { st->serial || st->keeps_slots, "relies on the order of frames", take_out },
        { st->each_shape, "makes of each frame one of another shape", "do where frames differ: take it out of the loop" },
        { st->cooperative, "has a cooperative kernel", "have: let the kernel itself loop, as all of its blocks can wait for "
                                                       "each other" },
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (refused[i].is)
            return AT(r, st->at, "stage '%s' %s, which no stage of a loop may %s", st->name, refused[i].does,
                      refused[i].may);
    return true;
}

/* ---- the wiring ------------------------------------------------------ */

void gp_loop_ends(gp_resolving *r, int failed)
{
    for (int i = 0; i < r->nstages; i++)
        if (i < r->ngiven)
            admit(r, &r->stage[i]);
        else                           /* a window, and it was said that there is none */
            r->stage[i].broken = true;
    if (r->errs->failed > failed)
        return;
    const gp_rstage *loop = r->body->stage;
    const gp_node *out = gp_node_get(loop->node, "out");
    r->body->carries = GP_NEW(r->arena, int, r->nbuffers);
    r->body->out = GP_NEW(r->arena, int, loop->s.nout);
    for (int i = 0; i < r->nbuffers; i++)
        r->body->carries[i] = GP_LOOP_NONE;
    for (int p = 0; p < loop->s.nout; p++) {
        r->body->out[p] = find_made(r, loop->s.out_name[p], out ? out->at : loop->s.at, "output");
        for (int q = 0; q < p; q++)
            if (r->body->out[p] == r->body->out[q] && r->body->out[p] >= 0)
                AT(r, out->at, "stage '%s': two outputs are '%s'", loop->s.name, loop->s.out_name[p]);
    }
    read_carry(r);
    read_until(r);
}

/* ---- its buffers ----------------------------------------------------- */

/* `carry` and `until` want types. */
static bool check_types(gp_resolving *r)
{
    char a[128], b[128];
    const gp_node *carry = r->body->opts->carry;
    bool ok = true;
    for (int i = 0; i < r->nbuffers; i++) {
        const gp_rbuf *u = &r->buffer[i], *v = r->body->carries[i] < 0 ? NULL : &r->buffer[r->body->carries[i]];
        if (v && !gp_type_same(&u->b.type, &v->b.type))
            ok = AT(r, gp_node_get(carry, u->b.name)->at, "stage '%s': '%s' is %s, and '%s', which it carries, is %s",
                    r->body->stage->s.name, u->b.name, gp_type_text(&u->b.type, a), v->b.name, gp_type_text(&v->b.type, b));
    }
    const gp_type *t = r->body->flag < 0 ? NULL : &r->buffer[r->body->flag].b.type;
    if (t && (t->dtype != GP_I32 || t->ndim != 1 || t->dim[0] != 1))
        ok = AT(r, r->body->opts->until->at, "stage '%s': 'until' takes one number, i32 [1], which is not 0 once the loop is "
                "to stop; '%s' is %s", r->body->stage->s.name, r->buffer[r->body->flag].b.name, gp_type_text(t, a));
    return ok;
}

static size_t put(size_t *used, size_t bytes)
{
    size_t at = *used;
    *used = gp_size_add(at, gp_size_round(bytes));
    return at;
}

/* The input that a buffer is: what a state is changed to stays where that came in. */
static int input_of(const gp_graph *g, int nin, int buffer)
{
    int in = buffer < nin ? buffer : 0;
    while (in < nin && in != buffer && !(g->buffer[buffer].state && g->buffer[in].state == g->buffer[buffer].state))
        in++;
    return in < nin ? in : GP_LOOP_NONE;
}

/* Where everything lies; fills in what `s` says of memory. */
static void lay_out(gp_resolving *r, gp_loop *l, gp_shape *s)
{
    const gp_graph *g = l->graph;
    size_t used = 0, most = 0, tables = 0;
    l->counter = put(&used, sizeof(int64_t));
    for (int i = 0; i < g->nbuffers; i++) {
        gp_loop_buffer *b = &l->buffer[i];
        *b = (gp_loop_buffer){ .in = input_of(g, s->nin, i), .carries = r->body->carries[i], .out = GP_LOOP_NONE };
        for (int p = 0; p < s->nout; p++)
            if (r->body->out[p] == i)
                b->out = p;
    }
    for (int i = 0; i < s->nin; i++)
        if (l->buffer[i].carries >= 0)
            l->buffer[l->buffer[i].carries].carried = true;
    for (int i = s->nin; i < g->nbuffers; i++) {
        gp_loop_buffer *b = &l->buffer[i];
        size_t bytes = gp_bytes(&g->buffer[i].type);
        if (b->out < 0 && b->in < 0)
            b->at[0] = put(&used, bytes);
        if (b->carried)
            b->at[1] = put(&used, bytes);
    }
    l->table = GP_NEW(r->arena, size_t, g->nstages);
    l->scratch = GP_NEW(r->arena, size_t, g->nstages);
    for (int i = 0; i < g->nstages; i++) {
        if (g->stage[i].scratch_zero)
            l->scratch[i] = put(&used, g->stage[i].scratch);
        else
            most = g->stage[i].scratch > most ? g->stage[i].scratch : most;
        l->table[i] = g->stage[i].table ? put(&tables, g->stage[i].table) : 0;
    }
    for (int i = 0; i < g->nstages; i++)
        if (!g->stage[i].scratch_zero)
            l->scratch[i] = used;
    s->scratch = gp_size_add(used, most), s->table = tables;
}

/* ---- fusion ---------------------------------------------------------- */

/* Where a buffer of the body, as it was wired, is in the graph of fused stages. */
static int moved(const gp_resolving *r, const gp_graph *g, int buffer)
{
    for (int i = 0; buffer >= 0 && i < g->nbuffers; i++)
        if (g->buffer[i].name == r->buffer[buffer].b.name)
            return i;
    return GP_LOOP_NONE;
}

/* Takes the graph for the body, `was`, whose buffers are numbered as they were wired. */
static void take_graph(gp_resolving *r, gp_graph *g, const gp_body *was)
{
    gp_body *body = r->body;
    int nout = body->stage->s.nout;
    r->graph = g;
    body->carries = GP_NEW(r->arena, int, g->nbuffers), body->out = GP_NEW(r->arena, int, nout);
    for (int i = 0; i < r->nbuffers; i++)
        if (moved(r, g, i) >= 0)
            body->carries[moved(r, g, i)] = moved(r, g, was->carries[i]);
    for (int p = 0; p < nout; p++)
        body->out[p] = moved(r, g, was->out[p]);
    body->flag = moved(r, g, was->flag);
}

/* What the loop itself reads stays in memory. */
static void want_buffers(gp_resolving *r)
{
    const gp_body *body = r->body;
    for (int i = 0; i < r->nbuffers; i++)
        if (body->carries[i] >= 0)
            r->graph->buffer[body->carries[i]].wanted = true;
    for (int p = 0; p < body->stage->s.nout; p++)
        r->graph->buffer[body->out[p]].wanted = true;
    if (body->flag >= 0)
        r->graph->buffer[body->flag].wanted = true;
}

/* ---- several iterations in a launch ----------------------------------- */

/* The stage's input that is this buffer; -1: there is none, or there are several. */
static int port_of(const gp_stage *st, int buffer)
{
    int port = -1;
    for (int p = 0; p < st->nin; p++)
        if (st->in[p] == buffer) {
            if (port >= 0)
                return -1;
            port = p;
        }
    return port;
}

/* Each output of the only stage is carried, by an input of its own. */
static bool carries_all(const gp_resolving *r, gp_steps *q)
{
    const gp_stage *st = &r->graph->stage[0];
    for (int o = 0; o < st->nout; o++) {
        int by = -1;
        for (int i = 0; i < r->graph->nbuffers; i++)
            if (r->body->carries[i] == st->out[o]) {
                if (by >= 0)
                    return false;
                by = i;
            }
        q->carries[o] = by < 0 ? -1 : port_of(st, by);
        if (q->carries[o] < 0)
            return false;
    }
    return true;
}

/* How many iterations a launch of the only stage does, at most. */
static int64_t ask_steps(gp_resolving *r, gp_shape *s)
{
    const gp_stage *st = &r->graph->stage[0];
    gp_type in[GP_MAXPORT] = { { 0 } };
    unsigned varies[GP_MAXPORT] = { 0 };
    gp_steps q = { .shape = s, .opts = (void *)st->opts, .nin = st->nin, .nout = st->nout, .in = in, .varies = varies,
                   .times = r->body->opts->times, .sms = r->graph->device[0].info.sms,
                   .cc = r->graph->device[0].info.cc, .most = 1 };
    for (int d = 1; d < r->graph->ndevices; d++)
        q.cc = r->graph->device[d].info.cc < q.cc ? r->graph->device[d].info.cc : q.cc;
    if (!st->kind->steps || st->zero || !carries_all(r, &q))
        return 1;
    for (int p = 0; p < st->nin; p++)
        if (st->in[p] >= 0)
            in[p] = r->graph->buffer[st->in[p]].type, varies[p] = r->graph->buffer[st->in[p]].varies;
    st->kind->steps(&q);
    return q.most;
}

/* Neighbors in the body become one stage as outside of loops; and then, on a GPU, where a launch takes longer than a
 * step of a frame that is not large, all stages one that does several iterations in a launch. How many, at most? */
static int64_t fuse_body(gp_resolving *r, gp_shape *s)
{
    gp_body was = *r->body;
    gp_graph *fused = NULL, *one;
    int64_t steps = 1;
    want_buffers(r);
    fused = gp_fuse_stages(r, r->graph, r->machine);
    take_graph(r, fused, &was);
    if (was.flag >= 0 || was.opts->times < 2 || !fused->fuse || !fused->ndevices || fused->device[0].pretend
        || fused->launch == GP_LAUNCH_PERSISTENT || (r->machine->compiles && !r->machine->compiles()))
        return 1;
    if (fused->nstages == 1)
        return ask_steps(r, s);
    if (!(one = gp_fuse_steps(r, fused)))
        return 1;
    take_graph(r, one, &was);
    if ((steps = ask_steps(r, s)) < 2)
        take_graph(r, fused, &was);
    return steps;
}

/* ---- the whole ------------------------------------------------------- */

/* What is declared of the body's buffers: their types, no more. */
static bool check_buffers(gp_resolving *r, const gp_node *buffers)
{
    static const char *const keys[] = { "depth", "const", "carry", "state", "init", "missing", "save", "save_every", "on_hole" };
    bool ok = true;
    for (int i = 0; buffers && buffers->kind == GP_MAP && i < buffers->n; i++) {
        const gp_node *b = buffers->item[i];
        for (int p = 0; p < r->body->stage->s.nin; p++)
            if (!strcmp(buffers->key[i]->text, r->body->stage->s.in_name[p]))
                ok = AT(r, buffers->key[i]->at, "'%s' is an input of the loop, whose type is known: leave it out here",
                        buffers->key[i]->text);
        for (size_t k = 0; b->kind == GP_MAP && k < sizeof keys / sizeof *keys; k++) {
            const gp_node *n = gp_node_get(b, keys[k]);
            if (n)
                ok = AT(r, n->at, "a buffer of a loop has no '%s'%s", keys[k], !strcmp(keys[k], "const")
                        ? ": declare the constant beside the loop, and read it as an input" : !strcmp(keys[k], "carry")
                        ? ": give the loop itself carry: {u: v}" : "");
        }
    }
    return ok;
}

static void tell_reads(gp_shape *s, const gp_graph *g)
{
    int n = 0;
    for (int i = 0; i < g->nstages; i++)
        n += g->stage[i].nreads;
    const char **path = gp_shape_alloc(s, sizeof *path * (size_t)(n + 1));
    n = 0;
    for (int i = 0; i < g->nstages; i++)
        for (int k = 0; k < g->stage[i].nreads; k++)
            path[n++] = g->stage[i].reads[k];
    gp_shape_reads(s, path, n);
}

static bool resolve_body(gp_shape *s)
{
    const gp_shape_ctx *c = s->ctx;
    const gp_resolving *outside = c->r;
    gp_loop_opts *o = (gp_loop_opts *)s->opts;
    gp_body body = { .outside = outside, .stage = c->rs, .opts = o, .in = s->in, .flag = GP_LOOP_NONE };
    gp_resolving *r = GP_NEW(outside->arena, gp_resolving, 1);
    int failed = outside->errs->failed;
    *r = (gp_resolving){ .arena = outside->arena, .errs = outside->errs, .spec = outside->spec,
                         .registry = outside->registry, .probe = outside->probe, .read = outside->read,
                         .vars = outside->vars, .machine = outside->machine, .body = &body };
    r->graph = GP_NEW(r->arena, gp_graph, 1);
    r->graph->device = outside->graph->device, r->graph->ndevices = outside->graph->ndevices;
    r->graph->lanes = outside->graph->lanes, r->graph->device_why = outside->graph->device_why;
    *r->graph = *outside->graph;
    if (gp_shape_node(s, "zero"))
        return gp_shape_fail(s, "zero", "'zero' is for the stages in a loop: set it there");
    if (!s->nout)
        return gp_shape_fail(s, NULL, "a loop needs an output; write out: {BUFFER IN THE LOOP: BUFFER}");
    if (o->stages->kind != GP_LIST || !o->stages->n)
        return gp_shape_fail(s, "stages", "'stages' must be a list, like [{use: kernel, ...}]");
    if (!check_buffers(r, o->buffers) || !gp_resolve_body(r, o->buffers, o->stages))
        return false;
    if (r->nbuffers > GP_LOOP_BUFFERS)
        return gp_shape_fail(s, "stages", "a loop has at most %d buffers, and this one %d", GP_LOOP_BUFFERS, r->nbuffers);
    for (int i = 0; i < r->graph->nstages; i++)
        check_stage(r, &r->graph->stage[i]);
    if (!check_types(r) || r->errs->failed > failed)
        return false;
    int64_t steps = fuse_body(r, s);
    gp_loop *l = o->loop = gp_shape_alloc(s, sizeof *l);
    *l = (gp_loop){ .graph = r->graph, .buffer = GP_NEW(r->arena, gp_loop_buffer, r->graph->nbuffers),
                    .times = o->times, .steps = steps, .flag = body.flag, .every = body.every };
    lay_out(r, l, s);
    tell_reads(s, l->graph);
    return true;
}

bool gp_loop_types(const gp_loop *l, const gp_type *given, gp_type type[GP_LOOP_BUFFERS], gp_errs *errs)
{
    const gp_graph *g = l->graph;
    bool idle = true;
    for (int i = 0; i < g->nbuffers; i++)
        type[i] = l->buffer[i].in >= 0 ? given[l->buffer[i].in] : g->buffer[i].type;
    for (int i = 0; i < g->nstages; i++) {
        const gp_stage *st = &g->stage[i];
        gp_type in[GP_MAXPORT] = { { 0 } }, out[GP_MAXPORT];
        bool empty = false;
        for (int p = 0; p < st->nin; p++)
            if (st->in[p] >= 0)
                in[p] = type[st->in[p]], empty |= !in[p].dim[0];
        if (!(empty ? gp_shape_of_none(g, st, in, out, errs) : gp_partial_shape(g, st, in, out, errs)))
            return false;
        idle &= empty;
        for (int p = 0; p < st->nout; p++)
            if (st->out[p] >= 0 && !g->buffer[st->out[p]].state)
                type[st->out[p]] = out[p];
    }
    for (int i = 0; i < g->nbuffers; i++) {
        int v = l->buffer[i].carries;
        char a[128], b[128];
        if (v >= 0 && !gp_type_same(&type[i], &type[v]))
            return gp_fail(errs, GP_E_RUN, g->stage[g->buffer[v].producer.stage].at, "'%s' of a partial frame is %s, and "
                           "'%s', which it carries, is %s", g->buffer[i].name, gp_type_text(&type[i], a), g->buffer[v].name,
                           gp_type_text(&type[v], b));
    }
    return idle || l->flag < 0 || type[l->flag].dim[0]
        || gp_fail(errs, GP_E_RUN, g->stage[g->buffer[l->flag].producer.stage].at, "'%s', which 'until' looks at, has no rows "
                   "in a frame without rows, in which other stages of the loop compute", g->buffer[l->flag].name);
}

bool gp_loop_shape(gp_shape *s)
{
    const gp_loop_opts *o = s->opts;
    gp_type type[GP_LOOP_BUFFERS];
    const gp_shape_ctx *c = s->ctx;
    if (s->partial ? !gp_loop_types(o->loop, s->in, type, c->errs) : !resolve_body(s))
        return false;
    const gp_loop *l = o->loop;
    bool until = l->flag >= 0;
    s->batched = !until;
    for (int i = 0; i < l->graph->nstages; i++) {
        s->batched &= l->graph->stage[i].batched, s->calls_library |= l->graph->stage[i].calls_library;
        s->writes_all |= l->graph->stage[i].writes_all && !l->graph->stage[i].zero;
        s->by_place |= l->graph->stage[i].by_place ? ~0u : 0;
    }
    for (int i = 0; i < l->graph->nbuffers; i++) {
        const gp_buffer *b = &l->graph->buffer[i];
        if (l->buffer[i].out < 0)
            continue;
        s->out[l->buffer[i].out] = s->partial ? type[i] : b->type;
    }
    return true;
}

const gp_loop *gp_stage_loop(const gp_stage *st)
{
    return st->kind->shape == gp_loop_shape ? ((const gp_loop_opts *)st->opts)->loop : NULL;
}
