/* order.c - stages in topological order, as near to the file's as can be.
 *
 * A depth-first search in file order: a stage comes after the producers of what
 * it reads, after those of the buffers that its outputs are `like`, after the
 * stages that close a cycle with what it makes (carry.c), and after those that use a state before it (state.c). */
#include "compile/resolve.h"

/* The k-th of the stages that close a cycle with what `st` makes, or -2: they take the frame before from its slot, and
 * come before it. */
static int carrier(const gp_resolving *r, const gp_rstage *st, int k)
{
    for (int o = 0; o < st->s.nout; o++) {
        int c = st->s.out[o] < 0 ? 0 : r->buffer[st->s.out[o]].carrier;
        for (; c; c = r->stage[c - 1].next_carrier)
            if (!k--)
                return c - 1;
    }
    return -2;
}

/* The stage that the k-th edge of `st` leads back to; -1: none; -2: no such edge.
 * `like`: the edge comes from `like`, not from an input. */
static int edge(const gp_resolving *r, const gp_rstage *st, int k, bool *like)
{
    int b;
    *like = k >= st->s.nin;
    if (k < st->s.nin) {
        b = st->s.in[k];
        if (st->s.closes && !k)        /* but the type of what it carries has to be known */
            b = gp_is_complete(&r->buffer[st->s.out[0]].b.said) ? -1 : r->buffer[b].like, *like = true;
    } else if (k < st->s.nin + st->s.nout) {
        b = st->s.out[k - st->s.nin];
        b = b < 0 ? -1 : r->buffer[b].like;
    } else {
        int rest = k - st->s.nin - st->s.nout;
        *like = false;
        return rest < st->s.nafter ? st->s.after[rest] : carrier(r, st, rest - st->s.nafter);
    }
    return b < 0 ? -1 : r->buffer[b].b.producer.stage;
}

struct step { int stage, edge; bool like; };

/* The stages path[from..n) wait for each other. */
static void report(gp_resolving *r, const struct step *path, int from, int n)
{
    const char *names = "";
    const gp_rstage *first = &r->stage[path[from].stage];
    bool like = false;
    const gp_rstage *early = NULL;     /* it reads what a stage below it makes, and a state keeps it before that */
    bool states = false;
    for (int i = from; i < n; i++) {
        int to = path[i + 1 < n ? i + 1 : from].stage;
        states |= r->stage[path[i].stage].s.states;
        early = to > path[i].stage ? &r->stage[path[i].stage] : early;
    }
    if (states && r->reported)
        return;
    r->reported |= states;
    for (int i = n - 1; i >= from; i--) {
        like |= path[i].like;
        names = gp_format(r->arena, "%s%s -> ", names, n - from > 8 && i == from + 1 ? "..."
                          : r->stage[path[i].stage].s.name);
        if (n - from > 8 && n - i == 6)
            i = from + 2;
    }
    if (like)
        gp_fail(r->errs, GP_E_SPEC, first->s.at, "the type of what stage '%s' makes depends on "
                "itself, by way of 'like'; declare dtype and shape", first->s.name);
    else if (states && early)
        gp_fail(r->errs, GP_E_SPEC, early->s.at, "a cycle: %s%s; stages use a state in the order of the file, and each may "
                "read only what stages above it make of it: put '%s' behind what it reads", names,
                r->stage[path[n - 1].stage].s.name, early->s.name);
    else
        gp_fail(r->errs, GP_E_SPEC, first->s.at, "a cycle: %s%s; a stage cannot read what is made "
                "from its own output, only that of the %s", names, r->stage[path[n - 1].stage].s.name, r->body
                ? "iteration before: carry: {INPUT: BUFFER} of the loop, and in: INPUT"
                : "frame before: buffers: {before: {carry: BUFFER}}, and in: before");
}

void gp_order(gp_resolving *r)
{
    enum { NEW = -2, DONE = -1 };              /* else: its index in `path` */
    int n = 0, done = 0, *state = GP_NEW(r->arena, int, r->nstages);
    struct step *path = GP_NEW(r->arena, struct step, r->nstages);
    r->order = GP_NEW(r->arena, int, r->nstages);
    gp_carry_mark(r);
    for (int i = 0; i < r->nstages; i++)
        state[i] = NEW;
    for (int i = 0; i < r->nstages; i++) {
        if (state[i] != NEW)
            continue;
        state[i] = 0, path[0] = (struct step){ .stage = i }, n = 1;
        while (n > 0) {
            struct step *top = &path[n - 1];
            int to = edge(r, &r->stage[top->stage], top->edge++, &top->like);
            if (to == -2) {
                r->stage[top->stage].sort = done;
                r->order[done++] = top->stage;
                state[top->stage] = DONE;
                n--;
            } else if (to >= 0 && state[to] == NEW) {
                state[to] = n, path[n++] = (struct step){ .stage = to };
            } else if (to >= 0 && state[to] != DONE) {
                report(r, path, state[to], n);
            }
        }
    }
    gp_devices_alone(r);
    gp_carry_cycles(r);
}
