/* state.c - a state: `kv: {state: true, dtype: f32, shape: [8, 64]}` is one place in the memory of a device.
 *
 * Stages read and change it in the order of the file, each behind the one before, and those of frame k behind all of
 * frame k - 1. To the passes it is a cycle as that of a carried buffer (carry.c): each stage that changes the state
 * makes a buffer of its own, kv#1, kv#2, ..., which the stages below read, and the state carries the last of these. That
 * each stage comes behind the one before is an edge, gp_stage.after. All of these buffers have one slot together
 * (gp_pool.one), so nothing is copied. */
#include <string.h>
#include "base/path.h"
#include "compile/plan.h"
#include "compile/resolve.h"

/* Has it ${rank}, also by way of variables, as of a file that is included? What is wrong in it is told where it is read. */
static bool differs_by_rank(const gp_resolving *r, const gp_node *path)
{
    gp_errs *ignored = GP_NEW(r->arena, gp_errs, 1);
    gp_env next = *r->read.env;
    const char *here, *there;
    next.rank++;
    return !gp_interpolate(r->arena, path, r->read.vars->map, r->read.env, &here, ignored)
        || !gp_interpolate(r->arena, path, r->read.vars->map, &next, &there, ignored) || strcmp(here, there) != 0;
}

void gp_state_read(gp_resolving *r, int buffer)
{
    static const char *const none[] = { "const", "carry", "depth", "memory" };
    gp_rbuf *b = &r->buffer[buffer];
    const gp_node *n = gp_node_get(b->node, "state");
    const char *name = b->b.name;
    r->read.stage = NULL, r->read.key = "state";
    int yes = gp_read_word(&r->read, n, "false|true");
    if (yes == 0)
        AT(r, n->at, "buffer '%s' is no state without this: leave 'state' out", name);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if (gp_node_get(b->node, none[i]))
            AT(r, gp_node_get(b->node, none[i])->at, "'%s' has no effect: buffer '%s' is a state, which is one place in "
               "memory", none[i], name);
    if (b->b.varies)
        AT(r, gp_node_at(b->node, "shape", b->b.at), "the state '%s' has one shape: write it without '<='", name);
    const gp_node *file = gp_node_get(b->node, "save"), *every = gp_node_get(b->node, "save_every");
    r->read.key = "save_every";
    if (every && !file)
        AT(r, every->at, "'save_every' has no effect: the state '%s' has no file; add save: FILE.npy", name);
    else if (every)
        b->broken |= !gp_read_int(&r->read, every, 1, (int64_t)gp_key_find(gp_buffer_keys, "save_every")->max, &b->b.save_every);
    r->read.key = "save";
    if (file && r->graph->ranks > 1 && !differs_by_rank(r, file))
        AT(r, file->at, "'save' of the state '%s' is one file for all %d ranks: put ${rank} into its name", name, r->graph->ranks);
    if (file && (b->b.save = gp_read_path(&r->read, file))) {
        const char *base = strrchr(b->b.save, '/');
        base = base ? base + 1 : b->b.save;
        size_t len = strlen(base);
        b->b.save_at = file->at;
        if (len < 5 || strcmp(base + len - 4, ".npy"))
            AT(r, file->at, "'save' of the state '%s' is a .npy file", name);
    }
    b->broken |= yes < 1;
    b->b.state = name, b->newest = buffer;
    gp_carry_read_init(r, buffer);
}

/* ---- what stages make of it ---------------------------------------------------------- */

int gp_state_changed(gp_resolving *r, int state, const gp_rstage *by, int port)
{
    int older = r->buffer[state].newest, n = 1;
    const char *name = r->buffer[state].b.name;
    for (int i = older; i != state; i = r->buffer[i].older)
        n++;
    gp_rbuf *b = gp_push_buffer(r, gp_format(r->arena, "%s#%d", name, n), by->s.at);
    b->b.state = name, b->b.hidden = true, b->older = older;
    b->b.producer = (gp_use){ (int)(by - r->stage), port };
    if (r->buffer[state].known)        /* it comes into a loop */
        b->b.said = r->buffer[state].b.type, b->said_by = name;
    return r->buffer[state].newest = (int)(b - r->buffer);
}

int gp_state_before(const gp_resolving *r, int state, const gp_rstage *st)
{
    int b = r->buffer[state].newest;
    while (b != state && r->buffer[b].b.producer.stage >= st - r->stage)
        b = r->buffer[b].older;
    return b;
}

/* Is one of n buffers that state? */
static int port_of(const gp_resolving *r, const int *buffer, int n, const char *state)
{
    for (int p = 0; p < n; p++)
        if (buffer[p] >= 0 && r->buffer[buffer[p]].b.state == state)
            return p;
    return -1;
}

static void come_after(gp_resolving *r, gp_rstage *st, int before)
{
    int *was = st->s.after, n = st->s.nafter++;
    st->s.after = GP_NEW(r->arena, int, n + 1);
    if (n)
        memcpy(st->s.after, was, sizeof *was * (size_t)n);
    st->s.after[n] = before;
}

/* What is known of a state's users, in the order of the file, per buffer. */
typedef struct users { int last; bool read; } users;

/* Each stage that uses a state comes behind the one that did before it. */
static void chain(gp_resolving *r, int stage, users *of)
{
    gp_rstage *st = &r->stage[stage];
    for (int p = 0; p < st->s.nin + st->s.nout; p++) {
        bool in = p < st->s.nin;
        int b = in ? st->s.in[p] : st->s.out[p - st->s.nin];
        int state = b >= 0 && r->buffer[b].b.state ? gp_table_index(&r->buffer_index, r->buffer[b].b.state) : -1;
        if (state < 0 || (gp_is_carry(&st->s) && st->s.out[0] == state))
            continue;
        of[state].read |= in || (st->s.kind && st->s.kind->in_place);
        st->s.states = true;
        if (of[state].last >= 0 && of[state].last != stage)
            come_after(r, st, of[state].last);
        of[state].last = stage;
    }
}

static void check_users(gp_resolving *r, gp_rstage *carry, bool read, bool told)
{
    const gp_rbuf *b = &r->buffer[carry->s.out[0]];
    bool changed = b->newest != carry->s.out[0];
    if (!changed && !told)
        AT(r, b->b.at, read ? "no stage changes the state '%s': name it in a stage's 'out', or make it a constant"
                            : "the state '%s' is declared, but no stage reads or changes it", b->b.name);
    else if (!read && !told)
        AT(r, b->b.at, "no stage reads the state '%s'; read it with in: %s", b->b.name, b->b.name);
    carry->broken |= !changed || !read;
}

void gp_state_wire(gp_resolving *r, int failed)
{
    bool told = r->errs->failed > failed;      /* a stage that uses one may not have been understood */
    users *of = GP_NEW(r->arena, users, r->nbuffers);
    for (int b = 0; b < r->nbuffers; b++)
        of[b].last = -1;
    for (int i = r->ngiven; i < r->nstages; i++) {
        gp_stage *s = &r->stage[i].s;
        if (gp_is_carry(s) && gp_is_state(&r->buffer[s->out[0]]))
            of[s->out[0]].last = i, s->states = true;
    }
    for (int i = 0; i < r->nstages; i++)
        chain(r, i, of);
    for (int i = r->ngiven; i < r->nstages; i++) {
        gp_rstage *st = &r->stage[i];
        if (gp_is_carry(&st->s) && gp_is_state(&r->buffer[st->s.out[0]]))
            st->s.last = of[st->s.out[0]].last, check_users(r, st, of[st->s.out[0]].read, told);
    }
}

void gp_state_claim(gp_resolving *r, const gp_rstage *carry)
{
    const gp_buffer *b = &r->buffer[carry->s.out[0]].b;
    const char *plain = gp_path_plain(gp_alloc(r->arena, strlen(b->save) + 1), b->save);
    int mine = (int)(carry - r->stage), writer = (int)gp_table_put(&r->written, plain, mine)->n;
    if (writer != mine)
        AT(r, b->save_at, "'save' of the state '%s': '%s' is written by '%s' too: give each a path of its own", b->name, b->save,
           r->stage[writer].s.name);
}

/* ---- once stages and types are known --------------------------------------------------- */

/* The first state that a stage reads or changes; NULL: none. */
static const char *used_by(const gp_resolving *r, const gp_stage *s)
{
    for (int p = 0; p < s->nin + s->nout; p++) {
        int b = p < s->nin ? s->in[p] : s->out[p - s->nin];
        if (b >= 0 && r->buffer[b].b.state)
            return r->buffer[b].b.state;
    }
    return NULL;
}

void gp_state_leaves(gp_resolving *r, gp_rstage *carry)
{
    bool told = carry->broken;
    if (!told && r->graph->launch == GP_LAUNCH_PERSISTENT)
        told = !AT(r, carry->s.at, "the state '%s' and 'launch: persistent' do not go together: set 'launch: graph'",
                   carry->s.name);
    for (int v = 0; v < r->ngiven && !carry->broken; v++) {
        gp_rstage *st = &r->stage[v];
        bool on = st->s.cycle == carry->s.cycle && (!st->s.device || st->s.regroups);
        told |= on;
        if (!on || st->broken)
            continue;
        st->broken = true;
        const char *own = used_by(r, &st->s), *name = own ? own : carry->s.name;
        bool reads = own && port_of(r, st->s.out, st->s.nout, own) < 0;
        AT(r, st->s.at, "stage '%s' %s, and %s the state '%s'; all that a frame does with a state is one launch on a device%s",
           st->s.name, st->s.device ? "changes how many frames there are" : "runs on the host",
           own ? "uses" : "stands between stages that use", name, !reads ? ""
           : gp_format(r->arena, ": give it a copy, {use: expr, in: %s, expr: in}", name));
    }
    if (!told)
        AT(r, carry->s.at, "stages that use the state '%s' also use a buffer that is carried in two ways: let these be alike",
           carry->s.name);
    carry->broken = true;
}

/* May it read what it changes? It may where each thread reads the elements that it writes, and no others. */
static bool is_in_place(const gp_resolving *r, const gp_stage *s, int port)
{
    bool same = true;
    for (int o = 0; o < s->nout; o++) {
        const gp_type *a = &r->buffer[s->in[port]].b.type, *b = s->out[o] < 0 ? a : &r->buffer[s->out[o]].b.type;
        same &= a->ndim == b->ndim && !memcmp(a->dim, b->dim, sizeof *a->dim * (size_t)a->ndim);
    }
    return s->kind->in_place || (same && gp_is_elementwise(s) && !(s->beyond >> port & 1) && !s->reduction.op);
}

void gp_state_check(gp_resolving *r, const gp_rstage *st)
{
    for (int o = 0; o < st->s.nout && !st->broken; o++) {
        const gp_rbuf *b = st->s.out[o] < 0 ? NULL : &r->buffer[st->s.out[o]];
        if (!b || !b->b.state || gp_is_carry(&st->s))
            continue;
        bool in_place = true;
        for (int p = 0; p < st->s.nin; p++)
            in_place &= st->s.in[p] < 0 || r->buffer[st->s.in[p]].b.state != b->b.state || is_in_place(r, &st->s, p);
        if (st->s.zero)
            AT(r, st->s.at, "'zero' would make the state '%s' 0 in each frame: leave it out", b->b.state);
        else if (!in_place)
            AT(r, st->s.at, "stage '%s' reads the state '%s' elsewhere than it writes it, in the same place in memory: only "
               "what computes element by element, and kernels, may read a state that they change. Let it make a buffer of "
               "its own, and another stage take that into '%s'", st->s.name, b->b.state, b->b.state);
    }
}
